//! Text as a person sees it. [`lines`] breaks the lines of a string in JSON or in code; the result is what is searched.
//! [`views`] are the parts of it around what else hides a secret: characters of no width, colours, and escapes of JSON,
//! HTML and addresses. [`coded`] runs of base64 and hexadecimal are decoded.

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use memchr::{memchr_iter, memchr3_iter, memmem};

use crate::base::text::{escape, is_hidden};
use crate::memory::redact::chars::{BASE64, leading, past, trailing, until};
use crate::memory::redact::near::{Certainty, Span, from};
use crate::memory::redact::value::{is_sign, made_up};

/// How much of the text on each side of something decoded is searched, in bytes.
const AROUND: usize = 320;

/// A part of the text, decoded.
#[derive(Default)]
pub(super) struct View {
    pub(super) text: Vec<u8>,
    segments: Vec<Segment>,
}

impl View {
    /// The span of the original that a span of the view was made from.
    pub(super) fn original(&self, span: &Span) -> Span {
        let of = |seen| &self.segments[self.segments.partition_point(|part| part.seen <= seen) - 1];
        let (first, last) = (of(span.start), of(span.end - 1));
        let start = first.original + if first.decoded { 0 } else { span.start - first.seen };
        let end = last.original + if last.decoded { last.len } else { span.end - last.seen };
        Span { start, end, ..*span }
    }

    /// Adds what the next bytes of the original look like.
    fn push(&mut self, original: usize, len: usize, text: &[u8]) {
        if !text.is_empty() {
            self.segments.push(Segment { seen: self.text.len(), original, len, decoded: text.len() < len });
            self.text.extend_from_slice(text);
        }
    }
}

/// A part of a view: text as it is, or one character that something longer stands for.
struct Segment {
    seen: usize,
    original: usize,
    len: usize,
    decoded: bool,
}

/// Something that is not what it looks like: its place and length, and the sign that it stands for.
struct Veil {
    at: usize,
    len: usize,
    sign: Option<char>,
}

/// The text with the line breaks and tabs that are escaped, however often: `\n`, `\\\\n`. Nothing, if it has none.
pub(super) fn lines(bytes: &[u8]) -> Option<View> {
    let (mut view, mut done) = (View::default(), 0);
    for at in memchr_iter(b'\\', bytes) {
        let sign = match bytes.get(at + 1) {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            // A word that goes on in the next line.
            Some(b'\n')
                if bytes[..at].last().is_some_and(u8::is_ascii_alphanumeric)
                    && bytes.get(at + 2).is_some_and(u8::is_ascii_alphanumeric) =>
            {
                0
            }
            _ => continue,
        };
        let start = at - trailing(&bytes[done..at], 16, |byte| byte == b'\\');
        view.push(done, start - done, &bytes[done..start]);
        view.push(start, at + 2 - start, &[sign][..usize::from(sign > 0)]);
        done = at + 2;
    }
    view.push(done, bytes.len() - done, &bytes[done..]);
    (done > 0).then_some(view)
}

/// The parts of the text around everything that can be decoded.
pub(super) fn views(bytes: &[u8]) -> Vec<View> {
    let signs = memchr3_iter(0x1b, b'\\', b'%', bytes).chain(memchr3_iter(0xC2, 0xE2, 0xEF, bytes));
    let signs = signs.chain(memchr_iter(b'&', bytes)).chain(memchr3_iter(0xCD, 0xE1, 0xE3, bytes));
    let signs = signs.chain(memchr3_iter(0xD8, 0xF0, 0xF3, bytes));
    let veil = |at: usize| veil(&bytes[at..]).map(|(len, sign)| Veil { at, len, sign });
    let mut veils: Vec<Veil> = signs.filter_map(veil).collect();
    veils.sort_by_key(|veil| veil.at);
    veils.chunk_by(|one, next| next.at <= one.at + one.len + AROUND).map(|near| view(bytes, near)).collect()
}

/// The text around some veils that are near each other.
fn view(bytes: &[u8], veils: &[Veil]) -> View {
    let mut view = View::default();
    let mut at = veils[0].at.saturating_sub(AROUND);
    for veil in veils {
        // None begins within another one.
        if veil.at >= at {
            view.push(at, veil.at - at, &bytes[at..veil.at]);
            view.push(veil.at, veil.len, veil.sign.map(String::from).unwrap_or_default().as_bytes());
            at = veil.at + veil.len;
        }
    }
    let rest = from(bytes, at, AROUND);
    view.push(at, rest.len(), rest);
    view
}

