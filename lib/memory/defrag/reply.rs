//! What the model answered: the operations that it would have done. Whether each may be done is looked at later.

use crate::base::error::Fault;
use crate::base::fields::{Fields, brief, shown};
use crate::memory::pipeline::reply::{SUMMARY_CAP, Text, array, element, few, fits, opened, or_empty};
use crate::store::entry::{RANKS, Tier, one_line, words};
use crate::store::journal::entry::{BODY_CAP, TITLE_CAP, tags};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// More operations than this from one call are no plan.
const OPERATIONS_CAP: usize = 1000;
/// So many ids of an operation that is none are kept, to name it.
const IDS_CAP: usize = 20;
/// The longest remark that is kept, in bytes.
const REMARK_CAP: usize = 4000;

/// So many ids, facts or sentences are named.
pub(super) const NAMED: usize = 5;

words! {
    /// The kinds of operations, as they are called in a reply.
    Verb {
        Merge = "merge",
        Split = "split",
        Rename = "rename",
        Retag = "retag",
        Rewrite = "rewrite",
        Archive = "archive",
        Tier = "tier",
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    pub(super) op: Verb,
    /// As the model wrote them: of a merge several, else one.
    pub(super) ids: Vec<String>,
    /// What the notes would say: of a split several texts, of a rename the title alone, of a retag the tags, and of a
    /// rewrite summary and body.
    pub(super) texts: Vec<Text>,
    /// Facts that no longer hold.
    pub(super) gone: Vec<String>,
    /// Why a note is archived.
    pub(super) reason: String,
    pub(super) tier: Option<Tier>,
    /// Without one, the old one stays.
    pub(super) rank: Option<u8>,
}

/// An operation that is not carried out, and why: its form is wrong, or it failed a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dropped {
    /// Both as the model wrote them.
    pub op: String,
    pub ids: Vec<String>,
    pub why: String,
    /// A note could not be read: it is asked about again.
    #[serde(skip)]
    pub is_unread: bool,
}

#[derive(Debug, PartialEq)]
pub struct DefragReply {
    pub operations: Vec<Operation>,
    /// Elements of `operations` that are none.
    pub dropped: Vec<Dropped>,
    /// A word to the person, in one line.
    pub(super) remark: String,
}

impl Operation {
    pub(super) fn new(op: Verb, ids: Vec<String>) -> Operation {
        let (texts, gone, reason) = (Vec::new(), Vec::new(), String::new());
        Operation { op, ids, texts, gone, reason, tier: None, rank: None }
    }
}

impl DefragReply {
    /// Operations were meant, and there is not one.
    pub(super) fn is_useless(&self) -> bool {
        self.operations.is_empty() && !self.dropped.is_empty()
    }

    /// What is wrong with the operations that are none.
    pub(super) fn faults(&self) -> Vec<String> {
        few(&self.dropped.iter().map(|one| &one.why).collect::<Vec<_>>())
    }
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = vec![self.op.clone()];
        words.extend(self.ids.iter().take(NAMED).map(|id| crate::base::text::one_line(id, 40)));
        words.extend((self.ids.len() > NAMED).then(|| "…".to_owned()));
        words.retain(|word| !word.is_empty());
        let operation = if words.is_empty() { String::new() } else { words.join(" ") + ": " };
        write!(f, "dropped: {operation}{}", self.why)
    }
}

/// The reply in `text`; the error is why there is none at all. One bad operation drops itself and no other.
pub fn parse(text: &str, batch: &str) -> Result<DefragReply, Vec<String>> {
    let mut top = opened(text, batch)?;
    let values = array(&mut top, "operations");
    if values.len() > OPERATIONS_CAP {
        let count = values.len();
        top.fault("operations", &format!("has {count} elements; at most {OPERATIONS_CAP} are taken"));
    }
    if !top.faults.is_empty() {
        return Err(top.faults.iter().map(Fault::to_string).collect());
    }
    let (mut operations, mut dropped) = (Vec::new(), Vec::new());
    for (index, value) in values.into_iter().enumerate() {
        let (op, ids) = said(&value);
        let read = element(&mut top, "operations", index, value, operation);
        let faults = std::mem::take(&mut top.faults);
        match read {
            Some(operation) if faults.is_empty() => operations.push(operation),
            _ => dropped.push(Dropped { op, ids, why: few(&faults).join("; "), is_unread: false }),
        }
    }
    // What else stands beside them harms nobody, and neither does a remark of another kind.
    let remark = match top.take("notes") {
        Some(Value::String(remark)) => crate::base::text::one_line(&remark, REMARK_CAP),
        _ => String::new(),
    };
    Ok(DefragReply { operations, dropped, remark })
}

