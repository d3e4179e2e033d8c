//! `memory-sync`: one memory on several machines, through a git remote.

use crate::base::cli::{About, Arguments, Program, Progress, Reporter, Stdout, flag, text, value};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::signal;
use crate::config::memory::remote::address;
use crate::memory::redact::Redactor;
use crate::memory::sync::driver;
use crate::memory::sync::remote::shown;
use crate::memory::sync::removals::Missing;
use crate::memory::sync::run::{Outcome, Report, Request, sync};
use crate::memory::waiting;
use crate::program::notes::Store;
use crate::store::entry::EntryId;
use crate::store::place::Root;
use crate::store::topics::Topics;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) const ABOUT: About = About {
    name: "memory-sync",
    caption: "share the notes with your other machines through a git remote",
    usage: &[
        "memory-sync [--remote ADDRESS] [--dry-run] [--strict] [--json]",
        "memory-sync --missing keep|remove",
    ],
    commands: &[],
    flags: &[
        value("remote", "ADDRESS", "set up this remote: a URL, HOST:PATH or a folder"),
        value("missing", "WHAT", "if many notes are missing: keep or remove them"),
        flag("dry-run", "fetch, and print what would change; change nothing"),
        flag("strict", "fail if the remote cannot be reached"),
        flag("json", "print one JSON object"),
        value("merge-driver", "BASE", "for git alone: merge the files BASE OURS THEIRS"),
        value("config", "FILE", "use this configuration file"),
    ],
    more: "Commits what changed here, fetches, merges note by note, pushes, and refreshes the AGENTS.md files. Reads add \
           up, tags of both sides stay, and texts are merged by lines. Where both machines changed the same lines, \
           the later text stays and the other waits for memory-review. The queue never leaves the machine.\n\n\
           The remote is an empty git repository, and the same one on every machine. git logs in as it does for you, \
           and never asks. If a note holds what looks like a secret, nothing is sent. If the remote \
           cannot be reached, a line says so and the exit code is 0.\n\n    \
           git init --bare ~/nas/memory.git\n    \
           memory-sync --remote ~/nas/memory.git     # once on each machine\n    \
           memory-sync --json | jq '.received | length'",
    sections: &[(
        "SEVERAL MACHINES",
        "See MERGING in memory(7) for what becomes of notes that were changed on two machines. `sync.remote` in the \
         configuration says the same as --remote, on every run. Without both, the remote `origin` of the store's own \
         repository is used, and without that nothing happens.\n\n\
         A secret that is removed before its note was ever sent leaves for good: the commits that nobody else has \
         become one. What was sent is never rewritten.\n\n\
         What `memory-remove --purge` deletes here is deleted on every machine. If files of more than five other notes, and \
         of more than a tenth of all, are missing on one side, nothing is merged until you decide: `--missing keep` \
         brings every missing note back, `--missing remove` deletes them on every machine.\n\n\
         `git pull` in the store works too where both sides changed a file of the same name: memory-sync is git's merge driver there. What git cannot finish, \
         such as a note that has got two names, memory-sync finishes.",
    )],
};

/// The largest file that git may have us merge, in bytes.
const CAP: u64 = 32 << 20;

#[derive(Debug, Default)]
struct Args {
    remote: Option<String>,
    missing: Option<Missing>,
    dry_run: bool,
    strict: bool,
    json: bool,
    merge: Vec<PathBuf>,
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
            Long("remote") => args.remote = Some(p.text()?),
            Long("missing") => args.missing = Some(missing(&p.text()?)?),
            Long("dry-run") => args.dry_run = true,
            Long("strict") => args.strict = true,
            Long("json") => args.json = true,
            Long("merge-driver") => args.merge = vec![p.path()?],
            Long("config") => args.config = Some(p.path()?),
            Value(file) if (1..3).contains(&args.merge.len()) => args.merge.push(file.into()),
            Value(word) => {
                return Err(Error::unexpected(&shown(&text(word)?)).hint("name the remote with --remote"));
            }
            _ => return Err(arg.unexpected().into()),
        }
    }
    match args.merge.len() {
        0 | 3 => Ok(args),
        _ => Err(Error::usage("option \"--merge-driver\" needs three files: BASE OURS THEIRS")),
    }
}

