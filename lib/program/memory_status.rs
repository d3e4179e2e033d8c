//! `memory-status`: how things stand, on one screen, with the command that comes next. It reads no note and changes nothing.

use crate::base::ago::ago;
use crate::base::cli::{self, About, Args, Context, ExitCode, Meaning, flag};
use crate::base::error::Result;
use crate::base::reach;
use crate::base::text::{disarmed, wrap};
use crate::config::memory::search::files;
use crate::memory::doctor::CheckContext;
use crate::memory::status::Status;
use crate::program::memory_status::lines::{Line, Told, lines};
use crate::program::notes::{CONFIG, Store};
use crate::program::screen::present;
use crate::schedule::runs::{self, TimerRuns};
use crate::schedule::tool::Tools;
use crate::schedule::{check, installed};
use serde::Serialize;
use std::time::Duration;

mod lines;

pub(super) const ABOUT: About = About {
    name: "memory-status",
    caption: "show how things stand, and what to do next",
    usage: &["memory-status [--json] [--config FILE]"],
    flags: &[flag("json", "print one JSON object"), CONFIG],
    text: include_str!("memory_status.md"),
    ..About::BLANK
};

/// So long a scheduler and a path outside the store have to answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// What is printed as JSON.
#[derive(Serialize)]
struct All {
    #[serde(flatten)]
    status: Status,
    timers: Vec<TimerRuns>,
}

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    let store = Store::open(args, cx)?;
    let config_files = files(args.path("config"), &cx.env)?;
    let All { status, timers } = reach::hurried(PATIENCE, || -> Result<All> {
        let check = CheckContext::new(&store.config, config_files, &store.root, &cx.env)?;
        let installed = installed::all(&store.config.schedule, &cx.env, PATIENCE);
        let status = Status::of(&check, check::look_at(&installed, &check))?;
        let tools = Tools { env: &cx.env, patience: PATIENCE };
        Ok(All { status, timers: runs::of(&installed, &store.root, &tools) })
    })?;
    if cx.json {
        return cx.stdout.json(&All { status, timers });
    }
    let now = cx.env.now();
    let is_terminal = cx.stdout.is_terminal();
    let told = Told {
        home: cx.env.home().map(|home| home.to_string_lossy().into_owned()),
        time: &|moment| if is_terminal { ago(moment, now) } else { moment.to_string() },
        is_whole: !is_terminal,
        now,
    };
    let lines = lines(&status, &timers, &told);
    match is_terminal {
        true => present(&screen(&lines, cx), cx),
        false => lines.iter().try_for_each(|line| {
            let Line { area, what, next, .. } = line;
            cx.stdout.line(&format!("{area}\t{what}\t{}", next.as_deref().unwrap_or_default()))
        }),
    }
}

/// The columns that the names of the areas take, and the widest text that is pleasant to read.
const MARGIN: usize = 10;
const WIDEST: usize = 110;

/// The lines with their areas at the left, wrapped at words. The next step stands at the end, or on a line of its own.
fn screen(lines: &[Line], cx: &Context) -> String {
    let paint = cx.stdout.paint();
    let width = cx.stdout.columns().min(WIDEST).saturating_sub(MARGIN).max(20);
    let (mut text, mut before) = (String::new(), "");
    for Line { area, meaning, what, next } in lines {
        let mut label = if *area == before { "" } else { *area };
        before = area;
        let mut rows = wrap(&disarmed(what), width);
        let mut painted: Vec<String> = rows
            .iter()
            .map(|row| meaning.map_or(row.clone(), |meaning| paint.paint(meaning, row).into_owned()))
            .collect();
        if let Some(next) = next {
            let next = disarmed(next).into_owned();
            let last = rows.last().map_or(0, |row| row.chars().count());
            let is_short = last + 2 + next.chars().count() <= width;
            rows = wrap(&next, width.saturating_sub(2));
            let mut steps = rows.iter().map(|row| paint.paint(Meaning::Good, row).into_owned());
            if is_short && let (Some(last), Some(step)) = (painted.last_mut(), steps.next()) {
                *last = format!("{last}  {step}");
            }
            painted.extend(steps.map(|step| format!("  {step}")));
        }
        for row in painted {
            let label = paint
                .paint(Meaning::Heading, &format!("{:MARGIN$}", std::mem::take(&mut label)))
                .into_owned();
            text += format!("{label}{row}").trim_end();
            text.push('\n');
        }
    }
    text
}
