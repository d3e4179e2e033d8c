//! Whose shell this is: a person's, or that of an agent which runs commands.
//!
//! Programs that run agents mark the commands that these start by a variable, whatever its value is. It is a guard against an agent that does
//! what a text told it to do, not against a program that removes the mark.

use crate::base::env::Env;
use crate::harness::HARNESSES;

/// Set for the LLM commands of the memory programs.
pub const OWN_RUN: &str = "AGENT_MEMORY_RUN";

/// The marks of programs without a [`Spec`](crate::harness::spec::Spec), then those that several programs set.
const OTHERS: &[&str] = &[
    "ANTIGRAVITY_AGENT", "AUGMENT_AGENT", "CLINE_ACTIVE", "CRUSH", "GOOSE_TERMINAL", "IFLOW_CLI",
    "OPENCLAW_SHELL", "ROO_ACTIVE", "TRAE_AI_SHELL_ID", "WINDSURF_CASCADE_TERMINAL", "AI_AGENT", "AGENT",
    OWN_RUN,
];

/// An agent's shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentShell {
    /// The name of its program, as sources have it.
    pub agent: &'static str,
    /// The variable that shows it.
    pub variable: &'static str,
}

impl AgentShell {
    /// `None`: nothing shows that it is an agent's.
    pub fn of(env: &Env) -> Option<AgentShell> {
        AgentShell::all().find(|shell| env.is_set(shell.variable))
    }

    /// For each mark the shell that it shows.
    pub fn all() -> impl Iterator<Item = AgentShell> {
        let own = HARNESSES.iter().flat_map(|spec| spec.marks.iter().map(|variable| (spec.name, *variable)));
        let marks = own.chain(OTHERS.iter().map(|variable| ("agent", *variable)));
        marks.map(|(agent, variable)| AgentShell { agent, variable })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::env::pretend;

    #[test]
    fn the_manual_lists_every_mark() {
        let page = include_str!("../../man/memory-configuration.7.md");
        let missing = AgentShell::all().find(|shell| !page.contains(&format!("`{}`", shell.variable)));
        assert_eq!(missing, None);
    }

    #[test]
    fn a_shell_is_a_persons_unless_a_variable_shows_an_agent() {
        let of = |vars: &[(&str, &str)]| AgentShell::of(&pretend(vars)).map(|shell| shell.agent);
        assert_eq!(of(&[("HOME", "/h"), ("CODEX_HOME", "/h/.codex")]), None);
        assert_eq!(of(&[("CLAUDECODE", "")]), Some("claude-code"), "an empty one is a mark, too");
        assert_eq!(of(&[("AGENT", "goose")]), Some("agent"));
        assert_eq!(of(&[("AI_AGENT", "claude-code_2"), ("CLAUDECODE", "1")]), Some("claude-code"));
        assert_eq!(of(&[("CODEX_SANDBOX_NETWORK_DISABLED", "1")]), Some("codex"));
        assert_eq!(of(&[("AI_AGENT", "goose")]), Some("agent"));
        assert_eq!(of(&[("AGENT_MEMORY_RUN", "1")]), Some("agent"));
    }
}
