//! Which files are the repository's: paths are resolved by their text alone, and no file is opened.

use crate::base::{reach, repository};
use crate::memory::lists::List;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

/// The most worktrees.
const WORKTREES: usize = 200;

/// The most files that are remembered of one turn.
const TOUCHED: usize = 500;

/// No file of a repository lies deeper.
pub(super) const DEEP: usize = 100;
/// Among more things that were brought, nobody looks for those below a directory.
const SEARCHED: usize = 1000;

/// Where a session works.
#[derive(Debug, Default)]
pub struct Places {
    /// The working directory of the session. One that nobody knows has a name that no path has.
    pub(super) start: PathBuf,
    pub(super) home: Option<PathBuf>,
    /// The repository's worktrees.
    own: Vec<PathBuf>,
    /// Temporary directories, and `~/Downloads`.
    strange: Vec<PathBuf>,
    /// The session itself works in such a directory, and in no worktree of a repository elsewhere.
    pub(super) is_strange: bool,
    /// Is there a checkout of its own in this directory below a worktree?
    nested: HashMap<PathBuf, bool>,
    /// What commands brought from the network, and from where.
    brought: HashMap<PathBuf, Vec<String>>,
    /// The files in it that were looked for, by their paths from the top.
    pub(super) touched: BTreeSet<String>,
    /// Files beyond the repository that the session wrote itself, whole.
    written: HashSet<PathBuf>,
}

impl Places {
    /// `repo`: what the queue entry calls the repository of `cwd`.
    pub fn new(cwd: Option<&Path>, repo: Option<&str>, home: Option<&Path>, tmp: Option<&Path>) -> Places {
        let start = cwd.map_or_else(|| PathBuf::from("/\u{0}"), |cwd| normal(Path::new("/"), cwd));
        let mut strange: Vec<PathBuf> = List("temporary").phrases().iter().map(PathBuf::from).collect();
        strange.extend(tmp.filter(|tmp| tmp.parent().is_some()).map(|tmp| normal(Path::new("/"), tmp)));
        // Whose home lies there, as in a container, works there.
        strange.retain(|place| home.is_none_or(|home| !home.starts_with(place)));
        strange.extend(home.map(|home| home.join("Downloads")));
        let found = cwd.and_then(repository::of);
        let is_in_strange = |path: &Path| strange.iter().any(|place| path.starts_with(place));
        // An archive may bring git's configuration with it, and nothing in it tells a checkout from one. But the repository
        // of a worktree knows the worktree, and lies where the person put it.
        let is_known = found.as_ref().is_some_and(|found| {
            Some(found.name.as_str()) == repo
                && repository::knows(&found.top).is_some_and(|git| !is_in_strange(&git))
        });
        let is_strange = !is_known
            && (is_in_strange(&start) || found.as_ref().is_some_and(|found| is_in_strange(&found.top)));
        let own = match found {
            // As git calls it, and as the session does: a directory may have two names.
            Some(found) => {
                let mut own = repository::worktrees(&found.top);
                own.extend([same_depth(&start, &found.top), found.top]);
                own
            }
            None => vec![start.clone()],
        };
        let home = home.map(Path::to_path_buf);
        Places { home, start, own, strange, is_strange, ..Places::default() }
    }

    /// The path that a word means in a directory.
    pub(super) fn resolve(&self, dir: &Path, word: &str) -> PathBuf {
        let word = word.strip_prefix("file://").unwrap_or(word);
        // `C:/Users`, in an agent of Windows that works here: beyond every repository.
        if let [letter, b':', b'/' | b'\\', ..] = word.as_bytes()
            && letter.is_ascii_alphabetic()
        {
            return normal(Path::new("/\u{0}drive"), Path::new(word));
        }
        let home = ["~", "$HOME", "${HOME}"]
            .iter()
            .find_map(|home| word.strip_prefix(home).filter(|rest| rest.is_empty() || rest.starts_with('/')));
        match (home, &self.home) {
            (Some(rest), Some(home)) => normal(home, Path::new(rest.trim_start_matches('/'))),
            // Somebody else's home, or one that is not known: beyond every repository.
            _ if home.is_some() || word.starts_with('~') => normal(Path::new("/\u{0}home"), Path::new(word)),
            _ => normal(dir, Path::new(word)),
        }
    }

