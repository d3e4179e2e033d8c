use super::*;
use crate::memory::sync::side::place_of;
use crate::store::entry::{Entry, Meta};

/// A store from paths and texts.
fn files(all: &[(&str, &str)]) -> Files {
    all.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
}

/// A note with these lines of front matter.
fn note(id: &str, title: &str, more: &str, body: &str) -> String {
    format!("---\nid: id__{id}\ntitle: {title}\n{more}---\n\n{body}")
}

/// Merged both ways, which must come to the same; and merged with itself, nothing changes.
fn both_ways(base: &Files, one: &Files, two: &Files) -> MergedTree {
    let rest = BTreeSet::new();
    let there = merge(Sides { base, one, two, rest: &rest });
    let back = merge(Sides { base, one: two, two: one, rest: &rest });
    assert_eq!(shown(&there.files), shown(&back.files), "the order matters");
    assert_eq!(there, back);
    let again = merge(Sides { base: &there.files, one: &there.files, two: &there.files, rest: &rest });
    assert_eq!(shown(&again.files), shown(&there.files));
    there
}

fn shown(files: &Files) -> String {
    files.iter().map(|(path, bytes)| format!("== {path}\n{}\n", String::from_utf8_lossy(bytes))).collect()
}

/// Of one note under one name.
fn merged_note(base: &str, one: &str, two: &str) -> (String, MergedTree) {
    let at = |text: &str| files(&[("topics/t -- id__AAAAAA.md", text)]);
    let base = if base.is_empty() { Files::new() } else { at(base) };
    let tree = both_ways(&base, &at(one), &at(two));
    let text = tree.files.iter().find(|(path, _)| path.ends_with("id__AAAAAA.md")).unwrap().1;
    (String::from_utf8(text.clone()).unwrap(), tree)
}

#[test]
fn each_value_is_that_of_the_side_that_changed_it() {
    let base = note("AAAAAA", "T", "tags: [topic__a, topic__b]\nused: 3\nupdatedAt: 5\n", "x\n");
    let one =
        note("AAAAAA", "T", "tags: [topic__b, topic__z]\nused: 5\nupdatedAt: 9\npinned: true\n", "x\ny\n");
    let two = note(
        "AAAAAA",
        "T",
        "tags: [topic__a, topic__b, topic__c]\nused: 4\nlast_used: 2026-01-02T00:00:00Z\nupdatedAt: 7\nrank: 9\n",
        "x\n",
    );
    let (text, tree) = merged_note(&base, &one, &two);
    let expected = note(
        "AAAAAA",
        "T",
        "tags: [topic__b, topic__c, topic__z]\nused: 6\nupdatedAt: 9\npinned: true\nrank: 9\nlast_used: 2026-01-02T00:00:00Z\n",
        "x\ny\n",
    );
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&text), sorted(&expected), "{text}");
    assert!(tree.conflicts.is_empty() && tree.said.is_empty());
}

#[test]
fn two_reads_in_the_same_second_are_two() {
    let (base, read) = (note("AAAAAA", "T", "used: 3\n", "x"), note("AAAAAA", "T", "used: 5\n", "x"));
    let (text, _) = merged_note(&base, &read, &read);
    assert!(text.contains("used: 7\n"), "{text}");
    let (text, _) = merged_note("", &read, &read);
    assert!(text.contains("used: 5\n"), "{text}");
}

#[test]
fn keys_and_comments_that_are_not_ours_come_from_both() {
    let base = note("AAAAAA", "T", "# why\nmine: 1\nold: 1\nused: 1\n", "x");
    let one = note("AAAAAA", "T", "# why\nmine: 2\nold: 1\nused: 2\none: [a,\n  b]\n# of one\n", "x");
    let two = note("AAAAAA", "T", "# why\nmine: 1\nused: 4\ntwo: c\n# of two\n", "x");
    let (text, tree) = merged_note(&base, &one, &two);
    for line in
        ["# why\n", "mine: 2\n", "used: 5\n", "one: [a,\n  b]\n", "two: c\n", "# of one\n", "# of two\n"]
    {
        assert_eq!(text.matches(line).count(), 1, "{line}{text}");
    }
    assert!(!text.contains("old:"), "{text}");
    assert_eq!(tree.files.len(), 1, "nothing is kept beside it");
}

