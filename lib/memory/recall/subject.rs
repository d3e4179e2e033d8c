//! What a note is about, as far as a call of a tool can be about the same: files, and commands.
//!
//! A note that is too long mentions much that it is not about: of that one its title and summary count, and its paths.
//!
//! A call has a few milliseconds, and ten thousand notes have that many files. So a cache of all subjects, in
//! `.agent-memory/subjects.cache`, is asked first, and of the notes that it names each is read again. While the directory of the
//! notes is as it was, no other file is looked at; that one was changed in its place is seen at the start of the next session.

use crate::base::error::Result;
use crate::base::file::Stamp;
use crate::base::glob;
use crate::base::packed::{Unpack, put_bytes, put_number};
use crate::memory::outside::commands;
use crate::memory::programs::{MANAGERS, PACKAGE_RUNNERS};
use crate::memory::recall::act::{Act, ActFile, command_key, ends, file_key};
use crate::memory::search::{code_of, is_common, is_common_command};
use crate::store::entry::{BodyFacts, Entry, Meta};
use crate::store::index::{CacheFormat, KnownNote, NoteCache, record};
use crate::store::persistence::{Note, Place};
use crate::store::place::Root;
use crate::store::topics::{Topics, read};
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
pub(super) enum SubjectMatch {
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
    head: Mentioned,
    body: Mentioned,
}

/// Files and commands that a text names.
#[derive(Debug, Default)]
struct Mentioned {
    files: BTreeSet<String>,
    commands: BTreeSet<Vec<String>>,
}

impl Subject {
    pub(super) fn of(entry: &Entry) -> Subject {
        let meta = entry.meta();
        let heads = [meta.title.as_str(), meta.summary.as_str()];
        let mut head = Mentioned::of(&heads.join("\n"), true);
        head.commands.extend(heads.into_iter().flat_map(plain_commands));
        let body = match entry.body().len() <= SHORT {
            true => Mentioned::of(&String::from_utf8_lossy(entry.body()), false),
            false => Mentioned::default(),
        };
        Subject { globs: meta.paths.clone(), head, body }
    }

    /// A call that it is about has one of them among its own, unless its paths say that it is.
    pub(super) fn keys(&self) -> BTreeSet<u64> {
        let of = |names: &Mentioned| -> Vec<u64> {
            let commands = names.commands.iter().map(|words| {
                let last = if words.len() > 1 { words.last() } else { None };
                command_key(&words[0], last.map_or("", String::as_str))
            });
            names.files.iter().map(|file| file_key(file)).chain(commands).collect()
        };
        of(&self.head).into_iter().chain(of(&self.body)).collect()
    }

    /// `None`: it is not about this call.
    pub(super) fn fit(&self, act: &Act) -> Option<SubjectMatch> {
        if self.globs.iter().any(|glob| act.files.iter().any(|file| glob::matches(glob, &file.path))) {
            return Some(SubjectMatch::Paths);
        }
        if self.head.has(act, |_| true) {
            return Some(SubjectMatch::Head);
        }
        // Whoever only reads a file is told what is about it, and not each mention.
        self.body.has(act, |file| !file.is_read).then_some(SubjectMatch::Body)
    }
}

