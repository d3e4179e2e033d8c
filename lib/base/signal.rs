//! SIGINT, SIGTERM, SIGHUP and SIGQUIT: end what we started, finish the current write, exit with 128+N.

use crate::base::sync::{IS_LEFT_BEHIND, lock};
use std::sync::{Mutex, MutexGuard};

/// How long the last line may take.
#[cfg(unix)]
const LAST_LINE: std::time::Duration = std::time::Duration::from_millis(50);

type LastAct = Box<dyn FnOnce(&mut Ending) + Send>;

static LAST_ACTS: Mutex<Vec<LastAct>> = Mutex::new(Vec::new());
static SHIELD: Mutex<()> = Mutex::new(());
/// What the line about a signal says to do next.
static NEXT_STEP: Mutex<Option<String>> = Mutex::new(None);

pub fn set_next_step(step: Option<String>) {
    *lock(&NEXT_STEP) = step;
}

/// While this is held, a signal waits. For writes that must not be torn or leave files behind: microseconds for an
/// entry, longer only for a trim that keeps gigabytes.
///
/// `None` in a thread that may be left behind: it would hold up all others. Who waits for it holds the shield.
pub(super) fn shield() -> Option<MutexGuard<'static, ()>> {
    (!IS_LEFT_BEHIND.get()).then(|| lock(&SHIELD))
}

/// How a signal ends the program.
pub struct Ending<'a> {
    pub signal: &'a str,
    pub exit_code: i32,
    is_repeated: &'a mut dyn FnMut() -> bool,
}

impl Ending<'_> {
    /// Whether another signal has come: then nobody wants to wait.
    pub fn is_repeated(&mut self) -> bool {
        (self.is_repeated)()
    }
}

/// Before a signal ends the program and its commands, `act` is done in another thread; of several, the last one given first.
pub fn before_end(act: impl FnOnce(&mut Ending) + Send + 'static) {
    lock(&LAST_ACTS).push(Box::new(act));
}

/// From here on a signal also ends the program's commands, each with its whole process group. With `json` the
/// message is a JSON object, as every error is.
///
/// A signal that was ignored when the program started (`nohup`, a background job) stays ignored.
#[cfg(unix)]
pub fn watch(program: &'static str, json: bool) {
    use crate::base::{exec, stderr};
    use serde_json::json;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

    let ignored = ignored_at_start();
    let wanted: Vec<i32> = [SIGHUP, SIGINT, SIGQUIT, SIGTERM]
        .into_iter()
        .filter(|signal| ignored & (1 << (signal - 1)) == 0)
        .collect();
    let (ready, registered) = std::sync::mpsc::channel::<()>();
    // Registered in the thread: without one a signal must end the program as it always does.
    let watcher = std::thread::Builder::new().spawn(move || {
        let Ok(mut signals) = signal_hook::iterator::Signals::new(wanted) else { return };
        drop(ready);
        let first = signals.forever().next();
        if let Some(signal) = first {
            let name = signal_hook::low_level::signal_name(signal).unwrap_or_default();
            let said = format!("ended by {name}");
            let code = 128 + signal;
            let is_repeated = &mut || signals.pending().next().is_some();
            let mut ending = Ending { signal: name, exit_code: code, is_repeated };
            let acts = std::mem::take(&mut *lock(&LAST_ACTS));
            acts.into_iter().rev().for_each(|act| act(&mut ending));
            exec::end_all();
            let _finish_the_write = shield();
            let next = lock(&NEXT_STEP).take();
            let line = match json {
                true => {
                    json!({"error": {"kind": "signal", "message": said, "hint": next}, "exit_code": code})
                        .to_string()
                }
                false => {
                    format!("{program}: {said}{}", next.map_or(String::new(), |next| format!("; {next}")))
                }
            };
            stderr::last_line(&line, LAST_LINE);
            leave(code);
        }
    });
    if watcher.is_ok() {
        // Until the channel closes.
        let _ = registered.recv();
    }
}

#[cfg(unix)]
#[allow(clippy::exit, clippy::disallowed_methods, reason = "a signal ends the program from its own thread")]
fn leave(code: i32) -> ! {
    std::process::exit(code)
}

#[cfg(not(unix))]
pub fn watch(_program: &'static str, _json: bool) {}

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
