//! The git repository of a directory, read from git's files, without running git; and what stands for one where there
//! is none.

use crate::base::{file, reach};
use std::io;
use std::path::{Path, PathBuf};

/// The largest git file that is read, in bytes.
const CAP: u64 = 1 << 20;
/// The same of its list of branches and tags.
const PACKED_CAP: u64 = 16 << 20;
/// The same of HEAD.
const HEAD_CAP: u64 = 4096;
/// So many characters of a commit's name are written down.
const COMMIT: usize = 12;

#[derive(Debug, PartialEq, Eq)]
pub struct Repository {
    /// `host/owner/name` of the remote `origin`, without user and password; `local:<main worktree>` if there is none.
    /// All worktrees of a repository have the same name.
    pub name: String,
    /// The top of this worktree.
    pub top: PathBuf,
}

/// The repository that contains `dir`, if any. None if the directory does not answer, as in all functions here.
///
/// `url.….insteadOf` and included files are ignored: an address that needs them keeps its short form.
pub fn of(dir: &Path) -> Option<Repository> {
    reach::within(dir, around).ok()?.ok()?
}

/// # Errors
/// The directory cannot be found, or git's configuration cannot be read: it must not pass for another repository.
fn around(dir: &Path) -> io::Result<Option<Repository>> {
    let dir = dir.canonicalize()?;
    let Some((top, git)) = dir.ancestors().find_map(|top| Some((top, git_dir(top)?))) else {
        return Ok(None);
    };
    let Some(common) = common_dir(git) else { return Ok(None) };
    let config = file::if_exists(file::read(&common.join("config"), CAP))?;
    let url = config.and_then(|config| origin(&text_of(&config)));
    let name = url.as_deref().and_then(name_of_url).unwrap_or_else(|| {
        let main = if common.ends_with(".git") { common.parent().unwrap_or(&common) } else { &common };
        format!("local:{}", main.display())
    });
    Ok(Some(Repository { name, top: top.to_path_buf() }))
}

/// The tops of all worktrees of the repository whose worktree `top` is.
pub fn worktrees(top: &Path) -> Vec<PathBuf> {
    reach::within(top, all_worktrees).unwrap_or_default()
}

fn all_worktrees(top: &Path) -> Vec<PathBuf> {
    let common = git_dir(top).and_then(common_dir).and_then(|common| common.canonicalize().ok());
    let Some(common) = common else { return Vec::new() };
    let linked = fs_err::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    let linked = linked.filter_map(|worktree| file::read(&worktree.path().join("gitdir"), CAP).ok());
    let mut tops: Vec<PathBuf> =
        linked.filter_map(|file| Path::new(&text_of(&file)).parent().map(Path::to_path_buf)).collect();
    tops.extend(common.parent().filter(|_| common.ends_with(".git")).map(Path::to_path_buf));
    tops.retain(|top| top.is_absolute());
    tops
}

/// Git's own directory of the repository that knows this worktree as one of its own.
pub fn knows(top: &Path) -> Option<PathBuf> {
    let known = |top: &Path| {
        let common = git_dir(top).and_then(common_dir)?.canonicalize().ok()?;
        all_worktrees(top).iter().any(|known| known == top).then_some(common)
    };
    reach::within(top, known).ok()?
}

/// Where what is learned in `dir` belongs: the repository that contains it, or else the directory itself, as if it were a
/// repository of its own on this machine. `None`: there is no such directory.
pub fn place_of(dir: &Path) -> Option<Repository> {
    let itself = |dir: &Path| {
        let top = dir.canonicalize().ok().filter(|dir| dir.is_dir())?;
        Some(Repository { name: format!("local:{}", top.display()), top })
    };
    reach::within(dir, move |dir| around(dir).ok()?.or_else(|| itself(dir))).ok()?
}

/// Is it the same place? A directory on this machine includes what lies below it, unless that has a name that holds on others.
pub fn includes(place: &str, other: &str) -> bool {
    let below = place.strip_prefix("local:").zip(other.strip_prefix("local:"));
    let lies_below =
        |(place, other): (&str, &str)| Path::new(other).starts_with(place) && !holds_everything(place);
    place == other || below.is_some_and(lies_below)
}

/// The root, a home directory, and what these lie in: a session there is about no project, so it says nothing to those below.
fn holds_everything(place: &str) -> bool {
    matches!(
        place.trim_matches('/').split('/').collect::<Vec<_>>()[..],
        ["" | "home" | "Users" | "root" | "var"] | ["home" | "Users", _] | ["var", "root" | "home"]
    )
}

