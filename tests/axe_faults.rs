//! What servers, budgets and tools do to a run that has paid for answers: none is lost, none is an empty success.

use crate::streams::{begun, chunked, content_type, ended, events};
use crate::support::api::{Anthropic, KINDS, Kind, Ollama, OpenAi, ask, to};
use crate::support::server::{Answer, Server, http, json};
use crate::support::{Said, Sandbox, present, said};
use serde_json::{Value, json};
use std::process::Output;

/// An agent with these lines asks a server that sends `answers`, with these further arguments.
fn run(kind: Kind, agent: &str, args: &[&str], answers: Vec<Answer>) -> (Output, Vec<Value>) {
    let (output, server) = ask(kind, agent, &[&["--no-stdin"], args].concat(), answers);
    (output, server.requests().into_iter().map(|request| request.body).collect())
}

/// A lead with three sub-agents that each call eight tools at once, within this budget of calls.
fn lead_with_tools(kind: Kind, max_calls: u32) -> (Output, usize, usize) {
    let sandbox = Sandbox::new();
    sandbox.model("parent", kind, "sub_agents = ['b']");
    sandbox.model("b", kind, "[tools.t]\ncommand = ['true']");
    sandbox.write(&sandbox.config().join("config.toml"), format!("[limits]\nmax_calls = {max_calls}\n"));
    let server = Server::answering(move |request| match (request.user(), request.results().len()) {
        ("Task: x", 0) => kind.calls_tools(&vec![("t", json!({})); 8]),
        ("Task: x", n) => kind.says(&format!("{n} results")),
        (_, 0) => kind.calls(&[to("b", "x"), to("b", "x"), to("b", "x")]),
        _ => kind.says(&request.results().join(", ")),
    });
    let output = sandbox.asking("parent", &server.url()).args(["--timeout", "20"]).output().unwrap();
    let of_b = server.requests().iter().filter(|request| request.user() == "Task: x").count();
    (output, of_b, server.requests().len())
}

#[test]
fn a_spent_budget_neither_hangs_the_tree_nor_loses_an_answer() {
    // Each sub-agent that has begun can answer, whatever is left. How many get a call with tools depends on who is first.
    let cases = [5, 6, 7, 8, 9].map(|max_calls| (Anthropic, max_calls));
    for (kind, max_calls) in cases.into_iter().chain(KINDS.map(|kind| (kind, 12))) {
        let (output, of_b, all) = lead_with_tools(kind, max_calls);
        assert_eq!(output.code(), Some(0), "{max_calls}: {}", output.err());
        assert!(all <= max_calls as usize, "{max_calls}: {all}");
        let (answered, refused) =
            (output.out().matches("8 results").count(), output.out().matches("limit of").count());
        assert!(answered + refused == 3 && of_b >= answered, "{max_calls}: {}", output.out());
    }
}

/// A lead with fifteen agents that have fifteen each. How many requests there were, how many of the lowest agents answered,
/// and how many of these answers the lead has.
fn wide_tree(lead: &str) -> (usize, usize, usize) {
    let sandbox = Sandbox::new();
    sandbox.model("parent", Anthropic, &format!("sub_agents = ['m']\n{lead}"));
    sandbox.model("m", Anthropic, "sub_agents = ['b']");
    sandbox.model("b", Anthropic, "");
    let server = Server::answering(|request| match (request.user(), request.results().len()) {
        ("Task: b", _) => Anthropic.says("leaf"),
        ("Task: m", 0) => Anthropic.calls(&vec![to("b", "b"); 15]),
        (_, 0) => Anthropic.calls(&vec![to("m", "m"); 15]),
        _ => Anthropic.says(&request.results().join(" ")),
    });
    let output = sandbox.asking("parent", &server.url()).output().unwrap();
    assert_eq!(output.code(), Some(0), "{}", output.err());
    let (asked, leaves) =
        (server.requests().len(), server.requests().iter().filter(|r| r.user() == "Task: b").count());
    (asked, leaves, output.out().matches("leaf").count())
}

