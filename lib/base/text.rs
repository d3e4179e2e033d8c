//! Words and lines: cuts at character boundaries, text that is safe on a terminal, similar names.

pub mod fences;
mod invisible;

pub use invisible::{disarmed, escaped_json, in_line, is_hidden, json_without, strays, visible};

use std::borrow::Cow;
use std::fmt::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Whether `text` can be a name that stands in braces: `{name}`.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// The first `limit` characters (Unicode scalar values) of `text`, followed by `...` if any were cut.
pub fn cut(text: &str, limit: usize) -> Cow<'_, str> {
    match text.char_indices().nth(limit) {
        Some((at, _)) => Cow::Owned(format!("{}...", &text[..at])),
        None => Cow::Borrowed(text),
    }
}

/// The last character boundary of `text` at or before byte `at`.
pub fn border(text: &str, at: usize) -> usize {
    let mut border = at.min(text.len());
    while !text.is_char_boundary(border) {
        border -= 1;
    }
    border
}

/// The first `head` and the last `tail` bytes of a text that is longer, with a mark between them that says how much was
/// cut, and how many bytes that was. It is cut where a line ends, and within a line that is too long for that, at a
/// word.
pub fn excerpt(text: &str, head: usize, tail: usize) -> (Cow<'_, str>, usize) {
    // The mark itself takes about 32 bytes.
    if text.len() <= head + tail + 32 {
        return (Cow::Borrowed(text), 0);
    }
    let start = &text[..border(text, head)];
    let ends = |is_end: fn(char) -> bool| start.rfind(is_end).filter(|at| *at >= start.len() / 2);
    let start = match ends(|c| c == '\n').or_else(|| ends(char::is_whitespace)) {
        // The white space before the cut stays.
        Some(at) => &start[..border(start, at) + start[at..].chars().next().map_or(0, char::len_utf8)],
        None => start,
    };
    let mut from = text.len() - tail;
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let end = &text[from..];
    let begins = |is_end: fn(char) -> bool| end.find(is_end).filter(|at| *at <= end.len() / 2);
    let end = match begins(|c| c == '\n').map(|at| at + 1).or_else(|| begins(char::is_whitespace)) {
        Some(at) => &end[at..],
        None => end,
    };
    let cut = &text[start.len()..text.len() - end.len()];
    let mark = cut_mark(cut.matches('\n').count(), cut.len());
    let before = if start.is_empty() || start.ends_with(char::is_whitespace) { "" } else { " " };
    let after = match (cut.ends_with('\n'), end.starts_with(char::is_whitespace) || end.is_empty()) {
        (true, _) => "\n",
        (false, true) => "",
        (false, false) => " ",
    };
    (Cow::Owned(format!("{start}{before}{mark}{after}{end}")), cut.len())
}

/// The template with its placeholders replaced, each of which begins with `sign`. Inserted text is not searched for placeholders.
pub fn filled(template: &str, sign: char, values: &[(&str, &str)]) -> String {
    let (mut text, mut rest) = (String::new(), template);
    while let Some(at) = rest.find(sign) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let found = values.iter().find_map(|(place, value)| Some((rest.strip_prefix(place)?, *value)));
        let (after, value) = found.unwrap_or_else(|| (&rest[sign.len_utf8()..], &rest[..sign.len_utf8()]));
        text.push_str(value);
        rest = after;
    }
    text + rest
}

/// What stands for so many lines, or for a part of one, that were cut.
pub fn cut_mark(lines: usize, bytes: usize) -> String {
    match lines {
        0 => format!("[… {bytes} bytes]"),
        1 => format!("[… 1 line, {bytes} bytes]"),
        _ => format!("[… {lines} lines, {bytes} bytes]"),
    }
}

