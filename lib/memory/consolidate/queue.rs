//! What the pipeline does with the queue: claims entries, reads their histories, gives each its place.

use crate::base::cli::Reporter;
use crate::base::error::Result;
use crate::base::file;
use crate::base::repository;
use crate::base::text::counted;
use crate::memory::consolidate::gather::{Gathered, Gatherer};
use crate::memory::consolidate::history::{History, facts_name};
use crate::memory::consolidate::order::Order;
use crate::memory::consolidate::output::Facts;
use crate::memory::consolidate::ran::Runs;
use crate::memory::consolidate::readings::Readings;
use crate::memory::consolidate::work::{
    CLAIMED, Claimed, ConsolidateWork, FRAME, PromptRoom, Verdict, share_out, whole,
};
use crate::memory::pipeline::call::{Kind, RunEnv};
use crate::store::batch::{Batch, Batches};
use crate::store::entry::EntryId;
use crate::store::journal::entry::QueueEntry;
use crate::store::journal::{Journal, read_at};
use crate::store::ledger::{NextTry, Pause, Sessions, Tries};
use crate::store::persistence::Broken;
use crate::store::place::Root;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

/// The queue, as one run sees it.
#[derive(Default)]
pub struct Queue {
    /// How many entries this run may still take.
    pub(super) limit: usize,
    /// Only these entries; `None`: all.
    pub only: Option<BTreeSet<String>>,
    /// Somebody wants it now: what failed before does not wait for its next try.
    is_at_once: bool,
    /// A person imports these: what fails is theirs to import again, and has no next try.
    is_import: bool,
    /// What waits for its next try.
    pub pause: Option<Pause>,
    /// The entries that this run may take up; none is taken up twice.
    order: Order,
    /// The sessions that wait for an LLM while none is configured.
    sessions: usize,
    pub processed: usize,
    /// The entries that failed, and why.
    pub failed: Vec<(String, String)>,
}

impl Queue {
    pub fn new(limit: usize, only: Option<BTreeSet<String>>, is_at_once: bool) -> Queue {
        Queue { limit, only, is_at_once, ..Queue::default() }
    }

    /// The entries that a person imports.
    pub fn of_import(ids: BTreeSet<String>) -> Queue {
        Queue { is_import: true, ..Queue::new(usize::MAX, Some(ids), true) }
    }

    /// Looks at what has come into the queue since the last time.
    fn update(&mut self, tries: &Tries, run: &RunEnv) -> Result<()> {
        let (now, has_llm) = (run.env.now(), has_llm(run));
        let (only, sessions, pause) = (&self.only, &mut self.sessions, &mut self.pause);
        let (is_at_once, is_import, asked) = (self.is_at_once, self.is_import, run.asked());
        let journal = Journal::at(run.root);
        self.order.update(&journal, run.reporter, |id, entry| {
            let is_meant = only.as_ref().is_none_or(|only| only.contains(id));
            // Nothing is imported now: another program would hold the lock. An import that was killed left it.
            if !is_import && entry.is_import() {
                if !run.is_dry() {
                    let _ = file::remove(&journal.path(id));
                }
                return false;
            }
            // Without an LLM only what a person wrote can be filed.
            let has_to_wait = entry.session().is_some() && !has_llm;
            *sessions += usize::from(is_meant && has_to_wait);
            if !is_meant || has_to_wait {
                return false;
            }
            let waits = tries.pause(id, now).filter(|_| !is_at_once && !tries.asked_another(id, &asked));
            let is_due = waits.is_none();
            *pause = Pause::of_all(pause.take().into_iter().chain(waits));
            is_due
        })
    }

    /// Is the next entry to be taken one of the past? `None`: there is none.
    pub(super) fn is_next_past(&mut self, run: &RunEnv) -> Result<Option<bool>> {
        self.update(&Tries::load(run.root)?, run)?;
        Ok(self.order.is_next_past())
    }

    /// How many sessions wait for an LLM, of the entries that are asked for.
    pub fn sessions_without_llm(&mut self, run: &RunEnv) -> Result<usize> {
        // What this run has put back counts, too.
        self.order.look_again();
        self.update(&Tries::load(run.root)?, run)?;
        Ok(self.sessions)
    }

    /// Takes the next entries that go together out of the queue; a dry run leaves them in it.
    pub(super) fn claim(&mut self, run: &mut RunEnv) -> Result<Option<ConsolidateWork>> {
        let tries = Tries::load(run.root)?;
        self.update(&tries, run)?;
        if self.limit == 0 {
            return Ok(None);
        }
        let chosen = self.order.take(CLAIMED.min(self.limit), |id| tries.is_alone(id));
        if chosen.is_empty() {
            return Ok(None);
        }
        let batch = Batches::of_queue(run.root).begin()?;
        let mut queue_ids = Vec::new();
        for id in chosen {
            if run.is_dry() || batch.claim(&id)? {
                queue_ids.push(id);
            }
        }
        self.limit = self.limit.saturating_sub(queue_ids.len());
        let claimed = Claimed { queue_ids, has_llm: has_llm(run), ..Claimed::default() };
        Ok(Some(ConsolidateWork::new(run.batch.insert(batch).id.clone(), claimed)))
    }

