//! `memory-sync`: wherever it is cut off, the next run ends it, both machines and the remote come to the same, and
//! nothing is lost or counted twice.

use crate::invariants::Trial;
use crate::reference::difference;
use crate::scenario::Scenario;
use crate::support::Said;
use crate::support::store::{Store, name, note, value};
use crate::support::world::{ELSEWHERE, Node, Tree, World, words};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SYNC: Scenario = Scenario { recovers: true, and: agree, ..Scenario::PLAIN };

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario { name: "memory-sync: a merge", make: || diverged(true), sample: 8, ..SYNC },
        Scenario { name: "memory-sync: a clash", make: || diverged(false), sample: 20, ..SYNC },
        Scenario { name: "memory-sync: joining", make: joining, sample: 15, ..SYNC },
        Scenario {
            name: "memory-update: the first commit",
            make: first_commit,
            sample: 4,
            and: |trial| driver(&trial.world.root()),
            ..Scenario::PLAIN
        },
    ]
}

/// The other machine's home directory.
fn other(world: &World) -> PathBuf {
    world.sandbox.work().join(ELSEWHERE).join("home")
}

fn other_root(world: &World) -> PathBuf {
    other(world).join(".local/share/agent-memory")
}

fn remote(world: &World) -> PathBuf {
    world.sandbox.work().join(ELSEWHERE).join("memory.git")
}

/// Runs a program on the other machine.
fn there(world: &World, program: &str, arguments: &[&str]) -> Output {
    let mut command = world.command(program, &words(arguments));
    command.env("HOME", other(world));
    world.ended(command).unwrap()
}

fn here(world: &World, program: &str, arguments: &[&str]) -> Output {
    world.ended(world.command(program, &words(arguments))).unwrap()
}

fn did(output: &Output) {
    assert_eq!(output.code(), Some(0), "{output:?}");
}

fn git(dir: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git").args(arguments).current_dir(dir).output().unwrap();
    match output.status.success() {
        true => Ok(output.out().trim().to_owned()),
        false => Err(format!("git {arguments:?} in {}: {}", dir.display(), output.err())),
    }
}

/// This machine has these notes, and there is a remote and another machine without any.
fn machines(notes: &[(&str, &str)]) -> World {
    let store = Store::with_history();
    for (id, title) in notes {
        store.put(&format!("topics/{}", name(id, title)), note(id, title, "updatedAt: 1\n"));
    }
    let root = store.root();
    let mut world = World::of(store.sandbox, "memory-sync", &[]);
    world.root = Some(root);
    let identity = world.sandbox.home().join(".gitconfig");
    fs::create_dir_all(other(&world)).unwrap();
    fs::copy(identity, other(&world).join(".gitconfig")).unwrap();
    let remote = remote(&world);
    git(&world.sandbox.work(), &["init", "--quiet", "--bare", "-b", "main", remote.to_str().unwrap()])
        .unwrap();
    // Its hooks are many files that every trial would copy.
    fs::remove_dir_all(remote.join("hooks")).unwrap();
    world
}

/// Replaces a note's body as an editor does.
fn edit(root: &Path, id: &str, body: &str, time: u32) {
    let find = |file: fs::DirEntry| file.file_name().to_string_lossy().contains(id).then(|| file.path());
    let path = fs::read_dir(root.join("topics")).unwrap().map(Result::unwrap).find_map(find).unwrap();
    let text = fs::read_to_string(&path).unwrap().replace("updatedAt: 1\n", &format!("updatedAt: {time}\n"));
    let (front, _) = text.split_once("---\n\n").unwrap();
    fs::write(&path, format!("{front}---\n\n{body}")).unwrap();
}

const LINES: &str = "first\nsecond\nthird\nfourth\n";

/// Both have met, and have then each read, renamed, edited, tagged, archived and written notes. The other one was
/// quicker to sync.
fn diverged(is_smooth: bool) -> World {
    let world = machines(&[
        ("AAAAAA", "Counted"),
        ("BBBBBB", "Renamed"),
        ("CCCCCC", "Edited"),
        ("DDDDDD", "Archived here"),
        ("EEEEEE", "Archived there"),
    ]);
    let remote = remote(&world);
    edit(&world.root(), "CCCCCC", LINES, 1);
    did(&here(&world, "memory-sync", &["--remote", remote.to_str().unwrap()]));
    did(&there(&world, "memory-sync", &["--remote", remote.to_str().unwrap()]));
    for _ in 0..2 {
        did(&here(&world, "memory-read", &["AAAAAA"]));
    }
    for _ in 0..3 {
        did(&there(&world, "memory-read", &["AAAAAA"]));
    }
    did(&here(&world, "memory-update", &["BBBBBB", "--title", "Another name"]));
    did(&there(&world, "memory-update", &["BBBBBB", "--tag", "+there", "--pin"]));
    did(&here(&world, "memory-update", &["AAAAAA", "--tag", "+here"]));
    did(&there(&world, "memory-update", &["AAAAAA", "--tag", "+there"]));
    did(&here(&world, "memory-remove", &["DDDDDD"]));
    did(&there(&world, "memory-remove", &["EEEEEE"]));
    did(&there(&world, "memory-capture", &["--direct", "--title", "New there", "--body", "It came."]));
    let (mine, theirs) = match is_smooth {
        true => (LINES.replace("first", "FIRST"), LINES.replace("fourth", "FOURTH")),
        false => (LINES.replace("first", "FIRST"), LINES.replace("first", "ONE")),
    };
    edit(&world.root(), "CCCCCC", &mine, 5);
    edit(&other_root(&world), "CCCCCC", &theirs, 7);
    did(&there(&world, "memory-sync", &[]));
    world
}

