//! `memory-review`: what agents want to change and only a person may: shown, accepted, rejected.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, flag, text, value};
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::text::{disarmed, one_line};
use crate::base::{file, signal, stdin};
use crate::harness::shell::AgentShell;
use crate::memory::review::{self, Pending};
use crate::program::editor::edit;
use crate::program::notes::{Errors, Named, Store, each_on_stdin, for_each, only_a_person};
use crate::store::entry::{EntryId, Source, one_line as whole_line};
use crate::store::history;
use crate::store::persistence::{Persistence, warn_of};
use crate::store::place::Root;
use crate::store::proposal::{Evidence, Proposal, ProposalId};
use crate::store::topics::Topics;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) const ABOUT: About = About {
    name: "memory-review",
    caption: "decide about changes of notes that wait for you",
    usage: &[
        "memory-review [--json]",
        "memory-review --accept ID…|- --reject ID…|- [--json]",
        "memory-review --reject-session THREAD_ID [--json]",
    ],
    commands: &[],
    flags: &[
        value("accept", "ID…", "make these changes; - reads ids from stdin"),
        value("reject", "ID…", "drop these changes; - reads ids from stdin"),
        value("reject-session", "THREAD_ID", "drop all changes of a session"),
        flag("json", "one JSON object a line"),
        value("config", "FILE", "use this configuration file"),
    ],
    more: "Shows each change, session by session, with its diff, what was quoted for it, why it waits, and the notes \
           beside it that say something about the same by now. On a terminal it asks about one after the other, and \
           opens $VISUAL or $EDITOR if you want another text; without one, and with --json, it only lists.\n\n\
           Accepting is your word: the note is marked \"by: person\", and no agent changes it from then on without \
           another review. The old text goes to archive/. Prints the path of each note, and the id of each change \
           that is rejected. If a note has changed since its change was proposed, nothing is done: the new diff is \
           printed, the exit code is 1, and accepting it again accepts it. An agent's shell decides nothing.\n\n    \
           memory-review --accept p__a1B2c3 --reject p__d4E5f6\n    \
           memory-review --json | jq -r 'select(.by == \"tool\").id' |\n        \
           memory-review --reject -",
    sections: &[(
        "WHAT WAITS",
        "Notes from a session stay in its repository. Your own sentence, word for word, may hold everywhere at once; \
         anything else that should hold everywhere, or that changes what you wrote, accepted or made global, waits. So \
         does an address, flag or command that only a tool's output showed.\n\n\
         The kinds of a change: create (a new note), update (another text), retire (to the archive), widen (to all \
         repositories), conflict (the text of another machine). The files are in proposals/, in the store's \
         history. Until you decide, no AGENTS.md and no prompt of an agent shows what they say. Later sessions may \
         correct or withdraw what a session of their repository proposed.",
    )],
};

/// How long a question waits for its answer.
const PATIENCE: u64 = 60 * 60;
/// The longest quote that is shown, in characters.
const QUOTE: usize = 1000;
/// The largest text that an editor may leave, in bytes.
const EDITED: u64 = 1 << 20;

#[derive(Debug, Default)]
struct Args {
    decisions: Vec<(Decision, String)>,
    json: bool,
    config: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Accept,
    Reject,
    /// Of a session: what it names is the session's id.
    RejectSession,
}

pub fn main() -> ExitCode {
    Program { about: &ABOUT, parse, run }.main()
}

fn parse(p: &mut Arguments) -> Result<Args> {
    use lexopt::prelude::*;
    let mut args = Args::default();
    let mut decision = None;
    while let Some(arg) = p.next()? {
        match arg {
            Long("accept") => {
                decision = Some(Decision::Accept);
                args.decisions.push((Decision::Accept, p.text()?));
            }
            Long("reject") => {
                decision = Some(Decision::Reject);
                args.decisions.push((Decision::Reject, p.text()?));
            }
            Long("reject-session") => args.decisions.push((Decision::RejectSession, p.text()?)),
            Long("json") => args.json = true,
            Long("config") => args.config = Some(p.path()?),
            Value(id) => match decision {
                Some(decision) => args.decisions.push((decision, text(id)?)),
                None => {
                    let id = text(id)?;
                    return Err(Error::unexpected(&one_line(&id, 80))
                        .hint("say what to do with it: --accept or --reject"));
                }
            },
            _ => return Err(arg.unexpected().into()),
        }
    }
    if args.decisions.iter().filter(|(_, word)| word == "-").count() > 1 {
        return Err(Error::usage("stdin can be read only once").hint("give \"-\" to one of the options"));
    }
    Ok(args)
}

