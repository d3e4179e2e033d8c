//! `axe-runs`: what runs of agents took, from the ledger. It is read once, line by line.

pub mod html;

use crate::base::ago::ago;
use crate::base::cli::{
    self, About, Args, Cell, Column, Context, ExitCode, FlagRule, Meaning, Table, Words, count, flag, one_of,
    path, value,
};
use crate::base::error::{Error, Result, unwritable};
use crate::base::text::{counted, disarmed};
use crate::config::memory;
use crate::program::page::PageTarget;
use crate::program::screen::present_table;
use crate::store::run_id::RunId;
use crate::store::runs::{self, LedgerLine, Run};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, VecDeque};

pub(super) const ABOUT: About = About {
    name: "axe-runs",
    caption: "list the runs of agents, or sum up what they took",
    usage: &[
        "axe-runs [FILTERS] [--limit N] [--json]",
        "axe-runs [FILTERS] --by model|agent|day [--json]",
        "axe-runs [FILTERS] [--limit N] --html FILE [--force]",
        "axe-runs ID [--json]",
        "axe-runs --trim WHEN",
    ],
    flags: &[
        value("agent", "NAME", "only runs of this agent").from("agents"),
        value("since", "WHEN", "only runs since 7d (days; h, m, w), or since 2026-02-28"),
        flag("failed", "only runs with another exit code than 0"),
        count("limit", "only the newest N runs"),
        one_of("by", "KEY", &["model", "agent", "day"], "sums for each model, agent or day (UTC)"),
        path("html", "FILE", "write the runs to one HTML page"),
        flag("force", "with --html: write even into a git repository, or over another file"),
        value("trim", "WHEN", "remove the runs before WHEN from the ledger"),
        flag("json", "one JSON object per line"),
    ],
    words: Words::AtMost(1),
    rules: &[
        FlagRule::Apart("--by", &["--limit"], ""),
        FlagRule::Apart(
            "--trim",
            &["--agent", "--since", "--failed", "--limit", "--by", "--html", "--json"],
            "",
        ),
        FlagRule::Apart("--html", &["--by", "--json"], ""),
        FlagRule::Needs(&["--force"], &["--html"], "is about the file", "name it with --html"),
    ],
    text: include_str!("axe_runs.md"),
    ..About::BLANK
};

const COLUMNS: &[Column] = &[
    Column::whole("ID", 0),
    Column::whole("WHEN", 3),
    Column::number("EXIT", 0),
    Column::cut("AGENT", 10, 0),
    Column::cut("MODEL", 12, 5),
    Column::number("INPUT", 4),
    Column::number("OUTPUT", 4),
    Column::pipe("READ"),
    Column::pipe("WRITTEN"),
    Column::number("COST", 2),
    Column::pipe("CALLS"),
    Column::number("MS", 6),
    Column::pipe("PROGRAM"),
    Column::pipe("PARENT"),
    Column::cut("ERROR", 16, 1),
];
/// Of sums; the first column is the key.
const fn sum_columns(title: &'static str) -> [Column; 10] {
    [
        Column::cut(title, 12, 0),
        Column::number("RUNS", 0),
        Column::number("FAILED", 0),
        Column::number("INPUT", 2),
        Column::number("OUTPUT", 2),
        Column::number("CACHED", 4),
        Column::pipe(""),
        Column::number("COST", 1),
        Column::pipe(""),
        Column::cut("", 10, 3),
    ]
}

/// How many unreadable lines are named.
const MOST_WARNINGS: u64 = 5;
/// The longest bar, and what stands before it.
const BAR_WIDTH: usize = 40;
const BEFORE_BAR: usize = 60;

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    let now = cx.env.now();
    let when = |flag: &str| args.parsed(flag, |text| moment(flag, text, now));
    if let [id, ..] = args.words()[..] {
        return match ["agent", "since", "failed", "limit", "by", "html", "trim"]
            .into_iter()
            .find(|flag| args.has(flag))
        {
            Some(flag) => Err(Error::usage(format!("option \"--{flag}\" does not go with the id of a run"))),
            None => one(&RunId::parse(id)?, cx),
        };
    }
    if let Some(start) = when("trim")? {
        let (removed, kept) = runs::trim(&cx.env, start)?;
        return cx.stdout.line(&format!("{} removed, {kept} kept", counted(removed as usize, "run", "runs")));
    }
    let since = when("since")?;
    let (agent, is_failed) = (args.text("agent"), args.has("failed"));
    let is_wanted = |run: &Run| {
        agent.is_none_or(|agent| run.agent == agent)
            && since.is_none_or(|since| run.time >= since)
            && (!is_failed || run.exit != 0)
    };
    let limit: Option<usize> = args.number("limit");
    if let Some(path) = args.path("html") {
        let store = memory::load(None, &cx.env, &cx.reporter)?.storage.root;
        let target = PageTarget::of(Some(path), "--html", args.has("force"), &store, cx)?;
        let runs = newest(limit.unwrap_or(usize::MAX), &|run| html::has_ids(run) && is_wanted(run), cx)?;
        return target.write(&html::page(&Vec::from(runs), now)?, cx);
    }
    let mut table = Table::new(COLUMNS, None);
    match (args.text("by"), limit) {
        (Some(key), _) => {
            let mut sums = BTreeMap::<String, Sum>::new();
            each(cx, &mut |run, _| {
                if is_wanted(&run) {
                    sums.entry(key_of(key, &run)).or_default().add(&run);
                }
                Ok(())
            })?;
            print_sums(key, &sums, cx)
        }
        (None, None) => {
            each(cx, &mut |run, cx| if is_wanted(&run) { print(&run, &mut table, cx) } else { Ok(()) })?;
            present_table(&table, cx)
        }
        (None, Some(limit)) => {
            newest(limit, &is_wanted, cx)?.iter().rev().try_for_each(|run| print(run, &mut table, cx))?;
            present_table(&table, cx)
        }
    }
}

