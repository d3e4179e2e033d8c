//! `memory-recall`: what a session here should know.
//!
//! By hand it prints the section for this place, or the notes that answer some words. As a hook it must never stand in
//! the way: it answers in time or not at all, and it does not fail.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, apart, flag, text, value};
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::sync::spawn;
use crate::base::{repository, stderr, stdin};
use crate::harness::shell::OWN_RUN;
use crate::memory::recall::{self, BYTES_A_TOKEN, Moment, READERS, Reader, Shown};
use crate::memory::search::{Index, Query};
use crate::memory::section::NoteCounts;
use crate::memory::section::here::{Around, Here, Known};
use crate::program::notes::{Listed, Store, place_here};
use crate::store::persistence::warn_of;
use crate::store::place::Root;
use serde::de::IgnoredAny;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

pub(super) const ABOUT: About = About {
    name: "memory-recall",
    caption: "print what a session here should know",
    usage: &[
        "memory-recall [--repo R] [--tokens N] [--json]",
        "memory-recall WORDS… [--repo R] [--limit N] [--tokens N] [--json]",
        "memory-recall --harness H < HOOK",
    ],
    commands: &[],
    flags: &[
        value("repo", "R", "for this repository (host/owner/name), not the current one"),
        value("limit", "N", "with WORDS: at most N notes (default 5)"),
        value("tokens", "N", "at most N tokens, four bytes each"),
        value("harness", "H", "answer a hook of this program: its JSON is on stdin"),
        flag("json", "JSON: the section, or one note a line"),
        value("config", "FILE", "use this configuration file"),
    ],
    more: "Without words it prints the section for this place: notes in full while there is room and a list of others, those of \
           the current repository and those that hold everywhere. With words it prints the notes that match them best. \
           Notes whose last day (until) is over, archived notes and waiting changes are never shown.\n\n\
           With --harness it is a hook. At the start of a session it gives the section, without the notes that the \
           program reads from a target of its own; at a prompt at most three notes that clearly match and that the \
           session has not had, what has changed of those that it has, or nothing. It always exits 0.\n\n    \
           memory-recall dev server port\n    \
           memory-recall --json deploy | memory-read -",
    sections: &[
        (
            "HOOKS",
            "H is amp, claude-code, codex, copilot, cursor, gemini, opencode, pi or qwen-code. memory-hooks(7) has the \
             settings of each program. The start of a session is SessionStart, also when the program has cleared or \
             compacted the session; a prompt is UserPromptSubmit, or BeforeAgent in Gemini CLI. Copilot CLI does not \
             name its events; they are told apart by their keys. JSON of another event gets no answer.\n\n\
             The answer is less than 9,500 bytes long, at a prompt at most 400 tokens. Claude Code, Codex, Gemini CLI \
             and Qwen Code get hookSpecificOutput.additionalContext, Copilot CLI additionalContext, Cursor \
             additional_context, the others plain text. The notes stand between two lines with a random mark: \
             memory-consolidate leaves everything between them out of a session.\n\n\
             A prompt of a session that has not had the section gets it first, except where a plugin asks (opencode, Amp, Pi). So it is if Gemini CLI has cleared or resumed \
             the session, since it does not use the answer of that hook, and if Copilot CLI has compacted it. A resumed session of Claude Code or Codex \
             keeps the section and is given what is new in it.",
        ),
        (
            "TROUBLE",
            "A hook that fails, or has no answer after 250 milliseconds, gives nothing and exits 0. It keeps the reason in \
             .agent-memory/recall.log, and memory-doctor tells it for seven days. AGENT_MEMORY_RECALL_MS sets another \
             time in milliseconds. Inside an LLM command of the memory programs (AGENT_MEMORY_RUN is set) a hook gives \
             nothing.",
        ),
    ],
};

/// The most notes, and tokens, that are printed by hand unless the flags say otherwise.
const NOTES: usize = 5;
const TOKENS: usize = 2000;
/// How long a program waits for its hook, in milliseconds.
const PATIENCE: u64 = 250;
/// The largest JSON of a hook, in bytes. A prompt may hold a pasted log.
const CAP: usize = 8 << 20;

#[derive(Debug, Default)]
struct Args {
    words: Vec<String>,
    repo: Option<String>,
    limit: Option<usize>,
    tokens: Option<usize>,
    harness: Option<Reader>,
    json: bool,
    config: Option<PathBuf>,
    /// What is wrong with the arguments of a hook.
    wrong: Option<Error>,
}

