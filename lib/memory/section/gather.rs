//! Selects the notes for each audience, and how much of each note it sees.

use crate::base::error::Result;
use crate::base::parallel;
use crate::memory::search::{Cache, Part};
use crate::memory::section::note;
use crate::memory::service::belongs_to;
use crate::store::entry::{BodyFacts, EntryId, Meta, Scope, Tier};
use crate::store::ledger::Uses;
use crate::store::persistence::{Broken, Note, Persistence, Place};
use crate::store::place::Root;
use crate::store::proposal::{Proposal, concerned};
use crate::store::topics::{NoteFile, Topics, read};
use jiff::civil::Date;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The estimate of tokens is this many bytes per token.
pub(super) const BYTES_A_TOKEN: u64 = 4;

/// The least that the heading of a note takes, in bytes.
const MARGIN: u64 = 20;

/// The number of notes that a section has whole, as links, and not at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NoteCounts {
    pub(crate) hot: usize,
    pub(crate) warm: usize,
    /// Only counted.
    pub(crate) cold: usize,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    hot_bytes: u64,
    /// Of all lines of the list.
    warm_bytes: u64,
    /// Of the list, for who configured it so.
    warm_notes: u64,
}

impl Limits {
    pub(crate) fn of(hot_tokens: u64, warm_tokens: u64) -> Limits {
        Limits {
            hot_bytes: hot_tokens.saturating_mul(BYTES_A_TOKEN),
            warm_bytes: warm_tokens.saturating_mul(BYTES_A_TOKEN),
            warm_notes: u64::MAX,
        }
    }

    /// At most so many lines.
    pub(super) fn with_warm_notes(self, most: Option<u64>) -> Limits {
        Limits { warm_notes: most.unwrap_or(self.warm_notes), ..self }
    }
}

/// What decides how much of a note is shown, besides the note itself.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) limits: Limits,
    /// Notes whose last day is over are not shown.
    pub(crate) today: Date,
    /// The notes for which a change waits.
    pub(crate) with_changes: BTreeSet<EntryId>,
    /// How often each note was read, as of the last defrag.
    pub(crate) uses: Uses,
}

impl View {
    pub(super) fn of(root: &Root, limits: Limits, today: Date, waiting: &[Proposal]) -> View {
        // It decides about an order alone, and the next defrag writes it anew: a damaged one is none.
        let uses = Uses::load(root).unwrap_or_default();
        View { limits, today, with_changes: concerned(waiting), uses }
    }
}

/// How many of the changes that wait are this audience's to know: those from its repository's sessions, or for `None`
/// all, as they are for one person.
pub(super) fn waiting_for(audience: Option<&str>, waiting: &[Proposal]) -> usize {
    let is_from = |proposal: &&Proposal, repo: &str| {
        let of_entry = proposal.entry.iter().flat_map(|entry| &entry.sources);
        proposal.session.iter().chain(of_entry).any(|source| source.repo.as_deref() == Some(repo))
    };
    waiting.iter().filter(|proposal| audience.is_none_or(|repo| is_from(proposal, repo))).count()
}

/// What one audience sees, ordered by title.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// Whole notes, as in the section: first what a person asked for, then the others.
    pub(super) own: Vec<String>,
    pub(super) found: Vec<String>,
    /// Lines of a list.
    pub(super) lines: Vec<String>,
    /// The directory that their paths are relative to.
    pub(super) dir: Option<PathBuf>,
    pub(super) cold: usize,
    /// How many of the cold notes are others beyond the limit.
    pub(super) beyond: usize,
    /// How many changes wait for a person.
    pub(super) waiting: usize,
    /// The size of all hot notes, and of a person's notes that are whole.
    pub(super) hot_bytes: u64,
    /// Titles of hot notes that are listed as warm because the limit is reached.
    pub(super) crowded_out: Vec<String>,
}

impl Selection {
    pub(super) fn counts(&self) -> NoteCounts {
        NoteCounts { hot: self.own.len() + self.found.len(), warm: self.lines.len(), cold: self.cold }
    }

    /// All whole notes.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &String> {
        self.own.iter().chain(&self.found)
    }
}

/// Whose a note is and how much it matters, the least first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Other,
    Hot,
    Kept,
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

impl Weight {
    fn of(meta: &Meta, body: BodyFacts, view: &View) -> Weight {
        let is_hot = meta.pinned || meta.tier == Tier::Hot;
        let group = match meta.kept(|| body.is_edited) {
            _ if meta.pinned => Group::Pinned,
            Some(_) => Group::Kept,
            None if is_hot => Group::Hot,
            None => Group::Other,
        };
        let uses = if group == Group::Other { 0 } else { view.uses.get(&meta.id) };
        Weight { group, is_hot, rank: meta.rank.unwrap_or_default(), uses, updated_at: meta.updated_at }
    }
}

