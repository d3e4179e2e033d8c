//! `memory-install-hooks` and `memory-uninstall-hooks`: what they change in other programs' settings, and what not.

use crate::support::{Sandbox, binary, mode, present, said, set_mode, symlink};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The settings files of the harnesses that have one.
const SETTINGS: &[(&str, &str)] = &[
    ("claude-code", ".claude/settings.json"),
    ("codex", ".codex/hooks.json"),
    ("copilot", ".copilot/hooks/agent-memory.json"),
    ("cursor", ".cursor/hooks.json"),
    ("gemini", ".gemini/settings.json"),
    ("qwen-code", ".qwen/settings.json"),
];

/// All harnesses' directories.
const DIRS: &[&str] =
    &[".claude", ".codex", ".copilot", ".cursor", ".gemini", ".qwen", ".config/amp", ".config/opencode"];

fn home() -> Sandbox {
    let sandbox = Sandbox::new();
    for dir in DIRS {
        fs::create_dir_all(sandbox.home().join(dir)).unwrap();
    }
    sandbox
}

fn install(sandbox: &Sandbox, args: &[&str]) -> (Option<i32>, String, String) {
    said(sandbox.command("memory-install-hooks").args(args))
}

fn uninstall(sandbox: &Sandbox, args: &[&str]) -> (Option<i32>, String, String) {
    said(sandbox.command("memory-uninstall-hooks").args(args))
}

fn read(path: impl AsRef<Path>) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Every file and directory below the home, with the bytes of the files. Without the directory for state, which the
/// first run makes.
fn tree(sandbox: &Sandbox) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![sandbox.home()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            if entry == sandbox.home().join(".local") {
                continue;
            }
            let is_dir = entry.symlink_metadata().unwrap().is_dir();
            found.insert(entry.clone(), (!is_dir).then(|| fs::read(&entry).unwrap()));
            dirs.extend(is_dir.then_some(entry));
        }
    }
    found
}

/// Where a program lies beside the others.
fn program(name: &str) -> String {
    binary("memory-capture").with_file_name(name).display().to_string()
}

/// The commands of an event, and their timeouts.
fn commands(settings: &Value, event: &str) -> Vec<(String, Value)> {
    let entries = settings["hooks"][event].as_array().unwrap().iter();
    let hooks = entries.flat_map(|entry| match &entry["hooks"] {
        Value::Array(hooks) => hooks.clone(),
        _ => vec![entry.clone()],
    });
    hooks
        .map(|hook| {
            let command = hook["command"].as_str().or(hook["bash"].as_str()).unwrap();
            let timeout = if hook["timeoutSec"].is_null() { &hook["timeout"] } else { &hook["timeoutSec"] };
            (command.to_owned(), timeout.clone())
        })
        .collect()
}

/// Event, program, timeout.
type Expected = (&'static str, &'static str, Value);

