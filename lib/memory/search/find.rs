//! Finds the notes of a store that match a query.
//!
//! All notes are counted, from the cache where it knows them; those that come first by their counts are read and looked at
//! closely; and what is shown of a note is always read from its file.

use crate::base::error::Result;
use crate::base::parallel;
use crate::memory::search::cache::{Cache, Known, Occurrences};
use crate::memory::search::closeness::Matches;
use crate::memory::search::count::{Counts, Document, with_document};
use crate::memory::search::names::NOTES;
use crate::memory::search::query::Query;
use crate::memory::search::rank::{CLOSE, Hit, Strength, Worth, best_first, demanded};
use crate::store::entry::Meta;
use crate::store::persistence::{Broken, Note, Persistence, Place, Scan};
use crate::store::topics::{NoteFile, Topics, read};
use std::collections::BTreeMap;
use std::path::PathBuf;
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
    /// It has a name of the prompt that few other notes have.
    pub(crate) is_named: bool,
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

/// A note whose words are counted.
struct Counted<'a> {
    from: CountedFrom<'a>,
    /// A bit for each phrase of the query that it has.
    phrases: u8,
    /// Does it match, and is it wanted? `None`: its metadata has not been looked at. Only that of the first notes is.
    is_candidate: Option<bool>,
}

enum CountedFrom<'a> {
    /// The cache knows the words of a phrase and not their order.
    Cache(Known<'a>, &'a Counts),
    File(Box<ReadNote>),
}

/// What is kept of a note that was read.
struct ReadNote {
    counts: Counts,
    path: PathBuf,
    meta: Meta,
}

impl Counted<'_> {
    fn counts(&self) -> &Counts {
        match &self.from {
            CountedFrom::Cache(_, counts) => counts,
            CountedFrom::File(note) => &note.counts,
        }
    }
}

/// What is looked for, and where.
struct Search<'a> {
    topics: &'a Topics,
    place: Place,
    query: &'a Query,
    wanted: Option<&'a Wanted<'a>>,
}

impl Search<'_> {
    fn counted(&self, note: Note) -> Counted<'static> {
        let counts = with_document(&note, |document| self.query.count(document));
        let phrases = counts.phrases;
        let note = ReadNote { counts, path: note.path, meta: note.entry.into_meta() };
        Counted { from: CountedFrom::File(Box::new(note)), phrases, is_candidate: None }
    }

    fn is_wanted(&self, meta: &Meta) -> bool {
        self.query.has_tags(&meta.tags) && self.wanted.is_none_or(|is_wanted| is_wanted(meta))
    }

    fn is_candidate(&self, note: &mut Counted) -> bool {
        let look = || {
            let is_any = self.query.tags.is_empty() && self.wanted.is_none();
            self.query.may_match(note.counts()) && (is_any || self.has_wanted_meta(note))
        };
        let is_candidate = note.is_candidate.unwrap_or_else(look);
        note.is_candidate = Some(is_candidate);
        is_candidate
    }

    fn has_wanted_meta(&self, note: &Counted) -> bool {
        match &note.from {
            CountedFrom::File(note) => self.is_wanted(&note.meta),
            CountedFrom::Cache(known, _) => {
                let meta = known.meta().or_else(|| Some(self.again(note)?.entry.into_meta()));
                meta.is_some_and(|meta| self.is_wanted(&meta))
            }
        }
    }

    /// Reads a note once more. It may have another name since.
    fn again(&self, note: &Counted) -> Option<Note> {
        let (path, id) = match &note.from {
            CountedFrom::Cache(known, _) => (&self.topics.dir(self.place).join(known.name()?), &known.id()?),
            CountedFrom::File(note) => (&note.path, &note.meta.id),
        };
        let is_it = |note: &Note| note.place == self.place && note.entry.meta().id == *id;
        let there = read(self.place, path).ok().filter(is_it);
        there.or_else(|| self.topics.named(id).ok().flatten().filter(is_it))
    }
}