/// What is known of a note before it is read: only those that may be whole are.
#[derive(Debug)]
struct Excerpt {
    /// The sort key. In lower case, so that the order does not depend on a locale.
    order: (String, EntryId),
    weight: Weight,
    meta: Meta,
    body_bytes: u64,
    place: Place,
    path: PathBuf,
    waits: bool,
    /// `None`: it is gone.
    note: OnceLock<Option<Note>>,
}

impl Excerpt {
    fn of(meta: &Meta, body: BodyFacts, place: Place, path: &Path, view: &View) -> Excerpt {
        Excerpt {
            order: (meta.title.to_lowercase(), meta.id.clone()),
            weight: Weight::of(meta, body, view),
            body_bytes: body.bytes,
            place,
            path: path.to_path_buf(),
            waits: view.with_changes.contains(&meta.id),
            meta: meta.clone(),
            note: OnceLock::new(),
        }
    }

    fn note(&self) -> Option<&Note> {
        let read = || read(self.place, &self.path).ok().filter(|note| note.entry.meta().id == self.meta.id);
        self.note.get_or_init(read).as_ref()
    }

    /// What it takes as far as that is known without reading it.
    fn bytes(&self) -> u64 {
        let heading = note::heading(&self.meta, self.waits).len() as u64;
        heading.saturating_add(1).saturating_add(self.body_bytes)
    }

    /// The whole note, if there is room for it.
    fn block(&self, room: u64) -> Option<String> {
        // A note of which not even the body fits is not read.
        if self.body_bytes.saturating_add(MARGIN) > room || self.bytes() > room {
            return None;
        }
        Some(note::block(self.note()?, self.waits)).filter(|block| block.len() as u64 <= room)
    }

    fn line(&self) -> String {
        note::line(&self.meta, self.place, &self.path, self.waits, || self.note())
    }
}

/// What each audience sees: the notes of a repository, or for `None` the global ones.
pub(super) fn gather(
    root: &Root,
    audiences: &[Option<&str>],
    limits: Limits,
    today: Date,
) -> Result<(Vec<Selection>, Vec<Broken>)> {
    let gathered = Gathered::of(root, audiences, limits, today)?;
    let mut selections = selections(&gathered.candidates, audiences.len(), limits);
    for (audience, selection) in audiences.iter().zip(&mut selections) {
        selection.waiting = waiting_for(*audience, &gathered.waiting);
    }
    Ok((selections, gathered.broken))
}

/// The notes of several audiences, read once, for who selects from them more than once.
pub(super) struct Gathered {
    candidates: Vec<Candidate>,
    waiting: Vec<Proposal>,
    pub(super) broken: Vec<Broken>,
}

impl Gathered {
    /// With limits that no selection exceeds.
    pub(super) fn of(
        root: &Root,
        audiences: &[Option<&str>],
        limits: Limits,
        today: Date,
    ) -> Result<Gathered> {
        let topics = Topics::at(root);
        let (waiting, _) = topics.proposals()?;
        let view = View::of(root, limits, today, &waiting);
        let cache = Cache::open(root, Part::Metadata);
        let look = |file: NoteFile| {
            let path = file.path();
            if let Some(known) = cache.known(file.name)
                && let Some(meta) = known.meta()
            {
                let candidate = candidate(&meta, known.body(), &path, audiences, &view);
                return Ok((meta.id, candidate));
            }
            let entry = read(file.place, &path)?.entry;
            let candidate = candidate(entry.meta(), entry.body_facts(), &path, audiences, &view);
            Ok((entry.into_meta().id, candidate))
        };
        let scan = parallel::with_ahead(|| cache.load(), || topics.scan_with(&[Place::Topics], look))?;
        let mut candidates: Vec<Candidate> = scan.found.into_iter().flatten().collect();
        // Once here is cheaper than at each selection.
        candidates.sort_by(|a, b| a.order().cmp(&b.order()));
        Ok(Gathered { candidates, waiting, broken: scan.broken })
    }

    /// What the audience of this index sees.
    pub(super) fn select(&self, index: usize, limits: Limits) -> Selection {
        select(&self.candidates, index, limits)
    }

    /// Empty if it is no note of these audiences.
    pub(super) fn told(&self, id: &EntryId) -> String {
        let excerpts = self.candidates.iter().filter_map(|candidate| candidate.excerpt.as_ref());
        let note = excerpts.filter(|excerpt| excerpt.meta.id == *id).find_map(Excerpt::note);
        note.map(|note| note.entry.told()).unwrap_or_default()
    }

