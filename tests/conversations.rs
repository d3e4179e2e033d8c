//! Named conversations: a run goes on where the last one of that name ended, one run at a time, and nothing is lost.

use crate::support::api::{Anthropic, KINDS, OpenAi, to};
use crate::support::server::{Server, http, json};
use crate::support::{Said, Sandbox, eventually, mode, said};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

fn file(sandbox: &Sandbox, name: &str) -> PathBuf {
    sandbox.home().join(format!(".local/share/axe/conversations/a/{name}.jsonl"))
}

/// The messages and answers in the file.
fn kept(sandbox: &Sandbox, name: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(file(sandbox, name)).unwrap_or_default();
    let line = |line: &str| -> (String, String) {
        let exchange: Value = serde_json::from_str(line).unwrap();
        assert_eq!(exchange["time"], "2026-02-28T15:04:05Z");
        let text = |key: &str| exchange[key].as_str().unwrap().to_owned();
        (text("user"), text("assistant"))
    };
    text.lines().map(line).collect()
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(user, assistant)| ((*user).to_owned(), (*assistant).to_owned())).collect()
}

/// The messages that were sent, without the system prompt: role and text.
fn sent(body: &Value) -> Vec<(String, String)> {
    let messages = body["messages"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().or(value[0]["text"].as_str()).unwrap().to_owned();
    messages
        .filter(|message| message["role"] != "system")
        .map(|message| (message["role"].as_str().unwrap().to_owned(), text(&message["content"])))
        .collect()
}

#[test]
fn the_next_run_of_that_name_goes_on() {
    for kind in KINDS {
        let sandbox = Sandbox::new();
        sandbox.model("a", kind, "system_prompt = 's'\n[memory]\nenabled = true");
        let server = Server::playing(["one", "two", "other"].map(|text| kind.says(text)));
        for (name, prompt) in [("x", "first"), ("x", "second"), ("y", "third")] {
            let mut run = sandbox.asking("a", &server.url());
            let output = run.args(["--conversation", name, "-p", prompt]).output().unwrap();
            assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
        }
        let requests = server.requests();
        assert_eq!(sent(&requests[0].body), pairs(&[("user", "first")]));
        let all = pairs(&[("user", "first"), ("assistant", "one"), ("user", "second")]);
        assert_eq!(sent(&requests[1].body), all);
        assert_eq!(sent(&requests[2].body), pairs(&[("user", "third")]));
        assert_eq!(kept(&sandbox, "x"), pairs(&[("first", "one"), ("second", "two")]));
        assert_eq!(kept(&sandbox, "y"), pairs(&[("third", "other")]));
        assert_eq!((mode(&file(&sandbox, "x")), mode(file(&sandbox, "x").parent().unwrap())), (0o600, 0o700));
        // The log is what it would be without.
        assert_eq!(sandbox.log("a").matches("\n**Task:** ").count(), 3);
        assert_eq!(sandbox.log("a").lines().nth(1), Some("**Task:** first"));
        // Without the flag, nothing goes on and nothing is kept.
        let server = Server::playing([kind.says("alone")]);
        assert_eq!(sandbox.asking("a", &server.url()).args(["-p", "z"]).output().unwrap().code(), Some(0));
        assert_eq!(sent(&server.request().body), pairs(&[("user", "z")]));
        assert_eq!(kept(&sandbox, "x").len(), 2);
    }
}

#[test]
fn a_conversation_goes_on_with_another_model_and_with_a_command() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat > got; echo three", "");
    sandbox.provider("openai", "");
    let server = Server::playing([Anthropic.says("one"), OpenAi.says("two")]);
    for (model, prompt) in [("anthropic/m", "1"), ("openai/m", "2"), ("a/m", "3")] {
        let mut run = sandbox.asking("a", &server.url());
        let output =
            run.args(["--model", model, "--conversation", "x", "--no-stdin", "-p", prompt]).output().unwrap();
        assert_eq!((output.code(), output.err().as_str()), (Some(0), ""), "{model}");
    }
    let got = fs::read_to_string(sandbox.work().join("got")).unwrap();
    let answer = "Your answer to this was:\n\n";
    assert_eq!(got, format!("1\n\n{answer}one\n\n2\n\n{answer}two\n\n3"));
    assert_eq!(kept(&sandbox, "x"), pairs(&[("1", "one"), ("2", "two"), ("3", "three")]));
}

