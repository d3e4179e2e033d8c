//! Sets of characters, and where words begin and end.

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
        let (set, mut class, mut at) = (set.as_bytes(), Class([false; 256]), 0);
        let negated = set.len() > 1 && set[0] == b'^';
        if negated {
            at = 1;
        }
        while at < set.len() {
            let first = set[at];
            let next = if at + 1 < set.len() { set[at + 1] } else { 0 };
            class = match (first, next) {
                (b'\\', b'w') => class.with(b'a', b'z').with(b'A', b'Z').with(b'0', b'9').with(b'_', b'_'),
                (b'\\', b's') => class.with(b'\t', b'\n').with(b'\x0c', b'\r').with(b' ', b' '),
                (b'\\', b'n') => class.with(b'\n', b'\n'),
                (b'\\', _) => class.with(next, next),
                (_, b'-') if at + 2 < set.len() => class.with(first, set[at + 2]),
                _ => class.with(first, first),
            };
            at += match (first, next) {
                (b'\\', _) => 2,
                (_, b'-') if at + 2 < set.len() => 3,
                _ => 1,
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

/// How many of the first bytes are such, looking at no more than `most`.
pub(super) fn leading(text: &[u8], most: usize, is: impl Fn(u8) -> bool) -> usize {
    text.iter().take(most).take_while(|byte| is(**byte)).count()
}

/// How many of the last bytes are such, looking at no more than `most`.
pub(super) fn trailing(text: &[u8], most: usize, is: impl Fn(u8) -> bool) -> usize {
    text.iter().rev().take(most).take_while(|byte| is(**byte)).count()
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
    &text[..text.len() - trailing(text, text.len(), |byte| of.contains(&byte))]
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
            let digits = trailing(rest, 12, |byte| byte.is_ascii_digit() || byte == b';');
            rest[..rest.len() - digits].ends_with(b"[")
        }
        _ => false,
    }
}

/// Can a token end before `at`?
pub(super) fn ends(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_none_or(|byte| !WORD.has(*byte))
}
