//! Secrets that a person says: "the password is …", "log in as bob / …", "PIN 1234", in several languages.
//!
//! What stands for the secret must look like one: letters with digits or signs, and no name of code.

use crate::memory::redact::near::Near;
use crate::memory::redact::value::{chosen, password as passes, placeholder, random};

/// The most words between what is named and what is said of it: "the password of the new server is now …".
const WORDS: usize = 8;

/// The longest secret that a sentence holds, in bytes.
const LONGEST: usize = 160;

/// Words and signs after which the secret comes.
const CONNECTORS: &[&str] = &[
    "is", "was", "be", "are", "to", "as", "equals", "becomes", "lautet", "ist", "war", "est", "es", "é", "è",
    "era", "jest", "är", "er", "on", "je", "это", "este", "değil", "是", "为", "為", "は", "는", "은", "-",
    "–", "—", "->", "=>", "→", "=", ":", "|",
];

/// Words that may stand between a connector and the secret.
const ADVERBS: &[&str] = &[
    "now", "set", "changed", "still", "currently", "just", "simply", "again", "jetzt", "nun", "auf", "to",
    "reset", "maintenant",
];

pub(super) fn password(near: &mut Near) {
    let made = |said: &Said| match said.quoted {
        true => (passes(said.text) || chosen(said.text)) && !placeholder(said.text),
        false => {
            let number = (6..=16).contains(&said.text.len()) && said.text.iter().all(u8::is_ascii_digit);
            (chosen(said.text) || said.connected && (number || random(said.text) && !is_path(said.text)))
                && !placeholder(said.text)
        }
    };
    if let Some((start, end)) = said(near, made) {
        near.push(start, end, "password");
    }
}

pub(super) fn token(near: &mut Near) {
    let made = |said: &Said| {
        let digits = said.text.iter().filter(|byte| byte.is_ascii_digit()).count();
        let letters = said.text.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
        // Names of code are words with few digits.
        let name = digits * 10 < letters && said.text.contains(&b'_');
        said.text.len() >= 16
            && digits > 1
            && !name
            && !is_path(said.text)
            && random(said.text)
            && !placeholder(said.text)
    };
    // `token=…` is a name and its value.
    if near.bytes.get(near.end) == Some(&b'=') {
        return;
    }
    if let Some((start, end)) = said(near, made) {
        near.push(start, end, "token");
    }
}

pub(super) fn one_time_code(near: &mut Near) {
    number(near, 6..=8, "one-time-code");
}

pub(super) fn pin(near: &mut Near) {
    number(near, 4..=8, "pin");
}

pub(super) fn card_check(near: &mut Near) {
    number(near, 3..=4, "card");
}

/// "log in as bob / …", "creds: bob:…", "user/pass: bob/…"
pub(super) fn login(near: &mut Near) {
    let behind = near.behind();
    let mut at = 0;
    // Up to the user's name.
    for _ in 0..3 {
        at += leading(&behind[at..], b" \t:=*`\"'(");
        let word = word(&behind[at..]);
        if !["is", "are", "sind", "sont", "son", "as", "lauten", "used", "for"]
            .iter()
            .any(|plain| word == plain.as_bytes())
        {
            break;
        }
        at += word.len();
    }
    let user = &behind[at..];
    let many =
        user.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"._-@+\\".contains(byte)).count();
    if !(1..=64).contains(&many) || at == 0 {
        return;
    }
    at += many;
    let gap = leading(&behind[at..], b" \t`\"'*");
    at += gap;
    let rest = &behind[at..];
    let joins = ["and ", "with ", "und ", "et ", "y ", "e ", "mit ", "avec ", "con ", "/", ":", "|", ","];
    let Some(join) = joins.iter().find(|join| rest.starts_with(join.as_bytes())) else { return };
    if gap == 0 && !matches!(*join, "/" | ":" | "|" | ",") {
        return;
    }
    at += join.len();
    at += leading(&behind[at..], b" \t`\"'*");
    for name in ["the password ", "password ", "pw ", "pass ", "Passwort ", "password: ", "pw: "] {
        if behind[at..].starts_with(name.as_bytes()) {
            at += name.len();
            at += leading(&behind[at..], b" \t`\"'*:");
            break;
        }
    }
    let Some(said) = candidate(&behind[at..], true) else { return };
    if chosen(said.text) && !placeholder(said.text) {
        let start = near.end + at + said.start;
        near.push(start, start + said.text.len(), "password");
    }
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

