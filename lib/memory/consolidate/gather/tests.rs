//! Sessions that go on, are rewound and forked: what is new in each.

use super::*;
use crate::base::cli::Reporter;
use crate::config::memory::MemoryConfig;
use crate::memory::budget::CallBudget;
use crate::memory::pipeline::call::Kind;
use crate::memory::redact::Redactor;
use crate::store::batch::Batches;
use crate::store::place::Root;
use serde_json::json;

struct Bench {
    dir: tempfile::TempDir,
    config: MemoryConfig,
    redactor: Redactor,
    sessions: Sessions,
}

impl Bench {
    fn new() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        Root::at(dir.path()).make().unwrap();
        let config = json!({
            "storage": {"root": dir.path(), "autoCommit": false, "commitHook": ""},
            "llm": {"command": null, "presets": {}, "timeoutSeconds": 1, "maxPromptBytes": 9, "maxReplyBytes": 9, "maxNoteBytes": 9,
                "maxCallsPerRun": 1, "maxCallsPerDay": 1},
            "schedule": {"consolidateIntervalHours": 2, "defragIntervalHours": 24},
            "capture": {"sweep": true, "memories": true}, "recall": {"subagents": true, "beforeActs": true, "shared": true},
            "agentsMd": {"targets": [], "maxHotTokens": 1, "maxWarmTokens": 1},
            "harnesses": {}, "redact": {"enabled": true, "patterns": []},
        });
        let config = serde_json::from_value(config).unwrap();
        let redactor = Redactor::new(true, &[]).unwrap();
        Bench { dir, config, redactor, sessions: Sessions::default() }
    }

    /// What is new in a session with these turns; `None`: nothing, `Err`: it cannot be read.
    fn gather(&self, session: &str, lines: &[String]) -> Result<Option<(History, Vec<String>)>, String> {
        let path = self.dir.path().join(format!("{session}.jsonl"));
        if !lines.is_empty() {
            file::install(&path, lines.concat().as_bytes(), 0o600).unwrap();
        }
        let entry = json!({"version": 1, "timestamp": "2026-02-28T12:00:00Z", "harness": "claude-code",
            "retrieval": {"method": "transcript", "path": path, "format": "claude-code", "sessionId": session},
            "context": {"cwd": "/w", "repo": null}});
        let entry = QueueEntry::parse(entry.to_string().as_bytes()).unwrap();
        let root = Root::at(self.dir.path());
        let batch = Batches::of_queue(&root).begin().unwrap();
        let history = batch.file(&history_name("q"));
        let run = RunEnv {
            program: "memory-consolidate",
            config: &self.config,
            root: &root,
            env: &crate::base::env::pretend(&[]),
            reporter: &Reporter::new(false),
            redactor: &self.redactor,
            budget: CallBudget::of(&root, 1, 1),
            level: 0,
            is_quiet: true,
            kind: Kind::Run,
            batch: Some(batch),
        };
        let room = PromptRoom { sessions: 100_000, earlier: 4000, related: 0 };
        let (sessions, facts) = (&self.sessions, &Box::new(Facts::new()));
        match (Gatherer { run: &run, sessions, room, facts }).gather(&entry, "q").unwrap() {
            Gathered::History(known) => {
                let mut texts = Vec::new();
                let span = known.span(0, usize::MAX);
                let each = |passage: Passage, is_shown: bool| texts.extend(is_shown.then_some(passage.text));
                known.read(&history, span, each).unwrap();
                assert_eq!(texts.len(), known.lengths().len());
                Ok(Some((known, texts)))
            }
            Gathered::Nothing(Verdict::Failed(why)) => Err(why),
            Gathered::Nothing(_) => Ok(None),
        }
    }

    /// The words of the turns that are new; takes note that they have been read.
    fn read(&mut self, session: &str, lines: &[String]) -> String {
        let Some((history, texts)) = self.gather(session, lines).unwrap() else { return String::new() };
        let key = history.session.clone().unwrap();
        let shown = history.lengths().len();
        // In two steps, as two calls would take note of it.
        for (from, to) in [(0, shown / 2), (shown / 2, shown)] {
            self.sessions.read(&key, history.parent.as_deref(), &history.turns_ending_in(from, to));
        }
        texts.join(" ")
    }
}

fn turn(session: &str, first_said_in: &str, word: &str) -> String {
    let record = json!({"type": "user", "uuid": format!("u-{word}"), "sessionId": session,
        "requestSessionId": first_said_in, "cwd": "/w", "timestamp": "2026-02-28T10:00:00.000Z",
        "message": {"role": "user", "content": [{"type": "text", "text": word}]}});
    format!("{record}\n")
}

/// The turns of a session: each word is one, `parent:word` was said in another session first.
fn turns(session: &str, words: &str) -> Vec<String> {
    let turn = |word: &str| match word.split_once(':') {
        Some((parent, word)) => turn(session, parent, word),
        None => turn(session, session, word),
    };
    words.split(' ').map(turn).collect()
}

