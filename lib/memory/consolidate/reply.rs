//! What the model answered, held against what it was asked: checked as a whole, with every fault named, because
//! the faults go back to it once.

use crate::base::fields::{Fields, brief, shown};
use crate::base::glob;
use crate::base::text::border;
use crate::memory::pipeline::reply::{
    SUMMARY_CAP, Text, array, element, elements, few, fits, opened, or_empty,
};
use crate::store::entry::{EntryId, Scope};
use crate::store::journal::entry::{BODY_CAP, TITLE_CAP, tags};
use crate::store::proposal::ProposalId;
use jiff::civil::Date;
use serde_json::Value;
use std::collections::BTreeSet;

/// More notes than this from one call are no distillate.
const ENTRIES_CAP: usize = 50;
/// So many facts of a note may be gone, and so many quotes are kept; longer ones are cut, in bytes.
const GONE_CAP: usize = 200;
const QUOTES_CAP: usize = 20;
const QUOTE_CAP: usize = 1000;

#[derive(Debug, Default, PartialEq)]
pub struct ConsolidateReply {
    pub(super) entries: Vec<Proposed>,
    pub(super) retire: Vec<Retired>,
    /// The notes that the model wants to see whole.
    pub(super) want: Vec<EntryId>,
    /// The notes that still hold, though their code has changed.
    pub(super) confirmed: Vec<EntryId>,
    /// The sessions out of which nothing is to be kept, and why.
    pub(super) skipped: Vec<(String, String)>,
    /// What was left out of it, and why.
    pub(super) warnings: Vec<String>,
}

/// A note that the model would have.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Proposed {
    /// A name for links within the reply.
    pub(super) label: Option<String>,
    /// What it replaces, as the model named it.
    pub(super) update: Option<String>,
    pub(super) text: Text,
    /// Patterns of the files that it is about.
    pub(super) paths: Vec<String>,
    /// `None`: as it is, of a new note `repo`.
    pub(super) scope: Option<Scope>,
    /// The last day on which it holds; `Some(None)`: without end. `None`: as it is.
    pub(super) until: Option<Option<Date>>,
    /// Facts of the old text that no longer hold.
    pub(super) gone: Vec<String>,
    pub(super) evidence: Vec<Quoted>,
    /// Queue ids.
    pub(super) sources: Vec<String>,
}

/// What is replaced or retired.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReplyTarget {
    Note(EntryId),
    /// A change that waits.
    Change(ProposalId),
}

/// A note, or a change that waits, that no longer holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Retired {
    pub(super) target: ReplyTarget,
    pub(super) reason: String,
    pub(super) evidence: Vec<Quoted>,
    pub(super) sources: Vec<String>,
}

/// A place in what was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Quoted {
    /// The turn's number.
    pub(super) turn: usize,
    pub(super) quote: String,
}

impl Proposed {
    /// What it replaces, if what the model named can be that.
    pub(super) fn target(&self) -> Option<ReplyTarget> {
        self.update.as_deref().and_then(ReplyTarget::parse)
    }
}

impl ReplyTarget {
    pub(super) fn note(self) -> Option<EntryId> {
        match self {
            ReplyTarget::Note(id) => Some(id),
            ReplyTarget::Change(_) => None,
        }
    }

    fn parse(name: &str) -> Option<ReplyTarget> {
        let change = ProposalId::whole(name.trim()).map(ReplyTarget::Change);
        change.or_else(|| EntryId::parse(name).map(ReplyTarget::Note))
    }
}

impl std::fmt::Display for ReplyTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReplyTarget::Note(id) => id.fmt(f),
            ReplyTarget::Change(id) => id.fmt(f),
        }
    }
}