#[test]
fn a_front_matter_that_cannot_be_changed_is_kept_beside_the_other() {
    let base = note("AAAAAA", "T", "used: 1\n", "x");
    let one = "---\n{id: id__AAAAAA, title: T, used: 2}\n---\n\nx".to_owned();
    let two = note("AAAAAA", "T", "used: 4\n", "x");
    let (text, tree) = merged_note(&base, &one, &two);
    assert!(text.contains("used: 5\n"), "{text}");
    let beside = tree.files.iter().find(|(path, _)| path.ends_with(").txt")).unwrap();
    assert_eq!(beside.1, one.as_bytes());
}

#[test]
fn clashing_lines_are_those_of_the_later_and_the_others_wait() {
    let base = note("AAAAAA", "T", "updatedAt: 1\n", "a\nb\nc\nd\n");
    let one = note("AAAAAA", "T", "updatedAt: 8\n", "A\nb\nc\nd\n");
    let two = note("AAAAAA", "T", "updatedAt: 7\n", "x\nb\nc\nD\n");
    let (text, tree) = merged_note(&base, &one, &two);
    assert!(text.ends_with("\n\nA\nb\nc\nD\n"), "{text}");
    let [id] = &tree.conflicts[..] else { panic!("{tree:?}") };
    let proposal = Proposal::parse(&tree.files[&format!("proposals/{id}.json")]).unwrap();
    assert_eq!(proposal.entry.unwrap().body, "x\nb\nc\nD\n");
    assert!(!shown(&tree.files).contains("<<<<"));
}

#[test]
fn without_a_base_counters_are_the_greater_and_lists_are_joined() {
    let one = note("AAAAAA", "T", "tags: [topic__b]\nused: 5\ncreatedAt: 3\n", "x\n");
    let two = note("AAAAAA", "T", "tags: [topic__a]\nused: 4\ncreatedAt: 3\n", "x\n");
    let (text, _) = merged_note("", &one, &two);
    assert!(text.contains("tags: [topic__a, topic__b]\n") && text.contains("used: 5\n"), "{text}");
}

#[test]
fn a_title_renames_the_file_and_the_edit_of_the_other_side_follows() {
    let base = files(&[("topics/old -- id__AAAAAA.md", &note("AAAAAA", "Old", "used: 1\n", "x\n"))]);
    let one = files(&[("topics/new -- id__AAAAAA.md", &note("AAAAAA", "New", "used: 1\n", "x\n"))]);
    let two = files(&[("topics/old -- id__AAAAAA.md", &note("AAAAAA", "Old", "used: 2\n", "x\ny\n"))]);
    let tree = both_ways(&base, &one, &two);
    let expected = files(&[("topics/new -- id__AAAAAA.md", &note("AAAAAA", "New", "used: 2\n", "x\ny\n"))]);
    assert_eq!(shown(&tree.files), shown(&expected));
    // Renamed on both sides.
    let two = files(&[(
        "topics/other -- id__AAAAAA.md",
        &note("AAAAAA", "Other", "used: 1\nupdatedAt: 2\n", "x\n"),
    )]);
    let tree = both_ways(&base, &one, &two);
    assert_eq!(tree.files.keys().collect::<Vec<_>>(), ["topics/other -- id__AAAAAA.md"]);
    // A name by hand stays.
    let two = files(&[("topics/mine.md", &note("AAAAAA", "Old", "used: 1\n", "x\n"))]);
    let tree = both_ways(&base, &one, &two);
    assert_eq!(
        shown(&tree.files),
        shown(&files(&[("topics/mine.md", &note("AAAAAA", "New", "used: 1\n", "x\n"))]))
    );
}