#[test]
fn each_harness_gets_its_hooks_in_its_own_form() {
    let sandbox = home();
    let (code, out, err) = install(&sandbox, &[]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out.lines().count(), SETTINGS.len() + 3, "{out}");
    assert!(out.lines().all(|line| line.split('\t').nth(1) == Some("written")), "{out}");
    assert!(err.contains("choose \"Trust all\"") && err.contains("plugins: reload"), "{err}");
    let expected: &[(&str, &[Expected])] = &[
        (
            "claude-code",
            &[
                ("SessionStart", "memory-recall", json!(5)),
                ("UserPromptSubmit", "memory-recall", json!(5)),
                ("SubagentStart", "memory-recall", json!(5)),
                ("PreToolUse", "memory-recall", json!(5)),
                ("Stop", "memory-capture", json!(10)),
                ("SessionEnd", "memory-capture", json!(10)),
            ],
        ),
        (
            "codex",
            &[
                ("SessionStart", "memory-recall", json!(5)),
                ("UserPromptSubmit", "memory-recall", json!(5)),
                ("PreToolUse", "memory-recall", json!(5)),
                ("Stop", "memory-capture", json!(10)),
                ("Interrupt", "memory-capture", json!(3)),
                ("SessionEnd", "memory-capture", json!(3)),
            ],
        ),
        (
            "copilot",
            &[
                ("sessionStart", "memory-recall", json!(5)),
                ("userPromptSubmitted", "memory-recall", json!(5)),
                ("preToolUse", "memory-recall", json!(5)),
                ("preCompact", "memory-recall", json!(5)),
                ("agentStop", "memory-capture", json!(10)),
                ("sessionEnd", "memory-capture", json!(10)),
            ],
        ),
        ("cursor", &[("stop", "memory-capture", Value::Null), ("sessionEnd", "memory-capture", Value::Null)]),
        (
            "gemini",
            &[
                ("SessionStart", "memory-recall", json!(5000)),
                ("BeforeAgent", "memory-recall", json!(5000)),
                ("AfterTool", "memory-recall", json!(5000)),
                ("AfterAgent", "memory-capture", json!(10_000)),
                ("SessionEnd", "memory-capture", json!(10_000)),
            ],
        ),
        (
            "qwen-code",
            &[
                ("SessionStart", "memory-recall", json!(5)),
                ("UserPromptSubmit", "memory-recall", json!(5)),
                ("SubagentStart", "memory-recall", json!(5)),
                ("PostToolUse", "memory-recall", json!(5)),
                ("Stop", "memory-capture", json!(10)),
                ("SessionEnd", "memory-capture", json!(10)),
            ],
        ),
    ];
    for ((harness, file), (name, events)) in SETTINGS.iter().zip(expected) {
        assert_eq!(harness, name);
        let settings = read(sandbox.home().join(file));
        assert_eq!(settings["hooks"].as_object().unwrap().len(), events.len(), "{harness}");
        for (event, run, timeout) in *events {
            // Without it, once the program is gone, Gemini CLI blocks every prompt, and Copilot CLI every call of a tool.
            let end = if matches!(*harness, "copilot" | "gemini") { " || true" } else { "" };
            let command = format!("{} --harness {harness}{end}", program(run));
            assert_eq!(commands(&settings, event), [(command, timeout.clone())], "{harness} {event}");
        }
        let version = if matches!(*harness, "cursor" | "copilot") { json!(1) } else { Value::Null };
        assert_eq!(settings["version"], version, "{harness}");
    }
    let plugin = fs::read_to_string(sandbox.home().join(".config/opencode/plugin/agent-memory.js")).unwrap();
    assert!(plugin.contains(&format!("const CAPTURE = \"{}\"\n", program("memory-capture"))), "{plugin}");
    assert!(plugin.contains(&format!("const RECALL = \"{}\"\n", program("memory-recall"))), "{plugin}");
    let plugin = fs::read_to_string(sandbox.home().join(".config/amp/plugins/agent-memory.ts")).unwrap();
    assert!(plugin.contains(&format!("const CAPTURE = \"{}\"\n", program("memory-capture"))), "{plugin}");
    assert!(sandbox.home().join(".config/amp/skills/agent-memory/SKILL.md").is_file());
}

