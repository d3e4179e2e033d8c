//! A command's three streams, each served by its own thread, and events about their ends.

use crate::base::exec::error::ExecError;
use crate::base::stderr;
use crate::base::sync::{lock, spawn};
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

/// How much of stderr is kept for the error message, in bytes.
pub(super) const STDERR_KEPT: usize = 8 * 1024;

pub(super) enum StreamEvent {
    Exited,
    Stdout(Result<(), ExecError>),
    StderrEnded,
}

/// Which parts of a command have ended.
#[derive(Default)]
pub(super) struct Completion {
    pub(super) exited: bool,
    pub(super) stdout: bool,
    pub(super) stderr: bool,
}

impl Completion {
    pub(super) fn note(&mut self, event: StreamEvent) -> Result<(), ExecError> {
        match event {
            StreamEvent::Exited => self.exited = true,
            StreamEvent::StderrEnded => self.stderr = true,
            StreamEvent::Stdout(ended) => {
                self.stdout = true;
                ended?;
            }
        }
        Ok(())
    }

    pub(super) fn streams(&self) -> bool {
        self.stdout && self.stderr
    }
}

/// The capacity that every new pipe has, in bytes.
const PIPE: usize = 4096;

pub(super) fn feed(stdin: Option<impl Write + Send + 'static>, input: Vec<u8>) -> io::Result<()> {
    let Some(mut stdin) = stdin else { return Ok(()) };
    let fits = input.len() <= PIPE;
    // An error here is the command's choice not to read; its exit status decides.
    let write = move || drop(stdin.write_all(&input));
    if fits {
        let mut write = write;
        write();
        return Ok(());
    }
    spawn(write)
}

/// What a command prints on stdout.
pub(super) struct Output {
    bytes: Vec<u8>,
    cap: usize,
    /// Whether more than `cap` is cut in the middle, instead of being an error.
    is_cut: bool,
    /// How many bytes were cut.
    left_out: usize,
}

impl Output {
    pub(super) fn new(cap: usize, is_cut: bool) -> Output {
        Output { bytes: Vec::new(), cap, is_cut, left_out: 0 }
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), ExecError> {
        if !self.is_cut && self.bytes.len() + bytes.len() > self.cap {
            return Err(ExecError::TooMuchOutput(self.cap));
        }
        self.bytes.extend_from_slice(bytes);
        // Not at every read, for then each would move half of it.
        if self.is_cut && self.bytes.len() > 2 * self.cap {
            self.cut();
        }
        Ok(())
    }

    fn cut(&mut self) {
        let surplus = self.bytes.len().saturating_sub(self.cap);
        let start = self.cap / 2;
        self.bytes.drain(start..start + surplus);
        self.left_out += surplus;
    }

    /// All of it, with a mark where it was cut.
    pub(super) fn take(&mut self) -> Vec<u8> {
        if self.is_cut && self.bytes.len() > self.cap {
            self.cut();
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        if self.left_out > 0 {
            let mark = format!("\n[… {} bytes left out …]\n", self.left_out);
            let at = self.cap / 2;
            bytes.splice(at..at, mark.into_bytes());
        }
        bytes
    }
}

pub(super) fn collect(
    from: Option<impl Read + Send + 'static>,
    into: Arc<Mutex<Output>>,
    events: Sender<StreamEvent>,
) -> io::Result<()> {
    let Some(mut from) = from else { return Ok(()) };
    spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        let ended = loop {
            match from.read(&mut buffer) {
                Ok(0) => break Ok(()),
                Ok(n) => {
                    if let Err(e) = lock(&into).add(&buffer[..n]) {
                        break Err(e);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => break Err(ExecError::Reading(e)),
            }
        };
        let _ = events.send(StreamEvent::Stdout(ended));
    })
}

/// What a command prints on stderr.
#[derive(Default)]
pub(super) struct StderrTail {
    /// The last [`STDERR_KEPT`] bytes.
    pub(super) tail: Mutex<Vec<u8>>,
    /// Whether it is passed on.
    pub(super) is_heard: bool,
    /// The command's time is over: nothing more is passed on.
    pub(super) over: AtomicBool,
}

/// How many commands' stderr is being passed on.
static SPEAKING: AtomicUsize = AtomicUsize::new(0);

pub(super) fn pass_on(
    from: Option<impl Read + Send + 'static>,
    stderr: Arc<StderrTail>,
    events: Sender<StreamEvent>,
) -> io::Result<()> {
    let Some(mut from) = from else { return Ok(()) };
    SPEAKING.fetch_add(1, SeqCst);
    let speaker = spawn(move || {
        let mut buffer = vec![0; 8 * 1024];
        loop {
            let n = match from.read(&mut buffer) {
                Ok(n @ 1..) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => break,
            };
            {
                let mut tail = lock(&stderr.tail);
                tail.extend_from_slice(&buffer[..n]);
                let surplus = tail.len().saturating_sub(STDERR_KEPT);
                tail.drain(..surplus);
            }
            if stderr.is_heard && !stderr::pass_on(&buffer[..n], &stderr.over) {
                break;
            }
        }
        SPEAKING.fetch_sub(1, SeqCst);
        let _ = events.send(StreamEvent::StderrEnded);
    });
    if speaker.is_err() {
        SPEAKING.fetch_sub(1, SeqCst);
    }
    speaker
}

/// Is a command's stderr still being passed on?
#[cfg(unix)]
pub(super) fn is_heard() -> bool {
    SPEAKING.load(SeqCst) > 0
}
