//! Answers that must match a JSON Schema: with each service and with a command, alone and with tools.

use crate::streams::{begun, chunked, ended};
use crate::support::api::{Anthropic, KINDS, Kind, Ollama, OpenAi, to};
use crate::support::server::{Answer, Request, Server, json};
use crate::support::{Said, Sandbox, said};
use serde_json::{Value, json};
use std::process::Output;

const RIGHT: &str = "{\"title\": \"One\", \"tags\": [\"a\"]}";
const WRONG: &str = "{\"titel\": \"One\", \"tags\": [7]}";

fn schema() -> Value {
    json!({
        "type": "object", "required": ["title", "tags"], "additionalProperties": false,
        "properties": { "title": { "type": "string" }, "tags": { "type": "array", "items": { "type": "string" } } },
    })
}

/// What comes of these answers, and what was asked.
fn ask(kind: Kind, agent: &str, args: &[&str], answers: Vec<Answer>) -> (Output, Vec<Request>, Sandbox) {
    let sandbox = Sandbox::new();
    sandbox.model("a", kind, &format!("{agent}\n[memory]\nenabled = true"));
    sandbox.agent("b", "echo b", "");
    sandbox.file("schema.json", schema().to_string());
    let server = Server::playing(answers);
    let mut run = sandbox.asking("a", &server.url());
    let output = run.args(["--schema", "schema.json", "-p", "go"]).args(args).output().unwrap();
    let requests = server.requests();
    (output, requests, sandbox)
}

#[test]
fn the_schema_goes_where_the_api_has_it_and_the_answer_comes_out() {
    for kind in KINDS {
        let (output, requests, sandbox) = ask(kind, "", &[], vec![kind.says(RIGHT)]);
        assert_eq!((output.code(), output.out().as_str(), output.err().as_str()), (Some(0), RIGHT, ""));
        assert!(sandbox.log("a").contains(RIGHT));
        let body = &requests[0].body;
        let sent = match kind {
            Anthropic => &body["output_config"]["format"]["schema"],
            OpenAi => &body["response_format"]["json_schema"]["schema"],
            Ollama => &body["format"],
        };
        assert_eq!((sent, requests.len(), requests[0].system()), (&schema(), 1, ""));
        if kind == OpenAi {
            assert_eq!(body["response_format"]["json_schema"]["strict"], true);
        }
    }
}

#[test]
fn a_wrong_answer_is_sent_back_once_with_its_faults() {
    for kind in KINDS {
        let (output, requests, sandbox) =
            ask(kind, "", &["--json"], vec![kind.says(WRONG), kind.says(RIGHT)]);
        assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
        let envelope: Value = serde_json::from_str(&output.out()).unwrap();
        assert_eq!((&envelope["content"], &envelope["input_tokens"]), (&json!(RIGHT), &json!(20)));
        let messages = requests[1].body["messages"].as_array().unwrap();
        let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["user", "assistant", "user"]);
        let told = messages[2]["content"].as_str().unwrap();
        for fault in
            ["- title: is missing", "- titel: unknown key", "- tags[0]: string is expected, not a number"]
        {
            assert!(told.contains(fault), "{told}");
        }
        assert_eq!(sandbox.log("a").matches("## ").count(), 1);
    }
}

#[test]
fn after_two_wrong_answers_the_last_one_is_on_stderr() {
    for kind in KINDS {
        for answer in [WRONG, "no JSON", "", "[1,"] {
            let (output, requests, sandbox) = ask(kind, "", &[], vec![kind.says(WRONG), kind.says(answer)]);
            assert_eq!((output.code(), output.out().as_str(), requests.len()), (Some(1), "", 2), "{answer}");
            let err = output.err();
            assert!(err.starts_with(answer), "{err}");
            let last = err.lines().last().unwrap();
            assert!(last.starts_with("axe-run: the answer does not match the schema: "), "{err}");
            assert!(!sandbox.log_path("a").exists());
        }
        let (output, ..) = ask(kind, "", &["--json"], vec![kind.says(WRONG), kind.says(WRONG)]);
        let error: Value = serde_json::from_str(output.err().lines().last().unwrap()).unwrap();
        let faults = error["error"]["faults"].as_array().unwrap();
        assert_eq!((&faults[0]["path"], &faults[0]["message"]), (&json!("title"), &json!("is missing")));
    }
}

