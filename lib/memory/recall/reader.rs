//! The programs that ask: what their hooks say, the form of the answer, and the files that each reads anyway.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Amp,
    ClaudeCode,
    Codex,
    Copilot,
    Cursor,
    Gemini,
    Opencode,
    Pi,
    QwenCode,
}

pub(crate) const READERS: &str =
    "amp, claude-code, codex, copilot, cursor, gemini, opencode, pi or qwen-code";

/// What happens in the program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A session begins, or goes on.
    Start {
        history: History,
        /// What it is given now does not reach the model.
        is_unheard: bool,
    },
    Prompt(String),
    /// The program is about to forget what the session was given. There is no start after it.
    Compaction,
    /// Nothing to answer.
    Other,
}

/// How much of what a session was given is in front of the model when it starts or goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum History {
    All,
    /// What prompts were given; the section is sent only if this hook gives it.
    Prompts,
    None,
}

/// What a hook says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(super) event: Event,
    /// As the program calls the event.
    pub(super) name: String,
    pub(super) session: Option<String>,
    pub(super) cwd: Option<PathBuf>,
}

impl Reader {
    pub(crate) fn named(name: &str) -> Option<Reader> {
        Some(match name {
            "amp" => Reader::Amp,
            "claude-code" => Reader::ClaudeCode,
            "codex" => Reader::Codex,
            "copilot" => Reader::Copilot,
            "cursor" => Reader::Cursor,
            "gemini" => Reader::Gemini,
            "opencode" => Reader::Opencode,
            "pi" => Reader::Pi,
            "qwen-code" => Reader::QwenCode,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Reader::Amp => "amp",
            Reader::ClaudeCode => "claude-code",
            Reader::Codex => "codex",
            Reader::Copilot => "copilot",
            Reader::Cursor => "cursor",
            Reader::Gemini => "gemini",
            Reader::Opencode => "opencode",
            Reader::Pi => "pi",
            Reader::QwenCode => "qwen-code",
        }
    }

    /// Does a plugin of ours ask for it? Then the start is asked for in any case, maybe after the first prompt.
    pub(super) fn is_plugin(self) -> bool {
        matches!(self, Reader::Amp | Reader::Opencode | Reader::Pi)
    }

    pub(super) fn hear(self, bytes: &[u8]) -> Result<Heard> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let object: Map<String, Value> = serde_json::from_slice(bytes)
            .map_err(|e| Error::usage(format!("the hook's JSON cannot be used: {e}")))?;
        let text = |key: &str| object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let first = |keys: &[&str]| keys.iter().find_map(|key| text(key));
        let name = text("hook_event_name").unwrap_or_default().to_owned();
        let source = text("source").unwrap_or_default();
        let history = match (self, source) {
            (_, "clear" | "compact") => History::None,
            (Reader::ClaudeCode | Reader::Codex, "resume") => History::All,
            _ => History::Prompts,
        };
        let start = Event::Start {
            history,
            // Gemini CLI runs the hook, and does not send what it says; after a resume it does so under -p alone.
            is_unheard: self == Reader::Gemini && matches!(source, "clear" | "resume"),
        };
        let is_sub_agent = ["agent_id", "agentId", "parentAgentId"].iter().any(|key| text(key).is_some());
        let event = match &*name {
            // Its prompt is the agent's, not a person's.
            _ if is_sub_agent => Event::Other,
            "SessionStart" | "sessionStart" => start,
            "UserPromptSubmit" | "userPromptSubmitted" | "BeforeAgent" => {
                Event::Prompt(first(&["prompt"]).unwrap_or_default().to_owned())
            }
            // Copilot CLI does not name its events.
            "" if object.contains_key("prompt") => {
                Event::Prompt(first(&["prompt"]).unwrap_or_default().to_owned())
            }
            "" if object.contains_key("source") || object.contains_key("initialPrompt") => start,
            "" if object.contains_key("trigger") => Event::Compaction,
            _ => Event::Other,
        };
        let roots = object.get("workspace_roots").and_then(Value::as_array);
        let root = roots.and_then(|roots| roots.first()).and_then(Value::as_str);
        let cwd = text("cwd").or(root).filter(|path| Path::new(path).is_absolute()).map(PathBuf::from);
        let session = first(&["session_id", "sessionId", "conversation_id"]).map(str::to_owned);
        Ok(Heard { event, name, session, cwd })
    }

