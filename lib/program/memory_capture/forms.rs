//! The forms of the command line: which one is meant, and what is missing.

use crate::base::cli::Args;
use crate::base::error::{Error, Result};
use crate::base::text::one_line;
use crate::memory::capture::past::Period;
use crate::memory::capture::places::FOUND;
use crate::store::entry::{Scope, tag};
use crate::store::journal::entry::{Harness, NAME_FORM, TAG_FORM, id_fault};

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
            && (!matches!(harness, Some(Harness::Codex | Harness::Pi)) || args.has("title"))
        {
            let hint = "pass a hook's JSON on stdin; only with --harness codex may it be an argument";
            return Err(Error::unexpected(&one_line(payload, 80)).hint(hint));
        }
        if let Some(period) = args.parsed("past", str::parse::<Period>)? {
            if let Some(harness) = harness.filter(|harness| !FOUND.contains(&harness.name())) {
                let why = format!("sessions of \"{harness}\" are not found on this machine");
                return Err(Error::usage(why).hint(format!("--past finds those of {}", FOUND.join(", "))));
            }
            return Ok(What::Past { period, harness });
        }
        let (error, hint) = match (args.has("title"), args.has("body"), harness) {
            _ if args.has("entry") => return Ok(What::Entry),
            (true, true, harness) => {
                let harness = harness.unwrap_or(Harness::Manual);
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
        let wrong = || format!("option \"--tags\": \"{}\" is not a tag", one_line(word, 80));
        let tag = tag(word).ok_or_else(|| Error::usage(wrong()).hint(TAG_FORM))?;
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

fn session(harness: Harness, thread_id: Option<String>, payload: Option<String>) -> Result<What> {
    let (error, hint) = match (harness, thread_id, payload) {
        (Harness::Amp | Harness::Opencode | Harness::Other(_), Some(thread_id), _) => {
            return Ok(What::Session { harness, thread_id });
        }
        (Harness::Pi, None, Some(file)) => return Ok(What::File { harness, file }),
        (Harness::Amp | Harness::Opencode, None, _) => return Err(needs_id(harness)),
        (Harness::Manual | Harness::Agent, ..) => (
            format!("harness \"{harness}\" has no sessions, only notes"),
            "add --title and --body, or name another harness",
        ),
        (Harness::Pi, thread_id, _) => (
            "a session of pi is captured by its file".to_owned(),
            match thread_id {
                None => "add the file's path",
                Some(_) => "leave --thread-id out and add the file's path",
            },
        ),
        (_, None, payload) => return Ok(What::Hook { harness, payload }),
        (_, Some(_), _) => (
            format!("a session of {harness} is captured from its hook's JSON"),
            "leave --thread-id out and pass the JSON on stdin",
        ),
    };
    Err(Error::usage(error).hint(hint))
}
