//! Declared programs as tools: what a model may do with them, and above all what it may not.

use crate::support::api::{Anthropic, KINDS, Kind, Ollama, OpenAi, to};
use crate::support::server::{Request, Server};
use crate::support::{Said, Sandbox, eventually, is_running, said, set_mode, symlink};
use serde_json::{Value, json};
use std::process::Output;

/// A sandbox with programs that show their words, and their stdin.
fn workshop() -> Sandbox {
    let sandbox = Sandbox::new();
    for (name, script) in [("words", "for a; do printf '<%s>' \"$a\"; done"), ("input", "cat")] {
        let path = sandbox.home().join(name);
        sandbox.write(&path, format!("#!/bin/sh\n{script}\n"));
        set_mode(&path, 0o755);
    }
    sandbox
}

/// What an agent with these tools is told when it makes these calls in one turn.
fn told(
    sandbox: &Sandbox,
    kind: Kind,
    tools: &str,
    calls: &[(&str, Value)],
) -> (Vec<String>, Output, Vec<Request>) {
    let tools = tools.replace("HOME", &sandbox.home().display().to_string());
    sandbox.model("a", kind, &tools);
    let server = Server::playing([kind.calls_tools(calls), kind.says("done")]);
    let output = sandbox.asking("a", &server.url()).args(["--json", "--no-stdin"]).output().unwrap();
    assert_eq!(output.code(), Some(0), "{}", output.err());
    let requests = server.requests();
    (requests[1].results(), output, requests)
}

/// What one call returns.
fn one(sandbox: &Sandbox, tools: &str, arguments: Value) -> String {
    told(sandbox, Anthropic, tools, &[("t", arguments)]).0.remove(0)
}

/// A tool `t` with these words, and the string parameter `x`.
fn words(words: &str) -> String {
    format!(
        "[tools.t]\ncommand = ['HOME/words', {words}]\nparameters = {{ x = 'string', y = 'string', n = 'integer', p = 'path' }}"
    )
}

#[test]
fn a_tool_is_offered_called_and_reported_with_each_service() {
    for kind in KINDS {
        let sandbox = workshop();
        let tools = "[tools.find]\ndescription = 'Find it'\ncommand = ['HOME/words', 'a b', '--name={x}', '{n}']\n\
                     parameters = { x = 'string, required: what', n = 'integer: how often' }";
        let (results, output, requests) =
            told(&sandbox, kind, tools, &[("find", json!({ "x": "it", "n": 3 }))]);
        assert_eq!(results, ["<a b><--name=it><3>"]);
        let tool = &requests[0].body["tools"][0];
        let (name, description, schema) = match kind {
            Anthropic => (&tool["name"], &tool["description"], &tool["input_schema"]),
            OpenAi | Ollama => {
                let function = &tool["function"];
                (&function["name"], &function["description"], &function["parameters"])
            }
        };
        assert_eq!((name, description), (&json!("find"), &json!("Find it")));
        assert_eq!(
            (&schema["required"], &schema["properties"]["n"]["type"]),
            (&json!(["x"]), &json!("integer"))
        );
        let envelope: Value = serde_json::from_str(&output.out()).unwrap();
        let detail = &envelope["tool_details"][0];
        assert_eq!((&envelope["content"], &envelope["tool_calls"]), (&json!("done"), &json!(1)));
        assert_eq!(
            (&detail["name"], &detail["exit"], &detail["bytes"]),
            (&json!("find"), &json!(0), &json!(19))
        );
        assert_eq!(detail["arguments"], json!({ "x": "it", "n": 3 }));
    }
}

