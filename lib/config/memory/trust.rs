//! A `memory.config.json` in the current directory may have come with somebody else's files. What it may set
//! cannot reach beyond its directory, run a command or cost more.

use crate::base::cli::Reporter;
use crate::base::env::Env;
use crate::base::error::Result;
use crate::config::memory::read;
use crate::config::memory::settings::Settings;
use fs_err as fs;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// So many keys that are left out are named.
const NAMED: usize = 10;

/// Settings of which a lower value is a smaller risk.
const CAPS: &[&str] = &[
    "llm.timeoutSeconds",
    "llm.maxPromptBytes",
    "llm.maxReplyBytes",
    "llm.maxCallsPerRun",
    "llm.maxCallsPerDay",
];

/// Is the directory of `file` trusted: by the environment, or by the user's own file? It itself or one above it
/// must be listed there.
pub(crate) fn is_trusted(file: &Path, own: Option<&Path>, env: &Env) -> bool {
    if env.text("AGENT_MEMORY_TRUST") == Some("1") {
        return true;
    }
    let Some(dir) = file.parent().and_then(|dir| fs::canonicalize(dir).ok()) else { return false };
    // A faulty file of the user's trusts nobody; its fault is told where it is read for its settings.
    let settings = own.and_then(|own| read::strictly(own, env).ok()).unwrap_or_default();
    settings
        .iter()
        .filter(|(key, _)| *key == "trustedDirectories")
        .flat_map(|(_, value)| value.as_array().into_iter().flatten())
        .filter_map(|listed| fs::canonicalize(listed.as_str()?).ok())
        .any(|listed| dir.starts_with(listed))
}

/// Adds to the user's settings what a file that is not trusted may set, and names the rest in one line.
/// Nothing in it is an error.
pub(crate) fn add(settings: &mut Settings, file: &Path, env: &Env, reporter: &Reporter) {
    match may_set(file, settings, env) {
        Ok(theirs) => {
            if !theirs.left_out.is_empty() {
                reporter.warn(&theirs.told(file));
            }
            theirs.apply(settings, file);
        }
        Err(error) => reporter.warn(&format!("left out, and not trusted: {}", error.message())),
    }
}

/// What the file may set.
#[derive(Default)]
struct UntrustedSettings {
    dir: PathBuf,
    root: Option<Value>,
    /// With their places in the list.
    targets: Vec<(usize, Value)>,
    caps: Vec<(&'static str, Value)>,
    left_out: Vec<String>,
}

fn may_set(file: &Path, settings: &Settings, env: &Env) -> Result<UntrustedSettings> {
    let dir = fs::canonicalize(file.parent().unwrap_or(file))?;
    let bytes = read::bytes(file)?;
    let mut theirs = UntrustedSettings { dir, ..UntrustedSettings::default() };
    for found in read::settings(&bytes, file, env)? {
        match found {
            Ok(("storage.root", value)) => match theirs.inside(&value) {
                Some(root) => theirs.root = Some(json!(root)),
                None => theirs.left_out.push("storage.root".to_owned()),
            },
            Ok(("agentsMd.targets", Value::Array(targets))) => theirs.take_targets(targets),
            Ok((key, value)) if CAPS.contains(&key) => {
                let ours = settings.get(key).and_then(|setting| setting.value.as_u64());
                match value.as_u64().cmp(&ours) {
                    std::cmp::Ordering::Less => theirs.caps.push((key, value)),
                    std::cmp::Ordering::Equal => {}
                    std::cmp::Ordering::Greater => theirs.left_out.push(key.to_owned()),
                }
            }
            Ok((key, _)) => theirs.left_out.push(key.to_owned()),
            Err(fault) if fault.at.key.is_empty() => return Err(fault.error(file)),
            Err(fault) => theirs.left_out.push(fault.at.key),
        }
    }
    theirs.keep_notes_of_repositories();
    Ok(theirs)
}

impl UntrustedSettings {
    fn inside(&self, path: &Value) -> Option<String> {
        inside(&self.dir, Path::new(path.as_str()?))?.to_str().map(str::to_owned)
    }

