//! What notes cost: to queue, to list and search, to read.

use crate::measure::{Home, RUNS, median, ms, own, row, size_rows, time_row};
use crate::notes;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const CAPTURE: &str = env!("CARGO_BIN_EXE_memory-capture");
const DOCTOR: &str = env!("CARGO_BIN_EXE_memory-doctor");
const LIST: &str = env!("CARGO_BIN_EXE_memory-list");
const AGENTS_MD: &str = env!("CARGO_BIN_EXE_memory-agents-md");
const READ: &str = env!("CARGO_BIN_EXE_memory-read");

const QUERY: &[&str] = &[LIST, "--query", "retry the queue after a timeout"];

pub(crate) fn bench() {
    start();
    capture();
    let ten_thousand = store(10_000, Some(150), 11);
    let hundred_thousand = store(100_000, None, 3);
    for (what, few, many) in
        [("list", ten_thousand.0, hundred_thousand.0), ("query", ten_thousand.1, hundred_thousand.1)]
    {
        let ratio = many.as_secs_f64() / (10.0 * few.as_secs_f64());
        let figure = format!("{what} of 100,000 against ten times that of 10,000");
        row(&figure, "", Some(ratio), Some(1.2), "×");
    }
    doctor();
    size_rows(&[
        (env!("CARGO_BIN_EXE_memory"), None),
        (env!("CARGO_BIN_EXE_memory-config"), None),
        (AGENTS_MD, Some(1.5)),
        (CAPTURE, Some(1.5)),
        (DOCTOR, None),
        (LIST, Some(1.5)),
        (READ, Some(1.5)),
        (env!("CARGO_BIN_EXE_memory-update"), Some(1.5)),
        (env!("CARGO_BIN_EXE_memory-remove"), Some(1.5)),
    ]);
}

fn start() {
    let own = own();
    let home = Home::new();
    let times = home.times(&[&[&own, "nothing"], &[LIST, "--version"], &[LIST], QUERY], RUNS);
    time_row("memory-list --version", times[1], times[0], None);
    time_row("memory-list without a store", times[2], times[0], None);
    time_row("  with --query", times[3], times[0], None);
}

/// A capture is synced: most of its time is the disk's. So the same is done by hand in turn with it.
fn capture() {
    const CAPTURES: usize = 1000;
    let own = own();
    let home = Home::new();
    let beside = home.path().join("by-hand");
    fs::create_dir(&beside).unwrap();
    let body = "Three attempts, exponential backoff from 200 ms, jitter of a quarter. ".repeat(8);
    let (mut captures, mut by_hand, mut nothing) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..=CAPTURES {
        let title = format!("What came of attempt {n}");
        let capture = home.time(&[CAPTURE, "--title", &title, "--body", &body]);
        let started = Instant::now();
        write_by_hand(&beside, n, body.as_bytes());
        let hand = started.elapsed();
        let empty = home.time(&[&own, "nothing"]);
        // The first makes the store.
        if n > 0 {
            captures.push(capture);
            by_hand.push(hand);
            nothing.push(empty);
        }
    }
    let queued = fs::read_dir(notes::topics(home.path()).with_file_name("inbox")).unwrap();
    let queued =
        queued.filter(|file| file.as_ref().unwrap().path().extension() == Some("json".as_ref())).count();
    assert_eq!(queued, CAPTURES + 1, "each capture is an entry");
    let unit = median(&mut nothing);
    time_row("memory-capture, median of 1,000", median(&mut captures), unit, None);
    time_row("  99th percentile", percentile(&mut captures, 99), unit, Some(20));
    row("  of which file and directory synced by hand", &ms(median(&mut by_hand)), None, None, "");
    row("    99th percentile", &ms(percentile(&mut by_hand, 99)), None, None, "");
}

/// Write, sync, rename, sync the directory.
fn write_by_hand(dir: &Path, n: usize, bytes: &[u8]) {
    let beside = dir.join("new");
    let mut new = File::create(&beside).unwrap();
    new.write_all(bytes).unwrap();
    new.sync_all().unwrap();
    fs::rename(beside, dir.join(n.to_string())).unwrap();
    File::open(dir).unwrap().sync_all().unwrap();
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort();
    times[(times.len() * percent).div_ceil(100).saturating_sub(1)]
}

/// A store of so many notes; the times of listing and of searching it.
fn store(count: u64, aim: Option<u64>, runs: usize) -> (Duration, Duration) {
    let own = own();
    let home = Home::new();
    notes::generate(home.path(), count);
    let list: &[&str] = &[LIST];
    let id = notes::id(count / 2);
    let nothing: &[&str] = &[&own, "nothing"];
    let look: &[&str] = &[READ, "--no-count", &id];
    let read: &[&str] = &[READ, &id];
    // The first run makes the file, those that are counted find it as it should be.
    let section: &[&str] = &[AGENTS_MD, "--target", "AGENTS.md"];
    let times = home.times(&[nothing, list, QUERY, look, read, section], runs);
    let shown = format!("{},000", count / 1000);
    let memory = aim.map(|_| 64.0);
    time_row(&format!("memory-list of {shown} notes of 1.5 KB"), times[1], times[0], aim);
    row("  peak memory of the same", "", Some(home.peak(list)), memory, " MiB");
    time_row("memory-list --query over the same", times[2], times[0], aim);
    row("  peak memory of the same", "", Some(home.peak(QUERY)), memory, " MiB");
    time_row(&format!("memory-read --no-count of one in {shown}"), times[3], times[0], None);
    time_row("  counted, and the note synced", times[4], times[0], None);
    time_row(&format!("memory-agents-md of {shown}, nothing to do"), times[5], times[0], aim);
    row("  peak memory of the same", "", Some(home.peak(section)), memory, " MiB");
    (times[1], times[2])
}

/// A store of ten thousand notes looked at, without a history and with one.
fn doctor() {
    let own = own();
    let home = Home::new();
    notes::generate(home.path(), 10_000);
    let words: &[&str] = &[DOCTOR];
    let times = home.times(&[&[&own, "nothing"], words], 11);
    time_row("memory-doctor of 10,000 notes of 1.5 KB", times[1], times[0], Some(300));
    row("  peak memory of the same", "", Some(home.peak(words)), Some(64.0), " MiB");
    let root = notes::topics(home.path());
    let root = root.parent().unwrap();
    let identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"];
    for arguments in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "all"]] {
        let git = Command::new("git").args(identity).args(arguments).current_dir(root).status();
        assert!(git.unwrap().success(), "{arguments:?}");
    }
    let times = home.times(&[&[&own, "nothing"], words], 11);
    time_row("  with a history, which git is asked about", times[1], times[0], Some(300));
}
