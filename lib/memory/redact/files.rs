//! Secrets in files that say elsewhere what a value is: a Kubernetes secret, a pair of name and value, a table, a
//! cookie, an address.

use memchr::{memchr, memmem, memrchr};
use std::sync::LazyLock;

use crate::memory::redact::chars::{BASE64, URL, inner, leading, past, split_end, until};
use crate::memory::redact::names::NAMES;
use crate::memory::redact::near::{Near, from, place};
use crate::memory::redact::rules::words;
use crate::memory::redact::value::{chosen, placeholder, random, varied};

/// The longest document and the longest table, in bytes.
const DOCUMENT: usize = 64 * 1024;

/// `user:password@` after `://`, or only a token before the `@`.
pub(super) fn url_login(near: &mut Near) {
    let authority = until(from(near.bytes, near.end, 512), |byte| {
        byte.is_ascii_whitespace() || b"/\"'`<>\\|(),;?#".contains(&byte)
    });
    let Some(login) = memrchr(b'@', authority).map(|at| &authority[..at]) else { return };
    match memchr(b':', login) {
        Some(colon) => {
            let (user, secret) = (&login[..colon], &login[colon + 1..]);
            near.offer(secret, ![&b"pass"[..], b"pw", b"pwd", b"p", b"token", user].contains(&secret));
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
        for key in [&b"\"data\""[..], b"\"stringData\""] {
            if let Some(json) = memmem::find(line, key) {
                object(near, place(near.bytes, line) + json);
            }
        }
        match (line[indent..].trim_ascii_end(), section) {
            (b"data:" | b"stringData:", _) => section = Some(indent),
            ([], _) => {}
            (_, Some(depth)) if indent <= depth => section = None,
            (text, Some(_)) => {
                if let Some(colon) = memmem::find(text, b": ") {
                    let value = inner(&text[colon + 1..], b" \"',");
                    near.offer(value, value.len() >= 4);
                }
            }
            _ => {}
        }
    }
}

/// The strings of a flat JSON object behind its key.
fn object(near: &mut Near, at: usize) {
    let rest = from(near.bytes, at, DOCUMENT);
    let Some(open) = memchr(b'{', rest).filter(|open| *open < 24) else { return };
    let Some(close) = memchr(b'}', &rest[open..]) else { return };
    let parts: Vec<&[u8]> = rest[open..open + close].split(|byte| *byte == b'"').collect();
    // What stands before a key, the key, the colon, and its value, if a quote ends it.
    parts[..parts.len() - 1].chunks_exact(4).for_each(|pair| near.offer(pair[3], pair[3].len() >= 4));
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
        near.offer(value, value.iter().any(u8::is_ascii_digit) && random(value));
    }
}

/// The lines of a PuTTY key's private part.
pub(super) fn putty(near: &mut Near) {
    let many = std::str::from_utf8(near.behind()).unwrap_or_default().trim().parse().unwrap_or(0);
    let lines = near.below(DOCUMENT);
    let is_key = |line: &&[u8]| {
        let key = line.trim_ascii();
        !key.is_empty() && key.iter().all(|byte| BASE64.has(*byte))
    };
    let keys = lines.split_inclusive(|byte| *byte == b'\n').take(many.min(256)).take_while(is_key);
    near.push(lines[..keys.map(<[u8]>::len).sum()].trim_ascii_end());
}

/// The private members of a JSON Web Key.
pub(super) fn jwk(near: &mut Near) {
    let value = until(past(from(near.bytes, near.end, 2048), b" \""), |byte| !URL.has(byte));
    let around = from(near.bytes, near.at.saturating_sub(1200), 2400);
    if value.len() >= 20 && varied(value) && memmem::find(around, b"\"kty\"").is_some() {
        near.push(value);
    }
}

