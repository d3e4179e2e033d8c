//! The command line, read by the table of which help is made.

use crate::base::cli::about::About;
use crate::base::cli::flag::{Flag, FlagRule, FlagValue, Words};
use crate::base::deadline::LONGEST_SECONDS;
use crate::base::error::{Error, Result};
use crate::base::text::nearest;
use lexopt::Arg;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What was given on the command line. Every value is one that the table allows.
#[derive(Debug)]
pub struct Args {
    about: &'static About,
    /// In their order: a flag and its value, or a word and no flag.
    given: Vec<(&'static str, OsString)>,
    /// The flag whose values go on, and how many more it takes.
    open: Option<(&'static Flag, usize)>,
    /// The command line of another program, not parsed, if its name is the first word.
    rest: Option<Vec<OsString>>,
}

/// What a command line asks for.
pub enum Asked {
    Help,
    Version,
    Run,
    /// The first of its errors.
    Wrong(Error),
}

impl Args {
    /// `--help` and `--version` win over what follows them, and over what is missing.
    pub(super) fn parse(about: &'static About, mut parser: lexopt::Parser) -> (Args, Asked) {
        let mut args = Args { about, given: Vec::new(), open: None, rest: None };
        let mut wrong = None;
        loop {
            match args.take_next(&mut parser) {
                Ok(true) => {}
                Ok(false) => break,
                // It goes on: --json says how the error is printed.
                Err(error) => wrong = wrong.or(Some(error)),
            }
            // The newest alone: a line may have thousands of words.
            match args.given.last().map(|(long, _)| *long) {
                Some("help") if wrong.is_none() => return (args, Asked::Help),
                Some("version") if wrong.is_none() => return (args, Asked::Version),
                _ => {}
            }
        }
        let broken = || about.rules.iter().find_map(|rule| args.broken(rule));
        let wrong = wrong.or_else(|| args.check_words().err()).or_else(broken);
        (args, wrong.map_or(Asked::Run, Asked::Wrong))
    }

    /// Takes one flag with its value, or one word. `false` at the end.
    fn take_next(&mut self, parser: &mut lexopt::Parser) -> Result<bool> {
        let spelled = match parser.next()? {
            None => return Ok(false),
            Some(Arg::Value(word)) => return self.take_word(word, parser).map(|()| true),
            Some(Arg::Long(long)) => format!("--{long}"),
            Some(Arg::Short(short)) => format!("-{short}"),
        };
        let Some(flag) = self.about.all_flags().find(|flag| flag.is_spelled(&spelled)) else {
            let near = nearest(spelled.trim_start_matches('-'), self.about.all_flags().map(|flag| flag.long));
            let hint = near.map_or("see --help".to_owned(), |long| format!("did you mean \"--{long}\"?"));
            return Err(Error::usage(format!("unknown option \"{spelled}\"")).hint(hint));
        };
        let value = match flag.kind {
            FlagValue::Switch => OsString::new(),
            _ => parser.value()?,
        };
        flag.check(&spelled, &value)?;
        self.given.push((flag.long, value));
        if flag.most > 1 {
            self.open = Some((flag, flag.most - 1));
        }
        Ok(true)
    }

    fn take_word(&mut self, word: OsString, parser: &mut lexopt::Parser) -> Result<()> {
        if let Some((flag, left)) = self.open.filter(|(_, left)| *left > 0) {
            flag.check(&format!("--{}", flag.long), &word)?;
            self.given.push((flag.long, word));
            self.open = Some((flag, left - 1));
            return Ok(());
        }
        match self.about.words {
            Words::Program(own)
                if self.given.iter().all(|(long, _)| *long == "color")
                    && !own.iter().any(|own| word == *own) =>
            {
                self.rest = Some(parser.raw_args()?.collect());
                self.given.push(("", word));
                return Ok(());
            }
            Words::AtMost(most) | Words::Needed(most, ..)
                if most < usize::MAX && self.values("").count() >= most =>
            {
                return Err(Error::unexpected(&word.to_string_lossy()));
            }
            Words::Stdin if word != "-" => return Err(Error::unexpected(&word.to_string_lossy())),
            _ => {}
        }
        let word = word.into_string().map_err(lexopt::Error::NonUnicodeValue)?;
        self.given.push(("", word.into()));
        Ok(())
    }

    fn check_words(&self) -> Result<()> {
        let most = match self.about.words {
            Words::Needed(_, missing, hint) if !self.is_given("") => {
                return Err(Error::usage(missing).hint(hint));
            }
            Words::Command(most) => most,
            _ => return Ok(()),
        };
        let names = || listed(self.about.commands.iter().map(|(name, _)| *name));
        match &self.words()[..] {
            [] => Err(Error::usage(format!("a command is required: {}", names()))),
            [command, more @ ..] if self.about.commands.iter().any(|(name, _)| name == command) => {
                more.get(most).map_or(Ok(()), |extra| Err(Error::unexpected(extra)))
            }
            [unknown, ..] => {
                Err(Error::usage(format!("unknown command \"{unknown}\"")).hint(format!("use {}", names())))
            }
        }
    }

    fn broken(&self, rule: &FlagRule) -> Option<Error> {
        let (error, hint) = match rule {
            FlagRule::AtMostOne(flags) => {
                let is_one = |(long, _): &&(&str, OsString)| flags.iter().any(|flag| names(flag, long));
                let mut given = self.given.iter().filter(is_one);
                let (one, other) = (given.next()?.0, given.next()?.0);
                (apart(&format!("--{one}"), &format!("--{other}")), "")
            }
            FlagRule::Apart(one, others, hint) => {
                let other = others.iter().find(|other| self.is_there(one) && self.is_there(other))?;
                (apart(one, other), *hint)
            }
            FlagRule::Needs(flags, others, what, hint) => {
                let has_other = || others.iter().any(|other| self.is_there(other));
                let flag = flags.iter().find(|flag| self.is_there(flag) && !has_other())?;
                (Error::usage(format!("option \"{flag}\" {what}")), *hint)
            }
        };
        Some(if hint.is_empty() { error } else { error.hint(hint) })
    }

    /// Whether what a rule names is on the command line.
    fn is_there(&self, name: &str) -> bool {
        match name {
            "WORDS" => self.is_given(""),
            word if !word.starts_with("--") => self.values("").any(|value| value == word),
            flag => self.given.iter().any(|(long, _)| names(flag, long)),
        }
    }

    fn is_given(&self, long: &str) -> bool {
        self.given.iter().any(|(other, _)| *other == long)
    }

    fn values<'a>(&'a self, long: &str) -> impl DoubleEndedIterator<Item = &'a OsStr> {
        self.given.iter().filter(move |(other, _)| *other == long).map(|(_, value)| value.as_os_str())
    }

