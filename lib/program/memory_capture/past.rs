//! `memory-capture --past`: the preview of what lies on this machine, the question, the queueing.

use crate::base::cli::{Reporter, Stdout};
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::text::{one_line, size};
use crate::base::{stderr, stdin};
use crate::config::memory::MemoryConfig;
use crate::memory::capture::past::{Past, PastSession, Search};
use crate::memory::consolidate::forecast;
use crate::program::memory_capture::forms::PastSessions;
use crate::program::memory_capture::{ABOUT, nothing_queued, print_json, redact};
use crate::store::journal::{Journal, Put};
use crate::store::place::Root;
use jiff::{Span, Timestamp};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::IsTerminal;

/// How long a person may think, in seconds.
const PATIENCE: u64 = 60 * 60;
/// Of how many unreadable sessions it is told why.
const TOLD: usize = 3;

pub(super) fn queue_past(
    wanted: &PastSessions,
    config: &MemoryConfig,
    json: bool,
    env: &Env,
    reporter: &Reporter,
    stdout: &mut Stdout,
) -> Result<()> {
    let root = Root::at(&config.storage.root);
    let search = Search { period: wanted.period, only: wanted.harness, root: &root, config, env };
    let past = search.run()?;
    for why in past.unreadable.iter().take(TOLD) {
        reporter.warn(why);
    }
    let sizes = past.sessions.iter().map(|session| (session.context.repo.as_deref(), session.shown));
    let calls = forecast::calls(sizes, config.llm.max_prompt())?;
    preview(&past, calls, config);
    if wanted.is_dry {
        return list(&past, calls, json, stdout);
    }
    if past.sessions.is_empty() {
        return nothing_queued("no session was found that is not known", json, stdout);
    }
    if !wanted.is_sure && !is_agreed(&past, json, stdout)? {
        return nothing_queued("you have not said yes", json, stdout);
    }
    let journal = Journal::at(&root);
    let mut last: Option<Timestamp> = None;
    for session in &past.sessions {
        // Each a millisecond later than the one before, so that they keep their order.
        let after = last.and_then(|last| last.checked_add(Span::new().milliseconds(1)).ok());
        let now = after.map_or(env.now(), |after| after.max(env.now()));
        last = Some(now);
        let mut entry = session.entry(now);
        redact(&mut entry, &config.redact)?;
        // A hook may have queued it meanwhile.
        let Put::Queued(waiting) = journal.put(&entry)? else { continue };
        match json {
            true => print_json(&waiting, stdout)?,
            false => stdout.line(&waiting.path.to_string_lossy())?,
        }
    }
    Ok(())
}

fn preview(past: &Past, calls: usize, config: &MemoryConfig) {
    let say = |text: &str| stderr::line(&format!("{}: {text}", ABOUT.name));
    let mut of_program: BTreeMap<&str, usize> = BTreeMap::new();
    for session in &past.sessions {
        *of_program.entry(session.harness.name()).or_default() += 1;
    }
    let programs: Vec<String> = of_program.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let sessions = match past.sessions.len() {
        0 => "no sessions".to_owned(),
        1 => format!("1 session ({})", programs.join(", ")),
        count => format!("{count} sessions ({})", programs.join(", ")),
    };
    let calls = if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") };
    let cap = config.llm.max_calls_per_day;
    let bytes = size(past.sessions.iter().map(|session| session.bytes).sum());
    say(&format!("{sessions}, {bytes}, about {calls} of the LLM (at most {cap} a day)"));
    if !past.left_out.is_empty() {
        let reasons: Vec<String> =
            past.left_out.iter().map(|(why, count)| format!("{count} {why}")).collect();
        say(&format!("left out: {}", reasons.join(", ")));
    }
}

/// Without a terminal nobody can be asked, and the command itself is the answer.
fn is_agreed(past: &Past, json: bool, stdout: &mut Stdout) -> Result<bool> {
    if json || !stdout.is_terminal() || !std::io::stdin().is_terminal() {
        return Ok(true);
    }
    let them = if past.sessions.len() == 1 { "it" } else { "them" };
    stdout.text(&format!("Queue {them}? [y/N] "))?;
    stdout.flush()?;
    let typed = stdin::answer(Deadline::after_seconds(PATIENCE))?;
    Ok(typed.is_some_and(|typed| matches!(typed.trim().to_lowercase().as_str(), "y" | "yes")))
}

fn list(past: &Past, calls: usize, json: bool, stdout: &mut Stdout) -> Result<()> {
    if json {
        let left_out: Map<String, Value> =
            past.left_out.iter().map(|(why, count)| (why.key().to_owned(), json!(count))).collect();
        let sessions: Vec<Value> = past.sessions.iter().map(described).collect();
        let bytes: u64 = past.sessions.iter().map(|session| session.bytes).sum();
        return stdout.json(&json!({
            "queued": false, "sessions": sessions, "bytes": bytes, "calls": calls, "leftOut": left_out,
        }));
    }
    past.sessions.iter().try_for_each(|session| {
        let repo = session.context.repo.as_deref().unwrap_or("-");
        stdout.line(&format!(
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
    json["bytes"] = json!(session.bytes);
    // This is no entry yet: the time is the session's own.
    json["changed"] = json["timestamp"].take();
    if let Some(object) = json.as_object_mut() {
        object.remove("timestamp");
        object.remove("version");
    }
    json
}
