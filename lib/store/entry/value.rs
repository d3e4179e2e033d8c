//! What a key of the front matter holds, whoever wrote it.

use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// A scalar is the text that was written: `no`, `1984` and `2026-01-01` are text, and each key of ours knows
/// what it makes of it.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text(Text),
    List(Vec<Value>),
    Map(Vec<(Value, Value)>),
}

#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub(crate) text: String,
    /// It stands without quotes, so that other readers may see a number, a date or nothing in it.
    pub(crate) plain: bool,
}

/// One of the top-level keys.
#[derive(Debug, Clone)]
pub(crate) struct Field<'a> {
    pub(crate) key: Cow<'a, str>,
    pub(crate) value: Value,
    /// Counted from 1, within the front matter.
    pub(crate) line: usize,
}

impl Value {
    pub(crate) fn plain(text: &str) -> Value {
        Value::Text(Text { text: text.to_owned(), plain: true })
    }

    pub(crate) fn quoted(text: &str) -> Value {
        Value::Text(Text { text: text.to_owned(), plain: false })
    }

    /// Nothing, `~` or `null`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Value::Text(Text { text, plain: true })
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }
}

/// Quotes are dress: `x` and `"x"` are equal. So are the ways of saying nothing.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
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

/// For JSON: scalars are strings. A key that is no scalar becomes the JSON of it.
impl Serialize for Value {
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
        Value::Text(text) => text.text.clone(),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}