#[test]
fn two_hundred_calls_of_a_wide_tree_all_reach_the_lead() {
    // One after another, so that it is certain who is handed the last calls.
    let (asked, leaves, told) = wide_tree("[sub_agents_config]\nparallel = false");
    // This model calls on although it must answer, so that a few of the fifteen fail. What was bought is there.
    assert!((190..=200).contains(&asked) && leaves >= 168, "{asked} {leaves}");
    assert_eq!(told, leaves);
    // Eight at once: seven may each have a call set aside, which comes back when nobody needs it any more.
    let (asked, leaves, told) = wide_tree("");
    assert!((193..=200).contains(&asked) && leaves >= 168 - 7, "{asked} {leaves}");
    assert_eq!(told, leaves);
}

#[test]
fn a_spent_token_budget_prints_what_sub_agents_have_answered() {
    let sandbox = Sandbox::new();
    sandbox.model("parent", OpenAi, "sub_agents = ['b']");
    sandbox.model("b", OpenAi, "");
    let server = Server::answering(|request| match request.user() {
        "Task: one" | "Task: two" => {
            let mut answer = OpenAi.stops(&format!("about {}", &request.user()[6..]), "stop");
            answer["usage"]["prompt_tokens"] = json!(600);
            json(200, answer)
        }
        _ => OpenAi.calls(&[to("b", "one"), to("b", "two")]),
    });
    for args in [&[][..], &["--stream"], &["--json"]] {
        let output = sandbox
            .asking("parent", &server.url())
            .args(["--max-tokens-total", "1000"])
            .args(args)
            .output()
            .unwrap();
        assert_eq!(output.code(), Some(4), "{}", output.err());
        let text = match args.contains(&"--json") {
            true => {
                serde_json::from_str::<Value>(&output.out()).unwrap()["content"].as_str().unwrap().to_owned()
            }
            false => output.out(),
        };
        assert!(text.contains("## b\n\nabout one") && text.contains("## b\n\nabout two"), "{args:?}: {text}");
    }
    // Of a run that failed otherwise, stderr has them.
    let server = Server::answering(|request| match (request.user(), request.results().len()) {
        ("Task: one", _) => OpenAi.says("about one"),
        (_, 0) => OpenAi.calls(&[to("b", "one")]),
        _ => http("401 No", ""),
    });
    let output = sandbox.asking("parent", &server.url()).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(3), ""));
    let start = "## b\n\nabout one\naxe-run: auth: No; continue with: axe run --continue ";
    assert!(output.err().starts_with(start), "{}", output.err());
    let output = sandbox.asking("parent", &server.url()).arg("--json").output().unwrap();
    let error: Value = serde_json::from_str(&output.err()).unwrap();
    assert_eq!(
        (&error["error"]["kind"], &error["run"]["content"], &error["run"]["sub_agents"][0]["name"]),
        (&json!("api"), &json!("## b\n\nabout one"), &json!("b")),
        "{error}"
    );
}

#[test]
fn content_in_parts_is_streamed_like_text() {
    let part = |text: &str| json!([{ "type": "text", "text": text }]);
    for pieces in [[part("hel"), part("lo")], [part("hel"), json!("lo")], [json!("hel"), part("lo")]] {
        let delta = |content: &Value| json!({ "choices": [{ "delta": { "role": "assistant", "content": content } }] });
        let body = events(pieces.iter().map(delta)) + &ended(OpenAi);
        for args in [&["--stream"][..], &["--stream", "--newline"]] {
            let (output, _) = run(OpenAi, "", args, vec![chunked(OpenAi, &body, "0\r\n\r\n")]);
            assert_eq!((output.code(), output.out().trim_end()), (Some(0), "hello"), "{}", output.err());
        }
    }
}

#[test]
fn the_last_event_ends_a_stream_whatever_follows() {
    for kind in KINDS {
        let whole = begun(kind, &["hello"]) + &ended(kind);
        let more = whole.clone() + &begun(kind, &["MORE"]);
        let garbage = whole.clone() + "data: {garbage\n\n{garbage\n";
        // An open connection, more text, garbage, and bytes that are no chunk.
        for answer in [
            chunked(kind, &whole, "").stall(),
            chunked(kind, &more, "0\r\n\r\n"),
            chunked(kind, &garbage, "0\r\n\r\n"),
            chunked(kind, &whole, "zz\r\n"),
        ] {
            for args in [&["--stream"][..], &["--stream", "--json"]] {
                let (output, _) = run(kind, "", &[args, &["--timeout", "20"]].concat(), vec![answer.clone()]);
                assert_eq!(output.code(), Some(0), "{kind:?}: {}", output.err());
                assert!(output.out().contains("hello") && !output.out().contains("MORE"), "{}", output.out());
            }
        }
    }
    // A reason to stop and then silence: the answer is whole.
    let stop = json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] });
    let body = begun(OpenAi, &["hello"]) + &events([stop]);
    let (output, _) =
        run(OpenAi, "", &["--stream", "--timeout", "2"], vec![chunked(OpenAi, &body, "").stall()]);
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "hello"), "{}", output.err());
}

