//! One note: Markdown under a YAML front matter, as people edit it too.
//!
//! A note is its bytes. An update changes the lines of the keys that changed, or the body; everything else, comments
//! and other people's keys included, stays as it was.

mod edit;
mod front_matter;
mod id;
mod meta;
mod name;
mod packed;
mod quick;
mod scalar;
mod schema;
mod value;
mod yaml;

pub use crate::store::entry::id::{EntryId, ID_PREFIX, links, mentioned};
pub(crate) use crate::store::entry::meta::words;
pub use crate::store::entry::meta::{ANCHORS, Anchor, Branch, By, Lines, Meta, Scope, Source, Status, Tier};
pub use crate::store::entry::meta::{RANKS, add_missing, one_line, only_repo, repos};
pub use crate::store::entry::name::{is_tag, tag};
pub use crate::store::entry::packed::{pack, unpack};

use crate::base::error::{Error, Result};
use crate::base::text::hex;
use crate::store::entry::front_matter::{CAP, Frame, too_large};
use crate::store::entry::schema::{KEYS, lines};
use crate::store::entry::yaml::Yaml;
use sha2::{Digest, Sha256};

/// The keys that a person edits in a form.
const FORM: [&str; 3] = ["title", "summary", "tags"];

/// What changes without a change of what the note says.
const COUNTERS: [&str; 5] = ["used", "last_used", "anchors", "branch", "confirmed"];

/// The harness of the source that a person's word in review adds.
pub const REVIEW: &str = "review";

/// The harness of the only source of a note that is a file of a repository.
pub const SHARED: &str = "repository";

/// Why a note is a person's own: what it says changes only with that person's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    Global,
    Pinned,
    /// By a person from the start, or edited since we last wrote it.
    HandWritten,
    /// In review.
    Accepted,
}

impl Kept {
    /// Why a change of the note waits for a person.
    pub fn reason(self) -> &'static str {
        match self {
            Kept::Global => "The note holds in all repositories.",
            Kept::Pinned => "The note is pinned.",
            Kept::HandWritten => "A person wrote the note.",
            Kept::Accepted => "A person accepted the note.",
        }
    }
}

/// What decides about a note besides its metadata, for a cache that does not hold its text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BodyFacts {
    /// The size of the body.
    pub bytes: u64,
    /// See [`Entry::is_edited`].
    pub is_edited: bool,
}

impl BodyFacts {
    pub fn pack(self) -> u64 {
        self.bytes << 1 | u64::from(self.is_edited)
    }

    pub fn unpack(number: u64) -> BodyFacts {
        BodyFacts { bytes: number >> 1, is_edited: number & 1 == 1 }
    }
}

impl Meta {
    /// See [`Entry::kept`].
    pub fn kept(&self, is_edited: impl FnOnce() -> bool) -> Option<Kept> {
        if self.scope == Scope::Global {
            Some(Kept::Global)
        } else if self.pinned {
            Some(Kept::Pinned)
        } else {
            self.own(is_edited)
        }
    }

    /// It is pinned, or a person wrote, edited or accepted its text.
    pub fn is_own(&self, is_edited: impl FnOnce() -> bool) -> bool {
        self.pinned || self.own(is_edited).is_some()
    }

    /// What a person did about its text, however far it holds.
    pub fn own(&self, is_edited: impl FnOnce() -> bool) -> Option<Kept> {
        if self.is_typed() || is_edited() {
            Some(Kept::HandWritten)
        } else {
            self.is_from(REVIEW).then_some(Kept::Accepted)
        }
    }

    /// By a person from the start.
    pub fn is_typed(&self) -> bool {
        self.sources.is_empty() || self.is_from("manual")
    }

    /// It is a file of a repository, and none of the person's.
    pub fn is_shared(&self) -> bool {
        // Somebody's own program may have that name, too. Its sessions have a time.
        self.is_from(SHARED) && self.sources.iter().all(|source| source.at.is_none())
    }