/// The notes in `place` that match the query and are `wanted`, `most` at most.
///
/// How rare a word is, is counted among all notes of the place, wanted or not, so that a score does not depend on it. `wanted`
/// is asked only as far as needed: once there are enough hits, not about the rest.
pub(crate) fn find(
    topics: &Topics,
    place: Place,
    cache: &Cache,
    query: &Query,
    wanted: Option<&Wanted<'_>>,
    most: usize,
) -> Result<Findings> {
    let search = Search { topics, place, query, wanted };
    let occurrences = LazyLock::new(|| Occurrences::of(query, cache));
    let count = |file: NoteFile| {
        let known = cache.known(file.name);
        if let Some(known) = known
            && let Some(id) = known.id()
            && let Some(counts) = occurrences.as_ref().and_then(|all| all.counts(&known))
        {
            let from = CountedFrom::Cache(known, counts);
            return Ok((id, Counted { from, phrases: counts.phrases, is_candidate: None }));
        }
        let path = file.path();
        let note = read(place, &path)?;
        if known.is_none() {
            cache.missed(&path);
        }
        Ok((note.entry.meta().id.clone(), search.counted(note)))
    };
    let look_up = || {
        LazyLock::force(&occurrences);
        cache.load();
    };
    let scan = parallel::with_ahead(look_up, || topics.scan_with(&[place], count))?;
    let mut all: Vec<Counted> = scan.found;

    let mut with_phrases = Vec::new();
    for (index, note) in all.iter_mut().enumerate() {
        if note.phrases != 0 && search.is_candidate(note) {
            with_phrases.push(index);
        }
    }
    let is_unsure = |index: &&usize| matches!(all[**index].from, CountedFrom::Cache(..));
    let unsure: Vec<usize> = with_phrases.iter().filter(is_unsure).copied().collect();
    let sure = parallel::map_files(&unsure, |_, index| {
        // One that is gone has none.
        let note = search.again(&all[*index]);
        note.map_or(0, |note| with_document(&note, |document| query.count(document)).phrases)
    });
    for (index, phrases) in unsure.into_iter().zip(sure) {
        all[index].phrases = phrases;
    }
    let demanded = demanded(with_phrases.iter().map(|index| all[*index].phrases));
    let loosened = query.phrases.iter().zip(0..).filter(|(_, bit)| demanded >> bit & 1 == 0);
    let loosened = loosened.map(|(phrase, _)| phrase.text.clone()).collect();

    let worth = Worth::of(query, all.iter().map(Counted::counts));
    let fits = |note: &&Counted| note.phrases & demanded == demanded && note.is_candidate != Some(false);
    let hits = worth.rank(query, all.iter().map(|note| Some(note).filter(fits).map(Counted::counts)));
    let hits = hits.into_iter().filter(|hit| search.is_candidate(&mut all[hit.index]));
    let hits: Vec<Hit> = hits.take(most.saturating_add(CLOSE)).collect();
    let again = |hit: &Hit| search.again(&all[hit.index]);
    let (close, rest) = hits.split_at(hits.len().min(CLOSE));
    let names = |of: &Document| query.names.in_note(of.title, of.tags, of.summary, of.body);
    let close = parallel::map_files(close, |_, hit| {
        let note = again(hit)?;
        let (matches, closeness, names) = with_document(&note, |document| {
            let matches = query.matches(document);
            let closeness = matches.closeness(query, &worth, document.body);
            (matches, closeness, names(document))
        });
        let counts = all[hit.index].counts();
        let score = worth.score(query, counts, &closeness);
        Some(Close {
            hit: Hit { score, ..*hit },
            note,
            matches,
            strength: worth.strength(counts, &closeness),
            names,
        })
    });
    // One that is gone is none.
    let mut close: Vec<Close> = close.into_iter().flatten().collect();
    let mut named: BTreeMap<String, usize> = BTreeMap::new();
    close.iter().flat_map(|close| &close.names).for_each(|name| *named.entry(name.clone()).or_default() += 1);
    close.iter_mut().for_each(|close| close.names.retain(|name| named[name] <= NOTES));
    close.sort_by(|a, b| b.names.len().cmp(&a.names.len()).then(best_first(&a.hit, &b.hit)));
    close.truncate(most);
    let rest = &rest[..rest.len().min(most - close.len())];
    let rest = parallel::map_files(rest, |_, hit| {
        let note = again(hit)?;
        let matches = with_document(&note, |document| query.matches(document));
        Some(
            Close { hit: *hit, note, matches, strength: Strength::default(), names: Vec::new() }
                .shown(&worth),
        )
    });
    let close = close.into_iter().map(|close| close.shown(&worth));
    Ok(Findings { found: close.chain(rest.into_iter().flatten()).collect(), loosened, broken: scan.broken })
}

/// What `each` makes of the metadata of all notes in a place.
pub(crate) fn metadata<T: Send>(
    topics: &Topics,
    place: Place,
    cache: &Cache,
    each: impl Fn(Meta, NoteFile) -> T + Sync,
) -> Result<Scan<T>> {
    let look = |file: NoteFile| {
        let known = cache.known(file.name);
        let meta = match known.and_then(|known| known.meta()) {
            Some(meta) => meta,
            None => {
                let path = file.path();
                let note = read(place, &path)?;
                if known.is_none() {
                    cache.missed(&path);
                }
                note.entry.into_meta()
            }
        };
        Ok((meta.id.clone(), each(meta, file)))
    };
    parallel::with_ahead(|| cache.load(), || topics.scan_with(&[place], look))
}

/// A note that was looked at closely.
struct Close {
    hit: Hit,
    note: Note,
    matches: Matches,
    strength: Strength,
    names: Vec<String>,
}

impl Close {
    fn shown(self, worth: &Worth) -> Found {
        let Close { hit, note, matches, strength, names } = self;
        let line = with_document(&note, |document| matches.line(document, worth));
        let (score, is_named) = (hit.score, !names.is_empty());
        Found { meta: note.entry.into_meta(), path: note.path, line, score, strength, is_named }
    }
}
