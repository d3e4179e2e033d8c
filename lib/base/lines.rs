//! Lines of an input, as long as they may be.

use memchr::memchr;
use std::io::{self, BufRead};
use std::time::Duration;

/// A buffer that grew beyond this for a long line is freed.
const BUFFER_KEEPS: usize = 1 << 20;

/// A line that was read.
pub struct LineRead {
    /// Bytes consumed, including the newline; 0 at the end of the input.
    pub length: u64,
    /// It ended with a newline.
    pub ended: bool,
    pub too_long: bool,
}

/// Reads the next line into `buffer`, without its newline. Of a line that is longer than `cap` nothing is kept.
pub fn next_line(reader: &mut impl BufRead, buffer: &mut Vec<u8>, cap: usize) -> io::Result<LineRead> {
    if buffer.capacity() > BUFFER_KEEPS {
        *buffer = Vec::new();
    }
    buffer.clear();
    let mut found = LineRead { length: 0, ended: false, too_long: false };
    while !found.ended {
        let block = match reader.fill_buf() {
            Ok([]) => break,
            Ok(block) => block,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            // Some parents pass a pipe that does not block.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
            Err(e) => return Err(e),
        };
        let newline = memchr(b'\n', block);
        let part = &block[..newline.unwrap_or(block.len())];
        let used = newline.map_or(block.len(), |at| at + 1);
        found.ended = newline.is_some();
        found.length += used as u64;
        if found.too_long || buffer.len() + part.len() > cap {
            found.too_long = true;
            *buffer = Vec::new();
        } else {
            buffer.extend_from_slice(part);
        }
        reader.consume(used);
    }
    Ok(found)
}
