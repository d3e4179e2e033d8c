//! Secrets by their names: `KEY=value`, `"key": "value"`, `key: value`, `--key value`, `<key>value</key>`, in
//! shells, env files, JSON (also inside a string), YAML, code and prose.
//!
//! The name must end in a word for secrets: `token_type` and `password_file` are something else. The value must look
//! like a secret, because most such names are in code, before other names.

use memchr::memmem;

use crate::memory::redact::chars::{Class, URL, WORD, leading, trailing};
use crate::memory::redact::files::table;
use crate::memory::redact::names::{NAME, NAMES, SecretName, VALUE};
use crate::memory::redact::near::{Done, Span};
use crate::memory::redact::value::chosen;

pub(super) fn find(bytes: &[u8], spans: &mut Vec<Span>) {
    let names = &*NAMES;
    let mut bare = Bare { bytes, start: 0, end: 0 };
    let mut done = Done::default();
    let mut at = 0;
    // A plain loop, because it runs for every byte of every note.
    while let Some(&byte) = bytes.get(at) {
        let found = match byte {
            _ if !SIGNS.has(byte) => None,
            b' ' if names.may_end(&bytes[..at]) => flagged(&mut bare, at),
            b' ' => None,
            // `|` ends a cell of a table. Emphasis belongs to the cell.
            b'|' => {
                let padding = trailing(&bytes[..at], 24, |byte| b" *`".contains(&byte));
                if let Some(name) = names.name(&bytes[..at - padding], true) {
                    table(bytes, at, &name, &mut done, spans);
                }
                None
            }
            _ => assigned(&mut bare, at),
        };
        at = found.map_or(at + 1, |span| span.end);
        spans.extend(found);
    }
}

/// What stands between a name and its value.
static SIGNS: Class = Class::of(" =:>,|");

/// What the characters around a name say about its value.
struct Assignment {
    sign: u8,
    quotes_only: bool,
    /// Not in code: the value is not another name.
    plain: bool,
    /// The name is the first word of its line.
    first: bool,
}

/// `name SIGN value`, with the sign at `at`.
fn assigned(bare: &mut Bare, at: usize) -> Option<Span> {
    let bytes = bare.bytes;
    let sign = bytes[at];
    // Most commas do not follow a string.
    if sign == b',' && !matches!(bytes[..at], [.., b'"' | b'\'']) {
        return None;
    }
    let mut left = at;
    // `:=`, `+=`, `==`; never `!=`, `<=`.
    if sign == b'=' {
        match bytes[..at] {
            [.., b'!' | b'<' | b'>' | b'~'] => return None,
            [.., b':' | b'?' | b'+' | b'='] => left -= 1,
            _ => {}
        }
    }
    let mut right = at + 1;
    let compared = sign == b'=' && (bytes.get(right) == Some(&b'=') || bytes[left] == b'=' && left < at);
    while matches!(bytes.get(right), Some(b'=' | b'>')) && right - at < 3 && sign != b'>' {
        right += 1;
    }
    let before = &bytes[..left];
    let spaces = trailing(before, 24, |byte| matches!(byte, b' ' | b'\t'));
    let before = &before[..left - spaces];
    let closers = trailing(before, 8, |byte| b"\"'`\\])*".contains(&byte));
    let (before, closers) = before.split_at(before.len() - closers);
    let name = NAMES.name(before, sign == b':')?;
    let before = &before[..before.len() - name.text.len()];
    match sign {
        // `f("name", "value")`; other commas only list.
        b',' if !closers.iter().any(|byte| matches!(byte, b'"' | b'\'')) => return None,
        // `<name>value<`
        b'>' if !before.ends_with(b"<") => return None,
        _ => {}
    }
    let context = Assignment {
        sign,
        quotes_only: compared || sign == b',',
        // A name in capitals, or `a=b` without spaces, is not code, where the value would be another name.
        plain: name.in_capitals() || (sign == b'=' && spaces == 0) || sign == b'>',
        first: is_first(before),
    };
    value(bare, right, &name, &context)
}

/// `--name value`, and netrc's `password value`. The space is at `at`, after what may be the end of a name.
fn flagged(bare: &mut Bare, at: usize) -> Option<Span> {
    let before = &bare.bytes[..at];
    let length = trailing(before, NAME, |byte| URL.has(byte));
    let (verb, word) = before.split_at(at - length);
    let netrc =
        || word == b"password" && memmem::find(&before[at.saturating_sub(200)..], b"login ").is_some();
    // `ENV NAME value` of a Dockerfile, `setx NAME value`.
    let set = length >= 4
        && !word.iter().any(u8::is_ascii_lowercase)
        && (verb.ends_with(b"ENV ") || verb.ends_with(b"setx "));
    if !(word.starts_with(b"--") || set || netrc()) {
        return None;
    }
    let name = NAMES.name(before, false)?;
    value(bare, at + 1, &name, &Assignment { sign: b' ', quotes_only: false, plain: true, first: false })
}

