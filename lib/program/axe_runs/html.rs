//! The runs as a page.

use crate::base::text::counted;
use crate::program::axe_runs::sum::{Sum, cost, key_of};
use crate::program::page::{Item, Page, PageFilter, Panel, Plot, Shown, Table, Warning};
use crate::store::runs::{Run, ToolRun};
use jiff::Timestamp;
use std::collections::{BTreeMap, VecDeque};

/// The index of the filter by how a run ended, and what a failed one has there.
const RESULT: usize = 3;
const FAILED: &str = "failed";
/// The days of a bar.
const DAY: i32 = 1;

pub fn page(runs: VecDeque<Run>, now: Timestamp) -> Page {
    let failed = runs.iter().filter(|run| run.exit != 0).count();
    let text = counted(failed, "run failed.", "runs failed.");
    let warning = (failed > 0).then_some(Warning { text, filter: RESULT, value: FAILED });
    let mut children: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for run in &runs {
        if let Some(parent) = &run.parent {
            children.entry(parent).or_default().push(run.id.clone());
        }
    }
    let items = runs.iter().map(|run| item(run, children.remove(run.id.as_str()).unwrap_or_default()));
    let filters = ["Agent", "Model", "Program", "Result"];
    Page {
        title: "Runs",
        made: Shown::time(now),
        things: ["run", "runs"],
        filters: filters.into_iter().map(|name| PageFilter { name, first: "" }).collect(),
        warnings: warning.into_iter().collect(),
        items: items.collect(),
        panels: vec![sums(&runs, now)],
    }
}

fn item(run: &Run, children: Vec<String>) -> Item {
    let time = Shown::time(run.time);
    let result = if run.exit == 0 { "done" } else { FAILED };
    let tokens = run.input_tokens.saturating_add(run.output_tokens);
    let spent = run.cost.map(|_| format!(" · cost {}", cost(run.cost))).unwrap_or_default();
    let parent = run.parent.clone();
    let related = [("Started by", Vec::from_iter(parent)), ("Started", children)];
    Item {
        id: run.id.clone(),
        title: Shown::line(&run.agent),
        about: Shown::line(&format!("{} · {} · {tokens} tokens{spent} · {result}", time.as_str(), run.model)),
        values: [&run.agent, &run.model, &run.program, result].map(|value| vec![Shown::line(value)]).into(),
        facts: facts(run),
        text: run.error.as_ref().map(|error| Shown::from(&error.message)).unwrap_or_default(),
        related: related.into_iter().filter(|(_, ids)| !ids.is_empty()).collect(),
        events: run.tools.iter().map(tool).collect(),
        commands: vec![Shown::line(&format!("axe-runs {}", run.id))],
    }
}

fn facts(run: &Run) -> Vec<(&'static str, Shown)> {
    let sub_agents = run.sub_agents.iter().map(|sub| {
        format!(
            "{} ({} tokens, cost {})",
            sub.name,
            sub.input_tokens.saturating_add(sub.output_tokens),
            cost(sub.cost)
        )
    });
    let facts = [
        ("Began", Shown::time(run.time).as_str().to_owned()),
        ("Took", format!("{:.1} s", run.duration_ms as f64 / 1000.0)),
        ("Program", run.program.clone()),
        ("Model", run.model.clone()),
        ("Calls", format!("{}, {} tried again", run.calls, run.retries)),
        ("Input", format!("{} tokens", run.input_tokens)),
        ("Output", format!("{} tokens", run.output_tokens)),
        ("Cached", format!("{} tokens read, {} written", run.cache_read_tokens, run.cache_write_tokens)),
        ("Cost", cost(run.cost)),
        ("Exit code", run.exit.to_string()),
        ("Error", run.error.as_ref().map(|error| error.kind.clone()).unwrap_or_default()),
        ("Sub-agents", sub_agents.collect::<Vec<_>>().join(", ")),
    ];
    facts
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name, Shown::line(&value)))
        .collect()
}

/// How long a tool ran, and what it was called with.
fn tool(tool: &ToolRun) -> (Shown, Shown) {
    let exit = tool.exit.map(|exit| format!(", exit code {exit}")).unwrap_or_default();
    let what = format!("tool {} {}{exit}", tool.name, tool.arguments);
    (format!("{} ms", tool.duration_ms).into(), Shown::line(&what))
}

fn sums(runs: &VecDeque<Run>, now: Timestamp) -> Panel {
    let tokens = |run: &Run| run.input_tokens.saturating_add(run.output_tokens) as f64;
    let mut plots = vec![
        Plot::of("Runs", "runs", DAY, now, runs.iter().map(|run| (run.time, 1.0))),
        Plot::of(
            "Failed runs",
            "runs",
            DAY,
            now,
            runs.iter().filter(|run| run.exit != 0).map(|run| (run.time, 1.0)),
        ),
        Plot::of("Tokens", "tokens", DAY, now, runs.iter().map(|run| (run.time, tokens(run)))),
    ];
    if runs.iter().any(|run| run.cost.is_some()) {
        let costs = runs.iter().filter_map(|run| Some((run.time, run.cost?)));
        plots.push(Plot::of("Cost", "of your currency", DAY, now, costs));
    }
    let table = |title, key: &'static str| {
        let mut sums = BTreeMap::<String, Sum>::new();
        runs.iter().for_each(|run| sums.entry(key_of(key, run)).or_default().add(run));
        let row = |(name, sum): (String, Sum)| {
            let numbers =
                [sum.runs, sum.failed, sum.input_tokens, sum.output_tokens].map(|number| number.to_string());
            [Shown::line(&name)]
                .into_iter()
                .chain(numbers.iter().chain([&cost(sum.cost)]).map(Shown::from))
                .collect()
        };
        let rows = sums.into_iter().map(row).collect();
        Table { title, head: vec![key, "runs", "failed", "input", "output", "cost"], rows }
    };
    let tables = vec![table("By agent", "agent"), table("By model", "model")];
    let about = "Days are those of UTC. Runs without a known cost are not part of a cost.".to_owned();
    Panel { name: "Use and cost", about, plots, tables, ..Panel::default() }
}
