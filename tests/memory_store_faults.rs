//! A damaged store: broken files, copies, leftovers, a full disk, no permission, no directory.

#![cfg(target_os = "linux")]

use crate::support::disk::Disk;
use crate::support::store::{HOUR, Store, age, name, names, note, value};
use crate::support::{say, symlink};
use std::fs;
use std::process::{Command, Stdio};

#[test]
fn a_file_that_is_not_a_note_is_reported_and_left_alone() {
    let store = Store::new();
    store.note("AAAAAA", "One");
    let broken: [(&str, Vec<u8>, &str); 8] = [
        ("empty -- id__BBBBB1.md", Vec::new(), "no front matter"),
        ("no-end -- id__BBBBB2.md", b"---\nid: id__BBBBB2\ntitle: x\n".to_vec(), "has no end"),
        ("yaml -- id__BBBBB3.md", b"---\nid: id__BBBBB3\ntitle: [x\n---\n".to_vec(), "line "),
        ("no-id -- id__BBBBB4.md", b"---\ntitle: x\n---\n".to_vec(), "id is missing"),
        ("path -- id__BBBBB5.md", b"---\nid: ../../x\ntitle: x\n---\n".to_vec(), "is not an id"),
        ("bytes -- id__BBBBB6.md", b"---\nid: id__BBBBB6\ntitle: \xff\n---\n".to_vec(), "not UTF-8"),
        ("tier -- id__BBBBB7.md", b"---\nid: id__BBBBB7\ntitle: x\ntier: tepid\n---\n".to_vec(), "\"tepid\""),
        (
            "large -- id__BBBBB8.md",
            [note("BBBBB8", "x", "").into_bytes(), vec![b'x'; 9 << 20]].concat(),
            "is larger than ",
        ),
    ];
    for (name, bytes, _) in &broken {
        store.put(&format!("topics/{name}"), bytes);
    }
    let (code, out, err) = store.run("memory-list", &[]);
    assert_eq!((code, out.lines().count(), err.lines().count()), (Some(0), 1, broken.len()), "{err}");
    for (n, (name, _, why)) in broken.iter().enumerate() {
        let line = err.lines().find(|line| line.contains(name)).unwrap();
        assert!(
            line.starts_with("Warning: \"") && line.contains("is left out: ") && line.contains(why),
            "{line}"
        );
        let id = format!("id__BBBBB{}", n + 1);
        for (program, args) in [
            ("memory-read", &[id.as_str()][..]),
            ("memory-update", &[&id, "--title", "y"]),
            ("memory-remove", &[&id]),
            ("memory-remove", &["--purge", &id]),
        ] {
            let (code, out, err) = store.run(program, args);
            assert_eq!((code, out.as_str(), err.lines().count()), (Some(1), "", 1), "{program} {id}: {err}");
            assert!(err.contains(&format!("{name}\" is not a note that can be used: ")), "{err}");
        }
    }
    store.out("memory-read", &["AAAAAA"]);
    store.out("memory-update", &["AAAAAA", "--title", "Two"]);
    for (name, bytes, _) in &broken {
        assert!(fs::read(store.topics().join(name)).unwrap() == *bytes, "{name}");
    }
}

#[test]
fn many_broken_files_are_counted() {
    let store = Store::new();
    for n in 0..25 {
        store.put(&format!("topics/{n}.md"), "x");
    }
    let (code, out, err) = store.run("memory-list", &["--json"]);
    assert_eq!((code, out.as_str(), err.lines().count()), (Some(0), "", 11));
    assert!(err.ends_with("Warning: 15 more files are left out\n"), "{err}");
}

#[test]
fn fifos_and_directories_are_reported_and_not_read() {
    let store = Store::new();
    store.note("AAAAAA", "One");
    fs::create_dir(store.topics().join("dir -- id__AAAAAA.md")).unwrap();
    let fifo = store.topics().join("fifo.md");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    symlink("/nowhere/at/all", store.topics().join("dangling.md"));
    symlink("/dev/zero", store.topics().join("endless.md"));
    store.put("topics/README.txt", "not ours");
    let (code, out, err) = store.run("memory-list", &[]);
    assert_eq!((code, out.lines().count(), err.lines().count()), (Some(0), 1, 4), "{err}");
    for (name, why) in [
        ("dir -- id__AAAAAA.md", "not a regular file"),
        ("fifo.md", "not a regular file"),
        ("endless.md", "not a regular file"),
        ("dangling.md", "leads nowhere"),
    ] {
        assert!(err.lines().any(|line| line.contains(name) && line.contains(why)), "{name}: {err}");
    }
    // A directory has the name that the note is searched by, and is found first.
    store.out("memory-read", &["AAAAAA"]);
    store.out("memory-remove", &["AAAAAA"]);
    assert_eq!(names(&store.topics()).len(), 5);
}

