//! Entries that are accepted, and the faults of those that are not.

use super::*;
use serde_json::json;

fn entry(retrieval: Value) -> Value {
    json!({
        "version": 1, "timestamp": "2026-02-13T14:30:05.123Z", "harness": "amp", "retrieval": retrieval,
        "context": {"cwd": "/home/u/project", "repo": "github.com/o/r"},
    })
}

fn note() -> Value {
    json!({"method": "inline", "title": "t", "body": "b", "tags": ["topic__x"], "scope": "repo", "threadId": "T-1"})
}

fn parsed(value: &Value) -> Result<QueueEntry> {
    QueueEntry::parse(value.to_string().as_bytes())
}

/// What is wrong with a value that is not an entry.
fn faults(parsed: Result<QueueEntry>) -> Vec<String> {
    parsed.unwrap_err().faults().iter().map(Fault::to_string).collect()
}

#[test]
fn every_method_is_written_as_it_was_read() {
    for retrieval in [
        json!({"method": "amp-thread", "threadId": "T-5928a90d-d53b-488f"}),
        json!({"method": "opencode-session", "threadId": "ses_1"}),
        json!({"method": "transcript", "path": "/a b/ä.jsonl", "format": "claude-code", "sessionId": "1-2"}),
        json!({"method": "cursor-session", "sessionPath": "/x/1.jsonl"}),
        json!({"method": "file", "path": "/x"}),
        note(),
    ] {
        let value = entry(retrieval);
        let made = parsed(&value).unwrap();
        assert_eq!(made.json(), value);
        made.check().unwrap();
    }
}

#[test]
fn what_may_be_left_out_gets_its_default() {
    let mut value = entry(json!({"method": "inline", "title": "t", "body": "b"}));
    value["context"] = json!({"cwd": null});
    let made = parsed(&value).unwrap();
    assert_eq!(made.context, CaptureContext::default());
    let expected = json!({"method": "inline", "title": "t", "body": "b", "tags": [], "scope": "global", "threadId": null});
    assert_eq!(made.json()["retrieval"], expected);
}

#[test]
fn times_have_three_digits_after_the_point_and_are_in_utc() {
    for (given, written) in [
        ("2026-02-13T14:30:05Z", "2026-02-13T14:30:05.000Z"),
        ("2026-02-13T15:30:05.1239+01:00", "2026-02-13T14:30:05.123Z"),
    ] {
        let mut value = entry(note());
        value["timestamp"] = json!(given);
        assert_eq!(parsed(&value).unwrap().json()["timestamp"], written);
    }
}

/// `path` set to `value`, or removed.
fn with(path: &str, value: Option<Value>) -> Value {
    let mut entry = entry(note());
    let (above, key) = path.rsplit_once('/').unwrap();
    let object = entry.pointer_mut(above).unwrap().as_object_mut().unwrap();
    match value {
        Some(value) => object.insert(key.to_owned(), value),
        None => object.remove(key),
    };
    entry
}

#[test]
fn a_fault_names_its_key_and_quotes_its_value() {
    for (path, value, fault) in [
        ("/version", Some(json!(2)), "version: 2 is unknown; this program knows version 1"),
        ("/version", Some(json!("1")), "version: \"1\" is unknown; this program knows version 1"),
        ("/version", None, "version: is missing"),
        (
            "/timestamp",
            Some(json!("today")),
            "timestamp: \"today\" is not an RFC 3339 time, like 2026-02-13T14:30:05.123Z",
        ),
        ("/timestamp", Some(json!(5)), "timestamp: a string is expected, not a number"),
        (
            "/harness",
            Some(json!("Claude Code")),
            "harness: \"Claude Code\" is not the name of a program: a-z, 0-9 and - only, a letter first, at most 32 bytes",
        ),
        ("/harness", None, "harness: is missing"),
        ("/retrieval", None, "retrieval: is missing"),
        ("/retrieval", Some(json!([])), "retrieval: an object is expected, not an array"),
        (
            "/retrieval/method",
            Some(json!("inlin")),
            "retrieval.method: \"inlin\" is none of amp-thread, opencode-session, read-command, transcript, cursor-session, file, memory-file, inline; did you mean \"inline\"?",
        ),
        ("/retrieval/title", Some(json!(" ")), "retrieval.title: is empty"),
        (
            "/retrieval/title",
            Some(json!("a\nb")),
            "retrieval.title: \"a b\" has line breaks or control characters",
        ),
        (
            "/retrieval/title",
            Some(json!("x".repeat(1001))),
            "retrieval.title: has 1001 bytes; at most 1000 are taken",
        ),
        ("/retrieval/body", Some(json!("\n")), "retrieval.body: is empty"),
        (
            "/retrieval/body",
            Some(json!("x".repeat(BODY_CAP + 1))),
            "retrieval.body: has 1048577 bytes; a note takes at most 1048576",
        ),
        ("/retrieval/tags", Some(json!("x")), "retrieval.tags: an array of strings is expected"),
        (
            "/retrieval/tags",
            Some(json!(["a/b"])),
            "retrieval.tags: \"a/b\" is not a tag; write topic__x or area__x, with a-z, 0-9 and - for x, at most 80 bytes",
        ),
        ("/retrieval/tags", Some(json!(vec!["x"; 33])), "retrieval.tags: has 33; a note takes at most 32"),
        ("/retrieval/scope", Some(json!("all")), "retrieval.scope: \"all\" is none of global, repo"),
        (
            "/retrieval/threadId",
            Some(json!("../x")),
            "retrieval.threadId: \"../x\" is not an id: letters, digits and ._:@- only, a letter or digit first",
        ),
        ("/retrieval/threadId", Some(json!("")), "retrieval.threadId: is empty"),
        (
            "/retrieval/threadId",
            Some(json!("x".repeat(201))),
            "retrieval.threadId: has 201 bytes; at most 200 are taken",
        ),
        ("/retrieval/titel", Some(json!("t")), "retrieval.titel: unknown key; did you mean \"title\"?"),
        ("/context/cwd", Some(json!("src")), "context.cwd: \"src\" is not an absolute path"),
        (
            "/context/cwd",
            Some(json!("/a\u{0}b")),
            "context.cwd: \"/a b\" has line breaks or control characters",
        ),
        ("/context", None, "context: is missing"),
        ("/extra", Some(json!(1)), "extra: unknown key"),
    ] {
        assert_eq!(faults(parsed(&with(path, value.clone()))), [fault], "{path} {value:?}");
    }
}

