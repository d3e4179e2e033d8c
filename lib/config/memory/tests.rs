use super::*;
use crate::base::env::pretend;

/// The first fault of a file, without the file's name.
fn fault(text: &[u8]) -> String {
    let env = pretend(&[("HOME", "/h")]);
    let path = Path::new("/c/config.json");
    let error = match read::settings(text, path, &env) {
        Ok(found) => found.into_iter().find_map(Result::err).unwrap().error(path),
        Err(error) => error,
    };
    assert_eq!(error.exit_code(), 2);
    error.line().strip_prefix("\"/c/config.json\" ").unwrap().to_owned()
}

fn values(text: &str) -> Vec<(&'static str, serde_json::Value)> {
    let env = pretend(&[("HOME", "/h")]);
    let found = read::settings(text.as_bytes(), Path::new("/c/config.json"), &env).unwrap();
    let value = |found: read::ParsedSetting| found.ok().unwrap();
    found.into_iter().map(value).map(|(key, value)| (&*key.leak(), value)).collect()
}

#[test]
fn each_fault_names_line_key_and_what_is_near() {
    let range = "expected a whole number from";
    for (text, expected) in [
        (
            "{\n\"storage\": {\n\n\"rooot\": 1}}",
            "line 4, storage.rooot: unknown key; did you mean \"storage.root\"?",
        ),
        (r#"{"root": "x"}"#, "line 1, root: unknown key; did you mean \"storage.root\"?"),
        (
            r#"{"llm": {"zebra": 1}}"#,
            "line 1, llm.zebra: unknown key; known keys are llm.command, llm.maxCallsPerDay, llm.maxCallsPerRun, llm.maxNoteBytes, llm.maxPromptBytes, llm.maxReplyBytes, llm.presets, llm.timeoutSeconds",
        ),
        (
            r#"{"storage.root": "x"}"#,
            "line 1, storage.root: unknown key; keys do not contain dots: write storage.root as an object in another",
        ),
        (
            r#"{"harnesses": {"codex": {}}}"#,
            "line 1, harnesses.codex: unknown key; the name of a program of your own is expected: a-z, 0-9 and - only, a letter first; programs whose files are read have no key here",
        ),
        (
            r#"{"harnesses": {"goose": {"readCmd": "x"}}}"#,
            "line 1, harnesses.goose.readCmd: unknown key; known keys are harnesses.goose.readCommand",
        ),
        (
            r#"{"harnesses": {"goose": {"readCommand": "goose show"}}}"#,
            "line 1, harnesses.goose.readCommand: must contain {threadId}, which is replaced with the session's id",
        ),
        ("{\"llm\": {},\n\"llm\": {}}", "line 2, llm: is there twice"),
        ("{\"llm\": {\"presets\": {\"a\": \"x\",\n\"a\": \"y\"}}}", "line 2, llm.presets.a: is there twice"),
        (
            r#"{"": 1}"#,
            "line 1, \"\": unknown key; known keys are agentsMd, capture, harnesses, llm, recall, redact, schedule, storage, sync, trustedDirectories",
        ),
        (r#"{"llm\n": {"command": "x"}}"#, "line 1, \"llm\\n\": unknown key; did you mean \"llm\"?"),
        ("[]", "line 1: expected an object, found a list"),
        (r#"{"llm": null}"#, "line 1, llm: expected an object, found null"),
        (r#"{"storage": {"root": null}}"#, "line 1, storage.root: expected a directory, found null"),
        (r#"{"storage": {"root": " "}}"#, "line 1, storage.root: must not be empty"),
        (r#"{"storage": {"root": "a\u0000"}}"#, "line 1, storage.root: must not contain a NUL character"),
        (
            r#"{"storage": {"root": "\ud800"}}"#,
            "line 1, storage.root: not valid text: it contains half a character",
        ),
        (
            r#"{"storage": {"root": "~you"}}"#,
            "line 1, storage.root: only \"~/\" means the home directory; write ./~ for the name itself",
        ),
        (r#"{"storage": {"root": "/etc/passwd"}}"#, "line 1, storage.root: is a file, not a directory"),
        (
            r#"{"storage": {"autoCommit": "yes"}}"#,
            "line 1, storage.autoCommit: expected true or false, found a string",
        ),
        (
            r#"{"storage": {"commitHook": "a 'b"}}"#,
            "line 1, storage.commitHook: cannot be split into words: a quote is not closed, or a backslash is at the end",
        ),
        (r##"{"storage": {"commitHook": "# no"}}"##, "line 1, storage.commitHook: must contain a command"),
        (
            r#"{"llm": {"command": ["sk-secret"]}}"#,
            "line 1, llm.command: expected a preset's name, a shell command or null, found a list",
        ),
        (
            r#"{"llm": {"presets": {"a": null}}}"#,
            "line 1, llm.presets.a: expected a shell command, found null",
        ),
        (
            r#"{"llm": {"timeoutSeconds": 0}}"#,
            &format!("line 1, llm.timeoutSeconds: {range} 1 to 604800, found 0"),
        ),
        (
            r#"{"llm": {"maxCallsPerRun": -1}}"#,
            &format!("line 1, llm.maxCallsPerRun: {range} 0 to 10000, found -1"),
        ),
        (
            r#"{"llm": {"maxPromptBytes": 1e6}}"#,
            &format!("line 1, llm.maxPromptBytes: {range} 1000 to 100000000, found 1e6"),
        ),
        (
            r#"{"schedule": {"defragIntervalHours": 18446744073709551617}}"#,
            &format!("line 1, schedule.defragIntervalHours: {range} 1 to 8784, found 18446744073709551617"),
        ),
        (
            r#"{"agentsMd": {"targets": "x"}}"#,
            "line 1, agentsMd.targets: expected a list of files, found a string",
        ),
        (
            "{\"agentsMd\": {\"targets\": [\"a\",\n3]}}",
            "line 2, agentsMd.targets[1]: expected a file or an object with path and repo, found 3",
        ),
        (
            r#"{"agentsMd": {"targets": ["/"]}}"#,
            "line 1, agentsMd.targets[0]: is a directory, not a file; name a file in it, like AGENTS.md",
        ),
        (
            r#"{"agentsMd": {"targets": ["/c/x", "y", "./x"]}}"#,
            "line 1, agentsMd.targets[2]: the same file is already in the list",
        ),
        (r#"{"agentsMd": {"targets": [{"repo": "a/b/c"}]}}"#, "line 1, agentsMd.targets[0]: path is missing"),
        (
            r#"{"agentsMd": {"targets": [{"path": "x", "pth": 1}]}}"#,
            "line 1, agentsMd.targets[0].pth: unknown key; known keys are path and repo",
        ),
        (
            r#"{"harnesses": {"amp": {"readCommand": "amp show"}}}"#,
            "line 1, harnesses.amp.readCommand: must contain {threadId}, which is replaced with the session's id",
        ),
        (r#"{"redact": {"patterns": ["a", ""]}}"#, "line 1, redact.patterns[1]: must not be empty"),
        (r#"{"trustedDirectories": [1]}"#, "line 1, trustedDirectories[0]: expected a directory, found 1"),
        (
            "{\n  \"llm\": {},\n}",
            "line 3, column 1: there is a comma before the closing bracket; correct the file; its keys: memory help configuration",
        ),
    ] {
        assert_eq!(fault(text.as_bytes()), expected, "{text}");
    }
}

#[test]
fn a_list_of_too_many_targets_is_a_fault() {
    let list = |n: usize| {
        let files: Vec<_> = (0..n).map(|n| format!("\"{n}.md\"")).collect();
        format!("{{\"agentsMd\": {{\"targets\": [{}]}}}}", files.join(","))
    };
    assert_eq!(values(&list(100))[0].1.as_array().unwrap().len(), 100);
    let expected = "line 1, agentsMd.targets: has 101 files; the limit is 100";
    assert_eq!(fault(list(101).as_bytes()), expected);
}

#[test]
fn values_come_out_ready_for_use() {
    let text = r#"{"storage": {"root": "~/notes/./x/"}, "agentsMd": {"targets": ["a.md", {"path": "/b.md", "repo": "h/o/n"}]}}"#;
    assert_eq!(
        values(text),
        [
            ("storage.root", "/h/notes/x".into()),
            (
                "agentsMd.targets",
                serde_json::json!([{"path": "/c/a.md"}, {"path": "/b.md", "repo": "h/o/n"}])
            ),
        ]
    );
    assert_eq!(
        values("\u{feff}{\r\n\"llm\": {\"command\": null}}\r\n"),
        [("llm.command", serde_json::Value::Null)]
    );
}

#[test]
fn a_preset_is_the_users_own_then_a_built_in_one_then_a_command() {
    let line = |text: &str| {
        let mut settings = Settings::defaults();
        for (key, value) in values(text) {
            settings.set(key, value, "");
        }
        settings.set("storage.root", "/r".into(), "");
        let config: MemoryConfig = serde_json::from_value(settings.nested()).unwrap();
        config.llm.command_line().map(str::to_owned)
    };
    assert_eq!(line("{}"), None);
    assert_eq!(line(r#"{"llm": {"command": "llm"}}"#).as_deref(), Some("llm --no-log"));
    assert_eq!(line(r#"{"llm": {"command": "amp"}}"#).as_deref(), Some("amp -x"));
    assert_eq!(line(r#"{"llm": {"command": "amp", "presets": {"amp": "amp2"}}}"#).as_deref(), Some("amp2"));
    assert_eq!(line(r#"{"llm": {"command": "cat | tac"}}"#).as_deref(), Some("cat | tac"));
}

#[test]
fn many_unknown_keys_are_one_fault() {
    let members: Vec<String> = (0..20_000).map(|n| format!("\"k{n}\": {n}")).collect();
    let text = format!("{{{}}}", members.join(",\n"));
    assert!(fault(text.as_bytes()).starts_with("line 1, k0: unknown key; "));
}
