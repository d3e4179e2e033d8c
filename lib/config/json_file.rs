//! JSON that people write by hand. Each value knows its place, and each member of an object is kept, so that unknown
//! and repeated keys can be reported with their line.
//!
//! serde_json reads it. Its raw values are slices of the text, and the address of a slice gives its place.

use crate::base::error::{Error, Result};
use crate::base::members::Members;
use crate::config::toml_file::{error_after, place, text};
use serde_json::value::RawValue;

/// A value in a file.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    file: &'a str,
    raw: &'a str,
}

/// A member of an object.
#[derive(Debug)]
pub struct Member<'a> {
    pub(super) key: Node<'a>,
    pub(super) name: String,
    pub(super) value: Node<'a>,
}

/// The whole file as a value. The error is one line with its place, and never quotes the file's text.
pub(super) fn parse(bytes: &[u8]) -> Result<Node<'_>> {
    let file = text(bytes)?;
    if file.trim().is_empty() {
        return Err(Error::config("line 1: the file is empty; {} would do"));
    }
    match serde_json::from_str::<&RawValue>(file) {
        Ok(raw) => Ok(Node { file, raw: raw.get() }),
        Err(e) => Err(syntax_error(file, &e)),
    }
}

/// serde_json's message with our place. The two mistakes that people make get messages of their own.
fn syntax_error(file: &str, error: &serde_json::Error) -> Error {
    let words = error.to_string();
    let what = words.split(" at line ").next().unwrap_or_default();
    let start = file.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
    let line = file[start..].lines().next().unwrap_or_default();
    let at = (start + error.column().saturating_sub(1)).min(file.len());
    let (before, after) = file.as_bytes().split_at(at);
    let what = if after.starts_with(b"/") || line.trim_start().starts_with(['#', '/']) {
        "comments are not part of JSON".to_owned()
    } else if after.starts_with(b"}") && before.trim_ascii_end().ends_with(b",") {
        "there is a comma before the closing bracket".to_owned()
    } else {
        format!("not valid JSON: {what}")
    };
    error_after(before, &what)
}

impl<'a> Node<'a> {
    /// Counts lines from the start of the file: for a message about one value, not for all.
    pub(super) fn line(&self) -> usize {
        let at = self.raw.as_ptr().addr() - self.file.as_ptr().addr();
        place(&self.file.as_bytes()[..at]).0
    }

    /// The value as the file spells it.
    pub(super) fn raw(&self) -> &'a str {
        self.raw
    }

    pub(super) fn kind(&self) -> &'static str {
        match self.raw.as_bytes().first() {
            Some(b'{') => "an object",
            Some(b'[') => "a list",
            Some(b'"') => "a string",
            Some(b't' | b'f') => "true or false",
            Some(b'n') => "null",
            _ => "a number",
        }
    }

    /// The members in their order, repeated ones too; `None` if it is no object.
    pub(super) fn members(&self) -> Option<Vec<Member<'a>>> {
        let members: Members<'a, &'a RawValue> = serde_json::from_str(self.raw).ok()?;
        let node = |raw: &'a RawValue| Node { file: self.file, raw: raw.get() };
        let member = |(key, value)| Member {
            key: node(key),
            // Half a surrogate pair, which none of our names contains.
            name: node(key).string().unwrap_or_else(|| key.get().to_owned()),
            value: node(value),
        };
        Some(members.0.into_iter().map(member).collect())
    }

    pub(super) fn items(&self) -> Option<Vec<Node<'a>>> {
        let items: Vec<&'a RawValue> = serde_json::from_str(self.raw).ok()?;
        Some(items.into_iter().map(|raw| Node { file: self.file, raw: raw.get() }).collect())
    }

    pub(super) fn string(&self) -> Option<String> {
        serde_json::from_str(self.raw).ok()
    }

    pub(super) fn flag(&self) -> Option<bool> {
        serde_json::from_str(self.raw).ok()
    }

    pub(super) fn is_null(&self) -> bool {
        self.raw == "null"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_know_their_lines() {
        let node =
            parse(b"\xef\xbb\xbf{\r\n \"a\": 1,\r\n \"b\":\r\n  {\"c\": [1,\r\n 2]}, \"a\": 3}").unwrap();
        let members = node.members().unwrap();
        let seen: Vec<_> =
            members.iter().map(|m| (m.name.as_str(), m.key.line(), m.value.line(), m.value.raw())).collect();
        assert_eq!(seen[0], ("a", 2, 2, "1"));
        assert_eq!((seen[1].1, seen[1].2, seen[2]), (3, 4, ("a", 5, 5, "3")));
        let list = members[1].value.members().unwrap()[0].value.items().unwrap();
        assert_eq!(list.iter().map(Node::line).collect::<Vec<_>>(), [4, 5]);
        assert!(list[0].members().is_none() && node.items().is_none());
    }

    #[test]
    fn escaped_keys_are_read_and_broken_ones_kept() {
        let members = parse(br#"{"\u0061": 1, "\ud800": 2}"#).unwrap().members().unwrap();
        assert_eq!(members.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(), ["a", r#""\ud800""#]);
    }

    #[test]
    fn faults_are_placed_and_comments_told() {
        for (text, fault) in [
            (&b"{\n \"a\": 1,\n}"[..], "line 3, column 1: there is a comma before the closing bracket"),
            (b"{\n // root\n \"a\": 1}", "line 2, column 2: comments are not part of JSON"),
            (b"{\"a\": 1 /* x */}", "line 1, column 9: comments are not part of JSON"),
            (b"# mine\n{}", "line 1, column 1: comments are not part of JSON"),
            (b"\n\n{} x", "line 3, column 4: not valid JSON: trailing characters"),
            (b"{\"\xc3\xa4\": x}", "line 1, column 7: not valid JSON: expected value"),
            (b"{\"a\": \"\xff\"}", "line 1, column 8: not valid UTF-8"),
            (b" \n", "line 1: the file is empty; {} would do"),
            (b"{\"a\": ", "line 1, column 6: not valid JSON: EOF while parsing a value"),
        ] {
            assert_eq!(parse(text).unwrap_err().message(), fault);
        }
    }

    #[test]
    fn depth_costs_no_stack() {
        assert!(parse("[".repeat(1 << 20).as_bytes()).is_err());
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(1 << 18), "]".repeat(1 << 18));
        assert_eq!(parse(deep.as_bytes()).unwrap().members().unwrap()[0].value.kind(), "a list");
    }
}
