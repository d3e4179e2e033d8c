//! Changes that wait for a person: one JSON file each, under `proposals/`, in the store's history.

use crate::base::error::{Error, Result};
use crate::base::text::written_as_text;
use crate::store::entry::{Anchor, By, Entry, EntryId, Meta, Scope, Source, add_missing, words};
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes: the largest note, with every character escaped.
const CAP: u64 = 8 << 20;
pub const PREFIX: &str = "p__";
/// What stands in the place of a harness where a change comes from a remote that others can write to.
pub const REMOTE: &str = "remote";
/// Where they are, below the store.
pub const DIR: &str = "proposals";

/// Like `p__a1B2c3`: with digits like those of a note's id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProposalId(EntryId);

impl ProposalId {
    /// Accepts `p__a1B2c3` and `a1B2c3`.
    pub fn parse(text: &str) -> Option<ProposalId> {
        EntryId::of_digits(text.strip_prefix(PREFIX).unwrap_or(text)).map(ProposalId)
    }

    /// Accepts `p__a1B2c3` only.
    pub fn whole(text: &str) -> Option<ProposalId> {
        text.strip_prefix(PREFIX).and_then(EntryId::of_digits).map(ProposalId)
    }

    /// Made as [`EntryId::make`] makes the id of a note, from the title of the note that is proposed or changed.
    pub fn make(title: &str, created_at_ms: i64, is_taken: impl Fn(&ProposalId) -> bool) -> ProposalId {
        ProposalId(EntryId::make(title, created_at_ms, |id| is_taken(&ProposalId(id.clone()))))
    }

    /// Without `p__`.
    pub fn digits(&self) -> &str {
        self.0.digits()
    }

    /// The path of its file, below the store.
    pub fn path(&self) -> PathBuf {
        Path::new(DIR).join(format!("{self}.json"))
    }
}

impl fmt::Display for ProposalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&[PREFIX, self.0.digits()].concat())
    }
}

written_as_text!(ProposalId, ProposalId::whole, "an id like p__a1B2c3");

words! {
    /// What accepting a proposal does.
    Op {
        /// A new note.
        Create = "create",
        /// Another text for a note.
        Update = "update",
        /// A note goes to the archive.
        Retire = "retire",
        /// A note becomes a global one.
        Widen = "widen",
        /// As an update; the text is that of another machine.
        Conflict = "conflict",
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    pub id: ProposalId,
    pub op: Op,
    /// The note that would change. `None` for a new one.
    pub note: Option<EntryId>,
    /// The note as it was when this was proposed, see [`Entry::base`](crate::store::entry::Entry::base).
    pub base: Option<String>,
    /// The text, of an operation that brings one.
    pub entry: Option<Draft>,
    pub by: By,
    #[serde(default)]
    pub evidence: Vec<Evidence>,
    /// Why it waits, in sentences.
    #[serde(default)]
    pub reasons: Vec<String>,
    /// The notes in use with the same facts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<EntryId>,
    /// What the text rests on in the code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anchors: Vec<Anchor>,
    /// The session that it comes from, or the remote, see [`REMOTE`].
    pub session: Option<Source>,
    /// The id that a new note has in the remote: once accepted it is the same note.
    #[serde(rename = "noteThere", default, skip_serializing_if = "Option::is_none")]
    pub note_there: Option<EntryId>,
    /// Unix time in milliseconds.
    #[serde(rename = "createdAt")]
    pub created_at: i64,
    /// Foreign keys, which every rewrite keeps.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The notes that the changes which wait are about: whoever sees one of them is told.
pub fn concerned(waiting: &[Proposal]) -> BTreeSet<EntryId> {
    waiting.iter().filter_map(|proposal| proposal.note.clone()).collect()
}

/// The note that is proposed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    /// One line.
    pub title: String,
    /// One line.
    #[serde(default)]
    pub summary: String,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    pub scope: Scope,
    pub until: Option<Date>,
    pub body: String,
    #[serde(default)]
    pub sources: Vec<Source>,
}

/// A sentence of the session that is meant to justify the proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Like `t12`.
    pub turn: String,
    pub quote: String,
    /// `None`: it stands in no turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<By>,
}

impl Draft {
    /// The note as it is.
    pub fn of(entry: &Entry) -> Draft {
        let Meta { title, summary, tags, paths, scope, until, sources, .. } = entry.meta().clone();
        let body = String::from_utf8_lossy(entry.body()).into_owned();
        Draft { title, summary, tags, paths, scope, until, body, sources }
    }

    /// What a new note with this text says of itself.
    pub fn meta(&self, id: EntryId) -> Meta {
        let Draft { title, summary, tags, paths, scope, until, sources, .. } = self.clone();
        Meta { title, summary, tags, paths, scope, until, sources, ..Meta::new(id) }
    }

