//! What the two programs that ask a model have in common: one of them at a time on a store, a reply from outside, and
//! the way to it.

use crate::base::cli::{Reporter, Stdout};
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::text::lossy;
use crate::base::{file, stdin};
use crate::config::memory::{self, MemoryConfig};
use crate::memory::budget::CallBudget;
use crate::memory::pipeline::Question;
use crate::memory::pipeline::call::Caller;
use crate::memory::pipeline::reply::batch_of;
use crate::memory::pipeline::runner::Run;
use crate::memory::pipeline::saved::Kind;
use crate::memory::redact::Redactor;
use crate::program::notes::piped_in;
use crate::provider::command::level;
use crate::store::batch::Batches;
use crate::store::place::Root;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// So long somebody who asks by hand waits for another run to end: two pipes meet for milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);
/// A reply in its batch that came while another run was at work.
const KEPT: &str = "reply-by-hand.txt";

pub(super) const COMMAND_HINT: &str =
    "set llm.command (claude, codex, ollama, llm or a line for the shell); see: memory-config init";

/// A program that asks must not be what is asked.
fn not_inside_a_command(env: &Env) -> Result<()> {
    if env.os("AGENT_MEMORY_RUN").is_none() {
        return Ok(());
    }
    Err(Error::usage("this runs inside an LLM command of the memory programs (AGENT_MEMORY_RUN is set)")
        .hint("llm.command must not be a program that asks itself"))
}

/// What both work with: the configuration, the store, a reply that somebody brings, and the lock of the one run.
pub(crate) struct Opened {
    pub(super) config: MemoryConfig,
    pub(super) redactor: Redactor,
    pub(super) root: Root,
    pub(super) reply: Option<String>,
    _lock: fs_err::File,
}

pub(crate) enum Opening {
    Opened(Box<Opened>),
    /// Another run is at work on the store; this says which.
    Busy(String),
}

/// Which program begins, and how.
pub(crate) struct Beginning<'a> {
    pub(super) program: &'a str,
    pub(super) config: Option<&'a Path>,
    /// Where the reply is that is to be carried out.
    pub(super) apply: Option<&'a Path>,
    /// A person waits for it.
    pub(super) is_by_hand: bool,
    pub(super) batches: fn(&Root) -> Batches,
}

pub(super) fn open(how: &Beginning, env: &Env, reporter: &Reporter) -> Result<Opening> {
    not_inside_a_command(env)?;
    let config = memory::load(how.config, env, reporter)?;
    let redactor = Redactor::of(&config.redact)?;
    let root = Root::at(&config.storage.root);
    // Read to its end before anything is locked: a model may still be writing it.
    let reply = how.apply.map(|from| reply(from, &config, reporter)).transpose()?;
    root.make()?;
    let patience = if how.is_by_hand { PATIENCE } else { Duration::ZERO };
    match (hold(how.program, &root, env, patience)?, how.apply.zip(reply.as_deref())) {
        (Held::Ours(lock), _) => {
            Ok(Opening::Opened(Box::new(Opened { config, redactor, root, reply, _lock: lock })))
        }
        (Held::By(other), None) => Ok(Opening::Busy(format!("{other} is at work on this store"))),
        (Held::By(other), Some((from, reply))) => Err(Error::busy(format!(
            "{other} is at work on this store"
        ))
        .hint(keep(how.program, from, reply, &(how.batches)(&root))?)),
    }
}

impl Opened {
    /// A run of `program` that asks within the caps; `kind`: who answers.
    pub(super) fn run<'a>(
        &'a self,
        program: &'static str,
        kind: Kind,
        is_quiet: bool,
        env: &'a Env,
        reporter: &'a Reporter,
    ) -> Run<'a> {
        let llm = &self.config.llm;
        let caller = Caller {
            program,
            llm,
            root: &self.root,
            env,
            reporter,
            redactor: &self.redactor,
            budget: CallBudget::of(&self.root, llm.max_calls_per_run, llm.max_calls_per_day),
            level: level(env),
            is_quiet,
        };
        Run {
            config: &self.config,
            root: &self.root,
            env,
            reporter,
            redactor: &self.redactor,
            caller,
            kind,
            batch: None,
        }
    }
}

/// The question, for a person or for a program.
pub(super) fn print_question(question: Option<&Question>, json: bool, stdout: &mut Stdout) -> Result<()> {
    match question {
        _ if json => stdout.json(&json!({
            "batch": question.map(|question| &question.batch),
            "part": question.map(|question| question.part.saturating_add(1)),
            "of": question.map(|question| question.of),
            "prompt": question.map(|question| &question.prompt),
        })),
        Some(question) => stdout.text(&question.prompt),
        None => Ok(()),
    }
}

enum Held {
    Ours(fs_err::File),
    By(String),
}

/// The lock of the one run that may be at work.
fn hold(program: &str, root: &Root, env: &Env, patience: Duration) -> Result<Held> {
    let path = root.run_lock();
    let holder = format!("{} (process {}) since {}", program, std::process::id(), env.now());
    let until = Deadline::after(patience);
    loop {
        match file::hold(&path, &holder)? {
            file::RunLock::HeldBy(_) if !until.passed() => std::thread::sleep(PAUSE),
            file::RunLock::HeldBy(other) if other.is_empty() => {
                return Ok(Held::By("another run".to_owned()));
            }
            file::RunLock::HeldBy(other) => return Ok(Held::By(other.trim().to_owned())),
            file::RunLock::Acquired(lock) => return Ok(Held::Ours(lock)),
        }
    }
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
    Ok(format!("later: {program} --apply {}", quoted(&path)))
}

/// A path as one word for the shell.
pub(super) fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    shlex::try_quote(&path).unwrap_or_else(|_| path.as_str().into()).into_owned()
}

/// A reply that somebody brings, read to its end.
fn reply(from: &Path, config: &MemoryConfig, reporter: &Reporter) -> Result<String> {
    let cap = config.llm.max_reply_bytes;
    let text = if from == Path::new("-") {
        stdin::read(&piped_in(usize::try_from(cap).unwrap_or(usize::MAX)), reporter)?.unwrap_or_default()
    } else {
        lossy(file::read(from, cap)?).0
    };
    if text.trim().is_empty() {
        return Err(Error::api("the reply is empty")
            .hint("the batch still waits for one: --prompt prints its question again"));
    }
    Ok(text)
}
