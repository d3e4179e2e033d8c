//! One call of the LLM command: counted before it is made, its reply in a file of the batch that outlives us.

use crate::base::cli::{Progress, Reporter};
use crate::base::command_line::{first_word, program};
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::exec::{self, CommandLine, ExecError, Finished, Invocation};
use crate::base::lookup::on_path;
use crate::base::text::{lossy, one_line};
use crate::base::{file, reach};
use crate::config::memory::MemoryConfig;
use crate::config::preset::LlmHome;
use crate::memory::budget::{CallBudget, LlmCall};
use crate::memory::hash::hash;
use crate::memory::pipeline::question::{TODAY, digits};
use crate::memory::pipeline::reply::batch_of;
use crate::memory::pipeline::{Answer, Failure, Question};
use crate::memory::redact::Redactor;
use crate::provider::command::LEVEL;
use crate::store::batch::Batch;
use crate::store::entry::EntryId;
use crate::store::place::Root;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a command that an earlier run has left behind is looked at.
const PAUSE: Duration = Duration::from_millis(20);
/// How long the replies of dry runs are kept.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// The largest file that says where one is, in bytes: it has the ids of a prompt.
const POINTER_CAP: u64 = 1 << 20;
/// What stands for a batch's own digits in the hash of a prompt.
const DIGITS: &str = "{batch digits}";

/// Who answers a batch's questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The configured command.
    Run,
    /// A person, with `--prompt` and `--apply`.
    Hand,
    /// The configured command, for a plan that is only shown. Claims nothing.
    DryRun,
}

/// What every run of a pipeline works with.
pub struct RunEnv<'a> {
    /// Whose calls these are, in the ledger.
    pub program: &'static str,
    pub config: &'a MemoryConfig,
    pub root: &'a Root,
    pub env: &'a Env,
    pub reporter: &'a Reporter,
    pub redactor: &'a Redactor,
    pub budget: CallBudget,
    /// How many commands of ours are above this process.
    pub level: u32,
    pub is_quiet: bool,
    /// Who answers the questions of batches that this run begins.
    pub kind: Kind,
    /// The batch that is under way, once there is one.
    pub batch: Option<Batch>,
}

