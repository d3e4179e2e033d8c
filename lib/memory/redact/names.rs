//! Names for secrets: the words they end in, what their values look like, and how they are marked.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::memory::redact::chars::{BASE64, DOTTED, WORD, count, holds, split_end, trailing, turns, until};
use crate::memory::redact::near::{Certainty, Span};
use crate::memory::redact::rules::{section, words};
use crate::memory::redact::value::{
    chosen, dice, mixed, password, phrase, placeholder, random, varied, version,
};

/// The longest name, in bytes.
pub(super) const NAME: usize = 64;
/// How much of a name says whether it is one for secrets, in bytes.
const LAST_WORDS: usize = 48;
/// The longest value, in bytes.
pub(super) const VALUE: usize = 16 * 1024;

/// What the rules say of names.
pub(super) struct NameRules {
    /// The last words of the names, in the order of the rules, by their last two letters: a word, its kind, and what the
    /// value looks like.
    last_words: HashMap<[u8; 2], Vec<[&'static str; 3]>>,
    endings: Vec<&'static str>,
    harmless: Vec<&'static str>,
    /// Kind and parts of the names.
    vendors: Vec<(&'static str, Vec<&'static str>)>,
    /// The last three letters of all words and endings, as one bit for each third letter.
    last_three: [u32; 26 * 26],
}

pub(super) static NAMES: LazyLock<NameRules> = LazyLock::new(NameRules::read);

/// A name for a secret.
pub(super) struct SecretName<'a> {
    pub(super) text: &'a [u8],
    pub(super) kind: &'static str,
    rule: &'static str,
}

impl NameRules {
    fn read() -> NameRules {
        let vendor = |line: &'static str| {
            let mut parts = line.split_whitespace();
            Some((parts.next()?, parts.collect()))
        };
        let mut names = NameRules {
            last_words: HashMap::new(),
            endings: words("endings"),
            harmless: words("harmless"),
            vendors: section("vendors").filter_map(vendor).collect(),
            last_three: [0; 26 * 26],
        };
        for line in section("names") {
            let parts: Vec<&str> = line.split_whitespace().collect();
            for word in &parts[2..] {
                let end = word.as_bytes().last_chunk().copied().unwrap_or_default();
                names.last_words.entry(end).or_default().push([word, parts[0], parts[1]]);
            }
        }
        for word in names.last_words.values().flatten().map(|[word, ..]| word).chain(&names.endings) {
            if let [.., a, b, c] = word.as_bytes()
                && let Some((first_two, third)) = place(*a, *b, *c)
            {
                names.last_three[first_two] |= 1 << third;
            }
        }
        names
    }

    /// The name at the end of `before`, if it is one for secrets. In prose there may be spaces between its words.
    pub(super) fn name<'a>(&self, before: &'a [u8], prose: bool) -> Option<SecretName<'a>> {
        if !self.may_end(before) {
            return None;
        }
        let is_part = |byte: &u8| DOTTED.has(*byte) || prose && *byte == b' ';
        let near = before.iter().rev().take(LAST_WORDS).take_while(|byte| is_part(byte));
        let (mut letters, mut start) = ([0; LAST_WORDS], LAST_WORDS);
        for byte in near.filter(|byte| byte.is_ascii_alphanumeric()) {
            start -= 1;
            letters[start] = byte.to_ascii_lowercase();
        }
        let flat = &letters[start..];
        let flat = if flat.ends_with(b"b64") { flat } else { &flat[..flat.len() - numbering(flat)] };
        let flat =
            self.endings.iter().find_map(|ending| flat.strip_suffix(ending.as_bytes())).unwrap_or(flat);
        let ends = |word: &str| flat.ends_with(word.as_bytes());
        let words = self.last_words.get(flat.last_chunk::<2>()?)?;
        let (_, text) = split_end(before, NAME, |byte| is_part(&byte));
        let is_last = |word: &str| ends(word) && (word.len() > 5 || alone(text, word));
        let [_, kind, rule] = words.iter().find(|[word, ..]| is_last(word))?;
        (!self.harmless.iter().any(|word| ends(word))).then_some(SecretName { text, kind, rule })
    }

    /// Can a name that ends here be one for secrets? The last three letters rule out nearly all others.
    #[inline(always)]
    pub(super) fn may_end(&self, before: &[u8]) -> bool {
        // Most words end in letters, and most bytes of a note are in words.
        match before {
            [.., b'p' | b'P', b'w' | b'W'] => true,
            [.., a, b, c] if c.is_ascii_alphabetic() => self.may_be_last(*a, *b, *c),
            _ => self.may_end_numbered(before),
        }
    }

    fn may_end_numbered(&self, before: &[u8]) -> bool {
        let unnumbered = &before[..before.len() - numbering(before)];
        match unnumbered {
            _ if unnumbered.len() == before.len() => false,
            [.., b'_' | b'-', b'b' | b'B'] => true,
            [.., a, b, c, b'_' | b'-' | b' '] | [.., a, b, c] => self.may_be_last(*a, *b, *c),
            _ => false,
        }
    }

    #[inline(always)]
    fn may_be_last(&self, a: u8, b: u8, c: u8) -> bool {
        place(a, b, c).is_some_and(|(first_two, third)| self.last_three[first_two] >> third & 1 == 1)
    }
}

