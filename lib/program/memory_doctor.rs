//! `memory-doctor`: report what is wrong with the notes, the queue and the set-up, and how to fix it.
//!
//! Checking changes nothing and counts as no read. `--fix` only does what cannot lose anything.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, flag, value};
use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::text::in_line;
use crate::base::{file, signal, stderr};
use crate::config::memory::search::files;
use crate::memory::doctor::{
    self, CHECKS, Check, CheckContext, Checker, Finding, HarnessState, Report, Severity,
};
use crate::program::notes::Store;
use crate::schedule::check;
use crate::store::place::Root;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) const ABOUT: About = About {
    name: "memory-doctor",
    caption: "find what is wrong with the notes and their set-up",
    usage: &["memory-doctor [--fix] [--json] [--config FILE]"],
    commands: &[],
    flags: &[
        flag("fix", "make the fixes that cannot lose data, and print each"),
        flag("json", "print all findings as one JSON object"),
        value("config", "FILE", "use this configuration file"),
    ],
    more: "Prints one line for each finding, errors first: severity, file, what is wrong, how to fix it. The columns are \
           separated by two spaces on a terminal and by tabs in a pipe. If there are many findings of one kind, only \
           the first few are printed; --json prints all. Without --fix nothing is changed, and no note is \
           counted as read. Exit 1 if there are errors, else 0.\n\n\
           --fix renames files to match their front matter, sets the status to match the tier, and removes files that \
           killed programs left half written. It does not touch files that do not parse. Where it changed a note, the AGENTS.md \
           files are refreshed.\n\n    \
           memory-doctor --json | jq -r '.findings[] | select(.check == \"link\").file'",
    sections: &[(
        "CHECKS",
        "Errors: a file is not a valid note, title or tag (schema); two files have the same id (duplicate-id); an \
         alias or successor is ambiguous or missing (alias, superseded-by); a link leads nowhere (link); a note \
         seems to contain a secret (secret); a queue entry, batch or ledger cannot be read (queue, batch, ledger); a \
         target has broken markers (target); a waiting change cannot be read (review); a setting cannot work on this machine (config, llm-command); git has \
         conflicts (history); the store is not usable (store).\n\n\
         Warnings: a file name does not match the front matter (name); a status does not match the tier (promoted); \
         a note has more than 40 lines (oversized), was neither read nor changed for 180 days (stale), or is past its \
         last day (expired); a note pipes the network into a shell, switches verification off, or tells agents to \
         hide something from you (danger); changes wait for your decision (review); a queue \
         entry failed, or waits for a week, or a session for three days, with the reason (failed, queue); the clock was ahead, or part of the ledger of calls cannot be \
         read (ledger); a batch was left behind (batch); a target is stale, or another \
         tool owns it (target); hot notes do not fit (hot-budget); a killed program left files (leftover); other users can read \
         the store (permissions); git was killed and left a lock (git-lock); the history is off or cannot continue (history); git cannot merge notes, or a remote is set and was never used (sync); the timers differ from the \
         configuration, do not sync although there is a remote, were written by another version, or have not run for long (schedule); a hook of memory-recall gave nothing although it should \
         have (recall); a coding agent has no hooks, or hooks that cannot \
         work, or captured nothing for 30 days (hooks).\n\nInfo: for each coding agent on this machine, whether its hooks are \
         installed and when it last captured something.",
    )],
};

/// Everything but the notes that is looked at.
const EVERYTHING: &[&[Checker]] = &[CHECKS, &[check::look]];

/// How many findings of a kind are printed.
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
    let config_files = files(args.config.as_deref(), env)?;
    let patient = CheckContext::new(&store.config, config_files, &store.root, env)?;
    let mended = if args.fix { doctor::fix(&patient) } else { doctor::Fixes::default() };
    if !mended.notes.is_empty() {
        // They name the files.
        store.refresh(env, &reporter);
        store.commit(
            format!("doctor: {} fixed", counted(mended.notes.len(), "note")),
            &mended.notes,
            &[],
            env,
            &reporter,
        );
    }
    let report = doctor::examine(&patient, &EVERYTHING.concat());
    if let Ok(Some(holder)) = file::holder(&store.root.run_lock()) {
        stderr::line(&format!("running now: {}", holder.trim()));
    }
    if args.json {
        print_json(&mended.findings, &report, &doctor::states(&patient), stdout)?;
    } else {
        print(&mended.findings, &report, &doctor::states(&patient), &store.root, args.fix, stdout)?;
    }
    stdout.flush()?;
    report.remember();
    match mended.error {
        Some(error) => Err(error),
        None if report.count(Severity::Error) > 0 => Ok(ExitCode::FAILURE),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn print_json(
    mended: &[Finding],
    report: &Report,
    harnesses: &[HarnessState],
    stdout: &mut Stdout,
) -> Result<()> {
    stdout.json(&json!({
        "findings": report.findings.iter().chain(mended).collect::<Vec<_>>(),
        "errors": report.count(Severity::Error),
        "warnings": report.count(Severity::Warning),
        "notes": report.notes,
        "harnesses": harnesses,
    }))
}

/// Prints the lines for people, and for `grep`.
fn print(
    mended: &[Finding],
    report: &Report,
    harnesses: &[HarnessState],
    root: &Root,
    fix: bool,
    stdout: &mut Stdout,
) -> Result<()> {
    let mut rows: Vec<[String; 4]> = mended.iter().map(|finding| row("fixed", finding, root)).collect();
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
        // A line for a single further finding would save nothing.
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
    for state in harnesses {
        let file = in_line(&state.file.to_string_lossy());
        let mend = if state.is_whole() { "nothing to do" } else { "memory-install-hooks" };
        rows.push(["info".to_owned(), file, state.line(), mend.to_owned()]);
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
    // Relative to the store, which the last line names.
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
