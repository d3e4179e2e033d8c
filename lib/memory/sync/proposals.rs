//! Changes that wait for a person, from both machines.

use crate::memory::sync::lines::settled;
use crate::memory::sync::side::{Files, Side};
use crate::store::proposal::{Proposal, ProposalId};
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct MergedProposals {
    by_id: BTreeMap<ProposalId, Proposal>,
    /// Those that nobody has changed have these ids.
    rest: BTreeSet<ProposalId>,
}

impl MergedProposals {
    pub(super) fn merged(base: &Side, one: &Side, two: &Side, rest: &BTreeSet<String>) -> MergedProposals {
        let id = |path: &String| ProposalId::parse(path.strip_prefix("proposals/")?.strip_suffix(".json")?);
        let mut merged =
            MergedProposals { by_id: BTreeMap::new(), rest: rest.iter().filter_map(id).collect() };
        let ids: BTreeSet<&ProposalId> = one.proposals.keys().chain(two.proposals.keys()).collect();
        let mut twins = Vec::new();
        for id in ids {
            let [base, one, two] = [base, one, two].map(|side| side.proposals.get(id));
            let kept = match (settled(base, one, two), one, two) {
                (Some(kept), ..) => kept.cloned(),
                (None, Some(one), Some(two)) => {
                    let (first, second) = in_order(one.clone(), two.clone());
                    if first.is_the_same_as(&second) {
                        Some(second.merged_into(&[first]))
                    } else {
                        twins.push(second);
                        Some(first)
                    }
                }
                // Decided on the other machine.
                _ => None,
            };
            merged.by_id.extend(kept.map(|kept| (id.clone(), kept)));
        }
        for twin in twins {
            merged.add(twin);
        }
        merged
    }

    /// Adds one, under an id that is free; or adds to the one that says the same.
    pub(super) fn add(&mut self, mut proposal: Proposal) -> ProposalId {
        let there = self.by_id.values().find(|there| there.is_the_same_as(&proposal)).cloned();
        let proposal = match there {
            Some(there) => proposal.merged_into(&[there]),
            None => {
                let is_taken = |id: &ProposalId| self.rest.contains(id) || self.by_id.contains_key(id);
                if is_taken(&proposal.id) {
                    proposal.id = ProposalId::make(proposal.title(), proposal.created_at, is_taken);
                }
                proposal
            }
        };
        let id = proposal.id.clone();
        self.by_id.insert(id.clone(), proposal);
        id
    }

    /// Their files. One that a side has already keeps its bytes.
    pub(super) fn files(self, sides: &[&Files; 2]) -> Files {
        let mut files = Files::new();
        for (id, proposal) in self.by_id {
            let path = format!("proposals/{id}.json");
            let there = |side: &&&Files| {
                side.get(&path)
                    .filter(|bytes| Proposal::parse(bytes).is_ok_and(|old| old == proposal))
                    .cloned()
            };
            // Two files may say the same with other spaces.
            let bytes = sides.iter().filter_map(|side| there(&side)).max().or_else(|| proposal.bytes().ok());
            files.extend(bytes.map(|bytes| (path, bytes)));
        }
        files
    }
}

/// The older first; of the same time, the one whose text comes first.
pub(super) fn in_order(one: Proposal, two: Proposal) -> (Proposal, Proposal) {
    let rank = |proposal: &Proposal| (proposal.created_at, proposal.bytes().unwrap_or_default());
    if rank(&one) <= rank(&two) { (one, two) } else { (two, one) }
}
