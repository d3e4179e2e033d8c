//! `memory-agents-md`: what every agent is to know, in the files that agents read first.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, apart, flag, value};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::repository::Repository;
use crate::base::{signal, stderr};
use crate::config::memory::{self, MemoryConfig, Target};
use crate::memory::section::{self, NoteCounts, Outcome, Standing};
use crate::program::notes::repository_here;
use crate::store::place::Root;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(crate) const ABOUT: About = About {
    name: "memory-agents-md",
    caption: "write notes into AGENTS.md files",
    usage: &[
        "memory-agents-md [--check] [--json]",
        "memory-agents-md --target FILE [--repo R] [--check] [--json]",
        "memory-agents-md --project [--stdout | --check] [--json]",
        "memory-agents-md --stdout [--repo R] [--json]",
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
    more: "Refreshes one section of each file under agentsMd.targets, between two lines that mark it: hot and pinned \
           notes whole, warm ones as links, the others as a number. All else in a file stays, byte for byte; a file \
           that is as it should be is not touched. Without targets the section goes to stdout.\n\n    \
           memory-agents-md --stdout | llm -s 'Which of these contradict each other?'",
    sections: &[
        (
            "FILES",
            "The section stands between the lines <!-- agent-memory:start --> and <!-- agent-memory:end -->. A file without \
             them gets it at its end. A missing file is made, with at most one missing \
             directory; not for nothing: where there are no notes no file is made, and no section begun. A \
             symlink stays, and the file that it leads to is replaced. Files of more than 8 MiB, in UTF-16, \
             read-only, or with broken markers are left alone, and the others still refreshed.\n\n\
             A marker stands on a line of its own, outside of code fences.",
        ),
        (
            "EXIT STATUS",
            "0: every file is as it should be. 1: a file could not be refreshed, or with --check is stale. 2: the \
             configuration is wrong.",
        ),
    ],
};

#[derive(Debug, Default)]
struct Args {
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
        let apart = |one: &str, other: &str, hint: &str| Err(apart(one, other).hint(hint));
        if self.to_stdout && self.is_check {
            return apart("--stdout", "--check", "a check prints how each file stands");
        }
        if self.to_stdout && !self.targets.is_empty() {
            return apart(
                "--stdout",
                "--target",
                "the section is the same for every file; give one of the two",
            );
        }
        if self.is_project && !self.targets.is_empty() {
            return apart("--project", "--target", "for its notes in another file: --target FILE --repo .");
        }
        if self.is_project && self.repo.is_some() {
            return apart(
                "--project",
                "--repo",
                "for another repository's notes: --target AGENTS.md --repo R",
            );
        }
        if self.repo.is_some() && self.targets.is_empty() && !self.to_stdout {
            return Err(Error::usage("option \"--repo\" says whose notes, not where they go")
                .hint("add --target FILE or --stdout; configured targets name their own"));
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
    let mut config = memory::load(args.config.as_deref(), env, &reporter)?;
    let root = Root::at(&config.storage.root);
    let here = if args.is_project { Some(here("--project", env)?) } else { None };
    let repo = match (&args.repo, &here) {
        (Some(dot), _) if dot == "." => Some(self::here("--repo", env)?.name),
        (repo, here) => repo.clone().or_else(|| here.as_ref().map(|here| here.name.clone())),
    };
    let wanted: Vec<PathBuf> = match here {
        Some(here) => vec![of_project(&here.top)?],
        None => args.targets.iter().map(|path| absolute(path, env)).collect::<Result<_>>()?,
    };
    let is_named = !wanted.is_empty();
    let is_bare = !is_named && config.agents_md.targets.is_empty();
    if args.to_stdout || is_bare && !args.is_check {
        return print(&config, &root, repo.as_deref(), args.json, &reporter, stdout);
    }
    if is_named {
        let target = |path| Ok(Target { path: memory::may_write(path, &config, env)?, repo: repo.clone() });
        config.agents_md.targets = wanted.into_iter().map(target).collect::<Result<_>>()?;
    }
    let outcomes = match args.is_check {
        true => section::check(&config, &root)?,
        false => section::refresh(&config, &root, &reporter)?,
    };
    if is_bare {
        reporter.warn("there is no target to check: list some under agentsMd.targets, or give --target FILE");
    }
    // Whoever named a file looks for it.
    for outcome in outcomes.iter().filter(|outcome| is_named && outcome.shown == NoteCounts::default()) {
        if let Ok(Standing::Unchanged) = outcome.standing {
            let whose = outcome.repo.as_ref().map_or("for everybody".to_owned(), |repo| format!("of {repo}"));
            reporter.warn(&format!("there are no notes {whose} yet for \"{}\"", outcome.path.display()));
        }
    }
    tell(outcomes, args.json, stdout)
}

fn here(flag: &str, env: &Env) -> Result<Repository> {
    repository_here(flag, "cd into one, or name a file with --target", env)
}

/// A checkout may be a stranger's: a link in it must not lead the section into a file elsewhere.
fn of_project(top: &Path) -> Result<PathBuf> {
    let path = top.join("AGENTS.md");
    match memory::lies_in(top, &path) {
        true => Ok(path),
        false => Err(Error::refused(format!("\"{}\" is a link out of the repository", path.display()))
            .hint("if that is meant, name the file it leads to with --target and --repo .")),
    }
}

/// A shell leaves `--target=~/x` as it is.
fn absolute(path: &Path, env: &Env) -> Result<PathBuf> {
    let path = path.to_str().map_or_else(|| path.to_path_buf(), |path| env.expand(path));
    Ok(env.current_dir()?.join(path).components().collect())
}

fn print(
    config: &MemoryConfig,
    root: &Root,
    repo: Option<&str>,
    json: bool,
    reporter: &Reporter,
    stdout: &mut Stdout,
) -> Result<ExitCode> {
    let (section, shown) = section::text(config, root, repo, reporter)?;
    let NoteCounts { hot, warm, cold } = shown;
    match json {
        true => {
            stdout.json(&json!({"repo": repo, "hot": hot, "warm": warm, "cold": cold, "section": section}))?
        }
        false => stdout.line(&section)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A line or an object for each file. A fault of one is told at once, that of the last as the program's own.
fn tell(outcomes: Vec<Outcome>, json: bool, stdout: &mut Stdout) -> Result<ExitCode> {
    let is_stale = outcomes.iter().any(|outcome| matches!(outcome.standing, Ok(Standing::Stale)));
    let mut last: Option<Error> = None;
    for Outcome { path, repo, shown, standing } in outcomes {
        let word = match &standing {
            Ok(standing) => standing.as_str(),
            Err(_) => "failed",
        };
        let NoteCounts { hot, warm, cold } = shown;
        match json {
            true => stdout.json(&json!({
                "path": path.to_string_lossy(),
                "repo": repo,
                "status": word,
                "hot": hot,
                "warm": warm,
                "cold": cold,
                "error": standing.as_ref().err().map(Error::line),
            }))?,
            false => stdout.line(&format!("{word}\t{}", path.display()))?,
        }
        if let Some(earlier) = standing.err().and_then(|error| last.replace(error)) {
            stderr::line(&format!("{}: {}", ABOUT.name, earlier.line()));
        }
    }
    match last {
        Some(error) => Err(error),
        None if is_stale => Ok(ExitCode::from(1)),
        None => Ok(ExitCode::SUCCESS),
    }
}
