//! The log on its way into the prompt (M6 3.5, 3.6, 4.1, 5.1, 5.2): which entries, how many, what is said of them.

use crate::support::{Sandbox, entries, said};

const DEFAULT: &str = "Execute the task described in your instructions.";

/// What a run finds in its prompt as its log; `None` if there is no Memory section.
///
/// The model is `cat`, so that the answer is the prompt.
fn loaded(log: Option<&[u8]>, memory: &str) -> Option<String> {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", &format!("[memory]\nenabled = true\n{memory}"));
    if let Some(log) = log {
        sandbox.write(&sandbox.log_path("a"), log);
    }
    let (code, out, err) = said(&mut sandbox.run("a"));
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    if out == DEFAULT {
        return None;
    }
    let text =
        out.strip_prefix("## Memory\n\n").and_then(|out| out.strip_suffix(DEFAULT)).unwrap_or_else(|| {
            panic!("neither a Memory section nor none: {out:?}");
        });
    Some(text.strip_suffix("\n\n").unwrap().to_owned())
}

/// What the warning of `max_entries = 1` counts; `None` if it does not come.
fn counted(log: Option<&str>) -> Option<u64> {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "echo x", "[memory]\nenabled = true\nmax_entries = 1\nlast_n = 1");
    if let Some(log) = log {
        sandbox.write_log("a", log);
    }
    let (code, _, err) = said(&mut sandbox.run("a"));
    assert_eq!(code, Some(0), "{err}");
    if err.is_empty() {
        return None;
    }
    let count = err
        .strip_prefix("Warning: agent \"a\" memory has ")
        .and_then(|rest| rest.strip_suffix(" entries (max_entries: 1). Run 'axe gc a' to trim.\n"));
    Some(count.unwrap_or_else(|| panic!("{err:?}")).parse().unwrap())
}

#[test]
fn a_missing_or_empty_log_adds_nothing_to_the_prompt() {
    for last_n in ["last_n = 0", "last_n = 3"] {
        assert_eq!(loaded(None, last_n), None);
        assert_eq!(loaded(Some(b""), last_n), None);
    }
}

#[test]
fn the_newest_entries_are_loaded_byte_for_byte() {
    let last = |of: usize, n: usize| entries(of)[entries(of - n).len()..].to_owned();
    let before = "# My notes\n\nnot an entry\n\n";
    let crlf = entries(3).replace('\n', "\r\n");
    let odd = "## not a time\nx\n## \n\n## 2026\n\n\n   trailing   \n\n\n";
    let inside = "## t\n**Task:** a\n**Result:** Findings:\n## Bug\nin a.rs\n\n";
    let cases = [
        (entries(1), 10, entries(1)),
        (entries(3), 0, entries(3)),
        (entries(3), 3, entries(3)),
        (entries(3), 10, entries(3)),
        (entries(5), 1, last(5, 1)),
        (entries(5), 2, last(5, 2)),
        (entries(50), 5, last(50, 5)),
        (entries(50), 0, entries(50)),
        (format!("{before}{}", entries(3)), 0, format!("{before}{}", entries(3))),
        (format!("{before}{}", entries(3)), 1, last(3, 1)),
        (format!("{before}{}", entries(3)), 9, entries(3)),
        (crlf.clone(), 2, crlf[entries(1).replace('\n', "\r\n").len()..].to_owned()),
        (crlf.clone(), 0, crlf),
        (odd.to_owned(), 0, odd.to_owned()),
        (odd.to_owned(), 1, "## 2026\n\n\n   trailing   \n\n\n".to_owned()),
        (odd.to_owned(), 2, "## \n\n## 2026\n\n\n   trailing   \n\n\n".to_owned()),
        (inside.to_owned(), 1, "## Bug\nin a.rs\n\n".to_owned()),
        ("## no newline at the end".to_owned(), 1, "## no newline at the end".to_owned()),
        (
            "## ä\n**Task:** 🦀\n**Result:** ü\n\n".to_owned(),
            1,
            "## ä\n**Task:** 🦀\n**Result:** ü\n\n".to_owned(),
        ),
        (
            "only text\n### deeper\n##tight\n ## indented\n".to_owned(),
            0,
            "only text\n### deeper\n##tight\n ## indented\n".to_owned(),
        ),
    ];
    for (log, last_n, expected) in cases {
        let found = loaded(Some(log.as_bytes()), &format!("last_n = {last_n}"));
        assert_eq!(found.as_deref(), Some(expected.as_str()), "last_n = {last_n} of {log:?}");
    }
}

#[test]
fn text_without_a_header_is_no_entry() {
    assert_eq!(loaded(Some(b"only text\n### deeper\n##tight\n ## indented\n"), "last_n = 3"), None);
}

#[test]
fn the_largest_last_n_loads_all() {
    assert_eq!(loaded(Some(entries(4).as_bytes()), &format!("last_n = {}", i64::MAX)), Some(entries(4)));
}

#[test]
fn invalid_bytes_are_replaced_in_the_prompt_only() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "[memory]\nenabled = true");
    let log = b"## t\n**Task:** \xff\xfe\n**Result:** caf\xe9\n\n";
    sandbox.write(&sandbox.log_path("a"), log);
    let (code, out, _) = said(&mut sandbox.run("a"));
    assert_eq!(code, Some(0));
    assert!(
        out.starts_with("## Memory\n\n## t\n**Task:** \u{fffd}\u{fffd}\n**Result:** caf\u{fffd}\n\n"),
        "{out}"
    );
    assert!(std::fs::read(sandbox.log_path("a")).unwrap().starts_with(log));
}