fn missing(text: &str) -> Result<Missing> {
    match text {
        "keep" => Ok(Missing::Keep),
        "remove" => Ok(Missing::Remove),
        other => Err(Error::usage(format!("option \"--missing\": \"{other}\" is neither keep nor remove"))),
    }
}

fn run(args: Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    if let [base, ours, theirs] = &args.merge[..] {
        return merge(base, ours, theirs, env);
    }
    signal::watch(ABOUT.name, args.json);
    let reporter = Reporter::new(false);
    let store = Store::open(args.config.as_deref(), env, &reporter)?;
    let redactor = Redactor::of(&store.config.redact)?;
    let request = Request {
        root: &store.root,
        env,
        address: wanted(args.remote.as_deref(), store.config.sync.remote.as_deref(), env)?,
        commit_hook: &store.config.storage.commit_hook,
        redactor: &redactor,
        missing: args.missing,
        is_dry: args.dry_run,
    };
    let progress = Progress::start(!args.json, "syncing".to_owned());
    let outcome = sync(&request);
    drop(progress);
    let report = match outcome? {
        Outcome::NoRemote if args.json => return stopped("no remote", stdout),
        Outcome::NoRemote => {
            reporter.warn(
                "there is no remote, so nothing was synced; set one up with: memory-sync --remote ADDRESS",
            );
            return Ok(ExitCode::SUCCESS);
        }
        Outcome::Busy(_) if args.json => return stopped("busy", stdout),
        Outcome::Busy(who) => {
            reporter.warn(&format!("nothing was done: {who} is syncing this store"));
            return Ok(ExitCode::SUCCESS);
        }
        Outcome::Done(report) => report,
    };
    if !report.received.is_empty() && !report.dry_run {
        store.refresh(env, &reporter);
    }
    print(&report, args.json, stdout, &reporter)?;
    ended(&report, args.strict).map(|()| ExitCode::SUCCESS)
}

fn stopped(why: &str, stdout: &mut Stdout) -> Result<ExitCode> {
    stdout.json(&json!({"received": [], "sent": [], "stopped": why})).map(|()| ExitCode::SUCCESS)
}

/// The address of the flag or of the configuration.
fn wanted(flag: Option<&str>, configured: Option<&str>, env: &Env) -> Result<Option<String>> {
    let Some(flag) = flag else { return Ok(configured.map(str::to_owned)) };
    let flag = address(flag, &env.current_dir()?, env)
        .map_err(|why| Error::usage(format!("option \"--remote\": the address {why}")))?;
    match configured.filter(|configured| *configured != flag) {
        Some(other) => Err(Error::usage(format!("option \"--remote\": sync.remote is \"{}\"", shown(other)))
            .hint("change it in the configuration, or leave out the option; see: memory-config path")),
        None => Ok(Some(flag)),
    }
}

/// What a run leaves undone is its error, when everything else is done and printed.
fn ended(report: &Report, strict: bool) -> Result<()> {
    if !report.secrets.is_empty() {
        let files: Vec<&str> = report.secrets.iter().map(String::as_str).collect();
        return Err(Error::refused(format!("nothing was sent: {} what looks like a secret", holds(&files)))
            .hint("remove it there and run memory-sync again; memory-doctor names the line"));
    }
    match &report.unreachable {
        Some(why) if strict => Err(Error::io(format!("\"{}\" cannot be reached: git {why}", report.remote))),
        _ => Ok(()),
    }
}

