//! What finders report, and what they share: runs of characters and word boundaries.

/// The position of a secret in the text, in bytes. If two overlap, both are replaced by one mark, with the kind of
/// the more certain one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: &'static str,
    pub(super) certainty: Certainty,
}

/// How certain a finder is, the most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Certainty {
    /// A key block, which names itself.
    Block,
    /// It has the prefix of one issuer's tokens.
    Token,
    /// It is at a place for secrets: in a URL, after `Bearer`.
    Place,
    /// It has a name for secrets.
    Named,
    /// It matches one of the user's patterns.
    Custom,
}

/// Sets of ASCII characters that tokens are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CharClass {
    Digit,
    /// `A`–`Z` and digits.
    UpperDigit,
    Hex,
    Alnum,
    /// Letters, digits, `_`.
    Word,
    /// Letters, digits, `_`, `-`: base64 as URLs have it.
    Url,
    /// [`CharClass::Url`] and `.`.
    Dotted,
    /// Letters, digits, `+`, `/`, `=`, `_`, `-`: base64 of either kind.
    Base64,
    /// [`CharClass::Url`], `.`, `~`: Azure's client secrets.
    Tilde,
    /// The characters that may follow a scheme in a header (RFC 9110).
    Token68,
    /// Letters, digits, `$`.
    Dollar,
    /// [`CharClass::Url`] and `%`: a cookie's value.
    Percent,
    /// [`CharClass::Url`] and `/`, `@`: the rest of a webhook's path.
    Path,
    Dot,
    Dash,
    Underscore,
    Colon,
    Slash,
    Bang,
    DollarSign,
    /// Hexadecimal digits and `-`: a UUID.
    HexDash,
    /// The base64 of `crypt(3)`: letters, digits, `.`, `/`.
    Crypt,
    /// What follows the name in a password hash: [`CharClass::Base64`], `$`, `,`, `=`, `.`.
    Phc,
}

/// The number of classes.
const CLASSES: usize = CharClass::Phc as usize + 1;

impl CharClass {
    pub(super) const fn has(self, byte: u8) -> bool {
        MEMBERS[byte as usize] & (1 << self as u32) != 0
    }
}

/// For each byte, one bit per class that contains it.
static MEMBERS: [u32; 256] = {
    let mut table = [0u32; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        let alnum = byte.is_ascii_alphanumeric();
        let word = alnum || byte == b'_';
        let url = word || byte == b'-';
        let has = [
            (CharClass::Digit, byte.is_ascii_digit()),
            (CharClass::UpperDigit, byte.is_ascii_uppercase() || byte.is_ascii_digit()),
            (CharClass::Hex, byte.is_ascii_hexdigit()),
            (CharClass::Alnum, alnum),
            (CharClass::Word, word),
            (CharClass::Url, url),
            (CharClass::Dotted, url || byte == b'.'),
            (CharClass::Base64, url || matches!(byte, b'+' | b'/' | b'=')),
            (CharClass::Tilde, url || matches!(byte, b'.' | b'~')),
            (CharClass::Token68, url || b'~' == byte || matches!(byte, b'.' | b'+' | b'/' | b'=')),
            (CharClass::Dollar, alnum || byte == b'$'),
            (CharClass::Percent, url || byte == b'%'),
            (CharClass::Path, url || matches!(byte, b'/' | b'@')),
            (CharClass::Dot, byte == b'.'),
            (CharClass::Dash, byte == b'-'),
            (CharClass::Underscore, byte == b'_'),
            (CharClass::Colon, byte == b':'),
            (CharClass::Slash, byte == b'/'),
            (CharClass::Bang, byte == b'!'),
            (CharClass::DollarSign, byte == b'$'),
            (CharClass::HexDash, byte.is_ascii_hexdigit() || byte == b'-'),
            (CharClass::Crypt, alnum || matches!(byte, b'.' | b'/')),
            (CharClass::Phc, url || matches!(byte, b'+' | b'/' | b'=' | b'$' | b',' | b'.')),
        ];
        let mut class = 0;
        while class < has.len() {
            if has[class].1 {
                table[at] |= 1 << has[class].0 as u32;
            }
            class += 1;
        }
        at += 1;
    }
    table
};

/// The text, and the last run of each class. The end of a run is searched once, however many candidates begin inside
/// it, so that a long line of token prefixes costs no more than its length.
pub(super) struct Runs<'a> {
    pub(super) bytes: &'a [u8],
    ends: [(usize, usize); CLASSES],
}

impl<'a> Runs<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Runs<'a> {
        Runs { bytes, ends: [(0, 0); CLASSES] }
    }

    /// The end of the run of `class` that begins at `start`; `start` itself if there is none.
    pub(super) fn end(&mut self, class: CharClass, start: usize) -> usize {
        let (from, to) = self.ends[class as usize];
        if from <= start && start < to {
            return to;
        }
        let rest = &self.bytes[start.min(self.bytes.len())..];
        let end = start + rest.iter().position(|byte| !class.has(*byte)).unwrap_or(rest.len());
        self.ends[class as usize] = (start, end);
        end
    }
}

/// Can a token begin at `at`, because nothing before it belongs to the same word? An escape is not part of a word
/// although it ends in a letter: `\n` and `\u003d` (JSON), `%3D` (URLs), `ESC[32m` (terminals).
pub(super) fn begins(bytes: &[u8], at: usize) -> bool {
    let before = &bytes[..at];
    match before {
        [] => true,
        [.., last] if !last.is_ascii_alphanumeric() => true,
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b'\\', b'u', a, b, c, d] if [a, b, c, d].iter().all(|x| x.is_ascii_hexdigit()) => true,
        [.., b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => true,
        [rest @ .., b'm'] => {
            let tail = &rest[rest.len().saturating_sub(12)..];
            let digits = tail.iter().rev().take_while(|x| x.is_ascii_digit() || **x == b';').count();
            tail[..tail.len() - digits].ends_with(b"[")
        }
        _ => false,
    }
}

/// Can a token end before `at`?
pub(super) fn ends(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_none_or(|byte| !CharClass::Word.has(*byte))
}
