//! What is to be asked about: what no call has seen yet, unless calls about it have failed and it rests.

use crate::base::error::Result;
use crate::memory::defrag::corpus;
use crate::memory::defrag::reach::Reach;
use crate::memory::defrag::work::{Part, Work};
use crate::memory::hash::hash;
use crate::memory::pipeline::Failure;
use crate::memory::pipeline::runner::Run;
use crate::memory::pipeline::saved::Kind;
use crate::store::entry::EntryId;
use crate::store::ledger::DefragLedger;
use crate::store::persistence::Persistence;
use jiff::Timestamp;
use std::collections::BTreeSet;

/// What calls have seen so far, and what may be asked about now.
pub(crate) struct News {
    pub(super) seen: DefragLedger,
    /// Asks about what has not changed, too.
    is_forced: bool,
    /// What failed night after night is skipped for a while; not when a person asks.
    skips_failures: bool,
    /// The command's hash: another command may do better.
    command: String,
    now: Timestamp,
}

impl News {
    pub(super) fn load(run: &Run, is_forced: bool) -> Result<News> {
        Ok(News {
            seen: DefragLedger::load(run.root)?,
            is_forced,
            skips_failures: run.kind == Kind::Run && !is_forced,
            command: hash(run.config.llm.command_line().unwrap_or_default()),
            now: run.env.now(),
        })
    }

    /// How many notes there are, if the last defrag has not seen one of them as it is now, or has left a decision.
    pub(super) fn count<P: Persistence>(&self, notes: &P) -> Result<Option<usize>> {
        let notes = corpus::marks(notes)?;
        let is_new =
            |note: &corpus::Marked| self.is_news(&note.id, &note.mark) || self.are_tiers_wanted(&note.reach);
        let has_news = !notes.is_empty() && (self.is_forced || notes.iter().any(is_new));
        Ok(has_news.then_some(notes.len()))
    }

    /// Has no call seen this note as it is, and may one be made for it?
    pub(super) fn is_news(&self, id: &EntryId, mark: &str) -> bool {
        !self.seen.has(id, mark) && !self.rests(id.as_str(), mark)
    }

    /// Is it to be decided what is hot among these notes, and may a call be made for that?
    pub(super) fn are_tiers_wanted(&self, reach: &Reach) -> bool {
        self.seen.are_tiers_due(reach.name()) && !self.rests(reach.name(), "")
    }

    fn rests(&self, key: &str, mark: &str) -> bool {
        self.skips_failures && self.seen.is_postponed(key, &self.asked_of(mark), self.now)
    }

    /// What a call was about, and who was asked.
    fn asked_of(&self, mark: &str) -> String {
        format!("{mark} {}", self.command)
    }

    /// Remembers that the call about the part under way has failed, where it was about what no call had seen.
    pub(super) fn take_failure(mut self, work: &Work, failure: &Failure, run: &Run) -> Result<()> {
        let (Failure::Command(why) | Failure::Reply(why)) = failure else { return Ok(()) };
        let new = work.shown.iter().filter(|(id, mark)| !self.seen.has(id, mark));
        let mut about: Vec<(&str, &str)> = match work.part() {
            Some(Part::Tiers(_)) => Vec::new(),
            _ => new.map(|(id, mark)| (id.as_str(), mark.as_str())).collect(),
        };
        match work.part() {
            Some(Part::Tiers(reach)) => about.push((reach.name(), "")),
            // It decides about the tiers, too.
            Some(Part::Whole(reach, _)) if self.seen.are_tiers_due(reach.name()) => {
                about.push((reach.name(), ""));
            }
            _ => {}
        }
        let mut until = self.now;
        for (key, mark) in about {
            let of = self.asked_of(mark);
            until = until.max(self.seen.fail(key, &of, why, &work.batch, self.now));
        }
        self.seen.save(run.root)?;
        if until > self.now {
            let until = until.strftime("%Y-%m-%d %H:%M");
            run.reporter
                .warn(&format!("it has failed before, and is not asked again until {until} UTC or --force"));
        }
        Ok(())
    }

    /// Nothing is asked, but there is something that could be.
    pub(super) fn tell_what_rests(&self, run: &Run) {
        let Some((count, failure)) = self.seen.postponed(self.now) else { return };
        let until = failure.not_before.strftime("%Y-%m-%d %H:%M");
        let notes = if count == 1 { "1 note is".to_owned() } else { format!("{count} notes are") };
        run.reporter.warn(&format!(
            "{notes} not asked about until {until} UTC (--force asks now), because that failed {} times: {}",
            failure.tries, failure.error
        ));
    }
}

/// Forgets the notes that are gone.
pub(super) fn forget_gone<P: Persistence>(seen: &mut DefragLedger, notes: &P) -> Result<()> {
    let there: BTreeSet<EntryId> = corpus::marks(notes)?.into_iter().map(|note| note.id).collect();
    seen.keep(|id| there.contains(id));
    Ok(())
}
