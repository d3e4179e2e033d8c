//! git's objects: the files of a commit, and a commit from files. Nothing is ever checked out.

use crate::base::error::{Error, Result};
use crate::memory::sync::listing::{Entry, Listing, check_count, entries, refused};
use crate::memory::sync::side::Files;
use crate::store::git::{Git, command, unusable};
use crate::store::revision::{Revision, Version};
use std::collections::{BTreeMap, BTreeSet};

/// The most that git prints for the directories of a commit, or the sizes of its files, in bytes.
const LIST_CAP: usize = 96 << 20;
/// The most bytes of files that are read at once. All of them may have a gigabyte.
const READ_CAP: usize = (1 << 30) + (64 << 20);
/// The commit with a merge, until the branch has it.
const MERGED: &str = "refs/agent-memory/merged";

/// Objects by name: their type and bytes.
pub(super) type Objects = BTreeMap<String, (String, Vec<u8>)>;

/// The files of a commit or tree. `whose` says where it is from.
///
/// Not from `git ls-tree`: if the end of its output is lost, nothing shows it. For an object, git prints its length.
pub(super) fn listing(git: &Git, commit: &str, whose: &str) -> Result<Listing> {
    let unlisted = |why: Error| refused(whose, &format!("its files cannot be listed: {}", why.message()));
    let root = git.object(&["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).map_err(unlisted)?;
    let mut files = BTreeMap::new();
    let mut trees = Objects::new();
    let (mut dirs, mut count) = (vec![(String::new(), root)], 0);
    while !dirs.is_empty() {
        let names = dirs.iter().map(|(_, name)| name.as_str());
        let unknown: BTreeSet<&str> = names.filter(|name| !trees.contains_key(*name)).collect();
        trees.append(&mut read_up_to(git, &unknown, LIST_CAP).map_err(unlisted)?);
        let mut deeper = Vec::new();
        for (dir, name) in &dirs {
            let (kind, tree) = &trees[name];
            let entries = entries(dir, kind, tree, name.len() / 2).map_err(|why| refused(whose, &why))?;
            for entry in entries {
                match entry {
                    Entry::File(path, name) => drop(files.insert(path, name)),
                    Entry::Directory(path, name) => deeper.push((path, name)),
                }
            }
            check_count(files.len() + count + deeper.len()).map_err(|why| refused(whose, &why))?;
        }
        count += deeper.len();
        dirs = deeper;
    }
    let sizes = sizes(git, files.values().map(String::as_str).collect()).map_err(unlisted)?;
    Listing::of(files, &sizes).map_err(|why| refused(whose, &why))
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
    let finished = git.call(&command(&["cat-file", how]), input.into_bytes(), cap)?;
    match finished.failure() {
        Some(why) => Err(Error::io(format!("\"git cat-file\" {why}"))),
        None => Ok(finished.stdout),
    }
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

/// The text of a file of a listing, if it is there.
pub(super) fn text(git: &Git, listing: &Listing, path: &str) -> Result<Option<Vec<u8>>> {
    let Some(name) = listing.0.get(path) else { return Ok(None) };
    Ok(read(git, &BTreeSet::from([name.as_str()]))?.remove(name).map(|(_, bytes)| bytes))
}

/// The files of a listing at these paths.
pub(super) fn files(listing: &Listing, paths: &BTreeSet<String>, objects: &Objects) -> Result<Files> {
    let at = |path: &String| Some((path.clone(), listing.0.get(path)?));
    let bytes = |(path, oid): (String, &String)| match objects.get(oid) {
        Some((_, bytes)) => Ok((path, bytes.clone())),
        None => Err(Error::corrupt(format!("git lacks the object {oid}")).hint("run git fsck in the store")),
    };
    paths.iter().filter_map(at).map(bytes).collect()
}

/// Makes a commit with two parents, which no branch has yet: what becomes of the files of the first one.
pub(super) fn commit(
    git: &Git,
    ours: &str,
    theirs: &str,
    revisions: &[Revision],
    message: &str,
) -> Result<String> {
    let who = git.line(&["var", "GIT_COMMITTER_IDENT"])?;
    let mut stream = Vec::new();
    let head = format!(
        "feature done\ncommit {MERGED}\ncommitter {who}\ndata {}\n{message}\nfrom {ours}\nmerge {theirs}\n",
        message.len()
    );
    stream.extend_from_slice(head.as_bytes());
    // Removals first, or a directory could not take the place of a file.
    let path_of = |version: &Version| quoted(&version.path().to_string_lossy());
    for Revision { before, after } in revisions {
        if let Some(old) =
            before.as_ref().map(path_of).filter(|old| after.as_ref().map(path_of).as_ref() != Some(old))
        {
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
    let finished = git.call(&command(&["fast-import", "--quiet", "--force"]), stream, 1 << 20)?;
    if let Some(why) = finished.failure() {
        return Err(Error::io(format!("\"git fast-import\" {why}")));
    }
    git.object(&["rev-parse", "--verify", MERGED])
}

fn quoted(path: &str) -> String {
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
