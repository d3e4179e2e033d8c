//! Sums of what runs took.

use crate::store::runs::Run;
use jiff::tz::TimeZone;

/// What several runs took.
#[derive(Debug, Default, serde::Serialize)]
pub struct Sum {
    pub runs: u64,
    pub failed: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    /// Of those runs whose cost is known; `None` if it is known of none.
    pub cost: Option<f64>,
    pub runs_without_cost: u64,
}

impl Sum {
    pub fn add(&mut self, run: &Run) {
        let counts = [
            (&mut self.runs, 1),
            (&mut self.failed, u64::from(run.exit != 0)),
            (&mut self.input_tokens, run.input_tokens),
            (&mut self.output_tokens, run.output_tokens),
            (&mut self.cache_read_tokens, run.cache_read_tokens),
            (&mut self.cache_write_tokens, run.cache_write_tokens),
            (&mut self.runs_without_cost, u64::from(run.cost.is_none())),
        ];
        counts.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        if let Some(cost) = run.cost {
            // Without the noise of adding fractions.
            self.cost = Some(((self.cost.unwrap_or_default() + cost) * 1e9).round() / 1e9);
        }
    }

    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

pub fn key_of(key: &str, run: &Run) -> String {
    match key {
        "model" => run.model.clone(),
        "agent" => run.agent.clone(),
        _ => run.time.to_zoned(TimeZone::UTC).date().to_string(),
    }
}

/// `-` if it is not known.
pub fn cost(cost: Option<f64>) -> String {
    cost.map_or_else(|| "-".to_owned(), |cost| ((cost * 1e6).round() / 1e6).to_string())
}
