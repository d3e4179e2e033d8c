//! `memory`: one name for the family. `memory list` is `memory-list`, found beside this program, then on PATH.

use crate::base::cli::{About, Manual, Program, Stdout, value};
use crate::base::env::Env;
use crate::base::error::Result;
use crate::program::family::{self, Action, Family};
use crate::program::{
    memory_agents_md, memory_capture, memory_config, memory_consolidate, memory_defrag, memory_doctor,
    memory_install_cron, memory_list, memory_read, memory_remove, memory_uninstall_cron, memory_update,
};
use std::process::ExitCode;

pub(crate) const ABOUT: About = About {
    name: "memory",
    caption: "what agents learn, as notes that find their way back",
    usage: &["memory COMMAND [ARGUMENTS]", "memory --generate man|bash|zsh|fish [PROGRAM]"],
    commands: &[
        ("capture", "queue a note or a session"),
        ("consolidate", "make notes of what waits in the queue"),
        ("defrag", "put the notes in order, then refresh AGENTS.md"),
        ("agents-md", "write notes into AGENTS.md files"),
        ("list", "list notes, or search them"),
        ("read", "print notes, and count that they were read"),
        ("update", "change a note"),
        ("remove", "move notes to the archive, or delete them"),
        ("doctor", "find what is wrong, and mend what is safe to"),
        ("config", "show the configuration, or begin one"),
        ("install-cron", "run consolidation and defrag on a timer"),
        ("uninstall-cron", "remove those timers"),
        ("completions", "print completions for bash, zsh or fish"),
        ("help", "print a command's help"),
        ("version", "print the version"),
    ],
    flags: &[value("generate", "FORM", "print a man page, or completions, of PROGRAM (default: all)")],
    more: "Each command is a program of its own: \"memory list\" is \"memory-list\". One that is not beside \
           this program is looked for on PATH, so that memory-anything of your own works as \"memory \
           anything\".\n\n    \
           memory capture --direct --title Ports --body \"The dev server has 8081.\"\n    \
           memory list --query port --json | memory read -\n    \
           memory --generate man memory.7 | man -l -     # files, formats, pipelines",
    sections: &[],
};

const FAMILY: Family = Family {
    about: &ABOUT,
    programs: &[
        &ABOUT,
        &memory_capture::ABOUT,
        &memory_consolidate::ABOUT,
        &memory_defrag::ABOUT,
        &memory_agents_md::ABOUT,
        &memory_list::ABOUT,
        &memory_read::ABOUT,
        &memory_update::ABOUT,
        &memory_remove::ABOUT,
        &memory_doctor::ABOUT,
        &memory_config::ABOUT,
        &memory_install_cron::ABOUT,
        &memory_uninstall_cron::ABOUT,
    ],
    manual: Manual {
        name: "memory",
        caption: "files, formats and pipelines of the memory programs",
        text: include_str!("../../man/memory.7.md"),
    },
    other_names: &[("generate-agents-md", "agents-md")],
};

pub fn main() -> ExitCode {
    Program { about: &ABOUT, parse: family::parse, run }.main()
}

fn run(action: Action, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    FAMILY.run(action, env, stdout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::memory::settings::{SETTINGS, Settings, ValueKind};
    use serde_json::Value;

    #[test]
    fn the_manual_names_every_setting_with_its_range_and_default() {
        let known: Vec<&str> = SETTINGS.iter().map(|known| known.key).collect();
        assert_eq!(FAMILY.manual.terms("CONFIG.JSON"), known);
        let defaults = Settings::defaults();
        for known in SETTINGS {
            let text = FAMILY.manual.text.split_once(&format!("\n- `{}`: ", known.key)).unwrap().1;
            let text = text.split("\n- ").next().unwrap().replace('\n', " ");
            let default = &defaults.get(known.key).unwrap().value;
            let expected = match (known.kind, default) {
                (ValueKind::Number { least, most }, default) => {
                    format!("{least} to {most}, default {default}")
                }
                (_, Value::String(default)) => format!("efault: {default}"),
                // Depends on the home directory.
                (ValueKind::Directory, _) => "Default: ~/.local/share/agent-memory".to_owned(),
                (_, Value::Null) => "efault: null".to_owned(),
                (_, default) => format!("default {default}"),
            };
            assert!(text.contains(&expected), "{}: {expected}\n{text}", known.key);
        }
    }
}
