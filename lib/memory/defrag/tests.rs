//! The machine, fed with events: every way through it, and the same end when it is saved and loaded between any two
//! steps. No file, no process.

use super::*;
use crate::memory::defrag::corpus::{Structure, reach};
use crate::memory::pipeline::{Answer, Begun, Event};
use crate::memory::redact::Redactor;
use crate::store::entry::{Entry, EntryId, Meta};
use crate::store::persistence::{Note, Place};
use jiff::Timestamp;
use serde_json::json;
use std::collections::BTreeSet;

type State = crate::memory::pipeline::State<DefragWork, DefragPlan>;

const BATCH: &str = "batch__AAAAAAAAAAAA";

fn note() -> Note {
    let meta = Meta { title: "Guards".to_owned(), ..Meta::new(EntryId::whole("id__a1B2c3").unwrap()) };
    let path = meta.file_name().into();
    Note { place: Place::Topics, path, entry: Entry::new(meta, b"Guards are pure.\n") }
}

/// What each state's task gives, and the words that are logged for it.
fn perform<'a>(state: State, parts: usize, log: &mut Vec<String>) -> Event<Defrag<'a>> {
    match state {
        State::Begin => {
            log.push("scan".to_owned());
            let work = DefragWork::new(BATCH.to_owned(), Scanned { total: 1, ..Scanned::default() });
            Event::Begun(if parts == 0 { Begun::Nothing } else { Begun::Work(work) })
        }
        State::Divide { work } => {
            log.push("analyze".to_owned());
            Event::Divided(DefragWork { parts: vec![Part::Tiers(reach(note().entry.meta())); parts], ..work })
        }
        State::Gather { .. } => {
            log.push("gather".to_owned());
            let today = jiff::civil::date(2026, 2, 28);
            Event::Gathered(Corpus { notes: vec![note()], structure: Structure::default(), today })
        }
        State::Check { work, .. } => {
            log.push(format!("look up {}", work.notes().count()));
            Event::Found(Inventory {
                at: Timestamp::UNIX_EPOCH,
                notes: vec![note()],
                ids: work.notes().cloned().collect(),
                proposed: BTreeSet::new(),
                paths: BTreeSet::new(),
            })
        }
        State::Apply { work, plan, .. } => {
            log.push(format!("apply {} {}", work.next, plan.operations.len()));
            Event::Applied(0)
        }
        State::Close { failure, .. } => {
            log.extend(failure.map(|failure| format!("remember {failure}")));
            Event::Done
        }
        State::Refresh { .. } => {
            log.push("generate".to_owned());
            Event::Done
        }
        State::Commit { .. } => {
            log.push("commit".to_owned());
            Event::Done
        }
        State::Ask { .. } | State::Paused { .. } | State::Ended { .. } => unreachable!("it is no task"),
    }
}

fn reply_with(operations: &[serde_json::Value]) -> Answer {
    Answer::Reply(json!({"batch": BATCH, "operations": operations}).to_string())
}

/// Makes the note hot.
fn reply() -> Answer {
    reply_with(&[json!({"op": "tier", "id": "id__a1B2c3", "tier": "hot"})])
}

/// The same, and an operation that is none.
fn half_a_reply() -> Answer {
    reply_with(&[json!({"op": "explode"}), json!({"op": "tier", "id": "id__a1B2c3", "tier": "hot"})])
}

/// Nothing but operations that are none.
fn bad_reply() -> Answer {
    reply_with(&[json!({"op": "explode"}), json!({"op": "tier", "id": "id__a1B2c3", "tier": 7})])
}

fn useless() -> Answer {
    Answer::Reply("no".to_owned())
}

fn failed(why: &str) -> Answer {
    Answer::Failed(Failure::Command(why.to_owned()))
}

fn spent() -> Answer {
    Answer::Failed(Failure::Spent("cap".to_owned()))
}

