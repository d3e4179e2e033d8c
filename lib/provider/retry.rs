//! How long to wait before a retry.

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

/// The wait after failed attempt `tried`, counted from 0: what the server asks for, else 0.5 s, doubled each time up
/// to 30 s. `random` reduces it by up to a quarter, so that many callers do not come back at once.
pub fn backoff(tried: u32, retry_after: Option<Duration>, random: u64) -> Duration {
    retry_after.unwrap_or_else(|| {
        let whole = FIRST.saturating_mul(1 << tried.min(16)).min(LONGEST);
        whole - whole.mul_f64(0.25 * (random as f64 / u64::MAX as f64))
    })
}

/// A `Retry-After` header: seconds, or an HTTP date. A date in the past means no wait.
pub fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Some(Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX));
    }
    let until = DateTimeParser::new().relaxed_weekday(true).parse_timestamp(value).ok()?;
    Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
}

/// A number that differs from call to call: std seeds its hashers from the system.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit() {
        let waits = [0, 1, 2, 5, 6, 99].map(|tried| backoff(tried, None, 0).as_millis());
        assert_eq!(waits, [500, 1000, 2000, 16_000, 30_000, 30_000]);
        assert_eq!(backoff(1, None, u64::MAX), Duration::from_millis(750));
    }

    #[test]
    fn the_servers_wish_is_obeyed() {
        assert_eq!(backoff(3, Some(Duration::ZERO), 7), Duration::ZERO);
        assert_eq!(backoff(0, Some(Duration::from_secs(90)), 7), Duration::from_secs(90));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = "2026-02-28T15:04:05Z".parse().unwrap();
        let seconds = |value| retry_after(value, now).map(|wait| wait.as_millis());
        assert_eq!(seconds("7"), Some(7000));
        assert_eq!(seconds(" 0.5 "), Some(500));
        assert_eq!(seconds("-1"), Some(0));
        assert_eq!(seconds("Sat, 28 Feb 2026 15:05:05 GMT"), Some(60_000));
        assert_eq!(seconds("Sat, 28 Feb 2026 15:04:00 GMT"), Some(0));
        assert_eq!(seconds("soon"), None);
        assert_eq!(seconds("NaN").unwrap_or(0), 0);
        assert_eq!(retry_after(&"9".repeat(40), now), Some(Duration::MAX));
    }
}
