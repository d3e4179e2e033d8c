//! From a checked reply to what is to be written: ids, links, scope, and whether an update may replace its note.
//! Plain data that can be shown, saved, and carried out twice with the same result.

use crate::memory::consolidate::reply::{Proposed, Reply};
use crate::memory::facts::lost;
use crate::memory::hash::hash;
use crate::memory::links::{new_id, resolve_intra_batch_links};
use crate::store::entry::{EntryId, Scope, Source, Status, one_line};
use crate::store::journal::entry::QueueEntry;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The time that every note of it bears.
    pub at: Timestamp,
    pub notes: Vec<PlannedNote>,
    /// What was changed or left out, and why.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedNote {
    /// The new note's id. Of an update: the id that its text gets if the note is gone when it is written.
    pub id: EntryId,
    /// The note that is replaced.
    pub update: Option<EntryId>,
    /// The hash of the body that it has until then.
    pub replaces: Option<String>,
    /// That body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    pub created_at: i64,
    pub status: Status,
    pub title: String,
    pub summary: String,
    pub tags: Vec<String>,
    pub scope: Scope,
    pub body: String,
    pub sources: Vec<Origin>,
}

/// Where a note comes from, as it is saved with a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    pub harness: String,
    pub thread_id: Option<String>,
    pub repo: Option<String>,
    pub cwd: Option<String>,
}

impl Origin {
    pub(super) fn of(entry: &QueueEntry) -> Origin {
        Origin {
            harness: entry.harness.name().to_owned(),
            thread_id: entry.thread_id().map(str::to_owned),
            repo: entry.context.repo.clone(),
            cwd: entry.context.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned()),
        }
    }
}

impl From<&Origin> for Source {
    fn from(origin: &Origin) -> Source {
        Source {
            harness: Some(origin.harness.clone()),
            thread_id: origin.thread_id.clone(),
            repo: origin.repo.clone(),
            cwd: origin.cwd.clone(),
            at: None,
            other: Vec::new(),
        }
    }
}

/// What is known when a plan is made.
pub(crate) struct Known<'a> {
    pub(crate) at: Timestamp,
    /// Every id in use, aliases too.
    pub(crate) ids: BTreeSet<EntryId>,
    /// The bodies that were shown, and may be replaced.
    pub(crate) bodies: BTreeMap<EntryId, String>,
    /// Where each queue entry comes from.
    pub(crate) sources: BTreeMap<&'a str, Origin>,
}

/// `clean` takes secrets out of what the model wrote.
pub(crate) fn plan(reply: &Reply, known: Known, clean: impl Fn(&str) -> String) -> Plan {
    let Known { at, mut ids, bodies, sources } = known;
    let created_at = at.as_millisecond();
    let mut warnings = Vec::new();
    let mut labels = BTreeMap::new();
    let mut notes = Vec::new();
    for proposed in &reply.entries {
        let (note, warning) = planned(proposed, created_at, &mut ids, &bodies, &sources, &clean);
        if let Some(label) = &proposed.label {
            labels.insert(label.clone(), note.update.clone().unwrap_or_else(|| note.id.clone()));
        }
        // Some link by titles, whatever they are told.
        labels
            .entry(note.title.clone())
            .or_insert_with(|| note.update.clone().unwrap_or_else(|| note.id.clone()));
        warnings.extend(warning);
        notes.push(note);
    }
    for note in &mut notes {
        let old = note.update.as_ref().and_then(|id| bodies.get(id)).map_or("", String::as_str);
        let (body, unknown) = resolve_intra_batch_links(&note.body, &labels, &ids, old);
        note.body = body;
        warnings.extend(
            unknown
                .iter()
                .map(|link| format!("\"{}\": [[{link}]] has no target and is now plain text", note.title)),
        );
    }
    Plan { at, notes, warnings }
}

