//! What the two programs that ask a model have in common: one of them at a time on a store, a reply from outside, and
//! the way to it.

use crate::base::cli::Reporter;
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::text::lossy;
use crate::base::{file, stdin};
use crate::config::memory::{self, MemoryConfig};
use crate::memory::budget::CallBudget;
use crate::memory::call::Caller;
use crate::memory::redact::Redactor;
use crate::memory::reply::batch_of;
use crate::program::notes::piped_in;
use crate::provider::command::level;
use crate::store::batch::Batches;
use crate::store::place::Root;
use std::path::Path;
use std::time::Duration;

/// So long somebody who asks by hand waits for another run to end: two pipes meet for milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);
/// A reply in its batch that came while another run was at work.
const KEPT: &str = "reply-by-hand.txt";

pub(crate) const COMMAND_HINT: &str =
    "set llm.command (claude, codex, ollama, llm or a line for the shell); see: memory-config init";

/// A program that asks must not be what is asked.
fn not_inside_a_command(env: &Env) -> Result<()> {
    if env.os("AGENT_MEMORY_RUN").is_none() {
        return Ok(());
    }
    Err(Error::usage("this runs inside an LLM command of the memory programs (AGENT_MEMORY_RUN is set)")
        .hint("llm.command must not be a program that asks itself"))
}

/// What both begin with: the configuration, the store, a reply that somebody brings, and the lock of the one run.
pub(crate) struct Bench {
    pub(crate) config: MemoryConfig,
    pub(crate) redactor: Redactor,
    pub(crate) root: Root,
    pub(crate) reply: Option<String>,
    _alone: fs_err::File,
}

/// Who begins, and how.
pub(crate) struct Beginning<'a> {
    pub(crate) program: &'a str,
    pub(crate) config: Option<&'a Path>,
    /// Where the reply is that is to be carried out.
    pub(crate) apply: Option<&'a Path>,
    /// A person waits for it.
    pub(crate) is_by_hand: bool,
    pub(crate) batches: fn(&Root) -> Batches,
}

impl Bench {
    /// The inner error says who is at work on the store.
    pub(crate) fn begin(
        how: &Beginning,
        env: &Env,
        reporter: &Reporter,
    ) -> Result<std::result::Result<Bench, String>> {
        not_inside_a_command(env)?;
        let config = memory::load(how.config, env, reporter)?;
        let redactor = Redactor::of(&config.redact)?;
        let root = Root::at(&config.storage.root);
        // Read to its end before anything is locked: a model may still be writing it.
        let reply = how.apply.map(|from| reply(from, &config, reporter)).transpose()?;
        root.make()?;
        let patience = if how.is_by_hand { PATIENCE } else { Duration::ZERO };
        match (hold(how.program, &root, env, patience)?, how.apply.zip(reply.as_deref())) {
            (Ok(alone), _) => Ok(Ok(Bench { config, redactor, root, reply, _alone: alone })),
            (Err(other), None) => Ok(Err(format!("{other} is at work on this store"))),
            (Err(other), Some((from, reply))) => Err(Error::busy(format!(
                "{other} is at work on this store"
            ))
            .hint(keep(how.program, from, reply, &(how.batches)(&root))?)),
        }
    }

    /// What `program` asks with, within the caps.
    pub(crate) fn caller<'a>(&'a self, program: &'static str, env: &'a Env, is_quiet: bool) -> Caller<'a> {
        let llm = &self.config.llm;
        Caller {
            program,
            llm,
            env,
            redactor: &self.redactor,
            budget: CallBudget::of(&self.root, llm.max_calls_per_run, llm.max_calls_per_day),
            level: level(env),
            is_quiet,
        }
    }
}

/// The lock of the one run that may be at work; the error is who has it.
fn hold(
    program: &str,
    root: &Root,
    env: &Env,
    patience: Duration,
) -> Result<std::result::Result<fs_err::File, String>> {
    let path = root.run_lock();
    let holder = format!("{} (process {}) since {}", program, std::process::id(), env.now());
    let until = Deadline::after(patience);
    loop {
        match file::hold(&path, &holder)? {
            Err(_) if !until.passed() => std::thread::sleep(PAUSE),
            Err(other) if other.is_empty() => return Ok(Err("another run".to_owned())),
            Err(other) => return Ok(Err(other.trim().to_owned())),
            Ok(lock) => return Ok(Ok(lock)),
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
pub(crate) fn quoted(path: &Path) -> String {
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
