//! The lines of a status: what stands in each area, and the next step.

use crate::base::cli::Meaning;
use crate::base::text::{counted, in_line};
use crate::memory::doctor::{Finding, Severity};
use crate::memory::status::{HarnessUse, Spending, Status, TargetUse, WaitingEntry, WaitingSession};
use crate::schedule::runs::TimerRuns;
use crate::store::health::is_long_ago;
use crate::store::runs::Took;
use jiff::Timestamp;
use std::path::Path;

/// The most lines of one kind on a screen.
const SHOWN: usize = 4;

pub(super) struct Line {
    pub(super) area: &'static str,
    pub(super) meaning: Option<Meaning>,
    pub(super) what: String,
    pub(super) next: Option<String>,
}

/// How things are told.
pub(super) struct Told<'a> {
    pub(super) home: Option<String>,
    pub(super) time: &'a dyn Fn(Timestamp) -> String,
    /// Nothing is left out, and no entries are joined.
    pub(super) is_whole: bool,
    pub(super) now: Timestamp,
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
}

fn line(area: &'static str, what: impl Into<String>) -> Line {
    Line { area, meaning: None, what: what.into(), next: None }
}

impl Line {
    fn next(self, step: impl Into<String>) -> Line {
        Line { next: Some(step.into()), ..self }
    }

    fn means(self, meaning: Meaning) -> Line {
        Line { meaning: Some(meaning), ..self }
    }
}

pub(super) fn lines(status: &Status, timers: &[TimerRuns], told: &Told) -> Vec<Line> {
    let mut all = vec![store(status, told)];
    let trouble = status.trouble.iter().map(|finding| trouble(finding, &status.store, told));
    all.extend(some(trouble.collect(), no_trouble(), told));
    all.extend(queue(status, told));
    all.extend(spending(&status.calls));
    all.extend(some(timers.iter().map(|timer| self::timer(timer, told)).collect(), no_timers(), told));
    let harnesses = status.harnesses.iter().map(|harness| self::harness(harness, told)).collect();
    all.extend(some(harnesses, line("agents", "no coding agent with hooks is used here"), told));
    let targets = status.targets.iter().map(|target| self::target(target, told)).collect();
    all.extend(some(targets, line("files", "no AGENTS.md gets notes").means(Meaning::Faint), told));
    let sessions = status.review.iter().map(|session| self::session(session, told)).collect();
    all.extend(some(sessions, line("review", "nothing waits for you").means(Meaning::Good), told));
    all.push(sync(status, told));
    all
}

/// The lines, or `none`; on a screen the first ones.
fn some(mut lines: Vec<Line>, none: Line, told: &Told) -> Vec<Line> {
    let beyond = lines.len().saturating_sub(SHOWN);
    if lines.is_empty() {
        lines.push(none);
    } else if !told.is_whole && beyond > 0 {
        let area = lines[0].area;
        let command = if area == "review" { "memory review" } else { "memory status --json" };
        lines.truncate(SHOWN);
        lines.push(line(area, format!("{beyond} more: {command}")).means(Meaning::Faint));
    }
    lines
}

fn store(status: &Status, told: &Told) -> Line {
    let path = told.path(&status.store);
    if !status.store.join("topics").is_dir() {
        let next = match status.has_config {
            true => "memory add --title TITLE --body TEXT",
            false => "memory config init",
        };
        return line("notes", format!("there is no store yet ({path})")).next(next);
    }
    let archived = match status.archived {
        0 => String::new(),
        count => format!(", {count} archived"),
    };
    line("notes", format!("{} in {path}{archived}", counted(status.notes, "note", "notes")))
}

fn no_trouble() -> Line {
    line("trouble", "none").means(Meaning::Good).next("memory doctor looks into the notes")
}

