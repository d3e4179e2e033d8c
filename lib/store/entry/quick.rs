//! Front matter in the form that we write, read without a YAML parser: twenty times as fast, and a listing
//! reads ten thousand notes.
//!
//! It takes only lines of which it is sure and gives up at the first other one; then the YAML parser reads
//! all of it. What it takes, both read alike: a test holds them against each other.

use crate::store::entry::scalar::{Place, is_plain};
use crate::store::entry::value::{Field, Value};
use std::borrow::Cow;

/// YAML does not look for a key's colon much further than this many characters.
const KEY_CAP: usize = 100;

/// The fields of `text`, or `None`: ask the YAML parser.
pub(crate) fn read(text: &str) -> Option<Vec<Field<'_>>> {
    let mut lines = text.strip_suffix('\n')?.split('\n').enumerate().peekable();
    let mut fields = Vec::with_capacity(16);
    while let Some((number, line)) = lines.next() {
        if line.starts_with('#') && !line.contains(|c: char| c.is_control() || c == '\u{feff}') {
            continue;
        }
        let (key, rest) = line.split_once(':')?;
        if !is_key(key) || !(rest.is_empty() || rest.starts_with(' ')) {
            return None;
        }
        let rest = rest.trim_matches(' ');
        let value = if rest.is_empty() {
            let mut items = Vec::new();
            while let Some((_, item)) = lines.next_if(|(_, line)| line.starts_with("  - ")) {
                items.push(value(item["  - ".len()..].trim_matches(' '))?);
            }
            if items.is_empty() { Value::plain("") } else { Value::List(items) }
        } else {
            value(rest)?
        };
        fields.push(Field { key: Cow::Borrowed(key), value, line: number + 1 });
    }
    Some(fields)
}

fn is_key(key: &str) -> bool {
    key.len() <= KEY_CAP
        && key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// A scalar, `[…]` of scalars or `{…}` of keys with scalars, up to the end of the line.
fn value(text: &str) -> Option<Value> {
    let (value, rest) = match text.as_bytes().first()? {
        b'[' => list(&text[1..])?,
        b'{' => map(&text[1..])?,
        b'"' => quoted(text)?,
        _ if is_plain(text, Place::Line) => return Some(Value::plain(text)),
        _ => return None,
    };
    rest.is_empty().then_some(value)
}

fn list(text: &str) -> Option<(Value, &str)> {
    let mut items = Vec::new();
    if let Some(rest) = text.strip_prefix(']') {
        return Some((Value::List(items), rest));
    }
    let mut rest = text;
    loop {
        let (item, after) = scalar(rest)?;
        items.push(item);
        if let Some(after) = after.strip_prefix(']') {
            return Some((Value::List(items), after));
        }
        rest = after.strip_prefix(", ")?;
    }
}

fn map(text: &str) -> Option<(Value, &str)> {
    let mut pairs = Vec::new();
    if let Some(rest) = text.strip_prefix('}') {
        return Some((Value::Map(pairs), rest));
    }
    let mut rest = text;
    loop {
        let (key, after) = rest.split_once(": ")?;
        if !is_key(key) {
            return None;
        }
        let (value, after) = scalar(after)?;
        pairs.push((Value::plain(key), value));
        if let Some(after) = after.strip_prefix('}') {
            return Some((Value::Map(pairs), after));
        }
        rest = after.strip_prefix(", ")?;
    }
}

/// A scalar inside brackets or braces.
fn scalar(text: &str) -> Option<(Value, &str)> {
    if text.starts_with('"') {
        return quoted(text);
    }
    let (plain, rest) = text.split_at(text.find([',', ']', '}'])?);
    is_plain(plain, Place::Flow).then(|| (Value::plain(plain), rest))
}

/// Quotes around text that is plain but for its quotes: no escapes, nothing that is not to be seen.
fn quoted(text: &str) -> Option<(Value, &str)> {
    let (inner, rest) = text.strip_prefix('"')?.split_once('"')?;
    let odd = if inner.is_ascii() {
        inner.bytes().any(|byte| byte == b'\\' || byte.is_ascii_control())
    } else {
        inner.contains(|c: char| {
            c == '\\'
                || c.is_control()
                || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
        })
    };
    (!odd).then(|| (Value::quoted(inner), rest))
}
