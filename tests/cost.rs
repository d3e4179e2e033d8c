//! Prices in config.toml, what runs cost by them, and what is marked for a cache.

use crate::support::api::{Anthropic, KEY, KINDS, OpenAi, to};
use crate::support::server::{Server, json};
use crate::support::{Said, Sandbox, said};
use serde_json::{Value, json};

/// With these prices the answer of `says`, 10 tokens in and 2 out, costs 60.
const PRICES: &str = "input = 2_000_000\noutput = 20_000_000.0";

fn priced(sandbox: &Sandbox, model: &str, prices: &str) {
    let path = sandbox.config().join("config.toml");
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    sandbox.write(&path, format!("{known}[prices.\"{model}\"]\n{prices}\n"));
}

#[test]
fn a_run_tells_its_cost() {
    for kind in KINDS {
        let sandbox = Sandbox::new();
        sandbox.model("a", kind, "");
        priced(&sandbox, &format!("{}/m-1", kind.name()), PRICES);
        let server = Server::answering(move |_| kind.says("one"));
        let output = sandbox.asking("a", &server.url()).args(["--json", "-v"]).output().unwrap();
        let envelope: Value = serde_json::from_str(&output.out()).unwrap();
        assert_eq!(envelope["cost"], 60.0);
        assert!(output.err().ends_with("\nCost:     60.000000\n"), "{}", output.err());
        // Another model has no price.
        let output = sandbox
            .asking("a", &server.url())
            .args(["--json", "-v", "--model", &format!("{}/m-2", kind.name())])
            .output()
            .unwrap();
        let envelope: Value = serde_json::from_str(&output.out()).unwrap();
        assert_eq!((envelope.get("cost"), output.err().contains("Cost:")), (Some(&Value::Null), false));
    }
}

#[test]
fn cached_tokens_cost_what_the_file_says() {
    let anthropic = json!({ "content": [{ "type": "text", "text": "x" }], "stop_reason": "end_turn", "usage": {
        "input_tokens": 1, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 2, "output_tokens": 3 } });
    let openai = json!({ "choices": [{ "message": { "content": "x" }, "finish_reason": "stop" }], "usage": {
        "prompt_tokens": 7, "prompt_tokens_details": { "cached_tokens": 4, "cache_write_tokens": 2 },
        "completion_tokens": 3 } });
    for (kind, answer) in [(Anthropic, anthropic), (OpenAi, openai)] {
        let sandbox = Sandbox::new();
        sandbox.model("a", kind, "");
        let prices = "input = 1e6\noutput = 1e7\ncache_read = 1e8\ncache_write = 1e9";
        priced(&sandbox, &format!("{}/m-1", kind.name()), prices);
        let server = Server::answering(move |_| json(200, answer.clone()));
        let output = sandbox.asking("a", &server.url()).args(["--json", "-v"]).output().unwrap();
        let envelope: Value = serde_json::from_str(&output.out()).unwrap();
        assert_eq!(envelope["cost"], 2431.0, "{envelope}");
        assert_eq!((&envelope["input_tokens"], &envelope["cache_read_tokens"]), (&json!(7), &json!(4)));
        assert_eq!(envelope["cache_write_tokens"], 2);
        assert!(output.err().contains("\nCache:    4 of the input read, 2 written\n"), "{}", output.err());
    }
}

#[test]
fn the_tree_is_summed_and_unknown_if_one_price_is() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "sub_agents = ['b', 'c', 'none']");
    sandbox.model("b", Anthropic, "");
    sandbox.agent("c", "echo c", "");
    priced(&sandbox, "openai/m-1", PRICES);
    priced(&sandbox, "anthropic/m-1", PRICES);
    // 60 for each call of a and b. The sub-agent that does not exist costs nothing.
    for (called, total, each) in [
        (&["b"][..], json!(180.0), vec![json!(60.0)]),
        (&["b", "none"], json!(180.0), vec![json!(60.0), json!(0.0)]),
        (&["b", "c"], Value::Null, vec![json!(60.0), Value::Null]),
    ] {
        let calls: Vec<_> = called.iter().map(|agent| to(agent, "t")).collect();
        let server = Server::answering(move |request| match request.path.as_str() {
            "/v1/messages" => Anthropic.says("b"),
            _ if request.results().is_empty() => OpenAi.calls(&calls),
            _ => OpenAi.says("done"),
        });
        let output = sandbox.asking("a", &server.url()).arg("--json").output().unwrap();
        let envelope: Value = serde_json::from_str(&output.out()).unwrap();
        let costs: Vec<_> =
            envelope["sub_agents"].as_array().unwrap().iter().map(|run| run["cost"].clone()).collect();
        assert_eq!((&envelope["cost"], costs), (&total, each), "{called:?}");
    }
    // Free is a price, also where nobody counts.
    priced(&sandbox, "c/model", "input = 0\noutput = 0");
    let (_, out, _) = said(sandbox.run("c").arg("--json"));
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["cost"], 0.0);
}