#[test]
fn an_edit_wins_over_archiving_and_deleting_and_a_read_does_not() {
    let path = "topics/t -- id__AAAAAA.md";
    let base = files(&[(path, &note("AAAAAA", "T", "used: 1\n", "x\n"))]);
    let edited = files(&[(path, &note("AAAAAA", "T", "used: 1\n", "y\n"))]);
    let read = files(&[(path, &note("AAAAAA", "T", "used: 4\n", "x\n"))]);
    let archive = "archive/t -- id__AAAAAA.md";
    let merged_away = note("AAAAAA", "T", "used: 1\nsupersededBy: id__BBBBBB\n", "x\n");
    let archived = files(&[(archive, &merged_away)]);
    let gone = Files::new();
    let tree = both_ways(&base, &edited, &archived);
    assert_eq!(shown(&tree.files), shown(&edited), "the successor is no longer one");
    assert_eq!(tree.said.len(), 1, "{:?}", tree.said);
    let tree = both_ways(&base, &read, &archived);
    assert_eq!(shown(&tree.files), shown(&files(&[(archive, &merged_away.replace("used: 1", "used: 4"))])));
    let tree = both_ways(&base, &edited, &gone);
    assert_eq!(shown(&tree.files), shown(&edited));
    assert!(tree.said[0].contains("deleted on one machine and edited"), "{:?}", tree.said);
    assert!(both_ways(&base, &read, &gone).files.is_empty());
    assert!(both_ways(&base, &base, &gone).files.is_empty());
}

#[test]
fn a_note_that_comes_back_is_nobodys_alias() {
    let (a, b) = ("topics/a -- id__AAAAAA.md", "topics/b -- id__BBBBBB.md");
    let base = files(&[(a, &note("AAAAAA", "A", "", "a\n")), (b, &note("BBBBBB", "B", "", "b\n"))]);
    let one = files(&[
        (a, &note("AAAAAA", "A", "aliases: [id__BBBBBB]\n", "a\nb\n")),
        ("archive/b -- id__BBBBBB.md", &note("BBBBBB", "B", "supersededBy: id__AAAAAA\n", "b\n")),
    ]);
    let mut two = base.clone();
    two.insert(b.to_owned(), note("BBBBBB", "B", "", "b\nmore\n").into_bytes());
    let tree = both_ways(&base, &one, &two);
    let expected =
        files(&[(a, &note("AAAAAA", "A", "", "a\nb\n")), (b, &note("BBBBBB", "B", "", "b\nmore\n"))]);
    assert_eq!(shown(&tree.files), shown(&expected));
    // Both machines merged it, each into another note: one of them has it.
    let two = files(&[
        (a, &note("AAAAAA", "A", "", "a\n")),
        ("topics/c -- id__CCCCCC.md", &note("CCCCCC", "C", "aliases: [id__BBBBBB]\n", "c\nb\n")),
        ("archive/b -- id__BBBBBB.md", &note("BBBBBB", "B", "supersededBy: id__CCCCCC\n", "b\n")),
    ]);
    let tree = both_ways(&base, &one, &two);
    assert_eq!(shown(&tree.files).matches("aliases: [id__BBBBBB]").count(), 1);
}

#[test]
fn of_two_new_notes_with_one_id_one_gets_another_and_its_links_follow() {
    let (path, link) = ("topics/t -- id__AAAAAA.md", "topics/l -- id__LLLLLL.md");
    let base = files(&[]);
    let one = files(&[(path, &note("AAAAAA", "T", "createdAt: 1\n", "one\n"))]);
    let two = files(&[
        (path, &note("AAAAAA", "T", "createdAt: 2\n", "two\n")),
        (link, &note("LLLLLL", "L", "aliases: [id__KKKKKK]\n", "see [[id__AAAAAA]]\n")),
    ]);
    let tree = both_ways(&base, &one, &two);
    let new = EntryId::make("T", 2, |_| false);
    let expected = files(&[
        (path, &note("AAAAAA", "T", "createdAt: 1\n", "one\n")),
        (&format!("topics/t -- {new}.md"), &note(&new.as_str()[4..], "T", "createdAt: 2\n", "two\n")),
        (link, &note("LLLLLL", "L", "aliases: [id__KKKKKK]\n", &format!("see [[{new}]]\n"))),
    ]);
    assert_eq!(shown(&tree.files), shown(&expected));
    assert_eq!(tree.said.len(), 1);
}

