//! `memory-defrag`, killed or refused by the disk at each system call that changes something, by strace: at every
//! moment each note is in one place and whole, the next run ends what was begun, nothing is paid for twice, and it
//! can all be taken back.

#![cfg(target_os = "linux")]

use crate::crash::{Scenario, Subject, Tree, difference, walk};
use crate::support::Said;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

pub(crate) const DEFRAG: Subject = Subject { program: "memory-defrag", tree, check, sample: 2 };
const UNDO: Subject = Subject { check: check_undo, ..DEFRAG };
const DRY: Subject = Subject { check: check_dry_run, ..DEFRAG };

/// Text that is not ours stands around the section.
const AGENTS_MD: &str = "# Mine\r\n\r\nno newline at the end";

fn id(six: &str) -> String {
    format!("id__{six}")
}

/// The notes: six characters of the id, title, body.
fn corpus() -> Vec<(String, String, String)> {
    let mut notes: Vec<(String, String, String)> = [
        (
            "mergeA",
            "Port of the server",
            "The server listens on port 8081, see src/port.rs for where it is read.",
        ),
        (
            "mergeB",
            "The port of the server",
            "The server listens on port 8081, see src/port.rs for who reads it.",
        ),
        (
            "mergeC",
            "On the port of the server",
            "The server listens on port 8081, see src/port.rs and [[id__mergeA]].",
        ),
        ("spLitA", "Two ideas in one", "Guards are pure, see src/guard.rs.\n\nThe cache holds 512 entries."),
        ("renamA", "Wrong name", "About the weather in doc/weather.md."),
        ("retagA", "Wrong tags", "About tags, 17 of them."),
        ("rewriA", "Hard to read", "The thing with build.sh, recently, takes 40 s."),
        ("archiA", "Of no use", "Nothing."),
        ("coLdAA", "Rarely needed", "How to reset dev/null."),
        ("hotAAA", "Always needed", "Run make check before each commit."),
    ]
    .map(|(id, title, body)| (id.to_owned(), title.to_owned(), body.to_owned()))
    .into();
    // Enough that one may be archived, however many of the others are merged before.
    for (n, letter) in ('A'..='H').enumerate() {
        let more = format!("Filler number {n} is about {letter}{letter}, in src/{letter}.rs.");
        notes.push((format!("fiLLe{letter}"), format!("Filler {letter}"), more));
    }
    notes
}

/// What the model does with which note: as long as `need` stands in its prompt.
fn operations() -> Vec<(&'static str, Value)> {
    let text =
        |title: &str, body: &str| json!({"title": title, "summary": "In short.", "tags": [], "body": body});
    let merged = "The server listens on port 8081, see src/port.rs for where it is read and who reads it.";
    let tier = |six: &str, tier: &str| json!({"op": "tier", "id": id(six), "tier": tier});
    let mut merge = text("Port 8081", merged);
    merge["op"] = json!("merge");
    merge["ids"] = json!([id("mergeA"), id("mergeB"), id("mergeC")]);
    vec![
        ("title: The port of the server", merge),
        (
            "title: Two ideas in one",
            json!({"op": "split", "id": id("spLitA"), "into": [
                text("Guards are pure", "Guards are pure, see src/guard.rs."),
                text("The cache holds 512", "The cache holds 512 entries."),
                text("Why two", "Two ideas were in one note."),
            ]}),
        ),
        (
            "title: Wrong name",
            json!({"op": "rename", "id": id("renamA"), "title": "Weather is in doc/weather.md"}),
        ),
        ("About tags, 17", json!({"op": "retag", "id": id("retagA"), "tags": ["topic__new"]})),
        (
            "recently, takes",
            json!({"op": "rewrite", "id": id("rewriA"), "summary": "build.sh takes 40 s.",
                "body": "The build by build.sh takes 40 s."}),
        ),
        ("title: Of no use", json!({"op": "archive", "id": id("archiA"), "reason": "it says nothing"})),
        // Further operations on notes of which the first one is not undone by them.
        ("\"op\": \"tier\"*id__mergeA", tier("mergeA", "hot")),
        ("\"op\": \"tier\"*id__spLitA", tier("spLitA", "cold")),
        ("\"op\": \"tier\"*id__rewriA", tier("rewriA", "hot")),
        ("\"op\": \"tier\"*id__coLdAA", tier("coLdAA", "cold")),
        ("\"op\": \"tier\"*id__hotAAA", tier("hotAAA", "hot")),
    ]
}