#[test]
fn an_answer_that_was_cut_off_is_not_asked_for_again() {
    for (kind, reason) in [(Anthropic, "max_tokens"), (OpenAi, "length"), (Ollama, "length")] {
        let cut = json(200, kind.stops("{\"title\": \"On", reason));
        let (output, requests, sandbox) = ask(kind, "", &[], vec![cut, kind.says(RIGHT)]);
        assert_eq!((output.code(), output.out().as_str(), requests.len()), (Some(1), "", 1));
        let last = output.err().lines().last().unwrap().to_owned();
        assert!(last.starts_with("axe-run: the answer was cut off (stop reason: "), "{last}");
        assert!(!sandbox.log_path("a").exists());
    }
}

#[test]
fn with_tools_the_final_answer_alone_is_checked() {
    for kind in KINDS {
        let answers = vec![kind.calls(&[to("b", "t")]), kind.says(WRONG), kind.says(RIGHT)];
        let (output, requests, _) = ask(kind, "sub_agents = ['b']\nsystem_prompt = 'Be kind.'", &[], answers);
        assert_eq!((output.code(), output.out().as_str(), output.err().as_str()), (Some(0), RIGHT, ""));
        assert_eq!(requests[1].results(), ["b"]);
        let described = requests[0].system().contains("JSON Schema");
        match kind {
            // A grammar would rule out tool calls; without tools, it is used.
            Ollama => {
                assert!(described && requests[0].body.get("format").is_none());
                assert_eq!(requests[2].body["format"], schema());
                assert!(requests[2].body.get("tools").is_none());
            }
            Anthropic => {
                assert!(!described && requests[0].body["output_config"].is_object());
                assert_eq!(requests[2].body["tool_choice"], json!({ "type": "none" }));
            }
            OpenAi => assert_eq!((described, &requests[2].body["tool_choice"]), (false, &json!("none"))),
        }
    }
}

/// What a model answers, one reply after another, and what must come of it: exit code, stdout, and the last line of stderr.
const CASES: [(&str, &[&str], bool, i32, &str, &str); 6] = [
    ("right", &[RIGHT], false, 0, RIGHT, ""),
    ("wrong once", &[WRONG, RIGHT], false, 0, RIGHT, ""),
    ("no JSON once", &["Here you are:", RIGHT], false, 0, RIGHT, ""),
    ("wrong twice", &[WRONG, WRONG], false, 1, "", "axe-run: the answer does not match the schema: "),
    ("cut off", &["{\"title\": \"On"], true, 1, "", "axe-run: the answer was cut off (stop reason: "),
    ("wrong, then cut off", &[WRONG, "{\"title\": \"On"], false, 1, "", "axe-run: the answer does not match"),
];

/// A reply in pieces, whose last one may be cut off.
fn piecewise(kind: Kind, text: &str, is_cut: bool) -> Answer {
    let (head, tail) = text.split_at(text.len() / 2);
    let mut end = ended(kind);
    if is_cut {
        end = end.replace("\"end_turn\"", "\"max_tokens\"").replace("\"stop\"", "\"length\"");
    }
    chunked(kind, &(begun(kind, &[head, tail]) + &end), "0\r\n\r\n")
}

