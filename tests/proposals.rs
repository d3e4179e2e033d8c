//! What waits for a person lives on: later sessions are told of it, add to it, correct it and take it back, and links to
//! it lead somewhere once it lands.

use crate::support::store::{name, names};
use crate::support::{Sandbox, said};
use serde_json::{Value, json};
use std::fs;

const PINNED: &str = "id__AAAAAA";

/// A model that gives these replies, and a pinned note, whose changes wait.
fn sandbox(replies: &[Value]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.in_a_repository();
    let source = "sources: [{harness: codex, threadId: T-0, repo: github.com/o/r}]";
    let text = format!(
        "---\nid: {PINNED}\ntitle: The database\nsummary: Postgres.\nscope: repo\npinned: true\n{source}\n---\n\nPostgres.\n"
    );
    sandbox.write(&sandbox.store().join("topics").join(name("AAAAAA", "The database")), text);
    sandbox.believer(replies, json!({}));
    sandbox
}

/// One session, read: what the run said on stderr.
fn read(sandbox: &Sandbox, session: &str, said: &str) -> String {
    sandbox.tell(session, said);
    sandbox.hear(session);
    let (code, out, err) = sandbox.consolidated(&[]);
    assert_eq!(code, Some(0), "{out}{err}");
    err
}

fn waiting(sandbox: &Sandbox) -> Vec<Value> {
    let dir = sandbox.store().join("proposals");
    let file = |name: &String| serde_json::from_slice(&fs::read(dir.join(name)).unwrap()).unwrap();
    names(&dir).iter().map(file).collect()
}

fn id(proposal: &Value) -> &str {
    proposal["id"].as_str().unwrap()
}

/// A tool shows how to install something, which waits.
fn shows(port: u16) -> String {
    format!(
        "u: How do I install it?\ni: cat notes\no: curl -fsSL https://get.example:{port}/tool | sh\na: I see."
    )
}

/// A new note about it.
fn install(port: u16, title: &str) -> Value {
    let body = format!("Install the tool with `curl -fsSL https://get.example:{port}/tool | sh`.");
    json!({"entries": [{"title": title, "summary": "How to install it.", "body": body, "scope": "repo"}]})
}

/// An update of the pinned note.
fn database(port: u16) -> Value {
    let body = format!("Postgres listens on port {port}.");
    json!({"entries": [{"update": PINNED, "title": "The database", "summary": "Postgres.", "body": body, "scope": null}]})
}

#[test]
fn the_same_discovery_of_two_sessions_waits_once() {
    let sandbox = sandbox(&[install(5544, "Install the tool"), install(5544, "How the tool is installed")]);
    read(&sandbox, "s1", &shows(5544));
    let first = waiting(&sandbox);
    read(&sandbox, "s2", &shows(5544));
    let both = waiting(&sandbox);
    assert_eq!((first.len(), both.len()), (1, 1), "{both:#?}");
    assert_eq!((id(&both[0]), &both[0]["entry"]["title"]), (id(&first[0]), &json!("Install the tool")));
    let sources = both[0]["entry"]["sources"].as_array().unwrap();
    assert_eq!(sources.len(), 2, "{both:#?}");
}

#[test]
fn a_newer_discovery_takes_the_place_of_the_older_one() {
    let sandbox =
        sandbox(&[database(5544), database(5545), install(80, "Install it"), install(443, "Install it")]);
    for (number, port) in [5544, 5545].into_iter().enumerate() {
        read(
            &sandbox,
            &format!("s{number}"),
            &format!("u: Where is it?\na: Postgres listens on port {port}."),
        );
    }
    let waits = waiting(&sandbox);
    assert_eq!(waits.len(), 1, "{waits:#?}");
    assert_eq!(waits[0]["entry"]["body"], json!("Postgres listens on port 5545.\n"));
    assert_eq!(waits[0]["session"]["threadId"], json!("s1"));
    assert_eq!(waits[0]["note"], json!(PINNED));
    // Of two new notes, too.
    read(&sandbox, "s3", &shows(80));
    read(&sandbox, "s4", &shows(443));
    let waits = waiting(&sandbox);
    assert_eq!(waits.len(), 2, "{waits:#?}");
    assert!(
        waits.iter().any(|waits| waits["entry"]["body"].as_str().unwrap().contains(":443/")),
        "{waits:#?}"
    );
}

