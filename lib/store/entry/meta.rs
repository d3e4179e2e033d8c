//! A note's metadata: the front matter as typed values.

use crate::base::text::written_as_text;
use crate::store::entry::id::EntryId;
use crate::store::entry::value::YamlValue;
use jiff::Timestamp;
use jiff::civil::Date;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt;

/// An enum with its words in files and JSON, in both directions.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// Every word, in order.
            pub const WORDS: &[&str] = &[$($word),+];

            pub fn parse(text: &str) -> Option<$name> {
                match text {
                    $($word => Some($name::$variant),)+
                    _ => None,
                }
            }

            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word),+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

pub(crate) use words;

words! {
    /// The stage of a note.
    Status {
        Captured = "captured",
        Consolidated = "consolidated",
        /// If and only if its tier is hot.
        Promoted = "promoted",
    }
}

words! {
    /// How much of a note every agent sees: all, its summary, nothing.
    Tier { Hot = "hot", Warm = "warm", Cold = "cold" }
}

words! {
    /// Who sees a note: everybody, or whoever works in one of its sources' repositories.
    Scope { Global = "global", Repo = "repo" }
}

words! {
    /// Who said what stands in a note now. The weakest is the greatest.
    By {
        /// Typed or accepted by a person.
        Person = "person",
        /// Concluded by an agent.
        Agent = "agent",
        /// Shown first by the output of a tool.
        Tool = "tool",
    }
}

/// How much a note can matter within its tier.
pub const RANKS: std::ops::RangeInclusive<u8> = 1..=100;

/// Our keys of the front matter. JSON has the same names, and always all of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Meta {
    pub id: EntryId,
    /// One line.
    pub title: String,
    /// One line.
    pub summary: String,
    /// As in the file, valid or not.
    pub tags: Vec<String>,
    /// Globs of the files that it is about, from the top of the repository; see [`glob`](crate::base::glob).
    pub paths: Vec<String>,
    pub status: Status,
    pub tier: Tier,
    pub scope: Scope,
    pub pinned: bool,
    /// The last day on which it holds.
    pub until: Option<Date>,
    /// From 1 to 100: how much it matters within its tier. Set by defrag.
    pub rank: Option<u8>,
    /// `None` in notes of older versions.
    pub by: Option<By>,
    /// The hosts that the session had read before it wrote this. Only where it had read outside.
    pub outside: Vec<String>,
    /// Where it was learned, until that is in the default branch.
    pub branch: Option<Branch>,
    /// The last day on which the code, or a session, was found to agree with it.
    pub confirmed: Option<Date>,
    /// The number of reads.
    pub used: u64,
    pub last_used: Option<Timestamp>,
    /// Unix time in milliseconds, as `updated_at`.
    #[serde(rename = "createdAt")]
    pub created_at: i64,
    #[serde(rename = "updatedAt")]
    pub updated_at: i64,
    /// See [`Entry::seal`](crate::store::entry::Entry::seal).
    pub written: Option<String>,
    /// What in the code it was drawn from.
    pub anchors: Vec<Anchor>,
    pub sources: Vec<Source>,
    /// Ids of notes that were merged into this one. Links to them resolve to it.
    pub aliases: Vec<EntryId>,
    /// The note that replaced this one.
    #[serde(rename = "supersededBy")]
    pub superseded_by: Option<EntryId>,
}

impl Meta {
    /// The defaults, with an empty title.
    pub fn new(id: EntryId) -> Meta {
        Meta {
            id,
            title: String::new(),
            summary: String::new(),
            tags: Vec::new(),
            paths: Vec::new(),
            status: Status::Captured,
            tier: Tier::Warm,
            scope: Scope::Global,
            pinned: false,
            until: None,
            rank: None,
            by: None,
            outside: Vec::new(),
            branch: None,
            confirmed: None,
            used: 0,
            last_used: None,
            created_at: 0,
            updated_at: 0,
            written: None,
            anchors: Vec::new(),
            sources: Vec::new(),
            aliases: Vec::new(),
            superseded_by: None,
        }
    }

    /// Its last day is over. `today` is the day in the local time zone.
    pub fn is_expired(&self, today: Date) -> bool {
        self.until.is_some_and(|until| until < today)
    }
}

/// The repositories of these sessions.
pub fn repos<'a>(sources: impl IntoIterator<Item = &'a Source>) -> BTreeSet<&'a str> {
    sources.into_iter().filter_map(|source| source.repo.as_deref()).collect()
}

/// The repository of these sessions, if it is one.
pub fn only_repo<'a>(sources: impl IntoIterator<Item = &'a Source>) -> Option<&'a str> {
    let repos = repos(sources);
    repos.first().copied().filter(|_| repos.len() == 1)
}

/// A session that a note comes from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Source {
    pub harness: Option<String>,
    pub thread_id: Option<String>,
    /// `host/owner/name`, or `local:<path>`.
    pub repo: Option<String>,
    pub cwd: Option<String>,
    /// When it was queued (RFC 3339).
    pub at: Option<String>,
    /// Foreign keys, which every rewrite keeps.
    pub other: Vec<(String, YamlValue<'static>)>,
}

