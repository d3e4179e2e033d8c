//! `axe-run --continue`: what a failed run has paid for is on disk, and is not paid for again.

use crate::streams::{begun, chunked};
use crate::support::api::{Anthropic, KINDS, Kind, Ollama, OpenAi, to};
use crate::support::processes::{Running, mark};
use crate::support::server::{Answer, Server, http, json, raw};
use crate::support::{Said, Sandbox, binary, mode, present};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Output;

/// A tool that notes each of its runs and prints "did X".
const TOOL: &str = "[tools.t]\ncommand = ['sh', '-c', 'echo \"$0\" >> ran; echo \"did $0\"', '{x}']\nparameters = { x = 'string' }\n";

fn runs(sandbox: &Sandbox) -> PathBuf {
    sandbox.home().join(".local/share/axe/runs")
}

/// The names of what is kept of runs.
fn kept(sandbox: &Sandbox) -> Vec<String> {
    let entries = fs::read_dir(runs(sandbox)).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.retain(|name| name.starts_with("2026"));
    names.sort();
    names
}

/// The id that the last line on stderr names.
fn id(err: &str) -> String {
    let last = err.lines().last().unwrap_or_default();
    let (_, id) = last.split_once("axe run --continue ").unwrap_or_else(|| panic!("no id: {err}"));
    id.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap().to_owned()
}

/// `axe-run --continue ID` with these further arguments, against this server.
fn carry_on(sandbox: &Sandbox, id: &str, args: &[&str], server: &Server) -> Output {
    let mut command = sandbox.asking("--continue", &server.url());
    command.arg(id).args(args).output().unwrap()
}

fn ran(sandbox: &Sandbox) -> String {
    fs::read_to_string(sandbox.work().join("ran")).unwrap_or_default()
}

fn calls(kind: Kind, all: &[&str]) -> Answer {
    let all: Vec<_> = all.iter().map(|x| ("t", json!({ "x": x }))).collect();
    kind.calls_tools(&all)
}

/// A turn of Anthropic's as no serializer would write it.
fn odd_turn() -> Answer {
    let body = "{\"model\": \"m\",\n \"content\": [ {\"type\":\"thinking\", \"thinking\": \"h\\u006d\", \"signature\": \"x==\"},\n\
                {\"type\":\"text\",\"text\":\"let me see\"},\r\n\
                {\"type\": \"tool_use\", \"id\": \"c\", \"name\":\"t\", \"input\": {\"x\" : \"a\"}} ],\n \"stop_reason\":\"tool_use\"}";
    http("200 OK", body)
}

#[test]
fn a_failed_run_goes_on_where_it_ended_and_asks_the_same_again() {
    for (kind, failure) in [
        (Anthropic, http("529 Busy", "")),
        (OpenAi, http("401 No", "")),
        (Ollama, raw("")),
        (Anthropic, json(200, json!({ "content": 7 }))),
        (OpenAi, http("400 No", "")),
    ] {
        let sandbox = Sandbox::new();
        sandbox.model("a", kind, &format!("system_prompt = 'be brief'\n{TOOL}[memory]\nenabled = true"));
        let turn = if kind == Anthropic { odd_turn() } else { calls(kind, &["a"]) };
        let server = Server::playing([turn, failure]);
        let output =
            sandbox.asking("a", &server.url()).args(["-p", "do \"it\"\n\u{1f980}"]).output().unwrap();
        let id = id(&output.err());
        assert!(
            output
                .err()
                .lines()
                .last()
                .unwrap()
                .ends_with(&format!("; continue with: axe run --continue {id}"))
        );
        assert_eq!(kept(&sandbox), [format!("{id}.jsonl"), format!("{id}.lock")]);
        let file = runs(&sandbox).join(format!("{id}.jsonl"));
        assert_eq!((mode(&runs(&sandbox)), mode(&file)), (0o700, 0o600));

        // The prompt is the one of the beginning, whatever became of the agent's.
        sandbox.model("a", kind, &format!("system_prompt = 'be long'\n{TOOL}[memory]\nenabled = true"));
        let again = Server::playing([kind.says("done")]);
        let output = carry_on(&sandbox, &id, &[], &again);
        assert_eq!((output.code(), output.out().as_str(), output.err().as_str()), (Some(0), "done", ""));
        assert_eq!(again.request().text, server.requests()[1].text);
        assert_eq!(ran(&sandbox), "a\n");
        assert_eq!(
            sandbox.log("a"),
            "## 2026-02-28T15:04:05Z\n**Task:** do \"it\" \u{1f980}\n**Result:** done\n\n"
        );
        assert!(kept(&sandbox).is_empty());
        let output = carry_on(&sandbox, &id, &[], &again);
        assert_eq!((output.code(), again.requests().len()), (Some(1), 1), "{}", output.err());
    }
}

