//! What the programs for notes share: opening the store, ids on the command line and on stdin, questions, the history.

use crate::base::cli::{Args, Context, Flag, Reporter, Words, one_of, path};
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::repository::{self, Repository};
use crate::base::text::{did_you_mean, lossy, one_line};
use crate::base::{file, stdin};
use crate::config::memory::{self, MemoryConfig};
use crate::harness::shell::{AgentShell, OWN_RUN};
use crate::memory::capture;
use crate::memory::recall::Recalled;
use crate::memory::section::{self, Room, Section, Which};
use crate::memory::service::{Author, Changed, NoteService, belongs_to};
use crate::memory::shared::{SharedNotes, shown};
use crate::store::entry::{EntryId, Meta, Source, repos, tag};
use crate::store::journal::entry::TAG_FORM;
use crate::store::persistence::{Note, Place, warn_of};
use crate::store::place::Root;
use crate::store::projects::Projects;
use crate::store::proposal::{Proposal, ProposalId};
use crate::store::topics::Topics;
use crate::store::{by_hand, history};
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// How long to wait for stdin, in seconds. A model may be writing it, or a person be thinking.
pub(super) const PATIENCE: u64 = 60 * 60;

/// The flags that several programs have.
pub(super) const CONFIG: Flag = path("config", "FILE", "use this configuration file");
pub(super) const STATUS: Flag =
    one_of("status", "S", &["captured", "consolidated", "promoted"], "captured, consolidated or promoted");
pub(super) const TIER: Flag = one_of("tier", "T", &["hot", "warm", "cold"], "hot, warm or cold");
pub(super) const SCOPE: Flag = one_of("scope", "S", &["global", "repo"], "global or repo");

pub struct Store {
    pub(super) config: MemoryConfig,
    pub(super) root: Root,
    pub(super) service: NoteService<Topics>,
}

impl Store {
    pub(super) fn open(args: &Args, cx: &Context) -> Result<Store> {
        Store::of(args.path("config"), cx)
    }

    /// The store of a configuration file, or of the one that is in use.
    pub(super) fn of(config: Option<&Path>, cx: &Context) -> Result<Store> {
        let config = memory::load(config, &cx.env, &cx.reporter)?;
        let root = Root::open(&config.storage.root)?;
        let service = NoteService::new(Topics::at(&root), cx.env.now(), cx.env.today());
        let service = service.in_dir(cx.env.current_dir().ok());
        Ok(Store { config, root, service })
    }

    /// The notes that the current repository has among its files, without those that this store has, too.
    pub(super) fn shared(&self, cx: &Context) -> Result<NoteService<SharedNotes>> {
        let mut notes = SharedNotes::around(&cx.env.current_dir()?, &self.config);
        notes.notes = shown(notes.notes, self.service.notes())?;
        Ok(NoteService::new(notes, cx.env.now(), cx.env.today()))
    }

    /// The note that a person means: one of theirs, or else one that the repository has among its files.
    pub(super) fn named(&self, word: &str, cx: &Context) -> Result<EntryId> {
        self.or_shared(self.service.named(word), cx, |shared| shared.named(word))
    }

    /// What was found, or what is found among the notes that the repository has as files.
    pub(super) fn or_shared<T>(
        &self,
        found: Result<T>,
        cx: &Context,
        find: impl FnOnce(&NoteService<SharedNotes>) -> Result<T>,
    ) -> Result<T> {
        match found {
            Err(error) if error.kind() == ErrorKind::NotFound => find(&self.shared(cx)?).map_err(|_| error),
            found => found,
        }
    }

    /// What a session in a repository should know, in at most `bytes`.
    pub(super) fn section(&self, repo: Option<&str>, bytes: Option<usize>, cx: &Context) -> Result<Section> {
        let audiences: Vec<Option<&str>> = repo.map(Some).into_iter().chain([None]).collect();
        let mut shared = self.shared(cx)?.notes().notes.clone();
        shared.retain(|note| repo.is_some_and(|repo| belongs_to(note.entry.meta(), repo)));
        let room = Room::of(&self.config.agents_md);
        let section = self.service.section_with(&audiences, room, bytes, shared)?;
        warn_of(&section.broken, &cx.reporter);
        Ok(section)
    }

