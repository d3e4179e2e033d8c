//! A file with a section: reads it, compares, and writes only if something differs.
//!
//! Nothing that another program writes meanwhile is lost: our own runs exclude each other by a lock, and right before
//! the new file replaces the old one, the old one is read again. If it has changed, everything starts again.

use crate::base::error::{Error, Result};
use crate::base::{file, reach};
use crate::harness::recalled::START;
use crate::memory::section::splice::{find, spliced};
use atomic_write_file::AtomicWriteFile;
use fs_err as fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes.
pub(super) const CAP: u64 = 8 << 20;
/// How often the file may change meanwhile before we give up.
const TRIES: usize = 5;
/// The mode of a new file, before the umask.
const MODE: u32 = 0o644;

/// The state of a target after a refresh or a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The file did not exist and was created.
    Made,
    Written,
    /// The section is up to date.
    Unchanged,
    /// There is no such file, and nothing to put into it.
    Missing,
    /// The section is out of date. Only a check returns this.
    Stale,
}

impl Standing {
    pub fn as_str(self) -> &'static str {
        match self {
            Standing::Made => "made",
            Standing::Written => "written",
            Standing::Unchanged => "unchanged",
            Standing::Missing => "missing",
            Standing::Stale => "stale",
        }
    }
}

#[derive(Clone)]
pub(super) struct File {
    path: PathBuf,
    /// Without symlinks, so that two names of one file are recognised.
    pub(super) real: PathBuf,
}

/// What a refresh has to do. A file that is not there is made.
struct Rewrite {
    old: Option<Vec<u8>>,
    new: Vec<u8>,
}

impl File {
    pub(super) fn of(path: &Path) -> Result<File> {
        Ok(File { path: path.to_path_buf(), real: reach::within(path, real)?? })
    }

    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        file::if_exists(reach::read(&self.real, CAP))
    }

    /// Has the file a section, whatever its text?
    pub(super) fn has_section(&self) -> Result<bool> {
        Ok(match self.read()? {
            Some(bytes) => find(&bytes)?.is_some(),
            None => false,
        })
    }

    /// Writes the section, or looks whether it is up to date. Unless `may_add`, a file without a section stays as it is, and none
    /// is made.
    pub(super) fn refresh(&self, section: &str, may_add: bool, is_to_write: bool) -> Result<Standing> {
        if !is_to_write {
            return self.check(section, may_add);
        }
        let (file, section) = (self.clone(), section.to_owned());
        reach::writing(&self.real, move |_| file.refresh_now(&section, may_add))?
    }

    pub(super) fn check(&self, section: &str, may_add: bool) -> Result<Standing> {
        let Some(change) = self.change(section, may_add)? else { return Ok(self.at_rest()) };
        if change.old.is_none() {
            self.missing_dir()?;
        }
        Ok(Standing::Stale)
    }

    fn refresh_now(&self, section: &str, may_add: bool) -> Result<Standing> {
        file::sweep_aged(&self.real, |left| {
            left.is_empty() || memchr::memmem::find(left, START.as_bytes()).is_some()
        });
        for _ in 0..TRIES {
            let (standing, done) = match self.change(section, may_add)? {
                None => return Ok(self.at_rest()),
                Some(Rewrite { old: None, new }) => (Standing::Made, self.make(&new)?),
                Some(_) => (Standing::Written, self.replace(section, may_add)?),
            };
            if done {
                return Ok(standing);
            }
        }
        Err(self.error("another program keeps changing it").hint("try again"))
    }

    /// Where nothing is to be done.
    fn at_rest(&self) -> Standing {
        let exists = reach::within(&self.real, Path::exists).unwrap_or(true);
        if exists { Standing::Unchanged } else { Standing::Missing }
    }

    fn change(&self, section: &str, may_add: bool) -> Result<Option<Rewrite>> {
        let Some(old) = self.read()? else {
            return Ok(may_add.then(|| Rewrite { old: None, new: spliced(b"", None, section) }));
        };
        if old.starts_with(b"\xff\xfe") || old.starts_with(b"\xfe\xff") {
            return Err(self.error("it is UTF-16").hint("save it as UTF-8"));
        }
        let at = find(&old).map_err(|error| {
            self.error(&format!("its markers are broken: {}", error.message()))
                .hint("keep one section from start to end, or none, and delete the other markers")
        })?;
        if at.is_none() && !may_add {
            return Ok(None);
        }
        let new = spliced(&old, at.as_ref(), section);
        Ok((new != old).then_some(Rewrite { old: Some(old), new }))
    }

    /// `false` if another program has created it meanwhile.
    fn make(&self, bytes: &[u8]) -> Result<bool> {
        self.missing_dir()?.map_or(Ok(()), file::make_dir)?;
        let is_missing = |beside: &AtomicWriteFile| {
            // The sync is slow enough for another program to create the file.
            beside.sync_all()?;
            file::if_exists(self.real.symlink_metadata()).map(|found| found.is_none())
        };
        file::install_if(&self.real, bytes, MODE, is_missing).map_err(Error::from)
    }

    /// The directory that is made with the file, like that of a program which has not run yet. If more are missing, it is
    /// probably a typing error.
    fn missing_dir(&self) -> Result<Option<&Path>> {
        let Some(dir) = self.real.parent().filter(|dir| !dir.exists()) else { return Ok(None) };
        match dir.parent() {
            Some(above) if !above.is_dir() => Err(self
                .error(&format!("there is no directory \"{}\"", above.display()))
                .hint("make it, or correct the path")),
            _ => Ok(Some(dir)),
        }
    }

    /// `false` if another program has changed it meanwhile.
    fn replace(&self, section: &str, may_add: bool) -> Result<bool> {
        let metadata = fs::metadata(&self.real)?;
        if metadata.permissions().readonly() {
            let hint = match self.real.starts_with("/nix/store") {
                true => "Nix manages it: write to a file of your own, or let Nix have the text of --stdout",
                false => "make it writable, or name another file",
            };
            return Err(self.error("it is read-only").hint(hint));
        }
        let Some(_lock) = file::lock_for_change(&self.real, false)? else {
            return Ok(false);
        };
        // Read again under the lock.
        let Some(Rewrite { old: Some(old), new }) = self.change(section, may_add)? else { return Ok(false) };
        let mut has_changed = false;
        let replaced = file::replace(&self.real, |beside| {
            beside.write_all(&new)?;
            // The sync is slow enough for another program to write the old one.
            beside.sync_all()?;
            has_changed = file::read(&self.real, CAP)? != old;
            if has_changed { Err(io::Error::other("it has changed meanwhile")) } else { Ok(()) }
        });
        match replaced {
            Ok(()) => Ok(true),
            Err(_) if has_changed => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    fn error(&self, why: &str) -> Error {
        Error::io(format!("\"{}\": {why}", self.path.display()))
    }
}

/// The file that a path leads to. A dangling symlink is an error, since it is unclear what to create.
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
            let real = dir.zip(path.file_name()).map(|(dir, name)| dir.join(name));
            Ok(real.unwrap_or_else(|| path.to_path_buf()))
        }
        Err(e) => Err(failed(e.to_string())),
    }
}
