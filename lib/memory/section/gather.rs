//! Selects the notes for each audience, and how much of each note it sees.

use crate::base::error::Result;
use crate::base::repository::Repository;
use crate::base::text::BYTES_PER_TOKEN;
use crate::config::memory::AgentsMd;
use crate::memory::code::{CodeState, states};
use crate::memory::search::Index;
use crate::memory::section::note::{self, Marks};
use crate::memory::service::belongs_to;
use crate::store::entry::{EntryId, Meta, Scope, Tier};
use crate::store::index::NoteView;
use crate::store::ledger::Uses;
use crate::store::persistence::{Broken, Note, Persistence, Place};
use crate::store::place::Root;
use crate::store::proposal::{Proposal, concerned};
use jiff::civil::Date;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The least that the heading of a note takes, in bytes.
const MARGIN: u64 = 20;

/// The number of notes that a section has whole, as links, and not at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoteCounts {
    pub hot: usize,
    pub warm: usize,
    /// Only counted.
    pub cold: usize,
}

/// How much of the notes a section shows.
#[derive(Debug, Clone, Copy)]
pub struct SectionLimits {
    /// Of whole notes, in bytes.
    pub hot_bytes: u64,
    /// Of all lines of the list, in bytes.
    pub warm_bytes: u64,
    /// Lines of the list, for who configured it so.
    pub warm_notes: u64,
}

impl SectionLimits {
    pub fn of(config: &AgentsMd) -> SectionLimits {
        SectionLimits {
            hot_bytes: config.max_hot_tokens.saturating_mul(BYTES_PER_TOKEN),
            warm_bytes: config.max_warm_tokens.saturating_mul(BYTES_PER_TOKEN),
            warm_notes: config.max_warm.unwrap_or(u64::MAX),
        }
    }
}

impl Default for SectionLimits {
    fn default() -> SectionLimits {
        SectionLimits { hot_bytes: 10_000, warm_bytes: 6_000, warm_notes: u64::MAX }
    }
}

/// What a reader sees of the notes: some whole, some as lines, the rest as a number.
#[derive(Debug, Default)]
pub struct Section {
    /// Whole notes, as in the text, ordered by title: first what a person asked for, then the others.
    pub(super) own: Vec<(EntryId, String)>,
    pub(super) found: Vec<(EntryId, String)>,
    /// Lines of a list.
    pub(super) lines: Vec<(EntryId, String)>,
    /// The directory that their paths are relative to.
    pub(super) dir: Option<PathBuf>,
    /// Lines of the notes that the repository has among its files.
    pub(super) shared: Vec<(EntryId, String)>,
    /// All of it is of such notes, for readers who may have no program of ours.
    pub(super) is_for_all: bool,
    pub(super) cold: usize,
    /// How many of the cold notes are others beyond the limit.
    pub(super) beyond: usize,
    /// How many changes wait for a person.
    pub(super) waiting: usize,
    /// The size of all hot notes, and of a person's notes that are whole.
    pub(super) hot_bytes: u64,
    /// Titles of hot notes that are listed as warm because the limit is reached.
    pub(super) crowded_out: Vec<String>,
    /// The files that were left out.
    pub broken: Vec<Broken>,
}

impl Section {
    pub fn counts(&self) -> NoteCounts {
        NoteCounts { hot: self.whole().count(), warm: self.listed().count(), cold: self.cold }
    }

    /// The notes that it has whole.
    pub fn whole(&self) -> impl Iterator<Item = &EntryId> {
        self.own.iter().chain(&self.found).map(|(id, _)| id)
    }

    /// Leaves out the notes that the reader has in another place, and returns their ids.
    pub fn leave_out(&mut self, is_had: impl Fn(&EntryId) -> bool) -> Vec<EntryId> {
        let all = [&mut self.own, &mut self.found, &mut self.lines];
        let taken = all.into_iter().flat_map(|notes| notes.extract_if(.., |(id, _)| is_had(id)));
        taken.map(|(id, _)| id).collect()
    }

