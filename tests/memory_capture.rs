//! `memory-capture`: its forms, what it refuses, and that an acknowledged entry is in the queue.

use crate::support::processes::Running;
use crate::support::queue::{BOTH, entry_at, hook, out};
use crate::support::store::names;
use crate::support::terminal::Terminal;
use crate::support::{Said, Sandbox, mode, present, said};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;

#[test]
fn a_note_becomes_one_file_and_its_path_is_printed() {
    let sandbox = Sandbox::new();
    let path = out(sandbox.capture(&BOTH).args(["--tags", "XState, area__ui,,xstate"]));
    let expected = json!({
        "version": 1, "timestamp": "2026-02-28T15:04:05.000Z", "harness": "manual",
        "retrieval": {
            "method": "inline", "title": "Guards are pure", "body": "Put I/O in actors.",
            "tags": ["topic__xstate", "area__ui"], "scope": "global", "threadId": null,
        },
        "context": {"cwd": sandbox.work(), "repo": null},
    });
    assert_eq!(entry_at(&path), expected);
    let name = Path::new(path.trim_end()).file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("2026-02-28T15-04-05.000Z_manual_") && name.len() == 45, "{name}");
    assert_eq!(sandbox.queued(), [name]);
    assert_eq!(
        names(&sandbox.store()),
        [".agent-memory", ".agent-memory-version", ".gitignore", "archive", "inbox", "topics"]
    );
    assert_eq!((mode(&sandbox.store()), mode(Path::new(path.trim_end()))), (0o700, 0o600));
}

#[test]
fn no_secret_waits_in_the_queue() {
    let sandbox = Sandbox::new();
    let token = format!("ghp_{}", "aB3dE6gH9j".repeat(4).get(..36).unwrap());
    let config = format!("[remote \"origin\"]\n\turl = https://git.example.com/{token}/things.git\n");
    sandbox.file(".git/config", config);
    sandbox.file(".git/HEAD", "ref: refs/heads/main\n");
    let (title, body) = (format!("Use {token}"), format!("The password is Tiger2019! and {token}"));
    let path = out(&mut sandbox.capture(&["--title", &title, "--body", &body]));
    let entry = fs::read_to_string(path.trim_end()).unwrap();
    assert!(!entry.contains(&token) && !entry.contains("Tiger2019"), "{entry}");
    let entry = entry_at(&path);
    assert_eq!(entry["retrieval"]["title"], "Use [redacted:github-token]");
    assert_eq!(entry["context"]["repo"], "git.example.com/[redacted:github-token]/things");
    // That of a session is not the user's text, but its repository has an address, too.
    let path = out(&mut sandbox.capture(&["--harness", "amp", "--thread-id", "T-1"]));
    assert!(!fs::read_to_string(path.trim_end()).unwrap().contains(&token));
}

#[test]
fn a_store_is_private_whatever_the_umask_and_whoever_made_it() {
    let sandbox = Sandbox::new();
    for dir in ["", "inbox", "topics", "archive", ".agent-memory"] {
        fs::create_dir_all(sandbox.store().join(dir)).unwrap();
        crate::support::set_mode(&sandbox.store().join(dir), 0o755);
    }
    out(&mut sandbox.capture(&BOTH));
    for dir in ["inbox", "topics", "archive", ".agent-memory"] {
        assert_eq!(mode(&sandbox.store().join(dir)), 0o700, "{dir}");
    }
    assert_eq!(mode(&sandbox.store()), 0o755, "the user's own choice");
}

#[test]
fn json_is_the_entry_with_its_id_and_path() {
    let sandbox = Sandbox::new();
    let args = ["--harness", "amp", "--thread-id", "T-1", "--json"];
    let first: Value = serde_json::from_str(&out(&mut sandbox.capture(&args))).unwrap();
    let name = &sandbox.queued()[0];
    let path = sandbox.store().join("inbox").join(name);
    assert_eq!((&first["id"], &first["path"]), (&json!(name.strip_suffix(".json").unwrap()), &json!(path)));
    let mut entry = entry_at(path.to_str().unwrap());
    assert_eq!(entry["retrieval"], json!({"method": "amp-thread", "threadId": "T-1"}));
    entry["id"] = first["id"].clone();
    entry["path"] = first["path"].clone();
    assert_eq!(first, entry);
    // For a session that waits, the waiting entry is printed.
    let again = out(sandbox.capture(&args).env("AXE_NOW", "2026-03-01T00:00:00Z"));
    assert_eq!(serde_json::from_str::<Value>(&again).unwrap(), first);
    assert_eq!(sandbox.queued().len(), 1);
}