/// Shell that answers with the operations on what the prompt shows.
pub(crate) fn answer() -> String {
    let mut lines = String::from("ops=\nadd() { ops=\"${ops:+$ops,}$1\"; }\n");
    for (need, operation) in operations() {
        // What is not quoted in the pattern is the star.
        let pattern = need.split('*').map(|part| format!("'{part}'")).collect::<Vec<_>>().join("*");
        lines.push_str(&format!("case \"$prompt\" in *{pattern}*) add '{operation}' ;; esac\n"));
    }
    lines.push_str(r#"printf '{"batch":"%s","operations":[%s],"notes":"In order."}\n' "$batch" "$ops""#);
    lines
}

impl Scenario {
    /// Notes, a target with somebody's text in it, and a model.
    fn defrag(subject: &'static Subject, name: &'static str, calls: usize) -> Scenario {
        Scenario::defrag_by(subject, name, calls, &answer())
    }

    pub(crate) fn defrag_by(
        subject: &'static Subject,
        name: &'static str,
        calls: usize,
        answer: &str,
    ) -> Scenario {
        let scenario = Scenario::new(subject, name, calls, answer);
        scenario.configured(json!({}), false);
        for (six, title, body) in corpus() {
            let name = format!("{} -- topic__old {}.md", title.to_lowercase().replace(' ', "-"), id(&six));
            // A key of somebody's own, and a comment, which are to survive.
            let text = format!(
                "---\nid: {}\ntitle: {title}\nsummary: {title}, in short.\ntags: [topic__old]\nused: 2\nmine: yes # mine\n\
                 createdAt: 1771000000000\nupdatedAt: 1771000000000\n---\n\n{body}\n",
                id(&six)
            );
            scenario.sandbox.write(&scenario.root().join("topics").join(name), text);
        }
        scenario.sandbox.write(&scenario.target(), AGENTS_MD);
        scenario.keep_as_template();
        scenario
    }

    pub(crate) fn configured(&self, llm: Value, auto_commit: bool) {
        let storage = json!({"root": self.root(), "autoCommit": auto_commit});
        self.config(llm, json!({"agentsMd": {"targets": [self.target()]}, "storage": storage}));
    }

    pub(crate) fn target(&self) -> std::path::PathBuf {
        self.live().join("agents/AGENTS.md")
    }

    /// Goes on from where the run with these arguments ends.
    fn after(self, arguments: &[&str]) -> Scenario {
        self.begin();
        let output = self.run(&words(arguments));
        assert_eq!(output.code(), Some(0), "{output:?}");
        self.keep_as_template();
        self
    }

    fn with(mut self, arguments: &[&str]) -> Scenario {
        self.arguments = words(arguments);
        self
    }

    pub(crate) fn notes(&self) -> Tree {
        notes_in(&self.root())
    }

    /// Batches of which something is left.
    pub(crate) fn batches(&self) -> usize {
        fs::read_dir(self.root().join(".agent-memory/defrag")).map_or(0, Iterator::count)
    }

    /// Calls that the ledger knows of.
    pub(crate) fn counted(&self) -> usize {
        let ledger = fs::read_to_string(self.root().join(".agent-memory/calls.jsonl")).unwrap_or_default();
        ledger.lines().filter(|line| line.contains("\"event\":\"started\"")).count()
    }

    /// What must hold at every moment: each note in one place, every file whole.
    fn stands(&self, wanted: &Tree) -> Result<(), String> {
        let notes = self.notes();
        let old = notes_in(&self.template().join("store"));
        let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut planned = Vec::new();
        let mut state = Tree::new();
        let batches = self.root().join(".agent-memory/defrag");
        walk(&batches, &batches, &mut state);
        for text in state.iter().filter(|(path, _)| path.ends_with(".json")).map(|(_, text)| text) {
            let value: Value = serde_json::from_str(text).map_err(|e| format!("half a file: {e}: {text}"))?;
            texts(&value, &mut planned);
        }
        for (path, text) in notes.iter().filter(|(path, _)| !is_temporary(path)) {
            let id = text.strip_prefix("---\nid: ").and_then(|rest| rest.lines().next());
            places.entry(id.ok_or_else(|| format!("no note: {path}: {text:?}"))?).or_default().push(path);
            let is_known = |tree: &Tree| tree.values().any(|other| other == text);
            if !is_known(&old) && !is_known(wanted) && !planned.contains(text) {
                return Err(format!("neither old nor new: {path}: {text:?}"));
            }
        }
        for (id, paths) in &places {
            if paths.len() != 1 {
                return Err(format!("{id} is in {paths:?}"));
            }
        }
        let old_ids = old.values().filter_map(|text| text.lines().nth(1)?.strip_prefix("id: "));
        for id in old_ids.filter(|id| is_first(id)) {
            if !places.contains_key(id) {
                return Err(format!("{id} is nowhere"));
            }
        }
        let target = fs::read_to_string(self.target()).unwrap_or_default();
        let before = fs::read_to_string(self.template().join("agents/AGENTS.md")).unwrap_or_default();
        let is_whole = target == before
            || target.starts_with(AGENTS_MD) && target.trim_end().ends_with("agent-memory:end -->");
        if !is_whole { Err(format!("AGENTS.md: {target:?}")) } else { Ok(()) }
    }

    /// What must hold when all is done.
    fn is_settled(&self, wanted: &Tree) -> Result<(), String> {
        self.stands(wanted)?;
        let tree = self.tree();
        if tree != *wanted {
            return Err(difference(wanted, &tree));
        }
        let mut all = Tree::new();
        walk(&self.live(), &self.live(), &mut all);
        if let Some(left) = all.keys().find(|path| !path.contains("/.git/") && is_temporary(path)) {
            return Err(format!("left: {left}"));
        }
        if self.counted() < self.calls() {
            return Err(format!("{} calls, {} in the ledger", self.calls(), self.counted()));
        }
        Ok(())
    }
}

pub(crate) fn words(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|word| (*word).to_owned()).collect()
}

