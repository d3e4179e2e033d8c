//! The managed section of AGENTS.md files: as many notes whole as there is room for, others as lines, cold ones as a number.
//!
//! Its bytes depend only on the notes, not on when or how often they were read, so a second run changes no file.
//! *gather* reads and selects the notes, *note*, *sanitize* and *render* turn them into text, *splice* puts the text
//! into the bytes of a file, *target* writes the file.

mod fences;
pub(crate) mod gather;
pub(crate) mod here;
mod note;
pub(crate) mod projects;
pub(crate) mod render;
mod sanitize;
pub(crate) mod splice;
mod target;

pub(crate) use crate::memory::section::gather::{Candidate, NoteCounts};
pub(crate) use crate::memory::section::target::Standing;

use crate::base::cli::Reporter;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::repository::Repository;
use crate::config::memory::{AgentsMd, MemoryConfig, Target};
use crate::memory::section::gather::{Limits, Selection, View, gather};
use crate::memory::section::projects::Due;
use crate::memory::section::target::{File, Placed};
use crate::store::entry::{BodyFacts, Meta};
use crate::store::persistence::{Note, warn_of};
use crate::store::place::Root;
use crate::store::projects::Projects;
use crate::store::proposal::Proposal;
use jiff::civil::Date;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A warning names at most this many notes.
const NAMED: usize = 5;

#[derive(Debug)]
pub(crate) struct Outcome {
    /// As in the configuration.
    pub(crate) path: PathBuf,
    pub(crate) repo: Option<String>,
    pub(crate) shown: NoteCounts,
    pub(crate) standing: Result<Standing>,
}

/// How much of the limit for hot notes one audience uses.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HotUse {
    pub(super) repo: Option<String>,
    /// All hot and pinned notes, and a person's own that are whole, at four bytes per token.
    pub(super) tokens: u64,
    /// `agentsMd.maxHotTokens`
    pub(super) most: u64,
    /// Titles of the notes that are listed as warm ones because the limit is reached.
    pub(super) crowded_out: Vec<String>,
}

/// Refreshes all targets: the configured ones, and the checkouts of [`projects`]. One that fails does not stop the others;
/// `Err` means that the store failed. Warns of notes that cannot be read, and of hot notes beyond the limit.
pub(crate) fn refresh(
    config: &MemoryConfig,
    root: &Root,
    today: Date,
    reporter: &Reporter,
) -> Result<Vec<Outcome>> {
    let _lock = lock(root);
    let due = match Due::of(root, today) {
        Ok(due) => due,
        Err(error) => {
            reporter.warn(&format!("no AGENTS.md of a repository was refreshed: {}", error.line()));
            Due::default()
        }
    };
    due.warnings.iter().for_each(|warning| reporter.warn(warning));
    let outcomes = each_target(config, root, &aims(config, &due), today, Some(reporter), true)?;
    let is_done =
        |path: &Path| outcomes.iter().any(|outcome| outcome.path == *path && outcome.standing.is_ok());
    if let Err(error) = due.save(is_done, root) {
        reporter.warn(&error.line());
    }
    Ok(outcomes)
}

/// The same after a change that is made already: what fails is only a warning.
pub(crate) fn refresh_after_change(config: &MemoryConfig, root: &Root, today: Date, reporter: &Reporter) {
    match refresh(config, root, today, reporter) {
        Ok(outcomes) => outcomes
            .into_iter()
            .filter_map(|outcome| outcome.standing.err())
            .for_each(|error| reporter.warn(&format!("not refreshed: {}", error.line()))),
        Err(error) => reporter.warn(&format!("no AGENTS.md was refreshed: {}", error.line())),
    }
}

/// Refreshes these targets and no others.
pub(crate) fn refresh_these(
    targets: &[Target],
    config: &MemoryConfig,
    root: &Root,
    today: Date,
    reporter: &Reporter,
) -> Result<Vec<Outcome>> {
    let _lock = lock(root);
    each_target(config, root, &named(targets), today, Some(reporter), true)
}

/// From now on [`refresh`] includes the AGENTS.md of this checkout.
pub(crate) fn record_project(root: &Root, repository: &Repository) -> Result<()> {
    let _lock = lock(root);
    projects::record(root, repository)
}

/// Reports which targets are stale or cannot be refreshed. Writes no file, and no warning.
pub(crate) fn check(config: &MemoryConfig, root: &Root, today: Date) -> Result<Vec<Outcome>> {
    each_target(config, root, &aims(config, &Due::of(root, today)?), today, None, false)
}

/// The same for these targets and no others.
pub(crate) fn check_these(
    targets: &[Target],
    config: &MemoryConfig,
    root: &Root,
    today: Date,
) -> Result<Vec<Outcome>> {
    each_target(config, root, &named(targets), today, None, false)
}

