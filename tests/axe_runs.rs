//! `axe-runs`, and what runs leave in the ledger.

use crate::support::api::{Anthropic, KEY, KINDS, OpenAi, to};
use crate::support::processes::Running;
use crate::support::server::{Server, json};
use crate::support::terminal::Terminal;
use crate::support::{NOW, Said, Sandbox, full_disk, is_root, mode, present, said, set_mode};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

fn path(sandbox: &Sandbox) -> PathBuf {
    sandbox.home().join(".local/share/axe/runs/ledger.jsonl")
}

fn ledger(sandbox: &Sandbox) -> Vec<Value> {
    let text = fs::read_to_string(path(sandbox)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The only run in the ledger.
fn recorded(sandbox: &Sandbox) -> Value {
    let mut runs = ledger(sandbox);
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

#[test]
fn a_run_leaves_one_line_for_its_whole_tree() {
    for kind in KINDS {
        let sandbox = Sandbox::new();
        sandbox.model("a", kind, "sub_agents = ['b']\n[tools.look]\ncommand = ['echo', '{what}']\nparameters = { what = 'string, required' }");
        sandbox.model("b", kind, "");
        let config = format!("[prices.\"{}/m-1\"]\ninput = 1e6\noutput = 5e6\n", kind.name());
        sandbox.write(&sandbox.config().join("config.toml"), config);
        let server = Server::answering(move |request| match request.user() {
            "Task: find it" => kind.says("found"),
            _ if request.results().is_empty() => {
                kind.calls_tools(&[("look", json!({ "what": "there" })), ("call_agent", to("b", "find it"))])
            }
            _ => kind.says("a long answer"),
        });
        let output = sandbox.asking("a", &server.url()).args(["-p", "a secret prompt"]).output().unwrap();
        assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
        let mut run = recorded(&sandbox);
        let text = run.to_string();
        assert!(!text.contains("prompt") && !text.contains("answer") && !text.contains("found"), "{text}");
        let id = run["id"].take();
        assert!(id.as_str().unwrap().starts_with("20260228T150405Z-"), "{id}");
        assert!(run["duration_ms"].take().is_u64() && run["tools"][0]["duration_ms"].take().is_u64());
        assert_eq!(
            run,
            json!({
                "id": null, "time": NOW, "program": "axe-run", "agent": "a", "model": format!("{}/m-1", kind.name()),
                "input_tokens": 30, "output_tokens": 6, "cache_read_tokens": 0, "cache_write_tokens": 0, "cost": 60.0,
                "calls": 3, "retries": 0, "duration_ms": null, "exit": 0, "error": null, "parent": null,
                "tools": [{ "name": "look", "arguments": { "what": "there" }, "exit": 0, "duration_ms": null }],
                "sub_agents": [{ "name": "b", "input_tokens": 10, "output_tokens": 2, "cost": 20.0 }],
            })
        );
        assert_eq!(mode(&path(&sandbox)), 0o600);
        assert_eq!(mode(path(&sandbox).parent().unwrap()), 0o700);
        assert_eq!(mode(&sandbox.home().join(".local/share/axe")), 0o755);
    }
}

#[test]
fn failed_runs_are_recorded_with_their_error() {
    let refused = || json(400, json!({ "error": { "message": format!("no such thing, {KEY}") } }));
    let flaw = || json(200, OpenAi.stops("half", "length"));
    for (args, answer, exit, kind, message) in [
        (&[][..], refused(), 1, "refused", "bad_request: no such thing, [key]"),
        (&[], json(500, json!({ "error": { "message": "down" } })), 3, "api", "server: down"),
        (&["--strict"], flaw(), 1, "refused", "the answer was cut off (stop reason: length)"),
        (
            &["--max-tokens-total", "1"],
            flaw(),
            4,
            "budget",
            "the token budget of 1 is spent: 0 are used, and",
        ),
        (&["--timeout", "1"], OpenAi.says("x").stall(), 3, "api", "timeout: "),
        (
            &["--schema", "s.json"],
            OpenAi.says("private words"),
            1,
            "refused",
            "the answer does not match the schema",
        ),
    ] {
        let sandbox = Sandbox::new();
        sandbox.file("s.json", r#"{"type": "object"}"#);
        sandbox.model("a", OpenAi, "");
        let is_late = args.contains(&"--timeout");
        let answer =
            if is_late { crate::support::server::raw("HTTP/1.1 200 OK\r\n").stall() } else { answer };
        let server = Server::answering(move |_| answer.clone());
        let output = sandbox.asking("a", &server.url()).args(args).output().unwrap();
        assert_eq!(output.code(), Some(exit), "{}", output.err());
        let run = recorded(&sandbox);
        assert_eq!((&run["exit"], &run["error"]["kind"]), (&json!(exit), &json!(kind)));
        assert!(run["error"]["message"].as_str().unwrap().starts_with(message), "{run}");
        assert!(!run.to_string().contains("private") && !run.to_string().contains(KEY), "{run}");
        assert_eq!(run["calls"], server.requests().len(), "{run}");
    }
}

#[test]
fn what_never_got_to_a_call_is_not_recorded() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "echo x", "");
    sandbox.agent_file("bad", "name = 'bad'\nmodel = 'nobody/x'");
    for args in [
        &["none"][..],
        &["bad"],
        &["a", "--zebra"],
        &["a", "--dry-run"],
        &["a", "--skip-empty"],
        &["a", "-p", ""],
    ] {
        sandbox.command("axe-run").args(args).output().unwrap();
        assert!(!path(&sandbox).exists(), "{args:?}");
    }
}

#[test]
fn a_full_stdout_and_a_signal_are_recorded() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "echo x", "");
    let mut command = sandbox.std_command("axe-run");
    let output = command.args(["a", "--no-stdin"]).stdout(full_disk()).output().unwrap();
    assert_eq!(output.code(), Some(1));
    let run = recorded(&sandbox);
    assert_eq!((&run["exit"], &run["error"]["kind"]), (&json!(1), &json!("io")), "{run}");
    for (signal, name, code) in [(Signal::INT, "SIGINT", 130), (Signal::TERM, "SIGTERM", 143)] {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "touch ready; sleep 1000", "");
        let mut program = sandbox.std_command("axe-run");
        program.args(["a", "--no-stdin"]);
        let running = Running::start(program);
        sandbox.await_file("ready");
        running.signal(signal);
        assert_eq!(running.finish().code(), Some(code));
        let run = recorded(&sandbox);
        // What the call would have cost is not known.
        assert_eq!((&run["exit"], &run["calls"], &run["cost"]), (&json!(code), &json!(1), &Value::Null));
        assert_eq!(run["error"], json!({ "kind": "signal", "message": format!("ended by {name}") }));
    }
}

