//! The hook that tells sessions what they should know: why it gave nothing lately.

use crate::memory::doctor::context::CheckContext;
use crate::memory::doctor::finding::{Check, Finding};
use crate::memory::recall::troubles;

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let Some((path, told)) = troubles(cx.root, cx.env.now()) else { return Vec::new() };
    let times = if told.count == 1 { "once".to_owned() } else { format!("{} times", told.count) };
    let what = format!(
        "memory-recall gave nothing {times} in seven days, last at {} to {}: {}",
        told.last, told.harness, told.why
    );
    let mend =
        "sessions go on without their notes; if it is slow, see AGENT_MEMORY_RECALL_MS in memory-recall(1)";
    vec![Finding::warning(Check::Recall, &path, what, mend)]
}
