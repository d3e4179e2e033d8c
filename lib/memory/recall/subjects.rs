//! Which notes may be about a call of a tool: their [`Subject`]s in few bytes, in `.agent-memory/subjects.cache`.
//!
//! A call has a few milliseconds, and ten thousand notes have that many files. So this cache is asked first, and of the notes
//! that it names each is read again. While the directory of the notes is as it was, no other file is looked at; that one was
//! changed in its place is seen at the start of the next session.

use crate::base::error::Result;
use crate::base::file::Stamp;
use crate::base::glob;
use crate::base::packed::{Unpack, put_bytes, put_number};
use crate::memory::recall::act::Act;
use crate::memory::recall::subject::Subject;
use crate::store::entry::{BodyFacts, Meta};
use crate::store::index::{CacheFormat, KnownNote, NoteCache, record};
use crate::store::persistence::{Note, Place};
use crate::store::place::Root;
use crate::store::topics::{Topics, read};
use std::collections::BTreeSet;

/// Another number, other rules of what a note is about.
const FORMAT: CacheFormat = CacheFormat { name: "subjects.cache", magic: *b"subjects", rules: 1 };
/// So many notes are read for one call.
const MOST: usize = 64;

/// The notes that may be about a call.
pub(super) fn about(root: &Root, act: &Act) -> Result<Vec<Note>> {
    let keys = act.keys();
    if keys.is_empty() || !root.topics().is_dir() {
        return Ok(Vec::new());
    }
    let mut cache = NoteCache::open(root, FORMAT);
    if !cache.knows_all_names() {
        // Without it each call would read all notes, and is better without any.
        if cache.check_writable().is_err() {
            return Ok(Vec::new());
        }
        refresh(root)?;
        cache = NoteCache::open(root, FORMAT);
    }
    let may_be = |known: &KnownNote| may_be_about(known.more(), act, &keys).unwrap_or_default();
    let paths = cache.all().filter(may_be).filter_map(KnownNote::path).take(MOST);
    Ok(paths.filter_map(|path| read(Place::Topics, &path).ok()).collect())
}

/// Looks at every note, and reads those that have changed.
///
/// # Errors
/// The store cannot be read, or the cache cannot be written.
pub fn refresh(root: &Root) -> Result<()> {
    let old = NoteCache::open(root, FORMAT);
    let files = Topics::at(root).files(&[Place::Topics])?;
    let records = files.map(0..files.len(), |file| {
        let of_read = |note: Note, stamp: Option<Stamp>| {
            let (meta, facts) = (Meta::new(note.entry.meta().id.clone()), BodyFacts::default());
            record(file, stamp?, &meta, facts, &packed(&Subject::of(&note.entry)))
        };
        old.look(file, |known| Some(Some(known.bytes().to_vec())), of_read).ok().flatten()
    });
    let records: Vec<Vec<u8>> = records.into_iter().flatten().collect();
    match old.knows_all_names() && old.all().map(KnownNote::bytes).eq(records.iter().map(Vec::as_slice)) {
        true => Ok(()),
        false => old.write(records.len(), &records.concat(), &[]),
    }
}

fn packed(subject: &Subject) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_number(&mut bytes, subject.globs.len() as u64);
    subject.globs.iter().for_each(|glob| put_bytes(&mut bytes, glob.as_bytes()));
    bytes.extend(subject.keys().into_iter().flat_map(u64::to_le_bytes));
    bytes
}

fn may_be_about(mut from: Unpack, act: &Act, keys: &BTreeSet<u64>) -> Option<bool> {
    let globs = from.list(Unpack::text)?;
    let (its, _) = from.0.as_chunks::<8>();
    let is_matched = |glob: &&str| act.files.iter().any(|file| glob::matches(glob, &file.path));
    Some(its.iter().any(|key| keys.contains(&u64::from_le_bytes(*key))) || globs.iter().any(is_matched))
}