/// At most so many runs, the newest first.
fn newest(limit: usize, is_wanted: &dyn Fn(&Run) -> bool, cx: &mut Context) -> Result<VecDeque<Run>> {
    let mut newest = VecDeque::new();
    each(cx, &mut |run, _| {
        if is_wanted(&run) {
            newest.truncate(limit - 1);
            newest.push_front(run);
        }
        Ok(())
    })?;
    Ok(newest)
}

/// `7d` before now, a day in UTC, or a time.
fn moment(flag: &str, text: &str, now: Timestamp) -> Result<Timestamp> {
    let age = |text: &str| {
        let units = [('m', 60), ('h', 3600), ('d', 24 * 3600), ('w', 7 * 24 * 3600)];
        let (number, seconds) =
            units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(*unit)?, seconds)))?;
        let number: i64 = number.parse().ok().filter(|number| *number >= 0)?;
        now.checked_sub(SignedDuration::from_secs(number.checked_mul(*seconds)?)).ok()
    };
    let day = |text: &str| {
        let day: Date = (text.len() == 10).then(|| text.parse().ok()).flatten()?;
        Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp())
    };
    age(text).or_else(|| day(text)).or_else(|| text.parse().ok()).ok_or_else(|| {
        Error::usage(format!("the value of \"--{flag}\" is no time: \"{}\"", text.escape_debug()))
            .hint("write it like 7d, 12h, 2026-02-28 or 2026-02-28T15:04:05Z")
    })
}

/// Shows `visit` each run, the oldest first. Lines that cannot be read are left out, with a warning.
fn each(cx: &mut Context, visit: &mut dyn FnMut(Run, &mut Context) -> Result<()>) -> Result<()> {
    let (mut unreadable, mut last) = (0, 0);
    let env = cx.env.clone();
    runs::read(&env, &mut |LedgerLine { number, run, .. }| match run {
        Ok(run) => visit(run, cx),
        Err(why) => {
            // A line that is too long comes in pieces.
            if last != number {
                unreadable += 1;
                if unreadable <= MOST_WARNINGS {
                    cx.reporter.warn(&format!("line {number} of the ledger is left out: {why}"));
                }
            }
            last = number;
            Ok(())
        }
    })?;
    if unreadable > MOST_WARNINGS {
        let path = runs::path(&env)?;
        cx.reporter.warn(&format!("{unreadable} lines of \"{}\" are left out", path.display()));
    }
    Ok(())
}

/// One run with everything that is known: the line of the ledger, for a person.
fn one(id: &RunId, cx: &mut Context) -> Result<()> {
    let mut found = None;
    each(cx, &mut |run, _| {
        if run.id == id.as_str() {
            found = Some(run);
        }
        Ok(())
    })?;
    let run = found.ok_or_else(|| {
        Error::not_found(format!("no run \"{id}\" in the ledger")).hint("see them with: axe runs")
    })?;
    if cx.json {
        return cx.stdout.json(&run);
    }
    cx.stdout.line(&disarmed(&serde_json::to_string_pretty(&run).map_err(unwritable)?))
}

/// `-` if it is not known.
fn cost(cost: Option<f64>) -> String {
    cost.map_or_else(|| "-".to_owned(), |cost| ((cost * 1e6).round() / 1e6).to_string())
}

