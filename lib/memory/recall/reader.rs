//! What the hook of a program says, and the answer in its form.

use crate::base::error::Result;
use crate::harness::HARNESSES;
use crate::harness::payload::Payload;
use crate::harness::spec::{HookEvent, HookMoment, RecallForm, Spec};
use crate::harness::turn::ToolCall;
use serde_json::json;
use std::path::{Path, PathBuf};

/// What happens in the program.
#[derive(Debug, PartialEq, Eq)]
pub enum RecallEvent {
    /// A session begins, or goes on.
    Start {
        history: Retained,
        /// What it is given now does not reach the model.
        is_unheard: bool,
    },
    Prompt(String),
    /// A sub-agent begins its work. The session's file says what that is, by its id.
    SubAgent(PathBuf, String),
    /// A tool is called. In some programs it has just been called: in all of them the answer comes with its result.
    Act(ToolCall),
    /// The program is about to forget what the session was given. There is no start after it.
    Compaction,
    /// Nothing to answer.
    Other,
}

/// How much of what a session was given is in front of the model when it starts or goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retained {
    All,
    /// What prompts were given; the section is sent only if this hook gives it.
    Prompts,
    None,
}

/// What a hook says.
#[derive(Debug, PartialEq, Eq)]
pub struct Heard {
    pub(super) event: RecallEvent,
    /// As the program calls the event.
    pub(super) name: String,
    /// With the sub-agent's, if one of them calls a tool: each has its own history.
    pub(super) session: Option<String>,
    pub(super) is_sub_agent: bool,
    pub(super) cwd: Option<PathBuf>,
}

pub(super) fn hear(spec: &Spec, bytes: &[u8]) -> Result<Heard> {
    let payload = Payload::parse(bytes)?;
    // A session goes on without what a hook says in another form.
    let text = |key: &str| payload.text(key).ok().flatten();
    let name = text("hook_event_name").unwrap_or_default().to_owned();
    // Hooks that were written for another program keep its names.
    let named = HARNESSES.iter().flat_map(|spec| spec.events).find(|event| event.name == name);
    let agent = ["agent_id", "agentId", "parentAgentId"].iter().find_map(|key| text(key));
    let when = match named {
        Some(HookEvent { when: when @ (HookMoment::SubAgent | HookMoment::Act), .. }) => Some(*when),
        // Its prompt is the agent's, not a person's.
        _ if agent.is_some() && !payload.has("toolName") => None,
        Some(event) => Some(event.when),
        None if !name.is_empty() => None,
        // Copilot CLI does not name its events.
        None if payload.has("toolName") => (!payload.has("toolResult")).then_some(HookMoment::Act),
        None if payload.has("prompt") => Some(HookMoment::Prompt),
        None if payload.has("source") || payload.has("initialPrompt") => Some(HookMoment::Start),
        None => payload.has("trigger").then_some(HookMoment::Forgetting),
    };
    let source = text("source").unwrap_or_default();
    let event = match when {
        Some(HookMoment::Start) => RecallEvent::Start {
            history: match source {
                "clear" | "compact" => Retained::None,
                "resume" if spec.recall.resumes_whole => Retained::All,
                _ => Retained::Prompts,
            },
            is_unheard: spec.recall.unheard.contains(&source),
        },
        Some(HookMoment::Prompt) => RecallEvent::Prompt(text("prompt").unwrap_or_default().to_owned()),
        Some(HookMoment::SubAgent) => {
            let whose = text("transcript_path").zip(text("agent_id"));
            whose.map_or(RecallEvent::Other, |(path, id)| {
                RecallEvent::SubAgent(PathBuf::from(path), id.to_owned())
            })
        }
        Some(HookMoment::Act) => payload.call().map_or(RecallEvent::Other, RecallEvent::Act),
        Some(HookMoment::Forgetting) => RecallEvent::Compaction,
        Some(HookMoment::End) | None => RecallEvent::Other,
    };
    let root = payload.first("workspace_roots").ok().flatten();
    let cwd = text("cwd").or(root).filter(|path| Path::new(path).is_absolute()).map(PathBuf::from);
    let session = ["session_id", "sessionId", "conversation_id"].iter().find_map(|key| text(key));
    let of_agent = agent.filter(|_| matches!(event, RecallEvent::Act(_))).map(|agent| format!("/{agent}"));
    let session = session.map(|session| format!("{session}{}", of_agent.unwrap_or_default()));
    Ok(Heard { event, name, session, is_sub_agent: agent.is_some(), cwd })
}

