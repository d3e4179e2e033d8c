//! Which notes may be about a call of a tool: their [`Subject`]s in few bytes, in `.agent-memory/subjects.cache`.
//!
//! A call has a few milliseconds, and ten thousand notes have that many files. So this file is asked first, and of the notes that
//! it names each is read again: it is never trusted, and may be deleted at any time. It is as old as the directory of the
//! notes. When that has changed, files with a new name or inode are read; at the start of a session, those that were changed
//! in their place, too.

use crate::base::error::Result;
use crate::base::file::{self, Dir, Moment};
use crate::base::glob;
use crate::base::packed::{Unpack, checksum, put_bytes, put_number, put_signed};
use crate::base::parallel;
use crate::memory::recall::act::Act;
use crate::memory::recall::subject::Subject;
use crate::store::persistence::Place;
use crate::store::place::Root;
use crate::store::topics::read;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::path::PathBuf;

const NAME: &str = "subjects.cache";
/// Another number, other rules of what a note is about.
const MAGIC: u64 = u64::from_le_bytes(*b"subject1");
/// The largest file that is read, in bytes.
const CAP: u64 = 64 << 20;

pub(super) struct Subjects {
    root: Root,
    /// When the directory had last changed, in nanoseconds since 1970, and before when a change was sure to be seen.
    changed: i64,
    settled: i64,
    notes: Vec<u8>,
}

/// What is remembered of a note.
struct Known<'a> {
    inode: u64,
    /// When the file was last changed, in nanoseconds since 1970.
    changed: i64,
    /// Globs, then keys.
    subject: &'a [u8],
}

impl Subjects {
    /// As of now. If the directory has changed it is made anew, and if `is_thorough` in any case.
    pub(super) fn of(root: &Root, is_thorough: bool) -> Result<Subjects> {
        let known = Subjects::load(root);
        let now = Dir::open(&root.topics()).ok().and_then(|dir| dir.changed());
        match known {
            Some(known) if !is_thorough && Some(known.changed) == now && known.changed < known.settled => {
                Ok(known)
            }
            known => Subjects::made(root, known.as_ref(), is_thorough),
        }
    }

    fn path(root: &Root) -> PathBuf {
        root.state().join(NAME)
    }

    fn load(root: &Root) -> Option<Subjects> {
        let bytes = file::read(&Subjects::path(root), CAP).ok()?;
        let (sum, rest) = bytes.split_at_checked(8)?;
        if sum != checksum(rest).to_le_bytes() {
            return None;
        }
        let mut from = Unpack(rest);
        let is_ours = from.number()? == MAGIC && from.bytes()? == root.mark();
        let (changed, settled) = (from.signed()?, from.signed()?);
        let (root, notes) = (root.clone(), from.0.to_vec());
        is_ours.then_some(Subjects { root, changed, settled, notes })
    }

    /// Calls `each` with every note.
    fn each<'a>(&'a self, mut each: impl FnMut(&'a [u8], Known<'a>)) {
        let mut from = Unpack(&self.notes);
        let mut next = || Some((from.bytes()?, from.number()?, from.signed()?, from.bytes()?));
        while let Some((name, inode, changed, subject)) = next() {
            each(name, Known { inode, changed, subject });
        }
    }

    fn made(root: &Root, before: Option<&Subjects>, is_thorough: bool) -> Result<Subjects> {
        let mut known = HashMap::new();
        before.iter().for_each(|before| before.each(|name, note| drop(known.insert(name, note))));
        let settled = file::settled(Moment::now().nanoseconds(), i64::MAX, 0);
        let dir = Dir::open(&root.topics()).ok();
        let changed = dir.as_ref().and_then(Dir::changed).unwrap_or_default();
        let mut names = dir.as_ref().map(Dir::names).transpose()?.unwrap_or_default();
        names.retain(|(name, _)| is_note(name));
        let notes = parallel::map_files(&names, |_, (name, inode)| {
            let stamp = || dir.as_ref().and_then(|dir| dir.stamp(name));
            let known = known.get(name.as_encoded_bytes()).filter(|known| {
                let is_as_it_was = || stamp().is_some_and(|stamp| stamp.changed == known.changed);
                // One that was written as it was read may have been written again.
                let is_same = known.inode == *inode && known.changed < before.map_or(0, |one| one.settled);
                is_same && (!is_thorough || is_as_it_was())
            });
            let mut note = Vec::new();
            put_bytes(&mut note, name.as_encoded_bytes());
            put_number(&mut note, *inode);
            match known {
                Some(known) => {
                    put_signed(&mut note, known.changed);
                    put_bytes(&mut note, known.subject);
                }
                None => {
                    put_signed(&mut note, stamp().map_or(i64::MAX, |stamp| stamp.changed));
                    let read = read(Place::Topics, &root.topics().join(name)).ok();
                    let subject = read.map(|note| Subject::of(&note.entry)).unwrap_or_default();
                    put_bytes(&mut note, &packed(&subject));
                }
            }
            note
        });
        let subjects = Subjects { root: root.clone(), changed, settled, notes: notes.concat() };
        // Without it the next call takes longer.
        let _ = subjects.save();
        Ok(subjects)
    }

    fn save(&self) -> Result<()> {
        let mut rest = Vec::with_capacity(self.notes.len() + 64);
        put_number(&mut rest, MAGIC);
        put_bytes(&mut rest, self.root.mark());
        put_signed(&mut rest, self.changed);
        put_signed(&mut rest, self.settled);
        rest.extend_from_slice(&self.notes);
        let bytes = [&checksum(&rest).to_le_bytes(), &rest[..]].concat();
        Ok(file::install_unsynced(&Subjects::path(&self.root), &bytes, 0o600)?)
    }

    /// The files of the notes that may be about a call.
    pub(super) fn about(&self, act: &Act) -> Vec<PathBuf> {
        let keys = act.keys();
        let mut found = Vec::new();
        if keys.is_empty() {
            return found;
        }
        self.each(|name, note| {
            if may_be_about(note.subject, act, &keys).unwrap_or_default()
                && let Some(name) = file::name_of(name)
            {
                found.push(self.root.topics().join(name));
            }
        });
        found
    }
}

/// By its name.
fn is_note(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.ends_with(b".md") && !name.starts_with(b".")
}

fn packed(subject: &Subject) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_number(&mut bytes, subject.globs.len() as u64);
    subject.globs.iter().for_each(|glob| put_bytes(&mut bytes, glob.as_bytes()));
    bytes.extend(subject.keys().into_iter().flat_map(u64::to_le_bytes));
    bytes
}

fn may_be_about(subject: &[u8], act: &Act, keys: &BTreeSet<u64>) -> Option<bool> {
    let mut from = Unpack(subject);
    let globs = from.list(Unpack::text)?;
    let (its, _) = from.0.as_chunks::<8>();
    let is_matched = |glob: &&str| act.files.iter().any(|file| glob::matches(glob, &file.path));
    Some(its.iter().any(|key| keys.contains(&u64::from_le_bytes(*key))) || globs.iter().any(is_matched))
}
