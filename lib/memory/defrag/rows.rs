//! Who belongs together: union-find.

/// Numbers in families, whose members stand in a row: those who joined early, and so are closest, next to each other. Each
/// is a family of its own at first.
pub(super) struct Rows {
    /// The way to a family's head, which is its own parent, the smallest number of the family and the first in its row.
    parents: Vec<usize>,
    next: Vec<Option<usize>>,
    /// Of a family's head: the last in the row.
    last: Vec<usize>,
}

impl Rows {
    pub(super) fn new(count: usize) -> Rows {
        Rows { parents: (0..count).collect(), next: vec![None; count], last: (0..count).collect() }
    }

    fn head(&mut self, mut of: usize) -> usize {
        while self.parents[of] != of {
            // Halves the way for whoever asks next.
            self.parents[of] = self.parents[self.parents[of]];
            of = self.parents[of];
        }
        of
    }

    /// Puts one row behind the other; false if they were one.
    pub(super) fn join(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.head(a), self.head(b));
        let (first, second) = (a.min(b), a.max(b));
        if first != second {
            self.parents[second] = first;
            self.next[self.last[first]] = Some(second);
            self.last[first] = self.last[second];
        }
        first != second
    }

    /// Every row, in order of their heads.
    pub(super) fn rows(mut self) -> Vec<Vec<usize>> {
        let heads: Vec<usize> = (0..self.next.len()).filter(|number| self.head(*number) == *number).collect();
        let row = |head| std::iter::successors(Some(head), |number: &usize| self.next[*number]).collect();
        heads.into_iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_led_by_their_smallest() {
        let mut rows = Rows::new(5);
        assert!(rows.join(4, 2) && rows.join(3, 4) && !rows.join(2, 3));
        let heads: Vec<usize> = (0..5).map(|number| rows.head(number)).collect();
        assert_eq!(heads, [0, 1, 2, 2, 2]);
    }

    #[test]
    fn rows_keep_those_together_that_joined_first() {
        let mut rows = Rows::new(6);
        for (a, b) in [(0, 5), (1, 3), (5, 3), (0, 1)] {
            rows.join(a, b);
        }
        assert_eq!(rows.rows(), [vec![0, 5, 1, 3], vec![2], vec![4]]);
    }

    #[test]
    fn a_long_chain_is_walked_once() {
        let mut rows = Rows::new(200_000);
        for number in (1..200_000).rev() {
            rows.join(number - 1, number);
        }
        assert_eq!(rows.rows(), [(0..200_000).collect::<Vec<usize>>()]);
    }
}