/// What an operation calls itself, and the notes that it names, as far as that can be read.
fn said(value: &Value) -> (String, Vec<String>) {
    let text = |key| value.get(key).and_then(Value::as_str);
    let listed = value.get("ids").and_then(Value::as_array).into_iter().flatten();
    let ids = text("id").into_iter().chain(listed.filter_map(Value::as_str));
    (brief(text("op").unwrap_or_default()), ids.take(IDS_CAP).map(brief).collect())
}

/// With a fault it is dropped, whatever else is in it.
fn operation(fields: &mut Fields) -> Option<Operation> {
    let op = Verb::parse(&fields.one_of("op", Verb::WORDS)?)?;
    let ids = match op {
        Verb::Merge => strings(fields, "ids", "an id"),
        _ => fields.text("id").into_iter().collect(),
    };
    let mut operation = Operation::new(op, ids);
    operation.texts = match op {
        Verb::Merge => vec![text(fields)],
        Verb::Split => parts(fields),
        Verb::Rename => vec![Text { title: title(fields), ..Text::default() }],
        Verb::Retag => vec![Text { tags: all_tags(fields), ..Text::default() }],
        Verb::Rewrite => {
            vec![Text { summary: summary(fields), body: body(fields), ..Text::default() }]
        }
        Verb::Archive | Verb::Tier => Vec::new(),
    };
    if matches!(op, Verb::Merge | Verb::Split | Verb::Rewrite) && fields.nullable("gone") {
        operation.gone = strings(fields, "gone", "a fact in words");
    }
    if op == Verb::Archive {
        operation.reason = or_empty(fields, "reason")?;
    }
    if op == Verb::Tier {
        operation.tier = fields.one_of("tier", Tier::WORDS).and_then(|word| Tier::parse(&word));
        operation.rank = if fields.nullable("rank") { rank(fields) } else { None };
    }
    Some(operation)
}

fn rank(fields: &mut Fields) -> Option<u8> {
    let value = fields.take("rank")?;
    let rank = value.as_u64().and_then(|rank| u8::try_from(rank).ok()).filter(|rank| RANKS.contains(rank));
    if rank.is_none() {
        fields.fault("rank", &format!("{} is not a whole number from 1 to 100", shown(&value)));
    }
    rank
}

fn strings(fields: &mut Fields, key: &'static str, what: &str) -> Vec<String> {
    let mut strings = Vec::new();
    for value in &array(fields, key) {
        match value.as_str() {
            Some(text) => strings.push(text.to_owned()),
            None => fields.fault(key, &format!("{} is not {what}", shown(value))),
        }
    }
    strings
}

fn text(fields: &mut Fields) -> Text {
    let (title, summary) = (title(fields), summary(fields));
    Text { title, summary, tags: tags(fields, "tags").unwrap_or_default(), body: body(fields) }
}

/// The parts of a split. A note that was not there before has no old summary.
fn parts(fields: &mut Fields) -> Vec<Text> {
    let part = |fields: &mut Fields| {
        let text = text(fields);
        if text.summary.trim().is_empty() && fields.faults.is_empty() {
            fields.fault("summary", "is empty");
        }
        Some(text)
    };
    let values = array(fields, "into").into_iter().enumerate();
    values.filter_map(|(index, value)| element(fields, "into", index, value, part)).collect()
}

fn title(fields: &mut Fields) -> String {
    // One of control characters alone would be empty where it is written.
    let title = fields.text("title").map(|title| one_line(&title));
    title.filter(|title| fits(fields, "title", title, TITLE_CAP)).unwrap_or_default()
}

/// It may be left out: then the old one stays.
fn summary(fields: &mut Fields) -> String {
    or_empty(fields, "summary")
        .filter(|summary| summary.is_empty() || fits(fields, "summary", summary, SUMMARY_CAP))
        .unwrap_or_default()
}

fn body(fields: &mut Fields) -> String {
    fields.text("body").filter(|body| fits(fields, "body", body, BODY_CAP)).unwrap_or_default()
}

