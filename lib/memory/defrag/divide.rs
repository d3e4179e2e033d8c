//! What belongs together among all notes, shared out over calls.

use crate::base::error::Result;
use crate::base::parallel;
use crate::memory::defrag::ask::{line, weight};
use crate::memory::defrag::corpus::{Structure, id, linked_from, reach};
use crate::memory::defrag::group::{NoteNode, groups};
use crate::memory::defrag::similar::{Pair, pairs};
use crate::memory::defrag::{Defrag, Part};
use crate::store::entry::EntryId;
use crate::store::persistence::Note;
use std::collections::{BTreeMap, BTreeSet};

/// So many likely duplicates and linked notes come with a changed note.
const RELATED: usize = 6;
/// Up to so many, notes that share a tag come along, too.
const TAGGED: usize = 3;

/// All notes, by their numbers, and the calls to make about them.
pub struct Division<'a> {
    pub parts: Vec<Part>,
    pub structure: Structure,
    /// Notes that no call has room for.
    pub too_large: Vec<&'a Note>,
    settings: &'a Defrag<'a>,
    notes: &'a [Note],
    /// Of one prompt, in bytes.
    room: usize,
    is_asked: Vec<bool>,
    nodes: Vec<NoteNode<'a>>,
    pairs: Vec<Pair>,
}

/// Finds out what belongs together among `notes`, and makes the parts of it: of what is to be asked about and its
/// neighbours, and of the reaches whose tiers are still to be decided. What has waited longest goes first.
///
/// # Errors
/// `Config`: the settings leave no room for notes.
pub fn divide<'a>(
    settings: &'a Defrag,
    notes: &'a [Note],
    is_asked: &dyn Fn(&Note) -> bool,
    are_tiers_due: &dyn Fn(&str) -> bool,
) -> Result<Division<'a>> {
    let room = settings.room()?;
    let is_asked: Vec<bool> = notes.iter().map(is_asked).collect();
    let texts: Vec<String> = notes.iter().map(text).collect();
    let pairs = pairs(&texts);
    drop(texts);
    let weigh = |_: usize, at: &usize| if is_asked[*at] { weight(settings, &notes[*at]) } else { 0 };
    let weights = parallel::map(&(0..notes.len()).collect::<Vec<_>>(), weigh);
    let places: BTreeMap<&EntryId, usize> =
        notes.iter().enumerate().map(|(at, note)| (id(note), at)).collect();
    let node = |(note, bytes): (&'a Note, usize)| {
        let links = linked_from(note).iter().filter_map(|id| places.get(id).copied()).collect();
        NoteNode { bytes, tags: &note.entry.meta().tags, links }
    };
    let nodes = notes.iter().zip(weights).map(node).collect();
    let settled = notes.iter().zip(&is_asked).filter(|(_, is_asked)| !**is_asked);
    let named = |pair: &Pair| (id(&notes[pair.a]).clone(), id(&notes[pair.b]).clone(), pair.percent);
    let structure = Structure {
        settled: settled.map(|(note, _)| (id(note).clone(), note.entry.fingerprint())).collect(),
        pairs: pairs.iter().map(named).collect(),
    };
    let mut reaches: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, note) in notes.iter().enumerate() {
        reaches.entry(reach(note.entry.meta())).or_default().push(at);
    }
    let (parts, too_large) = (Vec::new(), Vec::new());
    let mut all = Division { parts, structure, too_large, settings, notes, room, is_asked, nodes, pairs };
    let mut shares = Vec::new();
    for (reach, members) in reaches {
        let is_due = are_tiers_due(&reach);
        shares.extend(all.share(reach, &members, is_due));
    }
    shares.sort_by_key(|(waits_since, _)| *waits_since);
    all.parts = shares.into_iter().flat_map(|(_, parts)| parts).collect();
    Ok(all)
}

fn text(note: &Note) -> String {
    let meta = note.entry.meta();
    format!("{}\n{}\n{}", meta.title, meta.summary, String::from_utf8_lossy(note.entry.body()))
}

