//! Reading from a pipe without waiting.

use crate::base::deadline::Deadline;
use rustix::event::{PollFd, Timespec};
use std::io::{self, Read};
use std::os::fd::AsFd;

/// How much of stderr is kept for the error message, in bytes.
pub(super) const STDERR_KEPT: usize = 8 * 1024;

/// The end of what was read.
#[derive(Default)]
pub(super) struct Tail(pub(super) Vec<u8>);

impl Tail {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.drain(..self.0.len().saturating_sub(STDERR_KEPT));
    }
}

/// Reads once. How many bytes there were, which may be none; `None` at the end.
pub(super) fn read(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    loop {
        match from.read(buffer) {
            Ok(0) => return Ok(None),
            Ok(n) => return Ok(Some(n)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Some(0)),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Waits until one of them is ready, or until then.
pub(super) fn poll(waited: &mut [PollFd], until: Deadline) -> io::Result<usize> {
    loop {
        let left = until.remaining();
        let left = Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match rustix::event::poll(waited, Some(&left)) {
            Err(rustix::io::Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}

/// How many bytes are in a pipe now.
pub(super) fn in_pipe(pipe: &impl AsFd) -> io::Result<usize> {
    Ok(usize::try_from(rustix::io::ioctl_fionread(pipe)?).unwrap_or(usize::MAX))
}