/// A run is printed in a pipe, or goes into the table.
fn print(run: &Run, table: &mut Table, cx: &mut Context) -> Result<()> {
    if cx.json {
        return cx.stdout.json(run);
    }
    let Run { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, .. } = run;
    let error = run.error.as_ref().map(|error| error.message.clone()).unwrap_or_default();
    let exit = match run.exit {
        0 => Cell::Text("0".to_owned()),
        exit => Cell::Meant(Meaning::Error, exit.to_string()),
    };
    let when = if cx.stdout.is_terminal() { ago(run.time, cx.env.now()) } else { run.time.to_string() };
    let mut cells = vec![
        Cell::Meant(Meaning::Faint, run.id.clone()),
        when.into(),
        exit,
        run.agent.clone().into(),
        run.model.clone().into(),
    ];
    let numbers = [input_tokens, output_tokens, cache_read_tokens, cache_write_tokens];
    cells.extend(numbers.map(|n| n.to_string().into()));
    cells.extend([
        cost(run.cost).into(),
        run.calls.to_string().into(),
        run.duration_ms.to_string().into(),
        run.program.clone().into(),
        run.parent.clone().unwrap_or_else(|| "-".to_owned()).into(),
        Cell::Meant(Meaning::Error, error),
    ]);
    table.row(cells, "", &mut cx.stdout)
}

/// What several runs took.
#[derive(Debug, Default, serde::Serialize)]
struct Sum {
    runs: u64,
    failed: u64,
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
    /// Of those runs whose cost is known; `None` if it is known of none.
    cost: Option<f64>,
    runs_without_cost: u64,
}

impl Sum {
    fn add(&mut self, run: &Run) {
        let counts = [
            (&mut self.runs, 1),
            (&mut self.failed, u64::from(run.exit != 0)),
            (&mut self.input_tokens, run.input_tokens),
            (&mut self.output_tokens, run.output_tokens),
            (&mut self.cache_read_tokens, run.cache_read_tokens),
            (&mut self.cache_write_tokens, run.cache_write_tokens),
            (&mut self.runs_without_cost, u64::from(run.cost.is_none())),
        ];
        counts.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        if let Some(cost) = run.cost {
            // Without the noise of adding fractions.
            self.cost = Some(((self.cost.unwrap_or_default() + cost) * 1e9).round() / 1e9);
        }
    }
}

fn key_of(key: &str, run: &Run) -> String {
    match key {
        "model" => run.model.clone(),
        "agent" => run.agent.clone(),
        _ => run.time.to_zoned(TimeZone::UTC).date().to_string(),
    }
}

/// With a bar for each day on a terminal: of money if anything has cost some, else of tokens.
fn print_sums(key: &str, sums: &BTreeMap<String, Sum>, cx: &mut Context) -> Result<()> {
    let is_table = cx.stdout.is_terminal() && !cx.json;
    let is_money = sums.values().any(|sum| sum.cost.is_some_and(|cost| cost > 0.0));
    let tokens = |sum: &Sum| sum.input_tokens.saturating_add(sum.output_tokens) as f64;
    let size = |sum: &Sum| if is_money { sum.cost.unwrap_or_default() } else { tokens(sum) };
    let most = sums.values().map(size).fold(0.0, f64::max);
    let columns = sum_columns(match key {
        "model" => "MODEL",
        "agent" => "AGENT",
        _ => "DAY",
    });
    let mut table = Table::new(&columns, None);
    for (name, sum) in sums {
        if cx.json {
            let mut line = serde_json::to_value(sum).unwrap_or_default();
            line[key] = name.as_str().into();
            cx.stdout.json(&line)?;
            continue;
        }
        let counts = [sum.runs, sum.failed, sum.input_tokens, sum.output_tokens];
        let cached = [sum.cache_read_tokens, sum.cache_write_tokens];
        let mut cells: Vec<Cell> = vec![name.clone().into()];
        cells.extend(counts.into_iter().chain(cached).map(|count| count.to_string().into()));
        // The sum is more than what is known.
        let unknown = if is_table && sum.runs_without_cost > 0 && sum.cost.is_some() { "+?" } else { "" };
        cells.extend([(cost(sum.cost) + unknown).into(), sum.runs_without_cost.to_string().into()]);
        if is_table && key == "day" && most > 0.0 {
            let longest = cx.stdout.columns().saturating_sub(BEFORE_BAR).clamp(10, BAR_WIDTH) as f64;
            cells.push("#".repeat((size(sum) / most * longest).ceil() as usize).into());
        }
        table.row(cells, "", &mut cx.stdout)?;
    }
    present_table(&table, cx)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_an_age_a_day_or_a_moment() {
        let now: Timestamp = "2026-02-28T15:04:05Z".parse().unwrap();
        let read = |text: &str| moment("since", text, now).map(|time| time.to_string()).ok();
        for (text, expected) in [
            ("7d", Some("2026-02-21T15:04:05Z")),
            ("0h", Some("2026-02-28T15:04:05Z")),
            ("90m", Some("2026-02-28T13:34:05Z")),
            ("2w", Some("2026-02-14T15:04:05Z")),
            ("2026-02-01", Some("2026-02-01T00:00:00Z")),
            ("2026-02-01T03:00:00+01:00", Some("2026-02-01T02:00:00Z")),
        ] {
            assert_eq!(read(text).as_deref(), expected, "{text}");
        }
        for wrong in [
            "", "d", "7", "7x", "-7d", "7é", "2026-2-1", "2026-02-30", "99999999999999999999d",
            "9999999999999d", "tomorrow",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
