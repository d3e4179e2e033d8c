//! `memory-import`: an existing CLAUDE.md, AGENTS.md or .cursorrules becomes notes, one idea each.
//!
//! It is consolidation of a file instead of a session. The entry waits in the queue only as long as this program runs, and
//! nobody else takes it.

use crate::base::cli::{self, About, Args, Context, ExitCode, Rule, Words, flag};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::{file, reach};
use crate::harness::memory_file::{CAP, without_added};
use crate::harness::{HARNESSES, name::Harness};
use crate::memory::capture;
use crate::memory::capture::memories::{context_of, unread, whose};
use crate::memory::consolidate::queue::Queue;
use crate::program::memory_consolidate::{consolidate, dry_run, runner};
use crate::program::notes::{CONFIG, can_ask, is_agreed};
use crate::program::person::{self, only_a_person};
use crate::program::pipeline::{Mode, Opened, open};
use crate::store::batch::Batches;
use crate::store::journal::Journal;
use crate::store::journal::entry::{self, QueueEntry, Retrieval};
use crate::store::ledger::Sessions;
use crate::store::topics::Topics;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub(super) const ABOUT: About = About {
    name: "memory-import",
    caption: "turn CLAUDE.md, AGENTS.md and similar files into notes",
    usage: &["memory-import [--dry-run | --yes] [--json] [--quiet] FILE..."],
    flags: &[
        flag("dry-run", "ask the LLM, show the plan, write nothing"),
        flag("yes", "write the notes without asking"),
        flag("quiet", "print no progress and no summary"),
        flag("json", "print the plan, or with --yes the result, as one JSON object"),
        CONFIG,
    ],
    words: Words::Needed(usize::MAX, "no file is named", "name a CLAUDE.md, AGENTS.md or .cursorrules"),
    rules: &[Rule::AtMostOne(&["--dry-run", "--yes"])],
    text: include_str!("memory_import.md"),
    ..About::BLANK
};

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    only_a_person(person::IMPORT, cx)?;
    let files = args.files().into_iter().map(|path| entry_of(path, &cx.env));
    let entries = files.collect::<Result<Vec<_>>>()?;
    let Some(opened) = open(args, Mode::DryRun, Batches::of_queue, cx)? else {
        return Err(Error::busy("nothing is imported").hint("run this again when the other run is done"));
    };
    let sessions = Sessions::load(&opened.root)?;
    let mut new = Vec::new();
    for (path, entry) in entries {
        let text =
            String::from_utf8_lossy(&reach::within(&path, |path| file::read(path, CAP))??).into_owned();
        if without_added(&text) != text {
            let what = "what stands below \"Added Memories\" is an agent's, and is left out";
            cx.say(&format!("\"{}\": {what}", path.display()));
        }
        match unread(&entry, &path, &sessions)? {
            0 => cx.say(&format!("\"{}\": nothing new since it was read before", path.display())),
            _ => new.push(entry),
        }
    }
    if new.is_empty() {
        let nothing = json!({"processed": 0, "written": 0, "notes": [], "proposals": []});
        return if cx.json { cx.stdout.json(&nothing) } else { Ok(()) };
    }
    let journal = Journal::at(&opened.root);
    let (mut ids, mut ours) = (BTreeSet::new(), Vec::new());
    let queued = new.iter().try_for_each(|entry| {
        let (queued, is_new) = journal.put(entry)?;
        ours.extend(is_new.then_some(queued.path));
        ids.insert(queued.id);
        Ok(())
    });
    let done = queued.and_then(|()| import(&opened, &ids, args, cx));
    // What was not agreed to, or failed, is as if it had never been asked for.
    for path in ours {
        file::if_exists(file::remove(&path))?;
    }
    done
}

/// The plan, the question, the notes. The reply that the plan is made of is used again.
fn import(opened: &Opened, ids: &BTreeSet<String>, args: &Args, cx: &mut Context) -> Result<()> {
    let topics = Topics::at(&opened.root);
    let queue = || Queue::new(usize::MAX, Some(ids.clone()), true);
    if !args.has("yes") {
        let mut plan = runner(opened, Mode::DryRun, &topics, queue());
        dry_run(&mut plan, |_, _| Ok(()), cx)?;
        if plan.host.planned.is_empty() || args.has("dry-run") {
            return Ok(());
        }
        if !can_ask(cx) || !is_agreed("Write this? [y/N] ", false, cx)? {
            cx.say("nothing is written; --yes writes it");
            return Ok(());
        }
    }
    consolidate(&mut runner(opened, Mode::Run, &topics, queue()), None, args.has("quiet"), cx)
}

/// A file with its queue entry.
fn entry_of(path: &Path, env: &Env) -> Result<(PathBuf, QueueEntry)> {
    let named = path.display();
    let real = reach::real(path).ok_or_else(|| Error::not_found(format!("no file \"{named}\"")))?;
    let file = reach::within(&real, Path::metadata)??;
    if !file.is_file() {
        return Err(Error::usage(format!("\"{named}\" is not a file")));
    }
    if file.len() > CAP {
        let what = format!("\"{named}\" is larger than {} KiB", CAP >> 10);
        return Err(Error::usage(what).hint("import it in parts"));
    }
    let (harness, context, real) = origin(real, env);
    let retrieval = Retrieval::MemoryFile { path: real.clone() };
    let entry = QueueEntry { version: 1, timestamp: env.now(), harness, retrieval, context };
    entry.check()?;
    Ok((real, entry))
}

/// Who wrote the file, where it holds, and its path there.
fn origin(real: PathBuf, env: &Env) -> (Harness, entry::Context, PathBuf) {
    if let Some((spec, memory, path)) = whose(&real, env) {
        return (Harness::of(spec), context_of(memory, &path, env), path);
    }
    let dir = real.parent().unwrap_or(&real);
    let is_agents = real.file_name().is_some_and(|name| name.eq_ignore_ascii_case("MEMORY.md"));
    let harness = if is_agents { Harness::AGENT } else { Harness::MANUAL };
    // The person's own file is about no project.
    let homes =
        HARNESSES.iter().filter_map(|spec| spec.home.dir(env)).chain(env.home().map(Path::to_path_buf));
    let is_own = !is_agents && homes.filter_map(|home| reach::real(&home)).any(|home| home == dir);
    let context = if is_own { entry::Context::default() } else { capture::context(Some(dir.to_path_buf())) };
    (harness, context, real)
}
