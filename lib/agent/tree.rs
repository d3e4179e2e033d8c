//! What the whole tree of agents of one run shares, and the place of each of them.

use crate::base::cli::Reporter;
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::sync::lock;
use crate::config::agent::if_set;
use crate::config::global::{Endpoint, Global, HttpEndpoint};
use crate::provider::Provider;
use crate::provider::error::CallError;
use crate::provider::message::Reply;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How long a token is, where nobody counts.
pub(super) const BYTES_PER_TOKEN: u64 = 4;
/// Simultaneous model calls in the whole tree of agents.
pub(super) const MOST_AT_ONCE: usize = 8;

/// Where in the tree an agent runs, and until when.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    pub env: &'a Env,
    /// 0 for the main agent, one more for each level below it.
    pub depth: u32,
    pub deadline: Deadline,
    pub reporter: Reporter,
}

impl<'a> Scope<'a> {
    /// The same, for so many seconds at most; 0: as long.
    pub(super) fn within(self, seconds: u64) -> Scope<'a> {
        let limit = if_set(seconds).map(Deadline::after_seconds);
        Scope { deadline: limit.map_or(self.deadline, |limit| self.deadline.earlier(limit)), ..self }
    }
}

/// What the agents of a run share.
pub struct RunContext<'a> {
    pub global: &'a Global,
    /// Retries for a failed call.
    pub retries: u32,
    /// How deep agents may call agents; 0: not at all.
    pub max_depth: u32,
    pub budget: RunBudget,
    pub providers: Providers,
    /// Whether replies are asked for in pieces, whatever the provider.
    pub stream: bool,
}

/// The services that the tree has used so far, by name: a key is fetched once, and what a model rejects is learned
/// once.
#[derive(Default)]
pub struct Providers(Mutex<BTreeMap<String, Slot>>);

/// Has its own lock, so that one service's slow key command does not block the others.
type Slot = Arc<Mutex<Option<Arc<Provider>>>>;

impl Providers {
    /// The service of `endpoint`. A command runs in the directory `workdir` of its agent.
    pub(super) fn of(&self, endpoint: &Endpoint, workdir: &Path, scope: Scope) -> Result<Arc<Provider>> {
        let Scope { env, deadline, reporter, .. } = scope;
        let is_heard = reporter.is_verbose();
        let connect = || Provider::connect(endpoint, workdir, is_heard, env, deadline).map(Arc::new);
        let Endpoint::Http(HttpEndpoint { provider, .. }) = endpoint else { return connect() };
        let slot = Arc::clone(lock(&self.0).entry(provider.clone()).or_default());
        let mut slot = lock(&slot);
        match &*slot {
            Some(known) => Ok(Arc::clone(known)),
            None => Ok(Arc::clone(slot.insert(connect()?))),
        }
    }
}

/// How many calls the tree may still make, how many at once, and how many tokens they may take.
pub struct RunBudget {
    max_calls: u32,
    /// `None`: no limit.
    max_tokens: Option<u64>,
    state: Mutex<Spent>,
    freed: Condvar,
}

#[derive(Default)]
struct Spent {
    calls: u32,
    running: usize,
    tokens: u64,
    /// What the running calls may take.
    reserved: u64,
}

impl RunBudget {
    pub fn new(max_calls: u32, max_tokens: Option<u64>) -> RunBudget {
        RunBudget { max_calls, max_tokens, state: Mutex::default(), freed: Condvar::new() }
    }

    /// Makes `call` when one of the slots is free, if the budget allows it. `call` is told whether it is the last one.
    ///
    /// The last call is kept for the main agent's answer: what its sub-agents answered has been paid for. `size` is
    /// the number of tokens that the call may take: those of its prompt, and of the longest answer.
    pub(super) fn spend(
        &self,
        scope: Scope,
        size: (u64, u64),
        call: impl FnOnce(bool) -> Result<Reply, CallError>,
    ) -> Result<Result<Reply, CallError>> {
        let whole = size.0.saturating_add(size.1);
        let is_last = self.begin(scope.deadline, scope.depth.min(1), whole)?;
        let reply = call(is_last);
        let used = reply.as_ref().map_or(0, |reply| {
            match reply.tokens.input.saturating_add(reply.tokens.output) {
                // A command counts nothing.
                0 => size.0 + reply.text.len() as u64 / BYTES_PER_TOKEN,
                counted => counted,
            }
        });
        self.end(whole, used);
        Ok(reply)
    }

    /// Runs a tool, which counts as a call, but never as the last one.
    pub(super) fn spend_on_tool<T>(&self, deadline: Deadline, call: impl FnOnce() -> T) -> Result<T> {
        self.begin(deadline, 1, 0)?;
        let result = call();
        self.end(0, 0);
        Ok(result)
    }

    /// Takes a slot for a call that may take so many tokens, if that leaves `kept` calls. Returns whether it is the last one.
    fn begin(&self, deadline: Deadline, kept: u32, tokens: u64) -> Result<bool> {
        let mut spent = self.slot(deadline)?;
        if spent.calls >= self.max_calls.saturating_sub(kept) {
            return Err(self.used_up());
        }
        let taken = spent.tokens.saturating_add(spent.reserved);
        let exceeds = |limit: &u64| tokens > 0 && taken.saturating_add(tokens) > *limit;
        if let Some(limit) = self.max_tokens.filter(exceeds) {
            let message = format!(
                "the token budget of {limit} is spent: {taken} are used, and the next call may take {tokens}"
            );
            return Err(Error::new(ErrorKind::Budget, message)
                .hint("raise --max-tokens-total, or max_tokens_total under [limits]"));
        }
        spent.calls += 1;
        spent.running += 1;
        spent.reserved += tokens;
        Ok(spent.calls == self.max_calls)
    }

    fn end(&self, reserved: u64, used: u64) {
        let mut spent = lock(&self.state);
        spent.running -= 1;
        spent.reserved -= reserved;
        spent.tokens = spent.tokens.saturating_add(used);
        drop(spent);
        self.freed.notify_one();
    }

    /// Waits until fewer than [`MOST_AT_ONCE`] calls are running.
    fn slot(&self, deadline: Deadline) -> Result<MutexGuard<'_, Spent>> {
        let mut spent = lock(&self.state);
        while spent.running >= MOST_AT_ONCE {
            if deadline.passed() {
                return Err(Error::api("timeout: too many calls were running until the deadline"));
            }
            spent = self
                .freed
                .wait_timeout(spent, deadline.remaining())
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        Ok(spent)
    }

    pub(super) fn used_up(&self) -> Error {
        Error::refused(format!("the run has used its limit of {} model calls", self.max_calls))
            .hint("raise max_calls under [limits] in config.toml")
    }
}