#[test]
fn a_link_to_a_note_with_another_id_is_no_edit_by_hand() {
    let mut sealed = Entry::parse(note("LLLLLL", "L", "", "see [[id__AAAAAA]]\n").into_bytes()).unwrap();
    sealed.seal().unwrap();
    let path = "topics/t -- id__AAAAAA.md";
    let one = files(&[(path, &note("AAAAAA", "T", "createdAt: 1\n", "one\n"))]);
    let mut two = files(&[(path, &note("AAAAAA", "T", "createdAt: 2\n", "two\n"))]);
    two.insert("topics/l -- id__LLLLLL.md".to_owned(), sealed.bytes().to_vec());
    let tree = both_ways(&Files::new(), &one, &two);
    let linking = Entry::parse(tree.files["topics/l -- id__LLLLLL.md"].clone()).unwrap();
    assert!(!linking.is_edited() && linking.body() != sealed.body());
}

#[test]
fn what_machines_wrote_stays_theirs_and_what_a_person_edited_stays_so() {
    let sealed = |body: &str, rank: &str| {
        let text = note("AAAAAA", "T", &format!("by: agent\n{rank}updatedAt: 1\n"), body);
        let mut entry = Entry::parse(text.into_bytes()).unwrap();
        entry.seal().unwrap();
        String::from_utf8(entry.bytes().to_vec()).unwrap()
    };
    let base = sealed("a\nb\nc\n", "");
    let (one, two) = (sealed("A\nb\nc\n", ""), sealed("a\nb\nC\n", ""));
    let (text, _) = merged_note(&base, &one, &two);
    let entry = Entry::parse(text.into_bytes()).unwrap();
    assert_eq!(entry.body(), b"A\nb\nC\n");
    assert!(!entry.is_edited() && entry.meta().written.is_some());
    // By hand on one side.
    let by_hand = base.replace("\nc\n", "\nC\n");
    let (text, _) = merged_note(&base, &one, &by_hand);
    let entry = Entry::parse(text.into_bytes()).unwrap();
    assert_eq!(entry.body(), b"A\nb\nC\n");
    assert!(entry.is_edited());
}

#[test]
fn the_weaker_word_holds_where_both_sides_say_something() {
    let with = |by: &str, body: &str| note("AAAAAA", "T", &format!("by: {by}\n"), body);
    let (text, _) =
        merged_note(&with("agent", "a\nb\nc\n"), &with("person", "A\nb\nc\n"), &with("agent", "a\nb\nC\n"));
    assert!(text.contains("by: agent\n"), "{text}");
    let (text, _) =
        merged_note(&with("agent", "a\nb\nc\n"), &with("person", "A\nb\nc\n"), &with("agent", "a\nb\nc\n"));
    assert!(text.contains("by: person\n"), "{text}");
}

#[test]
fn a_proposal_that_one_machine_decided_is_gone_and_evidence_adds_up() {
    let path = "proposals/p__a1B2c3.json";
    let proposal = |turns: &[&str], body: &str| {
        let evidence: Vec<_> =
            turns.iter().map(|turn| serde_json::json!({"turn": turn, "quote": "q"})).collect();
        serde_json::json!({"id": "p__a1B2c3", "op": "create", "note": null, "by": "agent", "createdAt": 1,
            "entry": {"title": "T", "scope": "repo", "body": body}, "evidence": evidence})
        .to_string()
    };
    let base = files(&[(path, &proposal(&["t1"], "x"))]);
    let more = files(&[(path, &proposal(&["t1", "t2"], "x"))]);
    let other = files(&[(path, &proposal(&["t1", "t3"], "x"))]);
    assert!(both_ways(&base, &Files::new(), &more).files.is_empty());
    assert_eq!(shown(&both_ways(&base, &base, &more).files), shown(&more));
    let text = shown(&both_ways(&base, &other, &more).files);
    assert!(["t1", "t2", "t3"].iter().all(|turn| text.matches(turn).count() == 1), "{text}");
    // Another text with the same id.
    let tree = both_ways(&Files::new(), &base, &files(&[(path, &proposal(&["t1"], "y"))]));
    assert_eq!(tree.files.len(), 2, "{}", shown(&tree.files));
}

