//! Work on many items by several threads, for work that is mostly waiting for the file system.

use std::sync::atomic::{AtomicUsize, Ordering};

/// So many threads. More wait for the same disk.
const THREADS: usize = 4;
/// A thread takes so many items at a time. Fewer items are done before a second thread has started.
const SHARE: usize = 64;
/// The same where each item is a file to be read and understood.
const SHARE_OF_FILES: usize = 8;

/// What `each` makes of every item and its index, in the order of the items.
pub fn map<I: Sync, T: Send>(items: &[I], each: impl Fn(usize, &I) -> T + Sync) -> Vec<T> {
    shares(items, threads(), SHARE, each)
}

/// Like [`map`], for files that are all read. It takes more threads for few of them.
pub fn map_files<I: Sync, T: Send>(items: &[I], each: impl Fn(usize, &I) -> T + Sync) -> Vec<T> {
    shares(items, threads(), SHARE_OF_FILES, each)
}

/// Like [`map`], for work that takes long: up to `most` items at once, whatever the machine.
pub fn map_at_once<I: Sync, T: Send>(
    items: &[I],
    most: usize,
    each: impl Fn(usize, &I) -> T + Sync,
) -> Vec<T> {
    shares(items, most, 1, each)
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(THREADS)
}

fn shares<I: Sync, T: Send>(
    items: &[I],
    threads: usize,
    size: usize,
    each: impl Fn(usize, &I) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    // Each thread takes the next share when it is done with one, so that none waits for another.
    let work = || {
        let mut parts = Vec::new();
        loop {
            let first = next.fetch_add(size, Ordering::Relaxed);
            let Some(rest) = items.get(first..).filter(|rest| !rest.is_empty()) else { return parts };
            let share = rest.iter().take(size).zip(first..);
            parts.push((first, share.map(|(item, index)| each(index, item)).collect::<Vec<T>>()));
        }
    };
    let mut parts = std::thread::scope(|scope| {
        let others = 1..threads.min(items.len().div_ceil(size));
        // Where no thread is to be had, this one does all the work.
        let started: Vec<_> =
            others.filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
        let mut parts = work();
        for thread in started {
            // Parts that are missing would look like items that gave nothing.
            parts.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        parts
    });
    parts.sort_unstable_by_key(|(first, _)| *first);
    let mut all = Vec::with_capacity(items.len());
    parts.iter_mut().for_each(|(_, part)| all.append(part));
    all
}

/// Runs `work`, and meanwhile `ahead` in another thread. `ahead` does something that `work` will need. Where no thread is to
/// be had, `work` does it itself.
pub fn with_ahead<T>(ahead: impl FnOnce() + Send, work: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        let _ = std::thread::Builder::new().spawn_scoped(scope, ahead);
        work()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        for count in [0, 1, SHARE_OF_FILES, SHARE, 10 * SHARE + 1] {
            let items: Vec<usize> = (0..count).collect();
            let expected: Vec<_> = (0..count).map(|n| (n, n * 2)).collect();
            assert_eq!(map(&items, |index, item| (index, item * 2)), expected);
            assert_eq!(map_files(&items, |index, item| (index, item * 2)), expected);
        }
    }
}
