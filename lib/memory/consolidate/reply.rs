//! What the model answered, held against what it was asked: checked as a whole, with every fault named, because
//! the faults go back to it once.

use crate::base::fields::{Fields, brief, shown};
use crate::memory::pipeline::extract::object_with;
use crate::memory::pipeline::reply::{SUMMARY_CAP, array, element, few, fits};
use crate::store::entry::{EntryId, Scope};
use crate::store::journal::entry::{BODY_CAP, TITLE_CAP, tags};
use serde_json::Value;
use std::collections::BTreeSet;

/// More notes than this from one call are no distillate.
const ENTRIES_CAP: usize = 50;
/// What a reply may name.
pub(crate) struct Asked<'a> {
    pub(crate) batch: &'a str,
    /// The queue ids of the sessions and notes that were shown.
    pub(crate) sources: BTreeSet<&'a str>,
    /// The notes whose bodies were shown: only these may be updated.
    pub(crate) updatable: BTreeSet<&'a EntryId>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Reply {
    pub(crate) entries: Vec<Proposed>,
    pub(crate) skipped: Vec<Skipped>,
}

/// A note that the model would have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Proposed {
    /// A name for links within the reply.
    pub(super) label: Option<String>,
    pub(crate) update: Option<EntryId>,
    /// What it would have updated, but may not: no note, or one whose body it has not seen.
    pub(super) refused: Option<String>,
    pub(super) title: String,
    pub(super) summary: String,
    pub(crate) tags: Vec<String>,
    pub(super) scope: Scope,
    pub(super) body: String,
    /// Queue ids.
    pub(crate) sources: Vec<String>,
}

/// A session out of which nothing is to be kept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Skipped {
    pub(crate) source: String,
    pub(super) reason: String,
}

/// The reply in `text`, or all that is wrong with it.
pub(crate) fn parse(text: &str, asked: &Asked) -> Result<Reply, Vec<String>> {
    let object = object_with(text, "batch").map_err(|error| vec![error.message().to_owned()])?;
    let mut top = Fields::new("", object);
    if let Some(batch) = top.text("batch")
        && batch != asked.batch
    {
        top.fault("batch", &format!("\"{}\" is not \"{}\"", brief(&batch), asked.batch));
    }
    let mut entries = Vec::new();
    let values = array(&mut top, "entries");
    if values.len() > ENTRIES_CAP {
        let fault = format!("has {} entries; at most {ENTRIES_CAP} are taken from one call", values.len());
        return Err(vec![format!("entries: {fault}")]);
    }
    let mut labels = BTreeSet::new();
    let mut updated = BTreeSet::new();
    for (index, value) in values.into_iter().enumerate() {
        if let Some(entry) = element(&mut top, "entries", index, value, |fields| proposed(fields, asked)) {
            if let Some(label) = &entry.label
                && !labels.insert(label.clone())
            {
                top.fault("entries", &format!("the ref \"{}\" is given twice", brief(label)));
            }
            if let Some(id) = &entry.update
                && !updated.insert(id.clone())
            {
                top.fault("entries", &format!("{id} is updated twice"));
            }
            entries.push(entry);
        }
    }
    let mut skipped = Vec::new();
    if top.nullable("skipped") {
        for (index, value) in array(&mut top, "skipped").into_iter().enumerate() {
            skipped.extend(element(&mut top, "skipped", index, value, |fields| skip(fields, asked)));
        }
    }
    // What else stands beside them harms nobody: models like to add a remark.
    let faults = std::mem::take(&mut top.faults);
    if faults.is_empty() { Ok(Reply { entries, skipped }) } else { Err(few(faults)) }
}

fn proposed(fields: &mut Fields, asked: &Asked) -> Option<Proposed> {
    let label = if fields.nullable("ref") { fields.text("ref") } else { None };
    let wanted = if fields.nullable("update") { fields.text("update") } else { None };
    let update = wanted.as_deref().and_then(EntryId::parse).filter(|id| asked.updatable.contains(id));
    let refused = wanted.filter(|_| update.is_none());
    let title = fields.text("title").filter(|title| fits(fields, "title", title, TITLE_CAP));
    let summary = if fields.nullable("summary") { fields.text("summary") } else { Some(String::new()) };
    let summary =
        summary.filter(|summary| summary.is_empty() || fits(fields, "summary", summary, SUMMARY_CAP));
    let tags = tags(fields, "tags");
    let scope = match fields.nullable("scope") {
        true => fields.one_of("scope", &["global", "repo"]).and_then(|name| Scope::parse(&name)),
        false => Some(Scope::Repo),
    };
    let body = fields.text("body").filter(|body| fits(fields, "body", body, BODY_CAP));
    let values = array(fields, "sources");
    if values.is_empty() && fields.faults.is_empty() {
        fields.fault("sources", "is empty; name the queue ids that the note is drawn from");
    }
    let sources: Vec<String> =
        values.iter().filter_map(|value| source(fields, "sources", value, asked)).collect();
    Some(Proposed {
        label,
        update,
        refused,
        title: title?,
        summary: summary?,
        tags: tags?,
        scope: scope?,
        body: body?,
        sources,
    })
}

fn source(fields: &mut Fields, key: &str, value: &Value, asked: &Asked) -> Option<String> {
    match value.as_str() {
        Some(id) if asked.sources.contains(id) => return Some(id.to_owned()),
        Some(id) => fields.fault(key, &format!("\"{}\" is none of the queue ids of this batch", brief(id))),
        None => fields.fault(key, &format!("{} is not a queue id", shown(value))),
    }
    None
}

