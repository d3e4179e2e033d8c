//! Code fences, as Markdown has them (CommonMark 0.31, 4.5): three or more backticks or tildes, closed by as many
//! of the same or more.

/// A line that opens or closes a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence {
    mark: u8,
    pub(super) length: usize,
    /// Nothing follows the marks. Only such a line closes a fence.
    pub(super) is_bare: bool,
}

impl Fence {
    /// 0 for backticks, 1 for tildes.
    pub(super) fn index(self) -> usize {
        usize::from(self.mark == b'~')
    }

    pub(super) fn closes(self, open: &Fence) -> bool {
        self.is_bare && self.mark == open.mark && self.length >= open.length
    }

    /// A line that closes it.
    pub(super) fn closing(self) -> String {
        char::from(self.mark).to_string().repeat(self.length)
    }
}

/// `line` as the first or last line of a fence, whatever its indentation.
pub(super) fn fence(line: &[u8]) -> Option<Fence> {
    let line = line.trim_ascii();
    let mark = *line.first().filter(|byte| matches!(byte, b'`' | b'~'))?;
    let length = line.iter().take_while(|byte| **byte == mark).count();
    let rest = &line[length..];
    let is_fence = length >= 3 && (mark == b'~' || !rest.contains(&b'`'));
    is_fence.then_some(Fence { mark, length, is_bare: rest.is_empty() })
}
