//! The operations on notes and on the queue, for any persistence. Those of a person's decisions are in `review`, what
//! a reader is shown in `section` and `recall`.

use crate::base::error::{Error, Result};
use crate::base::glob;
use crate::base::repository::{self, Repository};
use crate::base::text::{visible, whole_lines};
use crate::memory::code::anchored_again;
use crate::memory::pipeline::reply::Text;
use crate::memory::record::unproven;
use crate::memory::search::{Findings, Found, Index, Query, Wanted};
use crate::memory::waiting;
use crate::store::change::Change;
use crate::store::entry::{By, Entry, EntryId, Kept, Meta, Scope, Source, Status, Tier, add_missing};
use crate::store::journal::entry::QueueEntry;
use crate::store::journal::{Journal, new_id};
use crate::store::persistence::{Broken, Note, Persistence, Place};
use crate::store::proposal::{Draft, Op, Proposal};
use crate::store::removed;
use crate::store::revision::{Revision, Version};
use jiff::Timestamp;
use jiff::civil::Date;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where the queue is, below the store, and what has left it.
const INBOX: &str = "inbox";
const PROCESSED: &str = "inbox/.processed";

/// What can be done with the notes of a store, at one moment: it is cheap, and made anew for each task.
pub struct NoteService<P> {
    pub(super) index: Index<P>,
    pub(super) now: Timestamp,
    pub(super) today: Date,
    dir: Option<PathBuf>,
}

/// A note to be written.
pub struct NewNote {
    pub title: String,
    pub summary: String,
    pub tags: Vec<String>,
    pub scope: Scope,
    pub body: String,
    pub by: By,
    pub sources: Vec<Source>,
}

impl NewNote {
    /// Does this note in use say it already?
    fn is_same(&self, note: &Note) -> bool {
        let meta = note.entry.meta();
        let repo = |sources: &[Source]| sources.first().and_then(|source| source.repo.clone());
        // A cold one is shown to nobody, and one with an end is about to be.
        let is_in_use = note.place == Place::Topics && meta.until.is_none() && meta.tier != Tier::Cold;
        is_in_use
            && (&meta.title, &meta.tags, meta.scope, meta.by)
                == (&self.title, &self.tags, self.scope, Some(self.by))
            && (self.scope == Scope::Global || repo(&meta.sources) == repo(&self.sources))
            && note.entry.body() == whole_lines(&self.body).as_bytes()
    }
}

/// A condition on notes. `None` and `false` match all.
#[derive(Debug, Default, PartialEq)]
pub struct Filter {
    pub status: Option<Status>,
    pub tier: Option<Tier>,
    /// A note must have all of them.
    pub tags: Vec<String>,
    pub repo: Option<String>,
    pub scope: Option<Scope>,
    pub pinned: bool,
    pub by: Option<By>,
    /// Only notes whose last day is before this one.
    pub over_on: Option<Date>,
}

impl Filter {
    pub fn matches(&self, meta: &Meta) -> bool {
        self.status.is_none_or(|status| meta.status == status)
            && self.tier.is_none_or(|tier| meta.tier == tier)
            && self.scope.is_none_or(|scope| meta.scope == scope)
            && (meta.pinned || !self.pinned)
            && self.by.is_none_or(|by| meta.by == Some(by))
            && self.over_on.is_none_or(|today| meta.is_expired(today))
            && self.tags.iter().all(|tag| meta.tags.contains(tag))
            && self.repo.as_deref().is_none_or(|repo| belongs_to(meta, repo))
    }
}

/// Is it a note of this repository: with scope `repo`, and with a source that names the repository, or a directory around it?
pub fn belongs_to(meta: &Meta, repo: &str) -> bool {
    let mut repos = meta.sources.iter().filter_map(|source| source.repo.as_deref());
    meta.scope == Scope::Repo && repos.any(|its| repository::includes(its, repo))
}

