//! `axe`: the dispatcher. `axe run x` is `axe-run x`, found beside this program, then on PATH.

use crate::base::cli::{self, About, Args, Context, ExitCode, Words, value};
use crate::base::error::Result;
use crate::program::family::{Family, OWN};
use crate::program::{axe_agents, axe_config, axe_gc, axe_map, axe_run, axe_runs, manuals, values};

const ABOUT: About = About {
    name: "axe",
    caption: "run LLM agents from the shell",
    usage: &["axe COMMAND [ARGUMENTS]", "axe --generate man|bash|zsh|fish [PROGRAM]"],
    commands: &[
        ("run", "run an agent: prompt in, answer out"),
        ("map", "run an agent for each of many lines"),
        ("gc", "analyse an agent's log, then trim it"),
        ("runs", "list the runs of agents, or sum up what they took"),
        ("agents", "list, show, create and edit agents"),
        ("config", "show where the configuration is, or create one"),
        ("completions", "print completions for bash, zsh or fish"),
        ("help", "print the help of a command, or a manual"),
        ("version", "print the version"),
    ],
    flags: &[value("generate", "FORM", "print a man page, or completions, of PROGRAM (default: all)")],
    words: Words::Program(OWN),
    text: include_str!("axe.md"),
    ..About::BLANK
};

const FAMILY: Family = Family {
    about: &ABOUT,
    programs: &[
        &ABOUT,
        &axe_run::ABOUT,
        &axe_map::ABOUT,
        &axe_gc::ABOUT,
        &axe_runs::ABOUT,
        &axe_agents::ABOUT,
        &axe_config::ABOUT,
    ],
    manuals: manuals::AXE,
    other_manuals: manuals::MEMORY,
    values: values::AXE,
};

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<ExitCode> {
    FAMILY.run(args, cx)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::cli::Manual;
    use crate::config::preset::presets;
    use crate::config::toml_file::Keys;
    use crate::config::{agent, global};

    fn manual(topic: &str) -> &'static Manual {
        FAMILY.manuals.iter().find(|manual| manual.topic == topic).unwrap()
    }

    /// The keys of a file, with their tables before them.
    fn keys(keys: Keys) -> Vec<String> {
        let tables: Vec<&str> = keys.iter().map(|(table, _)| *table).collect();
        let all = keys.iter().flat_map(|(table, keys)| {
            keys.iter()
                .map(move |key| if table.is_empty() { (*key).to_owned() } else { format!("{table}.{key}") })
        });
        let mut all: Vec<String> = all
            .filter(|key| !tables.contains(&key.as_str()))
            .map(|key| key.replace("**", "NAME").replace('*', "NAME"))
            .collect();
        all.sort();
        all
    }

    #[test]
    fn the_manual_names_every_key_and_no_other() {
        for (section, expected) in [("AGENT FILE", keys(agent::KEYS)), ("CONFIG.TOML", keys(global::KEYS))] {
            let mut terms = manual("configuration").terms(section);
            terms.sort();
            assert_eq!(terms, expected, "{section}");
        }
    }

    #[test]
    fn the_manual_has_every_preset() {
        for (name, line) in presets() {
            assert!(manual("formats").text.contains(&format!("\n    {name:<9} {line}\n")), "{name}");
        }
    }
}
