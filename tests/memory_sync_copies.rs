//! `memory-sync`: the copies of notes that clouds make, and notes that a person wrote by hand.

use crate::memory_sync::{Nas, assert_same, git};
use crate::support::store::{Store, note, value};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const PROGRAM: &str = "memory-sync";

/// A note with its text, as a machine wrote it last: `hour` of one day.
fn text_of_hour(hour: u64, body: &str) -> String {
    let more = format!("updatedAt: {}\n", 1_770_000_000_000 + hour * 3_600_000);
    note("AAAAAA", "Ports", &more).replace("Body of Ports.\n", body)
}

#[test]
fn copies_that_a_cloud_made_are_merged_as_the_other_side() {
    let nas = Nas::new();
    let store = nas.machine();
    let path = store.note("AAAAAA", "Ports");
    fs::write(&path, text_of_hour(1, "web 80\n\ndb 5432\n\nmail 25\n")).unwrap();
    store.out(PROGRAM, &[]);
    // Two edits here, which the history knows, and one on each of two other machines that knew neither.
    fs::write(&path, text_of_hour(2, "web 8080\n\ndb 5432\n\nmail 25\n")).unwrap();
    store.out(PROGRAM, &[]);
    fs::write(&path, text_of_hour(3, "web 8081\n\ndb 5432\n\nmail 25\n")).unwrap();
    store.out(PROGRAM, &[]);
    let copy = |mark: &str| format!("topics/ports -- id__AAAAAA{mark}.md");
    let dropbox = copy(" (Mara's conflicted copy 2026-03-05)");
    let syncthing = copy(".sync-conflict-20260305-101112-ABCDEFG");
    store.put(&dropbox, text_of_hour(4, "web 80\n\ndb 5433\n\nmail 25\n"));
    store.put(&syncthing, text_of_hour(5, "web 80\n\ndb 5432\n\nmail 587\n"));
    let (code, out, err) = store.run(PROGRAM, &[]);
    assert_eq!((code, out.as_str()), (Some(0), "1 note received, 1 sent\n"), "{err}");
    for copy in [&dropbox, &syncthing] {
        assert!(err.contains(&format!("\"{copy}\" was merged into its note")), "{err}");
    }
    assert_eq!(store.names(), ["topics/ports -- id__AAAAAA.md"]);
    assert!(store.text("AAAAAA").ends_with("web 8081\n\ndb 5433\n\nmail 587\n"), "{}", store.text("AAAAAA"));
    assert!(!nas.past().contains("conflict"));
    assert_eq!(store.out(PROGRAM, &[]), "0 notes received, 0 sent\n");
}

#[test]
fn a_copy_that_clashes_waits_for_review_and_one_that_cannot_be_merged_stays() {
    let store = Store::with_history();
    let path = store.note("AAAAAA", "Ports");
    fs::write(&path, text_of_hour(1, "web 80\n")).unwrap();
    let clash = "topics/ports -- id__AAAAAA (conflicted copy 2026-03-05).md";
    store.put(clash, text_of_hour(2, "web 443\n"));
    // The id is another note's; and no note at all.
    let other = "topics/ports -- id__AAAAAA.sync-conflict-20260305-101112-ABCDEFG.md";
    store.put(other, note("BBBBBB", "Other", ""));
    let broken = "topics/ports -- id__AAAAAA.sync-conflict-20260306-101112-ABCDEFG.md";
    store.put(broken, "no front matter");
    let (code, _, err) = store.run("memory-consolidate", &[]);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains(&format!("\"{clash}\" was merged into its note")), "{err}");
    let names = store.names();
    assert!(!names.contains(&clash.to_owned()) && names.contains(&other.to_owned()), "{names:?}");
    let review = store.out("memory-review", &["--json"]);
    let kept = store.text("AAAAAA.md");
    assert!(kept.ends_with("web 443\n") && review.contains("web 80"), "{kept}{review}");
    let (_, out, _) = store.run("memory-doctor", &[]);
    assert!(out.contains(broken), "{out}");
}

