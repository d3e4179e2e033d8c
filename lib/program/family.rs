//! A dispatcher: one name for a family of programs. `axe run x` is `axe-run x`, `memory list` is `memory-list`.

#[cfg(unix)]
use crate::base::cli::hand_on_closed_stdout;
use crate::base::cli::{About, Args, Completer, Context, Manual, VERSION, completer, man_page, manual_page};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::lookup::{self, is_program, on_path};
use crate::base::text::did_you_mean;
use crate::program::values::{self, CompletionKind};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

pub struct Family {
    /// The dispatcher itself. Its commands are the candidates for "did you mean".
    pub(super) about: &'static About,
    /// Every program including the dispatcher, for help, man pages and completions.
    pub(super) programs: &'static [&'static About],
    /// Its pages of section 7, each called `NAME.7`.
    pub(super) manuals: &'static [Manual],
    /// The pages of the other family; `help` finds them too.
    pub(super) other_manuals: &'static [Manual],
    /// What `completions` prints for a shell's completion, besides the scripts.
    pub(super) values: &'static [CompletionKind],
}

/// The commands that are not separate programs.
pub(super) const OWN: &[&str] = &["completions", "help", "version"];

impl Family {
    pub(super) fn run(&self, args: &Args, cx: &mut Context) -> Result<ExitCode> {
        if let Some((command, arguments)) = args.program() {
            let arguments: Vec<OsString> = color(args).into_iter().chain(arguments.iter().cloned()).collect();
            return self.dispatch(command, &arguments, &cx.env);
        }
        let shell = |word: &str, what: &str, forms: &str| {
            completer(word).ok_or_else(|| {
                Error::usage(format!("unknown {what} \"{word}\"")).hint(format!("use {forms}"))
            })
        };
        // Without a shell, a man page.
        let form = args.parsed("generate", |form| match form {
            "man" => Ok(None),
            form => shell(form, "form", "man, bash, zsh or fish").map(Some),
        })?;
        if let ["completions", kind, beginning @ ..] = &args.words()[..]
            && let Some(kind) = self.values.iter().find(|(name, _)| name == kind)
            && beginning.len() < 2
        {
            let beginning = beginning.first().copied().unwrap_or_default();
            return values::print(kind, beginning, cx).map(|()| ExitCode::SUCCESS);
        }
        let text = match (form, &args.words()[..]) {
            (Some(form), []) => self.generate(form, None)?,
            (Some(form), [program]) => self.generate(form, Some(program))?,
            (None, []) => self.about.help(),
            (None, ["help", command] | [command @ "help"]) => match self.help(command) {
                Some(text) => text,
                None => return self.dispatch(command.as_ref(), &["--help".into()], &cx.env),
            },
            (None, ["version"]) => format!("{} version {VERSION}\n", self.about.name),
            (None, ["completions"]) => return Err(Error::usage("a shell is required: bash, zsh or fish")),
            (None, ["completions", shell_name]) => {
                shell(shell_name, "shell", "bash, zsh or fish")?(self.programs, self.programs)
            }
            (_, [.., extra]) => return Err(Error::unexpected(extra)),
        };
        cx.stdout.text(&text).map(|()| ExitCode::SUCCESS)
    }

    /// The help of a command, or a manual.
    fn help(&self, name: &str) -> Option<String> {
        let own = OWN.contains(&name).then_some(self.about);
        let about = self.about_of(name).or(own).map(About::help);
        about.or_else(|| Some(self.manual_of(name)?.text.to_owned()))
    }

    /// Completions, or without a shell man pages, of one program or manual, or of all.
    fn generate(&self, shell: Option<Completer>, name: Option<&str>) -> Result<String> {
        let is_page = |manual: &&Manual| name == Some(&format!("{}.7", manual.name));
        if let Some(manual) = self.manuals.iter().find(is_page).filter(|_| shell.is_none()) {
            return Ok(self.manual_page(manual));
        }
        let about = name.map(|name| self.about_of(name).ok_or_else(|| self.no_program(name, shell)));
        let about = about.transpose()?;
        let programs = about.as_ref().map_or(self.programs, std::slice::from_ref);
        if let Some(complete) = shell {
            return Ok(complete(programs, self.programs));
        }
        let mut pages: String = programs.iter().map(|about| man_page(about, VERSION)).collect();
        if name.is_none() {
            pages.extend(self.manuals.iter().map(|manual| self.manual_page(manual)));
        }
        Ok(pages)
    }