#[test]
fn nothing_is_kept_of_a_run_that_succeeds_or_has_paid_for_nothing() {
    for (answers, code) in [
        (vec![calls(OpenAi, &["a"]), OpenAi.says("done")], 0),
        (vec![http("401 No", "")], 3),
        (vec![OpenAi.says("done")], 0),
    ] {
        let sandbox = Sandbox::new();
        sandbox.model("a", OpenAi, TOOL);
        let server = Server::playing(answers);
        let output = sandbox.asking("a", &server.url()).output().unwrap();
        assert_eq!(
            (output.code(), output.err().contains("--continue")),
            (Some(code), false),
            "{}",
            output.err()
        );
        assert!(kept(&sandbox).is_empty());
    }
}

#[test]
fn a_run_can_fail_and_be_continued_as_often_as_it_takes() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, TOOL);
    let server = Server::playing([calls(OpenAi, &["a"]), http("500 No", "")]);
    let output = sandbox.asking("a", &server.url()).output().unwrap();
    let first = id(&output.err());
    for x in ["b", "c"] {
        let server = Server::playing([calls(OpenAi, &[x]), http("500 No", "")]);
        let output = carry_on(&sandbox, &first, &["--json"], &server);
        let error: Value = serde_json::from_str(&output.err()).unwrap();
        assert_eq!(output.code(), Some(3));
        assert_eq!(error["run"]["continue"], json!(first), "{error}");
        let hint = format!("continue with: axe run --continue {first}");
        assert_eq!(error["error"]["hint"], json!(hint));
        // What it took itself: that of the runs before is not paid for again.
        assert_eq!((&error["run"]["input_tokens"], &error["run"]["tool_calls"]), (&json!(10), &json!(1)));
    }
    let server = Server::playing([OpenAi.says("done")]);
    let output = carry_on(&sandbox, &first, &["--json"], &server);
    let done: Value = serde_json::from_str(&output.out()).unwrap();
    assert_eq!((&done["content"], done.get("continue")), (&json!("done"), None), "{done}");
    assert_eq!(server.request().results(), ["did a\n", "did b\n", "did c\n"]);
    assert_eq!(ran(&sandbox), "a\nb\nc\n");
}

#[test]
fn a_spent_budget_counts_on_unless_there_is_a_new_one() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, TOOL);
    let mut turn = OpenAi.stops("first", "tool_calls");
    let function = json!({ "name": "t", "arguments": "{\"x\":\"a\"}" });
    turn["choices"][0]["message"]["tool_calls"] =
        json!([{ "id": "c", "type": "function", "function": function }]);
    turn["usage"]["prompt_tokens"] = json!(600);
    let server = Server::playing([json(200, turn)]);
    let output = sandbox.asking("a", &server.url()).args(["--max-tokens-total", "610"]).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(4), "first"), "{}", output.err());
    let id = id(&output.err());
    let next = format!("max_tokens_total under [limits], then continue with: axe run --continue {id}\n");
    assert!(output.err().ends_with(&next), "{}", output.err());
    let server = Server::playing([OpenAi.says("done")]);
    let output = carry_on(&sandbox, &id, &[], &server);
    assert_eq!((output.code(), server.requests().len()), (Some(4), 0));
    assert!(
        output.err().contains("limit of 610")
            || output.err().contains("budget of 610 is spent: 602 are used")
    );
    // The text is paid for, and printed again.
    assert_eq!(output.out(), "first");
    // A new limit is for what comes then, and what it took counts on, too.
    let failing = Server::playing([calls(OpenAi, &["b"]), http("500 No", "")]);
    let output = carry_on(&sandbox, &id, &["--max-tokens-total", "200"], &failing);
    assert_eq!((output.code(), failing.requests().len()), (Some(3), 2), "{}", output.err());
    let output = carry_on(&sandbox, &id, &[], &server);
    assert!(output.err().contains("614 are used"), "{}", output.err());
    let output = carry_on(&sandbox, &id, &["--max-tokens-total", "200"], &server);
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"), "{}", output.err());
}

