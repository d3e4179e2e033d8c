//! The entry that a run leaves (M6 3.3, 4.3, 5.3, 5.4): its form, its cuts, its file, and when there is none.

use crate::support::{NOW, Said, Sandbox, closed_pipe, entries, full_disk, mode, present, said, symlink};
use std::fs;

const ON: &str = "[memory]\nenabled = true\n";

fn entry(task: &str, result: &str) -> String {
    format!("## {NOW}\n**Task:** {task}\n**Result:** {result}\n\n")
}

#[test]
fn the_first_run_makes_the_log_and_the_next_reads_it_and_adds_to_it() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", ON);
    assert_eq!(said(sandbox.run("a").write_stdin("one")), (Some(0), "one".into(), String::new()));
    assert_eq!(sandbox.log("a"), entry("one", "one"));
    let second = format!("## Memory\n\n{}\n\ntwo", entry("one", "one"));
    assert_eq!(said(sandbox.run("a").write_stdin("two")), (Some(0), second.clone(), String::new()));
    let stored = second.replace("\n## ", "\n ## ");
    assert_eq!(sandbox.log("a"), entry("one", "one") + &entry("two", &stored));
}

#[test]
fn the_task_is_what_the_user_said_on_one_line() {
    let long = "ü".repeat(5000);
    let cases = [
        (None, "", "Execute the task described in your instructions."),
        (None, " \n\t ", "Execute the task described in your instructions."),
        (None, "a\nb\r\nc\rd", "a b  c d"),
        (None, "naïve 🦀", "naïve 🦀"),
        (None, "## not a header", "## not a header"),
        (None, "\n## still not a header", " ## still not a header"),
        (None, long.as_str(), long.as_str()),
        (Some("the prompt"), "", "the prompt"),
        (Some("the prompt\n## x"), "the context", "the prompt ## x"),
    ];
    for (prompt, stdin, stored) in cases {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "echo ok", ON);
        let mut run = sandbox.run("a");
        run.args(prompt.map(|text| ["-p", text]).iter().flatten());
        assert_eq!(said(run.write_stdin(stdin)), (Some(0), "ok".into(), String::new()));
        assert_eq!(sandbox.log("a"), entry(stored, "ok"), "{prompt:?} {stdin:?}");
    }
}

#[test]
fn max_task_chars_cuts_the_task_at_characters() {
    for (limit, stored) in [(0, "äöü🦀x"), (5, "äöü🦀x"), (4, "äöü🦀..."), (1, "ä...")] {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "echo ok", &format!("{ON}max_task_chars = {limit}"));
        assert_eq!(said(sandbox.run("a").write_stdin("äöü🦀x")).0, Some(0));
        assert_eq!(sandbox.log("a"), entry(stored, "ok"), "{limit}");
    }
}

#[test]
fn results_are_cut_at_a_thousand_characters_never_inside_one() {
    for character in ["x", "ü", "漢", "🦀", "e\u{301}"] {
        let of = |chars: usize| character.chars().cycle().take(chars).collect::<String>();
        for (length, stored) in
            [(999, of(999)), (1000, of(1000)), (1001, of(1000) + "..."), (9000, of(1000) + "...")]
        {
            let sandbox = Sandbox::new();
            sandbox.agent("a", "cat answer", ON);
            sandbox.file("answer", of(length));
            assert_eq!(said(sandbox.run("a").arg("-pt")), (Some(0), of(length), String::new()));
            assert_eq!(sandbox.log("a"), entry("t", &stored), "{character} × {length}");
        }
    }
}

