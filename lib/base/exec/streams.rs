//! A command's three streams, served by the thread that waits for it: each is read or written when that takes no
//! waiting.

use crate::base::deadline::Deadline;
use crate::base::exec::error::ExecError;
use crate::base::exec::output::Output;
use crate::base::stderr;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// How much of stderr is kept for the error message, in bytes.
pub(super) const STDERR_KEPT: usize = 8 * 1024;
const BUFFER: usize = 64 * 1024;

pub(super) struct Streams {
    /// Ends when the command has exited; `None` after that.
    exit: Option<PipeReader>,
    /// `None` once all of the input is written, or the command has closed it.
    stdin: Option<ChildStdin>,
    input: Vec<u8>,
    written: usize,
    /// `None` once nobody holds the other end any more.
    stdout: Option<ChildStdout>,
    output: Output,
    stderr: Option<ChildStderr>,
    tail: Vec<u8>,
    /// What of stderr is still to be passed on; `None` if nobody is to hear it.
    unheard: Option<Vec<u8>>,
    buffer: Vec<u8>,
    /// As long as something of stderr is still to be passed on.
    speaker: Option<Speaker>,
}

impl Streams {
    /// Takes the child's streams. stdout may be a file of the caller's, and then is none of them. `exit` ends when the
    /// command has exited.
    pub(super) fn of(
        child: &mut Child,
        exit: PipeReader,
        input: Vec<u8>,
        output: Output,
        is_heard: bool,
    ) -> io::Result<Streams> {
        let stdin = child.stdin.take();
        if let Some(stdin) = &stdin {
            // Our end alone: the command's is another open file.
            rustix::io::ioctl_fionbio(stdin, true)?;
        }
        let mut streams = Streams {
            exit: Some(exit),
            stdin,
            input,
            written: 0,
            stdout: child.stdout.take(),
            output,
            stderr: child.stderr.take(),
            tail: Vec::new(),
            unheard: is_heard.then(Vec::new),
            buffer: vec![0; BUFFER],
            speaker: is_heard.then(Speaker::new),
        };
        // All of a short input fits into the pipe.
        streams.feed();
        Ok(streams)
    }

    pub(super) fn has_exited(&self) -> bool {
        self.exit.is_none()
    }