#[test]
fn all_faults_are_reported_together() {
    let value = json!({
        "version": 1, "timestamp": 5, "harness": "X",
        "retrieval": {"method": "inline", "title": "", "body": "", "threadId": "-", "more": 1},
        "context": {"cwd": "x"},
    });
    let error = parsed(&value).unwrap_err();
    let keys: Vec<&str> = error.faults().iter().map(|fault| fault.path.as_str()).collect();
    let inline = ["retrieval.title", "retrieval.body", "retrieval.threadId", "retrieval.more"];
    assert_eq!(keys, [&["timestamp", "harness"][..], &inline[..], &["context.cwd"][..]].concat());
    let start =
        "not a queue entry: timestamp: a string is expected, not a number; harness: \"X\" is not the name ";
    assert!(error.message().starts_with(start), "{}", error.message());
    // Without a known method the other keys cannot be checked.
    let faults = faults(parsed(&entry(json!({"method": "?", "threadId": "T-1"}))));
    assert_eq!(faults.len(), 1, "{faults:?}");
}

#[test]
fn a_value_that_is_not_an_object_is_named() {
    for (text, fault) in [
        ("[]", "a JSON object is expected, not an array"),
        ("null", "a JSON object is expected, not null"),
        ("", "not JSON: EOF while parsing a value at line 1 column 0"),
        ("{}x", "not JSON: trailing characters at line 1 column 3"),
    ] {
        assert_eq!(faults(QueueEntry::parse(text.as_bytes())), [fault]);
    }
    let deep = "[".repeat(100_000);
    assert!(faults(QueueEntry::parse(deep.as_bytes()))[0].starts_with("not JSON: recursion limit"));
}

#[test]
fn no_damage_makes_it_panic_or_pass_for_whole() {
    let whole = entry(note()).to_string().into_bytes();
    for end in 0..whole.len() {
        assert!(QueueEntry::parse(&whole[..end]).is_err(), "{end}");
    }
    for at in 0..whole.len() {
        for byte in [0, b'"', b'}', b',', 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            // Most are refused; some are another entry. None panics, and each that is taken can be written.
            if let Ok(made) = QueueEntry::parse(&damaged) {
                made.check().unwrap();
            }
        }
    }
    let with_a_mark = [b"\xef\xbb\xbf", &whole[..]].concat();
    assert!(QueueEntry::parse(&with_a_mark).is_ok());
}

#[test]
fn tags_take_one_form_and_are_there_once() {
    let made = parsed(&with("/retrieval/tags", Some(json!(["X", "topic__x", "area__y", "x-1"])))).unwrap();
    let Retrieval::Inline { tags, .. } = made.retrieval else { panic!("{made:?}") };
    assert_eq!(tags, ["topic__x", "area__y", "topic__x-1"]);
}

#[test]
fn a_remotes_password_does_not_get_in() {
    for (given, kept) in [
        ("https://me:s3cret@github.com/o/r.git", Some("github.com/o/r")),
        ("https://github.com/o/r?token=s3cret", Some("github.com/o/r")),
        ("file:///srv/s3cret", None),
        ("local:/srv/r", Some("local:/srv/r")),
        ("github.com/o/r", Some("github.com/o/r")),
    ] {
        let made = parsed(&with("/context/repo", Some(json!(given)))).unwrap();
        assert_eq!(made.context.repo.as_deref(), kept);
    }
}

#[test]
fn entries_about_one_session_bear_one_mark() {
    let of = |harness: &str, retrieval: Value| {
        let mut value = entry(retrieval);
        value["harness"] = json!(harness);
        parsed(&value).unwrap()
    };
    let thread = |harness, id| of(harness, json!({"method": "amp-thread", "threadId": id}));
    let mark = session_mark(&thread("amp", "T-1").session().unwrap());
    assert_eq!(mark.len(), 4);
    assert_eq!(session_mark(&thread("amp", "T-1").session().unwrap()), mark);
    assert_ne!(session_mark(&thread("amp", "T-2").session().unwrap()), mark);
    assert_ne!(thread("manual", "T-1").session(), thread("amp", "T-1").session());
    // A note is no session, wherever it is from.
    assert_eq!(of("amp", note()).session(), None);
    assert_eq!(of("amp", note()).thread_id(), Some("T-1"));
    let cursor = of("cursor", json!({"method": "cursor-session", "sessionPath": "/x/c-1.jsonl"}));
    assert_eq!(cursor.thread_id(), Some("c-1"));
}

#[cfg(unix)]
#[test]
fn a_path_that_is_not_text_is_refused_before_it_is_written() {
    use std::os::unix::ffi::OsStrExt;
    let mut made = parsed(&entry(json!({"method": "file", "path": "/x"}))).unwrap();
    made.retrieval = Retrieval::File { path: PathBuf::from(std::ffi::OsStr::from_bytes(b"/\xff")) };
    assert_eq!(made.check().unwrap_err().faults().len(), 1);
}
