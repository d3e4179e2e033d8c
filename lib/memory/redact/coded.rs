//! Text in base64 and in hexadecimal: what it says is searched, and if there is a secret in it, all of it is one.

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::memory::redact::chars::{BASE64, leading, trailing, until};
use crate::memory::redact::near::{Certainty, Near, Span};
use crate::memory::redact::value::{chosen, made};

/// A run is found by looking at every so many bytes; a shorter one has no room for a name and a value.
const STEP: usize = 20;
const LONGEST: usize = 64 * 1024;

/// Adds each run whose text has something that `search` finds.
pub(super) fn find(bytes: &[u8], search: impl Fn(&[u8], &mut Vec<Span>), spans: &mut Vec<Span>) {
    let mut done = 0;
    for at in (STEP - 1..bytes.len()).step_by(STEP) {
        if at < done || !BASE64.has(bytes[at]) {
            continue;
        }
        let start = at - trailing(&bytes[done..at], STEP, |byte| BASE64.has(byte));
        let run = &bytes[start..at + leading(&bytes[at..], LONGEST, |byte| BASE64.has(byte))];
        done = start + run.len();
        let Some(text) = Some(run).filter(|run| run.len() >= STEP).and_then(decoded) else { continue };
        let mut found = Vec::new();
        search(&text, &mut found);
        if let Some(first) = found.first() {
            spans.push(Span { start, end: done, kind: first.kind, certainty: Certainty::Place });
        }
    }
}

/// `echo … | base64 -d`, `atob("…")`: what somebody decodes who needs a password.
pub(super) fn decoder(near: &mut Near) {
    for part in [near.before(), near.behind()] {
        let runs = part.split(|byte| !BASE64.has(*byte)).filter(|run| run.len() >= 8);
        for run in runs.filter(|run| decoded(run).is_some_and(|text| chosen(&text) || made(&text))) {
            near.push(run);
        }
    }
}

/// Padding, and the bits behind the last byte, are as they come.
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
static PLAIN: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
static FOR_URLS: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

/// The text that it stands for, if it is one.
pub(super) fn decoded(run: &[u8]) -> Option<Vec<u8>> {
    let is_text = |bytes: &[u8]| {
        bytes.iter().all(|byte| byte.is_ascii_graphic() || b" \n\r\t".contains(byte) || *byte >= 0x80)
    };
    let decode = |run: &[u8]| {
        let engine = if run.iter().any(|byte| b"-_".contains(byte)) { &FOR_URLS } else { &PLAIN };
        engine.decode(run).ok()
    };
    let padded = until(run, |byte| byte == b'=');
    let hex = run.len().is_multiple_of(2) && run.iter().all(u8::is_ascii_hexdigit);
    let start = if hex { unhex(&run[..8.min(run.len())]) } else { decode(&run[..8.min(padded.len())]) };
    start.filter(|start| is_text(start) && !start.is_empty())?;
    let text = if hex { unhex(run) } else { decode(padded) };
    text.filter(|text| is_text(text) && std::str::from_utf8(text).is_ok())
}

fn unhex(run: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    run.chunks_exact(2).map(|two| Some(digit(two[0])? << 4 | digit(two[1])?)).collect()
}
