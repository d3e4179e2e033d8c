//! Reads front matter in the form that we write, without the YAML parser.
//!
//! With it a query over 10,000 notes takes half the time, and a listing a third. It accepts only lines of which it is
//! sure and gives up at the first other one; then the YAML parser reads everything. A fuzz target checks that both
//! readers agree. It goes byte by byte, since the searchers of `str` take longer to set up than these short lines take
//! to read, and it copies nothing.

use crate::store::entry::scalar::{Style, is_plain};
use crate::store::entry::value::{Field, YamlValue};
use std::borrow::Cow;

/// YAML limits how far the colon may be from the start of a key.
const KEY_CAP: usize = 100;

/// The fields of `text`; `None` if the YAML parser must read it.
pub(super) fn read(text: &str) -> Option<Vec<Field<'_>>> {
    let mut fields = Vec::with_capacity(16);
    let mut number = 1;
    let (mut line, mut rest) = first_line(text)?;
    loop {
        let is_comment = line.starts_with('#') && !line.contains(|c: char| c.is_control() || c == '\u{feff}');
        if !is_comment {
            let (key, after) = key(line)?;
            let after = after.strip_prefix(':')?;
            if !(after.is_empty() || after.starts_with(' ')) {
                return None;
            }
            let first = number;
            let after = without_blanks(after);
            let value = if after.is_empty() {
                let mut items = Vec::new();
                while rest.starts_with("  - ") {
                    let (item, behind) = first_line(rest)?;
                    items.push(value(without_blanks(&item["  - ".len()..]))?);
                    (rest, number) = (behind, number + 1);
                }
                if items.is_empty() { YamlValue::plain("") } else { YamlValue::List(items) }
            } else {
                value(after)?
            };
            fields.push(Field { key: Cow::Borrowed(key), value, line: first });
        }
        if rest.is_empty() {
            return Some(fields);
        }
        (line, rest) = first_line(rest)?;
        number += 1;
    }
}

/// The first line without its end, and the rest. `None` if it has no end.
fn first_line(text: &str) -> Option<(&str, &str)> {
    let end = memchr::memchr(b'\n', text.as_bytes())?;
    Some((&text[..end], &text[end + 1..]))
}

fn without_blanks(text: &str) -> &str {
    let is_other = |byte| byte != b' ';
    let Some(start) = text.bytes().position(is_other) else { return "" };
    let end = text.bytes().rposition(is_other).map_or(start, |last| last + 1);
    &text[start..end]
}

/// The key at the beginning, and the rest.
fn key(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let is_in_key = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let end = bytes.iter().position(|byte| !is_in_key(byte)).unwrap_or(bytes.len());
    let is_key = (1..=KEY_CAP).contains(&end) && bytes[0].is_ascii_alphabetic();
    is_key.then(|| text.split_at(end))
}

/// A scalar, `[…]` of scalars or `{…}` of keys with scalars, up to the end of the line.
fn value(text: &str) -> Option<YamlValue<'_>> {
    let (value, rest) = match text.as_bytes().first()? {
        b'[' => items(&text[1..], ']', scalar).map(|(items, rest)| (YamlValue::List(items), rest))?,
        b'{' => items(&text[1..], '}', pair).map(|(pairs, rest)| (YamlValue::Map(pairs), rest))?,
        b'"' => quoted(text)?,
        _ if is_plain(text, Style::Block) => return Some(YamlValue::plain(text)),
        _ => return None,
    };
    rest.is_empty().then_some(value)
}

/// Items, with a comma and a space between them, up to `end`; and the rest.
fn items<'a, T>(
    text: &'a str,
    end: char,
    item: impl Fn(&'a str) -> Option<(T, &'a str)>,
) -> Option<(Vec<T>, &'a str)> {
    if let Some(after) = text.strip_prefix(end) {
        return Some((Vec::new(), after));
    }
    let (mut items, mut rest) = (Vec::with_capacity(4), text);
    loop {
        let (one, after) = item(rest)?;
        items.push(one);
        if let Some(after) = after.strip_prefix(end) {
            return Some((items, after));
        }
        rest = after.strip_prefix(", ")?;
    }
}

fn pair(text: &str) -> Option<((YamlValue<'_>, YamlValue<'_>), &str)> {
    let (key, after) = key(text)?;
    let (value, after) = scalar(after.strip_prefix(": ")?)?;
    Some(((YamlValue::plain(key), value), after))
}

/// A scalar inside brackets or braces.
fn scalar(text: &str) -> Option<(YamlValue<'_>, &str)> {
    let bytes = text.as_bytes();
    if bytes.first() == Some(&b'"') {
        return quoted(text);
    }
    let end = bytes.iter().position(|byte| matches!(byte, b',' | b']' | b'}'))?;
    let (plain, rest) = text.split_at(end);
    is_plain(plain, Style::Flow).then(|| (YamlValue::plain(plain), rest))
}

/// Text in double quotes, without escapes and invisible characters.
fn quoted(text: &str) -> Option<(YamlValue<'_>, &str)> {
    let bytes = text.as_bytes();
    let mut end = 1;
    let mut is_ascii = true;
    loop {
        match bytes.get(end)? {
            b'"' => break,
            b'\\' | 0..0x20 | 0x7f => return None,
            byte => is_ascii &= byte.is_ascii(),
        }
        end += 1;
    }
    let inner = &text[1..end];
    let is_odd = |c: char| {
        c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    (is_ascii || !inner.contains(is_odd)).then(|| (YamlValue::quoted(inner), &text[end + 1..]))
}
