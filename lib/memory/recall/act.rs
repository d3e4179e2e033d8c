//! What the call of a tool is about: files, and the commands that it runs.

use crate::base::packed::checksum;
use crate::harness::spec::ToolKind;
use crate::harness::turn::ToolCall;
use crate::memory::outside::{COMMANDS, DIRECTORIES, PATHS, Run, normal, runs};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// So many words of a command are looked at, and so many files of a call.
const WORDS: usize = 30;
const FILES: usize = 50;
/// Programs that only show a file.
const READERS: &[&str] =
    &["bat", "cat", "file", "grep", "head", "less", "ls", "more", "nl", "rg", "stat", "tail", "wc"];
/// What stands before a file's name in a patch.
const PATCHED: [&str; 3] = ["*** Add File: ", "*** Delete File: ", "*** Update File: "];

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Act {
    pub(super) files: Vec<ActFile>,
    /// The words of each, the program's name without its directory first.
    pub(super) commands: Vec<Vec<String>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct ActFile {
    /// From the top of the repository; the whole path of one beyond it.
    pub(super) path: String,
    /// It is only shown.
    pub(super) is_read: bool,
}

/// Where a session works.
pub(super) struct Workplace {
    /// As the program has it, and without symbolic links.
    cwd: PathBuf,
    real: PathBuf,
    top: Option<PathBuf>,
}

impl Workplace {
    pub(super) fn of(cwd: &Path, top: Option<&Path>) -> Workplace {
        let real = cwd.canonicalize().unwrap_or_else(|_| cwd.to_path_buf());
        Workplace { cwd: cwd.to_path_buf(), real, top: top.map(Path::to_path_buf) }
    }

    fn path(&self, dir: &Path, word: &str) -> Option<String> {
        let path = normal(dir, Path::new(word));
        let path = path.strip_prefix(&self.cwd).map_or(path.clone(), |below| self.real.join(below));
        let below = self.top.as_ref().and_then(|top| path.strip_prefix(top).ok());
        below.unwrap_or(&path).to_str().filter(|path| !path.is_empty()).map(str::to_owned)
    }
}

impl Act {
    pub(super) fn of(kind: ToolKind, call: &ToolCall, place: &Workplace) -> Act {
        let mut act = Act::default();
        let find = |names: &[&str]| call.arguments.iter().find(|(name, _)| names.contains(&name.as_str()));
        match kind {
            ToolKind::Shell => {
                let dir = find(DIRECTORIES).map(|(_, dir)| normal(&place.real, Path::new(dir)));
                let dir = dir.unwrap_or_else(|| place.real.clone());
                let line = find(COMMANDS).map_or("", |(_, line)| line.as_str());
                runs(line, &dir).into_iter().for_each(|run| act.add_run(run, place));
                act.add_patch(line, place);
            }
            ToolKind::Read | ToolKind::Edit | ToolKind::Write => {
                let named = call.arguments.iter().filter(|(name, _)| PATHS.contains(&name.as_str()));
                for (_, word) in named {
                    act.add_file(&place.real, word, kind == ToolKind::Read, place);
                }
                call.arguments.iter().for_each(|(_, text)| act.add_patch(text, place));
            }
            _ => {}
        }
        act
    }

    fn add_run(&mut self, Run { mut words, dir }: Run, place: &Workplace) {
        words.truncate(WORDS);
        let Some(name) = words.first().map(|name| name.rsplit('/').next().unwrap_or(name).to_owned()) else {
            return;
        };
        let edits = name == "sed" && words.iter().any(|word| word.starts_with("-i"));
        let is_read = READERS.contains(&name.as_str()) || name == "sed" && !edits;
        let is_path = |word: &&String| word.contains(['/', '.']) && !word.contains("://");
        for word in words.iter().filter(is_path) {
            self.add_file(&dir, word, is_read, place);
        }
        words[0] = name;
        self.commands.push(words);
    }

    fn add_file(&mut self, dir: &Path, word: &str, is_read: bool, place: &Workplace) {
        if let Some(path) = place.path(dir, word).filter(|_| self.files.len() < FILES) {
            self.files.push(ActFile { path, is_read });
        }
    }

    /// The files that a patch changes.
    fn add_patch(&mut self, text: &str, place: &Workplace) {
        if text.contains("*** Begin Patch") {
            let names =
                text.lines().filter_map(|line| PATCHED.iter().find_map(|mark| line.strip_prefix(mark)));
            names.for_each(|name| self.add_file(&place.real, name.trim(), false, place));
        }
    }

    /// What a note that is about it may have among its [`keys`](crate::memory::recall::subject::Subject::keys).
    pub(super) fn keys(&self) -> BTreeSet<u64> {
        let files = self.files.iter().flat_map(|file| {
            let ends = file.path.match_indices('/').map(|(at, _)| &file.path[at + 1..]);
            ends.chain([file.path.as_str()]).map(file_key)
        });
        let commands = self.commands.iter().flat_map(|words| {
            let arguments = words.iter().skip(1).map(String::as_str);
            arguments.chain([""]).map(|argument| command_key(&words[0], argument))
        });
        files.chain(commands).collect()
    }
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
        let place = Workplace { cwd: "/link".into(), real: "/w/src".into(), top: Some("/w".into()) };
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
            (Edit, &[("file_path", "/link/a.rs")], "!src/a.rs"),
            (Read, &[("file_path", "/etc/hosts")], "/etc/hosts"),
            (Own, &[("path", "a.rs")], ""),
            (Shell, &[("command", "cat ../a.txt | wc -l")], "a.txt; cat ../a.txt; wc -l"),
            (Shell, &[("cmd", "tools/rt x"), ("workdir", "/w")], "!tools/rt; rt x"),
            (Shell, &[("command", "sed -i s/a/b/ a.rs")], "!src/s/a/b; !src/a.rs; sed -i s/a/b/ a.rs"),
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
