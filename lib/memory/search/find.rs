//! Finds the notes of a store that match a query.
//!
//! All notes are counted, from the cache where it knows them; those that come first by their counts are read and looked at
//! closely; and what is shown of a note is always read from its file.

use crate::base::error::Result;
use crate::base::parallel;
use crate::memory::search::cache::{Cache, Known, Occurrences};
use crate::memory::search::closeness::Matches;
use crate::memory::search::count::{Counts, with_document};
use crate::memory::search::query::Query;
use crate::memory::search::rank::{CLOSE, Hit, Strength, Worth, best_first, demanded};
use crate::store::entry::{EntryId, Meta};
use crate::store::persistence::{Broken, Note, Persistence, Place, Scan};
use crate::store::topics::{Topics, read};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A note that matches.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) meta: Meta,
    pub(crate) path: PathBuf,
    /// The line that matches best.
    pub(crate) line: Option<String>,
    /// From 0 to 1.
    pub(crate) score: f64,
    /// Of the first notes alone; zero for the others.
    pub(crate) strength: Strength,
}

/// A condition on notes.
pub(crate) type Wanted<'a> = dyn Fn(&Meta) -> bool + Sync + 'a;

#[derive(Debug)]
pub(crate) struct Findings {
    /// The best first.
    pub(crate) found: Vec<Found>,
    /// Phrases in quotes that were searched as words, because no note has them.
    pub(crate) loosened: Vec<String>,
    pub(crate) broken: Vec<Broken>,
}

/// What is known of a note from counting it.
struct Counted {
    counts: Counts,
    /// `None` if it is not wanted, or has none of the words.
    spot: Option<Spot>,
    /// The counts come from the cache, which knows the words of a phrase and not their order.
    is_cached: bool,
}

impl Counted {
    fn has_unsure_phrases(&self) -> bool {
        self.is_cached && self.counts.phrases != 0 && self.spot.is_some()
    }
}

struct Spot {
    path: PathBuf,
    id: EntryId,
}

/// The notes in `place` that match the query and are `wanted`, `most` at most.
///
/// How rare a word is, is counted among all notes of the place, wanted or not, so that a score does not depend on it.
pub(crate) fn find(
    topics: &Topics,
    place: Place,
    cache: &Cache,
    query: &Query,
    wanted: Option<&Wanted<'_>>,
    most: usize,
) -> Result<Findings> {
    let occurrences = LazyLock::new(|| Occurrences::of(query, cache));
    let count = |place: Place, path: &Path| {
        let known = cache.known(path);
        let from_cache =
            known.and_then(|known| counted_from(&known, path, query, occurrences.as_ref()?, wanted));
        if let Some(counted) = from_cache {
            return Ok(counted);
        }
        let note = read(place, path)?;
        if known.is_none() {
            cache.missed(path);
        }
        Ok((note.entry.meta().id.clone(), counted(note, query, wanted)))
    };
    let look_up = || {
        LazyLock::force(&occurrences);
    };
    let scan = parallel::with_ahead(look_up, || topics.scan_with(&[place], count))?;
    let mut all: Vec<Counted> = scan.found;
    let again = |counted: &Counted| again(topics, place, counted.spot.as_ref()?);
    let unsure: Vec<usize> = (0..all.len()).filter(|index| all[*index].has_unsure_phrases()).collect();
    let sure = parallel::map_files(&unsure, |_, index| {
        // One that is gone has none.
        again(&all[*index]).map_or(0, |note| with_document(&note, |document| query.count(document)).phrases)
    });
    for (index, phrases) in unsure.into_iter().zip(sure) {
        all[index].counts.phrases = phrases;
    }
    let candidates = all.iter().filter(|note| note.spot.is_some()).map(|note| &note.counts);
    let demanded = demanded(candidates);
    let loosened = query.phrases.iter().zip(0..).filter(|(_, bit)| demanded >> bit & 1 == 0);
    let loosened = loosened.map(|(phrase, _)| phrase.text.clone()).collect();

    let worth = Worth::of(query, all.iter().map(|note| &note.counts));
    let fits = |note: &&Counted| note.spot.is_some() && note.counts.phrases & demanded == demanded;
    let hits = worth.rank(query, all.iter().map(|note| Some(&note.counts).filter(|_| fits(&note))));
    let again = |hit: &Hit| again(all.get(hit.index)?);
    let (close, rest) = hits.split_at(hits.len().min(CLOSE));
    let mut close: Vec<(Hit, Note, Matches, Strength)> = parallel::map_files(close, |_, hit| {
        let note = again(hit)?;
        let (matches, closeness) = with_document(&note, |document| {
            let matches = query.matches(document);
            let closeness = matches.closeness(query, &worth, document.body);
            (matches, closeness)
        });
        let counts = &all.get(hit.index)?.counts;
        let score = worth.score(query, counts, &closeness);
        Some((Hit { score, ..*hit }, note, matches, worth.strength(counts, &closeness)))
    })
    // One that is gone is none.
    .into_iter()
    .flatten()
    .collect();
    close.sort_by(|(a, ..), (b, ..)| best_first(a, b));
    close.truncate(most);
    let rest = &rest[..rest.len().min(most - close.len())];
    let rest = parallel::map_files(rest, |_, hit| {
        let note = again(hit)?;
        let matches = with_document(&note, |document| query.matches(document));
        Some(shown(*hit, note, &matches, &worth, Strength::default()))
    });
    let close =
        close.into_iter().map(|(hit, note, matches, strength)| shown(hit, note, &matches, &worth, strength));
    Ok(Findings { found: close.chain(rest.into_iter().flatten()).collect(), loosened, broken: scan.broken })
}