    /// Have stdout and stderr ended?
    pub(super) fn have_ended(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    /// What was printed on stdout, and the end of stderr.
    pub(super) fn taken(self) -> (Vec<u8>, Vec<u8>) {
        (self.output.take(), self.tail)
    }

    fn feed(&mut self) {
        let Some(stdin) = &mut self.stdin else { return };
        match stdin.write(&self.input[self.written..]) {
            Ok(n) => self.written += n,
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // The command's choice not to read; its exit status decides.
            Err(_) => self.written = self.input.len(),
        }
        if self.written == self.input.len() {
            self.stdin = None;
        }
    }

    /// Reads once from stdout, at most `most` bytes. How many there were.
    fn collect(&mut self, most: usize) -> Result<usize, ExecError> {
        let Some(stdout) = &mut self.stdout else { return Ok(0) };
        let n = read(stdout, &mut self.buffer, most).map_err(ExecError::Reading)?;
        self.output.add(&self.buffer[..n])?;
        if n == 0 {
            self.stdout = None;
        }
        Ok(n)
    }

    /// Reads once from stderr, at most `most` bytes. How many there were.
    fn listen(&mut self, most: usize) -> usize {
        let Some(stderr) = &mut self.stderr else { return 0 };
        let n = read(stderr, &mut self.buffer, most).unwrap_or(0);
        self.tail.extend_from_slice(&self.buffer[..n]);
        self.tail.drain(..self.tail.len().saturating_sub(STDERR_KEPT));
        if let Some(unheard) = &mut self.unheard {
            unheard.extend_from_slice(&self.buffer[..n]);
        }
        if n == 0 {
            self.stderr = None;
        }
        n
    }
}

fn read(from: &mut impl Read, buffer: &mut [u8], most: usize) -> io::Result<usize> {
    let most = most.min(buffer.len());
    loop {
        match from.read(&mut buffer[..most]) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

impl Streams {
    /// Serves the streams that can be served now; waits for one until then.
    pub(super) fn serve(&mut self, until: Deadline) -> Result<(), ExecError> {
        // While the reader of our own stderr is behind, no more of the command's is read.
        let is_behind = self.unheard.as_ref().is_some_and(|bytes| !bytes.is_empty());
        let ours = io::stderr();
        let waited: Vec<(Served, PollFd)> = [
            self.exit.as_ref().map(|exit| (Served::Exit, PollFd::new(exit, PollFlags::IN))),
            self.stdin.as_ref().map(|stdin| (Served::Stdin, PollFd::new(stdin, PollFlags::OUT))),
            self.stdout.as_ref().map(|stdout| (Served::Stdout, PollFd::new(stdout, PollFlags::IN))),
            match &self.stderr {
                _ if is_behind => Some((Served::OurStderr, PollFd::new(&ours, PollFlags::OUT))),
                stderr => stderr.as_ref().map(|stderr| (Served::Stderr, PollFd::new(stderr, PollFlags::IN))),
            },
        ]
        .into_iter()
        .flatten()
        .collect();
        let (who, mut waited): (Vec<Served>, Vec<PollFd>) = waited.into_iter().unzip();
        poll(&mut waited, until).map_err(ExecError::Reading)?;
        let is_ready: Vec<bool> = waited.iter().map(|fd| !fd.revents().is_empty()).collect();
        for (served, _) in who.into_iter().zip(is_ready).filter(|(_, is_ready)| *is_ready) {
            match served {
                Served::Exit => self.exit = None,
                Served::Stdin => self.feed(),
                Served::Stdout => drop(self.collect(BUFFER)?),
                Served::Stderr => drop(self.listen(BUFFER)),
                Served::OurStderr => {}
            }
        }
        if let Some(unheard) = &mut self.unheard {
            stderr::pass_on(unheard);
            if unheard.is_empty() && self.stderr.is_none() {
                self.speaker = None;
            }
        }
        Ok(())
    }

    /// Does somebody still hold the other end of stdout?
    pub(super) fn is_held(&self) -> bool {
        let Some(stdout) = &self.stdout else { return false };
        let mut stdout = [PollFd::new(stdout, PollFlags::IN)];
        let now = Deadline::after(Duration::ZERO);
        poll(&mut stdout, now).is_ok() && !stdout[0].revents().contains(PollFlags::HUP)
    }

    /// Reads what the command and its group, which are gone, have left in the pipes: it is there without waiting. A
    /// process that left the group may write for ever: what comes from now on is not read.
    pub(super) fn drain(&mut self, deadline: Deadline) -> Result<(), ExecError> {
        let mut left = in_pipe(self.stdout.as_ref())?;
        while left > 0 && self.stdout.is_some() {
            left = left.saturating_sub(self.collect(left)?);
            if left > 0 && deadline.passed() {
                return Err(ExecError::Deadline);
            }
        }
        let mut left = in_pipe(self.stderr.as_ref())?;
        while left > 0 && self.stderr.is_some() && !deadline.passed() {
            left = left.saturating_sub(self.listen(left));
        }
        if let Some(bytes) = self.unheard.take() {
            stderr::pass_on_last(bytes);
        }
        Ok(())
    }
}

/// What can be served.
enum Served {
    Exit,
    Stdin,
    Stdout,
    Stderr,
    /// Its reader is ready for more.
    OurStderr,
}

/// Waits until one of them is ready, or until then.
fn poll(waited: &mut [PollFd], until: Deadline) -> io::Result<usize> {
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
fn in_pipe(pipe: Option<&impl AsFd>) -> Result<usize, ExecError> {
    let count = pipe.map_or(Ok(0), rustix::io::ioctl_fionread).map_err(|e| ExecError::Reading(e.into()))?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// How many commands' stderr is being passed on.
static SPEAKING: AtomicUsize = AtomicUsize::new(0);

/// Is a command's stderr still being passed on?
pub(super) fn is_heard() -> bool {
    SPEAKING.load(SeqCst) > 0
}

struct Speaker;

impl Speaker {
    fn new() -> Speaker {
        SPEAKING.fetch_add(1, SeqCst);
        Speaker
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        SPEAKING.fetch_sub(1, SeqCst);
    }
}
