//! Keys and comments in front matter that are not ours: both sides may have added some.

use crate::store::entry::Entry;
use crate::store::entry::is_own_key;
use std::collections::{BTreeMap, BTreeSet};

/// The lines of a front matter in groups: a key with what belongs to it, or a comment. In the order of the file.
struct KeyGroups<'a>(Vec<(Option<&'a str>, &'a str)>);

impl<'a> KeyGroups<'a> {
    fn of(yaml: &'a str) -> KeyGroups<'a> {
        let mut groups: Vec<(Option<&str>, &str)> = Vec::new();
        let mut start = 0;
        let mut at = 0;
        let mut name = None;
        for line in yaml.split_inclusive('\n') {
            let is_start = line.starts_with(|c: char| !c.is_whitespace() && c != '-');
            if is_start {
                if at > start {
                    groups.push((name, &yaml[start..at]));
                }
                start = at;
                name = if line.starts_with('#') { None } else { line.split(':').next() };
            }
            at += line.len();
        }
        if at > start {
            groups.push((name, &yaml[start..at]));
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

fn groups(entry: &Entry) -> KeyGroups<'_> {
    KeyGroups::of(entry.front_matter())
}

/// A key is there twice.
pub(super) fn has_twins(bytes: &[u8]) -> bool {
    let Ok(entry) = Entry::parse(bytes.to_vec()) else { return true };
    let mut seen = BTreeSet::new();
    !groups(&entry).0.iter().filter_map(|(key, _)| *key).all(|key| seen.insert(key))
}

/// The winner's file with the foreign keys and comments that only the other side has added or changed, and without
/// those that the other side has taken away.
pub(super) fn joined(base: Option<&Entry>, winner: &Entry, other: &Entry) -> Vec<u8> {
    let (ours, theirs) = (groups(winner), groups(other));
    let before = base.map(groups);
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
