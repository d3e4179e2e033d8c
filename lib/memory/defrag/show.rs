//! What a defrag does, in words: for a person who is to judge it, and for the line at the end.

use crate::base::text::in_line;
use crate::memory::defrag::dropped::Dropped;
use crate::memory::defrag::plan::{Look, Planned};
use crate::memory::defrag::reply::Op;
use crate::store::persistence::Place;

/// So many lost facts are named for an operation.
const NAMED: usize = 20;

/// How many operations of each kind there are, by the word for it.
pub(crate) fn numbers<'a>(made: impl Iterator<Item = &'a Planned> + Clone) -> [(&'static str, usize); 7] {
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
pub(crate) fn counts<'a>(made: impl Iterator<Item = &'a Planned> + Clone) -> String {
    let numbers = numbers(made);
    let always = 5;
    let told = numbers.iter().enumerate().filter(|(at, (_, count))| *at < always || *count > 0);
    let words = told.map(|(_, (word, count))| format!("{count} {}", word.replace("reT", "re-t")));
    words.collect::<Vec<_>>().join(", ")
}

/// What would be done, line by line, with `total` notes at the beginning.
pub(crate) fn lines(
    made: &[Planned],
    dropped: &[Dropped],
    warnings: &[String],
    remarks: &[String],
    total: usize,
) -> Vec<String> {
    let mut lines = Vec::new();
    for planned in made {
        push(planned, &mut lines);
    }
    lines.extend(dropped.iter().map(ToString::to_string));
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
    lines.push(format!("{}; {total} {notes} {becomes}", counts(made.iter())));
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
    if !planned.lost.is_empty() {
        let some: Vec<&str> = planned.lost.iter().map(String::as_str).take(NAMED).collect();
        let more = planned.lost.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("         lost: {}{more}", some.join(", ")));
    }
}

fn look(note: &Look) -> String {
    let place = if note.place == Place::Archive { ", archived" } else { "" };
    let rank = note.rank.map(|rank| format!(" {rank}")).unwrap_or_default();
    format!(
        "{} \"{}\" ({}{rank}{place}, {} lines, {} bytes)",
        note.id, note.title, note.tier, note.lines, note.bytes
    )
}
