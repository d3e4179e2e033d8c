//! What notes rest on in the checkouts that the sessions of a batch worked in: the files that are there, and the branches that
//! are not in the default branch.

use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::repository::{self, Repository};
use crate::base::text::border;
use crate::memory::code::{Code, CodeFiles, CodeState, file_of_anchor, place_of, state_of_anchor, states};
use crate::memory::record::NoteText;
use crate::memory::redact::Redactor;
use crate::memory::search::has_word;
use crate::store::change::Change;
use crate::store::checkout::{BranchState, Checkout, is_branch};
use crate::store::entry::{Anchor, Branch, EntryId, Meta};
use crate::store::journal::entry::QueueEntry;
use crate::store::persistence::{Note, Persistence, Place};
use std::collections::{BTreeMap, BTreeSet};

/// What is shown of the code as it is now, of one note: so many lines of each place, and so many bytes.
const LINES: usize = 40;
const BYTES: usize = 2000;
/// So many files are looked into for code that has moved.
const CANDIDATES: usize = 200;

/// The checkouts of sessions, each repository once.
pub(super) fn checkouts<'e>(entries: impl IntoIterator<Item = &'e QueueEntry>) -> Vec<Repository> {
    let mut found: Vec<Repository> = Vec::new();
    for context in entries.into_iter().map(|entry| &entry.context) {
        let (Some(cwd), Some(repo)) = (&context.cwd, &context.repo) else { continue };
        if found.iter().all(|known| known.name != *repo) {
            found.extend(repository::place_of(cwd).filter(|place| place.name == *repo));
        }
    }
    found
}

#[derive(Debug, Default)]
pub struct Grounds {
    /// By repository.
    code: BTreeMap<String, Code>,
    /// By queue id: the repository of a session that was on such a branch, and the branch.
    branches: BTreeMap<String, (String, Branch)>,
    /// Of the notes that are shown, those whose code is no longer as it was.
    pub(super) changed: BTreeSet<EntryId>,
}

impl Grounds {
    /// `on` are the branches of the sessions, `touched` the files that they read or changed; `notes` are shown.
    pub(super) fn of<'n>(
        entries: &BTreeMap<String, QueueEntry>,
        on: &BTreeMap<String, String>,
        touched: &BTreeSet<String>,
        notes: impl Iterator<Item = &'n Note>,
        env: &Env,
    ) -> Grounds {
        let mut grounds = Grounds::default();
        let (here, metas) =
            (checkouts(entries.values()), notes.map(|note| note.entry.meta()).collect::<Vec<_>>());
        let states = states(None, &here, metas.iter().copied());
        grounds.changed =
            states.into_iter().filter(|(_, state)| state.is_in_doubt()).map(|(id, _)| id).collect();
        let anchors = metas.iter().flat_map(|meta| &meta.anchors).map(|anchor| &anchor.path);
        let paths: BTreeSet<&String> = touched.iter().chain(anchors).collect();
        for place in here {
            let git = Checkout::new(&place.top, env);
            for (id, _) in
                entries.iter().filter(|(_, entry)| entry.context.repo.as_ref() == Some(&place.name))
            {
                let Some(name) = on.get(id).filter(|name| is_branch(name)) else { continue };
                // What is checked out by now may be another branch.
                let commit = git.tip(name).map(|tip| repository::short(&tip));
                let branch = Branch { name: name.clone(), commit };
                if git.state_of(&branch) == Some(BranchState::Open) {
                    grounds.branches.insert(id.clone(), (place.name.clone(), branch));
                }
            }
            // What is built or downloaded is in no other checkout, and may be gone tomorrow.
            let ignored = git.ignored(&paths);
            let kept = paths.iter().filter(|path| !ignored.contains(**path));
            let code = Code::read(&place.top, kept.map(|path| (*path).clone()));
            grounds.code.insert(place.name, code);
        }
        grounds
    }

    /// The branch that one of these sessions worked on, of a note that comes from one repository.
    pub(super) fn branch(&self, queue_ids: &[String], repo: Option<&str>) -> Option<Branch> {
        let mut branches = queue_ids.iter().filter_map(|id| self.branches.get(id));
        branches.find(|(its, _)| repo == Some(its)).map(|(_, branch)| branch.clone())
    }

    /// What a note of this repository rests on, in the files that it may. `None`: there is no checkout of it.
    pub(super) fn anchors(
        &self,
        repo: &str,
        text: &NoteText,
        globs: &[String],
        may: impl Fn(&str) -> bool,
    ) -> Option<Vec<Anchor>> {
        Some(self.code.get(repo)?.anchors(&text.texts().join("\n"), globs, may))
    }
}

