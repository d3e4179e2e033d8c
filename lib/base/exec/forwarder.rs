//! The stderr of a command that is passed on to ours as it comes, by a thread of its own: our stderr may block.

use crate::base::deadline::Deadline;
use crate::base::exec::pipe::{Excess, Output, OutputPipe, STDERR_KEPT, in_pipe, poll, read};
use crate::base::stderr;
use crate::base::sync::{lock, spawn};
use rustix::event::{PollFd, PollFlags};
use std::io::{self, PipeReader};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often it is looked whether all has been passed on.
const TICK: Duration = Duration::from_millis(5);

/// How many commands' stderr is being passed on.
static FORWARDING: AtomicUsize = AtomicUsize::new(0);

/// Whether a command's stderr is still being passed on.
pub(super) fn is_heard() -> bool {
    FORWARDING.load(SeqCst) > 0
}

pub(super) struct Forwarder {
    shared: Arc<ForwardState>,
    /// Ends with the thread.
    pub(super) thread: OutputPipe,
}

struct ForwardState {
    /// The command's.
    stderr: PipeReader,
    tail: Mutex<Output>,
    /// Something was read that is not passed on yet.
    is_behind: AtomicBool,
    /// The command's time is over: nothing more is passed on.
    is_over: AtomicBool,
}

fn tail() -> Output {
    Output::new(STDERR_KEPT, Excess::CutsStart)
}

impl Forwarder {
    pub(super) fn start(stderr: PipeReader) -> io::Result<Forwarder> {
        let (thread, running) = io::pipe()?;
        let thread = OutputPipe::new(Some(thread), tail())?;
        let shared = Arc::new(ForwardState {
            stderr,
            tail: Mutex::new(tail()),
            is_behind: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        });
        let theirs = Arc::clone(&shared);
        FORWARDING.fetch_add(1, SeqCst);
        let started = spawn(move || {
            theirs.pass_on();
            FORWARDING.fetch_sub(1, SeqCst);
            drop(running);
        });
        if started.is_err() {
            FORWARDING.fetch_sub(1, SeqCst);
        }
        started.map(|()| Forwarder { shared, thread })
    }

    /// Waits, no longer than that, until all that is in the pipe now is passed on.
    pub(super) fn finish(&mut self, patience: Duration) {
        let until = Deadline::after(patience);
        while let Some(thread) = &self.thread.pipe
            && (self.shared.is_behind.load(SeqCst) || in_pipe(&self.shared.stderr).is_ok_and(|n| n > 0))
            && !until.passed()
        {
            let mut waited = [PollFd::new(thread, PollFlags::IN)];
            if poll(&mut waited, until.earlier(Deadline::after(TICK))).is_ok_and(|ready| ready > 0) {
                self.thread.pipe = None;
            }
        }
    }

    /// The end of what it has read.
    pub(super) fn stop(self) -> Output {
        self.shared.is_over.store(true, SeqCst);
        std::mem::replace(&mut *lock(&self.shared.tail), tail())
    }
}

impl ForwardState {
    fn pass_on(&self) {
        let mut buffer = vec![0; 8 * 1024];
        loop {
            let mut stderr = [PollFd::new(&self.stderr, PollFlags::IN)];
            if rustix::event::poll(&mut stderr, None).is_err_and(|e| e != rustix::io::Errno::INTR) {
                return;
            }
            // First: what is read is in the pipe no more.
            self.is_behind.store(true, SeqCst);
            let Ok(Some(n)) = read(&mut &self.stderr, &mut buffer) else { return };
            let _ = lock(&self.tail).add(&buffer[..n]);
            if !stderr::pass_on(&buffer[..n], &self.is_over) {
                return;
            }
            self.is_behind.store(false, SeqCst);
        }
    }
}
