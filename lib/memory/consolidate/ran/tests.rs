use super::*;
use crate::harness::known;
use crate::harness::turn::{Role, Turn};
use crate::memory::outside::{Places, Tracker};
use std::path::Path;

/// What a call of Claude Code's shell in `/w/r` says about its commands.
fn ran(line: &str, has_worked: bool, output: &str) -> Vec<Ran> {
    let call = ToolCall { name: "Bash".to_owned(), arguments: vec![("command".to_owned(), line.to_owned())] };
    let text = format!("[Bash]\n=>\n{output}");
    let turn = Turn { role: Role::Tool, text, output: Some(6), call: Some(call.clone()), ..Turn::default() };
    let places = Places::new(Some(Path::new("/w/r")), Some("h/o/r"), None, None);
    let mut tracker = Tracker::new(&known("claude-code").unwrap().format, places, Some("h/o/r"), None);
    tracker.of(&turn);
    Ran::of(tracker.ran(), Some(&call), has_worked, &turn.text[6..], |_| true)
}

fn words(ran: &[Ran]) -> Vec<String> {
    ran.iter().map(|ran| ran.words.join(" ")).collect()
}

/// The word that there is no such thing as, and what the command was.
fn failure(line: &str, output: &str) -> String {
    let ran = ran(line, false, output);
    let failed =
        ran.first().and_then(|ran| ran.failed.as_ref().map(|failed| (ran.words.join(" "), &failed.word)));
    failed.map_or(String::new(), |(words, word)| format!("{words}: {word}"))
}

