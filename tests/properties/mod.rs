//! The properties that must hold for any input: one function for each parser of foreign bytes asserts them.
//!
//! A part of the library when it is built for tests or for a fuzzer, and never shipped. The targets in
//! `fuzz_targets/` call these functions with a fuzzer's bytes; the tests here call them with the seeds and with
//! damaged copies of these, the same ones each time.
#![allow(clippy::unwrap_used, reason = "what fails here is found")]

mod agent_file;
mod consolidate_reply;
mod defrag_reply;
mod global_file;
mod hook;
mod http;
mod ledger;
mod mcp;
mod memory_config;
mod note;
mod prompt;
mod queue_entry;
mod redact;
mod run_log;
mod schedule;
mod scratch;
mod search;
pub mod section;
mod service_reply;
mod transcript;
mod words;

#[cfg(test)]
mod tests;

use crate::base::error::Error;

/// Asserts the properties for these bytes.
type Holds = fn(&[u8]);

/// Every target, by the name of its file in `fuzz_targets/` and of its directory in `seeds/`.
const TARGETS: &[(&str, Holds)] = &[
    ("agent_file", agent_file::holds),
    ("consolidate_reply", consolidate_reply::holds),
    ("defrag_reply", defrag_reply::holds),
    ("global_file", global_file::holds),
    ("hook", hook::holds),
    ("http", http::holds),
    ("ledger", ledger::holds),
    ("mcp", mcp::holds),
    ("memory_config", memory_config::holds),
    ("note", note::holds),
    ("prompt", prompt::holds),
    ("queue_entry", queue_entry::holds),
    ("redact", redact::holds),
    ("run_log", run_log::holds),
    ("schedule", schedule::holds),
    ("search", search::holds),
    ("section", section::holds),
    ("service_reply", service_reply::holds),
    ("transcript", transcript::holds),
    ("words", words::holds),
];

/// Runs the target of that name.
pub fn run(name: &str, bytes: &[u8]) {
    let (_, holds) = TARGETS.iter().find(|(target, _)| *target == name).unwrap();
    holds(bytes);
}

/// The line between two parts of an input.
const BORDER: &[u8] = b"\n====\n";

/// Splits an input into `N` parts. Missing ones are empty, and the last one has the rest.
fn parts<const N: usize>(bytes: &[u8]) -> [&[u8]; N] {
    let mut rest = Some(bytes);
    std::array::from_fn(|n| {
        let Some(all) = rest else { return &[][..] };
        match memchr::memmem::find(all, BORDER).filter(|_| n + 1 < N) {
            Some(at) => {
                rest = Some(&all[at + BORDER.len()..]);
                &all[..at]
            }
            None => {
                rest = None;
                all
            }
        }
    })
}

/// The first byte as a number below `limit`, which selects the format of the rest. A digit selects its value.
fn choice(bytes: &[u8], limit: usize) -> (usize, &[u8]) {
    match bytes {
        [first, rest @ ..] => (usize::from(first.wrapping_sub(b'0')) % limit, rest),
        [] => (0, bytes),
    }
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// A message is one line, and not empty.
fn is_told(message: &str) {
    assert!(!message.trim().is_empty(), "nothing is said");
    assert!(!message.contains('\n'), "{message:?} is more than one line");
}

fn is_told_as(error: &Error, exit_code: u8) {
    is_told(&error.line());
    assert_eq!(error.exit_code(), exit_code, "{error:?}");
}
