//! A log that cannot be read or written (M6 4.2, 4.3, 5.1): one warning, no entry, and the run goes on.

use crate::support::{NOW, Said, Sandbox, entries, eventually, is_root, said, set_mode, symlink, tools};
use std::fs;
use std::path::Path;

const ON: &str = "[memory]\nenabled = true\n";

fn fifo(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Runs the agent `a` for real and dry, and expects one warning that holds `why` and the answer all the same.
fn expect_not_loaded(sandbox: &Sandbox, why: &str) {
    let (code, out, err) = said(sandbox.run("a").arg("-phello"));
    assert_eq!((code, out.as_str()), (Some(0), "hello"), "{err}");
    assert!(err.starts_with("Warning: failed to load memory for \"a\": "), "{err}");
    assert!(err.contains(why) && err.lines().count() == 1, "{err}");
    let reason = err.trim_end().strip_prefix("Warning: failed to load memory for \"a\": ").unwrap();

    let (code, out, err) = said(sandbox.run("a").args(["--dry-run", "-v"]));
    assert_eq!(code, Some(0));
    assert!(out.ends_with(&format!("\n\n--- Memory ---\n(error: {reason})\n")), "{out}");
    assert_eq!(err.matches("Warning").count(), 1, "{err}");
    assert!(!err.contains("Memory:"), "{err}");
}

/// A fault, the way to make it at the log's place, and what the warning must hold.
type Fault = (&'static str, fn(&Sandbox), &'static str);

#[test]
fn an_unreadable_log_is_one_warning_and_gets_no_entry() {
    let faults: [Fault; 5] = [
        ("a directory", |s| fs::create_dir_all(s.log_path("a")).unwrap(), "is not a regular file"),
        ("a pipe", |s| fifo(&s.log_path("a")), "is not a regular file"),
        ("a device", |s| symlink("/dev/zero", s.log_path("a")), "is not a regular file"),
        ("a symlink to itself", |s| symlink("a.md", s.log_path("a")), "symbolic links"),
        (
            "a file in its folder's place",
            |s| s.write(s.log_path("a").parent().unwrap(), "x"),
            "Not a directory",
        ),
    ];
    for (what, make, why) in faults {
        for memory in [ON.to_owned(), format!("{ON}last_n = 2\nmax_entries = 1")] {
            let sandbox = Sandbox::new();
            sandbox.agent("a", "tail -n 1", &memory);
            make(&sandbox);
            let before = fs::symlink_metadata(sandbox.log_path("a")).map(|m| (m.file_type(), m.len())).ok();
            expect_not_loaded(&sandbox, why);
            let after = fs::symlink_metadata(sandbox.log_path("a")).map(|m| (m.file_type(), m.len())).ok();
            assert_eq!(before, after, "{what}");
        }
    }
}

#[test]
fn a_log_without_read_permission_is_one_warning_and_gets_no_entry() {
    if is_root("a_log_without_read_permission_is_one_warning_and_gets_no_entry") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.agent("a", "tail -n 1", ON);
    sandbox.write_log("a", &entries(1));
    // It could be written to, but what cannot be seen is not touched.
    set_mode(&sandbox.log_path("a"), 0o200);
    expect_not_loaded(&sandbox, "Permission denied");
    set_mode(&sandbox.log_path("a"), 0o600);
    assert_eq!(sandbox.log("a"), entries(1));
}

#[test]
fn a_log_that_may_only_be_read_is_loaded_and_one_warning_tells_that_it_was_not_saved() {
    if is_root("a_log_that_may_only_be_read_is_loaded_and_one_warning_tells_that_it_was_not_saved") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", ON);
    sandbox.write_log("a", &entries(1));
    set_mode(&sandbox.log_path("a"), 0o444);
    let (code, out, err) = said(&mut sandbox.run("a"));
    assert_eq!(code, Some(0));
    assert!(out.contains("result 0"), "{out}");
    assert!(
        err.starts_with("Warning: failed to save memory for \"a\": ") && err.lines().count() == 1,
        "{err}"
    );
    assert_eq!(sandbox.log("a"), entries(1));
}

#[test]
fn a_log_that_cannot_be_saved_is_one_warning_and_success() {
    let gone = |s: &Sandbox| symlink(s.home().join("gone/log.md"), s.log_path("a"));
    let in_a_file = |s: &Sandbox| {
        // Read as missing, since the folder is; and the folder cannot be made.
        symlink(s.home().join("gone"), s.log_path("a").parent().unwrap());
    };
    for make in [gone as fn(&Sandbox), in_a_file] {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "echo ok", ON);
        make(&sandbox);
        for json in [None, Some("--json")] {
            let (code, out, err) = said(sandbox.run("a").args(json));
            assert_eq!(code, Some(0), "{err}");
            assert!(out.contains("ok"), "{out}");
            assert!(err.starts_with("Warning: failed to save memory for \"a\": "), "{err}");
            assert_eq!(err.lines().count(), 1, "{err}");
            assert!(!sandbox.home().join("gone").exists());
        }
    }
}

