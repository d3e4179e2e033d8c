//! Context files: which of them a pattern finds, what is left out, and how they stand in the prompt.

use crate::support::{Sandbox, is_root, said, set_mode};
use std::fs;
use std::path::Path;

/// An agent with these patterns.
pub(crate) fn agent(sandbox: &Sandbox, patterns: &[&str]) {
    let list: Vec<String> = patterns.iter().map(|pattern| format!("'''{pattern}'''")).collect();
    fs::remove_dir_all(sandbox.config()).unwrap_or_default();
    sandbox.agent("a", "cat", &format!("files = [{}]", list.join(", ")));
}

/// The paths that `patterns` find, as a dry run shows them, and what it warns of.
pub(crate) fn find(sandbox: &Sandbox, patterns: &[&str]) -> (Vec<String>, String) {
    agent(sandbox, patterns);
    let (code, out, err) = said(sandbox.run("a").arg("--dry-run"));
    assert_eq!(code, Some(0), "{patterns:?}: {err}");
    let part = out.split_once("\n--- Files (").unwrap().1.split_once("\n\n--- Stdin ---").unwrap().0;
    let (count, list) = part.split_once(") ---\n").unwrap();
    let names: Vec<String> = list.lines().filter(|line| *line != "(none)").map(str::to_owned).collect();
    assert_eq!(count, names.len().to_string(), "{out}");
    (names, err)
}

/// The Context Files section for `patterns`.
fn section(sandbox: &Sandbox, patterns: &[&str]) -> String {
    agent(sandbox, patterns);
    let (code, out, _) = said(sandbox.run("a").arg("-phi"));
    assert_eq!(code, Some(0), "{out}");
    out.strip_prefix("## Context Files\n\n").unwrap().strip_suffix("\n\nhi").unwrap().to_owned()
}

fn tree() -> Sandbox {
    let sandbox = Sandbox::new();
    for path in
        ["README.md", "a.rs", "src/b.rs", "src/c.txt", "src/deep/d.rs", "src/deep/er/e.rs", ".hidden/f.rs"]
    {
        sandbox.file(path, path);
    }
    sandbox
}

#[test]
fn patterns_find_what_they_name_sorted_and_once() {
    let sandbox = tree();
    let inside = sandbox.work().join("src/b.rs");
    let inside_glob = sandbox.work().join("src/*.rs");
    let all_rust = [".hidden/f.rs", "a.rs", "src/b.rs", "src/deep/d.rs", "src/deep/er/e.rs"];
    let cases: [(&[&str], &[&str]); 25] = [
        (&[], &[]),
        (&["README.md"], &["README.md"]),
        (&["./README.md"], &["README.md"]),
        (&["././src/./b.rs"], &["src/b.rs"]),
        (&["src/../README.md"], &["README.md"]),
        (&[inside.to_str().unwrap()], &["src/b.rs"]),
        (&[inside_glob.to_str().unwrap()], &["src/b.rs"]),
        (&["*.rs"], &["a.rs"]),
        (&["./*.rs"], &["a.rs"]),
        (&["**/*.rs"], &all_rust),
        (&["./**/*.rs"], &all_rust),
        (&["src/**/*.rs"], &["src/b.rs", "src/deep/d.rs", "src/deep/er/e.rs"]),
        (&["src/**/er/**/e.rs"], &["src/deep/er/e.rs"]),
        (&["src/deep/**"], &["src/deep/d.rs", "src/deep/er/e.rs"]),
        (&["**/deep/*"], &["src/deep/d.rs"]),
        (&["src/*"], &["src/b.rs", "src/c.txt"]),
        (&["src/*/d.rs"], &["src/deep/d.rs"]),
        (&["*/*/*.rs"], &["src/deep/d.rs"]),
        (&["src/?.rs"], &["src/b.rs"]),
        (&["src/[a-b].rs"], &["src/b.rs"]),
        (&["src/[!b].*"], &["src/c.txt"]),
        (&["src/*.{rs,txt}"], &["src/b.rs", "src/c.txt"]),
        (&["src/{deep/d,b}.rs"], &["src/b.rs", "src/deep/d.rs"]),
        (&["{README.md,a.rs}"], &["README.md", "a.rs"]),
        (&["a.rs", "*.rs", "README.md", "./a.rs", "src/../a.rs"], &["README.md", "a.rs"]),
    ];
    for (patterns, expected) in cases {
        assert_eq!(
            find(&sandbox, patterns),
            (expected.iter().map(|s| (*s).to_owned()).collect(), String::new()),
            "{patterns:?}"
        );
    }
}

