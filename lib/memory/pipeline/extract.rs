//! The JSON object in what a model said: alone, in a fence, or in the middle of prose.

use crate::base::error::{Error, Result};
use crate::base::text::border;
use serde_json::{Map, Value};

/// The object that has `key`; of several the last, because models repeat the schema before they answer.
pub(crate) fn object_with(text: &str, key: &str) -> Result<Map<String, Value>> {
    let mut found = None;
    let mut fault = None;
    let mut from = 0;
    while let Some(at) = text[from..].find('{').map(|at| from + at) {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(Value::Object(object))) => {
                let end = at + values.byte_offset();
                if object.contains_key(key) {
                    found = Some(object);
                }
                from = end;
            }
            Some(Err(e)) => {
                // The first fault is that of the outermost object, which is what was meant.
                if fault.is_none() {
                    fault = Some(if e.is_eof() {
                        "it ends before its JSON does".to_owned()
                    } else {
                        e.to_string()
                    });
                }
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
