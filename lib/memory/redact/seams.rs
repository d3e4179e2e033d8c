//! Secrets that something breaks in two: the end of a line, with what the next begins with (`+` of a diff, `>` of a
//! quotation), or the quotes of strings that are joined.

use crate::memory::redact::chars::TOKEN68;
use crate::memory::redact::near::{Certainty, Span};
use crate::memory::redact::search;
use crate::memory::redact::value::{placeholder, random};

/// How much of a line is looked at on either side of a seam, in bytes, and how many lines one secret may take.
const SIDE: usize = 200;
const LINES: usize = 6;

/// Adds the tokens that only whole lines together show, and the rest of each secret that goes on in the next line.
pub(super) fn find(bytes: &[u8], spans: &mut Vec<Span>) {
    let mut joined: Vec<u8> = Vec::new();
    let mut at = 0;
    while let Some(next) = seam(bytes, at) {
        at = next.2;
        let next = (next.0, next.1);
        let floor = next.0.saturating_sub(SIDE);
        let many = bytes[floor..next.0].iter().rev().take_while(|byte| inside(**byte)).count();
        let start = next.0 - many;
        if many < 3 || !may_be_cut(&bytes[start..next.0]) || !search::begins_in(&bytes[start..next.0]) {
            continue;
        }
        // The parts of the word, and where each was.
        joined.clear();
        joined.extend_from_slice(&bytes[start..next.0]);
        let mut parts = vec![(0, start)];
        let mut seam_at = Some(next);
        while let Some((_, behind)) = seam_at.take() {
            let many = bytes[behind..].iter().take(SIDE).take_while(|byte| inside(**byte)).count();
            parts.push((joined.len(), behind));
            joined.extend_from_slice(&bytes[behind..behind + many]);
            if parts.len() < LINES && many > 0 {
                seam_at = here(bytes, behind + many).map(|to| (behind + many, to));
            }
        }
        for token in &search::tokens(&joined) {
            // What does not reach over the first seam has been found, or will be.
            if token.start >= parts[1].0 || token.end <= parts[1].0 {
                continue;
            }
            let known = whole(spans, parts[0].1 + token.start, next.0);
            for (part, (from, original)) in parts.iter().enumerate() {
                let to = parts.get(part + 1).map_or(joined.len(), |next| next.0);
                let (start, end) = (token.start.max(*from), token.end.min(to));
                // A word that only happens to come next stays.
                let told = part == 0
                    || part == 1 && !known
                    || goes_on(&joined[start.min(to)..end.max(start.min(to))]);
                if start < end && told {
                    spans.push(Span { start: original + start - from, end: original + end - from, ..*token });
                }
            }
        }
    }
    // A secret that has been found up to the end of its line may go on.
    for at in 0..spans.len() {
        let mut span = spans[at];
        if span.certainty == Certainty::Block {
            continue;
        }
        for _ in 1..LINES {
            let Some(behind) = here(bytes, span.end) else { break };
            let many = bytes[behind..].iter().take(2 * SIDE).take_while(|byte| TOKEN68.has(**byte)).count();
            if !goes_on(&bytes[behind..behind + many]) {
                break;
            }
            span = Span { start: behind, end: behind + many, ..span };
            spans.push(span);
        }
    }
}

/// Has the first part been found on its own?
fn whole(spans: &[Span], start: usize, end: usize) -> bool {
    spans.iter().rev().take(64).any(|span| span.start <= start && span.end >= end)
}

/// Can it be the rest of a secret, and not the next word?
fn goes_on(text: &[u8]) -> bool {
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    text.len() >= 8
        && digits > 0
        && digits < text.len()
        && (random(text) || text.len() < 12 && changing(text))
        && !placeholder(text)
}

fn changing(text: &[u8]) -> bool {
    text.windows(2).filter(|two| two[0].is_ascii_digit() != two[1].is_ascii_digit()).count() >= 3
}

/// Characters of tokens.
fn inside(byte: u8) -> bool {
    TOKEN68.has(byte) || byte == b':'
}

/// Can the text before a seam be the start of a token? Words of prose and code are not.
fn may_be_cut(word: &[u8]) -> bool {
    let lower = word.iter().filter(|byte| byte.is_ascii_lowercase()).count();
    word.len() - lower >= 2
}

/// The next seam from `at` on: where the text before it ends, where the text behind it begins, and where to look for
/// the one after it.
fn seam(bytes: &[u8], mut at: usize) -> Option<(usize, usize, usize)> {
    while let Some(found) =
        memchr::memchr3(b'\n', b'"', b'\'', &bytes[at.min(bytes.len())..]).map(|found| at + found)
    {
        let end = match bytes[found] {
            b'\n' => {
                let lead = bytes[found.saturating_sub(3)..found]
                    .iter()
                    .rev()
                    .take_while(|byte| b"\\=\r".contains(byte))
                    .count();
                found - lead
            }
            _ => found,
        };
        if let Some(behind) = here(bytes, end) {
            return Some((end, behind, found + 1));
        }
        at = found + 1;
    }
    None
}

/// If there is a seam at `end`, where the text behind it begins.
fn here(bytes: &[u8], end: usize) -> Option<usize> {
    let rest = bytes.get(end..)?;
    let rest = &rest[..rest.len().min(64)];
    let lead = rest.iter().take(3).take_while(|byte| b"\\=\r".contains(byte)).count();
    let after = match rest.get(lead..)? {
        [b'\n', ..] => lead + 1,
        // Two strings that are joined: `" + "`, `' . '`, `" "`.
        [quote @ (b'"' | b'\''), more @ ..] if lead == 0 => {
            let gap = more.iter().take_while(|byte| b" \t\n\\".contains(byte)).count();
            let sign = usize::from(matches!(more.get(gap), Some(b'+' | b'.' | b'&')));
            let more = &more[gap + sign..];
            let second = more.iter().take_while(|byte| b" \t\n".contains(byte)).count();
            if more.get(second) != Some(quote) || gap + sign + second == 0 {
                return None;
            }
            return Some(end + 1 + gap + sign + second + 1);
        }
        _ => return None,
    };
    let margin = rest[after..].iter().take_while(|byte| b" \t+->|#*".contains(byte)).count();
    let behind = end + after + margin;
    bytes.get(behind).filter(|byte| inside(**byte)).map(|_| behind)
}
