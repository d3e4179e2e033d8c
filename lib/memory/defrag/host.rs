//! What the machine's tasks do to a store of files: the notes, the history, AGENTS.md.

use crate::base::error::{Error, Result};
use crate::memory::defrag::Defrag;
use crate::memory::defrag::apply::applied;
use crate::memory::defrag::apply::apply;
use crate::memory::defrag::corpus;
use crate::memory::defrag::dropped::Dropped;
use crate::memory::defrag::limits::Limits;
use crate::memory::defrag::material::Material;
use crate::memory::defrag::news::{News, remember_use};
use crate::memory::defrag::plan::{Found, Plan, Planned};
use crate::memory::defrag::reply::Op;
use crate::memory::defrag::show;
use crate::memory::defrag::structure::{STRUCTURE, Structure, Wanted, share_out};
use crate::memory::defrag::work::{Part, Scanned, Work};
use crate::memory::pipeline::runner::{Host, Run, TakeUp};
use crate::memory::pipeline::saved::{Kind, Progress};
use crate::memory::pipeline::{Begun, Failure};
use crate::memory::section::{self, Outcome};
use crate::store::batch::Batches;
use crate::store::entry::EntryId;
use crate::store::history;
use crate::store::persistence::{Note, Persistence, warn_of};
use crate::store::place::Root;
use crate::store::proposal::Proposal;
use crate::store::revision::Revision;
use jiff::Timestamp;
use std::collections::BTreeSet;

pub struct DefragHost<'a, P> {
    pub pipeline: Defrag<'a>,
    pub notes: P,
    /// Asks about what has not changed, too.
    pub is_forced: bool,
    pub summary: Summary,
}

/// What a run has come to.
#[derive(Debug, Default)]
pub struct Summary {
    pub made: Vec<Planned>,
    pub dropped: Vec<Dropped>,
    /// What waits for a person.
    pub proposals: Vec<Proposal>,
    /// Operations that are none, and links that lead nowhere.
    pub warnings: Vec<String>,
    pub remarks: Vec<String>,
    pub targets: Vec<Outcome>,
    /// How many notes there were.
    pub total: usize,
}

impl<'a, P: Persistence> Host for DefragHost<'a, P> {
    type Pipeline = Defrag<'a>;

