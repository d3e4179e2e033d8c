//! What the text of a note says to the checks.
//!
//! To search every note for secrets and dangers takes longer than all else that the doctor does. So what is known of notes in
//! which it found neither is kept in a cache. What is a secret depends on this program and on the configuration's patterns:
//! another program, or other patterns, have another cache.

use crate::base::file::{self, Moment};
use crate::base::packed::{Unpack, checksum, put_bytes, put_number};
use crate::base::text::strays;
use crate::config::memory::Redact;
use crate::memory::doctor::finding::CheckContext;
use crate::memory::links::links;
use crate::memory::record::{Danger, dangers};
use crate::store::entry::{EntryId, Meta};
use crate::store::index::{CacheFormat, NoteCache};
use crate::store::persistence::{Note, Place};
use crate::store::place::Root;
use std::borrow::Cow;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct TextFacts {
    /// Those of [`Redactor::kinds`](crate::memory::redact::Redactor::kinds).
    pub(super) secrets: BTreeMap<&'static str, (usize, usize)>,
    pub(super) dangers: Vec<Danger>,
    /// The first character that nobody sees, its line, and how many there are.
    pub(super) hidden: Option<(char, usize, usize)>,
    pub(super) lines: usize,
    pub(super) links: Vec<EntryId>,
}

impl TextFacts {
    pub(super) fn of(note: &Note, cx: &CheckContext) -> TextFacts {
        let Meta { title, summary, .. } = note.entry.meta();
        let body = note.entry.body();
        let newlines = memchr::memchr_iter(b'\n', body).count();
        let mut facts = TextFacts {
            secrets: cx.redactor.kinds(&text_of(note.entry.bytes())),
            lines: newlines + usize::from(!body.is_empty() && !body.ends_with(b"\n")),
            ..TextFacts::default()
        };
        if note.place == Place::Topics {
            let text = text_of(note.entry.bytes());
            // What marks the order of bytes is no part of it.
            let text = text.trim_start_matches('\u{feff}');
            facts.hidden = strays(text).next().map(|(at, c)| {
                (c, memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count() + 1, strays(text).count())
            });
            facts.dangers = dangers(&format!("{title}\n{summary}\n{}", text_of(body)));
            facts.links = links(&text_of(body));
        }
        facts
    }

    /// For the cache. `None` if something has to be quoted from the text.
    pub(super) fn pack(&self) -> Option<Vec<u8>> {
        let mut to = Vec::new();
        put_number(&mut to, self.lines as u64);
        put_number(&mut to, self.links.len() as u64);
        self.links.iter().for_each(|id| put_bytes(&mut to, id.as_str().as_bytes()));
        let is_clean = self.secrets.is_empty() && self.dangers.is_empty() && self.hidden.is_none();
        is_clean.then_some(to)
    }

    pub(super) fn unpack(mut from: Unpack<'_>) -> Option<TextFacts> {
        let lines = from.size()?;
        let links = from.list(|from| EntryId::whole(from.text()?))?;
        Some(TextFacts { lines, links, ..TextFacts::default() })
    }
}

/// Checking for UTF-8 first is faster than the lossy conversion alone.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// What is known of the notes without secrets and dangers.
pub(super) fn open_cache(root: &Root, redact: &Redact) -> NoteCache {
    // Where it is not known what decides, no other run decides the same.
    let rules = rules(redact).unwrap_or_else(|| Moment::now().nanoseconds().cast_unsigned());
    NoteCache::open(root, CacheFormat { name: "doctor.cache", magic: *b"axeheal3", rules })
}

/// What decides whether a text has a secret or a danger.
fn rules(redact: &Redact) -> Option<u64> {
    let own = std::env::current_exe().ok()?;
    let mut bytes = Vec::new();
    put_bytes(&mut bytes, own.as_os_str().as_encoded_bytes());
    file::stamp(&own)?.pack(&mut bytes);
    put_number(&mut bytes, u64::from(redact.enabled));
    redact.patterns.iter().for_each(|pattern| put_bytes(&mut bytes, pattern.as_bytes()));
    Some(checksum(&bytes))
}
