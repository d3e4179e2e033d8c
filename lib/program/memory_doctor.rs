//! `memory-doctor`: what is broken in the store or around it, what is out of order, and how to mend it.
//!
//! Looking changes nothing and counts as no read. `--fix` mends only what cannot lose anything.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, flag, value};
use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::text::in_line;
use crate::base::{file, signal, stderr};
use crate::config::memory::search::files;
use crate::memory::doctor::{self, CHECKS, Check, CheckContext, Checker, Finding, Report, Severity};
use crate::program::notes::Store;
use crate::schedule::look;
use crate::store::place::Root;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) const ABOUT: About = About {
    name: "memory-doctor",
    caption: "find what is wrong with the notes and around them",
    usage: &["memory-doctor [--fix] [--json] [--config FILE]"],
    commands: &[],
    flags: &[
        flag("fix", "mend what cannot lose anything, and say each"),
        flag("json", "print all findings as one JSON object"),
        value("config", "FILE", "use this configuration file"),
    ],
    more: "One line for each finding, the worst first: error or warning, file, what, how to mend it; two blanks apart on \
           a terminal, tabs in a pipe. Of many of one kind the first few are shown, with --json all. \
           Without --fix nothing is changed, and no note counts as read. Exit 1 with errors, else 0.\n\n\
           --fix renames files after their front matter, lets a status follow the tier, and removes what killed \
           programs left half written. Files that do not parse are left alone.\n\n    \
           memory-doctor --json | jq -r '.findings[] | select(.check == \"link\").file'",
    sections: &[(
        "CHECKS",
        "Errors: files that are no notes, titles and tags that are none (schema), two files with one id \
         (duplicate-id), aliases and successors that are ambiguous or not there (alias, superseded-by), links that \
         lead nowhere (link), what looks like a secret (secret), queue entries, batches and ledgers that cannot be \
         read (queue, batch, ledger), targets with broken markers (target), a setting that cannot work here \
         (config, llm-command), files in conflict (history), a store that is none (store).\n\n\
         Warnings: a name that its front matter does not ask for (name), a status out of step with the tier \
         (promoted), more than 40 lines (oversized), neither read nor changed for 180 days (stale), entries that \
         have failed or wait for a week (failed, queue), batches that were left (batch), targets that are stale \
         (target), hot notes that do not fit (hot-budget), leftovers of killed programs (leftover), a store that \
         everybody can read (permissions), a history that is not kept, or cannot go on (history), timers that are not as the configuration wants them, \
         or that nothing was heard of for long (schedule).",
    )],
};

/// Everything but the notes that is looked at.
const EVERYTHING: &[&[Checker]] = &[CHECKS, &[look::look]];

/// So many findings of a kind are shown one by one.
const SHOWN: usize = 5;

#[derive(Debug, Default)]
struct Args {
    fix: bool,
    json: bool,
    config: Option<PathBuf>,
}

pub fn main() -> ExitCode {
    Program { about: &ABOUT, parse, run }.main()
}

