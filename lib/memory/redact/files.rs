//! Secrets in files that say elsewhere what a value is: a Kubernetes secret, a pair of name and value, a table, a
//! cookie, an address.

use memchr::{memchr, memmem, memrchr};

use crate::memory::redact::chars::{BASE64, DOTTED, URL, inner, leading, past, trailing, until};
use crate::memory::redact::names::{NAMES, SecretName};
use crate::memory::redact::near::{Done, Near, Span, from, place};
use crate::memory::redact::value::{chosen, made, placeholder, random, varied};

/// The longest document and the longest table, in bytes.
const DOCUMENT: usize = 64 * 1024;

/// A line of `.pgpass`: host, port, database, user, password.
pub(super) fn pgpass(near: &mut Near) {
    if near.at < near.done.line {
        return;
    }
    let start = near.at - near.before().len();
    near.done.line = near.end + near.behind().len();
    let text = near.bytes[start..near.done.line].trim_ascii_end();
    let fields: Vec<&[u8]> = text.split(|byte| *byte == b':').collect();
    let [_, port, _, _, secret] = fields[..] else { return };
    let is_port = port == b"*" || port.iter().all(u8::is_ascii_digit);
    if is_port && fields.iter().all(|field| !field.is_empty() && !field.contains(&b' ')) && made(secret) {
        near.push(secret);
    }
}

/// `user:password@` after `://`, or only a token before the `@`.
pub(super) fn url_login(near: &mut Near) {
    let authority = until(from(near.bytes, near.end, 512), |byte| {
        byte.is_ascii_whitespace() || b"/\"'`<>\\|(),;?#".contains(&byte)
    });
    let Some(login) = memrchr(b'@', authority).map(|at| &authority[..at]) else { return };
    match memchr(b':', login) {
        Some(colon) => {
            let (user, secret) = (&login[..colon], &login[colon + 1..]);
            let plain = [&b"pass"[..], b"pw", b"pwd", b"p", b"token", user].contains(&secret);
            if !plain && !placeholder(secret) {
                near.push(secret);
            }
        }
        None if login.len() >= 20 && random(login) => near.push_as("url-token", login),
        None => {}
    }
}

/// The values under `data` and `stringData` of a Kubernetes secret, whatever their keys.
pub(super) fn kubernetes(near: &mut Near) {
    if near.at < near.done.document {
        return;
    }
    let floor = near.done.document.max(near.at.saturating_sub(DOCUMENT));
    let start = memmem::rfind(&near.bytes[floor..near.at], b"\n---").map_or(floor, |at| floor + at + 1);
    let rest = from(near.bytes, near.end, DOCUMENT);
    near.done.document = near.end + memmem::find(rest, b"\n---").unwrap_or(rest.len());
    let mut section: Option<usize> = None;
    for line in near.bytes[start..near.done.document].split_inclusive(|byte| *byte == b'\n') {
        let indent = leading(line, line.len(), |byte| b" \t+-".contains(&byte));
        for key in ["\"data\"", "\"stringData\""] {
            if let Some(json) = memmem::find(line, key.as_bytes()) {
                object(near, place(near.bytes, line) + json);
            }
        }
        match (line[indent..].trim_ascii_end(), section) {
            (b"data:" | b"stringData:", _) => section = Some(indent),
            ([], _) => {}
            (_, Some(depth)) if indent <= depth => section = None,
            (text, Some(_)) => {
                if let Some(colon) = memmem::find(text, b": ") {
                    held(near, inner(&text[colon + 1..], b" \"',"));
                }
            }
            _ => {}
        }
    }
}

/// A value in a Kubernetes secret.
fn held(near: &mut Near, value: &[u8]) {
    if value.len() >= 4 && !placeholder(value) {
        near.push(value);
    }
}

/// The strings of a flat JSON object behind its key.
fn object(near: &mut Near, at: usize) {
    let rest = from(near.bytes, at, DOCUMENT);
    let Some(open) = memchr(b'{', rest).filter(|open| *open < 24) else { return };
    let Some(close) = memchr(b'}', &rest[open..]) else { return };
    let parts: Vec<&[u8]> = rest[open..open + close].split(|byte| *byte == b'"').collect();
    // What stands before a key, the key, the colon, and its value, if a quote ends it.
    parts[..parts.len() - 1].chunks_exact(4).for_each(|pair| held(near, pair[3]));
}

