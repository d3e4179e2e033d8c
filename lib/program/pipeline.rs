//! What the two programs that ask a model have in common: one of them at a time on a store, a reply from outside, and
//! the way to it.

use crate::config::memory::MemoryConfig;
use crate::ground::cli::Notes;
use crate::ground::deadline::Deadline;
use crate::ground::env::Env;
use crate::ground::error::{Error, Result};
use crate::ground::text::lossy;
use crate::ground::{file, stdin};
use crate::memory::budget::Budget;
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
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);
/// A reply in its batch that came while another run was at work.
const KEPT: &str = "reply-by-hand.txt";

pub(crate) const COMMAND_HINT: &str =
    "set llm.command (claude, codex, ollama, llm or a line for the shell); see: memory-config init";

/// A program that asks must not be what is asked.
pub(crate) fn not_inside_a_command(env: &Env) -> Result<()> {
    if env.os("AGENT_MEMORY_RUN").is_none() {
        return Ok(());
    }
    Err(Error::usage("this runs inside an LLM command of the memory programs (AGENT_MEMORY_RUN is set)")
        .hint("llm.command must not be a program that asks itself"))
}

/// What `program` asks with, within the caps.
pub(crate) fn caller<'a>(
    program: &'static str,
    config: &'a MemoryConfig,
    root: &Root,
    env: &'a Env,
    redactor: &'a Redactor,
    is_quiet: bool,
) -> Caller<'a> {
    Caller {
        program,
        llm: &config.llm,
        env,
        redactor,
        budget: Budget::of(root, config.llm.max_calls_per_run, config.llm.max_calls_per_day),
        level: level(env),
        is_quiet,
    }
}

/// The lock of the one run that may be at work; the error is who has it.
pub(crate) fn hold(
    program: &str,
    root: &Root,
    env: &Env,
    patience: Duration,
) -> Result<std::result::Result<fs_err::File, String>> {
    let path = root.run_lock();
    let holder = format!("{} (process {}) since {}", program, std::process::id(), env.now());
    let until = Deadline::after(patience);
    loop {
        match file::hold(&path, &holder).map_err(|e| Error::io(e.to_string()))? {
            Err(_) if !until.passed() => std::thread::sleep(PAUSE),
            Err(other) if other.is_empty() => return Ok(Err("another run".to_owned())),
            Err(other) => return Ok(Err(other.trim().to_owned())),
            Ok(lock) => return Ok(Ok(lock)),
        }
    }
}

/// A reply that cannot be carried out now, and may have been paid for, is not lost. The next step, to be told.
pub(crate) fn keep(program: &str, from: &Path, reply: &str, batches: &Batches) -> Result<String> {
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
pub(crate) fn reply(from: &Path, config: &MemoryConfig, notes: &Notes) -> Result<String> {
    let cap = config.llm.max_reply_bytes;
    let text = if from == Path::new("-") {
        stdin::read(&piped_in(usize::try_from(cap).unwrap_or(usize::MAX)), notes)?.unwrap_or_default()
    } else {
        lossy(file::read(from, cap).map_err(|e| Error::io(e.to_string()))?).0
    };
    if text.trim().is_empty() {
        return Err(Error::api("the reply is empty").hint("the batch still waits for one; ask again"));
    }
    Ok(text)
}
