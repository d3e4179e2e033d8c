//! `memory-capture`: put a note or a session into the queue.
//!
//! It runs at the end of every turn of every agent, so it is fast: it checks its input, writes one file, and leaves
//! reading the session to `memory-consolidate`. It takes no lock, and runs no LLM or other program.

mod forms;
mod past;

use crate::base::cli::{self, About, Args, Context, ExitCode, FlagRule, Words, flag, value};
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::text::one_line;
use crate::base::{reach, stdin};
use crate::config::memory;
use crate::harness::name::Harness;
use crate::harness::payload::Ended;
use crate::harness::spec::Capture;
use crate::memory::capture;
use crate::memory::capture::note::{NewText, harness_here, redact};
use crate::memory::links::links;
use crate::memory::record::{NoteText, unproven};
use crate::memory::section::Which;
use crate::memory::service::NewNote;
use crate::program::memory_capture::forms::{CaptureForm, What, needs_id};
use crate::program::notes::{
    CONFIG, INSIDE, PATIENCE, Store, is_inside, json_on_stdin, piped_in, print_note, print_waiting,
    warn_waiting,
};
use crate::store::entry::{By, Scope, Source};
use crate::store::journal::entry::{QueueEntry, Retrieval};
use crate::store::journal::{Journal, QueuedEntry};
use crate::store::persistence::Persistence;
use crate::store::place::Root;
use crate::store::proposal::{Draft, Op, Proposal};
use crate::store::topics::Topics;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

pub(super) const ABOUT: About = About {
    name: "memory-capture",
    caption: "queue a note or an agent's session",
    usage: &[
        "memory-capture --title T --body B|- [--tags a,b] [--scope S] [--direct]",
        "memory-capture --harness amp|opencode|NAME --thread-id ID",
        "memory-capture --harness H < HOOK",
        "memory-capture --harness pi FILE",
        "memory-capture --entry < ENTRY",
        "memory-capture --past PERIOD [--harness H] [--dry-run] [--yes]",
    ],
    flags: &[
        value("title", "T", "the note's title, one line"),
        value("body", "B", "the note's text; \"-\" reads it from stdin"),
        value("tags", "a,b", "tags: topic__x or area__x; a plain x means topic__x").from("tags"),
        value("scope", "S", "global (default), or repo: only for the current repository"),
        flag("direct", "write the note at once, without the queue"),
        value("harness", "H", "the program that the session or note comes from").from("harnesses"),
        value("thread-id", "ID", "the session's id"),
        flag("entry", "read a queue entry (JSON, version 1) from stdin"),
        value("past", "PERIOD", "queue the sessions of this period: 30d, 12h, 2w or all"),
        flag("dry-run", "with --past: list the sessions, queue nothing"),
        flag("yes", "with --past: do not ask first"),
        flag("json", "print the entry as JSON, with its id and path"),
        CONFIG,
    ],
    words: Words::AtMost(1),
    rules: &[
        FlagRule::Apart(
            "--past",
            &["--title", "--body", "--tags", "--scope", "--direct", "--entry", "--thread-id"],
            "--past finds sessions by itself",
        ),
        FlagRule::Needs(
            &["--dry-run", "--yes"],
            &["--past"],
            "is only for --past",
            "add --past PERIOD, or leave it out",
        ),
        FlagRule::Apart(
            "--entry",
            &["--title", "--body", "--tags", "--scope", "--direct", "--harness", "--thread-id"],
            "the entry contains all of that; leave one of them out",
        ),
        FlagRule::Needs(
            &["--tags", "--scope", "--direct"],
            &["--title", "--body"],
            "is only for notes",
            "add --title and --body, or leave it out",
        ),
    ],
    text: include_str!("memory_capture.md"),
    ..About::BLANK
};

/// The largest note on stdin, in bytes, with every character escaped.
const CAP: usize = 8 << 20;
/// For a hook's JSON, which a program writes at once.
const HOOK_PATIENCE: Duration = Duration::from_secs(10);

/// So long a hook waits for a directory or a transcript to answer. It is queued without: then its repository is not known,
/// so that a busy machine or a slow disk must not be taken for a dead one.
const HURRY: Duration = Duration::from_millis(1000);

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    let wanted = CaptureForm::of(args)?;
    let is_hook = wanted.what == What::Hook;
    match capture(wanted, args, cx) {
        // Exit code 2 would make the agent go on, with our message as its prompt.
        Err(e) if is_hook && e.kind() == ErrorKind::Config => Err(e.of_kind(ErrorKind::Io)),
        done => done,
    }
}

