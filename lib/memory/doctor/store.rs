//! The store itself: its directory, what lies in it, what waits in it, and what went wrong with it.

use crate::base::command_line::quoted;
use crate::base::error::{reason, told};
use crate::base::file;
use crate::base::text::counted;
use crate::memory::checkouts::new_checkouts;
use crate::memory::doctor::finding::{Check, CheckContext, Diagnosis};
use crate::memory::doctor::notes::CheckedNotes;
use crate::store::apply;
use crate::store::batch::Batches;
use crate::store::place::Root;
use crate::store::projects::Projects;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A place that no review has named yet and that speaks for a repository.
pub(super) fn checkouts(cx: &CheckContext, checked: &CheckedNotes, to: &mut Diagnosis) {
    // A list that cannot be read names nobody.
    let told = Projects::load(cx.root).unwrap_or_default().told;
    let in_use = checked.notes.iter().filter(|note| note.is_in_use());
    for checkout in new_checkouts(in_use.flat_map(|note| &note.meta.sources), &told) {
        let (what, mend) = (checkout.to_string(), checkout.next_step());
        to.warning(Check::Checkout, &checkout.place, what, mend);
    }
}

/// The directory exists, and only its owner can read it.
pub(super) fn directory(cx: &CheckContext, to: &mut Diagnosis) {
    let root = cx.root.path();
    let mut wrong = |dir: &Path, why: &str| {
        to.error(
            Check::Store,
            dir,
            why,
            "set storage.root to a directory of your own; see: memory-config show",
        );
    };
    match root.metadata() {
        Ok(metadata) if !metadata.is_dir() => return wrong(root, "the store is not a directory"),
        Ok(_) => {}
        Err(e) if e.kind() == ErrorKind::NotFound && !root.is_symlink() => return,
        Err(e) => return wrong(root, &format!("the store cannot be read: {}", reason(&e))),
    }
    for dir in [cx.root.inbox(), cx.root.state()] {
        // Errors of the notes' directories are reported where these are read.
        match fs_err::read_dir(&dir) {
            Err(e) if e.kind() != ErrorKind::NotFound => wrong(&dir, &told(&e)),
            _ => {}
        }
    }
    if cx.root.state().is_dir()
        && let Err(e) = probe(&cx.root.state())
    {
        let mend = "make room on its disk, or make it writable; until then nothing is captured or filed";
        to.error(Check::Store, root, format!("the store cannot be written to: {e}"), mend);
    }
    if is_open_to_others(root) {
        let mend = format!("chmod 700 {}", quoted(&root.to_string_lossy()));
        to.warning(Check::Permissions, root, "everybody on this machine can read the notes", mend);
    }
}

/// Writes a file and removes it. One that a killed program left is used again.
fn probe(dir: &Path) -> io::Result<()> {
    let path = dir.join("probe");
    file::hint(&path, b"memory-doctor looks whether it can write here\n")?;
    // Another doctor may have removed it.
    file::if_exists(file::forget(&path)).map(drop)
}

/// A change of several notes that a killed program has left half made.
pub(super) fn change(cx: &CheckContext, to: &mut Diagnosis) {
    match apply::unfinished(cx.root) {
        Some((file, Err(error))) => {
            to.failure(Check::Change, &file, &error.context("no note can be changed"), "move it away");
        }
        // A program may be at it.
        Some((file, Ok(()))) if file::is_older(&file, file::LEFT_BEHIND) => {
            let what = "a program was killed while it changed several notes, and not all are written";
            let mend = "the next program that changes a note completes it; so does memory-doctor --fix";
            to.warning(Check::Change, &file, what, mend);
        }
        _ => {}
    }
}

/// Everybody can list the directory, and reach it.
fn is_open_to_others(dir: &Path) -> bool {
    let others = |dir: &Path| file::mode(dir).map_or(0, |mode| mode & 0o7);
    let Ok(dir) = dir.canonicalize() else { return false };
    others(&dir) & 0o5 == 0o5 && dir.ancestors().skip(1).all(|above| others(above) & 0o1 != 0)
}

/// The directories that programs write to, and the suffix of the files there.
fn directories(root: &Root) -> Vec<(PathBuf, &'static str)> {
    let mut dirs = vec![
        (root.path().to_path_buf(), "gitignore"),
        (root.path().to_path_buf(), "agent-memory-version"),
        (root.topics(), ".md"),
        (root.archive(), ".md"),
        (root.proposals(), ".json"),
        (root.inbox(), ".json"),
        (root.inbox().join(".failed"), ".json"),
        (root.state(), ".json"),
        (root.state(), ".jsonl"),
        (root.state(), ".cache"),
        (root.state().join("edits"), ".md"),
    ];
    for batches in [Batches::of_queue(root), Batches::of_defrag(root)] {
        dirs.extend(batches.all().unwrap_or_default().into_iter().map(|batch| (batch.dir, "")));
    }
    dirs
}

/// Half-written files of killed programs. Readers ignore them; they only take space.
pub(super) fn leftovers(cx: &CheckContext, to: &mut Diagnosis) {
    each_leftover(cx.root, file::leftovers, "memory-doctor --fix removes it", to);
}

/// Removes the leftovers.
pub(super) fn sweep(root: &Root, to: &mut Diagnosis) {
    each_leftover(root, file::sweep_dir, "removed", to);
}

fn each_leftover(root: &Root, of: fn(&Path, &str, Duration) -> Vec<PathBuf>, mend: &str, to: &mut Diagnosis) {
    for path in directories(root).into_iter().flat_map(|(dir, end)| of(&dir, end, file::LEFT_FOR)) {
        to.warning(Check::Leftover, &path, "is a half-written file of a program that was killed", mend);
    }
}

/// Changes that wait for a person: how many, for how long, and files among them that are none.
pub(super) fn review(cx: &CheckContext, to: &mut Diagnosis) {
    let dir = cx.root.proposals();
    if let Err(error) = fs_err::read_dir(&dir)
        && dir.symlink_metadata().is_ok()
    {
        to.error(Check::Review, &dir, error.to_string(), "make it a directory that you can read");
    }
    for file in &cx.broken_proposals {
        to.error(Check::Review, &file.path, file.why.as_str(), "correct it in an editor, or remove it");
    }
    if let Some(oldest) = cx.waiting.iter().map(|proposal| proposal.created_at).min() {
        let waits = counted(cx.waiting.len(), "change waits", "changes wait");
        let days = cx.env.now().as_millisecond().saturating_sub(oldest).max(0) / DAY_MS;
        let age = counted(usize::try_from(days).unwrap_or_default(), "day", "days");
        let what = format!("{waits} for your decision, the oldest for {age}");
        to.warning(Check::Review, &dir, what, "memory-review shows them and asks about each");
    }
}
