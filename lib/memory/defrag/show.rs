//! What a defrag does, in words: for a person who is to judge it, and for the line at the end.

use crate::base::text::in_line;
use crate::memory::defrag::dropped::Dropped;
use crate::memory::defrag::plan::{NoteBrief, Planned};
use crate::memory::defrag::reply::Op;
use crate::store::persistence::Place;
use crate::store::proposal::Proposal;

/// So many lost facts are named for an operation.
const NAMED: usize = 20;

/// How many operations of each kind there are, by the word for it.
pub fn numbers<'a>(made: impl Iterator<Item = &'a Planned> + Clone) -> [(&'static str, usize); 7] {
    let words = [
        ("merged", Op::Merge),
        ("split", Op::Split),
        ("renamed", Op::Rename),
        ("archived", Op::Archive),
        ("reTiered", Op::Tier),
        ("rewritten", Op::Rewrite),
        ("retagged", Op::Retag),
    ];
    words.map(|(word, op)| (word, made.clone().filter(|planned| planned.op == op).count()))
}

/// `M merged, S split, R renamed, A archived, T re-tiered`, and what else there is.
pub fn counts<'a>(made: impl Iterator<Item = &'a Planned> + Clone, proposed: usize) -> String {
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

/// What would be done, line by line, with `total` notes at the beginning.
pub fn lines(
    made: &[Planned],
    dropped: &[Dropped],
    proposals: &[Proposal],
    warnings: &[String],
    remarks: &[String],
    total: usize,
) -> Vec<String> {
    let mut lines = Vec::new();
    for planned in made {
        push(planned, &mut lines);
    }
    lines.extend(dropped.iter().map(ToString::to_string));
    lines.extend(proposals.iter().map(waits));
    lines.extend(warnings.iter().cloned());
    lines.extend(remarks.iter().map(|remark| format!("the model says: {remark}")));
    let (less, more) = made.iter().fold((0, 0), |(less, more), planned| match planned.op {
        Op::Merge => (less + planned.from.len() - 1, more),
        Op::Archive => (less + 1, more),
        Op::Split => (less, more + planned.into.len() - 1),
        Op::Rename | Op::Retag | Op::Rewrite | Op::Tier => (less, more),
    });
    let becomes = (total + more).saturating_sub(less);
    let notes = if total == 1 { "note becomes" } else { "notes become" };
    lines.push(format!("{}; {total} {notes} {becomes}", counts(made.iter(), proposals.len())));
    // Titles, tags and reasons are anybody's.
    lines.iter().map(|line| in_line(line)).collect()
}

fn push(planned: &Planned, lines: &mut Vec<String>) {
    let name = planned.op.name();
    let mut from = planned.from.iter();
    let Some(first) = from.next() else { return };
    lines.push(format!("{name:<8} {}", look(first)));
    match planned.op {
        Op::Merge => {
            lines.extend(from.map(|other| format!("       + {}, which goes to the archive", look(other))));
            lines.extend(planned.into.iter().map(|note| format!("      -> {}", look(note))));
        }
        Op::Archive => lines.push(format!("      -> the archive: {}", planned.reason)),
        Op::Retag => {
            let into = planned.into.first().map_or(&[][..], |note| &note.tags[..]);
            lines.push(format!("      -> {} (before: {})", into.join(" "), first.tags.join(" ")));
        }
        Op::Split | Op::Rename | Op::Rewrite | Op::Tier => {
            lines.extend(planned.into.iter().map(|note| format!("      -> {}", look(note))));
        }
    }
    for (what, facts) in [("lost", &planned.lost), ("gone", &planned.gone)] {
        if !facts.is_empty() {
            let some: Vec<&str> = facts.iter().map(String::as_str).take(NAMED).collect();
            let more = facts.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            lines.push(format!("         {what}: {}{more}", some.join(", ")));
        }
    }
}

fn look(note: &NoteBrief) -> String {
    let place = if note.place == Place::Archive { ", archived" } else { "" };
    let rank = note.rank.map(|rank| format!(" {rank}")).unwrap_or_default();
    format!(
        "{} \"{}\" ({}{rank}{place}, {} lines, {} bytes)",
        note.id, note.title, note.tier, note.lines, note.bytes
    )
}