#[test]
fn results_keep_their_lines_and_their_markdown() {
    let cases = [
        ("", "(none)"),
        ("one\ntwo\n\nthree\n", "one\ntwo\n\nthree"),
        ("one\r\ntwo", "one\r\ntwo"),
        ("# Title\n\n* a\n* b\n\n```sh\nls\n```", "# Title\n\n* a\n* b\n\n```sh\nls\n```"),
        // With a space, so that it begins no entry.
        ("Findings:\n## Bug\nin a.rs", "Findings:\n ## Bug\nin a.rs"),
    ];
    for (answer, stored) in cases {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "cat answer", ON);
        sandbox.file("answer", answer);
        assert_eq!(said(sandbox.run("a").arg("-pt")).0, Some(0));
        assert_eq!(sandbox.log("a"), entry("t", stored));
    }
}

#[test]
fn the_time_is_utc_to_the_second() {
    for (now, stored) in [
        ("2026-02-28T16:04:05+01:00", "2026-02-28T15:04:05Z"),
        ("2026-12-31T23:59:59.999Z", "2026-12-31T23:59:59Z"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "echo ok", ON);
        assert_eq!(said(sandbox.run("a").env("AXE_NOW", now).env("TZ", "Asia/Tokyo")).0, Some(0));
        assert!(sandbox.log("a").starts_with(&format!("## {stored}\n")), "{}", sandbox.log("a"));
    }
}

#[test]
fn what_the_log_held_stays_byte_for_byte_and_a_last_line_gets_its_newline() {
    let cases: [(&[u8], &[u8]); 7] = [
        (b"", b""),
        (b"## t\n**Task:** a\n**Result:** b\n\n", b""),
        (b"## t\nby hand", b"\n"),
        (b"## t\r\nby hand\r\n", b""),
        (b"## t\r\nby hand", b"\n"),
        (b"\xef\xbb\xbf# \xff\xfe notes\n", b""),
        (b"\n\n\n", b""),
    ];
    for (held, added) in cases {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "echo ok", ON);
        sandbox.write(&sandbox.log_path("a"), held);
        assert_eq!(said(sandbox.run("a").arg("-pt")).0, Some(0));
        let expected = [held, added, entry("t", "ok").as_bytes()].concat();
        assert_eq!(fs::read(sandbox.log_path("a")).unwrap(), expected, "{held:?}");
    }
}

#[test]
fn a_new_log_is_0644_in_folders_of_0755_and_an_old_one_keeps_its_mode() {
    for umask in ["000", "022"] {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "echo ok", ON);
        let run = || {
            let mut shell = sandbox.std_command("axe-run");
            let program = shell.get_program().to_owned();
            shell = {
                let mut sh = std::process::Command::new("/bin/sh");
                sh.envs(present(shell.get_envs())).current_dir(sandbox.work());
                sh.args(["-c", &format!("umask {umask}; exec \"$0\" --no-stdin a")]).arg(program);
                sh
            };
            assert!(shell.status().unwrap().success());
        };
        run();
        let log = sandbox.log_path("a");
        let memory = log.parent().unwrap();
        assert_eq!(
            (mode(&log), mode(memory), mode(memory.parent().unwrap())),
            (0o644, 0o755, 0o755),
            "{umask}"
        );
        crate::support::set_mode(&log, 0o600);
        run();
        assert_eq!(mode(&log), 0o600);
        assert_eq!(sandbox.log("a").matches("## ").count(), 2);
    }
}

