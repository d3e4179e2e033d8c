//! A `memory.config.json` in the current directory may have come with somebody else's files. Nothing is taken from it
//! but lower caps: it changes neither where anything is stored or shown, nor what is run.

use crate::base::cli::Reporter;
use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::reach;
use crate::config::memory::read;
use crate::config::memory::settings::Settings;
use crate::harness::shell::AgentShell;
use fs_err as fs;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// How many ignored keys a warning lists.
const LISTED: usize = 10;

/// Settings with a smaller risk at a lower value.
const CAPS: &[&str] = &[
    "llm.timeoutSeconds", "llm.maxPromptBytes", "llm.maxReplyBytes", "llm.maxCallsPerRun",
    "llm.maxCallsPerDay",
];

/// Whether the environment or the user's own file trusts the directory of `file`. The own file must list it or a
/// directory above it.
pub(super) fn is_trusted(file: &Path, own: Option<&Path>, env: &Env) -> bool {
    // What an agent runs may set the variable.
    if env.text("AGENT_MEMORY_TRUST") == Some("1") && AgentShell::of(env).is_none() {
        return true;
    }
    let Some(dir) = file.parent().and_then(reach::real) else { return false };
    // An invalid file trusts no directory; it is reported where its settings are read.
    let settings = own.and_then(|own| read::strictly(own, env).ok()).unwrap_or_default();
    let listed = settings.iter().find(|(key, _)| *key == "trustedDirectories").map(|(_, value)| value);
    let mut listed = listed.and_then(Value::as_array).into_iter().flatten();
    listed.any(|listed| {
        let real = listed.as_str().and_then(|listed| reach::real(Path::new(listed)));
        real.is_some_and(|listed| dir.starts_with(listed))
    })
}

/// Adds the lower caps of an untrusted file, and warns about its other settings in one line. Nothing in the file
/// is an error.
pub fn add(settings: &mut Settings, file: &Path, env: &Env, reporter: &Reporter) {
    let (caps, ignored) = match sorted(file, settings, env) {
        Ok(sorted) => sorted,
        Err(error) => return reporter.warn(&format!("ignored, and not trusted: {}", error.message())),
    };
    if !ignored.is_empty() {
        let mut names = ignored[..ignored.len().min(LISTED)].join(", ");
        if ignored.len() > LISTED {
            names = format!("{names} and {} more", ignored.len() - LISTED);
        }
        reporter.warn(&format!(
            "\"{}\" is not trusted, so these settings in it are ignored: {names}; to trust it, set AGENT_MEMORY_TRUST=1 or list its \
             directory under trustedDirectories in your own configuration",
            file.display()
        ));
    }
    let source = format!("{} (not trusted)", file.display());
    for (key, value) in caps {
        settings.set(&key, value, &source);
    }
}

type Caps = Vec<(String, Value)>;

/// The caps that an untrusted file lowers, and the keys that are ignored.
fn sorted(file: &Path, settings: &Settings, env: &Env) -> Result<(Caps, Vec<String>)> {
    let bytes = read::bytes(file)?;
    let (mut caps, mut ignored) = (Vec::new(), Vec::new());
    for found in read::settings(&bytes, file, env)? {
        match found {
            Ok((key, value)) if CAPS.contains(&key.as_str()) => {
                let ours = settings.get(&key).and_then(|setting| setting.value.as_u64());
                match value.as_u64().cmp(&ours) {
                    std::cmp::Ordering::Less => caps.push((key, value)),
                    std::cmp::Ordering::Equal => {}
                    std::cmp::Ordering::Greater => ignored.push(key),
                }
            }
            Ok((key, _)) => ignored.push(key),
            Err(fault) if fault.at.key.is_empty() => return Err(fault.error(file)),
            Err(fault) => ignored.push(fault.at.key),
        }
    }
    Ok((caps, ignored))
}

/// The path with symlinks resolved, if it is inside `dir` but not in its `.git`, which never comes with a checkout.
pub(super) fn inside(dir: &Path, path: &Path) -> Option<PathBuf> {
    let path = resolved(path)?;
    let below = path.strip_prefix(dir).ok()?;
    let is_git = |part: Component| part.as_os_str().eq_ignore_ascii_case(".git");
    (!below.components().any(is_git)).then_some(path)
}

/// The path without symlinks. Directories that do not exist yet are kept as they are, below the deepest one that
/// does. `None` if the path cannot be determined: a broken symlink, or `..` after a directory that does not exist.
fn resolved(path: &Path) -> Option<PathBuf> {
    let missing = |e: std::io::Error| matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    let there = path.ancestors().find(|part| !part.symlink_metadata().is_err_and(missing))?;
    let rest = path.strip_prefix(there).ok()?;
    if rest.components().any(|part| !matches!(part, Component::Normal(_))) {
        return None;
    }
    Some(fs::canonicalize(there).ok()?.join(rest).components().collect())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symlinks_are_resolved_and_undetermined_paths_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(temporary.path()).unwrap();
        fs::create_dir(dir.join("real")).unwrap();
        for (target, link) in [("real", "link"), ("/nowhere/at/all", "dangling"), ("loop", "loop")] {
            std::os::unix::fs::symlink(target, dir.join(link)).unwrap();
        }
        for (path, expected) in [
            ("real", Some("real")),
            ("link", Some("real")),
            ("link/new/x.md", Some("real/new/x.md")),
            ("new/x.md", Some("new/x.md")),
            ("real/../y", Some("y")),
            ("new/../../y", None),
            ("dangling", None),
            ("dangling/x.md", None),
            ("loop/x.md", None),
        ] {
            assert_eq!(resolved(&dir.join(path)), expected.map(|path| dir.join(path)), "{path}");
        }
    }
}
