//! Secrets in files that say elsewhere what a value is: a Kubernetes secret, a pair of name and value, a table, a
//! cookie, an address, a line of `.pgpass`.

use memchr::{memchr, memmem};

use crate::memory::redact::chars::{BASE64, DOTTED, URL, inner, leading, trailing, until};
use crate::memory::redact::names::{NAMES, SecretName};
use crate::memory::redact::near::{Done, Near, Span};
use crate::memory::redact::value::{chosen, made, placeholder, random, varied};

/// The longest document and the longest table, in bytes.
const DOCUMENT: usize = 64 * 1024;

/// So many bytes from there on, or fewer at the end.
fn from(bytes: &[u8], start: usize, most: usize) -> &[u8] {
    &bytes[start.min(bytes.len())..bytes.len().min(start + most)]
}

/// `user:password@` after `://`, or only a token before the `@`.
pub(super) fn url_login(near: &mut Near) {
    let authority = until(from(near.bytes, near.end, 512), |byte| {
        byte.is_ascii_whitespace() || b"/\"'`<>\\|(),;?#".contains(&byte)
    });
    let Some(at) = memchr::memrchr(b'@', authority) else { return };
    let login = &authority[..at];
    match memchr(b':', login) {
        Some(colon) => {
            let (user, secret) = (&login[..colon], &login[colon + 1..]);
            let plain = [&b"pass"[..], b"pw", b"pwd", b"p", b"token", user].contains(&secret);
            if !plain && !placeholder(secret) {
                near.push(near.end + colon + 1, near.end + at);
            }
        }
        None if login.len() >= 20 && random(login) => near.push_as("url-token", near.end, near.end + at),
        None => {}
    }
}

/// The values under `data` and `stringData` of a Kubernetes secret, whatever their keys.
pub(super) fn kubernetes(near: &mut Near) {
    if near.at < near.done.document {
        return;
    }
    let bytes = near.bytes;
    let floor = near.done.document.max(near.at.saturating_sub(DOCUMENT));
    let start = memmem::rfind(&bytes[floor..near.at], b"\n---").map_or(floor, |at| floor + at + 1);
    let rest = from(bytes, near.end, DOCUMENT);
    let end = near.end + memmem::find(rest, b"\n---").unwrap_or(rest.len());
    near.done.document = end;
    let mut section: Option<usize> = None;
    let mut at = start;
    for line in bytes[start..end].split_inclusive(|byte| *byte == b'\n') {
        let indent = leading(line, line.len(), |byte| b" \t+-".contains(&byte));
        let text = line[indent..].trim_ascii_end();
        for key in ["\"data\"", "\"stringData\""] {
            if let Some(json) = memmem::find(line, key.as_bytes()) {
                object(near, at + json);
            }
        }
        match (text, section) {
            (b"data:" | b"stringData:", _) => section = Some(indent),
            ([], _) => {}
            (_, Some(depth)) if indent <= depth => section = None,
            (_, Some(_)) => pair(near, at + indent, text),
            _ => {}
        }
        at += line.len();
    }
}

/// `key: value` of a secret.
fn pair(near: &mut Near, start: usize, text: &[u8]) {
    let Some(colon) = memmem::find(text, b": ") else { return };
    let (lead, value) = inner(&text[colon + 1..], |byte| b" \"',".contains(&byte));
    if value.len() >= 4 && !placeholder(value) && value != b"null" {
        let from = start + colon + 1 + lead;
        near.push(from, from + value.len());
    }
}

/// The strings of a flat JSON object behind its key.
fn object(near: &mut Near, at: usize) {
    let rest = from(near.bytes, at, DOCUMENT);
    let Some(open) = memchr(b'{', rest).filter(|open| *open < 24) else { return };
    let Some(close) = memchr(b'}', &rest[open..]) else { return };
    let quotes: Vec<usize> =
        memchr::memchr_iter(b'"', &rest[open..open + close]).map(|quote| at + open + quote).collect();
    for pair in quotes.chunks_exact(4) {
        let (from, to) = (pair[2] + 1, pair[3]);
        if to >= from + 4 && !placeholder(&near.bytes[from..to]) {
            near.push(from, to);
        }
    }
}