/// `.git` itself, or the target of a worktree's or submodule's `.git` file.
pub fn git_dir(top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    if git.join("HEAD").is_file() {
        return Some(git);
    }
    let pointer = file::read(&git, CAP).ok()?;
    let dir = top.join(text_of(&pointer).strip_prefix("gitdir:")?.trim());
    dir.canonicalize().ok().filter(|dir| dir.join("HEAD").is_file())
}

/// Does the checkout leave out files of its commit?
pub fn is_sparse(top: &Path) -> bool {
    git_dir(top).is_some_and(|dir| dir.join("info/sparse-checkout").is_file())
}

/// What HEAD of a worktree says: `ref: ` and the name of a branch, or a commit. `None`: it cannot be read.
pub fn head(top: &Path) -> Option<String> {
    reach::within(top, |top| head_in(&git_dir(top)?)).ok()?
}

fn head_in(git: &Path) -> Option<String> {
    file::read(&git.join("HEAD"), HEAD_CAP).ok().map(|bytes| text_of(&bytes))
}

/// The branch that is checked out; `None`: a commit is, or it cannot be read.
pub fn branch(top: &Path) -> Option<String> {
    branch_in(&head(top)?).map(str::to_owned)
}

fn branch_in(head: &str) -> Option<&str> {
    let branch = head.strip_prefix("ref: refs/heads/")?;
    Some(branch).filter(|branch| !branch.starts_with('.') && !branch.contains(".."))
}

/// The commit that is checked out, by the beginning of its name.
pub fn commit(top: &Path) -> Option<String> {
    reach::within(top, commit_in).ok()?.map(|commit| short(&commit))
}

fn commit_in(top: &Path) -> Option<String> {
    let git = git_dir(top)?;
    let head = head_in(&git)?;
    let is_commit = |text: &String| text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !head.starts_with("ref: ") {
        return Some(head).filter(is_commit);
    }
    let name = format!("refs/heads/{}", branch_in(&head)?);
    let common = common_dir(git)?;
    let read = |path: &Path| file::read(path, PACKED_CAP).ok().map(|bytes| text_of(&bytes));
    let packed = || {
        let refs = read(&common.join("packed-refs"))?;
        let found = refs.lines().find_map(|line| line.strip_suffix(&*name)?.strip_suffix(' '))?;
        Some(found.to_owned())
    };
    read(&common.join(&name)).or_else(packed).filter(is_commit)
}

/// The beginning of a commit's name, as it is written down.
pub fn short(commit: &str) -> String {
    commit.chars().take(COMMIT).collect()
}

/// What all worktrees have in common: the `.git` of the main one.
fn common_dir(git: PathBuf) -> Option<PathBuf> {
    match file::read(&git.join("commondir"), CAP) {
        Ok(path) => git.join(text_of(&path)).canonicalize().ok(),
        Err(_) => Some(git),
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// The first `url` of `[remote "origin"]` in a git configuration file.
fn origin(config: &str) -> Option<String> {
    let mut inside = false;
    for line in config.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let (kind, name) = section.split_once('"').unwrap_or((section, ""));
            inside = kind.trim().eq_ignore_ascii_case("remote") && name.starts_with("origin\"");
        } else if let (true, Some((key, value))) = (inside, line.split_once('='))
            && key.trim().eq_ignore_ascii_case("url")
        {
            return Some(unquote(value.trim()));
        }
    }
    None
}

/// A value without quotes, escapes and trailing comment.
fn unquote(value: &str) -> String {
    let mut plain = String::new();
    let mut quoted = false;
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => quoted = !quoted,
            '\\' => plain.extend(characters.next()),
            '#' | ';' if !quoted => break,
            c => plain.push(c),
        }
    }
    plain.trim_end().to_owned()
}

