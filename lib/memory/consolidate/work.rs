//! One batch: what was claimed, what was read of it, and how far it has come.

use crate::store::entry::EntryId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// What the part under way may replace, and the hash of each body as it was read for the prompt.
    pub updatable: BTreeMap<EntryId, String>,
    /// The notes that were written.
    pub written: Vec<Written>,
    /// What becomes of the entries, by queue id. Those that are not in it go back to the queue.
    pub verdicts: BTreeMap<String, Verdict>,
}

/// A claimed entry and its history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchSource {
    pub queue_id: String,
    /// How long the history is, in bytes, as it will be shown.
    pub bytes: usize,
    /// How many bytes were left out of it, each place marked.
    pub cut: usize,
}

/// What one call shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub slices: Vec<Slice>,
}

/// A stretch of one entry's history, in bytes.
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

/// A stretch of an entry's history that the model was shown, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    pub queue_id: String,
    pub from: usize,
    pub to: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Written {
    pub id: EntryId,
    pub title: String,
    pub is_update: bool,
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
            written: Vec::new(),
            verdicts: BTreeMap::new(),
        }
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
        let stretch = |slice: &Slice| {
            let source = self.sources.get(slice.source)?;
            let is_given_up =
                matches!(self.verdicts.get(&source.queue_id), Some(Verdict::Failed(_) | Verdict::Alone));
            let queue_id = source.queue_id.clone();
            (!is_given_up).then_some(Stretch { queue_id, from: slice.from, to: slice.to })
        };
        self.slices().iter().filter_map(stretch).collect()
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

/// Shares histories of these lengths out over calls with `room` bytes each: whole ones together while they fit,
/// one that is larger alone in as many slices as it needs. `borders` are the ends of the turns of a history; a
/// turn that is larger than the room is cut where `cut_at` says.
pub fn share_out(
    lengths: &[usize],
    room: usize,
    borders: impl Fn(usize) -> Vec<usize>,
    cut_at: impl Fn(usize, usize) -> usize,
) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut used = 0;
    for (source, &length) in lengths.iter().enumerate() {
        if length == 0 {
            continue;
        }
        if length > room {
            parts.extend(slices(source, length, room, &borders(source), &cut_at));
            used = room;
            continue;
        }
        let whole = Slice { source, from: 0, to: length, number: 1, of: 1 };
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

fn slices(
    source: usize,
    length: usize,
    room: usize,
    borders: &[usize],
    cut_at: &impl Fn(usize, usize) -> usize,
) -> Vec<Part> {
    let mut ends = Vec::new();
    let mut from = 0;
    while from < length {
        let farthest = from + room;
        let to = if farthest >= length {
            length
        } else {
            let border = borders.iter().rev().find(|border| **border <= farthest && **border > from);
            // A turn that no call has room for is cut.
            border.copied().unwrap_or_else(|| cut_at(source, farthest).clamp(from + 1, farthest))
        };
        ends.push((from, to));
        from = to;
    }
    let of = ends.len();
    let numbered = ends.into_iter().enumerate();
    numbered
        .map(|(index, (from, to))| Part { slices: vec![Slice { source, from, to, number: index + 1, of }] })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(lengths: &[usize], borders: &[usize]) -> Vec<Vec<(usize, usize, usize)>> {
        let parts = share_out(lengths, 100, |_| borders.to_vec(), |_, at| at);
        parts
            .iter()
            .map(|part| part.slices.iter().map(|slice| (slice.source, slice.from, slice.to)).collect())
            .collect()
    }

    #[test]
    fn whole_histories_share_a_call_while_they_fit() {
        assert_eq!(
            shared(&[40, 60, 1, 0, 100], &[]),
            [vec![(0, 0, 40), (1, 0, 60)], vec![(2, 0, 1)], vec![(4, 0, 100)]]
        );
    }

    #[test]
    fn a_larger_one_is_cut_at_the_ends_of_turns() {
        assert_eq!(
            shared(&[10, 250, 10], &[30, 90, 160, 230, 250]),
            [vec![(0, 0, 10)], vec![(1, 0, 90)], vec![(1, 90, 160)], vec![(1, 160, 250)], vec![(2, 0, 10)]]
        );
    }

    #[test]
    fn a_turn_larger_than_a_call_is_cut_and_nothing_is_left_out() {
        let parts = shared(&[1000], &[10, 990, 1000]);
        let mut at = 0;
        for part in &parts {
            assert_eq!((part.len(), part[0].1), (1, at));
            assert!(part[0].2 > at && part[0].2 - at <= 100);
            at = part[0].2;
        }
        assert_eq!(at, 1000);
    }
}
