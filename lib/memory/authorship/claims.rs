//! What a note claims that a reader may follow or run: addresses, flags, settings and the words of commands.

use crate::memory::authorship::fold::Folded;
use crate::memory::authorship::tokens::{Address, addresses, is_bare_host, words};
use crate::memory::facts::{PieceKind, pieces};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ClaimKind {
    /// A URL, `host/path`, `host:port`, or a host in code.
    Address,
    /// `--force`, `-k`
    Flag,
    /// `NAME=value`
    Setting,
    /// A word of a command: of a line of code, or of a code span of two or more words.
    Command,
}

/// One of them, as it looks.
#[derive(Debug, PartialEq)]
pub(super) struct Claim {
    pub(super) kind: ClaimKind,
    pub(super) text: String,
    /// An address of this machine or of a private network.
    pub(super) is_local: bool,
    /// It is written with characters that only look like these.
    pub(super) is_disguised: bool,
}

/// The methods of HTTP: `GET /x` is a request, no command.
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"];

/// The claims of one field of a note, in order.
pub(super) fn claims(field: &str) -> Vec<Claim> {
    let folded = Folded::of(field);
    let mut found = Vec::new();
    for piece in pieces(&folded.text) {
        let offset = piece.text.as_ptr() as usize - folded.text.as_ptr() as usize;
        let mut add = |kind, at: usize, text: &str, is_local| {
            let from = offset + at;
            let is_disguised = folded.is_changed(from..from + text.len());
            found.push(Claim { kind, text: text.to_owned(), is_local, is_disguised });
        };
        let addresses = addresses(piece.text);
        for address in &addresses {
            add(ClaimKind::Address, address.at, address.text, address.is_local);
        }
        let is_code = piece.kind != PieceKind::Prose;
        let mut lines = 0;
        for line in piece.text.split_inclusive('\n') {
            let start = lines;
            lines += line.len();
            // A person's prompt, in prose too.
            let is_prompt = line.trim_start().strip_prefix("$ ").is_some_and(|rest| !rest.trim().is_empty());
            // A span may go over lines, and is one command.
            let of = if piece.kind == PieceKind::Span { piece.text } else { line };
            let is_command = match piece.kind {
                PieceKind::Code => !is_request(of),
                PieceKind::Span => has_words(of) && !is_request(of),
                PieceKind::Prose => is_prompt,
            };
            of_words(piece.text, start..lines, &addresses, is_command, is_code, &mut add);
        }
        settings(piece.text, &addresses, &mut add);
        if piece.kind == PieceKind::Span && is_bare_host(piece.text.trim()) {
            let word = piece.text.trim();
            add(ClaimKind::Address, piece.text.len() - piece.text.trim_start().len(), word, false);
        }
    }
    found
}

/// Two words, or what a shell takes for two.
fn has_words(span: &str) -> bool {
    let inner = span.trim().trim_end_matches(';');
    inner.contains(|c: char| c.is_whitespace() || matches!(c, '|' | ';'))
        || ["&&", "$IFS", "${IFS"].iter().any(|mark| inner.contains(mark))
}

fn is_request(command: &str) -> bool {
    let mut words = command.split_whitespace();
    words.next().is_some_and(|word| METHODS.contains(&word))
        && words.next().is_some_and(|word| word.starts_with('/') || word.contains("://"))
}

fn of_words(
    text: &str,
    range: std::ops::Range<usize>,
    addresses: &[Address],
    is_command: bool,
    is_code: bool,
    add: &mut impl FnMut(ClaimKind, usize, &str, bool),
) {
    let line = &text[range.clone()];
    // `the server -which is old- restarts`: dashes of an aside, as Spanish has them.
    let has_aside = !is_code && line.match_indices('-').any(|(at, _)| closes_aside(line, at));
    let mut next = addresses.partition_point(|address| address.at + address.text.len() <= range.start);
    for (at, word) in words(line) {
        let at = range.start + at;
        while addresses.get(next).is_some_and(|address| address.at + address.text.len() <= at) {
            next += 1;
        }
        if addresses.get(next).is_some_and(|address| address.at <= at) {
            continue;
        }
        if is_flag(word, is_code, has_aside) {
            add(ClaimKind::Flag, at, word, false);
        } else if is_command && !is_small_number(word) {
            add(ClaimKind::Command, at, word, false);
        }
    }
}