#[test]
fn arguments_of_tools_are_cut_and_without_secrets() {
    let sandbox = Sandbox::new();
    sandbox.model("a", Anthropic, "[tools.t]\ncommand = ['true']\nschema = 't.json'");
    sandbox.write(&sandbox.config().join("t.json"), r#"{"type": "object"}"#);
    let long = "ä".repeat(500);
    let other = "another-plain-value";
    let arguments = json!({
        "header": format!("Authorization: {KEY} {other}"), "password": "hunter2-Xq9!", "list": [KEY, { "token": KEY }],
        "text": long, "number": 3, "cut": format!("{}{KEY}", "x".repeat(190)),
    });
    let server = Server::answering(move |request| match request.results().is_empty() {
        true => Anthropic.calls_tools(&[("t", arguments.clone())]),
        false => Anthropic.says("done"),
    });
    let mut run = sandbox.asking("a", &server.url());
    assert_eq!(run.env("UNUSED_API_KEY", other).output().unwrap().code(), Some(0));
    let run = recorded(&sandbox);
    let text = run.to_string();
    for secret in [KEY, &KEY[..9], other, "hunter2"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let arguments = &run["tools"][0]["arguments"];
    assert_eq!((&arguments["number"], &arguments["text"]), (&json!(3), &json!("ä".repeat(200) + "...")));
}

#[test]
fn the_run_inside_a_run_names_its_parent() {
    let sandbox = Sandbox::new();
    sandbox.agent("inner", "echo inner", "");
    let path_of = crate::support::binary("axe-run");
    sandbox.agent("outer", &format!("{} --no-stdin inner", path_of.display()), "");
    let tool = format!("[tools.ask]\ncommand = ['{}', '--no-stdin', 'outer']", path_of.display());
    sandbox.model("a", OpenAi, &tool);
    let server = Server::answering(|request| match request.results().is_empty() {
        true => OpenAi.calls_tools(&[("ask", json!({}))]),
        false => OpenAi.says("done"),
    });
    assert_eq!(sandbox.asking("a", &server.url()).output().unwrap().code(), Some(0));
    let runs = ledger(&sandbox);
    let order: Vec<_> = runs.iter().map(|run| run["agent"].as_str().unwrap()).collect();
    assert_eq!(order, ["inner", "outer", "a"]);
    assert_eq!((&runs[0]["parent"], &runs[1]["parent"]), (&runs[1]["id"], &runs[2]["id"]));
    assert_eq!(runs[2]["parent"], Value::Null);
    // Somebody's variable is not an id.
    sandbox.run("inner").env("AXE_RUN_ID", "../x y").output().unwrap();
    assert_eq!(ledger(&sandbox)[3]["parent"], Value::Null);
}

#[test]
fn an_analysis_of_gc_is_recorded_and_a_trim_without_one_is_not() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat > /dev/null; echo analysis", "[memory]\nenabled = true\nlast_n = 2");
    sandbox.write_log("a", &crate::support::entries(3));
    assert_eq!(said(sandbox.command("axe-gc").args(["--no-analysis", "a"])).0, Some(0));
    assert!(!path(&sandbox).exists());
    assert_eq!(said(sandbox.command("axe-gc").arg("a")).0, Some(0));
    sandbox.agent("b", "echo no >&2; exit 3", "[memory]\nenabled = true");
    sandbox.write_log("b", &crate::support::entries(3));
    assert_eq!(said(sandbox.command("axe-gc").arg("--all")).0, Some(1));
    let runs = ledger(&sandbox);
    let row = |run: &Value| {
        (run["program"].clone(), run["agent"].clone(), run["exit"].clone(), run["calls"].clone())
    };
    let rows: Vec<_> = runs.iter().map(row).collect();
    let expected = |agent: &str, exit: i32| (json!("axe-gc"), json!(agent), json!(exit), json!(1));
    assert_eq!(rows, [expected("a", 0), expected("a", 0), expected("b", 3)]);
    assert_eq!(runs[0]["cost"], Value::Null);
}

#[test]
fn a_ledger_that_cannot_be_written_is_a_warning() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "echo x", "");
    fs::create_dir_all(path(&sandbox)).unwrap();
    let (code, out, err) = said(&mut sandbox.run("a"));
    assert_eq!((code, out.as_str()), (Some(0), "x"));
    assert!(
        err.starts_with("Warning: the run is not recorded: \"") && err.contains("not a regular file"),
        "{err}"
    );
    // It is the only line on stderr also as JSON.
    let (_, _, err) = said(sandbox.run("a").args(["--json", "--timeout", "1", "--strict"]));
    assert_eq!(err.lines().count(), 1, "{err}");
    if !is_root("a_ledger_that_cannot_be_written_is_a_warning") {
        fs::remove_dir(path(&sandbox)).unwrap();
        set_mode(path(&sandbox).parent().unwrap(), 0o500);
        let (code, out, err) = said(&mut sandbox.run("a"));
        assert_eq!((code, out.as_str()), (Some(0), "x"));
        assert!(err.starts_with("Warning: the run is not recorded: "), "{err}");
    }
}

