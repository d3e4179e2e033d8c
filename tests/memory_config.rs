//! `memory-config`: path, init and show; which file is used, and what an untrusted one may set.

use crate::support::terminal::Terminal;
use crate::support::timers::Kit;
use crate::support::{
    Said, Sandbox, binary, closed_pipe, eventually, full_disk, mode, said, set_mode, symlink,
};
use assert_cmd::Command;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::PathBuf;

fn own(sandbox: &Sandbox) -> PathBuf {
    sandbox.home().join(".config/agent-memory/config.json")
}

fn here(sandbox: &Sandbox) -> PathBuf {
    sandbox.work().join("memory.config.json")
}

fn command(sandbox: &Sandbox, args: &[&str]) -> Command {
    let mut command = sandbox.command("memory-config");
    command.args(args);
    command
}

/// What `show --json` prints, and stderr.
fn shown(command: &mut Command) -> (Value, String) {
    let (code, out, err) = said(command.args(["show", "--json"]));
    assert_eq!(code, Some(0), "{err}");
    (serde_json::from_str(&out).unwrap(), err)
}

fn show(sandbox: &Sandbox) -> (Value, String) {
    shown(&mut command(sandbox, &[]))
}

fn value<'a>(shown: &'a Value, key: &str) -> &'a Value {
    &shown[key]["value"]
}

#[test]
fn without_a_file_the_defaults_are_used() {
    let sandbox = Sandbox::new();
    let (all, err) = show(&sandbox);
    assert_eq!((all.as_object().unwrap().len(), err.as_str()), (30, ""));
    for (key, setting) in all.as_object().unwrap() {
        assert_eq!(setting["source"], "default", "{key}");
    }
    assert_eq!(*value(&all, "storage.root"), json!(sandbox.home().join(".local/share/agent-memory")));
    assert_eq!(*value(&all, "llm.command"), Value::Null);
    assert_eq!(*value(&all, "llm.timeoutSeconds"), 600);
    assert_eq!(fs::read_dir(sandbox.home()).unwrap().count(), 0, "show makes nothing");

    let xdg = shown(command(&sandbox, &[]).env("XDG_DATA_HOME", "/data")).0;
    assert_eq!(*value(&xdg, "storage.root"), "/data/agent-memory");
    fs::create_dir(sandbox.home().join("commonplace")).unwrap();
    let root = sandbox.home().join("commonplace/01_files/_utilities/agent-memories");
    assert_eq!(*value(&show(&sandbox).0, "storage.root"), json!(root));
}

#[test]
fn show_prints_a_line_with_tabs_for_each_setting() {
    let sandbox = Sandbox::new();
    sandbox.write(&own(&sandbox), r#"{"llm": {"command": "a\tb"}, "trustedDirectories": ["~/x"]}"#);
    let (code, out, err) = said(&mut command(&sandbox, &["show"]));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.lines().all(|line| line.split('\t').count() == 3), "{out}");
    let file = own(&sandbox).display().to_string();
    let listed = sandbox.home().join("x");
    for line in [
        format!("llm.command\t\"a\\tb\"\t{file}\n"),
        "storage.autoCommit\ttrue\tdefault\n".to_owned(),
        format!("trustedDirectories\t[\"{}\"]\t{file}\n", listed.display()),
    ] {
        assert!(out.contains(&line), "{out}");
    }
}

