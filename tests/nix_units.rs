//! What the modules make, in use: our programs read the files, systemd and plistlib read the units, bash runs the
//! scripts, and memory-install-cron gives the same schedules for the same values.

use crate::support::nix::Nix;
use crate::support::say;
use crate::support::{Said, Sandbox, binary, said, set_mode, symlink};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Puts the files that a case gives below `~` into a sandbox's home.
fn install(sandbox: &Sandbox, files: &BTreeMap<String, String>) {
    for (path, content) in files {
        if let Some(path) = path.strip_prefix("~/") {
            sandbox.write(&sandbox.home().join(path), content);
        }
    }
}

#[test]
fn our_programs_read_the_files_that_the_modules_write() {
    let Some(nix) = Nix::here() else { return };
    let sandbox = Sandbox::new();
    install(&sandbox, &nix.files("full", "home-manager-linux"));
    sandbox.file("README.md", "x");
    sandbox.file("docs/a.md", "x");
    let mut agents = 0;
    for entry in fs::read_dir(sandbox.config().join("agents")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let output = sandbox.run(name).arg("--dry-run").output().unwrap();
        assert_eq!((output.code(), output.err().as_str()), (Some(0), ""), "{name}");
        agents += 1;
    }
    assert_eq!(agents, 3);
    let (code, out, err) = said(sandbox.command("memory-config").args(["show", "--json"]));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let shown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(shown["schedule.consolidateIntervalHours"]["value"], 3);
    assert_eq!(shown["schedule.defragIntervalHours"]["value"], 48);
    assert_eq!(shown["llm.command"]["value"], "claude");
}

/// The lines of a unit, by section, without what must differ: paths, and words for people.
fn settings(unit: &str) -> Vec<String> {
    let mut section = "";
    let mut lines = Vec::new();
    for line in unit.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
            continue;
        }
        let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) else { continue };
        let value = match (key, value) {
            ("Environment" | "EnvironmentFile" | "Description" | "X-Checked", _) => continue,
            // Of a module with a file of keys.
            ("Restart" | "RestartSec" | "RestartPreventExitStatus", _) => continue,
            ("ExecStart", command) => command.rsplit('/').next().unwrap(),
            (_, "yes") => "true",
            (_, value) => value,
        };
        lines.push(format!("{section} {key}={value}"));
    }
    lines.sort();
    lines
}

/// The same of a property list: a key, and the text of what follows it.
fn keys(plist: &str) -> BTreeMap<String, String> {
    let compact: String = plist.lines().map(str::trim).collect();
    compact
        .split("<key>")
        .skip(1)
        .filter_map(|part| part.split_once("</key>"))
        .filter(|(key, _)| {
            *key != "EnvironmentVariables" && !key.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        })
        .map(|(key, value)| {
            let value = value.split("</dict>").next().unwrap();
            // What lies in the home directory or beside the program.
            let value = match key {
                "ProgramArguments" => value.rsplit_once("/memory-").map_or(value, |(_, end)| end),
                _ => value.split_once("/Library/").map_or(value, |(_, end)| end),
            };
            (key.to_owned(), value.to_owned())
        })
        .collect()
}

/// What memory-install-cron would write, by file name, in a home that holds the files.
fn printed(scheduler: &str, files: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let sandbox = Sandbox::on_disk();
    install(&sandbox, files);
    // It wants the programs beside itself.
    let kit = sandbox.work().join("kit");
    for program in ["memory-consolidate", "memory-defrag"] {
        sandbox.write(&kit.join(program), "#!/bin/sh\n");
        set_mode(&kit.join(program), 0o755);
    }
    // A copy may still be open for writing in a child of another test, and then cannot be run.
    let (from, to) = (binary("memory-install-cron"), kit.join("memory-install-cron"));
    if fs::hard_link(&from, &to).is_err() {
        fs::copy(&from, &to).unwrap();
    }
    let mut command = Command::new(kit.join("memory-install-cron"));
    let output = command
        .args(["--print", "--json", "--scheduler", scheduler])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", sandbox.home())
        .current_dir(sandbox.work())
        .output()
        .unwrap();
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let files = printed["files"].as_array().unwrap().iter();
    files
        .map(|file| {
            let name = Path::new(file["path"].as_str().unwrap()).file_name().unwrap();
            (name.to_str().unwrap().to_owned(), file["content"].as_str().unwrap().to_owned())
        })
        .collect()
}

