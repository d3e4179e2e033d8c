//! A line that an MCP server sends: a message, a page of its list of tools, or the result of a call.

use crate::agent::mcp::{Message, page, parse, told};
use crate::fuzz::is_told;
use serde_json::Value;

pub fn holds(bytes: &[u8]) {
    let answer = match parse(bytes) {
        Ok(Message::Answer(id, answer)) => {
            assert!(!id.is_null());
            answer
        }
        Ok(Message::Request(id, method)) => {
            // Both came from the line, and go nowhere but back.
            let whole: Value = serde_json::from_slice(bytes).unwrap();
            assert_eq!((whole["id"].clone(), whole["method"].as_str()), (id, Some(method.as_str())));
            return;
        }
        Ok(Message::Other) => return,
        Err(why) => return is_told(&why),
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
