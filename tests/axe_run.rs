//! `axe-run` on its main way: prompt in, answer out, an entry in the log; and what its flags change.

use crate::support::{NOW, Sandbox, binary, mode, present, said, set_mode, symlink, tools};
use std::fs;
use std::path::Path;

#[test]
fn piped_text_goes_to_the_command_and_its_answer_to_stdout() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "system_prompt = 'Be kind.'\n[memory]\nenabled = true");
    let answer = "Be kind.\n\nhello";
    assert_eq!(said(sandbox.run("a").write_stdin("hello")), (Some(0), answer.into(), String::new()));
    assert_eq!(sandbox.log("a"), format!("## {NOW}\n**Task:** hello\n**Result:** {answer}\n\n"));
}

#[test]
fn the_message_is_the_prompt_then_stdin_or_either_or_the_default() {
    let default = "Execute the task described in your instructions.";
    let cases: [(&[&str], &str, &str); 9] = [
        (&[], "", default),
        (&[], " \n\t\n", default),
        (&[], "piped\n", "piped"),
        (&["-p", "said"], "", "said"),
        (&["-p", "said"], " \n", "said"),
        (&["-p", "said"], "piped", "said\n\npiped"),
        (&["-p", "said", "--no-stdin"], "piped", "said"),
        (&["--no-stdin"], "piped", default),
        (&["--prompt", "## said"], "ünï\u{1f980}", "## said\n\nünï\u{1f980}"),
    ];
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "");
    for (args, stdin, expected) in cases {
        let ended = said(sandbox.run("a").args(args).write_stdin(stdin));
        assert_eq!(ended, (Some(0), expected.into(), String::new()), "{args:?} {stdin:?}");
    }
}

#[test]
fn stdin_that_is_not_text_is_mended_with_a_warning() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "");
    let (code, out, err) = said(sandbox.run("a").write_stdin(&b"caf\xe9"[..]));
    assert_eq!((code, out.as_str()), (Some(0), "caf\u{fffd}"));
    assert!(err.starts_with("Warning: stdin is not valid UTF-8") && err.lines().count() == 1, "{err}");
}

#[test]
fn stdin_that_is_closed_or_the_null_device_is_none() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "");
    for redirect in ["</dev/null", "<&-"] {
        let run = sandbox.std_command("axe-run");
        let mut sh = std::process::Command::new("/bin/sh");
        sh.envs(present(run.get_envs())).current_dir(sandbox.work());
        sh.args(["-c", &format!("\"$0\" a {redirect}")]).arg(run.get_program());
        let (code, out, err) = said(&mut assert_cmd::Command::from_std(sh));
        assert_eq!((code, err.as_str()), (Some(0), ""), "{redirect}");
        assert_eq!(out, "Execute the task described in your instructions.");
    }
}

#[test]
fn the_answer_comes_as_it_is_without_the_commands_last_newline() {
    for (command, answer) in [
        ("printf x", "x"),
        ("echo x", "x"),
        ("printf '\\nx y \\n z\\n'", "\nx y \n z"),
        ("printf 'x\\r\\n'", "x"),
        ("true", ""),
        ("printf 'caf\\351'", "caf\u{fffd}"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.agent("a", command, "");
        let (code, out, err) = said(&mut sandbox.run("a"));
        assert_eq!((code, out.as_str()), (Some(0), answer), "{command}");
        // An empty answer may be warned of.
        assert!(
            err.is_empty() || answer.is_empty() && err.starts_with("Warning: the answer is empty"),
            "{err}"
        );
    }
}

#[test]
fn a_failing_command_is_one_line_and_exit_three() {
    let cases = [
        ("exit 7", "", "command \"exit\" failed (exit 7)"),
        ("echo one >&2; echo two >&2; exit 1", "one\ntwo\n", "command \"echo\" failed (exit 1): two"),
        ("echo partial answer; exit 1", "", "command \"echo\" failed (exit 1): partial answer"),
        ("kill -9 $$", "", "command \"kill\" failed (signal 9)"),
        ("A=1 sh -c 'exit 2'", "", "command \"sh\" failed (exit 2)"),
    ];
    for (command, passed_on, message) in cases {
        let sandbox = Sandbox::new();
        sandbox.agent("a", command, "");
        let expected = format!("{passed_on}axe-run: server: {message}\n");
        assert_eq!(said(&mut sandbox.run("a")), (Some(3), String::new(), expected), "{command}");
    }
}

#[test]
fn a_command_that_is_missing_is_named() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "no-such-program --flag", "");
    let (code, out, err) = said(&mut sandbox.run("a"));
    assert_eq!((code, out.as_str()), (Some(3), ""));
    let last = err.lines().last().unwrap();
    assert!(last.starts_with("axe-run: server: command \"no-such-program\" failed (exit 127): "), "{err}");
}

