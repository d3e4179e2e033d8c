//! The code that notes were drawn from, in the checkouts of their sessions: what has changed or gone, and branches that were
//! never merged.

use crate::base::repository::{self, Repository};
use crate::memory::code::{CodeState, checkout_of, state_of_anchor};
use crate::memory::doctor::finding::{Check, CheckContext, Diagnosis};
use crate::memory::doctor::notes::{CheckedNotes, NoteFacts};
use crate::store::checkout::{BranchState, Checkout};
use crate::store::entry::Meta;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(super) fn check(cx: &CheckContext, checked: &CheckedNotes, to: &mut Diagnosis) {
    let mut gits: BTreeMap<PathBuf, Checkout> = BTreeMap::new();
    let is_grounded = |note: &&NoteFacts| !note.meta.anchors.is_empty() || note.meta.branch.is_some();
    for note in checked.notes.iter().filter(|note| note.is_in_use()).filter(is_grounded) {
        let NoteFacts { meta, shown, .. } = note;
        // On this machine there may be no checkout of it.
        let Some(Repository { top, .. }) = checkout_of(meta) else { continue };
        let mend = format!(
            "if it still holds: memory-update {0} --confirm; if not, correct it with memory-edit {0}, or memory-remove {0}",
            meta.id
        );
        // On another branch than its own, the code says nothing about it.
        let is_here =
            meta.branch.as_ref().is_none_or(|branch| repository::branch(&top).as_ref() == Some(&branch.name));
        if let Some(what) = changed(meta, &top).filter(|_| is_here) {
            to.warning(Check::Code, shown, what, mend.clone());
        }
        let Some(branch) = &meta.branch else { continue };
        let git = gits.entry(top.clone()).or_insert_with(|| Checkout::new(&top, cx.env));
        if git.state_of(branch) == Some(BranchState::Gone) {
            let what = format!("was learned on branch {}, which is gone and was not merged", branch.name);
            to.warning(Check::Code, shown, what, mend);
        }
    }
}

/// Which files of a note have changed or gone.
pub(super) fn changed(meta: &Meta, top: &Path) -> Option<String> {
    let of = |wanted: CodeState, what: &str| {
        let is_one = |path: &&String| {
            let anchors = meta.anchors.iter().filter(|anchor| anchor.path == **path);
            anchors.map(|anchor| state_of_anchor(top, anchor)).max() == Some(wanted)
        };
        let mut paths: Vec<&String> = meta.anchors.iter().map(|anchor| &anchor.path).filter(is_one).collect();
        paths.dedup();
        let paths = paths.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        (!paths.is_empty()).then(|| format!("{paths} {what}"))
    };
    let parts = [of(CodeState::Changed, "changed"), of(CodeState::Gone, "gone")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty())
        .then(|| format!("the code it was drawn from is no longer as it was: {}", parts.join("; ")))
}