#[test]
fn memory_path_is_used_as_it_stands() {
    // A relative one is below the directory that the program was started in, not the agent's own.
    let sandbox = Sandbox::new();
    let absolute = sandbox.home().join("deep/er/log.md");
    fs::create_dir(sandbox.work().join("elsewhere")).unwrap();
    let cases = [
        (absolute.to_str().unwrap().to_owned(), absolute.clone()),
        ("relative.md".to_owned(), sandbox.work().join("relative.md")),
        ("new/folder/log".to_owned(), sandbox.work().join("new/folder/log")),
        ("~/log.md".to_owned(), sandbox.work().join("~/log.md")),
    ];
    for (path, place) in cases {
        let toml = format!("workdir = 'elsewhere'\n{ON}path = '{path}'");
        sandbox.agent_file("a", &format!("name = 'a'\nmodel = 'cat/x'\n{toml}"));
        sandbox.write(
            &sandbox.config().join("config.toml"),
            "[providers.cat]\nkind = 'command'\ncommand = 'cat'",
        );
        // What people mean by it is not what it does.
        let warning = "Warning: agent config \"a\": memory.path is used as written; ~ is not expanded\n";
        let warning = if path.starts_with('~') { warning } else { "" };
        assert_eq!(said(sandbox.run("a").arg("-pone")), (Some(0), "one".into(), warning.into()), "{path}");
        assert_eq!(fs::read_to_string(&place).unwrap(), entry("one", "one"), "{path}");
        let (_, out, err) = said(sandbox.run("a").args(["-v", "--dry-run"]));
        assert!(
            out.ends_with(&format!("--- Memory ---\n{}\n", entry("one", "one").trim_end())),
            "{path}: {out}"
        );
        assert!(err.contains(&format!("Memory:   1 entries loaded from {path}\n")), "{err}");
        assert!(!sandbox.log_path("a").exists());
    }
}

#[test]
fn xdg_data_home_moves_the_log_unless_it_is_empty() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "echo ok", ON);
    assert_eq!(
        said(sandbox.run("a").arg("-pt").env("XDG_DATA_HOME", sandbox.home().join("data"))).0,
        Some(0)
    );
    let moved = sandbox.home().join("data/axe/memory/a.md");
    assert_eq!(fs::read_to_string(moved).unwrap(), entry("t", "ok"));
    assert!(!sandbox.log_path("a").exists());
    assert_eq!(said(sandbox.run("a").arg("-pt").env("XDG_DATA_HOME", "")).0, Some(0));
    assert_eq!(sandbox.log("a"), entry("t", "ok"));
}

#[test]
fn a_symlinked_log_stays_a_symlink() {
    for exists in [true, false] {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "echo ok", ON);
        let real = sandbox.home().join("notes/real.md");
        sandbox.write(&real, entries(1));
        if !exists {
            fs::remove_file(&real).unwrap();
        }
        symlink(&real, sandbox.log_path("a"));
        assert_eq!(said(sandbox.run("a").arg("-pt")), (Some(0), "ok".into(), String::new()));
        let before = if exists { entries(1) } else { String::new() };
        assert_eq!(fs::read_to_string(&real).unwrap(), before + &entry("t", "ok"));
        assert!(sandbox.log_path("a").is_symlink());
    }
}

#[test]
fn the_file_name_is_the_agent_that_the_log_is_named_after() {
    let sandbox = Sandbox::new();
    sandbox.agent_file("prüfer", &format!("name = 'other'\nmodel = 'p/x'\n{ON}"));
    sandbox.provider("p", "command = 'echo ok'");
    assert_eq!(said(sandbox.run("prüfer").arg("-pt")).0, Some(0));
    assert_eq!(sandbox.log("prüfer"), entry("t", "ok"));
    assert!(!sandbox.log_path("other").exists());
}

#[test]
fn no_entry_is_written_for_a_failure_a_dry_run_or_an_agent_without_memory() {
    let cases: [(&str, &str, &[&str], i32); 7] = [
        ("exit 1", ON, &[], 3),
        ("echo partial; exit 9", ON, &[], 3),
        ("no-such-program-anywhere", ON, &[], 3),
        ("sleep 60", ON, &["--timeout", "1"], 3),
        ("echo ok", ON, &["--dry-run"], 0),
        ("echo ok", "", &[], 0),
        ("echo ok", "[memory]\nenabled = false\nmax_entries = 1", &[], 0),
    ];
    for (command, memory, args, code) in cases {
        for before in [None, Some(entries(2))] {
            let sandbox = Sandbox::new();
            sandbox.agent("a", command, memory);
            if let Some(log) = &before {
                sandbox.write_log("a", log);
            }
            if before.is_some() && command == "sleep 60" {
                continue;
            }
            let (ended, _, err) = said(sandbox.run("a").args(args));
            assert_eq!(ended, Some(code), "{command}: {err}");
            assert_eq!(sandbox.log_path("a").exists(), before.is_some(), "{command} {args:?}");
            assert_eq!(sandbox.log("a"), before.unwrap_or_default(), "{command} {args:?}");
        }
    }
}

