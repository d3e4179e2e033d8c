//! The content of a message, as several programs keep it: a string, or a list of parts with a `type`.

use crate::harness::tool::IMAGE;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A part of a message. Which fields it has depends on `kind`.
#[derive(Deserialize, Default)]
pub(super) struct ContentPart<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    /// `text`, `input_text`, `output_text`, `summary_text`
    pub(super) text: Option<String>,
    /// `thinking`
    pub(super) thinking: Option<String>,
    /// `tool_use`
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    /// `tool_result`
    pub(super) tool_use_id: Option<String>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    pub(super) is_error: Option<bool>,
}

/// The parts of a message's content; those in a shape that is new to us are `None`.
pub(super) fn parts(content: &RawValue) -> Vec<Option<ContentPart<'_>>> {
    parts_as(content, |text| ContentPart {
        kind: Cow::Borrowed("text"),
        text: Some(text),
        ..ContentPart::default()
    })
}

/// The same, with parts in a program's own form; `of_text` makes one of a content that is a string.
pub(super) fn parts_as<'a, P: Deserialize<'a>>(
    content: &'a RawValue,
    of_text: fn(String) -> P,
) -> Vec<Option<P>> {
    let json = content.get();
    if json.starts_with('"')
        && let Ok(text) = serde_json::from_str(json)
    {
        return vec![Some(of_text(text))];
    }
    match serde_json::from_str::<Vec<&RawValue>>(json) {
        Ok(parts) => {
            parts.into_iter().map(|part: &'a RawValue| serde_json::from_str(part.get()).ok()).collect()
        }
        Err(_) if json == "null" => Vec::new(),
        Err(_) => vec![None],
    }
}

/// What a tool's result says: a string, the text of its parts, or whatever JSON it is.
pub(super) fn text(content: &RawValue) -> String {
    let json = content.get();
    if json.starts_with('"') {
        if let Ok(text) = serde_json::from_str(json) {
            return text;
        }
    } else if json.starts_with('[') {
        let parts = parts(content);
        let texts: Option<Vec<String>> = parts
            .into_iter()
            .map(|part| {
                let part = part?;
                part.text.or_else(|| part.kind.contains("image").then(|| IMAGE.to_owned()))
            })
            .collect();
        if let Some(texts) = texts {
            return texts.join("\n");
        }
    }
    json.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn a_result_is_text_whatever_its_shape() {
        assert_eq!(text(&raw(r#""a\nb""#)), "a\nb");
        assert_eq!(
            text(&raw(r#"[{"type":"text","text":"a"},{"type":"image","source":{}}]"#)),
            format!("a\n{IMAGE}")
        );
        assert_eq!(text(&raw(r#"{"ok":1}"#)), r#"{"ok":1}"#);
        assert_eq!(text(&raw(r#"[{"rows":3}]"#)), r#"[{"rows":3}]"#);
        assert_eq!(text(&raw("[]")), "");
    }

    #[test]
    fn a_part_in_another_shape_does_not_cost_the_others() {
        let content = raw(r#"[{"type":"text","text":"a"},{"type":"text","text":7},3,{"kind":"x"}]"#);
        let parts = parts(&content);
        let found: Vec<_> = parts.iter().map(|part| part.as_ref().map(|part| part.text.as_deref())).collect();
        assert_eq!(found, [Some(Some("a")), None, None, Some(None)]);
        assert!(super::parts(&raw("null")).is_empty());
        assert_eq!(super::parts(&raw("7")).len(), 1);
    }
}
