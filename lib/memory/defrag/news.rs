//! What is to be asked about: what no call has seen yet, unless calls about it have failed and it rests.

use crate::base::error::Result;
use crate::memory::defrag::corpus::{self, Marked};
use crate::memory::defrag::reach::Reach;
use crate::memory::defrag::work::{Part, Work};
use crate::memory::hash::hash;
use crate::memory::pipeline::Failure;
use crate::memory::pipeline::runner::Run;
use crate::memory::pipeline::saved::Kind;
use crate::store::entry::EntryId;
use crate::store::ledger::{DefragLedger, Uses};
use crate::store::persistence::Persistence;
use crate::store::place::Root;
use jiff::Timestamp;
use jiff::civil::Date;
use std::collections::BTreeSet;

/// What calls have seen so far, and what may be asked about now.
pub struct News {
    pub(super) seen: DefragLedger,
    /// Asks about what has not changed, too.
    is_forced: bool,
    /// What failed night after night is skipped for a while; not when a person asks.
    skips_failures: bool,
    /// The command's hash: another command may do better.
    command: String,
    now: Timestamp,
    today: Date,
}

impl News {
    pub(super) fn load(run: &Run, is_forced: bool) -> Result<News> {
        Ok(News {
            seen: DefragLedger::load(run.root)?,
            is_forced,
            skips_failures: run.kind == Kind::Run && !is_forced,
            command: hash(run.config.llm.command_line().unwrap_or_default()),
            now: run.env.now(),
            today: run.env.today(),
        })
    }

    /// Is there a note that the last defrag has not seen as it is now, or has it left a decision?
    pub(super) fn is_any(&self, notes: &[Marked]) -> bool {
        let is_new = |note: &Marked| {
            self.is_news(&note.id, &note.mark, note.until) || self.are_tiers_wanted(&note.reach)
        };
        !notes.is_empty() && (self.is_forced || notes.iter().any(is_new))
    }

    /// Has no call seen this note as it is, and may one be made for it? That its last day is over is news, once.
    pub(super) fn is_news(&self, id: &EntryId, mark: &str, until: Option<Date>) -> bool {
        let is_over = until.is_some_and(|until| until < self.today);
        let is_seen = self.seen.has(id, mark) && (!is_over || self.seen.has_expired(id));
        !is_seen && !self.rests(id.as_str(), mark)
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
        let mut about: Vec<(&str, &str)> = new.map(|(id, mark)| (id.as_str(), mark.as_str())).collect();
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
        let Some(until) = failure.not_before else { return };
        let until = until.strftime("%Y-%m-%d %H:%M");
        let notes = if count == 1 { "1 note is".to_owned() } else { format!("{count} notes are") };
        run.reporter.warn(&format!(
            "{notes} not asked about until {until} UTC (--force asks now), because that failed {} times: {}",
            failure.tries, failure.error
        ));
    }
}

/// Remembers how often each note has been read, for AGENTS.md.
pub(super) fn remember_use(notes: &[Marked], root: &Root) -> Result<()> {
    let used = Uses::of(notes.iter().map(|note| (note.id.clone(), note.used)));
    // A damaged one is replaced.
    match Uses::load(root) {
        Ok(before) if before == used => Ok(()),
        Ok(_) | Err(_) => used.save(root),
    }
}

/// Forgets the notes that are gone.
pub(super) fn forget_gone<P: Persistence>(seen: &mut DefragLedger, notes: &P) -> Result<()> {
    let there: BTreeSet<EntryId> = corpus::marks(notes)?.into_iter().map(|note| note.id).collect();
    seen.keep(|id| there.contains(id));
    Ok(())
}
