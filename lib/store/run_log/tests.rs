//! Entries found, counted and written; logs trimmed, alone and with others at work.

#![allow(clippy::disallowed_methods, reason = "a test may write files")]

use super::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Cursor;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tempfile::TempDir;

fn soon() -> Deadline {
    Deadline::after_seconds(60)
}

/// Counts and trims, as `axe-gc` does.
fn trim_now(path: &Path, keep: usize, own_dir: bool) -> io::Result<u64> {
    Ok(trim(path, keep, count(path, soon())?, own_dir)?.removed)
}

#[test]
fn what_came_after_the_count_stays_even_if_it_is_more_than_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.md");
    fs::write(&path, log(5).trim_end()).unwrap();
    let counted = count(&path, soon()).unwrap();
    for task in ["new 1", "new 2", "new 3"] {
        append(&path, &entry(Timestamp::UNIX_EPOCH, task, "x", 0), soon()).unwrap();
    }
    let trimmed = trim(&path, 2, counted, true).unwrap();
    assert_eq!(trimmed, Trimmed { removed: 5, kept: 3 });
    let left = fs::read_to_string(&path).unwrap();
    assert!(left.starts_with("## 1970") && left.contains("new 1") && left.contains("new 3"), "{left}");
}

#[test]
fn after_another_trim_the_entries_that_are_left_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.md");
    fs::write(&path, log(10)).unwrap();
    let counted = count(&path, soon()).unwrap();
    assert_eq!(trim(&path, 3, counted, true).unwrap(), Trimmed { removed: 7, kept: 3 });
    assert_eq!(trim(&path, 3, counted, true).unwrap(), Trimmed { removed: 0, kept: 3 });
}

#[test]
fn a_heading_in_a_result_does_not_begin_an_entry() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.md");
    let results = ["## One\n## Two\ntext\n\n## Three", "\n## x", "### deeper\n##tight", "a\r\n## b"];
    for result in results {
        append(&path, &entry(Timestamp::UNIX_EPOCH, "task", result, 0), soon()).unwrap();
    }
    assert_eq!(count(&path, soon()).unwrap().entries, results.len() as u64);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("**Result:** ## One\n ## Two\ntext\n\n ## Three\n\n"), "{text}");
    assert!(text.contains("**Result:** ### deeper\n##tight\n\n"), "{text}");
    // A cut comes first: the space is not counted.
    let long = format!("{}\n## {}", "x".repeat(900), "y".repeat(900));
    let entry = entry(Timestamp::UNIX_EPOCH, "t", &long, 0);
    assert!(entry.ends_with(&format!("x\n ## {}...\n\n", "y".repeat(96))), "{entry}");
}

#[test]
fn an_overview_counts_runs_and_characters() {
    assert_eq!(overview("no entry"), None);
    assert_eq!(overview("").as_deref(), None);
    assert_eq!(
        overview("before\n## t1\n**Task:** a\n**Result:** äö\n\n## t2\r\nby hand\n\n## t3\n**Task:** a\n**Result:** a\nbcd\n").as_deref(),
        Some("Runs: 3, first t1, last t3, mean result 2 characters")
    );
}

fn log(n: usize) -> String {
    (0..n).map(|i| format!("## t{i}\n**Task:** a\n**Result:** b\n\n")).collect()
}

fn tail_of(text: &str, n: u64) -> &str {
    let start = start_of_tail(&mut Cursor::new(text), text.len() as u64, n).unwrap();
    &text[start.unwrap_or(text.len() as u64) as usize..]
}

#[test]
fn the_tail_is_found_across_blocks() {
    // Long entries put headers at, before and after the borders of the blocks that are read.
    for padding in [0, 1, 2, 3, 4, 100, 65_530, 65_531, 65_532, 65_533, 65_534, 65_535, 65_536] {
        let text = format!("before\n## one\n{}\n## two\nx\n", "y".repeat(padding));
        let two = text.find("## two").unwrap();
        assert_eq!(tail_of(&text, 1), &text[two..], "{padding}");
        assert_eq!(tail_of(&text, 2), &text[7..], "{padding}");
        assert_eq!(tail_of(&text, 9), &text[7..], "{padding}");
    }
    assert_eq!(tail_of(&log(5), 2), &log(5)[log(3).len()..]);
    assert_eq!(tail_of(&log(3), 3), log(3));
    assert_eq!(tail_of("no headers\n### x\n##y\n", 3), "");
    assert_eq!(tail_of("", 3), "");
}

