//! One batch: what was claimed, what was read of it, and how far it has come.

use crate::store::entry::EntryId;
use crate::store::proposal::{Op, ProposalId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Work {
    pub batch: String,
    /// Without an LLM, notes are filed as they are, and sessions wait.
    pub has_llm: bool,
    pub sources: Vec<BatchSource>,
    /// The calls, in order.
    pub parts: Vec<Part>,
    /// Which part is next.
    pub next: usize,
    /// The notes that the part under way shows whole, and the fingerprint of each as it was read for the prompt.
    pub updatable: BTreeMap<EntryId, String>,
    /// Those of which it shows the title only.
    #[serde(default)]
    pub listed: BTreeSet<EntryId>,
    /// The changes that wait of which it shows the text.
    #[serde(default)]
    pub shown_changes: Vec<ProposalId>,
    /// A second look at notes that the model wants to see whole.
    #[serde(default)]
    pub second_look: Option<SecondLook>,
    /// The notes that were written.
    pub written: Vec<Written>,
    /// What waits for a person.
    #[serde(default)]
    pub waiting: Vec<Waiting>,
    /// How many of both were committed after earlier parts.
    #[serde(default)]
    pub committed: (usize, usize),
    /// What becomes of the entries, by queue id. Those that are not in it go back to the queue.
    pub verdicts: BTreeMap<String, Verdict>,
}

/// A claimed entry and its history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchSource {
    pub queue_id: String,
    /// How long the history is, in bytes, as it will be shown, at most.
    pub bytes: usize,
    /// How many bytes were left out of it, each place marked.
    pub cut: usize,
}

/// What one call shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub slices: Vec<Slice>,
}

/// A stretch of one entry's history, in passages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// An index into the batch's sources.
    pub source: usize,
    pub from: usize,
    pub to: usize,
    /// Which of how many slices of this entry it is, from 1.
    pub number: usize,
    pub of: usize,
}

/// A stretch of an entry's history that the model was shown, in passages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    pub queue_id: String,
    pub from: usize,
    pub to: usize,
}

/// The model has replied, and wants to see more notes before it replies for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecondLook {
    pub wanted: Vec<EntryId>,
    /// What it replied without having seen them.
    pub reply: String,
    /// What it had been shown whole for that reply.
    pub updatable: BTreeMap<EntryId, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Written {
    pub id: EntryId,
    pub title: String,
    pub action: Action,
}

/// What was done to a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Create,
    Update,
    /// To the archive, because it no longer holds.
    Retire,
}

/// A change that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    pub id: ProposalId,
    pub op: Op,
    pub note: Option<EntryId>,
    pub title: String,
    /// It waits no longer: why the model took it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<String>,
}

impl Waiting {
    /// `withdrawn p__a1B2c3: TITLE: REASON`, of one that was taken back.
    pub(crate) fn withdrawal(&self) -> Option<String> {
        let reason = self.withdrawn.as_ref()?;
        Some(format!("withdrawn {}: {}: {reason}", self.id, self.title))
    }
}

/// What came of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Note(Written),
    Waits(Waiting),
    /// There was nothing to do any more.
    Unchanged,
}

/// What becomes of a queue entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Done with; the reason where nothing was to be kept.
    Processed(Option<String>),
    /// A failed try.
    Failed(String),
    /// Back to the queue; the next run asks for it alone.
    Alone,
}

impl Slice {
    pub(super) fn stretch(&self, sources: &[BatchSource]) -> Option<Stretch> {
        let queue_id = sources.get(self.source)?.queue_id.clone();
        Some(Stretch { queue_id, from: self.from, to: self.to })
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Verdict::Processed(Some(why)) => write!(f, "nothing to keep: {why}"),
            Verdict::Processed(None) => f.write_str("done"),
            Verdict::Failed(why) => f.write_str(why),
            Verdict::Alone => f.write_str("is asked about alone"),
        }
    }
}