#[test]
fn sixteen_at_once_take_turns() {
    let sandbox = Sandbox::new();
    // Each answers how many answers it was shown.
    sandbox.agent("a", "grep -c '^Your answer to this was:$'; true", "");
    let children: Vec<_> = (0..16)
        .map(|n| {
            let mut command = sandbox.std_command("axe-run");
            command.args(["a", "--no-stdin", "--conversation", "x", "-p", &format!("question {n}")]);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut told = Vec::new();
    for (n, child) in children.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
        told.push((format!("question {n}"), output.out()));
    }
    let kept = kept(&sandbox, "x");
    let answers: Vec<_> = kept.iter().map(|(_, answer)| answer.parse::<usize>().unwrap()).collect();
    assert_eq!(answers, (0..16).collect::<Vec<_>>());
    told.sort_by_key(|(_, answer)| answer.parse::<usize>().unwrap());
    assert_eq!(told, kept);
}

#[test]
fn a_second_run_waits_until_its_deadline_and_other_names_do_not_wait() {
    let sandbox = Sandbox::new();
    let wait = "touch started; until [ -e go ]; do sleep 0.01; done; echo first";
    sandbox.agent("a", &format!("read -r line; case $line in slow) {wait} ;; *) echo quick ;; esac"), "");
    let mut command = sandbox.std_command("axe-run");
    command.args(["a", "--no-stdin", "--conversation", "x", "-p", "slow"]).stdout(Stdio::piped());
    let first = command.spawn().unwrap();
    let pid = first.id();
    eventually("the first run has begun", || sandbox.work().join("started").exists());
    let other = ["--no-stdin", "--conversation", "y", "-p", "quick"];
    assert_eq!(said(sandbox.run("a").args(other)), (Some(0), "quick".to_owned(), String::new()));
    let late = ["--no-stdin", "--conversation", "x", "-p", "quick", "--timeout", "1"];
    let (code, out, err) = said(sandbox.run("a").args(late));
    assert_eq!((code, out.as_str()), (Some(1), ""));
    let why = format!("axe-run: conversation \"x\" is in use by process {pid}; wait for that run");
    assert!(err.starts_with(&why), "{err}");
    sandbox.file("go", "");
    assert_eq!(first.wait_with_output().unwrap().out(), "first");
    assert_eq!(kept(&sandbox, "x"), pairs(&[("slow", "first")]));
}

#[test]
fn what_is_no_answer_is_not_kept() {
    let busy = http("400 No", "{\"error\": {\"message\": \"no\"}}");
    for kind in KINDS {
        for (answer, args, code) in [
            (busy.clone(), &[][..], Some(1)),
            (kind.says(" "), &[], Some(0)),
            (kind.says(""), &["--strict"], Some(1)),
            (kind.says("[]"), &["--max-tokens-total", "1"], Some(4)),
            (
                json(200, kind.stops("cut", if kind == Anthropic { "max_tokens" } else { "length" })),
                &["--strict"],
                Some(1),
            ),
        ] {
            let sandbox = Sandbox::new();
            sandbox.model("a", kind, "[params]\nmax_tokens = 5");
            let server = Server::playing([answer]);
            let mut run = sandbox.asking("a", &server.url());
            let output = run.args(["--conversation", "x", "-p", "hi"]).args(args).output().unwrap();
            assert_eq!(output.code(), code, "{args:?}: {}", output.err());
            assert!(!file(&sandbox, "x").exists(), "{args:?}");
        }
        // Cut off, but an answer.
        let cut = kind.stops("cut", if kind == Anthropic { "max_tokens" } else { "length" });
        let sandbox = Sandbox::new();
        sandbox.model("a", kind, "");
        let server = Server::playing([json(200, cut)]);
        let mut run = sandbox.asking("a", &server.url());
        let output = run.args(["--conversation", "x", "-p", "hi"]).output().unwrap();
        assert_eq!((output.code(), kept(&sandbox, "x")), (Some(0), pairs(&[("hi", "cut")])));
    }
}

#[test]
fn tools_schemas_sub_agents_and_streams_leave_question_and_answer() {
    for kind in KINDS {
        let sandbox = Sandbox::new();
        sandbox.model("a", kind, "sub_agents = ['b']");
        sandbox.model("b", kind, "");
        sandbox.file("s.json", "{\"type\": \"object\"}");
        let server = Server::playing([
            kind.calls(&[to("b", "look")]),
            kind.says("found"),
            kind.says("no JSON"),
            kind.says("{}"),
            kind.says("next"),
        ]);
        let schema = ["--schema", "s.json", "--stream"];
        let mut run = sandbox.asking("a", &server.url());
        let output = run.args(["--conversation", "x", "-p", "one"]).args(schema).output().unwrap();
        assert_eq!((output.code(), output.out().as_str()), (Some(0), "{}"), "{}", output.err());
        let mut run = sandbox.asking("a", &server.url());
        let output = run.args(["--conversation", "x", "--stream", "--json", "-p", "two"]).output().unwrap();
        assert_eq!(output.code(), Some(0), "{}", output.err());
        assert_eq!(kept(&sandbox, "x"), pairs(&[("one", "{}"), ("two", "next")]));
        let requests = server.requests();
        assert_eq!(sent(&requests[1].body), pairs(&[("user", "Task: look")]), "a sub-agent begins anew");
        let last = pairs(&[("user", "one"), ("assistant", "{}"), ("user", "two")]);
        assert_eq!(sent(&requests[4].body), last);
        assert!(!file(&sandbox, "x").parent().unwrap().with_file_name("b").exists());
    }
}

#[test]
fn a_dry_run_shows_the_conversation_and_makes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "echo one", "");
    let args = ["--conversation", "x", "--dry-run", "-p", "next"];
    let (code, out, _) = said(sandbox.run("a").args(args));
    assert!(code == Some(0) && out.contains("\n--- Conversation (0) ---\n(none)\n"), "{out}");
    assert!(!sandbox.home().join(".local").exists());
    said(sandbox.run("a").args(["--conversation", "x", "-p", "first"]));
    let (_, out, _) = said(sandbox.run("a").args(args));
    let shown = "\n--- Conversation (1) ---\n[user]\nfirst\n[assistant]\none\n";
    assert!(out.contains(shown), "{out}");
    assert_eq!(kept(&sandbox, "x").len(), 1);
    let verbose = said(sandbox.run("a").args(["--conversation", "x", "-p", "next", "-v"])).2;
    let line = format!("Conversation: 1 earlier runs from {}\n", file(&sandbox, "x").display());
    assert!(verbose.contains(&line), "{verbose}");
}

