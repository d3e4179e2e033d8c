use super::*;
use crate::memory::search::corpus::{self, Note};
use std::collections::BTreeSet;

fn text(note: &Note) -> String {
    format!("{}\n{}\n{}", note.title, note.summary, note.body)
}

fn known() -> Vec<Note> {
    let mut notes = corpus::notes(include_str!("../../../../benches/search/notes.txt"));
    notes.extend(corpus::notes(include_str!("../../../../benches/search/everyday-notes.txt")));
    notes
}

fn second() -> Vec<Note> {
    corpus::notes(include_str!("twice.txt"))
}

/// Words of no language, the first of them often, so that notes look like notes.
fn babble(seed: u64, words: u64) -> String {
    let mut state = mix(seed + 1);
    let mut next = || {
        state = mix(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
        state % 4096
    };
    (0..words).map(|_| format!("w{}x ", next() * next() / 4096)).collect()
}

fn are_one_family(pairs: &[Pair], notes: usize) -> bool {
    let mut families = Rows::new(notes);
    pairs.iter().filter(|pair| families.join(pair.a, pair.b)).count() == notes - 1
}

#[derive(Default)]
struct Score {
    asked: usize,
    found: usize,
}

/// Every lesson that was written down twice is looked for among all notes; `of`: the odd or the even ones.
fn recall(keys: &[String], pairs: &[Pair], of: usize) -> Score {
    let once: BTreeSet<&String> = keys.iter().collect();
    let twice = once.into_iter().filter(|key| keys.iter().filter(|other| other == key).count() > 1);
    let mut score = Score::default();
    for key in twice.skip(of).step_by(2) {
        score.asked += 1;
        score.found += usize::from(pairs.iter().any(|pair| keys[pair.a] == *key && keys[pair.b] == *key));
    }
    score
}

#[test]
fn a_lesson_written_down_twice_is_found_and_related_notes_are_not() {
    for more in [0, 1_000] {
        let notes: Vec<Note> = known().into_iter().chain(second()).collect();
        let keys: Vec<String> = notes.iter().map(|note| note.key.clone()).collect();
        let texts: Vec<String> =
            notes.iter().map(text).chain((0..more).map(|seed| babble(seed, 40))).collect();
        let pairs = pairs(&texts);
        for of in [0, 1] {
            let Score { asked, found } = recall(&keys, &pairs, of);
            assert!(asked >= 27 && found * 100 >= asked * 95, "{found} of {asked} with {more} more");
        }
        let key = |index: usize| keys.get(index).map_or("babble", String::as_str);
        let wrong: Vec<_> = pairs
            .iter()
            .filter(|pair| key(pair.a) != key(pair.b))
            .map(|p| (key(p.a), key(p.b), p.percent))
            .collect();
        assert!(wrong.len() * 100 <= pairs.len() * 5, "{wrong:?}");
    }
}

#[test]
fn two_versions_are_found_with_no_other_notes_around() {
    let known = known();
    let second = second();
    let mut score = Score::default();
    for (index, note) in second.iter().enumerate() {
        let first = known.iter().chain(&second[..index]).find(|first| first.key == note.key);
        if let Some(first) = first {
            score.asked += 1;
            score.found += pairs(&[text(first), text(note)]).len();
        }
    }
    assert!(score.asked >= 50 && score.found * 100 >= score.asked * 95, "{} of {}", score.found, score.asked);
}

#[test]
fn a_note_is_found_inside_a_longer_one() {
    let mut texts: Vec<String> = known().iter().map(text).collect();
    let notes = texts.len();
    // Twelve notes in one, with a word changed here and there.
    texts.push(texts[20..32].concat().replace(" the ", " our ").replace("never", "not"));
    let found: BTreeSet<usize> =
        pairs(&texts).iter().filter(|pair| pair.b == notes).map(|pair| pair.a).collect();
    assert_eq!(found, (20..32).collect());
}

#[test]
fn a_short_note_on_the_topic_of_a_long_one_is_not_inside_it() {
    let known = known();
    let all: String = known.iter().step_by(2).map(text).collect();
    let texts: Vec<String> = known.iter().skip(1).step_by(2).map(text).chain([all]).collect();
    assert_eq!(pairs(&texts).iter().filter(|pair| pair.b == texts.len() - 1).count(), 0);
}

#[test]
fn the_same_text_is_alike_entirely() {
    let texts = ["Tabs, not spaces", "tabs not SPACES!", "Something else", "tabs not spaces"];
    assert_eq!(
        pairs(&texts).iter().map(|pair| (pair.a, pair.b, pair.percent)).collect::<Vec<_>>(),
        [(0, 1, 100), (0, 3, 100), (1, 3, 100)]
    );
}

#[test]
fn notes_that_say_nothing_are_no_duplicates() {
    assert!(pairs(&["", "", "--- !!!", "the of and", "\u{0}", "to be"]).is_empty());
    assert!(pairs(&[""; 0]).is_empty());
    assert!(pairs(&["alone"]).is_empty());
}

#[test]
fn a_paragraph_that_all_have_makes_no_duplicates() {
    let boilerplate = babble(0, 40);
    let texts: Vec<String> = (1..500).map(|seed| boilerplate.clone() + &babble(seed, 40)).collect();
    assert_eq!(pairs(&texts), []);
}

#[test]
fn the_pairs_of_a_large_family_join_it_and_are_few() {
    let template = babble(0, 40);
    for family in [
        vec![template.clone(); 1_000],
        (0..1_000).map(|n| format!("{template} number{n} {template}")).collect(),
    ] {
        let found = pairs(&family);
        assert!(are_one_family(&found, 1_000));
        assert!(found.len() * 2 <= family.len() * 5, "{}", found.len());
    }
}

#[test]
fn work_grows_with_the_text_and_not_with_its_square() {
    let template = babble(0, 40);
    let giant = babble(1, 20_000);
    let shapes: [(&str, &dyn Fn(u64) -> String); 6] = [
        ("babble", &|n| babble(n, 40)),
        ("identical", &|_| template.clone()),
        ("template", &|n| format!("{template} number{n}")),
        ("boilerplate", &|n| template.clone() + &babble(n, 20)),
        ("lists just short", &|n| (0..40).map(|k| format!("k{k}x{} ", n * (2 * k + 1) / 32)).collect()),
        ("giants", &|n| if n % 250 == 0 { giant.clone() } else { babble(n, 40) }),
    ];
    for (name, shape) in shapes {
        for count in [500, 1_000] {
            let texts: Vec<String> = (0..count).map(shape).collect();
            let (found, work) = search(&texts);
            let notes = texts.len();
            assert!(work.compared <= COMPARED * notes, "{name}: {work:?}");
            // Each word makes a shingle too. In a short list each note looks at those behind it: half of the
            // list on the mean.
            let mut words = 0;
            texts.iter().for_each(|text| words::each(text, |_| words += 1));
            assert!(work.looked_at <= 2 * words * SHORT_LIST / 2, "{name}: {work:?}");
            assert!(found.len() * 2 <= notes * 5, "{name}: {}", found.len());
        }
    }
}

#[test]
fn only_the_beginning_of_a_huge_note_is_read_and_never_half_a_character() {
    let note = text(&known()[0]);
    let huge = note.clone() + &"日本語の長い文書".repeat(50_000);
    assert!(huge.len() > 1 << 20);
    let found = pairs(&[note.as_str(), "another matter", huge.as_str()]);
    assert_eq!(found.iter().map(|pair| (pair.a, pair.b)).collect::<Vec<_>>(), [(0, 2)]);
    assert_eq!(["", "日", "日"].as_slice(), [2, 3, 5].map(|room| &"日本"[..border("日本", room)]));
}

#[test]
fn the_order_of_the_notes_does_not_matter() {
    let notes: Vec<Note> = known().into_iter().chain(second()).collect();
    let there: Vec<String> = notes.iter().map(text).collect();
    let back: Vec<String> = there.iter().rev().cloned().collect();
    let last = there.len() - 1;
    let mut turned: Vec<(usize, usize, u8)> =
        pairs(&back).iter().map(|pair| (last - pair.b, last - pair.a, pair.percent)).collect();
    turned.sort_unstable();
    let mut straight: Vec<(usize, usize, u8)> =
        pairs(&there).iter().map(|pair| (pair.a, pair.b, pair.percent)).collect();
    straight.sort_unstable();
    assert_eq!(straight, turned);
}
