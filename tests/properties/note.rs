//! A note's file: front matter, as people and other programs write it too, and a body.

use crate::fuzz::{is_told, parts, text};
use crate::store::entry::{Entry, Meta, Status, Tier, links, one_line, read_both};
use std::collections::BTreeSet;

pub fn holds(bytes: &[u8]) {
    let [file, new] = parts::<2>(bytes);
    let new = text(new);
    let entry = match Entry::parse(file.to_vec()) {
        Ok(entry) => entry,
        Err(error) => return is_told(&error.line()),
    };
    assert_eq!(entry.bytes(), file, "reading changes nothing");
    assert!(file.ends_with(entry.body()));
    both_readers_agree(file);
    let name = entry.meta().file_name();
    assert!(name.len() <= 247 && !name.contains(['/', '\0']) && !name.starts_with('.'), "{name:?}");
    links(&text(entry.body()));

    let mut same = entry.clone();
    same.update(|_| {}).unwrap();
    assert_eq!(same.bytes(), file);
    counters_count_for_nothing(&entry);
    changes(&entry, &new, &["title"], |meta| meta.title = new.to_string());
    changes(&entry, &new, &["summary"], |meta| meta.summary = new.to_string());
    changes(&entry, &new, &["tags"], |meta| meta.tags.push(new.to_string()));
    changes(&entry, &new, &["status", "tier"], |meta| {
        (meta.status, meta.tier) = (Status::Promoted, Tier::Hot);
    });
    changes(&entry, &new, &["used", "last_used"], |meta| {
        meta.used = meta.used.wrapping_add(1);
        meta.last_used = Some("2026-02-28T15:04:05Z".parse().unwrap());
    });
    changes(&entry, &new, &["aliases", "supersededBy"], |meta| {
        meta.aliases.push(meta.id.clone());
        meta.superseded_by = Some(meta.id.clone());
    });
    changes(&entry, &new, &["sources"], |meta| {
        let mut source = meta.sources.first().cloned().unwrap_or_default();
        source.cwd = Some(new.to_string());
        meta.sources.insert(0, source);
    });

    let mut other = entry.clone();
    other.set_body(new.as_bytes());
    assert_eq!(other.body(), new.as_bytes());
    let again = Entry::parse(other.bytes().to_vec()).unwrap();
    assert_eq!((again.meta(), again.body()), (entry.meta(), new.as_bytes()));

    // Written anew from what it says, it says the same.
    let written = Entry::new(entry.meta().clone(), entry.body());
    if written.fits().is_ok() {
        let mut meta = entry.meta().clone();
        meta.title = one_line(&meta.title);
        meta.summary = one_line(&meta.summary);
        let again = Entry::parse(written.bytes().to_vec()).unwrap();
        assert_eq!((again.meta(), again.body()), (&meta, entry.body()));
    }
}

/// Other keys keep their lines, their bytes and their order; the body and what stands around the front matter too.
fn changes(entry: &Entry, new: &str, keys: &[&str], change: impl Fn(&mut Meta)) {
    let mut changed = entry.clone();
    match changed.update(&change) {
        Ok(()) => {}
        // An anchor, braces: by hand then. Nothing has changed.
        Err(error) => {
            is_told(&error.line());
            return assert_eq!(changed.bytes(), entry.bytes());
        }
    }
    let mut wanted = entry.meta().clone();
    change(&mut wanted);
    for (new, old) in [(&mut wanted.title, &entry.meta().title), (&mut wanted.summary, &entry.meta().summary)]
    {
        if new != old {
            *new = one_line(new);
        }
    }
    assert_eq!(changed.meta(), &wanted, "{new:?}");
    let again = Entry::parse(changed.bytes().to_vec()).unwrap();
    assert_eq!((again.meta(), again.body()), (&wanted, entry.body()));
    changed.fits().unwrap();
    // A line that begins with another key of ours, or with a comment, is there as it was.
    let is_other = |line: &&[u8]| {
        let is_key = |key: &str| line.starts_with(key.as_bytes()) && line[key.len()..].starts_with(b": ");
        ["id", "title", "status", "scope", "pinned", "createdAt", "updatedAt", "foreign"]
            .iter()
            .any(|key| is_key(key) && !keys.contains(key))
            || line.starts_with(b"#")
    };
    let others = |entry: &Entry| -> Vec<Vec<u8>> {
        let head = &entry.bytes()[..entry.bytes().len() - entry.body().len()];
        head.split_inclusive(|byte| *byte == b'\n').filter(is_other).map(<[u8]>::to_vec).collect()
    };
    let (before, after) = (others(entry), others(&changed));
    // In a value of several lines a line may look like a key: those of the keys that change may go.
    if !text(entry.bytes()).contains(['|', '>', '"', '\'']) {
        assert_eq!(before, after);
    } else {
        let after: BTreeSet<&Vec<u8>> = after.iter().collect();
        let gone = before.iter().filter(|line| !after.contains(line) && line.starts_with(b"id: ")).count();
        assert!(
            gone == 0 || keys == ["title"] || keys == ["summary"] || keys == ["tags"],
            "{before:?} {after:?}"
        );
    }
}

fn counters_count_for_nothing(entry: &Entry) {
    let mut read = entry.clone();
    let counted = read.update(|meta| {
        meta.used = meta.used.saturating_add(7);
        meta.last_used = Some("2026-02-28T15:04:05Z".parse().unwrap());
    });
    let plain = entry.bytes().starts_with(b"---\nid: ")
        && !text(entry.bytes()).contains([' ', '"', '\'', '|', '>', '&', '#']);
    if counted.is_ok() && plain {
        assert_eq!(read.fingerprint(), entry.fingerprint());
    }
}

/// The quick reader takes only what the YAML parser reads alike.
fn both_readers_agree(file: &[u8]) {
    let Some(yaml) =
        file.split(|byte| *byte == b'\n').nth(1).map(|_| ()).and_then(|()| std::str::from_utf8(file).ok())
    else {
        return;
    };
    let Some((yaml, _)) = yaml.strip_prefix("---\n").and_then(|rest| rest.split_once("---\n")) else {
        return;
    };
    if let (Some(quick), whole) = read_both(yaml) {
        assert_eq!(Some(quick), whole, "{yaml:?}");
    }
}
