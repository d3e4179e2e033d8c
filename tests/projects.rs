//! The checkouts in which a person ran `memory-agents-md --project`: refreshed from then on, and no others.

use crate::agents_md::{END, START, put};
use crate::support::said;
use crate::support::store::Store;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const REPO: &str = "scope: repo\nsources:\n  - {harness: codex, repo: github.com/o/r, cwd: /w}\n";

/// A checkout of github.com/o/r.
fn checkout(store: &Store, name: &str) -> PathBuf {
    let top = fs::canonicalize(store.sandbox.work()).unwrap().join(name);
    store.sandbox.write(&top.join(".git/HEAD"), "ref: refs/heads/main\n");
    store.sandbox.write(&top.join(".git/config"), "[remote \"origin\"]\nurl = git@github.com:o/r.git\n");
    top
}

fn project(store: &Store, top: &Path) -> String {
    let (code, out, err) = said(store.sandbox.command("memory-agents-md").arg("--project").current_dir(top));
    assert_eq!(code, Some(0), "{err}");
    out
}

fn recorded(store: &Store) -> Vec<Value> {
    let text = fs::read_to_string(store.root().join(".agent-memory/projects.json")).unwrap_or_default();
    let list: Value = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() };
    list["projects"].as_array().cloned().unwrap_or_default()
}

fn read(top: &Path) -> String {
    fs::read_to_string(top.join("AGENTS.md")).unwrap()
}

