//! Stores as earlier releases wrote them, in `tests/stores/`: this one reads them, and pays for nothing twice.

use crate::support::llm::NOTE_EACH;
use crate::support::{Sandbox, said};
use std::fs;
use std::path::Path;

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => {
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::copy(entry.path(), &to).unwrap();
            }
        }
    }
}

/// The session that each of these stores has consumed.
fn consumed(sandbox: &Sandbox) -> String {
    sandbox.heard("s1", "Which port has the server? It is 4310.")
}

#[test]
fn a_store_of_an_earlier_release_is_read_and_its_sessions_are_not_asked_about_again() {
    let stores = crate::support::root().join("tests/stores");
    let mut count = 0;
    for store in fs::read_dir(stores).unwrap().map(|entry| entry.unwrap().path()) {
        count += 1;
        let sandbox = Sandbox::new();
        sandbox.librarian(NOTE_EACH);
        copy(&store, &sandbox.store());
        let list = said(&mut sandbox.command("memory-list"));
        assert!(list.0 == Some(0) && list.1.contains("From "), "{}: {list:?}", store.display());
        let doctor = said(sandbox.command("memory-doctor").args(["--json"]));
        assert!(!doctor.1.contains("\"error\""), "{}: {doctor:?}", store.display());
        let id = consumed(&sandbox);
        let (code, out, err) = sandbox.consolidated(&[]);
        assert_eq!((code, sandbox.prompts().len()), (Some(0), 0), "{}: {out}{err}", store.display());
        assert!(sandbox.processed().contains(&id), "{}: {out}{err}", store.display());
        // What is new in it is.
        sandbox.talk(
            "s1",
            &[
                ("user", "Which port has the server? It is 4310."),
                ("assistant", "So it is."),
                ("user", "No, 4320."),
            ],
        );
        sandbox.hear("s1");
        assert_eq!(
            (sandbox.consolidated(&[]).0, sandbox.prompts().len()),
            (Some(0), 1),
            "{}",
            store.display()
        );
    }
    assert!(count > 0);
}
