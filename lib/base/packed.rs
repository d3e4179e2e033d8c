//! A compact binary form for files of ours that can be made anew: numbers of variable length, and text.

use std::ops::Range;

/// Appends a number: seven bits a byte, the lowest first.
pub fn put_number(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Appends a number that may be negative.
pub fn put_signed(to: &mut Vec<u8>, number: i64) {
    put_number(to, (number << 1 ^ number >> 63).cast_unsigned());
}

/// Appends bytes and how many they are.
pub fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_number(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// Reads what was put, in the same order. `None` if it is something else.
#[derive(Debug, Clone, Copy)]
pub struct Unpack<'a>(pub &'a [u8]);

impl<'a> Unpack<'a> {
    #[inline]
    pub fn number(&mut self) -> Option<u64> {
        let (&first, rest) = self.0.split_first()?;
        if first < 0x80 {
            self.0 = rest;
            return Some(u64::from(first));
        }
        let mut number = u64::from(first & 0x7f);
        let mut shift = 7;
        for (&byte, at) in rest.iter().zip(1..) {
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                self.0 = &rest[at..];
                return Some(number);
            }
            shift += 7;
        }
        None
    }

    pub fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    pub fn size(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.size()?;
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Where the next bytes stand in `whole`, which is being read.
    pub fn place(&mut self, whole: &[u8]) -> Option<Range<usize>> {
        let length = self.bytes()?.len();
        let end = whole.len().checked_sub(self.0.len())?;
        Some(end.checked_sub(length)?..end)
    }

    pub fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// A number, and so many items.
    pub fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        // Each item takes a byte at least.
        let length = self.size().filter(|length| *length <= self.0.len())?;
        let mut items = Vec::with_capacity(length);
        for _ in 0..length {
            items.push(item(self)?);
        }
        Some(items)
    }
}

/// A sum that differs if a disk has spoilt the bytes. No protection against people.
pub fn checksum(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let word = |bytes: &[u8]| {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(whole)
    };
    // Four sums at a time: each step of one has to wait for the last.
    let mut sums = [1, 2, 3, 4];
    let mut blocks = bytes.chunks_exact(32);
    for block in &mut blocks {
        for (sum, part) in sums.iter_mut().zip(block.chunks_exact(8)) {
            *sum = mix(*sum, word(part));
        }
    }
    for part in blocks.remainder().chunks(8) {
        sums[0] = mix(sums[0], word(part));
    }
    sums.into_iter().fold(mix(FACTOR, bytes.len() as u64), mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_read() {
        let numbers = [0, 1, 127, 128, 300, 1 << 35, u64::MAX];
        let signed = [0, -1, 1, 1_771_000_000_000, i64::MIN, i64::MAX];
        let mut bytes = Vec::new();
        numbers.iter().for_each(|number| put_number(&mut bytes, *number));
        signed.iter().for_each(|number| put_signed(&mut bytes, *number));
        put_bytes(&mut bytes, "日本".as_bytes());
        let mut from = Unpack(&bytes);
        assert_eq!(numbers.map(|_| from.number().unwrap()), numbers);
        assert_eq!(signed.map(|_| from.signed().unwrap()), signed);
        assert_eq!((from.text(), from.number()), (Some("日本"), None));
    }

    #[test]
    fn other_bytes_are_no_panic() {
        assert_eq!(Unpack(&[0xff; 30]).number(), None);
        assert_eq!(Unpack(&[0x80]).number(), None);
        assert_eq!(Unpack(&[200, 200, 3, 1]).bytes(), None);
        assert_eq!(Unpack(&[1, 0xff]).text(), None);
        assert_eq!(Unpack(&[2, 7, 7]).list(Unpack::number), Some(vec![7, 7]));
        assert_eq!(Unpack(&[3, 7, 7]).list(Unpack::number), None);
        assert_eq!(Unpack(&[2, 7, 0x80]).list(Unpack::number), None);
    }

    #[test]
    fn every_bit_counts_in_a_checksum() {
        let bytes: Vec<u8> = (0..100).collect();
        let sum = checksum(&bytes);
        for bit in 0..800 {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(checksum(&other), sum, "bit {bit}");
        }
        assert_ne!(checksum(&bytes[..99]), sum);
        assert_ne!(checksum(&[0; 31]), checksum(&[0; 32]));
    }
}
