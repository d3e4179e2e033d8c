//! What one batch of the queue has claimed, what came of it so far, and how much of it one call has room for.

use crate::base::error::Result;
use crate::memory::consolidate::write::Made;
use crate::memory::pipeline::{self, no_room_for};
use crate::store::entry::EntryId;
use crate::store::proposal::ProposalId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What stands around a session takes so many bytes, at most.
pub(super) const FRAME: usize = 400;
/// How much room the words around the sessions take, in bytes, at most.
pub const OWN_WORDS: usize = 10 << 10;
/// How many entries are claimed at once, at most.
pub(super) const CLAIMED: usize = 32;
/// The least room for sessions in a prompt, in bytes.
const LEAST_ROOM: usize = 1000;

/// What one call shows is some stretches of sessions.
pub type ConsolidateWork = pipeline::Work<Vec<Slice>, Claimed>;

/// What was taken out of the queue, and what came of it so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claimed {
    /// Without an LLM, notes are filed as they are, and sessions wait.
    pub has_llm: bool,
    pub queue_ids: Vec<String>,
    /// The changes that wait of which the part under way shows the text.
    pub shown_changes: Vec<ProposalId>,
    /// The notes that it shows with changed code, and the hash of that.
    #[serde(default)]
    pub asked: BTreeMap<EntryId, String>,
    /// What was written since the last commit.
    #[serde(flatten)]
    pub made: Made,
    /// What becomes of the entries, by queue id. Those that are not in it go back to the queue.
    pub verdicts: BTreeMap<String, Verdict>,
}

/// A stretch of an entry's history that a prompt shows, in passages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Slice {
    pub queue_id: String,
    pub from: usize,
    pub to: usize,
    /// Which of how many slices of this entry it is, from 1.
    pub number: usize,
    pub of: usize,
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

impl ConsolidateWork {
    /// The slices that the part under way shows.
    pub(super) fn slices(&self) -> &[Slice] {
        self.part().map_or(&[], Vec::as_slice)
    }

    /// The queue ids that the part under way shows.
    pub(super) fn shown_ids(&self) -> impl Iterator<Item = &str> {
        self.slices().chunk_by(|a, b| a.queue_id == b.queue_id).map(|run| run[0].queue_id.as_str())
    }

    /// Is this entry seen to its end with the part under way?
    pub(super) fn ends_with_this_part(&self, queue_id: &str) -> bool {
        let later = self.parts.iter().skip(self.next.saturating_add(1)).flatten();
        later.into_iter().all(|slice| slice.queue_id != queue_id)
    }

    /// What of the part under way has been seen: all but what was given up.
    pub(super) fn seen(&self) -> impl Iterator<Item = &Slice> {
        let is_given_up = |slice: &&Slice| {
            matches!(self.own.verdicts.get(&slice.queue_id), Some(Verdict::Failed(_) | Verdict::Alone))
        };
        self.slices().iter().filter(move |slice| !is_given_up(slice))
    }

    /// What a failed call does to the entries that nothing is decided of: several are asked about alone the next time,
    /// one alone has had its try.
    pub(super) fn take_failure(&mut self, why: &str) {
        let Claimed { queue_ids, verdicts, .. } = &mut self.own;
        let undecided: Vec<&String> = queue_ids.iter().filter(|id| !verdicts.contains_key(*id)).collect();
        let verdict = match undecided.len() {
            1 => Verdict::Failed(why.to_owned()),
            _ => Verdict::Alone,
        };
        verdicts.extend(undecided.into_iter().map(|id| (id.clone(), verdict.clone())));
    }
}

/// How many bytes there are in a prompt.
#[derive(Debug, Clone, Copy)]
pub struct PromptRoom {
    /// For sessions.
    pub(super) sessions: usize,
    /// Of that for the turns of each that were read before.
    pub(super) earlier: usize,
    /// For existing notes, at least.
    pub(super) related: usize,
}

impl PromptRoom {
    /// How a prompt of at most `max` bytes is shared out.
    pub(super) fn of(max: usize) -> Result<PromptRoom> {
        let free = max.saturating_sub(OWN_WORDS);
        let sessions = free - free / 4;
        if sessions < LEAST_ROOM {
            return Err(no_room_for("a session", max, OWN_WORDS + 2 * LEAST_ROOM));
        }
        Ok(PromptRoom { sessions, earlier: sessions / 4, related: free / 4 })
    }
}

