//! `axe-run`: run an agent. Prompt in, answer out, one entry in its log.
//!
//! Errors in files are found before waiting for stdin, and all errors of the user before a call is paid for. The
//! answer is printed first, and the entry is written after it, even if printing failed.

mod shown;

use crate::agent::conversation::converse;
use crate::agent::log::AgentLog;
use crate::agent::named::{NamedConversation, with_names};
use crate::agent::prepare::{Overrides, PreparedAgent};
use crate::agent::record::{Clean, Recorder, begun};
use crate::agent::stats::{RunStats, SubAgentRun, ToolDetail, millis};
use crate::agent::tree::{Providers, RunBudget, RunContext, Scope};
use crate::agent::turn_file::{Continued, RunStart, TurnFile};
use crate::base::cli::{
    self, About, Args, Completes, Context, Flag, Progress, Reporter, Rule, Stdout, Words, count, flag, path,
    seconds, value,
};
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::json_schema::Schema;
use crate::base::stderr::line;
use crate::base::stdin;
use crate::base::text::disarmed;
use crate::base::text::fences::code_blocks;
use crate::config::agent::{self, AgentName, agents_dir, if_set, with_agents_dir};
use crate::config::global::{Api, Global};
use crate::config::model::Model;
use crate::memory::redact::Redactor;
use crate::program::axe_run::shown::{Preview, describe, dry_run, report};
use crate::prompt::{self, attachments, vars};
use crate::provider::message::{Attachment, ChatTurn, Repeats, Reply, Request, StopReason};
use crate::store::conversation::ConversationName;
use crate::store::runs::{Run, RunId};
use std::borrow::Cow;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

// What programs that run an agent have in common.
pub(super) const MODEL: Flag = value("model", "P/M", "use this model instead of the agent's").from("models");
pub(super) const SET: Flag =
    value("set", "NAME=VALUE", "fill {{NAME}} in the agent and the prompt; repeatable");
pub(super) const SKILL: Flag = value("skill", "PATH", "use this skill instead of the agent's").of_files();
pub(super) const WORKDIR: Flag = value("workdir", "DIR", "look for files and run commands in DIR").of_files();
pub(super) const AGENTS_DIR: Flag = path("agents-dir", "DIR", "look for agents in DIR first");
/// Keeps secrets out of the ledger.
pub(super) const CLEAN: Clean = |text| Redactor::default().cleaned(text);
/// Seconds, unless `--timeout` is given.
pub(super) const TIMEOUT: u64 = 120;

pub(super) const ABOUT: About = About {
    name: "axe-run",
    caption: "run an agent: prompt in, answer out",
    usage: &["axe-run [OPTIONS] [AGENT] [< CONTEXT]", "axe-run [OPTIONS] --continue RUN"],
    flags: &[
        value("prompt", "TEXT", "the user message; piped input follows it as context").short('p'),
        value("attach", "FILE", "show an image or a PDF; - is stdin; repeatable").of_files(),
        value("conversation", "NAME", "go on with the conversation NAME, or begin it"),
        value("continue", "RUN", "go on with a run that failed after calls of tools"),
        MODEL,
        SET,
        SKILL,
        value("schema", "FILE", "the answer must be JSON that this JSON Schema accepts").of_files(),
        WORKDIR,
        seconds("timeout", "limit for stdin, calls and sub-agents (default 120)"),
        count("max-tokens-total", "limit for the tokens of all calls; exit 4 before the next one"),
        AGENTS_DIR,
        flag("no-stdin", "do not read stdin"),
        flag("skip-empty", "do nothing if what is piped in is blank"),
        flag("newline", "end the answer with a newline if it has none"),
        flag("stream", "print the answer as it comes"),
        flag("strict", "exit 1 if the answer is cut off, refused or empty"),
        flag("dry-run", "show the prompt and the settings, call nothing"),
        flag("code", "print only what stands in the answer's code fences"),
        flag("json", "print the answer and its token counts as JSON"),
        flag("verbose", "describe every step on stderr").short('v'),
    ],
    words: Words::AtMost(usize::MAX),
    completes: Completes::Values("agents"),
    rules: &[
        Rule::Apart("--skip-empty", &["--no-stdin"], ""),
        Rule::Apart("--continue", CONTINUED_AS_IT_WAS, "the run goes on as it began"),
        Rule::Apart("--code", &["--stream", "--json", "--schema"], ""),
    ],
    text: include_str!("axe_run.md"),
    ..About::BLANK
};

