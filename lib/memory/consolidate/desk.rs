//! The real adapters: the queue, the notes, the command, the history. What the machine asks for is done here.

use crate::base::cli::Reporter;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::config::memory::MemoryConfig;
use crate::memory::call::{self, Asked, Caller, Kind, Question};
use crate::memory::consolidate::ask::{OWN_WORDS, REPLY};
use crate::memory::consolidate::gather::{Gathered, Gatherer};
use crate::memory::consolidate::history::{History, cut_at, facts_name, text_name};
use crate::memory::consolidate::plan::{Plan, PlannedNote};
use crate::memory::consolidate::work::{Verdict, Work, Written, share_out};
use crate::memory::consolidate::{Adapters, Judged, State};
use crate::memory::redact::Redactor;
use crate::store::batch::{Batch, Batches};
use crate::store::entry::Status;
use crate::store::history;
use crate::store::journal::entry::QueueEntry;
use crate::store::journal::{Journal, Waiting};
use crate::store::ledger::{NextTry, Sessions, Tries};
use crate::store::persistence::{Note, Persistence};
use crate::store::place::Root;
use crate::store::topics::Topics;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// So many entries are claimed at once, at most.
const CLAIMED: usize = 32;
/// What stands around a session or a note in the prompt takes so many bytes, at most.
pub(crate) const FRAME: usize = 250;
/// The least room for sessions in a prompt, in bytes.
const LEAST_ROOM: usize = 1000;

pub(crate) struct Desk<'a> {
    pub(crate) config: &'a MemoryConfig,
    pub(crate) root: &'a Root,
    pub(crate) env: &'a Env,
    pub(crate) reporter: &'a Reporter,
    pub(crate) redactor: &'a Redactor,
    pub(crate) caller: Caller<'a>,
    pub(crate) kind: Kind,
    /// How many entries this run may still claim.
    pub(crate) limit: usize,
    pub(crate) batch: Option<Batch>,
    /// What is known of the history that was looked at last, and its file: a long session has hundreds of parts.
    pub(crate) history: Option<(PathBuf, History)>,
    /// The entries that this run has dealt with, whatever became of them: none is taken up twice.
    pub(crate) seen: BTreeSet<String>,
    /// The command does not work now: no use in asking it about more.
    pub(crate) is_down: bool,
    pub(crate) tally: Tally,
}

/// What a run has come to.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) processed: usize,
    pub(crate) failed: Vec<(String, String)>,
    pub(crate) written: Vec<Written>,
}

pub(crate) fn io(e: std::io::Error) -> Error {
    Error::io(e.to_string())
}