#[test]
fn what_a_pattern_does_not_find_is_a_warning() {
    let sandbox = tree();
    for pattern in ["*.py", "src/**/*.py", "gone/*.rs", "gone/**"] {
        let warning = format!("Warning: files: no file matches \"{pattern}\"\n");
        assert_eq!(find(&sandbox, &[pattern]), (vec![], warning));
    }
    let (names, err) = find(&sandbox, &["gone.md", "a.rs"]);
    assert_eq!(names, ["a.rs"]);
    assert!(
        err.starts_with("Warning: files: \"gone.md\" is left out: ") && err.lines().count() == 1,
        "{err}"
    );
    let (names, err) = find(&sandbox, &["src"]);
    assert!(names.is_empty());
    assert!(err.starts_with("Warning: files: \"src\" is left out: it is a directory"), "{err}");
    let (names, err) = find(&sandbox, &["src/*/"]);
    assert!(names.is_empty(), "{names:?} {err}");
}

#[test]
fn a_malformed_pattern_is_exit_two() {
    let sandbox = tree();
    for pattern in ["src/[a", "{a,b", "**/[z-a].rs", ""] {
        agent(&sandbox, &["a.rs", pattern]);
        let (code, out, err) = said(&mut sandbox.run("a"));
        assert_eq!((code, out.as_str()), (Some(2), ""), "{pattern}");
        let start = format!("axe-run: invalid glob pattern \"{pattern}\": ");
        assert!(err.starts_with(&start) && err.lines().count() == 1, "{err}");
    }
}

#[test]
fn patterns_are_relative_to_the_working_directory_of_the_agent() {
    let sandbox = tree();
    agent(&sandbox, &["*.rs"]);
    for (args, expected) in
        [(&[][..], "a.rs"), (&["--workdir", "src"], "b.rs"), (&["--workdir=src/deep"], "d.rs")]
    {
        let (_, out, _) = said(sandbox.run("a").arg("--dry-run").args(args));
        assert!(out.contains(&format!("--- Files (1) ---\n{expected}\n")), "{out}");
    }
    // Out by `..`, even though it is a file that could be read.
    agent(&sandbox, &["../a.rs", "../*.rs", "deep/d.rs"]);
    let (_, out, err) = said(sandbox.run("a").args(["--dry-run", "--workdir", "src"]));
    assert!(out.contains("--- Files (1) ---\ndeep/d.rs\n"), "{out}");
    assert_eq!(err.matches("is outside the working directory").count(), 2, "{err}");
}

#[test]
fn binary_files_are_skipped_and_a_late_nul_is_text() {
    let sandbox = Sandbox::new();
    let text = "x".repeat(600);
    let with_nul = |at: usize| format!("{}\0{}", &text[..at], &text[at..]);
    for (name, content) in
        [("at-0", with_nul(0)), ("at-511", with_nul(511)), ("at-512", with_nul(512)), ("only", "\0".into())]
    {
        sandbox.file(name, content);
    }
    assert_eq!(find(&sandbox, &["*"]), (vec!["at-512".into()], String::new()));
    let (names, err) = find(&sandbox, &["at-0", "at-512"]);
    assert_eq!(names, ["at-512"]);
    assert!(
        err.starts_with("Warning: files: \"at-0\" is left out: it is a binary file")
            && err.lines().count() == 1,
        "{err}"
    );
}

#[test]
fn what_is_too_large_is_left_out_by_name() {
    let sandbox = Sandbox::new();
    sandbox.file("0-exact", "x".repeat(1 << 20));
    sandbox.file("1-over", "x".repeat((1 << 20) + 1));
    let (names, err) = find(&sandbox, &["*"]);
    assert_eq!(names, ["0-exact"]);
    assert_eq!(err, "Warning: files: \"1-over\" is left out: it is larger than 1 MiB\n");
    for n in 2..11 {
        sandbox.file(&format!("{n:02}-mega"), "x".repeat(1 << 20));
    }
    sandbox.file("z-small", "z");
    sandbox.file("z-empty", "");
    let (names, err) = find(&sandbox, &["*"]);
    let kept: Vec<String> = ["0-exact".to_owned()]
        .into_iter()
        .chain((2..9).map(|n| format!("{n:02}-mega")))
        .chain(["z-empty".into()])
        .collect();
    assert_eq!(names, kept);
    for name in ["09-mega", "10-mega", "z-small"] {
        let warning =
            format!("Warning: files: \"{name}\" is left out: all files together are larger than 8 MiB\n");
        assert!(err.contains(&warning), "{name}: {err}");
    }
    assert_eq!(err.lines().count(), 4, "{err}");
}