    /// A page of section 7; it refers to the programs and to the other pages.
    fn manual_page(&self, manual: &Manual) -> String {
        let manuals = self.manuals.iter().chain(self.other_manuals).map(|other| (other.name, 7));
        let others = manuals.filter(|(name, _)| *name != manual.name);
        let programs = self.programs.iter().map(|about| (about.name, 1));
        manual_page(manual, programs.chain(others), VERSION)
    }

    /// By its topic, or by the name of its page: `security`, `axe-security`, `axe-security.7`.
    fn manual_of(&self, name: &str) -> Option<&'static Manual> {
        let page = name.strip_suffix(".7").unwrap_or(name);
        let is_meant = |manual: &&Manual| manual.topic == name || manual.name == page;
        self.manuals.iter().chain(self.other_manuals).find(is_meant)
    }

    fn no_program(&self, program: &str, shell: Option<Completer>) -> Error {
        let mut names: Vec<_> = self.programs.iter().map(|about| about.name.to_owned()).collect();
        if shell.is_none() {
            names.extend(self.manuals.iter().map(|manual| format!("{}.7", manual.name)));
        }
        Error::usage(format!("no program named \"{program}\""))
            .hint(format!("use one of {}", names.join(", ")))
    }

    /// By its full name, by the name without the family's, or by an alias.
    fn about_of(&self, name: &str) -> Option<&'static About> {
        let name = self.without_alias(name);
        let is_meant = |about: &&&About| {
            let command = about.name.strip_prefix(self.about.name).and_then(|rest| rest.strip_prefix('-'));
            about.name == name || command == Some(name)
        };
        self.programs.iter().find(is_meant).copied()
    }

    fn without_alias<'a>(&self, name: &'a str) -> &'a str {
        self.about.aliases.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, real)| real)
    }

    /// The program of a command.
    pub(super) fn find(&self, command: impl AsRef<OsStr>, env: &Env) -> Option<PathBuf> {
        find(&self.file_of(command.as_ref()), env)
    }

    fn file_of(&self, command: &OsStr) -> OsString {
        [self.about.name.as_ref(), "-".as_ref(), command, std::env::consts::EXE_SUFFIX.as_ref()]
            .into_iter()
            .collect()
    }

    /// Becomes `FAMILY-COMMAND`, so that its exit code, signals and streams are those of this process.
    pub(super) fn dispatch(&self, command: &OsStr, arguments: &[OsString], env: &Env) -> Result<ExitCode> {
        let unknown = || {
            let name = command.to_string_lossy();
            let names = self.about.commands.iter().chain(self.about.aliases).map(|(name, _)| *name);
            let near = did_you_mean(&name, names);
            Error::usage(format!("unknown command \"{}\"", name.escape_debug()))
                .hint(near.unwrap_or_else(|| format!("see them with: {} help", self.about.name)))
        };
        if command.is_empty() || Path::new(&self.file_of(command)).components().count() != 1 {
            return Err(unknown());
        }
        // A program that a person named so is theirs.
        let of_alias = || self.find(self.without_alias(command.to_str()?), env);
        let program = self.find(command, env).or_else(of_alias).ok_or_else(unknown)?;
        become_program(lookup::command(&program).args(arguments))
            .map_err(|e| Error::io(format!("cannot run \"{}\": {e}", program.display())))
    }
}

/// The family's option, for a program of it.
pub(super) fn color(args: &Args) -> Option<OsString> {
    args.color().map(|color| format!("--color={color}").into())
}

fn find(file: &OsStr, env: &Env) -> Option<PathBuf> {
    // Also through a symlink: a profile or ~/bin may contain only `axe` itself.
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let real =
        own.and_then(|path| path.canonicalize().ok()).and_then(|path| path.parent().map(Path::to_path_buf));
    let ours = beside.into_iter().chain(real).map(|dir| dir.join(file)).find(|path| is_program(path));
    ours.or_else(|| on_path(file, env))
}

#[cfg(unix)]
fn become_program(command: &mut Command) -> std::io::Result<ExitCode> {
    hand_on_closed_stdout();
    Err(std::os::unix::process::CommandExt::exec(command))
}

#[cfg(not(unix))]
fn become_program(command: &mut Command) -> std::io::Result<ExitCode> {
    let status = command.status()?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}