#[test]
fn a_bad_price_is_an_error_with_file_and_line() {
    for (text, why) in [
        ("[prices.\"a/b\"]\ninput = -1\noutput = 1", "line 2, column 9: a price is a number from 0"),
        ("[prices.\"a/b\"]\ninput = 1\noutput = nan", "line 3, column 10: a price is a number from 0"),
        ("[prices.\"a/b\"]\ninput = 1\noutput = 1\ncache_read = inf", "line 4, column 14: a price is a"),
        (
            "[prices.\"a/b\"]\ninput = '3'\noutput = 1",
            "line 2, column 9: invalid type: string, expected a number",
        ),
        ("[prices.\"a/b\"]\ninput = 3", "line 1, column 1: missing field `output`"),
        ("[prices.gpt-5]\ninput = 3\noutput = 1", "expected provider/model-name"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.agent_file("a", "name = 'a'\nmodel = 'openai/m'");
        sandbox.write(&sandbox.config().join("config.toml"), text);
        let (code, out, err) = said(&mut sandbox.run("a"));
        assert_eq!((code, out.as_str()), (Some(2), ""), "{text}");
        assert!(err.starts_with("axe-run: failed to parse config file: line "), "{err}");
        assert!(err.contains(why) && err.contains("config.toml\""), "{why}: {err}");
    }
    let sandbox = Sandbox::new();
    sandbox.agent("a", "echo x", "");
    priced(&sandbox, "a/b", "input = 1\noutput = 1\ncached_input = 1");
    let (code, _, err) = said(&mut sandbox.run("a"));
    assert!(code == Some(0) && err.contains("unknown key \"prices.a/b.cached_input\" on line"), "{err}");
}

/// The texts of the blocks that are marked, wherever they are.
fn marked(value: &Value) -> Vec<String> {
    match value {
        Value::Object(all) => {
            let own = all.contains_key("cache_control").then(|| {
                ["text", "name", "content"].iter().find_map(|key| all.get(*key)?.as_str()).unwrap().to_owned()
            });
            own.into_iter().chain(all.values().flat_map(marked)).collect()
        }
        Value::Array(all) => all.iter().flat_map(marked).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn what_repeats_is_marked_for_anthropics_cache_and_the_log_is_not_part_of_it() {
    let memory = "[memory]\nenabled = true";
    let system = "s\n\n---\n\n## Memory\n\n";
    for (agent, args, expected) in [
        (memory.to_owned(), &[][..], vec![]),
        (format!("cache = true\n{memory}"), &[], vec![system]),
        (memory.to_owned(), &["--conversation", "x"], vec![system, "hi"]),
        ("cache = true".to_owned(), &[], vec!["s"]),
    ] {
        let sandbox = Sandbox::new();
        sandbox.model("a", Anthropic, &format!("system_prompt = 's'\n{agent}"));
        sandbox.write_log("a", "## t\n**Task:** x\n**Result:** y\n\n");
        let server = Server::playing([Anthropic.says("one")]);
        let output = sandbox.asking("a", &server.url()).args(["-p", "hi"]).args(args).output().unwrap();
        assert_eq!(output.code(), Some(0), "{}", output.err());
        let body = server.request().body;
        let mut found = marked(&body);
        found.sort();
        let mut expected: Vec<_> = expected.into_iter().map(str::to_owned).collect();
        expected.sort();
        assert_eq!(found, expected, "{agent} {args:?}: {body}");
        if agent.contains("memory") && !found.is_empty() {
            assert!(body["system"][1]["text"].as_str().unwrap().starts_with("## t\n"), "{body}");
        }
    }
}

#[test]
fn a_loop_of_tools_marks_the_end_of_each_turn_and_never_more_than_four() {
    let sandbox = Sandbox::new();
    sandbox.model("a", Anthropic, "system_prompt = 's'\nsub_agents = ['b']");
    sandbox.agent("b", "echo found", "");
    let server = Server::playing([
        Anthropic.calls(&[to("b", "1")]),
        Anthropic.calls(&[to("b", "2"), to("b", "3")]),
        Anthropic.says("done"),
    ]);
    let mut run = sandbox.asking("a", &server.url());
    let output = run.args(["--conversation", "x", "-p", "hi"]).output().unwrap();
    assert_eq!(output.code(), Some(0), "{}", output.err());
    for (n, request) in server.requests().iter().enumerate() {
        let messages = request.body["messages"].as_array().unwrap();
        let last = marked(messages.last().unwrap());
        let all = marked(&request.body);
        assert_eq!((last.len(), all.len()), (1, 3), "{n}: {all:?}");
        assert!(!request.text.contains(KEY));
    }
    // The others need no marks, and know none.
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "system_prompt = 's'\ncache = true");
    let server = Server::playing([OpenAi.says("one")]);
    let mut run = sandbox.asking("a", &server.url());
    assert_eq!(run.args(["--conversation", "x"]).output().unwrap().code(), Some(0));
    assert!(!server.request().text.contains("cache"));
}
