//! Ids for notes that a model proposes, and the links between them.

use crate::store::entry::EntryId;
use std::collections::{BTreeMap, BTreeSet};

/// An id that is in no use yet; from here on it is.
pub(super) fn new_id(title: &str, created_at: i64, ids: &mut BTreeSet<EntryId>) -> EntryId {
    let id = EntryId::make(title, created_at, |id| ids.contains(id));
    ids.insert(id.clone());
    id
}

/// The longest inside of a link, in bytes: a title.
const LINK_CAP: usize = 200;

/// `[[n1]]` becomes the id that the entry n1 got; a link that leads nowhere becomes plain text and is named.
/// Code stays as it is: `[[ -f x ]]` and `a[[0]]` are no links. So does every link of `old`, the text that is replaced:
/// people link to pages that are none of ours.
pub(super) fn resolve_intra_batch_links(
    body: &str,
    labels: &BTreeMap<String, EntryId>,
    ids: &BTreeSet<EntryId>,
    old: &str,
) -> (String, Vec<String>) {
    let mut resolved = String::with_capacity(body.len());
    let mut unknown = Vec::new();
    let mut fence: Option<&str> = None;
    for line in body.split_inclusive('\n') {
        let start = line.trim_start();
        let marks = ["```", "~~~"].into_iter().find(|marks| start.starts_with(marks));
        if fence.is_some() || marks.is_some() {
            fence = match (fence, marks) {
                (Some(open), Some(mark)) if open == mark => None,
                (None, mark) => mark,
                (open, _) => open,
            };
            resolved.push_str(line);
            continue;
        }
        // Every second piece between backticks is code.
        for (index, piece) in line.split_inclusive('`').enumerate() {
            match index % 2 {
                0 => resolve_piece(piece, labels, ids, old, &mut resolved, &mut unknown),
                _ => resolved.push_str(piece),
            }
        }
    }
    (resolved, unknown)
}

fn resolve_piece(
    piece: &str,
    labels: &BTreeMap<String, EntryId>,
    ids: &BTreeSet<EntryId>,
    old: &str,
    resolved: &mut String,
    unknown: &mut Vec<String>,
) {
    let mut rest = piece;
    while let Some((before, after)) = rest.split_once("[[") {
        let Some((inner, behind)) = after.split_once("]]").filter(|(inner, _)| is_link(inner)) else {
            resolved.push_str(before);
            resolved.push_str("[[");
            rest = after;
            continue;
        };
        resolved.push_str(before);
        // `[[id__a1B2c3|words]]` shows other words.
        let name = inner.split('|').next().unwrap_or(inner);
        match (labels.get(name), EntryId::parse(name)) {
            (Some(id), _) => resolved.push_str(&format!("[[{id}]]")),
            (None, Some(id)) if ids.contains(&id) => resolved.push_str(&format!("[[{id}]]")),
            (None, _) if old.contains(&format!("[[{inner}]]")) => resolved.push_str(&format!("[[{inner}]]")),
            (None, _) => {
                unknown.push(inner.to_owned());
                resolved.push_str(inner);
            }
        }
        rest = behind;
    }
    resolved.push_str(rest);
}

/// A name, or words: not a number, nor what a shell tests, which has blanks at its ends.
fn is_link(inner: &str) -> bool {
    !inner.is_empty()
        && inner.len() <= LINK_CAP
        && inner.trim() == inner
        && !inner.contains(['[', ']', '\n', '$', '='])
        && !inner.chars().all(|c| c.is_ascii_digit())
}
