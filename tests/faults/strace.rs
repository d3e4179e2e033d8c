//! Disturbs a run at one of its system calls, by strace: it is killed there, or the call fails.

use crate::support::world::World;
use crate::support::{eventually, is_running, present, tools};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;

/// Calls that change a file or a directory, make sure that a change lasts, make room for one alone (a lock), or list a
/// directory: one that cannot be listed is not an empty one. Older kernels' names for them too.
const CHANGING: &str = "openat,open,creat,write,writev,pwrite64,pwritev,rename,renameat,renameat2,unlink,unlinkat,rmdir,\
                        mkdir,mkdirat,mknod,mknodat,fsync,fdatasync,sync_file_range,truncate,ftruncate,fallocate,link,\
                        linkat,symlink,symlinkat,chmod,fchmod,fchmodat,chown,fchown,fchownat,lchown,utimensat,\
                        copy_file_range,sendfile,splice,flock,fcntl,setxattr,fsetxattr,ioctl,\
                        getdents64,getdents";

/// Calls in which the kernel can tell of a fault of the disk though they change nothing.
const READING: &str = "statx,fstat,newfstatat,lseek,read,pread64,readlink,readlinkat";

/// How long a run may take of which each read is delayed.
const LATE: Duration = Duration::from_secs(300);

/// What a run under strace came to.
pub(crate) struct Disturbed {
    pub(crate) output: Output,
    pub(crate) trace: String,
}

impl Disturbed {
    pub(crate) fn is_killed(&self) -> bool {
        self.output.status.signal() == Some(9)
    }

    pub(crate) fn took_place(&self) -> bool {
        self.is_killed() || self.trace.contains("(INJECTED)") || self.trace.contains("--- SIGTERM")
    }
}

/// A call: its name, and the how manieth of that name it is in its thread.
pub(crate) type Point = (String, usize);

pub(crate) fn strace() -> PathBuf {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    let find = || {
        let path = tools();
        let mut places = path.split(':').map(|dir| PathBuf::from(dir).join("strace"));
        places.find(|path| path.exists()).expect("strace is needed for this test: apt-get install strace")
    };
    FOUND.get_or_init(find).clone()
}

/// A machine that does not let us trace shows nothing, and is no success.
pub(crate) fn assert_able() {
    assert!(is_able(), "strace may not trace here");
}

pub(crate) fn is_able() -> bool {
    let output = Command::new(strace()).args(["-f", "-o", "/dev/null", "true"]).output();
    output.is_ok_and(|output| output.status.success())
}

/// `?` before a name: not every machine knows it.
fn with_mark(calls: &str) -> String {
    calls.split(',').map(|call| format!("?{}", call.trim())).collect::<Vec<_>>().join(",")
}

impl World {
    /// The run under strace with these options. The program alone is traced, with its threads where these write to
    /// files, not the commands that it runs.
    pub(crate) fn traced(&self, threads: bool, options: &[String]) -> Result<Disturbed, String> {
        let command = self.under_strace(threads, options);
        let output = self.ended(command)?;
        let trace = fs::read_to_string(self.beside("trace")).unwrap_or_default();
        let disturbed = Disturbed { output, trace };
        if disturbed.output.status.code() != Some(0) {
            // A killed program's commands go on by themselves.
            let here = self.sandbox.home().parent().unwrap().to_path_buf();
            eventually("the end of what it started", || !is_running(here.to_str().unwrap()));
            if let Some(root) = &self.root {
                eventually("git's end", || !root.join(".git/index.lock").exists());
            }
        }
        Ok(disturbed)
    }

    /// The run with each of its reads delayed.
    pub(crate) fn delayed(&self, delay: &str) -> Result<Disturbed, String> {
        let command = self.under_strace(true, &["--trace=read".to_owned(), delay.to_owned()]);
        let output = self.ended_within(LATE, command)?;
        Ok(Disturbed { output, trace: fs::read_to_string(self.beside("trace")).unwrap_or_default() })
    }

