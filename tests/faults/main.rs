//! Faults: every program that writes is killed once at each system call that changes something, and once refused by
//! the disk there in each of four ways. Afterwards everything that all programs promise must hold (`invariants.rs`).
//!
//! Not part of a plain `cargo test`: `cargo test --locked --test faults`. A usual run is a sample, with every program and
//! every call by name; with `FAULTS_SAMPLE=N` every scenario tries one in N, 1 being all. With `FAULTS=TEXT` only what
//! holds that text is run: `FAULTS="memory-read: a count signal=KILL"`, or less of it. With `FAULTS_KINDS=error=EINTR,…`
//! these faults are tried instead of the usual ones, and with `FAULTS_THEN=error=ENOSPC` the run that recovers from a kill
//! meets that, twice, instead of further kills.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may write files, and fails by panicking"
)]

mod agents_md;
mod answers;
mod axe;
mod capture;
mod consolidate;
mod cron;
mod crowds;
mod defrag;
mod doctor;
mod full;
mod histories;
mod hooks;
mod invariants;
mod late;
mod notes;
mod order;
mod pairs;
mod recall;
mod reference;
mod review;
mod scenario;
mod strace;
mod sync;

#[allow(dead_code, reason = "shared with the tests of behaviour, which use all of it")]
#[path = "../support/mod.rs"]
mod support;

use crate::scenario::{Scenario, Tally, inject};
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Past the capture of output, so that it is seen in a test that passes.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("faults: {text}\n").as_bytes());
}

/// A usual run tries one in so many faults: six minutes with two processors.
const USUAL: usize = 3;

/// The long ones first, so that none is waited for in the end.
fn scenarios() -> Vec<Scenario> {
    let parts = [
        sync::scenarios(),
        defrag::scenarios(),
        consolidate::scenarios(),
        cron::scenarios(),
        doctor::scenarios(),
        axe::scenarios(),
        notes::scenarios(),
        review::scenarios(),
        hooks::scenarios(),
        capture::scenarios(),
        agents_md::scenarios(),
        recall::scenarios(),
    ];
    parts.into_iter().flatten().collect()
}

#[test]
fn whatever_fails_wherever_every_program_keeps_its_promises() {
    strace::assert_able();
    let step = std::env::var("FAULTS_SAMPLE").ok().map(|text| text.parse::<usize>().unwrap());
    let step = |scenario: &Scenario| step.unwrap_or(scenario.sample * USUAL);
    let only = std::env::var("FAULTS").unwrap_or_default();
    let jobs: Vec<(Scenario, Vec<&str>)> = scenarios()
        .into_iter()
        .map(|scenario| {
            let is_wanted = |fault: &&str| format!("{} {fault}", scenario.name).contains(&only);
            let kinds = scenario.faults().filter(is_wanted).collect();
            (scenario, kinds)
        })
        .filter(|(_, kinds): &(Scenario, Vec<&str>)| !kinds.is_empty())
        .collect();
    let next = AtomicUsize::new(0);
    let tallies: Mutex<Vec<Tally>> = Mutex::default();
    let work = || {
        while let Some((scenario, kinds)) = jobs.get(next.fetch_add(1, Ordering::SeqCst)) {
            let tally = inject(scenario, kinds, step(scenario));
            report(scenario, &tally, step(scenario));
            tallies.lock().unwrap().push(tally);
        }
    };
    let workers = std::thread::available_parallelism().map_or(2, usize::from) + 1;
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let tallies = tallies.into_inner().unwrap();
    let injected: usize = tallies.iter().map(|tally| tally.injected).sum();
    let calls: usize = tallies.iter().map(|tally| tally.calls).sum();
    let programs: BTreeSet<&str> =
        jobs.iter().map(|(scenario, _)| scenario.name.split(':').next().unwrap()).collect();
    let wrong: Vec<&str> = tallies.iter().flat_map(|tally| &tally.wrong).map(String::as_str).collect();
    let end =
        if wrong.is_empty() { "all survived".to_owned() } else { format!("{} not survived", wrong.len()) };
    say(&format!("{injected} injected at {calls} calls of {} programs, {end}", programs.len()));
    assert!(wrong.is_empty(), "{} faults were not survived:\n{}", wrong.len(), wrong.join("\n"));
}

fn report(scenario: &Scenario, tally: &Tally, step: usize) {
    let Tally { calls, planned, injected, .. } = *tally;
    let sampled = if step > 1 { format!(", sampled 1 in {step}") } else { String::new() };
    let wrong = match tally.wrong.len() {
        0 => String::new(),
        wrong => format!(", {wrong} NOT SURVIVED"),
    };
    let seconds = tally.time.as_secs_f64();
    say(&format!("{}: {injected} injected at {calls} calls{sampled}{wrong}, {seconds:.1} s", scenario.name));
    assert!(
        injected * 10 >= planned * 9 && injected > 0,
        "{}: only {injected} of {planned} faults took place",
        scenario.name
    );
}