fn skip(fields: &mut Fields, asked: &Asked) -> Option<Skipped> {
    let value = Value::String(fields.text("source")?);
    let source = source(fields, "source", &value, asked)?;
    let reason = if fields.nullable("reason") { fields.text("reason")? } else { String::new() };
    Some(Skipped { source, reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::pipeline::reply::FAULTS_CAP;
    use serde_json::json;

    fn parsed(reply: &Value) -> Result<Reply, Vec<String>> {
        let known = EntryId::parse("id__a1B2c3").unwrap();
        let asked = Asked {
            batch: "batch__x",
            sources: BTreeSet::from(["q1", "q2"]),
            updatable: BTreeSet::from([&known]),
        };
        parse(&format!("Here it is:\n```json\n{reply}\n```\nAnything else?"), &asked)
    }

    fn entry() -> Value {
        json!({"ref": "n1", "update": null, "title": "T", "summary": "S", "tags": ["topic__x"], "scope": "global",
            "body": "B", "sources": ["q1"]})
    }

    fn with(key: &str, value: Value) -> Value {
        let mut entry = entry();
        entry[key] = value;
        json!({"batch": "batch__x", "entries": [entry]})
    }

    #[test]
    fn a_whole_reply_is_taken_in_and_remarks_beside_it_are_fine() {
        let mut reply = with("mood", json!("good"));
        reply["note"] = json!("I hope this helps");
        reply["skipped"] = json!([{"source": "q2", "reason": "small talk"}, {"source": "q1"}]);
        let reply = parsed(&reply).unwrap();
        assert_eq!((reply.entries.len(), reply.skipped.len()), (1, 2));
        assert_eq!(reply.entries[0].scope, Scope::Global);
        assert_eq!(reply.skipped[0], Skipped { source: "q2".to_owned(), reason: "small talk".to_owned() });
    }

    #[test]
    fn what_may_be_left_out_is() {
        let entry = json!({"title": "T", "body": "B", "sources": ["q2"]});
        let reply = parsed(&json!({"batch": "batch__x", "entries": [entry], "skipped": null})).unwrap();
        let note = &reply.entries[0];
        assert_eq!((note.scope, note.summary.as_str(), note.tags.len()), (Scope::Repo, "", 0));
        assert!(parsed(&json!({"batch": "batch__x", "entries": []})).unwrap().skipped.is_empty());
    }

    #[test]
    fn only_a_note_that_was_shown_is_updated() {
        let update = |id: &str| parsed(&with("update", json!(id))).unwrap().entries.remove(0);
        assert_eq!(update("id__a1B2c3").update.map(|id| id.to_string()).as_deref(), Some("id__a1B2c3"));
        for other in ["id__zzzzzz", "n1", "../../etc/passwd"] {
            let note = update(other);
            assert_eq!((note.update, note.refused.as_deref()), (None, Some(other)));
        }
    }

    #[test]
    fn every_fault_is_named_with_its_place() {
        let faulty = json!({"batch": "batch__y", "entries": [
            {"title": " ", "body": 7, "sources": ["q9"], "tags": "x", "scope": "world"}, "note"],
            "skipped": [{"reason": "?"}, {"source": "q9"}]});
        let faults = parsed(&faulty).unwrap_err().join("\n");
        for part in [
            "batch", "batch__y", "entries[0].title", "entries[0].body", "entries[0].sources", "q9",
            "entries[0].tags", "entries[0].scope", "element 1", "skipped[0].source", "skipped[1].source",
        ] {
            assert!(faults.contains(part), "no {part} in:\n{faults}");
        }
    }

    #[test]
    fn one_thing_wrong_is_one_fault() {
        for (reply, part) in [
            (with("title", json!("x".repeat(TITLE_CAP + 1))), "entries[0].title"),
            (with("summary", json!("x".repeat(SUMMARY_CAP + 1))), "entries[0].summary"),
            (with("body", json!("x".repeat(BODY_CAP + 1))), "entries[0].body"),
            (with("sources", json!([])), "entries[0].sources"),
            (with("sources", json!([1])), "entries[0].sources"),
            (json!({"batch": "batch__x"}), "entries"),
            (json!({"batch": "batch__x", "entries": {}}), "entries"),
            (json!({"batch": "batch__x", "entries": [entry(), entry()]}), "\"n1\" is given twice"),
            (json!({"batch": "batch__x", "entries": vec![entry(); ENTRIES_CAP + 1]}), "at most 50"),
        ] {
            let faults = parsed(&reply).unwrap_err();
            assert!(faults.len() == 1 && faults[0].contains(part), "{part}: {faults:?}");
        }
        let mut twice = with("update", json!("id__a1B2c3"));
        let mut second = twice["entries"][0].clone();
        second["ref"] = json!("n2");
        twice["entries"].as_array_mut().unwrap().push(second);
        assert!(parsed(&twice).unwrap_err()[0].contains("id__a1B2c3 is updated twice"));
    }

    #[test]
    fn a_flood_of_faults_is_cut() {
        let faults = parsed(&json!({"batch": "batch__x", "entries": vec![json!(1); 45]})).unwrap_err();
        assert_eq!((faults.len(), faults[20].as_str()), (FAULTS_CAP + 1, "and 25 more faults"));
    }

    #[test]
    fn no_json_is_a_fault_too() {
        let asked = Asked { batch: "b", sources: BTreeSet::new(), updatable: BTreeSet::new() };
        for text in ["", "I cannot do that.", "{\"batch\":", "[1]"] {
            assert_eq!(parse(text, &asked).unwrap_err().len(), 1, "{text:?}");
        }
    }
}
