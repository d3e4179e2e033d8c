//! What a session should know: at its start the section for the place, at a prompt the notes that clearly answer it.
//!
//! *reader* understands the hooks of the programs that ask, and gives each the form that it takes. *hook* makes the answer to an
//! event. *matching* finds notes, decides which of them answer a prompt, and shows them; *session* remembers what a session was
//! given. *act* understands the call of a tool; *subject* what a note is about, and which notes may be about the same.

mod act;
mod hook;
mod matching;
mod reader;
mod session;
mod subject;

pub use crate::memory::recall::hook::{RecallContext, answer, fenced, patience, probe, without_markers};
pub use crate::memory::recall::matching::{Recalled, needs_cache};
pub use crate::memory::recall::reader::is_act;
pub use crate::memory::recall::session::{last_given, sweep};
pub use crate::memory::recall::subject::refresh;
