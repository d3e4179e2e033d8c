//! What the pipeline does with the queue: claims entries, reads their histories, gives each its place.

use crate::base::cli::Reporter;
use crate::base::error::{Error, Result};
use crate::memory::consolidate::gather::{Gathered, Gatherer};
use crate::memory::consolidate::history::{self, History, facts_name, history_name};
use crate::memory::consolidate::work::{BatchSource, Claimed, Part, Stretch, Verdict, share_out};
use crate::memory::pipeline::runner::Run;
use crate::store::batch::{Batch, Batches};
use crate::store::entry::EntryId;
use crate::store::journal::entry::{QueueEntry, Retrieval};
use crate::store::journal::{Journal, Waiting};
use crate::store::ledger::{NextTry, Sessions, Tries};
use crate::store::place::Root;
use std::collections::{BTreeMap, BTreeSet};

/// How many entries are claimed at once, at most.
const CLAIMED: usize = 32;
/// What stands around a session in the prompt takes so many bytes, at most.
const FRAME: usize = 250;

/// The queue, as one run sees it.
pub(crate) struct Queue {
    /// How many entries this run may still take.
    pub(super) limit: usize,
    /// Only these entries; `None`: all.
    pub(crate) only: Option<BTreeSet<String>>,
    /// The entries and the unreadable files that this run has dealt with: none is taken up twice.
    seen: BTreeSet<String>,
    pub(crate) processed: usize,
    /// The entries that failed, and why.
    pub(crate) failed: Vec<(String, String)>,
}

/// What became of the claimed entries' histories.
pub(crate) struct Fetched {
    pub(super) sources: Vec<BatchSource>,
    pub(super) parts: Vec<Part>,
    pub(super) verdicts: BTreeMap<String, Verdict>,
}

impl Queue {
    pub(crate) fn new(limit: usize, only: Option<BTreeSet<String>>) -> Queue {
        Queue { limit, only, seen: BTreeSet::new(), processed: 0, failed: Vec::new() }
    }

    /// The entries that may be taken up now, in order.
    fn candidates(&mut self, run: &Run, tries: &Tries) -> Result<Vec<Waiting>> {
        let (waiting, unreadable) = Journal::at(run.root).waiting()?;
        for file in &unreadable {
            // The queue is read once for each batch, and the file is still in it.
            let name = file.path.display().to_string();
            if self.seen.insert(name.clone()) {
                run.reporter.warn(&format!("\"{name}\" is {}", file.error.message()));
            }
        }
        let now = run.env.now();
        let has_llm = has_llm(run);
        let is_possible = |waiting: &Waiting| {
            // Without an LLM only what a person wrote can be filed.
            let is_note = waiting.entry.session().is_none();
            (is_note || has_llm)
                && tries.may_be_tried(&waiting.id, now)
                && !self.seen.contains(&waiting.id)
                && self.only.as_ref().is_none_or(|only| only.contains(&waiting.id))
        };
        Ok(waiting.into_iter().filter(is_possible).collect())
    }

    /// Takes the next entries that go together out of the queue; a dry run leaves them in it.
    pub(super) fn claim(&mut self, run: &mut Run) -> Result<Option<Claimed>> {
        let tries = Tries::load(run.root)?;
        let mut chosen: Vec<Waiting> = Vec::new();
        for waiting in self.candidates(run, &tries)? {
            let Some(first) = chosen.first() else {
                chosen.push(waiting);
                continue;
            };
            if tries.is_alone(&first.id) || chosen.len() >= CLAIMED.min(self.limit) {
                break;
            }
            // Each repository is asked about apart, so that none gets into another's notes.
            let is_apart = waiting.entry.context.repo != first.entry.context.repo;
            if !is_apart && !tries.is_alone(&waiting.id) {
                chosen.push(waiting);
            }
        }
        if chosen.is_empty() || self.limit == 0 {
            return Ok(None);
        }
        let batch = Batches::of_queue(run.root).begin()?;
        let mut queue_ids = Vec::new();
        for waiting in chosen {
            self.seen.insert(waiting.id.clone());
            if run.is_dry() || batch.claim(&waiting)? {
                queue_ids.push(waiting.id);
            }
        }
        let claimed = Claimed { batch: batch.id.clone(), queue_ids, has_llm: has_llm(run) };
        run.batch = Some(batch);
        Ok(Some(claimed))
    }

