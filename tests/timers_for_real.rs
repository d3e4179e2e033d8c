//! The timers' files, judged by those who read them: systemd's own check, Python's plistlib, and a user manager that
//! runs them. Each test says loudly where its judge is missing.

use crate::support::timers::{Kit, ODD};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// systemd refuses a quote or a backslash in a program's path.
const ODD_KIT: &str = "k \"i\" 's' %t$x\\";

fn skipped(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED, {why}: {test}");
}

fn is_there(program: &str) -> bool {
    Command::new("sh").args(["-c", "command -v \"$0\"", program]).output().unwrap().status.success()
}

/// The printed units as files in a directory of their own, and systemd's verdict on them.
fn verified(kit: &Kit, change: impl Fn(&str) -> String) -> Output {
    let dir = kit.sandbox.work().join("units");
    fs::create_dir_all(&dir).unwrap();
    let mut paths = Vec::new();
    for file in kit.printed("systemd")["files"].as_array().unwrap() {
        let name = Path::new(file["path"].as_str().unwrap()).file_name().unwrap();
        paths.push(dir.join(name));
        fs::write(dir.join(name), change(file["content"].as_str().unwrap())).unwrap();
    }
    assert_eq!(paths.len(), 4);
    Command::new("systemd-analyze")
        .args(["--user", "--man=no", "--recursive-errors=yes", "verify"])
        .args(paths)
        .env("XDG_RUNTIME_DIR", kit.sandbox.work())
        .output()
        .unwrap()
}

#[test]
fn systemd_finds_no_fault_with_the_units() {
    if !is_there("systemd-analyze") {
        return skipped("systemd_finds_no_fault_with_the_units", "no systemd-analyze here");
    }
    for (home, bin) in [("home", "kit"), (ODD, "k i%t$x"), (ODD, ODD_KIT)] {
        let kit = Kit::called(home, bin);
        let output = verified(&kit, str::to_owned);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && !said.contains("agent-memory"), "{said}");
    }
    // It would find one.
    let kit = Kit::new();
    for (right, wrong) in [("OnUnitActiveSec=2h", "OnUnitActiveSec=two"), ("UMask=0077", "UMask=none")] {
        let output = verified(&kit, |text| text.replace(right, wrong));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() || said.contains("agent-memory"), "{wrong}: {said}");
    }
}

const READ_PLIST: &str = "import json, plistlib, sys\n\
                          print(json.dumps(plistlib.load(sys.stdin.buffer, fmt=plistlib.FMT_XML)))";

