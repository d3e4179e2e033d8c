//! What the two programs that ask a model have in common: one of them at a time on a store, a reply from outside, and
//! the way to it.

use crate::base::cli::{Args, Context, Reporter};
use crate::base::command_line::quoted;
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::file::RunLock;
use crate::base::text::counted;
use crate::config::memory::{self, MemoryConfig};
use crate::memory::budget::CallBudget;
use crate::memory::pipeline::Question;
use crate::memory::pipeline::call::{Kind, RunEnv};
use crate::memory::pipeline::reply::batch_of;
use crate::memory::redact::Redactor;
use crate::memory::sync::copies::{self, TakenIn};
use crate::program::notes::{INSIDE, is_inside, read_text};
use crate::provider::command::level;
use crate::store::batch::Batches;
use crate::store::history::{self, Commit};
use crate::store::place::Root;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// So long somebody who asks by hand waits for another run to end: two pipes meet for milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);
/// A reply in its batch that came while another run was at work.
const KEPT: &str = "reply-by-hand.txt";

pub(super) const COMMAND_HINT: &str =
    "set llm.command (claude, codex, ollama, llm or a line for the shell); see: memory-config init";

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Run,
    DryRun,
    Prompt,
    Apply,
    Undo,
}

impl Mode {
    pub(super) fn of(args: &Args) -> Mode {
        let chosen = args.in_order().find_map(|(flag, _)| match flag {
            "dry-run" => Some(Mode::DryRun),
            "prompt" => Some(Mode::Prompt),
            "undo" => Some(Mode::Undo),
            _ => None,
        });
        // A path may be any bytes.
        chosen.unwrap_or(if args.has("apply") { Mode::Apply } else { Mode::Run })
    }

    fn kind(self) -> Kind {
        match self {
            Mode::Run | Mode::Undo => Kind::Run,
            Mode::DryRun => Kind::DryRun,
            Mode::Prompt | Mode::Apply => Kind::Hand,
        }
    }
}

/// What both work with: the configuration, the store, a reply that somebody brings, and the lock of the one run.
pub(super) struct Opened {
    pub(super) config: MemoryConfig,
    pub(super) redactor: Redactor,
    pub(super) root: Root,
    pub(super) reply: Option<String>,
    mode: Mode,
    program: &'static str,
    env: Env,
    reporter: Reporter,
    is_quiet: bool,
    _lock: fs_err::File,
}

/// `None`: another run is at work on the store, and nothing is to be done.
pub(super) fn open(
    args: &Args,
    mode: Mode,
    batches: fn(&Root) -> Batches,
    cx: &Context,
) -> Result<Option<Opened>> {
    // A program that asks must not be what is asked.
    if is_inside(&cx.env) {
        return Err(Error::usage(INSIDE).hint("llm.command must not be a program that asks itself"));
    }
    let config = memory::load(args.path("config"), &cx.env, &cx.reporter)?;
    let redactor = Redactor::of(&config.redact)?;
    let root = Root::open(&config.storage.root)?;
    // Read to its end before anything is locked: a model may still be writing it.
    let from = if mode == Mode::Apply { args.path("apply") } else { None };
    let reply = from.map(|from| reply(from, &config, &cx.reporter)).transpose()?;
    root.make()?;
    let patience = if matches!(mode, Mode::Run | Mode::DryRun) { Duration::ZERO } else { PATIENCE };
    let holder = format!("{} (process {}) since {}", cx.program, std::process::id(), cx.env.now());
    let busy = match file::hold_until(&root.run_lock(), &holder, Deadline::after(patience))? {
        RunLock::Acquired(_) if mode == Mode::DryRun && config.llm.command.is_none() => {
            let why = "this asks the LLM, and no LLM command is set";
            return Err(Error::config(why).hint(COMMAND_HINT));
        }
        RunLock::Acquired(_lock) => {
            if matches!(mode, Mode::Run | Mode::Apply)
                && let Err(why) = take_in_copies(&root, &config, cx)
            {
                // The next run tries again.
                cx.reporter.warn(&why.line());
            }
            return Ok(Some(Opened {
                config,
                redactor,
                root,
                reply,
                mode,
                program: cx.program,
                env: cx.env.clone(),
                reporter: cx.reporter,
                is_quiet: args.has("quiet"),
                _lock,
            }));
        }
        RunLock::HeldBy(other) => match other.trim() {
            "" => "another run is at work on this store".to_owned(),
            other => format!("{other} is at work on this store"),
        },
    };
    if mode == Mode::Undo {
        return Err(Error::busy(busy).hint("try again when it is done"));
    }
    if let (Some(from), Some(reply)) = (from, reply) {
        return Err(Error::busy(busy).hint(keep(cx.program, from, &reply, &batches(&root))?));
    }
    cx.reporter.warn(&format!("{busy}; nothing done"));
    Ok(None)
}

