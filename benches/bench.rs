//! `cargo bench`: what the programs cost, as ratios in one run, because machines differ and are noisy.
//! `cargo bench -- memory` measures one group alone.
//!
//! The unit is a Rust program that does nothing: this one, called with `nothing`. Commands that are compared
//! run in turn, and medians are compared, so that a slow second hits all of them. A figure that misses its
//! aim is marked; nothing fails.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, writes its own files and fails by panicking"
)]

mod axe;
mod consolidate;
mod day;
mod defrag;
mod defrag_cost;
mod measure;
mod memory;
mod month;
mod notes;
mod quality;
mod queue;
mod recall;
mod search;
mod sync;

use std::ffi::OsString;

const GROUPS: [(&str, fn()); 11] = [
    ("axe", axe::bench),
    ("memory", memory::bench),
    ("consolidate", consolidate::bench),
    ("defrag", defrag::bench),
    ("defrag-cost", defrag_cost::bench),
    ("month", month::bench),
    ("recall", recall::bench),
    ("queue", queue::bench),
    ("search", search::bench),
    ("quality", quality),
    ("sync", sync::bench),
];

/// What becomes of planted facts, and of the mistakes of a morning.
fn quality() {
    quality::bench();
    day::bench();
}

fn main() {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    match words.first().and_then(|word| word.to_str()) {
        Some("nothing") => {}
        Some("peak") => measure::print_peak(&words[1..]),
        _ => bench(&words),
    }
}

/// Cargo adds flags of its own; other words name groups.
fn bench(words: &[OsString]) {
    let wanted: Vec<&str> =
        words.iter().filter_map(|word| word.to_str()).filter(|word| !word.starts_with('-')).collect();
    for name in &wanted {
        assert!(
            GROUPS.iter().any(|(group, _)| group == name),
            "no group \"{name}\": {}",
            GROUPS.map(|(group, _)| group).join(", ")
        );
    }
    println!("{:<56} {:>12} {:>11}  aim", "figure", "value", "ratio");
    for (_, group) in GROUPS.iter().filter(|(name, _)| wanted.is_empty() || wanted.contains(name)) {
        group();
    }
    measure::summary();
}
