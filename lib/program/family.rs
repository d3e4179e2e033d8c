//! A dispatcher: one name for a family of programs. `axe run x` is `axe-run x`, `memory list` is `memory-list`.

use crate::base::cli::{
    About, Arguments, Manual, Shell, Stdout, VERSION, completions, man_page, manual_page, text,
};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::lookup::{is_program, on_path};
use crate::base::text::nearest;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

pub(crate) struct Family {
    /// The dispatcher's own. Its commands are what a wrong one is held against.
    pub(crate) about: &'static About,
    /// Every program, for help, man pages and completions; the dispatcher too.
    pub(crate) programs: &'static [&'static About],
    /// The page of section 7, called `FAMILY.7`.
    pub(crate) manual: Manual,
    /// Further names of commands: `("generate-agents-md", "agents-md")`.
    pub(crate) other_names: &'static [(&'static str, &'static str)],
}

#[derive(Debug)]
pub(crate) enum FamilyAction {
    Dispatch { command: OsString, arguments: Vec<OsString> },
    Help(String),
    Version,
    Completions(Shell),
    Generate { form: Form, program: Option<String> },
}

#[derive(Debug)]
pub(crate) enum Form {
    Man,
    Completions(Shell),
}

/// The commands that are not programs of their own.
const OWN: &[&str] = &["completions", "help", "version"];

pub(crate) fn parse(p: &mut Arguments) -> Result<FamilyAction> {
    use lexopt::prelude::*;
    let mut form = None;
    let mut words = Vec::new();
    while let Some(arg) = p.next()? {
        match arg {
            Long("generate") => form = Some(Form::parse(&p.text()?)?),
            Value(word) if form.is_none() && words.is_empty() && !OWN.iter().any(|own| word == *own) => {
                return Ok(FamilyAction::Dispatch { command: word, arguments: p.rest()? });
            }
            Value(word) => words.push(text(word)?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(match (form, &words[..]) {
        (Some(form), []) => FamilyAction::Generate { form, program: None },
        (Some(form), [program]) => FamilyAction::Generate { form, program: Some((*program).to_owned()) },
        (None, []) => FamilyAction::Help("help".to_owned()),
        (None, ["help", command] | [command @ "help"]) => FamilyAction::Help((*command).to_owned()),
        (None, ["version"]) => FamilyAction::Version,
        (None, ["completions"]) => return Err(Error::usage("a shell is required: bash, zsh or fish")),
        (None, ["completions", shell]) => match Shell::named(shell) {
            Some(shell) => FamilyAction::Completions(shell),
            None => {
                return Err(Error::usage(format!("unknown shell \"{shell}\"")).hint("use bash, zsh or fish"));
            }
        },
        (_, [.., extra]) => return Err(Error::usage(format!("unexpected argument \"{extra}\""))),
    })
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

impl Family {
    pub(crate) fn run(&self, action: FamilyAction, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
        let name = self.about.name;
        match action {
            FamilyAction::Dispatch { command, arguments } => self.dispatch(&command, &arguments, env),
            FamilyAction::Version => {
                stdout.line(&format!("{name} version {VERSION}")).map(|()| ExitCode::SUCCESS)
            }
            FamilyAction::Help(command) => match self.about_of(&command) {
                Some(about) => stdout.text(&about.help()).map(|()| ExitCode::SUCCESS),
                None if OWN.contains(&command.as_str()) => {
                    stdout.text(&self.about.help()).map(|()| ExitCode::SUCCESS)
                }
                None => self.dispatch(command.as_ref(), &["--help".into()], env),
            },
            FamilyAction::Completions(shell) => generate(&Form::Completions(shell), self.programs, stdout),
            FamilyAction::Generate { form: Form::Man, program: None } => {
                generate(&Form::Man, self.programs, stdout)?;
                self.print_manual(stdout)
            }
            FamilyAction::Generate { form: Form::Man, program: Some(page) }
                if page == format!("{name}.7") =>
            {
                self.print_manual(stdout)
            }
            FamilyAction::Generate { form, program: None } => generate(&form, self.programs, stdout),
            FamilyAction::Generate { form, program: Some(program) } => match self.about_of(&program) {
                Some(about) => generate(&form, &[about], stdout),
                None => {
                    let names: Vec<_> = self.programs.iter().map(|about| about.name).collect();
                    let manual =
                        if matches!(form, Form::Man) { format!(", {name}.7") } else { String::new() };
                    Err(Error::usage(format!("no program named \"{program}\""))
                        .hint(format!("use one of {}{manual}", names.join(", "))))
                }
            },
        }
    }

    fn print_manual(&self, stdout: &mut Stdout) -> Result<ExitCode> {
        stdout.text(&manual_page(&self.manual, self.programs, VERSION)).map(|()| ExitCode::SUCCESS)
    }

    /// By its whole name, without the family's, or by another name.
    fn about_of(&self, name: &str) -> Option<&'static About> {
        let name = self.real_name(name);
        let is_meant = |about: &&&About| {
            let command = about.name.strip_prefix(self.about.name).and_then(|rest| rest.strip_prefix('-'));
            about.name == name || command == Some(name)
        };
        self.programs.iter().find(is_meant).copied()
    }

    fn real_name<'a>(&self, name: &'a str) -> &'a str {
        self.other_names.iter().find(|(other, _)| *other == name).map_or(name, |(_, real)| real)
    }

    /// Becomes `FAMILY-COMMAND`, with its exit code, its signals and its streams.
    fn dispatch(&self, command: &OsStr, arguments: &[OsString], env: &Env) -> Result<ExitCode> {
        let unknown = || {
            let name = command.to_string_lossy();
            let error = Error::usage(format!("unknown command \"{}\"", name.escape_debug()));
            match nearest(&name, self.about.commands.iter().map(|(name, _)| *name)) {
                Some(near) => error.hint(format!("did you mean \"{near}\"?")),
                None => error.hint(format!("see them with: {} help", self.about.name)),
            }
        };
        let mut file = OsString::from(format!("{}-", self.about.name));
        file.push(command.to_str().map_or(command, |name| self.real_name(name).as_ref()));
        file.push(std::env::consts::EXE_SUFFIX);
        if command.is_empty() || Path::new(&file).components().count() != 1 {
            return Err(unknown());
        }
        let program = find(&file, env).ok_or_else(unknown)?;
        become_program(Command::new(&program).args(arguments))
            .map_err(|e| Error::io(format!("cannot run \"{}\": {e}", program.display())))
    }
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

fn find(file: &OsStr, env: &Env) -> Option<PathBuf> {
    // Through a symlink too: a profile or ~/bin may hold only `axe` itself.
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let real =
        own.and_then(|path| path.canonicalize().ok()).and_then(|path| path.parent().map(Path::to_path_buf));
    let ours = beside.into_iter().chain(real).map(|dir| dir.join(file)).find(|path| is_program(path));
    ours.or_else(|| on_path(file, env))
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
