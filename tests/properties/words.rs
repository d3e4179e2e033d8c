//! Lines that are split into words as a shell does: commands, with values that must not become words of their own.

use crate::base::command_line::{first_word, is_assignment};
use crate::base::text::{border, cut, in_line, one_line, wrap};
use crate::fuzz::{is_told, parts, text};
use crate::program::notes::parse_id;
use crate::store::entry::{EntryId, tag};
use crate::store::history::{Commit, hook_words};

pub fn holds(bytes: &[u8]) {
    let [hook, message, ids] = parts::<3>(bytes);
    let [hook, message, ids] = [hook, message, ids].map(text);
    let ids: Vec<String> = ids.lines().map(str::to_owned).collect();
    let commit = |message: &str, thread_ids: &[String]| Commit {
        hook: &hook,
        message: message.to_owned(),
        body: Vec::new(),
        thread_ids: thread_ids.to_vec(),
        count: 3,
    };
    match (hook_words(&commit(&message, &ids), &["topics"]), shlex::split(&hook)) {
        (Ok(words), Some(given)) => {
            // As many words as for any other value, and only where there are ids or none.
            let plain = hook_words(&commit("m", &["t-1".to_owned()]), &["topics"]).unwrap();
            let without = hook_words(&commit("m", &[]), &["topics"]).unwrap();
            assert!([plain.len(), without.len()].contains(&words.len()), "{words:?}");
            let is_git = given.starts_with(&["git".to_owned(), "commit".to_owned()]);
            assert!(words.ends_with(&["--".to_owned(), "topics".to_owned()]) || !is_git, "{words:?}");
            if !given.iter().any(|word| word.contains('{')) {
                assert!(words.starts_with(&given));
            }
        }
        (Err(why), _) => is_told(&why.message().replace('\n', " ")),
        (Ok(words), None) => panic!("{words:?} of a line that cannot be split"),
    }
    let first = first_word(&hook);
    assert!(
        !is_assignment(&first)
            || shlex::split(&hook).is_none_or(|words| words.iter().all(|w| is_assignment(w)))
    );
    pieces(&hook, &message);
}

/// The small things that every message goes through.
fn pieces(text: &str, other: &str) {
    let line = one_line(text, 40);
    assert!(!line.contains(char::is_control) && line.chars().count() <= 43);
    assert!(!in_line(text).contains(char::is_control));
    assert!(cut(text, 10).chars().count() <= 13);
    for at in 0..=text.len() {
        assert!(border(text, at) <= at && text.is_char_boundary(border(text, at)));
    }
    // A long word is broken.
    let solid = |text: &str| text.split_whitespace().collect::<String>();
    assert_eq!(solid(&wrap(text, 20).concat()), solid(text));
    for word in [text, other] {
        if let Ok(id) = parse_id(word) {
            assert_eq!(EntryId::whole(id.as_str()), Some(id));
        }
        if let Some(tag) = tag(word) {
            assert_eq!(crate::store::entry::tag(&tag), Some(tag));
        }
    }
}