fn trouble(finding: &Finding, store: &Path, told: &Told) -> Line {
    let Finding { severity, file, what, mend, .. } = finding;
    let meaning = match severity {
        Severity::Error => Meaning::Error,
        Severity::Warning => Meaning::Warning,
    };
    let what = match file == store {
        true => what.clone(),
        false => format!("{}: {what}", told.path(file)),
    };
    line("trouble", in_line(&what)).means(meaning).next(in_line(mend))
}

fn queue(status: &Status, told: &Told) -> Vec<Line> {
    let queue = &status.queue;
    let mut all = Vec::new();
    if queue.waiting.is_empty() && queue.claimed == 0 {
        all.push(line("queue", "nothing waits").means(Meaning::Good));
    } else {
        let waiting = counted(queue.waiting.len(), "entry waits", "entries wait");
        let claimed = match queue.claimed {
            0 => String::new(),
            count => format!(", {count} in a run"),
        };
        let what = waiting + &claimed;
        all.push(match &queue.trouble {
            _ if !queue.has_command => {
                let next = if status.has_config { "set llm.command" } else { "memory config init" };
                line("queue", what + ", and llm.command is not set").means(Meaning::Warning).next(next)
            }
            Some(trouble) => line("queue", format!("{what}; the last run failed: {}", in_line(&trouble.why)))
                .means(Meaning::Warning)
                .next("correct what it names, then: memory consolidate"),
            None => line("queue", what).next("memory consolidate"),
        });
    }
    let is_new = queue.trouble.is_none();
    let entries: Vec<Line> =
        groups(&queue.waiting, told).iter().map(|group| entry(group, is_new, told)).collect();
    let failed: Vec<Line> = groups(&queue.failed, told).iter().map(|group| failed(group, told)).collect();
    for lines in [entries, failed] {
        all.extend(if lines.is_empty() { lines } else { some(lines, line("queue", ""), told) });
    }
    all
}

/// Entries of which the same is told are joined on a screen, where only the first is shown with the number of all.
fn groups<'a>(entries: &'a [WaitingEntry], told: &Told) -> Vec<Vec<&'a WaitingEntry>> {
    let mut groups: Vec<Vec<&WaitingEntry>> = Vec::new();
    for entry in entries {
        let is_alike =
            |group: &&mut Vec<&WaitingEntry>| !told.is_whole && group[0].last_error == entry.last_error;
        match groups.iter_mut().find(is_alike) {
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
    let since = told.moment(group.iter().filter_map(|entry| entry.since).min(), "some time ago");
    match group.len() {
        1 => format!("{} {since}", harnesses.join(", ")),
        count => format!("{count} from {}, the oldest {since}", harnesses.join(", ")),
    }
}

/// `is_new`: no run has failed since the queue moved last.
fn entry(group: &[&WaitingEntry], is_new: bool, told: &Told) -> Line {
    let from = in_line(&origin(group, told));
    let next = group.iter().filter_map(|entry| entry.next_try).min();
    match &group[0].last_error {
        Some(why) => {
            let next = next.map_or("at the next run".to_owned(), told.time);
            line("queue", format!("{from}: next try {next}; the last failed: {}", in_line(why)))
                .means(Meaning::Warning)
                .next("correct what it names, then: memory consolidate --retry-failed")
        }
        None if is_new => line("queue", format!("{from}: not tried yet")),
        None => line("queue", from),
    }
}

fn failed(group: &[&WaitingEntry], told: &Told) -> Line {
    let why = group[0].last_error.as_deref().unwrap_or_default();
    line("queue", format!("{}, failed for good: {}", in_line(&origin(group, told)), in_line(why)))
        .means(Meaning::Error)
        .next("memory consolidate --retry-failed")
}

fn spending(calls: &Spending) -> Vec<Line> {
    let of = |calls: u64, tokens: u64| match calls {
        0 => "none".to_owned(),
        _ => format!("{calls} with about {} tokens", short(tokens)),
    };
    let Spending { today, month, max_today, runs_today, runs_month } = calls;
    let (day, all) = (of(today.calls, today.tokens), of(month.calls, month.tokens));
    let what = format!("today {day} (at most {max_today}), this month {all}");
    let runs = |took: &Took| {
        let cost = took.cost.map(|cost| format!(", cost {}", (cost * 1e4).round() / 1e4)).unwrap_or_default();
        format!("{} with {} tokens{cost}", counted(took.runs as usize, "run", "runs"), short(took.tokens))
    };
    let of_runs = format!("of axe: today {}, this month {}", runs(runs_today), runs(runs_month));
    let mut all = vec![match today.calls < *max_today {
        true => line("calls", what),
        false => line("calls", what)
            .means(Meaning::Warning)
            .next("wait until midnight UTC, or raise llm.maxCallsPerDay"),
    }];
    if runs_month.runs > 0 {
        all.push(line("calls", of_runs).next("axe runs"));
    }
    all
}

/// `1234567` as `1.2 M`.
fn short(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{} k", number / 1000),
        _ => format!("{:.1} M", number as f64 / 1e6),
    }
}