#[test]
fn every_header_is_counted_once_however_the_reads_fall() {
    struct Drops<'a>(&'a [u8], usize);
    impl Read for Drops<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(self.0.len()).min(into.len());
            into[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }
    let text = format!("{}x\n## \n## z\r\n###\n ## no\n", log(5));
    for step in 1..40 {
        assert_eq!(count_in(Drops(text.as_bytes(), step)).unwrap(), 7, "{step}");
    }
    assert_eq!(count_in(&b""[..]).unwrap(), 0);
    assert_eq!(count_in(&b"no\n##x\n"[..]).unwrap(), 0);
}

#[test]
fn an_entry_has_the_form_of_m6() {
    let time: Timestamp = "2026-02-28T15:04:05.999Z".parse().unwrap();
    assert_eq!(
        entry(time, "do the thing", "it worked", 0),
        "## 2026-02-28T15:04:05Z\n**Task:** do the thing\n**Result:** it worked\n\n"
    );
    assert_eq!(entry(time, "", "", 0), "## 2026-02-28T15:04:05Z\n**Task:** (none)\n**Result:** (none)\n\n");
    assert_eq!(
        entry(time, "a\nb\rc", "d\ne", 0),
        "## 2026-02-28T15:04:05Z\n**Task:** a b c\n**Result:** d\ne\n\n"
    );
    assert!(entry(time, "abcdef", "x", 3).contains("**Task:** abc...\n"));
}

#[test]
fn results_are_cut_at_a_thousand_characters() {
    let time = Timestamp::UNIX_EPOCH;
    let exact = "ü".repeat(1000);
    assert!(entry(time, "t", &exact, 0).ends_with(&format!("**Result:** {exact}\n\n")));
    assert!(entry(time, "t", &format!("{exact}ü"), 0).ends_with(&format!("**Result:** {exact}...\n\n")));
}

/// A log in a directory of its own.
struct Place {
    dir: TempDir,
    path: PathBuf,
}

impl Place {
    fn with(bytes: impl AsRef<[u8]>) -> Place {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.md");
        fs::write(&path, bytes).unwrap();
        Place { dir, path }
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }

    fn put(&self, name: &str) {
        fs::write(self.dir.path().join(name), name).unwrap();
    }

    /// All names in the directory, sorted.
    fn names(&self) -> Vec<String> {
        names_in(self.dir.path())
    }
}

fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The entries of a log, found in the simplest way: line by line, from the front.
fn split(log: &[u8]) -> Vec<Vec<u8>> {
    let mut entries: Vec<Vec<u8>> = Vec::new();
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        match entries.last_mut() {
            _ if line.starts_with(b"## ") => entries.push(line.to_vec()),
            Some(entry) => entry.extend_from_slice(line),
            None => {}
        }
    }
    entries
}

#[test]
fn trimming_a_missing_log_does_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().join("a.md"), dir.path().join("no/such/dir/a.md")] {
        assert_eq!(trim_now(&path, 5, true).unwrap(), 0);
    }
    assert_eq!(names_in(dir.path()), [""; 0]);
}

#[cfg(unix)]
#[test]
fn a_log_within_the_limit_is_not_touched() {
    use std::os::unix::fs::MetadataExt;
    for (text, keep) in [
        (String::new(), 5),
        (log(5), 0),
        (log(3), 5),
        (log(5), 5),
        (log(1), 1),
        (log(5), usize::MAX),
        (format!("words before\n{}", log(5)), 0),
        (format!("words before\n{}", log(2)), 2),
        ("no header at all\n### nor here\n".into(), 1),
    ] {
        let place = Place::with(&text);
        let inode = fs::metadata(&place.path).unwrap().ino();
        assert_eq!(trim_now(&place.path, keep, true).unwrap(), 0, "{text:?} {keep}");
        assert_eq!(place.bytes(), text.as_bytes());
        assert_eq!(fs::metadata(&place.path).unwrap().ino(), inode, "{text:?} was written anew");
        assert_eq!(place.names(), ["a.md"]);
    }
}

