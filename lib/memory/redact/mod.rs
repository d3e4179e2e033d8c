//! Removes secrets from text before a model or a note gets it.
//!
//! A text is decoded once ([`views`]), and each view is searched once. `rules.txt` says what is looked for, and [`search`]
//! looks for it, with functions for what a rule cannot say: command lines ([`commands`]), files ([`files`]) and sentences
//! ([`sentences`]). Beside the rules there are finders for key blocks ([`blocks`]), names like `password` before values
//! that look secret ([`named`]), seed phrases ([`wallet`]) and numbers of cards ([`numbers`]). Lines that break a secret
//! are joined ([`seams`]). The user's own patterns ([`custom`]) come on top. Only the secret is replaced, and the text
//! around it stays readable: `AWS_SECRET_ACCESS_KEY=[redacted:aws-secret]`.
//!
//! The number of a card must be grouped or be near a word for cards, because one in ten numbers of the same length has a
//! valid check digit. Random text without a name is not found, because hashes look the same.

mod blocks;
mod chars;
mod commands;
mod custom;
mod files;
mod known;
mod named;
mod names;
mod near;
mod numbers;
mod printed;
mod rules;
mod seams;
mod search;
mod sentences;
mod value;
mod views;
mod wallet;

use crate::base::error::Result;
use crate::base::sync::lock;
use crate::base::text::border;
use crate::config::memory::Redact;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Mutex;

use memchr::memmem;

use crate::memory::redact::chars::leading;
use crate::memory::redact::custom::CustomPattern;
use crate::memory::redact::known::KnownValues;
use crate::memory::redact::near::Span;

/// The start of every mark.
const MARK: &str = "[redacted:";
/// Replacing one secret can make another recognisable, so the search is repeated, at most this often.
const PASSES: usize = 8;
/// How far from a mark, in bytes, and then to the ends of the lines.
const AROUND: usize = 512;
/// How far the ends of the lines are looked for, in bytes. Without it, a text without line breaks is searched whole
/// for each pass.
const LINE: usize = 4096;

pub struct Redactor {
    enabled: bool,
    custom: Vec<CustomPattern>,
    /// What [`Redactor::learn`] found.
    known: Mutex<KnownValues>,
}

/// The text without its secrets.
#[derive(Debug)]
pub struct Redacted<'a> {
    pub text: Cow<'a, str>,
    /// The number of secrets of each kind.
    pub counts: BTreeMap<&'static str, usize>,
}

/// What finds secrets without any pattern of the user's own.
impl Default for Redactor {
    fn default() -> Redactor {
        Redactor { enabled: true, custom: Vec::new(), known: Mutex::default() }
    }
}

impl Redactor {
    /// The redactor that the configuration asks for.
    pub fn of(settings: &Redact) -> Result<Redactor> {
        Redactor::new(settings.enabled, &settings.patterns)
            .map_err(|error| error.context("redact.patterns").hint("see: memory-config path"))
    }

    /// The text without its secrets.
    pub fn cleaned(&self, text: &str) -> String {
        self.redact(text).text.into_owned()
    }

    /// The error names a pattern by its number and its text.
    pub fn new(enabled: bool, patterns: &[String]) -> Result<Redactor> {
        Ok(Redactor { enabled, custom: CustomPattern::all(patterns)?, known: Mutex::default() })
    }

    /// Time and memory are proportional to the text. Existing marks are not changed.
    pub fn redact<'a>(&self, text: &'a str) -> Redacted<'a> {
        let mut redacted = Redacted { text: Cow::Borrowed(text), counts: BTreeMap::new() };
        let (mut windows, mut known) = (vec![(0, text.len())], KnownValues::default());
        for _ in 0..PASSES {
            let spans = self.find(&redacted.text, &windows, &mut known);
            if spans.is_empty() {
                break;
            }
            for span in &spans {
                *redacted.counts.entry(span.kind).or_default() += 1;
            }
            let (clean, marks) = replace(&redacted.text, &spans);
            windows = around(&clean, &marks);
            redacted.text = Cow::Owned(clean);
        }
        redacted
    }

    /// Takes note of the secrets in a text. Wherever they stand in what is redacted from now on, they are hidden.
    pub fn learn(&self, text: &str) {
        self.find_in(text, &mut lock(&self.known));
    }

    /// The kinds of secrets in a text, each with the line number of the first (from 1) and their number. The secrets
    /// themselves are not returned.
    pub fn kinds(&self, text: &str) -> BTreeMap<&'static str, (usize, usize)> {
        let mut kinds = BTreeMap::new();
        let (mut line, mut counted) = (1, 0);
        for span in self.find(text, &[(0, text.len())], &mut KnownValues::default()) {
            line += memchr::memchr_iter(b'\n', &text.as_bytes()[counted..span.start]).count();
            counted = span.start;
            kinds.entry(span.kind).or_insert((line, 0)).1 += 1;
        }
        kinds
    }

    /// The positions of the secrets in some parts of the text, in order, without overlaps, and never inside a mark. What
    /// is found there for the first time is looked for in the whole text.
    fn find(&self, text: &str, windows: &[(usize, usize)], known: &mut KnownValues) -> Vec<Span> {
        let (mut spans, before) = (Vec::new(), known.len());
        for (from, to) in windows {
            let moved = |span: Span| Span { start: span.start + from, end: span.end + from, ..span };
            spans.extend(self.find_in(&text[*from..*to], known).into_iter().map(moved));
        }
        if known.len() > before {
            known.find(text.as_bytes(), &mut spans);
        }
        lock(&self.known).find(text.as_bytes(), &mut spans);
        // Finders work on bytes; this drops a span that would split a character.
        spans.retain(|span| text.get(span.start..span.end).is_some_and(|secret| !secret.is_empty()));
        let marks = if spans.is_empty() { Vec::new() } else { marks(text) };
        joined(spans).into_iter().flat_map(|span| outside(&marks, span)).collect()
    }

    fn find_in(&self, text: &str, known: &mut KnownValues) -> Vec<Span> {
        if !self.enabled {
            return Vec::new();
        }
        let lines = views::lines(text.as_bytes());
        let bytes = lines.as_ref().map_or(text.as_bytes(), |view| &view.text);
        let mut found = search(bytes);
        // What is between the characters of a secret, or stands for one of them, hides it.
        for view in views::views(bytes) {
            let seen = search(&view.text);
            seen.iter().for_each(|span| known.add(&view.text[span.start..span.end], span.kind));
            found.extend(seen.iter().map(|span| view.original(span)));
        }
        views::coded(bytes, search, &mut found);
        views::dumped(bytes, search, &mut found);
        wallet::find(bytes, &mut found);
        numbers::find(bytes, &mut found);
        seams::find(bytes, &mut found);
        found.iter().for_each(|span| known.add(&bytes[span.start..span.end], span.kind));
        if let Some(view) = &lines {
            found.iter_mut().for_each(|span| *span = view.original(span));
        }
        let before = found.len();
        self.custom.iter().for_each(|custom| custom.find(text, &mut found));
        found[before..].iter().for_each(|span| known.add(&text.as_bytes()[span.start..span.end], span.kind));
        found
    }
}

