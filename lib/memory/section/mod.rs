//! The managed section of AGENTS.md files (US-007): hot notes whole, warm ones as links, cold ones as a number.
//!
//! Its bytes depend on the notes alone, never on when or how often they were read: who runs this twice finds
//! the files untouched. *gather* reads the notes and chooses, *note*, *sanitize* and *render* make text of them,
//! *splice* puts that into a file's bytes, *target* writes the file.

mod fences;
pub(crate) mod gather;
pub(crate) mod note;
pub(crate) mod render;
mod sanitize;
pub(crate) mod splice;
mod target;

pub(crate) use crate::memory::section::gather::{Share, Shown};
pub(crate) use crate::memory::section::target::Standing;

use crate::base::cli::Reporter;
use crate::base::error::{Error, Result};
use crate::config::memory::{MemoryConfig, Target};
use crate::memory::section::gather::{Limits, Shelf, gather};
use crate::memory::section::target::{File, Placed};
use crate::store::entry::Tier;
use crate::store::persistence::{Note, warn_of};
use crate::store::place::Root;
use std::path::PathBuf;

/// So many notes that did not fit are named.
const NAMED: usize = 5;

#[derive(Debug)]
pub(crate) struct Outcome {
    /// As configured.
    pub(crate) path: PathBuf,
    pub(crate) repo: Option<String>,
    pub(crate) shown: Shown,
    pub(crate) standing: Result<Standing>,
}

/// What the hot notes of everybody, or of a repository, take of the room for them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HotUse {
    pub(crate) repo: Option<String>,
    /// What all would take that are hot or pinned, at four bytes a token.
    pub(crate) tokens: u64,
    /// `agentsMd.maxHotTokens`
    pub(crate) most: u64,
    /// Titles of those that are shown as warm ones for it.
    pub(crate) crowded_out: Vec<String>,
}

/// Refreshes all configured targets. One that fails does not stop the others; `Err` is for the store itself.
/// Warns of notes that cannot be read, and of hot ones that there is no room for.
pub(crate) fn refresh(config: &MemoryConfig, root: &Root, reporter: &Reporter) -> Result<Vec<Outcome>> {
    each_target(config, root, Some(reporter), true)
}

/// The same, touching nothing and saying nothing: which targets are stale, or cannot be refreshed and why.
pub(crate) fn check(config: &MemoryConfig, root: &Root) -> Result<Vec<Outcome>> {
    each_target(config, root, None, false)
}

/// The section as it would stand in a file: of a repository's notes, or of those for everybody.
pub(crate) fn text(
    config: &MemoryConfig,
    root: &Root,
    repo: Option<&str>,
    reporter: &Reporter,
) -> Result<(String, Shown)> {
    let (shelves, broken) = gather(root, &[repo], limits(config))?;
    warn_of(&broken, reporter);
    let shelf = shelves.into_iter().next().unwrap_or_default();
    warn_of_room(&shelf, repo, config, reporter);
    Ok((render::section(&shelf), shelf.shown()))
}

/// The look of somebody who reads all notes anyway: how the targets stand, and what the hot notes take.
pub(crate) struct Glance<'a> {
    config: &'a MemoryConfig,
    /// Everybody first, and each repository that a target is for.
    audiences: Vec<Option<&'a str>>,
}

