//! One entry's history: from the harness's own form to text that a model may see, in a file, turn by turn. Memory
//! does not grow with it.

use crate::base::deadline::Deadline;
use crate::base::error::{Error, Result};
use crate::base::exec::{self, CommandLine, Invocation};
use crate::base::text::{border, counted, one_line, without_controls};
use crate::base::{file, reach};
use crate::harness;
use crate::harness::document::{MEMORY_FILE, PLAIN};
use crate::harness::source::LINE_CAP;
use crate::harness::spec::{Format, Spec};
use crate::harness::turn::{Role, SessionReport, Turn};
use crate::harness::turns::TURNS;
use crate::memory::consolidate::history::{History, HistoryWriter, history_name};
use crate::memory::consolidate::output::{Facts, Outputs};
use crate::memory::consolidate::passage::Passage;
use crate::memory::consolidate::ran::Ran;
use crate::memory::consolidate::work::{PromptRoom, Verdict};
use crate::memory::hash::hash;
use crate::memory::outside::{Places, Provenance, Tracker};
use crate::memory::pipeline::call::RunEnv;
use crate::store::batch::bears_an_id;
use crate::store::journal::Journal;
use crate::store::journal::entry::{Harness, QueueEntry, Retrieval};
use crate::store::ledger::Sessions;
use std::collections::BTreeSet;
use std::io::Read;
use std::ops::Deref;
use std::panic::AssertUnwindSafe;
use std::path::Path;

/// The largest transcript that a command may print, in bytes.
const COMMAND_CAP: usize = 256 << 20;
/// How long such a command may take, in seconds.
const COMMAND_PATIENCE: u64 = 120;

/// How much of a turn is searched for secrets together with the next one, in bytes.
const CARRIED: usize = 400;

/// A longer turn is cut into passages, in bytes.
const LONGEST: usize = 16 << 10;

pub(super) enum Gathered {
    History(History),
    /// There is nothing to ask about, or it cannot be read.
    Nothing(Verdict),
}

pub(super) struct Gatherer<'a> {
    pub(super) run: &'a RunEnv<'a>,
    pub(super) sessions: &'a Sessions,
    pub(super) room: PromptRoom,
    /// The facts of the notes that may be known in these sessions, looked up when the first output needs them.
    pub(super) facts: &'a dyn Deref<Target = Facts>,
}

