//! What a session was given, in one small file a session: `.agent-memory/recall/<hash>.json`.
//!
//! Losing it does no harm but a repetition, so it is not synced.

use crate::base::error::Result;
use crate::base::file;
use crate::base::text::hex;
use crate::harness::spec::Spec;
use crate::store::entry::EntryId;
use crate::store::place::Root;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// The files of sessions that nobody has gone on with for so long are removed.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long one waits for another hook of the session that gives a note.
const CLAIMED: Duration = Duration::from_millis(50);
/// The largest file that is read, in bytes.
const CAP: u64 = 1 << 20;

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecallSession {
    /// For people: the file's name is a hash.
    harness: String,
    session: String,
    /// It has had the section.
    pub(super) has_section: bool,
    /// A prompt brought it. Gemini CLI loses what a start gave when the session is resumed, and the prompts of that time.
    #[serde(default)]
    pub(super) section_at_prompt: bool,
    /// The notes that it has had whole, or as much of them as there was room for, each with the fingerprint of its text. That is
    /// empty where it is not known.
    #[serde(deserialize_with = "given")]
    pub(super) notes: BTreeMap<EntryId, String>,
    /// The same of the notes of which it has had a line.
    #[serde(default, deserialize_with = "given")]
    pub(super) listed: BTreeMap<EntryId, String>,
    #[serde(skip)]
    path: PathBuf,
}

fn dir(root: &Root) -> PathBuf {
    root.state().join("recall")
}

impl RecallSession {
    /// What is known of a session. One with a damaged file is a new one.
    pub(super) fn load(root: &Root, spec: &Spec, id: &str) -> RecallSession {
        let path = dir(root).join(name(spec, id));
        let bytes = file::read(&path, CAP).unwrap_or_default();
        let new = RecallSession {
            harness: spec.name.to_owned(),
            session: id.to_owned(),
            ..RecallSession::default()
        };
        RecallSession { path, ..serde_json::from_slice(&bytes).unwrap_or(new) }
    }

    /// Takes note of one that is about to be given. `false`: another hook of the session has just given it.
    pub(super) fn claim(&self, root: &Root, id: &EntryId, told: &str) -> Result<bool> {
        RecallSession::make_dir(root)?;
        file::change_unsynced(&self.path, CAP, CLAIMED, |bytes| {
            let now: RecallSession = serde_json::from_slice(bytes).unwrap_or_else(|_| self.clone());
            let is_new = !now.notes.contains_key(id);
            let notes = now.notes.into_iter().chain([(id.clone(), told.to_owned())]).collect();
            Ok((format!("{}\n", serde_json::json!(RecallSession { notes, ..now })).into_bytes(), is_new))
        })
    }

    /// Forgets what the program has forgotten.
    pub(super) fn forget(&mut self) {
        self.has_section = false;
        self.section_at_prompt = false;
        self.notes.clear();
        self.listed.clear();
    }

    fn make_dir(root: &Root) -> Result<()> {
        let dir = dir(root);
        if !dir.is_dir() {
            root.make()?;
            file::make_private_dir(&dir)?;
        }
        Ok(())
    }

    pub(super) fn save(&self, root: &Root) -> Result<()> {
        RecallSession::make_dir(root)?;
        Ok(file::install_unsynced(&self.path, format!("{}\n", serde_json::json!(self)).as_bytes(), 0o600)?)
    }
}

/// Earlier versions kept a list of ids.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<EntryId, String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum GivenNotes {
        Texts(BTreeMap<EntryId, String>),
        Ids(BTreeSet<EntryId>),
    }
    Ok(match GivenNotes::deserialize(deserializer)? {
        GivenNotes::Texts(notes) => notes,
        GivenNotes::Ids(ids) => ids.into_iter().map(|id| (id, String::new())).collect(),
    })
}

/// Other programs make the ids, so they are no names of files.
fn name(spec: &Spec, id: &str) -> String {
    let hash = Sha256::new().chain_update(spec.name).chain_update([0]).chain_update(id).finalize();
    format!("{}.json", hex(&hash[..16]))
}

/// So many sessions are looked at for when each program was given something last.
const LOOKED_AT: usize = 100;

/// When the sessions of each harness were given something last.
pub fn last_given(root: &Root) -> BTreeMap<String, Timestamp> {
    let files = fs_err::read_dir(dir(root)).into_iter().flatten().filter_map(Result::ok);
    let aged = |file: fs_err::DirEntry| Some((file.metadata().ok()?.modified().ok()?, file.path()));
    let mut files: Vec<_> = files.filter_map(aged).collect();
    files.sort_by(|a, b| b.cmp(a));
    let mut last = BTreeMap::new();
    for (at, path) in files.iter().take(LOOKED_AT) {
        if let Ok(bytes) = file::read(path, CAP)
            && let Ok(session) = serde_json::from_slice::<RecallSession>(&bytes)
            && let Ok(at) = Timestamp::try_from(*at)
        {
            last.entry(session.harness).or_insert(at);
        }
    }
    last
}

/// Removes what is left of old sessions.
pub fn sweep(root: &Root) {
    let dir = dir(root);
    file::sweep_dir(&dir, ".json", file::LEFT_FOR);
    for path in fs_err::read_dir(&dir).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())) {
        if path.extension().is_some_and(|end| end == "json") && file::is_older(&path, KEPT) {
            let _ = file::remove(&path);
        }
    }
}
