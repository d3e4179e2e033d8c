//! `memory-sync`: wherever it is cut off, the next run ends it, both machines and the remote come to the same, and
//! nothing is lost or counted twice.

use crate::invariants::Trial;
use crate::reference::difference;
use crate::scenario::Scenario;
use crate::strace::{changing, points_in, strace};
use crate::support::store::{Store, age, name, note, value};
use crate::support::world::{ELSEWHERE, Node, Tree, World, words};
use crate::support::{Said, eventually, is_running, set_mode, tools};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// When it was last done is a hint, which may be lost.
const SYNC: Scenario =
    Scenario { recovers: true, and: agree, differs: &["/.agent-memory/last-sync"], ..Scenario::PLAIN };

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario { name: "memory-sync: a merge", make: || diverged(true), sample: 8, ..SYNC },
        Scenario { name: "memory-sync: a clash", make: || diverged(false), sample: 20, ..SYNC },
        Scenario { name: "memory-sync: joining", make: joining, sample: 15, ..SYNC },
        Scenario {
            name: "memory-update: the first commit",
            make: first_commit,
            sample: 4,
            // The next program that commits is not memory-sync.
            and: |trial| {
                did(&here(trial.world, "memory-update", &["AAAAAA", "--tag", "+later"]));
                driver(&trial.world.root())
            },
            ..Scenario::PLAIN
        },
    ]
}

/// The other machine's home directory.
fn other(world: &World) -> PathBuf {
    world.sandbox.work().join(ELSEWHERE).join("home")
}