#[test]
fn what_there_is_not_is_named_by_the_messages_of_real_programs() {
    for (line, output, word) in [
        ("make check", "make: *** No rule to make target 'check'.  Stop.", "check"),
        ("make check", "make: *** No rule to make target `check'.  Stop.", "check"),
        ("make check", "make: don't know how to make check. Stop", "check"),
        ("make -C web all", "make: *** web: No such file or directory.  Stop.", "web"),
        ("just lint", "error: Justfile does not contain recipe `lint`", "lint"),
        ("npm run build", "npm error Missing script: \"build\"", "build"),
        ("npm run build", "npm ERR! missing script: build", "build"),
        ("npm lint", "Unknown command: \"lint\"", "lint"),
        ("pnpm run build", " ERR_PNPM_NO_SCRIPT  Missing script: build", "build"),
        ("pnpm lint", " ERR_PNPM_RECURSIVE_EXEC_FIRST_FAIL  Command \"lint\" not found", "lint"),
        ("pnpm test --fast", "ERROR  Unknown option: 'fast'", "--fast"),
        ("yarn lint", "error Command \"lint\" not found.", "lint"),
        ("yarn lint", "Usage Error: Couldn't find a script named \"lint\".", "lint"),
        ("bun run lint", "error: Script not found \"lint\"", "lint"),
        ("deno task lint", "error: Task not found: lint", "lint"),
        ("cargo xtask ci", "error: no such command: `xtask`", "xtask"),
        ("cargo test --quick", "error: unexpected argument '--quick' found", "--quick"),
        ("cargo test -p web", "error: package ID specification `web` did not match any packages", "web"),
        ("cargo run --bin web", "error: no bin target named `web`.", "web"),
        ("cargo build --features tls", "error: the package 'x' does not contain this feature: tls", "tls"),
        ("go generated", "go generated: unknown command\nRun 'go help' for usage.", "generated"),
        ("go test -race2 ./...", "flag provided but not defined: -race2", "-race2"),
        ("go run ./cmd/web", "stat /w/r/cmd/web: directory not found", "cmd/web"),
        ("pip freeze --loca", "no such option: --loca", "--loca"),
        ("pip instal x", "ERROR: unknown command \"instal\" - maybe you meant \"install\"", "instal"),
        (
            "pip check -r dev.txt",
            "ERROR: Could not open requirements file: [Errno 2] No such file or directory: 'dev.txt'",
            "dev.txt",
        ),
        ("pytest tests/a.py", "ERROR: file or directory not found: tests/a.py", "tests/a.py"),
        ("pytest --fast", "pytest: error: unrecognized arguments: --fast", "--fast"),
        (
            "python manage.py x",
            "python: can't open file '/w/r/manage.py': [Errno 2] No such file or directory",
            "manage.py",
        ),
        ("git sync", "git: 'sync' is not a git command. See 'git --help'.", "sync"),
        ("git log --onelin", "error: unknown option `onelin'", "--onelin"),
        ("git checkout devel", "error: pathspec 'devel' did not match any file(s) known to git", "devel"),
        ("docker stak ls", "docker: 'stak' is not a docker command.", "stak"),
        ("docker compose up web", "no such service: web", "web"),
        ("docker ps --al", "unknown flag: --al", "--al"),
        ("./gradlew lint", "Task 'lint' not found in root project 'r'.", "lint"),
        ("gradle build --fast", "Unknown command-line option '--fast'.", "--fast"),
        (
            "mvn verfy",
            "[ERROR] Unknown lifecycle phase \"verfy\". You must specify a valid lifecycle phase",
            "verfy",
        ),
        (
            "bundle exec rake db:x",
            "Don't know how to build task 'db:x' (See the list of available tasks)",
            "db:x",
        ),
        ("bundle lint", "Could not find command \"lint\".", "lint"),
        ("bundle exec lint", "bundler: command not found: lint", "lint"),
        ("node scripts/a.js", "Error: Cannot find module '/w/r/scripts/a.js'", "scripts/a.js"),
        ("node --strict a.js", "node: bad option: --strict", "--strict"),
        ("tox -e py2", "ERROR: unknown environment 'py2'", "py2"),
        ("kubectl appli -f x", "error: unknown command \"appli\" for \"kubectl\"", "appli"),
        ("vite build", "bash: vite: command not found", "vite"),
        ("vite build", "/bin/bash: line 1: vite: command not found", "vite"),
        ("vite build", "sh: 1: vite: not found", "vite"),
        ("vite build", "zsh:1: command not found: vite", "vite"),
        ("vite build", "fish: Unknown command: vite", "vite"),
        ("./ci/run all", "zsh: no such file or directory: ./ci/run", "run"),
        ("./ci/run all", "bash: line 1: ./ci/run: No such file or directory", "run"),
        ("bash ci/run.sh", "bash: ci/run.sh: No such file or directory", "ci/run.sh"),
        ("sudo -u x vite build", "sudo: vite: command not found", "vite"),
        ("timeout 5 vite build", "timeout: failed to run command 'vite': No such file or directory", "vite"),
        ("cd web && A=1 npm run build -- --x | tail", "npm error Missing script: \"build\"", "build"),
    ] {
        let named = failure(line, output);
        assert!(named.ends_with(&format!(": {word}")), "{line}: {output}: {named:?}");
    }
}