    fn under_strace(&self, threads: bool, options: &[String]) -> Command {
        let plain = self.command(self.program, &self.arguments);
        let mut command = Command::new(strace());
        command.env_clear().envs(present(plain.get_envs()));
        command.current_dir(plain.get_current_dir().unwrap());
        command.arg("-o").arg(self.beside("trace"));
        if threads {
            command.args(["-f", "--detach-on=execve"]);
        }
        command.args(options).arg(plain.get_program()).args(plain.get_args());
        command
    }

    /// `fault` as strace takes it: `CALL:WHAT:when=K`.
    pub(crate) fn disturbed(&self, threads: bool, fault: &str) -> Result<Disturbed, String> {
        let call = fault.split(':').next().unwrap();
        let options = ["-y".to_owned(), format!("--trace={call}"), format!("--inject={fault}")];
        self.traced(threads, &options)
    }

    /// The calls that an undisturbed run makes, from the first on that holds `from`.
    pub(crate) fn points(&self, threads: bool, from: &str, with_reading: bool) -> Vec<Point> {
        let calls = if with_reading { format!("{CHANGING},{READING}") } else { CHANGING.to_owned() };
        let calls = format!("--trace={}", with_mark(&calls));
        let Disturbed { output, trace } = self.traced(threads, &["-y".to_owned(), calls]).unwrap();
        assert!(output.status.code().is_some_and(|code| code < 128), "{output:?}");
        points_in(&trace, threads, from, with_reading)
    }

    /// Kills the run at its first changing call that names `what`.
    pub(crate) fn killed_at(&self, what: &str) {
        self.begin();
        let trace = self.traced(false, &["-y".to_owned(), changing()]).unwrap().trace;
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for line in trace.lines() {
            let Some((name, rest)) = line.split_once('(') else { continue };
            *seen.entry(name).or_default() += 1;
            if rest.contains(what) && changes(name, rest) {
                self.begin();
                let fault = format!("{name}:signal=KILL:when={}", seen[name]);
                assert!(self.disturbed(false, &fault).unwrap().is_killed(), "{fault}");
                return;
            }
        }
        panic!("no call names {what}: {trace}");
    }
}

/// The calls of a trace, from the first on that holds `from`. With `threads` each line begins with whose call it is.
pub(crate) fn points_in(trace: &str, threads: bool, from: &str, with_reading: bool) -> Vec<Point> {
    let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut points: Vec<Point> = Vec::new();
    let mut began = from.is_empty();
    for line in trace.lines() {
        let (thread, call) = match line.split_once(' ') {
            Some((thread, call)) if threads => (thread, call.trim_start()),
            _ => ("", line),
        };
        let Some((name, rest)) = call.split_once('(').filter(|_| !call.starts_with(['<', '+', '-'])) else {
            continue;
        };
        let count = seen.entry((thread, name)).or_default();
        *count += 1;
        let point = (name.to_owned(), *count);
        if began && (with_reading || changes(name, rest)) && !points.contains(&point) {
            points.push(point);
        }
        began = began || call.contains(from);
    }
    points
}

/// For `strace`: the calls that change something.
pub(crate) fn changing() -> String {
    format!("--trace={}", with_mark(CHANGING))
}

/// Opening for reading changes nothing, nor does what is written to a pipe, but for our own output.
fn changes(name: &str, rest: &str) -> bool {
    match name {
        "open" | "openat" => {
            ["O_CREAT", "O_WRONLY", "O_RDWR", "O_TRUNC"].iter().any(|flag| rest.contains(flag))
                && !rest.contains("\"/dev/")
        }
        "write" | "writev" => {
            let (fd, more) = rest.split_once('<').unwrap_or((rest, ""));
            fd == "1" || fd == "2" || more.starts_with('/')
        }
        // Asks about a descriptor, mostly.
        "fcntl" => rest.contains("F_SETLK") || rest.contains("F_OFD_SETLK"),
        "ioctl" => rest.contains("FICLONE"),
        _ => true,
    }
}