#[test]
fn a_call_without_arguments_has_none() {
    for arguments in [json!(""), json!(" "), Value::Null, json!("absent"), json!("null")] {
        let mut function = json!({ "name": "t" });
        if arguments != "absent" {
            function["arguments"] = arguments.clone();
        }
        for kind in [OpenAi, Ollama] {
            let mut turn = kind.stops("", "tool_calls");
            let message =
                if kind == OpenAi { &mut turn["choices"][0]["message"] } else { &mut turn["message"] };
            message["tool_calls"] = json!([{ "id": "c", "type": "function", "function": function }]);
            let (output, requests) = run(
                kind,
                "[tools.t]\ncommand = ['echo', 'ran']",
                &[],
                vec![json(200, turn), kind.says("done")],
            );
            assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"), "{}", output.err());
            assert!(requests[1].to_string().contains("ran\\n"), "{arguments}: {}", requests[1]);
        }
    }
    for input in [Value::Null, json!("")] {
        let mut turn = Anthropic.stops("", "tool_use");
        turn["content"] = json!([{ "type": "tool_use", "id": "c", "name": "t", "input": input }]);
        let answers = vec![json(200, turn), Anthropic.says("done")];
        let (output, requests) = run(Anthropic, "[tools.t]\ncommand = ['echo', 'ran']", &[], answers);
        assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"), "{}", output.err());
        assert!(requests[1].to_string().contains("ran\\n"), "{}", requests[1]);
        assert_eq!(requests[1]["messages"][1]["content"][0]["input"], json!({}));
    }
}

#[test]
fn a_servers_own_words_are_shown() {
    let list =
        json!({ "detail": [{ "loc": ["body", "model"], "msg": "field required", "type": "missing" }] });
    for (answer, code, line) in [
        (json(404, json!({ "detail": "no such model" })), 1, "bad_request: no such model"),
        (json(422, list), 1, "bad_request: body.model: field required"),
        (json(403, json!({ "errors": ["not today"] })), 3, "auth: not today"),
        (
            json(401, json!({ "errors": [{ "message": "no key" }, { "message": "no" }] })),
            3,
            "auth: no key; no",
        ),
        (http("400 Bad", "the model is\nunknown"), 1, "bad_request: the model is unknown"),
        (http("400 Bad", "<html>x</html>"), 1, "bad_request: Bad"),
        (http("400 Bad", "\u{feff}{\"error\":\"with a mark\"}"), 1, "bad_request: with a mark"),
        (http("200 OK", "[{\"id\": 1}]"), 3, "server: the reply is not a JSON object"),
        (http("200 OK", "{\"error\": {}}"), 3, "server: the reply is an error without a message"),
        (http("200 OK", "[{\"error\": {\"message\": \"listed\"}}]"), 3, "server: listed"),
    ] {
        let (output, _) = run(OpenAi, "", &[], vec![answer]);
        assert_eq!((output.code(), output.out().as_str()), (Some(code), ""), "{line}");
        assert!(output.err().starts_with(&format!("axe-run: {line}")), "{line}: {}", output.err());
    }
    for (event, line) in [
        ("event: error\ndata: {\"message\":\"it broke\"}\n\n", "it broke"),
        ("event: error\ndata: {\"detail\":\"it broke\"}\n\n", "it broke"),
        ("event: error\ndata: it broke\n\n", "it broke"),
    ] {
        let body = begun(OpenAi, &["one"]) + event;
        let (output, _) = run(OpenAi, "", &["--stream"], vec![chunked(OpenAi, &body, "0\r\n\r\n")]);
        assert_eq!(output.code(), Some(3));
        assert_eq!(output.err(), format!("axe-run: server: {line}\n"));
    }
}

