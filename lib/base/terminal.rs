//! The terminal that a person sits at, whatever the streams of the process are.

use crate::base::deadline::Deadline;
use crate::base::error::Result;

/// Asks there, and returns the line that is typed. `None`: there is nobody to ask, or they typed Ctrl-D.
///
/// Nobody is asked if stderr leads elsewhere. Then the terminal, if there is one, belongs to the program that reads our
/// streams.
#[cfg(unix)]
pub fn ask(question: &str, deadline: Deadline) -> Result<Option<String>> {
    use rustix::fs::{Mode, OFlags};
    use std::io::{BufRead, BufReader, IsTerminal, Write};
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = match std::io::stderr().is_terminal() {
        true => rustix::fs::open("/dev/tty", flags, Mode::empty()).ok().map(std::fs::File::from),
        false => None,
    };
    let Some(mut terminal) = terminal else { return Ok(None) };
    if terminal.write_all(question.as_bytes()).is_err() {
        return Ok(None);
    }
    crate::base::stdin::line(move |line| BufReader::new(terminal).read_line(line), deadline)
}

#[cfg(not(unix))]
pub fn ask(_question: &str, _deadline: Deadline) -> Result<Option<String>> {
    Ok(None)
}

/// Whether stdout shows the text at once, with two lines below it. Also if it does not say how large it is.
pub fn fits(text: &str) -> bool {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(rustix::stdio::stdout())
        && let (rows @ 1.., columns @ 1..) = (usize::from(size.ws_row), usize::from(size.ws_col))
    {
        let rows_of = |line: &str| line.chars().count().div_ceil(columns).max(1);
        return text.lines().map(rows_of).sum::<usize>() + 2 <= rows;
    }
    let _ = text;
    true
}