    /// Reads the histories of what was claimed into the batch. What no longer fits into one call goes back for the next
    /// batch.
    pub(super) fn fetch(&mut self, sources: Vec<BatchSource>, room: usize, run: &Run) -> Result<Fetched> {
        let batch = run.batch()?;
        let entries = entries(run)?;
        // Two entries of one session, or a fork and its parent, may be claimed together: what the first gives, the
        // second leaves out. Only what a reply has answered is saved.
        let mut sessions = Sessions::load(run.root)?;
        let mut verdicts = BTreeMap::new();
        let mut used = 0;
        let mut kept: Vec<BatchSource> = Vec::new();
        let mut lengths: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for mut source in sources {
            let id = source.queue_id.clone();
            let Some(entry) = entries.get(&id) else { continue };
            let gathered = match used > room {
                // There is enough for one call.
                true => None,
                false => Some(gatherer(run, &sessions, room).gather(entry, batch, &id)?),
            };
            let frame = FRAME + entry.context.repo.as_ref().map_or(0, String::len);
            match gathered {
                Some(Gathered::History(history))
                    if kept.is_empty() || used + history.bytes() + frame <= room =>
                {
                    used += history.bytes() + frame;
                    source.bytes = history.bytes();
                    source.cut = history.cut;
                    if let Some(key) = &history.session {
                        sessions.read(key, history.parent.as_deref(), &history.turns);
                    }
                    lengths.insert(id.clone(), history.lengths());
                    batch.write_json(&facts_name(&id), &history)?;
                }
                Some(Gathered::History(_)) | None => {
                    used = room + 1;
                    batch.put_back(&id)?;
                    self.seen.remove(&id);
                    continue;
                }
                Some(Gathered::Nothing(why)) => {
                    verdicts.insert(id, Verdict::Processed(Some(why)));
                }
                Some(Gathered::Unreadable(error)) => {
                    verdicts.insert(id, Verdict::Failed(error.line()));
                }
            }
            kept.push(source);
        }
        let lengths: Vec<&[usize]> =
            kept.iter().map(|source| lengths.get(&source.queue_id).map_or(&[][..], Vec::as_slice)).collect();
        let parts = share_out(&lengths, room);
        Ok(Fetched { sources: kept, parts, verdicts })
    }

