//! The command line of `axe-run`: spellings that work, and those that are refused by name.

use crate::support::{NOW, Said, Sandbox, said};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

#[test]
fn wrong_arguments_are_named_on_stderr_and_exit_one() {
    let long = "604800";
    let seconds = |got: &str| {
        format!("option \"--timeout\" takes a whole number of seconds from 1 to {long}, got \"{got}\"")
    };
    let cases: [(&[&str], String); 19] = [
        (&[], "agent name is required; ".into()),
        (&["a", "b"], "unexpected argument \"b\"".into()),
        (&["a", "--jsom"], "unknown option \"--jsom\"; did you mean \"--json\"?\n".into()),
        (&["a", "--vebrose"], "unknown option \"--vebrose\"; did you mean \"--verbose\"?\n".into()),
        (&["a", "--timout", "3"], "unknown option \"--timout\"; did you mean \"--timeout\"?\n".into()),
        (&["a", "--xyzzy"], "unknown option \"--xyzzy\"; ".into()),
        (&["a", "-x"], "unknown option \"-x\"; ".into()),
        (&["a", "-vx"], "unknown option \"-x\"; ".into()),
        (&["a", "--timeout"], "option \"--timeout\" needs a value".into()),
        (&["a", "--model"], "option \"--model\" needs a value".into()),
        (&["a", "-p"], "option \"-p\" needs a value".into()),
        (&["a", "--timeout", "0"], seconds("0")),
        (&["a", "--timeout", "abc"], seconds("abc")),
        (&["a", "--timeout", "-1"], seconds("-1")),
        (&["a", "--timeout", "1.5"], seconds("1.5")),
        (&["a", "--timeout=99999999999999999999"], seconds("99999999999999999999")),
        (&["a", "--verbose=yes"], "option \"--verbose\" takes no value, got \"yes\"".into()),
        (&["a", "-p", ""], "option \"--prompt\" is empty".into()),
        (&["a", "-p", " \n"], "option \"--prompt\" is empty".into()),
    ];
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "");
    for (args, expected) in cases {
        let (code, out, err) = said(sandbox.command("axe-run").args(args));
        assert_eq!((code, out.as_str()), (Some(1), ""), "{args:?}: {err}");
        assert!(
            err.starts_with(&format!("axe-run: {expected}")) && err.lines().count() == 1,
            "{args:?}: {err}"
        );
    }
}

#[test]
fn arguments_that_are_not_text_are_refused() {
    let sandbox = Sandbox::new();
    let bad = OsStr::from_bytes(b"\xff");
    for args in [vec![bad], vec![OsStr::new("a"), OsStr::new("--model"), bad], vec![OsStr::new("-p"), bad]] {
        let (code, out, err) = said(sandbox.command("axe-run").args(&args));
        assert_eq!((code, out.as_str()), (Some(1), ""), "{args:?}");
        assert!(err.contains("not valid UTF-8"), "{err}");
    }
}

#[test]
fn every_spelling_of_a_flag_works() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "");
    sandbox.agent("-x", "cat", "");
    let cases: [&[&str]; 12] = [
        &["a", "-p", "hi"],
        &["-p", "hi", "a"],
        &["a", "-phi"],
        &["a", "-p=hi"],
        &["a", "--prompt", "hi"],
        &["a", "--prompt=hi"],
        &["--prompt=hi", "--", "a"],
        &["--prompt=hi", "--", "-x"],
        &["a", "--prompt=hi", "--no-stdin", "--strict", "--timeout=9"],
        &["a", "-vphi"],
        &["a", "-vp", "hi"],
        &["-p", "other", "a", "-p", "hi"],
    ];
    for args in cases {
        let (code, out, err) = said(sandbox.command("axe-run").args(args));
        assert_eq!((code, out.as_str()), (Some(0), "hi"), "{args:?}: {err}");
    }
    // A value may look like a flag.
    let (code, out, err) = said(sandbox.command("axe-run").args(["a", "--prompt=--json"]));
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "--json", ""));
}

#[test]
fn an_error_after_a_value_that_looks_like_json_is_text() {
    let sandbox = Sandbox::new();
    let (code, _, err) = said(sandbox.command("axe-run").args(["gone", "--prompt", "--json"]));
    assert!(code == Some(1) || code == Some(2));
    assert!(err.starts_with("axe-run: "), "{err}");
}

#[test]
fn names_that_are_paths_are_refused_before_they_are_opened() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "");
    sandbox.write(&sandbox.config().join("x.toml"), "name = 'x'\nmodel = 'a/m'");
    let long = "n".repeat(300);
    for name in
        ["../x", "a/../a", "/etc/passwd", "./a", ".hidden", "..", "a\\b", "a\nb", "\u{1b}[31m", "", &long]
    {
        let (code, out, err) = said(&mut sandbox.run(name));
        assert_eq!((code, out.as_str()), (Some(2), ""), "{name:?}: {err}");
        assert!(err.starts_with("axe-run: invalid agent name \""), "{name:?}: {err}");
        assert!(err.lines().count() == 1 && !err.contains('\u{1b}'), "{err:?}");
    }
}

