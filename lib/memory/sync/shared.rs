//! What is believed of a remote that others can write to: the notes of sessions, as such. What would make, change or take
//! away a note that is a person's own waits for the person of this store, and so does a note of no repository.

use crate::memory::sync::foreign_files::{put_note, unique};
use crate::memory::sync::side::{Files, Located, Side};
use crate::store::entry::{By, Entry, EntryId, REVIEW, Source};
use crate::store::persistence::Place;
use crate::store::proposal::{Draft, Op, Proposal, ProposalId, REMOTE};
use std::collections::BTreeSet;

/// What has come, as the files that differ anywhere.
pub(super) struct Received<'a> {
    /// What the remote had when this store last took something from it.
    pub(super) before: &'a Files,
    pub(super) now: &'a Files,
    /// What it becomes together with this store's files, if all of it is believed.
    pub(super) merged: &'a Files,
    /// The remote, without a login.
    pub(super) name: &'a str,
}

/// What becomes of this store's files, all of its proposals among them, and what waits in addition.
pub(super) fn believed(
    ours: &Files,
    received: &Received,
    rest: &BTreeSet<String>,
) -> (Files, Vec<ProposalId>) {
    let [before, now, merged] = [received.before, received.now, received.merged].map(Side::of);
    let (here, clashes) = (Side::of(ours), &merged.proposals);
    let mut believed = Believed {
        files: ours.clone(),
        waiting: here.proposals.values().cloned().collect(),
        added: Vec::new(),
        name: received.name,
    };
    let ids: BTreeSet<&EntryId> = before.notes.keys().chain(now.notes.keys()).collect();
    for id in ids.into_iter().filter(|id| before.notes.get(*id) != now.notes.get(*id)) {
        let [before, now, merged] = [&before, &now, &merged].map(|side| side.notes.get(id));
        if believed.note([before, now, merged], &here, id) {
            let clashes = clashes.values().filter(|clash| clash.note.as_ref() == Some(id));
            clashes.for_each(|clash| believed.wait(clash.clone()));
        }
    }
    (unique(believed.files, rest), believed.added)
}

struct Believed<'a> {
    files: Files,
    waiting: Vec<Proposal>,
    added: Vec<ProposalId>,
    name: &'a str,
}

