//! Processes: commands that can be found again, checks that run in parallel, programs that a test watches.

use crate::support::{Sandbox, eventually, is_running};
use std::fs;
use std::io::Read;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Far above every deadline in these tests and far below every `sleep`, so that a hang fails and a busy machine passes.
pub(crate) const LONG: Duration = Duration::from_secs(90);

/// An argument for `sleep` that no other process has.
pub(crate) fn mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("1000.{}{:04}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Checks every row in its own thread, as most of them only wait.
pub(crate) fn at_once<T: Sync>(rows: &[T], check: impl Fn(&T) + Sync) {
    std::thread::scope(|scope| {
        for row in rows {
            scope.spawn(|| check(row));
        }
    });
}

/// Waits until no process has `mark` in its command line.
pub(crate) fn expect_gone(mark: &str) {
    eventually(&format!("the end of {mark}"), || !is_running(mark));
}

/// Kills processes that a test lets escape on purpose.
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

/// The lines of stderr that come from `axe-run` itself.
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

/// A running program with all its streams.
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

    /// Closes the reading end of the program's stderr.
    pub(crate) fn leave_stderr(&mut self) {
        self.child.stderr = None;
    }

    /// Has it ended, though nobody has waited for it yet?
    pub(crate) fn is_over(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'))
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits until the program handles SIGTERM, which it does before it reads anything.
    pub(crate) fn await_handlers(&self) {
        let path = format!("/proc/{}/status", self.child.id());
        eventually("a handler for SIGTERM", || {
            let status = fs::read_to_string(&path).unwrap_or_default();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught = caught.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
            caught & (1 << (rustix::process::Signal::TERM.as_raw() - 1)) != 0
        });
    }

    /// Waits for the program's end without reading its streams. If it does not end, it is killed and the test fails.
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
