//! One line: a run of the agent.

use crate::agent::conversation::{await_turn, converse};
use crate::agent::log::AgentLog;
use crate::agent::prepare::PreparedAgent;
use crate::agent::record::Tally;
use crate::agent::stats::RunStats;
use crate::agent::tree::{Providers, RunBudget, RunContext, Scope, TokenLimit};
use crate::base::cli::Reporter;
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, ErrorKind, Result};
use crate::config::global::Global;
use crate::program::axe_map::line::{Line, OutputLine};
use crate::prompt;
use crate::provider::message::{ChatTurn, Reply, Request};
use std::sync::Arc;

/// What all lines have in common.
pub(super) struct Task {
    pub(super) env: Env,
    pub(super) reporter: Reporter,
    pub(super) global: Global,
    pub(super) agent: PreparedAgent,
    /// Without entries.
    pub(super) log: AgentLog,
    pub(super) prompt: Option<String>,
    /// Seconds for a line.
    pub(super) timeout: u64,
    /// Tokens for a line, and for all.
    pub(super) max_tokens: Option<u64>,
    pub(super) budget: Arc<TokenLimit>,
    /// Of all lines: they are one run in the ledger.
    pub(super) tally: Arc<Tally>,
    pub(super) providers: Providers,
    pub(super) is_strict: bool,
}

/// What has become of a line.
pub(super) struct LineOutcome {
    /// `None`: it was not asked, because a budget is spent.
    pub(super) record: Option<OutputLine>,
    pub(super) error: Option<Error>,
    /// Whether no other line can be asked either.
    pub(super) is_last: bool,
    /// Whether the model was asked.
    pub(super) was_asked: bool,
    pub(super) stats: RunStats,
}

impl Task {
    /// Fetches the key. A fault of the configuration is found before any line is read.
    pub(super) fn connect(&self, scope: Scope) -> Result<()> {
        self.context()?;
        self.agent.connect(&self.providers, scope)
    }

    fn context(&self) -> Result<RunContext<'_>> {
        let budget = RunBudget::new(self.global.max_calls(), self.max_tokens)
            .within(Arc::clone(&self.budget), Arc::clone(&self.tally));
        RunContext::new(&self.global, &self.agent.agent, budget, self.providers.clone(), &self.env)
    }

    pub(super) fn request(&self, line: &Line) -> Request {
        let text = Some(line.text.as_str()).filter(|text| !text.trim().is_empty());
        let message = prompt::user_message(self.prompt.as_deref(), text);
        self.agent.request(&self.log, ChatTurn::User(message))
    }

    pub(super) fn ask(&self, line: Line) -> LineOutcome {
        let (mut stats, mut is_last, was_asked) = (RunStats::default(), false, !line.is_too_long);
        let (record, error) = match self.reply(&line, &mut stats, &mut is_last) {
            Ok(reply) => {
                let is_json = self.agent.schema.is_some();
                (Some(OutputLine::answer(line, &reply.text, is_json, reply.warnings, &stats)), None)
            }
            Err((error, said)) => {
                let took = stats.tokens.input + stats.tokens.output > 0 || !said.is_empty();
                ((!is_last || took).then(|| OutputLine::error(line, &error, said, &stats)), Some(error))
            }
        };
        LineOutcome { record, error, is_last, was_asked, stats }
    }

    /// The answer; or the error, and what was said before it. `is_last`: no other line can be asked either.
    fn reply(&self, line: &Line, stats: &mut RunStats, is_last: &mut bool) -> Result<Reply, (Error, String)> {
        if line.is_too_long {
            return Err((Line::too_long(), String::new()));
        }
        let scope = || Scope::of_run(&self.env, Deadline::after_seconds(self.timeout), self.reporter);
        let mut request = self.request(line);
        let mut is_own = false;
        let reply = self.context().and_then(|run| {
            // How long the lines before it take is not counted.
            await_turn(&run, &self.agent, &mut request, scope())?;
            let reply = converse(&run, &self.agent, request, scope(), &mut |_| {}, stats);
            is_own = run.budget.has_refused();
            reply
        });
        let mut reply = reply.map_err(|error| {
            // A budget of many lines that does not allow this one allows no other.
            *is_last = match error.kind() {
                ErrorKind::Budget => !is_own,
                kind => kind == ErrorKind::Limit,
            };
            (error, stats.before_failure(false))
        })?;
        match reply.flaw() {
            Some(flaw) if self.is_strict => Err((Error::refused(flaw), reply.text)),
            flaw => {
                reply.warnings.extend(flaw);
                Ok(reply)
            }
        }
    }
}
