//! Answers that were paid for are not lost, and a failure is never reported as a success.

use crate::support::api::{Anthropic, KINDS, Kind, Ollama, OpenAi, ask};
use crate::support::processes::LONG;
use crate::support::server::{Server, http, json, raw};
use crate::support::{Said, Sandbox, binary, present, said};
use serde_json::{Value, json};
use std::process::Command;
use std::time::Instant;

/// A shell line in the sandbox, in which "$0" is the program.
fn shell(sandbox: &Sandbox, program: &str, line: &str) -> std::process::Output {
    let run = sandbox.std_command(program);
    let mut sh = Command::new("/bin/sh");
    sh.env_clear().envs(present(run.get_envs())).current_dir(sandbox.work());
    sh.args(["-c", line]).arg(binary(program));
    sh.output().unwrap()
}

#[test]
fn a_closed_stdout_is_a_failure_and_the_null_device_is_not() {
    for (program, line) in [("axe-run", "\"$0\" --no-stdin a"), ("axe", "\"$0\" run --no-stdin a")] {
        for (redirect, code) in [(">&-", 1), (">/dev/null", 0), ("1<>/dev/null", 0), ("| cat", 0)] {
            let sandbox = Sandbox::new();
            sandbox.agent("a", "echo fine", "[memory]\nenabled = true");
            let output = shell(&sandbox, program, &format!("{line} {redirect}"));
            let error = if code == 0 { "" } else { "axe-run: cannot write to stdout: it is closed\n" };
            assert_eq!((output.code(), output.err().as_str()), (Some(code), error), "{program} {redirect}");
            // The answer was paid for.
            assert!(sandbox.log("a").ends_with("**Result:** fine\n\n"), "{program} {redirect}");
        }
    }
}

#[test]
fn a_gc_with_a_closed_stdout_asks_nothing_and_trims_nothing() {
    for line in ["\"$0\" a >&-", "\"$0\" --no-analysis a >&-", "\"$0\" --all >&-"] {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "touch asked; echo fine", "[memory]\nenabled = true\nlast_n = 1");
        let before = crate::support::entries(5);
        sandbox.write_log("a", &before);
        let output = shell(&sandbox, "axe-gc", line);
        assert_eq!(output.code(), Some(1), "{line}");
        assert!(output.err().contains("cannot write to stdout: it is closed"), "{}", output.err());
        assert_eq!(sandbox.log("a"), before, "{line}");
        assert!(!sandbox.work().join("asked").exists(), "{line}");
    }
}

#[test]
fn help_to_a_closed_stdout_is_a_failure_in_every_program() {
    let sandbox = Sandbox::new();
    for program in crate::support::programs() {
        let output = shell(&sandbox, &program, "\"$0\" --help >&-");
        assert_eq!(output.code(), Some(1), "{program}: {}", output.err());
    }
}

/// A body that says `text`, which stands in the JSON as it is.
fn with_text(kind: Kind, text: &str) -> Vec<u8> {
    let reason = if kind == Anthropic { "end_turn" } else { "stop" };
    kind.stops("@", reason).to_string().replace('@', text).into_bytes()
}

#[test]
fn an_answer_is_not_lost_to_one_character() {
    for kind in KINDS {
        let mut bad_byte = with_text(kind, "a?b");
        let at = bad_byte.windows(3).position(|three| three == b"a?b").unwrap();
        bad_byte[at + 1] = 0xff;
        for (body, warned) in [
            (with_text(kind, "a\\ud800b"), true),
            (with_text(kind, "a\\udc00b"), true),
            (bad_byte, true),
            ([b"\xef\xbb\xbf".to_vec(), with_text(kind, "a\\ufffdb")].concat(), false),
        ] {
            let (output, _server) = ask(kind, "", &[], vec![http("200 OK", body)]);
            let warning = "Warning: the reply has invalid characters; they became U+FFFD\n";
            assert_eq!((output.code(), output.out().as_str()), (Some(0), "a\u{fffd}b"), "{}", output.err());
            assert_eq!(output.err(), if warned { warning } else { "" });
        }
    }
}