/// How long the veil is that a text begins with, and the sign that it stands for.
fn veil(text: &[u8]) -> Option<(usize, Option<char>)> {
    const ESCAPES: [&[u8]; 7] = [b"\x1b", b"\\u001b", b"\\u001B", b"\\x1b", b"\\x1B", b"\\033", b"\\e"];
    let code = |escape: &&[u8]| Some((escape.len() + colour(text.strip_prefix(*escape)?)?, None));
    if let Some(colour) = ESCAPES.iter().find_map(code) {
        return Some(colour);
    }
    const ENTITIES: [(&[u8], char); 6] =
        [(b"\\/", '/'), (b"&quot;", '"'), (b"&apos;", '\''), (b"&amp;", '&'), (b"&lt;", '<'), (b"&gt;", '>')];
    if let Some((entity, sign)) = ENTITIES.iter().find(|(entity, _)| text.starts_with(entity)) {
        return Some((entity.len(), Some(*sign)));
    }
    match text {
        // In an address that is in another one.
        [b'%', b'2', b'5', first, second, ..] if escape(&[b'%', *first, *second]).is_some() => {
            let (sign, length) = escape(&[b'%', *first, *second])?;
            Some((length + 2, Some(sign).filter(char::is_ascii)))
        }
        [first, ..] if !first.is_ascii() => {
            let many = first.leading_ones() as usize;
            let c = std::str::from_utf8(text.get(..many)?).ok()?.chars().next()?;
            let narrow = u32::from(c).checked_sub(0xFEE0).and_then(char::from_u32);
            // Full width, or of no width.
            let sign = narrow.filter(char::is_ascii_graphic);
            (sign.is_some() || is_hidden(c)).then_some((many, sign))
        }
        _ => match escape(text)? {
            (c, length) if (' '..='~').contains(&c) || c.is_alphabetic() => Some((length, Some(c))),
            (c, length) => is_hidden(c).then_some((length, None)),
        },
    }
}

/// The length of `[ 1 ; 31 m`, which follows an escape.
fn colour(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(b"[")?;
    let many = leading(rest, 24, |byte| byte.is_ascii_digit() || b";:?".contains(&byte));
    rest.get(many).filter(|byte| byte.is_ascii_alphabetic()).map(|_| many + 2)
}

/// A run is found by looking at every so many bytes; a shorter one has no room for a name and a value.
const STEP: usize = 20;
const LONGEST: usize = 64 * 1024;
/// The length of a line that goes on in the next, at least.
const WRAPPED: usize = 48;

/// Adds each run, over the ends of full lines, whose text has something that `search` finds, or is a password itself.
pub(super) fn coded(bytes: &[u8], search: impl Fn(&[u8]) -> Vec<Span>, spans: &mut Vec<Span>) {
    let (mut done, mut text) = (0, Vec::new());
    for at in (STEP - 1..bytes.len()).step_by(STEP) {
        let is_inside = |byte: u8| BASE64.has(byte) && byte != b'=';
        if at < done || !is_inside(bytes[at]) {
            continue;
        }
        let start = at - trailing(&bytes[done..at], STEP, is_inside);
        text.clear();
        done = start;
        loop {
            let many = leading(&bytes[done..], LONGEST, is_inside);
            let line = &bytes[done..done + many + leading(&bytes[done + many..], 2, |byte| byte == b'=')];
            text.extend_from_slice(line);
            done += line.len();
            let margin = leading(from(bytes, done, 16), 16, |byte| b"\r\n \t>".contains(&byte));
            let goes_on =
                line.len() >= WRAPPED && bytes[done..done + margin].contains(&b'\n') && text.len() < LONGEST;
            if !goes_on || !bytes.get(done + margin).is_some_and(|byte| BASE64.has(*byte)) {
                break;
            }
            done += margin;
        }
        // Words of prose and of code have no digits.
        if text.len() < STEP || !text.iter().any(u8::is_ascii_digit) {
            continue;
        }
        let Some(text) = decoded(&text) else { continue };
        let is_password = || made_up(&text) && text.iter().any(is_sign);
        let kind = search(&text).first().map(|first| first.kind);
        if let Some(kind) = kind.or_else(|| is_password().then_some("password")) {
            spans.push(Span { start, end: done, kind, certainty: Certainty::Place });
        }
    }
}

