//! A note of a person, or of an agent, as it is queued.

use crate::base::env::Env;
use crate::base::error::{Error, Fault, Result};
use crate::base::repository;
use crate::config::memory::Redact;
use crate::harness::name::Harness;
use crate::harness::shell::AgentShell;
use crate::memory::capture::context;
use crate::memory::redact::Redactor;
use crate::store::entry::Scope;
use crate::store::journal::entry::{QueueEntry, Retrieval};

/// What somebody has to say.
pub struct NewText {
    pub title: String,
    pub body: String,
    pub tags: Vec<String>,
    /// `None`: not said.
    pub scope: Option<Scope>,
    pub thread_id: Option<String>,
}

impl NewText {
    /// The entry for it, written here and now. What is wrong with a field is told by its name after `prefix`.
    pub fn queued(self, harness: Harness, env: &Env, prefix: &str) -> Result<QueueEntry> {
        let NewText { title, body, tags, scope, thread_id } = self;
        let here = || env.current_dir().ok();
        let mut context = context(here());
        // What an agent has to say is about its repository, unless it says otherwise.
        let is_here = harness != Harness::MANUAL && context.repo.is_some();
        let scope = scope.unwrap_or(if is_here { Scope::Repo } else { Scope::Global });
        // A folder without git is where sessions learn something; a person's note is about more than that.
        if harness == Harness::MANUAL
            && scope == Scope::Global
            && here().is_none_or(|dir| repository::of(&dir).is_none())
        {
            context.repo = None;
        }
        let retrieval = Retrieval::Inline { title, body, tags, scope, thread_id };
        let entry = QueueEntry { version: 1, timestamp: env.now(), harness, retrieval, context };
        entry.check().map_err(|error| of_note(&error, prefix))?;
        Ok(entry)
    }
}

/// In an agent's shell nothing is a person's.
pub fn harness_here(given: Harness, env: &Env) -> Harness {
    match AgentShell::of(env) {
        Some(shell) if given == Harness::MANUAL => Harness::named(shell.agent).unwrap_or(Harness::AGENT),
        _ => given,
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
    if settings.enabled {
        let context = &mut entry.context;
        if let Some(repo) = &mut context.repo {
            *repo = Redactor::default().cleaned(repo);
        }
        if let Some(cwd) = &mut context.cwd
            && let Some(text) = cwd.to_str()
        {
            *cwd = Redactor::default().cleaned(text).into();
        }
    }
    Ok(())
}

/// The same faults, with the names that the caller knows instead of the entry's keys.
fn of_note(error: &Error, prefix: &str) -> Error {
    let mut faults = error.faults().to_vec();
    for fault in &mut faults {
        if let Some(field) = fault.path.strip_prefix("retrieval.") {
            fault.path = format!("{prefix}{field}");
        }
    }
    let list: Vec<String> = faults.iter().map(Fault::to_string).collect();
    Error::usage(format!("not a note that can be kept: {}", list.join("; "))).with_faults(faults)
}