    /// Markdown only: a section in a `.env` or a script would be more than text.
    fn take_targets(&mut self, targets: Vec<Value>) {
        for (n, mut target) in targets.into_iter().enumerate() {
            match self.inside(&target["path"]).filter(|path| path.ends_with(".md")) {
                Some(path) => {
                    target["path"] = path.into();
                    self.targets.push((n, target));
                }
                None => self.leave_out_target(n),
            }
        }
    }

    fn leave_out_target(&mut self, n: usize) {
        self.left_out.push(format!("agentsMd.targets[{n}]"));
    }

    /// The notes of a repository that the user works on are nothing for a file that a stranger chose. Those of
    /// the stranger's own store are.
    fn keep_notes_of_repositories(&mut self) {
        if self.root.is_none() {
            let all = std::mem::take(&mut self.targets);
            for (n, target) in all {
                if target.get("repo").is_some() {
                    self.leave_out_target(n);
                } else {
                    self.targets.push((n, target));
                }
            }
        }
    }

    fn apply(self, settings: &mut Settings, file: &Path) {
        let source = format!("{} (not trusted)", file.display());
        let (own, own_source) = match settings.get("agentsMd.targets") {
            Some(setting) => (setting.value.as_array().cloned().unwrap_or_default(), setting.source.clone()),
            None => Default::default(),
        };
        // A store that a stranger named gets into no file of the user's elsewhere, and into no history.
        // Those that are left name the file itself: whoever writes there sees whether a link came in between.
        let kept = |target: &Value| {
            let mut target = target.clone();
            if self.root.is_some() {
                target["path"] = self.inside(&target["path"])?.into();
            }
            Some(target)
        };
        let mut targets: Vec<Value> = own.iter().filter_map(kept).collect();
        let is_changed = targets != own;
        let theirs = self.targets.iter().map(|(_, target)| target).filter(|their| {
            let same = |own: &Value| resolved_of(&own["path"]) == resolved_of(&their["path"]);
            !targets.iter().any(same)
        });
        let theirs: Vec<Value> = theirs.cloned().collect();
        if is_changed || !theirs.is_empty() {
            let from = if targets.is_empty() { source.clone() } else { format!("{own_source}, {source}") };
            targets.extend(theirs);
            settings.set("agentsMd.targets", targets.into(), &from);
        }
        if let Some(root) = self.root {
            settings.set("storage.root", root, &source);
            settings.set("storage.autoCommit", false.into(), &source);
            settings.foreign = true;
        }
        for (key, value) in self.caps {
            settings.set(key, value, &source);
        }
    }

    fn told(&self, file: &Path) -> String {
        let mut names = self.left_out.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        if self.left_out.len() > NAMED {
            names = format!("{names} and {} more", self.left_out.len() - NAMED);
        }
        format!(
            "\"{}\" is not trusted; left out of it: {names}; to trust it, set AGENT_MEMORY_TRUST=1 or list its \
             directory under trustedDirectories in your own configuration",
            file.display()
        )
    }
}

/// The path with its symlinks resolved, if it lies in `dir` and not in its `.git`, which no checkout brings along.
pub(crate) fn inside(dir: &Path, path: &Path) -> Option<PathBuf> {
    let path = resolved(path)?;
    let below = path.strip_prefix(dir).ok()?;
    let is_git = |part: Component| part.as_os_str().eq_ignore_ascii_case(".git");
    if below.components().any(is_git) { None } else { Some(path) }
}

fn resolved_of(path: &Value) -> Option<PathBuf> {
    resolved(Path::new(path.as_str()?))
}

/// The path without symlinks. What does not exist yet is taken as it stands, below the deepest directory that
/// does. `None` if that cannot be told: a link to nowhere, a way back up out of what does not exist.
fn resolved(path: &Path) -> Option<PathBuf> {
    let missing = |e: std::io::Error| matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    let there = path.ancestors().find(|part| !part.symlink_metadata().is_err_and(missing))?;
    let rest = path.strip_prefix(there).ok()?;
    if rest.components().any(|part| !matches!(part, Component::Normal(_))) {
        return None;
    }
    Some(fs::canonicalize(there).ok()?.join(rest).components().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symlinks_are_resolved_and_what_cannot_be_told_is_refused() {
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