    /// What it says. Where it was said does not matter.
    pub fn says(&self) -> Draft {
        Draft { sources: Vec::new(), ..self.clone() }
    }
}

impl Proposal {
    /// A change of the note `entry`, which would say `change` then.
    pub fn about(entry: &Entry, op: Op, change: Option<Draft>, by: By, created_at: i64) -> Proposal {
        Proposal {
            note: Some(entry.meta().id.clone()),
            base: Some(entry.base()),
            entry: change,
            ..Proposal::new(op, &entry.meta().title, by, created_at)
        }
    }

    /// One that says nothing yet; its id is made from `title`, see [`ProposalId::make`].
    pub fn new(op: Op, title: &str, by: By, created_at: i64) -> Proposal {
        Proposal {
            id: ProposalId::make(title, created_at, |_| false),
            op,
            note: None,
            base: None,
            entry: None,
            by,
            evidence: Vec::new(),
            reasons: Vec::new(),
            beside: Vec::new(),
            anchors: Vec::new(),
            session: None,
            note_there: None,
            created_at,
            other: Map::new(),
        }
    }

    /// Another machine has written its text: no session of this one may touch it.
    pub fn is_from_elsewhere(&self) -> bool {
        self.op == Op::Conflict || self.remote().is_some()
    }

    /// The remote that it comes from, without a login.
    pub fn remote(&self) -> Option<&str> {
        let session = self.session.as_ref().filter(|session| session.harness.as_deref() == Some(REMOTE));
        session?.thread_id.as_deref()
    }

    pub fn is_the_same_as(&self, other: &Proposal) -> bool {
        let text = |it: &Proposal| it.entry.as_ref().map(Draft::says);
        self.op == other.op && self.note == other.note && text(self) == text(other)
    }

    /// What is to be kept, where `waiting` are there: the one of them that says the same, with the evidence of both; or
    /// this one, with an id of its own. The same again changes nothing.
    pub fn merged_into(self, waiting: &[Proposal]) -> Proposal {
        match waiting.iter().find(|there| there.is_the_same_as(&self)) {
            Some(there) => there.joined(self, false),
            None => self.with_own_id(waiting),
        }
    }

    /// With what `new` adds; with its text too, if that is to take the old one's place. The old text stays in the store's
    /// history. No reason goes: only a person clears them.
    pub fn joined(&self, new: Proposal, takes_text: bool) -> Proposal {
        let mut joined = self.clone();
        add_missing(&mut joined.evidence, new.evidence);
        add_missing(&mut joined.reasons, new.reasons);
        add_missing(&mut joined.beside, new.beside);
        // Who vouches least for one of them vouches for it.
        joined.by = self.by.max(new.by);
        if let (Some(ours), Some(mut theirs)) = (&mut joined.entry, new.entry) {
            add_missing(&mut ours.sources, std::mem::take(&mut theirs.sources));
            if takes_text && ours.says() != theirs.says() {
                *ours = Draft { sources: std::mem::take(&mut ours.sources), ..theirs };
                (joined.base, joined.session) = (new.base, new.session.or(joined.session));
                joined.anchors = new.anchors;
            }
        }
        joined
    }

    /// The notes that it would change, and those that say something about the same.
    pub fn concerns(&self) -> impl Iterator<Item = &EntryId> {
        self.note.iter().chain(&self.beside)
    }

    /// Gives it an id that no other one of `waiting` has.
    pub fn with_own_id(mut self, waiting: &[Proposal]) -> Proposal {
        let taken: BTreeSet<&ProposalId> = waiting.iter().map(|there| &there.id).collect();
        if taken.contains(&self.id) {
            self.id = ProposalId::make(self.title(), self.created_at, |id| taken.contains(id));
        }
        self
    }

    /// The title of the text that it brings, else the id of the note.
    pub fn title(&self) -> &str {
        match (&self.entry, &self.note) {
            (Some(entry), _) => &entry.title,
            (None, Some(note)) => note.as_str(),
            (None, None) => "",
        }
    }

    /// The bytes of the file of this name.
    pub fn named(name: &OsStr, bytes: &[u8]) -> Result<Proposal, String> {
        let proposal = Proposal::parse(bytes).map_err(|why| format!("not a proposal: {why}"))?;
        match proposal.id.path().file_name() == Some(name) {
            true => Ok(proposal),
            false => Err(format!("its id is \"{}\", and its name says another", proposal.id)),
        }
    }

    /// The bytes of a file.
    pub fn parse(bytes: &[u8]) -> Result<Proposal, String> {
        let proposal: Proposal = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let Proposal { op, note, entry, .. } = &proposal;
        let fault = match (op, note, entry) {
            (Op::Create, Some(_), _) => "\"create\" changes no \"note\"",
            (Op::Update | Op::Retire | Op::Widen | Op::Conflict, None, _) => "\"note\" is missing",
            (Op::Create | Op::Update | Op::Conflict, _, None) => "\"entry\" is missing",
            (_, _, Some(entry)) if entry.title.trim().is_empty() => "\"entry.title\" is empty",
            _ => return Ok(proposal),
        };
        Err(fault.to_owned())
    }

