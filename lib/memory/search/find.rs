//! Finds the notes of a store that match a query.
//!
//! All notes are counted, from the cache where it knows them; those that come first by their counts are read and looked at
//! closely; and what is shown of a note is always read from its file.

use crate::base::error::Result;
use crate::base::parallel;
use crate::memory::search::closeness::Matches;
use crate::memory::search::count::Counts;
use crate::memory::search::document::Document;
use crate::memory::search::index::{Index, own};
use crate::memory::search::names::NOTES;
use crate::memory::search::query::Query;
use crate::memory::search::rank::{CLOSE, Hit, Strength, Worth, best_first, demanded};
use crate::store::entry::Meta;
use crate::store::index::{KnownNote, NoteView};
use crate::store::persistence::{Broken, Note, Persistence, Place};
use std::sync::LazyLock;

/// A note that matches.
#[derive(Debug)]
pub struct Found {
    /// Of the first notes it has the text.
    pub view: NoteView,
    /// The line that matches best.
    pub line: Option<String>,
    /// From 0 to 1.
    pub score: f64,
    /// Of the first notes alone; zero for the others.
    pub strength: Strength,
    /// It has a name of the prompt that few other notes have.
    pub is_named: bool,
}

impl Found {
    /// One that was not searched for.
    pub fn listed(view: NoteView) -> Found {
        Found { view, line: None, score: 0.0, strength: Strength::default(), is_named: false }
    }

    /// Has a person taken it for their own?
    pub fn is_own(&self) -> bool {
        is_own(&self.view)
    }
}

fn is_own(NoteView { meta, body, .. }: &NoteView) -> bool {
    meta.kept(|| body.is_edited).is_some()
}

/// So many of a person's own notes are looked for after the best, among so many that match.
const OWN: usize = 2;
const FURTHER: usize = 256;

/// A condition on notes.
pub type Wanted<'a> = dyn Fn(&Meta) -> bool + Sync + 'a;

#[derive(Debug)]
pub struct Findings {
    /// The best first.
    pub found: Vec<Found>,
    /// A person's own that match and were not among the best, two at most.
    pub own: Vec<Found>,
    /// Phrases in quotes that were searched as words, because no note has them.
    pub loosened: Vec<String>,
    pub broken: Vec<Broken>,
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
    Cache(KnownNote<'a>, &'a Counts),
    Read(Box<(NoteView, Counts)>),
}

impl<'a> Counted<'a> {
    fn of(from: CountedFrom<'a>) -> Counted<'a> {
        let mut counted = Counted { from, phrases: 0, is_candidate: None };
        counted.phrases = counted.counts().phrases;
        counted
    }

    fn counts(&self) -> &Counts {
        match &self.from {
            CountedFrom::Cache(_, counts) => counts,
            CountedFrom::Read(read) => &read.1,
        }
    }

    fn is_own(&self) -> bool {
        match &self.from {
            CountedFrom::Cache(known, _) => known.view().is_some_and(|view| is_own(&view)),
            CountedFrom::Read(read) => is_own(&read.0),
        }
    }
}

/// A note that was looked at closely: its rank, what is shown of it, the names of the prompt that it has, and where it matches.
type Close = (Hit, Found, Vec<String>, Matches);

/// What is looked for, and where.
struct Search<'a, P> {
    index: &'a Index<P>,
    place: Place,
    query: &'a Query,
    wanted: Option<&'a Wanted<'a>>,
}