    /// The notes that answer some words in a repository, `most` at most, in so many bytes. After the person's own come those that
    /// the repository has as files.
    pub(super) fn recall(
        &self,
        words: &str,
        repo: Option<&str>,
        most: usize,
        room: usize,
        cx: &Context,
    ) -> Result<Recalled> {
        let mut recalled = self.service.recall(words, repo, most, room)?;
        warn_of(&recalled.broken, &cx.reporter);
        let (more, left) = (most - recalled.found.len(), room.saturating_sub(recalled.text.len() + 1));
        recalled.add(self.shared(cx)?.recall(words, repo, more, left)?);
        Ok(recalled)
    }

    /// The repository that `--repo` names; "." is the current one. A name that nothing here has may be misspelled.
    pub(super) fn named_repo(&self, args: &Args, cx: &Context) -> Result<Option<String>> {
        let Some(given) = args.text("repo") else { return Ok(None) };
        if given == "." {
            return place_here(&cx.env).map(|here| Some(here.name));
        }
        let shown = one_line(given, 80);
        let repo = repository_name(given).ok_or_else(|| {
            Error::usage(format!("option \"--repo\": \"{shown}\" is not the name of a repository"))
                .hint("write it as host/owner/name, local:/DIRECTORY, or . for the current one")
        })?;
        let known = self.repositories(cx)?;
        if !known.iter().any(|known| repository::includes(known, &repo)) {
            let near = did_you_mean(&repo, known.iter().map(String::as_str));
            let next = near.unwrap_or_else(|| "list all notes with: memory-list --all".to_owned());
            cx.reporter.warn(&format!("no note is of repository \"{}\"; {next}", one_line(&repo, 80)));
        }
        Ok(Some(repo))
    }

    /// The repositories of which there is a note, a queue entry or a checkout.
    pub(super) fn repositories(&self, cx: &Context) -> Result<BTreeSet<String>> {
        let mut all: BTreeSet<String> = repository_here(cx).map(|here| here.name).into_iter().collect();
        for place in [Place::Topics, Place::Archive] {
            let listed = self.service.list(place, |_| true)?.found.into_iter();
            all.extend(listed.flat_map(|found| found.view.meta.sources).filter_map(|source| source.repo));
        }
        all.extend(self.service.queued()?.0.into_values().filter_map(|entry| entry.context.repo));
        let checkouts = Projects::load(&self.root).unwrap_or_default().projects;
        all.extend(checkouts.into_iter().map(|checkout| checkout.repo));
        Ok(all)
    }

    /// Changes each note and prints what became of it. Then the AGENTS.md files are refreshed, and the history says what
    /// was `done`. `sources_stay`: a note belongs to the same repositories as before.
    pub(super) fn change(
        &self,
        ids: &[EntryId],
        done: &str,
        sources_stay: bool,
        cx: &mut Context,
        work: impl Fn(&EntryId) -> Result<Changed>,
    ) -> Result<()> {
        let (mut notes, mut waiting): (Vec<Note>, Vec<Proposal>) = (Vec::new(), Vec::new());
        let mut seen = BTreeSet::new();
        let ids = ids.iter().filter(|id| seen.insert(*id));
        let ended = cx.each(ids, |id, cx| match work(id)? {
            Changed::Waits(proposal) => {
                let printed = print_waiting(&proposal, &self.root, cx);
                waiting.push(proposal);
                printed
            }
            Changed::Same(note) => print_note(note.entry.meta(), &note.path, cx),
            Changed::Done(note) => {
                let printed = print_note(note.entry.meta(), &note.path, cx);
                notes.push(note);
                printed
            }
        });
        let what = match (&notes[..], waiting.len()) {
            ([note], 0) => note.entry.meta().title.clone(),
            ([], waiting) => format!("{waiting} for review"),
            (notes, _) => format!("{} notes", notes.len()),
        };
        let of_notes = || notes.iter().flat_map(|note| &note.entry.meta().sources);
        let repos = repos(of_notes());
        // Where a change waits is shown wherever its note is.
        let which = if sources_stay && waiting.is_empty() { Which::Of(&repos) } else { Which::All };
        let sources = of_notes().chain(waiting.iter().flat_map(|proposal| &proposal.session));
        self.finish(which, format!("{done}: {what}"), sources, notes.len() + waiting.len(), cx);
        ended
    }

