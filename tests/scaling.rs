//! What a program opens grows with the store, and no faster. Opens are counted, with strace, and no seconds: a busy machine
//! changes nothing.

use crate::memory_review::propose;
use crate::support::store::Store;
use serde_json::json;
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Ten times as much in the second store.
const SIZES: [usize; 2] = [12, 120];
/// What a program opens in any case.
const FIXED: usize = 60;

/// The six characters of the id with this number.
fn digits(number: usize) -> String {
    format!("a{number:05}").replace('0', "Z")
}

/// Notes, as many proposals for new ones, and as many notes in the queue.
fn store(count: usize) -> Store {
    let store = Store::new();
    for number in 0..count {
        let id = digits(number);
        store.note(&id, &format!("Title {number}"));
        let title = format!("Server {number}");
        let entry = json!({"title": title, "summary": "It is one.", "tags": [], "scope": "repo", "body": format!("Port {number} of it.\n"),
            "sources": [{"harness": "amp", "threadId": format!("T-{number}"), "repo": "github.com/o/r"}]});
        propose(&store, &format!("p__{id}"), json!({"entry": entry}));
        store.sandbox.jot(&format!("Jotted {number}"), "By hand.");
    }
    store
}

/// How many files the program opens, or looks for.
fn opens(store: &Store, program: &str, args: &[&str], input: &str) -> usize {
    let run = store.sandbox.std_command(program);
    let trace = store.sandbox.home().join("trace");
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-e", "trace=open,openat", "-o"]).arg(&trace).arg(run.get_program()).args(args);
    traced.env_clear().envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    traced
        .current_dir(store.sandbox.work())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = traced.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    std::fs::read_to_string(trace).unwrap().lines().count()
}

#[test]
fn no_program_opens_more_than_in_proportion_to_the_store() {
    if !["/usr/bin/strace", "/bin/strace"].iter().any(|path| Path::new(path).exists()) {
        return crate::support::say("strace is not here: nothing is counted");
    }
    let first = digits(0);
    let rows: &[(&str, &[&str])] = &[
        ("memory-list", &[]),
        ("memory-list", &["--query", "title"]),
        ("memory-read", &[&first]),
        ("memory-recall", &["which title has number 7?"]),
        ("memory-agents-md", &["--stdout"]),
        ("memory-capture", &["--title", "One more", "--body", "x"]),
        ("memory-update", &[&first, "--pin"]),
        ("memory-review", &[]),
        ("memory-review", &["--accept", "-"]),
        ("memory-remove", &[&first]),
        ("memory-doctor", &[]),
    ];
    let ids = |count: usize| {
        (0..count).fold(String::new(), |mut all, number| {
            let _ = writeln!(all, "{{\"id\": \"p__{}\"}}", digits(number));
            all
        })
    };
    let stores = SIZES.map(store);
    let mut faults = Vec::new();
    let mut count = |what: String, opened: [usize; 2]| {
        let factor = SIZES[1] / SIZES[0];
        // Twice, because decisions are made a hundred at a time; what grows with the square is at ten times.
        if opened[1] > opened[0] * factor * 2 + FIXED {
            faults
                .push(format!("{what}: {} opens of {}, {} of {}", opened[0], SIZES[0], opened[1], SIZES[1]));
        }
    };
    for (program, args) in rows {
        let opened = [0, 1].map(|size| opens(&stores[size], program, args, &ids(SIZES[size])));
        count(format!("{program} {args:?}"), opened);
    }
    let others = SIZES.map(store);
    let opened =
        [0, 1].map(|size| opens(&others[size], "memory-review", &["--reject", "-"], &ids(SIZES[size])));
    count("memory-review --reject -".to_owned(), opened);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
