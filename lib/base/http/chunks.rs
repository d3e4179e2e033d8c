//! Whether a chunked body came to its end: minreq takes the end of the connection for the last chunk.

/// The longest line that is kept, in bytes. minreq refuses longer ones.
const LINE_CAP: usize = 64 * 1024;

/// Follows a response as it passes by.
#[derive(Debug, Default)]
pub(super) struct ChunkWatch {
    part: Part,
    is_chunked: bool,
    line: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy)]
enum Part {
    #[default]
    Head,
    /// The line before a chunk.
    Size,
    /// That many bytes of a chunk are still to come.
    Data(u64),
    DataEnd,
    /// Behind the last chunk, in a body of another kind, or in one that minreq refuses.
    Rest,
}

impl ChunkWatch {
    pub(super) fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.part {
                Part::Rest => return,
                Part::Data(left) => {
                    let n = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    bytes = &bytes[n..];
                    let left = left - n as u64;
                    self.part = if left == 0 { Part::DataEnd } else { Part::Data(left) };
                }
                Part::Head | Part::Size | Part::DataEnd => match memchr::memchr(b'\n', bytes) {
                    Some(end) => {
                        self.line.extend_from_slice(&bytes[..end]);
                        bytes = &bytes[end + 1..];
                        let line = std::mem::take(&mut self.line);
                        self.part = self.after(line.trim_ascii());
                    }
                    None if self.line.len() + bytes.len() > LINE_CAP => self.part = Part::Rest,
                    None => {
                        self.line.extend_from_slice(bytes);
                        return;
                    }
                },
            }
        }
    }

    fn after(&mut self, line: &[u8]) -> Part {
        match self.part {
            Part::Head if line.is_empty() => {
                if self.is_chunked {
                    Part::Size
                } else {
                    Part::Rest
                }
            }
            Part::Head => {
                let line = line.to_ascii_lowercase();
                let value = line.strip_prefix(b"transfer-encoding:").map(<[u8]>::trim_ascii);
                self.is_chunked = self.is_chunked || value == Some(b"chunked");
                Part::Head
            }
            Part::Size => {
                let digits = line.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
                let size =
                    std::str::from_utf8(digits).ok().and_then(|text| u64::from_str_radix(text, 16).ok());
                size.filter(|size| *size > 0).map_or(Part::Rest, Part::Data)
            }
            Part::DataEnd => Part::Size,
            other => other,
        }
    }

    /// If the connection ends here: is the last chunk missing?
    pub(super) fn is_cut(&self) -> bool {
        matches!(self.part, Part::Size | Part::Data(_) | Part::DataEnd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_body_with_its_last_chunk_is_whole() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n";
        for (response, is_cut) in [
            (format!("{head}2\r\n{{}}\r\n0\r\n\r\n"), false),
            (format!("{head}2;x=y\r\n{{}}\r\n0\r\n"), false),
            (format!("{head}2\r\n{{}}\r\n0\r\nTrailer: x\r\n\r\n"), false),
            (format!("{head}2\n{{}}\n0\n\n"), false),
            (format!("{head}2\r\n{{}}\r\n"), true),
            (format!("{head}2\r\n{{}}"), true),
            (format!("{head}2\r\n{{"), true),
            (format!("{head}a\r\n0\r\n\r\n\r\n0\r\n"), true),
            (head.to_owned(), true),
            // What minreq refuses is left to it.
            (format!("{head}x\r\n{{}}\r\n"), false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n2\r\n".to_owned(), false),
            ("HTTP/1.1 200 OK\r\nTransfer-Enc".to_owned(), false),
        ] {
            for length in [1, 2, 3, 64] {
                let mut watch = ChunkWatch::default();
                response.as_bytes().chunks(length).for_each(|piece| watch.take(piece));
                assert_eq!(watch.is_cut(), is_cut, "{response:?} in pieces of {length}");
            }
        }
    }
}