#[test]
fn it_is_the_same_with_and_without_a_stream_and_with_and_without_tools() {
    for kind in KINDS {
        for (is_streamed, has_tools) in [(false, false), (false, true), (true, false), (true, true)] {
            for (name, replies, is_cut, code, out, end) in CASES {
                let what = format!("{name} ({}, streamed: {is_streamed}, tools: {has_tools})", kind.name());
                let tool = "[tools.t]\ncommand = ['echo', 'found']\nstdin = 'none'";
                let call = has_tools.then(|| kind.calls_tools(&[("t", json!({}))]));
                let reason = if kind == Anthropic { "max_tokens" } else { "length" };
                let said = replies.iter().map(|text| match (is_streamed, is_cut) {
                    (true, _) => piecewise(kind, text, is_cut),
                    (false, true) => json(200, kind.stops(text, reason)),
                    (false, false) => kind.says(text),
                });
                let answers: Vec<Answer> = call.into_iter().chain(said).collect();
                let asked = answers.len();
                let args = if is_streamed { &["--stream"][..] } else { &[] };
                let (output, requests, sandbox) = ask(kind, if has_tools { tool } else { "" }, args, answers);
                let err = output.err();
                assert_eq!((output.code(), output.out().as_str()), (Some(code), out), "{what}: {err}");
                assert_eq!(requests.len(), asked, "{what}");
                assert!(
                    requests.iter().all(|request| request.body["stream"] == true) == is_streamed,
                    "{what}"
                );
                assert!(err.lines().last().unwrap_or("").starts_with(end), "{what}: {err}");
                if code == 0 {
                    assert_eq!(err, "", "{what}");
                    assert!(sandbox.log("a").ends_with(&format!("**Result:** {RIGHT}\n\n")), "{what}");
                } else {
                    assert!(err.starts_with(replies[replies.len() - 1]), "{what}: {err}");
                    assert!(!sandbox.log_path("a").exists(), "{what}");
                }
            }
        }
    }
}

#[test]
fn a_command_is_told_once_and_may_be_wrong_no_further() {
    for (name, replies, _, code, out, end) in CASES.into_iter().filter(|(_, _, is_cut, ..)| !is_cut) {
        for args in [&[][..], &["--stream"]] {
            let sandbox = Sandbox::new();
            sandbox.file("schema.json", schema().to_string());
            for (n, reply) in replies.iter().enumerate() {
                sandbox.file(&format!("reply{n}"), reply);
            }
            let command = "n=$(ls asked* 2>/dev/null | wc -l); cat > asked$n; cat reply$n";
            sandbox.agent("a", command, "[memory]\nenabled = true");
            let mut run = sandbox.run("a");
            let (ended, printed, err) = said(run.args(["--schema", "schema.json", "-p", "go"]).args(args));
            assert_eq!((ended, printed.as_str()), (Some(code), out), "{name}: {err}");
            assert!(err.lines().last().unwrap_or("").starts_with(end), "{name}: {err}");
            assert_eq!(sandbox.log_path("a").exists(), code == 0, "{name}");
        }
    }
    // A command that fails at the repair is an error of its own.
    let sandbox = Sandbox::new();
    sandbox.file("schema.json", schema().to_string());
    sandbox.agent("a", "if [ -e once ]; then exit 7; fi; touch once; echo wrong", "");
    let (code, out, err) = said(sandbox.run("a").args(["--schema", "schema.json"]));
    assert_eq!((code, out.as_str()), (Some(3), ""), "{err}");
    assert!(err.starts_with("wrong\n") && err.contains("failed (exit 7)"), "{err}");
}

#[test]
fn a_service_that_rejects_the_schema_finds_it_in_the_prompt() {
    for (kind, message) in [
        (Anthropic, "output_config.format.schema: For 'object' type, 'minProperties' is not supported"),
        (OpenAi, "Invalid schema for response_format 'answer'"),
        (Ollama, "invalid JSON schema in format"),
    ] {
        let refused = json(400, json!({ "error": { "type": "invalid_request_error", "message": message } }));
        let (output, requests, _) = ask(kind, "", &[], vec![refused, kind.says(RIGHT)]);
        assert_eq!((output.code(), output.out().as_str()), (Some(0), RIGHT), "{}", output.err());
        let warning = "Warning: the schema of the answer is described in the prompt instead: ";
        assert!(output.err().starts_with(warning), "{}", output.err());
        assert!(requests[1].system().contains("JSON Schema") && requests[1].system().contains("\"title\""));
        assert!(
            ["output_config", "response_format", "format"]
                .iter()
                .all(|key| requests[1].body.get(key).is_none())
        );
    }
}

