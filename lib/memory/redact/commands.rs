//! Secrets in command lines: `mysql -pPASSWORD`, `echo PASSWORD | sudo -S`, and in calls of code and SQL that take them
//! by position.

use memchr::{memchr, memmem};

use crate::memory::redact::chars::{leading, until};
use crate::memory::redact::near::Near;
use crate::memory::redact::value::{chosen, made, placeholder, random};

/// How much of a command is read: bytes and words.
const LONGEST: usize = 480;
const WORDS: usize = 48;

/// A word of a command line: without its quotes, and where it begins.
struct Word<'a> {
    text: &'a [u8],
    start: usize,
}

impl Word<'_> {
    fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// Splits as a shell does, as far as this matters here. Ends with the command.
fn words(line: &[u8], offset: usize) -> Vec<Word<'_>> {
    let (mut words, mut at) = (Vec::new(), 0);
    while let Some(first) = line.get(at).filter(|_| words.len() < WORDS) {
        let rest = &line[at..];
        let (text, quote) = match first {
            b' ' | b'\t' => {
                at += 1;
                continue;
            }
            // A line that goes on in the next.
            b'\\' if matches!(rest.get(1), Some(b'\n' | b'\r')) => {
                at += 2;
                continue;
            }
            b'|' | b';' | b'&' | b'\n' | b'`' | b')' | b'<' | b'>' => break,
            b'\'' | b'"' => match memchr(*first, &rest[1..]) {
                Some(end) => (&rest[1..=end], 1),
                None => break,
            },
            _ => (until(rest, |byte| byte.is_ascii_whitespace() || b"|;&'\"`<>".contains(&byte)), 0),
        };
        words.push(Word { text, start: offset + at + quote });
        at += text.len() + 2 * quote;
    }
    words
}

/// A flag says what it is, so nearly anything counts.
fn secret(value: &[u8]) -> bool {
    let number = value.len() >= 6 && value.iter().all(u8::is_ascii_digit);
    !matches!(value.first(), Some(b'-' | b'$' | b'@' | b'/'))
        && (made(value) || number && !placeholder(value))
}

/// A program of the rules.
pub(super) fn command(near: &mut Near) {
    let line = &near.bytes[near.at..near.bytes.len().min(near.at + LONGEST)];
    let line = &line[..line_end(line)];
    // Most commands have not the flag of the rule.
    let flag = near.usage.split(' ').find(|word| !word.starts_with(['+', '_'])).unwrap_or_default();
    if memmem::find(line, flag.trim_end_matches('*').as_bytes()).is_none() {
        return;
    }
    let words = words(line, near.at);
    let called = near.word().split(|byte| *byte == b' ').count() - 1;
    let Some((start, end)) = given(&words, called, near.usage) else { return };
    let text = &near.bytes[start..end];
    let is_secret = match near.kind {
        "cookie" => text.len() >= 12 && random(text),
        // Behind a user's name, it may begin as flags and variables do.
        _ if near.bytes[start - 1] == b':' && !text.starts_with(b"/") => made(text) || secret(text),
        _ => secret(text),
    };
    if is_secret {
        near.push(start, end);
    }
}

/// The end of a line, and of the lines that continue it.
fn line_end(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text)
        .find(|at| !matches!(text[..*at], [.., b'\\'] | [.., b'\\', b'\r']))
        .unwrap_or(text.len())
}

/// Where the secret is, as the rules' usage says. The name of the program is so many words.
fn given(words: &[Word], called: usize, usage: &str) -> Option<(usize, usize)> {
    let mut usage: Vec<&str> = usage.split(' ').collect();
    if let Some(needed) = usage[0].strip_prefix('+') {
        words.iter().find(|word| has(word.text, needed))?;
        usage.remove(0);
    }
    let flag = if usage[0].starts_with('_') { "" } else { usage.remove(0) };
    let name = flag.trim_end_matches('*').as_bytes();
    let at = match flag {
        "" => called - 1,
        _ => words.iter().position(|word| word.text.starts_with(name))?,
    };
    let word = words.get(at)?;
    let value = &word.text[name.len()..];
    match usage.last() {
        Some(behind) if *behind != "*" => user_and_secret(&words[at..], name.len(), behind.as_bytes()[1]),
        _ if flag.is_empty() || value.is_empty() || flag.ends_with(':') => {
            words.get(at + usage.len().max(1)).map(|word| (word.start, word.end()))
        }
        _ => {
            let equals = usize::from(value[0] == b'=');
            (flag.ends_with('*') || equals > 0).then_some((word.end() - value.len() + equals, word.end()))
        }
    }
}

/// `-b` is also in `-bc`.
fn has(word: &[u8], needed: &str) -> bool {
    match needed.strip_prefix('-') {
        Some(letter) => {
            word.starts_with(b"-")
                && !word.starts_with(b"--")
                && memmem::find(word, letter.as_bytes()).is_some()
        }
        None => word == needed.as_bytes(),
    }
}

/// What is behind the sign in the rest of the first word, or in one of the next two.
fn user_and_secret(words: &[Word], flag: usize, sign: u8) -> Option<(usize, usize)> {
    words.iter().take(3).enumerate().find_map(|(number, word)| {
        let value = if number == 0 { &word.text[flag..] } else { word.text };
        let at = memchr(sign, value)?;
        // `/pass:SECRET`, and not the sign in an address.
        if at == 0 && (sign, number) != (b':', 0)
            || value[..at].contains(&b'/')
            || sign == b'/' && value[..at].contains(&b'@')
        {
            return None;
        }
        let secret = &value[at + 1..];
        let secret = match sign {
            b'/' => until(secret, |byte| byte == b'@'),
            b'=' => until(secret, |byte| byte == b';'),
            _ => secret,
        };
        let start = word.end() - value.len() + at + 1;
        Some((start, start + secret.len()))
    })
}

