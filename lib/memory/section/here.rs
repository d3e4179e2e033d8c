//! What a session in one place should know: the notes of its repository and those that hold everywhere, in one section.
//!
//! A file's section has one audience; that of a session has two, and may have to fit into so many bytes: then the
//! repository's notes come first, as they are the nearer ones, except before what a person wrote or accepted.

use crate::base::text::BYTES_PER_TOKEN;
use crate::memory::redact::Redactor;
use crate::memory::section::gather::{Group, Pool, Section, SectionLimits};
use crate::memory::section::note::{self, Marks};
use crate::memory::shared::fault;
use crate::store::entry::{EntryId, Meta};
use crate::store::index::NoteView;
use crate::store::persistence::Note;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The repository's notes take up so much of the room, in percent, and hot ones so much of what is theirs.
const REPOSITORY: usize = 65;
const HOT: usize = 70;
/// Room is taken in whole tokens.
const TOKEN: usize = BYTES_PER_TOKEN as usize;
/// What the section has besides notes: heading, introduction, numbers.
const FRAME: usize = 700;
/// The repository's own files get what the person's notes leave, at most so much, heading included.
const SHARED: usize = 2_000;
const SHARED_FRAME: usize = 150;
/// So much of their text is looked through before they are shown: a hook has little time.
const LOOKED_THROUGH: u64 = 32_000;

/// Notes that the reader has already: whole ones, and those of which it has the line.
#[derive(Debug, Default)]
pub struct Had {
    pub whole: BTreeSet<EntryId>,
    pub listed: BTreeSet<EntryId>,
}

impl Pool {
    /// Adds the notes that the repository has among its files. They come last, and none of them whole.
    pub fn share(&mut self, notes: Vec<Note>) {
        self.shared.extend(
            notes.into_iter().filter(|note| !note.entry.meta().is_expired(self.today)).map(NoteView::of),
        );
        self.shared.sort_by_key(|view| (Reverse(view.meta.updated_at), view.meta.id.clone()));
    }

    /// What is known of the text of a note that stands in a section, see [`Entry::told`](crate::store::entry::Entry::told). Empty
    /// if it is not for this place.
    pub fn told(&self, id: &EntryId) -> String {
        self.note(id).map_or_else(String::new, |note| note.entry.told())
    }

    pub fn note(&self, id: &EntryId) -> Option<&Note> {
        self.view(id).and_then(NoteView::note)
    }

    /// The same of its line.
    pub fn told_line(&self, id: &EntryId) -> String {
        self.view(id).map(note::told_line).unwrap_or_default()
    }

    /// One section for all audiences without what the reader has already, in at most `bytes` of text. The first audience's
    /// notes come first, except that those of the others have what is left of their share.
    pub fn section(&self, room: SectionLimits, had: &Had, bytes: Option<usize>) -> Section {
        self.section_of(&Vec::from_iter(0..self.audiences.len()), room, had, bytes)
    }

    /// The same for some audiences, by their indices.
    pub(super) fn section_of(
        &self,
        audiences: &[usize],
        room: SectionLimits,
        had: &Had,
        bytes: Option<usize>,
    ) -> Section {
        // The last audience is the widest.
        let widest = audiences.last().and_then(|last| self.audiences.get(*last)?.as_deref());
        let waiting = self.waiting_for(widest);
        let mut all = Section { waiting, ..Section::default() };
        let mut left = bytes.map(|bytes| bytes.saturating_sub(FRAME));
        for (at, audience) in audiences.iter().enumerate() {
            let rest = left.zip(audiences.get(at + 1)).map(|(left, next)| {
                let need = |least, audience, bytes| self.need(least, audience, room, bytes);
                let share = left * REPOSITORY / 100;
                // A person's own for everywhere go before what sessions found here.
                let own = left - need(Group::Own, *audience, share);
                need(Group::Other, *next, left - share).max(need(Group::Own, *next, own))
            });
            let bytes = left.map(|left| left - rest.unwrap_or_default());
            let section = self.fitting(Group::Other, *audience, room, bytes);
            left = left.map(|left| left.saturating_sub(size(&section)));
            let is_new = |(id, _): &(EntryId, String)| !had.whole.contains(id);
            all.own.extend(section.own.into_iter().filter(is_new));
            all.found.extend(section.found.into_iter().filter(is_new));
            let lines = section.lines.into_iter().filter(is_new);
            all.lines.extend(lines.filter(|(id, _)| !had.listed.contains(id)));
            all.dir = all.dir.or(section.dir);
            all.cold += section.cold;
            all.beyond += section.beyond;
            all.hot_bytes += section.hot_bytes;
            all.crowded_out.extend(section.crowded_out);
        }
        let mut left = left.unwrap_or(SHARED).min(SHARED).saturating_sub(SHARED_FRAME);
        let (redactor, mut looked_through) = (Redactor::default(), 0);
        let is_new = |id: &EntryId| !had.whole.contains(id) && !had.listed.contains(id);
        for view in self.shared.iter().filter(|view| is_new(&view.meta.id)) {
            let (line, after) = (note::line(view, Marks::default()), looked_through + view.body.bytes);
            if line.len() >= left || after > LOOKED_THROUGH {
                all.cold += 1;
                all.beyond += 1;
                continue;
            }
            // One that is not shown takes room, too.
            left -= line.len() + 1;
            looked_through = after;
            if view.note().is_some_and(|note| fault(note, &redactor).is_none()) {
                all.shared.push((view.meta.id.clone(), line));
            }
        }
        all.broken = self.left_out();
        all
    }

