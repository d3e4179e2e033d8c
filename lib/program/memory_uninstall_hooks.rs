//! `memory-uninstall-hooks`: take out what `memory-install-hooks` has put into other programs' settings.

use crate::base::cli::{self, About, Args, Context, ExitCode, flag, one_of};
use crate::base::error::Result;
use crate::memory::hooks::{self, FileResult, NAMES};
use crate::program::memory_install_hooks::{faults, named, print, print_json};
use crate::program::person::{self, only_a_person};

pub(super) const ABOUT: About = About {
    name: "memory-uninstall-hooks",
    caption: "remove those hooks from the agents' settings",
    usage: &["memory-uninstall-hooks [--harness H]... [--json]"],
    flags: &[
        one_of("harness", "H", NAMES, "only from this one (default: from all)"),
        flag("json", "print the result as one JSON object"),
    ],
    text: include_str!("memory_uninstall_hooks.md"),
    ..About::BLANK
};

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    only_a_person(person::HOOKS, cx)?;
    let mut outcomes = hooks::uninstall(&named(args, &cx.env), &cx.env)?;
    outcomes.retain(|outcome| !matches!(outcome.result, Ok(FileResult::Unchanged)));
    if cx.json {
        print_json(&outcomes, false, cx)?;
    } else if outcomes.is_empty() {
        cx.stdout.line("no hooks were found")?;
    } else {
        print(&outcomes, cx)?;
    }
    faults(outcomes, false, cx)
}
