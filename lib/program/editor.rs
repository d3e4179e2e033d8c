//! The person's editor, for programs that let a file be edited, and their pager.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::exec::signal_of;
use crate::base::lookup;
use std::io::Write;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

/// Opens the file in $VISUAL, else in $EDITOR, and waits for the editor's end.
///
/// # Errors
/// None is set, or it cannot be started, or it failed otherwise than by a signal.
pub(super) fn edit(path: &Path, env: &Env) -> Result<ExitStatus> {
    let editor = env.text("VISUAL").or_else(|| env.text("EDITOR")).ok_or_else(|| {
        Error::usage("$EDITOR environment variable is not set").hint("set it, for example: EDITOR=vi")
    })?;
    let words = shlex::split(editor)
        .ok_or_else(|| Error::usage(format!("the editor's command line has an unclosed quote: {editor}")))?;
    let [program, arguments @ ..] = &words[..] else {
        return Err(Error::usage(format!("the editor's command line names no program: \"{editor}\"")));
    };
    // While the editor runs, Ctrl-C is for the editor; afterwards we check what it wrote.
    #[cfg(unix)]
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGQUIT] {
        let _ = signal_hook::flag::register(signal, std::sync::Arc::default());
    }
    let failed = |why: String| Error::io(format!("editor \"{program}\" {why}"));
    let status = lookup::command(program)
        .args(arguments)
        .arg(path)
        .status()
        .map_err(|e| failed(format!("could not be started: {e}")))?;
    match status.success() || signal_of(status).is_some() {
        true => Ok(status),
        false => Err(failed(format!("failed ({status})"))),
    }
}

/// Shows a text with $PAGER, else with less if it is there and the terminal can do it. `false`: nothing showed it.
pub(super) fn page(text: &str, env: &Env) -> bool {
    let has_screen = env.text("TERM").is_some_and(|term| term != "dumb");
    // With -X, what was read stays above the question; Ctrl-C ends us, so with -K it ends less, too.
    let pager = env.text("PAGER").or(has_screen.then_some("less -X"));
    let words = pager.and_then(shlex::split);
    let Some([program, arguments @ ..]) = words.as_deref() else { return false };
    let less = format!("-K {}", env.text("LESS").unwrap_or_default());
    let started = lookup::command(program).args(arguments).env("LESS", less).stdin(Stdio::piped()).spawn();
    let Ok(mut pager) = started else { return false };
    // Whoever has read enough leaves before the end.
    let _ = pager.stdin.take().map(|mut stdin| stdin.write_all(text.as_bytes()));
    pager.wait().is_ok_and(|status| status.success())
}
