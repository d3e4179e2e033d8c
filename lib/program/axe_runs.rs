//! `axe-runs`: what runs of agents took, from the ledger. It is read once, line by line.

use crate::base::cli::{self, About, Args, Context, ExitCode, Rule, Words, count, flag, one_of, value};
use crate::base::error::{Error, Result};
use crate::base::text::{counted, disarmed, one_line};
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
        "axe-runs ID [--json]",
        "axe-runs --trim WHEN",
    ],
    flags: &[
        value("agent", "NAME", "only runs of this agent").from("agents"),
        value("since", "WHEN", "only runs since 7d (days; h, m, w), or since 2026-02-28"),
        flag("failed", "only runs with another exit code than 0"),
        count("limit", "only the newest N runs"),
        one_of("by", "KEY", &["model", "agent", "day"], "sums for each model, agent or day (UTC)"),
        value("trim", "WHEN", "remove the runs before WHEN from the ledger"),
        flag("json", "one JSON object a line"),
    ],
    words: Words::AtMost(1),
    rules: &[
        Rule::Apart("--by", &["--limit"], ""),
        Rule::Apart("--trim", &["--agent", "--since", "--failed", "--limit", "--by", "--json"], ""),
    ],
    text: include_str!("axe_runs.md"),
    ..About::BLANK
};

/// How many unreadable lines are named.
const MOST_WARNINGS: u64 = 5;
/// The longest bar.
const BAR_WIDTH: f64 = 40.0;

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    let now = cx.env.now();
    let when = |flag: &str| args.parsed(flag, |text| moment(flag, text, now));
    if let [id, ..] = args.words()[..] {
        return match ["agent", "since", "failed", "limit", "by", "trim"]
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
    match (args.text("by"), args.number("limit")) {
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
        (None, None) => each(cx, &mut |run, cx| if is_wanted(&run) { print(&run, cx) } else { Ok(()) }),
        (None, Some(limit)) => {
            let limit: usize = limit;
            let mut newest = VecDeque::new();
            each(cx, &mut |run, _| {
                if is_wanted(&run) {
                    newest.truncate(limit - 1);
                    newest.push_front(run);
                }
                Ok(())
            })?;
            newest.iter().rev().try_for_each(|run| print(run, cx))
        }
    }
}

/// `7d` before now, a day in UTC, or a time.
fn moment(flag: &str, text: &str, now: Timestamp) -> Result<Timestamp> {
    let age = |text: &str| {
        let unit = text.chars().next_back()?;
        let hours = match unit {
            'm' => 0,
            'h' => 1,
            'd' => 24,
            'w' => 7 * 24,
            _ => return None,
        };
        let number: i64 = text.strip_suffix(unit)?.parse().ok().filter(|number| *number >= 0)?;
        let seconds = if hours == 0 { 60 } else { hours * 3600 };
        now.checked_sub(SignedDuration::from_secs(number.checked_mul(seconds)?)).ok()
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
    let text =
        serde_json::to_string_pretty(&run).map_err(|e| Error::io(format!("cannot write JSON: {e}")))?;
    cx.stdout.line(&disarmed(&text))
}

/// `-` if it is not known.
fn cost(cost: Option<f64>) -> String {
    cost.map_or_else(|| "-".to_owned(), |cost| ((cost * 1e6).round() / 1e6).to_string())
}

/// A row of a table on a terminal, else columns with tabs between them. A table has no columns of the width 0. Wide ones
/// are texts, and narrow ones are numbers.
fn row(cells: &[String], widths: &[usize], cx: &mut Context) -> Result<()> {
    if !cx.stdout.is_terminal() {
        let cells: Vec<_> = cells.iter().map(|cell| one_line(cell, usize::MAX)).collect();
        return cx.stdout.line(&cells.join("\t"));
    }
    let shown = cells.iter().zip(widths).filter(|(_, width)| **width > 0);
    let padded = shown.map(|(cell, width)| match width {
        16.. => format!("{:width$}", one_line(cell, width - 3)),
        _ => format!("{cell:>width$}"),
    });
    cx.stdout.line(disarmed(&padded.collect::<Vec<_>>().join("  ")).trim_end())
}

fn print(run: &Run, cx: &mut Context) -> Result<()> {
    if cx.json {
        return cx.stdout.json(run);
    }
    let Run { time, exit, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, .. } = run;
    let error = run.error.as_ref().map(|error| one_line(&error.message, usize::MAX)).unwrap_or_default();
    let numbers =
        [*input_tokens, *output_tokens, *cache_read_tokens, *cache_write_tokens].map(|n| n.to_string());
    let [input, output, read, written] = numbers;
    let cells = [
        run.id.clone(),
        time.to_string(),
        exit.to_string(),
        run.agent.clone(),
        run.model.clone(),
        input,
        output,
        read,
        written,
        cost(run.cost),
        run.calls.to_string(),
        run.duration_ms.to_string(),
        run.program.clone(),
        run.parent.clone().unwrap_or_else(|| "-".to_owned()),
        error,
    ];
    row(&cells, &[26, 0, 4, 19, 35, 9, 8, 0, 0, 10, 0, 8, 0, 0, 1], cx)
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

    fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
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
    const WIDTHS: [usize; 10] = [35, 6, 6, 11, 10, 11, 0, 12, 0, 1];
    let is_table = cx.stdout.is_terminal() && !cx.json;
    let is_money = sums.values().any(|sum| sum.cost.is_some_and(|cost| cost > 0.0));
    let size = |sum: &Sum| if is_money { sum.cost.unwrap_or_default() } else { sum.tokens() as f64 };
    let most = sums.values().map(size).fold(0.0, f64::max);
    if is_table {
        let header =
            [key, "runs", "failed", "input", "output", "cached", "", "cost", "", ""].map(str::to_owned);
        row(&header, &WIDTHS, cx)?;
    }
    for (name, sum) in sums {
        if cx.json {
            let mut line = serde_json::to_value(sum).unwrap_or_default();
            line[key] = name.as_str().into();
            cx.stdout.json(&line)?;
            continue;
        }
        let counts = [sum.runs, sum.failed, sum.input_tokens, sum.output_tokens];
        let cached = [sum.cache_read_tokens, sum.cache_write_tokens];
        let mut cells = vec![name.clone()];
        cells.extend(counts.into_iter().chain(cached).map(|count| count.to_string()));
        // The sum is more than what is known.
        let unknown = if is_table && sum.runs_without_cost > 0 && sum.cost.is_some() { "+?" } else { "" };
        cells.extend([cost(sum.cost) + unknown, sum.runs_without_cost.to_string()]);
        if is_table && key == "day" && most > 0.0 {
            cells.push("#".repeat((size(sum) / most * BAR_WIDTH).ceil() as usize));
        }
        row(&cells, &WIDTHS, cx)?;
    }
    Ok(())
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
