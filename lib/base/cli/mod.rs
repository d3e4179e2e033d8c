//! What all programs have in common: help, version, man page, completions, errors, streams.

mod about;
mod args;
mod completions;
mod flag;
mod man;
mod paint;
mod program;
mod progress;
mod reporter;
mod stdout;
mod table;

pub use about::About;
#[cfg(test)]
pub use args::accepts;
pub use args::{Args, listed};
pub use completions::{Completer, completer};
pub use flag::{Completes, Flag, FlagRule, Words, count, flag, one_of, path, seconds, value};
pub use man::{Manual, man_page, manual_page};
pub use paint::{Meaning, Paint};
pub use program::{Context, VERSION, main, main_or, say};
pub use progress::Progress;
pub use reporter::Reporter;
pub use std::process::ExitCode;
pub use stdout::Stdout;
#[cfg(unix)]
pub use stdout::hand_on_closed_stdout;
pub use table::{Cell, Column, MatchFinder, Table};
