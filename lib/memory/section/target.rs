//! One file with a section: read, compared, and written only if it differs.
//!
//! What somebody else writes meanwhile is not lost: two of our runs exclude each other by a lock, and right before
//! the new file takes its place the old one is read again. If it has changed, all begins anew.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::harness::recalled::START;
use crate::memory::section::splice::{find, spliced};
use atomic_write_file::AtomicWriteFile;
use fs_err as fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes.
const CAP: u64 = 8 << 20;
/// So often it may change under our hands.
const TRIES: usize = 5;
/// Of a new file, less the umask.
const MODE: u32 = 0o644;

/// How a target stands after it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// There was no such file.
    Made,
    Written,
    /// Nothing was to be done: it is as it should be, or there is nothing to put into a new file.
    Unchanged,
    /// It is not as it should be, and was left so: only where it was only looked at.
    Stale,
}

impl Standing {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Standing::Made => "made",
            Standing::Written => "written",
            Standing::Unchanged => "unchanged",
            Standing::Stale => "stale",
        }
    }
}

/// What is to stand in a file.
pub(crate) struct Placed<'a> {
    pub(crate) text: &'a str,
    /// There is no note: not worth a new file, or a section where there is none.
    pub(crate) is_empty: bool,
}

pub(crate) struct File {
    path: PathBuf,
    /// Without symlinks, so that two names of one file are known.
    pub(crate) real: PathBuf,
}

/// What is to be done.
enum Step {
    Nothing,
    Make(Vec<u8>),
    Replace { old: Vec<u8>, new: Vec<u8> },
}

impl File {
    /// With `strictly` no symlink may lead to it: its path was resolved before, and a link in it is a later one.
    pub(crate) fn of(path: &Path, strictly: bool) -> Result<File> {
        let real = real(path)?;
        if strictly && real != path {
            return Err(Error::io(format!(
                "\"{}\" leads to \"{}\", and the store is one that is not trusted",
                path.display(),
                real.display()
            ))
            .hint("trust its directory, or name the file itself"));
        }
        Ok(File { path: path.to_path_buf(), real })
    }

    pub(crate) fn check(&self, placed: &Placed) -> Result<Standing> {
        Ok(match self.step(placed)? {
            Step::Nothing => Standing::Unchanged,
            Step::Make(_) | Step::Replace { .. } => Standing::Stale,
        })
    }

    pub(crate) fn refresh(&self, placed: &Placed) -> Result<Standing> {
        file::sweep_aged(&self.real, file::LEFT_BEHIND, |left| {
            left.is_empty() || memchr::memmem::find(left, START.as_bytes()).is_some()
        });
        for _ in 0..TRIES {
            let (standing, done) = match self.step(placed)? {
                Step::Nothing => return Ok(Standing::Unchanged),
                Step::Make(new) => (Standing::Made, self.make(&new)?),
                Step::Replace { .. } => (Standing::Written, self.replace(placed)?),
            };
            if done {
                return Ok(standing);
            }
        }
        Err(self.error("somebody else keeps changing it").hint("try again"))
    }

    fn step(&self, placed: &Placed) -> Result<Step> {
        let old = match file::read(&self.real, CAP) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && placed.is_empty => return Ok(Step::Nothing),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Ok(Step::Make(spliced(b"", None, placed.text)));
            }
            Err(e) => return Err(Error::io(e.to_string())),
            Ok(old) => old,
        };
        if old.starts_with(b"\xff\xfe") || old.starts_with(b"\xfe\xff") {
            return Err(self.error("it is UTF-16").hint("save it as UTF-8"));
        }
        let at = find(&old).map_err(|why| {
            self.error(&format!("its markers are broken: {why}"))
                .hint("keep one section from start to end, or none, and delete the other markers")
        })?;
        if at.is_none() && placed.is_empty {
            return Ok(Step::Nothing);
        }
        let new = spliced(&old, at.as_ref(), placed.text);
        Ok(if new == old { Step::Nothing } else { Step::Replace { old, new } })
    }

    /// `false`: somebody else has made it meanwhile.
    fn make(&self, bytes: &[u8]) -> Result<bool> {
        self.make_dir()?;
        let is_missing = |beside: &AtomicWriteFile| {
            // The sync takes the time in which somebody may make it.
            beside.sync_all()?;
            match self.real.symlink_metadata() {
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(true),
                Err(e) => Err(e),
                Ok(_) => Ok(false),
            }
        };
        file::install_if(&self.real, bytes, MODE, is_missing).map_err(|e| Error::io(e.to_string()))
    }

    /// One missing directory is made, as that of a program which has not run yet. More are rather a slip.
    fn make_dir(&self) -> Result<()> {
        let Some(dir) = self.real.parent().filter(|dir| !dir.exists()) else { return Ok(()) };
        match dir.parent() {
            Some(above) if !above.is_dir() => Err(self
                .error(&format!("there is no directory \"{}\"", above.display()))
                .hint("make it, or correct the path")),
            _ => file::make_dir(dir).map_err(|e| Error::io(e.to_string())),
        }
    }

    /// `false`: somebody else has changed it meanwhile.
    fn replace(&self, placed: &Placed) -> Result<bool> {
        let metadata = fs::metadata(&self.real)?;
        if metadata.permissions().readonly() {
            let error = self.error("it is read-only");
            return Err(if self.real.starts_with("/nix/store") {
                error
                    .hint("Nix manages it: write to a file of your own, or let Nix have the text of --stdout")
            } else {
                error.hint("make it writable, or name another file")
            });
        }
        let Some(_lock) = file::lock_for_change(&self.real, false)? else {
            return Ok(false);
        };
        // Read again, now that no other run of ours writes.
        let Step::Replace { old, new } = self.step(placed)? else { return Ok(false) };
        let mut has_changed = false;
        let replaced = file::replace(&self.real, |beside| {
            beside.write_all(&new)?;
            // The sync takes the time in which somebody may save the old one.
            beside.sync_all()?;
            has_changed = file::read(&self.real, CAP)? != old;
            if has_changed { Err(io::Error::other("it has changed meanwhile")) } else { Ok(()) }
        });
        match replaced {
            Ok(()) => Ok(true),
            Err(_) if has_changed => Ok(false),
            Err(e) => Err(Error::io(e.to_string())),
        }
    }

    fn error(&self, why: &str) -> Error {
        Error::io(format!("\"{}\": {why}", self.path.display()))
    }
}

/// The file that a path leads to. A link to nothing is refused: nobody has said what is to be made there.
fn real(path: &Path) -> Result<PathBuf> {
    let failed = |why: String| Error::io(format!("\"{}\": {why}", path.display()));
    match path.symlink_metadata() {
        Ok(found) => match path.canonicalize() {
            Err(e) if e.kind() == io::ErrorKind::NotFound && found.is_symlink() => {
                Err(failed("a symlink that leads to no file".to_owned())
                    .hint("make the file, or remove the link"))
            }
            real => real.map_err(|e| failed(e.to_string())),
        },
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let dir = path.parent().and_then(|dir| dir.canonicalize().ok());
            Ok(match (dir, path.file_name()) {
                (Some(dir), Some(name)) => dir.join(name),
                _ => path.to_path_buf(),
            })
        }
        Err(e) => Err(failed(e.to_string())),
    }
}
