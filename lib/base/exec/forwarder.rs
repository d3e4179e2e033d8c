//! Passes a command's stderr on to ours, in a thread of its own: our stderr may block.

use crate::base::deadline::Deadline;
use crate::base::stderr;
use crate::base::sync::spawn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// How often it is looked whether the reader has caught up.
pub(super) const TICK: Duration = Duration::from_millis(5);
/// A command whose output waits for the reader in so many pieces is not read any further.
const MOST_WAITING: usize = 8;

/// How many pieces of all commands are not passed on yet.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Whether anything that a command has said is still being passed on.
pub(super) fn is_heard() -> bool {
    WAITING.load(SeqCst) > 0
}

pub(super) struct Forwarder {
    pieces: Sender<Vec<u8>>,
    /// How many are not passed on yet.
    waiting: Arc<AtomicUsize>,
    /// The command's time is over: nothing more is passed on.
    is_over: Arc<AtomicBool>,
}

impl Forwarder {
    pub(super) fn start() -> io::Result<Forwarder> {
        let (pieces, received) = channel::<Vec<u8>>();
        let (waiting, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let theirs = (Arc::clone(&waiting), Arc::clone(&is_over));
        spawn(move || {
            for piece in received {
                stderr::pass_on(&piece, &theirs.1);
                theirs.0.fetch_sub(1, SeqCst);
                WAITING.fetch_sub(1, SeqCst);
            }
        })?;
        Ok(Forwarder { pieces, waiting, is_over })
    }

    pub(super) fn say(&self, piece: &[u8]) {
        self.waiting.fetch_add(1, SeqCst);
        WAITING.fetch_add(1, SeqCst);
        // The thread ends after this does.
        let _ = self.pieces.send(piece.to_vec());
    }

    /// Whether the reader of our stderr has fallen behind.
    pub(super) fn is_behind(&self) -> bool {
        self.waiting.load(SeqCst) >= MOST_WAITING
    }

    /// Waits, no longer than that, until all is passed on. After that nothing is.
    pub(super) fn finish(&self, patience: Duration) {
        let until = Deadline::after(patience);
        while self.waiting.load(SeqCst) > 0 && !until.passed() {
            std::thread::sleep(TICK);
        }
        self.is_over.store(true, SeqCst);
    }
}