#[test]
fn an_entry_that_was_cut_short_is_taken_back() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "yes | head -n 1000", ON);
    // The shells count this limit in 512 or 1024 bytes: 1000 bytes are below one, the entry goes beyond both.
    let held = format!("## t\n{}", "x".repeat(990));
    for ending in ["\n", ""] {
        let held = format!("{held}{ending}");
        sandbox.write_log("a", &held);
        let mut sh = std::process::Command::new("/bin/sh");
        sh.env_clear().env("HOME", sandbox.home()).env("PATH", tools()).current_dir(sandbox.work());
        sh.args(["-c", "trap '' XFSZ; ulimit -f 2; exec \"$0\" --no-stdin a"]);
        let output = sh.arg(crate::support::binary("axe-run")).output().unwrap();
        assert_eq!(output.code(), Some(0));
        assert!(output.err().starts_with("Warning: failed to save memory for \"a\": "), "{}", output.err());
        assert_eq!(sandbox.log("a"), held);
    }
}

#[test]
fn an_append_waits_for_who_holds_the_lock_and_goes_to_the_file_that_took_the_place() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "touch asked; until [ -e go ]; do :; done; echo ok", ON);
    sandbox.write_log("a", &entries(3));
    let mut run = sandbox.std_command("axe-run");
    run.args(["a", "-pt", "--no-stdin"]).stdout(std::process::Stdio::piped());
    let mut run = run.spawn().unwrap();
    eventually("the call", || sandbox.work().join("asked").exists());
    let old = fs::File::open(sandbox.log_path("a")).unwrap();
    old.lock().unwrap();
    sandbox.file("go", "");
    // The answer is printed before the entry is written.
    std::io::Read::read_exact(run.stdout.as_mut().unwrap(), &mut [0, 0]).unwrap();
    for _ in 0..20 {
        assert_eq!(sandbox.log("a"), entries(3));
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let trimmed = sandbox.home().join("trimmed");
    sandbox.write(&trimmed, entries(1));
    fs::rename(&trimmed, sandbox.log_path("a")).unwrap();
    drop(old);
    assert_eq!(run.wait().unwrap().code(), Some(0));
    assert_eq!(sandbox.log("a"), entries(1) + &format!("## {NOW}\n**Task:** t\n**Result:** ok\n\n"));
}

#[test]
fn without_a_home_the_run_goes_on_without_its_log() {
    for home in [None, Some("")] {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "tail -n 1", ON);
        let mut run = sandbox.run("a");
        run.env("XDG_CONFIG_HOME", sandbox.home().join(".config")).env_remove("HOME");
        run.envs(home.map(|home| ("HOME", home)));
        let (code, out, err) = said(run.arg("-phello"));
        assert_eq!((code, out.as_str()), (Some(0), "hello"));
        assert!(
            err.starts_with("Warning: failed to load memory for \"a\": unable to determine data directory: "),
            "{err}"
        );
        assert_eq!(err.lines().count(), 1);
    }
}

#[test]
fn a_log_of_its_own_needs_no_home() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "echo ok", &format!("{ON}path = 'log.md'"));
    let mut run = sandbox.run("a");
    run.env("XDG_CONFIG_HOME", sandbox.home().join(".config")).env_remove("HOME");
    assert_eq!(said(run.arg("-pt")), (Some(0), "ok".into(), String::new()));
    let log = fs::read_to_string(sandbox.work().join("log.md")).unwrap();
    assert_eq!(log, format!("## {NOW}\n**Task:** t\n**Result:** ok\n\n"));
}

#[test]
fn memory_settings_below_zero_are_refused() {
    for key in ["last_n", "max_entries"] {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "echo ok", &format!("{ON}{key} = -1"));
        let expected = format!("axe-run: memory.{key} must be non-negative; correct \"");
        let (code, out, err) = said(&mut sandbox.run("a"));
        assert!(code == Some(2) && out.is_empty() && err.starts_with(&expected), "{err}");
        assert!(!sandbox.log_path("a").exists());
    }
}

#[test]
fn a_log_too_long_for_any_prompt_is_a_warning_and_still_gets_its_entry() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "echo ok", ON);
    sandbox.write_log("a", "");
    // A hole, which takes no room on the disk.
    fs::OpenOptions::new().write(true).open(sandbox.log_path("a")).unwrap().set_len(65 << 20).unwrap();
    let (code, out, err) = said(sandbox.run("a").args(["-v", "--dry-run"]));
    assert!(code == Some(0) && out.contains("--- Memory ---\n(error: 68157440 bytes of \""), "{out}");
    assert!(
        err.contains("Warning: failed to load memory for \"a\": ") && !err.contains("no memory file"),
        "{err}"
    );
    let (code, out, err) = said(&mut sandbox.run("a"));
    assert_eq!((code, out.as_str(), err.lines().count()), (Some(0), "ok", 1), "{err}");
    assert!(fs::metadata(sandbox.log_path("a")).unwrap().len() > 65 << 20, "the entry is there");
}