/// Is it one that concerns a repository: global, or its own?
pub fn shown_in(meta: &Meta, repo: &str) -> bool {
    meta.scope == Scope::Global || belongs_to(meta, repo)
}

/// A change to a note. `None` leaves the field as it is.
#[derive(Debug, Default, PartialEq)]
pub struct Patch {
    pub title: Option<String>,
    pub summary: Option<String>,
    pub body: Option<String>,
    pub add_tags: Vec<String>,
    pub drop_tags: Vec<String>,
    pub add_paths: Vec<String>,
    pub drop_paths: Vec<String>,
    pub status: Option<Status>,
    pub tier: Option<Tier>,
    pub scope: Option<Scope>,
    pub pinned: Option<bool>,
    /// `Some(None)`: without end.
    pub until: Option<Option<Date>>,
    /// It still holds, whatever has become of its code and its branch.
    pub is_confirmed: bool,
    /// The [base](Entry::base) of the note that it was made for; a note with another one stays as it is.
    pub base: Option<String>,
}

/// Who changes a note.
#[derive(Debug, Clone)]
pub enum Author {
    Person,
    /// An agent, in this session. It changes no note that a person has made their own: its change waits.
    Agent(Source),
}

/// What became of a change.
#[derive(Debug)]
pub enum Changed {
    Done(Note),
    /// The note said so already.
    Same(Note),
    Waits(Proposal),
}

/// Counts one use of a note: `used` and `last_used` change together, under the lock.
pub(super) fn count_use<P: Persistence>(change: &Change<P>, id: &EntryId, now: Timestamp) -> Result<Note> {
    let note = change.notes.find(id)?;
    let mut entry = note.entry.clone();
    let count = |meta: &mut Meta| {
        meta.used = meta.used.saturating_add(1);
        meta.last_used = Timestamp::from_second(now.as_second()).ok();
    };
    entry.update(count).map_err(|why| unchanged(&note, &why))?;
    change.replace(&note, entry)
}

impl<P> NoteService<P> {
    /// `today` is the day of `now` where the person is: on it, notes whose last day is over are not shown.
    pub fn new(notes: P, now: Timestamp, today: Date) -> NoteService<P> {
        NoteService { index: Index::of(notes), now, today, dir: None }
    }

    /// Whoever is shown notes works in this directory: they are held against the code there.
    pub fn in_dir(self, dir: Option<PathBuf>) -> NoteService<P> {
        NoteService { dir, ..self }
    }

    /// The checkout that the directory is in.
    pub fn here(&self) -> Vec<Repository> {
        self.dir.as_deref().and_then(repository::place_of).into_iter().collect()
    }

    pub fn notes(&self) -> &P {
        self.index.store()
    }
}

impl<P: Persistence + Sync> NoteService<P> {
    /// The notes in a place that are `wanted`, in the order of their names.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn list(&self, place: Place, wanted: impl Fn(&Meta) -> bool + Sync) -> Result<Findings> {
        let scan = self.index.scan(place, |view| wanted(&view.meta).then(|| Found::listed(view)))?;
        let found = scan.found.into_iter().flatten().collect();
        Ok(Findings { found, own: Vec::new(), loosened: Vec::new(), broken: scan.broken })
    }

    /// The notes in a place that have some of the words and are `wanted`, the best first, `most` at most. In `words`, a
    /// `"phrase in quotes"` and a tag (`topic__x`, `tag:x`) must be there.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn search(
        &self,
        place: Place,
        words: &str,
        wanted: Option<&Wanted<'_>>,
        most: usize,
    ) -> Result<Findings> {
        self.index.find(place, &Query::parse(words), wanted, most)
    }

    /// Lets the next search in many files be quick. To be called when the answer is out.
    ///
    /// # Errors
    /// The cache cannot be written. The next search needs none.
    pub fn keep_up(&self) -> Result<()> {
        self.index.keep_up()
    }
}