impl Source {
    /// Our keys, in order.
    pub(super) fn keys(&self) -> [(&'static str, &Option<String>); 5] {
        let Source { harness, thread_id, repo, cwd, at, .. } = self;
        [("harness", harness), ("threadId", thread_id), ("repo", repo), ("cwd", cwd), ("at", at)]
    }

    /// Our keys that have a value, in order.
    pub(super) fn known(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.keys().into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?)))
    }

    /// The value of one of our keys.
    pub(super) fn value_of(&mut self, key: &str) -> Option<&mut Option<String>> {
        match key {
            "harness" => Some(&mut self.harness),
            "threadId" => Some(&mut self.thread_id),
            "repo" => Some(&mut self.repo),
            "cwd" => Some(&mut self.cwd),
            "at" => Some(&mut self.at),
            _ => None,
        }
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.known() {
            map.serialize_entry(key, value)?;
        }
        for (key, value) in &self.other {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// From the JSON that [`Serialize`] makes: a proposal carries the sources of its note.
impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Source, D::Error> {
        let mut source = Source::default();
        for (key, value) in serde_json::Map::deserialize(deserializer)? {
            match source.value_of(&key) {
                None => source.other.push((key, value.into())),
                Some(known) => {
                    *known = serde_json::from_value(value)
                        .map_err(|error| serde::de::Error::custom(format_args!("{key}: {error}")))?;
                }
            }
        }
        Ok(source)
    }
}

/// The most anchors of one note.
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

written_as_text!(Lines, Lines::parse, LINES);

pub(super) const LINES: &str = "lines like 12-20";

/// A branch that is not in the default branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    pub name: String,
    /// What was checked out then, the beginning of its name: it tells whether a branch that is gone was merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// Adds those of `more` that `list` lacks, as tags, sources and aliases are joined.
pub fn add_missing<T: PartialEq>(list: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    for one in more {
        if !list.contains(&one) {
            list.push(one);
        }
    }
}

/// A title or a summary as files have it: one line, without control characters, trimmed.
///
/// A run of line ends and control characters becomes one space.
pub fn one_line(text: &str) -> String {
    // A fast path: most text is such a line, and thousands of notes have two each.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.trim().to_owned();
    }
    let mut line = String::with_capacity(text.len());
    for part in text.split(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        if !line.is_empty() && !part.is_empty() {
            line.push(' ');
        }
        line.push_str(part);
    }
    line.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_both_ways() {
        for word in Status::WORDS {
            assert_eq!(Status::parse(word).unwrap().to_string(), *word);
            assert_eq!(serde_json::to_string(&Status::parse(word)).unwrap(), format!("\"{word}\""));
        }
        assert_eq!(Tier::parse("Hot"), None);
        assert_eq!(serde_json::from_str::<Scope>("\"repo\"").unwrap(), Scope::Repo);
        assert!(serde_json::from_str::<Scope>("\"Repo\"").is_err());
    }

    #[test]
    fn one_line_is_one_line() {
        assert_eq!(one_line(" a\r\n\n b\tc\u{85}d\u{2028}e\u{1b}[0m\n"), "a  b c d e [0m");
        assert_eq!(one_line("\n\t"), "");
        assert_eq!(one_line("عنوان 🦀 e\u{301}"), "عنوان 🦀 e\u{301}");
    }

    #[test]
    fn json_has_the_names_of_the_file() {
        let mut meta = Meta::new(EntryId::whole("id__a1B2c3").unwrap());
        meta.last_used = Some("2026-02-13T14:30:00Z".parse().unwrap());
        meta.until = Some(jiff::civil::date(2026, 3, 20));
        meta.by = Some(By::Tool);
        let other = vec![("note".to_owned(), YamlValue::List(vec![YamlValue::plain("3")]))];
        meta.sources = vec![Source { thread_id: Some("T-1".into()), other, ..Source::default() }];
        assert_eq!(
            serde_json::to_string(&meta).unwrap(),
            concat!(
                r#"{"id":"id__a1B2c3","title":"","summary":"","tags":[],"paths":[],"status":"captured","tier":"warm","#,
                r#""scope":"global","pinned":false,"until":"2026-03-20","rank":null,"by":"tool","outside":[],"branch":null,"#,
                r#""confirmed":null,"used":0,"last_used":"2026-02-13T14:30:00Z","createdAt":0,"updatedAt":0,"#,
                r#""written":null,"anchors":[],"#,
                r#""sources":[{"threadId":"T-1","note":["3"]}],"aliases":[],"supersededBy":null}"#
            )
        );
    }

    #[test]
    fn a_source_comes_back_from_json() {
        let json =
            r#"{"harness":"amp","threadId":"T-1","at":"2026-02-13T14:29:00Z","x":[1,{"y":null}],"z":"1"}"#;
        let source = source_of(json);
        assert_eq!((source.harness.as_deref(), source.repo), (Some("amp"), None));
        let again = serde_json::to_string(&source_of(json)).unwrap();
        assert_eq!(again, json.replace("[1,", "[\"1\",").replace("null", "\"\""));
        assert_eq!(source_of(&again).other[1].0, "z");
        let error = serde_json::from_str::<Source>(r#"{"cwd":3}"#).unwrap_err();
        assert!(error.to_string().starts_with("cwd: "), "{error}");
    }

    fn source_of(json: &str) -> Source {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn the_weakest_word_is_the_greatest() {
        assert_eq!([By::Agent, By::Tool, By::Person].into_iter().max(), Some(By::Tool));
        assert!(By::Person < By::Agent);
    }

    #[test]
    fn a_note_holds_on_its_last_day() {
        let meta = Meta {
            until: Some(jiff::civil::date(2026, 3, 20)),
            ..Meta::new(EntryId::whole("id__a1B2c3").unwrap())
        };
        assert!(!meta.is_expired(jiff::civil::date(2026, 3, 20)));
        assert!(meta.is_expired(jiff::civil::date(2026, 3, 21)));
        assert!(!Meta::new(meta.id).is_expired(jiff::civil::date(2026, 3, 21)));
    }
}
