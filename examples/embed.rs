//! A host of its own: notes in memory (`storage.rs`), a "model" that is a function, both pipelines of the crate between them,
//! and what a host does with notes besides.
//!
//! The machines say what to do; this file does it. Nothing here touches a file or starts a process, but the same loop
//! could keep notes in a database and call a model over the network. Run it with `cargo run --example embed`.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example shows what it does, and has a clock of its own"
)]

mod storage;

use axe::consolidate::{
    self, Claimed, Consolidate, Knowledge, Made, Material, Passage, Record, RelatedQuery, Role, ShownSession,
    Slice, Speaker,
};
use axe::defrag::{self, Corpus, Defrag, Scanned};
use axe::notes::{
    Author, Changed, EntryId, NoteService, Patch, Persistence, Place, SectionLimits, Source, Tier,
};
use axe::pipeline::{Answer, Begun, Event, Pipeline, Redactor, State, WalkEnd, Work};
use axe::queue::{QueueEntry, Retrieval};
use axe::{Error, ErrorKind, Result};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use storage::Memory;

/// How long a prompt may be, in bytes.
const MAX_PROMPT: usize = 100_000;

/// The model: it answers from what the prompt shows, as any model would.
fn model(prompt: &str) -> String {
    let batch = prompt.lines().find_map(|line| line.strip_prefix("batch: ")).unwrap_or_default();
    let shown = |start: &str| -> Vec<&str> {
        prompt.lines().filter_map(|line| line.strip_prefix(start)?.split(' ').next()).collect()
    };
    let sessions = shown("<<< session ");
    if sessions.is_empty() {
        let operations: Vec<Value> =
            shown("<<< note ").iter().map(|id| json!({"op": "tier", "id": id, "tier": "hot"})).collect();
        return json!({"batch": batch, "operations": operations, "notes": "All of it matters."}).to_string();
    }
    let entry = json!({"title": "The dev server listens on port 4310", "summary": "Port 4310, not 8080.",
        "tags": ["topic__dev"], "body": "The dev server listens on port 4310.", "scope": "repo",
        "sources": sessions});
    json!({"batch": batch, "entries": [entry]}).to_string()
}

