//! Turns a hook event into a session to queue, or into the reason not to queue one.
//!
//! Programs run hooks far more often than a session has something new. Only events at an end count: of a turn, of a
//! session, of a context that is about to be compacted. Sub-agents' sessions are not queued, because their results
//! are in the session that started them.

pub(crate) mod past;
mod payload;
pub(crate) mod places;
mod rollout;

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::fields::PATH_CAP;
use crate::base::repository;
use crate::harness::pi;
use crate::memory::capture::payload::Payload;
use crate::store::journal::entry::{Context, Harness, Retrieval, id_fault};
use std::io;
use std::path::{Path, PathBuf};

/// How many of Cursor's projects are searched.
const PROJECTS: usize = 10_000;

/// What a hook reports.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HookEvent {
    /// This session has something new; it ran in this directory.
    Session { retrieval: Retrieval, cwd: Option<PathBuf> },
    /// There is nothing to queue, for this reason.
    Nothing(String),
}

use HookEvent::Nothing;

/// The events of a program at which something has ended; none if it has no such hooks.
fn end_events(harness: Harness) -> &'static [&'static str] {
    match harness {
        Harness::ClaudeCode => &["Stop", "SessionEnd", "PreCompact"],
        Harness::Codex => &["Stop", "SessionEnd", "PreCompact", "Interrupt"],
        Harness::Gemini => &["AfterAgent", "SessionEnd", "PreCompress"],
        Harness::Cursor => &["stop", "sessionEnd"],
        // Copilot names the event only in hooks that were written for other programs.
        Harness::Copilot => &["agentStop", "sessionEnd", "Stop", "SessionEnd"],
        Harness::QwenCode => &["Stop", "SessionEnd", "PreCompact"],
        Harness::Amp
        | Harness::Opencode
        | Harness::Pi
        | Harness::Manual
        | Harness::Agent
        | Harness::Other(_) => &[],
    }
}

/// Reads the JSON that `harness` passes to a hook.
pub(crate) fn hook_event(harness: Harness, bytes: &[u8], env: &Env) -> Result<HookEvent> {
    let payload = Payload::parse(bytes)?;
    let agent = match payload.text("agent_id")? {
        None => payload.text("agentId")?,
        agent => agent,
    };
    if let Some(agent) = agent {
        return Ok(Nothing(format!(
            "\"{agent}\" is a sub-agent; its session is queued when the session ends"
        )));
    }
    // JSON without an event was sent by hand or by the user's own program.
    if let Some(event) = payload.text("hook_event_name")?
        && !end_events(harness).contains(&event)
    {
        let known = end_events(harness).join(", ");
        return Ok(Nothing(format!("nothing ends at \"{event}\"; use a hook for one of {known}")));
    }
    match harness {
        Harness::Copilot => copilot(&payload, env),
        Harness::Cursor => cursor(&payload, env),
        Harness::Codex if payload.text("thread-id")?.is_some() => notified(&payload, env),
        _ => transcript(harness, &payload),
    }
}

/// Claude Code, Codex and Gemini CLI name the file that they keep the session in.
fn transcript(harness: Harness, payload: &Payload) -> Result<HookEvent> {
    let session_id = payload.id("session_id")?.to_owned();
    let Some(path) = payload.absolute("transcript_path")? else {
        return Ok(Nothing("the session has no transcript (transcript_path is empty)".to_owned()));
    };
    let cwd = payload.absolute("cwd")?;
    if is_sub_agents(harness, &path) {
        return Ok(sub_agents(&path));
    }
    if !is_there(&path)? {
        return Ok(Nothing(format!("the session has no transcript: \"{}\" does not exist", path.display())));
    }
    Ok(session_at(harness, path, session_id, cwd))
}

/// A session in a file. A Codex rollout says in its first line whether it belongs to a sub-agent.
fn session_at(harness: Harness, path: PathBuf, session_id: String, cwd: Option<PathBuf>) -> HookEvent {
    if harness == Harness::Codex && rollout::is_sub_agents(&path) {
        return sub_agents(&path);
    }
    HookEvent::Session { retrieval: Retrieval::Transcript { path, format: harness, session_id }, cwd }
}

fn sub_agents(path: &Path) -> HookEvent {
    Nothing(format!("\"{}\" is a sub-agent's transcript", path.display()))
}

/// Codex's `notify` only names the thread.
fn notified(payload: &Payload, env: &Env) -> Result<HookEvent> {
    const END: &str = "agent-turn-complete";
    let id = payload.id("thread-id")?;
    if let Some(kind) = payload.text("type")?
        && kind != END
    {
        return Ok(Nothing(format!("nothing ends at \"{kind}\"; only \"{END}\" counts")));
    }
    let Some(path) = rollout::of_thread(id, env) else {
        // For example, the threads in which Codex generates titles.
        return Ok(Nothing(format!("the thread \"{id}\" has no transcript among Codex's sessions")));
    };
    Ok(session_at(Harness::Codex, path, id.to_owned(), payload.absolute("cwd")?))
}

