//! `memory-edit`: what an editor leaves is filed as the person's, or kept and named.

use crate::memory_review::propose;
use crate::support::said;
use crate::support::store::{Store, names, note, value};
use serde_json::json;
use std::fs;
use std::path::PathBuf;

const SOURCE: &str = "summary: Where it listens.\ntags: [topic__dev]\nby: agent\nused: 3\n# mine\nown: key\n\
     sources:\n  - {harness: amp, threadId: T-1}\n";

/// A note of a session, and an editor: a script of sh, whose `$1` is the file.
fn edit(store: &Store, script: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let editor = store.sandbox.home().join("ed.sh");
    store.sandbox.write(&editor, script);
    let mut command = store.sandbox.command("memory-edit");
    said(command.args(args).env("VISUAL", format!("sh {}", editor.display())))
}

fn store() -> Store {
    let store = Store::new();
    store.put("topics/dev-server -- id__AAAAAA.md", note("AAAAAA", "Dev server", SOURCE));
    store
}

fn kept(store: &Store) -> Vec<PathBuf> {
    let dir = store.root().join(".agent-memory/edits");
    names(&dir).into_iter().map(|name| dir.join(name)).collect()
}

#[test]
fn an_edit_is_the_persons_word_and_touches_nothing_else() {
    let store = store();
    let seen = store.sandbox.home().join("seen");
    let script = format!(
        "cp \"$1\" {}\nsed -e 's/^title: .*/title: The dev server/' -e 's/topic__dev/topic__dev, ports/' \
         -e 's/^Body.*/It listens on 4310./' \"$1\" > \"$1.new\" && mv \"$1.new\" \"$1\"",
        seen.display()
    );
    let (code, out, err) = edit(&store, &script, &["dev server"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(
        fs::read_to_string(seen).unwrap(),
        "---\ntitle: Dev server\nsummary: Where it listens.\ntags: [topic__dev]\n---\n\nBody of Dev server.\n"
    );
    let path = store.topics().join("the-dev-server -- topic__dev topic__ports id__AAAAAA.md");
    assert_eq!(out, format!("{}\n", path.display()));
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with("---\n\nIt listens on 4310.\n") && text.contains("# mine\nown: key\n"), "{text}");
    for (key, expected) in
        [("title", "The dev server"), ("by", "person"), ("used", "3"), ("tags", "[topic__dev, topic__ports]")]
    {
        assert_eq!(value(&text, key), Some(expected), "{text}");
    }
    assert!(kept(&store).is_empty());
    // From now on no agent changes it.
    let mut agent = store.sandbox.command("memory-update");
    let (_, _, err) = said(agent.args(["AAAAAA", "--title", "Ours"]).env("CLAUDECODE", "1"));
    assert!(err.contains("waits for a person"), "{err}");
}

#[test]
fn what_is_unchanged_or_empty_changes_nothing() {
    let store = store();
    let before = store.tree();
    // The last adds what an editor adds by itself; the one before removes the file.
    let scripts = ["true", ": > \"$1\"", "printf '\\n \\n' > \"$1\"", "rm \"$1\"", "touch \"$1\""];
    for script in scripts {
        let (code, out, err) = edit(&store, script, &["AAAAAA", "--json"]);
        assert_eq!(
            (code, out.as_str(), err.as_str()),
            (Some(0), "", "memory-edit: nothing was changed\n"),
            "{script}"
        );
        assert!(store.tree() == before && kept(&store).is_empty(), "{script}");
    }
}

#[test]
fn what_cannot_be_filed_is_kept_and_opened_again() {
    let store = store();
    let before = store.tree();
    let long = format!("title: {}", "x".repeat(2000));
    for (line, why) in [
        ("title: ", "title: it is empty"),
        ("title: [a", "line 2"),
        ("nothing", "the front matter has no keys"),
        (
            "title: x\ntier: hot",
            "\"tier\" is not one of title, summary, tags; change other keys with: memory-update",
        ),
        ("title: x\nid: id__BBBBBB", "\"id\" is not one of title, summary, tags"),
        ("title: x\ntags: ['a/b']", ""),
        (&long, "the title has 2000 bytes; at most"),
    ] {
        let script = format!("cat > \"$1\" <<'END'\n---\n{line}\n---\n\nMy words.\nEND");
        let (code, out, err) = edit(&store, &script, &["AAAAAA"]);
        let path = kept(&store).pop().unwrap_or_else(|| panic!("{line}: {err}"));
        assert_eq!((code, out.as_str(), err.lines().count()), (Some(1), "", 1), "{line}: {err}");
        let step =
            format!("your text is kept in \"{}\"; to fix it, run: memory-edit id__AAAAAA\n", path.display());
        assert!(err.contains(why) && err.ends_with(&step), "{line}: {err}");
        assert!(fs::read_to_string(&path).unwrap().contains("My words."));
        assert_eq!(store.tree(), before);
        // The next edit opens it; it is mended, or dropped.
        let (code, _, err) = edit(&store, "grep -q 'My words.' \"$1\" && : > \"$1\"", &["AAAAAA"]);
        assert!(code == Some(0) && err.contains("opened the text you edited earlier"), "{err}");
        assert!(kept(&store).is_empty());
    }
    // An editor that fails, or is killed, loses nothing either.
    for (end, why) in [("exit 3", "failed (exit 3)"), ("kill -KILL $$", "the editor was ended by signal 9")] {
        let (code, _, err) = edit(&store, &format!("echo 'My words.' >> \"$1\"\n{end}"), &["AAAAAA"]);
        assert!(code == Some(1) && err.contains(why) && err.contains("your text is kept in \""), "{err}");
        assert_eq!((kept(&store).len(), store.tree() == before), (1, true), "{end}");
        edit(&store, ": > \"$1\"", &["AAAAAA"]);
    }
    let mut command = store.sandbox.command("memory-edit");
    let (code, _, err) = said(command.arg("AAAAAA").env_remove("VISUAL").env_remove("EDITOR"));
    assert!(code == Some(1) && err.contains("set it, for example: EDITOR=vi"), "{err}");
    assert!(kept(&store).is_empty(), "nothing was typed");
    // A purge takes what is kept, too.
    edit(&store, "echo 'title: x' > \"$1\"", &["AAAAAA"]);
    assert_eq!(kept(&store).len(), 1);
    store.out("memory-remove", &["--purge", "AAAAAA"]);
    assert!(kept(&store).is_empty() && store.names().is_empty());
}

#[test]
fn a_note_that_changed_meanwhile_stays_and_so_does_the_text() {
    let store = store();
    let note = store.topics().join("dev-server -- id__AAAAAA.md");
    let script = format!(
        "echo 'My words.' >> \"$1\"\nsed 's/^Body.*/Their words./' '{0}' > new && mv new '{0}'",
        note.display()
    );
    let (code, out, err) = edit(&store, &script, &["AAAAAA"]);
    let path = kept(&store).pop().unwrap();
    let expected = format!(
        "memory-edit: the note id__AAAAAA has changed meanwhile; your text is kept in \"{}\"; the note as it is now: memory-read id__AAAAAA\n",
        path.display()
    );
    assert_eq!((code, out.as_str(), err), (Some(1), "", expected));
    assert!(store.text("AAAAAA").ends_with("\nTheir words.\n"));
    // The next edit is of the note as it is.
    let (code, _, err) =
        edit(&store, "grep -q 'My words.' \"$1\" && exit 9; echo 'Both.' >> \"$1\"", &["AAAAAA"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(store.text("AAAAAA").ends_with("\nTheir words.\nBoth.\n"));
    assert_eq!(kept(&store), [path]);
}

#[test]
fn a_secret_is_replaced_and_an_agent_edits_nothing() {
    let store = store();
    let token = format!("ghp_{}", "aB3dE6gH9j".repeat(4).get(..36).unwrap());
    let (code, _, err) = edit(&store, &format!("echo 'Use {token} here' >> \"$1\""), &["AAAAAA"]);
    assert_eq!(
        (code, err.as_str()),
        (Some(0), "Warning: the body: what looks like a secret was replaced by a mark\n")
    );
    assert!(store.text("AAAAAA").contains("Use [redacted:") && !store.text("AAAAAA").contains(&token));
    let before = store.tree();
    let mut agent = store.sandbox.command("memory-edit");
    let (code, _, err) = said(agent.arg("AAAAAA").env("CLAUDECODE", "1").env("EDITOR", "false"));
    assert!(code == Some(1) && err.contains("only a person may edit a note"), "{err}");
    assert_eq!(store.tree(), before);
}

#[test]
fn a_change_is_named_by_the_beginning_of_its_id() {
    let store = Store::new();
    for id in ["p__a1B2c3", "p__a1B2d4"] {
        propose(&store, id, json!({}));
    }
    let (code, _, err) = store.run("memory-review", &["--reject", "p__a1B2"]);
    assert!(
        code == Some(1) && err.contains("\"p__a1B2\" names 2 changes: p__a1B2c3, p__a1B2d4; give"),
        "{err}"
    );
    assert_eq!(store.out("memory-review", &["--reject", "a1B2c"]), "p__a1B2c3\n");
    assert_eq!(store.out("memory-review", &["--reject", "p__a"]), "p__a1B2d4\n");
    let (code, _, err) = store.run("memory-review", &["--accept", "p__a"]);
    assert!(code == Some(1) && err.contains("no change with the id \"p__a\" waits"), "{err}");
}
