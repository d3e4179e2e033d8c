//! The content of a message as most programs keep it, in the form of Anthropic's, OpenAI's or Gemini's API: a string, or
//! a list of parts.

use crate::harness::tool::IMAGE;
use crate::harness::turn::SessionReport;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A part of a message. Which fields it has depends on `kind`; parts of Gemini's API have none, and one of the last
/// fields.
#[derive(Deserialize, Default)]
pub(super) struct ContentPart<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    /// `text`, `input_text`, `output_text`, `summary_text`; of Gemini's API
    pub(super) text: Option<String>,
    /// `thinking`
    pub(super) thinking: Option<String>,
    /// `tool_use`, `toolCall`
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    #[serde(borrow, alias = "arguments")]
    pub(super) input: Option<&'a RawValue>,
    /// `tool_result`
    pub(super) tool_use_id: Option<String>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    pub(super) is_error: Option<bool>,
    /// Of Gemini's API: the text is a thought.
    pub(super) thought: Option<bool>,
    #[serde(borrow, rename = "functionCall")]
    pub(super) function_call: Option<FunctionCall<'a>>,
    #[serde(borrow, rename = "functionResponse")]
    pub(super) function_response: Option<FunctionResponse<'a>>,
    #[serde(borrow, rename = "inlineData")]
    pub(super) inline_data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct FunctionCall<'a> {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    #[serde(borrow)]
    pub(super) args: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) result: Option<&'a RawValue>,
    pub(super) status: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct FunctionResponse<'a> {
    pub(super) id: Option<String>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
}

/// The parts of a message's content with their positions. Those of an unknown shape are counted in `report`.
pub(super) fn known_parts<'a>(
    content: Option<&'a RawValue>,
    name: &str,
    report: &mut SessionReport,
) -> Vec<(usize, ContentPart<'a>)> {
    let mut known = Vec::new();
    for (n, part) in content.map(parts).unwrap_or_default().into_iter().enumerate() {
        match part {
            Some(part) => known.push((n, part)),
            None => report.unknown(&format!("{name} in another shape")),
        }
    }
    known
}

/// The parts of a message's content; `None` for those of an unknown shape.
pub(super) fn parts(content: &RawValue) -> Vec<Option<ContentPart<'_>>> {
    let json = content.get();
    if json.starts_with('"')
        && let Ok(text) = serde_json::from_str(json)
    {
        return vec![Some(ContentPart {
            kind: Cow::Borrowed("text"),
            text: Some(text),
            ..ContentPart::default()
        })];
    }
    match serde_json::from_str::<Vec<&RawValue>>(json) {
        Ok(parts) => parts.into_iter().map(|part| serde_json::from_str(part.get()).ok()).collect(),
        Err(_) if json == "null" => Vec::new(),
        Err(_) => vec![None],
    }
}

/// A tool's result as text: the string, the text of its parts, or the JSON as it is.
pub(super) fn text(content: &RawValue) -> String {
    let json = content.get();
    if json.starts_with('"') {
        if let Ok(text) = serde_json::from_str(json) {
            return text;
        }
    } else if json.starts_with('[') {
        let texts: Option<Vec<String>> = parts(content)
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
    fn a_part_of_unknown_shape_does_not_affect_the_others() {
        let content = raw(r#"[{"type":"text","text":"a"},{"type":"text","text":7},3,{"kind":"x"}]"#);
        let parts = parts(&content);
        let found: Vec<_> = parts.iter().map(|part| part.as_ref().map(|part| part.text.as_deref())).collect();
        assert_eq!(found, [Some(Some("a")), None, None, Some(None)]);
        assert!(super::parts(&raw("null")).is_empty());
        assert_eq!(super::parts(&raw("7")).len(), 1);
    }
}
