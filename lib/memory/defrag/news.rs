//! What is to be asked about: what no call has seen yet, unless it rests because calls about it have failed.

use crate::base::error::Result;
use crate::memory::call::{Kind, Why};
use crate::memory::defrag::corpus::{self, Marked};
use crate::memory::defrag::desk::Desk;
use crate::memory::defrag::reach::Reach;
use crate::memory::defrag::work::{Part, Work};
use crate::memory::hash::hash;
use crate::store::entry::EntryId;
use crate::store::ledger::DefragLedger;
use std::collections::BTreeSet;

impl Desk<'_> {
    /// How many notes there are, if the last defrag has not seen one of them as it is now, or has left a decision.
    pub(crate) fn news(&self) -> Result<Option<usize>> {
        let seen = DefragLedger::load(self.root)?;
        let notes = corpus::marks(&self.topics())?;
        let is_new = |note: &Marked| {
            self.is_news(&seen, &note.id, &note.mark) || self.are_tiers_wanted(&seen, &note.reach)
        };
        let has_news = !notes.is_empty() && (self.is_forced || notes.iter().any(is_new));
        Ok(has_news.then_some(notes.len()))
    }

    /// Has no call seen this note as it is, and may one be made for it?
    pub(crate) fn is_news(&self, seen: &DefragLedger, id: &EntryId, mark: &str) -> bool {
        !seen.has(id, mark) && !self.rests(seen, id.as_str(), mark)
    }

    /// Is it to be decided what is hot among these notes, and may a call be made for that?
    pub(crate) fn are_tiers_wanted(&self, seen: &DefragLedger, reach: &Reach) -> bool {
        seen.are_tiers_due(reach.name()) && !self.rests(seen, reach.name(), "")
    }

    /// What failed night after night is let alone for a while; not by a person who asks.
    fn rests(&self, seen: &DefragLedger, key: &str, mark: &str) -> bool {
        self.kind == Kind::Run
            && !self.is_forced
            && seen.is_postponed(key, &self.asked_of(mark), self.env.now())
    }

    /// What a call was about, and who was asked: another command may do better.
    fn asked_of(&self, mark: &str) -> String {
        let command = self.config.llm.command_line().unwrap_or_default();
        format!("{mark} {}", hash(command))
    }

    /// Takes note that the call about the part under way has failed, where it was about what no call had seen.
    pub(crate) fn take_failure(&self, work: &Work, why: &Why) -> Result<()> {
        let (Why::Agent(why) | Why::Reply(why)) = why else { return Ok(()) };
        let (mut seen, now) = (DefragLedger::load(self.root)?, self.env.now());
        let new = || work.shown.iter().filter(|(id, mark)| !seen.has(id, mark));
        let notes = || new().map(|(id, mark)| (id.as_str(), mark.as_str()));
        let about: Vec<(&str, &str)> = match work.part() {
            Some(Part::Tiers(reach)) => vec![(reach.name(), "")],
            // It decides about the tiers, too.
            Some(Part::Whole(reach, _)) if seen.are_tiers_due(reach.name()) => {
                notes().chain([(reach.name(), "")]).collect()
            }
            _ => notes().collect(),
        };
        let fail = |(key, mark): (&str, &str)| seen.fail(key, &self.asked_of(mark), why, &work.batch, now);
        let until = about.into_iter().map(fail).max();
        seen.save(self.root)?;
        if let Some(until) = until.filter(|until| *until > now) {
            let until = until.strftime("%Y-%m-%d %H:%M");
            self.reporter
                .warn(&format!("it has failed before, and is not asked again until {until} UTC or --force"));
        }
        Ok(())
    }

    /// Nothing is asked, but there is something that could be.
    pub(crate) fn tell_what_rests(&self) -> Result<()> {
        if let Some((count, failure)) = DefragLedger::load(self.root)?.postponed(self.env.now()) {
            let until = failure.not_before.strftime("%Y-%m-%d %H:%M");
            let notes = if count == 1 { "1 note is".to_owned() } else { format!("{count} notes are") };
            self.reporter.warn(&format!(
                "{notes} not asked about until {until} UTC (--force asks now), because that failed {} times: {}",
                failure.tries, failure.error
            ));
        }
        Ok(())
    }

    pub(crate) fn forget_gone(&self, seen: &mut DefragLedger) -> Result<()> {
        let there: BTreeSet<EntryId> =
            corpus::marks(&self.topics())?.into_iter().map(|note| note.id).collect();
        seen.keep(|id| there.contains(id));
        Ok(())
    }
}