#[test]
fn only_the_first_file_found_is_used() {
    let sandbox = Sandbox::new();
    let calls = |n: u64| format!("{{\"llm\": {{\"maxCallsPerRun\": {n}}}}}");
    sandbox.write(&own(&sandbox), r#"{"llm": {"maxCallsPerRun": 4, "maxCallsPerDay": 44}}"#);
    sandbox.file("memory.config.json", calls(3));
    sandbox.file("named.json", calls(2));
    sandbox.file("flag.json", calls(1));
    let run = |args: &[&str], vars: &[(&str, &str)]| {
        let all = shown(command(&sandbox, args).envs(vars.iter().copied())).0;
        let path = said(command(&sandbox, args).arg("path").envs(vars.iter().copied())).1;
        let name = path.trim().rsplit('/').next().unwrap().to_owned();
        (name, value(&all, "llm.maxCallsPerRun").clone(), value(&all, "llm.maxCallsPerDay").clone())
    };
    let named = ("AGENT_MEMORY_CONFIG", "named.json");
    let trust = ("AGENT_MEMORY_TRUST", "1");
    assert_eq!(run(&["--config", "flag.json"], &[named, trust]), ("flag.json".into(), json!(1), json!(100)));
    assert_eq!(run(&[], &[named, trust]), ("named.json".into(), json!(2), json!(100)));
    assert_eq!(run(&[], &[trust]), ("memory.config.json".into(), json!(3), json!(100)));
    assert_eq!(run(&[], &[("AGENT_MEMORY_TRUST", "yes")]), ("config.json".into(), json!(3), json!(44)));
    // In an agent's shell it is nobody's word: what it runs may have set it.
    assert_eq!(run(&[], &[trust, ("CLAUDECODE", "1")]), ("config.json".into(), json!(3), json!(44)));
    assert_eq!(run(&[], &[named, ("CLAUDECODE", "1")]), ("named.json".into(), json!(2), json!(100)));
    fs::remove_file(here(&sandbox)).unwrap();
    assert_eq!(run(&[], &[]), ("config.json".into(), json!(4), json!(44)));
    let xdg = sandbox.home().join("xdg");
    sandbox.write(&xdg.join("agent-memory/config.json"), calls(5));
    let xdg = ("XDG_CONFIG_HOME", xdg.to_str().unwrap());
    assert_eq!(run(&[], &[xdg]), ("config.json".into(), json!(5), json!(100)));
}

#[test]
fn a_named_file_that_is_missing_or_wrong_is_exit_two() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.work().join("dir")).unwrap();
    sandbox.file("big.json", vec![b' '; (1 << 20) + 1]);
    for (file, what) in [
        ("none.json", "config file not found: \""),
        ("dir", "failed to read config file: \""),
        ("big.json", "big.json\" is larger than 1 MiB"),
    ] {
        for (args, variable) in [(&["--config", file][..], None), (&[], Some(file))] {
            let mut show = command(&sandbox, args);
            show.arg("show").envs(variable.map(|file| ("AGENT_MEMORY_CONFIG", file)));
            let (code, out, err) = said(&mut show);
            assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
            assert!(err.contains(what) && err.lines().count() == 1, "{err}");
        }
    }
    assert_eq!(said(&mut command(&sandbox, &["path", "--config", "none.json"])).0, Some(2));
    assert_eq!(said(&mut command(&sandbox, &["path", "--config", ""])).0, Some(1));
}

#[test]
fn a_link_that_leads_nowhere_is_no_configuration_and_is_reported() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(own(&sandbox).parent().unwrap()).unwrap();
    symlink("/nowhere", own(&sandbox));
    let (code, out, err) = said(&mut command(&sandbox, &["show"]));
    let file = own(&sandbox).display().to_string();
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("storage.root") && !out.contains(&file), "{out}");
    let expected = format!(
        "Warning: config file \"{file}\" is a link to a file that does not exist; it is ignored; remove it: rm \"{file}\"\n"
    );
    assert_eq!(err, expected);
    let (code, _, err) = said(&mut command(&sandbox, &["init"]));
    assert!(code == Some(1) && err.contains("a link that leads nowhere; remove it"), "{code:?} {err}");
    // Where it is named, it must be there.
    let (code, _, err) = said(&mut command(&sandbox, &["show", "--config", &file]));
    assert!(code == Some(2) && err.contains("No such file"), "{code:?} {err}");
}

