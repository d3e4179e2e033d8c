//! What only a person does, and what happens if an agent's shell asks for it.
//!
//! An agent that does what a text told it to do is stopped here. A program that removes the marks of its shell, or types the
//! answer itself, is not: it has the person's own rights.

use crate::base::cli::Context;
use crate::base::command_line::quoted;
use crate::base::deadline::Deadline;
use crate::base::error::{Error, Result};
use crate::base::terminal;
use crate::base::text::one_line;
use crate::harness::shell::AgentShell;
use crate::memory::service::Author;
use crate::program::notes::{Store, author};
use crate::store::entry::EntryId;
use crate::store::persistence::Persistence;
use std::io::IsTerminal;

/// How long a person may think about a question, in seconds. An agent waits, too.
pub(super) const PATIENCE: u64 = 5 * 60;

// All that only a person does, in words that follow "only a person may". axe-security(7) has the same list.
pub(super) const CONFIGURE: &str = "write a configuration";
pub(super) const ACCEPT: &str = "accept what an MCP server offers";
pub(super) const DECIDE: &str = "accept or reject a change";
pub(super) const EDIT: &str = "edit a note";
pub(super) const PIN: &str = "pin or unpin a note";
pub(super) const TIER: &str = "change the tier of a note that is theirs";
pub(super) const DELETE: &str = "delete a note that is theirs";
pub(super) const TAKE_BACK: &str = "take back the notes of a place";
pub(super) const REMOTE: &str = "set or change the remote of the notes";
pub(super) const TRUST: &str = "say who can write to a remote";
pub(super) const MISSING: &str = "decide about notes that are missing";
pub(super) const TARGET: &str = "add a file to those that are refreshed";
pub(super) const IMPORT: &str = "import a file";
pub(super) const SHARE: &str = "share a note with others";
pub(super) const HOOKS: &str = "install or remove hooks";
pub(super) const TIMERS: &str = "install or remove timers";

/// In a person's shell nothing. In an agent's, a person is asked at the terminal.
///
/// # Errors
/// `Refused`: the person says no, or there is nobody to ask.
pub(super) fn only_a_person(act: &str, cx: &Context) -> Result<()> {
    let Some(shell) = AgentShell::of(&cx.env) else { return Ok(()) };
    let shell = format!("this is the shell of an agent ({} is set)", shell.variable);
    let words = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    let command: Vec<String> = std::iter::once(cx.program.to_owned()).chain(words).collect();
    let command = one_line(&command.join(" "), usize::MAX);
    let question =
        format!("{shell}, and only a person may {act}.\nDo you want this to run: {command}\n[y/N] ");
    // Where stderr leads elsewhere, the terminal, if there is one, belongs to the program that reads our streams.
    let agrees = match std::io::stderr().is_terminal() {
        true => terminal::agrees(&question, Deadline::after_seconds(PATIENCE))?,
        false => None,
    };
    match agrees {
        Some(true) => Ok(()),
        _ => Err(Error::refused(format!("only a person may {act}, and {shell}"))
            .hint("run it in a terminal of your own")),
    }
}

/// Who changes these notes. In an agent's shell it is a person if the `act` is one and they agree to it.
pub(super) fn author_of(act: Option<&str>, ids: &[EntryId], store: &Store, cx: &Context) -> Result<Author> {
    let author = author(&cx.env);
    let notes = store.service.notes();
    // The note itself, and the one that has replaced it.
    let both = |id: &EntryId| notes.find_own(id).into_iter().chain(notes.find(id));
    let is_kept = |id: &EntryId| both(id).any(|note| note.entry.kept().is_some());
    match (&author, act) {
        (Author::Agent(_), Some(act)) if ids.iter().any(is_kept) => {
            only_a_person(act, cx).map(|()| Author::Person)
        }
        _ => Ok(author),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_lists_every_act() {
        let page = crate::base::text::collapsed(include_str!("../../man/axe-security.7.md"));
        let listed =
            page.split("Only a person may ").nth(1).and_then(|rest| rest.split(". ").next()).unwrap();
        let listed: Vec<&str> = listed.split(", ").map(|act| act.trim_start_matches("and ")).collect();
        let acts = [
            CONFIGURE, ACCEPT, DECIDE, EDIT, PIN, TIER, DELETE, TAKE_BACK, REMOTE, TRUST, MISSING, TARGET,
            IMPORT, SHARE, HOOKS, TIMERS,
        ];
        assert_eq!(listed, acts);
    }
}
