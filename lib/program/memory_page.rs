//! `memory-page`: the notes, and how they stand, as one HTML page.
//!
//! It only reads, and says no more than `memory-list --all`, `memory-read`, `memory-recall` and `memory-review` do, so an
//! agent may run it. No read of a note is counted.

mod note;

use crate::base::cli::{self, About, Args, Context, ExitCode, FlagRule, Paint, flag, path};
use crate::base::command_line::quoted;
use crate::base::error::Result;
use crate::base::text::one_line;
use crate::memory::section::Room;
use crate::program::axe_runs::html;
use crate::program::memory_page::note::{EXPIRED, IN_USE, PageNote, UNUSED, changes, related};
use crate::program::memory_review::text::text_of;
use crate::program::notes::{CONFIG, Store};
use crate::program::page::{Page, PageTarget, PageText, Panel, PanelEntry, Plot, Warning};
use crate::store::entry::{Scope, repos};
use crate::store::persistence::{Persistence, Place, warn_of};
use crate::store::proposal::Proposal;
use crate::store::runs;
use jiff::Timestamp;

pub(super) const ABOUT: About = About {
    name: "memory-page",
    caption: "write the notes to one HTML page",
    usage: &["memory-page [-o FILE] [--force]"],
    flags: &[
        path("output", "FILE", "write it here, readable by you alone (default: stdout)").short('o'),
        flag("force", "write even into a git repository, or over another file"),
        CONFIG,
    ],
    rules: &[FlagRule::Needs(&["--force"], &["--output"], "is about the file", "name it with -o")],
    text: include_str!("memory_page.md"),
    ..About::BLANK
};

const FILTERS: &[(&str, &str)] =
    &[("Repository", ""), ("Tag", ""), ("Tier", ""), ("Author", ""), ("State", IN_USE)];
const STATE: usize = 4;
/// The days of a bar.
const WEEK: i32 = 7;

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    let store = Store::open(args, cx)?;
    let is_forced = args.has("force");
    let target = PageTarget::of(args.path("output"), "-o", is_forced, store.root.path(), cx)?;
    let page = page_of(&store, cx)?;
    target.write(&page, cx)
}

fn page_of(store: &Store, cx: &Context) -> Result<Page> {
    let notes = store.service.notes();
    let scan = notes.scan(&[Place::Topics, Place::Archive], PageNote::of)?;
    let (waiting, unread) = notes.proposals()?;
    warn_of(&[scan.broken, unread].concat(), &cx.reporter);
    let mut notes = scan.found;
    // The newest first.
    notes.sort_by(|a, b| (b.meta.updated_at, &a.meta.id).cmp(&(a.meta.updated_at, &b.meta.id)));
    let (mut related, changes) = (related(&notes), changes(&store.root, cx));
    let (now, today) = (cx.env.now(), cx.env.today());
    let item = |note: &PageNote| {
        let (its, id) = (related.remove(&note.meta.id).unwrap_or_default(), &note.meta.id);
        note.item(its, changes.get(id).map_or(&[][..], Vec::as_slice), now, today)
    };
    let root = one_line(&store.root.path().to_string_lossy(), usize::MAX);
    Ok(Page {
        title: "Notes",
        made: format!("{} from {root}", PageText::time(now).as_str()).into(),
        things: ["note", "notes"],
        events: "History",
        filters: FILTERS,
        warnings: vec![
            Warning { text: "Notes whose last day is over", filter: STATE, value: EXPIRED },
            Warning {
                text: "Are they still true? Notes not changed, confirmed or read for six months",
                filter: STATE,
                value: UNUSED,
            },
        ],
        items: notes.iter().map(item).collect::<Result<_>>()?,
        panels: vec![sections(store, &notes)?, review(store, waiting)?, numbers(&notes, cx)],
    })
}

/// What the next session of each repository is given, and one outside of all repositories.
fn sections(store: &Store, notes: &[PageNote]) -> Result<Panel> {
    let of_repos = notes.iter().filter(|note| note.place == Place::Topics && note.meta.scope == Scope::Repo);
    let names: Vec<&str> = repos(of_repos.flat_map(|note| &note.meta.sources)).into_iter().collect();
    let audiences: Vec<Option<&str>> = [None].into_iter().chain(names.into_iter().map(Some)).collect();
    let sections = store.service.sections(&audiences, Room::of(&store.config.agents_md))?;
    let entries = audiences.iter().zip(sections).map(|(repo, section)| {
        let counts = section.counts();
        let repo = repo.map(|repo| one_line(repo, usize::MAX));
        let command = repo.as_ref().map(|repo| format!("memory-recall --repo {}", quoted(repo)));
        let title = repo.as_deref().unwrap_or("Anywhere else");
        PanelEntry {
            title: format!("{title}: {} whole, {} listed", counts.hot, counts.warm).into(),
            text: section.text().into(),
            commands: command.iter().map(PageText::from).collect(),
            is_diff: false,
        }
    });
    let about = "What memory-recall gives to the next session in each repository.";
    Ok(Panel { name: "Next session", about, entries: entries.collect(), ..Panel::default() })
}

/// The changes that wait for a person, in the order in which memory-review shows them.
fn review(store: &Store, waiting: Vec<Proposal>) -> Result<Panel> {
    let sessions = store.service.by_session(waiting);
    let waiting = sessions.into_iter().flatten().map(|(_, proposal)| proposal).collect();
    let pending = store.service.all_pending(waiting)?;
    let about = "Nothing on this page decides: copy a command, or run memory-review.";
    let entries = pending.iter().map(|pending| {
        let (id, text) = (&pending.proposal.id, text_of(pending, Paint::default()));
        let (title, text) = text.split_once('\n').unwrap_or((&text, ""));
        let commands = ["accept", "reject"].map(|act| format!("memory-review --{act} {id}").into());
        let text = PageText::start(text, "memory-review");
        PanelEntry { title: title.into(), text, commands: commands.into(), is_diff: true }
    });
    Ok(Panel { name: "Review", about, entries: entries.collect(), ..Panel::default() })
}

/// Use of the notes, and what runs of agents took, over time.
fn numbers(notes: &[PageNote], cx: &Context) -> Panel {
    let now = cx.env.now();
    let made = notes.iter().filter(|note| note.meta.superseded_by.is_none());
    let made = made.filter_map(|note| Some((Timestamp::from_millisecond(note.meta.created_at).ok()?, 1.0)));
    let read = notes.iter().filter_map(|note| Some((note.meta.last_used?, 1.0)));
    let mut plots = vec![
        Plot::of("New notes", "notes", WEEK, now, made),
        Plot::of("Notes by the time of their last read", "notes", WEEK, now, read),
    ];
    let mut runs = Vec::new();
    let ledger = runs::read(&cx.env, &mut |line| {
        runs.extend(line.run.ok());
        Ok(())
    });
    if let Err(error) = ledger {
        cx.reporter.warn(&format!("without what runs of agents took: {}", error.line()));
    }
    if !runs.is_empty() {
        plots.extend(html::plots(&runs, now));
    }
    Panel { name: "Use and cost", about: "Days and weeks are those of UTC.", plots, ..Panel::default() }
}
