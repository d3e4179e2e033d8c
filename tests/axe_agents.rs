//! `axe-agents`: list, show, init, edit.

use crate::support::{Sandbox, is_root, said, set_mode};
use std::fs;

fn agents(sandbox: &Sandbox, args: &[&str]) -> (Option<i32>, String, String) {
    said(sandbox.command("axe-agents").args(args))
}

#[test]
fn list_is_sorted_by_name_with_descriptions() {
    let sandbox = Sandbox::new();
    assert_eq!(agents(&sandbox, &["list"]), (Some(0), String::new(), String::new()));
    for (name, more) in [
        ("b", "description = 'second'"),
        ("a", ""),
        ("ü", "description = \"two\\nlines\\u001b[31m\""),
        ("B", "description = ''"),
    ] {
        sandbox.agent(name, "cat", more);
    }
    sandbox.write(&sandbox.config().join("agents/notes.txt"), "no agent");
    sandbox.write(&sandbox.config().join("agents/folder/c.toml"), "name = 'c'\nmodel = 'p/m'");
    let expected = "B\na\nb - second\nü - two lines [31m\n";
    assert_eq!(agents(&sandbox, &["list"]), (Some(0), expected.into(), String::new()));
}

#[test]
fn a_broken_file_is_named_and_left_out() {
    let sandbox = Sandbox::new();
    sandbox.agent("good", "cat", "");
    sandbox.agent_file("broken", "name =");
    sandbox.agent_file("nameless", "model = 'p/m'");
    sandbox.agent_file(".hidden", "name = 'x'\nmodel = 'p/m'");
    fs::create_dir(sandbox.config().join("agents/dir.toml")).unwrap();
    let (code, out, err) = agents(&sandbox, &["list"]);
    assert_eq!((code, out.as_str()), (Some(0), "good\n"));
    for (name, why) in [
        ("broken", "failed to parse agent config \"broken\": line 1, column 7: "),
        ("nameless", "agent config missing required field: name"),
        ("dir", "failed to read agent config \"dir\": "),
        (".hidden", "invalid agent name \".hidden\": "),
    ] {
        let warning = format!("Warning: \"{name}\" is left out: {why}");
        assert!(err.lines().any(|line| line.starts_with(&warning)), "{warning:?} in {err}");
    }
    assert_eq!(err.lines().count(), 4, "{err}");
}

#[test]
fn list_as_json_is_one_object_a_line() {
    let sandbox = Sandbox::new();
    assert_eq!(agents(&sandbox, &["list", "--json"]), (Some(0), String::new(), String::new()));
    sandbox.agent("b", "cat", "description = 'x'\nfiles = ['*.rs']\n[memory]\nenabled = true\nlast_n = 3");
    sandbox.agent("a", "cat", "");
    let (code, out, _) = agents(&sandbox, &["list", "--json"]);
    assert_eq!((code, out.lines().count()), (Some(0), 2));
    let objects: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&objects[0]["name"], &objects[1]["name"]), (&"a".into(), &"b".into()));
    assert_eq!(objects[1]["description"], "x");
    assert_eq!(objects[1]["files"], serde_json::json!(["*.rs"]));
    let (_, shown, _) = agents(&sandbox, &["show", "--json", "b"]);
    assert_eq!(shown.trim_end(), out.lines().last().unwrap());
}

