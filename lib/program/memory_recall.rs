//! `memory-recall`: what a session here should know.
//!
//! By hand it prints the section for this place, or the notes that answer some words. As a hook it must never stand in
//! the way: it answers in time or not at all, and it does not fail.

use crate::base::cli::{self, About, Args, Context, FlagRule, Reporter, Words, count, flag, value};
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::reach;
use crate::base::sync::spawn;
use crate::config::memory;
use crate::harness::spec::Spec;
use crate::harness::{HARNESSES, known};
use crate::memory::recall::{self, BYTES_A_TOKEN, Moment};
use crate::program::memory_agents_md::print;
use crate::program::notes::{CONFIG, Listed, Store, current_repo, is_inside, json_on_stdin, words};
use crate::store::health::{Health, TroubleKind};
use crate::store::place::Root;
use jiff::SignedDuration;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};

pub(super) const ABOUT: About = About {
    name: "memory-recall",
    caption: "print what a session here should know",
    usage: &[
        "memory-recall [--repo R] [--tokens N] [--json]",
        "memory-recall WORDS… [--repo R] [--limit N] [--tokens N] [--json]",
        "memory-recall --harness H < HOOK",
    ],
    flags: &[
        value("repo", "R", "for this repository (host/owner/name), not the current one").from("repositories"),
        count("limit", "with WORDS: at most N notes (default 5)"),
        count("tokens", "at most N tokens, four bytes each"),
        value("harness", "H", "answer a hook of this program: its JSON is on stdin").from("harnesses"),
        flag("json", "JSON: the section, or one note a line"),
        CONFIG,
    ],
    words: Words::AtMost(usize::MAX),
    rules: &[
        FlagRule::Apart(
            "--harness",
            &["WORDS", "--repo", "--limit", "--tokens", "--json"],
            "the hook's JSON says what is asked for",
        ),
        FlagRule::Needs(&["--limit"], &["WORDS"], "needs words to search for", "--tokens limits the section"),
    ],
    text: include_str!("memory_recall.md"),
    ..About::BLANK
};

/// The most notes, and tokens, that are printed by hand unless the flags say otherwise.
pub(super) const NOTES: usize = 5;
pub(super) const TOKENS: usize = 2000;
/// So long after the last hook that gave nothing, an answer in time ends the trouble.
const QUIET: SignedDuration = SignedDuration::from_hours(24);

pub fn main() -> ExitCode {
    cli::main_or(&ABOUT, run, if_wrong)
}

/// Exit code 2 would block each prompt of the session. Without the arguments it is not known where a trouble is kept.
fn if_wrong(args: &Args, error: Error) -> Result<()> {
    if !args.has("harness") {
        return Err(error);
    }
    cli::say(ABOUT.name, &format!("nothing given: {}", error.line()));
    Ok(())
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    let spec = args.parsed("harness", |name| {
        let all = || cli::listed(HARNESSES.iter().map(|spec| spec.name));
        let unknown = || Error::usage(format!("option \"--harness\" takes {}, got \"{name}\"", all()));
        known(name).ok_or_else(unknown)
    });
    match spec {
        Err(error) => if_wrong(args, error)?,
        Ok(Some(spec)) => hook(spec, args.path("config"), cx),
        Ok(None) => by_hand(args, cx)?,
    }
    Ok(())
}

fn by_hand(args: &Args, cx: &mut Context) -> Result<()> {
    let store = Store::open(args, cx)?;
    let repo = match store.named_repo(args, cx)? {
        None => current_repo(&cx.env)?,
        repo => repo,
    };
    let room = args.number("tokens").map(|tokens: usize| tokens.saturating_mul(BYTES_A_TOKEN));
    let repo = repo.as_deref();
    let Some(words) = words(args, "without them, it prints what a session here should know")? else {
        return print(repo, &store.section(repo, room, cx)?, cx);
    };
    let (most, room) = (args.number("limit").unwrap_or(NOTES), room.unwrap_or(TOKENS * BYTES_A_TOKEN));
    let recalled = store.recall(&words, repo, most, room, cx)?;
    for found in recalled.found.iter().filter(|_| cx.json) {
        let Some(note) = found.view.note() else { continue };
        let waiting = recalled.proposals.iter().filter(|one| one.note.as_ref() == Some(&found.view.meta.id));
        let waiting: Vec<_> = waiting.map(|proposal| proposal.id.clone()).collect();
        cx.stdout.json(&Listed {
            change: !waiting.is_empty(),
            score: Some(found.score),
            line: found.line.as_deref(),
            body: Some(String::from_utf8_lossy(note.entry.body()).into_owned()),
            proposals: &waiting,
            ..Listed::of(&found.view.meta, &found.view.path)
        })?;
    }
    if !cx.json {
        cx.stdout.text(&recalled.text)?;
    }
    cx.stdout.flush()?;
    // The answer does not depend on it, and a store that cannot be written to can be searched.
    let _ = store.service.keep_up();
    Ok(())
}