    /// The values of a flag of the table.
    fn of(&self, long: &str) -> impl DoubleEndedIterator<Item = &OsStr> {
        debug_assert!(self.about.flag(long).is_some(), "{} has no --{long}", self.about.name);
        self.values(long)
    }

    pub fn has(&self, long: &str) -> bool {
        self.of(long).next().is_some()
    }

    /// The flag's value; the last one if there are several.
    pub fn text(&self, long: &str) -> Option<&str> {
        self.of(long).next_back().and_then(OsStr::to_str)
    }

    pub fn texts(&self, long: &str) -> Vec<&str> {
        self.of(long).filter_map(OsStr::to_str).collect()
    }

    pub fn path(&self, long: &str) -> Option<&Path> {
        self.of(long).next_back().map(Path::new)
    }

    pub fn paths(&self, long: &str) -> Vec<&Path> {
        self.of(long).map(Path::new).collect()
    }

    pub fn number<N: std::str::FromStr>(&self, long: &str) -> Option<N> {
        self.text(long).and_then(|text| text.parse().ok())
    }

    /// What `--color` says, which every program has.
    pub fn color(&self) -> Option<&str> {
        self.values("color").next_back().and_then(OsStr::to_str)
    }

    /// The flag's value, read by `read`, whose error is the program's.
    pub fn parsed<'a, T>(&'a self, long: &str, read: impl FnOnce(&'a str) -> Result<T>) -> Result<Option<T>> {
        self.text(long).map(read).transpose()
    }

