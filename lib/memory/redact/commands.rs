//! Secrets in command lines: `mysql -pPASSWORD`, `echo PASSWORD | sudo -S`, and in calls of code that take them by
//! position.

use memchr::{memchr, memmem, memrchr};

use crate::memory::redact::chars::{BASE64, holds, inner, until};
use crate::memory::redact::names::NAMES;
use crate::memory::redact::near::{Near, from, place};
use crate::memory::redact::value::{chosen, dice, flagged, made, random, strong};
use crate::memory::redact::views::decoded;

/// How much of a command is read: bytes and words.
const LONGEST: usize = 480;
const WORDS: usize = 48;

/// The words of a command without their quotes, split as a shell does, as far as this matters here.
pub(super) fn words(line: &[u8]) -> Vec<&[u8]> {
    let (mut words, mut rest) = (Vec::new(), line);
    while words.len() < WORDS {
        rest = match rest {
            // Also a line that goes on in the next.
            [b' ' | b'\t' | b'\r', rest @ ..] | [b'\\', b'\n' | b'\r', rest @ ..] => rest,
            [] | [b'|' | b';' | b'&' | b'\n' | b'`' | b')' | b'<' | b'>', ..] => break,
            [quote @ (b'\'' | b'"'), inside @ ..] => {
                let Some(end) = memchr(*quote, inside) else { break };
                words.push(&inside[..end]);
                &inside[end + 1..]
            }
            _ => {
                words.push(until(rest, |byte| byte.is_ascii_whitespace() || b"|;&'\"`<>".contains(&byte)));
                &rest[words[words.len() - 1].len()..]
            }
        };
    }
    words
}

/// The command's line, with those that continue it.
pub(super) fn line<'a>(near: &Near<'a, '_>) -> &'a [u8] {
    let line = from(near.bytes, near.at, LONGEST);
    let mut ends = memchr::memchr_iter(b'\n', line);
    let end = ends.find(|at| !matches!(line[..*at], [.., b'\\'] | [.., b'\\', b'\r']));
    &line[..end.unwrap_or(line.len())]
}

/// A program of the rules.
pub(super) fn command(near: &mut Near) {
    let line = line(near);
    // Most commands have not the flag of the rule.
    let flag = near.usage.split(' ').find(|word| !word.starts_with(['+', '_'])).unwrap_or_default();
    if !holds(line, &[flag.trim_end_matches('*')]) {
        return;
    }
    let called = near.word().split(|byte| *byte == b' ').count() - 1;
    let Some(text) = given(&words(line), called, near.usage) else { return };
    let is_secret = match near.kind {
        "cookie" => text.len() >= 12 && random(text),
        // Behind a user's name, it may begin as flags and variables do.
        _ if near.bytes[place(near.bytes, text) - 1] == b':' && !text.starts_with(b"/") => {
            made(text) || flagged(text)
        }
        _ => flagged(text),
    };
    if is_secret {
        near.push(text);
    }
}

/// The secret, as the rules' usage says. The name of the program is so many words.
fn given<'a>(words: &[&'a [u8]], called: usize, usage: &str) -> Option<&'a [u8]> {
    let mut usage: Vec<&str> = usage.split(' ').collect();
    if let Some(needed) = usage[0].strip_prefix('+') {
        words.iter().find(|word| has(word, needed))?;
        usage.remove(0);
    }
    let flag = if usage[0].starts_with('_') { "" } else { usage.remove(0) };
    let name = flag.trim_end_matches('*').as_bytes();
    let at = match flag {
        "" => called - 1,
        _ => words.iter().position(|word| word.starts_with(name))?,
    };
    let value = &words.get(at)?[name.len()..];
    match usage.last() {
        Some(behind) if *behind != "*" => {
            let sign = behind.as_bytes()[1];
            let mut next = words[at + 1..].iter().take(2).copied();
            secret_of(value, sign, sign == b':')
                .or_else(|| next.find_map(|word| secret_of(word, sign, false)))
        }
        _ if flag.is_empty() || value.is_empty() || flag.ends_with(':') => {
            words.get(at + usage.len().max(1)).copied()
        }
        _ => value.strip_prefix(b"=").or_else(|| flag.ends_with('*').then_some(value)),
    }
}

/// `-b` is also in `-bc`.
fn has(word: &[u8], needed: &str) -> bool {
    match (needed.strip_prefix('-'), word) {
        (Some(_), [b'-', b'-', ..]) => false,
        (Some(letter), [b'-', letters @ ..]) => holds(letters, &[letter]),
        _ => word == needed.as_bytes(),
    }
}

