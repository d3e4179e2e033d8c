//! Secrets by their names: `KEY=value`, `"key": "value"`, `key: value`, `--key value`, `<key>value</key>`, in
//! shells, env files, JSON (also inside a string), YAML, code and prose.
//!
//! The name must end in a word for secrets: `token_type` and `password_file` are something else. The value must look
//! like a secret, because most such names are in code, before other names.

use crate::memory::redact::files::table;
use crate::memory::redact::names::{NAME, SecretName, VALUE, may_end, name};
use crate::memory::redact::near::Done;
use crate::memory::redact::span::{CharClass, Span};
use crate::memory::redact::value::chosen;

pub(super) fn find(bytes: &[u8], spans: &mut Vec<Span>) {
    let mut bare = Bare { bytes, start: 0, end: 0 };
    let mut done = Done::default();
    let mut at = 0;
    // A plain loop, because it runs for every byte of every note.
    while let Some(&byte) = bytes.get(at) {
        let found = match SIGNS[usize::from(byte)] {
            Sign::Cell if may_end(&bytes[..at - padding(&bytes[..at])]) => {
                let before = &bytes[..at - padding(&bytes[..at])];
                if let Some(name) = name(before, true) {
                    table(bytes, at, &name, &mut done, spans);
                }
                at += 1;
                continue;
            }
            Sign::Other => assigned(&mut bare, at),
            Sign::Space if may_end(&bytes[..at]) => flagged(&mut bare, at),
            Sign::None | Sign::Space | Sign::Cell => {
                at += 1;
                continue;
            }
        };
        match found {
            Some(span) => {
                at = span.end;
                spans.push(span);
            }
            None => at += 1,
        }
    }
}

/// The role of a byte between a name and its value.
#[derive(Clone, Copy)]
enum Sign {
    None,
    Space,
    /// `|`, which ends a cell of a table.
    Cell,
    Other,
}

static SIGNS: [Sign; 256] = {
    let mut signs = [Sign::None; 256];
    signs[b' ' as usize] = Sign::Space;
    signs[b'|' as usize] = Sign::Cell;
    signs[b'=' as usize] = Sign::Other;
    signs[b':' as usize] = Sign::Other;
    signs[b'>' as usize] = Sign::Other;
    signs[b',' as usize] = Sign::Other;
    signs
};

/// The blanks and the emphasis at the end of a cell.
fn padding(cell: &[u8]) -> usize {
    cell.iter().rev().take(24).take_while(|byte| b" *`".contains(byte)).count()
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
    let compared = sign == b'=' && (bytes.get(right) == Some(&b'=') || left < at && bytes[left] == b'=');
    while matches!(bytes.get(right), Some(b'=' | b'>')) && right - at < 3 && sign != b'>' {
        right += 1;
    }
    let before = &bytes[..left];
    let spaces = before.iter().rev().take(24).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let before = &before[..left - spaces];
    let closers = before.iter().rev().take(8).take_while(|byte| b"\"'`\\])*".contains(byte)).count();
    let quoted_name = before.iter().rev().take(closers).any(|byte| matches!(byte, b'"' | b'\''));
    let name = name(&before[..before.len() - closers], sign == b':')?;
    match sign {
        // `f("name", "value")`; other commas only list.
        b',' if !quoted_name => return None,
        // `<name>value<`
        b'>' if !before[..before.len() - name.text.len()].ends_with(b"<") => return None,
        _ => {}
    }
    let context = Assignment {
        quotes_only: compared || sign == b',',
        // A name in capitals, or `a=b` without spaces, is not code, where the value would be another name.
        plain: name.capitals || (sign == b'=' && spaces == 0) || sign == b'>',
        colon: sign == b':',
        element: sign == b'>',
        first: is_first(&before[..before.len() - name.text.len()]),
    };
    value(bare, right, &name, &context)
}