/// Is there anything to refresh?
pub(crate) fn has_targets(config: &MemoryConfig, root: &Root) -> bool {
    !config.agents_md.targets.is_empty()
        || Projects::load(root).map_or(true, |projects| !projects.projects.is_empty())
}

/// Whoever takes it last reads the notes last, so of several runs at once none leaves what was true before another's
/// change. `None` where it cannot be had: a store that cannot be written to has targets, too, and none is made for them.
fn lock(root: &Root) -> Option<fs_err::File> {
    let state = root.state();
    if !state.is_dir() {
        return None;
    }
    file::lock_for_change(&state.join("targets.lock"), true).ok().flatten()
}

/// A target that is to be refreshed.
pub(crate) struct Aim {
    target: Target,
    /// Where there is no section, one is added.
    may_add: bool,
}

fn named(targets: &[Target]) -> Vec<Aim> {
    targets.iter().map(|target| Aim { target: target.clone(), may_add: true }).collect()
}

/// The configured targets, then the checkouts whose file is none of them.
fn aims(config: &MemoryConfig, due: &Due) -> Vec<Aim> {
    let configured = &config.agents_md.targets;
    let mut aims = named(configured);
    let real = |target: &Target| File::of(&target.path).ok().map(|file| file.real);
    for (target, may_add) in due.targets() {
        let this = real(target);
        if this.is_none() || configured.iter().all(|other| real(other) != this) {
            aims.push(Aim { target: target.clone(), may_add });
        }
    }
    aims
}

/// What [`refresh`] would refresh, for a caller that only looks. Of a list that cannot be read, nothing.
pub(crate) fn all_aims(config: &MemoryConfig, root: &Root, today: Date) -> Vec<Aim> {
    aims(config, &Due::of(root, today).unwrap_or_default())
}

/// The section as it would be in a file: for a repository, or with the global notes.
pub(crate) fn text(
    config: &MemoryConfig,
    root: &Root,
    repo: Option<&str>,
    today: Date,
    reporter: &Reporter,
) -> Result<(String, NoteCounts)> {
    let (selections, broken) = gather(root, &[repo], limits(config), today)?;
    warn_of(&broken, reporter);
    let selection = selections.into_iter().next().unwrap_or_default();
    warn_of_room(&selection, repo, config, reporter);
    Ok((render::section(&selection), selection.counts()))
}

/// The state of the targets and of the limit for hot notes, for a caller that reads all notes anyway.
pub(crate) struct Inspection<'a> {
    config: &'a MemoryConfig,
    aims: &'a [Aim],
    /// The global one first, then each repository with a target.
    audiences: Vec<Option<&'a str>>,
    view: View,
    waiting: &'a [Proposal],
}

impl<'a> Inspection<'a> {
    pub(super) fn of(
        config: &'a MemoryConfig,
        aims: &'a [Aim],
        root: &Root,
        waiting: &'a [Proposal],
        today: Date,
    ) -> Inspection<'a> {
        let mut all = vec![None];
        all.extend(audiences(aims).into_iter().flatten().map(Some));
        let view = View::of(root, limits(config), today, waiting);
        Inspection { config, aims, audiences: all, view, waiting }
    }

    /// What to keep of a note; `None` if no audience sees it.
    pub(super) fn candidate(&self, meta: &Meta, body: BodyFacts, path: &Path) -> Option<Candidate> {
        // Without targets, only what hot notes and those before them take matters.
        if self.aims.is_empty() && !gather::is_before_others(meta, body) {
            return None;
        }
        gather::candidate(meta, body, path, &self.audiences, &self.view)
    }

    /// Writes nothing.
    pub(super) fn judge(&self, candidates: impl Iterator<Item = Candidate>) -> (Vec<Outcome>, Vec<HotUse>) {
        let candidates: Vec<Candidate> = candidates.collect();
        let mut selections = gather::selections(&candidates, self.audiences.len(), self.view.limits);
        for (audience, selection) in self.audiences.iter().zip(&mut selections) {
            selection.waiting = gather::waiting_for(*audience, self.waiting);
        }
        let outcomes = place(self.aims, &self.audiences, &selections, false);
        let hot_use = |(repo, selection): (&Option<&str>, Selection)| HotUse {
            repo: repo.map(str::to_owned),
            tokens: selection.hot_bytes.div_ceil(gather::BYTES_A_TOKEN),
            most: self.config.agents_md.max_hot_tokens,
            crowded_out: selection.crowded_out,
        };
        (outcomes, self.audiences.iter().zip(selections).map(hot_use).collect())
    }
}