impl Gatherer<'_> {
    /// Reads the history of `entry` into the batch. An error is ours, and no entry's: the store cannot be written.
    pub(super) fn gather(&self, entry: &QueueEntry, queue_id: &str) -> Result<Gathered> {
        let batch = self.run.batch()?;
        let raw = batch.file(&format!("{queue_id}.raw"));
        let spec = entry.retrieval.spec();
        let (format, path) = match &entry.retrieval {
            Retrieval::Inline { title, body, .. } => {
                // Of the person, or, captured in an agent's shell, of that agent.
                let role = if is_persons(entry) { Role::User } else { Role::Assistant };
                let text = self.run.redactor.cleaned(&without_controls(&format!("{title}\n\n{body}")));
                let hash = hash(&text);
                let mut writer = self.writer(queue_id)?;
                let is_typed = role == Role::User;
                let note = Passage { role, at: Some(entry.timestamp), text, is_typed, ..Passage::default() };
                writer.history.is_note = true;
                writer.turn(note, hash, 0)?;
                return Ok(Gathered::History(writer.finish()?));
            }
            Retrieval::AmpThread { thread_id }
            | Retrieval::OpencodeSession { thread_id }
            | Retrieval::ReadCommand { thread_id } => {
                let program = spec.map_or(entry.harness, Harness::of);
                if let Some(why) = self.run_read_command(program, thread_id, &raw)? {
                    return Ok(unreadable(&why));
                }
                (spec.map_or_else(|| printed_format(&raw), |spec| Ok(&spec.format))?, raw.clone())
            }
            Retrieval::Transcript { path, .. } | Retrieval::CursorSession { session_path: path } => {
                let Some(spec) = spec else {
                    let why = Error::io(format!("unknown transcript format: {}", entry.harness));
                    return Ok(unreadable(&why));
                };
                (&spec.format, path.clone())
            }
            Retrieval::File { path } => (&PLAIN, path.clone()),
            // The program has removed or renamed it meanwhile.
            Retrieval::MemoryFile { path } if is_gone(path) => return Ok(nothing("the file is gone")),
            Retrieval::MemoryFile { path } => (&MEMORY_FILE, path.clone()),
        };
        let mut gathered = self.read(format, &path, entry, queue_id);
        if let (Ok(Gathered::Nothing(Verdict::Failed(why))), Retrieval::ReadCommand { thread_id }) =
            (&mut gathered, &entry.retrieval)
        {
            // The file is ours, and gone when the message is read.
            let what = why.replace(&format!("\"{}\"", raw.display()), "what its command printed");
            *why = format!("the session {thread_id} of {}: {what}", entry.harness);
        }
        // Nothing of a session lies about unredacted.
        if raw.exists() {
            file::remove(&raw)?;
        }
        gathered
    }

    /// Has the harness print a session. `Some`: why it could not; the error is ours, and no session's.
    fn run_read_command(&self, harness: Harness, thread_id: &str, into: &Path) -> Result<Option<Error>> {
        let command =
            self.run.config.harnesses.get(harness.name()).map_or("", |known| known.read_command.as_str());
        let words = shlex::split(command).unwrap_or_default();
        let words: Vec<String> = words.iter().map(|word| word.replace("{threadId}", thread_id)).collect();
        let failed = |why: String| {
            Error::io(format!("the session {thread_id} of {harness} cannot be read: {why}"))
                .hint(format!("see harnesses.{harness}.readCommand in: memory-config show"))
        };
        let Some(program) = words.first() else {
            return Ok(Some(failed("no command is configured".to_owned())));
        };
        let file = file::scratch(into)?;
        let deadline = Deadline::after_seconds(COMMAND_PATIENCE);
        let finished = exec::run(Invocation {
            vars: self.run.vars(),
            stdout_file: Some(&file),
            ..Invocation::new(CommandLine::Words(&words), &self.run.batch()?.dir, COMMAND_CAP, deadline)
        });
        Ok(match finished {
            Ok(finished) if finished.status.success() => None,
            Ok(finished) => {
                let how = exec::how_it_ended(finished.status);
                let last = one_line(&self.run.redactor.redact(&finished.last_line).text, 300);
                Some(failed(format!("\"{program}\" failed ({how}): {last}")))
            }
            Err(fault) => Some(failed(format!("\"{program}\" {fault}"))),
        })
    }

    fn writer(&self, queue_id: &str) -> Result<HistoryWriter> {
        let path = self.run.batch()?.file(&history_name(queue_id));
        HistoryWriter::new(&path, LONGEST.min(self.room.sessions / 2))
    }

    fn read(
        &self,
        format: &'static Format,
        path: &Path,
        entry: &QueueEntry,
        queue_id: &str,
    ) -> Result<Gathered> {
        let kept = Journal::at(self.run.root).kept(queue_id);
        // Most sessions have no copy, and their files need not be asked for.
        let is_kept = kept.symlink_metadata().is_ok_and(|kept| kept.is_file());
        let text = if is_kept && is_gone(path) { &*kept } else { path };
        self.learn(format, text);
        let (mut writer, mut outputs) = (self.writer(queue_id)?, Outputs::default());
        let mut tracker = self.tracker(format, path, entry);
        // Its first prompt is one of ours.
        let mut is_ours = None;
        let (mut is_unwritten, mut is_doubted) = (false, false);
        // What a command printed is in a file of ours.
        let spec = entry.retrieval.spec();
        let is_elsewhere = spec.is_some_and(|spec| !spec.keeps(path, self.run.env));
        let last =
            entry.ledger_key().and_then(|key| self.sessions.get(&key)).map(|known| known.last.as_str());
        let read = or_panicked(path, || {
            let prompts = harness::logged_prompts(format, path, self.run.env);
            harness::read_after(format, text, last, prompts, &mut |mut turn: Turn| {
                is_doubted |= is_elsewhere && turn.is_typed;
                turn.is_typed &= !is_elsewhere;
                if entry.is_memory_file() {
                    turn.role = if is_persons(entry) { Role::User } else { Role::Assistant };
                    // A project's file may be anybody's.
                    turn.is_typed = is_persons(entry) && entry.context.repo.is_none();
                }
                if turn.role == Role::User {
                    is_ours.get_or_insert_with(|| bears_an_id(&turn.text));
                }
                // The id of a document's part says how far it was read, which the reader must know.
                let hash = if turn.role == Role::Document { turn.id.clone() } else { hash(&turn.id) };
                let from = tracker.of(&turn);
                let (shown, cut) = self.shown(turn, from, tracker.ran(), &mut outputs);
                let passage = Passage { touched: tracker.touched(), ..shown };
                writer.turn(passage, hash, cut).inspect_err(|_| is_unwritten = true)
            })
        });
        let report = match read {
            Ok(report) => report,
            Err(error) if is_unwritten => return Err(error),
            Err(error) => return Ok(unreadable(&error)),
        };
        self.warn_of(&report, path, spec.filter(|_| is_doubted));
        if is_ours == Some(true) {
            return Ok(nothing("a session of the memory programs themselves"));
        }
        if report.is_sub_agent {
            return Ok(nothing("the session of a sub-agent; its report is in the main session"));
        }
        self.unseen(writer.finish()?, report, entry)
    }

    /// What of a session was left out, and that it is not where its program, `doubted`, keeps its sessions.
    fn warn_of(&self, report: &SessionReport, path: &Path, doubted: Option<&Spec>) {
        let warn = |what: &str| self.run.reporter.warn(&format!("\"{}\"{what}", path.display()));
        if report.too_long > 0 {
            let (lines, cap) = (counted(report.too_long, "line", "lines"), LINE_CAP >> 20);
            warn(&format!(": {lines} of more than {cap} MiB left out"));
        }
        if let Some(spec) = doubted {
            warn(&format!(" is not where {} keeps its sessions: nothing in it counts as typed", spec.title));
        }
    }

    /// A history, as far as nobody has seen it.
    fn unseen(&self, mut history: History, report: SessionReport, entry: &QueueEntry) -> Result<Gathered> {
        history.session = entry.ledger_key();
        history.parent = report.parent.map(|parent| format!("{}:{parent}", entry.harness));
        let (turns, key) = (&history.turns, history.session.as_deref());
        let fresh = match entry.is_memory_file() {
            true => self.unread(turns, key),
            false => self.fresh(turns, key, history.parent.as_deref()),
        };
        if fresh.is_empty() {
            return Ok(nothing(match turns.is_empty() {
                true => "nothing was said in it",
                false => "nothing new was said in it",
            }));
        }
        for passage in &mut history.passages {
            passage.is_shown = fresh.contains(&passage.turn);
        }
        history.earlier_room = self.room.earlier;
        let branch =
            report.branch.filter(|branch| !branch.is_empty()).or_else(|| entry.context.branch.clone());
        history.branch = branch.filter(|branch| self.run.redactor.cleaned(branch) == *branch);
        Ok(Gathered::History(history))
    }

    /// Takes note of a session's secrets before it is read: what is said at its end is hidden at its beginning. A turn
    /// is searched together with the end of the one before it, whose question it may answer.
    fn learn(&self, format: &'static Format, path: &Path) {
        let mut text = String::new();
        // What cannot be read is reported when it is read for the second time.
        let _ = or_panicked(path, || {
            harness::read(format, path, &mut |turn: Turn| {
                let (input, output) = turn.text.split_at(turn.output.unwrap_or(turn.text.len()));
                let tail = border(&text, text.len().saturating_sub(CARRIED));
                let output = if output.is_empty() { "" } else { &format!("\ntool result: {output}") };
                text = format!("{}\n{}: {input}{output}", &text[tail..], turn.role);
                self.run.redactor.learn(&without_controls(&text));
                Ok(())
            })
        });
    }

    /// Says of each turn of a session whether it comes from outside.
    fn tracker(&self, format: &'static Format, path: &Path, entry: &QueueEntry) -> Tracker {
        let (cwd, repo) = (entry.context.cwd.as_deref(), entry.context.repo.as_deref());
        let env = self.run.env;
        let places = Places::new(cwd, repo, env.home(), env.os("TMPDIR").map(Path::new));
        // What a command printed has no sub-agents' files beside it.
        let transcript = matches!(entry.retrieval, Retrieval::Transcript { .. }).then_some(path);
        Tracker::new(format, places, repo, transcript)
    }

    /// A turn as the model sees it, and how many bytes of it were cut. It ran these commands.
    fn shown(
        &self,
        turn: Turn,
        from: Provenance,
        commands: Vec<Vec<String>>,
        outputs: &mut Outputs,
    ) -> (Passage, usize) {
        let Turn { role, at, mut cut, brief, is_typed, has_worked, .. } = turn;
        let (input, output) = turn.text.split_at(turn.output.unwrap_or(turn.text.len()));
        let clean = |text: &str| self.run.redactor.redact(&without_controls(text)).text.into_owned();
        let (input, output) = (clean(input), clean(output));
        let ran = Ran::of(commands, turn.call.as_ref(), has_worked, &output, |text| clean(text) == text);
        let condensed = outputs.condensed(&input, &output, self.facts);
        cut += condensed.as_ref().map_or(0, |(_, less)| *less);
        let has_less = brief.is_some() || condensed.is_some();
        let mut text = brief.map_or_else(|| input.clone(), |brief| clean(&brief));
        let output_at = turn.output.map(|_| text.len());
        text.push_str(condensed.as_ref().map_or(&output, |(text, _)| text));
        let full = has_less.then(|| (input.clone() + &output, input.len()));
        (Passage { role, at, text, output: output_at, full, is_typed, from, ran, ..Passage::default() }, cut)
    }

    /// Which turns nobody has seen yet: those after the last one that was read, and of these not those that the
    /// session shares with its kin.
    fn fresh(&self, turns: &[String], key: Option<&str>, parent: Option<&str>) -> BTreeSet<usize> {
        let Some(key) = key else { return (0..turns.len()).collect() };
        // The last one may have been taken back since.
        let known = self.sessions.get(key);
        let is_read =
            |turn: &String| known.is_some_and(|known| known.last == *turn || known.marks.contains(turn));
        let read = turns.iter().rposition(is_read).map_or(0, |at| at + 1);
        let shared: BTreeSet<&str> =
            self.sessions.kin(key, parent).flat_map(|session| &session.marks).map(String::as_str).collect();
        (read..turns.len()).filter(|&index| !shared.contains(turns[index].as_str())).collect()
    }

    /// The turns of a file that is rewritten anywhere, and that nobody has seen yet.
    fn unread(&self, turns: &[String], key: Option<&str>) -> BTreeSet<usize> {
        let known = key.and_then(|key| self.sessions.get(key));
        let is_new = |turn: &String| known.is_none_or(|known| !known.marks.contains(turn));
        (0..turns.len()).filter(|&index| is_new(&turns[index])).collect()
    }
}

