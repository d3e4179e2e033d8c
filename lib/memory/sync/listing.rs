//! The files of a commit, checked before any of them is read: the commit may be anybody's.

use crate::base::error::{Error, Result};
use crate::base::text::{hex, one_line};
use std::collections::BTreeMap;

/// The most files of a store, of all kinds.
const FILES_CAP: usize = 200_000;
/// The largest note or proposal, as everywhere, and the largest of other files, in bytes.
const NOTE_CAP: u64 = 8 << 20;
const FILE_CAP: u64 = 32 << 20;
/// All files together, in bytes.
const TOTAL_CAP: u64 = 1 << 30;
const PATH_CAP: usize = 1_000;
const NAME_CAP: usize = 255;
/// What belongs to each machine alone.
const OWN: [&str; 2] = ["inbox", ".agent-memory"];
/// Names that begin like git's own directory and are harmless.
const HARMLESS: [&str; 4] = [".gitignore", ".gitattributes", ".gitkeep", ".github"];

/// The object names of files by path.
pub(super) type Listing = BTreeMap<String, String>;

/// Why not, if a file is too large, or all together are.
pub(super) fn check_sizes(files: &Listing, sizes: &BTreeMap<String, u64>) -> Result<(), String> {
    let mut total = 0_u64;
    for (path, name) in files {
        let size = *sizes.get(name).ok_or_else(|| format!("\"{}\" has no size", shown(path)))?;
        let is_ours = ["topics/", "archive/", "proposals/"].iter().any(|dir| path.starts_with(dir));
        let cap = if is_ours { NOTE_CAP } else { FILE_CAP };
        if size > cap {
            return Err(format!("\"{}\" has {size} bytes; the limit is {cap}", shown(path)));
        }
        total = total.saturating_add(size);
    }
    match total > TOTAL_CAP {
        true => Err(format!("its files have {total} bytes; the limit is {TOTAL_CAP}")),
        false => Ok(()),
    }
}

/// Why not, if there are too many files and directories.
pub(super) fn check_count(count: usize) -> Result<(), String> {
    if count > FILES_CAP { Err(format!("it has more than {FILES_CAP} files")) } else { Ok(()) }
}

/// The refusal of a commit.
pub(super) fn refused(whose: &str, why: &str) -> Error {
    Error::refused(format!("{whose} cannot be merged: {why}")).hint("nothing was changed")
}

/// What is in a directory: a path, and the name of its object.
#[derive(Debug, PartialEq)]
pub(super) enum TreeEntry {
    File(String, String),
    Directory(String, String),
}

/// What is in `dir`, read from git's object for it: `MODE NAME<NUL>OID` again and again, of which the last has `length`
/// bytes. Why not, if there is something in it that a store never has.
pub(super) fn entries(
    dir: &str,
    kind: &str,
    mut tree: &[u8],
    length: usize,
) -> Result<Vec<TreeEntry>, String> {
    let broken = || format!("the directory \"{}\" is malformed", shown(dir));
    if kind != "tree" {
        return Err(broken());
    }
    let mut found = Vec::new();
    while !tree.is_empty() {
        let end = memchr::memchr(0, tree).ok_or_else(broken)?;
        let (head, rest) = (&tree[..end], &tree[end + 1..]);
        let (name, rest) = rest.split_at_checked(length).ok_or_else(broken)?;
        let space = memchr::memchr(b' ', head).ok_or_else(broken)?;
        found.push(entry(dir, &head[..space], &head[space + 1..], hex(name))?);
        tree = rest;
    }
    Ok(found)
}

fn entry(dir: &str, mode: &[u8], name: &[u8], object: String) -> Result<TreeEntry, String> {
    let name = std::str::from_utf8(name).map_err(|_| {
        format!("the name of a file is not UTF-8: \"{}\"", shown(&String::from_utf8_lossy(name)))
    })?;
    let path = if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") };
    let named = |what: &str| Err(format!("\"{}\" is {what}", shown(&path)));
    if let Some(why) = bad_path(&path) {
        return named(why);
    }
    match mode {
        b"40000" => Ok(TreeEntry::Directory(path, object)),
        b"100644" | b"100755" | b"100664" => Ok(TreeEntry::File(path, object)),
        b"120000" => named("a symbolic link; only files are synced"),
        b"160000" => named("a submodule; only files are synced"),
        _ => named("no file"),
    }
}

fn shown(path: &str) -> String {
    one_line(path, 120)
}