#[test]
fn the_ledger_can_be_switched_off() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "echo x", "");
    let config = sandbox.config().join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    sandbox.write(&config, format!("{text}[ledger]\nenabled = false\n"));
    assert_eq!(said(&mut sandbox.run("a")), (Some(0), "x".into(), String::new()));
    assert!(!path(&sandbox).parent().unwrap().exists());
    sandbox.write(&config, format!("{text}[ledger]\nenabled = 3\n"));
    let (code, _, err) = said(&mut sandbox.run("a"));
    assert!(
        code == Some(2) && err.contains("line 5, column 11: invalid type: integer, expected a boolean"),
        "{err}"
    );
}

/// Five runs of three days, and two lines that are none.
fn filled() -> Sandbox {
    let sandbox = Sandbox::new();
    let run = |n: u32, day: u32, agent: &str, model: &str, tokens: u64, cost: Value, exit: i32| {
        let error =
            if exit == 0 { Value::Null } else { json!({ "kind": "api", "message": "down\tand out" }) };
        json!({
            "id": format!("202602{day}T100000Z-{n}"), "time": format!("2026-02-{day}T10:00:00Z"), "program": "axe-run",
            "agent": agent, "model": model, "input_tokens": tokens, "output_tokens": 2, "cache_read_tokens": 1,
            "cost": cost, "calls": 1, "duration_ms": 1500, "exit": exit, "error": error, "later": [1],
            "tools": [{ "name": "t", "arguments": { "x": "y" }, "exit": 1, "duration_ms": 5 }],
            "sub_agents": [{ "name": "s", "input_tokens": 1, "output_tokens": 1, "cost": null }],
        })
        .to_string()
    };
    let lines = [
        run(1, 20, "a", "p/m", 10, json!(0.25), 0),
        "{\"id\": 3}".to_owned(),
        run(2, 20, "b", "p/m", 20, Value::Null, 3),
        run(3, 27, "a", "q/n", 30, json!(1.5), 0),
        "\u{1}".to_owned(),
        run(4, 28, "a", "p/m", 40, json!(0.1), 130),
        run(5, 28, "c", "r/o", 50, Value::Null, 0),
    ];
    sandbox.write(&path(&sandbox), lines.join("\n"));
    sandbox
}