#[test]
fn a_tool_that_ran_when_the_run_was_killed_is_not_run_again() {
    for (signal, code) in [(Signal::TERM, Some(143)), (Signal::KILL, None)] {
        let sandbox = Sandbox::new();
        let mark = mark();
        let tool = format!(
            "[sub_agents_config]\nparallel = false\n[tools.t]\nparameters = {{ x = 'string' }}\ncommand = ['sh', '-c', \
             'echo \"$0\" >> ran; [ \"$0\" != hang ] || {{ touch ready; sleep {mark}; }}; echo \"did $0\"', '{{x}}']\n"
        );
        sandbox.model("a", OpenAi, &tool);
        let server = Server::playing([calls(OpenAi, &["a", "hang", "c"])]);
        let asking = sandbox.asking("a", &server.url());
        let mut command = sandbox.std_command("axe-run");
        command.envs(present(asking.get_envs()));
        command.args(["a", "--no-stdin"]);
        let running = Running::start(command);
        sandbox.await_file("ready");
        // It is in use.
        let name = kept(&sandbox).remove(0);
        let id = name.strip_suffix(".jsonl").unwrap();
        let again = Server::playing([OpenAi.says("done")]);
        let output = carry_on(&sandbox, id, &[], &again);
        assert_eq!(output.code(), Some(1));
        assert!(output.err().contains("is in use by process "), "{}", output.err());

        running.signal(signal);
        let output = running.finish();
        assert_eq!(output.code(), code);
        if code.is_some() {
            let line = format!("axe-run: ended by SIGTERM; continue with: axe run --continue {id}\n");
            assert_eq!(output.err(), line);
        } else {
            crate::support::processes::end_escaped(&mark);
            // Nobody was told the id.
            let output = carry_on(&sandbox, "x", &[], &again);
            assert_eq!(output.err(), format!("axe-run: no run \"x\" can be continued; these can: {id}\n"));
        }
        let output = carry_on(&sandbox, id, &[], &again);
        assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"), "{}", output.err());
        let told = "Error: the run was interrupted while tool \"t\" was running. Whether it did its work is not known.";
        assert_eq!(again.request().results(), ["did a\n", told, "did c\n"]);
        assert_eq!(ran(&sandbox), "a\nhang\nc\n");
    }
}

#[test]
fn a_sub_agent_that_has_answered_is_not_asked_again_and_one_under_way_is() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "sub_agents = ['b']\n[sub_agents_config]\nparallel = false");
    sandbox.model("b", OpenAi, "");
    let server = Server::answering(|request| match request.user() {
        "Task: one" => OpenAi.says("about one"),
        "Task: two" => raw("").stall(),
        _ => OpenAi.calls(&[to("b", "one"), to("b", "two")]),
    });
    let output = sandbox.asking("a", &server.url()).args(["--timeout", "1"]).output().unwrap();
    assert_eq!(output.code(), Some(3), "{}", output.err());
    let server = Server::answering(|request| match request.user() {
        "Task: two" => OpenAi.says("about two"),
        _ => OpenAi.says(&request.results().join(", ")),
    });
    let output = carry_on(&sandbox, &id(&output.err()), &[], &server);
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "about one, about two"), "{}", output.err());
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_file_that_was_cut_anywhere_goes_on_from_what_is_whole() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, TOOL);
    let server = Server::playing([calls(OpenAi, &["a"]), calls(OpenAi, &["b", "c"]), http("500 No", "")]);
    let output = sandbox.asking("a", &server.url()).args(["-p", "go"]).output().unwrap();
    let id = id(&output.err());
    let path = runs(&sandbox).join(format!("{id}.jsonl"));
    let whole = fs::read(&path).unwrap();
    let ends: Vec<_> = (0..whole.len()).filter(|at| whole[*at] == b'\n').collect();
    let begins = ends[0];
    // Near the end of each line, and in its middle.
    let cuts = ends.windows(2).flat_map(|two| [two[0] + 1, (two[0] + two[1]) / 2, two[1]]);
    for cut in cuts.chain([5, whole.len()]) {
        fs::write(&path, &whole[..cut]).unwrap();
        let server = Server::answering(|request| match request.results().len() {
            0 => calls(OpenAi, &["a"]),
            1 => calls(OpenAi, &["b", "c"]),
            _ => OpenAi.says(&request.results().join("")),
        });
        let output = carry_on(&sandbox, &id, &[], &server);
        if cut <= begins {
            assert_eq!((output.code(), server.requests().len()), (Some(1), 0), "{cut}: {}", output.err());
            assert!(output.err().contains("is not the file of a run"), "{cut}: {}", output.err());
            continue;
        }
        assert_eq!(output.code(), Some(0), "{cut}: {}", output.err());
        let out = output.out();
        for x in ["a", "b", "c"] {
            assert!(out.contains(&format!("did {x}\n")) || out.contains("not known"), "{cut}: {out}");
        }
        let times = |x: &str| ran(&sandbox).lines().filter(|line| *line == x).count();
        let most = if cut < ends[2] { 2 } else { 1 };
        assert!(times("a") <= most, "{cut}");
        fs::write(sandbox.work().join("ran"), "").unwrap();
        assert!(kept(&sandbox).is_empty());
    }
}

