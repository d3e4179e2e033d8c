//! Slugs, tags and file names.
//!
//! A file is called `<slug> -- topic__x area__y id__XXXXXX.md`, so that a directory listing can be read and grepped.

use crate::base::text::is_hidden;
use crate::store::entry::meta::Meta;
use unicode_segmentation::UnicodeSegmentation;

/// What most file systems allow, in bytes, less the additions in the name of the temporary file, `.NAME.XXXXXX`.
const NAME_CAP: usize = 255 - 8;
const SLUG_CAP: usize = 80;
/// The longest tag that is accepted from outside, in bytes: the front matter must have room for all of them.
const TAG_CAP: usize = 80;

impl Meta {
    /// Without invalid tags, and without the last tags if the name would be too long.
    pub fn file_name(&self) -> String {
        let slug = slug(&self.title);
        let mut tags: Vec<&str> = self.tags.iter().map(String::as_str).filter(|tag| is_tag(tag)).collect();
        loop {
            let tagged: String = tags.iter().flat_map(|tag| [tag, " "]).collect();
            let name = format!("{slug} -- {tagged}{}.md", self.id);
            if name.len() <= NAME_CAP || tags.pop().is_none() {
                return name;
            }
        }
    }
}

/// The letters and digits of a title, of any script, in lower case, with one `-` for everything between them.
/// At most 80 bytes; `untitled` if nothing is left.
fn slug(title: &str) -> String {
    let mut slug = if title.is_ascii() { ascii_slug(title) } else { unicode_slug(title) };
    let end = slug.trim_end_matches('-').len();
    slug.truncate(end);
    if slug.is_empty() { "untitled".to_owned() } else { slug }
}

/// The same as [`unicode_slug`] for ASCII, in a hundredth of the time.
fn ascii_slug(title: &str) -> String {
    let mut slug = String::with_capacity(title.len().min(SLUG_CAP));
    for byte in title.bytes() {
        let next = match byte {
            _ if byte.is_ascii_alphanumeric() => char::from(byte.to_ascii_lowercase()),
            _ if slug.is_empty() || slug.ends_with('-') => continue,
            _ => '-',
        };
        if slug.len() == SLUG_CAP {
            break;
        }
        slug.push(next);
    }
    slug
}

fn unicode_slug(title: &str) -> String {
    let mut slug = String::new();
    for grapheme in title.to_lowercase().graphemes(true) {
        let letters = letters(grapheme);
        let dash = if letters.is_empty() && !slug.is_empty() && !slug.ends_with('-') { "-" } else { "" };
        let room = SLUG_CAP - slug.len();
        if letters.len() + dash.len() > room {
            // A letter with a hundred marks is cut between them, not lost.
            if slug.is_empty() {
                let fits = letters.char_indices().take_while(|(at, c)| at + c.len_utf8() <= room);
                slug.extend(fits.map(|(_, c)| c));
            }
            break;
        }
        slug.push_str(&letters);
        slug.push_str(dash);
    }
    slug
}

/// A letter or digit with its marks; empty for a grapheme without a letter.
fn letters(grapheme: &str) -> String {
    let mut letters = String::new();
    for c in grapheme.chars() {
        if c.is_alphanumeric() && !is_hidden(c) || (!letters.is_empty() && is_mark(c)) {
            letters.push(c);
        }
    }
    letters
}

/// A mark that may follow a letter: not a joiner, variation selector, emoji or the like, which are invisible or
/// unexpected in a name.
fn is_mark(c: char) -> bool {
    !is_hidden(c)
        && !matches!(c, '\u{0}'..='\u{2ff}' | '\u{20e3}' | '\u{1f000}'..='\u{1ffff}' | '\u{e0000}'..)
}

/// A tag as people and models write it: `x` is `topic__x`, and case and surrounding spaces do not matter. `None` unless
/// it is a word of the letters a to z, digits and `-`, with or without `topic__` or `area__` before it.
pub fn tag(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let tag = if is_word(&text) { format!("topic__{text}") } else { text };
    // The limit is for the whole tag, since that is what is read again.
    (tag.len() <= TAG_CAP && is_tag(&tag)).then_some(tag)
}

/// `(topic|area)__[a-z0-9-]+`
pub fn is_tag(text: &str) -> bool {
    text.strip_prefix("topic__").or_else(|| text.strip_prefix("area__")).is_some_and(is_word)
}

