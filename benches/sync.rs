//! `memory-sync`: two machines with ten thousand notes that have each changed a hundred.

use crate::measure::{Home, line, median, ms, own, row, time_row};
use crate::notes;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SYNC: &str = env!("CARGO_BIN_EXE_memory-sync");
const NOTES: u64 = 10_000;
const CHANGED: usize = 100;
const ROUNDS: usize = 7;
/// For the whole sync, in ms; and for its memory, in MiB.
const TIME: u64 = 2_000;
const MEMORY: f64 = 64.0;

pub fn bench() {
    let (one, two, nas) = (Home::new(), Home::new(), Home::new());
    let remote = nas.path().join("memory.git");
    let remote = remote.to_str().unwrap();
    assert!(Command::new("git").args(["init", "--quiet", "--bare", remote]).status().unwrap().success());
    notes::generate(one.path(), NOTES);
    let first = one.time(&[SYNC, "--remote", remote]);
    let join = two.time(&[SYNC, "--remote", remote]);
    let paths = files(&notes::topics(one.path()));
    assert_eq!(paths.len() as u64, NOTES);
    let (mut merges, mut idle, mut unit) = (Vec::new(), Vec::new(), Vec::new());
    let mut peak: f64 = 0.0;
    for round in 0..ROUNDS {
        // A hundred each, of which half are the same.
        let start = round * 2 * CHANGED;
        change(one.path(), &paths[start..start + CHANGED], "one");
        change(two.path(), &paths[start + CHANGED / 2..start + CHANGED / 2 + CHANGED], "two");
        one.time(&[SYNC]);
        if round == 0 {
            peak = two.peak(&[SYNC]);
        } else {
            merges.push(two.time(&[SYNC]));
        }
        one.time(&[SYNC]);
        idle.push(one.time(&[SYNC]));
        unit.push(one.time(&[&own(), "nothing"]));
        let same = |name: &PathBuf| {
            let text = |home: &Home| fs::read(notes::topics(home.path()).join(name)).unwrap();
            text(&one) == text(&two)
        };
        assert!(paths[start..start + 2 * CHANGED].iter().all(same), "both have the same");
    }
    let unit = median(&mut unit);
    line("memory-sync: 10,000 notes, the first time", &ms(first), "", None);
    line("  the second machine", &ms(join), "", None);
    time_row("  100 changed on each side", median(&mut merges), unit, Some(TIME));
    time_row("  nothing changed", median(&mut idle), unit, None);
    row("  peak of the merge", "", Some(peak), Some(MEMORY), " MiB");
}

fn files(topics: &Path) -> Vec<PathBuf> {
    let mut names: Vec<PathBuf> =
        fs::read_dir(topics).unwrap().map(|file| PathBuf::from(file.unwrap().file_name())).collect();
    names.sort();
    names
}

/// A read is counted, and a line is added: at the top on one machine, at the end on the other.
fn change(home: &Path, names: &[PathBuf], who: &str) {
    for name in names {
        let path = notes::topics(home).join(name);
        let text = fs::read_to_string(&path).unwrap().replace("\nused: 3\n", "\nused: 4\n");
        let text = match who {
            "one" => text.replace("---\n\n", &format!("---\n\nA line of {who}.\n")),
            _ => format!("{}\nA line of {who}.\n", text.trim_end()),
        };
        fs::write(path, text).unwrap();
    }
}