/// Left out they stay as they are elsewhere; here that would take all of them away.
fn all_tags(fields: &mut Fields) -> Vec<String> {
    if !fields.nullable("tags") {
        fields.missing("tags");
    }
    tags(fields, "tags").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parsed(operations: Value) -> Result<DefragReply, Vec<String>> {
        let reply = json!({"batch": "batch__x", "operations": operations, "notes": "Less to read\nnow."});
        parse(&format!("Sure:\n```json\n{reply}\n```\n"), "batch__x")
    }

    #[test]
    fn every_operation_is_taken_in() {
        let text = json!({"title": "T", "summary": "S", "tags": ["x"], "body": "B"});
        let mut merge = text.clone();
        merge["op"] = json!("merge");
        merge["ids"] = json!(["id__a1B2c3", "id__a1B2c4"]);
        let reply = parsed(json!([
            merge,
            {"op": "split", "id": "a", "into": [text, {"title": "U", "summary": "S", "body": "C"}]},
            {"op": "rename", "id": "a", "title": "T"},
            {"op": "retag", "id": "a", "tags": ["topic__x"]},
            {"op": "rewrite", "id": "a", "body": "B", "gone": ["4310"]},
            {"op": "archive", "id": "a"},
            {"op": "tier", "id": "a", "tier": "hot"},
        ]))
        .unwrap();
        let names: Vec<&str> = reply.operations.iter().map(|operation| operation.op.as_str()).collect();
        assert_eq!(names, Verb::WORDS);
        assert_eq!(reply.operations[4].gone, ["4310"]);
        assert_eq!((reply.dropped.len(), reply.remark.as_str()), (0, "Less to read now."));
        assert_eq!(reply.operations[0].ids, ["id__a1B2c3", "id__a1B2c4"]);
    }

    #[test]
    fn what_is_wrong_with_one_operation_is_named_and_the_others_are_taken() {
        let reply = parsed(json!([
            {"op": "delete", "id": "a"},
            {"op": "merge", "ids": ["a", 7], "title": "T", "body": "B"},
            {"op": "split", "id": "a", "into": [{"title": "T", "body": " "}]},
            {"op": "tier", "id": "a", "tier": "boiling"},
            {"op": "tier", "id": "a", "tier": "cold", "rank": null},
            "archive",
            {"op": "tier", "id": "a", "tier": "hot", "rank": 100},
            {"op": "tier", "id": "a", "tier": "hot", "rank": 101},
            {"op": "tier", "id": "a", "tier": "hot", "rank": "80"},
            {"op": "rewrite", "id": "a", "body": "B", "gone": 4310},
            {"op": "rewrite", "id": "a", "body": "B", "gone": [4310]},
            {"op": "split", "id": "a", "into": [{"title": "T", "summary": "S", "body": "B"}, {"title": "T", "body": "B"}]},
        ]))
        .unwrap();
        let tier = |tier, rank| {
            let ids = vec!["a".to_owned()];
            Operation { tier: Some(tier), rank, ..Operation::new(Verb::Tier, ids) }
        };
        assert_eq!(reply.operations, [tier(Tier::Cold, None), tier(Tier::Hot, Some(100))]);
        let all: Vec<String> = reply.dropped.iter().map(ToString::to_string).collect();
        let all = all.join("\n");
        for part in [
            "dropped: delete a: operations[0].op: \"delete\"",
            "dropped: merge a: operations[1].ids: 7",
            "operations[2].into[0].body",
            "operations[11].into[1].summary: is empty",
            "operations[3].tier",
            "dropped: operations: element 5",
            "operations[7].rank: 101 is not",
            "operations[8].rank: \"80\" is not",
            "operations[9].gone: an array",
            "operations[10].gone: 4310 is not a fact",
        ] {
            assert!(all.contains(part), "no {part} in:\n{all}");
        }
    }

    #[test]
    fn a_reply_of_which_nothing_is_left_is_useless_and_an_empty_one_is_not() {
        for (operations, is_useless) in [
            (json!([{"op": "delete"}, 7]), true),
            (json!([{"op": "delete"}, {"op": "archive", "id": "a"}]), false),
            (json!([]), false),
        ] {
            let reply = parsed(operations.clone()).unwrap();
            assert_eq!(
                (reply.is_useless(), reply.faults().is_empty()),
                (is_useless, reply.dropped.is_empty())
            );
        }
    }

    #[test]
    fn without_batch_or_operations_there_is_no_reply() {
        for text in [
            "",
            "no",
            r#"{"batch": "batch__y", "operations": []}"#,
            r#"{"batch": "batch__x"}"#,
            r#"{"batch": "batch__x", "operations": {}}"#,
        ] {
            assert_eq!(parse(text, "batch__x").unwrap_err().len(), 1, "{text}");
        }
        assert!(parsed(json!(vec![json!({}); OPERATIONS_CAP + 1])).unwrap_err()[0].contains("at most 1000"));
    }
}
