//! The terminal that a person sits at, whatever the streams of the process are.

use crate::base::deadline::Deadline;
use crate::base::error::Result;
#[cfg(unix)]
use crate::base::text::disarmed;
#[cfg(unix)]
use crate::base::{stderr, stdin};

/// Asks there for a yes. `None`: there is nobody to ask, or they typed Ctrl-D.
pub fn agrees(question: &str, deadline: Deadline) -> Result<Option<bool>> {
    let typed = ask(question, deadline)?;
    Ok(typed.map(|typed| matches!(typed.trim().to_lowercase().as_str(), "y" | "yes")))
}

#[cfg(unix)]
fn ask(question: &str, deadline: Deadline) -> Result<Option<String>> {
    use crate::base::sync::lock;
    use rustix::fs::{Mode, OFlags};
    use std::io::{BufRead, BufReader, Write};
    use std::sync::Mutex;
    // Two tools may want to ask at once.
    static ASKING: Mutex<()> = Mutex::new(());
    let _asking = lock(&ASKING);
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = rustix::fs::open("/dev/tty", flags, Mode::empty());
    let Ok(mut terminal) = terminal.map(std::fs::File::from) else { return Ok(None) };
    stderr::beside_question(|| match terminal.write_all(disarmed(question).as_bytes()) {
        Ok(()) => stdin::line(move |line| BufReader::new(terminal).read_line(line), deadline),
        Err(_) => Ok(None),
    })
}

#[cfg(not(unix))]
fn ask(_question: &str, _deadline: Deadline) -> Result<Option<String>> {
    Ok(None)
}
