//! Numbers of cards, by their check digit and their form, and keys that only their length and alphabet show.

use sha2::{Digest, Sha256};
use std::sync::LazyLock;

use crate::base::text::BASE58;
use crate::memory::redact::chars::{Class, count, holds, inner, leading, trailing};
use crate::memory::redact::near::{Certainty, Span, place};
use crate::memory::redact::rules::words;
use crate::memory::redact::value::random;

/// A number is found by looking at every so many bytes: the shortest has 13 digits. One less than that, because the place
/// may be that of a blank between two groups.
const STEP: usize = 9;
/// The length of a personal access token of Azure DevOps: base32 in lower case.
const PAT: usize = 52;

static ALPHABET: Class = Class::of("A-Za-z0-9");
static GROUPED: Class = Class::of("0-9 -");

pub(super) fn find(bytes: &[u8], spans: &mut Vec<Span>) {
    let mut done = 0;
    for at in (STEP - 1..bytes.len()).step_by(STEP) {
        if bytes[at].is_ascii_digit() && at >= done && is_long(bytes, at) {
            let run = around(bytes, at, &GROUPED, 56, done);
            done = place(bytes, run) + run.len();
            let number = inner(run, b" -");
            if is_card(bytes, number) {
                spans.push(Span::of(bytes, number, "card", Certainty::Place));
            } else if is_recovery(number) {
                spans.push(Span::of(bytes, number, "recovery-key", Certainty::Place));
            }
        }
    }
    let mut done = 0;
    for at in (PAT - 1..bytes.len()).step_by(PAT - 1) {
        if at >= done && ALPHABET.has(bytes[at]) {
            let run = around(bytes, at, &ALPHABET, PAT, done);
            done = place(bytes, run) + run.len();
            if run.len() == PAT && is_pat(bytes, run) {
                spans.push(Span::of(bytes, run, "azure-secret", Certainty::Place));
            } else if is_wif(run) {
                spans.push(Span::of(bytes, run, "wallet-key", Certainty::Place));
            }
        }
    }
}

/// The characters of a class around a place, at most so many on each side.
fn around<'a>(bytes: &'a [u8], at: usize, class: &Class, most: usize, floor: usize) -> &'a [u8] {
    let start = at - trailing(&bytes[floor..at], most, |byte| class.has(byte));
    &bytes[start..at + leading(&bytes[at..], most + 1, |byte| class.has(byte))]
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

/// A key of Bitcoin's wallets: base58, and the last four bytes are a checksum.
fn is_wif(run: &[u8]) -> bool {
    if !matches!((run.len(), run[0]), (51, b'5' | b'9') | (52, b'K' | b'L' | b'c')) {
        return false;
    }
    let mut bytes = vec![0_u8; run.len() - 13];
    for byte in run {
        let Some(digit) = BASE58.iter().position(|known| known == byte) else { return false };
        let mut carry = digit;
        for place in bytes.iter_mut().rev() {
            carry += usize::from(*place) * 58;
            *place = (carry & 0xff) as u8;
            carry >>= 8;
        }
    }
    let (key, sum) = bytes.split_at(bytes.len() - 4);
    let key = &key[key.iter().take_while(|byte| **byte == 0).count()..];
    Sha256::digest(Sha256::digest(key))[..4] == *sum
}

/// BitLocker: eight groups of six digits, each a multiple of eleven.
fn is_recovery(number: &[u8]) -> bool {
    let groups: Vec<&[u8]> = number.split(|byte| *byte == b'-').collect();
    let value = |group: &&[u8]| std::str::from_utf8(group).ok()?.parse::<u32>().ok();
    let is_group = |group: &&[u8]| group.len() == 6 && value(group).is_some_and(|value| value % 11 == 0);
    groups.len() == 8 && groups.iter().all(is_group)
}

fn is_pat(bytes: &[u8], run: &[u8]) -> bool {
    let is_apart = |byte: u8| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-');
    let (before, behind) = beside(bytes, run);
    // Nix writes hashes of this length without these letters.
    let letters = count(run, |byte| b"eotu".contains(byte));
    run.iter().all(|byte| byte.is_ascii_lowercase() || (b'2'..=b'7').contains(byte))
        && before.is_none_or(is_apart)
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
    let digits = number.iter().filter(|byte| byte.is_ascii_digit());
    let digits: Vec<u8> = digits.map(|byte| byte - b'0').collect();
    let groups: Vec<usize> = number.split(|byte| !byte.is_ascii_digit()).map(<[u8]>::len).collect();
    let is_grouped = matches!(groups[..], [4, 4, 4, 4] | [4, 6, 5] | [4, 6, 4]);
    (is_grouped || groups.len() == 1 && digits.len() <= 19 && is_about_cards(bytes, number))
        && issued(&digits)
        && luhn(&digits)
}

static CARDS: LazyLock<Vec<&str>> = LazyLock::new(|| words("cards"));

/// Is there a word for cards near the number? One in ten numbers has a valid check digit.
fn is_about_cards(bytes: &[u8], number: &[u8]) -> bool {
    let start = place(bytes, number);
    let near = &bytes[start.saturating_sub(48)..bytes.len().min(start + number.len() + 32)];
    holds(&near.to_ascii_lowercase(), &CARDS)
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
