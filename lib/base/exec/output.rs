//! What a command has printed, up to a cap.

use crate::base::exec::error::ExecError;

pub(super) struct Output {
    bytes: Vec<u8>,
    cap: usize,
    /// Whether more than `cap` is cut in the middle, instead of being an error.
    is_cut: bool,
    /// How many bytes were cut.
    left_out: usize,
}

impl Output {
    pub(super) fn new(cap: usize, is_cut: bool) -> Output {
        Output { bytes: Vec::new(), cap, is_cut, left_out: 0 }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<(), ExecError> {
        if !self.is_cut && self.bytes.len() + bytes.len() > self.cap {
            return Err(ExecError::TooMuchOutput(self.cap));
        }
        self.bytes.extend_from_slice(bytes);
        // Not at every read, for then each would move half of it.
        if self.is_cut && self.bytes.len() > 2 * self.cap {
            self.cut();
        }
        Ok(())
    }

    fn cut(&mut self) {
        let surplus = self.bytes.len().saturating_sub(self.cap);
        let start = self.cap / 2;
        self.bytes.drain(start..start + surplus);
        self.left_out += surplus;
    }

    /// All of it, with a mark where it was cut.
    pub(super) fn take(mut self) -> Vec<u8> {
        if self.is_cut && self.bytes.len() > self.cap {
            self.cut();
        }
        let mut bytes = self.bytes;
        if self.left_out > 0 {
            let mark = format!("\n[… {} bytes left out …]\n", self.left_out);
            let at = self.cap / 2;
            bytes.splice(at..at, mark.into_bytes());
        }
        bytes
    }
}
