//! What a defrag has done, part by part, as its batch keeps it to be taken back.

use crate::base::error::Result;
use crate::memory::defrag::plan::Planned;
use crate::store::batch::Batch;
use crate::store::entry::EntryId;
use serde::{Deserialize, Serialize};

/// What was done for one part.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Applied {
    pub(super) made: Vec<Planned>,
    /// How many changes wait for a person.
    #[serde(default)]
    pub(super) proposed: usize,
    /// Notes that were deleted for good since, and of which nothing is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) deleted: Vec<EntryId>,
}

pub(super) fn applied_name(part: usize) -> String {
    format!("applied-{part}.json")
}

/// What was done for each part so far, in order.
pub(super) fn applied(batch: &Batch) -> Result<Vec<Applied>> {
    let mut all = Vec::new();
    for part in 0.. {
        if !batch.file(&applied_name(part)).exists() {
            break;
        }
        all.push(batch.read_json(&applied_name(part))?);
    }
    Ok(all)
}
