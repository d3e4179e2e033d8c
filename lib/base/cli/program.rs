//! The entry point of every program: arguments in, exit code out.

use crate::base::cli::about::About;
use crate::base::cli::arguments::{Arguments, Instead};
use crate::base::cli::stdout::Stdout;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::stderr::line;
use crate::base::text::nearest;
use std::process::ExitCode;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) struct Program<A> {
    pub(crate) about: &'static About,
    /// Pure: no files, no environment.
    pub(crate) parse: fn(&mut Arguments) -> Result<A>,
    pub(crate) run: fn(A, &Env, &mut Stdout) -> Result<ExitCode>,
}

impl<A> Program<A> {
    pub(crate) fn main(self) -> ExitCode {
        let mut stdout = Stdout::open();
        let result = self.go(&mut stdout);
        // The error of the run says more than an error of stdout that it may have caused.
        let flushed = stdout.flush();
        match result.and_then(|code| flushed.map(|()| code)) {
            Ok(code) => code,
            Err(error) => self.report(error),
        }
    }

    fn go(&self, stdout: &mut Stdout) -> Result<ExitCode> {
        let mut arguments = Arguments::from(lexopt::Parser::from_env());
        let args = (self.parse)(&mut arguments);
        match arguments.instead() {
            Some(Instead::Help) => stdout.text(&self.about.help())?,
            Some(Instead::Version) => stdout.line(&format!("{} {VERSION}", self.about.name))?,
            None => return (self.run)(args?, &Env::read()?, stdout),
        }
        Ok(ExitCode::SUCCESS)
    }

    fn report(&self, error: Error) -> ExitCode {
        let error = match error.unknown_flag().and_then(|flag| self.nearest_flag(flag)) {
            Some(near) => error.hint(format!("did you mean \"{near}\"?")),
            None => error,
        };
        if self.wants_json() {
            line(&error.json());
        } else {
            line(&format!("{}: {}", self.about.name, error.line()));
        }
        ExitCode::from(error.exit_code())
    }

    fn nearest_flag(&self, wrong: &str) -> Option<String> {
        let flags: Vec<String> = self.about.all_flags().map(|flag| format!("--{}", flag.long)).collect();
        nearest(wrong, flags.iter().map(String::as_str)).map(str::to_owned)
    }

    /// If the program has `--json`, an error of the command line itself is JSON too.
    fn wants_json(&self) -> bool {
        let mut is_value = false;
        self.about.flags.iter().any(|flag| flag.long == "json")
            && std::env::args_os().skip(1).take_while(|arg| arg != "--").any(|arg| {
                let is_flag = !std::mem::replace(&mut is_value, false);
                is_value = is_flag && arg.to_str().is_some_and(|arg| self.takes_next(arg));
                is_flag && arg == "--json"
            })
    }

    /// Is the argument after `arg` its value, as in `--prompt TEXT` and `-vp TEXT`?
    fn takes_next(&self, arg: &str) -> bool {
        let mut with_value = self.about.flags.iter().filter(|flag| flag.value.is_some());
        match (arg.strip_prefix("--"), arg.strip_prefix('-')) {
            (Some(long), _) => with_value.any(|flag| flag.long == long),
            // The first flag with a value takes the rest of the bundle, if there is any.
            (None, Some(bundle)) => {
                let shorts: Vec<char> = with_value.filter_map(|flag| flag.short).collect();
                bundle.find(&shorts[..]).is_some_and(|at| at + 1 == bundle.len())
            }
            (None, None) => false,
        }
    }
}
