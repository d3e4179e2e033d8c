//! What the whole tree of agents of one run shares, and the place of each of them.

use crate::agent::record::Tally;
use crate::agent::turn_file::TurnFile;
use crate::base::cli::Reporter;
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::sync::lock;
use crate::config::agent::Agent;
use crate::config::global::{Endpoint, Global, HttpEndpoint};
use crate::config::toml_file::if_set;
use crate::provider::Provider;
use crate::provider::message::TokenUsage;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

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
    /// That of a run's own agent.
    pub fn of_run(env: &'a Env, deadline: Deadline, reporter: Reporter) -> Scope<'a> {
        Scope { env, depth: 0, deadline, reporter }
    }

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
    /// Where the main agent's turns are kept, if they are.
    pub turns: Option<TurnFile>,
}

impl<'a> RunContext<'a> {
    /// A run of `agent`.
    pub fn new(global: &'a Global, agent: &Agent, budget: RunBudget, env: &Env) -> Result<RunContext<'a>> {
        let (retries, max_depth) = (global.retries(env)?, agent.sub_agents_config.depth());
        let providers = Providers::default();
        Ok(RunContext { global, retries, max_depth, budget, providers, stream: false, turns: None })
    }
}

/// The services that have been used so far, by name, in one run or in several: a key is fetched once, and what a model
/// rejects is learned once.
#[derive(Default, Clone)]
pub struct Providers(Arc<Mutex<BTreeMap<String, Slot>>>);

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
///
/// A call is handed out before anything that needs it starts: to a tool, to a model's next turn, and to an agent for its
/// answer. So whoever has begun can finish, and what was paid for is used.
pub struct RunBudget {
    max_calls: u32,
    own: TokenLimit,
    /// A limit for several runs together.
    whole: Option<Arc<TokenLimit>>,
    slots: Mutex<CallSlots>,
    freed: Condvar,
    /// What the run has taken, for the ledger.
    pub tally: Arc<Tally>,
}

/// How many tokens may be taken, by one run or by several together.
pub struct TokenLimit {
    /// `None`: no limit.
    most: Option<u64>,
    /// How to raise it.
    hint: &'static str,
    taken: Mutex<TakenTokens>,
}

#[derive(Default)]
struct TakenTokens {
    used: u64,
    /// For which there was another limit.
    before: u64,
    /// What the running calls may take.
    reserved: u64,
    /// Whether a call was not made because of it.
    has_refused: bool,
}

impl TokenLimit {
    pub fn new(most: Option<u64>, hint: &'static str) -> TokenLimit {
        TokenLimit { most, hint, taken: Mutex::default() }
    }

    /// Reserves tokens for a call. A tool takes none.
    fn reserve(&self, tokens: u64) -> Result<()> {
        let mut taken = lock(&self.taken);
        let sum = taken.used.saturating_add(taken.reserved);
        let exceeds = |limit: &u64| tokens > 0 && sum.saturating_add(tokens) > *limit;
        if let Some(limit) = self.most.filter(exceeds) {
            taken.has_refused = true;
            let message = format!(
                "the token budget of {limit} is spent: {sum} are used, and the next call may take {tokens}"
            );
            return Err(Error::new(ErrorKind::Budget, message).hint(self.hint));
        }
        taken.reserved += tokens;
        Ok(())
    }

    fn settle(&self, reserved: u64, used: u64) {
        let mut taken = lock(&self.taken);
        taken.reserved -= reserved;
        taken.used = taken.used.saturating_add(used);
    }
}

struct CallSlots {
    /// Calls that nobody has been given.
    spare: u32,
    running: usize,
}

impl RunBudget {
    /// One call is set aside for the main agent's answer.
    pub fn new(max_calls: u32, max_tokens: Option<u64>) -> RunBudget {
        let slots = Mutex::new(CallSlots { spare: max_calls.saturating_sub(1), running: 0 });
        let own = TokenLimit::new(max_tokens, "raise --max-tokens-total, or max_tokens_total under [limits]");
        RunBudget { max_calls, own, whole: None, slots, freed: Condvar::new(), tally: Arc::default() }
    }

    /// The same, within a limit for several runs together, which are counted as one.
    pub fn within(self, whole: Arc<TokenLimit>, tally: Arc<Tally>) -> RunBudget {
        RunBudget { whole: Some(whole), tally, ..self }
    }