#[test]
fn the_entry_is_written_whatever_became_of_stdout() {
    for json in [None, Some("--json")] {
        for (stdout, code, err) in [
            (closed_pipe as fn() -> std::process::Stdio, 0, ""),
            (full_disk, 1, "cannot write to stdout: No space left on device (os error 28)"),
        ] {
            let sandbox = Sandbox::new();
            sandbox.agent("a", "echo ok", ON);
            let mut run = sandbox.std_command("axe-run");
            let output = run.args(["a", "-pt", "--no-stdin"]).args(json).stdout(stdout()).output().unwrap();
            assert_eq!(output.code(), Some(code), "{}", output.err());
            match err {
                "" => assert_eq!(output.err(), ""),
                err => assert!(output.err().contains(err), "{}", output.err()),
            }
            assert_eq!(sandbox.log("a"), entry("t", "ok"));
        }
    }
}

#[test]
fn an_answer_larger_than_any_buffer_behaves_the_same() {
    for (stdout, code) in [(closed_pipe as fn() -> std::process::Stdio, 0), (full_disk, 1)] {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "yes | head -c 3000000", ON);
        let mut run = sandbox.std_command("axe-run");
        let output = run.args(["a", "-pt", "--no-stdin"]).stdout(stdout()).output().unwrap();
        assert_eq!(output.code(), Some(code), "{}", output.err());
        assert_eq!(output.err().is_empty(), code == 0, "{}", output.err());
        assert_eq!(sandbox.log("a"), entry("t", &format!("{}...", "y\n".repeat(500))));
    }
}

#[test]
fn a_reader_that_leaves_after_one_byte_is_success() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "yes | head -c 3000000", ON);
    let mut run = sandbox.std_command("axe-run");
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut child = run.args(["a", "-pt", "--no-stdin"]).stdout(writer).spawn().unwrap();
    // The command that was spawned from keeps its end of the pipe.
    drop(run);
    std::io::Read::read_exact(&mut reader, &mut [0]).unwrap();
    drop(reader);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(sandbox.log("a"), entry("t", &format!("{}...", "y\n".repeat(500))));
}

#[test]
fn the_envelope_does_not_hold_the_log_and_the_log_not_the_envelope() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "echo ok", ON);
    sandbox.write_log("a", &entries(1));
    let (code, out, _) = said(sandbox.run("a").args(["-pt", "--json"]));
    assert_eq!(code, Some(0));
    assert!(!out.contains("result 0"), "{out}");
    assert_eq!(sandbox.log("a"), entries(1) + &entry("t", "ok"));
}

#[test]
fn fifty_runs_at_once_leave_fifty_whole_entries() {
    let sandbox = Sandbox::new();
    // The prompt's last line is the task. The answer is long, so that a torn write would show.
    sandbox.agent("a", "tail -n 1; yes | head -n 600", &format!("{ON}last_n = 1"));
    let runs: Vec<_> = (10..60)
        .map(|i| {
            let mut run = sandbox.std_command("axe-run");
            run.args(["a", "--no-stdin", "-p", &format!("task {i}")]);
            run.stdout(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut run in runs {
        assert_eq!(run.wait().unwrap().code(), Some(0));
    }
    let log = sandbox.log("a");
    let mut found: Vec<&str> = log.split_inclusive("...\n\n").collect();
    found.sort_unstable();
    let answer = |i| format!("task {i}{}", "y\n".repeat(600)).chars().take(1000).collect::<String>() + "...";
    let expected: Vec<String> = (10..60).map(|i| entry(&format!("task {i}"), &answer(i))).collect();
    assert_eq!(found, expected);
}