#[test]
fn a_failure_that_is_not_about_the_command_says_nothing() {
    for (line, output) in [
        ("make check", "cc: error: foo.c: No such file or directory\nmake: *** [Makefile:3: check] Error 1"),
        ("make check", "make: *** No rule to make target 'foo.c', needed by 'foo.o'.  Stop."),
        ("make check", "FAIL: test_not_found\nmake: *** [check] Error 2"),
        ("npm run build", "sh: 1: vite: not found"),
        ("npm run build", "Module not found: Error: Can't resolve './app'"),
        ("npm install left", "npm error 404 Not Found - GET https://registry.npmjs.org/left"),
        ("npm test", "npm error code ENOTFOUND\nnpm error network request failed"),
        ("cargo test -p web", "error: could not compile `web` (lib) due to 2 previous errors"),
        ("cargo test -p web", "error[E0425]: cannot find function `web` in this scope"),
        ("cargo test -p web", "thread 'x' panicked: No such file or directory (os error 2)"),
        ("cargo build", "error: unexpected argument '--quick' found"),
        ("pytest tests/a.py", "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'"),
        ("pytest tests/a.py", "1 failed, 3 passed"),
        ("docker compose up web", "Error response from daemon: pull access denied"),
        ("git push origin main", "fatal: unable to access 'https://x/': Could not resolve host: x"),
        ("psql -c x test", "psql: FATAL: database \"test\" does not exist"),
        ("grep -rn \"make check\" docs", "docs/a.md: make: *** No rule to make target 'check'.  Stop."),
        ("cat build.log", "make: *** No rule to make target 'check'.  Stop."),
        ("cat > a.md <<'EOF'\nmake check\nEOF", "make: *** No rule to make target 'check'.  Stop."),
        ("echo 'make check'", "make: *** No rule to make target 'check'.  Stop."),
        ("cd /elsewhere && make check", "make: *** No rule to make target 'check'.  Stop."),
        ("git commit -m 'make check'", "check: command not found"),
    ] {
        assert_eq!(failure(line, output), "", "{line}: {output}");
    }
    let long = format!("{} make: *** No rule to make target 'check'.", "x ".repeat(300));
    assert_eq!(failure("make check", &long), "");
}

#[test]
fn a_command_has_worked_where_the_exit_code_is_its_own() {
    for (line, expected) in [
        ("make check", "make check"),
        ("cd web && A=1 sudo -E npm run build", "npm run build"),
        ("make check 2>&1", "make check"),
        ("bash -lc 'make check'", "make check"),
        ("make check | tail -3", ""),
        ("make check; echo $?", ""),
        ("make check || true", ""),
        ("make check &", ""),
        ("! make check", ""),
        ("echo $(make check)", ""),
        ("make check\nls", ""),
        ("cargo xtask --help", ""),
        ("cd /tmp/x && make check", ""),
    ] {
        assert_eq!(words(&ran(line, true, "ok")).join("; "), expected, "{line}");
    }
    assert!(ran("make check", false, "ok").is_empty(), "nobody knows");
    assert!(ran("make check", true, "Command running in background with ID: b1").is_empty());
    // It worked, whatever it printed.
    assert_eq!(ran("make check", true, "make: *** No rule to make target 'check'.")[0].failed, None);
}

fn note(title: &str, body: &str) -> Entry {
    let text = format!(
        "---\nid: id__AAAAAA\ntitle: '{title}'\nscope: repo\nupdatedAt: 1772200000000\nsources:\n  - {{repo: h/o/r}}\n---\n\n{body}\n"
    );
    Entry::parse(text.into_bytes()).unwrap()
}

/// The commands that a note names; those that it says to run have a `!`.
fn told(title: &str, body: &str) -> String {
    let named = named(&note(title, body));
    let each = named
        .iter()
        .map(|named| format!("{}{}", if named.is_told { "!" } else { "" }, named.words.join(" ")));
    each.collect::<Vec<_>>().join("; ")
}

#[test]
fn a_note_says_to_run_a_command_or_only_names_it() {
    for (title, body, expected) in [
        ("Run `make check` first", "x", "!make check"),
        ("T", "Tests run with `cargo test -p web`.", "!cargo test -p web"),
        ("T", "Use `pnpm lint`, never `npm lint`.", "!pnpm lint"),
        ("T", "Never, under any circumstances, run `make deploy`.", ""),
        ("T", "Do not\nrun `make deploy`.", ""),
        ("T", "Run `make gen` and `make check` in turn.", "!make gen; !make check"),
        ("T", "Running it with `make deploy` fails.", ""),
        ("T", "Run `make check`, which fails on a Mac.", "!make check"),
        ("T", "`make check` takes three minutes.", "make check"),
        ("T", "Run the tests with `make test`.", "make test"),
        ("T", "The release is cut by `./ci/release.sh <version> --now`.", "release.sh"),
        ("T", "Mit `make pruefen` wird geprüft.", "make pruefen"),
        ("T", "`POOL_SIZE` is 20 in `src/a.rs`; use `cat`.", "POOL_SIZE; a.rs"),
        (
            "T",
            "Run this:\n\n```sh\n# all\n$ cd web && npm run build\n> done\n```\n",
            "!cd web; !npm run build",
        ),
        ("T", "Run this:\n\n```python\nimport os\nmake check\n```\n", ""),
        ("T", "Never do this:\n\n```\nmake deploy\n```\n", ""),
        ("T", "```sh\ncat > a.md <<'EOF'\nmake check\nEOF\n```\n", ""),
    ] {
        assert_eq!(told(title, body), expected, "{title}: {body}");
    }
}

