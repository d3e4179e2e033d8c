//! The files that a program puts in front of its model by itself, and what they say in a session.
//!
//! All of it was seen in the requests of the real programs, see `.ci/real/arrangements.py`.

use crate::base::env::Env;
use crate::base::text::border;
use crate::base::text::fences::{Fence, fence};
use crate::base::{file, reach, repository};
use crate::harness::recalled::{END, START};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes.
const CAP: u64 = 8 << 20;
/// So many imports lead from a file to the next one, at most.
const DEPTH: usize = 5;
/// So many files are read, at most.
const FILES: usize = 200;

/// Which files a program reads as instructions in every session.
pub struct ContextFiles {
    /// The user's, below its home (`~/`: below the user's, `../`: beside it): those of the first list that has any. The very
    /// first one is where a section goes.
    pub own: &'static [&'static [&'static str]],
    /// In a session's directory and those above it: those of the first list that has any, in whatever directory.
    pub project: &'static [&'static [&'static str]],
    /// Where a directory has this one, it is read instead of the others there.
    pub instead: Option<&'static str>,
    pub above: Above,
    pub imports: Imports,
    /// Its settings may name other files.
    pub named: Option<NamedFiles>,
    /// It cuts the project's off behind so many bytes in all, from the top of the repository on.
    pub limit: Option<Limit>,
}

/// A number of bytes that a key of its settings, in TOML below its home, sets.
pub struct Limit {
    pub file: &'static str,
    pub key: &'static str,
    pub usual: usize,
}

impl Limit {
    fn of(&self, home: Option<&Path>) -> Option<usize> {
        let bytes = reach::read(&home?.join(self.file), CAP).ok()?;
        let settings: toml::Table = toml::from_str(std::str::from_utf8(&bytes).ok()?).ok()?;
        usize::try_from(settings.get(self.key)?.as_integer()?).ok()
    }
}

/// Keeps so many bytes of the texts, the last one first. A section that is cut ends there, so that what stands before the cut is
/// known.
fn cut(texts: &mut [String], mut left: usize) {
    for text in texts.iter_mut().rev() {
        if text.len() > left {
            text.truncate(border(text, left));
            if text.contains(START) && !text.contains(END) {
                *text = format!("{}\n{END}\n", &text[..text.rfind('\n').unwrap_or_default()]);
            }
        }
        left = left.saturating_sub(text.len());
    }
}

/// Up to where it looks for them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Above {
    /// The root of the file system. In a worktree that lies in another one, without those of that one.
    Everything,
    /// The top of the repository; without one, no directory above.
    Repository,
    /// The top of the repository; without one, the root of the file system.
    RepositoryIfAny,
    /// The directory that the repository is in.
    BesideRepository,
}

/// What it does with `@path` in them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Imports {
    Nothing,
    /// Reads the file if it is below the session's directory, or if a file of the user's names it.
    InDirectory,
    /// Reads the file if it is in the repository, or below the home of the file of the user's that names it.
    InRepository,
}

/// The key `context.fileName` of these settings: a name or several, instead of its own.
pub struct NamedFiles {
    /// Below its home.
    pub own: &'static str,
    /// In a session's directory. They win.
    pub project: Option<&'static str>,
    /// Its own are read as well.
    pub adds: bool,
}

impl ContextFiles {
    /// Each file as the usual program has it.
    pub(super) const AGENTS: ContextFiles = ContextFiles {
        own: &[&["AGENTS.md"]],
        project: &[&["AGENTS.md"]],
        instead: None,
        above: Above::Repository,
        imports: Imports::Nothing,
        named: None,
        limit: None,
    };

    /// Is this a file of the user's that every session is given?
    pub fn is_own(&self, path: &Path, home: &Path, env: &Env) -> bool {
        let found = ContextTexts { home: env.home().map(Path::to_path_buf), ..ContextTexts::default() };
        let real = |path: &Path| reach::real(path).unwrap_or_else(|| path.to_path_buf());
        let path = real(path);
        self.own.iter().copied().flatten().any(|name| real(&found.place(home, name)) == path)
    }

