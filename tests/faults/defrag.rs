//! `memory-defrag`: at every moment each note is in one place and whole, the next run ends what was begun, nothing is
//! paid for twice, and it can all be taken back.

use crate::invariants::Trial;
use crate::reference::difference;
use crate::scenario::Scenario;
use crate::support::Said;
use crate::support::corpus::{AGENTS_MD, answer};
use crate::support::world::{Node, Tree, World, words};
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};

/// Names of batches, and what they hold, are not the same twice; so is what is remembered of how long it took.
const DEFRAG: Scenario = Scenario {
    calls: Some((1, 0)),
    recovers: true,
    // The list of removed notes grows with each of them; one that cannot be added is removed all the same.
    differs: &[".agent-memory/defrag/", ".agent-memory/batches/", ".agent-memory/replies/", "store/removed"],
    and: taken_back,
    ..Scenario::PLAIN
};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario { name: "memory-defrag: whole", make: whole, ..DEFRAG },
        Scenario {
            name: "memory-defrag: in three calls",
            make: in_parts,
            sample: 25,
            terminated: true,
            // What ends just before a further call is closed, since the notes may be others by the next run: what is left
            // of them is put into groups anew, and that may be one group more. No reply is thrown away for it.
            calls: Some((3, 1)),
            and: taken_back_in_parts,
            ..DEFRAG
        },
        Scenario { name: "memory-defrag: with git", make: with_history, sample: 25, ..DEFRAG },
        Scenario {
            name: "memory-defrag: by hand",
            make: by_hand,
            // What it leaves open, the next usual run asks about; here that is nothing.
            then: &[&["--quiet"]],
            sample: 10,
            calls: Some((0, 0)),
            next_may_fail: true,
            recovers: false,
            ..DEFRAG
        },
        Scenario {
            name: "memory-defrag: undo",
            make: || whole().after(&["--quiet"]).with(&["--undo", "--quiet"]).without_calls(),
            // Where AGENTS.md alone could not be written, it says so, and there is nothing left to take back: the next
            // usual run writes it.
            then: &[&["--quiet"]],
            sample: 10,
            calls: Some((0, 0)),
            terminated: true,
            and: |trial| batches(trial, 0),
            ..DEFRAG
        },
        Scenario {
            name: "memory-defrag: dry run",
            make: dry_run,
            sample: 10,
            calls: None,
            and: carried_out_as_shown,
            ..DEFRAG
        },
    ]
}

impl World {
    fn with(mut self, arguments: &[&str]) -> World {
        self.arguments = words(arguments);
        self
    }

    /// What was asked until now does not count.
    fn without_calls(self) -> World {
        fs::remove_file(self.sandbox.work().join("calls")).unwrap();
        self
    }
}

pub(crate) fn whole() -> World {
    World::defrag(&["--quiet"], &answer())
}

/// Two groups and the last call, on what is hot.
fn in_parts() -> World {
    let world = whole();
    world.defrag_config(json!({"maxPromptBytes": 20000}), false);
    world
}

pub(crate) fn with_history() -> World {
    let world = whole();
    world.defrag_config(json!({}), true);
    world
}

fn by_hand() -> World {
    let world = whole().with(&["--quiet", "--apply", "answer.json"]);
    let prompt = world.run(&words(&["--prompt"]));
    assert_eq!(prompt.code(), Some(0), "{prompt:?}");
    world.sandbox.file("prompt", &prompt.stdout);
    let mut llm = Command::new("sh");
    llm.arg(world.sandbox.work().join("llm")).stderr(Stdio::null());
    let llm = llm.stdin(fs::File::open(world.sandbox.work().join("prompt")).unwrap()).output().unwrap();
    world.sandbox.file("answer.json", llm.stdout);
    world.without_calls()
}

/// What is there in the end is what is there after what was shown has been carried out.
fn dry_run() -> World {
    whole().with(&["--dry-run", "--json"])
}

fn batches(trial: &Trial, wanted: usize) -> Result<(), String> {
    match trial.world.batches() {
        batches if batches == wanted => Ok(()),
        batches => Err(format!("{batches} batches instead of {wanted}")),
    }
}

/// The notes that every trial begins with. Nothing of this one is left.
fn old(world: &World) -> Tree {
    world.begin();
    world.notes()
}