#[test]
fn a_harness_is_found_by_its_directory_or_named() {
    let sandbox = Sandbox::new();
    let (code, out, _) = install(&sandbox, &[]);
    assert!(
        code == Some(0) && out.starts_with("no harness was found; name one with --harness: amp, "),
        "{out}"
    );
    fs::create_dir(sandbox.home().join(".gemini")).unwrap();
    let file = sandbox.home().join(".gemini/settings.json");
    let line = |result: &str| format!("gemini\t{result}\t{}\n", file.display());
    assert_eq!(install(&sandbox, &[]), (Some(0), line("written"), String::new()));
    assert_eq!(install(&sandbox, &[]), (Some(0), line("unchanged"), String::new()));
    assert!(!sandbox.home().join(".codex").exists());

    // By name it is made, and goes again, unless the program has been there meanwhile.
    let codex = sandbox.home().join(".codex");
    assert_eq!(install(&sandbox, &["--harness", "codex"]).0, Some(0));
    assert!(codex.join("hooks.json").is_file());
    assert_eq!(uninstall(&sandbox, &["--harness", "codex"]).0, Some(0));
    assert!(!codex.exists() && file.is_file());
    assert_eq!(install(&sandbox, &["--harness", "codex"]).0, Some(0));
    sandbox.write(&codex.join("config.toml"), "");
    assert_eq!(uninstall(&sandbox, &[]).0, Some(0));
    assert!(codex.join("config.toml").is_file() && !codex.join("hooks.json").exists() && !file.exists());
    assert!(!sandbox.home().join(".local/state/agent-memory").exists());
    assert_eq!(install(&sandbox, &["--harness", "gemini"]).0, Some(0));

    let (code, _, err) = install(&sandbox, &["--harness", "emacs"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("option \"--harness\" takes amp, claude-code, "), "{err}");
}

#[test]
fn a_variable_moves_the_settings_with_the_program() {
    let sandbox = Sandbox::new();
    let elsewhere = sandbox.home().join("claude dir");
    fs::create_dir(&elsewhere).unwrap();
    let mut command = sandbox.command("memory-install-hooks");
    command.env("CLAUDE_CONFIG_DIR", &elsewhere);
    assert_eq!(said(&mut command).0, Some(0));
    assert!(elsewhere.join("settings.json").is_file() && !sandbox.home().join(".claude").exists());
}

/// Each file gets the same text, whatever its program accepts.
#[test]
fn in_twice_and_out_again_gives_the_old_bytes() {
    let forms: &[&[u8]] = &[
        b"",
        b"\n",
        b"{}",
        b"{}\n",
        b"{\n}\n",
        b"{ \n\n }",
        br#"{"a":1}"#,
        br#"{"a": [1, 2]}"#,
        b"{\n  \"a\": 1\n}",
        b"{\n  \"a\": 1\n}\n",
        b"{\n  \"a\": 1,\n}\n",
        b"{\n  // why\n  \"a\": 1 // one\n}\n",
        b"/* top */\n{\n    \"a\": 1, // one\n    /* end */\n}\n// after\n",
        b"{\n\t\"a\": 1,\n\t\"hooks\": {\n\t\t\"Stop\": []\n\t}\n}\n",
        b"{\r\n  \"a\": 1,\r\n  \"b\": {\r\n  }\r\n}\r\n",
        b"\xef\xbb\xbf{\r\n  \"a\": 1\r\n}",
        b"\xef\xbb\xbf",
        b"{\"hooks\": {}}",
        b"{\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}\n    ]\n  }\n}\n",
        b"{\n  \"hooks\": {\n    \"SessionEnd\": [\n      {\n        \"matcher\": \"x\",\n        \"hooks\": [\n          {\"type\": \"command\", \"command\": \"say end\"}, // mine\n        ],\n      },\n    ],\n  },\n}",
        b"{\n  \"version\": 1,\n  \"hooks\": {\n    \"stop\": [{\"command\": \"a\"}],\n    \"sessionEnd\": [ {\"bash\": \"b\"} ]\n  }\n}\n",
        b"{\"\xc3\xbc\": \"\\u00fc \xe2\x80\xa6 // no comment\", \"n\": 1e3,\n\n\n\"hooks\" : { \"Notification\" : [ ] } }\n",
        b"{\n        \"deep\": {\n                \"er\": [\n                ]\n        }\n}",
        b"{\n\"flat\": 1,\n\"hooks\": {\n\"AfterAgent\": [\n],\n\"agentStop\": [\n]\n}\n}\n",
    ];
    assert!(forms.len() >= 20);
    for form in forms {
        let shown = String::from_utf8_lossy(form);
        let sandbox = home();
        for (_, file) in SETTINGS {
            sandbox.write(&sandbox.home().join(file), form);
            set_mode(&sandbox.home().join(file), 0o640);
        }
        let before = tree(&sandbox);
        let (code, _, err) = install(&sandbox, &[]);
        assert_eq!(code, Some(0), "{shown}: {err}");
        let with = tree(&sandbox);
        for (harness, file) in SETTINGS {
            let path = sandbox.home().join(file);
            assert_ne!(with[&path], before[&path], "{harness}: {shown}");
            assert_eq!(mode(&path), 0o640, "{harness}: {shown}");
        }
        let (code, out, _) = install(&sandbox, &[]);
        assert_eq!(code, Some(0));
        assert!(out.lines().all(|line| line.contains("\tunchanged\t")), "{shown}: {out}");
        assert_eq!(tree(&sandbox), with, "{shown}");
        let (code, _, err) = uninstall(&sandbox, &[]);
        assert_eq!(code, Some(0), "{shown}: {err}");
        let after = tree(&sandbox);
        assert_eq!(
            after.keys().collect::<Vec<_>>(),
            before.keys().collect::<Vec<_>>(),
            "{shown}: other files than before"
        );
        for (path, bytes) in &before {
            let text =
                |bytes: &Option<Vec<u8>>| bytes.clone().map(|b| String::from_utf8_lossy(&b).into_owned());
            assert_eq!(text(&after[path]), text(bytes), "{}: {shown}", path.display());
        }
        assert_eq!(uninstall(&sandbox, &[]), (Some(0), "no hooks were found\n".to_owned(), String::new()));
    }
}

#[test]
fn what_was_made_goes_and_a_person_s_directory_stays() {
    let sandbox = home();
    fs::create_dir(sandbox.home().join(".config/amp/skills")).unwrap();
    let before = tree(&sandbox);
    assert_eq!(install(&sandbox, &[]).0, Some(0));
    let files = tree(&sandbox).values().flatten().count();
    assert_eq!(files, SETTINGS.len() + 3);
    let (code, out, err) = uninstall(&sandbox, &[]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.lines().count() == files && out.lines().all(|line| line.contains("\tremoved\t")), "{out}");
    assert_eq!(tree(&sandbox), before);
    assert!(!sandbox.home().join(".local/state/agent-memory").exists());
}

#[test]
fn a_link_stays_and_what_it_leads_to_is_changed() {
    let sandbox = Sandbox::new();
    let real = sandbox.home().join("dotfiles/claude.json");
    sandbox.write(&real, "{\n  \"a\": 1\n}\n");
    let link = sandbox.home().join(".claude/settings.json");
    symlink(&real, link.clone());
    assert_eq!(install(&sandbox, &[]).0, Some(0));
    assert!(link.is_symlink() && read(&real)["hooks"]["Stop"].is_array());
    assert_eq!(uninstall(&sandbox, &[]).0, Some(0));
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "{\n  \"a\": 1\n}\n");

    fs::remove_file(&real).unwrap();
    let (code, _, err) = install(&sandbox, &[]);
    assert!(code == Some(1) && err.contains("is a link that leads nowhere"), "{err}");
}

