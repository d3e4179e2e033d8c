//! What the three wire formats have in common: reading replies leniently, describing tools.

use crate::base::text::one_line;
use crate::provider::error::CallError;
use crate::provider::message::{CallArguments, ChatTurn, Request, Tool, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// A message in OpenAI's and Ollama's format. They differ in how a tool's result names its call.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum ChatMessage<'a> {
    Text { role: &'static str, content: &'a str },
    Raw(&'a RawValue),
    ResultById { role: &'static str, tool_call_id: &'a str, content: &'a str },
    ResultByName { role: &'static str, tool_name: &'a str, content: &'a str },
}

/// The conversation so far, with the system prompt as its first message.
pub(super) fn messages<'a>(
    request: &'a Request,
    result: fn(&'a ToolResult) -> ChatMessage<'a>,
) -> Vec<ChatMessage<'a>> {
    let mut messages = Vec::with_capacity(request.turns.len() + 1);
    if !request.system.is_empty() {
        messages.push(ChatMessage::Text { role: "system", content: &request.system });
    }
    for turn in &request.turns {
        match turn {
            ChatTurn::User(text) => messages.push(ChatMessage::Text { role: "user", content: text }),
            ChatTurn::Assistant(raw) => messages.push(ChatMessage::Raw(raw)),
            ChatTurn::ToolResults(results) => messages.extend(results.iter().map(result)),
        }
    }
    messages
}

/// A reply's outer form. Serde's message names what is missing or of the wrong type, and where.
pub(super) fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, CallError> {
    serde_json::from_slice(bytes).map_err(|e| {
        CallError::server(format!("the reply cannot be read: {}", one_line(&e.to_string(), 200)))
    })
}

/// A count. One that is missing or not a whole number is 0: that must not cost a valid answer.
pub(super) fn count(usage: &Value, pointer: &str) -> u64 {
    usage.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

pub(super) fn text_at(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A tool's parameters as a JSON schema.
pub(super) fn schema(tool: &Tool) -> Value {
    let properties: Map<String, Value> = tool
        .parameters
        .iter()
        .map(|p| (p.name.to_owned(), json!({ "type": "string", "description": p.description })))
        .collect();
    let required: Vec<_> = tool.parameters.iter().filter(|p| p.required).map(|p| p.name).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

/// A call's arguments: an object or, in OpenAI's format, the text of one.
pub(super) fn arguments(value: Option<&Value>) -> CallArguments {
    let malformed = |why: String| CallArguments::Malformed(why);
    match value {
        Some(Value::Object(map)) => CallArguments::Object(map.clone()),
        Some(Value::String(text)) => serde_json::from_str(text).map_or_else(
            |e| malformed(format!("the arguments are not a JSON object: {}", one_line(&e.to_string(), 200))),
            CallArguments::Object,
        ),
        Some(_) => malformed("the arguments are not a JSON object".to_owned()),
        None => malformed("the arguments are missing".to_owned()),
    }
}

#[cfg(test)]
pub(crate) mod examples {
    //! Requests and results that the tests of all three formats use.

    use crate::provider::message::{ChatTurn, Parameter, Request, Tool, ToolResult};
    use serde_json::value::RawValue;

    pub(crate) fn plain() -> Request {
        Request {
            model: "m-1".into(),
            system: String::new(),
            turns: vec![ChatTurn::User("hi".into())],
            tools: vec![],
            temperature: None,
            max_tokens: None,
        }
    }

    pub(crate) fn with_tools(assistant: &str) -> Request {
        let parameter = |name, required| Parameter { name, description: format!("the {name}"), required };
        let result = |id: &str, content: &str, is_error| ToolResult {
            id: id.into(),
            name: "call_agent".into(),
            content: content.into(),
            is_error,
        };
        Request {
            system: "be brief".into(),
            turns: vec![
                ChatTurn::User("hi".into()),
                ChatTurn::Assistant(RawValue::from_string(assistant.into()).unwrap()),
                ChatTurn::ToolResults(vec![result("a", "1", false), result("b", "broken", true)]),
            ],
            tools: vec![Tool {
                name: "call_agent",
                description: "calls".into(),
                parameters: vec![parameter("agent", true), parameter("context", false)],
            }],
            temperature: Some(0.0),
            max_tokens: Some(0),
            ..plain()
        }
    }
}
