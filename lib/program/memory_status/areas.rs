//! The areas of a status, from what the programs wrote down: what each is as JSON, and its lines.

use crate::base::cli::{Meaning, Paint};
use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::reach;
use crate::base::text::{counted, further, in_line};
use crate::harness::HARNESSES;
use crate::harness::spec::Spec;
use crate::memory::budget::{self, CallSum};
use crate::memory::doctor::{CheckContext, Finding, HarnessState, Severity, failure, glance};
use crate::memory::recall::last_given;
use crate::memory::review::{dangers_of, session_of};
use crate::memory::section::Aim;
use crate::memory::sync::remote;
use crate::schedule::installed::TimerRuns;
use crate::store::batch::Batches;
use crate::store::entry::Source;
use crate::store::health::{Health, Trouble, TroubleKind};
use crate::store::journal::{Journal, harness_and_time};
use crate::store::ledger::Tries;
use crate::store::persistence::{Persistence, Place};
use crate::store::runs::{self, Took};
use crate::store::topics::Topics;
use jiff::Timestamp;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The most lines of one kind on a screen.
const SHOWN: usize = 4;

/// What stands in an area, and the next step, if there is one.
pub(super) struct StatusLine {
    pub(super) area: &'static str,
    pub(super) meaning: Option<Meaning>,
    pub(super) what: String,
    pub(super) next: String,
}

impl StatusLine {
    /// What it says, or a row of that, in the colour of its meaning.
    pub(super) fn painted(&self, text: &str, paint: Paint) -> String {
        self.meaning.map_or(text.to_owned(), |meaning| paint.paint(meaning, text).into_owned())
    }
}

/// A line without a meaning of its own.
fn plain(area: &'static str, what: impl Into<String>, next: &str) -> StatusLine {
    StatusLine { area, meaning: None, what: what.into(), next: next.to_owned() }
}

fn line(area: &'static str, meaning: Meaning, what: impl Into<String>, next: &str) -> StatusLine {
    StatusLine { meaning: Some(meaning), ..plain(area, what, next) }
}

/// How things are told.
pub(super) struct Told<'a> {
    pub(super) home: Option<String>,
    pub(super) time: &'a dyn Fn(Timestamp) -> String,
    /// Nothing is left out, and no entries are joined.
    pub(super) is_whole: bool,
}