#[test]
fn an_argument_stays_one_argument_whatever_it_contains() {
    let sandbox = workshop();
    let long = "x".repeat(100_000);
    for text in [
        "; touch pwned",
        "$(touch pwned)",
        "`touch pwned`",
        "| touch pwned",
        "&& touch pwned",
        "a b",
        "a\nb\r\n",
        "*",
        "~",
        "$HOME",
        "'",
        "\"",
        "\\",
        "",
        "{y}",
        "{x}",
        "ünï🦀",
        "\u{1b}[31m",
        "a\tb",
        long.as_str(),
    ] {
        assert_eq!(one(&sandbox, &words("'1', '{x}', '2'"), json!({ "x": text })), format!("<1><{text}><2>"));
        assert_eq!(one(&sandbox, &words("'--a={x}'"), json!({ "x": text })), format!("<--a={text}>"));
    }
    assert!(!sandbox.work().join("pwned").exists() && !sandbox.home().join("pwned").exists());
}

#[test]
fn no_argument_becomes_a_flag() {
    let sandbox = workshop();
    for text in ["-o/tmp/x", "--", "-", "--output=/tmp/x", "-\n"] {
        let refused = one(&sandbox, &words("'{x}', '--', 'y'"), json!({ "x": text }));
        assert_eq!(refused, "t error: \"x\" begins with \"-\", and the program would take it for a flag");
        let ended = one(&sandbox, &words("'-v', '--', '{x}'"), json!({ "x": text }));
        assert_eq!(ended, format!("<-v><--><{text}>"));
        // Nor together with another, nor by an argument that is the end of flags.
        assert!(one(&sandbox, &words("'{x}{y}'"), json!({ "x": "", "y": text })).contains("begins with"));
        assert!(
            one(&sandbox, &words("'{x}', '{y}'"), json!({ "x": "a", "y": text })).contains("begins with")
        );
    }
    assert!(one(&sandbox, &words("'{n}'"), json!({ "n": -5 })).contains("\"n\" begins with \"-\""));
    assert_eq!(one(&sandbox, &words("'-n{n}'"), json!({ "n": -5 })), "<-n-5>");
}

#[test]
fn a_nul_and_a_megabyte_are_told_to_the_model() {
    let sandbox = workshop();
    assert_eq!(one(&sandbox, &words("'{x}'"), json!({ "x": "a\0b" })), "t error: \"x\" contains a NUL");
    for n in [1 << 20, 128 * 1024] {
        let refused = one(&sandbox, &words("'{x}'"), json!({ "x": "x".repeat(n) }));
        assert_eq!(refused, "t error: \"x\" is longer than 128 KiB");
    }
    // On stdin there is no such limit.
    let tools = "[tools.t]\ncommand = ['wc', '-c']\nparameters = { x = 'string' }";
    assert_eq!(one(&sandbox, tools, json!({ "x": "x".repeat(1 << 20) })).trim(), ((1 << 20) + 8).to_string());
    let tools = "[tools.t]\ncommand = ['HOME/input']\nparameters = { x = 'string', n = 'number' }";
    let arguments = json!({ "x": "a\0-\n", "n": 1.5 });
    assert_eq!(one(&sandbox, tools, arguments.clone()), arguments.to_string());
}

