//! Secrets by their names: `KEY=value`, `"key": "value"`, `key: value`, `--key value`, `<key>value</key>`, in
//! shells, env files, JSON (also inside a string), YAML, code and prose.
//!
//! The name must end in a word for secrets: `token_type` and `password_file` are something else. The value must look
//! like a secret, because most such names are in code, before other names.

use memchr::memmem;
use std::sync::LazyLock;

use crate::memory::redact::chars::{
    Class, LastRun, URL, WORD, count, inner, is_in, leading, split_end, trailing, until,
};
use crate::memory::redact::names::{NAME, NAMES, SecretName, VALUE};
use crate::memory::redact::near::{Span, from};
use crate::memory::redact::rules::words;
use crate::memory::redact::value::{chosen, dice, phrase, placeholder, random, strong, version};

pub(super) fn find(bytes: &[u8], spans: &mut Vec<Span>) {
    let names = &*NAMES;
    let mut bare = Bare { bytes, run: LastRun::default() };
    let mut at = 0;
    // A plain loop, because it runs for every byte of every note.
    while let Some(&sign) = bytes.get(at) {
        at += 1;
        if !SIGNS.has(sign) {
            continue;
        }
        let before = &bytes[..at - 1];
        let found = match sign {
            b' ' if names.may_end(before) => flagged(&mut bare, at - 1),
            b' ' => None,
            b'|' | b'<' | b'"' | b'\n' => match before.last() {
                Some(last) if BESIDE.has(*last) || names.may_end(before) => marked_up(bytes, at - 1),
                _ => None,
            },
            b'=' | b':' => assigned(&mut bare, at - 1),
            b',' if !before.ends_with(b"\"") => assigned(&mut bare, at - 1),
            _ => assigned(&mut bare, at - 1).or_else(|| marked_up(bytes, at - 1)),
        };
        if let Some(span) = found {
            at = span.end;
            spans.push(span);
        }
    }
}

/// What stands between a name and its value.
static SIGNS: Class = Class::of(" =:>,|<\"\\n");
/// Words of markup between a name and its value.
static MARKUP: LazyLock<Vec<&str>> = LazyLock::new(|| words("markup"));

/// A name, and what the characters around it say about its value.
struct Assignment<'a> {
    name: SecretName<'a>,
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
    // In LDIF, base64 follows `:: `.
    right += usize::from(sign == b':' && bytes[right..].starts_with(b": "));
    let (before, blanks) = split_end(&bytes[..left], 24, |byte| b" \t".contains(&byte));
    let (before, closers) = split_end(before, 8, |byte| b"\"'`\\])*".contains(&byte));
    // `key[16] = {…}`
    let (indexed, _) = split_end(before, 8, |byte| byte.is_ascii_digit());
    let before = indexed.strip_suffix(b"[").unwrap_or(before);
    let name = NAMES.name(before, sign == b':')?;
    let before = &before[..before.len() - name.text.len()];
    let assigns = match sign {
        // `f("name", "value")`; other commas only list.
        b',' => closers.iter().any(|byte| b"\"'".contains(byte)),
        // `arn:aws:secretsmanager:region:account:secret:name`, `auth::name`
        b':' => !before.ends_with(b":") && !bytes[right..].starts_with(b":"),
        // `<name>value<`
        b'>' => before.ends_with(b"<") || closers.len() == 1 && matches!(before, [.., b'=', b'"' | b'\'']),
        _ => true,
    };
    if !assigns {
        return None;
    }
    // A name in capitals, or `a=b` without spaces, is not code, where the value would be another name.
    let plain = name.in_capitals() || (sign == b'=' && blanks.is_empty()) || sign == b'>';
    let quotes_only = compared || sign == b',';
    let found = value(bare, right, &Assignment { name, sign, quotes_only, plain, first: is_first(before) })?;
    // `passwd 1:4.13+dfsg1-1`: no password with a number, but a version with an epoch.
    let epoch = trailing(&bytes[..at], 2, |byte| byte.is_ascii_digit());
    (epoch == 0 || !version(&bytes[at - epoch..found.end])).then_some(found)
}

