//! What people do every day: a prompt without an agent, short names for models, a model that takes over from another,
//! variables, the code of an answer, and a look at agents before they run.

use crate::support::api::{Anthropic, KEY, Kind, Ollama, OpenAi, to};
use crate::support::server::{Answer, Server, http, json, raw};
use crate::support::{Said, Sandbox, entries, said, set_mode};
use serde_json::{Value, json};
use std::fs;
use std::process::Output;

/// A sandbox whose config.toml has `config` and the provider `say`, a command that prints what it gets.
fn with_config(config: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(&sandbox.config().join("config.toml"), format!("{config}\n"));
    sandbox.provider("say", "command = 'echo call >> calls; printf \"%s: \" \"$AXE_MODEL\"; cat'");
    sandbox
}

fn run(sandbox: &Sandbox, args: &[&str], stdin: &str) -> (Option<i32>, String, String) {
    said(sandbox.command("axe-run").args(args).write_stdin(stdin))
}

fn ok(out: &str) -> (Option<i32>, String, String) {
    (Some(0), out.to_owned(), String::new())
}

// A prompt without an agent.

#[test]
fn a_prompt_without_an_agent_runs_the_default_of_the_configuration() {
    let sandbox = with_config("[default]\nmodel = 'say/m'\nsystem_prompt = 'Be brief.'");
    assert_eq!(run(&sandbox, &["-p", "hi"], ""), ok("m: Be brief.\n\nhi"));
    assert_eq!(run(&sandbox, &["-p", "hi"], "piped"), ok("m: Be brief.\n\nhi\n\npiped"));
    assert_eq!(run(&sandbox, &[], "piped\n"), ok("m: Be brief.\n\npiped"));
    assert_eq!(run(&sandbox, &["default", "-p", "hi"], ""), ok("m: Be brief.\n\nhi"));
    let (_, out, _) = run(&sandbox, &["--json", "-p", "hi"], "");
    let envelope: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&envelope["agent"], &envelope["provider"]), (&json!("default"), &json!("say")));
    let (code, out, _) = run(&sandbox, &["--dry-run", "-p", "hi"], "");
    assert!(code == Some(0) && out.contains("\nModel:    say/m\n") && out.contains("\nhi\n"), "{out}");
}

#[test]
fn the_default_is_an_agent_like_any_other() {
    let sandbox = with_config("[default]\nmodel = 'say/m'\n[default.memory]\nenabled = true\nlast_n = 1");
    assert_eq!(run(&sandbox, &["-p", "hi"], "").0, Some(0));
    assert!(sandbox.log("default").contains("**Task:** hi\n"));
    sandbox.write_log("default", &entries(3));
    let list = said(sandbox.command("axe-agents").arg("list"));
    assert_eq!(list, ok("default\n"));
    let (code, out, err) = said(sandbox.command("axe-gc").args(["--all", "--no-analysis"]));
    assert!(out.contains("Trimmed: 2 entries removed, 1 entries kept."), "{out}");
    assert_eq!((code, err.as_str()), (Some(0), ""));
    sandbox.agent("lead", "cat", "sub_agents = ['default', 'gone']");
    sandbox.agent_file("lead", "name = 'lead'\nmodel = 'openai/m'\nsub_agents = ['default', 'gone']");
    let (_, _, err) = said(sandbox.run("lead").arg("--dry-run"));
    assert_eq!(err, "Warning: agent \"lead\" may call \"gone\", which does not exist\n");
}

#[test]
fn without_a_default_the_next_step_is_named_and_a_model_alone_is_enough() {
    let sandbox = with_config("");
    let (code, out, err) = run(&sandbox, &["-p", "hi"], "");
    assert_eq!((code, out.as_str()), (Some(2), ""));
    let config = sandbox.config().join("config.toml");
    let expected = format!(
        "axe-run: no agent is named, and the default has no model; use --model, or set model under [default] in \"{}\"\n",
        config.display()
    );
    assert_eq!(err, expected);
    assert_eq!(run(&sandbox, &["--model", "say/x", "-p", "hi"], ""), ok("x: hi"));
    assert_eq!(run(&sandbox, &["--model", "say/x"], "hi"), ok("x: hi"));
    // Settings without a model are fine, too.
    let sandbox = with_config("[default]\nsystem_prompt = 'Be brief.'");
    assert_eq!(run(&sandbox, &["-p", "hi"], "").0, Some(2));
    assert_eq!(run(&sandbox, &["--model", "say/x", "-p", "hi"], ""), ok("x: Be brief.\n\nhi"));
}

#[test]
fn without_an_agent_and_a_prompt_nothing_is_asked() {
    let sandbox = with_config("[default]\nmodel = 'say/m'");
    for (args, stdin) in [(&[][..], ""), (&[], " \n"), (&["--no-stdin"], "hi"), (&["--model", "say/x"], "")] {
        let (code, out, err) = run(&sandbox, args, stdin);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{args:?}");
        assert!(
            err.starts_with("axe-run: agent name is required; see them with: axe agents list; "),
            "{err}"
        );
    }
    assert_eq!(run(&sandbox, &["--skip-empty"], " \n"), ok(""));
    assert!(!sandbox.work().join("calls").exists());
}

#[test]
fn a_default_that_is_defined_twice_is_refused() {
    let sandbox = with_config("[default]\nmodel = 'say/m'");
    sandbox.agent_file("default", "name = 'default'\nmodel = 'say/n'");
    let (code, out, err) = run(&sandbox, &["-p", "hi"], "");
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.starts_with("axe-run: the agent \"default\" is defined twice: in \"/"), "{err}");
    assert!(err.ends_with("; remove one of them, or rename the file\n"), "{err}");
    // The file alone is one.
    let sandbox = with_config("");
    sandbox.agent_file("default", "name = 'default'\nmodel = 'say/n'");
    assert_eq!(run(&sandbox, &["-p", "hi"], ""), ok("n: hi"));
}