#[test]
fn arguments_are_checked_before_anything_runs() {
    let sandbox = workshop();
    let tools = "[tools.t]\ncommand = ['HOME/words', '{x}', '--n={n}', '{b}', 'end']\n\
                 parameters = { x = 'string, required', n = 'integer', b = 'boolean' }";
    for (arguments, result) in [
        (json!({ "x": "a" }), "<a><end>"),
        (json!({ "x": "a", "n": null }), "<a><end>"),
        (json!({ "x": "a", "n": 2, "b": true }), "<a><--n=2><true><end>"),
        (json!({}), "t error: the arguments are not valid: x: is missing"),
        (json!({ "x": null }), "t error: the arguments are not valid: x: is missing"),
        (json!({ "x": 5 }), "t error: the arguments are not valid: x: string is expected, not a number"),
        (json!({ "x": ["a"] }), "t error: the arguments are not valid: x: string is expected, not an array"),
        (
            json!({ "x": "a", "n": 1.5 }),
            "t error: the arguments are not valid: n: integer is expected, not a number",
        ),
        (
            json!({ "x": "a", "n": "2" }),
            "t error: the arguments are not valid: n: integer is expected, not a string",
        ),
        (json!({ "x": "a", "z": 1 }), "t error: the arguments are not valid: z: unknown key"),
    ] {
        assert_eq!(one(&sandbox, tools, arguments.clone()), result, "{arguments}");
    }
    let schema =
        json!({ "type": "object", "properties": { "x": { "enum": ["a", "b"] } }, "required": ["x"] });
    sandbox.write(&sandbox.config().join("t.json"), schema.to_string());
    let tools = "[tools.t]\ncommand = ['HOME/words', '{x}']\nschema = 't.json'";
    assert_eq!(one(&sandbox, tools, json!({ "x": "b" })), "<b>");
    assert_eq!(
        one(&sandbox, tools, json!({ "x": "c" })),
        "t error: the arguments are not valid: x: \"c\" is none of \"a\", \"b\""
    );
    // Malformed ones, in the format in which they are text.
    let call = json!([{ "id": "c", "function": { "name": "t", "arguments": "{\"x\":" } }]);
    let mut turn = OpenAi.stops("", "tool_calls");
    turn["choices"][0]["message"]["tool_calls"] = call;
    sandbox.model("a", OpenAi, &words("'{x}'").replace("HOME", "/nonexistent"));
    let server = Server::playing([crate::support::server::json(200, turn), OpenAi.says("done")]);
    assert_eq!(sandbox.asking("a", &server.url()).output().unwrap().code(), Some(0));
    let result = &server.requests()[1].results()[0];
    assert!(
        result.starts_with("t error: the arguments cannot be read: they are not a JSON object"),
        "{result}"
    );
}

#[test]
fn a_path_stays_inside_the_working_directory() {
    let sandbox = workshop();
    sandbox.file("src/a.rs", "");
    sandbox.file("-x", "");
    sandbox.write(&sandbox.home().join("secret"), "secret");
    symlink(sandbox.home().join("secret"), sandbox.work().join("out"));
    symlink(sandbox.home(), sandbox.work().join("outdir"));
    symlink("src/a.rs", sandbox.work().join("in"));
    symlink("/nonexistent/x", sandbox.work().join("dangling"));
    let root = std::fs::canonicalize(sandbox.work()).unwrap().display().to_string();
    let tool = words("'{p}'");
    for (path, real) in [
        ("src/a.rs", "/src/a.rs"),
        ("./src/../src/a.rs", "/src/a.rs"),
        ("in", "/src/a.rs"),
        (".", ""),
        ("src/new.rs", "/src/new.rs"),
        ("new/dir/file", "/new/dir/file"),
        ("-x", "/-x"),
    ] {
        assert_eq!(one(&sandbox, &tool, json!({ "p": path })), format!("<{root}{real}>"), "{path}");
    }
    let absolute = format!("{root}/src/a.rs");
    assert_eq!(one(&sandbox, &tool, json!({ "p": absolute })), format!("<{root}/src/a.rs>"));
    for path in
        ["..", "../x", "/etc/passwd", "out", "outdir", "outdir/secret", "src/../../x", "new/../../x", "/"]
    {
        let refused = one(&sandbox, &tool, json!({ "p": path }));
        assert_eq!(refused, "t error: \"p\" is outside the working directory", "{path}");
    }
    assert!(one(&sandbox, &tool, json!({ "p": "dangling" })).contains("a symlink that leads nowhere"));
    assert!(one(&sandbox, &tool, json!({ "p": "" })).contains("is not a path"));
    assert!(one(&sandbox, &tool, json!({ "p": "a\0" })).contains("is not a path"));
    // Also on stdin.
    let tool = "[tools.t]\ncommand = ['HOME/input']\nparameters = { p = 'path' }";
    assert_eq!(
        one(&sandbox, tool, json!({ "p": "in" })),
        json!({ "p": format!("{root}/src/a.rs") }).to_string()
    );
    assert!(one(&sandbox, tool, json!({ "p": "../x" })).contains("is outside"));
}

