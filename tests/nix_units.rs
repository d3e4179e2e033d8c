//! What the modules make, in use: our programs read the files, systemd and plistlib read the units, bash runs the
//! scripts, and memory-install-cron gives the same schedules for the same values.

use crate::support::nix::Nix;
use crate::support::say;
use crate::support::{Said, Sandbox, binary, said, set_mode, symlink};
use serde_json::Value;
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
            ("Environment" | "EnvironmentFile" | "Description", _) => continue,
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
    let sandbox = Sandbox::new();
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
                if case == "full" {
                    // With a file of keys, launchd starts a script.
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
    for host in ["home-manager-linux", "nixos"] {
        let dir = sandbox.work().join(host);
        let files = nix.files("full", host);
        for (name, unit) in below(&files, "systemd/user") {
            // What they start is not on this machine.
            let mut text = String::new();
            for line in unit.lines() {
                let line = if line.starts_with("ExecStart=") { "ExecStart=/bin/true -- x" } else { line };
                text += &format!("{line}\n");
            }
            sandbox.write(&dir.join(name), text);
        }
        let units: Vec<PathBuf> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(units.len(), 8);
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
    for (case, host) in
        [("full", "nix-darwin"), ("full", "home-manager-macos"), ("xdg", "home-manager-macos")]
    {
        let files = nix.files(case, host);
        for (name, text) in below(&files, "Library/LaunchAgents") {
            plists.push(sandbox.work().join(format!("{case}-{host}-{name}")));
            fs::write(plists.last().unwrap(), text).unwrap();
        }
    }
    assert_eq!(plists.len(), 10);
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
        assert_eq!(is_timed, label != "com.axe.links", "{plist}");
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
            .replace("'/run/secrets/it'\\''s 100% mine.env'", &format!("'{}'", keys.display()));
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
    assert_eq!(with("defaults"), "");
    assert!(sandbox.config().join("config.toml").symlink_metadata().is_err());
    let left: Vec<_> = fs::read_dir(sandbox.config().join("agents")).unwrap().map(Result::unwrap).collect();
    assert_eq!(left.len(), 1);
    assert_eq!(fs::read_to_string(&own).unwrap(), "mine");
}