/// The remote has notes, this machine has others and no history, and they have never met.
fn joining() -> World {
    let mut world = machines(&[("AAAAAA", "Mine")]);
    let remote = remote(&world);
    did(&there(&world, "memory-capture", &["--direct", "--title", "Theirs", "--body", "It came."]));
    did(&there(&world, "memory-sync", &["--remote", remote.to_str().unwrap()]));
    world.arguments = words(&["--remote", remote.to_str().unwrap()]);
    world
}

fn first_commit() -> World {
    let mut world = machines(&[("AAAAAA", "Mine")]);
    world.program = "memory-update";
    world.arguments = words(&["AAAAAA", "--title", "New"]);
    world
}

/// git knows how to merge notes there.
fn driver(root: &Path) -> Result<(), String> {
    let command = git(root, &["config", "--local", "merge.agent-memory.driver"])?;
    let attributes = fs::read_to_string(root.join(".git/info/attributes")).unwrap_or_default();
    match command.contains("memory-sync --merge-driver") && attributes.contains("merge=agent-memory") {
        true => Ok(()),
        false => Err(format!("no merge driver: {command:?} {attributes:?}")),
    }
}

/// Nothing is left that would stop a git, or that somebody else would carry on.
fn left_overs(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for file in fs::read_dir(dir).into_iter().flatten().map(Result::unwrap) {
        let name = file.file_name().to_string_lossy().into_owned();
        if file.path().is_dir() && !file.path().is_symlink() {
            found.extend(left_overs(&file.path()));
        } else if name.ends_with(".lock")
            || name == "merge.json"
            || name == "merged.json"
            || name == "sync-index"
        {
            found.push(name);
        }
    }
    found.retain(|name| {
        !["store.lock", "sync.lock", "history.lock", "targets.lock", "run.lock"].contains(&&**name)
    });
    found
}

/// A store's notes and proposals.
fn shared(root: &Path) -> Tree {
    let mut tree = Tree::new();
    for dir in ["topics", "archive", "proposals"] {
        for file in fs::read_dir(root.join(dir)).into_iter().flatten().map(Result::unwrap) {
            let bytes = fs::read(file.path()).unwrap();
            let path = format!("{dir}/{}", file.file_name().to_string_lossy());
            tree.insert(path, Node { mode: 0, bytes: Some(bytes) });
        }
    }
    tree
}

/// Whatever happened, and then one run on each machine: both and the remote have the same, and all of it.
fn agree(trial: &Trial) -> Result<(), String> {
    let world = trial.world;
    for output in [there(world, "memory-sync", &["--strict"]), here(world, "memory-sync", &["--strict"])] {
        if output.code() != Some(0) {
            return Err(format!("a run in the end: {output:?}"));
        }
    }
    let (one, two) = (shared(&world.root()), shared(&other_root(world)));
    match difference(&one, &two) {
        same if same.is_empty() => {}
        different => return Err(format!("the machines differ:\n{different}")),
    }
    let tree = |dir: &Path, commit: &str| git(dir, &["rev-parse", &format!("{commit}^{{tree}}")]);
    let trees =
        [tree(&world.root(), "HEAD")?, tree(&other_root(world), "HEAD")?, tree(&remote(world), "main")?];
    if trees.iter().any(|tree| *tree != trees[0]) {
        return Err(format!("the commits differ: {trees:?}"));
    }
    for (root, arguments) in
        [(world.root(), &["fsck", "--no-dangling"][..]), (remote(world), &["fsck", "--no-dangling"])]
    {
        git(&root, arguments)?;
        match left_overs(&root) {
            none if none.is_empty() => {}
            some => return Err(format!("left: {some:?}")),
        }
    }
    driver(&world.root())?;
    let all: String = one.iter().map(|(path, node)| format!("== {path}\n{}", node.text())).collect();
    let is_joining = !trial.world.arguments.is_empty();
    let told: &[&str] = match is_joining {
        true => &["Body of Mine.", "It came."],
        false => &[
            "Body of Counted.", "Body of Renamed.", "It came.", "title: Another name\n", "FIRST", "third\n",
            "archive/archived-here -- ", "archive/archived-there -- ", "pinned: true", "topic__here",
            "topic__there",
        ],
    };
    if let Some(lost) = told.iter().find(|text| !all.contains(**text)) {
        return Err(format!("{lost:?} is lost:\n{all}"));
    }
    if all.contains("<<<<<<<") || all.contains(">>>>>>>") {
        return Err(format!("a conflict marker:\n{all}"));
    }
    let counted = one.iter().find(|(path, _)| path.contains("AAAAAA")).map(|(_, node)| node.text());
    let used = counted.as_deref().and_then(|text| value(text, "used").map(str::to_owned));
    if !is_joining && used.as_deref() != Some("5") {
        return Err(format!("read 5 times, counted {used:?}"));
    }
    let edited = one.iter().find(|(path, _)| path.contains("CCCCCC")).map(|(_, node)| node.text());
    let is_smooth = edited.is_some_and(|text| text.contains("FOURTH"));
    let waiting = one.keys().filter(|path| path.starts_with("proposals/")).count();
    match (is_joining || is_smooth, waiting) {
        (true, 0) | (false, 1) => Ok(()),
        (_, waiting) => Err(format!("{waiting} proposals:\n{all}")),
    }
}
