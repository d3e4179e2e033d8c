//! `memory-update`: change notes. Their ids stay, and so do the links to them.

use crate::base::cli::{
    self, About, Args, Completes, Context, ExitCode, FlagRule, Reporter, flag, path as file, value,
};
use crate::base::error::{Error, Result};
use crate::base::glob;
use crate::base::text::{one_line, visible};
use crate::config::memory::Redact;
use crate::memory::redact::Redactor;
use crate::memory::service::{Author, Patch};
use crate::program::notes::{CONFIG, SCOPE, STATUS, Store, TIER, ids, read_text, up_to_ids, wanted_tag};
use crate::program::person::{self, author_of, only_a_person};
use crate::store::entry::{Scope, Status, Tier};
use crate::store::journal::entry::{BODY_CAP, TITLE_CAP};
use jiff::civil::Date;
use std::path::Path;

pub(super) const ABOUT: About = About {
    name: "memory-update",
    caption: "change notes; ids and links stay",
    usage: &["memory-update ID|- CHANGES [--json]"],
    flags: &[
        value("title", "TITLE", "a new title; the file is renamed to match"),
        value("summary", "TEXT", "one line, shown where the note itself is not"),
        file("body", "FILE", "a new text, from FILE or from stdin (-)"),
        value("tag", "+T|-T", "add or remove a tag; repeatable").from("tag-changes"),
        value("path", "+GLOB|-GLOB", "add or remove a glob of files that the note is about; repeatable"),
        STATUS,
        TIER,
        SCOPE,
        value("until", "DATE", "the last day on which it holds, like 2026-03-20; or none"),
        flag("confirm", "it still holds, though its code has changed or its branch is gone"),
        flag("pin", "always show it in AGENTS.md"),
        flag("unpin", "let defrag decide again"),
        flag("json", "print each note's front matter and path as JSON"),
        CONFIG,
    ],
    words: up_to_ids(1),
    completes: Completes::Values("notes"),
    rules: &[FlagRule::AtMostOne(&["--pin", "--unpin"])],
    text: include_str!("memory_update.md"),
    ..About::BLANK
};

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    let mut patch = patch(args)?;
    if patch.is_empty() && !args.has("body") {
        return Err(Error::usage("no change is given").hint("see --help for the changes that are possible"));
    }
    if args.words() == ["-"] && args.path("body") == Some(Path::new("-")) {
        return Err(Error::usage("stdin cannot give both the ids and the body")
            .hint("give the body as a file, or the id as an argument"));
    }
    if patch.pinned.is_some() {
        only_a_person(person::PIN, cx)?;
    }
    let store = Store::open(args, cx)?;
    let ids = ids(args, &store, cx)?;
    patch.body = args.path("body").map(|from| body(from, &cx.reporter)).transpose()?;
    if let Some(Some(day)) = patch.until.filter(|day| day.is_some_and(|day| day < cx.env.today())) {
        cx.reporter.warn(&format!("option \"--until\": {day} has passed; sessions no longer get this note"));
    }
    let is_moved = patch.tier.is_some() || patch.status.is_some();
    let author = match patch.pinned {
        // They were asked above, or it is their shell.
        Some(_) => Author::Person,
        None => author_of(is_moved.then_some(person::TIER), &ids, &store, cx)?,
    };
    if let Author::Agent(_) = author {
        for text in [&mut patch.title, &mut patch.summary, &mut patch.body].into_iter().flatten() {
            *text = visible(text).into_owned();
        }
    }
    redact(&mut patch, &store.config.redact, |flag| format!("option \"--{flag}\""), &cx.reporter)?;
    store.change(&ids, "update", true, cx, |id| store.service.update_meta(id, &patch, &author))
}

