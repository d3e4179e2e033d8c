//! The limits of a day and a month, which hold for all runs together: what a call may take is reserved in them.

use crate::agent::prepare::ModelRoute;
use crate::agent::tree::Scope;
use crate::base::error::{Error, Result};
use crate::config::global::CallLimits;
use crate::config::model::{Model, Price};
use crate::provider::message::{BYTES_PER_TOKEN, Reply, TokenUsage};
use crate::store::spent::{self, Amount, Reservation};

/// Reserves what a call may take, `size`: the tokens of its prompt, and of the longest answer. The models `next` may take
/// over.
pub(super) fn reserve(
    limits: &CallLimits,
    route: &ModelRoute,
    next: &[ModelRoute],
    (input, output): (u64, u64),
    scope: Scope,
) -> Result<Reservation> {
    if limits.needs_prices() && route.price.is_none() {
        return Err(no_price(&route.model));
    }
    let usage = TokenUsage { input, output, ..TokenUsage::default() };
    let others = next.iter().map(|route| amount(usage, route.price).cost);
    let own = amount(usage, route.price);
    spent::reserve(scope.env, limits, Amount { cost: others.fold(own.cost, f64::max), ..own })
}

/// Replaces the reservation by what the call took. Otherwise it stays, which is the safe side.
pub(super) fn settle(reservation: Reservation, used: TokenUsage, price: Option<Price>, scope: Scope) {
    if let Err(error) = spent::settle(scope.env, reservation, amount(used, price)) {
        scope.reporter.warn(&format!("a call counts as if it had taken the most: {}", error.line()));
    }
}

/// What a reply took. A command counts nothing: then it is about so much, of a call of this size.
pub(super) fn estimated(reply: &Reply, (input, _): (u64, u64)) -> TokenUsage {
    match reply.tokens {
        TokenUsage { input: 0, output: 0, .. } => {
            let output = reply.text.len() as u64 / BYTES_PER_TOKEN;
            TokenUsage { input, output, ..TokenUsage::default() }
        }
        counted => counted,
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
