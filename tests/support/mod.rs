//! What the tests share. This file: a sandbox for the programs, with its own home directory, a cleared environment, a
//! pinned clock, and shell commands that stand in for LLMs.

pub(crate) mod api;
#[allow(dead_code, reason = "shared with the fault suite, which uses all of it")]
pub(crate) mod corpus;
pub(crate) mod defrag;
pub(crate) mod disk;
pub(crate) mod llm;
pub(crate) mod nix;
pub(crate) mod processes;
pub(crate) mod queue;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod shell;
pub(crate) mod store;
pub(crate) mod terminal;
pub(crate) mod timers;
#[allow(dead_code, reason = "shared with the fault suite, which uses all of it")]
pub(crate) mod world;

use assert_cmd::Command;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{CommandEnvs, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The time that every program in a sandbox sees.
pub(crate) const NOW: &str = "2026-02-28T15:04:05Z";

pub(crate) struct Sandbox {
    dir: TempDir,
}

/// The PATH of the tests: the usual directories, whatever the developer's PATH is. In a Nix build these are empty, and
/// the whole PATH is used.
pub(crate) fn tools() -> String {
    if Path::new("/usr/bin/env").exists() {
        "/usr/local/bin:/usr/bin:/bin".to_owned()
    } else {
        std::env::var("PATH").unwrap()
    }
}

/// A shell's background job ignores SIGINT, and what it starts inherits that: a test that sends one would wait in vain.
/// A handler is not inherited. Ours does what the system does by default.
fn heed_signals() {
    use signal_hook::{consts, flag::register_conditional_default};
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        for signal in [consts::SIGHUP, consts::SIGINT, consts::SIGQUIT] {
            register_conditional_default(signal, std::sync::Arc::new(true.into())).unwrap();
        }
    });
}

/// The step through a long table of cases, of which a usual run takes one in so many: 1 with `SUITE=all`, as in `.ci/run`.
pub(crate) fn one_in(usual: usize) -> usize {
    if std::env::var("SUITE").as_deref() == Ok("all") { 1 } else { usual }
}

/// Where files cost the least: in memory, if there is room and programs can be run. `TMPDIR` decides otherwise.
fn in_memory() -> &'static Path {
    static FOUND: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    FOUND.get_or_init(|| {
        #[cfg(target_os = "linux")]
        if std::env::var_os("TMPDIR").is_none()
            && let Ok(shm) = rustix::fs::statvfs("/dev/shm")
            && !shm.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC)
            && shm.f_bavail * shm.f_frsize >= 2 << 30
            && tempfile::tempfile_in("/dev/shm").is_ok()
        {
            return PathBuf::from("/dev/shm");
        }
        std::env::temp_dir()
    })
}

/// The path of a program that cargo has built.
pub(crate) fn binary(program: &str) -> PathBuf {
    assert_cmd::cargo::cargo_bin(program)
}

impl Sandbox {
    pub(crate) fn new() -> Sandbox {
        Sandbox::within(in_memory())
    }

    /// On the disk where the system keeps temporary files, and often cargo the programs: they can be linked there.
    pub(crate) fn on_disk() -> Sandbox {
        Sandbox::within(&std::env::temp_dir())
    }

    fn within(dir: &Path) -> Sandbox {
        heed_signals();
        let sandbox = Sandbox { dir: tempfile::tempdir_in(dir).unwrap() };
        fs::create_dir_all(sandbox.home()).unwrap();
        fs::create_dir_all(sandbox.work()).unwrap();
        sandbox
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// The directory that programs are started in.
    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.home().join(".config/axe")
    }

    pub(crate) fn log_path(&self, agent: &str) -> PathBuf {
        self.home().join(format!(".local/share/axe/memory/{agent}.md"))
    }

    /// The log's text; empty if there is none.
    pub(crate) fn log(&self, agent: &str) -> String {
        fs::read_to_string(self.log_path(agent)).unwrap_or_default()
    }

    pub(crate) fn write_log(&self, agent: &str, text: &str) {
        self.write(&self.log_path(agent), text);
    }

