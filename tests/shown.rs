//! Every command that the documentation shows is run unchanged: README, CONTRIBUTING, the manuals, each program's help,
//! and the timers among the examples.

use crate::support::root;
use crate::support::shell::Stage;
use crate::support::{Said, binary, programs};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::Command;

/// Commands that cannot run in a test, each with the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("sh examples/quickstart.sh", "tests of its own run it, in examples.rs"),
    ("cargo test", "would run this test"),
    ("cargo test --lib store::", "would build, or run the suite in itself"),
    ("SUITE=all cargo test", "the same"),
    ("cargo test --test faults", "the same"),
    ("cargo bench", "takes minutes"),
    ("cargo bench -- memory", "the same"),
    ("cargo deny check", "needs the network"),
    ("cargo install cargo-fuzz --locked", "the same"),
    (
        "cargo +nightly fuzz run note fuzz/corpus/note tests/seeds/note -- -timeout=10 -rss_limit_mb=1024 -max_len=4096 -dict=fuzz/words.dict",
        "needs a nightly compiler",
    ),
    (".ci/run", "would run this test"),
    ("axe-agents accept reviewer", "starts servers and asks a person; mcp.rs does that"),
    (".ci/check-macos", "fetches a compiler and takes minutes"),
    (".ci/check-windows", "the same"),
    (".ci/real-programs", "fetches the agents from npm"),
    (".ci/release", "the same"),
    ("sha256sum -c axe-0.1.0-x86_64-linux.tar.xz.sha256", "checks what .ci/release makes"),
    (".ci/fuzz", "takes minutes"),
    ("claude mcp add --scope user agent-memory -- memory-mcp", ".ci/real-programs does that"),
    ("codex mcp add agent-memory -- memory-mcp", "the same"),
    ("gemini mcp add --scope user agent-memory memory-mcp", "the same"),
    (
        "claude plugin marketplace add ~/src/axe && claude plugin install agent-memory@axe-toolkit",
        ".ci/real-programs installs the plugin",
    ),
    ("codex plugin marketplace add ~/src/axe && codex plugin add agent-memory@axe-toolkit", "the same"),
    ("gemini extensions install ~/src/axe/plugin", "the same"),
    ("sudo apt install ./target/debian/axe-toolkit_*.deb", "changes the machine"),
    (
        "systemctl --user enable --now agent-memory-consolidate.timer agent-memory-defrag.timer",
        "changes the machine",
    ),
    (".ci/weekly", "takes hours"),
    (
        "mkdir -p ~/.local && tar -xJf axe-0.1.0-x86_64-linux.tar.xz --strip-components=1 -C ~/.local",
        "unpacks it",
    ),
    ("sudo apt install rustup gcc cmake git && rustup default stable", "changes the machine"),
    ("cargo install --path .", "builds a release"),
    ("nix run .#axe-run -- reviewer < diff.txt", "builds, and needs the network"),
    ("nix profile install .", "the same"),
    ("nix develop", "the same"),
    ("home-manager switch --flake .#ada", "changes the machine"),
    ("loginctl enable-linger", "the same"),
    ("systemctl --user list-timers", "needs a user manager"),
    ("systemctl --user start agent-memory-consolidate", "the same; tests/nix.rs follows the walk"),
    ("grep 'Staging deploys' ~/.codex/AGENTS.md", "the same"),
];

