//! One call of the LLM command: counted before, its reply in a file of the batch that outlives us. Both pipelines
//! ask this way.

use crate::base::cli::Progress;
use crate::base::command_line::first_word;
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::exec::{self, Fault, Job, What};
use crate::base::file;
use crate::base::text::{lossy, one_line};
use crate::config::memory::Llm;
use crate::memory::budget::{Allowance, Call, CallBudget, Spent};
use crate::memory::prompt;
use crate::memory::redact::Redactor;
use crate::memory::reply::batch_of;
use crate::provider::command::LEVEL;
use crate::store::batch::Batch;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;

/// So long a batch that a person has asked for waits for its reply.
pub(crate) const BY_HAND: SignedDuration = SignedDuration::from_hours(24);

/// Who asks the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// The program itself, through the configured command.
    Run,
    /// A person, with `--prompt` and `--apply`.
    Hand,
    /// The program, to see what would be written. Claims nothing.
    Dry,
}

/// What became of a call.
pub(crate) enum Asked {
    Replied,
    Spent(Spent),
    NotStarted(String),
    Failed(String),
}

/// Why there is no reply that can be used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Why {
    /// No call may be made now. Nobody's fault; the next run goes on.
    Spent(String),
    /// There is no command, or it cannot be started: counts against nothing that was to be asked about.
    NotStarted(String),
    /// The command failed.
    Agent(String),
    /// What it said cannot be used, not even when asked again.
    Reply(String),
}

impl Why {
    /// The second reply is no better than the first.
    pub(crate) fn faulty(faults: &[String]) -> Why {
        let faults = faults.join("; ");
        Why::Reply(format!("the reply cannot be used, and neither can a second: {faults}"))
    }
}

impl Asked {
    /// Why there is no reply, if there is none.
    pub(crate) fn why_none(self) -> Option<Why> {
        match self {
            Asked::Replied => None,
            Asked::Spent(spent) => Some(Why::Spent(spent.to_string())),
            Asked::NotStarted(why) => Some(Why::NotStarted(why)),
            Asked::Failed(why) => Some(Why::Agent(why)),
        }
    }
}

/// What every call of a run has in common.
pub(crate) struct Caller<'a> {
    /// Whose calls these are, in the ledger.
    pub(crate) program: &'static str,
    pub(crate) llm: &'a Llm,
    pub(crate) env: &'a Env,
    pub(crate) redactor: &'a Redactor,
    pub(crate) budget: CallBudget,
    /// How many commands of ours are above this process.
    pub(crate) level: u32,
    pub(crate) is_quiet: bool,
}

/// One question.
pub(crate) struct Question<'a> {
    pub(crate) batch: &'a Batch,
    /// Which part of the batch, from 0, and of how many.
    pub(crate) part: (usize, usize),
    pub(crate) is_repair: bool,
    /// A question for a plan that is only to be shown.
    pub(crate) is_dry: bool,
    pub(crate) prompt: String,
}

fn io(e: std::io::Error) -> Error {
    Error::io(e.to_string())
}

/// The batch that a run has begun.
pub(crate) fn under_way(batch: &Option<Batch>) -> Result<&Batch> {
    batch.as_ref().ok_or_else(|| Error::io("there is no batch"))
}

/// The file of a batch that holds the reply to a part.
pub(crate) fn reply_name(part: usize, is_repair: bool) -> String {
    format!("reply-{part}{}.txt", if is_repair { "-repair" } else { "" })
}

/// The file of a batch that holds the first prompt of a part.
fn prompt_name(part: usize) -> String {
    format!("prompt-{part}.txt")
}

/// The file of the reply to a part, if there is one; the repaired one before the first.
pub(crate) fn reply_path(batch: &Batch, part: usize) -> Option<PathBuf> {
    [true, false]
        .map(|is_repair| batch.file(&reply_name(part, is_repair)))
        .into_iter()
        .find(|path| path.exists())
}

/// That reply.
pub(crate) fn reply(batch: &Batch, part: usize) -> Result<Option<String>> {
    let Some(path) = reply_path(batch, part) else { return Ok(None) };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    batch.read(&name).map(|bytes| Some(lossy(bytes).0))
}

