//! Three versions of one note become one.
//!
//! Which side is "ours" does not matter: where both have changed the same, the version with the greater pair of
//! `updatedAt` and hash wins, so that every machine comes to the same bytes.

use crate::base::error::Result;
use crate::memory::sync::lines::{self, MergedLines, joined, pick, summed};
use crate::store::entry::{By, Entry, Meta, Status, Tier, is_own_key, one_line};
use crate::store::proposal::{Draft, Op, Proposal};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Why the other text waits.
const REASON: &str = "Two machines changed the same lines of the note. This is the text of the other one.";

/// A merged note, and what did not go into it.
#[derive(Debug)]
pub(super) struct MergedNote {
    pub(super) entry: Entry,
    /// The other text, where lines clashed.
    pub(super) conflict: Option<Proposal>,
    /// The file of the other side, whose front matter could not be merged.
    pub(super) unmerged: Option<Vec<u8>>,
}

/// The later version wins. Of two of the same time it is the one whose hash is greater.
pub(super) fn later_first<'a>(one: &'a Entry, two: &'a Entry) -> (&'a Entry, &'a Entry) {
    let rank = |entry: &Entry| (entry.meta().updated_at, Sha256::digest(entry.bytes()));
    if rank(one) >= rank(two) { (one, two) } else { (two, one) }
}

/// Merges two versions of a note. `base` is what both were made from, if they have that in common.
pub(super) fn merge(base: Option<&Entry>, one: &Entry, two: &Entry) -> MergedNote {
    let alone = |entry: &Entry| MergedNote { entry: entry.clone(), conflict: None, unmerged: None };
    if one == two {
        return alone(&with_reads_of_both(base, one));
    }
    if base == Some(two) {
        return alone(one);
    }
    if base == Some(one) {
        return alone(two);
    }
    let (winner, other) = later_first(one, two);
    let body = lines::merge(base.map_or(b"", Entry::body), winner.body(), other.body());
    let meta = merged_meta(base, winner, other);
    let (mut entry, mut unmerged) = written(base, winner, other, &meta, &body.text);
    // What machines wrote stays known as that, unless a person has edited one of the two.
    let is_sealed = meta.written.is_some() && !winner.is_edited() && !other.is_edited();
    if is_sealed && unmerged.is_none() && entry.seal().is_err() {
        unmerged = Some(other.bytes().to_vec());
    }
    let conflict = conflict(base, winner, other, &entry, &body);
    if body.other.is_some() && conflict.is_none() {
        unmerged = Some(other.bytes().to_vec());
    }
    MergedNote { entry, conflict, unmerged }
}

/// Both machines read the note in the same second, so they have the same bytes: that is two reads.
fn with_reads_of_both(base: Option<&Entry>, same: &Entry) -> Entry {
    let mut entry = same.clone();
    if let Some(base) = base {
        let used = summed(Some(base.meta().used), same.meta().used, same.meta().used);
        // One that cannot be changed stays as it is.
        let _ = entry.update(|meta| meta.used = used);
    }
    entry
}

fn merged_meta(base: Option<&Entry>, winner: &Entry, other: &Entry) -> Meta {
    let (w, o) = (winner.meta(), other.meta());
    let mut meta = merged_values(base.map(Entry::meta), w, o);
    // It stays known that a person has edited one of the two.
    let edited = [winner, other].into_iter().find(|entry| entry.is_edited());
    meta.written = edited.unwrap_or(winner).meta().written.clone().or_else(|| o.written.clone());
    // Both sides write a changed title in the same form.
    if w.title != o.title {
        meta.title = one_line(&meta.title);
    }
    if w.summary != o.summary {
        meta.summary = one_line(&meta.summary);
    }
    if [winner, other].iter().all(|entry| base.is_none_or(|base| says(base) != says(entry))) {
        // It says something of both, so the weaker of the two vouches for it.
        meta.by = w.by.max(o.by);
    }
    meta.status = match (meta.tier, meta.status) {
        (Tier::Hot, _) => Status::Promoted,
        (_, Status::Promoted) => Status::Consolidated,
        (_, status) => status,
    };
    meta
}