    /// Whether a call was not made because of this run's own token limit.
    pub fn has_refused(&self) -> bool {
        lock(&self.own.taken).has_refused
    }

    /// How many tokens were used so far.
    pub(super) fn used(&self) -> u64 {
        let taken = lock(&self.own.taken);
        taken.before.saturating_add(taken.used)
    }

    /// Counts tokens that were used before this run; `is_limited`: the limit is for them, too.
    pub fn count_on(&self, tokens: u64, is_limited: bool) {
        let mut taken = lock(&self.own.taken);
        let count = if is_limited { &mut taken.used } else { &mut taken.before };
        *count = count.saturating_add(tokens);
    }

    /// Hands out up to `wanted` calls, for tools or for the answers of sub-agents. Returns how many there were.
    pub(super) fn hand_out(&self, wanted: u32) -> u32 {
        let mut slots = lock(&self.slots);
        let given = wanted.min(slots.spare);
        slots.spare -= given;
        given
    }

    /// Takes back a call that was not made.
    pub(super) fn take_back(&self) {
        lock(&self.slots).spare += 1;
    }

    /// Hands out an agent's next call. `is_answer` if it cannot be followed by another: then it is the one that was set
    /// aside, as it is if no other is left; `has_closed` says whether that one is used. Returns whether none is left.
    fn next_call(&self, is_answer: bool, has_closed: &mut bool) -> Result<bool> {
        let mut slots = lock(&self.slots);
        let is_last = slots.spare == 0;
        if (is_answer || is_last) && !*has_closed && self.max_calls > 0 {
            *has_closed = true;
            return Ok(is_last);
        }
        slots.spare = slots.spare.checked_sub(1).ok_or_else(|| self.used_up())?;
        Ok(false)
    }

    /// Waits until a call may begin that may take so many tokens: those of its prompt, and of the longest answer. Returns
    /// whether the model must answer now. `is_answer` and `has_closed`: see [`RunBudget::next_call`].
    pub(super) fn begin_call(
        &self,
        deadline: Deadline,
        (input, output): (u64, u64),
        is_answer: bool,
        has_closed: &mut bool,
    ) -> Result<bool> {
        let is_last = self.next_call(is_answer, has_closed)?;
        self.begin(deadline, input.saturating_add(output))?;
        Ok(is_last)
    }

    /// Runs a tool when one of the slots is free. Its call was handed out.
    pub(super) fn run_tool<T>(&self, deadline: Deadline, call: impl FnOnce() -> T) -> Result<T> {
        self.begin(deadline, 0)?;
        let result = call();
        self.end((0, 0), TokenUsage::default());
        Ok(result)
    }

    /// Takes a slot for a call that may take so many tokens. The call is given back if there is none.
    fn begin(&self, deadline: Deadline, tokens: u64) -> Result<()> {
        self.slot(deadline, tokens).inspect_err(|_| self.take_back())
    }

    /// A call has ended.
    pub(super) fn end(&self, (input, output): (u64, u64), used: TokenUsage) {
        let (reserved, used) = (input.saturating_add(output), used.input.saturating_add(used.output));
        let limits = std::iter::once(&self.own).chain(self.whole.as_deref());
        limits.for_each(|limit| limit.settle(reserved, used));
        lock(&self.slots).running -= 1;
        // All: one that is woken may not take the slot.
        self.freed.notify_all();
    }