#[test]
fn a_file_that_is_not_ours_to_change_is_left_and_the_lines_are_printed() {
    let sandbox = Sandbox::new();
    let store = sandbox.home().join("nix/store");
    let text = "{\"a\": 1}\n";
    for (place, why) in [
        (sandbox.home().join(".claude/settings.json"), "is read-only"),
        (store.join("x-settings/settings.json"), "belongs to Nix"),
    ] {
        let link = sandbox.home().join(".claude/settings.json");
        let _ = fs::remove_file(&link);
        sandbox.write(&place, text);
        set_mode(&place, 0o444);
        if place != link {
            symlink(&place, link.clone());
        }
        let mut command = sandbox.command("memory-install-hooks");
        let (code, out, err) = said(command.env("NIX_STORE_DIR", &store));
        assert_eq!(code, Some(1), "{err}");
        assert!(
            err.contains(&format!("{why}; it was left alone")) && err.contains("add the lines by hand"),
            "{err}"
        );
        let (line, lines) = out.split_once('\n').unwrap();
        assert_eq!(line, format!("claude-code\tleft\t{}", link.display()));
        let lines: Value = serde_json::from_str(lines).unwrap();
        assert_eq!(lines["hooks"].as_object().unwrap().len(), 6);
        assert_eq!(fs::read_to_string(&place).unwrap(), text);

        let mut command = sandbox.command("memory-install-hooks");
        let (_, out, _) = said(command.arg("--json").env("NIX_STORE_DIR", &store));
        let out: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&out["files"][0]["result"], &out["files"][0]["why"]), (&json!("left"), &json!(why)));
        // With the lines in it, nothing is left to do.
        set_mode(&place, 0o644);
        sandbox.write(&place, serde_json::to_vec(&lines).unwrap());
        set_mode(&place, 0o444);
        let mut command = sandbox.command("memory-install-hooks");
        let (code, out, _) = said(command.env("NIX_STORE_DIR", &store));
        assert!(code == Some(0) && out.contains("\tunchanged\t"), "{out}");
        let (code, _, err) = said(sandbox.command("memory-uninstall-hooks").env("NIX_STORE_DIR", &store));
        assert!(code == Some(1) && err.contains("remove our lines by hand"), "{err}");
        set_mode(&place, 0o644);
    }
}

