//! What a session in one place should know: the notes of its repository and those that hold everywhere, in one section.
//!
//! It is what `memory-recall` gives. A file's section has one audience; this one has two, and may have to fit into so many
//! bytes: then the repository's notes come first, as they are the nearer ones.

use crate::base::error::Result;
use crate::config::memory::MemoryConfig;
use crate::memory::search::Index;
use crate::memory::section::gather::{Limits, NoteCounts, Pool, Selection};
use crate::memory::section::render;
use crate::store::entry::EntryId;
use crate::store::persistence::Broken;
use jiff::civil::Date;
use std::collections::BTreeSet;

/// The repository's notes take up so much of the room, in percent, and hot ones so much of what is theirs.
const REPOSITORY: usize = 65;
const HOT: usize = 70;
/// What the section has besides notes: heading, introduction, numbers.
const FRAME: usize = 700;

/// Notes that the reader has already: whole ones, and those of which it has the line.
#[derive(Debug, Default)]
pub struct Known {
    pub whole: BTreeSet<EntryId>,
    pub listed: BTreeSet<EntryId>,
}

#[derive(Debug)]
pub struct Here {
    /// From marker to marker.
    pub section: String,
    pub counts: NoteCounts,
    /// The notes that stand in it.
    pub notes: Known,
}

/// The notes for a session in one place: of the repository, if there is one, then those that hold everywhere.
pub struct Around {
    pool: Pool,
    limits: Limits,
}

impl Around {
    pub fn of(config: &MemoryConfig, index: &Index, repo: Option<&str>, today: Date) -> Result<Around> {
        let audiences = repo.map(|repo| Some(repo.to_owned())).into_iter().chain([None]).collect();
        Ok(Around { pool: Pool::read(index, audiences, today)?, limits: Limits::of(&config.agents_md) })
    }

    /// What is known of the text of a note that stands in a section, see [`Entry::told`](crate::store::entry::Entry::told). Empty
    /// if it is not for this place.
    pub fn told(&self, id: &EntryId) -> String {
        self.pool.note(id).map(|note| note.entry.told()).unwrap_or_default()
    }

    pub fn broken(&self) -> &[Broken] {
        &self.pool.broken
    }

    /// The section without what the reader knows already, in at most `room` bytes. The repository's notes come first, except
    /// that those that hold everywhere have what is left of their share.
    pub fn section(&self, known: &Known, room: Option<usize>) -> Here {
        let mut all = Selection { waiting: self.pool.waiting_for(None), ..Selection::default() };
        let mut left = room.map(|room| room.saturating_sub(FRAME));
        let audiences = self.pool.audiences.len();
        for audience in 0..audiences {
            let rest = match audience + 1 < audiences {
                true => left.map(|left| self.size(audience + 1, left * (100 - REPOSITORY) / 100)),
                false => None,
            };
            let selection = self.fitting(audience, left.map(|left| left - rest.unwrap_or_default()));
            left = left.map(|left| left.saturating_sub(size(&selection)));
            let is_new = |(id, _): &(EntryId, String)| !known.whole.contains(id);
            all.own.extend(selection.own.into_iter().filter(is_new));
            all.found.extend(selection.found.into_iter().filter(is_new));
            let lines = selection.lines.into_iter().filter(is_new);
            all.lines.extend(lines.filter(|(id, _)| !known.listed.contains(id)));
            all.dir = all.dir.or(selection.dir);
            all.cold += selection.cold;
            all.beyond += selection.beyond;
        }
        let (section, counts) = (render::section(&all), all.counts());
        let ids = |notes: Vec<(EntryId, String)>| notes.into_iter().map(|(id, _)| id);
        let whole = ids(all.own).chain(ids(all.found)).collect();
        Here { section, counts, notes: Known { whole, listed: ids(all.lines).collect() } }
    }

    /// How much of so much room an audience needs.
    fn size(&self, audience: usize, room: usize) -> usize {
        size(&self.fitting(audience, Some(room))).min(room)
    }

    /// What an audience sees in at most `room` bytes. First whole notes and lines have a share each; then whole notes get
    /// what lines do not need, and lines what whole notes leave.
    fn fitting(&self, audience: usize, room: Option<usize>) -> Selection {
        let Some(room) = room else { return self.pool.select(audience, self.limits) };
        // Whole tokens.
        let within = |most: u64, room: usize| most.min((room / 4 * 4) as u64);
        let select = |hot: usize, warm: usize| {
            let Limits { hot_bytes, warm_bytes, warm_notes } = self.limits;
            let (hot_bytes, warm_bytes) = (within(hot_bytes, hot), within(warm_bytes, warm));
            self.pool.select(audience, Limits { hot_bytes, warm_bytes, warm_notes })
        };
        let share = room * HOT / 100;
        let first = select(share, room - share);
        let hot = room - bytes(&first.lines).min(room - share);
        let second = select(hot, room - hot);
        if second.beyond == 0 {
            return second;
        }
        let left = room - (size(&second) - bytes(&second.lines)).min(hot);
        select(hot, left)
    }
}

fn size(selection: &Selection) -> usize {
    bytes(&selection.own) + bytes(&selection.found) + bytes(&selection.lines)
}

fn bytes(texts: &[(EntryId, String)]) -> usize {
    texts.iter().map(|(_, text)| text.len() + 1).sum()
}

/// What a section in a file says of notes, whoever it is for. Its lines are ours: a heading for each note that is whole,
/// an item for each that is listed.
pub fn known_from(section: &str, known: &mut Known) {
    for line in section.lines() {
        if line.starts_with("### ") {
            known.whole.extend(id_of_heading(line));
        } else if line.starts_with("- ") {
            known.listed.extend(id_of_line(line));
        }
    }
}

/// The id in the heading of a note.
fn id_of_heading(heading: &str) -> Option<EntryId> {
    let at = heading.rfind("(id__")?;
    EntryId::whole(heading[at + 1..].split([',', ')']).next()?)
}

/// The id at the end of the file's name.
fn id_of_line(line: &str) -> Option<EntryId> {
    let end = line.find(".md")?;
    let at = line[..end].rfind("id__")?;
    EntryId::whole(&line[at..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_shows_is_known_from_its_lines() {
        let section = "<!-- agent-memory:start -->\n## Memory\n\n### Ports (8080) (id__a1B2c3)\n\nSee [[id__Zz9yX1]].\n\n\
                       ### Marked (id__b1B2c3) (a change waits: `memory review`)\n\n### More notes\n\n\
                       - [t](</x/t -- topic__x id__c1B2c3.md>): one\n- t -- topic__x id__d1B2c3.md: see id__f1B2c3.md\n- item id__e1B2c3\n";
        let mut known = Known::default();
        known_from(section, &mut known);
        let ids = |ids: &BTreeSet<EntryId>| ids.iter().map(|id| id.to_string()).collect::<Vec<_>>();
        assert_eq!(ids(&known.whole), ["id__a1B2c3", "id__b1B2c3"]);
        assert_eq!(ids(&known.listed), ["id__c1B2c3", "id__d1B2c3"]);
    }
}