const LEFT_OUT: &str = "Warning: line 2 of the ledger is left out: invalid type: integer `3`, expected a string\n\
                        Warning: line 5 of the ledger is left out: expected value\n";

#[test]
fn runs_are_listed_and_filtered() {
    let sandbox = filled();
    for (args, expected) in [
        (&[][..], "12345"),
        (&["--agent", "a"], "134"),
        (&["--agent", "none"], ""),
        (&["--failed"], "24"),
        (&["--since", "2d"], "345"),
        (&["--since", "2026-02-28"], "45"),
        (&["--since", "2026-02-27T10:00:01Z"], "45"),
        (&["--limit", "2"], "45"),
        (&["--limit", "2", "--agent", "a"], "34"),
        (&["--limit", "99"], "12345"),
        (&["--failed", "--since", "2d", "--agent", "a"], "4"),
    ] {
        let (code, out, err) = said(sandbox.command("axe-runs").args(args));
        assert_eq!((code, err.as_str()), (Some(0), LEFT_OUT), "{args:?}");
        let ids: String = out.lines().map(|line| &line[17..18]).collect();
        assert_eq!(ids, expected, "{args:?}: {out}");
        assert!(out.lines().all(|line| line.matches('\t').count() == 14), "{out}");
        let (_, out, _) = said(sandbox.command("axe-runs").args(args).arg("--json"));
        let json: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let ids: String = json.iter().map(|run| &run["id"].as_str().unwrap()[17..]).collect();
        assert_eq!(ids, expected, "{args:?}");
    }
    let (_, out, _) = said(sandbox.command("axe-runs").args(["--failed", "--since", "10d", "--limit", "2"]));
    assert_eq!(
        out.lines().next().unwrap(),
        "20260220T100000Z-2\t2026-02-20T10:00:00Z\t3\tb\tp/m\t20\t2\t1\t0\t-\t1\t1500\taxe-run\t-\tdown and out"
    );
}

