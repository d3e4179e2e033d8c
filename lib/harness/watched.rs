//! A session's file, read by a thread of its own under one deadline. On a file system that hangs, opening a file or
//! reading it may take for ever, and nothing can end such a wait: the thread is left behind, and the run goes on.

use crate::base::deadline::Deadline;
use crate::base::file;
use crate::base::text::size;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// How long reading one session may take, from opening it to its last byte.
const PATIENCE: Duration = Duration::from_secs(60);
/// The largest session that is read, in bytes.
const CAP: u64 = 1 << 30;

enum FileRequest {
    /// Fills this buffer.
    Read(Vec<u8>),
    Seek(SeekFrom),
}

/// The buffer of the request, and how many bytes are in it, or the new position; at first the file's length.
type FileAnswer = (Vec<u8>, io::Result<u64>);

pub(super) struct WatchedFile {
    path: PathBuf,
    requests: Sender<FileRequest>,
    answers: Receiver<FileAnswer>,
    buffer: Vec<u8>,
    length: u64,
    deadline: Deadline,
    patience: Duration,
}

impl WatchedFile {
    pub(super) fn open(path: &Path) -> io::Result<WatchedFile> {
        WatchedFile::open_with(path, PATIENCE, open_session)
    }

    /// How many bytes it had when it was opened.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    fn open_with<F: Read + Seek>(
        path: &Path,
        patience: Duration,
        open: impl FnOnce(&Path) -> io::Result<(F, u64)> + Send + 'static,
    ) -> io::Result<WatchedFile> {
        let (requests, taken) = channel();
        let (given, answers) = channel();
        let name = path.to_path_buf();
        thread::Builder::new().spawn(move || serve(open(&name), &taken, &given))?;
        let (path, deadline) = (path.to_path_buf(), Deadline::after(patience));
        let buffer = Vec::new();
        let watched = WatchedFile { path, requests, answers, buffer, length: 0, deadline, patience };
        let length = watched.answer()?.1?;
        Ok(WatchedFile { length, ..watched })
    }

    fn ask(&mut self, request: FileRequest) -> io::Result<u64> {
        // If the thread has ended, so has the other channel.
        let _ = self.requests.send(request);
        let (buffer, result) = self.answer()?;
        self.buffer = buffer;
        result
    }

    fn answer(&self) -> io::Result<FileAnswer> {
        let path = self.path.display();
        self.answers.recv_timeout(self.deadline.remaining()).map_err(|why| match why {
            RecvTimeoutError::Timeout => {
                let seconds = self.patience.as_secs();
                let why = format!(
                    "\"{path}\" was not read within {seconds} seconds; its file system hangs or is too slow"
                );
                io::Error::new(io::ErrorKind::TimedOut, why)
            }
            RecvTimeoutError::Disconnected => {
                io::Error::other(format!("the thread that read \"{path}\" has ended"))
            }
        })
    }
}

impl Read for WatchedFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(into.len(), 0);
        let count = usize::try_from(self.ask(FileRequest::Read(buffer))?).unwrap_or(usize::MAX);
        let count = count.min(into.len()).min(self.buffer.len());
        into[..count].copy_from_slice(&self.buffer[..count]);
        Ok(count)
    }
}

impl Seek for WatchedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.ask(FileRequest::Seek(to))
    }
}

/// Answers requests until nobody asks any more; the first answer says whether the file could be opened.
fn serve<F: Read + Seek>(
    opened: io::Result<(F, u64)>,
    requests: &Receiver<FileRequest>,
    answers: &Sender<FileAnswer>,
) {
    let (mut file, mut answer) = match opened {
        Ok((file, length)) => (file, (Vec::new(), Ok(length))),
        Err(error) => return drop(answers.send((Vec::new(), Err(error)))),
    };
    while answers.send(answer).is_ok()
        && let Ok(request) = requests.recv()
    {
        answer = match request {
            FileRequest::Read(mut buffer) => {
                let count = file.read(&mut buffer).map(|count| count as u64);
                (buffer, count)
            }
            FileRequest::Seek(to) => (Vec::new(), file.seek(to)),
        };
    }
}