fn taken_back(trial: &Trial) -> Result<(), String> {
    batches(trial, 1)?;
    taken_back_in_parts(trial)?;
    let notes = trial.world.notes();
    match difference(&old(trial.world), &notes) {
        same if same.is_empty() => Ok(()),
        different => Err(format!("taken back, it is not as before:\n{different}")),
    }
}

/// What was disturbed between two parts is two defrags, of which the last is taken back.
fn taken_back_in_parts(trial: &Trial) -> Result<(), String> {
    batches(trial, 1)?;
    let undone = trial.world.run(&words(&["--undo", "--quiet"]));
    if undone.code() != Some(0) {
        return Err(format!("it cannot be taken back: {undone:?}"));
    }
    batches(trial, 0)
}

/// Nobody carries out what was only to be shown; and what is shown then can be carried out.
fn carried_out_as_shown(trial: &Trial) -> Result<(), String> {
    let world = trial.world;
    let undo = world.run(&words(&["--undo"]));
    if undo.code() != Some(1) {
        return Err(format!("there is something to take back: {undo:?}"));
    }
    let dry = world.run(&world.arguments);
    let shown: Value = serde_json::from_str(&dry.out()).map_err(|e| format!("{e}: {dry:?}"))?;
    let untouched = fs::read_to_string(world.target()).unwrap() == AGENTS_MD;
    let applied = world.run(&words(&["--quiet", "--apply", shown["reply"].as_str().unwrap_or_default()]));
    if !untouched || applied.code() != Some(0) {
        return Err(format!("{dry:?}\n{applied:?}"));
    }
    let notes = world.notes();
    let is_changed = |node: &Node| node.text().contains("topic__new");
    if notes.values().any(is_changed) { Ok(()) } else { Err(format!("not carried out: {notes:?}")) }
}

/// As somebody does in an editor.
fn edit(world: &World, six: &str) {
    let path = world.note("topics", six).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(path, format!("{text}\nMy own words.\n")).unwrap();
}

#[test]
fn what_was_edited_after_a_crash_is_kept_and_so_is_what_was_made_before_it() {
    let world = whole();
    world.keep_as_template();
    world.run(&world.arguments);
    let made: Vec<String> = world.notes().into_keys().collect();
    // All is made, and nobody has taken note of it.
    world.killed_at("applied-0.json");
    for six in ["spLitA", "mergeA", "renamA", "fiLLeA"] {
        edit(&world, six);
    }
    let edited = world.notes();
    let next = world.run(&world.arguments);
    assert_eq!(next.code(), Some(0), "{next:?}");
    let notes = world.notes();
    assert_eq!(notes.keys().collect::<Vec<_>>(), made.iter().collect::<Vec<_>>(), "{}", next.err());
    let is_mine = |node: &Node| node.text().ends_with("My own words.\n");
    for path in edited.iter().filter(|(_, node)| is_mine(node)).map(|(path, _)| path) {
        assert!(is_mine(&notes[path]), "{path}: {}", notes[path].text());
    }
    // What was changed since is not overwritten by what was before.
    let undone = world.run(&words(&["--undo"]));
    assert_eq!(undone.code(), Some(1), "{undone:?}");
    assert!(undone.err().contains("has been changed since"), "{}", undone.err());
    assert_eq!(world.notes(), notes);
}

#[test]
fn what_was_edited_in_the_middle_of_a_merge_ends_the_merge_as_if_it_had_not_begun() {
    let world = whole();
    world.keep_as_template();
    let old = world.notes();
    // The first note holds all; of the two others one is in the archive.
    world.killed_at("id__mergeC.md");
    assert!(world.note("archive", "mergeB").is_some());
    edit(&world, "mergeC");
    // Who asks by hand first has the rest brought to an end.
    let next = world.run(&words(&["--prompt"]));
    assert_eq!(next.code(), Some(0), "{next:?}");
    assert!(next.err().contains("dropped: merge id__mergeA id__mergeB id__mergeC"), "{next:?}");
    for six in ["mergeA", "mergeB", "mergeC"] {
        let now = fs::read_to_string(world.note("topics", six).unwrap()).unwrap();
        let before = old.iter().find(|(path, _)| path.contains(six)).unwrap().1.text();
        // How much of the first is shown is another operation.
        assert!(now.contains(before.rsplit("---").next().unwrap()), "{now}");
    }
    assert!(world.note("archive", "mergeB").is_none());
}
