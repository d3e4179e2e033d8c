//! The frame around every program: arguments in, exit code out.

use crate::ground::cli::about::About;
use crate::ground::cli::stdout::Stdout;
use crate::ground::deadline::LONGEST_SECONDS;
use crate::ground::env::Env;
use crate::ground::error::{Error, Result};
use crate::ground::stderr::line;
use crate::ground::text::nearest;
use std::ffi::OsString;
use std::process::ExitCode;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Parsed<A> {
    Help,
    Version,
    Run(A),
}

pub(crate) struct Program<A> {
    pub(crate) about: &'static About,
    /// Pure: no files, no environment.
    pub(crate) parse: fn(lexopt::Parser) -> Result<Parsed<A>>,
    pub(crate) run: fn(A, &Env, &mut Stdout) -> Result<ExitCode>,
}

impl<A> Program<A> {
    pub(crate) fn main(self) -> ExitCode {
        let mut stdout = Stdout::open();
        let result = self.go(&mut stdout);
        // A fault of the run says more than the full disk that it may have caused.
        let flushed = stdout.flush();
        match result.and_then(|code| flushed.map(|()| code)) {
            Ok(code) => code,
            Err(error) => self.report(error),
        }
    }

    fn go(&self, stdout: &mut Stdout) -> Result<ExitCode> {
        match (self.parse)(lexopt::Parser::from_env())? {
            Parsed::Help => stdout.text(&self.about.help())?,
            Parsed::Version => stdout.line(&format!("{} {VERSION}", self.about.name))?,
            Parsed::Run(args) => return (self.run)(args, &Env::read()?, stdout),
        }
        Ok(ExitCode::SUCCESS)
    }

    fn report(&self, error: Error) -> ExitCode {
        let error = match error {
            Error::UnknownFlag { flag, .. } => {
                let nearest = self.nearest_flag(&flag).unwrap_or_else(|| "--help".to_owned());
                Error::UnknownFlag { flag, nearest: Some(nearest) }
            }
            other => other,
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

    /// Even a command line that does not parse gets its error as JSON, where the program has `--json`.
    fn wants_json(&self) -> bool {
        self.about.flags.iter().any(|flag| flag.long == "json")
            && std::env::args_os().skip(1).take_while(|arg| arg != "--").any(|arg| arg == "--json")
    }
}

/// A flag's value as text.
pub(crate) fn text(flag: &str, value: OsString) -> Result<String> {
    value.into_string().map_err(|value| {
        Error::usage(format!("option \"{flag}\" is not valid UTF-8: \"{}\"", value.to_string_lossy()))
    })
}

/// A flag's value as a whole number of seconds, at least one.
pub(crate) fn seconds(flag: &str, value: OsString) -> Result<u64> {
    let value = text(flag, value)?;
    match value.parse() {
        Ok(n) if (1..=LONGEST_SECONDS).contains(&n) => Ok(n),
        _ => Err(Error::usage(format!(
            "option \"{flag}\" takes a whole number of seconds from 1 to {LONGEST_SECONDS}, got \"{value}\""
        ))),
    }
}
