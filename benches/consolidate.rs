//! What `memory-consolidate` costs beside the LLM: time for each megabyte of a transcript, peak memory, and how
//! well secrets are kept out of the prompt. The transcripts are made here, the LLM command answers at once that
//! there is nothing to keep.

use crate::measure::{Aim, judged, ms};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub fn bench() {
    transcripts();
    redaction();
}

const QUEUE_ID: &str = "q1";

/// A home with a store, and one session in its queue.
struct Store(tempfile::TempDir);

impl Store {
    /// `fill` writes the session's lines until it is told that there are enough bytes.
    fn new(fill: impl FnOnce(&mut dyn Write)) -> Store {
        let store = Store(tempfile::tempdir().unwrap());
        let home = store.0.path();
        let write = |path: PathBuf, text: String| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let script = format!(
            "IFS=' ' read -r _ batch\ncat > /dev/null\n\
             printf '{{\"batch\":\"%s\",\"entries\":[],\"skipped\":[{{\"source\":\"{QUEUE_ID}\",\"reason\":\"x\"}}]}}' \"$batch\"\n"
        );
        write(home.join("llm"), script);
        let config = serde_json::json!({
            "storage": {"root": home.join("store"), "autoCommit": false},
            "llm": {"command": format!("sh {}", home.join("llm").display()), "maxCallsPerRun": 10000,
                "maxCallsPerDay": 10000},
        });
        write(home.join(".config/agent-memory/config.json"), config.to_string());
        let path = home.join("session.jsonl");
        let entry = serde_json::json!({
            "version": 1, "timestamp": "2026-02-28T12:00:00.000Z", "harness": "claude-code",
            "retrieval": {"method": "transcript", "path": path, "format": "claude-code", "sessionId": "s"},
            "context": {"cwd": "/w", "repo": null},
        });
        write(home.join(format!("store/inbox/{QUEUE_ID}.json")), entry.to_string());
        let mut file = BufWriter::new(File::create(&path).unwrap());
        fill(&mut file);
        file.flush().unwrap();
        store
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.0.path())
            .current_dir(self.0.path())
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command
    }
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_memory-consolidate");

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below
    }

    fn text(&mut self, alphabet: &str, length: usize) -> String {
        (0..length).map(|_| char::from(alphabet.as_bytes()[self.next(alphabet.len())])).collect()
    }
}

const WORDS: &[&str] = &[
    "the", "build", "of", "parser", "fails", "when", "a", "config", "file", "is", "missing", "src/main.rs",
    "and", "returns", "error", "42", "retry_after", "should", "be", "set", "to", "cargo", "test", "--locked",
    "in", "CI", "because", "cache", "HashMap::new()", "was", "stale", "v1.2.3", "then", "we", "moved", "it",
    "timeout",
];

fn turn(out: &mut dyn Write, number: usize, role: &str, text: &str) -> usize {
    let record = serde_json::json!({
        "type": role, "uuid": format!("u{number}"), "sessionId": "s", "cwd": "/w",
        "timestamp": "2026-02-28T10:00:00.000Z",
        "message": {"role": role, "content": [{"type": "text", "text": text}]},
    });
    let line = format!("{record}\n");
    out.write_all(line.as_bytes()).unwrap();
    line.len()
}

/// A session of at least so many megabytes, all of it said by somebody: no tool output that would be cut.
fn talk(megabytes: usize) -> Store {
    Store::new(|out| {
        let mut dice = Dice(7);
        let (mut written, mut number) = (0, 0);
        while written < megabytes * 1_000_000 {
            let words = (0..300).map(|_| WORDS[dice.next(WORDS.len())]).collect::<Vec<_>>().join(" ");
            written += turn(out, number, if number % 2 == 0 { "user" } else { "assistant" }, &words);
            number += 1;
        }
    })
}

