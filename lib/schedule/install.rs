//! Installs timers: a plan, as plain data, and what carries it out. What is already in place is left alone, so a second run
//! changes nothing.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::schedule::scheduler::{Scheduler, Tools, words};
use crate::schedule::timer::Timers;
use crate::schedule::{crontab, launchd, systemd, unit_file};
use std::path::PathBuf;
use std::time::Duration;

/// In the order in which it is carried out.
#[derive(Debug)]
pub struct InstallPlan {
    pub scheduler: Scheduler,
    /// Directories that the scheduler does not create.
    pub dirs: Vec<PathBuf>,
    pub files: Vec<(PathBuf, String)>,
    /// What goes into the crontab, including the markers.
    pub block: Option<String>,
    pub commands: Vec<Vec<String>>,
    /// What differs from the request.
    pub remarks: Vec<String>,
}

impl InstallPlan {
    pub fn new(scheduler: Scheduler, timers: &Timers, env: &Env) -> Result<InstallPlan> {
        let files = unit_file::contents(scheduler, timers, env)?;
        let (mut dirs, mut block, mut remarks) = (Vec::new(), None, Vec::new());
        let commands = match scheduler {
            Scheduler::Systemd => systemd::commands(timers),
            Scheduler::Launchd => {
                dirs.extend(if timers.all.is_empty() { None } else { Some(launchd::log_dir(env)?) });
                launchd::commands(timers, &files)
            }
            Scheduler::Crontab => {
                let (text, differing) = crontab::contents(timers)?;
                (block, remarks) = (Some(text), differing);
                vec![words(&["crontab", "-"])]
            }
        };
        Ok(InstallPlan { scheduler, dirs, files, block, commands, remarks })
    }
}

/// What was changed.
#[derive(Debug, Default)]
pub struct TimerChanges {
    pub written: Vec<PathBuf>,
    pub commands: Vec<Vec<String>>,
}

impl TimerChanges {
    pub fn is_empty(&self) -> bool {
        self.written.is_empty() && self.commands.is_empty()
    }

    /// Runs a command of the plan.
    fn run(&mut self, command: &[String], input: &[u8], tools: &Tools) -> Result<()> {
        tools.must(command, input).map_err(|error| self.partly(&error))?;
        self.commands.push(command.to_vec());
        Ok(())
    }

    /// An error that also says what was written before it.
    fn partly(&self, error: &Error) -> Error {
        let written: Vec<_> = self.written.iter().map(|path| format!("\"{}\"", path.display())).collect();
        let written = match &written[..] {
            [] => String::new(),
            written => format!("; written: {}", written.join(", ")),
        };
        Error::io(format!("{}{written}", error.line()))
            .hint("fix this and run memory-install-cron again; to undo: memory-uninstall-cron")
    }
}

pub fn install(plan: &InstallPlan, tools: &Tools) -> Result<TimerChanges> {
    let mut done = TimerChanges::default();
    // Check that all may be written before writing the first.
    for (path, _) in &plan.files {
        unit_file::ours(path)?;
    }
    for dir in &plan.dirs {
        file::make_dir(dir)?;
    }
    for (path, text) in &plan.files {
        if unit_file::write(path, text).map_err(|error| done.partly(&error))? {
            done.written.push(path.clone());
        }
    }
    match plan.scheduler {
        Scheduler::Systemd => systemd(plan, tools, &mut done)?,
        Scheduler::Launchd => launchd(plan, tools, &mut done)?,
        Scheduler::Crontab => cron(plan, tools, &mut done)?,
    }
    Ok(done)
}

fn systemd(plan: &InstallPlan, tools: &Tools, done: &mut TimerChanges) -> Result<()> {
    if plan.files.is_empty() || (done.written.is_empty() && is_active(plan, tools)) {
        return Ok(());
    }
    let explained = |error: Error| {
        match error.message().contains("does not exist") {
        true => error.hint(
            "systemd's manager looks elsewhere: it was started without this shell's XDG_CONFIG_HOME; set it in \
             ~/.config/environment.d and log in again, or unset it here",
        ),
        false => error,
    }
    };
    plan.commands.iter().try_for_each(|command| done.run(command, b"", tools).map_err(explained))
}

/// Whether the manager has loaded the current files, and their timers run.
fn is_active(plan: &InstallPlan, tools: &Tools) -> bool {
    let mut show =
        words(&["systemctl", "--user", "show", "--property=Id,UnitFileState,ActiveState,NeedDaemonReload"]);
    let names = plan.files.iter().filter_map(|(path, _)| path.file_name()?.to_str()).map(str::to_owned);
    show.extend(names);
    let Ok(answer) = tools.must(&show, b"") else { return false };
    let answer = String::from_utf8_lossy(&answer);
    // One paragraph a unit.
    let units: Vec<Vec<&str>> = answer.split("\n\n").map(|unit| unit.lines().collect()).collect();
    show[4..].iter().all(|name| {
        let is_it = |unit: &&Vec<&str>| unit.contains(&&*format!("Id={name}"));
        let Some(unit) = units.iter().find(is_it) else { return false };
        let runs = !name.ends_with(".timer")
            || (unit.contains(&"UnitFileState=enabled") && unit.contains(&"ActiveState=active"));
        runs && unit.contains(&"NeedDaemonReload=no")
    })
}

/// launchd may still be ending the old agent when the new one is loaded.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

fn launchd(plan: &InstallPlan, tools: &Tools, done: &mut TimerChanges) -> Result<()> {
    // A `bootout` and a `bootstrap` for each file.
    for ((path, _), commands) in plan.files.iter().zip(plan.commands.chunks(2)) {
        let [out, into] = commands else { continue };
        let Some(target) = out.last() else { continue };
        let was_loaded = tools.is_loaded(target);
        if was_loaded {
            if !done.written.contains(path) {
                continue;
            }
            done.run(out, b"", tools)?;
        }
        let mut loaded = tools.must(into, b"");
        for _ in 1..if was_loaded { TRIES } else { 1 } {
            if loaded.is_ok() {
                break;
            }
            std::thread::sleep(PAUSE);
            loaded = tools.must(into, b"");
        }
        let load = words(&["launchctl", "load", "-w", &path.to_string_lossy()]);
        match loaded {
            Ok(_) => done.commands.push(into.clone()),
            // Older systems have only `load`. It succeeds even if it loads nothing, so the agent is checked afterwards.
            Err(_) if tools.is_success(&load) && tools.is_loaded(target) => done.commands.push(load),
            Err(error) => return Err(done.partly(&error)),
        }
    }
    Ok(())
}

/// Vixie's cron accepts lines of less than a thousand bytes.
const LONGEST_LINE: usize = 998;

fn cron(plan: &InstallPlan, tools: &Tools, done: &mut TimerChanges) -> Result<()> {
    let old = tools.crontab()?;
    let new = crontab::with_block(&old, plan.block.as_deref())?;
    if new == old {
        return Ok(());
    }
    let is_long = plan.block.iter().flat_map(|block| block.lines()).any(|line| line.len() > LONGEST_LINE);
    let explained = |error: Error| match is_long {
        true => error.hint(format!(
            "many crons accept at most {LONGEST_LINE} bytes in a line; try with a shorter PATH: \
             PATH=/usr/local/bin:/usr/bin:/bin memory-install-cron"
        )),
        false => error,
    };
    plan.commands.iter().try_for_each(|command| done.run(command, &new, tools).map_err(explained))
}
