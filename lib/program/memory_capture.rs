//! `memory-capture`: put a note or a session into the queue.
//!
//! It runs at the end of every turn of every agent, so it is fast: it checks its input, writes one file, and leaves
//! reading the session to `memory-consolidate`. It takes no lock, and runs no LLM or other program.

mod forms;
mod past;

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, flag, text, value};
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, ErrorKind, Fault, Result};
use crate::base::text::one_line;
use crate::base::{repository, stderr, stdin};
use crate::config::memory::{self, Redact};
use crate::harness::name::Harness;
use crate::harness::payload::Ended;
use crate::harness::shell::AgentShell;
use crate::harness::spec::Capture;
use crate::memory::capture;
use crate::memory::record::{NoteText, unproven};
use crate::memory::redact::Redactor;
use crate::memory::section::refresh_after_change;
use crate::memory::service::{NewNote, NoteService};
use crate::program::memory_capture::forms::{
    Body, Given, Note, PastSessions, What, harness, scope, tags, thread_id,
};
use crate::program::notes::{print, print_waiting, warn_waiting};
use crate::store::entry::{By, Scope, Source};
use crate::store::journal::Journal;
use crate::store::journal::Waiting;
use crate::store::journal::entry::{QueueEntry, Retrieval};
use crate::store::place::Root;
use crate::store::proposal::{Draft, Op, Proposal};
use crate::store::topics::Topics;
use serde::de::IgnoredAny;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
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
    commands: &[],
    flags: &[
        value("title", "T", "the note's title, one line"),
        value("body", "B", "the note's text; \"-\" reads it from stdin"),
        value("tags", "a,b", "tags: topic__x or area__x; a plain x means topic__x"),
        value("scope", "S", "global (default), or repo: only for the current repository"),
        flag("direct", "write the note at once, without the queue"),
        value("harness", "H", "the program that the session or note comes from"),
        value("thread-id", "ID", "the session's id"),
        flag("entry", "read a queue entry (JSON, version 1) from stdin"),
        value("past", "PERIOD", "queue the sessions of this period: 30d, 12h, 2w or all"),
        flag("dry-run", "with --past: list the sessions, queue nothing"),
        flag("yes", "with --past: do not ask first"),
        flag("json", "print the entry as JSON, with its id and path"),
        value("config", "FILE", "use this configuration file"),
    ],
    more: "Prints the path of the queue entry, or of the note with --direct. A session that is already \
           waiting is not queued again; its entry is printed instead.\n\n\
           As a hook (third form; H is claude-code, codex, copilot, cursor, gemini or qwen-code) it acts only when a turn or a session ends, and ignores sub-agents. If it queues \
           nothing, it gives the reason on stderr. \
           Without --json only Claude Code's hook prints anything. A hook \
           never exits 2, which would make the agent go on; a wrong configuration exits 1. Codex's notify may \
           pass its JSON as the last argument.\n\n    \
           git log -1 --format=%B | memory-capture --title \"Why we pin\" --body -",
    sections: &[
        (
            "HOOKS",
            "A session is queued at these events. Claude Code: Stop, SessionEnd, PreCompact. Codex: Stop, SessionEnd, \
         PreCompact, Interrupt, and notify's agent-turn-complete. Gemini CLI: AfterAgent, SessionEnd, \
         PreCompress. Cursor: stop, sessionEnd. Copilot: agentStop, sessionEnd. Qwen Code: Stop, SessionEnd, \
         PreCompact. JSON without the name of an event counts as an end.\n\n\
         These keys of a hook's JSON are read (here Claude Code's): session_id, transcript_path, cwd, \
         hook_event_name.\n\n\
         Claude Code, Codex and Gemini CLI go on if a hook exits with code 2, and take the hook's stderr as their \
         next prompt. So a hook exits with 0 or 1. Codex treats any text on a hook's stdout as a failure, and \
         Gemini CLI shows it to you, so their hooks print nothing without --json.\n\n\
         Inside an LLM command of the memory programs (AGENT_MEMORY_RUN is set) nothing is queued. The reason is \
         printed on stderr, and with --json also on stdout: {\"queued\": false, \"reason\": …}.",
        ),
        (
            "PAST SESSIONS",
            "--past finds the sessions that programs left on this machine and that changed within the period: those of Claude \
             Code, Codex, Copilot CLI, Cursor, Gemini CLI, Pi and Qwen Code in their directories (CLAUDE_CONFIG_DIR, \
             CODEX_HOME, COPILOT_HOME, GEMINI_CLI_HOME, PI_CODING_AGENT_DIR, QWEN_RUNTIME_DIR and QWEN_HOME count), \
             opencode's by asking \"opencode db\", and Amp's threads where it keeps copies of them. With --harness only \
             that program's.\n\n\
             It leaves out what was consumed or is in the queue already, what failed for good, sub-agents, \
             sessions of LLM commands of these programs, and sessions in which nobody typed anything. \
             On stderr it says how many sessions, bytes and calls of the LLM that makes. On a terminal it asks \
             before it queues them, unless --yes is given. It prints the path of each entry, the oldest session \
             first; a second run finds nothing more.\n\n\
             memory-consolidate reads what is new before what is past, and the limits on calls hold. \
             --dry-run prints, for each session, when it changed, the program, its bytes, its repository and where it \
             is, separated by tabs. With --json it prints one object with sessions, bytes, calls and leftOut.",
        ),
        (
            "AGENTS",
            "In the shell of an agent, which is recognized by variables like CLAUDECODE, a note is the agent's, not yours: \
         its harness is the agent's name, and without --scope it is for the current repository. What it says for \
         all repositories waits for memory-review. Where with --direct a whole note waits, the path of the waiting \
         change is printed, and with --json {\"notes\": [], \"proposals\": […]}.",
        ),
    ],
};

