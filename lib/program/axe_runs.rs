//! `axe-runs`: what runs of agents took, from the ledger. It is read once, line by line.

use crate::base::cli::{
    self, About, Args, Context, ExitCode, Rule, Stdout, Words, count, flag, one_of, value,
};
use crate::base::error::{Error, Result};
use crate::base::stderr;
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
        value("agent", "NAME", "only runs of this agent"),
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
/// The widest agent and model in a table, and the longest bar.
const AGENT_WIDTH: usize = 16;
const MODEL_WIDTH: usize = 32;
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

/// One run with everything that is known.
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
    let cached = format!("{} read, {} written", run.cache_read_tokens, run.cache_write_tokens);
    let mut rows = vec![
        ("Run", run.id),
        ("Time", run.time.to_string()),
        ("Program", run.program),
        ("Agent", run.agent),
        ("Model", run.model),
        ("Tokens", format!("{} input, {} output", run.input_tokens, run.output_tokens)),
        ("Cache", cached),
        ("Cost", cost(run.cost)),
        ("Calls", format!("{}, {}", run.calls, counted(run.retries as usize, "retry", "retries"))),
        ("Duration", format!("{}ms", run.duration_ms)),
        ("Exit", run.exit.to_string()),
    ];
    rows.extend(run.error.map(|error| ("Error", format!("{}: {}", error.kind, error.message))));
    rows.extend(run.parent.map(|parent| ("Parent", parent)));
    rows.extend(run.sub_agents.into_iter().map(|sub| {
        let (input, output, cost) = (sub.input_tokens, sub.output_tokens, cost(sub.cost));
        ("Sub-Agent", format!("{}: {input} input, {output} output, cost {cost}", sub.name))
    }));
    rows.extend(run.tools.into_iter().map(|tool| {
        let exit = tool.exit.map_or("no exit code".to_owned(), |code| format!("exit {code}"));
        ("Tool", format!("{} {} ({exit}, {}ms)", tool.name, tool.arguments, tool.duration_ms))
    }));
    rows.iter().try_for_each(|(label, value)| {
        cx.stdout.line(&disarmed(&format!("{:<10} {}", format!("{label}:"), one_line(value, usize::MAX))))
    })
}

/// `-` if it is not known.
fn cost(cost: Option<f64>) -> String {
    cost.map_or_else(|| "-".to_owned(), |cost| ((cost * 1e6).round() / 1e6).to_string())
}

/// A row of a table on a terminal, else columns with tabs between them.
fn print(run: &Run, cx: &mut Context) -> Result<()> {
    if cx.json {
        return cx.stdout.json(run);
    }
    let plain = |text: &str| one_line(text, usize::MAX);
    let (id, cost) = (plain(&run.id), cost(run.cost));
    let error = run.error.as_ref().map(|error| plain(&error.message)).unwrap_or_default();
    let Run { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, .. } = run;
    let Run { time, exit, calls, duration_ms, .. } = run;
    if !cx.stdout.is_terminal() {
        let [agent, model, program] = [&run.agent, &run.model, &run.program].map(|text| plain(text));
        let parent = run.parent.as_ref().map_or("-".to_owned(), |parent| plain(parent));
        return cx.stdout.line(&format!(
            "{id}\t{time}\t{exit}\t{agent}\t{model}\t{input_tokens}\t{output_tokens}\t{cache_read_tokens}\t\
             {cache_write_tokens}\t{cost}\t{calls}\t{duration_ms}\t{program}\t{parent}\t{error}"
        ));
    }
    let (agent, model) = (one_line(&run.agent, AGENT_WIDTH), one_line(&run.model, MODEL_WIDTH));
    let ended = if *exit == 0 { String::new() } else { format!("exit {exit}: {error}") };
    let seconds = *duration_ms as f64 / 1000.0;
    let row = format!(
        "{id}  {agent:AGENT_WIDTH$}  {model:MODEL_WIDTH$}  {input_tokens:>8} in {output_tokens:>7} out  {cost:>10}  \
         {seconds:>6.1} s  {ended}"
    );
    cx.stdout.line(&disarmed(row.trim_end()))
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
            *self.cost.get_or_insert(0.0) += cost;
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

fn print_sums(key: &str, sums: &BTreeMap<String, Sum>, cx: &mut Context) -> Result<()> {
    if cx.json {
        return sums.iter().try_for_each(|(name, sum)| {
            let mut line = serde_json::to_value(sum).unwrap_or_default();
            line[key] = name.as_str().into();
            cx.stdout.json(&line)
        });
    }
    let is_table = cx.stdout.is_terminal();
    let width = sums.keys().map(|name| name.chars().count()).max().unwrap_or(0).clamp(10, MODEL_WIDTH);
    if !is_table {
        for (name, sum) in sums {
            let Sum { runs, failed, input_tokens, output_tokens, .. } = sum;
            let Sum { cache_read_tokens, cache_write_tokens, runs_without_cost, .. } = sum;
            let (name, cost) = (one_line(name, usize::MAX), cost(sum.cost));
            cx.stdout.line(&format!(
                "{name}\t{runs}\t{failed}\t{input_tokens}\t{output_tokens}\t{cache_read_tokens}\t{cache_write_tokens}\t\
                 {cost}\t{runs_without_cost}"
            ))?;
        }
        return Ok(());
    }
    if sums.is_empty() {
        stderr::line("No runs.");
        return Ok(());
    }
    table(key, sums, width, &mut cx.stdout)
}

/// With a bar for each day: of money if anything has cost some, else of tokens.
fn table(key: &str, sums: &BTreeMap<String, Sum>, width: usize, stdout: &mut Stdout) -> Result<()> {
    let is_money = sums.values().any(|sum| sum.cost.is_some_and(|cost| cost > 0.0));
    let size = |sum: &Sum| if is_money { sum.cost.unwrap_or_default() } else { sum.tokens() as f64 };
    let most = sums.values().map(size).fold(0.0, f64::max);
    stdout.line(&format!(
        "{key:width$}  {:>6}  {:>6}  {:>11}  {:>10}  {:>11}  {:>12}",
        "runs", "failed", "input", "output", "cached", "cost"
    ))?;
    for (name, sum) in sums {
        // The sum is more than what is known.
        let unknown = if sum.runs_without_cost > 0 && sum.cost.is_some() { "+?" } else { "" };
        let cost = cost(sum.cost) + unknown;
        let bar = match key {
            "day" if most > 0.0 => "#".repeat((size(sum) / most * BAR_WIDTH).ceil() as usize),
            _ => String::new(),
        };
        let row = format!(
            "{:width$}  {:>6}  {:>6}  {:>11}  {:>10}  {:>11}  {cost:>12}  {bar}",
            one_line(name, width),
            sum.runs,
            sum.failed,
            sum.input_tokens,
            sum.output_tokens,
            sum.cache_read_tokens
        );
        stdout.line(&disarmed(row.trim_end()))?;
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