/// The files of a directory, by name.
fn below<'a>(files: &'a BTreeMap<String, String>, dir: &str) -> BTreeMap<&'a str, &'a String> {
    files.iter().filter_map(|(path, text)| Some((path.strip_prefix(dir)?.strip_prefix('/')?, text))).collect()
}

#[test]
fn memory_install_cron_gives_the_schedules_of_the_modules_for_the_same_values() {
    let Some(nix) = Nix::here() else { return };
    for case in ["defaults", "full"] {
        let files = nix.files(case, "home-manager-linux");
        let printed_units = printed("systemd", &files);
        assert_eq!(printed_units.len(), 4);
        let units = below(&files, "systemd/user");
        for (name, text) in &printed_units {
            assert_eq!(settings(text), settings(units[&**name]), "{case} {name}");
        }
        for host in ["home-manager-macos", "nix-darwin"] {
            let modules = nix.files(case, host);
            let printed_plists = printed("launchd", &files);
            assert_eq!(printed_plists.len(), 2);
            let plists = below(&modules, "Library/LaunchAgents");
            for (name, text) in &printed_plists {
                let (mut ours, mut theirs) = (keys(text), keys(plists[&**name]));
                if case == "full" || host == "nix-darwin" {
                    // With a file of keys, launchd starts a script; nix-darwin's agents wait for the store.
                    for keys in [&mut ours, &mut theirs] {
                        keys.remove("ProgramArguments").unwrap();
                    }
                }
                assert!(ours.len() >= 7, "{ours:?}");
                assert_eq!(ours, theirs, "{case} {host} {name}");
            }
        }
    }
}

#[test]
fn systemd_takes_the_units() {
    let Some(nix) = Nix::here() else { return };
    let sandbox = Sandbox::new();
    for (case, host, count) in [
        ("full", "home-manager-linux", 8),
        ("full", "nixos", 8),
        ("typed", "home-manager-linux", 12),
        ("typed", "nixos", 12),
        ("users", "nixos", 2),
    ] {
        let dir = sandbox.work().join(format!("{case}-{host}"));
        let files = nix.files(case, host);
        for (name, unit) in below(&files, "systemd/user") {
            // What they start is not on this machine; its arguments stay.
            let mut text = String::new();
            for line in unit.lines() {
                let program = line.strip_prefix("ExecStart=").map(|line| line.split(' ').next().unwrap());
                text += &format!("{}\n", program.map_or(line.to_owned(), |it| line.replace(it, "/bin/true")));
            }
            sandbox.write(&dir.join(name), text);
        }
        let units: Vec<PathBuf> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(units.len(), count, "{case} {host}");
        let mut verify = Command::new("systemd-analyze");
        verify.args(["--user", "--man=no", "--recursive-errors=yes", "verify"]).args(&units);
        match verify.env("XDG_RUNTIME_DIR", sandbox.home()).output() {
            Ok(output) => assert_eq!((output.code(), output.err().as_str()), (Some(0), ""), "{host}"),
            Err(_) => return say("SKIPPED, no systemd-analyze: the units were not looked at"),
        }
    }
}