#[test]
fn a_tool_that_misbehaves_ends_and_is_told() {
    let sandbox = workshop();
    let tool = |line: &str| format!("[tools.t]\ncommand = ['/bin/sh', '-c', \"\"\"{line}\"\"\"]\n");
    let hurried = |line: &str| tool(line) + "timeout = 1";
    let told = "Error: tool \"t\" did not finish in time (1 s)";
    assert_eq!(one(&sandbox, &hurried("sleep 1000"), json!({})), told);

    // Nothing that it started is left.
    one(&sandbox, &tool("sleep 61.25 & echo fine"), json!({}));
    eventually("the child of a tool is gone", || !is_running("sleep 61.25"));

    let flood = one(&sandbox, &tool("head -c 3000000 /dev/zero | tr '\\\\0' x; echo end"), json!({}));
    assert!(flood.len() > 256 * 1024 && flood.len() < 257 * 1024, "{}", flood.len());
    assert!(
        flood.contains("\n[… 2737860 bytes left out …]\n") && flood.ends_with("xend\n"),
        "{}",
        &flood[flood.len() - 9..]
    );

    let endless = one(&sandbox, &hurried("exec cat /dev/zero"), json!({}));
    assert!(endless.contains("did not finish in time"), "{endless}");

    for (line, result) in [
        ("exec <&-; echo fine", "fine\n"),
        ("exit 3", "Error: tool \"t\" failed (exit 3)"),
        (
            "echo out; echo one >&2; echo two >&2; exit 1",
            "Error: tool \"t\" failed (exit 1)\nstderr:\none\ntwo\nstdout:\nout",
        ),
        ("kill -9 $$", "Error: tool \"t\" failed (signal 9)"),
        ("printf 'caf\\\\351'", "caf\u{fffd}"),
        ("true", ""),
        ("echo noise >&2; echo fine", "fine\n"),
    ] {
        assert_eq!(one(&sandbox, &tool(line), json!({})), result, "{line}");
    }
    let long = one(&sandbox, &tool("head -c 9000 /dev/zero | tr '\\\\0' y >&2; exit 1"), json!({}));
    assert!(long.len() < 2200, "{}", long.len());
    let missing = one(&sandbox, "[tools.t]\ncommand = ['/nonexistent/tool']", json!({}));
    assert!(missing.starts_with("Error: tool \"t\" could not be started: "), "{missing}");
}

#[test]
fn tools_of_one_turn_run_at_once_beside_sub_agents_and_inside_them() {
    let sandbox = workshop();
    sandbox.agent("b", "echo b", "");
    sandbox.model("c", Anthropic, "[tools.t]\ncommand = ['echo', 'in c']");
    // Each waits for the other four.
    let meets = "touch at.$$; until [ $(ls | grep -c ^at) -ge 5 ]; do sleep 0.01; done; echo t";
    let tools = format!("sub_agents = ['b', 'c']\n[tools.t]\ncommand = ['sh', '-c', '{meets}']");
    sandbox.model("a", Anthropic, &tools);
    let server = Server::answering(|request| match (request.user(), request.results().len()) {
        ("Task: c", 0) => Anthropic.calls_tools(&[("t", json!({}))]),
        ("Task: c", _) => Anthropic.says(&request.results()[0]),
        (_, 0) => {
            let mut calls = vec![("t", json!({})); 5];
            calls.extend([
                ("call_agent", to("b", "b")),
                ("call_agent", to("c", "c")),
                ("nonsense", json!({})),
            ]);
            Anthropic.calls_tools(&calls)
        }
        _ => Anthropic.says("done"),
    });
    let output = sandbox.asking("a", &server.url()).args(["--json", "--no-stdin"]).output().unwrap();
    assert_eq!(output.code(), Some(0), "{}", output.err());
    let requests = server.requests();
    let last = requests.iter().rev().find(|request| !request.user().starts_with("Task:")).unwrap();
    let t = "t\n";
    assert_eq!(last.results(), [t, t, t, t, t, "b", "in c\n", "Unknown tool: \"nonsense\""]);
    let envelope: Value = serde_json::from_str(&output.out()).unwrap();
    assert_eq!(envelope["tool_details"].as_array().unwrap().len(), 8);
    assert_eq!(envelope["sub_agents"][1]["tool_details"][0]["name"], "t");
}