/// `"a" holds`, `"a", "b" and 3 more hold`
fn holds(files: &[&str]) -> String {
    const NAMED: usize = 5;
    let named: Vec<String> = files.iter().take(NAMED).map(|file| format!("\"{file}\"")).collect();
    let more = files.len() - named.len();
    match (files.len(), more) {
        (1, _) => format!("{} holds", named.join(", ")),
        (_, 0) => format!("{} hold", named.join(", ")),
        _ => format!("{} and {more} more hold", named.join(", ")),
    }
}

fn print(report: &Report, json: bool, stdout: &mut Stdout, reporter: &Reporter) -> Result<()> {
    if json {
        return stdout.json(report);
    }
    report.notices.iter().for_each(|notice| reporter.warn(notice));
    if report.squashed {
        reporter
            .warn("a secret was in the past of these notes; the commits that nobody else had are one now");
    }
    if let Some(why) = &report.unreachable {
        reporter
            .warn(&format!("\"{}\" cannot be reached: git {why}; the next run tries again", report.remote));
    }
    if report.dry_run {
        for (verb, paths) in [("receive", &report.received), ("send", &report.sent)] {
            paths.iter().try_for_each(|path| stdout.line(&format!("{verb}\t{path}")))?;
        }
    }
    stdout.line(&summary(report))
}

fn summary(report: &Report) -> String {
    let (received, sent) = (notes(&report.received), notes(&report.sent));
    let would = if report.dry_run { "would be " } else { "" };
    let noun = |count: usize| if count == 1 { "note" } else { "notes" };
    let mut line = format!("{received} {} {would}received, {sent} {would}sent", noun(received));
    if !report.conflicts.is_empty() {
        line += &format!(", {} to review", report.conflicts.len());
    }
    line
}

/// A note that was renamed has two paths, and one id at their end.
fn notes(paths: &BTreeSet<String>) -> usize {
    let key = |path: &String| EntryId::at_end_of(path).map_or_else(|| path.clone(), Into::into);
    let is_note = |path: &&String| {
        path.ends_with(".md") && (path.starts_with("topics/") || path.starts_with("archive/"))
    };
    paths.iter().filter(is_note).map(key).collect::<BTreeSet<_>>().len()
}

/// git asks about one file, in the store's top directory. The answer takes the place of `ours`.
fn merge(base: &Path, ours: &Path, theirs: &Path, env: &Env) -> Result<ExitCode> {
    let versions = [base, ours, theirs].map(|path| file::read(path, CAP));
    let [base, mine, theirs] = versions;
    let merged = driver::merge(base?, mine?, theirs?)?;
    if let Some(conflict) = merged.conflict {
        let root = Root::at(&env.current_dir()?);
        // Somewhere else there is no place for it, and git is told that it is left to do.
        if !root.state().is_dir() {
            return Ok(ExitCode::FAILURE);
        }
        waiting::propose(&Topics::at(&root), conflict)?;
    }
    file::replace(ours, |new| std::io::Write::write_all(new, &merged.bytes))?;
    Ok(if merged.is_unfinished { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_notes_once() {
        let paths = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        let mut report = Report {
            received: paths(&[
                "topics/a -- id__AAAAAA.md", "archive/b -- id__AAAAAA.md", "proposals/p__a.json",
            ]),
            sent: paths(&["topics/x -- id__BBBBBB.md", "topics/mine.md"]),
            ..Report::default()
        };
        assert_eq!(summary(&report), "1 note received, 2 sent");
        report.dry_run = true;
        assert_eq!(summary(&report), "1 note would be received, 2 would be sent");
    }

    #[test]
    fn files_with_secrets_are_named_up_to_five() {
        assert_eq!(holds(&["a"]), "\"a\" holds");
        assert_eq!(holds(&["a", "b"]), "\"a\", \"b\" hold");
        assert_eq!(holds(&["a"; 7]), "\"a\", \"a\", \"a\", \"a\", \"a\" and 2 more hold");
    }
}
