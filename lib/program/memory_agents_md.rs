//! `memory-agents-md`: write what every agent should know into the files that agents read first.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, apart, flag, value};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::repository::Repository;
use crate::base::signal;
use crate::config::memory::Target;
use crate::harness::shell::AgentShell;
use crate::memory::section::projects::agents_md;
use crate::memory::section::{self, NoteCounts, Outcome, Standing};
use crate::program::notes::{Errors, Store, for_each, ids_on_stdin, place_here};
use crate::store::persistence::Note;
use crate::store::place::Root;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) const ABOUT: About = About {
    name: "memory-agents-md",
    caption: "write notes into AGENTS.md files",
    usage: &[
        "memory-agents-md [--check] [--json]",
        "memory-agents-md --target FILE [--repo R] [--check] [--json]",
        "memory-agents-md --project [--stdout | --check] [--json]",
        "memory-agents-md --stdout [--repo R] [--json]",
        "memory-agents-md - [--json] < IDS",
    ],
    commands: &[],
    flags: &[
        value("target", "FILE", "this file, not the configured ones; repeatable"),
        flag("project", "AGENTS.md of the current repository, with its notes"),
        value("repo", "R", "the notes of repository R (. is the current one)"),
        flag("stdout", "print the section, write no file"),
        flag("check", "write nothing; exit 1 if a file is stale"),
        flag("json", "one JSON object a file"),
        value("config", "FILE", "use this configuration file"),
    ],
    more: "Refreshes one section of each file under agentsMd.targets, between two marker lines: your own notes, hot \
           ones and others in full while there is room, the rest by file name and summary, the number of the others. The rest of the file stays, byte for \
           byte, and a file that is up to date is not written. Notes whose last day (until) is over are left out. \
           Without targets the section is printed on stdout.\n\n\
           --project also remembers the checkout: from then on its AGENTS.md is refreshed with the others, until you \
           remove the section from it.\n\n\
           With - it prints a section of just the notes that stdin names, and writes no file. It reads ids, one a \
           line, or what memory-list --json or memory-consolidate --json prints.\n\n    \
           memory-agents-md --stdout | llm -s 'Which of these contradict each other?'\n    \
           memory-consolidate --json | memory-agents-md -",
    sections: &[
        (
            "FILES",
            "The section is between the lines <!-- agent-memory:start --> and <!-- agent-memory:end -->. If a file has \
             no markers, the section is added at its end. A missing file is created, with at most one missing \
             directory. While there are no notes, no file is created and no section added. If a file is a symlink, \
             its target is replaced, not the link. Files are skipped with an error if they are larger than 8 MiB, in \
             UTF-16, read-only, or have broken markers; the other files are still refreshed.\n\n\
             A marker is alone on its line, outside of code fences.",
        ),
        (
            "PROJECTS",
            "The checkouts in which you ran --project are in projects.json, in the store's .agent-memory/, on this \
             machine only. memory-consolidate, memory-defrag and every command that changes a note refresh them. One \
             whose section you removed is dropped; one that is gone is dropped after 30 days, in case its disk is only \
             unplugged. In an agent's shell the file is written once, and nothing is remembered.",
        ),
        (
            "EXIT STATUS",
            "0: every file is up to date. 1: a file could not be refreshed, or with --check is stale. 2: the \
             configuration is wrong.",
        ),
    ],
};