    /// Those of which it has a line.
    pub fn listed(&self) -> impl Iterator<Item = &EntryId> {
        self.lines.iter().chain(&self.shared).map(|(id, _)| id)
    }
}

/// Whose a note is and how much it matters, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    Other,
    Hot,
    /// A session's note that holds everywhere.
    Global,
    /// Written, edited or accepted by a person: no session has so many notes that they take its place.
    Own,
    Pinned,
}

/// What has less of it goes first where there is no room.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Weight {
    group: Group,
    is_hot: bool,
    rank: u8,
    /// How often it was read, as of the last defrag: a read must not change the section.
    uses: u64,
    updated_at: i64,
}

/// A note that at least one audience may see. Only one that may be whole, or is listed with a sentence of its text, is read.
#[derive(Debug)]
pub struct Candidate {
    view: NoteView,
    /// Indices of its audiences.
    audiences: Vec<usize>,
    weight: Weight,
    marks: Marks,
    /// It is only counted.
    is_cold: bool,
    /// It is listed, and comes whole with the call of a tool that it is about.
    is_listed: bool,
}

impl Candidate {
    /// Does the note decide whether all hot ones fit?
    pub fn is_before_others(&self) -> bool {
        self.weight.group > Group::Other
    }

    /// What it takes as far as that is known without reading it.
    fn bytes(&self) -> u64 {
        let heading = note::heading(&self.view.meta, self.marks).len() as u64;
        heading.saturating_add(1).saturating_add(self.view.body.bytes)
    }

    /// The whole note, if there is room for it.
    fn block(&self, room: u64) -> Option<String> {
        // A note of which not even the body fits is not read.
        if self.is_listed || self.view.body.bytes.saturating_add(MARGIN) > room || self.bytes() > room {
            return None;
        }
        Some(note::block(self.view.note()?, self.marks)).filter(|block| block.len() as u64 <= room)
    }
}

/// The notes that several audiences may see, and what else decides how much of each is shown.
#[derive(Default)]
pub struct Pool {
    /// A repository, or for `None` everybody.
    pub(super) audiences: Vec<Option<String>>,
    /// Notes whose last day is over are not shown.
    pub(super) today: Date,
    /// The changes that wait for a person, and the notes that they are of.
    waiting: Vec<Proposal>,
    with_changes: BTreeSet<EntryId>,
    /// How often each note was read, as of the last defrag.
    uses: Uses,
    /// Ordered by title.
    candidates: Vec<Candidate>,
    pub(super) broken: Vec<Broken>,
    /// The notes that the repository has among its files, the newest first.
    pub(super) shared: Vec<NoteView>,
}

impl Pool {
    /// Without notes. `root` is the store's directory, if it has one.
    pub fn of(
        root: Option<&Root>,
        audiences: Vec<Option<String>>,
        today: Date,
        waiting: Vec<Proposal>,
    ) -> Pool {
        // It decides about an order alone, and the next defrag writes it anew: a damaged one is none.
        let uses = root.and_then(|root| Uses::load(root).ok()).unwrap_or_default();
        let with_changes = concerned(&waiting);
        Pool { audiences, today, waiting, with_changes, uses, ..Pool::default() }
    }

    /// With all notes of a store.
    pub fn read<P: Persistence + Sync>(
        index: &Index<P>,
        audiences: Vec<Option<String>>,
        today: Date,
    ) -> Result<Pool> {
        let (waiting, unread) = index.store().proposals()?;
        let mut pool = Pool::of(index.store().root(), audiences, today, waiting);
        let scan = index.scan(Place::Topics, |view| pool.candidate(view))?;
        pool.fill(scan.found.into_iter().flatten());
        pool.broken = scan.broken;
        pool.broken.extend(unread);
        Ok(pool)
    }

