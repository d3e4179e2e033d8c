//! One file of another program's is changed: all or nothing, and only if it may be.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::lookup::is_in_nix_store;
use crate::base::{file, reach};
use crate::memory::hooks::harness::CAP;
use crate::memory::hooks::settings::BOM;
use fs_err as fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileResult {
    Written,
    Removed,
    Unchanged,
    /// It is not ours to change, for this reason.
    Left(String),
}

/// A file as it is now.
#[derive(Clone)]
pub(super) struct SettingsFile {
    /// Where the bytes are: a symlink stays, and what it leads to is changed.
    pub(super) path: PathBuf,
    /// `None` if it does not exist.
    pub(super) bytes: Option<Vec<u8>>,
    bom: bool,
    /// Why the user may not change it.
    read_only: Option<String>,
    /// The directories that would be made with it, the outermost first.
    pub(super) missing_dirs: Vec<PathBuf>,
}

impl SettingsFile {
    pub(super) fn read(path: &Path) -> Result<SettingsFile> {
        reach::within(path, SettingsFile::read_now)?
    }

    fn read_now(path: &Path) -> Result<SettingsFile> {
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(e) if e.kind() == ErrorKind::NotFound && path.is_symlink() => {
                return Err(Error::refused(format!("\"{}\" is a link that leads nowhere", path.display()))
                    .hint("remove it, or create the file that it names"));
            }
            // Below the real directory, so that one file has one name in the record.
            Err(e) if e.kind() == ErrorKind::NotFound => match path.parent().map(fs::canonicalize) {
                Some(Ok(dir)) => path.file_name().map_or(dir.clone(), |name| dir.join(name)),
                _ => path.to_path_buf(),
            },
            Err(e) => return Err(e.into()),
        };
        let bytes = file::if_exists(file::read(&real, CAP))?;
        let bom = bytes.as_ref().is_some_and(|bytes| bytes.starts_with(BOM.to_string().as_bytes()));
        let (read_only, missing_dirs) = (read_only(&real), missing_dirs(&real));
        Ok(SettingsFile { path: real, bytes, bom, read_only, missing_dirs })
    }

    /// The text without a byte order mark.
    pub(super) fn text(&self) -> Result<Option<&str>> {
        let Some(bytes) = &self.bytes else { return Ok(None) };
        let text = std::str::from_utf8(bytes).map_err(|e| {
            let before = &bytes[..e.valid_up_to()];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
            Error::refused(format!("line {line}, column {column}: not valid UTF-8"))
        })?;
        Ok(Some(text.strip_prefix(BOM).unwrap_or(text)))
    }

    /// `text` would change it.
    pub(super) fn differs(&self, text: Option<&str>) -> bool {
        text.map(|text| self.with_bom(text)) != self.bytes
    }

    fn with_bom(&self, text: &str) -> Vec<u8> {
        let mut bytes = if self.bom { BOM.to_string().into_bytes() } else { Vec::new() };
        bytes.extend_from_slice(text.as_bytes());
        bytes
    }

    /// Why it must not be changed.
    pub(super) fn protected(&self, env: &Env) -> Option<String> {
        if is_in_nix_store(&self.path, env) {
            Some("belongs to Nix".to_owned())
        } else {
            self.read_only.clone()
        }
    }

    /// Replaces, creates or removes it, unless somebody has changed it since it was read: `false`.
    pub(super) fn write(&self, text: Option<String>) -> Result<bool> {
        let file = self.clone();
        reach::writing(&self.path, move |_| file.write_now(text.as_deref()))?
    }

    fn write_now(&self, text: Option<&str>) -> Result<bool> {
        let is_same = || file::if_exists(file::read(&self.path, CAP)).map(|bytes| bytes == self.bytes);
        if !is_same()? {
            return Ok(false);
        }
        match (text, &self.bytes) {
            (None, None) => {}
            (None, Some(_)) => file::remove(&self.path)?,
            (Some(text), None) => {
                file::make_dir(self.path.parent().unwrap_or(&self.path))?;
                match file::create(&self.path, &self.with_bom(text), 0o644) {
                    Err(e) if e.kind() == ErrorKind::AlreadyExists => return Ok(false),
                    created => created?,
                }
            }
            (Some(text), Some(_)) => {
                let mut changed = false;
                let replaced = file::replace(&self.path, |new| {
                    new.write_all(&self.with_bom(text))?;
                    changed = !is_same()?;
                    if changed { Err(io::Error::other("it was changed meanwhile")) } else { Ok(()) }
                });
                match replaced {
                    Err(_) if changed => return Ok(false),
                    replaced => replaced?,
                }
            }
        }
        Ok(true)
    }

    /// Removes the copies of it that a killed run of ours has left: those with our hooks, and what would become `text`.
    pub(super) fn sweep(&self, text: Option<&str>) {
        let new = text.map(|text| self.with_bom(text)).unwrap_or_default();
        let is_ours = move |bytes: &[u8]| {
            new.starts_with(bytes) || memchr::memmem::find(bytes, b"memory-capture").is_some()
        };
        // What does not answer is told when the file is written.
        let _ = reach::writing(&self.path, |path| file::sweep_aged(path, is_ours));
    }
}

fn read_only(path: &Path) -> Option<String> {
    let dir = path.ancestors().skip(1).find(|dir| dir.is_dir())?;
    let is_read_only = |path: &Path| match path.metadata() {
        Ok(metadata) => metadata.permissions().readonly() || !may_write(path),
        Err(_) => false,
    };
    if is_read_only(path) {
        return Some("is read-only".to_owned());
    }
    is_read_only(dir).then(|| format!("is in a directory that is read-only: \"{}\"", dir.display()))
}

fn missing_dirs(path: &Path) -> Vec<PathBuf> {
    let missing = path.ancestors().skip(1).take_while(|dir| !dir.exists());
    let mut missing: Vec<_> = missing.map(Path::to_path_buf).collect();
    missing.reverse();
    missing
}

#[cfg(unix)]
fn may_write(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(not(unix))]
fn may_write(_path: &Path) -> bool {
    true
}
