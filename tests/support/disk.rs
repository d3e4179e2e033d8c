//! A small disk that a test can fill, and a user whom file modes bind.

use crate::support::{Sandbox, say, set_mode};
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

pub(crate) const PAGE: usize = 4096;

/// A file system of 128 KiB in memory.
pub(crate) struct Disk(TempDir);

impl Disk {
    /// `None` if mounting is not allowed; this is reported.
    pub(crate) fn new() -> Option<Disk> {
        let dir = tempfile::tempdir().unwrap();
        let options = "size=128k,nr_inodes=20";
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "none"]).arg(dir.path()).stderr(Stdio::null());
        if mount.status().is_ok_and(|status| status.success()) {
            return Some(Disk(dir));
        }
        say("SKIPPED, a small disk could not be mounted: nothing was tried on a full disk");
        None
    }

    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "what fills a disk is tested on Linux"))]
    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Fills the disk to the last byte.
    pub(crate) fn fill(&self) {
        let mut filler = fs::File::create(self.path("filler")).unwrap();
        while filler.write_all(&[0; PAGE]).is_ok() {}
    }

    /// Takes all inodes: there is space for bytes, but not for another file.
    pub(crate) fn fill_names(&self) {
        let mut n = 0;
        while fs::write(self.path(&format!("filler{n}")), "").is_ok() {
            n += 1;
        }
    }

    pub(crate) fn free(&self) {
        for entry in fs::read_dir(self.0.path()).unwrap().map(Result::unwrap) {
            if entry.file_name().to_string_lossy().starts_with("filler") {
                fs::remove_file(entry.path()).unwrap();
            }
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// Runs a program as a user whom file modes bind; `None` if that is impossible.
pub(crate) fn powerless(sandbox: &Sandbox, program: &str, args: &[&str]) -> Option<std::process::Output> {
    let root = sandbox.home().parent().unwrap().to_owned();
    set_mode(&root, 0o755);
    let mut command = sandbox.std_command(program);
    command.args(args).stdin(Stdio::null());
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    match command.output() {
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            say("SKIPPED, the program cannot run as another user: file modes were not tried");
            None
        }
        output => Some(output.unwrap()),
    }
}