#[test]
fn property_lists_say_what_they_were_given() {
    if !is_there("python3") {
        return skipped("property_lists_say_what_they_were_given", "no python3 here");
    }
    for (home, bin) in [("home", "kit"), (ODD, ODD_KIT)] {
        let kit = Kit::called(home, bin);
        kit.config(r#"{"schedule": {"consolidateIntervalHours": 3}}"#);
        let printed = kit.printed("launchd");
        let files = printed["files"].as_array().unwrap();
        let daily = serde_json::json!([{"Hour": 0, "Minute": 0}]);
        let times = [("StartInterval", (3 * 3600).into()), ("StartCalendarInterval", daily)];
        for ((file, name), (key, time)) in files.iter().zip(["consolidate", "defrag"]).zip(times) {
            let mut command = assert_cmd::Command::new("python3");
            let output =
                command.args(["-c", READ_PLIST]).write_stdin(file["content"].as_str().unwrap()).output();
            let output = output.unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let agent: Value = serde_json::from_slice(&output.stdout).unwrap();
            let text = |path: PathBuf| path.into_os_string().into_string().unwrap();
            let log = text(kit.home.join(format!("Library/Logs/agent-memory/{name}.log")));
            let expected = serde_json::json!({
                "Label": format!("com.agent-memory.{name}"),
                "ProgramArguments": [text(kit.bin.join(format!("memory-{name}"))), "--quiet"],
                "EnvironmentVariables": {"HOME": text(kit.home.clone()), "PATH": text(kit.tools.clone())},
                key: time,
                "RunAtLoad": false,
                "KeepAlive": false,
                "Nice": 10,
                "ProcessType": "Background",
                "StandardOutPath": log.clone(),
                "StandardErrorPath": log,
            });
            assert_eq!(agent, expected);
        }
    }
}

/// Runs as the first process of namespaces of its own: what it starts ends with it. Its arguments are the programs'
/// directory and a home.
const MANAGER: &str = r#"
set -eu
bin=$1 HOME=$2 XDG_RUNTIME_DIR=/run/user/0 PATH=/usr/sbin:/usr/bin:/sbin:/bin
export HOME XDG_RUNTIME_DIR PATH
fail() { echo "$*"; systemctl --user --no-pager status 'agent-memory*' || true; exit 1; }
until_true() { # WHAT COMMAND: for thirty seconds at most
    what=$1 n=0; shift
    until "$@" >/dev/null 2>&1; do
        n=$((n + 1)); [ $n -lt 300 ] || fail "it never came: $what"
        sleep 0.1
    done
}
notes() { [ "$(ls "$HOME/.local/share/agent-memory/topics" | grep -c "$1")" = 1 ]; }

mount -t tmpfs tmpfs /run
mkdir -p -m 700 /run/systemd/system "$XDG_RUNTIME_DIR"
/lib/systemd/systemd --user >/run/manager.log 2>&1 &
until_true "a user manager" systemctl --user show --property=Version

# Every two seconds instead of every two hours; the rest is as it is installed.
mkdir -p "$HOME/.config/systemd/user/agent-memory-consolidate.timer.d"
cat >"$HOME/.config/systemd/user/agent-memory-consolidate.timer.d/fast.conf" <<END
[Timer]
OnStartupSec=
OnUnitActiveSec=
OnStartupSec=1s
OnUnitActiveSec=2s
RandomizedDelaySec=0
AccuracySec=100ms
END
"$bin/memory-capture" --title "First by timer" --body "Queued."
"$bin/memory-install-cron"
until_true "the first note" notes first-by-timer
"$bin/memory-capture" --title "Second by timer" --body "Queued."
until_true "the second note" notes second-by-timer
"$bin/memory-install-cron" | grep "(unchanged)" || fail "a second time changed something"
rm -r "$HOME/.config/systemd/user/agent-memory-consolidate.timer.d"
"$bin/memory-uninstall-cron"
[ -z "$(systemctl --user --no-pager --no-legend list-units --all 'agent-memory*.timer')" ] || fail "timers are left"
[ ! -e "$HOME/.config/systemd/user" ] || fail "files are left"
"#;

#[test]
fn a_real_user_manager_makes_a_queued_note_a_file() {
    let name = "a_real_user_manager_makes_a_queued_note_a_file";
    if !Path::new("/lib/systemd/systemd").exists() || !is_there("systemctl") {
        return skipped(name, "no systemd here");
    }
    let apart = ["--mount", "--pid", "--fork", "--mount-proc", "--kill-child"];
    let probe = Command::new("unshare").args(apart).args(["mount", "-t", "tmpfs", "tmpfs", "/run"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        return skipped(name, "no namespaces to be had");
    }
    for (home, bin) in [("home", "kit"), (ODD, ODD_KIT)] {
        let kit = Kit::called(home, bin);
        kit.config(r#"{"storage": {"autoCommit": false}}"#);
        let output = Command::new("unshare")
            .args(apart)
            .args(["sh", "-c", MANAGER, "sh"])
            .args([&kit.bin, &kit.home])
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .current_dir("/")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
}

/// What a NixOS module has put there, found with files of ours before it. Its arguments are as above.
const MODULE: &str = r#"
set -eu
bin=$1 HOME=$2 XDG_RUNTIME_DIR=/nowhere PATH=$3
export HOME XDG_RUNTIME_DIR PATH
"$bin/memory-install-cron" --scheduler systemd 2>/dev/null
/bin/mount -t tmpfs tmpfs /etc/systemd
/bin/mkdir /etc/systemd/user
: >/etc/systemd/user/agent-memory-defrag.timer
"$bin/memory-doctor"
"$bin/memory-uninstall-cron"
"$bin/memory-doctor"
"$bin/memory-install-cron" --scheduler systemd
"#;

#[test]
fn a_module_of_the_whole_system_is_left_alone_and_not_hidden() {
    let probe = Command::new("unshare").args(["--mount", "mount", "-t", "tmpfs", "tmpfs", "/run"]).output();
    if !probe.is_ok_and(|output| output.status.success()) || !Path::new("/etc/systemd").exists() {
        return skipped(
            "a_module_of_the_whole_system_is_left_alone_and_not_hidden",
            "no namespaces to be had",
        );
    }
    let kit = Kit::new().with_systemctl();
    kit.config(r#"{"llm": {"command": "true"}}"#);
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", MODULE, "sh"])
        .args([&kit.bin, &kit.home, &kit.tools])
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{err}");
    let own = kit.units().join("agent-memory-defrag.timer");
    let hidden = format!("\"{}\" hides a Nix module's timer\tmemory-uninstall-cron", own.display());
    assert_eq!(out.matches(&hidden).count(), 1, "{out}");
    assert!(out.contains("\nsystemd: timers removed\n"), "{out}");
    assert!(out.ends_with("\nsystemd: memory-consolidate every 2 hours\n"), "{out}");
    let why =
        "Warning: \"/etc/systemd/user/agent-memory-defrag.timer\" comes from a Nix module and is not changed";
    assert_eq!(err.matches(why).count(), 2, "{err}");
}
