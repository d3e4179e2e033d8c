//! What a reply comes to, as plain data that can be shown, saved, carried out twice with the same result, and taken back;
//! and what that does, in words: for a person who is to judge it, and for the line at the end.

use crate::base::text::{counted, in_line};
use crate::memory::defrag::reply::{Dropped, Verb};
use crate::memory::section::Outcome;
use crate::store::entry::{Entry, EntryId, Tier};
use crate::store::persistence::{Note, Place};
use crate::store::proposal::Proposal;
use crate::store::revision::Revision;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DefragPlan {
    pub at: Timestamp,
    pub operations: Vec<Planned>,
    pub dropped: Vec<Dropped>,
    /// What waits for a person: of each such operation all its changes.
    #[serde(default)]
    pub proposals: Vec<Proposal>,
    pub warnings: Vec<String>,
    /// What the model says of it all.
    pub remark: String,
}

/// An operation that passed its checks. Its revisions are made together, in their order, or not at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Planned {
    pub op: Verb,
    /// The notes that it is about, as they are before.
    pub from: Vec<NoteBrief>,
    /// What is in their place afterwards.
    pub into: Vec<NoteBrief>,
    /// Why a note is archived.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Facts that are lost.
    pub lost: Vec<String>,
    /// Facts that no longer hold. What held them is in the archive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    pub revisions: Vec<Revision>,
}

/// A note in a few words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoteBrief {
    pub id: EntryId,
    pub title: String,
    pub tier: Tier,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u8>,
    pub tags: Vec<String>,
    /// Of the body.
    pub lines: usize,
    pub bytes: usize,
    pub place: Place,
}

/// What a store holds when a reply is judged.
#[derive(Debug)]
pub struct Inventory {
    pub at: Timestamp,
    /// The notes that were shown, as they are now.
    pub notes: Vec<Note>,
    /// Every id in use, aliases too.
    pub ids: BTreeSet<EntryId>,
    /// The notes of which a change waits for a person.
    pub proposed: BTreeSet<EntryId>,
    /// The paths of all notes below the store.
    pub paths: BTreeSet<PathBuf>,
}

impl NoteBrief {
    pub(super) fn of(entry: &Entry, place: Place) -> NoteBrief {
        let (meta, body) = (entry.meta(), entry.body());
        NoteBrief {
            id: meta.id.clone(),
            title: meta.title.clone(),
            tier: meta.tier,
            rank: meta.rank,
            tags: meta.tags.clone(),
            lines: String::from_utf8_lossy(body).lines().count(),
            bytes: body.len(),
            place,
        }
    }
}

/// So many lost facts are named for an operation.
const NAMED: usize = 20;

/// What a run has come to.
#[derive(Debug, Default)]
pub struct Summary {
    pub made: Vec<Planned>,
    pub dropped: Vec<Dropped>,
    /// What waits for a person.
    pub proposals: Vec<Proposal>,
    /// Operations that are none, and links that lead nowhere.
    pub warnings: Vec<String>,
    pub remarks: Vec<String>,
    pub targets: Vec<Outcome>,
    /// How many notes there were.
    pub total: usize,
}

impl Summary {
    /// Takes in what was made of a plan.
    pub fn add(&mut self, done: DefragPlan) {
        self.made.extend(done.operations);
        self.dropped.extend(done.dropped);
        self.proposals.extend(done.proposals);
        self.warnings.extend(done.warnings);
        self.remarks.extend(Some(done.remark).filter(|remark| !remark.is_empty()));
    }

