//! What a session in one place should know: the notes of its repository and those that hold everywhere, in one section.
//!
//! It is what `memory-recall` gives. A file's section has one audience; this one has two, and may have to fit into so many
//! bytes: then the repository's notes come first, as they are the nearer ones.

use crate::base::error::Result;
use crate::config::memory::{AgentsMd, MemoryConfig};
use crate::memory::section::gather::{Gathered, Limits, NoteCounts, Selection};
use crate::memory::section::{note, render, sanitize};
use crate::store::entry::EntryId;
use crate::store::persistence::{Broken, Note};
use crate::store::place::Root;
use jiff::civil::Date;
use std::collections::BTreeSet;

/// The repository's notes take up so much of the room, in percent, and hot ones so much of what is theirs.
const REPOSITORY: usize = 65;
const HOT: usize = 70;
/// What the section has besides notes: heading, introduction, numbers.
const FRAME: usize = 700;

/// Notes that the reader has already: whole ones, and those of which it has the line.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) whole: BTreeSet<EntryId>,
    pub(crate) listed: BTreeSet<EntryId>,
}

#[derive(Debug)]
pub(crate) struct Here {
    /// From marker to marker.
    pub(crate) section: String,
    pub(crate) counts: NoteCounts,
    /// The notes that stand in it whole, and those of which it has the line.
    pub(crate) whole: Vec<EntryId>,
    pub(crate) listed: Vec<EntryId>,
}

/// The notes for a session in one place.
pub(crate) struct Around {
    gathered: Gathered,
    /// The repository, if there is one, then everywhere.
    audiences: usize,
    limits: AgentsMd,
}

impl Around {
    /// The notes of this repository, and those that hold everywhere.
    pub(crate) fn of(config: &MemoryConfig, root: &Root, repo: Option<&str>, today: Date) -> Result<Around> {
        let audiences: Vec<Option<&str>> = [repo.map(Some), Some(None)].into_iter().flatten().collect();
        let AgentsMd { max_hot_tokens, max_warm_tokens, .. } = config.agents_md;
        let most = Limits::of(max_hot_tokens, max_warm_tokens);
        let gathered = Gathered::of(root, &audiences, most, today)?;
        Ok(Around { gathered, audiences: audiences.len(), limits: config.agents_md.clone() })
    }

    /// What is known of the text of notes that stand in a section, see [`Entry::told`](crate::store::entry::Entry::told).
    pub(crate) fn told(&self, ids: Vec<EntryId>) -> Vec<(EntryId, String)> {
        ids.into_iter().map(|id| (self.gathered.told(&id), id)).map(|(told, id)| (id, told)).collect()
    }

    pub(crate) fn broken(&self) -> &[Broken] {
        &self.gathered.broken
    }

    /// The section without what the reader knows already, in at most `room` bytes. The repository's notes come first, except
    /// that those that hold everywhere have what is left of their share.
    pub(crate) fn section(&self, known: &Known, room: Option<usize>) -> Here {
        let mut all = Selection { waiting: self.gathered.waiting(), ..Selection::default() };
        let mut left = room.map(|room| room.saturating_sub(FRAME));
        for audience in 0..self.audiences {
            let rest = match audience + 1 < self.audiences {
                true => left.map(|left| self.size(audience + 1, left * (100 - REPOSITORY) / 100)),
                false => None,
            };
            let mut selection = self.fitting(audience, left.map(|left| left - rest.unwrap_or_default()));
            left = left.map(|left| left.saturating_sub(size(&selection)));
            for blocks in [&mut selection.own, &mut selection.found] {
                blocks.retain(|block| id_of_block(block).is_none_or(|id| !known.whole.contains(&id)));
            }
            selection.lines.retain(|line| {
                id_of_line(line).is_none_or(|id| !known.whole.contains(&id) && !known.listed.contains(&id))
            });
            all.own.extend(selection.own);
            all.found.extend(selection.found);
            all.lines.extend(selection.lines);
            all.dir = all.dir.or(selection.dir);
            all.cold += selection.cold;
            all.beyond += selection.beyond;
        }
        let whole = all.blocks().filter_map(|block| id_of_block(block)).collect();
        let listed = all.lines.iter().filter_map(|line| id_of_line(line)).collect();
        Here { section: render::section(&all), counts: all.counts(), whole, listed }
    }

