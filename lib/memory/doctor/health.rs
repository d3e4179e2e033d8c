//! What the programs say of themselves in `health.json`, and whether a session that starts now is told what it should know.

use crate::base::text::counted;
use crate::memory::doctor::finding::{Check, CheckContext, Diagnosis};
use crate::memory::recall::probe;
use crate::store::health::{Health, Trouble, TroubleKind};
use jiff::SignedDuration;

/// Hooks that gave nothing longer ago are no longer told.
const TOLD: SignedDuration = SignedDuration::from_hours(7 * 24);

pub(super) fn check(cx: &CheckContext, to: &mut Diagnosis) {
    let (root, now) = (cx.root, cx.env.now());
    let health = Health::load(root);
    for (kind, trouble) in &health.troubles {
        let Trouble { count, since, last, why } = trouble;
        let told = format!("since {since:.0}, last at {last:.0}: {why}");
        let (check, what, mend) = match kind {
            TroubleKind::Recall if now.duration_since(*last) <= TOLD => {
                let times = counted(*count, "time", "times");
                (Check::Recall, format!("memory-recall gave nothing {times}, {told}"), SLOW)
            }
            TroubleKind::Commit => {
                let commits = if *count == 1 { "commit".to_owned() } else { format!("{count} commits") };
                let mend = "correct what it names; the next change commits all";
                (Check::History, format!("the last {commits} failed, {told}"), mend)
            }
            _ if health.standing(*kind).is_none() => continue,
            TroubleKind::Waiting => {
                let what = format!("{count} runs in a row left all that waits in the queue, {told}");
                (Check::Queue, what, "correct what it names, then run memory-consolidate")
            }
            TroubleKind::Unheard => {
                let sessions = counted(*count, "session", "sessions");
                let what =
                    format!("{sessions} ended without a hook, and memory-consolidate queued them, {told}");
                let mend = "nothing is lost; if nobody killed them, look whether that program runs its hooks";
                (Check::Hooks, what, mend)
            }
            TroubleKind::Memories => {
                let files = counted(*count, "file of built-in memories", "files of built-in memories");
                let what = format!("{files} changed at once and are not queued, since {since:.0}");
                (Check::Queue, what, "to queue them: memory-capture --past 30d")
            }
            TroubleKind::Recall | TroubleKind::Unread | TroubleKind::HooksOff => continue,
        };
        let inbox = root.inbox();
        let file = if *kind == TroubleKind::Waiting { &inbox } else { root.path() };
        to.warning(check, file, what, mend);
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
