//! Files of a checkout as they are when a note is drawn from them.

use crate::base::repository::{self, Repository};
use crate::base::{file, glob, reach};
use crate::memory::code::blocks::{hash_of, named_in, sums};
use crate::memory::code::state::{is_below, place_of};
use crate::memory::search::{has_word, is_common};
use crate::store::entry::{ANCHORS, Anchor, Entry, Lines, Meta};
use std::collections::BTreeMap;
use std::path::Path;

/// The largest file of which lines are known, and how much is read at all, in bytes.
const CAP: u64 = 256 << 10;
const ALL: usize = 32 << 20;
/// A file of at most so many lines counts as a whole.
const SHORT: usize = 30;
/// Files that hold secrets: not even a hash of them is kept. The beginnings of names, and their endings.
const SECRET: [&str; 12] = [
    ".env", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd", ".git-credentials", "id_rsa",
    "id_ed25519", "id_ecdsa", "credentials", "secret",
];
const SECRET_ENDS: [&str; 9] =
    [".env", ".pem", ".key", ".p12", ".pfx", ".jks", ".kdbx", ".keystore", ".tfstate"];

/// Some files of a checkout.
#[derive(Debug, Default)]
pub struct Code {
    commit: Option<String>,
    /// The text of each, by its path from the top; `None`: no text, or too long.
    files: BTreeMap<String, Option<String>>,
}

impl Code {
    /// Reads those of these files that are regular ones inside. Nothing of a checkout that does not answer.
    pub fn read(top: &Path, paths: impl IntoIterator<Item = String>) -> Code {
        let paths: Vec<String> =
            paths.into_iter().filter(|path| is_below(path) && !may_be_secret(path)).collect();
        let commit = repository::commit(top);
        let read = move |top: &Path| {
            let Ok(top) = top.canonicalize() else { return BTreeMap::new() };
            let mut left = ALL;
            let read = |path: String| {
                let full = top.join(&path);
                let is_inside = full.symlink_metadata().is_ok_and(|file| file.is_file())
                    && full.canonicalize().is_ok_and(|real| real.starts_with(&top));
                let text = || {
                    let text = String::from_utf8(file::read(&full, CAP).ok()?).ok()?;
                    left = left.checked_sub(text.len())?;
                    Some(text).filter(|text| !text.contains('\0'))
                };
                is_inside.then(text).map(|text| (path, text))
            };
            paths.into_iter().filter_map(read).collect()
        };
        Code { commit, files: reach::within(top, read).unwrap_or_default() }
    }

    /// What a text rests on, of the files that it names or that match one of its globs: first the lines that it names.
    pub fn anchors(&self, text: &str, globs: &[String], may: impl Fn(&str) -> bool) -> Vec<Anchor> {
        let mut all: Vec<Anchor> = Vec::new();
        for (path, file) in self.files.iter().filter(|(path, _)| may(path)) {
            let is_named = globs.contains(path) || self.is_named(path, text);
            if !is_named && !globs.iter().any(|glob| glob::matches(glob, path)) {
                continue;
            }
            let whole = Anchor { path: path.clone(), commit: self.commit.clone(), ..Anchor::default() };
            let sums = file.as_deref().map(sums).unwrap_or_default();
            let places = self.places(path, text);
            let of_lines = |lines: &Lines| {
                let hash = sums.get(lines.first - 1..lines.last).map(hash_of);
                Anchor { hash, lines: Some(*lines), ..whole.clone() }
            };
            all.extend(places.iter().map(of_lines));
            if places.is_empty() && is_named {
                let hash = Some(hash_of(&sums)).filter(|_| (1..=SHORT).contains(&sums.len()));
                all.push(Anchor { hash, ..whole });
            }
        }
        all.sort_by_key(|anchor| (anchor.hash.is_none(), anchor.lines.is_none()));
        all.truncate(ANCHORS);
        all
    }

    /// The places in a file that a text names.
    fn places(&self, path: &str, text: &str) -> Vec<Lines> {
        // The file's own name says nothing about a place in it.
        let name = path.rsplit('/').next().unwrap_or(path);
        let file = self.files.get(path).and_then(Option::as_deref);
        file.map_or_else(Vec::new, |file| named_in(&text.replace(name, " "), file))
    }

    /// What stands now where an anchor was: the lines that the text names, or else those around the old place. With where they
    /// are.
    pub fn now(&self, anchor: &Anchor, text: &str) -> Option<(Lines, Vec<&str>)> {
        let lines: Vec<&str> = self.files.get(&anchor.path)?.as_ref()?.lines().collect();
        let place = self.places(&anchor.path, text).into_iter().next().or_else(|| {
            let last = anchor.lines.map_or(SHORT, |lines| lines.last + 2).min(lines.len());
            let first = anchor.lines.map_or(1, |lines| lines.first.saturating_sub(2).max(1));
            (first <= last).then_some(Lines { first, last })
        })?;
        Some((place, lines.get(place.first - 1..place.last)?.to_vec()))
    }