    /// Is this a name of those that it looks for in a repository?
    pub fn is_project(&self, path: &Path) -> bool {
        self.project.iter().copied().flatten().any(|name| path.ends_with(name))
    }

    /// What they say in a session in `cwd`, with what they import. `home` is the program's. What does not answer says nothing.
    pub fn texts(&'static self, home: Option<&Path>, env: &Env, cwd: &Path) -> Vec<String> {
        let (users, users_home) = (env.home().map(Path::to_path_buf), env.home().map(Path::to_path_buf));
        let (dir, names) = (home, self.names(home, cwd));
        let own_lists = lists(self.own, &names);
        let read_own = move |home: &Path| {
            let real = home.canonicalize().ok();
            let within = real.clone().filter(|_| self.imports == Imports::InRepository);
            let mut found = ContextTexts { home: users_home, within, ..ContextTexts::default() };
            self.find(&[home.to_path_buf()], &own_lists, &mut found);
            (real, found.texts)
        };
        let own = home.and_then(|home| reach::within(home, read_own).ok());
        let (home, own) = own.unwrap_or_default();
        let project = reach::within(cwd, move |cwd| {
            let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_path_buf());
            let top = repository::of(&cwd).map(|repository| repository.top);
            let within = top.clone().filter(|_| self.imports == Imports::InRepository);
            let within = Some(within.unwrap_or_else(|| cwd.clone()));
            // In a session below the user's home, the user's own file is none of the project's.
            let own = self.own.iter().copied().flatten();
            let seen = home.iter().flat_map(|home| own.clone().map(move |name| home.join(name))).collect();
            let mut found = ContextTexts { home: users, within, seen, ..ContextTexts::default() };
            self.find(&self.dirs(&cwd, top), &lists(self.project, &names), &mut found);
            found.texts
        });
        let mut project = project.unwrap_or_default();
        if let Some(limit) = &self.limit {
            cut(&mut project, limit.of(dir).unwrap_or(limit.usual));
        }
        own.into_iter().chain(project).collect()
    }

    /// The names that the program's settings have for its files, with its own if it reads these too.
    fn names(&self, home: Option<&Path>, cwd: &Path) -> Vec<String> {
        let Some(named) = &self.named else { return Vec::new() };
        let files = [named.project.map(|name| cwd.join(name)), home.map(|home| home.join(named.own))];
        let named_in = |path: PathBuf| {
            let text = reach::read(&path, CAP).ok()?;
            let settings: Value = serde_json::from_slice(&text).ok()?;
            Some(settings.pointer("/context/fileName")?.clone())
        };
        let mut names: Vec<String> = match files.into_iter().flatten().find_map(named_in) {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => return Vec::new(),
        };
        if named.adds {
            names.extend(self.project.iter().copied().flatten().map(|name| (*name).to_owned()));
        }
        names
    }

    /// The directories in which it looks, of a session in `cwd` in the repository with this top.
    fn dirs(&self, cwd: &Path, top: Option<PathBuf>) -> Vec<PathBuf> {
        let linked = top.as_deref().filter(|top| top.join(".git").is_file());
        let around = linked.map(|top| (repository::worktrees(top), top));
        let is_between = |dir: &Path| {
            around.as_ref().is_some_and(|(others, top)| {
                let mut others = others.iter().filter(|other| top.starts_with(other));
                !dir.starts_with(top) && others.any(|other| dir.starts_with(other))
            })
        };
        let last = match self.above {
            Above::Everything => None,
            Above::Repository => Some(top.as_deref().unwrap_or(cwd)),
            Above::RepositoryIfAny => top.as_deref(),
            Above::BesideRepository => top.as_deref().and_then(Path::parent),
        };
        let dirs = cwd.ancestors().take_while(|dir| last.is_none_or(|last| dir.starts_with(last)));
        dirs.filter(|dir| !is_between(dir)).map(Path::to_path_buf).collect()
    }

    /// The files of the first list of which any has a text.
    fn find(&self, dirs: &[PathBuf], lists: &[Vec<String>], found: &mut ContextTexts) {
        for list in lists {
            for dir in dirs {
                let instead = self.instead.map(|name| dir.join(name)).filter(|path| path.is_file());
                let paths = match instead {
                    Some(path) => vec![path],
                    None => list.iter().map(|name| found.place(dir, name)).collect(),
                };
                for path in paths {
                    found.add(self.imports, path, DEPTH);
                }
            }
            if !found.texts.is_empty() {
                return;
            }
        }
    }
}

