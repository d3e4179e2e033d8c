//! A shell in which every command of the documentation can run: a home directory with a git checkout, stand-ins for
//! other programs, and a server that answers as an LLM API.

use crate::support::api::{Anthropic, OpenAi};
use crate::support::server::Server;
use crate::support::store::note;
use crate::support::{NOW, Said, Sandbox, binary, root, set_mode, symlink, tools};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Stands in for an LLM command. Its replies to the memory programs are valid.
const MODEL: &str = r#"
prompt=$(cat)
case "$prompt" in
*'<<< session '*) printf '%s\n' "$prompt" | sh ~/src/app/examples/stand-in-librarian.sh ;;
'batch: '*)
    batch=$(printf '%s\n' "$prompt" | sed -n '1s/batch: //p')
    id=$(printf '%s\n' "$prompt" | sed -n 's/^<<< note \([^ ]*\).*/\1/p' | head -n 1)
    printf '{"batch": "%s", "operations": [{"op": "tier", "id": "%s", "tier": "cold"}], "notes": "done"}\n' "$batch" "$id" ;;
*) printf '%s\n' "$prompt" | sh ~/src/app/examples/stand-in.sh ;;
esac
"#;

/// Stand-ins for other programs, as shell scripts.
const STAND_INS: &[(&str, &str)] = &[
    ("claude", MODEL),
    ("llm", MODEL),
    ("amp", "printf '# A thread\\n\\n## User\\n\\nUse pnpm here.\\n\\n## Assistant\\n\\nNoted.\\n'"),
    ("gh", "exec cat >/dev/null"),
    ("mail", "exec cat >/dev/null"),
    ("man", "exec cat >/dev/null"),
    ("less", "exec cat"),
    ("make", "echo 'src/app.c:1: error: expected \";\"'"),
    ("journalctl", "echo 'web: connection refused'"),
    ("systemctl", "echo 'Failed to connect to bus' >&2; exit 1"),
    (
        "crontab",
        "case $1 in\n-l) cat ~/tab 2>/dev/null || { echo 'no crontab for ann' >&2; exit 1; };;\n\
         -r) exec rm ~/tab;;\n*) exec cat >~/tab;;\nesac",
    ),
];

pub(crate) struct Stage {
    pub(crate) sandbox: Sandbox,
    server: Server,
}

impl Stage {
    /// Right after the installation.
    pub(crate) fn new() -> Stage {
        let sandbox = Sandbox::new();
        let home = sandbox.home();
        set_mode(&home, 0o700);
        for (name, body) in STAND_INS {
            let path = home.join("bin").join(name);
            sandbox.write(&path, format!("#!/bin/sh\n{body}\n"));
            set_mode(&path, 0o755);
        }
        symlink(binary("axe").parent().unwrap(), home.join(".cargo/bin"));
        sandbox.write(&home.join(".claude/CLAUDE.md"), "Be brief.\n");
        sandbox.write(&home.join(".gitconfig"), "[user]\nname = Ann\nemail = ann@example.org\n");
        let server = Server::answering(|request| {
            let has_schema =
                ["output_config", "response_format"].iter().any(|key| request.body.get(key).is_some());
            let text = match request.user().starts_with("batch: ") {
                true => answer_of_the_librarian(request.user()),
                false if has_schema => r#"{"title": "No test", "severity": 2}"#.to_owned(),
                false => "All is well.".to_owned(),
            };
            if request.text.contains(r#""name":"search""#) && request.results().is_empty() {
                return Anthropic.calls_tools(&[("search", json!({ "text": "one" }))]);
            }
            if request.path == Anthropic.path() { Anthropic.says(&text) } else { OpenAi.says(&text) }
        });
        let stage = Stage { sandbox, server };
        for dir in ["bins", "examples", "man"] {
            symlink(root().join(dir), stage.app().join(dir));
        }
        stage.run(
            "git init -q -b main\n\
             mkdir docs; for f in README.md CONTRIBUTING.md docs/a.md docs/b.md app.c app.log meeting.txt; do echo one > $f; done\n\
             seq 3 > lines.txt; seq 3 > tickets.jsonl; echo '{\"number\": 1, \"title\": \"t\"}' > issues.jsonl\n\
             git add *.* docs && git commit -qm 'A first version' && git update-ref refs/remotes/origin/main HEAD\n\
             git remote add origin https://example.org/ann/app.git\n\
             echo two >> app.c && git commit -qam 'More of it'\n\
             echo three >> app.c && git add app.c && echo four >> app.c && git diff > change.diff && cp change.diff diff.txt",
        );
        stage
    }

