//! A corpus that is too large for one call, shared out over several.
//!
//! Each call costs money and sees only its own notes. So the groups are well filled, and what may have to be
//! merged or linked stands in one: likely duplicates above all, then notes that link to each other, then those
//! that share a tag, the rarer the better.

use crate::memory::defrag::rows::Rows;
use crate::memory::defrag::similar::Pair;
use std::collections::{BTreeMap, BTreeSet};

/// What a note weighs and is related to.
#[derive(Debug, Clone)]
pub struct NoteNode<'a> {
    pub(super) bytes: usize,
    pub(super) tags: &'a [String],
    /// The notes that it links to.
    pub(super) links: Vec<usize>,
}

/// A group that is full to this share takes nothing from afar to become fuller.
const FULL_PERCENT: usize = 95;

/// Groups of related notes among `members`, each within `room` bytes and both in ascending order; and those that are larger
/// than that. Duplicates are parted only if they do not fit into one group together.
pub(super) fn groups(
    members: &[usize],
    items: &[NoteNode<'_>],
    pairs: &[Pair],
    room: usize,
) -> (Vec<Vec<usize>>, Vec<usize>) {
    let (fitting, too_large): (Vec<usize>, Vec<usize>) =
        members.iter().partition(|at| items[**at].bytes <= room);
    let all = fitting.iter().fold(0, |sum: usize, at| sum.saturating_add(items[*at].bytes));
    let groups = match fitting.len() {
        0 => Vec::new(),
        _ if all <= room => vec![fitting],
        _ => fill(&in_rows(items, units(members, items, pairs, room)), room),
    };
    (groups, too_large)
}

/// Notes that are not parted.
#[derive(Debug, Default)]
struct Unit {
    notes: Vec<usize>,
    bytes: usize,
}

/// Families of duplicates; those beyond the room are cut, where their members are least alike if possible.
fn units(members: &[usize], items: &[NoteNode<'_>], pairs: &[Pair], room: usize) -> Vec<Unit> {
    let mut is_member = vec![false; items.len()];
    members.iter().for_each(|at| is_member[*at] = true);
    let mut families = Rows::new(items.len());
    for pair in pairs.iter().filter(|pair| is_member[pair.a] && is_member[pair.b]) {
        families.join(pair.a, pair.b);
    }
    let mut units: Vec<Unit> = Vec::new();
    for family in families.rows() {
        let mut unit = Unit::default();
        for note in family.into_iter().filter(|note| is_member[*note] && items[*note].bytes <= room) {
            let bytes = items[note].bytes;
            if bytes > room - unit.bytes {
                units.push(std::mem::take(&mut unit));
            }
            unit.notes.push(note);
            unit.bytes += bytes;
        }
        if !unit.notes.is_empty() {
            units.push(unit);
        }
    }
    units
}

/// All units in one row, related ones near each other.
fn in_rows(items: &[NoteNode<'_>], units: Vec<Unit>) -> Vec<Unit> {
    let mut unit_of: Vec<Option<usize>> = vec![None; items.len()];
    for (number, unit) in units.iter().enumerate() {
        for note in &unit.notes {
            unit_of[*note] = Some(number);
        }
    }
    let mut tagged: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    // How many have in common what ties these two: a link is for two.
    let mut ties: Vec<(usize, usize, usize)> = Vec::new();
    for (item, unit) in items.iter().zip(&unit_of) {
        let Some(unit) = *unit else { continue };
        let linked = item.links.iter().filter_map(|link| unit_of.get(*link).copied().flatten());
        ties.extend(linked.map(|other| (2, unit.min(other), unit.max(other))));
        for tag in item.tags {
            tagged.entry(tag).or_default().push(unit);
        }
    }
    for mut having in tagged.into_values() {
        having.sort_unstable();
        having.dedup();
        ties.extend(having.windows(2).map(|two| (having.len(), two[0], two[1])));
    }
    ties.sort_unstable();
    let mut rows = Rows::new(units.len());
    for (_, a, b) in ties {
        rows.join(a, b);
    }
    let mut units: Vec<Option<Unit>> = units.into_iter().map(Some).collect();
    rows.rows().into_iter().flatten().filter_map(|unit| units[unit].take()).collect()
}

/// Group after group from the row. What is next and does not fit begins the next group, and if there is much
/// room left, the largest that do fit come forward.
fn fill(row: &[Unit], room: usize) -> Vec<Vec<usize>> {
    let mut groups = Vec::new();
    // Those that are in no group yet: in their order, and by size.
    let mut left_over: BTreeSet<usize> = (0..row.len()).collect();
    let mut by_size: BTreeSet<(usize, usize)> =
        row.iter().enumerate().map(|(number, unit)| (unit.bytes, number)).collect();
    while !left_over.is_empty() {
        let mut group = Vec::new();
        let mut left = room;
        loop {
            let next = left_over.first().copied().filter(|number| row[*number].bytes <= left);
            let is_full = left <= room - room / 100 * FULL_PERCENT;
            let next = next.or_else(|| {
                let fitting = by_size.range(..=(left, usize::MAX)).next_back().filter(|_| !is_full);
                fitting.map(|(_, number)| *number)
            });
            let Some(number) = next else { break };
            left_over.remove(&number);
            by_size.remove(&(row[number].bytes, number));
            left -= row[number].bytes;
            group.extend(&row[number].notes);
        }
        group.sort_unstable();
        groups.push(group);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, sides: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % sides
        }
    }

    fn item(bytes: usize) -> NoteNode<'static> {
        NoteNode { bytes, tags: &[], links: Vec::new() }
    }

    fn pair(a: usize, b: usize) -> Pair {
        Pair { a, b, percent: 80 }
    }

    type Groups = (Vec<Vec<usize>>, Vec<usize>);

    fn all_groups(items: &[NoteNode<'_>], pairs: &[Pair], room: usize) -> Groups {
        groups(&(0..items.len()).collect::<Vec<_>>(), items, pairs, room)
    }

    fn group_of((groups, _): &Groups, note: usize) -> Option<usize> {
        groups.iter().position(|group| group.contains(&note))
    }

    /// Every index once, and every group within the room; tells how full they are but for the last.
    fn check(items: &[NoteNode<'_>], (groups, too_large): &Groups, room: usize) -> f64 {
        let mut all: Vec<usize> = groups.iter().flatten().chain(too_large).copied().collect();
        all.sort_unstable();
        assert_eq!(all, (0..items.len()).collect::<Vec<usize>>());
        assert!(too_large.iter().all(|index| items[*index].bytes > room));
        let sizes: Vec<usize> =
            groups.iter().map(|group| group.iter().map(|index| items[*index].bytes).sum()).collect();
        assert!(sizes.iter().all(|size| *size <= room), "{sizes:?}");
        assert!(groups.iter().all(|group| !group.is_empty() && group.is_sorted()));
        let full = &sizes[..sizes.len().saturating_sub(1)];
        if full.is_empty() { 1.0 } else { full.iter().sum::<usize>() as f64 / (full.len() * room) as f64 }
    }

    #[test]
    fn what_fits_into_one_is_one_in_order() {
        let items = [item(10), item(20), item(70)];
        assert_eq!(all_groups(&items, &[pair(0, 2)], 100).0, [[0, 1, 2]]);
        assert_eq!(all_groups(&[], &[], 100), (vec![], vec![]));
    }

    #[test]
    fn what_no_call_has_room_for_comes_apart() {
        let items = [item(10), item(101), item(20), item(usize::MAX)];
        let found = all_groups(&items, &[pair(0, 1), pair(1, 3)], 100);
        assert_eq!(found, (vec![vec![0, 2]], vec![1, 3]));
        assert_eq!(all_groups(&items, &[], 0).1, [0, 1, 2, 3]);
    }

    #[test]
    fn among_some_only_they_are_grouped_and_tied() {
        let items: Vec<NoteNode<'_>> =
            (0..40).map(|n| NoteNode { links: vec![(n + 20) % 40], ..item(10) }).collect();
        let members: Vec<usize> = (0..40).filter(|n| n % 2 == 1).collect();
        let found = groups(&members, &items, &[pair(1, 39), pair(3, 4)], 100);
        let mut all: Vec<usize> = found.0.concat();
        all.sort_unstable();
        assert_eq!((all, found.0.len()), (members, 2));
        assert_eq!(group_of(&found, 1), group_of(&found, 39));
        assert_eq!(group_of(&found, 7), group_of(&found, 27));
    }

    #[test]
    fn likely_duplicates_stay_together() {
        let items: Vec<NoteNode<'_>> = (0..40).map(|_| item(10)).collect();
        let pairs = [pair(0, 39), pair(7, 30), pair(30, 22), pair(1, 20)];
        let found = all_groups(&items, &pairs, 100);
        check(&items, &found, 100);
        for Pair { a, b, .. } in pairs {
            assert_eq!(group_of(&found, a), group_of(&found, b));
        }
        assert_eq!(found.0.len(), 4);
    }

    #[test]
    fn a_family_beyond_the_room_is_cut() {
        let items: Vec<NoteNode<'_>> = (0..35).map(|_| item(10)).collect();
        let pairs: Vec<Pair> = (1..35).map(|b| pair(0, b)).collect();
        let found = all_groups(&items, &pairs, 100);
        assert_eq!(check(&items, &found, 100), 1.0);
        assert_eq!(found.0.len(), 4);
    }

    #[test]
    fn links_and_rare_tags_bring_notes_together() {
        let common = vec!["all".to_owned()];
        let rare = vec!["all".to_owned(), "rare".to_owned()];
        let mut items: Vec<NoteNode<'_>> = (0..40).map(|_| NoteNode { tags: &common, ..item(10) }).collect();
        items[3].tags = &rare;
        items[37].tags = &rare;
        items[5].links = vec![25, 5, 99];
        items[25].links = vec![14];
        let found = all_groups(&items, &[], 100);
        assert_eq!(check(&items, &found, 100), 1.0);
        assert_eq!(group_of(&found, 3), group_of(&found, 37));
        assert_eq!(group_of(&found, 5), group_of(&found, 25));
        assert_eq!(group_of(&found, 14), group_of(&found, 25));
    }

    #[test]
    fn groups_are_well_filled() {
        let mut dice = Dice(7);
        for room in [1_000, 10_000, 100_000] {
            for largest in [300, 3_000, 30_000] {
                let items: Vec<NoteNode<'_>> = (0..2_000).map(|_| item(1 + dice.roll(largest))).collect();
                let pairs: Vec<Pair> = (0..300)
                    .map(|_| (dice.roll(2_000), dice.roll(2_000)))
                    .filter(|(a, b)| a != b)
                    .map(|(a, b)| pair(a.min(b), a.max(b)))
                    .collect();
                let found = all_groups(&items, &pairs, room);
                let full = check(&items, &found, room);
                assert!(full >= 0.7, "{room} {largest}: {full}");
                assert_eq!(found, all_groups(&items, &pairs, room));
            }
        }
    }

    #[test]
    fn a_new_note_without_ties_changes_no_group_before_the_last() {
        let tags: Vec<Vec<String>> = (0..50).map(|tag| vec![format!("topic{tag}")]).collect();
        let mut items: Vec<NoteNode<'_>> =
            (0..1_000).map(|n| NoteNode { tags: &tags[n * 7 % 50], ..item(97) }).collect();
        let before = all_groups(&items, &[], 8_000);
        items.push(item(97));
        let after = all_groups(&items, &[], 8_000);
        let same = before.0.len() - 1;
        assert!(same > 10);
        assert_eq!(before.0[..same], after.0[..same]);
    }
}
