//! Selects the notes for each audience, and how much of each note it sees.

use crate::base::error::Result;
use crate::base::parallel;
use crate::memory::search::{Cache, Part};
use crate::memory::section::note::{self, Link};
use crate::memory::service::belongs_to;
use crate::store::entry::{EntryId, Meta, Scope, Tier};
use crate::store::ledger::Uses;
use crate::store::persistence::{Broken, Note, Persistence, Place};
use crate::store::place::Root;
use crate::store::proposal::Proposal;
use crate::store::topics::{NoteFile, Topics, read};
use jiff::civil::Date;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The estimate of tokens is this many bytes per token.
pub(super) const BYTES_A_TOKEN: u64 = 4;

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
        let with_changes = waiting.iter().filter_map(|proposal| proposal.note.clone()).collect();
        // It decides about an order alone, and the next defrag writes it anew: a damaged one is none.
        let uses = Uses::load(root).unwrap_or_default();
        View { limits, today, with_changes, uses }
    }

    /// What has less of it goes first where there is no room.
    fn weight(&self, meta: &Meta) -> (u8, u64) {
        (meta.rank.unwrap_or_default(), self.uses.get(&meta.id))
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
    /// Notes as in the section.
    pub(super) hot: Vec<String>,
    /// Lines of a list.
    pub(super) warm: Vec<String>,
    /// The directory that their paths are relative to.
    pub(super) dir: Option<PathBuf>,
    pub(super) cold: usize,
    /// How many of the cold notes are warm ones beyond the limit.
    pub(super) beyond: usize,
    /// How many changes wait for a person.
    pub(super) waiting: usize,
    /// The size of all hot notes together.
    pub(super) hot_bytes: u64,
    /// Titles of hot notes that are listed as warm because the limit is reached.
    pub(super) crowded_out: Vec<String>,
}

impl Selection {
    pub(super) fn counts(&self) -> NoteCounts {
        NoteCounts { hot: self.hot.len(), warm: self.warm.len(), cold: self.cold }
    }
}

/// What is left of a note after its file was read.
#[derive(Debug, Clone)]
struct Excerpt {
    /// The sort key. In lower case, so that the order does not depend on a locale.
    order: (String, EntryId),
    /// What has less of it goes first where there is no room: its rank, and how often it was read.
    weight: (u8, u64),
    link: Link,
    hot: Option<Hot>,
}

#[derive(Debug, Clone)]
struct Hot {
    is_pinned: bool,
    bytes: u64,
    /// `None` if it is larger than the limit on its own.
    block: Option<String>,
}

/// What each audience sees: the notes of a repository, or for `None` the global ones.
pub(super) fn gather(
    root: &Root,
    audiences: &[Option<&str>],
    limits: Limits,
    today: Date,
) -> Result<(Vec<Selection>, Vec<Broken>)> {
    let gathered = Gathered::of(root, audiences, limits, today)?;
    let candidates = gathered.candidates.into_iter();
    let mut selections = selections(candidates, audiences.len(), limits);
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
            if let Some(meta) = cache.known(file.name).and_then(|known| known.meta())
                && let Some(candidate) = candidate_without_text(&meta, &path, audiences, &view)
            {
                return Ok((meta.id, candidate));
            }
            let note = read(file.place, &path)?;
            Ok((note.entry.meta().id.clone(), candidate(&note, audiences, &view)))
        };
        let scan = parallel::with_ahead(|| cache.load(), || topics.scan_with(&[Place::Topics], look))?;
        Ok(Gathered { candidates: scan.found.into_iter().flatten().collect(), waiting, broken: scan.broken })
    }

    /// What the audience of this index sees.
    pub(super) fn select(&self, index: usize, limits: Limits) -> Selection {
        let its = self.candidates.iter().filter(|candidate| candidate.audiences.contains(&index));
        let its = its.map(|candidate| Candidate { audiences: vec![0], excerpt: candidate.excerpt.clone() });
        selections(its, 1, limits).into_iter().next().unwrap_or_default()
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
    /// `None` for a cold note, which is only counted.
    excerpt: Option<Excerpt>,
}

pub(crate) fn candidate(found: &Note, audiences: &[Option<&str>], view: &View) -> Option<Candidate> {
    let wanted = wanted(found.entry.meta(), audiences, view);
    (!wanted.is_empty()).then(|| Candidate { audiences: wanted, excerpt: excerpt(found, view) })
}

/// The same from the metadata alone. `None` if the text is needed, as for a hot note, or for one with a waiting change.
pub(super) fn candidate_without_text(
    meta: &Meta,
    path: &Path,
    audiences: &[Option<&str>],
    view: &View,
) -> Option<Option<Candidate>> {
    let wanted = wanted(meta, audiences, view);
    if wanted.is_empty() {
        return Some(None);
    }
    let excerpt = match meta.tier {
        _ if meta.pinned || view.with_changes.contains(&meta.id) => return None,
        Tier::Hot => return None,
        Tier::Cold => None,
        Tier::Warm => {
            let link = Link::without_text(meta, path)?;
            Some(Excerpt { order: order(meta), weight: view.weight(meta), link, hot: None })
        }
    };
    Some(Some(Candidate { audiences: wanted, excerpt }))
}