/// `https://user:pw@Host:443/owner/name.git`, `git@host:owner/name`, `ssh://…` → `host/owner/name`. `None` for a
/// path on this machine.
pub fn name_of_url(url: &str) -> Option<String> {
    let (host, path) = match url.split_once("://") {
        Some(("file", _)) => return None,
        Some((_, rest)) => rest.split_once('/')?,
        // As in scp: a colon before the first slash.
        None => url.split_once(':').filter(|(host, _)| !host.contains('/'))?,
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    // An IPv6 address keeps its own colons.
    let host = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default().trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let is_fine = |text: &str| !text.is_empty() && !text.chars().any(|c| c.is_control() || c == '@');
    (is_fine(host) && is_fine(path)).then(|| format!("{}/{path}", host.to_lowercase()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test may write files")]

    use super::*;

    #[test]
    fn addresses_of_one_repository_have_one_name() {
        for url in [
            "https://github.com/owner/repo.git",
            "https://user:pa%40ss@GitHub.com/owner/repo",
            "https://token@github.com:443/owner/repo.git/",
            "git@github.com:owner/repo.git",
            "github.com:owner/repo",
            "ssh://git@github.com:22/owner/repo.git",
            "git://github.com/owner/repo?x=1",
        ] {
            assert_eq!(name_of_url(url).as_deref(), Some("github.com/owner/repo"), "{url}");
        }
        assert_eq!(name_of_url("https://gitlab.com/a/b/c.git").as_deref(), Some("gitlab.com/a/b/c"));
    }

    #[test]
    fn a_folder_includes_what_lies_below_it_unless_that_is_everything() {
        assert!(
            includes("local:/home/ada/notes", "local:/home/ada/notes/a/b")
                && includes("local:/srv", "local:/srv/a")
        );
        assert!(includes("local:/home/ada", "local:/home/ada") && includes("local:/", "local:/"));
        for everything in ["/", "/home", "/home/ada", "/Users/ada", "/root", "/var/home/"] {
            let below = format!("local:{everything}/x").replace("//", "/");
            assert!(!includes(&format!("local:{everything}"), &below), "{everything}");
        }
        assert!(!includes("local:/srv/a", "local:/srv/ab") && !includes("local:/srv", "github.com/o/r"));
    }

    #[test]
    fn paths_are_not_addresses() {
        for url in ["/srv/git/x.git", "../x", "file:///srv/x", "", ":", "https://", "https://host/", "./a:b"]
        {
            assert_eq!(name_of_url(url), None, "{url}");
        }
    }

    #[test]
    fn no_part_of_a_login_is_left() {
        for url in
            ["https://me:s3cret@h/o/r", "https://h/o/r?token=s3cret", "https://a@b:s3cret@h/o/r#s3cret"]
        {
            assert!(!name_of_url(url).unwrap().contains("s3cret"), "{url}");
        }
        assert_eq!(name_of_url("https://h/s3cret@h/o"), None);
    }

    #[test]
    fn the_origin_is_found_among_other_sections() {
        let config = "[core]\n\turl = no\n[remote \"upstream\"]\n url = no\n[Remote \"origin\"]\n\
                      \tfetch = +refs\n\tURL = \"git@h:o/r.git\" ; mine\n[branch \"url\"]\nurl = no\n";
        assert_eq!(origin(config).as_deref(), Some("git@h:o/r.git"));
        assert_eq!(origin("[remote \"origin2\"]\nurl = x\n"), None);
    }

    #[test]
    fn worktrees_share_the_name_of_their_repository() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let main = dir.join("main");
        let linked = main.join(".git/worktrees/w");
        std::fs::create_dir_all(&linked).unwrap();
        std::fs::create_dir_all(main.join("src")).unwrap();
        std::fs::create_dir_all(dir.join("w/deep")).unwrap();
        for (path, text) in [
            ("main/.git/HEAD", "ref: refs/heads/main\n"),
            ("main/.git/config", ""),
            ("main/.git/worktrees/w/HEAD", "x"),
            ("main/.git/worktrees/w/commondir", "../..\n"),
        ] {
            std::fs::write(dir.join(path), text).unwrap();
        }
        std::fs::write(dir.join("w/.git"), format!("gitdir: {}\n", linked.display())).unwrap();
        let local = format!("local:{}", main.display());
        std::fs::write(linked.join("gitdir"), format!("{}\n", dir.join("w/.git").display())).unwrap();
        assert_eq!(worktrees(&main), [dir.join("w"), main.clone()]);
        assert_eq!(worktrees(&dir.join("w")), [dir.join("w"), main.clone()]);
        assert_eq!(of(&main.join("src")), Some(Repository { name: local.clone(), top: main.clone() }));
        assert_eq!(of(&dir.join("w/deep")), Some(Repository { name: local, top: dir.join("w") }));
        std::fs::write(main.join(".git/config"), "[remote \"origin\"]\nurl = https://u:p@h/o/r\n").unwrap();
        assert_eq!(of(&dir.join("w")).unwrap().name, "h/o/r");
        assert_eq!(of(&dir), None);
        let folder = format!("local:{}", dir.display());
        assert_eq!(place_of(&dir), Some(Repository { name: folder, top: dir.clone() }));
        assert_eq!(place_of(&dir.join("w")), of(&dir.join("w")));
        assert_eq!(place_of(&dir.join("gone")), None);
    }
}
