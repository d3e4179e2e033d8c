//! Corrections land in the note that was wrong, and the old text can still be found. In a note that a person has taken for
//! their own they land in the person's own words, and wait in any others.

use crate::support::Sandbox;
use crate::support::processes::at_once;
use crate::support::queue::out;
use crate::support::store::{name, names, value};
use serde_json::{Value, json};
use std::fs;

struct Correction {
    name: &'static str,
    title: &'static str,
    body: &'static str,
    /// What the person says, which is also the new text.
    says: &'static str,
    new_title: &'static str,
    gone: &'static [&'static str],
    /// Words by which the old text and the new one are known.
    old: &'static str,
    new: &'static str,
}

#[rustfmt::skip]
const CORRECTIONS: &[Correction] = &[
    Correction { name: "a port", title: "The dev server listens on 4310", body: "The dev server listens on 4310.",
        says: "The dev server listens on 4320 now.", new_title: "The dev server listens on 4320 now", gone: &["4310"], old: "4310", new: "4320" },
    Correction { name: "a version", title: "CI uses Postgres 15.4", body: "CI uses Postgres 15.4 from the image postgres:15.4.",
        says: "CI uses Postgres 17.1 now.", new_title: "CI uses Postgres 17.1 now", gone: &["15.4"], old: "15.4", new: "17.1" },
    Correction { name: "a command", title: "Build with make dist", body: "Build the release with `make dist`.",
        says: "Build the release with `just release`.", new_title: "Build the release with `just release`", gone: &["make dist"], old: "make dist", new: "just release" },
    Correction { name: "an address", title: "Docs are at old.docs.example/guide", body: "The docs are at https://old.docs.example/guide.",
        says: "The docs are at https://new.docs.example/manual.", new_title: "The docs are at https://new.docs.example/manual", gone: &["https://old.docs.example/guide", "old.docs.example/guide"], old: "old.docs.example", new: "new.docs.example" },
    Correction { name: "a path", title: "Reports go to /srv/reports", body: "Reports go to /srv/reports each night.",
        says: "Reports go to /data/out each night.", new_title: "Reports go to /data/out each night", gone: &["/srv/reports"], old: "/srv/reports", new: "/data/out" },
    Correction { name: "a number", title: "Uploads are limited to 20 MB", body: "Uploads are limited to 20 MB.",
        says: "Uploads are limited to 50 MB.", new_title: "Uploads are limited to 50 MB", gone: &["20"], old: "20 MB", new: "50 MB" },
    Correction { name: "a flag", title: "Test with --runInBand", body: "Run the tests with --runInBand.",
        says: "Run the tests with --maxWorkers.", new_title: "Run the tests with --maxWorkers", gone: &["--runInBand"], old: "--runInBand", new: "--maxWorkers" },
    Correction { name: "a name", title: "Tom owns the importer", body: "Tom owns the importer.",
        says: "Mireille owns the importer.", new_title: "Mireille owns the importer", gone: &["Tom"], old: "Tom", new: "Mireille" },
    Correction { name: "a date", title: "The freeze ends on 2026-03-20", body: "The code freeze ends on 2026-03-20.",
        says: "The code freeze ends on 2026-04-02.", new_title: "The code freeze ends on 2026-04-02", gone: &["2026-03-20"], old: "2026-03-20", new: "2026-04-02" },
    Correction { name: "a file format", title: "Exports are ISO-8859-1", body: "Exports are CSV in ISO-8859-1.",
        says: "Exports are CSV in UTF-8.", new_title: "Exports are CSV in UTF-8", gone: &["ISO-8859-1"], old: "ISO-8859-1", new: "UTF-8" },
    Correction { name: "a rule turned round", title: "Always squash before merging", body: "Always squash the commits before merging.",
        says: "Never squash the commits before merging.", new_title: "Never squash the commits before merging", gone: &[], old: "Always squash", new: "Never squash" },
    Correction { name: "a setting", title: "Set LOG_LEVEL=debug on the local machine", body: "Set LOG_LEVEL=debug on the local machine.",
        says: "Set LOG_FORMAT=pretty on the local machine.", new_title: "Set LOG_FORMAT=pretty on the local machine", gone: &["LOG_LEVEL=debug"], old: "LOG_LEVEL", new: "LOG_FORMAT" },
    Correction { name: "German", title: "Die Datenbank liegt auf db1.intern.example", body: "Die Datenbank liegt auf db1.intern.example, Port 5432.",
        says: "Die Datenbank liegt auf db2.intern.example, Port 5433.", new_title: "Die Datenbank liegt auf db2.intern.example, Port 5433", gone: &["db1.intern.example", "5432"], old: "db1.intern.example", new: "db2.intern.example" },
    Correction { name: "Spanish", title: "El servicio usa el puerto 3000", body: "El servicio usa el puerto 3000.",
        says: "El servicio usa el puerto 3001.", new_title: "El servicio usa el puerto 3001", gone: &["3000"], old: "3000", new: "3001" },
];

