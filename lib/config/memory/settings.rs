//! All settings of the memory family: key, allowed values and default.

use crate::base::deadline::LONGEST_SECONDS;
use serde_json::{Map, Value};

/// The allowed values of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Flag,
    Number {
        least: u64,
        most: u64,
    },
    /// A directory, whether it exists or not.
    Directory,
    Directories,
    /// Files that get a managed section: a path, or a path and the repository whose notes it gets.
    Targets,
    /// A shell command, the name of a preset, or null.
    Command,
    /// The address of a git remote, or null.
    Remote,
    /// Shell commands by name.
    Commands,
    /// A command that is split into words without a shell.
    Words {
        needs: Option<&'static str>,
    },
    Texts,
    /// Times, as `daily` or `Mon..Fri 07:00`, or null.
    Calendar,
}

#[derive(Debug)]
pub(crate) struct SettingSpec {
    pub(crate) key: &'static str,
    pub(crate) kind: ValueKind,
    /// As JSON. It is null for the root, which depends on the home directory.
    default: &'static str,
}

const fn known(key: &'static str, kind: ValueKind, default: &'static str) -> SettingSpec {
    SettingSpec { key, kind, default }
}

const fn number(least: u64, most: u64) -> ValueKind {
    ValueKind::Number { least, most }
}

const BYTES: ValueKind = number(1_000, 100_000_000);
const HOURS: ValueKind = number(1, 366 * 24);
const SESSION: ValueKind = ValueKind::Words { needs: Some("{threadId}") };

pub(crate) const SETTINGS: &[SettingSpec] = &[
    known("storage.root", ValueKind::Directory, "null"),
    known("storage.autoCommit", ValueKind::Flag, "true"),
    known(
        "storage.commitHook",
        ValueKind::Words { needs: None },
        r#""git commit --trailer 'Thread-Id: {threadId}'""#,
    ),
    known("llm.command", ValueKind::Command, "null"),
    known("llm.presets", ValueKind::Commands, "{}"),
    known("llm.timeoutSeconds", number(1, LONGEST_SECONDS), "600"),
    known("llm.maxPromptBytes", BYTES, "200000"),
    known("llm.maxReplyBytes", BYTES, "4000000"),
    known("llm.maxNoteBytes", BYTES, "16000"),
    known("llm.maxCallsPerRun", number(0, 10_000), "20"),
    known("llm.maxCallsPerDay", number(0, 100_000), "100"),
    known("schedule.consolidateIntervalHours", HOURS, "2"),
    known("schedule.defragIntervalHours", HOURS, "24"),
    known("schedule.consolidate", ValueKind::Calendar, "null"),
    known("schedule.defrag", ValueKind::Calendar, "null"),
    known("sync.remote", ValueKind::Remote, "null"),
    known("agentsMd.targets", ValueKind::Targets, "[]"),
    known("agentsMd.maxHotTokens", number(0, 1_000_000), "2500"),
    known("agentsMd.maxWarm", number(0, 100_000), "100"),
    known("harnesses.amp.readCommand", SESSION, r#""amp threads markdown {threadId}""#),
    known("harnesses.opencode.readCommand", SESSION, r#""opencode export {threadId}""#),
    known("redact.enabled", ValueKind::Flag, "true"),
    known("redact.patterns", ValueKind::Texts, "[]"),
    known("trustedDirectories", ValueKind::Directories, "[]"),
];

/// The effective value, and where it comes from.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) key: &'static str,
    pub(crate) value: Value,
    /// `default`, or a file.
    pub(crate) source: String,
}

/// All settings, in the order of [`SETTINGS`].
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) all: Vec<Setting>,
}

impl Settings {
    pub(crate) fn defaults() -> Settings {
        let setting = |known: &SettingSpec| Setting {
            key: known.key,
            value: serde_json::from_str(known.default).unwrap_or_default(),
            source: "default".to_owned(),
        };
        Settings { all: SETTINGS.iter().map(setting).collect() }
    }

    pub(crate) fn set(&mut self, key: &str, value: Value, source: &str) {
        if let Some(setting) = self.all.iter_mut().find(|setting| setting.key == key) {
            setting.value = value;
            source.clone_into(&mut setting.source);
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Setting> {
        self.all.iter().find(|setting| setting.key == key)
    }

    /// One object in the form of the file.
    pub(crate) fn nested(&self) -> Value {
        let mut whole = Map::new();
        for setting in &self.all {
            put(&mut whole, setting.key, setting.value.clone());
        }
        Value::Object(whole)
    }
}

fn put(object: &mut Map<String, Value>, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            object.insert(key.to_owned(), value);
        }
        Some((section, rest)) => {
            let inner = object.entry(section).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_json_and_few_are_null() {
        for known in SETTINGS {
            assert!(serde_json::from_str::<Value>(known.default).is_ok(), "{}", known.key);
        }
        let defaults = Settings::defaults();
        let null: Vec<_> = defaults.all.iter().filter(|s| s.value.is_null()).map(|s| s.key).collect();
        assert_eq!(
            null,
            ["storage.root", "llm.command", "schedule.consolidate", "schedule.defrag", "sync.remote"]
        );
        assert_eq!(defaults.nested()["harnesses"]["amp"]["readCommand"], "amp threads markdown {threadId}");
    }
}
