//! A pseudo-terminal.

use crate::support::{Sandbox, eventually, present, say};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::Winsize;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// What a test writes to `keyboard` is typed; what programs print is kept.
pub(crate) struct Terminal {
    pub(crate) keyboard: File,
    end: OwnedFd,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    pub(crate) fn open() -> Terminal {
        let mut terminal = Terminal::unread();
        let mut screen = terminal.keyboard.try_clone().unwrap();
        let kept = Arc::clone(&terminal.shown);
        terminal.reader = Some(std::thread::spawn(move || {
            let mut chunk = [0; 1024];
            // The read fails once the last program has closed the terminal.
            while let Ok(n @ 1..) = screen.read(&mut chunk) {
                kept.lock().unwrap().extend_from_slice(&chunk[..n]);
            }
        }));
        terminal
    }

    /// One that shows nothing, and takes no more once it is full.
    pub(crate) fn unread() -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        // macOS cannot set it here; there a child that starts at this moment keeps one more descriptor.
        #[cfg(target_os = "linux")]
        let flags = flags | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let end =
            rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        Terminal { keyboard: File::from(master), end, shown: Arc::default(), reader: None }
    }

    pub(crate) fn stdio(&self) -> Stdio {
        Stdio::from(self.end.try_clone().unwrap())
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&self.keyboard, size).unwrap();
    }

    /// What has been shown by now. A program that has just ended may have written more.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// All that was shown, once the programs on it have ended.
    pub(crate) fn all(mut self) -> String {
        drop(self.end);
        self.reader.take().unwrap().join().unwrap();
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }
}

impl Sandbox {
    /// Runs the program on a terminal of its own, answers its question, and returns the exit code and what was shown;
    /// `None` if this machine has no setsid.
    pub(crate) fn asked(
        &self,
        program: &str,
        args: &[&str],
        vars: &[(&str, &str)],
        typed: &str,
    ) -> Option<(Option<i32>, String)> {
        let plain = self.std_command(program);
        let mut terminal = Terminal::open();
        // It makes its stdin the terminal of a session of its own.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(plain.get_program()).args(args).env_clear();
        command.envs(present(plain.get_envs()));
        command.current_dir(plain.get_current_dir().unwrap()).envs(vars.iter().copied());
        let Ok(mut child) =
            command.stdin(terminal.stdio()).stdout(terminal.stdio()).stderr(terminal.stdio()).spawn()
        else {
            assert!(std::env::var_os("AXE_CI").is_none(), "there is no setsid");
            say("skipped: there is no setsid");
            return None;
        };
        drop(command);
        eventually("a question", || terminal.shown().contains("[y/N] "));
        terminal.keyboard.write_all(typed.as_bytes()).unwrap();
        let code = child.wait().unwrap().code();
        Some((code, terminal.all().replace("\r\n", "\n")))
    }
}
