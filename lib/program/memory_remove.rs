//! `memory-remove`: move notes to the archive, or delete them.

use crate::base::cli::{self, About, Args, Context, ExitCode, flag};
use crate::base::error::Result;
use crate::memory::defrag::applied::forget;
use crate::program::notes::{CONFIG, Store, ids, up_to_ids};
use crate::program::person::{self, author_of};
use crate::store::entry::EntryId;
use crate::store::persistence::{Persistence, Place};
use crate::store::topics::Topics;

pub(super) const ABOUT: About = About {
    name: "memory-remove",
    caption: "move notes to the archive, or delete them",
    usage: &["memory-remove [--purge] [--json] ID…|-"],
    flags: &[
        flag("purge", "delete permanently, also from the archive"),
        flag("json", "one JSON object a line: front matter and path"),
        CONFIG,
    ],
    words: up_to_ids(usize::MAX),
    text: include_str!("memory_remove.md"),
    ..About::BLANK
};

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    let store = Store::open(args, cx)?;
    let ids = ids(args, cx)?;
    let is_purged = args.has("purge");
    let author = author_of(is_purged.then_some(person::DELETE), &ids, &store, cx)?;
    if is_purged {
        // Before the notes are deleted, while their ids are still known. Only those that can be deleted.
        let topics = Topics::at(&store.root);
        let there: Vec<_> = ids.iter().filter(|id| topics.find_own(id).is_ok()).cloned().collect();
        for batch in forget(&store.root, &there)? {
            cx.reporter.warn(&format!(
                "\"{}\" may hold text of the deleted notes until its run has finished",
                batch.display()
            ));
        }
        let older = older_texts(&topics, &ids)?;
        if !older.is_empty() {
            cx.reporter.warn(&format!(
                "what the notes said before is in the archive; to delete that, too: memory-remove --purge {}",
                older.iter().map(EntryId::as_str).collect::<Vec<_>>().join(" ")
            ));
        }
    }
    match is_purged {
        true => store.change(&ids, "delete", cx, |id| store.service.purge(id, &author)),
        false => store.change(&ids, "archive", cx, |id| store.service.remove(id, &author)),
    }
}

/// The archived notes that these have replaced, and that are not themselves to be deleted.
fn older_texts(topics: &Topics, ids: &[EntryId]) -> Result<Vec<EntryId>> {
    let scan = topics.scan(&[Place::Archive], |note| {
        let meta = note.entry.into_meta();
        let is_older = meta.superseded_by.is_some_and(|by| ids.contains(&by)) && !ids.contains(&meta.id);
        is_older.then_some(meta.id)
    })?;
    Ok(scan.found.into_iter().flatten().collect())
}
