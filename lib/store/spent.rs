//! What all runs of a day and of a month have taken, in one small file, for the limits in config.toml.
//!
//! Before a call, the most that it may take is added; after it, the difference to what it took is taken off. So a call of a
//! program that was killed counts as if it had taken the most, and needs no clearing up. A call counts for the day on which
//! it began. Days and months are those of UTC, whatever the zone of a shell or a timer.

use crate::base::env::Env;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::file;
use crate::config::global::CallLimits;
use crate::store::run_id::{make_dir_of, runs_dir};
use crate::store::runs;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

/// Ours has some hundred bytes.
const CAP: u64 = 4096;

/// Tokens, and money in the currency of the prices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Amount {
    pub tokens: u64,
    /// 0 if it is not known.
    pub cost: f64,
}

impl Amount {
    /// With `more` instead of `less`.
    fn change(&mut self, less: Amount, more: Amount) {
        self.tokens = self.tokens.saturating_add(more.tokens).saturating_sub(less.tokens);
        self.cost = (self.cost + more.cost - less.cost).max(0.0);
    }
}

/// What a call may take, which is part of the sums.
#[derive(Debug, Clone, Copy)]
pub struct Reservation {
    day: Date,
    amount: Amount,
}

/// The sums of the day `day`, and of its month.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Spent {
    day: Date,
    today: Amount,
    month: Amount,
}

impl Spent {
    /// Begins a new day, or a new month.
    fn turn(&mut self, today: Date) {
        if self.day != today {
            self.today = Amount::default();
        }
        if self.day.first_of_month() != today.first_of_month() {
            self.month = Amount::default();
        }
        self.day = today;
    }

    /// Adds what a call may take, unless a limit does not allow it.
    fn reserve(&mut self, limits: &CallLimits, amount: Amount) -> Result<Reservation> {
        let (day, month) = (self.day, self.day.first_of_month());
        let ends = [(day, day.tomorrow()), (month, self.day.last_of_month().tomorrow())];
        let (today, this_month) = (self.today, self.month);
        let tokens = [today.tokens, this_month.tokens, amount.tokens].map(|tokens| tokens as f64);
        let cost = [today.cost, this_month.cost, amount.cost];
        let rows = [
            ("per_day", limits.per_day as f64, " tokens", tokens, 0),
            ("per_month", limits.per_month as f64, " tokens", tokens, 1),
            ("per_day_cost", limits.per_day_cost, "", cost, 0),
            ("per_month_cost", limits.per_month_cost, "", cost, 1),
        ];
        for (name, limit, unit, sums, period) in rows {
            let (spent, more, (begin, end)) = (sums[period], sums[2], &ends[period]);
            // Sums of fractions are not exact.
            if limit > 0.0 && spent + more > limit + 1e-9 {
                let [spent, more] = [spent, more].map(|number| (number * 1e6).round() / 1e6);
                let message = format!(
                    "the limit {name} of {limit}{unit} does not allow the next call: {spent} are spent since \
                     {begin}T00:00:00Z, and it may take {more}"
                );
                // A call that is larger than the limit would not be allowed then either.
                let end = end.as_ref().ok().filter(|_| more <= limit);
                let until = end.map(|end| format!("wait until {end}T00:00:00Z, or ")).unwrap_or_default();
                return Err(Error::new(ErrorKind::Limit, message)
                    .hint(format!("{until}raise {name} under [limits] in config.toml")));
            }
        }
        self.today.change(Amount::default(), amount);
        self.month.change(Amount::default(), amount);
        Ok(Reservation { day: self.day, amount })
    }

    /// Replaces a reservation by what the call took. A day that is over is not changed.
    fn settle(&mut self, reservation: Reservation, used: Amount) {
        let Reservation { day, amount } = reservation;
        if day == self.day {
            self.today.change(amount, used);
        }
        if day.first_of_month() == self.day.first_of_month() {
            self.month.change(amount, used);
        }
    }
}

/// Reserves what a call may take at most. The error is of the kind `Limit`, or the file cannot be used.
pub fn reserve(env: &Env, limits: &CallLimits, amount: Amount) -> Result<Reservation> {
    change(env, |spent| spent.reserve(limits, amount))
}

pub fn settle(env: &Env, reservation: Reservation, used: Amount) -> Result<()> {
    change(env, |spent| {
        spent.settle(reservation, used);
        Ok(())
    })
}

/// Adds what was taken without a reservation, if there are limits or were some.
pub fn add(env: &Env, limits: &CallLimits, used: Amount) -> Result<()> {
    if used == Amount::default() || !limits.has_periods() && !path(env).is_ok_and(|path| path.exists()) {
        return Ok(());
    }
    change(env, |spent| spent.reserve(&CallLimits::default(), used).map(|_| ()))
}

fn path(env: &Env) -> Result<PathBuf> {
    Ok(runs_dir(env)?.join("spent.json"))
}