    /// What a person does shows at once: if there are changes, refreshes the AGENTS.md files and commits. A failure is only
    /// a warning: the files are written.
    pub(super) fn finish<'a>(
        &self,
        which: Which,
        message: String,
        sources: impl Iterator<Item = &'a Source>,
        count: usize,
        cx: &Context,
    ) {
        if count == 0 {
            return;
        }
        let given = by_hand::give_ids(&Topics::at(&self.root)).unwrap_or_else(|error| {
            cx.reporter.warn(&error.line());
            Vec::new()
        });
        self.refresh(if given.is_empty() { which } else { Which::All }, cx);
        let (storage, message) = (&self.config.storage, (message, Vec::new()));
        if let Err(error) = history::record(&self.root, storage, message, sources, count, &cx.env) {
            cx.reporter.warn(&error.line());
        }
    }

    pub(super) fn refresh(&self, which: Which, cx: &Context) {
        section::refresh_after_change(which, &self.config, &self.root, cx.env.today(), &cx.reporter);
    }
}

/// Prints a change that waits: the path of its file, or as JSON. On stderr it says that it waits.
pub(super) fn print_waiting(proposal: &Proposal, root: &Root, cx: &mut Context) -> Result<()> {
    warn_waiting(proposal, cx);
    let path = root.proposals().join(format!("{}.json", proposal.id));
    cx.print(&json!({"notes": [], "proposals": [proposal]}), &path.to_string_lossy())
}

pub(super) fn warn_waiting(proposal: &Proposal, cx: &Context) {
    let id = &proposal.id;
    cx.reporter.warn(&format!(
        "this is an agent's shell, so the change waits for a person: {} ({id}); see it with: memory-review",
        proposal.op
    ));
}

/// A question can be put to a person.
pub(super) fn can_ask(cx: &Context) -> bool {
    !cx.json && cx.stdout.is_terminal() && std::io::stdin().is_terminal()
}

/// What a person types at a question, in lower case; `None` at Ctrl-D.
pub(super) fn ask(question: &str, cx: &mut Context) -> Result<Option<String>> {
    cx.stdout.text(&cx.stdout.narrowed(question))?;
    cx.stdout.flush()?;
    let typed = stdin::answer(Deadline::after_seconds(PATIENCE))?;
    if typed.is_none() {
        cx.stdout.line("")?;
    }
    Ok(typed.map(|typed| typed.trim().to_lowercase()))
}

