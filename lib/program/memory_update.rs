//! `memory-update`: change notes. Their ids stay, and so do the links to them.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, flag, text, value};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::text::{lossy, one_line};
use crate::base::{file, signal, stdin};
use crate::config::memory::Redact;
use crate::memory::redact::Redactor;
use crate::memory::service::{Changed, Patch};
use crate::program::notes::{
    Errors, SCOPES, STATUSES, Store, TIERS, author, for_each, ids, no_id, only_a_person, piped_in, print,
    summary, wanted_tag,
};
use crate::store::entry::{Scope, Status, Tier};
use crate::store::journal::entry::{BODY_CAP, TITLE_CAP};
use jiff::civil::Date;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) const ABOUT: About = About {
    name: "memory-update",
    caption: "change notes; ids and links stay",
    usage: &["memory-update ID|- CHANGES [--json]"],
    commands: &[],
    flags: &[
        value("title", "TITLE", "a new title; the file is renamed to match"),
        value("summary", "TEXT", "one line, shown where the note itself is not"),
        value("body", "FILE", "a new text, from FILE or from stdin (-)"),
        value("tag", "+T|-T", "add or remove a tag; repeatable"),
        value("status", "S", "captured, consolidated or promoted"),
        value("tier", "T", "hot, warm or cold"),
        value("scope", "S", "global or repo"),
        value("until", "DATE", "the last day on which it holds, like 2026-03-20; or none"),
        flag("pin", "always show it in AGENTS.md"),
        flag("unpin", "let defrag decide again"),
        flag("json", "print each note's front matter and path as JSON"),
        value("config", "FILE", "use this configuration file"),
    ],
    more: "Prints the path of the note's file. With - instead of an ID it changes every note that stdin names, in \
           the forms that memory-read accepts. A note is promoted exactly while it is hot, so setting one sets the \
           other. Secrets in a new title, summary or body are replaced by a mark. Your own keys and comments in \
           the front matter stay. The AGENTS.md files are refreshed. In an agent's shell, a change of a note that is \
           yours (hand-written, pinned, accepted or global) waits for memory-review.\n\n    \
           memory-update id__a1B2c3 --title \"Guards are pure\" --tag +xstate --pin\n    \
           memory-list --tag xstate --json | memory-update - --tier warm\n    \
           memory-read --no-count --json id__a1B2c3 | jq -r .body | sed 's/foo/bar/' |\n        \
           memory-update id__a1B2c3 --body -",
    sections: &[],
};

