//! `memory-read`: print notes and count each read. Defrag moves notes that are read often into AGENTS.md.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, flag, text, value};
use crate::base::env::Env;
use crate::base::error::{ErrorKind, Result};
use crate::base::signal;
use crate::base::text::disarmed;
use crate::program::notes::{Errors, Listed, Store, for_each, ids, no_id};
use crate::store::entry::EntryId;
use crate::store::persistence::Note;
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) const ABOUT: About = About {
    name: "memory-read",
    caption: "print notes and count each read",
    usage: &["memory-read [--json] [--no-count] ID…|-"],
    commands: &[],
    flags: &[
        flag("json", "one JSON object a line: front matter, path and body"),
        flag("no-count", "do not count this read"),
        value("config", "FILE", "use this configuration file"),
    ],
    more: "An ID is id__a1B2c3, a1B2c3 or [[id__a1B2c3]]. Archived notes are found too, and the id of a note that \
           was merged into another finds the other. With - the ids are read from stdin: one a line, or what \
           memory-list --json or memory-consolidate --json prints.\n\n\
           Each read adds 1 to the note's \"used\" and sets \"last_used\". If the store cannot be written, \
           the note is printed with a warning.\n\n    \
           memory-read id__a1B2c3\n    \
           memory-list --query \"retry backoff\" --limit 3 --json | memory-read -",
    sections: &[],
};

#[derive(Debug, Default)]
struct Args {
    ids: Vec<String>,
    json: bool,
    no_count: bool,
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
            Long("json") => args.json = true,
            Long("no-count") => args.no_count = true,
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
    let mut is_first = true;
    for_each(&ids, Errors::new(ABOUT.name, args.json), stdout, |id, stdout| {
        let note = if args.no_count { store.service.look(id)? } else { read(&store, id, &reporter)? };
        if args.json {
            let body = String::from_utf8_lossy(note.entry.body()).into_owned();
            return stdout.json(&Listed { body: Some(body), ..Listed::of(note.entry.meta(), &note.path) });
        }
        if !std::mem::replace(&mut is_first, false) {
            stdout.line("")?;
        }
        match stdout.is_terminal() {
            // On a terminal a note shows what it holds, and does nothing.
            true => stdout.text(&disarmed(&String::from_utf8_lossy(note.entry.bytes()))),
            false => stdout.bytes(note.entry.bytes()),
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Counts the read where the store can be written.
fn read(store: &Store, id: &EntryId, reporter: &Reporter) -> Result<Note> {
    match store.service.read(id) {
        Err(why) if matches!(why.kind(), ErrorKind::Io | ErrorKind::Config) => {
            let note = store.service.look(id)?;
            reporter.warn(&format!("this read of {id} is not counted: {}", why.message()));
            Ok(note)
        }
        read => read,
    }
}