/// The value after `from`, if it is a secret.
fn value(bare: &mut Bare, from: usize, name: &SecretName, context: &Assignment) -> Option<Span> {
    let bytes = bare.bytes;
    let colon = context.sign == b':';
    let mut start = from + spaces(bytes, from);
    if colon {
        // Markdown: **Password:** `value`
        start += leading(&bytes[start..], 3, |byte| matches!(byte, b'*' | b' '));
        // `name: Type = value`
        if let Some(typed) = behind_type(bytes, start) {
            start = typed + spaces(bytes, typed);
        }
    }
    // `Some("value")`, `b"value"`, `String::from("value")`
    let call = leading(&bytes[start..], 40, |byte| WORD.has(byte) || byte == b':');
    let open = start + call;
    let bracket = usize::from(call > 1 && bytes.get(open) == Some(&b'('));
    if let Some((start, end)) = quoted(bytes, open + bracket).filter(|_| bracket > 0 || call <= 2) {
        let end = end?;
        let start = start + scheme(&bytes[start..end], name);
        return name.accepts(&bytes[start..end], true).then(|| name.span(start, end))?;
    }
    if context.quotes_only {
        return None;
    }
    start += scheme(&bytes[start..bytes.len().min(start + 16)], name);
    let mut end = bare.end(start);
    if context.sign == b'>' && !bytes[end..].starts_with(b"</") {
        return None;
    }
    // A call, an index, a generic type: code.
    if matches!(bytes.get(end), Some(b'(' | b'[' | b'{' | b'<')) && !context.plain {
        return None;
    }
    end -= trailing(&bytes[start..end], VALUE, |byte| b".,:!?".contains(&byte));
    if end - start > VALUE {
        return None;
    }
    let word = &bytes[start..end];
    let last = at_line_end(bytes, end);
    let literal = context.plain || colon && last;
    // An identifier is a value only outside of code, or if no person would write it.
    let identifier = word.iter().all(|byte| WORD.has(*byte) || *byte == b'.');
    // What a person made up: alone on its line, or in a list of `name=value;`.
    let alone = (colon || context.first) && last;
    let made_up = (alone || context.plain && bytes.get(end) == Some(&b';')) && chosen(word);
    // Arguments and lists continue after a name; values in shells and env files do not.
    let goes_on = matches!(bytes.get(end), Some(b',' | b')' | b';' | b'}' | b']' | b'(' | b'['));
    let readable = made_up || literal && (!identifier || context.plain && !goes_on);
    let is_name_of_code = identifier && !literal && !made_up && word.len() < 20;
    if is_name_of_code || !name.accepts(word, readable) {
        return None;
    }
    name.span(start, end)
}

/// Does only the margin of a line come before it: blanks, a sign of a diff, of a list, of a comment?
fn is_first(before: &[u8]) -> bool {
    let margin = trailing(before, 40, |byte| b" \t+-#;$".contains(&byte));
    matches!(before[..before.len() - margin], [] | [.., b'\n'])
}

fn spaces(bytes: &[u8], from: usize) -> usize {
    leading(&bytes[from.min(bytes.len())..], 32, |byte| matches!(byte, b' ' | b'\t'))
}

fn at_line_end(bytes: &[u8], end: usize) -> bool {
    let rest = &bytes[end + spaces(bytes, end)..];
    matches!(rest, [] | [b'\n' | b'\r' | b'#' | b'`' | b'"' | b'.', ..] | [b'\\', b'n' | b'r', ..])
}

/// The position of the value in `Type = value`, with `Type` at `from`.
fn behind_type(bytes: &[u8], from: usize) -> Option<usize> {
    let many = leading(&bytes[from..], 40, |byte| WORD.has(byte) || b"&<>:.'?|[]".contains(&byte));
    let at = from + many + spaces(bytes, from + many);
    (many > 0 && bytes.get(at) == Some(&b'=') && bytes.get(at + 1) != Some(&b'=')).then_some(at + 1)
}

/// The length of `Bearer ` or another scheme before the value of an authorization.
fn scheme(value: &[u8], name: &SecretName) -> usize {
    const SCHEMES: &[&[u8]] =
        &[b"bearer ", b"basic ", b"token token=", b"discogs token=", b"token ", b"bot ", b"apikey ", b"key "];
    let begins =
        |scheme: &&&[u8]| value.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    let scheme = SCHEMES.iter().filter(|_| name.authorizes()).find(begins);
    scheme.map_or(0, |scheme| scheme.len())
}

/// Where a string in quotes begins and ends, also inside another string: `\"…\"`. It need not end on its line.
fn quoted(bytes: &[u8], from: usize) -> Option<(usize, Option<usize>)> {
    let depth = leading(&bytes[from.min(bytes.len())..], 16, |byte| byte == b'\\');
    let quote = *bytes.get(from + depth).filter(|byte| matches!(byte, b'"' | b'\'' | b'`'))?;
    let triple = bytes[from + depth..].starts_with(&[quote; 3]);
    let start = from + depth + if triple { 3 } else { 1 };
    let rest = &bytes[start..bytes.len().min(start + VALUE)];
    for at in memchr::memchr2_iter(quote, b'\n', rest) {
        let slashes = trailing(&rest[..at], VALUE, |byte| byte == b'\\');
        if rest[at] == b'\n' {
            break;
        }
        // More backslashes than at the start: a quote inside the string.
        if slashes <= depth {
            return Some((start, Some(start + at - slashes)));
        }
    }
    Some((start, None))
}

/// What ends a value without quotes.
static STOPS: Class = Class::of("\\s\"'`\\\\<>()[]{},;&\x1b");

/// Values without quotes. The end does not depend on the start, so it is kept for the next search.
struct Bare<'a> {
    bytes: &'a [u8],
    start: usize,
    end: usize,
}

impl Bare<'_> {
    fn end(&mut self, from: usize) -> usize {
        if !(self.start <= from && from < self.end) {
            let stop = |at: &usize| match self.bytes[*at] {
                // `id|secret`, `secret | next`
                b'|' => !self.bytes.get(*at + 1).is_some_and(u8::is_ascii_alphanumeric),
                byte => STOPS.has(byte),
            };
            self.start = from;
            self.end = (from..self.bytes.len()).find(stop).unwrap_or(self.bytes.len());
        }
        self.end
    }
}
