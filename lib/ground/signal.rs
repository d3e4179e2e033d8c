//! SIGINT, SIGTERM, SIGHUP and SIGQUIT: end what we started, let a half-done write finish, leave with 128+N.

use std::sync::{Mutex, MutexGuard, PoisonError};

static SHIELD: Mutex<()> = Mutex::new(());

/// While this is held, a signal waits. For writes that must not be torn: microseconds, never a wait.
pub(crate) fn shield() -> MutexGuard<'static, ()> {
    SHIELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From here on a signal ends the program's commands too, each with its whole process group.
///
/// A signal that was ignored when the program started (`nohup`, a background job) stays ignored.
#[cfg(unix)]
pub(crate) fn watch(program: &'static str) {
    use crate::ground::{cli, exec};
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

    let ignored = ignored_at_start();
    let wanted: Vec<i32> = [SIGHUP, SIGINT, SIGQUIT, SIGTERM]
        .into_iter()
        .filter(|signal| ignored & (1 << (signal - 1)) == 0)
        .collect();
    // Without the thread a signal still ends the program, only less tidily.
    let Ok(mut signals) = signal_hook::iterator::Signals::new(wanted) else { return };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            exec::end_all();
            let _finish_the_write = shield();
            let name = match signal {
                SIGHUP => "SIGHUP",
                SIGINT => "SIGINT",
                SIGQUIT => "SIGQUIT",
                _ => "SIGTERM",
            };
            cli::line(&format!("{program}: ended by {name}"));
            leave(128 + signal);
        }
    });
}

#[cfg(unix)]
#[allow(clippy::exit, clippy::disallowed_methods, reason = "a signal ends the program from its own thread")]
fn leave(code: i32) -> ! {
    std::process::exit(code)
}

#[cfg(not(unix))]
pub(crate) fn watch(_program: &'static str) {}

/// The set of ignored signals, bit N-1 for signal N. Known on Linux only; elsewhere none counts as ignored.
#[cfg(unix)]
fn ignored_at_start() -> u64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0)
}