impl<P: Persistence + Sync> Search<'_, P> {
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
        let is_wanted = |meta: &Meta| {
            self.query.has_tags(&meta.tags) && self.wanted.is_none_or(|is_wanted| is_wanted(meta))
        };
        match &note.from {
            CountedFrom::Read(read) => is_wanted(&read.0.meta),
            CountedFrom::Cache(known, _) => known.meta().is_some_and(|meta| is_wanted(&meta)),
        }
    }

    /// The note with its text. It may have another name since.
    fn again(&self, note: &Counted) -> Option<Note> {
        let (note, id) = match &note.from {
            CountedFrom::Cache(known, _) => {
                let id = known.id()?;
                (own(&id, self.place, &known.path()?), id)
            }
            CountedFrom::Read(read) => (read.0.note().cloned(), read.0.meta.id.clone()),
        };
        let renamed = || self.index.store().named(&id).ok().flatten();
        note.or_else(renamed).filter(|note| note.place == self.place)
    }

    /// The phrases that a note must have, a bit each. Those that the cache is not sure of are looked up in the files.
    fn demanded(&self, all: &mut [Counted]) -> u8 {
        let has_phrases = |note: &mut Counted| note.phrases != 0 && self.is_candidate(note);
        let with_phrases: Vec<usize> = (0..all.len()).filter(|index| has_phrases(&mut all[*index])).collect();
        let is_unsure = |index: &&usize| matches!(all[**index].from, CountedFrom::Cache(..));
        let unsure: Vec<usize> = with_phrases.iter().filter(is_unsure).copied().collect();
        let sure = parallel::map_files(&unsure, |_, index| {
            // One that is gone has none.
            let note = self.again(&all[*index]);
            note.map_or(0, |note| self.query.count(&Document::of(&note)).phrases)
        });
        for (index, phrases) in unsure.into_iter().zip(sure) {
            all[index].phrases = phrases;
        }
        demanded(with_phrases.iter().map(|index| all[*index].phrases))
    }

    fn look_closely(&self, hit: &Hit, counted: &Counted, worth: &Worth) -> Option<Close> {
        let note = self.again(counted)?;
        let document = Document::of(&note);
        let matches = self.query.matches(&document);
        let closeness = matches.closeness(self.query, worth, &document.body);
        let names = self.query.names.in_note(&document);
        let score = worth.score(self.query, counted.counts(), &closeness);
        let strength = worth.strength(counted.counts(), &closeness);
        drop(document);
        let found = Found { score, strength, ..Found::listed(NoteView::of(note)) };
        Some((Hit { score, ..*hit }, found, names, matches))
    }

    /// What comes after those that were looked at closely.
    fn briefly(&self, hit: &Hit, counted: &Counted, worth: &Worth) -> Option<Found> {
        let note = self.again(counted)?;
        let document = Document::of(&note);
        let line = self.query.matches(&document).line(&document, worth);
        drop(document);
        Some(Found { line, score: hit.score, ..Found::listed(self.index.view(note)) })
    }

    /// What is found of these hits, `most` at most, and what of the person's own comes after that.
    fn best(&self, hits: &[Hit], all: &[Counted], worth: &Worth, most: usize) -> (Vec<Found>, Vec<Found>) {
        let (close, rest) = hits.split_at(hits.len().min(CLOSE));
        let look_closely = |hit: &Hit| self.look_closely(hit, &all[hit.index], worth);
        // One that is gone is none.
        let close = parallel::map_files(close, |_, hit| look_closely(hit));
        let mut close: Vec<Close> = close.into_iter().flatten().collect();
        let names: Vec<String> = close.iter().flat_map(|(_, _, names, _)| names.clone()).collect();
        let is_rare = |name: &String| names.iter().filter(|other| *other == name).count() <= NOTES;
        close.iter_mut().for_each(|(_, _, names, _)| names.retain(is_rare));
        close
            .sort_by(|(a, _, its, _), (b, _, others, _)| others.len().cmp(&its.len()).then(best_first(a, b)));
        let beyond = close.split_off(close.len().min(most));
        let (rest, further) = rest.split_at(rest.len().min(most - close.len()));
        let further: Vec<&Hit> = further.iter().filter(|hit| all[hit.index].is_own()).take(OWN).collect();
        let further = parallel::map_files(&further, |_, hit| look_closely(hit));
        let own = beyond.into_iter().chain(further.into_iter().flatten());
        let own = own.filter(|(_, found, ..)| found.is_own()).take(OWN);
        let rest = parallel::map_files(rest, |_, hit| self.briefly(hit, &all[hit.index], worth));
        let shown = |(_, found, names, matches): Close| {
            let line = found.view.note().and_then(|note| matches.line(&Document::of(note), worth));
            Found { line, is_named: !names.is_empty(), ..found }
        };
        (close.into_iter().map(shown).chain(rest.into_iter().flatten()).collect(), own.map(shown).collect())
    }
}

impl<P: Persistence + Sync> Index<P> {
    /// The notes in `place` that match the query and are `wanted`, `most` at most.
    ///
    /// How rare a word is, is counted among all notes of the place, wanted or not, so that a score does not depend on it.
    /// `wanted` is asked only as far as needed: once there are enough hits, not about the rest.
    pub fn find(
        &self,
        place: Place,
        query: &Query,
        wanted: Option<&Wanted<'_>>,
        most: usize,
    ) -> Result<Findings> {
        let search = Search { index: self, place, query, wanted };
        let known_counts = LazyLock::new(|| {
            let counts = self.cache().map(|cache| {
                let counts = query.counts_in(cache);
                if counts.is_none() {
                    let _ = cache.remove();
                }
                counts
            });
            counts.flatten().unwrap_or_default()
        });
        let of_read = |note: Note| {
            let counts = query.count(&Document::of(&note));
            let view = self.view(note);
            (view.meta.id.clone(), Counted::of(CountedFrom::Read(Box::new((view, counts)))))
        };
        let ahead = || _ = LazyLock::force(&known_counts);
        let scan = self.each(
            place,
            ahead,
            |known| {
                let counts = known_counts.get(known.index)?;
                Some((known.id()?, Counted::of(CountedFrom::Cache(known, counts))))
            },
            of_read,
        )?;
        let mut all: Vec<Counted> = scan.found;

        let demanded = search.demanded(&mut all);
        let loosened = query.phrases.iter().zip(0..).filter(|(_, bit)| demanded >> bit & 1 == 0);
        let loosened = loosened.map(|(phrase, _)| phrase.text.clone()).collect();

        let worth = Worth::of(query, all.iter().map(Counted::counts));
        let fits = |note: &&Counted| note.phrases & demanded == demanded && note.is_candidate != Some(false);
        let counts = all.iter().map(|note| Some(note).filter(fits).map(Counted::counts));
        let hits = worth.rank(query, counts).into_iter();
        let hits = hits.filter(|hit| search.is_candidate(&mut all[hit.index]));
        let hits: Vec<Hit> = hits.take(most.saturating_add(CLOSE).saturating_add(FURTHER)).collect();
        let (found, own) = search.best(&hits, &all, &worth, most);
        Ok(Findings { found, own, loosened, broken: scan.broken })
    }
}
