//! What a session should know: at its start the section for the place, at a prompt the notes that clearly answer it.
//!
//! *reader* knows the programs that ask: their events, the form that each takes, the files that it reads anyway. *hook*
//! makes the answer to an event. *matching* finds notes and shows them, *clear* decides which answer a prompt, *session*
//! remembers what a session was given, *trouble* keeps what went wrong.

mod clear;
mod hook;
mod matching;
mod reader;
mod session;
mod trouble;

pub(crate) use crate::memory::recall::hook::{Moment, answer};
pub(crate) use crate::memory::recall::matching::{BYTES_A_TOKEN, Shown, matching, needs_cache};
pub(crate) use crate::memory::recall::reader::{READERS, Reader};
pub(crate) use crate::memory::recall::session::sweep;
pub(crate) use crate::memory::recall::trouble::{keep, troubles};
