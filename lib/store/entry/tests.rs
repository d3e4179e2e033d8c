//! Notes read, changed and written: our own, other people's, and what is none.

use super::*;
use crate::store::entry::value::YamlValue;
use jiff::Timestamp;

/// Raise it for a long run, in a release build.
const MORE: usize = 1;

/// Numbers that are the same in every run (xorshift), for what would take too many examples.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    /// Pieces that mean something to YAML, to Markdown or to a terminal, put together.
    fn text(&mut self, pieces: usize) -> String {
        const PIECES: &[&str] = &[
            "no", "yes", "null", "~", "1e3", "0x1F", "1_000", "12:30:45", "2026-01-01", "- ", "-", "---",
            "...", ": ", ":", " #", "#", "'", "\"", "\\", "\\n", "@", "`", "%", "&a", "*a", "!", "!!str ",
            "|", ">", "[", "]", "{", "}", ", ", ",", "?", "? ", "=", "<<", "a", "word", "Two words", " ",
            "  ", ".", ".5", "_", "/", "(", ")", "é", "e\u{301}", "ß", "日本語", "שלום", "عنوان", "🦀",
            "👩\u{200d}💻", "\u{202e}", "\u{200f}", "\u{fffd}", "\u{e000}", "\u{10ffff}", "[[id__a1B2c3]]",
            "x: y", "id", "title: b",
        ];
        (0..self.below(pieces + 1)).map(|_| self.one(PIECES)).collect()
    }

    /// What no line may hold, too.
    fn wild(&mut self, pieces: usize) -> String {
        const WILD: &[&str] = &[
            "\n", "\r\n", "\r", "\t", "\0", "\u{1b}[31m", "\u{7f}", "\u{85}", "\u{2028}", "\u{feff}",
            "\n---\n", "\n\n",
        ];
        let mut text = self.text(pieces);
        for _ in 0..self.below(3) {
            text.push_str(self.one(WILD));
            text.push_str(&self.text(pieces));
        }
        text
    }

    fn id(&mut self) -> EntryId {
        EntryId::make("", self.below(1_000_000) as i64, |_| false)
    }

    fn source(&mut self) -> Source {
        let mut source = Source::default();
        for slot in
            [&mut source.harness, &mut source.thread_id, &mut source.repo, &mut source.cwd, &mut source.at]
        {
            *slot = (self.below(3) > 0).then(|| self.wild(3));
        }
        if self.below(4) == 0 {
            let list = vec![
                YamlValue::quoted(&self.wild(3)).into_owned(),
                YamlValue::plain("3"),
                YamlValue::plain(""),
            ];
            let map = vec![(YamlValue::quoted(&self.text(3)).into_owned(), YamlValue::List(Vec::new()))];
            source.other.push((format!("x {}", self.text(2)), YamlValue::List(list)));
            source.other.push(("y".to_owned(), YamlValue::Map(map)));
        }
        source
    }

    fn meta(&mut self) -> Meta {
        let mut meta = Meta::new(self.id());
        meta.title = self.wild(6);
        meta.summary = self.wild(8);
        meta.tags = (0..self.below(4))
            .map(|_| if self.below(2) == 0 { self.wild(2) } else { "topic__x".to_owned() })
            .collect();
        meta.status = Status::parse(self.one(Status::WORDS)).unwrap();
        meta.tier = Tier::parse(self.one(Tier::WORDS)).unwrap();
        meta.scope = Scope::parse(self.one(Scope::WORDS)).unwrap();
        meta.pinned = self.below(2) == 0;
        meta.until = (self.below(3) == 0)
            .then(|| jiff::civil::date(1970 + self.below(200) as i16, 1 + self.below(12) as i8, 28));
        meta.rank = (self.below(3) == 0).then(|| 1 + self.below(100) as u8);
        meta.by = (self.below(3) > 0).then(|| By::parse(self.one(By::WORDS)).unwrap());
        meta.outside = (0..self.below(3)).map(|_| self.wild(2)).collect();
        meta.written = (self.below(3) == 0).then(|| self.wild(2));
        meta.used = self.below(1000) as u64;
        meta.last_used =
            (self.below(2) == 0).then(|| Timestamp::from_millisecond(self.below(1 << 40) as i64).unwrap());
        meta.created_at = self.below(1 << 41) as i64 - 1000;
        meta.updated_at = self.below(1 << 41) as i64;
        meta.sources = (0..self.below(3)).map(|_| self.source()).collect();
        meta.aliases = (0..self.below(3)).map(|_| self.id()).collect();
        meta.superseded_by = (self.below(4) == 0).then(|| self.id());
        meta
    }

    fn body(&mut self) -> Vec<u8> {
        let mut body = self.wild(9).into_bytes();
        if self.below(4) == 0 {
            body.extend([0xff, 0xfe, 0, b'\r', b'\n']);
        }
        body
    }
}

