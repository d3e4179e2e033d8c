//! The machine, fed with events: every way through it, and the same end when it is saved and loaded between any two
//! steps. No file, no process.

use super::*;
use crate::memory::consolidate::plan::{PlannedChange, Waiting};
use crate::memory::consolidate::work::Verdict;
use crate::memory::consolidate::write::{Action, Written};
use crate::memory::pipeline::{Answer, Begun, Event};
use crate::memory::record::{Record, Speaker};
use crate::store::entry::{Entry, EntryId};
use crate::store::journal::entry::QueueEntry;
use crate::store::persistence::{Note, Place};
use crate::store::proposal::Proposal;
use jiff::Timestamp;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

type State = crate::memory::pipeline::State<ConsolidateWork, Plan>;

const BATCH: &str = "batch__AAAAAAAAAAAA";

/// What the model answers, call by call, and what was done.
struct Script {
    parts: usize,
    has_llm: bool,
    /// The entry is a session, and a note that it corrects is listed by its title.
    is_session: bool,
    answers: Vec<Answer>,
    /// The effects in their order, each in a word or two.
    log: Vec<String>,
    /// What was written for good, by title.
    notes: BTreeMap<String, String>,
    /// What became of the entry.
    verdicts: BTreeMap<String, Verdict>,
}

impl Script {
    fn new(parts: usize, answers: Vec<Answer>) -> Script {
        Script {
            parts,
            has_llm: true,
            is_session: true,
            answers,
            log: Vec::new(),
            notes: BTreeMap::new(),
            verdicts: BTreeMap::new(),
        }
    }

    /// What comes of what a state wants done; `None`: it asks, or is the last.
    fn perform<'a>(&mut self, state: State) -> Option<Event<Consolidate<'a>>> {
        Some(match state {
            State::Begin => {
                self.log("load");
                let queue_ids = vec!["q1".to_owned()];
                let claimed = Claimed { queue_ids, has_llm: self.has_llm, ..Claimed::default() };
                let work = ConsolidateWork::new(BATCH.to_owned(), claimed);
                Event::Begun(if self.parts == 99 { Begun::Nothing } else { Begun::Work(work) })
            }
            State::Divide { work } => {
                self.log("fetch");
                let of = self.parts;
                let slice =
                    |number| Slice { queue_id: "q1".to_owned(), from: number - 1, to: number, number, of };
                let parts = (1..=of).map(|number| vec![slice(number)]).collect();
                Event::Divided(ConsolidateWork { parts, ..work })
            }
            State::Gather { work } => {
                self.log(&format!("gather {}", work.slices()[0].number));
                let now = Timestamp::UNIX_EPOCH;
                let related =
                    if self.is_session { vec![related(work.second_look.is_some())] } else { vec![] };
                Event::Gathered(Material { now, sessions: vec![], related, waiting: vec![], tags: vec![] })
            }
            State::Check { work, .. } => {
                self.log("look up");
                let ids = self.notes.keys().map(|title| EntryId::make(title, 0, |_| false));
                let mut record = Record::default();
                record.add(Some(1), Speaker::Person, "It is 4320 now.");
                Event::Found(Knowledge {
                    at: Timestamp::UNIX_EPOCH,
                    ids: ids.chain([wrong_note().meta().id.clone()]).collect(),
                    notes: work.notes().map(|id| (id.clone(), there(wrong_note()))).collect(),
                    made: BTreeSet::new(),
                    tags: BTreeSet::new(),
                    entries: BTreeMap::from([("q1".to_owned(), entry(self.is_session))]),
                    record: record.into(),
                    proposals: vec![],
                    grounds: Default::default(),
                })
            }
            State::Apply { work, plan, done } => {
                if done == 0 && !plan.warnings.is_empty() {
                    self.log(&format!("warn {}", plan.warnings.len()));
                }
                Event::Applied(match plan.changes.into_iter().nth(done) {
                    Some(change) => self.write(change),
                    None => {
                        self.log(&format!("consume {}", work.seen().count()));
                        Made::default()
                    }
                })
            }
            State::Close { work, .. } => {
                self.log("mark");
                self.verdicts = work.own.verdicts;
                Event::Done
            }
            State::Refresh { .. } => {
                self.log("refresh");
                Event::Done
            }
            State::Commit { work, .. } => {
                self.log(&format!("commit {}", work.own.made.written.len()));
                Event::Done
            }
            State::Ask { .. } | State::Paused { .. } | State::Ended { .. } => return None,
        })
    }