    /// Reads the histories of what was claimed into the batch, given the facts of the notes that are known in them. What
    /// no longer fits into one call goes back for the next batch.
    pub(super) fn fetch(
        &mut self,
        mut work: ConsolidateWork,
        room: PromptRoom,
        facts: &dyn Deref<Target = Facts>,
        run: &RunEnv,
    ) -> Result<ConsolidateWork> {
        let batch = run.batch()?;
        let claimed = std::mem::take(&mut work.own.queue_ids);
        let entries = entries(&claimed, batch, run)?;
        let Claimed { queue_ids: kept, verdicts, .. } = &mut work.own;
        let mut tries = Tries::load(run.root)?;
        // Two entries of one session, or a fork and its parent, may be claimed together: what the first gives, the
        // second leaves out. Only what a reply has answered is saved.
        let mut sessions = Sessions::load(run.root)?;
        let mut used = 0;
        let mut histories = Vec::new();
        for id in claimed {
            let Some(entry) = entries.get(&id) else {
                warn_of_unread(&id, batch, run);
                continue;
            };
            // There is enough for one call.
            let is_full = used > room.sessions && tries.ended_runs(&id).is_none();
            let gatherer = Gatherer { run, sessions: &sessions, room, facts };
            let gather = || gather_counted(&gatherer, entry, &id, &mut tries);
            let gathered = (!is_full).then(gather).transpose()?;
            let frame = FRAME + entry.context.repo.as_ref().map_or(0, String::len);
            let bytes = |history: &History| whole(&history.lengths()) + frame;
            match gathered {
                Some(Gathered::Nothing(verdict)) => {
                    verdicts.insert(id.clone(), verdict);
                }
                Some(Gathered::History(history))
                    if kept.is_empty() || used + bytes(&history) <= room.sessions =>
                {
                    used += bytes(&history);
                    if let Some(key) = &history.session {
                        sessions.read(key, history.parent.as_deref(), &history.turns);
                    }
                    histories.push((id.clone(), history.lengths()));
                    batch.write_json(&facts_name(&id), &history)?;
                }
                Some(Gathered::History(_)) | None => {
                    used = room.sessions + 1;
                    batch.put_back(&id)?;
                    self.limit = self.limit.saturating_add(usize::from(self.order.put_back(&id)));
                    continue;
                }
            }
            kept.push(id);
        }
        if entries.values().any(|entry| is_counted(entry, run)) {
            tries.save(run.root)?;
        }
        work.parts = share_out(&histories, room.sessions);
        Ok(work)
    }

    /// Gives each entry its place by its verdict. Doing it twice for one batch is doing it once.
    pub(super) fn mark(&mut self, Claimed { queue_ids, verdicts, .. }: &Claimed, run: &RunEnv) -> Result<()> {
        // What this run claimed has been counted.
        let of_others = queue_ids.iter().filter(|id| !self.order.has_taken(id)).count();
        self.limit = self.limit.saturating_sub(of_others);
        if run.is_dry() {
            return Ok(());
        }
        let mut tries = Tries::load(run.root)?;
        let batch = run.batch()?;
        let is_imported = |id| self.is_import && self.only.as_ref().is_some_and(|only| only.contains(id));
        let mut failed = Vec::new();
        for id in queue_ids {
            match verdicts.get(id) {
                Some(Verdict::Processed(_)) => tries.forget(id),
                Some(Verdict::Alone) => tries.set_alone(id),
                Some(Verdict::Failed(why)) => {
                    // A reply that is refused is quoted, and it may quote the session.
                    let why = run.redactor.cleaned(why);
                    let next = (!is_imported(id))
                        .then(|| tries.fail(id, &why, (&batch.id, &run.asked()), run.env.now()));
                    failed.push((id, next, why));
                }
                None => {}
            }
        }
        tries.save(run.root)?;
        for id in queue_ids {
            match verdicts.get(id) {
                Some(Verdict::Processed(why)) => {
                    if let Some(why) = why {
                        run.reporter.verbose(&format!("{id}: {why}"));
                    }
                    batch.processed(id)?;
                    self.processed += 1;
                }
                Some(Verdict::Failed(_)) => {}
                Some(Verdict::Alone) | None => batch.put_back(id)?,
            }
        }
        for (id, next, why) in failed {
            match next {
                Some(next) => fail(batch, id, &why, next, run)?,
                None => batch.put_back(id)?,
            }
            self.failed.push((id.clone(), why));
        }
        Ok(())
    }
}

/// Does reading this entry count as a try until it has come to its end?
fn is_counted(entry: &QueueEntry, run: &RunEnv) -> bool {
    entry.session().is_some() && !run.is_dry()
}

/// The history of an entry. Its try is counted first: a session that ends the run has had it.
fn gather_counted(gatherer: &Gatherer, entry: &QueueEntry, id: &str, tries: &mut Tries) -> Result<Gathered> {
    if let Some(why) = tries.ended_runs(id) {
        return Ok(Gathered::Nothing(Verdict::Failed(why.to_owned())));
    }
    let run = gatherer.run;
    if is_counted(entry, run) {
        tries.begin_reading(id, &run.batch()?.id, run.env.now());
        tries.save(run.root)?;
    }
    let gathered = gatherer.gather(entry, id)?;
    tries.end_reading(id);
    Ok(gathered)
}