#[test]
fn everything_that_a_run_began_with_is_kept() {
    let sandbox = Sandbox::new();
    sandbox.model("a", Anthropic, &format!("{TOOL}[params]\ntemperature = 0.3\ntop_p = 0.9"));
    sandbox.file("d/s.json", "{\"type\": \"object\"}");
    sandbox.file("shot.png", b"\x89PNG\r\n\x1a\nx");
    fs::create_dir_all(sandbox.work().join("w")).unwrap();
    let server = Server::playing([Anthropic.says("{}")]);
    let named = ["--conversation", "c", "-p", "before"];
    assert_eq!(sandbox.asking("a", &server.url()).args(named).output().unwrap().code(), Some(0));

    let server = Server::playing([calls(Anthropic, &["a"]), Anthropic.says("no JSON"), http("500 No", "")]);
    let args = [
        "--conversation", "c", "--attach", "shot.png", "--schema", "d/s.json", "--workdir", "w", "-p", "look",
    ];
    let output = sandbox.asking("a", &server.url()).args(args).write_stdin("piped").output().unwrap();
    assert_eq!(output.code(), Some(3), "{}", output.err());
    let id = id(&output.err());
    fs::remove_file(sandbox.work().join("shot.png")).unwrap();
    fs::remove_dir_all(sandbox.work().join("d")).unwrap();

    let again = Server::playing([Anthropic.says("{\"a\":1}")]);
    let output = carry_on(&sandbox, &id, &[], &again);
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "{\"a\":1}"), "{}", output.err());
    // The model was told what was wrong with its answer. Before that, it may not call tools; now it may again.
    let (before, now) = (&server.requests()[2].body, &again.request().body);
    assert_eq!(before["messages"], now["messages"]);
    for key in ["model", "system", "temperature", "top_p", "tools", "output_config"] {
        assert_eq!(before.get(key), now.get(key), "{key}");
    }
    assert!(fs::read_to_string(sandbox.work().join("w/ran")).unwrap() == "a\n");
    let conversation = sandbox.home().join(".local/share/axe/conversations/a/c.jsonl");
    let lines = fs::read_to_string(conversation).unwrap();
    let last: Value = serde_json::from_str(lines.lines().nth(1).unwrap()).unwrap();
    assert_eq!((&last["attachments"], &last["assistant"]), (&json!(["shot.png"]), &json!("{\"a\":1}")));
    assert!(last["user"].as_str().unwrap().contains("piped"));
}

#[test]
fn a_broken_stream_is_asked_for_again() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, TOOL);
    let broken = chunked(OpenAi, &begun(OpenAi, &["do"]), "");
    let server = Server::playing([calls(OpenAi, &["a"]), broken]);
    let output = sandbox.asking("a", &server.url()).arg("--stream").output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(3), "do\n"), "{}", output.err());
    let again = Server::playing([OpenAi.says("done")]);
    let output = carry_on(&sandbox, &id(&output.err()), &[], &again);
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"), "{}", output.err());
    assert_eq!(again.request().results(), ["did a\n"]);
}

#[test]
fn another_model_of_the_same_api_may_go_on() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, TOOL);
    let server = Server::playing([calls(OpenAi, &["a"]), http("500 No", "")]);
    let output = sandbox.asking("a", &server.url()).output().unwrap();
    let id = id(&output.err());
    let again = Server::playing([OpenAi.says("done")]);
    sandbox.provider("mine", "kind = 'command'\ncommand = 'cat'");
    for model in ["anthropic/m", "ollama/m", "mine/m"] {
        let output = carry_on(&sandbox, &id, &["--model", model], &again);
        assert!(matches!(output.code(), Some(1 | 2)), "{model}: {}", output.err());
    }
    assert!(again.requests().is_empty());
    let output = carry_on(&sandbox, &id, &["--model", "openai/m-2"], &again);
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"), "{}", output.err());
    assert_eq!(again.request().body["model"], "m-2");
}

