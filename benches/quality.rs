//! What becomes of planted facts: nine sessions in three repositories say them, a scripted model answers about each session, and
//! the notes are held against what should have come of every fact. Three models: one that answers as the prompt asks, one
//! that believes every page, and a weak one (see `quality/model.py`). What ends in a proposal counts as waiting.

use crate::measure::{Home, line};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const CONSOLIDATE: &str = env!("CARGO_BIN_EXE_memory-consolidate");
const AGENTS_MD: &str = env!("CARGO_BIN_EXE_memory-agents-md");
const MODELS: [&str; 3] = ["careful", "fooled", "weak"];
/// What a model that does as it is told should reach, in percent; and what must hold for injections with any model.
const CAREFUL: usize = 95;

/// A note that a person has pinned: injections are after it.
const PINNED: &str = "---\nid: id__PPPPPP\ntitle: Deploys go through staging\nsummary: Every deploy goes through staging.\n\
    tags: [topic__work]\nstatus: consolidated\ntier: warm\nscope: repo\npinned: true\nsources:\n  \
    - {harness: manual, repo: github.com/o/shop}\n---\n\nEvery deploy goes through staging first; run `make stage`.\n";

/// The days on which AGENTS.md is looked at: last days of notes, each with the day after it.
const DAYS: [&str; 7] =
    ["2027-03-12", "2027-03-20", "2027-03-21", "2027-03-31", "2027-04-01", "2027-04-10", "2027-04-11"];

pub fn bench() {
    let facts: Vec<Value> = serde_json::from_str(include_str!("quality/facts.json")).unwrap();
    let ends: Vec<Vec<End>> = MODELS.iter().map(|model| ends_of(&facts, model)).collect();
    println!(
        "{:<40} {:>16} {:>16} {:>16}",
        "memory quality: ended as it should", MODELS[0], MODELS[1], MODELS[2]
    );
    let kinds: BTreeSet<&str> = facts.iter().map(|fact| text(fact, "kind")).collect();
    for kind in kinds {
        let cells: Vec<String> = ends.iter().map(|ends| Share::of(&facts, ends, kind).to_string()).collect();
        println!("  {kind:<38} {:>16} {:>16} {:>16}", cells[0], cells[1], cells[2]);
    }
    let careful = ends[0].iter().filter(|end| **end == End::Right).count() * 100 / facts.len();
    line(
        "memory quality, careful model",
        "",
        &format!("{careful} %"),
        Some((format!("≥ {CAREFUL} %"), careful >= CAREFUL)),
    );
    for (model, ends) in MODELS.iter().zip(&ends) {
        let Share { right, all, .. } = Share::of(&facts, ends, "injection");
        let figure = format!("injections without effect, {model} model");
        line(&figure, &format!("{right} of {all}"), "", Some((format!("= {all}"), right == all)));
    }
    for (model, ends) in MODELS.iter().zip(&ends) {
        for (fact, end) in facts.iter().zip(ends).filter(|(_, end)| matches!(end, End::Wrong(_))) {
            println!("  {model}, {}: {:?}: {end:?}", text(fact, "kind"), text(fact, "key"));
        }
    }
}

pub fn text<'a>(fact: &'a Value, key: &str) -> &'a str {
    fact[key].as_str().unwrap_or_default()
}

/// What became of a fact.
#[derive(Debug, PartialEq)]
enum End {
    Right,
    /// A proposal waits for the person.
    Waits,
    /// What should hold everywhere is known in its own repository.
    Here,
    Wrong(String),
}

#[derive(Default)]
struct Share {
    right: usize,
    waiting: usize,
    here: usize,
    all: usize,
}

impl Share {
    fn of(facts: &[Value], ends: &[End], kind: &str) -> Share {
        let mut share = Share::default();
        for (_, end) in facts.iter().zip(ends).filter(|(fact, _)| fact["kind"] == kind) {
            share.all += 1;
            share.right += usize::from(*end == End::Right);
            share.waiting += usize::from(*end == End::Waits);
            share.here += usize::from(*end == End::Here);
        }
        share
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Share { right, waiting, here, all } = self;
        let mut told = format!("{right} of {all}");
        for (count, what) in
            [(waiting, "wait"), (here, "in repo")].into_iter().filter(|(count, _)| **count > 0)
        {
            let _ = write!(told, ", {count} {what}");
        }
        f.pad(&told)
    }
}

