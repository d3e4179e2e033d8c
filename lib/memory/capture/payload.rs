//! The JSON that a hook gets: an object with a few keys that matter, and more in every version of the program. Unknown
//! keys are fine; known keys of a wrong type are errors.

use crate::base::error::{Error, Result};
use crate::base::fields::kind;
use crate::base::text::one_line;
use crate::store::journal::entry::id_fault;
use serde_json::{Map, Value};
use std::path::PathBuf;

pub(super) struct Payload(Map<String, Value>);

impl Payload {
    pub(super) fn parse(bytes: &[u8]) -> Result<Payload> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        match serde_json::from_slice(bytes) {
            Ok(Value::Object(object)) => Ok(Payload(object)),
            Ok(other) => Err(wrong(&format!("a JSON object is expected, not {}", kind(&other)))),
            Err(e) => Err(wrong(&format!("not JSON: {e}"))),
        }
    }

    /// The text of a key; `None` if it is missing, null or empty.
    pub(super) fn text(&self, key: &str) -> Result<Option<&str>> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(&format!("{key}: a string is expected, not {}", kind(other)))),
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|value| !value.is_null())
    }

    /// A required id.
    pub(super) fn id(&self, key: &str) -> Result<&str> {
        let Some(id) = self.text(key)? else { return Err(wrong(&format!("{key}: is missing"))) };
        match id_fault(id) {
            None => Ok(id),
            Some(fault) => Err(wrong(&format!("{key}: {fault}"))),
        }
    }

    /// An absolute path; `None` for a relative one, because its base is unknown.
    pub(super) fn absolute(&self, key: &str) -> Result<Option<PathBuf>> {
        Ok(self.text(key)?.filter(|path| path.starts_with('/')).map(PathBuf::from))
    }

    /// The first element of a list of strings.
    pub(super) fn first(&self, key: &str) -> Result<Option<&str>> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(values)) => match values.first() {
                None => Ok(None),
                Some(Value::String(text)) => Ok(Some(text)),
                Some(other) => Err(wrong(&format!("{key}: strings are expected, not {}", kind(other)))),
            },
            Some(other) => Err(wrong(&format!("{key}: an array is expected, not {}", kind(other)))),
        }
    }
}

fn wrong(what: &str) -> Error {
    Error::usage(format!("the hook's JSON cannot be used: {}", one_line(what, 300)))
        .hint("--harness must name the program that runs the hook")
}
