//! `memory-consolidate`: the next run ends what was begun, with the same bytes, and pays for no reply twice.

use crate::scenario::Scenario;
use crate::support::Said;
use crate::support::world::{World, words};
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, SystemTime};

const REPO: &str = "github.com/o/r";

const CONSOLIDATE: Scenario =
    Scenario { calls: Some((1, 0)), recovers: true, differs: &[".agent-memory/batches/"], ..Scenario::PLAIN };

const ANSWER: &str = r#"reply=reply-1.json
case "$prompt" in *"part: 2 of "* | *second-session*) reply=reply-2.json ;; esac
sed "s/BATCH/$batch/" "$DIR/$reply""#;

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario { name: "memory-consolidate: mixed", make: || mixed(true, false), ..CONSOLIDATE },
        Scenario {
            name: "memory-consolidate: mixed, with git",
            make: || mixed(true, true),
            sample: 20,
            ..CONSOLIDATE
        },
        Scenario {
            name: "memory-consolidate: in two calls",
            make: two_parts,
            sample: 20,
            calls: Some((2, 0)),
            ..CONSOLIDATE
        },
        Scenario {
            name: "memory-consolidate: what a killed run has paid for",
            make: paid_for,
            reading_from: Some("/batches"),
            sample: 40,
            recovers: false,
            ..CONSOLIDATE
        },
        Scenario {
            name: "memory-consolidate: without an LLM",
            make: || mixed(false, false),
            sample: 5,
            calls: Some((0, 0)),
            ..CONSOLIDATE
        },
        Scenario {
            name: "memory-consolidate: named entries",
            make: named,
            // What was named has gone then; the rest is the usual run's.
            then: &[&["--quiet"]],
            sample: 20,
            calls: Some((1, 1)),
            ..CONSOLIDATE
        },
        Scenario {
            name: "memory-consolidate: named entries, all of them",
            make: all_named,
            sample: 20,
            calls: Some((1, 1)),
            ..CONSOLIDATE
        },
        Scenario { name: "memory-consolidate: a built-in memory", make: built_in, sample: 20, ..CONSOLIDATE },
        Scenario {
            name: "memory-import: a file",
            make: imported,
            // The next import, or the next run, drops the queue entry of a killed one.
            differs: &[".agent-memory/batches/", "/inbox/"],
            sample: 20,
            calls: Some((1, 1)),
            ..CONSOLIDATE
        },
        Scenario {
            name: "memory-consolidate: what has failed for good",
            make: failed_for_good,
            sample: 20,
            ..CONSOLIDATE
        },
        Scenario {
            name: "memory-consolidate: by hand",
            make: by_hand,
            // What was carried out is known no more; the usual run has nothing left to do then.
            then: &[&["--quiet"]],
            sample: 5,
            calls: Some((0, 0)),
            next_may_fail: true,
            recovers: false,
            ..CONSOLIDATE
        },
        Scenario {
            name: "memory-consolidate: by hand, from stdin",
            make: from_stdin,
            then: &[&["--quiet"]],
            sample: 20,
            calls: Some((0, 0)),
            next_may_fail: true,
            recovers: false,
            ..CONSOLIDATE
        },
    ]
}

impl World {
    fn queue(&self, id: &str, harness: &str, retrieval: Value) {
        let entry = json!({
            "version": 1, "timestamp": "2026-02-28T12:00:00.000Z", "harness": harness,
            "retrieval": retrieval, "context": {"cwd": "/w", "repo": REPO},
        });
        self.sandbox.write(&self.root().join(format!("inbox/{id}.json")), entry.to_string());
    }

    fn queue_session(&self, id: &str, session: &str) {
        let path = self.sandbox.work().join(format!("{session}.jsonl"));
        self.queue(
            id,
            "claude-code",
            json!({"method": "transcript", "path": path, "format": "claude-code", "sessionId": session}),
        );
    }

    fn queue_note(&self, id: &str, title: &str) {
        self.queue(
            id,
            "manual",
            json!({"method": "inline", "title": title, "body": "As it stands: 42.", "tags": ["topic__x"],
                "scope": "global", "threadId": null}),
        );
    }

    /// A Claude Code session with turns of this length.
    fn session(&self, session: &str, turns: usize, length: usize) {
        let mut text = String::new();
        for turn in 0..turns {
            let role = if turn % 2 == 0 { "user" } else { "assistant" };
            let said = format!("turn {turn} about the known port: {}", "word ".repeat(length / 5));
            let record = json!({
                "type": role, "uuid": format!("u-{session}-{turn}"), "sessionId": session, "cwd": "/w",
                "timestamp": "2026-02-28T10:00:00.000Z",
                "message": {"role": role, "content": [{"type": "text", "text": said}]},
            });
            text.push_str(&format!("{record}\n"));
        }
        self.sandbox.file(&format!("{session}.jsonl"), text);
    }