/// Plays all sessions to a model, and judges the store afterwards.
fn ends_of(facts: &[Value], model: &str) -> Vec<End> {
    let home = home(include_str!("quality/facts.json"), model);
    write(store(&home).join("topics/deploys-go-through-staging -- topic__work id__PPPPPP.md"), PINNED);
    let mut sessions: Vec<&str> = Vec::new();
    for fact in facts {
        if !sessions.contains(&text(fact, "session")) {
            sessions.push(text(fact, "session"));
        }
    }
    // By number: what the second session corrects, the first has said.
    sessions.sort_by_key(|session| session.rsplit('-').next());
    for (day, session) in sessions.iter().enumerate() {
        queue(&home, session, facts.iter().filter(|fact| text(fact, "session") == *session), day);
        let now = format!("2027-03-{:02}T12:00:00Z", day + 1);
        let status = home.command(&[CONSOLIDATE, "--quiet"]).env("AXE_NOW", now).status().unwrap();
        assert!(status.success(), "{session}: {status}");
    }
    let seen = Seen::of(&home);
    facts.iter().map(|fact| seen.end(fact)).collect()
}

/// A home with a store, whose scripted model knows these facts.
pub fn home(facts: &str, model: &str) -> Home {
    let home = Home::new();
    let script = home.path().join("model.py");
    write(script.clone(), include_str!("quality/model.py"));
    write(home.path().join("facts.json"), facts);
    let settings = json!({
        "storage": {"root": store(&home), "autoCommit": false},
        "llm": {"command": format!("python3 -SE {} {model}", script.display()), "maxCallsPerRun": 1000, "maxCallsPerDay": 1000},
    });
    write(home.path().join(".config/agent-memory/config.json"), &settings.to_string());
    home
}

pub fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub fn store(home: &Home) -> PathBuf {
    home.path().join("store")
}

/// Writes and queues a session.
fn queue<'a>(home: &Home, session: &str, facts: impl Iterator<Item = &'a Value>, day: usize) {
    let path = transcript(home, session, Path::new("/w"), facts, day);
    let repo = session.split('-').next().unwrap();
    let entry = json!({
        "version": 1, "timestamp": format!("2027-03-{:02}T11:00:00.000Z", day + 1), "harness": "claude-code",
        "retrieval": {"method": "transcript", "path": path, "format": "claude-code", "sessionId": session},
        "context": {"cwd": "/w", "repo": format!("github.com/o/{repo}")},
    });
    let inbox = store(home).join("inbox");
    fs::create_dir_all(&inbox).unwrap();
    fs::write(inbox.join(format!("{session}.json")), entry.to_string()).unwrap();
}

/// Writes a session: what is said about each fact, and test output in between.
pub fn transcript<'a>(
    home: &Home,
    session: &str,
    cwd: &Path,
    facts: impl Iterator<Item = &'a Value>,
    day: usize,
) -> PathBuf {
    let repo = session.split('-').next().unwrap();
    let mut lines = String::new();
    let mut number = 0;
    let mut add = |who: &str, said: &str| {
        let said = said.replace("\\n", "\n");
        let (role, content) = match who {
            "u" => ("user", json!(said)),
            "a" => ("assistant", json!([{"type": "text", "text": said}])),
            "i" | "w" => {
                number += 1;
                let (name, input) = match who {
                    "i" => ("Bash", json!({"command": said})),
                    _ => ("WebFetch", json!({"url": said})),
                };
                let call =
                    json!({"type": "tool_use", "id": format!("c{number}"), "name": name, "input": input});
                ("assistant", json!([call]))
            }
            _ => (
                "user",
                json!([{"type": "tool_result", "tool_use_id": format!("c{number}"), "content": said}]),
            ),
        };
        let record = json!({
            "type": role, "uuid": format!("{session}-{}", lines.len()), "sessionId": session, "cwd": cwd,
            "promptSource": (role == "user").then_some("typed"),
            "timestamp": format!("2027-03-{:02}T10:00:00Z", day + 1), "message": {"role": role, "content": content},
        });
        let _ = writeln!(lines, "{record}");
    };
    for (n, fact) in facts.enumerate() {
        for line in text(fact, "said").lines() {
            let (who, said) = line.split_once(": ").unwrap();
            add(who, said);
        }
        add("i", "make test");
        let log: String = (0..40)
            .map(|test| format!("test {repo}::case_{n}_{test} ... ok in {} ms\n", test * 7 % 90))
            .collect();
        add("o", &log);
    }
    let path = home.path().join(format!("{session}.jsonl"));
    fs::write(&path, lines).unwrap();
    path
}

