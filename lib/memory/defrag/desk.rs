//! The real adapters: the notes, the command, AGENTS.md, the history. What the machine asks for is done here.

use crate::base::cli::Reporter;
use crate::base::env::Env;
use crate::base::error::Result;
use crate::config::memory::MemoryConfig;
use crate::memory::call::{self, Asked, Caller, Kind, Question};
use crate::memory::defrag::applied::applied;
use crate::memory::defrag::ask;
use crate::memory::defrag::corpus;
use crate::memory::defrag::plan::{self, Dropped, Known, Plan, Planned};
use crate::memory::defrag::reply;
use crate::memory::defrag::work::Work;
use crate::memory::defrag::{Adapters, Judged, State};
use crate::memory::redact::Redactor;
use crate::memory::section::{self, Outcome};
use crate::store::batch::{Batch, Batches};
use crate::store::entry::EntryId;
use crate::store::history;
use crate::store::persistence::{Note, Persistence};
use crate::store::place::Root;
use crate::store::topics::{Topics, is_taken};
use std::collections::BTreeSet;

pub(crate) struct Desk<'a> {
    pub(crate) config: &'a MemoryConfig,
    pub(crate) root: &'a Root,
    pub(crate) env: &'a Env,
    pub(crate) reporter: &'a Reporter,
    pub(crate) redactor: &'a Redactor,
    pub(crate) caller: Caller<'a>,
    pub(crate) kind: Kind,
    /// Asks about what has not changed, too.
    pub(crate) is_forced: bool,
    /// More may be lost than the shares say.
    pub(crate) allows_loss: bool,
    pub(crate) batch: Option<Batch>,
    /// How many notes are as before a batch whose undoing was carried on, and which batch.
    pub(crate) undone: Option<(usize, String)>,
    pub(crate) tally: Tally,
}

/// What a run has come to.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) made: Vec<Planned>,
    pub(crate) dropped: Vec<Dropped>,
    /// Operations that are none, and links that lead nowhere.
    pub(crate) warnings: Vec<String>,
    pub(crate) remarks: Vec<String>,
    pub(crate) targets: Vec<Outcome>,
}

impl Desk<'_> {
    /// The batch that is under way.
    pub(crate) fn batch(&self) -> Result<&Batch> {
        call::under_way(&self.batch)
    }

    pub(crate) fn topics(&self) -> Topics {
        Topics::at(self.root)
    }

    /// Takes what became of these notes into the history.
    pub(crate) fn record<'b>(&self, message: String, ids: impl Iterator<Item = &'b EntryId>) {
        let ids: BTreeSet<&EntryId> = ids.collect();
        let topics = self.topics();
        let changed: Vec<Note> = ids.into_iter().filter_map(|id| topics.find_own(id).ok()).collect();
        if let Err(error) = history::record(self.root, &self.config.storage, message, &changed, self.env) {
            self.reporter.warn(&error.line());
        }
    }

    pub(crate) fn refresh_targets(&mut self) -> Result<()> {
        self.tally.targets = section::refresh(self.config, self.root, self.reporter)?;
        Ok(())
    }
}

impl Adapters for Desk<'_> {
    fn scan_entries(&mut self) -> Result<Option<Work>> {
        let Some(total) = self.news()? else { return Ok(None) };
        let batch = Batches::of_defrag(self.root).begin()?;
        let mut work = Work::new(&batch.id, self.kind, self.env.now(), self.is_forced);
        work.total = total;
        self.batch = Some(batch);
        Ok(Some(work))
    }

    fn analyze_structure(&mut self, work: &mut Work) -> Result<()> {
        self.share_out(work)
    }

    fn run_agent(&mut self, work: &mut Work, faults: &[String]) -> Result<Asked> {
        let (batch, is_repair) = (self.batch()?, !faults.is_empty());
        if self.caller.take_up_unfinished(batch, work.next, is_repair)? {
            return Ok(Asked::Replied);
        }
        let allows = self.allows(work);
        let prompt = match is_repair {
            true => {
                let rules = ask::rules(allows.texts, allows.tiers);
                self.caller.repair(batch, work.next, &rules, faults)?
            }
            false => self.prompt(work)?,
        };
        batch.save(&State::RunAgent { work: work.clone(), faults: faults.to_vec() })?;
        let part = (work.next, work.parts.len());
        self.caller.launch(Question { batch, part, is_repair, is_dry: work.kind == Kind::Dry, prompt })
    }

    fn judge(&mut self, work: &Work, is_final: bool) -> Result<Judged> {
        let text = call::reply(self.batch()?, work.next)?.unwrap_or_default();
        let (reply, faults) = match reply::parse(&text, &work.batch) {
            Ok((_, faults)) if !faults.is_empty() && !is_final => return Ok(Judged::Faulty(faults)),
            Ok(parsed) => parsed,
            Err(faults) => return Ok(Judged::Faulty(faults)),
        };
        let topics = self.topics();
        let (notes, _) = corpus::read(&topics, |id| work.shown.contains_key(id))?;
        let plan = plan::plan(
            &reply,
            faults,
            Known {
                at: self.env.now(),
                notes,
                shown: &work.shown,
                ids: topics.ids()?,
                total: work.total,
                archived: work.archived,
                allows: self.allows(work),
                is_taken: &|place, name| is_taken(&topics.dir(place).join(name)),
                clean: &|text| self.clean(text),
            },
        );
        Ok(Judged::Plan(plan))
    }

    fn apply_changes(&mut self, work: &mut Work, plan: &Plan) -> Result<()> {
        self.apply_part(work, plan)
    }

    fn generate_agents_md(&mut self, _work: &Work) -> Result<()> {
        self.refresh_targets()
    }

    fn commit(&mut self, _work: &Work) -> Result<()> {
        let applied = applied(self.batch()?)?;
        let made: Vec<&Planned> = applied.iter().flat_map(|applied| &applied.made).collect();
        if !made.is_empty() {
            let counts = crate::memory::defrag::show::counts(made.iter().copied());
            let ids = made.iter().flat_map(|planned| &planned.revisions).map(|revision| &revision.id);
            self.record(format!("defrag: {counts}"), ids);
        }
        Ok(())
    }
}
