//! `memory-capture --past`: the preview of what lies on this machine, the question, the queueing.

use crate::base::cli::{Args, Context};
use crate::base::error::Result;
use crate::base::text::{counted, one_line, size};
use crate::config::memory::{self, MemoryConfig};
use crate::harness::HARNESSES;
use crate::memory::capture::past::{PastSearch, PastSession, PastSessions, Period};
use crate::memory::consolidate::work::calls;
use crate::program::memory_capture::{nothing_queued, print_queued};
use crate::program::notes::{can_ask, is_agreed};
use crate::store::journal::entry::Harness;
use crate::store::place::Root;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Of how many unreadable sessions it is told why.
const TOLD: usize = 3;

pub(super) fn queue_past(period: Period, only: Option<Harness>, args: &Args, cx: &mut Context) -> Result<()> {
    let config = &memory::load(args.path("config"), &cx.env, &cx.reporter)?;
    let root = Root::open(&config.storage.root)?;
    let all = only.map_or(HARNESSES.to_vec(), |only| only.spec().into_iter().collect());
    let env = cx.env.clone();
    let (has_sessions, has_memories) = (true, config.capture.memories);
    let search =
        PastSearch { period, harnesses: &all, has_sessions, has_memories, root: &root, config, env: &env };
    let past = search.run()?;
    for why in past.unreadable.iter().take(TOLD) {
        cx.reporter.warn(why);
    }
    let sizes = past.sessions.iter().map(|session| (session.context.repo.as_deref(), session.shown));
    let calls = calls(sizes, config.llm.max_prompt())?;
    preview(&past, calls, config, cx);
    if args.has("dry-run") {
        return list(&past, calls, cx);
    }
    if past.sessions.is_empty() {
        return nothing_queued("no session was found that is not known", cx);
    }
    // Without a terminal nobody can be asked, and the command itself is the answer.
    let them = if past.sessions.len() == 1 { "it" } else { "them" };
    let is_asked = !args.has("yes") && can_ask(cx);
    if is_asked && !is_agreed(&format!("Queue {them}? [y/N] "), false, cx)? {
        return nothing_queued("you have not said yes", cx);
    }
    past.queue(true, &search, |queued| print_queued(queued, cx))
}

fn preview(past: &PastSessions, calls: usize, config: &MemoryConfig, cx: &Context) {
    let mut of_program: BTreeMap<&str, usize> = BTreeMap::new();
    let (memories, sessions): (Vec<_>, Vec<_>) = past.sessions.iter().partition(|one| one.is_memory());
    for session in &sessions {
        *of_program.entry(session.harness.name()).or_default() += 1;
    }
    let programs: Vec<String> = of_program.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let mut what = match sessions.len() {
        0 => "no sessions".to_owned(),
        count => format!("{} ({})", counted(count, "session", "sessions"), programs.join(", ")),
    };
    if !memories.is_empty() {
        what += &format!(", {} of built-in memories", counted(memories.len(), "file", "files"));
    }
    let calls = counted(calls, "call", "calls");
    let cap = config.llm.max_calls_per_day;
    let bytes = size(past.sessions.iter().map(|session| session.bytes).sum());
    cx.say(&format!("{what}, {bytes}, about {calls} of the LLM (at most {cap} a day)"));
    if !past.left_out.is_empty() {
        let reasons: Vec<String> =
            past.left_out.iter().map(|(why, count)| format!("{count} {why}")).collect();
        cx.say(&format!("left out: {}", reasons.join(", ")));
    }
}

fn list(past: &PastSessions, calls: usize, cx: &mut Context) -> Result<()> {
    if cx.json {
        let left_out: Map<String, Value> =
            past.left_out.iter().map(|(why, count)| (why.key().to_owned(), json!(count))).collect();
        let sessions: Vec<Value> = past.sessions.iter().map(described).collect();
        let bytes: u64 = past.sessions.iter().map(|session| session.bytes).sum();
        return cx.stdout.json(&json!({
            "queued": false, "sessions": sessions, "bytes": bytes, "calls": calls, "leftOut": left_out,
        }));
    }
    past.sessions.iter().try_for_each(|session| {
        let repo = session.context.repo.as_deref().unwrap_or("-");
        cx.stdout.line(&format!(
            "{:.0}\t{}\t{}\t{}\t{}",
            session.at,
            session.harness,
            session.bytes,
            one_line(repo, 4096),
            one_line(&session.place(), 4096)
        ))
    })
}

fn described(session: &PastSession) -> Value {
    let mut json = session.entry(session.at).json();
    json["context"]["past"] = json!(true);
    json["bytes"] = json!(session.bytes);
    // This is no entry yet: the time is the session's own.
    json["changed"] = json["timestamp"].take();
    if let Some(object) = json.as_object_mut() {
        object.remove("timestamp");
        object.remove("version");
    }
    json
}