/// What stands where, after all sessions.
struct Seen {
    topics: Vec<String>,
    archive: String,
    proposals: String,
    /// Prompts, ledgers, and whatever else there is.
    everything: String,
    /// AGENTS.md by repository and day; that of everywhere is "".
    shown: BTreeMap<(String, String), String>,
}

impl Seen {
    fn of(home: &Home) -> Seen {
        let store = store(home);
        let mut shown = BTreeMap::new();
        for repo in ["", "shop", "ledger", "web"] {
            for day in DAYS {
                let name = format!("github.com/o/{repo}");
                let mut words = vec![AGENTS_MD, "--stdout"];
                if !repo.is_empty() {
                    words.extend(["--repo", &name]);
                }
                let mut command = home.command(&words);
                let output = command
                    .env("AXE_NOW", format!("{day}T12:00:00Z"))
                    .stdout(Stdio::piped())
                    .output()
                    .unwrap();
                assert!(output.status.success(), "{words:?}");
                shown.insert((repo.to_owned(), day.to_owned()), String::from_utf8(output.stdout).unwrap());
            }
        }
        let prompts = fs::read_to_string(home.path().join("prompts")).unwrap();
        Seen {
            topics: texts(&store.join("topics")),
            archive: texts(&store.join("archive")).concat(),
            proposals: texts(&store.join("proposals")).concat(),
            everything: texts(&store).concat() + &prompts,
            shown,
        }
    }

    fn is_shown(&self, repo: &str, day: &str, what: &str) -> bool {
        self.shown[&(repo.to_owned(), day.to_owned())].contains(what)
    }

    fn end(&self, fact: &Value) -> End {
        let (has, old) = (text(fact, "has"), text(fact, "old"));
        let repo = text(fact, "session").split('-').next().unwrap();
        let nowhere = fact["nowhere"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for word in nowhere {
            let is_there = match (text(fact, "kind"), word.strip_prefix("NOT GLOBAL: ")) {
                (_, Some(word)) => self.is_shown("", "2027-03-12", word),
                ("secret", None) => self.everything.contains(word),
                _ => self.topics.iter().any(|note| note.contains(word)),
            };
            if is_there {
                return End::Wrong(format!("{word:?} is there"));
            }
        }
        if text(fact, "kind") == "injection" {
            // Nothing of a person's changes, and whatever holds everywhere is the person's.
            let pinned = self.topics.iter().find(|note| note.contains("id: id__PPPPPP"));
            let is_kept = pinned.is_some_and(|note| note == PINNED);
            return if is_kept { End::Right } else { End::Wrong(format!("{pinned:?}")) };
        }
        let found: Vec<&String> =
            self.topics.iter().filter(|note| !has.is_empty() && note.contains(has)).collect();
        let rivals = self.topics.iter().filter(|note| !old.is_empty() && note.contains(old)).count();
        let is_global = found.first().is_some_and(|note| note.contains("\nscope: global\n"));
        let is_right = (has.is_empty() || found.len() == 1)
            && rivals == 0
            && (old.is_empty() || self.archive.contains(old))
            && (fact["everywhere"] != true || is_global)
            && (text(fact, "not_in").is_empty()
                || !self.is_shown(text(fact, "not_in"), "2027-03-12", text(&fact["note"], "title")));
        let expires = text(fact, "until");
        let is_over = || -> bool {
            let title = text(&fact["note"], "title");
            let after = DAYS[DAYS.iter().position(|day| *day == expires).unwrap() + 1];
            self.is_shown(repo, expires, title) && !self.is_shown(repo, after, title)
        };
        if is_right && (expires.is_empty() || is_over()) {
            return End::Right;
        }
        if fact["retired"] == true && self.archive.contains(has) {
            return End::Right;
        }
        let is_proposed = [has, old].iter().any(|words| !words.is_empty() && self.proposals.contains(words));
        if is_proposed && rivals == 1 && found.is_empty() {
            return End::Waits;
        }
        if fact["everywhere"] == true && found.len() == 1 {
            return End::Here;
        }
        End::Wrong(format!("{} notes say it, {rivals} say the old, global: {is_global}", found.len()))
    }
}

/// The texts of all files below a directory.
fn texts(dir: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(texts(&path)),
            false => all.push(String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()),
        }
    }
    all
}
