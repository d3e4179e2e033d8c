//! `memory-remove`: take notes out of use. They go to the archive, unless they are to be deleted for good.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, flag, text, value};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::signal;
use crate::memory::defrag::forget::forget;
use crate::memory::section;
use crate::memory::service::RemovalMode;
use crate::program::notes::{Listed, Store, for_each, ids};
use crate::store::persistence::Persistence;
use crate::store::topics::Topics;
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) const ABOUT: About = About {
    name: "memory-remove",
    caption: "move notes to the archive, or delete them",
    usage: &["memory-remove [--purge] [--json] ID…"],
    commands: &[],
    flags: &[
        flag("purge", "delete for good, archived notes too"),
        flag("json", "one JSON object a line: front matter and path"),
        value("config", "FILE", "use this configuration file"),
    ],
    more: "Prints where each note lies now, or with --purge where it lay. To take one back, move its file \
           from archive/ to topics/. With --purge AGENTS.md files are refreshed, and memory-defrag --undo \
           cannot bring the note back. It is still in the store's git history, if there is one, and the queue \
           entry that it came from in inbox/.processed. With - the ids are read from stdin, as memory-read does.\n\n    \
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
        return Err(Error::usage("the id of a note is required").hint("see them with: memory-list"));
    }
    Ok(args)
}

fn run(args: Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    signal::watch(ABOUT.name, args.json);
    let reporter = Reporter::new(false);
    let store = Store::open(args.config.as_deref(), env, &reporter)?;
    let ids = ids(&args.ids, &reporter)?;
    let how = if args.purge { RemovalMode::Purge } else { RemovalMode::Archive };
    if args.purge && !store.config.storage.foreign {
        // First: afterwards nobody can ask for it by its id any more. But only what can be deleted.
        let topics = Topics::at(&store.root);
        let there: Vec<_> = ids.iter().filter(|id| topics.find_own(id).is_ok()).cloned().collect();
        for batch in forget(&store.root, &there)? {
            reporter.warn(&format!(
                "\"{}\" may hold text of what is deleted until its run is at its end",
                batch.display()
            ));
        }
    }
    let mut removed = Vec::new();
    let done = for_each(ABOUT.name, &ids, stdout, |id, stdout| {
        let note = store.service.remove(id, how)?;
        let printed = match args.json {
            true => stdout.json(&Listed::of(note.entry.meta(), &note.path)),
            false => stdout.line(&note.path.display().to_string()),
        };
        removed.push(note);
        printed
    });
    let what = if args.purge { "delete" } else { "archive" };
    let message = match &removed[..] {
        [note] => format!("{what}: {}", note.entry.meta().title),
        all => format!("{what}: {} notes", all.len()),
    };
    if args.purge && !removed.is_empty() {
        match section::refresh(&store.config, &store.root, &reporter) {
            Ok(outcomes) => outcomes
                .into_iter()
                .filter_map(|outcome| outcome.standing.err())
                .for_each(|error| reporter.warn(&format!("not refreshed: {}", error.line()))),
            Err(error) => reporter.warn(&format!("no AGENTS.md was refreshed: {}", error.line())),
        }
    }
    store.commit(message, &removed, env, &reporter);
    done.map(|()| ExitCode::SUCCESS)
}
