//! `memory-config`: show the configuration and where each value comes from, or write a first file.

mod init;

use crate::base::cli::{self, About, Args, Context, ExitCode, FlagRule, Words, flag, path};
use crate::base::error::Result;
use crate::base::stderr::line;
use crate::base::text::one_line;
use crate::config::memory::search::{files, users_own};
use crate::config::memory::settings;
use crate::config::memory::settings::{Setting, Settings};
use crate::config::preset::of_path;
use serde_json::json;
use std::collections::BTreeMap;

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
        path("config", "FILE", "use this file instead of those below"),
        flag("yes", "init: write the file and install the hooks without asking"),
        flag("timers", "init: install the timers, too"),
        flag("json", "show: one JSON object, key by key"),
    ],
    words: Words::Command(0),
    rules: &[
        FlagRule::Needs(&["--json"], &["show"], "is only for show", ""),
        FlagRule::Needs(&["--yes", "--timers"], &["init"], "is only for init", ""),
    ],
    text: include_str!("memory_config.md"),
    ..About::BLANK
};

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    match args.words()[..] {
        ["init"] => init::run(args, cx),
        ["path"] => print_path(args, cx),
        _ => show(args, cx),
    }
}

/// Does not read the file: it may be wrong, and its path wanted to correct it.
fn print_path(args: &Args, cx: &mut Context) -> Result<()> {
    let files = files(args.path("config"), &cx.env)?;
    if let Some(untrusted) = &files.untrusted {
        line(&format!("\"{}\" is not trusted, and only lowers caps of:", untrusted.display()));
    }
    let path = match files.main {
        Some(main) => main,
        None => {
            line("there is no file yet, so the defaults are used; write one with: memory-config init");
            users_own(&cx.env)?
        }
    };
    cx.stdout.line(&path.display().to_string())
}

/// The preset that a command given by its path gets its arguments from, and the command with them.
fn preset_of_path(settings: &Settings) -> Option<(String, String)> {
    let presets = serde_json::from_value(settings.get("llm.presets")?.value.clone()).ok()?;
    of_path(settings.get("llm.command")?.value.as_str()?, &presets)
}

/// Aligned for people, separated by tabs for programs.
fn show(args: &Args, cx: &mut Context) -> Result<()> {
    let settings = settings(args.path("config"), &cx.env, &cx.reporter)?;
    if let Some((preset, command)) = preset_of_path(&settings) {
        line(&format!("llm.command is the program of preset \"{preset}\" and runs as: {command}"));
    }
    if cx.json {
        let shown = |setting: &Setting| {
            (setting.key.clone(), json!({"value": setting.value, "source": setting.source}))
        };
        return cx.stdout.json(&settings.all.iter().map(shown).collect::<BTreeMap<_, _>>());
    }
    let whole = |text: &str| one_line(text, usize::MAX);
    let shown = |s: &Setting| [whole(&s.key), whole(&s.value.to_string()), whole(&s.source)];
    let rows: Vec<[String; 3]> = settings.all.iter().map(shown).collect();
    let is_table = cx.stdout.is_terminal();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (keys, values) = if is_table { (width(0), width(1).min(50)) } else { (0, 0) };
    let gap = if is_table { "  " } else { "\t" };
    for [key, value, source] in &rows {
        cx.stdout.line(&format!("{key:keys$}{gap}{value:values$}{gap}{source}"))?;
    }
    Ok(())
}