    fn write(&mut self, change: PlannedChange) -> Made {
        let (id, title, body, action) = match change {
            PlannedChange::Note(note) => {
                let action = if note.update.is_some() { Action::Update } else { Action::Create };
                (note.id, note.draft.title, note.draft.body, action)
            }
            PlannedChange::Confirm(note) => (note.id, note.title, String::new(), Action::Confirm),
            PlannedChange::Retire(note) => (note.id, note.title, String::new(), Action::Retire),
            PlannedChange::Withdraw(change) => {
                self.log(&format!("withdraw {}", change.title));
                return Made::default();
            }
            PlannedChange::Propose(proposal) => {
                let title = proposal.entry.map_or_else(String::new, |entry| entry.title);
                self.log(&format!("propose {} {title}", proposal.op));
                let Proposal { id, op, note, .. } = *proposal;
                let waiting = vec![Waiting { id, op, note, title, withdrawn: None }];
                return Made { waiting, ..Made::default() };
            }
        };
        let verb = if action == Action::Create { "write" } else { "change" };
        self.log(&format!("{verb} {title}"));
        self.notes.insert(title.clone(), body);
        Made { written: vec![Written { id, title, action }], ..Made::default() }
    }

    fn log(&mut self, what: &str) {
        self.log.push(what.to_owned());
    }

    fn count(&self, start: &str) -> usize {
        self.log.iter().filter(|what| what.starts_with(start)).count()
    }
}

/// A session in a repository, or a note that a person jotted down.
fn entry(is_session: bool) -> QueueEntry {
    if is_session {
        let entry = json!({"version": 1, "timestamp": "2026-02-28T12:00:00Z", "harness": "codex",
            "retrieval": {"method": "transcript", "path": "/t.jsonl", "format": "codex", "sessionId": "s"},
            "context": {"cwd": "/w", "repo": "h/o/r"}});
        return QueueEntry::parse(entry.to_string().as_bytes()).unwrap();
    }
    let entry = json!({"version": 1, "timestamp": "2026-02-28T12:00:00Z", "harness": "manual",
        "retrieval": {"method": "inline", "title": "Jotted", "body": "b", "tags": [], "scope": "global",
            "threadId": null}, "context": {"cwd": "/w", "repo": null}});
    QueueEntry::parse(entry.to_string().as_bytes()).unwrap()
}

/// A reply with these notes; without one, the session is skipped.
fn reply(titles: &[&str]) -> Answer {
    let entry = |title: &&str| json!({"title": title, "summary": title, "body": format!("about {title} [[n9]]"), "sources": ["q1"]});
    let entries: Vec<_> = titles.iter().map(entry).collect();
    let skipped =
        if titles.is_empty() { json!([{"source": "q1", "reason": "small talk"}]) } else { json!([]) };
    Answer::Reply(json!({"batch": BATCH, "entries": entries, "skipped": skipped}).to_string())
}

/// A note of the session's repository that is wrong by now.
fn wrong_note() -> Entry {
    let text = "---\nid: id__AAAAAA\ntitle: The port is 4310\nsummary: Port 4310, never 80.\nscope: repo\n\
        sources:\n  - {harness: codex, threadId: t, repo: h/o/r}\n---\n\nThe dev server listens on 4310, see a/b.rs.\n";
    Entry::parse(text.into()).unwrap()
}

fn there(entry: Entry) -> Note {
    Note { place: Place::Topics, path: "topics/x.md".into(), entry }
}

/// The same as a prompt shows it.
fn related(is_whole: bool) -> ask::RelatedNote {
    let entry = wrong_note();
    let meta = entry.meta();
    ask::RelatedNote {
        id: meta.id.clone(),
        title: meta.title.clone(),
        summary: meta.summary.clone(),
        tags: Vec::new(),
        scope: meta.scope,
        repo: None,
        until: None,
        body: is_whole.then(|| String::from_utf8_lossy(entry.body()).into_owned()),
        drift: None,
        failures: None,
        fingerprint: if is_whole { entry.fingerprint() } else { String::new() },
    }
}

