//! The sessions that no hook has queued: their program was killed, or did not run its hooks. They are found as past ones are,
//! and queued as a hook would have done it.

use crate::base::cli::Reporter;
use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::reach;
use crate::base::text::counted;
use crate::config::memory::{self, MemoryConfig};
use crate::harness::spec::{PastSource, Spec};
use crate::memory::capture::known::LeftOut;
use crate::memory::capture::past::{PastSearch, PastSessions, Period};
use crate::memory::hooks::status::status;
use crate::memory::hooks::{found, installed_at};
use crate::store::health::{Health, TroubleKind};
use crate::store::place::Root;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeSet;

/// A session that was written to so lately may still run.
const QUIET: SignedDuration = SignedDuration::from_mins(30);
/// Older sessions are for `memory-capture --past`.
const LONGEST: SignedDuration = SignedDuration::from_hours(30 * 24);

/// More files of memories that change at once were copied or restored. A person has to say that they are wanted, and is told
/// until they are taken.
const MANY: usize = 20;

/// Queues the sessions that ended without a hook since the last time, in the programs that have our hooks, and what is new in
/// the memories of these programs. Returns what the person should know of it.
pub fn sweep(config: &MemoryConfig, root: &Root, env: &Env, reporter: &Reporter) -> Result<Vec<String>> {
    // Hooks queue into the usual store. What they miss is none of another one's.
    if memory::load(None, env, &Reporter::silent())
        .is_ok_and(|usual| usual.storage.root != config.storage.root)
    {
        return Ok(Vec::new());
    }
    let (now, mut off) = (env.now(), Vec::new());
    let mut harnesses = found(env);
    harnesses.retain(|spec| match status(spec, env) {
        Ok(Some(status)) => {
            off.extend(status.off.as_ref().map(|_| spec.title));
            // Who has switched them off wants nothing to be captured.
            let is_wanted = config.capture.sweep || config.capture.memories;
            is_wanted && status.captures() && status.off.is_none() && answers(spec, env)
        }
        Ok(None) | Err(_) => false,
    });
    let before = |span: SignedDuration| now.checked_sub(span).unwrap_or(now);
    let until = before(QUIET);
    let (health, installed) = (Health::load(root), installed_at(env));
    // Hooks that are put in again, by an update for instance, make no gap.
    let since = health.swept.filter(|at| *at <= now).or(installed).unwrap_or(until);
    let search = |since: Timestamp, has_memories: bool| {
        let period = Period::Between(since.max(before(LONGEST)), until);
        let has_sessions = config.capture.sweep && !has_memories;
        PastSearch { period, harnesses: &harnesses, has_sessions, has_memories, root, config, env }
    };
    let sessions = search(since, false);
    let past = if harnesses.is_empty() { PastSessions::default() } else { sessions.run()? };
    let (mut count, mut titles) = (0, BTreeSet::new());
    past.queue(false, &sessions, |queued| {
        count += 1;
        titles.extend(queued.entry.harness.spec().map(|spec| spec.title));
        Ok(())
    })?;
    let ended = counted(count, "session", "sessions") + " ended without a hook; queued now";
    let mut told = Vec::from_iter((count > 0).then_some(ended));
    let mut held = 0;
    if config.capture.memories && !harnesses.is_empty() {
        let installed = installed.filter(|_| health.troubles.contains_key(&TroubleKind::Memories));
        let since = installed.map_or(since, |installed| installed.min(since));
        held = queue_memories(&search(since, true), &mut told, reporter)?;
    }
    let titles = titles.into_iter().collect::<Vec<_>>().join(", ");
    let hooks_ran = [LeftOut::Consumed, LeftOut::Waiting].iter().any(|why| past.left_out.contains_key(why));
    Health::change(root, |health| {
        // Where hooks are switched off for a time, what ends in that time is not missed afterwards.
        health.swept = (installed.is_some() || !harnesses.is_empty()).then_some(until);
        health.set(TroubleKind::HooksOff, off.len(), &off.join(", "), now);
        health.set(TroubleKind::Memories, held, "", now);
        match count {
            0 if hooks_ran || harnesses.is_empty() => health.end(TroubleKind::Unheard),
            0 => {}
            count if hooks_ran => health.set(TroubleKind::Unheard, count, &titles, now),
            count => health.add(TroubleKind::Unheard, count, &titles, now),
        }
    });
    Ok(told)
}

/// Queues what is new in built-in memories, unless it is too much at once: returns how many files that are.
fn queue_memories(search: &PastSearch, told: &mut Vec<String>, reporter: &Reporter) -> Result<usize> {
    let new = search.run()?;
    let count = new.sessions.len();
    let files = counted(count, "file of built-in memories", "files of built-in memories");
    if count > MANY {
        reporter.warn(&format!(
            "{files} changed at once and are not queued; to look at them: memory-capture --past 30d --dry-run"
        ));
        return Ok(count);
    }
    if count > 0 {
        new.queue(false, search, |_| Ok(()))?;
        told.push(format!("{files} changed; queued now"));
    }
    Ok(0)
}

/// The places where it keeps its sessions are on no dead mount.
fn answers(spec: &Spec, env: &Env) -> bool {
    let (home, patterns) = match &spec.past {
        PastSource::Files(home, patterns) => (home, *patterns),
        PastSource::Copies(home, pattern, _) => (home, std::slice::from_ref(pattern)),
        PastSource::Asked(home, sign, _) => (home, std::slice::from_ref(sign)),
    };
    let memory = spec.memory.as_ref().map(|memory| (&memory.home, memory.files));
    let fixed = |pattern: &&'static str| pattern.split('*').next().unwrap_or_default();
    [Some((home, patterns)), memory].into_iter().flatten().all(|(home, patterns)| {
        let dir = home.dir(env);
        dir.is_some_and(|dir| patterns.iter().all(|pattern| reach::answers(&dir.join(fixed(pattern)))))
    })
}
