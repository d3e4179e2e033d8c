//! How fast models are asked by all programs of this machine together (`[rates]` in config.toml).
//!
//! `<data>/runs/rates.json` says for each model when it may be asked next. A call takes this time and moves the next one on,
//! under a lock that is held for microseconds. So calls are spread evenly, no minute has more requests than the rate, and
//! nobody polls.

use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::file;
use crate::config::global::Rate;
use crate::store::run_id::{make_dir_of, runs_dir};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

const FILE_CAP: u64 = 1 << 20;
const MINUTE: i64 = 60 * 1_000_000;
/// Nothing is put off for longer.
const LONGEST: i64 = 24 * 60 * MINUTE;
/// The longest that all wait because a service has asked one of them to.
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

/// When a model may be asked next, in microseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Next {
    /// The last time that somebody looked.
    seen: i64,
    /// Because of the number of requests, and of tokens.
    requests: i64,
    tokens: i64,
    /// Because the service has asked to wait.
    paused: i64,
}

impl Next {
    /// A clock that was set back, or a file that was damaged, stops nobody: what is ahead stays as far ahead as it was.
    fn look(&mut self, now: i64) {
        let back = self.seen.saturating_sub(now).max(0);
        for time in [&mut self.requests, &mut self.tokens, &mut self.paused] {
            *time = time.saturating_sub(back).min(now.saturating_add(LONGEST));
        }
        self.seen = now;
    }

    /// Takes the time of a call; returns how long it is until then. An error is how long it would be, if that is not below
    /// `patience`, or a pause not below `for_pause`; then nothing is taken.
    fn take(
        &mut self,
        now: i64,
        rate: Rate,
        tokens: u64,
        patience: Duration,
        for_pause: Duration,
    ) -> Result<Duration, Duration> {
        let start = now.max(self.requests).max(self.tokens).max(self.paused);
        let [wait, pause] = [start, self.paused].map(|time| duration(time.saturating_sub(now)));
        match () {
            () if !pause.is_zero() && pause >= for_pause => return Err(pause),
            () if !wait.is_zero() && wait >= patience => return Err(wait),
            () => {}
        }
        if let Some(most) = rate.requests_per_minute {
            self.requests = start + MINUTE / i64::from(most.get());
        }
        self.tokens = self.tokens.max(start);
        self.settle(rate, i64::try_from(tokens).unwrap_or(i64::MAX));
        Ok(wait)
    }

    /// Counts so many more tokens than before.
    fn settle(&mut self, rate: Rate, more: i64) {
        if let Some(most) = rate.tokens_per_minute {
            self.tokens = self.tokens.saturating_add(more.saturating_mul(MINUTE) / i64::from(most.get()));
        }
    }

