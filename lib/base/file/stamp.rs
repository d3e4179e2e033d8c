//! What the file system says about a file: equal stamps, one content.

use crate::base::packed::{Unpack, put_number, put_signed};
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Two changes within so many nanoseconds may have the same stamp: the times of some file systems are that coarse.
const COARSE: i64 = 2_000_000_000;

/// Of a regular file, or of the one that a link leads to. Times are in nanoseconds since 1970.
///
/// The time of change cannot be set by hand: it tells an edit even if the time of modification was restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub size: u64,
    pub modified: i64,
    pub changed: i64,
    pub inode: u64,
    pub device: u64,
}

impl Stamp {
    /// Appends the stamp in the form that [`Stamp::unpack`] reads.
    pub fn pack(&self, to: &mut Vec<u8>) {
        put_number(to, self.size);
        put_signed(to, self.modified);
        put_signed(to, self.changed);
        put_number(to, self.inode);
        put_number(to, self.device);
    }

    pub fn unpack(from: &mut Unpack<'_>) -> Option<Stamp> {
        Some(Stamp {
            size: from.number()?,
            modified: from.signed()?,
            changed: from.signed()?,
            inode: from.number()?,
            device: from.number()?,
        })
    }
}

pub fn stamp(path: &Path) -> Option<Stamp> {
    Stamp::of(&rustix::fs::stat(path).ok()?)
}

/// A directory whose files are asked for their stamps by name. With ten thousand, whole paths take twice as long.
#[derive(Debug)]
pub struct Dir(fs_err::File);

impl Dir {
    pub fn open(path: &Path) -> io::Result<Dir> {
        fs_err::File::open(path).map(Dir)
    }

    /// When a name was last added, removed or given to another file, in nanoseconds since 1970.
    pub fn changed(&self) -> Option<i64> {
        changed(&rustix::fs::fstat(self.0.file()).ok()?)
    }

    pub fn stamp(&self, name: &OsStr) -> Option<Stamp> {
        Stamp::of(&rustix::fs::statat(self.0.file(), name, rustix::fs::AtFlags::empty()).ok()?)
    }
}

impl Stamp {
    #[allow(clippy::unnecessary_cast, reason = "systems have other types for these numbers")]
    fn of(stat: &rustix::fs::Stat) -> Option<Stamp> {
        let is_file = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file();
        is_file.then_some(Stamp {
            size: stat.st_size as u64,
            modified: in_nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64)?,
            changed: changed(stat)?,
            inode: stat.st_ino as u64,
            device: stat.st_dev as u64,
        })
    }
}

#[allow(clippy::unnecessary_cast, reason = "systems have other types for these numbers")]
fn changed(stat: &rustix::fs::Stat) -> Option<i64> {
    in_nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64)
}

fn in_nanoseconds(seconds: i64, more: i64) -> Option<i64> {
    seconds.checked_mul(1_000_000_000)?.checked_add(more)
}

/// The name of a file, from the bytes that [`OsStr::as_encoded_bytes`] gave. `None` if there is no such name.
pub fn name_of(bytes: &[u8]) -> Option<&OsStr> {
    Some(std::os::unix::ffi::OsStrExt::from_bytes(bytes))
}

/// A moment before files were read, to tell later which of them could have changed unnoticed.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    by_clock: SystemTime,
    running: Instant,
}

impl Moment {
    /// Now, by the clock that the file system has too, and not by a pinned one.
    #[allow(clippy::disallowed_methods, reason = "compared with times of the file system")]
    pub fn now() -> Moment {
        Moment { by_clock: SystemTime::now(), running: Instant::now() }
    }

    /// In nanoseconds since 1970.
    pub fn nanoseconds(self) -> i64 {
        nanoseconds(self.by_clock)
    }

    /// Nanoseconds since then, whatever happened to the clock.
    pub fn elapsed(self) -> i64 {
        i64::try_from(self.running.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }
}

/// Files that were changed before this were settled when they were read: whoever changes them later gives them another
/// stamp. All in nanoseconds since 1970.
///
/// `began` is the clock's time before the first was read, and `ended` the file system's time `elapsed` nanoseconds
/// later. The two clocks may differ, and may have been set meanwhile: the earlier time counts.
pub fn settled(began: i64, ended: i64, elapsed: i64) -> i64 {
    began.min(ended.saturating_sub(elapsed)).saturating_sub(COARSE)
}

impl Stamp {
    /// Whether the file was changed before that moment.
    pub fn is_before(&self, moment: i64) -> bool {
        self.modified < moment && self.changed < moment
    }
}

/// When an open file was last written, in nanoseconds since 1970.
pub fn written(file: &fs_err::File) -> io::Result<i64> {
    Ok(nanoseconds(file.metadata()?.modified()?))
}

fn nanoseconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).ok().and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_clock_counts() {
        let second = 1_000_000_000;
        assert_eq!(settled(100 * second, 105 * second, 5 * second), 98 * second);
        // The clock was set forward, or back, while the files were read.
        assert_eq!(settled(100 * second, 155 * second, 5 * second), 98 * second);
        assert_eq!(settled(100 * second, 55 * second, 5 * second), 48 * second);
    }

    #[test]
    #[cfg(unix)]
    fn a_restored_time_does_not_hide_an_edit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        crate::base::file::install(&path, b"one", 0o600).unwrap();
        let before = stamp(&path).unwrap();
        assert_eq!(stamp(&path), Some(before));
        std::thread::sleep(std::time::Duration::from_millis(20));
        let file = fs_err::File::options().write(true).open(&path).unwrap();
        std::io::Write::write_all(&mut &file, b"two").unwrap();
        let modified = UNIX_EPOCH + std::time::Duration::from_nanos(before.modified.unsigned_abs());
        file.set_modified(modified).unwrap();
        let after = stamp(&path).unwrap();
        assert_eq!((after.modified, after.size, after.inode), (before.modified, before.size, before.inode));
        assert!(after.changed > before.changed);
        assert_eq!((stamp(dir.path()), stamp(&dir.path().join("none"))), (None, None));
    }
}