fn lists(own: &[&[&str]], named: &[String]) -> Vec<Vec<String>> {
    let owned = |list: &&[&str]| list.iter().map(|name| (*name).to_owned()).collect();
    if named.is_empty() { own.iter().map(owned).collect() } else { vec![named.to_vec()] }
}

/// What was found so far.
#[derive(Default)]
struct ContextTexts {
    texts: Vec<String>,
    seen: Vec<PathBuf>,
    /// The user's home directory.
    home: Option<PathBuf>,
    /// Only files below it are imported.
    within: Option<PathBuf>,
}

impl ContextTexts {
    fn place(&self, dir: &Path, name: &str) -> PathBuf {
        match (name.strip_prefix("../"), name.strip_prefix("~/"), &self.home) {
            // Beside the directory, not beside what it may lead to.
            (Some(name), ..) => dir.with_file_name(name),
            (_, Some(name), Some(home)) => home.join(name),
            _ => dir.join(name),
        }
    }

    fn add(&mut self, imports: Imports, path: PathBuf, depth: usize) {
        if self.seen.contains(&path) || self.seen.len() >= FILES {
            return;
        }
        let bytes = file::read(&path, CAP).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
        self.seen.push(path.clone());
        if text.trim().is_empty() {
            return;
        }
        if let (Some(dir), true, false) = (path.parent(), depth > 0, imports == Imports::Nothing) {
            for name in imported(&text) {
                let Ok(path) = self.place(dir, name).canonicalize() else { continue };
                if self.within.as_ref().is_none_or(|within| path.starts_with(within)) {
                    self.add(imports, path, depth - 1);
                }
            }
        }
        self.texts.push(text);
    }
}

/// The paths after `@` in a text, outside of code.
fn imported(text: &str) -> Vec<&str> {
    let mut open: Option<Fence> = None;
    let mut paths = Vec::new();
    for line in text.lines() {
        match (fence(line.as_bytes()), open) {
            (Some(mark), Some(opening)) if mark.closes(&opening) => open = None,
            (Some(mark), None) => open = Some(mark),
            (_, Some(_)) => {}
            (None, None) => {
                let words = line.split('`').step_by(2).flat_map(str::split_whitespace);
                paths.extend(words.filter_map(|word| word.strip_prefix('@')).filter(|path| !path.is_empty()));
            }
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_is_not_known_and_what_stands_before_is() {
        let section = format!("{START}\n### A (id__AAAAAA)\n\none\n\n### B (id__BBBBBB)\n\ntwo\n{END}\n");
        // As found: the nearest first. The farthest one has its bytes first.
        let mut texts = [section.clone(), "top\n".to_owned()];
        cut(&mut texts, section.len() + 4);
        assert_eq!(texts, [section.clone(), "top\n".to_owned()]);
        let two = section.find("two").unwrap();
        cut(&mut texts, two + 4 + 1);
        let kept = &section[..section.find("\ntwo").unwrap()];
        assert_eq!(texts[0], format!("{kept}\n{END}\n"));
        cut(&mut texts, 2);
        assert_eq!(texts[1], "to");
    }
}