impl Desk<'_> {
    /// The batch that is under way.
    pub(crate) fn batch(&self) -> Result<&Batch> {
        call::under_way(&self.batch)
    }

    /// What was said to the part under way.
    pub(crate) fn reply(&self, work: &Work) -> Result<Option<String>> {
        call::reply(self.batch()?, work.next)
    }

    /// What is known of the history of source number `index`.
    fn history(&mut self, index: usize) -> Result<&History> {
        let batch = self.batch()?;
        let file = batch.file(&facts_name(index));
        let known = match self.history.take() {
            Some((path, history)) if path == file => (path, history),
            _ => (file, self.batch()?.read_json(&facts_name(index))?),
        };
        Ok(&self.history.insert(known).1)
    }

    /// What the claimed entries are, by queue id. A dry run has claimed none.
    pub(crate) fn entries(&self, work: &Work) -> Result<BTreeMap<String, QueueEntry>> {
        let mut all = self.batch()?.claimed()?;
        if work.kind == Kind::Dry {
            all.extend(Journal::at(self.root).waiting()?.0);
        }
        Ok(all.into_iter().map(|waiting| (waiting.id, waiting.entry)).collect())
    }

    /// Room for sessions in one prompt, and for notes that are there already, in bytes.
    pub(crate) fn room(&self) -> Result<(usize, usize)> {
        let max = self.config.llm.max_prompt();
        let free = max.saturating_sub(OWN_WORDS);
        let (sessions, related) = (free - free / 4, free / 4);
        if sessions < LEAST_ROOM {
            return Err(Error::config(format!("llm.maxPromptBytes of {max} leaves no room for a session"))
                .hint(format!("set it to {} or more", OWN_WORDS + 2 * LEAST_ROOM)));
        }
        Ok((sessions, related))
    }

    fn gatherer<'b>(&'b self, sessions: &'b Sessions) -> Gatherer<'b> {
        Gatherer {
            config: self.config,
            redactor: self.redactor,
            sessions,
            reporter: self.reporter,
            vars: self.caller.vars(),
        }
    }

    /// Writes down failed tries, then gives each entry its place: back to the queue, or out of it after the last.
    /// Doing it twice for one batch is doing it once.
    fn fail(&mut self, failures: &[(String, String)]) -> Result<()> {
        let mut tries = Tries::load(self.root)?;
        let batch = self.batch()?;
        let now = self.env.now();
        let next: Vec<NextTry> =
            failures.iter().map(|(id, why)| tries.fail(id, why, &batch.id, now)).collect();
        tries.save(self.root)?;
        for ((id, why), next) in failures.iter().zip(next) {
            match next {
                NextTry::Again(time) => {
                    batch.put_back(id)?;
                    let time = time.strftime("%Y-%m-%d %H:%M");
                    self.reporter.warn(&format!("{id}: {why}; the next try is after {time} UTC"));
                }
                NextTry::Never(count) => {
                    batch.failed(id, why, count, now)?;
                    self.reporter.warn(&format!(
                        "{id}: {why}; after {count} tries it lies in inbox/.failed, and --retry-failed puts it back"
                    ));
                }
            }
        }
        self.tally.failed.extend_from_slice(failures);
        Ok(())
    }

    /// What a failed call does to the entries of the batch: several are asked about alone the next time, one alone
    /// has had its try.
    pub(crate) fn agent_failed(&mut self, work: &Work, why: &str) -> Result<()> {
        let alive: Vec<&String> = work
            .sources
            .iter()
            .map(|source| &source.queue_id)
            .filter(|id| !work.verdicts.contains_key(*id))
            .collect();
        if let [one] = alive[..] {
            return self.fail(&[(one.clone(), why.to_owned())]);
        }
        let mut tries = Tries::load(self.root)?;
        for id in alive {
            tries.set_alone(id);
        }
        tries.save(self.root)
    }
}

