//! All settings of the memory family: key, allowed values and default.

use crate::base::deadline::LONGEST_SECONDS;
use crate::harness::name::{Harness, is_program_name};
use serde_json::{Value, json};

/// The allowed values of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    Flag,
    /// From the first to the second.
    Number(u64, u64),
    /// A directory, whether it exists or not.
    Directory,
    Directories,
    /// Files that get a managed section: a path, or a path and the repository whose notes it gets.
    Targets,
    /// A shell command, the name of a preset, or null.
    Command,
    /// The address of a git remote, or null.
    Remote,
    /// One of these words, or null.
    Word(&'static [&'static str]),
    /// Shell commands by name.
    Commands,
    /// A command that is split into words without a shell, one of which contains this.
    Words(Option<&'static str>),
    Texts,
    /// Times, as `daily` or `Mon..Fri 07:00`, or null.
    Calendar,
}

#[derive(Debug)]
pub struct SettingSpec {
    pub key: &'static str,
    pub kind: ValueKind,
    /// As JSON. It is null for the root, which depends on the home directory.
    default: &'static str,
}

const fn known(key: &'static str, kind: ValueKind, default: &'static str) -> SettingSpec {
    SettingSpec { key, kind, default }
}

const BYTES: ValueKind = ValueKind::Number(1_000, 100_000_000);
const HOURS: ValueKind = ValueKind::Number(1, 366 * 24);
const SESSION: ValueKind = ValueKind::Words(Some("{threadId}"));

