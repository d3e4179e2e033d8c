//! The values of front matter, whoever wrote it.

use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// A scalar is the text as written: `no`, `1984` and `2026-01-01` are text, and each of our keys interprets it.
#[derive(Debug, Clone)]
pub enum YamlValue<'a> {
    Scalar {
        text: Cow<'a, str>,
        /// Written without quotes, so other readers may take it for a number, a date or null.
        plain: bool,
    },
    List(Vec<YamlValue<'a>>),
    Map(Vec<(YamlValue<'a>, YamlValue<'a>)>),
}

/// A top-level key with its value.
#[derive(Debug, Clone)]
pub struct Field<'a> {
    pub(super) key: Cow<'a, str>,
    pub(super) value: YamlValue<'a>,
    /// Counted from 1, within the front matter.
    pub(super) line: usize,
}

impl<'a> YamlValue<'a> {
    pub(super) fn plain(text: &'a str) -> YamlValue<'a> {
        YamlValue::Scalar { text: Cow::Borrowed(text), plain: true }
    }

    pub(super) fn quoted(text: &'a str) -> YamlValue<'a> {
        YamlValue::Scalar { text: Cow::Borrowed(text), plain: false }
    }

    pub(super) fn into_owned(self) -> YamlValue<'static> {
        match self {
            YamlValue::Scalar { text, plain } => {
                YamlValue::Scalar { text: Cow::Owned(text.into_owned()), plain }
            }
            YamlValue::List(items) => YamlValue::List(items.into_iter().map(YamlValue::into_owned).collect()),
            YamlValue::Map(pairs) => {
                YamlValue::Map(pairs.into_iter().map(|(k, v)| (k.into_owned(), v.into_owned())).collect())
            }
        }
    }

    /// Empty, `~` or `null`.
    pub(super) fn is_null(&self) -> bool {
        matches!(self, YamlValue::Scalar { text, plain: true }
            if text.len() < 5 && matches!(&**text, "" | "~" | "null" | "Null" | "NULL"))
    }
}

/// A scalar becomes text without quotes where it was not text.
impl From<serde_json::Value> for YamlValue<'static> {
    fn from(json: serde_json::Value) -> YamlValue<'static> {
        use serde_json::Value as Json;
        match json {
            Json::Null => YamlValue::plain(""),
            Json::String(text) => YamlValue::Scalar { text: Cow::Owned(text), plain: false },
            Json::Array(items) => YamlValue::List(items.into_iter().map(YamlValue::from).collect()),
            Json::Object(pairs) => YamlValue::Map(
                pairs
                    .into_iter()
                    .map(|(key, value)| (YamlValue::from(Json::String(key)), YamlValue::from(value)))
                    .collect(),
            ),
            scalar @ (Json::Bool(_) | Json::Number(_)) => {
                YamlValue::Scalar { text: Cow::Owned(scalar.to_string()), plain: true }
            }
        }
    }
}

/// Quotes do not matter: `x` and `"x"` are equal. So are all ways to write null.
impl PartialEq for YamlValue<'_> {
    fn eq(&self, other: &YamlValue<'_>) -> bool {
        match (self, other) {
            (YamlValue::Scalar { text: ours, .. }, YamlValue::Scalar { text: theirs, .. }) => {
                ours == theirs || (self.is_null() && other.is_null())
            }
            (YamlValue::List(ours), YamlValue::List(theirs)) => ours == theirs,
            (YamlValue::Map(ours), YamlValue::Map(theirs)) => ours == theirs,
            _ => false,
        }
    }
}

/// In JSON, scalars are strings. A key that is not a scalar becomes its JSON.
impl Serialize for YamlValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            YamlValue::Scalar { text, .. } => serializer.serialize_str(text),
            YamlValue::List(items) => serializer.collect_seq(items),
            YamlValue::Map(pairs) => {
                serializer.collect_map(pairs.iter().map(|(key, value)| (key_text(key), value)))
            }
        }
    }
}

fn key_text(key: &YamlValue) -> String {
    match key {
        YamlValue::Scalar { text, .. } => text.clone().into_owned(),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}
