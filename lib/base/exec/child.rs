//! A command's process, from its start to the last byte of its output.

use crate::base::command_line::{first_word, plain_words};
use crate::base::deadline::Deadline;
use crate::base::exec::forwarder;
use crate::base::exec::group::{self, GRACE, ProcessGroup};
use crate::base::exec::pipe::STDERR_KEPT;
use crate::base::exec::streams::Streams;
use crate::base::exec::{CommandLine, ExecError, Finished, Invocation};
use crate::base::file;
use crate::base::lookup;
use crate::base::stderr;
use crate::base::sync::lock;
use crate::base::text::{last_line, without_controls};
use std::ffi::OsStr;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::Duration;
use tempfile::TempDir;

/// How often the size of a file is polled.
const TICK: Duration = Duration::from_millis(10);

/// Runs a command to its end. Whatever happens, nothing in its process group is left running.
///
/// stdin is closed after the input; a command that closes it early is not at fault. stderr is passed on as it comes if
/// it is heard.
/// When the command itself has exited, processes that it left behind get a short grace period to finish. All that it
/// printed until its exit is read; if a process that it started still holds its stdout, a warning says so.
///
/// # Errors
/// It could not be started, printed too much, or was not at its end, or not read to its end, by the deadline.
pub fn run(mut invocation: Invocation) -> Result<Finished, ExecError> {
    let input = std::mem::take(&mut invocation.input);
    let invocation = &invocation;
    let (mut child, group, mut streams) = begin(invocation, input, false)?;
    let waited = wait(&mut streams, invocation);
    if waited.is_ok() && streams.stdout.is_held() {
        warn_of_holder(invocation);
    }
    let status = group.end(&mut child);
    let waited = streams.drain(waited, invocation.deadline);
    let (stdout, stderr) = streams.taken();
    let finished = waited.and_then(|()| finished(invocation, status, stdout, &stderr));
    let is_success = finished
        .as_ref()
        .is_ok_and(|finished| finished.status.success() && !finished.stdout.trim_ascii().is_empty());
    if let Some(clean) = invocation.explain.filter(|_| !invocation.is_heard && !is_success) {
        show(&clean(&String::from_utf8_lossy(&stderr)));
    }
    finished
}

/// Waits until the command has exited and its streams have ended, or time is up. Processes that it left behind may
/// hold them for the grace period.
fn wait(streams: &mut Streams, invocation: &Invocation) -> Result<(), ExecError> {
    let mut until = invocation.deadline;
    loop {
        // On a busy machine the command may have ended long ago: it is looked at once more.
        let is_last_look = until.passed();
        let is_watched = overflow(invocation)?;
        streams.serve(if is_watched { until.earlier(Deadline::after(TICK)) } else { until })?;
        match streams.has_exited() {
            true if is_last_look || streams.have_ended() => return Ok(()),
            true => until = until.earlier(Deadline::after(GRACE)),
            false if is_last_look => return Err(ExecError::Deadline),
            false => {}
        }
    }
}

fn warn_of_holder(invocation: &Invocation) {
    let program = match invocation.command {
        CommandLine::Shell(line) => first_word(line),
        CommandLine::Words(words) => words.first().cloned().unwrap_or_default(),
    };
    stderr::line(&format!(
        "Warning: command \"{program}\" has exited, but a process that it started keeps its output open; what that process prints is not waited for"
    ));
}

fn finished(
    invocation: &Invocation,
    status: Option<ExitStatus>,
    collected: Vec<u8>,
    stderr: &[u8],
) -> Result<Finished, ExecError> {
    let is_in_file = overflow(invocation)?;
    let file = invocation.stdout_file.filter(|_| is_in_file);
    let stdout = file.map_or(Ok(collected), end_of).map_err(ExecError::Reading)?;
    let stderr = stderr.to_vec();
    let printed = if stderr.trim_ascii().is_empty() { &stdout } else { &stderr };
    let last_line = last_line(&String::from_utf8_lossy(printed));
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
    for text in without_controls(whole).trim_end_matches(['\n', '\r']).lines() {
        stderr::line(text);
    }
}

/// Whether stdout is a file that must be watched. An error if it is larger than the cap.
fn overflow(invocation: &Invocation) -> Result<bool, ExecError> {
    let Some(file) = invocation.stdout_file else { return Ok(false) };
    let cap = invocation.stdout_cap;
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

static PRIVATE_DIRS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// An empty directory for a command, accessible only to the user, whatever the umask. A signal removes it, too.
pub fn private_dir() -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.permissions(PermissionsExt::from_mode(0o700));
    let dir = builder.tempdir()?;
    lock(&PRIVATE_DIRS).push(dir.path().to_owned());
    Ok(dir)
}

/// Ends every command, and lets no other start: the program is about to exit.
pub fn end_all() {
    // Their last output comes before ours.
    group::end_all(forwarder::is_heard);
    // Nothing is dropped.
    for dir in lock(&PRIVATE_DIRS).drain(..) {
        let _ = file::take_back(&dir);
        let _ = fs_err::remove_dir_all(dir);
    }
}

/// Starts a command in a process group of its own. `input` is all of it, unless it `stays_open`.
pub(super) fn begin(
    invocation: &Invocation,
    input: Vec<u8>,
    stays_open: bool,
) -> Result<(Child, ProcessGroup, Streams), ExecError> {
    let started = ProcessGroup::start(invocation.level, || start(invocation));
    let (mut child, group, exit) = started.map_err(ExecError::NotStarted)?;
    match Streams::of(&mut child, exit, invocation, input, stays_open) {
        Ok(streams) => Ok((child, group, streams)),
        Err(e) => {
            group.end(&mut child);
            Err(ExecError::NotStarted(e))
        }
    }
}

/// Starts the command directly if its line needs no shell, else with the shell.
fn start(invocation: &Invocation) -> io::Result<Child> {
    match invocation.command {
        CommandLine::Words([]) => Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty")),
        CommandLine::Words([program, arguments @ ..]) => prepared(program, arguments, invocation)?.spawn(),
        CommandLine::Shell(line) => {
            // It may be a builtin or a script without `#!`. The shell runs those, or says what is wrong.
            let direct = plain_words(line)
                .and_then(|words| prepared(words[0], &words[1..], invocation).ok()?.spawn().ok());
            direct.map_or_else(|| prepared("/bin/sh", &["-c", line], invocation)?.spawn(), Ok)
        }
    }
}

fn prepared(program: &str, arguments: &[impl AsRef<OsStr>], invocation: &Invocation) -> io::Result<Command> {
    let mut command = lookup::command(program);
    command.args(arguments).current_dir(invocation.dir);
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