pub const SETTINGS: &[SettingSpec] = &[
    known("storage.root", ValueKind::Directory, "null"),
    known("storage.autoCommit", ValueKind::Flag, "true"),
    known("storage.commitHook", ValueKind::Words(None), r#""git commit --trailer 'Thread-Id: {threadId}'""#),
    known("llm.command", ValueKind::Command, "null"),
    known("llm.presets", ValueKind::Commands, "{}"),
    known("llm.timeoutSeconds", ValueKind::Number(1, LONGEST_SECONDS), "600"),
    known("llm.maxPromptBytes", BYTES, "200000"),
    known("llm.maxReplyBytes", BYTES, "4000000"),
    known("llm.maxNoteBytes", BYTES, "16000"),
    known("llm.maxCallsPerRun", ValueKind::Number(0, 10_000), "20"),
    known("llm.maxCallsPerDay", ValueKind::Number(0, 100_000), "100"),
    known("capture.sweep", ValueKind::Flag, "true"),
    known("capture.memories", ValueKind::Flag, "true"),
    known("schedule.consolidateIntervalHours", HOURS, "2"),
    known("schedule.defragIntervalHours", HOURS, "24"),
    known("schedule.consolidate", ValueKind::Calendar, "null"),
    known("schedule.defrag", ValueKind::Calendar, "null"),
    known("sync.remote", ValueKind::Remote, "null"),
    known("sync.trust", ValueKind::Word(&["own", "shared"]), "null"),
    known("recall.subagents", ValueKind::Flag, "true"),
    known("recall.beforeActs", ValueKind::Flag, "true"),
    known("recall.shared", ValueKind::Flag, "true"),
    known("agentsMd.targets", ValueKind::Targets, "[]"),
    known("agentsMd.maxHotTokens", ValueKind::Number(0, 1_000_000), "2500"),
    known("agentsMd.maxWarmTokens", ValueKind::Number(0, 1_000_000), "1500"),
    known("agentsMd.maxWarm", ValueKind::Number(0, 100_000), "null"),
    known("harnesses.amp.readCommand", SESSION, r#""amp threads markdown {threadId}""#),
    known("harnesses.opencode.readCommand", SESSION, r#""opencode export {threadId}""#),
    known("redact.enabled", ValueKind::Flag, "true"),
    known("redact.patterns", ValueKind::Texts, "[]"),
    known("trustedDirectories", ValueKind::Directories, "[]"),
];

/// The setting that has taken the place of this one.
pub fn replaced(key: &str) -> Option<&'static str> {
    (key == "agentsMd.maxWarm").then_some("agentsMd.maxWarmTokens")
}

/// The effective value, and where it comes from.
#[derive(Debug)]
pub struct Setting {
    pub key: String,
    pub value: Value,
    /// `default`, or a file.
    pub source: String,
}

/// All settings, in the order of [`SETTINGS`].
#[derive(Debug)]
pub struct Settings {
    pub all: Vec<Setting>,
}

impl Settings {
    pub fn defaults() -> Settings {
        let setting = |known: &SettingSpec| Setting {
            key: known.key.to_owned(),
            value: serde_json::from_str(known.default).unwrap_or_default(),
            source: "default".to_owned(),
        };
        // One that was replaced is shown only where somebody has set it.
        let known = SETTINGS.iter().filter(|known| replaced(known.key).is_none());
        Settings { all: known.map(setting).collect() }
    }

    pub fn set(&mut self, key: &str, value: Value, source: &str) {
        let source = source.to_owned();
        if let Some(setting) = self.all.iter_mut().find(|setting| setting.key == key) {
            (setting.value, setting.source) = (value, source);
            return;
        }
        // Programs stand together.
        let is_of_program = |setting: &Setting| harness_of(&setting.key).is_some();
        let last = harness_of(key).and_then(|_| self.all.iter().rposition(is_of_program));
        let setting = Setting { key: key.to_owned(), value, source };
        self.all.insert(last.map_or(self.all.len(), |last| last + 1), setting);
    }

    pub fn get(&self, key: &str) -> Option<&Setting> {
        self.all.iter().find(|setting| setting.key == key)
    }

    /// One object in the form of the file.
    pub fn nested(&self) -> Value {
        let mut whole = json!({});
        for setting in &self.all {
            let place = setting.key.split('.').fold(&mut whole, |section, name| &mut section[name]);
            place.clone_from(&setting.value);
        }
        whole
    }
}

/// How a session of any program is read.
const READ_COMMAND: &str = ".readCommand";

/// The harness whose `readCommand` this key is.
fn harness_of(key: &str) -> Option<&str> {
    key.strip_prefix("harnesses.")?.strip_suffix(READ_COMMAND)
}

/// The allowed values of a key. Programs under `harnesses` have any name.
pub(super) fn kind_of(key: &str) -> Option<ValueKind> {
    let known = SETTINGS.iter().find(|known| known.key == key).map(|known| known.kind);
    known.or_else(|| harness_of(key).is_some_and(is_harness).then_some(SESSION))
}

/// Whether it is the name of a program of the user's. Those that are built in, other than in [`SETTINGS`], are read from their
/// files.
fn is_harness(name: &str) -> bool {
    is_program_name(name) && Harness::named(name).is_none()
}

/// Whether there is a section of this name.
pub(super) fn is_section(key: &str) -> bool {
    let is_inside =
        |known: &SettingSpec| known.key.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'));
    SETTINGS.iter().any(is_inside) || key.strip_prefix("harnesses.").is_some_and(is_harness)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{HARNESSES, spec::CaptureSpec};

    #[test]
    fn every_default_is_json_and_few_are_null() {
        for known in SETTINGS {
            assert!(serde_json::from_str::<Value>(known.default).is_ok(), "{}", known.key);
        }
        let defaults = Settings::defaults();
        let null: Vec<_> = defaults.all.iter().filter(|s| s.value.is_null()).map(|s| &*s.key).collect();
        let optional = [
            "storage.root", "llm.command", "schedule.consolidate", "schedule.defrag", "sync.remote",
            "sync.trust",
        ];
        assert_eq!(null, optional);
        let by_id =
            HARNESSES.iter().filter(|spec| matches!(spec.capture, CaptureSpec::Id)).map(|spec| spec.name);
        let commands = defaults.nested()["harnesses"].as_object().unwrap().clone();
        assert_eq!(by_id.collect::<Vec<_>>(), commands.keys().collect::<Vec<_>>());
        assert_eq!(commands["amp"]["readCommand"], "amp threads markdown {threadId}");
    }
}
