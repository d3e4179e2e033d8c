//! Runs a command as a filter: bytes in, bytes out, in its own process group, under a deadline.

mod error;
mod streams;

pub(crate) use crate::base::exec::error::ExecError;

use crate::base::command_line::plain_words;
use crate::base::deadline::Deadline;
use crate::base::exec::streams::{
    Completion, Output, STDERR_KEPT, StderrTail, StreamEvent, collect, feed, pass_on,
};
use crate::base::group::{self, GRACE, ProcessGroup};
use crate::base::stderr;
use crate::base::sync::lock;
use crate::base::text::{last_line, one_line};
use std::ffi::OsString;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long output that is still in a pipe is read after the group is gone.
const DRAIN_TIME: Duration = Duration::from_millis(40);

#[derive(Clone, Copy)]
pub(crate) enum CommandLine<'a> {
    /// A line for `/bin/sh -c`. Values reach it through `vars`, never pasted in.
    Shell(&'a str),
    /// A program and its arguments, without a shell.
    Words(&'a [String]),
}

pub(crate) struct Invocation<'a> {
    pub(crate) command: CommandLine<'a>,
    pub(crate) input: Vec<u8>,
    pub(crate) dir: &'a Path,
    pub(crate) vars: Vec<(&'static str, OsString)>,
    /// Variables of ours that it does not inherit.
    pub(crate) without: Vec<OsString>,
    /// Whether its stderr is passed on to ours. The last line is kept in any case.
    pub(crate) is_heard: bool,
    /// A file that stdout goes to, so that it outlives us; otherwise it is collected in memory. Only the end of a
    /// file is read back.
    pub(crate) stdout_file: Option<&'a fs_err::File>,
    /// The command is ended if it prints more bytes than this on stdout.
    pub(crate) stdout_cap: usize,
    pub(crate) deadline: Deadline,
    /// How many commands of ours are above this process.
    pub(crate) level: u32,
}

pub(crate) struct Finished {
    pub(crate) stdout: Vec<u8>,
    pub(crate) status: ExitStatus,
    /// The end of stderr.
    pub(crate) stderr: Vec<u8>,
    /// The last line of stderr, or of stdout if stderr is empty: some programs print their errors there.
    pub(crate) last_line: String,
}

impl Finished {
    /// `failed (exit 3): last line`, to follow the command's name; `None` if it succeeded.
    pub(crate) fn failure(&self) -> Option<String> {
        let last = one_line(&self.last_line, 500);
        let colon = if last.is_empty() { "" } else { ": " };
        let failed = || format!("failed ({}){colon}{last}", how_it_ended(self.status));
        (!self.status.success()).then(failed)
    }
}

/// Runs a command to its end. Whatever happens, nothing in its process group is left running.
///
/// stdin is closed after the input; a command that closes it early is not at fault. stderr is passed on as it comes if
/// it is heard.
/// When the command itself has exited, processes that it left behind get a short grace period to finish.
pub(crate) fn run(invocation: Invocation) -> Result<Finished, ExecError> {
    run_with(invocation, false, None)
}

/// The same, but output beyond the cap is cut in the middle, and the command goes on.
pub(crate) fn run_cutting(invocation: Invocation) -> Result<Finished, ExecError> {
    run_with(invocation, true, None)
}

/// The same as [`run`] for a filter: if it fails or prints nothing, the end of its stderr is shown, as `clean` makes
/// it. Otherwise stderr is not shown, because some programs repeat their whole prompt there.
pub(crate) fn run_filter(
    invocation: Invocation,
    clean: &dyn Fn(&str) -> String,
) -> Result<Finished, ExecError> {
    run_with(invocation, false, Some(clean))
}

fn run_with(
    invocation: Invocation,
    is_cut: bool,
    explain: Option<&dyn Fn(&str) -> String>,
) -> Result<Finished, ExecError> {
    let explain = explain.filter(|_| !invocation.is_heard);
    let Invocation { stdout_file, stdout_cap, deadline, .. } = invocation;
    let (mut child, group) =
        ProcessGroup::start(invocation.level, || start(&invocation)).map_err(ExecError::NotStarted)?;
    let (sender, events) = channel();
    let stdout = Arc::new(Mutex::new(Output::new(stdout_cap, is_cut)));
    let stderr = Arc::new(StderrTail { is_heard: invocation.is_heard, ..StderrTail::default() });
    let mut completion = Completion { stdout: stdout_file.is_some(), ..Completion::default() };
    let attached = feed(child.stdin.take(), invocation.input)
        .and_then(|()| collect(child.stdout.take(), Arc::clone(&stdout), sender.clone()))
        .and_then(|()| pass_on(child.stderr.take(), Arc::clone(&stderr), sender.clone()))
        .and_then(|()| {
            group.watch_exit(move || {
                let _ = sender.send(StreamEvent::Exited);
            })
        });

    // If a thread cannot be started the command is ended at once.
    let waited = match attached {
        Ok(()) => wait(&events, &mut completion, deadline, &mut child, || overflow(stdout_file, stdout_cap)),
        Err(e) => Err(ExecError::NotStarted(e)),
    };
    let status = group.end(&mut child);
    let waited = waited.and(drain(&events, &mut completion));
    stderr.over.store(true, SeqCst);
    let stderr = std::mem::take(&mut *lock(&stderr.tail));
    let finished = finished(waited, status, stdout_file, stdout_cap, || lock(&stdout).take(), &stderr);
    let is_failure = match &finished {
        Ok(finished) => !finished.status.success() || finished.stdout.trim_ascii().is_empty(),
        Err(_) => true,
    };
    if let Some(clean) = explain.filter(|_| is_failure) {
        show(&clean(&String::from_utf8_lossy(&stderr)));
    }
    finished
}

fn finished(
    waited: Result<(), ExecError>,
    status: Option<ExitStatus>,
    stdout_file: Option<&fs_err::File>,
    stdout_cap: usize,
    collected: impl FnOnce() -> Vec<u8>,
    stderr: &[u8],
) -> Result<Finished, ExecError> {
    waited?;
    let stdout = match stdout_file {
        None => collected(),
        Some(file) => {
            overflow(Some(file), stdout_cap)?;
            end_of(file).map_err(ExecError::Reading)?
        }
    };
    let stderr = stderr.to_vec();
    let printed = if stderr.trim_ascii().is_empty() { &stdout } else { &stderr };
    let last_line = last_line(&String::from_utf8_lossy(printed)).to_owned();
    let status = status.ok_or(ExecError::Deadline)?;
    Ok(Finished { stdout, status, stderr, last_line })
}

/// Shows the end of a command's stderr, from the first complete line on.
fn show(stderr: &str) {
    let whole = if stderr.len() < STDERR_KEPT {
        stderr
    } else {
        stderr.split_once('\n').map_or("", |(_, rest)| rest)
    };
    for text in whole.trim_end_matches(['\n', '\r']).lines() {
        stderr::line(text);
    }
}

/// Waits until the command has exited and its streams have ended, or time is up.
fn wait(
    events: &Receiver<StreamEvent>,
    completion: &mut Completion,
    deadline: Deadline,
    child: &mut Child,
    overflow: impl Fn() -> Result<bool, ExecError>,
) -> Result<(), ExecError> {
    let mut until = deadline;
    while !(completion.exited && completion.streams()) {
        let is_watched = overflow()? || !cfg!(unix);
        let pause = if is_watched { until.remaining().min(TICK) } else { until.remaining() };
        match events.recv_timeout(pause) {
            Ok(event) => completion.note(event)?,
            Err(RecvTimeoutError::Timeout) if until.passed() => {
                // Another process may still hold the streams, but the command's own answer is complete.
                return if completion.exited { Ok(()) } else { Err(ExecError::Deadline) };
            }
            Err(_) if cfg!(unix) => {}
            Err(_) => completion.exited = completion.exited || matches!(child.try_wait(), Ok(Some(_))),
        }
        if completion.exited {
            until = until.earlier(Deadline::after(GRACE));
        }
    }
    Ok(())
}

/// Reads what is left in the pipes of a group that is gone. They end, unless a process that left the group holds them.
fn drain(events: &Receiver<StreamEvent>, completion: &mut Completion) -> Result<(), ExecError> {
    let until = Deadline::after(DRAIN_TIME);
    while !completion.streams() {
        match events.recv_timeout(until.remaining()) {
            Ok(event) => completion.note(event)?,
            Err(_) => break,
        }
    }
    Ok(())
}

/// Is stdout a file that must be watched? An error if it is larger than `cap`.
fn overflow(file: Option<&fs_err::File>, cap: usize) -> Result<bool, ExecError> {
    let Some(file) = file else { return Ok(false) };
    match file.metadata() {
        Ok(metadata) if metadata.len() > cap as u64 => Err(ExecError::TooMuchOutput(cap)),
        Ok(_) => Ok(true),
        Err(e) => Err(ExecError::Reading(e)),
    }
}

/// The end of a file, as much as is kept of stderr.
fn end_of(mut file: &fs_err::File) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(length.saturating_sub(STDERR_KEPT as u64)))?;
    file.read_to_end(&mut end)?;
    Ok(end)
}