#[test]
fn a_parameter_that_is_refused_with_422_is_left_out() {
    let refused = |name: &str| {
        let fault = json!({ "loc": ["body", name], "msg": "Extra inputs are not permitted" });
        json(422, json!({ "detail": [fault] }))
    };
    let streamed = chunked(OpenAi, &(begun(OpenAi, &["one"]) + &ended(OpenAi)), "0\r\n\r\n");
    let (output, requests) = run(OpenAi, "", &["--stream"], vec![refused("stream_options"), streamed]);
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "one"), "{}", output.err());
    assert!(requests[1].get("stream_options").is_none());

    for refusal in [refused("response_format"), http("422 No", "response_format is not supported")] {
        let sandbox = Sandbox::new();
        sandbox.model("a", OpenAi, "");
        sandbox.file("s.json", "{\"type\": \"object\"}");
        let server = Server::playing([refusal, OpenAi.says("{}")]);
        let output = sandbox.asking("a", &server.url()).args(["--schema", "s.json"]).output().unwrap();
        assert_eq!((output.code(), output.out().as_str()), (Some(0), "{}"), "{}", output.err());
        assert!(server.requests()[1].body.get("response_format").is_none());
    }
}

#[test]
fn a_streamed_refusal_is_printed() {
    let delta = |text: &str| json!({ "choices": [{ "delta": { "refusal": text } }] });
    let body = events([delta("I will "), delta("not.")]) + &ended(OpenAi);
    let (output, _) = run(OpenAi, "", &["--stream"], vec![chunked(OpenAi, &body, "0\r\n\r\n")]);
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "I will not."), "{}", output.err());
}

#[test]
fn with_json_the_stderr_of_a_failed_run_is_one_object() {
    let object = |output: &Output| -> Value {
        serde_json::from_str(&output.err()).unwrap_or_else(|e| panic!("{e}: {}", output.err()))
    };
    // An answer that was rejected, with a warning before it.
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "unknown = 1\nschema = 's.json'\n[memory]\nenabled = true");
    sandbox.write(&sandbox.config().join("s.json"), "{\"type\": \"object\"}");
    let server = Server::playing([OpenAi.says("no\nJSON"), OpenAi.says("none\nagain")]);
    let output = sandbox.asking("a", &server.url()).arg("--json").output().unwrap();
    let error = object(&output);
    assert_eq!((output.code(), &error["exit_code"]), (Some(1), &json!(1)));
    assert_eq!(
        (&error["run"]["content"], &error["run"]["input_tokens"]),
        (&json!("none\nagain"), &json!(20))
    );
    assert!(error["warnings"][0].as_str().unwrap().contains("unknown key"), "{error}");

    // Warnings of a run that is well are lines, as without --json.
    let server = Server::playing([OpenAi.says("{}")]);
    let output = sandbox.asking("a", &server.url()).arg("--json").output().unwrap();
    assert_eq!((output.code(), output.err().lines().count()), (Some(0), 1));
    assert!(output.err().starts_with("Warning: agent config \"a\": unknown key"), "{}", output.err());
}

#[test]
fn a_failed_run_reports_its_calls_with_their_arguments() {
    let tools = "[tools.t]\ncommand = ['echo', '{x}']\nparameters = { x = 'string' }";
    let calls = OpenAi.calls_tools(&[("t", json!({ "x": "it" }))]);
    let (output, _) = run(OpenAi, tools, &["--json"], vec![calls.clone(), http("401 No", "")]);
    let error: Value = serde_json::from_str(&output.err()).unwrap();
    let detail = &error["run"]["tool_details"][0];
    assert_eq!((&detail["name"], &detail["arguments"]), (&json!("t"), &json!({ "x": "it" })), "{error}");
    let (output, _) = run(OpenAi, tools, &["-v"], vec![calls, OpenAi.says("done")]);
    assert!(output.err().contains("[tool] Calling \"t\" with {\"x\":\"it\"}\n"), "{}", output.err());
}

/// What a model is told when it calls the tool `t` with these arguments.
fn told(tools: &str, arguments: Value) -> (String, Output) {
    let answers = vec![OpenAi.calls_tools(&[("t", arguments)]), OpenAi.says("done")];
    let (output, requests) = run(OpenAi, tools, &[], answers);
    let told = requests.get(1).map_or("", |body| body["messages"][2]["content"].as_str().unwrap());
    (told.to_owned(), output)
}

