//! `axe-run`: run an agent. Prompt in, answer out, one entry in its log.
//!
//! Errors in files are found before waiting for stdin, and all errors of the user before a call is paid for. The
//! answer is printed first, and the entry is written after it, even if printing failed.

mod shown;

use crate::agent::conversation::{CallBudget, Providers, RunContext, Scope};
use crate::agent::log::{AgentLog, LoggedRun};
use crate::agent::named::{NamedConversation, with_names};
use crate::agent::prepare::{Overrides, PreparedAgent, Prompt};
use crate::agent::stats::{RunStats, SubAgentRun, ToolDetail, millis};
use crate::agent::sub_agent::run_agent;
use crate::base::cli::{About, Arguments, Program, Progress, Reporter, Stdout, apart, flag, text, value};
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::stderr::line;
use crate::base::{signal, stdin};
use crate::config::agent::{self, AgentName, with_agents_dir};
use crate::config::global::Global;
use crate::config::model::Model;
use crate::program::axe_run::shown::{Preview, describe, dry_run, report};
use crate::prompt::{self, attachments};
use crate::provider::message::{Repeats, Reply, Stop};
use crate::store::conversation::ConversationName;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

pub(super) const ABOUT: About = About {
    name: "axe-run",
    caption: "run an agent: prompt in, answer out",
    usage: &["axe-run [OPTIONS] AGENT [< CONTEXT]"],
    commands: &[],
    flags: &[
        value("prompt", "TEXT", "the user message; piped input follows it as context").short('p'),
        value("attach", "FILE", "show the model an image or a PDF; repeatable"),
        value("conversation", "NAME", "go on with the conversation NAME, or begin it"),
        value("model", "P/M", "use this model instead of the agent's"),
        value("skill", "PATH", "use this skill instead of the agent's"),
        value("schema", "FILE", "the answer must be JSON that this JSON Schema accepts"),
        value("workdir", "DIR", "look for files and run commands in DIR"),
        value("timeout", "SECONDS", "limit for stdin, calls and sub-agents (default 120)"),
        value("max-tokens-total", "N", "limit for the tokens of all calls; exit 4 before the next one"),
        value("agents-dir", "DIR", "look for agents in DIR first"),
        flag("no-stdin", "do not read stdin"),
        flag("skip-empty", "do nothing if what is piped in is blank"),
        flag("newline", "end the answer with a newline if it has none"),
        flag("stream", "print the answer as it comes"),
        flag("strict", "exit 1 if the answer is cut off, refused or empty"),
        flag("dry-run", "show the prompt and the settings, call nothing"),
        flag("json", "print a JSON object with the answer and its token counts"),
        flag("verbose", "describe every step on stderr").short('v'),
    ],
    more: "AGENT is defined in agents/AGENT.toml in the configuration directory; create one with \
           \"axe agents init AGENT\". Piped input becomes the user message; without it the message is \"Execute \
           the task described in your instructions.\" With [memory] enabled, the newest entries of the agent's \
           log are part of the prompt, and the run is added to the log.\n\n    \
           git diff | axe-run -p 'Review this.' reviewer | tee review.md\n    \
           axe-run --json -p 'Anything odd?' reviewer < app.log | jq -r .content",
    sections: &[("", include_str!("axe_run.md"))],
};

#[derive(Debug, Default)]
struct Args {
    agent: String,
    model: Option<String>,
    overrides: Overrides,
    prompt: Option<String>,
    attach: Vec<String>,
    conversation: Option<ConversationName>,
    timeout: Option<u64>,
    max_tokens_total: Option<u64>,
    agents_dir: Option<PathBuf>,
    no_stdin: bool,
    skip_empty: bool,
    newline: bool,
    stream: bool,
    strict: bool,
    dry_run: bool,
    json: bool,
    verbose: bool,
}

/// Seconds, unless `--timeout` is given.
const TIMEOUT: u64 = 120;

pub fn main() -> ExitCode {
    Program { about: &ABOUT, parse, run }.main()
}

