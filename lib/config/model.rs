//! `provider/model-name`, and what its tokens cost: `[prices]` of config.toml, in whatever currency the user counts.

use crate::base::error::{Error, Result};
use serde::{Deserialize, Deserializer};
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

/// What a million tokens cost.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Price {
    #[serde(deserialize_with = "amount")]
    input: f64,
    #[serde(deserialize_with = "amount")]
    output: f64,
    /// Input that came from a cache; without it, the price of input.
    #[serde(default, deserialize_with = "some_amount")]
    cache_read: Option<f64>,
    /// Input that was written to a cache; likewise.
    #[serde(default, deserialize_with = "some_amount")]
    cache_write: Option<f64>,
}

pub(super) const PRICE_KEYS: &[&str] = &["input", "output", "cache_read", "cache_write"];

impl Price {
    /// The cost of tokens that were counted: `cache_read` and `cache_write` are parts of `input`.
    pub fn cost(&self, input: u64, output: u64, cache_read: u64, cache_write: u64) -> f64 {
        const MILLION: f64 = 1e6;
        let plain = input.saturating_sub(cache_read).saturating_sub(cache_write);
        let parts = [
            (plain, self.input),
            (output, self.output),
            (cache_read, self.cache_read.unwrap_or(self.input)),
            (cache_write, self.cache_write.unwrap_or(self.input)),
        ];
        parts.into_iter().map(|(tokens, price)| tokens as f64 * price / MILLION).sum()
    }

    /// Whether nothing costs anything.
    pub fn is_free(&self) -> bool {
        let all = [Some(self.input), Some(self.output), self.cache_read, self.cache_write];
        all.iter().flatten().all(|price| *price == 0.0)
    }
}

fn amount<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    money(from, "a price")
}

/// An amount of money; errors call it `what`.
pub(super) fn money<'de, D: Deserializer<'de>>(from: D, what: &str) -> Result<f64, D::Error> {
    let amount = f64::deserialize(from)?;
    if amount.is_finite() && amount >= 0.0 {
        return Ok(amount);
    }
    Err(serde::de::Error::custom(format!("{what} is a number from 0")))
}

fn some_amount<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    amount(from).map(Some)
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

    #[test]
    fn cached_tokens_have_their_own_price() {
        let price = Price { input: 3.0, output: 15.0, cache_read: Some(0.3), cache_write: Some(3.75) };
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(close(price.cost(1_000_000, 0, 0, 0), 3.0));
        assert!(close(price.cost(1_000_000, 1_000_000, 400_000, 200_000), 1.2 + 15.0 + 0.12 + 0.75));
        let price = Price { cache_read: None, cache_write: None, ..price };
        assert!(close(price.cost(1_000_000, 0, 400_000, 200_000), 3.0));
        // A server may count nonsense.
        assert!(close(price.cost(1, 0, 5, 5), 30e-6));
    }
}
