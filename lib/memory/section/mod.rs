//! The managed section of AGENTS.md files: as many notes whole as there is room for, others as lines, cold ones as a number.
//!
//! Its bytes depend only on the notes, not on when or how often they were read, so a second run changes no file.
//! *gather* reads and selects the notes, *note*, *sanitize* and *render* turn them into text, *splice* puts the text
//! into the bytes of a file, *target* writes the file.

mod gather;
mod here;
pub mod note;
pub mod projects;
pub mod render;
mod sanitize;
pub mod splice;
mod target;

pub use crate::memory::section::gather::{Candidate, NoteCounts, Pool, Section, SectionLimits};
pub use crate::memory::section::here::Had;
pub use crate::memory::section::target::Standing;

use crate::base::cli::Reporter;
use crate::base::error::{Error, Result};
use crate::base::repository::{self, Repository};
use crate::base::text::{BYTES_PER_TOKEN, first_few};
use crate::base::{file, reach};
use crate::config::memory::{MemoryConfig, Target};
use crate::memory::checkouts::NewCheckout;
use crate::memory::search::Index;
use crate::memory::section::projects::Due;
use crate::memory::section::target::File;
use crate::memory::service::NoteService;
use crate::memory::shared::{DIR, SharedNotes};
use crate::store::persistence::{Note, Persistence, warn_of};
use crate::store::place::Root;
use crate::store::projects::Projects;
use crate::store::proposal::Proposal;
use crate::store::topics::Topics;
use jiff::civil::Date;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A warning names at most this many notes.
const NAMED: usize = 5;

#[derive(Debug)]
pub struct Outcome {
    /// As in the configuration.
    pub path: PathBuf,
    pub repo: Option<String>,
    pub shown: NoteCounts,
    pub standing: Result<Standing>,
}

/// An audience whose hot notes do not all fit.
#[derive(Debug)]
pub struct Crowd {
    /// ` of REPO`, or nothing.
    pub whose: String,
    /// All hot and pinned notes, and a person's own that are whole, at four bytes per token.
    pub tokens: u64,
    /// `agentsMd.maxHotTokens`
    pub most: u64,
    /// Titles of the notes that are listed as warm ones because the limit is reached.
    crowded_out: Vec<String>,
}

impl Crowd {
    fn of(repo: Option<&str>, section: &Section, config: &MemoryConfig) -> Option<Crowd> {
        let most = config.agents_md.max_hot_tokens;
        let crowded_out = section.crowded_out.clone();
        let whose = repo.map_or(String::new(), |repo| format!(" of {repo}"));
        let tokens = section.hot_bytes.div_ceil(BYTES_PER_TOKEN);
        // A limit of 0 is deliberate: no note is to be whole.
        (!crowded_out.is_empty() && most > 0).then_some(Crowd { whose, tokens, most, crowded_out })
    }

    /// The first few titles.
    pub fn titles(&self, most: usize) -> String {
        first_few(self.crowded_out.iter().map(|title| format!("\"{title}\"")), most)
    }

    fn warn(&self, reporter: &Reporter) {
        let Crowd { whose, tokens, most, .. } = self;
        reporter.warn(&format!(
            "hot notes{whose} and your own take {tokens} tokens, and agentsMd.maxHotTokens is {most}; shown as links: {}",
            self.titles(NAMED)
        ));
    }
}

/// Warns of what a section leaves out: notes that cannot be read, and hot notes beyond the limit.
pub fn warn(section: &Section, repo: Option<&str>, config: &MemoryConfig, reporter: &Reporter) {
    warn_of(&section.broken, reporter);
    Crowd::of(repo, section, config).iter().for_each(|crowd| crowd.warn(reporter));
}

/// Which targets are refreshed.
#[derive(Clone, Copy)]
pub enum Which<'a> {
    These(&'a [Target]),
    /// The configured ones, and the checkouts of [`projects`].
    All,
    /// The configured ones, and the checkouts of these repositories, whose notes alone have changed.
    Of(&'a BTreeSet<&'a str>),
}