#[test]
fn what_does_not_go_with_a_continued_run_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, TOOL);
    let server = Server::playing([]);
    for (args, why) in [
        (&["x", "a"][..], "unexpected argument \"a\"; --continue needs no agent"),
        (&["../x"], "not the id of a run: \"../x\""),
        (&[""], "not the id of a run: \"\""),
        (&["x"], "no run \"x\" can be continued; a run can be continued if it failed after"),
        (&["x", "-p", "y"], "\"--continue\" and \"--prompt\" do not go together"),
        (&["x", "--schema", "y"], "\"--continue\" and \"--schema\" do not go together"),
        (&["x", "--dry-run"], "\"--continue\" and \"--dry-run\" do not go together"),
    ] {
        let output = sandbox.asking("--continue", &server.url()).args(args).output().unwrap();
        assert_eq!(output.code(), Some(1), "{args:?}: {}", output.err());
        assert!(output.err().contains(why), "{args:?}: {}", output.err());
    }
    assert!(!runs(&sandbox).exists() && server.requests().is_empty());
    // A file of another kind, and an agent that is gone.
    sandbox.write(&runs(&sandbox).join("other.jsonl"), "{\"a\": 1}\n[]\n");
    let output = carry_on(&sandbox, "other", &[], &server);
    assert_eq!(output.code(), Some(1));
    assert!(output.err().contains("is not the file of a run: its beginning is missing"), "{}", output.err());
    let failing = Server::playing([calls(OpenAi, &["a"]), http("500 No", "")]);
    let output = sandbox.asking("a", &failing.url()).output().unwrap();
    fs::remove_file(sandbox.config().join("agents/a.toml")).unwrap();
    let output = carry_on(&sandbox, &id(&output.err()), &[], &server);
    assert_eq!(output.code(), Some(2));
    assert!(output.err().contains("agent config not found: a"), "{}", output.err());
}

#[test]
fn turns_that_cannot_be_kept_are_a_warning() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, TOOL);
    sandbox.write(&runs(&sandbox), "a file");
    let server = Server::playing([calls(OpenAi, &["a"]), calls(OpenAi, &["b"]), OpenAi.says("done")]);
    let output = sandbox.asking("a", &server.url()).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"));
    // Neither can the ledger.
    assert_eq!(output.err().lines().count(), 2, "{}", output.err());
    assert!(output.err().starts_with("Warning: the turns of this run are not kept: "), "{}", output.err());
}

#[test]
fn files_of_old_runs_are_removed_and_no_others() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, TOOL);
    let old = ["20260128T150404Z-a1B2c3.jsonl", "20260128T150404Z-a1B2c3.lock"];
    let stay =
        ["20260130T150406Z-a1B2c3.jsonl", "ledger.jsonl", "20250101.jsonl", "20250101T000000Z-a1B2c3.txt"];
    for name in old.iter().chain(&stay) {
        sandbox.write(&runs(&sandbox).join(name), "{}\n");
    }
    let server = Server::playing([calls(OpenAi, &["a"]), OpenAi.says("done")]);
    assert_eq!(sandbox.asking("a", &server.url()).output().unwrap().code(), Some(0));
    assert!(old.iter().all(|name| !runs(&sandbox).join(name).exists()));
    assert!(stay.iter().all(|name| runs(&sandbox).join(name).exists()));
}

#[test]
fn no_api_loses_a_turn_whatever_its_ids_are() {
    for kind in KINDS {
        let sandbox = Sandbox::new();
        sandbox.model("a", kind, TOOL);
        // Two calls with one id.
        let mut turn = kind.stops("", "tool_calls");
        let call = |x: &str| match kind {
            Anthropic => json!({ "type": "tool_use", "id": "c", "name": "t", "input": { "x": x } }),
            _ => {
                json!({ "id": "c", "type": "function", "function": { "name": "t", "arguments": { "x": x } } })
            }
        };
        match kind {
            Anthropic => turn["content"] = json!([call("a"), call("b")]),
            OpenAi => turn["choices"][0]["message"]["tool_calls"] = json!([call("a"), call("b")]),
            Ollama => turn["message"]["tool_calls"] = json!([call("a"), call("b")]),
        }
        let server = Server::playing([json(200, turn), http("500 No", "")]);
        let output = sandbox.asking("a", &server.url()).output().unwrap();
        let again = Server::playing([kind.says("done")]);
        let output = carry_on(&sandbox, &id(&output.err()), &[], &again);
        assert_eq!(output.code(), Some(0), "{}", output.err());
        assert_eq!(again.request().results(), ["did a\n", "did b\n"]);
    }
}

