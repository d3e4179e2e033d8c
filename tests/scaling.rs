//! What a program does grows with the store, and no faster. System calls on files, and threads, are counted with strace, and no
//! seconds: a busy machine changes nothing.

use crate::memory_review::propose;
use crate::support::present;
use crate::support::programs;
use crate::support::store::Store;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Ten times as much in the second store.
const SIZES: [usize; 2] = [12, 120];
/// What a program does in any case.
const FIXED: usize = 200;
const COUNTED: &str =
    "--trace=?open,?openat,?stat,?lstat,?newfstatat,?statx,?readlink,?getdents64,?clone,?clone3";

/// A session ends, of a program that keeps it in a file.
const HOOK: &str = concat!(
    r#"{"hook_event_name": "SessionEnd", "session_id": "s", "cwd": "/", "transcript_path": ""#,
    env!("CARGO_MANIFEST_DIR"),
    r#"/Cargo.toml"}"#
);

/// The six characters of the id with this number.
fn digits(number: usize) -> String {
    format!("a{number:05}").replace('0', "Z")
}

/// Notes, as many proposals for new ones, as many notes in the queue, and as many checkouts of other repositories.
fn store(count: usize) -> Store {
    let store = Store::new();
    let mut projects: Vec<Value> = Vec::new();
    for number in 0..count {
        let id = digits(number);
        let repo = format!("github.com/o/r{number}");
        let source =
            format!("scope: repo\nsources:\n  - harness: amp\n    threadId: T-1\n    repo: {repo}\n");
        let text = crate::support::store::note(&id, &format!("Title {number}"), &source);
        store.put(&format!("topics/{}", crate::support::store::name(&id, &format!("Title {number}"))), text);
        let title = format!("Server {number}");
        let entry = json!({"title": title, "summary": "It is one.", "tags": [], "scope": "repo", "body": format!("Port {number} of it.\n"),
            "sources": [{"harness": "amp", "threadId": format!("T-{number}"), "repo": "github.com/o/r"}]});
        propose(&store, &format!("p__{id}"), json!({"entry": entry}));
        store.sandbox.jot(&format!("Jotted {number}"), "By hand.");
        let top = std::fs::canonicalize(store.sandbox.home()).unwrap().join(format!("src/r{number}"));
        store.sandbox.write(&top.join(".git/HEAD"), "ref: refs/heads/main\n");
        store
            .sandbox
            .write(&top.join(".git/config"), format!("[remote \"origin\"]\n\turl = https://{repo}.git\n"));
        store
            .sandbox
            .write(&top.join("AGENTS.md"), "<!-- agent-memory:start -->\n<!-- agent-memory:end -->\n");
        projects.push(json!({"top": top, "repo": repo, "head": "ref: refs/heads/main", "hasSection": true}));
    }
    store.put(".agent-memory/projects.json", json!({"projects": projects}).to_string());
    store
}

/// The calls of a program that ends well.
fn calls(store: &Store, program: &str, args: &[&str], input: &str) -> String {
    let run = store.sandbox.std_command(program);
    let trace = store.sandbox.home().join("trace");
    let mut traced = Command::new("strace");
    traced.args(["-f", "--seccomp-bpf", "-qq", COUNTED, "-o"]).arg(&trace).arg(run.get_program()).args(args);
    traced
        .env_clear()
        .env("EDITOR", "true")
        // What a hook opens is counted, and not how far it comes in its time on a busy machine.
        .env("AGENT_MEMORY_RECALL_MS", "60000")
        .envs(present(run.get_envs()));
    traced
        .current_dir(store.sandbox.work())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = traced.spawn().unwrap();
    let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    std::fs::read_to_string(trace).unwrap()
}

fn is_able() -> bool {
    let is_there = ["/usr/bin/strace", "/bin/strace"].iter().any(|path| Path::new(path).exists());
    if !is_there {
        crate::support::say("strace is not here: nothing is counted");
    }
    is_there
}

/// What these open in a store does not depend on what is in it.
const WITHOUT_ROW: &[&str] = &[
    "memory", "memory-config", "memory-import", "memory-install-cron", "memory-install-hooks",
    "memory-share", "memory-uninstall-cron", "memory-uninstall-hooks",
];

