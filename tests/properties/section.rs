//! The managed section: markers in a file that somebody else writes, around notes that say anything.

use crate::base::text::is_hidden;
use crate::fuzz::{choice, is_told, parts, text};
use crate::harness::recalled::{END, START};
use crate::memory::section::splice::{find, spliced};
use crate::memory::section::{Pool, SectionLimits};
use crate::store::entry::{Entry, EntryId, Meta, Tier};
use crate::store::persistence::{Note, Place};
use jiff::civil::Date;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::path::PathBuf;

pub fn holds(bytes: &[u8]) {
    let (tier, bytes) = choice(bytes, 3);
    let [file, title, summary, body] = parts::<4>(bytes);
    let section = rendered([Tier::Hot, Tier::Warm, Tier::Cold][tier], &text(title), &text(summary), body);
    assert_contained(&section);
    assert!(tier == 2 || section.contains("zzzz"));
    let at = match find(file) {
        Ok(at) => at,
        Err(error) => return is_told(&error.line()),
    };
    let (before, after) = match &at {
        Some(at) => (&file[..at.start], &file[at.end..]),
        None => (file, &b""[..]),
    };
    if at.is_some() {
        let inside = &file[before.len()..file.len() - after.len()];
        assert!(inside.starts_with(START.as_bytes()) && inside.ends_with(END.as_bytes()));
    }
    // Outside the markers not one byte changes, and the section is found again where it was put.
    let new = spliced(file, at.as_ref(), &section);
    assert!(new.starts_with(before) && new.ends_with(after));
    let found = find(&new).unwrap().expect("a section that was written is found");
    assert_eq!(text(&new[found.clone()]).replace("\r\n", "\n"), section.replace("\r\n", "\n"));
    if at.is_some() {
        assert_eq!((&new[..found.start], &new[found.end..]), (before, after));
    }
    assert_eq!(text(&spliced(&new, Some(&found), &section)), text(&new), "a second time changes something");
    // Nor does another section in its place.
    let other = rendered(Tier::Warm, "another", "", b"");
    let changed = spliced(&new, Some(&found), &other);
    assert!(changed.starts_with(&new[..found.start]) && changed.ends_with(&new[found.end..]));
    let back = spliced(&changed, Some(&find(&changed).unwrap().unwrap()), &section);
    assert_eq!(text(&back), text(&new));
}

/// A section with two notes: what the second says is not swallowed by the first.
fn rendered(tier: Tier, title: &str, summary: &str, body: &[u8]) -> String {
    let note = |id: &str, title: &str, body: &[u8]| {
        let mut meta = Meta::new(EntryId::parse(id).unwrap());
        meta.title = title.to_owned();
        meta.summary = summary.to_owned();
        meta.tier = tier;
        let entry = Entry::new(meta, body);
        Note { place: Place::Topics, path: PathBuf::from("/n").join(entry.meta().file_name()), entry }
    };
    let notes = [note("id__a1B2c3", title, body), note("id__z9yX1w", "zzzz", b"the last one\n")];
    // A warm one in a line.
    let hot_bytes = if tier == Tier::Warm { 0 } else { 4 << 20 };
    let room = SectionLimits { hot_bytes, warm_bytes: 4 << 20, warm_notes: u64::MAX };
    let mut pool = Pool::of(None, vec![None], Date::MIN, Vec::new());
    let chosen = notes.map(|note| pool.chosen(note));
    pool.fill(chosen.into_iter());
    pool.select(0, room).text()
}

/// Its markers are the only ones, its structure ends at its end, and nothing in it is live. The judge is a Markdown
/// parser, which reads the section as part of a page.
pub fn assert_contained(section: &str) {
    assert!(section.starts_with(START) && section.ends_with(END));
    assert_eq!(find(section.as_bytes()).unwrap(), Some(0..section.len()));
    let markers = section.split(['\n', '\r']).map(str::trim).filter(|line| [START, END].contains(line));
    assert_eq!(markers.count(), 2, "{section:?}");
    let is_seen = |c: char| c == '\n' || c == '\t' || !(c.is_control() || is_hidden(c));
    assert!(section.chars().all(is_seen), "{section:?}");
    let page = format!("above\n\n{section}\n\n# AFTER\n\nbelow\n");
    for options in
        [Options::empty(), Options::ENABLE_GFM | Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES]
    {
        let (mut depth, mut is_code, mut seen) = (0, false, Vec::new());
        for (event, range) in Parser::new_ext(&page, options).into_offset_iter() {
            match event {
                Event::Start(tag) => {
                    assert!(!matches!(tag, Tag::Image { .. }), "an image: {page}");
                    if let (0, Tag::Heading { level, .. }) = (depth, &tag) {
                        seen.push(*level as usize);
                    }
                    is_code |= matches!(tag, Tag::CodeBlock(_));
                    depth += 1;
                }
                Event::End(tag) => {
                    is_code &= tag != TagEnd::CodeBlock;
                    depth -= 1;
                }
                Event::Html(html) if depth == 1 && [START, END].contains(&html.trim()) => seen.push(0),
                Event::Html(_) | Event::InlineHtml(_) => panic!("HTML: {page}"),
                Event::Text(_) if !is_code => {
                    for at in page[range.clone()].match_indices('@').map(|(at, _)| range.start + at) {
                        let is_inert = page[..at].ends_with(|c: char| c.is_alphanumeric() || c == '\\')
                            || page[at + 1..].starts_with(char::is_whitespace);
                        assert!(is_inert, "an import: {page}");
                    }
                }
                _ => {}
            }
        }
        let [0, 2, inside @ .., 0, 1] = &seen[..] else { panic!("{seen:?} of {page}") };
        assert!(inside.iter().all(|level| *level > 2), "{seen:?} of {page}");
    }
}
