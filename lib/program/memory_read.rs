//! `memory-read`: print notes and count each read. Defrag moves notes that are read often into AGENTS.md.

use crate::base::cli::{self, About, Args, Completes, Context, ExitCode, flag};
use crate::base::error::{ErrorKind, Result};
use crate::base::text::disarmed;
use crate::program::notes::{CONFIG, Listed, Store, ids, up_to_ids};
use crate::store::entry::EntryId;
use crate::store::persistence::Note;

pub(super) const ABOUT: About = About {
    name: "memory-read",
    caption: "print notes and count each read",
    usage: &["memory-read [--json] [--no-count] ID…|-"],
    flags: &[
        flag("json", "one JSON object a line: front matter, path and body"),
        flag("no-count", "do not count this read"),
        CONFIG,
    ],
    words: up_to_ids(usize::MAX),
    completes: Completes::Values("notes"),
    text: include_str!("memory_read.md"),
    ..About::BLANK
};

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    let store = Store::open(args, cx)?;
    let ids = ids(args, &store, cx)?;
    let is_counted = !args.has("no-count");
    let mut is_first = true;
    cx.each(&ids, |id, cx| {
        let note = if is_counted { read(&store, id, cx)? } else { store.service.look(id)? };
        if cx.json {
            let body = String::from_utf8_lossy(note.entry.body()).into_owned();
            return cx.stdout.json(&Listed { body: Some(body), ..Listed::of(note.entry.meta(), &note.path) });
        }
        if !std::mem::replace(&mut is_first, false) {
            cx.stdout.line("")?;
        }
        match cx.stdout.is_terminal() {
            // On a terminal a note shows what it holds, and does nothing.
            true => cx.stdout.text(&disarmed(&String::from_utf8_lossy(note.entry.bytes()))),
            false => cx.stdout.bytes(note.entry.bytes()),
        }
    })
}

/// Counts the read where the store can be written.
pub(super) fn read(store: &Store, id: &EntryId, cx: &Context) -> Result<Note> {
    match store.service.read(id) {
        Err(why) if matches!(why.kind(), ErrorKind::Io | ErrorKind::Config) => {
            let note = store.service.look(id)?;
            cx.reporter.warn(&format!("this read of {id} is not counted: {}", why.message()));
            Ok(note)
        }
        read => read,
    }
}