#[test]
fn the_envelope_has_its_fields_in_order() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "printf 'one\\n\"two\"'", "");
    let (code, out, err) = said(sandbox.run("a").arg("--json"));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.ends_with("}\n") && out.lines().count() == 1, "{out}");
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    let duration = object["duration_ms"].as_u64().unwrap();
    let expected = format!(
        "{{\"model\":\"model\",\"content\":\"one\\n\\\"two\\\"\",\"input_tokens\":0,\"output_tokens\":0,\
         \"stop_reason\":\"stop\",\"duration_ms\":{duration},\"tool_calls\":0,\"agent\":\"a\",\"provider\":\"a\",\
         \"sub_agents\":[],\"retries\":0,\"cache_read_tokens\":0,\"cache_write_tokens\":0,\"tool_details\":[],\"cost\":null}}\n"
    );
    assert_eq!(out, expected);
}

#[test]
fn strict_refuses_an_empty_answer_and_nothing_else() {
    for (command, code, err) in [
        ("echo fine", 0, ""),
        ("true", 1, "axe-run: the answer is empty (stop reason: stop)"),
        ("echo ' '", 1, "axe-run: the answer is empty (stop reason: stop)"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.agent("a", command, "");
        let (ended, _, said_so) = said(sandbox.run("a").arg("--strict"));
        assert_eq!((ended, said_so.lines().last().unwrap_or("")), (Some(code), err), "{command}");
        assert_eq!(said(&mut sandbox.run("a")).0, Some(0), "without --strict: {command}");
    }
}

#[test]
fn another_model_takes_the_place_of_the_agents() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "echo a \"$AXE_MODEL\"", "");
    sandbox.agent("b", "echo b \"$AXE_MODEL\"", "");
    for (args, answer) in [
        (&[][..], "a model"),
        (&["--model", "b/big"], "b big"),
        (&["--model=b/meta/llama-4:free"], "b meta/llama-4:free"),
        (&["--model", "command/b"], "b "),
        // A value is a value: the shell never sees it.
        (&["--model", "b/$(touch pwned)`touch pwned`;x"], "b $(touch pwned)`touch pwned`;x"),
    ] {
        assert_eq!(
            said(sandbox.run("a").args(args)),
            (Some(0), answer.trim_end_matches('\n').into(), String::new())
        );
    }
    assert!(!sandbox.work().join("pwned").exists());
}

