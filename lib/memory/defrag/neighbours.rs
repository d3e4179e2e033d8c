//! What a changed note is shown with: the notes that it may have to be merged with, or that it may have made wrong.

use crate::memory::defrag::group::Item;
use crate::memory::defrag::similar::Pair;
use std::collections::{BTreeMap, BTreeSet};

/// So many likely duplicates and linked notes come with a changed note.
const RELATED: usize = 6;
/// Up to so many, notes that share a tag come along, too.
const TAGGED: usize = 3;

/// The changed notes among `members`, and the neighbours of each: likely duplicates first, then what it links to and what
/// links to it, then what shares a tag, the rarer the better. Ascending; `members` are, too.
pub(super) fn with_neighbours(
    members: &[usize],
    is_news: impl Fn(usize) -> bool,
    items: &[Item<'_>],
    pairs: &[Pair],
) -> Vec<usize> {
    let news: Vec<usize> = members.iter().copied().filter(|at| is_news(*at)).collect();
    if news.len() == members.len() {
        return news;
    }
    let there: BTreeSet<usize> = members.iter().copied().collect();
    let mut related: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    // The most alike come first.
    for Pair { a, b, .. } in pairs {
        related.entry(*a).or_default().push(*b);
        related.entry(*b).or_default().push(*a);
    }
    let mut tagged: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for &at in members {
        for &link in &items[at].links {
            related.entry(at).or_default().push(link);
            related.entry(link).or_default().push(at);
        }
        for tag in items[at].tags {
            tagged.entry(tag).or_default().push(at);
        }
    }
    let mut all: BTreeSet<usize> = news.iter().copied().collect();
    for &at in &news {
        let related = related.get(&at).into_iter().flatten();
        let mut near: BTreeSet<usize> = BTreeSet::new();
        for other in related.filter(|other| there.contains(other) && **other != at) {
            if near.len() < RELATED {
                near.insert(*other);
            }
        }
        let mut sharing: Vec<&Vec<usize>> =
            items[at].tags.iter().filter_map(|tag| tagged.get(tag.as_str())).collect();
        sharing.sort_by_key(|notes| notes.len());
        for other in sharing.into_iter().flatten().filter(|other| **other != at) {
            if near.len() < TAGGED {
                near.insert(*other);
            }
        }
        all.extend(near);
    }
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(tags: &[String], links: Vec<usize>) -> Item<'_> {
        Item { bytes: 1, tags, links }
    }

    #[test]
    fn duplicates_links_in_both_directions_and_rare_tags_come_along() {
        let (common, rare) = (vec!["all".to_owned()], vec!["all".to_owned(), "rare".to_owned()]);
        let mut items: Vec<Item<'_>> = (0..40).map(|_| item(&common, Vec::new())).collect();
        let pairs = [Pair { a: 3, b: 7, percent: 90 }, Pair { a: 1, b: 2, percent: 80 }];
        items[9].links = vec![7];
        items[7].links = vec![30, 39];
        // Of another reach.
        let members: Vec<usize> = (0..39).collect();
        assert_eq!(with_neighbours(&members, |at| at == 7, &items, &pairs), [3, 7, 9, 30]);
        items[20].tags = &rare;
        items[25].tags = &rare;
        assert_eq!(with_neighbours(&members, |at| at == 20, &items, &pairs), [0, 1, 20, 25]);
    }

    #[test]
    fn how_much_comes_along_grows_with_the_news_and_not_with_the_notes() {
        let tags = vec!["all".to_owned()];
        for count in [100, 10_000] {
            let items: Vec<Item<'_>> = (0..count)
                .map(|n| item(&tags, (0..count).step_by(9).chain([(n + 1) % count]).collect()))
                .collect();
            let members: Vec<usize> = (0..count).collect();
            let news = [5, 17, 50];
            let all = with_neighbours(&members, |at| news.contains(&at), &items, &[]);
            assert!(all.len() <= news.len() * (1 + RELATED), "{}", all.len());
        }
        let items: Vec<Item<'_>> = (0..5).map(|_| item(&tags, Vec::new())).collect();
        assert_eq!(with_neighbours(&[1, 2, 3], |_| true, &items, &[]), [1, 2, 3]);
        assert_eq!(with_neighbours(&[1, 2, 3], |_| false, &items, &[]), [0usize; 0]);
    }
}
