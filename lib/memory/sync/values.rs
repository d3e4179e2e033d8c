//! Three versions of a value or of a list become one.

use std::collections::BTreeSet;

/// What became of a value that one side alone has changed, or both alike; `None`: each has changed it in its own way.
pub(super) fn settled<T: PartialEq>(base: T, one: T, two: T) -> Option<T> {
    if one == two || base == two { Some(one) } else { (base == one).then_some(two) }
}

/// The value of the side that changed it; the winner's if both did, or if it is not known what it was.
pub(super) fn pick<'a, T: PartialEq + ?Sized>(base: Option<&T>, winner: &'a T, other: &'a T) -> &'a T {
    if base == Some(winner) { other } else { winner }
}

/// What both have gained and neither has lost. The order does not depend on who asks.
pub(super) fn joined<T: Clone + PartialEq>(
    base: &[T],
    one: &[T],
    two: &[T],
    key: impl Fn(&T) -> String,
) -> Vec<T> {
    if let Some(list) = settled(base, one, two) {
        return list.to_vec();
    }
    let mut all: Vec<T> =
        base.iter().filter(|item| one.contains(item) && two.contains(item)).cloned().collect();
    let mut new: Vec<&T> = one.iter().chain(two).filter(|item| !base.contains(item)).collect();
    new.sort_by_cached_key(|item| key(item));
    let mut seen = BTreeSet::new();
    all.extend(new.into_iter().filter(|item| seen.insert(key(item))).cloned());
    all
}

/// A counter to which both sides have added. Without a base nobody knows what they have in common: the greater.
pub(super) fn summed(base: Option<u64>, one: u64, two: u64) -> u64 {
    let Some(base) = base else { return one.max(two) };
    let sum = i128::from(one) + i128::from(two) - i128::from(base);
    u64::try_from(sum.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_side_that_changed_a_value_is_heard() {
        assert_eq!(pick(Some(&1), &1, &2), &2);
        assert_eq!(pick(Some(&1), &2, &1), &2);
        assert_eq!(pick(Some(&1), &2, &3), &2);
        assert_eq!(pick(None, &2, &3), &2);
    }

    #[test]
    fn lists_gain_and_lose_on_both_sides() {
        let join = |base: &[&str], one: &[&str], two: &[&str]| {
            let there = joined(base, one, two, |item| (*item).to_owned());
            assert_eq!(there, joined(base, two, one, |item| (*item).to_owned()));
            there.join(" ")
        };
        assert_eq!(join(&["b", "a"], &["b", "a", "z"], &["b", "a", "c"]), "b a c z");
        assert_eq!(join(&["b", "a"], &["a"], &["b", "a", "c"]), "a c");
        assert_eq!(join(&["b", "a"], &["a", "b"], &["b", "a"]), "a b");
        assert_eq!(join(&[], &["b", "a"], &["c", "a"]), "a b c");
        assert_eq!(join(&["a"], &[], &[]), "");
    }

    #[test]
    fn counters_add_what_each_side_added() {
        assert_eq!(summed(Some(3), 5, 4), 6);
        assert_eq!(summed(None, 5, 4), 5);
        assert_eq!(summed(Some(5), 0, 0), 0);
        assert_eq!(summed(Some(0), u64::MAX, 1), u64::MAX);
    }
}
