//! What all programs promise: help, version, flags, and streams that are full or gone.

use crate::support::store::Store;
use crate::support::{Said, Sandbox, closed_pipe, full_disk, programs, said};
use std::fs;

struct Flag {
    long: String,
    short: Option<String>,
    takes_value: bool,
}

fn help(program: &str) -> String {
    let sandbox = Sandbox::new();
    let (code, out, err) = said(sandbox.command(program).arg("--help"));
    assert_eq!((code, err.as_str()), (Some(0), ""), "{program}");
    out
}

/// The flags that a help lists: lines like `  -p, --prompt TEXT  the user message`.
fn flags(help: &str) -> Vec<Flag> {
    let flags: Vec<Flag> = help
        .lines()
        .filter(|line| line.starts_with("  -"))
        .map(|line| {
            let spelling = line.trim_start().split("  ").next().unwrap();
            let (short, rest) = match spelling.split_once(", ") {
                Some((short, rest)) => (Some(short.to_owned()), rest),
                None => (None, spelling),
            };
            let (long, value) =
                rest.split_once(' ').map_or((rest, None), |(long, value)| (long, Some(value)));
            Flag { long: long.to_owned(), short, takes_value: value.is_some() }
        })
        .collect();
    assert!(flags.iter().any(|flag| flag.long == "--help" && flag.short.as_deref() == Some("-h")), "{help}");
    flags
}

#[test]
fn help_fits_a_screen_and_begins_with_the_name() {
    for program in programs() {
        let text = help(&program);
        let first = text.lines().next().unwrap();
        let caption = first.strip_prefix(&format!("{program} - ")).unwrap_or_else(|| panic!("{first}"));
        assert!(!caption.is_empty() && !caption.ends_with('.'), "{first}");
        assert!(text.lines().count() <= 40, "{program}: {} lines", text.lines().count());
        assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{program}");
        for line in text.lines() {
            assert!(line.chars().count() <= 79, "{program}: {line}");
            assert!(!line.ends_with(' '), "{program}: {line:?}");
        }
        let example = |line: &str| line.starts_with("    ") && line.contains(&program);
        assert!(text.lines().any(example), "{program} has no example");
        let sandbox = Sandbox::new();
        assert_eq!(said(sandbox.command(&program).arg("-h")), (Some(0), text, String::new()));
    }
}

#[test]
fn version_is_name_and_number() {
    for program in programs() {
        let sandbox = Sandbox::new();
        for flag in ["-V", "--version"] {
            let expected = format!("{program} {}\n", env!("CARGO_PKG_VERSION"));
            assert_eq!(said(sandbox.command(&program).arg(flag)), (Some(0), expected, String::new()));
        }
    }
}

#[test]
fn help_and_version_need_no_home() {
    for program in programs() {
        for flag in ["--help", "--version"] {
            let sandbox = Sandbox::new();
            let (code, _, err) = said(sandbox.command(&program).arg(flag).env_clear().env("AXE_NOW", "x"));
            assert_eq!((code, err.as_str()), (Some(0), ""), "{program} {flag}");
        }
    }
}

#[test]
fn every_flag_of_the_help_is_one_that_the_program_knows() {
    for program in programs() {
        let sandbox = Sandbox::new();
        for flag in flags(&help(&program)) {
            for spelling in flag.short.iter().chain([&flag.long]) {
                let (_, out, err) = said(sandbox.command(&program).arg(spelling));
                assert!(
                    !err.contains("unknown option") && !err.contains("panicked"),
                    "{program} {spelling}: {err}"
                );
                let needs = format!("axe: option \"{spelling}\" needs a value").replacen("axe", &program, 1);
                assert_eq!(err.starts_with(&needs), flag.takes_value, "{program} {spelling}: {out}{err}");
            }
        }
    }
}

/// The flags that a source asks for: `args.has("all")`, `args.text("model")`.
fn asked_for(source: &str) -> Vec<String> {
    let source: String = source.split_whitespace().collect();
    let calls = source.split("args.").skip(1).filter_map(|rest| rest.split_once("(\""));
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_lowercase());
    let flags = calls.filter(|(method, _)| is_name(method)).map(|(_, rest)| rest.split('"').next().unwrap());
    flags.map(|flag| format!("--{flag}")).collect()
}

#[test]
fn every_flag_that_is_asked_for_is_in_the_table_and_the_other_way_round() {
    assert_eq!(asked_for("args.has(\"all\") args\n.parsed(\"x\", f) args.words()"), ["--all", "--x"]);
    let read = |path: &str| fs::read_to_string(path).unwrap();
    // What several programs share.
    let shared: Vec<String> = [
        "notes", "pipeline", "family", "axe_run", "memory_install_cron", "memory_install_hooks",
        "memory_review",
    ]
    .map(|name| read(&format!("lib/program/{name}.rs")))
    .into();
    for program in programs() {
        let name = program.replace('-', "_");
        let mut own = read(&format!("lib/program/{name}.rs"));
        for file in fs::read_dir(format!("lib/program/{name}")).into_iter().flatten() {
            own += &fs::read_to_string(file.unwrap().path()).unwrap();
        }
        let flags = flags(&help(&program));
        let asked = asked_for(&own);
        for flag in &asked {
            assert!(flags.iter().any(|known| known.long == *flag), "{name}: {flag} is not in the help");
        }
        for flag in
            flags.iter().filter(|flag| !["--help", "--version", "--json", "--color"].contains(&&*flag.long))
        {
            let word = format!("\"{}\"", &flag.long[2..]);
            // Also where the flags are walked in their order.
            let is_read = own.matches(&word).count() > 1 || shared.iter().any(|file| file.contains(&word));
            assert!(asked.contains(&flag.long) || is_read, "{name}: nobody asks for {}", flag.long);
        }
    }
}

