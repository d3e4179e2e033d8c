//! One walk for both pipelines: consolidate (queue → notes) and defrag (notes → notes in order).
//!
//! A [`Pipeline`] says what its prompts show, how a reply is checked, and what a plan is. The walk is the same for both,
//! [`Pipeline::step`]: a function from a state and an event to the next state, which says what is to be done next. It
//! does no I/O. The [`runner`] saves each state, does what it wants done, and feeds the outcome back as the next
//! event. Running, resuming, `--dry-run`, `--prompt` and `--apply` are the same walk; what differs is who answers
//! [`State::Ask`], and whether the store is changed or only a copy of it in memory.

pub mod call;
pub mod host;
pub mod question;
pub mod reply;
pub mod runner;

pub use crate::memory::pipeline::question::Question;

use crate::base::error::Error;
use crate::memory::redact::Redactor;
use crate::store::entry::EntryId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// One batch: what it asks about, and how far it has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Work<Part, Own> {
    pub batch: String,
    /// What each call is about, in order.
    pub parts: Vec<Part>,
    /// Which part is next.
    pub next: usize,
    /// The notes that the part under way shows whole, with the fingerprints that they had.
    pub shown: BTreeMap<EntryId, String>,
    /// The notes of which it shows a line, with the same.
    pub listed: BTreeMap<EntryId, String>,
    /// A second look at notes that the model wants to see whole.
    pub second_look: Option<SecondLook>,
    /// What only this pipeline knows.
    pub own: Own,
}

/// The model has replied, and wants to see more notes before it replies for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecondLook {
    pub wanted: Vec<EntryId>,
    /// What it replied without having seen them.
    pub reply: String,
    /// What it had been shown whole for that reply.
    pub shown: BTreeMap<EntryId, String>,
}

/// Where a batch is, and with that what is to be done next; the comments say with which event it is answered. Each
/// state holds just what that needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase")]
pub enum State<W, Plan> {
    /// Find out whether there is anything to do, and claim it: [`Event::Begun`].
    Begin,
    /// Read what there is, and share it out over calls: [`Event::Divided`].
    Divide { work: W },
    /// Read what the next question shows: [`Event::Gathered`].
    Gather { work: W },
    /// Ask the model: [`Event::Answered`].
    Ask { work: W, question: Question },
    /// Read what the reply is held against, as it is now: [`Event::Found`]. Without a question nobody was asked: there
    /// is no LLM.
    Check { work: W, question: Option<Question>, reply: String },
    /// Carry out the next step of the plan, if it is not done already: [`Event::Applied`].
    Apply { work: W, plan: Plan, done: usize },
    /// All parts are done with, or a call failed. Say what became of what was asked about: [`Event::Done`].
    Close { work: W, failure: Option<Failure> },
    /// Show what the notes say now in the targets of AGENTS.md: [`Event::Done`].
    Refresh { work: W, then: Then },
    /// Take what was changed into the history: [`Event::Done`].
    Commit { work: W, then: Then },
    /// The walk is over for now. A cap is reached, after something was written or paid for; the next run asks the question.
    Paused { work: W, question: Question, failure: Failure },
    /// The walk is over.
    Ended { ending: WalkEnd },
}

/// What follows when everything is shown and committed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Then {
    /// The next part.
    GoOn,
    End(WalkEnd),
    Pause(Question, Failure),
}

/// What a look at what there is gave.
#[derive(Debug)]
pub enum Begun<W> {
    /// There is nothing to do.
    Nothing,
    Work(W),
    /// There is something to ask about, and no call can be made, so nothing was claimed.
    Unable(Failure),
}

/// What came of what a state wanted done.
pub enum Event<P: Pipeline + ?Sized> {
    /// A saved state was taken up: the same is wanted again.
    Resumed,
    Begun(Begun<WorkOf<P>>),
    Divided(WorkOf<P>),
    Gathered(P::Material),
    Answered(Answer),
    Found(P::Known),
    Applied(P::Outcome),
    Done,
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The text that the model printed.
    Reply(String),
    /// Nobody can be asked, and the question has an earlier reply to go on with.
    Fallback,
    Failed(Failure),
}

/// How a walk ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WalkEnd {
    /// There was nothing to do.
    Idle,
    Completed,
    /// Completed as far as replies could be had.
    Stopped(Failure),
    /// The batch is over, and did not get to its end.
    Failed(Failure),
    /// The batch stays as it is, for a later run.
    Paused(Failure),
}