    /// How many of so many bytes an audience needs.
    fn need(&self, least: Group, audience: usize, room: SectionLimits, bytes: usize) -> usize {
        let need = size(&self.fitting(least, audience, room, Some(bytes)));
        need.next_multiple_of(TOKEN).min(bytes)
    }

    /// What an audience sees in so many bytes. First whole notes and lines have a share each; then whole notes get
    /// what lines do not need, and lines what whole notes leave.
    fn fitting(&self, least: Group, audience: usize, room: SectionLimits, bytes: Option<usize>) -> Section {
        let Some(all) = bytes else { return self.select_from(least, audience, room) };
        // Whole tokens.
        let within = |most: u64, bytes: usize| most.min((bytes / TOKEN * TOKEN) as u64);
        let select_from = |least: Group, hot: usize, warm: usize| {
            let (hot_bytes, warm_bytes) = (within(room.hot_bytes, hot), within(room.warm_bytes, warm));
            self.select_from(least, audience, SectionLimits { hot_bytes, warm_bytes, ..room })
        };
        let select = |hot: usize, warm: usize| select_from(least, hot, warm);
        // A person's own have what they need, as far as there is so much.
        let own = select_from(Group::Own, all, all);
        let own_lines = length(&own.lines).next_multiple_of(TOKEN).min(all);
        let share = (all * HOT / 100).max(size(&own) - length(&own.lines)).min(all - own_lines);
        let first = select(share, all - share);
        let hot = all - length(&first.lines).next_multiple_of(TOKEN).min(all - share);
        let second = select(hot, all - hot);
        if second.beyond == 0 {
            return second;
        }
        select(hot, all - (size(&second) - length(&second.lines)).min(hot))
    }
}

fn size(section: &Section) -> usize {
    length(&section.own) + length(&section.found) + length(&section.lines)
}

fn length(texts: &[(EntryId, String)]) -> usize {
    texts.iter().map(|(_, text)| text.len() + 1).sum()
}

impl Had {
    /// Adds what a section in a file says of notes, whoever it is for. Its lines are ours: a heading for each note that is
    /// whole, an item for each that is listed.
    pub fn add(&mut self, section: &str) {
        for line in section.lines() {
            if line.starts_with("### ") {
                self.whole.extend(id_of_heading(line));
            } else if line.starts_with("- ") {
                self.listed.extend(id_of_line(line));
            }
        }
    }

    /// Keeps those of which a section says what these notes say now.
    pub fn confirm(&mut self, notes: impl Iterator<Item = Note>, sections: &[&str]) {
        let stands = |meta: &Meta, said: &dyn Fn(Marks) -> String| {
            Marks::all(meta).map(said).any(|said| sections.iter().any(|section| section.contains(&said)))
        };
        let mut had = Had::default();
        for note in notes {
            let id = note.entry.meta().id.clone();
            if self.whole.contains(&id) && stands(note.entry.meta(), &|with| note::block(&note, with)) {
                had.whole.insert(id.clone());
            }
            let view = NoteView::of(note);
            if self.listed.contains(&id) && stands(&view.meta, &|with| note::line(&view, with) + "\n") {
                had.listed.insert(id);
            }
        }
        *self = had;
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
        let mut had = Had::default();
        had.add(section);
        let ids = |ids: &BTreeSet<EntryId>| ids.iter().map(|id| id.to_string()).collect::<Vec<_>>();
        assert_eq!(ids(&had.whole), ["id__a1B2c3", "id__b1B2c3"]);
        assert_eq!(ids(&had.listed), ["id__c1B2c3", "id__d1B2c3"]);
    }
}