/// What was decided, for the history.
#[derive(Default)]
struct Done {
    said: Vec<String>,
    sources: Vec<Source>,
}

fn run(args: Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    signal::watch(ABOUT.name, args.json);
    let reporter = Reporter::new(false);
    if !args.decisions.is_empty() {
        only_a_person("to accept or reject a change", env)?;
    }
    let store = Store::open(args.config.as_deref(), env, &reporter)?;
    let notes = Topics::at(&store.root);
    let mut done = Done::default();
    let ended = if args.decisions.is_empty() {
        let (waiting, broken) = notes.proposals()?;
        warn_of(&broken, &reporter);
        let is_asked = stdout.is_terminal()
            && std::io::stdin().is_terminal()
            && !args.json
            && AgentShell::of(env).is_none();
        match is_asked {
            true => {
                let refresh = || store.refresh(env, &reporter);
                Asking { notes: &notes, root: &store.root, env, done: &mut done, refresh: &refresh }
                    .ask(&by_session(waiting), stdout)
            }
            false => list(&notes, by_session(waiting), args.json, stdout),
        }
    } else {
        let ids = ids(&args.decisions, &notes, &reporter)?;
        for_each(&ids, Errors::new(ABOUT.name, args.json), stdout, |(decision, id), stdout| {
            decide(&notes, *decision, id, env.now(), args.json, &mut done, stdout)
        })
    };
    if !done.said.is_empty() {
        store.refresh(env, &reporter);
        let message = match &done.said[..] {
            [one] => format!("review: {one}"),
            all => format!("review: {} changes", all.len()),
        };
        let (storage, count) = (&store.config.storage, done.said.len());
        let committed =
            history::record(&store.root, storage, (message, Vec::new()), done.sources.iter(), count, env);
        if let Err(error) = committed {
            reporter.warn(&error.line());
        }
    }
    ended.map(|()| ExitCode::SUCCESS)
}

/// The sessions in the order of the oldest change of each.
fn by_session(waiting: Vec<Proposal>) -> Vec<Proposal> {
    let first = |proposal| waiting.iter().position(|other| session_of(other) == session_of(proposal));
    let order: Vec<Option<usize>> = waiting.iter().map(first).collect();
    let mut all: Vec<(Option<usize>, Proposal)> = order.into_iter().zip(waiting).collect();
    all.sort_by_key(|(first, _)| *first);
    all.into_iter().map(|(_, proposal)| proposal).collect()
}

/// What tells a session from others.
fn session_of(proposal: &Proposal) -> Option<(&str, &str)> {
    let Source { harness, thread_id, .. } = proposal.session.as_ref()?;
    Some((harness.as_deref().unwrap_or_default(), thread_id.as_deref().unwrap_or_default()))
}