/// A yes or a no; an empty answer is the default, and after Ctrl-D nothing more is wanted.
pub(super) fn is_agreed(question: &str, default: bool, cx: &mut Context) -> Result<bool> {
    loop {
        match ask(question, cx)?.as_deref() {
            Some("y" | "yes") => return Ok(true),
            Some("n" | "no") | None => return Ok(false),
            Some("") => return Ok(default),
            Some(_) => {}
        }
    }
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

/// Why neither of the programs of a pipeline does anything.
pub(super) const INSIDE: &str =
    "this runs inside an LLM command of the memory programs (AGENT_MEMORY_RUN is set)";

/// This is an LLM command of ours, or called by one.
pub(super) fn is_inside(env: &Env) -> bool {
    env.os(OWN_RUN).is_some()
}

/// `of`: what holds it, as in the message.
pub(super) fn wanted_tag(of: &str, word: &str) -> Result<String> {
    let wrong = || format!("{of}: \"{}\" is not a tag", one_line(word, 80));
    tag(word).ok_or_else(|| Error::usage(wrong()).hint(TAG_FORM))
}

/// A note as JSON: the keys of its front matter, and the path of its file.
#[derive(Serialize)]
pub struct Listed<'a> {
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
    /// What has become of its code here: changed, or gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<&'static str>,
    /// A change that waits for a person is about it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) change: bool,
    /// The changes of it that wait for a person.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) proposals: &'a [ProposalId],
}

impl<'a> Listed<'a> {
    pub(super) fn of(meta: &'a Meta, path: &'a PathBuf) -> Listed<'a> {
        let (repo, score, line, body, code) = (None, None, None, None, None);
        Listed { meta, path, repo, score, line, body, code, change: false, proposals: &[] }
    }
}

/// Prints a note's path, or the note as JSON.
pub(super) fn print_note(meta: &Meta, path: &PathBuf, cx: &mut Context) -> Result<()> {
    cx.print(&Listed::of(meta, path), &path.display().to_string())
}

/// What is said where an id is missing, and the next step.
pub(super) const NO_ID: (&str, &str) = ("the id of a note is required", "see them with: memory-list");

/// The words of the command line that name notes, at least one.
pub(super) const fn up_to_ids(most: usize) -> Words {
    Words::Needed(most, NO_ID.0, NO_ID.1)
}