#[test]
fn one_of_two_files_with_the_same_id_is_used_and_the_other_reported() {
    let store = Store::new();
    let own = store.note("AAAAAA", "One");
    let copy = "topics/one -- id__AAAAAA.sync-conflict-20260101-120000-ABCDEFG.md";
    let other = note("AAAAAA", "Theirs", "");
    store.put(copy, &other);
    let (code, out, err) = store.run("memory-list", &[]);
    assert_eq!((code, out.lines().count(), err.lines().count()), (Some(0), 1, 1), "{out}{err}");
    assert!(out.contains("\tOne\t") && err.contains("sync-conflict"), "{out}{err}");
    assert!(err.contains("has the same id as \"one -- id__AAAAAA.md\""), "{err}");
    store.out("memory-update", &["AAAAAA", "--pin"]);
    store.out("memory-read", &["AAAAAA"]);
    assert_eq!(value(&fs::read_to_string(&own).unwrap(), "used"), Some("1"));
    assert_eq!(store.tree()[copy], other.as_bytes());
    store.out("memory-remove", &["--purge", "AAAAAA"]);
    // Now the copy is used.
    assert_eq!(value(&store.out("memory-read", &["AAAAAA"]), "title"), Some("Theirs"));
    assert!(store.out("memory-list", &[]).contains("\tTheirs\t"));
}

#[test]
fn a_note_in_use_comes_before_one_in_the_archive() {
    let store = Store::new();
    store.put("archive/one -- id__AAAAAA.md", note("AAAAAA", "Old", ""));
    store.put("topics/by hand.md", note("AAAAAA", "New", ""));
    assert_eq!(store.out("memory-list", &[]).lines().count(), 1);
    assert_eq!(store.out("memory-list", &["--archived"]).lines().count(), 1);
    let (code, _, err) = store.run("memory-remove", &["AAAAAA"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(store.tree().len(), 2, "{:?}", store.names());
}

#[test]
fn leftovers_of_a_killed_writer_are_ignored_and_removed_by_the_next() {
    let store = Store::new();
    store.note("AAAAAA", "One");
    let left = [".one -- id__AAAAAA.md.aB3dE6", ".x.md.000000"];
    let others = [".x.md", ".hidden", ".x.md.toolong1", ".x.txt.aB3dE6", "notes.tmp"];
    for name in left.iter().chain(&others) {
        age(&store.put(&format!("topics/{name}"), note("BBBBBB", "Half", "")), 2 * HOUR);
        age(&store.put(&format!("archive/{name}"), "---\nid: id__"), 2 * HOUR);
    }
    // rsync uses names like ours for files in transit.
    store.put("topics/.new -- id__CCCCCC.md.aB3dE6", "on its way");
    assert_eq!(store.out("memory-list", &[]).lines().count(), 1);
    assert_eq!(store.out("memory-list", &["--archived"]), "");
    assert_eq!(store.tree().len(), 16, "a reader swept");
    store.out("memory-read", &["AAAAAA"]);
    let mut expected: Vec<_> = others.iter().map(|name| format!("archive/{name}")).collect();
    expected.extend(others.iter().map(|name| format!("topics/{name}")));
    expected.push("topics/.new -- id__CCCCCC.md.aB3dE6".to_owned());
    expected.push("topics/one -- id__AAAAAA.md".to_owned());
    expected.sort();
    assert_eq!(store.names(), expected);
}

#[test]
fn a_store_that_is_a_file_is_a_clear_error() {
    let store = Store::new();
    store.sandbox.write(&store.root(), "mine");
    for (program, args) in [
        ("memory-list", &[][..]),
        ("memory-read", &["AAAAAA"]),
        ("memory-update", &["AAAAAA", "--pin"]),
        ("memory-remove", &["AAAAAA"]),
        ("memory-capture", &["--direct", "--title", "T", "--body", "B"]),
    ] {
        let (code, out, err) = store.run(program, args);
        assert_eq!((code, out.as_str(), err.lines().count()), (Some(2), "", 1), "{program}: {err}");
        assert!(err.contains("agent-memory") && err.to_lowercase().contains("not a directory"), "{err}");
        assert!(err.contains("memory-config show"), "{err}");
    }
    assert_eq!(fs::read(store.root()).unwrap(), b"mine");
}

/// Mounts the store read-only; `None` if mounting is not allowed.
struct ReadOnly<'a>(&'a Store);

impl ReadOnly<'_> {
    fn of(store: &Store) -> Option<ReadOnly<'_>> {
        let mount = |args: &[&str]| {
            let mut mount = Command::new("mount");
            mount.args(args).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        };
        let root = store.root();
        let root = root.to_str().unwrap();
        if !mount(&["--bind", root, root]) {
            say("nothing could be mounted: a read-only store was NOT tried");
            return None;
        }
        let guard = ReadOnly(store);
        if mount(&["-o", "remount,ro,bind", root]) { Some(guard) } else { None }
    }
}