impl Told<'_> {
    fn path(&self, path: &Path) -> String {
        let path = in_line(&path.to_string_lossy());
        let below = self.home.as_deref().and_then(|home| path.strip_prefix(home));
        below.filter(|rest| rest.starts_with('/')).map(|rest| format!("~{rest}")).unwrap_or(path)
    }

    fn moment(&self, moment: Option<Timestamp>, if_none: &str) -> String {
        moment.map_or(if_none.to_owned(), self.time)
    }

    /// A line for each, or `none`; on a screen the first ones.
    fn some<T>(&self, all: &[T], line_of: impl Fn(&T) -> StatusLine, none: StatusLine) -> Vec<StatusLine> {
        let most = if self.is_whole { usize::MAX } else { SHOWN };
        let mut lines: Vec<StatusLine> = all.iter().take(most).map(line_of).collect();
        if all.is_empty() {
            lines.push(none);
        } else if all.len() > most {
            let command = if none.area == "review" { "memory review" } else { "memory status --json" };
            let what = format!("{} more: {command}", all.len() - most);
            lines.push(line(none.area, Meaning::Faint, what, ""));
        }
        lines
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoreStatus {
    /// The store's directory.
    store: PathBuf,
    #[serde(skip)]
    has_config: bool,
    notes: usize,
    archived: usize,
    /// What is wrong, the worst first.
    trouble: Vec<Finding>,
    queue: QueueStatus,
    calls: Spending,
    harnesses: Vec<HarnessUse>,
    targets: Vec<TargetUse>,
    review: Vec<WaitingSession>,
    /// `None`: the notes have no remote.
    sync: Option<SyncState>,
    timers: Vec<TimerRuns>,
}

impl StoreStatus {
    /// `found`: findings of other checks.
    ///
    /// # Errors
    /// A directory of the store cannot be listed.
    pub(super) fn of(cx: &CheckContext, found: Vec<Finding>, timers: Vec<TimerRuns>) -> Result<StoreStatus> {
        let count = |place: Place| Topics::at(cx.root).names(place.dir(), ".md").map(|names| names.len());
        let (trouble, harnesses) = glance(cx, found);
        let given = last_given(cx.root);
        let used = |state: HarnessState| HarnessUse { last_recall: given.get(state.harness).copied(), state };
        let last = Health::load(cx.root).synced;
        let remote = remote::current(cx.root, cx.env).or_else(|| cx.config.sync.remote.clone());
        Ok(StoreStatus {
            store: cx.root.path().to_path_buf(),
            has_config: cx.config_file != cx.root.path(),
            notes: count(Place::Topics)?,
            archived: count(Place::Archive)?,
            trouble,
            queue: QueueStatus::of(cx)?,
            calls: Spending::of(cx),
            harnesses: harnesses.into_iter().map(used).collect(),
            targets: cx.aims.iter().map(|aim| TargetUse::of(aim, cx)).collect(),
            review: WaitingSession::all(cx),
            sync: remote.map(|remote| SyncState { remote: remote::shown(&remote), last }),
            timers,
        })
    }

    pub(super) fn lines(&self, told: &Told) -> Vec<StatusLine> {
        let StoreStatus { trouble, harnesses, targets, review, timers, .. } = self;
        let none = line("trouble", Meaning::Good, "none", "memory doctor looks into the notes");
        let mut all = vec![self.notes(told)];
        all.extend(told.some(trouble, |finding| self.trouble(finding, told), none));
        all.extend(self.queue.lines(self.has_config, told));
        all.extend(self.calls.lines());
        let none = plain("timers", "no timer turns the queue into notes", "memory install-cron");
        all.extend(told.some(timers, |timer| timer_line(timer, told), none));
        let none = plain("agents", "no coding agent with hooks is used here", "");
        all.extend(told.some(harnesses, |harness| harness.line(told), none));
        let none = line("files", Meaning::Faint, "no AGENTS.md gets notes", "");
        all.extend(told.some(targets, |target| target.line(told), none));
        let none = line("review", Meaning::Good, "nothing waits for you", "");
        all.extend(told.some(review, |session| session.line(told), none));
        all.push(match &self.sync {
            None => line("sync", Meaning::Faint, "not set up: the notes are only on this machine", ""),
            Some(SyncState { remote, last }) => {
                let what = format!("with {}: last {}", in_line(remote), told.moment(*last, "never"));
                match last {
                    None => line("sync", Meaning::Warning, what, "memory sync"),
                    // That it was long ago is among the trouble.
                    Some(_) => plain("sync", what, ""),
                }
            }
        });
        all
    }

    fn notes(&self, told: &Told) -> StatusLine {
        let path = told.path(&self.store);
        if !self.store.join("topics").is_dir() {
            let add = "memory add --title TITLE --body TEXT";
            let next = if self.has_config { add } else { "memory config init" };
            return plain("notes", format!("there is no store yet ({path})"), next);
        }
        let archived = further(&[(self.archived, "archived")]);
        plain("notes", format!("{} in {path}{archived}", counted(self.notes, "note", "notes")), "")
    }

    fn trouble(&self, Finding { severity, file, what, mend, .. }: &Finding, told: &Told) -> StatusLine {
        let meaning = if *severity == Severity::Error { Meaning::Error } else { Meaning::Warning };
        let file = if *file == self.store { String::new() } else { format!("{}: ", told.path(file)) };
        line("trouble", meaning, in_line(&format!("{file}{what}")), &in_line(mend))
    }
}

/// What waits to be made into notes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct QueueStatus {
    /// The oldest first.
    waiting: Vec<WaitingEntry>,
    /// How many entries a run has taken out.
    claimed: usize,
    /// The last run failed and left everything in it.
    trouble: Option<Trouble>,
    #[serde(skip)]
    has_command: bool,
    /// Those that have failed for good.
    failed: Vec<WaitingEntry>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WaitingEntry {
    id: String,
    harness: Option<String>,
    since: Option<Timestamp>,
    /// `None`: the next run.
    next_try: Option<Timestamp>,
    last_error: Option<String>,
}

impl QueueStatus {
    fn of(cx: &CheckContext) -> Result<QueueStatus> {
        let (failed, journal) = (cx.root.inbox().join(".failed"), Journal::at(cx.root));
        let tries = Tries::load(cx.root).unwrap_or_default();
        let entries = |mut ids: Vec<String>, error_of: &dyn Fn(&str) -> Option<String>| {
            ids.sort();
            let entry = |id: String| {
                let (harness, since) =
                    harness_and_time(&id).map(|(harness, since)| (harness.to_owned(), since)).unzip();
                let last_error = error_of(&id).map(|why| cx.cleaned(&why));
                WaitingEntry { next_try: tries.next_try(&id, cx.env.now()), id, harness, since, last_error }
            };
            ids.into_iter().map(entry).collect()
        };
        let batches = Batches::of_queue(cx.root).all().unwrap_or_default();
        let claimed = batches.iter().filter_map(|batch| Journal::ids_in(&batch.claims()).ok());
        let trouble = Health::load(cx.root).troubles.remove(&TroubleKind::Waiting);
        Ok(QueueStatus {
            waiting: entries(journal.ids()?, &|id| tries.error(id).map(str::to_owned)),
            claimed: claimed.map(|ids| ids.len()).sum(),
            trouble: trouble.map(|trouble| Trouble { why: cx.cleaned(&trouble.why), ..trouble }),
            has_command: cx.config.llm.command.is_some(),
            failed: entries(journal.failed()?, &|id| Some(failure(&failed.join(format!("{id}.error.json"))))),
        })
    }

    fn lines(&self, has_config: bool, told: &Told) -> Vec<StatusLine> {
        let mut all = vec![self.sum(has_config)];
        for (entries, is_failed) in [(&self.waiting, false), (&self.failed, true)] {
            let groups = groups(entries, told);
            if !groups.is_empty() {
                let line_of = |group: &Vec<_>| self.group(group, is_failed, told);
                all.extend(told.some(&groups, line_of, plain("queue", "", "")));
            }
        }
        all
    }

    fn sum(&self, has_config: bool) -> StatusLine {
        if self.waiting.is_empty() && self.claimed == 0 {
            return line("queue", Meaning::Good, "nothing waits", "");
        }
        let claimed = further(&[(self.claimed, "in a run")]);
        let what = counted(self.waiting.len(), "entry waits", "entries wait") + &claimed;
        match &self.trouble {
            _ if !self.has_command => {
                let next = if has_config { "set llm.command" } else { "memory config init" };
                line("queue", Meaning::Warning, what + ", and llm.command is not set", next)
            }
            Some(trouble) => {
                let what = format!("{what}; the last run failed: {}", in_line(&trouble.why));
                line("queue", Meaning::Warning, what, "correct what it names, then: memory consolidate")
            }
            None => plain("queue", what, "memory consolidate"),
        }
    }

    fn group(&self, group: &[&WaitingEntry], is_failed: bool, told: &Told) -> StatusLine {
        const RETRY: &str = "memory consolidate --retry-failed";
        let (from, why) = (origin(group, told), group[0].last_error.as_deref().map(in_line));
        match why {
            Some(why) if is_failed => {
                line("queue", Meaning::Error, format!("{from}, failed for good: {why}"), RETRY)
            }
            Some(why) => {
                let next = group.iter().filter_map(|entry| entry.next_try).min();
                let next = told.moment(next, "at the next run");
                let what = format!("{from}: next try {next}; the last failed: {why}");
                line("queue", Meaning::Warning, what, &format!("correct what it names, then: {RETRY}"))
            }
            // No run has failed since the queue moved last.
            None if self.trouble.is_none() => plain("queue", format!("{from}: not tried yet"), ""),
            None => plain("queue", from, ""),
        }
    }
}

/// Entries of which the same is told are joined on a screen, where only the first is shown with the number of all.
fn groups<'a>(entries: &'a [WaitingEntry], told: &Told) -> Vec<Vec<&'a WaitingEntry>> {
    let mut groups: Vec<Vec<&WaitingEntry>> = Vec::new();
    for entry in entries {
        let is_alike = |group: &&mut Vec<&WaitingEntry>| group[0].last_error == entry.last_error;
        match groups.iter_mut().find(is_alike).filter(|_| !told.is_whole) {
            Some(group) => group.push(entry),
            None => groups.push(vec![entry]),
        }
    }
    groups
}