/// Refreshes targets. One that fails does not stop the others; `Err` means that the store failed. Warns of notes that cannot be
/// read, and of hot notes beyond the limit.
///
/// Without a reporter it only looks which are stale: it writes no file, and no warning.
pub fn refresh(
    which: Which,
    config: &MemoryConfig,
    root: &Root,
    today: Date,
    reporter: Option<&Reporter>,
) -> Result<Vec<Outcome>> {
    let _lock = reporter.and_then(|_| lock(root));
    let due = match which {
        Which::These(_) => Ok(Due::default()),
        Which::All => Due::of(None, root, today),
        Which::Of(repos) => Due::of(Some(repos), root, today),
    };
    let due = match (due, reporter) {
        (Err(error), Some(reporter)) => {
            reporter.warn(&format!("no AGENTS.md of a repository was refreshed: {}", error.line()));
            Due::default()
        }
        (due, _) => due?,
    };
    reporter.iter().for_each(|reporter| due.warnings.iter().for_each(|warning| reporter.warn(warning)));
    let aims = if let Which::These(these) = which { named(these) } else { aims(config, &due) };
    let mut pool = Pool::default();
    // Without targets, the notes are not even read.
    if !aims.is_empty() {
        pool = Pool::read(&Index::of(Topics::at(root)), audiences(&aims), today)?;
        look_at_code(&mut pool, &aims, root);
    }
    let (outcomes, crowds) = place(&aims, &pool, config, reporter.is_some());
    let Some(reporter) = reporter else { return Ok(outcomes) };
    crowds.iter().for_each(|crowd| crowd.warn(reporter));
    warn_of(&pool.left_out(), reporter);
    let is_done =
        |path: &Path| outcomes.iter().any(|outcome| outcome.path == *path && outcome.standing.is_ok());
    if let Err(error) = due.save(is_done, root) {
        reporter.warn(&error.line());
    }
    Ok(outcomes)
}

/// The same after a change that is made already: what fails is only a warning.
pub fn refresh_after_change(
    which: Which,
    config: &MemoryConfig,
    root: &Root,
    today: Date,
    reporter: &Reporter,
) {
    match refresh(which, config, root, today, Some(reporter)) {
        Ok(outcomes) => outcomes
            .into_iter()
            .filter_map(|outcome| outcome.standing.err())
            .for_each(|error| reporter.warn(&format!("not refreshed: {}", error.line()))),
        Err(error) => reporter.warn(&format!("no AGENTS.md was refreshed: {}", error.line())),
    }
}

/// From now on [`refresh`] includes the AGENTS.md of this checkout.
pub fn record_project(root: &Root, repository: &Repository) -> Result<()> {
    let _lock = lock(root);
    projects::record(root, repository)
}

/// The person has been told of these checkouts.
pub fn record_told(root: &Root, checkouts: Vec<NewCheckout>) -> Result<()> {
    root.make()?;
    let _lock = lock(root);
    let mut projects = Projects::load(root)?;
    for NewCheckout { repo, place, .. } in checkouts {
        projects.told.entry(repo).or_default().insert(place);
    }
    projects.save(root)
}

/// Is there anything to refresh?
pub fn has_targets(config: &MemoryConfig, root: &Root) -> bool {
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
pub struct Aim {
    pub target: Target,
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
    let known: Vec<PathBuf> = configured.iter().filter_map(real).collect();
    for (target, may_add) in due.targets() {
        if known.is_empty() || real(target).is_none_or(|this| !known.contains(&this)) {
            aims.push(Aim { target: target.clone(), may_add });
        }
    }
    aims
}

/// What [`refresh`] would refresh, for a caller that only looks. Of a list that cannot be read, nothing.
pub fn all_aims(config: &MemoryConfig, root: &Root, today: Date) -> Vec<Aim> {
    aims(config, &Due::of(None, root, today).unwrap_or_default())
}

impl<P: Persistence + Sync> NoteService<P> {
    /// The section of AGENTS.md for these audiences: a repository, or for `None` everybody, which comes last. With `bytes`
    /// its text has about so many at most.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn section(
        &self,
        audiences: &[Option<&str>],
        room: SectionLimits,
        bytes: Option<usize>,
    ) -> Result<Section> {
        self.section_with(audiences, room, bytes, Vec::new())
    }

    /// The same with notes that are files of the repository.
    pub(crate) fn section_with(
        &self,
        audiences: &[Option<&str>],
        room: SectionLimits,
        bytes: Option<usize>,
        shared: Vec<Note>,
    ) -> Result<Section> {
        let audiences = audiences.iter().map(|repo| repo.map(str::to_owned)).collect();
        let mut pool = Pool::read(&self.index, audiences, self.today)?;
        pool.share(shared);
        pool.look_at_code(self.notes().root(), &self.here());
        Ok(pool.section(room, &Had::default(), bytes))
    }

    /// What a session in each of these repositories should know, or for `None` one outside of all. The notes are read once.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn sections(&self, repos: &[Option<&str>], room: SectionLimits) -> Result<Vec<Section>> {
        let named = repos.iter().flatten().map(|repo| Some((*repo).to_owned()));
        let audiences: Vec<Option<String>> = named.chain([None]).collect();
        let everybody = audiences.len() - 1;
        let pool = Pool::read(&self.index, audiences, self.today)?;
        let mut named = 0..everybody;
        let of = |repo: &Option<&str>| {
            let its: Vec<usize> = repo.and_then(|_| named.next()).into_iter().chain([everybody]).collect();
            pool.section_of(&its, room, &Had::default(), None)
        };
        Ok(repos.iter().map(of).collect())
    }
}

