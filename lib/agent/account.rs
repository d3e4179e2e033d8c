//! What the calls of one model are charged to: the limits of a day and a month, which hold for all runs together.

use crate::base::cli::Reporter;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::config::global::CallLimits;
use crate::config::model::Model;
use crate::config::prices::Price;
use crate::provider::message::TokenUsage;
use crate::store::spent::{self, Amount, Reservation};
use std::cell::Cell;

pub(super) struct Account<'a> {
    pub(super) limits: &'a CallLimits,
    pub(super) model: &'a Model,
    /// That of the model that is asked at last.
    pub(super) price: Cell<Option<Price>>,
    /// Those of the models that may take over.
    pub(super) others: Vec<Price>,
    pub(super) env: &'a Env,
    pub(super) reporter: Reporter,
}

impl Account<'_> {
    /// Reserves what a call may take: the tokens of its prompt, and of the longest answer.
    pub(super) fn reserve(&self, (input, output): (u64, u64)) -> Result<Reservation> {
        if self.limits.needs_prices() && self.price.get().is_none() {
            return Err(no_price(self.model));
        }
        let usage = TokenUsage { input, output, ..TokenUsage::default() };
        let costs = self.others.iter().map(|price| amount(usage, Some(*price)).cost);
        let own = amount(usage, self.price.get());
        spent::reserve(self.env, self.limits, Amount { cost: costs.fold(own.cost, f64::max), ..own })
    }

    /// Replaces the reservation by what the call took. Otherwise it stays, which is the safe side.
    pub(super) fn settle(&self, reservation: Reservation, used: TokenUsage) {
        if let Err(error) = spent::settle(self.env, reservation, amount(used, self.price.get())) {
            self.reporter.warn(&format!("a call counts as if it had taken the most: {}", error.line()));
        }
    }
}

pub(super) fn no_price(model: &Model) -> Error {
    Error::config(format!("the limits in money need a price for the model \"{model}\""))
        .hint(format!("add [prices.\"{model}\"] to config.toml, with input and output"))
}

fn amount(usage: TokenUsage, price: Option<Price>) -> Amount {
    let TokenUsage { input, output, cache_read, cache_write } = usage;
    let cost = price.map_or(0.0, |price| price.cost(input, output, cache_read, cache_write));
    Amount { tokens: input.saturating_add(output), cost }
}
