//! The forms of the command line: which one is meant, what is missing, which flags exclude each other.

use crate::base::cli::apart;
use crate::base::error::{Error, Result};
use crate::base::text::one_line;
use crate::harness::HARNESSES;
use crate::harness::name::{Harness, NAME_FORM};
use crate::harness::payload::id_fault;
use crate::harness::spec::Capture;
use crate::memory::capture::past::Period;
use crate::store::entry::{Scope, tag};
use crate::store::journal::entry::TAG_FORM;

#[derive(Debug)]
pub(crate) enum What {
    Note(Note),
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
    Past(PastSessions),
}

#[derive(Debug)]
pub(crate) struct PastSessions {
    pub(super) period: Period,
    pub(super) harness: Option<Harness>,
    /// Only shows them.
    pub(super) is_dry: bool,
    /// Does not ask first.
    pub(super) is_sure: bool,
}

#[derive(Debug)]
pub(crate) struct Note {
    pub(super) title: String,
    pub(super) body: Body,
    pub(super) tags: Vec<String>,
    /// `None`: not said.
    pub(super) scope: Option<Scope>,
    pub(super) harness: Harness,
    pub(super) thread_id: Option<String>,
    pub(super) direct: bool,
}

#[derive(Debug)]
pub(crate) enum Body {
    Given(String),
    Stdin,
}

/// The flags, before it is known which form they make.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(super) title: Option<String>,
    pub(super) body: Option<String>,
    pub(super) tags: Option<Vec<String>>,
    pub(super) scope: Option<Scope>,
    pub(super) harness: Option<Harness>,
    pub(super) thread_id: Option<String>,
    pub(super) direct: bool,
    pub(super) entry: bool,
    pub(super) payload: Option<String>,
    pub(super) past: Option<Period>,
    pub(super) dry_run: bool,
    pub(super) yes: bool,
}

pub(super) fn tags(list: &str) -> Result<Vec<String>> {
    let words = list.split(',').map(str::trim).filter(|word| !word.is_empty());
    words
        .map(|word| {
            let wrong = || format!("option \"--tags\": \"{}\" is not a tag", one_line(word, 80));
            tag(word).ok_or_else(|| Error::usage(wrong()).hint(TAG_FORM))
        })
        .collect()
}

pub(super) fn scope(name: &str) -> Result<Scope> {
    Scope::parse(name).ok_or_else(|| {
        Error::usage(format!("option \"--scope\" takes global or repo, not \"{}\"", one_line(name, 80)))
    })
}

pub(super) fn harness(name: &str) -> Result<Harness> {
    Harness::of_name(name).ok_or_else(|| {
        let why = format!("option \"--harness\": \"{}\" is not the name of a program", one_line(name, 80));
        Error::usage(why).hint(NAME_FORM)
    })
}

pub(super) fn thread_id(id: String) -> Result<String> {
    match id_fault(&id) {
        None => Ok(id),
        Some(fault) => Err(Error::usage(format!("option \"--thread-id\": {fault}"))),
    }
}

impl What {
    /// The program that is named.
    pub(super) fn harness(&self) -> Option<Harness> {
        match self {
            What::Note(Note { harness, .. })
            | What::Session { harness, .. }
            | What::File { harness, .. }
            | What::Hook { harness, .. } => Some(*harness),
            What::Past(sessions) => sessions.harness,
            What::Entry => None,
        }
    }
}

impl Given {
    /// The form that is meant.
    pub(super) fn what(self) -> Result<What> {
        if let Some(payload) = &self.payload
            && (!self.harness.is_some_and(|harness| takes_argument(&harness))
                || self.title.is_some()
                || self.entry)
        {
            let error = Error::unexpected(&one_line(payload, 80));
            return Err(
                error.hint("pass a hook's JSON on stdin; only with --harness codex may it be an argument")
            );
        }
        let for_notes = [
            ("--title", self.title.is_some()),
            ("--body", self.body.is_some()),
            ("--tags", self.tags.is_some()),
            ("--scope", self.scope.is_some()),
            ("--direct", self.direct),
        ];
        let of_note = for_notes.iter().find(|(_, is_given)| *is_given).map(|(name, _)| *name);
        if let Some(period) = self.past {
            let others = [("--entry", self.entry), ("--thread-id", self.thread_id.is_some())];
            let of_session = others.iter().find(|(_, is_given)| *is_given).map(|(name, _)| *name);
            if let Some(other) = of_note.or(of_session) {
                return Err(apart("--past", other).hint("--past finds sessions by itself"));
            }
            return past(period, self.harness, self.dry_run, self.yes);
        }
        let for_past = [("--dry-run", self.dry_run), ("--yes", self.yes)];
        if let Some((option, _)) = for_past.iter().find(|(_, is_given)| *is_given) {
            return Err(Error::usage(format!("option \"{option}\" is only for --past"))
                .hint("add --past PERIOD, or leave it out"));
        }
        if self.entry {
            let others = [("--harness", self.harness.is_some()), ("--thread-id", self.thread_id.is_some())];
            let of_session = others.iter().find(|(_, is_given)| *is_given).map(|(name, _)| *name);
            return match of_note.or(of_session) {
                None => Ok(What::Entry),
                Some(other) => {
                    Err(apart("--entry", other).hint("the entry contains all of that; leave one of them out"))
                }
            };
        }
        match (self.title, self.body) {
            (Some(title), Some(body)) => Ok(What::Note(Note {
                title,
                body: if body == "-" { Body::Stdin } else { Body::Given(body) },
                tags: self.tags.unwrap_or_default(),
                scope: self.scope,
                harness: self.harness.unwrap_or(Harness::MANUAL),
                thread_id: self.thread_id,
                direct: self.direct,
            })),
            (Some(_), None) => Err(Error::usage("a note needs a body")
                .hint("give it with --body TEXT, or pipe it in with --body -")),
            (None, Some(_)) => Err(Error::usage("a note needs a title").hint("give it with --title TEXT")),
            (None, None) => match (of_note, self.harness) {
                (Some(option), _) => Err(Error::usage(format!("option \"{option}\" is only for notes"))
                    .hint("add --title and --body, or leave it out")),
                (None, Some(harness)) => session(harness, self.thread_id, self.payload),
                (None, None) => Err(Error::usage("nothing to capture")
                    .hint("give --title and --body, or --harness, or --entry; see --help")),
            },
        }
    }
}

fn past(period: Period, harness: Option<Harness>, is_dry: bool, is_sure: bool) -> Result<What> {
    if let Some(harness) = harness.filter(|harness| harness.spec().is_none()) {
        let found: Vec<&str> = HARNESSES.iter().map(|spec| spec.name).collect();
        return Err(Error::usage(format!("sessions of \"{harness}\" are not found on this machine"))
            .hint(format!("--past finds those of {}", found.join(", "))));
    }
    Ok(What::Past(PastSessions { period, harness, is_dry, is_sure }))
}

/// The JSON of a hook, or a file.
fn takes_argument(harness: &Harness) -> bool {
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
        (Capture::Id, None, _) => by("by its id", "add --thread-id ID"),
        (Capture::File(_), None, Some(file)) => Ok(What::File { harness, file }),
        (Capture::File(_), None, None) => by("by its file", "add the file's path"),
        (Capture::File(_), Some(_), _) => by("by its file", "leave --thread-id out and add the file's path"),
        (Capture::Hook { .. }, None, payload) => Ok(What::Hook { harness, payload }),
        (Capture::Hook { .. }, Some(_), _) => {
            by("from its hook's JSON", "leave --thread-id out and pass the JSON on stdin")
        }
    }
}