#[test]
fn an_unknown_flag_is_exit_one_and_names_the_nearest() {
    for program in programs() {
        let sandbox = Sandbox::new();
        for flag in flags(&help(&program)) {
            let wrong = format!("{}q", flag.long);
            let (code, out, err) = said(sandbox.command(&program).arg(&wrong));
            let expected =
                format!("{program}: unknown option \"{wrong}\"; did you mean \"{}\"?\n", flag.long);
            assert_eq!((code, out.as_str(), err), (Some(1), "", expected));
        }
        for wrong in ["--utterly-unlike", "-Z", "-9"] {
            let (code, out, err) = said(sandbox.command(&program).arg(wrong));
            assert_eq!((code, out.as_str()), (Some(1), ""), "{program} {wrong}");
            let start = format!("{program}: unknown option \"{wrong}\"; ");
            assert!(err.starts_with(&start) && err.lines().count() == 1, "{err}");
        }
    }
}

#[test]
fn flags_with_a_json_form_tell_their_errors_in_it() {
    for program in programs() {
        let has_json = flags(&help(&program)).iter().any(|flag| flag.long == "--json");
        let sandbox = Sandbox::new();
        let (code, _, err) = said(sandbox.command(&program).args(["--json", "--utterly-unlike"]));
        assert_eq!(code, Some(1));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&err).is_ok(), has_json, "{program}: {err}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    for program in programs() {
        for flag in ["--help", "--version"] {
            let sandbox = Sandbox::new();
            let output = sandbox.std_command(&program).arg(flag).stdout(full_disk()).output().unwrap();
            let expected = format!("{program}: cannot write to stdout: ");
            assert_eq!(output.code(), Some(1), "{program} {flag}");
            assert!(
                output.err().starts_with(&expected) && output.err().lines().count() == 1,
                "{}",
                output.err()
            );
        }
    }
}

#[test]
fn closed_pipe_is_success() {
    for program in programs() {
        for flag in ["--help", "--version"] {
            let sandbox = Sandbox::new();
            let output = sandbox.std_command(&program).arg(flag).stdout(closed_pipe()).output().unwrap();
            assert_eq!((output.code(), output.err().as_str()), (Some(0), ""), "{program} {flag}");
        }
    }
    // More than a pipe or a buffer holds.
    let sandbox = Sandbox::new();
    sandbox.file("big", "x".repeat(1 << 20));
    sandbox.agent("a", "cat", "files = ['big']");
    let output =
        sandbox.std_command("axe-run").args(["a", "--dry-run"]).stdout(closed_pipe()).output().unwrap();
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
}

#[test]
fn results_that_do_not_fit_the_disk_are_errors() {
    let Store { sandbox } = {
        let store = Store::new();
        store.note("AAAAAA", "One");
        store
    };
    sandbox.agent("a", "cat", "");
    let cases: [(&str, &[&str]); 21] = [
        ("axe-agents", &["list"]),
        ("axe-agents", &["list", "--json"]),
        ("axe-agents", &["show", "a"]),
        ("axe-config", &["path"]),
        ("axe", &["--generate", "man"]),
        ("axe", &["completions", "bash"]),
        ("axe-run", &["a", "--dry-run"]),
        ("memory", &["--generate", "man"]),
        ("memory", &["completions", "zsh"]),
        ("memory", &["list"]),
        ("memory-list", &[]),
        ("memory-list", &["--json"]),
        ("memory-list", &["--query", "one"]),
        ("memory-read", &["AAAAAA"]),
        ("memory-read", &["AAAAAA", "--json"]),
        ("memory-update", &["AAAAAA", "--pin"]),
        ("memory-capture", &["--direct", "--title", "T", "--body", "B"]),
        ("memory-agents-md", &[]),
        ("memory-agents-md", &["--stdout", "--json"]),
        ("memory-agents-md", &["--target", "A.md"]),
        ("memory-remove", &["AAAAAA", "--json"]),
    ];
    for (program, args) in cases {
        let output = sandbox.std_command(program).args(args).stdout(full_disk()).output().unwrap();
        assert_eq!(output.code(), Some(1), "{program} {args:?}");
        assert!(output.err().contains("cannot write to stdout"), "{}", output.err());
        let output = sandbox.std_command(program).args(args).stdout(closed_pipe()).output().unwrap();
        // The note of the first try is there.
        let err = output.err().replace("memory-capture: this note exists already\n", "");
        assert_eq!((output.code(), err.as_str()), (Some(0), ""), "{program} {args:?}");
    }
}