impl<P: Persistence> NoteService<P> {
    /// Adds an entry to the queue and returns its id; for a session that waits already, that of its entry.
    ///
    /// # Errors
    /// `Usage`: the entry is not valid. Or the store cannot be written.
    pub fn enqueue(&self, entry: &QueueEntry) -> Result<String> {
        if let Some(root) = self.notes().root() {
            return Ok(Journal::at(root).put(entry)?.0.id);
        }
        entry.check()?;
        let lock = self.notes().lock()?;
        let is_it = |known: &QueueEntry| known.session().is_some() && known.session() == entry.session();
        if let Some((id, _)) = self.queued()?.0.into_iter().find(|(_, known)| is_it(known)) {
            return Ok(id);
        }
        let id = new_id(entry)?;
        let after = Some(Version::at(&queue_path(INBOX, &id), format!("{:#}\n", entry.json()).into_bytes()));
        self.notes().write(&lock, &[Revision { before: None, after }]).map(|()| id)
    }

    /// The entries of the queue by their ids, the oldest first, and the files that are none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn queued(&self) -> Result<(BTreeMap<String, QueueEntry>, Vec<Broken>)> {
        let (queued, broken) = self.notes().files(INBOX, |name, bytes| {
            let id = Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Ok((id, QueueEntry::parse(bytes).map_err(|error| error.line())?))
        })?;
        Ok((queued.into_iter().collect(), broken))
    }

    /// Takes an entry out of the queue that has been read.
    ///
    /// # Errors
    /// The store cannot be written. Nothing happens if the entry is gone already.
    pub fn dequeue(&self, id: &str) -> Result<()> {
        let lock = self.notes().lock()?;
        let unread = |broken: Broken| Error::io(format!("\"{}\": {}", broken.path.display(), broken.why));
        let Some(bytes) = self.notes().bytes(&queue_path(INBOX, id)).map_err(unread)? else { return Ok(()) };
        let at = |dir| Some(Version::at(&queue_path(dir, id), bytes.clone()));
        self.notes().write(&lock, &[Revision { before: at(INBOX), after: at(PROCESSED) }])
    }

    /// Writes a new note, with status `captured`. What is hidden in a text that no person wrote is left out. If a note in use
    /// says the same for the same place, it stays as it is and is returned.
    pub fn capture(&self, new: NewNote) -> Result<Note> {
        self.capture_once(new).map(|(note, _)| note)
    }

    /// The same, and whether the note is new.
    pub fn capture_once(&self, mut new: NewNote) -> Result<(Note, bool)> {
        if new.by != By::Person {
            for text in [&mut new.title, &mut new.summary, &mut new.body] {
                *text = visible(text).into_owned();
            }
        }
        let change = Change::of(self.notes())?;
        let (taken, same) = change.notes.ids_and(|note| new.is_same(note).then(|| note.clone()))?;
        if let Some(note) = same.into_iter().flatten().next() {
            return Ok((note, false));
        }
        let now = self.now.as_millisecond();
        let id = EntryId::make(&new.title, now, |id| taken.contains(id));
        let meta = Meta {
            title: new.title,
            summary: new.summary,
            tags: new.tags,
            scope: new.scope,
            by: Some(new.by),
            created_at: now,
            updated_at: now,
            sources: new.sources,
            ..Meta::new(id)
        };
        let mut entry = Entry::new(meta, whole_lines(&new.body).as_bytes());
        // A person's note needs no seal: it is a person's own, edited or not.
        if new.by != By::Person {
            entry.seal()?;
        }
        entry.fits().map_err(|why| Error::usage(format!("the note cannot be written: {why}")))?;
        let note = change.add(entry)?;
        change.write().map(|()| (note, true))
    }

    /// Lets a change wait for a person.
    pub fn propose(&self, proposal: Proposal) -> Result<Proposal> {
        waiting::propose(self.notes(), proposal)
    }

    /// The note. This does not count as a read.
    pub fn look(&self, id: &EntryId) -> Result<Note> {
        self.notes().find(id)
    }

    /// Counts a read and returns the note.
    pub fn read(&self, id: &EntryId) -> Result<Note> {
        self.must_have(id)?;
        let change = Change::of(self.notes())?;
        let note = count_use(&change, id, self.now)?;
        change.write().map(|()| note)
    }

    /// Puts `body` in the place of what the note says. See [`update_meta`](NoteService::update_meta).
    ///
    /// # Errors
    /// `NotFound`: there is no such note. Or the store cannot be written.
    pub fn update_body(&self, id: &EntryId, body: &str, author: &Author) -> Result<Changed> {
        self.update_meta(id, &Patch { body: Some(body.to_owned()), ..Patch::default() }, author)
    }

    /// Applies the whole patch at once. An agent's change of what a person has made their own waits for a person.
    ///
    /// # Errors
    /// `NotFound`: there is no such note. `Conflict`: it is another one than the patch was made for. Or the store cannot be
    /// written.
    pub fn update_meta(&self, id: &EntryId, patch: &Patch, author: &Author) -> Result<Changed> {
        self.must_have(id)?;
        let change = Change::of(self.notes())?;
        let note = change.notes.find(id)?;
        if patch.base.as_ref().is_some_and(|base| *base != note.entry.base()) {
            return Err(Error::conflict(format!("the note {id} has changed meanwhile")));
        }
        let patched = self.patched(&note, patch, author).map_err(|why| unchanged(&note, &why))?;
        let Some(mut entry) = patched else { return Ok(Changed::Same(note)) };
        if entry.meta().paths.len() > note.entry.meta().paths.len().max(glob::MOST) {
            return Err(Error::usage(format!("{id} would have more than {} paths", glob::MOST))
                .hint("widen one of them, or remove one with --path -GLOB"));
        }
        if let Author::Agent(session) = author {
            if let Some(kept) = note.entry.kept().filter(|_| entry.meta().tier != note.entry.meta().tier) {
                let why = format!("how much is shown of {id} is a person's decision: {}", kept.reason());
                return Err(for_a_person(why));
            }
            let reasons = needs_a_person(&note, &entry);
            if let (Place::Archive, Some(reason)) = (note.place, reasons.first()) {
                let why = format!("{id} is in the archive, and what changes there never waits: {reason}");
                return Err(for_a_person(why));
            }
            if !reasons.is_empty() {
                let entry = self.over_what_waits(&note, patch)?.unwrap_or(entry);
                let reasons = needs_a_person(&note, &entry);
                return self.waits(change, (&note, Op::Update, Some(Draft::of(&entry))), reasons, session);
            }
            // What a person has edited stays known as that.
            if entry.meta().written.is_some() && !note.entry.is_edited() {
                entry.seal().map_err(|why| unchanged(&note, &why))?;
            }
        }
        let note = change.replace(&note, entry)?;
        change.write().map(|()| Changed::Done(note))
    }

    /// The note with a patch; `None`: it says so already.
    fn patched(&self, note: &Note, patch: &Patch, author: &Author) -> Result<Option<Entry>> {
        let mut entry = note.entry.clone();
        let is_sealed = entry.meta().is_typed() || entry.meta().written.is_some();
        // What is changed now was not sealed by a version that knew how: it must count as edited, too.
        if matches!(author, Author::Person) && patch.has_text() && !is_sealed {
            entry.seal()?;
        }
        if let Some(body) = &patch.body {
            entry.set_body(whole_lines(body).as_bytes());
        }
        let body_changed = entry.body() != note.entry.body();
        // Who writes what it says now has seen what it rests on.
        let is_seen = patch.is_confirmed || patch.has_text();
        let anchors = is_seen.then(|| anchored_again(&entry, &self.here()));
        let mut is_changed = patch.is_confirmed;
        entry.update(|meta| {
            let before = meta.clone();
            patch.apply(meta);
            if text_of(meta) != text_of(&before) || body_changed {
                meta.by = Some(match author {
                    Author::Person => By::Person,
                    // A part may still be what only a tool showed.
                    Author::Agent(_) => meta.by.map_or(By::Agent, |by| by.max(By::Agent)),
                });
            }
            if *meta != before || body_changed {
                is_changed = true;
                meta.updated_at = self.now.as_millisecond();
            }
            if let Some(anchors) = anchors {
                meta.anchors = anchors;
            }
            if patch.is_confirmed {
                (meta.confirmed, meta.branch) = (Some(self.today), None);
            }
        })?;
        Ok(is_changed.then_some(entry))
    }

    /// The patch over the text that waits for this note already: it takes that text's place, so what it does not change
    /// stays.
    fn over_what_waits(&self, note: &Note, patch: &Patch) -> Result<Option<Entry>> {
        let (waiting, _) = self.notes().proposals()?;
        let (id, base) = (&note.entry.meta().id, note.entry.base());
        let is_for_it = |there: &Proposal| {
            (there.op, there.note.as_ref(), there.base.as_ref()) == (Op::Update, Some(id), Some(&base))
        };
        let there = waiting.into_iter().rev().find(is_for_it);
        let Some(draft) = there.and_then(|there| there.entry) else { return Ok(None) };
        let mut entry = note.entry.clone();
        entry.set_body(whole_lines(patch.body.as_ref().unwrap_or(&draft.body)).as_bytes());
        entry.update(|meta| {
            (meta.title, meta.summary, meta.tags) = (draft.title, draft.summary, draft.tags);
            (meta.scope, meta.until, meta.paths) = (draft.scope, draft.until, draft.paths);
            patch.apply(meta);
        })?;
        Ok(Some(entry))
    }

    /// Moves a note to the archive. One that is already there stays. An alias is not accepted: the id of a note that was
    /// merged into another does not remove the other.
    ///
    /// # Errors
    /// `NotFound`: there is no such note. Or the store cannot be written.
    pub fn remove(&self, id: &EntryId, author: &Author) -> Result<Changed> {
        self.must_have(id)?;
        let change = Change::of(self.notes())?;
        let note = change.notes.find_own(id)?;
        // Whoever archived it may have been stopped before AGENTS.md and the history knew.
        if note.place == Place::Archive {
            return Ok(Changed::Done(note));
        }
        if let (Author::Agent(session), Some(kept)) = (author, note.entry.kept()) {
            let reasons = vec![kept.reason().to_owned()];
            return self.waits(change, (&note, Op::Retire, None), reasons, session);
        }
        let note = change.archive(&note)?;
        change.write().map(|()| Changed::Done(note))
    }

    /// Deletes a note, and the changes of it that wait. See [`remove`](NoteService::remove).
    ///
    /// # Errors
    /// `NotFound`: there is no such note. `Refused`: an agent may not delete a person's. Or the store cannot be written.
    pub fn purge(&self, id: &EntryId, author: &Author) -> Result<Changed> {
        self.must_have(id)?;
        let change = Change::of(self.notes())?;
        let note = change.notes.find_own(id)?;
        if let (Author::Agent(_), Some(kept)) = (author, note.entry.kept()) {
            return Err(for_a_person(format!("{id} is deleted by a person alone: {}", kept.reason())));
        }
        change.purge(&note);
        // Before, or a killed program would leave it unsaid. On a full disk, room is made all the same.
        let _ = self.notes().root().map(|root| removed::purge(root, id));
        // A change that waits holds the note's text, too.
        let (waiting, _) = change.notes.proposals()?;
        let of_it = waiting.into_iter().filter(|proposal| proposal.note.as_ref() == Some(id));
        waiting::end(&change, &of_it.map(|proposal| (proposal.id, None)).collect())?;
        change.write().map(|()| Changed::Done(note))
    }

    /// Lets an agent's change of a note wait.
    fn waits(
        &self,
        change: Change<P>,
        (note, op, draft): (&Note, Op, Option<Draft>),
        reasons: Vec<String>,
        session: &Source,
    ) -> Result<Changed> {
        let about = Proposal::about(&note.entry, op, draft, By::Agent, self.now.as_millisecond());
        let proposal = Proposal { reasons, session: Some(session.clone()), ..about };
        let proposal = waiting::settle(&change, proposal)?;
        change.write().map(|()| Changed::Waits(proposal))
    }

    /// Without a store there is no note to change, and no store is made for it.
    fn must_have(&self, id: &EntryId) -> Result<()> {
        if self.notes().is_there() { Ok(()) } else { self.notes().find(id).map(drop) }
    }
}