impl RunEnv<'_> {
    pub fn batch(&self) -> Result<&Batch> {
        self.batch.as_ref().ok_or_else(|| Error::io("no batch is under way"))
    }

    pub fn is_dry(&self) -> bool {
        self.kind == Kind::DryRun
    }

    /// Which LLM command this is: its line, and the files that it names. Where any of that is another, an earlier failure
    /// says nothing.
    pub fn asked(&self) -> String {
        let line = self.config.llm.command_line().unwrap_or_default();
        let words = shlex::split(line).unwrap_or_default();
        let words = words.into_iter().map(|word| self.env.expand(&word));
        let program =
            program(line).and_then(|program| on_path(self.env.expand(&program).as_os_str(), self.env));
        let mut asked = line.to_owned();
        for path in program.into_iter().chain(words.filter(|word| word.is_absolute())) {
            let known = reach::within(&path, |path| {
                // A directory changes with every file in it.
                let file = path.metadata().ok().filter(|there| there.is_file())?;
                Some((file.len(), file.modified().ok()))
            });
            if let Ok(Some(known)) = known {
                asked += &format!("\0{}\0{known:?}", path.display());
            }
        }
        hash(asked)
    }

    /// What tells our programs below that they run inside a command of ours.
    pub fn vars(&self) -> Vec<(&'static str, OsString)> {
        vec![("AGENT_MEMORY_RUN", "1".into()), (LEVEL, (self.level + 1).to_string().into())]
    }

    /// Asks, unless the batch holds the reply already, a dry run was given it, or a command that an earlier run started
    /// is still at work on it. The error is ours: a file that cannot be written.
    pub(super) fn ask(&self, question: &Question) -> Result<Answer> {
        let (batch, name) = (self.batch()?, question.reply_name());
        if !self.is_there(batch, &name)? {
            let (pointer, ids) = self.pointer(question);
            if let Some(reply) = self.given_before(batch, &pointer, &ids)? {
                batch.write(&name, reply.as_bytes())?;
                // A reply that turns out to be of no use must not stand in the way of a better one.
                if !self.is_dry() {
                    file::remove(&pointer)?;
                }
                return Ok(Answer::Reply(reply));
            }
            if self.is_dry() {
                file::make_private_dir(&self.pointers())?;
                let to = format!("{}/{name}\n{}", batch.id, ids.join(" "));
                file::install(&pointer, to.as_bytes(), 0o600)?;
            }
            if let Some(failure) = self.launch(batch, question)? {
                return Ok(Answer::Failed(failure));
            }
        }
        read(&batch.file(&name)).map(Answer::Reply)
    }

    /// What a dry run was answered about the same material, if its batch still has it. The ids that it gave are those of
    /// this run then.
    fn given_before(&self, batch: &Batch, pointer: &Path, ids: &[&str]) -> Result<Option<String>> {
        let Ok(to) = file::read(pointer, POINTER_CAP) else { return Ok(None) };
        let to = lossy(to).0;
        let (to, theirs) = to.split_once('\n').unwrap_or((&to, ""));
        let ours: HashMap<&str, &str> = theirs.split(' ').zip(ids.iter().copied()).collect();
        let (id, name) = to.split_once('/').unwrap_or_default();
        let theirs = batch.sibling(id).filter(|theirs| is_reply_name(name) && theirs.id != batch.id);
        let Some(theirs) = theirs else { return Ok(None) };
        if !self.is_there(&theirs, name)? {
            return Ok(None);
        }
        let reply = read(&theirs.file(name))?;
        let reply = with_ids(&reply, |id| ours.get(id).copied().unwrap_or(id).to_owned());
        Ok(Some(reply.replace(digits(&theirs.id), digits(&batch.id))))
    }

    /// Forgets the replies of dry runs that are too old to be used, and what a killed one left half written.
    pub(super) fn sweep(&self) {
        file::sweep_dir(&self.pointers(), "", Duration::ZERO);
        let Ok(entries) = fs_err::read_dir(self.pointers()) else { return };
        for entry in entries.filter_map(std::io::Result::ok) {
            let modified = entry.metadata().and_then(|known| known.modified());
            if modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > KEPT_FOR)) {
                let _ = file::remove(&entry.path());
            }
        }
    }

    /// Where it is remembered which batch of a dry run holds the reply about which material.
    fn pointers(&self) -> PathBuf {
        self.root.state().join("replies")
    }

    /// The file that says so for what this prompt shows, whichever batch asks, on whichever day, and whatever ids its
    /// earlier parts gave; and the ids in the prompt, in order.
    fn pointer<'q>(&self, question: &'q Question) -> (PathBuf, Vec<&'q str>) {
        let (before, after) =
            question.prompt.split_once(&format!("\n{TODAY}")).unwrap_or((&question.prompt, ""));
        let after = after.split_once('\n').map_or("", |(_, after)| after);
        let mut ids = Vec::new();
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        for id in [before, after].into_iter().flat_map(ids_in).map(|(_, id)| id) {
            numbers.entry(id).or_insert_with(|| {
                ids.push(id);
                ids.len()
            });
        }
        let shown = [before, after].map(|text| {
            let text =
                with_ids(text, |id| format!("{{id {}}}", numbers.get(id).copied().unwrap_or_default()));
            text.replace(digits(&question.batch), DIGITS)
        });
        let command = self.config.llm.command_line().unwrap_or_default();
        (self.pointers().join(hash(format!("{command}\0{}", shown.join("\0")))), ids)
    }

    /// Is the reply in this file of the batch? A crash may have left it whole, with nobody to take note of its end.
    pub(super) fn is_there(&self, batch: &Batch, name: &str) -> Result<bool> {
        let (path, unfinished) = (batch.file(name), unfinished(batch, name));
        if file::exists(&path)? {
            return Ok(true);
        }
        if !file::exists(&unfinished)? {
            return Ok(false);
        }
        self.await_orphan(&unfinished)?;
        let is_whole = match fs_err::metadata(&unfinished)?.len() {
            // A command that outlived us may have written without end.
            length if length > self.config.llm.max_reply_bytes => false,
            _ => batch_of(&read(&unfinished)?).as_deref() == Some(&batch.id),
        };
        if is_whole {
            file::rename(&unfinished, &path)?;
        }
        Ok(is_whole)
    }

    /// Waits for the command of a run that was killed: it holds the lock on the file that it writes to. Asking again
    /// meanwhile would pay twice.
    fn await_orphan(&self, unfinished: &Path) -> Result<()> {
        let deadline = Deadline::after_seconds(self.config.llm.timeout_seconds);
        let file = fs_err::File::open(unfinished)?;
        let mut progress = None;
        loop {
            match file.file().try_lock_shared() {
                Ok(()) => return Ok(()),
                // It writes without end; what it says is of no use.
                Err(_) if file.metadata()?.len() > self.config.llm.max_reply_bytes => return Ok(()),
                Err(std::fs::TryLockError::WouldBlock) if !deadline.passed() => {
                    let what = "waiting for the LLM command that an earlier run started";
                    progress.get_or_insert_with(|| Progress::start(!self.is_quiet, what.to_owned()));
                    std::thread::sleep(PAUSE);
                }
                Err(std::fs::TryLockError::WouldBlock) => {
                    self.reporter
                        .warn("the LLM command of an earlier run is still running after llm.timeoutSeconds; asking again");
                    return Ok(());
                }
                Err(std::fs::TryLockError::Error(e)) => return Err(not_locked(unfinished, e)),
            }
        }
    }

    /// Launches the command. Its reply goes into a file of the batch. `Some`: why there is none.
    fn launch(&self, batch: &Batch, question: &Question) -> Result<Option<Failure>> {
        let Some(line) = self.config.llm.command_line() else { return Ok(Some(Failure::NoCommand)) };
        let now = self.env.now();
        if let Some(spent) = self.budget.spent(now)? {
            return Ok(Some(Failure::Spent(spent)));
        }
        let home = match LlmHome::of(line, self.env) {
            Ok(home) => home,
            Err(e) => return Ok(Some(Failure::NotStarted(e.to_string()))),
        };
        let purpose = match (question.is_repair(), self.is_dry()) {
            (true, _) => "repair",
            (false, true) => "dry-run",
            (false, false) => "ask",
        };
        let call =
            LlmCall { program: self.program, batch: &batch.id, purpose, prompt_bytes: question.prompt.len() };
        self.budget.start(call, now)?;
        let name = question.reply_name();
        let unfinished = unfinished(batch, &name);
        let reply = file::scratch(&unfinished)?;
        // The command inherits the lock with its stdout, and holds it for as long as it runs.
        reply.file().lock().map_err(|e| not_locked(&unfinished, e))?;
        let empty = exec::private_dir().map_err(|e| Error::io(format!("no temporary directory: {e}")))?;
        let dir = home.as_ref().map_or(empty.path(), |home| &home.work);
        let (number, kb) = (question.part.saturating_add(1), question.prompt.len() >> 10);
        let what = format!("asking about {number} of {} ({kb} kB)", question.of);
        let progress = Progress::start(!self.is_quiet, what);
        let started = std::time::Instant::now();
        let clean = |stderr: &str| self.redactor.redact(stderr).text.into_owned();
        let cap = usize::try_from(self.config.llm.max_reply_bytes).unwrap_or(usize::MAX);
        let deadline = Deadline::after_seconds(self.config.llm.timeout_seconds);
        let finished = exec::run(Invocation {
            input: question.prompt.clone().into_bytes(),
            vars: self.vars().into_iter().chain(home.iter().flat_map(|home| home.vars.clone())).collect(),
            stdout_file: Some(&reply),
            explain: Some(&clean),
            level: self.level,
            ..Invocation::new(CommandLine::Shell(line), dir, cap, deadline)
        });
        drop(progress);
        let failure = self.failure(&first_word(line), &finished);
        let bytes =
            reply.metadata().map_or(0, |metadata| usize::try_from(metadata.len()).unwrap_or(usize::MAX));
        let result = failure.as_ref().map_or_else(|| "ok".to_owned(), ToString::to_string);
        self.budget.end(call, self.env.now(), started.elapsed(), bytes, &result)?;
        if failure.is_none() {
            reply.sync_all()?;
            file::rename(&unfinished, &batch.file(&name))?;
        }
        Ok(failure)
    }

    /// Why there is no reply, if there is none.
    fn failure(&self, word: &str, finished: &std::result::Result<Finished, ExecError>) -> Option<Failure> {
        let command = format!("the LLM command \"{word}\"");
        let not_started = |why: &str| Failure::NotStarted(format!("{command} cannot be started: {why}"));
        let done = match finished {
            Err(ExecError::NotStarted(e)) => return Some(not_started(&e.to_string())),
            Err(fault) => return Some(Failure::Command(format!("{command} {fault}"))),
            Ok(done) => done,
        };
        let last = || one_line(&self.redactor.redact(&done.last_line).text, 500);
        // The shell ends with 2 where a quote is not closed.
        let is_unclosed = || self.config.llm.command_line().is_some_and(|line| shlex::split(line).is_none());
        match done.status.code() {
            Some(126 | 127) => Some(not_started(&last())),
            Some(2) if is_unclosed() => Some(not_started(&last())),
            _ if !done.status.success() => {
                let (how, last) = (exec::how_it_ended(done.status), last());
                let colon = if last.is_empty() { "" } else { ": " };
                Some(Failure::Command(format!("{command} failed ({how}){colon}{last}")))
            }
            _ if done.stdout.trim_ascii().is_empty() => {
                Some(Failure::Command(format!("{command} printed nothing")))
            }
            _ => None,
        }
    }
}

