//! Three versions of a text become one, by lines: what only one side changed is taken from it.

use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::ops::Range;

/// Beyond so many lines, finding what changed could take minutes for a text that was made for that. Such a text is
/// merged as one line.
const LINES_CAP: usize = 5_000;

/// A merged text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lines {
    /// Where both sides changed the same lines, the winner's stand here.
    pub(super) text: Vec<u8>,
    /// The same text with the other side's lines at those places; `None` if there are none.
    pub(super) other: Option<Vec<u8>>,
}

/// Lines of the base that a side has replaced, and what stands there now.
#[derive(Debug, Clone)]
struct Hunk {
    base: Range<usize>,
    new: Range<usize>,
}

/// Merges what became of `base`. Changes that overlap or touch clash unless they are the same.
pub(super) fn merge(base: &[u8], winner: &[u8], other: &[u8]) -> Lines {
    let whole = |text: &[u8]| Lines { text: text.to_vec(), other: None };
    if winner == other || base == other {
        return whole(winner);
    }
    if base == winner {
        return whole(other);
    }
    let [base, winner, other] = [base, winner, other].map(split);
    if [&base, &winner, &other].iter().any(|lines| lines.len() > LINES_CAP) {
        return Lines { text: winner.concat(), other: Some(other.concat()) };
    }
    let (ours, theirs) = (hunks(&base, &winner), hunks(&base, &other));
    let (mut ours, mut theirs) = (ours.into_iter().peekable(), theirs.into_iter().peekable());
    let mut merged = Lines { text: Vec::new(), other: None };
    let mut done = 0;
    loop {
        let starts = [ours.peek(), theirs.peek()].into_iter().flatten().map(|hunk| hunk.base.start);
        let Some(start) = starts.min() else { break };
        // All changes that overlap or touch each other, as one region of the base.
        let mut region = start..start;
        let (mut of_ours, mut of_theirs) = (Vec::new(), Vec::new());
        loop {
            let touches = |hunk: &Hunk| hunk.base.start <= region.end;
            let next = match (ours.next_if(touches), theirs.next_if(touches)) {
                (None, None) => break,
                found => found,
            };
            for (hunk, list) in [(next.0, &mut of_ours), (next.1, &mut of_theirs)] {
                if let Some(hunk) = hunk {
                    region.end = region.end.max(hunk.base.end);
                    list.push(hunk);
                }
            }
        }
        push(&mut merged, &base[done..start]);
        let (here, there) =
            (side(&region, &of_ours, &winner, &base), side(&region, &of_theirs, &other, &base));
        match (of_ours.is_empty(), of_theirs.is_empty()) {
            (_, true) => push(&mut merged, here),
            (true, _) => push(&mut merged, there),
            _ if here == there => push(&mut merged, here),
            _ => {
                let so_far = merged.text.clone();
                let other = merged.other.get_or_insert(so_far);
                other.extend(there.concat());
                merged.text.extend(here.concat());
            }
        }
        done = region.end;
    }
    push(&mut merged, &base[done..]);
    merged
}

fn split(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

fn push(merged: &mut Lines, lines: &[&[u8]]) {
    for text in std::iter::once(&mut merged.text).chain(&mut merged.other) {
        lines.iter().for_each(|line| text.extend_from_slice(line));
    }
}

/// What a side has in place of `region`: its hunks there, and the lines of the base around them.
fn side<'a>(
    region: &Range<usize>,
    hunks: &[Hunk],
    new: &'a [&'a [u8]],
    base: &'a [&'a [u8]],
) -> &'a [&'a [u8]] {
    let (Some(first), Some(last)) = (hunks.first(), hunks.last()) else { return &base[region.clone()] };
    let start = first.new.start - (first.base.start - region.start);
    let end = last.new.end + (region.end - last.base.end);
    &new[start..end]
}

fn hunks(base: &[&[u8]], new: &[&[u8]]) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, base, new) {
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        let hunk = Hunk { base: op.old_range(), new: op.new_range() };
        match hunks.last_mut() {
            Some(last) if last.base.end == hunk.base.start && last.new.end == hunk.new.start => {
                (last.base.end, last.new.end) = (hunk.base.end, hunk.new.end);
            }
            _ => hunks.push(hunk),
        }
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(base: &str, winner: &str, other: &str) -> (String, Option<String>) {
        let text =
            |text: &str| text.split_terminator(' ').map(|word| format!("{word}\n")).collect::<String>();
        let back = |text: Vec<u8>| String::from_utf8(text).unwrap().replace('\n', " ").trim_end().to_owned();
        let Lines { text, other } =
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
        assert_eq!(lines, Lines { text: b"A\r\n\xff\nb\0".to_vec(), other: None });
    }

    #[test]
    fn a_text_that_was_made_to_take_long_is_merged_whole() {
        let text = |step: usize| (0..20_000).map(|n| format!("{}\n", n * step % 9973)).collect::<String>();
        let (base, one, two) = (text(1), text(7), text(13));
        let lines = merge(base.as_bytes(), one.as_bytes(), two.as_bytes());
        assert_eq!((lines.text, lines.other), (one.into_bytes(), Some(two.into_bytes())));
    }
}