/// What a run that is continued has from its beginning.
const CONTINUED_AS_IT_WAS: &[&str] = &[
    "--prompt", "--set", "--attach", "--conversation", "--skill", "--schema", "--workdir", "--skip-empty",
    "--dry-run",
];

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

/// The one agent that is named, if one is.
fn agent_name(args: &Args) -> Result<Option<AgentName>> {
    let words = args.words();
    let [name, more, ..] = words[..] else {
        return words.first().map(|name| AgentName::parse(name)).transpose();
    };
    Err(Error::unexpected(more).hint(match args.has("prompt") {
        false => format!("a prompt needs -p: axe-run -p \"…\" {name}"),
        true => "a run takes one agent".to_owned(),
    }))
}

/// Without an agent, only a prompt says what to do.
fn nothing_to_do() -> Error {
    Error::usage("agent name is required")
        .hint("see them with: axe agents list; or give a prompt: axe-run -p \"…\"")
}

fn without_model(needs_prompt: bool, env: &Env) -> Error {
    let config = env.config_dir().unwrap_or_default().join("config.toml");
    let next = format!("use --model, or set model under [default] in \"{}\"", config.display());
    match needs_prompt {
        // Not even that there is a prompt is known yet.
        true => Error::usage("agent name is required").hint(format!("without an agent: {next}")),
        false => Error::config("no agent is named, and the default has no model").hint(next),
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

/// An agent as the command line changes it.
pub(super) struct Loaded {
    pub(super) global: Global,
    pub(super) prepared: PreparedAgent,
    /// Seconds.
    pub(super) timeout: u64,
    /// Counted from the start: what the run waits for comes after this.
    pub(super) deadline: Deadline,
}

/// What a run that is continued began with, and the model that it had at last.
type Earlier<'a> = (&'a RunStart, &'a str);

/// The agent `name`, or without a name the default one, with the variables of its texts and of `prompt` filled in. Of what
/// an earlier request has already, nothing is read again.
pub(super) fn load(
    args: &Args,
    name: Option<AgentName>,
    prompt: &mut Option<String>,
    earlier: Option<Earlier>,
    cx: &Context,
) -> Result<Loaded> {
    let Context { env, reporter, .. } = cx;
    let is_named = name.is_some();
    let (name, mut agent) = match name {
        Some(name) => {
            let agent =
                agent::load(&name, env, reporter).map_err(|error| match name.as_str().contains(' ') {
                    true if !args.has("prompt") => error.hint("a prompt needs -p: axe-run -p \"…\""),
                    _ => error,
                })?;
            (name, agent)
        }
        None => agent::load_default(env, reporter)?,
    };
    let timeout = args.number("timeout").or(if_set(agent.timeout)).unwrap_or(TIMEOUT);
    let deadline = Deadline::after_seconds(timeout);
    let global = Global::load(env, reporter)?;
    let model = match args.text("model").or(earlier.map(|(_, newest)| newest)) {
        Some(text) => global.model(text)?,
        None if agent.model.is_empty() => return Err(without_model(!is_named && prompt.is_none(), env)),
        None => global.model(&agent.model)?,
    };
    if args.has("model") {
        // It alone is wanted.
        agent.fallback.clear();
    }
    let [skill, schema, mut workdir] = ["skill", "schema", "workdir"].map(|flag| args.text(flag));
    if let Some((start, _)) = earlier {
        (agent.skill, agent.schema, workdir) = (String::new(), String::new(), start.workdir.to_str());
        agent.files.clear();
        agent.vars.clear();
    }
    let texts = [&mut agent.system_prompt].into_iter().chain(&mut agent.files).chain(prompt);
    vars::fill(&agent.vars, &args.texts("set"), texts)?;
    let overrides = Overrides { skill, schema, workdir };
    let scope = Scope::of_run(env, deadline, *reporter);
    let prepared = PreparedAgent::new(name, agent, model, overrides, &global, scope)?;
    Ok(Loaded { global, prepared, timeout, deadline })
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    let started = Instant::now();
    cx.reporter = Reporter::keeping(args.has("verbose"), args.has("json") && !args.has("verbose"));
    if let Some(id) = args.parsed("continue", RunId::parse)? {
        return carry_on(id, args, cx, started);
    }
    cx.env = with_agents_dir(&cx.env, args.path("agents-dir"));
    let begun = begun(cx)?;
    let typed = args.text("prompt");
    if typed.is_some_and(|prompt| prompt.trim().is_empty()) {
        return Err(Error::empty("--prompt"));
    }
    let conversation = args.parsed("conversation", ConversationName::parse)?;
    let named = agent_name(args)?;
    let needs_prompt = named.is_none() && typed.is_none();
    if needs_prompt && (args.has("no-stdin") || stdin::is_terminal()) {
        return Err(nothing_to_do());
    }
    let mut prompt = typed.map(str::to_owned);
    let Loaded { global, mut prepared, timeout, deadline } = load(args, named, &mut prompt, None, cx)?;
    let Context { env, stdout, reporter, .. } = cx;
    let typed = prompt.as_deref();
    let scope = Scope::of_run(env, deadline, *reporter);
    if args.has("code") && prepared.schema.is_some() {
        return Err(Error::usage("option \"--code\" does not go together with the agent's schema"));
    }
    let (files, piped) = input(args, &prepared, scope)?;
    if needs_prompt && piped.is_none() && !args.has("skip-empty") {
        return Err(nothing_to_do());
    }
    let is_attached = args.texts("attach").contains(&"-");
    if args.has("skip-empty") && !is_attached && piped.is_none() && !stdin::is_terminal() {
        reporter.verbose("Nothing was piped in, and nothing is asked.");
        return Ok(());
    }
    if reporter.is_verbose() {
        describe(&prepared, piped.is_some(), files.len(), timeout, reporter);
    }
    // Before the log is read: the run that has the conversation now will add to both.
    let open = |name| NamedConversation::open(&prepared.name, name, args.has("dry-run"), scope);
    let conversation = conversation.map(open).transpose()?;
    let log = AgentLog::load(&prepared.name, &prepared.agent.memory, scope);
    let message = prompt::user_message(typed, piped.as_deref());
    let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
    let turn = match files {
        files if files.is_empty() => ChatTurn::User(message.clone()),
        files => ChatTurn::Attached(message.clone(), files),
    };
    let mut request = prepared.request(&log, turn);
    if args.has("dry-run") {
        prepared.warn_of_missing_programs(scope);
        let (conversation, piped) = (conversation.as_ref(), piped.as_deref());
        let preview = Preview { request: &request, log: &log, conversation, prompt: typed, piped, timeout };
        return dry_run(&prepared, preview, stdout);
    }
    prepared.start_servers(scope)?;
    log.weigh(request.system.len() + message.len(), reporter);
    if let Some(conversation) = &conversation {
        request.turns.splice(0..0, conversation.turns());
        request.repeats = Repeats::Everything;
    }
    let start = RunStart {
        agent: prepared.name.to_string(),
        agents_dir: agents_dir(env)?,
        model: prepared.model.to_string(),
        api: prepared.api(),
        workdir: prepared.workdir.clone(),
        conversation: args.text("conversation").map(str::to_owned),
        prompt: typed.map(str::to_owned),
        message,
        attached: names,
        max_tokens: args.number("max-tokens-total"),
        schema: prepared.schema.as_ref().map(|schema| schema.value().clone()),
    };
    let start = Arc::new(start);
    let turns = TurnFile::new(RunId::parse(&begun.id)?, Arc::clone(&start), env, *reporter);
    let task = Task { args, scope, started, prepared, log, conversation, start };
    task.recorded(&global, turns, 0, begun, request, stdout)
}

/// The attached files, and the text that is piped in.
fn input(args: &Args, prepared: &PreparedAgent, scope: Scope) -> Result<(Vec<Attachment>, Option<String>)> {
    let Scope { env, deadline, reporter, .. } = scope;
    let attached = args.texts("attach");
    let from_stdin = attached.contains(&"-");
    if from_stdin && args.has("no-stdin") {
        return Err(Error::usage("\"--attach -\" and \"--no-stdin\" do not go together"));
    }
    let read = || match args.has("no-stdin") {
        true => Ok(None),
        false => stdin::read_bytes(&piped_in(deadline), &reporter),
    };
    let mut bytes = if from_stdin { read()? } else { None };
    let files = attachments::read(&attached, &mut bytes, env)?;
    prepared.check_files(&files)?;
    // A fault of the files is told before anything is waited for.
    bytes = if from_stdin { None } else { read()? };
    if let Some(kind) = bytes.as_deref().and_then(attachments::media) {
        return Err(
            Error::usage(format!("what is piped in is no text but {kind}")).hint("attach it with --attach -")
        );
    }
    Ok((files, bytes.and_then(|bytes| stdin::text_of(bytes, &reporter))))
}

/// Carries on a run whose turns are on disk. Its prompt, files and answer's schema are those with which it began; its tools,
/// sub-agents and limits are those of the agent's file as it is now.
fn carry_on(id: RunId, args: &Args, cx: &mut Context, started: Instant) -> Result<()> {
    if let Some(word) = args.words().first() {
        return Err(Error::unexpected(word).hint("--continue needs no agent"));
    }
    let (turns, continued) = TurnFile::reopen(id.clone(), &cx.env, cx.reporter)?;
    let Continued { start, mut request, model: newest, is_mixed, used } = continued;
    cx.env = with_agents_dir(&cx.env, args.path("agents-dir").or(start.agents_dir.as_deref()));
    let begun = Run { parent: Some(id.to_string()), ..begun(cx)? };
    let name = Some(AgentName::parse(&start.agent)?).filter(|name| name.as_str() != agent::DEFAULT);
    let earlier = Some((&*start, newest.as_str()));
    let Loaded { global, mut prepared, timeout, deadline } = load(args, name, &mut None, earlier, cx)?;
    let Context { env, stdout, reporter, .. } = cx;
    let scope = Scope::of_run(env, deadline, *reporter);
    if prepared.api() != start.api {
        return Err(Error::usage(format!(
            "the model \"{}\" cannot read the turns of \"{}\": their services have different APIs",
            prepared.model, start.model
        ))
        .hint("use a model of the same API"));
    }
    let is_other = newest.split('/').next() != Some(&prepared.model.provider);
    if prepared.api() == Some(Api::OpenAi) && (is_mixed || is_other) {
        turns.make_portable(&mut request);
    }
    prepared.schema = start.schema.clone().map(Schema::new).transpose()?;
    request.model.clone_from(&prepared.model.name);
    request.schema.clone_from(&prepared.schema);
    if reporter.is_verbose() {
        describe(&prepared, false, start.attached.len(), timeout, reporter);
    }
    let open =
        |name: &str| NamedConversation::open(&prepared.name, ConversationName::parse(name)?, false, scope);
    let conversation = start.conversation.as_deref().map(open).transpose()?;
    prepared.start_servers(scope)?;
    let log = AgentLog::load(&prepared.name, &prepared.agent.memory, scope);
    let task = Task { args, scope, started, prepared, log, conversation, start };
    task.recorded(&global, turns, used, begun, request, stdout)
}

/// A run whose prompt is complete.
struct Task<'a> {
    args: &'a Args,
    scope: Scope<'a>,
    started: Instant,
    prepared: PreparedAgent,
    log: AgentLog,
    conversation: Option<NamedConversation>,
    start: Arc<RunStart>,
}

impl Task<'_> {
    /// The run, and its line in the ledger. `used` are the tokens that it took before it was continued.
    fn recorded(
        &self,
        global: &Global,
        turns: TurnFile,
        used: u64,
        begun: Run,
        request: Request,
        stdout: &mut Stdout,
    ) -> Result<()> {
        let Task { args, scope: Scope { env, reporter, .. }, prepared, start, .. } = self;
        let typed = args.number("max-tokens-total");
        let max_tokens = typed.or(start.max_tokens).or(prepared.max_tokens_total(global));
        let budget = RunBudget::new(global.max_calls(), max_tokens);
        // A new limit is for what comes now.
        budget.count_on(used, typed.is_none());
        let run = RunContext::new(global, &prepared.agent, budget, Providers::default(), env)?;
        let run = RunContext { stream: args.has("stream"), turns: Some(turns), ..run };
        let begun = begun.of(&prepared.name, &prepared.model);
        let recorder = Recorder::begin(&run.budget.tally, begun, global, env, CLEAN);
        let result = self.carry_out(&run, request, stdout);
        recorder.end(&result, reporter);
        result
    }

    /// Asks, prints the answer, and keeps it.
    fn carry_out(&self, run: &RunContext, request: Request, stdout: &mut Stdout) -> Result<()> {
        let Task { args, scope, prepared, .. } = self;
        let reporter = &scope.reporter;
        // JSON, and an answer that must match a schema, are printed only when they are whole.
        let is_live = args.has("stream") && !args.has("json") && prepared.schema.is_none();
        // The line of progress would wipe the text beside it.
        let is_silent = !reporter.is_verbose() && !is_live;
        let progress = Progress::start(is_silent, format!("{}: {}", prepared.name, prepared.model));
        let mut stats = RunStats::default();
        let mut live = Live { stdout, ended: Ok(()), ends_with_newline: true };
        let mut on_text = |piece: &str| {
            if is_live {
                live.print(piece);
            }
        };
        let reply = converse(run, prepared, request, *scope, &mut on_text, &mut stats);
        drop(progress);
        let needs_newline = reply.is_err() || args.has("newline") || live.stdout.is_terminal();
        if !live.ends_with_newline && needs_newline {
            live.print("\n");
        }
        let Live { stdout, ended: streamed, .. } = live;
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => {
                stats.kept = run.turns.as_ref().and_then(TurnFile::kept).map(RunId::to_string);
                let error = match &run.turns {
                    Some(turns) => turns.explain(error),
                    None => error,
                };
                return self.keep(error, &stats, is_live, stdout);
            }
        };
        for warning in reply.warnings.iter().chain(&Reply::tries(stats.retries)) {
            reporter.warn(warning);
        }
        let lacks_code = args.has("code") && code_blocks(&reply.text).is_empty();
        let flaw = if lacks_code { Some("the answer has no code".to_owned()) } else { reply.flaw() };
        let is_strict = args.has("strict") || lacks_code;
        // What was printed is in it, whatever happens to this program next.
        let added = match &self.conversation {
            Some(conversation) if !is_strict || flaw.is_none() => {
                let RunStart { message, attached, .. } = &*self.start;
                conversation.append(message, attached.clone(), &reply, self.model(&stats), *scope)
            }
            _ => Ok(()),
        };
        let printed =
            if is_live && reply.was_streamed { streamed } else { self.print(&reply, &stats, stdout) };
        run.turns.iter().for_each(TurnFile::remove);
        report(&reply, &stats, self.started, reporter);
        match flaw {
            // Not logged: with --strict the task counts as failed.
            Some(flaw) if is_strict => return printed.and(Err(Error::refused(flaw))),
            Some(flaw) => reporter.warn(&flaw),
            None => {}
        }
        let RunStart { prompt, message, attached, .. } = &*self.start;
        let task = with_names(prompt.as_ref().unwrap_or(message), attached);
        self.log.append(&task, &reply.text, *scope);
        printed.and(added)
    }

    /// The model that was asked last.
    fn model<'a>(&'a self, stats: &'a RunStats) -> &'a Model {
        stats.fallback.as_ref().unwrap_or(&self.prepared.model)
    }

    /// What a run that failed has said: it was paid for. Within a spent budget it is the output, otherwise stderr has it.
    fn keep(&self, error: Error, stats: &RunStats, is_live: bool, stdout: &mut Stdout) -> Result<()> {
        let text = stats.before_failure(is_live);
        let (is_budget, reason) = match error.kind() {
            ErrorKind::Budget => (true, "max_tokens_total"),
            ErrorKind::Limit => (true, "limit"),
            _ => (false, "error"),
        };
        let reply = Reply::new(text, StopReason::Cut, reason, &self.model(stats).name);
        if is_budget {
            return self.print(&reply, stats, stdout).and(Err(error));
        }
        if self.args.has("json") {
            let run = serde_json::to_value(Envelope::of(self, &reply, stats)).unwrap_or_default();
            return Err(error.with_run(run));
        }
        reply.text.lines().for_each(line);
        Err(error)
    }

    /// A pipe gets the answer as it came. On a terminal, the shell's prompt must start on a new line.
    fn print(&self, reply: &Reply, stats: &RunStats, stdout: &mut Stdout) -> Result<()> {
        if self.args.has("json") {
            stdout.json(&Envelope::of(self, reply, stats))?;
            return stdout.flush();
        }
        let is_terminal = stdout.is_terminal();
        let mut text = Cow::Borrowed(reply.text.as_str());
        if self.args.has("code") {
            text = code_blocks(&text).join("\n").into();
            if text.is_empty() {
                reply.text.lines().for_each(line);
            }
        }
        stdout.text(&if is_terminal { disarmed(&text) } else { Cow::Borrowed(&*text) })?;
        let newline = self.args.has("newline") || is_terminal;
        if newline && !text.is_empty() && !text.ends_with('\n') {
            stdout.text("\n")?;
        }
        stdout.flush()
    }
}

