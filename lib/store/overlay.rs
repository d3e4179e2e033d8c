//! A store with changes laid over it in memory: what a dry run writes is there for the rest of the run, and nowhere else.
//! What any other run writes goes into the store.

use crate::base::error::{Error, Result};
use crate::store::entry::{Entry, EntryId};
use crate::store::persistence::{Broken, Note, Persistence, Place, Scan};
use crate::store::proposal::{Proposal, ProposalId};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

type Key = (Place, OsString);

pub(crate) struct Overlay<P> {
    base: P,
    /// By name; `None`: it is gone from there.
    changed: RefCell<BTreeMap<Key, Option<Note>>>,
    /// The same of proposals, by id.
    proposals: RefCell<BTreeMap<ProposalId, Option<Proposal>>>,
    is_dry: bool,
}

fn key(note: &Note) -> Key {
    (note.place, note.name())
}

impl<P: Persistence> Overlay<P> {
    pub(crate) fn new(base: P, is_dry: bool) -> Overlay<P> {
        Overlay { base, changed: RefCell::default(), proposals: RefCell::default(), is_dry }
    }
}

impl<P: Persistence> Persistence for Overlay<P> {
    /// `None` in a dry run: nobody else sees the changes.
    type Lock = Option<P::Lock>;

    fn is_there(&self) -> bool {
        self.base.is_there()
    }

    fn lock(&self) -> Result<Self::Lock> {
        if self.is_dry { Ok(None) } else { self.base.lock().map(Some) }
    }

    fn scan<T: Send>(&self, places: &[Place], each: impl Fn(Note) -> T + Sync) -> Result<Scan<T>> {
        let changed = self.changed.borrow();
        let hidden: BTreeSet<&Key> = changed.keys().collect();
        let scan = self.base.scan(places, |note| (!hidden.contains(&key(&note))).then(|| each(note)))?;
        let added = changed.values().flatten().filter(|note| places.contains(&note.place));
        let found = scan.found.into_iter().flatten().chain(added.map(|note| each(note.clone())));
        Ok(Scan { found: found.collect(), broken: scan.broken })
    }

    fn read(&self, place: Place, name: &OsStr) -> Result<Option<Note>, Broken> {
        match self.changed.borrow().get(&(place, name.to_owned())) {
            Some(note) => Ok(note.clone()),
            None => self.base.read(place, name),
        }
    }

    fn named(&self, id: &EntryId) -> Result<Option<Note>> {
        let changed = self.changed.borrow();
        if let Some(note) = changed.values().flatten().find(|note| note.entry.meta().id == *id) {
            return Ok(Some(note.clone()));
        }
        Ok(self.base.named(id)?.filter(|note| !changed.contains_key(&key(note))))
    }

    fn is_taken(&self, place: Place, name: &OsStr) -> bool {
        match self.changed.borrow().get(&(place, name.to_owned())) {
            Some(note) => note.is_some(),
            None => self.base.is_taken(place, name),
        }
    }

    fn put(
        &self,
        lock: &Self::Lock,
        old: Option<&Note>,
        place: Place,
        name: &OsStr,
        entry: Entry,
    ) -> Result<Note> {
        if let Some(lock) = lock {
            return self.base.put(lock, old, place, name, entry);
        }
        let to = (place, name.to_owned());
        if old.is_none_or(|old| key(old) != to) && self.is_taken(place, name) {
            return Err(Error::conflict(format!("\"{}\" exists already", name.to_string_lossy())));
        }
        let path = old.map_or_else(|| PathBuf::from(name), |old| old.path.with_file_name(name));
        let note = Note { place, path, entry };
        let mut changed = self.changed.borrow_mut();
        if let Some(old) = old {
            changed.insert(key(old), None);
        }
        changed.insert(to, Some(note.clone()));
        Ok(note)
    }

    fn purge(&self, lock: &Self::Lock, note: &Note) -> Result<()> {
        if let Some(lock) = lock {
            return self.base.purge(lock, note);
        }
        self.changed.borrow_mut().insert(key(note), None);
        Ok(())
    }

    fn proposals(&self) -> Result<(Vec<Proposal>, Vec<Broken>)> {
        let (mut waiting, broken) = self.base.proposals()?;
        let changed = self.proposals.borrow();
        waiting.retain(|proposal| !changed.contains_key(&proposal.id));
        waiting.extend(changed.values().flatten().cloned());
        waiting.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok((waiting, broken))
    }

    fn put_proposal(&self, lock: &Self::Lock, proposal: &Proposal) -> Result<()> {
        if let Some(lock) = lock {
            return self.base.put_proposal(lock, proposal);
        }
        proposal.bytes()?;
        self.proposals.borrow_mut().insert(proposal.id.clone(), Some(proposal.clone()));
        Ok(())
    }

    fn withdraw(&self, lock: &Self::Lock, id: &ProposalId) -> Result<()> {
        if let Some(lock) = lock {
            return self.base.withdraw(lock, id);
        }
        self.proposals.borrow_mut().insert(id.clone(), None);
        Ok(())
    }
}
