//! The hooks in the settings of the harnesses on this machine: are they there, do they lead to programs that exist, and
//! when did a harness last capture something?

use crate::harness::spec::Spec;
use crate::memory::doctor::finding::{Check, CheckContext, Diagnosis, HarnessState};
use crate::memory::hooks::found;
use crate::memory::hooks::status::status;
use crate::store::batch::Batches;
use crate::store::journal::{Journal, harness_and_time};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A harness that is used at all captures more often.
const SILENT: SignedDuration = SignedDuration::from_hours(30 * 24);

pub(super) fn check(cx: &CheckContext, to: &mut Diagnosis) {
    let last = last_captures(cx);
    for spec in found(cx.env) {
        of(spec, last.get(spec.name).copied(), cx, to);
    }
}

fn of(spec: &'static Spec, last_capture: Option<Timestamp>, cx: &CheckContext, to: &mut Diagnosis) {
    let title = spec.title;
    let status = match status(spec, cx.env) {
        Ok(Some(status)) => status,
        Ok(None) => return,
        Err(error) => {
            let file = spec.home.dir(cx.env).unwrap_or_default();
            let what = format!("the hooks of {title} cannot be checked: {}", error.message());
            return to.warning(Check::Hooks, &file, what, "correct the file");
        }
    };
    let mend = format!("memory-install-hooks --harness {}", spec.name);
    let last_day = last_capture.map(|at| cx.env.day(at));
    // On a new machine nothing has been captured yet, and that is no trouble.
    let seen = last_day.map(|day| format!("; it last captured on {day}")).unwrap_or_default();
    if !status.missing.is_empty() {
        let what = format!("{title} has no hook that runs {}{seen}", status.missing.join(" or "));
        to.warning(Check::Hooks, &status.file, what, mend.as_str());
    }
    if let Some(event) = status.missing_act.filter(|_| cx.config.recall.before_acts) {
        let what = format!("{title} has no hook at {event}: no note comes with the call of a tool");
        to.warning(Check::Hooks, &status.file, what, mend.as_str());
    }
    for program in &status.gone {
        let what = format!("the hooks of {title} run \"{program}\", which does not exist{seen}");
        to.warning(Check::Hooks, &status.file, what, mend.as_str());
    }
    if let Some(why) = &status.unreadable {
        let what = format!("{title} cannot read its settings, so no hook runs: {why}");
        to.warning(Check::Hooks, &status.file, what, "correct the file");
    }
    if let Some(off) = &status.off {
        let what = format!("{title} runs no hook, because {off}{seen}");
        to.warning(Check::Hooks, &status.file, what, "remove that setting, or memory-uninstall-hooks");
    }
    let is_whole = status.is_whole();
    let silence = last_capture.map(|at| cx.env.now().duration_since(at)).filter(|since| *since > SILENT);
    if let Some((since, day)) = silence.zip(last_day).filter(|_| is_whole) {
        let days = since.as_hours() / 24;
        let what = format!("{title} has its hooks, but it last captured on {day}, {days} days ago");
        let mend = spec.next_step.unwrap_or("end a session in it and look into the queue");
        to.warning(Check::Hooks, &status.file, what, mend);
    }
    let (hooks, mend) = match (status.off.is_some(), is_whole) {
        (false, true) if status.by_plugin => ("its hooks are installed by the plugin", "nothing to do"),
        (true, _) => ("its hooks are switched off", "see the warning"),
        (false, true) => ("its hooks are installed", "nothing to do"),
        (false, false) => ("hooks are missing", "memory-install-hooks"),
    };
    let (harness, file) = (spec.name, status.file);
    let last = last_day.map_or("never captured".to_owned(), |day| format!("last captured on {day}"));
    let texts = [format!("{harness}: {hooks}, {last}"), mend.to_owned()];
    to.harnesses.push(HarnessState { harness, file, is_whole, last_capture, texts });
}

/// By harness, from the names of all queue entries that are still there, whatever became of them.
fn last_captures(cx: &CheckContext) -> BTreeMap<String, Timestamp> {
    let inbox = cx.root.inbox();
    let mut dirs: Vec<PathBuf> = vec![inbox.join(".processed"), inbox.join(".failed"), inbox];
    dirs.extend(Batches::of_queue(cx.root).all().unwrap_or_default().into_iter().map(|batch| batch.dir));
    let mut last = BTreeMap::new();
    for id in dirs.iter().flat_map(|dir| Journal::ids_in(dir).unwrap_or_default()) {
        let Some((harness, at)) = harness_and_time(&id) else { continue };
        let newest = last.entry(harness.to_owned()).or_insert(at);
        *newest = at.max(*newest);
    }
    last
}
