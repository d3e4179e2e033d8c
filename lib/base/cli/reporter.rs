//! What goes to stderr besides errors: warnings, and the lines of `--verbose`.

use crate::base::stderr::line;
use crate::base::sync::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The warnings that are not printed yet, as they would be.
static KEPT: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Warnings are kept until it is known whether the program fails: then they are part of its error.
static KEEPS: AtomicBool = AtomicBool::new(false);

/// Prints warnings and verbose lines. Most of a sub-agent have a prefix, and appear only with
/// `--verbose`.
#[derive(Debug, Clone, Copy)]
pub struct Reporter {
    prefix: &'static str,
    warnings: bool,
    verbose: bool,
}

impl Reporter {
    pub fn new(verbose: bool) -> Reporter {
        Reporter { prefix: "", warnings: true, verbose }
    }

    /// For what another load has warned of already.
    pub fn silent() -> Reporter {
        Reporter { prefix: "", warnings: false, verbose: false }
    }

    /// The reporter of a program whose errors are JSON, if `keeps`: stderr is one object then.
    pub fn keeping(verbose: bool, keeps: bool) -> Reporter {
        KEEPS.store(keeps, Relaxed);
        Reporter::new(verbose)
    }

    /// The warnings that were kept since the last time.
    pub fn kept() -> Vec<String> {
        std::mem::take(&mut *lock(&KEPT))
    }

    /// The reporter of an agent that this one calls.
    pub fn for_sub_agent(&self) -> Reporter {
        Reporter { prefix: "[sub-agent] ", warnings: self.verbose, ..*self }
    }

    /// `Warning: …`. The program's own warnings always appear.
    pub fn warn(&self, message: &str) {
        if self.warnings {
            self.show(self.prefix, message);
        }
    }

    /// The same, also of a sub-agent, and without its prefix.
    pub fn warn_always(&self, message: &str) {
        self.show("", message);
    }

    fn show(&self, prefix: &str, message: &str) {
        match KEEPS.load(Relaxed) {
            true => lock(&KEPT).push(format!("{prefix}Warning: {message}")),
            false => line(&format!("{prefix}Warning: {message}")),
        }
    }

    /// A line that appears only with `--verbose`.
    pub fn verbose(&self, message: &str) {
        if self.verbose {
            line(&format!("{}{message}", self.prefix));
        }
    }

    pub fn is_verbose(&self) -> bool {
        self.verbose
    }
}
