//! `memory-list`: list the notes by title, or search them.

mod dot;

use crate::base::cli::{
    self, About, Args, Cell, Column, Context, ExitCode, FlagRule, MatchFinder, Meaning, Table, Words, count,
    flag, one_of, value,
};
use crate::base::error::{Error, Result};
use crate::base::stderr;
use crate::base::text::counted;
use crate::memory::code::{CodeState, NoteState, NoteStates, states};
use crate::memory::search::{Found, Query};
use crate::memory::service::{Filter, NoteService, shown_in};
use crate::program::notes::{CONFIG, Listed, SCOPE, STATUS, Store, TIER, repository_here, wanted_tag, words};
use crate::program::screen::present_table;
use crate::store::entry::{By, EntryId, Meta, Scope, Status, Tier};
use crate::store::persistence::{Persistence, Place, warn_of};
use crate::store::proposal::ProposalId;
use jiff::civil::Date;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) const ABOUT: About = About {
    name: "memory-list",
    caption: "list notes, or search them",
    usage: &["memory-list [WORDS…] [--limit N] [FILTERS] [--sort KEY] [--json]"],
    flags: &[
        value("query", "WORDS", "the same as WORDS: only matching notes, best first"),
        STATUS,
        TIER,
        value("tag", "T", "topic__x, area__x, or x for topic__x; repeatable").from("tags"),
        SCOPE,
        value("repo", "R", "only notes of this repository (host/owner/name; . for the current)")
            .from("repositories"),
        flag("all", "notes of every repository, not only of the current one"),
        flag("pinned", "only pinned notes"),
        one_of("by", "WHO", &["person", "agent", "tool"], "person, agent or tool: who the note comes from"),
        flag("expired", "only notes whose last day (until) is over"),
        flag("archived", "archived notes instead of those in use"),
        one_of("sort", "KEY", &["used", "updated", "created", "title"], "used, updated, created or title"),
        count("limit", "at most N notes"),
        one_of("links", "FORM", &["dot"], "dot: the notes and their links as a graph, for graphviz"),
        flag("json", "one JSON object per line"),
        CONFIG,
    ],
    words: Words::AtMost(usize::MAX),
    rules: &[
        FlagRule::Apart("--query", &["WORDS"], "give one of them"),
        FlagRule::Apart("--links", &["--json"], ""),
        FlagRule::Apart("--all", &["--repo"], "--repo alone lists the notes of one repository"),
    ],
    text: include_str!("memory_list.md"),
    ..About::BLANK
};

const COLUMNS: &[Column] = &[
    Column::whole("ID", 0),
    Column::whole("TIER", 3),
    Column::whole("STATUS", 6),
    Column::number("USED", 5),
    Column::cut("TITLE", 32, 0),
    Column::cut("TAGS", 12, 4),
    Column::tail("REPOSITORY", 12, 2),
    Column::cut("REMARK", 12, 1),
    // On a terminal it is below the row.
    Column::pipe("LINE"),
];

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    let tags = args.texts("tag").into_iter().map(|tag| wanted_tag("option \"--tag\"", tag));
    let tags = tags.collect::<Result<_>>()?;
    let store = Store::open(args, cx)?;
    let today = cx.env.today();
    let filter = Filter {
        status: args.text("status").and_then(Status::parse),
        tier: args.text("tier").and_then(Tier::parse),
        scope: args.text("scope").and_then(Scope::parse),
        tags,
        repo: store.named_repo(args, cx)?,
        pinned: args.has("pinned"),
        by: args.text("by").and_then(By::parse),
        over_on: args.has("expired").then_some(today),
    };
    let is_narrow = !args.has("all") && filter.repo.is_none();
    let checkout = repository_here(cx);
    let here = checkout.as_ref().filter(|_| is_narrow).map(|here| here.name.clone());
    let place = if args.has("archived") { Place::Archive } else { Place::Topics };
    let view = ListedNotes { place, filter, here, elsewhere: AtomicUsize::new(0) };
    let query = query(args)?;
    let query = query.as_deref();
    let (sort, limit) = (args.text("sort"), args.number("limit").unwrap_or(usize::MAX));
    let shared = if place == Place::Topics { Some(store.shared(cx)?) } else { None };
    let order = sort.or(query.is_none().then_some("title"));
    // Unless the best come first, any of them may be the first.
    let most = if sort.is_none() { limit } else { usize::MAX };
    let mut rows = ordered(view.found(&store.service, query, most, cx)?, order, limit);
    // After the person's own.
    if let Some(shared) = shared.filter(|shared| !shared.notes().notes.is_empty()) {
        let more = view.found(&shared, query, usize::MAX, cx)?;
        rows.extend(ordered(more, order, limit - rows.len()));
        rows.truncate(limit);
    }
    let (proposals, _) = store.service.notes().proposals()?;
    let mut waiting: BTreeMap<&EntryId, Vec<ProposalId>> = BTreeMap::new();
    for (note, id) in proposals.iter().filter_map(|one| Some((one.note.as_ref()?, &one.id))) {
        waiting.entry(note).or_default().push(id.clone());
    }
    let states = states(Some(&store.root), checkout.as_slice(), rows.iter().map(|row| &row.view.meta));
    let listing = NoteTable { view: &view, waiting, states, has_query: query.is_some(), today };
    match cx.json {
        _ if args.has("links") => cx.stdout.text(&dot::graph(&rows))?,
        true => rows.iter().try_for_each(|row| listing.print_json(row, cx))?,
        false => {
            let words = query.map(Query::parse);
            let search = words.as_ref().map(|words| move |text: &str| words.places(text));
            listing.print(&rows, search.as_ref().map(|search| search as MatchFinder), cx)?;
        }
    }
    cx.stdout.flush()?;
    // A search that has found enough does not look at the rest.
    let is_counted = query.is_none() || sort.is_some() || rows.len() < limit;
    hints(view.elsewhere.into_inner(), is_counted, rows.is_empty(), proposals.len(), cx);
    // The answer does not depend on it, and a store that cannot be written to can be searched.
    let _ = store.service.keep_up();
    Ok(())
}