#[test]
fn a_read_only_directory_is_left() {
    let sandbox = Sandbox::new();
    let dir = sandbox.home().join(".claude");
    fs::create_dir(&dir).unwrap();
    set_mode(&dir, 0o555);
    let (code, out, err) = install(&sandbox, &[]);
    set_mode(&dir, 0o755);
    assert!(
        code == Some(1) && out.contains("\tleft\t") && err.contains("a directory that is read-only"),
        "{err}"
    );
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn broken_settings_are_refused_with_their_place_and_the_others_are_written() {
    for (text, place) in [
        (&b"{\n  \"a\": 1\n  \"b\": 2\n}"[..], "line 2, column 9: expected comma"),
        (b"{\n  \"a\": tru\n}", "line 2, column 8: unexpected word"),
        (b"{\n  \"hooks\": \"none\"\n}", "line 2, column 12: \"hooks\" is not an object"),
        (b"{\n \"a\": \"\xff\"\n}", "line 2, column 8: not valid UTF-8"),
        (b"[]", "line 1, column 1: the file is not an object"),
    ] {
        let sandbox = home();
        let file = sandbox.home().join(".gemini/settings.json");
        sandbox.write(&file, text);
        for program in ["memory-install-hooks", "memory-uninstall-hooks"] {
            let (code, out, err) = said(&mut sandbox.command(program));
            if program == "memory-install-hooks" {
                let expected = format!("{program}: \"{}\" {place}", file.display());
                assert!(code == Some(1) && err.contains(&expected), "{err}");
                assert!(out.lines().count() == SETTINGS.len() + 2 && !out.contains("gemini"), "{out}");
            }
            assert_eq!(fs::read(&file).unwrap(), text);
        }
        assert!(!sandbox.home().join(".claude/settings.json").exists());
    }
}

#[test]
fn a_program_that_takes_no_comments_is_named() {
    let sandbox = Sandbox::new();
    sandbox.write(&sandbox.home().join(".claude/settings.json"), "{\n  // mine\n  \"a\": 1\n}\n");
    sandbox.write(&sandbox.home().join(".gemini/settings.json"), "{\n  // mine\n  \"a\": 1,\n}\n");
    let (code, _, err) = install(&sandbox, &[]);
    assert_eq!(code, Some(0));
    assert!(err.contains("Warning: Claude Code cannot read \""), "{err}");
    assert!(err.contains("settings.json\": line 2, column 3: comments are not allowed"), "{err}");
    assert!(
        err.contains("Warning: Gemini CLI cannot read \"") && err.contains("trailing commas are not allowed")
    );
}

#[test]
fn printing_changes_nothing() {
    let sandbox = home();
    let before = tree(&sandbox);
    let (code, out, err) = install(&sandbox, &["--print"]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out.lines().filter(|line| line.starts_with("# /")).count(), SETTINGS.len() + 3, "{out}");
    let (_, json, _) = install(&sandbox, &["--print", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let files = json["files"].as_array().unwrap();
    assert!(files.iter().all(|file| file["lines"].is_string() && file["result"] == "wanted"), "{json}");
    assert_eq!(tree(&sandbox), before);
    assert!(!sandbox.home().join(".local").exists());
}

#[test]
fn the_commands_use_the_path_that_the_person_reaches() {
    let sandbox = home();
    let profile = sandbox.home().join("my profile/bin");
    for name in ["memory-capture", "memory-install-hooks", "memory-recall"] {
        symlink(program(name), profile.join(name));
    }
    let path = format!("{}:/usr/bin:/bin", profile.display());
    let run = || said(sandbox.command("memory-install-hooks").env("PATH", &path));
    assert_eq!(run().0, Some(0));
    let file = sandbox.home().join(".claude/settings.json");
    let expected = format!("'{}/memory-capture' --harness claude-code", profile.display());
    assert_eq!(commands(&read(&file), "Stop"), [(expected, json!(10))]);
    assert!(run().1.lines().all(|line| line.contains("\tunchanged\t")));

    // From elsewhere the older entries are replaced, not doubled.
    assert_eq!(install(&sandbox, &[]).0, Some(0));
    let expected = format!("{} --harness claude-code", program("memory-capture"));
    assert_eq!(commands(&read(&file), "Stop"), [(expected, json!(10))]);
    assert_eq!(uninstall(&sandbox, &[]).0, Some(0));
    assert!(!file.exists());
}

#[test]
fn hooks_of_the_manual_as_it_was_are_replaced() {
    let sandbox = Sandbox::new();
    let file = sandbox.home().join(".codex/hooks.json");
    sandbox.write(
        &file,
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "memory-capture --harness codex", "timeout": 10}]}],
                      "Interrupt": [{"hooks": [{"type": "command", "command": "memory-capture --harness codex", "timeout": 10}]}]}}"#,
    );
    assert_eq!(install(&sandbox, &[]).0, Some(0));
    let settings = read(&file);
    let command = format!("{} --harness codex", program("memory-capture"));
    assert_eq!(commands(&settings, "Stop"), [(command.clone(), json!(10))]);
    assert_eq!(commands(&settings, "Interrupt"), [(command, json!(3))]);
}

