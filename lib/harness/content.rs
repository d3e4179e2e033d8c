//! The content of a message as most programs keep it, in the form of Anthropic's, OpenAI's or Gemini's API: a string, or
//! a list of parts.

use crate::harness::object::{Object, Skip, Taken};
use crate::harness::tool::IMAGE;
use serde_json::value::RawValue;

/// A part of a message, whichever API's it is.
pub(super) enum ContentPart<'a> {
    Text(String),
    Thought(String),
    Image,
    ToolUse(ToolUse<'a>),
    Result {
        key: Option<String>,
        text: String,
        failed: bool,
    },
    /// None that we know, of this kind.
    Other(String),
}

/// A tool is called, with arguments in JSON.
pub(super) struct ToolUse<'a> {
    pub(super) key: Option<String>,
    pub(super) name: String,
    pub(super) input: &'a str,
}

impl<'a> ToolUse<'a> {
    pub(super) fn of(call: &Object<'a>) -> Result<ToolUse<'a>, Skip> {
        let input = ["input", "arguments", "args"].iter().find_map(|key| call.raw(key));
        let name = call.text("name")?.unwrap_or_else(|| "tool".to_owned());
        Ok(ToolUse { key: call.text("id")?, name, input: input.map_or("{}", RawValue::get) })
    }
}

impl<'a> ContentPart<'a> {
    fn of(json: &'a str) -> Result<ContentPart<'a>, Skip> {
        let part = Object::parse(json)?;
        let kind = part.kind()?;
        Ok(match &*kind {
            "" => ContentPart::of_gemini(&part)?,
            "thinking" | "redacted_thinking" => {
                ContentPart::Thought(part.text("thinking")?.unwrap_or_default())
            }
            "tool_use" | "toolCall" => ContentPart::ToolUse(ToolUse::of(&part)?),
            "tool_result" => ContentPart::Result {
                key: part.text("tool_use_id")?,
                text: part.raw("content").map(text).unwrap_or_default(),
                failed: part.is("is_error"),
            },
            // `text`, `input_text`, `output_text`, `summary_text`
            kind if kind.ends_with("text") => ContentPart::Text(part.text("text")?.unwrap_or_default()),
            kind if kind.contains("image") => ContentPart::Image,
            _ => ContentPart::Other(kind),
        })
    }

    /// Gemini's parts have no type.
    fn of_gemini(part: &Object<'a>) -> Result<ContentPart<'a>, Skip> {
        if let Some(response) = part.object("functionResponse")? {
            let (text, failed) = answer(response.raw("response"));
            return Ok(ContentPart::Result { key: response.text("id")?, text, failed });
        }
        if let Some(call) = part.object("functionCall")? {
            return Ok(ContentPart::ToolUse(ToolUse::of(&call)?));
        }
        let is_thought = part.flag("thought")?;
        Ok(match part.text("text")? {
            Some(text) if is_thought => ContentPart::Thought(text),
            Some(text) => ContentPart::Text(text),
            None if part.raw("inlineData").is_some() => ContentPart::Image,
            None => ContentPart::Other("of another kind".to_owned()),
        })
    }

    /// What a reader that does not expect it says of it.
    pub(super) fn unknown(self) -> Taken {
        Err(Skip::Unknown(match self {
            ContentPart::Other(kind) => kind,
            _ => "of another kind".to_owned(),
        }))
    }
}

/// The parts of a message's content.
pub(super) fn parts(content: &RawValue) -> Vec<Result<ContentPart<'_>, Skip>> {
    let json = content.get();
    if let Ok(text) = serde_json::from_str(json) {
        return vec![Ok(ContentPart::Text(text))];
    }
    match serde_json::from_str::<Vec<&RawValue>>(json) {
        Ok(parts) => parts.into_iter().map(|part| ContentPart::of(part.get())).collect(),
        Err(_) => vec![Err(Skip::Shape)],
    }
}

/// A tool's result as text: the string, the text of its parts, or the JSON as it is.
pub(super) fn text(content: &RawValue) -> String {
    if let Ok(text) = serde_json::from_str(content.get()) {
        return text;
    }
    let text = |part: &&RawValue| {
        let part = Object::parse(part.get()).ok()?;
        let is_image = part.kind().ok()?.contains("image");
        part.text("text").ok()?.or_else(|| is_image.then(|| IMAGE.to_owned()))
    };
    let parts = serde_json::from_str::<Vec<&RawValue>>(content.get()).ok();
    let texts: Option<Vec<String>> = parts.and_then(|parts| parts.iter().map(text).collect());
    texts.map_or_else(|| content.get().to_owned(), |texts| texts.join("\n"))
}

/// What a tool of Gemini's answered, and whether it failed.
fn answer(response: Option<&RawValue>) -> (String, bool) {
    let Some(response) = response else { return (String::new(), false) };
    let object = Object::parse(response.get()).ok();
    let value = |key: &str| object.as_ref().and_then(|object| object.raw(key));
    let (said, failed) = match (value("output"), value("error")) {
        (Some(output), _) => (text(output), false),
        (None, Some(error)) => (text(error), true),
        (None, None) => (response.get().to_owned(), false),
    };
    let inner = said.trim().strip_prefix("<untrusted_context>");
    let inner = inner.map(|inner| inner.strip_suffix("</untrusted_context>").unwrap_or(inner).trim());
    (inner.map(str::to_owned).unwrap_or(said), failed)
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
        assert_eq!(text(&raw(r#"[{"type":"text","text":"a"},{"type":"resource","text":"b"}]"#)), "a\nb");
        assert_eq!(text(&raw(r#"[{"type":"text","text":null}]"#)), r#"[{"type":"text","text":null}]"#);
    }

    #[test]
    fn a_part_of_unknown_shape_does_not_affect_the_others() {
        let content = raw(r#"[{"type":"text","text":"a"},{"type":"text","text":7},3,{"kind":"x"}]"#);
        let found: Vec<_> = parts(&content)
            .into_iter()
            .map(|part| match part {
                Ok(ContentPart::Text(text)) => text,
                Ok(_) => "other".to_owned(),
                Err(_) => "shape".to_owned(),
            })
            .collect();
        assert_eq!(found, ["a", "shape", "shape", "other"]);
        assert_eq!(parts(&raw("7")).len(), 1);
    }
}