impl Caller<'_> {
    /// What tells our programs below that they run inside a command of ours.
    pub(crate) fn vars(&self) -> Vec<(&'static str, OsString)> {
        vec![("AGENT_MEMORY_RUN", "1".into()), (LEVEL, (self.level + 1).to_string().into())]
    }

    /// The question about a part once more, with what was wrong with the reply; `rules` say what one looks like.
    pub(crate) fn repair(
        &self,
        batch: &Batch,
        part: usize,
        rules: &str,
        faults: &[String],
    ) -> Result<String> {
        let first = lossy(batch.read(&prompt_name(part))?).0;
        let reply = reply(batch, part)?.unwrap_or_default();
        Ok(prompt::repair(&batch.id, rules, &first, &reply, faults, self.llm.max_prompt()))
    }

    /// Launches the command. Its reply goes into a file of the batch, which outlives us.
    pub(crate) fn launch(&self, question: Question) -> Result<Asked> {
        let Question { batch, part, is_repair, is_dry, prompt } = question;
        let Some(line) = self.llm.command_line() else {
            return Ok(Asked::NotStarted("no LLM command is configured".to_owned()));
        };
        let now = self.env.now();
        if let Allowance::Spent(spent) = self.budget.allowance(now)? {
            return Ok(Asked::Spent(spent));
        }
        if !is_repair {
            // Read again only where there is a reply, whose rename syncs the directory for both.
            batch.write_ahead(&prompt_name(part.0), prompt.as_bytes())?;
        }
        let purpose = match (is_repair, is_dry) {
            (true, _) => "repair",
            (false, true) => "dry-run",
            (false, false) => "ask",
        };
        let call = Call { program: self.program, batch: &batch.id, purpose, prompt_bytes: prompt.len() };
        self.budget.start(call, now)?;
        let name = reply_name(part.0, is_repair);
        let path = batch.file(&name);
        let unfinished = batch.file(&format!("{name}.unfinished"));
        let reply = file::scratch(&unfinished).map_err(io)?;
        let empty = tempfile::tempdir().map_err(|e| Error::io(format!("no temporary directory: {e}")))?;
        let what = format!("asking about {} of {} ({} kB)", part.0 + 1, part.1, prompt.len() >> 10);
        let progress = Progress::start(!self.is_quiet, what);
        let started = std::time::Instant::now();
        let finished = exec::run(Job {
            what: What::Line(line),
            input: prompt.into_bytes(),
            dir: empty.path(),
            vars: self.vars(),
            without: Vec::new(),
            is_heard: true,
            stdout_file: Some(&reply),
            stdout_cap: usize::try_from(self.llm.max_reply_bytes).unwrap_or(usize::MAX),
            deadline: Deadline::after_seconds(self.llm.timeout_seconds),
            level: self.level,
        });
        drop(progress);
        let word = first_word(line);
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
    pub(crate) fn take_up_unfinished(&self, batch: &Batch, part: usize, is_repair: bool) -> Result<bool> {
        let name = reply_name(part, is_repair);
        if batch.file(&name).exists() {
            return Ok(true);
        }
        let is_whole = self.is_whole(batch, &name)?;
        if is_whole {
            file::rename(&batch.file(&format!("{name}.unfinished")), &batch.file(&name)).map_err(io)?;
        }
        Ok(is_whole)
    }

    /// Does the unfinished file of a reply hold all of one? A command that outlived us may have filled it without
    /// end.
    fn is_whole(&self, batch: &Batch, name: &str) -> Result<bool> {
        let unfinished = batch.file(&format!("{name}.unfinished"));
        match fs_err::metadata(&unfinished) {
            Ok(known) if known.len() > self.llm.max_reply_bytes => return Ok(false),
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(io(e)),
        }
        let text = lossy(file::read(&unfinished, self.llm.max_reply_bytes).map_err(io)?).0;
        Ok(batch_of(&text).as_deref() == Some(&batch.id))
    }

    /// Has the command said something to a part that can be used?
    pub(crate) fn is_answered(&self, batch: &Batch, part: usize) -> Result<bool> {
        let name = reply_name(part, false);
        Ok(batch.file(&name).exists() || self.is_whole(batch, &name)?)
    }
}
