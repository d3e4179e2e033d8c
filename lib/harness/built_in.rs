//! The memory that a program keeps by itself: files of Markdown that its agent writes and reads.
//!
//! What is here was seen in the programs: Claude Code 2.1.330, Qwen Code 0.24.4, Gemini CLI 0.61.0 and Codex 0.169.0.

use crate::base::env::Env;
use crate::base::{file, reach, repository};
use crate::harness::files::{entries, matching};
use crate::harness::spec::{BuiltInMemory, MemoryProject, Spec};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// So much of an index a session gets: lines, and bytes.
const INDEX_LINES: usize = 200;
const INDEX: usize = 25_000;
/// A longer name of a project's directory ends with a hash.
const LONGEST: usize = 200;
/// The largest file that is read, in bytes, and the lines in which a path is looked for.
const CAP: u64 = 1 << 20;
const HEADER: usize = 12;

/// All its files.
pub fn files(memory: &BuiltInMemory, env: &Env) -> Vec<PathBuf> {
    let below = |pattern: &&str| memory.home.dir(env).map(|dir| matching(dir, pattern)).unwrap_or_default();
    let mut files: Vec<PathBuf> = memory.files.iter().flat_map(below).collect();
    files.retain(|path| reach::within(path, Path::is_file).unwrap_or(false));
    files
}

/// The directory of the project that a file of it is about; `None`: it is not known, or gone.
pub fn project(memory: &BuiltInMemory, file: &Path, env: &Env) -> Option<PathBuf> {
    let dir = match memory.project {
        MemoryProject::Named { .. } => {
            let projects = memory.home.dir(env)?.join("projects");
            let name = file.strip_prefix(projects).ok()?.iter().next()?.to_str()?.to_owned();
            reach::within(Path::new("/"), move |root| directory_of(root, &name)).ok()?
        }
        MemoryProject::Beside(name) => text(&file.parent()?.with_file_name(name)).map(PathBuf::from),
        MemoryProject::Line(start) => {
            let text = text(file)?;
            let path = text.lines().take(HEADER).find_map(|line| line.strip_prefix(start));
            path.map(|path| PathBuf::from(path.trim()))
        }
    };
    dir.filter(|dir| dir.is_absolute() && reach::within(dir, Path::is_dir).unwrap_or(false))
}

/// What a session in `cwd` is given of its index: so many lines and bytes. Empty where there is none, or the memory is
/// switched off.
pub fn index(spec: &Spec, env: &Env, cwd: &Path) -> String {
    read_index(spec, env, cwd).unwrap_or_default()
}

fn read_index(spec: &Spec, env: &Env, cwd: &Path) -> Option<String> {
    let memory = spec.memory.as_ref()?;
    let MemoryProject::Named { is_shared } = memory.project else { return None };
    let top = repository::of(cwd).map(|repository| repository.top);
    let main = top.as_deref().filter(|_| is_shared).and_then(|top| repository::worktrees(top).pop());
    let project = main.or(top).or_else(|| reach::real(cwd))?;
    let dir = memory.home.dir(env)?.join("projects").join(name_of(&project)?);
    let text = text(&dir.join("memory/MEMORY.md"))?;
    if is_off(memory, spec, env, &project) {
        return None;
    }
    let mut room = INDEX;
    let fits = |line: &&str| {
        room = room.saturating_sub(line.len());
        room > 0
    };
    Some(text.split_inclusive('\n').take(INDEX_LINES).take_while(fits).collect())
}

/// It is switched off for sessions in this project.
fn is_off(memory: &BuiltInMemory, spec: &Spec, env: &Env, project: &Path) -> bool {
    let Some((switch, variable)) = &memory.off else { return false };
    let value = variable.and_then(|name| env.text(name)).unwrap_or_default().to_lowercase();
    match value.as_str() {
        "1" | "true" | "yes" | "on" => return true,
        "0" | "false" | "no" | "off" => return false,
        _ => {}
    }
    let dirs = [Some(project.join(spec.home.usual)), spec.home.dir(env)];
    let is_set = |dir: PathBuf| {
        let settings: Value = serde_json::from_str(&text(&dir.join(switch.file))?).ok()?;
        switch.key.iter().try_fold(&settings, |value, name| value.get(name))?.as_bool()
    };
    dirs.into_iter().flatten().find_map(is_set) == Some(switch.off)
}

fn text(path: &Path) -> Option<String> {
    let bytes = reach::within(path, |path| file::read(path, CAP)).ok()?.ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

/// The name of a project's directory in `projects`.
fn name_of(project: &Path) -> Option<String> {
    let name = plain(project.to_str()?);
    (name.len() <= LONGEST).then_some(name)
}

/// Every unit of UTF-16 that is no letter or digit of ASCII becomes a `-`.
fn plain(text: &str) -> String {
    let unit = |unit: u16| u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric).map_or('-', char::from);
    text.encode_utf16().map(unit).collect()
}

/// The directory below `root` whose path has this name in `projects`. `None` if there is none, or more than one.
fn directory_of(root: &Path, name: &str) -> Option<PathBuf> {
    let mut found = BTreeSet::new();
    descend(root, name.strip_prefix('-')?, &mut found);
    found.pop_first().filter(|_| found.is_empty())
}

fn descend(dir: &Path, rest: &str, found: &mut BTreeSet<PathBuf>) {
    for path in entries(dir) {
        let own = plain(&path.file_name().unwrap_or_default().to_string_lossy());
        match rest.strip_prefix(&own) {
            Some("") if path.is_dir() => found.extend(path.canonicalize().ok()),
            Some(rest) if rest.starts_with('-') && path.is_dir() => descend(&path, &rest[1..], found),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test may write files")]

    use super::*;

    #[test]
    fn a_name_leads_to_the_one_directory_that_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        for below in ["src/my.app/web", "src/my-app", "src/one/two", "src/one-two"] {
            std::fs::create_dir_all(dir.join(below)).unwrap();
        }
        let found = |name: &str| directory_of(&dir, name);
        assert_eq!(found("-src-my-app-web"), Some(dir.join("src/my.app/web")));
        assert_eq!(found("-src-one-two"), None, "two directories have this name");
        for gone in ["-src-my-app-api", "-src-", "src", "", "-"] {
            assert_eq!(found(gone), None, "{gone}");
        }
        assert_eq!(name_of(Path::new("/home/u/my.app_é")).as_deref(), Some("-home-u-my-app--"));
        assert_eq!(name_of(Path::new(&format!("/{}", "x".repeat(200)))), None);
    }
}
