//! What `axe-run --dry-run` and `--verbose` show, to the letter.

use crate::support::{Sandbox, entries, said};

/// An agent with everything in it, but sub-agents: a command cannot call them.
fn full(sandbox: &Sandbox) {
    sandbox.agent(
        "a",
        "echo called >> called; echo answer",
        "system_prompt = 'You review.'\nskill = 'skills/kind/SKILL.md'\nfiles = ['src/*.rs', 'README.md']\n\
         [memory]\nenabled = true\nlast_n = 1\n[params]\ntemperature = 0.3\nmax_tokens = 4096",
    );
    sandbox.write(&sandbox.config().join("skills/kind/SKILL.md"), "---\nname: kind\n---\nBe kind.\n");
    sandbox.file("README.md", "Read me.\n");
    sandbox.file("src/a.rs", "fn a() {}");
    sandbox.write_log("a", &entries(2));
}

/// `--- System Prompt ---` of [`full`].
const ASSEMBLED: &str = "You review.

---

## Skill

Be kind.


---

## Context Files

### README.md
```md
Read me.

```

### src/a.rs
```rs
fn a() {}
```

---

## Memory

## 2026-01-01T00:00:01Z
**Task:** task 1
**Result:** result 1
";

#[test]
fn everything_is_shown_in_its_place() {
    let sandbox = Sandbox::new();
    full(&sandbox);
    let expected = format!(
        "=== Dry Run ===

Model:    a/model
Workdir:  {}
Timeout:  7s
Params:   temperature=0.3, max_tokens=4096

--- System Prompt ---
{ASSEMBLED}
--- Skill ---
Be kind.

--- Files (2) ---
README.md
src/a.rs

--- Stdin ---
the diff
of today

--- Memory ---
## 2026-01-01T00:00:01Z
**Task:** task 1
**Result:** result 1
",
        sandbox.work().display()
    );
    let mut run = sandbox.run("a");
    run.args(["--dry-run", "--timeout", "7"]).write_stdin("the diff\nof today\n");
    assert_eq!(said(&mut run), (Some(0), expected, String::new()));
    assert!(!sandbox.work().join("called").exists());
    assert_eq!(sandbox.log("a"), entries(2));
}

#[test]
fn empty_parts_are_none_and_unset_numbers_zero() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "false", "");
    let expected = |memory: &str| {
        format!(
            "=== Dry Run ===

Model:    a/model
Workdir:  {}
Timeout:  120s
Params:   temperature=0, max_tokens=0

--- System Prompt ---


--- Skill ---
(none)

--- Files (0) ---
(none)

--- Stdin ---
(none)
{memory}",
            sandbox.work().display()
        )
    };
    assert_eq!(said(sandbox.run("a").arg("--dry-run")), (Some(0), expected(""), String::new()));
    sandbox.agent_file("a", "name = 'a'\nmodel = 'a/model'\n[memory]\nenabled = true");
    let with = expected("\n--- Memory ---\n(none)\n");
    assert_eq!(said(sandbox.run("a").arg("--dry-run")), (Some(0), with, String::new()));
}

#[test]
fn sub_agents_come_last() {
    let sandbox = Sandbox::new();
    for callee in ["helper", "linter"] {
        sandbox.agent_file(callee, &format!("name = '{callee}'\nmodel = 'a/b'"));
    }
    for (config, lines) in [
        ("", "Max Depth: 3\nParallel:  yes\nTimeout:   0s\n"),
        (
            "[sub_agents_config]\nmax_depth = 5\nparallel = false\ntimeout = 30",
            "Max Depth: 5\nParallel:  no\nTimeout:   30s\n",
        ),
    ] {
        let agent = "name = 'a'\nmodel = 'anthropic/claude-x'\nsub_agents = ['helper', 'linter']\n\
                     memory = { enabled = true }\n";
        sandbox.agent_file("a", &format!("{agent}{config}"));
        // No key and no network: nothing is called.
        let (code, out, err) = said(sandbox.run("a").arg("--dry-run"));
        assert_eq!((code, err.as_str()), (Some(0), ""));
        let end = format!("\n\n--- Memory ---\n(none)\n\n--- Sub-Agents ---\nhelper, linter\n{lines}");
        assert!(out.ends_with(&end), "{out}");
        assert!(out.starts_with("=== Dry Run ===\n\nModel:    anthropic/claude-x\nWorkdir:  "), "{out}");
    }
}

#[test]
fn a_prompt_stands_before_the_context_that_follows_it() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "false", "");
    let (_, out, _) = said(sandbox.run("a").args(["--dry-run", "-p", "Anything odd?"]).write_stdin("a log"));
    let end = "--- Files (0) ---\n(none)\n\n--- Prompt ---\nAnything odd?\n\n--- Stdin ---\na log\n";
    assert!(out.ends_with(end), "{out}");
}

#[test]
fn overrides_are_shown() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "false", "files = ['*.txt']\nskill = 'skills/gone/SKILL.md'");
    sandbox.agent("b", "false", "");
    sandbox.file("other/one.txt", "1");
    sandbox.file("mine.md", "Mine.");
    let mut run = sandbox.run("a");
    run.args(["--dry-run", "--model", "b/big", "--workdir", "other", "--skill", "mine.md", "--no-stdin"]);
    let (code, out, err) = said(run.write_stdin("not read"));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let other = sandbox.work().join("other");
    for part in [
        "Model:    b/big\n".to_owned(),
        format!("Workdir:  {}\n", other.display()),
        "--- Skill ---\nMine.\n".to_owned(),
        "--- Files (1) ---\none.txt\n".to_owned(),
        "--- Stdin ---\n(none)\n".to_owned(),
    ] {
        assert!(out.contains(&part), "{part:?} in {out}");
    }
}

#[test]
fn verbose_tells_before_and_after_the_call_on_stderr() {
    let sandbox = Sandbox::new();
    full(&sandbox);
    let (code, out, err) = said(sandbox.run("a").args(["-v", "--timeout=9"]).write_stdin("x"));
    assert_eq!((code, out.as_str()), (Some(0), "answer"));
    let duration = err.lines().find_map(|line| line.strip_prefix("Duration: ")?.strip_suffix("ms")).unwrap();
    duration.parse::<u64>().unwrap();
    let expected = format!(
        "Model:    a/model
Workdir:  {}
Skill:    skills/kind/SKILL.md
Files:    2 file(s)
Stdin:    yes
Timeout:  9s
Params:   temperature=0.3, max_tokens=4096
Memory:   1 entries loaded from {}
Duration: {duration}ms
Tokens:   0 input, 0 output
Stop:     stop
",
        sandbox.work().display(),
        sandbox.log_path("a").display()
    );
    assert_eq!(err, expected);
}

#[test]
fn verbose_names_what_is_not_there() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "echo x", "");
    let (_, _, err) = said(sandbox.run("a").arg("--verbose"));
    for line in ["Skill:    (none)", "Files:    0 file(s)", "Stdin:    no", "Timeout:  120s"] {
        assert!(err.lines().any(|said| said == line), "{line} in {err}");
    }
}