    /// Does a text name this file, by its path or by the end of it that no other one has?
    fn is_named(&self, path: &str, text: &str) -> bool {
        let is_only = |end: &str| {
            let others = self.files.keys().filter(|other| other.ends_with(end) && *other != path);
            !is_common(end) && others.into_iter().all(|other| !other.ends_with(&format!("/{end}")))
        };
        let mut ends = path.match_indices('/').map(|(at, _)| &path[at + 1..]);
        let is_file = |end: &str| end.contains(['.', '/']);
        (path.contains(['.', '/']) || path.starts_with(char::is_uppercase)) && has_word(text, path)
            || ends.any(|end| is_file(end) && has_word(text, end) && is_only(end))
    }
}

/// The checkout, on this machine, of a session that a note comes from.
pub fn checkout_of(meta: &Meta) -> Option<Repository> {
    let dirs = meta.sources.iter().filter_map(|source| source.cwd.as_deref());
    let mut places = dirs.filter_map(|dir| repository::place_of(dir.as_ref()));
    places.find(|place| place_of(meta, std::slice::from_ref(place)).is_some())
}

/// What a note rests on from now on, in the files that it rested on: as they are `here`, or else in the checkout of its session.
/// Where there is none of it, nothing changes.
pub fn anchored_again(entry: &Entry, here: &[Repository]) -> Vec<Anchor> {
    let meta = entry.meta();
    let there = || Some(checkout_of(meta)?.top);
    let top = if meta.anchors.is_empty() {
        None
    } else {
        place_of(meta, here).map(|place| place.top.clone()).or_else(there)
    };
    let Some(top) = top else { return meta.anchors.clone() };
    let code = Code::read(&top, meta.anchors.iter().map(|anchor| anchor.path.clone()));
    let text = format!("{}\n{}\n{}", meta.title, meta.summary, String::from_utf8_lossy(entry.body()));
    code.anchors(&text, &meta.paths, |_| true)
}

fn may_be_secret(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    SECRET.iter().any(|start| name.starts_with(start)) || SECRET_ENDS.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(files: &[(&str, &str)]) -> Code {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), Some((*text).to_owned())));
        Code { commit: Some("0a1b2c3d4e5f".to_owned()), files: files.collect() }
    }

    fn anchors(code: &Code, text: &str, globs: &[&str]) -> String {
        let globs: Vec<String> = globs.iter().map(|glob| (*glob).to_owned()).collect();
        let shown = |anchor: Anchor| {
            let lines = anchor.lines.map(|lines| format!(":{lines}")).unwrap_or_default();
            format!("{}{lines}{}", anchor.path, if anchor.hash.is_some() { "" } else { "?" })
        };
        code.anchors(text, &globs, |_| true).into_iter().map(shown).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_note_is_anchored_to_what_it_names_and_to_nothing_else() {
        let pool = "fn open() {}\nconst POOL_SIZE: usize = 20;\n";
        let long = format!("{pool}{}", "// more\n".repeat(40));
        let code = code(&[
            ("src/db/pool.rs", &long),
            ("src/web/pool.rs", pool),
            ("src/main.rs", pool),
            ("Makefile", "stage:\n\tx\n"),
            ("src/door.ts", pool),
        ]);
        for (text, globs, expected) in [
            ("Use five retries, never more.", &[][..], ""),
            ("The pool size (POOL_SIZE) is 20.", &[], ""),
            ("`POOL_SIZE` in src/db/pool.rs is 20", &[], "src/db/pool.rs:2-2"),
            ("`POOL_SIZE` in `db/pool.rs` is 20", &[], "src/db/pool.rs:2-2"),
            ("`POOL_SIZE` in pool.rs is 20", &[], ""),
            ("`POOL_SIZE` is 20", &["src/db/**"], "src/db/pool.rs:2-2"),
            ("It is slow", &["src/db/**"], ""),
            ("src/db/pool.rs is slow", &[], "src/db/pool.rs?"),
            ("door.ts is slow", &[], "src/door.ts"),
            ("see main.rs", &[], ""),
            ("`make stage` in the Makefile", &[], "Makefile:1-2"),
        ] {
            assert_eq!(anchors(&code, text, globs), expected, "{text}");
        }
    }

    #[test]
    fn what_may_hold_secrets_is_no_anchor() {
        for path in [
            ".env", "a/.env.local", "deploy/prod.env", "certs/x.pem", "deploy/ID_RSA", "secrets.yaml",
            "x/credentials",
        ] {
            assert!(may_be_secret(path), "{path}");
        }
        assert!(!may_be_secret("src/environment.ts") && !may_be_secret("src/key.rs"));
    }
}