/// The columns of secrets under a header of comma-separated values.
pub(super) fn csv(near: &mut Near) {
    let header = near.line();
    let sign = near.word().iter().copied().find(|byte| b";\t ".contains(byte)).unwrap_or(b',');
    let row = until(near.below(512), |byte| byte == b'\n');
    let (heads, row) = (fields(header, sign).len(), fields(row, sign).len());
    if header.len() < 200 && near.at >= near.done.table && row >= heads && heads > 1 {
        columns_of(near, header, sign);
    }
}

/// `INSERT INTO users (name, password) VALUES ('bob', 'SECRET')`
pub(super) fn inserted(near: &mut Near) {
    let rest = from(near.bytes, near.end, 2048);
    let list = |at: usize| Some(until(&rest[memchr(b'(', &rest[at..])? + at + 1..], |byte| byte == b')'));
    let Some(values) = memmem::find(&rest.to_ascii_lowercase(), b"values") else { return };
    let (Some(columns), Some(values)) = (list(0), list(values)) else { return };
    for (column, value) in columns.split(|byte| *byte == b',').zip(values.split(|byte| *byte == b',')) {
        let (name, value) = (inner(column, b" `\"[]\n"), inner(value, b" '\"\n"));
        if let Some(found) =
            NAMES.name(name, false).filter(|found| chosen(value) || found.accepts(value, true))
        {
            near.push_as(found.kind(), value);
        }
    }
}

/// The columns of secrets in a table: the line between its header and its rows is here.
pub(super) fn columns(near: &mut Near) {
    let separator = near.line();
    if near.at < near.done.table || !separator.iter().all(|byte| b"|-+:= \r".contains(byte) || *byte >= 0x80)
    {
        return;
    }
    let start = place(near.bytes, separator);
    near.done.table = start + separator.len();
    let above = near.bytes[..start].strip_suffix(b"\n").unwrap_or_default();
    let (_, header) = split_end(above, 400, |byte| byte != b'\n');
    let sign = if header.contains(&b'|') { b'|' } else { 0x82 };
    columns_of(near, header, sign);
}

/// The rows begin in the next line. If one cell of such a column looks like a secret, all are.
fn columns_of(near: &mut Near, header: &[u8], sign: u8) {
    let heads = fields(header, sign);
    let is_head = |head: &&[u8]| {
        let text = inner(head, BESIDE);
        text.len() <= 32
            && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_- ".contains(byte) || *byte >= 0x80)
    };
    // A line of code ends in `;` or `,`.
    let is_empty = |head: &&[u8]| head.trim_ascii().is_empty();
    let is_code = match sign {
        b';' => heads.iter().any(|head| is_empty(head) || head.contains(&b' ')),
        b',' => heads.len() < 3 && heads.last().is_some_and(is_empty),
        _ => false,
    };
    if heads.len() < 2 || is_code || !heads.iter().all(is_head) {
        return;
    }
    let name = |(column, head): (usize, _)| Some((column, NAMES.name(inner(head, BESIDE), true)?));
    let named: Vec<_> = heads.iter().copied().enumerate().filter_map(name).collect();
    if named.is_empty() {
        return;
    }
    let below = near.below(DOCUMENT);
    let rows = below.split_inclusive(|byte| *byte == b'\n').map(|line| (line, fields(line, sign)));
    let rows: Vec<_> = rows.take_while(|(_, row)| row.len() == heads.len()).collect();
    let end = place(near.bytes, below) + rows.iter().map(|(line, _)| line.len()).sum::<usize>();
    near.done.table = near.done.table.max(end);
    for (column, found) in named {
        let cells = || rows.iter().map(|(_, row)| inner(row[column].trim_ascii_end(), BESIDE));
        if cells().any(|cell| chosen(cell) || found.accepts(cell, true)) {
            let cells = cells().filter(|cell| cell.len() >= 4 && !placeholder(cell));
            cells.for_each(|cell| near.push_as(found.kind(), cell));
        }
    }
}

