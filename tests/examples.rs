//! What README, the manuals and `examples/` show, used unchanged.

use crate::support::{NOW, Said, Sandbox, binary};
use predicates::prelude::*;
use std::path::PathBuf;
use std::process::Command;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// The blocks of a manual that are indented by four spaces.
fn indented(page: &str) -> Vec<String> {
    let page = read(page);
    let blocks = page.split("\n\n").filter(|block| block.lines().all(|line| line.starts_with("    ")));
    blocks.map(|block| block.lines().map(|line| format!("{}\n", &line[4..])).collect()).collect()
}

#[test]
fn the_quickstart_shows_a_second_run_that_read_the_first_ones_entry() {
    let sandbox = Sandbox::new();
    assert_cmd::Command::new("sh")
        .arg(root().join("examples/quickstart.sh"))
        .env("AXE_BIN", binary("axe").parent().unwrap())
        .env("AXE_NOW", NOW)
        .env("HOME", sandbox.home())
        .env_remove("LLM_COMMAND")
        .assert()
        .success()
        .stdout(
            predicate::str::contains(
                "My log has 1 earlier run(s). At 2026-02-28T15:04:05Z I said: I was given",
            )
            .and(predicate::str::contains("## 2026-02-28T15:04:05Z\n**Task:** Summarise this.").count(2))
            .and(predicate::str::contains("2 entries processed, 2 kb entries written\n"))
            .and(predicate::str::contains("\n\nRemember: the dev server listens on port 8081.\n")),
        )
        .stderr(predicate::str::is_empty());
}

#[test]
fn the_quickstart_takes_another_command_for_a_model() {
    let sandbox = Sandbox::new();
    let output = Command::new("sh")
        .arg(root().join("examples/quickstart.sh"))
        .env("AXE_BIN", binary("axe").parent().unwrap())
        .env("LLM_COMMAND", "grep -c '' | sed 's/^/lines: /'")
        .env("TMPDIR", sandbox.work())
        .output()
        .unwrap();
    assert!(output.out().contains("\nlines: "), "{}{}", output.out(), output.err());
    assert_eq!(std::fs::read_dir(sandbox.work()).unwrap().count(), 0, "it cleans up");
}

#[test]
fn the_example_agents_and_their_configuration_are_whole() {
    let sandbox = Sandbox::new();
    sandbox.write(&sandbox.config().join("config.toml"), read("examples/config.toml"));
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root().join("examples/agents")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        sandbox.agent_file(&name, &std::fs::read_to_string(&path).unwrap());
        names.push(name);
    }
    for file in ["README.md", "CONTRIBUTING.md"] {
        sandbox.file(file, "x");
    }
    // A file with a key gives a warning about its mode. This key is no secret.
    #[cfg(unix)]
    crate::support::set_mode(&sandbox.config().join("config.toml"), 0o600);
    assert!(names.len() >= 4);
    for name in names {
        let output = sandbox.run(&name).arg("--dry-run").output().unwrap();
        assert_eq!((output.code(), output.err().as_str()), (Some(0), ""), "{name}");
    }
}

#[test]
fn the_toml_of_the_manual_is_valid() {
    let blocks = indented("man/axe-configuration.7.md");
    let configs: Vec<_> = blocks.iter().filter(|block| block.contains("[providers.")).collect();
    assert!(!configs.is_empty());
    for config in configs {
        let sandbox = Sandbox::new();
        sandbox.agent_file("a", "name = 'a'\nmodel = 'openrouter/x'");
        sandbox.write(&sandbox.config().join("config.toml"), config);
        #[cfg(unix)]
        crate::support::set_mode(&sandbox.config().join("config.toml"), 0o600);
        let output = sandbox.run("a").arg("--dry-run").output().unwrap();
        assert_eq!((output.code(), output.err().as_str()), (Some(0), ""), "{config}");
    }
}

#[test]
fn the_json_of_the_readme_and_the_manuals_is_valid() {
    let is_json = |block: &String| block.starts_with('{');
    let hooks: Vec<_> = indented("man/memory-hooks.7.md").into_iter().filter(is_json).collect();
    assert!(hooks.len() >= 5);
    for hook in &hooks {
        let value: serde_json::Value = serde_json::from_str(hook).unwrap();
        let is_of_hooks = value["hooks"].as_object().is_some_and(|hooks| hooks.len() > 1);
        assert!(is_of_hooks || value["mcpServers"].is_object(), "{hook}");
    }
    let configs: Vec<_> = indented("man/memory-configuration.7.md").into_iter().filter(is_json).collect();
    // The others are turns that a harness prints.
    let configs: Vec<_> = configs.iter().filter(|config| config.contains("\"redact\"")).collect();
    assert_eq!(configs.len(), 1);
    let sandbox = Sandbox::new();
    sandbox.file("config.json", configs[0]);
    let output = sandbox.command("memory-config").args(["show", "--config", "config.json"]).output().unwrap();
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    assert!(output.out().contains("ACME-"), "{}", output.out());
}

#[test]
fn every_program_and_flag_that_a_page_names_exists() {
    let readme = read("README.md");
    let mut helps = String::new();
    for program in crate::support::programs() {
        let output = Command::new(binary(&program)).arg("--help").output().unwrap();
        assert!(readme.contains(&program), "{program}");
        helps += &output.out();
    }
    // Those of the presets that coding agents have.
    let agents = ["amp", "claude_code", "codex", "gemini", "opencode"];
    let agents: String = agents.iter().map(|name| read(&format!("lib/harness/{name}.rs"))).collect();
    let presets = read("lib/config/preset.rs") + &agents;
    // Flags of cargo, claude, codex, gh, git, jq, nix, systemctl, tar and the presets, in commands that are not ours.
    let others = [
        "--arg",
        "--bare",
        "--body-file",
        "--cached",
        "--dangerously-bypass-hook-trust",
        "--flake",
        "--format",
        "--now",
        "--path",
        "--since",
        "--strip-components",
        "--trailer",
        "--user",
    ];
    let files = std::fs::read_dir(root().join("man")).unwrap();
    let manuals = files.map(|file| format!("man/{}", file.unwrap().file_name().to_str().unwrap()));
    let pages: Vec<String> =
        ["README.md", "nix/README.md"].into_iter().map(str::to_owned).chain(manuals).collect();
    for page in &pages {
        let text = read(page);
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        let is_flag = |word: &&str| {
            word.strip_prefix("--").is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
        };
        for flag in words.filter(is_flag) {
            let is_known = others.contains(&flag) || presets.contains(flag) || helps.contains(flag);
            assert!(is_known, "{page}: {flag}");
        }
    }
}

#[test]
fn a_real_history_and_real_files_end_in_an_answer_and_an_entry() {
    let git = Command::new("git").args(["log", "-p", "-n", "3"]).current_dir(root()).output().unwrap();
    // A source archive has no history; then use a file of the sources.
    let input = if git.stdout.is_empty() { read("Cargo.lock").into_bytes() } else { git.stdout };
    let sandbox = Sandbox::new();
    let toml = "files = ['lib/**/*.rs', 'README.md']\n[memory]\nenabled = true\nmax_task_chars = 60";
    sandbox.agent("a", "wc -l", toml);
    let output = sandbox.run("a").arg("--workdir").arg(root()).write_stdin(input).output().unwrap();
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    let lines: usize = output.out().trim().parse().unwrap();
    assert!(lines > 3000, "{lines}");
    assert!(sandbox.log("a").ends_with(&format!("**Result:** {}\n\n", output.out())));
}