#[test]
fn faults_of_the_default_are_placed_in_the_configuration_and_concern_nobody_else() {
    for (config, code, what) in [
        ("[default]\nmodel = 5", 2, "axe-run: failed to parse [default] in config.toml: line 2, column 9: "),
        ("default = 5", 2, "axe-run: failed to parse [default] in config.toml: line 1, column 11: "),
        (
            "[default]\nmodel = 'say/m'\n[default.memory]\nlast_n = -1",
            2,
            "axe-run: memory.last_n must be non-negative; correct \"/",
        ),
        (
            "[default]\nmodel = 'say/m'\nskil = 'x'",
            0,
            "Warning: [default] in config.toml: unknown key \"default.skil\" on line 3, did you mean \"skill\"?\n",
        ),
        (
            "[default]\nmodel = 'say/m'\nname = 'x'",
            0,
            "Warning: [default] in config.toml has name = \"x\", but the name of the table is used\n",
        ),
        (
            "[default]\nmodel = 'say/m'\n[default.tools.t]\ncomand = []",
            2,
            "Warning: [default] in config.toml: unknown key \"default.tools.t.comand\" on line 4, did",
        ),
        ("[default]\nmodel = ''", 2, "axe-run: agent config missing required field: model; correct \"/"),
    ] {
        let sandbox = with_config(config);
        let (ended, _, err) = run(&sandbox, &["-p", "hi"], "");
        assert_eq!(ended, Some(code), "{config}: {err}");
        assert!(err.starts_with(what), "{config}: {err}");
        sandbox.agent_file("a", "name = 'a'\nmodel = 'say/n'");
        assert_eq!(run(&sandbox, &["a"], "x"), ok("n: x"), "{config}");
    }
}

#[test]
fn the_default_is_edited_where_it_is_and_not_created_twice() {
    let sandbox = with_config("[default]\nmodel = 'say/m'");
    let config = sandbox.config().join("config.toml");
    let edited = said(sandbox.command("axe-agents").args(["edit", "default"]).env("EDITOR", "echo"));
    assert_eq!(edited, ok(&format!("{}\n", config.display())));
    let (code, _, err) = said(sandbox.command("axe-agents").args(["init", "default"]));
    let expected = format!("axe-agents: agent config already exists: {}\n", config.display());
    assert_eq!((code, err), (Some(1), expected));
    let (code, out, _) = said(sandbox.command("axe-agents").args(["show", "default"]));
    assert_eq!((code, out.as_str()), (Some(0), "Name:  default\nModel: say/m\n"));
    let (code, _, err) = run(&sandbox, &["What is this?"], "");
    let expected = "axe-run: agent config not found: What is this?; a prompt needs -p: axe-run -p \"…\"\n";
    assert_eq!((code, err.as_str()), (Some(2), expected));
}

// Short names.

#[test]
fn a_short_name_stands_wherever_a_model_is_named() {
    let sandbox = with_config("[models]\nfast = 'say/quick'\n[default]\nmodel = 'fast'");
    sandbox.agent_file("a", "name = 'a'\nmodel = 'fast'\n[memory]\nenabled = true");
    sandbox.agent_file("b", "name = 'b'\nmodel = 'say/b'\n[memory]\nenabled = true");
    assert_eq!(run(&sandbox, &["a"], "x"), ok("quick: x"));
    assert_eq!(run(&sandbox, &["-p", "x"], ""), ok("quick: x"));
    assert_eq!(run(&sandbox, &["b", "--model", "fast"], "x"), ok("quick: x"));
    sandbox.agent_file("c", "name = 'c'\nmodel = 'command/false'\nfallback = ['fast']");
    assert_eq!(run(&sandbox, &["c"], "x").1, "");
    for args in [&["a"][..], &["b", "--model", "fast"]] {
        sandbox.write_log(args[0], &entries(2));
        let (code, out, err) = said(sandbox.command("axe-gc").args(args));
        assert!(code == Some(0) && out.contains("\nquick: "), "{out}{err}");
    }
    let (_, out, _) = run(&sandbox, &["a", "--dry-run"], "");
    assert!(out.contains("\nModel:    say/quick\n"), "{out}");
}

#[test]
fn a_sub_agent_and_a_price_go_by_the_model_behind_the_name() {
    let sandbox =
        with_config("[models]\nfast = 'openai/m-1'\n[prices.'openai/m-1']\ninput = 1e6\noutput = 0");
    sandbox.agent_file("a", "name = 'a'\nmodel = 'fast'\nsub_agents = ['b']");
    sandbox.agent_file("b", "name = 'b'\nmodel = 'fast'");
    let server = Server::playing([OpenAi.calls(&[to("b", "t")]), OpenAi.says("b's"), OpenAi.says("done")]);
    let output = sandbox.asking("a", &server.url()).arg("--json").output().unwrap();
    let envelope: Value = serde_json::from_str(&output.out()).unwrap();
    assert_eq!((&envelope["content"], &envelope["cost"]), (&json!("done"), &json!(30.0)), "{}", output.err());
}