#[test]
fn messages_are_one_line_without_control_characters() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "\"de\\nsc\\u001b[31m\" = 1");
    sandbox.agent("globs", "cat", "files = [\"a\\n[b\"]");
    let cases: [&[&str]; 9] = [
        &["a"],
        &["globs"],
        &["a", "--x\u{1b}[31m\ny"],
        &["a", "b\nc"],
        &["a", "--model", "p\u{1b}[31m\nq/x"],
        &["a", "--model", "p\nq"],
        &["a", "--skill", "no\nsuch"],
        &["a", "--workdir", "no\u{1b}[2J\nsuch"],
        &["a", "--timeout", "1\n2"],
    ];
    for args in cases {
        let (_, _, err) = said(sandbox.command("axe-run").args(args));
        assert!(err.ends_with('\n') && !err.contains('\u{1b}'), "{args:?}: {err:?}");
        let is_whole = |line: &str| line.starts_with("axe-run: ") || line.starts_with("Warning: ");
        assert!(err.lines().all(is_whole), "{args:?}: {err:?}");
    }
}

#[test]
fn a_malformed_axe_now_is_a_configuration_error() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "");
    for now in ["yesterday", "2026-02-28", "2026-13-01T00:00:00Z", "1772290000"] {
        let (code, out, err) = said(sandbox.run("a").env("AXE_NOW", now));
        assert_eq!((code, out.as_str()), (Some(2), ""));
        assert!(err.starts_with(&format!("axe-run: AXE_NOW is not an RFC 3339 time: \"{now}\"; ")), "{err}");
    }
    // Empty is unset.
    assert_eq!(said(sandbox.run("a").env("AXE_NOW", "").arg("-phi")).0, Some(0));
}

#[test]
fn without_a_home_there_is_no_configuration() {
    let sandbox = Sandbox::new();
    let (code, _, err) = said(sandbox.run("a").env_remove("HOME"));
    assert_eq!(code, Some(2));
    assert!(err.starts_with("axe-run: unable to determine config directory: "), "{err}");
}

#[test]
fn with_json_every_error_is_one_object_on_stderr() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "echo told >&2; exit 4", "");
    sandbox.agent("refused", "true", "");
    let cases: [(&[&str], &str, i64, &str); 8] = [
        (&["--json"], "usage", 1, "agent name is required"),
        (&["a", "--json", "--vebrose"], "usage", 1, "unknown option \"--vebrose\""),
        (&["--jsom", "a", "--json"], "usage", 1, "unknown option \"--jsom\""),
        (&["gone", "--json"], "config", 2, "agent config not found: gone"),
        (&["../x", "--json"], "config", 2, "invalid agent name \"../x\": it contains a slash"),
        (
            &["a", "--json", "--model", "x"],
            "usage",
            1,
            "invalid model format \"x\": expected provider/model-name",
        ),
        (&["a", "--json"], "api", 3, "server: command \"echo\" failed (exit 4): told"),
        (&["refused", "--json", "--strict"], "refused", 1, "the answer is empty (stop reason: stop)"),
    ];
    for (args, kind, code, message) in cases {
        let (ended, out, err) = said(sandbox.command("axe-run").args(args));
        assert_eq!(ended, Some(i32::try_from(code).unwrap()), "{args:?}: {err}");
        assert_eq!(out.is_empty(), kind != "refused", "{args:?}: {out}");
        // A command's own stderr and warnings come before.
        let line = err.lines().last().unwrap();
        assert_eq!(err.matches('{').count(), line.matches('{').count(), "{args:?}: {err}");
        let object: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|e| panic!("{args:?}: {e}: {err}"));
        assert_eq!(object["error"]["kind"], kind, "{args:?}");
        assert_eq!(object["error"]["message"], message, "{args:?}");
        assert!(object["error"].get("hint").is_some(), "{args:?}: {err}");
        assert_eq!(object["exit_code"], code, "{args:?}");
    }
    let (_, _, err) = said(sandbox.command("axe-run").args(["gone", "--json"]).env("AXE_NOW", "x"));
    assert!(err.starts_with("{\"error\":{"), "{err}");
}

#[test]
fn an_error_that_cannot_be_written_changes_nothing() {
    let sandbox = Sandbox::new();
    let mut run = sandbox.std_command("axe-run");
    let output = run.arg("gone").stderr(crate::support::closed_pipe()).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(2), ""));
    sandbox.agent("a", "echo answer; echo noise >&2", "[memory]\nenabled = true");
    let mut run = sandbox.std_command("axe-run");
    let output = run.args(["a", "-vpt"]).stderr(crate::support::full_disk()).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "answer"));
    assert_eq!(sandbox.log("a"), format!("## {NOW}\n**Task:** t\n**Result:** answer\n\n"));
}
