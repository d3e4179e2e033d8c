//! API keys and other values that must never be printed.

use crate::base::sync::lock;
use std::borrow::Cow;
use std::sync::Mutex;

/// Shorter ones are no keys but words such as "none", and are in every text.
const SHORTEST: usize = 8;
/// The keys that [`hidden`] looks for, the longest first.
static KNOWN: Mutex<Vec<Secret>> = Mutex::new(Vec::new());

/// A value without `Display` and with a `Debug` that hides it, so that it cannot get into a message, a log or a prompt
/// by accident. Only [`Secret::expose`] reveals it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Secret {
        Secret(value.into())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }

    /// From now on [`hidden`] replaces it.
    pub fn remember(self) {
        let mut known = lock(&KNOWN);
        if self.0.len() >= SHORTEST && !known.contains(&self) {
            known.push(self);
            known.sort_by_key(|key| std::cmp::Reverse(key.0.len()));
        }
    }
}

/// A text with `[key]` for each key that this process has remembered.
pub fn hidden(text: &str) -> Cow<'_, str> {
    lock(&KNOWN).iter().fold(Cow::Borrowed(text), |text, key| match text.contains(&key.0) {
        true => Cow::Owned(text.replace(&key.0, "[key]")),
        false => text,
    })
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl<'de> serde::Deserialize<'de> for Secret {
    /// Through a TOML value, because serde's message for a wrong type quotes the value.
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Secret, D::Error> {
        match toml::Value::deserialize(from)? {
            toml::Value::String(text) => Ok(Secret(text)),
            _ => Err(serde::de::Error::custom("a key must be a string in quotes")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_it() {
        assert_eq!(format!("{:?}", Secret::new("sk-1")), "Secret");
    }

    #[test]
    fn remembered_keys_are_hidden_and_the_longest_first() {
        for key in ["plain-key", "plain-key-2", "none"] {
            Secret::new(key).remember();
        }
        assert_eq!(hidden("a plain-key-2, plain-key; none"), "a [key], [key]; none");
    }
}
