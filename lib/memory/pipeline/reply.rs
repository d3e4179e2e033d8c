//! What the replies of all our questions have in common: a batch, and lists that are checked element by element.

use crate::base::error::Error;
use crate::base::fields::{Fields, brief, kind};
use crate::base::text::{border, one_line, visible};
use crate::memory::record::NoteText;
use crate::store::batch::{Batch, Batches};
use crate::store::entry::{Entry, one_line as line};
use serde_json::{Map, Value};

/// What a note says, or what a model would have it say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Text {
    pub title: String,
    pub summary: String,
    pub tags: Vec<String>,
    pub body: String,
}

impl Text {
    pub fn of(entry: &Entry) -> Text {
        let meta = entry.meta();
        Text {
            title: meta.title.clone(),
            summary: meta.summary.clone(),
            tags: meta.tags.clone(),
            body: String::from_utf8_lossy(entry.body()).into_owned(),
        }
    }

    /// Fit to be filed, without what is hidden in it and what `clean` takes out.
    pub fn cleaned(&self, clean: impl Fn(&str) -> String) -> Text {
        let clean = |text: &str| clean(&visible(text));
        Text {
            title: line(&clean(&self.title)),
            summary: line(&clean(&self.summary)),
            tags: self.tags.iter().map(|tag| clean(tag)).filter(|tag| !tag.contains('[')).collect(),
            body: clean(&self.body),
        }
    }

    pub fn note(&self) -> NoteText<'_> {
        NoteText { title: &self.title, summary: &self.summary, tags: &self.tags, body: &self.body }
    }

    /// All of it, to look for facts in.
    pub fn all(&self) -> String {
        format!("{}\n{}\n{}\n{}", self.title, self.summary, self.tags.join(" "), self.body)
    }
}

/// The longest summary, in bytes.
pub const SUMMARY_CAP: usize = 1000;
/// So many faults are told; a model that makes more has misunderstood the whole.
pub const FAULTS_CAP: usize = 20;

/// The batch that a reply is about; `None` if it has no readable one.
pub fn batch_of(text: &str) -> Option<String> {
    object_with(text, "batch").ok()?.get("batch")?.as_str().map(str::to_owned)
}

/// The batch among `ours` that a reply which somebody brings is about; `theirs` are the other program's.
pub(super) fn batch_for(text: &str, ours: &Batches, theirs: (Batches, &str)) -> Result<Batch, Error> {
    let id = batch_of(text).ok_or_else(|| {
        Error::api("the reply names no batch").hint("it must be the JSON object that the prompt asks for")
    })?;
    let (theirs, program) = theirs;
    ours.named(&id).ok_or_else(|| match theirs.named(&id) {
        Some(_) => Error::usage(format!("the batch \"{id}\" is one of {program}"))
            .hint(format!("apply the reply with: {program} --apply")),
        None => no_such_batch(&id),
    })
}

/// What is said of a batch that waits for nothing any more, or never did.
pub(super) fn no_such_batch(id: &str) -> Error {
    Error::usage(format!("there is no batch \"{}\"", one_line(id, 60)))
        .hint("it was already applied, or it is older than 24 hours; start again with --prompt")
}

/// The keys of a reply about this batch; the error is why there is no reply in `text`.
pub fn opened(text: &str, batch: &str) -> Result<Fields, Vec<String>> {
    let object = object_with(text, "batch").map_err(|error| vec![error.message().to_owned()])?;
    let mut top = Fields::new("", object);
    if let Some(named) = top.text("batch")
        && named != batch
    {
        top.fault("batch", &format!("\"{}\" is not \"{batch}\"", brief(&named)));
    }
    Ok(top)
}

/// The first faults, and how many more there are.
pub fn few(faults: &[impl ToString]) -> Vec<String> {
    let more = faults.len().saturating_sub(FAULTS_CAP);
    let more = (more > 0).then(|| format!("and {more} more faults"));
    faults.iter().take(FAULTS_CAP).map(ToString::to_string).chain(more).collect()
}

/// The array of a key; empty, with a fault, where there is none.
pub fn array(fields: &mut Fields, key: &'static str) -> Vec<Value> {
    match fields.take(key) {
        Some(Value::Array(values)) => return values,
        Some(other) => fields.fault(key, &format!("an array is expected, not {}", kind(&other))),
        None => fields.missing(key),
    }
    Vec::new()
}