/// What `each` makes of the metadata of all notes in a place.
pub(crate) fn metadata<T: Send>(
    topics: &Topics,
    place: Place,
    cache: &Cache,
    each: impl Fn(Meta, &Path) -> T + Sync,
) -> Result<Scan<T>> {
    let look = |place: Place, path: &Path| {
        let known = cache.known(path);
        let meta = match known.and_then(|known| known.meta()) {
            Some(meta) => meta,
            None => {
                let note = read(place, path)?;
                if known.is_none() {
                    cache.missed(path);
                }
                note.entry.into_meta()
            }
        };
        Ok((meta.id.clone(), each(meta, path)))
    };
    parallel::with_ahead(|| cache.load(), || topics.scan_with(&[place], look))
}

fn counted(note: Note, query: &Query, wanted: Option<&Wanted<'_>>) -> Counted {
    let counts = with_document(&note, |document| query.count(document));
    let meta = note.entry.meta();
    let is_candidate =
        counts.has_tags && query.may_match(&counts) && wanted.is_none_or(|is_wanted| is_wanted(meta));
    let spot = is_candidate.then(|| Spot { id: meta.id.clone(), path: note.path });
    Counted { counts, spot, is_cached: false }
}

/// The same from the cache. `None`: the note has to be read.
fn counted_from(
    known: &Known<'_>,
    path: &Path,
    query: &Query,
    occurrences: &Occurrences,
    wanted: Option<&Wanted<'_>>,
) -> Option<(EntryId, Counted)> {
    let id = known.id()?;
    let mut counts = occurrences.counts(query, known)?;
    counts.has_tags = query.tags.is_empty();
    let mut is_candidate = query.may_match(&counts);
    if is_candidate && (!counts.has_tags || wanted.is_some()) {
        let meta = known.meta()?;
        counts.has_tags = query.has_tags(&meta.tags);
        is_candidate = counts.has_tags && wanted.is_none_or(|is_wanted| is_wanted(&meta));
    }
    let spot = is_candidate.then(|| Spot { id: id.clone(), path: path.to_path_buf() });
    Some((id, Counted { counts, spot, is_cached: true }))
}

/// Reads a note once more. It may have another name since.
fn again(topics: &Topics, place: Place, spot: &Spot) -> Option<Note> {
    let is_it = |note: &Note| note.place == place && note.entry.meta().id == spot.id;
    let there = read(place, &spot.path).ok().filter(is_it);
    there.or_else(|| topics.named(&spot.id).ok().flatten().filter(is_it))
}

fn shown(hit: Hit, note: Note, matches: &Matches, worth: &Worth, strength: Strength) -> Found {
    let line = with_document(&note, |document| matches.line(document, worth));
    Found { meta: note.entry.into_meta(), path: note.path, line, score: hit.score, strength }
}
