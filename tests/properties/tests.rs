//! Runs each target with its seeds, and with copies that are damaged in the same way each time.

use super::*;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

/// Each seed is damaged in this many places.
const PLACES: usize = 6;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let dir = fs::read_dir(root().join("tests/seeds").join(target)).unwrap();
    let paths = dir.map(|entry| entry.unwrap().path());
    paths.map(|path| (path.display().to_string(), fs::read(&path).unwrap())).collect()
}

/// Copies that are cut short, have a gap, a flipped byte, something inserted, or the seed twice.
fn damaged(seed: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![seed.to_vec(), seed.repeat(2)];
    for n in 0..PLACES.min(seed.len()) {
        let at = n * seed.len() / PLACES.min(seed.len());
        all.push(seed[..at].to_vec());
        all.push([&seed[..at], &seed[(at + 7).min(seed.len())..]].concat());
        let mut flipped = seed.to_vec();
        flipped[at] ^= [1, 0x20, 0x80, 0xff][n % 4];
        all.push(flipped);
        let put_in: &[u8] = [&b"\n"[..], b"\0", b"\"", b"\xff", b"\r\n", b"---\n"][n % 6];
        all.push([&seed[..at], put_in, &seed[at..]].concat());
    }
    all
}

#[test]
fn every_target_holds_for_its_seeds_and_for_damaged_ones() {
    let check = |(target, holds): &(&str, Holds)| {
        let seeds = seeds(target);
        assert!(!seeds.is_empty(), "{target} has no seeds");
        for (path, seed) in seeds {
            for bytes in damaged(&seed) {
                if catch_unwind(|| holds(&bytes)).is_err() {
                    panic!("{target} does not hold for this, made of {path}: {:?}", text(&bytes));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = TARGETS.iter().map(|target| scope.spawn(|| check(target))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn every_target_has_a_fuzzer_and_seeds_and_no_other_has() {
    let names = |dir: &str| {
        let entries = fs::read_dir(root().join(dir)).unwrap();
        let name = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap().path())).collect();
        names.sort();
        names
    };
    let targets: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names("tests/seeds"), targets);
    // The crate's own tarball has no other packages.
    if !root().join("fuzz").exists() {
        return;
    }
    assert_eq!(names("fuzz/fuzz_targets"), targets);
    for target in targets {
        let text = fs::read_to_string(root().join(format!("fuzz/fuzz_targets/{target}.rs"))).unwrap();
        assert!(text.contains(&format!("axe::fuzz::run(\"{target}\", bytes)")), "{text}");
        let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
        assert!(manifest.contains(&format!("name = \"{target}\"\n")), "{target} is not in fuzz/Cargo.toml");
    }
}

#[test]
fn an_input_has_parts() {
    assert_eq!(parts::<2>(b"a\n====\nb\n====\nc"), [&b"a"[..], b"b\n====\nc"]);
    assert_eq!(parts::<3>(b"a"), [&b"a"[..], b"", b""]);
}