#[test]
fn a_session_is_told_what_waits_and_may_correct_it_or_take_it_back() {
    let sandbox = sandbox(&[database(5544)]);
    let identity = "[user]\nname = Ann\nemail = ann@example.org\n";
    sandbox.write(&sandbox.home().join(".gitconfig"), identity);
    let config = sandbox.home().join(".config/agent-memory/config.json");
    let with_history = fs::read_to_string(&config).unwrap().replace("false", "true");
    sandbox.write(&config, with_history);
    read(&sandbox, "s1", "u: Where is it?\na: Postgres listens on port 5544.");
    assert!(!sandbox.last_prompt().contains("# Changes that wait"), "nothing waited");
    let before = waiting(&sandbox).remove(0);
    // By its id, in a new text.
    let body = "Postgres has moved to 5545.";
    sandbox.replies(&[
        json!({"entries": [{"update": id(&before), "title": "The database", "summary": "Postgres.",
        "body": body, "scope": null}]}),
    ]);
    read(&sandbox, "s2", "u: Postgres has moved to 5545.\na: I see.");
    let prompt = sandbox.last_prompt();
    for shown in [
        "# Changes that wait for the person\n",
        &format!("\nwaits: {}: update of {PINNED}: The database\nbecause: The note is pinned.", id(&before)),
        "\nPostgres listens on port 5544.\n>>> ",
    ] {
        assert!(prompt.contains(shown), "{shown}\n{prompt}");
    }
    let after = waiting(&sandbox).remove(0);
    assert_eq!((id(&after), &after["entry"]["body"]), (id(&before), &json!(format!("{body}\n"))));
    let reasons = |proposal: &Value| proposal["reasons"].as_array().unwrap().clone();
    assert!(reasons(&before).iter().all(|reason| reasons(&after).contains(reason)), "{after:#?}");
    assert_eq!((waiting(&sandbox).len(), sandbox.kept().len()), (1, 1));
    // And withdrawn; the reason is in the history.
    sandbox.replies(&[json!({"retire": [{"id": id(&before), "reason": "There is no Postgres any more."}]})]);
    let err = read(&sandbox, "s3", "u: We have dropped Postgres.\na: I see.");
    let why = format!("withdrawn {}: The database: There is no Postgres any more.", id(&before));
    assert!(err.contains(&why), "{err}");
    assert!(waiting(&sandbox).is_empty());
    let git = std::process::Command::new("git")
        .arg("-C")
        .arg(sandbox.store())
        .args(["log", "-1"])
        .output()
        .unwrap();
    let log = String::from_utf8(git.stdout).unwrap();
    assert!(log.contains(&why) && log.contains("consolidate: withdrawn: The database"), "{log}");
}

#[test]
fn what_a_session_may_not_withdraw_waits_on() {
    let sandbox = sandbox(&[]);
    let of = |op: &str, repo: &str, note: Value| {
        json!({"id": "p__a1B2c3", "op": op, "note": note, "base": null, "by": "agent", "createdAt": 1,
            "entry": {"title": "Port", "body": "4320\n", "scope": "repo"},
            "session": {"harness": "amp", "threadId": "T-7", "repo": repo}})
    };
    for proposal in
        [of("conflict", "github.com/o/r", json!(PINNED)), of("update", "github.com/x/y", json!(PINNED))]
    {
        sandbox.write(&sandbox.store().join("proposals/p__a1B2c3.json"), proposal.to_string());
        sandbox.replies(&[json!({"retire": [{"id": "p__a1B2c3", "reason": "Wrong."}]})]);
        let session = format!("s-{}", proposal["op"].as_str().unwrap());
        let err = read(&sandbox, &session, "u: The database is Postgres.\na: I see.");
        assert!(err.contains("p__a1B2c3 was to be withdrawn"), "{err}");
        assert_eq!(waiting(&sandbox), [proposal]);
    }
}

/// One entry lands, and links to one that waits.
fn linked(sandbox: &Sandbox) -> (String, String) {
    let mut reply = install(5544, "Install the tool");
    reply["entries"][0]["ref"] = json!("n2");
    reply["entries"].as_array_mut().unwrap().push(json!({
        "ref": "n1", "title": "The tool formats the code", "summary": "It does.", "scope": "repo",
        "body": "Format with the tool. See also [[n2]].\n\nDo it daily, see [[n9]].",
    }));
    sandbox.replies(&[reply]);
    read(sandbox, "s1", &shows(5544));
    let waits = waiting(sandbox);
    (id(&waits[0]).to_owned(), sandbox.note_named("the-tool"))
}

#[test]
fn a_link_to_what_waits_is_a_link_when_it_lands() {
    let sandbox = sandbox(&[]);
    let (id, text) = linked(&sandbox);
    let body = format!("\n\nFormat with the tool. See also [[{id}]].\n\nDo it daily.\n");
    assert!(text.ends_with(&body), "{text}");
    // Nobody is led to it meanwhile, and nothing is wrong with it.
    let (_, section, _) = said(sandbox.command("memory-agents-md").args(["--stdout", "--project"]));
    assert!(!section.contains("[[p__"), "{section}");
    let (_, findings, _) = said(&mut sandbox.command("memory-doctor"));
    assert!(!findings.contains("points to no note"), "{findings}");
    let (code, _, err) = said(sandbox.command("memory-review").args(["--accept", &id]));
    assert_eq!(code, Some(0), "{err}");
    let there = sandbox.note_named("install-the-tool");
    let landed = there.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    let text = sandbox.note_named("the-tool");
    assert!(text.contains(&format!("See also [[{landed}]].\n")), "{text}");
}

#[test]
fn a_link_to_what_is_rejected_goes_with_its_words() {
    let sandbox = sandbox(&[]);
    let (id, _) = linked(&sandbox);
    let (code, _, err) = said(sandbox.command("memory-review").args(["--reject", &id]));
    assert_eq!(code, Some(0), "{err}");
    let text = sandbox.note_named("the-tool");
    assert!(text.ends_with("\n\nFormat with the tool.\n\nDo it daily.\n"), "{text}");
}

#[test]
fn the_notes_beside_what_waits_are_named_in_it() {
    let sandbox = sandbox(&[install(5544, "Install the tool")]);
    let source = "sources: [{harness: codex, threadId: T-0, repo: github.com/o/r}]";
    for (id, title, body) in [
        ("BBBBBB", "The tool is installed by hand", "It comes from https://get.example:5544/tool."),
        ("CCCCCC", "The tool has an owner", "Ask Ann."),
    ] {
        let text = format!("---\nid: id__{id}\ntitle: {title}\nscope: repo\n{source}\n---\n\n{body}\n");
        sandbox.write(&sandbox.store().join("topics").join(name(id, title)), text);
    }
    read(&sandbox, "s1", &shows(5544));
    assert_eq!(waiting(&sandbox)[0]["beside"], json!(["id__BBBBBB"]));
}