#[test]
fn names_are_checked_and_a_damaged_line_is_named() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "");
    for name in ["", "../x", "a/b", ".x"] {
        let (code, out, err) = said(sandbox.run("a").args(["--conversation", name]));
        assert_eq!((code, out.as_str()), (Some(1), ""), "{name}");
        assert!(err.contains("invalid conversation name \""), "{err}");
    }
    let line = json!({ "time": "t", "model": "m", "user": "u", "assistant": "v" });
    sandbox.write(&file(&sandbox, "x"), format!("{line}\n{{\"time\": 7}}\n{line}\n{{\"ti"));
    let (code, out, err) = said(sandbox.run("a").args(["--conversation", "x", "-p", "go"]));
    assert_eq!((code, out.matches("Your answer").count()), (Some(0), 2), "{err}");
    let path = file(&sandbox, "x").display().to_string();
    assert!(err.contains(&format!("Warning: line 2 of \"{path}\" is left out: ")), "{err}");
    assert!(err.contains(&format!("Warning: line 4 of \"{path}\" is left out: ")), "{err}");
    let last = fs::read_to_string(file(&sandbox, "x")).unwrap();
    assert!(last.lines().last().unwrap().contains("\"user\":\"go\""), "{last}");
}

#[test]
fn an_answer_is_printed_even_if_it_cannot_be_kept() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "");
    let path = file(&sandbox, "x");
    // While the model thinks, somebody puts a directory there.
    let server = Server::answering(move |_| {
        fs::create_dir_all(&path).unwrap();
        OpenAi.says("paid")
    });
    let mut run = sandbox.asking("a", &server.url());
    let output = run.args(["--conversation", "x", "-p", "hi"]).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(1), "paid"));
    let why = "axe-run: the run could not be added to the conversation \"x\": ";
    assert!(output.err().starts_with(why), "{}", output.err());
}