#[test]
fn python_reads_the_property_lists() {
    let Some(nix) = Nix::here() else { return };
    let sandbox = Sandbox::new();
    let mut plists = Vec::new();
    for (case, host) in [
        ("full", "nix-darwin"),
        ("full", "home-manager-macos"),
        ("typed", "nix-darwin"),
        ("typed", "home-manager-macos"),
        ("xdg", "home-manager-macos"),
    ] {
        let files = nix.files(case, host);
        for (name, text) in below(&files, "Library/LaunchAgents") {
            plists.push(sandbox.work().join(format!("{case}-{host}-{name}")));
            fs::write(plists.last().unwrap(), text).unwrap();
        }
    }
    assert_eq!(plists.len(), 21);
    let read =
        "import json, plistlib, sys\nprint(json.dumps([plistlib.load(open(p, 'rb')) for p in sys.argv[1:]]))";
    let Ok(output) = Command::new("python3").args(["-c", read]).args(&plists).output() else {
        return say("SKIPPED, no python3: the property lists were not read");
    };
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    let read: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    for (path, plist) in plists.iter().zip(&read) {
        let label = plist["Label"].as_str().unwrap();
        assert!(path.to_str().unwrap().ends_with(&format!("-{label}.plist")), "{label}");
        let is_timed = plist["StartInterval"].is_u64() || plist["StartCalendarInterval"].is_array();
        assert!(is_timed, "{plist}");
        assert_ne!(plist["StartCalendarInterval"], json!([]), "{plist}");
    }
    let odd = read.last().unwrap();
    assert_eq!(odd["EnvironmentVariables"]["XDG_CONFIG_HOME"], "/home/ada & bob's 100%/.config");
}

/// The scripts of a case, executable, with `program` for axe-run and `keys` for the file of keys.
fn scripts(nix: &Nix, sandbox: &Sandbox, program: &Path, keys: &Path) -> PathBuf {
    let bin = sandbox.work().join("bin");
    let files = nix.files("full", "home-manager-macos");
    for (name, text) in below(&files, "bin") {
        let store = "/nix/store/00000000000000000000000000000000-";
        let text = text
            .replace(&format!("{store}axe/bin/axe-run"), &format!("'{}'", program.display()))
            .replace(store, &format!("{}/", bin.display()))
            .replace("'/run/secrets/it'\\''s 100% mine.env'", &format!("'{}'", keys.display()))
            // A file that is not there is waited for.
            .replace("sleep 10", ":");
        assert!(!text.contains("/run/secrets/it"), "{text}");
        sandbox.write(&bin.join(name), text);
        set_mode(&bin.join(name), 0o755);
    }
    bin
}

#[test]
fn a_script_of_launchd_reads_the_file_of_keys_as_systemd_does_and_runs_nothing_in_it() {
    let Some(nix) = Nix::here() else { return };
    let sandbox = Sandbox::new();
    let program = sandbox.work().join("axe run");
    sandbox
        .write(&program, "#!/bin/sh\necho \"[$1 $2]\"; cat\necho \"[$A][$B][$C][$D][$E][${F-none}][$Z]\"\n");
    set_mode(&program, 0o755);
    let keys = sandbox.work().join("some keys.env");
    let text = "# a comment\n; another\n\nA=sk-1 2 \n  B=\"$(touch run) `touch run`\"\r\nC='it''s'\nD==a=b\nE=\nF G=1\nnonsense\nZ=last";
    fs::write(&keys, text).unwrap();
    let bin = scripts(&nix, &sandbox, &program, &keys);
    fs::write(bin.join("axe-run-reviewer-stdin"), "#!/bin/sh\nprintf 'a %%s\\nb\\n\\n'\n").unwrap();
    let mut run = Command::new(bin.join("axe-run-reviewer"));
    let output = run.current_dir(sandbox.work()).output().unwrap();
    let expected = "[-- reviewer]\na %s\nb\n[sk-1 2][$(touch run) `touch run`][it''s][=a=b][][none][last]\n";
    assert_eq!((output.code(), output.out().as_str()), (Some(0), expected), "{}", output.err());
    assert_eq!(output.err().matches("a line without KEY= in").count(), 2, "{}", output.err());
    assert!(!output.err().contains("nonsense"), "what stands in the file may be a key");
    assert!(!sandbox.work().join("run").exists());

    fs::remove_file(&keys).unwrap();
    let output = Command::new(bin.join("axe-run-reviewer")).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(1), ""));
    assert!(output.err().contains("some keys.env"), "{}", output.err());
}

#[test]
fn an_agent_whose_input_fails_is_not_run() {
    let Some(nix) = Nix::here() else { return };
    let sandbox = Sandbox::new();
    let program = sandbox.work().join("axe-run");
    sandbox.write(&program, "#!/bin/sh\necho ran\n");
    set_mode(&program, 0o755);
    let keys = sandbox.work().join("keys");
    fs::write(&keys, "A=1\n").unwrap();
    let bin = scripts(&nix, &sandbox, &program, &keys);
    // As the module wrote it: git in a directory that is not there, before a pipe.
    let mut run = Command::new(bin.join("axe-run-reviewer"));
    let output = run.env("HOME", sandbox.home()).output().unwrap();
    assert_eq!((output.code().map(|code| code > 0), output.out().as_str()), (Some(true), ""));
    assert!(output.err().contains("my project"), "{}", output.err());
}

