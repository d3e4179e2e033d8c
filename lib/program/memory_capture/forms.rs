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

#[derive(Debug)]
pub(super) enum What {
    Note(NoteFlags),
    /// A session by its id.
    Session {
        harness: Harness,
        thread_id: String,
    },
    /// A session in a file.
    File {
        harness: Harness,
        file: String,
    },
    /// A hook's JSON, on stdin or as an argument.
    Hook {
        harness: Harness,
        payload: Option<String>,
    },
    /// A whole queue entry on stdin.
    Entry,
    /// The sessions that lie on this machine already.
    Past {
        period: Period,
        harness: Option<Harness>,
    },
}

/// What goes with a note's title and text, which are in the arguments.
#[derive(Debug)]
pub(super) struct NoteFlags {
    pub(super) harness: Harness,
    pub(super) tags: Vec<String>,
    /// `None`: not said.
    pub(super) scope: Option<Scope>,
    pub(super) thread_id: Option<String>,
}

impl What {
    /// The form that is meant.
    pub(super) fn of(args: &Args) -> Result<What> {
        let tags = tags(&args.texts("tags"))?;
        let scope = args.parsed("scope", scope)?;
        let harness = args.parsed("harness", harness)?;
        let thread_id = args.parsed("thread-id", thread_id)?;
        let payload = args.words().first().map(|word| (*word).to_owned());
        if let Some(payload) = &payload
            && (!harness.is_some_and(takes_argument) || args.has("title"))
        {
            let hint = "pass a hook's JSON on stdin; only with --harness codex may it be an argument";
            return Err(Error::unexpected(&one_line(payload, 80)).hint(hint));
        }
        if let Some(period) = args.parsed("past", str::parse::<Period>)? {
            if let Some(harness) = harness.filter(|harness| harness.spec().is_none()) {
                let found: Vec<&str> = HARNESSES.iter().map(|spec| spec.name).collect();
                let why = format!("sessions of \"{harness}\" are not found on this machine");
                return Err(Error::usage(why).hint(format!("--past finds those of {}", found.join(", "))));
            }
            return Ok(What::Past { period, harness });
        }
        let (error, hint) = match (args.has("title"), args.has("body"), harness) {
            _ if args.has("entry") => return Ok(What::Entry),
            (true, true, harness) => {
                let harness = harness.unwrap_or(Harness::MANUAL);
                return Ok(What::Note(NoteFlags { harness, tags, scope, thread_id }));
            }
            (false, false, Some(harness)) => return session(harness, thread_id, payload),
            (true, false, _) => {
                ("a note needs a body", "give it with --body TEXT, or pipe it in with --body -")
            }
            (false, true, _) => ("a note needs a title", "give it with --title TEXT"),
            (false, false, None) => {
                ("nothing to capture", "give --title and --body, or --harness, or --entry; see --help")
            }
        };
        Err(Error::usage(error).hint(hint))
    }

    /// The program that is named.
    pub(super) fn harness(&self) -> Option<Harness> {
        match self {
            What::Note(NoteFlags { harness, .. })
            | What::Session { harness, .. }
            | What::File { harness, .. }
            | What::Hook { harness, .. } => Some(*harness),
            What::Past { harness, .. } => *harness,
            What::Entry => None,
        }
    }
}

fn tags(lists: &[&str]) -> Result<Vec<String>> {
    let mut tags = Vec::new();
    for word in lists.iter().flat_map(|list| list.split(',')).map(str::trim).filter(|word| !word.is_empty()) {
        let tag = wanted_tag("--tags", word)?;
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

fn session(harness: Harness, thread_id: Option<String>, payload: Option<String>) -> Result<What> {
    let by = |how: &str, next: &str| {
        Err(Error::usage(format!("a session of {harness} is captured {how}")).hint(next))
    };
    if harness == Harness::MANUAL || harness == Harness::AGENT {
        return Err(Error::usage(format!("harness \"{harness}\" has no sessions, only notes"))
            .hint("add --title and --body, or name another harness"));
    }
    let Some(spec) = harness.spec() else {
        return match thread_id {
            Some(thread_id) => Ok(What::Session { harness, thread_id }),
            // Once it is known that the configuration describes it, the id is asked for.
            None => Ok(What::Hook { harness, payload }),
        };
    };
    match (&spec.capture, thread_id, payload) {
        (Capture::Id, Some(thread_id), _) => Ok(What::Session { harness, thread_id }),
        (Capture::Id, None, _) => Err(needs_id(harness)),
        (Capture::File(_), None, Some(file)) => Ok(What::File { harness, file }),
        (Capture::File(_), None, None) => by("by its file", "add the file's path"),
        (Capture::File(_), Some(_), _) => by("by its file", "leave --thread-id out and add the file's path"),
        (Capture::Hook { .. }, None, payload) => Ok(What::Hook { harness, payload }),
        (Capture::Hook { .. }, Some(_), _) => {
            by("from its hook's JSON", "leave --thread-id out and pass the JSON on stdin")
        }
    }
}
