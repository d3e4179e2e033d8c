//! `memory-page`: the notes, and how they stand, as one HTML file to look at.
//!
//! It only reads, and says no more than `memory-list --all`, `memory-read`, `memory-recall` and `memory-review` do, so an
//! agent may run it. No read of a note is counted.

mod history;
mod note;

use crate::base::cli::{self, About, Args, Context, ExitCode, flag, path};
use crate::base::command_line::quoted;
use crate::base::error::Result;
use crate::base::text::{counted, one_line};
use crate::memory::section::Room;
use crate::program::memory_page::history::Changes;
use crate::program::memory_page::note::{KnownNote, KnownNotes, State};
use crate::program::memory_review;
use crate::program::notes::{CONFIG, Store};
use crate::program::page::{Item, Page, PageFilter, PageTarget, Panel, PanelEntry, Plot, Shown, Warning};
use crate::store::entry::{Scope, repos};
use crate::store::persistence::{Persistence, Place, warn_of};
use crate::store::proposal::Proposal;
use crate::store::runs;
use jiff::Timestamp;
use jiff::civil::Date;

pub(super) const ABOUT: About = About {
    name: "memory-page",
    caption: "write the notes as one HTML file to look at",
    usage: &["memory-page [-o FILE] [--force]"],
    flags: &[
        path("output", "FILE", "write it here, readable by you alone (default: stdout)").short('o'),
        flag("force", "also into a git repository, or in the place of another file"),
        CONFIG,
    ],
    text: include_str!("memory_page.md"),
    ..About::BLANK
};

/// The index of the filter by [`State`].
const STATE: usize = 4;
/// The days of a bar: of notes, and of runs.
const WEEK: i32 = 7;
const DAY: i32 = 1;

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    let store = Store::open(args, cx)?;
    let is_forced = args.has("force");
    let target = PageTarget::of(args.path("output"), "-o", is_forced, Some(store.root.path()), cx)?;
    let page = page_of(&store, cx)?;
    target.write(&page, cx)
}

fn page_of(store: &Store, cx: &Context) -> Result<Page> {
    let notes = store.service.notes();
    let scan = notes.scan(&[Place::Topics, Place::Archive], KnownNote::of)?;
    let (waiting, unread) = notes.proposals()?;
    warn_of(&[scan.broken, unread].concat(), &cx.reporter);
    let known = KnownNotes::of(scan.found);
    let changes = Changes::of(&store.root, cx);
    let (now, today) = (cx.env.now(), cx.env.today());
    let items: Vec<Item> =
        known.each(|note, related| note.item(related, changes.of_note(&note.meta.id), now, today));
    let root = store.root.path().display().to_string();
    let first =
        [("Repository", ""), ("Tag", ""), ("Tier", ""), ("Author", ""), ("State", State::InUse.as_str())];
    let panels = vec![sections(store, &known)?, review(store, waiting)?, numbers(&known, cx)];
    Ok(Page {
        title: "Notes",
        made: format!("{} from {}", Shown::time(now).as_str(), one_line(&root, usize::MAX)).into(),
        things: ["note", "notes"],
        filters: first.into_iter().map(|(name, first)| PageFilter { name, first }).collect(),
        warnings: warnings(&known, now, today),
        panels,
        items,
    })
}

/// What has not been true, or was not needed, for long.
fn warnings(known: &KnownNotes, now: Timestamp, today: Date) -> Vec<Warning> {
    let of = |state: State, one: &str, many: &str| {
        let count = known.all().filter(|note| note.states(now, today).contains(&state)).count();
        let text = counted(count, one, many);
        (count > 0).then(|| Warning { text, filter: STATE, value: state.as_str() })
    };
    let expired = of(
        State::Expired,
        "note no longer holds: its last day is over.",
        "notes no longer hold: their last day is over.",
    );
    let unused = of(
        State::Unused,
        "note was neither changed, said again nor read for half a year. Is it still true?",
        "notes were neither changed, said again nor read for half a year. Are they still true?",
    );
    expired.into_iter().chain(unused).collect()
}