#[test]
fn a_file_that_is_named_twice_counts_once() {
    let sandbox = Sandbox::new();
    sandbox.file("src/x", "");
    let mut patterns = Vec::new();
    for n in 0..5 {
        sandbox.file(&format!("{n}"), "x".repeat(1 << 20));
        patterns.extend([format!("{n}"), format!("src/../{n}")]);
    }
    let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
    assert_eq!(
        find(&sandbox, &patterns),
        (["0", "1", "2", "3", "4"].map(str::to_owned).to_vec(), String::new())
    );
}

/// A repository with an ignored folder, an ignored file and one that is excluded here only.
fn repository() -> Sandbox {
    let sandbox = Sandbox::new();
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.env("HOME", sandbox.home()).env_remove("GIT_DIR").current_dir(sandbox.work());
        assert!(git.args(args).status().unwrap().success());
    };
    git(&["init", "--quiet", "."]);
    sandbox.file(".gitignore", "target/\n*.log\n");
    sandbox.file("src/.gitignore", "made.txt\n");
    sandbox.write(&sandbox.home().join(".config/git/ignore"), "*.bak\n");
    sandbox.file(".git/info/exclude", "private.txt\n");
    for path in [
        "a.txt", "noise.log", "private.txt", "src/b.txt", "src/made.txt", "src/old.bak", "src/noise.log",
        "target/c.txt", "target/deep/d.txt", ".git/e.txt",
    ] {
        sandbox.file(path, path);
    }
    sandbox
}

#[test]
fn two_stars_do_not_walk_what_git_ignores_nor_its_own_folder() {
    let sandbox = repository();
    let found = |names: &[&str]| (names.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>(), String::new());
    assert_eq!(find(&sandbox, &["**/*.txt"]), found(&["a.txt", "src/b.txt"]));
    assert_eq!(find(&sandbox, &["**"]), found(&[".gitignore", "a.txt", "src/.gitignore", "src/b.txt"]));
    assert_eq!(find(&sandbox, &["src/**"]), found(&["src/.gitignore", "src/b.txt"]));
    // A folder deeper than the repository's own obeys it too.
    agent(&sandbox, &["**"]);
    let (_, out, _) = said(sandbox.run("a").args(["--dry-run", "--workdir", "src"]));
    assert!(out.contains("--- Files (2) ---\n.gitignore\nb.txt\n"), "{out}");
}

#[test]
fn what_git_ignores_is_found_when_it_is_named() {
    let sandbox = repository();
    let cases: [(&str, &[&str]); 10] = [
        ("noise.log", &["noise.log"]),
        ("target/deep/d.txt", &["target/deep/d.txt"]),
        ("*.log", &["noise.log"]),
        ("src/*.bak", &["src/old.bak"]),
        ("private.*", &["private.txt"]),
        ("target/*.txt", &["target/c.txt"]),
        ("target/**/*.txt", &["target/c.txt", "target/deep/d.txt"]),
        ("*/*.txt", &["src/b.txt", "src/made.txt", "target/c.txt"]),
        (".git/e.txt", &[".git/e.txt"]),
        (".git/*.txt", &[".git/e.txt"]),
    ];
    for (pattern, names) in cases {
        let names: Vec<String> = names.iter().map(|s| (*s).to_owned()).collect();
        assert_eq!(find(&sandbox, &[pattern]), (names, String::new()), "{pattern}");
    }
}

#[test]
fn a_gitignore_outside_a_repository_ignores_nothing() {
    let sandbox = tree();
    sandbox.file(".gitignore", "*.rs\n");
    assert_eq!(find(&sandbox, &["**/*.rs"]).0.len(), 5);
}

