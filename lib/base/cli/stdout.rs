//! The only writer to stdout: locked, buffered, complete or an error.

use crate::base::cli::paint::Paint;
use crate::base::error::{Error, Result, unwritable};
use crate::base::text::{escaped_json, narrowed, without_controls};
use serde::Serialize;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use terminal_size::{Height, Width, terminal_size_of};
use unicode_width::UnicodeWidthStr;

/// The columns of a terminal that does not say how wide it is.
const USUAL: usize = 80;

/// Whether stdout was closed (`>&-`) when the process started. Rust's own start opens /dev/null in its place, and
/// everything written there would be lost without an error.
static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Runs before `main`, and before Rust's own start.
#[cfg(unix)]
#[ctor::ctor]
fn look_at_stdout() {
    let flags = rustix::io::fcntl_getfd(rustix::stdio::stdout());
    WAS_CLOSED.store(flags == Err(rustix::io::Errno::BADF), Relaxed);
}

/// Closes stdout for the program that replaces this one, if it was closed for us.
#[cfg(unix)]
pub fn hand_on_closed_stdout() {
    if WAS_CLOSED.load(Relaxed) {
        let _ = rustix::io::fcntl_setfd(rustix::stdio::stdout(), rustix::io::FdFlags::CLOEXEC);
    }
}

/// Remembers whether its reader left (`| head -1`): that is a success, and later output is discarded. Any other
/// failure, like a full disk, is an error. A child's broken pipe does not count.
pub struct Stdout {
    out: BufWriter<StdoutLock<'static>>,
    reader_left: bool,
    broken: bool,
    /// `None`: on a terminal alone.
    pub(super) is_colored: Option<bool>,
}

impl Stdout {
    #[allow(clippy::disallowed_methods, reason = "the one place that opens stdout")]
    pub(super) fn open() -> Stdout {
        let out = BufWriter::new(io::stdout().lock());
        Stdout { out, reader_left: false, broken: false, is_colored: Some(false) }
    }

    pub fn text(&mut self, text: &str) -> Result<()> {
        self.bytes(text.as_bytes())
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let written = if WAS_CLOSED.load(Relaxed) && !bytes.is_empty() {
            Err(io::Error::other("it is closed"))
        } else {
            self.out.write_all(bytes)
        };
        self.judge(written)
    }

    pub fn line(&mut self, text: &str) -> Result<()> {
        self.text(text)?;
        self.text("\n")
    }

    /// One JSON document on one line. On a terminal nothing in it is live, or hidden.
    pub fn json(&mut self, value: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string(value).map_err(unwritable)?;
        self.line(&if self.is_terminal() { escaped_json(text) } else { text })
    }

    /// Writes everything out. Only then is it certain that the output has arrived.
    pub fn flush(&mut self) -> Result<()> {
        let written = self.out.flush();
        self.judge(written)
    }

    pub fn is_terminal(&self) -> bool {
        self.out.get_ref().is_terminal()
    }

    /// In which colours texts are written.
    pub fn paint(&self) -> Paint {
        Paint(self.is_colored.unwrap_or_else(|| self.is_terminal()))
    }

    /// The columns and rows of the terminal, if it says how many it has.
    fn size(&self) -> Option<(usize, usize)> {
        let (Width(columns), Height(rows)) = terminal_size_of(self.out.get_ref())?;
        (columns > 0 && rows > 0).then(|| (usize::from(columns), usize::from(rows)))
    }

    /// How many columns the terminal has.
    pub fn columns(&self) -> usize {
        self.size().map_or(USUAL, |(columns, _)| columns)
    }

    /// The text with its lines as wide as the terminal; in a pipe as it is.
    pub fn narrowed(&self, text: &str) -> String {
        if self.is_terminal() { narrowed(text, self.columns()) } else { text.to_owned() }
    }

    /// Whether the terminal shows the text at once, with two lines below it. Also if it does not say how large it is.
    pub fn fits(&self, text: &str) -> bool {
        let Some((columns, rows)) = self.size() else { return true };
        let rows_of = |line: &str| line.width().div_ceil(columns).max(1);
        without_controls(text).lines().map(rows_of).sum::<usize>() + 2 <= rows
    }

    /// Whether a write has failed for another reason than a reader that left.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Whether its reader has left: nobody sees what is written.
    pub fn is_unread(&self) -> bool {
        self.reader_left
    }

    fn judge(&mut self, written: io::Result<()>) -> Result<()> {
        match written {
            _ if self.reader_left => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.reader_left = true;
                Ok(())
            }
            Err(e) => {
                self.broken = true;
                Err(Error::io(format!("cannot write to stdout: {e}")))
            }
            Ok(()) => Ok(()),
        }
    }
}