#[derive(Debug, Default)]
struct Args {
    /// One id or `-`.
    ids: Vec<String>,
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
    let patch = &mut args.patch;
    while let Some(arg) = p.next()? {
        match arg {
            Long("title") => patch.title = Some(title(p.text()?)?),
            Long("summary") => patch.summary = Some(p.text()?),
            Long("body") => args.body = Some(p.path()?),
            Long("tag") => tag(&p.text()?, patch)?,
            Long("status") => patch.status = Some(p.one_of(Status::parse, STATUSES)?),
            Long("tier") => patch.tier = Some(p.one_of(Tier::parse, TIERS)?),
            Long("scope") => patch.scope = Some(p.one_of(Scope::parse, SCOPES)?),
            Long("until") => patch.until = Some(until(&p.text()?)?),
            Long("pin") => patch.pinned = Some(true),
            Long("unpin") => patch.pinned = Some(false),
            Long("json") => args.json = true,
            Long("config") => args.config = Some(p.path()?),
            Value(id) if args.ids.is_empty() => args.ids.push(text(id)?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    args.check()
}

impl Args {
    fn check(self) -> Result<Args> {
        if let (Some(status), Some(tier)) = (self.patch.status, self.patch.tier)
            && (status == Status::Promoted) != (tier == Tier::Hot)
        {
            return Err(Error::usage(format!("a {status} note cannot be {tier}"))
                .hint("a note is promoted exactly while it is hot; give one of the two"));
        }
        if self.ids.is_empty() {
            return Err(no_id());
        }
        if self.patch.is_empty() && self.body.is_none() {
            return Err(
                Error::usage("no change is given").hint("see --help for the changes that are possible")
            );
        }
        if self.ids == ["-"] && self.body.as_deref() == Some(Path::new("-")) {
            return Err(Error::usage("stdin cannot give both the ids and the body")
                .hint("give the body as a file, or the id as an argument"));
        }
        Ok(self)
    }
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

fn until(word: &str) -> Result<Option<Date>> {
    if word == "none" {
        return Ok(None);
    }
    let day = word.parse::<Date>().ok().filter(|day| day.to_string() == word);
    day.map(Some).ok_or_else(|| {
        Error::usage(format!(
            "option \"--until\" takes a day like 2026-03-20 or none, not \"{}\"",
            one_line(word, 80)
        ))
    })
}

fn tag(word: &str, patch: &mut Patch) -> Result<()> {
    match (word.strip_prefix('+'), word.strip_prefix('-')) {
        (Some(word), _) => patch.add_tags.push(wanted_tag("--tag", word)?),
        // A note that a person edited may have a tag that is not valid.
        (_, Some(word)) => patch.drop_tags.push(wanted_tag("--tag", word).unwrap_or(word.to_owned())),
        (None, None) => {
            return Err(Error::usage(format!("option \"--tag\": \"{word}\" has no sign"))
                .hint(format!("write +{word} to add it, -{word} to remove it")));
        }
    }
    Ok(())
}

fn run(mut args: Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    signal::watch(ABOUT.name, args.json);
    let reporter = Reporter::new(false);
    if args.patch.pinned.is_some() {
        only_a_person("to pin a note, or to unpin it,", env)?;
    }
    let store = Store::open(args.config.as_deref(), env, &reporter)?;
    let ids = ids(&args.ids, &reporter)?;
    if let Some(from) = &args.body {
        args.patch.body = Some(body(from, &reporter)?);
    }
    redact(&mut args.patch, &store.config.redact, &reporter)?;
    let author = author(env);
    let (mut changed, mut waiting) = (Vec::new(), Vec::new());
    let done = for_each(&ids, Errors::new(ABOUT.name, args.json), stdout, |id, stdout| {
        match store.service.update(id, &args.patch, &author)? {
            Changed::Waits(proposal) => {
                let printed = store.print_waiting(&proposal, args.json, stdout, &reporter);
                waiting.push(proposal);
                printed
            }
            Changed::Same(note) => print(&note, args.json, stdout),
            Changed::Done(note) => {
                let printed = print(&note, args.json, stdout);
                changed.push(note);
                printed
            }
        }
    });
    // A change that waits is mentioned there, too.
    if !changed.is_empty() || !waiting.is_empty() {
        store.refresh(env, &reporter);
    }
    store.commit(summary("update", &changed, &waiting), &changed, &waiting, env, &reporter);
    done.map(|()| ExitCode::SUCCESS)
}

fn redact(patch: &mut Patch, settings: &Redact, reporter: &Reporter) -> Result<()> {
    let redactor = Redactor::of(settings)?;
    let whole = patch.add_tags.len();
    // A mark is no tag.
    patch.add_tags.retain(|tag| redactor.cleaned(tag) == *tag);
    if patch.add_tags.len() < whole {
        reporter.warn("option \"--tag\": a tag that looks like a secret is left out");
    }
    let texts =
        [("--title", &mut patch.title), ("--summary", &mut patch.summary), ("--body", &mut patch.body)];
    for (flag, text) in texts {
        let Some(text) = text else { continue };
        let clean = redactor.cleaned(text);
        if clean != *text {
            reporter.warn(&format!("option \"{flag}\": what looks like a secret was replaced by a mark"));
            *text = clean;
        }
    }
    Ok(())
}

/// The new body. An empty one is an error: a pipe that failed must not empty the note.
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
        return Err(Error::usage(format!("{name} holds no text; nothing is changed"))
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