#[test]
fn foreign_files_are_merged_by_lines_or_both_stay() {
    let at = |text: &str| files(&[("README.md", text)]);
    let base = at("a\nb\nc\n");
    assert_eq!(both_ways(&base, &at("A\nb\nc\n"), &at("a\nb\nC\n")).files, at("A\nb\nC\n"));
    let tree = both_ways(&base, &at("A\nb\nc\n"), &at("x\nb\nc\n"));
    assert_eq!(tree.files.len(), 2, "{}", shown(&tree.files));
    assert!(tree.files.keys().all(|path| path.starts_with("README") && path.ends_with(".md")));
    assert_eq!(both_ways(&base, &Files::new(), &at("a\n")).files, at("a\n"));
    assert!(both_ways(&base, &Files::new(), &base).files.is_empty());
    let ignore = |text: &str| files(&[(".gitignore", text)]);
    let text =
        shown(&both_ways(&ignore("/inbox/\n"), &ignore("/inbox/\nx\n"), &ignore("/inbox/\ny\n")).files);
    assert!(text.contains("\nx\n") && text.contains("\ny\n"), "{text}");
}

#[test]
fn a_note_that_somebody_broke_while_editing_is_no_deletion() {
    let path = "topics/t -- id__AAAAAA.md";
    let base = files(&[(path, &note("AAAAAA", "T", "", "x\n"))]);
    let broken = files(&[(path, "---\nid: id__AAAAAA\ntitle: [\n---\n\nx and more\n")]);
    assert_eq!(shown(&both_ways(&base, &broken, &base).files), shown(&broken));
    let edited = files(&[(path, &note("AAAAAA", "T", "", "y\n"))]);
    let tree = both_ways(&base, &broken, &edited);
    assert_eq!(tree.files[path], edited[path]);
    assert!(tree.files.values().any(|bytes| *bytes == broken[path]), "{}", shown(&tree.files));
}

#[test]
fn names_that_differ_in_case_alone_and_files_in_the_way_of_directories_are_told_apart() {
    let one = files(&[("topics/t -- id__AAAAAA.md", &note("AAAAAA", "T", "", "x")), ("a", "1"), ("B", "1")]);
    let two =
        files(&[("topics/t -- id__aaaaaa.md", &note("aaaaaa", "T", "", "y")), ("a/b", "2"), ("b", "2")]);
    let tree = both_ways(&Files::new(), &one, &two);
    let lower: BTreeSet<String> = tree.files.keys().map(|path| path.to_lowercase()).collect();
    assert_eq!((lower.len(), tree.files.len()), (6, 6), "{}", shown(&tree.files));
    assert!(tree.files.keys().any(|path| path.ends_with(" -- id__aaaaaa.md")));
    assert!(!tree.files.contains_key("a") && tree.files.contains_key("a/b"));
}

mod simulation {
    //! Machines that read, edit, rename, merge, split, archive and delete notes, and meet at random.

    use super::*;