/// The largest input on stdin, in bytes: the largest note with every character escaped.
const CAP: usize = 8 << 20;
/// For a hook's JSON, which a program writes at once.
const HOOK_PATIENCE: Duration = Duration::from_secs(10);
/// For a person who types, or a pipeline that waits for an LLM.
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
            Long("past") => given.past = Some(p.text()?.parse()?),
            Long("dry-run") => given.dry_run = true,
            Long("yes") => given.yes = true,
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
        // Exit code 2 would make the agent go on, with our message as its prompt.
        Err(e) if is_hook && e.kind() == ErrorKind::Config => Err(e.of_kind(ErrorKind::Io)),
        done => done.map(|()| ExitCode::SUCCESS),
    }
}

/// What becomes of the input.
enum Plan {
    /// With `quiet` the path is not printed.
    Queue {
        entry: QueueEntry,
        quiet: bool,
    },
    /// Write a note without the queue.
    Write(QueueEntry),
    Past(PastSessions),
    Nothing(String),
}

fn capture(args: Args, env: &Env, stdout: &mut Stdout) -> Result<()> {
    let reporter = Reporter::new(false);
    let config = || memory::load(args.config.as_deref(), env, &reporter);
    let plan = match env.os("AGENT_MEMORY_RUN") {
        None => {
            if let Some(harness) = args.what.harness() {
                expect_described(harness, "option \"--harness\"", config)?;
            }
            let plan = plan(args.what, env, &reporter)?;
            if let Plan::Queue { entry, .. } = &plan {
                expect_described(entry.harness, "not a queue entry: harness", config)?;
            }
            plan
        }
        Some(_) => Plan::Nothing(
            "this runs inside an LLM command of the memory programs (AGENT_MEMORY_RUN is set)".to_owned(),
        ),
    };
    match plan {
        Plan::Nothing(why) => nothing_queued(&why, args.json, stdout),
        Plan::Write(mut entry) => {
            let config = config()?;
            redact(&mut entry, &config.redact)?;
            write_note(entry, &config, args.json, env, &reporter, stdout)
        }
        Plan::Past(sessions) => past::queue_past(&sessions, &config()?, args.json, env, &reporter, stdout),
        Plan::Queue { mut entry, quiet } => {
            let config = config()?;
            redact(&mut entry, &config.redact)?;
            let waiting = queue(&entry, &config)?;
            match args.json {
                true => print_json(&waiting, stdout),
                false if quiet => Ok(()),
                false => stdout.line(&waiting.path.to_string_lossy()),
            }
        }
    }
}

