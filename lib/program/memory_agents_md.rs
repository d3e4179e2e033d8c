//! `memory-agents-md`: write what every agent should know into the files that agents read first.

use crate::base::cli::{self, About, Args, Context, ExitCode, FlagRule, Words, flag, path, value};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::repository::Repository;
use crate::config::memory::Target;
use crate::memory::redact::Redactor;
use crate::memory::section::projects::agents_md;
use crate::memory::section::{self, NoteCounts, Outcome, Room, Section, Standing, Which};
use crate::memory::shared::{SharedNotes, fault};
use crate::program::notes::{CONFIG, Store, checkout_here, ids_on_stdin, place_here};
use crate::program::person::{self, only_a_person};
use crate::store::persistence::{Note, warn_of};
use crate::store::place::Root;
use crate::store::projects::Projects;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub(super) const ABOUT: About = About {
    name: "memory-agents-md",
    caption: "write notes into AGENTS.md files",
    usage: &[
        "memory-agents-md [--check] [--json]",
        "memory-agents-md --target FILE [--repo R] [--check] [--json]",
        "memory-agents-md --project [--stdout | --check] [--json]",
        "memory-agents-md --stdout [--repo R] [--json]",
        "memory-agents-md --shared [--check] [--json]",
        "memory-agents-md - [--json] < IDS",
    ],
    flags: &[
        path("target", "FILE", "this file, not the configured ones; repeatable"),
        flag("project", "AGENTS.md of the current repository, with its notes"),
        value("repo", "R", "the notes of repository R (. is the current one)").from("repositories"),
        flag("shared", "the same, of the notes in its .agents/memory alone"),
        flag("stdout", "print the section, write no file"),
        flag("check", "write nothing; exit 1 if a file is stale"),
        flag("json", "one JSON object a file"),
        CONFIG,
    ],
    words: Words::Stdin,
    rules: &[
        FlagRule::Apart(
            "-",
            &["--target", "--project", "--repo", "--check"],
            "\"-\" prints the notes that stdin names, and writes no file",
        ),
        FlagRule::Apart(
            "--shared",
            &["-", "--target", "--project", "--repo", "--stdout"],
            "it writes AGENTS.md of this repository, from the files in .agents/memory",
        ),
        FlagRule::Apart("--stdout", &["--check"], "--check prints the state of each file"),
        FlagRule::Apart("--stdout", &["--target"], "the section is the same for every file"),
        FlagRule::Apart(
            "--project",
            &["--target"],
            "to write its notes into another file: --target FILE --repo .",
        ),
        FlagRule::Apart(
            "--project",
            &["--repo"],
            "for another repository's notes: --target AGENTS.md --repo R",
        ),
        FlagRule::Needs(
            &["--repo"],
            &["--target", "--stdout"],
            "needs --target or --stdout",
            "configured targets have their own \"repo\"",
        ),
    ],
    text: include_str!("memory_agents_md.md"),
    ..About::BLANK
};

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<ExitCode> {
    cx.watch_signals();
    if args.has("shared") {
        return refresh_shared(args, cx);
    }
    let targets = args.paths("target");
    let store = Store::open(args, cx)?;
    if !args.words().is_empty() {
        return print_notes(&store, cx).map(|()| ExitCode::SUCCESS);
    }
    let repo = store.named_repo(args, cx)?;
    let Store { config, root, service } = store;
    let is_check = args.has("check");
    let here = if args.has("project") { Some(place_here(&cx.env)?) } else { None };
    let (wanted, repo): (Vec<PathBuf>, _) = match &here {
        Some(here) => (vec![agents_md(&here.top)?], Some(here.name.clone())),
        None => {
            let targets = targets.iter().map(|path| absolute(path, &cx.env));
            (targets.collect::<Result<_>>()?, repo)
        }
    };
    let is_written = !is_check && !args.has("stdout");
    if let Some(path) = wanted.iter().find(|path| is_written && section::is_for_all(path)) {
        let what = "has the notes of the repository, from memory-agents-md --shared";
        return Err(Error::refused(format!("\"{}\" {what}", path.display()))
            .hint("remove its section first, if you want yours there instead"));
    }
    let is_named = !wanted.is_empty();
    let is_bare = !is_named && !section::has_targets(&config, &root);
    let (today, reporter) = (cx.env.today(), cx.reporter);
    if args.has("stdout") || is_bare && !is_check {
        let section = service.section(&[repo.as_deref()], Room::of(&config.agents_md), None)?;
        section::warn(&section, repo.as_deref(), &config, &reporter);
        return print(repo.as_deref(), &section, cx).map(|()| ExitCode::SUCCESS);
    }
    let targets: Vec<Target> = wanted.into_iter().map(|path| Target { path, repo: repo.clone() }).collect();
    let which = if is_named { Which::These(&targets) } else { Which::All };
    let outcomes = section::refresh(which, &config, &root, today, (!is_check).then_some(&reporter))?;
    if let Some(here) = here.filter(|_| !is_check && outcomes.iter().all(|outcome| outcome.standing.is_ok()))
    {
        record(&root, &here, cx);
    }
    if is_bare {
        reporter.warn("there is no target to check: add one to agentsMd.targets, or give --target FILE");
    }
    // The user named these files, and expects to find them.
    for outcome in outcomes.iter().filter(|outcome| is_named && outcome.shown == NoteCounts::default()) {
        if let Ok(Standing::Unchanged | Standing::Missing) = outcome.standing {
            let whose =
                outcome.repo.as_ref().map_or("global notes".to_owned(), |repo| format!("notes of {repo}"));
            let path = outcome.path.display();
            reporter.warn(&format!("nothing to show in \"{path}\": there are no {whose} yet"));
        }
    }
    let is_stale = outcomes.iter().any(|outcome| matches!(outcome.standing, Ok(Standing::Stale)));
    cx.each(outcomes, print_outcome)?;
    Ok(if is_stale { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Needs no store: who has none, as in CI, gets the same.
fn refresh_shared(args: &Args, cx: &mut Context) -> Result<ExitCode> {
    let (here, is_check) = (checkout_here(&cx.env)?, args.has("check"));
    let store = Store::open(args, cx)?;
    let is_own = Projects::load(&store.root)?.projects.iter().any(|project| project.top == here.top);
    if is_own && !is_check {
        let path = here.top.join("AGENTS.md");
        let what = format!("\"{}\" has your own notes, from memory-agents-md --project", path.display());
        return Err(Error::refused(what).hint("remove its section, then run: memory-agents-md"));
    }
    let mut shared = SharedNotes::of(&here);
    shared.notes.retain(|note| fault(note, &Redactor::default()).is_none());
    warn_of(&shared.broken, &cx.reporter);
    let outcome = section::refresh_shared(&here, shared, cx.env.today(), !is_check)?;
    let is_stale = matches!(outcome.standing, Ok(Standing::Stale));
    print_outcome(outcome, cx)?;
    Ok(if is_stale { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// From now on the file is refreshed with the others, if a person wants it.
fn record(root: &Root, here: &Repository, cx: &Context) {
    if let Err(error) = only_a_person(person::TARGET, cx) {
        cx.reporter
            .warn(&format!("the file is written once, and not refreshed from now on: {}", error.line()));
    } else if let Err(error) = section::record_project(root, here) {
        cx.reporter.warn(&format!("the file is written, and will not be refreshed: {}", error.line()));
    }
}

/// Expands `~`, which a shell does not do in `--target=~/x`.
fn absolute(path: &Path, env: &Env) -> Result<PathBuf> {
    let path = path.to_str().map_or_else(|| path.to_path_buf(), |path| env.expand(path));
    Ok(env.current_dir()?.join(path).components().collect())
}

/// Prints a section of the notes that stdin names; nothing if it names none.
fn print_notes(store: &Store, cx: &mut Context) -> Result<()> {
    let mut notes: Vec<Note> = Vec::new();
    let found = cx.each(ids_on_stdin(cx)?, |id, _| {
        let note = store.service.look(&id)?;
        // Two ids may be one note, if it was merged.
        if notes.iter().all(|other| other.path != note.path) {
            notes.push(note);
        }
        Ok(())
    });
    if !notes.is_empty() {
        let section = section::of_notes(&notes, Room::of(&store.config.agents_md));
        section::warn(&section, None, &store.config, &cx.reporter);
        print(None, &section, cx)?;
    } else if cx.json {
        cx.stdout.json(&json(None, "", NoteCounts::default()))?;
    }
    found
}

/// A section, as `memory-recall` prints it, too.
pub(super) fn print(repo: Option<&str>, section: &Section, cx: &mut Context) -> Result<()> {
    let text = section.text();
    cx.print(&json(repo, &text, section.counts()), &text)
}

fn json(repo: Option<&str>, section: &str, counts: NoteCounts) -> Value {
    let NoteCounts { hot, warm, cold } = counts;
    json!({"repo": repo, "hot": hot, "warm": warm, "cold": cold, "section": section})
}

/// Prints a line or an object for a file.
fn print_outcome(outcome: Outcome, cx: &mut Context) -> Result<()> {
    if cx.json {
        let mut json = as_json(&outcome);
        let NoteCounts { hot, warm, cold } = outcome.shown;
        (json["hot"], json["warm"], json["cold"]) = (hot.into(), warm.into(), cold.into());
        cx.stdout.json(&json)?;
    } else {
        cx.stdout.line(&format!("{}\t{}", status(&outcome), outcome.path.display()))?;
    }
    outcome.standing.map(|_| ())
}

fn status(outcome: &Outcome) -> &'static str {
    outcome.standing.as_ref().map_or("failed", |standing| standing.as_str())
}

/// What has become of a file, as a program reads it.
pub(super) fn as_json(outcome: &Outcome) -> Value {
    let error = outcome.standing.as_ref().err().map(Error::line);
    let path = outcome.path.to_string_lossy();
    json!({"path": path, "repo": outcome.repo, "status": status(outcome), "error": error})
}
