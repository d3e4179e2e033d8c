//! Numbers over time, as bars.

use crate::base::ago::utc_day;
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan as _};
use serde::Serialize;

/// The bars of a plot.
const BARS: usize = 52;

#[derive(Debug, Serialize)]
pub struct Plot {
    title: String,
    unit: &'static str,
    /// The first day of each, and its sum. The oldest first.
    bars: Vec<(Date, f64)>,
}

impl Plot {
    /// Sums of what happened in the periods of so many days, 1 or 7, of which the last ends today (UTC). What is older, or still to
    /// come, is left out.
    pub fn of(
        title: &str,
        unit: &'static str,
        days: i32,
        now: Timestamp,
        values: impl Iterator<Item = (Timestamp, f64)>,
    ) -> Plot {
        let today = utc_day(now);
        let mut sums = [0.0; BARS];
        for (time, value) in values {
            let age = utc_day(time).until(today).map_or(-1, |span| span.get_days());
            if let Some(sum) =
                usize::try_from(age / days).ok().filter(|_| age >= 0).and_then(|at| sums.get_mut(at))
            {
                *sum += value;
            }
        }
        let first = |at: usize| {
            let back = (days * (at as i32 + 1) - 1).days();
            today.checked_sub(back).unwrap_or(today)
        };
        // Without the noise of adding fractions, and what is no height of a bar.
        let height = |sum: &f64| {
            let sum = (sum * 1e6).round() / 1e6;
            if sum.is_finite() && sum > 0.0 { sum } else { 0.0 }
        };
        let bars = sums.iter().enumerate().rev().map(|(at, sum)| (first(at), height(sum))).collect();
        let each = if days == 1 { "day" } else { "week" };
        Plot { title: format!("{title}, by {each}"), unit, bars }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_counts_in_its_period() {
        let now: Timestamp = "2026-02-28T15:04:05Z".parse().unwrap();
        let times = [
            ("2026-02-28T23:59:59Z", 0.1), // later today
            ("2026-02-22T00:00:00Z", 0.2),
            ("2026-02-21T23:59:59Z", 5.0),
            ("2026-02-10T00:00:00Z", f64::MAX),
            ("2026-02-03T00:00:00Z", -1.0),
            ("2026-03-01T00:00:00Z", 100.0),
            ("2020-01-01T00:00:00Z", 100.0),
        ];
        let values = times.iter().map(|(time, value)| (time.parse().unwrap(), *value));
        let plot = Plot::of("Notes", "notes", 7, now, values);
        assert_eq!((plot.title.as_str(), plot.bars.len()), ("Notes, by week", BARS));
        let last: Vec<String> =
            plot.bars.iter().rev().take(3).map(|(day, sum)| format!("{day} {sum}")).collect();
        assert_eq!(last, ["2026-02-22 0.3", "2026-02-15 5", "2026-02-08 0"]);
        assert!(plot.bars[..BARS - 2].iter().all(|(_, sum)| *sum == 0.0));
    }
}
