//! What all programs have in common: help, version, man page, completions, errors, streams.

mod about;
mod arguments;
mod completions;
mod man;
mod program;
mod progress;
mod reporter;
mod stdout;

pub(crate) use about::{About, flag, value};
pub(crate) use arguments::{Arguments, apart, at_most_one, text};
pub(crate) use completions::{Shell, completions};
pub(crate) use man::{Manual, man_page, manual_page};
pub(crate) use program::{Program, VERSION};
pub(crate) use progress::Progress;
pub(crate) use reporter::Reporter;
pub(crate) use stdout::Stdout;
#[cfg(unix)]
pub(crate) use stdout::hand_on_closed_stdout;
