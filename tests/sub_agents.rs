//! `call_agent`: what it is called with, what comes of it, and what the parent is told.

use crate::support::api::{Anthropic, KINDS, Kind, to};
use crate::support::server::{Answer, Request, Server, http};
use crate::support::{NOW, Said, Sandbox};
use serde_json::{Value, json};
use std::process::Output;

/// A parent that makes these calls in its first turn and says "done" in its second. What has no results to
/// show and a task is a sub-agent, which answers by `sub`.
pub(crate) fn family(
    kind: Kind,
    calls: Vec<Value>,
    sub: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) -> Server {
    Server::answering(move |request| {
        if request.user().starts_with("Task: ") {
            sub(request)
        } else if request.results().is_empty() {
            kind.calls(&calls)
        } else {
            kind.says("done")
        }
    })
}

/// What the parent was told, in its last request.
pub(crate) fn told(server: &Server) -> Vec<String> {
    let requests = server.requests();
    requests.iter().rev().find(|request| !request.user().starts_with("Task: ")).unwrap().results()
}

/// The requests of sub-agents.
fn of_sub_agents(server: &Server) -> Vec<Request> {
    server.requests().into_iter().filter(|request| request.user().starts_with("Task: ")).collect()
}

fn why(agent: &str, why: &str) -> String {
    format!("Error: sub-agent \"{agent}\" failed - {why}. You may retry or proceed without this result.")
}

/// One call by the agent `parent`, which may call b, none and the like; what it was told, and how it ended.
fn called(sandbox: &Sandbox, arguments: Value, sub: Answer) -> (String, Output) {
    sandbox.model(
        "parent",
        Anthropic,
        "sub_agents = ['b', 'none', '../b']\n[sub_agents_config]\ntimeout = 1",
    );
    let server = family(Anthropic, vec![arguments], move |_| sub.clone());
    let output = sandbox.asking("parent", &server.url()).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"), "{}", output.err());
    (told(&server).remove(0), output)
}

#[test]
fn a_sub_agent_runs_as_itself_and_the_parent_sees_only_its_text() {
    for kind in KINDS {
        let sandbox = Sandbox::new();
        sandbox.model(
            "parent",
            kind,
            "system_prompt = 'I lead.'\nsub_agents = ['b']\n[memory]\nenabled = true",
        );
        sandbox.file("sub/notes.txt", "from a file");
        sandbox.write(&sandbox.config().join("skills/x/SKILL.md"), "a skill");
        let dir = sandbox.work().join("sub");
        sandbox.agent_file(
            "b",
            &format!(
                "name = 'b'\nmodel = '{}/m-b'\nsystem_prompt = 'I help.'\nskill = 'skills/x/SKILL.md'\n\
                 files = ['*.txt']\nworkdir = '{}'\n[params]\nmax_tokens = 5\n[memory]\nenabled = true",
                kind.name(),
                dir.display()
            ),
        );
        sandbox.write_log("b", "## 2026-01-01T00:00:00Z\n**Task:** before\n**Result:** then\n\n");
        let call = json!({ "agent": "b", "task": "look", "context": "two\nlines" });
        let server = family(kind, vec![call], move |_| kind.says("b's text"));
        let output = sandbox.asking("parent", &server.url()).write_stdin("go").output().unwrap();
        assert_eq!((output.code(), output.out().as_str(), output.err().as_str()), (Some(0), "done", ""));

        let request = &of_sub_agents(&server)[0];
        assert_eq!(request.user(), "Task: look\n\nContext:\ntwo\nlines");
        assert_eq!((&request.body["model"], request.body.get("tools")), (&json!("m-b"), None));
        assert_eq!(
            request.system(),
            "I help.\n\n---\n\n## Skill\n\na skill\n\n---\n\n## Context Files\n\n### notes.txt\n```txt\nfrom a file\n```\
             \n\n---\n\n## Memory\n\n## 2026-01-01T00:00:00Z\n**Task:** before\n**Result:** then\n\n"
        );
        assert!(!request.text.contains("I lead.") && !request.text.contains("\"go\""), "{}", request.text);
        assert_eq!(told(&server), ["b's text"]);
        assert_eq!(server.requests().len(), 3);

        assert_eq!(sandbox.log("parent"), format!("## {NOW}\n**Task:** go\n**Result:** done\n\n"));
        let entry = format!("## {NOW}\n**Task:** Task: look  Context: two lines\n**Result:** b's text\n\n");
        assert!(sandbox.log("b").ends_with(&entry), "{}", sandbox.log("b"));
    }
}