/// The notes that they name, as a person names them. `-` stands for the ids on stdin.
pub(super) fn ids(args: &Args, store: &Store, cx: &Context) -> Result<Vec<EntryId>> {
    let mut ids = Vec::new();
    for word in args.words() {
        match word {
            "-" => ids.extend(ids_on_stdin(cx)?),
            word => ids.push(store.named(word, cx)?),
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

/// The text of a file of up to `cap` bytes, or of stdin (-).
pub(super) fn read_text(from: &Path, cap: u64, reporter: &Reporter) -> Result<String> {
    if from == Path::new("-") {
        let cap = usize::try_from(cap).unwrap_or(usize::MAX);
        return Ok(stdin::read(&piped_in(cap), reporter)?.unwrap_or_default());
    }
    let (text, damaged) = lossy(file::read(from, cap)?);
    if damaged {
        let path = from.display();
        reporter.warn(&format!("\"{path}\" is not valid UTF-8; the invalid bytes became U+FFFD"));
    }
    Ok(text)
}

/// One JSON object, also if stdin stays open after it: some programs leave it open for a hook. `None` for a terminal that
/// is not to be read.
pub(super) fn json_on_stdin(deadline: Deadline, typed: bool, reporter: &Reporter) -> Result<Option<Vec<u8>>> {
    let terms = stdin::StdinOptions {
        deadline,
        // The largest note with every character escaped; a prompt may hold a pasted log.
        cap: 8 << 20,
        typed,
        is_whole: |bytes| {
            bytes.trim_ascii_end().ends_with(b"}") && serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
        },
        if_silent: "A JSON object is expected there",
        if_late: "write one JSON object to it",
    };
    stdin::read_bytes(&terms, reporter)
}

pub(super) fn ids_on_stdin(cx: &Context) -> Result<Vec<EntryId>> {
    const NOTES: Printed = Printed {
        what: "notes",
        list: "notes",
        by: "memory-list --json or memory-consolidate --json prints",
    };
    NOTES.ids_on_stdin(parse_id, cx)
}

/// What other programs print and a program reads: ids, one a line; JSON objects with `id`; objects with a list of such.
pub(super) struct Printed {
    pub(super) what: &'static str,
    pub(super) list: &'static str,
    pub(super) by: &'static str,
}

impl Printed {
    pub(super) fn ids_on_stdin<T>(&self, parse: fn(&str) -> Result<T>, cx: &Context) -> Result<Vec<T>> {
        let text = stdin::read(&piped_in(16 << 20), &cx.reporter)?.unwrap_or_default();
        let (mut words, mut rest) = (Vec::new(), text.trim_start());
        while !rest.is_empty() {
            if rest.starts_with('{') {
                let mut objects = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
                match objects.next() {
                    Some(Ok(object)) => self.ids_in(&object, &mut words)?,
                    Some(Err(e)) => return Err(self.wrong(&format!("not JSON: {e}"))),
                    None => break,
                }
                rest = &rest[objects.byte_offset()..];
            } else {
                let (line, more) = rest.split_once('\n').unwrap_or((rest, ""));
                words.push(line.trim_end().to_owned());
                rest = more;
            }
            rest = rest.trim_start();
        }
        words.iter().map(|word| parse(word)).collect()
    }

    fn ids_in(&self, object: &Value, ids: &mut Vec<String>) -> Result<()> {
        // What memory-capture did not queue is no entry.
        if self.list == "entries" && object.get("queued") == Some(&Value::Bool(false)) {
            return Ok(());
        }
        if let Some(list) = object.get(self.list).and_then(Value::as_array) {
            return list.iter().try_for_each(|one| self.ids_in(one, ids));
        }
        let id = object.get("id").and_then(Value::as_str);
        let neither = || format!("an object has neither a string \"id\" nor a list \"{}\"", self.list);
        ids.push(id.ok_or_else(|| self.wrong(&neither()))?.to_owned());
        Ok(())
    }

    fn wrong(&self, why: &str) -> Error {
        let Printed { what, by, .. } = self;
        Error::usage(format!("stdin does not name {what}: {why}")).hint(format!("pipe in ids, or what {by}"))
    }
}

/// The words of the command line, if there are any.
pub(super) fn words(args: &Args, hint: &str) -> Result<Option<String>> {
    match args.words().join(" ") {
        words if !words.trim().is_empty() => Ok(Some(words)),
        _ if args.words().is_empty() => Ok(None),
        _ => Err(Error::empty("WORDS").hint(hint)),
    }
}

/// The name of the repository that a name or an address names.
pub(super) fn repository_name(text: &str) -> Option<String> {
    if text.starts_with("local:/") {
        return Some(text.to_owned());
    }
    // A name is an address without its scheme.
    repository::name_of_url(text).or_else(|| repository::name_of_url(&format!("https://{text}")))
}

/// The name of the place here; `None` if the current directory is gone.
pub(super) fn current_repo(env: &Env) -> Result<Option<String>> {
    Ok(repository::place_of(&env.current_dir()?).map(|place| place.name))
}

/// The current directory's repository, if it is in one.
pub(super) fn repository_here(cx: &Context) -> Option<Repository> {
    repository::of(&cx.env.current_dir().ok()?)
}

/// The current directory's repository; without one, the directory itself.
pub(super) fn place_here(env: &Env) -> Result<Repository> {
    let dir = env.current_dir()?;
    repository::place_of(&dir)
        .ok_or_else(|| Error::io(format!("the current directory \"{}\" is gone", dir.display())))
}

/// The checkout of the repository that contains the current directory.
pub(super) fn checkout_here(env: &Env) -> Result<Repository> {
    let dir = env.current_dir()?;
    repository::of(&dir).ok_or_else(|| {
        Error::usage(format!("\"{}\" is in no git repository", dir.display()))
            .hint("notes are shared as files of a repository: run this in one")
    })
}

pub fn parse_id(word: &str) -> Result<EntryId> {
    EntryId::parse(word).ok_or_else(|| {
        let word = one_line(word, 80);
        Error::usage(format!("\"{word}\" is not a note's id"))
            .hint("write it like id__a1B2c3; see them with: memory-list")
    })
}
