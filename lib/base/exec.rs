//! Runs a command as a filter: bytes in, bytes out, in its own process group, under a deadline.

#[cfg(unix)]
mod child;
#[cfg(unix)]
mod coprocess;
#[cfg(unix)]
mod forwarder;
#[cfg(unix)]
mod group;
#[cfg(unix)]
mod pipe;
#[cfg(unix)]
mod streams;

use crate::base::deadline::Deadline;
use crate::base::text::{one_line, size};
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitStatus;

#[derive(Clone, Copy)]
pub enum CommandLine<'a> {
    /// A line for `/bin/sh -c`. Values reach it through `vars`, never pasted in.
    Shell(&'a str),
    /// A program and its arguments, without a shell.
    Words(&'a [String]),
}

pub struct Invocation<'a> {
    pub command: CommandLine<'a>,
    pub input: Vec<u8>,
    pub dir: &'a Path,
    pub vars: Vec<(&'static str, OsString)>,
    /// Variables of ours that it does not inherit.
    pub without: Vec<OsString>,
    /// Whether its stderr is passed on to ours. The last line is kept in any case.
    pub is_heard: bool,
    /// A file that stdout goes to, so that it outlives us; otherwise it is collected in memory. Only the end of a
    /// file is read back.
    pub stdout_file: Option<&'a fs_err::File>,
    /// The command is ended if it prints more bytes than this on stdout.
    pub stdout_cap: usize,
    /// Output beyond the cap is cut in the middle instead, and the command goes on.
    pub is_cut: bool,
    /// Makes the end of stderr fit to be shown, if the command is not heard and fails or prints nothing. Otherwise it is
    /// not shown, because some programs repeat their whole prompt there.
    pub explain: Option<&'a dyn Fn(&str) -> String>,
    pub deadline: Deadline,
    /// How many commands of ours are above this process.
    pub level: u32,
}

impl<'a> Invocation<'a> {
    /// A command without input that nobody hears.
    pub fn new(
        command: CommandLine<'a>,
        dir: &'a Path,
        stdout_cap: usize,
        deadline: Deadline,
    ) -> Invocation<'a> {
        Invocation {
            command,
            input: Vec::new(),
            dir,
            vars: Vec::new(),
            without: Vec::new(),
            is_heard: false,
            stdout_file: None,
            stdout_cap,
            is_cut: false,
            explain: None,
            deadline,
            level: 0,
        }
    }
}

pub struct Finished {
    pub stdout: Vec<u8>,
    pub status: ExitStatus,
    /// The end of stderr.
    pub stderr: Vec<u8>,
    /// The last line of stderr, or of stdout if stderr is empty: some programs print their errors there.
    pub last_line: String,
}

impl Finished {
    /// `failed (exit 3): last line`, to follow the command's name; `None` if it succeeded.
    pub fn failure(&self) -> Option<String> {
        let last = one_line(&self.last_line, 500);
        let colon = if last.is_empty() { "" } else { ": " };
        let failed = || format!("failed ({}){colon}{last}", how_it_ended(self.status));
        (!self.status.success()).then(failed)
    }
}

/// What can go wrong with a command, besides its exit status.
#[derive(Debug)]
pub enum ExecError {
    NotStarted(io::Error),
    Deadline,
    /// More than this many bytes on stdout.
    TooMuchOutput(usize),
    Reading(io::Error),
}

/// Follows the command's name in a message.
impl fmt::Display for ExecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExecError::NotStarted(e) => write!(f, "could not be started: {e}"),
            ExecError::Deadline => f.write_str("did not finish in time"),
            ExecError::TooMuchOutput(cap) => write!(f, "printed more than {}", size(*cap as u64)),
            ExecError::Reading(e) => write!(f, "could not be read: {e}"),
        }
    }
}

#[cfg(unix)]
pub use child::{end_all, private_dir, run};
#[cfg(unix)]
pub use coprocess::Coprocess;

#[cfg(not(unix))]
pub fn end_all() {}

#[cfg(not(unix))]
pub fn private_dir() -> io::Result<tempfile::TempDir> {
    tempfile::tempdir()
}

/// Elsewhere nothing says that a command has exited and that its pipe is empty, and no group holds what it started.
#[cfg(not(unix))]
fn unsupported() -> ExecError {
    ExecError::NotStarted(io::Error::new(io::ErrorKind::Unsupported, "commands run on Unix only"))
}

#[cfg(not(unix))]
pub fn run(_invocation: Invocation) -> Result<Finished, ExecError> {
    Err(unsupported())
}

#[cfg(not(unix))]
pub enum NoCoprocess {}

#[cfg(not(unix))]
pub use NoCoprocess as Coprocess;

#[cfg(not(unix))]
impl NoCoprocess {
    pub fn start(_invocation: Invocation) -> Result<NoCoprocess, ExecError> {
        Err(unsupported())
    }

