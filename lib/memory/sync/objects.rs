//! git's objects: the files of a commit, and a commit from files. Nothing is ever checked out.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::memory::sync::listing::{Listing, TreeEntry, check_count, check_sizes, entries, refused};
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
