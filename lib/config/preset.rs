//! Predefined LLM commands: those of coding agents, and of other programs.

use crate::base::command_line::program;
use crate::harness::HARNESSES;
use crate::harness::spec::Preset;
use std::collections::BTreeMap;

const OTHERS: &[Preset] = &[
    Preset { name: "ollama", line: "ollama run llama3", rank: 10 },
    Preset { name: "llm", line: "llm", rank: 11 },
    Preset { name: "axe", line: "axe-run --timeout 590 librarian", rank: 12 },
];

/// Names and lines, by their rank.
pub fn presets() -> Vec<(&'static str, &'static str)> {
    let agents = HARNESSES.iter().filter_map(|spec| spec.preset);
    let mut all: Vec<Preset> = agents.chain(OTHERS.iter().copied()).collect();
    all.sort_by_key(|preset| preset.rank);
    all.into_iter().map(|preset| (preset.name, preset.line)).collect()
}

pub(super) fn preset(name: &str) -> Option<&'static str> {
    presets().into_iter().find(|(known, _)| *known == name).map(|(_, command)| command)
}

/// The preset of a program that is given by its path alone, such as `/usr/local/bin/claude`: its name, and its line with
/// that path. `own` are the user's presets. A program with arguments of its own has no preset.
pub fn of_path(command: &str, own: &BTreeMap<String, String>) -> Option<(String, String)> {
    let [word] = &shlex::split(command)?[..] else { return None };
    let file = word.rsplit_once('/')?.1;
    let own = own.iter().map(|(name, line)| (name.as_str(), line.as_str()));
    let known = own.chain(presets());
    let mut found = known.filter(|(_, line)| program(line).is_some_and(|program| program == file));
    found.find_map(|(name, line)| {
        // The first place where it stands as a word: it may also be part of a variable before it.
        let ends = |text: &str| text.is_empty() || text.starts_with(' ');
        let begins = |text: &str| text.is_empty() || text.ends_with(' ');
        let at = line.match_indices(file).map(|(at, _)| at);
        let mut at = at.filter(|at| begins(&line[..*at]) && ends(&line[at + file.len()..]));
        let at = at.next()?;
        let line = format!("{}{}{}", &line[..at], command.trim(), &line[at + file.len()..]);
        Some((name.to_owned(), line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_runs_its_program() {
        let programs: Vec<_> = presets().into_iter().filter_map(|(_, line)| program(line)).collect();
        assert_eq!(programs, ["claude", "codex", "gemini", "opencode", "amp", "ollama", "llm", "axe-run"]);
    }

    #[test]
    fn a_path_gets_the_flags_of_its_programs_preset() {
        let own = |name: &str, line: &str| BTreeMap::from([(name.to_owned(), line.to_owned())]);
        let none = BTreeMap::new();
        for (command, own, expected) in [
            (
                "/nix/store/x/bin/claude",
                &none,
                Some((
                    "claude",
                    "CLAUDE_CODE_MAX_RETRIES=0 /nix/store/x/bin/claude -p --safe-mode --no-session-persistence --tools \"\"",
                )),
            ),
            ("~/bin/amp", &none, Some(("amp", "~/bin/amp -x"))),
            ("'/a b/axe-run'", &none, Some(("axe", "'/a b/axe-run' --timeout 590 librarian"))),
            ("/b/amp", &own("fast", "A=amp amp -y"), Some(("fast", "A=amp /b/amp -y"))),
            ("/b/mine", &own("m", "mine --quiet"), Some(("m", "/b/mine --quiet"))),
            ("/b/other", &none, None),
            ("/b/amp -x", &none, None),
            ("/b/amp | cat", &none, None),
            ("amp", &none, None),
            ("/b/", &none, None),
        ] {
            let expected = expected.map(|(name, line)| (name.to_owned(), line.to_owned()));
            assert_eq!(of_path(command, own), expected, "{command}");
        }
    }
}
