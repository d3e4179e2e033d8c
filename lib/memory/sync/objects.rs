//! git's objects: the files of a commit, and a commit from files. Nothing is ever checked out. A commit may be anybody's: what
//! it has is checked before any of its files is read.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::text::{hex, one_line};
use crate::memory::sync::side::Files;
use crate::store::git::{Git, NO_TEMPORARY_FILES, command, is_object, unusable};
use crate::store::history;
use crate::store::place::Root;
use crate::store::revision::{Revision, Version};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

/// The most that git prints for the directories of a commit, or the sizes of its files, in bytes.
const LIST_CAP: usize = 96 << 20;
/// The most bytes of files that are read at once. All of them may have a gigabyte.
const READ_CAP: usize = (1 << 30) + (64 << 20);
/// How long the git commands between two transfers may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(300);
/// The commit with a merge, until the branch has it.
const MERGED: &str = "refs/agent-memory/merged";

/// Objects by name: their type and bytes.
type Objects = BTreeMap<String, (String, Vec<u8>)>;

/// The commits and trees of the store's repository. The files of each are listed once.
pub(super) struct Commits<'a> {
    pub(super) git: &'a Git,
    listings: RefCell<BTreeMap<String, Rc<Listing>>>,
}

impl Commits<'_> {
    pub(super) fn of(git: &Git) -> Commits<'_> {
        Commits { git, listings: RefCell::default() }
    }

    /// The files of a commit of this store, if there is one.
    pub(super) fn listing(&self, commit: Option<&str>) -> Result<Rc<Listing>> {
        commit.map_or_else(|| Ok(Rc::default()), |commit| self.listing_of(commit, "this store"))
    }

    /// The files of a commit, which is from `whose`.
    pub(super) fn listing_of(&self, commit: &str, whose: &str) -> Result<Rc<Listing>> {
        if let Some(listing) = self.listings.borrow().get(commit) {
            return Ok(Rc::clone(listing));
        }
        let listing = Rc::new(listing(self.git, commit, whose)?);
        self.listings.borrow_mut().insert(commit.to_owned(), Rc::clone(&listing));
        Ok(listing)
    }

    /// The files of listings at these paths, all read at once.
    pub(super) fn files<const N: usize>(
        &self,
        listings: [&Listing; N],
        paths: &BTreeSet<String>,
    ) -> Result<[Files; N]> {
        let at = |path: &String| listings.iter().filter_map(|listing| listing.get(path)).collect::<Vec<_>>();
        let names = paths.iter().flat_map(at).map(String::as_str).collect();
        let objects = read(self.git, &names)?;
        Ok(listings.map(|listing| {
            let bytes = |path: &String| Some((path.clone(), objects.get(listing.get(path)?)?.1.clone()));
            paths.iter().filter_map(bytes).collect()
        }))
    }

    /// What two commits have in common: none, one, or several where machines have merged crosswise.
    pub(super) fn bases(&self, ours: Option<&str>, theirs: Option<&str>) -> Result<Vec<String>> {
        let (Some(ours), Some(theirs)) = (ours, theirs) else { return Ok(Vec::new()) };
        // Exit 1 without a word: they have nothing in common.
        let arguments = ["merge-base", "--all", ours, theirs];
        let bases = self.git.maybe_lines(&arguments)?.unwrap_or_default();
        match bases.iter().all(|base| is_object(base)) {
            true => Ok(bases),
            false => Err(unusable(&arguments)),
        }
    }
}

/// The files of a commit or tree. `whose` says where it is from.
///
/// Not from `git ls-tree`: if the end of its output is lost, nothing shows it. For an object, git prints its length.
fn listing(git: &Git, commit: &str, whose: &str) -> Result<Listing> {
    let unlisted = |why: Error| refused(whose, &format!("its files cannot be listed: {}", why.message()));
    let refused = |why: String| refused(whose, &why);
    let root = git.object(&["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).map_err(unlisted)?;
    let mut files = Listing::new();
    let (mut dirs, mut count) = (vec![(String::new(), root)], 0);
    while !dirs.is_empty() {
        let names = dirs.iter().map(|(_, name)| name.as_str()).collect();
        let trees = read_up_to(git, &names, LIST_CAP).map_err(unlisted)?;
        let mut deeper = Vec::new();
        for (dir, name) in &dirs {
            let (kind, tree) = &trees[name];
            for entry in entries(dir, kind, tree, name.len() / 2).map_err(refused)? {
                match entry {
                    TreeEntry::File(path, name) => drop(files.insert(path, name)),
                    TreeEntry::Directory(path, name) => deeper.push((path, name)),
                }
            }
            check_count(files.len() + count + deeper.len()).map_err(refused)?;
        }
        count += deeper.len();
        dirs = deeper;
    }
    let sizes = sizes(git, files.values().map(String::as_str).collect()).map_err(unlisted)?;
    check_sizes(&files, &sizes).map_err(refused)?;
    Ok(files)
}

/// How many bytes objects have.
fn sizes(git: &Git, names: BTreeSet<&str>) -> Result<BTreeMap<String, u64>> {
    let printed = ask(git, "--batch-check", &names, LIST_CAP)?;
    let lines = printed.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
    let sizes = lines.map(|line| head(line).map(|(name, _, size)| (name, size)));
    whole(sizes.collect::<Result<BTreeMap<_, _>>>()?, &names)
}

/// Reads objects.
pub(super) fn read(git: &Git, names: &BTreeSet<&str>) -> Result<Objects> {
    read_up_to(git, names, READ_CAP)
}

fn read_up_to(git: &Git, names: &BTreeSet<&str>, cap: usize) -> Result<Objects> {
    let printed = ask(git, "--batch", names, cap)?;
    let mut objects = Objects::new();
    let mut rest = &printed[..];
    // A head, a line end, the bytes, a line end.
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let (name, kind, size) = head(&rest[..end])?;
        let bytes = usize::try_from(size).ok().and_then(|size| rest.get(end + 1..)?.get(..size));
        let Some((bytes, after)) = bytes.and_then(|bytes| Some((bytes, rest.get(end + 1 + bytes.len()..)?)))
        else {
            return Err(unusable(&["cat-file"]));
        };
        objects.insert(name, (kind, bytes.to_vec()));
        rest = after.strip_prefix(b"\n").ok_or_else(|| unusable(&["cat-file"]))?;
    }
    whole(objects, names)
}

/// Asks git about objects, all at once.
fn ask(git: &Git, how: &str, names: &BTreeSet<&str>, cap: usize) -> Result<Vec<u8>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let input: String = names.iter().flat_map(|name| [name, "\n"]).collect();
    git.fed(&command(&["cat-file", how]), input.into_bytes(), cap)
}