#[test]
fn a_session_that_waits_is_not_queued_twice() {
    let sandbox = Sandbox::new();
    for (harness, method) in [("amp", "amp-thread"), ("opencode", "opencode-session")] {
        let args = ["--harness", harness, "--thread-id", "ses_1"];
        let path = out(&mut sandbox.capture(&args));
        assert_eq!(entry_at(&path)["retrieval"], json!({"method": method, "threadId": "ses_1"}));
        assert_eq!(out(&mut sandbox.capture(&args)), path);
        fs::remove_file(path.trim_end()).unwrap();
        assert_ne!(out(&mut sandbox.capture(&args)), path, "claimed, so it is queued again");
    }
}

#[test]
fn sessions_captured_at_the_same_time_are_all_queued() {
    let sandbox = Sandbox::new();
    let args = ["--harness", "amp", "--thread-id", "T-1"];
    let paths: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| out(&mut sandbox.capture(&args)))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for path in &paths {
        assert_eq!(entry_at(path)["retrieval"]["threadId"], "T-1");
    }
    // Without a lock several entries may be written at once; afterwards there are no more.
    let there = sandbox.queued();
    assert!((1..=4).contains(&there.len()), "{there:?}");
    assert!(paths.contains(&out(&mut sandbox.capture(&args))));
    assert_eq!(sandbox.queued(), there);
}

#[test]
fn a_body_on_stdin_may_have_any_bytes() {
    let warning = "Warning: stdin is not valid UTF-8; the invalid bytes became U+FFFD\n";
    for (piped, body, err) in [
        (&b"one\r\ntwo"[..], "one\r\ntwo", ""),
        (b"caf\xe9", "caf\u{fffd}", warning),
        (b"nul\0 \x1b[31m", "nul\0 \u{1b}[31m", ""),
    ] {
        let sandbox = Sandbox::new();
        let mut capture = sandbox.capture(&["--title", "t", "--body", "-"]);
        let (code, path, said) = said(capture.write_stdin(piped));
        assert_eq!((code, said.as_str()), (Some(0), err));
        assert_eq!(entry_at(&path)["retrieval"]["body"], body);
    }
}

#[test]
fn a_body_can_be_typed_on_a_terminal_and_a_hook_cannot() {
    let sandbox = Sandbox::new();
    let mut terminal = Terminal::open();
    terminal.keyboard.write_all(b"typed here\n\x04").unwrap();
    let mut note = sandbox.std_command("memory-capture");
    note.args(["--title", "t", "--body", "-"]).stdin(terminal.stdio());
    let output = note.output().unwrap();
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    assert_eq!(entry_at(&output.out())["retrieval"]["body"], "typed here\n");
    let mut hook = sandbox.std_command("memory-capture");
    let output = hook.args(["--harness", "codex"]).stdin(terminal.stdio()).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(1), ""));
    assert!(output.err().starts_with("memory-capture: stdin is a terminal; "), "{}", output.err());
}

#[test]
fn a_note_can_name_its_harness_and_belong_to_a_repository() {
    let sandbox = Sandbox::new();
    let args = ["--harness", "codex", "--thread-id", "01a1-x", "--scope", "repo"];
    // A folder without git is a place of its own.
    let folder = format!("local:{}", sandbox.work().canonicalize().unwrap().display());
    assert_eq!(entry_at(&out(sandbox.capture(&BOTH).args(args)))["context"]["repo"], json!(folder));
    sandbox.file(".git/HEAD", "ref: refs/heads/main\n");
    sandbox.file(".git/config", "[remote \"origin\"]\n\turl = https://me:s3cret@GitHub.com/o/r.git\n");
    let path = out(sandbox.capture(&BOTH).args(args));
    assert!(!fs::read_to_string(path.trim_end()).unwrap().contains("s3cret"));
    let entry = entry_at(&path);
    assert_eq!((&entry["harness"], &entry["context"]["repo"]), (&json!("codex"), &json!("github.com/o/r")));
    assert_eq!(
        (&entry["retrieval"]["threadId"], &entry["retrieval"]["scope"]),
        (&json!("01a1-x"), &json!("repo"))
    );
}