/// A reply that corrects the note.
fn correction(gone: &[&str]) -> Answer {
    let entry = json!({"update": "id__AAAAAA", "title": "The port is 4320", "summary": "Port 4320, never 80.",
        "body": "The dev server listens on 4320, see a/b.rs.", "gone": gone, "sources": ["q1"]});
    Answer::Reply(json!({"batch": BATCH, "entries": [entry]}).to_string())
}

/// A reply that names nothing.
fn silent() -> Answer {
    Answer::Reply(json!({"batch": BATCH, "entries": []}).to_string())
}

fn faulty() -> Answer {
    Answer::Reply("I would rather not.".to_owned())
}

fn spent() -> Answer {
    Answer::Failed(Failure::Spent("the cap is reached".to_owned()))
}

/// The states that are gone through, and how it ends. With `again`, every effect is performed twice, as after a crash
/// between the effect and the next save; the state goes through a file after every step in any case.
fn walk(script: &mut Script, again: bool) -> (Vec<&'static str>, State, WalkEnd) {
    let redactor = Redactor::new(true, &[]).unwrap();
    let machine = Consolidate { redactor: &redactor, max_prompt_bytes: 100_000 };
    let mut state = machine.step(State::Begin, Event::Resumed);
    let mut names = Vec::new();
    let mut answers = std::mem::take(&mut script.answers).into_iter();
    for _ in 0..90 {
        if names.last() != Some(&Consolidate::name(&state)) {
            names.push(Consolidate::name(&state));
        }
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<State>(&text).unwrap(), state, "{text}");
        let event = match &state {
            State::Ended { ending } => return (names, state.clone(), ending.clone()),
            State::Paused { failure, .. } => return (names, state.clone(), WalkEnd::Paused(failure.clone())),
            State::Ask { question, .. } => {
                assert!(question.prompt.contains(BATCH));
                script.log(&format!("ask {} {}", question.part, question.faults.len()));
                Event::Answered(answers.next().expect("asked too often"))
            }
            _ => {
                if again {
                    assert_eq!(machine.step(state.clone(), Event::Resumed), state);
                    let _ = script.perform(state.clone());
                }
                script.perform(state.clone()).unwrap()
            }
        };
        state = machine.step(state, event);
    }
    panic!("it never ends: {names:?}");
}

fn walked(parts: usize, answers: Vec<Answer>) -> (Vec<&'static str>, State, WalkEnd, Script) {
    walked_with(parts, answers, true)
}

fn walked_with(
    parts: usize,
    answers: Vec<Answer>,
    is_session: bool,
) -> (Vec<&'static str>, State, WalkEnd, Script) {
    let mut twice = Script { is_session, ..Script::new(parts, answers.clone()) };
    let end = walk(&mut twice, true);
    let mut once = Script { is_session, ..Script::new(parts, answers) };
    let (names, state, ending) = walk(&mut once, false);
    assert_eq!((&names, &state, &ending), (&end.0, &end.1, &end.2));
    assert_eq!((&once.notes, &once.verdicts), (&twice.notes, &twice.verdicts));
    (names, state, ending, once)
}

#[test]
fn the_states_have_the_names_of_the_prd() {
    let (names, state, ending, script) = walked(1, vec![reply(&["a", "b"])]);
    assert_eq!(
        names,
        [
            "loadQueue", "fetchHistory", "runAgent", "parseOutput", "writeEntries", "markProcessed",
            "commitChanges", "completed"
        ]
    );
    assert_eq!(
        script.log,
        [
            "load", "fetch", "gather 1", "ask 0 0", "look up", "warn 2", "write a", "write b", "consume 1",
            "mark", "refresh", "commit 2"
        ]
    );
    assert_eq!(ending, WalkEnd::Completed);
    assert_eq!(state, State::Ended { ending: WalkEnd::Completed });
    assert_eq!(script.verdicts["q1"], Verdict::Processed(None));
}