#[test]
fn each_keeps_a_log_only_if_it_is_told_to() {
    for (parent, sub) in [(true, false), (false, true)] {
        let sandbox = Sandbox::new();
        sandbox.model("parent", Anthropic, &format!("sub_agents = ['b']\n[memory]\nenabled = {parent}"));
        sandbox.model("b", Anthropic, &format!("[memory]\nenabled = {sub}"));
        let server = family(Anthropic, vec![to("b", "t")], |_| Anthropic.says("secret of b"));
        assert_eq!(sandbox.asking("parent", &server.url()).output().unwrap().code(), Some(0));
        assert_eq!((sandbox.log_path("parent").exists(), sandbox.log_path("b").exists()), (parent, sub));
        assert!(!sandbox.log("parent").contains("secret of b"));
    }
}

#[test]
fn arguments_are_checked_before_anything_runs() {
    for (arguments, told) in [
        (json!({}), "call_agent error: \"agent\" argument is required"),
        (json!({ "task": "t" }), "call_agent error: \"agent\" argument is required"),
        (json!({ "agent": "", "task": "t" }), "call_agent error: \"agent\" argument is required"),
        (json!({ "agent": 5, "task": "t" }), "call_agent error: \"agent\" argument is required"),
        (json!({ "agent": "b" }), "call_agent error: \"task\" argument is required"),
        (json!({ "agent": "b", "task": "" }), "call_agent error: \"task\" argument is required"),
        (to("c", "t"), "call_agent error: agent \"c\" is not in this agent's sub_agents list"),
        (to("B", "t"), "call_agent error: agent \"B\" is not in this agent's sub_agents list"),
        (to("parent", "t"), "call_agent error: agent \"parent\" is not in this agent's sub_agents list"),
    ] {
        let sandbox = Sandbox::new();
        let ran = sandbox.work().join("ran");
        sandbox.agent("b", &format!("touch '{}'", ran.display()), "");
        assert_eq!(called(&sandbox, arguments, http("500 never", "")).0, told);
        assert!(!ran.exists());
    }
}

#[test]
fn an_unknown_tool_is_told() {
    let sandbox = Sandbox::new();
    sandbox.model("parent", Anthropic, "sub_agents = ['b']");
    let answers = [Anthropic.calls_tools(&[("look", json!({})), ("", json!({}))]), Anthropic.says("done")];
    let server = Server::playing(answers);
    assert_eq!(sandbox.asking("parent", &server.url()).output().unwrap().code(), Some(0));
    assert_eq!(told(&server), ["Unknown tool: \"look\"", "Unknown tool: \"\""]);
}