/// Lines that belong together, and where they are.
struct Block {
    place: String,
    text: String,
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// A line without the comment at its end.
fn bare(line: &str) -> &str {
    line.split("  #").next().unwrap_or(line).trim()
}

/// The pages of `man/`.
fn manuals() -> Vec<String> {
    let files = std::fs::read_dir(root().join("man")).unwrap();
    let mut pages: Vec<String> =
        files.map(|file| format!("man/{}", file.unwrap().file_name().to_str().unwrap())).collect();
    pages.sort();
    assert!(pages.len() >= 9, "{pages:?}");
    pages
}

/// The blocks of a Markdown file: in fences that name `language`, or for "" the lines that are indented by four spaces.
fn blocks(path: &str, language: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut fence: Option<(String, bool)> = None;
    let mut is_going_on = false;
    for (number, line) in read(path).lines().enumerate() {
        let place = || format!("{path}:{}", number + 1);
        let ticks = line.len() - line.trim_start_matches('`').len();
        let mut take = |text: &str, is_going_on: bool| match blocks.last_mut() {
            Some(last) if is_going_on => last.text += &format!("{text}\n"),
            _ => blocks.push(Block { place: place(), text: format!("{text}\n") }),
        };
        match &fence {
            Some((end, _)) if line == end => fence = None,
            Some((_, is_wanted)) => {
                if *is_wanted {
                    take(line, is_going_on);
                    is_going_on = true;
                }
                continue;
            }
            None if ticks >= 3 => {
                fence = Some(("`".repeat(ticks), &line[ticks..] == language && !language.is_empty()));
            }
            None if language.is_empty() && line.starts_with("    ") => {
                take(&line[4..], is_going_on);
                is_going_on = true;
                continue;
            }
            None => {}
        }
        is_going_on = false;
    }
    blocks
}

/// Without the lines that cannot be run.
fn what_runs(block: &Block) -> String {
    let runs = |line: &&str| !NOT_RUN.iter().any(|(command, _)| bare(line) == *command);
    block.text.lines().filter(runs).collect::<Vec<_>>().join("\n")
}

/// Runs blocks one after another, in one shell. The error says which one failed.
fn run_all(stage: &Stage, blocks: &[Block]) {
    let script: String = blocks
        .iter()
        .map(|block| format!("printf '@@ %s\\n' '{}' >&2\n{}\n", block.place, what_runs(block)))
        .collect();
    let output = stage.output(&script);
    let err = output.err();
    let last = err.rsplit("@@ ").next().unwrap_or_default();
    assert!(output.status.success(), "{}: {last}\n{}", output.status, output.out());
    for wrong in ["Warning:", "warning:", "panicked", "unknown"] {
        assert!(!err.contains(wrong), "{err}");
    }
}

/// A command of a block of language `console`, and the lines that stand under it.
struct Shown {
    place: String,
    command: String,
    output: Vec<String>,
}

/// In order. A command begins with `$ ` and goes on in lines that begin with `> `.
fn consoles(path: &str) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    for block in blocks(path, "console") {
        for line in block.text.lines() {
            match (line.strip_prefix("$ "), line.strip_prefix("> "), shown.last_mut()) {
                (Some(command), ..) => shown.push(Shown {
                    place: block.place.clone(),
                    command: bare(command).to_owned(),
                    output: Vec::new(),
                }),
                (_, Some(more), Some(last)) => last.command += &format!("\n{more}"),
                (.., Some(last)) => last.output.push(line.to_owned()),
                _ => panic!("{}: {line}", block.place),
            }
        }
    }
    shown
}

/// Whether a command printed what stands under it. A line `…` stands for any number of lines.
fn is_as_shown(printed: &str, shown: &[String]) -> bool {
    let printed: Vec<&str> = printed.lines().filter(|line| !line.trim().is_empty()).collect();
    match shown.iter().position(|line| line == "…") {
        None => printed == shown,
        Some(at) => printed.starts_with(&shown[..at].iter().map(String::as_str).collect::<Vec<_>>()[..]),
    }
}

/// The examples of a program's help.
fn examples(program: &str) -> Vec<Block> {
    let help = Command::new(binary(program)).arg("--help").output().unwrap().out();
    let is_example = |block: &&str| block.lines().all(|line| line.starts_with("    "));
    let blocks = help.split("\n\n").filter(is_example);
    blocks.map(|block| Block { place: format!("{program} --help"), text: block.to_owned() }).collect()
}

/// The commands of a manual: lines that begin with `$ `, those of a block together.
fn sessions(path: &str) -> Vec<Block> {
    let blocks = blocks(path, "").into_iter().filter(|block| block.text.starts_with("$ "));
    blocks
        .map(|block| {
            let lines = block.text.lines().map(|line| line.strip_prefix("$ ").unwrap());
            Block { text: lines.collect::<Vec<_>>().join("\n"), place: block.place }
        })
        .collect()
}

#[test]
fn every_command_of_the_readme_runs_and_prints_what_stands_under_it() {
    let stage = Stage::new();
    let shown = consoles("README.md");
    let run: Vec<&Shown> =
        shown.iter().filter(|one| !NOT_RUN.iter().any(|(command, _)| one.command == *command)).collect();
    assert!(run.len() >= 20, "{}", run.len());
    let script: String = run.iter().map(|one| format!("{}\nprintf '\\n@@\\n'\n", one.command)).collect();
    let output = stage.output(&format!("exec 2>&1\n{script}"));
    let printed = output.out().replace(stage.sandbox.home().to_str().unwrap(), "/home/ann");
    let parts: Vec<&str> = printed.split("\n@@\n").collect();
    assert_eq!(parts.len(), run.len() + 1, "{printed}");
    let mut compared = 0;
    for (one, printed) in run.iter().zip(parts) {
        let is_silent = one.output.is_empty();
        assert!(is_silent || is_as_shown(printed, &one.output), "{}: {}\n{printed}", one.place, one.command);
        compared += usize::from(!is_silent);
        for wrong in ["Warning:", "warning:", "panicked", "unknown"] {
            assert!(!printed.contains(wrong), "{}: {printed}", one.command);
        }
    }
    assert!(compared >= 6, "{compared}");
    // These are shown before the reader has written anything.
    run_all(&stage, &blocks("README.md", ""));
    let home = stage.sandbox.home();
    let memory = std::fs::read_to_string(home.join(".claude/CLAUDE.md")).unwrap();
    assert!(memory.starts_with("Be brief.\n\n<!-- agent-memory:start -->\n"), "{memory}");
}

