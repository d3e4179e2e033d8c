//! Our own small files, as a crash, an editor or another machine may leave them. The first byte says which.

use crate::base::error::Result;
use crate::fuzz::scratch::Scratch;
use crate::fuzz::{choice, is_told};
use crate::memory::budget::{CallBudget, LlmCall};
use crate::memory::consolidate::Consolidate;
use crate::memory::defrag::Defrag;
use crate::memory::pipeline::host::Saved;
use crate::memory::pipeline::{Event, Pipeline, StateOf};
use crate::memory::redact::Redactor;
use crate::store::batch::{Batch, Batches, bears_an_id};
use crate::store::entry::EntryId;
use crate::store::ledger::{DefragLedger, NextTry, Sessions, Tries};
use crate::store::place::Root;
use jiff::Timestamp;

pub fn holds(bytes: &[u8]) {
    let (which, bytes) = choice(bytes, 6);
    let names = ["sessions.json", "tries.json", "defrag.json", "calls.jsonl", "batch.json", "batch.json"];
    let scratch = Scratch::empty();
    let root = Root::at(scratch.root());
    let now: Timestamp = "2026-02-28T15:04:05Z".parse().unwrap();
    let state = |name: &str| format!(".agent-memory/{name}");
    match which {
        0 => {
            scratch.put(&state(names[0]), bytes);
            given(Sessions::load(&root), |mut sessions| sessions_stay(&mut sessions, &root));
        }
        1 => {
            scratch.put(&state(names[1]), bytes);
            given(Tries::load(&root), |mut tries| tries_end(&mut tries, &root, now));
        }
        2 => {
            scratch.put(&state(names[2]), bytes);
            given(DefragLedger::load(&root), |mut seen| {
                seen.save(&root).unwrap();
                assert_eq!(DefragLedger::load(&root).unwrap(), seen);
                let id = EntryId::parse("id__a1B2c3").unwrap();
                seen.see(id.clone(), "m".to_owned());
                seen.keep(|other| *other == id);
                assert!(seen.has(&id, "m") && !seen.has(&id, "n"));
            });
        }
        3 => {
            scratch.put(&state(names[3]), bytes);
            calls_are_counted(&root, now);
        }
        _ => a_batch(which == 4, &scratch, &root, bytes),
    }
}

fn given<T>(loaded: Result<T>, holds: impl FnOnce(T)) {
    match loaded {
        Ok(value) => holds(value),
        Err(error) => is_told(&error.line()),
    }
}

fn sessions_stay(sessions: &mut Sessions, root: &Root) {
    sessions.save(root).unwrap();
    let again = Sessions::load(root).unwrap();
    let json = |sessions: &Sessions| serde_json::to_string(sessions).unwrap();
    assert_eq!(json(&again), json(sessions));
    for key in ["a", "b", ""] {
        assert!(sessions.kin(key, None).count() + sessions.kin(key, Some("c")).count() < usize::MAX);
        let turns: Vec<String> = (0..3).map(|n| format!("{key}{n}")).collect();
        sessions.read(key, Some("a"), &turns);
        let session = sessions.get(key).unwrap();
        assert!(session.last == turns[2] && session.marks.ends_with(&turns) && session.marks.len() <= 2000);
    }
}

/// Whatever stands there: three more failures after its pause, and it is over.
fn tries_end(tries: &mut Tries, root: &Root, now: Timestamp) {
    tries.save(root).unwrap();
    Tries::load(root).unwrap();
    for id in ["a", "b"] {
        tries.pause(id, now);
        tries.set_alone(id);
        assert!(tries.is_alone(id));
        let time = |n: i64| now.saturating_add(jiff::SignedDuration::from_hours(10 * n)).unwrap();
        let fail = |n| tries.fail(id, "no", (&format!("own batch {n}"), ""), time(n));
        let last = (1..4).map(fail).last().unwrap();
        assert!(matches!(last, NextTry::Never(_)), "{last:?}");
        tries.forget(id);
        assert!(tries.pause(id, now).is_none() && !tries.is_alone(id));
    }
}

/// No line, whatever it says, makes room for more calls than the caps allow.
fn calls_are_counted(root: &Root, now: Timestamp) {
    let call = LlmCall { program: "p", batch: "b", purpose: "ask", prompt_bytes: 1 };
    let budget = CallBudget::of(root, 3, 5);
    let left = || budget.left(now).map(|(run, day)| run.min(day));
    let before = match left() {
        Err(error) => return is_told(&error.line()),
        Ok(0) => return is_told(&budget.spent(now).unwrap().unwrap()),
        Ok(before) => before,
    };
    assert!((1..=3).contains(&before));
    for expected in (0..before).rev() {
        budget.start(call, now).unwrap();
        budget.end(call, now, std::time::Duration::from_millis(7), 3, "ok").unwrap();
        assert_eq!(left().unwrap(), expected);
    }
}

/// A batch's state is taken up as it was saved, or refused.
fn a_batch(is_consolidate: bool, scratch: &Scratch, root: &Root, bytes: &[u8]) {
    let (batches, dir) = match is_consolidate {
        true => (Batches::of_queue(root), "batches"),
        false => (Batches::of_defrag(root), "defrag"),
    };
    let id = "batch__AAAAAAAAAAAA";
    assert!(bears_an_id(&format!("x {id} y")));
    scratch.put(&format!(".agent-memory/{dir}/{id}/batch.json"), bytes);
    let batch = batches.named(id).unwrap();
    assert_eq!(batches.all().unwrap().len(), 1);
    if is_consolidate {
        let redactor = Redactor::new(true, &[]).unwrap();
        resumes(&Consolidate { redactor: &redactor, max_prompt_bytes: 1000 }, &batch);
    } else {
        let redactor = Redactor::new(true, &[]).unwrap();
        let (max_prompt_bytes, max_hot_tokens) = (1000, 100);
        let machine = Defrag { redactor: &redactor, max_prompt_bytes, max_hot_tokens, allows_loss: false };
        resumes(&machine, &batch);
    }
}

/// Whatever was saved is wanted again when it is taken up again.
fn resumes<P: Pipeline>(pipeline: &P, batch: &Batch) {
    given(batch.load::<Saved<StateOf<P>>>(), |saved| {
        let saved = saved.unwrap();
        let state = pipeline.step(saved.state, Event::Resumed);
        P::name(&state);
        batch.save(&Saved { progress: saved.progress.clone(), state: state.clone() }).unwrap();
        let again = batch.load::<Saved<StateOf<P>>>().unwrap().unwrap();
        assert_eq!((&again.progress, &again.state), (&saved.progress, &state));
        assert_eq!(pipeline.step(again.state, Event::Resumed), state);
    });
}
