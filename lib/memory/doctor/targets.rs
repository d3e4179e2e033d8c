//! The AGENTS.md targets: is each up to date, and do the hot notes fit?

use crate::memory::doctor::context::CheckContext;
use crate::memory::doctor::finding::{Check, Finding};
use crate::memory::section::{Candidate, Inspection, Standing};

/// How many of the notes that did not fit are listed.
const NAMED: usize = 3;

pub(super) fn check(cx: &CheckContext, shares: impl Iterator<Item = Candidate>) -> Vec<Finding> {
    let (outcomes, hot_uses) = Inspection::of(cx.config, &cx.waiting, cx.today).judge(shares);
    let mut findings = Vec::new();
    for outcome in &outcomes {
        match &outcome.standing {
            Ok(Standing::Stale) => {
                let (what, mend) = ("its section is out of date", "memory-agents-md updates it");
                findings.push(Finding::warning(Check::Target, &outcome.path, what, mend));
            }
            Ok(Standing::Made | Standing::Written | Standing::Unchanged) => {}
            Err(error) => {
                let mend = error.next_step().unwrap_or("correct it, or remove it from agentsMd.targets");
                findings.push(Finding::error(Check::Target, &outcome.path, error.message(), mend));
            }
        }
    }
    // A budget of 0 means that no note is to be shown whole.
    for hot in hot_uses.iter().filter(|hot| hot.most > 0 && !hot.crowded_out.is_empty()) {
        let mut named: Vec<_> =
            hot.crowded_out.iter().take(NAMED).map(|title| format!("\"{title}\"")).collect();
        if hot.crowded_out.len() > NAMED {
            named.push(format!("{} more", hot.crowded_out.len() - NAMED));
        }
        let whose = hot.repo.as_ref().map_or(String::new(), |repo| format!(" of {repo}"));
        let what = format!(
            "hot notes{whose} take {} tokens of {}, so these are only linked: {}",
            hot.tokens,
            hot.most,
            named.join(", ")
        );
        let mend = "run memory-defrag, make some warm with memory-update, or raise agentsMd.maxHotTokens";
        findings.push(Finding::warning(Check::HotBudget, &cx.root.topics(), what, mend));
    }
    findings
}
