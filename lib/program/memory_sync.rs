//! `memory-sync`: one memory on several machines, through a git remote.

use crate::base::cli::{self, About, Args, Context, ExitCode, FlagRule, Progress, Words, flag, path, value};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::text::{counted, further, one_line};
use crate::config::memory::remote::address;
use crate::memory::redact::Redactor;
use crate::memory::section::Which;
use crate::memory::sync::driver;
use crate::memory::sync::remote::{self, OWN, shown};
use crate::memory::sync::removals::Missing;
use crate::memory::sync::request::{SyncOutcome, SyncReport, SyncRequest};
use crate::memory::sync::run::sync;
use crate::memory::waiting;
use crate::program::notes::{CONFIG, Store, can_ask, is_agreed};
use crate::program::person::{self, only_a_person};
use crate::store::entry::EntryId;
use crate::store::git::{Git, command};
use crate::store::health::is_long_ago;
use crate::store::place::Root;
use crate::store::topics::Topics;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

pub(super) const ABOUT: About = About {
    name: "memory-sync",
    caption: "share the notes with your other machines through a git remote",
    usage: &[
        "memory-sync [--remote ADDRESS] [--dry-run] [--strict] [--json]",
        "memory-sync --trust own|shared",
        "memory-sync --missing keep|remove",
        "memory-sync --leave",
    ],
    flags: &[
        value("remote", "ADDRESS", "set up this remote: a URL, HOST:PATH or a folder").of_files(),
        value("trust", "WHO", "own: nobody else can write to the remote; or shared"),
        value("missing", "WHAT", "if many notes are missing: keep or remove them"),
        flag("leave", "sync no more; all notes stay here"),
        flag("dry-run", "fetch, and print what would change; change nothing"),
        flag("strict", "fail if the remote cannot be reached"),
        flag("json", "print one JSON object"),
        path("merge-driver", "BASE", "for git alone: merge the files BASE OURS THEIRS").up_to(3),
        CONFIG,
    ],
    words: Words::AtMost(usize::MAX),
    rules: &[FlagRule::Apart("--leave", &["--remote", "--trust", "--missing", "--dry-run", "--strict"], "")],
    text: include_str!("memory_sync.md"),
    ..About::BLANK
};

/// The largest file that git may have us merge, in bytes.
const CAP: u64 = 32 << 20;

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<ExitCode> {
    if let [word, ..] = args.words()[..] {
        return Err(Error::unexpected(&shown(word)).hint("name the remote with --remote"));
    }
    let missing = args.parsed("missing", missing)?;
    match args.paths("merge-driver")[..] {
        [] => {}
        [base, ours, theirs] => return merge(base, ours, theirs, &cx.env),
        _ => return Err(Error::usage("option \"--merge-driver\" needs three files: BASE OURS THEIRS")),
    }
    cx.watch_signals();
    let store = Store::open(args, cx)?;
    if args.has("leave") {
        leave(&store, cx)?
    } else {
        exchange(&store, missing, args, cx)?
    }
    Ok(ExitCode::SUCCESS)
}

fn exchange(store: &Store, missing: Option<Missing>, args: &Args, cx: &mut Context) -> Result<()> {
    let redactor = Redactor::of(&store.config.redact)?;
    let address = wanted(args.text("remote"), store.config.sync.remote.as_deref(), &cx.env)?;
    let is_new = address.is_some() && address != remote::current(&store.root, &cx.env);
    if is_new {
        only_a_person(person::REMOTE, cx)?;
    }
    if missing.is_some() {
        only_a_person(person::MISSING, cx)?;
    }
    let new = address.as_deref().filter(|_| is_new && args.has("remote"));
    let is_own = is_own(args, store.config.sync.trust.as_deref(), new, cx)?;
    let request = SyncRequest {
        root: &store.root,
        env: &cx.env,
        address,
        commit_hook: &store.config.storage.commit_hook,
        redactor: &redactor,
        missing,
        is_own,
        is_dry: args.has("dry-run"),
    };
    let progress = Progress::start(!cx.json, "syncing".to_owned());
    let outcome = sync(&request);
    drop(progress);
    let (stopped, why) = match outcome? {
        SyncOutcome::NoRemote if args.has("trust") => {
            return Err(Error::usage("option \"--trust\": there is no remote whose writers it could tell")
                .hint("set one up with: memory-sync --remote ADDRESS --trust own"));
        }
        SyncOutcome::NoRemote => (
            "no remote",
            "there is no remote, so nothing was synced; set one up with: memory-sync --remote ADDRESS"
                .to_owned(),
        ),
        SyncOutcome::Busy(who) => ("busy", format!("nothing was done: {who} is syncing this store")),
        SyncOutcome::Done(report) => {
            if !report.received.is_empty() && !report.dry_run {
                store.refresh(Which::All, cx);
            }
            print(&report, cx)?;
            let is_away =
                report.last_exchange.is_some_and(|last| is_long_ago(last, cx.env.now())) && can_ask(cx);
            return ended(&report, args.has("strict") || is_away);
        }
    };
    if cx.json {
        return cx.stdout.json(&json!({"received": [], "sent": [], "stopped": stopped}));
    }
    cx.reporter.warn(&why);
    Ok(())
}

