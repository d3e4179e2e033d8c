//! What somebody looks for, in notes that say anything; and which notes are alike.

use crate::fuzz::{parts, text};
use crate::memory::defrag::similar::pairs;
use crate::memory::search::words::each;
use crate::memory::search::{Document, Query, Worth};

pub fn holds(bytes: &[u8]) {
    let [query, title, tags, summary, body] = parts::<5>(bytes);
    let [query, title, tags, summary, body] = [query, title, tags, summary, body].map(text);
    for text in [&query, &title, &tags, &summary, &body] {
        words_stand_in(text);
    }
    let tags: Vec<String> = tags.split_whitespace().map(str::to_owned).collect();
    let document = Document { title: &title, tags: &tags, summary: &summary, body: (&*body).into() };
    let other = Document { title: &query, tags: &[], summary: "", body: (&*title).into() };
    for query in [Query::parse(&query), Query::of_text(&query), Query::parse(&body)] {
        let documents = [&document, &other, &document];
        let counts = documents.map(|document| query.count(document));
        let worth = Worth::of(&query, counts.iter());
        let with_tags = counts.iter().zip(documents);
        let with_tags = with_tags.map(|(note, document)| query.has_tags(document.tags).then_some(note));
        let hits = worth.rank(&query, with_tags);
        assert!(hits.iter().all(|hit| hit.score.is_finite() && hit.score > 0.0 && hit.index < 3));
        assert!(hits.is_sorted_by(|a, b| a.score >= b.score));
        let of = |index: usize| hits.iter().find(|hit| hit.index == index).map(|hit| hit.score);
        assert_eq!(of(0), of(2), "the same note, and another rank");
        if query.is_empty() {
            assert!(hits.is_empty());
        }
        if let Some(line) = query.matching_line(&document) {
            assert!(!line.contains(char::is_control) && line.chars().count() < 180, "{line:?}");
        }
    }
    let texts = [&*title, &*summary, &*body, &*query, &*body];
    for pair in pairs(&texts) {
        assert!(pair.a < pair.b && pair.b < texts.len() && pair.percent <= 100, "{pair:?}");
    }
}

/// Words come in order, and each says where it stands.
fn words_stand_in(text: &str) {
    let (mut last, mut count) = (0, 0);
    each(text, |word| {
        assert!(word.start < word.end && word.end <= text.len());
        assert!(text.is_char_boundary(word.start) && text.is_char_boundary(word.end), "{word:?} in {text:?}");
        assert!(word.end >= last && !word.text.is_empty() && word.text.len() <= 4 * 64, "{word:?}");
        last = word.end;
        count += 1;
    });
    assert!(count <= 3 * text.len());
}
