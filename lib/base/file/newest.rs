//! The end of a log, read backwards: what it took this month does not depend on how old it is.

use crate::base::file::lock::open_settled;
use memchr::memchr;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// So much is read at once, in bytes.
const CHUNK: u64 = 64 << 10;
/// Where a line is longer, its log is read no further.
const LINE_CAP: usize = 4 << 20;

/// Shows `visit` the lines of a log, the newest first, until it has had enough: `false`. A missing log has none.
pub fn newest_lines(path: &Path, visit: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<()> {
    let Some((mut log, mut end)) = open_settled(path)? else { return Ok(()) };
    // The end of a line whose beginning is not read yet.
    let mut rest: Vec<u8> = Vec::new();
    while end > 0 && rest.len() < LINE_CAP {
        let start = end.saturating_sub(CHUNK);
        let mut chunk = vec![0; (end - start) as usize];
        log.seek(SeekFrom::Start(start))?;
        log.read_exact(&mut chunk)?;
        chunk.append(&mut rest);
        let first = match start {
            0 => 0,
            _ => memchr(b'\n', &chunk).map_or(chunk.len(), |at| at + 1),
        };
        let mut lines = chunk[first..].rsplit(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        if !lines.all(&mut *visit) {
            return Ok(());
        }
        chunk.truncate(first);
        (rest, end) = (chunk, start);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_backwards_whatever_their_length() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        assert!(newest_lines(&path, &mut |_| panic!("there is no log")).is_ok());
        let lines: Vec<String> = (0..9).map(|n| n.to_string().repeat(n * 20_000 + 1)).collect();
        crate::base::file::create(&path, (lines.join("\n") + "\n").as_bytes(), 0o600).unwrap();
        let mut seen = Vec::new();
        let mut see = |most: usize| {
            seen.clear();
            newest_lines(&path, &mut |line| {
                seen.push(String::from_utf8(line.to_vec()).unwrap());
                seen.len() < most
            })
            .unwrap();
            seen.clone()
        };
        assert_eq!(see(99), lines.iter().rev().cloned().collect::<Vec<_>>());
        assert_eq!(see(2), [lines[8].clone(), lines[7].clone()]);
    }
}
