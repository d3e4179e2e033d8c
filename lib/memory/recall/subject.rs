//! What a note is about, as far as a call of a tool can be about the same: files, and commands.
//!
//! A note that is too long mentions much that it is not about: of that one its title and summary count, and its paths.

use crate::base::glob;
use crate::memory::outside::commands;
use crate::memory::programs::{MANAGERS, PACKAGE_RUNNERS};
use crate::memory::recall::act::{Act, ActFile, command_key, ends, file_key};
use crate::memory::search::{code_of, is_common, is_common_command};
use crate::store::entry::Entry;
use std::collections::BTreeSet;

/// The longest text that is about all that it names, in bytes.
const SHORT: usize = 1200;
/// So many words of a command say what it is.
const WORDS: usize = 4;
/// The most names that count.
const NAMES: usize = 40;
/// Programs of every session: that one of them is named alone says nothing about a call of it.
const EVERYDAY: &str = " bash cat cd cp echo env find git grep head ls mkdir mv node python python3 rg rm sed sh sleep \
                        tail test true which xargs ";
/// Programs whose commands stand in a title without any marks: `make test hangs here`.
const BUILDERS: &str = " bazel docker go gradle just kubectl make mvn terraform ";

/// How a note names what a call is about. The last one says most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// In its text.
    Body,
    /// In its title or summary.
    Head,
    /// By its paths.
    Paths,
}

#[derive(Debug, Default)]
pub(super) struct Subject {
    pub(super) globs: Vec<String>,
    head: Names,
    body: Names,
}

/// Files and commands that a text names.
#[derive(Debug, Default)]
struct Names {
    files: BTreeSet<String>,
    commands: BTreeSet<Vec<String>>,
}

impl Subject {
    pub(super) fn of(entry: &Entry) -> Subject {
        let meta = entry.meta();
        let heads = [meta.title.as_str(), meta.summary.as_str()];
        let mut head = Names::of(&heads.join("\n"), true);
        head.commands.extend(heads.into_iter().flat_map(plain_commands));
        let body = match entry.body().len() <= SHORT {
            true => Names::of(&String::from_utf8_lossy(entry.body()), false),
            false => Names::default(),
        };
        Subject { globs: meta.paths.clone(), head, body }
    }

    /// A call that it is about has one of them among its own, unless its paths say that it is.
    pub(super) fn keys(&self) -> BTreeSet<u64> {
        let of = |names: &Names| -> Vec<u64> {
            let commands = names.commands.iter().map(|words| {
                let last = if words.len() > 1 { words.last() } else { None };
                command_key(&words[0], last.map_or("", String::as_str))
            });
            names.files.iter().map(|file| file_key(file)).chain(commands).collect()
        };
        of(&self.head).into_iter().chain(of(&self.body)).collect()
    }

    /// `None`: it is not about this call.
    pub(super) fn fit(&self, act: &Act) -> Option<Fit> {
        if self.globs.iter().any(|glob| act.files.iter().any(|file| glob::matches(glob, &file.path))) {
            return Some(Fit::Paths);
        }
        if self.head.has(act, |_| true) {
            return Some(Fit::Head);
        }
        // Whoever only reads a file is told what is about it, and not each mention.
        self.body.has(act, |file| !file.is_read).then_some(Fit::Body)
    }
}

impl Names {
    fn of(text: &str, is_head: bool) -> Names {
        let mut names = Names::default();
        let is_part = |c: char| c.is_alphanumeric() || "_./-~+@:".contains(c);
        let tokens = text.split(|c: char| !is_part(c));
        names.files.extend(tokens.filter_map(file).take(NAMES));
        let code = code_of(text).into_iter().take(NAMES);
        let commands = code.flat_map(|code| commands(code.trim_start_matches(['$', ' '])));
        let commands = commands.filter_map(|(words, _)| command(words));
        names.commands.extend(commands.filter(|words| is_head || says_enough(words)));
        names
    }

    fn has(&self, act: &Act, counts: impl Fn(&ActFile) -> bool) -> bool {
        let is_named = |file: &ActFile| ends(&file.path).any(|end| self.files.contains(end));
        let is_run = |words: &Vec<String>| {
            act.programs().any(|(program, rest)| {
                program == words[0] && words[1..].iter().all(|word| rest.contains(word))
            })
        };
        act.files.iter().filter(|file| counts(file)).any(is_named) || self.commands.iter().any(is_run)
    }
}

/// A token as the name of a file, without the place in it: `src/db/pool.rs:12`. Words of prose match no file.
fn file(token: &str) -> Option<String> {
    let token = token.trim_end_matches(['.', ':', '-', '/']).trim_start_matches("./");
    let name = match token.split_once(':') {
        Some((name, place)) if place.starts_with(|c: char| c.is_ascii_digit()) => name,
        _ => token,
    };
    let has_ending = name.rsplit_once('.').is_some_and(|(stem, end)| !stem.is_empty() && !end.is_empty());
    let is_file = (name.contains('/') || has_ending) && !name.contains([':', '@']) && !is_common(name);
    is_file.then(|| name.to_owned())
}