    /// The flags that are given, with their values, in their order.
    pub fn in_order(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.given.iter().filter_map(|(long, value)| Some((*long, value.to_str()?)))
    }

    /// What is neither a flag nor a flag's value.
    pub fn words(&self) -> Vec<&str> {
        self.values("").filter_map(OsStr::to_str).collect()
    }

    /// The same as paths, of whatever bytes.
    pub fn files(&self) -> Vec<&Path> {
        self.values("").map(Path::new).collect()
    }

    /// The other program that is meant, and its command line.
    pub fn program(&self) -> Option<(&OsStr, &[OsString])> {
        Some((&self.given.last()?.1, self.rest.as_deref()?))
    }
}

/// Whether it is this flag that a rule names.
fn names(flag: &str, long: &str) -> bool {
    flag.strip_prefix("--") == Some(long)
}

/// `a, b or c`
pub fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let list = words.into_iter().collect::<Vec<_>>().join(", ");
    match list.rsplit_once(", ") {
        Some((first, last)) => format!("{first} or {last}"),
        None => list,
    }
}

/// The error for two flags that exclude each other.
fn apart(one: &str, other: &str) -> Error {
    Error::usage(format!("options \"{one}\" and \"{other}\" do not go together"))
}

impl Flag {
    fn is_spelled(&self, spelled: &str) -> bool {
        match spelled.strip_prefix("--") {
            Some(long) => self.long == long,
            None => self.short.is_some_and(|short| spelled.strip_prefix('-') == Some(&short.to_string())),
        }
    }

    /// An error unless this may be its value.
    fn check(&self, spelled: &str, value: &OsStr) -> Result<()> {
        match self.kind {
            FlagValue::Path if value.is_empty() => return Err(Error::empty(spelled)),
            FlagValue::Switch | FlagValue::Path => return Ok(()),
            _ => {}
        }
        let Some(text) = value.to_str() else {
            let text = value.to_string_lossy();
            return Err(Error::usage(format!("option \"{spelled}\" is not valid UTF-8: \"{text}\"")));
        };
        let (is_right, known) = match self.kind {
            FlagValue::Count => {
                (text.parse().is_ok_and(|n: usize| n > 0), "a whole number from 1".to_owned())
            }
            FlagValue::Seconds => (
                text.parse().is_ok_and(|n: u64| (1..=LONGEST_SECONDS).contains(&n)),
                format!("a whole number of seconds from 1 to {LONGEST_SECONDS}"),
            ),
            FlagValue::OneOf(words) => (words.contains(&text), listed(words.iter().copied())),
            FlagValue::Switch | FlagValue::Text | FlagValue::Path => return Ok(()),
        };
        if is_right {
            return Ok(());
        }
        Err(Error::usage(format!("option \"{spelled}\" takes {known}, got \"{text}\"")))
    }
}

