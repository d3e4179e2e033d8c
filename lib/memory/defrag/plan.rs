//! From a reply to what is to be changed: each operation is checked, and becomes the files before and after it.
//! Plain data that can be shown, saved, carried out twice with the same result, and taken back.

mod drafts;
mod operations;
mod own;
mod planned;
mod written;

use crate::memory::defrag::dropped::Dropped;
use crate::memory::defrag::plan::drafts::Drafts;
pub use crate::memory::defrag::plan::planned::{Allows, Verdict};
pub use crate::memory::defrag::plan::planned::{Found, NoteBrief, Plan, Planned};
use crate::memory::defrag::reply::Reply;
use crate::memory::defrag::work::Work;

/// What the reply to the part under way comes to. `clean` takes secrets out of what the model wrote.
pub fn plan(
    reply: &Reply,
    found: Found,
    work: &Work,
    allows: Allows,
    clean: &dyn Fn(&str) -> String,
) -> Plan {
    let at = found.at;
    let (mut operations, mut proposals, mut dropped) = (Vec::new(), Vec::new(), reply.dropped.clone());
    let mut drafts = Drafts::of(found, work, allows, clean);
    for operation in &reply.operations {
        match drafts.planned(operation) {
            Ok(Verdict::Idle) => {}
            Ok(Verdict::Made(planned)) => operations.push(*planned),
            Ok(Verdict::Waits(all)) => proposals.extend(all),
            Err(error) => {
                let (op, ids) = (operation.op.name().to_owned(), operation.ids.clone());
                dropped.push(Dropped { op, ids, why: error.line() });
            }
        }
    }
    Plan { at, operations, dropped, proposals, warnings: drafts.warnings, remark: clean(&reply.remark) }
}

#[cfg(test)]
mod tests;