/// Text without control characters but tabs and line ends: colours of a terminal, bells, NULs. Every return of the
/// carriage ends a line, as in a progress bar.
pub fn without_controls(text: &str) -> Cow<'_, str> {
    let is_live = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(is_live) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_live) {
        plain.push_str(&rest[..at]);
        let c = rest[at..].chars().next().unwrap_or_default();
        rest = &rest[at + c.len_utf8()..];
        match c {
            '\u{1b}' => rest = after_sequence(rest),
            '\r' if rest.starts_with('\n') => {}
            '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' => plain.push('\n'),
            _ => {}
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// What follows a terminal's sequence like `ESC [ 31 m`, of which the escape is read.
fn after_sequence(rest: &str) -> &str {
    let Some(inner) = rest.strip_prefix('[') else { return rest };
    let end = inner.find(|c: char| !matches!(c, ' '..='?'));
    match end.filter(|end| inner[*end..].starts_with(|c| matches!(c, '@'..='~'))) {
        Some(end) => &inner[end + 1..],
        None => rest,
    }
}

/// A text file's last line ends with a newline.
pub fn whole_lines(body: &str) -> String {
    if body.is_empty() || body.ends_with('\n') { body.to_owned() } else { format!("{body}\n") }
}

/// White space collapsed.
pub fn collapsed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One line that is safe on a terminal: control characters become spaces, and it has at most `limit` characters.
/// For text from models, servers and commands in a message.
pub fn one_line(text: &str, limit: usize) -> String {
    // The common case, and a listing has thousands of lines.
    if text.len() <= limit && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.trim().to_owned();
    }
    let flat: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    cut(&flat, limit).into_owned()
}

/// The character that an escape of a program, of HTML or of an address at the beginning of a text stands for, and how
/// long the escape is, in bytes: `\x5f`, `\u005f`, `&#95;`, `&#x5f;`, `%5f`.
pub fn escape(text: &[u8]) -> Option<(char, usize)> {
    let (digits, length, base) = match text {
        [b'%', rest @ ..] => (rest.get(..2)?, 3, 16),
        [b'\\', b'x', rest @ ..] => (rest.get(..2)?, 4, 16),
        [b'\\', b'u', rest @ ..] => (rest.get(..4)?, 6, 16),
        [b'&', b'#', b'x' | b'X', rest @ ..] => (until_semicolon(rest)?, 4, 16),
        [b'&', b'#', rest @ ..] => (until_semicolon(rest)?, 3, 10),
        _ => return None,
    };
    let length = if text[0] == b'&' { length + digits.len() } else { length };
    let code =
        digits.iter().try_fold(0, |code, digit| Some(code * base + char::from(*digit).to_digit(base)?))?;
    Some((char::from_u32(code)?, length))
}

fn until_semicolon(text: &[u8]) -> Option<&[u8]> {
    text.iter().take(9).position(|byte| *byte == b';').filter(|end| *end > 0).map(|end| &text[..end])
}

/// The last line that says something: not blank, no bracket, no object that JavaScript could not print, and nothing that
/// is indented below such a line, if there is another one.
pub(super) fn last_line(text: &str) -> String {
    let plain = without_controls(text);
    let says = |line: &&str| {
        !line.starts_with([' ', '\t', '}', ']'])
            && !line.trim().is_empty()
            && !line.contains("[object Object]")
    };
    let last = plain.lines().rfind(says).or_else(|| plain.lines().rfind(|line| !line.trim().is_empty()));
    last.unwrap_or("").trim().to_owned()
}

/// `bytes` as text; invalid UTF-8 becomes U+FFFD. The flag says whether there was any.
pub fn lossy(bytes: Vec<u8>) -> (String, bool) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(e) => (String::from_utf8_lossy(e.as_bytes()).into_owned(), true),
    }
}

/// A number of bytes, for messages.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

/// `1 note`, `2 notes`
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// `, 2 failed, 1 waiting`: those that are not none, to follow a text.
pub fn further(counts: &[(usize, &str)]) -> String {
    counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!(", {count} {what}")).collect()
}

/// The candidate most similar to `word`, if it is similar enough to be what the user meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let ours = word.chars().count();
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let theirs = candidate.chars().count();
            // One or two typos; in a short word one. If every character differs, the word is not similar.
            let typos = if ours.min(theirs) < 5 { 1 } else { 2.max(ours.min(theirs) / 3) };
            // The comparison needs memory for each pair of characters, and a word from outside may have millions.
            if ours.abs_diff(theirs) > typos {
                return None;
            }
            let distance = strsim::damerau_levenshtein(word, candidate);
            (distance <= typos && distance < ours.max(theirs)).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The question after a word that is not known: `did you mean "x"?`
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|near| format!("did you mean \"{near}\"?"))
}

