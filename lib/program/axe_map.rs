//! `axe-map`: run an agent for each of many lines. Lines in, JSON Lines out.
//!
//! The agent is prepared once. Input is read as it is needed, and each answer is written as soon as it may be, so that any
//! number of lines takes the same memory, and a run that ends early has written what was paid for.

mod flow;
mod line;
mod work;

use crate::agent::log::AgentLog;
use crate::agent::record::{Recorder, begun};
use crate::agent::tree::{Providers, Scope, TokenLimit};
use crate::base::cli::{
    self, About, Args, Completes, Context, FlagRule, Stdout, Words, count, flag, path, seconds, value,
};
use crate::base::error::{Error, Result};
use crate::base::stdin;
use crate::config::agent::{AgentName, Memory, with_agents_dir};
use crate::program::axe_map::flow::{Flow, Sink};
use crate::program::axe_map::work::Task;
use crate::program::axe_run::{AGENTS_DIR, CLEAN, Loaded, MODEL, SET, SKILL, WORKDIR, given_prompt, load};
use crate::store::answers::{Answers, Found, Known};
use std::process::ExitCode;
use std::sync::Arc;

pub(super) const ABOUT: About = About {
    name: "axe-map",
    caption: "run an agent for each of many lines",
    usage: &["axe-map [OPTIONS] AGENT < LINES"],
    flags: &[
        value("prompt", "TEXT", "put TEXT before each input").short('p'),
        count("jobs", "ask N lines at once (default 4, at most 256)").short('j'),
        flag("unordered", "write answers as they come"),
        path("resume", "FILE", "add to FILE, and ask only what has no result there"),
        flag("keep-errors", "do not ask again what has an error in FILE"),
        count("budget", "limit for the tokens of all lines; exit 4 before the next call"),
        count("max-errors", "stop after N failed lines in a row (default 10)"),
        flag("strict", "an answer that is cut off, refused or empty is an error"),
        MODEL,
        SET,
        SKILL,
        value("schema", "FILE", "each answer must be JSON that this JSON Schema accepts").of_files(),
        WORKDIR,
        seconds("timeout", "limit for one line (default 120)"),
        AGENTS_DIR,
        flag("dry-run", "count lines and tokens, call nothing"),
    ],
    words: Words::Needed(1, "agent name is required", "see them with: axe agents list"),
    completes: Completes::Values("agents"),
    rules: &[FlagRule::Needs(
        &["--keep-errors"],
        &["--resume"],
        "needs --resume",
        "name the file with --resume FILE",
    )],
    text: include_str!("axe_map.md"),
    ..About::BLANK
};

/// Lines that are asked at once, unless `--jobs` is given.
const JOBS: usize = 4;
const MOST_JOBS: usize = 256;
/// Lines in a row that may fail, unless `--max-errors` is given.
const MOST_ERRORS: u64 = 10;

pub fn main() -> ExitCode {
    cli::main_or(&ABOUT, run, |_, error| match error.message().starts_with("unexpected argument") {
        true => Err(error.hint("lines are read from stdin: axe-map AGENT < FILE")),
        false => Err(error),
    })
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    cx.env = with_agents_dir(&cx.env, args.path("agents-dir"));
    let begun = begun(cx)?;
    let jobs = args.number("jobs").unwrap_or(JOBS);
    if jobs > MOST_JOBS {
        return Err(Error::usage(format!("the value of \"--jobs\" is more than {MOST_JOBS}: \"{jobs}\"")));
    }
    let mut prompt = given_prompt(args)?;
    let name = AgentName::parse(args.words().first().unwrap_or(&""))?;
    let Loaded { global, prepared, timeout, deadline } = load(args, Some(name), &mut prompt, None, cx)?;
    let Context { env, stdout, reporter, .. } = cx;
    if stdin::is_terminal() {
        return Err(Error::usage("nothing is piped in").hint("pipe in lines: axe-map AGENT < FILE"));
    }
    let scope = Scope::of_run(env, deadline, *reporter);
    // Lines are no entries of the log, and do not know of each other.
    let log = AgentLog::load(&prepared.name, &Memory::default(), scope);
    let mut task = Task {
        prompt,
        max_tokens: prepared.max_tokens_total(&global),
        budget: Arc::new(TokenLimit::new(
            args.number("budget"),
            "raise --budget, and go on with --resume FILE",
        )),
        tally: Arc::default(),
        is_strict: args.has("strict"),
        env: env.clone(),
        reporter: *reporter,
        providers: Providers::default(),
        global,
        agent: prepared,
        log,
        timeout,
    };
    let keeps_errors = args.has("keep-errors");
    if args.has("dry-run") {
        let found = match args.path("resume") {
            Some(path) => Found::read(path, keeps_errors)?,
            None => Found::default(),
        };
        return dry_run(&task, &found, stdout);
    }
    task.agent.warn_of_missing_programs(scope);
    // A key that is missing is missing for every line.
    task.connect(scope)?;
    // All lines share them.
    task.agent.start_servers(scope)?;
    let sink = match args.path("resume") {
        Some(path) => Sink::File(Answers::open(path, keeps_errors)?),
        None => Sink::Stdout(stdout),
    };
    let is_ordered = matches!(sink, Sink::Stdout(_)) && !args.has("unordered");
    let most_errors = args.number("max-errors").unwrap_or(MOST_ERRORS);
    let begun = begun.of(&task.agent.name, &task.agent.model);
    let recorder = Recorder::begin(&task.tally, begun, &task.global, &task.env, CLEAN);
    let ended = Flow::new(task, sink, jobs, is_ordered, most_errors).run();
    recorder.end(&ended, reporter);
    ended
}

/// What the whole input would take, with one call a line.
fn dry_run(task: &Task, found: &Found, stdout: &mut Stdout) -> Result<()> {
    let (mut lines, mut answered, mut input, mut output) = (0_u64, 0_u64, 0_u64, 0_u64);
    for line in line::lines(std::io::stdin().lock()) {
        let line = line?;
        match found.knows(&line.id, &line.input) {
            Known::Yes => answered += 1,
            Known::Otherwise => return Err(line.conflict()),
            Known::No => {
                let size = task.agent.size(&task.request(&line));
                (lines, input, output) = (lines + 1, input + size.0, output + size.1);
            }
        }
    }
    stdout.line(&format!("Lines:    {lines}"))?;
    if answered > 0 {
        stdout.line(&format!("Answered: {answered} more, which are not asked again"))?;
    }
    stdout.line(&format!("Input:    {input} tokens, if a token has 4 bytes"))?;
    if output == 0 && lines > 0 {
        return stdout.line("Output:   unknown, as params.max_tokens is not set");
    }
    stdout.line(&format!("Output:   {output} tokens at most"))?;
    match task.global.price(&task.agent.model) {
        Some(price) => stdout.line(&format!("Cost:     {:.6} at most", price.cost(input, output, 0, 0))),
        None => Ok(()),
    }
}