fn planned(
    proposed: &Proposed,
    created_at: i64,
    ids: &mut BTreeSet<EntryId>,
    bodies: &BTreeMap<EntryId, String>,
    sources: &BTreeMap<&str, Origin>,
    clean: &impl Fn(&str) -> String,
) -> (PlannedNote, Option<String>) {
    let title = one_line(&clean(&proposed.title));
    let mut body = clean(&proposed.body);
    let sources: Vec<Origin> =
        proposed.sources.iter().filter_map(|id| sources.get(id.as_str())).cloned().collect();
    let mut warning = proposed.refused.as_ref().map(|refused| {
        format!(
            "\"{title}\" was to replace \"{refused}\", which was not shown in full: it becomes a new note"
        )
    });
    let mut update = proposed.update.clone();
    let mut replaces = None;
    if let Some(id) = &proposed.update {
        let old = bodies.get(id);
        let missing = old.map_or_else(Vec::new, |old| lost(old, &body, &[], |id| ids.contains(id)).missing);
        let why = match old {
            None => Some(format!("\"{title}\" was to replace {id}, which has changed since it was read")),
            // Nor may it be named among the facts that would go.
            Some(old) if clean(old) != *old => {
                Some(format!("\"{title}\" was to replace {id}, which holds a secret that no model is shown"))
            }
            Some(_) if missing.is_empty() => None,
            Some(_) => {
                let some: Vec<&str> = missing.iter().copied().take(5).collect();
                Some(format!(
                    "\"{title}\" would remove {} facts from {id} ({})",
                    missing.len(),
                    some.join(", ")
                ))
            }
        };
        replaces = old.map(hash);
        if let Some(why) = why {
            warning = Some(format!("{why}: it becomes a new note with a link"));
            body = format!("{}\n\nSee also [[{id}]].\n", body.trim_end());
            (update, replaces) = (None, None);
        }
    }
    // Without a repository there is none that the note could belong to.
    let has_repo = sources.iter().any(|source| source.repo.is_some());
    let note = PlannedNote {
        id: new_id(&title, created_at, ids),
        before: update.as_ref().and_then(|id| bodies.get(id)).cloned(),
        update,
        replaces,
        created_at,
        status: Status::Consolidated,
        summary: one_line(&clean(&proposed.summary)),
        tags: proposed.tags.clone(),
        scope: if has_repo { proposed.scope } else { Scope::Global },
        title,
        body,
        sources,
    };
    (note, warning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::consolidate::reply::Skipped;

    fn id(title: &str) -> EntryId {
        EntryId::make(title, 0, |_| false)
    }

    fn proposed(label: &str, title: &str, body: &str) -> Proposed {
        Proposed {
            label: Some(label.to_owned()),
            update: None,
            refused: None,
            title: title.to_owned(),
            summary: "s".to_owned(),
            tags: vec!["topic__x".to_owned()],
            scope: Scope::Repo,
            body: body.to_owned(),
            sources: vec!["q1".to_owned()],
        }
    }

    fn planned(entries: Vec<Proposed>, bodies: &[(&EntryId, &str)], repo: Option<&str>) -> Plan {
        let origin =
            Origin { harness: "codex".to_owned(), thread_id: None, repo: repo.map(str::to_owned), cwd: None };
        let known = Known {
            at: Timestamp::UNIX_EPOCH,
            ids: bodies.iter().map(|(id, _)| (*id).clone()).collect(),
            bodies: bodies.iter().map(|(id, body)| ((*id).clone(), (*body).to_owned())).collect(),
            sources: BTreeMap::from([("q1", origin)]),
        };
        let reply =
            Reply { entries, skipped: vec![Skipped { source: "q2".to_owned(), reason: String::new() }] };
        plan(&reply, known, |text| text.replace("hunter2", "[redacted]"))
    }

    #[test]
    fn links_within_a_reply_become_ids_in_both_directions_and_to_updated_notes() {
        let old = id("old");
        let mut update = proposed("n3", "Mended", "[[n1]]");
        update.update = Some(old.clone());
        let all = vec![proposed("n1", "A", "see [[n2]], [[n3]]"), proposed("n2", "B", "see [[n1]]"), update];
        let plan = planned(all, &[(&old, "words")], Some("r"));
        let [a, b, c] = &plan.notes[..] else { panic!("{plan:?}") };
        assert_eq!(a.body, format!("see [[{}]], [[{old}]]", b.id));
        assert_eq!((&b.body, &c.body), (&format!("see [[{}]]", a.id), &format!("[[{}]]", a.id)));
        assert_eq!((c.update.as_ref(), plan.warnings.len()), (Some(&old), 0));
        assert!(c.id != old, "an update whose note is gone gets an id of its own");
    }

    #[test]
    fn a_link_that_leads_nowhere_becomes_plain_text_and_is_named() {
        let old = id("old");
        let body = format!("[[{old}]] [[n9]] [[{}]] a [[0]] and [[ -f x ]] and [[open", id("gone"));
        let plan = planned(vec![proposed("n1", "A", &body)], &[(&old, "")], None);
        let wanted = format!("[[{old}]] n9 {} a [[0]] and [[ -f x ]] and [[open", id("gone"));
        assert_eq!(plan.notes[0].body, wanted);
        assert_eq!(plan.warnings.len(), 2);
        assert!(plan.warnings[0].contains("\"A\": [[n9]]"), "{:?}", plan.warnings);
    }

    #[test]
    fn code_keeps_its_brackets() {
        let body = "`[[n1]]` [[n1]]\n```sh\n[[n1]]\n~~~\n[[n1]]\n```\n~~~\n[[n1]]\n~~~\n[[n1]]\n";
        let plan = planned(vec![proposed("n1", "A", body)], &[], None);
        let own = format!("[[{}]]", plan.notes[0].id);
        let wanted = format!("`[[n1]]` {own}\n```sh\n[[n1]]\n~~~\n[[n1]]\n```\n~~~\n[[n1]]\n~~~\n{own}\n");
        assert_eq!(plan.notes[0].body, wanted);
    }

    #[test]
    fn the_scope_repo_needs_a_repository() {
        let scope = |repo| planned(vec![proposed("n1", "A", "x")], &[], repo).notes[0].scope;
        assert_eq!((scope(Some("h/o/r")), scope(None)), (Scope::Repo, Scope::Global));
    }

    #[test]
    fn notes_of_one_title_get_different_ids() {
        let all = (0..5).map(|n| proposed(&format!("n{n}"), "Same", "x")).collect();
        let plan = planned(all, &[(&id("Same"), "x")], None);
        let mut ids: BTreeSet<&EntryId> = plan.notes.iter().map(|note| &note.id).collect();
        let taken = id("Same");
        ids.insert(&taken);
        assert_eq!(ids.len(), 6);
    }

    #[test]
    fn an_update_that_would_lose_facts_is_a_new_note_that_links() {
        let old = id("old");
        let mut update = proposed("n1", "Shorter", "The port is set.");
        update.update = Some(old.clone());
        let plan = planned(vec![update], &[(&old, "The port is 8080, see src/main.rs.")], None);
        assert_eq!(plan.notes[0].update, None);
        assert_eq!(plan.notes[0].body, format!("The port is set.\n\nSee also [[{old}]].\n"));
        assert!(
            plan.warnings[0].contains("2 facts") && plan.warnings[0].contains("8080"),
            "{:?}",
            plan.warnings
        );
    }

    #[test]
    fn an_update_of_a_note_that_was_not_shown_is_a_new_note_and_told() {
        let mut update = proposed("n1", "A", "x");
        update.refused = Some("id__zzzzzz".to_owned());
        let plan = planned(vec![update], &[], None);
        assert!(plan.warnings[0].contains("id__zzzzzz") && plan.notes[0].update.is_none());
    }

    #[test]
    fn secrets_are_taken_out_of_everything_a_model_writes() {
        let mut note = proposed("n1", "it is hunter2", "hunter2");
        note.summary = "hunter2".to_owned();
        let plan = planned(vec![note], &[], None);
        assert!(!serde_json::to_string(&plan).unwrap().contains("hunter2"), "{plan:?}");
        assert_eq!(plan.notes[0].title, "it is [redacted]");
    }

    #[test]
    fn a_plan_is_the_same_when_it_is_made_again() {
        let make = || planned(vec![proposed("n1", "A", "[[n2]]"), proposed("n2", "B", "[[n1]]")], &[], None);
        assert_eq!(make(), make());
    }
}
