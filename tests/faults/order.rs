//! The order that a power cut demands, read from the calls of a run that nothing disturbs: the bytes of a file are
//! synced before it gets its name, and its name before the program says that it is done.

use crate::scenario::Scenario;
use crate::support::Said;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const CALLS: &str = "?open,?openat,?write,?writev,?pwrite64,?rename,?renameat,?renameat2,?link,?linkat,?fsync,\
                     ?fdatasync,?unlink,?unlinkat,?mkdir,?mkdirat";

/// What may be lost with the power: what is made anew, and the log and the ledger of runs, which no program acknowledges.
const MADE_ANEW: &[&str] = &[
    ".lock", "/axe/memory/", "/axe/runs/", "health.json", "/.agent-memory/notes.cache",
    "/.agent-memory/recall/", "/.agent-memory/replies/",
];

/// What is wrong with the order of the calls of one undisturbed run.
pub(crate) fn wrong(scenario: &Scenario) -> Vec<String> {
    let world = (scenario.make)();
    world.keep_as_template();
    world.begin();
    let traced = world.traced(scenario.threads, &["-y".to_owned(), format!("--trace={CALLS}")]).unwrap();
    assert!(traced.output.status.code().is_some_and(|code| code < 4), "{}", traced.output.err());
    let live = [world.sandbox.home(), world.sandbox.work()];
    let mut disk = Disk { live: &live, ..Disk::default() };
    let lines: Vec<&str> = traced.trace.lines().collect();
    // Some print before their work is done, and say so in their manual.
    let told =
        if scenario.prints_first { None } else { lines.iter().rposition(|line| line.contains("write(1<")) };
    for (n, line) in lines.iter().enumerate() {
        if told == Some(n) {
            disk.is_settled("when it says that it is done");
        }
        disk.call(line);
    }
    disk.is_settled("when it ends");
    disk.wrong.iter().map(|why| format!("{}: {why}", scenario.name)).collect()
}

/// What has been written, and not yet synced.
#[derive(Default)]
struct Disk<'a> {
    live: &'a [PathBuf],
    files: BTreeSet<PathBuf>,
    dirs: BTreeSet<PathBuf>,
    wrong: BTreeSet<String>,
}

impl Disk<'_> {
    fn counts(&self, path: &Path) -> bool {
        let text = path.to_string_lossy();
        self.live.iter().any(|dir| path.starts_with(dir)) && !MADE_ANEW.iter().any(|part| text.contains(part))
    }

    fn call(&mut self, line: &str) {
        let Some((name, rest)) = line.split_once('(') else { return };
        let name = name.rsplit(' ').next().unwrap_or(name);
        if line.contains(" = -1 ") {
            return;
        }
        let paths = paths(rest);
        match (name, &paths[..]) {
            ("write" | "writev" | "pwrite64", _) => {
                let file = opened(rest).filter(|file| self.counts(file));
                self.files.extend(file);
            }
            ("fsync" | "fdatasync", _) => {
                if let Some(path) = opened(rest) {
                    self.files.remove(&path);
                    self.dirs.remove(&path);
                }
            }
            ("rename" | "renameat" | "renameat2" | "link" | "linkat", [from, to]) if self.counts(to) => {
                if self.files.remove(from) {
                    self.wrong.insert(format!("{} gets its name before its bytes are synced", to.display()));
                }
                self.dirs.extend(to.parent().map(Path::to_path_buf));
            }
            ("unlink" | "unlinkat", [path]) => drop(self.files.remove(path)),
            ("mkdir" | "mkdirat", [path]) if self.counts(path) => {
                self.dirs.extend(path.parent().map(Path::to_path_buf));
            }
            _ => {}
        }
    }

    fn is_settled(&mut self, when: &str) {
        let open = std::mem::take(&mut self.files).into_iter().chain(std::mem::take(&mut self.dirs));
        self.wrong.extend(open.map(|path| format!("not synced {when}: {}", path.display())));
    }
}

/// The path behind the descriptor that a call begins with: `3</path>, …`.
fn opened(rest: &str) -> Option<PathBuf> {
    let (_, path) = rest.split_once('<').filter(|(fd, _)| fd.bytes().all(|b| b.is_ascii_digit()))?;
    Some(PathBuf::from(path.split_once('>')?.0)).filter(|path| path.is_absolute())
}

/// The paths of a call, each joined to the directory before it: `4</dir>, "name"`.
fn paths(rest: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut dir = PathBuf::new();
    let mut rest = rest;
    while let Some(at) = rest.find(['<', '"']) {
        let is_dir = rest.as_bytes()[at] == b'<';
        let Some((text, behind)) = rest[at + 1..].split_once(if is_dir { '>' } else { '"' }) else { break };
        match is_dir {
            true => dir = PathBuf::from(text),
            false => found.push(dir.join(text)),
        }
        rest = behind;
    }
    found
}

#[test]
fn what_a_call_names_is_read_from_a_trace() {
    let call = r#"4</w/topics>, ".a.Xy", 4</w/topics>, "a b.md") = 0"#;
    assert_eq!(paths(call), [PathBuf::from("/w/topics/.a.Xy"), PathBuf::from("/w/topics/a b.md")]);
    assert_eq!(paths(r#""/w/a", "/w/b") = 0"#), [PathBuf::from("/w/a"), PathBuf::from("/w/b")]);
    assert_eq!(opened(r#"5</w/a>, "text", 4) = 4"#), Some(PathBuf::from("/w/a")));
    assert_eq!(opened("1<pipe:[1]>, \"\", 0) = 0"), None);
}

#[test]
fn a_name_before_the_bytes_and_a_word_before_the_name_are_seen() {
    let live = [PathBuf::from("/w")];
    let wrong = |calls: &[&str]| {
        let mut disk = Disk { live: &live, ..Disk::default() };
        calls.iter().for_each(|call| disk.call(call));
        disk.is_settled("in the end");
        disk.wrong.into_iter().collect::<Vec<_>>()
    };
    let write = r#"write(5</w/.a>, "x", 1) = 1"#;
    let (sync, name, dir) = ("fsync(5</w/.a>) = 0", r#"rename("/w/.a", "/w/a") = 0"#, "fsync(4</w>) = 0");
    assert!(wrong(&[write, sync, name, dir]).is_empty());
    assert_eq!(wrong(&[write, name, dir]), ["/w/a gets its name before its bytes are synced"]);
    assert_eq!(wrong(&[write, sync, name]), ["not synced in the end: /w"]);
    assert_eq!(wrong(&[write, sync, write]), ["not synced in the end: /w/.a"]);
}

/// Every program that writes, in each of its scenarios.
#[test]
fn a_power_cut_finds_the_bytes_before_the_name_and_the_name_before_the_word() {
    crate::strace::assert_able();
    let only = std::env::var("FAULTS").unwrap_or_default();
    let scenarios = crate::scenarios().into_iter().filter(|scenario| scenario.name.contains(&only));
    let wrong: Vec<String> = scenarios.flat_map(|scenario| wrong(&scenario)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
