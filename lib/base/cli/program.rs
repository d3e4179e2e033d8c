//! The entry point of every program: a command line in, an exit code out.

use crate::base::cli::about::About;
use crate::base::cli::args::{Args, Asked};
use crate::base::cli::paint::is_colored;
use crate::base::cli::reporter::Reporter;
use crate::base::cli::stdout::Stdout;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::{signal, stderr};
use serde::Serialize;
use std::process::{ExitCode, Termination};

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a program works with, beside its arguments.
pub struct Context {
    pub env: Env,
    pub stdout: Stdout,
    pub reporter: Reporter,
    /// Its name.
    pub program: &'static str,
    /// With `--json`, results and errors are JSON.
    pub json: bool,
}

impl Context {
    /// From here on a signal ends the program and its commands in good order.
    pub fn watch_signals(&self) {
        signal::watch(self.program, self.json);
    }

    /// A line on stderr, after the program's name.
    pub fn say(&self, text: &str) {
        say(self.program, text);
    }

    /// Prints a result: as JSON, or its line.
    pub fn print(&mut self, value: &impl Serialize, line: &str) -> Result<()> {
        if self.json { self.stdout.json(value) } else { self.stdout.line(line) }
    }

    /// The last of several errors is the program's own; those before it are warnings.
    pub fn last_of(&self, errors: impl IntoIterator<Item = Error>) -> Result<()> {
        let mut last = Ok(());
        for error in errors {
            if let Err(earlier) = std::mem::replace(&mut last, Err(error)) {
                self.reporter.warn(&earlier.line());
            }
        }
        last
    }

    /// Does `work` for each, and carries on after an error unless stdout itself fails. All errors are printed; the last
    /// one is the program's own.
    pub fn each<I>(
        &mut self,
        all: impl IntoIterator<Item = I>,
        mut work: impl FnMut(I, &mut Context) -> Result<()>,
    ) -> Result<()> {
        let mut last = Ok(());
        for one in all {
            let done = work(one, self);
            if self.stdout.is_broken() {
                return done;
            }
            if done.is_err()
                && let Err(earlier) = std::mem::replace(&mut last, done)
            {
                print_error(self.program, self.json, &earlier);
            }
        }
        last
    }
}

/// Runs a program: `run` does its work.
pub fn main<T: Termination>(about: &'static About, run: fn(&Args, &mut Context) -> Result<T>) -> ExitCode {
    main_or(about, run, |_, error| Err(error))
}

/// The same for a program that may forgive a wrong command line.
pub fn main_or<T: Termination>(
    about: &'static About,
    run: fn(&Args, &mut Context) -> Result<T>,
    if_wrong: fn(&Args, Error) -> Result<T>,
) -> ExitCode {
    let (args, asked) = Args::parse(about, lexopt::Parser::from_env());
    let json = about.flag("json").is_some() && args.has("json");
    let mut stdout = Stdout::open();
    let (result, flushed) = match asked {
        Asked::Help => (stdout.text(&about.help()).map(|()| ExitCode::SUCCESS), stdout.flush()),
        Asked::Version => {
            (stdout.line(&format!("{} {VERSION}", about.name)).map(|()| ExitCode::SUCCESS), stdout.flush())
        }
        Asked::Wrong(error) => (if_wrong(&args, error).map(T::report), Ok(())),
        // Its timers, hooks, process groups and modes of files are those of Unix.
        Asked::Run if cfg!(not(unix)) && about.name.starts_with("memory") => {
            (Err(Error::config("the memory programs run on Unix only").hint("on Windows, use WSL")), Ok(()))
        }
        Asked::Run => match Env::read() {
            Err(error) => (Err(error), Ok(())),
            Ok(env) => {
                stdout.is_colored = is_colored(args.color(), &env);
                let reporter = Reporter::new(false);
                let mut context = Context { env, stdout, reporter, program: about.name, json };
                // Flushed after it, in any case.
                (run(&args, &mut context).map(T::report), context.stdout.flush())
            }
        },
    };
    // The error of the run says more than an error of stdout that it may have caused.
    match result.and_then(|code| flushed.map(|()| code)) {
        Ok(code) => {
            Reporter::kept().iter().for_each(|warning| stderr::line(warning));
            code
        }
        Err(error) => {
            print_error(about.name, json, &error);
            ExitCode::from(error.exit_code())
        }
    }
}

fn print_error(program: &str, json: bool, error: &Error) {
    if json { stderr::line(&error.json(Reporter::kept())) } else { say(program, &error.line()) }
}

/// A line on stderr, after the program's name.
pub fn say(program: &str, text: &str) {
    stderr::line(&format!("{program}: {text}"));
}
