//! Words and lines: cuts that never fall inside a character, text that cannot disturb a terminal, near names.

use std::borrow::Cow;

/// The first `limit` characters (Unicode scalar values) of `text`, followed by `...` if any were cut.
pub(crate) fn cut(text: &str, limit: usize) -> Cow<'_, str> {
    match text.char_indices().nth(limit) {
        Some((at, _)) => Cow::Owned(format!("{}...", &text[..at])),
        None => Cow::Borrowed(text),
    }
}

/// The last place at or before byte `at` where a character of `text` begins or the text ends.
pub(crate) fn border(text: &str, at: usize) -> usize {
    let mut border = at.min(text.len());
    while !text.is_char_boundary(border) {
        border -= 1;
    }
    border
}

/// A text file's last line ends with a newline.
pub(crate) fn whole_lines(body: &str) -> String {
    if body.is_empty() || body.ends_with('\n') { body.to_owned() } else { format!("{body}\n") }
}

/// One line that is safe on a terminal: control characters become spaces, at most `limit` characters stay.
/// For text from models, servers and commands that goes into a message.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    // Most text is such a line, and a listing has thousands.
    if text.len() <= limit && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.trim().to_owned();
    }
    let flat: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    cut(&flat, limit).into_owned()
}

/// Nothing that would end the line, move the cursor or turn the text around. The joiners U+200C and U+200D do neither,
/// and are letters to some.
pub(crate) fn in_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_odd(c) { '\u{fffd}' } else { c }).collect()
}

/// Is it seen by nobody, though it ends a line or turns the text around?
pub(crate) fn is_odd(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The last line that says anything.
pub(crate) fn last_line(text: &str) -> &str {
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("")
}

/// `bytes` as text; what is not UTF-8 becomes U+FFFD. The flag tells whether anything had to.
pub(crate) fn lossy(bytes: Vec<u8>) -> (String, bool) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(e) => (String::from_utf8_lossy(e.as_bytes()).into_owned(), true),
    }
}

/// A number of bytes, for messages.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

/// The candidate nearest to `word`, if it is near enough to be what was meant.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let ours = word.chars().count();
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let theirs = candidate.chars().count();
            // A slip or two; in a short word one. Where every character differs, nothing is near.
            let slips = if ours.min(theirs) < 4 { 1 } else { 2.max(ours.min(theirs) / 3) };
            // Comparing takes memory for each pair of characters, and a word from outside may have millions.
            if ours.abs_diff(theirs) > slips {
                return None;
            }
            let distance = strsim::damerau_levenshtein(word, candidate);
            (distance <= slips && distance < ours.max(theirs)).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Wraps `text` at white space to lines of at most `width` characters; a longer word keeps its own line.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push(String::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += length;
        }
    }
    lines
}

/// Bitcoin's digits: no 0, O, I, l, which look alike.
pub(crate) const BASE58: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// The last `digits` digits of a number in base58.
pub(crate) fn base58(mut number: u64, digits: usize) -> String {
    let mut text = vec![BASE58[0]; digits];
    for digit in text.iter_mut().rev() {
        *digit = BASE58[(number % 58) as usize];
        number /= 58;
    }
    text.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_count_characters_not_bytes() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöü", 2), "äö...");
        assert_eq!(cut("", 0), "");
        assert_eq!(cut("🦀🦀", 1), "🦀...");
    }

    #[test]
    fn one_line_defuses_escapes_and_newlines() {
        assert_eq!(one_line(" a\u{1b}[31m\nb\r\n ", 80), "a [31m b");
    }

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        assert_eq!(nearest("reveiwer", ["planner", "reviewer"]), Some("reviewer"));
        assert_eq!(nearest("--jsom", ["--json", "--model"]), Some("--json"));
        assert_eq!(nearest("zebra", ["planner", "reviewer"]), None);
    }

    #[test]
    fn sizes_are_never_told_as_nothing() {
        let told: Vec<String> = [999, 1000, 1024, 200_000, 1 << 20, 16 << 20].map(size).into();
        assert_eq!(told, ["999 bytes", "1000 bytes", "1 KiB", "195 KiB", "1 MiB", "16 MiB"]);
    }

    #[test]
    fn wrapping_keeps_every_word() {
        assert_eq!(wrap("a bb ccc dddd", 5), ["a bb", "ccc", "dddd"]);
        assert_eq!(wrap("", 5), [""]);
    }

    #[test]
    fn the_last_line_skips_blank_ones() {
        assert_eq!(last_line("one\n two \n\n"), "two");
        assert_eq!(last_line(" \n"), "");
    }
}
