//! `axe-config`: show where the configuration is, or create one.

use crate::base::cli::{self, About, Args, Context, ExitCode, Words};
use crate::base::error::Result;
use crate::base::file;
use crate::config::scaffold;
use std::io;

pub(super) const ABOUT: About = About {
    name: "axe-config",
    caption: "show where the configuration is, or create one",
    usage: &["axe-config path", "axe-config init"],
    commands: &[
        ("path", "print the configuration directory"),
        ("init", "create agents/, skills/sample/SKILL.md and config.toml; keep what exists"),
    ],
    flags: &[],
    words: Words::Command(0),
    text: include_str!("axe_config.md"),
    ..About::BLANK
};

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    let dir = cx.env.config_dir()?;
    if args.words() == ["init"] {
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
    cx.stdout.line(&dir.display().to_string())
}