#[test]
fn manual_pages_and_completions_are_installed_as_their_page_says() {
    let stage = ran("man/axe-installation.7.md", "--generate man");
    let man = stage.sandbox.home().join(".local/share/man");
    for page in ["man1/axe-run.1", "man1/memory.1", "man7/axe-security.7", "man7/memory-hooks.7"] {
        assert!(man.join(page).is_file(), "{page}");
    }
}

#[test]
fn every_command_of_the_other_pages_runs() {
    for path in ["CONTRIBUTING.md", "nix/README.md", "benches/README.md", "fuzz/README.md"] {
        let fenced = blocks(path, "sh");
        assert!(!fenced.is_empty(), "{path}");
        run_all(&Stage::new(), &fenced);
        // The table of the benchmarks is the only other block.
        assert!(path == "benches/README.md" || blocks(path, "").is_empty(), "{path}");
    }
    let pages = manuals();
    let sessions: Vec<Block> = pages.iter().flat_map(|path| sessions(path)).collect();
    assert!(sessions.len() >= 22, "{}", sessions.len());
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(session) =
                    sessions.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    run_all(&Stage::furnished(), std::slice::from_ref(session));
                }
            });
        }
    });
}

#[test]
fn a_command_in_a_manual_begins_with_a_dollar_sign() {
    for path in manuals() {
        for block in blocks(&path, "").iter().filter(|block| !block.text.starts_with("$ ")) {
            for line in block.text.lines() {
                let is_command = ["axe-", "memory-", "git ", "axe run", "memory capture"]
                    .iter()
                    .any(|start| line.starts_with(start));
                assert!(!is_command, "{}: {line}", block.place);
            }
        }
    }
}

/// The session of a manual that has a line with `words`, run on a machine of its own.
fn ran(path: &str, words: &str) -> Stage {
    let session = sessions(path).into_iter().find(|session| session.text.contains(words)).unwrap();
    let stage = Stage::furnished();
    run_all(&stage, &[session]);
    stage
}

#[test]
fn commands_of_the_manuals_do_what_their_page_says() {
    let stage = ran("man/memory-pipelines.7.md", "agents-md --project");
    let section = std::fs::read_to_string(stage.app().join("AGENTS.md")).unwrap();
    assert!(section.contains("Start it with: make db"), "{section}");
    let stage = ran("man/axe-pipelines.7.md", "git commit -e -F message.txt");
    assert!(stage.run("git log -1 --format=%s").starts_with("I was given "));
    let stage = ran("man/memory-pipelines.7.md", "memory-consolidate --apply reply.txt");
    assert!(stage.run("memory list").contains("Guards are pure"));
}

#[test]
fn every_example_of_a_help_runs() {
    std::thread::scope(|scope| {
        for program in programs() {
            scope.spawn(move || {
                let examples = examples(&program);
                assert!(!examples.is_empty(), "{program}");
                run_all(&Stage::furnished(), &examples);
            });
        }
    });
}

#[test]
fn what_is_not_run_is_shown_somewhere() {
    let pages = ["README.md", "CONTRIBUTING.md", "nix/README.md", "benches/README.md", "fuzz/README.md"];
    let blocks = pages.iter().flat_map(|path| blocks(path, "sh").into_iter().chain(blocks(path, "")));
    let consoles = consoles("README.md").into_iter().map(|one| one.command);
    let sessions = manuals().into_iter().flat_map(|path| sessions(&path));
    let shown: BTreeSet<String> = blocks
        .chain(sessions)
        .flat_map(|block| block.text.lines().map(|line| bare(line).to_owned()).collect::<Vec<_>>())
        .chain(consoles)
        .collect();
    for (command, why) in NOT_RUN {
        assert!(shown.contains(*command), "{command} ({why})");
    }
}

/// Every text below the key `command`, or `bash` in Copilot's hooks.
fn commands(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::String(command) if key == "command" || key == "bash" => into.push(command.clone()),
                    value => commands(value, into),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| commands(value, into)),
        _ => {}
    }
}

