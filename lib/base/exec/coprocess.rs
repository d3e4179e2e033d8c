//! A command that stays while we talk to it: lines in, lines out, each under a deadline.
//!
//! Its streams are served only while an answer is waited for. Between two of them a command that prints much waits.

use crate::base::deadline::Deadline;
use crate::base::exec::child::begin;
use crate::base::exec::group::{GRACE, ProcessGroup, have_all_ended};
use crate::base::exec::streams::Streams;
use crate::base::exec::{ExecError, Invocation};
use std::process::{Child, ExitStatus};

pub struct Coprocess {
    child: Child,
    group: ProcessGroup,
    /// `None` once it was ended.
    streams: Option<Streams>,
    /// Whole lines, and where the next one begins.
    lines: Vec<u8>,
    next: usize,
}

impl Coprocess {
    /// Starts the command in a process group of its own. `stdout_cap` is its longest line; the deadline does not count.
    pub fn start(invocation: Invocation) -> Result<Coprocess, ExecError> {
        let (child, group, streams) = begin(&invocation, Vec::new(), true)?;
        Ok(Coprocess { child, group, streams: Some(streams), lines: Vec::new(), next: 0 })
    }

    /// Writes a line, as far as the command reads it. The rest is written while its lines are waited for.
    pub fn send(&mut self, line: &[u8]) {
        if let Some(streams) = &mut self.streams {
            streams.send(line);
        }
    }

    /// Has the command not read all that it was sent?
    pub fn is_behind(&self) -> bool {
        self.streams.as_ref().is_some_and(Streams::is_behind)
    }

    /// The next line on its stdout, without its end; `None` if there will be none.
    ///
    /// # Errors
    /// There was none by the deadline, or it is too long.
    pub fn line(&mut self, deadline: Deadline) -> Result<Option<Vec<u8>>, ExecError> {
        let mut until = deadline;
        loop {
            let rest = &self.lines[self.next..];
            if let Some(length) = memchr::memchr(b'\n', rest) {
                let line = rest[..length].to_vec();
                self.next += length + 1;
                return Ok(Some(line));
            }
            let Some(streams) = &mut self.streams else { return Ok(None) };
            // On a busy machine the line may have come long ago: it is looked at once more.
            let is_last_look = until.passed();
            streams.serve(until)?;
            if let Some(lines) = streams.stdout.kept.take_lines() {
                (self.lines, self.next) = (lines, 0);
                continue;
            }
            match streams.has_exited() {
                _ if streams.stdout.pipe.is_none() => return Ok(None),
                true if is_last_look => return Ok(None),
                // A process that it started may still print.
                true => until = until.earlier(Deadline::after(GRACE)),
                false if is_last_look => return Err(ExecError::Deadline),
                false => {}
            }
        }
    }

    /// Ends it with its process group. How it ended, and the end of its stderr; nothing the second time.
    pub fn end(&mut self) -> (Option<ExitStatus>, Vec<u8>) {
        let Some(mut streams) = self.streams.take() else { return (None, Vec::new()) };
        let status = self.group.end(&mut self.child);
        // What is left on stdout is not read.
        let _ = streams.drain(Err(ExecError::Deadline), Deadline::after(GRACE));
        (status, streams.taken().1)
    }
}

impl Drop for Coprocess {
    /// One that `end_all` has ended is left alone: the lock of the groups is never free again.
    fn drop(&mut self) {
        if !have_all_ended() {
            self.end();
        }
    }
}