/// What `read` makes of each element of an array that may be missing.
pub fn elements<T>(
    top: &mut Fields,
    list: &'static str,
    mut read: impl FnMut(&mut Fields) -> Option<T>,
) -> Vec<T> {
    let values = if top.nullable(list) { array(top, list) } else { Vec::new() };
    let values = values.into_iter().enumerate();
    values.filter_map(|(index, value)| element(top, list, index, value, &mut read)).collect()
}

/// A text that may be left out.
pub fn or_empty(fields: &mut Fields, key: &'static str) -> Option<String> {
    if fields.nullable(key) { fields.text(key) } else { Some(String::new()) }
}

/// What `read` makes of an element of the array `list`, which has to be an object.
pub fn element<T>(
    top: &mut Fields,
    list: &'static str,
    index: usize,
    value: Value,
    read: impl FnOnce(&mut Fields) -> Option<T>,
) -> Option<T> {
    let Value::Object(object) = value else {
        top.fault(list, &format!("element {index} is not an object but {}", kind(&value)));
        return None;
    };
    let mut fields = Fields::new(&format!("{}{list}[{index}].", top.prefix()), object);
    let read = read(&mut fields);
    top.faults.append(&mut fields.faults);
    read
}

/// Is there something in a text, and not more than `cap` bytes?
pub fn fits(fields: &mut Fields, key: &str, text: &str, cap: usize) -> bool {
    let fault = if text.trim().is_empty() {
        "is empty".to_owned()
    } else if text.len() > cap {
        format!("has {} bytes; at most {cap} are taken", text.len())
    } else {
        return true;
    };
    fields.fault(key, &fault);
    false
}

/// The object that has `key`; of several the last, because models repeat the schema before they answer.
fn object_with(text: &str, key: &str) -> Result<Map<String, Value>, Error> {
    let mut found = None;
    let mut fault = None;
    let mut from = 0;
    while let Some(at) = text[from..].find('{').map(|at| from + at) {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(Value::Object(object))) => {
                from = at + values.byte_offset();
                found = Some(object).filter(|object| object.contains_key(key)).or(found);
            }
            Some(Err(e)) => {
                // The first fault is that of the outermost object, which is what was meant.
                fault.get_or_insert_with(|| match e.is_eof() {
                    true => "it ends before its JSON does".to_owned(),
                    false => e.to_string(),
                });
                // On from where it went wrong, not from the next byte: a broken megabyte is read once.
                from = at + place_of(&e, &text[at..]).max(1);
            }
            Some(Ok(_)) | None => from = at + 1,
        }
    }
    found.ok_or_else(|| match fault {
        Some(fault) => Error::api(format!("no JSON object with \"{key}\" can be read in the reply: {fault}")),
        None => Error::api(format!("there is no JSON object with \"{key}\" in the reply")),
    })
}

/// Where in `text` the fault is, in bytes, at a character's beginning.
fn place_of(fault: &serde_json::Error, text: &str) -> usize {
    let line: usize = text.split_inclusive('\n').take(fault.line().saturating_sub(1)).map(str::len).sum();
    border(text, line + fault.column().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<Value> {
        object_with(text, "batch").ok().map(|object| object["batch"].clone())
    }

    #[test]
    fn alone_fenced_and_in_prose() {
        for text in [
            r#"{"batch":1}"#,
            "```json\n{\"batch\":1}\n```",
            "Sure! Here it is:\n\n```\n{\"batch\":1}\n```\nAnything else {like this}?",
            "First {a: b} and then {\"batch\": 1} done",
            "like {\"x\":0}:\n{\"batch\":1}",
            "{\"batch\":0}\n{\"batch\":1}",
            "if (a) {\n{\"batch\":1}",
        ] {
            assert_eq!(found(text), Some(Value::from(1)), "{text}");
        }
    }

    #[test]
    fn half_a_reply_is_none() {
        for text in ["", "no", "{", "{\"batch\":1", "{\"batch\":{\"a\":1}", "{\"x\":{\"batch\":1}}"] {
            assert_eq!(found(text), None, "{text}");
        }
        assert!(object_with("{\"batch\":1", "batch").unwrap_err().message().contains("ends before"));
    }

    #[test]
    fn a_megabyte_of_braces_takes_no_time() {
        assert_eq!(found(&"{".repeat(1 << 20)), None);
        assert_eq!(found(&"{\n".repeat(1 << 16)), None);
    }
}