#[test]
fn a_session_that_goes_on_gives_what_is_new() {
    let mut bench = Bench::new();
    assert_eq!(bench.read("s", &turns("s", "a b")), "a b");
    assert_eq!(bench.read("s", &turns("s", "a b")), "");
    assert_eq!(bench.read("s", &turns("s", "a b c d")), "c d");
    assert_eq!(bench.read("s", &turns("s", "a b c d e")), "e");
}

#[test]
fn of_a_session_that_was_rewound_only_the_new_branch_is_read() {
    let mut bench = Bench::new();
    assert_eq!(bench.read("s", &turns("s", "a b c")), "a b c");
    assert_eq!(bench.read("s", &turns("s", "a x y")), "x y");
    assert_eq!(bench.read("s", &turns("s", "a x y z")), "z");
}

#[test]
fn a_fork_does_not_say_again_what_its_parent_said() {
    let mut bench = Bench::new();
    assert_eq!(bench.read("p", &turns("p", "a b")), "a b");
    assert_eq!(bench.read("f", &turns("f", "p:a p:b c")), "c");
    // The parent goes on by itself; a second fork shares what the first one has.
    assert_eq!(bench.read("p", &turns("p", "a b d")), "d");
    assert_eq!(bench.read("g", &turns("g", "p:a p:b e")), "e");
}

#[test]
fn a_fork_that_is_read_first_leaves_its_parent_the_rest() {
    let mut bench = Bench::new();
    assert_eq!(bench.read("f", &turns("f", "p:a p:b c")), "a b c");
    assert_eq!(bench.read("p", &turns("p", "a b d")), "d");
}

#[test]
fn a_fork_of_a_fork_gives_only_its_own() {
    let mut bench = Bench::new();
    assert_eq!(bench.read("p", &turns("p", "a b")), "a b");
    assert_eq!(bench.read("f", &turns("f", "p:a p:b c")), "c");
    assert_eq!(bench.read("h", &turns("h", "p:a p:b f:c d")), "d");
}

#[test]
fn sessions_that_nobody_shares_are_no_kin() {
    let mut bench = Bench::new();
    assert_eq!(bench.read("s", &turns("s", "a")), "a");
    assert_eq!(bench.read("t", &turns("t", "a b")), "a b");
}

#[test]
fn our_own_sessions_and_sub_agents_are_left_out() {
    let bench = Bench::new();
    let ours = [turn("s", "s", "batch: batch__abcdefghijkl and so on"), turn("s", "s", "more")];
    assert!(bench.gather("s", &ours).unwrap().is_none());
    // Only the first prompt tells: a person may quote one later.
    let quoted = [turn("t", "t", "look"), turn("t", "t", "batch__abcdefghijkl")];
    assert!(bench.gather("t", &quoted).unwrap().is_some());
    let helper = turn("u", "u", "a")
        .replace("\"type\":\"user\"", "\"isSidechain\":true,\"agentId\":\"x\",\"type\":\"user\"");
    assert!(helper.contains("isSidechain"));
    assert!(bench.gather("u", &[helper]).unwrap().is_none());
}

#[test]
fn a_session_that_cannot_be_read_says_why() {
    let bench = Bench::new();
    assert!(bench.gather("missing", &[]).unwrap_err().contains("missing.jsonl"));
}

#[test]
fn a_huge_turn_is_shown_in_passages_and_is_consumed_with_its_last() {
    let bench = Bench::new();
    let huge = "ä".repeat(300_000) + &"line\n".repeat(5000);
    let (history, texts) = bench.gather("s", &[turn("s", "s", &huge)]).unwrap().unwrap();
    assert!(texts.len() > 100 && texts.concat() == huge);
    assert!(history.lengths().iter().all(|(bytes, _)| *bytes <= 16 << 10));
    assert_eq!(history.turns_ending_in(0, texts.len() - 1), Vec::<String>::new());
    assert_eq!(history.turns_ending_in(3, texts.len()), history.turns);
}

#[test]
fn what_was_read_before_is_kept_to_tell_who_said_it_first() {
    let mut bench = Bench::new();
    assert_eq!(bench.read("s", &turns("s", "a b")), "a b");
    let (history, texts) = bench.gather("s", &turns("s", "a b c")).unwrap().unwrap();
    assert_eq!((texts, history.turns.len()), (vec!["c".to_owned()], 3));
    assert_eq!(
        history.passages.iter().map(|passage| passage.is_shown).collect::<Vec<_>>(),
        [false, false, true]
    );
}

#[test]
fn secrets_do_not_get_into_the_text() {
    let bench = Bench::new();
    let secret = format!("ghp_{}", "a1B2c3D4e5".repeat(4));
    let (_, texts) = bench.gather("s", &[turn("s", "s", &format!("the key is {secret}"))]).unwrap().unwrap();
    let text = texts.concat();
    assert!(!text.contains(&secret) && text.contains("the key is"), "{text}");
}

#[test]
fn a_reader_that_panics_is_its_session_s_failed_try() {
    let error = or_panicked::<()>(Path::new("/a/session"), || panic!("as a test wants it")).unwrap_err();
    assert!(error.line().contains("failed at \"/a/session\""), "{}", error.line());
    assert_eq!(or_panicked(Path::new("x"), || Ok(7)).unwrap(), 7);
}
