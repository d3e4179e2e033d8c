//! Secrets by their place: the login in a URL, after `Bearer` and `Basic`, in a signed URL, after curl's `-u`.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use memchr::memmem::{self, Finder};

use crate::memory::redact::span::{Certainty, CharClass, Runs, Span, begins};
use crate::memory::redact::value::{password, placeholder, random};

/// The searchers, built once: for a short note, building them takes longer than the search.
pub(super) struct PlaceFinder {
    address: Finder<'static>,
    /// Without the first letter, so that one search finds both `Bearer` and `bearer`.
    bearer: [Finder<'static>; 2],
    basic: [Finder<'static>; 2],
    signature: Finder<'static>,
    flags: [(&'static str, Finder<'static>); 3],
}

impl PlaceFinder {
    pub(super) fn new() -> PlaceFinder {
        PlaceFinder {
            address: Finder::new("://"),
            bearer: ["earer", "EARER"].map(Finder::new),
            basic: ["asic ", "ASIC "].map(Finder::new),
            signature: Finder::new("sig="),
            flags: [" -u", " --user", " -p"].map(|flag| (flag, Finder::new(flag))),
        }
    }

    pub(super) fn find(&self, bytes: &[u8], spans: &mut Vec<Span>) {
        let mut runs = Runs::new(bytes);
        spans.extend(self.address.find_iter(bytes).filter_map(|at| login(bytes, at + 3)));
        for word in &self.bearer {
            let behind = word.needle().len();
            spans.extend(word.find_iter(bytes).filter_map(|at| bearer(&mut runs, at, at + behind)));
        }
        for word in &self.basic {
            let behind = word.needle().len();
            spans.extend(word.find_iter(bytes).filter_map(|at| basic(&mut runs, at, at + behind)));
        }
        spans.extend(self.signature.find_iter(bytes).filter_map(|at| signature(bytes, at)));
        for (flag, finder) in &self.flags {
            spans.extend(finder.find_iter(bytes).filter_map(|at| command_login(bytes, at, flag)));
        }
    }
}

fn place(start: usize, end: usize, kind: &'static str) -> Option<Span> {
    Some(Span { start, end, kind, certainty: Certainty::Place })
}

/// `user:password@` after `://`, or only a token before the `@`.
fn login(bytes: &[u8], start: usize) -> Option<Span> {
    let rest = &bytes[start..bytes.len().min(start + 512)];
    let stop = |byte: &u8| byte.is_ascii_whitespace() || b"/\"'`<>\\|(),;?#".contains(byte);
    let authority = &rest[..rest.iter().position(stop).unwrap_or(rest.len())];
    let at = memchr::memrchr(b'@', authority)?;
    let login = &authority[..at];
    match memchr::memchr(b':', login) {
        Some(colon) => {
            let (user, secret) = (&login[..colon], &login[colon + 1..]);
            let plain = [&b"pass"[..], b"pw", b"pwd", b"p", b"token", user].contains(&secret);
            if secret.is_empty() || plain || placeholder(secret) {
                return None;
            }
            place(start + colon + 1, start + at, "password")
        }
        None if login.len() >= 20 && random(login) => place(start, start + at, "url-token"),
        None => None,
    }
}

/// `Bearer TOKEN`, `Bearer: TOKEN`.
fn bearer(runs: &mut Runs, at: usize, behind: usize) -> Option<Span> {
    let bytes = runs.bytes;
    let initial = at.checked_sub(1)?;
    if !matches!(bytes[initial], b'B' | b'b') || !begins(bytes, initial) {
        return None;
    }
    let start =
        behind + bytes[behind..].iter().take(3).take_while(|byte| matches!(byte, b' ' | b':')).count();
    let end = runs.end(CharClass::Token68, start);
    let token = &bytes[start..end];
    let token = &token[..token.len() - token.iter().rev().take_while(|byte| **byte == b'.').count()];
    (start > behind && token.len() >= 16 && !placeholder(token) && random(token))
        .then(|| place(start, start + token.len(), "bearer"))?
}

/// `Basic BASE64`, if it contains a user and a password.
fn basic(runs: &mut Runs, at: usize, start: usize) -> Option<Span> {
    let bytes = runs.bytes;
    let initial = at.checked_sub(1)?;
    if !matches!(bytes[initial], b'B' | b'b') || !begins(bytes, initial) {
        return None;
    }
    let end = runs.end(CharClass::Base64, start);
    if !(8..=1024).contains(&(end - start)) {
        return None;
    }
    let coded = &bytes[start..end];
    let plain = STANDARD.decode(coded).or_else(|_| STANDARD_NO_PAD.decode(coded)).ok()?;
    let login = std::str::from_utf8(&plain).ok()?;
    (login.contains(':') && !login.chars().any(char::is_control)).then(|| place(start, end, "basic"))?
}

/// The signature in Azure's signed URLs: 32 bytes in base64, the last characters often percent-encoded.
fn signature(bytes: &[u8], at: usize) -> Option<Span> {
    if at > 0 && !matches!(bytes[at - 1], b'?' | b'&' | b';' | b'"' | b'\'' | b' ') {
        return None;
    }
    let start = at + 4;
    let rest = &bytes[start..bytes.len().min(start + 140)];
    let many =
        rest.iter().position(|byte| !(CharClass::Base64.has(*byte) || *byte == b'%')).unwrap_or(rest.len());
    (40..=136).contains(&many).then_some(())?;
    random(&rest[..many]).then(|| place(start, start + many, "azure-sas"))?
}

/// `curl -u user:password`, `sshpass -p password`.
fn command_login(bytes: &[u8], at: usize, flag: &str) -> Option<Span> {
    let command = &bytes[at.saturating_sub(300)..at];
    let called = |name: &str| memmem::rfind(command, name.as_bytes()).is_some();
    let mut start = at + flag.len();
    start += bytes[start..].iter().take(8).take_while(|byte| matches!(byte, b' ' | b'=' | b'\\')).count();
    start += bytes[start..].iter().take(1).take_while(|byte| matches!(byte, b'"' | b'\'')).count();
    let rest = &bytes[start..bytes.len().min(start + 256)];
    let stop = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'\\' | b'`');
    let word = &rest[..rest.iter().position(stop).unwrap_or(rest.len())];
    let from = match flag {
        " -p" if called("sshpass") => 0,
        " -p" => return None,
        _ if called("curl") || called("http ") || called("wget") => memchr::memchr(b':', word)? + 1,
        _ => return None,
    };
    let secret = &word[from..];
    (!placeholder(secret) && (password(secret) || random(secret)))
        .then(|| place(start + from, start + word.len(), "password"))?
}