/// Refreshes AGENTS.md at the top of a checkout from the notes among its files alone, or looks what that would do. What it gets
/// depends on nothing else, so that everybody who runs it gets the same.
pub fn refresh_shared(
    here: &Repository,
    shared: SharedNotes,
    today: Date,
    is_to_write: bool,
) -> Result<Outcome> {
    let path = projects::agents_md(&here.top)?;
    let pool = Pool::read(&Index::of(shared), vec![Some(here.name.clone())], today)?;
    let mut section = Section { is_for_all: true, ..pool.select(0, SectionLimits::default()) };
    section.dir = section.dir.map(|_| DIR.into());
    let (file, shown) = (File::of(&path)?, section.counts());
    let may_add = shown != NoteCounts::default();
    let standing = file.refresh(&section.text(), may_add, is_to_write);
    Ok(Outcome { path, repo: Some(here.name.clone()), shown, standing })
}

/// Does this file have such a section?
pub fn is_for_all(path: &Path) -> bool {
    let head = format!("{}\n\n{}\n", splice::HEADING, render::FOR_ALL);
    reach::read(path, target::CAP).is_ok_and(|text| String::from_utf8_lossy(&text).contains(&head))
}

/// The section of just these notes.
pub fn of_notes(notes: &[Note], room: SectionLimits) -> Section {
    // Those who ask for a note by its id get it, expired or not.
    let mut pool = Pool::of(None, vec![None], Date::MIN, Vec::new());
    let chosen: Vec<Candidate> = notes.iter().map(|note| pool.chosen(note.clone())).collect();
    pool.fill(chosen.into_iter());
    pool.select(0, room)
}

/// A pool for everybody and the targets' repositories, for a caller that reads all notes anyway.
pub fn pool_of(aims: &[Aim], root: &Root, waiting: &[Proposal], today: Date) -> Pool {
    let repos = audiences(aims).into_iter().filter(Option::is_some);
    Pool::of(Some(root), [None].into_iter().chain(repos).collect(), today, waiting.to_vec())
}

/// Marks the notes in a pool whose code has changed in the checkouts that the targets lie in.
pub fn look_at_code(pool: &mut Pool, aims: &[Aim], root: &Root) {
    let checkout = |target: &Target| {
        let repo = target.repo.as_deref()?;
        repository::of(target.path.parent()?).filter(|found| found.name == repo)
    };
    let here: Vec<Repository> = aims.iter().filter_map(|aim| checkout(&aim.target)).collect();
    pool.look_at_code(Some(root), &here);
}

/// The audiences of all targets, each once.
fn audiences(aims: &[Aim]) -> Vec<Option<String>> {
    let mut seen = BTreeSet::new();
    let repos = aims.iter().map(|aim| &aim.target.repo);
    repos.filter(|repo| seen.insert(*repo)).cloned().collect()
}

/// Whether the file can have a section, whatever its text.
///
/// # Errors
/// It cannot be read, or its markers are broken.
pub fn look_at(path: &Path) -> Result<Standing> {
    File::of(path)?.check("", false)
}

/// Puts the sections of a pool into the targets, or looks what that would do; and tells for whom not all hot notes fit.
pub fn place(
    aims: &[Aim],
    pool: &Pool,
    config: &MemoryConfig,
    is_to_write: bool,
) -> (Vec<Outcome>, Vec<Crowd>) {
    let (mut sections, mut crowds) = (BTreeMap::new(), Vec::new());
    for (audience, repo) in pool.audiences.iter().enumerate() {
        let section = pool.select(audience, SectionLimits::of(&config.agents_md));
        sections.insert(repo, (section.text(), section.counts()));
        crowds.extend(Crowd::of(repo.as_deref(), &section, config));
    }
    let mut seen: BTreeMap<PathBuf, &Target> = BTreeMap::new();
    let mut outcomes = Vec::with_capacity(aims.len());
    for Aim { target, may_add } in aims {
        let section = sections.get(&target.repo);
        let (text, shown) = section.map_or(("", NoteCounts::default()), |(text, shown)| (text, *shown));
        let standing = File::of(&target.path).and_then(|file| {
            let other = *seen.entry(file.real.clone()).or_insert(target);
            only_one_section(target, other)?;
            // Without notes, no file and no section is made.
            let may_add = *may_add && shown != NoteCounts::default();
            file.refresh(text, may_add, is_to_write)
        });
        outcomes.push(Outcome { path: target.path.clone(), repo: target.repo.clone(), shown, standing });
    }
    (outcomes, crowds)
}

/// A file with two targets for different notes would change with every run.
fn only_one_section(target: &Target, other: &Target) -> Result<()> {
    if other.repo == target.repo {
        return Ok(());
    }
    Err(Error::io(format!(
        "\"{}\" is the same file as the target \"{}\", which gets other notes",
        target.path.display(),
        other.path.display()
    ))
    .hint("take one of them out of agentsMd.targets"))
}