/// Changes the file under its lock, which is held for a few system calls. After a power cut it may be a few seconds old.
fn change<T>(env: &Env, act: impl FnOnce(&mut Spent) -> Result<T>) -> Result<T> {
    let path = path(env)?;
    make_dir_of(&path)?;
    let changed = file::change_unsynced(&path, CAP, file::LOCK_WAIT, |text| -> Result<_> {
        let known: Option<Spent> = match text.trim_ascii() {
            // It is new.
            [] => None,
            text => serde_json::from_slice(text).map_err(|e| {
                Error::io(e.to_string()).hint("remove it, and the ledger of runs is counted again")
            })?,
        };
        // Nobody changes it meanwhile, so a later day in it means that the clock was ahead.
        let today = day(env.now());
        let mut spent = match known.filter(|spent| spent.day <= today) {
            Some(spent) => spent,
            None => recorded(env, today)?,
        };
        spent.turn(today);
        // The sums are kept also if the limits do not allow the change: to count them may have taken long.
        let done = act(&mut spent);
        Ok((serde_json::to_vec(&spent).map_err(io::Error::from)?, done))
    });
    changed.map_err(|error| {
        error.context(format!("\"{}\", which counts what runs have taken, cannot be used", path.display()))
    })?
}

/// The sums of the runs in the ledger.
fn recorded(env: &Env, today: Date) -> Result<Spent> {
    let mut spent = Spent { day: today, ..Spent::default() };
    runs::read(env, &mut |line| {
        let Ok(run) = line.run else { return Ok(()) };
        let used = Amount {
            tokens: run.input_tokens.saturating_add(run.output_tokens),
            cost: run.cost.unwrap_or_default(),
        };
        spent.settle(Reservation { day: day(run.time), amount: Amount::default() }, used);
        Ok(())
    })?;
    Ok(spent)
}

