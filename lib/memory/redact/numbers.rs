//! Numbers of cards, by their check digit and their form, and keys that only their length and alphabet show.

use memchr::memmem;

use crate::memory::redact::chars::{Class, inner};
use crate::memory::redact::near::{Certainty, Span, from, place};
use crate::memory::redact::value::random;

/// A number is found by looking at every so many bytes: the shortest has 13 digits. One less than that, because the place
/// may be that of a blank between two groups.
const STEP: usize = 9;
/// The length of a personal access token of Azure DevOps: base32 in lower case.
const PAT: usize = 52;

static BASE32: Class = Class::of("a-z2-7");
static GROUPED: Class = Class::of("0-9 -");

pub(super) fn find(bytes: &[u8], spans: &mut Vec<Span>) {
    let mut done = 0;
    for at in (STEP - 1..bytes.len()).step_by(STEP) {
        if bytes[at].is_ascii_digit() && at >= done && is_long(bytes, at) {
            let run = around(bytes, at, &GROUPED, 24, done);
            done = place(bytes, run) + run.len();
            let number = inner(run, b" -");
            if is_card(bytes, number) {
                spans.push(Span::of(bytes, number, "card", Certainty::Place));
            }
        }
    }
    let mut done = 0;
    for at in (PAT - 1..bytes.len()).step_by(PAT - 1) {
        if at >= done && BASE32.has(bytes[at]) {
            let run = around(bytes, at, &BASE32, PAT, done);
            done = place(bytes, run) + run.len();
            if run.len() == PAT && is_pat(bytes, run) {
                spans.push(Span::of(bytes, run, "azure-secret", Certainty::Place));
            }
        }
    }
}

/// The characters of a class around a place, at most so many on each side.
fn around<'a>(bytes: &'a [u8], at: usize, class: &Class, most: usize, floor: usize) -> &'a [u8] {
    let before = bytes[floor.max(at.saturating_sub(most))..at].iter().rev();
    let start = at - before.take_while(|byte| class.has(**byte)).count();
    let behind = from(bytes, at, most + 1).iter();
    &bytes[start..at + behind.take_while(|byte| class.has(**byte)).count()]
}

/// The characters before and behind a part of the text.
fn beside(bytes: &[u8], part: &[u8]) -> (Option<u8>, Option<u8>) {
    let start = place(bytes, part);
    (start.checked_sub(1).map(|at| bytes[at]), bytes.get(start + part.len()).copied())
}

/// Is it part of a number with at least seven digits and blanks, to one side?
fn is_long(bytes: &[u8], at: usize) -> bool {
    let all = |part: &[u8]| part.iter().all(|byte| GROUPED.has(*byte));
    bytes.get(at + 1..at + 7).is_some_and(all) || at >= 6 && all(&bytes[at - 6..at])
}

fn is_pat(bytes: &[u8], run: &[u8]) -> bool {
    let is_apart = |byte: u8| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-');
    let (before, behind) = beside(bytes, run);
    // Nix writes hashes of this length without these letters.
    let letters = run.iter().filter(|byte| b"eotu".contains(byte)).count();
    before.is_none_or(is_apart)
        && behind.is_none_or(|byte| is_apart(byte) && byte != b'/')
        && letters > 1
        && random(run)
}

fn is_card(bytes: &[u8], number: &[u8]) -> bool {
    let (before, behind) = beside(bytes, number);
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if before.is_some_and(|byte| is_part(byte) || b".-#".contains(&byte)) || behind.is_some_and(is_part) {
        return false;
    }
    let digits: Vec<u8> =
        number.iter().filter(|byte| byte.is_ascii_digit()).map(|byte| byte - b'0').collect();
    let groups: Vec<usize> = number.split(|byte| !byte.is_ascii_digit()).map(<[u8]>::len).collect();
    let is_grouped = matches!(groups[..], [4, 4, 4, 4] | [4, 6, 5] | [4, 6, 4]);
    (is_grouped || groups.len() == 1 && digits.len() <= 19 && is_about_cards(bytes, number))
        && issued(&digits)
        && luhn(&digits)
}

/// Is there a word for cards near the number? One in ten numbers has a valid check digit.
fn is_about_cards(bytes: &[u8], number: &[u8]) -> bool {
    let start = place(bytes, number);
    let near =
        bytes[start.saturating_sub(48)..bytes.len().min(start + number.len() + 32)].to_ascii_lowercase();
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
    let doubled = |(at, digit): (usize, &u8)| match at % 2 {
        0 => u32::from(*digit),
        _ => u32::from(digit * 2 / 10 + digit * 2 % 10),
    };
    let sum: u32 = digits.iter().rev().enumerate().map(doubled).sum();
    sum.is_multiple_of(10) && digits.iter().any(|digit| *digit != digits[0])
}
