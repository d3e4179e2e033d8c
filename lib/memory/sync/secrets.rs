//! Nothing unredacted leaves this machine: what is not published yet is searched before it is.

use crate::base::error::Result;
use crate::memory::redact::Redactor;
use crate::memory::sync::objects::{self, Listing};
use crate::store::git::{Git, unusable};
use std::collections::{BTreeMap, BTreeSet};

/// How many objects are read at once.
const AT_ONCE: usize = 1_000;

/// The secrets in commits that nobody else has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Secrets {
    /// The files that hold one now, without the secret in their names.
    pub(super) files: BTreeSet<String>,
    /// One is in a commit whose file does not hold it any more.
    pub(super) in_the_past: bool,
}

/// Searches all that `ours` has and `published` has not, each a commit and its listing.
pub(super) fn search(
    git: &Git,
    (ours, listing): (&str, &Listing),
    published: Option<(&str, &Listing)>,
    redactor: &Redactor,
) -> Result<Secrets> {
    let mut arguments = vec!["rev-list", "--objects", ours];
    let without = published.map(|(commit, _)| format!("^{commit}"));
    arguments.extend(without.as_deref());
    let lines = git.lines(&arguments)?;
    // `OID PATH`; of a commit only the first.
    let mut new: Vec<(&str, &str)> =
        lines.iter().map(|line| line.split_once(' ').unwrap_or((line, ""))).collect();
    let named: BTreeSet<&str> = new.iter().map(|(oid, _)| *oid).collect();
    if !named.contains(ours) {
        return Err(unusable(&arguments));
    }
    // What is in no file there is searched, too, whatever git has named.
    let known: BTreeSet<&String> = published.iter().flat_map(|(_, listing)| listing.values()).collect();
    let others = listing.iter().filter(|(_, oid)| !known.contains(oid) && !named.contains(oid.as_str()));
    new.extend(others.map(|(path, oid)| (oid.as_str(), path.as_str())));
    let mut now: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (path, oid) in listing {
        now.entry(oid).or_default().push(path);
    }
    let has_secret = |text: &str| !redactor.kinds(text).is_empty();
    let mut secrets = Secrets::default();
    for some in new.chunks(AT_ONCE) {
        let names: BTreeSet<&str> = some.iter().map(|(oid, _)| *oid).collect();
        let read = objects::read(git, &names)?;
        for (oid, path) in some {
            let Some((kind, bytes)) = read.get(*oid).filter(|(kind, _)| kind != "tree") else { continue };
            let is_in_name = kind == "blob" && has_secret(path);
            let text = String::from_utf8_lossy(bytes);
            // Of a commit the message: its head names git's objects and people.
            let text = match kind.as_str() {
                "commit" => text.split_once("\n\n").map_or("", |(_, message)| message),
                _ => &text,
            };
            if !is_in_name && !has_secret(text) {
                continue;
            }
            match now.get(oid) {
                Some(paths) => secrets.files.extend(paths.iter().map(|path| redactor.cleaned(path))),
                None => secrets.in_the_past = true,
            }
        }
    }
    // A file that only got another name is no new object of its own.
    let named = new.iter().filter(|(_, path)| has_secret(path) && !listing.contains_key(*path));
    secrets.in_the_past |= named.count() > 0;
    Ok(secrets)
}