/// The indices of the audiences that a note is for. One that no longer holds is for nobody.
fn wanted(meta: &Meta, audiences: &[Option<&str>], view: &View) -> Vec<usize> {
    if meta.is_expired(view.today) {
        return Vec::new();
    }
    (0..audiences.len()).filter(|&n| is_for(meta, audiences[n])).collect()
}

fn order(meta: &Meta) -> (String, EntryId) {
    (meta.title.to_lowercase(), meta.id.clone())
}

/// What each of `audiences` audiences sees.
pub(crate) fn selections(
    candidates: impl Iterator<Item = Candidate>,
    audiences: usize,
    limits: Limits,
) -> Vec<Selection> {
    let mut all: Vec<(Vec<Excerpt>, usize)> = (0..audiences).map(|_| Default::default()).collect();
    for Candidate { audiences, excerpt } in candidates {
        let Some((last, others)) = audiences.split_last() else { continue };
        for index in others {
            add(&mut all, *index, excerpt.clone());
        }
        add(&mut all, *last, excerpt);
    }
    all.into_iter().map(|(notes, cold)| select(notes, cold, limits)).collect()
}

fn add(all: &mut [(Vec<Excerpt>, usize)], index: usize, excerpt: Option<Excerpt>) {
    let Some((notes, cold)) = all.get_mut(index) else { return };
    match excerpt {
        Some(excerpt) => notes.push(excerpt),
        None => *cold += 1,
    }
}

fn is_for(meta: &Meta, audience: Option<&str>) -> bool {
    match audience {
        Some(repo) => belongs_to(meta, repo),
        None => meta.scope == Scope::Global,
    }
}

/// `None` for a cold note, which is only counted. A pinned one is hot, whatever its tier.
fn excerpt(found: &Note, view: &View) -> Option<Excerpt> {
    let meta = found.entry.meta();
    let limits = view.limits;
    let waits = view.with_changes.contains(&meta.id) && found.entry.kept().is_some();
    let is_hot = meta.pinned || meta.tier == Tier::Hot;
    if meta.tier == Tier::Cold && !is_hot {
        return None;
    }
    let hot = is_hot.then(|| {
        let raw = found.entry.body().len() as u64;
        // One that is much too large is not even sanitized.
        let block = (raw <= limits.hot_bytes).then(|| note::block(found, waits));
        let bytes = block.as_ref().map_or(raw, |block| block.len() as u64);
        Hot { is_pinned: meta.pinned, bytes, block: block.filter(|_| bytes <= limits.hot_bytes) }
    });
    Some(Excerpt { order: order(meta), weight: view.weight(meta), link: Link::of(found, waits), hot })
}

/// How much of a note there is room for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Share {
    Whole,
    Line(String),
    Not,
}

fn select(mut notes: Vec<Excerpt>, cold: usize, limits: Limits) -> Selection {
    notes.sort_by(|a, b| a.order.cmp(&b.order));
    let mut selection = Selection { cold, ..Selection::default() };
    let mut room = limits.hot_bytes;
    // The order in which they get room: pinned, then hot, then warm ones, by rank and then by use.
    let mut by_weight: Vec<usize> = (0..notes.len()).collect();
    by_weight.sort_by_key(|at| {
        let note = &notes[*at];
        Reverse((note.hot.as_ref().map(|hot| hot.is_pinned), note.weight))
    });
    let mut shares = vec![Share::Not; notes.len()];
    let (mut warm_room, mut warm_left) = (limits.warm_bytes, limits.warm_notes);
    for at in by_weight {
        let hot = notes[at].hot.as_ref();
        selection.hot_bytes += hot.map_or(0, |hot| hot.bytes);
        shares[at] = match hot {
            Some(hot) if hot.block.is_some() && hot.bytes <= room => {
                room -= hot.bytes;
                Share::Whole
            }
            _ if warm_left == 0 => Share::Not,
            // Hot notes beyond the limit come before warm ones.
            _ => {
                let line = notes[at].link.line();
                let bytes = line.len() as u64 + 1;
                // The list ends with the first that has no room: what follows matters less, whatever its length.
                warm_left = if bytes <= warm_room { warm_left - 1 } else { 0 };
                if bytes <= warm_room {
                    warm_room -= bytes;
                    Share::Line(line)
                } else {
                    Share::Not
                }
            }
        };
    }
    for (note, share) in notes.into_iter().zip(shares) {
        if note.hot.is_some() && share != Share::Whole {
            selection.crowded_out.push(note.link.title.clone());
        }
        match share {
            Share::Whole => selection.hot.extend(note.hot.and_then(|hot| hot.block)),
            Share::Line(line) => {
                selection.dir.get_or_insert_with(|| note.link.dir());
                selection.warm.push(line);
            }
            Share::Not => {
                selection.cold += 1;
                selection.beyond += 1;
            }
        }
    }
    selection
}

/// A note that was asked for by its id: shown whatever its audience, and even if it is cold.
pub(super) fn chosen(found: &Note, view: &View) -> Candidate {
    let meta = found.entry.meta();
    let cold = || Excerpt { order: order(meta), weight: (0, 0), link: Link::of(found, false), hot: None };
    Candidate { audiences: vec![0], excerpt: Some(excerpt(found, view).unwrap_or_else(cold)) }
}
