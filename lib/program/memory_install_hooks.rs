//! `memory-install-hooks`: put capture and recall into the settings of the harnesses on this machine.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, flag, value};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::lookup::is_in_nix_store;
use crate::base::signal;
use crate::harness::spec::Spec;
use crate::memory::hooks::{self, Done, HookProgram, Outcome, Programs};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

pub(super) const ABOUT: About = About {
    name: "memory-install-hooks",
    caption: "let the coding agents on this machine capture and recall",
    usage: &["memory-install-hooks [--harness H]... [--print] [--json]"],
    commands: &[],
    flags: &[
        value("harness", "H", "this one, also if its directory does not exist (default: all found)"),
        flag("print", "show every file and what belongs into it, change nothing"),
        flag("json", "print the result as one JSON object"),
    ],
    more: "A harness is found by its directory: amp, claude-code, codex, copilot, cursor, gemini, opencode and qwen-code. \
           Its own settings file gets hooks that run memory-recall when a session starts and at each prompt, and \
           memory-capture when a turn or a session ends, by the full paths of the installed programs. opencode and Amp \
           get files of their own.\n\n\
           Nothing else in a settings file changes, comments included. A second run changes nothing, and \
           memory-uninstall-hooks restores the old bytes. An older hook of ours is replaced. A file that is \
           read-only or belongs to Nix is not changed; the lines to add are printed. A file that is not valid JSON is \
           refused with line and column.\n\n    \
           memory-install-hooks --json | jq -r '.files[] | .result + \" \" + .file'",
    sections: &[(
        "EXIT STATUS",
        "0: the hooks are in place. 1: a file could not be changed; the others were.",
    )],
};

#[derive(Debug, Default)]
pub(super) struct Args {
    harnesses: Vec<&'static Spec>,
    print: bool,
    json: bool,
}

pub fn main() -> ExitCode {
    Program { about: &ABOUT, parse, run }.main()
}

fn parse(p: &mut Arguments) -> Result<Args> {
    use lexopt::prelude::*;
    let mut args = Args::default();
    while let Some(arg) = p.next()? {
        match arg {
            Long("harness") => args.harnesses.push(p.one_of(hooks::named, &hooks::names())?),
            Long("print") => args.print = true,
            Long("json") => args.json = true,
            _ => return Err(arg.unexpected().into()),
        }
    }
    Ok(args)
}

fn run(args: Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    signal::watch(ABOUT.name, args.json);
    let reporter = Reporter::new(false);
    let homes = if args.harnesses.is_empty() { hooks::found(env) } else { args.harnesses };
    let programs = Programs::installed(env)?;
    warn_of_store(&programs, env, &reporter);
    let outcomes = hooks::install(&homes, &programs, args.print, env)?;
    if args.json {
        print_json(&outcomes, args.print, stdout)?;
    } else if args.print {
        for outcome in &outcomes {
            stdout.line(&format!("# {}", outcome.file.display()))?;
            stdout.text(&outcome.lines)?;
        }
    } else {
        print(&outcomes, stdout)?;
    }
    remarks(&outcomes, args.print, &reporter);
    faults(outcomes, args.print, &reporter)
}

/// Paths in the store do not last.
pub(super) fn warn_of_store(programs: &Programs, env: &Env, reporter: &Reporter) {
    let path = programs.path(HookProgram::Capture);
    if is_in_nix_store(Path::new(path), env) {
        reporter.warn(&format!(
            "the hooks run \"{path}\", which Nix may delete; install the package into a profile that is on PATH"
        ));
    }
}

pub(super) fn print(outcomes: &[Outcome], stdout: &mut Stdout) -> Result<()> {
    if outcomes.is_empty() {
        return stdout.line(&format!("no harness was found; name one with --harness: {}", hooks::names()));
    }
    let gap = if stdout.is_terminal() { "  " } else { "\t" };
    let width = if stdout.is_terminal() { 11 } else { 0 };
    for outcome in outcomes {
        let Ok(done) = &outcome.result else { continue };
        let (name, file) = (outcome.harness.name, outcome.file.display());
        stdout.line(&format!("{name:width$}{gap}{}{gap}{file}", word(done)))?;
        if matches!(done, Done::Left(_)) {
            stdout.text(&outcome.lines)?;
        }
    }
    Ok(())
}

fn word(done: &Done) -> &'static str {
    match done {
        Done::Written => "written",
        Done::Removed => "removed",
        Done::Unchanged => "unchanged",
        Done::Left(_) => "left",
    }
}

pub(super) fn print_json(outcomes: &[Outcome], with_lines: bool, stdout: &mut Stdout) -> Result<()> {
    let shown = |outcome: &Outcome| {
        let mut shown = json!({"harness": outcome.harness.name, "file": outcome.file.to_string_lossy()});
        let (result, why) = match &outcome.result {
            Ok(Done::Left(why)) => ("left", Some(why.clone())),
            // With --print nothing was written.
            Ok(Done::Written) if with_lines => ("wanted", None),
            Ok(done) => (word(done), None),
            Err(error) => ("failed", Some(error.message().to_owned())),
        };
        shown["result"] = json!(result);
        if let Some(why) = why {
            shown["why"] = json!(why);
        }
        if with_lines || result == "left" && !outcome.lines.is_empty() {
            shown["lines"] = json!(outcome.lines);
        }
        if let Some(wants) = outcome.harness.next_step.filter(|_| !outcome.lines.is_empty()) {
            shown["next"] = json!(wants);
        }
        shown
    };
    stdout.json(&json!({"files": outcomes.iter().map(shown).collect::<Vec<_>>()}))
}

/// What the person has to know besides the result.
pub(super) fn remarks(outcomes: &[Outcome], dry: bool, reporter: &Reporter) {
    let mut told = Vec::new();
    for outcome in outcomes {
        let home = outcome.harness;
        if let Some(why) = &outcome.unreadable {
            let file = outcome.file.display();
            reporter.warn(&format!("{} cannot read \"{file}\": {why}", home.title));
        }
        let is_new = dry || matches!(outcome.result, Ok(Done::Written));
        if let Some(wants) = home.next_step.filter(|_| is_new && !told.contains(&home.name)) {
            told.push(home.name);
            crate::base::stderr::line(wants);
        }
    }
}

/// The last failure is the program's; those before it are warnings.
pub(super) fn faults(outcomes: Vec<Outcome>, dry: bool, reporter: &Reporter) -> Result<ExitCode> {
    let mut faults: Vec<Error> = outcomes
        .into_iter()
        .filter_map(|outcome| match outcome.result {
            Err(error) => Some(error),
            Ok(Done::Left(why)) if !dry => {
                let file = outcome.file.display();
                let hint = if outcome.lines.is_empty() {
                    "remove our lines by hand"
                } else {
                    "add the lines by hand"
                };
                Some(Error::refused(format!("\"{file}\" {why}; it was left alone")).hint(hint))
            }
            Ok(_) => None,
        })
        .collect();
    let Some(last) = faults.pop() else { return Ok(ExitCode::SUCCESS) };
    faults.iter().for_each(|fault| reporter.warn(&fault.line()));
    Err(last)
}