fn merged_values(base: Option<&Meta>, winner: &Meta, other: &Meta) -> Meta {
    macro_rules! picked {
        ($key:ident) => {
            pick(base.map(|meta| &meta.$key), &winner.$key, &other.$key).clone()
        };
    }
    macro_rules! joined_by {
        ($key:ident, $name:expr) => {
            joined(base.map_or(&[][..], |meta| &meta.$key), &winner.$key, &other.$key, $name)
        };
    }
    let is_known = base.is_some_and(|base| [winner, other].iter().any(|it| it.created_at == base.created_at));
    Meta {
        title: picked!(title),
        summary: picked!(summary),
        tags: joined_by!(tags, String::clone),
        paths: joined_by!(paths, String::clone),
        status: picked!(status),
        tier: picked!(tier),
        scope: picked!(scope),
        pinned: picked!(pinned),
        until: picked!(until),
        rank: picked!(rank),
        by: picked!(by),
        outside: joined_by!(outside, String::clone),
        branch: picked!(branch),
        confirmed: winner.confirmed.max(other.confirmed),
        used: summed(base.map(|meta| meta.used), winner.used, other.used),
        last_used: winner.last_used.max(other.last_used),
        created_at: if is_known { picked!(created_at) } else { winner.created_at.min(other.created_at) },
        updated_at: winner.updated_at.max(other.updated_at),
        anchors: picked!(anchors),
        sources: joined_by!(sources, |source| serde_json::to_string(source).unwrap_or_default()),
        aliases: joined_by!(aliases, ToString::to_string),
        superseded_by: picked!(superseded_by),
        ..Meta::new(winner.id.clone())
    }
}

pub(super) fn says(entry: &Entry) -> (&str, &str, &[u8]) {
    (&entry.meta().title, &entry.meta().summary, entry.body())
}

/// The note with these values and this body, and with the foreign keys and comments of both sides. Second: the file of
/// a side that could not be merged.
fn written(
    base: Option<&Entry>,
    winner: &Entry,
    other: &Entry,
    meta: &Meta,
    body: &[u8],
) -> (Entry, Option<Vec<u8>>) {
    let dressed = |entry: &Entry| -> Result<Entry> {
        let mut entry = entry.clone();
        entry.set_body(body);
        entry.update(|old| old.clone_from(meta))?;
        Ok(entry)
    };
    let unmerged = |entry: &Entry| Some(entry.bytes().to_vec());
    let (ours, theirs) = match (dressed(winner), dressed(other)) {
        (Ok(ours), Ok(theirs)) => (ours, theirs),
        // A front matter in braces, or with anchors: the other one carries all.
        (Ok(ours), Err(_)) => return (ours, unmerged(other)),
        (Err(_), Ok(theirs)) => return (theirs, unmerged(winner)),
        (Err(_), Err(_)) => return (winner.clone(), unmerged(other)),
    };
    let before = base.and_then(|base| dressed(base).ok());
    if ours == theirs || before.as_ref() == Some(&theirs) {
        return (ours, None);
    }
    if before.as_ref() == Some(&ours) {
        return (theirs, None);
    }
    let is_right =
        |entry: &Entry| entry.meta() == ours.meta() && entry.body() == ours.body() && entry.fits().is_ok();
    let by_lines = before.as_ref().and_then(|before| {
        let MergedLines { text, other } = lines::merge(before.bytes(), ours.bytes(), theirs.bytes());
        other.is_none().then_some(text)
    });
    let by_lines = by_lines.filter(|bytes| !has_twins(bytes));
    let candidates = by_lines.into_iter().chain([with_foreign_keys(before.as_ref(), &ours, &theirs)]);
    let found = candidates.filter_map(|bytes| Entry::parse(bytes).ok()).find(is_right);
    match found {
        Some(entry) => (entry, None),
        None => (ours, unmerged(other)),
    }
}

