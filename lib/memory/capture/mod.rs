//! Turns a hook event into a session to queue, or into the reason not to queue one.
//!
//! Programs run hooks far more often than a session has something new. Only events at an end count: of a turn, of a
//! session, of a context that is about to be compacted. Sub-agents' sessions are not queued, because their results
//! are in the session that started them.

mod known;
pub mod memories;
pub mod note;
pub mod past;
pub mod sweep;

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::fields::PATH_CAP;
use crate::base::repository;
use crate::harness::payload::{Ended, Payload};
use crate::harness::spec::{CaptureSpec, Spec};
use crate::store::journal::entry::CaptureContext;
use std::path::PathBuf;

/// What a hook of the program reports in this JSON.
pub fn hook_event(spec: &Spec, bytes: &[u8], env: &Env) -> Result<Ended> {
    let CaptureSpec::Hook { session, .. } = spec.capture else {
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
pub fn context(cwd: Option<PathBuf>) -> CaptureContext {
    let place = cwd.as_deref().and_then(repository::place_of);
    let branch = place.as_ref().and_then(|place| repository::branch(&place.top));
    let repo = place.map(|place| place.name);
    let is_fine = |text: &str| text.len() <= PATH_CAP && !text.chars().any(char::is_control);
    CaptureContext {
        cwd: cwd.filter(|cwd| cwd.is_absolute() && cwd.to_str().is_some_and(is_fine)),
        repo: repo.filter(|repo| is_fine(repo)),
        branch: branch.filter(|branch| is_fine(branch)),
        past: false,
    }
}

#[cfg(test)]
mod tests;