fn notes_in(root: &Path) -> Tree {
    let mut tree = Tree::new();
    for place in ["topics", "archive"] {
        walk(&root.join(place), root, &mut tree);
    }
    tree
}

/// Is it one of the notes that were there first? The parts of a split go when it is undone.
fn is_first(id: &str) -> bool {
    corpus().iter().any(|(six, ..)| id.ends_with(six.as_str()))
}

/// `.NAME.XXXXXX`: a file that was not done.
fn is_temporary(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.starts_with('.')
        && name.rsplit('.').next().is_some_and(|end| end.len() == 6)
        && name.matches('.').count() > 1
}

/// All texts of notes that a plan holds.
fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.starts_with("---\n") => found.push(text.clone()),
        Value::Array(all) => all.iter().for_each(|one| texts(one, found)),
        Value::Object(all) => all.values().for_each(|one| texts(one, found)),
        _ => {}
    }
}

/// Notes, AGENTS.md, and what is remembered of the notes.
fn tree(scenario: &Scenario) -> Tree {
    let mut tree = scenario.notes();
    for path in [scenario.target(), scenario.root().join(".agent-memory/defrag.json")] {
        tree.insert(path.display().to_string(), fs::read_to_string(&path).unwrap_or_default());
    }
    tree
}

/// Did the disturbed run end as it may?
fn ended(output: &Output, is_kill: bool) -> Result<(), String> {
    let is_told =
        ["memory-defrag: ", "Warning: ", "\"error\""].iter().any(|word| output.err().contains(word));
    match output.code() {
        _ if is_kill => Ok(()),
        Some(0 | 143) => Ok(()),
        Some(1..=3) if is_told => Ok(()),
        _ => Err(format!("{output:?}")),
    }
}