/// `name: DB_PASSWORD` and then `value: …`, in YAML, JSON and attributes of XML, and `<Password><Value>`.
pub(super) fn named_value(near: &mut Near) {
    let behind = near.behind();
    let value = past(behind, b"\"':= \\>");
    if !behind[..behind.len() - value.len()].iter().any(|byte| b":=>".contains(byte)) {
        return;
    }
    let before = near.some_before(160);
    let named = match before.strip_suffix(b"<").filter(|_| behind.starts_with(b">")) {
        Some(outer) => {
            let outer = outer.strip_suffix(b">").unwrap_or_default();
            memrchr(b'<', outer).map(|at| &outer[at + 1..])
        }
        // Nothing but the name's own value may stand between.
        None => ["name", "key", "Name", "Key", "NAME"]
            .iter()
            .filter_map(|word| memmem::rfind(before, word.as_bytes()).map(|at| at + word.len()))
            .max()
            .map(|start| &before[start..])
            .filter(|between| memchr::memchr_iter(b'\n', between).count() <= 1)
            .map(|between| until(past(between, b"\"':= \\"), |byte| !DOTTED.has(byte))),
    };
    let Some(found) = named.and_then(|text| NAMES.name(text, false)) else { return };
    let value = until(value, |byte| byte.is_ascii_whitespace() || b"\"'<\\,}".contains(&byte));
    if found.accepts(value, true) || chosen(value) && !placeholder(value) {
        near.push_as(found.kind(), value);
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
    for part in behind[..end.map_or(behind.len(), |at| at + 4)].split(|byte| *byte == b';') {
        let Some(equals) = memchr(b'=', part) else { continue };
        let value = part[equals + 1..].trim_ascii_end();
        let value = value.strip_prefix(b"\"").unwrap_or(value);
        if value.iter().any(u8::is_ascii_digit) && random(value) && !placeholder(value) {
            near.push(value);
        }
    }
}

/// The lines of a PuTTY key's private part.
pub(super) fn putty(near: &mut Near) {
    let many = std::str::from_utf8(near.behind()).unwrap_or_default().trim().parse().unwrap_or(0);
    let lines = from(near.bytes, near.end + near.behind().len() + 1, DOCUMENT);
    let is_key = |line: &&[u8]| {
        let key = line.trim_ascii();
        !key.is_empty() && key.iter().all(|byte| BASE64.has(*byte))
    };
    let keys = lines.split_inclusive(|byte| *byte == b'\n').take(many.min(256)).take_while(is_key);
    let key = lines[..keys.map(<[u8]>::len).sum()].trim_ascii_end();
    if !key.is_empty() {
        near.push(key);
    }
}

/// The private members of a JSON Web Key.
pub(super) fn jwk(near: &mut Near) {
    let value = until(past(from(near.bytes, near.end, 2048), b" \""), |byte| !URL.has(byte));
    let around = from(near.bytes, near.at.saturating_sub(1200), 2400);
    if value.len() >= 20 && varied(value) && memmem::find(around, b"\"kty\"").is_some() {
        near.push(value);
    }
}

/// The column of passwords under a header of comma-separated values.
pub(super) fn csv(near: &mut Near) {
    let line = near.at - near.before().len();
    let header = &near.bytes[line..near.end + near.behind().len()];
    if header.len() > 200 || near.at < near.done.table {
        return;
    }
    let is_named = |cell: &[u8]| cell.trim_ascii().eq_ignore_ascii_case(&near.word()[1..]);
    let Some(column) = header.split(|byte| *byte == b',').position(is_named) else { return };
    let (cells, end) = cells(near.bytes, line + header.len() + 1, b',', column);
    cells.into_iter().filter(|cell| chosen(cell) || random(cell)).for_each(|cell| near.push(cell));
    near.done.table = end;
}

/// The cells of a column in the rows from `start` on, and the end of the rows.
fn cells(bytes: &[u8], start: usize, sign: u8, column: usize) -> (Vec<&[u8]>, usize) {
    let (mut cells, mut end) = (Vec::new(), start);
    for row in from(bytes, start, DOCUMENT).split_inclusive(|byte| *byte == b'\n') {
        let Some(cell) = row.split(|byte| *byte == sign).nth(column) else { break };
        cells.push(cell.trim_ascii_end());
        end += row.len();
    }
    (cells, end)
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
    let mut found_cells: Vec<&[u8]> = memchr(b'|', rest).map(|end| &rest[..end]).into_iter().collect();
    let below = at + 1 + rest.len() + 1;
    if (at >= done.table || line == done.header) && is_separator(from(bytes, below, DOCUMENT)) {
        let column = memchr::memchr_iter(b'|', &bytes[line..at]).count();
        let (below, end) = cells(bytes, below, b'|', column);
        found_cells.extend(below);
        (done.table, done.header) = (end, line);
    }
    let values = found_cells.into_iter().map(|cell| inner(cell, b" `*\t\r"));
    let values = values.filter(|value| chosen(value) || random(value) && found.accepts(value, true));
    spans.extend(values.map(|value| found.span(bytes, value)));
}