    fn pipeline(&self) -> &Defrag<'a> {
        &self.pipeline
    }

    fn batches(root: &Root) -> (Batches, Batches, &'static str) {
        (Batches::of_defrag(root), Batches::of_queue(root), "memory-consolidate")
    }

    fn begin(&mut self, run: &mut Run) -> Result<Begun<Work>> {
        let news = News::load(run, self.is_forced)?;
        let notes = corpus::marks(&self.notes)?;
        if !news.is_any(&notes) {
            if run.kind == Kind::Run {
                news.tell_what_rests(run);
                remember_use(&notes, run.root)?;
                self.refresh_targets(run)?;
            }
            return Ok(Begun::Nothing);
        }
        if run.kind == Kind::Run {
            let failure = match run.config.llm.command {
                None => Some(Failure::NoCommand),
                // Asked for before anything is read that cannot be asked about.
                Some(_) => run.budget.spent(run.env.now())?.map(Failure::Spent),
            };
            if let Some(failure) = failure {
                self.refresh_targets(run)?;
                return Ok(Begun::Unable(failure));
            }
        }
        self.summary.total = notes.len();
        let batch = run.batch.insert(Batches::of_defrag(run.root).begin()?);
        let scanned = Scanned { is_forced: self.is_forced, total: notes.len(), ..Scanned::default() };
        Ok(Begun::Work(Work::new(batch.id.clone(), scanned)))
    }

    /// Finds what belongs together among all notes.
    fn divide(&mut self, work: Work, run: &mut Run) -> Result<Work> {
        let is_forced = work.own.is_forced;
        let mut news = News::load(run, is_forced)?;
        let (notes, broken) = corpus::read(&self.notes, |_| true)?;
        warn_of(&broken, run.reporter);
        let wanted = Wanted {
            is_news: &|note| news.is_news(note.id(), &note.mark, note.meta().until),
            are_tiers_wanted: &|reach| news.are_tiers_wanted(reach),
            is_forced,
        };
        let shared = share_out(&notes, &wanted, self.limits(run), self.pipeline.redactor)?;
        run.batch()?.write_json(STRUCTURE, &shared.structure)?;
        for note in &shared.too_large {
            run.reporter.warn(&format!(
                "{} \"{}\" is larger than a call has room for, and is not asked about: split it by hand, or raise \
                 llm.maxPromptBytes",
                note.id(),
                crate::base::text::one_line(&note.meta().title, 80)
            ));
            news.seen.see(note.id().clone(), note.mark.clone());
            news.seen.see_expired(note.id(), note.meta().is_expired(run.env.today()));
        }
        if !run.is_dry() && !shared.too_large.is_empty() {
            news.seen.save(run.root)?;
        }
        Ok(Work { parts: shared.parts, ..work })
    }

    fn gather(&mut self, work: &Work, run: &Run) -> Result<Material> {
        let Some(part) = work.part() else { return Err(Error::corrupt("the batch has no such part")) };
        let structure: Structure = run.batch()?.read_json(STRUCTURE)?;
        let wanted: Option<BTreeSet<&EntryId>> = match part {
            Part::Group(_, ids) => Some(ids.iter().collect()),
            Part::Whole(..) | Part::Tiers(_) => None,
        };
        let is_wanted = |id: &EntryId| wanted.as_ref().is_none_or(|wanted| wanted.contains(id));
        let (notes, _) = corpus::read(&self.notes, is_wanted)?;
        Material::of(part, notes, &structure, self.limits(run), self.pipeline.redactor, run.env.today())
    }

    fn look_up(&mut self, work: &Work, run: &Run) -> Result<Found> {
        look_up(&self.notes, work, run.env.now())
    }

    fn apply(&mut self, work: &Work, plan: Plan, _: usize, run: &Run) -> Result<usize> {
        let (made, dropped, proposals) = apply(&self.notes, work, &plan, run)?;
        // A dry run shows them with its plan.
        if !run.is_dry() {
            plan.warnings.iter().for_each(|warning| run.reporter.warn(warning));
            dropped.iter().for_each(|one| run.reporter.warn(&one.to_string()));
            proposals.iter().for_each(|one| run.reporter.warn(&show::waits(one)));
        }
        let archived = made.iter().filter(|planned| planned.op == Op::Archive).count();
        self.summary.made.extend(made);
        self.summary.dropped.extend(dropped);
        self.summary.proposals.extend(proposals);
        self.summary.warnings.extend(plan.warnings);
        self.summary.remarks.extend(Some(plan.remark).filter(|remark| !remark.is_empty()));
        Ok(archived)
    }

    fn close(&mut self, work: &Work, failure: Option<&Failure>, run: &Run) -> Result<()> {
        match failure.filter(|_| !run.is_dry()) {
            Some(failure) => News::load(run, work.own.is_forced)?.take_failure(work, failure, run),
            None => Ok(()),
        }
    }

    fn refresh(&mut self, run: &Run) -> Result<()> {
        if !run.is_dry() {
            remember_use(&corpus::marks(&self.notes)?, run.root)?;
        }
        self.refresh_targets(run)
    }

    fn commit(&mut self, _: &Work, run: &Run) -> Result<()> {
        if run.is_dry() {
            return Ok(());
        }
        let applied = applied(run.batch()?)?;
        let made: Vec<&Planned> = applied.iter().flat_map(|applied| &applied.made).collect();
        let proposed: usize = applied.iter().map(|applied| applied.proposed).sum();
        if !made.is_empty() || proposed > 0 {
            let counts = show::counts(made.iter().copied(), proposed);
            let revisions = made.iter().flat_map(|planned| &planned.revisions);
            let ids: Vec<EntryId> = revisions.filter_map(Revision::id).collect();
            record(&self.notes, format!("defrag: {counts}"), ids.iter(), proposed, run);
        }
        Ok(())
    }

    fn begins_again(&self) -> bool {
        false
    }

    /// Nobody is to be asked about notes that are half changed.
    fn is_held_up(&mut self, run: &Run) -> Result<bool> {
        self.refresh_targets(run)?;
        Ok(true)
    }

    /// The groups of a batch are kept: notes that were merged since would be shared out in another way, and asked about
    /// once more. What is long ago is begun anew with the notes that have come since.
    fn take_up(&self, progress: &Progress, has_reply: bool, run: &Run) -> TakeUp {
        let is_asked = progress.awaits.is_some();
        match (has_reply, progress.answers) {
            (true, _) => TakeUp::CarryOn,
            (false, 0) => TakeUp::Drop,
            (false, _) if is_asked && progress.is_old(run.env.now()) => TakeUp::Close,
            (false, _) if is_asked && run.config.llm.command.is_none() => TakeUp::Close,
            (false, _) => TakeUp::CarryOn,
        }
    }

    /// The batch is kept if it changed anything: it is the one that can be taken back, in the place of an earlier one.
    fn keeps(&self, run: &Run, progress: &Progress) -> Result<bool> {
        let batch = run.batch()?;
        if run.is_dry() || applied(batch)?.iter().all(|applied| applied.made.is_empty()) {
            return Ok(false);
        }
        for other in Batches::of_defrag(run.root).all()? {
            // One that a person began may come to its end after a later one.
            let is_earlier = |other: &Progress| other.is_over && other.begun <= progress.begun;
            if other.id != batch.id && Progress::of(&other).ok().flatten().as_ref().is_some_and(is_earlier) {
                other.end()?;
            }
        }
        Ok(true)
    }
}