impl Drop for ReadOnly<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.root()).status();
    }
}

#[test]
fn a_read_only_store_can_be_read_and_not_changed() {
    for whole in [true, false] {
        let store = Store::new();
        if whole {
            store.out("memory-capture", &["--direct", "--title", "T", "--body", "B"]);
        }
        store.note("AAAAAA", "One");
        let Some(_mount) = ReadOnly::of(&store) else { return };
        let before = store.tree();
        let lines = store.out("memory-list", &[]).lines().count();
        assert_eq!(lines, 1 + usize::from(whole));
        store.out("memory-read", &["--no-count", "AAAAAA"]);
        let (code, out, err) = store.run("memory-read", &["AAAAAA"]);
        assert_eq!((code, out, err.lines().count()), (Some(0), note("AAAAAA", "One", ""), 1));
        assert!(err.starts_with("Warning: this read of id__AAAAAA is not counted: "), "{err}");
        assert!(err.contains("Read-only file system"), "{err}");
        for (program, args) in [
            ("memory-update", &["AAAAAA", "--pin"][..]),
            ("memory-remove", &["AAAAAA"]),
            ("memory-capture", &["--direct", "--title", "T", "--body", "B"]),
        ] {
            let (code, out, err) = store.run(program, args);
            assert_eq!(
                (code, out.as_str(), err.lines().count()),
                (Some(if whole { 1 } else { 2 }), "", 1),
                "{err}"
            );
            assert!(err.contains("Read-only file system"), "{err}");
        }
        assert!(store.tree() == before, "something was changed");
    }
}

#[test]
fn a_full_disk_loses_no_note_and_leaves_no_file() {
    for fill in [Disk::fill, Disk::fill_names] {
        let Some(disk) = Disk::new() else { return };
        let store = Store::new();
        let root = disk.path("store");
        store
            .config(&format!("{{\"storage\": {{\"autoCommit\": false, \"root\": \"{}\"}}}}", root.display()));
        store.out("memory-capture", &["--direct", "--title", "One", "--body", "B"]);
        let path = root.join("topics").join(&names(&root.join("topics"))[0]);
        let id = path.to_str().unwrap().strip_suffix(".md").unwrap().rsplit_once(' ').unwrap().1.to_owned();
        let before = fs::read_to_string(&path).unwrap();
        fill(&disk);
        let (code, out, err) = store.run("memory-read", &[&id]);
        assert_eq!((code, out), (Some(0), before.clone()), "{err}");
        assert!(err.starts_with("Warning: this read of ") && err.contains("No space left"), "{err}");
        for (program, args) in [
            ("memory-update", &[&id, "--title", "Two"][..]),
            ("memory-update", &[&id, "--pin"]),
            ("memory-capture", &["--direct", "--title", "T", "--body", "B"]),
        ] {
            let (code, out, err) = store.run(program, args);
            assert_eq!((code, out.as_str(), err.lines().count()), (Some(1), "", 1), "{program}: {err}");
            assert!(err.contains("No space left on device"), "{err}");
            assert_eq!(fs::read_to_string(&path).unwrap(), before);
            assert_eq!(names(&root.join("topics")).len(), 1, "{:?}", names(&root.join("topics")));
        }
        // A rename needs no space.
        store.out("memory-remove", &[&id]);
        assert_eq!((names(&root.join("topics")).len(), names(&root.join("archive")).len()), (0, 1));
        disk.free();
        store.out("memory-update", &[&id, "--title", "Two"]);
        assert_eq!(names(&root.join("archive")), [name(&id[4..], "Two")]);
    }
}