/// A heading above the first change of each session.
fn heading<'a>(proposal: &'a Proposal, above: &mut Option<Option<(&'a str, &'a str)>>) -> Option<String> {
    let session = session_of(proposal);
    if above.replace(session) == Some(session) {
        return None;
    }
    let Some(source) = &proposal.session else { return Some("from no session".to_owned()) };
    let Source { harness, thread_id, repo, at, .. } = source;
    let day = at.as_deref().and_then(|at| at.get(..10));
    let parts = [harness.as_deref(), thread_id.as_deref(), repo.as_deref(), day];
    Some(whole_line(&format!("session: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(" "))))
}

fn list(notes: &Topics, waiting: Vec<Proposal>, json: bool, stdout: &mut Stdout) -> Result<()> {
    let mut above = None;
    for (number, proposal) in waiting.iter().enumerate() {
        let pending = Pending::of(notes, proposal.clone())?;
        if json {
            stdout.json(&Shown::of(&pending))?;
            continue;
        }
        if number > 0 {
            stdout.line("")?;
        }
        if let Some(heading) = heading(proposal, &mut above) {
            stdout.line(&disarmed(&heading))?;
            stdout.line("")?;
        }
        print(&pending, stdout)?;
    }
    Ok(())
}

/// What a person answers about one change.
enum Answer {
    Decide(Decision),
    Edit,
    Skip,
    Quit,
}

/// Asks about each. What is not answered waits on. What is decided shows at once: the next answer may take an hour.
struct Asking<'a> {
    notes: &'a Topics,
    root: &'a Root,
    env: &'a Env,
    done: &'a mut Done,
    refresh: &'a dyn Fn(),
}

impl Asking<'_> {
    fn ask(mut self, waiting: &[Proposal], stdout: &mut Stdout) -> Result<()> {
        if waiting.is_empty() {
            return stdout.line("nothing waits for a decision");
        }
        let mut above = None;
        let mut rejected = None;
        for (number, proposal) in waiting.iter().enumerate() {
            if rejected.is_some() && rejected == session_of(proposal) {
                continue;
            }
            let first = if number > 0 { "\n" } else { "" };
            if let Some(heading) = heading(proposal, &mut above) {
                stdout.line(&disarmed(&format!("{first}{heading}")))?;
            }
            let count = format!("{first}({} of {})", number + 1, waiting.len());
            match self.about(proposal, &count, stdout)? {
                Answer::Quit => return Ok(()),
                Answer::Decide(Decision::RejectSession) => {
                    rejected = session_of(proposal);
                    let of_it = waiting.iter().filter(|other| session_of(other) == rejected);
                    self.reject(of_it, stdout)?;
                }
                Answer::Decide(_) | Answer::Edit | Answer::Skip => {}
            }
        }
        Ok(())
    }

    /// Asks until one change is decided about, or left.
    fn about(&mut self, proposal: &Proposal, count: &str, stdout: &mut Stdout) -> Result<Answer> {
        let mut pending = Pending::of(self.notes, proposal.clone())?;
        stdout.line(count)?;
        print(&pending, stdout)?;
        loop {
            let answer = answer(session_of(proposal).is_some(), stdout)?;
            let decision = match answer {
                Answer::Edit => match self.edited(proposal, stdout)? {
                    true => Decision::Accept,
                    false => continue,
                },
                Answer::Decide(decision @ (Decision::Accept | Decision::Reject)) => decision,
                Answer::Decide(Decision::RejectSession) | Answer::Skip | Answer::Quit => return Ok(answer),
            };
            let shown = pending.note.as_ref().map(|note| note.entry.base());
            match carry_out(self.notes, decision, &proposal.id, shown.as_deref(), self.env.now(), self.done) {
                Ok(Outcome::NoteChanged) => {
                    stdout.line("the note has changed in this moment; this is the change now:")?;
                    pending = Pending::of(self.notes, review::find(self.notes, &proposal.id)?)?;
                    stdout.line(count)?;
                    print(&pending, stdout)?;
                    continue;
                }
                Ok(Outcome::Accepted(json)) => {
                    let path = json["path"].as_str().unwrap_or_default();
                    (self.refresh)();
                    stdout.line(&disarmed(&format!("accepted: {path}")))?;
                }
                Ok(Outcome::Rejected(_)) => {
                    (self.refresh)();
                    stdout.line("rejected")?;
                }
                // One that cannot be accepted does not stop the others.
                Err(error) => stdout.line(&disarmed(&format!("not accepted: {}", error.line())))?,
            }
            return Ok(Answer::Decide(decision));
        }
    }

    fn reject<'p>(&mut self, all: impl Iterator<Item = &'p Proposal>, stdout: &mut Stdout) -> Result<()> {
        for proposal in all {
            match carry_out(self.notes, Decision::Reject, &proposal.id, None, self.env.now(), self.done) {
                Ok(_) => stdout.line(&format!("rejected: {}", proposal.id))?,
                // Decided about before.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => stdout.line(&disarmed(&format!("not rejected: {}", error.line())))?,
            }
        }
        (self.refresh)();
        Ok(())
    }

    /// Lets the person edit the text. Has it another one now?
    fn edited(&self, proposal: &Proposal, stdout: &mut Stdout) -> Result<bool> {
        let Some(before) = review::draft_text(proposal) else {
            stdout.line("it brings no text that could be edited")?;
            return Ok(false);
        };
        let path = self.root.state().join(format!("{}.md", proposal.id));
        file::make_private_dir(&self.root.state())?;
        file::install(&path, &before, 0o600)?;
        stdout.flush()?;
        let after = edit(&path, self.env).and_then(|_| Ok(file::read(&path, EDITED)?));
        file::remove(&path)?;
        let set = match after {
            Ok(after) if after == before => {
                stdout.line("nothing was changed")?;
                return Ok(false);
            }
            Ok(after) => review::set_draft(self.notes, &proposal.id, after),
            Err(error) => Err(error),
        };
        match set {
            Ok(()) => Ok(true),
            Err(error) => {
                stdout.line(&disarmed(&format!("the text is left as it was: {}", error.line())))?;
                Ok(false)
            }
        }
    }
}