#[test]
fn tools_count_in_the_budget_and_loops_end_after_fifty_turns() {
    let sandbox = workshop();
    sandbox.model("a", OpenAi, "[tools.t]\ncommand = ['sh', '-c', 'echo x >> ran; echo fine']");
    let server = Server::answering(|_| OpenAi.calls_tools(&[("t", json!({}))]));
    let output = sandbox.asking("a", &server.url()).output().unwrap();
    assert_eq!((output.code(), server.requests().len()), (Some(1), 50), "{}", output.err());
    assert!(output.err().contains("agent exceeded maximum conversation turns (50)"), "{}", output.err());
    let ran = || std::fs::read_to_string(sandbox.work().join("ran")).unwrap().lines().count();
    assert_eq!(ran(), 49);

    sandbox.write(&sandbox.config().join("config.toml"), "[limits]\nmax_calls = 4\n");
    let server = Server::answering(|request| match request.results().len() {
        0 => OpenAi.calls_tools(&[("t", json!({})), ("t", json!({})), ("t", json!({}))]),
        _ => OpenAi.says("done"),
    });
    let output = sandbox.asking("a", &server.url()).output().unwrap();
    assert_eq!((output.code(), output.out().as_str(), ran()), (Some(0), "done", 51), "{}", output.err());
    let results = server.requests()[1].results();
    let refused = "Error: tool \"t\" was not run: the run has used its limit of 4 model calls";
    assert_eq!(results.iter().filter(|result| *result == refused).count(), 1, "{results:?}");
}

#[test]
fn declarations_are_checked_and_shown() {
    let sandbox = workshop();
    let server = Server::answering(|_| OpenAi.says("x"));
    for (toml, why) in [
        ("[tools.t]\ndescription = 'x'", "agent config \"a\": tools.t: command is missing"),
        ("[tools.call_agent]\ncommand = ['x']", "tools.call_agent: this name is reserved"),
        ("[tools.'a b']\ncommand = ['x']", "tools.a b: a tool's name has"),
        (
            "[tools.t]\ncommand = ['x']\nparameters = { x = 'text' }",
            "tools.t: parameter \"x\" has the type \"text\"",
        ),
        (
            "[tools.t]\ncommand = ['x', '--{x}']\nparameters = { x = 'string' }",
            "a model could choose any flag",
        ),
        ("[tools.t]\ncommand = ['x']\nschema = 'gone.json'", "schema not found: gone.json"),
        ("[tools.t]\ncommand = 'x'", "failed to parse agent config"),
    ] {
        sandbox.model("a", OpenAi, toml);
        let output = sandbox.asking("a", &server.url()).output().unwrap();
        assert_eq!((output.code(), output.out().as_str()), (Some(2), ""), "{toml}");
        assert!(output.err().contains(why), "{}", output.err());
    }
    sandbox.agent("command", "cat", "[tools.t]\ncommand = ['x']");
    let (code, _, err) = said(&mut sandbox.run("command"));
    assert_eq!(code, Some(2));
    assert!(err.contains("has tools, and its model \"command/model\" is a command"), "{err}");
    assert!(server.requests().is_empty());

    sandbox.model(
        "a",
        OpenAi,
        "[tools.b]\ncommand = ['rg', '-n', '{x}']\nparameters = { x = 'string' }\n[tools.a]\ncommand = ['sh', '-c', 'a b']",
    );
    let output = sandbox.asking("a", &server.url()).arg("--dry-run").output().unwrap();
    assert!(
        output.out().ends_with("\n\n--- Tools ---\na: sh -c 'a b'\nb: rg -n '{x}'\n"),
        "{}",
        output.out()
    );
    sandbox.model("a", OpenAi, "[tools.t]\ncomand = ['x']\ncommand = ['y']");
    let output = sandbox.asking("a", &server.url()).arg("--dry-run").output().unwrap();
    assert!(
        output.err().contains("unknown key \"tools.t.comand\" on line 4, did you mean \"command\"?"),
        "{}",
        output.err()
    );
}
