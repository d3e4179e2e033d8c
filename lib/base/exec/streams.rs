//! A command's three streams, served by the thread that waits for it: each is read or written when that takes no
//! waiting. Only a stderr that is passed on has a thread of its own ([`Forwarder`]).

use crate::base::deadline::Deadline;
use crate::base::exec::forwarder::Forwarder;
use crate::base::exec::pipe::{Excess, Output, OutputPipe, STDERR_KEPT, poll};
use crate::base::exec::{ExecError, Invocation};
use rustix::event::{PollFd, PollFlags};
use rustix::io::ioctl_fionbio;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::OwnedFd;
use std::process::Child;
use std::time::Duration;

const BUFFER: usize = 64 * 1024;
/// How long the reader of our stderr may take for the last that a command has said, as long as for a line of ours; and
/// where the command's time is over.
const PATIENCE: Duration = Duration::from_secs(1);
const LITTLE_PATIENCE: Duration = Duration::from_millis(40);

/// None of our ends of the pipes blocks. Each is `None` once it has ended.
pub(super) struct Streams {
    /// Ends when the command has exited.
    exit: OutputPipe,
    /// Ends when all of the input is written, unless it stays open, or when the command has closed it.
    stdin: Option<PipeWriter>,
    stays_open: bool,
    input: Vec<u8>,
    /// How much of it is written.
    written: usize,
    pub(super) stdout: OutputPipe,
    /// Has no pipe if the forwarder has it.
    stderr: OutputPipe,
    forwarder: Option<Forwarder>,
    buffer: Vec<u8>,
}

impl Streams {
    /// Takes the child's streams. stdout may be a file of the caller's, and then is none of them. `exit` ends when the
    /// command has exited. `input` is all of it, unless it `stays_open`.
    pub(super) fn of(
        child: &mut Child,
        exit: PipeReader,
        invocation: &Invocation,
        input: Vec<u8>,
        stays_open: bool,
    ) -> io::Result<Streams> {
        let stdin = child.stdin.take().map(|stdin| PipeWriter::from(OwnedFd::from(stdin)));
        stdin.as_ref().map_or(Ok(()), |stdin| ioctl_fionbio(stdin, true))?;
        let excess = if invocation.is_cut { Excess::CutsMiddle } else { Excess::Error };
        let mut stderr = OutputPipe::new(child.stderr.take(), Output::new(STDERR_KEPT, Excess::CutsStart))?;
        let heard = stderr.pipe.take_if(|_| invocation.is_heard);
        let mut streams = Streams {
            exit: OutputPipe::new(Some(exit), Output::new(0, Excess::CutsStart))?,
            stdin,
            stays_open,
            input,
            written: 0,
            stdout: OutputPipe::new(child.stdout.take(), Output::new(invocation.stdout_cap, excess))?,
            stderr,
            forwarder: heard.map(Forwarder::start).transpose()?,
            buffer: vec![0; BUFFER],
        };
        // All of a short input fits into the pipe.
        streams.feed();
        Ok(streams)
    }

    pub(super) fn has_exited(&self) -> bool {
        self.exit.pipe.is_none()
    }

    /// Have stdout and stderr ended?
    pub(super) fn have_ended(&self) -> bool {
        let speaks = self.forwarder.as_ref().is_some_and(|forwarder| forwarder.thread.pipe.is_some());
        self.stdout.pipe.is_none() && self.stderr.pipe.is_none() && !speaks
    }

    /// Serves the streams that can be served now; waits for one until then.
    pub(super) fn serve(&mut self, until: Deadline) -> Result<(), ExecError> {
        let speaking = self.forwarder.as_ref().and_then(|forwarder| forwarder.thread.pipe.as_ref());
        let readers =
            [self.exit.pipe.as_ref(), self.stdout.pipe.as_ref(), self.stderr.pipe.as_ref(), speaking];
        let readers = readers.into_iter().flatten().map(|pipe| PollFd::new(pipe, PollFlags::IN));
        let stdin =
            self.stdin.iter().filter(|_| self.is_behind()).map(|stdin| PollFd::new(stdin, PollFlags::OUT));
        poll(&mut readers.chain(stdin).collect::<Vec<_>>(), until).map_err(ExecError::Reading)?;
        self.exit.read(&mut self.buffer)?;
        self.feed();
        self.stdout.read(&mut self.buffer)?;
        let _ = self.stderr.read(&mut self.buffer);
        if let Some(forwarder) = &mut self.forwarder {
            forwarder.thread.read(&mut self.buffer)?;
        }
        Ok(())
    }

    /// Reads what a command that is gone has left in its pipes. If stderr is passed on, its reader gets a moment.
    pub(super) fn drain(
        &mut self,
        waited: Result<(), ExecError>,
        deadline: Deadline,
    ) -> Result<(), ExecError> {
        let waited = waited.and_then(|()| self.stdout.drain(&mut self.buffer, deadline));
        // Also of a command that has failed: it says why at its end.
        let _ = self.stderr.drain(&mut self.buffer, Deadline::after(PATIENCE));
        if let Some(forwarder) = &mut self.forwarder {
            forwarder.finish(if waited.is_ok() { PATIENCE } else { LITTLE_PATIENCE });
        }
        waited
    }

    /// What was printed on stdout, and the end of stderr.
    pub(super) fn taken(self) -> (Vec<u8>, Vec<u8>) {
        let stderr = self.forwarder.map_or(self.stderr.kept, Forwarder::stop);
        (self.stdout.kept.take(), stderr.take())
    }

    /// Adds to the input of a command whose stdin stays open.
    pub(super) fn send(&mut self, more: &[u8]) {
        self.input.drain(..std::mem::take(&mut self.written));
        self.input.extend_from_slice(more);
        self.feed();
    }

    /// Is a part of the input not written yet?
    pub(super) fn is_behind(&self) -> bool {
        self.stdin.is_some() && (self.written < self.input.len() || !self.stays_open)
    }

    fn feed(&mut self) {
        let Some(stdin) = &mut self.stdin else { return };
        let left = &self.input[self.written..];
        match if left.is_empty() { Ok(0) } else { stdin.write(left) } {
            Ok(n) => self.written += n,
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // The command's choice not to read; its exit status decides.
            Err(_) => (self.stdin, self.written) = (None, self.input.len()),
        }
        if self.written == self.input.len() && !self.stays_open {
            self.stdin = None;
        }
    }
}