/// The other text, as a change that waits. `None` if there is none, or if it is no text.
fn conflict(
    base: Option<&Entry>,
    winner: &Entry,
    other: &Entry,
    merged: &Entry,
    body: &MergedLines,
) -> Option<Proposal> {
    let body = String::from_utf8(body.other.clone()?).ok()?;
    let (b, w, o) = (base.map(Entry::meta), winner.meta(), other.meta());
    let mut title = one_line(pick(b.map(|meta| meta.title.as_str()), &o.title, &w.title));
    if title.is_empty() {
        title = o.id.to_string();
    }
    let summary = one_line(pick(b.map(|meta| meta.summary.as_str()), &o.summary, &w.summary));
    let draft = Draft { title, summary, body, ..Draft::of(merged) };
    let by = match o.is_typed() || other.is_edited() {
        true => By::Person,
        false => o.by.unwrap_or(By::Agent),
    };
    let mut proposal = Proposal::about(merged, Op::Conflict, Some(draft), by, o.updated_at);
    proposal.reasons = vec![REASON.to_owned()];
    Some(proposal)
}

/// The lines of a front matter in groups: a key with what belongs to it, or a comment. In the order of the file.
struct KeyGroups<'a>(Vec<(Option<&'a str>, &'a str)>);

impl<'a> KeyGroups<'a> {
    fn of(entry: &'a Entry) -> KeyGroups<'a> {
        let yaml = entry.front_matter();
        let mut groups: Vec<(Option<&str>, &str)> = Vec::new();
        let (mut start, mut end) = (0, 0);
        for line in yaml.split_inclusive('\n') {
            let is_start = line.starts_with(|c: char| !c.is_whitespace() && c != '-');
            if is_start || groups.is_empty() {
                start = end;
                let is_key = is_start && !line.starts_with('#');
                groups.push((line.split(':').next().filter(|_| is_key), ""));
            }
            end += line.len();
            if let Some((_, text)) = groups.last_mut() {
                *text = &yaml[start..end];
            }
        }
        KeyGroups(groups)
    }

    fn foreign(&self) -> BTreeMap<&'a str, &'a str> {
        let keys = self.0.iter().filter_map(|(key, text)| Some(((*key)?, *text)));
        keys.filter(|(key, _)| !is_own_key(key)).collect()
    }

    fn comments(&self) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(|(key, _)| key.is_none()).map(|(_, text)| *text)
    }
}

/// A key is there twice.
fn has_twins(bytes: &[u8]) -> bool {
    let Ok(entry) = Entry::parse(bytes.to_vec()) else { return true };
    let mut seen = BTreeSet::new();
    !KeyGroups::of(&entry).0.iter().filter_map(|(key, _)| *key).all(|key| seen.insert(key))
}

/// The winner's file with the foreign keys and comments that only the other side has added or changed, and without
/// those that the other side has taken away.
fn with_foreign_keys(base: Option<&Entry>, winner: &Entry, other: &Entry) -> Vec<u8> {
    let (ours, theirs) = (KeyGroups::of(winner), KeyGroups::of(other));
    let before = base.map(KeyGroups::of);
    let old = before.as_ref().map(KeyGroups::foreign).unwrap_or_default();
    let old_comments: BTreeSet<&str> = before.iter().flat_map(KeyGroups::comments).collect();
    let (mine, yours) = (ours.foreign(), theirs.foreign());
    let mut yaml = String::new();
    for (key, text) in &ours.0 {
        let Some(key) = key.filter(|key| mine.contains_key(key)) else {
            yaml.push_str(text);
            continue;
        };
        let is_untouched = old.get(key) == Some(text);
        match yours.get(key) {
            Some(theirs) if is_untouched => yaml.push_str(theirs),
            None if is_untouched => {}
            _ => yaml.push_str(text),
        }
    }
    if !yaml.ends_with('\n') {
        yaml.push('\n');
    }
    for (key, text) in &yours {
        if !mine.contains_key(key) && old.get(key) != Some(text) {
            yaml.push_str(text);
        }
    }
    let have: BTreeSet<&str> = ours.comments().collect();
    for comment in theirs.comments().filter(|text| !have.contains(text) && !old_comments.contains(text)) {
        yaml.push_str(comment);
    }
    winner.with_front_matter(&yaml)
}