impl Verdict {
    /// Is there more to it than that all went well?
    pub(super) fn is_worth_saying(&self) -> bool {
        !matches!(self, Verdict::Processed(None))
    }
}

impl Work {
    pub(super) fn new(claimed: Claimed) -> Work {
        let sources =
            claimed.queue_ids.into_iter().map(|queue_id| BatchSource { queue_id, bytes: 0, cut: 0 });
        Work {
            batch: claimed.batch,
            has_llm: claimed.has_llm,
            sources: sources.collect(),
            parts: Vec::new(),
            next: 0,
            updatable: BTreeMap::new(),
            listed: BTreeSet::new(),
            shown_changes: Vec::new(),
            second_look: None,
            written: Vec::new(),
            waiting: Vec::new(),
            committed: (0, 0),
            verdicts: BTreeMap::new(),
        }
    }

    /// The notes that the part under way shows, whole or by title.
    pub(super) fn shown_notes(&self) -> Vec<EntryId> {
        self.updatable.keys().chain(&self.listed).cloned().collect()
    }

    /// Takes in what came of a change.
    pub(super) fn take(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Note(note) => self.written.push(note),
            Outcome::Waits(waiting) => self.waiting.push(waiting),
            Outcome::Unchanged => {}
        }
    }

    /// What is still to be committed.
    pub(super) fn uncommitted(&self) -> (&[Written], &[Waiting]) {
        let (written, waiting) = self.committed;
        (self.written.get(written..).unwrap_or_default(), self.waiting.get(waiting..).unwrap_or_default())
    }

    pub(super) fn has_uncommitted(&self) -> bool {
        let (written, waiting) = self.uncommitted();
        !written.is_empty() || !waiting.is_empty()
    }

    pub(super) fn is_committed(&mut self) {
        self.committed = (self.written.len(), self.waiting.len());
    }

    /// The slices that the part under way shows.
    pub(super) fn slices(&self) -> &[Slice] {
        self.parts.get(self.next).map_or(&[], |part| &part.slices)
    }

    /// The queue ids that the part under way shows.
    pub(super) fn shown_ids(&self) -> Vec<&str> {
        let sources = self.slices().iter().filter_map(|slice| self.sources.get(slice.source));
        let mut ids: Vec<&str> = sources.map(|source| source.queue_id.as_str()).collect();
        ids.dedup();
        ids
    }

    /// Is this entry seen to its end with the part under way?
    pub(super) fn ends_with_this_part(&self, queue_id: &str) -> bool {
        let later = self.parts.iter().skip(self.next.saturating_add(1)).flat_map(|part| &part.slices);
        !later.filter_map(|slice| self.sources.get(slice.source)).any(|source| source.queue_id == queue_id)
    }

    /// What of the part under way has been seen: all but what was given up.
    pub(super) fn seen(&self) -> Vec<Stretch> {
        let is_given_up = |stretch: &Stretch| {
            matches!(self.verdicts.get(&stretch.queue_id), Some(Verdict::Failed(_) | Verdict::Alone))
        };
        let all = self.slices().iter().filter_map(|slice| slice.stretch(&self.sources));
        all.filter(|stretch| !is_given_up(stretch)).collect()
    }

    /// Is there anything in the part under way that was not given up?
    pub(super) fn is_alive(&self) -> bool {
        let is_given_up =
            |id: &str| matches!(self.verdicts.get(id), Some(Verdict::Failed(_) | Verdict::Alone));
        self.shown_ids().into_iter().any(|id| !is_given_up(id))
    }

    /// What a failed call does to the entries that nothing is decided of: several are asked about alone the next time,
    /// one alone has had its try.
    pub(super) fn take_failure(&mut self, why: &str) {
        let ids = self.sources.iter().map(|source| &source.queue_id);
        let undecided: Vec<String> = ids.filter(|id| !self.verdicts.contains_key(*id)).cloned().collect();
        let verdict = match undecided.len() {
            1 => Verdict::Failed(why.to_owned()),
            _ => Verdict::Alone,
        };
        self.verdicts.extend(undecided.into_iter().map(|id| (id, verdict.clone())));
    }
}