#[test]
fn an_unknown_short_name_names_the_nearest_and_how_to_define_it() {
    let sandbox = with_config("[models]\nfast = 'say/quick'");
    for (name, next) in [
        (
            "fats",
            "did you mean \"fast\"? Or define it under [models] in config.toml: \"fats\" = \"provider/model-name\"",
        ),
        ("opus", "define it under [models] in config.toml: \"opus\" = \"provider/model-name\""),
    ] {
        let (code, out, err) = run(&sandbox, &["--model", name, "-p", "hi"], "");
        let expected =
            format!("axe-run: invalid model format \"{name}\": expected provider/model-name; {next}\n");
        assert_eq!((code, out.as_str(), err), (Some(1), "", expected));
    }
    for (config, why) in [
        (
            "[models]\n'a/b' = 'say/x'",
            "failed to parse config file: models.\"a/b\": a short name has no slash; ",
        ),
        ("[models]\n'' = 'say/x'", "failed to parse config file: models.\"\": a short name has no slash; "),
        ("[models]\na = 'say'", "failed to parse config file: line 2, column "),
        ("[models]\na = 'b'\nb = 'say/x'", "failed to parse config file: line 2, column "),
        ("[models]\na = 5", "failed to parse config file: line 2, column "),
    ] {
        let (code, _, err) = run(&with_config(config), &["--model", "say/x", "-p", "hi"], "");
        assert!(code == Some(2) && err.starts_with(&format!("axe-run: {why}")), "{config}: {err}");
    }
}

// A model that takes over.

/// Runs an agent with `kind`'s model, which has answers of its own, and these as its fallback.
fn fall_back(
    kind: Kind,
    answers: Vec<Answer>,
    others: &[(Kind, Vec<Answer>)],
    more: &str,
    args: &[&str],
) -> (Sandbox, Output, Vec<usize>) {
    let sandbox = Sandbox::new();
    let names: Vec<String> = others.iter().map(|(kind, _)| format!("'{}/m-2'", kind.name())).collect();
    sandbox.model("a", kind, &format!("fallback = [{}]\n{more}", names.join(", ")));
    let servers: Vec<(Kind, Server)> = std::iter::once((kind, answers))
        .chain(others.iter().cloned())
        .map(|(kind, answers)| (kind, Server::playing(answers)))
        .collect();
    let mut command = sandbox.asking("a", "http://127.0.0.1:1");
    for (kind, server) in &servers {
        command.env(format!("AXE_{}_BASE_URL", kind.name().to_uppercase()), server.url());
    }
    let output = command.args(args).output().unwrap();
    let asked = servers.iter().map(|(_, server)| server.requests().len()).collect();
    (sandbox, output, asked)
}

#[test]
fn after_an_outage_the_next_model_answers_and_is_named() {
    let quota = json!({ "error": { "code": "insufficient_quota", "message": "pay" } });
    let credit = json!({ "error": { "type": "billing_error", "message": "no credit" } });
    for (answer, why) in [
        (http("429 Slow down", ""), "rate_limit: Slow down"),
        (http("529 Busy", ""), "overloaded: Busy"),
        (http("503 Down", ""), "server: Down"),
        (http("521 Down", ""), "server: Down"),
        (json(429, quota), "rate_limit: pay"),
        (json(402, json!({})), "rate_limit: Reason"),
        (json(400, credit), "bad_request: no credit"),
        (raw(""), "closed the connection without an HTTP response"),
        (raw("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"), "closed the connection after 1 of 99 bytes"),
    ] {
        let (_, output, asked) =
            fall_back(OpenAi, vec![answer], &[(Anthropic, vec![Anthropic.says("x")])], "", &["--json"]);
        assert_eq!((output.code(), asked), (Some(0), vec![1, 1]), "{why}: {}", output.err());
        let envelope: Value = serde_json::from_str(&output.out()).unwrap();
        let told = ["provider", "model", "content"].map(|key| envelope[key].as_str().unwrap().to_owned());
        assert_eq!(told, ["anthropic", "m-1-exact", "x"]);
        let err = output.err();
        assert!(err.starts_with("Warning: \"openai/m-1\" failed (") && err.contains(why), "{why}: {err}");
        assert!(err.ends_with("); asking \"anthropic/m-2\" instead\n") && err.lines().count() == 1, "{err}");
    }
}

#[test]
fn an_unreachable_server_is_an_outage() {
    let sandbox = Sandbox::new();
    let server = Server::playing([Anthropic.says("x")]);
    for (kind, url) in
        [(OpenAi, "http://127.0.0.1:1"), (Ollama, "http://127.0.0.1:1"), (OpenAi, "http://no.invalid")]
    {
        let server = Server::playing([Anthropic.says("x")]);
        sandbox.model("a", kind, "fallback = ['anthropic/m-2']");
        let mut command = sandbox.asking("a", &server.url());
        command.env(format!("AXE_{}_BASE_URL", kind.name().to_uppercase()), url);
        let output = command.output().unwrap();
        assert_eq!((output.code(), output.out().as_str()), (Some(0), "x"), "{}", output.err());
    }
    // A command cannot say why it failed.
    sandbox.agent("c", "exit 7", "fallback = ['anthropic/m-2']");
    let output = sandbox.asking("c", &server.url()).output().unwrap();
    let warning = "Warning: \"c/model\" failed (server: command \"exit\" failed (exit 7)); asking \"anthropic/m-2\" instead\n";
    assert_eq!((output.code(), output.out().as_str(), output.err().as_str()), (Some(0), "x", warning));
}

#[test]
fn no_other_model_is_asked_after_another_error() {
    for answer in [
        http("401 No", ""),
        http("403 No", ""),
        http("400 Bad", ""),
        http("404 Gone", ""),
        http("413 Large", ""),
        http("200 OK", "<html>"),
        json(200, json!({ "choices": [] })),
        json(200, json!({ "error": { "code": 401, "message": "no" } })),
    ] {
        let (_, output, asked) =
            fall_back(OpenAi, vec![answer], &[(Anthropic, vec![Anthropic.says("x")])], "", &[]);
        assert_eq!((output.out().as_str(), asked), ("", vec![1, 0]), "{}", output.err());
        assert!(
            matches!(output.code(), Some(1 | 3)) && output.err().starts_with("axe-run: "),
            "{}",
            output.err()
        );
    }
    // A budget that the call would exceed.
    let (_, output, asked) =
        fall_back(OpenAi, vec![], &[(Anthropic, vec![])], "", &["--max-tokens-total", "1"]);
    assert_eq!((output.code(), asked), (Some(4), vec![0, 0]));
}

