//! `axe-config`: show where the configuration is, or create one.

use crate::base::cli::{About, Arguments, Program, Stdout, text};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::config::scaffold;
use std::io;
use std::process::ExitCode;

pub(super) const ABOUT: About = About {
    name: "axe-config",
    caption: "show where the configuration is, or create one",
    usage: &["axe-config path", "axe-config init"],
    commands: &[
        ("path", "print the configuration directory"),
        ("init", "create agents/, skills/sample/SKILL.md and config.toml; keep what exists"),
    ],
    flags: &[],
    more: "The directory is $XDG_CONFIG_HOME/axe, else ~/.config/axe (on macOS ~/Library/Application \
           Support/axe). config.toml is readable only by its owner, because it may contain keys.\n\n    ls \"$(axe-config path)/agents\"",
    sections: &[],
};

#[derive(Debug)]
enum Action {
    Path,
    Init,
}

pub fn main() -> ExitCode {
    Program { about: &ABOUT, parse, run }.main()
}

fn parse(p: &mut Arguments) -> Result<Action> {
    use lexopt::prelude::*;
    let mut words = Vec::new();
    while let Some(arg) = p.next()? {
        match arg {
            Value(word) => words.push(text(word)?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["path"] => Ok(Action::Path),
        ["init"] => Ok(Action::Init),
        [] => Err(Error::usage("a command is required: path or init")),
        ["path" | "init", extra, ..] => Err(Error::unexpected(extra)),
        [unknown, ..] => Err(Error::usage(format!("unknown command \"{unknown}\"")).hint("use path or init")),
    }
}

fn run(action: Action, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    let dir = env.config_dir()?;
    if matches!(action, Action::Init) {
        let sample = dir.join("skills").join("sample");
        file::make_dir(&dir.join("agents"))?;
        file::make_dir(&sample)?;
        for (path, content, mode) in [
            (sample.join("SKILL.md"), scaffold::SKILL, 0o644),
            (dir.join("config.toml"), scaffold::CONFIG, 0o600),
        ] {
            match file::create(&path, content.as_bytes(), mode) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e.into()),
                _ => {}
            }
        }
    }
    stdout.line(&dir.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}
