//! One memory on several machines (`memory-sync`): what git does not know, namely what a note is.
//!
//! Nothing here reads a file or runs a program. [`tree`] merges three states of a store into one, note by note
//! ([`note`]). Both machines come to the same bytes, whichever of them merges.

mod foreign_files;
mod foreign_keys;
mod lines;
mod note;
mod proposals;
mod same_id;
pub(crate) mod tree;
mod unique_paths;
mod values;
