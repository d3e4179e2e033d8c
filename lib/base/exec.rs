//! Runs a shell command as a filter: bytes in, bytes out, in a process group of its own, under a deadline.

mod fault;
mod streams;

pub(crate) use crate::base::exec::fault::Fault;

use crate::base::command_line::plain_words;
use crate::base::deadline::Deadline;
use crate::base::exec::streams::{Ended, Event, Heard, STDERR_KEPT, collect, feed, locked, pass_on};
use crate::base::group::{self, GRACE, Group};
use crate::base::text::last_line;
use std::ffi::OsString;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What is still in a pipe when the group is gone is read for so long.
const LAST_WORDS: Duration = Duration::from_millis(40);

pub(crate) enum What<'a> {
    /// A line for `/bin/sh -c`. Values reach it through `vars`, never pasted in.
    Line(&'a str),
    /// A program and its arguments, without a shell.
    Words(&'a [String]),
}

pub(crate) struct Job<'a> {
    pub(crate) what: What<'a>,
    pub(crate) input: Vec<u8>,
    pub(crate) dir: &'a Path,
    pub(crate) vars: Vec<(&'static str, OsString)>,
    /// Variables of ours that it does not get.
    pub(crate) without: Vec<OsString>,
    /// Whether its stderr is passed on to ours; the last line is kept in any case.
    pub(crate) is_heard: bool,
    /// A file that stdout goes to, so that it outlives us; else it is collected in memory. Of a file only the end
    /// is read back.
    pub(crate) stdout_file: Option<&'a fs_err::File>,
    /// More than this many bytes on stdout end the command.
    pub(crate) stdout_cap: usize,
    pub(crate) deadline: Deadline,
    /// How many commands of ours are above this process.
    pub(crate) level: u32,
}

pub(crate) struct Finished {
    pub(crate) stdout: Vec<u8>,
    pub(crate) status: ExitStatus,
    /// The last line of stderr, or of stdout where stderr is empty: some programs tell their errors there.
    pub(crate) last_line: String,
}

/// Runs `job` to its end. Whatever happens, nothing of its process group is left running.
///
/// stdin is closed after the input; a command that closes it early is not at fault. stderr is passed on as
/// it comes. When the command itself has exited, what it left behind gets a short grace to finish.
pub(crate) fn run(job: Job) -> Result<Finished, Fault> {
    let (mut child, group) = Group::start(job.level, || spawn(&job)).map_err(Fault::NotStarted)?;
    let (sender, events) = channel();
    let stdout = Arc::new(Mutex::new(Vec::new()));
    let stderr = Arc::new(Heard { aloud: job.is_heard, ..Heard::default() });
    let mut ended = Ended { stdout: job.stdout_file.is_some(), ..Ended::default() };
    let attached = feed(child.stdin.take(), job.input)
        .and_then(|()| collect(child.stdout.take(), job.stdout_cap, Arc::clone(&stdout), sender.clone()))
        .and_then(|()| pass_on(child.stderr.take(), Arc::clone(&stderr), sender.clone()))
        .and_then(|()| {
            group.watch_exit(move || {
                let _ = sender.send(Event::Exited);
            })
        });

    // Where no thread is to be had the command is ended at once.
    let waited = match attached {
        Ok(()) => {
            wait(&events, &mut ended, job.deadline, &mut child, || overflow(job.stdout_file, job.stdout_cap))
        }
        Err(e) => Err(Fault::NotStarted(e)),
    };
    let status = group.end(&mut child);
    let waited = waited.and(last_words(&events, &mut ended));
    stderr.over.store(true, SeqCst);
    waited?;

    let stdout = match job.stdout_file {
        None => std::mem::take(&mut *locked(&stdout)),
        Some(file) => {
            overflow(Some(file), job.stdout_cap)?;
            end_of(file).map_err(Fault::Reading)?
        }
    };
    let stderr = std::mem::take(&mut *locked(&stderr.tail));
    let said = if stderr.trim_ascii().is_empty() { &stdout } else { &stderr };
    let last_line = last_line(&String::from_utf8_lossy(said)).to_owned();
    let status = status.ok_or(Fault::Deadline)?;
    Ok(Finished { stdout, status, last_line })
}

/// Until the command has exited and its streams have ended, or time is up.
fn wait(
    events: &Receiver<Event>,
    ended: &mut Ended,
    deadline: Deadline,
    child: &mut Child,
    overflow: impl Fn() -> Result<bool, Fault>,
) -> Result<(), Fault> {
    let mut until = deadline;
    while !(ended.exited && ended.streams()) {
        let is_watched = overflow()? || !cfg!(unix);
        let pause = if is_watched { until.remaining().min(TICK) } else { until.remaining() };
        match events.recv_timeout(pause) {
            Ok(event) => ended.note(event)?,
            Err(RecvTimeoutError::Timeout) if until.passed() => {
                // Whoever still holds the streams, the command's own answer is complete.
                return if ended.exited { Ok(()) } else { Err(Fault::Deadline) };
            }
            Err(_) if cfg!(unix) => {}
            Err(_) => ended.exited = ended.exited || matches!(child.try_wait(), Ok(Some(_))),
        }
        if ended.exited {
            until = until.earlier(Deadline::after(GRACE));
        }
    }
    Ok(())
}

/// The group is gone: what it had still said is in the pipes, and they end. Only somebody who left the
/// group holds them longer.
fn last_words(events: &Receiver<Event>, ended: &mut Ended) -> Result<(), Fault> {
    let until = Deadline::after(LAST_WORDS);
    while !ended.streams() {
        match events.recv_timeout(until.remaining()) {
            Ok(event) => ended.note(event)?,
            Err(_) => break,
        }
    }
    Ok(())
}

/// Is stdout a file that must be watched? An error if it has grown beyond `cap`.
fn overflow(file: Option<&fs_err::File>, cap: usize) -> Result<bool, Fault> {
    let Some(file) = file else { return Ok(false) };
    match file.metadata() {
        Ok(metadata) if metadata.len() > cap as u64 => Err(Fault::TooMuchOutput(cap)),
        Ok(_) => Ok(true),
        Err(e) => Err(Fault::Reading(e)),
    }
}

/// The end of a file, as much of it as is kept of stderr.
fn end_of(mut file: &fs_err::File) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(length.saturating_sub(STDERR_KEPT as u64)))?;
    file.read_to_end(&mut end)?;
    Ok(end)
}