/// The effects in their order, and how it ends; the state goes through a file after every step, and each is taken up
/// once more.
fn walk(parts: usize, answers: Vec<Answer>) -> (String, WalkEnd) {
    let redactor = Redactor::new(true, &[]).unwrap();
    let (max_prompt_bytes, max_hot_tokens) = (100_000, 9);
    let machine = Defrag { redactor: &redactor, max_prompt_bytes, max_hot_tokens, allows_loss: false };
    let mut log = Vec::new();
    let mut answers = answers.into_iter();
    let mut state = machine.step(State::Begin, Event::Resumed);
    for _ in 0..90 {
        let text = serde_json::to_string(&state).unwrap();
        let loaded: State = serde_json::from_str(&text).unwrap();
        assert_eq!(loaded, state, "{text}");
        assert_eq!(machine.step(loaded, Event::Resumed), state);
        let event = match &state {
            State::Ended { ending } => return (log.join(", "), ending.clone()),
            State::Ask { question, .. } => {
                let again = if question.is_repair() { " again" } else { "" };
                log.push(format!("ask {}{again}", question.part));
                Event::Answered(answers.next().expect("asked too often"))
            }
            _ => perform(state.clone(), parts, &mut log),
        };
        state = machine.step(state, event);
    }
    panic!("it never ends: {log:?}");
}

#[test]
fn without_news_nothing_is_asked() {
    assert_eq!(walk(0, vec![]), ("scan".to_owned(), WalkEnd::Idle));
}

#[test]
fn every_part_is_asked_about_and_applied_before_the_next() {
    let (log, ending) = walk(2, vec![reply(), reply()]);
    assert_eq!(
        log,
        "scan, analyze, gather, ask 0, look up 1, apply 0 1, gather, ask 1, look up 1, apply 1 1, generate, commit"
    );
    assert_eq!(ending, WalkEnd::Completed);
}

#[test]
fn a_bad_operation_costs_no_second_call() {
    let (log, ending) = walk(1, vec![half_a_reply()]);
    assert_eq!(log, "scan, analyze, gather, ask 0, look up 1, apply 0 1, generate, commit");
    assert_eq!(ending, WalkEnd::Completed);
}

#[test]
fn a_reply_without_a_good_operation_is_asked_for_once_more_and_then_used_as_far_as_it_goes() {
    for (second, operations) in [(half_a_reply(), 1), (bad_reply(), 0)] {
        let (log, ending) = walk(1, vec![bad_reply(), second]);
        assert_eq!(
            log,
            format!(
                "scan, analyze, gather, ask 0, look up 1, ask 0 again, look up 1, apply 0 {operations}, generate, commit"
            )
        );
        assert_eq!(ending, WalkEnd::Completed);
    }
    let (log, ending) = walk(1, vec![useless(), useless()]);
    assert!(
        log.starts_with("scan, analyze, gather, ask 0, look up 1, ask 0 again, look up 1, remember "),
        "{log}"
    );
    assert!(matches!(ending, WalkEnd::Failed(Failure::Reply(_))), "{ending:?}");
}

#[test]
fn what_stops_before_the_first_change_fails() {
    for answer in [spent(), failed("exit 1"), Answer::Failed(Failure::NotStarted("no command".to_owned()))] {
        let Answer::Failed(failure) = answer.clone() else { panic!() };
        let (log, ending) = walk(2, vec![answer]);
        assert_eq!(log, format!("scan, analyze, gather, ask 0, remember {failure}"));
        assert_eq!(ending, WalkEnd::Failed(failure));
    }
}

#[test]
fn what_earlier_parts_changed_is_brought_to_its_end() {
    let (log, ending) = walk(3, vec![reply(), spent()]);
    assert!(log.ends_with("apply 0 1, gather, ask 1, remember cap, generate, commit"), "{log}");
    assert_eq!(ending, WalkEnd::Stopped(Failure::Spent("cap".to_owned())));
}

#[test]
fn a_batch_that_nobody_answers_in_time_is_completed_as_far_as_it_came() {
    let (_, ending) = walk(3, vec![reply(), Answer::Failed(Failure::Expired)]);
    assert_eq!(ending, WalkEnd::Completed);
}

#[test]
fn a_paid_reply_is_used_as_far_as_it_goes_when_no_second_may_be_had() {
    let (log, ending) = walk(1, vec![bad_reply(), spent()]);
    assert!(log.ends_with("ask 0 again, look up 1, apply 0 0, generate, commit"), "{log}");
    assert_eq!(ending, WalkEnd::Completed);
    let (_, ending) = walk(1, vec![useless(), spent()]);
    assert_eq!(ending, WalkEnd::Failed(Failure::Spent("cap".to_owned())));
}