/// `name: DB_PASSWORD` and then `value: …`, in YAML, JSON and attributes of XML, and `<Password><Value>`.
pub(super) fn named_value(near: &mut Near) {
    let behind = near.behind();
    let lead = leading(behind, 12, |byte| b"\"':= \\>".contains(&byte));
    if !behind[..lead].iter().any(|byte| b":=>".contains(byte)) {
        return;
    }
    let before = &near.bytes[near.at.saturating_sub(160)..near.at];
    let named = match before.strip_suffix(b"<").filter(|_| behind.starts_with(b">")) {
        Some(outer) => {
            let outer = outer.strip_suffix(b">").unwrap_or_default();
            memchr::memrchr(b'<', outer).map(|at| &outer[at + 1..])
        }
        // Nothing but the name's own value may stand between.
        None => ["name", "key", "Name", "Key", "NAME"]
            .iter()
            .filter_map(|word| memmem::rfind(before, word.as_bytes()).map(|at| at + word.len()))
            .max()
            .map(|start| &before[start..])
            .filter(|between| memchr::memchr_iter(b'\n', between).count() <= 1)
            .map(|between| &between[leading(between, between.len(), |byte| b"\"':= \\".contains(&byte))..])
            .map(|name| until(name, |byte| !DOTTED.has(byte))),
    };
    let Some(found) = named.and_then(|text| NAMES.name(text, false)) else { return };
    let value = until(&behind[lead..], |byte| byte.is_ascii_whitespace() || b"\"'<\\,}".contains(&byte));
    if found.accepts(value, true) || chosen(value) && !placeholder(value) {
        let start = near.end + lead;
        near.push_as(found.kind(), start, start + value.len());
    }
}

/// The values of a Cookie or Set-Cookie header.
pub(super) fn cookies(near: &mut Near) {
    let behind = near.behind();
    if near.at < near.done.line {
        return;
    }
    near.done.line = near.end + behind.len();
    let end = memchr::memchr3(b'"', b'\'', b'\\', behind.get(4..).unwrap_or_default());
    let mut at = near.end;
    for part in behind[..end.map_or(behind.len(), |at| at + 4)].split(|byte| *byte == b';') {
        if let Some(equals) = memchr(b'=', part) {
            let quote = usize::from(part.get(equals + 1) == Some(&b'"'));
            let value = part[equals + 1 + quote..].trim_ascii_end();
            let digits = value.iter().any(u8::is_ascii_digit);
            if digits && random(value) && !placeholder(value) {
                near.push(at + equals + 1 + quote, at + equals + 1 + quote + value.len());
            }
        }
        at += part.len() + 1;
    }
}

/// A line of `.pgpass`: host, port, database, user, password.
pub(super) fn pgpass(near: &mut Near) {
    let (before, behind) = (near.before(), near.behind());
    if near.at < near.done.line {
        return;
    }
    let line = near.at - before.len();
    near.done.line = near.end + behind.len();
    let text = near.bytes[line..near.done.line].trim_ascii_end();
    let fields: Vec<&[u8]> = text.split(|byte| *byte == b':').collect();
    let [_, port, _, _, secret] = fields[..] else { return };
    let port = port == b"*" || port.iter().all(u8::is_ascii_digit);
    if port && fields.iter().all(|field| !field.is_empty() && !field.contains(&b' ')) && made(secret) {
        near.push(line + text.len() - secret.len(), line + text.len());
    }
}

/// The lines of a PuTTY key's private part.
pub(super) fn putty(near: &mut Near) {
    let many = std::str::from_utf8(near.behind()).unwrap_or_default().trim().parse().unwrap_or(0);
    let start = near.end + near.behind().len() + 1;
    let mut end = start;
    for line in from(near.bytes, start, DOCUMENT).split_inclusive(|byte| *byte == b'\n').take(many.min(256)) {
        let key = line.trim_ascii();
        if key.is_empty() || !key.iter().all(|byte| BASE64.has(*byte)) {
            break;
        }
        end += line.len();
    }
    if end > start {
        near.push(start, start + near.bytes[start..end].trim_ascii_end().len());
    }
}

