//! A pipe that a command writes to, and what is kept of its bytes. Reading never waits.

use crate::base::deadline::Deadline;
use crate::base::exec::ExecError;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::ioctl_fionbio;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// How much of stderr is kept for the error message, in bytes.
pub(super) const STDERR_KEPT: usize = 8 * 1024;

/// What happens to bytes beyond the cap.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Excess {
    Error,
    /// The middle is cut out.
    CutsMiddle,
    /// The start is forgotten.
    CutsStart,
}

pub(super) struct Output {
    bytes: Vec<u8>,
    cap: usize,
    excess: Excess,
    /// How many bytes of the middle were cut.
    left_out: usize,
}

impl Output {
    pub(super) fn new(cap: usize, excess: Excess) -> Output {
        Output { bytes: Vec::new(), cap, excess, left_out: 0 }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<(), ExecError> {
        self.bytes.extend_from_slice(bytes);
        let surplus = self.bytes.len().saturating_sub(self.cap);
        match self.excess {
            Excess::Error if surplus > 0 => return Err(ExecError::TooMuchOutput(self.cap)),
            // Not at every read, for then each would move half of it.
            Excess::CutsMiddle if surplus > self.cap => self.cut(surplus),
            Excess::CutsStart => drop(self.bytes.drain(..surplus)),
            Excess::Error | Excess::CutsMiddle => {}
        }
        Ok(())
    }

    fn cut(&mut self, surplus: usize) {
        let start = self.cap / 2;
        self.bytes.drain(start..start + surplus);
        self.left_out += surplus;
    }

    /// The whole lines in it, which are no longer kept; `None` if there are none.
    pub(super) fn take_lines(&mut self) -> Option<Vec<u8>> {
        let end = memchr::memrchr(b'\n', &self.bytes)? + 1;
        let rest = self.bytes.split_off(end);
        Some(std::mem::replace(&mut self.bytes, rest))
    }

    /// All of it, with a mark where it was cut.
    pub(super) fn take(mut self) -> Vec<u8> {
        if self.bytes.len() > self.cap {
            self.cut(self.bytes.len() - self.cap);
        }
        if self.left_out > 0 {
            let mark = format!("\n[… {} bytes left out …]\n", self.left_out);
            let at = self.cap / 2;
            self.bytes.splice(at..at, mark.into_bytes());
        }
        self.bytes
    }
}

/// Our end of a pipe, and what came out of it.
pub(super) struct OutputPipe {
    /// `None` once it has ended.
    pub(super) pipe: Option<PipeReader>,
    pub(super) kept: Output,
}

impl OutputPipe {
    pub(super) fn new(stream: Option<impl Into<OwnedFd>>, kept: Output) -> io::Result<OutputPipe> {
        let pipe = stream.map(|stream| PipeReader::from(stream.into()));
        // That poll finds something to read is no promise: a command can read from the pipe of its own stdout.
        pipe.as_ref().map_or(Ok(()), |pipe| ioctl_fionbio(pipe, true))?;
        Ok(OutputPipe { pipe, kept })
    }

    /// Reads once, as much as the buffer takes. How many bytes there were.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ExecError> {
        let Some(pipe) = &mut self.pipe else { return Ok(0) };
        let read = read(pipe, buffer);
        if !matches!(read, Ok(Some(_))) {
            self.pipe = None;
        }
        let n = read.map_err(ExecError::Reading)?.unwrap_or(0);
        self.kept.add(&buffer[..n]).map(|()| n)
    }

    /// Reads what a command and its group, which are gone, have left in the pipe: it is there without waiting. A process
    /// that left the group may write for ever: what comes from now on is not read.
    pub(super) fn drain(&mut self, buffer: &mut [u8], deadline: Deadline) -> Result<(), ExecError> {
        let mut left = self.pipe.as_ref().map_or(Ok(0), in_pipe).map_err(ExecError::Reading)?;
        while left > 0 {
            let most = left.min(buffer.len());
            let n = self.read(&mut buffer[..most])?;
            left = if n == 0 { 0 } else { left - n };
            if left > 0 && deadline.passed() {
                return Err(ExecError::Deadline);
            }
        }
        Ok(())
    }

    /// Does somebody still hold the other end?
    pub(super) fn is_held(&self) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        let mut pipe = [PollFd::new(pipe, PollFlags::IN)];
        let now = Deadline::after(Duration::ZERO);
        poll(&mut pipe, now).is_ok() && !pipe[0].revents().contains(PollFlags::HUP)
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