#[test]
fn an_agent_that_cannot_be_loaded_is_told() {
    let sandbox = Sandbox::new();
    let told = called(&sandbox, to("none", "t"), http("500 never", "")).0;
    assert_eq!(told, why("none", "failed to load agent \"none\": agent config not found: none"));
    let told = called(&sandbox, to("../b", "t"), http("500 never", "")).0;
    assert!(
        told.starts_with(
            "Error: sub-agent \"../b\" failed - failed to load agent \"../b\": invalid agent name"
        ),
        "{told}"
    );
    for (toml, says) in [
        ("name = 'b'", "failed to load agent \"b\": agent config missing required field: model"),
        (
            "name = 'b'\nmodel = 'gpt'",
            "invalid model for agent \"b\": invalid model format \"gpt\": expected provider/model-name",
        ),
        ("name = 'b'\nmodel = 'foo/x'", "unsupported provider \"foo\""),
        ("name = 'b'\nmodel = 'openai/x'\nskill = 'nowhere'", "skill not found: "),
        ("name = 'b'\nmodel = 'openai/x'\n[memory]\nlast_n = -1", "memory.last_n must be non-negative"),
        ("name = ", "failed to load agent \"b\": failed to parse agent config \"b\": "),
    ] {
        sandbox.agent_file("b", toml);
        let told = called(&sandbox, to("b", "t"), http("500 never", "")).0;
        assert!(told.starts_with("Error: sub-agent \"b\" failed - ") && told.contains(says), "{told}");
        assert!(told.ends_with(". You may retry or proceed without this result."), "{told}");
    }
}

#[test]
fn errors_of_its_service_are_told_and_leave_no_entry() {
    for (answer, says) in [
        (http("400 x", "{\"error\":\"bad\"}"), "bad_request: bad"),
        (http("401 No", ""), "auth: No"),
        (http("429 Slow", ""), "rate_limit: Slow"),
        (http("529 Busy", ""), "overloaded: Busy"),
        (http("200 OK", "{}"), "server: response contains no content"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.model("b", Anthropic, "[memory]\nenabled = true");
        assert_eq!(called(&sandbox, to("b", "t"), answer).0, why("b", says));
        assert!(!sandbox.log_path("b").exists(), "{says}");
    }
}

#[test]
fn one_that_hangs_is_ended_after_its_own_timeout() {
    let sandbox = Sandbox::new();
    sandbox.model("b", Anthropic, "[memory]\nenabled = true");
    let told = called(&sandbox, to("b", "t"), crate::support::server::raw("").stall()).0;
    assert!(told.starts_with("Error: sub-agent \"b\" failed - timeout: no answer from 127.0.0.1:"), "{told}");
    assert!(!sandbox.log_path("b").exists());

    sandbox.agent("b", "sleep 60", "[memory]\nenabled = true");
    let told = called(&sandbox, to("b", "t"), http("500 never", "")).0;
    assert_eq!(told, why("b", "timeout: command \"sleep\" did not finish in time"));
    assert!(!sandbox.log_path("b").exists());
}

#[test]
fn the_runs_own_deadline_holds_for_sub_agents() {
    let sandbox = Sandbox::new();
    sandbox.model("parent", Anthropic, "sub_agents = ['b']\n[memory]\nenabled = true");
    sandbox.agent("b", "sleep 60", "");
    let server = family(Anthropic, vec![to("b", "t"), to("b", "u")], |_| http("500 never", ""));
    let output = sandbox.asking("parent", &server.url()).args(["--timeout", "1"]).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(3), ""));
    assert!(output.err().starts_with("axe-run: timeout: "), "{}", output.err());
    assert!(!sandbox.log_path("parent").exists());
}

#[test]
fn a_command_can_be_called_but_cannot_call() {
    let sandbox = Sandbox::new();
    sandbox.agent("b", "tr a-z A-Z", "system_prompt = 'be loud'\n[memory]\nenabled = true");
    assert_eq!(called(&sandbox, to("b", "t"), http("500 never", "")).0, "BE LOUD\n\nTASK: T");
    assert!(sandbox.log("b").contains("**Task:** Task: t\n"), "{}", sandbox.log("b"));

    let sandbox = Sandbox::new();
    sandbox.agent("b", "cat", "sub_agents = ['c']");
    let told = called(&sandbox, to("b", "t"), http("500 never", "")).0;
    assert!(told.starts_with("Error: sub-agent \"b\" failed - ") && told.contains("is a command"), "{told}");
}