/// Wraps `text` at white space to lines of at most `width` columns. A longer word is broken.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_whitespace() {
        let gap = if line.is_empty() { "" } else { " " };
        if !gap.is_empty() && line.width() + 1 + word.width() > width {
            lines.push(std::mem::take(&mut line));
        } else {
            line.push_str(gap);
        }
        let is_long = word.width() > width;
        for c in word.chars() {
            if is_long && !line.is_empty() && line.width() + c.width().unwrap_or(0) > width {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    lines.push(line);
    lines
}

/// A text, maybe in colours, whose longer lines are broken at spaces, and words that are wider than a line within. What follows is
/// indented so far that it looks like no line of its own: no blanks of a text that somebody else wrote decide where it begins.
pub fn narrowed(text: &str, columns: usize) -> String {
    let mut all = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let plain = without_controls(line);
        let indent = plain.len() - plain.trim_start_matches(' ').len();
        let margin = (indent + 6).min(columns * 2 / 3);
        let (mut used, mut is_blank, mut is_broken) = (0, true, false);
        for word in line.split_inclusive(' ') {
            let plain = without_controls(word);
            let bare = plain.trim_end_matches([' ', '\n']);
            let end = |used| bare.chars().fold(used, |used, c| used + width_at(c, used));
            if !is_blank && end(used) > columns {
                all.truncate(all.trim_end_matches(' ').len());
                let _ = write!(all, "\n{:margin$}", "");
                (used, is_blank, is_broken) = (margin, true, true);
            }
            if is_broken && is_blank && bare.is_empty() && !plain.ends_with('\n') {
                continue;
            }
            let (is_wide, mut is_code) = (end(used) > columns, false);
            for c in word.chars() {
                is_code |= c == '\u{1b}';
                let width = if is_code { 0 } else { width_at(c, used) };
                is_code &= !c.is_ascii_alphabetic();
                if is_wide && c != ' ' && width > 0 && used + width > columns && used > margin {
                    let _ = write!(all, "\n{:margin$}", "");
                    (used, is_broken) = (margin, true);
                }
                all.push(c);
                used += width;
            }
            is_blank &= bare.is_empty();
        }
    }
    all
}

