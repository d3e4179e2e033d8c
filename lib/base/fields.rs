//! Reads a JSON object from outside key by key. Every fault is reported with the path of its key; unknown keys are
//! faults too.

use crate::base::error::Fault;
use crate::base::text::{did_you_mean, one_line};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// The longest path, in bytes.
pub const PATH_CAP: usize = 4096;

/// The keys of one JSON object, taken one by one. Those that are left at the end are unknown.
pub struct Fields {
    prefix: String,
    object: Map<String, Value>,
    asked: Vec<&'static str>,
    pub faults: Vec<Fault>,
}

impl Fields {
    pub fn new(prefix: &str, object: Map<String, Value>) -> Fields {
        Fields { prefix: prefix.to_owned(), object, asked: Vec::new(), faults: Vec::new() }
    }

    /// The path of this object, for the paths of objects inside it.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// All faults, with one for each key that was not asked for.
    pub fn end(mut self) -> Vec<Fault> {
        for key in self.object.keys() {
            let near = near(key, &self.asked);
            let path = format!("{}{}", self.prefix, brief(key));
            self.faults.push(Fault { path, message: format!("unknown key{near}") });
        }
        self.faults
    }

    pub fn fault(&mut self, key: &str, what: &str) {
        self.faults.push(Fault { path: format!("{}{key}", self.prefix), message: what.to_owned() });
    }

    pub fn missing(&mut self, key: &str) {
        self.fault(key, "is missing");
    }

    pub fn take(&mut self, key: &'static str) -> Option<Value> {
        self.asked.push(key);
        self.object.remove(key)
    }

    /// Whether an optional key has a value; a null is taken out.
    pub fn nullable(&mut self, key: &'static str) -> bool {
        let has_value = self.object.get(key).is_some_and(|value| !value.is_null());
        if !has_value {
            self.take(key);
        }
        has_value
    }

    /// The value of a key that `read` accepts; otherwise that `what` is expected, or that it is missing.
    fn expect<T>(
        &mut self,
        key: &'static str,
        what: &str,
        read: impl FnOnce(Value) -> Result<T, Value>,
    ) -> Option<T> {
        let fault = match self.take(key).map(read) {
            Some(Ok(value)) => return Some(value),
            Some(Err(other)) => format!("{what} is expected, not {}", kind(&other)),
            None => "is missing".to_owned(),
        };
        self.fault(key, &fault);
        None
    }

    pub fn text(&mut self, key: &'static str) -> Option<String> {
        self.expect(
            key,
            "a string",
            |value| if let Value::String(text) = value { Ok(text) } else { Err(value) },
        )
    }

    /// What `parse` makes of a text; or else its fault.
    pub fn parsed<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(String) -> Result<T, String>,
    ) -> Option<T> {
        parse(self.text(key)?).map_err(|fault| self.fault(key, &fault)).ok()
    }

    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.expect(key, "true or false", |value| value.as_bool().ok_or(value))
    }

    pub fn object(&mut self, key: &'static str) -> Option<Map<String, Value>> {
        self.expect(
            key,
            "an object",
            |value| if let Value::Object(all) = value { Ok(all) } else { Err(value) },
        )
    }

    pub fn one_of(&mut self, key: &'static str, known: &[&str]) -> Option<String> {
        let text = self.text(key)?;
        if known.contains(&text.as_str()) {
            return Some(text);
        }
        let all = known.join(", ");
        self.fault(key, &format!("\"{}\" is none of {all}{}", brief(&text), near(&text, known)));
        None
    }

    /// One line that is not empty.
    pub fn line(&mut self, key: &'static str, cap: usize) -> Option<String> {
        let text = self.text(key)?;
        let fault = if text.trim().is_empty() {
            "is empty".to_owned()
        } else if text.len() > cap {
            format!("has {} bytes; at most {cap} are taken", text.len())
        } else if text.contains(|c: char| c.is_control()) {
            format!("\"{}\" has line breaks or control characters", brief(&text))
        } else {
            return Some(text);
        };
        self.fault(key, &fault);
        None
    }

    pub fn path(&mut self, key: &'static str) -> Option<PathBuf> {
        let text = self.line(key, PATH_CAP)?;
        if text.starts_with('/') {
            return Some(PathBuf::from(text));
        }
        self.fault(key, &format!("\"{}\" is not an absolute path", brief(&text)));
        None
    }
}

/// The end of a message about a word that is none of those that are known.
fn near(word: &str, known: &[&str]) -> String {
    did_you_mean(word, known.iter().copied()).map_or(String::new(), |near| format!("; {near}"))
}

pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A value for a message.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{}\"", brief(text)),
        Value::Number(_) | Value::Bool(_) | Value::Null => value.to_string(),
        Value::Array(_) | Value::Object(_) => kind(value).to_owned(),
    }
}

pub fn brief(text: &str) -> String {
    one_line(text, 80)
}
