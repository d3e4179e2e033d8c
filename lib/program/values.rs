//! The values that completions offer: `memory completions notes`, `axe completions agents`. A line for each, with a tab before
//! what a person knows it by.
//!
//! A shell puts a value on a command line that may be run next, and repositories and agents have names that others chose. So
//! only values that no shell reads in another way are offered. What a person knows them by is shown, and never run.

use crate::base::cli::{Context, Reporter};
use crate::base::error::Result;
use crate::base::text::{in_line, one_line};
use crate::config::agent;
use crate::config::global::Global;
use crate::harness::HARNESSES;
use crate::memory::service::shown_in;
use crate::program::notes::{Store, repository_here};
use crate::store::entry::{Meta, is_tag};
use crate::store::persistence::{Persistence, Place};
use std::collections::BTreeMap;

/// The longest description, in characters.
const WIDTH: usize = 60;

/// A value, and what a person knows it by.
pub(super) type Values = BTreeMap<String, String>;

/// A kind of values, and what lists them; flags and words name it in [`Completes::Values`](crate::base::cli::Completes).
pub(super) type CompletionKind = (&'static str, fn(&Context) -> Result<Values>);

pub(super) const AXE: &[CompletionKind] = &[("agents", agents), ("models", models)];

pub(super) const MEMORY: &[CompletionKind] = &[
    ("notes", notes),
    ("tags", tags),
    ("tag-changes", tag_changes),
    ("changes", changes),
    ("harnesses", harnesses),
    ("repositories", repositories),
];

/// Prints the values of a kind that begin so.
pub(super) fn print((_, list): &CompletionKind, beginning: &str, cx: &mut Context) -> Result<()> {
    for (value, known_by) in list(cx)? {
        if value.starts_with(beginning) && is_plain(&value) {
            let known_by = in_line(&one_line(&known_by, WIDTH));
            cx.stdout.line(format!("{value}\t{known_by}").trim_end())?;
        }
    }
    Ok(())
}

/// No shell reads anything in it, and no program takes it for an option.
fn is_plain(value: &str) -> bool {
    let is_sign = |c: char| "_-./:@+,".contains(c);
    value.chars().all(|c| c.is_alphanumeric() || is_sign(c)) && value.strip_prefix('-').is_none_or(is_tag)
}

/// What `of` makes of the notes that memory-list shows here.
fn of_notes<I: IntoIterator<Item = (String, String)>>(cx: &Context, of: fn(&Meta) -> I) -> Result<Values> {
    let store = Store::of(None, cx)?;
    let here = repository_here(cx);
    let is_shown = |meta: &Meta| here.as_ref().is_none_or(|here| shown_in(meta, &here.name));
    let listed = store.service.list(Place::Topics, is_shown)?;
    let _ = store.service.keep_up();
    Ok(listed.found.iter().flat_map(|found| of(&found.view.meta)).collect())
}

fn notes(cx: &Context) -> Result<Values> {
    of_notes(cx, |meta| [(meta.id.to_string(), meta.title.clone())])
}

fn tags(cx: &Context) -> Result<Values> {
    of_notes(cx, |meta| unknown(meta.tags.clone()))
}

fn tag_changes(cx: &Context) -> Result<Values> {
    let signed = |tag: String| [format!("+{tag}"), format!("-{tag}")];
    Ok(unknown(tags(cx)?.into_keys().flat_map(signed)).collect())
}

fn repositories(cx: &Context) -> Result<Values> {
    Ok(unknown(Store::of(None, cx)?.repositories(cx)?).collect())
}

/// Values that a person knows by nothing else.
fn unknown(values: impl IntoIterator<Item = String>) -> impl Iterator<Item = (String, String)> {
    values.into_iter().map(|value| (value, String::new()))
}

fn changes(cx: &Context) -> Result<Values> {
    let (waiting, _) = Store::of(None, cx)?.service.notes().proposals()?;
    Ok(waiting.iter().map(|one| (one.id.to_string(), format!("{}: {}", one.op, one.title()))).collect())
}

fn harnesses(cx: &Context) -> Result<Values> {
    let own = unknown(Store::of(None, cx)?.config.harnesses.into_keys());
    Ok(own.chain(HARNESSES.iter().map(|spec| (spec.name.to_owned(), spec.title.to_owned()))).collect())
}

fn agents(cx: &Context) -> Result<Values> {
    Ok(unknown(agent::names(&cx.env)?).collect())
}

/// Those that the configuration or an agent names.
fn models(cx: &Context) -> Result<Values> {
    let mut all = Values::new();
    for (name, agent) in agent::load_all(&cx.env, &Reporter::silent())? {
        let models = agent.fallback.into_iter().chain([agent.model]);
        all.extend(models.map(|model| (model, format!("of the agent {name}"))));
    }
    let config = Global::load(&cx.env, &Reporter::silent())?;
    all.extend(unknown(config.rates.into_keys().map(|model| model.to_string())));
    all.extend(config.models.into_iter().map(|(short, model)| (short, model.to_string())));
    Ok(all)
}