/// What was taken out of the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    pub batch: String,
    pub queue_ids: Vec<String>,
    pub has_llm: bool,
}

/// How many bytes a history takes in prompts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lengths {
    /// Each of its passages.
    pub passages: Vec<usize>,
    /// For each passage: what is shown of the turns before it where a part begins with it.
    pub earlier: Vec<usize>,
}

impl Lengths {
    /// How many bytes the whole history takes in one prompt.
    pub fn whole(&self) -> usize {
        self.earlier.first().unwrap_or(&0) + self.passages.iter().sum::<usize>()
    }
}

/// Shares histories out over calls with `room` bytes each: whole ones together while they fit, one that is larger alone
/// in as many slices as it needs. No passage is longer than `room`, with what is shown before it.
pub fn share_out(lengths: &[Lengths], room: usize) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut used = 0;
    for (source, lengths) in lengths.iter().enumerate() {
        if lengths.passages.is_empty() {
            continue;
        }
        let length = lengths.whole();
        if length > room {
            parts.extend(slices(source, lengths, room));
            used = room;
            continue;
        }
        let whole = Slice { source, from: 0, to: lengths.passages.len(), number: 1, of: 1 };
        match parts.last_mut() {
            Some(part) if used + length <= room => {
                part.slices.push(whole);
                used += length;
            }
            _ => {
                parts.push(Part { slices: vec![whole] });
                used = length;
            }
        }
    }
    parts
}

fn slices(source: usize, lengths: &Lengths, room: usize) -> Vec<Part> {
    let earlier = |index: usize| lengths.earlier.get(index).copied().unwrap_or(0);
    let mut ends = Vec::new();
    let (mut from, mut used) = (0, earlier(0));
    for (index, length) in lengths.passages.iter().enumerate() {
        if index > from && used + length > room {
            ends.push((from, index));
            (from, used) = (index, earlier(index));
        }
        used += length;
    }
    ends.push((from, lengths.passages.len()));
    let of = ends.len();
    let numbered = ends.into_iter().enumerate();
    numbered
        .map(|(index, (from, to))| Part { slices: vec![Slice { source, from, to, number: index + 1, of }] })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(lengths: &[&[usize]]) -> Vec<Vec<(usize, usize, usize)>> {
        let lengths: Vec<Lengths> = lengths
            .iter()
            .map(|passages| Lengths { passages: passages.to_vec(), earlier: Vec::new() })
            .collect();
        let parts = share_out(&lengths, 100);
        parts
            .iter()
            .map(|part| part.slices.iter().map(|slice| (slice.source, slice.from, slice.to)).collect())
            .collect()
    }

    #[test]
    fn whole_histories_share_a_call_while_they_fit() {
        assert_eq!(
            shared(&[&[20, 20], &[60], &[1], &[], &[100]]),
            [vec![(0, 0, 2), (1, 0, 1)], vec![(2, 0, 1)], vec![(4, 0, 1)]]
        );
    }

    #[test]
    fn a_larger_one_is_shown_in_slices_and_nothing_is_left_out() {
        assert_eq!(
            shared(&[&[10], &[30, 60, 70, 20, 20], &[10]]),
            [vec![(0, 0, 1)], vec![(1, 0, 2)], vec![(1, 2, 4)], vec![(1, 4, 5)], vec![(2, 0, 1)]]
        );
        let flat = |earlier| Lengths { passages: vec![33; 100], earlier };
        let parts = share_out(&[flat(Vec::new())], 100);
        assert_eq!((parts.len(), parts[33].slices[0].to, parts[33].slices[0].of), (34, 100, 34));
        // What was read before takes its room.
        let parts = share_out(&[flat((0..100).map(|n| 25.min(n)).collect())], 100);
        assert_eq!((parts.len(), parts[0].slices[0].to, parts[1].slices[0].to), (50, 3, 5));
    }
}
