//! Ranked search over notes.
//!
//! Each note is read once, its words are counted against the query, and its text is dropped: ranking needs only
//! the counts. So there is no index that could be out of date, and memory does not grow with the text. The query
//! decides what counts as a match when it is parsed: the word and its inflections, abbreviations, synonyms, words
//! with the same beginning, typing errors.
//!
//! - `words`: splits text into words, the same way for notes and queries.
//! - `language`: the stemmer and word lists for English (`english.txt`).
//! - `query`: the terms of a query, and the variants of each.
//! - `names`: identifiers, paths and commands of a prompt, and whether a note has them.
//! - `document`: a note as the words of its fields.
//! - `lexicon`: an index of the variants that rejects most words of a note with one look-up.
//! - `count`: counts one note against the query.
//! - `rank`: BM25 with fields over all counts.
//! - `closeness`: where the matches stand in one note, and the line of it to show.
//! - `vocabulary`: which notes have a word, in the cache, so that not all have to be read again.
//! - `index`: the notes of a store, from the cache or from their files.
//! - `find`: all of it, over the index.

mod closeness;
mod count;
mod document;
mod find;
mod index;
pub mod language;
mod lexicon;
mod names;
mod query;
mod rank;
mod vocabulary;
pub mod words;

#[cfg(any(test, fuzzing))]
pub use crate::memory::search::document::Document;
pub use crate::memory::search::find::{Findings, Found, Wanted};
pub use crate::memory::search::index::Index;
pub use crate::memory::search::names::{code_of, has_word, is_common, is_common_command};
pub use crate::memory::search::query::Query;
#[cfg(any(test, fuzzing))]
pub use crate::memory::search::rank::Worth;

/// Notes and questions that the tests of search and of likely duplicates use.
#[cfg(test)]
#[path = "../../../benches/search/corpus.rs"]
#[allow(dead_code, reason = "each test uses a part")]
pub mod corpus;

#[cfg(test)]
mod tests;
