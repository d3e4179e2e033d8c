//! `provider/model-name`.

use crate::base::error::{Error, Result};
use serde::Deserialize;
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Model {
    pub provider: String,
    /// May contain more slashes: `openrouter/meta-llama/llama-4`.
    pub name: String,
}

impl Model {
    pub fn parse(text: &str) -> Result<Model> {
        let wrong = |why: &str| Error::usage(format!("invalid model format \"{text}\": {why}"));
        match text.split_once('/') {
            None => Err(wrong("expected provider/model-name")),
            Some(("", _)) => Err(wrong("empty provider")),
            Some((_, "")) => Err(wrong("empty model name")),
            Some((provider, name)) => Ok(Model { provider: provider.to_owned(), name: name.to_owned() }),
        }
    }
}

impl TryFrom<String> for Model {
    type Error = String;

    fn try_from(text: String) -> Result<Model, String> {
        Model::parse(&text).map_err(|error| error.message().to_owned())
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_slash_splits() {
        let model = Model::parse("openrouter/meta/llama").unwrap();
        assert_eq!((model.provider.as_str(), model.name.as_str()), ("openrouter", "meta/llama"));
        assert_eq!(model.to_string(), "openrouter/meta/llama");
    }

    #[test]
    fn each_fault_has_its_own_words() {
        for (text, why) in
            [("gpt", "expected provider/model-name"), ("/x", "empty provider"), ("x/", "empty model name")]
        {
            let error = Model::parse(text).unwrap_err();
            assert_eq!(error.message(), format!("invalid model format \"{text}\": {why}"));
            assert_eq!(error.exit_code(), 1);
        }
    }
}
