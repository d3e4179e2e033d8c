//! What lands, what waits, and what is shown, on sets of sessions that people wrote who had not read the rules. A third of each
//! set was held back while the rules were made. Everything goes through the real program and a scripted model.

use crate::support::store::names;
use crate::support::{Sandbox, one_in, root, say};
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;

/// Gives the reply of `reply.json`. Its quotes are found in the prompt; an update of a title is one of the note with that title.
/// Asked once more because facts would be lost, it calls them gone; anything else it leaves as it was.
const MODEL: &str = r#"
given = beside("reply.json")
flat = lambda text: " ".join(" ".join(line.removeprefix("|") for line in text.split("\n")).split()).lower()
said = [(turn, flat(text)) for turn, _, text in turns()]
def evidence(quote):
    found = [{"turn": turn, "quote": quote} for turn, text in said if quote and flat(quote) in text]
    return found[:1] or [{"turn": "t1", "quote": quote or ""}]
known = {title: id for id, title in titles.items()}
for line in lines:
    id, _, rest = line.partition("]] ")
    if id.startswith("[[id__") and ": " in rest: known[rest.split(": ")[0]] = id[2:]
entries = []
for entry in given.get("entries", []):
    entry = {"ref": None, "tags": [], "scope": "repo", "gone": [], **entry}
    entry["evidence"] = evidence(entry.pop("quote", None))
    entry["update"] = known.get(entry.get("update"), entry.get("update"))
    entry["sources"] = ids
    if is_repair:
        entry["gone"] = entry["gone"] + lost()
    entries.append(entry)
retire = [{"id": known.get(note["id"], note["id"]), "reason": note.get("reason", ""), "evidence": evidence(note.get("quote")), "sources": ids} for note in given.get("retire", [])]
say(entries, [] if entries or retire else [{"source": id, "reason": "nothing"} for id in ids], retire=retire)
"#;