/// What the flags change, but for the body.
fn patch(args: &Args) -> Result<Patch> {
    let mut patch = Patch {
        title: args.parsed("title", |title| title_that_fits("option \"--title\"", title))?,
        summary: args.text("summary").map(str::to_owned),
        status: args.text("status").and_then(Status::parse),
        tier: args.text("tier").and_then(Tier::parse),
        scope: args.text("scope").and_then(Scope::parse),
        until: args.parsed("until", until)?,
        ..Patch::default()
    };
    for (flag, value) in args.in_order() {
        match flag {
            "confirm" => patch.is_confirmed = true,
            "pin" | "unpin" => patch.pinned = Some(flag == "pin"),
            "tag" => tag(value, &mut patch)?,
            "path" => path(value, &mut patch)?,
            _ => {}
        }
    }
    if let (Some(status), Some(tier)) = (patch.status, patch.tier)
        && (status == Status::Promoted) != (tier == Tier::Hot)
    {
        return Err(Error::usage(format!("a {status} note cannot be {tier}"))
            .hint("a note is promoted exactly while it is hot; give one of the two"));
    }
    Ok(patch)
}

/// `of`: what holds it, as in the message.
pub(super) fn title_that_fits(of: &str, title: &str) -> Result<String> {
    match (title.trim(), title.len()) {
        ("", _) => Err(Error::usage(format!("{of} is empty"))),
        (_, bytes) if bytes > TITLE_CAP => {
            Err(Error::usage(format!("{of} has {bytes} bytes; at most {TITLE_CAP} are taken")))
        }
        _ => Ok(title.to_owned()),
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
    match signed("--tag", word)? {
        ('+', word) => patch.add_tags.push(wanted_tag("option \"--tag\"", word)?),
        // A note that a person edited may have a tag that is not valid.
        (_, word) => patch.drop_tags.push(wanted_tag("option \"--tag\"", word).unwrap_or(word.to_owned())),
    }
    Ok(())
}

fn path(word: &str, patch: &mut Patch) -> Result<()> {
    match signed("--path", word)? {
        ('+', glob) => match glob::fault(glob) {
            None => patch.add_paths.push(glob.to_owned()),
            Some(fault) => {
                let why = format!("option \"--path\": \"{}\" {fault}", one_line(glob, 80));
                return Err(Error::usage(why).hint("write it like src/db/**, *.sql or tools/"));
            }
        },
        (_, glob) => patch.drop_paths.push(glob.to_owned()),
    }
    Ok(())
}

/// What is added (`+`), or removed (`-`).
fn signed<'a>(flag: &str, word: &'a str) -> Result<(char, &'a str)> {
    let signed = ['+', '-'].into_iter().find_map(|sign| Some((sign, word.strip_prefix(sign)?)));
    signed.ok_or_else(|| {
        let word = one_line(word, 80);
        Error::usage(format!("option \"{flag}\": \"{word}\" has no sign"))
            .hint(format!("write +{word} to add it, -{word} to remove it"))
    })
}

/// Replaces what looks like a secret. `of`: what holds a field, as in the warning.
pub(super) fn redact(
    patch: &mut Patch,
    settings: &Redact,
    of: impl Fn(&str) -> String,
    reporter: &Reporter,
) -> Result<()> {
    let redactor = Redactor::of(settings)?;
    let whole = patch.add_tags.len();
    // A mark is no tag.
    patch.add_tags.retain(|tag| redactor.cleaned(tag) == *tag);
    // Nor a path.
    patch.add_paths.retain(|path| redactor.cleaned(path) == *path);
    if patch.add_tags.len() < whole {
        reporter.warn(&format!("{}: a tag that looks like a secret is left out", of("tag")));
    }
    let texts = [("title", &mut patch.title), ("summary", &mut patch.summary), ("body", &mut patch.body)];
    for (field, text) in texts {
        let Some(text) = text else { continue };
        let clean = redactor.cleaned(text);
        if clean != *text {
            reporter.warn(&format!("{}: what looks like a secret was replaced by a mark", of(field)));
            *text = clean;
        }
    }
    Ok(())
}

/// The new body. An empty one is an error: a pipe that failed must not empty the note.
fn body(from: &Path, reporter: &Reporter) -> Result<String> {
    let is_stdin = from == Path::new("-");
    let next = "--body takes a file; to give the text itself, pipe it in: --body -";
    let text = read_text(from, BODY_CAP as u64, reporter)
        .map_err(|error| if is_stdin { error } else { error.hint(next) })?;
    let name = if is_stdin { "stdin".to_owned() } else { format!("\"{}\"", from.display()) };
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
