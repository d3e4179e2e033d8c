//! One call of the LLM command: counted before, its reply in a file of the batch that outlives us.

use crate::ground::cli::Progress;
use crate::ground::deadline::Deadline;
use crate::ground::error::{Error, Result};
use crate::ground::exec::{self, Fault, Job, What};
use crate::ground::file;
use crate::ground::text::{lossy, one_line};
use crate::memory::budget::Call;
use crate::memory::consolidate::Asked;
use crate::memory::consolidate::desk::{Desk, io};
use crate::memory::consolidate::reply::{self};
use crate::memory::consolidate::work::{Kind, Work};
use crate::store::batch::Batch;
use std::path::Path;

impl Desk<'_> {
    pub(crate) fn reply_name(work: &Work, is_repair: bool) -> String {
        format!("reply-{}{}.txt", work.next, if is_repair { "-repair" } else { "" })
    }

    /// Has something been paid for that is not used yet?
    pub(crate) fn has_reply(&self, work: &Work) -> Result<bool> {
        self.reply(work).map(|reply| reply.is_some())
    }

    /// The reply of the part under way; the repaired one if there is one.
    pub(crate) fn reply(&self, work: &Work) -> Result<Option<String>> {
        let batch = self.batch()?;
        for is_repair in [true, false] {
            let name = Desk::reply_name(work, is_repair);
            if batch.file(&name).exists() {
                return Ok(Some(lossy(batch.read(&name)?).0));
            }
        }
        Ok(None)
    }

    /// Launches the command. Its reply goes into a file of the batch, which outlives us.
    pub(crate) fn launch(
        &mut self,
        line: &str,
        prompt: String,
        work: &Work,
        is_repair: bool,
    ) -> Result<Asked> {
        let now = self.env.now();
        if let Err(spent) = self.budget.left(now)? {
            return Ok(Asked::Spent(spent));
        }
        let purpose = match (work.kind, is_repair) {
            (_, true) => "repair",
            (Kind::Dry, false) => "dry-run",
            (Kind::Run | Kind::Hand, false) => "ask",
        };
        let call =
            Call { program: "memory-consolidate", batch: &work.batch, purpose, prompt_bytes: prompt.len() };
        self.budget.start(call, now)?;
        let name = Desk::reply_name(work, is_repair);
        let path = self.batch()?.file(&name);
        let unfinished = self.batch()?.file(&format!("{name}.unfinished"));
        // A command that a killed run left behind may still write into the old one.
        match file::remove(&unfinished) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(io(e)),
            _ => {}
        }
        let reply = file::scratch(&unfinished).map_err(io)?;
        let empty = tempfile::tempdir().map_err(|e| Error::io(format!("no temporary directory: {e}")))?;
        let what =
            format!("asking about {} of {} ({} kB)", work.next + 1, work.parts.len(), prompt.len() >> 10);
        let progress = Progress::start(!self.is_quiet, what);
        let started = std::time::Instant::now();
        let cap = usize::try_from(self.config.llm.max_reply_bytes).unwrap_or(usize::MAX);
        let finished = exec::run(Job {
            what: What::Line(line),
            input: prompt.into_bytes(),
            dir: empty.path(),
            vars: self.vars(),
            without: Vec::new(),
            is_heard: true,
            stdout_file: Some(&reply),
            stdout_cap: cap,
            deadline: Deadline::after_seconds(self.config.llm.timeout_seconds),
            level: self.level,
        });
        drop(progress);
        let word = exec::first_word(line);
        let asked = match &finished {
            Err(Fault::NotStarted(e)) => {
                Asked::NotStarted(format!("the LLM command \"{word}\" cannot be started: {e}"))
            }
            Err(fault) => Asked::Failed(format!("the LLM command \"{word}\" {fault}")),
            Ok(done) if matches!(done.status.code(), Some(126 | 127)) => {
                let last = one_line(&self.redactor.redact(&done.last_line).text, 500);
                Asked::NotStarted(format!("the LLM command \"{word}\" cannot be started: {last}"))
            }
            Ok(done) if !done.status.success() => {
                let last = one_line(&self.redactor.redact(&done.last_line).text, 500);
                let colon = if last.is_empty() { "" } else { ": " };
                let how = exec::how_it_ended(done.status);
                Asked::Failed(format!("the LLM command \"{word}\" failed ({how}){colon}{last}"))
            }
            Ok(done) if done.stdout.trim_ascii().is_empty() => {
                Asked::Failed(format!("the LLM command \"{word}\" printed nothing"))
            }
            Ok(_) => Asked::Replied,
        };
        let bytes =
            reply.metadata().map_or(0, |metadata| usize::try_from(metadata.len()).unwrap_or(usize::MAX));
        let result = match &asked {
            Asked::Replied => "ok",
            Asked::Failed(why) | Asked::NotStarted(why) => why,
            Asked::Spent(_) => "spent",
        };
        self.budget.end(call, self.env.now(), started.elapsed(), bytes, result)?;
        if matches!(asked, Asked::Replied) {
            reply.sync_all().map_err(io)?;
            file::rename(&unfinished, &path).map_err(io)?;
        }
        Ok(asked)
    }

    /// A reply that a crash left: whole, though nobody took note of its end.
    pub(crate) fn take_up_unfinished(&self, work: &Work, is_repair: bool) -> Result<bool> {
        let batch = self.batch()?;
        let name = Desk::reply_name(work, is_repair);
        if batch.file(&name).exists() {
            return Ok(true);
        }
        let unfinished = batch.file(&format!("{name}.unfinished"));
        let is_whole = self.is_whole(&unfinished, work)?;
        if is_whole {
            file::rename(&unfinished, &batch.file(&name)).map_err(io)?;
        }
        Ok(is_whole)
    }

    /// Does a file hold a whole reply to the part under way? A command that outlived us may have filled it without end.
    fn is_whole(&self, unfinished: &Path, work: &Work) -> Result<bool> {
        match fs_err::metadata(unfinished) {
            Ok(known) if known.len() > self.config.llm.max_reply_bytes => return Ok(false),
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(io(e)),
        }
        let text = lossy(file::read(unfinished, self.config.llm.max_reply_bytes).map_err(io)?).0;
        Ok(reply::batch_of(&text).as_deref() == Some(&work.batch))
    }

    /// Has the command said something to the part under way that can be used?
    pub(crate) fn is_answered(&self, batch: &Batch, work: &Work) -> Result<bool> {
        let name = Desk::reply_name(work, false);
        Ok(batch.file(&name).exists() || self.is_whole(&batch.file(&format!("{name}.unfinished")), work)?)
    }
}
