//! Two machines made a note each, and both drew the same id: one of the notes gets another.

use crate::base::text::one_line;
use crate::memory::sync::side::{Files, Side, Sides, place_of};
use crate::store::entry::{Entry, EntryId, Meta, mentioned};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Gives such twins among the notes of both sides another id; `taken` are further ids in use. Returns a line about each.
pub(super) fn tell_apart(
    sides: Sides,
    base: &Side,
    [one, two]: [&mut Side; 2],
    mut taken: BTreeSet<EntryId>,
) -> Vec<String> {
    for (id, note) in [base, one, two].iter().flat_map(|side| &side.notes) {
        taken.insert(id.clone());
        taken.extend(note.entry.meta().aliases.iter().cloned());
    }
    let (mut said, mut new_one, mut new_two) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    for (id, ours) in one.notes.iter().filter(|(id, _)| !base.notes.contains_key(*id)) {
        let Some(theirs) = two.notes.get(id) else { continue };
        // An id follows from the time of creation. With the same time it is one note, copied.
        if ours.entry.meta().created_at == theirs.entry.meta().created_at {
            continue;
        }
        let rank = |entry: &Entry| (entry.meta().created_at, Sha256::digest(entry.bytes()));
        let (later, list) = match rank(&ours.entry) > rank(&theirs.entry) {
            true => (ours, &mut new_one),
            false => (theirs, &mut new_two),
        };
        let Meta { title, created_at, .. } = later.entry.meta();
        let new = EntryId::make(title, *created_at, |id| taken.contains(id));
        taken.insert(new.clone());
        said.push(format!("two notes had the id {id}; \"{}\" is {new} now", one_line(title, 80)));
        list.insert(id.clone(), new);
    }
    for (side, files, new) in [(one, sides.one, new_one), (two, sides.two, new_two)] {
        if !new.is_empty() {
            *side = Side::of(&renamed(files, sides.base, &new));
        }
    }
    said
}

/// The files with the new ids, wherever this side has mentioned the old ones: in the note, its name, links, aliases,
/// proposals. Files that it has not changed since the base speak of another note.
fn renamed(files: &Files, base: &Files, new: &BTreeMap<EntryId, EntryId>) -> Files {
    let mut renamed = Files::new();
    for (path, bytes) in files {
        if base.get(path) == Some(bytes) {
            renamed.insert(path.clone(), bytes.clone());
            continue;
        }
        let path = with_ids(path, new).unwrap_or_else(|| path.clone());
        let text = std::str::from_utf8(bytes).ok().and_then(|text| with_ids(text, new));
        let bytes = match text {
            Some(text) if place_of(&path).is_some() => sealed_as_before(bytes, text),
            Some(text) => text.into_bytes(),
            None => bytes.clone(),
        };
        renamed.insert(path, bytes);
    }
    renamed
}

/// `None` if the text mentions none of them.
fn with_ids(text: &str, new: &BTreeMap<EntryId, EntryId>) -> Option<String> {
    let found: BTreeSet<EntryId> = mentioned(text).filter(|id| new.contains_key(id)).collect();
    let renamed = found.iter().fold(text.to_owned(), |text, id| text.replace(id.as_str(), new[id].as_str()));
    (!found.is_empty()).then_some(renamed)
}

/// Another id in a link is no edit by a person.
fn sealed_as_before(before: &[u8], text: String) -> Vec<u8> {
    let was_sealed =
        Entry::parse(before.to_vec()).is_ok_and(|old| old.meta().written.is_some() && !old.is_edited());
    let sealed = Entry::parse(text.clone().into_bytes()).and_then(|mut entry| entry.seal().map(|()| entry));
    match sealed {
        Ok(entry) if was_sealed => entry.bytes().to_vec(),
        _ => text.into_bytes(),
    }
}
