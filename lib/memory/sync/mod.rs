//! One memory on several machines (`memory-sync`). git carries it from one to another; what git does not know is what a
//! note is.
//!
//! [`tree`] merges three states of a store into one, note by note ([`note`]), without reading a file or running a
//! program. Every machine comes to the same bytes, whichever of them merges. [`run`] does the rest with git.

pub mod copies;
pub mod driver;
mod foreign_files;
mod lines;
mod merger;
mod note;
mod objects;
mod proposals;
pub mod remote;
pub mod removals;
pub mod request;
pub mod run;
mod same_id;
mod secrets;
mod shared;
mod side;
mod tree;
mod unfinished;
mod version;