/// What the thread that makes the answer says.
enum FromThread {
    /// Where a trouble is kept: in the store, once it is known.
    Store(Option<Root>),
    Answer(Result<(String, bool)>),
}

/// Nothing that goes wrong here is the session's business.
fn hook(spec: &'static Spec, config: Option<&Path>, cx: &mut Context) {
    if is_inside(&cx.env) {
        return;
    }
    let patience = recall::patience(&cx.env);
    let deadline = Deadline::after(patience);
    // What does not answer leaves time for an answer without it.
    reach::hurry(patience / 4);
    let (sender, said) = channel();
    let (env, file, mut root) = (cx.env.clone(), config.map(Path::to_path_buf), None);
    let thread = spawn(move || {
        let answer = answer(spec, file.as_deref(), &env, deadline, &sender);
        let _ = sender.send(FromThread::Answer(answer));
    });
    let answer = match thread {
        Err(e) => Err(Error::io(format!("no thread can be started: {e}"))),
        Ok(()) => loop {
            match said.recv_timeout(deadline.remaining()) {
                Ok(FromThread::Store(store)) => root = store,
                Ok(FromThread::Answer(answer)) => break answer,
                Err(RecvTimeoutError::Timeout) => {
                    break Err(Error::io(format!("no answer after {} ms", patience.as_millis())));
                }
                Err(RecvTimeoutError::Disconnected) => break Err(Error::io("it ended without an answer")),
            }
        },
    };
    let answered = answer.and_then(|(text, is_start)| {
        cx.stdout.text(&text)?;
        cx.stdout.flush()?;
        Ok(is_start)
    });
    match answered {
        // Once a session, and when the answer is out.
        Ok(true) => {
            if let Some(root) = &root {
                recall::sweep(root);
                // Then the first call of a tool does it.
                let _ = recall::refresh(root);
                Health::change(root, |health| health.end_after(TroubleKind::Recall, QUIET, cx.env.now()));
                write_cache(root, config);
            }
        }
        Ok(false) => {}
        Err(_) if cx.stdout.is_broken() => {}
        Err(error) => {
            cli::say(ABOUT.name, &format!("nothing given: {}", error.line()));
            if let Some(root) = &root {
                let why = format!("{}: {}", spec.name, error.line());
                Health::change(root, |health| health.add(TroubleKind::Recall, 1, &why, cx.env.now()));
                write_cache(root, config);
            }
        }
    }
}

/// Lets `memory-list` write the cache if much of it is out of date. The session does not wait for it: it holds none of its
/// streams, and nobody waits for its end.
fn write_cache(root: &Root, config: Option<&Path>) {
    if !recall::needs_cache(root) {
        return;
    }
    let Ok(own) = std::env::current_exe() else { return };
    let list = own.with_file_name(format!("memory-list{}", std::env::consts::EXE_SUFFIX));
    let mut command = Command::new(list);
    command.args(["--limit", "1"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(config) = config {
        command.arg("--config").arg(config);
    }
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    // Without it, the next search by hand writes it.
    let _ = command.spawn();
}

fn answer(
    spec: &'static Spec,
    config: Option<&Path>,
    env: &Env,
    deadline: Deadline,
    said: &Sender<FromThread>,
) -> Result<(String, bool)> {
    let reporter = Reporter::new(false);
    let config = memory::load(config, env, &reporter)?;
    let root = Root::open(&config.storage.root)?;
    let _ = said.send(FromThread::Store(Some(root.clone())));
    let bytes = json_on_stdin(deadline, false, &reporter)?;
    let missing =
        || Error::usage("a hook's JSON is expected on stdin").hint("let the program run this as its hook");
    let bytes = bytes.filter(|bytes| !bytes.trim_ascii().is_empty()).ok_or_else(missing)?;
    // A session has hundreds of them, and one that comes too late is no trouble.
    if recall::is_act(spec, &bytes) {
        let _ = said.send(FromThread::Store(None));
    }
    let moment = Moment { config: &config, root: &root, env, today: env.today(), deadline };
    recall::answer(spec, &bytes, &moment)
}
