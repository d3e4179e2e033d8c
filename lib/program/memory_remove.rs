//! `memory-remove`: move notes to the archive, or delete them.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, flag, text, value};
use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::signal;
use crate::memory::defrag::forget::forget;
use crate::memory::service::{Changed, RemovalMode};
use crate::program::notes::{Errors, Store, author, for_each, ids, no_id, print, summary};
use crate::store::entry::EntryId;
use crate::store::persistence::{Persistence, Place};
use crate::store::topics::Topics;
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) const ABOUT: About = About {
    name: "memory-remove",
    caption: "move notes to the archive, or delete them",
    usage: &["memory-remove [--purge] [--json] ID…|-"],
    commands: &[],
    flags: &[
        flag("purge", "delete permanently, also from the archive"),
        flag("json", "one JSON object a line: front matter and path"),
        value("config", "FILE", "use this configuration file"),
    ],
    more: "Prints where each note is now, or with --purge where it was. To restore one, move its file from \
           archive/ to topics/. The AGENTS.md files are refreshed. After --purge, memory-defrag --undo cannot bring \
           the note back. It is still in the store's git history, if there is one, and in the queue \
           entry that it came from (inbox/.processed). In an agent's shell, a note that is yours (hand-written, pinned, \
           accepted or global) stays, and that it should go waits for memory-review. With - the ids are read from \
           stdin, in the forms that memory-read accepts.\n\n    \
           memory-remove id__a1B2c3\n    \
           memory-list --archived --json | memory-remove --purge -",
    sections: &[],
};

#[derive(Debug, Default)]
struct Args {
    ids: Vec<String>,
    purge: bool,
    json: bool,
    config: Option<PathBuf>,
}

pub fn main() -> ExitCode {
    Program { about: &ABOUT, parse, run }.main()
}

fn parse(p: &mut Arguments) -> Result<Args> {
    use lexopt::prelude::*;
    let mut args = Args::default();
    while let Some(arg) = p.next()? {
        match arg {
            Long("purge") => args.purge = true,
            Long("json") => args.json = true,
            Long("config") => args.config = Some(p.path()?),
            Value(id) => args.ids.push(text(id)?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    if args.ids.is_empty() {
        return Err(no_id());
    }
    Ok(args)
}

fn run(args: Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    signal::watch(ABOUT.name, args.json);
    let reporter = Reporter::new(false);
    let store = Store::open(args.config.as_deref(), env, &reporter)?;
    let ids = ids(&args.ids, &reporter)?;
    let how = if args.purge { RemovalMode::Purge } else { RemovalMode::Archive };
    if args.purge {
        // Before the notes are deleted, while their ids are still known. Only those that can be deleted.
        let topics = Topics::at(&store.root);
        let there: Vec<_> = ids.iter().filter(|id| topics.find_own(id).is_ok()).cloned().collect();
        for batch in forget(&store.root, &there)? {
            reporter.warn(&format!(
                "\"{}\" may hold text of the deleted notes until its run has finished",
                batch.display()
            ));
        }
    }
    if args.purge {
        let older = older_texts(&Topics::at(&store.root), &ids)?;
        if let [_, ..] = &older[..] {
            reporter.warn(&format!(
                "what the notes said before is in the archive; to delete that, too: memory-remove --purge {}",
                older.iter().map(EntryId::as_str).collect::<Vec<_>>().join(" ")
            ));
        }
    }
    let author = author(env);
    let (mut removed, mut waiting) = (Vec::new(), Vec::new());
    let done = for_each(&ids, Errors::new(ABOUT.name, args.json), stdout, |id, stdout| {
        match store.service.remove(id, how, &author)? {
            Changed::Waits(proposal) => {
                let printed = store.print_waiting(&proposal, args.json, stdout, &reporter);
                waiting.push(proposal);
                printed
            }
            Changed::Done(note) | Changed::Same(note) => {
                let printed = print(&note, args.json, stdout);
                removed.push(note);
                printed
            }
        }
    });
    // A change that waits is mentioned there, too.
    if !removed.is_empty() || !waiting.is_empty() {
        store.refresh(env, &reporter);
    }
    let message = summary(if args.purge { "delete" } else { "archive" }, &removed, &waiting);
    store.commit(message, &removed, &waiting, env, &reporter);
    done.map(|()| ExitCode::SUCCESS)
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