const ID: &str = "id__CoRRec";
const SESSION: &str = "scope: repo\nsources:\n  - {harness: codex, threadId: T-0, repo: github.com/o/r}\n";

fn note(sandbox: &Sandbox, correction: &Correction, more: &str) {
    let Correction { title, body, .. } = correction;
    let more = if more.contains("sources:") { more.to_owned() } else { format!("{more}{SESSION}") };
    let text = format!(
        "---\nid: {ID}\ntitle: {}\nsummary: {}\ntags: [topic__dev]\n{more}---\n\n{body}\n",
        json!(title),
        json!(body),
    );
    sandbox.write(&sandbox.store().join("topics").join(name("CoRRec", "note")), text);
}

/// A session in which the person corrects the note, and a model that does as the prompt asks.
fn corrected(correction: &Correction, more: &str, reply: &Value) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.in_a_repository();
    note(&sandbox, correction, more);
    sandbox.believer(std::slice::from_ref(reply), json!({}));
    sandbox.tell(
        "s1",
        &format!(
            "u: What do we know of this: {}\na: I look it up.\nu: {}\na: Understood.",
            correction.title, correction.says
        ),
    );
    sandbox.hear("s1");
    let (code, _, err) = sandbox.consolidated(&[]);
    assert_eq!(code, Some(0), "{}: {err}", correction.name);
    sandbox
}

/// The update that the prompt asks for.
fn update(correction: &Correction) -> Value {
    let Correction { says, new_title, gone, .. } = correction;
    json!({"entries": [{"update": ID, "title": new_title, "summary": says, "body": says, "gone": gone, "scope": null}]})
}

fn proposals(sandbox: &Sandbox) -> Vec<String> {
    names(&sandbox.store().join("proposals"))
}

/// What is wrong, if the correction has not landed in the one note, or the old text cannot be found.
fn unlanded(sandbox: &Sandbox, correction: &Correction) -> Option<String> {
    let Correction { name, old, new, .. } = correction;
    let texts = sandbox.kept();
    let [text] = &texts[..] else { return Some(format!("{name}: not one note: {texts:#?}")) };
    let archived = sandbox
        .command("memory-list")
        .args(["--archived", "--query", old, "--json"])
        .output()
        .unwrap()
        .stdout;
    let archived = String::from_utf8(archived).unwrap();
    let found = archived.lines().next().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let successor = found.as_ref().and_then(|found| found["supersededBy"].as_str().map(str::to_owned));
    let is_right = value(text, "id") == Some(ID)
        && text.contains(new)
        && !text.contains(old)
        && proposals(sandbox).is_empty()
        && successor.as_deref() == Some(ID);
    (!is_right).then(|| {
        let reasons = proposals(sandbox)
            .into_iter()
            .map(|file| fs::read_to_string(sandbox.store().join("proposals").join(file)).unwrap());
        format!("{name}: {text}\narchived: {archived}\nwaits: {}", reasons.collect::<String>())
    })
}

#[test]
fn a_correction_of_a_sessions_note_lands_and_the_old_text_is_found() {
    assert!(CORRECTIONS.len() >= 12);
    for some in CORRECTIONS.chunks(4) {
        at_once(some, |correction| {
            let sandbox = corrected(correction, "", &update(correction));
            assert_eq!(unlanded(&sandbox, correction), None);
        });
    }
}

#[test]
fn details_that_still_hold_may_stay() {
    let correction = &CORRECTIONS[0];
    let reply = json!({"entries": [{
        "update": ID, "title": "Dev server on 4320", "summary": "It listens on 4320.", "scope": null, "gone": ["4310"],
        "body": "The dev server listens on 4320; before, it was another port. Start it with `just serve`.",
    }]});
    let sandbox = Sandbox::new();
    sandbox.in_a_repository();
    let known = Correction {
        body: "The dev server listens on 4310.\n\n- Start it with `just serve`.\n- It needs Node 20.",
        ..*correction
    };
    note(&sandbox, &known, "");
    sandbox.believer(&[reply], json!({}));
    sandbox.tell("s1", "u: the dev server is on 4320 now\na: ok");
    sandbox.hear("s1");
    let (code, _, err) = sandbox.consolidated(&[]);
    // Node 20 was lost; the model is asked once more, and calls it gone.
    assert_eq!((code, sandbox.prompts().len()), (Some(0), 2), "{err}");
    assert!(sandbox.last_prompt().contains("loses 20"), "{}", sandbox.last_prompt());
    assert!(sandbox.kept()[0].contains("4320") && proposals(&sandbox).is_empty());
}

