//! TOML that people write by hand: errors on one line with line and column, unknown keys with the nearest known one.

use crate::base::cli::Reporter;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::text::nearest;
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// The largest configuration file that is read, in bytes.
pub(super) const CAP: u64 = 1 << 20;

/// A file that a user wrote; `None` if there is none. Errors call it `what`.
pub fn read(path: &Path, what: &str) -> Result<Option<Vec<u8>>> {
    let read = file::if_exists(file::read(path, CAP));
    read.map_err(|e| Error::config(format!("failed to read {what}: {e}")).because(e))
}

/// Warns that a configuration file is a link that leads nowhere.
pub(super) fn warn_of_dangling(path: &Path, reporter: &Reporter) {
    let (path, what) = (path.display(), "is a link to a file that does not exist; it is ignored; remove it");
    reporter.warn(&format!("config file \"{path}\" {what}: rm \"{path}\""));
}

/// How many unknown keys are reported.
const MOST_UNKNOWN: usize = 10;

/// The keys of each table: path with dots (`*` stands for any name), then its keys.
pub type Keys = &'static [(&'static str, &'static [&'static str])];

/// A key in [`Keys`] that stands for every key, with everything below it.
pub(super) const ANY: &str = "**";

/// What a file says, and warnings.
type Parsed<T> = Result<(T, Vec<String>)>;

/// `bytes` as a `T`. The error is one line and never quotes the file, which may contain a key.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8], keys: Keys) -> Parsed<T> {
    parse_part(bytes, &[], keys)
}

/// The same for a file in which only the table at the path `part` is looked at: `keys` are those below it.
pub(super) fn parse_part<T: DeserializeOwned>(bytes: &[u8], part: &[&str], keys: Keys) -> Parsed<T> {
    let text = text(bytes)?;
    let value = toml::from_str(text).map_err(|e| {
        let message = without_value(e.message());
        match e.span() {
            Some(span) => error_after(&text.as_bytes()[..span.start], &message),
            None => Error::config(message),
        }
    })?;
    let mut unknown = UnknownKeys { text, keys, top: part.len(), found: Vec::new() };
    if let Ok(table) = DeTable::parse(text) {
        let inner = part.iter().try_fold(table.get_ref(), |table, name| match table.get(*name)?.get_ref() {
            DeValue::Table(inner) => Some(inner),
            _ => None,
        });
        if let Some(inner) = inner {
            unknown.find(inner, part);
        }
    }
    let mut found = unknown.found;
    if found.len() > MOST_UNKNOWN {
        found.truncate(MOST_UNKNOWN);
        found.push("there are more unknown keys".to_owned());
    }
    Ok((value, found))
}

/// A whole number. Negative ones become 0: the check of the file rejects them by name.
pub(super) fn count<'de, D: Deserializer<'de>, N: TryFrom<i64> + Default>(from: D) -> Result<N, D::Error> {
    Ok(N::try_from(i64::deserialize(from)?).unwrap_or_default())
}

/// A number that counts as not set where it is 0.
pub fn if_set(number: u64) -> Option<u64> {
    (number > 0).then_some(number)
}

/// `bytes` as text, without a byte order mark.
pub fn text(bytes: &[u8]) -> Result<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(e) => Err(error_after(&bytes[..e.valid_up_to()], "not valid UTF-8")),
    }
}

/// An error at the end of `before`.
pub(super) fn error_after(before: &[u8], message: &str) -> Error {
    let (line, column) = place(before);
    Error::config(format!("line {line}, column {column}: {message}"))
}

/// Finds the keys of a file that are not known.
struct UnknownKeys<'a> {
    text: &'a str,
    keys: Keys,
    /// How many tables deep in the file the table is that these keys are of.
    top: usize,
    /// The warnings.
    found: Vec<String>,
}

impl UnknownKeys<'_> {
    fn find(&mut self, table: &DeTable, path: &[&str]) {
        let entry = self.keys.iter().find(|(name, _)| same_path(name, &path[self.top..]));
        let known = entry.map_or(&[][..], |(_, known)| *known);
        if known.contains(&ANY) {
            return;
        }
        for (key, value) in table {
            // Finding the line takes time, and there may be a hundred thousand.
            if self.found.len() > MOST_UNKNOWN {
                return;
            }
            let name: &str = key.get_ref();
            let whole = [path, &[name]].concat();
            if !known.contains(&name) && !known.contains(&"*") {
                let (line, _) = place(&self.text.as_bytes()[..key.span().start]);
                let near = match nearest(name, known.iter().copied()) {
                    Some(near) => format!(", did you mean \"{near}\"?"),
                    None if known.is_empty() => String::new(),
                    None => format!(", known keys are {}", known.join(", ")),
                };
                self.found.push(format!("unknown key \"{}\" on line {line}{near}", whole.join(".")));
            } else if let DeValue::Table(inner) = value.get_ref() {
                self.find(inner, &whole);
            }
        }
    }
}