/// `--name value`, and netrc's `password value`. The space is at `at`, after what may be the end of a name.
fn flagged(bare: &mut Bare, at: usize) -> Option<Span> {
    let before = &bare.bytes[..at];
    let (verb, word) = split_end(before, NAME, |byte| URL.has(byte));
    // `mechanism=password mfa=totp` of a log is a value itself.
    let netrc = || {
        word == b"password"
            && verb.last().is_none_or(u8::is_ascii_whitespace)
            && memmem::find(&before[at.saturating_sub(200)..], b"login ").is_some()
    };
    // `ENV NAME value` of a Dockerfile, `config set NAME value`.
    let set = word.len() >= 4
        && ["ENV ", "setx ", "#define ", " set ", "option ", "Env:"]
            .iter()
            .any(|set| verb.ends_with(set.as_bytes()));
    // `bindpw value`, alone on its line.
    let setting = is_first(verb);
    if !(word.starts_with(b"-") || set || setting || netrc()) {
        return None;
    }
    let name = NAMES.name(before, false)?;
    let context = Assignment { name, sign: b' ', quotes_only: false, plain: true, first: false };
    let found = value(bare, at + 1, &context)?;
    let is_setting = || at_line_end(bare.bytes, found.end) && !version(&bare.bytes[found.start..found.end]);
    (!setting || is_setting()).then_some(found)
}

/// `<td>name</td><td>value`, `| name | value |`, `name: NAME` and below it `value: …`, the field of a form: signs and words
/// of markup are between the name and its value.
fn marked_up(bytes: &[u8], at: usize) -> Option<Span> {
    let name = match (bytes[at], &bytes[at.saturating_sub(80)..at]) {
        // `<Password Type="…">value`
        (b'>', tag @ [.., b'"' | b'\'']) => {
            let tag = &tag[memchr::memrchr2(b'<', b'\n', tag)? + 1..];
            NAMES.name(until(tag, |byte| byte == b' '), false)?
        }
        (_, before) => NAMES.name(split_end(before, 24, |byte| BESIDE.has(byte)).0, true)?,
    };
    let rest = from(bytes, at, 512);
    let is_sign = |byte: u8| !byte.is_ascii_alphanumeric() && byte < 0x80 && !b"$%&#!@(+".contains(&byte);
    let signs = |gap: usize| gap + leading(&rest[gap..], 64, is_sign);
    let (mut gap, mut many) = (signs(0), 0);
    while many < 6 {
        let word = until(&rest[gap..], |byte| !byte.is_ascii_alphanumeric());
        if !rest[..gap].ends_with(b"</") && !is_in(&MARKUP, &word.to_ascii_lowercase()) {
            break;
        }
        (gap, many) = (signs(gap + word.len()), many + 1);
    }
    let (signs, value) = rest.split_at(gap);
    let data = value.strip_prefix(b"CDATA[").filter(|_| signs.ends_with(b"<![") || signs.ends_with(b"["));
    let is_cell = bytes[at] == b'|' && !signs.contains(&b'\n');
    let is_field = bytes[..at - name.text.len()].ends_with(b"name=\"")
        && (signs.starts_with(b"\"\r\n\r\n") || signs.starts_with(b"\"\n\n"));
    let is_tag = bytes[at] == b'>' && matches!(bytes[..at], [.., b'"' | b'\'']);
    let lines = count(signs, |byte| *byte == b'\n');
    if many == 0 && !is_cell && !is_field && !is_tag && data.is_none() || lines > 3 || signs.contains(&b'}') {
        return None;
    }
    let value = match data {
        Some(data) => &data[..memmem::find(data, b"]]>")?],
        None => until(value, |byte| b"\r\n\"<|".contains(&byte)).trim_ascii(),
    };
    let value = if dice(value) { value } else { until(value, |byte| byte == b' ') };
    let value = inner(value, b"`*',");
    let is_secret = match is_cell || is_field {
        true => chosen(value) || random(value) && name.accepts(value, true) || is_field && value.len() > 3,
        false => name.accepts(value, true) || chosen(value) || strong(value) || dice(value) || data.is_some(),
    };
    (is_secret && !placeholder(value)).then(|| name.span(bytes, value))
}

/// What may stand between a name and the end of its cell or tag.
static BESIDE: Class = Class::of(" *`:\"\r");

/// The value behind its sign, if it is a secret.
fn value(bare: &mut Bare, behind: usize, context: &Assignment) -> Option<Span> {
    let (bytes, name) = (bare.bytes, &context.name);
    let mut start = behind + spaces(bytes, behind);
    if let Some(block) = block(bytes, start, context.sign) {
        let [first, block] = [until(block, |byte| byte == b'\n'), block].map(|text| inner(text, b" \"',\r"));
        let secret = if first.len() < 8 { first } else { block };
        return name.accepts(first, true).then(|| name.span(bytes, secret));
    }
    if context.sign == b':' {
        // Markdown: **Password:** `value`
        start += leading(&bytes[start..], 3, |byte| matches!(byte, b'*' | b' '));
        // `name: Type = value`
        if let Some(typed) = behind_type(bytes, start) {
            start = typed + spaces(bytes, typed);
        }
    }
    let secret = match quoted(bytes, start) {
        Some(inside) => Some(without_scheme(inside?, name)).filter(|secret| name.accepts(secret, true)),
        None if context.quotes_only => None,
        None => listed(&bytes[start..])
            .or_else(|| words_of_line(bytes, start, context))
            .or_else(|| unquoted(bare, start, context)),
    };
    secret.map(|secret| name.span(bytes, secret))
}