fn parse(p: &mut Arguments) -> Result<Args> {
    use lexopt::prelude::*;
    let mut args = Args::default();
    while let Some(arg) = p.next()? {
        match arg {
            Long("fix") => args.fix = true,
            Long("json") => args.json = true,
            Long("config") => args.config = Some(p.path()?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    Ok(args)
}

fn run(args: Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    signal::watch(ABOUT.name, args.json);
    let reporter = Reporter::new(false);
    let store = Store::open(args.config.as_deref(), env, &reporter)?;
    let config_file = files(args.config.as_deref(), env)?.main;
    let patient = CheckContext::new(&store.config, config_file, &store.root, env)?;
    let mended = if args.fix { doctor::fix(&patient) } else { doctor::Fixes::default() };
    if !mended.notes.is_empty() {
        let count = mended.notes.len();
        let what = if count == 1 { "1 note mended".to_owned() } else { format!("{count} notes mended") };
        store.commit(format!("doctor: {what}"), &mended.notes, env, &reporter);
    }
    let report = doctor::examine(&patient, &EVERYTHING.concat());
    if let Ok(Some(holder)) = file::holder(&store.root.run_lock()) {
        stderr::line(&format!("at work there: {}", holder.trim()));
    }
    if args.json {
        print_json(&mended.findings, &report, stdout)?;
    } else {
        print(&mended.findings, &report, &store.root, args.fix, stdout)?;
    }
    match mended.error {
        Some(error) => Err(error),
        None if report.count(Severity::Error) > 0 => Ok(ExitCode::FAILURE),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn print_json(mended: &[Finding], report: &Report, stdout: &mut Stdout) -> Result<()> {
    stdout.json(&json!({
        "findings": report.findings.iter().chain(mended).collect::<Vec<_>>(),
        "errors": report.count(Severity::Error),
        "warnings": report.count(Severity::Warning),
        "notes": report.notes,
    }))
}

/// The lines of a person, and of `grep`.
fn print(mended: &[Finding], report: &Report, root: &Root, fix: bool, stdout: &mut Stdout) -> Result<()> {
    let mut rows: Vec<[String; 4]> = mended.iter().map(|finding| row("mended", finding, root)).collect();
    let mut seen: BTreeMap<(Severity, Check), usize> = BTreeMap::new();
    for finding in &report.findings {
        *seen.entry((finding.severity, finding.check)).or_default() += 1;
    }
    let mut shown: BTreeMap<(Severity, Check), usize> = BTreeMap::new();
    for finding in &report.findings {
        let kind = (finding.severity, finding.check);
        let (all, count) = (seen.get(&kind).copied().unwrap_or(0), shown.entry(kind).or_default());
        *count += 1;
        let severity = word(finding.severity);
        // One more line could as well be the finding itself.
        if *count <= SHOWN || all == SHOWN + 1 {
            rows.push(row(severity, finding, root));
        } else if *count == all {
            let more = format!("{} more like these ({})", all - SHOWN, finding.check.name());
            rows.push([
                severity.to_owned(),
                "…".to_owned(),
                more,
                "memory-doctor --json lists all".to_owned(),
            ]);
        }
    }
    let is_table = stdout.is_terminal();
    for [severity, file, what, mend] in &rows {
        match is_table {
            true => stdout.line(&format!("{severity:7}  {file}  {what}  {mend}"))?,
            false => stdout.line(&format!("{severity}\t{file}\t{what}\t{mend}"))?,
        }
    }
    stdout.line(&summary(report))?;
    if let Some(next) = next(report, root, fix) {
        stdout.line(&next)?;
    }
    Ok(())
}

fn row(severity: &str, finding: &Finding, root: &Root) -> [String; 4] {
    // Below the store a path is short, and the last line tells where that is.
    let below = finding.file.strip_prefix(root.path()).ok().filter(|path| !path.as_os_str().is_empty());
    let file = in_line(&below.unwrap_or(&finding.file).to_string_lossy());
    [severity.to_owned(), file, in_line(&finding.what), in_line(&finding.mend)]
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn summary(report: &Report) -> String {
    let (errors, warnings) = (report.count(Severity::Error), report.count(Severity::Warning));
    let notes = counted(report.notes, "note");
    match (errors, warnings) {
        (0, 0) => format!("healthy: {notes}"),
        (errors, 0) => format!("{} in {notes}", counted(errors, "error")),
        (0, warnings) => format!("{} in {notes}", counted(warnings, "warning")),
        (errors, warnings) => {
            format!("{}, {} in {notes}", counted(errors, "error"), counted(warnings, "warning"))
        }
    }
}

/// What to run now, and where the files lie.
fn next(report: &Report, root: &Root, fix: bool) -> Option<String> {
    let place = in_line(&root.path().to_string_lossy());
    if report.findings.is_empty() {
        let is_there = root.topics().exists();
        return (!is_there)
            .then(|| format!("nothing is there yet; begin with memory-capture (store: {place})"));
    }
    let fixable = report.findings.iter().filter(|finding| finding.is_fixable()).count();
    let next = match fixable {
        0 if report.count(Severity::Error) > 0 => "mend the errors, then run memory-doctor again".to_owned(),
        0 => "nothing of it is urgent".to_owned(),
        _ if fix => {
            "what --fix left has a name that is taken, or lines that only an editor can change".to_owned()
        }
        _ => format!("memory-doctor --fix mends {fixable} of them"),
    };
    Some(format!("next: {next} (store: {place})"))
}