/// What stands beside the text of a cell: blanks, emphasis, and what is left of a line between cells.
const BESIDE: &[u8] = b" `*\t\r\"\xe2\x94\x95";

/// A row's cells. In quotes the sign is text.
fn fields(row: &[u8], sign: u8) -> Vec<&[u8]> {
    if sign == b' ' {
        let (mut fields, mut rest) = (Vec::new(), row.trim_ascii());
        while !rest.is_empty() {
            let (field, behind) = rest.split_at(memmem::find(rest, b"  ").unwrap_or(rest.len()));
            fields.push(field);
            rest = past(behind, b" ");
        }
        return fields;
    }
    let mut quoted = false;
    row.split(|byte| {
        quoted ^= *byte == b'"';
        *byte == sign && !quoted
    })
    .collect()
}

/// The secret beside the id of an access key: forty characters, on the same line or the next.
pub(super) fn aws_pair(near: &mut Near) {
    let around = from(near.bytes, near.end + 16, 120);
    let run = around.split(|byte| !BASE64.has(*byte)).find(|run| run.len() == 40);
    if let Some(secret) = run.filter(|run| random(run) && run.iter().any(u8::is_ascii_uppercase)) {
        near.push(secret);
    }
}

/// The strings of a list behind its name, or the lines below it: recovery codes, unseal keys.
pub(super) fn listed(near: &mut Near) {
    let rest = from(near.bytes, near.end, 2048);
    let list = memchr(b'[', &rest[..rest.len().min(12)]).and_then(|open| rest.get(open..memchr(b']', rest)?));
    let parts: Vec<&[u8]> = match list {
        Some(list) => list.split(|byte| *byte == b'"').skip(1).step_by(2).collect(),
        None => {
            let is_blank = |line: &&[u8]| line.trim_ascii().is_empty();
            let lines = rest.split(|byte| *byte == b'\n').skip(1).take(24).skip_while(is_blank);
            let lines = lines.take_while(|line| !is_blank(line) || line.len() > 200);
            let parts = lines.flat_map(|line| line.split(|byte| b" \t,|;".contains(byte)));
            parts.map(|part| inner(part, b"`*.\r\"'")).collect()
        }
    };
    // Any object may have keys.
    let is_any = near.word() == b"\"keys\"";
    let is_code = |part: &&[u8]| {
        (8..=256).contains(&part.len())
            && part.iter().any(u8::is_ascii_digit)
            && part.iter().all(|byte| BASE64.has(*byte))
            && !placeholder(part)
            && (!is_any || part.len() >= 32 && random(part))
    };
    parts.into_iter().filter(is_code).for_each(|part| near.push(part));
}

/// The codes of banks' accounts (IBAN): their length is their country's, and a check holds (ISO 13616).
pub(super) fn iban(near: &mut Near) {
    static LENGTHS: LazyLock<Vec<&str>> = LazyLock::new(|| words("iban"));
    let text = from(near.bytes, near.at, 44);
    let many = leading(text, 44, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ');
    let country = |known: &&&str| known.as_bytes()[..2] == text[..2];
    let length = LENGTHS.iter().find(country).map_or(0, |known| known[2..].parse().unwrap_or_default());
    let places: Vec<usize> = (0..many).filter(|at| text[*at] != b' ').take(length).collect();
    let value = |byte: u8| u64::from(if byte.is_ascii_digit() { byte - b'0' } else { byte - b'A' + 10 });
    let turned = places.iter().cycle().skip(4).take(places.len());
    let rest = turned
        .map(|at| value(text[*at]))
        .fold(0, |so_far, value| (so_far * if value > 9 { 100 } else { 10 } + value) % 97);
    let end = places.last().map_or(0, |last| last + 1);
    if places.len() == length && rest == 1 && !text.get(end).is_some_and(u8::is_ascii_alphanumeric) {
        near.push(&text[..end]);
    }
}