/// What the next session of each repository is given, and one outside of all repositories.
fn sections(store: &Store, known: &KnownNotes) -> Result<Panel> {
    let of_repos = known.all().filter(|note| note.place == Place::Topics && note.meta.scope == Scope::Repo);
    let names: Vec<&str> = repos(of_repos.flat_map(|note| &note.meta.sources)).into_iter().collect();
    let audiences: Vec<Option<&str>> = [None].into_iter().chain(names.into_iter().map(Some)).collect();
    let sections = store.service.sections(&audiences, Room::of(&store.config.agents_md))?;
    let entries = audiences.iter().zip(sections).map(|(repo, section)| {
        let counts = section.counts();
        let title = repo.map_or_else(|| "Anywhere else".to_owned(), |repo| one_line(repo, usize::MAX));
        let command =
            repo.map(|repo| format!("memory-recall --repo {}", quoted(&one_line(repo, usize::MAX))));
        PanelEntry {
            title: format!("{title}: {} whole, {} listed", counts.hot, counts.warm).into(),
            text: section.text().into(),
            commands: command.iter().map(Shown::from).collect(),
            is_diff: false,
        }
    });
    let about = "What memory-recall gives to the next session in each repository.".to_owned();
    Ok(Panel { name: "Next session", about, entries: entries.collect(), ..Panel::default() })
}

/// The changes that wait for a person, in the order in which memory-review shows them.
fn review(store: &Store, waiting: Vec<Proposal>) -> Result<Panel> {
    let sessions = store.service.by_session(waiting);
    let waiting = sessions.into_iter().flatten().map(|(_, proposal)| proposal).collect();
    let pending = store.service.all_pending(waiting)?;
    let about = match pending.len() {
        0 => "No change waits for you.".to_owned(),
        count => format!(
            "{} for your decision. Nothing on this page decides: copy a command, or run memory-review.",
            counted(count, "change waits", "changes wait")
        ),
    };
    let entries = pending.iter().map(|pending| {
        let (id, text) = (&pending.proposal.id, memory_review::text_of(pending));
        let (title, text) = text.split_once('\n').unwrap_or((&text, ""));
        let commands = ["accept", "reject"].map(|act| format!("memory-review --{act} {id}").into());
        PanelEntry { title: title.into(), text: text.into(), commands: commands.into(), is_diff: true }
    });
    Ok(Panel { name: "Review", about, entries: entries.collect(), ..Panel::default() })
}

/// Use of the notes, and what runs of agents took, over time.
fn numbers(known: &KnownNotes, cx: &Context) -> Panel {
    let now = cx.env.now();
    let made = known.all().filter(|note| note.meta.superseded_by.is_none());
    let made = made.filter_map(|note| Some((Timestamp::from_millisecond(note.meta.created_at).ok()?, 1.0)));
    let read = known.all().filter_map(|note| Some((note.meta.last_used?, 1.0)));
    let mut plots = vec![
        Plot::of("New notes", "notes", WEEK, now, made),
        Plot::of("Notes read, each where it was read last", "notes", WEEK, now, read),
    ];
    let (mut tokens, mut costs) = (Vec::new(), Vec::new());
    let ledger = runs::read(&cx.env, &mut |line| {
        if let Ok(run) = line.run {
            tokens.push((run.time, run.input_tokens.saturating_add(run.output_tokens) as f64));
            costs.extend(run.cost.map(|cost| (run.time, cost)));
        }
        Ok(())
    });
    if let Err(error) = ledger {
        cx.reporter.warn(&format!("without what runs of agents took: {}", error.line()));
    }
    if !tokens.is_empty() {
        plots.push(Plot::of("Runs of agents", "tokens", DAY, now, tokens.into_iter()));
    }
    if !costs.is_empty() {
        plots.push(Plot::of("Cost of runs", "of your currency", DAY, now, costs.into_iter()));
    }
    let about = "Days and weeks are those of UTC.".to_owned();
    Panel { name: "Use and cost", about, plots, ..Panel::default() }
}