/// An entry that was claimed and is none, with the reason if there is one.
fn warn_of_unread(id: &str, batch: &Batch, run: &RunEnv) {
    if let Err(Broken { path, why }) = read_at(&batch.claims().join(format!("{id}.json"))) {
        let path = path.display();
        run.reporter.warn(&format!("\"{path}\" is {why}; it goes back to the queue"));
    }
}

/// Remembers that the part under way has been seen. Returns the notes that the agents cite in it and had not cited
/// earlier in the same session, and the commands that they ran; the second time, none.
pub(super) fn consume(
    work: &ConsolidateWork,
    readings: &mut Readings,
    run: &RunEnv,
) -> Result<(BTreeSet<EntryId>, Runs)> {
    let mut cited = BTreeSet::new();
    if run.is_dry() || work.seen().next().is_none() {
        return Ok((cited, Runs::default()));
    }
    let batch = run.batch()?;
    let mut new = Vec::new();
    let mut sessions = Sessions::load(run.root)?;
    for slice in work.seen() {
        let transcript = readings.transcript(batch, slice)?;
        let history = &transcript.history;
        let Some(key) = &history.session else { continue };
        let turns = history.turns_ending_in(slice.from, slice.to);
        let is_new =
            sessions.get(key).is_none_or(|known| turns.iter().any(|turn| !known.marks.contains(turn)));
        if !turns.is_empty() && is_new {
            sessions.read(key, history.parent.as_deref(), &turns);
            cited.extend(transcript.newly_cited());
            new.push(slice.clone());
        }
    }
    // Before anything is counted: after a crash a use is not counted, rather than counted twice.
    if !new.is_empty() {
        sessions.save(run.root)?;
    }
    let runs = readings.runs(batch, &new, &entries(&work.own.queue_ids, batch, run)?)?;
    Ok((cited, runs))
}

/// A failed try: back to the queue, or out of it after the last.
pub(super) fn fail(batch: &Batch, id: &str, why: &str, next: NextTry, run: &RunEnv) -> Result<()> {
    match next {
        NextTry::Again(time) => {
            batch.put_back(id)?;
            let time = time.strftime("%Y-%m-%d %H:%M");
            run.reporter.warn(&format!("{id}: {why}; the next try is after {time} UTC"));
        }
        NextTry::Never(count) => {
            batch.failed(id, why, count, run.env.now())?;
            run.reporter.warn(&format!(
                "{id}: {why}; it failed {count} times and is now in inbox/.failed; --retry-failed puts it back"
            ));
        }
    }
    Ok(())
}

/// Without a command, a run files notes as they are. A prompt by hand needs none.
fn has_llm(run: &RunEnv) -> bool {
    run.kind != Kind::Run || run.config.llm.command.is_some()
}

/// What the claimed entries of a batch are, by queue id. A dry run has claimed none.
pub(super) fn entries(
    queue_ids: &[String],
    batch: &Batch,
    run: &RunEnv,
) -> Result<BTreeMap<String, QueueEntry>> {
    let claimed = batch.claimed()?;
    let mut all: BTreeMap<_, _> = claimed.into_iter().map(|waiting| (waiting.id, waiting.entry)).collect();
    if run.is_dry() {
        let journal = Journal::at(run.root);
        for id in queue_ids {
            if let Ok(Some(entry)) = journal.read(id) {
                all.insert(id.clone(), entry);
            }
        }
    }
    // Its directory did not answer the hook.
    for entry in all.values_mut().filter(|entry| entry.context.repo.is_none() && entry.session().is_some()) {
        let place = entry.context.cwd.as_deref().and_then(repository::place_of);
        entry.context.repo = place.map(|place| run.redactor.cleaned(&place.name));
    }
    Ok(all)
}

/// The entries that wait, claimed ones included.
pub fn waiting(root: &Root) -> Result<BTreeSet<String>> {
    let mut ids: BTreeSet<String> = Journal::at(root).ids()?.into_iter().collect();
    for batch in Batches::of_queue(root).all()? {
        ids.extend(batch.claimed()?.into_iter().map(|claimed| claimed.id));
    }
    Ok(ids)
}

/// Puts everything in `inbox/.failed` back, as if it had never been tried.
pub fn retry_failed(root: &Root, reporter: &Reporter) -> Result<()> {
    // Forgotten first: what is back in the queue must not fail for good at once.
    let journal = Journal::at(root);
    let failed = journal.failed()?;
    let mut tries = Tries::load(root)?;
    failed.iter().for_each(|id| tries.forget(id));
    tries.save(root)?;
    journal.retry(&failed)?;
    if !failed.is_empty() {
        let entries = counted(failed.len(), "failed entry is", "failed entries are");
        reporter.warn(&format!("{entries} back in the queue"));
    }
    Ok(())
}
