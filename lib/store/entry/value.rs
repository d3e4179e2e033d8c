//! The values of front matter, whoever wrote it.

use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// A scalar is the text as written: `no`, `1984` and `2026-01-01` are text, and each of our keys interprets it.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    Text(Text<'a>),
    List(Vec<Value<'a>>),
    Map(Vec<(Value<'a>, Value<'a>)>),
}

#[derive(Debug, Clone)]
pub struct Text<'a> {
    pub(super) text: Cow<'a, str>,
    /// Written without quotes, so other readers may take it for a number, a date or null.
    pub(super) plain: bool,
}

/// A top-level key with its value.
#[derive(Debug, Clone)]
pub struct Field<'a> {
    pub(super) key: Cow<'a, str>,
    pub(super) value: Value<'a>,
    /// Counted from 1, within the front matter.
    pub(super) line: usize,
}

impl<'a> Value<'a> {
    pub(super) fn plain(text: &'a str) -> Value<'a> {
        Value::Text(Text { text: Cow::Borrowed(text), plain: true })
    }

    pub(super) fn quoted(text: &'a str) -> Value<'a> {
        Value::Text(Text { text: Cow::Borrowed(text), plain: false })
    }

    pub(super) fn into_owned(self) -> Value<'static> {
        match self {
            Value::Text(Text { text, plain }) => {
                Value::Text(Text { text: Cow::Owned(text.into_owned()), plain })
            }
            Value::List(items) => Value::List(items.into_iter().map(Value::into_owned).collect()),
            Value::Map(pairs) => {
                Value::Map(pairs.into_iter().map(|(k, v)| (k.into_owned(), v.into_owned())).collect())
            }
        }
    }

    /// Empty, `~` or `null`.
    pub(super) fn is_null(&self) -> bool {
        matches!(self, Value::Text(Text { text, plain: true })
            if text.len() < 5 && matches!(&**text, "" | "~" | "null" | "Null" | "NULL"))
    }
}

/// A scalar becomes text without quotes where it was not text.
impl From<serde_json::Value> for Value<'static> {
    fn from(json: serde_json::Value) -> Value<'static> {
        use serde_json::Value as Json;
        match json {
            Json::Null => Value::plain(""),
            Json::String(text) => Value::Text(Text { text: Cow::Owned(text), plain: false }),
            Json::Array(items) => Value::List(items.into_iter().map(Value::from).collect()),
            Json::Object(pairs) => Value::Map(
                pairs
                    .into_iter()
                    .map(|(key, value)| (Value::from(Json::String(key)), Value::from(value)))
                    .collect(),
            ),
            scalar @ (Json::Bool(_) | Json::Number(_)) => {
                Value::Text(Text { text: Cow::Owned(scalar.to_string()), plain: true })
            }
        }
    }
}

/// Quotes do not matter: `x` and `"x"` are equal. So are all ways to write null.
impl PartialEq for Value<'_> {
    fn eq(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Value::Text(ours), Value::Text(theirs)) => {
                ours.text == theirs.text || (self.is_null() && other.is_null())
            }
            (Value::List(ours), Value::List(theirs)) => ours == theirs,
            (Value::Map(ours), Value::Map(theirs)) => ours == theirs,
            _ => false,
        }
    }
}

/// In JSON, scalars are strings. A key that is not a scalar becomes its JSON.
impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Text(text) => serializer.serialize_str(&text.text),
            Value::List(items) => serializer.collect_seq(items),
            Value::Map(pairs) => {
                serializer.collect_map(pairs.iter().map(|(key, value)| (key_text(key), value)))
            }
        }
    }
}

fn key_text(key: &Value) -> String {
    match key {
        Value::Text(text) => text.text.clone().into_owned(),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}
