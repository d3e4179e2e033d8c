//! The result of a check: how bad it is, which file it is about, and how to fix it.

use crate::base::text::one_line;
use crate::memory::redact::Redactor;
use serde::{Serialize, Serializer};
use std::path::{Path, PathBuf};

/// The longest text of a finding, in characters.
const TEXT_CHARS: usize = 400;

/// The worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something is unreadable, ambiguous or at risk, or does not work.
    Error,
    /// Something is out of order; nothing is lost by it.
    Warning,
}

/// The check that made a finding. Findings of one severity are listed in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    Store,
    Config,
    LlmCommand,
    Schema,
    DuplicateId,
    Alias,
    SupersededBy,
    Link,
    Secret,
    Danger,
    Ledger,
    Batch,
    Queue,
    Failed,
    Review,
    Target,
    HotBudget,
    GitLock,
    History,
    Sync,
    Schedule,
    Recall,
    Hooks,
    Permissions,
    Name,
    Promoted,
    Leftover,
    Oversized,
    Stale,
    Expired,
}

impl Check {
    pub fn name(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => name,
            _ => String::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    pub severity: Severity,
    pub check: Check,
    #[serde(serialize_with = "text_of")]
    pub file: PathBuf,
    pub what: String,
    pub mend: String,
    /// Fixed by this run.
    pub(super) fixed: bool,
}

fn text_of<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

impl Finding {
    fn new(severity: Severity, check: Check, file: &Path, what: String, mend: &str) -> Finding {
        let mend = mend.to_owned();
        Finding { severity, check, file: file.to_path_buf(), what, mend, fixed: false }
    }

    pub(super) fn error(check: Check, file: &Path, what: impl Into<String>, mend: &str) -> Finding {
        Finding::new(Severity::Error, check, file, what.into(), mend)
    }

    pub fn warning(check: Check, file: &Path, what: impl Into<String>, mend: &str) -> Finding {
        Finding::new(Severity::Warning, check, file, what.into(), mend)
    }

    /// Does `--fix` handle findings of this check?
    pub fn is_fixable(&self) -> bool {
        matches!(self.check, Check::Name | Check::Promoted | Check::Leftover | Check::GitLock)
    }

    /// Redacts secrets, which may be in any name or value, and shortens the texts to one line.
    pub(super) fn clean(&mut self, redactor: &Redactor) {
        for text in [&mut self.what, &mut self.mend] {
            *text = redactor.cleaned(&one_line(text, TEXT_CHARS));
        }
        let name = self.file.to_string_lossy();
        // Not always: a path that is not UTF-8 would change.
        let cleaned = redactor.cleaned(&name);
        if cleaned != name {
            self.file = PathBuf::from(cleaned);
        }
    }
}
