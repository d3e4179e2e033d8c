//! Secrets in files that say elsewhere what a value is: a Kubernetes secret, a pair of name and value, a table, a
//! cookie, a line of `.pgpass`.

use memchr::memmem;

use crate::memory::redact::names::{SecretName, name};
use crate::memory::redact::near::{Done, Near};
use crate::memory::redact::span::{CharClass, Span};
use crate::memory::redact::value::{chosen, password, placeholder, random, varied};

/// The longest document and the longest table, in bytes.
const DOCUMENT: usize = 64 * 1024;

/// The values under `data` and `stringData` of a Kubernetes secret, whatever their keys.
pub(super) fn kubernetes(near: &mut Near) {
    if near.at < near.done.document {
        return;
    }
    let bytes = near.bytes;
    let floor = near.done.document.max(near.at.saturating_sub(DOCUMENT));
    let start = memmem::rfind(&bytes[floor..near.at], b"\n---").map_or(floor, |at| floor + at + 1);
    let rest = &bytes[near.end..bytes.len().min(near.end + DOCUMENT)];
    let end = near.end + memmem::find(rest, b"\n---").unwrap_or(rest.len());
    near.done.document = end;
    let mut section: Option<usize> = None;
    let mut at = start;
    for line in bytes[start..end].split_inclusive(|byte| *byte == b'\n') {
        let (from, indent) =
            (at, line.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'+' | b'-')).count());
        at += line.len();
        let text = line[indent..].trim_ascii_end();
        if let Some(json) =
            ["\"data\"", "\"stringData\""].iter().find_map(|key| memmem::find(line, key.as_bytes()))
        {
            object(near, from + json);
        }
        match (text, section) {
            (b"data:" | b"stringData:", _) => section = Some(indent),
            ([], _) => {}
            (_, Some(depth)) if indent <= depth => section = None,
            (_, Some(_)) => pair(near, from + indent, text),
            _ => {}
        }
    }
}

/// `key: value` of a secret.
fn pair(near: &mut Near, start: usize, text: &[u8]) {
    let Some(colon) = memmem::find(text, b": ") else { return };
    let lead = text[colon + 1..].iter().take_while(|byte| b" \"'".contains(byte)).count();
    let value = &text[colon + 1 + lead..];
    let value = &value[..value.len() - value.iter().rev().take_while(|byte| b" \"',".contains(byte)).count()];
    if value.len() >= 4 && !placeholder(value) && value != b"null" {
        let from = start + colon + 1 + lead;
        near.push(from, from + value.len(), "secret");
    }
}

/// The strings of a flat JSON object behind its key.
fn object(near: &mut Near, at: usize) {
    let rest = &near.bytes[at..near.bytes.len().min(at + DOCUMENT)];
    let Some(open) = memchr::memchr(b'{', rest).filter(|open| *open < 24) else { return };
    let Some(close) = memchr::memchr(b'}', &rest[open..]) else { return };
    let mut strings = Vec::new();
    let mut quotes = memchr::memchr_iter(b'"', &rest[open..open + close]);
    while let (Some(from), Some(to)) = (quotes.next(), quotes.next()) {
        strings.push((at + open + from + 1, at + open + to));
    }
    for pair in strings.chunks_exact(2) {
        let (from, to) = pair[1];
        if to >= from + 4 && !placeholder(&near.bytes[from..to]) {
            near.push(from, to, "secret");
        }
    }
}

/// `name: DB_PASSWORD` and then `value: …`, in YAML, JSON and attributes of XML, and `<Password><Value>`.
pub(super) fn named_value(near: &mut Near) {
    let (bytes, behind) = (near.bytes, near.behind());
    let lead = behind.iter().take(12).take_while(|byte| b"\"':= \\>".contains(byte)).count();
    if lead == 0 || !behind[..lead].iter().any(|byte| b":=>".contains(byte)) {
        return;
    }
    let before = &bytes[near.at.saturating_sub(160)..near.at];
    let element = before.ends_with(b"<") && behind.starts_with(b">");
    let named = if element {
        before
            .strip_suffix(b"><")
            .and_then(|outer| Some((memchr::memrchr(b'<', outer)?, outer)))
            .map(|(at, outer)| &outer[at + 1..])
    } else {
        let start = ["name", "key", "Name", "Key", "NAME"]
            .iter()
            .filter_map(|word| memmem::rfind(before, word.as_bytes()).map(|at| at + word.len()))
            .max();
        // Nothing but the name's own value may stand between.
        start
            .map(|start| &before[start..])
            .filter(|between| memchr::memchr_iter(b'\n', between).count() <= 1)
            .map(|between| {
                let from = between.iter().take_while(|byte| b"\"':= \\".contains(byte)).count();
                let between = &between[from..];
                let to =
                    between.iter().position(|byte| !(CharClass::Dotted.has(*byte))).unwrap_or(between.len());
                &between[..to]
            })
    };
    let Some(found) = named.and_then(|text| name(text, false)) else { return };
    let value = &behind[lead..];
    let stop = |byte: &u8| byte.is_ascii_whitespace() || b"\"'<\\,}".contains(byte);
    let value = &value[..value.iter().position(stop).unwrap_or(value.len())];
    let start = near.end + lead;
    if found.accepts(value, true) || chosen(value) && !placeholder(value) {
        near.push(start, start + value.len(), found.kind());
    }
}

