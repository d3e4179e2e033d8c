//! The command line, argument by argument. Each program matches its own flags; the common parts are here.

use crate::base::deadline::LONGEST_SECONDS;
use crate::base::error::{Error, Result};
use lexopt::Arg;
use std::ffi::OsString;
use std::path::PathBuf;

/// What to do instead of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instead {
    Help,
    Version,
}

pub(crate) struct Arguments {
    parser: lexopt::Parser,
    /// The last flag, as the user wrote it.
    flag: String,
    instead: Option<Instead>,
}

impl From<lexopt::Parser> for Arguments {
    fn from(parser: lexopt::Parser) -> Arguments {
        Arguments { parser, flag: String::new(), instead: None }
    }
}

impl Arguments {
    /// The next flag or word; `None` at the end, and at `--help` and `--version`, which every program has. These two
    /// win over everything else, even over missing arguments.
    pub(crate) fn next(&mut self) -> Result<Option<Arg<'_>>> {
        let next = self.parser.next()?;
        match &next {
            Some(Arg::Short('h') | Arg::Long("help")) => self.instead = Some(Instead::Help),
            Some(Arg::Short('V') | Arg::Long("version")) => self.instead = Some(Instead::Version),
            Some(Arg::Short(short)) => self.flag = format!("-{short}"),
            Some(Arg::Long(long)) => self.flag = format!("--{long}"),
            Some(Arg::Value(_)) | None => {}
        }
        Ok(next.filter(|_| self.instead.is_none()))
    }

    /// Whether the user asked for something else than a run. Call it after parsing.
    pub(super) fn instead(&self) -> Option<Instead> {
        self.instead
    }

    /// All remaining arguments, not parsed.
    pub(crate) fn rest(&mut self) -> Result<Vec<OsString>> {
        Ok(self.parser.raw_args()?.collect())
    }

    /// The flag's value as text.
    pub(crate) fn text(&mut self) -> Result<String> {
        self.parser.value()?.into_string().map_err(|value| {
            let flag = &self.flag;
            Error::usage(format!("option \"{flag}\" is not valid UTF-8: \"{}\"", value.to_string_lossy()))
        })
    }

    /// The flag's value as a path, which may be any bytes.
    pub(crate) fn path(&mut self) -> Result<PathBuf> {
        Ok(self.parser.value()?.into())
    }

    /// The flag's value as a whole number of seconds, at least one.
    pub(crate) fn seconds(&mut self) -> Result<u64> {
        let value = self.text()?;
        match value.parse() {
            Ok(n) if (1..=LONGEST_SECONDS).contains(&n) => Ok(n),
            _ => Err(Error::usage(format!(
                "option \"{}\" takes a whole number of seconds from 1 to {LONGEST_SECONDS}, got \"{value}\"",
                self.flag
            ))),
        }
    }

    /// The flag's value as a whole number, at least one.
    pub(crate) fn count(&mut self) -> Result<usize> {
        let value = self.text()?;
        match value.parse() {
            Ok(n) if n > 0 => Ok(n),
            _ => Err(Error::usage(format!(
                "option \"{}\" takes a whole number from 1, got \"{value}\"",
                self.flag
            ))),
        }
    }

    /// The flag's value from a closed set, which `known` lists.
    pub(crate) fn one_of<T>(&mut self, named: fn(&str) -> Option<T>, known: &str) -> Result<T> {
        let value = self.text()?;
        named(&value)
            .ok_or_else(|| Error::usage(format!("option \"{}\" takes {known}, got \"{value}\"", self.flag)))
    }
}

/// An argument that is not a flag, as text.
pub(crate) fn text(value: OsString) -> Result<String> {
    value.into_string().map_err(|value| lexopt::Error::NonUnicodeValue(value).into())
}

/// The error for two flags that exclude each other.
pub(crate) fn apart(one: &str, other: &str) -> Error {
    Error::usage(format!("options \"{one}\" and \"{other}\" do not go together"))
}

/// The one of several flags that exclude each other, with what it means.
pub(crate) fn at_most_one<T>(mut given: Vec<(&'static str, T)>) -> Result<Option<(&'static str, T)>> {
    match &given[..] {
        [(first, _), (second, _), ..] => Err(apart(first, second)),
        _ => Ok(given.pop()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_help_is_not_looked_at() {
        for (words, instead) in [
            (&["a", "--help", "--nonsense"][..], Some(Instead::Help)),
            (&["-hV"], Some(Instead::Help)),
            (&["--version"], Some(Instead::Version)),
            (&["--", "--help"], None),
        ] {
            let mut arguments = Arguments::from(lexopt::Parser::from_args(words));
            while let Some(arg) = arguments.next().unwrap() {
                assert!(matches!(arg, Arg::Value(_)), "{arg:?}");
            }
            assert_eq!(arguments.instead(), instead, "{words:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn bytes_that_are_no_text_are_told_with_their_flag() {
        let bad: OsString = std::os::unix::ffi::OsStringExt::from_vec(b"a\xff".to_vec());
        let mut arguments =
            Arguments::from(lexopt::Parser::from_args(["-p".into(), bad.clone(), "--x".into(), bad.clone()]));
        for flag in ["-p", "--x"] {
            arguments.next().unwrap();
            let error = arguments.text().unwrap_err();
            assert_eq!(error.message(), format!("option \"{flag}\" is not valid UTF-8: \"a\u{fffd}\""));
        }
        assert_eq!(text(bad).unwrap_err().message(), "argument is not valid UTF-8: \"a\u{fffd}\"");
    }
}