fn queue_path(dir: &str, id: &str) -> PathBuf {
    Path::new(dir).join(format!("{id}.json"))
}

/// What a note says, besides its body.
fn text_of(meta: &Meta) -> (&str, &str, &[String]) {
    (&meta.title, &meta.summary, &meta.tags)
}

/// Why an agent's change from `note` to `entry` waits: the note is a person's, or would hold everywhere, or says what waits in
/// a new note.
fn needs_a_person(note: &Note, entry: &Entry) -> Vec<String> {
    let (old, new) = (note.entry.meta(), entry.meta());
    let is_other = text_of(old) != text_of(new)
        || note.entry.body() != entry.body()
        || (old.scope, old.until, &old.paths) != (new.scope, new.until, &new.paths);
    if !is_other {
        return Vec::new();
    }
    let widens = new.scope == Scope::Global && old.scope != Scope::Global;
    let known =
        note.entry.kept().map(Kept::reason).or(widens.then_some("It would hold in all repositories."));
    let unproven = unproven(&Text::of(entry).note(), Some(&Text::of(&note.entry).note()));
    known.map(str::to_owned).into_iter().chain(unproven).collect()
}

fn for_a_person(why: String) -> Error {
    Error::refused(why).hint("run it in a terminal of your own")
}

fn unchanged(note: &Note, why: &Error) -> Error {
    Error::io(format!("\"{}\" cannot be changed: {why}", note.path.display()))
}