#[test]
fn a_fallback_counts_for_the_budget_before_it_is_needed() {
    // Anthropic's answers may be 4096 tokens long, where nothing limits them.
    let (_, output, asked) =
        fall_back(OpenAi, vec![], &[(Anthropic, vec![])], "", &["--max-tokens-total", "4000"]);
    assert_eq!((output.code(), asked), (Some(4), vec![0, 0]), "{}", output.err());
}

#[test]
fn the_retries_of_each_model_come_first_and_the_last_error_stands() {
    let again = || http("503 Again\r\nRetry-After: 0", "");
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "fallback = ['ollama/m-2', 'openai/m-1', 'anthropic/m-3']");
    let server = Server::answering(move |_| again());
    let mut command = sandbox.asking("a", &server.url());
    let output = command.env("AXE_RETRY_MAX", "1").arg("--json").output().unwrap();
    let asked: Vec<_> = server.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(asked, ["m-1", "m-1", "m-2", "m-2", "m-3", "m-3"]);
    assert_eq!(output.code(), Some(3));
    let object: Value = serde_json::from_str(&output.err()).unwrap();
    assert_eq!(object["error"]["message"], "server: Again (tried 2 times)");
    assert_eq!((&object["run"]["retries"], &object["run"]["provider"]), (&json!(3), &json!("anthropic")));
    assert_eq!(object["warnings"].as_array().unwrap().len(), 2, "{object}");
}

#[test]
fn a_fallback_that_cannot_be_used_is_passed_over_with_a_reason() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "fallback = ['anthropic/m-2', 'ollama/m-3']");
    let server = Server::playing([http("503 Down", ""), Ollama.says("x")]);
    let output = sandbox.asking("a", &server.url()).env_remove("ANTHROPIC_API_KEY").output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "x"));
    let expected = "Warning: \"anthropic/m-2\" cannot be asked instead: API key for provider \"anthropic\" is not \
                    configured (set ANTHROPIC_API_KEY or add to config.toml)\n\
                    Warning: \"openai/m-1\" failed (server: Down); asking \"ollama/m-3\" instead\n";
    assert_eq!(output.err(), expected);
    // As long as it is not needed, nobody misses the key.
    let server = Server::playing([OpenAi.says("y")]);
    let output = sandbox.asking("a", &server.url()).env_remove("ANTHROPIC_API_KEY").output().unwrap();
    assert_eq!((output.out().as_str(), output.err().as_str()), ("y", ""));
    // A wrong name is an error before anything is asked.
    for (name, code, why) in [
        (
            "fats",
            1,
            "fallback \"fats\" of agent \"a\": invalid model format \"fats\": expected provider/model-name; ",
        ),
        ("foo/x", 1, "fallback \"foo/x\" of agent \"a\": unsupported provider \"foo\""),
        ("command/foo", 2, "fallback \"command/foo\" of agent \"a\": no command named \"foo\""),
    ] {
        sandbox.model("a", OpenAi, &format!("fallback = ['{name}']"));
        let output = sandbox.asking("a", &server.url()).output().unwrap();
        assert_eq!(output.code(), Some(code), "{}", output.err());
        assert!(output.err().starts_with(&format!("axe-run: {why}")), "{}", output.err());
    }
    sandbox.model("a", OpenAi, "fallback = ['command/llm']\nsub_agents = ['b']");
    let output = sandbox.asking("a", &server.url()).output().unwrap();
    assert_eq!((output.code(), server.requests().len()), (Some(2), 1));
    assert!(
        output.err().contains("has sub_agents, and its model \"command/llm\" is a command"),
        "{}",
        output.err()
    );
}

#[test]
fn a_model_of_the_command_line_is_wanted_alone() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "fallback = ['anthropic/m-2']");
    let server = Server::playing([http("503 Down", ""), Anthropic.says("x")]);
    let output = sandbox.asking("a", &server.url()).args(["--model", "openai/m-9"]).output().unwrap();
    assert_eq!((output.code(), server.requests().len()), (Some(3), 1));
    assert_eq!(output.err(), "axe-run: server: Down\n");
}

#[test]
fn a_stream_that_has_begun_is_never_begun_again() {
    let event =
        |text: &str| format!("data: {}\n\n", json!({ "choices": [{ "delta": { "content": text } }] }));
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    let busy = "data: {\"error\": {\"type\": \"overloaded_error\", \"message\": \"busy\"}}\n\n";
    for args in [&["--stream"][..], &["--stream", "--json"]] {
        let others = || vec![(Anthropic, vec![Anthropic.says("x")])];
        for broken in [raw(format!("{head}{}", event("hel"))), raw(format!("{head}{}{busy}", event("hel")))] {
            let (_, output, asked) = fall_back(OpenAi, vec![broken], &others(), "", args);
            assert_eq!((output.code(), asked), (Some(3), vec![1, 0]), "{}", output.err());
        }
        // Before the first piece, it may.
        let (_, output, asked) = fall_back(OpenAi, vec![raw(format!("{head}{busy}"))], &others(), "", args);
        assert_eq!((output.code(), asked), (Some(0), vec![1, 1]), "{}", output.err());
    }
}

