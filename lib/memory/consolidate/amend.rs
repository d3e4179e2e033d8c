//! What a reply does to the changes that wait: another text for one, or an end to it; and which of them a new one joins.

use crate::base::text::whole_lines;
use crate::memory::consolidate::land::Judge;
use crate::memory::consolidate::pending::is_of;
use crate::memory::consolidate::plan::{PlannedChange, Waiting};
use crate::memory::consolidate::reply::{Proposed, ReplyTarget, Retired};
use crate::memory::waiting::settled;
use crate::store::entry::{add_missing, one_line};
use crate::store::proposal::{Draft, Proposal, ProposalId};

impl Judge<'_> {
    /// The change with this id, if sessions of these repositories may change it: it was shown, and one of them made it.
    fn changeable<'p>(&self, id: &ProposalId, shown: &'p [Proposal]) -> Option<&'p Proposal> {
        let is_here = |there: &&Proposal| is_of(there, |repo| self.is_in(repo));
        shown.iter().find(|there| there.id == *id).filter(is_here)
    }

    /// Another text for a change that waits. It waits on, with its old reasons, whatever the text is: only a person clears
    /// them. `None`: the entry names none that may be changed.
    pub(super) fn amended(&mut self, entry: &Proposed, shown: &[Proposal]) -> Option<Vec<PlannedChange>> {
        let Some(ReplyTarget::Change(id)) = entry.target() else { return None };
        let there = self.changeable(&id, shown)?;
        let update = there.note.as_ref().map(ToString::to_string);
        // What would come of the text alone.
        let changes = self.decide(&Proposed { update, ..entry.clone() });
        // It brings no text: the entry is one for its note, and no rival beside it.
        let Some(old) = there.entry.as_ref() else { return Some(changes) };
        let (text, by, reasons, base) = changes.into_iter().find_map(|change| match change {
            PlannedChange::Note(note) => {
                let known = there.note.as_ref().and_then(|id| self.known.notes.get(id));
                let text = Draft { body: whole_lines(&note.draft.body), ..note.draft };
                Some((text, note.by, Vec::new(), known.map(|known| known.entry.base())))
            }
            PlannedChange::Propose(proposal) => {
                let Proposal { entry, by, reasons, base, .. } = *proposal;
                entry.map(|text| (text, by, reasons, base))
            }
            PlannedChange::Confirm(_) | PlannedChange::Retire(_) | PlannedChange::Withdraw(_) => None,
        })?;
        let new_sources = self.sources(&entry.sources);
        let session = new_sources.first().cloned();
        let mut sources = old.sources.clone();
        add_missing(&mut sources, new_sources);
        let (scope, until) = (entry.scope.unwrap_or(old.scope), entry.until.unwrap_or(old.until));
        let mut new = Proposal {
            entry: Some(Draft { scope, until, sources, ..text }),
            base: base.or_else(|| there.base.clone()),
            session,
            by: there.by.max(by),
            ..there.clone()
        };
        add_missing(&mut new.reasons, reasons);
        add_missing(&mut new.evidence, self.evidence(&entry.evidence, &one_line(&entry.text.title)));
        Some(vec![PlannedChange::Propose(Box::new(new))])
    }

    /// A change that waits no longer.
    pub(super) fn withdraw(
        &mut self,
        retired: &Retired,
        id: &ProposalId,
        shown: &[Proposal],
    ) -> Option<PlannedChange> {
        let Some(there) = self.changeable(id, shown) else {
            let why = "is no change that this session may withdraw";
            self.warnings.push(format!("{id} was to be withdrawn, and {why}"));
            return None;
        };
        let title = match (&there.entry, &there.note) {
            (None, Some(id)) => {
                self.known.notes.get(id).map_or(id.as_str(), |known| &known.entry.meta().title)
            }
            _ => there.title(),
        };
        Some(PlannedChange::Withdraw(Waiting {
            id: id.clone(),
            op: there.op,
            note: there.note.clone(),
            title: one_line(title),
            withdrawn: Some(one_line(&self.redactor.cleaned(&retired.reason))),
        }))
    }
}

/// Each proposal gets the id under which it will wait: that of the same discovery, or one of its own. One that its entry
/// names has it already. `waiting` is what waits, and has them too then.
pub(super) fn settle<'a>(
    changes: impl Iterator<Item = (Option<&'a Proposed>, &'a mut PlannedChange)>,
    waiting: &mut Vec<Proposal>,
) {
    for (entry, change) in changes {
        match change {
            PlannedChange::Propose(proposal) => {
                if entry.and_then(Proposed::target) != Some(ReplyTarget::Change(proposal.id.clone())) {
                    **proposal = settled((**proposal).clone(), waiting);
                }
                waiting.retain(|there| there.id != proposal.id);
                waiting.push((**proposal).clone());
            }
            PlannedChange::Withdraw(withdrawal) => waiting.retain(|there| there.id != withdrawal.id),
            PlannedChange::Note(_) | PlannedChange::Confirm(_) | PlannedChange::Retire(_) => {}
        }
    }
}