/// Syncs no more. What the remote has stays there.
fn leave(store: &Store, cx: &mut Context) -> Result<()> {
    only_a_person(person::REMOTE, cx)?;
    if let Some(configured) = &store.config.sync.remote {
        return Err(Error::refused(format!("sync.remote is \"{}\" in the configuration", shown(configured)))
            .hint("remove it there first; see: memory-config show"));
    }
    match remote::leave(&store.root, &cx.env)? {
        None => cx.reporter.warn("there is no remote, so there is nothing to leave"),
        Some(address) => cx.print(
            &json!({"left": address}),
            &format!(
                "left \"{address}\": it keeps what it was sent, with its history, and all notes stay here"
            ),
        )?,
    }
    Ok(())
}

fn missing(text: &str) -> Result<Missing> {
    match text {
        "keep" => Ok(Missing::Keep),
        "remove" => Ok(Missing::Remove),
        other => Err(Error::usage(format!("option \"--missing\": \"{other}\" is neither keep nor remove"))),
    }
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

/// Whether nobody else can write to the remote, by the flag or the configuration; who sets one up on a terminal is asked.
fn is_own(
    args: &Args,
    configured: Option<&str>,
    new: Option<&str>,
    cx: &mut Context,
) -> Result<Option<bool>> {
    let said = args.text("trust");
    if let Some(word) = said.filter(|word| ![OWN, "shared"].contains(word)) {
        let word = one_line(word, 80);
        return Err(Error::usage(format!("option \"--trust\": \"{word}\" is neither own nor shared")));
    }
    if said.is_some() {
        only_a_person(person::TRUST, cx)?;
    }
    match (said, configured, new) {
        (Some(said), Some(other), _) if said != other => {
            Err(Error::usage(format!("option \"--trust\": sync.trust is \"{other}\""))
                .hint("change it in the configuration, or leave out the option; see: memory-config path"))
        }
        (None, None, Some(remote)) if can_ask(cx) => {
            let question = format!("Are you the only one who can write to \"{}\"? [y/N] ", shown(remote));
            is_agreed(&question, false, cx).map(Some)
        }
        _ => Ok(said.or(configured).map(|word| word == OWN)),
    }
}

/// What a run leaves undone is its error, when everything else is done and printed.
fn ended(report: &SyncReport, strict: bool) -> Result<()> {
    if !report.secrets.is_empty() {
        let files: Vec<&str> = report.secrets.iter().map(String::as_str).collect();
        return Err(Error::refused(format!("nothing was sent: {} what looks like a secret", holds(&files)))
            .hint("remove it there and run memory-sync again; memory-doctor names the line"));
    }
    match &report.unreachable {
        Some(why) if strict => {
            let last = report.last_exchange.map_or(String::new(), |last| format!(" since {last:.0}"));
            Err(Error::io(format!("\"{}\" cannot be reached{last}: git {why}", report.remote))
                .hint("if it has moved: memory-sync --remote ADDRESS; to sync no more: memory-sync --leave"))
        }
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

fn print(report: &SyncReport, cx: &mut Context) -> Result<()> {
    let Context { stdout, reporter, .. } = cx;
    if cx.json {
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

fn summary(report: &SyncReport) -> String {
    let (received, sent) = (notes(&report.received), notes(&report.sent));
    let would = if report.dry_run { "would be " } else { "" };
    let received = counted(received, "note", "notes");
    let conflicts = further(&[(report.conflicts.len(), "to review")]);
    format!("{received} {would}received, {sent} {would}sent{conflicts}")
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
    let [before, mine, other] = versions;
    let merged = driver::merge(before?, mine?, other?)?;
    let root = Root::open(&env.current_dir()?)?;
    // In another repository there is no place for what is left: then it is a conflict as in any other file.
    if !root.state().is_dir() && (merged.conflict.is_some() || merged.is_unfinished) {
        let mut words = command(&["merge-file", "-q", "-L", "ours", "-L", "base", "-L", "theirs"]);
        words.extend([ours, base, theirs].map(|path| path.to_string_lossy().into_owned()));
        Git::new(&root, env)?.call(&words, Vec::new(), 1 << 16)?;
        return Ok(ExitCode::FAILURE);
    }
    if let Some(conflict) = merged.conflict {
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
        let mut report = SyncReport {
            received: paths(&[
                "topics/a -- id__AAAAAA.md", "archive/b -- id__AAAAAA.md", "proposals/p__a.json",
            ]),
            sent: paths(&["topics/x -- id__BBBBBB.md", "topics/mine.md"]),
            ..SyncReport::default()
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