    /// Waits until fewer than [`MOST_AT_ONCE`] calls are running.
    fn slot(&self, deadline: Deadline, tokens: u64) -> Result<()> {
        let mut slots = lock(&self.slots);
        while slots.running >= MOST_AT_ONCE {
            if deadline.passed() {
                return Err(Error::api("timeout: too many calls were running until the deadline"));
            }
            let woken = self.freed.wait_timeout(slots, deadline.remaining());
            slots = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.own.reserve(tokens)?;
        if let Some(whole) = &self.whole {
            whole.reserve(tokens).inspect_err(|_| self.own.settle(tokens, 0))?;
        }
        slots.running += 1;
        Ok(())
    }

    pub(super) fn used_up(&self) -> Error {
        Error::refused(format!("the run has used its limit of {} model calls", self.max_calls))
            .hint("raise max_calls under [limits] in config.toml")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    const EVER: u64 = crate::base::deadline::LONGEST_SECONDS;

    /// A call that takes as much as its prompt has. Returns whether it is the last one.
    fn spend(budget: &RunBudget, size: (u64, u64), is_answer: bool, has_closed: &mut bool) -> Result<bool> {
        let is_last = budget.begin_call(Deadline::after_seconds(EVER), size, is_answer, has_closed)?;
        std::thread::yield_now();
        budget.end(size, TokenUsage { input: size.0, ..TokenUsage::default() });
        Ok(is_last)
    }

    /// An agent as the budget sees it.
    #[derive(Default)]
    struct Caller {
        has_closed: bool,
        has_answered: bool,
    }

    /// Whatever happens in whichever order, no more calls are made than there are, and every agent that has begun gets
    /// to answer.
    #[test]
    fn every_agent_that_has_begun_can_answer() {
        for seed in 0..2000_u64 {
            let max_calls = (seed % 40 + 1) as u32;
            let budget = RunBudget::new(max_calls, None);
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut callers = vec![Caller::default()];
            let mut made = 0;
            let mut ask = |caller: &mut Caller, is_answer: bool| {
                let is_last = is_answer | spend(&budget, (1, 1), is_answer, &mut caller.has_closed).unwrap();
                made += 1;
                caller.has_answered = is_last;
                if is_last && !caller.has_closed {
                    budget.take_back();
                }
            };
            let mut tools = 0;
            for _ in 0..100 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let at = (random >> 8) as usize % callers.len();
                match (callers[at].has_answered, random % 4) {
                    (true, _) => {}
                    (_, 0) => ask(&mut callers[at], false),
                    (_, 1) => ask(&mut callers[at], true),
                    (_, 2) => tools += budget.hand_out(random as u32 % 9),
                    _ => {
                        let begun = budget.hand_out(random as u32 % 3);
                        callers.extend((0..begun).map(|_| Caller::default()));
                    }
                }
            }
            callers.iter_mut().filter(|caller| !caller.has_answered).for_each(|caller| ask(caller, true));
            assert!(made + tools <= max_calls, "seed {seed}: {made} + {tools} of {max_calls}");
            assert_eq!(made + tools + budget.hand_out(u32::MAX), max_calls, "seed {seed}");
        }
    }

    #[test]
    fn a_limit_for_several_runs_stops_each_of_them() {
        let whole = Arc::new(TokenLimit::new(Some(30), "raise --budget"));
        let make = |own| RunBudget::new(9, own).within(Arc::clone(&whole), Arc::default());
        let spend = |budget: &RunBudget, size| spend(budget, (size, 0), false, &mut false);
        let (one, other, small) = (make(None), make(None), make(Some(4)));
        assert!(spend(&one, 10).is_ok() && spend(&other, 10).is_ok());
        let error = spend(&small, 5).unwrap_err();
        assert!(error.line().contains("the token budget of 4 is spent") && small.has_refused(), "{error}");
        let error = spend(&one, 11).unwrap_err();
        assert!(error.line().contains("of 30 is spent: 20 are used") && error.line().contains("--budget"));
        assert!(!one.has_refused() && spend(&one, 10).is_ok() && spend(&other, 1).is_err());
    }

    /// Fifty wait for eight slots. A token budget turns some away after they were woken; none may be left waiting.
    #[test]
    fn nobody_waits_once_a_slot_is_free() {
        for max_tokens in [Some(0), Some(7), Some(30), Some(49), None] {
            let budget = RunBudget::new(51, max_tokens);
            let (made, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let start = std::sync::Barrier::new(50);
            std::thread::scope(|scope| {
                for _ in 0..50 {
                    scope.spawn(|| {
                        start.wait();
                        let spent = spend(&budget, (1, 0), false, &mut false);
                        let counter = if spent.is_ok() { &made } else { &refused };
                        counter.fetch_add(1, SeqCst);
                    });
                }
            });
            let (made, refused) = (made.into_inner(), refused.into_inner());
            let most = max_tokens.map_or(50, |most| most as usize);
            assert_eq!((made, refused), (most, 50 - most), "{max_tokens:?}");
        }
    }
}
