//! What goes into the settings of each harness. The fixtures' recordings and the vendors' documentation say in which
//! form; timeouts are in each program's unit.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::lookup::beside;
use crate::config::memory::homes::Home;
use crate::memory::hooks::jsonc::{Dialect, Json};
use crate::memory::hooks::ours::{HookProgram, end_of, mentions};
use crate::memory::hooks::settings::{Form, Hook};
use std::path::{Path, PathBuf};

/// The installed programs, by the paths that last.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    capture: String,
    recall: String,
}

impl Programs {
    pub(crate) fn installed(env: &Env) -> Result<Programs> {
        let capture = beside(HookProgram::Capture.name(), "the hooks", env)?;
        let text = |path: PathBuf| match path.to_str() {
            Some(text) if !text.contains(char::is_control) => Ok(text.to_owned()),
            _ => Err(Error::usage(format!(
                "\"{}\" cannot go into a settings file",
                path.to_string_lossy().escape_debug()
            ))
            .hint("install the toolkit at a path of plain characters")),
        };
        let recall = capture.with_file_name(HookProgram::Recall.name());
        Ok(Programs { capture: text(capture)?, recall: text(recall)? })
    }

    #[cfg(test)]
    pub(super) fn at(dir: &str) -> Programs {
        Programs { capture: format!("{dir}/memory-capture"), recall: format!("{dir}/memory-recall") }
    }

    pub(crate) fn path(&self, program: HookProgram) -> &str {
        match program {
            HookProgram::Capture => &self.capture,
            HookProgram::Recall => &self.recall,
        }
    }

    fn command(&self, program: HookProgram, harness: &str) -> Json {
        let path = self.path(program);
        let quoted = shlex::try_quote(path).unwrap_or_else(|_| path.into());
        Json::Text(format!("{quoted}{}", end_of(harness)))
    }
}

/// How our hooks get into a harness.
pub(super) enum Way {
    /// Entries in a settings file.
    Settings { path: PathBuf, form: Form, hooks: Vec<Hook> },
    /// Files that are ours alone.
    Files(Vec<OwnFile>),
}

pub(super) struct OwnFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// What every file of ours says about itself.
pub(super) const MARK: &str = "agent-memory";

struct Event(&'static str, HookProgram, u64);

use HookProgram::{Capture, Recall};

const CLAUDE_CODE: &[Event] = &[
    Event("SessionStart", Recall, 5),
    Event("UserPromptSubmit", Recall, 5),
    Event("Stop", Capture, 10),
    // Without one it gets 1.5 s.
    Event("SessionEnd", Capture, 10),
];

/// Codex reduces a longer timeout of the last two, with a warning at each start.
const CODEX: &[Event] = &[
    Event("SessionStart", Recall, 5),
    Event("UserPromptSubmit", Recall, 5),
    Event("Stop", Capture, 10),
    Event("Interrupt", Capture, 3),
    Event("SessionEnd", Capture, 3),
];

const GEMINI: &[Event] = &[
    Event("SessionStart", Recall, 5000),
    Event("BeforeAgent", Recall, 5000),
    Event("AfterAgent", Capture, 10_000),
    Event("SessionEnd", Capture, 10_000),
];

const QWEN_CODE: &[Event] = CLAUDE_CODE;

const COPILOT: &[Event] = &[
    Event("sessionStart", Recall, 5),
    Event("userPromptSubmitted", Recall, 5),
    // After it, the session has lost what it was given, and does not start again.
    Event("preCompact", Recall, 5),
    Event("agentStop", Capture, 10),
    Event("sessionEnd", Capture, 10),
];

/// What a hook of Cursor's prints does not reach the model.
const CURSOR: &[Event] = &[Event("stop", Capture, 10), Event("sessionEnd", Capture, 10)];

const STRICT: Dialect = Dialect { comments: false, trailing_commas: false };
const WITH_COMMENTS: Dialect = Dialect { comments: true, trailing_commas: false };

impl Home {
    /// `None`: the program has no hooks. `programs` may be left out to find what is there.
    pub(super) fn way(&self, programs: Option<&Programs>, env: &Env) -> Option<Way> {
        let dir = self.dir(env)?;
        let groups = |dialect| Form { groups: true, command: "command", version: None, dialect };
        let (path, form, events) = match self.harness {
            "claude-code" => (dir.join("settings.json"), groups(STRICT), CLAUDE_CODE),
            "codex" => (dir.join("hooks.json"), groups(STRICT), CODEX),
            "gemini" => (dir.join("settings.json"), groups(WITH_COMMENTS), GEMINI),
            "qwen-code" => (dir.join("settings.json"), groups(WITH_COMMENTS), QWEN_CODE),
            "cursor" => {
                let form = Form { groups: false, command: "command", version: Some(1), dialect: STRICT };
                (dir.join("hooks.json"), form, CURSOR)
            }
            "copilot" => {
                let form = Form { groups: false, command: "bash", version: Some(1), dialect: STRICT };
                (copilot_file(&dir.join("hooks")), form, COPILOT)
            }
            "opencode" => return Some(Way::Files(vec![opencode_plugin(&dir, programs)])),
            "amp" => return Some(Way::Files(amp_files(&dir, programs))),
            _ => return None,
        };
        let hooks = programs.map_or_else(Vec::new, |programs| {
            events.iter().map(|event| self.hook(event, &form, programs)).collect()
        });
        Some(Way::Settings { path, form, hooks })
    }

    fn hook(&self, event: &Event, form: &Form, programs: &Programs) -> Hook {
        let Event(event, program, timeout) = *event;
        let mut members = Vec::new();
        if self.harness != "cursor" {
            members.push(("type", Json::Text("command".to_owned())));
        }
        if self.harness == "gemini" {
            members.push(("name", Json::Text(program.name().to_owned())));
        }
        members.push((form.command, programs.command(program, self.harness)));
        match self.harness {
            "cursor" => {}
            "copilot" => members.push(("timeoutSec", Json::Number(timeout))),
            _ => members.push(("timeout", Json::Number(timeout))),
        }
        let command = Json::Object(members);
        let entry = match form.groups {
            true => Json::Object(vec![("hooks", Json::List(vec![command]))]),
            false => command,
        };
        Hook { event, program, entry }
    }

    /// Does it have hooks for this program?
    pub(super) fn has(&self, program: HookProgram) -> bool {
        program == Capture || self.recalls()
    }

    /// Do its sessions get notes by a hook?
    pub(crate) fn recalls(&self) -> bool {
        !matches!(self.harness, "amp" | "cursor")
    }

    /// What the person has to do in the program itself.
    pub(crate) fn still_wants(&self) -> Option<&'static str> {
        match self.harness {
            "codex" => Some(
                "Codex runs only hooks that you trust, and \"codex exec\" skips the others silently: start codex once \
                 and choose \"Trust all\"",
            ),
            "amp" => {
                Some("Amp loads the plugin after \"plugins: reload\" in its command palette, or a restart")
            }
            _ => None,
        }
    }
}