/// What has become of the code of a note, for the model: what stands there now, with the number of each line.
pub(super) fn drift(meta: &Meta, text: &str, here: &[Repository], redactor: &Redactor) -> String {
    let Some(place) = place_of(meta, here) else { return String::new() };
    let code = Code::read(&place.top, meta.anchors.iter().map(|anchor| anchor.path.clone()));
    let mut shown = String::new();
    for anchor in &meta.anchors {
        match state_of_anchor(&place.top, anchor) {
            CodeState::Same => {}
            CodeState::Gone => shown += &format!("{} is gone.\n", anchor.path),
            CodeState::Changed => match code.now(anchor, text) {
                Some((lines, now)) => {
                    let now: String =
                        now.iter().take(LINES).map(|line| format!("| {}\n", line.trim_end())).collect();
                    shown += &format!("{}, lines {lines}:\n{now}", anchor.path);
                }
                None => shown += &format!("{} is no text now, or too long.\n", anchor.path),
            },
        }
    }
    let shown = redactor.cleaned(&shown);
    shown[..border(&shown, BYTES)].to_owned()
}

/// What git alone can tell of the notes of these checkouts is written down: where code is that has moved to another file, and
/// that a branch is in the default branch by now.
pub(super) fn follow<P: Persistence>(notes: &P, here: &[Repository], env: &Env) -> Result<()> {
    if here.is_empty() {
        return Ok(());
    }
    let scan = notes.scan(&[Place::Topics], |note| {
        let meta = note.entry.meta();
        let is_grounded = !meta.anchors.is_empty() || meta.branch.is_some();
        let text = || format!("{}\n{}", meta.title, String::from_utf8_lossy(note.entry.body()));
        (is_grounded && place_of(meta, here).is_some()).then(|| (meta.clone(), text()))
    })?;
    let mut followed: Vec<(EntryId, Vec<Anchor>, Option<Branch>)> = Vec::new();
    for place in here {
        let git = Checkout::new(&place.top, env);
        let mut files = CodeFiles::new();
        for (meta, text) in
            scan.found.iter().flatten().filter(|(meta, _)| place_of(meta, here) == Some(place))
        {
            let anchors: Vec<Anchor> =
                meta.anchors.iter().map(|anchor| moved(anchor, text, place, &git, &mut files)).collect();
            let is_in = |branch: &Branch| git.state_of(branch) == Some(BranchState::Merged);
            let branch = meta.branch.clone().filter(|branch| !is_in(branch));
            if (&anchors, &branch) != (&meta.anchors, &meta.branch) {
                followed.push((meta.id.clone(), anchors, branch));
            }
        }
    }
    if followed.is_empty() {
        return Ok(());
    }
    let change = Change::of(notes)?;
    for (id, anchors, branch) in followed {
        edit_in_use(&change, &id, |meta| (meta.anchors, meta.branch) = (anchors, branch))?;
    }
    change.write()
}

/// Changes what a note says of itself. One that is no longer in use, or whose front matter cannot be changed, stays as it
/// is.
pub(super) fn edit_in_use<P: Persistence>(
    change: &Change<P>,
    id: &EntryId,
    edit: impl FnOnce(&mut Meta),
) -> Result<Option<Note>> {
    let Some(note) = change.notes.own(id)?.filter(|note| note.place == Place::Topics) else {
        return Ok(None);
    };
    let mut entry = note.entry.clone();
    match entry.update(edit) {
        Ok(()) => change.replace(&note, entry).map(Some),
        Err(_) => Ok(None),
    }
}

/// An anchor where it is now: in the new name of its file, or, if the note with this text does not name that, in another file
/// that has changed since.
fn moved(anchor: &Anchor, text: &str, place: &Repository, git: &Checkout, files: &mut CodeFiles) -> Anchor {
    let Anchor { path, hash, name, says, commit: Some(commit), .. } = anchor else { return anchor.clone() };
    let is_gone = match state_of_anchor(&place.top, anchor) {
        CodeState::Same => return anchor.clone(),
        state => state == CodeState::Gone,
    };
    let changes = git.changes(commit);
    let at = |path: &String| Anchor { path: path.clone(), ..anchor.clone() };
    let renamed =
        changes.iter().find(|(_, old)| is_gone && old.as_ref() == Some(path)).map(|(new, _)| at(new));
    if let Some(there) = renamed.filter(|there| state_of_anchor(&place.top, there) != CodeState::Gone) {
        return there;
    }
    let file = path.rsplit('/').next().unwrap_or(path);
    let end = file.rsplit('.').next().unwrap_or(file);
    // One word alone is found anywhere.
    let is_told = hash.is_some() || name.is_some() || says.as_ref().is_some_and(|says| says.contains(" + "));
    let others = changes.iter().map(|(new, _)| new).filter(|new| *new != path && new.ends_with(end));
    let others = others.filter(|_| is_told && !has_word(text, file)).take(CANDIDATES).cloned().collect();
    file_of_anchor(&place.top, anchor, others, files).as_ref().map_or_else(|| anchor.clone(), at)
}
