//! Settings of a run beyond its prompt: token budget, timeout, parameters, agents of a checkout, skills by name.

use crate::support::api::{Anthropic, KINDS, Ollama, OpenAi, ask, to};
use crate::support::processes::LONG;
use crate::support::server::{Server, json};
use crate::support::{Said, Sandbox, said};
use serde_json::{Value, json};
use std::time::Instant;

#[test]
fn a_token_budget_ends_a_run_before_the_call_that_could_exceed_it() {
    for kind in KINDS {
        // Each call counts 12 tokens. The prompt and the longest answer are counted before it.
        for (total, code, calls) in [("20", 4, 0), ("70", 0, 1), ("1000", 0, 1)] {
            let sandbox = Sandbox::new();
            sandbox.model("a", kind, "[params]\nmax_tokens = 50\n[memory]\nenabled = true");
            let server = Server::playing([kind.says("fine")]);
            let output = sandbox
                .asking("a", &server.url())
                .args(["-p", "hi", "--max-tokens-total", total])
                .output()
                .unwrap();
            assert_eq!((output.code(), server.requests().len()), (Some(code), calls), "{}", output.err());
            assert_eq!((output.out() == "fine", sandbox.log_path("a").exists()), (code == 0, code == 0));
            let message = "axe-run: the token budget of 20 is spent: 0 are used, and the next call may take ";
            assert_eq!(output.err().starts_with(message), code == 4, "{}", output.err());
        }
    }
}

#[test]
fn what_was_said_before_the_budget_was_spent_is_printed() {
    for (flags, from) in [(&[][..], "config"), (&[], "agent"), (&["--max-tokens-total", "120"], "flag")] {
        let sandbox = Sandbox::new();
        let agent = match from {
            "agent" => "sub_agents = ['b']\n[limits]\nmax_tokens_total = 120\n[memory]\nenabled = true",
            _ => "sub_agents = ['b']\n[memory]\nenabled = true",
        };
        sandbox.model("a", OpenAi, agent);
        sandbox.agent("b", "cat", "");
        if from == "config" {
            let config = sandbox.config().join("config.toml");
            let text = std::fs::read_to_string(&config).unwrap();
            sandbox.write(&config, format!("{text}[limits]\nmax_tokens_total = 120\n"));
        }
        let turn = |n: u32| {
            let mut turn = OpenAi.stops(&format!("thought {n}"), "tool_calls");
            let function = json!({ "name": "call_agent", "arguments": "{}" });
            turn["choices"][0]["message"]["tool_calls"] = json!([{ "id": "x", "function": function }]);
            turn["usage"] = json!({ "prompt_tokens": 20, "completion_tokens": 3 });
            json(200, turn)
        };
        // The tool's description alone has some 110 tokens, so the second call is not made.
        let server = Server::playing([turn(1), turn(2), turn(3)]);
        let output = sandbox.asking("a", &server.url()).args(flags).args(["-p", "hi"]).output().unwrap();
        let asked = server.requests().len();
        assert!((1..3).contains(&asked), "{asked}");
        assert_eq!(
            (output.code(), output.out().starts_with("thought 1")),
            (Some(4), true),
            "{}",
            output.err()
        );
        assert!(output.err().contains("the token budget of 120 is spent"), "{}", output.err());
        assert!(!sandbox.log_path("a").exists());

        let server = Server::playing([turn(1), turn(2), turn(3)]);
        let output =
            sandbox.asking("a", &server.url()).args(flags).args(["-p", "hi", "--json"]).output().unwrap();
        let envelope: Value = serde_json::from_str(&output.out()).unwrap();
        assert!(envelope["content"].as_str().unwrap().starts_with("thought 1"));
        assert_eq!(envelope["stop_reason"], "max_tokens_total");
        let error: Value = serde_json::from_str(output.err().lines().last().unwrap()).unwrap();
        assert_eq!((&error["error"]["kind"], &error["exit_code"]), (&json!("budget"), &json!(4)));
    }
}