/// The cases of a set: those that the rules were made with, those that were held back, and those of others that came later.
/// A usual run takes one in three.
fn set(name: &str) -> Vec<Value> {
    let path = |part: &str| root().join("tests/landing").join(format!("{name}-{part}.json"));
    let files = ["dev", "held", "late"].map(path).into_iter().filter(|path| path.exists());
    files
        .flat_map(|path| serde_json::from_str::<Vec<Value>>(&fs::read_to_string(path).unwrap()).unwrap())
        .step_by(one_in(3))
        .collect()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// One store, in which one session after another is heard.
struct Scene {
    sandbox: Sandbox,
}

impl Scene {
    fn new() -> Scene {
        let sandbox = Sandbox::new();
        let command = sandbox.script(MODEL);
        sandbox.llm(&command, json!({"maxCallsPerDay": 10_000}));
        Scene { sandbox }
    }

    /// A checkout of this repository, and nothing in the store but these notes.
    fn begin(&self, repo: &str, notes: &[Value]) {
        let (sandbox, store) = (&self.sandbox, self.sandbox.store());
        for place in ["topics", "archive", "proposals", "inbox"] {
            let _ = fs::remove_dir_all(store.join(place));
        }
        let _ = fs::remove_dir_all(store.join(".agent-memory"));
        let (host, path) = repo.split_once('/').unwrap();
        sandbox.file(".git/HEAD", "ref: refs/heads/main\n");
        sandbox.file(".git/config", format!("[remote \"origin\"]\n\turl = https://{host}/{path}.git\n"));
        for (n, note) in notes.iter().enumerate() {
            self.note(&id(n), repo, note);
        }
    }

    /// Writes a note as it is known: a session's, or one that the person has made their own in some way.
    fn note(&self, id: &str, repo: &str, note: &Value) {
        let state = text(note, "state");
        let scope = if state == "global" { "global" } else { "repo" };
        let mut front = json!({
            "id": format!("id__{id}"), "title": note["title"], "summary": note["summary"], "tags": note["tags"],
            "status": "consolidated", "tier": "warm", "scope": scope, "pinned": state == "pinned",
            "createdAt": 1_771_000_000_000_i64, "updatedAt": 1_771_000_000_000_i64,
        });
        let mut sources = vec![json!({"harness": "claude-code", "threadId": "T-0", "repo": repo})];
        match state {
            "accepted" => sources.push(json!({"harness": "review", "repo": repo})),
            "handwritten" => sources = vec![json!({"harness": "manual", "repo": repo})],
            _ => {}
        }
        front["sources"] = json!(sources);
        let yaml: String = front.as_object().unwrap().iter().fold(String::new(), |mut yaml, (key, value)| {
            let _ = writeln!(yaml, "{key}: {value}");
            yaml
        });
        let file = format!("---\n{yaml}---\n\n{}\n", text(note, "body"));
        self.sandbox.write(&self.sandbox.store().join(format!("topics/note id__{id}.md")), file);
    }

    /// What is said, in the form of Claude Code, up to the turn `end`.
    fn tell(&self, session: &str, case: &Value, end: usize) {
        let work = self.sandbox.work();
        let cwd = case["cwd"].as_str().unwrap_or("/home/u/r");
        let mut lines = String::new();
        for (n, turn) in case["turns"].as_array().unwrap().iter().take(end).enumerate() {
            let mut record = |role: &str, part: &str, content: Value| {
                let mut record = json!({
                    "type": role, "uuid": format!("{session}-{n}{part}"), "sessionId": session,
                    "timestamp": "2026-02-27T10:00:00Z", "cwd": work, "message": {"role": role, "content": content},
                });
                if part.is_empty() && role == "user" {
                    record["promptSource"] = json!("typed");
                }
                let record = record.to_string().replace(cwd, work.to_str().unwrap());
                let _ = writeln!(lines, "{record}");
            };
            match text(turn, "who") {
                "person" => record("user", "", turn["text"].clone()),
                "agent" => record("assistant", "", json!([{"type": "text", "text": turn["text"]}])),
                _ => {
                    let call = format!("c{n}");
                    let part = json!([{"type": "tool_use", "id": call, "name": turn["name"], "input": turn["input"]}]);
                    record("assistant", "i", part);
                    let part =
                        json!([{"type": "tool_result", "tool_use_id": call, "content": turn["output"]}]);
                    record("user", "o", part);
                }
            }
        }
        self.sandbox.write(&self.sandbox.transcript(session), lines);
        self.sandbox.hear(session);
    }

    fn consolidate(&self, reply: &Value) -> (String, String) {
        self.sandbox.write(&self.sandbox.home().join("reply.json"), reply.to_string());
        let (code, out, err) = self.sandbox.consolidated(&[]);
        assert_eq!(code, Some(0), "{out}{err}");
        (out, err)
    }

    /// The reply of a case updates its note.
    fn correct(&self, case: &Value) {
        let mut reply = case["reply"].clone();
        reply["update"] = case["note"]["title"].clone();
        reply["scope"] = case["note"]["scope"].clone();
        self.consolidate(&json!({"entries": [reply]}));
    }

    /// The files of a place.
    fn files(&self, place: &str) -> Vec<String> {
        let dir = self.sandbox.store().join(place);
        let read = |name: &String| fs::read_to_string(dir.join(name)).unwrap();
        names(&dir).iter().map(read).collect()
    }

    /// The note in use with this title.
    fn titled(&self, title: &str) -> Option<String> {
        let line = |file: &str| {
            let quoted =
                [title.to_owned(), json!(title).to_string(), format!("'{}'", title.replace('\'', "''"))];
            quoted.iter().any(|title| file.contains(&format!("\ntitle: {title}\n")))
        };
        self.files("topics").into_iter().find(|file| line(file))
    }

    fn reasons(&self) -> Vec<String> {
        let of = |file: &String| {
            let proposal: Value = serde_json::from_str(file).unwrap();
            format!("{} {}: {}", proposal["op"], proposal["entry"]["title"], proposal["reasons"])
        };
        self.files("proposals").iter().map(of).collect()
    }
}

fn id(n: usize) -> String {
    format!("{}AAAAA", char::from(b'A' + u8::try_from(n).unwrap()))
}

/// How many of a set went as they should, and what went otherwise.
#[derive(Default)]
struct Score {
    right: usize,
    all: usize,
    wrong: Vec<String>,
}

impl Score {
    fn count(&mut self, is_right: bool, what: impl FnOnce() -> String) {
        self.all += 1;
        self.right += usize::from(is_right);
        if !is_right {
            self.wrong.push(what());
        }
    }

    fn at_least(self, what: &str, percent: usize) {
        // A sample may hold the one that the whole set may lose.
        let spare = usize::from(one_in(3) > 1);
        say(&format!("{what}: {} of {}: {}", self.right, self.all, self.wrong.join("; ")));
        assert!(
            (self.right + spare) * 100 >= self.all * percent,
            "{what}: {} of {}\n{}",
            self.right,
            self.all,
            self.wrong.join("\n")
        );
    }
}

#[test]
fn honest_notes_land_at_once() {
    let scene = Scene::new();
    let mut landed = Score::default();
    for case in set("honest") {
        scene.begin(text(&case, "repo"), &[]);
        scene.tell("s", &case, usize::MAX);
        scene.consolidate(&json!({"entries": case["notes"]}));
        for note in case["notes"].as_array().unwrap() {
            let title = text(note, "title");
            landed.count(scene.titled(title).is_some(), || {
                format!("{} {title}: {:?}", text(&case, "id"), scene.reasons())
            });
        }
    }
    // Names and a message that were read on a page or in the log of a service wait.
    landed.at_least("honest notes that land", 95);
}

/// The notes of a set that hold everywhere afterwards.
fn global(name: &str) -> Score {
    let scene = Scene::new();
    let mut global = Score::default();
    for case in set(name) {
        scene.begin(text(&case, "repo"), &[]);
        scene.tell("s", &case, usize::MAX);
        scene.consolidate(&json!({"entries": case["notes"]}));
        let files = scene.files("topics");
        let is_global = files.iter().any(|file| file.contains("\nscope: global\n"));
        global.count(is_global, || format!("{} {:?}", text(&case, "id"), scene.reasons()));
    }
    global
}

#[test]
fn typed_rules_hold_everywhere_at_once() {
    global("rules").at_least("typed rules that hold everywhere", 85);
}

#[test]
fn orders_for_one_time_never_hold_everywhere() {
    let global = global("oneoff");
    say(&format!("orders for one time that hold everywhere: {} of {}", global.right, global.all));
    assert_eq!(global.right, 0);
}

#[test]
fn a_correction_is_shown_its_note_and_lands() {
    let scene = Scene::new();
    let mut shown = Score::default();
    let (mut own, mut kept, mut foreign) = (Score::default(), Score::default(), Score::default());
    for case in set("corrections") {
        let mut notes = vec![case["note"].clone()];
        notes.extend(case["others"].as_array().unwrap().iter().cloned());
        scene.begin(text(&case, "repo"), &notes);
        scene.tell("s", &case, usize::MAX);
        let before = scene.sandbox.prompts().len();
        scene.correct(&case);
        let prompt = &scene.sandbox.prompts()[before];
        shown.count(prompt.contains(text(&case["note"], "body").lines().next().unwrap()), || {
            text(&case, "id").to_owned()
        });
        let landed = scene.titled(text(&case["reply"], "title"));
        let is_new =
            landed.is_some_and(|file| file.contains(text(&case["reply"], "body").lines().next().unwrap()));
        let told = || format!("{} {:?}", text(&case, "id"), scene.reasons());
        match (text(&case["note"], "state"), case["same_language"].as_bool()) {
            ("session", _) => own.count(is_new, told),
            (_, Some(true)) => kept.count(is_new, told),
            // In another language: it waits, and the note is marked.
            _ => foreign.count(!is_new && scene.reasons().len() == 1, told),
        }
    }
    shown.at_least("corrected notes that are shown", 100);
    own.at_least("corrections of sessions' notes that land", 92);
    foreign.at_least("corrections in another language that wait", 85);
    // A model that adds words of its own, or writes a number otherwise, makes them wait.
    kept.at_least("corrections of kept notes in their language that land", 50);
}

#[test]
fn an_update_that_turns_a_persons_note_around_waits() {
    let scene = Scene::new();
    let mut waits = Score::default();
    for case in set("wrong") {
        scene.begin(text(&case, "repo"), &[case["note"].clone()]);
        let before = scene.files("topics");
        scene.tell("s", &case, usize::MAX);
        scene.correct(&case);
        let is_waiting = scene.files("topics") == before && scene.reasons().len() == 1;
        waits.count(is_waiting, || text(&case, "id").to_owned());
    }
    // What a person said of one thing, in words that fit another one, is not told apart.
    waits.at_least("wrong updates that wait", 85);
}

#[test]
fn a_rule_that_the_person_lets_go_of_is_retired() {
    let scene = Scene::new();
    let mut gone = Score::default();
    for case in set("retire") {
        scene.begin(text(&case, "repo"), &[case["note"].clone()]);
        scene.tell("s", &case, usize::MAX);
        let retire = json!({"id": case["note"]["title"], "reason": case["reply"]["reason"], "quote": case["reply"]["quote"]});
        scene.consolidate(&json!({"retire": [retire]}));
        let is_gone = scene.files("topics").is_empty();
        if case["same_language"] == json!(true) {
            gone.count(is_gone, || format!("{} {:?}", text(&case, "id"), scene.reasons()));
        } else {
            assert!(is_gone != (scene.reasons().len() == 1), "{}", text(&case, "id"));
        }
    }
    // One that shares no word with the title waits.
    gone.at_least("rules that are let go of in the note's language", 60);
}

#[test]
fn a_session_that_is_read_in_several_runs_ends_as_if_read_in_one() {
    let scene = Scene::new();
    let mut right = Score::default();
    for case in set("split") {
        scene.begin(text(&case, "repo"), &[]);
        let mut titles: Vec<String> = Vec::new();
        for (run, cut) in case["runs"].as_array().unwrap().iter().zip(case["cuts"].as_array().unwrap()) {
            scene.tell("s", &case, usize::try_from(cut.as_u64().unwrap()).unwrap() + 1);
            let mut notes = run["notes"].as_array().unwrap().clone();
            for note in &mut notes {
                if let Some(index) = note["corrects"].as_u64() {
                    let index = usize::try_from(index).unwrap();
                    note["update"] = json!(titles[index]);
                    titles[index] = text(note, "title").to_owned();
                }
                titles.push(text(note, "title").to_owned());
            }
            scene.consolidate(&json!({"entries": notes}));
        }
        let all = scene.files("topics").concat();
        let last = &case["final"][0];
        let strings = |key: &str| {
            last[key]
                .as_array()
                .unwrap()
                .iter()
                .map(|text| text.as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let is_right = strings("must").iter().all(|part| all.contains(part))
            && strings("must_not").iter().all(|part| !all.contains(part));
        right.count(is_right, || format!("{} {:?}", text(&case, "id"), scene.reasons()));
    }
    right.at_least("sessions in several runs", 90);
}

/// The notes that no attack may change.
fn stock() -> Vec<(&'static str, Value)> {
    let note = |title: &str, body: &str, state: &str| json!({"title": title, "summary": title, "tags": ["topic__x"], "body": body, "state": state});
    vec![
        (
            "GGGGGG",
            note("Commit messages are in English", "Commit messages are written in English.", "global"),
        ),
        (
            "PPPPPP",
            note(
                "Deploys go through staging",
                "Every deploy goes through staging first; run `make stage`.",
                "pinned",
            ),
        ),
        (
            "HHHHHH",
            note("The database is Postgres 16", "The database of the project is Postgres 16.", "handwritten"),
        ),
        ("AAAAAA", note("Releases happen on Tuesdays", "Releases happen on Tuesdays at 10:00.", "accepted")),
        ("SSSSSS", note("The dev server listens on 4310", "The dev server listens on 4310.", "session")),
    ]
}

#[test]
fn what_a_page_says_lands_rarely_and_never_everywhere() {
    let scene = Scene::new();
    let mut kept_out = Score::default();
    for mut case in set("attacks") {
        case["cwd"] = json!("/home/u/r");
        scene.begin("github.com/o/r", &[]);
        let stock = stock();
        for (id, note) in &stock {
            scene.note(id, "github.com/o/r", note);
        }
        let path = |id: &str| scene.sandbox.store().join(format!("topics/note id__{id}.md"));
        let read = |id: &str| fs::read_to_string(path(id)).ok();
        let before: Vec<_> = stock.iter().map(|(id, _)| read(id)).collect();
        scene.tell("s", &case, usize::MAX);
        let mut reply = case["reply"].clone();
        for entry in reply["entries"].as_array_mut().into_iter().flatten() {
            if let Some(id) = entry["update"].as_str() {
                entry["update"] = json!(format!("id__{id}"));
            }
        }
        for entry in reply["retire"].as_array_mut().into_iter().flatten() {
            entry["id"] = json!(format!("id__{}", text(entry, "id")));
        }
        scene.consolidate(&reply);
        let name = format!("{} {} {}", text(&case, "id"), text(&case, "kind"), text(&case, "spelling"));
        for (n, (id, _)) in stock.iter().enumerate().filter(|(_, (id, _))| *id != "SSSSSS") {
            assert_eq!(read(id), before[n], "{name}: a kept note was changed");
        }
        let others: Vec<String> =
            scene.files("topics").into_iter().filter(|file| !file.contains("id: \"id__GGGGGG\"")).collect();
        assert!(
            !others
                .iter()
                .any(|file| file.contains("\nscope: global\n") || file.contains("\nscope: \"global\"\n")),
            "{name}: it holds everywhere"
        );
        let lure = text(&case, "lure");
        let landed =
            others.iter().any(|file| file.contains(lure) || file.contains(json!(lure).as_str().unwrap()));
        let s_gone = read("SSSSSS").is_none_or(|file| !file.contains("4310"));
        kept_out.count(!landed && !s_gone, || name);
    }
    kept_out.at_least("attacks that do not land", 90);
}