fn day(time: Timestamp) -> Date {
    time.to_zoned(TimeZone::UTC).date()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test may write files")]

    use super::*;
    use crate::base::env::{Env, pretend};

    fn amount(tokens: u64) -> Amount {
        Amount { tokens, cost: tokens as f64 / 1000.0 }
    }

    fn close(one: Amount, other: Amount) -> bool {
        one.tokens == other.tokens && (one.cost - other.cost).abs() < 1e-6
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, most: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 16) % most
        }
    }

    /// Processes reserve, settle and are killed in any order, over some days. What they have really taken is more than
    /// a limit only by what their estimates have missed, and none of it is forgotten.
    #[test]
    fn no_order_of_events_takes_more_than_the_limits() {
        let (mut refused, mut killed) = (0, 0);
        for seed in 0..2000_u64 {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            let limits = CallLimits {
                per_day: [0, 500][seed as usize % 2],
                per_month: [0, 900][seed as usize / 2 % 2],
                per_day_cost: [0.0, 0.4][seed as usize / 4 % 2],
                per_month_cost: [0.0, 0.7][seed as usize / 8 % 2],
                ..CallLimits::default()
            };
            let mut today = jiff::civil::date(2026, 2, 25);
            let mut spent = Spent::default();
            spent.turn(today);
            // By day: what was really taken, and what of it no estimate had foreseen.
            let mut taken: Vec<(Date, u64, u64)> = Vec::new();
            let mut running: Vec<(Reservation, u64)> = Vec::new();
            for _ in 0..200 {
                match random.below(8) {
                    0..4 => {
                        let estimate = random.below(120);
                        match spent.reserve(&limits, amount(estimate)) {
                            Ok(reservation) => running.push((reservation, estimate)),
                            Err(error) => {
                                refused += 1;
                                assert_eq!((error.kind(), error.exit_code()), (ErrorKind::Limit, 4));
                            }
                        }
                    }
                    4..6 if !running.is_empty() => {
                        let at = random.below(running.len() as u64) as usize;
                        let (reservation, estimate) = running.swap_remove(at);
                        let used = [0, estimate / 2, estimate, estimate + 30][random.below(4) as usize];
                        spent.settle(reservation, amount(used));
                        taken.push((reservation.day, used, used.saturating_sub(estimate)));
                    }
                    6 if !running.is_empty() => {
                        // Killed, when the service had taken any part of it.
                        let at = random.below(running.len() as u64) as usize;
                        let (reservation, estimate) = running.swap_remove(at);
                        taken.push((reservation.day, random.below(estimate + 1), 0));
                        killed += 1;
                    }
                    7 if random.below(20) == 0 => {
                        today = today.tomorrow().unwrap();
                        spent.turn(today);
                    }
                    _ => {}
                }
                let sum = |is_in: &dyn Fn(Date) -> bool| {
                    let all = taken.iter().filter(|(day, ..)| is_in(*day));
                    all.fold((0, 0), |(a, b), (_, used, missed)| (a + used, b + missed))
                };
                let of_month = |day: Date| day.first_of_month() == today.first_of_month();
                let (day, month) = (sum(&|day| day == today), sum(&of_month));
                assert!(
                    day.0 <= spent.today.tokens && month.0 <= spent.month.tokens,
                    "seed {seed}: forgotten"
                );
                for (limit, (taken, missed)) in [
                    (limits.per_day, day),
                    (limits.per_month, month),
                    ((limits.per_day_cost * 1000.0) as u64, day),
                    ((limits.per_month_cost * 1000.0) as u64, month),
                ] {
                    assert!(limit == 0 || taken <= limit + missed, "seed {seed}: {taken} of {limit}");
                }
            }
        }
        assert!(refused > 1000 && killed > 1000, "{refused}, {killed}");
    }

    #[test]
    fn a_call_counts_for_the_day_on_which_it_began() {
        let date = jiff::civil::date;
        let mut spent = Spent { day: date(2026, 2, 27), ..Spent::default() };
        let [first, second] = [70, 50].map(|n| spent.reserve(&CallLimits::default(), amount(n)).unwrap());
        spent.turn(date(2026, 2, 28));
        let third = spent.reserve(&CallLimits::default(), amount(5)).unwrap();
        spent.settle(first, amount(10));
        assert!(close(spent.today, amount(5)) && close(spent.month, amount(65)), "{spent:?}");
        spent.turn(date(2026, 3, 1));
        spent.settle(second, amount(40));
        spent.settle(third, amount(4));
        assert!(close(spent.today, amount(0)) && close(spent.month, amount(0)), "{spent:?}");
    }

    fn at(dir: &tempfile::TempDir, now: &str) -> Env {
        pretend(&[("XDG_DATA_HOME", dir.path().to_str().unwrap()), ("AXE_NOW", now)])
    }

    #[test]
    fn a_missing_file_is_counted_from_the_ledger_and_a_broken_one_allows_no_call() {
        let dir = tempfile::tempdir().unwrap();
        let env = at(&dir, "2026-02-28T15:04:05Z");
        let limits = CallLimits { per_day: 100, per_month: 150, ..CallLimits::default() };
        for (time, input_tokens) in [("2026-02-27T10:00:00Z", 60), ("2026-02-28T10:00:00Z", 40)] {
            let time = time.parse().unwrap();
            let run = runs::Run { time, input_tokens, ..runs::Run::default() };
            runs::append(&env, &run, std::time::Duration::ZERO).unwrap();
        }
        let error = reserve(&env, &limits, amount(61)).unwrap_err();
        assert_eq!(
            error.line(),
            "the limit per_day of 100 tokens does not allow the next call: 40 are spent since \
             2026-02-28T00:00:00Z, and it may take 61; wait until 2026-03-01T00:00:00Z, or raise per_day under \
             [limits] in config.toml"
        );
        // It is not counted again for the next call.
        assert!(std::fs::metadata(path(&env).unwrap()).unwrap().len() > 0);
        let error = reserve(&env, &limits, amount(51)).unwrap_err();
        assert!(
            error.line().contains("per_month of 150")
                && error.line().contains("100 are spent since 2026-02-01T")
        );
        let reservation = reserve(&env, &limits, amount(50)).unwrap();
        assert!(reserve(&env, &limits, amount(1)).is_err());
        settle(&env, reservation, amount(20)).unwrap();
        reserve(&env, &limits, amount(30)).unwrap();
        for broken in ["{", "[]", "{\"day\": 3}"] {
            std::fs::write(path(&env).unwrap(), broken).unwrap();
            let error = reserve(&env, &limits, amount(1)).unwrap_err();
            assert!(error.exit_code() == 1 && error.line().contains("spent.json\", which counts"), "{error}");
            assert_eq!(std::fs::read_to_string(path(&env).unwrap()).unwrap(), broken);
        }
    }

    #[test]
    fn a_clock_that_was_ahead_takes_nothing_off_the_sums() {
        let dir = tempfile::tempdir().unwrap();
        let limits = CallLimits { per_day: 100, per_month: 150, ..CallLimits::default() };
        let [now, ahead] = ["2026-02-28T15:04:05Z", "2026-03-05T15:04:05Z"].map(|time| at(&dir, time));
        let run = runs::Run { time: now.now(), input_tokens: 90, ..runs::Run::default() };
        runs::append(&now, &run, std::time::Duration::ZERO).unwrap();
        assert!(reserve(&now, &limits, amount(11)).is_err());
        assert!(reserve(&ahead, &limits, amount(11)).is_ok());
        let error = reserve(&now, &limits, amount(11)).unwrap_err();
        assert!(error.message().contains(": 90 are spent"), "{error}");
    }

    #[test]
    fn without_limits_nothing_is_written_unless_there_were_some() {
        let dir = tempfile::tempdir().unwrap();
        let env = at(&dir, "2026-02-28T15:04:05Z");
        let limits = CallLimits::default();
        add(&env, &limits, amount(7)).unwrap();
        assert!(!path(&env).unwrap().exists());
        reserve(&env, &CallLimits { per_day: 9, ..limits }, amount(2)).unwrap();
        add(&env, &limits, amount(7)).unwrap();
        let error = reserve(&env, &CallLimits { per_day: 9, ..limits }, amount(1)).unwrap_err();
        assert!(error.message().contains(": 9 are spent"), "{error}");
    }
}
