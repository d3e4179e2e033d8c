//! Secrets that a person says: "the password is …", "log in as bob / …", "PIN 1234", in several languages.
//!
//! What stands for the secret must look like one: letters with digits or signs, and no name of code.

use memchr::memmem;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use crate::memory::redact::chars::{count, leading, until};
use crate::memory::redact::near::Near;
use crate::memory::redact::rules::words;
use crate::memory::redact::value::{chosen, password as passes, placeholder, random};

/// The most words between what is named and what is said of it: "the password of the new server is now …".
const WORDS: usize = 8;

/// The longest secret that a sentence holds, in bytes.
const LONGEST: usize = 160;

static CONNECTORS: LazyLock<Vec<&str>> = LazyLock::new(|| words("connectors"));
static ADVERBS: LazyLock<Vec<&str>> = LazyLock::new(|| words("adverbs"));
static FILLERS: LazyLock<Vec<&str>> = LazyLock::new(|| words("fillers"));

fn is_in(list: &[&str], word: &[u8]) -> bool {
    list.iter().any(|known| known.as_bytes() == word)
}

/// What stands where a secret would.
struct Said<'a> {
    text: &'a [u8],
    /// Where it begins, from where the search began.
    start: usize,
    quoted: bool,
    /// A word like "is" comes before it.
    connected: bool,
}

pub(super) fn password(near: &mut Near) {
    said(near, |said| {
        let number = (6..=16).contains(&said.text.len()) && said.text.iter().all(u8::is_ascii_digit);
        let made = match said.quoted {
            true => passes(said.text),
            false => said.connected && (number || random(said.text) && !is_path(said.text)),
        };
        (made || chosen(said.text)) && !placeholder(said.text)
    });
}

pub(super) fn token(near: &mut Near) {
    // `token=…` is a name and its value.
    if near.bytes.get(near.end) == Some(&b'=') {
        return;
    }
    said(near, |said| {
        let digits = count(said.text, u8::is_ascii_digit);
        let letters = count(said.text, u8::is_ascii_alphabetic);
        // Names of code are words with few digits.
        let name = digits * 10 < letters && said.text.contains(&b'_');
        said.text.len() >= 16
            && digits > 1
            && !name
            && !is_path(said.text)
            && random(said.text)
            && !placeholder(said.text)
    });
}

pub(super) fn one_time_code(near: &mut Near) {
    number(near, 6..=8);
}

pub(super) fn pin(near: &mut Near) {
    number(near, 4..=8);
}

pub(super) fn card_check(near: &mut Near) {
    number(near, 3..=4);
}

/// "log in as bob / …", "creds: bob:…", "user/pass: bob/…"
pub(super) fn login(near: &mut Near) {
    let behind = near.behind();
    let mut at = 0;
    // Up to the user's name.
    for _ in 0..3 {
        at += blanks(&behind[at..], b" \t:=*`\"'(");
        let next = word(&behind[at..]);
        if !is_in(&["is", "are", "sind", "sont", "son", "as", "lauten", "used", "for"], next) {
            break;
        }
        at += next.len();
    }
    let user = leading(&behind[at..], 65, |byte| byte.is_ascii_alphanumeric() || b"._-@+\\".contains(&byte));
    if !(1..=64).contains(&user) || at == 0 {
        return;
    }
    at += user;
    let gap = blanks(&behind[at..], b" \t`\"'*");
    at += gap;
    let rest = &behind[at..];
    let joins = ["/", ":", "|", ",", "and ", "with ", "und ", "et ", "y ", "e ", "mit ", "avec ", "con "];
    let Some(join) = joins.iter().find(|join| rest.starts_with(join.as_bytes())) else { return };
    if gap == 0 && join.len() > 1 {
        return;
    }
    at += join.len();
    at += blanks(&behind[at..], b" \t`\"'*");
    let names = ["the password ", "password ", "pw ", "pass ", "Passwort ", "password: ", "pw: "];
    if let Some(name) = names.iter().find(|name| behind[at..].starts_with(name.as_bytes())) {
        at += name.len();
        at += blanks(&behind[at..], b" \t`\"'*:");
    }
    if let Some(said) = candidate(&behind[at..], true)
        && chosen(said.text)
        && !placeholder(said.text)
    {
        let start = near.end + at + said.start;
        near.push(start, start + said.text.len());
    }
}