    fn is_from(&self, harness: &str) -> bool {
        self.sources.iter().any(|source| source.harness.as_deref() == Some(harness))
    }
}

/// A note's file, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    bytes: Vec<u8>,
    frame: Frame,
    meta: Meta,
}

impl Entry {
    /// A new note. Its title and summary are made one line each.
    ///
    /// It cannot be read again if its front matter is too large, see [`Entry::fits`].
    pub fn new(mut meta: Meta, body: &[u8]) -> Entry {
        meta.title = one_line(&meta.title);
        meta.summary = one_line(&meta.summary);
        let yaml = schema::front_matter(&meta);
        let start = "---\n".len();
        let head = format!("---\n{yaml}---\n\n");
        let frame =
            Frame { yaml: start..start + yaml.len(), body: head.len(), separated: true, newline: "\n" };
        Entry { bytes: [head.as_bytes(), body].concat(), frame, meta }
    }

    /// Parses the bytes of a file. The message of an error is one line, with the number of the faulty line if one is.
    pub fn parse(bytes: Vec<u8>) -> Result<Entry> {
        let frame = Frame::of(&bytes)?;
        let meta = read_meta(yaml_text(&bytes, &frame)?)?;
        Ok(Entry { bytes, frame, meta })
    }

    /// The note in a file that lacks nothing but an id, with one that is made from its title and this.
    pub fn with_new_id(bytes: &[u8], name: &str, is_taken: impl Fn(&EntryId) -> bool) -> Option<Entry> {
        let frame = Frame::of(bytes).ok()?;
        let (before, after) = bytes.split_at(frame.yaml.start);
        let with = |id: &EntryId| {
            let line = format!("id: {id}{}", frame.newline);
            Entry::parse([before, line.as_bytes(), after].concat()).ok()
        };
        // A key that is given twice is an error: there is no id yet.
        let title = with(&EntryId::make("", 0, |_| false))?.into_meta().title;
        with(&EntryId::make(&format!("{name}\0{title}"), 0, is_taken))
    }

    /// What a person edits of a note: a file with title, summary and tags above the text.
    pub fn form(&self) -> Vec<u8> {
        let keys = KEYS.iter().filter(|(key, ..)| FORM.contains(key));
        let lines: String = keys.filter_map(|key| lines(&self.meta, key)).map(|line| line + "\n").collect();
        [format!("---\n{lines}---\n\n").as_bytes(), self.body()].concat()
    }

    /// The form that an editor left, as a note with this id.
    ///
    /// # Errors
    /// It is no note, or has other keys: they would be lost.
    pub fn of_form(bytes: &[u8], id: &EntryId) -> Result<Entry> {
        let frame = Frame::of(bytes)?;
        if let Some(other) =
            Yaml::read(yaml_text(bytes, &frame)?)?.fields.iter().find(|field| !FORM.contains(&&*field.key))
        {
            let why = format!("\"{}\" is not one of {}", one_line(&other.key), FORM.join(", "));
            return Err(
                yaml::in_line(other.line, Error::corrupt(why)).hint("change other keys with: memory-update")
            );
        }
        // The last line, so that the others keep their numbers.
        let (before, after) = bytes.split_at(frame.yaml.end);
        Entry::parse([before, format!("id: {id}{}", frame.newline).as_bytes(), after].concat())
    }

    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    pub fn into_meta(self) -> Meta {
        self.meta
    }

    pub fn body(&self) -> &[u8] {
        &self.bytes[self.frame.body..]
    }

    /// The file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The lines between the two of dashes. It was read, so it is text.
    pub fn front_matter(&self) -> &str {
        yaml_text(&self.bytes, &self.frame).unwrap_or_default()
    }

    /// The file with other lines there, which nobody has read yet.
    pub fn with_front_matter(&self, yaml: &str) -> Vec<u8> {
        let (before, after) = (&self.bytes[..self.frame.yaml.start], &self.bytes[self.frame.yaml.end..]);
        [before, yaml.as_bytes(), after].concat()
    }