    /// A note in use. `None` if no audience sees it: one that no longer holds is for nobody.
    pub fn candidate(&self, view: NoteView) -> Option<Candidate> {
        let meta = &view.meta;
        if meta.is_expired(self.today) {
            return None;
        }
        let is_for = |audience: &Option<String>| match audience {
            Some(repo) => belongs_to(meta, repo),
            None => meta.scope == Scope::Global,
        };
        let audiences = (0..self.audiences.len()).filter(|at| is_for(&self.audiences[*at]));
        let audiences: Vec<usize> = audiences.collect();
        let is_cold = is_cold(meta);
        (!audiences.is_empty()).then(|| Candidate { is_cold, ..self.weighed(view, audiences) })
    }

    /// A note that was asked for by its id: shown whatever its audience, and a cold or archived one in a line.
    pub fn chosen(&self, note: Note) -> Candidate {
        let mut view = NoteView::of(note);
        if view.place == Place::Archive || is_cold(&view.meta) {
            view.body.bytes = u64::MAX;
        }
        self.weighed(view, vec![0])
    }

    fn weighed(&self, view: NoteView, audiences: Vec<usize>) -> Candidate {
        let meta = &view.meta;
        let is_hot = meta.pinned || meta.tier == Tier::Hot;
        let group = match meta.own(|| view.body.is_edited) {
            _ if meta.pinned => Group::Pinned,
            Some(_) => Group::Own,
            None if meta.scope == Scope::Global => Group::Global,
            None if is_hot => Group::Hot,
            None => Group::Other,
        };
        let uses = if group == Group::Other { 0 } else { self.uses.get(&meta.id) };
        let (rank, updated_at) = (meta.rank.unwrap_or_default(), meta.updated_at);
        let weight = Weight { group, is_hot, rank, uses, updated_at };
        let marks = Marks { waits: self.with_changes.contains(&meta.id), ..Marks::default() };
        Candidate { view, audiences, weight, marks, is_cold: false, is_listed: false }
    }

    /// Lists those that have paths and are not pinned, if their text has at most so many bytes: they come whole with the call of
    /// a tool that they are about.
    pub fn list_those_with_paths(&mut self, bytes: u64) {
        let with = Marks { waits: true, ..Marks::default() };
        for Candidate { view, is_listed, .. } in &mut self.candidates {
            let text = note::heading(&view.meta, with).len() as u64 + view.body.bytes;
            *is_listed = !view.meta.paths.is_empty() && !view.meta.pinned && text < bytes;
        }
    }

    /// Marks the notes of which the code in these checkouts is no longer as it was, and leaves those out of which it is gone. One
    /// that was learned on another branch is a line. A person's own are only marked.
    pub fn look_at_code(&mut self, root: Option<&Root>, here: &[Repository]) {
        let mut shown: Vec<&Candidate> = self.candidates.iter().filter(|note| !note.is_cold).collect();
        shown.sort_by_key(|candidate| Reverse(&candidate.weight));
        let states = states(root, here, shown.into_iter().map(|candidate| &candidate.view.meta));
        for candidate in &mut self.candidates {
            let Some(state) = states.get(&candidate.view.meta.id) else { continue };
            candidate.marks.state = *state;
            if candidate.weight.group < Group::Own {
                candidate.is_cold |= state.code == CodeState::Gone;
                candidate.is_listed |= state.is_elsewhere;
            }
        }
    }

    pub fn fill(&mut self, candidates: impl Iterator<Item = Candidate>) {
        self.candidates = candidates.collect();
        // In lower case, so that the order does not depend on a locale.
        self.candidates.sort_by_cached_key(|candidate| {
            let Meta { title, id, .. } = &candidate.view.meta;
            (!candidate.is_cold).then(|| (title.to_lowercase(), id.clone()))
        });
    }

    /// The files that could not be read, those included that a selection asked for in vain.
    pub(super) fn left_out(&self) -> Vec<Broken> {
        let unread = self.candidates.iter().filter_map(|candidate| candidate.view.unread());
        self.broken.iter().cloned().chain(unread).collect()
    }

