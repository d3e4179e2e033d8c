//! What is longer than the screen of a person goes through a pager.

use crate::base::cli::{Context, Meaning, Table};
use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::lookup;
use crate::harness::shell::AgentShell;
use std::io::Write;
use std::process::Stdio;

/// Prints a text that may stand on a terminal.
pub(super) fn present(text: &str, cx: &mut Context) -> Result<()> {
    if is_paged(text, cx)? { Ok(()) } else { cx.stdout.text(text) }
}

/// A line of a report: on a terminal with its level in colour, in a pipe with tabs.
pub(super) fn print_row([level, rest @ ..]: [&str; 4], cx: &mut Context) -> Result<()> {
    if !cx.stdout.is_terminal() {
        return cx.stdout.line(&format!("{level}\t{}", rest.join("\t")));
    }
    let meaning = match level {
        "error" => Meaning::Error,
        "warning" => Meaning::Warning,
        "fixed" => Meaning::Good,
        _ => Meaning::Faint,
    };
    let level = cx.stdout.paint().paint(meaning, &format!("{level:7}")).into_owned();
    cx.stdout.line(&format!("{level}  {}", rest.join("  ")))
}

pub(super) fn present_table(table: &Table, cx: &mut Context) -> Result<()> {
    present(&table.text(cx.stdout.columns(), cx.stdout.paint()), cx)
}

/// Shows a text with the pager, if it is longer than the screen. `false`: it is to be printed.
pub(super) fn is_paged(text: &str, cx: &mut Context) -> Result<bool> {
    // Nobody presses a key in the terminal of an agent.
    let is_read = cx.stdout.is_terminal() && AgentShell::of(&cx.env).is_none();
    if !is_read || cx.stdout.fits(text) {
        return Ok(false);
    }
    cx.stdout.flush()?;
    Ok(page(text, &cx.env))
}

/// Shows a text with $PAGER, else with less if it is there and the terminal can do it. `false`: nothing showed it.
fn page(text: &str, env: &Env) -> bool {
    let has_screen = env.text("TERM").is_some_and(|term| term != "dumb");
    let pager = env.text("PAGER").or(has_screen.then_some("less -FRX"));
    let words = pager.and_then(shlex::split);
    let Some([program, arguments @ ..]) = words.as_deref() else { return false };
    // Ctrl-C ends us, so with -K it ends less, too. Colours pass with -R, and what was read stays with -X.
    let less = format!("-KRX {}", env.text("LESS").unwrap_or_default());
    let started = lookup::command(program).args(arguments).env("LESS", less).stdin(Stdio::piped()).spawn();
    let Ok(mut pager) = started else { return false };
    // Whoever has read enough leaves before the end.
    let _ = pager.stdin.take().map(|mut stdin| stdin.write_all(text.as_bytes()));
    pager.wait().is_ok_and(|status| status.success())
}
