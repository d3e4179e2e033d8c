//! The runs as a page.

use crate::base::error::Result;
use crate::program::page::{Item, Page, PageText, Panel, Plot, Related, Warning, facts};
use crate::store::run_id::RunId;
use crate::store::runs::{Run, ToolRun};
use jiff::Timestamp;
use std::collections::BTreeMap;

const FILTERS: &[(&str, &str)] = &[("Agent", ""), ("Model", ""), ("Program", ""), ("Result", "")];
const RESULT: usize = 3;
const FAILED: &str = "failed";
/// The days of a bar.
const DAY: i32 = 1;
/// What is not shown with the other keys of a run.
const APART: &[&str] = &["id", "agent", "model", "program", "parent", "tools", "error"];

/// The ids become commands and links. A line of the ledger with another id was not written by this toolkit.
pub fn has_ids(run: &Run) -> bool {
    [Some(&run.id), run.parent.as_ref()].into_iter().flatten().all(|id| RunId::parse(id).is_ok())
}

pub fn page(runs: &[Run], now: Timestamp) -> Result<Page> {
    let mut related: BTreeMap<&str, Related> = BTreeMap::new();
    for Run { id, parent, .. } in runs {
        if let Some(parent) = parent {
            related.entry(id).or_default().entry("Started by").or_default().insert(parent.into());
            related.entry(parent).or_default().entry("Started").or_default().insert(id.into());
        }
    }
    let items = runs.iter().map(|run| item(run, related.remove(&*run.id).unwrap_or_default()));
    let about = "Days are those of UTC.";
    Ok(Page {
        title: "Runs",
        made: PageText::time(now),
        things: ["run", "runs"],
        events: "Tools",
        filters: FILTERS,
        warnings: vec![Warning { text: "Runs that failed", filter: RESULT, value: FAILED }],
        items: items.collect::<Result<_>>()?,
        panels: vec![Panel { name: "Use and cost", about, plots: plots(runs, now), ..Panel::default() }],
    })
}

fn item(run: &Run, related: Related) -> Result<Item> {
    let result = if run.exit == 0 { "done" } else { FAILED };
    let error = run.error.as_ref().map(|error| format!("{}: {}", error.kind, error.message));
    Ok(Item {
        id: (&run.id).into(),
        aliases: Vec::new(),
        title: format!("{}, {} tokens", PageText::time(run.time).as_str(), tokens(run)).into(),
        values: [&run.agent, &run.model, &run.program, result]
            .map(|value| vec![PageText::line(value)])
            .into(),
        facts: facts(run, APART)?,
        text: error.unwrap_or_default().into(),
        related,
        events: run.tools.iter().map(tool).collect(),
        command: PageText::line(&format!("axe-runs {}", run.id)),
    })
}

/// How long a tool ran, and what it was called with.
fn tool(tool: &ToolRun) -> (PageText, PageText) {
    let exit = tool.exit.map(|exit| format!(", exit code {exit}")).unwrap_or_default();
    let what = format!("{} {}{exit}", tool.name, tool.arguments);
    (format!("{} ms", tool.duration_ms).into(), PageText::line(&what))
}

fn tokens(run: &Run) -> u64 {
    run.input_tokens.saturating_add(run.output_tokens)
}

/// What runs took over time. A cost that is not known is none.
pub fn plots(runs: &[Run], now: Timestamp) -> Vec<Plot> {
    let plot = |title, unit, value: fn(&Run) -> f64| {
        Plot::of(title, unit, DAY, now, runs.iter().map(|run| (run.time, value(run))))
    };
    vec![
        plot("Runs of agents", "runs", |_| 1.0),
        plot("Failed runs", "runs", |run| f64::from(u8::from(run.exit != 0))),
        plot("Tokens of runs", "tokens", |run| tokens(run) as f64),
        plot("Known cost of runs", "in the currency of your prices", |run| run.cost.unwrap_or_default()),
    ]
}