#[test]
fn show_aligns_everything_that_is_set() {
    let sandbox = Sandbox::new();
    sandbox.agent_file(
        "full",
        "name = 'full'\ndescription = 'does it'\nmodel = 'anthropic/claude-x'\nsystem_prompt = \"You review.\\nBe kind.\\n\"\n\
         skill = 'skills/x/SKILL.md'\nfiles = ['README.md', 'src/**']\nworkdir = '/w'\nsub_agents = ['b', 'c']\n\
         [sub_agents_config]\nmax_depth = 2\nparallel = false\ntimeout = 30\n\
         [memory]\nenabled = true\npath = '/log.md'\nlast_n = 5\nmax_entries = 50\n\
         [params]\ntemperature = 0.3\nmax_tokens = 4096",
    );
    let expected = "Name:              full
Description:       does it
Model:             anthropic/claude-x
System Prompt:     You review.
                   Be kind.
Skill:             skills/x/SKILL.md
Files:             README.md, src/**
Workdir:           /w
Sub-Agents:        b, c
Max Depth:         2
Parallel:          no
Timeout:           30s
Memory Enabled:    true
Memory Path:       /log.md
Memory LastN:      5
Memory MaxEntries: 50
Temperature:       0.3
Max Tokens:        4096
";
    assert_eq!(agents(&sandbox, &["show", "full"]), (Some(0), expected.into(), String::new()));
}

#[test]
fn show_leaves_out_what_is_not_set() {
    let sandbox = Sandbox::new();
    let log = sandbox.log_path("a");
    let memory = |enabled: bool, last_n: u32| {
        format!(
            "Memory Enabled:    {enabled}\nMemory Path:       {}\nMemory LastN:      {last_n}\nMemory MaxEntries: 0\n",
            log.display()
        )
    };
    let (on, off) = (memory(true, 0), memory(false, 7));
    let cases = [
        ("", ""),
        ("[memory]", ""),
        ("[memory]\nenabled = false\nlast_n = 0", ""),
        ("[memory]\nenabled = true", on.as_str()),
        ("[memory]\nlast_n = 7", off.as_str()),
        ("[params]\ntemperature = 0", "Temperature: 0\n"),
    ];
    for (more, rows) in cases {
        sandbox.agent_file("a", &format!("name = 'a'\nmodel = 'p/m'\n{more}"));
        let width = rows.lines().map(|row| row.find(": ").unwrap() + 2).max().unwrap_or(7).max(7);
        let row = |label: &str, value: &str| {
            let width = if rows.contains("LastN") { 19 } else { width };
            format!("{label:width$}{value}\n")
        };
        let expected = row("Name:", "a") + &row("Model:", "p/m") + rows;
        assert_eq!(agents(&sandbox, &["show", "a"]), (Some(0), expected, String::new()), "{more}");
    }
}

#[test]
fn wrong_words_are_named() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "");
    let cases: [(&[&str], i32, &str); 19] = [
        (&[], 1, "a command is required: list, show, check, init, edit or accept"),
        (&["lst"], 1, "unknown command \"lst\"; "),
        (&["list", "x"], 1, "unexpected argument \"x\""),
        (&["show"], 1, "agent name is required"),
        (&["init"], 1, "agent name is required"),
        (&["edit"], 1, "agent name is required"),
        (&["accept"], 1, "agent name is required"),
        (&["accept", "zebra"], 2, "agent config not found: zebra"),
        (&["accept", "a"], 1, "agent \"a\" has no MCP servers"),
        (&["show", "a", "b"], 1, "unexpected argument \"b\""),
        (&["--jsom", "list"], 1, "unknown option \"--jsom\"; did you mean \"--json\"?"),
        (&["edit", "a"], 1, "$EDITOR environment variable is not set"),
        (&["show", "zebra"], 2, "agent config not found: zebra"),
        (&["edit", "zebra"], 2, "agent config not found: zebra"),
        (&["show", "../a"], 2, "invalid agent name \"../a\": it contains a slash"),
        (&["init", "../a"], 2, "invalid agent name \"../a\": it contains a slash"),
        (&["edit", "../a"], 2, "invalid agent name \"../a\": it contains a slash"),
        (&["init", ""], 2, "invalid agent name \"\": it is empty"),
        (&["init", ".a"], 2, "invalid agent name \".a\": it begins with a dot"),
    ];
    for (args, code, message) in cases {
        let (ended, out, err) = agents(&sandbox, args);
        assert_eq!((ended, out.as_str()), (Some(code), ""), "{args:?}: {err}");
        assert!(
            err.starts_with(&format!("axe-agents: {message}")) && err.lines().count() == 1,
            "{args:?}: {err}"
        );
    }
    let (code, _, err) = agents(&sandbox, &["show", "zebra", "--json"]);
    let object: serde_json::Value = serde_json::from_str(&err).unwrap();
    assert_eq!((code, &object["error"]["message"]), (Some(2), &"agent config not found: zebra".into()));
}

#[test]
fn init_writes_a_template_once_and_prints_its_path() {
    let sandbox = Sandbox::new();
    let path = sandbox.config().join("agents/new \"agent\".toml");
    let name = "new \"agent\"";
    let printed = format!("{}\n", path.display());
    assert_eq!(agents(&sandbox, &["init", name]), (Some(0), printed, String::new()));
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("\n# [memory]\n# enabled = false\n# path = \"\"\n# last_n = 10\n# max_entries = 100\n"),
        "{text}"
    );
    // It is an agent as it stands.
    let (code, shown, err) = agents(&sandbox, &["show", name]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(shown.contains("Model: ") && !shown.contains("Memory"), "{shown}");

    fs::write(&path, "mine").unwrap();
    let exists = format!("axe-agents: agent config already exists: {}", path.display());
    let (code, out, err) = agents(&sandbox, &["init", name]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.starts_with(&exists), "{err}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn init_does_not_write_through_a_dangling_symlink() {
    let sandbox = Sandbox::new();
    crate::support::symlink(sandbox.home().join("elsewhere"), sandbox.config().join("agents/a.toml"));
    let (code, _, err) = agents(&sandbox, &["init", "a"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(!sandbox.home().join("elsewhere").exists());
}

#[test]
fn init_says_why_it_cannot_write() {
    let sandbox = Sandbox::new();
    sandbox.write(&sandbox.config().join("agents"), "a file");
    let (code, out, err) = agents(&sandbox, &["init", "a"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("agents\"") && err.lines().count() == 1, "{err}");
    if !is_root("init in a folder without write permission") {
        let sandbox = Sandbox::new();
        fs::create_dir_all(sandbox.config().join("agents")).unwrap();
        set_mode(&sandbox.config().join("agents"), 0o555);
        let (code, _, err) = agents(&sandbox, &["init", "a"]);
        assert_eq!(code, Some(1));
        assert!(err.contains("Permission denied"), "{err}");
    }
}

/// A program that writes down its arguments and does `more` with the file, its last one.
fn editor(sandbox: &Sandbox, more: &str) -> String {
    let path = sandbox.home().join("my editor.sh");
    let script =
        format!("for last; do echo \"$last\"; done > '{}'\n{more}\n", sandbox.home().join("args").display());
    sandbox.write(&path, script);
    format!("/bin/sh \"{}\"", path.display())
}

#[test]
fn edit_starts_the_editor_with_its_arguments() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "");
    let editor = editor(&sandbox, "");
    let path = sandbox.config().join("agents/a.toml");
    let other = "/no/such/editor";
    for (visual, set, args) in [
        (None, Some(format!("{editor} --wait '-n 1'")), "--wait\n-n 1\n"),
        (Some(format!("{editor} -v")), None, "-v\n"),
        (Some(format!("{editor} -v")), Some(other.into()), "-v\n"),
        (Some(String::new()), Some(editor.clone()), ""),
    ] {
        let mut edit = sandbox.command("axe-agents");
        edit.args(["edit", "a"]).envs(visual.map(|v| ("VISUAL", v))).envs(set.map(|v| ("EDITOR", v)));
        assert_eq!(said(&mut edit), (Some(0), String::new(), String::new()), "{args}");
        let written = fs::read_to_string(sandbox.home().join("args")).unwrap();
        assert_eq!(written, format!("{args}{}\n", path.display()));
    }
}

#[test]
fn edit_tells_when_the_editor_failed() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "");
    let failing = editor(&sandbox, "exit 3");
    for (set, why) in [
        (failing.as_str(), "editor \"/bin/sh\" failed (exit 3)"),
        ("/no/such/editor -x", "editor \"/no/such/editor\" could not be started: "),
        ("vi 'open", "the editor's command line has an unclosed quote"),
        (" ", "the editor's command line names no program: \" \""),
    ] {
        let (code, _, err) = said(sandbox.command("axe-agents").args(["edit", "a"]).env("EDITOR", set));
        assert_eq!(code, Some(1), "{set}");
        assert!(err.starts_with(&format!("axe-agents: {why}")) && err.lines().count() == 1, "{err}");
    }
}

#[test]
fn edit_warns_of_what_was_saved() {
    let sandbox = Sandbox::new();
    for (saved, warning) in [
        ("name =", "Warning: failed to parse agent config \"a\": line 1, column 7: "),
        ("name = \"a\"", "Warning: agent config missing required field: model\n"),
        (
            "name = \"a\"\nmodel = \"p/m\"\nskil = 1",
            "Warning: agent config \"a\": unknown key \"skil\" on line 3",
        ),
    ] {
        sandbox.agent("a", "cat", "");
        let editor = editor(&sandbox, &format!("printf '%s' '{saved}' > \"$last\""));
        let (code, out, err) = said(sandbox.command("axe-agents").args(["edit", "a"]).env("EDITOR", editor));
        assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
        assert!(err.starts_with(warning) && err.lines().count() == 1, "{err}");
    }
}