/// Only a regular file is read, and it is opened without waiting for a pipe's other end.
fn open_session(path: &Path) -> io::Result<(fs_err::File, u64)> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // What the kernel makes up calls itself a regular file, and has no end that can be relied on. /dev/shm has real ones.
    let real = fs_err::canonicalize(path)?;
    if ["/proc", "/sys", "/dev"].iter().any(|dir| real.starts_with(dir)) && !real.starts_with("/dev/shm") {
        let why = format!("\"{}\" is not a regular file", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let (file, length) = file::open_regular(path)?;
    if length > CAP {
        let why =
            format!("\"{}\" has {}; sessions of up to {} are read", path.display(), size(length), size(CAP));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok((file, length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    const SOON: Duration = Duration::from_millis(200);

    /// A file whose file system answers `good` reads, and then hangs.
    struct Hangs {
        good: usize,
    }

    impl Read for Hangs {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            match self.good.checked_sub(1) {
                Some(left) => self.good = left,
                None => thread::sleep(Duration::from_secs(3600)),
            }
            into.fill(b'x');
            Ok(into.len())
        }
    }

    impl Seek for Hangs {
        fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
            Ok(0)
        }
    }

    fn watched<F: Read + Seek>(
        patience: Duration,
        open: impl FnOnce(&Path) -> io::Result<F> + Send + 'static,
    ) -> io::Result<WatchedFile> {
        WatchedFile::open_with(Path::new("/a/session"), patience, |path| open(path).map(|file| (file, 0)))
    }

    #[test]
    fn a_file_system_that_hangs_is_an_error_after_a_while() {
        let never = |_: &Path| -> io::Result<Hangs> {
            thread::sleep(Duration::from_secs(3600));
            Ok(Hangs { good: 0 })
        };
        let error = watched(SOON, never).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("\"/a/session\" was not read within"), "{error}");

        let mut file = watched(SOON, |_| Ok(Hangs { good: 2 })).unwrap();
        let mut bytes = [0; 10];
        assert_eq!((file.read(&mut bytes).unwrap(), bytes), (10, [b'x'; 10]));
        assert_eq!(file.read(&mut bytes).unwrap(), 10);
        assert_eq!(file.read(&mut bytes).unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(file.seek(SeekFrom::Start(0)).unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn reads_and_seeks_are_those_of_the_file() {
        let text = (0..50_000).map(|n| (n % 251) as u8).collect::<Vec<u8>>();
        let copy = text.clone();
        let mut file = watched(PATIENCE, move |_| Ok(Cursor::new(copy))).unwrap();
        let mut all = Vec::new();
        file.read_to_end(&mut all).unwrap();
        assert_eq!(all, text);
        assert_eq!(file.seek(SeekFrom::Start(40_000)).unwrap(), 40_000);
        let mut rest = Vec::new();
        file.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, text[40_000..]);
    }

    #[test]
    fn a_thread_that_ends_is_an_error() {
        struct Panics;
        impl Read for Panics {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                panic!("as a test wants it")
            }
        }
        impl Seek for Panics {
            fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
                Ok(0)
            }
        }
        let mut file = watched(PATIENCE, |_| Ok(Panics)).unwrap();
        let error = file.read(&mut [0; 4]).unwrap_err();
        assert!(error.to_string().contains("has ended"), "{error}");
    }

    #[test]
    fn a_session_beyond_the_cap_is_refused_with_the_cap() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("huge.jsonl");
        // A file with a hole takes no space.
        tempfile::NamedTempFile::new_in(dir.path())
            .unwrap()
            .persist(&path)
            .unwrap()
            .set_len(CAP + 1)
            .unwrap();
        let error = WatchedFile::open(&path).err().unwrap().to_string();
        assert!(error.contains("sessions of up to 1024 MiB are read"), "{error}");
    }
}