/// The columns of a character behind so many others; a tab ends at a multiple of eight.
fn width_at(c: char, used: usize) -> usize {
    if c == '\t' { 8 - used % 8 } else { c.width().unwrap_or(0) }
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Bitcoin's digits, without 0, O, I and l, which look alike.
pub const BASE58: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// The last `digits` digits of a number in base58.
pub fn base58(mut number: u64, digits: usize) -> String {
    let mut text = vec![BASE58[0]; digits];
    for digit in text.iter_mut().rev() {
        *digit = BASE58[(number % 58) as usize];
        number /= 58;
    }
    text.into_iter().map(char::from).collect()
}

/// The same for all names that a disk of macOS takes for one: it ignores case, and how accents are composed.
pub fn folded(name: &str) -> String {
    use unicode_normalization::UnicodeNormalization;
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    // Some small letters have a capital in common, like σ and ς.
    name.nfd().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfd().collect()
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
    fn one_line_sanitizes_escapes_and_newlines() {
        assert_eq!(one_line(" a\u{1b}[31m\nb\r\n ", 80), "a [31m b");
    }

    #[test]
    fn long_text_is_cut_where_a_line_ends_or_a_word() {
        assert_eq!(excerpt("short", 1, 1), (Cow::Borrowed("short"), 0));
        let lines: String = (0..100).map(|n| format!("line {n:02}\n")).collect();
        let (short, cut) = excerpt(&lines, 100, 50);
        assert!(short.starts_with("line 00\n") && short.ends_with("line 99\n"), "{short}");
        assert!(short.contains(&format!("line 11\n[… 82 lines, {cut} bytes]\nline 94\n")), "{short}");
        let words = "word ".repeat(100);
        let (short, cut) = excerpt(&words, 103, 52);
        assert_eq!(short, format!("{}[… {cut} bytes] {}", "word ".repeat(20), "word ".repeat(10)));
        let text = "ä".repeat(500);
        let (short, cut) = excerpt(&text, 101, 101);
        assert_eq!(short, format!("{0} [… {cut} bytes] {0}", "ä".repeat(50)));
        assert_eq!(200 + cut, text.len());
    }

    #[test]
    fn control_characters_are_left_out_and_lines_stay() {
        let text = "a\0b\u{1b}[1;31mred\u{1b}[0m\tc\r\n10%\r20%\u{7}\u{1b}]8;;https://x\u{85}y\u{1b}[";
        assert_eq!(without_controls(text), "abred\tc\n10%\n20%]8;;https://x\ny[");
        assert_eq!(without_controls("ä\n"), Cow::Borrowed("ä\n"));
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
        assert_eq!(wrap("日本 語語 x", 5), ["日本", "語語", "x"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("a abcdefghijk l", 5), ["a", "abcde", "fghij", "k l"]);
        assert_eq!(wrap("日本語語", 5), ["日本", "語語"]);
        assert_eq!(wrap("日本", 1), ["日", "本"]);
    }

    #[test]
    fn only_lines_that_are_too_long_are_broken() {
        for (text, expected) in [
            ("a  b\n  c d\n", "a  b\n  c d\n"),
            ("  - one two three\n", "  - one two\n        three\n"),
            ("\u{1b}[31m  - one two three\u{1b}[0m\n", "\u{1b}[31m  - one two\n        three\u{1b}[0m\n"),
            ("日本語 日本語 日本語", "日本語 日本語\n      日本語"),
            ("x abcdefghijklmnop y", "x\n      abcdefgh\n      ijklmnop\n      y"),
            ("\u{1b}[31mabcdefghijklmnop\u{1b}[0m\n", "\u{1b}[31mabcdefghijklmn\n      op\u{1b}[0m\n"),
            // Blanks place nothing at the left.
            ("- one two             - b\n", "- one two\n      - b\n"),
            (
                "- one\u{a0}two\u{a0}\u{a0}\u{a0}\u{a0}\u{a0}- b",
                "-\n      one\u{a0}two\u{a0}\n      \u{a0}\u{a0}\u{a0}\u{a0}- b",
            ),
            ("- one\t\t- b\n", "-\n      one\n      \t\n      \t- b\n"),
            ("                    - b", "                    \n         - b"),
            ("\n", "\n"),
        ] {
            assert_eq!(narrowed(text, 14), expected, "{text:?}");
        }
    }

    /// As Gemini CLI 0.61.0 and opencode 1.18.33 print them.
    #[test]
    fn the_last_line_of_a_real_program_says_what_happened() {
        let gemini = "Ripgrep is not available. Falling back to GrepTool.\nError when talking to Gemini API Full report \
                      available at: /tmp/x.json ModelNotFoundError: models/flash is not found\n    at classify \
                      (file:///x.js:1:2)\n  code: 404\n}\nAn unexpected critical error occurred:[object Object]\n";
        let said = "Error when talking to Gemini API Full report available at: /tmp/x.json ModelNotFoundError: \
                    models/flash is not found";
        assert_eq!(last_line(gemini), said);
        let opencode = "\u{1b}[0m\n> build · m\n\u{1b}[0m\n\u{1b}[91m\u{1b}[1mError: \u{1b}[0minvalid key\n";
        assert_eq!(last_line(opencode), "Error: invalid key");
    }

    #[test]
    fn the_last_line_skips_blank_ones() {
        assert_eq!(last_line("one\ntwo \n\n"), "two");
        assert_eq!(last_line(" \n"), "");
        assert_eq!(last_line("  only\n  indented\n"), "indented");
    }

    #[test]
    fn names_that_are_one_on_macos_fold_to_one() {
        for (one, other) in [
            ("A.md", "a.md"),
            ("caf\u{e9}.md", "cafe\u{301}.md"),
            ("CAF\u{c9}", "cafe\u{301}"),
            ("ΣΑΣ", "σας"),
            ("\u{ac00}", "\u{1100}\u{1161}"),
            ("\u{1e69}", "s\u{307}\u{323}"),
        ] {
            assert_eq!(folded(one), folded(other));
        }
        assert_ne!(folded("café"), folded("cafe"));
        assert_ne!(folded("日記"), folded("計画"));
    }
}
