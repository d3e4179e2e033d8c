//! The table of a program's flags: what each takes, and which of them go together.

/// A flag of a program. Help, man page and completions show it, and the command line is read by it.
#[derive(Debug)]
pub struct Flag {
    pub(super) long: &'static str,
    pub(super) short: Option<char>,
    /// What help calls its value; empty for a flag without one.
    pub(super) value: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: FlagValue,
    /// What completes its value.
    pub(super) completes: Completes,
    /// How many values belong to it: the words after its value do, too.
    pub(super) most: usize,
}

/// What a shell's completion offers for a word or a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completes {
    Nothing,
    Files,
    Words(&'static [&'static str]),
    /// What the family's dispatcher prints for this kind: `memory completions notes`.
    Values(&'static str),
}

/// What the value of a flag may be.
#[derive(Debug, Clone, Copy)]
pub enum FlagValue {
    /// There is none.
    Switch,
    Text,
    /// Any bytes.
    Path,
    /// A whole number, at least one.
    Count,
    /// The same, of seconds.
    Seconds,
    OneOf(&'static [&'static str]),
}

pub const fn flag(long: &'static str, help: &'static str) -> Flag {
    Flag {
        long,
        short: None,
        value: "",
        help,
        kind: FlagValue::Switch,
        completes: Completes::Nothing,
        most: 1,
    }
}

pub const fn value(long: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag { value, kind: FlagValue::Text, ..flag(long, help) }
}

pub const fn path(long: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag { value, kind: FlagValue::Path, completes: Completes::Files, ..flag(long, help) }
}

pub const fn count(long: &'static str, help: &'static str) -> Flag {
    Flag { value: "N", kind: FlagValue::Count, ..flag(long, help) }
}

pub const fn seconds(long: &'static str, help: &'static str) -> Flag {
    Flag { value: "SECONDS", kind: FlagValue::Seconds, ..flag(long, help) }
}

pub const fn one_of(
    long: &'static str,
    value: &'static str,
    words: &'static [&'static str],
    help: &'static str,
) -> Flag {
    Flag { value, kind: FlagValue::OneOf(words), completes: Completes::Words(words), ..flag(long, help) }
}

impl Flag {
    pub const fn short(self, short: char) -> Flag {
        Flag { short: Some(short), ..self }
    }

    /// Its value is one of those that the family's dispatcher prints for this kind.
    pub const fn from(self, kind: &'static str) -> Flag {
        Flag { completes: Completes::Values(kind), ..self }
    }

    /// Its value is the path of a file, but text.
    pub const fn of_files(self) -> Flag {
        Flag { completes: Completes::Files, ..self }
    }

    /// Up to `most` values: the first, and the words that follow it.
    pub const fn up_to(self, most: usize) -> Flag {
        Flag { most, ..self }
    }

    /// `-p, --prompt TEXT`
    pub(super) fn spelling(&self) -> String {
        let short = self.short.map(|short| format!("-{short}, ")).unwrap_or_default();
        format!("{short}--{} {}", self.long, self.value).trim_end().to_owned()
    }
}

/// What may stand on the command line beside flags and their values.
#[derive(Debug, Clone, Copy)]
pub enum Words {
    AtMost(usize),
    /// At least one, and at most so many. Then the message if there is none, and the next step.
    Needed(usize, &'static str, &'static str),
    /// "-" alone, for what is on stdin.
    Stdin,
    /// One of the program's commands, and at most so many words after it.
    Command(usize),
    /// Another program and its whole command line, unless the first word is one of these.
    Program(&'static [&'static str]),
}

/// Which flags go together. They are written as a person writes them; "-" and "WORDS" stand for words, and any other
/// name for a command.
#[derive(Debug)]
pub enum FlagRule {
    AtMostOne(&'static [&'static str]),
    /// The first goes with none of the others. Then the next step, or nothing.
    Apart(&'static str, &'static [&'static str], &'static str),
    /// Each of the first needs one of the second. Then what the message says of the flag, and the next step.
    Needs(&'static [&'static str], &'static [&'static str], &'static str, &'static str),
}