/// From where and since when: `2 from claude-code, the oldest 3 h ago`.
fn origin(group: &[&WaitingEntry], told: &Told) -> String {
    // A file that is no entry has its name alone.
    let mut harnesses: Vec<&str> =
        group.iter().map(|entry| entry.harness.as_deref().unwrap_or(&entry.id)).collect();
    harnesses.sort_unstable();
    harnesses.dedup();
    let (from, since) = (harnesses.join(", "), group.iter().filter_map(|entry| entry.since).min());
    let since = told.moment(since, "some time ago");
    in_line(&match group.len() {
        1 => format!("{from} {since}"),
        count => format!("{count} from {from}, the oldest {since}"),
    })
}

/// Of the day and of the month, in UTC.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spending {
    today: CallSum,
    month: CallSum,
    max_today: u64,
    /// The runs of axe's agents, which may answer the calls.
    runs_today: Took,
    runs_month: Took,
}

impl Spending {
    fn of(cx: &CheckContext) -> Spending {
        let now = cx.env.now();
        let [today, month] = budget::taken(cx.root, now).unwrap_or_default();
        let [runs_today, runs_month] = runs::took(cx.env, now).unwrap_or_default();
        Spending { today, month, max_today: cx.config.llm.max_calls_per_day, runs_today, runs_month }
    }

