//! Numbers of cards, by their check digit and their form, and keys that only their length and alphabet show.

use memchr::memmem;

use crate::memory::redact::near::{Certainty, Span};
use crate::memory::redact::value::random;

/// A number is found by looking at every so many bytes: the shortest has 13 digits.
const STEP: usize = 9;
/// The length of a personal access token of Azure DevOps: base32 in lower case.
const PAT: usize = 52;

pub(super) fn find(bytes: &[u8], spans: &mut Vec<Span>) {
    let mut done = 0;
    // Less than the shortest, because a place may be that of a blank between two groups.
    for at in (STEP - 1..bytes.len()).step_by(STEP) {
        if bytes[at].is_ascii_digit() && at >= done && is_long(bytes, at) {
            done = card(bytes, at, done, spans);
        }
    }
    let mut done = 0;
    for at in (PAT - 1..bytes.len()).step_by(PAT - 1) {
        if at >= done && base32(bytes[at]) {
            done = pat(bytes, at, done, spans);
        }
    }
}

/// Is it part of a number with at least seven digits and blanks, to one side?
fn is_long(bytes: &[u8], at: usize) -> bool {
    let part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b' ' | b'-');
    bytes.get(at + 1..at + 7).is_some_and(|behind| behind.iter().all(part))
        || at >= 6 && bytes[at - 6..at].iter().rev().all(part)
}

fn base32(byte: u8) -> bool {
    byte.is_ascii_lowercase() || matches!(byte, b'2'..=b'7')
}

fn pat(bytes: &[u8], at: usize, floor: usize, spans: &mut Vec<Span>) -> usize {
    let before =
        bytes[floor.max(at.saturating_sub(PAT))..at].iter().rev().take_while(|byte| base32(**byte)).count();
    let behind = bytes[at..].iter().take(PAT + 1).take_while(|byte| base32(**byte)).count();
    let (start, end) = (at - before, at + behind);
    let apart = |at: Option<&u8>| {
        at.is_none_or(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-' | b'/'))
    };
    let edges = apart(start.checked_sub(1).and_then(|at| bytes.get(at)).filter(|byte| **byte != b'/'))
        && apart(bytes.get(end));
    // Nix writes hashes of this length without these letters.
    let letters = bytes[start..end].iter().filter(|byte| b"eotu".contains(byte)).count();
    if end - start == PAT && edges && letters > 1 && random(&bytes[start..end]) {
        spans.push(Span { start, end, kind: "azure-secret", certainty: Certainty::Place });
    }
    end
}

/// The card number around the digit at `at`. Returns the end of what was read.
fn card(bytes: &[u8], at: usize, floor: usize, spans: &mut Vec<Span>) -> usize {
    let part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b' ' | b'-');
    let before =
        bytes[floor.max(at.saturating_sub(24))..at].iter().rev().take_while(|byte| part(byte)).count();
    let behind = bytes[at..].iter().take(24).take_while(|byte| part(byte)).count();
    let (mut start, mut end) = (at - before, at + behind);
    while start < end && !bytes[start].is_ascii_digit() {
        start += 1;
    }
    while end > start && !bytes[end - 1].is_ascii_digit() {
        end -= 1;
    }
    let apart = |byte: Option<&u8>| {
        byte.is_none_or(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'.' | b'-' | b'#'))
    };
    if !apart(start.checked_sub(1).and_then(|at| bytes.get(at)))
        || bytes.get(end).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    {
        return end;
    }
    let text = &bytes[start..end];
    let digits: Vec<u8> = text.iter().filter(|byte| byte.is_ascii_digit()).map(|byte| byte - b'0').collect();
    let groups: Vec<usize> = text.split(|byte| !byte.is_ascii_digit()).map(<[u8]>::len).collect();
    let grouped = matches!(groups[..], [4, 4, 4, 4] | [4, 6, 5] | [4, 6, 4]);
    let told = grouped || groups.len() == 1 && digits.len() <= 19 && is_about_cards(bytes, start, end);
    if told && issued(&digits) && luhn(&digits) {
        spans.push(Span { start, end, kind: "card", certainty: Certainty::Place });
    }
    end
}

/// Is there a word for cards near the number? One in ten numbers has a valid check digit.
fn is_about_cards(bytes: &[u8], start: usize, end: usize) -> bool {
    let near = bytes[start.saturating_sub(48)..bytes.len().min(end + 32)].to_ascii_lowercase();
    [
        "card", "visa", "master", "amex", "karte", "carte", "tarjeta", "carta", "kort", "cvv", "cvc", "exp ",
        "expir", "pan:", "cc:",
    ]
    .iter()
    .any(|word| memmem::find(&near, word.as_bytes()).is_some())
}

/// The first digits and the lengths of the large networks (ISO/IEC 7812).
fn issued(digits: &[u8]) -> bool {
    let first =
        |many: usize| digits.iter().take(many).fold(0_u32, |so_far, digit| so_far * 10 + u32::from(*digit));
    match digits.len() {
        13 | 19 => first(1) == 4,
        14 => matches!(first(3), 300..=305) || matches!(first(2), 36 | 38),
        15 => matches!(first(2), 34 | 37),
        16 => {
            first(1) == 4
                || matches!(first(2), 51..=55 | 65 | 62)
                || matches!(first(4), 2221..=2720 | 6011 | 3528..=3589)
        }
        _ => false,
    }
}

fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| u32::from(if at % 2 == 0 { *digit } else { digit * 2 / 10 + digit * 2 % 10 }))
        .sum();
    sum.is_multiple_of(10) && digits.iter().any(|digit| *digit != digits[0])
}
