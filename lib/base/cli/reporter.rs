//! What goes to stderr beside errors: warnings, and the lines of `--verbose`.

use crate::base::stderr::line;

/// Who may speak, and how. A sub-agent's notes bear a prefix and are heard only with `--verbose`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reporter {
    prefix: &'static str,
    warnings: bool,
    verbose: bool,
}

impl Reporter {
    pub(crate) fn new(verbose: bool) -> Reporter {
        Reporter { prefix: "", warnings: true, verbose }
    }

    /// The notes of an agent that this one calls.
    pub(crate) fn for_sub_agent(&self) -> Reporter {
        Reporter { prefix: "[sub-agent] ", warnings: self.verbose, verbose: self.verbose }
    }

    /// `Warning: …`, always for the program itself.
    pub(crate) fn warn(&self, message: &str) {
        if self.warnings {
            line(&format!("{}Warning: {message}", self.prefix));
        }
    }

    /// A line that only `--verbose` shows.
    pub(crate) fn verbose(&self, message: &str) {
        if self.verbose {
            line(&format!("{}{message}", self.prefix));
        }
    }

    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose
    }
}