/// `--name value`, and netrc's `password value`. The space is at `at`, after what may be the end of a name.
fn flagged(bare: &mut Bare, at: usize) -> Option<Span> {
    let bytes = bare.bytes;
    let before = &bytes[..at];
    let length = before.iter().rev().take(NAME).take_while(|byte| CharClass::Url.has(**byte)).count();
    let word = &before[at - length..];
    let dashed = word.starts_with(b"--");
    let netrc = word == b"password" && {
        let line = &before[at.saturating_sub(200)..];
        memchr::memmem::find(line, b"login ").is_some()
    };
    // `ENV NAME value` of a Dockerfile, `setx NAME value`.
    let set = length >= 4 && !word.iter().any(u8::is_ascii_lowercase) && {
        let verb = &before[..at - length];
        verb.ends_with(b"ENV ") || verb.ends_with(b"setx ")
    };
    if !(dashed || netrc || set) {
        return None;
    }
    let name = name(before, false)?;
    value(
        bare,
        at + 1,
        &name,
        &Assignment { quotes_only: false, plain: true, colon: false, element: false, first: false },
    )
}

/// What the characters around a name say about its value.
struct Assignment {
    quotes_only: bool,
    /// Not in code: the value is not another name.
    plain: bool,
    colon: bool,
    /// `<name>value</name>`
    element: bool,
    /// The name is the first word of its line.
    first: bool,
}

/// The value after `from`, if it is a secret.
fn value(bare: &mut Bare, from: usize, name: &SecretName, context: &Assignment) -> Option<Span> {
    let bytes = bare.bytes;
    let mut start = from;
    start += spaces(bytes, start);
    // Markdown: **Password:** `value`
    if context.colon {
        start += bytes[start..].iter().take(3).take_while(|byte| matches!(byte, b'*' | b' ')).count();
    }
    // `name: Type = value`
    if context.colon
        && let Some(typed) = behind_type(bytes, start)
    {
        start = typed + spaces(bytes, typed);
    }
    // `Some("value")`, `b"value"`, `String::from("value")`
    let call = bytes[start..]
        .iter()
        .take(40)
        .take_while(|byte| CharClass::Word.has(**byte) || **byte == b':')
        .count();
    let open = start + call + usize::from(call > 1 && bytes.get(start + call) == Some(&b'('));
    if let Some(quoted) = Quoted::at(bytes, open)
        && (open > start + call || call <= 2)
    {
        let (start, end) = (quoted.start, quoted.end?);
        let start = start + scheme(&bytes[start..end], name);
        return name.accepts(&bytes[start..end], true).then(|| name.span(start, end))?;
    }
    if context.quotes_only {
        return None;
    }
    start += scheme(&bytes[start..bytes.len().min(start + 16)], name);
    let mut end = bare.end(start);
    if context.element && !bytes[end..].starts_with(b"</") {
        return None;
    }
    // A call, an index, a generic type: code.
    if matches!(bytes.get(end), Some(b'(' | b'[' | b'{' | b'<')) && !context.plain {
        return None;
    }
    while end > start && b".,:!?".contains(&bytes[end - 1]) {
        end -= 1;
    }
    if end - start > VALUE {
        return None;
    }
    let word = &bytes[start..end];
    let literal = context.plain || context.colon && at_line_end(bytes, end);
    // An identifier is a value only outside of code, or if no person would write it.
    let identifier = word.iter().all(|byte| CharClass::Word.has(*byte) || *byte == b'.');
    // What a person made up: alone on its line, or in a list of `name=value;`.
    let alone = (context.colon || context.first) && at_line_end(bytes, end);
    let made_up = (alone || context.plain && bytes.get(end) == Some(&b';')) && chosen(word);
    let readable = made_up || literal && (!identifier || context.plain && !code_like(bytes, end));
    let is_name_of_code = identifier && !literal && !made_up && word.len() < 20;
    if is_name_of_code || !name.accepts(word, readable) {
        return None;
    }
    name.span(start, end)
}

