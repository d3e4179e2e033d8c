//! What can go wrong with a command, other than how it ends by itself.

use crate::base::text::size;
use std::fmt;
use std::io;

#[derive(Debug)]
pub(crate) enum Fault {
    NotStarted(io::Error),
    Deadline,
    /// More than so many bytes on stdout.
    TooMuchOutput(usize),
    Reading(io::Error),
}

/// What the command did, to follow its name.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NotStarted(e) => write!(f, "could not be started: {e}"),
            Fault::Deadline => f.write_str("did not finish in time"),
            Fault::TooMuchOutput(cap) => write!(f, "printed more than {}", size(*cap as u64)),
            Fault::Reading(e) => write!(f, "could not be read: {e}"),
        }
    }
}
