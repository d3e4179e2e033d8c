//! What the programs on notes have in common: the store that the configuration names, ids, and the history.

use crate::base::cli::{Reporter, Stdout};
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::repository::{self, Repository};
use crate::base::text::one_line;
use crate::base::{stderr, stdin};
use crate::config::memory::{self, MemoryConfig};
use crate::memory::service::NoteService;
use crate::store::entry::{EntryId, Meta, tag};
use crate::store::history;
use crate::store::journal::entry::TAG_FORM;
use crate::store::persistence::Note;
use crate::store::place::Root;
use crate::store::topics::Topics;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// How long stdin is waited for, in seconds: a model may be writing it.
const PATIENCE: u64 = 60 * 60;

pub(crate) struct Store {
    pub(crate) config: MemoryConfig,
    pub(crate) root: Root,
    pub(crate) service: NoteService<Topics>,
}

impl Store {
    pub(crate) fn open(config: Option<&Path>, env: &Env, reporter: &Reporter) -> Result<Store> {
        let config = memory::load(config, env, reporter)?;
        let root = Root::at(&config.storage.root);
        let service = NoteService::new(Topics::at(&root), env.now());
        Ok(Store { config, root, service })
    }

    /// Takes what was written into the history, where that is wanted. What goes wrong is a warning.
    pub(crate) fn commit(&self, message: String, changed: &[Note], env: &Env, reporter: &Reporter) {
        if let Err(error) = history::record(&self.root, &self.config.storage, message, changed, env) {
            reporter.warn(&error.line());
        }
    }
}

pub(crate) const STATUSES: &str = "captured, consolidated or promoted";
pub(crate) const TIERS: &str = "hot, warm or cold";
pub(crate) const SCOPES: &str = "global or repo";

pub(crate) fn wanted_tag(flag: &str, word: &str) -> Result<String> {
    tag(word)
        .ok_or_else(|| Error::usage(format!("option \"{flag}\": \"{word}\" is not a tag")).hint(TAG_FORM))
}

/// A note as JSON: the keys of its front matter and its file.
#[derive(Serialize)]
pub(crate) struct Listed<'a> {
    #[serde(flatten)]
    pub(crate) meta: &'a Meta,
    pub(crate) path: &'a PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) score: Option<f64>,
    /// The line of the note that matched best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<String>,
}

impl<'a> Listed<'a> {
    pub(crate) fn of(meta: &'a Meta, path: &'a PathBuf) -> Listed<'a> {
        Listed { meta, path, score: None, line: None, body: None }
    }
}

/// The ids that are meant: arguments, and for `-` those on stdin, one a line or JSON Lines with `id`.
pub(crate) fn ids(words: &[String], reporter: &Reporter) -> Result<Vec<EntryId>> {
    let mut ids = Vec::new();
    for word in words {
        if word != "-" {
            ids.push(parse_id(word)?);
            continue;
        }
        let text = stdin::read(&piped_in(16 << 20), reporter)?.unwrap_or_default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            ids.push(match line.starts_with('{') {
                false => parse_id(line)?,
                true => id_in(line)?,
            });
        }
    }
    Ok(ids)
}

/// What `-` stands for: up to `cap` bytes, typed or piped in.
pub(crate) fn piped_in(cap: usize) -> stdin::Terms {
    stdin::Terms {
        deadline: Deadline::after_seconds(PATIENCE),
        cap,
        typed: true,
        is_whole: |_| false,
        if_silent: "End it with Ctrl-D if nothing more is to come",
        if_late: "close it",
    }
}

fn id_in(line: &str) -> Result<EntryId> {
    let wrong = |why: String| {
        Error::usage(format!("stdin has a line without a note's id: {why}"))
            .hint("pipe in ids, or what memory-list --json prints")
    };
    match serde_json::from_str::<Value>(line) {
        Ok(object) => match object.get("id").and_then(Value::as_str) {
            Some(id) => parse_id(id),
            None => Err(wrong("it has no string \"id\"".to_owned())),
        },
        Err(e) => Err(wrong(format!("not JSON: {e}"))),
    }
}

/// The repository of the current directory, which `flag` asks for. `otherwise`: what to do where there is none.
pub(crate) fn repository_here(flag: &str, otherwise: &str, env: &Env) -> Result<Repository> {
    repository::of(&env.current_dir()?).ok_or_else(|| {
        Error::usage(format!("option \"{flag}\": the current directory is in no git repository"))
            .hint(otherwise)
    })
}

pub(crate) fn parse_id(word: &str) -> Result<EntryId> {
    EntryId::parse(word).ok_or_else(|| {
        let word = one_line(word, 80);
        Error::usage(format!("\"{word}\" is not a note's id"))
            .hint("write it like id__a1B2c3; see them with: memory-list")
    })
}

/// Does `work` for each id and goes on after a fault; all faults are told, the last as the program's error.
pub(crate) fn for_each(
    program: &str,
    ids: &[EntryId],
    stdout: &mut Stdout,
    mut work: impl FnMut(&EntryId, &mut Stdout) -> Result<()>,
) -> Result<()> {
    let mut last = None;
    for id in ids {
        let done = work(id, stdout);
        if stdout.is_broken() {
            return done;
        }
        if let Some(earlier) = done.err().and_then(|error| last.replace(error)) {
            stderr::line(&format!("{program}: {}", earlier.line()));
        }
    }
    last.map_or(Ok(()), Err)
}