    /// Gives each entry its place by its verdict. Doing it twice for one batch is doing it once.
    pub(super) fn mark(
        &mut self,
        sources: &[BatchSource],
        verdicts: &BTreeMap<String, Verdict>,
        run: &Run,
    ) -> Result<()> {
        self.limit = self.limit.saturating_sub(sources.len());
        if run.is_dry() {
            return Ok(());
        }
        let mut tries = Tries::load(run.root)?;
        let batch = run.batch()?;
        let now = run.env.now();
        let mut failed = Vec::new();
        for BatchSource { queue_id: id, .. } in sources {
            match verdicts.get(id) {
                Some(Verdict::Processed(_)) => tries.forget(id),
                Some(Verdict::Alone) => tries.set_alone(id),
                Some(Verdict::Failed(why)) => {
                    // A reply that is refused is quoted, and it may quote the session.
                    let why = run.redactor.cleaned(why);
                    let next = tries.fail(id, &why, &batch.id, now);
                    failed.push((id, why, next));
                }
                None => {}
            }
        }
        tries.save(run.root)?;
        for BatchSource { queue_id: id, .. } in sources {
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
        for (id, why, next) in failed {
            fail(batch, id, &why, next, run)?;
            self.failed.push((id.clone(), why));
        }
        Ok(())
    }

    /// Remembers that these stretches of sessions have been seen. Returns the notes that the agents cite in them and had
    /// not cited earlier in the same session; the second time, none.
    pub(super) fn consume(&self, stretches: &[Stretch], run: &Run) -> Result<BTreeSet<EntryId>> {
        let mut cited = BTreeSet::new();
        if run.is_dry() || stretches.is_empty() {
            return Ok(cited);
        }
        let mut sessions = Sessions::load(run.root)?;
        let mut is_changed = false;
        for stretch in stretches {
            let batch = run.batch()?;
            let history: History = batch.read_json(&facts_name(&stretch.queue_id))?;
            let Some(key) = &history.session else { continue };
            let turns = history.turns_ending_in(stretch.from, stretch.to);
            let is_new =
                sessions.get(key).is_none_or(|known| turns.iter().any(|turn| !known.marks.contains(turn)));
            if !turns.is_empty() && is_new {
                sessions.read(key, history.parent.as_deref(), &turns);
                is_changed = true;
                let mut earlier = BTreeSet::new();
                let mut here = BTreeSet::new();
                let path = batch.file(&history_name(&stretch.queue_id));
                history::read(&path, &history, (stretch.from, stretch.to), true, |passage, is_here| {
                    earlier.extend(passage.counted());
                    if is_here { &mut here } else { &mut earlier }.extend(passage.cited());
                })?;
                cited.extend(here.difference(&earlier).cloned());
            }
        }
        // Before anything is counted: after a crash a use is not counted, rather than counted twice.
        if is_changed {
            sessions.save(run.root)?;
        }
        Ok(cited)
    }
}

/// A failed try: back to the queue, or out of it after the last.
fn fail(batch: &Batch, id: &str, why: &str, next: NextTry, run: &Run) -> Result<()> {
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
fn has_llm(run: &Run) -> bool {
    use crate::memory::pipeline::saved::Kind;
    run.kind != Kind::Run || run.config.llm.command.is_some()
}

/// A longer turn is cut into passages, in bytes.
const LONGEST: usize = 16 << 10;

fn gatherer<'a>(run: &'a Run, sessions: &'a Sessions, room: usize) -> Gatherer<'a> {
    Gatherer {
        longest: LONGEST.min(room / 2),
        config: run.config,
        redactor: run.redactor,
        sessions,
        reporter: run.reporter,
        vars: run.caller.vars(),
    }
}

/// What the claimed entries are, by queue id. A dry run has claimed none.
pub(super) fn entries(run: &Run) -> Result<BTreeMap<String, QueueEntry>> {
    let mut all = run.batch()?.claimed()?;
    if run.is_dry() {
        all.extend(Journal::at(run.root).waiting()?.0);
    }
    Ok(all.into_iter().map(|waiting| (waiting.id, waiting.entry)).collect())
}

/// A dry run has claimed nothing: now that its reply is applied, its entries are.
///
/// # Errors
/// `Conflict`: an entry has been consumed since.
pub(crate) fn claim_for(batch: &Batch, sources: &[BatchSource], root: &Root) -> Result<()> {
    let (waiting, _) = Journal::at(root).waiting()?;
    // Those that it has already, because this is not the first attempt.
    let claimed = batch.claimed()?;
    for source in sources {
        let is_this = |waiting: &&Waiting| waiting.id == source.queue_id;
        let is_claimed = match waiting.iter().find(is_this) {
            Some(waiting) => batch.claim(waiting)?,
            None => claimed.iter().any(|claimed| is_this(&claimed)),
        };
        if !is_claimed {
            batch.put_all_back()?;
            return Err(Error::conflict(format!("\"{}\" no longer waits in the queue", source.queue_id))
                .hint("another run has taken it; run again without --apply"));
        }
    }
    Ok(())
}

/// How many entries wait, claimed ones included.
pub(crate) fn waiting(root: &Root) -> Result<usize> {
    let (waiting, unreadable) = Journal::at(root).waiting()?;
    let mut count = waiting.len() + unreadable.len();
    for batch in Batches::of_queue(root).all()? {
        count += batch.claimed()?.len();
    }
    Ok(count)
}

/// How many sessions wait, of those that are asked for.
pub(crate) fn sessions_waiting(root: &Root, only: Option<&BTreeSet<String>>) -> Result<usize> {
    let (waiting, _) = Journal::at(root).waiting()?;
    let is_session = |retrieval: &Retrieval| !matches!(retrieval, Retrieval::Inline { .. });
    let is_meant = |waiting: &&Waiting| only.is_none_or(|only| only.contains(&waiting.id));
    Ok(waiting.iter().filter(is_meant).filter(|waiting| is_session(&waiting.entry.retrieval)).count())
}

/// Puts everything in `inbox/.failed` back, as if it had never been tried.
pub(crate) fn retry_failed(root: &Root, reporter: &Reporter) -> Result<()> {
    // Forgotten first: what is back in the queue must not fail for good at once.
    let journal = Journal::at(root);
    let failed = journal.failed()?;
    let mut tries = Tries::load(root)?;
    for id in &failed {
        tries.forget(id);
    }
    tries.save(root)?;
    journal.retry(&failed)?;
    match failed.len() {
        0 => {}
        1 => reporter.warn("1 failed entry is back in the queue"),
        count => reporter.warn(&format!("{count} failed entries are back in the queue")),
    }
    Ok(())
}