/// Why there is no reply that can be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "why")]
pub enum Failure {
    /// No call may be made now: a cap is reached. The next run goes on.
    Spent(String),
    /// No LLM command is configured.
    NoCommand,
    /// The command cannot be started. This counts against nothing that was to be asked about.
    NotStarted(String),
    /// The command failed.
    Command(String),
    /// The reply cannot be used, not even the second.
    Reply(String),
    /// A person asked for the prompt, and brought no reply in time.
    Expired,
}

/// What comes of a reply.
#[derive(Debug, PartialEq)]
pub enum Judgement<Plan> {
    Plan(Plan),
    /// The model wants to see these notes first.
    Look(Vec<EntryId>),
    /// The reply cannot be used.
    Unusable(Vec<String>),
    /// It can be used; without these faults, more of it could.
    Improvable(Vec<String>),
}

/// Which further questions may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MayAsk {
    pub look: bool,
    pub repair: bool,
}

/// A prompt of at most `max` bytes is too short for `what`; `least` would do.
pub fn no_room_for(what: &str, max: usize, least: usize) -> Error {
    Error::config(format!("llm.maxPromptBytes of {max} leaves no room for {what}"))
        .hint(format!("set it to {least} or more"))
}

/// What can be kept in a saved state.
pub trait Data: Debug + Clone + PartialEq + Serialize + DeserializeOwned {}
impl<T: Debug + Clone + PartialEq + Serialize + DeserializeOwned> Data for T {}

pub type WorkOf<P> = Work<<P as Pipeline>::Part, <P as Pipeline>::Own>;
pub type StateOf<P> = State<WorkOf<P>, <P as Pipeline>::Plan>;

/// What one of the pipelines adds to the walk. The value itself holds settings only; all progress is in the state, which
/// can be saved after every step and taken up again with [`Event::Resumed`].
pub trait Pipeline {
    /// What one call is about.
    type Part: Data;
    type Own: Data;
    type Plan: Data;
    /// Everything that a prompt shows.
    type Material;
    /// What a reply is held against.
    type Known;
    /// What came of a step of a plan.
    type Outcome;

    /// Other batches have their turn between two parts of one, and a batch that a cap stops waits for the next run. If
    /// not, a batch is over then, and what is left of it is new to the next run.
    const TAKES_TURNS: bool;

    /// How long a prompt may be, in bytes.
    fn max_prompt_bytes(&self) -> usize;

    /// A state's name.
    fn name(state: &StateOf<Self>) -> &'static str;

    /// Is there a model to ask? If not, a plan is made without a reply.
    fn has_model(_work: &WorkOf<Self>) -> bool {
        true
    }

    /// The prompt for the part under way. What it shows is noted down in `work`.
    fn prompt(&self, work: &mut WorkOf<Self>, material: &Self::Material) -> String;

    /// What a reply looks like, for a second question; BATCH stands in the place of the batch.
    fn rules(&self, work: &WorkOf<Self>) -> String;

    /// What the reply to the part under way comes to.
    fn judged(
        &self,
        work: &mut WorkOf<Self>,
        reply: Option<&str>,
        known: Self::Known,
        may: MayAsk,
    ) -> Judgement<Self::Plan>;

    /// How many steps a plan has, one at least.
    fn steps(_plan: &Self::Plan) -> usize {
        1
    }

    fn applied(work: &mut WorkOf<Self>, outcome: Self::Outcome);

    /// The part under way is done. Are those after it still to be asked about?
    fn goes_on(_work: &WorkOf<Self>) -> bool {
        true
    }

    /// Is the reply before a question used, where the question has no answer for this reason? `None`: a person brings
    /// replies, and one is enough.
    fn falls_back(why: Option<&Failure>) -> bool;

    /// A call about the part under way failed.
    fn failed(_work: &mut WorkOf<Self>, _failure: &Failure) {}

    fn ending(work: &WorkOf<Self>, failure: Option<Failure>) -> WalkEnd;

    /// Is there anything to show and to commit, before what follows?
    fn is_to_show(work: &WorkOf<Self>, then: &Then) -> bool;

    fn committed(_work: &mut WorkOf<Self>) {}