    /// The file without the lines that count reads, or say what it rests on: a note is unchanged if the rest is.
    pub(super) fn without_counters(&self) -> Vec<u8> {
        self.without_keys(&COUNTERS)
    }

    /// The file without the lines of these keys of ours.
    pub fn without_keys(&self, keys: &[&str]) -> Vec<u8> {
        let is_of =
            |line: &str, key: &&str| line.strip_prefix(*key).is_some_and(|rest| rest.starts_with(':'));
        let mut is_left_out = false;
        let lines = self.front_matter().split_inclusive('\n').filter(|line| {
            // A value may go on in further lines.
            is_left_out =
                keys.iter().any(|key| is_of(line, key)) || is_left_out && line.starts_with([' ', '\t', '-']);
            !is_left_out
        });
        self.with_front_matter(&lines.collect::<String>())
    }

    /// A short hash of the note without its counters: it differs when the note was edited, and not when it was read.
    pub fn fingerprint(&self) -> String {
        hex(&Sha256::digest(self.without_counters())[..8])
    }

    /// SHA-256 of the file, in hex, without what changes by itself: counters and times, and what defrag thinks of the note.
    /// A change that waits for review names the note that it was made for by this.
    pub fn base(&self) -> String {
        let others = ["updatedAt", "status", "tier", "rank"];
        hex(&Sha256::digest(self.without_keys(&[&COUNTERS[..], &others].concat())))
    }

    /// A short hash of title, summary, tags and body.
    fn text_hash(&self) -> String {
        let Meta { title, summary, tags, .. } = &self.meta;
        // No field holds a NUL or a line end that could stand for the border of the next.
        let head = format!("{title}\0{summary}\0{}\0", tags.join("\n"));
        hex(&Sha256::new().chain_update(head).chain_update(self.body()).finalize()[..8])
    }

    /// A short hash of what a reader is given of it: title and text, or the summary where there is no text.
    pub fn told(&self) -> String {
        let text =
            if self.body().trim_ascii().is_empty() { self.meta.summary.as_bytes() } else { self.body() };
        let told = Sha256::new().chain_update(&self.meta.title).chain_update([0]).chain_update(text);
        hex(&told.finalize()[..8])
    }

    /// Remembers the text as what we wrote: if it differs later, a person has edited the file, see
    /// [`Entry::is_edited`]. The last step of whoever writes a note for an agent.
    ///
    /// # Errors
    /// As those of a change: the front matter may be one that cannot be changed surely.
    pub fn seal(&mut self) -> Result<()> {
        let hash = self.text_hash();
        self.update(|meta| meta.written = Some(hash))
    }

    /// It says something else than what we wrote last. Not known, and so `false`, of notes of older versions.
    pub fn is_edited(&self) -> bool {
        self.meta.written.as_ref().is_some_and(|written| *written != self.text_hash())
    }

    /// Why no agent may change what it says, if a person has taken it for their own.
    pub fn kept(&self) -> Option<Kept> {
        self.meta.kept(|| self.is_edited())
    }

    pub fn body_facts(&self) -> BodyFacts {
        BodyFacts { bytes: self.body().len() as u64, is_edited: self.is_edited() }
    }

    /// An error if the front matter is larger than 64 KiB: such a file could not be read again.
    pub fn fits(&self) -> Result<()> {
        if self.frame.yaml.len() > CAP { Err(Error::usage(too_large())) } else { Ok(()) }
    }

