//! The values that completions offer: `memory completions notes`, `axe completions agents`. A line for each, with a tab before
//! what a person knows it by.
//!
//! A shell puts a value on a command line that may be run next, and repositories and agents have names that others chose. So
//! only values that no shell reads in another way are offered. What a person knows them by is shown, and never run.

use crate::base::cli::{Context, Reporter};
use crate::base::error::Result;
use crate::base::text::{counted, in_line, one_line};
use crate::config::agent::{self, AgentName};
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
type Values = BTreeMap<String, String>;

/// One kind of values; flags and words name it in [`Completes::Values`](crate::base::cli::Completes).
pub(super) struct ValueKind {
    pub(super) name: &'static str,
    list: fn(&Context) -> Result<Values>,
}

pub(super) const AXE: &[ValueKind] =
    &[ValueKind { name: "agents", list: agents }, ValueKind { name: "models", list: models }];

pub(super) const MEMORY: &[ValueKind] = &[
    ValueKind { name: "notes", list: notes },
    ValueKind { name: "tags", list: tags },
    ValueKind { name: "tag-changes", list: tag_changes },
    ValueKind { name: "changes", list: changes },
    ValueKind { name: "harnesses", list: harnesses },
    ValueKind { name: "repositories", list: repositories },
];

/// Prints the values of a kind that begin so.
pub(super) fn print(kind: &ValueKind, beginning: &str, cx: &mut Context) -> Result<()> {
    for (value, known_by) in (kind.list)(cx)? {
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

/// What `of` makes of the notes that memory-list shows here, or of all.
fn of_notes(is_all: bool, cx: &Context, mut of: impl FnMut(&Meta)) -> Result<()> {
    let store = Store::of(None, cx)?;
    let here = if is_all { None } else { repository_here(cx) };
    let listed =
        store.service.list(Place::Topics, |meta| here.as_deref().is_none_or(|here| shown_in(meta, here)))?;
    listed.found.iter().for_each(|found| of(&found.view.meta));
    let _ = store.service.keep_up();
    Ok(())
}

fn notes(cx: &Context) -> Result<Values> {
    let mut all = Values::new();
    of_notes(false, cx, |meta| drop(all.insert(meta.id.to_string(), meta.title.clone())))?;
    Ok(all)
}

fn tags(cx: &Context) -> Result<Values> {
    counts(false, cx, |meta| meta.tags.iter().filter(|tag| is_tag(tag)).cloned().collect())
}

fn tag_changes(cx: &Context) -> Result<Values> {
    let signed = |(tag, count): (String, String)| {
        [format!("+{tag}"), format!("-{tag}")].map(|tag| (tag, count.clone()))
    };
    Ok(tags(cx)?.into_iter().flat_map(signed).collect())
}

fn repositories(cx: &Context) -> Result<Values> {
    counts(true, cx, |meta| meta.sources.iter().filter_map(|source| source.repo.clone()).collect())
}

/// In how many notes each is.
fn counts(is_all: bool, cx: &Context, of: impl Fn(&Meta) -> Vec<String>) -> Result<Values> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    of_notes(is_all, cx, |meta| {
        let mut there = of(meta);
        there.sort();
        there.dedup();
        there.into_iter().for_each(|one| *counts.entry(one).or_default() += 1);
    })?;
    Ok(counts.into_iter().map(|(one, count)| (one, counted(count, "note", "notes"))).collect())
}

fn changes(cx: &Context) -> Result<Values> {
    let (waiting, _) = Store::of(None, cx)?.service.notes().proposals()?;
    Ok(waiting.iter().map(|one| (one.id.to_string(), format!("{}: {}", one.op, one.title()))).collect())
}

fn harnesses(cx: &Context) -> Result<Values> {
    let own = Store::of(None, cx)?.config.harnesses.into_keys().map(|name| (name, String::new()));
    Ok(own.chain(HARNESSES.iter().map(|spec| (spec.name.to_owned(), spec.title.to_owned()))).collect())
}

fn agents(cx: &Context) -> Result<Values> {
    let load = |name: &str| agent::load(&AgentName::parse(name)?, &cx.env, &Reporter::silent());
    // A file that is broken has a name to edit it by.
    let described = |name: String| {
        let description = load(&name).map(|agent| agent.description).unwrap_or_default();
        (name, description)
    };
    Ok(agent::names(&cx.env)?.into_iter().map(described).collect())
}

/// Those that the configuration or an agent names.
fn models(cx: &Context) -> Result<Values> {
    let mut all = Values::new();
    for (name, agent) in agent::load_all(&cx.env, &Reporter::silent())? {
        for model in agent.fallback.into_iter().chain([agent.model]) {
            all.insert(model, format!("of the agent {name}"));
        }
    }
    let config = Global::load(&cx.env, &Reporter::silent())?;
    all.extend(config.rates.into_keys().map(|model| (model.to_string(), String::new())));
    all.extend(config.models.into_iter().map(|(short, model)| (short, model.to_string())));
    Ok(all)
}
