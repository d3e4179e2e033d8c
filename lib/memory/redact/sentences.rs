//! Secrets that a person says: "the password is …", "log in as bob / …", "PIN 1234", in several languages.
//!
//! What stands for the secret must look like one: letters with digits or signs, and no name of code.

use memchr::memmem;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use crate::memory::redact::chars::{count, leading, past, until};
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
struct Candidate<'a> {
    text: &'a [u8],
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
        made || chosen(said.text)
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
        said.text.len() >= 16 && digits > 1 && !name && !is_path(said.text) && random(said.text)
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
    const CONNECTORS: [&str; 9] = ["is", "are", "sind", "sont", "son", "as", "lauten", "used", "for"];
    const JOINS: [&str; 13] =
        ["/", ":", "|", ",", "and ", "with ", "und ", "et ", "y ", "e ", "mit ", "avec ", "con "];
    const NAMES: [&str; 7] =
        ["the password ", "password ", "pw ", "pass ", "Passwort ", "password: ", "pw: "];
    let strip = |text, starts: &[&'static str]| {
        let found = starts.iter().find_map(|start| Some((start.len(), strip_prefix(text, start)?)));
        found.unwrap_or((0, text))
    };
    let mut user = near.behind();
    for _ in 0..3 {
        user = past(user, b" \t:=*`\"'(");
        let next = word(user);
        if !is_in(&CONNECTORS, next) {
            break;
        }
        user = &user[next.len()..];
    }
    let length = leading(user, 65, |byte| byte.is_ascii_alphanumeric() || b"._-@+\\".contains(&byte));
    if !(1..=64).contains(&length) || user.len() == near.behind().len() {
        return;
    }
    let gap = past(&user[length..], b" \t`\"'*");
    let (join, secret) = strip(gap, &JOINS);
    if join == 0 || join > 1 && gap.len() == user.len() - length {
        return;
    }
    let (name, mut secret) = strip(past(secret, b" \t`\"'*"), &NAMES);
    if name > 0 {
        secret = past(secret, b" \t`\"'*:");
    }
    if let Some(said) = candidate(secret, true)
        && chosen(said.text)
        && !placeholder(said.text)
    {
        near.push(said.text);
    }
}

fn strip_prefix<'a>(text: &'a [u8], start: &str) -> Option<&'a [u8]> {
    text.strip_prefix(start.as_bytes())
}

/// Looks along the sentence for what is a secret, and no placeholder.
fn said(near: &mut Near, is_secret: impl Fn(&Candidate) -> bool) {
    let behind = near.behind();
    let mut rest = behind;
    let mut connected = false;
    // `passwords`, `password_file`, `passwordless`: not the word.
    match behind.first() {
        Some(byte) if byte.is_ascii_alphanumeric() => {
            let ending = word(behind);
            if !is_in(&["en", "et", "n", "t", "a", "do", "ot"], ending) {
                return;
            }
            rest = &behind[ending.len()..];
        }
        Some(byte) if b" :=*`\"'\t|,".contains(byte) || *byte >= 0xC2 => {}
        _ => return,
    }
    for _ in 0..WORDS {
        rest = past(rest, b" \t*");
        // A closing quote or bracket of the name itself.
        if behind.len() - rest.len() <= 2 && matches!(rest, [b'"' | b'\'' | b'`', b' ' | b':' | b'*', ..]) {
            rest = &rest[1..];
            continue;
        }
        let sign = joined_sign(rest);
        let next = if sign > 0 { &rest[..sign] } else { word(rest) };
        let connects = sign > 0 || is_in(&CONNECTORS, next);
        if connects || connected && is_in(&ADVERBS, next) {
            (rest, connected) = (&rest[next.len()..], true);
            continue;
        }
        if next.is_empty() {
            return;
        }
        if let Some(found) = candidate(rest, connected)
            && is_secret(&found)
            && !placeholder(found.text)
        {
            return near.push(found.text);
        }
        // Go on over plain words, and stop where the sentence or the clause does.
        let plain = |byte: &u8| byte.is_ascii_alphabetic() || *byte >= 0x80 || matches!(byte, b'\'' | b'-');
        if !next.iter().all(plain) {
            return;
        }
        (rest, connected) = (&rest[next.len()..], false);
    }
}

/// The length of a sign that needs no space: `:`, `：`, `是`.
fn joined_sign(rest: &[u8]) -> usize {
    let signs = ["：", "是", "为", "為", "は", "는", "은", ":", "="];
    signs.iter().find(|sign| rest.starts_with(sign.as_bytes())).map_or(0, |sign| sign.len())
}

/// Up to white space, or a sign that ends a word.
fn word(text: &[u8]) -> &[u8] {
    until(text, |byte| byte.is_ascii_whitespace() || b",;:=".contains(&byte))
}

/// The word or the quoted text at the start.
fn candidate(rest: &[u8], connected: bool) -> Option<Candidate<'_>> {
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
    if let Some((inside, close)) =
        quotes.iter().find_map(|(open, close)| Some((strip_prefix(rest, open)?, close)))
    {
        let end = memmem::find(inside, close.as_bytes())?;
        return Some(Candidate { text: &inside[..end], quoted: connected, connected });
    }
    let stops = |byte: u8| b" \t\r\n\"`\\<>|,;".contains(&byte) || byte >= 0xE3;
    let text = past(until(&rest[..rest.len().min(LONGEST)], stops), b"(*");
    let end = text.iter().rposition(|byte| !b".:)]*'?".contains(byte))?;
    Some(Candidate { text: &text[..=end], quoted: false, connected })
}

/// `a/b/c`, `x.y.z`, `A::B`: a place in files or code.
fn is_path(text: &[u8]) -> bool {
    let dotted = text.windows(2).any(|two| two[0] == b'.' && two[1].is_ascii_alphabetic());
    dotted || text.contains(&b'(') || memmem::find(text, b"::").is_some() || text.starts_with(b"/")
}

/// So many digits after "is", "code" and the like.
fn number(near: &mut Near, many: RangeInclusive<usize>) {
    let mut rest = near.behind();
    if !rest.first().is_some_and(|byte| b" :=*\"'".contains(byte)) {
        return;
    }
    for _ in 0..4 {
        rest = past(rest, b" :=*`\"'\t#");
        let next = word(rest);
        if !is_in(&FILLERS, next) {
            break;
        }
        rest = &rest[next.len()..];
    }
    let (digits, rest) = rest.split_at(leading(rest, rest.len(), |byte| byte.is_ascii_digit()));
    let ends = match rest {
        [b'.', next, ..] => !next.is_ascii_alphanumeric(),
        [next, ..] => !next.is_ascii_alphanumeric() && !b"_-/%:".contains(next),
        [] => true,
    };
    if many.contains(&digits.len()) && ends {
        near.push(digits);
    }
}
