//! What undisturbed runs leave and say, and how it is compared with what a disturbed one does.

use crate::scenario::Scenario;
use crate::support::Said;
use crate::support::world::{Node, Tree, World, words};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;

/// What undisturbed runs do.
pub(crate) struct Reference {
    pub(crate) before: Tree,
    /// What the first run says, and what is there after it.
    pub(crate) first: Output,
    pub(crate) done: Tree,
    /// What the same run says after it.
    pub(crate) again: Output,
    /// What is there in the end if the run is made once, and if it is made twice.
    pub(crate) once: Tree,
    pub(crate) twice: Tree,
    /// Does it print paths of what is there then?
    pub(crate) prints_paths: bool,
    /// What a reader says on stderr of all this, that is none of the fault's doing.
    pub(crate) readers: BTreeSet<String>,
    /// Every content that a file may have, and every text that a note may.
    pub(crate) contents: BTreeSet<Vec<u8>>,
}

impl Reference {
    pub(crate) fn of(scenario: &Scenario, world: &World) -> Reference {
        let tree = || tree(scenario, world);
        let mut readers = BTreeSet::new();
        let mut read = || readers.extend(reader(world).map(|output| output.err()));
        world.begin();
        let before = tree();
        read();
        let end = |world: &World| {
            for arguments in scenario.then {
                world.run(&words(arguments));
            }
        };
        world.begin();
        let first = world.run(&world.arguments);
        let done = tree();
        let prints_paths = paths(&first.out()).all(|path| path.exists());
        if let Some((calls, _)) = scenario.calls {
            assert_eq!(world.calls(), calls, "{first:?}");
        }
        end(world);
        let once = world.aim.clone().map_or_else(tree, |aim| comparable(scenario, aim));
        assert_eq!(world.uncommitted(), "", "{first:?}");
        read();
        world.begin();
        world.run(&world.arguments);
        let again = world.run(&world.arguments);
        end(world);
        let twice = if world.aim.is_some() { once.clone() } else { tree() };
        read();
        assert!(first.code().is_some_and(|code| code <= 3), "{first:?}");
        let all = [&before, &done, &once, &twice];
        let contents =
            all.iter().flat_map(|tree| tree.values()).filter_map(|node| node.bytes.clone()).collect();
        Reference { before, first, done, again, once, twice, prints_paths, readers, contents }
    }
}

/// The paths that a program has printed whole, one a line.
pub(crate) fn paths(out: &str) -> impl Iterator<Item = &Path> {
    out.split_inclusive('\n')
        .filter(|line| line.starts_with('/'))
        .filter_map(|line| line.strip_suffix('\n'))
        .map(Path::new)
}

/// What a program says that looks at all notes; `None` where there are none.
pub(crate) fn reader(world: &World) -> Option<Output> {
    world.root.as_ref().filter(|root| root.exists())?;
    Some(world.ended(world.command("memory-list", &[])).unwrap())
}

pub(crate) fn tree(scenario: &Scenario, world: &World) -> Tree {
    comparable(scenario, world.tree())
}

/// Names and texts without what is random in them, and without what is not the same twice.
pub(crate) fn comparable(scenario: &Scenario, tree: Tree) -> Tree {
    let mut all = Tree::new();
    let holds_a_file = |dir: &str| {
        let below = tree.iter().filter(|(_, node)| node.bytes.is_some());
        below.filter_map(|(path, _)| path.strip_prefix(dir)).any(|rest| rest.starts_with('/'))
    };
    for (path, mut node) in tree.clone() {
        let is_bare = || node.bytes.is_none() && !holds_a_file(&path);
        if scenario.differs(&path) || scenario.bare_dirs_may_stay && is_bare() {
            continue;
        }
        if path.ends_with("/tries.json") {
            let text = node.text();
            let lines: Vec<_> = text.lines().filter(|line| !line.contains("\"batch\"")).collect();
            node.bytes = Some(lines.join("\n").into_bytes());
        }
        let mut path = without_chance(&path);
        while all.contains_key(&path) {
            path.push('+');
        }
        all.insert(path, node);
    }
    all
}

/// A queue entry's name ends with eight random characters.
pub(crate) fn without_chance(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((head, tail)) = rest.split_once('_') {
        let end = tail.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(tail.len());
        plain.push_str(head);
        plain.push_str(if end == 8 { "_RANDOM" } else { "_" });
        rest = if end == 8 { &tail[end..] } else { tail };
    }
    plain + rest
}

/// What is said on stderr, without how long it took and the run's id, and whoever says it first.
pub(crate) fn told(err: &str) -> Vec<String> {
    let mut lines: Vec<String> =
        err.lines().map(|line| without_id(line).replace(|c: char| c.is_ascii_digit(), "")).collect();
    lines.sort();
    lines
}

/// Without the end of `20260228T150405Z-a1B2c3`.
fn without_id(line: &str) -> String {
    match line.split_once("T150405Z-") {
        Some((before, id)) => format!("{before}{}", id.get(6..).unwrap_or_default()),
        None => line.to_owned(),
    }
}

/// `.NAME.XXXXXX`: a file that was not done.
pub(crate) fn is_temporary(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let end = name.rsplit('.').next().unwrap_or_default();
    name.starts_with('.')
        && name.matches('.').count() > 1
        && end.len() == 6
        && end.bytes().all(|b| b.is_ascii_alphanumeric())
}

pub(crate) fn is_note(path: &str) -> bool {
    path.ends_with(".md") && (path.contains("/topics/") || path.contains("/archive/")) && !is_temporary(path)
}

/// The id in its front matter.
pub(crate) fn id(text: &str) -> Option<&str> {
    text.strip_prefix("---\n")?.lines().find_map(|line| line.strip_prefix("id: "))
}

impl Scenario {
    pub(crate) fn differs(&self, path: &str) -> bool {
        // Who holds a lock, what was asked when, what a script was asked, which troubles there were.
        let always = [".lock", "calls.jsonl", "work/calls", "/state/asked", "/health.json"];
        path.contains(".agent-memory/") && path.ends_with(always[0])
            || always[1..].iter().any(|end| path.ends_with(end))
            || self.differs.iter().any(|part| path.contains(part))
    }
}

pub(crate) fn text(node: Option<&Node>) -> Option<String> {
    node.map(|node| format!("{:o} {}", node.mode, node.text()))
}

pub(crate) fn difference(wanted: &Tree, got: &Tree) -> String {
    let mut different = String::new();
    for path in wanted.keys().chain(got.keys().filter(|path| !wanted.contains_key(*path))) {
        match (wanted.get(path), got.get(path)) {
            (Some(_), None) => different.push_str(&format!("missing: {path}\n")),
            (None, Some(_)) => different.push_str(&format!("surplus: {path}\n")),
            (a, b) if a != b => {
                different.push_str(&format!("differs: {path}: {:?} / {:?}\n", text(a), text(b)))
            }
            _ => {}
        }
    }
    different
}