#[derive(Debug, Default)]
struct Args {
    /// `-`: the notes that stdin names.
    is_stdin: bool,
    targets: Vec<PathBuf>,
    is_project: bool,
    repo: Option<String>,
    to_stdout: bool,
    is_check: bool,
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
            Value(word) if word == "-" => args.is_stdin = true,
            Long("target") => args.targets.push(p.path()?),
            Long("project") => args.is_project = true,
            Long("repo") => args.repo = Some(p.text()?),
            Long("stdout") => args.to_stdout = true,
            Long("check") => args.is_check = true,
            Long("json") => args.json = true,
            Long("config") => args.config = Some(p.path()?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    args.check()
}

impl Args {
    fn check(self) -> Result<Args> {
        let has_target = !self.targets.is_empty();
        let no_file = "\"-\" prints the notes that stdin names, and writes no file";
        for (one, other, both, hint) in [
            ("-", "--target", self.is_stdin && has_target, no_file),
            ("-", "--project", self.is_stdin && self.is_project, no_file),
            ("-", "--repo", self.is_stdin && self.repo.is_some(), no_file),
            ("-", "--check", self.is_stdin && self.is_check, no_file),
            ("--stdout", "--check", self.to_stdout && self.is_check, "--check prints the state of each file"),
            ("--stdout", "--target", self.to_stdout && has_target, "the section is the same for every file"),
            (
                "--project",
                "--target",
                self.is_project && has_target,
                "to write its notes into another file: --target FILE --repo .",
            ),
            (
                "--project",
                "--repo",
                self.is_project && self.repo.is_some(),
                "for another repository's notes: --target AGENTS.md --repo R",
            ),
        ] {
            if both {
                return Err(apart(one, other).hint(hint));
            }
        }
        if self.repo.is_some() && self.targets.is_empty() && !self.to_stdout {
            return Err(Error::usage("option \"--repo\" needs --target or --stdout")
                .hint("configured targets have their own \"repo\""));
        }
        if self.targets.iter().any(|target| target.as_os_str().is_empty()) {
            return Err(Error::usage("option \"--target\" is empty"));
        }
        Ok(self)
    }
}

fn run(args: Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    signal::watch(ABOUT.name, args.json);
    let reporter = Reporter::new(false);
    let store = Store::open(args.config.as_deref(), env, &reporter)?;
    if args.is_stdin {
        return print_notes(&store, args.json, &reporter, stdout);
    }
    let Store { config, root, .. } = store;
    let here = if args.is_project { Some(place_here(env)?) } else { None };
    let repo = match (&args.repo, &here) {
        (Some(dot), _) if dot == "." => Some(place_here(env)?.name),
        (repo, here) => repo.clone().or_else(|| here.as_ref().map(|here| here.name.clone())),
    };
    let wanted: Vec<PathBuf> = match &here {
        Some(here) => vec![agents_md(&here.top)?],
        None => args.targets.iter().map(|path| absolute(path, env)).collect::<Result<_>>()?,
    };
    let is_named = !wanted.is_empty();
    let is_bare = !is_named && !section::has_targets(&config, &root);
    if args.to_stdout || is_bare && !args.is_check {
        let section = section::text(&config, &root, repo.as_deref(), env.today(), &reporter)?;
        return print(repo.as_deref(), section, args.json, stdout).map(|()| ExitCode::SUCCESS);
    }
    let targets: Vec<Target> = wanted.into_iter().map(|path| Target { path, repo: repo.clone() }).collect();
    let outcomes = match (args.is_check, is_named) {
        (true, true) => section::check_these(&targets, &config, &root, env.today())?,
        (true, false) => section::check(&config, &root, env.today())?,
        (false, true) => section::refresh_these(&targets, &config, &root, env.today(), &reporter)?,
        (false, false) => section::refresh(&config, &root, env.today(), &reporter)?,
    };
    if let Some(here) = &here
        && !args.is_check
        && outcomes.iter().all(|outcome| outcome.standing.is_ok())
    {
        record(&root, here, env, &reporter);
    }
    if is_bare {
        reporter.warn("there is no target to check: add one to agentsMd.targets, or give --target FILE");
    }
    // The user named these files, and expects to find them.
    for outcome in outcomes.iter().filter(|outcome| is_named && outcome.shown == NoteCounts::default()) {
        if let Ok(Standing::Unchanged) = outcome.standing {
            let whose =
                outcome.repo.as_ref().map_or("global notes".to_owned(), |repo| format!("notes of {repo}"));
            reporter.warn(&format!(
                "nothing to show in \"{}\": there are no {whose} yet",
                outcome.path.display()
            ));
        }
    }
    tell(outcomes, args.json, stdout)
}

/// From now on the file is refreshed with the others, if a person wants it.
fn record(root: &Root, here: &Repository, env: &Env, reporter: &Reporter) {
    if let Some(shell) = AgentShell::of(env) {
        reporter.warn(&format!(
            "this is the shell of an agent ({} is set), so the file is written once, and not refreshed from now on; for \
             that, run it in a terminal of your own",
            shell.variable
        ));
    } else if let Err(error) = section::record_project(root, here) {
        reporter.warn(&format!("the file is written, and will not be refreshed: {}", error.line()));
    }
}

/// Expands `~`, which a shell does not do in `--target=~/x`.
fn absolute(path: &Path, env: &Env) -> Result<PathBuf> {
    let path = path.to_str().map_or_else(|| path.to_path_buf(), |path| env.expand(path));
    Ok(env.current_dir()?.join(path).components().collect())
}

/// Prints a section of the notes that stdin names; nothing if it names none.
fn print_notes(store: &Store, json: bool, reporter: &Reporter, stdout: &mut Stdout) -> Result<ExitCode> {
    let mut notes: Vec<Note> = Vec::new();
    let ids = ids_on_stdin(reporter)?;
    let found = for_each(&ids, Errors::new(ABOUT.name, json), stdout, |id, _| {
        let note = store.service.look(id)?;
        // Two ids may be one note, if it was merged.
        if notes.iter().all(|other| other.path != note.path) {
            notes.push(note);
        }
        Ok(())
    });
    let section = match notes.is_empty() {
        true => Default::default(),
        false => section::of_notes(&store.config, &notes, reporter),
    };
    if json || !notes.is_empty() {
        print(None, section, json, stdout)?;
    }
    found.map(|()| ExitCode::SUCCESS)
}

fn print(repo: Option<&str>, section: (String, NoteCounts), json: bool, stdout: &mut Stdout) -> Result<()> {
    let (section, NoteCounts { hot, warm, cold }) = section;
    match json {
        true => {
            stdout.json(&json!({"repo": repo, "hot": hot, "warm": warm, "cold": cold, "section": section}))
        }
        false => stdout.line(&section),
    }
}

/// Prints a line or an object for each file.
fn tell(outcomes: Vec<Outcome>, json: bool, stdout: &mut Stdout) -> Result<ExitCode> {
    let is_stale = outcomes.iter().any(|outcome| matches!(outcome.standing, Ok(Standing::Stale)));
    let mut errors = Errors::new(ABOUT.name, json);
    for Outcome { path, repo, shown: NoteCounts { hot, warm, cold }, standing } in outcomes {
        let status = standing.as_ref().map_or("failed", |standing| standing.as_str());
        match json {
            true => stdout.json(&json!({
                "path": path.to_string_lossy(),
                "repo": repo,
                "status": status,
                "hot": hot,
                "warm": warm,
                "cold": cold,
                "error": standing.as_ref().err().map(Error::line),
            }))?,
            false => stdout.line(&format!("{status}\t{}", path.display()))?,
        }
        if let Err(error) = standing {
            errors.add(error);
        }
    }
    errors.end()?;
    Ok(if is_stale { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