    /// `Some`: what this path shows is from outside, with the hosts that are known.
    pub(super) fn outside(&mut self, path: &Path) -> Option<Vec<String>> {
        if let Some(hosts) = self.brought_from(path) {
            return Some(hosts.clone());
        }
        if self.written.contains(path) || path.starts_with("/dev") && !path.starts_with("/dev/shm") {
            return None;
        }
        let top = self.own.iter().filter(|top| path.starts_with(top)).max_by_key(|top| top.as_os_str().len());
        let Some(top) = top.cloned() else { return Some(Vec::new()) };
        let is_strange = |path: &Path| self.strange.iter().any(|place| path.starts_with(place));
        let below = path.strip_prefix(&top).unwrap_or(path);
        if is_strange(path) && !is_strange(&top) || below.components().count() > DEEP {
            return Some(Vec::new());
        }
        let is_outside = is_dependency(below) || self.is_nested(&top, path);
        if !is_outside && self.touched.len() < TOUCHED {
            self.touched.extend(below.to_str().map(str::to_owned));
        }
        is_outside.then(Vec::new)
    }

    /// Is there a checkout between the top of a worktree and this path?
    fn is_nested(&mut self, top: &Path, path: &Path) -> bool {
        if path == top {
            return false;
        }
        if let Some(known) = self.nested.get(path) {
            return *known;
        }
        let is_checkout = path.join(".git").symlink_metadata().is_ok()
            || path.parent().is_some_and(|parent| self.is_nested(top, parent));
        self.nested.insert(path.to_path_buf(), is_checkout);
        is_checkout
    }

    /// Is it in one of the repository's worktrees?
    pub(super) fn is_own(&self, path: &Path) -> bool {
        self.own.iter().any(|top| path.starts_with(top))
    }

    /// From where a command brought it, or something above it.
    pub(super) fn brought_from(&self, path: &Path) -> Option<&Vec<String>> {
        path.ancestors().find_map(|place| self.brought.get(place))
    }

    pub(super) fn is_brought(&self, path: &Path) -> bool {
        self.brought_from(path).is_some()
    }

    /// A checkout of the repository itself was made there.
    pub(super) fn add_worktree(&mut self, path: PathBuf) {
        if self.own.len() < WORKTREES {
            self.brought.remove(&path);
            self.own.push(path);
        }
    }

    /// A command brought it from the network, or from another place outside.
    pub(super) fn bring(&mut self, path: PathBuf, hosts: &[String]) {
        // A whole worktree is not what one command names.
        if !self.own.contains(&path) {
            self.written.remove(&path);
            self.brought.insert(path, hosts.to_vec());
        }
    }

    /// The session wrote the whole file.
    pub(super) fn write(&mut self, path: PathBuf) {
        self.brought.remove(&path);
        self.written.insert(path);
    }

    /// Where the things come from that were brought below this directory.
    pub(super) fn brought_below(&self, dir: &Path) -> Option<Vec<String>> {
        // A search that does not say where it found something looks through all of them.
        if self.brought.len() > SEARCHED {
            return Some(Vec::new());
        }
        let below = self.brought.iter().filter(|(path, _)| path.starts_with(dir));
        below.map(|(_, hosts)| hosts.clone()).reduce(|all, hosts| [all, hosts].concat())
    }
}

/// The directory above `start` that stands for the top of the repository.
pub fn same_depth(start: &Path, top: &Path) -> PathBuf {
    // A symbolic link may lead there: the last names are the same.
    let canonical = reach::real(start).unwrap_or_else(|| start.to_path_buf());
    let below = canonical.strip_prefix(top).map_or(0, |below| below.components().count());
    start.ancestors().nth(below).unwrap_or(start).to_path_buf()
}

/// Does it lie in a folder of what others wrote?
fn is_dependency(below: &Path) -> bool {
    let names = below.components().map(|name| name.as_os_str().to_string_lossy().to_lowercase());
    List("dependencies").is_in(&names.collect::<Vec<_>>())
}

/// The path without `.` and `..`.
pub fn normal(dir: &Path, path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in dir.join(path).components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}
