//! What `memory-doctor` has to say of the timers.

use crate::support::timers::Kit;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The findings on the schedule: file, what, how to mend it.
fn told(kit: &Kit, now: &str) -> Vec<[String; 3]> {
    let output = kit.command("memory-doctor").arg("--json").env("AXE_NOW", now).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let of_schedule =
        report["findings"].as_array().unwrap().iter().filter(|found| found["check"] == "schedule");
    of_schedule
        .map(|found| {
            assert_eq!(found["severity"], "warning");
            ["file", "what", "mend"].map(|key| found[key].as_str().unwrap().to_owned())
        })
        .collect()
}

const NOW: &str = "2026-02-28T15:04:05Z";

fn whats(kit: &Kit) -> Vec<String> {
    told(kit, NOW).into_iter().map(|[_, what, _]| what).collect()
}

fn kit() -> Kit {
    Kit::new().with_systemctl().with_launchctl().with_crontab()
}

#[test]
fn timers_that_are_as_they_should_be_are_no_finding() {
    let kit = kit();
    assert_eq!(whats(&kit), Vec::<String>::new());
    for scheduler in ["systemd", "launchd", "crontab"] {
        kit.install(&["--scheduler", scheduler]);
        assert_eq!(whats(&kit), Vec::<String>::new());
        kit.uninstall(&["--scheduler", scheduler]);
    }
}

#[test]
fn an_interval_that_was_changed_is_found_everywhere() {
    for (scheduler, place) in [
        ("systemd", ".config/systemd/user/agent-memory-defrag.timer"),
        ("launchd", "Library/LaunchAgents/com.agent-memory.defrag.plist"),
        ("crontab", ""),
    ] {
        let kit = kit();
        kit.install(&["--scheduler", scheduler]);
        kit.config(r#"{"schedule": {"defragIntervalHours": 12}}"#);
        let place =
            if place.is_empty() { "crontab".to_owned() } else { kit.home.join(place).display().to_string() };
        let what =
            "the timer of memory-defrag: it runs every 24 hours, the configuration says every 12 hours";
        let mend = format!("memory-install-cron --scheduler {scheduler}");
        assert_eq!(told(&kit, NOW), [[place, what.to_owned(), mend]]);
        kit.install(&["--scheduler", scheduler]);
        assert_eq!(whats(&kit), Vec::<String>::new());
    }
}

#[test]
fn a_remote_that_came_or_went_after_the_timers_is_found_everywhere() {
    for scheduler in ["systemd", "launchd", "crontab"] {
        let kit = kit();
        kit.install(&["--scheduler", scheduler]);
        kit.config(r#"{"sync": {"remote": "/nas/notes.git"}}"#);
        let found = told(&kit, NOW);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0][1], "the notes have a remote, but the timer does not run memory-sync");
        assert_eq!(found[0][2], format!("memory-install-cron --scheduler {scheduler}"));
        kit.install(&["--scheduler", scheduler]);
        assert_eq!(whats(&kit), Vec::<String>::new());
        kit.config("{}");
        assert_eq!(whats(&kit), ["the timer runs memory-sync, but the notes have no remote"]);
    }
}

#[test]
fn a_remote_that_memory_sync_has_set_up_counts() {
    let kit = kit();
    let store = kit.home.join(".local/share/agent-memory");
    fs::create_dir_all(&store).unwrap();
    for args in [&["init", "--quiet"][..], &["remote", "add", "origin", "/nas/notes.git"]] {
        assert!(Command::new("git").args(args).current_dir(&store).status().unwrap().success());
    }
    kit.tool("git", "exec git \"$@\"");
    kit.install(&["--scheduler", "systemd"]);
    assert!(
        fs::read_to_string(kit.units().join("agent-memory-consolidate.service"))
            .unwrap()
            .contains("memory-sync")
    );
    assert_eq!(whats(&kit), Vec::<String>::new());
}

#[test]
fn timers_of_another_version_are_found() {
    let kit = kit();
    let all: [(&str, &str, &[[&str; 2]]); 2] = [
        (
            "systemd",
            ".config/systemd/user/agent-memory-defrag",
            &[
                [".timer", "Persistent=true\n"],
                [".timer", "RandomizedDelaySec=10min"],
                [".service", "UMask=0077\n"],
                [".service", "NoNewPrivileges=yes"],
            ],
        ),
        (
            "launchd",
            "Library/LaunchAgents/com.agent-memory.defrag",
            &[[".plist", "\t<key>KeepAlive</key>\n\t<false/>\n"], [".plist", "Background"]],
        ),
    ];
    for (scheduler, start, changes) in all {
        for [end, line] in changes {
            kit.install(&["--scheduler", scheduler]);
            let path = kit.home.join(format!("{start}{end}"));
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains(line), "{text}");
            fs::write(&path, text.replace(line, "")).unwrap();
            let what = "the timer of memory-defrag: another version of memory-install-cron wrote it, or it was changed by hand";
            assert_eq!(whats(&kit), [what], "{line}");
        }
        kit.install(&["--scheduler", scheduler]);
        assert_eq!(whats(&kit), Vec::<String>::new());
        kit.uninstall(&["--scheduler", scheduler]);
    }
}