    fn pause(&mut self, now: i64, wait: Duration) {
        self.paused = self.paused.max(now.saturating_add(micros(wait.min(LONGEST_PAUSE))));
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

fn duration(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// The file, and the clock.
#[derive(Debug)]
pub struct Rates {
    path: PathBuf,
    env: Env,
}

impl Rates {
    pub fn new(env: &Env) -> Result<Rates> {
        Ok(Rates { path: runs_dir(env)?.join("rates.json"), env: env.clone() })
    }

    /// Takes the time of a call of `model` that may take so many tokens, as [`Next::take`] does.
    pub fn take(
        &self,
        model: &str,
        rate: Rate,
        tokens: u64,
        patience: Duration,
        for_pause: Duration,
    ) -> io::Result<Result<Duration, Duration>> {
        self.change(model, |next, now| next.take(now, rate, tokens, patience, for_pause))
    }

    /// Counts the tokens of a reply instead of those that were expected.
    pub fn settle(&self, model: &str, rate: Rate, expected: u64, used: u64) -> io::Result<()> {
        let more = i64::try_from(used).unwrap_or(i64::MAX) - i64::try_from(expected).unwrap_or(i64::MAX);
        self.change(model, |next, _| next.settle(rate, more))
    }

    /// Nobody asks `model` for so long.
    pub fn pause(&self, model: &str, wait: Duration) -> io::Result<()> {
        self.change(model, |next, now| next.pause(now, wait))
    }

    /// How much of a pause is left.
    pub fn paused(&self, model: &str) -> io::Result<Duration> {
        let bytes = file::if_exists(file::read(&self.path, FILE_CAP))?.unwrap_or_default();
        let mut next = read(&bytes).get(model).copied().unwrap_or_default();
        let now = self.env.now().as_microsecond();
        next.look(now);
        Ok(duration(next.paused.saturating_sub(now)))
    }

    fn change<T>(&self, model: &str, change: impl FnOnce(&mut Next, i64) -> T) -> io::Result<T> {
        make_dir_of(&self.path)?;
        file::change_unsynced(&self.path, FILE_CAP, file::LOCK_WAIT, |bytes| {
            let mut all = read(bytes);
            let next = all.entry(model.to_owned()).or_default();
            let now = self.env.now().as_microsecond();
            next.look(now);
            let changed = change(next, now);
            Ok((serde_json::to_vec(&all)?, changed))
        })
    }
}

/// A file that cannot be understood counts as empty.
fn read(bytes: &[u8]) -> BTreeMap<String, Next> {
    serde_json::from_slice(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    const EVER: Duration = Duration::MAX;
    const NOW: i64 = 1_700_000_000_000_000;

    fn rate(requests: u32, tokens: u32) -> Rate {
        Rate { requests_per_minute: NonZeroU32::new(requests), tokens_per_minute: NonZeroU32::new(tokens) }
    }

    /// The times at which calls of these tokens begin, in milliseconds after `NOW`, if all ask at once.
    fn starts(next: &mut Next, rate: Rate, calls: &[u64]) -> Vec<u128> {
        let take = |tokens: &u64| {
            next.look(NOW);
            next.take(NOW, rate, *tokens, EVER, EVER).unwrap().as_millis()
        };
        calls.iter().map(take).collect()
    }

    #[test]
    fn calls_are_spread_evenly_by_requests_and_by_tokens() {
        assert_eq!(starts(&mut Next::default(), rate(60, 0), &[9; 4]), [0, 1000, 2000, 3000]);
        assert_eq!(starts(&mut Next::default(), rate(0, 6000), &[100, 50, 200, 1]), [0, 1000, 1500, 3500]);
        assert_eq!(starts(&mut Next::default(), rate(60, 6000), &[300, 1, 1]), [0, 3000, 4000]);
        assert_eq!(starts(&mut Next::default(), rate(0, 0), &[u64::MAX; 3]), [0, 0, 0]);
        // What a reply did not take is given back.
        let mut next = Next::default();
        starts(&mut next, rate(0, 6000), &[1000]);
        next.settle(rate(0, 6000), -900);
        assert_eq!(starts(&mut next, rate(0, 6000), &[1]), [1000]);
    }

    /// Programs that ask whenever they like, some with little patience: no minute has more than the rate.
    #[test]
    fn no_minute_has_more_requests_than_the_rate() {
        for seed in 1..200_u64 {
            let most = (seed % 37 + 1) as u32;
            let (mut next, mut now, mut random, mut times) = (Next::default(), NOW, seed, Vec::new());
            for _ in 0..300 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                now += (random % 3_000_000) as i64;
                next.look(now);
                let patience = if random.is_multiple_of(3) { Duration::from_secs(1) } else { EVER };
                if let Ok(wait) = next.take(now, rate(most, 0), 7, patience, EVER) {
                    times.push(now + micros(wait));
                }
                if random.is_multiple_of(50) {
                    next.pause(now, Duration::from_secs(random % 90));
                }
            }
            for (at, first) in times.iter().enumerate() {
                let minute = times[at..].iter().take_while(|time| **time < first + MINUTE - 60).count();
                assert!(minute <= most as usize, "seed {seed}: {minute} of {most}");
            }
        }
    }

    #[test]
    fn a_call_that_cannot_wait_takes_nothing() {
        let mut next = Next::default();
        starts(&mut next, rate(1, 0), &[1]);
        let before = next;
        let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
        assert_eq!(next.take(NOW, rate(1, 0), 1, second, second), Err(minute));
        assert_eq!(next, before);
        // For its turn it may wait longer than for a pause.
        next.pause(NOW, second * 2);
        assert_eq!(next.take(NOW, rate(1, 0), 1, EVER, second), Err(second * 2));
        assert_eq!(next.take(NOW, rate(1, 0), 1, EVER, second * 3), Ok(minute));
    }

    #[test]
    fn a_clock_that_is_set_back_stops_nobody() {
        let mut next = Next::default();
        starts(&mut next, rate(60, 0), &[1; 3]);
        let yesterday = NOW - LONGEST;
        next.look(yesterday);
        assert_eq!(next.take(yesterday, rate(60, 0), 1, EVER, EVER), Ok(Duration::from_secs(3)));
        // Neither does nonsense in the file.
        let mut next = Next { seen: i64::MIN, requests: i64::MAX, tokens: i64::MAX, paused: i64::MIN };
        next.look(NOW);
        assert_eq!(next.take(NOW, rate(60, 9), u64::MAX, EVER, EVER), Ok(duration(LONGEST)));
    }

    #[test]
    fn a_pause_holds_for_all_and_no_longer_than_an_hour() {
        let mut next = Next::default();
        next.pause(NOW, Duration::from_secs(5));
        next.pause(NOW, Duration::from_secs(2));
        assert_eq!(starts(&mut next, rate(60, 0), &[1; 2]), [5000, 6000]);
        next.pause(NOW, Duration::MAX);
        assert_eq!(starts(&mut next, Rate::default(), &[1]), [3_600_000]);
    }

    #[test]
    fn programs_share_the_file_and_a_damaged_one_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_str().unwrap();
        let vars = [("XDG_DATA_HOME", home), ("AXE_NOW", "2026-02-28T15:04:05Z")];
        let rates = Rates::new(&crate::base::env::pretend(&vars)).unwrap();
        let take = || rates.take("p/m", rate(60, 0), 1, EVER, EVER).unwrap().unwrap().as_secs();
        let mut waits: Vec<u64> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| [(); 10].map(|()| take()))).collect();
            all.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        waits.sort_unstable();
        assert_eq!(waits, (0..80).collect::<Vec<_>>());
        rates.pause("p/m", Duration::from_secs(100)).unwrap();
        assert_eq!(
            (rates.paused("p/m").unwrap().as_secs(), rates.paused("p/n").unwrap().as_secs()),
            (100, 0)
        );
        file::hint(&rates.path, b"{\"p/m\": {\"requests\"").unwrap();
        assert_eq!(take(), 0);
    }
}