/// After the next run, and one more for what a reply brought by hand leaves to it.
fn check(scenario: &Scenario, disturbed: &Output, is_kill: bool, wanted: &Tree) -> Result<(), String> {
    ended(disturbed, is_kill)?;
    scenario.stands(wanted)?;
    let next = scenario.run(&scenario.arguments);
    scenario.stands(wanted)?;
    let last = scenario.run(&words(&["--quiet"]));
    let told = told(disturbed, &[&next, &last]);
    if last.code() != Some(0) {
        return Err(told);
    }
    scenario.is_settled(wanted).map_err(|why| format!("{why}\n{told}"))?;
    if scenario.calls() > scenario.calls {
        return Err(format!("{} calls instead of {}\n{told}", scenario.calls(), scenario.calls));
    }
    if scenario.batches() != 1 {
        return Err(format!("{} batches\n{told}", scenario.batches()));
    }
    if !scenario.uncommitted().is_empty() && !disturbed.err().contains("but not committed") {
        return Err(format!("not committed: {}\n{told}", scenario.uncommitted()));
    }
    // What was killed between two parts is two defrags, of which the last is taken back.
    let undone = scenario.run(&words(&["--undo", "--quiet"]));
    let is_one = scenario.calls <= 1;
    let (old, new) = (notes_in(&scenario.template().join("store")), scenario.notes());
    if undone.code() != Some(0) || is_one && old != new {
        return Err(format!("not as before:\n{}\n{undone:?}\n{told}", difference(&old, &new)));
    }
    match scenario.batches() {
        0 => Ok(()),
        left => Err(format!("{left} batches after the undoing\n{told}")),
    }
}

fn told(disturbed: &Output, further: &[&Output]) -> String {
    let mut told = format!("disturbed: {:?} {}", disturbed.code(), disturbed.err());
    for output in further {
        told.push_str(&format!("then: {:?} {}", output.code(), output.err()));
    }
    told
}

/// The next try, and a run that has nothing to do.
fn check_undo(scenario: &Scenario, disturbed: &Output, is_kill: bool, wanted: &Tree) -> Result<(), String> {
    ended(disturbed, is_kill)?;
    scenario.stands(wanted)?;
    // Where only the batch was still to be removed, there is nothing left to take back.
    let was_over = scenario.notes().iter().all(|(path, text)| wanted.get(path) == Some(text));
    let next = scenario.run(&scenario.arguments);
    let last = scenario.run(&words(&["--quiet"]));
    let told = told(disturbed, &[&next, &last]);
    if last.code() != Some(0) || next.code() != Some(0) && !(was_over && next.code() == Some(1)) {
        return Err(told);
    }
    scenario.is_settled(wanted).map_err(|why| format!("{why}\n{told}"))?;
    match (scenario.batches(), scenario.calls()) {
        (0, 0) => Ok(()),
        (batches, calls) => Err(format!("{batches} batches, {calls} calls\n{told}")),
    }
}