    /// As it stands in a file.
    ///
    /// # Errors
    /// It could not be read again.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        let refused = |why: String| Error::usage(format!("the proposal {} cannot be kept: {why}", self.id));
        let mut bytes = serde_json::to_vec_pretty(self).map_err(|error| refused(error.to_string()))?;
        bytes.push(b'\n');
        Proposal::parse(&bytes).map_err(refused)?;
        if bytes.len() as u64 > CAP {
            return Err(refused(format!("it has {} bytes, and at most {CAP} are read", bytes.len())));
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(body: &str) -> Draft {
        Draft {
            title: "Port".to_owned(),
            summary: String::new(),
            tags: Vec::new(),
            paths: Vec::new(),
            scope: Scope::Repo,
            until: None,
            body: body.to_owned(),
            sources: Vec::new(),
        }
    }

    fn proposal(body: &str) -> Proposal {
        let (note, entry) = (EntryId::parse("a1B2c3"), Some(draft(body)));
        Proposal { note, entry, ..Proposal::new(Op::Update, "Port", By::Agent, 7) }
    }

    #[test]
    fn an_id_has_the_digits_of_a_note_of_the_same_title_and_time() {
        let note = EntryId::make("Port", 7, |_| false);
        let id = proposal("").id;
        assert_eq!(id.to_string()[3..], note.as_str()[4..]);
        assert_eq!(ProposalId::parse(&id.to_string()), Some(id.clone()));
        assert_eq!(ProposalId::parse(&id.to_string()[3..]), Some(id.clone()));
        assert_ne!(ProposalId::make("Port", 7, |taken| *taken == id), id);
        for wrong in ["", "p__", "id__a1B2c3", "p__a1B2c0", "../a1B", "p__a1B2c34"] {
            assert_eq!(ProposalId::parse(wrong), None, "{wrong}");
        }
        assert!(serde_json::from_str::<ProposalId>("\"a1B2c3\"").is_err(), "files have the whole");
    }

    #[test]
    fn the_same_again_adds_evidence_and_nothing_else() {
        let quote = |turn: &str| Evidence { turn: turn.to_owned(), quote: "4320".to_owned(), said: None };
        let first = Proposal { evidence: vec![quote("t1")], ..proposal("4320") };
        let again = Proposal {
            id: ProposalId::make("Port", 9, |_| false),
            created_at: 9,
            by: By::Tool,
            evidence: vec![quote("t1"), quote("t4")],
            ..proposal("4320")
        };
        let merged = again.merged_into(std::slice::from_ref(&first));
        let expected = Proposal { evidence: vec![quote("t1"), quote("t4")], by: By::Tool, ..first.clone() };
        assert_eq!(merged, expected);
        assert_eq!(first.clone().merged_into(std::slice::from_ref(&first)), first);
        // Another text with an id that is taken gets its own.
        let other = proposal("4321").merged_into(std::slice::from_ref(&first));
        assert_eq!(other, Proposal { id: other.id.clone(), ..proposal("4321") });
        assert_ne!(other.id, first.id);
    }

    #[test]
    fn a_file_is_read_as_it_was_written_with_keys_that_are_not_ours() {
        let mut written = proposal("x");
        written.other.insert("note by hand".to_owned(), serde_json::json!(["y"]));
        let bytes = written.bytes().unwrap();
        assert_eq!(Proposal::parse(&bytes).unwrap(), written);
        let least = br#"{"id":"p__a1B2c3","op":"retire","note":"id__a1B2c3","by":"tool","createdAt":1}"#;
        assert_eq!(Proposal::parse(least).unwrap().op, Op::Retire);
    }

    #[test]
    fn what_cannot_be_decided_about_is_no_proposal() {
        let told = |change: fn(&mut Proposal)| {
            let mut wrong = proposal("x");
            change(&mut wrong);
            wrong.bytes().unwrap_err().line()
        };
        assert!(told(|wrong| wrong.entry = None).ends_with("\"entry\" is missing"));
        assert!(told(|wrong| wrong.note = None).ends_with("\"note\" is missing"));
        assert!(told(|wrong| wrong.op = Op::Create).ends_with("\"create\" changes no \"note\""));
        let empty: fn(&mut Proposal) = |wrong| wrong.entry.as_mut().unwrap().title = " ".to_owned();
        assert!(told(empty).ends_with("\"entry.title\" is empty"));
        assert!(told(|wrong| wrong.entry.as_mut().unwrap().body = "x".repeat(9 << 20)).contains("at most"));
    }
}
