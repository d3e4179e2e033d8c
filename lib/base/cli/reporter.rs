//! What goes to stderr besides errors: warnings, and the lines of `--verbose`.

use crate::base::stderr::line;

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

    /// The reporter of an agent that this one calls.
    pub fn for_sub_agent(&self) -> Reporter {
        Reporter { prefix: "[sub-agent] ", warnings: self.verbose, verbose: self.verbose }
    }

    /// `Warning: …`. The program's own warnings always appear.
    pub fn warn(&self, message: &str) {
        if self.warnings {
            line(&format!("{}Warning: {message}", self.prefix));
        }
    }

    /// The same, also of a sub-agent, and without its prefix.
    pub fn warn_always(&self, message: &str) {
        line(&format!("Warning: {message}"));
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
