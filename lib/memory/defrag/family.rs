//! Who belongs together: union-find.

/// Numbers in families. Each is a family of its own at first.
pub struct Families {
    /// The way to a family's head, which is its own parent and the smallest number of the family.
    parents: Vec<usize>,
}

impl Families {
    pub(super) fn new(count: usize) -> Families {
        Families { parents: (0..count).collect() }
    }

    /// The smallest number of the family that `of` belongs to.
    fn head(&mut self, mut of: usize) -> usize {
        while self.parents[of] != of {
            // Halves the way for whoever asks next.
            self.parents[of] = self.parents[self.parents[of]];
            of = self.parents[of];
        }
        of
    }

    /// Makes one family of two; false if they were one.
    pub(super) fn join(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.head(a), self.head(b));
        self.parents[a.max(b)] = a.min(b);
        a != b
    }
}

/// Families whose members stand in a row: those who joined early, and so are closest, next to each other.
pub struct Rows {
    families: Families,
    next: Vec<Option<usize>>,
    /// Of a family's head: the last in the row. The head is the first.
    last: Vec<usize>,
}

impl Rows {
    pub(super) fn new(count: usize) -> Rows {
        Rows { families: Families::new(count), next: vec![None; count], last: (0..count).collect() }
    }

    /// Puts one row behind the other, unless they are one.
    pub(super) fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.families.head(a), self.families.head(b));
        if self.families.join(a, b) {
            let (first, second) = (a.min(b), a.max(b));
            self.next[self.last[first]] = Some(second);
            self.last[first] = self.last[second];
        }
    }

    /// Every row, in order of their heads.
    pub(super) fn rows(mut self) -> Vec<Vec<usize>> {
        let heads: Vec<usize> = (0..self.next.len()).filter(|n| self.families.head(*n) == *n).collect();
        heads
            .into_iter()
            .map(|head| std::iter::successors(Some(head), |number| self.next[*number]).collect())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_led_by_their_smallest() {
        let mut families = Families::new(5);
        assert!(families.join(4, 2) && families.join(3, 4) && !families.join(2, 3));
        let heads: Vec<usize> = (0..5).map(|number| families.head(number)).collect();
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
