//! What the programs for notes share: opening the store, ids on the command line and on stdin, errors, the history.

use crate::base::cli::{Reporter, Stdout};
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::repository::{self, Repository};
use crate::base::text::one_line;
use crate::base::{stderr, stdin};
use crate::config::memory::{self, MemoryConfig};
use crate::harness::shell::AgentShell;
use crate::memory::capture;
use crate::memory::section;
use crate::memory::service::{Author, NoteService};
use crate::store::entry::{EntryId, Meta, Source, tag};
use crate::store::history;
use crate::store::journal::entry::TAG_FORM;
use crate::store::persistence::Note;
use crate::store::place::Root;
use crate::store::proposal::{Proposal, ProposalId};
use crate::store::topics::Topics;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// How long to wait for stdin, in seconds. A model may be writing it.
const PATIENCE: u64 = 60 * 60;

pub(crate) struct Store {
    pub(super) config: MemoryConfig,
    pub(super) root: Root,
    pub(super) service: NoteService<Topics>,
}

impl Store {
    pub(super) fn open(config: Option<&Path>, env: &Env, reporter: &Reporter) -> Result<Store> {
        let config = memory::load(config, env, reporter)?;
        let root = Root::at(&config.storage.root);
        let service = NoteService::new(Topics::at(&root), env.now());
        Ok(Store { config, root, service })
    }

    /// Commits the changed notes, and the changes that wait, if there is a history. A failure is only a warning: the files
    /// are written.
    pub(super) fn commit(
        &self,
        message: String,
        changed: &[Note],
        waiting: &[Proposal],
        env: &Env,
        reporter: &Reporter,
    ) {
        let count = changed.len() + waiting.len();
        if count == 0 {
            return;
        }
        let of_notes = changed.iter().flat_map(|note| &note.entry.meta().sources);
        let sources = of_notes.chain(waiting.iter().flat_map(|proposal| &proposal.session));
        let storage = &self.config.storage;
        if let Err(error) = history::record(&self.root, storage, (message, Vec::new()), sources, count, env) {
            reporter.warn(&error.line());
        }
    }

    /// Prints a change that waits, and says that it does.
    pub(super) fn print_waiting(
        &self,
        proposal: &Proposal,
        json: bool,
        stdout: &mut Stdout,
        reporter: &Reporter,
    ) -> Result<()> {
        print_waiting(proposal, &self.root, json, stdout, reporter)
    }

    /// What a person does shows at once: refreshes the AGENTS.md files.
    pub(super) fn refresh(&self, env: &Env, reporter: &Reporter) {
        section::refresh_after_change(&self.config, &self.root, env.today(), reporter);
    }
}

/// Prints a change that waits: the path of its file, or as JSON. On stderr it says that it waits.
pub(super) fn print_waiting(
    proposal: &Proposal,
    root: &Root,
    json: bool,
    stdout: &mut Stdout,
    reporter: &Reporter,
) -> Result<()> {
    warn_waiting(proposal, reporter);
    match json {
        true => stdout.json(&json!({"notes": [], "proposals": [proposal]})),
        false => stdout.line(&root.proposals().join(format!("{}.json", proposal.id)).to_string_lossy()),
    }
}

pub(super) fn warn_waiting(proposal: &Proposal, reporter: &Reporter) {
    let id = &proposal.id;
    reporter.warn(&format!(
        "this is an agent's shell, so the change waits for a person: {} ({id}); see it with: memory-review",
        proposal.op
    ));
}

/// Who runs this program.
pub(super) fn author(env: &Env) -> Author {
    let Some(shell) = AgentShell::of(env) else { return Author::Person };
    let context = capture::context(env.current_dir().ok());
    Author::Agent(Source {
        harness: Some(shell.agent.to_owned()),
        repo: context.repo,
        cwd: context.cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
        at: Some(env.now().to_string()),
        ..Source::default()
    })
}

/// An error unless this is a person's shell, where it can be known: `what` only a person does.
pub(super) fn only_a_person(what: &str, env: &Env) -> Result<()> {
    match AgentShell::of(env) {
        None => Ok(()),
        Some(shell) => Err(Error::refused(format!(
            "{what} is a person's decision, and this is the shell of an agent ({} is set)",
            shell.variable
        ))
        .hint("run it in a terminal of your own")),
    }
}

pub(super) const STATUSES: &str = "captured, consolidated or promoted";
pub(super) const TIERS: &str = "hot, warm or cold";
pub(super) const SCOPES: &str = "global or repo";

pub(super) fn wanted_tag(flag: &str, word: &str) -> Result<String> {
    tag(word)
        .ok_or_else(|| Error::usage(format!("option \"{flag}\": \"{word}\" is not a tag")).hint(TAG_FORM))
}

/// A note as JSON: the keys of its front matter, and the path of its file.
#[derive(Serialize)]
pub(crate) struct Listed<'a> {
    #[serde(flatten)]
    pub(super) meta: &'a Meta,
    pub(super) path: &'a PathBuf,
    /// Of a list: the note's repository, or null for a global one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) repo: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) score: Option<f64>,
    /// The line that matches best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<String>,
    /// A change that waits for a person is about it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) change: bool,
    /// The changes of it that wait for a person.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) proposals: &'a [ProposalId],
}

impl<'a> Listed<'a> {
    pub(super) fn of(meta: &'a Meta, path: &'a PathBuf) -> Listed<'a> {
        Listed { meta, path, repo: None, score: None, line: None, body: None, change: false, proposals: &[] }
    }
}