#[test]
fn a_loop_of_tools_goes_on_with_another_model_of_the_same_api() {
    let sandbox = Sandbox::new();
    let turn = json!({
        "model": "m", "choices": [{ "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": null, "reasoning": "hm", "tool_calls": [
                { "id": "c0", "type": "function", "function": { "name": "t", "arguments": "{}" } }] } }],
    });
    let first = Server::playing([json(200, turn), http("503 Down", "")]);
    let second = Server::playing([OpenAi.calls_tools(&[("t", json!({}))]), OpenAi.says("done")]);
    let third = Server::playing([Anthropic.says("no")]);
    sandbox.provider("other", &format!("kind = 'openai'\napi_key = 'k'\nbase_url = '{}'", second.url()));
    let price =
        "[prices.\"other/m-2\"]\ninput = 1e6\noutput = 0\n[prices.\"openai/m-1\"]\ninput = 0\noutput = 0\n";
    sandbox.provider("unused", &format!("command = 'true'\n{price}"));
    set_mode(&sandbox.config().join("config.toml"), 0o600);
    sandbox.model(
        "a",
        OpenAi,
        "fallback = ['anthropic/m-3', 'other/m-2']\n[tools.t]\ncommand = ['sh', '-c', 'echo ran >> runs']",
    );
    let mut command = sandbox.asking("a", &first.url());
    let output = command.env("AXE_ANTHROPIC_BASE_URL", third.url()).arg("--json").output().unwrap();
    let envelope: Value = serde_json::from_str(&output.out()).unwrap_or_else(|_| panic!("{}", output.err()));
    assert_eq!((&envelope["content"], &envelope["provider"]), (&json!("done"), &json!("other")));
    assert_eq!(envelope["cost"], 20.0, "each call has the price of its own model");
    assert_eq!(
        (first.requests().len(), second.requests().len(), third.requests().len()),
        (2, 2, 0),
        "{}",
        output.err()
    );
    assert_eq!(fs::read_to_string(sandbox.work().join("runs")).unwrap(), "ran\nran\n", "no tool runs again");
    let taken = &second.requests()[0];
    assert_eq!((&taken.body["model"], taken.header("authorization")), (&json!("m-2"), Some("Bearer k")));
    // The turn of the first service without what only that one knows.
    let echoed = &taken.body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .find(|m| m["role"] == "assistant")
        .unwrap()
        .clone();
    assert_eq!((echoed.get("reasoning"), &echoed["tool_calls"][0]["id"]), (None, &json!("c0")));
    assert!(
        output.err().starts_with(
            "Warning: \"anthropic/m-3\" cannot be asked instead: the conversation so far has the form of another API\n"
        ),
        "{}",
        output.err()
    );
    assert!(!format!("{}{}", output.out(), output.err()).contains(KEY));
}

#[test]
fn a_conversation_and_files_go_to_the_model_that_takes_them() {
    let sandbox = Sandbox::new();
    sandbox.model("a", Anthropic, "fallback = ['command/llm', 'openai/m-2']");
    sandbox.file("x.png", b"\x89PNG\r\n\x1a\n");
    let server = Server::answering(|request| match request.path.as_str() {
        "/v1/messages" => http("529 Busy", ""),
        _ => OpenAi.says("x"),
    });
    let mut command = sandbox.asking("a", &server.url());
    let output = command.args(["--attach", "x.png", "--conversation", "c", "-p", "hi"]).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "x"), "{}", output.err());
    assert!(output.err().starts_with("Warning: \"command/llm\" cannot be asked instead: it is a command, which takes no files (\"x.png\")\n"), "{}", output.err());
    let kept = fs::read_to_string(sandbox.home().join(".local/share/axe/conversations/a/c.jsonl")).unwrap();
    assert!(kept.contains("\"model\":\"openai/m-2\""), "{kept}");
}

#[test]
fn a_sub_agent_has_its_own_fallback() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "sub_agents = ['b']");
    sandbox.model("b", Anthropic, "fallback = ['ollama/m-2']");
    let server = Server::playing([
        OpenAi.calls(&[to("b", "t")]),
        http("529 Busy", ""),
        Ollama.says("b's"),
        OpenAi.says("done"),
    ]);
    let output = sandbox.asking("a", &server.url()).arg("-v").output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"));
    let warning =
        "[sub-agent] Warning: \"anthropic/m-1\" failed (overloaded: Busy); asking \"ollama/m-2\" instead\n";
    assert!(output.err().contains(warning), "{}", output.err());
    assert_eq!(server.requests()[3].results(), ["b's"]);
}

// Variables.

#[test]
fn set_fills_the_system_prompt_the_prompt_and_file_patterns() {
    let sandbox = with_config("");
    sandbox.file("docs/a.md", "the text");
    sandbox.agent_file(
        "a",
        "name = 'a'\nmodel = 'say/m'\nsystem_prompt = 'In {{lang}}, {{tone}}.'\nfiles = ['docs/{{doc}}.md']\n\
         [memory]\nenabled = true\n[vars]\nlang = 'English'\ntone = 'kindly'\ndoc = ''",
    );
    let (code, out, err) =
        run(&sandbox, &["a", "-p", "Sum up {{doc}}.", "--set", "doc=a", "--set", "lang=Irish"], "{{x}}");
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.starts_with("m: In Irish, kindly.\n") && out.ends_with("Sum up a.\n\n{{x}}"), "{out}");
    assert!(out.contains("### docs/a.md\n```md\nthe text\n```"), "{out}");
    assert!(sandbox.log("a").contains("**Task:** Sum up a.\n"), "{}", sandbox.log("a"));
    for (args, why) in [
        (
            &["a", "-p", "x"][..],
            "{{doc}} has no value; give it with --set doc=VALUE, or write {{ doc }} if it is text",
        ),
        (&["a", "-p", "{{y}}", "--set", "doc=a"], "{{y}} has no value; "),
        (
            &["a", "-p", "x", "--set", "doc=a", "--set", "lnag=x"],
            "option \"--set\" gives \"lnag\", but there is no {{lnag}}; did you mean \"lang\"?",
        ),
        (&["a", "-p", "x", "--set", "doc=a", "--set", "doc=b"], "option \"--set\" gives \"doc\" twice"),
        (&["a", "-p", "x", "--set", "doc"], "option \"--set\" takes NAME=VALUE, got \"doc\"; "),
    ] {
        let calls = || fs::read_to_string(sandbox.work().join("calls")).unwrap();
        let before = calls();
        let (code, out, err) = run(&sandbox, args, "");
        assert_eq!((code, out.as_str()), (Some(1), ""), "{args:?}");
        assert!(err.starts_with(&format!("axe-run: {why}")), "{args:?}: {err}");
        assert_eq!(calls(), before);
    }
}

