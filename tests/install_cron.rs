//! `memory-install-cron` and `memory-uninstall-cron`: what they write, what they ask of a scheduler, what they leave.

use crate::support::symlink;
use crate::support::timers::{Kit, ODD, files_below};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;

const WARNING: &str = "Warning: no LLM command is set: notes are filed as they are, sessions wait, and memory-defrag \
                       cannot run; set llm.command, see: memory-config init\n";
const SYSTEMD: &[&str] = &["--scheduler", "systemd"];
const LAUNCHD: &[&str] = &["--scheduler", "launchd"];
const CRONTAB: &[&str] = &["--scheduler", "crontab"];

/// What is printed, with the names that change from run to run taken out.
fn golden(scheduler: &str) -> String {
    let kit = Kit::new();
    kit.config(r#"{"schedule": {"consolidateIntervalHours": 4, "defragIntervalHours": 24}}"#);
    let (code, out, err) = kit.install(&["--print", "--scheduler", scheduler]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(kit.asked().is_empty());
    let uid = format!("gui/{}", rustix::process::getuid().as_raw());
    out.replace(kit.home.to_str().unwrap(), "/home/ann")
        .replace(kit.bin.to_str().unwrap(), "/opt/axe/bin")
        .replace(kit.tools.to_str().unwrap(), "/usr/local/bin:/usr/bin:/bin")
        .replace(&uid, "gui/501")
}

#[test]
fn what_is_printed_is_as_in_the_golden_files() {
    for scheduler in ["systemd", "launchd", "crontab"] {
        let path = format!("tests/golden/timers-{scheduler}.txt");
        let expected = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(golden(scheduler), expected, "{path}");
    }
}

#[test]
fn printing_touches_nothing() {
    let kit = Kit::new().with_crontab().with_systemctl().with_launchctl();
    for scheduler in [SYSTEMD, LAUNCHD, CRONTAB] {
        for program in ["memory-install-cron", "memory-uninstall-cron"] {
            assert_eq!(kit.run(program, &[scheduler, &["--print"]].concat()).0, Some(0));
        }
    }
    assert_eq!(files_below(&kit.home), Vec::<std::path::PathBuf>::new());
    assert_eq!(kit.crontab(), None);
    assert!(kit.asked().iter().all(|line| line == "crontab -l"));
}

#[test]
fn systemd_installs_once_updates_and_leaves_no_trace() {
    let kit = Kit::new().with_systemctl();
    let line = "systemd: memory-consolidate every 2 hours, memory-defrag every 24 hours";
    assert_eq!(kit.install(SYSTEMD), (Some(0), format!("{line}\n"), WARNING.to_owned()));
    let both = "agent-memory-consolidate.timer agent-memory-defrag.timer";
    assert_eq!(
        kit.asked(),
        [
            "systemctl --user daemon-reload".to_owned(),
            format!("systemctl --user enable {both}"),
            format!("systemctl --user restart {both}"),
        ]
    );
    let written = |name: &str| fs::metadata(kit.units().join(name)).unwrap().modified().unwrap();
    let (service, timer) =
        (written("agent-memory-consolidate.service"), written("agent-memory-consolidate.timer"));

    assert_eq!(kit.install(SYSTEMD), (Some(0), format!("{line} (unchanged)\n"), WARNING.to_owned()));
    let asked = kit.asked();
    assert!(asked.len() == 1 && asked[0].starts_with("systemctl --user show "), "{asked:?}");
    assert_eq!(written("agent-memory-consolidate.timer"), timer);

    kit.config(r#"{"schedule": {"consolidateIntervalHours": 36}, "llm": {"command": "llm"}}"#);
    let line = "systemd: memory-consolidate every 36 hours, memory-defrag every 24 hours\n";
    assert_eq!(kit.install(SYSTEMD), (Some(0), line.to_owned(), String::new()));
    assert!(kit.asked().contains(&format!("systemctl --user restart {both}")));
    let text = fs::read_to_string(kit.units().join("agent-memory-consolidate.timer")).unwrap();
    assert!(text.contains("\nOnUnitActiveSec=36h\n"), "{text}");
    assert_eq!(written("agent-memory-consolidate.service"), service);

    assert_eq!(kit.uninstall(&[]), (Some(0), "systemd: timers removed\n".to_owned(), String::new()));
    assert_eq!(
        kit.asked()[..2],
        [format!("systemctl --user disable --now {both}"), "systemctl --user daemon-reload".to_owned()]
    );
    assert!(!kit.home.join(".config/systemd").exists());
    assert_eq!(kit.uninstall(&[]), (Some(0), "no timers were found\n".to_owned(), String::new()));
    assert_eq!(kit.uninstall(SYSTEMD).0, Some(0));
    assert!(kit.asked().is_empty());
}

#[test]
fn a_timer_that_was_switched_off_by_hand_is_switched_on_again() {
    let kit = Kit::new().with_systemctl();
    kit.install(SYSTEMD);
    fs::remove_file(kit.state().join("active-agent-memory-defrag.timer")).unwrap();
    kit.asked();
    let (code, out, _) = kit.install(&[SYSTEMD, &["--json"]].concat());
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &value["changed"], &value["written"]), (Some(0), &true.into(), &serde_json::json!([])));
    assert_eq!(value["commands"].as_array().unwrap().len(), 3);
}

#[test]
fn systemctl_missing_or_failing_names_what_was_written() {
    for (body, why) in [
        (None, "\"systemctl --user daemon-reload\" was not run: there is no systemctl on PATH"),
        (
            Some("echo 'Failed to connect to bus' >&2; exit 1"),
            "\"systemctl --user daemon-reload\" failed (exit 1): Failed to connect to bus",
        ),
        (
            Some("printf '\\377\\n\\033[1m'; kill -9 $$"),
            "\"systemctl --user daemon-reload\" failed (signal 9): ",
        ),
    ] {
        let kit = Kit::new();
        body.into_iter().for_each(|body| kit.tool("systemctl", body));
        let (code, out, err) = kit.install(SYSTEMD);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        let path = kit.units().join("agent-memory-defrag.timer");
        assert!(err.starts_with(&format!("memory-install-cron: {why}")), "{err}");
        assert!(
            err.contains(&format!("\"{}\"", path.display())) && err.contains("run memory-install-cron again")
        );
        assert!(path.exists());
        // Mended, the second time does what is missing.
        let kit = kit.with_systemctl();
        assert_eq!(kit.install(SYSTEMD).0, Some(0));
        assert!(kit.state().join("active-agent-memory-defrag.timer").exists());
    }
}

#[test]
fn uninstalling_with_a_failing_systemctl_removes_the_files_and_fails() {
    let kit = Kit::new().with_systemctl();
    kit.install(SYSTEMD);
    kit.tool("systemctl", "echo 'no manager' >&2; exit 1");
    let (code, out, err) = kit.uninstall(&[]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("disable --now") && err.contains("no manager"), "{err}");
    assert!(!kit.home.join(".config/systemd").exists());
    assert_eq!(kit.uninstall(&[]).0, Some(0));
}

#[test]
fn the_scheduler_is_systemd_where_its_manager_runs_else_cron() {
    let kit = Kit::new();
    let (code, _, err) = kit.install(&["--print"]);
    assert_eq!(code, Some(1));
    assert!(
        err.contains("no scheduler was found") && err.contains("--scheduler launchd|systemd|crontab"),
        "{err}"
    );
    let kit = kit.with_crontab().with_systemctl();
    assert!(kit.install(&["--print"]).1.starts_with("# in the crontab\n"));
    let run = kit.sandbox.work().join("run/systemd");
    fs::create_dir_all(&run).unwrap();
    let _manager = UnixListener::bind(run.join("private")).unwrap();
    assert!(kit.install(&["--print"]).1.contains("\nsystemctl --user daemon-reload\n"));
}

#[test]
fn lingering_that_is_off_is_said() {
    for (answer, is_said) in [("Linger=no", true), ("Linger=yes", false), ("odd", false)] {
        let kit = Kit::new().with_systemctl();
        kit.tool("loginctl", &format!("echo {answer}"));
        assert_eq!(kit.install(SYSTEMD).2.contains("loginctl enable-linger"), is_said, "{answer}");
    }
    let kit = Kit::new().with_systemctl();
    kit.tool("loginctl", "echo no such user >&2; exit 1");
    assert_eq!(kit.install(SYSTEMD).2, WARNING);
}

#[test]
fn a_crontab_keeps_every_byte_that_is_not_ours() {
    for rest in [
        &b"MAILTO=ann\n5 4 * * * /usr/bin/true\n"[..],
        b"no end of line",
        b"a\r\nb\r\n\r\n",
        b"\xff\xfe # bytes\n",
        b"# agent-memory:started long ago\n",
    ] {
        let kit = Kit::new().with_crontab();
        fs::write(kit.state().join("tab"), rest).unwrap();
        assert_eq!(kit.install(CRONTAB).0, Some(0));
        let first = kit.crontab().unwrap();
        assert!(first.len() > rest.len() && first.ends_with(rest));
        assert_eq!(kit.asked(), ["crontab -l", "crontab -"]);
        let (code, out, _) = kit.install(CRONTAB);
        assert!(code == Some(0) && out.ends_with(" (unchanged)\n"), "{out}");
        assert_eq!((kit.asked(), kit.crontab().unwrap()), (vec!["crontab -l".to_owned()], first.clone()));

        kit.config(r#"{"schedule": {"consolidateIntervalHours": 1}}"#);
        let line = "crontab: memory-consolidate every hour, memory-defrag every 24 hours\n";
        assert_eq!(kit.install(CRONTAB).1, line);
        let second = kit.crontab().unwrap();
        assert!(second.ends_with(rest) && second != first);

        assert_eq!(kit.uninstall(&[]), (Some(0), "crontab: timers removed\n".to_owned(), String::new()));
        assert_eq!(kit.crontab().unwrap(), rest);
        assert_eq!(kit.uninstall(CRONTAB), (Some(0), "no timers were found\n".to_owned(), String::new()));
    }
}

#[test]
fn a_crontab_that_was_ours_alone_is_gone_afterwards() {
    let kit = Kit::new().with_crontab();
    kit.install(CRONTAB);
    assert!(kit.crontab().is_some());
    assert_eq!(kit.uninstall(&["--print"]).1, "crontab -r\n");
    assert_eq!(kit.uninstall(&[]).0, Some(0));
    assert_eq!(kit.crontab(), None);
}

#[test]
fn broken_markers_leave_the_crontab_as_it_is() {
    for (text, why) in [
        ("a\n# agent-memory:start\nb\n", "\"# agent-memory:start\" in line 2 has no end"),
        ("# agent-memory:end\n", "\"# agent-memory:end\" in line 1 has no start"),
        (
            "# agent-memory:start\n\n# agent-memory:start\n# agent-memory:end\n",
            "in line 1, and again in line 3",
        ),
    ] {
        let kit = Kit::new().with_crontab();
        fs::write(kit.state().join("tab"), text).unwrap();
        for program in ["memory-install-cron", "memory-uninstall-cron"] {
            let (code, out, err) = kit.run(program, CRONTAB);
            assert_eq!((code, out.as_str()), (Some(1), ""));
            assert!(err.contains(why) && err.contains("crontab -e"), "{err}");
        }
        assert_eq!(kit.uninstall(&[]).0, Some(1), "without being told where");
        assert_eq!(kit.crontab().unwrap(), text.as_bytes());
    }
}

#[test]
fn a_crontab_that_cannot_be_read_is_not_taken_for_an_empty_one() {
    let kit = Kit::new();
    kit.tool("crontab", "echo 'You (ann) are not allowed to use this program (crontab)' >&2; exit 1");
    let (code, _, err) = kit.install(CRONTAB);
    assert!(
        code == Some(1) && err.contains("\"crontab -l\" failed (exit 1): You (ann) are not allowed"),
        "{err}"
    );
    assert_eq!(kit.uninstall(CRONTAB).0, Some(1));
    let (code, out, err) = kit.uninstall(&[]);
    assert_eq!((code, out.as_str()), (Some(0), "no timers were found\n"));
    assert!(err.starts_with("Warning: ") && err.contains("not allowed"), "{err}");
    assert!(kit.asked().iter().all(|line| line == "crontab -l"));
}

#[test]
fn a_line_that_is_too_long_for_cron_gets_a_hint() {
    let kit = Kit::new().with_crontab();
    kit.tool(
        "crontab",
        "[ \"$1\" = -l ] && { echo 'no crontab for ann' >&2; exit 1; }; echo bad >&2; exit 1",
    );
    let long = format!("{}:{}", kit.tools.display(), "/a-directory".repeat(99));
    let output = kit.command("memory-install-cron").env("PATH", long).args(CRONTAB).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && err.contains("shorter PATH"), "{err}");
    assert!(!kit.install(CRONTAB).2.contains("shorter PATH"));
}

#[test]
fn intervals_that_cron_cannot_say_are_shortened_and_said() {
    let kit = Kit::new().with_crontab();
    kit.config(r#"{"schedule": {"consolidateIntervalHours": 5, "defragIntervalHours": 36}}"#);
    let (code, out, err) = kit.install(CRONTAB);
    assert_eq!(code, Some(0));
    assert_eq!(out, "crontab: memory-consolidate every 4 hours, memory-defrag every 24 hours\n");
    assert!(err.contains(
        "Warning: cron cannot express \"every 36 hours\": memory-defrag will run every 24 hours\n"
    ));
    let text = String::from_utf8(kit.crontab().unwrap()).unwrap();
    assert!(text.contains("\n17 */4 * * * ") && text.contains("\n47 12 * * * "), "{text}");
}

#[test]
fn a_calendar_in_the_configuration_is_written_for_each_scheduler() {
    let kit = Kit::new().with_systemctl().with_launchctl().with_crontab();
    kit.config(
        r#"{"schedule": {"consolidate": "Mon,Thu 07:30", "defrag": "daily"}, "llm": {"command": "llm"}}"#,
    );
    for (scheduler, name) in [(SYSTEMD, "systemd"), (LAUNCHD, "launchd"), (CRONTAB, "crontab")] {
        let (code, out, err) = kit.install(scheduler);
        let line = format!("{name}: memory-consolidate Mon,Thu 07:30, memory-defrag daily\n");
        assert_eq!((code, out, err.contains("calendar")), (Some(0), line, false), "{err}");
        let again = kit.install(&[scheduler, &["--json"]].concat());
        let value: serde_json::Value = serde_json::from_str(&again.1).unwrap();
        assert_eq!((&value["changed"], &value["timers"][1]["calendar"]), (&false.into(), &"daily".into()));
    }
    let read = |path: std::path::PathBuf| fs::read_to_string(path).unwrap();
    let timer = read(kit.units().join("agent-memory-consolidate.timer"));
    assert!(timer.contains("\nOnCalendar=Mon,Thu 07:30\nPersistent=true\nRandomizedDelaySec="), "{timer}");
    assert!(!timer.contains("OnUnitActiveSec"), "{timer}");
    let agent = read(kit.agents().join("com.agent-memory.consolidate.plist"));
    assert!(
        agent.contains("<key>StartCalendarInterval</key>") && !agent.contains("StartInterval"),
        "{agent}"
    );
    let tab = String::from_utf8(kit.crontab().unwrap()).unwrap();
    assert!(tab.contains("\n30 7 * * 1,4 ") && tab.contains("\n0 0 * * * "), "{tab}");
}

#[test]
fn notes_are_shared_after_a_consolidation_if_there_is_a_remote() {
    let kit = Kit::called("ho me", "k i%t").with_systemctl().with_launchctl().with_crontab();
    kit.config(r#"{"sync": {"remote": "git@example.com:ann/notes.git"}, "llm": {"command": "llm"}}"#);
    for (scheduler, name) in [(SYSTEMD, "systemd"), (LAUNCHD, "launchd"), (CRONTAB, "crontab")] {
        let line = format!(
            "{name}: memory-consolidate every 2 hours, then memory-sync, memory-defrag every 24 hours"
        );
        let (code, out, err) = kit.install(scheduler);
        assert_eq!((code, out), (Some(0), format!("{line}\n")), "{err}");
        assert_eq!(kit.install(scheduler).1, format!("{line} (unchanged)\n"));
        // What is installed is understood: no program is missing.
        let doctor = kit.run("memory-doctor", &["--json"]).1;
        assert!(!doctor.contains("is gone") && !doctor.contains("cannot be determined"), "{doctor}");
        let written = match name {
            "systemd" => fs::read_to_string(kit.units().join("agent-memory-consolidate.service")).unwrap(),
            "launchd" => fs::read_to_string(kit.agents().join("com.agent-memory.consolidate.plist")).unwrap(),
            _ => String::from_utf8(kit.crontab().unwrap()).unwrap(),
        };
        assert_eq!(written.matches("memory-sync").count(), 1, "{written}");
        kit.uninstall(scheduler);
    }
}

#[test]
fn a_calendar_that_the_scheduler_does_not_know_is_refused() {
    let kit = Kit::new().with_systemctl().with_launchctl().with_crontab();
    kit.tool("systemd-analyze", "[ \"$2\" = quarterly ] || { echo \"Failed to parse: $2\" >&2; exit 1; }");
    kit.config(r#"{"schedule": {"defrag": "quarterly"}, "llm": {"command": "llm"}}"#);
    assert_eq!(kit.install(SYSTEMD).0, Some(0));
    for (scheduler, name) in [(LAUNCHD, "launchd"), (CRONTAB, "cron")] {
        let (code, out, err) = kit.install(scheduler);
        assert_eq!((code, out.as_str()), (Some(2), ""));
        assert!(
            err.contains(&format!("{name} cannot express \"quarterly\"")) && err.contains("Mon..Fri"),
            "{err}"
        );
    }
    kit.config(r#"{"schedule": {"defrag": "dayly"}, "llm": {"command": "llm"}}"#);
    let (code, _, err) = kit.install(SYSTEMD);
    assert!(code == Some(2) && err.contains("Failed to parse: dayly"), "{err}");
    fs::remove_file(kit.tools.join("systemd-analyze")).unwrap();
    let (code, _, err) = kit.install(SYSTEMD);
    assert!(code == Some(0) && err.contains("\"dayly\" was not checked"), "{err}");
    kit.config(r#"{"schedule": {"defrag": "daily\nExecStart=/bin/true"}}"#);
    let (code, _, err) = kit.install(SYSTEMD);
    assert!(code == Some(2) && err.contains("schedule.defrag: is not a calendar such as"), "{err}");
}

#[test]
fn launchd_installs_once_updates_and_leaves_no_trace() {
    let kit = Kit::new().with_launchctl();
    let line = "launchd: memory-consolidate every 2 hours, memory-defrag every 24 hours";
    assert_eq!(kit.install(LAUNCHD), (Some(0), format!("{line}\n"), WARNING.to_owned()));
    let uid = rustix::process::getuid().as_raw();
    let bootstrap = |name: &str| {
        let path = kit.agents().join(format!("com.agent-memory.{name}.plist"));
        format!("launchctl bootstrap gui/{uid} {}", path.display())
    };
    let told = |asked: Vec<String>| -> Vec<String> {
        asked.into_iter().filter(|line| line.starts_with("launchctl boot")).collect()
    };
    assert_eq!(told(kit.asked()), [bootstrap("consolidate"), bootstrap("defrag")]);
    assert!(kit.home.join("Library/Logs/agent-memory").is_dir());

    assert_eq!(kit.install(LAUNCHD).1, format!("{line} (unchanged)\n"));
    assert!(told(kit.asked()).is_empty());

    kit.config(r#"{"schedule": {"defragIntervalHours": 48}}"#);
    assert_eq!(kit.install(LAUNCHD).0, Some(0));
    let bootout = |name: &str| format!("launchctl bootout gui/{uid}/com.agent-memory.{name}");
    assert_eq!(told(kit.asked()), [bootout("defrag"), bootstrap("defrag")]);

    fs::write(kit.home.join("Library/Logs/agent-memory/defrag.log"), "said\n").unwrap();
    assert_eq!(kit.uninstall(&[]), (Some(0), "launchd: timers removed\n".to_owned(), String::new()));
    assert_eq!(told(kit.asked()), [bootout("consolidate"), bootout("defrag")]);
    assert_eq!(files_below(&kit.home.join("Library")), Vec::<std::path::PathBuf>::new());
    assert_eq!(kit.uninstall(LAUNCHD).1, "no timers were found\n");
}

#[test]
fn an_older_launchctl_is_told_to_load() {
    let kit = Kit::new();
    kit.tool(
        "launchctl",
        "case \"$1\" in\n\
         list) [ -e \"$state/loaded-$2\" ];;\n\
         load) [ \"$2\" = -w ] || exit 1; name=${3##*/}; : > \"$state/loaded-${name%.plist}\";;\n\
         *) echo \"unknown subcommand $1\" >&2; exit 1;;\n\
         esac",
    );
    assert_eq!(kit.install(LAUNCHD).0, Some(0));
    assert!(kit.state().join("loaded-com.agent-memory.defrag").exists());
    assert!(kit.install(LAUNCHD).1.ends_with(" (unchanged)\n"));
}

#[test]
fn a_failing_launchctl_names_what_was_written() {
    let kit = Kit::new();
    // `load` ends well, and has loaded nothing.
    kit.tool(
        "launchctl",
        "case \"$1\" in load) exit 0;; *) echo 'Bootstrap failed: 5: Input/output error' >&2; exit 5;; esac",
    );
    let (code, out, err) = kit.install(LAUNCHD);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("Bootstrap failed: 5: Input/output error; written: \""), "{err}");
    assert!(err.contains("com.agent-memory.defrag.plist\""), "{err}");
}

#[test]
fn files_of_a_nix_module_are_left_alone() {
    let kit = Kit::new().with_systemctl();
    let store = kit.sandbox.work().join("store");
    let unit = store.join("abc/agent-memory-consolidate.timer");
    kit.sandbox.write(&unit, "[Timer]\n");
    let link = kit.units().join("agent-memory-consolidate.timer");
    symlink(&unit, &link);
    let run = |program: &str| {
        let output = kit.command(program).env("NIX_STORE_DIR", &store).args(SYSTEMD).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, out, err) = run("memory-install-cron");
    assert_eq!((code, out.as_str()), (Some(0), "systemd: memory-defrag every 24 hours\n"));
    let why = format!("Warning: \"{}\" comes from a Nix module and is not changed;", link.display());
    assert!(err.contains(&why) && err.contains("services.agent-memory"), "{err}");
    assert!(!kit.units().join("agent-memory-consolidate.service").exists());
    assert!(kit.asked().contains(&"systemctl --user enable agent-memory-defrag.timer".to_owned()));
    let (code, _, err) = run("memory-uninstall-cron");
    assert!(code == Some(0) && err.contains(&why), "{err}");
    assert_eq!(files_below(&kit.units()), [link]);
}

#[test]
fn an_agent_that_a_nix_module_copied_is_left_alone() {
    let kit = Kit::new().with_launchctl();
    let path = kit.agents().join("com.agent-memory.defrag.plist");
    kit.sandbox.write(&path, "<string>/nix/store/abc-axe/bin/memory-defrag</string>");
    let (code, out, err) = kit.install(LAUNCHD);
    assert_eq!((code, out.as_str()), (Some(0), "launchd: memory-consolidate every 2 hours\n"));
    assert!(err.contains("comes from a Nix module and is not changed"), "{err}");
    assert_eq!(kit.uninstall(&[]).1, "launchd: timers removed\n");
    assert_eq!(files_below(&kit.home), [path]);
}

#[test]
fn somebody_elses_file_of_that_name_is_left_alone() {
    let kit = Kit::new().with_systemctl();
    let path = kit.units().join("agent-memory-defrag.timer");
    kit.sandbox.write(&path, "[Timer]\nOnCalendar=daily\n");
    let (code, _, err) = kit.install(SYSTEMD);
    assert!(code == Some(1) && err.contains("was not written by memory-install-cron"), "{err}");
    let (code, _, err) = kit.uninstall(&[]);
    assert!(code == Some(0) && err.contains("was not written by memory-install-cron"), "{err}");
    assert_eq!(files_below(&kit.units()), [path]);
    assert!(kit.asked().is_empty());
}

#[test]
fn a_linked_unit_file_stays_a_link() {
    let kit = Kit::new().with_systemctl();
    kit.install(SYSTEMD);
    let path = kit.units().join("agent-memory-consolidate.timer");
    let dotfile = kit.home.join("dotfiles/timer");
    fs::create_dir_all(dotfile.parent().unwrap()).unwrap();
    fs::rename(&path, &dotfile).unwrap();
    symlink(&dotfile, &path);
    kit.config(r#"{"schedule": {"consolidateIntervalHours": 3}}"#);
    assert_eq!(kit.install(SYSTEMD).0, Some(0));
    assert!(path.is_symlink() && fs::read_to_string(dotfile).unwrap().contains("=3h\n"));
}

#[test]
fn a_second_scheduler_is_warned_of() {
    let kit = Kit::new().with_systemctl().with_crontab();
    kit.install(CRONTAB);
    let (code, _, err) = kit.install(SYSTEMD);
    assert_eq!(code, Some(0));
    assert!(
        err.contains("crontab has timers for these programs too, and both would run; remove those with: "),
        "{err}"
    );
    assert!(err.contains("memory-uninstall-cron --scheduler crontab"), "{err}");
    assert_eq!(kit.uninstall(CRONTAB).1, "crontab: timers removed\n");
    assert_eq!(kit.install(SYSTEMD).2, WARNING);
    kit.install(CRONTAB);
    assert_eq!(kit.uninstall(&[]).1, "systemd: timers removed\ncrontab: timers removed\n");
}

#[test]
fn a_configuration_that_is_named_or_trusted_goes_along() {
    let kit = Kit::new();
    kit.sandbox.file("my.json", "{}");
    let path = kit.sandbox.work().join("my.json");
    let words = |args: &[&str], variable: Option<&str>| {
        let mut command = kit.command("memory-install-cron");
        command.args(["--print", "--scheduler", "systemd"]).args(args);
        variable.into_iter().for_each(|value| {
            command.env("AGENT_MEMORY_CONFIG", value);
        });
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let expected = format!("memory-defrag --quiet --config {}\n", path.display());
    assert!(words(&["--config", "my.json"], None).contains(&expected));
    assert!(words(&[], Some("my.json")).contains(&expected));
    assert!(words(&[], None).contains("memory-defrag --quiet\n"));

    kit.config(&format!("{{\"trustedDirectories\": [\"{}\"]}}", kit.sandbox.work().display()));
    kit.sandbox.file("memory.config.json", "{}");
    assert!(words(&[], None).contains("/memory.config.json\n"));
    kit.config("{}");
    let kit = kit.with_systemctl();
    let (code, _, err) = kit.install(SYSTEMD);
    assert!(
        code == Some(0) && err.contains("memory.config.json\" is not trusted: the timers do not use it"),
        "{err}"
    );
}

#[test]
fn no_key_and_nothing_of_a_session_goes_along() {
    for scheduler in ["systemd", "launchd", "crontab"] {
        let kit = Kit::new();
        let output = kit
            .command("memory-install-cron")
            .envs([("OPENAI_API_KEY", "sk-123"), ("XDG_DATA_HOME", "/data"), ("XDG_SESSION_ID", "42")])
            .args(["--print", "--scheduler", scheduler])
            .output()
            .unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(out.contains("XDG_DATA_HOME") && out.contains("/data"), "{out}");
        assert!(!out.contains("sk-123") && !out.contains("SESSION") && !out.contains("RUNTIME"), "{out}");
    }
}

#[test]
fn a_value_that_no_file_can_hold_is_refused() {
    for (name, value, why) in [
        ("HOME", &b"/a\nb"[..], "HOME cannot go into a timer: \"/a\\nb\" contains a control character"),
        ("PATH", b"/a\xffb", "PATH cannot go into a timer: \"/a\u{fffd}b\" is not valid UTF-8"),
        ("XDG_DATA_HOME", b"/\x1b", "contains a control character"),
    ] {
        let kit = Kit::new();
        for scheduler in ["systemd", "launchd", "crontab"] {
            let output = kit
                .command("memory-install-cron")
                .env(name, std::ffi::OsStr::from_bytes(value))
                .args(["--scheduler", scheduler])
                .output()
                .unwrap();
            let err = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code() == Some(1) && err.contains(why), "{err}");
        }
    }
}

#[test]
fn a_missing_program_is_named() {
    let kit = Kit::new();
    fs::remove_file(kit.bin.join("memory-defrag")).unwrap();
    let (code, out, err) = kit.install(SYSTEMD);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    let path = kit.bin.join("memory-defrag");
    assert!(
        err.contains(&format!("the timers need the program \"{}\", which does not exist", path.display())),
        "{err}"
    );
}

#[test]
fn a_profile_that_leads_to_the_programs_is_what_the_timers_run() {
    let kit = Kit::new();
    let profile = kit.home.join("profile/bin");
    for program in ["memory-consolidate", "memory-defrag"] {
        symlink(kit.bin.join(program), profile.join(program));
    }
    let output = kit
        .command("memory-install-cron")
        .env("PATH", &profile)
        .args(["--print", "--scheduler", "systemd"])
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.contains(&format!("ExecStart={}/memory-defrag --quiet\n", profile.display())), "{out}");
}

#[test]
fn programs_that_nix_may_take_away_are_warned_of() {
    let kit = Kit::new().with_systemctl();
    let profile = kit.home.join("profile/bin");
    for program in ["memory-consolidate", "memory-defrag"] {
        symlink(kit.bin.join(program), profile.join(program));
    }
    let warned = |path: &std::path::Path| {
        let mut command = kit.command("memory-install-cron");
        command.args(SYSTEMD).env("NIX_STORE_DIR", &kit.bin);
        let path = std::env::join_paths([path, &kit.tools]).unwrap();
        let output = command.env("PATH", path).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap().matches("may be deleted when Nix collects garbage").count()
    };
    assert_eq!(warned(&profile), 0);
    assert_eq!(warned(&kit.bin), 1);
    assert_eq!(warned(&kit.home), 1);
}

#[test]
fn odd_names_install_update_and_go_without_a_trace() {
    let kit = Kit::called(ODD, "k \"i\" %t$x\\").with_crontab().with_launchctl();
    for scheduler in [LAUNCHD, CRONTAB] {
        assert_eq!(kit.install(scheduler).0, Some(0));
        assert!(kit.install(scheduler).1.ends_with(" (unchanged)\n"));
    }
    // A shell reads the crontab's words as they were.
    let text = String::from_utf8(kit.crontab().unwrap()).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("17 */2 * * * ")).unwrap();
    let output = std::process::Command::new("/bin/sh")
        .arg("-c")
        .arg(line.replace("\\%", "%").replace(
            "/memory-consolidate' --quiet",
            "/memory-install-cron' --print --json --scheduler launchd",
        ))
        .env_clear()
        .output()
        .unwrap();
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let path = kit.agents().join("com.agent-memory.consolidate.plist");
    assert_eq!(value["files"][0]["path"], path.to_str().unwrap());
    assert_eq!(value["files"][0]["content"], fs::read_to_string(path).unwrap());
    assert_eq!(kit.uninstall(&[]).1, "launchd: timers removed\ncrontab: timers removed\n");
    assert_eq!(files_below(&kit.home), Vec::<std::path::PathBuf>::new());
    assert_eq!(kit.crontab(), None);
}

#[test]
fn an_idle_run_is_silent_asks_nobody_and_writes_next_to_nothing() {
    let kit = Kit::new();
    let called = kit.sandbox.work().join("called");
    kit.config(&format!("{{\"llm\": {{\"command\": \": > '{}'\"}}}}", called.display()));
    for program in ["memory-consolidate", "memory-defrag", "memory-consolidate", "memory-defrag"] {
        assert_eq!(kit.run(program, &["--quiet"]), (Some(0), String::new(), String::new()), "{program}");
    }
    assert!(!called.exists());
    let state = kit.home.join(".local/share/agent-memory/.agent-memory");
    let files = files_below(&state);
    assert!(
        files.iter().all(|path| path.ends_with("run.lock") || path.ends_with("targets.lock")),
        "{files:?}"
    );
}