fn capture(wanted: CaptureForm, args: &Args, cx: &mut Context) -> Result<()> {
    if is_inside(&cx.env) {
        return nothing_queued(INSIDE, cx);
    }
    if matches!(wanted.what, What::Hook | What::Session | What::File) {
        reach::hurry(HURRY);
    }
    if let Some(harness) = wanted.harness {
        expect_described(harness, "option \"--harness\"", args, cx)?;
    }
    // A note without one is a person's.
    let harness = wanted.harness.unwrap_or(Harness::MANUAL);
    let spec = harness.spec();
    let ended = match (wanted.what, spec.map(|spec| &spec.capture)) {
        (What::Past(period), _) => {
            return past::queue_past(period, wanted.harness, args, cx);
        }
        (What::Entry, _) => return queue(entry_on_stdin(args, cx)?, false, args, cx),
        (What::Note, _) => {
            let entry = note(wanted, args, cx)?;
            return match args.has("direct") {
                true => write_note(entry, args, cx),
                false => queue(entry, false, args, cx),
            };
        }
        (What::Session, _) => {
            let retrieval = Retrieval::by_id(harness, wanted.thread_id.unwrap_or_default());
            return queue(session(retrieval, harness, None, &cx.env), false, args, cx);
        }
        (What::File, Some(Capture::File(ended))) => {
            ended(&cx.env.current_dir().unwrap_or_default().join(wanted.word.clone().unwrap_or_default()))?
        }
        (What::Hook | What::File, _) => {
            // Only now it is known that there is such a program.
            let Some(spec) = spec else { return Err(needs_id(harness)) };
            let word = wanted.word.clone().map(String::into_bytes);
            capture::hook_event(spec, &word.map_or_else(|| hooks_json(cx), Ok)?, &cx.env)?
        }
    };
    match ended {
        Ended::Nothing(why) => nothing_queued(&why, cx),
        Ended::Session { path, id, cwd } => {
            // Codex treats text on a hook's stdout as a failure, and Gemini CLI shows it to the user.
            let capture = spec.map(|spec| &spec.capture);
            let quiet =
                wanted.word.is_none() && !matches!(capture, Some(Capture::Hook { may_print: true, .. }));
            let retrieval = Retrieval::in_file(harness, path, id);
            queue(session(retrieval, harness, cwd, &cx.env), quiet, args, cx)
        }
    }
}

fn entry_on_stdin(args: &Args, cx: &Context) -> Result<QueueEntry> {
    let bytes = json_on_stdin(Deadline::after_seconds(PATIENCE), true, &cx.reporter)?.unwrap_or_default();
    if bytes.trim_ascii().is_empty() {
        return Err(Error::usage("stdin is empty; a queue entry is expected there")
            .hint("its form is in memory(7), under QUEUE ENTRY"));
    }
    let mut entry = QueueEntry::parse(&bytes)?;
    entry.harness = harness_here(entry.harness, &cx.env);
    expect_described(entry.harness, "not a queue entry: harness", args, cx)?;
    Ok(entry)
}

/// A session belongs to where it ran, or else to here.
fn session(retrieval: Retrieval, harness: Harness, cwd: Option<PathBuf>, env: &Env) -> QueueEntry {
    let context = capture::context(cwd.or_else(|| env.current_dir().ok()));
    QueueEntry { version: 1, timestamp: env.now(), harness, retrieval, context }
}

/// With `quiet` the path is not printed.
fn queue(mut entry: QueueEntry, quiet: bool, args: &Args, cx: &mut Context) -> Result<()> {
    let config = memory::load(args.path("config"), &cx.env, &cx.reporter)?;
    redact(&mut entry, &config.redact)?;
    let root = Root::open(&config.storage.root)?;
    if let Retrieval::Inline { body, .. } = &entry.retrieval {
        warn_of_links(body, &root, cx);
    }
    // It may be the one about the same session that waits already.
    let journal = Journal::at(&root);
    let (waiting, _) = journal.put(&entry)?;
    let spec = entry.retrieval.spec();
    if spec.is_some_and(|spec| matches!(spec.capture, Capture::Hook { removes: true, .. }))
        && let Retrieval::Transcript { path, .. } = &entry.retrieval
    {
        journal.keep(&waiting.id, path);
    }
    if quiet && !cx.json { Ok(()) } else { print_queued(&waiting, cx) }
}

/// A program of a name of its own must be in the configuration: otherwise the name is a typing error.
fn expect_described(harness: Harness, place: &str, args: &Args, cx: &Context) -> Result<()> {
    let name = harness.name();
    if Harness::named(name).is_some() {
        return Ok(());
    }
    let config = memory::load(args.path("config"), &cx.env, &cx.reporter)?;
    if config.harnesses.contains_key(name) {
        return Ok(());
    }
    Err(Error::usage(format!("{place}: unknown program \"{name}\"")).hint(Harness::suggestion(name)))
}

/// A note of a person, or of an agent, as it is queued.
fn note(wanted: CaptureForm, args: &Args, cx: &Context) -> Result<QueueEntry> {
    let CaptureForm { harness, tags, scope, thread_id, .. } = wanted;
    let title = args.text("title").unwrap_or_default().to_owned();
    let text = NewText { title, body: body(args, cx)?, tags, scope, thread_id };
    text.queued(harness_here(harness.unwrap_or(Harness::MANUAL), &cx.env), &cx.env, "--")
}