/// Nobody carries out what was only to be shown; and what is shown then can be carried out.
fn check_dry_run(
    scenario: &Scenario,
    disturbed: &Output,
    is_kill: bool,
    wanted: &Tree,
) -> Result<(), String> {
    ended(disturbed, is_kill)?;
    let untouched = |who: &str| {
        let (old, new) = (notes_in(&scenario.template().join("store")), scenario.notes());
        let target = fs::read_to_string(scenario.target()).unwrap();
        if old != new || target != AGENTS_MD {
            Err(format!("{who} has changed {}", difference(&old, &new)))
        } else {
            Ok(())
        }
    };
    untouched("the dry run")?;
    // It ends what is begun, and finds nothing to take back.
    let undo = scenario.run(&words(&["--undo"]));
    untouched("what came after it")?;
    let dry = scenario.run(&scenario.arguments);
    let told = told(disturbed, &[&undo, &dry]);
    let shown: Value = serde_json::from_str(&dry.out()).map_err(|e| format!("{e}: {told}"))?;
    let applied = scenario.run(&words(&["--quiet", "--apply", shown["reply"].as_str().unwrap_or_default()]));
    if undo.code() != Some(1) || applied.code() != Some(0) {
        return Err(format!("{applied:?}\n{told}"));
    }
    // What was asked by a killed run waits a day for somebody who brings its reply.
    scenario.is_settled(wanted).map_err(|why| format!("{why}\n{told}"))
}

impl Scenario {
    /// The path of the one note in `place` whose name ends so.
    pub(crate) fn note(&self, place: &str, six: &str) -> Option<std::path::PathBuf> {
        let end = format!("{}.md", id(six));
        let notes = fs::read_dir(self.root().join(place)).ok()?;
        notes.map(|entry| entry.unwrap().path()).find(|path| path.to_string_lossy().ends_with(&end))
    }

    /// As somebody does in an editor.
    fn edit(&self, six: &str) {
        let path = self.note("topics", six).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, format!("{text}\nMy own words.\n")).unwrap();
    }
}

fn by_hand() -> Scenario {
    let scenario = Scenario::defrag(&DEFRAG, "by hand", 0).with(&["--quiet", "--apply", "answer.json"]);
    let prompt = scenario.run(&words(&["--prompt"]));
    assert_eq!(prompt.code(), Some(0), "{prompt:?}");
    scenario.sandbox.file("prompt", &prompt.stdout);
    let llm = Command::new("sh")
        .arg(scenario.sandbox.work().join("llm"))
        .stdin(fs::File::open(scenario.sandbox.work().join("prompt")).unwrap())
        .output()
        .unwrap();
    scenario.sandbox.file("answer.json", llm.stdout);
    scenario.keep_as_template();
    scenario
}

fn undo() -> Scenario {
    Scenario::defrag(&UNDO, "undo", 0).after(&["--quiet"]).with(&["--undo", "--quiet"])
}

fn dry_run() -> Scenario {
    let mut scenario = Scenario::defrag(&DRY, "dry run", 1).with(&["--dry-run", "--json"]);
    scenario.begin();
    let shown: Value = serde_json::from_str(&scenario.run(&scenario.arguments).out()).unwrap();
    let applied = scenario.run(&words(&["--quiet", "--apply", shown["reply"].as_str().unwrap()]));
    assert_eq!(applied.code(), Some(0), "{applied:?}");
    scenario.aim = Some(scenario.tree());
    scenario
}

/// Two groups and the last call, on what is hot.
fn in_parts() -> Scenario {
    let scenario = Scenario::defrag(&DEFRAG, "in parts", 3);
    scenario.configured(json!({"maxPromptBytes": 20000}), false);
    scenario
}

fn with_history() -> Scenario {
    let scenario = Scenario::defrag(&DEFRAG, "with git", 1);
    scenario.configured(json!({}), true);
    scenario
}

#[test]
fn killed_at_any_call_a_defrag_is_ended_by_the_next_and_can_be_taken_back() {
    Scenario::defrag(&DEFRAG, "whole", 1).inject("signal=KILL");
}

#[test]
fn killed_in_any_part_a_defrag_is_ended_by_the_next() {
    in_parts().inject("signal=KILL");
}

#[test]
fn killed_at_any_call_a_defrag_is_committed_by_the_next() {
    with_history().inject("signal=KILL");
}