#[test]
fn a_bad_model_is_named_wherever_it_comes_from() {
    let cases = [
        ("gpt-5", 1, "invalid model format \"gpt-5\": expected provider/model-name"),
        ("/gpt-5", 1, "invalid model format \"/gpt-5\": empty provider"),
        ("openai/", 1, "invalid model format \"openai/\": empty model name"),
        (
            "nope/x",
            1,
            "unsupported provider \"nope\": supported providers are anthropic, openai, ollama, command, mine",
        ),
        ("command/nope", 2, "no command named \"nope\"; "),
        ("kindless/x", 2, "provider \"kindless\""),
        ("empty/x", 2, "provider \"empty\""),
    ];
    let sandbox = Sandbox::new();
    sandbox.agent("a", "echo x", "");
    for (model, code, message) in cases {
        let config = match model {
            "kindless/x" => "[providers.kindless]\nbase_url = 'http://x'",
            "empty/x" => "[providers.empty]\nkind = 'command'",
            _ => "[providers.mine]\ncommand = 'cat'",
        };
        sandbox.write(&sandbox.config().join("config.toml"), config);
        sandbox.agent_file("a", "name = 'a'\nmodel = 'mine/x'");
        sandbox.agent_file("b", &format!("name = 'b'\nmodel = '{model}'"));
        for mut run in [sandbox.run("b"), sandbox.run("a")] {
            run.args(["--dry-run"]);
            if run.get_args().next() == Some("a".as_ref()) {
                run.args(["--model", model]);
            }
            let (ended, out, err) = said(&mut run);
            assert_eq!((ended, out.as_str()), (Some(code), ""), "{model}: {err}");
            assert!(err.starts_with(&format!("axe-run: {message}")) && err.lines().count() == 1, "{err}");
        }
    }
}

#[test]
fn an_unknown_preset_names_the_known_ones() {
    let sandbox = Sandbox::new();
    sandbox.agent_file("a", "name = 'a'\nmodel = 'command/cluade'");
    let (code, _, err) = said(&mut sandbox.run("a"));
    assert_eq!(code, Some(2));
    for preset in ["claude", "codex", "llm", "ollama"] {
        assert!(err.contains(preset), "{preset} in {err}");
    }
}

/// A program that stands for Codex, and prints what it finds.
#[test]
fn codex_runs_in_a_home_with_nothing_but_its_login() {
    let sandbox = Sandbox::new();
    let path = sandbox.home().join("bin/codex");
    let script =
        "#!/bin/sh\ncat > /dev/null\nls -A . \"$LLM_HOME\" \"$CODEX_HOME\"\ncat \"$CODEX_HOME/auth.json\"\n";
    sandbox.write(&path, script);
    set_mode(&path, 0o755);
    sandbox.write(&sandbox.home().join(".codex/AGENTS.md"), "Always answer in French.");
    sandbox.write(&sandbox.home().join(".codex/auth.json"), "my login");
    sandbox.agent_file("a", "name = 'a'\nmodel = 'command/codex'");
    let run =
        || said(sandbox.run("a").env("PATH", format!("{}:{}", path.parent().unwrap().display(), tools())));
    let (code, out, err) = run();
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let mut seen: Vec<_> = out.lines().filter(|line| !line.is_empty() && !line.ends_with(':')).collect();
    seen.sort_unstable();
    assert_eq!(seen, ["auth.json", "codex", "config.toml", "my login", "work"]);
    let home = out.lines().find_map(|line| line.strip_suffix("/codex:")).unwrap();
    assert!(!Path::new(home).exists(), "{home}");

    sandbox.write(&sandbox.home().join(".codex/config.toml"), "model =");
    let (code, _, err) = run();
    assert_eq!(code, Some(2));
    assert!(err.contains(".codex/config.toml\": ") && err.contains("correct the file"), "{err}");
}