    fn reply(&self, number: usize, reply: &Value) {
        self.sandbox.file(&format!("reply-{number}.json"), reply.to_string());
    }

    /// Nothing else is set.
    fn consolidate_config(&self, llm: Value, auto_commit: bool) {
        self.config(llm, json!({"storage": {"root": self.root(), "autoCommit": auto_commit}}));
    }
}

fn fresh() -> World {
    let world = World::with_llm("memory-consolidate", &["--quiet"], ANSWER);
    world.consolidate_config(json!({}), false);
    world
}

fn entry(label: &str, title: &str, body: &str, sources: &[&str]) -> Value {
    json!({"ref": label, "update": null, "title": title, "summary": "in one line",
        "tags": ["topic__x"], "scope": "repo", "body": body, "sources": sources})
}

/// A note of a person's, a session of which a part is known, an update, two linked notes, a session that is
/// missing for the last time, one with nothing in it.
pub(crate) fn mixed(has_llm: bool, auto_commit: bool) -> World {
    let world = fresh();
    world.consolidate_config(json!({}), auto_commit);
    world.session("s1", 2, 100);
    world.session("s2", 2, 100);
    world.queue_session("q0", "s1");
    let known = json!({"batch": "BATCH", "skipped": [], "entries":
        [entry("n1", "Known before", "The port is 8080, see src/main.rs.", &["q0"])]});
    world.reply(1, &known);
    let output = world.run(&world.arguments);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let names = fs::read_dir(world.root().join("topics")).unwrap().map(|entry| entry.unwrap().file_name());
    let name = names.last().unwrap().into_string().unwrap();
    let id = name.trim_end_matches(".md").rsplit(' ').next().unwrap().to_owned();
    fs::remove_file(world.sandbox.work().join("calls")).unwrap();
    // More is said in a session of which the beginning has been read.
    world.session("s1", 6, 100);
    world.queue_note("q1", "A note of mine");
    world.queue_note("q5", "Another note");
    if has_llm {
        world.queue_session("q2", "s1");
        world.queue_session("q3", "missing");
        world.queue_session("q4", "s2");
    } else {
        world.consolidate_config(json!({"command": null}), auto_commit);
    }
    let mut update =
        entry("n3", "Known better", "The port is 8080, see src/main.rs; 8081 in tests.", &["q2"]);
    update["update"] = json!(id);
    let reply = json!({"batch": "BATCH", "entries": [
            entry("n1", "First", "It leads to [[n2]].", &["q2", "q1"]),
            entry("n2", "Second", "It leads to [[n1]] and [[n3]].", &["q2"]), update],
        "skipped": [{"source": "q4", "reason": "nothing new"}, {"source": "q5", "reason": "no"}]});
    world.reply(1, &reply);
    let tries = json!({"q3": {"tries": 2, "error": "no file", "alone": false, "batch": "before"}});
    world.sandbox.write(&world.root().join(".agent-memory/tries.json"), tries.to_string());
    world
}

/// The run was killed while it filed its notes: the next one files them, and asks nothing.
fn paid_for() -> World {
    let world = mixed(true, false);
    world.keep_as_template();
    world.killed_at("/.processed/");
    world
}

/// A session that takes two calls.
fn two_parts() -> World {
    let world = fresh();
    world.consolidate_config(json!({"maxPromptBytes": 20_500}), true);
    world.session("s1", 6, 1500);
    world.queue_session("q1", "s1");
    for (part, title) in [(1, "From the first part"), (2, "From the second part")] {
        let reply = json!({"batch": "BATCH", "skipped": [],
            "entries": [entry("n1", title, "A fact.", &["q1"])]});
        world.reply(part, &reply);
    }
    world.sandbox.write(&world.root().join("topics/.keep"), "");
    world
}

/// Two sessions, one of which is named on stdin.
fn named() -> World {
    let mut world = World::with_llm("memory-consolidate", &["--quiet", "-"], ANSWER);
    world.consolidate_config(json!({}), true);
    world.sandbox.write(&world.root().join("topics/.keep"), "");
    for (number, name) in [(1, "first-session"), (2, "second-session")] {
        world.session(name, 2, 100);
        world.queue_session(name, name);
        let reply = json!({"batch": "BATCH", "skipped": [],
            "entries": [entry("n1", &format!("From the {name}"), "The port is known.", &[name])]});
        world.reply(number, &reply);
    }
    world.stdin = "first-session\n".to_owned();
    world
}

fn all_named() -> World {
    let mut world = mixed(true, false);
    world.arguments = words(&["--quiet", "-"]);
    world.stdin = "q1\nq2\nq3\nq4\nq5\n".to_owned();
    world
}

