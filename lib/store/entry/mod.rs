//! One note: Markdown under a YAML front matter, as people edit it too.
//!
//! A note is its bytes. What we change is the lines of the keys that changed, or the body; all else, comments
//! and other people's keys included, stays as it was found.

mod edit;
mod front_matter;
mod id;
mod meta;
mod name;
mod quick;
mod render;
mod scalar;
mod schema;
mod value;
mod yaml;

pub(crate) use crate::store::entry::id::{EntryId, links};
pub(crate) use crate::store::entry::meta::{Meta, Scope, Source, Status, Tier, one_line};
pub(crate) use crate::store::entry::name::{is_tag, tag};

use crate::store::entry::front_matter::{CAP, Frame, too_large};
use crate::store::entry::schema::KEYS;
use crate::store::entry::yaml::Document;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// A note's file, read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    bytes: Vec<u8>,
    frame: Frame,
    meta: Meta,
}

impl Entry {
    /// A new note. Its title and summary are made one line each, see [`one_line`].
    ///
    /// It can be read again unless its front matter is larger than 64 KiB: [`Entry::fits`] tells.
    pub(crate) fn new(mut meta: Meta, body: &[u8]) -> Entry {
        meta.title = one_line(&meta.title);
        meta.summary = one_line(&meta.summary);
        let yaml = render::front_matter(&meta);
        let start = "---\n".len();
        let head = format!("---\n{yaml}---\n\n");
        let frame =
            Frame { yaml: start..start + yaml.len(), body: head.len(), separated: true, newline: "\n" };
        Entry { bytes: [head.as_bytes(), body].concat(), frame, meta }
    }

    /// Reads a file's bytes. An error is one line, with the line's number where one is to blame.
    pub(crate) fn parse(bytes: Vec<u8>) -> Result<Entry, String> {
        let frame = Frame::of(&bytes)?;
        let meta = read_meta(yaml_text(&bytes, &frame)?)?;
        Ok(Entry { bytes, frame, meta })
    }

    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    pub(crate) fn into_meta(self) -> Meta {
        self.meta
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.frame.body..]
    }

    /// The file.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The file without the lines that count reads: what has to be the same for a note to count as unchanged.
    pub(crate) fn without_counters(&self) -> Vec<u8> {
        let is_counter = |line: &&[u8]| line.starts_with(b"used:") || line.starts_with(b"last_used:");
        let yaml = &self.bytes[self.frame.yaml.clone()];
        let kept = yaml.split_inclusive(|byte| *byte == b'\n').filter(|line| !is_counter(line));
        let (before, after) = (&self.bytes[..self.frame.yaml.start], &self.bytes[self.frame.yaml.end..]);
        let mut bytes = Vec::with_capacity(self.bytes.len());
        bytes.extend_from_slice(before);
        kept.for_each(|line| bytes.extend_from_slice(line));
        bytes.extend_from_slice(after);
        bytes
    }

    /// A short hash of [`Entry::without_counters`]: it differs when the note was edited, and not when it was read.
    pub(crate) fn fingerprint(&self) -> String {
        let digest = Sha256::digest(self.without_counters());
        digest.iter().take(8).fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    /// Whether the file can be read again, which a front matter of more than 64 KiB cannot.
    pub(crate) fn fits(&self) -> Result<(), String> {
        if self.frame.yaml.len() > CAP { Err(too_large()) } else { Ok(()) }
    }

    /// Changes values, and in the file the lines of these keys alone. A changed title or summary is made one
    /// line. An id never changes.
    ///
    /// The result is read again before it counts: every other key must be as before and every comment still
    /// there. Where that fails, as with anchors or a front matter in braces, nothing has changed.
    pub(crate) fn update(&mut self, change: impl FnOnce(&mut Meta)) -> Result<(), String> {
        let mut meta = self.meta.clone();
        change(&mut meta);
        for (new, old) in [(&mut meta.title, &self.meta.title), (&mut meta.summary, &self.meta.summary)] {
            if new != old {
                *new = one_line(new);
            }
        }
        if meta.id != self.meta.id {
            return Err(format!("an id never changes: {} to {}", self.meta.id, meta.id));
        }
        let changes: Vec<_> = KEYS
            .into_iter()
            .map(|key| (key, render::lines(&meta, key)))
            .filter(|(key, lines)| *lines != render::lines(&self.meta, key))
            .collect();
        if changes.is_empty() {
            return Ok(());
        }
        let changed = |key: &str| changes.iter().any(|(changed, _)| *changed == key);
        let by_hand = |why: String| {
            let keys: Vec<_> = changes.iter().map(|(key, _)| *key).collect();
            format!(
                "{} cannot be changed without touching other lines: {why}; edit it by hand",
                keys.join(", ")
            )
        };
        let text = yaml_text(&self.bytes, &self.frame)?;
        let before = Document::read(text)?;
        let edited = edit::replace(text, &before, &changes, self.frame.newline).map_err(by_hand)?;
        if edited.len() > CAP {
            return Err(too_large());
        }
        let after = self.with_yaml(&edited).map_err(by_hand)?;
        verify(&before, text, &after, &meta, changed).map_err(by_hand)?;
        *self = after;
        Ok(())
    }

    /// Changes the body. Where the file has no empty line after the front matter, it gets one.
    pub(crate) fn set_body(&mut self, body: &[u8]) {
        if body == self.body() {
            return;
        }
        self.bytes.truncate(self.frame.body);
        if !self.frame.separated {
            if !self.bytes.ends_with(b"\n") {
                self.bytes.extend(self.frame.newline.bytes());
            }
            self.bytes.extend(self.frame.newline.bytes());
            self.frame.separated = true;
            self.frame.body = self.bytes.len();
        }
        self.bytes.extend(body);
    }

    /// This note with another front matter, read from its bytes.
    fn with_yaml(&self, yaml: &str) -> Result<Entry, String> {
        let (before, after) = (&self.bytes[..self.frame.yaml.start], &self.bytes[self.frame.yaml.end..]);
        Entry::parse([before, yaml.as_bytes(), after].concat())
    }
}

