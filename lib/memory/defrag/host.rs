//! What the states of the machine do to a store of files: the notes, the history, AGENTS.md.

use crate::base::error::Result;
use crate::base::file;
use crate::base::text::one_line;
use crate::memory::defrag::applied::{Applied, applied, applied_name, carry_out};
use crate::memory::defrag::corpus::{Corpus, id, read};
use crate::memory::defrag::divide::divide;
use crate::memory::defrag::news::{News, record, remember_use};
use crate::memory::defrag::plan::{DefragPlan, Inventory, Planned, Summary, counts, waits};
use crate::memory::defrag::reply::Verb;
use crate::memory::defrag::{Defrag, DefragWork, Scanned};
use crate::memory::pipeline::call::{Kind, RunEnv};
use crate::memory::pipeline::host::{Answerer, BatchProgress, Host};
use crate::memory::pipeline::{Begun, Failure};
use crate::memory::section::{self, Which};
use crate::store::batch::Batches;
use crate::store::entry::EntryId;
use crate::store::persistence::{Persistence, warn_of};
use crate::store::place::Root;
use jiff::Timestamp;
use std::collections::BTreeSet;

/// The file of a batch with what was found out about all notes.
const STRUCTURE: &str = "structure.json";

pub struct DefragHost<'a, P> {
    pub pipeline: Defrag<'a>,
    pub notes: P,
    /// Asks about what has not changed, too.
    pub is_forced: bool,
    pub summary: Summary,
}

impl<'a, P: Persistence> Host for DefragHost<'a, P> {
    type Pipeline = Defrag<'a>;