#[test]
fn an_empty_queue_is_done_at_once() {
    let (names, state, ending, _) = walked(99, vec![]);
    assert_eq!((names, ending), (vec!["loadQueue", "completed"], WalkEnd::Idle));
    assert_eq!(state, State::Ended { ending: WalkEnd::Idle });
}

#[test]
fn nothing_to_ask_about_is_no_call_and_no_commit() {
    let (names, _, ending, script) = walked(0, vec![]);
    assert_eq!(names, ["loadQueue", "fetchHistory", "markProcessed", "completed"]);
    assert_eq!(
        (script.log, ending),
        (vec!["load".to_owned(), "fetch".to_owned(), "mark".to_owned()], WalkEnd::Completed)
    );
}

#[test]
fn without_an_llm_notes_are_filed_as_they_are() {
    let mut script = Script { has_llm: false, is_session: false, ..Script::new(1, vec![]) };
    let (names, _, ending) = walk(&mut script, false);
    assert_eq!(names[2..5], ["parseOutput", "writeEntries", "markProcessed"]);
    assert_eq!((script.notes["Jotted"].as_str(), script.count("ask"), ending), ("b", 0, WalkEnd::Completed));
}

#[test]
fn each_part_is_consumed_before_the_next_is_asked_about() {
    let (_, _, _, script) = walked(3, vec![reply(&["a"]), reply(&["b"]), reply(&["c"])]);
    let order: Vec<&str> = script
        .log
        .iter()
        .filter(|what| what.starts_with("ask") || what.starts_with("consume"))
        .map(String::as_str)
        .collect();
    assert_eq!(order, ["ask 0 0", "consume 1", "ask 1 0", "consume 1", "ask 2 0", "consume 1"]);
    assert_eq!((script.notes.len(), script.count("commit 1"), script.count("refresh")), (3, 3, 3));
}

#[test]
fn a_session_that_was_passed_over_is_not_asked_about_further() {
    let (_, _, ending, script) = walked(3, vec![silent()]);
    assert_eq!((ending, script.count("ask"), script.count("consume 0")), (WalkEnd::Completed, 1, 1));
    assert!(matches!(&script.verdicts["q1"], Verdict::Failed(why) if why.contains("neither")));
}

#[test]
fn a_person_s_note_that_is_skipped_is_filed_all_the_same() {
    let (_, _, _, script) = walked_with(1, vec![reply(&[])], false);
    assert_eq!(script.notes["Jotted"], "b");
    assert_eq!(script.verdicts["q1"], Verdict::Processed(Some("small talk".to_owned())));
}

#[test]
fn a_faulty_reply_is_repaired_once() {
    let (names, _, ending, script) = walked(1, vec![faulty(), reply(&["a"])]);
    assert_eq!(names[2..7], ["runAgent", "parseOutput", "runAgent", "parseOutput", "writeEntries"]);
    assert_eq!((script.count("ask 0 0"), script.count("ask 0 1"), ending), (1, 1, WalkEnd::Completed));
    let (_, _, ending, script) = walked(1, vec![faulty(), faulty()]);
    assert_eq!(script.count("ask"), 2);
    let WalkEnd::Failed(Failure::Reply(why)) = ending else { panic!("{ending:?}") };
    assert!(why.starts_with("the reply cannot be used, and neither can a second: "), "{why}");
    assert!(matches!(script.verdicts["q1"], Verdict::Failed(_)));
}

#[test]
fn a_note_that_is_listed_is_shown_before_it_is_corrected() {
    let want = json!({"batch": BATCH, "entries": [], "want": ["id__AAAAAA"]});
    for first in [Answer::Reply(want.to_string()), correction(&["4310"])] {
        let (names, _, ending, script) = walked(1, vec![first, correction(&["4310"])]);
        assert_eq!(names[2..7], ["runAgent", "parseOutput", "runAgent", "parseOutput", "writeEntries"]);
        assert_eq!((script.count("gather"), script.count("ask 0 0"), script.count("propose")), (2, 2, 0));
        assert!(script.notes["The port is 4320"].contains("4320"), "{:?}", script.log);
        assert_eq!((script.count("change The port"), ending), (1, WalkEnd::Completed));
    }
}