impl<P: Persistence> DefragHost<'_, P> {
    fn limits(&self, run: &Run) -> Limits {
        Limits {
            max_prompt_bytes: self.pipeline.max_prompt_bytes,
            max_hot_tokens: run.config.agents_md.max_hot_tokens,
        }
    }

    /// A target may be new, and what people changed by hand is for agents too.
    fn refresh_targets(&mut self, run: &Run) -> Result<()> {
        if !run.is_dry() {
            self.summary.targets =
                section::refresh(None, run.config, run.root, run.env.today(), Some(run.reporter))?;
        }
        Ok(())
    }
}

/// What the notes that were shown are now, and which ids and names are taken.
///
/// # Errors
/// The store cannot be read.
pub fn look_up<P: Persistence>(notes: &P, work: &Work, at: Timestamp) -> Result<Found> {
    let wanted: BTreeSet<&EntryId> = work.notes().collect();
    let (shown, _) = corpus::read(notes, |id| wanted.contains(id))?;
    let (ids, names) = notes.ids_and(|note| (note.place, note.name().to_string_lossy().into_owned()))?;
    let (proposals, _) = notes.proposals()?;
    let waiting = proposals.into_iter().filter_map(|proposal| proposal.note).collect();
    Ok(Found { at, notes: shown, ids, waiting, names: names.into_iter().collect() })
}

/// Takes what became of these notes into the history. What goes wrong is a warning.
pub(super) fn record<'b, P: Persistence>(
    notes: &P,
    message: String,
    ids: impl Iterator<Item = &'b EntryId>,
    proposed: usize,
    run: &Run,
) {
    let ids: BTreeSet<&EntryId> = ids.collect();
    let changed: Vec<Note> = ids.into_iter().filter_map(|id| notes.find_own(id).ok()).collect();
    let sources = changed.iter().flat_map(|note| &note.entry.meta().sources);
    let count = changed.len() + proposed;
    if count == 0 {
        return;
    }
    if let Err(error) =
        history::record(run.root, &run.config.storage, (message, Vec::new()), sources, count, run.env)
    {
        run.reporter.warn(&error.line());
    }
}
