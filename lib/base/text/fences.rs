//! Code fences, as Markdown has them (CommonMark 0.31, 4.5): three or more backticks or tildes, closed by as many
//! of the same or more.

/// The code in the fences of `text`, without blank ones. Each ends with a newline, and has lost the indentation of its fence.
/// A fence that is not closed ends with the text.
pub fn code_blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<(Fence, usize, String)> = None;
    for line in text.lines() {
        let mark = fence(line.as_bytes());
        open = match (open, mark) {
            (None, Some(mark)) => Some((mark, line.len() - line.trim_start().len(), String::new())),
            (None, None) => None,
            (Some((opening, _, block)), Some(mark)) if mark.closes(&opening) => {
                blocks.push(block);
                None
            }
            (Some((opening, indent, mut block)), _) => {
                let spaces = line.bytes().take(indent).take_while(u8::is_ascii_whitespace).count();
                block.push_str(&line[spaces..]);
                block.push('\n');
                Some((opening, indent, block))
            }
        };
    }
    blocks.extend(open.map(|(.., block)| block));
    blocks.retain(|block| !block.trim().is_empty());
    blocks
}

/// A line that opens or closes a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    mark: u8,
    pub length: usize,
    /// Nothing follows the marks. Only such a line closes a fence.
    pub is_bare: bool,
}

impl Fence {
    /// 0 for backticks, 1 for tildes.
    pub fn index(self) -> usize {
        usize::from(self.mark == b'~')
    }

    pub fn closes(self, open: &Fence) -> bool {
        self.is_bare && self.mark == open.mark && self.length >= open.length
    }

    /// A line that closes it.
    pub fn closing(self) -> String {
        char::from(self.mark).to_string().repeat(self.length)
    }
}

/// `line` as the first or last line of a fence, whatever its indentation.
pub fn fence(line: &[u8]) -> Option<Fence> {
    let line = line.trim_ascii();
    let mark = *line.first().filter(|byte| matches!(byte, b'`' | b'~'))?;
    let length = line.iter().take_while(|byte| **byte == mark).count();
    let rest = &line[length..];
    let is_fence = length >= 3 && (mark == b'~' || !rest.contains(&b'`'));
    is_fence.then_some(Fence { mark, length, is_bare: rest.is_empty() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_what_stands_between_fences() {
        for (text, blocks) in [
            ("", &[][..]),
            ("x `y` z\n    indented\n", &[]),
            ("a\n```sh\nls\n```\nb\n~~~\nx\n\ny\n~~~", &["ls\n", "x\n\ny\n"]),
            ("````md\n```sh\nls\n```\n````\n", &["```sh\nls\n```\n"]),
            ("1. so:\n   ```py\n   if x:\n       y\n z\n   ```", &["if x:\n    y\nz\n"]),
            ("```\r\na\r\n```\r\n", &["a\n"]),
            ("```\n```\n```\n \n```", &[]),
            ("```js\ncut of", &["cut of\n"]),
            ("```\n```x\n~~~\n```", &["```x\n~~~\n"]),
            ("```a `b` c```\n", &[]),
        ] {
            assert_eq!(code_blocks(text), blocks, "{text:?}");
        }
    }
}