    /// Small and good enough: numbers that follow from a seed.
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, sides: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) as usize) % sides.max(1)
        }
    }

    /// What the machines have done, to be compared with what they have in the end.
    #[derive(Default)]
    struct Log {
        reads: BTreeMap<EntryId, u64>,
        tags: BTreeMap<EntryId, BTreeSet<String>>,
        /// Words that each stand in one line of one note, and must be found somewhere.
        words: BTreeSet<String>,
        purged: BTreeSet<EntryId>,
        ids: BTreeSet<EntryId>,
        clock: i64,
        word: u64,
    }

    #[derive(Clone)]
    struct Machine {
        files: Files,
        /// What it had when it last met the remote.
        met: Files,
        skew: i64,
    }

    impl Machine {
        fn notes(&self) -> Vec<(String, Entry)> {
            let note = |(path, bytes): (&String, &Vec<u8>)| {
                path.starts_with("topics/").then(|| (path.clone(), Entry::parse(bytes.clone()).unwrap()))
            };
            self.files.iter().filter_map(note).collect()
        }

        fn put(&mut self, old: &str, place: &str, entry: &Entry) {
            self.files.remove(old);
            let path = format!("{place}/{}", entry.meta().file_name());
            self.files.insert(path, entry.bytes().to_vec());
        }
    }

    impl Log {
        fn word(&mut self) -> String {
            self.word += 1;
            let word = format!("word{}x", self.word);
            self.words.insert(word.clone());
            word
        }

        fn step(&mut self, machine: &mut Machine, dice: &mut Dice) {
            self.clock += 1 + dice.roll(1000) as i64;
            let now = self.clock + machine.skew;
            let notes = machine.notes();
            let what = if notes.is_empty() { 0 } else { dice.roll(12) };
            if what <= 1 {
                let title = format!("Note {}", dice.roll(30));
                let taken: BTreeSet<EntryId> = notes.iter().map(|(_, note)| note.meta().id.clone()).collect();
                let id = EntryId::make(&title, now, |id| taken.contains(id) || self.ids.contains(id));
                self.ids.insert(id.clone());
                let meta = Meta { title, created_at: now, updated_at: now, ..Meta::new(id) };
                let body = format!("{}\n{}\n{}\n", self.word(), self.word(), self.word());
                let mut entry = Entry::new(meta, body.as_bytes());
                entry.seal().unwrap();
                machine.put("", "topics", &entry);
                return;
            }
            let (path, mut entry) = notes[dice.roll(notes.len())].clone();
            let id = entry.meta().id.clone();
            let mut place = "topics";
            match what {
                2..=4 => {
                    *self.reads.entry(id).or_default() += 1;
                    entry
                        .update(|meta| {
                            meta.used += 1;
                            meta.last_used = jiff::Timestamp::from_millisecond(1_770_000_000_000 + now).ok();
                        })
                        .unwrap();
                }
                5 | 6 => {
                    // A line somewhere, and sometimes what an editor does not update stays.
                    let mut lines: Vec<String> = String::from_utf8(entry.body().to_vec())
                        .unwrap()
                        .lines()
                        .map(str::to_owned)
                        .collect();
                    let at = dice.roll(lines.len() + 1);
                    lines.insert(at, self.word());
                    entry.set_body((lines.join("\n") + "\n").as_bytes());
                    if dice.roll(2) == 0 {
                        entry.update(|meta| meta.updated_at = now).unwrap();
                    }
                }
                7 => entry
                    .update(|meta| {
                        meta.title = format!("Renamed {}", dice.roll(30));
                        meta.updated_at = now;
                    })
                    .unwrap(),
                8 => {
                    let tag = format!("topic__t{}", dice.roll(50));
                    self.tags.entry(id).or_default().insert(tag.clone());
                    entry.update(|meta| crate::store::entry::add_missing(&mut meta.tags, [tag])).unwrap();
                }
                9 => place = "archive",
                10 if notes.len() > 1 => {
                    // A defrag merges it into another one.
                    let (other_path, mut other) = notes[dice.roll(notes.len())].clone();
                    if other_path == path {
                        return;
                    }
                    let into = other.meta().id.clone();
                    let body = [other.body(), entry.body()].concat();
                    other.set_body(&body);
                    other
                        .update(|meta| {
                            crate::store::entry::add_missing(&mut meta.aliases, [id.clone()]);
                            meta.updated_at = now;
                        })
                        .unwrap();
                    machine.put(&other_path, "topics", &other);
                    entry.update(|meta| meta.superseded_by = Some(into)).unwrap();
                    place = "archive";
                }
                11 if dice.roll(4) == 0 => {
                    // Deleted for good: what it says may go, what others add to it meanwhile stays.
                    self.purged.insert(id);
                    machine.files.remove(&path);
                    return;
                }
                _ => {
                    // Split: the last line becomes a note of its own.
                    let text = String::from_utf8(entry.body().to_vec()).unwrap();
                    let lines: Vec<&str> = text.lines().collect();
                    let Some((last, first)) = lines.split_last().filter(|(_, first)| !first.is_empty())
                    else {
                        return;
                    };
                    let new = EntryId::make("Part", now, |id| self.ids.contains(id));
                    self.ids.insert(new.clone());
                    let meta =
                        Meta { title: "Part".to_owned(), created_at: now, updated_at: now, ..Meta::new(new) };
                    machine.put("", "topics", &Entry::new(meta, format!("{last}\n").as_bytes()));
                    entry.set_body((first.join("\n") + "\n").as_bytes());
                    entry.update(|meta| meta.updated_at = now).unwrap();
                }
            }
            machine.put(&path, place, &entry);
        }
    }

    /// As git does: what it last met is the base.
    fn meet(machine: &mut Machine, remote: &mut Files) {
        if *remote != machine.met {
            machine.files = both_ways(&machine.met, &machine.files, remote).files;
        }
        machine.met = machine.files.clone();
        remote.clone_from(&machine.files);
    }

    fn history(seed: u64) {
        let mut dice = Dice(seed);
        let mut log = Log::default();
        let mut remote = Files::new();
        let skews = [0, 7_200_000, -3_600_000, 50, -90_000];
        let count = 2 + dice.roll(4);
        let mut machines: Vec<Machine> =
            (0..count).map(|n| Machine { files: Files::new(), met: Files::new(), skew: skews[n] }).collect();
        for _ in 0..40 {
            let machine = dice.roll(count);
            match dice.roll(5) {
                0 => meet(&mut machines[machine], &mut remote),
                _ => log.step(&mut machines[machine], &mut dice),
            }
        }
        for machine in &mut machines {
            meet(machine, &mut remote);
        }
        for machine in &mut machines {
            meet(machine, &mut remote);
            assert_eq!(shown(&machine.files), shown(&remote), "seed {seed}");
        }
        log.check(&remote, seed);
    }

    impl Log {
        fn check(&self, files: &Files, seed: u64) {
            let text = shown(files);
            assert!(!text.contains("<<<<<<<"), "seed {seed}");
            let mut notes: BTreeMap<EntryId, Meta> = BTreeMap::new();
            let mut aliases = BTreeSet::new();
            for (path, bytes) in files.iter().filter(|(path, _)| place_of(path).is_some()) {
                let meta = Entry::parse(bytes.clone()).unwrap().into_meta();
                aliases.extend(meta.aliases.iter().cloned());
                assert!(notes.insert(meta.id.clone(), meta).is_none(), "seed {seed}: two of {path}");
            }
            for id in &self.ids {
                let is_known = notes.contains_key(id) || aliases.contains(id);
                assert!(is_known || self.purged.contains(id), "seed {seed}: {id} is lost");
            }
            for (id, meta) in &notes {
                // A note that was deleted somewhere and came back has lost what only the deleter had.
                if !self.purged.contains(id) {
                    let reads = self.reads.get(id).copied().unwrap_or_default();
                    assert_eq!(meta.used, reads, "seed {seed}: reads of {id}");
                    for tag in self.tags.get(id).into_iter().flatten() {
                        assert!(meta.tags.contains(tag), "seed {seed}: {tag} of {id}");
                    }
                }
            }
            if self.purged.is_empty() {
                for word in &self.words {
                    assert!(text.contains(word.as_str()), "seed {seed}: {word} is lost");
                }
            }
        }
    }

    #[test]
    fn machines_that_have_met_have_the_same_bytes_and_nothing_is_lost() {
        for seed in 0..40 {
            history(seed);
        }
    }

    /// `cargo test --lib -- --ignored ten_thousand`
    #[test]
    #[ignore = "takes minutes"]
    fn ten_thousand_histories() {
        for seed in 1_000..11_000 {
            history(seed);
        }
    }
}