    /// The note with this id, if an audience may see it.
    pub(super) fn view(&self, id: &EntryId) -> Option<&NoteView> {
        let views = self.candidates.iter().map(|candidate| &candidate.view);
        views.chain(&self.shared).find(|view| view.meta.id == *id)
    }

    /// How many of the changes that wait are this audience's to know: those from its repository's sessions, or for `None`
    /// all, as they are for one person.
    pub(super) fn waiting_for(&self, audience: Option<&str>) -> usize {
        let is_from = |proposal: &&Proposal, repo: &str| {
            let of_entry = proposal.entry.iter().flat_map(|entry| &entry.sources);
            proposal.session.iter().chain(of_entry).any(|source| source.repo.as_deref() == Some(repo))
        };
        self.waiting.iter().filter(|proposal| audience.is_none_or(|repo| is_from(proposal, repo))).count()
    }

    /// What the audience of this index sees. Of a thousand notes only those are read that may be whole, and those that are
    /// listed with a sentence of their text.
    pub fn select(&self, index: usize, room: SectionLimits) -> Section {
        self.select_from(Group::Other, index, room)
    }

    /// The same of the notes that matter at least so much.
    pub(super) fn select_from(&self, least: Group, index: usize, room: SectionLimits) -> Section {
        let its = self.candidates.iter().filter(|candidate| candidate.audiences.contains(&index));
        let its = its.filter(|candidate| candidate.weight.group >= least);
        let (cold, notes): (Vec<&Candidate>, Vec<&Candidate>) = its.partition(|candidate| candidate.is_cold);
        let waiting = self.audiences.get(index).map_or(0, |audience| self.waiting_for(audience.as_deref()));
        let mut section = Section { cold: cold.len(), waiting, ..Section::default() };
        let mut by_weight: Vec<usize> = (0..notes.len()).collect();
        by_weight.sort_by_key(|at| Reverse(&notes[*at].weight));
        let mut shares = vec![Share::Not; notes.len()];
        let mut left = room.hot_bytes;
        for at in &by_weight {
            let note = notes[*at];
            let block = note.block(left);
            let bytes = block.as_ref().map(|block| block.len() as u64);
            left -= bytes.unwrap_or_default();
            let counted = match note.weight {
                Weight { is_hot: true, .. } => bytes.unwrap_or_else(|| note.bytes()),
                Weight { group: Group::Global | Group::Own, .. } => bytes.unwrap_or_default(),
                _ => 0,
            };
            section.hot_bytes = section.hot_bytes.saturating_add(counted);
            if let Some(block) = block {
                shares[*at] = Share::Whole(block);
            }
        }
        let (mut left, mut lines) = (room.warm_bytes, 0);
        for at in by_weight {
            if shares[at] != Share::Not {
                continue;
            }
            let line = note::line(&notes[at].view, notes[at].marks);
            // The list ends with the first that has no room: what follows matters less, whatever its length.
            let rest = left.checked_sub(line.len() as u64 + 1);
            let Some(rest) = rest.filter(|_| lines < room.warm_notes) else { break };
            (left, lines) = (rest, lines + 1);
            shares[at] = Share::Line(line);
        }
        for (Candidate { view, weight, .. }, share) in notes.into_iter().zip(shares) {
            if weight.is_hot && !matches!(share, Share::Whole(_)) {
                section.crowded_out.push(note::title(&view.meta));
            }
            let id = view.meta.id.clone();
            match share {
                Share::Whole(block) if weight.group >= Group::Global => section.own.push((id, block)),
                Share::Whole(block) => section.found.push((id, block)),
                Share::Line(line) => {
                    section.dir.get_or_insert_with(|| note::dir(view));
                    section.lines.push((id, line));
                }
                Share::Not => {
                    section.cold += 1;
                    section.beyond += 1;
                }
            }
        }
        section
    }
}

/// A pinned one is hot, whatever its tier.
fn is_cold(meta: &Meta) -> bool {
    meta.tier == Tier::Cold && !meta.pinned
}

/// How much of a note there is room for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Share {
    Whole(String),
    Line(String),
    Not,
}