    /// The answer in the form that the program takes.
    pub(super) fn form(self, event: &str, text: &str) -> String {
        let json = match self {
            Reader::ClaudeCode | Reader::Codex | Reader::Gemini | Reader::QwenCode => {
                json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})
            }
            Reader::Copilot => json!({"additionalContext": text}),
            Reader::Cursor => json!({"additional_context": text}),
            // Our own plugins put it where it belongs.
            Reader::Amp | Reader::Opencode | Reader::Pi => return text.to_owned() + "\n",
        };
        json.to_string() + "\n"
    }

    /// The instruction files that the program reads by itself in a session in `cwd`. Not all need to exist.
    pub(super) fn files(self, env: &Env, cwd: &Path) -> Vec<PathBuf> {
        let (variable, home, own): (_, _, &[&str]) = match self {
            Reader::Amp => (None, ".config", &["amp/AGENTS.md", "AGENTS.md"]),
            Reader::ClaudeCode => (Some("CLAUDE_CONFIG_DIR"), ".claude", &["CLAUDE.md"]),
            Reader::Codex => (Some("CODEX_HOME"), ".codex", &["AGENTS.override.md", "AGENTS.md"]),
            Reader::Copilot => (Some("COPILOT_HOME"), ".copilot", &["copilot-instructions.md"]),
            Reader::Cursor => (None, ".cursor", &[]),
            Reader::Gemini => (None, ".gemini", &["GEMINI.md"]),
            Reader::Opencode => (None, ".config/opencode", &["AGENTS.md"]),
            Reader::Pi => (None, ".pi/agent", &["AGENTS.md"]),
            Reader::QwenCode => (None, ".qwen", &["QWEN.md"]),
        };
        let here: &[&str] = match self {
            Reader::ClaudeCode => &["CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"],
            Reader::Gemini => &["GEMINI.md"],
            Reader::QwenCode => &["QWEN.md", "AGENTS.md"],
            Reader::Copilot => &["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md"],
            Reader::Amp | Reader::Codex | Reader::Cursor | Reader::Opencode | Reader::Pi => &["AGENTS.md"],
        };
        let dir = variable.and_then(|variable| env.os(variable)).map(PathBuf::from);
        let dir = dir.or_else(|| Some(env.home()?.join(home)));
        let own = dir.into_iter().flat_map(|dir| own.iter().map(move |name| dir.join(name)));
        own.chain(cwd.ancestors().flat_map(|dir| here.iter().map(|name| dir.join(name)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(reader: Reader, json: &str) -> Heard {
        reader.hear(json.as_bytes()).unwrap()
    }

    #[test]
    fn every_reader_is_listed_by_its_name() {
        for name in READERS.replace(" or ", ", ").split(", ") {
            assert_eq!(Reader::named(name).unwrap().name(), name);
        }
        assert_eq!(Reader::named("vim"), None);
    }

    #[test]
    fn events_are_told_apart_by_name_or_by_what_they_have() {
        let start = |history, is_unheard| Event::Start { history, is_unheard };
        let prompt = |text: &str| Event::Prompt(text.to_owned());
        for (reader, json, event) in [
            (
                Reader::ClaudeCode,
                r#"{"hook_event_name":"SessionStart","source":"startup"}"#,
                start(History::Prompts, false),
            ),
            (
                Reader::ClaudeCode,
                r#"{"hook_event_name":"SessionStart","source":"resume"}"#,
                start(History::All, false),
            ),
            (
                Reader::ClaudeCode,
                r#"{"hook_event_name":"SessionStart","source":"compact"}"#,
                start(History::None, false),
            ),
            (
                Reader::QwenCode,
                r#"{"hook_event_name":"SessionStart","source":"resume"}"#,
                start(History::Prompts, false),
            ),
            (
                Reader::Gemini,
                r#"{"hook_event_name":"SessionStart","source":"resume"}"#,
                start(History::Prompts, true),
            ),
            (
                Reader::Gemini,
                r#"{"hook_event_name":"SessionStart","source":"clear"}"#,
                start(History::None, true),
            ),
            (Reader::Gemini, r#"{"hook_event_name":"BeforeAgent","prompt":"x"}"#, prompt("x")),
            (Reader::QwenCode, r#"{"hook_event_name":"UserPromptSubmit","prompt":"x"}"#, prompt("x")),
            (
                Reader::Copilot,
                r#"{"sessionId":"s","source":"new","initialPrompt":"x"}"#,
                start(History::Prompts, false),
            ),
            (Reader::Copilot, r#"{"sessionId":"s","prompt":"x"}"#, prompt("x")),
            (
                Reader::Copilot,
                r#"{"sessionId":"s","trigger":"auto","customInstructions":""}"#,
                Event::Compaction,
            ),
            (Reader::ClaudeCode, r#"{"hook_event_name":"UserPromptSubmit"}"#, prompt("")),
            (Reader::ClaudeCode, r#"{"hook_event_name":"Stop","prompt":"x"}"#, Event::Other),
            (
                Reader::Copilot,
                r#"{"sessionId":"s","prompt":"x","agentId":"a","parentAgentId":"s"}"#,
                Event::Other,
            ),
            (Reader::Copilot, "{}", Event::Other),
        ] {
            assert_eq!(heard(reader, json).event, event, "{json}");
        }
        let told = heard(Reader::Cursor, r#"{"conversation_id":"c","workspace_roots":["/w"],"cwd":"w"}"#);
        assert_eq!((told.session.as_deref(), told.cwd), (Some("c"), None), "a relative path is none");
        assert!(Reader::Codex.hear(b"[1]").is_err());
        assert!(Reader::Codex.hear(b"\xef\xbb\xbf{\"cwd\": 7}").unwrap().cwd.is_none());
    }
}