#[test]
fn direct_writes_a_note_without_the_queue() {
    let sandbox = Sandbox::new();
    let path = out(sandbox.capture(&BOTH).arg("--direct"));
    assert!(path.starts_with(sandbox.store().join("topics").to_str().unwrap()), "{path}");
    let text = fs::read_to_string(path.trim_end()).unwrap();
    assert!(text.contains("status: captured") && text.ends_with("\n\nPut I/O in actors.\n"), "{text}");
    assert!(sandbox.queued().is_empty() && !sandbox.store().join(".git").exists());

    let sandbox = Sandbox::new();
    let json = out(sandbox.capture(&BOTH).args(["--direct", "--json", "--thread-id", "T-1"]));
    let meta: Value = serde_json::from_str(&json).unwrap();
    assert!(Path::new(meta["path"].as_str().unwrap()).is_file(), "{json}");
    assert_eq!(
        (&meta["title"], &meta["summary"], &meta["scope"]),
        (&json!("Guards are pure"), &json!(""), &json!("global"))
    );
    assert_eq!(
        (&meta["sources"][0]["harness"], &meta["sources"][0]["threadId"]),
        (&json!("manual"), &json!("T-1"))
    );
    let stamp = json!("2026-02-28T15:04:05Z");
    assert_eq!((&meta["by"], &meta["sources"][0]["at"]), (&json!("person"), &stamp));
}

#[test]
fn an_entry_is_queued_as_it_is_and_its_faults_are_one_line() {
    let sandbox = Sandbox::new();
    let entry = json!({
        "version": 1, "timestamp": "2026-02-13T14:30:05.123Z", "harness": "gemini",
        "retrieval": {"method": "file", "path": "/tmp/x y.md"}, "context": {"cwd": null, "repo": null},
    });
    let path = out(sandbox.capture(&["--entry"]).write_stdin(entry.to_string()));
    assert_eq!(entry_at(&path), entry);
    assert!(path.contains("/2026-02-13T14-30-05.123Z_gemini_"), "{path}");
    let two = entry.to_string().replace("\"version\":1", "\"version\":2");
    for (piped, message) in [
        ("", "stdin is empty; a queue entry is expected there"),
        (two.as_str(), "not a queue entry: version: 2 is unknown; this program knows version 1\n"),
        (
            "{\"version\":1,\"harness\":\"X\",\"retrieval\":{\"method\":\"file\",\"path\":\"x\"},\"context\":{}}",
            "not a queue entry: timestamp: is missing; harness: \"X\" is not the name of a program: a-z, 0-9 and - only, \
             a letter first, at most 32 bytes; retrieval.path: \"x\" is not an absolute path\n",
        ),
    ] {
        let (code, out, err) = said(sandbox.capture(&["--entry"]).write_stdin(piped));
        assert_eq!((code, out.as_str(), err.lines().count()), (Some(1), "", 1), "{err}");
        assert!(err.starts_with(&format!("memory-capture: {message}")), "{err}");
    }
    assert_eq!(sandbox.queued().len(), 1);
}

#[test]
fn with_json_each_fault_has_its_path() {
    let sandbox = Sandbox::new();
    let entry = json!({
        "version": 1, "timestamp": "2026-02-13T14:30:05.123Z", "harness": "X",
        "retrieval": {"method": "file", "path": "x"}, "context": {},
    });
    let piped = entry.to_string();
    let note = ["--title", " ", "--body", "", "--json"];
    for (given, stdin, expected) in [
        (
            &["--entry", "--json"][..],
            piped.as_str(),
            [("harness", "\"X\" is not the name "), ("retrieval.path", "\"x\" is not ")],
        ),
        (&note, "", [("--title", "is empty"), ("--body", "is empty")]),
    ] {
        let (code, _, err) = said(sandbox.capture(given).write_stdin(stdin));
        let error: Value = serde_json::from_str(&err).unwrap();
        assert_eq!((code, error["error"]["kind"].as_str()), (Some(1), Some("usage")), "{err}");
        let faults = error["error"]["faults"].as_array().unwrap();
        assert_eq!(faults.len(), expected.len(), "{err}");
        for (fault, (path, message)) in faults.iter().zip(expected) {
            assert_eq!(fault["path"], path);
            assert!(fault["message"].as_str().unwrap().starts_with(message), "{err}");
        }
    }
}