/// The values of a Cookie or Set-Cookie header.
pub(super) fn cookies(near: &mut Near) {
    if near.at < near.done.line {
        return;
    }
    near.done.line = near.end + near.behind().len();
    let behind = near.behind();
    let end = memchr::memchr3(b'"', b'\'', b'\\', behind.get(4..).unwrap_or_default())
        .map_or(behind.len(), |at| at + 4);
    let mut at = 0;
    for part in behind[..end].split(|byte| *byte == b';') {
        let from = near.end + at;
        at += part.len() + 1;
        let Some(equals) = memchr::memchr(b'=', part) else { continue };
        let value = part[equals + 1..].trim_ascii_end();
        let value = value.strip_prefix(b"\"").unwrap_or(value);
        let digits = value.iter().any(u8::is_ascii_digit);
        if value.len() >= 12 && digits && !placeholder(value) && random(value) && !value.contains(&b' ') {
            let start = from + equals + 1 + usize::from(part.get(equals + 1) == Some(&b'"'));
            near.push(start, start + value.len(), "cookie");
        }
    }
}

/// `PHPSESSID=…`, a cookie that is known by its name.
pub(super) fn session(near: &mut Near) {
    value_here(near, 16, "cookie", |byte| CharClass::Percent.has(byte) || byte == b'.');
}

/// `?appid=…`, a parameter of an address. What follows must look made by a machine.
pub(super) fn query(near: &mut Near) {
    value_here(near, 16, "url-token", |byte| CharClass::Percent.has(byte) || b".|~:+/".contains(&byte));
}

fn value_here(near: &mut Near, least: usize, kind: &'static str, class: fn(u8) -> bool) {
    let behind = near.behind();
    let many = behind.iter().position(|byte| !class(*byte)).unwrap_or(behind.len());
    let value = &behind[..many];
    if value.len() >= least && random(value) && !placeholder(value) {
        near.push(near.end, near.end + many, kind);
    }
}

/// `psk=…`, `requirepass …`: what follows is the secret, to the end of the word.
pub(super) fn bare(near: &mut Near) {
    let behind = near.behind();
    let lead = behind.iter().take(2).take_while(|byte| b"\"'".contains(byte)).count();
    let value = &behind[lead..];
    let value = &value[..value
        .iter()
        .position(|byte| byte.is_ascii_whitespace() || b"\"'\\,;".contains(byte))
        .unwrap_or(value.len())];
    if !placeholder(value) && (password(value) || random(value)) {
        near.push(near.end + lead, near.end + lead + value.len(), "password");
    }
}

/// `X-Auth-Key: …`, `PAT: …`, `Splunk …`: a random value directly behind the word.
pub(super) fn machine_made(near: &mut Near) {
    let behind = near.behind();
    let lead = behind.iter().take(8).take_while(|byte| b" :=\"'\\`".contains(byte)).count();
    let value = &behind[lead..];
    let value = &value[..value.iter().position(|byte| !CharClass::Dotted.has(*byte)).unwrap_or(value.len())];
    if (lead > 0 || matches!(near.bytes[near.end - 1], b' ' | b':' | b'='))
        && value.len() >= 20
        && random(value)
        && value.iter().any(u8::is_ascii_digit)
    {
        near.push(near.end + lead, near.end + lead + value.len(), "token");
    }
}

/// `jdbc:oracle:thin:USER/SECRET@…`
pub(super) fn oracle(near: &mut Near) {
    let behind = near.behind();
    let Some(at) = memchr::memchr(b'@', behind) else { return };
    let Some(slash) = memchr::memchr(b'/', &behind[..at]) else { return };
    if !placeholder(&behind[slash + 1..at]) {
        near.push(near.end + slash + 1, near.end + at, "password");
    }
}

/// A line of `.pgpass`: host, port, database, user, password.
pub(super) fn pgpass(near: &mut Near) {
    if near.at < near.done.line {
        return;
    }
    near.done.line = near.end + near.behind().len();
    let before = near.before();
    let (line, behind) = (near.at - before.len(), near.behind());
    let text = &near.bytes[line..near.end + behind.len()];
    let text = text.trim_ascii_end();
    let fields: Vec<&[u8]> = text.split(|byte| *byte == b':').collect();
    let [_, port, _, _, secret] = fields[..] else { return };
    let port = port == b"*" || !port.is_empty() && port.iter().all(u8::is_ascii_digit);
    if port
        && fields.iter().all(|field| !field.is_empty() && !field.contains(&b' '))
        && !placeholder(secret)
        && (password(secret) || random(secret))
    {
        near.push(line + text.len() - secret.len(), line + text.len(), "password");
    }
}

