//! Text as a person sees it: without characters of no width and without colours, with escapes of JSON, HTML and
//! addresses decoded. A secret is searched there, too.

use memchr::memchr_iter;

use crate::memory::redact::near::Span;

/// How much of the text on each side of something decoded is searched, in bytes.
const AROUND: usize = 320;

/// A part of the text, decoded.
pub(super) struct View {
    pub(super) text: Vec<u8>,
    runs: Vec<Run>,
    /// Where it ends in the original.
    end: usize,
}

impl View {
    /// The span of the original that a span of the view was made from.
    pub(super) fn original(&self, span: &Span) -> Span {
        let first = self.run(span.start);
        let last = self.run(span.end - 1);
        let start = first.original + if first.decoded { 0 } else { span.start - first.seen };
        let end = last.original + if last.decoded { last.len } else { span.end - last.seen };
        Span { start, end, ..*span }
    }

    fn run(&self, seen: usize) -> &Run {
        &self.runs[self.runs.partition_point(|run| run.seen <= seen).saturating_sub(1)]
    }

    fn plain(&mut self, bytes: &[u8], from: usize, to: usize) {
        if from < to {
            self.runs.push(Run { seen: self.text.len(), original: from, len: to - from, decoded: false });
            self.text.extend_from_slice(&bytes[from..to]);
        }
        self.end = to;
    }
}

/// A part of a view: text as it is, or one character that something longer stands for.
struct Run {
    seen: usize,
    original: usize,
    len: usize,
    decoded: bool,
}

/// Something that is not what it looks like: its place and length, and the byte that it stands for.
struct Veil {
    at: usize,
    len: usize,
    byte: Option<u8>,
}

/// The parts of the text around everything that can be decoded.
pub(super) fn views(bytes: &[u8]) -> Vec<View> {
    let mut veils = Vec::new();
    for (sign, read) in SIGNS {
        veils.extend(memchr_iter(*sign, bytes).filter_map(|at| read(bytes, at)));
    }
    if veils.is_empty() {
        return Vec::new();
    }
    veils.sort_by_key(|veil| veil.at);
    let mut views: Vec<View> = Vec::new();
    let mut at = 0;
    for veil in &veils {
        if veil.at < at {
            continue;
        }
        match views.last_mut() {
            Some(view) if veil.at <= view.end + AROUND => {
                view.plain(bytes, at, veil.at);
            }
            last => {
                if let Some(view) = last {
                    view.plain(bytes, at, bytes.len().min(at + AROUND));
                }
                let start = veil.at.saturating_sub(AROUND).max(at);
                let mut view = View { text: Vec::new(), runs: Vec::new(), end: start };
                view.plain(bytes, start, veil.at);
                views.push(view);
            }
        }
        at = veil.at + veil.len;
        if let Some(view) = views.last_mut() {
            if let Some(byte) = veil.byte {
                view.runs.push(Run {
                    seen: view.text.len(),
                    original: veil.at,
                    len: veil.len,
                    decoded: true,
                });
                view.text.push(byte);
            }
            view.end = at;
        }
    }
    if let Some(view) = views.last_mut() {
        view.plain(bytes, at, bytes.len().min(at + AROUND));
    }
    views
}

type Read = fn(&[u8], usize) -> Option<Veil>;

const SIGNS: &[(u8, Read)] = &[
    (0x1b, |bytes, at| colour(bytes, at, 1)),
    (b'\\', backslash),
    (0xC2, |bytes, at| (bytes.get(at + 1) == Some(&0xAD)).then_some(Veil { at, len: 2, byte: None })),
    (0xE2, width),
    (0xEF, |bytes, at| {
        bytes[at..].starts_with("\u{feff}".as_bytes()).then_some(Veil { at, len: 3, byte: None })
    }),
    (b'%', percent),
    (b'&', entity),
];

/// `ESC [ 1 ; 31 m`, behind so many bytes of the escape.
fn colour(bytes: &[u8], at: usize, escape: usize) -> Option<Veil> {
    let rest = bytes.get(at + escape..)?;
    let rest = rest.strip_prefix(b"[")?;
    let many = rest.iter().take(24).take_while(|byte| byte.is_ascii_digit() || b";:?".contains(byte)).count();
    rest.get(many).filter(|byte| byte.is_ascii_alphabetic())?;
    Some(Veil { at, len: escape + 1 + many + 1, byte: None })
}

/// `\u001b[31m`, `\x1b[0m`, `\u005f`, `\x5f`, `\/`
fn backslash(bytes: &[u8], at: usize) -> Option<Veil> {
    let rest = &bytes[at + 1..];
    for escape in ["u001b", "u001B", "x1b", "x1B", "033", "e"] {
        if rest.starts_with(escape.as_bytes())
            && let Some(veil) = colour(bytes, at, 1 + escape.len())
        {
            return Some(veil);
        }
    }
    let digits = match rest {
        [b'/', ..] => return Some(Veil { at, len: 2, byte: Some(b'/') }),
        [b'u', b'0', b'0', digits @ ..] => (digits, 6),
        [b'u', b'2', b'0', b'0', b'b' | b'B' | b'c' | b'C' | b'd' | b'D', ..]
        | [b'u', b'f' | b'F', b'e' | b'E', b'f' | b'F', b'f' | b'F', ..] => {
            return Some(Veil { at, len: 6, byte: None });
        }
        [b'x', digits @ ..] => (digits, 4),
        _ => return None,
    };
    Some(Veil { at, len: digits.1, byte: Some(hexadecimal(digits.0)?) })
}

fn percent(bytes: &[u8], at: usize) -> Option<Veil> {
    Some(Veil { at, len: 3, byte: Some(hexadecimal(&bytes[at + 1..])?) })
}

/// The visible character of two hexadecimal digits.
fn hexadecimal(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    let byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    (b' '..=b'~').contains(&byte).then_some(byte)
}

/// Zero width space and joiners, word joiner, and the marks of direction.
fn width(bytes: &[u8], at: usize) -> Option<Veil> {
    let none = matches!(bytes[at..], [_, 0x80, 0x8B..=0x8F | 0xAA..=0xAE, ..] | [_, 0x81, 0xA0..=0xA4, ..]);
    none.then_some(Veil { at, len: 3, byte: None })
}

/// `&#95;`, `&#x5f;`, `&quot;`
fn entity(bytes: &[u8], at: usize) -> Option<Veil> {
    let rest = &bytes[at + 1..bytes.len().min(at + 9)];
    let end = memchr::memchr(b';', rest)?;
    let name = std::str::from_utf8(&rest[..end]).ok()?;
    let byte = match name {
        "quot" => b'"',
        "apos" => b'\'',
        _ => {
            let number = name.strip_prefix('#')?;
            match number.strip_prefix(['x', 'X']) {
                Some(number) => u8::from_str_radix(number, 16).ok()?,
                None => number.parse().ok()?,
            }
        }
    };
    (b' '..=b'~').contains(&byte).then_some(Veil { at, len: end + 2, byte: Some(byte) })
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
    fn what_is_far_from_anything_decoded_is_not_searched_again() {
        let far = "x".repeat(3000);
        let views = views(format!("{far}\\/{far}{far}\\/{far}").as_bytes());
        assert_eq!(views.iter().map(|view| view.text.len()).collect::<Vec<_>>(), [2 * AROUND + 1; 2]);
    }
}
