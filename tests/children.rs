//! What the fault tests share: marked commands, rows that run side by side, programs that are watched from outside.

use crate::support::{Sandbox, eventually, is_running};
use std::fs;
use std::io::Read;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Far above every deadline in these tests, far below the `sleep`s: a hang fails, a busy machine does not.
pub(crate) const LONG: Duration = Duration::from_secs(8);

/// The argument of a `sleep` that nobody else runs.
pub(crate) fn mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("1000.{}{:04}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Checks every row in a thread of its own: most of them only wait.
pub(crate) fn at_once<T: Sync>(rows: &[T], check: impl Fn(&T) + Sync) {
    std::thread::scope(|scope| {
        for row in rows {
            scope.spawn(|| check(row));
        }
    });
}

/// Nothing whose command line holds `mark` is left, or it is just going.
pub(crate) fn expect_gone(mark: &str) {
    eventually(&format!("the end of {mark}"), || !is_running(mark));
}

/// Ends what a test let escape on purpose.
pub(crate) fn end_escaped(mark: &str) {
    for entry in fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let pid = entry.file_name().to_string_lossy().parse().ok().and_then(rustix::process::Pid::from_raw);
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if let Some(pid) = pid
            && String::from_utf8_lossy(&line).contains(mark)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// The lines of stderr that are the program's own.
pub(crate) fn ours(err: &str) -> Vec<&str> {
    err.lines().filter(|line| line.starts_with("axe-run: ")).collect()
}

impl Sandbox {
    /// No log, no lock file, no temporary file: the log's directory is empty or was never made.
    pub(crate) fn expect_no_log(&self, agent: &str) {
        let path = self.log_path(agent);
        let left: Vec<_> = fs::read_dir(path.parent().unwrap()).into_iter().flatten().flatten().collect();
        assert!(left.is_empty(), "left in the log's directory: {left:?}");
    }

    /// Waits until the command has touched `name` in the working directory.
    pub(crate) fn await_file(&self, name: &str) {
        let path = self.work().join(name);
        eventually(name, || path.exists());
    }
}

/// A program that is running, with all its streams in our hands.
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Running {
    /// Starts `command` with an open stdin; stdout and stderr are kept for [`Running::finish`].
    pub(crate) fn start(mut command: Command) -> Running {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let stdin = child.stdin.take();
        Running { child, stdin }
    }

    pub(crate) fn stdin(&mut self) -> &mut ChildStdin {
        self.stdin.as_mut().unwrap()
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// From here on nobody reads the program's stderr.
    pub(crate) fn leave_stderr(&mut self) {
        self.child.stderr = None;
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits until the program itself takes care of SIGTERM, which it does before it reads anything.
    pub(crate) fn await_handlers(&self) {
        let path = format!("/proc/{}/status", self.child.id());
        eventually("a handler for SIGTERM", || {
            let status = fs::read_to_string(&path).unwrap_or_default();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught = caught.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
            caught & (1 << (rustix::process::Signal::TERM.as_raw() - 1)) != 0
        });
    }

    /// Waits until it has ended, without reading its streams. One that does not end is killed, and fails.
    pub(crate) fn finish(mut self) -> Output {
        let patience = Instant::now() + LONG;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > patience {
                self.child.kill().unwrap();
                self.child.wait().unwrap();
                panic!("it did not end");
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let mut output = Output { status, stdout: Vec::new(), stderr: Vec::new() };
        if let Some(mut from) = self.child.stdout.take() {
            from.read_to_end(&mut output.stdout).unwrap();
        }
        if let Some(mut from) = self.child.stderr.take() {
            from.read_to_end(&mut output.stderr).unwrap();
        }
        output
    }
}
