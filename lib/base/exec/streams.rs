//! A command's three streams, served by the thread that waits for it: each is read or written when that takes no
//! waiting. Only a stderr that is passed on has a thread of its own ([`Speaker`]).

use crate::base::deadline::Deadline;
use crate::base::exec::error::ExecError;
use crate::base::exec::output::Output;
use crate::base::exec::pipe::{Tail, in_pipe, poll, read};
use crate::base::exec::speaker::Speaker;
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
    exit: Option<PipeReader>,
    /// Ends when all of the input is written, or the command has closed it.
    stdin: Option<PipeWriter>,
    input: Vec<u8>,
    written: usize,
    /// Ends when nobody holds the other end any more.
    stdout: Option<PipeReader>,
    output: Output,
    /// The same; it is the speaker's if it is passed on.
    stderr: Option<PipeReader>,
    tail: Tail,
    speaker: Option<Speaker>,
    buffer: Vec<u8>,
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
        let stdin = child.stdin.take().map(|stdin| PipeWriter::from(OwnedFd::from(stdin)));
        let stdout = child.stdout.take().map(|stdout| PipeReader::from(OwnedFd::from(stdout)));
        let mut stderr = child.stderr.take().map(|stderr| PipeReader::from(OwnedFd::from(stderr)));
        // That poll finds something to read is no promise: a command can read from the pipe of its own stdout.
        stdin.as_ref().map_or(Ok(()), |stdin| ioctl_fionbio(stdin, true))?;
        [&stdout, &stderr].into_iter().flatten().try_for_each(|pipe| ioctl_fionbio(pipe, true))?;
        let speaker = stderr.take_if(|_| is_heard).map(Speaker::start).transpose()?;
        let (buffer, tail) = (vec![0; BUFFER], Tail::default());
        let exit = Some(exit);
        let mut streams =
            Streams { exit, stdin, input, written: 0, stdout, output, stderr, tail, speaker, buffer };
        // All of a short input fits into the pipe.
        streams.feed();
        Ok(streams)
    }

    pub(super) fn has_exited(&self) -> bool {
        self.exit.is_none()
    }

    /// Have stdout and stderr ended?
    pub(super) fn have_ended(&self) -> bool {
        let is_passed_on = self.speaker.as_ref().is_none_or(|speaker| speaker.thread.is_none());
        self.stdout.is_none() && self.stderr.is_none() && is_passed_on
    }

    /// What was printed on stdout, and the end of stderr.
    pub(super) fn taken(self) -> (Vec<u8>, Vec<u8>) {
        (self.output.take(), self.speaker.map_or(self.tail, Speaker::stop).0)
    }

    /// Serves the streams that can be served now; waits for one until then.
    pub(super) fn serve(&mut self, until: Deadline) -> Result<(), ExecError> {
        let speaking = self.speaker.as_ref().and_then(|speaker| speaker.thread.as_ref());
        let readers = [
            (Served::Exit, self.exit.as_ref()),
            (Served::Stdout, self.stdout.as_ref()),
            (Served::Stderr, self.stderr.as_ref()),
            (Served::Speaker, speaking),
        ];
        let readers =
            readers.iter().filter_map(|(who, pipe)| Some((*who, PollFd::new((*pipe)?, PollFlags::IN))));
        let stdin = self.stdin.iter().map(|stdin| (Served::Stdin, PollFd::new(stdin, PollFlags::OUT)));
        let (who, mut waited): (Vec<Served>, Vec<PollFd>) = readers.chain(stdin).unzip();
        poll(&mut waited, until).map_err(ExecError::Reading)?;
        let is_ready: Vec<bool> = waited.iter().map(|fd| !fd.revents().is_empty()).collect();
        for (who, _) in who.into_iter().zip(is_ready).filter(|(_, is_ready)| *is_ready) {
            match who {
                Served::Exit => self.exit = None,
                Served::Stdin => self.feed(),
                Served::Stdout => drop(self.collect(BUFFER)?),
                Served::Stderr => drop(self.listen(BUFFER)),
                Served::Speaker => self.speaker.iter_mut().for_each(|speaker| speaker.thread = None),
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

    /// Reads what the command and its group, which are gone, have left in stdout's pipe: it is there without waiting. A
    /// process that left the group may write for ever: what comes from now on is not read.
    pub(super) fn drain_stdout(&mut self, deadline: Deadline) -> Result<(), ExecError> {
        let mut left = self.stdout.as_ref().map_or(Ok(0), in_pipe).map_err(ExecError::Reading)?;
        while left > 0 {
            let n = self.collect(left)?;
            left = if n == 0 { 0 } else { left - n };
            if left > 0 && deadline.passed() {
                return Err(ExecError::Deadline);
            }
        }
        Ok(())
    }

    /// The same for stderr. If it is passed on, its reader gets a moment.
    pub(super) fn drain_stderr(&mut self, is_in_time: bool) {
        let mut left = self.stderr.as_ref().map_or(Ok(0), in_pipe).unwrap_or(0);
        while left > 0 {
            let n = self.listen(left);
            left = if n == 0 { 0 } else { left - n };
        }
        if let Some(speaker) = &mut self.speaker {
            speaker.finish(if is_in_time { PATIENCE } else { LITTLE_PATIENCE });
        }
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
        let buffer = &mut self.buffer[..most.min(BUFFER)];
        let Some(n) = read(stdout, buffer).map_err(ExecError::Reading)? else {
            self.stdout = None;
            return Ok(0);
        };
        self.output.add(&buffer[..n])?;
        Ok(n)
    }

    /// Reads once from stderr, at most `most` bytes. How many there were.
    fn listen(&mut self, most: usize) -> usize {
        let Some(stderr) = &mut self.stderr else { return 0 };
        let buffer = &mut self.buffer[..most.min(BUFFER)];
        let Ok(Some(n)) = read(stderr, buffer) else {
            self.stderr = None;
            return 0;
        };
        self.tail.add(&buffer[..n]);
        n
    }
}

/// What can be served.
#[derive(Clone, Copy)]
enum Served {
    Exit,
    Stdin,
    Stdout,
    Stderr,
    /// Its thread has ended.
    Speaker,
}
