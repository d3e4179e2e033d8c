//! Which commands in other programs' settings are ours.

use crate::base::command_line::is_assignment;
use crate::base::text::{find_whole, is_word};
use crate::harness::HARNESSES;
use crate::harness::spec::{HookSettings, Install, Spec};
use std::path::Path;

/// What a hook of ours runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookProgram {
    Capture,
    Recall,
}

impl HookProgram {
    pub const ALL: [HookProgram; 2] = [HookProgram::Capture, HookProgram::Recall];

    pub fn name(self) -> &'static str {
        match self {
            HookProgram::Capture => "memory-capture",
            HookProgram::Recall => "memory-recall",
        }
    }
}

const OR_TRUE: &str = " || true";

/// The ends of our commands. Those of most harnesses stay as they are: Codex trusts their text.
pub(super) fn end_of(harness: &str, form: &HookSettings) -> String {
    let or_true = if form.never_fails { OR_TRUE } else { "" };
    format!(" --harness {harness}{or_true}")
}

/// A command of ours that never fails, without the end that sees to it.
fn without_or_true(command: &str) -> Option<&str> {
    let plain = command.strip_suffix(OR_TRUE)?;
    let is_end = |spec: &&'static Spec| match &spec.install {
        Install::Settings(form) => form.never_fails && command.ends_with(&end_of(spec.name, form)),
        Install::Nothing | Install::Files(_) => false,
    };
    HARNESSES.iter().any(is_end).then_some(plain)
}

/// Which of our programs a command runs. `true`: it is that program with flags, whatever its path; `false`: a command of somebody
/// else's that runs it too. `None`: it has nothing to do with us.
pub(super) fn runs(command: &str) -> Option<(HookProgram, bool)> {
    let words = shlex::split(without_or_true(command).unwrap_or(command)).unwrap_or_default();
    let mut words = words.iter().skip_while(|word| is_assignment(word));
    let first = words.next().map(|word| Path::new(word).file_name().unwrap_or_default().to_owned());
    let arguments: Vec<_> = words.collect();
    let is_plain = |word: &&String| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_=./~".contains(c));
    for program in HookProgram::ALL {
        let is_dispatched = arguments.first().is_some_and(|verb| format!("memory-{verb}") == program.name());
        let is_first =
            first.as_ref().is_some_and(|first| first == program.name() || first == "memory" && is_dispatched);
        if is_first || mentions(command, program.name()) {
            return Some((program, is_first && arguments.iter().all(is_plain)));
        }
    }
    None
}

/// The name is a word of the text.
pub(super) fn mentions(text: &str, name: &str) -> bool {
    find_whole(text, name, |c| is_word(c) || c == '-').is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_commands_are_told_by_the_programs_name() {
        let capture = Some((HookProgram::Capture, true));
        for command in [
            "memory-capture --harness claude-code",
            "/opt/axe/bin/memory-capture --harness codex",
            "'/home/ann b/$x;y/memory-capture' --harness gemini",
            "AGENT_MEMORY_CONFIG=/a memory capture --harness=codex",
            "$HOME/bin/memory-capture --config ~/x.json",
            "/a/memory-capture --harness gemini || true",
            "/a/memory-capture --harness copilot || true",
            "/a/memory-capture --harness copilot",
        ] {
            assert_eq!(runs(command), capture, "{command}");
        }
        assert_eq!(runs("/a/memory-recall --harness codex"), Some((HookProgram::Recall, true)));
    }

    #[test]
    fn a_persons_own_command_stays_theirs() {
        for command in [
            "notify-send done; memory-capture --harness claude-code",
            "memory-capture --harness claude-code || true",
            "memory-capture --harness gemini || say it failed",
            "sh -c 'memory-capture --harness codex'",
            "memory-capture --harness codex >/dev/null",
            "memory-capture 'open",
        ] {
            assert_eq!(runs(command), Some((HookProgram::Capture, false)), "{command}");
        }
        for command in ["", "my-memory-capture", "memory-capture2", "memory", "memory list", "echo a"] {
            assert_eq!(runs(command), None, "{command}");
        }
    }
}
