//! What a run takes, counted while it runs, and its line in the ledger.

use crate::agent::stats::{Cost, SubAgentRun, ToolDetail, millis};
use crate::base::cli::{Context, Reporter};
use crate::base::env::Env;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::secret::{Secret, hidden};
use crate::base::signal;
use crate::base::sync::lock;
use crate::base::text::{cut, one_line};
use crate::config::global::{CallLimits, Global};
use crate::config::model::Model;
use crate::config::tool::CALL_AGENT;
use crate::provider::command::RUN;
use crate::provider::message::TokenUsage;
use crate::store::runs::{self, Run, RunError, RunId, SubRun, ToolRun};
use crate::store::spent::{self, Amount};
use jiff::Timestamp;
use serde_json::Value;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// How many tools and sub-agents a line has, at most.
const MOST: usize = 100;
/// How many arguments of a tool, and how many characters of each, and of an error.
const MOST_ARGUMENTS: usize = 10;
const CHARS: usize = 200;
/// How long the line waits for the ledger's lock: usually, as a trim of a long ledger takes seconds, and when a signal ends
/// the run.
const WAIT: Duration = Duration::from_secs(10);
const LEAST_WAIT: Duration = Duration::from_millis(100);

/// A run of this program, with an id. What the program starts from here on finds the id in its environment.
pub fn begun(cx: &mut Context) -> Result<Run> {
    let id = RunId::new(&cx.env)?;
    let parent = cx.env.text(RUN).and_then(|id| RunId::parse(id).ok()).map(|id| id.to_string());
    cx.env = cx.env.with(RUN, id.as_str().as_ref());
    // To the second, as the id has it.
    let time = Timestamp::from_second(cx.env.now().as_second()).unwrap_or_default();
    Ok(Run { id: id.to_string(), time, program: cx.program.to_owned(), parent, ..Run::default() })
}

/// Removes secrets from a text.
pub type Clean = fn(&str) -> String;

/// What a run has taken so far, with all its agents. A signal reads it at any time.
#[derive(Default)]
pub struct Tally {
    taken: Mutex<(Run, Cost)>,
    /// How many calls go on.
    running: AtomicU32,
    /// Without it, nobody writes the ledger, and tools are not kept.
    clean: OnceLock<Clean>,
}

impl Tally {
    pub(super) fn call_begins(&self) {
        self.running.fetch_add(1, SeqCst);
        lock(&self.taken).0.calls += 1;
    }

    /// Another model than the agent's own takes over.
    pub(super) fn answers(&self, model: &Model) {
        lock(&self.taken).0.model = model.to_string();
    }

    pub(super) fn call_ended(&self, tokens: TokenUsage, more: Cost, retries: u32) {
        self.running.fetch_sub(1, SeqCst);
        let (run, cost) = &mut *lock(&self.taken);
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut run.input_tokens, tokens.input);
        add(&mut run.output_tokens, tokens.output);
        add(&mut run.cache_read_tokens, tokens.cache_read);
        add(&mut run.cache_write_tokens, tokens.cache_write);
        add(&mut run.retries, u64::from(retries));
        *cost += more;
    }

    pub(super) fn tool_ended(&self, tool: &ToolDetail) {
        let is_wanted = tool.name != CALL_AGENT && lock(&self.taken).0.tools.len() < MOST;
        let Some(clean) = self.clean.get().filter(|_| is_wanted) else { return };
        let arguments = without_secrets(&tool.arguments, *clean);
        let name = one_line(&tool.name, CHARS);
        let (exit, duration_ms) = (tool.exit, tool.duration_ms);
        lock(&self.taken).0.tools.push(ToolRun { name, arguments, exit, duration_ms });
    }

    /// For the agents that the run's own agent calls.
    pub(super) fn sub_agent_ended(&self, done: &SubAgentRun) {
        let (run, _) = &mut *lock(&self.taken);
        if run.sub_agents.len() < MOST {
            let SubAgentRun { input_tokens, output_tokens, cost, .. } = *done;
            run.sub_agents.push(SubRun {
                name: one_line(&done.name, CHARS),
                input_tokens,
                output_tokens,
                cost,
            });
        }
    }
}

