//! `axe`: one name for the family. `axe run x` is `axe-run x`, found beside this program, then on PATH.

use crate::ground::cli::{
    About, Parsed, Program, Shell, Stdout, VERSION, completions, man_page, text, value,
};
use crate::ground::env::Env;
use crate::ground::error::{Error, Result};
use crate::ground::text::nearest;
use crate::program::{axe_agents, axe_config, axe_gc, axe_run};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

pub(crate) const ABOUT: About = About {
    name: "axe",
    caption: "run LLM agents from the shell",
    usage: &["axe COMMAND [ARGUMENTS]", "axe --generate man|bash|zsh|fish [PROGRAM]"],
    commands: &[
        ("run", "run an agent: prompt in, answer out"),
        ("gc", "analyse an agent's log, then trim it"),
        ("agents", "list, show, make and edit agents"),
        ("config", "show where the configuration is, or begin one"),
        ("completions", "print completions for bash, zsh or fish"),
        ("help", "print a command's help"),
        ("version", "print the version"),
    ],
    flags: &[value("generate", "FORM", "print a man page, or completions, of PROGRAM (default: all)")],
    more: "Each command is a program of its own: \"axe run x\" is \"axe-run x\". One that is not beside this \
           program is looked for on PATH, so that axe-anything of your own works as \"axe anything\".\n\n    \
           git log -5 | axe run summariser\n    \
           eval \"$(axe completions bash)\"",
    sections: &[],
};

/// Every program, for help, man pages and completions.
const ALL: &[&About] = &[&ABOUT, &axe_run::ABOUT, &axe_gc::ABOUT, &axe_agents::ABOUT, &axe_config::ABOUT];

#[derive(Debug)]
enum Action {
    Dispatch { command: OsString, arguments: Vec<OsString> },
    Help(String),
    Version,
    Completions(Shell),
    Generate { form: Form, program: Option<String> },
}

#[derive(Debug)]
enum Form {
    Man,
    Completions(Shell),
}

pub fn main() -> ExitCode {
    Program { about: &ABOUT, parse, run }.main()
}

/// The commands that are not programs of their own.
const OWN: &[&str] = &["completions", "help", "version"];

fn parse(mut p: lexopt::Parser) -> Result<Parsed<Action>> {
    use lexopt::prelude::*;
    let mut form = None;
    let mut words = Vec::new();
    while let Some(arg) = p.next()? {
        match arg {
            Short('h') | Long("help") => return Ok(Parsed::Help),
            Short('V') | Long("version") => return Ok(Parsed::Version),
            Long("generate") => form = Some(Form::parse(&text("--generate", p.value()?)?)?),
            Value(word) if form.is_none() && words.is_empty() && !OWN.iter().any(|own| word == *own) => {
                let arguments = p.raw_args()?.collect();
                return Ok(Parsed::Run(Action::Dispatch { command: word, arguments }));
            }
            Value(word) => words.push(text("argument", word)?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(Parsed::Run(match (form, &words[..]) {
        (Some(form), []) => Action::Generate { form, program: None },
        (Some(form), [program]) => Action::Generate { form, program: Some((*program).to_owned()) },
        (None, [] | ["help"]) => return Ok(Parsed::Help),
        (None, ["help", command]) => Action::Help((*command).to_owned()),
        (None, ["version"]) => Action::Version,
        (None, ["completions"]) => return Err(Error::usage("a shell is required: bash, zsh or fish")),
        (None, ["completions", shell]) => match Shell::named(shell) {
            Some(shell) => Action::Completions(shell),
            None => {
                return Err(Error::usage(format!("unknown shell \"{shell}\"")).hint("use bash, zsh or fish"));
            }
        },
        (_, [.., extra]) => return Err(Error::usage(format!("unexpected argument \"{extra}\""))),
    }))
}

impl Form {
    fn parse(text: &str) -> Result<Form> {
        match (text, Shell::named(text)) {
            (_, Some(shell)) => Ok(Form::Completions(shell)),
            ("man", None) => Ok(Form::Man),
            _ => Err(Error::usage(format!("unknown form \"{text}\"")).hint("use man, bash, zsh or fish")),
        }
    }
}

fn run(action: Action, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    match action {
        Action::Dispatch { command, arguments } => dispatch("axe", &command, &arguments, env),
        Action::Version => stdout.line(&format!("axe version {VERSION}")).map(|()| ExitCode::SUCCESS),
        Action::Help(command) => match about(&command) {
            Some(about) => stdout.text(&about.help()).map(|()| ExitCode::SUCCESS),
            None if OWN.contains(&command.as_str()) => stdout.text(&ABOUT.help()).map(|()| ExitCode::SUCCESS),
            None => dispatch("axe", command.as_ref(), &["--help".into()], env),
        },
        Action::Completions(shell) => generate(&Form::Completions(shell), ALL, stdout),
        Action::Generate { form, program: None } => generate(&form, ALL, stdout),
        Action::Generate { form, program: Some(name) } => match about(&name) {
            Some(about) => generate(&form, &[about], stdout),
            None => {
                let names: Vec<_> = ALL.iter().map(|about| about.name).collect();
                Err(Error::usage(format!("no program named \"{name}\""))
                    .hint(format!("use one of {}", names.join(", "))))
            }
        },
    }
}

/// By its whole name, or without `axe-`.
fn about(name: &str) -> Option<&'static About> {
    ALL.iter().copied().find(|about| about.name == name || about.name.strip_prefix("axe-") == Some(name))
}

fn generate(form: &Form, programs: &[&About], stdout: &mut Stdout) -> Result<ExitCode> {
    match form {
        Form::Completions(shell) => stdout.text(&completions(*shell, programs))?,
        Form::Man => {
            for about in programs {
                stdout.text(&man_page(about, VERSION))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Becomes `FAMILY-COMMAND`, with its exit code, its signals and its streams.
fn dispatch(family: &str, command: &std::ffi::OsStr, arguments: &[OsString], env: &Env) -> Result<ExitCode> {
    let unknown = || {
        let name = command.to_string_lossy();
        let error = Error::usage(format!("unknown command \"{}\"", name.escape_debug()));
        match nearest(&name, ABOUT.commands.iter().map(|(name, _)| *name)) {
            Some(near) => error.hint(format!("did you mean \"{near}\"?")),
            None => error.hint(format!("see them with: {family} help")),
        }
    };
    let mut file = OsString::from(format!("{family}-"));
    file.push(command);
    file.push(std::env::consts::EXE_SUFFIX);
    if command.is_empty() || Path::new(&file).components().count() != 1 {
        return Err(unknown());
    }
    let program = find(&file, env).ok_or_else(unknown)?;
    become_program(Command::new(&program).args(arguments))
        .map_err(|e| Error::io(format!("cannot run \"{}\": {e}", program.display())))
}

fn find(file: &std::ffi::OsStr, env: &Env) -> Option<PathBuf> {
    // Through a symlink too: a profile or ~/bin may hold only `axe` itself.
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let real =
        own.and_then(|path| path.canonicalize().ok()).and_then(|path| path.parent().map(Path::to_path_buf));
    let path = env.os("PATH").map(std::env::split_paths).into_iter().flatten();
    beside.into_iter().chain(real).chain(path).map(|dir| dir.join(file)).find(|path| is_program(path))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(unix)]
fn become_program(command: &mut Command) -> std::io::Result<ExitCode> {
    Err(std::os::unix::process::CommandExt::exec(command))
}

#[cfg(not(unix))]
fn become_program(command: &mut Command) -> std::io::Result<ExitCode> {
    let status = command.status()?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}