#[test]
fn input_tokens_are_all_that_the_model_read() {
    let mut anthropic = Anthropic.stops("x", "end_turn");
    anthropic["usage"] = json!({
        "input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 20,
    });
    let mut openai = OpenAi.stops("x", "stop");
    openai["usage"] = json!({ "prompt_tokens": 100, "completion_tokens": 2, "prompt_tokens_details": { "cached_tokens": 70 } });
    for (kind, body, written) in [(Anthropic, anthropic, 20), (OpenAi, openai, 0)] {
        let (output, _server) = ask(kind, "", &["--json", "-v"], vec![json(200, body)]);
        let envelope: Value = serde_json::from_str(&output.out()).unwrap();
        assert_eq!(
            (&envelope["input_tokens"], &envelope["cache_read_tokens"], &envelope["cache_write_tokens"]),
            (&json!(100), &json!(70), &json!(written)),
            "{envelope}"
        );
        let err = output.err();
        assert!(err.contains("\nTokens:   100 input, 2 output\n"), "{err}");
        assert!(err.contains(&format!("\nCache:    70 of the input read, {written} written\n")), "{err}");
    }
    let (output, _server) = ask(Ollama, "", &["-v"], vec![Ollama.says("x")]);
    assert!(!output.err().contains("Cache:"), "{}", output.err());
}

#[test]
fn malformed_arguments_are_told_once() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "sub_agents = ['b']");
    sandbox.agent("b", "cat", "");
    let call = |id, arguments: &str| json!({ "id": id, "function": { "name": "call_agent", "arguments": arguments } });
    let mut turn = OpenAi.stops("", "tool_calls");
    turn["choices"][0]["message"]["tool_calls"] = json!([call("x", "{"), call("y", "[]")]);
    let server = Server::playing([json(200, turn), OpenAi.says("done")]);
    assert_eq!(sandbox.asking("a", &server.url()).output().unwrap().code(), Some(0));
    for told in server.requests()[1].results() {
        let start = "call_agent error: the arguments cannot be read: they are not a JSON object";
        assert!(told.starts_with(start) && told.matches("JSON object").count() == 1, "{told}");
    }
}

#[test]
fn a_server_without_tls_behind_https_is_named() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "");
    let server = Server::deaf(raw("HTTP/1.1 400 Bad Request\r\n\r\n").stall());
    let url = server.url().replace("http://", "https://");
    let output = sandbox.asking("a", &url).args(["--timeout", "20"]).output().unwrap();
    assert_eq!(output.code(), Some(3));
    assert!(output.err().contains("does not speak TLS; use http://"), "{}", output.err());
}

#[test]
fn a_locked_log_does_not_hold_a_run_beyond_its_deadline() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "echo fine", "[memory]\nenabled = true\nmax_entries = 100");
    sandbox.write_log("a", &crate::support::entries(2));
    let log = std::fs::File::open(sandbox.log_path("a")).unwrap();
    log.lock().unwrap();
    let start = Instant::now();
    let (code, out, err) = said(sandbox.run("a").args(["--timeout", "3"]));
    assert!(start.elapsed() < LONG, "{:?}", start.elapsed());
    assert_eq!((code, out.as_str()), (Some(0), "fine"));
    assert!(err.contains("Warning: failed to save memory for \"a\": ") && err.contains("is locked"), "{err}");
}

#[test]
fn invalid_utf8_in_files_and_skills_is_warned_of() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "files = ['x.txt']\nskill = 's.md'");
    sandbox.file("x.txt", b"caf\xe9");
    sandbox.write(&sandbox.config().join("s.md"), b"caf\xe9");
    let (code, out, err) = said(&mut sandbox.run("a"));
    assert_eq!((code, out.matches("caf\u{fffd}").count()), (Some(0), 2));
    assert_eq!(
        err,
        "Warning: files: \"x.txt\" is not valid UTF-8; the invalid bytes became U+FFFD\n\
         Warning: skill \"s.md\" is not valid UTF-8; the invalid bytes became U+FFFD\n"
    );
}

#[test]
fn an_answer_with_headings_is_one_entry() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "printf '## One\\n\\n## Two\\nx\\n## Three'", "[memory]\nenabled = true\nlast_n = 2");
    for _ in 0..3 {
        let (code, out, _) = said(&mut sandbox.run("a"));
        assert_eq!((code, out.as_str()), (Some(0), "## One\n\n## Two\nx\n## Three"));
    }
    let log = sandbox.log("a");
    assert_eq!(log.lines().filter(|line| line.starts_with("## ")).count(), 3, "{log}");
    let shown = sandbox.run("a").arg("--dry-run").output().unwrap().out();
    assert_eq!(shown.matches("**Task:**").count(), 4, "two entries, in the prompt and below Memory: {shown}");
}

