//! `memory-install-hooks`: put capture and recall into the settings of the harnesses on this machine.

use crate::base::cli::{self, About, Args, Context, ExitCode, flag, one_of};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::lookup::is_in_nix_store;
use crate::base::stderr;
use crate::harness::spec::Spec;
use crate::memory::hooks::{self, FileResult, HookOutcome, HookProgram, NAMES, Programs};
use crate::program::person::{self, only_a_person};
use serde_json::json;
use std::path::Path;

pub(super) const ABOUT: About = About {
    name: "memory-install-hooks",
    caption: "let the coding agents on this machine capture and recall",
    usage: &["memory-install-hooks [--harness H]... [--print] [--json]"],
    flags: &[
        one_of("harness", "H", NAMES, "this one, also if its directory does not exist (default: all found)"),
        flag("print", "show every file and what belongs into it, change nothing"),
        flag("json", "print the result as one JSON object"),
    ],
    text: include_str!("memory_install_hooks.md"),
    ..About::BLANK
};

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    let is_dry = args.has("print");
    if !is_dry {
        only_a_person(person::HOOKS, cx)?;
    }
    let homes = named(args, &cx.env);
    let programs = Programs::installed(&cx.env)?;
    warn_of_store(&programs, cx);
    let outcomes = hooks::install(&homes, &programs, is_dry, &cx.env)?;
    if cx.json {
        print_json(&outcomes, is_dry, cx)?;
    } else if is_dry {
        if outcomes.is_empty() {
            cx.say(&nothing_found());
        }
        for outcome in &outcomes {
            cx.stdout.line(&format!("# {}", outcome.file.display()))?;
            cx.stdout.text(&outcome.lines)?;
        }
    } else {
        print(&outcomes, cx)?;
    }
    remarks(&outcomes, is_dry, cx);
    faults(outcomes, is_dry, cx)
}

/// The harnesses of `--harness`, or all on this machine.
pub(super) fn named(args: &Args, env: &Env) -> Vec<&'static Spec> {
    match &args.texts("harness")[..] {
        [] => hooks::found(env),
        names => names.iter().filter_map(|name| hooks::named(name)).collect(),
    }
}

/// Paths in the store do not last.
pub(super) fn warn_of_store(programs: &Programs, cx: &Context) {
    let path = programs.path(HookProgram::Capture);
    if is_in_nix_store(Path::new(&path), &cx.env) {
        cx.reporter.warn(&format!(
            "the hooks run \"{path}\", which Nix may delete; install the package into a profile that is on PATH"
        ));
    }
}

pub(super) fn print(outcomes: &[HookOutcome], cx: &mut Context) -> Result<()> {
    if outcomes.is_empty() {
        return cx.stdout.line(&nothing_found());
    }
    let (gap, width) = if cx.stdout.is_terminal() { ("  ", 11) } else { ("\t", 0) };
    for outcome in outcomes {
        let Ok(done) = &outcome.result else { continue };
        let (name, file) = (outcome.harness.name, outcome.file.display());
        cx.stdout.line(&format!("{name:width$}{gap}{}{gap}{file}", word(done)))?;
        if matches!(done, FileResult::Left(_)) {
            cx.stdout.text(&outcome.lines)?;
        }
    }
    Ok(())
}

fn nothing_found() -> String {
    format!("no harness was found; name one with --harness: {}", cli::listed(NAMES.iter().copied()))
}

fn word(done: &FileResult) -> &'static str {
    match done {
        FileResult::Written => "written",
        FileResult::Removed => "removed",
        FileResult::Unchanged => "unchanged",
        FileResult::Left(_) => "left",
    }
}

pub(super) fn print_json(outcomes: &[HookOutcome], with_lines: bool, cx: &mut Context) -> Result<()> {
    let shown = |outcome: &HookOutcome| {
        let mut shown = json!({"harness": outcome.harness.name, "file": outcome.file.to_string_lossy()});
        let (result, why) = match &outcome.result {
            Ok(FileResult::Left(why)) => ("left", Some(why.clone())),
            // With --print nothing was written.
            Ok(FileResult::Written) if with_lines => ("wanted", None),
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
    cx.stdout.json(&json!({"files": outcomes.iter().map(shown).collect::<Vec<_>>()}))
}

/// What the person has to know besides the result.
pub(super) fn remarks(outcomes: &[HookOutcome], dry: bool, cx: &Context) {
    let mut told = Vec::new();
    for outcome in outcomes {
        let home = outcome.harness;
        if let Some(why) = &outcome.unreadable {
            let file = outcome.file.display();
            cx.reporter.warn(&format!("{} cannot read \"{file}\": {why}", home.title));
        }
        let is_new = dry || matches!(outcome.result, Ok(FileResult::Written));
        if let Some(wants) = home.next_step.filter(|_| is_new && !told.contains(&home.name)) {
            told.push(home.name);
            stderr::line(wants);
        }
    }
}

/// The last failure is the program's; those before it are warnings.
pub(super) fn faults(outcomes: Vec<HookOutcome>, dry: bool, cx: &Context) -> Result<()> {
    let faults = outcomes.into_iter().filter_map(|outcome| match outcome.result {
        Err(error) => Some(error),
        Ok(FileResult::Left(why)) if !dry => {
            let (file, is_ours) = (outcome.file.display(), outcome.lines.is_empty());
            let hint = if is_ours { "remove our lines by hand" } else { "add the lines by hand" };
            Some(Error::refused(format!("\"{file}\" {why}; it was left alone")).hint(hint))
        }
        Ok(_) => None,
    });
    cx.last_of(faults)
}
