//! `agents/<name>.toml`: what is refused, in whose words, and what is only warned of.

use crate::support::{Sandbox, is_root, said, set_mode, symlink};
use std::fs;

/// An agent file that is as good as it can be, but for `text`.
fn refusal(text: &str) -> (Option<i32>, String) {
    let sandbox = Sandbox::new();
    sandbox.agent_file("a", text);
    sandbox.provider("p", "command = 'echo ok'");
    let (code, out, err) = said(&mut sandbox.run("a"));
    assert_eq!(out, "", "{text}");
    (code, err)
}

#[test]
fn each_check_has_its_own_words_and_the_first_fault_wins() {
    let good = "name = 'a'\nmodel = 'p/m'\n";
    let cases = [
        (String::new(), "agent config missing required field: name"),
        ("model = 'p/m'".into(), "agent config missing required field: name"),
        ("name = ''\nmodel = 'p/m'".into(), "agent config missing required field: name"),
        ("name = 'a'".into(), "agent config missing required field: model"),
        ("name = 'a'\n[memory]\nlast_n = -1".into(), "agent config missing required field: model"),
        (
            format!("{good}[sub_agents_config]\nmax_depth = -1"),
            "sub_agents_config.max_depth must be non-negative",
        ),
        (format!("{good}[sub_agents_config]\nmax_depth = 6"), "sub_agents_config.max_depth cannot exceed 5"),
        (
            format!("{good}[sub_agents_config]\ntimeout = -1"),
            "sub_agents_config.timeout must be non-negative",
        ),
        (
            format!("{good}[memory]\nlast_n = -1\n[sub_agents_config]\ntimeout = -1"),
            "sub_agents_config.timeout must be non-negative",
        ),
        (format!("{good}[memory]\nlast_n = -1"), "memory.last_n must be non-negative"),
        (format!("{good}[memory]\nmax_entries = -1\nlast_n = -1"), "memory.last_n must be non-negative"),
        (format!("{good}[memory]\nmax_entries = -1"), "memory.max_entries must be non-negative"),
        (format!("{good}[memory]\nmax_task_chars = -1"), "memory.max_task_chars must be non-negative"),
        (format!("{good}[params]\nmax_tokens = -1"), "params.max_tokens must be non-negative"),
    ];
    for (text, message) in cases {
        let (code, err) = refusal(&text);
        assert!(
            code == Some(2) && err.starts_with(&format!("axe-run: {message}; correct \"/")),
            "{text}: {err}"
        );
        assert!(err.ends_with("/agents/a.toml\"\n"), "{err}");
    }
}

#[test]
fn limits_at_their_ends_are_fine() {
    for more in [
        "[sub_agents_config]\nmax_depth = 5\ntimeout = 0",
        "[sub_agents_config]\nmax_depth = 0",
        "[memory]\nlast_n = 0\nmax_entries = 0",
        "[params]\ntemperature = 0\nmax_tokens = 1",
        "[params]\ntemperature = 1",
    ] {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "echo ok", more);
        assert_eq!(said(&mut sandbox.run("a")), (Some(0), "ok".into(), String::new()), "{more}");
    }
}

#[test]
fn broken_toml_is_placed_by_line_and_column() {
    let cases = [
        ("name = ", "line 1, column 8: "),
        ("name = 'a'\nmodel 'p/m'\n", "line 2, column 7: "),
        ("name = 'a'\n\n[memory\nenabled = true", "line 3, column "),
        ("name = 'a'\nname = 'b'", "line 2, column 1: "),
        ("name = 'ä' x", "line 1, column 12: "),
        ("name = 'a'\r\nmodel = \"p/m\r\n", "line 2, column "),
        // Wrong types.
        ("name = 5", "line 1, column 8: "),
        ("name = 'a'\nfiles = 'x'", "line 2, column 9: "),
        ("name = 'a'\nmodel = ['p/m']", "line 2, column 9: "),
        ("[memory]\nenabled = 'yes'", "line 2, column 11: "),
        ("[memory]\nlast_n = '3'", "line 2, column 10: "),
        ("[memory]\nlast_n = 1.5", "line 2, column 10: "),
        ("memory = true", "line 1, column 10: "),
        ("[params]\ntemperature = 'hot'", "line 2, column 15: "),
        ("sub_agents = [1]", "line 1, column 15: "),
    ];
    for (text, place) in cases {
        let (code, err) = refusal(text);
        assert_eq!(code, Some(2), "{text}");
        let start = format!("axe-run: failed to parse agent config \"a\": {place}");
        assert!(err.starts_with(&start) && err.lines().count() == 1, "{text:?}: {err}");
    }
}

#[test]
fn bytes_that_are_not_text_are_placed() {
    let sandbox = Sandbox::new();
    sandbox.write(&sandbox.config().join("agents/a.toml"), b"name = 'a'\nmodel = '\xff'");
    let path = sandbox.config().join("agents/a.toml");
    let expected = format!(
        "axe-run: failed to parse agent config \"a\": line 2, column 10: not valid UTF-8; correct \"{}\"\n",
        path.display()
    );
    assert_eq!(said(&mut sandbox.run("a")), (Some(2), String::new(), expected));
}

#[test]
fn a_byte_order_mark_and_crlf_are_read() {
    let sandbox = Sandbox::new();
    sandbox.agent_file(
        "a",
        "\u{feff}name = \"a\"\r\nmodel = \"p/m\"\r\nsystem_prompt = \"\"\"\r\nBe kind.\"\"\"\r\n",
    );
    sandbox.provider("p", "command = 'cat'");
    assert_eq!(said(sandbox.run("a").arg("-phi")), (Some(0), "Be kind.\n\nhi".into(), String::new()));
}

