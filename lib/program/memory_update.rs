//! `memory-update`: change a note's title, tags, tier or text. Its id stays, and so do the links to it.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, flag, text, value};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::text::lossy;
use crate::base::{file, signal, stdin};
use crate::memory::service::Patch;
use crate::program::notes::{Listed, SCOPES, STATUSES, Store, TIERS, parse_id, piped_in, wanted_tag};
use crate::store::entry::{Scope, Status, Tier};
use crate::store::journal::entry::{BODY_CAP, TITLE_CAP};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(crate) const ABOUT: About = About {
    name: "memory-update",
    caption: "change a note; its id and the links to it stay",
    usage: &["memory-update ID [CHANGES] [--json]"],
    commands: &[],
    flags: &[
        value("title", "TITLE", "a new title; the file's name follows it"),
        value("summary", "TEXT", "one line, shown where the note itself is not"),
        value("body", "FILE", "a new text, from FILE or from stdin (-)"),
        value("tag", "+T|-T", "add or drop a tag; repeatable"),
        value("status", "S", "captured, consolidated or promoted"),
        value("tier", "T", "hot, warm or cold"),
        value("scope", "S", "global or repo"),
        flag("pin", "always show it in AGENTS.md"),
        flag("unpin", "let defrag decide again"),
        flag("json", "print the note's front matter and path as JSON"),
        value("config", "FILE", "use this configuration file"),
    ],
    more: "Prints the path of the note's file. A note is promoted exactly while it is hot, so setting one \
           sets the other. Keys and comments that you have put into the front matter yourself stay.\n\n    \
           memory-update id__a1B2c3 --title \"Guards are pure\" --tag +xstate --pin\n    \
           memory-read --no-count --json id__a1B2c3 | jq -r .body | sed 's/foo/bar/' |\n        \
           memory-update id__a1B2c3 --body -",
    sections: &[],
};

#[derive(Debug, Default)]
struct Args {
    id: String,
    patch: Patch,
    body: Option<PathBuf>,
    json: bool,
    config: Option<PathBuf>,
}

pub fn main() -> ExitCode {
    Program { about: &ABOUT, parse, run }.main()
}

fn parse(p: &mut Arguments) -> Result<Args> {
    use lexopt::prelude::*;
    let mut args = Args::default();
    let mut ids = Vec::new();
    let patch = &mut args.patch;
    while let Some(arg) = p.next()? {
        match arg {
            Long("title") => patch.title = Some(title(p.text()?)?),
            Long("summary") => patch.summary = Some(p.text()?),
            Long("body") => args.body = Some(p.path()?),
            Long("tag") => {
                let word = p.text()?;
                match (word.strip_prefix('+'), word.strip_prefix('-')) {
                    (Some(word), _) => patch.add_tags.push(wanted_tag("--tag", word)?),
                    (_, Some(word)) => {
                        patch.drop_tags.push(wanted_tag("--tag", word).unwrap_or(word.to_owned()))
                    }
                    (None, None) => {
                        return Err(Error::usage(format!("option \"--tag\": \"{word}\" has no sign"))
                            .hint(format!("write +{word} to add it, -{word} to drop it")));
                    }
                }
            }
            Long("status") => patch.status = Some(p.one_of(Status::parse, STATUSES)?),
            Long("tier") => patch.tier = Some(p.one_of(Tier::parse, TIERS)?),
            Long("scope") => patch.scope = Some(p.one_of(Scope::parse, SCOPES)?),
            Long("pin") => patch.pinned = Some(true),
            Long("unpin") => patch.pinned = Some(false),
            Long("json") => args.json = true,
            Long("config") => args.config = Some(p.path()?),
            Value(id) => ids.push(text(id)?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    if let (Some(status), Some(tier)) = (patch.status, patch.tier)
        && (status == Status::Promoted) != (tier == Tier::Hot)
    {
        return Err(Error::usage(format!("a {status} note cannot be {tier}"))
            .hint("a note is promoted exactly while it is hot; give one of the two"));
    }
    args.id = match &mut ids[..] {
        [id] => std::mem::take(id),
        [] => return Err(Error::usage("the id of a note is required").hint("see them with: memory-list")),
        [_, extra, ..] => return Err(Error::usage(format!("unexpected argument \"{extra}\""))),
    };
    if args.patch.is_empty() && args.body.is_none() {
        return Err(Error::usage("nothing is to be changed").hint("see --help for what can be"));
    }
    Ok(args)
}

fn title(title: String) -> Result<String> {
    match title.trim() {
        "" => Err(Error::usage("option \"--title\" is empty")),
        _ if title.len() > TITLE_CAP => Err(Error::usage(format!(
            "option \"--title\" has {} bytes; at most {TITLE_CAP} are taken",
            title.len()
        ))),
        _ => Ok(title),
    }
}

fn run(mut args: Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    signal::watch(ABOUT.name, args.json);
    let reporter = Reporter::new(false);
    let store = Store::open(args.config.as_deref(), env, &reporter)?;
    let id = parse_id(&args.id)?;
    if let Some(from) = &args.body {
        args.patch.body = Some(body(from, &reporter)?);
    }
    let (note, is_changed) = store.service.update(&id, &args.patch)?;
    if is_changed {
        store.commit(
            format!("update: {}", note.entry.meta().title),
            std::slice::from_ref(&note),
            env,
            &reporter,
        );
    }
    match args.json {
        true => stdout.json(&Listed::of(note.entry.meta(), &note.path))?,
        false => stdout.line(&note.path.display().to_string())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Never empty: a pipe that failed must not empty a note.
fn body(from: &Path, reporter: &Reporter) -> Result<String> {
    let (name, text) = if from == Path::new("-") {
        ("stdin".to_owned(), stdin::read(&piped_in(BODY_CAP), reporter)?.unwrap_or_default())
    } else {
        let bytes = file::read(from, BODY_CAP as u64)?;
        let (text, damaged) = lossy(bytes);
        if damaged {
            reporter
                .warn(&format!("\"{}\" is not valid UTF-8; the invalid bytes became U+FFFD", from.display()));
        }
        (format!("\"{}\"", from.display()), text)
    };
    if text.trim().is_empty() {
        return Err(Error::usage(format!("{name} holds no text; the note stays as it is"))
            .hint("memory-remove takes a note out of use"));
    }
    if text.len() > BODY_CAP {
        return Err(Error::usage(format!(
            "{name} has {} bytes; a note takes at most {BODY_CAP}",
            text.len()
        )));
    }
    Ok(text)
}
