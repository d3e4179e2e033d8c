//! A run whose prompt is complete: it is asked, and its answer is printed and kept.

use crate::agent::log::AgentLog;
use crate::agent::named::{NamedConversation, with_names};
use crate::agent::prepare::RunningAgent;
use crate::agent::record::Recorder;
use crate::agent::stats::{RunStats, SubAgentRun, ToolDetail, millis};
use crate::agent::tree::{RunBudget, RunContext, Scope};
use crate::agent::turn_file::{RunStart, TurnFile};
use crate::base::cli::{Args, Progress, Stdout};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::stderr::line;
use crate::base::text::disarmed;
use crate::base::text::fences::code_blocks;
use crate::config::model::Model;
use crate::program::axe_run::CLEAN;
use crate::program::axe_run::load::Loaded;
use crate::program::axe_run::shown::report;
use crate::provider::message::{Reply, Request, StopReason};
use crate::store::runs::{Run, RunId};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

pub struct AgentRun<'a> {
    pub args: &'a Args,
    pub scope: Scope<'a>,
    pub started: Instant,
    pub loaded: Loaded,
    pub log: AgentLog,
    pub conversation: Option<NamedConversation>,
    pub start: Arc<RunStart>,
}

impl AgentRun<'_> {
    /// The run, and its line in the ledger. `used` are the tokens that it took before it was continued.
    pub fn run(
        &self,
        turns: TurnFile,
        used: u64,
        begun: Run,
        request: Request,
        stdout: &mut Stdout,
    ) -> Result<()> {
        let AgentRun { args, scope: Scope { env, reporter, .. }, start, .. } = self;
        let Loaded { global, prepared, .. } = &self.loaded;
        let typed = args.number("max-tokens-total");
        let max_tokens = typed.or(start.max_tokens).or(prepared.max_tokens_total(global));
        let budget = RunBudget::new(global.max_calls(), max_tokens);
        // A new limit is for what comes now.
        budget.count_on(used, typed.is_none());
        let run = RunContext::new(global, &prepared.agent, budget, env)?;
        let run = RunContext { stream: args.has("stream"), turns: Some(turns), ..run };
        let begun = begun.of(&prepared.name, prepared.model());
        let recorder = Recorder::begin(&run.budget.tally, begun, global, env, CLEAN);
        let result = self.ask(&run, request, stdout);
        recorder.end(&result, reporter);
        result
    }

    /// Asks, prints the answer, and keeps it.
    fn ask(&self, run: &RunContext, request: Request, stdout: &mut Stdout) -> Result<()> {
        let AgentRun { args, scope, loaded: Loaded { prepared, .. }, .. } = self;
        let reporter = &scope.reporter;
        // JSON, and an answer that must match a schema, are printed only when they are whole.
        let is_live = args.has("stream") && !args.has("json") && prepared.schema.is_none();
        // The line of progress would wipe the text beside it.
        let is_silent = !reporter.is_verbose() && !is_live;
        let progress = Progress::start(is_silent, format!("{}: {}", prepared.name, prepared.model()));
        let mut stats = RunStats::default();
        let mut live = Live { stdout, ended: Ok(()), ends_with_newline: true };
        let mut on_text = |piece: &str| {
            if is_live {
                live.print(piece);
            }
        };
        let agent = RunningAgent { run, agent: prepared, scope: *scope };
        let reply = agent.converse(request, &mut on_text, &mut stats);
        drop(progress);
        let needs_newline = reply.is_err() || args.has("newline") || live.stdout.is_terminal();
        if !live.ends_with_newline && needs_newline {
            live.print("\n");
        }
        let Live { stdout, ended: streamed, .. } = live;
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => {
                let turns = run.turns.as_ref();
                stats.kept = turns.and_then(TurnFile::kept).map(RunId::to_string);
                let error = if let Some(turns) = turns { turns.explain(error) } else { error };
                return self.keep(error, &stats, is_live, stdout);
            }
        };
        for warning in reply.warnings.iter().chain(&Reply::tries(stats.retries)) {
            reporter.warn(warning);
        }
        let lacks_code = args.has("code") && code_blocks(&reply.text).is_empty();
        let flaw = if lacks_code { Some("the answer has no code".to_owned()) } else { reply.flaw() };
        let is_failed = flaw.is_some() && (args.has("strict") || lacks_code);
        let RunStart { prompt, message, attached, .. } = &*self.start;
        // What was printed is in it, whatever happens to this program next.
        let added = match &self.conversation {
            Some(conversation) if !is_failed => {
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
            Some(flaw) if is_failed => return printed.and(Err(Error::refused(flaw))),
            Some(flaw) => reporter.warn(&flaw),
            None => {}
        }
        let task = with_names(prompt.as_ref().unwrap_or(message), attached);
        self.log.append(&task, &reply.text, *scope);
        printed.and(added)
    }

    /// The model that was asked last.
    fn model<'a>(&'a self, stats: &'a RunStats) -> &'a Model {
        stats.fallback.as_ref().unwrap_or(self.loaded.prepared.model())
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
            let run = serde_json::to_value(self.envelope(&reply, stats)).unwrap_or_default();
            return Err(error.with_run(run));
        }
        reply.text.lines().for_each(line);
        Err(error)
    }

    /// A pipe gets the answer as it came. On a terminal, the shell's prompt must start on a new line.
    fn print(&self, reply: &Reply, stats: &RunStats, stdout: &mut Stdout) -> Result<()> {
        if self.args.has("json") {
            stdout.json(&self.envelope(reply, stats))?;
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

    fn envelope<'a>(&'a self, reply: &'a Reply, stats: &'a RunStats) -> Envelope<'a> {
        Envelope {
            model: &reply.model,
            content: &reply.text,
            input_tokens: stats.tokens.input,
            output_tokens: stats.tokens.output,
            stop_reason: &reply.stop_reason,
            duration_ms: millis(self.started.elapsed()),
            tool_calls: stats.tool_calls,
            agent: self.loaded.prepared.name.as_str(),
            provider: &self.model(stats).provider,
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
