//! `memory`: the dispatcher. `memory list` is `memory-list`, found beside this program, then on PATH.

use crate::base::cli::{self, About, Args, Context, ExitCode, Words, value};
use crate::base::error::Result;
use crate::program::family::{Family, OWN, color};
use crate::program::{
    manuals, memory_agents_md, memory_capture, memory_config, memory_consolidate, memory_defrag,
    memory_doctor, memory_edit, memory_import, memory_install_cron, memory_install_hooks, memory_list,
    memory_mcp, memory_page, memory_read, memory_recall, memory_remove, memory_review, memory_share,
    memory_status, memory_sync, memory_uninstall_cron, memory_uninstall_hooks, memory_update, values,
};

const ABOUT: About = About {
    name: "memory",
    caption: "keep what agents learn, and show it to them again",
    usage: &["memory COMMAND [ARGUMENTS]", "memory --generate man|bash|zsh|fish [PROGRAM]"],
    commands: &[
        ("status", "show how things stand, and what to do next"),
        ("capture", "queue a note or a session"),
        ("consolidate", "turn the queue into notes"),
        ("import", "turn CLAUDE.md, AGENTS.md and similar files into notes"),
        ("defrag", "reorganise the notes, then refresh AGENTS.md"),
        ("agents-md", "write notes into AGENTS.md files"),
        ("list", "list notes, or search them"),
        ("read", "print notes and record that they were read"),
        ("recall", "print what a session here should know"),
        ("page", "write the notes to one HTML page"),
        ("mcp", "serve the notes to an MCP client"),
        ("update", "change a note"),
        ("edit", "change a note in your editor"),
        ("remove", "move notes to the archive, or delete them"),
        ("review", "accept or reject changes that wait for you"),
        ("share", "write notes as files of the repository"),
        ("sync", "share the notes with your other machines"),
        ("doctor", "find problems and fix the safe ones"),
        ("config", "show the configuration, or create one"),
        ("install-cron", "run consolidation and defrag on a timer"),
        ("uninstall-cron", "remove those timers"),
        ("install-hooks", "let the coding agents capture and recall"),
        ("uninstall-hooks", "remove those hooks"),
        ("completions", "print completions for bash, zsh or fish"),
        ("help", "print the help of a command, or a manual"),
        ("version", "print the version"),
    ],
    aliases: &[
        ("add", "capture"),
        ("ls", "list"),
        ("search", "list"),
        ("show", "read"),
        ("rm", "remove"),
        ("generate-agents-md", "agents-md"),
    ],
    flags: &[value("generate", "FORM", "print a man page, or completions, of PROGRAM (default: all)")],
    words: Words::Program(OWN),
    text: include_str!("memory.md"),
    ..About::BLANK
};

const FAMILY: Family = Family {
    about: &ABOUT,
    programs: &[
        &ABOUT,
        &memory_status::ABOUT,
        &memory_capture::ABOUT,
        &memory_consolidate::ABOUT,
        &memory_import::ABOUT,
        &memory_defrag::ABOUT,
        &memory_agents_md::ABOUT,
        &memory_list::ABOUT,
        &memory_read::ABOUT,
        &memory_recall::ABOUT,
        &memory_page::ABOUT,
        &memory_mcp::ABOUT,
        &memory_update::ABOUT,
        &memory_edit::ABOUT,
        &memory_remove::ABOUT,
        &memory_review::ABOUT,
        &memory_share::ABOUT,
        &memory_sync::ABOUT,
        &memory_doctor::ABOUT,
        &memory_config::ABOUT,
        &memory_install_cron::ABOUT,
        &memory_uninstall_cron::ABOUT,
        &memory_install_hooks::ABOUT,
        &memory_uninstall_hooks::ABOUT,
    ],
    manuals: manuals::MEMORY,
    other_manuals: manuals::AXE,
    values: values::MEMORY,
};

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<ExitCode> {
    let is_plain = args.words().is_empty() && !args.has("generate");
    if is_plain && cx.stdout.is_terminal() && FAMILY.find("status", &cx.env).is_some() {
        return FAMILY.dispatch("status".as_ref(), color(args).as_slice(), &cx.env);
    }
    FAMILY.run(args, cx)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::cli::About;
    use crate::config::memory::settings::{SETTINGS, Settings, ValueKind, replaced};
    use crate::harness::HARNESSES;
    use crate::harness::spec::{CaptureSpec, Install};
    use crate::program::{memory_capture, memory_install_hooks, memory_recall};
    use serde_json::Value;

    #[test]
    fn every_program_is_a_command() {
        for program in &FAMILY.programs[1..] {
            let name = program.name.strip_prefix("memory-").unwrap();
            assert!(ABOUT.commands.iter().any(|(command, _)| *command == name), "{name}");
        }
    }

    #[test]
    fn the_manual_names_every_setting_with_its_range_and_default() {
        let current = || SETTINGS.iter().filter(|known| replaced(known.key).is_none());
        let known: Vec<&str> = current().map(|known| known.key).collect();
        let manual = FAMILY.manuals.iter().find(|manual| manual.topic == "configuration").unwrap();
        assert_eq!(manual.terms("CONFIG.JSON"), known);
        let defaults = Settings::defaults();
        for known in current() {
            let text = manual.text.split_once(&format!("\n- `{}`: ", known.key)).unwrap().1;
            let text = text.split("\n- ").next().unwrap().replace('\n', " ");
            let default = &defaults.get(known.key).unwrap().value;
            let expected = match (known.kind, default) {
                (ValueKind::Number(least, most), default) => {
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

    /// What a new harness has to be written into, besides its own file.
    #[test]
    fn the_texts_name_every_harness() {
        let read = |path: &str| fs_err::read_to_string(path).unwrap();
        let (readme, hooks, notes) =
            (read("README.md"), read("man/memory-hooks.7.md"), read("man/memory.7.md"));
        let text = |about: &About| about.text.replace('\n', " ");
        let (recall, capture, install) =
            (text(&memory_recall::ABOUT), text(&memory_capture::ABOUT), text(&memory_install_hooks::ABOUT));
        let mut missing = Vec::new();
        for spec in HARNESSES {
            let name = spec.name;
            let mut wants = |is_there: bool, place: &str| {
                if !is_there {
                    missing.push(format!("{name}: {place}"));
                }
            };
            wants(readme.contains(spec.title), "README.md");
            wants(hooks.contains(&format!("\n- `{}`: ", spec.title)), "a line in man/memory-hooks.7.md");
            wants(notes.contains(name), "man/memory.7.md");
            wants(recall.contains(name), "the help of memory-recall");
            wants(capture.contains(spec.title), "the help of memory-capture");
            if let CaptureSpec::Hook { .. } = spec.capture {
                let vendor = spec.title.split(' ').next().unwrap();
                wants(capture.contains(vendor), "hooks in the help of memory-capture");
            }
            if !matches!(spec.install, Install::Nothing) {
                wants(install.contains(name), "the help of memory-install-hooks");
            }
        }
        assert!(missing.is_empty(), "these texts do not name a harness: {missing:#?}");
    }
}