#[test]
fn the_memory_section_comes_last_in_the_system_prompt() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "text");
    sandbox.agent("a", "cat", "system_prompt = 'Be kind.'\nfiles = ['a.txt']\n[memory]\nenabled = true");
    sandbox.write_log("a", &entries(1));
    let expected = format!(
        "Be kind.\n\n---\n\n## Context Files\n\n### a.txt\n```txt\ntext\n```\n\n---\n\n## Memory\n\n{}\n\nhi",
        entries(1)
    );
    assert_eq!(said(sandbox.run("a").write_stdin("hi")), (Some(0), expected, String::new()));
}

#[test]
fn entries_are_lines_that_begin_with_two_hashes_and_a_space() {
    let cases = [
        (String::new(), None),
        ("text\n### deeper\n##tight\n ## indented\n".to_owned(), None),
        (entries(1), Some(1)),
        (entries(5), Some(5)),
        (format!("before\n{}", entries(2)), Some(2)),
        (entries(3).replace('\n', "\r\n"), Some(3)),
        ("## a\n## b\n## c".to_owned(), Some(3)),
        ("## a\n**Result:** x\n## inside\ny\n\n".to_owned(), Some(2)),
        (entries(5000), Some(5000)),
    ];
    for (log, count) in cases {
        assert_eq!(counted(Some(&log)), count, "{}", &log[..log.len().min(100)]);
    }
    assert_eq!(counted(None), None);
}

#[test]
fn max_entries_warns_when_met_and_above_but_not_below_or_at_zero() {
    for (max, have, warns) in [(3, 2, false), (3, 3, true), (3, 4, true), (10, 3, false), (0, 100, false)] {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "echo x", &format!("[memory]\nenabled = true\nmax_entries = {max}"));
        sandbox.write_log("a", &entries(have));
        let warning = match warns {
            true => format!(
                "Warning: agent \"a\" memory has {have} entries (max_entries: {max}). Run 'axe gc a' to trim.\n"
            ),
            false => String::new(),
        };
        assert_eq!(said(&mut sandbox.run("a")), (Some(0), "x".into(), warning.clone()), "{have} of {max}");
        let (code, _, err) = said(sandbox.run("a").arg("--dry-run"));
        assert_eq!(code, Some(0));
        // The run above has added one.
        assert_eq!(err.is_empty(), max == 0 || have + 1 < max, "dry run: {have} of {max}: {err}");
    }
}

#[test]
fn verbose_tells_how_many_entries_were_loaded_and_from_where() {
    for (log, last_n, count) in
        [(Some(3), 0, 3), (Some(5), 2, 2), (Some(2), 9, 2), (Some(0), 0, 0), (None, 0, 0)]
    {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "echo x", &format!("[memory]\nenabled = true\nlast_n = {last_n}"));
        if let Some(n) = log {
            sandbox.write_log("a", &entries(n));
        }
        let (_, _, err) = said(sandbox.run("a").arg("--verbose"));
        let line = match count {
            0 => "Memory:   0 entries (no memory file)".to_owned(),
            n => format!("Memory:   {n} entries loaded from {}", sandbox.log_path("a").display()),
        };
        assert!(err.lines().any(|said| said == line), "{line:?} in {err}");
    }
}

#[test]
fn without_memory_verbose_says_nothing_of_it() {
    for memory in ["", "[memory]", "[memory]\nenabled = false\nlast_n = 2\nmax_entries = 1"] {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "cat", memory);
        sandbox.write_log("a", &entries(3));
        let (code, out, err) = said(sandbox.run("a").arg("-v"));
        assert_eq!((code, out.as_str()), (Some(0), DEFAULT));
        assert!(!err.contains("Memory") && !err.contains("Warning"), "{err}");
        assert_eq!(sandbox.log("a"), entries(3));
    }
}

#[test]
fn a_dry_run_shows_the_log_and_adds_nothing() {
    for (log, last_n, expected) in [
        (Some(entries(3)), 0, entries(3)),
        (Some(entries(3)), 1, entries(3)[entries(2).len()..].to_owned()),
        (Some(String::new()), 0, "(none)".to_owned()),
        (None, 0, "(none)".to_owned()),
    ] {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "echo x", &format!("[memory]\nenabled = true\nlast_n = {last_n}"));
        if let Some(log) = &log {
            sandbox.write_log("a", log);
        }
        let (code, out, err) = said(sandbox.run("a").arg("--dry-run"));
        assert_eq!((code, err.as_str()), (Some(0), ""));
        let shown = out.split_once("--- Stdin ---\n(none)\n\n--- Memory ---\n").map(|(_, rest)| rest);
        assert_eq!(shown, Some(format!("{}\n", expected.trim_end()).as_str()), "{out}");
        assert_eq!(sandbox.log("a"), log.clone().unwrap_or_default());
        assert_eq!(sandbox.log_path("a").exists(), log.is_some());
        // Nor is a folder made for a log that is not written.
        assert_eq!(sandbox.home().join(".local").exists(), log.is_some());
    }
}