fn is_word(text: &str) -> bool {
    let allowed = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    !text.is_empty() && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::entry::id::EntryId;

    fn meta(title: &str, tags: &[&str]) -> Meta {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        Meta { title: title.to_owned(), tags, ..Meta::new(EntryId::whole("id__a1B2c3").unwrap()) }
    }

    #[test]
    fn slugs_keep_letters_of_any_script() {
        for (title, expected) in [
            ("xstate guard patterns", "xstate-guard-patterns"),
            ("  C++ / Rust: a *comparison*!  ", "c-rust-a-comparison"),
            ("Grüße aus Köln", "grüße-aus-köln"),
            ("e\u{301}te\u{301} de\u{301}ja\u{300}", "e\u{301}te\u{301}-de\u{301}ja\u{300}"),
            ("हिन्दी में", "हिन्दी-में"),
            ("שָׁלוֹם עולם", "שָׁלוֹם-עולם"),
            ("日本語、メモ", "日本語-メモ"),
            ("می\u{200c}خواهم", "میخواهم"),
            ("ok 👍🏽 and 👩\u{200d}💻 1\u{fe0f}\u{20e3}", "ok-and-1"),
            ("a\u{1f3fd}b", "ab"),
            ("../../etc/passwd\0", "etc-passwd"),
            ("a\r\nb\u{2028}c\u{202e}d", "a-b-c-d"),
            ("", "untitled"),
            ("— 🦀 —", "untitled"),
            ("\u{301}", "untitled"),
        ] {
            assert_eq!(slug(title), expected, "{title:?}");
        }
    }

    #[test]
    fn ascii_slugs_are_the_same() {
        for title in
            ["", "-", "a", "A b--c_", "\r\n x\0y\t", "3 ways: out!", &"ab, ".repeat(40), &"a".repeat(81)]
        {
            assert_eq!(ascii_slug(title), unicode_slug(title), "{title:?}");
        }
        // Every two characters, and a long title that ends at each place.
        for (a, b) in (0..128u8).flat_map(|a| (0..128u8).map(move |b| (a, b))) {
            let title = format!("{}{}", char::from(a), char::from(b));
            assert_eq!(ascii_slug(&title), unicode_slug(&title), "{title:?}");
        }
        for length in 70..90 {
            let title = format!("{}, {}", "x".repeat(length), "y".repeat(length));
            assert_eq!(ascii_slug(&title), unicode_slug(&title), "{title:?}");
        }
    }

    #[test]
    fn slugs_are_cut_between_characters() {
        assert_eq!(slug(&"a".repeat(100)), "a".repeat(80));
        assert_eq!(slug(&format!("{} b", "a".repeat(79))), "a".repeat(79));
        assert_eq!(slug(&format!("{}ü", "a".repeat(79))), "a".repeat(79));
        // A letter and its mark go together …
        assert_eq!(slug(&format!("{}e\u{301}", "a".repeat(78))), "a".repeat(78));
        // … unless there would be nothing.
        assert_eq!(slug(&format!("x{}", "\u{301}".repeat(100))), format!("x{}", "\u{301}".repeat(39)));
    }

    #[test]
    fn tags_are_made_whole_or_refused() {
        for (text, expected) in [
            ("x", Some("topic__x")),
            (" Rust-2024 ", Some("topic__rust-2024")),
            ("area__web", Some("area__web")),
            ("topic__", None),
            ("kind__x", None),
            ("a/b", None),
            ("a b", None),
            ("größe", None),
            ("topic__x__y", None),
            ("", None),
            (&"x".repeat(81), None),
            // With what is put before it, it would be too long to be read again.
            (&"x".repeat(75), None),
        ] {
            assert_eq!(tag(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn names_carry_valid_tags() {
        assert_eq!(meta("A note", &[]).file_name(), "a-note -- id__a1B2c3.md");
        assert_eq!(
            meta("A note", &["topic__x", "Not/Valid", "area__y"]).file_name(),
            "a-note -- topic__x area__y id__a1B2c3.md"
        );
    }

    #[test]
    fn a_name_that_is_too_long_loses_its_last_tags() {
        let long = format!("topic__{}", "a".repeat(100));
        let title = "ü".repeat(60);
        let name = meta(&title, &[&long, "area__y", &long, "topic__z"]).file_name();
        assert_eq!(name, format!("{} -- {long} area__y id__a1B2c3.md", "ü".repeat(40)));
        let name = meta(&title, &["topic__x", &format!("topic__{}", "b".repeat(300))]).file_name();
        assert_eq!(name, format!("{} -- topic__x id__a1B2c3.md", "ü".repeat(40)));
    }
}
