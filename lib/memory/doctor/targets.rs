//! The managed files: is each as the notes would have it, and do the hot notes fit?

use crate::memory::doctor::finding::{Check, Finding};
use crate::memory::doctor::patient::Patient;
use crate::memory::section::{Glance, Share, Standing};

/// So many notes that did not fit are named.
const NAMED: usize = 3;

pub(crate) fn look(patient: &Patient, shares: impl Iterator<Item = Share>) -> Vec<Finding> {
    let (outcomes, hot_uses) = Glance::of(patient.config).judge(shares);
    let mut findings = Vec::new();
    for outcome in &outcomes {
        match &outcome.standing {
            Ok(Standing::Stale) => {
                let what = "its section is not as the notes would have it";
                findings.push(Finding::warning(
                    Check::Target,
                    &outcome.path,
                    what,
                    "memory-agents-md writes it",
                ));
            }
            Ok(Standing::Made | Standing::Written | Standing::Unchanged) => {}
            Err(error) => {
                let mend = error.next_step().unwrap_or("mend it, or take it out of agentsMd.targets");
                findings.push(Finding::error(Check::Target, &outcome.path, error.message(), mend));
            }
        }
    }
    // Who leaves no room at all wants none shown whole.
    for hot in hot_uses.iter().filter(|hot| hot.most > 0 && !hot.crowded_out.is_empty()) {
        let mut named: Vec<_> =
            hot.crowded_out.iter().take(NAMED).map(|title| format!("\"{title}\"")).collect();
        if hot.crowded_out.len() > NAMED {
            named.push(format!("{} more", hot.crowded_out.len() - NAMED));
        }
        let whose = hot.repo.as_ref().map_or(String::new(), |repo| format!(" of {repo}"));
        let what = format!(
            "hot notes{whose} take {} tokens and there is room for {}: only linked are {}",
            hot.tokens,
            hot.most,
            named.join(", ")
        );
        let mend = "let memory-defrag choose, cool some with memory-update, or raise agentsMd.maxHotTokens";
        findings.push(Finding::warning(Check::HotBudget, &patient.root.topics(), what, mend));
    }
    findings
}