fn answer(has_session: bool, stdout: &mut Stdout) -> Result<Answer> {
    let session = if has_session { "[d]rop all of this session, " } else { "" };
    loop {
        stdout.text(&format!("[a]ccept, [e]dit and accept, [r]eject, {session}[s]kip or [q]uit? "))?;
        stdout.flush()?;
        let typed = stdin::answer(Deadline::after_seconds(PATIENCE))?;
        return Ok(match typed.as_deref().map(|typed| typed.trim().to_lowercase()).as_deref() {
            Some("a" | "accept") => Answer::Decide(Decision::Accept),
            Some("e" | "edit") => Answer::Edit,
            Some("r" | "reject") => Answer::Decide(Decision::Reject),
            Some("d" | "drop") if has_session => Answer::Decide(Decision::RejectSession),
            Some("s" | "skip") => Answer::Skip,
            Some("q" | "quit") => Answer::Quit,
            None => {
                stdout.line("")?;
                Answer::Quit
            }
            Some(_) => continue,
        });
    }
}

enum Outcome {
    Accepted(Value),
    Rejected(Value),
    NoteChanged,
}

fn carry_out(
    notes: &Topics,
    decision: Decision,
    id: &ProposalId,
    shown: Option<&str>,
    now: Timestamp,
    done: &mut Done,
) -> Result<Outcome> {
    let proposal = review::find(notes, id)?;
    let outcome = match decision {
        Decision::Accept => match review::accept(notes, id, shown, now)? {
            None => return Ok(Outcome::NoteChanged),
            Some(note) => Outcome::Accepted(json!({
                "proposal": id, "decision": "accepted", "id": note.entry.meta().id, "path": note.path,
            })),
        },
        Decision::Reject | Decision::RejectSession => {
            review::reject(notes, id)?;
            Outcome::Rejected(json!({"proposal": id, "decision": "rejected"}))
        }
    };
    let verb = if decision == Decision::Accept { "accept" } else { "reject" };
    done.said.push(format!("{verb} {}: {}", proposal.op, proposal.title()));
    done.sources.extend(proposal.session);
    Ok(outcome)
}

fn decide(
    notes: &Topics,
    decision: Decision,
    id: &ProposalId,
    now: Timestamp,
    json: bool,
    done: &mut Done,
    stdout: &mut Stdout,
) -> Result<()> {
    // Before it may change: this is what the person is shown.
    let pending = Pending::of(notes, review::find(notes, id)?)?;
    match carry_out(notes, decision, id, None, now, done)? {
        Outcome::Accepted(outcome) | Outcome::Rejected(outcome) if json => stdout.json(&outcome),
        Outcome::Accepted(outcome) => stdout.line(outcome["path"].as_str().unwrap_or_default()),
        Outcome::Rejected(_) => stdout.line(id.as_str()),
        Outcome::NoteChanged => {
            if json {
                stdout.json(&Shown::of(&pending))?;
            } else {
                print(&pending, stdout)?;
            }
            Err(Error::conflict(format!("the note has changed since {id} was proposed; nothing is done"))
                .hint("this is the change now; if it is right, accept it again"))
        }
    }
}

/// The ids in the order in which they are given.
fn ids(
    decisions: &[(Decision, String)],
    notes: &Topics,
    reporter: &Reporter,
) -> Result<Vec<(Decision, ProposalId)>> {
    let mut ids = Vec::new();
    for (decision, word) in decisions {
        if *decision == Decision::RejectSession {
            ids.extend(ids_of_session(notes, word)?.into_iter().map(|id| (Decision::Reject, id)));
            continue;
        }
        if word != "-" {
            ids.push((*decision, parse_id(word)?));
            continue;
        }
        each_on_stdin(reporter, not_ids, |named| match named {
            Named::Word(word) => {
                ids.push((*decision, parse_id(word)?));
                Ok(())
            }
            Named::Object(object) => ids_in(&object, &mut |id| ids.push((*decision, id))),
        })?;
    }
    Ok(ids)
}