    /// Changes values, and in the file only the lines of their keys. A changed title or summary is made one line.
    /// The id cannot change.
    ///
    /// The result is read again before it is accepted: all other keys and all comments must be as before. If they are
    /// not, as with anchors or a front matter in braces, that is an error and nothing changes.
    pub fn update(&mut self, change: impl FnOnce(&mut Meta)) -> Result<()> {
        let mut meta = self.meta.clone();
        change(&mut meta);
        for (new, old) in [(&mut meta.title, &self.meta.title), (&mut meta.summary, &self.meta.summary)] {
            if new != old {
                *new = one_line(new);
            }
        }
        if meta.id != self.meta.id {
            return Err(Error::usage(format!("an id never changes: {} to {}", self.meta.id, meta.id)));
        }
        let new = KEYS.iter().map(|key| (key, lines(&meta, key)));
        let changes = new.filter(|(key, new)| *new != lines(&self.meta, key));
        let changes: Vec<_> = changes.map(|((key, ..), new)| (*key, new)).collect();
        if changes.is_empty() {
            return Ok(());
        }
        let changed = |key: &str| changes.iter().any(|(changed, _)| *changed == key);
        let by_hand = |error: Error| {
            let keys: Vec<_> = changes.iter().map(|(key, _)| *key).collect();
            error
                .context(format_args!("{} cannot be changed without touching other lines", keys.join(", ")))
                .hint("edit it by hand")
        };
        let text = yaml_text(&self.bytes, &self.frame)?;
        let before = Yaml::read(text)?;
        let edited = edit::replace(text, &before, &changes, self.frame.newline).map_err(by_hand)?;
        if edited.len() > CAP {
            return Err(Error::usage(too_large()));
        }
        let after = Entry::parse(self.with_front_matter(&edited)).map_err(by_hand)?;
        verify(&before, text, &after, &meta, changed).map_err(by_hand)?;
        *self = after;
        Ok(())
    }

    /// Replaces the body. If the file has no empty line after the front matter, it gets one.
    pub fn set_body(&mut self, body: &[u8]) {
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
}

/// It is one of our keys.
pub fn is_own_key(key: &str) -> bool {
    KEYS.iter().any(|(own, ..)| *own == key)
}

fn yaml_text<'a>(bytes: &'a [u8], frame: &Frame) -> Result<&'a str> {
    let yaml = &bytes[frame.yaml.clone()];
    std::str::from_utf8(yaml).map_err(|error| {
        let good = &yaml[..error.valid_up_to()];
        yaml::in_line(memchr::memchr_iter(b'\n', good).count() + 1, Error::corrupt("not UTF-8"))
    })
}

/// Keys and values, for a comparison.
#[cfg(any(test, fuzzing))]
type Pairs = Vec<(String, String)>;

/// The fields of a front matter as the quick reader and the YAML parser read them; `None` where they cannot.
#[cfg(any(test, fuzzing))]
pub fn read_both(text: &str) -> (Option<Pairs>, Option<Pairs>) {
    let pairs = |fields: Vec<value::Field>| {
        fields.into_iter().map(|field| (field.key.into_owned(), format!("{:?}", field.value))).collect()
    };
    (quick::read(text).map(pairs), Yaml::read(text).ok().map(|document| pairs(document.fields)))
}

fn read_meta(text: &str) -> Result<Meta> {
    match quick::read(text) {
        Some(fields) => schema::meta(fields),
        None => schema::meta(Yaml::read(text)?.fields),
    }
}

/// An error unless `after` reads as `meta`, and all else, comments included, is as in `before`.
fn verify(
    before: &Yaml,
    text: &str,
    after: &Entry,
    meta: &Meta,
    changed: impl Fn(&str) -> bool,
) -> Result<()> {
    let new_text = yaml_text(&after.bytes, &after.frame)?;
    let new = Yaml::read(new_text)?;
    let kept = |document: &Yaml| -> Vec<_> {
        let fields = document.fields.iter().filter(|field| !changed(&field.key));
        fields.map(|field| (field.key.clone(), field.value.clone())).collect()
    };
    let comments = |document: &Yaml, text: &str| -> Vec<String> {
        document.comments.iter().map(|comment| text[comment.clone()].to_owned()).collect()
    };
    if after.meta != *meta {
        return Err(Error::corrupt("it would read differently"));
    }
    if kept(before) != kept(&new) {
        return Err(Error::corrupt("another key would change"));
    }
    if comments(before, text) != comments(&new, new_text) {
        return Err(Error::corrupt("a comment would be lost"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