/// Does only the margin of a line come before it: blanks, a sign of a diff, of a list, of a comment?
fn is_first(before: &[u8]) -> bool {
    let margin = before.iter().rev().take(40).take_while(|byte| b" \t+-#;$".contains(byte)).count();
    matches!(before[..before.len() - margin], [] | [.., b'\n'])
}

fn spaces(bytes: &[u8], from: usize) -> usize {
    bytes[from.min(bytes.len())..].iter().take(32).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// Arguments and lists continue after a name; values in shells and env files do not.
fn code_like(bytes: &[u8], end: usize) -> bool {
    matches!(bytes.get(end), Some(b',' | b')' | b';' | b'}' | b']' | b'(' | b'['))
}

fn at_line_end(bytes: &[u8], end: usize) -> bool {
    let rest = &bytes[end + spaces(bytes, end)..];
    matches!(rest, [] | [b'\n' | b'\r' | b'#' | b'`' | b'"' | b'.', ..] | [b'\\', b'n' | b'r', ..])
}

/// The position of the value in `Type = value`, with `Type` at `from`.
fn behind_type(bytes: &[u8], from: usize) -> Option<usize> {
    let typed = |byte: &u8| CharClass::Word.has(*byte) || b"&<>:.'?|[]".contains(byte);
    let many = bytes[from..].iter().take(40).take_while(|byte| typed(byte)).count();
    let at = from + many + spaces(bytes, from + many);
    (many > 0 && bytes.get(at) == Some(&b'=') && bytes.get(at + 1) != Some(&b'=')).then_some(at + 1)
}

/// The length of `Bearer ` or another scheme before the value of an authorization.
fn scheme(value: &[u8], name: &SecretName) -> usize {
    const SCHEMES: &[&[u8]] =
        &[b"bearer ", b"basic ", b"token ", b"bot ", b"apikey ", b"key ", b"token token=", b"discogs token="];
    let starts =
        |scheme: &&&[u8]| value.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    if !name.authorizes() {
        return 0;
    }
    SCHEMES.iter().filter(starts).map(|scheme| scheme.len()).max().unwrap_or(0)
}

/// A string in quotes, also inside another string: `\"…\"`.
struct Quoted {
    start: usize,
    /// `None` if it does not end on its line.
    end: Option<usize>,
}

impl Quoted {
    fn at(bytes: &[u8], from: usize) -> Option<Quoted> {
        let depth = bytes[from.min(bytes.len())..].iter().take(16).take_while(|byte| **byte == b'\\').count();
        let quote = *bytes.get(from + depth).filter(|byte| matches!(byte, b'"' | b'\'' | b'`'))?;
        let triple = bytes[from + depth..].starts_with(&[quote; 3]);
        let start = from + depth + if triple { 3 } else { 1 };
        let rest = &bytes[start..bytes.len().min(start + VALUE)];
        for at in memchr::memchr2_iter(quote, b'\n', rest) {
            let slashes = rest[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
            if rest[at] == b'\n' {
                break;
            }
            // More backslashes than at the start: a quote inside the string.
            if slashes <= depth {
                return Some(Quoted { start, end: Some(start + at - slashes) });
            }
        }
        Some(Quoted { start, end: None })
    }
}

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
                b'"' | b'\'' | b'`' | b'\\' | b'<' | b'>' | b'(' | b')' | b'[' | b']' | b'{' | b'}'
                | b',' | b';' => true,
                // `id|secret`, `secret | next`
                b'|' => !self.bytes.get(*at + 1).is_some_and(u8::is_ascii_alphanumeric),
                // `?key=value&other=value`, `first && second`
                b'&' => true,
                byte => byte.is_ascii_whitespace() || byte == 0x1b,
            };
            self.start = from;
            self.end = (from..self.bytes.len()).find(stop).unwrap_or(self.bytes.len());
        }
        self.end
    }
}
