//! What can go wrong with a command, besides its exit status.

use crate::base::text::size;
use std::fmt;
use std::io;

#[derive(Debug)]
pub(crate) enum ExecError {
    NotStarted(io::Error),
    Deadline,
    /// More than this many bytes on stdout.
    TooMuchOutput(usize),
    Reading(io::Error),
}

/// Follows the command's name in a message.
impl fmt::Display for ExecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExecError::NotStarted(e) => write!(f, "could not be started: {e}"),
            ExecError::Deadline => f.write_str("did not finish in time"),
            ExecError::TooMuchOutput(cap) => write!(f, "printed more than {}", size(*cap as u64)),
            ExecError::Reading(e) => write!(f, "could not be read: {e}"),
        }
    }
}