#[test]
fn links_lead_to_etc_follow_what_is_there_and_spare_what_the_user_made() {
    let Some(nix) = Nix::here() else { return };
    let sandbox = Sandbox::new();
    let etc = sandbox.work().join("etc");
    let script = sandbox.work().join("links");
    let with = |case: &str| {
        let text = nix.files(case, "nixos")["bin/axe-links"]
            .replace("/nix/store/00000000000000000000000000000000-coreutils/bin", "/usr/bin:/bin")
            .replace("/etc/", &format!("{}/", etc.display()));
        fs::write(&script, text).unwrap();
        let mut bash = Command::new("bash");
        let output = bash.arg(&script).env_clear().env("HOME", sandbox.home()).output().unwrap();
        assert_eq!((output.code(), output.out().as_str()), (Some(0), ""), "{}", output.err());
        output.err()
    };
    for file in ["axe/config.toml", "axe/agents/digest.toml", "axe/agents/Überprüfer.toml"] {
        sandbox.write(&etc.join(file), file);
    }
    sandbox.write(&etc.join("agent-memory/config.json"), "{}");
    let own = sandbox.config().join("agents/reviewer.toml");
    sandbox.write(&own, "mine");
    sandbox.write(&etc.join("axe/agents/reviewer.toml"), "theirs");
    let elsewhere = sandbox.home().join(".config/agent-memory/config.json");
    symlink("/no/dotfiles", &elsewhere);

    for _ in 0..2 {
        let said = with("full");
        assert_eq!(said.lines().count(), 2, "{said}");
        assert!(said.contains("reviewer.toml\" is your own file and is used"), "{said}");
        assert_eq!(fs::read_to_string(&own).unwrap(), "mine");
        assert_eq!(fs::read_link(&elsewhere).unwrap(), Path::new("/no/dotfiles"));
        assert_eq!(
            fs::read_to_string(sandbox.config().join("agents/Überprüfer.toml")).unwrap(),
            "axe/agents/Überprüfer.toml"
        );
        assert_eq!(fs::read_link(sandbox.config().join("config.toml")).unwrap(), etc.join("axe/config.toml"));
    }

    fs::remove_dir_all(etc.join("axe")).unwrap();
    fs::remove_dir_all(etc.join("agent-memory")).unwrap();
    let hook = sandbox.home().join(".codex/hooks.json");
    sandbox.write(&etc.join("agent-memory/hooks/codex/hooks.json"), "{}");
    assert_eq!(with("typed").lines().count(), 1, "the user's own config.json");
    assert_eq!(fs::read_link(&hook).unwrap(), etc.join("agent-memory/hooks/codex/hooks.json"));
    // Everything is switched off: the links are removed, as nothing else would.
    fs::remove_dir_all(&etc).unwrap();
    assert!(hook.is_symlink());
    assert_eq!(with("disabled"), "");
    assert!(!hook.is_symlink());
    assert!(sandbox.config().join("config.toml").symlink_metadata().is_err());
    let left: Vec<_> = fs::read_dir(sandbox.config().join("agents")).unwrap().map(Result::unwrap).collect();
    assert_eq!(left.len(), 1);
    assert_eq!(fs::read_to_string(&own).unwrap(), "mine");
}

