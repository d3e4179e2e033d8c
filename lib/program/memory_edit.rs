//! `memory-edit`: title, summary, tags and text of a note in the person's editor.

use crate::base::cli::{self, About, Args, Completes, Context, ExitCode, flag};
use crate::base::error::{Error, Result};
use crate::base::text::whole_lines;
use crate::memory::service::{Author, Patch};
use crate::program::edited::EditedText;
use crate::program::memory_update::{redact, title_that_fits};
use crate::program::notes::{CONFIG, Store, up_to_ids, wanted_tag};
use crate::program::person::{self, only_a_person};
use crate::store::entry::{Entry, Meta};
use std::borrow::Cow;
use std::slice;

pub(super) const ABOUT: About = About {
    name: "memory-edit",
    caption: "change a note in your editor",
    usage: &["memory-edit ID [--json]"],
    flags: &[flag("json", "print the note's front matter and path as JSON"), CONFIG],
    words: up_to_ids(1),
    completes: Completes::Values("notes"),
    text: include_str!("memory_edit.md"),
    ..About::BLANK
};

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    only_a_person(person::EDIT, cx)?;
    let store = Store::open(args, cx)?;
    let word = args.words().first().copied().unwrap_or_default();
    let before = store.service.look(&store.service.named(word)?)?.entry;
    let id = before.meta().id.clone();
    let text = EditedText::of(&store.root, id.as_str(), before.form());
    if text.is_left() {
        cx.say(&format!("opened the text you edited earlier, \"{}\"", text.path.display()));
    }
    let Some(after) = text.edit(&cx.env).map_err(|error| text.keep(error, ""))? else {
        cx.say("nothing was changed");
        return Ok(());
    };
    let again = format!("; to fix it, run: memory-edit {id}");
    let mut patch = patch(&before, &after).map_err(|error| text.keep(error, &again))?;
    redact(&mut patch, &store.config.redact, |field| format!("the {field}"), &cx.reporter)
        .map_err(|error| text.keep(error, ""))?;
    let beside = format!("; the note as it is now: memory-read {id}");
    let work = |id: &_| store.service.update_meta(id, &patch, &Author::Person);
    store.change(slice::from_ref(&id), "edit", true, cx, work).map_err(|error| text.keep(error, &beside))?;
    text.done()
}

/// What a person changed.
fn patch(before: &Entry, after: &[u8]) -> Result<Patch> {
    let after = Entry::of_form(after, &before.meta().id)?;
    let (old, new) = (before.meta(), after.meta());
    let of = |given: &Meta, other: &Meta| -> Vec<String> {
        given.tags.iter().filter(|tag| !other.tags.contains(tag)).cloned().collect()
    };
    let added = of(new, old).iter().map(|tag| wanted_tag("tags", tag)).collect::<Result<_>>()?;
    Ok(Patch {
        title: (new.title != old.title).then(|| title_that_fits("the title", &new.title)).transpose()?,
        summary: (new.summary != old.summary).then(|| new.summary.clone()),
        body: body(before, &after)?,
        add_tags: added,
        drop_tags: of(old, new),
        base: Some(before.base()),
        ..Patch::default()
    })
}

/// The new text, if there is one. An editor may add the end of the last line.
fn body(before: &Entry, after: &Entry) -> Result<Option<String>> {
    let [old, new] = [before, after].map(|entry| String::from_utf8_lossy(entry.body()));
    if before.body() == after.body() || whole_lines(&new) == whole_lines(&old) {
        return Ok(None);
    }
    if new.trim().is_empty() {
        return Err(Error::usage("the note has no text").hint("memory-remove takes a note out of use"));
    }
    // What is damaged would be lost.
    match new {
        Cow::Borrowed(text) => Ok(Some(text.to_owned())),
        Cow::Owned(_) => Err(Error::usage("the text is not valid UTF-8")),
    }
}