/// `OID TYPE SIZE`
fn head(line: &[u8]) -> Result<(String, String, u64)> {
    let text = String::from_utf8_lossy(line);
    let found = match text.split(' ').collect::<Vec<_>>()[..] {
        [name, kind, size] => size.parse().ok().map(|size| (name.to_owned(), kind.to_owned(), size)),
        _ => None,
    };
    let lacks = || Error::corrupt(format!("git lacks an object: {text}")).hint("run git fsck in the store");
    found.ok_or_else(lacks)
}

/// What git has answered, if that is about each of these objects.
fn whole<T>(answers: BTreeMap<String, T>, names: &BTreeSet<&str>) -> Result<BTreeMap<String, T>> {
    match names.iter().all(|name| answers.contains_key(*name)) {
        true => Ok(answers),
        false => Err(unusable(&["cat-file"])),
    }
}

/// Makes a commit with up to two parents, which no branch has yet: what becomes of the files of the first one.
pub(super) fn commit(
    git: &Git,
    [ours, theirs]: [Option<&str>; 2],
    revisions: &[Revision],
    message: &str,
) -> Result<String> {
    let who = git.line(&["var", "GIT_COMMITTER_IDENT"])?;
    let mut head =
        format!("feature done\ncommit {MERGED}\ncommitter {who}\ndata {}\n{message}\n", message.len());
    for (key, parent) in [("from", ours), ("merge", theirs)] {
        head += &parent.map(|parent| format!("{key} {parent}\n")).unwrap_or_default();
    }
    let mut stream = head.into_bytes();
    // Removals first, or a directory could not take the place of a file.
    let path_of = |version: &Version| quoted(&version.path().to_string_lossy());
    for Revision { before, after } in revisions {
        let (old, new) = (before.as_ref().map(path_of), after.as_ref().map(path_of));
        if let Some(old) = old.filter(|old| new.as_ref() != Some(old)) {
            stream.extend_from_slice(format!("D {old}\n").as_bytes());
        }
    }
    for after in revisions.iter().filter_map(|revision| revision.after.as_ref()) {
        let line = format!("M 100644 inline {}\ndata {}\n", path_of(after), after.bytes().len());
        stream.extend_from_slice(line.as_bytes());
        stream.extend_from_slice(after.bytes());
        stream.push(b'\n');
    }
    stream.extend_from_slice(b"done\n");
    // Forced: it is our own note of a commit, which nobody else has.
    git.fed(&command(&["fast-import", "--quiet", "--force"]), stream, 1 << 20)?;
    git.object(&["rev-parse", "--verify", MERGED])
}

/// The files as they are, as a tree; git's index stays as it is.
pub(super) fn tree_of_files(root: &Root, env: &Env, ours: Option<&str>) -> Result<String> {
    let index = root.state().join("sync-index");
    file::if_exists(file::remove(&index))?;
    let git = Git::new(root, env)?.with(TIMEOUT, vec![("GIT_INDEX_FILE", index.clone().into_os_string())]);
    let made = || -> Result<String> {
        git.run(&["read-tree", ours.unwrap_or("--empty")])?;
        let changed = history::changed(&git)?;
        if !changed.is_empty() {
            git.run(&[&history::ADD, &changed[..], &NO_TEMPORARY_FILES].concat())?;
        }
        git.object(&["write-tree"])
    };
    let tree = made();
    file::if_exists(file::remove(&index))?;
    tree
}

fn quoted(path: &str) -> String {
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

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
fn check_sizes(files: &Listing, sizes: &BTreeMap<String, u64>) -> Result<(), String> {
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
fn check_count(count: usize) -> Result<(), String> {
    if count > FILES_CAP { Err(format!("it has more than {FILES_CAP} files")) } else { Ok(()) }
}

/// The refusal of a commit.
fn refused(whose: &str, why: &str) -> Error {
    Error::refused(format!("{whose} cannot be merged: {why}")).hint("nothing was changed")
}

/// What is in a directory: a path, and the name of its object.
#[derive(Debug, PartialEq)]
enum TreeEntry {
    File(String, String),
    Directory(String, String),
}

/// What is in `dir`, read from git's object for it: `MODE NAME<NUL>OID` again and again, of which the last has `length`
/// bytes. Why not, if there is something in it that a store never has.
fn entries(dir: &str, kind: &str, mut tree: &[u8], length: usize) -> Result<Vec<TreeEntry>, String> {
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