/// Adds the lines of a dump in hexadecimal, as xxd and hexdump print it, if there is a secret in what was dumped.
pub(super) fn dumped(bytes: &[u8], search: impl Fn(&[u8]) -> Vec<Span>, spans: &mut Vec<Span>) {
    let mut rest = 0;
    for zero in memmem::find_iter(bytes, b"00000000") {
        if zero < rest {
            continue;
        }
        rest = zero;
        let mut text = Vec::new();
        for line in bytes[zero..].split_inclusive(|byte| *byte == b'\n') {
            if leading(line, 8, |byte| byte.is_ascii_hexdigit()) < 8 {
                break;
            }
            let digits = past(&line[8..], b": ");
            let end = memmem::find(digits, b"  ").filter(|end| *end > 24).or(memmem::find(digits, b" |"));
            let digits = digits[..end.unwrap_or(digits.len())].iter().copied();
            let digits: Vec<u8> = digits.filter(u8::is_ascii_hexdigit).take(32).collect();
            text.extend(unhex(&digits).unwrap_or_default());
            rest += line.len();
        }
        if let Some(first) = search(&text).first() {
            spans.push(Span::of(bytes, bytes[zero..rest].trim_ascii_end(), first.kind, Certainty::Place));
        }
    }
}

/// Padding, and the bits behind the last byte, are as they come.
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
static PLAIN: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
static FOR_URLS: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

/// The text that it stands for, if it is one. Of UTF-16, the bytes that are nought go.
pub(super) fn decoded(run: &[u8]) -> Option<Vec<u8>> {
    let is_text = |bytes: &[u8]| {
        bytes.iter().all(|byte| byte.is_ascii_graphic() || b"\0\x01 \n\r\t".contains(byte) || *byte >= 0x80)
    };
    let decode = |run: &[u8]| {
        let engine = if run.iter().any(|byte| b"-_".contains(byte)) { &FOR_URLS } else { &PLAIN };
        engine.decode(run).ok()
    };
    let padded = until(run, |byte| byte == b'=');
    let hex = run.len().is_multiple_of(2) && run.iter().all(u8::is_ascii_hexdigit);
    let start = if hex { unhex(&run[..8.min(run.len())]) } else { decode(&run[..8.min(padded.len())]) };
    start.filter(|start| is_text(start) && !start.is_empty())?;
    let mut text = if hex { unhex(run) } else { decode(padded) }?;
    let is_wide = text.iter().filter(|byte| **byte == 0).count() > text.len() / 3;
    if is_wide {
        text.retain(|byte| *byte != 0);
    }
    (is_text(&text) && std::str::from_utf8(&text).is_ok()).then_some(text)
}

fn unhex(run: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    run.chunks_exact(2).map(|two| Some(digit(two[0])? << 4 | digit(two[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use memchr::memmem;

    #[test]
    fn a_view_knows_where_its_text_came_from() {
        let text = "a\u{200b}b\u{1b}[1;31mcd\\u0065f%67h&#105;j";
        let views = views(text.as_bytes());
        assert_eq!(views.len(), 1);
        let view = &views[0];
        assert_eq!(String::from_utf8_lossy(&view.text), "abcdefghij");
        let find = |part: &str| {
            let start = memmem::find(&view.text, part.as_bytes()).unwrap();
            let span = Span {
                start,
                end: start + part.len(),
                kind: "x",
                certainty: crate::memory::redact::near::Certainty::Place,
            };
            let span = view.original(&span);
            &text[span.start..span.end]
        };
        for (part, original) in [
            ("a", "a"),
            ("ab", "a\u{200b}b"),
            ("bc", "b\u{1b}[1;31mc"),
            ("de", "d\\u0065"),
            ("e", "\\u0065"),
            ("ef", "\\u0065f"),
            ("fg", "f%67"),
            ("hi", "h&#105;"),
            ("ij", "&#105;j"),
            ("j", "j"),
        ] {
            assert_eq!(find(part), original, "{part}");
        }
    }

    #[test]
    fn a_string_in_json_is_searched_once() {
        let text = r#"{"content":"one\ntwo\\nthree\t\"four\" in C:\files"}"#.repeat(50);
        let lines = lines(text.as_bytes()).unwrap();
        assert!(lines.text.starts_with(b"{\"content\":\"one\ntwo\nthree\t\\\"four\\\" in C:\\files"));
        assert!(views(&lines.text).is_empty(), "nothing in it is searched again");
        assert!(super::lines(b"a \\ b").is_none() && super::lines("\"four\"".as_bytes()).is_none());
    }

    #[test]
    fn what_is_far_from_anything_decoded_is_not_searched_again() {
        let far = "x".repeat(3000);
        let views = views(format!("{far}\\/{far}{far}\\/{far}").as_bytes());
        assert_eq!(views.iter().map(|view| view.text.len()).collect::<Vec<_>>(), [2 * AROUND + 1; 2]);
    }
}