#[test]
fn kept_entries_keep_every_byte() {
    let long = "y".repeat(3 * BLOCK as usize + 7);
    let logs: [(&str, Vec<u8>); 10] = [
        ("as we write it", log(10).into()),
        ("many lines", "## a\n\n\n  x\t \n\n## b\n**Result:** one\n\ntwo\n   \n\n\n## c\n\n\n\n".into()),
        ("carriage returns", "## a\r\n**Task:** x\r\n\r\n## b\r\ny\r\n## c\r\n\r\n".into()),
        ("not UTF-8", b"## a\n\xff\xfe\n## b \xc3\x28\n\x00\x80\n\n## c\n\xf0\x9f\n".to_vec()),
        ("no final newline", "## a\nx\n\n## b\ny\n## c\nz".into()),
        ("a bare header last", "## a\nx\n## b\n## ".into()),
        ("words before", "# Log\n\nby hand ## not here\n## a\nx\n## b\n## c\n".into()),
        ("a byte order mark", "\u{feff}## hidden\n## a\n## b\n".into()),
        ("headers that are no times", "## Notes\nx\n ## no\n##no\n### no\n## Änderung\ny\n".into()),
        ("long entries", format!("## a\n{long}\n## b\n{long}\n## c\nx\n## d\n{long}").into()),
    ];
    for (what, bytes) in logs {
        let entries = split(&bytes);
        assert!(entries.len() > 1, "{what}");
        for keep in 1..entries.len() {
            let place = Place::with(&bytes);
            let loaded = tail(&place.path, keep, soon()).unwrap();
            let removed = trim_now(&place.path, keep, true).unwrap();
            assert_eq!(removed as usize, entries.len() - keep, "{what}, {keep}");
            let left = place.bytes();
            assert!(left == entries[entries.len() - keep..].concat(), "{what}, {keep}");
            assert_eq!(lossy(left).0, loaded, "{what}, {keep}: not what a run loads");
            assert_eq!(place.names(), ["a.md"], "{what}, {keep}");
            assert_eq!(trim_now(&place.path, keep, true).unwrap(), 0, "{what}, {keep}: again");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_trim_keeps_mode_and_owner() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    for mode in [0o600, 0o640, 0o644, 0o666, 0o755] {
        let place = Place::with(log(5));
        fs::set_permissions(&place.path, fs::Permissions::from_mode(mode)).unwrap();
        // Only the superuser may give files away; without that the owner stays who we are.
        let _ = chown(&place.path, Some(1234), Some(4321));
        let of = |path| fs::metadata(path).map(|now| (now.uid(), now.gid(), now.mode() & 0o7777)).unwrap();
        let before = of(&place.path);
        assert_eq!((before.2, trim_now(&place.path, 2, true).unwrap()), (mode, 3));
        assert_eq!(of(&place.path), before, "{mode:o}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_stays_and_its_target_is_replaced() {
    let place = Place::with(log(5));
    let other = tempfile::tempdir().unwrap();
    let (link, link_to_link) = (other.path().join("a.md"), other.path().join("b.md"));
    std::os::unix::fs::symlink(&place.path, &link).unwrap();
    std::os::unix::fs::symlink("a.md", &link_to_link).unwrap();
    for (path, keep) in [(&link, 4), (&link_to_link, 2)] {
        let target = fs::read_link(path).unwrap();
        place.put(".a.md.AbC123");
        assert!(trim_now(path, keep, true).unwrap() > 0);
        assert_eq!(fs::read_link(path).unwrap(), target);
        assert_eq!(place.bytes(), log(5).as_bytes()[log(5 - keep).len()..]);
        assert_eq!(names_in(other.path()), ["a.md", "b.md"]);
        // The target may lie among somebody else's files.
        assert_eq!(place.names(), [".a.md.AbC123", "a.md"]);
    }
}

#[test]
fn what_a_killed_trim_left_is_swept_from_our_own_directory_alone() {
    let leftovers = [".a.md.000000", ".a.md.AbC123"];
    let others =
        [".a.md.AbC12", ".a.md.AbC1234", ".a.md.AbC-12", ".a.mdx.AbC123", ".b.md.AbC123", "a.md.AbC123"];
    // With something to trim, and with nothing.
    for (own_dir, keep) in [(true, 2), (true, 9), (false, 2), (false, 9)] {
        let place = Place::with(log(5));
        leftovers.iter().chain(&others).for_each(|name| place.put(name));
        trim_now(&place.path, keep, own_dir).unwrap();
        let mut expected = [&others[..], &["a.md"]].concat();
        if !own_dir {
            expected.extend(leftovers);
        }
        expected.sort();
        assert_eq!(place.names(), expected, "{own_dir} {keep}");
    }
}

#[test]
fn after_a_fault_the_log_is_as_it_was() {
    // So long a name that no temporary file fits beside it.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("n".repeat(250));
    fs::write(&path, log(5)).unwrap();
    let error = trim_now(&path, 2, true).unwrap_err();
    assert!(error.to_string().starts_with("cannot replace \""), "{error}");
    assert_eq!(fs::read(&path).unwrap(), log(5).as_bytes());
    assert_eq!(names_in(dir.path()), ["n".repeat(250)]);
    // A directory in the log's place.
    let error = trim_now(dir.path(), 2, true).unwrap_err();
    assert!(error.to_string().ends_with("is not a regular file"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_directory_that_takes_no_file_leaves_the_log_alone() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::with(log(5));
    fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let powerless = fs::write(place.dir.path().join("probe"), "").is_err();
    let trimmed = trim_now(&place.path, 2, true);
    fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // The superuser may write anywhere.
    if powerless {
        assert!(trimmed.unwrap_err().to_string().starts_with("cannot replace \""));
        assert_eq!(place.bytes(), log(5).as_bytes());
        assert_eq!(place.names(), ["a.md"]);
    }
}

const APPENDERS: usize = 64;
const EACH: usize = 200;

/// 64 threads append 200 entries each while another trims to `keep`, again and again. Gives back how many
/// entries were removed, and `(appender, number)` of each that is left, in the order of the log.
///
/// Every append opens the file anew, so that they exclude each other as processes do. No entry that is left
/// may have been appended wholly before one that was removed.
fn contest(keep: usize) -> (u64, Vec<(usize, usize)>) {
    let place = Place::with("");
    let clock = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    let mut times: BTreeMap<(usize, usize), (u64, u64)> = BTreeMap::new();
    let mut removed = 0;
    std::thread::scope(|scope| {
        let trimmer = scope.spawn(|| {
            let (mut removed, mut trims) = (0, 0);
            while !done.load(Ordering::SeqCst) {
                removed += trim_now(&place.path, keep, true).unwrap();
                trims += 1;
            }
            assert!(trims > 3, "only {trims} trims");
            removed
        });
        let appenders: Vec<_> = (0..APPENDERS)
            .map(|who| {
                let (clock, path) = (&clock, &place.path);
                scope.spawn(move || {
                    let one = |n: usize| {
                        let before = clock.fetch_add(1, Ordering::SeqCst);
                        append(path, &entry(Timestamp::UNIX_EPOCH, &format!("{who} {n}"), "done", 0), soon())
                            .unwrap();
                        ((who, n), (before, clock.fetch_add(1, Ordering::SeqCst)))
                    };
                    (0..EACH).map(one).collect::<Vec<_>>()
                })
            })
            .collect();
        times.extend(appenders.into_iter().flat_map(|appender| appender.join().unwrap()));
        done.store(true, Ordering::SeqCst);
        removed = trimmer.join().unwrap();
    });
    removed += trim_now(&place.path, keep, true).unwrap();
    let left: Vec<_> = split(&place.bytes()).iter().map(|entry| whole(entry)).collect();
    assert_eq!(place.bytes().len(), split(&place.bytes()).concat().len(), "words before the first header");
    let stands: BTreeSet<_> = left.iter().collect();
    let (kept, gone): (Vec<_>, Vec<_>) = times.iter().partition(|(entry, _)| stands.contains(entry));
    let oldest_kept = kept.iter().map(|(_, (_, after))| *after).min().unwrap();
    if let Some(newest_gone) = gone.iter().map(|(_, (before, _))| *before).max() {
        assert!(newest_gone < oldest_kept, "an older entry stayed where a newer one went");
    }
    assert_eq!(place.names(), ["a.md"]);
    (removed, left)
}

/// Who wrote the entry, and which of theirs it is; a torn entry is a failure.
fn whole(entry: &[u8]) -> (usize, usize) {
    let text = std::str::from_utf8(entry).unwrap();
    let task = text.strip_prefix("## 1970-01-01T00:00:00Z\n**Task:** ").unwrap();
    let task = task.strip_suffix("\n**Result:** done\n\n").unwrap_or_else(|| panic!("torn: {text:?}"));
    let (who, n) = task.split_once(' ').unwrap();
    (who.parse().unwrap(), n.parse().unwrap())
}

/// What each appender has in the log, in the log's order.
fn by_appender(left: &[(usize, usize)]) -> BTreeMap<usize, Vec<usize>> {
    let mut all: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (who, n) in left {
        all.entry(*who).or_default().push(*n);
    }
    all
}

#[test]
fn trims_that_cut_nothing_lose_nothing_to_64_appenders() {
    let (removed, left) = contest(APPENDERS * EACH + 1);
    assert_eq!((removed, left.len()), (0, APPENDERS * EACH));
    assert_eq!(by_appender(&left), (0..APPENDERS).map(|who| (who, (0..EACH).collect())).collect());
}

#[test]
fn trims_that_cut_keep_the_newest_whatever_64_appenders_do() {
    for keep in [1, 100] {
        let (removed, left) = contest(keep);
        assert_eq!((removed as usize, left.len()), (APPENDERS * EACH - keep, keep));
        for (who, numbers) in by_appender(&left) {
            let newest: Vec<_> = (EACH - numbers.len()..EACH).collect();
            assert_eq!(numbers, newest, "appender {who}");
        }
    }
}