#[test]
fn a_command_line_that_is_no_form_says_what_is_missing() {
    const NO_ARGUMENT: &str = "unexpected argument \"{}\"; pass a hook's JSON on stdin; only with --harness codex may it \
                               be an argument";
    let codex = ["--harness", "codex"];
    for (args, message) in [
        (&[][..], "nothing to capture; give --title and --body, or --harness, or --entry; see --help"),
        (
            &["--thread-id", "T-1"],
            "nothing to capture; give --title and --body, or --harness, or --entry; see --help",
        ),
        (&["--title", "t"], "a note needs a body; give it with --body TEXT, or pipe it in with --body -"),
        (&["--body", "b", "--harness", "amp"], "a note needs a title; give it with --title TEXT"),
        (
            &["--tags", "x", "--harness", "codex"],
            "option \"--tags\" is only for notes; add --title and --body, or leave it out",
        ),
        (
            &["--direct", "--harness", "amp", "--thread-id", "T-1"],
            "option \"--direct\" is only for notes; add --title and --body, or leave it out",
        ),
        (
            &["--scope", "repo"],
            "option \"--scope\" is only for notes; add --title and --body, or leave it out",
        ),
        (&["--harness", "amp"], "a session of amp is captured by its id; add --thread-id ID"),
        (
            &["--harness", "manual"],
            "harness \"manual\" has no sessions, only notes; add --title and --body, or name another harness",
        ),
        (
            &["--harness", "gemini", "--thread-id", "x"],
            "a session of gemini is captured from its hook's JSON; leave --thread-id out and pass the JSON on stdin",
        ),
        (&["--harness", "codx"], "option \"--harness\": unknown program \"codx\"; did you mean \"codex\"?"),
        (
            &["--harness", "emacs"],
            "option \"--harness\": unknown program \"emacs\"; use one of amp, claude-code, codex, copilot, cursor, \
             gemini, opencode, pi, qwen-code, manual, agent, or describe it in the configuration: \
             harnesses.NAME.readCommand",
        ),
        (
            &["--harness", "My Tool"],
            "option \"--harness\": \"My Tool\" is not the name of a program; a-z, 0-9 and - only, a letter first, at \
             most 32 bytes",
        ),
        (
            &["--harness", "amp", "--thread-id", "a/b"],
            "option \"--thread-id\": \"a/b\" is not an id: letters, digits and ._:@- only, a letter or digit first",
        ),
        (&["--harness", "amp", "--thread-id", ""], "option \"--thread-id\": is empty"),
        (&["--harness", "gemini", "{}"], NO_ARGUMENT),
        (&["--harness", "codex", "{}", "{}"], "unexpected argument \"{}\"; see --help"),
        (&["{}"], NO_ARGUMENT),
        (
            &["The port is 8081"],
            "unexpected argument \"The port is 8081\"; for a note, give --title TITLE --body TEXT",
        ),
        (
            &["--entry", "--title", "t"],
            "options \"--entry\" and \"--title\" do not go together; the entry contains all of that; leave one of them out",
        ),
        (
            &["--entry", "--harness", "amp"],
            "options \"--entry\" and \"--harness\" do not go together; the entry contains all of that; leave one of them out",
        ),
        (
            &["--title", "t", "--body", "b", "--tags", "ok,a/b"],
            "option \"--tags\": \"a/b\" is not a tag; write topic__x or area__x, with a-z, 0-9 and - for x, at most 80 bytes",
        ),
        (
            &["--title", "t", "--body", "b", "--scope", "all"],
            "option \"--scope\" takes global or repo, not \"all\"",
        ),
        (&["--title", " ", "--body", ""], "not a note that can be kept: --title: is empty; --body: is empty"),
        (
            &["--title", "a\nb", "--body", "b"],
            "not a note that can be kept: --title: \"a b\" has line breaks or control characters",
        ),
        (&["--title", "t", "--body", "-"], "stdin is empty; the body of the note is expected there"),
    ] {
        let sandbox = Sandbox::new();
        let (code, out, err) = said(&mut sandbox.capture(args));
        assert_eq!(
            (code, out.as_str(), err),
            (Some(1), "", format!("memory-capture: {message}\n")),
            "{args:?}"
        );
        assert!(!sandbox.store().exists(), "{args:?}");
    }
    let sandbox = Sandbox::new();
    let (_, _, err) = said(sandbox.capture(&codex).arg("--json").write_stdin("{"));
    let error: Value = serde_json::from_str(&err).unwrap();
    assert_eq!((&error["error"]["kind"], &error["exit_code"]), (&json!("usage"), &json!(1)));
}

#[test]
fn input_over_the_cap_is_refused_with_the_cap() {
    for (args, size, message) in [
        (&["--title", "t", "--body", "-"][..], 10_000_000, "stdin is larger than 8 MiB; pipe in less"),
        (
            &["--title", "t", "--body", "-"],
            2_000_000,
            "not a note that can be kept: --body: has 2000000 bytes; a note takes at most 1048576",
        ),
        (&["--harness", "codex"], 100_000_000, "stdin is larger than 8 MiB; pipe in less"),
        (&["--entry"], 100_000_000, "stdin is larger than 8 MiB; pipe in less"),
    ] {
        let sandbox = Sandbox::new();
        let (code, out, err) = said(sandbox.capture(args).write_stdin("x".repeat(size)));
        assert_eq!((code, out.as_str()), (Some(1), ""), "{args:?}");
        assert_eq!(err, format!("memory-capture: {message}\n"), "{args:?}");
        assert!(!sandbox.store().exists(), "{args:?}");
    }
}