#[test]
fn a_note_that_a_person_wrote_gets_an_id_and_stays_as_it_is() {
    let store = Store::with_history();
    store.note("AAAAAA", "Other");
    let text = "---\r\n# mine\r\ntitle: Deploys\r\nteam: web\r\n---\r\n\r\nOn Fridays never.\r\n";
    let path = store.put("topics/deploys.md", text);
    let plain = store.put("topics/readme.md", "# No note\n");
    // What has an id in its name has lost its own, and is left to the person.
    let lost = store.put("topics/x -- id__BBBBBB.md", "---\ntitle: x\n---\n");
    store.out("memory-update", &["AAAAAA", "--pin"]);
    let now = fs::read_to_string(&path).unwrap();
    let id = now.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    let others =
        now.split_inclusive('\n').filter(|line| !line.starts_with("id: ") && !line.contains("edAt: "));
    assert_eq!(others.collect::<String>(), text);
    let (_, notes, _) = store.run("memory-list", &["--json"]);
    assert!(notes.contains(&id) && notes.contains("\"Deploys\""), "{notes}");
    assert_eq!(fs::read_to_string(plain).unwrap(), "# No note\n");
    assert_eq!(fs::read_to_string(lost).unwrap(), "---\ntitle: x\n---\n");
    // Only once, and an agent cannot change it.
    store.out("memory-update", &["AAAAAA", "--unpin"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), now);
}

/// A store with a remote that has this note, and the path of a copy of it.
fn store_and_copy(nas: &Nas, text: &str) -> (Store, PathBuf, &'static str) {
    let store = nas.machine();
    let path = store.note("AAAAAA", "Ports");
    fs::write(&path, text).unwrap();
    store.out(PROGRAM, &[]);
    (store, path, "topics/ports -- id__AAAAAA (Mara's conflicted copy 2026-03-05).md")
}

#[test]
fn a_copy_never_takes_the_place_of_text_that_its_writer_did_not_know() {
    let nas = Nas::new();
    let (store, path, copy) = store_and_copy(&nas, &text_of_hour(1, "Deploy with make.\n"));
    // Both machines' programs have changed the same of the rest, so that the copy is like the newest version.
    let tagged =
        |hour, body| text_of_hour(hour, body).replace("title: Ports", "title: Ports\nsummary: How\nrank: 7");
    fs::write(&path, tagged(3, "Deploy with make ship, never by hand.\n")).unwrap();
    store.out(PROGRAM, &[]);
    store.put(copy, tagged(2, "Deploy with make; tell Tom first.\n"));
    let (_, _, err) = store.run(PROGRAM, &[]);
    assert!(err.contains("was merged into its note"), "{err}");
    assert!(store.text("AAAAAA").ends_with("never by hand.\n"), "{}", store.text("AAAAAA"));
    assert!(store.out("memory-review", &["--json"]).contains("tell Tom first"));

    // The version that both come from has an earlier name.
    let nas = Nas::new();
    let (store, path, copy) = store_and_copy(&nas, &text_of_hour(1, "web 80\n\ndb 5432\n"));
    let old = text_of_hour(4, "web 80\n\ndb 5433\n");
    store.out("memory-update", &["AAAAAA", "--title", "All ports"]);
    assert!(!path.exists());
    let now = store.text("AAAAAA").replace("web 80", "web 8080");
    store.put("topics/all-ports -- id__AAAAAA.md", now);
    store.put(copy, old);
    store.run(PROGRAM, &[]);
    assert!(store.text("AAAAAA").ends_with("web 8080\n\ndb 5433\n"), "{}", store.text("AAAAAA"));
    assert_eq!(value(&store.text("AAAAAA"), "title"), Some("All ports"));
}

#[test]
fn a_copy_whose_summary_would_be_nowhere_stays() {
    let nas = Nas::new();
    let (store, path, copy) = store_and_copy(&nas, &text_of_hour(1, "web 80\n"));
    let with = |hour, summary: &str| {
        text_of_hour(hour, "web 80\n").replace("title: Ports", &format!("title: Ports\nsummary: {summary}"))
    };
    fs::write(&path, with(3, "Here")).unwrap();
    store.put(copy, with(2, "There"));
    store.out(PROGRAM, &[]);
    assert_eq!(fs::read_to_string(store.root().join(copy)).unwrap(), with(2, "There"));
    assert_eq!(value(&fs::read_to_string(&path).unwrap(), "summary"), Some("Here"));
    let (_, out, _) = store.run("memory-doctor", &[]);
    assert!(out.contains(copy), "{out}");
}