impl Adapters for Desk<'_> {
    fn load_queue(&mut self) -> Result<Option<Work>> {
        let (waiting, unreadable) = Journal::at(self.root).waiting()?;
        for file in &unreadable {
            // The queue is looked at once for each batch, and the file is still in it.
            let name = file.path.display().to_string();
            if self.seen.insert(name.clone()) {
                self.reporter.warn(&format!("\"{name}\" is {}", file.error.message()));
            }
        }
        let tries = Tries::load(self.root)?;
        let now = self.env.now();
        // Without an LLM only what a person wrote can be filed.
        let is_possible = |waiting: &Waiting| {
            let is_note = waiting.entry.session().is_none();
            let has_command = self.kind != Kind::Run || self.config.llm.command.is_some();
            // A stranger's queue may name any file of yours.
            is_note || has_command && !self.config.storage.foreign
        };
        let wanted = waiting.into_iter().filter(|waiting| {
            is_possible(waiting) && tries.may_be_tried(&waiting.id, now) && !self.seen.contains(&waiting.id)
        });
        let mut chosen: Vec<Waiting> = Vec::new();
        for waiting in wanted {
            let Some(first) = chosen.first() else {
                chosen.push(waiting);
                continue;
            };
            // Each repository is asked about apart, so that none gets into another's notes.
            let is_apart = waiting.entry.context.repo != first.entry.context.repo;
            if tries.is_alone(&first.id) || chosen.len() >= CLAIMED.min(self.limit) {
                break;
            }
            if !is_apart && !tries.is_alone(&waiting.id) {
                chosen.push(waiting);
            }
        }
        if chosen.is_empty() || self.limit == 0 {
            return Ok(None);
        }
        let batch = Batches::of_queue(self.root).begin()?;
        let mut claimed = Vec::new();
        for waiting in chosen {
            self.seen.insert(waiting.id.clone());
            if self.kind == Kind::Dry || batch.claim(&waiting)? {
                claimed.push((waiting.id, waiting.entry));
            }
        }
        let work = Work::new(batch.id.clone(), self.kind, now, &claimed);
        self.batch = Some(batch);
        Ok(Some(work))
    }

    fn fetch_history(&mut self, work: &mut Work) -> Result<()> {
        let entries = self.entries(work)?;
        // Two entries of one session, or a fork and its parent, may be claimed together: what the first gives, the
        // second leaves out. Only what a reply has answered is saved.
        let mut sessions = Sessions::load(self.root)?;
        let (room, _) = self.room()?;
        let mut used = 0;
        let mut kept = Vec::new();
        for (index, source) in std::mem::take(&mut work.sources).into_iter().enumerate() {
            let id = source.queue_id.clone();
            let Some(entry) = entries.get(&id) else { continue };
            let gathered = match used > room {
                // Enough for one call: the rest is for the next batch.
                true => None,
                false => Some(self.gatherer(&sessions).gather(entry, self.batch()?, index)?),
            };
            let mut source = source;
            let frame = FRAME + entry.context.repo.as_ref().map_or(0, String::len);
            match gathered {
                Some(Gathered::History(history))
                    if kept.is_empty() || used + history.bytes() + frame <= room =>
                {
                    used += history.bytes() + frame;
                    source.bytes = history.bytes();
                    source.cut = history.cut;
                    if let Some(key) = &history.session {
                        sessions.read(key, history.parent.as_deref(), &history.marks);
                    }
                    self.batch()?.write_json(&facts_name(index), &history)?;
                }
                Some(Gathered::History(_)) | None => {
                    used = room + 1;
                    self.batch()?.put_back(&id)?;
                    self.seen.remove(&id);
                    continue;
                }
                Some(Gathered::Nothing(why)) => {
                    work.verdicts.insert(id, Verdict::Processed(Some(why)));
                }
                Some(Gathered::Unreadable(error)) => {
                    work.verdicts.insert(id, Verdict::Failed(error.line()));
                }
            }
            kept.push((index, source));
        }
        // The files are numbered as the entries were claimed; from here on only those count that stay.
        let batch = self.batch()?;
        for (new, (old, source)) in kept.iter().enumerate() {
            if new != *old && source.bytes > 0 {
                file::rename(&batch.file(&text_name(*old)), &batch.file(&text_name(new))).map_err(io)?;
                file::rename(&batch.file(&facts_name(*old)), &batch.file(&facts_name(new))).map_err(io)?;
            }
        }
        work.sources = kept.into_iter().map(|(_, source)| source).collect();
        let lengths: Vec<usize> = work.sources.iter().map(|source| source.bytes).collect();
        let borders = |index: usize| {
            batch
                .read_json::<History>(&facts_name(index))
                .map_or_else(|_| Vec::new(), |history| history.borders)
        };
        work.parts =
            share_out(&lengths, room, borders, |index, at| cut_at(&batch.file(&text_name(index)), at));
        Ok(())
    }

    fn without_agent(&mut self, work: &mut Work) -> Result<Option<Plan>> {
        if self.config.llm.command.is_some() || self.kind != Kind::Run {
            return Ok(None);
        }
        let entries = self.entries(work)?;
        let mut ids = Topics::at(self.root).ids()?;
        let mut notes = Vec::new();
        for source in &work.sources {
            let Some(entry) = entries.get(&source.queue_id) else { continue };
            if work.verdicts.contains_key(&source.queue_id) {
                continue;
            }
            if let Some(note) = self.as_it_is(entry, Status::Captured, &mut ids) {
                notes.push(note);
                work.verdicts.insert(source.queue_id.clone(), Verdict::Processed(None));
            }
        }
        // All of it is filed at once; sessions without a verdict go back to the queue.
        work.next = work.parts.len();
        Ok(Some(Plan { at: self.env.now(), notes, warnings: Vec::new() }))
    }

    fn execute_agent(&mut self, work: &mut Work, faults: &[String]) -> Result<Asked> {
        let (batch, is_repair) = (self.batch()?, !faults.is_empty());
        if self.caller.take_up_unfinished(batch, work.next, is_repair)? {
            return Ok(Asked::Replied);
        }
        let prompt = match is_repair {
            true => self.caller.repair(batch, work.next, REPLY, faults)?,
            false => self.prompt(work)?,
        };
        batch.save(&State::RunAgent { work: work.clone(), faults: faults.to_vec() })?;
        let part = (work.next, work.parts.len());
        self.caller.launch(Question { batch, part, is_repair, is_dry: work.kind == Kind::Dry, prompt })
    }

    fn parse_output(&mut self, work: &Work) -> Result<Judged> {
        self.judged(work)
    }

    fn write_entry(&mut self, note: &PlannedNote, plan: &Plan) -> Result<Written> {
        let written = self.write_note(note, plan)?;
        // Told by the run that wrote it, though its batch may go on in later ones.
        self.tally.written.push(written.clone());
        Ok(written)
    }

    fn consume(&mut self, work: &Work) -> Result<()> {
        let mut sessions = Sessions::load(self.root)?;
        let slices = work.parts.get(work.next).map_or(&[][..], |part| &part.slices[..]);
        let mut is_changed = false;
        for slice in slices {
            let Some(source) = work.sources.get(slice.source) else { continue };
            if matches!(work.verdicts.get(&source.queue_id), Some(Verdict::Failed(_) | Verdict::Alone)) {
                continue;
            }
            let history = self.history(slice.source)?;
            let Some(key) = &history.session else { continue };
            let seen = history.borders.partition_point(|border| *border <= slice.to);
            let before = history.borders.partition_point(|border| *border <= slice.from);
            if let Some(marks) = history.marks.get(before..seen).filter(|marks| !marks.is_empty()) {
                sessions.read(key, history.parent.as_deref(), marks);
                is_changed = true;
            }
        }
        if is_changed { sessions.save(self.root) } else { Ok(()) }
    }

    fn mark_processed(&mut self, work: &Work) -> Result<()> {
        let mut failures = Vec::new();
        let mut tries = Tries::load(self.root)?;
        for source in &work.sources {
            match work.verdicts.get(&source.queue_id) {
                Some(Verdict::Processed(_)) => tries.forget(&source.queue_id),
                Some(Verdict::Alone) => tries.set_alone(&source.queue_id),
                Some(Verdict::Failed(why)) => failures.push((source.queue_id.clone(), why.clone())),
                None => {}
            }
        }
        tries.save(self.root)?;
        for source in &work.sources {
            let id = &source.queue_id;
            match work.verdicts.get(id) {
                Some(Verdict::Processed(why)) => {
                    if let Some(why) = why {
                        self.reporter.verbose(&format!("{id}: {why}"));
                    }
                    self.batch()?.processed(id)?;
                    self.tally.processed += 1;
                }
                Some(Verdict::Failed(_)) => {}
                Some(Verdict::Alone) | None => self.batch()?.put_back(id)?,
            }
        }
        self.fail(&failures)
    }

    fn commit(&mut self, work: &Work) -> Result<()> {
        let topics = Topics::at(self.root);
        let written: Vec<Note> =
            work.written.iter().filter_map(|note| topics.find_own(&note.id).ok()).collect();
        let message = match &work.written[..] {
            [one] => format!("consolidate: {}", one.title),
            all => format!("consolidate: {} notes", all.len()),
        };
        if let Err(error) = history::record(self.root, &self.config.storage, message, &written, self.env) {
            self.reporter.warn(&error.line());
        }
        Ok(())
    }

    fn warn(&mut self, warning: &str) {
        self.reporter.warn(warning);
    }
}
