//! `memory-status`: how things stand, on one screen, with the command that comes next. It reads no note.

use crate::base::ago::ago;
use crate::base::cli::{self, About, Args, Context, ExitCode, Meaning, Paint, flag};
use crate::base::error::Result;
use crate::base::reach;
use crate::base::text::{disarmed, wrap};
use crate::config::memory::search::files;
use crate::memory::doctor::CheckContext;
use crate::program::memory_status::areas::{StatusLine, StoreStatus, Told};
use crate::program::notes::{CONFIG, Store};
use crate::program::screen::present;
use crate::schedule::scheduler::Tools;
use crate::schedule::{check, installed};
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

mod areas;

pub(super) const ABOUT: About = About {
    name: "memory-status",
    caption: "show how things stand, and what to do next",
    usage: &["memory-status [--json] [--config FILE]"],
    flags: &[flag("json", "print one JSON object"), CONFIG],
    text: include_str!("memory_status.md"),
    ..About::BLANK
};

/// How long a scheduler and a path outside the store may take to answer.
const PATIENCE: Duration = Duration::from_millis(500);

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    let store = Store::open(args, cx)?;
    let config_files = files(args.path("config"), &cx.env)?;
    let status = reach::hurried(PATIENCE, || -> Result<StoreStatus> {
        let check = CheckContext::new(&store.config, config_files, &store.root, &cx.env)?;
        let installed = installed::all(&store.config.schedule, &cx.env, PATIENCE);
        let tools = Tools { env: &cx.env, patience: PATIENCE };
        let timers = installed::runs(&installed, &store.root, &tools);
        StoreStatus::of(&check, check::look_at(&installed, &check, PATIENCE), timers)
    })?;
    if cx.json {
        return cx.stdout.json(&status);
    }
    let (now, is_terminal, paint) = (cx.env.now(), cx.stdout.is_terminal(), cx.stdout.paint());
    let told = Told {
        home: cx.env.home().map(|home| home.to_string_lossy().into_owned()),
        time: &|moment| if is_terminal { ago(moment, now) } else { format!("{moment:.0}") },
        is_whole: !is_terminal,
    };
    let lines = status.lines(&told);
    if is_terminal {
        return present(&(screen(&lines, cx) + "\nmemory help lists the commands.\n"), cx);
    }
    lines.iter().try_for_each(|line| {
        let (area, what) = (paint.paint(Meaning::Heading, line.area), line.painted(&line.what, paint));
        cx.stdout.line(&format!("{area}\t{what}\t{}", paint.paint(Meaning::Good, &line.next)))
    })
}

/// The columns that the names of the areas take, and the widest text that is pleasant to read.
const MARGIN: usize = 10;
const WIDEST: usize = 110;

/// The lines, wrapped at words, with their areas at the left.
fn screen(lines: &[StatusLine], cx: &Context) -> String {
    let paint = cx.stdout.paint();
    let width = cx.stdout.columns().min(WIDEST).saturating_sub(MARGIN).max(20);
    let (mut text, mut before) = (String::new(), "");
    for line in lines {
        for (number, row) in rows(line, width, paint).iter().enumerate() {
            let label = if number > 0 || line.area == before { "" } else { line.area };
            let gap = " ".repeat(MARGIN - label.len());
            text += &format!("{}{gap}{row}\n", paint.paint(Meaning::Heading, label));
        }
        before = line.area;
    }
    text
}

/// A line as rows of the screen. The next step stands at the end, or on rows of its own.
fn rows(line: &StatusLine, width: usize, paint: Paint) -> Vec<String> {
    let what = wrap(&disarmed(&line.what), width);
    let used = what.last().map_or(0, |row| row.width());
    let mut rows: Vec<String> = what.iter().map(|row| line.painted(row, paint)).collect();
    if line.next.is_empty() {
        return rows;
    }
    let next = disarmed(&line.next);
    let step = |text: &str| format!("  {}", paint.paint(Meaning::Good, text));
    match rows.last_mut() {
        Some(last) if used + 2 + next.width() <= width => *last += &step(&next),
        _ => rows.extend(wrap(&next, width.saturating_sub(2)).iter().map(|row| step(row))),
    }
    rows
}
