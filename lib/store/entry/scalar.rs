//! Writes scalars for YAML, with or without quotes.
//!
//! YAML 1.1 and 1.2 disagree about what is a string. We omit the quotes only if both read the text as the same
//! string, and are stricter than either requires.

use std::fmt::Write;

/// The context of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// After `key: ` or `- `, up to the end of the line.
    Block,
    /// Inside `[…]` or `{…}`.
    Flow,
}

/// `text` as we write it in this context.
pub(super) fn written(text: &str, context: Style) -> String {
    if is_plain(text, context) && !has_another_type(text) { text.to_owned() } else { quoted(text) }
}

/// Whether `text` without quotes is one scalar of exactly these characters. Also false for some that would be: those
/// that begin with anything but a letter, a digit, `_`, `/` or `(`.
pub(super) fn is_plain(text: &str, context: Style) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    if !(first.is_ascii_alphanumeric() || matches!(first, b'_' | b'/' | b'(' | 0x80..)) || *last == b' ' {
        return false;
    }
    let mut is_ascii = true;
    for (at, byte) in bytes.iter().enumerate() {
        // A fast path: nearly all bytes are letters.
        if byte.is_ascii_alphabetic() {
            continue;
        }
        is_ascii &= byte.is_ascii();
        let fits = match byte {
            0..0x20 | 0x7f => false,
            b':' => context == Style::Block && bytes.get(at + 1).is_some_and(|next| *next != b' '),
            b'#' => at > 0 && bytes[at - 1] != b' ',
            b',' | b'[' | b']' | b'{' | b'}' | b'?' => context == Style::Block,
            _ => true,
        };
        if !fits {
            return false;
        }
    }
    is_ascii || !text.chars().any(is_escaped)
}

/// Whether some reader of YAML 1.1 or 1.2 may take it for a number, a date, a boolean or null.
fn has_another_type(text: &str) -> bool {
    const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let numeric = |byte| b"0123456789abcdefABCDEFxXoOtTzZ_.:+- ".contains(&byte);
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
        || (text.starts_with(|c: char| c.is_ascii_digit() || c == '_') && text.bytes().all(numeric))
}

/// Characters that are escaped between quotes: YAML forbids them, or takes them for a line end or a byte order mark,
/// or they change the order in which an editor shows the line.
fn is_escaped(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Between double quotes, on one line.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if !is_escaped(c) => quoted.push(c),
            c if u32::from(c) < 0x100 => _ = write!(quoted, "\\x{:02X}", u32::from(c)),
            c => _ = write!(quoted, "\\u{:04X}", u32::from(c)),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_stays_plain() {
        for text in [
            "xstate guard patterns",
            "Guards must be pure; put I/O in actors.",
            "don't",
            "say \"no\"",
            "C# and F#",
            "a:b",
            "http://x.org/?q=1",
            "عنوان",
            "日本語",
            "🦀 crab",
            "e\u{301}",
            "👩\u{200d}💻",
            "3 ways out",
            "none",
            "/home/u/r",
            "github.com/o/r",
            "a, b",
            "id__a1B2c3",
            "2 beds?",
            "v1.2",
            "a - b",
            "a & b * c ! | > % @ `",
        ] {
            assert_eq!(written(text, Style::Block), text);
        }
    }

    #[test]
    fn text_that_some_reader_takes_for_another_type_is_quoted() {
        for text in [
            "", "no", "Yes", "ON", "off", "y", "N", "true", "null", "~", "1e3", "0x1F", "0o7", "1_000",
            "12:30:45", "1984", "2026-01-01", "2026-01-01T10:00:00Z", "2026-01-01 10:00:00 +1", "-1", "+1",
            ".5", ".inf", ".NaN", "=", "<<", "- x", "-", "? x", "a: b", "a:", "a #b", "# a", " a", "a ",
            "@a", "`a", "%a", "&a", "*a", "!a", "|", ">", "[a", "]", "{a", "}", "\"a", "'a", "a\tb", "a\nb",
            "a\u{85}b", "a\u{2028}b", "a\u{feff}", "a\u{202e}b", "a\0", "---", "...", ", a", ": a", "_1",
        ] {
            assert!(written(text, Style::Block).starts_with('"'), "{text:?}");
            assert!(written(text, Style::Flow).starts_with('"'), "{text:?}");
        }
        for text in ["a, b", "a[0]", "{x}", "a]", "local:/home/u", "a?b"] {
            assert!(written(text, Style::Flow).starts_with('"'), "{text:?}");
        }
    }

    #[test]
    fn quoted_text_is_one_line() {
        assert_eq!(
            quoted("a\"b\\c\n\r\t\0\u{85}\u{2028}\u{feff}é🦀"),
            r#""a\"b\\c\n\r\t\x00\x85\u2028\uFEFFé🦀""#
        );
    }
}