#[test]
fn each_file_stands_under_its_path_in_a_fence_of_its_own() {
    let sandbox = Sandbox::new();
    let cases: [(&str, &[u8], &str); 11] = [
        ("plain.rs", b"fn a() {}", "### plain.rs\n```rs\nfn a() {}\n```"),
        ("ends.rs", b"fn a() {}\n", "### ends.rs\n```rs\nfn a() {}\n\n```"),
        ("empty.txt", b"", "### empty.txt\n```txt\n\n```"),
        ("Makefile", b"all:", "### Makefile\n```\nall:\n```"),
        ("dir.d/Makefile", b"all:", "### dir.d/Makefile\n```\nall:\n```"),
        ("two words.md", b"x", "### two words.md\n```md\nx\n```"),
        ("\u{fc}n\u{ef} \u{5ba1}\u{1f980}.md", b"x", "### \u{fc}n\u{ef} \u{5ba1}\u{1f980}.md\n```md\nx\n```"),
        ("fence.md", b"a\n```\nb\n```", "### fence.md\n````md\na\n```\nb\n```\n````"),
        ("long.md", b"``````` x", "### long.md\n````````md\n``````` x\n````````"),
        ("latin.txt", b"caf\xe9", "### latin.txt\n```txt\ncaf\u{fffd}\n```"),
        ("crlf.txt", b"a\r\nb\r\n", "### crlf.txt\n```txt\na\r\nb\r\n\n```"),
    ];
    for (name, content, expected) in cases {
        sandbox.file(name, content);
        assert_eq!(section(&sandbox, &[name]), expected);
    }
    let both = section(&sandbox, &["plain.rs", "Makefile"]);
    assert_eq!(both, "### Makefile\n```\nall:\n```\n\n### plain.rs\n```rs\nfn a() {}\n```");
}

#[test]
fn a_name_cannot_fake_a_line_or_break_its_fence() {
    let sandbox = Sandbox::new();
    sandbox.file("a\n## Memory\u{1b}[31m.md", "x");
    let shown = "a\u{fffd}## Memory\u{fffd}[31m.md";
    assert_eq!(find(&sandbox, &["*"]), (vec![shown.to_owned()], String::new()));
    assert_eq!(section(&sandbox, &["*"]), format!("### {shown}\n```md\nx\n```"));
    fs::remove_file(sandbox.work().join("a\n## Memory\u{1b}[31m.md")).unwrap();
    // A fence whose first line held a backtick would be none.
    sandbox.file("odd.`", "x");
    let text = section(&sandbox, &["*"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "### odd.`");
    assert_eq!(lines[1].matches('`').count(), lines.last().unwrap().len(), "{text}");
}

#[test]
fn what_is_no_regular_file_is_left_out() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "a");
    let pipe = sandbox.work().join("pipe.txt");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(sandbox.work().join("socket.txt")).unwrap();
    assert_eq!(find(&sandbox, &["*.txt"]), (vec!["a.txt".into()], String::new()));
    for name in ["pipe.txt", "socket.txt"] {
        let warning = format!("Warning: files: \"{name}\" is left out: it is not a regular file\n");
        assert_eq!(find(&sandbox, &[name]), (vec![], warning));
    }
}

#[test]
fn an_unreadable_file_is_left_out_by_name() {
    if is_root("an_unreadable_file_is_left_out_by_name") {
        return;
    }
    let sandbox = tree();
    set_mode(&sandbox.work().join("a.rs"), 0);
    set_mode(&sandbox.work().join("src/deep"), 0);
    let (names, err) = find(&sandbox, &["**/*.rs"]);
    set_mode(&sandbox.work().join("src/deep"), 0o755);
    assert_eq!(names, [".hidden/f.rs", "src/b.rs"]);
    assert!(err.contains("\"a.rs\" is left out: ") && err.contains("src/deep"), "{err}");
}

#[test]
fn a_workdir_behind_a_symlink_is_the_folder_itself() {
    let sandbox = tree();
    crate::support::symlink(sandbox.work(), sandbox.home().join("link"));
    let absolute = sandbox.home().join("link/a.rs");
    agent(&sandbox, &["*.rs", "src/b.rs", absolute.to_str().unwrap()]);
    let (code, out, err) =
        said(sandbox.run("a").args(["--dry-run", "--workdir"]).arg(sandbox.home().join("link")));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains("--- Files (2) ---\na.rs\nsrc/b.rs\n"), "{out}");
    assert!(Path::new(&absolute).exists());
}