/// Runs of a session in this repository on this day.
fn runs(repo: &str, on: &str, calls: &[(&str, bool, &str)]) -> Runs {
    let day: Date = on.parse().unwrap();
    let all = calls.iter().flat_map(|(line, has_worked, output)| ran(line, *has_worked, output));
    Runs([(repo.to_owned(), all.map(|ran| (day, ran)).collect())].into())
}

const NO_TARGET: &str = "make: *** No rule to make target 'check'.  Stop.";

#[test]
fn a_failure_is_shown_beside_the_notes_that_name_what_failed() {
    let failed = [("make -j4 check", false, NO_TARGET)];
    let against = |repo: &str, calls: &[(&str, bool, &str)], body: &str| {
        runs(repo, "2026-03-01", calls).against(&note("T", body))
    };
    assert_eq!(
        against("h/o/r", &failed, "Run `make check`."),
        format!("| $ make -j4 check\n| {NO_TARGET}\n")
    );
    assert_eq!(against("h/o/other", &failed, "Run `make check`."), "");
    assert_eq!(against("h/o/r", &failed, "Run `make lint`."), "");
    assert_eq!(against("h/o/r", &failed, "Never run `make check`."), "");
    assert_eq!(against("h/o/r", &[("ssh host make check", false, NO_TARGET)], "Run `make check`."), "");
    // What failed is not in the note.
    let flag = [("cargo test -p web --quick", false, "error: unexpected argument '--quick' found")];
    assert_eq!(against("h/o/r", &flag, "Run `cargo test -p web`."), "");
    assert_ne!(against("h/o/r", &flag, "Run `cargo test --quick`."), "");
    // It was mended in the session.
    let mended = [failed[0], ("make check", true, "ok")];
    assert_eq!(against("h/o/r", &mended, "Run `make check`."), "");
}

#[test]
fn a_note_is_renewed_by_the_day_of_the_session_and_never_by_its_own() {
    let now = "2026-03-05T12:00:00Z".parse().unwrap();
    let worked = [("make check", true, "ok")];
    let renewed = |on: &str, body: &str, more: &str| {
        let text = String::from_utf8(note("T", body).bytes().to_vec()).unwrap().replace("scope: repo", more);
        runs("h/o/r", on, &worked)
            .renewed(&Entry::parse(text.into_bytes()).unwrap(), now)
            .map(|day| day.to_string())
    };
    let (told, repo) = ("Run `make check`.", "scope: repo");
    assert_eq!(renewed("2026-03-04", told, repo).as_deref(), Some("2026-03-04"));
    assert_eq!(
        renewed("2026-03-04", told, "scope: repo\nconfirmed: 2026-02-25").as_deref(),
        Some("2026-03-04")
    );
    assert_eq!(renewed("2026-03-04", told, "scope: repo\nconfirmed: 2026-02-26"), None, "once a week");
    assert_eq!(renewed("2026-02-27", told, repo), None, "it is of that day");
    assert_eq!(renewed("2099-01-01", told, repo), None, "nobody's clock");
    assert_eq!(renewed("2026-03-04", told, "scope: global"), None);
    assert_eq!(renewed("2026-03-04", "See `make check`.", repo), None);
    let both = runs(
        "h/o/r",
        "2026-03-04",
        &[worked[0], ("make lint", false, "make: *** No rule to make target 'lint'.")],
    );
    assert_eq!(both.renewed(&note("T", "Run `make check` and `make lint`."), now), None);
}