/// A reply whose source is what the prompt shows.
const OF_WHAT_IS_SHOWN: &str = r#"source=$(printf %s "$prompt" | sed -n 's/^<<< session \([^ ]*\) .*/\1/p')
sed "s/BATCH/$batch/; s/SOURCE/$source/" "$DIR/reply-1.json""#;

fn of_what_is_shown(program: &'static str, arguments: &[&str]) -> World {
    let world = World::with_llm(program, arguments, OF_WHAT_IS_SHOWN);
    world.consolidate_config(json!({}), true);
    world.sandbox.write(&world.root().join("topics/.keep"), "");
    world.sandbox.in_a_repository();
    let reply = json!({"batch": "BATCH", "skipped": [],
        "entries": [entry("n1", "The server has port 4310", "The server has port 4310.", &["SOURCE"])]});
    world.reply(1, &reply);
    world
}

/// A file that Claude Code has written since the hooks are there.
fn built_in() -> World {
    let world = of_what_is_shown("memory-install-hooks", &["--harness", "claude-code"]);
    let output = world.run(&world.arguments);
    assert_eq!(output.code(), Some(0), "{output:?}");
    let project = fs::canonicalize(world.sandbox.work()).unwrap();
    let slug = project.to_str().unwrap().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let kept = world.sandbox.home().join(".claude/projects").join(slug);
    world.sandbox.write(&kept.join("s.jsonl"), format!("{}\n", json!({"type": "system", "cwd": project})));
    let file = kept.join("memory/MEMORY.md");
    world.sandbox.write(&file, "The server has port 4310.\n");
    let hooks = world.sandbox.home().join(".local/state/agent-memory/hooks.json");
    for (path, time) in [(hooks, 1_772_270_000), (file, 1_772_280_000)] {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(time);
        fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }
    World { program: "memory-consolidate", arguments: words(&["--quiet"]), ..world }
}

fn imported() -> World {
    let world = of_what_is_shown("memory-import", &["--yes", "--quiet", "AGENTS.md"]);
    world.sandbox.file("AGENTS.md", "# Rules\n\n- The server has port 4310.\n");
    world
}

/// A session that failed three times, and was mended since.
fn failed_for_good() -> World {
    let mut world = two_parts();
    world.arguments = words(&["--quiet", "--retry-failed"]);
    world.consolidate_config(json!({}), true);
    let failed = world.root().join("inbox/.failed");
    fs::create_dir_all(&failed).unwrap();
    fs::rename(world.root().join("inbox/q1.json"), failed.join("q1.json")).unwrap();
    let why = json!({"entry": "q1", "error": "no file", "tries": 3, "at": "2026-02-28T12:00:00Z"});
    world.sandbox.write(&failed.join("q1.error.json"), why.to_string());
    let tries = json!({"q1": {"tries": 3, "error": "no file", "alone": false, "batch": "before"}});
    world.sandbox.write(&world.root().join(".agent-memory/tries.json"), tries.to_string());
    world
}

/// A reply that a person brings.
fn by_hand() -> World {
    let mut world = mixed(true, true);
    let output = world.run(&words(&["--prompt"]));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let prompt = output.out();
    let batch = prompt.lines().next().unwrap().trim_start_matches("batch: ");
    let reply = fs::read_to_string(world.sandbox.work().join("reply-1.json")).unwrap();
    world.sandbox.file("answer.json", reply.replace("BATCH", batch));
    world.arguments = words(&["--quiet", "--apply", "answer.json"]);
    world
}

fn from_stdin() -> World {
    let mut world = by_hand();
    world.stdin = fs::read_to_string(world.sandbox.work().join("answer.json")).unwrap();
    world.arguments = words(&["--quiet", "--apply", "-"]);
    world
}

/// With many notes, a read of all of them for each one that is filed would take hours.
#[test]
fn a_run_reads_a_note_as_often_for_one_that_is_filed_as_for_thirty() {
    crate::strace::assert_able();
    let reads = |filed: usize| {
        let world = fresh();
        world.consolidate_config(json!({"command": null}), false);
        let known = "---\nid: id__AAAAAA\ntitle: Known\n---\n\nIt stands.\n";
        world.sandbox.write(&world.root().join("topics/known -- id__AAAAAA.md"), known);
        (0..filed).for_each(|n| world.queue_note(&format!("q{n:02}"), &format!("Note {n}")));
        let traced = world.traced(true, &["--trace=?open,?openat".to_owned()]).unwrap();
        assert_eq!(traced.output.code(), Some(0), "{:?}", traced.output);
        assert_eq!(fs::read_dir(world.root().join("topics")).unwrap().count(), filed + 1);
        traced.trace.lines().filter(|line| line.contains("known -- id__AAAAAA.md")).count()
    };
    let one = reads(1);
    assert!(one > 0);
    assert_eq!(reads(30), one);
}
