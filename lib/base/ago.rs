//! Moments as a person at a terminal says them: `3 h ago`, `in 2 days`. Pipes get RFC 3339.

use crate::base::text::counted;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// What is further away is a day of the calendar, in UTC.
const FAR: u64 = 30 * DAY;

/// How far `then` is from `now`. Fractions of a unit are left out.
pub fn ago(then: Timestamp, now: Timestamp) -> String {
    let is_past = then <= now;
    let seconds = now.duration_since(then).unsigned_abs().as_secs();
    let span = match seconds {
        0..MINUTE if is_past => return "just now".to_owned(),
        0..MINUTE => return "in a moment".to_owned(),
        MINUTE..HOUR => format!("{} min", seconds / MINUTE),
        HOUR..DAY => format!("{} h", seconds / HOUR),
        DAY..FAR => counted((seconds / DAY) as usize, "day", "days"),
        _ => return then.strftime("%Y-%m-%d").to_string(),
    };
    if is_past { format!("{span} ago") } else { format!("in {span}") }
}

/// The day of a moment, the same in every time zone.
pub fn utc_day(time: Timestamp) -> Date {
    time.to_zoned(TimeZone::UTC).date()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_near_or_far() {
        let now: Timestamp = "2026-02-28T12:00:00Z".parse().unwrap();
        for (then, expected) in [
            ("2026-02-28T12:00:00Z", "just now"),
            ("2026-02-28T11:59:01Z", "just now"),
            ("2026-02-28T12:00:59Z", "in a moment"),
            ("2026-02-28T11:01:00Z", "59 min ago"),
            ("2026-02-28T11:00:00Z", "1 h ago"),
            ("2026-03-01T11:59:59Z", "in 23 h"),
            ("2026-02-27T12:00:00Z", "1 day ago"),
            ("2026-03-10T12:00:00Z", "in 10 days"),
            ("2026-01-29T12:00:00Z", "2026-01-29"),
            ("2027-01-01T00:00:00Z", "2027-01-01"),
        ] {
            assert_eq!(ago(then.parse().unwrap(), now), expected, "{then}");
        }
    }
}