/// The lines of a PuTTY key's private part.
pub(super) fn putty(near: &mut Near) {
    let lines = near.behind().trim_ascii();
    let Some(many) = std::str::from_utf8(lines).ok().and_then(|lines| lines.parse::<usize>().ok()) else {
        return;
    };
    let start = near.end + near.behind().len();
    let rest = &near.bytes[start..near.bytes.len().min(start + DOCUMENT)];
    let mut end = start;
    for line in rest.split_inclusive(|byte| *byte == b'\n').skip(1).take(many.min(256)) {
        let key = line.trim_ascii();
        if key.is_empty() || !key.iter().all(|byte| CharClass::Base64.has(*byte)) {
            break;
        }
        end = if end == start { start + usize::from(rest.first() == Some(&b'\n')) } else { end };
        end += line.len();
    }
    let text = near.bytes[start..end].trim_ascii_end();
    let lead = usize::from(text.first() == Some(&b'\n'));
    if text.len() > lead {
        near.push(start + lead, start + text.len(), "private-key");
    }
}

/// The private members of a JSON Web Key.
pub(super) fn jwk(near: &mut Near) {
    let around = &near.bytes[near.at.saturating_sub(1200)..near.bytes.len().min(near.end + 1200)];
    if memmem::find(around, b"\"kty\"").is_none() {
        return;
    }
    let behind = near.behind();
    let lead = behind.iter().take(4).take_while(|byte| b" \"".contains(byte)).count();
    let rest = &near.bytes[near.end + lead..];
    let many = rest.iter().take(2048).take_while(|byte| CharClass::Url.has(**byte)).count();
    if many >= 20 && varied(&rest[..many]) {
        near.push(near.end + lead, near.end + lead + many, "private-key");
    }
}

/// The column of passwords under a header of comma-separated values.
pub(super) fn csv(near: &mut Near) {
    let before = near.before();
    let line = near.at - before.len();
    let header = &near.bytes[line..near.end + near.behind().len()];
    if header.len() > 200 || near.at < near.done.table {
        return;
    }
    let column = header.split(|byte| *byte == b',').position(|cell| {
        ["password", "passwort", "passwd"]
            .iter()
            .any(|name| cell.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
    });
    let Some(column) = column else { return };
    let mut at = line + header.len() + 1;
    let end = near.bytes.len().min(at + DOCUMENT);
    for row in near.bytes.get(at..end).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
        let from = at;
        at += row.len();
        let cells: Vec<&[u8]> = row.trim_ascii_end().split(|byte| *byte == b',').collect();
        let Some(cell) = cells.get(column) else { break };
        let start = from + cells[..column].iter().map(|cell| cell.len() + 1).sum::<usize>();
        if chosen(cell) || random(cell) {
            near.push(start, start + cell.len(), "password");
        }
    }
    near.done.table = at;
}

/// `|---|:--|`
fn is_separator(text: &[u8]) -> bool {
    let line = &text[..memchr::memchr(b'\n', text).unwrap_or(text.len())];
    line.contains(&b'|') && line.contains(&b'-') && line.iter().all(|byte| b"|-: \r".contains(byte))
}

/// The cells of a Markdown table below a header or beside a name. The `|` behind the name is at `at`.
pub(super) fn table(bytes: &[u8], at: usize, found: &SecretName, done: &mut Done, spans: &mut Vec<Span>) {
    let line = at - bytes[at.saturating_sub(400)..at].iter().rev().take_while(|byte| **byte != b'\n').count();
    let mut accept = |start: usize, cell: &[u8]| {
        let lead = cell.iter().take_while(|byte| b" `*\t".contains(byte)).count();
        let value = &cell[lead..];
        let value =
            &value[..value.len() - value.iter().rev().take_while(|byte| b" `*\t\r".contains(byte)).count()];
        if chosen(value) || random(value) && found.accepts(value, true) {
            spans.extend(found.span(start + lead, start + lead + value.len()));
        }
    };
    if !matches!(bytes[line..].trim_ascii_start(), [b'|', ..]) {
        return;
    }
    // The cell beside it.
    let rest = &bytes[at + 1..bytes.len().min(at + 400)];
    let rest = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
    if let Some(end) = memchr::memchr(b'|', rest) {
        accept(at + 1, &rest[..end]);
    }
    // The rows below it.
    let below = at + 1 + rest.len() + 1;
    let Some(text) = bytes.get(below..bytes.len().min(below + DOCUMENT)) else { return };
    if at < done.table && line != done.header || !is_separator(text) {
        return;
    }
    let column = memchr::memchr_iter(b'|', &bytes[line..at]).count();
    let mut from = below;
    for row in text.split_inclusive(|byte| *byte == b'\n') {
        let cells: Vec<&[u8]> = row.split(|byte| *byte == b'|').collect();
        if cells.len() <= column {
            break;
        }
        let start = from + cells[..column].iter().map(|cell| cell.len() + 1).sum::<usize>();
        accept(start, cells[column].trim_ascii_end());
        from += row.len();
    }
    (done.table, done.header) = (from, line);
}