/// The reply in `text`, or all that is wrong with it. It may name the queue ids in `shown`.
pub fn parse(text: &str, batch: &str, shown: &BTreeSet<&str>) -> Result<ConsolidateReply, Vec<String>> {
    let mut top = opened(text, batch)?;
    let mut reply = ConsolidateReply::default();
    let values = array(&mut top, "entries");
    reply.retire = elements(&mut top, "retire", |fields| retired(fields, shown, &mut reply.warnings));
    let count = values.len() + reply.retire.len();
    if count > ENTRIES_CAP {
        let most = ENTRIES_CAP;
        return Err(vec![format!("entries: has {count} entries; at most {most} are taken from one call")]);
    }
    let mut labels = BTreeSet::new();
    let mut changed = BTreeSet::new();
    for (index, value) in values.into_iter().enumerate() {
        let read = |fields: &mut Fields| proposed(fields, shown, &mut reply.warnings);
        let Some(entry) = element(&mut top, "entries", index, value, read) else { continue };
        if let Some(label) = entry.label.clone().filter(|label| !labels.insert(label.clone())) {
            top.fault("entries", &format!("the ref \"{}\" is given twice", brief(&label)));
        }
        if let Some(target) = entry.target().filter(|target| !changed.insert(target.clone())) {
            top.fault("entries", &format!("{target} is updated twice"));
        }
        reply.entries.push(entry);
    }
    for Retired { target, .. } in &reply.retire {
        if !changed.insert(target.clone()) {
            top.fault("retire", &format!("{target} is changed twice"));
        }
    }
    reply.want = ids(&mut top, "want", &mut reply.warnings);
    reply.confirmed = ids(&mut top, "confirmed", &mut reply.warnings);
    reply.confirmed.retain(|id| changed.insert(ReplyTarget::Note(id.clone())));
    reply.skipped = elements(&mut top, "skipped", |fields| {
        let value = Value::String(fields.text("source")?);
        Some((source(fields, "source", &value, shown)?, or_empty(fields, "reason")?))
    });
    // What else stands beside them harms nobody: models like to add a remark.
    let faults = std::mem::take(&mut top.faults);
    if faults.is_empty() { Ok(reply) } else { Err(few(&faults)) }
}

fn proposed(fields: &mut Fields, shown: &BTreeSet<&str>, warnings: &mut Vec<String>) -> Option<Proposed> {
    let label = if fields.nullable("ref") { fields.text("ref") } else { None };
    let update = or_empty(fields, "update").filter(|id| !id.trim().is_empty());
    let title = fields.text("title").filter(|title| fits(fields, "title", title, TITLE_CAP));
    let tags = tags(fields, "tags");
    let scope = match fields.nullable("scope") {
        true => fields.one_of("scope", &["global", "repo"]).map(|name| Scope::parse(&name)),
        false => Some(None),
    };
    // A rule says all in its title.
    let may_be_empty = scope == Some(Some(Scope::Global));
    let summary = fields.text("summary").filter(|summary| {
        may_be_empty && summary.trim().is_empty() || fits(fields, "summary", summary, SUMMARY_CAP)
    });
    let body = fields.text("body").filter(|body| fits(fields, "body", body, BODY_CAP));
    let until = until(fields);
    let gone = gone(fields);
    let paths = listed(fields, "paths", warnings);
    let paths = paths.iter().filter_map(Value::as_str).take(glob::MOST).map(str::to_owned).collect();
    let evidence = evidence(fields, warnings);
    let sources = sources(fields, shown);
    let text = Text { title: title?, summary: summary?, tags: tags?, body: body? };
    Some(Proposed { label, update, text, paths, scope: scope?, until, gone, evidence, sources })
}

fn retired(fields: &mut Fields, shown: &BTreeSet<&str>, warnings: &mut Vec<String>) -> Option<Retired> {
    let name = fields.text("id")?;
    let target = ReplyTarget::parse(&name);
    if target.is_none() {
        fields.fault("id", &format!("\"{}\" is not the id of a note", brief(&name)));
    }
    let reason = or_empty(fields, "reason");
    let evidence = evidence(fields, warnings);
    let sources = sources(fields, shown);
    Some(Retired { target: target?, reason: reason?, evidence, sources })
}

fn sources(fields: &mut Fields, shown: &BTreeSet<&str>) -> Vec<String> {
    let values = array(fields, "sources");
    if values.is_empty() && fields.faults.is_empty() {
        fields.fault("sources", "is empty; name the queue ids that it is drawn from");
    }
    values.iter().filter_map(|value| source(fields, "sources", value, shown)).collect()
}

fn source(fields: &mut Fields, key: &str, value: &Value, known: &BTreeSet<&str>) -> Option<String> {
    match value.as_str() {
        Some(id) if known.contains(id) => return Some(id.to_owned()),
        Some(id) => fields.fault(key, &format!("\"{}\" is none of the queue ids of this batch", brief(id))),
        None => fields.fault(key, &format!("{} is not a queue id", shown(value))),
    }
    None
}