    /// What would be done, line by line.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.made.iter().flat_map(operation).collect();
        lines.extend(self.dropped.iter().map(ToString::to_string));
        lines.extend(self.proposals.iter().map(waits));
        lines.extend(self.warnings.iter().cloned());
        lines.extend(self.remarks.iter().map(|remark| format!("the model says: {remark}")));
        let sum = |more: fn(&Planned) -> usize| self.made.iter().map(more).sum::<usize>();
        let more = sum(|planned| if planned.op == Verb::Split { planned.into.len() - 1 } else { 0 });
        let less = sum(|planned| match planned.op {
            Verb::Merge => planned.from.len() - 1,
            Verb::Archive => 1,
            _ => 0,
        });
        let becomes = (self.total + more).saturating_sub(less);
        let counts = counts(&self.made, self.proposals.len());
        let notes = counted(self.total, "note becomes", "notes become");
        lines.push(format!("{counts}; {notes} {becomes}"));
        // Titles, tags and reasons are anybody's.
        lines.iter().map(|line| in_line(line)).collect()
    }
}

/// How many operations of each kind there are, by the word for it.
pub fn numbers(made: &[Planned]) -> [(&'static str, usize); 7] {
    let words = [
        ("merged", Verb::Merge),
        ("split", Verb::Split),
        ("renamed", Verb::Rename),
        ("archived", Verb::Archive),
        ("reTiered", Verb::Tier),
        ("rewritten", Verb::Rewrite),
        ("retagged", Verb::Retag),
    ];
    words.map(|(word, op)| (word, made.iter().filter(|planned| planned.op == op).count()))
}

/// `M merged, S split, R renamed, A archived, T re-tiered`, and what else there is.
pub fn counts(made: &[Planned], proposed: usize) -> String {
    let numbers = numbers(made);
    let always = 5;
    let told = numbers.iter().enumerate().filter(|(at, (_, count))| *at < always || *count > 0);
    let words = told.map(|(_, (word, count))| format!("{count} {}", word.replace("reT", "re-t")));
    let to_review = (proposed > 0).then(|| format!("{proposed} to review"));
    words.chain(to_review).collect::<Vec<_>>().join(", ")
}

/// What a person is to decide about, in one line.
pub fn waits(proposal: &Proposal) -> String {
    let Proposal { id, op, note, entry, reasons, .. } = proposal;
    let note = note.as_ref().map(|note| format!(" {note}")).unwrap_or_default();
    let title = entry.as_ref().map(|entry| format!(" \"{}\"", entry.title)).unwrap_or_default();
    in_line(&format!("waits for memory-review {id}: {op}{note}{title}: {}", reasons.join("; ")))
}

fn operation(planned: &Planned) -> Vec<String> {
    let [first, others @ ..] = &planned.from[..] else { return Vec::new() };
    let mut lines = vec![format!("{:<8} {}", planned.op.as_str(), look(first))];
    let into = planned.into.iter().map(|note| format!("      -> {}", look(note)));
    match planned.op {
        Verb::Merge => {
            let to_archive = |note| format!("       + {}, which goes to the archive", look(note));
            lines.extend(others.iter().map(to_archive).chain(into));
        }
        Verb::Archive => lines.push(format!("      -> the archive: {}", planned.reason)),
        Verb::Retag => {
            let into = planned.into.first().map_or(&[][..], |note| &note.tags[..]);
            lines.push(format!("      -> {} (before: {})", into.join(" "), first.tags.join(" ")));
        }
        Verb::Split | Verb::Rename | Verb::Rewrite | Verb::Tier => lines.extend(into),
    }
    for (what, facts) in [("lost", &planned.lost), ("gone", &planned.gone)] {
        if !facts.is_empty() {
            let some: Vec<&str> = facts.iter().map(String::as_str).take(NAMED).collect();
            let more = facts.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            lines.push(format!("         {what}: {}{more}", some.join(", ")));
        }
    }
    lines
}

fn look(note: &NoteBrief) -> String {
    let place = if note.place == Place::Archive { ", archived" } else { "" };
    let rank = note.rank.map(|rank| format!(" {rank}")).unwrap_or_default();
    format!(
        "{} \"{}\" ({}{rank}{place}, {} lines, {} bytes)",
        note.id, note.title, note.tier, note.lines, note.bytes
    )
}