#[test]
fn another_path_and_another_shell_are_no_other_version() {
    for scheduler in ["systemd", "launchd", "crontab"] {
        let kit = Kit::called("ho me", "k i%t").with_systemctl().with_launchctl().with_crontab();
        let mut install = kit.command("memory-install-cron");
        install.args(["--scheduler", scheduler]).env("XDG_CACHE_HOME", kit.home.join("cache"));
        assert!(install.output().unwrap().status.success());
        assert_eq!(whats(&kit), Vec::<String>::new(), "{scheduler}");
    }
}

#[test]
fn what_cron_cannot_say_is_no_finding() {
    let kit = kit();
    kit.config(r#"{"schedule": {"defragIntervalHours": 36}}"#);
    kit.install(&["--scheduler", "crontab"]);
    assert_eq!(whats(&kit), Vec::<String>::new());
}

#[test]
fn a_program_that_is_gone_is_found_everywhere() {
    for scheduler in ["systemd", "launchd", "crontab"] {
        let kit = Kit::called("ho me", "k i%t").with_systemctl().with_launchctl().with_crontab();
        kit.install(&["--scheduler", scheduler]);
        let program = kit.bin.join("memory-consolidate");
        fs::remove_file(&program).unwrap();
        let what = format!("the timer of memory-consolidate: the program \"{}\" is gone", program.display());
        assert_eq!(whats(&kit), [what]);
    }
}

#[test]
fn a_timer_that_is_not_enabled_a_second_scheduler_and_broken_markers_are_found() {
    let kit = kit();
    kit.install(&["--scheduler", "systemd"]);
    fs::remove_file(kit.units().join("timers.target.wants/agent-memory-consolidate.timer")).unwrap();
    assert_eq!(whats(&kit), ["the timer of memory-consolidate: the timer is not enabled"]);
    kit.install(&["--scheduler", "systemd"]);
    kit.install(&["--scheduler", "crontab"]);
    let found = told(&kit, NOW);
    let mend = "memory-uninstall-cron --scheduler crontab";
    let twice = |program: &str| {
        ["crontab".to_owned(), format!("{program} is run by systemd and by crontab"), mend.to_owned()]
    };
    assert_eq!(found, [twice("memory-consolidate"), twice("memory-defrag")]);
    kit.uninstall(&["--scheduler", "crontab"]);
    fs::write(kit.state().join("tab"), "# agent-memory:start\n").unwrap();
    assert!(whats(&kit)[0].contains("in line 1 has no end"));
}

fn last_ran(kit: &Kit, text: &str) {
    kit.sandbox.write(&kit.home.join(".local/share/agent-memory/.agent-memory/run.lock"), text);
}

#[test]
fn timers_that_nothing_was_heard_of_for_long_are_found() {
    let kit = kit();
    let ran = "memory-defrag (process 7) since 2026-02-26T15:04:05.5Z";
    last_ran(&kit, ran);
    assert_eq!(told(&kit, "2026-03-20T00:00:00Z"), Vec::<[String; 3]>::new(), "without timers");
    kit.install(&["--scheduler", "systemd"]);
    assert_eq!(whats(&kit), Vec::<String>::new(), "two days may be a weekend");
    let what = "no run since 2026-02-26T15:04:05Z, although it is to run every 2 hours";
    let found = told(&kit, "2026-03-01T00:00:00Z");
    assert!(found.len() == 1 && found[0][1] == what && found[0][2].contains("journalctl"), "{found:?}");
    kit.config(r#"{"schedule": {"consolidateIntervalHours": 168}}"#);
    kit.install(&["--scheduler", "systemd"]);
    assert_eq!(told(&kit, "2026-03-15T00:00:00Z"), Vec::<[String; 3]>::new(), "three weeks are three times");
    assert_eq!(told(&kit, "2026-03-20T00:00:00Z").len(), 1);
    for odd in ["", "somebody else", "memory-defrag since yesterday", "memory-consolidate"] {
        last_ran(&kit, odd);
        assert_eq!(told(&kit, "2026-03-20T00:00:00Z"), Vec::<[String; 3]>::new(), "{odd}");
    }
}

#[test]
fn a_queue_that_nobody_empties_is_found() {
    let kit = kit();
    assert_eq!(kit.run("memory-capture", &["--title", "T", "--body", "B"]).0, Some(0));
    let is_told = |now: &str| told(&kit, now);
    assert_eq!(is_told("2000-01-01T00:00:00Z"), Vec::<[String; 3]>::new(), "it came just now");
    let found = is_told("2999-01-01T00:00:00Z");
    assert_eq!(found[0][1], "1 entry has waited for over a day, and no timer runs memory-consolidate");
    assert!(Path::new(&found[0][0]).ends_with("inbox") && found[0][2].starts_with("memory-install-cron"));
    kit.install(&["--scheduler", "crontab"]);
    assert_eq!(is_told("2999-01-01T00:00:00Z"), Vec::<[String; 3]>::new());
}
