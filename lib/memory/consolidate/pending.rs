//! What waits for the person, as a prompt shows it: so that a session can correct it or take it back, and does not
//! propose it once more. Nothing of it is true yet.

use crate::base::text::one_line;
use crate::memory::pipeline::question::push_lines;
use crate::memory::redact::Redactor;
use crate::store::entry::{EntryId, repos};
use crate::store::proposal::{Draft, Op, Proposal, ProposalId};
use std::collections::BTreeSet;
use std::fmt::Write;

/// How much of it a prompt shows, in bytes, at most.
pub(super) const ROOM: usize = 8 << 10;
/// What stands around one takes so many bytes, at most.
const FRAME: usize = 120;

/// A change that waits for a person.
#[derive(Debug, Clone)]
pub struct PendingChange {
    pub id: ProposalId,
    pub op: Op,
    pub note: Option<EntryId>,
    pub title: String,
    /// Why it waits, and what it says; then it may be changed. `None`: there was no room.
    pub text: Option<(String, String)>,
}

/// A session of one of these repositories made it, or, where `is_in` says so of `None`, one of none. The text of another
/// machine is none of a session's.
pub(super) fn is_of(proposal: &Proposal, is_in: impl Fn(Option<&str>) -> bool) -> bool {
    let of_text = proposal.entry.iter().flat_map(|draft| &draft.sources);
    let repos = repos(proposal.session.iter().chain(of_text));
    is_in_one_of(&repos, is_in) && proposal.session.is_some() && !proposal.is_from_elsewhere()
}

/// Is something of these repositories, or of none, where `is_in` says so?
pub(super) fn is_in_one_of(repos: &BTreeSet<&str>, is_in: impl Fn(Option<&str>) -> bool) -> bool {
    if repos.is_empty() { is_in(None) } else { repos.iter().any(|repo| is_in(Some(repo))) }
}

/// What waits in the repositories of the sessions that are shown, and for the notes that are, newest first. What has no
/// room is shown by title, and the oldest not at all.
pub(super) fn pending(
    proposals: &[Proposal],
    is_in: impl Fn(Option<&str>) -> bool,
    notes: &[&EntryId],
    mut room: usize,
    redactor: &Redactor,
) -> Vec<PendingChange> {
    let is_shown = |proposal: &Proposal| {
        let is_of_note = || proposal.note.as_ref().is_some_and(|note| notes.contains(&note));
        is_of(proposal, &is_in) || !proposal.is_from_elsewhere() && is_of_note()
    };
    let mut shown = Vec::new();
    for proposal in proposals.iter().rev().filter(|proposal| is_shown(proposal)) {
        let title = redactor.cleaned(proposal.title());
        let why = one_line(&redactor.cleaned(&proposal.reasons.join(" ")), usize::MAX);
        let says = proposal.entry.as_ref().map(|draft| redactor.cleaned(&says(draft))).unwrap_or_default();
        let head = FRAME + title.len();
        if head > room {
            break;
        }
        let text = Some((why, says)).filter(|(why, says)| head + why.len() + says.len() <= room);
        room -= head + text.as_ref().map_or(0, |(why, says)| why.len() + says.len());
        let Proposal { id, op, note, .. } = proposal.clone();
        shown.push(PendingChange { id, op, note, title, text });
    }
    shown
}

fn says(draft: &Draft) -> String {
    let summary = one_line(&draft.summary, usize::MAX);
    let until = draft.until.map(|until| format!("until: {until}\n")).unwrap_or_default();
    format!("summary: {summary}\nscope: {}\n{until}\n{}", draft.scope, draft.body)
}

const ABOUT: &str = include_str!("pending.md");

/// Adds them to a prompt.
pub(super) fn push(text: &mut String, waiting: &[PendingChange], mark: &str) {
    if waiting.is_empty() {
        return;
    }
    let _ = write!(text, "\n{ABOUT}");
    let head = |change: &PendingChange| {
        let note = change.note.as_ref().map(|id| format!(" of {id}")).unwrap_or_default();
        format!("waits: {}: {}{note}: {}\n", change.id, change.op, one_line(&change.title, usize::MAX))
    };
    for change in waiting {
        let Some((why, says)) = &change.text else { continue };
        let _ = write!(text, "\n<<< waits {} {mark}\n{}", change.id, head(change));
        if !why.is_empty() {
            let _ = writeln!(text, "because: {why}");
        }
        push_lines(text, says);
        let _ = writeln!(text, ">>> {mark}");
    }
    if waiting.iter().any(|change| change.text.is_none()) {
        let _ = writeln!(text, "\nWithout their text:\n\n<<< waits {mark}");
        waiting.iter().filter(|change| change.text.is_none()).for_each(|change| text.push_str(&head(change)));
        let _ = writeln!(text, ">>> {mark}");
    }
}
