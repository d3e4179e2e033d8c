//! Code fences, as Markdown has them (CommonMark 0.31, 4.5): three or more backticks or tildes, closed by as many
//! of the same or more.

/// A line that opens or closes a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fence {
    mark: u8,
    pub(crate) length: usize,
    /// Nothing follows the marks: only such a line closes.
    pub(crate) is_bare: bool,
}

impl Fence {
    /// One number for each of the two marks.
    pub(crate) fn index(self) -> usize {
        usize::from(self.mark == b'~')
    }

    pub(crate) fn closes(self, open: &Fence) -> bool {
        self.is_bare && self.mark == open.mark && self.length >= open.length
    }

    /// The line that closes it.
    pub(crate) fn closing(self) -> String {
        char::from(self.mark).to_string().repeat(self.length)
    }
}

/// `line`, whatever its indentation, as a fence's first or last.
pub(crate) fn fence(line: &[u8]) -> Option<Fence> {
    let line = line.trim_ascii();
    let mark = *line.first().filter(|byte| matches!(byte, b'`' | b'~'))?;
    let length = line.iter().take_while(|byte| **byte == mark).count();
    let rest = &line[length..];
    let is_fence = length >= 3 && (mark == b'~' || !rest.contains(&b'`'));
    is_fence.then_some(Fence { mark, length, is_bare: rest.is_empty() })
}
