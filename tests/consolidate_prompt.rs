//! What a prompt of `memory-consolidate` shows: a session that is read in several runs as one, of tools what can teach
//! something, and every note that may have to be corrected.

use crate::support::Sandbox;
use crate::support::llm::NOTE_EACH;
use crate::support::store;
use serde_json::{Value, json};
use std::fmt::Write;

/// Runs once; the prompt that was sent.
fn prompt_of(sandbox: &Sandbox) -> String {
    let (code, _, err) = sandbox.consolidated(&[]);
    assert_eq!(code, Some(0), "{err}");
    sandbox.last_prompt()
}

#[test]
fn a_session_that_is_read_in_six_runs_is_shown_as_one() {
    let sandbox = Sandbox::new();
    sandbox.librarian(
        "made = re.findall(r'^<<< note (id__\\S+) ', prompt, re.M)\n\
         say([note('Five retries', update=made[0] if made else None, body='Run %d: five retries.' % number,\n\
         gone=[str(n) for n in range(6)])])",
    );
    let mut said = String::new();
    for run in 0..6 {
        let long = "And there is more to it than that. ".repeat(100);
        let _ = write!(
            said,
            "u: Person {run} says so.\ni: ls {run}\no: printed {run}\na: Agent {run} begins. {long} Agent {run} ends.\n"
        );
        sandbox.tell("s1", &said);
        sandbox.hear("s1");
        let prompt = prompt_of(&sandbox);
        let sessions = &prompt[prompt.find("\n# Sessions\n").unwrap()..];
        let (earlier, new) = sessions.split_once("\n=== new turns ").unwrap_or(("", sessions));
        for before in 0..run {
            for part in ["Person # says so.", "Agent # begins. [… ", "] Agent # ends."] {
                assert!(earlier.contains(&part.replace('#', &before.to_string())), "{run} {part} {earlier}");
            }
            assert!(!new.contains(&format!("Person {before}")) && !earlier.contains("printed"), "{sessions}");
        }
        assert!(new.contains(&format!("Person {run} says so.")) && new.contains(&format!("printed {run}")));
        // Numbers run through: of three turns each run repeats two.
        assert!(new.contains(&format!("[t{} user ", 2 * run + 1)), "{run} {new}");
        // The note that the session made is shown whole.
        if run > 0 {
            assert!(prompt.contains(&format!("\nRun {}: five retries.", run - 1)), "{prompt}");
        }
    }
    assert_eq!(sandbox.kept().len(), 1);
    assert!(sandbox.kept()[0].contains("Run 5: five retries."), "{}", sandbox.kept()[0]);
}

#[test]
fn an_earlier_turn_may_be_cited() {
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH);
    sandbox.tell("s1", "u: Use port 5544.\na: Done.");
    sandbox.hear("s1");
    prompt_of(&sandbox);
    sandbox.librarian(
        "say([note('The port', scope='global', evidence=[{'turn': 't1', 'quote': 'Use port 5544.'}, {'turn': 't3', 'quote': 'And TLS.'},\n\
         {'turn': 't3', 'quote': 'Use port 5544.'}])])",
    );
    sandbox.tell("s1", "u: Use port 5544.\na: Done.\nu: And TLS.");
    sandbox.hear("s1");
    let (code, _, err) = sandbox.consolidated(&[]);
    assert_eq!((code, err.matches("does not stand in turn t3").count()), (Some(0), 1), "{err}");
    assert_eq!(err.matches("does not stand").count(), 1, "{err}");
}

