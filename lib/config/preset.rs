//! LLM commands that are known by name: prompt on stdin, nothing but the answer on stdout, tools off or
//! read-only, no hooks, no session kept where the program can be told so.

use crate::ground::exec::is_assignment;

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

pub(crate) fn preset(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(known, _)| *known == name).map(|(_, command)| *command)
}

/// The program that a shell command starts: its first word after assignments.
pub(crate) fn program(line: &str) -> Option<String> {
    shlex::split(line)?.into_iter().find(|word| !is_assignment(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_no_program() {
        let programs: Vec<_> = PRESETS.iter().filter_map(|(_, line)| program(line)).collect();
        assert_eq!(programs, ["claude", "codex", "gemini", "opencode", "amp", "ollama", "llm", "axe-run"]);
        assert_eq!(program("A=1 B='x y' ./run --a=b").as_deref(), Some("./run"));
        assert_eq!(program("A=1"), None);
        assert_eq!(program("'open"), None);
    }
}