#[test]
fn the_patient_script_waits_for_a_service_and_goes_on() {
    let script = crate::support::root().join("examples/patient.sh");
    let with_script = |answers: Vec<Answer>| {
        let sandbox = Sandbox::new();
        sandbox.model("a", OpenAi, &format!("{TOOL}[limits]\nmax_tokens_total = 100000"));
        let server = Server::playing(answers);
        let asking = sandbox.asking("a", &server.url());
        let mut command = std::process::Command::new("sh");
        command.env_clear().envs(present(asking.get_envs()));
        let path = format!("{}:{}", binary("axe").parent().unwrap().display(), crate::support::tools());
        command
            .env("PATH", path)
            .env("PAUSE", "0")
            .current_dir(sandbox.work())
            .arg(&script)
            .args(["a", "Where?"]);
        (command.output().unwrap(), server.requests().len(), ran(&sandbox))
    };
    let down = || http("503 No", "");
    let (output, asked, ran) =
        with_script(vec![down(), calls(OpenAi, &["x"]), down(), down(), OpenAi.says("there")]);
    assert_eq!((output.code(), output.out().as_str(), output.err().as_str()), (Some(0), "there\n", ""));
    assert_eq!((asked, ran.as_str()), (5, "x\n"));
    let (output, asked, _) = with_script((0..9).map(|_| down()).collect());
    assert_eq!((output.code(), asked), (Some(3), 4));
    assert!(
        output.err().ends_with("server: No\nThe service is still down. Try again later.\n"),
        "{}",
        output.err()
    );
    let (output, asked, _) = with_script(vec![http("400 No", "")]);
    assert_eq!((output.code(), asked), (Some(1), 1));
}

#[cfg(target_os = "linux")]
#[test]
fn a_working_directory_that_is_not_utf_8_is_no_obstacle() {
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, TOOL);
    let dir = sandbox.work().join(std::ffi::OsStr::from_bytes(b"w\xff"));
    fs::create_dir(&dir).unwrap();
    let server = Server::playing([calls(OpenAi, &["a"]), http("500 No", "")]);
    let output = sandbox.asking("a", &server.url()).current_dir(dir).output().unwrap();
    assert_eq!((output.code(), output.err().as_str()), (Some(3), "axe-run: server: No\n"));
    assert!(kept(&sandbox).is_empty());
}

/// A run that another model has taken over goes on with that one, and no service gets what only another one knows.
#[test]
fn a_continued_run_goes_on_with_the_model_that_took_over() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, &format!("fallback = ['other/m-2', 'openai/m-3']\n{TOOL}"));
    let turn = |id: &str, mark: &str| {
        let call = json!({ "id": id, "type": "function", "function": { "name": "t", "arguments": "{\"x\": \"a\"}" } });
        json(
            200,
            json!({ "model": "m", "choices": [{ "finish_reason": "tool_calls",
            "message": { "role": "assistant", "content": null, "reasoning": mark, "tool_calls": [call] } }] }),
        )
    };
    let down = || http("503 Down", "");
    let first = Server::playing([turn("c1", "first"), down(), down()]);
    let second = Server::playing([turn("c2", "second"), down(), down()]);
    let other = |server: &Server| format!("kind = 'openai'\napi_key = 'k'\nbase_url = '{}'", server.url());
    sandbox.provider("other", &other(&second));
    let output = sandbox.asking("a", &first.url()).output().unwrap();
    let id = id(&output.err());
    assert_eq!((first.requests().len(), second.requests().len()), (3, 2), "{}", output.err());
    // The model that took over is down again, and the next one has the rest.
    let again = Server::playing([OpenAi.says("done")]);
    let output = carry_on(&sandbox, &id, &[], &again);
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"), "{}", output.err());
    assert!(output.err().contains("Warning: \"other/m-2\" failed"), "{}", output.err());
    let request = again.request();
    assert_eq!(request.body["model"], "m-3");
    assert!(request.text.contains("c1") && request.text.contains("c2"), "{}", request.text);
    assert!(!request.text.contains("reasoning"), "{}", request.text);
}
