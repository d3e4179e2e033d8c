//! Predefined LLM commands: prompt on stdin, only the answer on stdout, tools off or read-only, no hooks, and no saved
//! session where the program has such an option.

pub(crate) const PRESETS: &[(&str, &str)] = &[
    ("claude", "CLAUDE_CODE_MAX_RETRIES=0 claude -p --safe-mode --no-session-persistence --tools \"\""),
    ("codex", "codex exec --ephemeral --disable hooks -c 'notify=[]' --skip-git-repo-check -s read-only -"),
    ("gemini", "gemini --skip-trust"),
    ("opencode", "opencode run --pure"),
    ("amp", "amp -x"),
    ("ollama", "ollama run llama3"),
    ("llm", "llm"),
    ("axe", "axe-run --timeout 590 librarian"),
];

pub(super) fn preset(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(known, _)| *known == name).map(|(_, command)| *command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::command_line::program;

    #[test]
    fn every_preset_runs_its_program() {
        let programs: Vec<_> = PRESETS.iter().filter_map(|(_, line)| program(line)).collect();
        assert_eq!(programs, ["claude", "codex", "gemini", "opencode", "amp", "ollama", "llm", "axe-run"]);
    }
}