/// Names matter: `password` before a value says what it is. So the arguments are searched as a whole first.
fn without_secrets(arguments: &Value, clean: Clean) -> Value {
    let text = clean(&hidden(&arguments.to_string()));
    let cut_value = |value: &Value| match value {
        Value::String(text) => Value::String(cut(&clean(&hidden(text)), CHARS).into_owned()),
        Value::Array(_) | Value::Object(_) => Value::String(cut(&value.to_string(), CHARS).into_owned()),
        plain => plain.clone(),
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(all)) => {
            let some = all.iter().take(MOST_ARGUMENTS);
            Value::Object(
                some.map(|(name, value)| (cut(name, CHARS).into_owned(), cut_value(value))).collect(),
            )
        }
        Ok(Value::Null) => Value::Null,
        _ => Value::String(cut(&text, CHARS).into_owned()),
    }
}

/// Writes the line of one run, once: when the run ends, or when a signal ends the program.
pub struct Recorder {
    tally: Arc<Tally>,
    env: Env,
    limits: CallLimits,
    has_ledger: bool,
    /// Whether its calls were not charged to the limits before they were made.
    is_charged_late: bool,
    started: Instant,
    is_written: Mutex<bool>,
}

impl Recorder {
    /// `run` says what it is.
    pub fn begin(tally: &Arc<Tally>, run: Run, global: &Global, env: &Env, clean: Clean) -> Arc<Recorder> {
        let keys = env.names("").into_iter().filter(|name| name.as_encoded_bytes().ends_with(b"_API_KEY"));
        keys.filter_map(|name| env.text(name.to_str()?)).for_each(|key| Secret::new(key).remember());
        let limits = global.limits;
        let is_charged_late = !limits.has_periods() || run.program == "axe-gc";
        // A second one of the same tally keeps the first.
        let _ = tally.clean.set(clean);
        lock(&tally.taken).0 = run;
        let recorder = Arc::new(Recorder {
            tally: Arc::clone(tally),
            env: env.clone(),
            limits,
            // Without a home there is no place for it.
            has_ledger: global.ledger.enabled && env.data_dir().is_ok(),
            is_charged_late,
            started: Instant::now(),
            is_written: Mutex::default(),
        });
        let at_signal = Arc::clone(&recorder);
        signal::before_end(move |ending| {
            let error =
                RunError { kind: "signal".to_owned(), message: format!("ended by {}", ending.signal) };
            // Nobody is there to be warned.
            let _ = at_signal.write(ending.exit_code, Some(error), LEAST_WAIT);
        });
        recorder
    }

    /// Records how the run ended. One that failed in its configuration before the first call is not recorded.
    pub fn end<T>(&self, result: &Result<T>, reporter: &Reporter) {
        let error = result.as_ref().err();
        if error.is_some_and(|error| error.kind() == ErrorKind::Config)
            && lock(&self.tally.taken).0.calls == 0
        {
            return;
        }
        let exit = error.map_or(0, |error| i32::from(error.exit_code()));
        if let Err(error) = self.write(exit, error.map(|error| self.short(error)), WAIT) {
            reporter.warn(&format!("the run is not recorded: {}", error.line()));
        }
    }

    fn write(&self, exit: i32, error: Option<RunError>, wait: Duration) -> Result<()> {
        // Whoever comes second waits until it is written.
        let mut is_written = lock(&self.is_written);
        if std::mem::replace(&mut *is_written, true) {
            return Ok(());
        }
        let (run, cost) = lock(&self.tally.taken).clone();
        // Nobody knows what a call costs that a signal cuts short.
        let cost = cost.amount().filter(|_| self.tally.running.load(SeqCst) == 0);
        let tokens = run.input_tokens.saturating_add(run.output_tokens);
        let mut done = Ok(());
        if self.is_charged_late {
            let used = Amount { tokens, cost: cost.unwrap_or_default() };
            done = spent::add(&self.env, &self.limits, used);
        }
        if self.has_ledger {
            let duration_ms = millis(self.started.elapsed());
            done = done.and(runs::append(&self.env, &Run { cost, duration_ms, exit, error, ..run }, wait));
        }
        done
    }

    /// What the faults of an answer quote is part of it.
    fn short(&self, error: &Error) -> RunError {
        let message = match error.faults() {
            [] => error.message(),
            _ => error.message().split(": ").next().unwrap_or_default(),
        };
        let clean =
            self.tally.clean.get().map_or_else(|| message.to_owned(), |clean| clean(&hidden(message)));
        let kind = serde_json::to_value(error.kind()).ok();
        let kind = kind.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        RunError { kind, message: one_line(&clean, CHARS) }
    }
}