impl Opened {
    /// A run that asks within the caps.
    pub(super) fn run(&self) -> RunEnv<'_> {
        self.run_as(self.mode)
    }

    /// The same in another mode than the store was opened for.
    pub(super) fn run_as(&self, mode: Mode) -> RunEnv<'_> {
        let llm = &self.config.llm;
        RunEnv {
            program: self.program,
            config: &self.config,
            root: &self.root,
            env: &self.env,
            reporter: &self.reporter,
            redactor: &self.redactor,
            budget: CallBudget::of(&self.root, llm.max_calls_per_run, llm.max_calls_per_day),
            level: level(&self.env),
            is_quiet: self.is_quiet,
            kind: mode.kind(),
            batch: None,
        }
    }
}

/// The question, for a person or for a program; why there is none, for a person.
pub(super) fn print_question(question: Option<&Question>, why_none: &str, cx: &mut Context) -> Result<()> {
    if question.is_none() && !why_none.is_empty() {
        cx.reporter.warn(why_none);
    }
    match question {
        _ if cx.json => cx.stdout.json(&json!({
            "batch": question.map(|question| &question.batch),
            "part": question.map(|question| question.part.saturating_add(1)),
            "of": question.map(|question| question.of),
            "prompt": question.map(|question| &question.prompt),
        })),
        Some(question) => cx.stdout.text(&question.prompt),
        None => Ok(()),
    }
}

/// A reply is about one part of its batch.
pub(super) fn tell_parts_left(left: usize, is_quiet: bool, cx: &Context) {
    if left > 0 && !is_quiet {
        let parts = counted(left, "part is", "parts are");
        cx.reporter.warn(&format!("{parts} still to be asked about; go on with --prompt"));
    }
}

/// What a cloud or a person has put among the notes.
fn take_in_copies(root: &Root, config: &MemoryConfig, cx: &Context) -> Result<()> {
    let TakenIn { merged, said } = copies::take_in(root, &cx.env)?;
    said.iter().for_each(|said| cx.reporter.warn(said));
    if merged.is_empty() {
        return Ok(());
    }
    let message = format!("merge: {}", counted(merged.len(), "conflict copy", "conflict copies"));
    let commit = Commit::of(&config.storage, message, std::iter::empty(), merged.len());
    history::record(root, &config.storage, &commit, &cx.env)
}

/// A reply that cannot be carried out now, and may have been paid for, is not lost. The next step, to be told.
fn keep(program: &str, from: &Path, reply: &str, batches: &Batches) -> Result<String> {
    let path = match batch_of(reply).and_then(|id| batches.named(&id)) {
        _ if from != Path::new("-") => from.to_path_buf(),
        Some(batch) => {
            batch.write(KEPT, reply.as_bytes())?;
            batch.file(KEPT)
        }
        None => return Ok("nothing waits for this reply; see whether it names its batch".to_owned()),
    };
    Ok(format!("later: {program} --apply {}", quoted(&path.to_string_lossy())))
}

/// A reply that somebody brings, read to its end.
fn reply(from: &Path, config: &MemoryConfig, reporter: &Reporter) -> Result<String> {
    let text = read_text(from, config.llm.max_reply_bytes, reporter)?;
    if text.trim().is_empty() {
        return Err(Error::api("the reply is empty")
            .hint("the batch still waits for one: --prompt prints its question again"));
    }
    Ok(text)
}
