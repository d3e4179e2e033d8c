//! The memory that a program keeps by itself: files of Markdown that its agent writes and reads.
//!
//! What is here was seen in the programs: Claude Code 2.1.330, Qwen Code 0.24.4, Gemini CLI 0.61.0 and Codex 0.169.0.

use crate::base::env::Env;
use crate::base::{file, reach, repository};
use crate::harness::files::{matching, sessions_in};
use crate::harness::spec::{BuiltInMemory, MemoryProject, Spec};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// So much of an index a session gets: lines, and bytes.
const INDEX_LINES: usize = 200;
const INDEX: usize = 25_000;
/// A longer name of a project's directory ends with a hash.
const LONGEST: usize = 200;
/// The largest file that is read, in bytes, and the lines in which a path is looked for.
const CAP: u64 = 1 << 20;
const HEADER: usize = 12;
/// The same of a project's sessions: so many, and so many lines of each.
const SESSIONS: usize = 20;
const RECORDS: usize = 50;

/// All its files. What a symlink leads to is none of them.
pub fn files(memory: &BuiltInMemory, env: &Env) -> Vec<PathBuf> {
    let below = |pattern: &&str| {
        let depth = pattern.rsplit('/').take_while(|name| name.contains('*')).count();
        let mut files = memory.home.dir(env).map(|dir| matching(dir, pattern)).unwrap_or_default();
        files.retain(|path| reach::within(path, move |path| is_below(path, depth)).unwrap_or(false));
        files
    };
    memory.files.iter().flat_map(below).collect()
}

/// It is a file, and no symlink leads there from the directory so many levels above it.
fn is_below(path: &Path, depth: usize) -> bool {
    let is_plain = |path: &Path| path.symlink_metadata().is_ok_and(|metadata| !metadata.is_symlink());
    path.is_file() && path.ancestors().take(depth).all(is_plain)
}

/// The directory of the project that a file of it is about; `None`: it is not known, or gone.
pub fn project(memory: &BuiltInMemory, file: &Path, env: &Env) -> Option<PathBuf> {
    let dir = match memory.project {
        MemoryProject::Named { .. } => {
            let projects = memory.home.dir(env)?.join("projects");
            let name = file.strip_prefix(&projects).ok()?.iter().next()?;
            reach::within(&projects.join(name), started_in).ok()?
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

/// What a session in `cwd` is given of its index: so many lines and bytes. `None` where there is none, or the memory is
/// switched off.
pub fn index(spec: &Spec, env: &Env, cwd: &Path) -> Option<String> {
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
    let own = project.join(spec.home.usual);
    // The first that says something decides. Claude Code has two files in a project.
    let local = own.join(switch.file).with_extension("local.json");
    let files =
        [Some(local), Some(own.join(switch.file)), spec.home.dir(env).map(|dir| dir.join(switch.file))];
    let is_set = |file: PathBuf| {
        let settings: Value = serde_json::from_str(&text(&file)?).ok()?;
        switch.key.iter().try_fold(&settings, |value, name| value.get(name))?.as_bool()
    };
    files.into_iter().flatten().find_map(is_set) == Some(switch.off)
}

fn text(path: &Path) -> Option<String> {
    let bytes = reach::read(path, CAP).ok()?;
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

/// The directory that a directory in `projects` is named after, as a session that is kept there says.
fn started_in(project: &Path) -> Option<PathBuf> {
    let name = project.file_name()?.to_str()?;
    let sessions = ["", "chats"].into_iter().flat_map(|dir| sessions_in(&project.join(dir)));
    sessions.take(SESSIONS).find_map(|session| {
        let (file, _) = file::open_regular(&session).ok()?;
        let lines = BufReader::new(file.take(CAP)).lines().map_while(Result::ok).take(RECORDS);
        let records = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        let cwd = records.filter_map(|record| record.get("cwd")?.as_str().map(PathBuf::from)).next()?;
        // The session may have gone on in a directory below.
        cwd.ancestors().find(|dir| name_of(dir).as_deref() == Some(name)).map(Path::to_path_buf)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test may write files")]

    use super::*;

    #[test]
    fn a_projects_directory_is_what_its_sessions_say() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("-src-my-app");
        let session = |name: &str, text: &str| {
            let path = project.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(started_in(&project), None);
        session("a.jsonl", "{\"type\": \"summary\"}\nspoilt\n");
        session("b.jsonl", "{\"cwd\": \"/src/other\"}\n");
        assert_eq!(started_in(&project), None, "another project's");
        session("chats/c.jsonl", "{\"type\": \"x\"}\n{\"cwd\": \"/src/my.app/web\"}\n");
        assert_eq!(started_in(&project), Some("/src/my.app".into()));
    }

    #[cfg(unix)]
    #[test]
    fn a_symlink_is_none_of_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let memory = dir.path().join("memory");
        std::fs::create_dir_all(memory.join("own")).unwrap();
        std::fs::create_dir_all(dir.path().join("other")).unwrap();
        for file in ["memory/a.md", "memory/own/b.md", "other/c.md"] {
            std::fs::write(dir.path().join(file), "x").unwrap();
        }
        std::os::unix::fs::symlink(dir.path().join("other/c.md"), memory.join("c.md")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("other"), memory.join("other")).unwrap();
        std::os::unix::fs::symlink(&memory, dir.path().join("linked")).unwrap();
        for (file, depth, is_one) in [
            ("memory/a.md", 1, true),
            ("memory/own/b.md", 2, true),
            ("linked/a.md", 1, true),
            ("memory/c.md", 1, false),
            ("memory/other/c.md", 2, false),
            ("memory/none.md", 1, false),
        ] {
            assert_eq!(is_below(&dir.path().join(file), depth), is_one, "{file}");
        }
    }

    #[test]
    fn a_name_has_a_dash_for_all_but_letters_and_digits() {
        assert_eq!(name_of(Path::new("/home/u/my.app_é")).as_deref(), Some("-home-u-my-app--"));
        assert_eq!(name_of(Path::new(&format!("/{}", "x".repeat(200)))), None);
    }
}