#[test]
fn warnings_of_a_sub_agent_are_heard_only_when_verbose() {
    let cut = crate::support::server::json(200, Anthropic.stops("half", "max_tokens"));
    let memory = "[memory]\nenabled = true\nmax_entries = 1";
    let sandbox = Sandbox::new();
    sandbox.model("parent", Anthropic, "sub_agents = ['b']");
    sandbox.model("b", Anthropic, memory);
    sandbox.write_log("b", "## 2026-01-01T00:00:00Z\n**Task:** t\n**Result:** r\n\n");
    let server = family(Anthropic, vec![to("b", "t")], move |_| cut.clone());
    let output = sandbox.asking("parent", &server.url()).output().unwrap();
    // A log that grows is the user's matter, whoever called the agent.
    let full = "Warning: agent \"b\" memory has 1 entries (max_entries: 1). Run 'axe gc b' to trim.\n";
    assert_eq!((output.code(), output.err().as_str()), (Some(0), full));
    let output = sandbox.asking("parent", &server.url()).arg("-v").output().unwrap();
    for line in [
        "\nWarning: agent \"b\" memory has 2 entries (max_entries: 1). Run 'axe gc b' to trim.\n",
        "[sub-agent] Warning: the answer was cut off (stop reason: max_tokens)\n",
    ] {
        assert!(output.err().contains(line), "{}", output.err());
    }
}

#[test]
fn a_log_that_cannot_be_kept_does_not_fail_the_sub_agent() {
    let sandbox = Sandbox::new();
    sandbox.model("b", Anthropic, "[memory]\nenabled = true");
    std::fs::create_dir_all(sandbox.log_path("b")).unwrap();
    let (told, output) = called(&sandbox, to("b", "t"), Anthropic.says("b's"));
    assert_eq!(told, "b's");
    assert!(!output.err().contains("memory"), "{}", output.err());
    let server = family(Anthropic, vec![to("b", "t")], |_| Anthropic.says("b's"));
    let output = sandbox.asking("parent", &server.url()).arg("-v").output().unwrap();
    assert!(
        output.err().contains("[sub-agent] Warning: failed to load memory for \"b\": "),
        "{}",
        output.err()
    );
}

#[test]
fn verbose_tells_of_turns_and_calls() {
    let sandbox = Sandbox::new();
    sandbox.model("parent", Anthropic, "sub_agents = ['b', 'none']");
    sandbox.model("b", Anthropic, "");
    let task = format!("line\none {}", "\u{e4}".repeat(100));
    let calls = vec![to("b", &task), to("none", "t")];
    let server = family(Anthropic, calls, |_| Anthropic.says("f\u{fc}nf!"));
    let output = sandbox.asking("parent", &server.url()).arg("-v").output().unwrap();
    let shown = format!("line one {}", "\u{e4}".repeat(71));
    for line in [
        "[turn 1] Sending request (1 messages, 0 tool calls pending)\n".to_owned(),
        "[turn 1] Received response: tool_use (2 tool calls)\n".to_owned(),
        format!("[sub-agent] Calling \"b\" (depth 1) with task: {shown}\n"),
        "[sub-agent] Calling \"none\" (depth 1) with task: t\n".to_owned(),
        "[sub-agent] \"none\" failed: failed to load agent \"none\": agent config not found: none\n"
            .to_owned(),
        "[turn 2] Sending request (3 messages, 2 tool calls pending)\n".to_owned(),
        "[turn 2] Received response: end_turn (0 tool calls)\n".to_owned(),
        "Tokens:   30 input, 6 output (cumulative)\nStop:     end_turn\n".to_owned(),
    ] {
        assert!(output.err().contains(&line), "{line}: {}", output.err());
    }
    let completed = |line: &str| {
        line.strip_prefix("[sub-agent] \"b\" completed in ")
            .and_then(|rest| rest.split_once("ms "))
            .is_some_and(|(ms, rest)| ms.parse::<u64>().is_ok() && rest == "(5 chars returned)")
    };
    assert!(output.err().lines().any(completed), "{}", output.err());
}