fn yaml_text<'a>(bytes: &'a [u8], frame: &Frame) -> Result<&'a str, String> {
    let yaml = &bytes[frame.yaml.clone()];
    std::str::from_utf8(yaml).map_err(|error| {
        let good = &yaml[..error.valid_up_to()];
        yaml::at(memchr::memchr_iter(b'\n', good).count() + 1, "not UTF-8")
    })
}

/// Keys, and what their values are, in words.
#[cfg(any(test, fuzzing))]
type Told = Vec<(String, String)>;

/// The fields of a front matter by the quick reader, where it is sure of them, and by the YAML parser.
#[cfg(any(test, fuzzing))]
pub(crate) fn read_both(text: &str) -> (Option<Told>, Result<Told, String>) {
    let told = |fields: Vec<value::Field>| {
        fields.into_iter().map(|field| (field.key.into_owned(), format!("{:?}", field.value))).collect()
    };
    (quick::read(text).map(told), Document::read(text).map(|document| told(document.fields)))
}

fn read_meta(text: &str) -> Result<Meta, String> {
    match quick::read(text) {
        Some(fields) => schema::meta(fields),
        None => schema::meta(Document::read(text)?.fields),
    }
}

/// Whether `after` says `meta`, and else what `before` said, in the same order, with the same comments and
/// the same body.
fn verify(
    before: &Document,
    text: &str,
    after: &Entry,
    meta: &Meta,
    changed: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let new_text = yaml_text(&after.bytes, &after.frame)?;
    let new = Document::read(new_text)?;
    let kept = |document: &Document| -> Vec<_> {
        let fields = document.fields.iter().filter(|field| !changed(&field.key));
        fields.map(|field| (field.key.clone(), field.value.clone())).collect()
    };
    let comments = |document: &Document, text: &str| -> Vec<String> {
        document.comments.iter().map(|comment| text[comment.clone()].to_owned()).collect()
    };
    if after.meta != *meta {
        return Err("it would read otherwise".to_owned());
    }
    if kept(before) != kept(&new) {
        return Err("another key would change".to_owned());
    }
    if comments(before, text) != comments(&new, new_text) {
        return Err("a comment would be lost".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
