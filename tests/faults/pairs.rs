//! Two programs at once, one of which is killed: what the other one has acknowledged stands, and the next run of the
//! killed one ends what it began.

use crate::support::Said;
use crate::support::world::{World, words};
use crate::{consolidate, defrag, notes, say};
use serde_json::Value;

struct Pair {
    name: &'static str,
    make: fn() -> World,
    /// One in so many of its calls.
    sample: usize,
}

/// How many notes the other program adds meanwhile, one after another.
const ADDED: usize = 4;

fn pairs() -> [Pair; 5] {
    [
        Pair { name: "memory-defrag", make: defrag::whole, sample: 15 },
        Pair { name: "memory-consolidate", make: || consolidate::mixed(true, false), sample: 15 },
        Pair {
            name: "memory-consolidate without an LLM",
            make: || consolidate::mixed(false, false),
            sample: 6,
        },
        Pair {
            name: "memory-update",
            make: || notes::one("memory-update", &["AAAAAA", "--title", "New"]),
            sample: 1,
        },
        Pair { name: "memory-remove", make: || notes::one("memory-remove", &["AAAAAA"]), sample: 1 },
    ]
}

/// Kills the run at this call, while notes are added.
fn trial(world: &World, fault: &str) -> Result<bool, String> {
    let (killed, added) = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let add = |n: usize| {
                let title = format!("Added meanwhile {n}");
                let arguments = ["--direct", "--title", &title, "--body", "It stands."];
                world.ended(world.command("memory-capture", &words(&arguments)))
            };
            (0..ADDED).map(add).collect::<Result<Vec<_>, _>>()
        });
        (world.disturbed(false, fault), other.join().unwrap())
    });
    let (killed, added) = (killed?, added?);
    if let Some(refused) = added.iter().find(|output| output.code() != Some(0)) {
        return Err(format!("the other one minds: {refused:?}"));
    }
    for _ in 0..2 {
        let next = world.run(&world.arguments);
        // What is put away already is not there to be put away; a session that is missing is a failed try.
        if !matches!(next.code(), Some(0 | 1 | 3)) || next.err().contains("panicked") {
            return Err(format!("the next run: {next:?}"));
        }
    }
    stand(world, added.len())?;
    Ok(killed.is_killed())
}

/// Each added note is there once, and the store is in order.
fn stand(world: &World, added: usize) -> Result<(), String> {
    let notes = world.notes();
    for n in 0..added {
        let title = format!("title: Added meanwhile {n}\n");
        let places: Vec<&String> =
            notes.iter().filter(|(_, node)| node.text().contains(&title)).map(|(path, _)| path).collect();
        if places.len() != 1 {
            return Err(format!("\"{}\" is in {places:?}", title.trim_end()));
        }
    }
    let doctor = world.ended(world.command("memory-doctor", &words(&["--json"])))?;
    let report: Value = serde_json::from_str(&doctor.out()).map_err(|e| format!("{e}: {doctor:?}"))?;
    let out_of_order = |finding: &&Value| {
        let checks = ["store", "schema", "duplicate-id", "alias", "ledger", "batch"];
        finding["severity"] == "error" && checks.iter().any(|check| finding["check"] == *check)
    };
    match report["findings"].as_array().into_iter().flatten().find(out_of_order) {
        Some(finding) => Err(format!("the doctor finds: {finding}")),
        None => Ok(()),
    }
}

#[test]
fn what_is_acknowledged_while_another_program_is_killed_stands() {
    crate::strace::assert_able();
    let only = std::env::var("FAULTS").unwrap_or_default();
    let mut wrong = Vec::new();
    for pair in pairs().iter().filter(|pair| pair.name.contains(&only)) {
        let world = (pair.make)();
        world.keep_as_template();
        world.begin();
        let points = world.points(false, "", false);
        let (mut tried, mut killed) = (0, 0);
        for (name, k) in points.iter().step_by(pair.sample) {
            world.begin();
            let fault = format!("{name}:signal=KILL:when={k}");
            tried += 1;
            match trial(&world, &fault) {
                Ok(is_killed) => killed += usize::from(is_killed),
                Err(why) => wrong.push(format!("{} {fault}: {why}", pair.name)),
            }
        }
        say(&format!("{} beside memory-capture: {killed} killed in {tried} trials", pair.name));
        if wrong.is_empty() {
            assert!(killed * 2 > tried, "{}: only {killed} of {tried} were killed", pair.name);
        }
    }
    assert!(wrong.is_empty(), "{} not survived:\n{}", wrong.len(), wrong.join("\n"));
}

/// Programs for a random run, each with what is given to it on the command line.
const CROWD: &[(&str, &[&str])] = &[
    ("memory-update", &["AAAAAA", "--tag", "+crowd"]),
    ("memory-read", &["AAAAAA"]),
    ("memory-list", &["--query", "added"]),
    ("memory-consolidate", &["--quiet"]),
    ("memory-agents-md", &["--target", "AGENTS.md"]),
    ("memory-doctor", &["--fix"]),
    ("memory-capture", &["--title", "Queued", "--body", "It waits."]),
];

/// By hand, or once a week: `SOAK_SECONDS=600 cargo test --locked --test faults soak -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes"]
fn soak() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};
    let variable = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seconds = variable("SOAK_SECONDS").unwrap_or(600);
    let seed = variable("SOAK_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    say(&format!("SOAK_SEED={seed} SOAK_SECONDS={seconds}"));
    let world = notes::one("memory-list", &[]);
    let end = Instant::now() + Duration::from_secs(seconds);
    let (runs, kills) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let added: Vec<String> = std::thread::scope(|scope| {
        let worker = |worker: u64| {
            let (world, runs, kills) = (&world, &runs, &kills);
            scope.spawn(move || {
                let mut random = seed.wrapping_mul(31).wrapping_add(worker);
                let mut next = |below: u64| {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    (random >> 33) % below
                };
                let mut added = Vec::new();
                while Instant::now() < end {
                    let run = runs.fetch_add(1, Ordering::Relaxed);
                    let title = format!("Soaked {run}");
                    let direct = ["--direct", "--title", &title, "--body", "It stands."];
                    let (program, arguments) = match usize::try_from(next(10)).unwrap() {
                        n if n < CROWD.len() => CROWD[n],
                        _ => ("memory-capture", &direct[..]),
                    };
                    let mut command = world.command(program, &words(arguments));
                    command.stdin(std::process::Stdio::null());
                    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
                    let child = command.spawn().unwrap();
                    let is_killed = next(4) == 0;
                    if is_killed {
                        std::thread::sleep(Duration::from_millis(next(60)));
                        let _ = kill_process(Pid::from_child(&child), Signal::KILL);
                        kills.fetch_add(1, Ordering::Relaxed);
                    }
                    let output = child.wait_with_output().unwrap();
                    assert!(!output.err().contains("panicked"), "{program}: {output:?}");
                    if output.code() == Some(0) && arguments == direct {
                        added.push(title);
                    }
                }
                added
            })
        };
        let workers: Vec<_> = (0..20).map(worker).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let notes = world.notes();
    for title in &added {
        let title = format!("title: {title}\n");
        assert_eq!(notes.values().filter(|node| node.text().contains(&title)).count(), 1, "{title}");
    }
    stand(&world, 0).unwrap();
    assert!(!added.is_empty());
    say(&format!(
        "{} runs, {} killed, {} notes acknowledged, all are there",
        runs.into_inner(),
        kills.into_inner(),
        added.len()
    ));
}