impl<'a> Glance<'a> {
    pub(crate) fn of(config: &'a MemoryConfig) -> Glance<'a> {
        let mut all = vec![None];
        all.extend(audiences(config).into_iter().flatten().map(Some));
        Glance { config, audiences: all }
    }

    /// What is to be kept of a note; `None` for one that nobody is shown.
    pub(crate) fn share(&self, note: &Note) -> Option<Share> {
        // Without a target only what hot notes take counts.
        let meta = note.entry.meta();
        if self.config.agents_md.targets.is_empty() && !meta.pinned && meta.tier != Tier::Hot {
            return None;
        }
        gather::share(note, &self.audiences, limits(self.config))
    }

    /// Touches nothing.
    pub(crate) fn judge(&self, shares: impl Iterator<Item = Share>) -> (Vec<Outcome>, Vec<HotUse>) {
        let shelves = gather::shelves(shares, self.audiences.len(), limits(self.config));
        let outcomes = place(self.config, &self.audiences, &shelves, false);
        let hot_use = |(repo, shelf): (&Option<&str>, Shelf)| HotUse {
            repo: repo.map(str::to_owned),
            tokens: shelf.hot_bytes.div_ceil(gather::BYTES_A_TOKEN),
            most: self.config.agents_md.max_hot_tokens,
            crowded_out: shelf.crowded_out,
        };
        (outcomes, self.audiences.iter().zip(shelves).map(hot_use).collect())
    }
}

/// Whom the targets are for.
fn audiences(config: &MemoryConfig) -> Vec<Option<&str>> {
    let mut audiences: Vec<Option<&str>> = Vec::new();
    for target in &config.agents_md.targets {
        let repo = target.repo.as_deref();
        if !audiences.contains(&repo) {
            audiences.push(repo);
        }
    }
    audiences
}

fn limits(config: &MemoryConfig) -> Limits {
    Limits::of(config.agents_md.max_hot_tokens, config.agents_md.max_warm)
}

fn each_target(
    config: &MemoryConfig,
    root: &Root,
    reporter: Option<&Reporter>,
    is_to_write: bool,
) -> Result<Vec<Outcome>> {
    let targets = &config.agents_md.targets;
    // Without a target not even the notes are read.
    if targets.is_empty() {
        return Ok(Vec::new());
    }
    let audiences = audiences(config);
    let (shelves, broken) = gather(root, &audiences, limits(config))?;
    if let Some(notes) = reporter {
        for (repo, shelf) in audiences.iter().zip(&shelves) {
            warn_of_room(shelf, *repo, config, notes);
        }
        warn_of(&broken, notes);
    }
    Ok(place(config, &audiences, &shelves, is_to_write))
}

fn place(
    config: &MemoryConfig,
    audiences: &[Option<&str>],
    shelves: &[Shelf],
    is_to_write: bool,
) -> Vec<Outcome> {
    let targets = &config.agents_md.targets;
    let sections: Vec<_> = shelves.iter().map(|shelf| (render::section(shelf), shelf.shown())).collect();
    let mut seen: Vec<(PathBuf, &Target)> = Vec::new();
    let mut outcomes = Vec::with_capacity(targets.len());
    for target in targets {
        let audience = audiences.iter().position(|repo| *repo == target.repo.as_deref());
        let (section, shown) = audience.and_then(|index| sections.get(index)).cloned().unwrap_or_default();
        let file = File::of(&target.path, config.storage.foreign);
        let standing = file.and_then(|file| {
            only_one_section(&file, target, &seen)?;
            seen.push((file.real.clone(), target));
            let placed = Placed { text: &section, is_empty: shown == Shown::default() };
            if is_to_write { file.refresh(&placed) } else { file.check(&placed) }
        });
        outcomes.push(Outcome { path: target.path.clone(), repo: target.repo.clone(), shown, standing });
    }
    outcomes
}

/// A file that two targets lead to, for different notes, would change with every run.
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

fn warn_of_room(shelf: &Shelf, repo: Option<&str>, config: &MemoryConfig, reporter: &Reporter) {
    let crowded_out = &shelf.crowded_out;
    let most = config.agents_md.max_hot_tokens;
    // Who leaves no room at all wants none shown whole.
    if crowded_out.is_empty() || most == 0 {
        return;
    }
    let mut named = crowded_out.iter().take(NAMED).map(|title| format!("\"{title}\"")).collect::<Vec<_>>();
    if crowded_out.len() > NAMED {
        named.push(format!("{} more", crowded_out.len() - NAMED));
    }
    let whose = repo.map_or(String::new(), |repo| format!(" of {repo}"));
    reporter.warn(&format!(
        "hot notes{whose} take {} tokens, and agentsMd.maxHotTokens is {most}; shown as links: {}",
        shelf.hot_bytes.div_ceil(gather::BYTES_A_TOKEN),
        named.join(", ")
    ));
}
