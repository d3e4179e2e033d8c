//! What becomes of a file of the store, byte for byte: so that a change can be made twice with the same result, be shown
//! before it is made, and be taken back.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::store::entry::{Entry, EntryId};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Where a note lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    Topics,
    Archive,
}

impl Place {
    /// Its directory, below the store.
    pub fn dir(self) -> &'static str {
        match self {
            Place::Topics => "topics",
            Place::Archive => "archive",
        }
    }

    /// The one with this directory.
    pub fn at(dir: &str) -> Option<Place> {
        [Place::Topics, Place::Archive].into_iter().find(|place| place.dir() == dir)
    }

    /// The path of a note below the store.
    pub fn path(self, name: &OsStr) -> PathBuf {
        Path::new(self.dir()).join(name)
    }
}

/// A file at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// The directory, below the store.
    place: JsonBytes,
    name: JsonBytes,
    text: JsonBytes,
}

/// Bytes, in JSON: names and files are nearly always text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum JsonBytes {
    Utf8(String),
    Bytes(Vec<u8>),
}

impl JsonBytes {
    fn of(bytes: Vec<u8>) -> JsonBytes {
        String::from_utf8(bytes).map_or_else(|error| JsonBytes::Bytes(error.into_bytes()), JsonBytes::Utf8)
    }

    fn bytes(&self) -> &[u8] {
        match self {
            JsonBytes::Utf8(text) => text.as_bytes(),
            JsonBytes::Bytes(bytes) => bytes,
        }
    }

    fn os(&self) -> &OsStr {
        file::name_of(self.bytes()).unwrap_or_default()
    }
}

/// What becomes of one file. Without a `before` it is new, without an `after` it goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    pub before: Option<Version>,
    pub after: Option<Version>,
}

impl Version {
    /// A note's file.
    pub fn new(place: Place, name: &(impl AsRef<OsStr> + ?Sized), entry: &Entry) -> Version {
        Version::at(&place.path(name.as_ref()), entry.bytes().to_vec())
    }

    pub fn at(path: &Path, bytes: Vec<u8>) -> Version {
        let text = |part: Option<&OsStr>| JsonBytes::of(part.unwrap_or_default().as_encoded_bytes().to_vec());
        let place = text(path.parent().map(Path::as_os_str));
        Version { place, name: text(path.file_name()), text: JsonBytes::of(bytes) }
    }

    /// Below the store, like `topics/x.md`.
    pub fn path(&self) -> PathBuf {
        Path::new(self.place.os()).join(self.name.os())
    }

    pub fn bytes(&self) -> &[u8] {
        self.text.bytes()
    }

    pub fn name(&self) -> &OsStr {
        self.name.os()
    }

    /// Where it lies, if it is a note's file.
    pub fn place(&self) -> Option<Place> {
        Place::at(self.place.os().to_str()?)
    }

    pub fn entry(&self) -> Result<Entry> {
        Entry::parse(self.bytes().to_vec())
            .map_err(|why| Error::io(format!("the plan's \"{}\" is no note: {why}", self.path().display())))
    }
}

impl Revision {
    /// What there is of it: before, after.
    pub fn versions(&self) -> impl Iterator<Item = &Version> {
        self.before.iter().chain(&self.after)
    }

    pub fn reversed(&self) -> Revision {
        Revision { before: self.after.clone(), after: self.before.clone() }
    }

    /// The id of the note that it is about; `None` if it is about another file.
    pub fn id(&self) -> Option<EntryId> {
        let version = self.after.as_ref().or(self.before.as_ref())?;
        version.place()?;
        version.entry().ok().map(|entry| entry.into_meta().id)
    }
}
