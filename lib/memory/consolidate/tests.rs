//! The machine with adapters that do nothing but remember: every way through it, and the same end when it is saved
//! and loaded between any two steps.

use super::*;
use crate::base::error::Error;
use crate::memory::budget::Spent;
use crate::memory::call::Kind;
use crate::memory::consolidate::work::{Part, Slice, SourceWork};
use crate::store::entry::{EntryId, Scope, Status};
use jiff::Timestamp;
use std::collections::{BTreeMap, VecDeque};

/// What is asked of a script, in the order in which it answers.
struct Script {
    /// How many parts there are.
    parts: usize,
    without_agent: bool,
    asked: VecDeque<Asked>,
    judged: VecDeque<Judged>,
    /// The adapter that fails once, and the how manieth time that it is called.
    fails: Option<(&'static str, usize)>,
    called: Vec<String>,
    /// What was done for good: a note by id, a part, an end.
    notes: BTreeMap<String, String>,
}

impl Script {
    fn new(parts: usize, asked: Vec<Asked>, judged: Vec<Judged>) -> Script {
        Script {
            parts,
            without_agent: false,
            asked: asked.into(),
            judged: judged.into(),
            fails: None,
            called: Vec::new(),
            notes: BTreeMap::new(),
        }
    }

    fn call(&mut self, name: &'static str, more: &str) -> Result<()> {
        self.called.push(format!("{name}{more}"));
        if let Some((which, count)) = &mut self.fails
            && *which == name
        {
            if *count == 0 {
                self.fails = None;
                return Err(Error::io("the disk is full"));
            }
            *count -= 1;
        }
        Ok(())
    }

    fn count(&self, start: &str) -> usize {
        self.called.iter().filter(|call| call.starts_with(start)).count()
    }
}

impl Adapters for Script {
    fn load_queue(&mut self) -> Result<Option<Work>> {
        self.call("load_queue", "")?;
        Ok((self.parts < 99).then(|| {
            let mut work = Work::new("batch__x".to_owned(), Kind::Run, Timestamp::UNIX_EPOCH, &[]);
            work.sources = vec![SourceWork { queue_id: "q1".to_owned(), bytes: 9, cut: 0 }];
            work
        }))
    }

    fn fetch_history(&mut self, work: &mut Work) -> Result<()> {
        self.call("fetch_history", "")?;
        let slice = |number| Slice { source: 0, from: number - 1, to: number, number, of: self.parts };
        work.parts = (1..=self.parts).map(|number| Part { slices: vec![slice(number)] }).collect();
        Ok(())
    }

    fn without_agent(&mut self, work: &mut Work) -> Result<Option<Plan>> {
        self.call("without_agent", "")?;
        work.next = if self.without_agent { work.parts.len() } else { 0 };
        Ok(self.without_agent.then(|| plan("filed")))
    }

    fn execute_agent(&mut self, work: &mut Work, faults: &[String]) -> Result<Asked> {
        self.call("execute_agent", &format!(" {} {}", work.next, faults.join(",")))?;
        self.asked.pop_front().ok_or_else(|| Error::io("asked too often"))
    }

    fn parse_output(&mut self, _: &Work) -> Result<Judged> {
        self.call("parse_output", "")?;
        self.judged.pop_front().ok_or_else(|| Error::io("judged too often"))
    }

    fn write_entry(&mut self, note: &PlannedNote, _: &Plan) -> Result<Written> {
        self.call("write_entry", &format!(" {}", note.title))?;
        self.notes.insert(note.title.clone(), note.body.clone());
        Ok(Written { id: note.id.clone(), title: note.title.clone(), is_update: false })
    }

    fn consume(&mut self, work: &Work) -> Result<()> {
        self.call("consume", &format!(" {}", work.next))
    }

    fn mark_processed(&mut self, work: &Work) -> Result<()> {
        self.call("mark_processed", &format!(" {:?}", work.verdicts))
    }

    fn commit(&mut self, work: &Work) -> Result<()> {
        self.call("commit", &format!(" {}", work.written.len()))
    }

