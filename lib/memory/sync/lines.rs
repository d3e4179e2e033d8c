//! Three versions of a value, a list or a text become one: what only one side changed is taken from it.

use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::collections::BTreeSet;

/// Beyond so many lines, finding what changed could take minutes for a text that was made for that. Such a text is
/// merged as one line.
const LINES_CAP: usize = 5_000;

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

/// A merged text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MergedLines {
    /// Where both sides changed the same lines, the winner's stand here.
    pub(super) text: Vec<u8>,
    /// The same text with the other side's lines at those places; `None` if there are none.
    pub(super) other: Option<Vec<u8>>,
}

/// Merges what became of `base`. Changes that overlap or touch clash unless they are the same.
pub(super) fn merge(base: &[u8], winner: &[u8], other: &[u8]) -> MergedLines {
    if let Some(text) = settled(base, winner, other) {
        return MergedLines { text: text.to_vec(), other: None };
    }
    let [base, winner, other] =
        [base, winner, other].map(|text| text.split_inclusive(|byte| *byte == b'\n').collect::<Vec<_>>());
    if [&base, &winner, &other].iter().any(|lines| lines.len() > LINES_CAP) {
        return MergedLines { text: winner.concat(), other: Some(other.concat()) };
    }
    let (ours, theirs) = (kept(&base, &winner), kept(&base, &other));
    let mut merged = MergedLines { text: Vec::new(), other: None };
    let (mut b, mut w, mut o) = (0, 0, 0);
    loop {
        // Up to the next line that both sides have kept.
        let stable = (b..base.len()).find_map(|at| Some((at, ours[at]?, theirs[at]?)));
        let (to_b, to_w, to_o) = stable.unwrap_or((base.len(), winner.len(), other.len()));
        let (here, there) = (&winner[w..to_w], &other[o..to_o]);
        match settled(&base[b..to_b], here, there) {
            Some(lines) => push(&mut merged, lines),
            None => {
                let other = merged.other.get_or_insert_with(|| merged.text.clone());
                other.extend(there.concat());
                merged.text.extend(here.concat());
            }
        }
        if stable.is_none() {
            return merged;
        }
        push(&mut merged, &base[to_b..=to_b]);
        (b, w, o) = (to_b + 1, to_w + 1, to_o + 1);
    }
}

fn push(merged: &mut MergedLines, lines: &[&[u8]]) {
    for text in std::iter::once(&mut merged.text).chain(&mut merged.other) {
        lines.iter().for_each(|line| text.extend_from_slice(line));
    }
}

/// Where each line of the base is in `new`, if it is.
fn kept(base: &[&[u8]], new: &[&[u8]]) -> Vec<Option<usize>> {
    let mut places = vec![None; base.len()];
    for op in capture_diff_slices(Algorithm::Myers, base, new) {
        if let DiffOp::Equal { old_index, new_index, len } = op {
            (0..len).for_each(|at| places[old_index + at] = Some(new_index + at));
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(base: &str, winner: &str, other: &str) -> (String, Option<String>) {
        let text =
            |text: &str| text.split_terminator(' ').map(|word| format!("{word}\n")).collect::<String>();
        let back = |text: Vec<u8>| String::from_utf8(text).unwrap().replace('\n', " ").trim_end().to_owned();
        let MergedLines { text, other } =
            merge(text(base).as_bytes(), text(winner).as_bytes(), text(other).as_bytes());
        (back(text), other.map(back))
    }

    #[test]
    fn changes_at_different_places_are_both_made() {
        for (base, one, two, expected) in [
            ("a b c d e", "A b c d e", "a b c d E", "A b c d E"),
            ("a b c", "a b c", "a x c", "a x c"),
            ("a b c d", "b c d", "a b c d e", "b c d e"),
            ("a b c d", "a b c d", "", ""),
            ("a b c d e f", "a x b c d e f", "a b c e f", "a x b c e f"),
            ("a b c", "a x c", "a x c", "a x c"),
            ("", "", "a", "a"),
        ] {
            assert_eq!(merged(base, one, two), (expected.to_owned(), None), "{base}");
            assert_eq!(merged(base, two, one), (expected.to_owned(), None), "{base}");
        }
    }

    #[test]
    fn where_lines_clash_each_text_has_one_side_and_all_else_of_both() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(merged("a b c d e", "A b x d e", "a b y d E"), ("A b x d E".into(), some("A b y d E")));
        assert_eq!(merged("a", "a x", "a y"), ("a x".into(), some("a y")));
        assert_eq!(merged("a b", "a", "a B"), ("a".into(), some("a B")));
        assert_eq!(merged("", "x", "y"), ("x".into(), some("y")));
        // A change beside another one: who knows whether they belong together.
        assert_eq!(merged("a b", "A b", "a B"), ("A b".into(), some("a B")));
    }

    #[test]
    fn bytes_stay_as_they_are() {
        let lines = merge(b"a\r\n\xff\nb", b"A\r\n\xff\nb", b"a\r\n\xff\nb\0");
        assert_eq!(lines, MergedLines { text: b"A\r\n\xff\nb\0".to_vec(), other: None });
    }

    #[test]
    fn a_text_that_was_made_to_take_long_is_merged_whole() {
        let text = |step: usize| (0..20_000).map(|n| format!("{}\n", n * step % 9973)).collect::<String>();
        let (base, one, two) = (text(1), text(7), text(13));
        let lines = merge(base.as_bytes(), one.as_bytes(), two.as_bytes());
        assert_eq!((lines.text, lines.other), (one.into_bytes(), Some(two.into_bytes())));
    }

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