fn unfinished(batch: &Batch, name: &str) -> PathBuf {
    batch.file(&format!("{name}.unfinished"))
}

fn not_locked(path: &Path, error: std::io::Error) -> Error {
    Error::io(format!("cannot lock \"{}\": {error}", path.display())).because(error)
}

fn read(path: &Path) -> Result<String> {
    Ok(lossy(file::read(path, u64::MAX)?).0)
}

/// A name that [`Question::reply_name`] gives: nothing else of a batch is read as a reply.
fn is_reply_name(name: &str) -> bool {
    let rest = name.strip_prefix("reply-").and_then(|rest| rest.strip_suffix(".txt")).unwrap_or_default();
    let rest = rest.strip_suffix("-repair").unwrap_or(rest);
    let number = rest.strip_suffix("-want").unwrap_or(rest);
    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

/// The ids of notes and of proposals in a text, and where each begins. A part of a longer word counts: it is the same in
/// every prompt.
fn ids_in(text: &str) -> impl Iterator<Item = (usize, &str)> {
    memchr::memmem::find_iter(text.as_bytes(), "__").filter_map(|at| {
        let end = at + "__".len() + 6;
        EntryId::of_digits(text.get(at + "__".len()..end)?)?;
        let prefix = ["id", "p"].into_iter().find(|prefix| text[..at].ends_with(prefix))?;
        text.get(at - prefix.len()..end).map(|id| (at - prefix.len(), id))
    })
}

/// The text with something else in the place of each id of a note or a proposal.
pub fn with_ids(text: &str, other: impl Fn(&str) -> String) -> String {
    let (mut replaced, mut from) = (String::with_capacity(text.len()), 0);
    for (at, id) in ids_in(text) {
        replaced.push_str(&text[from..at]);
        replaced.push_str(&other(id));
        from = at + id.len();
    }
    replaced + &text[from..]
}
