//! What the replies of all our questions have in common: a batch, and lists that are checked element by element.

use crate::base::error::{Error, Fault, Result};
use crate::base::fields::{Fields, kind};
use crate::base::text::one_line;
use crate::memory::pipeline::extract::object_with;
use crate::store::batch::{Batch, Batches};
use serde_json::{Map, Value};

/// The longest summary, in bytes.
pub(crate) const SUMMARY_CAP: usize = 1000;
/// So many faults are told; a model that makes more has misunderstood the whole.
pub(crate) const FAULTS_CAP: usize = 20;

/// The batch that a reply is about; `None` if it has no readable one.
pub(crate) fn batch_of(text: &str) -> Option<String> {
    object_with(text, "batch").ok()?.get("batch")?.as_str().map(str::to_owned)
}

/// The batch among `ours` that a reply which somebody brings is about; `theirs` are the other program's.
pub(super) fn batch_for(text: &str, ours: &Batches, theirs: (Batches, &str)) -> Result<Batch> {
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

/// The first faults, and how many more there are.
pub(crate) fn few(faults: Vec<Fault>) -> Vec<String> {
    let mut faults: Vec<String> = faults.iter().map(Fault::to_string).collect();
    if faults.len() > FAULTS_CAP {
        let more = faults.len() - FAULTS_CAP;
        faults.truncate(FAULTS_CAP);
        faults.push(format!("and {more} more faults"));
    }
    faults
}

/// The array of a key; empty, with a fault, where there is none.
pub(crate) fn array(fields: &mut Fields, key: &'static str) -> Vec<Value> {
    match fields.take(key) {
        Some(Value::Array(values)) => return values,
        Some(other) => fields.fault(key, &format!("an array is expected, not {}", kind(&other))),
        None => fields.missing(key),
    }
    Vec::new()
}

/// What `read` makes of an element of the array `list`, which has to be an object.
pub(crate) fn element<T>(
    top: &mut Fields,
    list: &'static str,
    index: usize,
    value: Value,
    read: impl FnOnce(&mut Fields) -> Option<T>,
) -> Option<T> {
    let object: Map<String, Value> = match value {
        Value::Object(object) => object,
        other => {
            top.fault(list, &format!("element {index} is not an object but {}", kind(&other)));
            return None;
        }
    };
    let mut fields = Fields::new(&format!("{}{list}[{index}].", top.prefix()), object);
    let read = read(&mut fields);
    top.faults.append(&mut fields.faults);
    read
}

/// Is there something in a text, and not more than `cap` bytes?
pub(crate) fn fits(fields: &mut Fields, key: &str, text: &str, cap: usize) -> bool {
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