/// The words of a command up to the first that stands for something else: `deploy <host>`.
fn command(words: Vec<String>) -> Option<Vec<String>> {
    let is_said = |word: &String| !word.is_empty() && !word.contains(['<', '>', '…', '*', '\u{fffd}', '$']);
    let mut words: Vec<String> = words.into_iter().take_while(is_said).take(WORDS).collect();
    let name = words.first_mut()?;
    *name = name.rsplit('/').next().unwrap_or(name).to_owned();
    (words.len() > 1 || !EVERYDAY.contains(&format!(" {} ", words[0]))).then_some(words)
}

/// In a text it is not named in passing: it has two words at least, and is not what every session runs.
fn says_enough(words: &[String]) -> bool {
    words.len() > 2 || words.len() == 2 && !is_common_command(&words.join(" "))
}

/// Commands of two words in a line of prose.
fn plain_commands(line: &str) -> Vec<Vec<String>> {
    let is_part = |c: char| c.is_alphanumeric() || "_-./:".contains(c);
    let words: Vec<&str> = line.split(|c: char| !is_part(c)).filter(|word| !word.is_empty()).collect();
    let pairs = words.windows(2).filter_map(|pair| {
        // It may begin a sentence.
        let name = pair[0].to_lowercase();
        let is_builder = BUILDERS.contains(&format!(" {name} ")) || MANAGERS.has(&name);
        (is_builder || PACKAGE_RUNNERS.has(&name))
            .then(|| vec![name, pair[1].trim_end_matches(['.', ':']).to_owned()])
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::recall::act::ActFile;

    fn note(title: &str, body: &str) -> Subject {
        let text = format!("---\nid: id__AAAAAA\ntitle: '{title}'\npaths: [db/**]\n---\n\n{body}\n");
        Subject::of(&Entry::parse(text.into_bytes()).unwrap())
    }

    fn run(line: &str) -> Act {
        let words = line.split(' ').map(str::to_owned).collect();
        Act { commands: vec![words], ..Act::default() }
    }

    fn file(path: &str, is_read: bool) -> Act {
        Act { files: vec![ActFile { path: path.to_owned(), is_read }], ..Act::default() }
    }

    #[test]
    fn a_note_is_about_the_commands_that_it_names() {
        for (title, body, line, fit) in [
            ("`make test` hangs", "x", "make -j4 test", Some(Fit::Head)),
            ("Make test hangs here", "x", "make test", Some(Fit::Head)),
            ("`make test` hangs", "x", "make fmt", None),
            ("Tests", "Run `cargo test --doc`.", "cargo test --doc -q", Some(Fit::Body)),
            ("Tests", "Run `cargo test`.", "cargo test", None),
            ("`cargo test` needs docker", "x", "cargo test -q", Some(Fit::Head)),
            ("Use `pnpm`, never `npm`", "x", "npm install", Some(Fit::Head)),
            ("Use `git` well", "x", "git status", None),
            ("Deploy", "`./scripts/deploy.sh <host> --now`", "deploy.sh a --now", None),
            ("Deploy", "```\n$ cd web && vite build --mode x\n```", "vite build --mode x", Some(Fit::Body)),
            ("Make sure that it works", "x", "make works", None),
        ] {
            let note = note(title, body);
            assert_eq!(note.fit(&run(line)), fit, "{title} {body}: {line}");
            let is_known = run(line).keys().intersection(&note.keys()).next().is_some();
            assert!(fit.is_none() || is_known, "{title} {body}: {line}");
        }
    }

    #[test]
    fn a_note_is_about_the_files_that_it_names() {
        let long = "many words ".repeat(200);
        for (title, body, path, read, written) in [
            ("src/db/pool.rs leaks", "x", "src/db/pool.rs", Some(Fit::Head), Some(Fit::Head)),
            ("Leak", "See `db/pool.rs:12`.", "src/db/pool.rs", None, Some(Fit::Body)),
            ("Leak", "See pool.rs.", "src/pool.rs", None, Some(Fit::Body)),
            ("Leak", "See main.rs and Cargo.toml.", "src/main.rs", None, None),
            ("Leak", "See a/pool.rs.", "src/db/pool.rs", None, None),
            ("Leak", &format!("{long} src/a.rs"), "src/a.rs", None, None),
            ("Leak", "x", "db/1.sql", Some(Fit::Paths), Some(Fit::Paths)),
        ] {
            let note = note(title, body);
            for (is_read, fit) in [(true, read), (false, written)] {
                let act = file(path, is_read);
                assert_eq!(note.fit(&act), fit, "{title} {body}: {path} {is_read}");
                let is_known = act.keys().intersection(&note.keys()).next().is_some();
                assert!(fit.is_none_or(|fit| fit == Fit::Paths) || is_known, "{title} {body}: {path}");
            }
        }
    }
}