/// About how many calls these sessions take: of each its repository, and how many bytes a model is shown of it.
pub fn calls<'a>(
    sessions: impl Iterator<Item = (Option<&'a str>, usize)>,
    max_prompt_bytes: usize,
) -> Result<usize> {
    let PromptRoom { sessions: room, earlier, .. } = PromptRoom::of(max_prompt_bytes)?;
    // Sessions of one repository share calls while they fit: in each, the bytes and the sessions of the last call.
    let mut open: BTreeMap<Option<&str>, (usize, usize)> = BTreeMap::new();
    let mut calls = 0_usize;
    for (repo, bytes) in sessions {
        let bytes = bytes.saturating_add(FRAME);
        let (used, count) = open.entry(repo).or_insert((usize::MAX, 0));
        if bytes > room {
            // Each part but the first shows what was said before it, too.
            calls = calls.saturating_add(bytes.div_ceil(room - earlier));
            (*used, *count) = (usize::MAX, 0);
        } else if used.saturating_add(bytes) > room || *count >= CLAIMED {
            calls = calls.saturating_add(1);
            (*used, *count) = (bytes, 1);
        } else {
            *used += bytes;
            *count += 1;
        }
    }
    Ok(calls)
}

/// How many bytes a passage takes in a prompt, and what is shown of the turns before it where a part begins with it.
pub(super) type Length = (usize, usize);

/// How many bytes a whole history takes in one prompt.
pub(super) fn whole(lengths: &[Length]) -> usize {
    lengths.first().map_or(0, |(_, earlier)| *earlier) + lengths.iter().map(|(bytes, _)| bytes).sum::<usize>()
}

/// Shares histories out over calls with `room` bytes each: whole ones together while they fit, one that is larger alone
/// in as many slices as it needs. No passage is longer than `room`, with what is shown before it.
pub(super) fn share_out(histories: &[(String, Vec<Length>)], room: usize) -> Vec<Vec<Slice>> {
    let mut parts: Vec<Vec<Slice>> = Vec::new();
    let mut used = 0;
    for (queue_id, lengths) in histories.iter().filter(|(_, lengths)| !lengths.is_empty()) {
        let slices = slices(queue_id, lengths, room);
        let length = if slices.len() == 1 { whole(lengths) } else { room };
        match parts.last_mut() {
            Some(part) if used + length <= room => {
                part.extend(slices);
                used += length;
            }
            _ => {
                parts.extend(slices.into_iter().map(|slice| vec![slice]));
                used = length;
            }
        }
    }
    parts
}

fn slices(queue_id: &str, lengths: &[Length], room: usize) -> Vec<Slice> {
    let (mut starts, mut used) = (Vec::new(), 0);
    for (index, (bytes, earlier)) in lengths.iter().enumerate() {
        if starts.is_empty() || used + bytes > room {
            starts.push(index);
            used = *earlier;
        }
        used += bytes;
    }
    let of = starts.len();
    let ends = starts.iter().skip(1).copied().chain([lengths.len()]);
    let slice = |((from, to), number)| Slice { queue_id: queue_id.to_owned(), from, to, number, of };
    starts.iter().copied().zip(ends).zip(1..).map(slice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(lengths: impl IntoIterator<Item = Vec<Length>>) -> Vec<Vec<Slice>> {
        let numbered = lengths.into_iter().enumerate();
        let histories: Vec<(String, Vec<Length>)> =
            numbered.map(|(number, lengths)| (number.to_string(), lengths)).collect();
        share_out(&histories, 100)
    }

    fn shared(lengths: &[&[usize]]) -> Vec<Vec<(usize, usize, usize)>> {
        let plain = |passages: &&[usize]| passages.iter().map(|bytes| (*bytes, 0)).collect();
        let number = |slice: &Slice| (slice.queue_id.parse().unwrap(), slice.from, slice.to);
        parts(lengths.iter().map(plain)).iter().map(|part| part.iter().map(number).collect()).collect()
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
        let all = parts([vec![(33, 0); 100]]);
        assert_eq!((all.len(), all[33][0].to, all[33][0].of), (34, 100, 34));
        // What was read before takes its room.
        let all = parts([(0..100).map(|n| (33, 25.min(n))).collect()]);
        assert_eq!((all.len(), all[0][0].to, all[1][0].to), (50, 3, 5));
    }

    #[test]
    fn sessions_of_a_repository_share_calls_and_large_ones_take_several() {
        let max = 200_000;
        let room = PromptRoom::of(max).unwrap().sessions;
        let count = |sessions: &[(Option<&str>, usize)]| calls(sessions.iter().copied(), max).unwrap();
        assert_eq!(count(&[]), 0);
        assert_eq!(count(&[(None, 10), (None, 10), (Some("a"), 10)]), 2);
        assert_eq!(count(&[(None, room / 2), (None, room / 2), (None, room / 2)]), 3);
        assert_eq!(count(&[(None, room / 3), (None, room / 3), (None, room / 3)]), 2);
        assert_eq!(count(&[(Some("a"), room * 9), (Some("a"), 10)]), 14);
        assert_eq!(count(&[(None, 1); 100]), 4);
        assert!(calls([].into_iter(), 100).is_err());
    }
}
