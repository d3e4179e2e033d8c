//! The time by which a run must end. Nothing waits without one.

use std::time::{Duration, Instant};

/// The longest `--timeout`: one week, in seconds. Longer ones are mistakes, and `Instant` has limits.
pub const LONGEST_SECONDS: u64 = 7 * 24 * 60 * 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// `seconds` from now; more than [`LONGEST_SECONDS`] counts as that.
    pub fn after_seconds(seconds: u64) -> Deadline {
        Deadline::after(Duration::from_secs(seconds.min(LONGEST_SECONDS)))
    }

    pub fn after(span: Duration) -> Deadline {
        Deadline(Instant::now() + span)
    }

    pub fn earlier(self, other: Deadline) -> Deadline {
        Deadline(self.0.min(other.0))
    }

    /// What is left; zero once it has passed.
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    pub fn passed(self) -> bool {
        self.remaining().is_zero()
    }
}
