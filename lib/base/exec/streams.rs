//! A command's three streams, each served by a thread of its own, and word of how far they are.

use crate::base::exec::fault::Fault;
use crate::base::stderr;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How much of stderr is kept for the error message, in bytes.
pub(crate) const STDERR_KEPT: usize = 8 * 1024;

pub(crate) enum Event {
    Exited,
    Stdout(Result<(), Fault>),
    StderrEnded,
}

/// What of a command has come to its end.
#[derive(Default)]
pub(crate) struct Ended {
    pub(crate) exited: bool,
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
}

impl Ended {
    pub(crate) fn note(&mut self, event: Event) -> Result<(), Fault> {
        match event {
            Event::Exited => self.exited = true,
            Event::StderrEnded => self.stderr = true,
            Event::Stdout(ended) => {
                self.stdout = true;
                ended?;
            }
        }
        Ok(())
    }

    pub(crate) fn streams(&self) -> bool {
        self.stdout && self.stderr
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What every new pipe holds, in bytes.
const PIPE: usize = 4096;

/// A thread that is not waited for. Unlike `std::thread::spawn`, no panic where the system has none to give.
fn thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().spawn(work).map(drop)
}

pub(crate) fn feed(stdin: Option<impl Write + Send + 'static>, input: Vec<u8>) -> io::Result<()> {
    let Some(mut stdin) = stdin else { return Ok(()) };
    let at_once = input.len() <= PIPE;
    // An error here is the command's choice not to read; its exit status decides.
    let mut write = move || {
        let _ = stdin.write_all(&input);
    };
    if at_once {
        write();
        return Ok(());
    }
    thread(write)
}

pub(crate) fn collect(
    from: Option<impl Read + Send + 'static>,
    cap: usize,
    into: Arc<Mutex<Vec<u8>>>,
    events: Sender<Event>,
) -> io::Result<()> {
    let Some(mut from) = from else { return Ok(()) };
    thread(move || {
        let mut buffer = vec![0; 64 * 1024];
        let ended = loop {
            match from.read(&mut buffer) {
                Ok(0) => break Ok(()),
                Ok(n) => {
                    let mut all = locked(&into);
                    if all.len() + n > cap {
                        break Err(Fault::TooMuchOutput(cap));
                    }
                    all.extend_from_slice(&buffer[..n]);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => break Err(Fault::Reading(e)),
            }
        };
        let _ = events.send(Event::Stdout(ended));
    })
}

/// What a command says on stderr.
#[derive(Default)]
pub(crate) struct Heard {
    /// The end of it, at most [`STDERR_KEPT`] bytes.
    pub(crate) tail: Mutex<Vec<u8>>,
    /// Whether it is passed on.
    pub(crate) aloud: bool,
    /// The command's time is over: nothing more of it is passed on.
    pub(crate) over: AtomicBool,
}

/// How many commands' stderr is being passed on.
static SPEAKING: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn pass_on(
    from: Option<impl Read + Send + 'static>,
    heard: Arc<Heard>,
    events: Sender<Event>,
) -> io::Result<()> {
    let Some(mut from) = from else { return Ok(()) };
    SPEAKING.fetch_add(1, SeqCst);
    let speaker = thread(move || {
        let mut buffer = vec![0; 8 * 1024];
        loop {
            let n = match from.read(&mut buffer) {
                Ok(n @ 1..) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => break,
            };
            {
                let mut tail = locked(&heard.tail);
                tail.extend_from_slice(&buffer[..n]);
                let surplus = tail.len().saturating_sub(STDERR_KEPT);
                tail.drain(..surplus);
            }
            if heard.aloud && !stderr::pass_on(&buffer[..n], &heard.over) {
                break;
            }
        }
        SPEAKING.fetch_sub(1, SeqCst);
        let _ = events.send(Event::StderrEnded);
    });
    if speaker.is_err() {
        SPEAKING.fetch_sub(1, SeqCst);
    }
    speaker
}

/// Is a command's stderr still being passed on?
#[cfg(unix)]
pub(crate) fn is_heard() -> bool {
    SPEAKING.load(SeqCst) > 0
}
