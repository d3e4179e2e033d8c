//! API keys and other values that must never be printed.

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
}
