//! Calendars that systemd, launchd and cron can all express: `daily`, `Mon..Fri 07:00`, `*-*-01 06:30`. The syntax is
//! a part of systemd's, see systemd.time(7).

use crate::base::error::{Error, Result};
use jiff::civil::Date;
use jiff::{Timestamp, Zoned};
use std::ops::RangeInclusive;

/// A time of each hour, of each day, of some days of the week, or of one day of the month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Calendar {
    /// From 1, Monday, to 7. Empty: every day.
    pub(super) weekdays: Vec<u8>,
    /// The day of the month.
    pub(super) day: Option<u8>,
    /// `None`: every hour.
    pub(super) hour: Option<u8>,
    pub(super) minute: u8,
}

/// The calendar, or an error that says what this scheduler can express.
pub(super) fn expressible(text: &str, scheduler: &str) -> Result<Calendar> {
    Calendar::parse(text).ok_or_else(|| {
        Error::config(format!("{scheduler} cannot express \"{text}\"")).hint(format!("use {EXPRESSIBLE}"))
    })
}

const EXPRESSIBLE: &str =
    "hourly, daily, weekly, monthly, or a time such as 07:00, Mon..Fri 07:00, Mon,Thu 18:30 or *-*-01 07:00";

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

impl Calendar {
    /// `None`: systemd may know it, the others do not.
    pub(super) fn parse(text: &str) -> Option<Calendar> {
        let midnight = Calendar { weekdays: Vec::new(), day: None, hour: Some(0), minute: 0 };
        match text {
            "hourly" => return Some(Calendar { hour: None, ..midnight }),
            "daily" => return Some(midnight),
            "weekly" => return Some(Calendar { weekdays: vec![1], ..midnight }),
            "monthly" => return Some(Calendar { day: Some(1), ..midnight }),
            _ => {}
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let (time, before) = words.split_last()?;
        let (hour, minute) = time_of_day(time)?;
        let at = Calendar { hour: Some(hour), minute, ..midnight };
        match before {
            [] | ["*-*-*"] => Some(at),
            [date] if date.starts_with("*-*-") => {
                // Not every month has a 29th.
                let day = number(date.strip_prefix("*-*-")?, 1..=28)?;
                Some(Calendar { day: Some(day), ..at })
            }
            [days] | [days, "*-*-*"] => Some(Calendar { weekdays: weekdays(days)?, ..at }),
            _ => None,
        }
    }

    /// The first moment after `now` that it means, in the time zone of `now`.
    pub(super) fn next(&self, now: &Zoned) -> Option<Timestamp> {
        let hours = self.hour.map_or(0..=23, |hour| hour..=hour);
        let is_day = |date: &Date| {
            let weekday = date.weekday().to_monday_one_offset().unsigned_abs();
            (self.weekdays.is_empty() || self.weekdays.contains(&weekday))
                && self.day.is_none_or(|day| date.day().unsigned_abs() == day)
        };
        // A day of the month comes back within 31 days.
        let days = std::iter::successors(Some(now.date()), |date| date.tomorrow().ok()).take(33);
        let mut moments = days.filter(is_day).flat_map(|date| {
            let at = move |hour: u8| date.at(hour.cast_signed(), self.minute.cast_signed(), 0, 0);
            let zone = now.time_zone().clone();
            hours.clone().filter_map(move |hour| Some(at(hour).to_zoned(zone.clone()).ok()?.timestamp()))
        });
        moments.find(|moment| *moment > now.timestamp())
    }

    /// The most hours between two runs.
    pub(super) fn longest_gap(&self) -> u64 {
        match self {
            Calendar { day: Some(_), .. } => 31 * 24,
            Calendar { hour: None, .. } => 1,
            Calendar { weekdays, .. } if weekdays.is_empty() => 24,
            Calendar { .. } => 7 * 24,
        }
    }
}

/// `07:00` or `07:00:00`.
fn time_of_day(text: &str) -> Option<(u8, u8)> {
    let (hour, minute) =
        text.strip_suffix(":00").filter(|rest| rest.contains(':')).unwrap_or(text).split_once(':')?;
    Some((number(hour, 0..=23)?, number(minute, 0..=59)?))
}

fn number(text: &str, range: RangeInclusive<u8>) -> Option<u8> {
    let is_plain = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|n| is_plain && range.contains(n))
}

/// `Mon,Wed..Fri`
fn weekdays(text: &str) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once("..").unwrap_or((part, part));
        let (first, last) = (weekday(first)?, weekday(last)?);
        if first > last {
            return None;
        }
        all.extend(first..=last);
    }
    all.sort_unstable();
    all.dedup();
    Some(all)
}

/// `Mon` or `Monday`.
fn weekday(text: &str) -> Option<u8> {
    let lower = text.to_ascii_lowercase();
    let n = WEEKDAYS.iter().position(|name| *name == lower || name.get(..3) == Some(&lower))?;
    u8::try_from(n + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calendar(weekdays: &[u8], day: Option<u8>, hour: Option<u8>, minute: u8) -> Option<Calendar> {
        Some(Calendar { weekdays: weekdays.to_vec(), day, hour, minute })
    }

    #[test]
    fn names_days_and_times_are_understood() {
        for (text, expected) in [
            ("hourly", calendar(&[], None, None, 0)),
            ("daily", calendar(&[], None, Some(0), 0)),
            ("weekly", calendar(&[1], None, Some(0), 0)),
            ("monthly", calendar(&[], Some(1), Some(0), 0)),
            ("07:05", calendar(&[], None, Some(7), 5)),
            ("7:00:00", calendar(&[], None, Some(7), 0)),
            ("*-*-* 23:59", calendar(&[], None, Some(23), 59)),
            ("Mon..Fri 07:00", calendar(&[1, 2, 3, 4, 5], None, Some(7), 0)),
            ("sunday,Wed..Thu  *-*-* 07:00", calendar(&[3, 4, 7], None, Some(7), 0)),
            ("*-*-15 06:30", calendar(&[], Some(15), Some(6), 30)),
        ] {
            assert_eq!(Calendar::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn what_only_systemd_knows_is_left_to_it() {
        for text in [
            "", " ", "dayly", "Daily", "24:00", "07:60", "7", "07:00:30", "07:00 Mon", "Fri..Mon 07:00",
            "Mo 07:00", "*-*-31 07:00", "*-*-0 07:00", "2026-01-01 07:00", "*:0/5", "+7:00", "007:00",
            "Mon *-*-01 07:00",
        ] {
            assert_eq!(Calendar::parse(text), None, "{text:?}");
        }
    }
}
