//! From a reply to what is to be changed: each operation is checked, and becomes the files before and after it.
//! Plain data that can be shown, saved, carried out twice with the same result, and taken back.

mod drafts;
mod meta;
mod operations;
mod own;
mod planned;
mod waiting;
mod written;

use crate::memory::defrag::dropped::Dropped;
use crate::memory::defrag::plan::drafts::Drafts;
pub(crate) use crate::memory::defrag::plan::planned::{Allows, Known, Verdict};
pub use crate::memory::defrag::plan::planned::{Found, Look, Plan, Planned};
use crate::memory::defrag::reply::Reply;

pub(crate) fn plan(reply: &Reply, known: Known) -> Plan {
    let at = known.found.at;
    let mut drafts = Drafts::of(known);
    let mut plan = Plan {
        at,
        operations: Vec::new(),
        dropped: reply.dropped.clone(),
        proposals: Vec::new(),
        warnings: Vec::new(),
        remark: (drafts.known.clean)(&reply.remark),
    };
    for operation in &reply.operations {
        match drafts.planned(operation, &mut plan.warnings) {
            Ok(Verdict::Idle) => {}
            Ok(Verdict::Made(planned)) => plan.operations.push(planned),
            Ok(Verdict::Waits(proposals)) => plan.proposals.extend(proposals),
            Err(error) => {
                let ids = operation.ids().into_iter().map(str::to_owned).collect();
                plan.dropped.push(Dropped { op: operation.op().name().to_owned(), ids, why: error.line() });
            }
        }
    }
    plan
}

#[cfg(test)]
mod tests;