/// Whether this is a command line that the program takes.
#[cfg(test)]
pub fn accepts(about: &'static About, words: &[&str]) -> bool {
    matches!(Args::parse(about, lexopt::Parser::from_args(words)).1, Asked::Run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::cli::flag::{count, flag, one_of, path, value};

    const ABOUT: About = About {
        name: "x",
        flags: &[
            flag("all", ""),
            value("prompt", "T", "").short('p'),
            path("file", "F", "").up_to(3),
            count("limit", ""),
            one_of("tier", "T", &["hot", "warm", "cold"], ""),
            flag("json", ""),
        ],
        words: Words::AtMost(2),
        rules: &[
            FlagRule::AtMostOne(&["--all", "--limit"]),
            FlagRule::Apart("--all", &["--tier", "-", "WORDS"], "why"),
            FlagRule::Needs(&["--json"], &["--prompt", "a"], "needs more", ""),
        ],
        ..About::BLANK
    };

    fn parse(words: &[&str]) -> (Args, Asked) {
        Args::parse(&ABOUT, lexopt::Parser::from_args(words))
    }

    fn error(words: &[&str]) -> String {
        match parse(words).1 {
            Asked::Wrong(error) => error.line(),
            _ => panic!("{words:?}"),
        }
    }

    #[test]
    fn what_comes_after_help_is_not_looked_at() {
        for words in [&["a", "--help", "--nonsense"][..], &["-hV"], &["a", "-", "-h", "d"]] {
            assert!(matches!(parse(words).1, Asked::Help), "{words:?}");
        }
        assert!(matches!(parse(&["--version"]).1, Asked::Version));
        assert!(matches!(parse(&["--", "--help"]).1, Asked::Run));
        assert_eq!(error(&["--nonsense", "--help"]), "unknown option \"--nonsense\"; see --help");
    }

    #[test]
    fn the_last_value_counts_and_words_stay_words() {
        let (args, _) = parse(&["-pa", "--prompt=b", "--limit", "7", "w", "--tier", "hot"]);
        assert_eq!((args.text("prompt"), args.texts("prompt")), (Some("b"), vec!["a", "b"]));
        assert_eq!((args.number("limit"), args.text("tier")), (Some(7), Some("hot")));
        assert_eq!((args.words(), args.has("all")), (vec!["w"], false));
    }

    #[test]
    fn words_after_a_flag_are_its_values_while_it_has_room() {
        let (args, _) = parse(&["--file", "a", "b", "-p", "c", "d", "e"]);
        assert_eq!(args.paths("file"), ["a", "b", "d"].map(Path::new));
        assert_eq!(args.words(), ["e"]);
    }

    #[test]
    fn wrong_values_and_combinations_are_refused() {
        for (words, expected) in [
            (&["--limit", "0"][..], "option \"--limit\" takes a whole number from 1, got \"0\""),
            (&["--tier", "Hot"], "option \"--tier\" takes hot, warm or cold, got \"Hot\""),
            (&["--limi", "1"], "unknown option \"--limi\"; did you mean \"--limit\"?"),
            (&["-p"], "option \"-p\" needs a value"),
            (&["--all=x"], "option \"--all\" takes no value, got \"x\""),
            (&["a", "b", "c"], "unexpected argument \"c\"; see --help"),
            (&["--limit", "1", "--all"], "options \"--limit\" and \"--all\" do not go together"),
            (&["--all", "-"], "options \"--all\" and \"-\" do not go together; why"),
            (&["--all", "b"], "options \"--all\" and \"WORDS\" do not go together; why"),
            (&["--json", "b"], "option \"--json\" needs more"),
        ] {
            assert_eq!(error(words), expected, "{words:?}");
        }
        for words in [&["--json", "a"][..], &["--json", "-p", "x"]] {
            assert!(matches!(parse(words).1, Asked::Run), "{words:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn bytes_that_are_no_text_are_told_with_their_flag() {
        let bad: OsString = std::os::unix::ffi::OsStringExt::from_vec(b"a\xff".to_vec());
        for flag in ["-p", "--prompt"] {
            let parser = lexopt::Parser::from_args([flag.into(), bad.clone()]);
            let Asked::Wrong(error) = Args::parse(&ABOUT, parser).1 else { panic!() };
            assert_eq!(error.message(), format!("option \"{flag}\" is not valid UTF-8: \"a\u{fffd}\""));
        }
        let Asked::Wrong(error) = Args::parse(&ABOUT, lexopt::Parser::from_args([bad.clone()])).1 else {
            panic!()
        };
        assert_eq!(error.message(), "argument is not valid UTF-8: \"a\u{fffd}\"");
        let (args, _) = Args::parse(&ABOUT, lexopt::Parser::from_args(["--file".into(), bad.clone()]));
        assert_eq!(args.path("file"), Some(Path::new(&bad)));
    }
}
