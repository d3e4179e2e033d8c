//! `memory-capture`: put a note or a session into the queue.
//!
//! It runs at the end of every turn of every agent, so it does little: it checks what it is given, writes one
//! file that outlives a power cut, and leaves reading and thinking to `memory-consolidate`. No lock, no LLM, no
//! other program.

mod forms;

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, flag, text, value};
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, ErrorKind, Fault, Result};
use crate::base::text::one_line;
use crate::base::{stderr, stdin};
use crate::config::memory;
use crate::memory::capture::{self, HookEvent};
use crate::memory::redact::Redactor;
use crate::memory::service::{NewNote, NoteService};
use crate::program::memory_capture::forms::{Body, Given, Note, What, harness, scope, tags, thread_id};
use crate::store::entry::{Scope, Source};
use crate::store::journal::Journal;
use crate::store::journal::entry::{Context, Harness, QueueEntry, Retrieval};
use crate::store::place::Root;
use crate::store::topics::Topics;
use serde::de::IgnoredAny;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

pub(crate) const ABOUT: About = About {
    name: "memory-capture",
    caption: "queue a note or an agent's session",
    usage: &[
        "memory-capture --title T --body B|- [--tags a,b] [--scope S] [--direct]",
        "memory-capture --harness amp|opencode --thread-id ID",
        "memory-capture --harness claude-code|codex|cursor|gemini < HOOK",
        "memory-capture --entry < ENTRY",
    ],
    commands: &[],
    flags: &[
        value("title", "T", "the note's title, one line"),
        value("body", "B", "the note's text; \"-\" reads it from stdin"),
        value("tags", "a,b", "tags: topic__x, area__x; a bare x is topic__x"),
        value("scope", "S", "global (default), or repo: for the current repository alone"),
        flag("direct", "write the note at once, past the queue"),
        value("harness", "H", "the program that the session or note is from"),
        value("thread-id", "ID", "the session's id"),
        flag("entry", "a queue entry (JSON, version 1) on stdin"),
        flag("json", "print what was queued as one JSON object"),
        value("config", "FILE", "use this configuration"),
    ],
    more: "Prints the path of the queue entry, or of the note with --direct. A session that waits already is \
           not queued again.\n\n\
           As a hook (third form) it takes only ends of turns and sessions, leaves sub-agents out, and says on \
           stderr why; Codex's, Cursor's and Gemini's hooks print nothing without --json. It never exits 2, which would keep the agent going: a \
           wrong configuration is exit 1 there. Codex's notify may pass its JSON as the last argument.\n\n    \
           git log -1 --format=%B | memory-capture --title \"Why we pin\" --body -",
    sections: &[(
        "HOOKS",
        "Queued are sessions at these events. Claude Code: Stop, SessionEnd, PreCompact. Codex: Stop, SessionEnd, \
         PreCompact, Interrupt, and notify's agent-turn-complete. Gemini CLI: AfterAgent, SessionEnd, \
         PreCompress. Cursor: stop, sessionEnd. JSON without an event's name is taken as an end.\n\n\
         What is read of a hook's JSON, here Claude Code's: session_id, transcript_path, cwd, hook_event_name.\n\n\
         Claude Code, Codex and Gemini CLI take exit code 2 from a hook as an order to go on, with the hook's \
         stderr as their next prompt, so a hook exits 0 or 1. Codex takes any text on a hook's stdout for a fault, \
         and Gemini CLI shows it to you: there a hook prints nothing, unless --json asks for it.\n\n\
         Within an LLM command of the memory programs (AGENT_MEMORY_RUN is set) nothing is queued.",
    )],
};

/// The most that is read from stdin, in bytes: the largest note, with every character escaped.
const CAP: usize = 8 << 20;
/// A program writes its hook's JSON at once.
const HOOK_PATIENCE: Duration = Duration::from_secs(10);
/// A person types, and a pipeline may think.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

#[derive(Debug)]
struct Args {
    what: What,
    json: bool,
    config: Option<PathBuf>,
}

pub fn main() -> ExitCode {
    Program { about: &ABOUT, parse, run }.main()
}