fn unquoted<'a>(bare: &mut Bare<'a>, start: usize, context: &Assignment) -> Option<&'a [u8]> {
    let (bytes, name) = (bare.bytes, &context.name);
    let start = bytes.len() - without_scheme(&bytes[start..], name).len();
    let end = bare.end(start);
    // A call, an index, a generic type: code.
    let is_code = matches!(bytes.get(end), Some(b'(' | b'[' | b'{' | b'<')) && !context.plain;
    if is_code || context.sign == b'>' && !bytes[end..].starts_with(b"</") {
        return None;
    }
    let (word, _) = split_end(&bytes[start..end], VALUE, |byte| b".,:!?".contains(&byte));
    if word.len() > VALUE {
        return None;
    }
    let end = start + word.len();
    let (last, next) = (at_line_end(bytes, end), bytes.get(end));
    let colon = context.sign == b':';
    let literal = context.plain || colon && last;
    // An identifier is a value only outside of code, or if no person would write it.
    let identifier = word.iter().all(|byte| WORD.has(*byte) || *byte == b'.');
    // What a person made up: alone on its line, or in a list of `name=value;`.
    let alone = (colon || context.first) && last || context.plain && next == Some(&b';');
    let made_up = alone && (chosen(word) || context.first && phrase(word));
    // Arguments and lists continue after a name; values in shells and env files do not.
    let goes_on = matches!(next, Some(b',' | b')' | b';' | b'}' | b']' | b'(' | b'['));
    let readable = made_up || literal && (!identifier || context.plain && !goes_on);
    let is_name_of_code = identifier && !literal && !made_up && word.len() < 20;
    let is_phrase = context.sign == b'=' && context.first && last && phrase(word);
    (!is_name_of_code && (is_phrase || name.accepts(word, readable))).then_some(word)
}

/// The bytes or characters of a list: `{0x5a, 0xfc, …}`, `['a', 'b', …]`.
fn listed(text: &[u8]) -> Option<&[u8]> {
    let (b'{' | b'[', inside) = text.split_first()? else { return None };
    let list = until(from(inside, 0, 2048), |byte| b"}]\n".contains(&byte)).trim_ascii();
    let items = || list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    (items().count() >= 8 && items().all(|item| (1..=4).contains(&item.len()))).then_some(list)
}

/// The lines of a block of YAML behind `>-` or `|`, and a value on the next line: in quotes, or alone.
fn block(bytes: &[u8], start: usize, sign: u8) -> Option<&[u8]> {
    let rest = from(bytes, start, 2048);
    let head = until(rest, |byte| byte == b'\n');
    let marked = matches!(head.trim_ascii(), [b'>' | b'|', signs @ ..] if signs.iter().all(|byte| b"+-0123456789".contains(byte)));
    if !(sign == b':' && marked || b":=".contains(&sign) && head.trim_ascii().is_empty()) {
        return None;
    }
    let indent = |line: &[u8]| leading(line, 200, |byte| byte == b' ' || byte == b'\t');
    let depth = indent(&bytes[start - trailing(&bytes[..start], 200, |byte| byte != b'\n')..]);
    let (mut begin, mut end) = (head.len() + 1, head.len() + 1);
    for (number, line) in rest.get(end..)?.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let text = line.trim_ascii();
        if number == 0 && text.starts_with(b"#") {
            end += line.len();
            begin = end;
            continue;
        }
        let alone =
            marked || matches!(text, [b'"' | b'\'', ..]) || !text.contains(&b' ') && !text.ends_with(b":");
        if text.is_empty() || indent(line) <= depth || (begin < end && !marked) || !alone {
            break;
        }
        end += line.len();
    }
    let block = rest.get(begin..end.min(rest.len()))?.trim_ascii();
    (!block.is_empty()).then_some(block)
}

/// The words of a passphrase up to the end of a line of settings: `WIFI_PASSPHRASE=twelve small boats`.
fn words_of_line<'a>(bytes: &'a [u8], start: usize, context: &Assignment) -> Option<&'a [u8]> {
    let line = until(from(bytes, start, 80), |byte| byte == b'\n' || byte == b'\\').trim_ascii_end();
    let is_setting = context.first && context.sign == b'=' && context.name.in_capitals();
    (is_setting && line.contains(&b' ') && phrase(line)).then_some(line)
}