impl Patch {
    pub fn is_empty(&self) -> bool {
        *self == Patch::default()
    }

    /// May it change what the note says?
    fn has_text(&self) -> bool {
        [&self.title, &self.summary, &self.body].into_iter().any(Option::is_some)
            || !(self.add_tags.is_empty() && self.drop_tags.is_empty())
    }

    fn apply(&self, meta: &mut Meta) {
        if let Some(title) = &self.title {
            meta.title.clone_from(title);
        }
        if let Some(summary) = &self.summary {
            meta.summary.clone_from(summary);
        }
        meta.tags.retain(|tag| !self.drop_tags.contains(tag));
        add_missing(&mut meta.tags, self.add_tags.iter().cloned());
        meta.paths.retain(|path| !self.drop_paths.contains(path));
        add_missing(&mut meta.paths, self.add_paths.iter().cloned());
        meta.scope = self.scope.unwrap_or(meta.scope);
        meta.pinned = self.pinned.unwrap_or(meta.pinned);
        meta.until = self.until.unwrap_or(meta.until);
        // A note is promoted exactly while it is hot. If both are given, the caller has checked that they agree.
        meta.status = self.status.unwrap_or(meta.status);
        meta.tier = self.tier.unwrap_or(meta.tier);
        match (self.status, self.tier) {
            (Some(Status::Promoted), _) => meta.tier = Tier::Hot,
            (_, Some(Tier::Hot)) => meta.status = Status::Promoted,
            (Some(_), None) if meta.tier == Tier::Hot => meta.tier = Tier::Warm,
            (None, Some(_)) if meta.status == Status::Promoted => meta.status = Status::Consolidated,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