#[test]
fn braces_are_text_where_nothing_is_set() {
    let sandbox = with_config("[default]\nmodel = 'say/m'");
    sandbox.agent_file("a", "name = 'a'\nmodel = 'say/m'\nsystem_prompt = 'Use {{x}}.'");
    assert_eq!(run(&sandbox, &["a", "-p", "and ${{y}}"], ""), ok("m: Use {{x}}.\n\nand ${{y}}"));
    assert_eq!(run(&sandbox, &["-p", "in {{l}}", "--set", "l={{m}}"], ""), ok("m: in {{m}}"));
}

#[test]
fn a_value_cannot_lead_a_file_pattern_out_of_the_working_directory() {
    let sandbox = with_config("");
    sandbox.write(&sandbox.home().join("secret.txt"), "hidden");
    sandbox.agent_file("a", "name = 'a'\nmodel = 'say/m'\nfiles = ['{{f}}', 'x/{{f}}']\n[vars]\nf = ''");
    let absolute = sandbox.home().join("secret.txt");
    for value in [
        "../home/secret.txt",
        "../../home/secret.txt",
        "../home/*",
        absolute.to_str().unwrap(),
        "~/secret.txt",
    ] {
        let (code, out, err) = run(&sandbox, &["a", "--set", &format!("f={value}")], "hi");
        assert_eq!((code, out.as_str()), (Some(0), "m: hi"), "{value}");
        assert!(err.starts_with("Warning: files: "), "{value}: {err}");
    }
    let (code, _, err) = run(&sandbox, &["a", "--set", "f=[a"], "hi");
    assert!(code == Some(2) && err.starts_with("axe-run: invalid glob pattern \"[a\": "), "{err}");
}

#[test]
fn a_sub_agent_has_its_own_variables() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "sub_agents = ['b', 'c']\nsystem_prompt = '{{x}}'");
    sandbox.model("b", OpenAi, "system_prompt = '{{x}}'\n[vars]\nx = 'own'");
    sandbox.model("c", OpenAi, "system_prompt = '{{x}}'\n[vars]\nx = ''");
    let server = Server::playing([
        OpenAi.calls(&[to("b", "t")]),
        OpenAi.says("b's"),
        OpenAi.calls(&[to("c", "t")]),
        OpenAi.says("done"),
    ]);
    let output = sandbox.asking("a", &server.url()).args(["--set", "x=mine"]).output().unwrap();
    assert_eq!(output.code(), Some(0), "{}", output.err());
    let asked = server.requests();
    assert_eq!((asked[0].system(), asked[1].system()), ("mine", "own"));
    assert!(
        asked[3].results()[1].contains("failed to load agent \"c\": {{x}} has no value"),
        "{:?}",
        asked[3].results()
    );
}

// Code.

#[test]
fn code_alone_is_printed_and_its_absence_is_a_failure() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "");
    sandbox.agent("m", "cat", "[memory]\nenabled = true\nlast_n = 1");
    let answer = "Do this:\n\n```sh\nls -l\n```\n\nOr:\n~~~\npwd\n~~~\nFine.";
    assert_eq!(run(&sandbox, &["a", "--code"], answer), ok("ls -l\n\npwd\n"));
    assert_eq!(run(&sandbox, &["m", "--code"], answer), ok("ls -l\n\npwd\n"));
    assert!(sandbox.log("m").contains("Do this:"), "the log has the whole answer");
    assert_eq!(run(&sandbox, &["a", "--code", "--newline"], "```\nx\n```"), ok("x\n"));
    let (code, out, err) = run(&sandbox, &["a", "--code"], "No code\nhere.");
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_eq!(err, "No code\nhere.\naxe-run: the answer has no code\n");
    sandbox.agent("n", "echo nothing", "[memory]\nenabled = true");
    assert_eq!(run(&sandbox, &["n", "--code"], "x").0, Some(1));
    assert_eq!(sandbox.log("n"), "", "a run that failed is not logged");
    let (code, _, _) = run(&sandbox, &["a", "--code", "--conversation", "c"], "No code here.");
    assert_eq!(code, Some(1));
    assert!(!sandbox.home().join(".local/share/axe/conversations/a/c.jsonl").exists());
    for (args, why) in [
        (&["a", "--code", "--stream"][..], "options \"--code\" and \"--stream\" do not go together"),
        (&["a", "--code", "--json"], "do not go together"),
        (&["a", "--code", "--schema", "x"], "options \"--code\" and \"--schema\" do not go together"),
    ] {
        let (code, out, err) = run(&sandbox, args, "x");
        assert!(code == Some(1) && out.is_empty() && err.contains(why), "{args:?}: {err}");
    }
    sandbox.agent_file("s", "name = 's'\nmodel = 'a/m'\nschema = 's.json'");
    sandbox.write(&sandbox.config().join("s.json"), "{}");
    let (code, _, err) = run(&sandbox, &["s", "--code"], "x");
    assert!(
        code == Some(1) && err.contains("\"--code\" does not go together with the agent's schema"),
        "{err}"
    );
}