impl Mentioned {
    fn of(text: &str, is_head: bool) -> Mentioned {
        let mut names = Mentioned::default();
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

/// Another number, other rules of what a note is about.
const FORMAT: CacheFormat = CacheFormat { name: "subjects.cache", magic: *b"subjects", rules: 1 };
/// So many notes are read for one call.
const MOST: usize = 64;

/// The notes that may be about a call.
pub(super) fn about(root: &Root, act: &Act) -> Result<Vec<Note>> {
    let keys = act.keys();
    if keys.is_empty() || !root.topics().is_dir() {
        return Ok(Vec::new());
    }
    let mut cache = NoteCache::open(root, FORMAT);
    if !cache.knows_all_names() {
        // Without it each call would read all notes, and is better without any.
        if cache.check_writable().is_err() {
            return Ok(Vec::new());
        }
        refresh(root)?;
        cache = NoteCache::open(root, FORMAT);
    }
    let may_be = |known: &KnownNote| may_be_about(known.more(), act, &keys).unwrap_or_default();
    let paths = cache.all().filter(may_be).filter_map(KnownNote::path).take(MOST);
    Ok(paths.filter_map(|path| read(Place::Topics, &path).ok()).collect())
}

/// Looks at every note, and reads those that have changed.
///
/// # Errors
/// The store cannot be read, or the cache cannot be written.
pub fn refresh(root: &Root) -> Result<()> {
    let old = NoteCache::open(root, FORMAT);
    let files = Topics::at(root).files(&[Place::Topics])?;
    let records = files.map(0..files.len(), |file| {
        let of_read = |note: Note, stamp: Option<Stamp>| {
            let (meta, facts) = (Meta::new(note.entry.meta().id.clone()), BodyFacts::default());
            record(file, stamp?, &meta, facts, &packed(&Subject::of(&note.entry)))
        };
        old.look(file, |known| Some(Some(known.bytes().to_vec())), of_read).ok().flatten()
    });
    let records: Vec<Vec<u8>> = records.into_iter().flatten().collect();
    match old.knows_all_names() && old.all().map(KnownNote::bytes).eq(records.iter().map(Vec::as_slice)) {
        true => Ok(()),
        false => old.write(records.len(), &records.concat(), &[]),
    }
}

fn packed(subject: &Subject) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_number(&mut bytes, subject.globs.len() as u64);
    subject.globs.iter().for_each(|glob| put_bytes(&mut bytes, glob.as_bytes()));
    bytes.extend(subject.keys().into_iter().flat_map(u64::to_le_bytes));
    bytes
}

fn may_be_about(mut from: Unpack, act: &Act, keys: &BTreeSet<u64>) -> Option<bool> {
    let globs = from.list(Unpack::text)?;
    let (its, _) = from.0.as_chunks::<8>();
    let is_matched = |glob: &&str| act.files.iter().any(|file| glob::matches(glob, &file.path));
    Some(its.iter().any(|key| keys.contains(&u64::from_le_bytes(*key))) || globs.iter().any(is_matched))
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
            ("`make test` hangs", "x", "make -j4 test", Some(SubjectMatch::Head)),
            ("Make test hangs here", "x", "make test", Some(SubjectMatch::Head)),
            ("`make test` hangs", "x", "make fmt", None),
            ("Tests", "Run `cargo test --doc`.", "cargo test --doc -q", Some(SubjectMatch::Body)),
            ("Tests", "Run `cargo test`.", "cargo test", None),
            ("`cargo test` needs docker", "x", "cargo test -q", Some(SubjectMatch::Head)),
            ("Use `pnpm`, never `npm`", "x", "npm install", Some(SubjectMatch::Head)),
            ("Use `git` well", "x", "git status", None),
            ("Deploy", "`./scripts/deploy.sh <host> --now`", "deploy.sh a --now", None),
            (
                "Deploy",
                "```\n$ cd web && vite build --mode x\n```",
                "vite build --mode x",
                Some(SubjectMatch::Body),
            ),
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
            (
                "src/db/pool.rs leaks",
                "x",
                "src/db/pool.rs",
                Some(SubjectMatch::Head),
                Some(SubjectMatch::Head),
            ),
            ("Leak", "See `db/pool.rs:12`.", "src/db/pool.rs", None, Some(SubjectMatch::Body)),
            ("Leak", "See pool.rs.", "src/pool.rs", None, Some(SubjectMatch::Body)),
            ("Leak", "See main.rs and Cargo.toml.", "src/main.rs", None, None),
            ("Leak", "See a/pool.rs.", "src/db/pool.rs", None, None),
            ("Leak", &format!("{long} src/a.rs"), "src/a.rs", None, None),
            ("Leak", "x", "db/1.sql", Some(SubjectMatch::Paths), Some(SubjectMatch::Paths)),
        ] {
            let note = note(title, body);
            for (is_read, fit) in [(true, read), (false, written)] {
                let act = file(path, is_read);
                assert_eq!(note.fit(&act), fit, "{title} {body}: {path} {is_read}");
                let is_known = act.keys().intersection(&note.keys()).next().is_some();
                assert!(
                    fit.is_none_or(|fit| fit == SubjectMatch::Paths) || is_known,
                    "{title} {body}: {path}"
                );
            }
        }
    }
}