    fn lines(&self) -> Vec<StatusLine> {
        let Spending { today, month, max_today, runs_today, runs_month } = self;
        let of = |sum: &CallSum| match sum.calls {
            0 => "none".to_owned(),
            calls => format!("{calls} with about {} tokens", short(sum.tokens)),
        };
        let what = format!("today {} (at most {max_today}), this month {}", of(today), of(month));
        let next = "wait until midnight UTC, or raise llm.maxCallsPerDay";
        let is_spent = today.calls >= *max_today;
        let of_calls =
            if is_spent { line("calls", Meaning::Warning, what, next) } else { plain("calls", what, "") };
        let runs = |took: &Took| {
            let cost = took.cost.map(|cost| format!(", cost {}", (cost * 1e4).round() / 1e4));
            let (runs, cost) = (counted(took.runs as usize, "run", "runs"), cost.unwrap_or_default());
            format!("{runs} with {} tokens{cost}", short(took.tokens))
        };
        let what = format!("of axe: today {}, this month {}", runs(runs_today), runs(runs_month));
        let of_runs = (runs_month.runs > 0).then(|| plain("calls", what, "axe runs"));
        std::iter::once(of_calls).chain(of_runs).collect()
    }
}

/// `1234567` as `1.2 M`.
fn short(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{} k", number / 1000),
        _ => format!("{:.1} M", number as f64 / 1e6),
    }
}