/// From queue entries to notes.
fn consolidated(
    queue: &BTreeMap<String, QueueEntry>,
    notes: &Memory,
    redactor: &Redactor,
) -> Result<WalkEnd> {
    let pipeline = Consolidate { redactor, max_prompt_bytes: MAX_PROMPT };
    let now = Timestamp::now();
    // Each entry is one turn of a person's.
    let said = |id: &str| match queue.get(id).map(|entry| &entry.retrieval) {
        Some(Retrieval::Inline { title, body, .. }) => {
            let text = format!("{title}\n\n{body}");
            Some(Passage { number: 1, role: Role::User, at: None, text, output: None, ..Passage::default() })
        }
        _ => None,
    };
    let mut state = pipeline.step(State::Begin, Event::Resumed);
    loop {
        // Here a host saves the state: whatever happens from now on, it can go on from here.
        state = serde_json::from_value(serde_json::to_value(&state).map_err(broken)?).map_err(broken)?;
        println!("consolidate: {}", Consolidate::name(&state));
        let event = match state.clone() {
            State::Ended { ending } => return Ok(ending),
            State::Paused { failure, .. } => return Ok(WalkEnd::Paused(failure)),
            State::Ask { question, .. } => Event::Answered(Answer::Reply(model(&question.prompt))),
            State::Begin => {
                let queue_ids = queue.keys().cloned().collect();
                let claimed = Claimed { queue_ids, has_llm: true, ..Claimed::default() };
                Event::Begun(Begun::Work(Work::new("batch__embed1embed1".to_owned(), claimed)))
            }
            State::Divide { work } => {
                let whole = |id: &String| Slice { queue_id: id.clone(), from: 0, to: 1, number: 1, of: 1 };
                let parts = vec![work.own.queue_ids.iter().map(whole).collect()];
                Event::Divided(Work { parts, ..work })
            }
            State::Gather { work } => {
                let session = |slice: &Slice| {
                    let (slice, entry) = (slice.clone(), queue.get(&slice.queue_id)?.clone());
                    let passages = said(&slice.queue_id).into_iter().collect();
                    Some(ShownSession { slice, entry, cut: 0, earlier: Vec::new(), left_out: 0, passages })
                };
                let sessions: Vec<ShownSession> =
                    work.part().into_iter().flatten().filter_map(session).collect();
                let query = RelatedQuery {
                    sessions: &sessions,
                    wanted: &work.second_look.map(|look| look.wanted).unwrap_or_default(),
                    // This host has no checkouts that notes could rest on.
                    here: &[],
                    asked: &Default::default(),
                    redactor,
                    room: 10_000,
                    whole: 8_000,
                };
                let (related, tags) = query.find(notes)?;
                Event::Gathered(Material { now, sessions, related, waiting: Vec::new(), tags })
            }
            State::Check { work, .. } => {
                let known = |id: &EntryId| Some((id.clone(), notes.find_own(id).ok()?));
                // What a person typed counts for more than what a tool printed.
                let mut record = Record::default();
                for passage in queue.keys().filter_map(|id| said(id)) {
                    record.add(Some(passage.number), Speaker::Person, &passage.text);
                }
                Event::Found(Knowledge {
                    at: now,
                    ids: notes.ids()?,
                    notes: work.notes().filter_map(known).collect(),
                    made: Default::default(),
                    tags: Default::default(),
                    entries: queue.clone(),
                    record: record.into(),
                    proposals: notes.proposals()?.0,
                    grounds: Default::default(),
                })
            }
            // After the last change, a host remembers what has been seen of each session.
            State::Apply { plan, done, .. } => Event::Applied(match plan.changes.get(done) {
                None => Made::default(),
                Some(change) => {
                    // This example never resumes another process's batch.
                    let made = consolidate::write(notes, change, plan.at, false)?;
                    plan.warnings
                        .iter()
                        .chain(&made.warnings)
                        .for_each(|warning| println!("warning: {warning}"));
                    made
                }
            }),
            State::Close { work, .. } => {
                work.own.verdicts.iter().for_each(|(id, verdict)| println!("{id}: {verdict}"));
                Event::Done
            }
            State::Refresh { .. } => Event::Done,
            State::Commit { .. } => Event::Done,
        };
        state = pipeline.step(state, event);
    }
}

/// Puts the notes in order.
fn defragmented(notes: &Memory, redactor: &Redactor) -> Result<WalkEnd> {
    let (max_prompt_bytes, max_hot_tokens) = (MAX_PROMPT, 2500);
    let pipeline = Defrag { redactor, max_prompt_bytes, max_hot_tokens, allows_loss: false };
    let now = Timestamp::now();
    let today = now.to_zoned(TimeZone::system()).date();
    let mut structure = Default::default();
    let mut state = pipeline.step(State::Begin, Event::Resumed);
    loop {
        println!("defrag: {}", Defrag::name(&state));
        let event = match state.clone() {
            State::Ended { ending } => return Ok(ending),
            State::Paused { failure, .. } => return Ok(WalkEnd::Paused(failure)),
            State::Ask { question, .. } => Event::Answered(Answer::Reply(model(&question.prompt))),
            State::Begin => {
                let total = defrag::read(notes)?.0.len();
                let scanned = Scanned { is_forced: true, total, ..Scanned::default() };
                let work = || Work::new("batch__embed2embed2".to_owned(), scanned);
                Event::Begun(if total == 0 { Begun::Nothing } else { Begun::Work(work()) })
            }
            State::Divide { work } => {
                let (all, _) = defrag::read(notes)?;
                let divided = defrag::divide(&pipeline, &all, &|_| true, &|_| true)?;
                structure = divided.structure;
                Event::Divided(Work { parts: divided.parts, ..work })
            }
            State::Gather { .. } => {
                let (notes, _) = defrag::read(notes)?;
                Event::Gathered(Corpus { notes, structure: structure.clone(), today })
            }
            State::Check { work, .. } => Event::Found(defrag::look_up(notes, &work, now)?),
            State::Apply { plan, .. } => {
                let done = defrag::carry_out(notes, plan)?;
                println!("{} operations made, {} dropped", done.operations.len(), done.dropped.len());
                Event::Applied(0)
            }
            State::Close { failure, .. } => {
                failure.iter().for_each(|failure| println!("failed: {failure}"));
                Event::Done
            }
            State::Refresh { .. } => Event::Done,
            State::Commit { .. } => Event::Done,
        };
        state = pipeline.step(state, event);
    }
}