/// What is searched for: the words, or the value of --query.
fn query(args: &Args) -> Result<Option<String>> {
    let query = args.text("query").map(str::to_owned);
    match query.filter(|query| !query.trim().is_empty()) {
        None if args.has("query") => Err(Error::empty("--query").hint("without it, all notes are listed")),
        None => words(args, "without them, all notes are listed"),
        query => Ok(query),
    }
}

/// What a person may want to look at besides.
fn hints(elsewhere: usize, is_counted: bool, is_empty: bool, waiting: usize, cx: &Context) {
    let is_table = cx.stdout.is_terminal();
    if cx.json || !is_table && !is_empty {
        return;
    }
    if is_table && is_empty {
        stderr::line("no note was found");
    }
    if elsewhere > 0 {
        let (one, many) = ("note of another repository is", "notes of other repositories are");
        let what = if is_counted { counted(elsewhere, one, many) } else { many.to_owned() };
        stderr::line(&format!("{what} not shown: --all"));
    }
    if is_table && waiting > 0 {
        let what = counted(waiting, "change waits", "changes wait");
        stderr::line(&format!("{what} for your decision: memory review"));
    }
}

/// Which notes are listed.
struct ListedNotes {
    place: Place,
    filter: Filter,
    /// The repository whose notes are listed, beside the global ones. `None`: all.
    here: Option<String>,
    /// How many notes were left out because they are another's.
    elsewhere: AtomicUsize,
}

impl ListedNotes {
    fn shows(&self, meta: &Meta) -> bool {
        if !self.filter.matches(meta) {
            return false;
        }
        let Some(here) = &self.here else { return true };
        let is_here = shown_in(meta, here);
        if !is_here {
            self.elsewhere.fetch_add(1, Ordering::Relaxed);
        }
        is_here
    }

    /// Those that match the query, the best first; without one all.
    fn found<P: Persistence + Sync>(
        &self,
        service: &NoteService<P>,
        query: Option<&str>,
        most: usize,
        cx: &Context,
    ) -> Result<Vec<Found>> {
        let wanted = |meta: &Meta| self.shows(meta);
        let is_any = self.filter == Filter::default() && self.here.is_none();
        let findings = match query {
            None => service.list(self.place, wanted)?,
            Some(query) if is_any => service.search(self.place, query, None, most)?,
            Some(query) => service.search(self.place, query, Some(&wanted), most)?,
        };
        warn_of(&findings.broken, &cx.reporter);
        if !findings.loosened.is_empty() && !findings.found.is_empty() {
            let phrases: Vec<String> =
                findings.loosened.iter().map(|phrase| format!("\"{phrase}\"")).collect();
            let its = if phrases.len() == 1 { "its" } else { "their" };
            let phrases = phrases.join(" and ");
            cx.reporter.warn(&format!("no note has {phrases}; notes with {its} words are shown"));
        }
        Ok(findings.found)
    }