#[test]
fn the_budget_is_the_whole_trees_and_counts_commands_too() {
    let sandbox = Sandbox::new();
    sandbox.model("a", Anthropic, "sub_agents = ['b']\n[params]\nmax_tokens = 10");
    sandbox.agent("b", "cat > /dev/null; head -c 8000 /dev/zero | tr '\\0' x", "");
    let server = Server::answering(|request| match request.results().len() {
        0 => Anthropic.calls(&[to("b", "t")]),
        n => Anthropic.says(&format!("{n} results")),
    });
    // b's answer is some 2000 tokens, and the second request has it as well.
    for (total, code) in [("3000", 4), ("6000", 0)] {
        let output = sandbox.asking("a", &server.url()).args(["--max-tokens-total", total]).output().unwrap();
        assert_eq!(output.code(), Some(code), "{}", output.err());
    }
}

#[test]
fn a_timeout_in_the_agents_file_holds_and_the_flag_wins() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "sleep 1000", "timeout = 1");
    let start = Instant::now();
    assert_eq!(said(&mut sandbox.run("a")).0, Some(3));
    assert!(start.elapsed() < LONG, "{:?}", start.elapsed());
    assert!(said(sandbox.run("a").arg("--dry-run")).1.contains("\nTimeout:  1s\n"));
    let (_, out, _) = said(sandbox.run("a").args(["--dry-run", "--timeout", "7"]));
    assert!(out.contains("\nTimeout:  7s\n"), "{out}");
    sandbox.agent_file("b", "name = 'b'\nmodel = 'a/x'\ntimeout = -1");
    let (code, _, err) = said(&mut sandbox.run("b"));
    assert_eq!(code, Some(2));
    assert!(err.starts_with("axe-run: timeout must be non-negative"), "{err}");
}

#[test]
fn other_parameters_go_to_the_api_as_they_are() {
    let agent = "[params]\ntop_p = 0.5\nseed = 7\nreasoning_effort = 'low'\nstop = ['a', 'b']\n\
                 thinking = { type = 'enabled', budget_tokens = 1024 }";
    for kind in KINDS {
        let (output, server) = ask(kind, agent, &["-v"], vec![kind.says("x")]);
        assert_eq!(output.code(), Some(0), "{}", output.err());
        let body = server.request().body;
        let sent = if kind == Ollama { &body["options"] } else { &body };
        assert_eq!((&sent["top_p"], &sent["seed"]), (&json!(0.5), &json!(7)));
        assert_eq!((&sent["reasoning_effort"], &sent["stop"]), (&json!("low"), &json!(["a", "b"])));
        assert_eq!(sent["thinking"], json!({ "type": "enabled", "budget_tokens": 1024 }));
        assert!(
            output.err().contains("Params:   temperature=0, max_tokens=0, reasoning_effort=\"low\", seed=7")
        );
    }
    for (toml, why) in [
        ("model = 'x'", "params.model cannot be set: a run sets it itself"),
        ("messages = []", "params.messages cannot be set"),
        ("tools = []", "params.tools cannot be set"),
        ("stream = true", "params.stream cannot be set"),
        ("x = 2026-01-01", "params.x has a value that JSON does not have"),
        ("x = [inf]", "params.x has a value that JSON does not have"),
    ] {
        let (output, server) = ask(OpenAi, &format!("[params]\n{toml}"), &[], vec![OpenAi.says("x")]);
        assert_eq!((output.code(), server.requests().len()), (Some(2), 0), "{toml}");
        assert!(output.err().contains(why), "{}", output.err());
    }
    let (output, _server) = ask(OpenAi, "[params]\nmax_token = 5", &["--dry-run"], vec![]);
    assert!(output.err().contains("params.max_token goes to the API as it is; did you mean \"max_tokens\"?"));
}