#[test]
fn tools_say_what_is_wrong_and_leave_out_a_flag_with_its_argument() {
    let words = "[tools.t]\ncommand = ['echo', '-m', '{n}', '--to={to}', '{from}..{to}', 'end']\n\
                 parameters = { n = 'integer', from = 'string', to = 'string' }";
    assert_eq!(told(words, json!({ "n": 3, "from": "a", "to": "b" })).0, "-m 3 --to=b a..b end\n");
    assert_eq!(told(words, json!({ "from": "a", "to": "b" })).0, "--to=b a..b end\n");
    assert_eq!(told(words, json!({ "n": 3 })).0, "-m 3 end\n");
    let blamed = told(words, json!({ "from": "-x", "to": "b" })).0;
    assert_eq!(blamed, "t error: \"from\" begins with \"-\", and the program would take it for a flag");
    // A word that ends the flags stays.
    let ended = "[tools.t]\ncommand = ['echo', 'x', '--', '{n}']\nparameters = { n = 'string' }";
    assert_eq!(told(ended, json!({})).0, "x --\n");
}

#[test]
fn a_placeholder_that_is_no_parameter_is_an_error_when_the_agent_is_read() {
    for (word, why) in [
        ("{patern}", "tools.t: \"{patern}\" is no parameter, did you mean \"{pattern}\"?"),
        ("--x={other}", "tools.t: \"{other}\" is no parameter; declare it"),
    ] {
        let tools = format!("[tools.t]\ncommand = ['echo', '{word}']\nparameters = {{ pattern = 'string' }}");
        let (output, requests) = run(OpenAi, &tools, &[], vec![OpenAi.says("done")]);
        assert_eq!((output.code(), requests.len()), (Some(2), 0));
        assert!(output.err().contains(why), "{why}: {}", output.err());
    }
    let text = "[tools.t]\ncommand = ['echo', '{ print }', '{print $1}', '${HOME}', '{}', '{{x}}', '{a,b}']";
    assert_eq!(told(text, json!({})).0, "{ print } {print $1} ${HOME} {} {{x}} {a,b}\n");
}

