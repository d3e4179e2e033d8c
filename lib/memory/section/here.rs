//! What a session in one place should know: the notes of its repository and those that hold everywhere, in one section.
//!
//! It is what `memory-recall` gives. A file's section has one audience; this one has two, and may have to fit into so many
//! bytes: then the repository's notes come first, as they are the nearer ones.

use crate::base::error::Result;
use crate::config::memory::{AgentsMd, MemoryConfig};
use crate::memory::section::gather::{Limits, NoteCounts, Selection, gather};
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
    /// The notes that stand in it whole.
    pub(crate) whole: Vec<EntryId>,
    pub(crate) broken: Vec<Broken>,
}

/// The section for a session in this repository, or in none. `room` is its most, in bytes.
pub(crate) fn here(
    config: &MemoryConfig,
    root: &Root,
    repo: Option<&str>,
    today: Date,
    known: &Known,
    room: Option<usize>,
) -> Result<Here> {
    let mut all = Selection::default();
    let mut broken = Vec::new();
    let mut left = room.map(|room| room.saturating_sub(FRAME));
    for audience in [repo.map(Some), Some(None)].into_iter().flatten() {
        let share = if audience.is_some() { REPOSITORY } else { 100 };
        let share = left.map(|left| left * share / 100);
        let (selection, faults) = fitting(config, root, audience, today, known, share)?;
        left = left.map(|left| left.saturating_sub(size(&selection.hot) + size(&selection.warm)));
        broken = faults;
        all.hot.extend(selection.hot);
        all.warm.extend(selection.warm);
        all.dir = all.dir.or(selection.dir);
        all.cold += selection.cold;
        all.beyond += selection.beyond;
        // Without a repository all that wait are counted, and they include a repository's own.
        all.waiting = selection.waiting;
    }
    let whole = all.hot.iter().filter_map(|block| id_of_block(block)).collect();
    Ok(Here { section: render::section(&all), counts: all.counts(), whole, broken })
}

/// What this audience sees of what is not known to it, in at most `room` bytes. Hot notes come first, and what they leave
/// is for the list.
fn fitting(
    config: &MemoryConfig,
    root: &Root,
    audience: Option<&str>,
    today: Date,
    known: &Known,
    room: Option<usize>,
) -> Result<(Selection, Vec<Broken>)> {
    let AgentsMd { max_hot_tokens, max_warm_tokens, max_warm, .. } = config.agents_md;
    let within = |most: u64, room: usize| most.min((room / 4) as u64);
    let select = |hot: u64, warm: u64| -> Result<(Selection, Vec<Broken>)> {
        let limits = Limits::of(hot, warm).with_warm_notes(max_warm);
        let (selections, broken) = gather(root, &[audience], limits, today)?;
        Ok((selections.into_iter().next().unwrap_or_default(), broken))
    };
    let (mut selection, broken) = match room {
        None => select(max_hot_tokens, max_warm_tokens)?,
        Some(room) => {
            let most = room * HOT / 100;
            let hot = within(max_hot_tokens, most);
            let found = select(hot, within(max_warm_tokens, room - most))?;
            let left = room - size(&found.0.hot).min(most);
            if found.0.beyond == 0 { found } else { select(hot, within(max_warm_tokens, left))? }
        }
    };
    selection.hot.retain(|block| id_of_block(block).is_none_or(|id| !known.whole.contains(&id)));
    selection.warm.retain(|line| {
        id_of_line(line).is_none_or(|id| !known.whole.contains(&id) && !known.listed.contains(&id))
    });
    Ok((selection, broken))
}

fn size(texts: &[String]) -> usize {
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
    EntryId::whole(heading[at + 1..].split(')').next()?)
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