#[test]
fn sums_say_what_is_not_known() {
    let sandbox = filled();
    for (key, expected) in [
        (
            "model",
            "p/m\t3\t2\t70\t6\t3\t0\t0.35\t1\nq/n\t1\t0\t30\t2\t1\t0\t1.5\t0\nr/o\t1\t0\t50\t2\t1\t0\t-\t1\n",
        ),
        ("agent", "a\t3\t1\t80\t6\t3\t0\t1.85\t0\nb\t1\t1\t20\t2\t1\t0\t-\t1\nc\t1\t0\t50\t2\t1\t0\t-\t1\n"),
        (
            "day",
            "2026-02-20\t2\t1\t30\t4\t2\t0\t0.25\t1\n2026-02-27\t1\t0\t30\t2\t1\t0\t1.5\t0\n\
             2026-02-28\t2\t1\t90\t4\t2\t0\t0.1\t1\n",
        ),
    ] {
        let (code, out, _) = said(sandbox.command("axe-runs").args(["--by", key]));
        assert_eq!((code, out.as_str()), (Some(0), expected), "{key}");
        let (_, out, _) = said(sandbox.command("axe-runs").args(["--json", "--by", key, "--agent", "c"]));
        let sum: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(
            (&sum["runs"], &sum["cost"], &sum["runs_without_cost"]),
            (&json!(1), &Value::Null, &json!(1))
        );
        assert!(sum[key].is_string(), "{sum}");
    }
}

#[test]
fn on_a_terminal_there_is_a_table_with_a_bar_for_each_day() {
    let sandbox = filled();
    let shown = |args: &[&str]| {
        let terminal = Terminal::open();
        terminal.resize(50, 120);
        let mut command = sandbox.std_command("axe-runs");
        let status = command.args(args).stdout(terminal.stdio()).stderr(full_disk()).status();
        assert!(status.unwrap().success());
        drop(command);
        terminal.all().replace("\r\n", "\n")
    };
    let days = shown(&["--by", "day"]);
    let lines: Vec<&str> = days.lines().collect();
    assert_eq!(lines.len(), 4, "{days}");
    assert!(lines[0].starts_with("DAY    ") && lines[0].contains("  RUNS  FAILED"), "{days}");
    let bars: Vec<usize> = lines[1..].iter().map(|line| line.matches('#').count()).collect();
    assert_eq!(bars, [7, 40, 3], "{days}");
    assert!(lines[1].contains("0.25+?  #") && lines[2].contains(" 1.5  #"), "{days}");
    assert!(!shown(&["--by", "model"]).contains('#'));
    let list = shown(&["--limit", "2"]);
    assert!(
        list.contains("Z-4") && list.contains("  130  a  ") && list.contains("1500  down and out\n"),
        "{list}"
    );
    // Without money, a bar is of tokens.
    assert!(shown(&["--by", "day", "--agent", "c"]).ends_with(&format!(" -  {}\n", "#".repeat(40))));
}

#[test]
fn one_run_is_shown_whole() {
    let sandbox = filled();
    let id = "20260228T100000Z-4";
    let (code, out, _) = said(sandbox.command("axe-runs").arg(id));
    assert!(
        code == Some(0) && out.starts_with("{\n  \"id\": \"20260228T100000Z-4\",\n") && out.ends_with("}\n"),
        "{out}"
    );
    let whole: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&whole["sub_agents"][0]["name"], &whole["tools"][0]["arguments"]["x"]),
        (&json!("s"), &json!("y"))
    );
    let (_, out, _) = said(sandbox.command("axe-runs").args([id, "--json"]));
    assert_eq!((serde_json::from_str::<Value>(&out).unwrap(), out.lines().count()), (whole, 1));
    let (code, out, err) = said(sandbox.command("axe-runs").arg("20260228T100000Z-9"));
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(
        err.ends_with("axe-runs: no run \"20260228T100000Z-9\" in the ledger; see them with: axe runs\n"),
        "{err}"
    );
}