#[inline(always)]
fn place(a: u8, b: u8, c: u8) -> Option<(usize, u32)> {
    let letter = |byte: u8| (byte | 0x20).wrapping_sub(b'a');
    let (a, b, c) = (letter(a), letter(b), letter(c));
    (a < 26 && b < 26 && c < 26).then_some((usize::from(a) * 26 + usize::from(b), u32::from(c)))
}

/// The number of digits at the end of a name that only number it.
fn numbering(name: &[u8]) -> usize {
    trailing(name, 3, |byte| byte.is_ascii_digit())
}

/// Is `word` the whole last word of the name, as in `dbPass` or `DB_PASS`?
fn alone(text: &[u8], word: &str) -> bool {
    let Some(at) = text.len().checked_sub(word.len()) else { return false };
    let whole = text[..at].last().is_none_or(|before| {
        !before.is_ascii_alphanumeric() || before.is_ascii_lowercase() && text[at].is_ascii_uppercase()
    });
    // `FTPPASS`
    let is_shouted = matches!(word, "pass" | "pwd") && !text.iter().any(u8::is_ascii_lowercase);
    word == "token" || (whole || is_shouted) && text[at..].eq_ignore_ascii_case(word.as_bytes())
}

impl SecretName<'_> {
    /// `readable`: the value is a literal and not code, so that a short password counts.
    pub(super) fn accepts(&self, value: &[u8], readable: bool) -> bool {
        if self.rule == "forty" && value.len() == 40 {
            return varied(value) && value.iter().all(|byte| BASE64.has(*byte));
        }
        // A person may have made up a password of numbers and words, but none with an epoch.
        if value.len() > VALUE || number(value) || is_path(value) || value.contains(&b':') && version(value) {
            return false;
        }
        // Salts have blanks.
        let value = if value.len() >= 40 { until(value, |byte| byte == b' ') } else { value };
        // Whether it is a placeholder costs the most, so it is asked last.
        let is_secret = match self.rule {
            "password" => {
                random(value)
                    || readable
                        && (password(value) || dice(value) || phrase(value) && self.may_be_blank(value))
            }
            "mixed" => mixed(value),
            "secret" if readable && (chosen(value) || dice(value)) => true,
            _ => random(value) || readable && value.len() >= 8 && short_token(value),
        };
        is_secret && !placeholder(value)
    }

    /// A message that an interface shows is no passphrase, although its key has such a name.
    fn may_be_blank(&self, value: &[u8]) -> bool {
        let words = value.split(|byte| *byte == b' ').count();
        let is_message = words < 3 || value[0].is_ascii_uppercase();
        words == 1 || self.in_capitals() && (!is_message || value.iter().any(u8::is_ascii_digit))
    }

    pub(super) fn span(&self, bytes: &[u8], secret: &[u8]) -> Span {
        Span::of(bytes, secret, self.kind(), Certainty::Named)
    }

    pub(super) fn in_capitals(&self) -> bool {
        !self.text.iter().any(u8::is_ascii_lowercase)
    }

    /// How the secret is marked: by its vendor, if the name has one. Asked only where there is a secret.
    pub(super) fn kind(&self) -> &'static str {
        if !matches!(self.rule, "token" | "secret" | "mixed") || self.kind == "azure-key" {
            return self.kind;
        }
        let letters = self.text.iter().filter(|byte| byte.is_ascii_alphanumeric());
        let name: Vec<u8> = letters.map(u8::to_ascii_lowercase).collect();
        let vendor = NAMES.vendors.iter().find(|(_, parts)| holds(&name, parts));
        vendor.map_or(self.kind, |(kind, _)| kind)
    }
}

/// `/etc/passwd:ro`, `core::fmt::Debug`
fn is_path(value: &[u8]) -> bool {
    let mut parts = value.split(|byte| *byte == b'/');
    let is_absolute = parts.next().is_some_and(<[u8]>::is_empty)
        && parts.next().is_some_and(|first| first.iter().all(u8::is_ascii_lowercase))
        && parts.next().is_some();
    is_absolute || holds(value, &["::"]) && value.iter().all(|byte| WORD.has(*byte) || *byte == b':')
}

/// `0x8007_0057`, `-2147024809i32`, `1.2.840.113549`
fn number(value: &[u8]) -> bool {
    !value.iter().any(u8::is_ascii_alphabetic)
        || value.len() < 20 && (value.starts_with(b"0x") || value.starts_with(b"-"))
}

/// A short token: alternating letters and digits.
fn short_token(value: &[u8]) -> bool {
    let digits = count(value, u8::is_ascii_digit);
    value.iter().all(u8::is_ascii_graphic) && digits >= 2 && turns(value) >= 3 && digits < value.len() - 2
}