#[test]
fn no_program_does_more_than_in_proportion_to_the_store() {
    if !is_able() {
        return;
    }
    let first = digits(0);
    let ids = |count: usize| {
        (0..count).fold(String::new(), |mut all, number| {
            let _ = writeln!(all, "{{\"id\": \"p__{}\"}}", digits(number));
            all
        })
    };
    let hook = |_: usize| HOOK.to_owned();
    let start = |_: usize| HOOK.replace("SessionEnd", "SessionStart");
    let search = |_: usize| {
        let params = json!({"name": "search", "arguments": {"query": "title 7"}});
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string() + "\n"
    };
    let none = |_: usize| String::new();
    type Row<'a> = (&'a str, &'a [&'a str], &'a dyn Fn(usize) -> String);
    let rows: &[Row] = &[
        ("memory-list", &[], &none),
        ("memory-list", &["--query", "title"], &none),
        ("memory-read", &[&first], &none),
        ("memory-recall", &["which title has number 7?"], &none),
        ("memory-recall", &["--harness", "claude-code"], &start),
        ("memory-mcp", &[], &search),
        ("memory-page", &[], &none),
        ("memory-agents-md", &["--stdout"], &none),
        ("memory-agents-md", &[], &none),
        ("memory-agents-md", &["--check"], &none),
        ("memory-consolidate", &[], &none),
        ("memory-capture", &["--title", "One more", "--body", "x"], &none),
        ("memory-capture", &["--harness", "claude-code"], &hook),
        ("memory-update", &[&first, "--pin"], &none),
        ("memory-edit", &[&first], &none),
        ("memory-review", &[], &none),
        ("memory-review", &["--accept", "-"], &ids),
        ("memory-remove", &[&first], &none),
        ("memory-doctor", &[], &none),
        ("memory-status", &[], &none),
        ("memory-defrag", &["--prompt"], &none),
        ("memory-sync", &["--remote", "REMOTE"], &none),
    ];
    for program in programs().iter().filter(|program| program.starts_with("memory")) {
        let has_row = rows.iter().any(|(name, ..)| name == program);
        assert!(has_row || WITHOUT_ROW.contains(&program.as_str()), "{program} has no row");
    }
    let stores = SIZES.map(store);
    let mut faults = Vec::new();
    let mut count = |what: String, did: [usize; 2]| {
        let factor = SIZES[1] / SIZES[0];
        // Twice, because decisions are made a hundred at a time; what grows with the square is at ten times.
        if did[1] > did[0] * factor * 2 + FIXED {
            faults.push(format!("{what}: {} calls of {}, {} of {}", did[0], SIZES[0], did[1], SIZES[1]));
        }
    };
    for (program, args, input) in rows {
        let did = [0, 1].map(|size| {
            let remote = stores[size].sandbox.home().join("remote.git");
            let remote = remote.to_str().unwrap();
            if args.contains(&"REMOTE") {
                let git = Command::new("git").args(["init", "--quiet", "--bare", remote]).status();
                assert!(git.unwrap().success());
            }
            let args: Vec<&str> =
                args.iter().map(|arg| if *arg == "REMOTE" { remote } else { arg }).collect();
            calls(&stores[size], program, &args, &input(SIZES[size])).lines().count()
        });
        count(format!("{program} {args:?}"), did);
    }
    let others = SIZES.map(store);
    let did = [0, 1].map(|size| {
        calls(&others[size], "memory-review", &["--reject", "-"], &ids(SIZES[size])).lines().count()
    });
    count("memory-review --reject -".to_owned(), did);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_hook_reads_no_other_entry_and_a_change_touches_the_checkouts_of_its_repository_alone() {
    if !is_able() {
        return;
    }
    let store = store(SIZES[0]);
    for count in [0, 1] {
        let trace = calls(&store, "memory-capture", &["--harness", "claude-code"], HOOK);
        let read = |line: &&str| line.contains("/inbox/2") && line.contains("O_RDONLY");
        assert_eq!(trace.lines().filter(read).count(), count, "{trace}");
    }
    let trace = calls(&store, "memory-status", &[], "");
    let notes: Vec<&str> = trace.lines().filter(|line| line.contains("/topics/")).collect();
    assert!(notes.is_empty(), "it reads no note: {notes:?}");
    let trace = calls(&store, "memory-update", &[&digits(3), "--pin"], "");
    assert!(trace.contains("/src/r3/AGENTS.md"), "{trace}");
    let others = trace.lines().find(|line| line.contains("/src/r") && !line.contains("/src/r3"));
    assert_eq!(others, None);
}

#[test]
fn a_hook_opens_two_hundred_files_of_a_repository_at_most() {
    if !is_able() {
        return;
    }
    let store = store(SIZES[0]);
    store.sandbox.in_a_repository();
    let shared = std::fs::canonicalize(store.sandbox.work()).unwrap().join(".agents/memory");
    for number in 0..500 {
        let id = digits(9_000 + number);
        let text = crate::support::store::note(&id, &format!("Title {number}"), "paths: ['**/*.rs']\n");
        store.sandbox.write(&shared.join(format!("x -- id__{id}.md")), text);
    }
    let lists = |trace: &str| {
        trace.lines().filter(|line| line.contains("openat(") && line.contains("/topics\"")).count()
    };
    let hook = |event: &Value| {
        let trace = calls(&store, "memory-recall", &["--harness", "claude-code"], &event.to_string());
        let opened = |line: &&str| line.contains("/.agents/memory/x") && line.contains("O_RDONLY");
        assert_eq!(trace.lines().filter(opened).count(), 200);
        trace
    };
    let start = json!({"hook_event_name": "SessionStart", "session_id": "s", "source": "startup",
        "cwd": store.sandbox.work()});
    hook(&start);
    // It has the lines of many of them, and each of them is about the call.
    let act = json!({"hook_event_name": "PreToolUse", "session_id": "s", "cwd": store.sandbox.work(),
        "tool_name": "Edit", "tool_input": {"file_path": store.sandbox.work().join("a.rs")}});
    let trace = hook(&act);
    assert!(lists(&trace) <= 6, "the store is listed for each note: {trace}");
    let event = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": store.sandbox.work(),
        "prompt": "which title has number 7?"});
    let trace = hook(&event);
    assert!(lists(&trace) <= 6, "the store is listed for each note: {trace}");
}