#[test]
fn agents_of_a_checkout_are_used_only_if_their_directory_is_named() {
    let sandbox = Sandbox::new();
    sandbox.agent("both", "echo user", "");
    sandbox.agent("mine", "echo mine", "");
    sandbox.file("agents/both.toml", "name = 'both'\nmodel = 'mine/x'");
    sandbox.file("agents/theirs.toml", "name = 'theirs'\nmodel = 'mine/x'\nsub_agents = []");
    let run = |agent: &str, flag: bool, variable: bool| {
        let mut run = sandbox.run(agent);
        run.args(flag.then_some(["--agents-dir", "agents"]).iter().flatten());
        run.envs(variable.then_some(("AXE_AGENTS_DIR", "agents")));
        said(&mut run)
    };
    assert_eq!(run("both", false, false).1, "user");
    let (code, _, err) = run("theirs", false, false);
    assert_eq!((code, err.starts_with("axe-run: agent config not found: theirs")), (Some(2), true), "{err}");
    for (flag, variable) in [(true, false), (false, true)] {
        for agent in ["both", "theirs", "mine"] {
            assert_eq!(run(agent, flag, variable).1, "mine", "{agent}");
        }
    }
    let list = |args: &[&str]| said(sandbox.command("axe-agents").args(args)).1;
    assert_eq!(list(&["list"]).lines().count(), 2);
    assert_eq!(list(&["list", "--agents-dir", "agents"]), "both\nmine\ntheirs\n");
    let made = list(&["init", "mine", "--agents-dir", "agents"]);
    assert!(made.ends_with("/work/agents/mine.toml\n"), "{made}");

    for (program, args) in [("axe-run", &["both"][..]), ("axe-gc", &["both"]), ("axe-agents", &["list"])] {
        let (code, _, err) = said(sandbox.command(program).args(["--agents-dir", "gone"]).args(args));
        assert_eq!(code, Some(2), "{program}");
        assert!(err.contains("the agents directory \"gone\" does not exist"), "{err}");
    }
}

#[test]
fn a_skill_is_found_by_its_name() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "skill = 'tidy'");
    let (code, _, err) = said(&mut sandbox.run("a"));
    let skills = sandbox.config().join("skills/tidy/SKILL.md").display().to_string();
    let path = sandbox.config().join("tidy").display().to_string();
    assert_eq!(
        (code, err),
        (Some(2), format!("axe-run: skill not found: tidy; looked for \"{skills}\", \"{path}\"\n"))
    );
    sandbox.write(&sandbox.config().join("skills/tidy/SKILL.md"), "Be tidy.");
    sandbox.write(&sandbox.config().join("skills/other/SKILL.md"), "Be other.");
    // A directory of that name in a checkout is no skill.
    sandbox.file("other/x", "");
    assert!(said(&mut sandbox.run("a")).1.contains("## Skill\n\nBe tidy."));
    assert!(said(sandbox.run("a").args(["--skill", "other"])).1.contains("## Skill\n\nBe other."));
}

#[test]
fn the_envelope_has_the_details_of_tool_calls() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "sub_agents = ['b']");
    sandbox.agent("b", "printf 'b says hi'", "");
    let arguments = to("b", "t");
    let calls = [("call_agent", arguments.clone()), ("nonsense", json!({}))];
    let server = Server::playing([OpenAi.calls_tools(&calls), OpenAi.says("done")]);
    let output = sandbox.asking("a", &server.url()).arg("--json").output().unwrap();
    let envelope: Value = serde_json::from_str(&output.out()).unwrap();
    let details = envelope["tool_details"].as_array().unwrap();
    let of = |n: usize, key: &str| details[n][key].clone();
    assert_eq!(details.len(), 2);
    assert_eq!(
        (of(0, "name"), of(0, "arguments"), of(0, "bytes")),
        (json!("call_agent"), arguments, json!(9))
    );
    assert_eq!(
        (of(0, "exit"), of(1, "name"), of(1, "arguments")),
        (Value::Null, json!("nonsense"), json!({}))
    );
    assert!(details.iter().all(|detail| detail["duration_ms"].is_u64()));
}