/// A session of one command and what it printed.
fn tool(sandbox: &Sandbox, session: &str, calls: &[(&str, &str)]) -> String {
    let mut lines = format!(
        "{}\n",
        json!({"type": "user", "uuid": "1", "sessionId": session,
        "message": {"role": "user", "content": "Look."}})
    );
    for (n, (command, output)) in calls.iter().enumerate() {
        let call = json!([{"type": "tool_use", "id": format!("t{n}"), "name": "Bash", "input": {"command": command}}]);
        let result = json!([{"type": "tool_result", "tool_use_id": format!("t{n}"), "content": output}]);
        for (role, content) in [("assistant", call), ("user", result)] {
            let record: Value = json!({"type": role, "uuid": format!("{role}{n}"), "sessionId": session,
                "message": {"role": role, "content": content}});
            let _ = writeln!(lines, "{record}");
        }
    }
    sandbox.write(&sandbox.transcript(session), lines);
    sandbox.hear(session);
    prompt_of(sandbox)
}

/// A file of 7 kB, with `line` in its middle.
fn file(line: &str) -> String {
    let name = |n: usize| ["alpha", "beta", "gamma", "delta"][n % 4];
    let lines = |from: usize| -> String {
        (from..from + 150).map(|n| format!("{}-{} is set here {n}\n", name(n), name(n / 4))).collect()
    };
    format!("{}{line}\n{}", lines(0), lines(150))
}

#[test]
fn of_a_file_the_middle_is_shown_where_it_changed_or_a_note_knows_of_it() {
    let sandbox = Sandbox::new();
    sandbox.librarian("say([], [{'source': id, 'reason': 'nothing'} for id in ids])");
    let (old, new) = (file("queue_ttl = 900"), file("queue_ttl = 1200"));
    assert!((7000..9000).contains(&old.len()));
    let prompt = tool(&sandbox, "s1", &[("cat a", &old), ("cat a", &new)]);
    assert!(!prompt.contains("queue_ttl = 900") && prompt.contains("\n| queue_ttl = 1200\n"), "{prompt}");
    // Whole lines, and marks that say what is missing.
    let whole = |line: &str| old.contains(&format!("{line}\n")) || new.contains(&format!("{line}\n"));
    let shown: Vec<&str> = prompt.lines().filter_map(|line| line.strip_prefix("| ")).collect();
    let odd: Vec<&&str> = shown.iter().filter(|line| !whole(line) && !line.starts_with("[… ")).collect();
    assert_eq!(odd, [&"[Bash] command: cat a", &"=>", &"[Bash] command: cat a", &"=>"]);
    assert!(prompt.contains("\nleft out: "), "{prompt}");
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH.replace("id)", "id, body='The queue_ttl is 900.')").as_str());
    tool(&sandbox, "s1", &[("ls", "x")]);
    let prompt = tool(&sandbox, "s2", &[("cat a", &new)]);
    assert!(prompt.contains("\n| queue_ttl = 1200\n"), "{prompt}");
}

#[test]
fn tests_that_pass_are_counted_and_control_characters_left_out() {
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH);
    let passed: String =
        (0..200).map(|n| format!("tests/test_{n}.py::test_it \u{1b}[32mPASSED\u{1b}[0m\n")).collect();
    let output =
        format!("collected 201 items\n{passed}tests/x.py::test_port FAILED\nE   5432\0 != 5544\n1 failed");
    let prompt = tool(&sandbox, "s1", &[("pytest", &output)]);
    assert!(prompt.contains("| [… 200 lines like \"tests/test_0.py::test_it PASSED\"]\n"), "{prompt}");
    assert!(prompt.contains("| tests/x.py::test_port FAILED\n| E   5432 != 5544\n| 1 failed\n"), "{prompt}");
    assert!(!prompt.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
}

/// Writes a note of the sandbox's repository into the store.
fn note(sandbox: &Sandbox, title: &str, body: &str) {
    sandbox.in_a_repository();
    let args = ["--title", title, "--body", body, "--scope", "repo", "--direct"];
    let (code, _, err) = crate::support::said(&mut sandbox.capture(&args));
    assert_eq!(code, Some(0), "{err}");
}

#[test]
fn a_correction_in_another_language_meets_its_note() {
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH);
    note(&sandbox, "Never deploy on a Friday", "The weekend has no one on call.");
    sandbox.heard("s1", "Ab jetzt darfst du auch freitags ausliefern.");
    let prompt = prompt_of(&sandbox);
    let notes = &prompt[..prompt.find("\n# Sessions\n").unwrap()];
    assert!(notes.contains("title: Never deploy on a Friday\n"), "{notes}");
    assert!(notes.contains("The weekend has no one on call."), "{notes}");
}