#[test]
fn the_hooks_queue_a_session() {
    let stage = Stage::new();
    let session = stage.sandbox.home().join("sessions/s-1.jsonl");
    stage.sandbox.write(&session, "{}\n");
    let mut count = 0;
    let mut heard = |command: &str, payload: &Value| {
        let payload = payload.to_string().replace('\'', "");
        stage.run("rm -rf ~/.local/share/agent-memory");
        let output = stage.output(&format!("printf '%s' '{payload}' | {command}"));
        assert_eq!((output.code(), output.err().as_str()), (Some(0), ""), "{command} {payload}");
        if command.starts_with("memory-recall ") {
            return;
        }
        let queued = stage.run("ls ~/.local/share/agent-memory/inbox | wc -l");
        assert_eq!(queued.trim(), "1", "{command} {payload}");
        count += 1;
    };
    let payload = |event: &str| {
        json!({
            "hook_event_name": event, "session_id": "s-1", "conversation_id": "s-1", "transcript_path": session,
            "cwd": stage.app(), "workspace_roots": [stage.app()],
        })
    };
    let manual = blocks("man/memory-hooks.7.md", "");
    // Copilot's payloads have other keys: tests of the capture hooks have them.
    let is_wanted = |block: &Block| block.text.starts_with("{\n") && !block.text.contains("\"bash\"");
    let settings = manual.into_iter().filter(is_wanted);
    for block in settings {
        let settings: Value = serde_json::from_str(&block.text).unwrap();
        for (event, hooks) in settings["hooks"].as_object().into_iter().flatten() {
            let mut all = Vec::new();
            commands(hooks, &mut all);
            assert_eq!(all.len(), 1, "{event}");
            // These queue nothing; `memory-recall` has tests of its own.
            if all[0].starts_with("memory-recall --harness ") {
                continue;
            }
            heard(&all[0], &payload(event));
        }
    }
    // Codex's other way.
    let page = read("man/memory-hooks.7.md");
    let notify = page.split("`notify = ").nth(1).unwrap().split('`').next().unwrap();
    let words: Vec<String> = serde_json::from_str(notify).unwrap();
    let told = json!({"type": "agent-turn-complete", "thread-id": "01", "cwd": stage.app()});
    let rollout =
        stage.sandbox.home().join(".codex/sessions/2026/02/28/rollout-2026-02-28T15-04-05-01.jsonl");
    stage.sandbox.write(&rollout, "{}\n");
    heard(&format!("{} '{told}'", words.join(" ")), &Value::Null);
    assert!(count >= 10, "{count}");
}

/// The command behind the five fields of a crontab's line, as cron hands it to the shell.
fn cron(line: &str) -> String {
    line.splitn(6, ' ').nth(5).unwrap().trim().replace("\\%", "%")
}

#[test]
fn the_timers_run_what_they_say() {
    let stage = Stage::furnished();
    let page = blocks("man/axe-pipelines.7.md", "");
    let tab = page.iter().find(|block| block.text.starts_with("0 7 ")).unwrap();
    for line in tab.text.lines() {
        stage.run(&format!("cd; {}", cron(line)));
    }
    for file in ["changes.md", "findings.md"] {
        assert!(!std::fs::read(stage.sandbox.home().join(file)).unwrap().is_empty(), "{file}");
    }

    let service = read("examples/timers/changes.service");
    let of =
        |key: &str| service.lines().find_map(|line| line.strip_prefix(key)).unwrap().replace("%h", "$HOME");
    let length = || stage.run("cat ~/changes.md").len();
    let first = length();
    stage.run(&format!("cd {}; {}", of("WorkingDirectory="), of("ExecStart=")));
    let second = length();
    assert!(second > first);

    let plist = root().join("examples/timers/changes.plist");
    let list = "import plistlib, shlex, sys; print(shlex.join(plistlib.load(open(sys.argv[1], 'rb'))['ProgramArguments']))";
    let said = Command::new("python3").args(["-c", list]).arg(plist).output().unwrap();
    stage.run(&said.out());
    assert!(length() > second);
}

#[test]
fn the_crontab_of_a_man_page_runs() {
    let page = Command::new(binary("axe")).args(["--generate", "man", "axe-gc"]).output().unwrap().out();
    let page = page.replace("\\-", "-").replace("\\(ti", "~");
    let line = page.lines().find(|line| line.contains("* * 0  ")).unwrap();
    assert!(Stage::furnished().run(&cron(line)).contains("All is well."), "{line}");
}
