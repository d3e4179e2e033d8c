//! References between notes: links, aliases and `supersededBy`.

use crate::memory::doctor::finding::{Check, Diagnosis};
use crate::memory::doctor::notes::{CheckedNotes, NoteFacts};
use crate::store::entry::EntryId;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// For how many broken links a similar id is suggested: each takes a comparison with all ids.
const SUGGESTIONS: usize = 20;

pub(super) fn check(notes: &CheckedNotes, to: &mut Diagnosis) {
    let graph = LinkGraph::of(notes);
    graph.links(to);
    graph.aliases(to);
    graph.successors(to);
}

/// All ids, and the notes that have them.
struct LinkGraph<'a> {
    notes: &'a [NoteFacts],
    own: HashMap<&'a EntryId, &'a NoteFacts>,
    /// The notes by alias. A note that names it twice is there once.
    aliases: BTreeMap<&'a EntryId, Vec<&'a NoteFacts>>,
    /// The ids in the names of unreadable files.
    unreadable: HashSet<&'a EntryId>,
}

impl<'a> LinkGraph<'a> {
    fn of(checked: &'a CheckedNotes) -> LinkGraph<'a> {
        let mut aliases: BTreeMap<&EntryId, Vec<&NoteFacts>> = BTreeMap::new();
        for note in &checked.notes {
            for alias in note.meta.aliases.iter().collect::<BTreeSet<_>>() {
                aliases.entry(alias).or_default().push(note);
            }
        }
        LinkGraph {
            notes: &checked.notes,
            own: checked.notes.iter().map(|note| (&note.meta.id, note)).collect(),
            aliases,
            unreadable: checked.unreadable_ids.iter().collect(),
        }
    }

    fn knows(&self, id: &EntryId) -> bool {
        self.own.contains_key(id) || self.aliases.contains_key(id) || self.unreadable.contains(id)
    }

    fn links(&self, to: &mut Diagnosis) {
        let mut suggestions = SUGGESTIONS;
        for note in self.notes {
            for id in note.links.iter().filter(|id| !self.knows(id)) {
                let similar = if suggestions > 0 { self.similar(id) } else { None };
                suggestions = suggestions.saturating_sub(1);
                let mend = match similar {
                    Some(similar) => format!("did you mean [[{similar}]]?"),
                    None => "remove the link, or link to an existing note".to_owned(),
                };
                let what = format!("its link [[{id}]] points to no note");
                to.error(Check::Link, &note.shown, what, mend);
            }
        }
    }

    /// An id that differs by one typing error, or in case.
    fn similar(&self, id: &EntryId) -> Option<&'a EntryId> {
        let is_similar = |other: &&&EntryId| {
            let (a, b) = (id.as_str(), other.as_str());
            a.eq_ignore_ascii_case(b) || strsim::damerau_levenshtein(a, b) == 1
        };
        self.own.keys().filter(is_similar).min().copied()
    }

    /// The note that supersedes this one. Only archived notes are superseded.
    fn next(&self, note: &NoteFacts) -> Option<&'a NoteFacts> {
        let next = note.meta.superseded_by.as_ref().filter(|_| !note.is_in_use())?;
        let by_alias = || self.aliases.get(next)?.first().copied();
        self.own.get(next).copied().or_else(by_alias)
    }

    /// The successors of a note, one after the other. In a circle, each note comes once.
    fn successors_of(&self, note: &'a NoteFacts) -> impl Iterator<Item = &'a NoteFacts> {
        let mut seen = HashSet::new();
        std::iter::successors(self.next(note), |note| self.next(note))
            .take_while(move |note| seen.insert(&note.meta.id))
    }

    /// An alias is the id of a note that was merged into this one. The archived note with that id, and archived
    /// notes with that alias, must lead to the same successor, or links are ambiguous.
    fn aliases(&self, to: &mut Diagnosis) {
        for (alias, notes) in &self.aliases {
            let own = self.own.get(alias).copied();
            let successors: BTreeSet<&EntryId> = notes
                .iter()
                .copied()
                .chain(own)
                .map(|note| &self.successors_of(note).last().unwrap_or(note).meta.id)
                .collect();
            let [first, ..] = notes[..] else { continue };
            if successors.len() < 2 {
                continue;
            }
            let what = match own.filter(|own| successors.contains(&own.meta.id)) {
                Some(own) => format!("its alias {alias} is the id of another note, {}", file_name(own)),
                None => {
                    let ids: Vec<&str> = successors.iter().map(|id| id.as_str()).take(4).collect();
                    format!("its alias {alias} is ambiguous; it stands for {}", ids.join(", "))
                }
            };
            let mend = "remove the alias from the front matter of all notes but one";
            to.error(Check::Alias, &first.shown, what, mend);
        }
    }

    fn successors(&self, to: &mut Diagnosis) {
        for note in self.notes {
            let Some(next) = &note.meta.superseded_by else { continue };
            if note.is_in_use() {
                let what = format!("is in use, but its front matter says that {next} supersedes it");
                let mend = format!("memory-remove {} archives it; or remove supersededBy", note.meta.id);
                to.warning(Check::SupersededBy, &note.shown, what, mend);
                continue;
            }
            let what = if !self.knows(next) {
                format!("its supersededBy, {next}, is not the id of a note")
            } else if self.successors_of(note).any(|next| next.meta.id == note.meta.id) {
                format!("its supersededBy, {next}, leads back to the note itself")
            } else {
                continue;
            };
            let mend = "name an existing note, or remove supersededBy from the front matter";
            to.error(Check::SupersededBy, &note.shown, what, mend);
        }
    }
}

fn file_name(note: &NoteFacts) -> String {
    note.shown.file_name().map(|name| format!("\"{}\"", name.to_string_lossy())).unwrap_or_default()
}