fn ids_of_session(notes: &Topics, thread_id: &str) -> Result<Vec<ProposalId>> {
    let (waiting, _) = notes.proposals()?;
    let of_it = waiting
        .into_iter()
        .filter(|proposal| session_of(proposal).is_some_and(|(_, session)| session == thread_id));
    let ids: Vec<ProposalId> = of_it.map(|proposal| proposal.id).collect();
    if ids.is_empty() {
        let session = one_line(thread_id, 80);
        return Err(Error::not_found(format!("no change of the session \"{session}\" waits"))
            .hint("see the sessions with: memory-review"));
    }
    Ok(ids)
}

fn ids_in(object: &Value, take: &mut impl FnMut(ProposalId)) -> Result<()> {
    if let Some(proposals) = object.get("proposals").and_then(Value::as_array) {
        return proposals.iter().try_for_each(|one| ids_in(one, take));
    }
    let Some(id) = object.get("id").and_then(Value::as_str) else {
        return Err(not_ids("an object has neither a string \"id\" nor a list \"proposals\""));
    };
    take(parse_id(id)?);
    Ok(())
}

fn not_ids(why: &str) -> Error {
    Error::usage(format!("stdin does not name changes: {why}"))
        .hint("pipe in ids, or what memory-review --json prints")
}

fn parse_id(word: &str) -> Result<ProposalId> {
    ProposalId::parse(word).ok_or_else(|| {
        Error::usage(format!("\"{}\" is not the id of a change", one_line(word, 80)))
            .hint("write it like p__a1B2c3; see what waits with: memory-review")
    })
}

/// A proposal as JSON: the keys of its file, and what it would change.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    proposal: &'a Proposal,
    /// Of the note.
    path: Option<&'a Path>,
    /// Has the note changed since?
    changed: bool,
    diff: Vec<String>,
    /// The notes that say something about the same by now.
    beside: Vec<&'a EntryId>,
}

impl<'a> Shown<'a> {
    fn of(pending: &'a Pending) -> Shown<'a> {
        Shown {
            proposal: &pending.proposal,
            path: pending.note.as_ref().map(|note| note.path.as_path()),
            changed: pending.has_changed(),
            diff: pending.diff(),
            beside: pending.beside.iter().map(|(id, _)| id).collect(),
        }
    }
}

/// For a person. Nothing in it is live: models and web pages have written it.
fn print(pending: &Pending, stdout: &mut Stdout) -> Result<()> {
    lines(pending).iter().try_for_each(|line| stdout.line(&disarmed(line)))
}

fn lines(pending: &Pending) -> Vec<String> {
    let Proposal { id, op, note, entry, by, evidence, reasons, .. } = &pending.proposal;
    let title = match (entry, &pending.note) {
        (Some(entry), _) => whole_line(&entry.title),
        (None, Some(note)) => whole_line(&note.entry.meta().title),
        (None, None) => String::new(),
    };
    let note_id = note.as_ref().map(|note| format!("{note}  ")).unwrap_or_default();
    let mut lines = vec![format!("{id}  {op}  {note_id}{title}").trim_end().to_owned()];
    lines.extend(reasons.iter().map(|reason| format!("  waits: {}", whole_line(reason))));
    lines.push(format!("  by: {by}"));
    match &pending.note {
        Some(note) => lines.push(format!("  note: {}", note.path.display())),
        None if note.is_some() => lines.push("  the note is gone".to_owned()),
        None => {}
    }
    if pending.has_changed() {
        lines.push("  the note has changed since this was proposed".to_owned());
    }
    for Evidence { turn, quote, said } in evidence {
        let said = said.map_or("in no turn", |said| said.as_str());
        lines.push(format!("  quote ({}, {said}): \"{}\"", whole_line(turn), one_line(quote, QUOTE)));
    }
    let beside = pending.beside.iter();
    lines.extend(beside.map(|(id, title)| format!("  beside it now: {id}  {}", whole_line(title))));
    lines.extend(pending.diff().into_iter().map(|line| format!("  {line}").trim_end().to_owned()));
    lines
}