#[test]
fn the_exit_codes_and_the_output_of_a_tool_are_the_persons_choice() {
    let grep = "[tools.t]\ncommand = ['sh', '-c', 'echo text; exit 1']\nok_exit = [0, 1]";
    assert_eq!(told(grep, json!({})).0, "text\n");
    let silent = "[tools.t]\ncommand = ['sh', '-c', 'exit 1']\nok_exit = [0, 1]";
    assert_eq!(told(silent, json!({})).0, "(no output, exit 1)");
    let other = "[tools.t]\ncommand = ['sh', '-c', 'exit 2']\nok_exit = [0, 1]";
    assert!(told(other, json!({})).0.contains("failed (exit 2)"));
    let long = "[tools.t]\ncommand = ['sh', '-c', 'yes | head -c 9000']\nmax_output = 1000";
    let told_of = told(long, json!({})).0;
    assert!(told_of.len() < 1100 && told_of.contains("8000 bytes left out"), "{told_of}");
    for wrong in ["ok_exit = [256]", "ok_exit = 'x'", "max_output = 20_000_000", "confirm = 1"] {
        let (_, output) = told(&format!("[tools.t]\ncommand = ['true']\n{wrong}"), json!({}));
        assert_eq!(output.code(), Some(2), "{wrong}: {}", output.err());
    }
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "[tools.t]\ncommand = ['no-such-program', 'x']");
    let (code, out, err) = said(sandbox.run("a").arg("--dry-run"));
    assert_eq!((code, out.contains("t: no-such-program x\n")), (Some(0), true));
    assert!(err.contains("tools.t: the program \"no-such-program\" was not found"), "{err}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_tool_that_is_to_be_confirmed_asks_on_the_terminal_and_is_refused_without_one() {
    use crate::support::terminal::Terminal;
    use std::io::Write;
    for (typed, result) in [(Some("y\n"), "ran\n"), (Some("n\n"), "declined"), (None, "no terminal")] {
        let sandbox = Sandbox::new();
        sandbox.model(
            "a",
            OpenAi,
            "[tools.t]\ncommand = ['sh', '-c', 'echo ran | tee mark', '{x}']\nparameters = { x = 'string' }\nconfirm = true",
        );
        let calls = OpenAi.calls_tools(&[("t", json!({ "x": "a \u{1b}[2J" }))]);
        let server = Server::playing([calls, OpenAi.says("done")]);
        let asking = sandbox.asking("a", &server.url());
        let mut command = std::process::Command::new("setsid");
        command.env_clear().envs(present(asking.get_envs()));
        command.current_dir(sandbox.work());
        command.args(if typed.is_some() { &["-w", "-c"][..] } else { &["-w"] });
        command.arg(crate::support::binary("axe-run")).args(["a", "--no-stdin"]);
        let terminal = Terminal::open();
        if let Some(typed) = typed {
            command.stdin(terminal.stdio());
            (&terminal.keyboard).write_all(typed.as_bytes()).unwrap();
        } else {
            command.stdin(std::process::Stdio::null());
        }
        let output = command.output().unwrap();
        assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"), "{}", output.err());
        let told = server.requests()[1].results().remove(0);
        assert!(told.contains(result), "{told}");
        assert_eq!(sandbox.work().join("mark").exists(), typed == Some("y\n"));
        drop(command);
        let shown = terminal.all();
        assert_eq!(shown.contains("Run sh -c"), typed.is_some(), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }
}

#[test]
fn a_turn_that_was_cut_does_not_run_its_last_call() {
    for (kind, reason) in [(Anthropic, "max_tokens"), (OpenAi, "length"), (Ollama, "length")] {
        let sandbox = Sandbox::new();
        sandbox.model("a", kind, "[tools.t]\ncommand = ['sh', '-c', 'echo x >> ran; echo fine']");
        let mut turn = kind.stops("", reason);
        let call = match kind {
            Anthropic => json!({ "type": "tool_use", "id": "c", "name": "t", "input": {} }),
            _ => json!({ "id": "c", "type": "function", "function": { "name": "t", "arguments": {} } }),
        };
        match kind {
            Anthropic => turn["content"] = json!([call, call]),
            OpenAi => turn["choices"][0]["message"]["tool_calls"] = json!([call, call]),
            Ollama => turn["message"]["tool_calls"] = json!([call, call]),
        }
        let server = Server::playing([json(200, turn), kind.says("done")]);
        let output = sandbox.asking("a", &server.url()).output().unwrap();
        assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"), "{}", output.err());
        assert_eq!(std::fs::read_to_string(sandbox.work().join("ran")).unwrap(), "x\n");
        let results = server.requests()[1].results();
        assert!(results[0] == "fine\n" && results[1].contains("cut off"), "{results:?}");
    }
}

#[test]
fn oddities_of_streams_are_read_or_named() {
    let head = format!("200 OK\r\nContent-Type: {}", content_type(OpenAi));
    let message = |text: &str| json!({ "choices": [{ "message": { "content": text } }] });
    let choice =
        |index: u64, text: &str| json!({ "choices": [{ "index": index, "delta": { "content": text } }] });
    let end = ended(OpenAi);
    for (body, expected) in [
        // `message` for `delta`, and once more as a whole after it.
        (events([message("hel"), message("lo")]) + &end, "hello"),
        (begun(OpenAi, &["hello"]) + &events([message("hello")]) + &end, "hello"),
        // `n = 2`: the first answer.
        (events([choice(0, "hel"), choice(1, "other"), choice(0, "lo")]) + &end, "hello"),
        // Line ends that are returns of the carriage.
        ((begun(OpenAi, &["hel", "lo"]) + &end).replace('\n', "\r"), "hello"),
        ((begun(OpenAi, &["hel", "lo"]) + &end).replace('\n', "\r\n"), "hello"),
        ("\u{feff}".to_owned() + &begun(OpenAi, &["hello"]) + &end, "hello"),
    ] {
        let (output, _) = run(OpenAi, "", &["--stream"], vec![http(&head, &body)]);
        assert_eq!((output.code(), output.out().as_str()), (Some(0), expected), "{body}: {}", output.err());
    }
    let (output, _) = run(OpenAi, "", &["--stream"], vec![http(&head, b"\x1f\x8b\x08\0\0\0\0\0\0\x03")]);
    assert_eq!(output.code(), Some(3));
    assert!(output.err().contains("the reply is compressed (gzip)"), "{}", output.err());
    // An overload before anything else is tried again.
    let busy = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "busy" } });
    for kind in [Anthropic, OpenAi] {
        let sandbox = Sandbox::new();
        sandbox.model("a", kind, "");
        let body = begun(kind, &["one"]) + &ended(kind);
        let server =
            Server::playing([&events([busy.clone()]), &body].map(|body| chunked(kind, body, "0\r\n\r\n")));
        let mut asking = sandbox.asking("a", &server.url());
        let output = asking.env("AXE_RETRY_MAX", "2").arg("--stream").output().unwrap();
        assert_eq!((output.code(), output.out().as_str()), (Some(0), "one"), "{}", output.err());
    }
}