/// The private members of a JSON Web Key.
pub(super) fn jwk(near: &mut Near) {
    let lead = leading(near.behind(), 4, |byte| b" \"".contains(&byte));
    let start = near.end + lead;
    let around = &near.bytes[near.at.saturating_sub(1200)..near.bytes.len().min(near.end + 1200)];
    let value = until(from(near.bytes, start, 2048), |byte| !URL.has(byte));
    if value.len() >= 20 && varied(value) && memmem::find(around, b"\"kty\"").is_some() {
        near.push(start, start + value.len());
    }
}

/// The column of passwords under a header of comma-separated values.
pub(super) fn csv(near: &mut Near) {
    let line = near.at - near.before().len();
    let header = &near.bytes[line..near.end + near.behind().len()];
    if header.len() > 200 || near.at < near.done.table {
        return;
    }
    let name = near.word()[1..].to_ascii_lowercase();
    let is_named = |cell: &[u8]| cell.trim_ascii().eq_ignore_ascii_case(&name);
    let Some(column) = header.split(|byte| *byte == b',').position(is_named) else { return };
    let (cells, end) = cells(near.bytes, line + header.len() + 1, b',', column);
    for (start, cell) in cells {
        if chosen(cell) || random(cell) {
            near.push(start, start + cell.len());
        }
    }
    near.done.table = end;
}

/// The cells of a column in the rows from `start` on, each with its place, and the end of the rows.
fn cells(bytes: &[u8], start: usize, sign: u8, column: usize) -> (Vec<(usize, &[u8])>, usize) {
    let (mut cells, mut at) = (Vec::new(), start);
    for row in from(bytes, start, DOCUMENT).split_inclusive(|byte| *byte == b'\n') {
        // Where the cell before it ends.
        let before = column.checked_sub(1).map(|column| memchr::memchr_iter(sign, row).nth(column));
        let Some(start) = before.map_or(Some(0), |before| before.map(|at| at + 1)) else { break };
        cells.push((at + start, until(&row[start..], |byte| byte == sign).trim_ascii_end()));
        at += row.len();
    }
    (cells, at)
}

/// `|---|:--|`
fn is_separator(text: &[u8]) -> bool {
    let line = until(text, |byte| byte == b'\n');
    line.contains(&b'|') && line.contains(&b'-') && line.iter().all(|byte| b"|-: \r".contains(byte))
}

/// The cells of a Markdown table below a header or beside a name. The `|` behind the name is at `at`.
pub(super) fn table(bytes: &[u8], at: usize, found: &SecretName, done: &mut Done, spans: &mut Vec<Span>) {
    let line = at - trailing(&bytes[..at], 400, |byte| byte != b'\n');
    if !bytes[line..].trim_ascii_start().starts_with(b"|") {
        return;
    }
    // The cell beside it, and the rows below it.
    let rest = until(from(bytes, at + 1, 399), |byte| byte == b'\n');
    let mut found_cells = Vec::new();
    if let Some(end) = memchr(b'|', rest) {
        found_cells.push((at + 1, &rest[..end]));
    }
    let below = at + 1 + rest.len() + 1;
    if (at >= done.table || line == done.header) && is_separator(from(bytes, below, DOCUMENT)) {
        let column = memchr::memchr_iter(b'|', &bytes[line..at]).count();
        let (below, end) = cells(bytes, below, b'|', column);
        found_cells.extend(below);
        (done.table, done.header) = (end, line);
    }
    for (start, cell) in found_cells {
        let (lead, value) = inner(cell, |byte| b" `*\t\r".contains(&byte));
        if chosen(value) || random(value) && found.accepts(value, true) {
            spans.extend(found.span(start + lead, start + lead + value.len()));
        }
    }
}
