//! What all programs have in common: help, version, man page, completions, errors, streams.

mod about;
mod args;
mod completions;
mod flag;
mod man;
mod program;
mod progress;
mod reporter;
mod stdout;

pub(crate) use about::About;
#[cfg(test)]
pub(crate) use args::accepts;
pub(crate) use args::{Args, listed};
pub(crate) use completions::{Shell, completions};
pub(crate) use flag::{Flag, Rule, Words, count, flag, one_of, path, seconds, value};
pub(crate) use man::{Manual, man_page, manual_page};
pub(crate) use program::{Context, VERSION, main, main_or, say};
pub(crate) use progress::Progress;
pub(crate) use reporter::Reporter;
pub(crate) use stdout::Stdout;
#[cfg(unix)]
pub(crate) use stdout::hand_on_closed_stdout;