/// Names in a path may contain dots, as in `[providers."a.b"]`; those in a pattern do not.
fn same_path(pattern: &str, path: &[&str]) -> bool {
    let pattern: Vec<&str> = pattern.split('.').filter(|part| !part.is_empty()).collect();
    pattern.len() == path.len() && pattern.iter().zip(path).all(|(p, q)| *p == "*" || p == q)
}

/// serde's message without the value that it quotes: `invalid type: string, expected a map`.
fn without_value(message: &str) -> String {
    let (what, kind) = match message.split_once(": ") {
        Some((what @ ("invalid type" | "invalid value"), rest)) => (what, rest.split(' ').next()),
        _ if message.starts_with("unknown variant ") => ("unknown variant", None),
        _ => return message.replace('\n', ", "),
    };
    let kind = kind.map(|kind| kind.trim_end_matches(',')).unwrap_or_default();
    let expected = message.rfind(", expected ").map_or("", |at| &message[at + ", expected ".len()..]);
    let is_number = |kinds: [&str; 3]| kinds.contains(&expected);
    match kind {
        "integer" if is_number(["i64", "i32", "usize"]) => "the number is too large".to_owned(),
        "integer" if is_number(["u64", "u32", "u16"]) => "the number is negative or too large".to_owned(),
        _ => {
            let colon = if kind.is_empty() { "" } else { ": " };
            let comma = if expected.is_empty() { "" } else { ", expected " };
            format!("{what}{colon}{kind}{comma}{}", in_words(expected))
        }
    }
}

/// What serde expects, in the words of TOML.
fn in_words(expected: &str) -> &str {
    match expected {
        "i64" | "i32" | "usize" | "u64" | "u32" | "u16" => "a whole number",
        "f64" => "a number",
        "a sequence" => "a list",
        "a map" => "a table",
        expected if expected.starts_with("struct ") => "a table",
        other => other,
    }
}

/// Line and column, from 1, of the end of `before`. Columns count characters.
pub(super) fn place(before: &[u8]) -> (usize, usize) {
    let start = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let line = 1 + before.iter().filter(|b| **b == b'\n').count();
    (line, 1 + String::from_utf8_lossy(&before[start..]).chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    const KEYS: Keys = &[("", &["name", "inner"]), ("inner", &["*"]), ("inner.*", &["path"])];

    #[derive(Deserialize, Debug)]
    struct Sample {
        #[serde(default)]
        name: String,
    }

    #[test]
    fn errors_name_line_and_column() {
        let error = parse::<Sample>(b"\nname = \n", KEYS).unwrap_err().line();
        assert!(error.starts_with("line 2, column 8: "), "{error}");
        assert!(!error.contains('\n'));
    }

    #[test]
    fn bad_bytes_are_placed() {
        assert_eq!(
            parse::<Sample>(b"name = \"\xff\"", KEYS).unwrap_err().message(),
            "line 1, column 9: not valid UTF-8"
        );
    }

    #[test]
    fn unknown_keys_name_the_nearest() {
        let (_, unknown) = parse::<Sample>(b"nmae = 1\n[inner.x]\npaths = 2", KEYS).unwrap();
        assert_eq!(
            unknown,
            [
                "unknown key \"inner.x.paths\" on line 3, did you mean \"path\"?",
                "unknown key \"nmae\" on line 1, did you mean \"name\"?",
            ]
        );
    }

    #[test]
    fn of_very_many_unknown_keys_a_few_are_named() {
        let text: String = (0..100_000).map(|n| format!("k{n}=1\n")).collect();
        let (_, unknown) = parse::<Sample>(text.as_bytes(), KEYS).unwrap();
        assert_eq!(unknown.len(), 11);
        assert_eq!(unknown[10], "there are more unknown keys");
        let few: String = (0..10).map(|n| format!("k{n}=1\n")).collect();
        assert_eq!(parse::<Sample>(few.as_bytes(), KEYS).unwrap().1.len(), 10);
    }

    #[test]
    fn a_byte_order_mark_and_crlf_are_fine() {
        let (sample, unknown) = parse::<Sample>(b"\xef\xbb\xbfname = \"x\"\r\n", KEYS).unwrap();
        assert_eq!((sample.name.as_str(), unknown.len()), ("x", 0));
    }
}