fn until(fields: &mut Fields) -> Option<Option<Date>> {
    if !fields.nullable("until") {
        return None;
    }
    fields.parsed("until", |text| match text.trim() {
        "" => Ok(None),
        day => day
            .parse()
            .map(Some)
            .map_err(|_| format!("\"{}\" is not a day, such as 2026-03-20", brief(&text))),
    })
}

/// Facts that no longer hold: a list, or, as some models have it, one string.
fn gone(fields: &mut Fields) -> Vec<String> {
    let values = match fields.nullable("gone").then(|| fields.take("gone").unwrap_or_default()) {
        Some(Value::Array(values)) => values,
        Some(one @ Value::String(_)) => vec![one],
        None => Vec::new(),
        Some(other) => {
            fields.fault("gone", &format!("{} is not a list of strings", shown(&other)));
            Vec::new()
        }
    };
    let mut gone = Vec::new();
    for value in values.into_iter().take(GONE_CAP) {
        match value {
            Value::String(text) => gone.push(text.trim().to_owned()),
            // A port is a number.
            Value::Number(number) => gone.push(number.to_string()),
            other => {
                fields.fault("gone", &format!("{} is not a string", shown(&other)));
                break;
            }
        }
    }
    gone.retain(|fact| !fact.is_empty());
    gone
}

/// Quotes are for whoever reviews the reply; nothing depends on them, so a faulty one is only left out.
fn evidence(fields: &mut Fields, warnings: &mut Vec<String>) -> Vec<Quoted> {
    let place = format!("{}evidence", fields.prefix());
    let mut quotes = Vec::new();
    for value in listed(fields, "evidence", warnings).iter().take(QUOTES_CAP) {
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::trim);
        let turn = text("turn").and_then(|turn| turn.trim_start_matches('t').parse().ok());
        match (turn, text("quote")) {
            (Some(turn), Some(quote)) if !quote.is_empty() => {
                let quote = quote[..border(quote, QUOTE_CAP)].to_owned();
                quotes.push(Quoted { turn, quote });
            }
            _ => warnings.push(format!("{place}: {} names no turn and quote; left out", shown(value))),
        }
    }
    quotes
}

/// The elements of a list that may be missing. What is no list is only left out.
fn listed(fields: &mut Fields, key: &'static str, warnings: &mut Vec<String>) -> Vec<Value> {
    match fields.nullable(key).then(|| fields.take(key)).flatten() {
        Some(Value::Array(values)) => return values,
        Some(_) => warnings.push(format!("{}{key}: not a list; left out", fields.prefix())),
        None => {}
    }
    Vec::new()
}

