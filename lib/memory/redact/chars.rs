//! Sets of characters, and where words begin and end.

use memchr::memmem;

/// A set of bytes.
pub(super) struct Class([bool; 256]);

/// Letters, digits, `_`.
pub(super) static WORD: Class = Class::of(r"\w");
/// Base64 as URLs have it.
pub(super) static URL: Class = Class::of(r"\w-");
pub(super) static DOTTED: Class = Class::of(r"\w.-");
/// Base64 of either kind.
pub(super) static BASE64: Class = Class::of(r"\w+/=-");
/// The characters that may follow a scheme in a header (RFC 9110).
pub(super) static TOKEN68: Class = Class::of(r"\w.~+/=-");

impl Class {
    /// The set that a regular expression has in brackets.
    pub(super) const fn of(set: &str) -> Class {
        let (set, mut class) = (set.as_bytes(), Class([false; 256]));
        let negated = set.len() > 1 && set[0] == b'^';
        let mut at = negated as usize;
        while at < set.len() {
            let first = set[at];
            let next = if at + 1 < set.len() { set[at + 1] } else { 0 };
            at += 1 + (first == b'\\') as usize;
            class = match (first, next) {
                (b'\\', b'w') => class.with(b'a', b'z').with(b'A', b'Z').with(b'0', b'9').with(b'_', b'_'),
                (b'\\', b's') => class.with(b'\t', b'\n').with(b'\x0c', b'\r').with(b' ', b' '),
                (b'\\', b'n') => class.with(b'\n', b'\n'),
                (b'\\', _) => class.with(next, next),
                (_, b'-') if at + 1 < set.len() => {
                    at += 2;
                    class.with(first, set[at - 1])
                }
                _ => class.with(first, first),
            };
        }
        let mut byte = 0;
        while negated && byte < 256 {
            class.0[byte] = !class.0[byte];
            byte += 1;
        }
        class
    }

    const fn with(mut self, first: u8, last: u8) -> Class {
        let mut byte = first as usize;
        while byte <= last as usize {
            self.0[byte] = true;
            byte += 1;
        }
        self
    }

    pub(super) const fn has(&self, byte: u8) -> bool {
        self.0[byte as usize]
    }
}

/// The last run that was looked for. Its end does not depend on where in it a search begins, so it is found once, however
/// many searches begin inside it: a long line costs no more than its length.
#[derive(Clone, Copy, Default)]
pub(super) struct LastRun {
    start: usize,
    end: usize,
}

impl LastRun {
    /// The end of the run at `start`.
    pub(super) fn end(&mut self, start: usize, find: impl FnOnce() -> usize) -> usize {
        if !(self.start <= start && start < self.end) {
            *self = LastRun { start, end: find() };
        }
        self.end
    }
}

/// How many of the first bytes are such, looking at no more than `most`.
pub(super) fn leading(text: &[u8], most: usize, is: impl Fn(u8) -> bool) -> usize {
    text.iter().take(most).take_while(|byte| is(**byte)).count()
}

/// How many of the last bytes are such, looking at no more than `most`.
pub(super) fn trailing(text: &[u8], most: usize, is: impl Fn(u8) -> bool) -> usize {
    text.iter().rev().take(most).take_while(|byte| is(**byte)).count()
}

/// The text without the last bytes that are such, and these, at most so many.
pub(super) fn split_end(text: &[u8], most: usize, is: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    text.split_at(text.len() - trailing(text, most, is))
}

/// The text up to the first such byte, or all of it.
pub(super) fn until(text: &[u8], stops: impl Fn(u8) -> bool) -> &[u8] {
    &text[..text.iter().position(|byte| stops(*byte)).unwrap_or(text.len())]
}

/// The text behind all of these bytes that it begins with.
pub(super) fn past<'a>(text: &'a [u8], of: &[u8]) -> &'a [u8] {
    &text[leading(text, text.len(), |byte| of.contains(&byte))..]
}

/// The text without these bytes at its ends.
pub(super) fn inner<'a>(text: &'a [u8], of: &[u8]) -> &'a [u8] {
    let text = past(text, of);
    split_end(text, text.len(), |byte| of.contains(&byte)).0
}

/// Does the text hold one of these words?
pub(super) fn holds(text: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| memmem::find(text, word.as_bytes()).is_some())
}

/// Is it one of these words?
pub(super) fn is_in(words: &[&str], word: &[u8]) -> bool {
    words.iter().any(|known| known.as_bytes() == word)
}

/// How often digits and other characters change places.
pub(super) fn turns(text: &[u8]) -> usize {
    text.windows(2).filter(|two| two[0].is_ascii_digit() != two[1].is_ascii_digit()).count()
}

/// The number of such bytes.
pub(super) fn count(text: &[u8], is: impl Fn(&u8) -> bool) -> usize {
    text.iter().filter(|byte| is(byte)).count()
}

/// Can a token begin at `at`, because nothing before it belongs to the same word? An escape is not part of a word
/// although it ends in a letter: `\u003d` (JSON), `%3D` (URLs), `ESC[32m` (terminals).
pub(super) fn begins(bytes: &[u8], at: usize) -> bool {
    match &bytes[..at] {
        [] => true,
        [.., last] if !last.is_ascii_alphanumeric() => true,
        [.., b'\\', b'u', a, b, c, d] if [a, b, c, d].iter().all(|x| x.is_ascii_hexdigit()) => true,
        [.., b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => true,
        [rest @ .., b'm'] => {
            split_end(rest, 12, |byte| byte.is_ascii_digit() || byte == b';').0.ends_with(b"[")
        }
        _ => false,
    }
}

/// Can a token end before `at`?
pub(super) fn ends(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_none_or(|byte| !WORD.has(*byte))
}