fn is_gone(path: &Path) -> bool {
    matches!(reach::within(path, Path::try_exists), Ok(Ok(false)))
}

/// Why there is nothing to ask about.
fn nothing(why: &str) -> Gathered {
    Gathered::Nothing(Verdict::Processed(Some(why.to_owned())))
}

/// This entry's failed try.
fn unreadable(why: &Error) -> Gathered {
    Gathered::Nothing(Verdict::Failed(why.line()))
}

/// What `read` returns. A fault of a reader is its session's failed try, and holds up no other session.
fn or_panicked<T>(path: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    // What was written so far is thrown away.
    std::panic::catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        let why = format!("the reader of sessions failed at \"{}\"", path.display());
        Err(Error::io(why).hint("this is a fault in this program; please report it"))
    })
}

/// What a `readCommand` printed: turns in JSON Lines, if its first line begins like an object; otherwise text.
fn printed_format(raw: &Path) -> Result<&'static Format> {
    let mut start = Vec::new();
    fs_err::File::open(raw)?.take(64 << 10).read_to_end(&mut start)?;
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start);
    let is_json = start.trim_ascii_start().starts_with(b"{");
    Ok(if is_json { &TURNS } else { &PLAIN })
}

/// Did a person write this note?
pub(super) fn is_persons(entry: &QueueEntry) -> bool {
    entry.harness == Harness::MANUAL
}

#[cfg(test)]
mod tests;