#[test]
fn a_log_that_is_most_of_the_prompt_is_warned_of() {
    for (task, warned) in [(40_000, true), (3_000, false)] {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "true; echo ok", "[memory]\nenabled = true");
        let diff = "x".repeat(task);
        assert_eq!(said(sandbox.run("a").write_stdin(diff.clone())).2, "");
        let (_, _, err) = said(sandbox.run("a").write_stdin("short"));
        assert_eq!(err.contains("the log of agent \"a\" is ") && err.contains("axe gc a"), warned, "{err}");
    }
}

#[test]
fn a_new_agent_without_a_model_says_which_line_to_change() {
    let sandbox = Sandbox::new();
    assert_eq!(said(sandbox.command("axe-agents").args(["init", "w"])).0, Some(0));
    let (code, _, err) = said(&mut sandbox.run("w"));
    assert_eq!(code, Some(1));
    let line =
        "unsupported provider \"provider\": supported providers are anthropic, openai, ollama, command";
    let path = sandbox.config().join("agents/w.toml").display().to_string();
    let hint = format!("change the line model = \"provider/model-name\" in \"{path}\"");
    assert_eq!(err, format!("axe-run: {line}; {hint}\n"));
}

#[test]
fn a_prompt_without_its_flag_is_pointed_at_the_flag() {
    let sandbox = Sandbox::new();
    sandbox.agent("w", "cat", "");
    let (code, _, err) = said(sandbox.run("w").arg("some text"));
    let hint = "a prompt needs -p: axe-run -p \"…\" w";
    assert_eq!((code, err), (Some(1), format!("axe-run: unexpected argument \"some text\"; {hint}\n")));
}

#[test]
fn numbers_in_toml_that_are_too_large_are_told_in_words() {
    let sandbox = Sandbox::new();
    for (toml, why) in [
        ("[memory]\nlast_n = 99999999999999999999", "the number is too large"),
        ("files = 7", "expected a list"),
        ("[memory]\nlast_n = '5'", "expected a whole number"),
        ("memory = 5", "expected a table"),
    ] {
        sandbox.agent_file("a", &format!("name = 'a'\nmodel = 'x/y'\n{toml}"));
        let (code, _, err) = said(&mut sandbox.run("a"));
        assert_eq!(code, Some(2));
        assert!(err.contains(why) && !err.contains("i64") && !err.contains("struct"), "{err}");
    }
}

#[test]
fn with_skip_empty_a_quiet_day_costs_nothing() {
    for stdin in ["", " \n\t\n"] {
        for args in
            [&["--skip-empty"][..], &["--skip-empty", "-p", "What changed?"], &["--skip-empty", "--json"]]
        {
            let sandbox = Sandbox::new();
            sandbox.agent("a", "touch asked; echo fine", "[memory]\nenabled = true");
            let ended = said(sandbox.run("a").args(args).write_stdin(stdin));
            assert_eq!(ended, (Some(0), String::new(), String::new()), "{args:?}");
            assert!(!sandbox.work().join("asked").exists() && !sandbox.log_path("a").exists());
            let (code, out, _) = said(sandbox.run("a").args(args).write_stdin("text"));
            assert_eq!((code, out.contains("fine")), (Some(0), true), "{args:?}");
        }
    }
    let sandbox = Sandbox::new();
    sandbox.agent("a", "echo fine", "");
    let (code, _, err) = said(sandbox.run("a").args(["--skip-empty", "--no-stdin"]));
    assert_eq!(code, Some(1));
    assert!(err.contains("\"--skip-empty\" and \"--no-stdin\" do not go together"), "{err}");
}

#[test]
fn newline_ends_an_answer_that_has_none() {
    for (command, plain, ended) in [
        ("printf 8", "8", "8\n"),
        ("printf ' '", " ", " \n"),
        ("true", "", ""),
        ("printf '8\\n\\n'", "8", "8\n"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.agent("a", command, "");
        assert_eq!(said(&mut sandbox.run("a")).1, plain, "{command}");
        assert_eq!(said(sandbox.run("a").arg("--newline")).1, ended, "{command}");
    }
    let (output, _server) = ask(OpenAi, "", &["--newline"], vec![OpenAi.says("8\n")]);
    assert_eq!(output.out(), "8\n");
}