/// Prints an answer as it comes.
struct Live<'a> {
    stdout: &'a mut Stdout,
    /// The first error; later text is not tried. The run goes on: it is paid for, and logged.
    ended: Result<()>,
    ends_with_newline: bool,
}

impl Live<'_> {
    fn print(&mut self, text: &str) {
        if self.ended.is_ok() && !text.is_empty() {
            // An answer must not command the terminal. What is hidden cannot be told from a single piece.
            let is_live = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
            let mut shown = Cow::Borrowed(text);
            if self.stdout.is_terminal() && text.contains(is_live) {
                let escaped = |c: char| if is_live(c) { c.escape_unicode().to_string() } else { c.into() };
                shown = text.chars().map(escaped).collect();
            }
            self.ended = self.stdout.text(&shown).and_then(|()| self.stdout.flush());
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
    /// The id with which a failed run can be continued.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    kept: Option<&'a str>,
}

impl<'a> Envelope<'a> {
    fn of(task: &'a Task, reply: &'a Reply, stats: &'a RunStats) -> Envelope<'a> {
        Envelope {
            model: &reply.model,
            content: &reply.text,
            input_tokens: stats.tokens.input,
            output_tokens: stats.tokens.output,
            stop_reason: &reply.stop_reason,
            duration_ms: millis(task.started.elapsed()),
            tool_calls: stats.tool_calls,
            agent: task.prepared.name.as_str(),
            provider: &task.model(stats).provider,
            sub_agents: &stats.sub_agents,
            retries: stats.retries,
            cache_read_tokens: stats.tokens.cache_read,
            cache_write_tokens: stats.tokens.cache_write,
            tool_details: &stats.tool_details,
            cost: stats.cost.amount(),
            kept: stats.kept.as_deref(),
        }
    }
}