#[test]
fn parameters_beside_the_schema_stay() {
    let agent = "[params]\noutput_config = { effort = 'low' }";
    let sandbox = Sandbox::new();
    sandbox.model("a", Anthropic, agent);
    sandbox.file("schema.json", schema().to_string());
    let server = Server::playing([Anthropic.says(RIGHT)]);
    let mut run = sandbox.asking("a", &server.url());
    assert_eq!(run.args(["--schema", "schema.json"]).output().unwrap().code(), Some(0));
    let config = &server.request().body["output_config"];
    assert_eq!((&config["effort"], &config["format"]["type"]), (&json!("low"), &json!("json_schema")));
}

#[test]
fn a_command_finds_the_schema_and_its_faults_in_the_prompt() {
    let sandbox = Sandbox::new();
    sandbox.write(&sandbox.config().join("schemas/a.json"), schema().to_string());
    let answer = format!(
        "cat >> asked; if [ -e once ]; then echo '```json'; echo '{RIGHT}'; echo '```'; else echo '{WRONG}'; touch once; fi"
    );
    sandbox.agent("a", &answer, "schema = 'schemas/a.json'\nsystem_prompt = 'Be kind.'");
    let ended = said(sandbox.run("a").args(["-p", "go"]));
    assert_eq!(ended, (Some(0), RIGHT.to_owned(), String::new()));
    let asked = std::fs::read_to_string(sandbox.work().join("asked")).unwrap();
    assert!(asked.starts_with("Be kind.\n\n---\n\n## Answer\n\n") && asked.contains("\n\ngo"), "{asked}");
    let repair = asked.rsplit("\n\ngo\n\n").next().unwrap();
    let start = format!("Your answer to this was:\n\n{WRONG}\n\nThis answer is not valid.");
    assert!(repair.starts_with(&start) && repair.contains("- title: is missing"), "{repair}");
}

#[test]
fn a_sub_agent_has_a_schema_of_its_own() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "sub_agents = ['b']");
    sandbox.agent("b", "echo nothing", "schema = 'b.json'");
    sandbox.write(&sandbox.config().join("b.json"), schema().to_string());
    let server = Server::playing([OpenAi.calls(&[to("b", "t")]), OpenAi.says("done")]);
    let output = sandbox.asking("a", &server.url()).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"));
    let told = &server.requests()[1].results()[0];
    assert!(
        told.contains("sub-agent \"b\" failed - the answer does not match the schema: it is not JSON"),
        "{told}"
    );
}

#[test]
fn a_file_that_is_no_schema_is_found_before_anything_is_asked() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "touch asked; echo x", "");
    for (text, why) in [
        (None, "schema not found: s.json; looked for \""),
        (Some("{"), "schema \"s.json\": not valid JSON: "),
        (Some("[]"), "schema \"s.json\": not a JSON Schema: it is an array, not an object"),
        (Some("{\"type\": \"text\"}"), "schema \"s.json\": not a JSON Schema: /type cannot be \"text\""),
        (Some("{\"unevaluatedItems\": false}"), "/unevaluatedItems is not known here"),
    ] {
        if let Some(text) = text {
            sandbox.file("s.json", text);
        }
        for more in [&[][..], &["--dry-run"]] {
            let (code, out, err) = said(sandbox.run("a").args(["--schema", "s.json"]).args(more));
            assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
            assert!(err.contains(why), "{err}");
        }
    }
    assert!(!sandbox.work().join("asked").exists());
    sandbox.file("s.json", schema().to_string());
    let shown = said(sandbox.run("a").args(["--schema", "s.json", "--dry-run"])).1;
    assert!(shown.contains(&format!("\n--- Schema ---\n{}\n", schema())), "{shown}");
}
