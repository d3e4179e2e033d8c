//! Files of a checkout as they are when a note is drawn from them.

use crate::base::repository::{self, Repository};
use crate::base::{file, glob, reach};
use crate::memory::code::blocks::{FEW, anchors_in, definition_of};
use crate::memory::code::said::Said;
use crate::memory::code::state::{is_below, place_of};
use crate::memory::search::{has_word, is_common};
use crate::store::entry::{ANCHORS, Anchor, Entry, Lines, Meta};
use std::collections::BTreeMap;
use std::path::Path;

/// The largest file of which lines are known, and how much is read at all, in bytes.
const CAP: u64 = 256 << 10;
const ALL: usize = 32 << 20;
/// So many lines of a file are shown if nothing is known of a place in it.
const SHOWN: usize = 30;
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

    /// What a text rests on: in the files that it names, by their path or by one of its globs; or else in those that define what
    /// it says; or else in those that use it. What many files of a session define or use says nothing of any of them.
    pub fn anchors(&self, text: &str, globs: &[String], may: impl Fn(&str) -> bool) -> Vec<Anchor> {
        let mut of_files: Vec<(usize, Vec<(usize, Anchor)>)> = Vec::new();
        for (path, file) in self.files.iter().filter(|(path, _)| may(path)) {
            let is_named = globs.contains(path) || self.is_named(path, text);
            let mut found =
                file.as_deref().map_or_else(Vec::new, |file| anchors_in(&said_of(path, text), file));
            if is_named && found.is_empty() {
                found.push((0, Anchor::default()));
            }
            let is_named = is_named || globs.iter().any(|glob| glob::matches(glob, path));
            let defines = found.iter().any(|(_, anchor)| anchor.hash.is_some() || anchor.name.is_some());
            let distance = if is_named { 0 } else { 2 - usize::from(defines) };
            for (_, anchor) in &mut found {
                (anchor.path, anchor.commit) = (path.clone(), self.commit.clone());
            }
            if !found.is_empty() {
                of_files.push((distance, found));
            }
        }
        let closest = of_files.iter().map(|(distance, _)| *distance).min().unwrap_or_default();
        of_files.retain(|(distance, _)| *distance == closest);
        of_files.truncate(if closest > 0 && of_files.len() > FEW { 0 } else { usize::MAX });
        let mut all: Vec<(usize, Anchor)> = of_files.into_iter().flat_map(|(_, found)| found).collect();
        all.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        // One place is kept for another file: a note with a file that is there is not withheld.
        if let Some(other) =
            all.iter().position(|(_, one)| one.path != all[0].1.path).filter(|at| *at >= ANCHORS)
        {
            all.swap(ANCHORS - 1, other);
        }
        all.into_iter().map(|(_, anchor)| anchor).take(ANCHORS).collect()
    }

    /// What stands now where an anchor was: what defines its name, its list or value, or else the lines around the old place. With
    /// where they are.
    pub fn now(&self, anchor: &Anchor, text: &str) -> Option<(Lines, Vec<&str>)> {
        let file = self.files.get(&anchor.path)?.as_ref()?;
        let lines: Vec<&str> = file.lines().collect();
        let again = || {
            anchors_in(&said_of(&anchor.path, text), file).into_iter().find_map(|(_, anchor)| anchor.lines)
        };
        let place = definition_of(&lines, anchor).or_else(again).or_else(|| {
            let last = anchor.lines.map_or(SHOWN, |lines| lines.last + 2).min(lines.len());
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
        // `door.bash/zsh`
        let has_word = |text: &str, end: &str| {
            has_word(text, end)
                || end.contains('.') && has_word(&text.replace(&format!("{end}/"), &format!("{end} ")), end)
        };
        let mut ends = path.match_indices('/').map(|(at, _)| &path[at + 1..]);
        let is_file = |end: &str| end.contains(['.', '/']);
        (path.contains(['.', '/']) || path.starts_with(char::is_uppercase)) && has_word(text, path)
            || ends.any(|end| is_file(end) && has_word(text, end) && is_only(end))
    }
}

/// The file's own name says nothing about a place in it.
fn said_of(path: &str, text: &str) -> Said {
    let name = path.rsplit('/').next().unwrap_or(path);
    Said::of(&text.replace(path, " ").replace(name, " "))
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
    if meta.anchors.is_empty() {
        return Vec::new();
    }
    let there = || Some(checkout_of(meta)?.top);
    let top = place_of(meta, here).map(|place| place.top.clone()).or_else(there);
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
            format!("{}{lines}", anchor.path)
        };
        code.anchors(text, &globs, |_| true).into_iter().map(shown).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_note_is_anchored_to_what_it_names_and_to_nothing_else() {
        let pool = "fn open() {}\nconst POOL_SIZE: usize = 20;\n";
        let long = format!("{pool}{}", "// more\n".repeat(40));
        let code = code(&[
            ("src/db/pool.rs", &long),
            ("src/main.rs", pool),
            ("Makefile", "stage:\n\tx\n"),
            ("src/door.ts", pool),
        ]);
        for (text, globs, expected) in [
            ("Use five retries, never more.", &[][..], ""),
            ("The pool size (POOL_SIZE) is 20.", &[], "src/db/pool.rs:2-2 src/door.ts:2-2 src/main.rs:2-2"),
            ("`POOL_SIZE` in src/db/pool.rs is 20", &[], "src/db/pool.rs:2-2"),
            ("`POOL_SIZE` in `db/pool.rs` is 20", &[], "src/db/pool.rs:2-2"),
            ("`POOL_SIZE` is 20", &["src/db/**"], "src/db/pool.rs:2-2"),
            ("It is slow", &["src/db/**"], ""),
            ("src/db/pool.rs is slow", &[], "src/db/pool.rs"),
            ("door.ts is slow", &[], "src/door.ts"),
            ("pool.rs/door.ts are slow", &[], "src/db/pool.rs src/door.ts"),
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
