//! Where a remote is set: can git's own merge find our merge driver, and is the work that git could not finish waiting?

use crate::base::repository::git_dir;
use crate::memory::doctor::context::CheckContext;
use crate::memory::doctor::finding::{Check, Finding};
use crate::memory::sync::remote::configured;
use crate::store::git::Git;
use crate::store::merge_driver;

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let root = cx.root;
    if git_dir(root.path()).is_none() {
        return Vec::new();
    }
    let Ok(git) = Git::new(root, cx.env) else { return Vec::new() };
    let remote = match configured(&git) {
        Ok(remote) => remote,
        Err(error) => {
            let what = format!("git does not say which remote there is: {}", error.message());
            return vec![Finding::warning(
                Check::Sync,
                root.path(),
                what,
                "nothing is synced until that is repaired",
            )];
        }
    };
    if remote.is_none() {
        return match &cx.config.sync.remote {
            Some(_) => vec![Finding::warning(
                Check::Sync,
                &cx.config_file,
                "sync.remote is set, and these notes were never synced with it",
                "run memory-sync",
            )],
            None => Vec::new(),
        };
    }
    let mut findings = Vec::new();
    if !merge_driver::is_installed(root, &git) {
        let what = "git does not know how to merge notes here, or knows another memory-sync";
        findings.push(Finding::warning(Check::Sync, root.path(), what, "the next memory-sync installs it"));
    }
    findings
}