#[test]
fn a_copy_of_a_removed_note_goes_unless_it_says_something_new() {
    for arguments in [&["AAAAAA"][..], &["--purge", "AAAAAA"]] {
        let nas = Nas::new();
        let (store, _, copy) = store_and_copy(&nas, &text_of_hour(1, "web 80\n"));
        store.out("memory-remove", arguments);
        store.put(copy, text_of_hour(2, "web 80\n"));
        let new = copy.replace("Mara", "Tom");
        store.put(&new, text_of_hour(2, "web 443\n"));
        let (_, _, err) = store.run(PROGRAM, &[]);
        assert!(err.contains(&format!("\"{copy}\" was removed, as its note was")), "{err}");
        let names = store.names();
        assert!(!names.contains(&copy.to_owned()) && names.contains(&new), "{names:?}");
    }
}

#[test]
fn no_copy_is_merged_while_git_merges() {
    let nas = Nas::new();
    let (store, path, copy) = store_and_copy(&nas, &text_of_hour(1, "web 80\n\ndb 5432\n"));
    let name = path.file_name().unwrap().to_str().unwrap();
    let there = tempfile::tempdir().unwrap();
    git(there.path(), &["clone", "--quiet", &nas.address(), "."]);
    fs::write(there.path().join("topics").join(name), text_of_hour(2, "web 80\n\ndb 5433\n")).unwrap();
    fs::write(there.path().join(".gitignore"), "theirs\n").unwrap();
    git(there.path(), &["commit", "--quiet", "-am", "theirs"]);
    git(there.path(), &["push", "--quiet"]);
    store.put(".gitignore", "ours\n");
    git(&store.root(), &["commit", "--quiet", "-am", "ours"]);
    git(&store.root(), &["fetch", "--quiet", "origin"]);
    let mut merge = Command::new("git");
    merge.args(["-c", "user.name=x", "-c", "user.email=x@x", "merge", "--quiet", "origin/main"]);
    assert!(!merge.current_dir(store.root()).output().unwrap().status.success());
    assert!(store.root().join(".git/MERGE_HEAD").exists());
    store.put(copy, text_of_hour(3, "web 8080\n\ndb 5432\n"));
    store.run("memory-consolidate", &[]);
    assert!(store.root().join(copy).exists());
    store.run(PROGRAM, &[]);
    store.run(PROGRAM, &[]);
    assert!(!store.root().join(copy).exists());
    assert!(store.text("AAAAAA").ends_with("web 8080\n\ndb 5433\n"), "{}", store.text("AAAAAA"));
}

#[test]
fn a_note_by_hand_has_the_same_id_on_every_machine_and_after_an_editor_wrote_it_back() {
    let nas = Nas::new();
    let (one, two) = (nas.machine(), nas.machine());
    let text = "---\ntitle: By hand\n---\n\nfirst\n";
    let copy = "topics/by-hand.sync-conflict-20260305-101112-ABCDEFG.md";
    for (store, age) in [(&one, 100), (&two, 5000)] {
        crate::support::store::age(&store.put("topics/by-hand.md", text), age);
        store.out(PROGRAM, &[]);
    }
    assert_eq!(one.out(PROGRAM, &[]), "0 notes received, 0 sent\n");
    assert_same(&one, &two);
    let with_id = one.text("by-hand");
    assert!(value(&with_id, "id").is_some(), "{with_id}");
    // The copy of a note without an id is none of its own.
    one.put(copy, text);
    one.put("topics/by-hand.md", text);
    one.out(PROGRAM, &[]);
    assert_eq!(one.tree()["topics/by-hand.md"], with_id.as_bytes());
    assert_eq!(one.tree()[copy], text.as_bytes());
}