#[test]
fn what_has_no_room_as_a_whole_is_listed() {
    let sandbox = Sandbox::new();
    sandbox.llm(&sandbox.script(NOTE_EACH), json!({"maxNoteBytes": 2000}));
    note(&sandbox, "Zero", "Zero holds.");
    let topics = sandbox.store().join("topics");
    let path = std::fs::read_dir(&topics).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&path).unwrap();
    for n in 1..=450 {
        let id =
            format!("id__A{}{:04}", char::from(b"ABCDEFGHJKLMNPQRSTUV"[n % 20]), n + 1111).replace('0', "x");
        let line = |key: &str| text.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
        let own = text
            .replace(&line("id: "), &format!("id: {id}"))
            .replace(&line("title: "), &format!("title: Note number {n}"))
            .replace("Zero holds.", &"Some text of it. ".repeat(10));
        sandbox.write(&topics.join(format!("note-number-{n} -- {id}.md")), own);
    }
    sandbox.heard("s1", "Ganz etwas anderes.");
    let prompt = prompt_of(&sandbox);
    let listed = prompt.lines().filter(|line| line.starts_with("[[id__")).count();
    let whole = prompt.matches("\n<<< note ").count();
    assert_eq!((listed, whole > 5), (400, true), "{whole} {}", &prompt[..prompt.len().min(9000)]);
}

#[test]
fn a_folder_without_git_keeps_its_notes_to_itself() {
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH);
    sandbox.tell("s1", "u: Plan the trip by train.\na: Done.");
    let (trip, other) = (sandbox.home().join("trip"), sandbox.home().join("other"));
    for dir in [&trip, &other] {
        std::fs::create_dir_all(dir).unwrap();
    }
    let hook = json!({"session_id": "s1", "transcript_path": sandbox.transcript("s1"), "cwd": trip,
        "hook_event_name": "SessionEnd"});
    let mut capture = sandbox.capture(&["--harness", "claude-code"]);
    assert_eq!(crate::support::said(capture.write_stdin(hook.to_string())).0, Some(0));
    prompt_of(&sandbox);
    let name = format!("repo: \"local:{}", trip.canonicalize().unwrap().display());
    assert!(
        sandbox.kept()[0].contains(&name) && sandbox.kept()[0].contains("scope: repo"),
        "{:?}",
        sandbox.kept()
    );
    let waiting = sandbox.store().join("proposals");
    assert!(!waiting.exists() || std::fs::read_dir(waiting).unwrap().next().is_none());
    for (program, args) in [("memory-list", &["--repo", "."][..]), ("memory-recall", &[])] {
        for (dir, is_shown) in [(&trip, true), (&other, false)] {
            let (code, out, err) = crate::support::said(sandbox.command(program).args(args).current_dir(dir));
            assert_eq!((code, out.contains("id__")), (Some(0), is_shown), "{program} {out}{err}");
        }
    }
}

#[test]
fn a_secret_among_the_tags_of_a_note_is_not_shown() {
    let sandbox = Sandbox::new();
    let secret = format!("ghp_{}", "aB3dE6gH9j".repeat(4).get(..36).unwrap());
    let more = format!("tags: [topic__net, {secret}]\nscope: global\n");
    let file = format!("topics/{}", store::name("a1B2c3", "Ports"));
    sandbox.write(&sandbox.store().join(file), store::note("a1B2c3", "Ports", &more));
    sandbox.librarian(NOTE_EACH);
    sandbox.heard("s1", "Which port?");
    let prompt = prompt_of(&sandbox);
    assert!(prompt.contains("title: Ports") && prompt.contains("Tags in use: topic__net"), "{prompt}");
    assert!(!prompt.contains(&secret), "{prompt}");
}