/// A program of a name of its own must be in the configuration: otherwise the name is a typing error.
fn expect_described(
    harness: Harness,
    place: &str,
    config: impl Fn() -> Result<memory::MemoryConfig>,
) -> Result<()> {
    let name = harness.name();
    if Harness::named(name).is_some() || config()?.harnesses.contains_key(name) {
        return Ok(());
    }
    Err(Error::usage(format!("{place}: unknown program \"{name}\"")).hint(Harness::suggestion(name)))
}

fn plan(what: What, env: &Env, reporter: &Reporter) -> Result<Plan> {
    let here = || env.current_dir().ok();
    match what {
        What::Past(sessions) => Ok(Plan::Past(sessions)),
        What::Entry => {
            let mut entry = whole_entry(reporter)?;
            entry.harness = harness_here(entry.harness, env);
            Ok(Plan::Queue { entry, quiet: false })
        }
        What::Session { harness, thread_id } => {
            let entry = entry(Retrieval::by_id(harness, thread_id), harness, here(), env);
            Ok(Plan::Queue { entry, quiet: false })
        }
        What::File { harness, file } => match harness.spec().map(|spec| &spec.capture) {
            Some(Capture::File(session)) => {
                let ended = session(&here().unwrap_or_default().join(&file))?;
                Ok(plan_of(ended, harness, false, env))
            }
            _ => Err(Error::unexpected(&one_line(&file, 80))),
        },
        What::Note(note) => {
            let mut context = capture::context(here());
            let direct = note.direct;
            let harness = harness_here(note.harness, env);
            let scope = match note.scope {
                Some(scope) => scope,
                // What an agent has to say is about its repository, unless it says otherwise.
                None if harness != Harness::MANUAL && context.repo.is_some() => Scope::Repo,
                None => Scope::Global,
            };
            // A folder without git is where sessions learn something; a person's note is about more than that.
            if harness == Harness::MANUAL
                && scope == Scope::Global
                && here().is_none_or(|dir| repository::of(&dir).is_none())
            {
                context.repo = None;
            }
            let entry = QueueEntry { context, ..entry(inline(note, scope, reporter)?, harness, None, env) };
            entry.check().map_err(|error| of_note(&error))?;
            Ok(if direct { Plan::Write(entry) } else { Plan::Queue { entry, quiet: false } })
        }
        What::Hook { harness, payload } => {
            let Some(spec) = harness.spec() else {
                return Err(Error::usage(format!("a session of {harness} is captured by its id"))
                    .hint("add --thread-id ID"));
            };
            let is_argument = payload.is_some();
            let payload = match payload {
                Some(payload) => payload.into_bytes(),
                None => hooks_json(reporter)?,
            };
            // Codex treats text on a hook's stdout as a failure, and Gemini CLI shows it to the user.
            let quiet = !matches!(spec.capture, Capture::Hook { may_print: true, .. }) && !is_argument;
            Ok(plan_of(capture::hook_event(spec, &payload, env)?, harness, quiet, env))
        }
    }
}

fn plan_of(ended: Ended, harness: Harness, quiet: bool, env: &Env) -> Plan {
    match ended {
        Ended::Nothing(why) => Plan::Nothing(why),
        Ended::Session { path, id, cwd } => {
            let cwd = cwd.or_else(|| env.current_dir().ok());
            let entry = entry(Retrieval::in_file(harness, path, id), harness, cwd, env);
            Plan::Queue { entry, quiet }
        }
    }
}

/// In an agent's shell nothing is a person's.
fn harness_here(given: Harness, env: &Env) -> Harness {
    match AgentShell::of(env) {
        Some(shell) if given == Harness::MANUAL => Harness::named(shell.agent).unwrap_or(Harness::AGENT),
        _ => given,
    }
}

fn nothing_queued(why: &str, json: bool, stdout: &mut Stdout) -> Result<()> {
    let why = one_line(why, 1000);
    stderr::line(&format!("{}: nothing queued: {why}", ABOUT.name));
    if json { stdout.json(&json!({"queued": false, "reason": why})) } else { Ok(()) }
}

fn entry(retrieval: Retrieval, harness: Harness, cwd: Option<PathBuf>, env: &Env) -> QueueEntry {
    QueueEntry { version: 1, timestamp: env.now(), harness, retrieval, context: capture::context(cwd) }
}