    /// How many changes wait for a person.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

/// A note that at least one audience may see.
pub(crate) struct Candidate {
    /// Indices of its audiences.
    audiences: Vec<usize>,
    /// `None` for a cold note, which is only counted. A pinned one is hot, whatever its tier.
    excerpt: Option<Excerpt>,
}

impl Candidate {
    fn order(&self) -> Option<&(String, EntryId)> {
        self.excerpt.as_ref().map(|excerpt| &excerpt.order)
    }
}

/// A note in use, from its metadata. `None` if no audience sees it: one that no longer holds is for nobody.
pub(super) fn candidate(
    meta: &Meta,
    body: BodyFacts,
    path: &Path,
    audiences: &[Option<&str>],
    view: &View,
) -> Option<Candidate> {
    if meta.is_expired(view.today) {
        return None;
    }
    let audiences: Vec<_> = (0..audiences.len()).filter(|&n| is_for(meta, audiences[n])).collect();
    let is_cold = meta.tier == Tier::Cold && !meta.pinned;
    let excerpt = || Excerpt::of(meta, body, Place::Topics, path, view);
    (!audiences.is_empty()).then(|| Candidate { audiences, excerpt: (!is_cold).then(excerpt) })
}

/// Does the note decide whether all hot ones fit?
pub(super) fn is_before_others(meta: &Meta, body: BodyFacts) -> bool {
    meta.tier == Tier::Hot || meta.kept(|| body.is_edited).is_some()
}

/// What each of `audiences` audiences sees.
pub(crate) fn selections(candidates: &[Candidate], audiences: usize, limits: Limits) -> Vec<Selection> {
    (0..audiences).map(|index| select(candidates, index, limits)).collect()
}

fn is_for(meta: &Meta, audience: Option<&str>) -> bool {
    match audience {
        Some(repo) => belongs_to(meta, repo),
        None => meta.scope == Scope::Global,
    }
}

/// How much of a note there is room for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Share {
    Whole(String),
    Line(String),
    Not,
}

/// What the audience of this index sees. Of a thousand notes only those are read that may be whole, and those that are listed
/// with a sentence of their text.
fn select(candidates: &[Candidate], index: usize, limits: Limits) -> Selection {
    let its = || candidates.iter().filter(|candidate| candidate.audiences.contains(&index));
    let mut notes: Vec<&Excerpt> = its().filter_map(|candidate| candidate.excerpt.as_ref()).collect();
    let mut selection = Selection { cold: its().count() - notes.len(), ..Selection::default() };
    notes.sort_by(|a, b| a.order.cmp(&b.order));
    let mut by_weight: Vec<usize> = (0..notes.len()).collect();
    by_weight.sort_by_key(|at| Reverse(&notes[*at].weight));
    let mut shares = vec![Share::Not; notes.len()];
    let mut room = limits.hot_bytes;
    for at in &by_weight {
        let note = notes[*at];
        let block = note.block(room);
        let bytes = block.as_ref().map(|block| block.len() as u64);
        room -= bytes.unwrap_or_default();
        selection.hot_bytes += match note.weight {
            Weight { is_hot: true, .. } => bytes.unwrap_or_else(|| note.bytes()),
            Weight { group: Group::Kept, .. } => bytes.unwrap_or_default(),
            _ => 0,
        };
        if let Some(block) = block {
            shares[*at] = Share::Whole(block);
        }
    }
    let (mut room, mut left) = (limits.warm_bytes, limits.warm_notes);
    for at in by_weight {
        if left == 0 || shares[at] != Share::Not {
            continue;
        }
        let line = notes[at].line();
        let bytes = line.len() as u64 + 1;
        // The list ends with the first that has no room: what follows matters less, whatever its length.
        left = if bytes <= room { left - 1 } else { 0 };
        if bytes <= room {
            room -= bytes;
            shares[at] = Share::Line(line);
        }
    }
    for (note, share) in notes.into_iter().zip(shares) {
        if note.weight.is_hot && !matches!(share, Share::Whole(_)) {
            selection.crowded_out.push(note::title(&note.meta));
        }
        match share {
            Share::Whole(block) if note.weight.group >= Group::Kept => selection.own.push(block),
            Share::Whole(block) => selection.found.push(block),
            Share::Line(line) => {
                selection.dir.get_or_insert_with(|| note::dir(note.place, &note.path));
                selection.lines.push(line);
            }
            Share::Not => {
                selection.cold += 1;
                selection.beyond += 1;
            }
        }
    }
    selection
}

/// A note that was asked for by its id: shown whatever its audience, and a cold or archived one in a line.
pub(crate) fn chosen(found: &Note, view: &View) -> Candidate {
    let meta = found.entry.meta();
    let mut excerpt = Excerpt::of(meta, found.entry.body_facts(), found.place, &found.path, view);
    excerpt.note = OnceLock::from(Some(found.clone()));
    if found.place == Place::Archive || meta.tier == Tier::Cold && !meta.pinned {
        excerpt.body_bytes = u64::MAX;
    }
    Candidate { audiences: vec![0], excerpt: Some(excerpt) }
}