/// What is wrong with a path, if anything.
fn bad_path(path: &str) -> Option<&'static str> {
    if path.len() > PATH_CAP || path.split('/').any(|part| part.len() > NAME_CAP) {
        return Some("too long a path");
    }
    if path.chars().any(|c| c.is_control() || c == '\\') {
        return Some("a path with control characters or backslashes");
    }
    let lower = path.to_lowercase();
    if lower.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Some("a path that leads elsewhere");
    }
    // Also as Windows and macOS write it: `GIT~1`, invisible characters, dots and spaces at the end.
    let is_git = |part: &str| {
        let plain: String = part.chars().filter(|c| c.is_ascii_graphic()).collect();
        plain.starts_with("git~") || (plain.starts_with(".git") && !HARMLESS.contains(&part))
    };
    if lower.split('/').any(is_git) {
        return Some("a path that git itself could use");
    }
    let first = lower.split('/').next().unwrap_or_default();
    OWN.contains(&first).then_some("a file that belongs to one machine alone")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: [u8; 20] = [0xab; 20];

    fn tree(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let entry = |(mode, name): &(&str, &[u8])| [mode.as_bytes(), b" ", name, b"\0", &OBJECT].concat();
        entries.iter().flat_map(entry).collect()
    }

    fn why(mode: &str, path: &str) -> String {
        entries("", "tree", &tree(&[(mode, path.as_bytes())]), 20).unwrap_err()
    }

    fn files(files: &[(&str, u64)]) -> Result<(), String> {
        let sizes = files.iter().map(|(path, size)| (format!("of {path}"), *size)).collect();
        let listing = files.iter().map(|(path, _)| ((*path).to_owned(), format!("of {path}"))).collect();
        check_sizes(&listing, &sizes)
    }

    #[test]
    fn a_directory_is_read_to_its_end_or_not_at_all() {
        let name = "ab".repeat(20);
        let bytes = tree(&[("100644", "ä b -- id__AAAAAA.md".as_bytes()), ("40000", b"deeper")]);
        let expected = [
            TreeEntry::File("topics/ä b -- id__AAAAAA.md".to_owned(), name.clone()),
            TreeEntry::Directory("topics/deeper".to_owned(), name),
        ];
        assert_eq!(entries("topics", "tree", &bytes, 20).unwrap(), expected);
        let border = tree(&[("100644", "ä b -- id__AAAAAA.md".as_bytes())]).len();
        for cut in (1..bytes.len()).filter(|cut| *cut != border) {
            let why = entries("topics", "tree", &bytes[..cut], 20).unwrap_err();
            assert!(why.contains("\"topics\" is malformed"), "{cut}: {why}");
        }
        assert!(entries("", "blob", b"", 20).is_err());
    }

    #[test]
    fn what_could_do_harm_is_refused_by_name() {
        for path in [
            "../x", "a/../b", "/etc/x", "a//b", ".git/config", "a/.GIT/hooks/x", ".gitmodules", "GIT~1/x",
            ".g\u{200c}it/x", ".git ", "a\\b", "a\u{1b}b", "inbox/x.json", ".agent-memory/run.lock",
            "INBOX/x", ".Agent-Memory/x",
        ] {
            assert!(why("100644", path).starts_with('"'), "{path}");
        }
        assert!(why("40000", ".git").contains("git itself could use"));
        assert!(why("120000", "topics/l").contains("\"topics/l\" is a symbolic link"));
        assert!(why("160000", "m").contains("a submodule"));
        assert!(why("100644", &"x/".repeat(600)).contains("too long"));
        assert!(why("100644", &"x".repeat(300)).contains("too long"));
        let odd = entries("", "tree", &tree(&[("100644", b"\xff")]), 20).unwrap_err();
        assert!(odd.contains("not UTF-8"), "{odd}");
    }

    #[test]
    fn too_much_is_refused() {
        assert!(check_count(FILES_CAP).is_ok());
        assert!(check_count(FILES_CAP + 1).unwrap_err().contains("more than 200000 files"));
        let why = |all: &[(&str, u64)]| files(all).unwrap_err();
        assert!(why(&[("topics/x.md", 10_000_000_000)]).contains("10000000000 bytes"));
        assert!(why(&[("x.bin", 100_000_000)]).contains("the limit is 33554432"));
        let names: Vec<String> = (0..40).map(|n| format!("f{n}")).collect();
        let big: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 30_000_000)).collect();
        assert!(why(&big).contains("1200000000 bytes"));
        assert!(files(&[("x", 1)]).is_ok());
    }
}