/// What is behind the sign in a word: of `user:SECRET`, and of `/pass:SECRET` if the user may be missing.
fn secret_of(word: &[u8], sign: u8, may_lack_user: bool) -> Option<&[u8]> {
    let at = memchr(sign, word)?;
    let user = &word[..at];
    // The sign in an address.
    if user.is_empty() && !may_lack_user || user.contains(&b'/') || sign == b'/' && user.contains(&b'@') {
        return None;
    }
    let secret = &word[at + 1..];
    Some(match sign {
        b'/' => until(secret, |byte| byte == b'@'),
        b'=' => until(secret, |byte| byte == b';'),
        _ => secret,
    })
}

/// `echo SECRET | sudo -S`, `sudo -S … <<< SECRET`, `ConvertTo-SecureString "SECRET"`
pub(super) fn piped(near: &mut Near) {
    let (before, behind, program) = (near.before(), near.behind(), near.word().to_ascii_lowercase());
    let is_plain = |word: &&[u8]| !matches!(word.first(), Some(b'-' | b'%'));
    let echoed = ["echo ", "printf "].into_iter().filter_map(|echo| {
        let at = memmem::rfind(before, echo.as_bytes())?;
        words(&before[at + echo.len()..]).into_iter().find(is_plain)
    });
    let mut found: Vec<&[u8]> = echoed.collect();
    if let Some(at) = memmem::find(behind, b"<<<") {
        found.extend(words(&behind[at + 3..]).first());
    }
    if program == b"convertto-securestring" {
        found.extend(words(behind).into_iter().find(is_plain));
        // `'secret' | ConvertTo-SecureString`
        let source = before.trim_ascii_end().strip_suffix(b"|").map(<[u8]>::trim_ascii_end);
        if let Some([inside @ .., quote @ (b'\'' | b'"')]) = source {
            found.extend(memrchr(*quote, inside).map(|open| &inside[open + 1..]));
        }
    }
    for word in found {
        // `bob:secret` for chpasswd.
        let user = memchr(b':', word).filter(|_| program == b"chpasswd").map_or(0, |at| at + 1);
        if flagged(&word[user..]) {
            near.push(&word[user..]);
        }
    }
}

/// `send "SECRET\r"` of a script for expect(1) that waited for a password.
pub(super) fn expect(near: &mut Near) {
    let quote = near.word().last().copied();
    let text = until(near.behind(), |byte| Some(byte) == quote || byte == b'\\');
    let is_asked = holds(near.some_before(200), &["assword", "assphrase"]);
    near.offer(text, is_asked && text.len() < near.behind().len() && (flagged(text) || text.len() > 5));
}

/// `SetBasicAuth("bob", "SECRET")`, `auth=('bob', 'SECRET')`, `setPassword("SECRET")`: the last string that could be
/// one.
pub(super) fn call(near: &mut Near) {
    let inside = until(near.behind(), |byte| byte == b')');
    let is_alone = near.word().to_ascii_lowercase().ends_with(b"password(");
    let mut rest = inside;
    // `page.fill("#password", "SECRET")`
    let mut is_named = false;
    for number in 1..=4 {
        let Some(open) = memchr::memchr2(b'"', b'\'', rest) else { return };
        let Some(end) = memchr(rest[open], &rest[open + 1..]) else { return };
        let text = &rest[open + 1..open + 1 + end];
        let is_later = number > 1 || !rest[..open].trim_ascii().is_empty();
        if flagged(text)
            && (is_alone
                || is_named
                || is_later && (chosen(text) || strong(text) || dice(text) || random(text)))
        {
            return near.push(text);
        }
        let name = inner(text, b"#.[]=' ");
        is_named |= NAMES.name(name, true).is_some();
        rest = &rest[open + end + 2..];
    }
}

/// `kubectl create secret generic x --from-literal=KEY=SECRET`: a secret under any key.
pub(super) fn literal(near: &mut Near) {
    let behind = near.behind();
    let Some(equals) = memchr(b'=', behind) else { return };
    let value = &behind[equals + 1..];
    // A quote may stand before the option, its key, or its value.
    let before = [near.before().last(), behind.first(), value.first()];
    let text = match before.into_iter().flatten().find(|byte| matches!(byte, b'\'' | b'"')) {
        Some(quote) => until(value.strip_prefix(&[*quote]).unwrap_or(value), |byte| byte == *quote),
        None => until(value, |byte| byte.is_ascii_whitespace() || b"|;&'\"`<>".contains(&byte)),
    };
    near.offer(text, text.len() >= 4);
}

/// `echo … | base64 -d`, `atob("…")`: what somebody decodes who needs a password.
pub(super) fn decoder(near: &mut Near) {
    for part in [near.before(), near.behind()] {
        let runs = part.split(|byte| !BASE64.has(*byte)).filter(|run| run.len() >= 8);
        let is_password = |run: &&[u8]| decoded(run).is_some_and(|text| chosen(&text) || made(&text));
        runs.filter(is_password).for_each(|run| near.push(run));
    }
}
