//! An operation that is not carried out, and why: its form is wrong, or it failed a check.

use crate::base::text::one_line;
use serde::{Deserialize, Serialize};

/// So many ids are named.
pub(super) const NAMED: usize = 5;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dropped {
    /// Both as the model wrote them.
    pub op: String,
    pub ids: Vec<String>,
    pub why: String,
}

impl std::fmt::Display for Dropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut words = vec![self.op.clone()];
        words.extend(self.ids.iter().take(NAMED).map(|id| one_line(id, 40)));
        words.extend((self.ids.len() > NAMED).then(|| "…".to_owned()));
        words.retain(|word| !word.is_empty());
        let operation = if words.is_empty() { String::new() } else { words.join(" ") + ": " };
        write!(f, "dropped: {operation}{}", self.why)
    }
}