/// Looks along the sentence for what `made` accepts.
fn said(near: &Near, made: impl Fn(&Said) -> bool) -> Option<(usize, usize)> {
    let behind = near.behind();
    let (mut at, mut connected) = (0, false);
    // `passwords`, `password_file`, `passwordless`: not the word.
    match behind.first()? {
        byte if byte.is_ascii_alphanumeric() => {
            let ending = word(behind);
            if !["en", "et", "n", "t", "a", "do", "ot"].iter().any(|known| ending == known.as_bytes()) {
                return None;
            }
            at += ending.len();
        }
        b' ' | b':' | b'=' | b'*' | b'`' | b'"' | b'\'' | b'\t' | b'|' | b',' => {}
        byte if *byte >= 0xC2 => {}
        _ => return None,
    }
    for _ in 0..WORDS {
        at += leading(&behind[at..], b" \t*");
        // A closing quote or bracket of the name itself.
        if at <= 2
            && matches!(behind.get(at), Some(b'"' | b'\'' | b'`'))
            && matches!(behind.get(at + 1), Some(b' ' | b':' | b'*'))
        {
            at += 1;
            continue;
        }
        let rest = &behind[at..];
        if let Some(sign) = joined_sign(rest) {
            (at, connected) = (at + sign, true);
            continue;
        }
        let next = word(rest);
        if next.is_empty() {
            return None;
        }
        if CONNECTORS.iter().any(|known| next == known.as_bytes()) {
            (at, connected) = (at + next.len(), true);
            continue;
        }
        if connected && ADVERBS.iter().any(|known| next == known.as_bytes()) {
            at += next.len();
            continue;
        }
        if let Some(found) = candidate(rest, connected).filter(&made) {
            let start = near.end + at + found.start;
            return Some((start, start + found.text.len()));
        }
        // Go on over plain words, and stop where the sentence or the clause does.
        let plain = |byte: &u8| byte.is_ascii_alphabetic() || *byte >= 0x80 || matches!(byte, b'\'' | b'-');
        if !next.iter().all(plain) {
            return None;
        }
        connected = false;
        at += next.len();
    }
    None
}

/// The length of a sign that needs no space: `:`, `：`, `是`.
fn joined_sign(rest: &[u8]) -> Option<usize> {
    ["：", "是", "为", "為", "は", "는", "은", ":", "="]
        .iter()
        .find(|sign| rest.starts_with(sign.as_bytes()))
        .map(|sign| sign.len())
}

fn leading(text: &[u8], of: &[u8]) -> usize {
    text.iter().take_while(|byte| of.contains(byte)).count()
}

/// Up to white space, or a sign that ends a word.
fn word(text: &[u8]) -> &[u8] {
    &text[..text
        .iter()
        .position(|byte| byte.is_ascii_whitespace() || b",;:=".contains(byte))
        .unwrap_or(text.len())]
}

/// The word or the quoted text at the start.
fn candidate(rest: &[u8], connected: bool) -> Option<Said<'_>> {
    let quotes: [(&str, &str); 8] = [
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
        let end = memchr::memmem::find(inside, close.as_bytes())?;
        return Some(Said { text: &inside[..end], start: open.len(), quoted: connected, connected });
    }
    let stop = |byte: &u8| {
        matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'`' | b'\\' | b'<' | b'>' | b'|' | b',' | b';')
            || *byte >= 0xE3
    };
    let rest = &rest[..rest.len().min(LONGEST)];
    let mut end = rest.iter().position(stop).unwrap_or(rest.len());
    let start = leading(&rest[..end], b"(*");
    while end > start && b".:)]*'?".contains(&rest[end - 1]) {
        end -= 1;
    }
    (end > start).then(|| Said { text: &rest[start..end], start, quoted: false, connected })
}

/// `a/b/c`, `x.y.z`, `A::B`: a place in files or code.
fn is_path(text: &[u8]) -> bool {
    let dots = text.windows(2).filter(|two| two[0] == b'.' && two[1].is_ascii_alphabetic()).count();
    text.contains(&b'(') || text.windows(2).any(|two| two == b"::") || dots > 0 || text.starts_with(b"/")
}

/// So many digits after "is", "code" and the like.
fn number(near: &mut Near, many: std::ops::RangeInclusive<usize>, kind: &'static str) {
    let behind = near.behind();
    let mut at = 0;
    if !matches!(behind.first(), Some(b' ' | b':' | b'=' | b'*' | b'"' | b'\'')) {
        return;
    }
    for _ in 0..4 {
        at += leading(&behind[at..], b" :=*`\"'\t#");
        let next = word(&behind[at..]);
        let passed = [
            "is", "ist", "lautet", "est", "es", "code", "number", "Code", "Nummer", "é", "è", "for", "to",
            "now", "the", "my", "card", "SIM", "phone", "app",
        ];
        if !passed.iter().any(|known| next == known.as_bytes()) {
            break;
        }
        at += next.len();
    }
    let digits = behind[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let after = behind.get(at + digits);
    let ends = after.is_none_or(|byte| !byte.is_ascii_alphanumeric() && !b"_-/%:".contains(byte))
        && !(after == Some(&b'.') && behind.get(at + digits + 1).is_some_and(u8::is_ascii_alphanumeric));
    if many.contains(&digits) && ends && at > 0 {
        let start = near.end + at;
        near.push(start, start + digits, kind);
    }
}
