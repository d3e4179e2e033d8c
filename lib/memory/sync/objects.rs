//! git's objects: the files of a commit, and a commit from files. Nothing is ever checked out.

use crate::base::error::{Error, Result};
use crate::memory::sync::listing::{Listing, refused};
use crate::memory::sync::side::Files;
use crate::store::git::Git;
use std::collections::{BTreeMap, BTreeSet};

/// The most that git prints for a list of files or of objects, in bytes.
const LIST_CAP: usize = 96 << 20;
/// The most bytes of files that are read at once. All of them may have a gigabyte.
const READ_CAP: usize = (1 << 30) + (64 << 20);
/// The commit with a merge, until the branch has it.
const MERGED: &str = "refs/agent-memory/merged";

/// Objects by name: their type and bytes.
pub(super) type Objects = BTreeMap<String, (String, Vec<u8>)>;

pub(super) fn words(arguments: &[&str]) -> Vec<String> {
    ["git"].iter().chain(arguments).map(|word| (*word).to_owned()).collect()
}

/// The files of a commit or tree. `whose` says where it is from.
pub(super) fn listing(git: &Git, commit: &str, whose: &str) -> Result<Listing> {
    let finished = git
        .call(&words(&["ls-tree", "-r", "-l", "-z", "--full-tree", commit]), Vec::new(), LIST_CAP)
        .map_err(|why| refused(whose, why.message()))?;
    match finished.failure() {
        Some(why) => Err(refused(whose, &format!("git cannot list its files: {why}"))),
        None => Listing::parse(&finished.stdout, whose),
    }
}

/// Reads objects.
pub(super) fn read(git: &Git, names: &BTreeSet<&str>) -> Result<Objects> {
    let mut objects = Objects::new();
    if names.is_empty() {
        return Ok(objects);
    }
    let input: String = names.iter().flat_map(|name| [name, "\n"]).collect();
    let finished = git.call(&words(&["cat-file", "--batch"]), input.into_bytes(), READ_CAP)?;
    if let Some(why) = finished.failure() {
        return Err(Error::io(format!("\"git cat-file\" {why}")));
    }
    let mut rest = &finished.stdout[..];
    // `OID TYPE SIZE`, a line end, the bytes, a line end.
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let head = String::from_utf8_lossy(&rest[..end]).into_owned();
        let fields: Vec<&str> = head.split(' ').collect();
        let found = match fields[..] {
            [name, kind, size] => size.parse::<usize>().ok().map(|size| (name, kind, size)),
            _ => None,
        };
        let whole = found.and_then(|(name, kind, size)| {
            let bytes = rest.get(end + 1..end + 1 + size)?;
            Some((name, kind, bytes))
        });
        let Some((name, kind, bytes)) = whole else {
            return Err(
                Error::corrupt(format!("git lacks an object: {head}")).hint("run git fsck in the store")
            );
        };
        objects.insert(name.to_owned(), (kind.to_owned(), bytes.to_vec()));
        rest = rest.get(end + 1 + bytes.len() + 1..).unwrap_or_default();
    }
    Ok(objects)
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

/// What a commit changes in the files of its first parent; `None` removes one.
pub(super) type Changes = BTreeMap<String, Option<Vec<u8>>>;

/// Makes a commit with two parents, which no branch has yet.
pub(super) fn commit(
    git: &Git,
    ours: &str,
    theirs: &str,
    changes: &Changes,
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
    for (path, bytes) in changes.iter().filter(|(_, bytes)| bytes.is_none()).chain(changes) {
        match bytes {
            None => stream.extend_from_slice(format!("D {}\n", quoted(path)).as_bytes()),
            Some(bytes) => {
                let line = format!("M 100644 inline {}\ndata {}\n", quoted(path), bytes.len());
                stream.extend_from_slice(line.as_bytes());
                stream.extend_from_slice(bytes);
                stream.push(b'\n');
            }
        }
    }
    stream.extend_from_slice(b"done\n");
    // Forced: it is our own note of a commit, which nobody else has.
    let finished = git.call(&words(&["fast-import", "--quiet", "--force"]), stream, 1 << 20)?;
    if let Some(why) = finished.failure() {
        return Err(Error::io(format!("\"git fast-import\" {why}")));
    }
    git.line(&["rev-parse", "--verify", MERGED])
}

fn quoted(path: &str) -> String {
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