    /// The repository of a note: of several the current one, or else the first. `None` for a global note.
    fn repo<'a>(&self, meta: &'a Meta) -> Option<&'a str> {
        if meta.scope == Scope::Global {
            return None;
        }
        let mut repos = meta.sources.iter().filter_map(|source| source.repo.as_deref());
        let first = repos.clone().next();
        repos.find(|repo| Some(*repo) == self.here.as_deref()).or(first)
    }
}

/// What is worth a remark: who said it, until when it holds, what it rests on, and that a change waits.
fn remarks(meta: &Meta, state: NoteState, waits: bool, today: Date) -> Vec<String> {
    let by = match meta.is_shared() {
        true => Some("from the repository".to_owned()),
        false => meta.by.map(|by| format!("by {by}")),
    };
    let until = meta.until.map(|until| match meta.is_expired(today) {
        true => format!("expired on {until}"),
        false => format!("until {until}"),
    });
    let code = match changed(state) {
        Some("gone") => Some("its code is gone".to_owned()),
        code => code.map(|_| "its code has changed".to_owned()),
    };
    let branch = meta.branch.as_ref().filter(|_| state.is_elsewhere);
    let branch = branch.map(|branch| format!("learned on branch {}", branch.name));
    let waits = waits.then(|| "a change waits: memory review".to_owned());
    [by, until, code, branch, waits].into_iter().flatten().collect()
}

/// What has become of a note's code, if that says something about the note.
fn changed(state: NoteState) -> Option<&'static str> {
    state.is_in_doubt().then_some(if state.code == CodeState::Gone { "gone" } else { "changed" })
}

/// Without a key they stay in the order of the best.
fn ordered(mut rows: Vec<Found>, sort: Option<&str>, limit: usize) -> Vec<Found> {
    if let Some(sort) = sort {
        rows.sort_by_cached_key(|row| {
            let meta = &row.view.meta;
            let number = match sort {
                "used" => i64::try_from(meta.used).unwrap_or(i64::MAX),
                "updated" => meta.updated_at,
                "created" => meta.created_at,
                _ => 0,
            };
            (Reverse(number), meta.title.to_lowercase(), meta.id.clone())
        });
        rows.truncate(limit);
    }
    rows
}

/// How notes are printed.
struct NoteTable<'a> {
    view: &'a ListedNotes,
    /// The changes that wait, by note.
    waiting: BTreeMap<&'a EntryId, Vec<ProposalId>>,
    states: NoteStates,
    has_query: bool,
    today: Date,
}

impl NoteTable<'_> {
    fn state(&self, id: &EntryId) -> NoteState {
        self.states.get(id).copied().unwrap_or_default()
    }

    fn print_json(&self, row: &Found, cx: &mut Context) -> Result<()> {
        let proposals = self.waiting.get(&row.view.meta.id).map_or(&[][..], Vec::as_slice);
        cx.stdout.json(&Listed {
            repo: Some(self.view.repo(&row.view.meta)),
            score: self.has_query.then_some(row.score),
            line: row.line.as_deref(),
            code: changed(self.state(&row.view.meta.id)),
            change: !proposals.is_empty(),
            proposals,
            ..Listed::of(&row.view.meta, &row.view.path)
        })
    }

    fn print(&self, rows: &[Found], search: Option<MatchFinder>, cx: &mut Context) -> Result<()> {
        let mut table = Table::new(COLUMNS, search);
        for row in rows {
            let Meta { id, tier, status, used, title, tags, .. } = &row.view.meta;
            let repo = match (row.view.meta.scope, self.view.repo(&row.view.meta)) {
                (Scope::Global, _) => "global",
                (Scope::Repo, Some(repo)) => repo,
                // Somebody wrote the scope by hand.
                (Scope::Repo, None) => "-",
            };
            let mut remarks =
                remarks(&row.view.meta, self.state(id), self.waiting.contains_key(id), self.today);
            // The end of them may be cut there.
            if cx.stdout.is_terminal() {
                remarks.reverse();
            }
            let tier = match tier {
                Tier::Hot => Cell::Meant(Meaning::Hot, tier.to_string()),
                Tier::Warm => tier.to_string().into(),
                Tier::Cold => Cell::Meant(Meaning::Cold, tier.to_string()),
            };
            let line = row.line.as_deref().unwrap_or_default();
            let cells = vec![
                Cell::Meant(Meaning::Faint, id.to_string()),
                tier,
                Cell::Meant(Meaning::Faint, status.to_string()),
                used.to_string().into(),
                title.clone().into(),
                tags.join(" ").into(),
                repo.to_owned().into(),
                Cell::Meant(Meaning::Warning, remarks.join(", ")),
                line.to_owned().into(),
            ];
            table.row(cells, line, &mut cx.stdout)?;
        }
        present_table(&table, cx)
    }
}