fn timer_line(TimerRuns { program, scheduler, when, last, next }: &TimerRuns, told: &Told) -> StatusLine {
    let when = when.as_ref().map(|when| format!(" {when}")).unwrap_or_default();
    let (last, next) = (told.moment(*last, "unknown"), told.moment(*next, "unknown"));
    plain("timers", format!("{program}{when} by {scheduler}: last {last}, next {next}"), "")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HarnessUse {
    #[serde(flatten)]
    state: HarnessState,
    /// When a session of it was given notes last.
    last_recall: Option<Timestamp>,
}

impl HarnessUse {
    /// What is wrong with its hooks is among the trouble.
    fn line(&self, told: &Told) -> StatusLine {
        let done = |done: &str, at: Option<Timestamp>| match at {
            Some(at) => format!("{done} {}", (told.time)(at)),
            None => format!("never {done}"),
        };
        let (captured, recalled) =
            (done("captured", self.state.last_capture), done("recalled", self.last_recall));
        plain("agents", format!("{}: {captured}, {recalled}", self.state.harness), "")
    }
}

/// A file that gets notes.
#[derive(Serialize)]
struct TargetUse {
    path: PathBuf,
    exists: bool,
    /// `None`: the notes for everywhere.
    repo: Option<String>,
    /// The programs that are used here and read it.
    readers: Vec<&'static str>,
}

impl TargetUse {
    fn of(aim: &Aim, cx: &CheckContext) -> TargetUse {
        let (path, repo) = (aim.target.path.clone(), aim.target.repo.clone());
        let exists = reach::within(&path, Path::exists).unwrap_or(true);
        TargetUse { readers: readers(&path, cx.env), repo, exists, path }
    }

    fn line(&self, told: &Told) -> StatusLine {
        let yet = if self.exists { "" } else { "not there yet, " };
        let of = self.repo.as_ref().map(|repo| format!(" (notes of {})", in_line(repo))).unwrap_or_default();
        let readers = match self.readers.is_empty() {
            true => "no program that is used here reads it".to_owned(),
            false => format!("read by {}", self.readers.join(", ")),
        };
        plain("files", format!("{}{of}: {yet}{readers}", told.path(&self.path)), "")
    }
}

/// Who reads this file: those of whose own it is one, else those that look for its name in a repository.
fn readers(path: &Path, env: &Env) -> Vec<&'static str> {
    let here = || HARNESSES.iter().filter(|spec| spec.is_here(env));
    let is_own = |home: PathBuf, spec: &&&Spec| spec.reads.is_own(path, &home, env);
    let own: Vec<_> =
        here().filter(|spec| spec.home.dir(env).is_some_and(|home| is_own(home, spec))).collect();
    let all = if own.is_empty() { here().filter(|spec| spec.reads.is_project(path)).collect() } else { own };
    all.into_iter().map(|spec| spec.title).collect()
}

/// A session whose changes wait for a person.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WaitingSession {
    harness: Option<String>,
    thread_id: Option<String>,
    repo: Option<String>,
    at: Option<Timestamp>,
    changes: usize,
    /// How many of them do what always waits.
    dangerous: usize,
    /// The title of the first.
    title: String,
}

impl WaitingSession {
    /// The dangerous ones first, in the order of their first changes.
    fn all(cx: &CheckContext) -> Vec<WaitingSession> {
        let mut sessions: Vec<(Option<(&str, &str)>, WaitingSession)> = Vec::new();
        for proposal in &cx.waiting {
            let key = session_of(proposal);
            let dangerous = usize::from(!dangers_of(proposal).is_empty());
            if let Some((_, known)) = sessions.iter_mut().find(|(other, _)| *other == key) {
                known.changes += 1;
                known.dangerous += dangerous;
                continue;
            }
            let Source { harness, thread_id, repo, at, .. } = proposal.session.clone().unwrap_or_default();
            let at = at.and_then(|at| at.parse().ok());
            let title = cx.cleaned(proposal.title());
            sessions
                .push((key, WaitingSession { harness, thread_id, repo, at, changes: 1, dangerous, title }));
        }
        sessions.sort_by_key(|(_, session)| session.dangerous == 0);
        sessions.into_iter().map(|(_, session)| session).collect()
    }

    fn line(&self, told: &Told) -> StatusLine {
        let WaitingSession { harness, thread_id, repo, at, changes, dangerous, title } = self;
        let from: Vec<&str> = [harness, thread_id].into_iter().flatten().map(String::as_str).collect();
        let from = if from.is_empty() { "no session".to_owned() } else { from.join(" ") };
        let repo = repo.as_ref().map(|repo| format!(" in {repo}")).unwrap_or_default();
        let at = at.map(|at| format!(", {}", (told.time)(at))).unwrap_or_default();
        let danger = further(&[(*dangerous, "dangerous")]);
        let changes = counted(*changes, "change", "changes");
        let what = format!("{changes}{danger} from {from}{repo}{at}: {title}");
        let meaning = if *dangerous > 0 { Meaning::Error } else { Meaning::Warning };
        line("review", meaning, in_line(&what), "memory review")
    }
}

#[derive(Serialize)]
struct SyncState {
    remote: String,
    last: Option<Timestamp>,
}