/// Prints a note's path, or the note as JSON.
pub(super) fn print(note: &Note, json: bool, stdout: &mut Stdout) -> Result<()> {
    match json {
        true => stdout.json(&Listed::of(note.entry.meta(), &note.path)),
        false => stdout.line(&note.path.display().to_string()),
    }
}

/// The message of a commit: what was done to which notes.
pub(super) fn summary(done: &str, notes: &[Note], waiting: &[Proposal]) -> String {
    match (notes, waiting) {
        ([note], []) => format!("{done}: {}", note.entry.meta().title),
        ([], waiting) => format!("{done}: {} for review", waiting.len()),
        (notes, _) => format!("{done}: {} notes", notes.len()),
    }
}

pub(super) fn no_id() -> Error {
    Error::usage("the id of a note is required").hint("see them with: memory-list")
}

/// The notes that `words` name. `-` stands for those on stdin.
pub(super) fn ids(words: &[String], reporter: &Reporter) -> Result<Vec<EntryId>> {
    let mut ids = Vec::new();
    for word in words {
        match word.as_str() {
            "-" => ids.extend(ids_on_stdin(reporter)?),
            word => ids.push(parse_id(word)?),
        }
    }
    Ok(ids)
}

/// What `-` stands for: up to `cap` bytes, typed or piped in.
pub(super) fn piped_in(cap: usize) -> stdin::StdinOptions {
    stdin::StdinOptions {
        deadline: Deadline::after_seconds(PATIENCE),
        cap,
        typed: true,
        is_whole: |_| false,
        if_silent: "End it with Ctrl-D if nothing more is to come",
        if_late: "close it",
    }
}

/// What the other programs print: ids, one a line; JSON objects with `id`; an object with `notes`.
pub(super) fn ids_on_stdin(reporter: &Reporter) -> Result<Vec<EntryId>> {
    let mut ids = Vec::new();
    each_on_stdin(reporter, not_ids, |named| {
        match named {
            Named::Word(word) => ids.push(parse_id(word)?),
            Named::Object(object) => ids_in(&object, &mut ids)?,
        }
        Ok(())
    })?;
    Ok(ids)
}

/// What a program prints that another reads.
pub(super) enum Named<'a> {
    /// A line.
    Word(&'a str),
    /// JSON.
    Object(Value),
}

/// Gives each line and each JSON object on stdin to `take`. `wrong` makes an error of why the input cannot be read.
pub(super) fn each_on_stdin(
    reporter: &Reporter,
    wrong: fn(&str) -> Error,
    mut take: impl FnMut(Named) -> Result<()>,
) -> Result<()> {
    let text = stdin::read(&piped_in(16 << 20), reporter)?.unwrap_or_default();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if rest.starts_with('{') {
            let mut objects = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            match objects.next() {
                Some(Ok(object)) => take(Named::Object(object))?,
                Some(Err(e)) => return Err(wrong(&format!("not JSON: {e}"))),
                None => break,
            }
            rest = &rest[objects.byte_offset()..];
        } else {
            let (line, more) = rest.split_once('\n').unwrap_or((rest, ""));
            take(Named::Word(line.trim_end()))?;
            rest = more;
        }
        rest = rest.trim_start();
    }
    Ok(())
}

fn ids_in(object: &Value, ids: &mut Vec<EntryId>) -> Result<()> {
    if let Some(notes) = object.get("notes").and_then(Value::as_array) {
        return notes.iter().try_for_each(|note| ids_in(note, ids));
    }
    let Some(id) = object.get("id").and_then(Value::as_str) else {
        return Err(not_ids("an object has neither a string \"id\" nor a list \"notes\""));
    };
    ids.push(parse_id(id)?);
    Ok(())
}

fn not_ids(why: &str) -> Error {
    Error::usage(format!("stdin does not name notes: {why}"))
        .hint("pipe in ids, or what memory-list --json or memory-consolidate --json prints")
}

/// The current directory's repository; without one, the directory itself.
pub(super) fn place_here(env: &Env) -> Result<Repository> {
    let dir = env.current_dir()?;
    repository::place_of(&dir)
        .ok_or_else(|| Error::io(format!("the current directory \"{}\" is gone", dir.display())))
}

pub(crate) fn parse_id(word: &str) -> Result<EntryId> {
    EntryId::parse(word).ok_or_else(|| {
        let word = one_line(word, 80);
        Error::usage(format!("\"{word}\" is not a note's id"))
            .hint("write it like id__a1B2c3; see them with: memory-list")
    })
}

/// The errors of a program that carries on after one. All are printed; the last one is the program's own error.
pub(crate) struct Errors {
    program: &'static str,
    json: bool,
    last: Option<Error>,
}

impl Errors {
    pub(super) fn new(program: &'static str, json: bool) -> Errors {
        Errors { program, json, last: None }
    }

    pub(super) fn add(&mut self, error: Error) {
        match self.last.replace(error) {
            Some(earlier) if self.json => stderr::line(&earlier.json()),
            Some(earlier) => stderr::line(&format!("{}: {}", self.program, earlier.line())),
            None => {}
        }
    }

    pub(super) fn end(self) -> Result<()> {
        self.last.map_or(Ok(()), Err)
    }
}

/// Does `work` for each id, and carries on after an error unless stdout itself fails.
pub(super) fn for_each<I>(
    ids: &[I],
    mut errors: Errors,
    stdout: &mut Stdout,
    mut work: impl FnMut(&I, &mut Stdout) -> Result<()>,
) -> Result<()> {
    for id in ids {
        let done = work(id, stdout);
        if stdout.is_broken() {
            return done;
        }
        if let Err(error) = done {
            errors.add(error);
        }
    }
    errors.end()
}