#[test]
fn configuration_files_are_checked_by_our_own_programs() {
    let Some(nix) = Nix::here() else { return };
    let checks = nix.value("tests/nix", "checks");
    let files = nix.files("full", "home-manager-linux");
    let bin = binary("memory-config").parent().unwrap().display().to_string();
    let checked = |check: &str, text: &str| {
        let sandbox = Sandbox::new();
        let source = sandbox.work().join("source");
        fs::write(&source, text).unwrap();
        let mut bash = Command::new("bash");
        bash.args(["-euc", checks[check].as_str().unwrap()]).current_dir(sandbox.work()).env_clear();
        bash.env("PATH", format!("{bin}:/usr/bin:/bin"))
            .env("source", &source)
            .env("out", sandbox.work().join("out"));
        let output = bash.output().unwrap();
        assert_eq!(output.code() == Some(0), sandbox.work().join("out").exists());
        (output.code(), output.err())
    };
    for (check, file, wrong, why) in [
        (
            "memoryConfig",
            "~/.config/agent-memory/config.json",
            "{\"llm\": {\"comand\": \"x\"}}",
            "llm.comand",
        ),
        ("axeConfig", "~/.config/axe/config.toml", "[retry]\nmax = \"many\"\n", "config file"),
        ("agent", "~/.config/axe/agents/reviewer.toml", "model = 5\n", "agent config"),
    ] {
        assert_eq!(checked(check, &files[file]).0, Some(0), "{check}: {:?}", checked(check, &files[file]));
        let (code, err) = checked(check, wrong);
        assert!(code != Some(0) && err.contains(why), "{check}: {code:?} {err}");
    }
}

/// The script of an agent with everything that a script can have, with `program` for axe-run.
fn digest(nix: &Nix, sandbox: &Sandbox, program: &str, input: &str) -> PathBuf {
    let bin = sandbox.work().join("bin");
    let store = "/nix/store/00000000000000000000000000000000-";
    let files = nix.files("typed", "home-manager-macos");
    sandbox.write(&sandbox.work().join("axe-run"), program);
    set_mode(&sandbox.work().join("axe-run"), 0o755);
    for name in ["axe-run-digest", "axe-run-digest-stdin"] {
        let text = files[&format!("bin/{name}")]
            .replace(&format!("{store}axe/bin/"), &format!("{}/", sandbox.work().display()))
            .replace(store, &format!("{}/", bin.display()));
        sandbox.write(&bin.join(name), text);
        set_mode(&bin.join(name), 0o755);
    }
    fs::write(bin.join("axe-run-digest-stdin"), input).unwrap();
    bin.join("axe-run-digest")
}

#[test]
fn an_agents_answer_replaces_its_file_only_when_the_run_succeeded() {
    let Some(nix) = Nix::here() else { return };
    let sandbox = Sandbox::new();
    let run = |program: &str| {
        let script = digest(&nix, &sandbox, program, "#!/bin/sh\necho input\n");
        // A script may still be open for writing in a child of another test, and then cannot be run.
        loop {
            let mut run = Command::new("bash");
            let run = run.arg(&script).env("HOME", sandbox.home()).env_remove("KEY");
            let output = run.output().unwrap();
            if !output.err().contains("Text file busy") {
                return output;
            }
        }
    };
    let notes = sandbox.home().join("notes");
    let file = notes.join("the digest.md");
    fs::write(sandbox.home().join("keys.env"), "KEY=sk-1\n").unwrap();
    let output = run("#!/bin/sh\nprintf '[%s]' \"$@\" \"$KEY\"; cat\n");
    assert_eq!((output.code(), output.out().as_str()), (Some(0), ""), "{}", output.err());
    let prompt = "What is new\nin 100 % of \"$HOME\"?";
    let expected = format!("[--skip-empty][--prompt][{prompt}][--timeout][600][--][digest][sk-1]input\n");
    assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    // The file of keys is optional.
    fs::remove_file(sandbox.home().join("keys.env")).unwrap();
    assert_eq!(run("#!/bin/sh\necho half; exit 3\n").code(), Some(3));
    assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    assert_eq!(run("#!/bin/sh\n").code(), Some(0));
    assert_eq!(fs::read_to_string(&file).unwrap(), expected, "nothing was said, as when the input was blank");
    assert_eq!(run("#!/bin/sh\necho new\n").code(), Some(0));
    assert_eq!(fs::read_to_string(&file).unwrap(), "new\n");
    assert_eq!(fs::read_dir(&notes).unwrap().count(), 1, "no temporary file is left");
}