/// Where nothing tells of an exit, or of a file that grows, it is asked for this often.
const TICK: Duration = Duration::from_millis(10);

/// Ends every command, and lets no other start: the program is about to leave.
#[cfg(unix)]
pub(crate) fn end_all() {
    // Their last words come before ours.
    group::end_all(streams::is_heard);
}

/// Starts the command: by itself where no shell is needed to read its line, else by the shell.
fn spawn(job: &Job) -> io::Result<Child> {
    let line = match job.what {
        What::Line(line) => line,
        What::Words([program, arguments @ ..]) => {
            let mut command = Command::new(program);
            command.args(arguments);
            return prepared(command, job)?.spawn();
        }
        What::Words([]) => return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program is named")),
    };
    let by_itself = plain_words(line).and_then(|words| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        // A builtin, or a script without `#!`: the shell knows it, or says what is wrong.
        prepared(command, job).ok()?.spawn().ok()
    });
    match by_itself {
        Some(child) => Ok(child),
        None => {
            let mut shell = Command::new(if cfg!(windows) { "cmd" } else { "/bin/sh" });
            shell.arg(if cfg!(windows) { "/C" } else { "-c" }).arg(line);
            prepared(shell, job)?.spawn()
        }
    }
}

fn prepared(mut command: Command, job: &Job) -> io::Result<Command> {
    command.current_dir(job.dir);
    for name in &job.without {
        command.env_remove(name);
    }
    command.envs(job.vars.iter().map(|(name, value)| (name, value)));
    let stdout = match job.stdout_file {
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
pub(crate) fn how_it_ended(status: ExitStatus) -> String {
    status.code().map_or_else(|| status.to_string(), |code| format!("exit {code}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(what: What<'_>) -> Job<'_> {
        Job {
            what,
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
        let finished = run(job(What::Words(&words))).unwrap();
        assert_eq!(String::from_utf8_lossy(&finished.stdout), "<a  b><$HOME><><*><'><;>");
    }

    #[test]
    fn no_words_and_no_such_program_are_not_started() {
        for words in [words(&[]), words(&["/nonexistent/program", "x"])] {
            assert!(matches!(run(job(What::Words(&words))), Err(Fault::NotStarted(_))), "{words:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_variable_is_taken_away_before_ours_are_given() {
        let vars = vec![("HOME", OsString::from("/ours"))];
        let without = vec![OsString::from("HOME"), OsString::from("PATH")];
        let words = words(&["/bin/sh", "-c", "echo $HOME; env | grep -c ^PATH="]);
        let finished = run(Job { vars, without, ..job(What::Words(&words)) }).unwrap();
        assert!(String::from_utf8_lossy(&finished.stdout).starts_with("/ours\n"));
        let without = vec![OsString::from("HOME")];
        let finished = run(Job { without, ..job(What::Line("echo \"${HOME-none}\"")) }).unwrap();
        assert_eq!(finished.stdout, b"none\n");
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
            assert_eq!(run(job(What::Line(line))).unwrap().last_line, expected, "{line}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn stdout_goes_to_the_file_and_comes_back_whole() {
        let temporary = tempfile::NamedTempFile::new().unwrap();
        let file = fs_err::File::from_parts(temporary.reopen().unwrap(), temporary.path());
        let line = "printf one; echo err >&2; printf two; exit 3";
        let finished = run(Job { stdout_file: Some(&file), ..job(What::Line(line)) }).unwrap();
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
            let fault = run(Job { stdout_file: Some(&file), ..job(What::Line(line)) }).err();
            assert!(matches!(fault, Some(Fault::TooMuchOutput(1000))), "{line}: {fault:?}");
        }
    }
}
