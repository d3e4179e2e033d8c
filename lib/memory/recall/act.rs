//! What the call of a tool is about: files, and the commands that it runs.

use crate::base::packed::checksum;
use crate::harness::spec::ToolKind;
use crate::harness::turn::ToolCall;
use crate::memory::outside::{COMMANDS, DIRECTORIES, PATHS, commands, normal};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// So many words of a command are looked at, and so many of them may be a program: `sudo timeout 60 make test`.
const WORDS: usize = 20;
const PROGRAMS: usize = 4;
/// So many files of a call.
const FILES: usize = 50;
/// What stands before a file's name in a patch.
const PATCHED: [&str; 3] = ["*** Add File: ", "*** Delete File: ", "*** Update File: "];

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Act {
    pub(super) files: Vec<ActFile>,
    /// The words of each.
    pub(super) commands: Vec<Vec<String>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct ActFile {
    /// From the top of the repository.
    pub(super) path: String,
    /// It may only be shown.
    pub(super) is_read: bool,
}

/// Where a session works: its directory, and the top of the repository as the session and as git call it. What is beyond it
/// counts for nothing.
pub(super) struct Workplace {
    pub(super) cwd: PathBuf,
    pub(super) tops: Vec<PathBuf>,
}

impl Workplace {
    fn below<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        self.tops.iter().find_map(|top| path.strip_prefix(top).ok())
    }
}

impl Act {
    pub(super) fn of(kind: ToolKind, call: &ToolCall, place: &Workplace) -> Act {
        let mut act = Act::default();
        let find = |names: &[&str]| call.arguments.iter().find(|(name, _)| names.contains(&name.as_str()));
        match kind {
            ToolKind::Shell => {
                let mut dir = place.cwd.clone();
                if let Some((_, named)) = find(DIRECTORIES) {
                    dir = normal(&dir, Path::new(named));
                }
                let line = find(COMMANDS).map_or("", |(_, line)| line.as_str());
                for (words, files) in commands(line) {
                    act.add_command(words, &mut dir, place);
                    files.iter().for_each(|(file, is_read)| act.add_file(&dir, file, *is_read, place));
                }
            }
            ToolKind::Read | ToolKind::Edit | ToolKind::Write => {
                let named = call.arguments.iter().filter(|(name, _)| PATHS.contains(&name.as_str()));
                named.for_each(|(_, word)| act.add_file(&place.cwd, word, kind == ToolKind::Read, place));
            }
            _ => return act,
        }
        // Of a patch, the files that it changes.
        for line in call.arguments.iter().flat_map(|(_, text)| text.lines()) {
            if let Some(name) = PATCHED.iter().find_map(|mark| line.strip_prefix(mark)) {
                act.add_file(&place.cwd, name.trim(), false, place);
            }
        }
        act
    }

    fn add_command(&mut self, mut words: Vec<String>, dir: &mut PathBuf, place: &Workplace) {
        if let [cd, to] = &words[..]
            && cd == "cd"
        {
            *dir = normal(dir, Path::new(to));
        }
        if place.below(dir).is_none() {
            return;
        }
        words.truncate(WORDS);
        for (at, word) in words.iter().enumerate().filter(|(_, word)| word.contains(['/', '.'])) {
            // Whatever runs may change what it is given, and most only show it.
            self.add_file(dir, word, at > 0, place);
        }
        self.commands.push(words);
    }

    fn add_file(&mut self, dir: &Path, word: &str, is_read: bool, place: &Workplace) {
        let path = normal(dir, Path::new(word));
        let below = place.below(&path).and_then(Path::to_str).filter(|path| !path.is_empty());
        if let Some(path) = below.filter(|_| self.files.len() < FILES && !word.starts_with('~')) {
            self.files.push(ActFile { path: path.to_owned(), is_read });
        }
    }

    /// The commands that it may run: each as the name of the program, and the words behind it.
    pub(super) fn programs(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.commands.iter().flat_map(|words| {
            let program =
                move |at: usize| (words[at].rsplit('/').next().unwrap_or_default(), &words[at + 1..]);
            (0..words.len().min(PROGRAMS)).map(program)
        })
    }

    /// What a note that is about it may have among its [`keys`](crate::memory::recall::subject::Subject::keys).
    pub(super) fn keys(&self) -> BTreeSet<u64> {
        let files = self.files.iter().flat_map(|file| ends(&file.path)).map(file_key);
        let programs = self.programs().flat_map(|(program, words)| {
            let arguments = words.iter().map(String::as_str).chain([""]);
            arguments.map(move |argument| command_key(program, argument))
        });
        files.chain(programs).collect()
    }
}

/// `a/b.rs` and `b.rs` of `a/b.rs`.
pub(super) fn ends(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[at + 1..]).chain([path])
}

pub(super) fn file_key(path: &str) -> u64 {
    checksum(path.as_bytes())
}

pub(super) fn command_key(program: &str, argument: &str) -> u64 {
    checksum(format!("{program}\0{argument}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(kind: ToolKind, arguments: &[(&str, &str)]) -> String {
        let arguments =
            arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let tops = vec!["/link".into(), "/w".into()];
        let place = Workplace { cwd: "/link/src".into(), tops };
        let act = Act::of(kind, &ToolCall { name: String::new(), arguments }, &place);
        let file = |file: &ActFile| format!("{}{}", if file.is_read { "" } else { "!" }, file.path);
        let files: Vec<_> = act.files.iter().map(file).collect();
        let commands: Vec<_> = act.commands.iter().map(|words| words.join(" ")).collect();
        [files, commands].concat().join("; ")
    }

    #[test]
    fn a_call_is_about_files_and_commands() {
        use ToolKind::{Edit, Own, Read, Shell, Write};
        for (kind, arguments, expected) in [
            (Read, &[("file_path", "/w/src/a.rs")][..], "src/a.rs"),
            (Edit, &[("path", "a.rs"), ("old_str", "x/y.rs")], "!src/a.rs"),
            (Edit, &[("file_path", "/link/src/a.rs")], "!src/a.rs"),
            (Read, &[("file_path", "/etc/hosts")], ""),
            (Edit, &[("file_path", "/other/src/a.rs")], ""),
            (Shell, &[("command", "cat ~/src/a.rs")], "cat ~/src/a.rs"),
            (Shell, &[("command", "make a && cd /other && make b")], "make a"),
            (Shell, &[("command", "make a"), ("workdir", "/other")], ""),
            (Shell, &[("command", "sort <a.txt >b.txt 2>/dev/null")], "src/a.txt; !src/b.txt; sort"),
            (Own, &[("path", "a.rs")], ""),
            (Shell, &[("command", "cat ../a.txt | wc -l")], "a.txt; cat ../a.txt; wc -l"),
            (Shell, &[("command", "cd ../web; cat a.txt")], "web; web/a.txt; cd ../web; cat a.txt"),
            (Shell, &[("cmd", "tools/rt x"), ("workdir", "/w")], "!tools/rt; tools/rt x"),
            (
                Write,
                &[("", "*** Begin Patch\n*** Update File: a.rs\n@@\n*** Add File: /w/b\n*** End Patch")],
                "!src/a.rs; !b",
            ),
        ] {
            assert_eq!(act(kind, arguments), expected, "{arguments:?}");
        }
    }
}