    /// Writes a file, and its directories.
    pub(crate) fn write(&self, path: &Path, content: impl AsRef<[u8]>) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Writes a file below the working directory.
    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        self.write(&self.work().join(path), content);
    }

    /// Writes `agents/<name>.toml`.
    pub(crate) fn agent_file(&self, name: &str, toml: &str) {
        self.write(&self.config().join(format!("agents/{name}.toml")), toml);
    }

    /// An agent whose model is the shell command `command`; `more` is further TOML.
    pub(crate) fn agent(&self, name: &str, command: &str, more: &str) {
        self.agent_file(name, &format!("name = \"{name}\"\nmodel = \"{name}/model\"\n{more}"));
        self.provider(name, &format!("kind = \"command\"\ncommand = '''{command}'''"));
    }

    /// Adds `[providers.<name>]` to config.toml.
    pub(crate) fn provider(&self, name: &str, toml: &str) {
        let path = self.config().join("config.toml");
        fs::create_dir_all(self.config()).unwrap();
        let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        write!(file, "[providers.\"{name}\"]\n{toml}\n").unwrap();
    }

    /// The program, in this sandbox, with nothing on stdin.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::from_std(self.std_command(program));
        command.write_stdin("");
        command
    }

    /// The same as a `std::process::Command`, for tests that need the child itself.
    pub(crate) fn std_command(&self, program: &str) -> std::process::Command {
        let mut command = std::process::Command::new(binary(program));
        command
            .env_clear()
            .env("PATH", tools())
            .env("HOME", self.home())
            .env("AXE_NOW", NOW)
            .current_dir(self.work());
        if program.ends_with("-cron") {
            // crontab and systemctl act on the real user, whatever HOME is: they must not be found.
            command.env("PATH", self.home()).env("XDG_RUNTIME_DIR", self.home());
        }
        if program == "memory-doctor" {
            // It reads the crontab, which is the real user's too. A script that each of twenty runs writes anew is busy.
            let no_crontab = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/no-crontab");
            command.env("PATH", format!("{no_crontab}:/usr/local/bin:/usr/bin:/bin"));
            // It looks whether recall answers in time. A busy machine is no trouble of the store's.
            command.env("AGENT_MEMORY_RECALL_MS", "8000");
        }
        command
    }

    pub(crate) fn run(&self, agent: &str) -> Command {
        let mut command = self.command("axe-run");
        command.arg(agent);
        command
    }
}

/// The streams and the exit code of a finished program.
pub(crate) trait Said {
    fn out(&self) -> String;
    fn err(&self) -> String;
    fn code(&self) -> Option<i32>;
}

impl Said for std::process::Output {
    fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    fn code(&self) -> Option<i32> {
        self.status.code()
    }
}

/// `n` different log entries: `## 2026-01-01T00:00:NNZ`.
pub(crate) fn entries(n: usize) -> String {
    (0..n)
        .map(|i| format!("## 2026-01-01T00:00:{i:02}Z\n**Task:** task {i}\n**Result:** result {i}\n\n"))
        .collect()
}

/// The line of `axe-gc` about `entries(n)`.
pub(crate) fn overview(n: usize) -> String {
    let characters: usize = (0..n).map(|i| format!("result {i}").len()).sum();
    let (last, mean) = (n - 1, characters / n);
    format!(
        "Runs: {n}, first 2026-01-01T00:00:00Z, last 2026-01-01T00:00:{last:02}Z, mean result {mean} characters\n"
    )
}

/// Waits up to a minute for something that another process does.
pub(crate) fn eventually(what: &str, condition: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < patience, "{what}: waited in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the command line of any process contains `mark`.
pub(crate) fn is_running(mark: &str) -> bool {
    fs::read_dir("/proc").unwrap().filter_map(Result::ok).any(|entry| {
        fs::read(entry.path().join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).replace('\0', " ").contains(mark))
    })
}

/// Runs `command` to its end: exit code, stdout, stderr.
pub(crate) fn said(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    (output.code(), output.out(), output.err())
}

/// The project's directory.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Writes to the real stderr, which is shown even if the test passes.
/// The variables that are set for a command, for another command that starts it.
pub(crate) fn present(variables: CommandEnvs<'_>) -> impl Iterator<Item = (&OsStr, &OsStr)> {
    variables.filter_map(|(name, value)| Some((name, value?)))
}

pub(crate) fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// The names of the programs, from `bins/`.
pub(crate) fn programs() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir("bins")
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert!(names.len() >= 4, "{names:?}");
    names
}

/// A pipe whose reader has closed it already.
pub(crate) fn closed_pipe() -> Stdio {
    let (_, writer) = std::io::pipe().unwrap();
    writer.into()
}

/// A disk that is full.
pub(crate) fn full_disk() -> Stdio {
    fs::OpenOptions::new().write(true).open("/dev/full").unwrap().into()
}

/// The permission bits of a file.
pub(crate) fn mode(path: &Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions()) & 0o7777
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

pub(crate) fn symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) {
    fs::create_dir_all(link.as_ref().parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(target, link).unwrap();
}

/// Whether this is root, whom no permission stops. If so, the test is reported as skipped.
pub(crate) fn is_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if root {
        let _ = writeln!(std::io::stderr(), "SKIPPED for root, whom no permission stops: {test}");
    }
    root
}