fn doctors(store: &Store, check: &str) -> Vec<Value> {
    let (_, out, _) = store.run("memory-doctor", &["--json"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    report["findings"].as_array().unwrap().iter().filter(|found| found["check"] == check).cloned().collect()
}

#[test]
fn a_checkout_is_refreshed_from_then_on_by_every_program_that_refreshes() {
    let store = Store::new();
    let (top, other) = (checkout(&store, "r"), checkout(&store, "clone"));
    put(&store, "AAAAAA", "Of r", REPO, "x");
    // Markers that came with a clone are nobody's consent.
    let came = format!("{START}\nold\n{END}\n");
    fs::write(other.join("AGENTS.md"), &came).unwrap();
    assert!(project(&store, &top).starts_with("made\t"));
    assert_eq!(recorded(&store)[0]["top"], top.to_str().unwrap());
    put(&store, "BBBBBB", "By hand", REPO, "x");
    assert_eq!(doctors(&store, "target")[0]["what"], "its section is out of date");
    let (code, out, _) = store.run("memory-agents-md", &["--check"]);
    assert_eq!((code, out), (Some(1), format!("stale\t{}/AGENTS.md\n", top.display())));
    store.out("memory-consolidate", &["--quiet"]);
    assert!(read(&top).contains("id__BBBBBB"));
    store.out("memory-remove", &["BBBBBB"]);
    assert!(!read(&top).contains("id__BBBBBB"));
    put(&store, "CCCCCC", "Again", REPO, "x");
    assert_eq!(store.out("memory-agents-md", &[]), format!("written\t{}/AGENTS.md\n", top.display()));
    put(&store, "DDDDDD", "Once more", REPO, "x");
    store.run("memory-defrag", &[]);
    assert!(read(&top).contains("id__DDDDDD"));
    assert_eq!(read(&other), came);
    // Other targets are refreshed alone.
    put(&store, "EEEEEE", "Elsewhere", REPO, "x");
    store.run("memory-agents-md", &["--target", "X.md"]);
    assert!(!read(&top).contains("id__EEEEEE"));
    // Twice is once.
    project(&store, &top);
    assert_eq!(recorded(&store).len(), 1);
}

/// Of what a run writes after its first batch, only the checkouts concerned are refreshed.
#[test]
fn a_checkout_shows_what_every_batch_of_a_run_brings() {
    let store = Store::new();
    let top = checkout(&store, "r");
    project(&store, &top);
    for number in 0..33 {
        let mut capture = store.sandbox.command("memory-capture");
        let title = format!("Port {number}");
        let args = ["--scope", "repo", "--title", &title, "--body", "x"];
        assert_eq!(said(capture.args(args).current_dir(&top)).0, Some(0));
    }
    assert_eq!(store.out("memory-consolidate", &[]), "33 entries processed, 33 kb entries written\n");
    let section = read(&top);
    let unseen = (0..33).filter(|number| !section.contains(&format!("Port {number} ")));
    assert_eq!(unseen.collect::<Vec<_>>(), Vec::<usize>::new(), "{section}");
}

#[test]
fn a_change_of_a_note_reaches_a_checkout_inside_its_directory() {
    let store = Store::new();
    let around = fs::canonicalize(store.sandbox.work()).unwrap();
    store.sandbox.write(&around.join("in/.git/HEAD"), "ref: refs/heads/main\n");
    let source =
        format!("scope: repo\nsources:\n  - {{harness: codex, repo: \"local:{}\"}}\n", around.display());
    put(&store, "AAAAAA", "Before", &source, "x");
    let top = around.join("in");
    project(&store, &top);
    store.out("memory-update", &["AAAAAA", "--title", "After"]);
    assert!(read(&top).contains("### After (id__AAAAAA"), "{}", read(&top));
}

#[test]
fn a_checkout_without_notes_gets_its_section_with_the_first_one() {
    let store = Store::new();
    let top = checkout(&store, "r");
    project(&store, &top);
    assert!(!top.join("AGENTS.md").exists());
    let mut capture = store.sandbox.command("memory-capture");
    let args = ["--direct", "--scope", "repo", "--title", "Port", "--body", "8081"];
    let (code, _, err) = said(capture.args(args).current_dir(&top));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(read(&top).contains("8081"));
}

#[test]
fn a_checkout_whose_section_the_person_removed_is_dropped_and_another_branch_is_not() {
    let store = Store::new();
    let top = checkout(&store, "r");
    put(&store, "AAAAAA", "Of r", REPO, "x");
    project(&store, &top);
    let section = read(&top);
    // The file of another branch has no section.
    store.sandbox.write(&top.join(".git/HEAD"), "ref: refs/heads/other\n");
    fs::write(top.join("AGENTS.md"), "# Mine\n").unwrap();
    store.out("memory-consolidate", &["--quiet"]);
    assert_eq!((read(&top).as_str(), recorded(&store).len()), ("# Mine\n", 1));
    store.sandbox.write(&top.join(".git/HEAD"), "ref: refs/heads/main\n");
    fs::write(top.join("AGENTS.md"), &section).unwrap();
    put(&store, "BBBBBB", "Back", REPO, "x");
    store.out("memory-consolidate", &["--quiet"]);
    assert!(read(&top).contains("id__BBBBBB"));
    // The same branch, without a section: that was the person.
    fs::write(top.join("AGENTS.md"), "# Mine\n").unwrap();
    let (code, _, err) = store.run("memory-consolidate", &["--quiet"]);
    assert_eq!(code, Some(0));
    assert!(err.contains("has no section any more, so it is no longer refreshed; "), "{err}");
    assert_eq!((read(&top).as_str(), recorded(&store).len()), ("# Mine\n", 0));
    // A section that comes back later is nobody's consent.
    fs::write(top.join("AGENTS.md"), format!("{START}\n{END}\n")).unwrap();
    store.out("memory-consolidate", &["--quiet"]);
    assert_eq!(read(&top), format!("{START}\n{END}\n"));
}

#[test]
fn a_checkout_that_is_gone_is_waited_for_and_then_forgotten() {
    let store = Store::new();
    let top = checkout(&store, "disk/r");
    put(&store, "AAAAAA", "Of r", REPO, "x");
    project(&store, &top);
    let (disk, away) = (top.parent().unwrap().to_owned(), store.sandbox.work().join("away"));
    let on = |day: &str| {
        let mut consolidate = store.sandbox.command("memory-consolidate");
        let (code, _, err) = said(consolidate.arg("--quiet").env("AXE_NOW", format!("{day}T12:00:00Z")));
        assert_eq!(code, Some(0), "{err}");
        err
    };
    fs::rename(&disk, &away).unwrap();
    assert_eq!(on("2026-03-01"), "");
    assert_eq!(recorded(&store)[0]["missingSince"], "2026-03-01");
    let found = doctors(&store, "target");
    assert!(
        found[0]["what"].as_str().unwrap().contains("the checkout is gone since 2026-03-01"),
        "{found:?}"
    );
    assert_eq!(on("2026-03-30"), "");
    // It is back: nothing was lost.
    fs::rename(&away, &disk).unwrap();
    put(&store, "BBBBBB", "Back", REPO, "x");
    assert_eq!(on("2026-03-31"), "");
    assert!(read(&top).contains("id__BBBBBB") && recorded(&store)[0].get("missingSince").is_none());
    fs::rename(&disk, &away).unwrap();
    on("2026-04-01");
    assert!(on("2026-05-01").contains("is gone since 2026-04-01, so its AGENTS.md is no longer refreshed"));
    assert_eq!(recorded(&store).len(), 0);
}

#[test]
fn another_repository_in_its_place_gets_nothing_and_the_doctor_tells() {
    let store = Store::new();
    let top = checkout(&store, "r");
    put(&store, "AAAAAA", "Of r", REPO, "x");
    project(&store, &top);
    store.sandbox.write(&top.join(".git/config"), "[remote \"origin\"]\nurl = git@github.com:o/evil.git\n");
    let before = read(&top);
    put(&store, "BBBBBB", "New", REPO, "x");
    store.out("memory-consolidate", &["--quiet"]);
    assert_eq!(read(&top), before);
    let found = doctors(&store, "target");
    assert!(
        found[0]["what"].as_str().unwrap().contains("is a checkout of github.com/o/evil now"),
        "{found:?}"
    );
}

#[test]
fn an_agent_records_nothing() {
    let store = Store::new();
    let top = checkout(&store, "r");
    put(&store, "AAAAAA", "Of r", REPO, "x");
    for variable in ["AGENT_MEMORY_RUN", "CLAUDECODE"] {
        let mut command = store.sandbox.command("memory-agents-md");
        let (code, _, err) = said(command.arg("--project").env(variable, "1").current_dir(&top));
        assert_eq!(code, Some(0));
        assert!(err.contains("written once, and not refreshed from now on"), "{err}");
    }
    // Nor does a look.
    let mut command = store.sandbox.command("memory-agents-md");
    said(command.args(["--project", "--check"]).current_dir(&top));
    assert_eq!(recorded(&store).len(), 0);
}

#[test]
fn a_list_that_cannot_be_read_is_named_and_left_alone() {
    let store = Store::new();
    let (list, target) = (".agent-memory/projects.json", store.sandbox.work().join("A.md"));
    crate::agents_md::aim(&store, serde_json::json!([target]), serde_json::json!({}));
    store.note("AAAAAA", "One");
    let path = store.put(list, "{\"projects\": [");
    let (code, out, err) = store.run("memory-agents-md", &[]);
    assert_eq!((code, out.starts_with("made\t")), (Some(0), true), "{err}");
    assert!(err.contains(&format!("\"{}\" cannot be read", path.display())) && err.contains("move it away"));
    let top = checkout(&store, "r");
    let mut command = store.sandbox.command("memory-agents-md");
    let (code, _, err) = said(command.arg("--project").current_dir(top));
    assert!(code == Some(0) && err.contains("the file is written, and will not be refreshed: "), "{err}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"projects\": [");
    assert_eq!(doctors(&store, "target")[0]["severity"], "error");
}

#[test]
fn a_proposal_that_cannot_be_read_is_named_when_the_section_is_made() {
    let store = Store::new();
    let top = checkout(&store, "r");
    put(&store, "AAAAAA", "Of r", REPO, "x");
    fs::create_dir_all(store.root().join("proposals/p__abcdef.json")).unwrap();
    let (code, _, err) = said(store.sandbox.command("memory-agents-md").arg("--project").current_dir(&top));
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("p__abcdef.json\" is left out"), "{err}");
}

#[test]
fn a_repository_whose_configuration_cannot_be_read_does_not_pass_for_another() {
    let store = Store::new();
    let top = checkout(&store, "r");
    put(&store, "AAAAAA", "Of r", REPO, "x");
    project(&store, &top);
    let (before, list) = (read(&top), recorded(&store));
    fs::remove_file(top.join(".git/config")).unwrap();
    fs::create_dir(top.join(".git/config")).unwrap();
    let (code, _, _) = said(store.sandbox.command("memory-agents-md").arg("--project").current_dir(&top));
    assert_ne!(code, Some(0), "no repository is known here");
    assert_eq!((read(&top), &recorded(&store)[0]["repo"]), (before, &list[0]["repo"]));
}

#[test]
fn a_changed_note_of_a_folder_shows_in_the_checkouts_below_it() {
    let store = Store::new();
    let top = fs::canonicalize(store.sandbox.work()).unwrap().join("a/b");
    store.sandbox.write(&top.join(".git/HEAD"), "ref: refs/heads/main\n");
    let folder = top.parent().unwrap().display().to_string();
    let sources = format!("scope: repo\nsources:\n  - {{harness: codex, repo: \"local:{folder}\"}}\n");
    put(&store, "AAAAAA", "Rule", &sources, "Use tabs.");
    project(&store, &top);
    assert!(read(&top).contains("id__AAAAAA"));
    store.out("memory-remove", &["AAAAAA"]);
    assert!(!read(&top).contains("id__AAAAAA"), "{}", read(&top));
}

#[test]
fn a_note_that_gets_its_id_while_another_one_is_changed_shows_at_once() {
    let store = Store::new();
    let top = checkout(&store, "r");
    put(&store, "AAAAAA", "Of r", REPO, "x");
    put(&store, "BBBBBB", "Elsewhere", "scope: repo\nsources:\n  - {harness: codex, repo: h/o/other}\n", "x");
    project(&store, &top);
    store.put("topics/mine.md", format!("---\ntitle: Mine\n{REPO}---\n\nRule.\n"));
    store.out("memory-update", &["BBBBBB", "--pin"]);
    assert!(read(&top).contains("Mine"), "{}", read(&top));
}