pub fn main() -> ExitCode {
    Program { about: &ABOUT, parse, run }.main()
}

fn parse(p: &mut Arguments) -> Result<Args> {
    let mut args = Args::default();
    let mut is_hook = false;
    match fill(p, &mut args, &mut is_hook).and_then(|()| args.check()) {
        Ok(()) => Ok(args),
        // Exit code 2 would block each prompt of the session.
        Err(error) if is_hook => Ok(Args { wrong: Some(error), ..args }),
        Err(error) => Err(error),
    }
}

fn fill(p: &mut Arguments, args: &mut Args, is_hook: &mut bool) -> Result<()> {
    use lexopt::prelude::*;
    while let Some(arg) = p.next()? {
        match arg {
            Long("harness") => {
                let name = p.text()?;
                *is_hook = true;
                args.harness = Some(Reader::named(&name).ok_or_else(|| unknown(&name))?);
            }
            Long("repo") => args.repo = Some(p.text()?),
            Long("limit") => args.limit = Some(p.count()?),
            Long("tokens") => args.tokens = Some(p.count()?),
            Long("json") => args.json = true,
            Long("config") => args.config = Some(p.path()?),
            Value(word) => args.words.push(text(word)?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    Ok(())
}

fn unknown(name: &str) -> Error {
    Error::usage(format!("option \"--harness\" takes {READERS}, got \"{name}\""))
}

impl Args {
    fn check(&self) -> Result<()> {
        if self.harness.is_some() {
            for (flag, is_given) in [
                ("WORDS", !self.words.is_empty()),
                ("--repo", self.repo.is_some()),
                ("--limit", self.limit.is_some()),
                ("--tokens", self.tokens.is_some()),
                ("--json", self.json),
            ] {
                if is_given {
                    return Err(apart("--harness", flag).hint("the hook's JSON says what is asked for"));
                }
            }
        }
        if self.limit.is_some() && self.words.is_empty() {
            return Err(Error::usage("option \"--limit\" needs words to search for")
                .hint("--tokens limits the section"));
        }
        Ok(())
    }
}

fn run(args: Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    if let Some(error) = &args.wrong {
        // Without the arguments it is not known where a trouble is kept.
        stderr::line(&format!("{}: nothing given: {}", ABOUT.name, error.line()));
        return Ok(ExitCode::SUCCESS);
    }
    match args.harness {
        Some(reader) => Ok(hook(reader, args.config, env, stdout)),
        None => by_hand(&args, env, stdout).map(|()| ExitCode::SUCCESS),
    }
}

fn by_hand(args: &Args, env: &Env, stdout: &mut Stdout) -> Result<()> {
    let reporter = Reporter::new(false);
    let store = Store::open(args.config.as_deref(), env, &reporter)?;
    let repo = match args.repo.as_deref() {
        Some(".") => Some(place_here(env)?.name),
        Some(repo) => Some(repo.to_owned()),
        None => repository::place_of(&env.current_dir()?).map(|repository| repository.name),
    };
    match args.words.is_empty() {
        true => section(args, &store, repo.as_deref(), env, &reporter, stdout),
        false => search(args, &store, repo.as_deref(), env, &reporter, stdout),
    }
}

fn section(
    args: &Args,
    store: &Store,
    repo: Option<&str>,
    env: &Env,
    reporter: &Reporter,
    stdout: &mut Stdout,
) -> Result<()> {
    let room = args.tokens.map(|tokens| tokens.saturating_mul(BYTES_A_TOKEN));
    let around = Around::of(&store.config, &Index::at(&store.root), repo, env.today())?;
    warn_of(around.broken(), reporter);
    let Here { section, counts: NoteCounts { hot, warm, cold }, .. } =
        around.section(&Known::default(), room);
    match args.json {
        true => {
            stdout.json(&json!({"repo": repo, "hot": hot, "warm": warm, "cold": cold, "section": section}))
        }
        false => stdout.line(&section),
    }
}

fn search(
    args: &Args,
    store: &Store,
    repo: Option<&str>,
    env: &Env,
    reporter: &Reporter,
    stdout: &mut Stdout,
) -> Result<()> {
    let index = Index::at(&store.root);
    let query = Query::parse(&args.words.join(" "));
    let most = args.limit.unwrap_or(NOTES);
    let findings = recall::matching(&index, &query, repo, env.today(), most)?;
    warn_of(&findings.broken, reporter);
    let tokens = args.tokens.unwrap_or(TOKENS);
    let mut shown = Shown::new(&store.root, tokens.saturating_mul(BYTES_A_TOKEN))?;
    for found in &findings.found {
        let Some(note) = found.view.note() else { continue };
        if shown.add("", note, found.line.as_deref()) && args.json {
            let waiting: Vec<_> = shown.waiting(&found.view.meta.id).cloned().collect();
            let body = String::from_utf8_lossy(note.entry.body()).into_owned();
            stdout.json(&Listed {
                change: !waiting.is_empty(),
                score: Some(found.score),
                line: found.line.as_deref(),
                body: Some(body),
                proposals: &waiting,
                ..Listed::of(&found.view.meta, &found.view.path)
            })?;
        }
    }
    if !args.json {
        stdout.text(&shown.text)?;
    }
    stdout.flush()?;
    // The answer does not depend on it, and a store that cannot be written to can be searched.
    let _ = index.keep_up();
    Ok(())
}

/// What the thread that makes the answer says.
enum Said {
    /// The store is known: a trouble can be kept there.
    Store(Root),
    Answer(Result<(String, bool)>),
}

/// Nothing that goes wrong here is the session's business.
fn hook(reader: Reader, config: Option<PathBuf>, env: &Env, stdout: &mut Stdout) -> ExitCode {
    if env.os(OWN_RUN).is_some() {
        return ExitCode::SUCCESS;
    }
    let patience = env.text("AGENT_MEMORY_RECALL_MS").and_then(|text| text.parse().ok()).unwrap_or(PATIENCE);
    let deadline = Deadline::after(Duration::from_millis(patience.clamp(1, 60_000)));
    let (sender, said) = channel();
    let (own, file, mut root) = (env.clone(), config.clone(), None);
    let thread = spawn(move || {
        let answer = answer(reader, file.as_deref(), &own, deadline, &sender);
        let _ = sender.send(Said::Answer(answer));
    });
    let answer = match thread {
        Err(e) => Err(Error::io(format!("no thread can be started: {e}"))),
        Ok(()) => loop {
            match said.recv_timeout(deadline.remaining()) {
                Ok(Said::Store(store)) => root = Some(store),
                Ok(Said::Answer(answer)) => break answer,
                Err(RecvTimeoutError::Timeout) => {
                    break Err(Error::io(format!("no answer after {patience} ms")));
                }
                Err(RecvTimeoutError::Disconnected) => break Err(Error::io("it ended without an answer")),
            }
        },
    };
    let answered = answer.and_then(|(text, is_start)| {
        stdout.text(&text)?;
        stdout.flush()?;
        Ok(is_start)
    });
    match answered {
        // Once a session, and when the answer is out.
        Ok(true) => {
            if let Some(root) = &root {
                recall::sweep(root);
                write_cache(root, config.as_deref());
            }
        }
        Ok(false) => {}
        Err(_) if stdout.is_broken() => {}
        Err(error) => {
            stderr::line(&format!("{}: nothing given: {}", ABOUT.name, error.line()));
            if let Some(root) = &root {
                let _ = recall::keep(root, reader.name(), &error.line(), env);
                write_cache(root, config.as_deref());
            }
        }
    }
    ExitCode::SUCCESS
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
    reader: Reader,
    config: Option<&Path>,
    env: &Env,
    deadline: Deadline,
    said: &Sender<Said>,
) -> Result<(String, bool)> {
    let reporter = Reporter::new(false);
    let store = Store::open(config, env, &reporter)?;
    let _ = said.send(Said::Store(store.root.clone()));
    let bytes = stdin::read_bytes(
        &stdin::StdinOptions {
            deadline,
            cap: CAP,
            typed: false,
            // Some programs leave stdin open for a hook.
            is_whole: |bytes| {
                bytes.trim_ascii_end().ends_with(b"}") && serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
            },
            if_silent: "A hook's JSON is expected there",
            if_late: "write one JSON object to it",
        },
        &reporter,
    )?;
    let missing =
        || Error::usage("a hook's JSON is expected on stdin").hint("let the program run this as its hook");
    let bytes = bytes.filter(|bytes| !bytes.trim_ascii().is_empty()).ok_or_else(missing)?;
    let moment = Moment { config: &store.config, root: &store.root, env, today: env.today(), deadline };
    recall::answer(reader, &bytes, &moment)
}