/// A user manager with a module's units. The last run of the timer was over a week ago, and the file of keys is not there.
const MISSED: &str = r#"
set -eu
HOME=$1 XDG_RUNTIME_DIR=/run/user/0 PATH=/usr/sbin:/usr/bin:/sbin:/bin
export HOME XDG_RUNTIME_DIR PATH
unit=agent-memory-consolidate
fail() { echo "$*"; systemctl --user --no-pager status "$unit*" || true; cat /run/manager.log; exit 1; }
until_true() { # WHAT COMMAND: for thirty seconds at most
    what=$1 n=0; shift
    until "$@" >/dev/null 2>&1; do
        n=$((n + 1)); [ $n -lt 300 ] || fail "it never came: $what"
        sleep 0.1
    done
}
mount -t tmpfs tmpfs /run
mkdir -p -m 700 /run/systemd/system "$XDG_RUNTIME_DIR/agenix"
# Ten minutes and five minutes are too long for a test; the rest is the module's.
for part in timer service; do mkdir "$HOME/.config/systemd/user/$unit.$part.d"; done
printf '[Timer]\nRandomizedDelaySec=0\nAccuracySec=100ms\n' >"$HOME/.config/systemd/user/$unit.timer.d/fast.conf"
printf '[Service]\nRestartSec=500ms\n' >"$HOME/.config/systemd/user/$unit.service.d/fast.conf"
mkdir -p "$HOME/.local/share/systemd/timers"
touch -d '8 days ago' "$HOME/.local/share/systemd/timers/stamp-$unit.timer"
/lib/systemd/systemd --user >/run/manager.log 2>&1 &
until_true "a user manager" systemctl --user show --property=Version
systemctl --user start "$unit.timer"
failed() { systemctl --user show --property=NRestarts --value "$unit.service" | grep -qv '^0$'; }
until_true "a run that was missed, and failed" failed
[ ! -e "$HOME/ran" ] || fail "it ran without its secret"
# Whole at once: systemd may look at any moment.
echo KEY=sk-1 >"$HOME/llm.env"
mv "$HOME/llm.env" "$XDG_RUNTIME_DIR/agenix/llm.env"
until_true "another try, with its secret" grep -qx sk-1 "$HOME/ran"
# It costs money: a run that fails by itself is not repeated.
systemctl --user start "$unit.service" && fail "the second command should have failed"
sleep 1
[ "$(systemctl --user show --property=ActiveState --value "$unit.service")" = failed ] || fail "it is repeated"
"#;

#[test]
fn a_missed_run_is_caught_up_on_and_tried_again_until_its_secret_is_there() {
    let Some(nix) = Nix::here() else { return };
    let name = "a_missed_run_is_caught_up_on_and_tried_again_until_its_secret_is_there";
    let apart = ["--mount", "--pid", "--fork", "--mount-proc", "--kill-child"];
    let probe = Command::new("unshare").args(apart).args(["mount", "-t", "tmpfs", "tmpfs", "/run"]).output();
    if !probe.is_ok_and(|output| output.status.success()) || !Path::new("/lib/systemd/systemd").exists() {
        return say(&format!("SKIPPED, no systemd or no namespaces here: {name}"));
    }
    let sandbox = Sandbox::new();
    let program = sandbox.home().join("consolidate");
    let ran = sandbox.home().join("ran");
    sandbox.write(
        &program,
        format!("#!/bin/sh\n[ ! -e '{0}' ] || exit 3\necho \"$KEY\" >'{0}'\n", ran.display()),
    );
    set_mode(&program, 0o755);
    let files = nix.files("typed", "home-manager-linux");
    for (name, unit) in below(&files, "systemd/user") {
        let mut text = String::new();
        for line in unit.lines().filter(|line| !line.contains("memory-sync")) {
            let line = if line.starts_with("ExecStart=") {
                format!("ExecStart={}", program.display())
            } else {
                line.to_owned()
            };
            text += &format!("{line}\n");
        }
        sandbox.write(&sandbox.home().join(".config/systemd/user").join(name), text);
    }
    let output = Command::new("unshare")
        .args(apart)
        .args(["sh", "-c", MISSED, "sh"])
        .arg(sandbox.home())
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .current_dir("/")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}{}", output.out(), output.err());
}