    fn pipeline(&self) -> &Defrag<'a> {
        &self.pipeline
    }

    fn batches(root: &Root) -> (Batches, Batches, &'static str) {
        (Batches::of_defrag(root), Batches::of_queue(root), "memory-consolidate")
    }

    fn begin(&mut self, run: &mut RunEnv) -> Result<Begun<DefragWork>> {
        let news = News::load(run, self.is_forced)?;
        let (notes, _) = read(&self.notes)?;
        if !news.is_any(&notes) {
            if run.kind == Kind::Run {
                news.tell_what_rests();
                remember_use(&notes, run)?;
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
        Ok(Begun::Work(DefragWork::new(batch.id.clone(), scanned)))
    }

    /// Finds what belongs together among all notes.
    fn divide(&mut self, work: DefragWork, run: &mut RunEnv) -> Result<DefragWork> {
        let mut news = News::load(run, work.own.is_forced)?;
        let (notes, broken) = read(&self.notes)?;
        warn_of(&broken, run.reporter);
        let is_asked = |note: &_| news.is_asked(note);
        let divided = divide(&self.pipeline, &notes, &is_asked, &|reach| news.are_tiers_due(reach))?;
        run.batch()?.write_json(STRUCTURE, &divided.structure)?;
        for note in &divided.too_large {
            run.reporter.warn(&format!(
                "{} \"{}\" is larger than a call has room for, and is not asked about: split it by hand, or raise \
                 llm.maxPromptBytes",
                id(note),
                one_line(&note.entry.meta().title, 80)
            ));
        }
        news.pass_over(&divided.too_large)?;
        Ok(DefragWork { parts: divided.parts, ..work })
    }

    fn gather(&mut self, _: &DefragWork, run: &RunEnv) -> Result<Corpus> {
        // The setting may have been changed since the notes were shared out.
        self.pipeline.room()?;
        let structure = run.batch()?.read_json(STRUCTURE)?;
        Ok(Corpus { notes: read(&self.notes)?.0, structure, today: run.env.today() })
    }

    fn look_up(&mut self, work: &DefragWork, run: &RunEnv) -> Result<Inventory> {
        look_up(&self.notes, work, run.env.now())
    }

    fn apply(&mut self, work: &DefragWork, plan: DefragPlan, _: usize, run: &RunEnv) -> Result<usize> {
        // Once it is written down what was done, nobody's later change of a note makes it undone.
        let (batch, name) = (run.batch()?, applied_name(work.next));
        let done = if file::exists(&batch.file(&name))? {
            let before: Applied = batch.read_json(&name)?;
            DefragPlan { operations: before.made, proposals: Vec::new(), ..plan }
        } else {
            let done = carry_out(&self.notes, plan)?;
            if !run.is_dry() {
                let (made, proposed) = (done.operations.clone(), done.proposals.len());
                batch.write_json(&name, &Applied { made, proposed, ..Applied::default() })?;
            }
            done
        };
        // A dry run shows them with its plan.
        if !run.is_dry() {
            News::load(run, false)?.take_in(&self.notes, work, &done)?;
            done.warnings.iter().for_each(|warning| run.reporter.warn(warning));
            done.dropped.iter().for_each(|one| run.reporter.warn(&one.to_string()));
            done.proposals.iter().for_each(|one| run.reporter.warn(&waits(one)));
        }
        let archived = done.operations.iter().filter(|planned| planned.op == Verb::Archive).count();
        self.summary.add(done);
        Ok(archived)
    }

    fn close(&mut self, work: &DefragWork, failure: Option<&Failure>, run: &RunEnv) -> Result<()> {
        let Some(failure) = failure.filter(|_| !run.is_dry()) else { return Ok(()) };
        News::load(run, work.own.is_forced)?.take_failure(work, failure)
    }

    fn refresh(&mut self, _: &DefragWork, run: &RunEnv) -> Result<()> {
        if !run.is_dry() {
            remember_use(&read(&self.notes)?.0, run)?;
        }
        self.refresh_targets(run)
    }

    fn commit(&mut self, _: &DefragWork, run: &RunEnv) -> Result<()> {
        if run.is_dry() {
            return Ok(());
        }
        let applied = applied(run.batch()?)?;
        let proposed: usize = applied.iter().map(|applied| applied.proposed).sum();
        let made: Vec<Planned> = applied.into_iter().flat_map(|applied| applied.made).collect();
        let revisions = made.iter().flat_map(|planned| &planned.revisions);
        record(&self.notes, format!("defrag: {}", counts(&made, proposed)), revisions, proposed, run);
        Ok(())
    }

    fn begins_again(&self) -> bool {
        false
    }

    /// Nobody is to be asked about notes that are half changed.
    fn is_held_up(&mut self, run: &RunEnv) -> Result<bool> {
        self.refresh_targets(run)?;
        Ok(true)
    }

    /// The groups of a batch are kept: notes that were merged since would be shared out in another way, and asked about
    /// once more. What is long ago is begun anew with the notes that have come since.
    fn take_up(&self, progress: &BatchProgress, has_reply: bool, run: &RunEnv) -> Option<Answerer> {
        let may_ask = !progress.is_old(run.env.now()) && run.config.llm.command.is_some();
        match (has_reply, progress.answers) {
            (false, 0) => None,
            (false, _) if progress.awaits.is_some() && !may_ask => Some(Answerer::Nobody),
            _ => Some(Answerer::Command),
        }
    }

    /// The batch is kept if it changed anything: it is the one that can be taken back, in the place of an earlier one.
    fn keeps(&self, run: &RunEnv, progress: &BatchProgress) -> Result<bool> {
        let batch = run.batch()?;
        if run.is_dry() || applied(batch)?.iter().all(|applied| applied.made.is_empty()) {
            return Ok(false);
        }
        for other in Batches::of_defrag(run.root).all()? {
            // One that a person began may come to its end after a later one.
            let is_earlier = |other: &BatchProgress| other.is_over && other.begun <= progress.begun;
            if other.id != batch.id && other.load().ok().flatten().as_ref().is_some_and(is_earlier) {
                other.end()?;
            }
        }
        Ok(true)
    }
}

impl<P: Persistence> DefragHost<'_, P> {
    /// A target may be new, and what people changed by hand is for agents too.
    fn refresh_targets(&mut self, run: &RunEnv) -> Result<()> {
        if !run.is_dry() {
            self.summary.targets =
                section::refresh(Which::All, run.config, run.root, run.env.today(), Some(run.reporter))?;
        }
        Ok(())
    }
}

/// What the notes that were shown are now, and which ids and names are taken.
///
/// # Errors
/// The store cannot be read.
pub fn look_up<P: Persistence>(notes: &P, work: &DefragWork, at: Timestamp) -> Result<Inventory> {
    let wanted: BTreeSet<&EntryId> = work.notes().collect();
    let mut seen = read(notes)?;
    // What fails in passing may succeed a moment later.
    if !seen.1.is_empty() && wanted.iter().any(|wanted| seen.0.iter().all(|note| id(note) != *wanted)) {
        seen = read(notes)?;
    }
    let mut shown = seen.0;
    shown.retain(|note| wanted.contains(id(note)));
    let (ids, paths) = notes.ids_and(|note| note.place.path(&note.name()))?;
    let (proposals, _) = notes.proposals()?;
    let proposed = proposals.into_iter().filter_map(|proposal| proposal.note).collect();
    Ok(Inventory { at, notes: shown, ids, proposed, paths: paths.into_iter().collect() })
}