#[test]
fn wrong_arguments_and_a_missing_ledger() {
    let sandbox = Sandbox::new();
    for (args, expected) in [
        (&["../x"][..], "not the id of a run: \"../x\"; see them with: axe runs"),
        (&["x", "--failed"], "option \"--failed\" does not go with the id of a run"),
        (
            &["--since", "soon"],
            "the value of \"--since\" is no time: \"soon\"; write it like 7d, 12h, 2026-02-28 or 2026-02-28T15:04:05Z",
        ),
        (&["--by", "week"], "option \"--by\" takes model, agent or day, got \"week\""),
        (&["--limit", "0"], "option \"--limit\" takes a whole number from 1, got \"0\""),
        (&["--by", "day", "--limit", "3"], "options \"--by\" and \"--limit\" do not go together"),
        (&["--trim", "1d", "--failed"], "options \"--trim\" and \"--failed\" do not go together"),
        (&["x", "y"], "unexpected argument \"y\"; see --help"),
    ] {
        let (code, out, err) = said(sandbox.command("axe-runs").args(args));
        assert_eq!((code, out.as_str(), err), (Some(1), "", format!("axe-runs: {expected}\n")), "{args:?}");
    }
    for args in [&[][..], &["--by", "day"], &["--limit", "1"], &["--json"]] {
        assert_eq!(said(sandbox.command("axe-runs").args(args)), (Some(0), String::new(), String::new()));
    }
    let (_, out, _) = said(sandbox.command("axe-runs").args(["--trim", "1d"]));
    assert_eq!(out, "0 runs removed, 0 kept\n");
    assert!(!path(&sandbox).parent().unwrap().exists());
}

#[test]
fn a_trim_removes_the_older_runs_alone() {
    let sandbox = filled();
    set_mode(&path(&sandbox), 0o600);
    let before = fs::read_to_string(path(&sandbox)).unwrap();
    let (code, out, err) = said(sandbox.command("axe-runs").args(["--trim", "2d"]));
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "2 runs removed, 5 kept\n", ""));
    let kept: Vec<&str> =
        before.lines().enumerate().filter(|(n, _)| ![0, 2].contains(n)).map(|(_, line)| line).collect();
    assert_eq!(fs::read_to_string(path(&sandbox)).unwrap(), kept.join("\n"));
    assert_eq!(mode(&path(&sandbox)), 0o600);
    // A run that comes after it begins a new line.
    sandbox.agent("a", "echo x", "");
    assert_eq!(said(&mut sandbox.run("a")).0, Some(0));
    assert_eq!(fs::read_to_string(path(&sandbox)).unwrap().lines().count(), 6);
}

#[test]
fn a_long_ledger_is_read_in_constant_memory() {
    let sandbox = filled();
    let line = fs::read_to_string(path(&sandbox)).unwrap().lines().next().unwrap().to_owned();
    let line = line.replacen("\"y\"", &format!("\"{}\"", "y".repeat(3000)), 1) + "\n";
    fs::write(path(&sandbox), line.repeat(20_000)).unwrap();
    let program = crate::support::binary("axe-runs");
    for args in ["--by day", "--limit 3", "--failed", "20260228T100000Z-4"] {
        let mut command = std::process::Command::new("/bin/sh");
        let like = sandbox.std_command("axe-runs");
        command.env_clear().envs(present(like.get_envs()));
        // 16 MiB of data; the ledger has four times as much.
        command.arg("-c").arg(format!("ulimit -d 16384 && exec {} {args}", program.display()));
        let output = command.output().unwrap();
        assert!(
            output.code() == Some(0) || args.starts_with("2026") && output.code() == Some(1),
            "{}",
            output.err()
        );
    }
}
