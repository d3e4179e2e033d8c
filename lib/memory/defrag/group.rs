//! A corpus that is too large for one call, shared out over several.
//!
//! Each call costs money and sees only its own notes. So the groups are well filled, and what may have to be
//! merged or linked stands in one: likely duplicates above all, then notes that link to each other, then those
//! that share a tag, the rarer the better.

use crate::memory::defrag::family::Rows;
use crate::memory::defrag::similar::Pair;
use std::collections::{BTreeMap, BTreeSet};

/// What a note weighs and is related to.
#[derive(Debug, Clone)]
pub struct Item<'a> {
    pub(super) bytes: usize,
    pub(super) tags: &'a [String],
    /// The notes that it links to.
    pub(super) links: Vec<usize>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// Each in ascending order.
    pub(super) groups: Vec<Vec<usize>>,
    /// Those that no call has room for.
    pub(super) too_large: Vec<usize>,
}

/// A group that is full to this share takes nothing from afar to become fuller.
const FULL_PERCENT: usize = 95;

/// Groups of related notes, each within `room` bytes. Every index comes once; a note larger than `room` comes
/// apart. Duplicates are parted only if they do not fit into one group together.
fn groups(items: &[Item<'_>], pairs: &[Pair], room: usize) -> Groups {
    let (fitting, too_large): (Vec<usize>, Vec<usize>) =
        (0..items.len()).partition(|index| items[*index].bytes <= room);
    let all = fitting.iter().fold(0, |sum: usize, index| sum.saturating_add(items[*index].bytes));
    let groups = match fitting.len() {
        0 => Vec::new(),
        _ if all <= room => vec![fitting],
        _ => fill(&in_rows(items, units(items, pairs, room)), room),
    };
    Groups { groups, too_large }
}

/// The same of `members` alone, which are in ascending order.
pub(super) fn groups_among(members: &[usize], items: &[Item<'_>], pairs: &[Pair], room: usize) -> Groups {
    let places: BTreeMap<usize, usize> = members.iter().enumerate().map(|(to, &from)| (from, to)).collect();
    let place = |from: &usize| places.get(from).copied();
    let items: Vec<Item<'_>> = members
        .iter()
        .filter_map(|&at| items.get(at))
        .map(|item| Item { links: item.links.iter().filter_map(place).collect(), ..item.clone() })
        .collect();
    let pairs: Vec<Pair> = pairs
        .iter()
        .filter_map(|pair| Some(Pair { a: place(&pair.a)?, b: place(&pair.b)?, percent: pair.percent }))
        .collect();
    let back = |group: Vec<usize>| group.into_iter().filter_map(|at| members.get(at).copied()).collect();
    let found = groups(&items, &pairs, room);
    Groups { groups: found.groups.into_iter().map(back).collect(), too_large: back(found.too_large) }
}

/// Notes that are not parted.
#[derive(Debug)]
struct Unit {
    notes: Vec<usize>,
    bytes: usize,
}

/// Families of duplicates; those beyond the room are cut, where their members are least alike if possible.
fn units(items: &[Item<'_>], pairs: &[Pair], room: usize) -> Vec<Unit> {
    let mut families = Rows::new(items.len());
    for pair in pairs {
        families.join(pair.a, pair.b);
    }
    let mut units: Vec<Unit> = Vec::new();
    for family in families.rows() {
        let mut unit = Unit { notes: Vec::new(), bytes: 0 };
        for note in family.into_iter().filter(|note| items[*note].bytes <= room) {
            let bytes = items[note].bytes;
            if bytes > room - unit.bytes {
                units.push(std::mem::replace(&mut unit, Unit { notes: Vec::new(), bytes: 0 }));
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
fn in_rows(items: &[Item<'_>], units: Vec<Unit>) -> Vec<Unit> {
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
    let mut waiting: BTreeSet<usize> = (0..row.len()).collect();
    let mut by_size: BTreeSet<(usize, usize)> =
        row.iter().enumerate().map(|(number, unit)| (unit.bytes, number)).collect();
    while !waiting.is_empty() {
        let mut group = Vec::new();
        let mut left = room;
        loop {
            let next = waiting.first().copied().filter(|number| row[*number].bytes <= left);
            let is_full = left <= room - room / 100 * FULL_PERCENT;
            let next = next.or_else(|| {
                let fitting = by_size.range(..=(left, usize::MAX)).next_back().filter(|_| !is_full);
                fitting.map(|(_, number)| *number)
            });
            let Some(number) = next else { break };
            waiting.remove(&number);
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

    fn item(bytes: usize) -> Item<'static> {
        Item { bytes, tags: &[], links: Vec::new() }
    }

    fn pair(a: usize, b: usize) -> Pair {
        Pair { a, b, percent: 80 }
    }

    fn group_of(groups: &Groups, note: usize) -> Option<usize> {
        groups.groups.iter().position(|group| group.contains(&note))
    }

    /// Every index once, and every group within the room; tells how full they are but for the last.
    fn check(items: &[Item<'_>], found: &Groups, room: usize) -> f64 {
        let mut all: Vec<usize> = found.groups.iter().flatten().chain(&found.too_large).copied().collect();
        all.sort_unstable();
        assert_eq!(all, (0..items.len()).collect::<Vec<usize>>());
        assert!(found.too_large.iter().all(|index| items[*index].bytes > room));
        let sizes: Vec<usize> =
            found.groups.iter().map(|group| group.iter().map(|index| items[*index].bytes).sum()).collect();
        assert!(sizes.iter().all(|size| *size <= room), "{sizes:?}");
        assert!(found.groups.iter().all(|group| !group.is_empty() && group.is_sorted()));
        let full = &sizes[..sizes.len().saturating_sub(1)];
        if full.is_empty() { 1.0 } else { full.iter().sum::<usize>() as f64 / (full.len() * room) as f64 }
    }

    #[test]
    fn what_fits_into_one_is_one_in_order() {
        let items = [item(10), item(20), item(70)];
        assert_eq!(groups(&items, &[pair(0, 2)], 100).groups, [[0, 1, 2]]);
        assert_eq!(groups(&[], &[], 100), Groups::default());
    }

    #[test]
    fn what_no_call_has_room_for_comes_apart() {
        let items = [item(10), item(101), item(20), item(usize::MAX)];
        let found = groups(&items, &[pair(0, 1), pair(1, 3)], 100);
        assert_eq!(found, Groups { groups: vec![vec![0, 2]], too_large: vec![1, 3] });
        assert_eq!(groups(&items, &[], 0).too_large, [0, 1, 2, 3]);
    }

    #[test]
    fn among_some_only_they_are_grouped_and_tied() {
        let items: Vec<Item<'_>> = (0..40).map(|n| Item { links: vec![(n + 20) % 40], ..item(10) }).collect();
        let members: Vec<usize> = (0..40).filter(|n| n % 2 == 1).collect();
        let found = groups_among(&members, &items, &[pair(1, 39), pair(3, 4)], 100);
        let mut all: Vec<usize> = found.groups.concat();
        all.sort_unstable();
        assert_eq!((all, found.groups.len()), (members, 2));
        assert_eq!(group_of(&found, 1), group_of(&found, 39));
        assert_eq!(group_of(&found, 7), group_of(&found, 27));
    }

    #[test]
    fn likely_duplicates_stay_together() {
        let items: Vec<Item<'_>> = (0..40).map(|_| item(10)).collect();
        let pairs = [pair(0, 39), pair(7, 30), pair(30, 22), pair(1, 20)];
        let found = groups(&items, &pairs, 100);
        check(&items, &found, 100);
        for Pair { a, b, .. } in pairs {
            assert_eq!(group_of(&found, a), group_of(&found, b));
        }
        assert_eq!(found.groups.len(), 4);
    }

    #[test]
    fn a_family_beyond_the_room_is_cut() {
        let items: Vec<Item<'_>> = (0..35).map(|_| item(10)).collect();
        let pairs: Vec<Pair> = (1..35).map(|b| pair(0, b)).collect();
        let found = groups(&items, &pairs, 100);
        assert_eq!(check(&items, &found, 100), 1.0);
        assert_eq!(found.groups.len(), 4);
    }

    #[test]
    fn links_and_rare_tags_bring_notes_together() {
        let common = vec!["all".to_owned()];
        let rare = vec!["all".to_owned(), "rare".to_owned()];
        let mut items: Vec<Item<'_>> = (0..40).map(|_| Item { tags: &common, ..item(10) }).collect();
        items[3].tags = &rare;
        items[37].tags = &rare;
        items[5].links = vec![25, 5, 99];
        items[25].links = vec![14];
        let found = groups(&items, &[], 100);
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
                let items: Vec<Item<'_>> = (0..2_000).map(|_| item(1 + dice.roll(largest))).collect();
                let pairs: Vec<Pair> = (0..300)
                    .map(|_| (dice.roll(2_000), dice.roll(2_000)))
                    .filter(|(a, b)| a != b)
                    .map(|(a, b)| pair(a.min(b), a.max(b)))
                    .collect();
                let found = groups(&items, &pairs, room);
                let full = check(&items, &found, room);
                assert!(full >= 0.7, "{room} {largest}: {full}");
                assert_eq!(found, groups(&items, &pairs, room));
            }
        }
    }

    #[test]
    fn a_new_note_without_ties_changes_no_group_before_the_last() {
        let tags: Vec<Vec<String>> = (0..50).map(|tag| vec![format!("topic{tag}")]).collect();
        let mut items: Vec<Item<'_>> =
            (0..1_000).map(|n| Item { tags: &tags[n * 7 % 50], ..item(97) }).collect();
        let before = groups(&items, &[], 8_000);
        items.push(item(97));
        let after = groups(&items, &[], 8_000);
        let same = before.groups.len() - 1;
        assert!(same > 10);
        assert_eq!(before.groups[..same], after.groups[..same]);
    }
}
