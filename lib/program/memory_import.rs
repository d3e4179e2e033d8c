//! `memory-import`: an existing CLAUDE.md, AGENTS.md or .cursorrules becomes notes, one idea each.
//!
//! It is consolidation of a file instead of a session. The entry waits in the queue only as long as this program runs, and
//! nobody else takes it.

use crate::base::cli::{self, About, Args, Context, ExitCode, FlagRule, Words, flag};
use crate::base::env::Env;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::text::counted;
use crate::base::{file, reach};
use crate::harness::memory_file::CAP;
use crate::harness::{HARNESSES, name::Harness};
use crate::memory::capture;
use crate::memory::capture::memories::{context_of, unread, whose};
use crate::memory::consolidate::queue::{Queue, waiting};
use crate::program::memory_consolidate::{
    Consolidation, ask_and_write, dry_run, error_of, result, runner, spent, written,
};
use crate::program::notes::{CONFIG, can_ask, is_agreed};
use crate::program::person::{self, only_a_person};
use crate::program::pipeline::{Mode, Opened, open};
use crate::store::batch::Batches;
use crate::store::journal::Journal;
use crate::store::journal::entry::{self, QueueEntry, Retrieval};
use crate::store::ledger::Sessions;
use crate::store::topics::Topics;
use jiff::Timestamp;
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
    rules: &[FlagRule::AtMostOne(&["--dry-run", "--yes"])],
    text: include_str!("memory_import.md"),
    ..About::BLANK
};

const NOTHING: &str = "nothing was imported";

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    only_a_person(person::IMPORT, cx)?;
    let files = args.files().into_iter().map(|named| Ok((named, entry_of(named, &cx.env)?)));
    let entries = files.collect::<Result<Vec<_>>>()?;
    let Some(opened) = open(args, Mode::DryRun, Batches::of_queue, cx)? else {
        return Err(Error::busy("nothing is imported").hint("run this again when the other run is done"));
    };
    let sessions = Sessions::load(&opened.root)?;
    let mut new = Vec::new();
    for (named, (path, entry)) in entries {
        let (unread, has_added) = unread(&entry, &path, &sessions)?;
        if has_added {
            let what = "what stands below \"Added Memories\" is an agent's, and is left out";
            cx.say(&format!("\"{}\": {what}", path.display()));
        }
        match unread {
            0 => cx.say(&format!("\"{}\": nothing new since it was read before", path.display())),
            _ => new.push((named, entry)),
        }
    }
    if new.is_empty() {
        let nothing = json!({"processed": 0, "written": 0, "notes": [], "proposals": []});
        return if cx.json { cx.stdout.json(&nothing) } else { Ok(()) };
    }
    let journal = Journal::at(&opened.root);
    let mut import = Import { ids: BTreeSet::new(), ours: Vec::new(), files: Vec::new() };
    let queued = new.iter().try_for_each(|(named, entry)| {
        let (queued, is_new) = journal.put(entry)?;
        // A killed run may have left it.
        import.ours.extend((is_new || entry.is_import()).then_some(queued.path));
        import.ids.insert(queued.id);
        import.files.push(named.display().to_string());
        Ok(())
    });
    let done = queued.and_then(|()| import.run(&opened, args, cx));
    // What was not agreed to, or failed, is as if it had never been asked for.
    import.forget()?;
    done
}

/// The files that have something new.
struct Import {
    ids: BTreeSet<String>,
    /// The queue entries that this program added.
    ours: Vec<PathBuf>,
    /// The files as they were named.
    files: Vec<String>,
}

impl Import {
    fn forget(&self) -> Result<()> {
        self.ours.iter().try_for_each(|path| Ok(file::if_exists(file::remove(path)).map(drop)?))
    }

    /// The plan, the question, the notes. The reply that the plan is made of is used again.
    fn run(&self, opened: &Opened, args: &Args, cx: &mut Context) -> Result<()> {
        let topics = Topics::at(&opened.root);
        let queue = || Queue::of_import(self.ids.clone());
        if !args.has("yes") {
            let mut plan = runner(opened, Mode::DryRun, &topics, queue());
            match dry_run(&mut plan, |_, _| Ok(()), cx) {
                Ok(None) => {}
                Ok(Some(why)) => return Err(self.failed(NOTHING, &why)),
                Err(error) if error.kind() == ErrorKind::Api => {
                    return Err(self.failed(NOTHING, &error.line()));
                }
                Err(error) => return Err(error),
            }
            if plan.host.planned.is_empty() || args.has("dry-run") {
                return Ok(());
            }
            if !can_ask(cx) || !is_agreed("Write this? [y/N] ", false, cx)? {
                cx.say("nothing is written; --yes writes it");
                return Ok(());
            }
        }
        self.write(&mut runner(opened, Mode::Run, &topics, queue()), args, cx)
    }

    /// Writes the notes, and says what became of the files.
    fn write(&self, runner: &mut Consolidation, args: &Args, cx: &mut Context) -> Result<()> {
        let ending = ask_and_write(runner)?;
        self.forget()?;
        let host = &runner.host;
        let spent = spent(&ending);
        if cx.json {
            cx.stdout.json(&result(host, waiting(runner.run.root)?.len(), spent))?;
        } else if !args.has("quiet") && host.queue.processed > 0 {
            let files = counted(host.queue.processed, "file", "files");
            cx.stdout.line(&format!("{files} imported, {}", written(host)))?;
        }
        let failed = host.queue.failed.first().map(|(_, why)| why.clone());
        let Some(why) = ending.failure().map(|failure| error_of(failure).line()).or(failed) else {
            return Ok(());
        };
        let is_nothing = host.made.written.is_empty() && host.made.waiting.is_empty();
        Err(self.failed(if is_nothing { NOTHING } else { "not everything was imported" }, &why))
    }

    fn failed(&self, what: &str, why: &str) -> Error {
        Error::api(format!("{}: {what}: {why}", self.files.join(", "))).hint("run memory-import again")
    }
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
    // What is in it was written then, and a dry run and the run see the same.
    let written = file.modified().ok().and_then(|at| Timestamp::try_from(at).ok());
    let timestamp = written.unwrap_or(env.now()).min(env.now());
    let (harness, context, real) = origin(real, env);
    let retrieval = Retrieval::MemoryFile { path: real.clone() };
    let entry = QueueEntry { version: 1, timestamp, harness, retrieval, context };
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