    pub fn send(&mut self, _line: &[u8]) {}

    pub fn is_behind(&self) -> bool {
        false
    }

    pub fn line(&mut self, _deadline: Deadline) -> Result<Option<Vec<u8>>, ExecError> {
        Ok(None)
    }

    pub fn end(&mut self) -> (Option<ExitStatus>, Vec<u8>) {
        (None, Vec::new())
    }
}

/// `exit N` or `signal N`, for messages.
pub fn how_it_ended(status: ExitStatus) -> String {
    match (status.code(), signal_of(status)) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// The signal that ended a program.
pub fn signal_of(status: ExitStatus) -> Option<i32> {
    #[cfg(unix)]
    return std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let _ = status;
    #[cfg(not(unix))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invocation(command: CommandLine<'_>) -> Invocation<'_> {
        Invocation::new(command, Path::new("/"), 1000, Deadline::after_seconds(60))
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[cfg(unix)]
    #[test]
    fn words_reach_a_program_as_they_are() {
        let words = words(&["printf", "<%s>", "a  b", "$HOME", "", "*", "'", ";"]);
        let finished = run(invocation(CommandLine::Words(&words))).unwrap();
        assert_eq!(String::from_utf8_lossy(&finished.stdout), "<a  b><$HOME><><*><'><;>");
    }

    #[test]
    fn no_words_and_no_such_program_are_not_started() {
        for words in [words(&[]), words(&["/nonexistent/program", "x"])] {
            assert!(
                matches!(run(invocation(CommandLine::Words(&words))), Err(ExecError::NotStarted(_))),
                "{words:?}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_variable_is_taken_away_before_ours_are_given() {
        let vars = vec![("HOME", OsString::from("/ours"))];
        let without = vec![OsString::from("HOME"), OsString::from("PATH")];
        let words = words(&["/bin/sh", "-c", "echo $HOME; env | grep -c ^PATH="]);
        let finished = run(Invocation { vars, without, ..invocation(CommandLine::Words(&words)) }).unwrap();
        assert!(String::from_utf8_lossy(&finished.stdout).starts_with("/ours\n"));
        let without = vec![OsString::from("HOME")];
        let finished =
            run(Invocation { without, ..invocation(CommandLine::Shell("echo \"${HOME-none}\"")) }).unwrap();
        assert_eq!(finished.stdout, b"none\n");
    }

    #[cfg(unix)]
    #[test]
    fn the_directory_of_a_command_is_its_pwd_and_it_has_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let words = words(&["/usr/bin/env"]);
        let finished = run(Invocation {
            dir: dir.path(),
            stdout_cap: 1 << 20,
            ..invocation(CommandLine::Words(&words))
        })
        .unwrap();
        let printed = String::from_utf8_lossy(&finished.stdout).into_owned();
        let expected = format!("PWD={}", dir.path().display());
        assert!(printed.lines().any(|line| line == expected), "{printed}");
        assert!(!printed.lines().any(|line| line.starts_with("OLDPWD=")), "{printed}");
    }

    #[cfg(unix)]
    #[test]
    fn the_last_line_is_kept_though_nobody_hears_it_and_is_stdouts_where_stderr_is_empty() {
        for (line, expected) in [
            ("echo out; echo one >&2; echo two >&2; echo ' ' >&2", "two"),
            ("echo one; echo two", "two"),
            ("echo out; echo ' ' >&2", "out"),
            ("true", ""),
        ] {
            assert_eq!(run(invocation(CommandLine::Shell(line))).unwrap().last_line, expected, "{line}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn stdout_goes_to_the_file_and_comes_back_whole() {
        let temporary = tempfile::NamedTempFile::new().unwrap();
        let file = fs_err::File::from_parts(temporary.reopen().unwrap(), temporary.path());
        let line = "printf one; echo err >&2; printf two; exit 3";
        let finished =
            run(Invocation { stdout_file: Some(&file), ..invocation(CommandLine::Shell(line)) }).unwrap();
        assert_eq!((finished.stdout.as_slice(), finished.status.code()), (&b"onetwo"[..], Some(3)));
        assert_eq!(
            (std::fs::read(temporary.path()).unwrap(), finished.last_line.as_str()),
            (finished.stdout, "err")
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_grows_beyond_the_cap_ends_the_command() {
        for line in ["exec cat /dev/zero", "head -c 1001 /dev/zero"] {
            let temporary = tempfile::NamedTempFile::new().unwrap();
            let file = fs_err::File::from_parts(temporary.reopen().unwrap(), temporary.path());
            let fault =
                run(Invocation { stdout_file: Some(&file), ..invocation(CommandLine::Shell(line)) }).err();
            assert!(matches!(fault, Some(ExecError::TooMuchOutput(1000))), "{line}: {fault:?}");
        }
    }
}
