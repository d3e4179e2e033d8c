//! The real adapters: the notes, the command, AGENTS.md, the history. What the machine asks for is done here.

use crate::config::memory::MemoryConfig;
use crate::ground::cli::Notes;
use crate::ground::env::Env;
use crate::ground::error::{Error, Result};
use crate::memory::call::{self, Asked, Caller, Kind, Question, Why};
use crate::memory::defrag::apply::applied;
use crate::memory::defrag::ask;
use crate::memory::defrag::corpus::{self, Marked};
use crate::memory::defrag::plan::{self, Dropped, Known, Plan, Planned};
use crate::memory::defrag::reach::Reach;
use crate::memory::defrag::reply;
use crate::memory::defrag::work::{Part, Work};
use crate::memory::defrag::{Adapters, Judged, State};
use crate::memory::hash::hash;
use crate::memory::redact::Redactor;
use crate::memory::section::{self, Outcome};
use crate::store::batch::{Batch, Batches};
use crate::store::entry::EntryId;
use crate::store::history;
use crate::store::ledger::Seen;
use crate::store::persistence::{Note, Persistence};
use crate::store::place::Root;
use crate::store::topics::{Topics, is_taken};
use std::collections::BTreeSet;

pub(crate) struct Desk<'a> {
    pub(crate) config: &'a MemoryConfig,
    pub(crate) root: &'a Root,
    pub(crate) env: &'a Env,
    pub(crate) notes: &'a Notes,
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
        self.batch.as_ref().ok_or_else(no_batch)
    }

    pub(crate) fn topics(&self) -> Topics {
        Topics::at(self.root)
    }

    /// How many notes there are, if the last defrag has not seen one of them as it is now, or has left a decision.
    pub(crate) fn news(&self) -> Result<Option<usize>> {
        let seen = Seen::load(self.root)?;
        let notes = corpus::marks(&self.topics())?;
        let is_new = |note: &Marked| {
            self.is_news(&seen, &note.id, &note.mark) || self.are_tiers_wanted(&seen, &note.reach)
        };
        let has_news = !notes.is_empty() && (self.is_forced || notes.iter().any(is_new));
        Ok(has_news.then_some(notes.len()))
    }

    /// Has no call seen this note as it is, and may one be made for it?
    pub(crate) fn is_news(&self, seen: &Seen, id: &EntryId, mark: &str) -> bool {
        !seen.has(id, mark) && !self.rests(seen, id.as_str(), mark)
    }

    /// Is it to be decided what is hot among these notes, and may a call be made for that?
    pub(crate) fn are_tiers_wanted(&self, seen: &Seen, reach: &Reach) -> bool {
        seen.are_tiers_due(reach.name()) && !self.rests(seen, reach.name(), "")
    }

    /// What failed night after night is let alone for a while; not by a person who asks.
    fn rests(&self, seen: &Seen, key: &str, mark: &str) -> bool {
        self.kind == Kind::Run && !self.is_forced && seen.rests(key, &self.asked_of(mark), self.env.now())
    }

    /// What a call was about, and who was asked: another command may do better.
    fn asked_of(&self, mark: &str) -> String {
        let command = self.config.llm.command_line().unwrap_or_default();
        format!("{mark} {}", hash(command))
    }

    /// Takes note that the call about the part under way has failed, where it was about what no call had seen.
    pub(crate) fn take_failure(&self, work: &Work, why: &Why) -> Result<()> {
        let (Why::Agent(why) | Why::Reply(why)) = why else { return Ok(()) };
        let (mut seen, now) = (Seen::load(self.root)?, self.env.now());
        let mut fail = |key: &str, mark: &str| seen.fail(key, &self.asked_of(mark), why, &work.batch, now);
        let until = match work.part() {
            Some(Part::Tiers(reach)) => Some(fail(reach.name(), "")),
            _ => {
                let known = Seen::load(self.root)?;
                let new = work.shown.iter().filter(|(id, mark)| !known.has(id, mark));
                new.map(|(id, mark)| fail(id.as_str(), mark)).max()
            }
        };
        seen.save(self.root)?;
        if let Some(until) = until.filter(|until| *until > now) {
            let until = until.strftime("%Y-%m-%d %H:%M");
            self.notes
                .warn(&format!("it has failed before, and is not asked again until {until} UTC or --force"));
        }
        Ok(())
    }

    /// Takes what became of these notes into the history.
    pub(crate) fn record<'b>(&self, message: String, ids: impl Iterator<Item = &'b EntryId>) {
        let ids: BTreeSet<&EntryId> = ids.collect();
        let topics = self.topics();
        let changed: Vec<Note> = ids.into_iter().filter_map(|id| topics.find_own(id).ok()).collect();
        if let Err(why) = history::record(self.root, &self.config.storage, message, &changed, self.env) {
            self.notes.warn(&why);
        }
    }

    pub(crate) fn refresh_targets(&mut self) -> Result<()> {
        self.tally.targets = section::refresh(self.config, self.root, self.notes)?;
        Ok(())
    }
}

fn no_batch() -> Error {
    Error::io("there is no batch")
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