    /// How much of so much room an audience needs.
    fn size(&self, audience: usize, room: usize) -> usize {
        size(&self.fitting(audience, Some(room))).min(room)
    }

    /// What an audience sees in at most `room` bytes. First whole notes and lines have a share each; then whole notes get
    /// what lines do not need, and lines what whole notes leave.
    fn fitting(&self, audience: usize, room: Option<usize>) -> Selection {
        let AgentsMd { max_hot_tokens, max_warm_tokens, max_warm, .. } = self.limits;
        let within = |most: u64, room: usize| most.min((room / 4) as u64);
        let select = |hot: u64, warm: u64| {
            self.gathered.select(audience, Limits::of(hot, warm).with_warm_notes(max_warm))
        };
        let Some(room) = room else { return select(max_hot_tokens, max_warm_tokens) };
        let share = room * HOT / 100;
        let first = select(within(max_hot_tokens, share), within(max_warm_tokens, room - share));
        let hot = room - bytes(&first.lines).min(room - share);
        let second = select(within(max_hot_tokens, hot), within(max_warm_tokens, room - hot));
        if second.beyond == 0 {
            return second;
        }
        let left = room - (size(&second) - bytes(&second.lines)).min(hot);
        select(within(max_hot_tokens, hot), within(max_warm_tokens, left))
    }
}

fn size(selection: &Selection) -> usize {
    [&selection.own, &selection.found, &selection.lines].into_iter().map(|texts| bytes(texts)).sum()
}

fn bytes(texts: &[String]) -> usize {
    texts.iter().map(|text| text.len() + 1).sum()
}

/// What a section in a file says of notes, whoever it is for. Its lines are ours: a heading for each note that is whole,
/// an item for each that is listed.
pub(crate) fn known_from(section: &str, known: &mut Known) {
    for line in section.lines() {
        if line.starts_with("### ") {
            known.whole.extend(id_of_block(line));
        } else if line.starts_with("- ") {
            known.listed.extend(id_of_line(line));
        }
    }
}

/// The id in the heading of a note, its first line.
fn id_of_block(block: &str) -> Option<EntryId> {
    let heading = block.lines().next()?;
    let at = heading.rfind("(id__")?;
    EntryId::whole(heading[at + 1..].split([',', ')']).next()?)
}

/// The id at the end of the file's name.
fn id_of_line(line: &str) -> Option<EntryId> {
    let end = line.find(".md")?;
    let at = line[..end].rfind("id__")?;
    EntryId::whole(&line[at..end])
}

/// A note as it stands in the section, whole.
pub(crate) fn block(note: &Note, waits: bool) -> String {
    note::block(note, waits)
}

/// A note by its id and title, in a sentence of ours.
pub(crate) fn named(note: &Note) -> String {
    let meta = note.entry.meta();
    format!("{} ({})", meta.id, sanitize::line(&note::title(meta)))
}

/// The same in three lines, for a note that is too long: heading, summary, and the line that matters.
pub(crate) fn excerpt(found: &Note, waits: bool, line: Option<&str>) -> String {
    let meta = found.entry.meta();
    let whole = note::block(found, waits);
    let heading = whole.lines().next().unwrap_or_default();
    let mut lines = vec![heading.to_owned(), String::new()];
    let shown = |text: &str| sanitize::body(text.as_bytes(), 4).trim_end().to_owned();
    lines.extend([meta.summary.as_str()].into_iter().chain(line).filter(|text| !text.is_empty()).map(shown));
    lines.dedup();
    lines.push(format!("The whole note: `memory read {}`", meta.id));
    lines.join("\n") + "\n"
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