    /// The next state. Doing twice what a state wants done must have the result of doing it once. An event that does not
    /// belong to the state leaves it as it is.
    fn step(&self, state: StateOf<Self>, event: Event<Self>) -> StateOf<Self>
    where
        Self: Sized,
    {
        match (state, event) {
            (State::Begin, Event::Begun(begun)) => match begun {
                Begun::Work(work) => State::Divide { work },
                Begun::Nothing => State::Ended { ending: WalkEnd::Idle },
                Begun::Unable(failure) => State::Ended { ending: WalkEnd::Failed(failure) },
            },
            (State::Divide { .. }, Event::Divided(work)) => match work.part() {
                Some(_) if !Self::has_model(&work) => {
                    State::Check { work, question: None, reply: String::new() }
                }
                _ => next_part::<Self>(work),
            },
            (State::Gather { work }, Event::Gathered(material)) => asked(self, work, &material),
            (State::Ask { work, question }, Event::Answered(answer)) => {
                match (answer, question.fallback.clone()) {
                    (Answer::Reply(reply), _) => State::Check { work, question: Some(question), reply },
                    (Answer::Fallback, Some(reply)) => fall_back::<Self>(work, question, reply),
                    (Answer::Fallback, None) => State::Ask { work, question },
                    (Answer::Failed(failure), _) => unanswered::<Self>(work, question, failure),
                }
            }
            (State::Check { work, question, reply }, Event::Found(known)) => {
                checked(self, work, question, reply, known)
            }
            (State::Apply { mut work, plan, done }, Event::Applied(outcome)) => {
                Self::applied(&mut work, outcome);
                let done = done.saturating_add(1);
                if done < Self::steps(&plan) {
                    State::Apply { work, plan, done }
                } else {
                    part_is_done::<Self>(work)
                }
            }
            (State::Close { work, failure }, Event::Done) => {
                let ending = Self::ending(&work, failure);
                shown_first::<Self>(work, Then::End(ending))
            }
            (State::Refresh { work, then }, Event::Done) => State::Commit { work, then },
            (State::Commit { mut work, then }, Event::Done) => {
                Self::committed(&mut work);
                followed::<Self>(work, then)
            }
            (State::Paused { work, question, .. }, Event::Resumed) => State::Ask { work, question },
            (state, _) => state,
        }
    }
}

/// The question about the part under way, with what it shows.
fn asked<P: Pipeline>(pipeline: &P, mut work: WorkOf<P>, material: &P::Material) -> StateOf<P> {
    let prompt = pipeline.prompt(&mut work, material);
    let look = work.second_look.as_ref();
    let question = Question {
        batch: work.batch.clone(),
        part: work.next,
        of: work.parts.len(),
        prompt,
        faults: Vec::new(),
        is_second_look: look.is_some(),
        fallback: look.map(|look| look.reply.clone()),
    };
    match look {
        // There is nothing more to see: asking again would bring the same.
        Some(look) if !look.wanted.iter().any(|id| work.shown.contains_key(id)) => {
            let reply = look.reply.clone();
            fall_back::<P>(work, question, reply)
        }
        _ => State::Ask { work, question },
    }
}

/// What a reply leads to: to a plan, or to a further question.
fn checked<P: Pipeline>(
    pipeline: &P,
    mut work: WorkOf<P>,
    question: Option<Question>,
    reply: String,
    known: P::Known,
) -> StateOf<P> {
    let may = MayAsk {
        look: question.as_ref().is_some_and(|question| !question.is_follow_up()),
        repair: question.as_ref().is_some_and(|question| !question.is_repair()),
    };
    let given = question.is_some().then_some(reply.as_str());
    let (faults, is_of_use) = match pipeline.judged(&mut work, given, known, may) {
        Judgement::Plan(plan) => return State::Apply { work, plan, done: 0 },
        Judgement::Look(wanted) => {
            work.second_look = Some(SecondLook { wanted, reply, shown: work.shown.clone() });
            return State::Gather { work };
        }
        Judgement::Improvable(faults) => (faults, true),
        Judgement::Unusable(faults) => (faults, false),
    };
    let question = question.unwrap_or_default();
    match question.repaired(&pipeline.rules(&work), &reply, &faults, pipeline.max_prompt_bytes()) {
        Some(again) => {
            let question = Question { fallback: is_of_use.then_some(reply), ..again };
            State::Ask { work, question }
        }
        None => unanswered::<P>(work, question, Failure::unusable(&faults)),
    }
}

/// A question has no answer that can be used: the reply before it is taken for what it is worth.
fn fall_back<P: Pipeline>(mut work: WorkOf<P>, question: Question, reply: String) -> StateOf<P> {
    // That reply knew nothing of the notes that only this question shows.
    if !question.is_repair()
        && let Some(look) = work.second_look.take()
    {
        work.shown = look.shown;
        work.listed.extend(look.wanted.into_iter().map(|id| (id, String::new())));
    }
    State::Check { work, question: Some(Question { fallback: None, ..question }), reply }
}