/// What is found in a text as it stands.
fn search(bytes: &[u8]) -> Vec<Span> {
    let mut spans = Vec::new();
    blocks::find(bytes, &mut spans);
    search::find(bytes, false, &mut spans);
    named::find(bytes, &mut spans);
    spans
}

/// Merges overlapping spans. The kind is that of the most certain one.
fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| (span.start, span.certainty));
    let mut joined: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match joined.last_mut() {
            Some(last) if span.start < last.end => {
                last.end = last.end.max(span.end);
                if span.certainty < last.certainty {
                    (last.certainty, last.kind) = (span.certainty, span.kind);
                }
            }
            _ => joined.push(span),
        }
    }
    joined
}

/// The positions of existing marks.
fn marks(text: &str) -> Vec<(usize, usize)> {
    let end = |at: usize| {
        let kind = &text.as_bytes()[at + MARK.len()..];
        let many = leading(kind, 32, |byte| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'0'..=b'9'));
        (many > 1 && kind.get(many) == Some(&b']')).then_some((at, at + MARK.len() + many + 1))
    };
    memmem::find_iter(text.as_bytes(), MARK).filter_map(end).collect()
}

/// The parts of a span outside of marks.
fn outside(marks: &[(usize, usize)], span: Span) -> impl Iterator<Item = Span> {
    let first = marks.partition_point(|mark| mark.1 <= span.start);
    let within = marks[first..].iter().take_while(move |mark| mark.0 < span.end);
    let starts = std::iter::once(span.start).chain(within.clone().map(|mark| mark.1));
    let ends = within.map(|mark| mark.0).chain([span.end]);
    starts.zip(ends).filter(|(start, end)| start < end).map(move |(start, end)| Span { start, end, ..span })
}

/// The text with a mark for each span, and where the marks are.
fn replace(text: &str, spans: &[Span]) -> (String, Vec<(usize, usize)>) {
    let mut clean = String::with_capacity(text.len());
    let mut from = 0;
    let mark = |span: &Span| {
        clean.push_str(&text[from..span.start]);
        let start = clean.len();
        clean.extend([MARK, span.kind, "]"]);
        from = span.end;
        (start, clean.len())
    };
    let marks = spans.iter().map(mark).collect();
    clean.push_str(&text[from..]);
    (clean, marks)
}

/// The lines around the marks: only there can a mark make another secret recognisable.
fn around(text: &str, marks: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut windows: Vec<(usize, usize)> = Vec::new();
    for (start, end) in marks {
        let (start, end) = (start.saturating_sub(AROUND), text.len().min(end + AROUND));
        if windows.last().is_some_and(|last| end <= last.1) {
            continue;
        }
        let (start, end) = (line_start(text, start), line_end(text, end));
        match windows.last_mut() {
            Some(last) if start <= last.1 => last.1 = end,
            _ => windows.push((start, end)),
        }
    }
    windows
}

/// The start of the line that contains `at`. Of a line longer than [`LINE`], the start of a word before `at`.
fn line_start(text: &str, at: usize) -> usize {
    let from = at.saturating_sub(LINE);
    let before = &text.as_bytes()[from..at];
    let blank = || memchr::memrchr(b' ', before).filter(|_| from > 0);
    memchr::memrchr(b'\n', before).or_else(blank).map_or(border(text, from), |gap| from + gap + 1)
}

/// The end of the line that contains `at`, with its line break. Of a line longer than [`LINE`], the end of a word
/// behind `at`.
fn line_end(text: &str, at: usize) -> usize {
    let to = text.len().min(at + LINE);
    let behind = &text.as_bytes()[at..to];
    let blank = || memchr::memchr(b' ', behind).filter(|_| to < text.len());
    memchr::memchr(b'\n', behind).or_else(blank).map_or(border(text, to), |gap| at + gap + 1)
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
