//! What every check gets: the configuration, the store, the environment. And its result: how bad it is, which file it is
//! about, and how to fix it.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::text::one_line;
use crate::config::memory::MemoryConfig;
use crate::config::memory::search::ConfigFiles;
use crate::memory::redact::Redactor;
use crate::memory::section::{Aim, all_aims};
use crate::store::persistence::{Broken, Persistence};
use crate::store::place::Root;
use crate::store::proposal::Proposal;
use crate::store::topics::Topics;
use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Serialize, Serializer};
use std::path::{Path, PathBuf};

/// The longest text of a finding, in characters.
const TEXT_CHARS: usize = 400;

pub struct CheckContext<'a> {
    pub config: &'a MemoryConfig,
    pub root: &'a Root,
    pub env: &'a Env,
    /// What a finding about a setting names: the configuration file, or the store if there is none.
    pub config_file: PathBuf,
    /// A configuration file in the current directory that is not trusted.
    pub(super) untrusted: Option<PathBuf>,
    pub(super) redactor: Redactor,
    /// The day here.
    pub(super) today: Date,
    /// The AGENTS.md files.
    pub aims: Vec<Aim>,
    /// The changes that wait for a person.
    pub waiting: Vec<Proposal>,
    /// The files beside them that are none.
    pub(super) broken_proposals: Vec<Broken>,
}

impl<'a> CheckContext<'a> {
    /// A text of any origin, without secrets, on one line.
    pub fn cleaned(&self, text: &str) -> String {
        self.redactor.cleaned(&one_line(text, TEXT_CHARS))
    }

    pub fn new(
        config: &'a MemoryConfig,
        files: ConfigFiles,
        root: &'a Root,
        env: &'a Env,
    ) -> Result<CheckContext<'a>> {
        // If one of the user's patterns is invalid, which `setup` reports, only the built-in ones are used.
        let redactor = Redactor::of(&config.redact).or_else(|_| Redactor::new(config.redact.enabled, &[]))?;
        let ConfigFiles { main, untrusted, .. } = files;
        let config_file = main.unwrap_or_else(|| root.path().to_path_buf());
        // A directory that cannot be read is reported with the others.
        let (waiting, broken_proposals) = Topics::at(root).proposals().unwrap_or_default();
        let today = env.today();
        Ok(CheckContext {
            config,
            root,
            env,
            config_file,
            untrusted,
            redactor,
            today,
            aims: all_aims(config, root, today),
            waiting,
            broken_proposals,
        })
    }
}

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
    Change,
    Config,
    LlmCommand,
    Schema,
    DuplicateId,
    Alias,
    SupersededBy,
    Link,
    Secret,
    Danger,
    Hidden,
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
    Memory,
    Checkout,
    Permissions,
    Name,
    Promoted,
    Leftover,
    Oversized,
    Stale,
    Code,
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

/// What the checks have found.
#[derive(Default)]
pub struct Diagnosis {
    pub findings: Vec<Finding>,
    pub(super) harnesses: Vec<HarnessState>,
}

impl Diagnosis {
    pub fn error(&mut self, check: Check, file: &Path, what: impl Into<String>, mend: impl Into<String>) {
        let severity = Severity::Error;
        self.findings.push(Finding { severity, ..Finding::warning(check, file, what, mend) });
    }

    /// An error, with its own next step; `mend` if it has none.
    pub(super) fn failure(&mut self, check: Check, file: &Path, error: &Error, mend: &str) {
        self.error(check, file, error.message(), error.next_step().unwrap_or(mend));
    }

    pub fn warning(&mut self, check: Check, file: &Path, what: impl Into<String>, mend: impl Into<String>) {
        self.findings.push(Finding::warning(check, file, what, mend));
    }

    /// Without secrets, each once, the worst first.
    pub(super) fn tidy(self, cx: &CheckContext) -> (Vec<Finding>, Vec<HarnessState>) {
        let Diagnosis { mut findings, harnesses } = self;
        findings.iter_mut().for_each(|finding| finding.clean(&cx.redactor));
        // Of a store that is no directory, one finding says all.
        let root = cx.root.path();
        findings.retain(|finding| finding.file == root || !finding.file.starts_with(root) || root.is_dir());
        findings.sort();
        findings.dedup();
        (findings, harnesses)
    }

    pub(super) fn append(&mut self, mut other: Diagnosis) {
        self.findings.append(&mut other.findings);
        self.harnesses.append(&mut other.harnesses);
    }
}

/// A harness that is used here, for the person to see that all is well.
#[derive(Debug, Serialize)]
pub struct HarnessState {
    pub harness: &'static str,
    /// The settings file.
    #[serde(serialize_with = "text_of")]
    pub file: PathBuf,
    /// All hooks are there.
    #[serde(rename = "hooks")]
    pub is_whole: bool,
    #[serde(rename = "lastCapture")]
    pub last_capture: Option<Timestamp>,
    /// What there is, and what to do.
    #[serde(skip)]
    pub texts: [String; 2],
}

impl Finding {
    pub fn warning(check: Check, file: &Path, what: impl Into<String>, mend: impl Into<String>) -> Finding {
        let (what, mend) = (what.into(), mend.into());
        Finding { severity: Severity::Warning, check, file: file.to_path_buf(), what, mend, fixed: false }
    }

    /// `--fix` handles findings of this check.
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
