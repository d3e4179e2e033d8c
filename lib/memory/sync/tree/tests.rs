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
fn the_hosts_that_sessions_had_read_survive_a_merge() {
    let with = |hosts: &str, body: &str| note("AAAAAA", "T", &format!("outside: [{hosts}]\n"), body);
    let (text, _) = merged_note(
        &with("a.example", "a\nb\nc\n"),
        &with("a.example, c.example", "A\nb\nc\n"),
        &with("a.example, b.example", "a\nb\nC\n"),
    );
    assert!(text.contains("outside: [a.example, b.example, c.example]\n"), "{text}");
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

#[test]
fn of_two_notes_whose_names_differ_in_accents_alone_neither_is_lost() {
    let [composed, apart] = ["topics/caf\u{e9}.md", "topics/cafe\u{301}.md"];
    let one = files(&[(composed, &note("AAAAAA", "One", "", "x\n"))]);
    let two = files(&[(apart, &note("BBBBBB", "Two", "", "y\n"))]);
    let tree = both_ways(&Files::new(), &one, &two);
    let names: BTreeSet<String> = tree.files.keys().map(|path| crate::base::text::folded(path)).collect();
    assert_eq!((names.len(), tree.files.len()), (2, 2), "{}", shown(&tree.files));
    assert!(shown(&tree.files).contains("id__AAAAAA") && shown(&tree.files).contains("id__BBBBBB"));
    // A machine that has neither gets both, whether the other two have met on a disk that tells them apart or not.
    let all: Files = one.into_iter().chain(two).collect();
    let rest = BTreeSet::new();
    assert_eq!(
        merge(Sides { base: &Files::new(), one: &Files::new(), two: &all, rest: &rest }).files,
        tree.files
    );
    assert_eq!(both_ways(&tree.files, &tree.files, &tree.files).files, tree.files);
}

mod simulation;

/// Front matter of a note that no person wrote.
const AGENTS: &str = "sources:\n  - harness: amp\n";

#[test]
fn what_is_merged_here_and_corrected_there_stays_in_use() {
    let port = |more: &str, body: &str| note("AAAAAA", "Port", &format!("{AGENTS}{more}"), body);
    let timeout = |more: &str, body: &str| note("BBBBBB", "Timeout", &format!("{AGENTS}{more}"), body);
    let base = files(&[
        ("topics/port -- id__AAAAAA.md", &port("updatedAt: 1\n", "Port 8081.\n")),
        ("topics/timeout -- id__BBBBBB.md", &timeout("updatedAt: 1\n", "Waits 30 s.\n")),
    ]);
    let corrected = [
        files(&[
            ("topics/port -- id__AAAAAA.md", &port("updatedAt: 5\n", "Port 8080.\n")),
            ("topics/timeout -- id__BBBBBB.md", &timeout("updatedAt: 1\n", "Waits 30 s.\n")),
        ]),
        files(&[
            ("topics/port -- id__AAAAAA.md", &port("updatedAt: 1\n", "Port 8081.\n")),
            ("topics/timeout -- id__BBBBBB.md", &timeout("updatedAt: 5\n", "Waits 40 s.\n")),
        ]),
    ];
    for at in [3, 9] {
        let merged = files(&[
            (
                "topics/port -- id__AAAAAA.md",
                &port(&format!("updatedAt: {at}\naliases: [id__BBBBBB]\n"), "Port 8081, waits 30 s.\n"),
            ),
            (
                "archive/timeout -- id__BBBBBB.md",
                &timeout(&format!("updatedAt: {at}\nsupersededBy: id__AAAAAA\n"), "Waits 30 s.\n"),
            ),
        ]);
        let [port, timeout] = &corrected;
        let tree = both_ways(&base, &merged, port);
        assert_eq!(tree.files.keys().collect::<Vec<_>>(), base.keys().collect::<Vec<_>>(), "{at}");
        let text = shown(&tree.files);
        assert!(
            text.contains("Port 8080.") && text.contains("Waits 30 s.") && !text.contains("8081"),
            "{text}"
        );
        assert!(
            !text.contains("aliases") && !text.contains("supersededBy") && tree.conflicts.is_empty(),
            "{text}"
        );
        assert!(tree.said[0].contains("the correction stays"), "{:?}", tree.said);
        let text = shown(&both_ways(&base, &merged, timeout).files);
        assert!(text.contains("Waits 40 s.") && text.contains("Port 8081, waits 30 s."), "{text}");
    }
}

#[test]
fn an_edit_after_a_merge_of_notes_is_not_lost_when_another_machine_corrects_the_note() {
    let sealed = |text: &str| {
        let mut entry = Entry::parse(text.as_bytes().to_vec()).unwrap();
        entry.seal().unwrap();
        String::from_utf8(entry.bytes().to_vec()).unwrap()
    };
    let agents = |more: &str, body: &str| sealed(&note("AAAAAA", "T", &format!("{AGENTS}{more}"), body));
    let base = agents("updatedAt: 1\n", "one\ntwo\n");
    let merged = agents("updatedAt: 5\naliases: [id__BBBBBB]\n", "one\ntwo\nfrom B\n");
    let edited = merged.replace("from B\n", "from B\nby hand\n");
    let corrected = agents("updatedAt: 9\n", "one\n2\n");
    let (text, _) = merged_note(&base, &merged, &corrected);
    assert!(text.ends_with("one\n2\n"), "the correction stays: {text}");
    let (_, tree) = merged_note(&base, &edited, &corrected);
    assert!(shown(&tree.files).contains("by hand"), "{}", shown(&tree.files));
}

#[test]
fn an_edit_of_a_persons_note_before_a_merge_of_notes_is_not_lost_when_another_machine_corrects_the_note() {
    let (path, archived) = ("topics/t -- id__AAAAAA.md", "archive/b -- id__BBBBBB.md");
    let own = |more: &str, body: &str| note("AAAAAA", "T", more, body);
    let base = files(&[
        (path, &own("updatedAt: 1\n", "One.\nTwo.\n")),
        ("topics/b -- id__BBBBBB.md", &note("BBBBBB", "B", "", "From B.\n")),
    ]);
    let mut corrected = base.clone();
    corrected.insert(path.to_owned(), own("updatedAt: 9\n", "One.\n2.\n").into_bytes());
    let merged = |body: &str| {
        let part = note("BBBBBB", "B", "supersededBy: id__AAAAAA\n", "From B.\n");
        let whole = own("updatedAt: 5\naliases: [id__BBBBBB]\n", body);
        shown(&both_ways(&base, &files(&[(path, &whole), (archived, &part)]), &corrected).files)
    };
    let text = merged("One.\nTwo. From B.\n");
    assert!(!text.contains("Two.") && text.contains("== topics/b"), "the correction stays: {text}");
    let text = merged("One.\nTwo. By hand. From B.\n");
    assert!(text.contains("By hand.") && text.contains("2."), "{text}");
}