fn no_timers() -> Line {
    line("timers", "no timer turns the queue into notes").next("memory install-cron")
}

fn timer(timer: &TimerRuns, told: &Told) -> Line {
    let TimerRuns { program, scheduler, when, last, next } = timer;
    let when = when.as_ref().map(|when| format!(" {when}")).unwrap_or_default();
    let (last, next) = (told.moment(*last, "unknown"), told.moment(*next, "unknown"));
    line("timers", format!("{program}{when} by {scheduler}: last {last}, next {next}"))
}

/// What is wrong with its hooks is among the trouble.
fn harness(harness: &HarnessUse, told: &Told) -> Line {
    let HarnessUse { state, last_recall } = harness;
    let captured =
        state.last_capture.map_or("never captured".to_owned(), |at| format!("captured {}", (told.time)(at)));
    let recalled =
        last_recall.map_or("never recalled".to_owned(), |at| format!("recalled {}", (told.time)(at)));
    line("agents", format!("{}: {captured}, {recalled}", state.harness))
}

fn target(target: &TargetUse, told: &Told) -> Line {
    let TargetUse { path, exists, repo, readers } = target;
    let yet = if *exists { "" } else { "not there yet, " };
    let of = repo.as_ref().map(|repo| format!(" (notes of {})", in_line(repo))).unwrap_or_default();
    let readers = match readers.is_empty() {
        true => "no program that is used here reads it".to_owned(),
        false => format!("read by {}", readers.join(", ")),
    };
    line("files", format!("{}{of}: {yet}{readers}", told.path(path)))
}

fn session(session: &WaitingSession, told: &Told) -> Line {
    let WaitingSession { harness, thread_id, repo, at, changes, dangerous, title } = session;
    let from: Vec<&str> = [harness, thread_id].into_iter().flatten().map(String::as_str).collect();
    let from = if from.is_empty() { "no session".to_owned() } else { from.join(" ") };
    let repo = repo.as_ref().map(|repo| format!(" in {repo}")).unwrap_or_default();
    let at = at.map(|at| format!(", {}", (told.time)(at))).unwrap_or_default();
    let danger = if *dangerous > 0 { format!(", {dangerous} dangerous") } else { String::new() };
    let changes = counted(*changes, "change", "changes");
    let what = format!("{changes}{danger} from {from}{repo}{at}: {title}");
    let meaning = if *dangerous > 0 { Meaning::Error } else { Meaning::Warning };
    line("review", in_line(&what)).means(meaning).next("memory review")
}

fn sync(status: &Status, told: &Told) -> Line {
    let Some(sync) = &status.sync else {
        return line("sync", "not set up: the notes are only on this machine").means(Meaning::Faint);
    };
    let what = format!("with {}: last {}", in_line(&sync.remote), told.moment(sync.last, "never"));
    match sync.last.is_none_or(|last| is_long_ago(last, told.now)) {
        true => line("sync", what).means(Meaning::Warning).next("memory sync"),
        false => line("sync", what),
    }
}