/// The program writes a new login beside the old one, and renames it: what it found there was a link.
#[test]
fn a_login_that_codex_renewed_is_kept() {
    let (old, new) = ("{\"token\": 1}", "{\"token\": 2}");
    for (written, ends, kept, said_of) in [
        (new, "echo Hi.", new, ""),
        (new, "exit 3", new, "failed"),
        ("{\"tok", "echo Hi.", old, "Warning: a login that the LLM command renewed is lost: "),
    ] {
        let sandbox = Sandbox::new();
        let path = sandbox.home().join("bin/codex");
        let script = format!(
            "#!/bin/sh\nprintf '%s' '{written}' > \"$CODEX_HOME/new\"\n\
             mv \"$CODEX_HOME/new\" \"$CODEX_HOME/auth.json\"\n{ends}\n"
        );
        sandbox.write(&path, &script);
        set_mode(&path, 0o755);
        let (login, link) = (sandbox.home().join("login"), sandbox.home().join(".codex/auth.json"));
        sandbox.write(&login, old);
        set_mode(&login, 0o640);
        symlink(&login, &link);
        sandbox.agent_file("a", "name = 'a'\nmodel = 'command/codex'");
        let mut command = sandbox.run("a");
        command.env("PATH", format!("{}:{}", path.parent().unwrap().display(), tools()));
        let (_, _, err) = said(&mut command);
        assert!(err.contains(said_of) && (!err.is_empty() || said_of.is_empty()), "{ends}: {err}");
        assert_eq!((fs::read_to_string(&login).unwrap().as_str(), mode(&login)), (kept, 0o640), "{ends}");
        assert!(link.is_symlink());
    }
}

#[test]
fn a_command_works_in_the_agents_folder() {
    let sandbox = Sandbox::new();
    let real = |path: &str| fs::canonicalize(sandbox.work().join(path)).unwrap().display().to_string();
    sandbox.file("one/x", "");
    sandbox.file("two/x", "");
    sandbox.agent("plain", "pwd -P", "");
    sandbox.agent("one", "pwd -P", "workdir = 'one'");
    let absolute = sandbox.work().join("two");
    let cases: [(&str, &[&str], &str); 6] = [
        ("plain", &[], "."),
        ("one", &[], "one"),
        ("plain", &["--workdir", "two"], "two"),
        ("one", &["--workdir", "two"], "two"),
        ("one", &["--workdir", absolute.to_str().unwrap()], "two"),
        ("one", &["--workdir", "."], "."),
    ];
    for (agent, args, dir) in cases {
        let ended = said(sandbox.run(agent).args(args));
        assert_eq!(ended, (Some(0), real(dir), String::new()), "{agent} {args:?}");
    }
    for (dir, why) in [("gone", "does not exist"), ("one/x", "is not a directory")] {
        let expected = format!("axe-run: workdir \"{dir}\" {why}\n");
        assert_eq!(said(sandbox.run("one").args(["--workdir", dir])), (Some(2), String::new(), expected));
    }
}

#[test]
fn commands_that_call_axe_again_end_at_the_eighth() {
    let sandbox = Sandbox::new();
    let again =
        format!("echo \"level $AXE_COMMAND_LEVEL\" >> levels; {} --no-stdin a", binary("axe-run").display());
    sandbox.agent("a", &again, "");
    let (code, out, err) = said(&mut sandbox.run("a"));
    assert_eq!((code, out.as_str()), (Some(3), ""), "{err}");
    let levels = fs::read_to_string(sandbox.work().join("levels")).unwrap();
    assert_eq!(levels, (1..=8).map(|n| format!("level {n}\n")).collect::<String>());
    assert!(
        err.contains("command \"echo\" was not run: 8 commands of axe already run inside one another"),
        "{err}"
    );
}

#[test]
fn an_agent_with_sub_agents_needs_a_model_with_tools() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "touch called", "sub_agents = ['b']");
    for args in [&[][..], &["--dry-run"]] {
        let (code, out, err) = said(sandbox.run("a").args(args));
        assert_eq!((code, out.as_str()), (Some(2), ""));
        assert!(
            err.contains("sub_agents") && err.contains("\"a/model\"") && err.lines().count() == 1,
            "{err}"
        );
    }
    assert!(!sandbox.work().join("called").exists());
}

#[test]
fn a_malformed_retry_variable_is_named() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "echo x", "");
    for value in ["x", "-1", "1.5"] {
        let (code, _, err) = said(sandbox.run("a").env("AXE_RETRY_MAX", value));
        assert_eq!(code, Some(2));
        assert!(
            err.starts_with(&format!("axe-run: AXE_RETRY_MAX is not a whole number: \"{value}\"")),
            "{err}"
        );
    }
}
