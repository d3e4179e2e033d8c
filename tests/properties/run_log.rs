//! An agent's log, which people edit: entries are whole, and all agree on where they begin.

use crate::base::deadline::Deadline;
use crate::fuzz::scratch::Scratch;
use crate::fuzz::{choice, parts, text};
use crate::store::run_log::{append, count, entry, tail, trim};
use jiff::Timestamp;
use std::fs;

pub fn holds(bytes: &[u8]) {
    let (keep, bytes) = choice(bytes, 10);
    let [log, task, result] = parts::<3>(bytes);
    let (task, result) = (text(task), text(result));
    let scratch = Scratch::empty();
    let path = scratch.put("log.md", log);
    let starts = starts(log);
    let soon = Deadline::after_seconds(60);
    assert_eq!(count(&path, soon).unwrap().entries, starts.len() as u64);
    assert_eq!(tail(&path, 0, soon).unwrap(), text(log));
    for n in [1, 2, keep.max(1), starts.len().max(1), usize::MAX] {
        let start = starts.get(starts.len().saturating_sub(n)).copied().unwrap_or(log.len());
        assert_eq!(tail(&path, n, soon).unwrap(), text(&log[start..]), "the last {n}");
    }

    // One more entry is the last one; what was there stays.
    let time: Timestamp = "2026-02-28T15:04:05Z".parse().unwrap();
    let counted = count(&path, soon).unwrap();
    append(&path, &entry(time, &task, &result, keep), soon).unwrap();
    let grown = fs::read(&path).unwrap();
    assert!(grown.starts_with(log));
    let new = crate::fuzz::run_log::starts(&grown);
    assert!(new.len() == starts.len() + 1 && new.starts_with(&starts), "{} then {}", starts.len(), new.len());
    let own = &grown[new[starts.len()]..];
    assert!(own.starts_with(b"## 2026-02-28T15:04:05Z\n**Task:** "), "{:?}", text(own));
    assert!(grown.len() - log.len() <= 1 + 80 + task.len().max(6) + 4 * 1003 + 260 + 20);

    // Trimming keeps whole entries, the newest, and none that came after the count.
    let trimmed = trim(&path, keep, counted, false).unwrap();
    let left = fs::read(&path).unwrap();
    assert!(grown.ends_with(&left));
    if trimmed.removed == 0 {
        assert_eq!(
            (left.as_slice(), trimmed.kept),
            (grown.as_slice(), if keep == 0 { starts.len() } else { new.len() } as u64)
        );
        let unseen = new.len() - starts.len();
        assert!(keep == 0 || new.len() <= keep.max(unseen), "{} entries, {keep} to keep", new.len());
        return;
    }
    let start = grown.len() - left.len();
    assert!(new.contains(&start));
    let kept = crate::fuzz::run_log::starts(&left).len();
    assert_eq!((kept, kept as u64), (keep.max(new.len() - starts.len()), trimmed.kept));
    assert_eq!(trimmed.removed, (new.len() - kept) as u64);
}

/// Where entries begin: at each line that begins with `## `.
fn starts(log: &[u8]) -> Vec<usize> {
    let lines = std::iter::once(0).chain(memchr::memchr_iter(b'\n', log).map(|at| at + 1));
    lines.filter(|at| log[*at..].starts_with(b"## ")).collect()
}
