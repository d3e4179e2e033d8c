//! The files of a commit, checked before any of them is read: the commit may be anybody's.

use crate::base::error::{Error, Result};
use crate::base::text::one_line;
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
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Listing(pub(super) BTreeMap<String, String>);

impl Listing {
    /// Reads what `git ls-tree -r -l -z` prints.
    ///
    /// # Errors
    /// There is something in it that a store never has, or too much. `whose` says where it is from.
    pub(super) fn parse(printed: &[u8], whose: &str) -> Result<Listing> {
        let mut files = BTreeMap::new();
        let mut total = 0_u64;
        for line in printed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let (path, oid, size) = entry(line).map_err(|why| refused(whose, &why))?;
            total = total.saturating_add(size);
            files.insert(path, oid);
            if files.len() > FILES_CAP {
                return Err(refused(whose, &format!("it has more than {FILES_CAP} files")));
            }
        }
        match total > TOTAL_CAP {
            true => Err(refused(whose, &format!("its files have {total} bytes; the limit is {TOTAL_CAP}"))),
            false => Ok(Listing(files)),
        }
    }
}

/// The refusal of a commit.
pub(super) fn refused(whose: &str, why: &str) -> Error {
    Error::refused(format!("{whose} cannot be merged: {why}")).hint("nothing was changed")
}

/// `MODE TYPE OID SIZE<TAB>PATH`
fn entry(line: &[u8]) -> Result<(String, String, u64), String> {
    let text = std::str::from_utf8(line).map_err(|_| {
        format!("the name of a file is not UTF-8: \"{}\"", shown(&String::from_utf8_lossy(line)))
    })?;
    let (head, path) = text.split_once('\t').ok_or("git lists its files in an unknown way")?;
    let words: Vec<&str> = head.split_ascii_whitespace().collect();
    let [mode, kind, oid, size] = words[..] else {
        return Err("git lists its files in an unknown way".into());
    };
    let named = |what: &str| Err(format!("\"{}\" is {what}", shown(path)));
    match (mode, kind) {
        ("100644" | "100755" | "100664", "blob") => {}
        ("120000", _) => return named("a symbolic link; only files are synced"),
        ("160000", _) => return named("a submodule; only files are synced"),
        _ => return named("no file"),
    }
    if let Some(why) = bad_path(path) {
        return named(why);
    }
    let size: u64 = size.parse().map_err(|_| format!("\"{}\" has no size", shown(path)))?;
    let is_ours = ["topics/", "archive/", "proposals/"].iter().any(|dir| path.starts_with(dir));
    let cap = if is_ours { NOTE_CAP } else { FILE_CAP };
    if size > cap {
        return Err(format!("\"{}\" has {size} bytes; the limit is {cap}", shown(path)));
    }
    Ok((path.to_owned(), oid.to_owned(), size))
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

    fn why(mode: &str, kind: &str, size: &str, path: &str) -> String {
        let line = format!("{mode} {kind} 0123456789012345678901234567890123456789 {size}\t{path}\0");
        Listing::parse(line.as_bytes(), "x").unwrap_err().line()
    }

    #[test]
    fn files_are_listed_with_their_objects() {
        let line = "100644 blob abc      12\ttopics/ä b -- id__AAAAAA.md\0100755 blob def 0\t.gitignore\0";
        let listing = Listing::parse(line.as_bytes(), "x").unwrap();
        assert_eq!(listing.0.len(), 2);
        assert_eq!(listing.0["topics/ä b -- id__AAAAAA.md"], "abc");
    }

    #[test]
    fn what_could_do_harm_is_refused_by_name() {
        for path in [
            "../x", "a/../b", "/etc/x", "a//b", ".git/config", "a/.GIT/hooks/x", ".gitmodules", "GIT~1/x",
            ".g\u{200c}it/x", ".git ", "a\\b", "a\u{1b}b", "inbox/x.json", ".agent-memory/run.lock",
            "INBOX/x", ".Agent-Memory/x",
        ] {
            assert!(why("100644", "blob", "1", path).starts_with("x cannot be merged: \""), "{path}");
        }
        assert!(why("120000", "blob", "1", "topics/l").contains("\"topics/l\" is a symbolic link"));
        assert!(why("160000", "commit", "-", "m").contains("a submodule"));
        assert!(why("100644", "blob", "10000000000", "topics/x.md").contains("10000000000 bytes"));
        assert!(why("100644", "blob", "100000000", "x.bin").contains("the limit is 33554432"));
        assert!(why("100644", "blob", "1", &"x/".repeat(600)).contains("too long"));
        assert!(why("100644", "blob", "1", &"x".repeat(300)).contains("too long"));
        assert!(Listing::parse(b"100644 blob a 1\t\xff\0", "x").unwrap_err().line().contains("not UTF-8"));
        assert!(Listing::parse(b"nonsense\0", "x").unwrap_err().line().contains("unknown way"));
    }

    #[test]
    fn too_much_is_refused() {
        let many: String = (0..=FILES_CAP).map(|n| format!("100644 blob a 1\tf{n}\0")).collect();
        assert!(Listing::parse(many.as_bytes(), "x").unwrap_err().line().contains("more than 200000 files"));
        let big: String = (0..40).map(|n| format!("100644 blob a 30000000\tf{n}\0")).collect();
        assert!(Listing::parse(big.as_bytes(), "x").unwrap_err().line().contains("1200000000 bytes"));
    }
}
