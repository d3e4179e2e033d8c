//! What the programs say of themselves in `health.json`, and whether a session that starts now is told what it should know.

use crate::base::text::counted;
use crate::memory::doctor::context::CheckContext;
use crate::memory::doctor::finding::{Check, Diagnosis};
use crate::memory::recall::probe;
use crate::store::health::{Health, Trouble, TroubleKind};
use jiff::SignedDuration;

/// Hooks that gave nothing longer ago are no longer told.
const TOLD: SignedDuration = SignedDuration::from_hours(7 * 24);

pub(super) fn check(cx: &CheckContext, to: &mut Diagnosis) {
    let (root, now) = (cx.root, cx.env.now());
    let health = Health::load(root);
    let told = |trouble: &Trouble| {
        format!(", since {:.0}, last at {:.0}: {}", trouble.since, trouble.last, trouble.why)
    };
    if let Some(trouble) = health.troubles.get(&TroubleKind::Recall)
        && now.duration_since(trouble.last) <= TOLD
    {
        let times = counted(trouble.count, "time", "times");
        let what = format!("memory-recall gave nothing {times}{}", told(trouble));
        to.warning(Check::Recall, root.path(), what, SLOW);
    }
    if let Some(trouble) = health.troubles.get(&TroubleKind::Commit) {
        let commits =
            if trouble.count == 1 { "commit".to_owned() } else { format!("{} commits", trouble.count) };
        let what = format!("the last {commits} failed{}", told(trouble));
        to.warning(Check::History, root.path(), what, "correct what it names; the next change commits all");
    }
    if let Some(trouble) = health.standing(TroubleKind::Waiting) {
        let what =
            format!("{} runs in a row left all that waits in the queue{}", trouble.count, told(trouble));
        to.warning(Check::Queue, &root.inbox(), what, "correct what it names, then run memory-consolidate");
    }
    if let Some(trouble) = health.standing(TroubleKind::Unheard) {
        let sessions = counted(trouble.count, "session", "sessions");
        let what =
            format!("{sessions} ended without a hook, and memory-consolidate queued them{}", told(trouble));
        let mend = "nothing is lost; if nobody killed them, look whether that program runs its hooks";
        to.warning(Check::Hooks, root.path(), what, mend);
    }
    if let Some(trouble) = health.standing(TroubleKind::Memories) {
        let what = format!(
            "{} changed at once and are not queued, since {:.0}",
            counted(trouble.count, "file of built-in memories", "files of built-in memories"),
            trouble.since
        );
        to.warning(Check::Queue, root.path(), what, "to queue them: memory-capture --past 30d");
    }
    if let Some(last) = health.unsynced(now) {
        let mend = "memory-sync says why; to sync no more: memory-sync --leave";
        to.warning(Check::Sync, root.path(), format!("the notes were synced last at {last:.0}"), mend);
    }
}

const SLOW: &str =
    "sessions go on without their notes; if it is slow, see AGENT_MEMORY_RECALL_MS in memory-recall(1)";

/// Before the other checks, which would slow it down.
pub(super) fn recall(cx: &CheckContext, to: &mut Diagnosis) {
    if cx.root.topics().is_dir()
        && let Err(error) = probe(cx.config, cx.root, cx.env, cx.today)
    {
        let what = format!("memory-recall cannot answer: {}", error.line());
        to.warning(Check::Recall, cx.root.path(), what, SLOW);
    }
}
