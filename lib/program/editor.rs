//! The person's editor, for programs that let a file be edited.

use crate::base::env::Env;
use crate::base::error::{Error, Result, reason};
use crate::base::exec::{how_it_ended, signal_of};
use crate::base::lookup;
use std::path::Path;
use std::process::ExitStatus;

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
        .map_err(|e| failed(format!("could not be started: {}", reason(&e))))?;
    match status.success() || signal_of(status).is_some() {
        true => Ok(status),
        false => Err(failed(format!("failed ({})", how_it_ended(status)))),
    }
}
