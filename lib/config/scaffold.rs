//! The files that `init` writes, for people to fill in. Tests parse them, with and without their comments.

use crate::config::agent::AgentName;

/// The file that `axe agents init` writes: what must be there, and the rest as comments.
pub(crate) fn agent(name: &AgentName) -> String {
    format!(
        r#"# An agent of axe. Run it with: axe run {name}
name = "{}"
description = ""

# Provider and model: anthropic/…, openai/…, ollama/…, a provider of your config.toml,
# or command/claude, command/codex, command/llm … for a program that reads the prompt on stdin.
model = "provider/model-name"

system_prompt = """
"""

# Instructions from a file, relative to the configuration directory.
# skill = "skills/sample/SKILL.md"

# Files that go into the prompt, relative to the working directory. ** spans folders.
# files = ["README.md", "src/**/*.rs"]

# Where files are looked for and commands run. The current directory if not set.
# workdir = ""

# Agents that this one may call.
# sub_agents = []

# [sub_agents_config]
# max_depth = 3     # at most 5
# parallel = true
# timeout = 0       # seconds for one sub-agent, 0: only the run's own

# A log of past runs, of which the newest entries are read before each run.
# [memory]
# enabled = false
# path = ""
# last_n = 10
# max_entries = 100
# max_task_chars = 0

# [params]
# temperature = 0.3
# max_tokens = 4096
"#,
        name.as_str().replace('"', "\\\"")
    )
}

/// The file that `axe config init` writes. Everything in it is a comment.
pub(crate) const CONFIG: &str = r#"# Providers and their keys. The environment wins: ANTHROPIC_API_KEY, OPENAI_API_KEY,
# <PROVIDER>_API_KEY, AXE_<PROVIDER>_BASE_URL.

# [providers.anthropic]
# api_key_file = "~/.config/axe/anthropic.key"

# [providers.openai]
# api_key_command = "pass show openai"

# [providers.ollama]
# base_url = "http://localhost:11434"

# Any service that speaks one of the three formats: model = "openrouter/meta-llama/…"
# [providers.openrouter]
# kind = "openai"
# base_url = "https://openrouter.ai/api"
# api_key = ""

# Any program that reads the prompt on stdin and answers on stdout: model = "mine/any",
# or command/mine. The word after the first slash reaches it as $AXE_MODEL.
# [providers.mine]
# kind = "command"
# command = "claude -p"

# How often a call that failed for a passing reason is tried again. 0: never.
# [retry]
# max = 2

# Calls to models in one run, those of sub-agents included.
# [limits]
# max_calls = 200
"#;

/// `skills/sample/SKILL.md`, by `axe config init`.
pub(crate) const SKILL: &str = "---
name: sample
description: An example of a skill. What stands between the dashes is not sent to the model.
---

# Sample skill

Answer in at most five sentences. Say what you are unsure of.
";