#[test]
fn an_agent_that_is_not_there_names_the_nearest() {
    let sandbox = Sandbox::new();
    for name in ["planner", "reviewer"] {
        sandbox.agent(name, "cat", "");
    }
    let (code, out, err) = said(&mut sandbox.run("reveiwer"));
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert_eq!(err, "axe-run: agent config not found: reveiwer; did you mean \"reviewer\"?\n");
    let (code, _, err) = said(&mut sandbox.run("zebra"));
    assert_eq!(code, Some(2));
    assert!(err.starts_with("axe-run: agent config not found: zebra; ") && err.lines().count() == 1, "{err}");
    // One letter is not near another.
    sandbox.agent("x", "cat", "");
    assert!(!said(&mut sandbox.run("q")).2.contains("did you mean"));
    fs::remove_dir_all(sandbox.config()).unwrap();
    assert_eq!(said(&mut sandbox.run("zebra")).0, Some(2));
}

#[test]
fn a_file_that_cannot_be_read_says_why() {
    let path = |sandbox: &Sandbox| sandbox.config().join("agents/a.toml");
    type Fault = (fn(&Sandbox, &std::path::Path), &'static str);
    let faults: [Fault; 5] = [
        (|_, path| fs::create_dir_all(path).unwrap(), "is not a regular file"),
        (|_, path| symlink("a.toml", path), "symbolic links"),
        (|_, path| symlink("/dev/zero", path), "is not a regular file"),
        (|sandbox, path| sandbox.write(path.parent().unwrap(), ""), "Not a directory"),
        (|sandbox, path| sandbox.write(path, "# long\n".repeat(200_000)), "is larger than 1 MiB"),
    ];
    for (make, why) in faults {
        let sandbox = Sandbox::new();
        make(&sandbox, &path(&sandbox));
        let (code, out, err) = said(&mut sandbox.run("a"));
        assert_eq!((code, out.as_str()), (Some(2), ""), "{why}: {err}");
        assert!(err.starts_with("axe-run: failed to read agent config \"a\": "), "{err}");
        assert!(err.contains(why) && err.lines().count() == 1, "{why}: {err}");
    }
    if !is_root("an agent file without read permission") {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "cat", "");
        set_mode(&path(&sandbox), 0);
        let (code, _, err) = said(&mut sandbox.run("a"));
        assert_eq!(code, Some(2));
        assert!(
            err.contains("failed to read agent config \"a\": ") && err.contains("Permission denied"),
            "{err}"
        );
    }
}

#[test]
fn an_unknown_key_is_a_warning_that_names_the_nearest() {
    let cases = [
        ("descripton = 'x'", "unknown key \"descripton\" on line 3, did you mean \"description\"?"),
        ("sub_agent = ['x']", "unknown key \"sub_agent\" on line 3, did you mean \"sub_agents\"?"),
        ("[memory]\nlast-n = 3", "unknown key \"memory.last-n\" on line 4, did you mean \"last_n\"?"),
        (
            "[params]\nmax_token = 3",
            "params.max_token goes to the API as it is; did you mean \"max_tokens\"?",
        ),
        ("[limits]\nzebra = 3", "unknown key \"limits.zebra\" on line 4, known keys are max_tokens_total"),
        ("[memroy]\nenabled = true", "unknown key \"memroy\" on line 3, did you mean \"memory\"?"),
    ];
    for (more, what) in cases {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "echo ok", more);
        let warning = format!("Warning: agent config \"a\": {what}\n");
        assert_eq!(said(&mut sandbox.run("a")), (Some(0), "ok".into(), warning), "{more}");
    }
}

#[test]
fn a_name_that_differs_from_the_files_is_a_warning() {
    let sandbox = Sandbox::new();
    sandbox.agent_file("a", "name = 'b'\nmodel = 'p/m'");
    sandbox.provider("p", "command = 'echo ok'");
    let (code, out, err) = said(&mut sandbox.run("a"));
    assert_eq!((code, out.as_str()), (Some(0), "ok"));
    assert!(
        err.starts_with("Warning: agent config \"a\" has name = \"b\"") && err.lines().count() == 1,
        "{err}"
    );
    assert_eq!(said(&mut sandbox.run("b")).0, Some(2));
}

#[test]
fn names_may_be_of_any_language() {
    for name in ["Überprüfer", "审阅", "a.b", "two words", "-dash", "🦀"] {
        let sandbox = Sandbox::new();
        sandbox.agent(name, "echo ok", "");
        let mut run = sandbox.command("axe-run");
        assert_eq!(said(run.args(["--", name])), (Some(0), "ok".into(), String::new()), "{name}");
    }
}

#[test]
fn xdg_config_home_moves_the_configuration_unless_it_is_empty() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "echo home", "");
    let moved = sandbox.home().join("moved");
    sandbox.write(&moved.join("axe/agents/a.toml"), "name = 'a'\nmodel = 'p/m'");
    sandbox.write(&moved.join("axe/config.toml"), "[providers.p]\ncommand = 'echo moved'");
    for (value, answer) in [(moved.to_str().unwrap(), "moved"), ("", "home")] {
        assert_eq!(
            said(sandbox.run("a").env("XDG_CONFIG_HOME", value)),
            (Some(0), answer.into(), String::new())
        );
    }
}

#[test]
fn a_misspelt_required_key_is_named_before_it_is_missed() {
    let (code, err) = refusal("name = 'a'\nmodle = 'x/y'");
    let warning = "Warning: agent config \"a\": unknown key \"modle\" on line 2, did you mean \"model\"?\n";
    assert!(err.starts_with(warning), "{err}");
    assert!(
        code == Some(2) && err.contains("\naxe-run: agent config missing required field: model; correct "),
        "{err}"
    );
}