/// The audiences of all targets, each once.
fn audiences(aims: &[Aim]) -> Vec<Option<&str>> {
    let mut audiences: Vec<Option<&str>> = Vec::new();
    for aim in aims {
        let repo = aim.target.repo.as_deref();
        if !audiences.contains(&repo) {
            audiences.push(repo);
        }
    }
    audiences
}

fn limits(config: &MemoryConfig) -> Limits {
    let AgentsMd { max_hot_tokens, max_warm_tokens, max_warm, .. } = config.agents_md;
    Limits::of(max_hot_tokens, max_warm_tokens).with_warm_notes(max_warm)
}

fn each_target(
    config: &MemoryConfig,
    root: &Root,
    aims: &[Aim],
    today: Date,
    reporter: Option<&Reporter>,
    is_to_write: bool,
) -> Result<Vec<Outcome>> {
    // Without targets, the notes are not even read.
    if aims.is_empty() {
        return Ok(Vec::new());
    }
    let audiences = audiences(aims);
    let (selections, broken) = gather(root, &audiences, limits(config), today)?;
    if let Some(reporter) = reporter {
        for (repo, selection) in audiences.iter().zip(&selections) {
            warn_of_room(selection, *repo, config, reporter);
        }
        warn_of(&broken, reporter);
    }
    Ok(place(aims, &audiences, &selections, is_to_write))
}

fn place(
    aims: &[Aim],
    audiences: &[Option<&str>],
    selections: &[Selection],
    is_to_write: bool,
) -> Vec<Outcome> {
    let sections: Vec<_> =
        selections.iter().map(|selection| (render::section(selection), selection.counts())).collect();
    let mut seen: Vec<(PathBuf, &Target)> = Vec::new();
    let mut outcomes = Vec::with_capacity(aims.len());
    for Aim { target, may_add } in aims {
        let audience = audiences.iter().position(|repo| *repo == target.repo.as_deref());
        let (section, shown) = audience.and_then(|index| sections.get(index)).cloned().unwrap_or_default();
        let file = File::of(&target.path);
        let standing = file.and_then(|file| {
            only_one_section(&file, target, &seen)?;
            seen.push((file.real.clone(), target));
            let is_empty = shown == NoteCounts::default();
            let placed = Placed { text: &section, is_empty, may_add: *may_add };
            if is_to_write { file.refresh(&placed) } else { file.check(&placed) }
        });
        outcomes.push(Outcome { path: target.path.clone(), repo: target.repo.clone(), shown, standing });
    }
    outcomes
}

/// A file with two targets for different notes would change with every run.
fn only_one_section(file: &File, target: &Target, seen: &[(PathBuf, &Target)]) -> Result<()> {
    match seen.iter().find(|(real, other)| *real == file.real && other.repo != target.repo) {
        Some((_, other)) => Err(Error::io(format!(
            "\"{}\" is the same file as the target \"{}\", which gets other notes",
            target.path.display(),
            other.path.display()
        ))
        .hint("take one of them out of agentsMd.targets")),
        None => Ok(()),
    }
}

fn warn_of_room(selection: &Selection, repo: Option<&str>, config: &MemoryConfig, reporter: &Reporter) {
    let crowded_out = &selection.crowded_out;
    let most = config.agents_md.max_hot_tokens;
    // A limit of 0 is deliberate: no note is to be whole.
    if crowded_out.is_empty() || most == 0 {
        return;
    }
    let mut named = crowded_out.iter().take(NAMED).map(|title| format!("\"{title}\"")).collect::<Vec<_>>();
    if crowded_out.len() > NAMED {
        named.push(format!("{} more", crowded_out.len() - NAMED));
    }
    let whose = repo.map_or(String::new(), |repo| format!(" of {repo}"));
    reporter.warn(&format!(
        "hot notes{whose} and your own take {} tokens, and agentsMd.maxHotTokens is {most}; shown as links: {}",
        selection.hot_bytes.div_ceil(gather::BYTES_A_TOKEN),
        named.join(", ")
    ));
}

/// The section of just these notes.
pub(crate) fn of_notes(config: &MemoryConfig, notes: &[Note], reporter: &Reporter) -> (String, NoteCounts) {
    // Those who ask for a note by its id get it, expired or not.
    let view = View {
        limits: limits(config),
        today: Date::MIN,
        with_changes: BTreeSet::new(),
        uses: Default::default(),
    };
    let candidates: Vec<_> = notes.iter().map(|note| gather::chosen(note, &view)).collect();
    let selection = gather::selections(&candidates, 1, limits(config)).into_iter().next().unwrap_or_default();
    warn_of_room(&selection, None, config, reporter);
    (render::section(&selection), selection.counts())
}