// A look before the run.

fn check(sandbox: &Sandbox, args: &[&str]) -> (Option<i32>, String, String) {
    said(sandbox.command("axe-agents").arg("check").args(args))
}

#[test]
fn a_check_names_everything_that_is_wrong_and_runs_nothing() {
    let sandbox = with_config(
        "[models]\ngood = 'say/x'\nbad = 'foo/x'\n[retry]\nmaxx = 1\n[default]\nsystem_prompt = 'x'\n\
         [providers.keyed]\nkind = 'openai'\napi_key_command = 'touch asked; echo k'\n\
         [providers.lost]\nkind = 'openai'\napi_key_file = 'no-such-file'\n\
         [providers.odd]\nkind = 'openai'\napi_key = 'k'\nbase_url = 'ftp://x'\n\
         [providers.gone]\ncommand = 'no-such-program -x'",
    );
    set_mode(&sandbox.config().join("config.toml"), 0o600);
    sandbox.agent_file("fine", "name = 'fine'\nmodel = 'good'\nfallback = ['ollama/x', 'keyed/x']");
    sandbox.agent_file("broken", "name = 5");
    sandbox.agent_file(".hidden", "");
    sandbox.agent_file("typo", "name = 'typo'\nmodel = 'say/x'\nskil = 'x'");
    sandbox.agent_file(
        "many",
        "name = 'many'\nmodel = 'openai/x'\nfallback = ['goood', 'anthropic/x', 'lost/x', 'odd/x']\nskill = 'no-skill'\nschema = 'no.json'\n\
         files = ['[a', 'no-such-file', '{{f}}']\nworkdir = '/no/such/dir'\nsub_agents = ['nobody']\nsystem_prompt = '{{x}}'\n\
         [vars]\nf = ''\n[tools.a]\ncommand = ['no-such-tool', '{x}']\n[tools.b]\ncommand = ['no-such-tool']\n\
         [tools.c]\ncommand = ['cat']\nschema = 'no.json'",
    );
    sandbox.agent_file("cmd", "name = 'cmd'\nmodel = 'gone/x'");
    let (code, out, err) = check(&sandbox, &[]);
    assert_eq!((code, err.as_str()), (Some(2), ""), "{out}");
    let config = sandbox.config();
    let at = |path: &str| config.join(path).display().to_string();
    let expected: Vec<(&str, &str, String)> = vec![
        ("warning", "config.toml", format!("config file \"{}\": unknown key \"retry.maxx\"", at("config.toml"))),
        ("error", "config.toml", "models.bad: unsupported provider \"foo\"".into()),
        ("error", ".hidden", "invalid agent name \".hidden\": it begins with a dot".into()),
        ("error", "broken", "failed to parse agent config \"broken\": line 1, column 8: ".into()),
        ("warning", "cmd", "the command \"no-such-program\" was not found\tinstall it, or".into()),
        ("warning", "default", "it has no model\tset model, or use --model".into()),
        ("error", "many", "API key for provider \"openai\" is not configured".into()),
        ("error", "many", "fallback \"goood\": invalid model format \"goood\": expected provider/model-name\tdid you mean \"good\"?".into()),
        ("warning", "many", "fallback \"anthropic/x\": API key for provider \"anthropic\" is not configured".into()),
        ("warning", "many", "fallback \"lost/x\": the API key for provider \"lost\" cannot be read: ".into()),
        ("warning", "many", "fallback \"odd/x\": invalid base URL".into()),
        ("error", "many", "{{x}} has no value\tgive it with".into()),
        ("error", "many", "invalid glob pattern \"[a\": ".into()),
        ("error", "many", "workdir \"/no/such/dir\" does not exist".into()),
        ("error", "many", "skill not found: no-skill\tlooked for ".into()),
        ("error", "many", "schema not found: no.json\tlooked for ".into()),
        ("error", "many", "agent config \"many\": tools.a: \"{x}\" is no parameter".into()),
        ("error", "many", "schema not found: no.json\tlooked for ".into()),
        ("warning", "many", "agent \"many\" may call \"nobody\", which does not exist".into()),
        ("warning", "typo", "agent config \"typo\": unknown key \"skil\" on line 3, did you mean \"skill\"?".into()),
    ];
    let lines: Vec<&str> = out.lines().collect();
    for (n, (level, agent, what)) in expected.iter().enumerate() {
        let line = lines.get(n).copied().unwrap_or_default();
        assert!(line.starts_with(&format!("{level}\t{agent}\t{what}")), "{what}:\n{line}\nin\n{out}");
        assert_eq!(line.matches('\t').count(), 3, "{line}");
    }
    assert_eq!(lines.len(), expected.len(), "{out}");
    assert!(!sandbox.work().join("asked").exists() && !config.join("asked").exists(), "the key command ran");
    assert!(!sandbox.work().join("calls").exists());
}