/// The notes that the model wants to see, or confirms. What is no id is only left out.
fn ids(top: &mut Fields, key: &'static str, warnings: &mut Vec<String>) -> Vec<EntryId> {
    let mut ids = Vec::new();
    for value in listed(top, key, warnings).iter().take(ENTRIES_CAP) {
        match value.as_str().and_then(EntryId::parse) {
            Some(id) => ids.push(id),
            None => warnings.push(format!("{key}: {} is not the id of a note; left out", shown(value))),
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::pipeline::reply::FAULTS_CAP;
    use serde_json::json;

    fn parsed(reply: &Value) -> Result<ConsolidateReply, Vec<String>> {
        let shown = BTreeSet::from(["q1", "q2"]);
        parse(&format!("Here it is:\n```json\n{reply}\n```\nAnything else?"), "batch__x", &shown)
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
        assert_eq!(reply.entries[0].scope, Some(Scope::Global));
        assert_eq!(reply.skipped[0], ("q2".to_owned(), "small talk".to_owned()));
    }

    #[test]
    fn what_may_be_left_out_is() {
        let entry = json!({"title": "T", "summary": "S", "body": "B", "sources": ["q2"]});
        let reply = parsed(&json!({"batch": "batch__x", "entries": [entry], "skipped": null})).unwrap();
        let note = &reply.entries[0];
        assert_eq!((note.scope, note.until, note.text.tags.len()), (None, None, 0));
        assert!(parsed(&json!({"batch": "batch__x", "entries": []})).unwrap().skipped.is_empty());
    }

    #[test]
    fn what_a_correction_needs_is_read_in_the_forms_that_models_give_it() {
        let of = |key: &str, value: Value| parsed(&with(key, value)).unwrap();
        assert_eq!(
            of("update", json!("id__a1B2c3")).entries[0].target(),
            EntryId::parse("id__a1B2c3").map(ReplyTarget::Note)
        );
        assert_eq!(of("update", json!(" ")).entries[0].update, None);
        assert_eq!(of("gone", json!(["4310", 80, " a "])).entries[0].gone, ["4310", "80", "a"]);
        assert_eq!(of("gone", json!("4310")).entries[0].gone, ["4310"]);
        let until = |value: Value| of("until", value).entries[0].until;
        assert_eq!((until(json!(null)), until(json!(""))), (None, Some(None)));
        assert_eq!(until(json!("2026-03-20")), Some(Some(jiff::civil::date(2026, 3, 20))));
        let quotes = of("evidence", json!([{"turn": "t12", "quote": " x "}, {"turn": "12"}, "y"]));
        assert_eq!(quotes.entries[0].evidence, [Quoted { turn: 12, quote: "x".to_owned() }]);
        assert_eq!(quotes.warnings.len(), 2);
        let mut reply = with("ref", json!("n1"));
        reply["want"] = json!(["id__a1B2c3", "n7"]);
        reply["retire"] = json!([{"id": "id__b1B2c3", "reason": "moved", "sources": ["q1"]}]);
        let reply = parsed(&reply).unwrap();
        assert_eq!(
            (reply.want.len(), reply.warnings.len(), reply.retire[0].reason.as_str()),
            (1, 1, "moved")
        );
    }

    #[test]
    fn every_fault_is_named_with_its_place() {
        let faulty = json!({"batch": "batch__y", "entries": [
            {"title": " ", "body": 7, "sources": ["q9"], "tags": "x", "scope": "world", "until": "soon",
                "gone": {}}, "note"],
            "retire": [{"id": "n1", "sources": []}],
            "skipped": [{"reason": "?"}, {"source": "q9"}]});
        let faults = parsed(&faulty).unwrap_err().join("\n");
        for part in [
            "batch", "batch__y", "entries[0].title", "entries[0].body", "entries[0].sources", "q9",
            "entries[0].tags", "entries[0].scope", "element 1", "skipped[0].source", "skipped[1].source",
            "entries[0].summary", "entries[0].until", "entries[0].gone", "retire[0].id",
        ] {
            assert!(faults.contains(part), "no {part} in:\n{faults}");
        }
    }

    #[test]
    fn one_thing_wrong_is_one_fault() {
        for (reply, part) in [
            (with("title", json!("x".repeat(TITLE_CAP + 1))), "entries[0].title"),
            (with("summary", json!("x".repeat(SUMMARY_CAP + 1))), "entries[0].summary"),
            (with("until", json!("2026-02-30")), "entries[0].until"),
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
        twice["retire"] = json!([{"id": "id__a1B2c3", "sources": ["q1"]}]);
        assert!(parsed(&twice).unwrap_err()[0].contains("id__a1B2c3 is changed twice"));
        let mut second = twice["entries"][0].clone();
        second["ref"] = json!("n2");
        twice["entries"].as_array_mut().unwrap().push(second);
        assert!(parsed(&twice).unwrap_err()[0].contains("id__a1B2c3 is updated twice"));
    }

    #[test]
    fn a_summary_may_be_empty_where_a_rule_says_all_in_its_title() {
        let mut reply = with("summary", json!("  "));
        assert_eq!(parsed(&reply).unwrap().entries.len(), 1);
        reply["entries"][0]["scope"] = json!("repo");
        assert_eq!(parsed(&reply).unwrap_err(), ["entries[0].summary: is empty"]);
    }

    #[test]
    fn a_flood_of_faults_is_cut() {
        let faults = parsed(&json!({"batch": "batch__x", "entries": vec![json!(1); 45]})).unwrap_err();
        assert_eq!((faults.len(), faults[20].as_str()), (FAULTS_CAP + 1, "and 25 more faults"));
    }

    #[test]
    fn no_json_is_a_fault_too() {
        for text in ["", "I cannot do that.", "{\"batch\":", "[1]"] {
            assert_eq!(parse(text, "b", &BTreeSet::new()).unwrap_err().len(), 1, "{text:?}");
        }
    }
}
