//! How many calls sessions will take, before anything of them is queued.

use crate::base::error::Result;
use crate::memory::consolidate::ask::FRAME;
use crate::memory::consolidate::host::room;
use crate::memory::consolidate::queue::CLAIMED;
use crate::memory::consolidate::work::PromptRoom;
use std::collections::BTreeMap;

/// About how many calls these sessions take: of each its repository, and how many bytes a model is shown of it.
pub fn calls<'a>(
    sessions: impl Iterator<Item = (Option<&'a str>, usize)>,
    max_prompt_bytes: usize,
) -> Result<usize> {
    let PromptRoom { sessions: room, earlier, .. } = room(max_prompt_bytes)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_a_repository_share_calls_and_large_ones_take_several() {
        let max = 200_000;
        let room = room(max).unwrap().sessions;
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