#[test]
fn json_is_found_behind_a_mark_or_thinking() {
    for answer in [
        "\u{feff}{\"a\":1}",
        "<think>\nhm {\n</think>\n\n{\"a\":1}",
        "<think>x</think>```json\n{\"a\":1}\n```",
    ] {
        let sandbox = Sandbox::new();
        sandbox.model("a", OpenAi, "");
        sandbox.file("s.json", "{\"type\": \"object\"}");
        let server = Server::playing([OpenAi.says(answer)]);
        let output = sandbox.asking("a", &server.url()).args(["--schema", "s.json"]).output().unwrap();
        assert_eq!((output.code(), output.out().as_str()), (Some(0), "{\"a\":1}"), "{}", output.err());
    }
}

#[test]
fn an_empty_command_is_a_configuration_error() {
    let sandbox = Sandbox::new();
    sandbox.agent_file("a", "name = 'a'\nmodel = 'mine/x'");
    for line in ["command = ''", "kind = 'command'\ncommand = ' '"] {
        sandbox.write(&sandbox.config().join("config.toml"), format!("[providers.mine]\n{line}\n"));
        let (code, _, err) = said(&mut sandbox.run("a"));
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains("add command = "), "{err}");
    }
}

#[test]
fn an_answer_cannot_command_a_terminal() {
    use crate::support::terminal::Terminal;
    let attack = "a\u{1b}]52;c;ZXZpbA==\u{7}b\u{9b}31mc\td";
    for args in [&[][..], &["--stream"]] {
        let sandbox = Sandbox::new();
        sandbox.model("a", OpenAi, "");
        let body = begun(OpenAi, &[&attack[..3], &attack[3..]]) + &ended(OpenAi);
        let answer = if args.is_empty() { OpenAi.says(attack) } else { chunked(OpenAi, &body, "0\r\n\r\n") };
        let server = Server::playing([answer]);
        let asking = sandbox.asking("a", &server.url());
        let mut command = sandbox.std_command("axe-run");
        command.envs(present(asking.get_envs()));
        let terminal = Terminal::open();
        command.args(["a", "--no-stdin"]).args(args).stdout(terminal.stdio());
        assert!(command.output().unwrap().status.success());
        drop(command);
        let shown = terminal.all();
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{9b}']), "{shown:?}");
        assert!(shown.contains("c\td"), "{shown:?}");
    }
}

#[test]
fn a_piped_image_is_attached_and_never_sent_as_text() {
    let png = b"\x89PNG\r\n\x1a\n\0\0binary\xff";
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "");
    let server = Server::playing([OpenAi.says("a cat")]);
    let output = sandbox.asking("a", &server.url()).write_stdin(&png[..]).args(["-p", "x"]).output().unwrap();
    assert_eq!((output.code(), server.requests().len()), (Some(1), 0), "{}", output.err());
    assert!(output.err().contains("image/png") && output.err().contains("--attach -"), "{}", output.err());
    let mut asking = sandbox.asking("a", &server.url());
    let output = asking.write_stdin(&png[..]).args(["-p", "x", "--attach", "-"]).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "a cat"), "{}", output.err());
    assert!(server.request().text.contains("data:image/png;base64,iVBORw0KGgo"), "{}", server.request().text);
    for args in [&["--attach", "-", "--attach", "-"][..], &["--attach", "-", "--no-stdin"]] {
        let output = sandbox.asking("a", &server.url()).write_stdin(&png[..]).args(args).output().unwrap();
        assert_eq!(output.code(), Some(1), "{args:?}: {}", output.err());
    }
}

#[test]
fn the_runs_line_of_a_gc_follows_the_outcome() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "echo REPORT", "[memory]\nenabled = true\nlast_n = 2");
    sandbox.write_log("a", &crate::support::entries(5));
    let (code, out, _) = said(sandbox.command("axe-gc").arg("a"));
    let expected = "Agent: a\nEntries: 5\n--- Analysis ---\nREPORT\nTrimmed: 3 entries removed, 2 entries kept.\nRuns: 5, ";
    assert_eq!(code, Some(0));
    assert!(out.starts_with(expected), "{out}");
}
