//! Changes that wait for a person: how many, for how long, and files among them that are none.

use crate::memory::doctor::context::CheckContext;
use crate::memory::doctor::finding::{Check, Finding};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let dir = cx.root.proposals();
    let mut findings = Vec::new();
    if let Err(error) = fs_err::read_dir(&dir)
        && dir.symlink_metadata().is_ok()
    {
        let mend = "make it a directory that you can read";
        findings.push(Finding::error(Check::Review, &dir, error.to_string(), mend));
    }
    for file in &cx.broken_proposals {
        let mend = "correct it in an editor, or remove it";
        findings.push(Finding::error(Check::Review, &file.path, file.why.as_str(), mend));
    }
    if let Some(oldest) = cx.waiting.iter().map(|proposal| proposal.created_at).min() {
        let waits = match cx.waiting.len() {
            1 => "1 change waits".to_owned(),
            many => format!("{many} changes wait"),
        };
        let days = cx.env.now().as_millisecond().saturating_sub(oldest).max(0) / DAY_MS;
        let age = if days == 1 { "1 day".to_owned() } else { format!("{days} days") };
        let what = format!("{waits} for your decision, the oldest for {age}");
        let mend = "memory-review shows them and asks about each";
        findings.push(Finding::warning(Check::Review, &dir, what, mend));
    }
    findings
}