/// `echo SECRET | sudo -S`, `sudo -S … <<< SECRET`, `ConvertTo-SecureString "SECRET"`
pub(super) fn piped(near: &mut Near) {
    let (before, behind, said) = (near.before(), near.behind(), near.word().to_ascii_lowercase());
    let line = near.at - before.len();
    let plain = |word: &Word| !matches!(word.text.first(), Some(b'-' | b'%'));
    let mut found = Vec::new();
    for echo in ["echo ", "printf "] {
        if let Some(at) = memmem::rfind(before, echo.as_bytes()) {
            let start = at + echo.len();
            found.extend(words(&before[start..], line + start).into_iter().find(plain));
        }
    }
    if let Some(at) = memmem::find(behind, b"<<<") {
        found.extend(words(&behind[at + 3..], near.end + at + 3).into_iter().next());
    }
    if said == b"convertto-securestring" {
        found.extend(words(behind, near.end).into_iter().find(plain));
        // `'secret' | ConvertTo-SecureString`
        let source = before.trim_ascii_end().strip_suffix(b"|").map(<[u8]>::trim_ascii_end);
        if let Some([inside @ .., quote @ (b'\'' | b'"')]) = source
            && let Some(open) = memchr::memrchr(*quote, inside)
        {
            found.push(Word { start: line + open + 1, text: &inside[open + 1..] });
        }
    }
    for word in found {
        // `bob:secret` for chpasswd.
        let colon = memchr(b':', word.text).filter(|_| said == b"chpasswd");
        let user = colon.map_or(0, |at| at + 1);
        if secret(&word.text[user..]) {
            near.push(word.start + user, word.end());
        }
    }
}

/// `kubectl create secret generic x --from-literal=KEY=SECRET`: a secret under any key.
pub(super) fn literal(near: &mut Near) {
    let behind = near.behind();
    let Some(equals) = memchr(b'=', behind) else { return };
    let value = &behind[equals + 1..];
    if let Some(word) = words(&value[..value.len().min(128)], near.end + equals + 1).first()
        && !placeholder(word.text)
        && word.text.len() >= 4
    {
        near.push(word.start, word.end());
    }
}

/// `send "SECRET\r"` of a script for expect(1) that waited for a password.
pub(super) fn expect(near: &mut Near) {
    let before = &near.bytes[near.at.saturating_sub(200)..near.at];
    let asked = |word: &[u8]| memmem::rfind(before, word).is_some();
    let behind = near.behind();
    if let Some(end) = memchr::memchr2(b'"', b'\\', behind)
        && (asked(b"assword") || asked(b"assphrase"))
        && secret(&behind[..end])
    {
        near.push(near.end, near.end + end);
    }
}

/// `SetBasicAuth("bob", "SECRET")`, `auth=('bob', 'SECRET')`, `setPassword("SECRET")`: the last string that could be
/// one.
pub(super) fn call(near: &mut Near) {
    let inside = until(near.behind(), |byte| byte == b')');
    let alone = near.word().to_ascii_lowercase().ends_with(b"password(");
    let mut at = 0;
    for number in 1..=4 {
        let Some(open) = memchr::memchr2(b'"', b'\'', &inside[at..]).map(|open| at + open) else { return };
        let Some(end) = memchr(inside[open], &inside[open + 1..]) else { return };
        let text = &inside[open + 1..open + 1 + end];
        let later = number > 1 || !inside[..open].trim_ascii().is_empty();
        if secret(text) && (alone || later && (chosen(text) || random(text))) {
            near.push(near.end + open + 1, near.end + open + 1 + end);
            return;
        }
        at = open + end + 2;
    }
}

/// `IDENTIFIED BY 'SECRET'`, `PASSWORD 'SECRET'`
pub(super) fn quoted(near: &mut Near) {
    let behind = near.behind();
    let lead = leading(behind, 12, |byte| b" =\\".contains(&byte));
    if let Some(quote @ (b'\'' | b'"')) = behind.get(lead)
        && let inside = &behind[lead + 1..]
        && let Some(end) = memchr(*quote, inside)
        && secret(&inside[..end])
    {
        near.push(near.end + lead + 1, near.end + lead + 1 + end);
    }
}

/// `curl.exe -u USER:SECRET`, `curl <url> -u …`: where the words of a command line do not lead to it.
pub(super) fn login_flag(near: &mut Near) {
    let before = &near.bytes[near.at.saturating_sub(300)..near.at];
    if !["curl", "http ", "wget"].iter().any(|name| memmem::find(before, name.as_bytes()).is_some()) {
        return;
    }
    let behind = near.behind();
    let lead = leading(behind, 8, |byte| b" =\\".contains(&byte));
    let lead = lead + leading(&behind[lead..], 1, |byte| b"\"'".contains(&byte));
    let word = until(&behind[lead..], |byte| byte.is_ascii_whitespace() || b"\"'\\`".contains(&byte));
    if let Some(colon) = memchr(b':', word)
        && made(&word[colon + 1..])
    {
        near.push(near.end + lead + colon + 1, near.end + lead + word.len());
    }
}
