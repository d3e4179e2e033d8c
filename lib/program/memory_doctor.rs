//! `memory-doctor`: report what is wrong with the notes, the queue and the set-up, and how to fix it.
//!
//! Checking changes nothing and counts as no read. `--fix` only does what cannot lose anything.

use crate::base::cli::{self, About, Args, Context, ExitCode, FlagRule, flag};
use crate::base::error::Result;
use crate::base::text::{counted, in_line};
use crate::base::{file, stderr};
use crate::config::memory::{self, search::files};
use crate::memory::doctor::{
    self, CHECKS, Check, CheckContext, Checker, Diagnosis, Finding, HarnessState, Report, Severity,
};
use crate::memory::redact::Redactor;
use crate::memory::section::Which;
use crate::program::notes::{CONFIG, Store, checkout_here};
use crate::program::screen::print_row;
use crate::schedule::check;
use crate::store::place::Root;
use serde_json::json;
use std::collections::BTreeMap;

pub(super) const ABOUT: About = About {
    name: "memory-doctor",
    caption: "find what is wrong with the notes and their set-up",
    usage: &["memory-doctor [--fix] [--json] [--config FILE]", "memory-doctor --shared [--json]"],
    flags: &[
        flag("fix", "make the fixes that cannot lose data, and print each"),
        flag("shared", "check the notes in .agents/memory of this repository alone, as in CI"),
        flag("json", "print all findings as one JSON object"),
        CONFIG,
    ],
    rules: &[FlagRule::Apart("--shared", &["--fix"], "these files are changed with git")],
    text: include_str!("memory_doctor.md"),
    ..About::BLANK
};

/// Everything but the notes that is looked at.
const EVERYTHING: &[&[Checker]] = &[CHECKS, &[timers]];

fn timers(cx: &CheckContext, to: &mut Diagnosis) {
    to.findings.extend(check::look(cx));
}

/// How many findings of a kind are printed.
const SHOWN: usize = 5;

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<ExitCode> {
    cx.watch_signals();
    if args.has("shared") {
        let here = checkout_here(&cx.env)?;
        let config = memory::load(args.path("config"), &cx.env, &cx.reporter)?;
        let redactor = Redactor::new(true, &config.redact.patterns)?;
        let report = doctor::examine_shared(&here, &redactor, cx.env.today());
        return print(&report, &[], &Root::at(&here.top), None, cx);
    }
    let store = Store::open(args, cx)?;
    let config_files = files(args.path("config"), &cx.env)?;
    let patient = CheckContext::new(&store.config, config_files, &store.root, &cx.env)?;
    let is_fixing = args.has("fix");
    let mended = if is_fixing { doctor::fix(&patient) } else { doctor::Fixes::default() };
    let count = mended.notes.len();
    let sources = mended.notes.iter().flat_map(|note| &note.entry.meta().sources);
    store.finish(
        Which::All,
        format!("doctor: {} fixed", counted(count, "note", "notes")),
        sources,
        count,
        cx,
    );
    let report = doctor::examine(&patient, &EVERYTHING.concat());
    if let Ok(Some(holder)) = file::holder(&store.root.run_lock()) {
        stderr::line(&format!("running now: {}", holder.trim()));
    }
    let next = next(&report, &store.root, is_fixing);
    let code = print(&report, &mended.done.findings, &store.root, next, cx)?;
    report.remember();
    mended.error.map_or(Ok(code), Err)
}

/// `mended` is fixed already. The paths are shown relative to `root`.
fn print(
    report: &Report,
    mended: &[Finding],
    root: &Root,
    next: Option<String>,
    cx: &mut Context,
) -> Result<ExitCode> {
    if cx.json {
        cx.stdout.json(&json!({
            "findings": report.findings.iter().chain(mended).collect::<Vec<_>>(),
            "errors": report.count(Severity::Error),
            "warnings": report.count(Severity::Warning),
            "notes": report.notes,
            "harnesses": report.harnesses,
        }))?;
    } else {
        for row in rows(mended, report, root) {
            print_row(row.each_ref().map(String::as_str), cx)?;
        }
        cx.stdout.line(&summary(report))?;
        if let Some(next) = next {
            cx.stdout.line(&next)?;
        }
    }
    cx.stdout.flush()?;
    Ok(if report.count(Severity::Error) > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The findings for people, and for `grep`.
fn rows(mended: &[Finding], report: &Report, root: &Root) -> Vec<[String; 4]> {
    let mut rows: Vec<[String; 4]> = mended.iter().map(|finding| row("fixed", finding, root)).collect();
    // How many there are of a kind, and how many were looked at.
    let mut of_kind: BTreeMap<(Severity, Check), (usize, usize)> = BTreeMap::new();
    for finding in &report.findings {
        of_kind.entry((finding.severity, finding.check)).or_default().0 += 1;
    }
    for finding in &report.findings {
        let (all, number) = of_kind.entry((finding.severity, finding.check)).or_default();
        *number += 1;
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        // A line for a single further finding would save nothing.
        if *number <= SHOWN || *all == SHOWN + 1 {
            rows.push(row(severity, finding, root));
        } else if number == all {
            let more = format!("{} more like these ({})", *all - SHOWN, finding.check.name());
            rows.push([severity, "…", &more, "memory-doctor --json lists all"].map(str::to_owned));
        }
    }
    rows.extend(report.harnesses.iter().map(|state: &HarnessState| {
        let [what, mend] = state.texts();
        ["info".to_owned(), in_line(&state.file.to_string_lossy()), what, mend]
    }));
    rows
}

fn row(severity: &str, finding: &Finding, root: &Root) -> [String; 4] {
    // Relative to the store, which the last line names.
    let below = finding.file.strip_prefix(root.path()).ok().filter(|path| !path.as_os_str().is_empty());
    let file = in_line(&below.unwrap_or(&finding.file).to_string_lossy());
    [severity.to_owned(), file, in_line(&finding.what), in_line(&finding.mend)]
}

fn summary(report: &Report) -> String {
    let (errors, warnings) = (report.count(Severity::Error), report.count(Severity::Warning));
    let counts = [(errors, "error", "errors"), (warnings, "warning", "warnings")];
    let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, one, many)| counted(count, one, many)).collect();
    let notes = counted(report.notes, "note", "notes");
    if counts.is_empty() { format!("healthy: {notes}") } else { format!("{} in {notes}", counts.join(", ")) }
}

/// What to do next, and where the store is.
fn next(report: &Report, root: &Root, fix: bool) -> Option<String> {
    let place = in_line(&root.path().to_string_lossy());
    if report.findings.is_empty() {
        let is_there = root.topics().exists();
        return (!is_there)
            .then(|| format!("there is no store yet; start with memory-capture (store: {place})"));
    }
    let fixable = report.findings.iter().filter(|finding| finding.is_fixable()).count();
    let next = match fixable {
        0 if report.count(Severity::Error) > 0 => "fix the errors, then run memory-doctor again".to_owned(),
        0 => "nothing is urgent".to_owned(),
        _ if fix => {
            "what --fix leaves needs a person: a file name is taken, or a file has to be edited".to_owned()
        }
        _ => format!("memory-doctor --fix can fix {fixable} of them"),
    };
    Some(format!("next: {next} (store: {place})"))
}
