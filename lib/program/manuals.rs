//! The manual pages of section 7, in the order in which they are listed. `man/` has their text.

use crate::base::cli::Manual;

/// The first page is the family's own.
pub(super) const AXE: &[Manual] = &[
    Manual {
        name: "axe",
        topic: "formats",
        caption: "how an agent runs: files, prompt, log, sub-agents, JSON",
        text: include_str!("../../man/axe.7.md"),
    },
    Manual {
        name: "axe-configuration",
        topic: "configuration",
        caption: "every setting of an agent and of config.toml",
        text: include_str!("../../man/axe-configuration.7.md"),
    },
    Manual {
        name: "axe-pipelines",
        topic: "pipelines",
        caption: "agents in shell pipelines, in CI and on a timer",
        text: include_str!("../../man/axe-pipelines.7.md"),
    },
    Manual {
        name: "axe-security",
        topic: "security",
        caption: "what the toolkit trusts, what leaves the machine, what a model can do",
        text: include_str!("../../man/axe-security.7.md"),
    },
    Manual {
        name: "axe-installation",
        topic: "installation",
        caption: "how to install the programs, their manual pages and completions",
        text: include_str!("../../man/axe-installation.7.md"),
    },
    Manual {
        name: "axe-comparison",
        topic: "comparison",
        caption: "the toolkit compared with other programs",
        text: include_str!("../../man/axe-comparison.7.md"),
    },
];

/// The first page is the family's own.
pub(super) const MEMORY: &[Manual] = &[
    Manual {
        name: "memory",
        topic: "formats",
        caption: "files and formats: queue, notes, AGENTS.md, prompts and replies",
        text: include_str!("../../man/memory.7.md"),
    },
    Manual {
        name: "memory-configuration",
        topic: "configuration",
        caption: "every setting of config.json, and which file is used",
        text: include_str!("../../man/memory-configuration.7.md"),
    },
    Manual {
        name: "memory-hooks",
        topic: "hooks",
        caption: "hooks of coding agents that queue sessions and recall notes",
        text: include_str!("../../man/memory-hooks.7.md"),
    },
    Manual {
        name: "memory-pipelines",
        topic: "pipelines",
        caption: "how notes are made and kept in order; timers; shell pipelines",
        text: include_str!("../../man/memory-pipelines.7.md"),
    },
];
