//! The AGENTS.md targets: is each up to date, and do the hot notes fit?

use crate::memory::doctor::context::CheckContext;
use crate::memory::doctor::finding::{Check, Finding};
use crate::memory::section::projects::{FORGOTTEN_AFTER_DAYS, State, state};
use crate::memory::section::{Candidate, Inspection, Standing};
use crate::store::projects::{Project, Projects};

/// How many of the notes that did not fit are listed.
const NAMED: usize = 3;

pub(super) fn check(cx: &CheckContext, shares: impl Iterator<Item = Candidate>) -> Vec<Finding> {
    let (outcomes, hot_uses) =
        Inspection::of(cx.config, &cx.aims, cx.root, &cx.waiting, cx.today).judge(shares);
    let mut findings = projects(cx);
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
            "hot notes{whose} and your own take {} tokens of {}, so these are only linked: {}",
            hot.tokens,
            hot.most,
            named.join(", ")
        );
        let mend = "run memory-defrag, make some warm with memory-update, or raise agentsMd.maxHotTokens";
        findings.push(Finding::warning(Check::HotBudget, &cx.root.topics(), what, mend));
    }
    findings
}

/// The checkouts that are on the list, and are not refreshed.
fn projects(cx: &CheckContext) -> Vec<Finding> {
    let path = Projects::path(cx.root);
    let list = match Projects::load(cx.root) {
        Ok(list) => list.projects,
        Err(error) => {
            let mend = error.next_step().unwrap_or("correct it in an editor, or move it away");
            return vec![Finding::error(Check::Target, &path, error.message(), mend)];
        }
    };
    let finding = |project: &Project| {
        let top = &project.top;
        Some(match state(project) {
            State::Here(_) | State::OnOtherBranch | State::Removed => return None,
            State::Refused(error) => {
                let mend = error.next_step().unwrap_or("remove the link");
                Finding::error(Check::Target, &top.join("AGENTS.md"), error.message(), mend)
            }
            State::Missing => {
                let since = project.missing_since.unwrap_or(cx.today);
                let what = format!("the checkout is gone since {since}, so its AGENTS.md is not refreshed");
                let mend =
                    format!("mount its disk, or wait: after {FORGOTTEN_AFTER_DAYS} days it is forgotten");
                Finding::warning(Check::Target, top, what, &mend)
            }
            State::Other(name) => {
                let what = format!(
                    "is a checkout of {name} now, not of {}, so its AGENTS.md is not refreshed",
                    project.repo
                );
                let mend = "for the notes of that repository, run there: memory-agents-md --project";
                Finding::warning(Check::Target, top, what, mend)
            }
        })
    };
    list.iter().filter_map(finding).collect()
}
