//! `memory-config`: show the configuration and where each value comes from, or write a first file.

mod init;

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, flag, text, value};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::signal;
use crate::base::stderr::line;
use crate::base::text::one_line;
use crate::config::memory::search::{files, users_own};
use crate::config::memory::settings;
use crate::config::memory::settings::{Setting, Settings};
use crate::config::preset::of_path;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) const ABOUT: About = About {
    name: "memory-config",
    caption: "show or start the memory programs' configuration",
    usage: &[
        "memory-config init [--yes] [--timers] [--config FILE]",
        "memory-config path [--config FILE]",
        "memory-config show [--json] [--config FILE]",
    ],
    commands: &[
        ("path", "print the path of the file in use, or where it would be"),
        ("init", "write a first file, and install hooks and timers"),
        ("show", "print every setting with its value and source"),
    ],
    flags: &[
        value("config", "FILE", "use this file instead of those below"),
        flag("yes", "init: write the file and install the hooks without asking"),
        flag("timers", "init: install the timers, too"),
        flag("json", "show: one JSON object, key by key"),
    ],
    more: "The first of these files is used: --config, $AGENT_MEMORY_CONFIG, ./memory.config.json, \
           $XDG_CONFIG_HOME/agent-memory/config.json (or ~/.config/agent-memory/config.json). \
           Every key has a default; memory(7) describes them.\n\n\
           A ./memory.config.json may be somebody else's. Unless AGENT_MEMORY_TRUST=1 is set, or your own \
           file lists its directory (or a parent) under trustedDirectories, it can only lower the limits for \
           the LLM.\n\n\
           init looks for coding agents by their directories. It proposes their context files as targets and the first \
           LLM command on PATH. On a terminal it asks whether to install hooks and timers. It never overwrites a \
           file, and ends with what the next session will see and what is left to do.\n\n    \
           memory-config show --json | jq -r '.[\"storage.root\"].value'",
    sections: &[],
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Path,
    Init,
    Show,
}

#[derive(Debug)]
struct Args {
    action: Action,
    config: Option<PathBuf>,
    json: bool,
    yes: bool,
    timers: bool,
}

pub fn main() -> ExitCode {
    Program { about: &ABOUT, parse, run }.main()
}

fn parse(p: &mut Arguments) -> Result<Args> {
    use lexopt::prelude::*;
    let (mut config, mut json, mut yes, mut timers) = (None, false, false, false);
    let mut words = Vec::new();
    while let Some(arg) = p.next()? {
        match arg {
            Long("config") => config = Some(p.path()?),
            Long("json") => json = true,
            Long("yes") => yes = true,
            Long("timers") => timers = true,
            Value(word) => words.push(text(word)?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    let action = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["path"] => Action::Path,
        ["init"] => Action::Init,
        ["show"] => Action::Show,
        [] => return Err(Error::usage("a command is required: path, init or show")),
        ["path" | "init" | "show", extra, ..] => {
            return Err(Error::unexpected(extra));
        }
        [unknown, ..] => {
            return Err(Error::usage(format!("unknown command \"{unknown}\"")).hint("use path, init or show"));
        }
    };
    if json && action != Action::Show {
        return Err(Error::usage("option \"--json\" is only for show"));
    }
    for (flag, is_given) in [("--yes", yes), ("--timers", timers)] {
        if is_given && action != Action::Init {
            return Err(Error::usage(format!("option \"{flag}\" is only for init")));
        }
    }
    Ok(Args { action, config, json, yes, timers })
}

fn run(args: Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    let config = args.config.as_deref();
    match args.action {
        Action::Path => path(config, env, stdout)?,
        Action::Init => {
            signal::watch(ABOUT.name, false);
            let args = init::Args { config: args.config, yes: args.yes, timers: args.timers };
            return init::run(&args, env, stdout);
        }
        Action::Show => show(config, args.json, env, stdout)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Does not read the file: it may be wrong, and its path wanted to correct it.
fn path(config: Option<&Path>, env: &Env, stdout: &mut Stdout) -> Result<()> {
    let files = files(config, env)?;
    if let Some(untrusted) = &files.untrusted {
        line(&format!("\"{}\" is not trusted, and only lowers caps of:", untrusted.display()));
    }
    let path = match files.main {
        Some(main) => main,
        None => {
            line("there is no file yet, so the defaults are used; write one with: memory-config init");
            users_own(env)?
        }
    };
    stdout.line(&path.display().to_string())
}

/// The preset that a command given by its path gets its arguments from, and the command with them.
fn preset_of_path(settings: &Settings) -> Option<(String, String)> {
    let presets = serde_json::from_value(settings.get("llm.presets")?.value.clone()).ok()?;
    of_path(settings.get("llm.command")?.value.as_str()?, &presets)
}

/// Aligned for people, separated by tabs for programs.
fn show(config: Option<&Path>, json: bool, env: &Env, stdout: &mut Stdout) -> Result<()> {
    let settings = settings(config, env, &Reporter::new(false))?;
    if let Some((preset, command)) = preset_of_path(&settings) {
        line(&format!("llm.command is the program of preset \"{preset}\" and runs as: {command}"));
    }
    if json {
        let shown = |setting: &Setting| {
            (setting.key.clone(), json!({"value": setting.value, "source": setting.source}))
        };
        return stdout.json(&settings.all.iter().map(shown).collect::<BTreeMap<_, _>>());
    }
    let rows: Vec<_> = settings
        .all
        .iter()
        .map(|s| (s.key.clone(), one_line(&s.value.to_string(), usize::MAX), one_line(&s.source, usize::MAX)))
        .collect();
    let width = |longest: Option<usize>| if stdout.is_terminal() { longest.unwrap_or(0) } else { 0 };
    let keys = width(rows.iter().map(|(key, ..)| key.chars().count()).max());
    let values = width(rows.iter().map(|(_, value, _)| value.chars().count()).max().map(|n| n.min(50)));
    let gap = if stdout.is_terminal() { "  " } else { "\t" };
    for (key, value, source) in rows {
        stdout.line(&format!("{key:keys$}{gap}{value:values$}{gap}{source}"))?;
    }
    Ok(())
}