#[test]
fn a_check_of_names_looks_at_these_agents_alone() {
    let sandbox = with_config("[models]\nbad = 'foo/x'");
    sandbox.agent_file(
        "fine",
        "name = 'fine'\nmodel = 'say/x'\nworkdir = '.'\nfiles = ['none/*']\n[tools.t]\ncommand = ['./gone']",
    );
    sandbox.agent_file("tool", "name = 'tool'\nmodel = 'openai/x'\n[tools.t]\ncommand = ['no-such-tool']");
    sandbox.agent_file("broken", "name = 5");
    let (code, out, _) =
        said(sandbox.command("axe-agents").args(["check", "tool"]).env("OPENAI_API_KEY", KEY));
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "warning\ttool\ttools.t: the program \"no-such-tool\" was not found\t\n")
    );
    let (code, out, _) = check(&sandbox, &["fine", "--json"]);
    let problems: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(code, Some(2), "{out}");
    assert!(problems.iter().any(|problem| problem["what"] == "files: no file matches \"none/*\""), "{out}");
    assert!(out.starts_with("{\"level\":\"error\",\"agent\":\"fine\",\"what\":\""), "{out}");
    assert_eq!((&problems[0]["level"], &problems[0]["agent"]), (&json!("error"), &json!("fine")));
    let (code, out, _) = check(&sandbox, &["zzzzzz"]);
    assert_eq!(code, Some(2));
    assert!(
        out.starts_with(
            "error\tzzzzzz\tagent config not found: zzzzzz\tcreate it with: axe agents init zzzzzz"
        ),
        "{out}"
    );
    // A configuration that cannot be read is everybody's problem, and no model can be judged.
    let sandbox = with_config("[models");
    sandbox.agent_file("a", "name = 'a'\nmodel = 'any'");
    let (code, out, _) = check(&sandbox, &["a"]);
    assert!(code == Some(2) && out.starts_with("error\tconfig.toml\tfailed to parse config file: "), "{out}");
    assert_eq!(out.lines().count(), 1, "{out}");
}

#[test]
fn a_check_looks_at_servers_rates_and_limits_in_money() {
    let sandbox = with_config(
        "[limits]\nper_day_cost = 1\n[prices.'openai/x']\ninput = 1\noutput = 2\n\
         [rates.'say/x']\n[rates.'opnai/x']\nrequests_per_minute = 1\n[rates.'openai/x']\n",
    );
    let text = |name: &str| format!("name = '{name}'\nmodel = 'openai/x'\nfallback = ['openai/y']\n");
    sandbox.agent_file(
        "a",
        &format!("{}[mcp.s]\ncommand = ['touch', 'started']\ntools = ['t']\n[mcp.gone]\ncommand = ['./no-such-server']\ntools = ['t']", text("a")),
    );
    sandbox.agent_file("b", "name = 'b'\nmodel = 'say/x'\n");
    sandbox.agent_file("c", &format!("{}[mcp.s]\ncommand = ['true']\n[mcp.x]\ntools = ['t']\n", text("c")));
    sandbox.agent_file(
        "d",
        &format!(
            "{}[tools.s_t]\ncommand = ['true']\n[mcp.s]\ncommand = ['true']\ntools = ['t']\n",
            text("d")
        ),
    );
    let offers = json!({ "servers": { "s": { "t": { "schema": { "type": "object" } } } } });
    sandbox.write(&sandbox.config().join("agents/d.mcp.json"), offers.to_string());
    let (code, out, err) = said(sandbox.command("axe-agents").arg("check").env("OPENAI_API_KEY", KEY));
    assert_eq!((code, err.as_str()), (Some(2), ""), "{out}");
    let no_price = "warning\t@\tfallback \"openai/y\": the limits in money need a price for the model \"openai/y\"\t\
                    add [prices.\"openai/y\"] to config.toml, with input and output";
    let expected = [
        "error\tconfig.toml\trates.\"opnai/x\": unsupported provider \"opnai\"",
        "warning\tconfig.toml\trates.\"say/x\": a command has no rate\tremove it",
        &no_price.replace('@', "a"),
        "error\ta\tmcp.gone: the program \"./no-such-server\" was not found\t",
        "error\ta\twhat the MCP server \"gone\" says of its tool \"t\" was not accepted yet\tto see it and accept it, run: ",
        "error\tb\tthe limits in money need a price for the model \"say/x\"\tadd [prices.\"say/x\"] to config.toml",
        &no_price.replace('@', "c"),
        "error\tc\tmcp.s: tools is missing; list the tools that the model may call\t",
        "error\tc\tmcp.x: command is missing; write it as a list of words\t",
        &no_price.replace('@', "d"),
        "error\td\tagent config \"d\": two tools have the name \"s_t\"\trename one of them, or its server",
    ];
    for (line, expected) in out.lines().zip(expected) {
        assert!(line.starts_with(expected), "{expected}:\n{line}\nin\n{out}");
    }
    assert_eq!(out.lines().count(), expected.len(), "{out}");
    assert!(!sandbox.work().join("started").exists());
}

#[test]
fn a_check_of_what_is_fine_prints_nothing() {
    let sandbox = with_config("[models]\nfast = 'say/x'\n[default]\nmodel = 'fast'");
    sandbox.agent_file("a", "name = 'a'\nmodel = 'fast'\nfiles = ['**/*.none']\nsystem_prompt = '{{a}} and {{b}}'\n[vars]\na = ''\nb = 'x'");
    assert_eq!(check(&sandbox, &[]), ok(""));
    assert_eq!(check(&sandbox, &["a", "default"]), ok(""));
}

#[test]
fn a_check_never_shows_a_key() {
    let sandbox = Sandbox::new();
    sandbox.provider(
        "p",
        &format!("kind = 'openai'\napi_key = '{KEY}\\u0001'\nbase_url = 'http://{KEY}@h'")
            .replace('\'', "\""),
    );
    set_mode(&sandbox.config().join("config.toml"), 0o600);
    sandbox.agent_file("a", "name = 'a'\nmodel = 'p/x'");
    let (code, out, err) = check(&sandbox, &[]);
    assert_eq!(code, Some(2));
    assert!(!out.contains(KEY) && !err.contains(KEY), "{out}{err}");
}