fn parse(p: &mut Arguments) -> Result<Args> {
    use lexopt::prelude::*;
    let mut args = Args::default();
    let mut agents = Vec::new();
    while let Some(arg) = p.next()? {
        match arg {
            Short('p') | Long("prompt") => args.prompt = Some(p.text()?),
            Long("attach") => args.attach.push(p.text()?),
            Long("conversation") => args.conversation = Some(ConversationName::parse(&p.text()?)?),
            Long("model") => args.model = Some(p.text()?),
            Long("skill") => args.overrides.skill = Some(p.text()?),
            Long("schema") => args.overrides.schema = Some(p.text()?),
            Long("workdir") => args.overrides.workdir = Some(p.text()?),
            Long("timeout") => args.timeout = Some(p.seconds()?),
            Long("max-tokens-total") => args.max_tokens_total = Some(p.count()? as u64),
            Long("agents-dir") => args.agents_dir = Some(p.path()?),
            Long("no-stdin") => args.no_stdin = true,
            Long("skip-empty") => args.skip_empty = true,
            Long("newline") => args.newline = true,
            Long("stream") => args.stream = true,
            Long("strict") => args.strict = true,
            Long("dry-run") => args.dry_run = true,
            Long("json") => args.json = true,
            Short('v') | Long("verbose") => args.verbose = true,
            Value(name) => agents.push(text(name)?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    if args.prompt.as_ref().is_some_and(|prompt| prompt.trim().is_empty()) {
        return Err(Error::usage("the value of \"--prompt\" is empty"));
    }
    let mut agents = agents.into_iter();
    args.agent = agents
        .next()
        .ok_or_else(|| Error::usage("agent name is required").hint("see them with: axe agents list"))?;
    match agents.next() {
        Some(more) => Err(Error::unexpected(&more).hint(match args.prompt {
            None => format!("a prompt needs -p: axe-run -p \"…\" {}", args.agent),
            Some(_) => "a run takes one agent".to_owned(),
        })),
        None if args.skip_empty && args.no_stdin => Err(apart("--skip-empty", "--no-stdin")),
        None => Ok(args),
    }
}

fn piped_in(deadline: Deadline) -> stdin::StdinOptions {
    stdin::StdinOptions {
        deadline,
        // A hundred times more than any model's context, but a command may be any filter.
        cap: 256 << 20,
        typed: false,
        is_whole: |_| false,
        if_silent: "Use --no-stdin if there is no input",
        if_late: "close the pipe, or use --no-stdin or a longer --timeout",
    }
}

fn run(args: Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    signal::watch(ABOUT.name, args.json);
    let started = Instant::now();
    let reporter = Reporter::new(args.verbose);
    let env = &with_agents_dir(env, args.agents_dir.as_deref());

    let name = AgentName::parse(&args.agent)?;
    let agent = agent::load(&name, env, &reporter)?;
    let timeout = args.timeout.or(agent.timeout_seconds()).unwrap_or(TIMEOUT);
    // Counted from the start: what the run waits for comes after this.
    let deadline = Deadline::after_seconds(timeout);
    let model = Model::parse(args.model.as_deref().unwrap_or(&agent.model))?;
    let global = Global::load(env, &reporter)?;
    let prepared = PreparedAgent::new(name, agent, model, &args.overrides, &global, env, &reporter)?;
    let files = attachments::read(&args.attach, env)?;
    prepared.check_files(&files)?;
    let piped = if args.no_stdin { None } else { stdin::read(&piped_in(deadline), &reporter)? };
    if args.skip_empty && piped.is_none() && !stdin::is_terminal() {
        reporter.verbose("Nothing was piped in, and nothing is asked.");
        return Ok(ExitCode::SUCCESS);
    }
    if reporter.is_verbose() {
        describe(&prepared, piped.is_some(), files.len(), timeout, &reporter);
    }
    // Before the log is read: the run that has the conversation now will add to both.
    let conversation = match &args.conversation {
        Some(conversation) => Some(NamedConversation::open(
            &prepared.name, conversation, args.dry_run, deadline, env, &reporter,
        )?),
        None => None,
    };
    let log = AgentLog::load(&prepared.name, &prepared.agent, deadline, env, &reporter);
    let message = prompt::user_message(args.prompt.as_deref(), piped.as_deref());
    let prompt = prepared.prompt(&log, message.clone());
    if args.dry_run {
        let preview = Preview {
            system: &prompt.system,
            log: &log,
            conversation: conversation.as_ref(),
            prompt: args.prompt.as_deref(),
            piped: piped.as_deref(),
            files: &files,
            timeout,
        };
        dry_run(&prepared, preview, stdout)?;
        return Ok(ExitCode::SUCCESS);
    }
    log.weigh(&prepared.name, prompt.system.len() + message.len(), &reporter);
    let limits = [args.max_tokens_total, prepared.agent.limits.max_tokens_total(), global.max_tokens_total()];
    let max_tokens = limits.into_iter().flatten().next();
    let run = RunContext {
        env,
        global: &global,
        retries: global.retries(env)?,
        max_depth: prepared.agent.sub_agents_config.depth(),
        budget: CallBudget::new(global.max_calls(), max_tokens),
        providers: Providers::default(),
        stream: args.stream,
    };
    let mut stats = RunStats::default();
    // JSON, and an answer that must match a schema, are printed only when they are whole.
    let is_live = args.stream && !args.json && prepared.schema.is_none();
    // The line of progress would wipe the text beside it.
    let progress =
        Progress::start(!args.verbose && !is_live, format!("{}: {}", prepared.name, prepared.model));
    let mut live = Live { stdout, text_ended: Ok(()), ends_with_newline: true };
    let mut on_text = |piece: &str| {
        if is_live {
            live.print(piece);
        }
    };
    let scope = Scope { depth: 0, deadline, reporter };
    let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
    let prompt = match &conversation {
        Some(conversation) => {
            Prompt { earlier: conversation.turns(), repeats: Repeats::Everything, files, ..prompt }
        }
        None => Prompt { files, ..prompt },
    };
    let reply = run_agent(&run, &prepared, prompt, scope, &mut on_text, &mut stats);
    drop(progress);
    let Live { stdout, text_ended: mut streamed, ends_with_newline } = live;
    if !ends_with_newline && (reply.is_err() || args.newline || stdout.is_terminal()) {
        streamed = streamed.and(stdout.text("\n")).and(stdout.flush());
    }
    for text in stats.rejected.iter().flat_map(|answer| answer.lines()) {
        line(text);
    }
    let reply = match reply {
        Err(error) if error.kind() == ErrorKind::Budget => {
            // What was said so far has been paid for.
            let reply =
                Reply::new(stats.so_far.join("\n\n"), Stop::Cut, "max_tokens_total", &prepared.model.name);
            let printed =
                if is_live { Ok(()) } else { print(&args, &prepared, &reply, &stats, started, stdout) };
            return printed.and(Err(error));
        }
        reply => reply?,
    };

    for warning in reply.warnings.iter().chain(&Reply::tries(stats.retries)) {
        reporter.warn(warning);
    }
    let is_kept = !(args.strict && reply.flaw().is_some());
    // What was printed is in it, whatever happens to this program next.
    let added = match &conversation {
        Some(conversation) if is_kept => {
            conversation.append(&message, names.clone(), &reply, &prepared.model, env, &reporter)
        }
        _ => Ok(()),
    };
    let printed = match is_live && reply.was_streamed {
        true => streamed,
        false => print(&args, &prepared, &reply, &stats, started, stdout),
    };
    report(&reply, &stats, started, &reporter);
    match reply.flaw() {
        // Not logged: with --strict the task counts as failed.
        Some(flaw) if args.strict => return printed.and(Err(Error::refused(flaw))),
        Some(flaw) => reporter.warn(&flaw),
        None => {}
    }
    let task = with_names(args.prompt.as_deref().unwrap_or(&message), &names);
    let logged = LoggedRun { task: &task, result: &reply.text };
    log.append(&prepared.name, &prepared.agent, logged, deadline, env, &reporter);
    printed.and(added)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints an answer as it comes.
struct Live<'a> {
    stdout: &'a mut Stdout,
    /// The first error; later text is not tried. The run goes on: it is paid for, and logged.
    text_ended: Result<()>,
    ends_with_newline: bool,
}

impl Live<'_> {
    fn print(&mut self, text: &str) {
        if self.text_ended.is_ok() && !text.is_empty() {
            self.text_ended = self.stdout.text(text).and_then(|()| self.stdout.flush());
            self.ends_with_newline = text.ends_with('\n');
        }
    }
}

/// What `--json` prints, in this order.
#[derive(serde::Serialize)]
struct Envelope<'a> {
    model: &'a str,
    content: &'a str,
    input_tokens: u64,
    output_tokens: u64,
    stop_reason: &'a str,
    duration_ms: u64,
    tool_calls: u64,
    agent: &'a str,
    provider: &'a str,
    sub_agents: &'a [SubAgentRun],
    retries: u32,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
    tool_details: &'a [ToolDetail],
    cost: Option<f64>,
}

fn print(
    args: &Args,
    prepared: &PreparedAgent,
    reply: &Reply,
    stats: &RunStats,
    started: Instant,
    stdout: &mut Stdout,
) -> Result<()> {
    if args.json {
        stdout.json(&Envelope {
            model: &reply.model,
            content: &reply.text,
            input_tokens: stats.tokens.input,
            output_tokens: stats.tokens.output,
            stop_reason: &reply.stop_reason,
            duration_ms: millis(started.elapsed()),
            tool_calls: stats.tool_calls,
            agent: prepared.name.as_str(),
            provider: &prepared.model.provider,
            sub_agents: &stats.sub_agents,
            retries: stats.retries,
            cache_read_tokens: stats.tokens.cache_read,
            cache_write_tokens: stats.tokens.cache_write,
            tool_details: &stats.tool_details,
            cost: stats.cost.amount(),
        })?;
    } else {
        stdout.text(&reply.text)?;
        // A pipe gets the answer as it came. On a terminal, the shell's prompt must start on a new line.
        let newline = args.newline || stdout.is_terminal();
        if newline && !reply.text.is_empty() && !reply.text.ends_with('\n') {
            stdout.text("\n")?;
        }
    }
    stdout.flush()
}