/// How long a run takes, and how long its LLM command alone would have, called as often with nothing to read.
fn timed(store: &Store) -> (Duration, Duration) {
    let started = Instant::now();
    let status = store.command(Path::new(PROGRAM)).stdout(Stdio::null()).status().unwrap();
    let taken = started.elapsed();
    assert!(status.success(), "{status}");
    let ledger = fs::read_to_string(store.0.path().join("store/.agent-memory/calls.jsonl")).unwrap();
    let lines = ledger.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    (taken, Duration::from_millis(lines.filter_map(|line| line["ms"].as_u64()).sum()))
}

/// Time a megabyte and peak memory, for a long transcript and a very long one.
fn transcripts() {
    let aim = Aim::Most(200.0);
    for megabytes in [20, 100] {
        let (taken, llm) = timed(&talk(megabytes));
        let own = taken.saturating_sub(llm);
        let each = own.as_secs_f64() * 1000.0 / megabytes as f64;
        judged(&format!("consolidate, {megabytes} MB, without the LLM"), &ms(own), each, aim, " ms/MB");
        let store = talk(megabytes);
        let own = std::env::current_exe().unwrap();
        let output = store.command(&own).args(["peak", PROGRAM]).output().unwrap();
        let peak: f64 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
        judged("  peak memory of the same", "", peak / 1024.0, Aim::Most(64.0), " MiB");
    }
}

const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const CAPITALS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const HEX: &str = "0123456789abcdef";

/// Secrets as they stand in sessions, and what may be found of each in the prompt if it slips through.
fn secrets(dice: &mut Dice) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for _ in 0..40 {
        let mut add = |before: &str, secret: String, behind: &str| {
            all.push((format!("{before}{secret}{behind}"), secret));
        };
        add("export GITHUB_TOKEN=", format!("ghp_{}", dice.text(LETTERS, 36)), "");
        add("key: ", format!("AKIA{}", dice.text(CAPITALS, 16)), ".");
        add("curl -H 'Authorization: Bearer ", dice.text(LETTERS, 48), "' https://h/x");
        add("", format!("sk-ant-api03-{}", dice.text(LETTERS, 93)), " is the key");
        add("SLACK=", format!("xoxb-{}-{}", dice.text("123456789", 12), dice.text(LETTERS, 24)), "");
        add("postgres://app:", dice.text(LETTERS, 20), "@db.example.com/app");
        add("password = \"", dice.text(LETTERS, 18), "\"");
    }
    all
}

/// What looks like a secret to the hasty, and is what a note is for.
fn harmless(dice: &mut Dice) -> Vec<String> {
    let mut all = Vec::new();
    for _ in 0..40 {
        all.push(format!("commit {}", dice.text(HEX, 40)));
        all.push(format!("sha256-{}", dice.text(HEX, 64)));
        all.push(format!("src/{}/{}.rs", dice.text("abcdefgh", 9), dice.text("abcdefgh", 12)));
        all.push(format!(
            "the id is {0}-{1}-{1}-{1}-{2}",
            dice.text(HEX, 8),
            dice.text(HEX, 4),
            dice.text(HEX, 12)
        ));
        all.push(format!("id__{}", dice.text("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijk", 6)));
    }
    all
}

/// The shares of secrets that are kept out of a prompt, and of harmless words that are kept out with them.
fn redaction() {
    let mut dice = Dice(11);
    let (secrets, harmless) = (secrets(&mut dice), harmless(&mut dice));
    let store = Store::new(|out| {
        let said = secrets.iter().map(|(text, _)| text).chain(&harmless);
        for (number, text) in said.enumerate() {
            turn(out, number, "user", text);
        }
    });
    let output = store.command(Path::new(PROGRAM)).arg("--prompt").output().unwrap();
    let prompt = String::from_utf8(output.stdout).unwrap();
    let kept_out = secrets.iter().filter(|(_, secret)| !prompt.contains(secret.as_str())).count();
    let lost = harmless.iter().filter(|text| !prompt.contains(text.as_str())).count();
    let share = |part: usize, whole: usize| part as f64 * 100.0 / whole as f64;
    judged("redaction, secrets found", "", share(kept_out, secrets.len()), Aim::Least(99.0), " %");
    judged("redaction, harmless words taken", "", share(lost, harmless.len()), Aim::Most(1.0), " %");
}