/// Looks along the sentence for what is a secret.
fn said(near: &mut Near, is_secret: impl Fn(&Said) -> bool) {
    let behind = near.behind();
    let (mut at, mut connected) = (0, false);
    // `passwords`, `password_file`, `passwordless`: not the word.
    match behind.first() {
        Some(byte) if byte.is_ascii_alphanumeric() => {
            let ending = word(behind);
            if !is_in(&["en", "et", "n", "t", "a", "do", "ot"], ending) {
                return;
            }
            at += ending.len();
        }
        Some(byte) if b" :=*`\"'\t|,".contains(byte) || *byte >= 0xC2 => {}
        _ => return,
    }
    for _ in 0..WORDS {
        at += blanks(&behind[at..], b" \t*");
        let rest = &behind[at..];
        // A closing quote or bracket of the name itself.
        if at <= 2 && matches!(rest, [b'"' | b'\'' | b'`', b' ' | b':' | b'*', ..]) {
            at += 1;
            continue;
        }
        let next = match joined_sign(rest) {
            0 => word(rest),
            sign => &rest[..sign],
        };
        if is_in(&CONNECTORS, next) || joined_sign(rest) > 0 {
            (at, connected) = (at + next.len(), true);
            continue;
        }
        if connected && is_in(&ADVERBS, next) {
            at += next.len();
            continue;
        }
        if next.is_empty() {
            return;
        }
        if let Some(found) = candidate(rest, connected).filter(&is_secret) {
            let start = near.end + at + found.start;
            near.push(start, start + found.text.len());
            return;
        }
        // Go on over plain words, and stop where the sentence or the clause does.
        let plain = |byte: &u8| byte.is_ascii_alphabetic() || *byte >= 0x80 || matches!(byte, b'\'' | b'-');
        if !next.iter().all(plain) {
            return;
        }
        connected = false;
        at += next.len();
    }
}

/// The length of a sign that needs no space: `:`, `：`, `是`.
fn joined_sign(rest: &[u8]) -> usize {
    let signs = ["：", "是", "为", "為", "は", "는", "은", ":", "="];
    signs.iter().find(|sign| rest.starts_with(sign.as_bytes())).map_or(0, |sign| sign.len())
}

fn blanks(text: &[u8], of: &[u8]) -> usize {
    leading(text, text.len(), |byte| of.contains(&byte))
}

/// Up to white space, or a sign that ends a word.
fn word(text: &[u8]) -> &[u8] {
    until(text, |byte| byte.is_ascii_whitespace() || b",;:=".contains(&byte))
}

/// The word or the quoted text at the start.
fn candidate(rest: &[u8], connected: bool) -> Option<Said<'_>> {
    let quotes = [
        ("\\\"", "\\\""),
        ("\"", "\""),
        ("'", "'"),
        ("`", "`"),
        ("“", "”"),
        ("„", "“"),
        ("«", "»"),
        ("「", "」"),
    ];
    if let Some((open, close)) = quotes.iter().find(|(open, _)| rest.starts_with(open.as_bytes())) {
        let inside = &rest[open.len()..];
        let end = memmem::find(inside, close.as_bytes())?;
        return Some(Said { text: &inside[..end], start: open.len(), quoted: connected, connected });
    }
    let stops = |byte: u8| b" \t\r\n\"`\\<>|,;".contains(&byte) || byte >= 0xE3;
    let rest = until(&rest[..rest.len().min(LONGEST)], stops);
    let start = blanks(rest, b"(*");
    let (mut end, last) = (rest.len(), b".:)]*'?");
    while end > start && last.contains(&rest[end - 1]) {
        end -= 1;
    }
    (end > start).then(|| Said { text: &rest[start..end], start, quoted: false, connected })
}

/// `a/b/c`, `x.y.z`, `A::B`: a place in files or code.
fn is_path(text: &[u8]) -> bool {
    let dotted = text.windows(2).any(|two| two[0] == b'.' && two[1].is_ascii_alphabetic());
    dotted || text.contains(&b'(') || memmem::find(text, b"::").is_some() || text.starts_with(b"/")
}

/// So many digits after "is", "code" and the like.
fn number(near: &mut Near, many: RangeInclusive<usize>) {
    let behind = near.behind();
    if !behind.first().is_some_and(|byte| b" :=*\"'".contains(byte)) {
        return;
    }
    let mut at = 0;
    for _ in 0..4 {
        at += blanks(&behind[at..], b" :=*`\"'\t#");
        let next = word(&behind[at..]);
        if !is_in(&FILLERS, next) {
            break;
        }
        at += next.len();
    }
    let digits = leading(&behind[at..], behind.len(), |byte| byte.is_ascii_digit());
    let ends = match behind[at + digits..] {
        [b'.', next, ..] => !next.is_ascii_alphanumeric(),
        [next, ..] => !next.is_ascii_alphanumeric() && !b"_-/%:".contains(&next),
        [] => true,
    };
    if many.contains(&digits) && ends {
        near.push(near.end + at, near.end + at + digits);
    }
}