/// Does only the margin of a line come before it: blanks, a sign of a diff, of a list, of a comment?
fn is_first(before: &[u8]) -> bool {
    matches!(split_end(before, 40, |byte| b" \t+-#;$".contains(&byte)).0, [] | [.., b'\n'])
}

fn spaces(bytes: &[u8], from: usize) -> usize {
    leading(&bytes[from.min(bytes.len())..], 32, |byte| matches!(byte, b' ' | b'\t'))
}

fn at_line_end(bytes: &[u8], end: usize) -> bool {
    let rest = &bytes[end + spaces(bytes, end)..];
    matches!(rest, [] | [b'\n' | b'\r' | b'#' | b'`' | b'"' | b'.', ..])
}

/// The position of the value in `Type = value`, with `Type` at `from`.
fn behind_type(bytes: &[u8], from: usize) -> Option<usize> {
    let many = leading(&bytes[from..], 40, |byte| WORD.has(byte) || b"&<>:.'?|[]".contains(&byte));
    let at = from + many + spaces(bytes, from + many);
    // At the end of a line it pads base64.
    let goes_on = bytes.get(at + 1).is_some_and(|next| !b"=\r\n\"'".contains(next));
    (many > 0 && bytes.get(at) == Some(&b'=') && goes_on).then_some(at + 1)
}

/// The value of an authorization behind `Bearer ` or another scheme.
fn without_scheme<'a>(value: &'a [u8], name: &SecretName) -> &'a [u8] {
    const SCHEMES: &[&[u8]] =
        &[b"bearer ", b"basic ", b"token token=", b"discogs token=", b"token ", b"bot ", b"apikey ", b"key "];
    let behind = |scheme: &&[u8]| {
        let (start, rest) = value.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    };
    SCHEMES.iter().filter(|_| name.kind == "auth").find_map(behind).unwrap_or(value)
}

/// A string in quotes, also inside another string, `\"…\"`, and in a call: `Some("value")`, `b"value"`,
/// `String::from("value")`. `Some(None)`: it does not end on its line.
fn quoted(bytes: &[u8], start: usize) -> Option<Option<&[u8]>> {
    let call = leading(&bytes[start..], 40, |byte| WORD.has(byte) || b":.".contains(&byte));
    let bracket = usize::from(call > 1 && bytes.get(start + call) == Some(&b'('));
    if bracket == 0 && call > 2 {
        return None;
    }
    let from = start + call + bracket;
    let depth = leading(&bytes[from.min(bytes.len())..], 16, |byte| byte == b'\\');
    let quote = *bytes.get(from + depth).filter(|byte| matches!(byte, b'"' | b'\'' | b'`'))?;
    // `"""value"""`, and `''value''` in Nix.
    let many = leading(&bytes[from + depth..], 3, |byte| byte == quote);
    let is_empty = many == 2 && !bytes.get(from + depth + 2).is_some_and(u8::is_ascii_alphanumeric);
    let start = from + depth + if is_empty { 1 } else { many };
    let rest = &bytes[start..bytes.len().min(start + VALUE)];
    let strings =
        memchr::memchr2_iter(quote, b'\n', rest).map_while(|at| (rest[at] == quote).then(|| &rest[..at]));
    // More backslashes than at the start: a quote inside the string.
    let end = |string: &[u8]| trailing(string, VALUE, |byte| byte == b'\\');
    let mut strings = strings.map(|string| (string, end(string))).filter(|(_, slashes)| *slashes <= depth);
    Some(strings.next().map(|(string, slashes)| &string[..string.len() - slashes]))
}

/// What ends a value without quotes.
static STOPS: Class = Class::of("\\s\"'`\\\\<>()[]{},;&\x1b");

/// Values without quotes.
struct Bare<'a> {
    bytes: &'a [u8],
    run: LastRun,
}

impl Bare<'_> {
    fn end(&mut self, from: usize) -> usize {
        let bytes = self.bytes;
        let stop = |at: &usize| match bytes[*at] {
            // `id|secret`, `secret | next`
            b'|' => !bytes.get(*at + 1).is_some_and(u8::is_ascii_alphanumeric),
            // `.properties` escape these signs.
            b'\\' => !bytes.get(*at + 1).is_some_and(|next| b":=#!".contains(next)),
            byte => STOPS.has(byte),
        };
        self.run.end(from, || (from..bytes.len()).find(stop).unwrap_or(bytes.len()))
    }
}