fn nothing_queued(why: &str, cx: &mut Context) -> Result<()> {
    let why = one_line(why, 1000);
    cx.say(&format!("nothing queued: {why}"));
    if cx.json { cx.stdout.json(&json!({"queued": false, "reason": why})) } else { Ok(()) }
}

fn print_queued(waiting: &QueuedEntry, cx: &mut Context) -> Result<()> {
    let path = waiting.path.to_string_lossy();
    if !cx.json {
        return cx.stdout.line(&path);
    }
    let mut json = waiting.entry.json();
    (json["id"], json["path"]) = (json!(waiting.id), json!(path));
    cx.stdout.json(&json)
}

/// Writes the note without the queue. What an agent writes holds in its repository at most; the rest waits for a person.
fn write_note(mut entry: QueueEntry, args: &Args, cx: &mut Context) -> Result<()> {
    let store = Store::open(args, cx)?;
    redact(&mut entry, &store.config.redact)?;
    let Retrieval::Inline { title, body, tags, scope, thread_id } = entry.retrieval else { return Ok(()) };
    warn_of_links(&body, &store.root, cx);
    let source = Source {
        harness: Some(entry.harness.to_string()),
        thread_id,
        repo: entry.context.repo,
        cwd: entry.context.cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
        at: Some(entry.timestamp.to_string()),
        other: Vec::new(),
    };
    let by = if entry.harness == Harness::MANUAL { By::Person } else { By::Agent };
    let is_here_alone = by == By::Person || scope == Scope::Repo;
    let text = NoteText { title: &title, summary: "", tags: &tags, body: &body };
    let unproven = if by == By::Person { Vec::new() } else { unproven(&text, None) };
    let waits_as_a_whole = !unproven.is_empty() || !is_here_alone && source.repo.is_none();
    let reach = (!is_here_alone).then(|| "An agent captured it for all repositories.".to_owned());
    let reasons: Vec<String> = reach.into_iter().chain(unproven).collect();
    let now = cx.env.now().as_millisecond();
    if waits_as_a_whole {
        let (summary, paths, sources) = (String::new(), Vec::new(), vec![source.clone()]);
        let (name, until) = (title.clone(), None);
        let draft = Draft { title: name, summary, tags, paths, scope, until, body, sources };
        let proposal = Proposal {
            entry: Some(draft),
            reasons,
            session: Some(source),
            ..Proposal::new(Op::Create, &title, by, now)
        };
        let waits = store.service.propose(proposal)?;
        store.refresh(Which::All, cx);
        return print_waiting(&waits, &store.root, cx);
    }
    let scope = if is_here_alone { scope } else { Scope::Repo };
    let new = NewNote { title, summary: String::new(), tags, scope, body, by, sources: vec![source.clone()] };
    let (note, is_new) = store.service.capture_once(new)?;
    if !is_new {
        cx.say("this note exists already");
    }
    if !is_here_alone {
        let widened = Proposal::about(&note.entry, Op::Widen, None, by, now);
        let waits = store.service.propose(Proposal { reasons, session: Some(source), ..widened })?;
        warn_waiting(&waits, cx);
    }
    store.refresh(Which::All, cx);
    print_note(note.entry.meta(), &note.path, cx)
}

/// A link that leads nowhere is most often a typing error.
fn warn_of_links(body: &str, root: &Root, cx: &Context) {
    let notes = Topics::at(root);
    for id in links(body).iter().filter(|id| matches!(notes.own(id), Ok(None))) {
        cx.reporter.warn(&format!(
            "the body links to [[{id}]], but no note has that id; see the ids with: memory-list"
        ));
    }
}

fn body(args: &Args, cx: &Context) -> Result<String> {
    let body = args.text("body").unwrap_or_default();
    if body != "-" {
        return Ok(body.to_owned());
    }
    let terms = stdin::StdinOptions {
        if_silent: "Give the body with --body TEXT if nothing is piped in",
        if_late: "pipe in a body that ends",
        ..piped_in(CAP)
    };
    let body = stdin::read(&terms, &cx.reporter)?.unwrap_or_default();
    match body.trim() {
        "" => Err(Error::usage("stdin is empty; the body of the note is expected there")),
        _ => Ok(body),
    }
}

fn hooks_json(cx: &Context) -> Result<Vec<u8>> {
    let what = match json_on_stdin(Deadline::after(HOOK_PATIENCE), false, &cx.reporter)? {
        None => "stdin is a terminal",
        Some(bytes) if bytes.trim_ascii().is_empty() => "stdin is empty",
        Some(bytes) => return Ok(bytes),
    };
    Err(Error::usage(format!("{what}; a hook's JSON is expected there"))
        .hint("let the program run this as its hook, or give --title and --body for a note"))
}