fn parse(text: &str) -> Entry {
    Entry::parse(text.as_bytes().to_vec()).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

fn fault(text: &str) -> String {
    Entry::parse(text.as_bytes().to_vec()).unwrap_err().line()
}

fn text(entry: &Entry) -> &str {
    std::str::from_utf8(entry.bytes()).unwrap()
}

/// What the YAML parser alone makes of a note.
fn slowly(entry: &Entry) -> Result<Meta> {
    schema::meta(Yaml::read(yaml_text(&entry.bytes, &entry.frame)?)?.fields)
}

const CONTRACT: &str = "---
id: id__a1B2c3
title: xstate guard patterns
summary: Guards must be pure; put I/O in actors.     # one line, shown in the warm tier
tags: [topic__xstate, topic__patterns]
status: consolidated        # captured → consolidated → promoted
tier: warm                  # hot | warm | cold; set by defrag
scope: repo                 # global | repo
pinned: false
until: 2026-03-20           # only where set: the last day on which it holds
rank: 80
by: agent                   # person | agent | tool
outside: [example.com]      # only where the session had read outside before
used: 3
last_used: 2026-02-13T14:30:00Z
createdAt: 1771000000000
updatedAt: 1771000000001
written: \"7c3ae2b0c9d1f045\"
sources:
  - {harness: amp, threadId: T-1, repo: github.com/o/r, cwd: /home/u/r, at: \"2026-02-13T14:29:00Z\"}
aliases: [id__Zz9yX1]       # ids that were merged into this one
---

Body.
";

#[test]
fn the_contracts_example_reads() {
    let entry = parse(CONTRACT);
    let meta = entry.meta();
    assert_eq!(meta.id.as_str(), "id__a1B2c3");
    assert_eq!(
        (meta.title.as_str(), meta.summary.as_str()),
        ("xstate guard patterns", "Guards must be pure; put I/O in actors.")
    );
    assert_eq!(meta.tags, ["topic__xstate", "topic__patterns"]);
    assert_eq!((meta.status, meta.tier, meta.scope), (Status::Consolidated, Tier::Warm, Scope::Repo));
    assert_eq!((meta.pinned, meta.used), (false, 3));
    assert_eq!(meta.last_used.unwrap().to_string(), "2026-02-13T14:30:00Z");
    assert_eq!((meta.created_at, meta.updated_at), (1_771_000_000_000, 1_771_000_000_001));
    assert_eq!(
        (meta.until, meta.rank, meta.by),
        (Some(jiff::civil::date(2026, 3, 20)), Some(80), Some(By::Agent))
    );
    assert_eq!(meta.outside, ["example.com"]);
    assert_eq!(meta.written.as_deref(), Some("7c3ae2b0c9d1f045"));
    assert_eq!(meta.sources[0].cwd.as_deref(), Some("/home/u/r"));
    assert_eq!(meta.sources[0].at.as_deref(), Some("2026-02-13T14:29:00Z"));
    assert_eq!(meta.aliases[0].as_str(), "id__Zz9yX1");
    assert_eq!(meta.superseded_by, None);
    assert_eq!(entry.body(), b"Body.\n");
    assert_eq!(meta.file_name(), "xstate-guard-patterns -- topic__xstate topic__patterns id__a1B2c3.md");
}

#[test]
fn a_read_touches_two_values_and_no_comment() {
    let mut entry = parse(CONTRACT);
    entry
        .update(|meta| {
            meta.used += 1;
            meta.tier = Tier::Hot;
            meta.summary = "Now: this".to_owned();
            meta.aliases.clear();
            meta.superseded_by = Some(EntryId::whole("id__Zz9yX1").unwrap());
        })
        .unwrap();
    let expected = CONTRACT
        .replace("used: 3", "used: 4")
        .replace("tier: warm  ", "tier: hot  ")
        .replace("summary: Guards must be pure; put I/O in actors.", "summary: \"Now: this\"")
        .replace(
            "aliases: [id__Zz9yX1]       # ids that were merged into this one\n",
            "# ids that were merged into this one\nsupersededBy: id__Zz9yX1\n",
        );
    assert_eq!(text(&entry), expected);
}

#[test]
fn a_new_note_has_the_contracts_form() {
    let entry = Entry::new(parse(CONTRACT).meta().clone(), b"Body.\n");
    let expected: String =
        CONTRACT.lines().map(|line| line.split("  #").next().unwrap().trim_end().to_owned() + "\n").collect();
    assert_eq!(text(&entry), expected);
}

#[test]
fn what_is_not_said_has_a_default() {
    let meta = parse("---\nid: id__a1B2c3\ntitle: no\n---\nx").meta().clone();
    assert_eq!(meta, Meta { title: "no".to_owned(), ..Meta::new(meta.id.clone()) });
    let nulls = "---\nid: id__a1B2c3\ntitle: 2024-01-01\ntags:\nstatus: ~\ntier: null\nused:\nlast_used: ~\nsources:\naliases: []\nsupersededBy:\nuntil:\nrank: ~\nby: null\noutside:\nwritten:\n---\n";
    let meta = parse(nulls).meta().clone();
    assert_eq!(meta, Meta { title: "2024-01-01".to_owned(), ..Meta::new(meta.id.clone()) });
}

#[test]
fn tags_come_in_many_forms() {
    for tags in [
        "[a, topic__b]", "\n  - a\n  - topic__b", "\n- a\n- topic__b", "a, topic__b", "a topic__b",
        "\"a,topic__b\"", "[a,\n  topic__b]",
    ] {
        let entry = parse(&format!("---\nid: id__a1B2c3\ntags: {tags}\ntitle: x\n---\n"));
        assert_eq!(entry.meta().tags, ["a", "topic__b"], "{tags}");
    }
}

#[test]
fn a_wrong_value_is_told_with_its_line() {
    let told = |line: &str| fault(&format!("---\nid: id__a1B2c3\ntitle: x\n{line}\n---\n"));
    assert_eq!(told("tier: lukewarm"), "line 4: tier: \"lukewarm\" is not one of hot, warm, cold");
    assert_eq!(told("used: -1"), "line 4: used: \"-1\" is not a whole number from 0");
    assert_eq!(told("pinned: maybe"), "line 4: pinned: \"maybe\" is not true or false");
    assert_eq!(
        told("last_used: today"),
        "line 4: last_used: \"today\" is not a time like 2026-02-13T14:30:00Z"
    );
    assert_eq!(told("until: tomorrow"), "line 4: until: \"tomorrow\" is not a day like 2026-03-20");
    for wrong in ["2026-02-30", "2026-3-1", "20260301", "2026-03-01T00:00:00", "[]"] {
        assert!(told(&format!("until: {wrong}")).starts_with("line 4: until: "), "{wrong}");
    }
    assert_eq!(told("rank: 0"), "line 4: rank: \"0\" is not a whole number from 1 to 100");
    assert!(told("rank: 101").starts_with("line 4: rank: "));
    assert_eq!(told("by: me"), "line 4: by: \"me\" is not one of person, agent, tool");
    assert_eq!(told("written: []"), "line 4: written: a list instead of text");
    assert_eq!(told("createdAt: 1e3"), "line 4: createdAt: \"1e3\" is not a whole number of milliseconds");
    assert_eq!(told("aliases: [x]"), "line 4: aliases: \"x\" is not an id like id__a1B2c3");
    assert_eq!(told("sources: [x]"), "line 4: sources: an item is not like {harness: …, threadId: …}");
    assert_eq!(told("sources: [{repo: []}]"), "line 4: sources: repo: a list instead of text");
    assert_eq!(told("tags: {a: b}"), "line 4: tags: a mapping instead of text");
    assert_eq!(told("summary: [a]"), "line 4: summary: a list instead of text");
    assert_eq!(told("title: y"), "line 4: title: given twice, first in line 3");
    assert_eq!(
        fault("---\ntitle: x\nid: banana\n---\n"),
        "line 3: id: \"banana\" is not an id like id__a1B2c3"
    );
    assert_eq!(fault("---\ntitle: x\n---\n"), "id is missing");
    assert_eq!(fault("---\nid: id__a1B2c3\n---\n"), "title is missing");
    assert_eq!(fault("---\nid: id__a1B2c3\ntitle:\n---\n"), "line 3: title: it is empty");
    assert_eq!(Entry::parse(b"---\na: b\nc: \xff\n---\n".to_vec()).unwrap_err().line(), "line 3: not UTF-8");
    assert!(!told("a: b: c").ends_with('.'));
}

/// Somebody's note, with all that an editor or a hand may leave in it.
const BY_HAND: &str = "---  
# top
\"title\" :   'It''s
  two lines'   # why
cssclasses: [wide,   red]
  # odd place
tags:   # mine
  # the first
  - topic__x   # one

  - \"b\"
# between
id:  id__a1B2c3
summary: >-   # folded
  some # text
    # text too

# below
rating: 0x10
used: 1_0
nested: {a: [1, 2],
   b: \"x\"} # flow
sources:
- harness: amp # a
  stars: 3
  deep: {x: [1, no], 'y z': 2026-01-01}
- {threadId: T, url: http://x.org/?a=1}
# end
---
\tbody
";

fn by_hand() -> String {
    BY_HAND.replace("1_0", "10")
}

#[test]
fn a_hand_edited_note_loses_only_what_was_changed() {
    let check = |change: fn(&mut Meta), old: &str, new: &str| {
        for newline in ["\n", "\r\n"] {
            let before = by_hand().replace('\n', newline);
            assert!(by_hand().contains(old), "{old}");
            let mut entry = parse(&before);
            entry.update(change).unwrap();
            assert_eq!(text(&entry), by_hand().replace(old, new).replace('\n', newline));
        }
    };
    check(|meta| meta.used = 11, "used: 10", "used: 11");
    check(
        |meta| meta.title = "no".into(),
        "\"title\" :   'It''s\n  two lines'   # why\n",
        "title: \"no\"\n# why\n",
    );
    check(
        |meta| meta.tags.push("c".into()),
        "tags:   # mine\n  # the first\n  - topic__x   # one\n\n  - \"b\"\n# between",
        "tags: [topic__x, b, c]   # mine\n  # the first\n# one\n# between",
    );
    check(
        |meta| meta.summary = "a #b\nc".into(),
        "summary: >-   # folded\n  some # text\n    # text too\n\n# below",
        "summary: \"a #b c\"   # folded\n\n# below",
    );
    check(
        |meta| meta.sources[1].thread_id = None,
        "sources:\n- harness: amp # a\n  stars: 3\n  deep: {x: [1, no], 'y z': 2026-01-01}\n- {threadId: T, url: http://x.org/?a=1}\n",
        "sources:\n  - {harness: amp, stars: 3, deep: {x: [1, no], y z: 2026-01-01}}\n  - {url: \"http://x.org/?a=1\"}\n# a\n",
    );
    check(|meta| meta.pinned = true, "# end\n", "# end\npinned: true\n");
}

#[test]
fn what_cannot_be_changed_surely_is_not() {
    for yaml in [
        "{id: id__a1B2c3, title: x}\n",
        "id: id__a1B2c3\ntitle: &t x\nother: *t\n",
        "id: id__a1B2c3\n? title\n: x\n",
        "id: id__a1B2c3\n!!str title: x\n",
        "id: id__a1B2c3\na: &t 1\ntitle: &t x\nother: *t\n",
        "id: id__a1B2c3\rtitle: x\n",
    ] {
        let before = parse(&format!("---\n{yaml}---\n\nbody"));
        let mut entry = before.clone();
        let why = entry.update(|meta| meta.title = "y".to_owned()).unwrap_err().line();
        assert!(why.starts_with("title cannot be changed") && why.ends_with("edit it by hand"), "{why}");
        assert_eq!(entry, before);
    }
    let mut entry = parse(CONTRACT);
    let other = EntryId::whole("id__Zz9yX1").unwrap();
    assert!(entry.update(|meta| meta.id = other).unwrap_err().message().contains("never changes"));
    let why = entry.update(|meta| meta.tags = vec!["x".repeat(1000); 100]).unwrap_err().line();
    assert!(why.contains("larger than 64 KiB"), "{why}");
    assert_eq!(text(&entry), CONTRACT);
    let mut meta = entry.meta().clone();
    assert!(Entry::new(meta.clone(), b"").fits().is_ok());
    meta.tags = vec!["x".repeat(1000); 100];
    assert!(Entry::new(meta, b"").fits().is_err());
}

#[test]
fn an_indented_front_matter_can_be_changed() {
    let mut entry = parse("---\n  id: id__a1B2c3\n  title: x\n---\n");
    entry.update(|meta| (meta.title, meta.used) = ("new".to_owned(), 1)).unwrap();
    assert_eq!(text(&entry), "---\n  id: id__a1B2c3\n  title: new\n  used: 1\n---\n");
}

#[test]
fn a_body_can_be_anything() {
    let bodies: [&[u8]; 6] = [b"", b"\n", b"\r\n---\r\n", b"---\nid: x\n---\n", b"\xff\0", b"no end"];
    for ending in ["---\n\n", "---\n", "---", "---\r\n\r\n"] {
        let head = format!("---\nid: id__a1B2c3\ntitle: x\n{ending}");
        for body in bodies {
            let mut entry = parse(&head);
            entry.set_body(body);
            assert!(entry.bytes().starts_with(head.as_bytes()));
            assert_eq!(entry.body(), body);
            assert_eq!(Entry::parse(entry.bytes().to_vec()).unwrap(), entry);
            entry.update(|meta| meta.used += 1).unwrap();
            assert_eq!(entry.body(), body);
        }
    }
}

#[test]
fn any_note_reads_back_as_it_was_written() {
    let mut dice = Dice(0x5EED_0001);
    let mut quickly = 0;
    for _ in 0..500 * MORE {
        let (mut meta, body) = (dice.meta(), dice.body());
        let entry = Entry::new(meta.clone(), &body);
        meta.title = one_line(&meta.title);
        meta.summary = one_line(&meta.summary);
        let read = Entry::parse(entry.bytes().to_vec()).unwrap_or_else(|why| panic!("{why}\n{meta:?}"));
        assert_eq!(read.meta(), &meta, "{}", String::from_utf8_lossy(entry.bytes()));
        assert_eq!(read, entry);
        assert_eq!(read.body(), body);
        assert_eq!(slowly(&read).unwrap(), meta, "{}", String::from_utf8_lossy(entry.bytes()));
        quickly += usize::from(quick::read(yaml_text(&read.bytes, &read.frame).unwrap()).is_some());
        assert_eq!(Entry::new(read.meta().clone(), read.body()).bytes(), entry.bytes());
        let name = meta.file_name();
        assert!(name.len() <= 255 - 8 && name.ends_with(&format!("{}.md", meta.id)), "{name}");
        assert!(
            !name.contains(|c: char| c == '/' || c == '\\' || c.is_control())
                && !name.starts_with(['.', '-']),
            "{name}"
        );
    }
    assert!((20 * MORE..500 * MORE).contains(&quickly), "{quickly} without the YAML parser");
}

#[test]
fn any_change_of_any_note_changes_nothing_else() {
    let mut dice = Dice(0x5EED_0002);
    for turn in 0..400 * MORE {
        let new = dice.meta();
        let mut entry = match turn % 3 {
            0 => parse(&by_hand()),
            1 => parse(&by_hand().replace('\n', "\r\n")),
            _ => Entry::new(dice.meta(), &dice.body()),
        };
        let before = entry.clone();
        let keys = dice.below(1 << 18);
        let mut expected = before.meta().clone();
        entry
            .update(|meta| {
                let Meta { title, summary, tags, status, tier, scope, pinned, used, last_used, .. } = new;
                let takes = |key: usize| keys & (1 << key) != 0;
                if takes(0) {
                    meta.title = title
                }
                if takes(1) {
                    meta.summary = summary
                }
                if takes(2) {
                    meta.tags = tags
                }
                if takes(3) {
                    meta.status = status
                }
                if takes(4) {
                    meta.tier = tier
                }
                if takes(5) {
                    meta.scope = scope
                }
                if takes(6) {
                    meta.pinned = pinned
                }
                if takes(7) {
                    meta.used = used
                }
                if takes(8) {
                    meta.last_used = last_used
                }
                if takes(9) {
                    meta.created_at = new.created_at
                }
                if takes(10) {
                    meta.sources = new.sources
                }
                if takes(11) {
                    meta.aliases = new.aliases
                }
                if takes(12) {
                    meta.superseded_by = new.superseded_by
                }
                if takes(13) {
                    meta.until = new.until
                }
                if takes(14) {
                    meta.rank = new.rank
                }
                if takes(15) {
                    meta.by = new.by
                }
                if takes(16) {
                    meta.written = new.written
                }
                if takes(17) {
                    meta.outside = new.outside
                }
                expected = meta.clone();
            })
            .unwrap_or_else(|why| panic!("{why}\n{}", String::from_utf8_lossy(before.bytes())));
        if keys & 1 != 0 {
            expected.title = one_line(&expected.title)
        }
        if keys & 2 != 0 {
            expected.summary = one_line(&expected.summary)
        }
        assert_eq!(entry.meta(), &expected);
        assert_eq!(entry.body(), before.body());
        assert_eq!(Entry::parse(entry.bytes().to_vec()).unwrap(), entry);
        // And back: the same values, though the lines are ours now.
        let mut old = before.meta().clone();
        entry.update(|meta| *meta = old.clone()).unwrap();
        if entry.meta().summary != old.summary {
            old.summary = one_line(&old.summary);
        }
        assert_eq!(entry.meta(), &old);
    }
}

#[test]
fn a_seal_breaks_when_the_text_is_edited_and_not_when_the_note_is_used() {
    let mut entry = parse(CONTRACT);
    assert!(entry.is_edited(), "the seal of another text");
    entry.seal().unwrap();
    assert!(!entry.is_edited());
    let sealed = entry.clone();
    entry
        .update(|meta| {
            (meta.used, meta.tier, meta.rank, meta.until) = (9, Tier::Hot, None, None);
            meta.sources.clear();
        })
        .unwrap();
    assert!(!entry.is_edited());
    for (old, new) in [
        ("title: xstate", "title: Xstate"),
        ("summary: Guards", "summary: guards"),
        ("topic__patterns]", "topic__pattern]"),
        ("\nBody.\n", "\nBody.\n\n"),
    ] {
        let edited = parse(&text(&sealed).replace(old, new));
        assert!(edited.is_edited(), "{new}");
    }
    assert!(!parse(&text(&sealed).replace("written: ", "was: ")).is_edited(), "an old note is not known");
}

#[test]
fn a_change_names_the_note_that_it_was_made_for() {
    let entry = parse(CONTRACT);
    let with = |change: &dyn Fn(&mut Meta)| {
        let mut other = entry.clone();
        other.update(change).unwrap();
        other.base()
    };
    assert_eq!(entry.base().len(), 64);
    let by_itself = with(&|meta| {
        (meta.used, meta.last_used, meta.rank) = (meta.used + 1, None, None);
        (meta.tier, meta.status) = (Tier::Hot, Status::Promoted);
    });
    assert_eq!(by_itself, entry.base());
    assert_ne!(with(&|meta| meta.until = Some(jiff::civil::date(2026, 3, 21))), entry.base());
    assert_ne!(with(&|meta| meta.pinned = true), entry.base());
}

#[test]
fn what_a_person_made_their_own_is_kept() {
    let with = |change: &dyn Fn(&mut Meta)| {
        let mut entry = parse(CONTRACT);
        entry.seal().unwrap();
        entry.update(change).unwrap();
        entry.kept()
    };
    let from = |name: &str| Source { harness: Some(name.to_owned()), ..Source::default() };
    assert_eq!(with(&|_| {}), None);
    assert_eq!(with(&|meta| meta.scope = Scope::Global), Some(Kept::Global));
    assert_eq!(with(&|meta| meta.pinned = true), Some(Kept::Pinned));
    assert_eq!(with(&|meta| meta.sources.clear()), Some(Kept::HandWritten));
    assert_eq!(with(&|meta| meta.sources.push(from("manual"))), Some(Kept::HandWritten));
    assert_eq!(with(&|meta| meta.title.push('!')), Some(Kept::HandWritten));
    assert_eq!(with(&|meta| meta.sources.push(from("review"))), Some(Kept::Accepted));
}

#[test]
fn both_readers_agree_on_what_the_quick_one_takes() {
    const LINES: &[&str] = &[
        "id: id__a1B2c3\n",
        "title: x\n",
        "tags: [a, b]\n",
        "tags:\n  - a\n  - \"b c\"\n",
        "sources:\n  - {harness: amp, x: \"y, z\"}\n",
        "k: {}\n",
        "k: []\n",
        "k:\n",
        "k:   v  \n",
        "# c\n",
        "used: 3\n",
        "a-b: c: d\n",
        "k: v#x\n",
        "k: v #x\n",
        "  - a\n",
        "- a\n",
        "\n",
        "k: [a,b]\n",
        "k: [a, ]\n",
        "k: {a: b, }\n",
        "k: \"a\" b\n",
        "k: \"a\"\n",
        "k: [\"a\"b]\n",
        "k: {a: \"b\", c: d e}\n",
        "k: a\n b\n",
        "k:v\n",
        "k : v\n",
        "k: a\tb\n",
        "k: [a b]\n",
        "k: (a\n",
        "k: a, b\n",
    ];
    let mut dice = Dice(0x5EED_0003);
    let (mut taken, mut left) = (0, 0);
    for _ in 0..10_000 * MORE {
        let mut yaml = String::new();
        for _ in 0..1 + dice.below(4) {
            match dice.below(4) {
                0 => yaml.extend(["k: ", &dice.text(3), "\n"]),
                1 => yaml.extend(["k: [", &dice.text(2), ", ", &dice.text(2), "]\n"]),
                2 => yaml.extend(["k: {a: ", &dice.text(2), ", b: \"", &dice.text(2), "\"}\n"]),
                _ => yaml.push_str(dice.one(LINES)),
            }
        }
        let Some(quick) = quick::read(&yaml) else {
            left += 1;
            continue;
        };
        taken += 1;
        let slow = Yaml::read(&yaml).unwrap_or_else(|why| panic!("{why}\n{yaml}"));
        assert_eq!(quick.len(), slow.fields.len(), "{yaml}");
        for (quick, slow) in quick.iter().zip(&slow.fields) {
            assert_eq!((&quick.key, &quick.value, quick.line), (&slow.key, &slow.value, slow.line), "{yaml}");
            assert_eq!(quick.value.is_null(), slow.value.is_null(), "{yaml}");
        }
    }
    assert!(taken > 1000 && left > 1000, "{taken} taken, {left} left");
}

#[test]
fn no_bytes_make_it_panic_and_no_change_goes_wrong_unseen() {
    let mut dice = Dice(0x5EED_0004);
    let (mut read, mut changed) = (0, 0);
    for turn in 0..1_000 * MORE {
        let mut bytes = if turn % 2 == 0 { by_hand().into_bytes() } else { CONTRACT.as_bytes().to_vec() };
        for _ in 0..1 + dice.below(4) {
            let at = dice.below(bytes.len());
            let to = (at + dice.below(12)).min(bytes.len());
            let new =
                if dice.below(8) == 0 { vec![dice.below(256) as u8] } else { dice.wild(2).into_bytes() };
            bytes.splice(at..if dice.below(2) == 0 { at } else { to }, new);
        }
        let Ok(mut entry) = Entry::parse(bytes.clone()) else { continue };
        read += 1;
        assert_eq!(entry.bytes(), bytes);
        assert_eq!(slowly(&entry).unwrap(), *entry.meta(), "{}", String::from_utf8_lossy(&bytes));
        let before = entry.clone();
        match entry.update(|meta| (meta.title, meta.tags) = ("new".to_owned(), vec!["n".to_owned()])) {
            Ok(()) => {
                changed += 1;
                assert_eq!(entry.body(), before.body());
                let expected = Meta { title: "new".into(), tags: vec!["n".into()], ..before.meta().clone() };
                assert_eq!(entry.meta(), &expected);
            }
            Err(_) => assert_eq!(entry, before),
        }
    }
    assert!(read > 100 * MORE && changed > read / 2, "{read} read, {changed} changed");
    for _ in 0..2_000 * MORE {
        let noise: Vec<u8> = (0..dice.below(60)).map(|_| dice.below(256) as u8).collect();
        let _ = Entry::parse([b"---\nid: id__a1B2c3\ntitle: ", noise.as_slice(), b"\n---\n"].concat());
        let _ = Entry::parse(noise);
    }
}