    /// With agents, a configuration, notes, and something in the queue.
    pub(crate) fn furnished() -> Stage {
        let stage = Stage::new();
        let agents = stage.sandbox.config().join("agents");
        for entry in std::fs::read_dir(root().join("examples/agents")).unwrap() {
            let path = entry.unwrap().path();
            stage.sandbox.write(&agents.join(path.file_name().unwrap()), std::fs::read(&path).unwrap());
        }
        stage.sandbox.write(&stage.app().join("shot.png"), b"\x89PNG\r\n\x1a\n");
        stage.sandbox.write(&stage.app().join("invoice.pdf"), b"%PDF-1.7\n");
        // An agent that the documentation calls and does not define.
        stage.sandbox.write(&agents.join("fixer.toml"), "name = 'fixer'\nmodel = 'command/claude'\n");
        let home = stage.sandbox.home();
        stage.sandbox.write(&home.join(".local/share/axe/memory/reviewer.md"), crate::support::entries(3));
        let config = r#"{"llm": {"command": "claude"}, "agentsMd": {"targets": ["~/.claude/CLAUDE.md"]}}"#;
        stage.sandbox.write(&home.join(".config/agent-memory/config.json"), config);
        let topics = home.join(".local/share/agent-memory/topics");
        set_mode_of_store(&stage.sandbox, &home.join(".local/share/agent-memory"));
        for (id, title) in [("a1B2c3", "The dev server port"), ("Zz9yX1", "Retry with backoff")] {
            let file = topics.join(crate::support::store::name(id, title));
            stage.sandbox.write(&file, note(id, title, "summary: In short.\n"));
        }
        let entry =
            topics.parent().unwrap().join("archive").join(crate::support::store::name("ccccc1", "Old"));
        stage.sandbox.write(&entry, note("ccccc1", "Old", ""));
        for (id, change) in [
            ("p__a1B2c3", r#""op": "widen", "note": "id__a1B2c3", "by": "agent""#),
            ("p__d4E5f6", r#""op": "retire", "note": "id__Zz9yX1", "by": "tool""#),
        ] {
            let file = topics.parent().unwrap().join(format!("proposals/{id}.json"));
            stage.sandbox.write(&file, format!(r#"{{"id": "{id}", {change}, "createdAt": 1772000000000}}"#));
        }
        stage.run("memory capture --title 'Guards are pure' --body 'Put I/O into actors.' >/dev/null");
        stage
    }

    /// The checkout, in which commands run.
    pub(crate) fn app(&self) -> PathBuf {
        self.sandbox.home().join("src/app")
    }

    /// Runs a script in bash. Fails if any of its commands fails.
    pub(crate) fn run(&self, script: &str) -> String {
        let output = self.output(script);
        assert!(output.status.success(), "{script}\n--\n{}{}", output.out(), output.err());
        output.out()
    }

    pub(crate) fn output(&self, script: &str) -> Output {
        let home = self.sandbox.home();
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-eo", "pipefail", "-s"]).env_clear().current_dir(&home);
        bash.env("HOME", &home).env("AXE_NOW", NOW).env("XDG_RUNTIME_DIR", &home).env("GIT_EDITOR", "true");
        bash.env(
            "PATH",
            format!("{0}/bin:{1}:{2}", home.display(), binary("axe").parent().unwrap().display(), tools()),
        );
        for provider in ["ANTHROPIC", "OPENAI"] {
            bash.env(format!("AXE_{provider}_BASE_URL"), self.server.url());
            bash.env(format!("{provider}_API_KEY"), "sk-x");
        }
        // In braces, so that bash reads all of it before any command can read the same stdin.
        let whole = format!("{{ mkdir -p src/app && cd src/app\n{script}\n}} </dev/null\n");
        let mut bash = assert_cmd::Command::from_std(bash);
        bash.write_stdin(whole).timeout(Duration::from_secs(60)).output().unwrap()
    }
}

/// Makes the store private, as the programs do.
fn set_mode_of_store(sandbox: &Sandbox, store: &Path) {
    sandbox.write(&store.join("inbox/.keep"), "");
    std::fs::remove_file(store.join("inbox/.keep")).unwrap();
    set_mode(store, 0o700);
}

fn answer_of_the_librarian(prompt: &str) -> String {
    let mut child = Command::new("sh")
        .arg(root().join("examples/stand-in-librarian.sh"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(prompt.as_bytes()).unwrap();
    child.wait_with_output().unwrap().out()
}