/// What a failed call leads to. What earlier parts gave stays.
fn unanswered<P: Pipeline>(mut work: WorkOf<P>, question: Question, failure: Failure) -> StateOf<P> {
    let is_begun = question.is_follow_up() || work.next > 0;
    // What has been paid for already stays with the batch.
    if P::TAKES_TURNS && is_begun && matches!(failure, Failure::Spent(_)) {
        return shown_first::<P>(work, Then::Pause(question, failure));
    }
    // An earlier reply is not thrown away because a later one could not be had.
    if let Some(reply) = question.fallback.clone().filter(|_| P::falls_back(Some(&failure))) {
        return fall_back::<P>(work, question, reply);
    }
    P::failed(&mut work, &failure);
    State::Close { work, failure: Some(failure) }
}

fn part_is_done<P: Pipeline>(mut work: WorkOf<P>) -> StateOf<P> {
    let goes_on = P::goes_on(&work);
    work.second_look = None;
    work.next = work.next.saturating_add(1);
    match goes_on && work.part().is_some() {
        true => shown_first::<P>(work, Then::GoOn),
        false => State::Close { work, failure: None },
    }
}

fn next_part<P: Pipeline>(work: WorkOf<P>) -> StateOf<P> {
    match work.part() {
        Some(_) => State::Gather { work },
        None => State::Close { work, failure: None },
    }
}

/// Where nothing was changed, there is nothing to show or to commit.
fn shown_first<P: Pipeline>(work: WorkOf<P>, then: Then) -> StateOf<P> {
    match P::is_to_show(&work, &then) {
        true => State::Refresh { work, then },
        false => followed::<P>(work, then),
    }
}

fn followed<P: Pipeline>(work: WorkOf<P>, then: Then) -> StateOf<P> {
    match then {
        Then::GoOn => next_part::<P>(work),
        Then::End(ending) => State::Ended { ending },
        Then::Pause(question, failure) => State::Paused { work, question, failure },
    }
}

impl<Part, Own> Work<Part, Own> {
    pub fn new(batch: String, own: Own) -> Work<Part, Own> {
        let (shown, listed) = (BTreeMap::new(), BTreeMap::new());
        Work { batch, parts: Vec::new(), next: 0, shown, listed, second_look: None, own }
    }

    /// The part under way.
    pub fn part(&self) -> Option<&Part> {
        self.parts.get(self.next)
    }

    /// The notes that the part under way shows, whole or by a line.
    pub fn notes(&self) -> impl Iterator<Item = &EntryId> {
        self.shown.keys().chain(self.listed.keys())
    }
}

impl<Part, Own, Plan> State<Work<Part, Own>, Plan> {
    /// The part that is to be asked about next, where an earlier one has been and nothing of this one is paid for:
    /// others may have their turn first.
    fn next_turn(&self) -> Option<&Work<Part, Own>> {
        let work = match self {
            State::Gather { work } if work.second_look.is_none() => work,
            State::Paused { work, question, .. } if !question.is_follow_up() => work,
            _ => return None,
        };
        Some(work).filter(|work| work.next > 0)
    }
}

impl WalkEnd {
    /// Why it is not the end that was hoped for.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            WalkEnd::Stopped(failure) | WalkEnd::Failed(failure) | WalkEnd::Paused(failure) => Some(failure),
            WalkEnd::Idle | WalkEnd::Completed => None,
        }
    }

    /// Without the secrets of a reply that could not be used.
    fn cleaned(mut self, redactor: &Redactor) -> WalkEnd {
        if let WalkEnd::Stopped(Failure::Reply(why)) | WalkEnd::Failed(Failure::Reply(why)) = &mut self {
            *why = redactor.cleaned(why);
        }
        self
    }
}

impl Failure {
    /// The repaired reply is no better than the first.
    fn unusable(faults: &[String]) -> Failure {
        let faults = faults.join("; ");
        Failure::Reply(format!("the reply cannot be used, and neither can a second: {faults}"))
    }

    /// Would the next call fail in the same way?
    fn is_of_the_command(&self) -> bool {
        matches!(self, Failure::NotStarted(_) | Failure::Command(_))
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Spent(why) | Failure::NotStarted(why) | Failure::Command(why) | Failure::Reply(why) => {
                f.write_str(why)
            }
            Failure::NoCommand => f.write_str("no LLM command is configured"),
            Failure::Expired => f.write_str("no reply came within 24 hours"),
        }
    }
}
