//! The names of the programs that sessions and notes come from.

use crate::base::text::nearest;
use crate::harness::spec::Spec;
use crate::harness::{HARNESSES, known};
use serde::{Serialize, Serializer};
use std::fmt;

/// The longest name of a program, in bytes.
const LONGEST: usize = 32;

/// What a name looks like, for messages.
pub const NAME_FORM: &str = "a-z, 0-9 and - only, a letter first, at most 32 bytes";

/// A program that runs agents, by its name: one that is built in, one that the configuration describes under
/// `harnesses.NAME`, or no program at all. It becomes part of file names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Harness {
    /// Filled up with zeros.
    bytes: [u8; LONGEST],
    length: usize,
}

impl Harness {
    /// A person.
    pub const MANUAL: Harness = Harness::fixed("manual");
    /// An agent whose program is none of those that are built in.
    pub const AGENT: Harness = Harness::fixed("agent");

    const fn fixed(name: &str) -> Harness {
        let mut bytes = [0; LONGEST];
        let mut at = 0;
        while at < name.len() {
            bytes[at] = name.as_bytes()[at];
            at += 1;
        }
        Harness { bytes, length: name.len() }
    }

    pub const fn of(spec: &Spec) -> Harness {
        Harness::fixed(spec.name)
    }

    /// The names of those that need no configuration.
    fn names() -> impl Iterator<Item = &'static str> {
        HARNESSES.iter().map(|spec| spec.name).chain(["manual", "agent"])
    }

    /// One that needs no configuration.
    pub fn named(name: &str) -> Option<Harness> {
        Harness::names().find(|known| *known == name).map(Harness::fixed)
    }

    /// One of any name; `None` if it has not the form of one.
    pub fn of_name(name: &str) -> Option<Harness> {
        is_program_name(name).then(|| Harness::fixed(name))
    }

    pub fn name(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }

    /// What is known of it, if it is built in.
    pub fn spec(&self) -> Option<&'static Spec> {
        known(self.name())
    }

    /// The next step for a name that is not known: the nearest, or all.
    pub fn suggestion(name: &str) -> String {
        match nearest(name, Harness::names()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => {
                let names = Harness::names().collect::<Vec<_>>().join(", ");
                format!("use one of {names}, or describe it in the configuration: harnesses.NAME.readCommand")
            }
        }
    }
}

/// It has the form of a program's name.
pub fn is_program_name(name: &str) -> bool {
    let is_fine = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
    starts && name.bytes().all(is_fine) && name.len() <= LONGEST
}

impl fmt::Display for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.name(), f)
    }
}

impl Serialize for Harness {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_harness() {
        for name in Harness::names() {
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
