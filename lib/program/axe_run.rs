//! `axe-run`: run an agent. Prompt in, answer out, one entry in its log.
//!
//! Errors in files are found before waiting for stdin, and all errors of the user before a call is paid for. The
//! answer is printed first, and the entry is written after it, even if printing failed.

mod answer;
mod load;
mod shown;

use crate::agent::log::AgentLog;
use crate::agent::named::NamedConversation;
use crate::agent::prepare::PreparedAgent;
use crate::agent::record::{Clean, begun};
use crate::agent::tree::Scope;
use crate::agent::turn_file::{Continued, RunStart, TurnFile};
use crate::base::cli::{
    self, About, Args, Completes, Context, Flag, FlagRule, Reporter, Words, count, flag, path, seconds, value,
};
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::json_schema::Schema;
use crate::base::stdin;
use crate::config::agent::{self, AgentName, agents_dir, with_agents_dir};
use crate::config::global::Api;
use crate::memory::redact::Redactor;
use crate::program::axe_run::answer::AgentRun;
use crate::program::axe_run::shown::{DryRun, describe, dry_run};
use crate::prompt::{self, attachments};
use crate::provider::message::{Attachment, ChatTurn, Repeats};
use crate::store::conversation::ConversationName;
use crate::store::run_id::RunId;
use crate::store::runs::Run;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

pub use crate::program::axe_run::load::{Loaded, given_prompt, load};

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
        FlagRule::Apart("--skip-empty", &["--no-stdin"], ""),
        FlagRule::Apart("--continue", CONTINUED_AS_IT_WAS, "the run goes on as it began"),
        FlagRule::Apart("--code", &["--stream", "--json", "--schema"], ""),
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

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    let started = Instant::now();
    cx.reporter = Reporter::keeping(args.has("verbose"), args.has("json") && !args.has("verbose"));
    if let Some(id) = args.parsed("continue", RunId::parse)? {
        return carry_on(id, args, cx, started);
    }
    cx.env = with_agents_dir(&cx.env, args.path("agents-dir"));
    let begun = begun(cx)?;
    let mut prompt = given_prompt(args)?;
    let conversation = args.parsed("conversation", ConversationName::parse)?;
    let named = agent_name(args)?;
    let needs_prompt = named.is_none() && prompt.is_none();
    if needs_prompt && (args.has("no-stdin") || stdin::is_terminal()) {
        return Err(nothing_to_do());
    }
    let mut loaded = load(args, named, &mut prompt, None, cx)?;
    let Context { env, stdout, reporter, .. } = cx;
    let scope = Scope::of_run(env, loaded.deadline, *reporter);
    let prepared = &mut loaded.prepared;
    if args.has("code") && prepared.schema.is_some() {
        return Err(Error::usage("option \"--code\" does not go together with the agent's schema"));
    }
    let (files, piped) = input(args, prepared, scope)?;
    if needs_prompt && piped.is_none() && !args.has("skip-empty") {
        return Err(nothing_to_do());
    }
    let is_attached = args.texts("attach").contains(&"-");
    if args.has("skip-empty") && !is_attached && piped.is_none() && !stdin::is_terminal() {
        reporter.verbose("Nothing was piped in, and nothing is asked.");
        return Ok(());
    }
    describe(prepared, piped.is_some(), files.len(), loaded.timeout, reporter);
    // Before the log is read: the run that has the conversation now will add to both.
    let open = |name| NamedConversation::open(&prepared.name, name, args.has("dry-run"), scope);
    let conversation = conversation.map(open).transpose()?;
    let log = AgentLog::load(&prepared.name, &prepared.agent.memory, scope);
    let message = prompt::user_message(prompt.as_deref(), piped.as_deref());
    let attached = files.iter().map(|file| file.name.clone()).collect();
    let turn = match files.is_empty() {
        true => ChatTurn::User(message.clone()),
        false => ChatTurn::Attached(message.clone(), files),
    };
    let mut request = prepared.request(&log, turn);
    if args.has("dry-run") {
        prepared.warn_of_missing_programs(scope);
        let (conversation, request) = (conversation.as_ref(), &request);
        return dry_run(&DryRun { loaded: &loaded, request, log: &log, conversation, prompt, piped }, stdout);
    }
    prepared.start_servers(scope)?;
    log.weigh(request.system.len() + message.len(), reporter);
    if let Some(conversation) = &conversation {
        request.turns.splice(0..0, conversation.turns());
        request.repeats = Repeats::Everything;
    }
    let start = RunStart { prompt, message, attached, ..start_of(args, prepared, env)? };
    let start = Arc::new(start);
    let turns = TurnFile::new(RunId::parse(&begun.id)?, Arc::clone(&start), env, *reporter);
    AgentRun { args, scope, started, loaded, log, conversation, start }.run(turns, 0, begun, request, stdout)
}

/// What a run that is continued takes over, but for what it is asked.
fn start_of(args: &Args, prepared: &PreparedAgent, env: &Env) -> Result<RunStart> {
    Ok(RunStart {
        agent: prepared.name.to_string(),
        agents_dir: agents_dir(env)?,
        model: prepared.model.to_string(),
        api: prepared.api(),
        workdir: prepared.workdir.clone(),
        conversation: args.text("conversation").map(str::to_owned),
        max_tokens: args.number("max-tokens-total"),
        schema: prepared.schema.as_ref().map(|schema| schema.value().clone()),
        ..RunStart::default()
    })
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
    let mut loaded = load(args, name, &mut None, earlier, cx)?;
    let Context { env, stdout, reporter, .. } = cx;
    let scope = Scope::of_run(env, loaded.deadline, *reporter);
    let prepared = &mut loaded.prepared;
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
    describe(prepared, false, start.attached.len(), loaded.timeout, reporter);
    let open =
        |name: &str| NamedConversation::open(&prepared.name, ConversationName::parse(name)?, false, scope);
    let conversation = start.conversation.as_deref().map(open).transpose()?;
    prepared.start_servers(scope)?;
    let log = AgentLog::load(&prepared.name, &prepared.agent.memory, scope);
    let run = AgentRun { args, scope, started, loaded, log, conversation, start };
    run.run(turns, used, begun, request, stdout)
}
