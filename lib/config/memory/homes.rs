//! Where each harness keeps its settings, and the file that it reads at the start of every session.

use crate::base::env::Env;
use std::path::PathBuf;

/// A harness on this machine. Its directory is the sign that it is used.
#[derive(Debug)]
pub(crate) struct Home {
    /// As in the queue and in flags.
    pub(crate) harness: &'static str,
    /// As its vendor writes it.
    pub(crate) title: &'static str,
    place: Place,
    /// Below the directory; none if it reads no file of the user's.
    context: Option<&'static str>,
}

#[derive(Debug)]
enum Place {
    /// Below the home directory, unless a variable names a directory; then below that.
    Home { usual: &'static str, variable: Option<(&'static str, &'static str)> },
    /// Below the user's directory for configuration.
    Config(&'static str),
}

const fn home(usual: &'static str, variable: &'static str) -> Place {
    Place::Home { usual, variable: Some((variable, "")) }
}

/// In alphabetical order of their names.
pub(crate) const HOMES: &[Home] = &[
    Home { harness: "amp", title: "Amp", place: Place::Config("amp"), context: Some("AGENTS.md") },
    Home {
        harness: "claude-code",
        title: "Claude Code",
        place: home(".claude", "CLAUDE_CONFIG_DIR"),
        context: Some("CLAUDE.md"),
    },
    Home {
        harness: "codex",
        title: "Codex",
        place: home(".codex", "CODEX_HOME"),
        context: Some("AGENTS.md"),
    },
    Home {
        harness: "copilot",
        title: "Copilot CLI",
        place: home(".copilot", "COPILOT_HOME"),
        context: Some("copilot-instructions.md"),
    },
    Home {
        harness: "cursor",
        title: "Cursor",
        place: Place::Home { usual: ".cursor", variable: None },
        context: None,
    },
    Home {
        harness: "gemini",
        title: "Gemini CLI",
        place: Place::Home { usual: ".gemini", variable: Some(("GEMINI_CLI_HOME", ".gemini")) },
        context: Some("GEMINI.md"),
    },
    Home {
        harness: "opencode",
        title: "opencode",
        place: Place::Config("opencode"),
        context: Some("AGENTS.md"),
    },
    Home {
        harness: "pi",
        title: "Pi",
        place: home(".pi/agent", "PI_CODING_AGENT_DIR"),
        context: Some("AGENTS.md"),
    },
    Home {
        harness: "qwen-code",
        title: "Qwen Code",
        place: home(".qwen", "QWEN_HOME"),
        context: Some("QWEN.md"),
    },
];

impl Home {
    pub(crate) fn named(harness: &str) -> Option<&'static Home> {
        HOMES.iter().find(|home| home.harness == harness)
    }

    /// The directory, whether it exists or not; `None` if there is no home directory.
    pub(crate) fn dir(&self, env: &Env) -> Option<PathBuf> {
        match self.place {
            Place::Config(name) => Some(env.xdg_config().ok()?.join(name)),
            Place::Home { usual, variable } => {
                let named = variable.and_then(|(name, below)| {
                    let dir = env
                        .text(name)
                        .map_or_else(|| env.os(name).map(PathBuf::from), |text| Some(env.expand(text)))?;
                    Some(if below.is_empty() { dir } else { dir.join(below) })
                });
                named.or_else(|| Some(env.home()?.join(usual)))
            }
        }
    }

    /// Is it used here?
    pub(crate) fn is_here(&self, env: &Env) -> bool {
        self.dir(env).is_some_and(|dir| dir.is_dir())
    }

    /// The file that it reads at the start of every session.
    pub(crate) fn context(&self, env: &Env) -> Option<PathBuf> {
        Some(self.dir(env)?.join(self.context?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::env::pretend;
    use std::path::Path;

    #[test]
    fn a_variable_moves_a_harness() {
        let dir = |harness: &str, vars: &[(&str, &str)]| Home::named(harness).unwrap().dir(&pretend(vars));
        let home = ("HOME", "/h");
        assert_eq!(dir("claude-code", &[home]).unwrap(), Path::new("/h/.claude"));
        assert_eq!(dir("claude-code", &[home, ("CLAUDE_CONFIG_DIR", "~/c")]).unwrap(), Path::new("/h/c"));
        assert_eq!(dir("gemini", &[home, ("GEMINI_CLI_HOME", "/g")]).unwrap(), Path::new("/g/.gemini"));
        assert_eq!(dir("opencode", &[home, ("XDG_CONFIG_HOME", "/x")]).unwrap(), Path::new("/x/opencode"));
        assert_eq!(dir("cursor", &[]), None);
    }
}
