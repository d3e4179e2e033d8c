//! `memory-share`: write notes as files of the current repository, for everybody who works in it, or remove them again.
//!
//! Only the working tree changes. A person looks at it and commits it, as they do with code.

use crate::base::cli::{self, About, Args, Completes, Context, ExitCode, flag};
use crate::base::error::{Error, Result};
use crate::base::repository::Repository;
use crate::memory::redact::Redactor;
use crate::memory::service::belongs_to;
use crate::memory::shared::{self, SharedNotes};
use crate::program::notes::{CONFIG, Store, checkout_here, up_to_ids};
use crate::program::person::{self, only_a_person};
use crate::store::entry::Scope;
use crate::store::persistence::{Note, Place, warn_of};
use serde_json::json;
use std::path::Path;

pub(super) const ABOUT: About = About {
    name: "memory-share",
    caption: "write notes as files of the repository",
    usage: &["memory-share [--json] ID…", "memory-share --undo [--json] ID…"],
    flags: &[
        flag("undo", "remove the files of these notes from the repository"),
        flag("json", "one JSON object per line: the path"),
        CONFIG,
    ],
    words: up_to_ids(usize::MAX),
    completes: Completes::Values("notes"),
    text: include_str!("memory_share.md"),
    ..About::BLANK
};

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    only_a_person(person::SHARE, cx)?;
    let store = Store::open(args, cx)?;
    let here = checkout_here(&cx.env)?;
    let paths = if args.has("undo") {
        let ids = args.words().into_iter().map(|word| store.named(word, cx)).collect::<Result<Vec<_>>>()?;
        shared::unshare(&ids, &here)?
    } else {
        let notes =
            args.words().into_iter().map(|word| note(word, &store, &here)).collect::<Result<Vec<_>>>()?;
        let home = cx.env.home().unwrap_or_else(|| Path::new("/"));
        // Even if the person wants none of their own notes redacted.
        let redactor = Redactor::new(true, &store.config.redact.patterns)?;
        let paths = shared::share(&notes, &here, home, &redactor)?;
        let all = SharedNotes::of(&here);
        warn_of(&all.broken, &cx.reporter);
        for (note, link) in all.dead_links() {
            cx.reporter.warn(&format!("\"{}\" links to {link}, which is not shared", note.path.display()));
        }
        cx.say("commit what you want others to have: git add .agents/memory");
        paths
    };
    cx.each(paths, |path, cx| cx.print(&json!({"path": path}), &path.to_string_lossy()))
}

/// A note in use of this repository. One that holds everywhere becomes one of this repository there, if a person names it.
fn note(word: &str, store: &Store, here: &Repository) -> Result<Note> {
    let note = store.service.look(&store.service.named(word)?)?;
    let meta = note.entry.meta();
    let refused = |why: &str| Err(Error::refused(format!("{} is not shared: {why}", meta.id)));
    match meta.scope {
        _ if note.place == Place::Archive => refused("it is archived"),
        Scope::Repo if !belongs_to(meta, &here.name) => refused("it is a note of another repository"),
        _ => Ok(note),
    }
}
