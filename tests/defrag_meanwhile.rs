//! What people and agents do to notes while the model thinks about them: nothing of it is lost.

use crate::support::defrag::{NOTHING, ONE_MERGED};
use crate::support::store::{Store, value};
use serde_json::json;

/// Two notes, and a model that first does something to the file of the second, and then merges both.
fn while_it_thinks(what: &str) -> (Store, (Option<i32>, String, String)) {
    let store = Store::new();
    store.with_two();
    store.session("cccccc", "Third");
    let file = store.topics().join("actors -- id__bbbbbb.md");
    store.model(&format!(
        "file = {file:?}\n{what}\ndo(merge('id__aaaaaa', 'id__bbbbbb'), tier('id__cccccc', 'cold'))"
    ));
    let result = store.defrag(&[]);
    (store, result)
}

#[test]
fn an_edit_is_kept_and_the_operation_dropped() {
    let (store, (code, out, err)) = while_it_thinks("open(file, 'a').write('An afterthought.\\n')");
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "0 merged, 0 split, 0 renamed, 0 archived, 1 re-tiered, 1 dropped\n")
    );
    assert!(err.contains("id__bbbbbb has been changed since it was shown"), "{err}");
    assert!(store.text("id__bbbbbb").ends_with("An afterthought.\n"));
    assert_eq!(store.names().len(), 3);
    // What the model has not seen yet is asked about next time.
    store.model("do()");
    assert_eq!((store.tidied(&[]), store.sandbox.prompts().len()), (NOTHING.to_owned(), 2));
    assert_eq!((store.tidied(&[]), store.sandbox.prompts().len()), (NOTHING.to_owned(), 2));
}

#[test]
fn a_note_that_was_removed_stays_away() {
    let (store, (code, _, err)) = while_it_thinks("os.remove(file)");
    assert_eq!((code, store.names().len()), (Some(0), 2), "{err}");
    assert!(err.contains("dropped: merge id__aaaaaa id__bbbbbb: id__bbbbbb has been"), "{err}");
}

#[test]
fn a_note_that_was_renamed_keeps_its_name_or_is_merged() {
    let (store, (code, _, err)) =
        while_it_thinks("os.rename(file, os.path.join(os.path.dirname(file), 'mine.md'))");
    assert_eq!(code, Some(0), "{err}");
    let name = store.names().into_iter().find(|name| name.ends_with("/mine.md"));
    assert!(name.is_some(), "{:?}", store.names());
    assert_eq!(store.names().len(), 3);
}

#[test]
fn reads_are_counted_for_the_heir() {
    let reader = crate::support::binary("memory-read");
    let read = format!(
        "import subprocess\nos.environ.pop('AGENT_MEMORY_RUN', None)\n\
         for id in ['id__bbbbbb', 'id__bbbbbb', 'id__aaaaaa']:\n    subprocess.run([{reader:?}, id], check=True, stdout=subprocess.DEVNULL)"
    );
    let (store, (code, out, err)) = while_it_thinks(&read);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(out, ONE_MERGED.replace("0 re-t", "1 re-t"));
    assert_eq!(value(&store.text("topics/guards"), "used"), Some("3"));
    // Taken back, each has its own.
    store.tidied(&["--undo"]);
    assert_eq!(value(&store.text("id__bbbbbb"), "used"), Some("2"));
    assert_eq!(value(&store.text("id__aaaaaa"), "used"), Some("1"));
}

#[test]
fn a_note_that_comes_meanwhile_is_asked_about_next() {
    let store = Store::new();
    store.with_two();
    let new = store.topics().join("new -- id__dddddd.md");
    store.model(&format!(
        "open({new:?}, 'w').write('---\\nid: id__dddddd\\ntitle: New\\n---\\n\\nNew.\\n')\ndo(archive('id__dddddd'))"
    ));
    let (result, err) = store.tidied_json(&[]);
    assert_eq!(result["dropped"][0]["why"], json!("no note with the id id__dddddd was shown"), "{err}");
    store.model("do()");
    assert_eq!((store.tidied(&[]), store.sandbox.prompts().len()), (NOTHING.to_owned(), 2));
}

#[test]
fn an_operation_about_a_note_that_cannot_be_read_is_asked_for_again() {
    let (store, (code, out, err)) = while_it_thinks("os.rename(file, file + '.aside'); os.mkdir(file)");
    assert_eq!(code, Some(0), "{err}");
    assert!(out.ends_with("1 re-tiered, 1 dropped\n"), "{out}");
    let file = store.topics().join("actors -- id__bbbbbb.md");
    std::fs::remove_dir(&file).unwrap();
    std::fs::rename(file.with_extension("md.aside"), &file).unwrap();
    store.model("do(merge('id__aaaaaa', 'id__bbbbbb'))");
    let (code, out, err) = store.defrag(&[]);
    assert_eq!((code, store.sandbox.prompts().len()), (Some(0), 2), "{err}");
    assert!(out.starts_with("1 merged"), "{out} {err}");
}