#[test]
fn nothing_is_queued_inside_an_llm_command() {
    for args in [
        &BOTH[..],
        &["--title", "t", "--body", "b", "--direct"],
        &["--harness", "amp", "--thread-id", "T-1"],
        &["--harness", "codex"],
        &["--harness", "codex", "{}"],
        &["--entry"],
    ] {
        let sandbox = Sandbox::new();
        let (code, out, err) = said(sandbox.capture(args).env("AGENT_MEMORY_RUN", "1"));
        assert_eq!((code, out.as_str(), err.lines().count()), (Some(0), "", 1), "{args:?}");
        assert!(
            err.starts_with("memory-capture: nothing queued: ") && err.contains("AGENT_MEMORY_RUN"),
            "{err}"
        );
        assert!(!sandbox.store().exists(), "{args:?}");
    }
}

#[test]
fn a_hook_never_exits_two() {
    let sandbox = Sandbox::new();
    let hook = hook(&sandbox);
    let harness = ["--harness", "claude-code"];
    for config in ["missing.json", "broken.json"] {
        sandbox.file("broken.json", "{");
        let (code, _, note) = said(sandbox.capture(&BOTH).args(["--config", config]));
        assert_eq!(code, Some(2), "{note}");
        let mut capture = sandbox.capture(&harness);
        let (code, out, err) = said(capture.args(["--config", config]).write_stdin(hook.as_str()));
        assert_eq!((code, out.as_str(), err), (Some(1), "", note), "the same message, another code");
    }
    let (code, _, err) = said(sandbox.capture(&harness).env_remove("HOME").write_stdin(hook.as_str()));
    assert_eq!(code, Some(1), "{err}");
}

/// Codex treats a hook that prints as failed, and Gemini CLI shows its output to the user.
#[test]
fn a_hook_of_codex_or_gemini_prints_only_json_that_was_asked_for() {
    let sandbox = Sandbox::new();
    for (harness, event) in [("claude-code", "Stop"), ("codex", "SessionEnd"), ("gemini", "SessionEnd")] {
        let hook = hook(&sandbox).replace("\"Stop\"", &format!("\"{event}\""));
        let quiet = out(sandbox.capture(&["--harness", harness]).write_stdin(hook.as_str()));
        assert_eq!(quiet.is_empty(), harness != "claude-code", "{harness}: {quiet}");
        let json = out(sandbox.capture(&["--harness", harness, "--json"]).write_stdin(hook));
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["context"]["cwd"], "/");
    }
    assert_eq!(sandbox.queued().len(), 3);
}

#[test]
fn a_hook_does_not_wait_for_a_stdin_that_stays_open() {
    let sandbox = Sandbox::new();
    let hook = hook(&sandbox);
    for end in ["", "\n"] {
        let mut command = sandbox.std_command("memory-capture");
        command.args(["--harness", "claude-code", "--json"]);
        let mut running = Running::start(command);
        running.stdin().write_all(format!("{hook}{end}").as_bytes()).unwrap();
        let output = running.finish();
        assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    }
    assert_eq!(sandbox.queued().len(), 1);
}

#[test]
fn a_hook_without_a_directory_gets_the_current_one() {
    let sandbox = Sandbox::new();
    let hook = hook(&sandbox).replace("\"cwd\":\"/\"", "\"cwd\":\"relative\"");
    out(sandbox.capture(&["--harness", "claude-code"]).write_stdin(hook));
    let path = sandbox.store().join("inbox").join(&sandbox.queued()[0]);
    assert_eq!(entry_at(path.to_str().unwrap())["context"]["cwd"], json!(sandbox.work()));
}

#[test]
fn it_needs_no_other_program_and_no_current_directory() {
    let sandbox = Sandbox::new();
    out(sandbox.capture(&BOTH).env("PATH", "/nowhere"));
    let gone = sandbox.work().join("gone");
    fs::create_dir(&gone).unwrap();
    let line = "cd gone && rmdir ../gone && exec \"$0\" --title t --body b";
    let like = sandbox.std_command("memory-capture");
    let output = std::process::Command::new("/bin/sh")
        .args(["-c", line])
        .arg(like.get_program())
        .env_clear()
        .envs(present(like.get_envs()))
        .current_dir(sandbox.work())
        .output()
        .unwrap();
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    assert_eq!(entry_at(&output.out())["context"], json!({"cwd": null, "repo": null}));
}