/// Replaces the secrets in what a person or an agent wrote, and in the address of the repository. The queue keeps the
/// text, also after it was processed.
fn redact(entry: &mut QueueEntry, settings: &Redact) -> Result<()> {
    if let Retrieval::Inline { title, body, tags, .. } = &mut entry.retrieval {
        let redactor = Redactor::of(settings)?;
        (*title, *body) = (redactor.cleaned(title), redactor.cleaned(body));
        // A mark is no tag.
        tags.retain(|tag| redactor.cleaned(tag) == *tag);
    }
    // A session is queued whatever the user's own patterns are.
    if let Some(repo) = entry.context.repo.as_mut().filter(|_| settings.enabled) {
        *repo = Redactor::default().cleaned(repo);
    }
    Ok(())
}

/// The new entry in the queue, or the one about the same session that waits already.
fn queue(entry: &QueueEntry, config: &memory::MemoryConfig) -> Result<Waiting> {
    Ok(Journal::at(&Root::at(&config.storage.root)).put(entry)?.waiting())
}

fn print_json(waiting: &Waiting, stdout: &mut Stdout) -> Result<()> {
    let mut json = waiting.entry.json();
    json["id"] = json!(waiting.id);
    json["path"] = json!(waiting.path.to_string_lossy());
    stdout.json(&json)
}

/// Writes the note without the queue. What an agent writes holds
/// in its repository at most; the rest waits for a person.
fn write_note(
    entry: QueueEntry,
    config: &memory::MemoryConfig,
    json: bool,
    env: &Env,
    reporter: &Reporter,
    stdout: &mut Stdout,
) -> Result<()> {
    let Retrieval::Inline { title, body, tags, scope, thread_id } = entry.retrieval else { return Ok(()) };
    let root = Root::at(&config.storage.root);
    let source = Source {
        harness: Some(entry.harness.to_string()),
        thread_id,
        repo: entry.context.repo,
        cwd: entry.context.cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
        at: Some(entry.timestamp.to_string()),
        other: Vec::new(),
    };
    let service = NoteService::new(Topics::at(&root), env.now());
    let by = if entry.harness == Harness::MANUAL { By::Person } else { By::Agent };
    let is_here_alone = by == By::Person || scope == Scope::Repo;
    let text = NoteText { title: &title, summary: "", tags: &tags, body: &body };
    let unproven = if by == By::Person { Vec::new() } else { unproven(&text) };
    let waits_as_a_whole = !unproven.is_empty() || !is_here_alone && source.repo.is_none();
    let reach = (!is_here_alone).then(|| "An agent captured it for all repositories.".to_owned());
    let reasons: Vec<String> = reach.into_iter().chain(unproven).collect();
    let now = env.now().as_millisecond();
    if waits_as_a_whole {
        let (summary, sources) = (String::new(), vec![source.clone()]);
        let draft = Draft { title: title.clone(), summary, tags, scope, until: None, body, sources };
        let proposal = Proposal {
            entry: Some(draft),
            reasons,
            session: Some(source),
            ..Proposal::new(Op::Create, &title, by, now)
        };
        let waits = service.propose(proposal)?;
        refresh_after_change(config, &root, env.today(), reporter);
        return print_waiting(&waits, &root, json, stdout, reporter);
    }
    let scope = if is_here_alone { scope } else { Scope::Repo };
    let new = NewNote { title, summary: String::new(), tags, scope, body, by, sources: vec![source.clone()] };
    let note = service.capture(new)?;
    if !is_here_alone {
        let widened = Proposal::about(&note.entry, Op::Widen, None, by, now);
        let waits = service.propose(Proposal { reasons, session: Some(source), ..widened })?;
        warn_waiting(&waits, reporter);
    }
    refresh_after_change(config, &root, env.today(), reporter);
    print(&note, json, stdout)
}

fn inline(note: Note, scope: Scope, reporter: &Reporter) -> Result<Retrieval> {
    let body = match note.body {
        Body::Given(body) => body,
        Body::Stdin => {
            let terms = stdin::StdinOptions {
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
    Ok(Retrieval::Inline { title, body, tags, scope, thread_id: note.thread_id })
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

/// Reads one JSON object. Does not wait for the end of stdin, as some programs leave it open for a hook.
fn json_on_stdin(patience: Duration, typed: bool, reporter: &Reporter) -> Result<Option<Vec<u8>>> {
    let terms = stdin::StdinOptions {
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
