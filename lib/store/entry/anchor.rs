//! What a note rests on: places in the code, and the branch that it was learned on.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The most of one note.
pub const ANCHORS: usize = 5;

/// A file of the repository, or some of its lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// From the top of the repository.
    pub path: String,
    /// Of the lines, or without them of the whole file: they must stay as they are. Of a definition: its parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Where they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<Lines>,
    /// What was checked out then, the beginning of its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The definition that the lines are, which must be there.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the note says of it, the words of each line: they must stand in one of its lines, or in one of the file.
    /// Without hash, name and words it counts only that the file is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
}

/// The first and the last of some lines, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Lines {
    pub first: usize,
    pub last: usize,
}

impl Lines {
    /// `12-20`
    pub fn parse(text: &str) -> Option<Lines> {
        let (first, last) = text.split_once('-')?;
        let number = |text: &str| text.parse().ok().filter(|number| (1..=1 << 30).contains(number));
        let lines = Lines { first: number(first)?, last: number(last)? };
        (lines.first <= lines.last).then_some(lines)
    }

    pub fn count(self) -> usize {
        self.last - self.first + 1
    }
}

impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

impl From<Lines> for String {
    fn from(lines: Lines) -> String {
        lines.to_string()
    }
}

impl TryFrom<String> for Lines {
    type Error = String;

    fn try_from(text: String) -> Result<Lines, String> {
        Lines::parse(&text).ok_or_else(|| format!("\"{text}\" is not {LINES}"))
    }
}

pub(super) const LINES: &str = "lines like 12-20";

/// A branch that is not in the default branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    pub name: String,
    /// What was checked out then, the beginning of its name: it tells whether a branch that is gone was merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}
