//! A line that an MCP server sends: a message, a page of its list of tools, or the result of a call.

use crate::agent::mcp::{page, told};
use crate::base::json_rpc::{Message, parse};
use crate::fuzz::is_told;
use serde_json::Value;

pub fn holds(bytes: &[u8]) {
    let answer = match parse(bytes) {
        Ok(Message::Answer(_, answer)) => answer,
        Ok(Message::Request { id, method, params }) => {
            // All came from the line, and the id goes nowhere but back.
            let whole: Value = serde_json::from_slice(bytes).unwrap();
            let sent = (whole["id"].clone(), whole["method"].as_str(), whole["params"].clone());
            assert_eq!(sent, (id, Some(method.as_str()), params));
            return;
        }
        Ok(Message::Notification(_)) => return,
        Err(fault) => return is_told(&fault.text),
    };
    let result = match answer {
        Ok(result) => result,
        Err(why) => return is_told(&why),
    };
    if let Ok((tools, next)) = page(&result) {
        assert_eq!(tools.len(), result["tools"].as_array().unwrap().len());
        assert!(next.is_none_or(|cursor| !cursor.is_empty()));
    }
    let told = told(&result);
    if let (Ok(text), Some(parts)) = (&told, result["content"].as_array()) {
        let texts =
            parts.iter().filter(|part| part["type"] == "text").filter_map(|part| part["text"].as_str());
        let is_data = parts.is_empty() && result.get("structuredContent").is_some_and(|data| !data.is_null());
        assert!(is_data || texts.clone().all(|part| text.contains(part)), "no text is lost");
    }
    assert_eq!(
        told.is_err(),
        result["isError"] == true || told == Err("sent a result without content".to_owned())
    );
}