impl Believed<'_> {
    /// A note that the remote has changed: as it was there, as it is there and in the merge, and as it is here. `true`: taken.
    fn note(&mut self, [before, now, merged]: [Option<&Located>; 3], ours: &Side, id: &EntryId) -> bool {
        let here = ours.notes.get(id);
        let is_own = here.is_some_and(|here| here.entry.kept().is_some());
        let Some(now) = now else {
            match here {
                Some(here) if is_own => self.retire(here),
                _ => self.take(here, merged.cloned()),
            }
            return !is_own;
        };
        // A note that has the id of another one.
        let created_at = |note: &Located| note.entry.meta().created_at;
        let is_twin = before.is_none() && here.is_some_and(|here| created_at(here) != created_at(now));
        let taken = match here {
            _ if is_own || is_twin || is_a_persons(&now.entry) => None,
            Some(_) => merged.and_then(|merged| as_a_sessions(merged, ours)),
            None => as_a_sessions(now, ours),
        };
        let is_taken = taken.is_some();
        match taken {
            Some(note) => self.take(here, Some(note)),
            None => self.ask(before, now, here, is_twin),
        }
        is_taken
    }

    fn take(&mut self, here: Option<&Located>, note: Option<Located>) {
        if let Some(here) = here {
            self.files.remove(&here.path());
        }
        let Some(note) = note else { return };
        let own = here.and_then(Located::own_name).map(str::to_owned);
        let note = Located { name: own.unwrap_or_else(|| note.entry.meta().file_name()), ..note };
        put_note(&mut self.files, &note);
    }

    fn retire(&mut self, here: &Located) {
        if here.place == Place::Topics {
            let at = here.entry.meta().updated_at;
            self.wait_from_there(Proposal::about(&here.entry, Op::Retire, None, By::Agent, at));
        }
    }

    fn ask(&mut self, before: Option<&Located>, now: &Located, here: Option<&Located>, is_twin: bool) {
        if now.place == Place::Archive {
            let was_in_use = before.is_none_or(|before| before.place == Place::Topics);
            return here.into_iter().filter(|_| was_in_use && !is_twin).for_each(|here| self.retire(here));
        }
        let draft = believable(Draft::of(&now.entry));
        let says_it = |note: &Located| believable(Draft::of(&note.entry)).says() == draft.says();
        if before.into_iter().chain(here).any(says_it) {
            return;
        }
        let meta = now.entry.meta();
        let proposal = match here.filter(|here| here.place == Place::Topics && !is_twin) {
            Some(here) => Proposal::about(&here.entry, Op::Update, Some(draft), By::Agent, meta.updated_at),
            None => Proposal {
                note_there: here.is_none().then(|| meta.id.clone()),
                entry: Some(draft.clone()),
                ..Proposal::new(Op::Create, &draft.title, By::Agent, meta.created_at)
            },
        };
        self.wait_from_there(Proposal { by: weak(meta.by.unwrap_or(By::Agent)), ..proposal });
    }

    fn wait_from_there(&mut self, proposal: Proposal) {
        let name = self.name.to_owned();
        let reasons = vec![format!("It comes from \"{name}\", which others can write to.")];
        let (harness, thread_id) = (Some(REMOTE.to_owned()), Some(name));
        self.wait(Proposal {
            reasons,
            session: Some(Source { harness, thread_id, ..Source::default() }),
            ..proposal
        });
    }

    /// Of one note only what the remote has last waits.
    fn wait(&mut self, mut proposal: Proposal) {
        let about = |it: &Proposal| (it.op, it.note.clone(), it.note_there.clone(), it.session.clone());
        let has_note = proposal.note.is_some() || proposal.note_there.is_some();
        proposal = match self.waiting.iter().find(|there| has_note && about(there) == about(&proposal)) {
            Some(there) => Proposal { id: there.id.clone(), ..proposal },
            None => proposal.merged_into(&self.waiting),
        };
        // One that is too large to be read again stays where it is.
        let Ok(bytes) = proposal.bytes() else { return };
        self.files.insert(proposal.id.path().to_string_lossy().into_owned(), bytes);
        self.added.push(proposal.id.clone());
        self.waiting.retain(|there| there.id != proposal.id);
        self.waiting.push(proposal);
    }
}

/// A person's own, or shown where no session's note is.
fn is_a_persons(entry: &Entry) -> bool {
    entry.kept().is_some() || entry.meta().sources.iter().all(|source| source.repo.is_none())
}

/// It speaks for no person, and takes over no note but a session's. `None`: it would all the same, or cannot be changed.
fn as_a_sessions(note: &Located, ours: &Side) -> Option<Located> {
    let mut note = note.clone();
    let here = ours.notes.get(&note.entry.meta().id);
    let is_old = |alias: &EntryId| here.is_some_and(|here| here.entry.meta().aliases.contains(alias));
    let is_free = |alias: &EntryId| ours.notes.get(alias).is_some_and(|other| other.entry.kept().is_none());
    let changed = note.entry.update(|meta| {
        meta.by = Some(weak(meta.by.unwrap_or(By::Agent)));
        meta.aliases.retain(|alias| is_old(alias) || is_free(alias));
    });
    (changed.is_ok() && !is_a_persons(&note.entry)).then_some(note)
}

/// Nobody there speaks as the person of this store.
fn weak(by: By) -> By {
    by.max(By::Agent)
}

/// Without a word of another person's review.
fn believable(mut draft: Draft) -> Draft {
    draft.sources.retain(|source| source.harness.as_deref() != Some(REVIEW));
    draft
}