    fn warn(&mut self, warning: &str) {
        self.called.push(format!("warn {warning}"));
    }
}

fn plan(title: &str) -> Plan {
    let note = |title: String| PlannedNote {
        id: EntryId::make(&title, 1, |_| false),
        update: None,
        replaces: None,
        created_at: 1,
        status: Status::Consolidated,
        body: format!("about {title}"),
        title,
        summary: String::new(),
        tags: Vec::new(),
        scope: Scope::Global,
        sources: Vec::new(),
    };
    let notes = vec![note(format!("{title} 1")), note(format!("{title} 2"))];
    Plan { at: Timestamp::UNIX_EPOCH, notes, warnings: vec![format!("of {title}")] }
}

fn planned(title: &str) -> Judged {
    Judged::Plan(plan(title), Vec::new())
}

fn with_verdict(title: &str, verdict: Verdict) -> Judged {
    Judged::Plan(plan(title), vec![("q1".to_owned(), verdict)])
}

fn faulty() -> Judged {
    Judged::Faulty(vec!["a".to_owned(), "b".to_owned()])
}

/// The names of the states that were gone through, and the last one.
fn run(script: &mut Script, saved: bool) -> (Vec<&'static str>, State) {
    let mut state = State::LoadQueue;
    let mut names = vec![state.name()];
    for _ in 0..60 {
        if state.is_over() {
            return (names, state);
        }
        if saved {
            let text = serde_json::to_string(&state).unwrap();
            let loaded: State = serde_json::from_str(&text).unwrap();
            assert_eq!(loaded, state, "{text}");
            state = loaded;
        }
        let before = state.clone();
        state = match state.step(script) {
            Ok(next) => next,
            // The next run takes it up where it was saved.
            Err(_) => before,
        };
        names.push(state.name());
    }
    panic!("it never ends: {names:?}");
}

/// Runs it as it is and saved between any two steps.
fn both(script: impl Fn() -> Script) -> (Vec<&'static str>, State, Script) {
    let (mut plain, mut saved) = (script(), script());
    let (names, state) = run(&mut plain, false);
    assert_eq!((&names, &state), (&run(&mut saved, true).0, &run(&mut script(), true).1));
    assert_eq!((&plain.called, &plain.notes), (&saved.called, &saved.notes));
    (names, state, plain)
}

#[test]
fn the_states_have_the_names_of_the_spec() {
    let (names, state, script) =
        both(|| Script::new(1, vec![Asked::Replied], vec![with_verdict("a", Verdict::Processed(None))]));
    assert_eq!(
        names,
        [
            "loadQueue",
            "fetchHistory",
            "runAgent",
            "parseOutput",
            "writeEntries",
            "markProcessed",
            "commitChanges",
            "completed"
        ]
    );
    assert_eq!(
        script.called,
        [
            "load_queue",
            "fetch_history",
            "without_agent",
            "execute_agent 0 ",
            "parse_output",
            "warn of a",
            "write_entry a 1",
            "write_entry a 2",
            "consume 0",
            "mark_processed {\"q1\": Processed(None)}",
            "commit 2"
        ]
    );
    let saved = serde_json::to_value(&state).unwrap();
    assert_eq!((saved["state"].as_str(), saved["work"]["next"].as_u64()), (Some("completed"), Some(1)));
}

#[test]
fn an_empty_queue_is_done_at_once() {
    let (names, state, _) = both(|| Script::new(99, vec![], vec![]));
    assert_eq!((names, state), (vec!["loadQueue", "completed"], State::Completed { work: None }));
}

#[test]
fn nothing_to_ask_about_is_no_call() {
    let (names, _, script) = both(|| Script::new(0, vec![], vec![]));
    assert_eq!(names, ["loadQueue", "fetchHistory", "markProcessed", "commitChanges", "completed"]);
    assert_eq!(script.count("execute_agent"), 0);
}

#[test]
fn without_an_agent_notes_are_filed_and_none_is_asked() {
    let (names, _, script) = both(|| Script { without_agent: true, ..Script::new(1, vec![], vec![]) });
    assert_eq!(
        names,
        ["loadQueue", "fetchHistory", "writeEntries", "markProcessed", "commitChanges", "completed"]
    );
    assert_eq!((script.count("execute_agent"), script.notes.len()), (0, 2));
}

#[test]
fn parts_are_asked_about_in_order_and_each_is_consumed_before_the_next() {
    let (_, _, script) = both(|| {
        Script::new(
            3,
            (0..3).map(|_| Asked::Replied).collect(),
            vec![planned("a"), planned("b"), planned("c")],
        )
    });
    let order: Vec<&str> = script
        .called
        .iter()
        .filter(|call| call.starts_with("execute") || call.starts_with("consume"))
        .map(String::as_str)
        .collect();
    assert_eq!(
        order,
        ["execute_agent 0 ", "consume 0", "execute_agent 1 ", "consume 1", "execute_agent 2 ", "consume 2"]
    );
    assert_eq!((script.notes.len(), script.count("commit 6")), (6, 1));
}

#[test]
fn a_session_that_was_passed_over_is_not_asked_about_further() {
    let failed = || with_verdict("a", Verdict::Failed("passed over".to_owned()));
    let (names, _, script) = both(|| Script::new(3, vec![Asked::Replied], vec![failed()]));
    assert_eq!((names.last(), script.count("execute_agent")), (Some(&"completed"), 1));
}

#[test]
fn a_faulty_reply_is_repaired_once() {
    let (names, _, script) =
        both(|| Script::new(1, vec![Asked::Replied, Asked::Replied], vec![faulty(), planned("a")]));
    assert_eq!(names[2..7], ["runAgent", "parseOutput", "runAgent", "parseOutput", "writeEntries"]);
    assert_eq!((script.count("execute_agent 0 a,b"), names.last()), (1, Some(&"completed")));
    let (names, state, script) =
        both(|| Script::new(1, vec![Asked::Replied, Asked::Replied], vec![faulty(), faulty()]));
    assert_eq!((names.last(), script.count("execute_agent")), (Some(&"failed"), 2));
    let State::Failed { why: Why::Reply(why), .. } = state else { panic!("{state:?}") };
    assert!(why.ends_with("a; b"), "{why}");
}

#[test]
fn what_becomes_of_a_call_is_told_apart() {
    let ended = |asked: fn() -> Asked| match both(|| Script::new(2, vec![asked()], vec![])) {
        (names, State::Failed { why, work }, script) => {
            assert_eq!((names.last(), work.next), (Some(&"failed"), 0));
            assert_eq!(script.count("mark_processed") + script.count("write_entry"), 0);
            why
        }
        (_, state, _) => panic!("{state:?}"),
    };
    assert!(
        matches!(ended(|| Asked::Spent(Spent::Run(3))), Why::Spent(why) if why.contains("3 calls a run"))
    );
    assert_eq!(ended(|| Asked::NotStarted("x".to_owned())), Why::NotStarted("x".to_owned()));
    assert_eq!(ended(|| Asked::Failed("y".to_owned())), Why::Agent("y".to_owned()));
}

#[test]
fn the_second_part_keeps_what_the_first_has_written() {
    let asked = || vec![Asked::Replied, Asked::Failed("y".to_owned())];
    let (_, state, script) = both(|| Script::new(2, asked(), vec![planned("a")]));
    let State::Failed { work, .. } = state else { panic!("{state:?}") };
    assert_eq!((work.next, work.written.len(), script.count("consume")), (1, 2, 1));
}

#[test]
fn an_adapter_that_fails_once_changes_nothing_in_the_end() {
    let script = || Script::new(2, vec![Asked::Replied, Asked::Replied], vec![planned("a"), planned("b")]);
    let (_, wanted, plain) = both(script);
    let mut failed = 0;
    for name in [
        "load_queue",
        "fetch_history",
        "without_agent",
        "execute_agent",
        "parse_output",
        "write_entry",
        "consume",
        "mark_processed",
        "commit",
    ] {
        for count in 0..plain.count(name) {
            let (_, state, script) = both(|| Script { fails: Some((name, count)), ..script() });
            assert_eq!((&state, &script.notes), (&wanted, &plain.notes), "{name} {count}");
            assert!(script.count("execute_agent") <= 3, "{name} {count}");
            assert!(script.fails.is_none(), "{name} {count} did not fail");
            failed += 1;
        }
    }
    assert_eq!(failed, 3 + 2 * 2 + 4 + 2 + 2);
}

#[test]
fn what_is_over_stays_over() {
    let mut script = Script::new(0, vec![], vec![]);
    let over = State::Completed { work: None };
    assert_eq!(over.clone().step(&mut script).unwrap(), over);
    assert!(script.called.is_empty() && State::LoadQueue.work().is_none());
}
