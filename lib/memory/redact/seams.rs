//! Secrets that something breaks in two: the end of a line, with what the next begins with (`+` of a diff, `>` of a
//! quotation), or the quotes of strings that are joined.

use crate::memory::redact::chars::{TOKEN68, count, leading, past, split_end, turns, until};
use crate::memory::redact::near::{Certainty, Span, from, place};
use crate::memory::redact::search;
use crate::memory::redact::value::{numbered, placeholder, random};

/// How much of a line is looked at on either side of a seam, in bytes, and how many lines one secret may take.
const SIDE: usize = 200;
const LINES: usize = 6;

/// What may stand between a token and the end of its line: an escape of the line break, the side of a box.
const MARGIN: &[u8] = b"\\=\r |\xe2\x94\x82";

/// Adds the tokens that only whole lines together show, and the rest of each secret that goes on in the next line.
pub(super) fn find(bytes: &[u8], spans: &mut Vec<Span>) {
    for mark in memchr::memchr3_iter(b'\n', b'"', b'\'', bytes) {
        let margin = if bytes[mark] == b'\n' { 6 } else { 0 };
        let (before, _) = split_end(&bytes[..mark], margin, |byte| MARGIN.contains(&byte));
        let Some(behind) = seam(bytes, before.len()) else { continue };
        let (_, first) = split_end(before, SIDE, inside);
        if may_be_cut(first) && search::begins_in(first) {
            joined(bytes, first, behind, spans);
        }
    }
    // A secret that has been found up to the end of its line may go on.
    for at in 0..spans.len() {
        let Span { mut end, kind, certainty, .. } = spans[at];
        let (mut lines, mut is_full) = (1, false);
        while lines < LINES {
            let Some(behind) = seam(bytes, end).filter(|_| certainty != Certainty::Block) else { break };
            let part = until(from(bytes, behind, 2 * SIDE), |byte| !TOKEN68.has(byte));
            let is_last =
                is_full && part.len() > 3 && (part.ends_with(b"=") || part.iter().any(u8::is_ascii_digit));
            if !goes_on(part) && !is_last {
                break;
            }
            is_full = part.len() >= 60;
            end = behind + part.len();
            // The lines of a wrapped file are many, and full.
            lines += usize::from(!is_full);
            spans.push(Span::of(bytes, part, kind, certainty));
        }
    }
}

/// The tokens in what a text and the lines behind it are together.
fn joined(bytes: &[u8], first: &[u8], behind: usize, spans: &mut Vec<Span>) {
    let mut parts = vec![first];
    let mut next = Some(behind);
    while let Some(behind) = next {
        let part = until(from(bytes, behind, SIDE), |byte| !inside(byte));
        parts.push(part);
        next = seam(bytes, behind + part.len()).filter(|_| parts.len() < LINES && !part.is_empty());
    }
    let mut tokens = Vec::new();
    search::find(&parts.concat(), true, &mut tokens);
    // What does not reach over the first seam has been found, or will be.
    for token in tokens.into_iter().filter(|token| token.start < first.len() && token.end > first.len()) {
        // The first part has been found on its own.
        let (start, end) = (place(bytes, first) + token.start, place(bytes, first) + first.len());
        let is_known = spans.iter().rev().take(64).any(|span| span.start <= start && span.end >= end);
        let mut before = 0;
        for (number, part) in parts.iter().enumerate() {
            let within = |at: usize| at.saturating_sub(before).min(part.len());
            let secret = &part[within(token.start)..within(token.end)];
            before += part.len();
            // A word that only happens to come next stays.
            let is_told = number == 0 || number == 1 && !is_known || goes_on(secret);
            if !secret.is_empty() && is_told {
                spans.push(Span::of(bytes, secret, token.kind, token.certainty));
            }
        }
    }
}

/// Can it be the rest of a secret, and not the next word?
fn goes_on(text: &[u8]) -> bool {
    let turns = turns(text);
    text.len() >= 8
        && turns > 0
        && (random(text) || text.len() < 12 && turns >= 3)
        && !placeholder(text)
        && !numbered(text)
}

/// Characters of tokens.
fn inside(byte: u8) -> bool {
    TOKEN68.has(byte) || byte == b':'
}

/// Can the text before a seam be the start of a token? Words of prose and code are not.
fn may_be_cut(word: &[u8]) -> bool {
    word.len() >= 3 && count(word, |byte| !byte.is_ascii_lowercase()) >= 2
}

/// If there is a seam at `end`, where the text behind it begins.
fn seam(bytes: &[u8], end: usize) -> Option<usize> {
    let rest = from(bytes, end, 64);
    let behind = match &rest[leading(rest, 6, |byte| MARGIN.contains(&byte))..] {
        [b'\n', behind @ ..] => past(behind, b" \t+->|#*\xe2\x94\x82"),
        // Two strings that are joined: `" + "`, `' . '`, `" "`.
        [quote @ (b'"' | b'\''), gap @ ..] if gap.len() + 1 == rest.len() => {
            let (sign, second) = match past(gap, b" \t\n\\") {
                [b'+' | b'.' | b'&', second @ ..] => (true, second),
                second => (gap.len() > second.len(), second),
            };
            let behind = past(second, b" \t\n").strip_prefix(&[*quote])?;
            return sign.then(|| place(bytes, behind));
        }
        _ => return None,
    };
    behind.first().filter(|byte| inside(**byte)).map(|_| place(bytes, behind))
}