/// How often an exit, or the size of a file, is polled where nothing reports it.
const TICK: Duration = Duration::from_millis(10);

/// Ends every command, and lets no other start: the program is about to exit.
#[cfg(unix)]
pub(super) fn end_all() {
    // Their last output comes before ours.
    group::end_all(streams::is_heard);
}

/// Starts the command directly if its line needs no shell, else with the shell.
fn start(invocation: &Invocation) -> io::Result<Child> {
    let line = match invocation.command {
        CommandLine::Shell(line) => line,
        CommandLine::Words([program, arguments @ ..]) => {
            let mut command = Command::new(program);
            command.args(arguments);
            return prepared(command, invocation)?.spawn();
        }
        CommandLine::Words([]) => {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
        }
    };
    let direct = plain_words(line).and_then(|words| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        // It may be a builtin or a script without `#!`. The shell runs those, or says what is wrong.
        prepared(command, invocation).ok()?.spawn().ok()
    });
    match direct {
        Some(child) => Ok(child),
        None => {
            let mut shell = Command::new(if cfg!(windows) { "cmd" } else { "/bin/sh" });
            shell.arg(if cfg!(windows) { "/C" } else { "-c" }).arg(line);
            prepared(shell, invocation)?.spawn()
        }
    }
}

fn prepared(mut command: Command, invocation: &Invocation) -> io::Result<Command> {
    command.current_dir(invocation.dir);
    // Some programs, like opencode, work in the inherited PWD instead of the current directory.
    if invocation.dir.is_absolute() {
        command.env("PWD", invocation.dir);
    }
    command.env_remove("OLDPWD");
    for name in &invocation.without {
        command.env_remove(name);
    }
    command.envs(invocation.vars.iter().map(|(name, value)| (name, value)));
    let stdout = match invocation.stdout_file {
        Some(file) => Stdio::from(file.file().try_clone()?),
        None => Stdio::piped(),
    };
    command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped());
    group::lead(&mut command);
    Ok(command)
}

/// `exit N` or `signal N`, for messages.
#[cfg(unix)]
pub(crate) fn how_it_ended(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// `exit N`, for messages.
#[cfg(not(unix))]
fn how_it_ended(status: ExitStatus) -> String {
    status.code().map_or_else(|| status.to_string(), |code| format!("exit {code}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invocation(command: CommandLine<'_>) -> Invocation<'_> {
        Invocation {
            command,
            input: Vec::new(),
            dir: Path::new("/"),
            vars: Vec::new(),
            without: Vec::new(),
            is_heard: false,
            stdout_file: None,
            stdout_cap: 1000,
            deadline: Deadline::after_seconds(60),
            level: 0,
        }
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