#[test]
fn a_command_that_is_the_path_of_a_presets_program_says_so() {
    let sandbox = Sandbox::new();
    sandbox.write(&own(&sandbox), r#"{"llm": {"command": "/opt/x/amp"}}"#);
    let (code, _, err) = said(&mut command(&sandbox, &["show"]));
    let expected = "llm.command is the program of preset \"amp\" and runs as: /opt/x/amp -x\n";
    assert_eq!((code, err.as_str()), (Some(0), expected));
    sandbox.write(&own(&sandbox), r#"{"llm": {"command": "/opt/x/amp -x"}}"#);
    assert_eq!(said(&mut command(&sandbox, &["show"])).2, "");
}

#[test]
fn a_wrong_file_is_reported_with_line_and_key_and_its_path_is_still_printed() {
    let sandbox = Sandbox::new();
    sandbox.write(&own(&sandbox), "{\r\n \"storage\": {\r\n  \"rooot\": \"x\"\r\n}}");
    let file = own(&sandbox).display().to_string();
    let expected = format!(
        "memory-config: \"{file}\" line 3, storage.rooot: unknown key; did you mean \"storage.root\"?\n"
    );
    assert_eq!(said(&mut command(&sandbox, &["show"])), (Some(2), String::new(), expected));
    assert_eq!(said(&mut command(&sandbox, &["path"])), (Some(0), file + "\n", String::new()));
    let (code, _, err) = said(&mut command(&sandbox, &["show", "--json"]));
    let error: Value = serde_json::from_str(&err).unwrap();
    assert_eq!((code, &error["error"]["kind"], &error["exit_code"]), (Some(2), &json!("config"), &json!(2)));
}

#[test]
fn path_prints_where_the_file_would_be() {
    let sandbox = Sandbox::new();
    let (code, out, err) = said(&mut command(&sandbox, &["path"]));
    assert_eq!((code, out), (Some(0), format!("{}\n", own(&sandbox).display())));
    assert_eq!(err, "there is no file yet, so the defaults are used; write one with: memory-config init\n");
    sandbox.file("memory.config.json", "{}");
    let (_, out, err) = said(&mut command(&sandbox, &["path"]));
    assert_eq!(out, format!("{}\n", own(&sandbox).display()));
    let stranger = format!("\"{}\" is not trusted, and only lowers caps of:\n", here(&sandbox).display());
    assert!(err.starts_with(&stranger), "{err}");
}

#[test]
fn an_untrusted_file_stays_in_its_directory_and_only_lowers_limits() {
    let sandbox = Sandbox::new();
    sandbox.write(
        &own(&sandbox),
        r#"{"llm": {"command": "mine", "maxCallsPerDay": 50}, "agentsMd": {"targets": ["~/.codex/AGENTS.md"]}}"#,
    );
    let outside = sandbox.home().join("x.md");
    symlink(sandbox.home(), sandbox.work().join("out"));
    symlink(&outside, sandbox.work().join("dangling.md"));
    let file = json!({
        "storage": {"root": "../notes", "autoCommit": true, "commitHook": "evil"},
        "llm": {"command": "evil", "presets": {"mine": "evil"}, "timeoutSeconds": 60, "maxPromptBytes": 300_000,
                "maxReplyBytes": 4_000_000, "maxCallsPerRun": 1, "maxCallsPerDay": 51},
        "schedule": {"defragIntervalHours": 1},
        "agentsMd": {"targets": ["AGENTS.md", "docs/new.md", outside, "out/x.md", "dangling.md", ".git/x.md",
                                 "new/../../x.md", "run.sh", {"path": "b.md", "repo": "h/o/n"}]},
        "harnesses": {"amp": {"readCommand": "evil {threadId}"}},
        "redact": {"enabled": false},
        "trustedDirectories": ["."],
        "nonsense": 1
    });
    sandbox.file("memory.config.json", file.to_string());
    let (all, err) = show(&sandbox);
    let left_out = err
        .split_once("so these settings in it are ignored: ")
        .unwrap()
        .1
        .split_once("; to trust it")
        .unwrap()
        .0;
    assert_eq!((err.lines().count(), left_out.split(", ").count()), (1, 10), "{err}");
    assert!(left_out.ends_with(" more"), "{left_out}");
    assert!(!format!("{all}{err}").contains("evil"), "{all}{err}");
    let own_target = json!([{"path": sandbox.home().join(".codex/AGENTS.md")}]);
    assert_eq!(*value(&all, "agentsMd.targets"), own_target);
    for (key, expected) in [
        ("llm.command", json!("mine")),
        ("llm.timeoutSeconds", json!(60)),
        ("llm.maxPromptBytes", json!(200_000)),
        ("llm.maxCallsPerRun", json!(1)),
        ("llm.maxCallsPerDay", json!(50)),
        ("storage.root", json!(sandbox.home().join(".local/share/agent-memory"))),
        ("storage.autoCommit", json!(true)),
        ("redact.enabled", json!(true)),
    ] {
        assert_eq!(*value(&all, key), expected, "{key}");
    }
    let file = here(&sandbox).display().to_string();
    assert_eq!(all["llm.maxCallsPerRun"]["source"], format!("{file} (not trusted)"));
    assert_eq!(all["agentsMd.targets"]["source"], own(&sandbox).display().to_string());
}

#[test]
fn an_untrusted_file_chooses_neither_the_store_nor_a_target() {
    let sandbox = Sandbox::new();
    symlink(sandbox.home(), sandbox.work().join("out"));
    for root in ["notes/deep", ".notes", "..", "out", "~/notes", "/", ".git/notes"] {
        let file = json!({"storage": {"root": root}, "agentsMd": {"targets": ["CLAUDE.md"]}});
        sandbox.file("memory.config.json", file.to_string());
        let (all, err) = show(&sandbox);
        assert!(
            err.contains("so these settings in it are ignored: agentsMd.targets, storage.root;"),
            "{root}: {err}"
        );
        assert!(err.lines().count() == 1 && err.contains("to trust it, set AGENT_MEMORY_TRUST=1"), "{err}");
        assert_eq!(all["storage.root"]["source"], "default", "{root}");
        assert_eq!(
            (value(&all, "storage.autoCommit"), value(&all, "agentsMd.targets")),
            (&json!(true), &json!([]))
        );
    }
}

#[test]
fn an_untrusted_file_never_causes_an_error() {
    let sandbox = Sandbox::new();
    for content in [&b""[..], b"{", b"[]", b"// x\n{}", b"\xff", &[b'['; 1 << 20], &[b' '; (1 << 20) + 1]] {
        sandbox.file("memory.config.json", content);
        let (all, err) = show(&sandbox);
        assert_eq!(all["storage.root"]["source"], "default");
        assert!(err.starts_with("Warning: ignored, and not trusted: ") && err.lines().count() == 1, "{err}");
    }
    fs::remove_file(here(&sandbox)).unwrap();
    fs::create_dir(here(&sandbox)).unwrap();
    assert_eq!(show(&sandbox).1.lines().count(), 1);
    fs::remove_dir(here(&sandbox)).unwrap();
    let many: Vec<String> = (0..40_000).map(|n| format!("\"\\u001b[31mk{n}\": 1")).collect();
    sandbox.file("memory.config.json", format!("{{{}}}", many.join(",")));
    let (_, err) = show(&sandbox);
    assert!(err.lines().count() == 1 && err.len() < 1000 && err.contains(" and 39990 more; "), "{err}");
    assert!(!err.contains('\u{1b}'));
}

#[test]
fn only_the_users_own_file_can_trust_a_directory() {
    let sandbox = Sandbox::new();
    sandbox.file("memory.config.json", r#"{"llm": {"command": "theirs"}, "trustedDirectories": ["/"]}"#);
    let is_trusted = || *value(&show(&sandbox).0, "llm.command") == "theirs";
    assert!(!is_trusted());
    let link = sandbox.home().join("link");
    symlink(sandbox.work(), &link);
    let parent = sandbox.work().parent().unwrap().to_path_buf();
    for (listed, expected) in [
        (json!([sandbox.work()]), true),
        (json!(["/nowhere", link]), true),
        (json!(["~/link"]), true),
        (json!([parent]), true),
        (json!([sandbox.home()]), false),
        (json!([sandbox.work().join("below")]), false),
        (json!([format!("{}x", sandbox.work().display())]), false),
        (json!([]), false),
    ] {
        sandbox.write(&own(&sandbox), json!({"trustedDirectories": listed}).to_string());
        assert_eq!(is_trusted(), expected, "{listed}");
    }
    sandbox.write(&own(&sandbox), json!({"trustedDirectories": [sandbox.work()]}).to_string());
    let (all, err) = show(&sandbox);
    assert_eq!(*value(&all, "trustedDirectories"), json!([]));
    assert!(err.contains("trustedDirectories only works in your own configuration"), "{err}");
    // Once trusted, it has to be valid.
    sandbox.file("memory.config.json", r#"{"nonsense": 1}"#);
    assert_eq!(said(&mut command(&sandbox, &["show"])).0, Some(2));
}

fn fake_programs(sandbox: &Sandbox, names: &[&str]) -> String {
    for name in names {
        let path = sandbox.home().join("bin").join(name);
        sandbox.write(&path, "#!/bin/sh\n");
        set_mode(&path, 0o755);
    }
    sandbox.home().join("bin").display().to_string()
}

#[test]
fn init_chooses_from_what_is_installed_and_says_so() {
    let sandbox = Sandbox::new();
    let path = fake_programs(&sandbox, &["llm", "gemini", "axe-run"]);
    sandbox.write(&sandbox.home().join(".config/amp/AGENTS.md"), "");
    fs::create_dir_all(sandbox.home().join(".gemini")).unwrap();
    fs::create_dir_all(sandbox.home().join(".codex/AGENTS.md")).unwrap();
    let (code, out, err) = said(command(&sandbox, &["init"]).env("PATH", &path));
    assert_eq!((code, out), (Some(0), format!("{}\n", own(&sandbox).display())));
    let expected = format!(
        "LLM command: gemini ({path}/gemini)\nAGENTS.md targets: ~/.config/amp/AGENTS.md, ~/.gemini/GEMINI.md\n\
         not a target: ~/.codex/AGENTS.md is not a file\n\
         nothing more was done, because this is no terminal: --yes installs the hooks of Amp, Codex, Gemini CLI, \
         --timers installs the timers\n"
    );
    assert_eq!(err, expected);
    let text = fs::read_to_string(own(&sandbox)).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap(),
        json!({"storage": {"root": "~/.local/share/agent-memory"}, "llm": {"command": "gemini"},
               "agentsMd": {"targets": ["~/.config/amp/AGENTS.md", "~/.gemini/GEMINI.md"]}})
    );
    assert_eq!(mode(&own(&sandbox)), 0o600);
    assert_eq!(show(&sandbox).1, "");

    fs::write(own(&sandbox), "mine").unwrap();
    let (code, out, err) = said(command(&sandbox, &["init"]).env("PATH", &path));
    assert_eq!((code, out.as_str()), (Some(1), ""));
    let expected = format!(
        "memory-config: config file already exists: \"{}\"; to install hooks all the same: memory-config init --yes, or \
         memory-install-hooks\n",
        own(&sandbox).display()
    );
    assert_eq!((err, fs::read_to_string(own(&sandbox)).unwrap().as_str()), (expected, "mine"));
}

#[test]
fn init_without_an_llm_says_how_to_set_one() {
    let sandbox = Sandbox::new();
    let path = fake_programs(&sandbox, &["axe-run"]);
    let init = |file: &str| said(command(&sandbox, &["init", "--config", file]).env("PATH", &path));
    let (code, out, err) = init("new/a.json");
    assert_eq!((code, out), (Some(0), format!("{}\n", sandbox.work().join("new/a.json").display())));
    assert_eq!(
        err,
        "LLM command: none found on PATH; set llm.command to a shell command that reads a prompt on stdin and prints \
         the answer\nAGENTS.md targets: no harness found; list your files under agentsMd.targets\n\
         nothing more was done, because this is no terminal: --timers installs the timers\n"
    );
    assert!(!own(&sandbox).exists());
    let written = fs::read_to_string(sandbox.work().join("new/a.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap()["llm"]["command"], Value::Null);
    // axe-run is only an LLM command if the preset's agent exists.
    sandbox.agent_file("librarian", "name = 'librarian'\nmodel = 'a/b'");
    let axe = "; the agent librarian has the tools that its file gives it, and logs its runs: see axe(7)\n";
    let said = init("b.json").2;
    assert!(said.starts_with(&format!("LLM command: axe ({path}/axe-run){axe}")), "{said}");
    fake_programs(&sandbox, &["amp"]);
    let amp = "; Amp keeps its tools and its context files, and records a thread on its server: see axe(7)\n";
    let said = init("c.json").2;
    assert!(said.starts_with(&format!("LLM command: amp ({path}/amp){amp}")), "{said}");
}

#[test]
fn wrong_arguments_are_quoted_in_the_error() {
    let sandbox = Sandbox::new();
    let cases: [(&[&str], &str); 5] = [
        (&[], "a command is required: path, init or show"),
        (&["shwo"], "unknown command \"shwo\"; "),
        (&["path", "x"], "unexpected argument \"x\""),
        (&["show", "--jsn"], "unknown option \"--jsn\"; did you mean \"--json\"?"),
        (&["show", "--config"], "option \"--config\" needs a value"),
    ];
    for (args, message) in cases {
        let (code, out, err) = said(&mut command(&sandbox, args));
        assert_eq!((code, out.as_str()), (Some(1), ""));
        assert!(err.starts_with(&format!("memory-config: {message}")) && err.lines().count() == 1, "{err}");
    }
    assert_eq!(said(&mut command(&sandbox, &["init", "--json"])).0, Some(1));
    let (code, _, err) = said(command(&sandbox, &["show"]).env_remove("HOME"));
    assert_eq!(code, Some(2));
    assert!(err.starts_with("memory-config: unable to determine data directory: "), "{err}");
    let with_root = json!({"storage": {"root": "/r"}}).to_string();
    sandbox.file("c.json", with_root);
    assert_eq!(said(command(&sandbox, &["show", "--config", "c.json"]).env_remove("HOME")).0, Some(0));
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_is_not() {
    let sandbox = Sandbox::new();
    for args in [&["path"][..], &["show"], &["show", "--json"], &["init"]] {
        let output = sandbox.std_command("memory-config").args(args).stdout(full_disk()).output().unwrap();
        assert_eq!(output.code(), Some(1), "{args:?}");
        assert!(output.err().contains("cannot write to stdout"), "{}", output.err());
        // init writes the file before it prints.
        let _ = fs::remove_file(own(&sandbox));
        let output = sandbox.std_command("memory-config").args(args).stdout(closed_pipe()).output().unwrap();
        assert_eq!(output.code(), Some(0), "{args:?}: {}", output.err());
    }
    assert!(own(&sandbox).is_file());
}

#[test]
fn one_command_leads_from_nothing_to_hooks() {
    let sandbox = Sandbox::new();
    let path = fake_programs(&sandbox, &["claude"]);
    for dir in [".claude", ".codex", ".copilot", ".qwen", ".config/opencode", ".cursor", ".pi/agent"] {
        fs::create_dir_all(sandbox.home().join(dir)).unwrap();
    }
    let init = |args: &[&str]| said(command(&sandbox, &[&["init"], args].concat()).env("PATH", &path));
    let (code, out, err) = init(&["--yes"]);
    assert_eq!((code, out), (Some(0), format!("{}\n", own(&sandbox).display())), "{err}");
    let targets = "~/.claude/CLAUDE.md, ~/.codex/AGENTS.md, ~/.copilot/copilot-instructions.md, \
                   ~/.config/opencode/AGENTS.md, ~/.pi/agent/AGENTS.md, ~/.qwen/QWEN.md";
    let home = sandbox.home().display().to_string();
    for line in [
        format!("LLM command: claude ({path}/claude)"),
        format!("AGENTS.md targets: {targets}"),
        format!("hooks of Claude Code: {home}/.claude/settings.json"),
        format!("hooks of Cursor: {home}/.cursor/hooks.json"),
        format!("hooks of opencode: {home}/.config/opencode/plugin/agent-memory.js"),
        "Codex runs only hooks that you trust, and \"codex exec\" skips the others silently: start codex once and choose \
         \"Trust all\""
            .to_owned(),
        "the next session of Claude Code, Codex, Copilot CLI, opencode, Qwen Code starts with the notes of its repository, \
         and each prompt brings those that answer it; its end queues it"
            .to_owned(),
        "the next session of Cursor is queued at its end".to_owned(),
        "to do: memory-install-cron makes notes of the queue every two hours; by hand: memory-consolidate".to_owned(),
    ] {
        assert!(err.lines().any(|said| said == line), "{line}\n\n{err}");
    }
    assert_eq!(err.matches("to do: ").count(), 1, "{err}");
    for file in [".claude/settings.json", ".codex/hooks.json", ".qwen/settings.json", ".cursor/hooks.json"] {
        assert!(
            fs::read_to_string(sandbox.home().join(file)).unwrap().contains("/memory-capture --harness ")
        );
    }
    assert!(!sandbox.home().join(".gemini").exists() && !sandbox.home().join(".config/systemd").exists());
    // The configuration that exists is kept, and the hooks are as they are.
    let before = fs::read_to_string(own(&sandbox)).unwrap();
    fs::write(own(&sandbox), before.replace("claude", "llm")).unwrap();
    let (code, _, err) = init(&["--yes"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(
        err.starts_with("the configuration exists and stays as it is: ") && err.contains(" (unchanged)"),
        "{err}"
    );
    assert_eq!(fs::read_to_string(own(&sandbox)).unwrap(), before.replace("claude", "llm"));
}

#[test]
fn timers_are_installed_only_when_asked_for() {
    let kit = Kit::new().with_crontab();
    fs::create_dir(kit.home.join(".claude")).unwrap();
    for program in ["memory-config", "memory-recall"] {
        let (from, to) = (binary("memory-config"), kit.bin.join(program));
        if fs::hard_link(&from, &to).is_err() {
            fs::copy(from, to).unwrap();
        }
    }
    let (code, _, err) = kit.run("memory-config", &["init", "--yes"]);
    assert_eq!((code, kit.crontab()), (Some(0), None), "{err}");
    let (code, out, err) = kit.run("memory-config", &["init", "--yes", "--timers"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(
        out.contains("crontab: memory-consolidate every 2 hours, memory-defrag every 24 hours\n"),
        "{out}"
    );
    assert!(String::from_utf8_lossy(&kit.crontab().unwrap()).contains("memory-consolidate"));
    assert!(!err.contains("memory-install-cron"), "{err}");
    // What fails stops nothing else, and all of it is said.
    fs::write(kit.home.join(".claude/settings.json"), "{").unwrap();
    kit.tool("crontab", "echo broken >&2; exit 1");
    let (code, _, err) = kit.run("memory-config", &["init", "--yes", "--timers"]);
    assert!(code == Some(1) && err.contains("settings.json") && err.contains("crontab"), "{err}");
    let sandbox = Sandbox::new();
    for flag in ["--yes", "--timers"] {
        let (code, _, err) = said(&mut command(&sandbox, &["show", flag]));
        assert!(code == Some(1) && err.contains(&format!("option \"{flag}\" is only for init")), "{err}");
    }
}

#[test]
fn on_a_terminal_init_asks() {
    for (typed, has_hooks) in
        [("\n\n\n", true), ("n\nn\n", false), ("maybe\ny\nn\nn\n", true), ("\u{4}", false)]
    {
        let sandbox = Sandbox::new();
        fs::create_dir(sandbox.home().join(".claude")).unwrap();
        let mut terminal = Terminal::open();
        terminal.keyboard.write_all(typed.as_bytes()).unwrap();
        let mut init = sandbox.std_command("memory-config");
        init.arg("init").stdin(terminal.stdio()).stdout(terminal.stdio());
        if typed == "\u{4}" {
            terminal.keyboard.write_all(b"\x04").unwrap();
        }
        let output = init.output().unwrap();
        assert_eq!(output.code(), Some(0), "{}", output.err());
        eventually("the question", || terminal.shown().contains("install hooks for Claude Code? [Y/n] "));
        assert_eq!(sandbox.home().join(".claude/settings.json").exists(), has_hooks, "{typed:?}");
        assert_eq!(output.err().contains("the next session of Claude Code starts with"), has_hooks);
        assert!(output.err().contains("to do: memory-install-cron "), "{}", output.err());
    }
}

#[test]
fn a_context_file_that_cannot_be_written_is_no_target() {
    let sandbox = Sandbox::new();
    let store = sandbox.home().join("store");
    sandbox.write(&store.join("x/CLAUDE.md"), "# mine\n");
    symlink(store.join("x/CLAUDE.md"), sandbox.home().join(".claude/CLAUDE.md"));
    sandbox.write(&sandbox.home().join(".codex/AGENTS.md"), "# mine\n");
    set_mode(&sandbox.home().join(".codex/AGENTS.md"), 0o444);
    sandbox.write(&sandbox.home().join(".gemini/GEMINI.md"), "# mine\n");
    symlink(sandbox.home().join(".gemini/GEMINI.md"), sandbox.home().join(".qwen/QWEN.md"));
    let (code, _, err) = said(command(&sandbox, &["init"]).env("NIX_STORE_DIR", &store));
    assert_eq!(code, Some(0));
    for line in [
        "AGENTS.md targets: ~/.gemini/GEMINI.md",
        "not a target: ~/.claude/CLAUDE.md belongs to Nix",
        "not a target: ~/.codex/AGENTS.md is read-only",
        "not a target: ~/.qwen/QWEN.md is the same file as another",
    ] {
        assert!(err.lines().any(|said| said == line), "{line}\n\n{err}");
    }
}
