//! The machine with adapters that do nothing but remember: every way through it, and the same end when it is saved
//! and loaded between any two steps.

use super::*;
use crate::base::error::Error;
use crate::memory::budget::Spent;
use crate::memory::call::Kind;
use crate::memory::defrag::reach::Reach;
use crate::memory::defrag::work::Part;
use crate::store::entry::{EntryId, Meta};
use jiff::Timestamp;
use std::collections::VecDeque;

/// What is asked of a script, in the order in which it answers.
struct Script {
    parts: usize,
    asked: VecDeque<Asked>,
    judged: VecDeque<Judged>,
    /// The adapter that fails, the first time that it is called.
    fails: Option<&'static str>,
    called: Vec<String>,
}

fn script(parts: usize, asked: Vec<Asked>, judged: Vec<Judged>) -> Script {
    Script { parts, asked: asked.into(), judged: judged.into(), fails: None, called: Vec::new() }
}

fn reach() -> Reach {
    Reach::of(&Meta::new(EntryId::whole("id__a1B2c3").unwrap()))
}

fn plan() -> Judged {
    let at = Timestamp::UNIX_EPOCH;
    Judged::Plan(Plan { at, operations: vec![], dropped: vec![], warnings: vec![], remark: String::new() })
}

fn faulty() -> Judged {
    Judged::Faulty(vec!["operations: is missing".to_owned()])
}

impl Script {
    fn call(&mut self, name: &'static str, more: &str) -> Result<()> {
        self.called.push(format!("{name}{more}"));
        if self.fails == Some(name) {
            self.fails = None;
            return Err(Error::io("the disk is full"));
        }
        Ok(())
    }
}

impl Adapters for Script {
    fn scan_entries(&mut self) -> Result<Option<Work>> {
        self.call("scan", "")?;
        Ok((self.parts > 0).then(|| Work::new("batch__x", Kind::Run, Timestamp::UNIX_EPOCH, false)))
    }

    fn analyze_structure(&mut self, work: &mut Work) -> Result<()> {
        self.call("analyze", "")?;
        work.parts = vec![Part::Tiers(reach()); self.parts];
        Ok(())
    }

    fn run_agent(&mut self, work: &mut Work, faults: &[String]) -> Result<Asked> {
        let again = if faults.is_empty() { "" } else { " again" };
        self.call("ask", &format!(" {}{again}", work.next))?;
        Ok(self.asked.pop_front().unwrap_or(Asked::Replied))
    }

    fn judge(&mut self, _work: &Work, is_final: bool) -> Result<Judged> {
        self.call("judge", if is_final { " finally" } else { "" })?;
        Ok(self.judged.pop_front().unwrap_or_else(plan))
    }

    fn apply_changes(&mut self, work: &mut Work, _plan: &Plan) -> Result<()> {
        self.call("apply", &format!(" {}", work.next))
    }

    fn generate_agents_md(&mut self, _work: &Work) -> Result<()> {
        self.call("generate", "")
    }

    fn commit(&mut self, _work: &Work) -> Result<()> {
        self.call("commit", "")
    }
}

/// To the end, through a file after each step; after an error once more from the state that was saved last.
fn end(script: &mut Script) -> State {
    let mut state = State::ScanEntries;
    while !state.is_over() {
        let saved = serde_json::to_string(&state).unwrap();
        let loaded: State = serde_json::from_str(&saved).unwrap();
        assert_eq!(loaded, state, "{}", state.name());
        state = loaded.step(script).unwrap_or_else(|_| serde_json::from_str(&saved).unwrap());
    }
    state
}

fn called(parts: usize, asked: Vec<Asked>, judged: Vec<Judged>) -> (String, State) {
    let mut script = script(parts, asked, judged);
    let state = end(&mut script);
    (script.called.join(", "), state)
}

#[test]
fn without_news_nothing_is_asked() {
    let (called, state) = called(0, vec![], vec![]);
    assert_eq!((called.as_str(), state), ("scan", State::Completed { work: None }));
}

#[test]
fn every_part_is_asked_about_and_applied_before_the_next() {
    let (called, state) = called(2, vec![], vec![]);
    assert_eq!(called, "scan, analyze, ask 0, judge, apply 0, ask 1, judge, apply 1, generate, commit");
    assert!(matches!(state, State::Completed { work: Some(work) } if work.stopped.is_none()));
}

#[test]
fn a_faulty_reply_is_asked_for_once_more_and_then_no_more() {
    let (calls, state) = called(1, vec![], vec![faulty(), plan()]);
    assert_eq!(calls, "scan, analyze, ask 0, judge, ask 0 again, judge finally, apply 0, generate, commit");
    assert!(matches!(state, State::Completed { .. }));
    let (calls, state) = called(1, vec![], vec![faulty(), faulty()]);
    assert_eq!(calls, "scan, analyze, ask 0, judge, ask 0 again, judge finally");
    assert!(matches!(state, State::Failed { why: Why::Reply(why), .. } if why.contains("is missing")));
}

#[test]
fn what_stops_before_the_first_change_fails() {
    for (asked, is_spent) in [
        (Asked::Spent(Spent::Run(3)), true),
        (Asked::Failed("exit 1".to_owned()), false),
        (Asked::NotStarted("no such command".to_owned()), false),
    ] {
        let (calls, state) = called(2, vec![asked], vec![]);
        assert_eq!(calls, "scan, analyze, ask 0");
        let State::Failed { why, .. } = state else { panic!("{}", state.name()) };
        assert_eq!(matches!(why, Why::Spent(_)), is_spent);
    }
}

#[test]
fn what_earlier_parts_changed_is_brought_to_its_end() {
    let (calls, state) = called(3, vec![Asked::Replied, Asked::Spent(Spent::Day(3))], vec![]);
    assert_eq!(calls, "scan, analyze, ask 0, judge, apply 0, ask 1, generate, commit");
    let State::Completed { work: Some(work) } = state else { panic!("{}", state.name()) };
    assert!(matches!(work.stopped, Some(Why::Spent(_))));
}

#[test]
fn a_paid_reply_is_used_as_far_as_it_goes_when_no_second_may_be_had() {
    let (calls, state) = called(1, vec![Asked::Replied, Asked::Spent(Spent::Run(1))], vec![faulty(), plan()]);
    assert_eq!(calls, "scan, analyze, ask 0, judge, ask 0 again, judge finally, apply 0, generate, commit");
    assert!(matches!(state, State::Completed { .. }));
    let (_, state) = called(1, vec![Asked::Replied, Asked::Spent(Spent::Run(1))], vec![faulty(), faulty()]);
    assert!(matches!(state, State::Failed { why: Why::Spent(_), .. }));
}

#[test]
fn a_state_that_fails_is_taken_up_where_it_was() {
    let (whole, _) = called(2, vec![], vec![]);
    for name in ["scan", "analyze", "ask", "judge", "apply", "generate", "commit"] {
        let mut script = script(2, vec![], vec![]);
        script.fails = Some(name);
        assert!(matches!(end(&mut script), State::Completed { .. }), "{name}");
        let mut calls: Vec<&str> = script.called.iter().map(String::as_str).collect();
        // A reply that is there is not asked for again by the real adapter; the machine may ask it to.
        calls.dedup();
        let retried =
            if name == "judge" { whole.replacen("judge", "judge, ask 0, judge", 1) } else { whole.clone() };
        assert_eq!(calls.join(", "), retried, "{name}");
    }
}
