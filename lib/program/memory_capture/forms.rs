//! The forms of the command line: which one is meant, and what is missing.

use crate::base::cli::Args;
use crate::base::error::{Error, Result};
use crate::base::text::one_line;
use crate::harness::HARNESSES;
use crate::harness::name::{Harness, NAME_FORM};
use crate::harness::payload::id_fault;
use crate::harness::spec::Capture;
use crate::memory::capture::past::Period;
use crate::program::notes::wanted_tag;
use crate::store::entry::Scope;

/// What is to be queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Note,
    /// A session by its id.
    Session,
    /// A session in a file.
    File,
    /// A hook's JSON, on stdin or as an argument.
    Hook,
    /// A whole queue entry on stdin.
    Entry,
    /// The sessions that lie on this machine already.
    Past(Period),
}

/// The command line, read.
pub(super) struct CaptureForm {
    pub(super) what: What,
    /// The program that is named.
    pub(super) harness: Option<Harness>,
    pub(super) tags: Vec<String>,
    /// `None`: not said.
    pub(super) scope: Option<Scope>,
    pub(super) thread_id: Option<String>,
    /// A file, or a hook's JSON.
    pub(super) word: Option<String>,
}

impl CaptureForm {
    pub(super) fn of(args: &Args) -> Result<CaptureForm> {
        let tags = tags(&args.texts("tags"))?;
        let scope = args.parsed("scope", scope)?;
        let harness = args.parsed("harness", harness)?;
        let thread_id = args.parsed("thread-id", thread_id)?;
        let word = args.words().first().map(|word| (*word).to_owned());
        if let Some(word) = &word
            && (!harness.is_some_and(takes_argument) || args.has("title"))
        {
            let hint = match harness.is_none() && !word.starts_with('{') {
                true => "for a note, give --title TITLE --body TEXT",
                false => "pass a hook's JSON on stdin; only with --harness codex may it be an argument",
            };
            return Err(Error::unexpected(&one_line(word, 80)).hint(hint));
        }
        let what = what(args, harness, thread_id.is_some(), word.is_some())?;
        Ok(CaptureForm { what, harness, tags, scope, thread_id, word })
    }
}

fn what(args: &Args, harness: Option<Harness>, has_id: bool, has_word: bool) -> Result<What> {
    if let Some(period) = args.parsed("past", str::parse::<Period>)? {
        if let Some(harness) = harness.filter(|harness| harness.spec().is_none()) {
            let found: Vec<&str> = HARNESSES.iter().map(|spec| spec.name).collect();
            let why = format!("sessions of \"{harness}\" are not found on this machine");
            return Err(Error::usage(why).hint(format!("--past finds those of {}", found.join(", "))));
        }
        return Ok(What::Past(period));
    }
    let (error, hint) = match (args.has("title"), args.has("body"), harness) {
        _ if args.has("entry") => return Ok(What::Entry),
        (true, true, _) => return Ok(What::Note),
        (false, false, Some(harness)) => return session(harness, has_id, has_word),
        (true, false, _) => ("a note needs a body", "give it with --body TEXT, or pipe it in with --body -"),
        (false, true, _) => ("a note needs a title", "give it with --title TEXT"),
        (false, false, None) => {
            ("nothing to capture", "give --title and --body, or --harness, or --entry; see --help")
        }
    };
    Err(Error::usage(error).hint(hint))
}

fn tags(lists: &[&str]) -> Result<Vec<String>> {
    let mut tags = Vec::new();
    for word in lists.iter().flat_map(|list| list.split(',')).map(str::trim).filter(|word| !word.is_empty()) {
        let tag = wanted_tag("option \"--tags\"", word)?;
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    Ok(tags)
}

fn scope(name: &str) -> Result<Scope> {
    Scope::parse(name).ok_or_else(|| {
        Error::usage(format!("option \"--scope\" takes global or repo, not \"{}\"", one_line(name, 80)))
    })
}

fn harness(name: &str) -> Result<Harness> {
    Harness::of_name(name).ok_or_else(|| {
        let why = format!("option \"--harness\": \"{}\" is not the name of a program", one_line(name, 80));
        Error::usage(why).hint(NAME_FORM)
    })
}

fn thread_id(id: &str) -> Result<String> {
    match id_fault(id) {
        None => Ok(id.to_owned()),
        Some(fault) => Err(Error::usage(format!("option \"--thread-id\": {fault}"))),
    }
}

pub(super) fn needs_id(harness: Harness) -> Error {
    Error::usage(format!("a session of {harness} is captured by its id")).hint("add --thread-id ID")
}

/// The JSON of a hook, or a file.
fn takes_argument(harness: Harness) -> bool {
    match harness.spec().map(|spec| &spec.capture) {
        Some(Capture::Hook { takes_argument, .. }) => *takes_argument,
        Some(Capture::File(_)) => true,
        Some(Capture::Id) | None => false,
    }
}

fn session(harness: Harness, has_id: bool, has_word: bool) -> Result<What> {
    if harness == Harness::MANUAL || harness == Harness::AGENT {
        return Err(Error::usage(format!("harness \"{harness}\" has no sessions, only notes"))
            .hint("add --title and --body, or name another harness"));
    }
    let (how, next) = match (harness.spec().map(|spec| &spec.capture), has_id, has_word) {
        (None | Some(Capture::Id), true, _) => return Ok(What::Session),
        // Once it is known that the configuration describes it, the id is asked for.
        (None, false, _) => return Ok(What::Hook),
        (Some(Capture::Id), false, _) => return Err(needs_id(harness)),
        (Some(Capture::File(_)), false, true) => return Ok(What::File),
        (Some(Capture::File(_)), false, false) => ("by its file", "add the file's path"),
        (Some(Capture::File(_)), true, _) => ("by its file", "leave --thread-id out and add the file's path"),
        (Some(Capture::Hook { .. }), false, _) => return Ok(What::Hook),
        (Some(Capture::Hook { .. }), true, _) => {
            ("from its hook's JSON", "leave --thread-id out and pass the JSON on stdin")
        }
    };
    Err(Error::usage(format!("a session of {harness} is captured {how}")).hint(next))
}
