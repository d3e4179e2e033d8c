//! Where programs that run agents keep their sessions on this machine.

use crate::base::env::Env;
use crate::store::journal::entry::Harness;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The most files of one program that are looked at.
const MOST: usize = 200_000;

/// A program that keeps a file for each session.
pub(super) struct Place {
    harness: &'static str,
    /// The variables that name its directory, and what is below that; then the directory below the home directory.
    homes: &'static [(&'static str, &'static str)],
    below_home: &'static str,
    /// From there to the files; `*` stands for any name or part of one.
    path: &'static [&'static str],
}

const PLACES: &[Place] = &[
    Place {
        harness: "claude-code",
        homes: &[("CLAUDE_CONFIG_DIR", "")],
        below_home: ".claude",
        path: &["projects", "*", "*.jsonl"],
    },
    Place {
        harness: "codex",
        homes: &[("CODEX_HOME", "")],
        below_home: ".codex",
        path: &["sessions", "*", "*", "*", "rollout-*.jsonl"],
    },
    Place {
        harness: "copilot",
        homes: &[("COPILOT_HOME", "")],
        below_home: ".copilot",
        path: &["session-state", "*", "events.jsonl"],
    },
    Place {
        harness: "cursor",
        homes: &[],
        below_home: ".cursor",
        path: &["projects", "*", "agent-transcripts", "*.jsonl"],
    },
    Place {
        harness: "cursor",
        homes: &[],
        below_home: ".cursor",
        path: &["projects", "*", "agent-transcripts", "*", "*.jsonl"],
    },
    Place {
        harness: "gemini",
        homes: &[("GEMINI_CLI_HOME", ".gemini")],
        below_home: ".gemini",
        path: &["tmp", "*", "chats", "session-*.jsonl"],
    },
    Place {
        harness: "pi",
        homes: &[("PI_CODING_AGENT_DIR", "")],
        below_home: ".pi/agent",
        path: &["sessions", "*", "*.jsonl"],
    },
    Place {
        harness: "qwen-code",
        homes: &[("QWEN_RUNTIME_DIR", ""), ("QWEN_HOME", "")],
        below_home: ".qwen",
        path: &["projects", "*", "chats", "*.jsonl"],
    },
];

/// The programs whose sessions are found, in their order. Those of opencode and Amp are not kept in a file each.
pub(crate) const FOUND: [&str; 9] =
    ["amp", "claude-code", "codex", "copilot", "cursor", "gemini", "opencode", "pi", "qwen-code"];

/// A file that may be a session.
pub(super) struct SessionFile {
    pub(super) harness: Harness,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// When it was last written to.
    pub(super) changed: SystemTime,
}

/// The files of all programs, or of `only` one.
pub(super) fn files(only: Option<Harness>, env: &Env) -> Vec<SessionFile> {
    let mut found = Vec::new();
    for place in PLACES {
        let Some(harness) = Harness::named(place.harness) else { continue };
        if only.is_some_and(|only| only != harness) {
            continue;
        }
        let mut paths: Vec<PathBuf> = place.homes(env).collect();
        for pattern in place.path {
            paths = paths.iter().flat_map(|dir| matching(dir, pattern)).take(MOST).collect();
        }
        found.extend(paths.into_iter().filter_map(|path| {
            let metadata = path.metadata().ok().filter(|metadata| metadata.is_file())?;
            Some(SessionFile { harness, path, bytes: metadata.len(), changed: metadata.modified().ok()? })
        }));
    }
    found
}

impl Place {
    /// Its directory: the one that a variable names, or the usual one.
    fn homes(&self, env: &Env) -> impl Iterator<Item = PathBuf> {
        let named = self.homes.iter().find_map(|(name, below)| Some(Path::new(env.os(name)?).join(below)));
        named.or_else(|| Some(env.home()?.join(self.below_home))).into_iter()
    }
}

/// What is in `dir` under a name of this pattern, which has one `*` at most; sorted.
fn matching(dir: &Path, pattern: &str) -> Vec<PathBuf> {
    let Some((start, end)) = pattern.split_once('*') else { return vec![dir.join(pattern)] };
    let Ok(entries) = fs_err::read_dir(dir) else { return Vec::new() };
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    let is_match = |name: &OsStr| {
        name.to_str().is_some_and(|name| {
            let is_long = name.len() >= start.len() + end.len();
            is_long && name.starts_with(start) && name.ends_with(end)
        })
    };
    let mut paths: Vec<PathBuf> = names.filter(|name| is_match(name)).map(|name| dir.join(name)).collect();
    paths.sort();
    paths
}
