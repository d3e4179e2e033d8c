//! A value that one rule found is hidden wherever else it stands: said again, in another encoding, or in a piece that is
//! longer than half of it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::collections::{BTreeSet, HashMap};

use crate::base::text::hex;
use crate::memory::redact::chars::{BASE64, count, leading, trailing};
use crate::memory::redact::near::{Certainty, Span};
use crate::memory::redact::search::{HASHES, hash, word};
use crate::memory::redact::value::{password, placeholder, random};
use crate::memory::redact::views::decoded;

/// Shorter values, and words that anybody uses, are hidden only where they are found.
const SHORTEST: usize = 6;
const LONGEST: usize = 512;
/// A shorter value must be a whole word where it stands again.
const APART: usize = 12;
/// The shortest value of which pieces are looked for.
const CUT: usize = 20;
/// How many forms of values are looked for; the first ones stay.
const MOST: usize = 1 << 14;

/// Values with what they look like in other encodings.
#[derive(Default)]
pub(super) struct KnownValues {
    values: BTreeSet<Vec<u8>>,
    forms: Vec<Encoded>,
    /// Which forms begin with these four bytes, and where in the form these are.
    starts: HashMap<u32, Vec<(usize, usize)>>,
    /// For each [`hash`] of four bytes, whether a form may begin so.
    firsts: Vec<bool>,
}

struct Encoded {
    text: Vec<u8>,
    kind: &'static str,
    /// So much of it must be there.
    least: usize,
    /// It is a part of a longer text in base64.
    is_base64: bool,
}

impl KnownValues {
    pub(super) fn add(&mut self, value: &[u8], kind: &'static str) {
        let value = value.trim_ascii();
        if self.forms.len() >= MOST || self.values.contains(value) || !is_telling(value) {
            return;
        }
        self.values.insert(value.to_vec());
        let text = String::from_utf8_lossy(value);
        let escaped = |signs: &[u8]| -> String {
            let one = |byte: &u8| match byte.is_ascii_alphanumeric() || signs.contains(byte) {
                true => char::from(*byte).into(),
                false => format!("%{byte:02X}"),
            };
            value.iter().map(one).collect()
        };
        let json = serde_json::Value::from(text.as_ref()).to_string();
        let lower = Some(escaped(b"-_.~!*'()").to_lowercase()).filter(|text| text.contains('%'));
        let mut forms = vec![text.to_string(), json[1..json.len() - 1].to_owned(), escaped(b"-_.~")];
        forms.extend(lower.into_iter().chain([hex(value), hex(value).to_uppercase()]));
        forms.dedup();
        let pieces = value.len() >= CUT && random(value);
        for (number, form) in forms.into_iter().enumerate() {
            let least = if pieces && number == 0 { value.len() / 2 + 1 } else { form.len() };
            self.form(Encoded { text: form.into_bytes(), kind, least, is_base64: false });
        }
        for form in in_base64(value) {
            self.form(Encoded { least: form.len(), text: form, kind, is_base64: true });
        }
        // What it says when it is decoded is the same secret.
        if let Some(said) = decoded(value) {
            self.add(&said, kind);
        }
    }

    fn form(&mut self, form: Encoded) {
        let (number, length) = (self.forms.len(), form.text.len());
        // A piece longer than half has the second or the third quarter.
        let places = if form.least < length { vec![0, length / 4, length / 2] } else { vec![0] };
        for at in places {
            if let Some(start) = form.text.get(at..at + 4).map(word) {
                self.starts.entry(start).or_default().push((number, at));
                self.firsts.resize(HASHES, false);
                self.firsts[hash(start)] = true;
            }
        }
        self.forms.push(form);
    }

    /// The number of values.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn find(&self, bytes: &[u8], spans: &mut Vec<Span>) {
        if self.firsts.is_empty() {
            return;
        }
        let (mut start, mut done) = (0_u32, 0);
        for (end, byte) in bytes.iter().enumerate() {
            start = start << 8 | u32::from(*byte);
            if !self.firsts[hash(start)] || end < done + 3 {
                continue;
            }
            let at = end - 3;
            let found = self.starts.get(&start).into_iter().flatten();
            let longest = found.filter_map(|(form, from)| self.forms[*form].fits(bytes, at, *from));
            if let Some(span) = longest.max_by_key(|span| span.end - span.start) {
                done = span.end;
                spans.push(span);
            }
        }
    }
}

impl Encoded {
    /// The span of the form, whose byte `from` is at `at`.
    fn fits(&self, bytes: &[u8], at: usize, from: usize) -> Option<Span> {
        let same = |(one, other): &(&u8, &u8)| one == other;
        let right = bytes[at..].iter().zip(&self.text[from..]).take_while(same).count();
        let left = bytes[..at].iter().rev().zip(self.text[..from].iter().rev()).take_while(same).count();
        let (mut start, mut end) = (at - left, at + right);
        if end - start < self.least {
            return None;
        }
        if self.is_base64 {
            start -= trailing(&bytes[..start], LONGEST, |byte| BASE64.has(byte));
            end += leading(&bytes[end..], LONGEST, |byte| BASE64.has(byte));
        } else if self.text.len() < APART {
            let goes_on = |at: usize, inner: usize| {
                bytes.get(at).is_some_and(u8::is_ascii_alphanumeric) && bytes[inner].is_ascii_alphanumeric()
            };
            if start > 0 && goes_on(start - 1, start) || goes_on(end, end - 1) {
                return None;
            }
        }
        Some(Span { start, end, kind: self.kind, certainty: Certainty::Known })
    }
}

/// Is it no word that stands elsewhere for itself: does it have digits or signs, or is it made at random?
fn is_telling(value: &[u8]) -> bool {
    let is_number = value.iter().all(|byte| byte.is_ascii_digit() || b" -.,".contains(byte));
    let words = count(value, |byte| b" -".contains(byte));
    (SHORTEST..=LONGEST).contains(&value.len())
        && !value.contains(&b'\n')
        && std::str::from_utf8(value).is_ok()
        && !placeholder(value)
        && match is_number {
            true => value.len() >= APART,
            false => password(value) || random(value) || words > 1 && value.len() >= APART,
        }
}

/// What the value is inside of a longer text in base64: at each of three places, without what its neighbours decide.
fn in_base64(value: &[u8]) -> BTreeSet<Vec<u8>> {
    let place = |offset: usize| {
        let coded = STANDARD_NO_PAD.encode([&vec![0; offset], value].concat()).into_bytes();
        let own = offset + usize::from(offset > 0)..(offset + value.len()) * 8 / 6;
        coded[own].to_vec()
    };
    let forms: Vec<Vec<u8>> = (0..3).map(place).filter(|form| form.len() >= 8).collect();
    let sign = |byte: &u8| match byte {
        b'+' => b'-',
        b'/' => b'_',
        other => *other,
    };
    let urls: Vec<Vec<u8>> = forms.iter().map(|form| form.iter().map(sign).collect()).collect();
    BTreeSet::from_iter(forms.into_iter().chain(urls))
}