#[test]
fn copilots_file_with_our_hooks_is_found_by_any_name() {
    let sandbox = Sandbox::new();
    let own = sandbox.home().join(".copilot/hooks/mine.json");
    sandbox.write(
        &own,
        r#"{"version": 1, "hooks": {"sessionEnd": [{"type": "command", "bash": "memory-capture --harness copilot"}]}}"#,
    );
    assert_eq!(install(&sandbox, &[]).0, Some(0));
    assert!(!sandbox.home().join(".copilot/hooks/agent-memory.json").exists());
    assert_eq!(commands(&read(&own), "sessionEnd").len(), 1);
    assert_eq!(read(&own)["hooks"].as_object().unwrap().len(), 6);
}

#[test]
fn a_file_of_somebody_else_under_our_name_stays() {
    let sandbox = Sandbox::new();
    let file = sandbox.home().join(".config/opencode/plugins/agent-memory.js");
    sandbox.write(&file, "export const Other = () => {}\n");
    let (code, _, err) = install(&sandbox, &[]);
    assert!(code == Some(1) && err.contains("was not written by memory-install-hooks"), "{err}");
    assert_eq!(uninstall(&sandbox, &[]).0, Some(0));
    assert_eq!(fs::read_to_string(&file).unwrap(), "export const Other = () => {}\n");
}

