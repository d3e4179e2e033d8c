//! What notes cost: to queue, to list and search, to read.

use crate::measure::{Home, RUNS, median, ms, own, row, settle, size_rows, time_row};
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
const MEMORY: &str = env!("CARGO_BIN_EXE_memory");
const STATUS: &str = env!("CARGO_BIN_EXE_memory-status");
const READ: &str = env!("CARGO_BIN_EXE_memory-read");

/// What a person or a hook asks.
const QUERY: &[&str] = &[LIST, "--query", "retry the queue after a timeout", "--limit", "10"];
/// The same with all that it finds: nearly every note has one of the words.
const QUERY_ALL: &[&str] = &[LIST, "--query", "retry the queue after a timeout"];

pub fn bench() {
    start();
    capture();
    growth();
    cache();
    doctor();
    size_rows(&[
        (MEMORY, Some(3.0)),
        (STATUS, Some(3.0)),
        (env!("CARGO_BIN_EXE_memory-config"), Some(3.0)),
        (AGENTS_MD, Some(3.0)),
        (CAPTURE, Some(3.0)),
        (DOCTOR, Some(3.0)),
        (LIST, Some(3.0)),
        (READ, Some(3.0)),
        (env!("CARGO_BIN_EXE_memory-update"), Some(3.0)),
        (env!("CARGO_BIN_EXE_memory-remove"), Some(3.0)),
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

pub fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort();
    times[(times.len() * percent).div_ceil(100).saturating_sub(1)]
}

/// What is done with a store, and what each may take with ten thousand notes, in ms.
const ACTS: [(&str, Option<u64>); 9] = [
    ("memory-list", Some(80)),
    ("memory-list --query --limit 10", Some(50)),
    ("memory-list --query, all that it finds", None),
    ("memory-read --no-count of one", None),
    ("memory-read of one, counted and synced", None),
    ("memory-agents-md, nothing to do", Some(80)),
    ("memory-doctor", Some(250)),
    ("memory-status", Some(30)),
    ("memory completions notes", Some(50)),
];

/// Stores of a thousand, ten thousand and a hundred thousand notes: nothing may take more than its share longer.
fn growth() {
    let stores = [("1,000", 1_000, 21), ("10,000", 10_000, 11), ("100,000", 100_000, 3)];
    let times = stores.map(|(shown, count, runs)| store(shown, count, runs));
    for (act, (name, _)) in ACTS.iter().enumerate() {
        for (few, many) in [(0, 1), (1, 2)] {
            let ratio = times[many][act].as_secs_f64() / (10.0 * times[few][act].as_secs_f64());
            let figure = format!("{name}: {} notes against ten times {}", stores[many].0, stores[few].0);
            row(&figure, "", Some(ratio), Some(1.2), "×");
        }
    }
}

/// A store of so many notes; the times of all [`ACTS`].
fn store(shown: &str, count: u64, runs: usize) -> [Duration; 9] {
    let own = own();
    let home = Home::new();
    notes::generate(home.path(), count);
    let id = notes::id(count / 2);
    let nothing: &[&str] = &[&own, "nothing"];
    let look: &[&str] = &[READ, "--no-count", &id];
    let read: &[&str] = &[READ, &id];
    // The first run makes the file, those that are counted find it as it should be.
    let section: &[&str] = &[AGENTS_MD, "--target", "AGENTS.md"];
    let complete: &[&str] = &[MEMORY, "completions", "notes"];
    let acts: [&[&str]; 9] = [&[LIST], QUERY, QUERY_ALL, look, read, section, &[DOCTOR], &[STATUS], complete];
    std::thread::sleep(SETTLED);
    let mut times = home.times(&[&[nothing][..], &acts].concat(), runs);
    let unit = times.remove(0);
    for (((name, aim), words), time) in ACTS.iter().zip(acts).zip(&times) {
        let aim = aim.filter(|_| count == 10_000);
        time_row(&format!("{name}, {shown} notes of 1.5 KB"), *time, unit, aim);
        if aim.is_some() {
            row("  peak memory of the same", "", Some(home.peak(words)), Some(64.0), " MiB");
        } else if count > 10_000 {
            row("  peak memory of the same", "", Some(home.peak(words)), None, " MiB");
        }
    }
    times.try_into().unwrap()
}

/// The cache does not know files that are younger than this.
pub const SETTLED: Duration = Duration::from_millis(2100);

/// What a query of ten thousand notes takes without the cache, with it, and with one that is no longer right.
fn cache() {
    let own = own();
    let home = Home::new();
    notes::generate(home.path(), 10_000);
    let topics = notes::topics(home.path());
    let file = topics.with_file_name(".agent-memory").join("notes.cache");
    let files: Vec<_> = fs::read_dir(&topics).unwrap().map(|entry| entry.unwrap().path()).collect();
    let change = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        fs::write(path, text + "One more line.\n").unwrap();
    };
    std::thread::sleep(SETTLED);
    let unit = home.times(&[&[&own, "nothing"]], RUNS)[0];
    let timed = |figure: &str, runs: usize, aim: Option<u64>, before: &dyn Fn()| {
        let mut times: Vec<Duration> = (0..runs)
            .map(|_| {
                before();
                home.time(QUERY)
            })
            .collect();
        time_row(&format!("query of 10,000 notes, {figure}"), median(&mut times), unit, aim);
    };
    timed("no cache: it is written", 5, None, &|| {
        let _ = fs::remove_file(&file);
    });
    timed("the cache is right", 21, Some(50), &|| {});
    timed("one note changed", 21, Some(50), &|| change(&files[77]));
    timed("all notes changed: it is written", 3, None, &|| {
        files.iter().for_each(|path| change(path));
        settle();
        std::thread::sleep(SETTLED);
    });
    row(
        "  size of the cache",
        "",
        Some(fs::metadata(&file).unwrap().len() as f64 / f64::from(1 << 20)),
        None,
        " MiB",
    );
}

/// A store of ten thousand notes with a history, and what asking git about it takes alone.
fn doctor() {
    let own = own();
    let home = Home::new();
    notes::generate(home.path(), 10_000);
    let root = notes::topics(home.path());
    let root = root.parent().unwrap();
    let identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"];
    for arguments in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "all"]] {
        let git = Command::new("git").args(identity).args(arguments).current_dir(root).status();
        assert!(git.unwrap().success(), "{arguments:?}");
    }
    settle();
    std::thread::sleep(SETTLED);
    let cache = root.join(".agent-memory/doctor.cache");
    let root = root.to_str().unwrap();
    let git: &[&str] = &["git", "-C", root, "--no-optional-locks", "status", "--porcelain", "-uall"];
    let times = home.times(&[&[&own, "nothing"], &[DOCTOR], git], 11);
    time_row("memory-doctor, 10,000 notes with a history", times[1], times[0], Some(250));
    time_row("  of which git status takes", times[2], times[0], None);
    let mut first: Vec<Duration> = (0..5)
        .map(|_| {
            let _ = fs::remove_file(&cache);
            home.time(&[DOCTOR])
        })
        .collect();
    time_row("  without its cache: it is written", median(&mut first), times[0], None);
}
