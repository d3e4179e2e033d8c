//! The programs that timers run, in their own directory, and scripts instead of crontab, systemctl and launchctl. The
//! scripts keep state, and record how they were called.

use crate::support::{Sandbox, binary, set_mode, tools};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every character with a meaning in one of the three formats, and some without.
pub(crate) const ODD: &str = "hö me & <x> %h $HOME \"q\" 's' \\n;\\% @LOG@ 50%";

pub(crate) struct Kit {
    pub(crate) sandbox: Sandbox,
    pub(crate) home: PathBuf,
    /// The programs.
    pub(crate) bin: PathBuf,
    /// The only directory on PATH: it holds the scripts.
    pub(crate) tools: PathBuf,
}

impl Kit {
    pub(crate) fn new() -> Kit {
        Kit::called("home", "kit")
    }

    /// With these names for the home directory and the directory of programs.
    pub(crate) fn called(home: &str, bin: &str) -> Kit {
        let sandbox = Sandbox::on_disk();
        let top = sandbox.work();
        let kit = Kit { home: top.join(home), bin: top.join(bin), tools: top.join("tools"), sandbox };
        for dir in [&kit.home, &kit.bin, &kit.tools] {
            fs::create_dir_all(dir).unwrap();
        }
        for program in
            ["install-cron", "uninstall-cron", "consolidate", "defrag", "capture", "doctor", "status", "sync"]
        {
            let program = format!("memory-{program}");
            let (from, to) = (binary(&program), kit.bin.join(&program));
            // There is no hard link to another file system.
            if fs::hard_link(&from, &to).is_err() {
                fs::copy(&from, &to).unwrap();
            }
        }
        kit
    }

    /// Puts a script on PATH. Its calls are recorded, and `$state` names a directory that it can keep state in.
    pub(crate) fn tool(&self, name: &str, body: &str) {
        let state = self.state();
        fs::create_dir_all(&state).unwrap();
        let state = state.display();
        script(
            &self.tools.join(name),
            &format!("state='{state}'; echo \"{name} $*\" >> \"$state/asked\"; PATH={}\n{body}", tools()),
        );
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.sandbox.work().join("state")
    }

    pub(crate) fn with_crontab(self) -> Kit {
        self.tool(
            "crontab",
            "case \"$1\" in\n\
             -l) [ -f \"$state/tab\" ] && exec cat \"$state/tab\"; echo 'no crontab for ann' >&2; exit 1;;\n\
             -r) exec rm \"$state/tab\";;\n\
             -) exec cat > \"$state/tab\";;\n\
             esac; exit 2",
        );
        self
    }

    pub(crate) fn with_systemctl(self) -> Kit {
        let units = self.units();
        let units = units.display();
        self.tool(
            "systemctl",
            &format!(
                "units='{units}'; [ \"$1\" = --user ] || exit 9; shift; verb=$1; shift\n\
                 case \"$verb\" in\n\
                 daemon-reload) ;;\n\
                 enable) mkdir -p \"$units/timers.target.wants\"; for t; do ln -sf \"$units/$t\" \"$units/timers.target.wants/$t\"; done;;\n\
                 restart) for t; do : > \"$state/active-$t\"; done;;\n\
                 disable) shift; for t; do rm -f \"$units/timers.target.wants/$t\" \"$state/active-$t\"; done;;\n\
                 reset-failed) exit 1;;\n\
                 show) shift; for t; do\n\
                   echo NeedDaemonReload=no; echo Id=$t\n\
                   if [ -e \"$state/active-$t\" ]; then echo ActiveState=active; else echo ActiveState=inactive; fi\n\
                   if [ -h \"$units/timers.target.wants/$t\" ]; then echo UnitFileState=enabled; else echo UnitFileState=disabled; fi\n\
                   echo; done;;\n\
                 *) exit 9;;\n\
                 esac"
            ),
        );
        self
    }

    pub(crate) fn with_launchctl(self) -> Kit {
        self.tool(
            "launchctl",
            "case \"$1\" in\n\
             print) [ -e \"$state/loaded-${2##*/}\" ] || exit 113;;\n\
             list) [ -e \"$state/loaded-$2\" ] || exit 113;;\n\
             bootstrap) name=${3##*/}; : > \"$state/loaded-${name%.plist}\";;\n\
             bootout) rm \"$state/loaded-${2##*/}\" || exit 3;;\n\
             *) echo \"Unrecognized subcommand: $1\" >&2; exit 64;;\n\
             esac",
        );
        self
    }

    /// The calls of the scripts since the last time, one a line.
    pub(crate) fn asked(&self) -> Vec<String> {
        let path = self.state().join("asked");
        let asked = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        asked.lines().map(str::to_owned).collect()
    }

    pub(crate) fn crontab(&self) -> Option<Vec<u8>> {
        fs::read(self.state().join("tab")).ok()
    }

    pub(crate) fn units(&self) -> PathBuf {
        self.home.join(".config/systemd/user")
    }

    pub(crate) fn agents(&self) -> PathBuf {
        self.home.join("Library/LaunchAgents")
    }

    pub(crate) fn config(&self, json: &str) {
        self.sandbox.write(&self.home.join(".config/agent-memory/config.json"), json);
    }

    /// A program of the kit, with only the scripts on PATH.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.env_clear().env("PATH", &self.tools).env("HOME", &self.home).current_dir(self.sandbox.work());
        // The real user's systemd manager must not be found.
        command.env("XDG_RUNTIME_DIR", self.sandbox.work().join("run"));
        command
    }

    /// Exit code, stdout and stderr.
    pub(crate) fn run(&self, program: &str, args: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(program).args(args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    pub(crate) fn install(&self, args: &[&str]) -> (Option<i32>, String, String) {
        self.run("memory-install-cron", args)
    }

    pub(crate) fn uninstall(&self, args: &[&str]) -> (Option<i32>, String, String) {
        self.run("memory-uninstall-cron", args)
    }

    /// What `--print --json` shows.
    pub(crate) fn printed(&self, scheduler: &str) -> serde_json::Value {
        let (code, out, err) = self.install(&["--print", "--json", "--scheduler", scheduler]);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
        serde_json::from_str(&out).unwrap()
    }
}

fn script(path: &Path, body: &str) {
    fs::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
    set_mode(path, 0o755);
}

/// Every file below `dir`.
pub(crate) fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            all.extend(files_below(&path));
        } else {
            all.push(path);
        }
    }
    all.sort();
    all
}