#[test]
fn two_at_once_install_once() {
    let sandbox = home();
    sandbox.write(&sandbox.home().join(".claude/settings.json"), "{\n  \"a\": 1\n}\n");
    let before = tree(&sandbox);
    let children: Vec<_> = (0..8)
        .map(|_| {
            let mut command = sandbox.std_command("memory-install-hooks");
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    for (harness, file) in SETTINGS {
        let settings = read(sandbox.home().join(file));
        for event in settings["hooks"].as_object().unwrap().keys() {
            assert_eq!(commands(&settings, event).len(), 1, "{harness} {event}");
        }
    }
    assert_eq!(uninstall(&sandbox, &[]).0, Some(0));
    assert_eq!(tree(&sandbox), before);
}

#[test]
fn a_broken_record_is_named() {
    let sandbox = home();
    let record = sandbox.home().join(".local/state/agent-memory/hooks.json");
    sandbox.write(&record, "{");
    let (code, _, err) = install(&sandbox, &[]);
    assert!(code == Some(1) && err.contains("hooks.json\" cannot be read"), "{err}");
    assert!(!sandbox.home().join(".claude/settings.json").exists());
}

#[test]
fn whatever_sync_fails_while_hooks_are_installed_uninstall_leaves_nothing_of_ours() {
    if !["/usr/bin/strace", "/bin/strace"].iter().any(|path| Path::new(path).exists()) {
        return crate::support::say("strace is not here: nothing is failed");
    }
    for number in 1..10 {
        let sandbox = Sandbox::new();
        fs::create_dir_all(sandbox.home().join(".claude")).unwrap();
        let before = tree(&sandbox);
        let run = sandbox.std_command("memory-install-hooks");
        let mut traced = std::process::Command::new("strace");
        traced.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync", "-e"]);
        traced.arg(format!("inject=fsync:error=EIO:when={number}")).arg(run.get_program());
        traced.env_clear().envs(present(run.get_envs()));
        traced.current_dir(sandbox.work()).output().unwrap();
        let (code, _, err) = uninstall(&sandbox, &[]);
        assert_eq!((code, tree(&sandbox) == before), (Some(0), true), "sync {number}: {err}");
    }
}

#[test]
fn the_copy_of_the_settings_that_a_killed_install_left_is_removed_and_no_other() {
    let sandbox = Sandbox::new();
    let dir = sandbox.home().join(".claude");
    sandbox.write(&dir.join("settings.json"), "{\"model\": \"x\"}\n");
    assert_eq!(install(&sandbox, &[]).0, Some(0));
    let ours = fs::read(dir.join("settings.json")).unwrap();
    assert_eq!(uninstall(&sandbox, &[]).0, Some(0));
    let copies = [
        (".settings.json.aaaaaa", &ours[..]),
        (".settings.json.bbbbbb", &ours[..ours.len() / 2]),
        (".settings.json.cccccc", b"{\"somebody's\": 1}"),
    ];
    for (name, bytes) in copies {
        sandbox.write(&dir.join(name), bytes);
        crate::support::store::age(&dir.join(name), 3600);
    }
    // One that is being written.
    sandbox.write(&dir.join(".settings.json.dddddd"), &ours);
    assert_eq!(install(&sandbox, &[]).0, Some(0));
    let there = [".settings.json.cccccc", ".settings.json.dddddd", "settings.json"];
    assert_eq!(crate::support::store::names(&dir), there);
}

#[test]
fn a_record_of_a_newer_version_is_refused_and_stays() {
    let sandbox = home();
    assert_eq!(install(&sandbox, &[]).0, Some(0));
    let path = sandbox.home().join(".local/state/agent-memory/hooks.json");
    let newer = fs::read_to_string(&path).unwrap().replace("\"version\": 1", "\"version\": 7");
    sandbox.write(&path, &newer);
    for (code, _, err) in [install(&sandbox, &[]), uninstall(&sandbox, &[])] {
        assert!(code != Some(0) && err.contains("hooks.json\" is of version 7"), "{err}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), newer);
}
