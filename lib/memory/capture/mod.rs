//! Turns a hook event into a session to queue, or into the reason not to queue one.
//!
//! Programs run hooks far more often than a session has something new. Only events at an end count: of a turn, of a
//! session, of a context that is about to be compacted. Sub-agents' sessions are not queued, because their results
//! are in the session that started them.

mod known;
pub mod past;
pub mod sweep;

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::fields::PATH_CAP;
use crate::base::repository;
use crate::config::memory::Redact;
use crate::harness::payload::{Ended, Payload};
use crate::harness::spec::{Capture, Spec};
use crate::memory::redact::Redactor;
use crate::store::journal::entry::{Context, QueueEntry, Retrieval};
use std::path::PathBuf;

/// What a hook of the program reports in this JSON.
pub fn hook_event(spec: &Spec, bytes: &[u8], env: &Env) -> Result<Ended> {
    let Capture::Hook { session, .. } = spec.capture else {
        return Err(Error::usage(format!("a session of {} is not captured by a hook", spec.name)));
    };
    let payload = Payload::parse(bytes)?;
    if let Some(agent) = payload.sub_agent()? {
        return Ok(Ended::Nothing(format!(
            "\"{agent}\" is a sub-agent; its session is queued when the session ends"
        )));
    }
    // JSON without an event was sent by hand or by the user's own program.
    if let Some(event) = payload.text("hook_event_name")?
        && !spec.ends().any(|end| end == event)
    {
        let known = spec.ends().collect::<Vec<_>>().join(", ");
        return Ok(Ended::Nothing(format!("nothing ends at \"{event}\"; use a hook for one of {known}")));
    }
    session(&payload, env)
}

/// The context of a session. A directory whose name an entry cannot contain is left out, because a session without a
/// directory is better than none.
pub fn context(cwd: Option<PathBuf>) -> Context {
    let repo = cwd.as_deref().and_then(repository::place_of).map(|repository| repository.name);
    let is_fine = |text: &str| text.len() <= PATH_CAP && !text.chars().any(char::is_control);
    Context {
        cwd: cwd.filter(|cwd| cwd.is_absolute() && cwd.to_str().is_some_and(is_fine)),
        repo: repo.filter(|repo| is_fine(repo)),
        past: false,
    }
}

/// Replaces the secrets in what a person or an agent wrote, and in the address of the repository. The queue keeps the
/// text, also after it was processed.
pub fn redact(entry: &mut QueueEntry, settings: &Redact) -> Result<()> {
    if let Retrieval::Inline { title, body, tags, .. } = &mut entry.retrieval {
        let redactor = Redactor::of(settings)?;
        // What is a secret in the text is one in a tag, which has small letters.
        let text = format!("{title}\n\n{body}");
        redactor.learn(&text);
        redactor.learn(&text.to_lowercase());
        (*title, *body) = (redactor.cleaned(title), redactor.cleaned(body));
        // A mark is no tag.
        tags.retain(|tag| redactor.cleaned(tag) == *tag);
    }
    // A session is queued whatever the user's own patterns are.
    if let Some(repo) = entry.context.repo.as_mut().filter(|_| settings.enabled) {
        *repo = Redactor::default().cleaned(repo);
    }
    if let Some(cwd) = entry.context.cwd.as_mut().filter(|_| settings.enabled)
        && let Some(text) = cwd.to_str()
    {
        *cwd = Redactor::default().cleaned(text).into();
    }
    Ok(())
}

#[cfg(test)]
mod tests;
