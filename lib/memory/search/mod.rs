//! Ranked search over notes: which notes are about what somebody asks?
//!
//! Every note is read and counted on its own, against the words of the query, and may then be dropped; ranking
//! needs the counts alone. So there is no index that could be out of date, and memory does not grow with the
//! text. What a word of the query may be found as is settled once, when the query is parsed: the word and its
//! inflections, its abbreviations, words that mean nearly the same, words that begin alike, slips of the pen.
//!
//! - `words`: how text becomes words, alike for notes and queries.
//! - `language`: small tables about English: question words, irregular forms, words of like meaning.
//! - `query`: what is asked for, and in what guises each word counts.
//! - `lexicon`: the guises, arranged so that most words of a note are passed over at the cost of one look-up.
//! - `count`: one note against the query.
//! - `rank`: BM25 with fields over all counts.
//! - `line`: the line of a note to show.

mod count;
pub(crate) mod language;
mod lexicon;
mod line;
mod query;
mod rank;
pub(crate) mod words;

pub(crate) use crate::memory::search::count::{Counts, Document};
pub(crate) use crate::memory::search::query::Query;
pub(crate) use crate::memory::search::rank::rank;

/// Notes and questions that search is judged by, and likely duplicates too.
#[cfg(test)]
#[path = "../../../benches/search/corpus.rs"]
#[allow(dead_code, reason = "each test uses a part")]
pub(crate) mod corpus;

#[cfg(test)]
mod tests;