#[test]
fn a_loss_is_told_once_and_then_waits_for_review() {
    let look = || correction(&[]);
    let (_, _, _, script) = walked(1, vec![look(), correction(&[]), correction(&["4310"])]);
    assert_eq!((script.count("ask 0 0"), script.count("ask 0 1")), (2, 1));
    assert_eq!((script.count("change The port"), script.count("propose")), (1, 0));
    let (_, _, ending, script) = walked(1, vec![look(), correction(&[]), correction(&[])]);
    assert_eq!((script.count("change"), script.count("write"), ending), (0, 0, WalkEnd::Completed));
    assert_eq!(script.count("propose update The port is 4320"), 1, "{:?}", script.log);
}

#[test]
fn a_reply_is_not_thrown_away_because_a_later_one_is_worse() {
    let gone_wrong = [faulty(), Answer::Failed(Failure::Command("y".to_owned()))];
    for last in gone_wrong {
        let (_, _, ending, script) = walked(1, vec![correction(&["4310"]), correction(&[]), last.clone()]);
        assert_eq!((script.count("propose update"), &ending), (1, &WalkEnd::Completed), "{last:?}");
    }
    // The second look cannot be had: the model had not seen what it would change.
    let failed = Answer::Failed(Failure::Command("y".to_owned()));
    let (_, _, ending, script) = walked(1, vec![correction(&["4310"]), failed]);
    assert_eq!((script.count("propose update"), ending), (1, WalkEnd::Completed));
    let (_, state, ending, script) = walked(1, vec![correction(&["4310"]), spent()]);
    assert!(matches!(ending, WalkEnd::Paused(_)) && script.count("propose") == 0);
    assert!(matches!(state, State::Paused { question, .. } if question.is_second_look));
}

#[test]
fn only_a_call_that_was_made_and_failed_counts_against_its_entries() {
    let ended = |failure: Failure| {
        let (names, _, ending, script) = walked(2, vec![Answer::Failed(failure.clone())]);
        assert_eq!((names.last(), ending), (Some(&"failed"), WalkEnd::Failed(failure)));
        assert_eq!((script.notes.len(), script.count("mark"), script.count("commit")), (0, 1, 0));
        script.verdicts.get("q1").cloned()
    };
    assert_eq!(ended(Failure::Spent("x".to_owned())), None);
    assert_eq!(ended(Failure::NotStarted("x".to_owned())), None);
    assert_eq!(ended(Failure::NoCommand), None);
    assert_eq!(ended(Failure::Command("y".to_owned())), Some(Verdict::Failed("y".to_owned())));
}

#[test]
fn the_second_part_keeps_what_the_first_has_written() {
    let failed = Answer::Failed(Failure::Command("y".to_owned()));
    let (_, _, ending, script) = walked(2, vec![reply(&["a"]), failed]);
    assert!(matches!(ending, WalkEnd::Failed(Failure::Command(_))));
    assert_eq!((script.notes.len(), script.count("commit 1"), script.count("refresh")), (1, 1, 1));
}

#[test]
fn at_a_cap_what_was_paid_for_waits_for_the_next_run() {
    for answers in [vec![reply(&["a"]), spent()], vec![faulty(), spent()]] {
        let (names, state, ending, script) = walked(2, answers);
        assert_eq!((names.last(), script.count("mark")), (Some(&"paused"), 0));
        assert!(matches!(ending, WalkEnd::Paused(Failure::Spent(_))));
        // What was written is committed and shown, and the question is asked again.
        assert_eq!(script.count("commit"), script.notes.len());
        let redactor = Redactor::new(true, &[]).unwrap();
        let machine = Consolidate { redactor: &redactor, max_prompt_bytes: 100_000 };
        assert!(matches!(machine.step(state, Event::Resumed), State::Ask { .. }));
    }
}

#[test]
fn an_event_of_another_state_changes_nothing() {
    let redactor = Redactor::new(true, &[]).unwrap();
    let machine = Consolidate { redactor: &redactor, max_prompt_bytes: 100_000 };
    for event in [Event::Done, Event::Answered(faulty()), Event::Resumed] {
        assert_eq!(machine.step(State::Begin, event), State::Begin);
    }
}