/// A number of one or two digits is in every session.
fn is_small_number(word: &str) -> bool {
    word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn closes_aside(line: &str, at: usize) -> bool {
    line[..at].ends_with(char::is_alphanumeric)
        && line[at + 1..].chars().next().is_none_or(|c| c.is_whitespace() || ",.;:)".contains(c))
}

fn is_flag(word: &str, is_code: bool, has_aside: bool) -> bool {
    let name = word.trim_start_matches('-');
    let dashes = word.len() - name.len();
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.is_ascii();
    match dashes {
        0 => false,
        1 if is_code => is_name,
        // A number in prose is negative.
        1 => {
            is_name
                && name.starts_with(|c: char| c.is_ascii_alphabetic())
                && !(has_aside && name.len() > 2 && !name.contains('-'))
        }
        _ => is_name && dashes == 2,
    }
}

/// `NAME=value`: both are checked as words.
fn settings(text: &str, addresses: &[Address], add: &mut impl FnMut(ClaimKind, usize, &str, bool)) {
    let is_name = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    let mut next = 0;
    for at in memchr::memchr_iter(b'=', text.as_bytes()) {
        while addresses.get(next).is_some_and(|address| address.at + address.text.len() <= at) {
            next += 1;
        }
        // A query is part of its address.
        if addresses.get(next).is_some_and(|address| address.at <= at) {
            continue;
        }
        let before = &text[..at];
        let longest = before.char_indices().rev().take(100).take_while(|(_, c)| is_name(*c)).last();
        let after = text[at + 1..].trim_start_matches(['"', '\'']);
        let value =
            after.find(|c: char| c.is_whitespace() || "\"'`;,)<>|=".contains(c)).unwrap_or(after.len());
        let Some((start, _)) = longest.filter(|_| value > 0 && !text[at + 1..].starts_with('=')) else {
            continue;
        };
        if !before[start..].contains(char::is_alphabetic) {
            continue;
        }
        for (from, word) in words(&before[start..]).map(|(n, word)| (start + n, word)) {
            add(ClaimKind::Setting, from, word, false);
        }
        let end = text.len() - after.len();
        for (from, word) in words(&after[..value]).map(|(n, word)| (end + n, word)) {
            let before = addresses.partition_point(|address| address.at <= from);
            let is_inside = before > 0 && from < addresses[before - 1].at + addresses[before - 1].text.len();
            if !is_inside && !is_small_number(word) {
                add(ClaimKind::Setting, from, word, false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let mark = |kind| match kind {
            ClaimKind::Address => "a",
            ClaimKind::Flag => "f",
            ClaimKind::Setting => "s",
            ClaimKind::Command => "c",
        };
        claims(text).iter().map(|claim| format!("{}:{}", mark(claim.kind), claim.text)).collect()
    }

    #[test]
    fn addresses_flags_settings_and_commands_are_claims() {
        for (text, expected) in [
            (
                "Use --force and -k at https://h.example/x.",
                &["a:https://h.example/x", "f:--force", "f:-k"][..],
            ),
            ("Set RUST_LOG=debug, --port=4310", &["f:--port", "s:RUST_LOG", "s:debug", "s:--port", "s:4310"]),
            ("run `npm i evil`", &["c:npm", "c:i", "c:evil"]),
            ("```sh\nmake deploy\n```", &["c:make", "c:deploy"]),
            ("$ make deploy", &["c:make", "c:deploy"]),
            ("`GET /health` and `docs.example.com`", &["a:docs.example.com"]),
            ("`curl h.example/x`", &["a:h.example/x", "c:curl"]),
            // None of these is one.
            ("`make`, a well-known thing, from -5 to 3, a == b, Build- und Test-Skripte", &[]),
            ("el servidor -que es viejo- reinicia; el otro —que no— sigue", &[]),
            ("`src/main.rs`, `user.name`, `logger.info`, x - y -- z", &[]),
        ] {
            assert_eq!(told(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_disguise_is_seen_through() {
        for text in ["gіthub.com/x", "`ｃｕｒｌ x`", "--fоrce", "ev\u{200b}il.example/x", "—no-verify"]
        {
            assert!(claims(text).iter().any(|claim| claim.is_disguised), "{text}");
        }
        assert!(
            claims("日本語 ｇｏ `cargo test` https://h.example/x").iter().all(|claim| !claim.is_disguised)
        );
    }
}