#[test]
fn killed_at_any_call_a_defrag_by_hand_is_carried_out_once() {
    by_hand().inject("signal=KILL");
}

#[test]
fn killed_at_any_call_an_undoing_is_carried_on() {
    undo().inject("signal=KILL");
}

#[test]
fn killed_at_any_call_a_dry_run_has_changed_nothing() {
    dry_run().inject("signal=KILL");
}

#[test]
fn ended_at_any_call_a_defrag_is_ended_by_the_next() {
    Scenario::defrag(&DEFRAG, "terminated", 1).inject("signal=TERM");
    undo().inject_if_all("signal=TERM");
}

#[test]
fn a_disk_that_fails_at_any_call_of_a_defrag_costs_nothing() {
    Scenario::defrag(&DEFRAG, "whole", 1).inject("error=EIO");
    in_parts().inject_if_all("error=EIO");
    undo().inject_if_all("error=EIO");
}

#[test]
fn a_disk_that_is_full_at_any_call_of_a_defrag_costs_nothing() {
    by_hand().inject("error=ENOSPC");
    undo().inject("error=ENOSPC");
    dry_run().inject_if_all("error=ENOSPC");
    with_history().inject_if_all("error=ENOSPC");
}

#[test]
fn what_was_edited_after_a_crash_is_kept_and_so_is_what_was_made_before_it() {
    let scenario = Scenario::defrag(&DEFRAG, "edited", 1);
    scenario.begin();
    scenario.run(&scenario.arguments);
    let made: Vec<String> = scenario.notes().into_keys().collect();
    // All is made, and nobody has taken note of it.
    if !scenario.killed_at("applied-0.json") {
        return;
    }
    for six in ["spLitA", "mergeA", "renamA", "fiLLeA"] {
        scenario.edit(six);
    }
    let edited = scenario.notes();
    let next = scenario.run(&scenario.arguments);
    assert_eq!(next.code(), Some(0), "{next:?}");
    let notes = scenario.notes();
    assert_eq!(notes.keys().collect::<Vec<_>>(), made.iter().collect::<Vec<_>>(), "{}", next.err());
    for path in edited.iter().filter(|(_, text)| text.ends_with("My own words.\n")).map(|(path, _)| path) {
        assert!(notes[path].ends_with("My own words.\n"), "{path}: {}", notes[path]);
    }
    // What was changed since is not overwritten by what was before.
    let undone = scenario.run(&words(&["--undo"]));
    assert_eq!(undone.code(), Some(1), "{undone:?}");
    assert!(undone.err().contains("has been changed since"), "{}", undone.err());
    assert_eq!(scenario.notes(), notes);
}

#[test]
fn what_was_edited_in_the_middle_of_a_merge_ends_the_merge_as_if_it_had_not_begun() {
    let scenario = Scenario::defrag(&DEFRAG, "edited in the middle", 1);
    // The first note holds all; of the two others one is in the archive.
    if !scenario.killed_at("id__mergeC.md") {
        return;
    }
    assert!(scenario.note("archive", "mergeB").is_some());
    scenario.edit("mergeC");
    // Who asks by hand first has the rest brought to an end.
    let next = scenario.run(&words(&["--prompt"]));
    assert_eq!(next.code(), Some(0), "{next:?}");
    assert!(next.err().contains("dropped: merge id__mergeA id__mergeB id__mergeC"), "{next:?}");
    let old = notes_in(&scenario.template().join("store"));
    for six in ["mergeA", "mergeB", "mergeC"] {
        let now = fs::read_to_string(scenario.note("topics", six).unwrap()).unwrap();
        let before = old.iter().find(|(path, _)| path.contains(six)).unwrap().1;
        // How much of the first is shown is another operation.
        assert!(now.contains(before.rsplit("---").next().unwrap()), "{now}");
    }
    assert!(scenario.note("archive", "mergeB").is_none());
}