#[test]
fn a_loss_that_stays_waits_and_no_rival_note_stands_beside_the_wrong_one() {
    let correction = &CORRECTIONS[0];
    let sandbox = Sandbox::new();
    sandbox.in_a_repository();
    note(&sandbox, correction, "");
    sandbox.librarian(&format!(
        "say([note('Dev server', update='{ID}', body='The dev server listens on 4320.')])"
    ));
    sandbox.tell("s1", "u: The dev server listens on 4320 now.\na: ok");
    sandbox.hear("s1");
    let (code, said, err) = sandbox.consolidated(&[]);
    assert_eq!((code, sandbox.prompts().len()), (Some(0), 2), "{err}");
    assert!(said.contains("1 to review"), "{said}");
    assert_eq!((sandbox.kept().len(), proposals(&sandbox).len()), (1, 1));
    assert!(sandbox.kept()[0].contains("4310"));
    let id = proposals(&sandbox)[0].trim_end_matches(".json").to_owned();
    out(sandbox.command("memory-review").args(["--accept", &id]));
    assert!(sandbox.kept()[0].contains("4320"));
}

#[test]
fn what_no_longer_exists_is_retired() {
    for (title, says) in [
        ("The nightly job mails reports", "There is no nightly job any more."),
        ("Der alte Importer läuft montags", "Den alten Importer gibt es nicht mehr."),
    ] {
        let correction = Correction {
            name: "no longer exists",
            title,
            body: title,
            says,
            new_title: "",
            gone: &[],
            old: title,
            new: "",
        };
        let reply = json!({"retire": [{"id": ID, "reason": says}]});
        let sandbox = corrected(&correction, "", &reply);
        assert!(sandbox.kept().is_empty() && proposals(&sandbox).is_empty());
        let found = out(sandbox.command("memory-list").args(["--archived", "--query", title]));
        assert!(found.contains(ID), "{found}");
        // A pinned one waits, and goes when the person says so.
        let sandbox = corrected(&correction, "pinned: true\n", &reply);
        assert_eq!((sandbox.kept().len(), proposals(&sandbox).len()), (1, 1));
        accept_all(&sandbox);
        assert!(sandbox.kept().is_empty());
    }
}

#[test]
fn a_hand_written_note_takes_the_persons_own_sentence() {
    let hand = "scope: repo\nsources:\n  - {harness: manual, repo: github.com/o/r}\n";
    for some in CORRECTIONS.chunks(4) {
        at_once(some, |correction| {
            let sandbox = corrected(correction, hand, &update(correction));
            assert_eq!(unlanded(&sandbox, correction), None);
        });
    }
    // In other words it waits.
    let correction = &CORRECTIONS[0];
    let reply = json!({"entries": [{"update": ID, "title": "Port 4320", "summary": "Port 4320.", "body": "The port of the dev server is 4320.", "gone": ["4310"], "scope": null}]});
    let sandbox = corrected(correction, hand, &reply);
    assert_eq!(proposals(&sandbox).len(), 1);
    assert!(sandbox.kept()[0].contains("4310") && !sandbox.kept()[0].contains("4320"));
}

/// Accepts everything that waits, as a person does.
fn accept_all(sandbox: &Sandbox) {
    let listed = out(sandbox.command("memory-review").arg("--json"));
    out(sandbox.command("memory-review").args(["--accept", "-"]).write_stdin(listed));
}

#[test]
fn of_a_kept_note_it_waits_and_lands_when_the_person_accepts_it() {
    let kept = [
        format!("pinned: true\n{SESSION}"),
        SESSION.replace("scope: repo", "scope: global"),
        format!("written: \"0000000000000000\"\n{SESSION}"),
        format!("{SESSION}  - {{harness: review, at: 2026-02-01T00:00:00Z}}\n"),
    ];
    let rows: Vec<(&Correction, &String)> = CORRECTIONS.iter().zip(kept.iter().cycle()).collect();
    for some in rows.chunks(4) {
        at_once(some, |(correction, more)| {
            // In words of the model's: the person's own would land in a note that is edited by hand.
            let mut reply = update(correction);
            reply["entries"][0]["summary"] = json!(format!("Known: {}", correction.says));
            let sandbox = corrected(correction, more, &reply);
            let name = correction.name;
            let text = sandbox.kept().pop().unwrap();
            assert!(text.contains(correction.old) && !text.contains(correction.new), "{name}: {text}");
            assert_eq!((sandbox.kept().len(), proposals(&sandbox).len()), (1, 1), "{name}");
            let listed = out(&mut sandbox.command("memory-list"));
            assert!(listed.contains("waits"), "{name}: {listed}");
            let shown =
                out(sandbox.command("memory-agents-md").args(["--stdout", "--repo", "github.com/o/r"]));
            assert!(!shown.contains(correction.new), "{name}: {shown}");
            accept_all(&sandbox);
            assert_eq!(unlanded(&sandbox, correction), None);
        });
    }
}
