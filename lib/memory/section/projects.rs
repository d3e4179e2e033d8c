//! The checkouts in which a person ran `memory-agents-md --project`: their AGENTS.md is refreshed from then on.
//!
//! Markers in a file are not consent: they may have come with a clone. So the list is kept on this machine. A checkout leaves it when the person removes the section from its AGENTS.md, or when it has been gone
//! for so long that it is not on a disk which is only unplugged.

use crate::base::error::{Error, Result};
use crate::base::reach;
use crate::base::repository::{self, Repository, includes};
use crate::config::memory::{Target, lies_in};
use crate::memory::section::target::File;
use crate::store::place::Root;
use crate::store::projects::{Project, Projects};
use jiff::civil::Date;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// After how many days a missing checkout leaves the list.
pub const FORGOTTEN_AFTER_DAYS: i32 = 30;

/// What has become of a checkout.
#[derive(Debug)]
pub enum ProjectState {
    /// It is refreshed.
    Here(PathBuf),
    /// Its file is no longer inside it.
    Refused(Error),
    /// It is not there, or cannot be seen, as on a disk that is not mounted.
    Missing,
    /// Its directory holds another repository now.
    Other(String),
    /// Another branch is checked out, whose file has no section.
    OnOtherBranch,
    /// The person removed the section.
    Removed,
}

pub fn state(project: &Project) -> ProjectState {
    let this = project.clone();
    // Once for all that is asked there.
    reach::within(&project.top, move |top| state_at(top, &this)).unwrap_or(ProjectState::Missing)
}

fn state_at(top: &Path, project: &Project) -> ProjectState {
    // In a directory that is not a checkout any more, the repository around it is another.
    let Some(here) = repository::place_of(top).filter(|here| here.top == top) else {
        return ProjectState::Missing;
    };
    if here.name != project.repo {
        return ProjectState::Other(here.name);
    }
    let path = match agents_md(top) {
        Ok(path) => path,
        Err(error) => return ProjectState::Refused(error),
    };
    // A file that cannot be read, or with broken markers, is reported when it is refreshed.
    let is_without = File::of(&path).and_then(|file| file.has_section()).is_ok_and(|has| !has);
    match project.has_section && is_without {
        false => ProjectState::Here(path),
        true if repository::head(top).unwrap_or_default() == project.head => ProjectState::Removed,
        true => ProjectState::OnOtherBranch,
    }
}

/// The file of a checkout. It may be a stranger's: a link in it must not redirect the section to another file.
pub fn agents_md(top: &Path) -> Result<PathBuf> {
    let path = top.join("AGENTS.md");
    match lies_in(top, &path) {
        true => Ok(path),
        false => Err(Error::refused(format!("\"{}\" is a link out of the repository", path.display()))
            .hint("if you want that, name its target with --target and --repo .")),
    }
}

/// From now on this checkout is refreshed with the others.
pub(super) fn record(root: &Root, repository: &Repository) -> Result<()> {
    let mut projects = Projects::load(root)?;
    let (top, repo, head) = (repository.top.clone(), repository.name.clone(), String::new());
    let mut project = Project { top, repo, head, has_section: false, missing_since: None };
    refreshed(&mut project)?;
    if projects.projects.contains(&project) {
        return Ok(());
    }
    root.make()?;
    projects.projects.retain(|other| other.top != project.top);
    projects.projects.push(project);
    projects.projects.sort_by(|a, b| a.top.cmp(&b.top));
    projects.save(root)
}

/// Notes how the file was left.
fn refreshed(project: &mut Project) -> Result<()> {
    // Where that cannot be seen, a file that the person removes later would be made anew.
    project.has_section = File::of(&agents_md(&project.top)?)?.has_section()?;
    // Empty if it cannot be read.
    project.head = repository::head(&project.top).unwrap_or_default();
    project.missing_since = None;
    Ok(())
}

/// The checkouts to refresh.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// Those that stay on the list, and the targets of those that are refreshed.
    projects: Vec<(Project, Option<Target>)>,
    /// What a person should know: which ones left the list, or cannot be refreshed, and why.
    pub(super) warnings: Vec<String>,
    loaded: Projects,
}

impl Due {
    /// `only`: those of other repositories, and not below these folders, are not looked at.
    pub(super) fn of(only: Option<&BTreeSet<&str>>, root: &Root, today: Date) -> Result<Due> {
        let loaded = Projects::load(root)?;
        let mut due = Due { loaded: loaded.clone(), ..Due::default() };
        for mut project in loaded.projects {
            if only.is_some_and(|only| !only.iter().any(|repo| includes(repo, &project.repo))) {
                due.projects.push((project, None));
                continue;
            }
            let top = project.top.display().to_string();
            let mut target = None;
            match state(&project) {
                ProjectState::Here(path) => target = Some(Target { path, repo: Some(project.repo.clone()) }),
                ProjectState::Refused(error) => due.warnings.push(format!("not refreshed: {}", error.line())),
                ProjectState::Other(_) | ProjectState::OnOtherBranch => project.missing_since = None,
                ProjectState::Missing => {
                    let since = *project.missing_since.get_or_insert(today);
                    let days = since.until(today).map_or(0, |span| span.get_days());
                    if days >= FORGOTTEN_AFTER_DAYS {
                        due.warnings.push(format!(
                            "\"{top}\" is gone since {since}, so its AGENTS.md is no longer refreshed"
                        ));
                        continue;
                    }
                }
                ProjectState::Removed => {
                    due.warnings.push(format!(
                        "\"{top}/AGENTS.md\" has no section any more, so it is no longer refreshed; to have it back, \
                         run there: memory-agents-md --project"
                    ));
                    continue;
                }
            }
            due.projects.push((project, target));
        }
        Ok(due)
    }

    /// Each target, and whether its file may get a section that it does not have.
    pub(super) fn targets(&self) -> impl Iterator<Item = (&Target, bool)> {
        self.projects.iter().filter_map(|(project, target)| Some((target.as_ref()?, !project.has_section)))
    }

    /// Notes how the files were left whose targets are `done`, and writes the list if it differs.
    pub(super) fn save(self, done: impl Fn(&Path) -> bool, root: &Root) -> Result<()> {
        let projects = self.projects.into_iter().map(|(mut project, target)| {
            // What cannot be seen stays as it was.
            let _ = target.filter(|target| done(&target.path)).map(|_| refreshed(&mut project));
            project
        });
        let projects = Projects { projects: projects.collect(), ..self.loaded.clone() };
        if projects == self.loaded { Ok(()) } else { projects.save(root) }
    }
}