fn broken(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::Corrupt, "the state cannot be saved").because(error)
}

/// What a host does with notes besides: it shows them, finds them, and lets people and agents change them.
fn used(service: &NoteService<Memory>) -> Result<()> {
    let repo = Some("github.com/o/r");
    println!("\n{}", service.section(&[repo, None], SectionLimits::default(), Some(4000))?.text());
    println!("\n{}", service.recall("where does the dev server listen?", repo, 3, 1600)?.text);
    let found = service.search(Place::Topics, "ports", None, 10)?.found;
    let listed = service.list(Place::Topics, |meta| meta.tier == Tier::Hot)?.found;
    assert_eq!((found.len(), listed.len()), (1, 1), "one note was made, and it was found to matter");

    let id = &found[0].view.meta.id;
    assert_eq!(service.read(id)?.entry.meta().used, 1, "a read is counted");
    let patch = Patch { pinned: Some(true), ..Patch::default() };
    service.update_meta(id, &patch, &Author::Person)?;
    // What a person has made their own, an agent changes only with that person's consent.
    let agent = Author::Agent(Source { harness: Some("host".to_owned()), ..Source::default() });
    if let Changed::Waits(proposal) = service.update_body(id, "It listens on port 4320 now.", &agent)? {
        let pending = service.pending(proposal)?;
        println!("{} waits:\n{}", pending.proposal.id, pending.diff().join("\n"));
        service.accept(&pending.proposal.id, None)?;
    }
    assert!(service.look(id)?.entry.body().starts_with(b"It listens on port 4320"));
    service.remove(id, &Author::Person)?;
    assert_eq!(service.look(id)?.place, Place::Archive);
    Ok(())
}

fn main() -> Result<()> {
    // In a host, this is a test.
    axe::conformance(Memory::default)?;

    let now = Timestamp::now();
    let today = now.to_zoned(TimeZone::system()).date();
    let service = NoteService::new(Memory::default(), now, today);
    let queued = json!({"version": 1, "timestamp": "2026-02-28T12:00:00Z", "harness": "manual",
        "retrieval": {"method": "inline", "title": "Ports", "body": "The dev server is on 4310 now.",
            "tags": [], "scope": "global", "threadId": null},
        "context": {"cwd": "/work", "repo": "github.com/o/r"}});
    service.enqueue(&QueueEntry::parse(queued.to_string().as_bytes())?)?;
    let redactor = Redactor::default();

    let (queue, _) = service.queued()?;
    let ending = consolidated(&queue, service.notes(), &redactor)?;
    assert_eq!(ending, WalkEnd::Completed);
    queue.keys().try_for_each(|id| service.dequeue(id))?;
    let ending = defragmented(service.notes(), &redactor)?;
    assert_eq!(ending, WalkEnd::Completed);
    used(&service)?;

    for (path, bytes) in service.notes().files().iter() {
        println!("\n{}\n\n{}", path.display(), String::from_utf8_lossy(bytes));
    }
    Ok(())
}