/// It is about the call of a tool.
pub fn is_act(spec: &Spec, bytes: &[u8]) -> bool {
    hear(spec, bytes).is_ok_and(|heard| matches!(heard.event, RecallEvent::Act(_)))
}

/// The answer in the form that the program takes.
pub(super) fn form(spec: &Spec, event: &str, text: &str) -> String {
    let json = match spec.recall.form {
        RecallForm::HookOutput => {
            json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})
        }
        RecallForm::Key(key) => json!({key: text}),
        RecallForm::Plugin => return text.to_owned() + "\n",
    };
    json.to_string() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::known;

    fn heard(name: &str, json: &str) -> Heard {
        hear(known(name).unwrap(), json.as_bytes()).unwrap()
    }

    #[test]
    fn events_are_told_apart_by_name_or_by_what_they_have() {
        let start = |history, is_unheard| RecallEvent::Start { history, is_unheard };
        let prompt = |text: &str| RecallEvent::Prompt(text.to_owned());
        for (reader, json, event) in [
            (
                "claude-code",
                r#"{"hook_event_name":"SessionStart","source":"startup"}"#,
                start(Retained::Prompts, false),
            ),
            (
                "claude-code",
                r#"{"hook_event_name":"SessionStart","source":"resume"}"#,
                start(Retained::All, false),
            ),
            (
                "claude-code",
                r#"{"hook_event_name":"SessionStart","source":"compact"}"#,
                start(Retained::None, false),
            ),
            (
                "qwen-code",
                r#"{"hook_event_name":"SessionStart","source":"resume"}"#,
                start(Retained::Prompts, false),
            ),
            (
                "gemini",
                r#"{"hook_event_name":"SessionStart","source":"resume"}"#,
                start(Retained::Prompts, true),
            ),
            ("gemini", r#"{"hook_event_name":"SessionStart","source":"clear"}"#, start(Retained::None, true)),
            ("gemini", r#"{"hook_event_name":"BeforeAgent","prompt":"x"}"#, prompt("x")),
            ("qwen-code", r#"{"hook_event_name":"UserPromptSubmit","prompt":"x"}"#, prompt("x")),
            (
                "copilot",
                r#"{"sessionId":"s","source":"new","initialPrompt":"x"}"#,
                start(Retained::Prompts, false),
            ),
            ("copilot", r#"{"sessionId":"s","prompt":"x"}"#, prompt("x")),
            (
                "copilot",
                r#"{"sessionId":"s","trigger":"auto","customInstructions":""}"#,
                RecallEvent::Compaction,
            ),
            ("claude-code", r#"{"hook_event_name":"UserPromptSubmit"}"#, prompt("")),
            ("claude-code", r#"{"hook_event_name":"Stop","prompt":"x"}"#, RecallEvent::Other),
            (
                "copilot",
                r#"{"sessionId":"s","prompt":"x","agentId":"a","parentAgentId":"s"}"#,
                RecallEvent::Other,
            ),
            (
                "claude-code",
                r#"{"hook_event_name":"SubagentStart","agent_id":"a","transcript_path":"/s.jsonl"}"#,
                RecallEvent::SubAgent(PathBuf::from("/s.jsonl"), "a".to_owned()),
            ),
            ("copilot", "{}", RecallEvent::Other),
        ] {
            assert_eq!(heard(reader, json).event, event, "{json}");
        }
        let told = heard("cursor", r#"{"conversation_id":"c","workspace_roots":["/w"],"cwd":"w"}"#);
        assert_eq!((told.session.as_deref(), told.cwd), (Some("c"), None), "a relative path is none");
        assert!(hear(known("codex").unwrap(), b"[1]").is_err());
        assert!(heard("codex", "\u{feff}{\"cwd\": 7}").cwd.is_none());
    }
}