fn parse(p: &mut Arguments) -> Result<Args> {
    use lexopt::prelude::*;
    let mut given = Given::default();
    let (mut json, mut config) = (false, None);
    while let Some(arg) = p.next()? {
        match arg {
            Long("title") => given.title = Some(p.text()?),
            Long("body") => given.body = Some(p.text()?),
            Long("tags") => {
                let all = given.tags.get_or_insert_default();
                for tag in tags(&p.text()?)? {
                    if !all.contains(&tag) {
                        all.push(tag);
                    }
                }
            }
            Long("scope") => given.scope = Some(scope(&p.text()?)?),
            Long("harness") => given.harness = Some(harness(&p.text()?)?),
            Long("thread-id") => given.thread_id = Some(thread_id(p.text()?)?),
            Long("direct") => given.direct = true,
            Long("entry") => given.entry = true,
            Long("json") => json = true,
            Long("config") => config = Some(p.path()?),
            Value(payload) if given.payload.is_none() => given.payload = Some(text(payload)?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    Ok(Args { what: given.what()?, json, config })
}

fn run(args: Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    let is_hook = matches!(args.what, What::Hook { .. });
    match capture(args, env, stdout) {
        // Exit code 2 would send the agent back to work, with our message as its prompt.
        Err(e) if is_hook && e.kind() == ErrorKind::Config => Err(e.of_kind(ErrorKind::Io)),
        done => done.map(|()| ExitCode::SUCCESS),
    }
}

fn capture(args: Args, env: &Env, stdout: &mut Stdout) -> Result<()> {
    if env.os("AGENT_MEMORY_RUN").is_some() {
        nothing_queued("this runs inside an LLM command of the memory programs (AGENT_MEMORY_RUN is set)");
        return Ok(());
    }
    let reporter = Reporter::new(false);
    let root = |env: &Env| {
        memory::load(args.config.as_deref(), env, &reporter).map(|config| Root::at(&config.storage.root))
    };
    let (retrieval, harness, context) = match args.what {
        What::Entry => {
            let entry = whole_entry(&reporter)?;
            return queue(&entry, &root(env)?, Printed::whichever(args.json), stdout);
        }
        What::Session { harness, thread_id } => {
            let retrieval = match harness {
                Harness::Opencode => Retrieval::OpencodeSession { thread_id },
                _ => Retrieval::AmpThread { thread_id },
            };
            (retrieval, harness, capture::context(env.current_dir().ok()))
        }
        What::Note(note) => {
            let context = capture::context(env.current_dir().ok());
            if note.scope == Scope::Repo && context.repo.is_none() {
                return Err(Error::usage(
                    "option \"--scope repo\": the current directory is in no git repository",
                )
                .hint("cd into it, or leave --scope out for a global note"));
            }
            let direct = note.direct;
            let harness = note.harness;
            let entry = entry(inline(note, &reporter)?, harness, context, env);
            entry.check().map_err(|error| of_note(&error))?;
            return match direct {
                true => {
                    let config = memory::load(args.config.as_deref(), env, &reporter)?;
                    write_note(entry, &config, args.json, env, stdout)
                }
                false => queue(&entry, &root(env)?, Printed::whichever(args.json), stdout),
            };
        }
        What::Hook { harness, payload } => {
            let is_notify = payload.is_some();
            let payload = match payload {
                Some(payload) => payload.into_bytes(),
                None => hooks_json(&reporter)?,
            };
            match capture::hook_event(harness, &payload, env)? {
                HookEvent::Nothing(why) => {
                    nothing_queued(&why);
                    return Ok(());
                }
                HookEvent::Session { retrieval, cwd } => {
                    let cwd = cwd.or_else(|| env.current_dir().ok());
                    let entry = entry(retrieval, harness, capture::context(cwd), env);
                    // Codex calls a hook failed that prints anything but its own JSON, and Gemini CLI shows it
                    // to the person. Who asks for JSON knows what he does.
                    let is_harmless = harness == Harness::ClaudeCode || is_notify;
                    let printed = if args.json || is_harmless {
                        Printed::whichever(args.json)
                    } else {
                        Printed::Nothing
                    };
                    return queue(&entry, &root(env)?, printed, stdout);
                }
            }
        }
    };
    let entry = entry(retrieval, harness, context, env);
    queue(&entry, &root(env)?, Printed::whichever(args.json), stdout)
}

fn nothing_queued(why: &str) {
    stderr::line(&format!("{}: nothing queued: {}", ABOUT.name, one_line(why, 1000)));
}

fn entry(retrieval: Retrieval, harness: Harness, context: Context, env: &Env) -> QueueEntry {
    QueueEntry { version: 1, timestamp: env.now(), harness, retrieval, context }
}

/// What is printed of an entry.
enum Printed {
    Path,
    Json,
    Nothing,
}

impl Printed {
    fn whichever(json: bool) -> Printed {
        if json { Printed::Json } else { Printed::Path }
    }
}

fn queue(entry: &QueueEntry, root: &Root, printed: Printed, stdout: &mut Stdout) -> Result<()> {
    let waiting = Journal::at(root).put(entry)?.waiting();
    match printed {
        Printed::Nothing => Ok(()),
        Printed::Path => stdout.line(&waiting.path.to_string_lossy()),
        Printed::Json => {
            let mut json = waiting.entry.json();
            json["id"] = json!(waiting.id);
            json["path"] = json!(waiting.path.to_string_lossy());
            stdout.json(&json)
        }
    }
}

/// Writes the note past the queue; what looks like a secret goes, as it would have on the way through the queue.
fn write_note(
    entry: QueueEntry,
    config: &memory::MemoryConfig,
    json: bool,
    env: &Env,
    stdout: &mut Stdout,
) -> Result<()> {
    let Retrieval::Inline { title, body, tags, scope, thread_id } = entry.retrieval else { return Ok(()) };
    let redactor = Redactor::of(&config.redact)?;
    let (title, body) = (redactor.cleaned(&title), redactor.cleaned(&body));
    let root = Root::at(&config.storage.root);
    let source = Source {
        harness: Some(entry.harness.to_string()),
        thread_id,
        repo: entry.context.repo,
        cwd: entry.context.cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
        other: Vec::new(),
    };
    let new = NewNote { title, summary: String::new(), tags, scope, body, sources: vec![source] };
    let note = NoteService::new(Topics::at(&root), env.now()).capture(new)?;
    let path = note.path.to_string_lossy();
    if !json {
        return stdout.line(&path);
    }
    let mut meta =
        serde_json::to_value(note.entry.meta()).map_err(|e| Error::io(format!("cannot write JSON: {e}")))?;
    meta["path"] = json!(path);
    stdout.json(&meta)
}

fn inline(note: Note, reporter: &Reporter) -> Result<Retrieval> {
    let body = match note.body {
        Body::Given(body) => body,
        Body::Stdin => {
            let terms = stdin::Terms {
                deadline: Deadline::after(PATIENCE),
                cap: CAP,
                typed: true,
                is_whole: |_| false,
                if_silent: "Give the body with --body TEXT if nothing is piped in",
                if_late: "pipe in a body that ends",
            };
            stdin::read(&terms, reporter)?.unwrap_or_default()
        }
    };
    let (title, tags) = (note.title, note.tags);
    Ok(Retrieval::Inline { title, body, tags, scope: note.scope, thread_id: note.thread_id })
}

/// The same faults, with the names of the flags instead of the entry's keys.
fn of_note(error: &Error) -> Error {
    let mut faults = error.faults().to_vec();
    for fault in &mut faults {
        if let Some(flag) = fault.path.strip_prefix("retrieval.") {
            fault.path = format!("--{flag}");
        }
    }
    let list: Vec<String> = faults.iter().map(Fault::to_string).collect();
    Error::usage(format!("not a note that can be kept: {}", list.join("; "))).with_faults(faults)
}

fn whole_entry(reporter: &Reporter) -> Result<QueueEntry> {
    let bytes = json_on_stdin(PATIENCE, true, reporter)?.unwrap_or_default();
    QueueEntry::parse(&bytes)
}

fn hooks_json(reporter: &Reporter) -> Result<Vec<u8>> {
    let missing = |what: &str| {
        Error::usage(format!("{what}; a hook's JSON is expected there"))
            .hint("let the program run this as its hook, or give --title and --body for a note")
    };
    match json_on_stdin(HOOK_PATIENCE, false, reporter)? {
        None => Err(missing("stdin is a terminal")),
        Some(bytes) if bytes.trim_ascii().is_empty() => Err(missing("stdin is empty")),
        Some(bytes) => Ok(bytes),
    }
}

/// One JSON object. Its end is enough: some programs leave a hook's stdin open.
fn json_on_stdin(patience: Duration, typed: bool, reporter: &Reporter) -> Result<Option<Vec<u8>>> {
    let terms = stdin::Terms {
        deadline: Deadline::after(patience),
        cap: CAP,
        typed,
        is_whole: |bytes| {
            bytes.trim_ascii_end().ends_with(b"}") && serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
        },
        if_silent: "A JSON object is expected there",
        if_late: "write one JSON object to it",
    };
    stdin::read_bytes(&terms, reporter)
}