impl Division<'_> {
    /// The calls about one reach, if any are to be made; and since when the oldest of its news waits, as a Unix time in
    /// milliseconds. What was left over once is not left over for ever.
    fn share(&mut self, reach: String, members: &[usize], is_due: bool) -> Option<(i64, Vec<Part>)> {
        let asked = with_neighbours(members, |at| self.is_asked[at], &self.nodes, &self.pairs);
        for &at in asked.iter().filter(|at| !self.is_asked[**at]) {
            self.nodes[at].bytes = weight(self.settings, &self.notes[at]);
        }
        let (groups, too_large) = groups(&asked, &self.nodes, &self.pairs, self.room);
        let too_large = too_large.into_iter().filter(|at| self.is_asked[*at]);
        self.too_large.extend(too_large.map(|at| &self.notes[at]));
        let oldest = |group: &[usize]| {
            let asked = group.iter().filter(|at| self.is_asked[**at]);
            asked.map(|at| self.notes[*at].entry.meta().updated_at).min()
        };
        let mut groups: Vec<(i64, Vec<usize>)> =
            groups.into_iter().filter_map(|group| Some((oldest(&group)?, group))).collect();
        groups.sort();
        let waits_since = if is_due { i64::MIN } else { groups.first()?.0 };
        let ids =
            |group: &[usize]| group.iter().map(|at| id(&self.notes[*at]).clone()).collect::<Vec<EntryId>>();
        let parts = match &groups[..] {
            [] => vec![Part::Tiers(reach)],
            [(_, group)] if self.is_room_for_lines(group, members) => vec![Part::Whole(reach, ids(group))],
            groups => {
                let parts = groups.iter().map(|(_, group)| Part::Group(reach.clone(), ids(group)));
                parts.chain([Part::Tiers(reach.clone())]).collect()
            }
        };
        Some((waits_since, parts))
    }

    /// Beside the whole of a group: a line of each other note that the tiers of its reach depend on.
    fn is_room_for_lines(&self, group: &[usize], members: &[usize]) -> bool {
        let others = members.iter().filter(|at| group.binary_search(at).is_err()).map(|at| &self.notes[*at]);
        let lines = self.structure.listed(others.collect());
        let lines: usize = lines.iter().map(|note| line(self.settings, note).len() + 1).sum();
        group.iter().map(|at| self.nodes[*at].bytes).sum::<usize>() + lines <= self.room
    }
}

/// What a changed note is shown with is what it may have to be merged with, or may have made wrong.
///
/// The changed notes among `members`, and the neighbours of each: likely duplicates first, then what it links to and what
/// links to it, then what shares a tag, the rarer the better. Ascending; `members` are, too.
fn with_neighbours(
    members: &[usize],
    is_news: impl Fn(usize) -> bool,
    nodes: &[NoteNode<'_>],
    pairs: &[Pair],
) -> Vec<usize> {
    let news: Vec<usize> = members.iter().copied().filter(|at| is_news(*at)).collect();
    if news.len() == members.len() {
        return news;
    }
    let there: BTreeSet<usize> = members.iter().copied().collect();
    let mut related: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    // The most alike come first.
    let links = members.iter().flat_map(|&at| nodes[at].links.iter().map(move |link| (at, *link)));
    for (a, b) in pairs.iter().map(|pair| (pair.a, pair.b)).chain(links) {
        related.entry(a).or_default().push(b);
        related.entry(b).or_default().push(a);
    }
    let mut tagged: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for &at in members {
        nodes[at].tags.iter().for_each(|tag| tagged.entry(tag).or_default().push(at));
    }
    let mut all: BTreeSet<usize> = news.iter().copied().collect();
    for at in news {
        let mut sharing: Vec<&Vec<usize>> =
            nodes[at].tags.iter().filter_map(|tag| tagged.get(tag.as_str())).collect();
        sharing.sort_by_key(|notes| notes.len());
        let related = related.get(&at).into_iter().flatten().map(|other| (other, RELATED));
        let sharing = sharing.into_iter().flatten().map(|other| (other, TAGGED));
        let mut near: BTreeSet<usize> = BTreeSet::new();
        for (other, most) in related.chain(sharing) {
            if near.len() < most && *other != at && there.contains(other) {
                near.insert(*other);
            }
        }
        all.extend(near);
    }
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(tags: &[String], links: Vec<usize>) -> NoteNode<'_> {
        NoteNode { bytes: 1, tags, links }
    }

    #[test]
    fn duplicates_links_in_both_directions_and_rare_tags_come_along() {
        let (common, rare) = (vec!["all".to_owned()], vec!["all".to_owned(), "rare".to_owned()]);
        let mut items: Vec<NoteNode<'_>> = (0..40).map(|_| item(&common, Vec::new())).collect();
        let pairs = [Pair { a: 3, b: 7, percent: 90 }, Pair { a: 1, b: 2, percent: 80 }];
        items[9].links = vec![7];
        items[7].links = vec![30, 39];
        // Of another reach.
        let members: Vec<usize> = (0..39).collect();
        assert_eq!(with_neighbours(&members, |at| at == 7, &items, &pairs), [3, 7, 9, 30]);
        items[20].tags = &rare;
        items[25].tags = &rare;
        assert_eq!(with_neighbours(&members, |at| at == 20, &items, &pairs), [0, 1, 20, 25]);
    }

    #[test]
    fn how_much_comes_along_grows_with_the_news_and_not_with_the_notes() {
        let tags = vec!["all".to_owned()];
        for count in [100, 10_000] {
            let items: Vec<NoteNode<'_>> = (0..count)
                .map(|n| item(&tags, (0..count).step_by(9).chain([(n + 1) % count]).collect()))
                .collect();
            let members: Vec<usize> = (0..count).collect();
            let news = [5, 17, 50];
            let all = with_neighbours(&members, |at| news.contains(&at), &items, &[]);
            assert!(all.len() <= news.len() * (1 + RELATED), "{}", all.len());
        }
        let items: Vec<NoteNode<'_>> = (0..5).map(|_| item(&tags, Vec::new())).collect();
        assert_eq!(with_neighbours(&[1, 2, 3], |_| true, &items, &[]), [1, 2, 3]);
        assert_eq!(with_neighbours(&[1, 2, 3], |_| false, &items, &[]), [0usize; 0]);
    }
}