pub(crate) fn other_root(world: &World) -> PathBuf {
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
pub(crate) fn diverged(is_smooth: bool) -> World {
    let world = machines(&[
        ("AAAAAA", "Counted"),
        ("BBBBBB", "Renamed"),
        ("CCCCCC", "Edited"),
        ("DDDDDD", "Archived here"),
        ("EEEEEE", "Archived there"),
    ]);
    let remote = remote(&world);
    edit(&world.root(), "CCCCCC", LINES, 1);
    did(&here(&world, "memory-sync", &["--remote", remote.to_str().unwrap(), "--trust", "own"]));
    did(&there(&world, "memory-sync", &["--remote", remote.to_str().unwrap(), "--trust", "own"]));
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
pub(crate) fn joining() -> World {
    let mut world = machines(&[("AAAAAA", "Mine")]);
    let remote = remote(&world);
    did(&there(&world, "memory-capture", &["--direct", "--title", "Theirs", "--body", "It came."]));
    did(&there(&world, "memory-sync", &["--remote", remote.to_str().unwrap(), "--trust", "own"]));
    world.arguments = words(&["--remote", remote.to_str().unwrap(), "--trust", "own"]);
    world
}

pub(crate) fn first_commit() -> World {
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

/// Every file below a directory.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for file in fs::read_dir(dir).into_iter().flatten().map(|file| file.unwrap().path()) {
        if file.is_dir() { found.extend(files(&file)) } else { found.push(file) }
    }
    found
}

/// What would stop a git, or what somebody else would carry on.
fn left_overs(root: &Path) -> Vec<PathBuf> {
    let mut found = files(root);
    found.retain(|path| match path.file_name().unwrap().to_str().unwrap() {
        "change.json" | "merged.json" | "sync-index" => true,
        name => name.ends_with(".lock") && path.parent().unwrap().file_name().unwrap() != ".agent-memory",
    });
    found
}

/// A store's notes and proposals.
pub(crate) fn shared(root: &Path) -> Tree {
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
    all_agree(trial.world)
}

pub(crate) fn all_agree(world: &World) -> Result<(), String> {
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
    let is_joining = !world.arguments.is_empty();
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

/// One in so many faults of git is tried.
const GIT_SAMPLE: usize = 16;

/// Where each git that memory-sync starts leaves its trace.
fn traces(world: &World) -> PathBuf {
    world.sandbox.work().join(ELSEWHERE).join("traces")
}

/// Runs memory-sync with a git of which the `number`th is under strace, with these options; all for 0.
fn with_git_traced(world: &World, number: usize, options: &str) -> Result<Output, String> {
    let dir = traces(world);
    fs::create_dir_all(&dir).unwrap();
    let real = tools().split(':').map(|dir| Path::new(dir).join("git")).find(|path| path.exists()).unwrap();
    let (at, git, strace) = (dir.display(), real.display(), strace());
    let script = format!(
        "#!/bin/sh\necho x >> {at}/count\nn=$(wc -l < {at}/count)\n\
         [ {number} -eq 0 ] || [ $n -eq {number} ] || exec {git} \"$@\"\n\
         exec {} -f -y -o {at}/$n {options} {git} \"$@\"\n",
        strace.display()
    );
    fs::write(dir.join("git"), script).unwrap();
    set_mode(&dir.join("git"), 0o755);
    let mut command = world.command("memory-sync", &world.arguments);
    command.env("PATH", format!("{at}:{}", tools()));
    let output = world.ended(command);
    let here = world.sandbox.home().parent().unwrap().to_path_buf();
    eventually("the end of every git", || !is_running(here.to_str().unwrap()));
    output
}

/// A git that was killed, or could not write.
fn goes_on_without_git(world: &World, number: usize, fault: &str) -> Result<bool, String> {
    world.begin();
    let call = fault.split(':').next().unwrap();
    let output = with_git_traced(world, number, &format!("--trace={call} --inject={fault}"))?;
    let trace = fs::read_to_string(traces(world).join(number.to_string())).unwrap_or_default();
    let said = format!("{output:?}\n{trace}");
    if !matches!(output.code(), Some(0..=3)) || output.code() != Some(0) && !output.err().contains(": ") {
        return Err(format!("it ends badly: {said}"));
    }
    // A lock of a git that is gone: the doctor takes it for one when it is ten minutes old.
    let is_lock = |path: &PathBuf| path.extension().is_some_and(|end| end == "lock");
    let mut locks: Vec<PathBuf> = files(&world.root().join(".git")).into_iter().filter(is_lock).collect();
    if !locks.is_empty() {
        locks.iter().for_each(|lock| age(lock, 3600));
        here(world, "memory-doctor", &["--fix"]);
        locks.retain(|lock| lock.exists());
        if !locks.is_empty() {
            return Err(format!("the doctor leaves {locks:?}: {said}"));
        }
    }
    // In the remote nobody but its owner can do that; who syncs is told its name.
    let locks: Vec<PathBuf> = files(&remote(world)).into_iter().filter(is_lock).collect();
    if !locks.is_empty() {
        let next = here(world, "memory-sync", &[]);
        let is_named =
            locks.iter().any(|lock| next.err().contains(lock.file_name().unwrap().to_str().unwrap()));
        if next.code() != Some(0) && !is_named {
            return Err(format!("{locks:?} are in the way, and it says: {next:?}\n{said}"));
        }
        locks.iter().for_each(|lock| fs::remove_file(lock).unwrap());
    }
    let next = here(world, "memory-sync", &[]);
    if next.code() != Some(0) {
        return Err(format!("the next run: {next:?}\nafter: {said}"));
    }
    all_agree(world).map_err(|why| format!("{why}\nafter: {said}"))?;
    Ok(trace.contains("(INJECTED)") || trace.contains("+++ killed by SIGKILL"))
}

#[test]
fn whichever_git_dies_or_cannot_write_the_next_sync_comes_to_the_same() {
    crate::strace::assert_able();
    let name = "memory-sync: git";
    if !name.contains(&std::env::var("FAULTS").unwrap_or_default()) {
        return;
    }
    let sample = std::env::var("FAULTS_SAMPLE").ok().map_or(GIT_SAMPLE, |text| text.parse().unwrap());
    let world = diverged(true);
    world.keep_as_template();
    world.begin();
    did(&with_git_traced(&world, 0, &changing()).unwrap());
    let mut points = Vec::new();
    for number in 1.. {
        let Ok(trace) = fs::read_to_string(traces(&world).join(number.to_string())) else { break };
        // git takes a directory that it cannot read for an empty one, also where it moves objects that were pushed.
        let is_heeded = |(call, _): &(String, usize)| !call.starts_with("getdents");
        let heeded = points_in(&trace, true, "", false).into_iter().filter(is_heeded);
        points.extend(heeded.map(|point| (number, point)));
    }
    let kinds = ["signal=KILL", "error=ENOSPC", "error=EIO"];
    let (mut planned, mut took_place, mut wrong) = (0, 0, Vec::new());
    for (kind, what) in kinds.iter().enumerate() {
        for (number, (call, k)) in points.iter().skip(kind * sample / 3).step_by(sample) {
            planned += 1;
            let fault = format!("{call}:{what}:when={k}");
            match goes_on_without_git(&world, *number, &fault) {
                Ok(did) => took_place += usize::from(did),
                Err(why) => wrong.push(format!("git {number} {fault}: {why}")),
            }
        }
    }
    crate::say(&format!(
        "{name}: {took_place} injected of {planned}, at {} calls of {} gits, sampled 1 in {sample}, {} NOT SURVIVED",
        points.len(),
        points.last().map_or(0, |(number, _)| *number),
        wrong.len()
    ));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(took_place * 10 >= planned * 9, "only {took_place} of {planned} took place");
}
