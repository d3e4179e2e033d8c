//! `memory-uninstall-hooks`: take out what `memory-install-hooks` has put into other programs' settings.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, flag, value};
use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::signal;
use crate::harness::spec::Spec;
use crate::memory::hooks::{self, Done};
use crate::program::memory_install_hooks::{faults, print, print_json};
use std::process::ExitCode;

pub(super) const ABOUT: About = About {
    name: "memory-uninstall-hooks",
    caption: "remove those hooks from the agents' settings",
    usage: &["memory-uninstall-hooks [--harness H]... [--json]"],
    commands: &[],
    flags: &[
        value("harness", "H", "only from this one (default: from all)"),
        flag("json", "print the result as one JSON object"),
    ],
    more: "Removes every hook that runs memory-capture or memory-recall, and what memory-install-hooks made for them: \
           empty keys, files, directories. Everything else in the settings keeps its bytes. A command of your own that runs one \
           of the programs among others is not changed. If there is nothing to remove, that is not an error.\n\n    \
           memory-uninstall-hooks --harness codex --json",
    sections: &[("EXIT STATUS", "0: no hooks are left. 1: a file could not be changed; the others were.")],
};

#[derive(Debug, Default)]
struct Args {
    harnesses: Vec<&'static Spec>,
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
    let mut outcomes = hooks::uninstall(&homes, env)?;
    outcomes.retain(|outcome| !matches!(outcome.result, Ok(Done::Unchanged)));
    if args.json {
        print_json(&outcomes, false, stdout)?;
    } else if outcomes.is_empty() {
        stdout.line("no hooks were found")?;
    } else {
        print(&outcomes, stdout)?;
    }
    faults(outcomes, false, &reporter)
}