/// Copilot's keys are in camelCase. It does not name the event, but each has keys of its own; and only at the end of a
/// turn does it name the file.
fn copilot(payload: &Payload, env: &Env) -> Result<HookEvent> {
    let id = match payload.text("sessionId")? {
        None => payload.id("session_id")?,
        Some(_) => payload.id("sessionId")?,
    };
    for (key, event) in [
        ("source", "sessionStart"),
        ("prompt", "userPromptSubmitted"),
        ("toolName", "preToolUse or postToolUse"),
        ("notification_type", "notification"),
    ] {
        if payload.has(key) {
            return Ok(Nothing(format!("nothing ends at {event}; use a hook for agentStop or sessionEnd")));
        }
    }
    let named = match payload.absolute("transcriptPath")? {
        None => payload.absolute("transcript_path")?,
        named => named,
    };
    let home = || match env.os("COPILOT_HOME") {
        Some(dir) => Some(PathBuf::from(dir)),
        None => env.home().map(|home| home.join(".copilot")),
    };
    let kept = || home().map(|home| home.join("session-state").join(id).join("events.jsonl"));
    let Some(path) = named.or_else(kept) else {
        return Ok(Nothing("the session has no transcript, because $HOME is not set".to_owned()));
    };
    // Copilot writes the file of a new session only after the hooks of its first turn, and of its end, have run.
    is_there(&path)?;
    Ok(session_at(Harness::Copilot, path, id.to_owned(), payload.absolute("cwd")?))
}

/// A session of Pi, which is captured by its file. The file's name holds the session's id, its first line the
/// directory.
pub(crate) fn session_file(path: &Path) -> Result<HookEvent> {
    if !is_there(path)? {
        return Err(Error::usage(format!("no file \"{}\"", path.display()))
            .hint("give the file of a session, like ~/.pi/agent/sessions/DIRECTORY/TIME_ID.jsonl"));
    }
    let id = pi::session_id(path).filter(|id| id_fault(id).is_none()).ok_or_else(|| {
        let why = format!("\"{}\" is not the name of a session's file", path.display());
        Error::usage(why).hint("Pi names them TIME_ID.jsonl")
    })?;
    let cwd = pi::directory(path)?;
    Ok(session_at(Harness::Pi, path.to_owned(), id.to_owned(), cwd))
}

/// Newer versions of Cursor name the transcript in some hooks. Otherwise the conversation id leads to it.
fn cursor(payload: &Payload, env: &Env) -> Result<HookEvent> {
    let id = payload.id("conversation_id")?;
    let cwd = payload.first("workspace_roots")?.filter(|root| root.starts_with('/')).map(PathBuf::from);
    let named = payload.absolute("transcript_path")?;
    let path = match named {
        Some(path) if is_there(&path)? => Some(path),
        _ => conversation(id, env),
    };
    let Some(session_path) = path else {
        return Ok(Nothing(format!("the conversation \"{id}\" has no transcript among Cursor's projects")));
    };
    if is_sub_agents(Harness::Cursor, &session_path) {
        return Ok(sub_agents(&session_path));
    }
    Ok(HookEvent::Session { retrieval: Retrieval::CursorSession { session_path }, cwd })
}

/// `~/.cursor/projects/<project>/agent-transcripts/<id>/<id>.jsonl`; the command line version has no folder `<id>`.
fn conversation(id: &str, env: &Env) -> Option<PathBuf> {
    let projects = env.home()?.join(".cursor/projects");
    let mut projects: Vec<PathBuf> = fs_err::read_dir(projects)
        .ok()?
        .filter_map(Result::ok)
        .take(PROJECTS)
        .map(|entry| entry.path().join("agent-transcripts"))
        .collect();
    projects.sort();
    let files = projects
        .iter()
        .flat_map(|dir| [dir.join(id).join(format!("{id}.jsonl")), dir.join(format!("{id}.jsonl"))]);
    files.into_iter().find(|path| path.is_file())
}

/// Is `path` the transcript of a sub-agent? Claude Code and Cursor store those in `subagents/`, Gemini CLI in
/// `chats/<parent>/`.
fn is_sub_agents(harness: Harness, path: &Path) -> bool {
    let above = |levels: usize| path.ancestors().nth(levels).and_then(Path::file_name);
    match harness {
        Harness::QwenCode => above(2).is_some_and(|dir| dir == "subagents"),
        Harness::ClaudeCode | Harness::Cursor => above(1).is_some_and(|dir| dir == "subagents"),
        Harness::Gemini => above(2).is_some_and(|dir| dir == "chats"),
        _ => false,
    }
}

fn is_there(path: &Path) -> Result<bool> {
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(true),
        Ok(_) => Err(Error::io(format!("the transcript \"{}\" is not a regular file", path.display()))),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
        Err(e) => Err(Error::io(format!("the transcript \"{}\" cannot be accessed: {e}", path.display()))),
    }
}

/// The context of a session. A directory whose name an entry cannot contain is left out, because a session without a
/// directory is better than none.
pub(crate) fn context(cwd: Option<PathBuf>) -> Context {
    let repo = cwd.as_deref().and_then(repository::place_of).map(|repository| repository.name);
    let is_fine = |text: &str| text.len() <= PATH_CAP && !text.chars().any(char::is_control);
    Context {
        cwd: cwd.filter(|cwd| cwd.is_absolute() && cwd.to_str().is_some_and(is_fine)),
        repo: repo.filter(|repo| is_fine(repo)),
        past: false,
    }
}

#[cfg(test)]
mod tests;
