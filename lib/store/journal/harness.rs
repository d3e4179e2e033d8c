//! The programs that sessions and notes come from.

use crate::base::text::nearest;
use crate::config::memory::settings::{LONGEST_NAME as LONGEST, is_program_name};
use serde::{Serialize, Serializer};
use std::fmt;

/// A program that runs agents, or a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Harness {
    Amp,
    ClaudeCode,
    Codex,
    Copilot,
    Cursor,
    Gemini,
    Opencode,
    Pi,
    QwenCode,
    Manual,
    /// An agent whose program is none of these.
    Agent,
    /// A program that the configuration describes, under `harnesses.NAME`.
    Other(HarnessName),
}

use Harness::{
    Agent, Amp, ClaudeCode, Codex, Copilot, Cursor, Gemini, Manual, Opencode, Other, Pi, QwenCode,
};

const BUILT_IN: [(Harness, &str); 11] = [
    (Amp, "amp"),
    (ClaudeCode, "claude-code"),
    (Codex, "codex"),
    (Copilot, "copilot"),
    (Cursor, "cursor"),
    (Gemini, "gemini"),
    (Opencode, "opencode"),
    (Pi, "pi"),
    (QwenCode, "qwen-code"),
    (Manual, "manual"),
    (Agent, "agent"),
];

/// What a name looks like, for messages.
pub(crate) const NAME_FORM: &str = "a-z, 0-9 and - only, a letter first, at most 32 bytes";

impl Harness {
    /// The names of those that need no configuration.
    pub(crate) const NAMES: [&'static str; BUILT_IN.len()] = {
        let mut names = [""; BUILT_IN.len()];
        let mut n = 0;
        while n < names.len() {
            names[n] = BUILT_IN[n].1;
            n += 1;
        }
        names
    };

    /// One that needs no configuration.
    pub(crate) fn named(name: &str) -> Option<Harness> {
        BUILT_IN.iter().find(|(_, known)| *known == name).map(|(harness, _)| *harness)
    }

    /// One of any name; `None` if it has not the form of one.
    pub(crate) fn of_name(name: &str) -> Option<Harness> {
        Harness::named(name).or_else(|| HarnessName::new(name).map(Other))
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Other(name) => name.as_str(),
            known => BUILT_IN.iter().find(|(harness, _)| harness == known).map_or("", |(_, name)| *name),
        }
    }

    /// The next step for a name that is not known: the nearest, or all.
    pub(crate) fn suggestion(name: &str) -> String {
        match nearest(name, Harness::NAMES) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => {
                let names = Harness::NAMES.join(", ");
                format!("use one of {names}, or describe it in the configuration: harnesses.NAME.readCommand")
            }
        }
    }
}

impl fmt::Display for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Harness {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// The name of a program of `harnesses`. It becomes part of file names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HarnessName {
    /// Filled up with zeros.
    bytes: [u8; LONGEST],
    length: usize,
}

impl HarnessName {
    fn new(name: &str) -> Option<HarnessName> {
        let mut bytes = [0; LONGEST];
        bytes.get_mut(..name.len()).filter(|_| is_program_name(name))?.copy_from_slice(name.as_bytes());
        Some(HarnessName { bytes, length: name.len() })
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl fmt::Debug for HarnessName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_harness() {
        for name in Harness::NAMES {
            assert_eq!(Harness::named(name).map(|harness| harness.to_string()).as_deref(), Some(name));
        }
        for name in ["goose", "a", "my-tool-2", &"x".repeat(LONGEST)] {
            let harness = Harness::of_name(name).unwrap();
            assert_eq!((harness.name(), Harness::named(name)), (name, None));
            assert_eq!(serde_json::to_value(harness).unwrap(), name);
        }
        for name in ["", "-a", "2x", "My-Tool", "a_b", "a/b", "ä", &"x".repeat(LONGEST + 1)] {
            assert_eq!(Harness::of_name(name), None, "{name}");
        }
    }
}