/// Copilot reads every file of the directory: the one with hooks of ours, else a new one.
fn copilot_file(dir: &Path) -> PathBuf {
    let mut files: Vec<PathBuf> = fs_err::read_dir(dir)
        .map(|entries| entries.filter_map(Result::ok).map(|entry| entry.path()).collect())
        .unwrap_or_default();
    files.sort();
    let has_ours = |path: &PathBuf| {
        path.extension().is_some_and(|ending| ending == "json")
            && file::read(path, CAP).is_ok_and(|bytes| {
                let text = String::from_utf8_lossy(&bytes);
                HookProgram::ALL.iter().any(|program| mentions(&text, program.name()))
            })
    };
    files.into_iter().find(has_ours).unwrap_or_else(|| dir.join("agent-memory.json"))
}

/// Settings have some kilobytes.
pub(super) const CAP: u64 = 4 << 20;

fn opencode_plugin(dir: &Path, programs: Option<&Programs>) -> OwnFile {
    // opencode reads both directories.
    let plugins = ["plugin", "plugins"].map(|name| dir.join(name));
    let place = plugins.iter().find(|dir| dir.join("agent-memory.js").exists());
    let place = place.or_else(|| plugins.iter().find(|dir| dir.is_dir())).unwrap_or(&plugins[0]);
    let text = include_str!("../../../examples/opencode/memory.js");
    OwnFile { path: place.join("agent-memory.js"), text: filled(text, programs) }
}

fn amp_files(dir: &Path, programs: Option<&Programs>) -> Vec<OwnFile> {
    let skill = include_str!("../../../examples/amp/SKILL.md");
    let plugin = include_str!("../../../examples/amp/memory.ts");
    vec![
        OwnFile { path: dir.join("skills/agent-memory/SKILL.md"), text: skill.to_owned() },
        OwnFile { path: dir.join("plugins/agent-memory.ts"), text: filled(plugin, programs) },
    ]
}

/// The example with the programs' full paths.
fn filled(text: &str, programs: Option<&Programs>) -> String {
    let Some(programs) = programs else { return text.to_owned() };
    HookProgram::ALL.iter().fold(text.to_owned(), |text, program| {
        let path = serde_json::Value::from(programs.path(*program)).to_string();
        text.replace(&format!(" = \"{}\"", program.name()), &format!(" = {path}"))
    })
}
