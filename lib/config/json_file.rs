//! JSON that people write by hand. Each value knows its place and its key path, and each member of an object is kept, so that
//! unknown and repeated keys can be reported with their line.
//!
//! serde_json reads it. Its raw values are slices of the text, and the address of a slice gives its place.

use crate::base::error::{Error, Result};
use crate::base::members::Members;
use crate::base::text::one_line;
use crate::config::toml_file::{error_after, place, text};
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::path::Path;

/// How many characters of a key or a number are quoted in a message.
const QUOTED: usize = 60;

/// A value in a file, or the key of one.
#[derive(Debug, Clone)]
pub struct JsonNode<'a> {
    file: &'a str,
    /// As the file spells it.
    pub(super) raw: &'a str,
    /// `agentsMd.targets[2]`; empty for the whole file. It is for messages: unusual names are quoted or shortened.
    pub(super) key: String,
}

/// A member of an object. Both nodes have its key path.
#[derive(Debug)]
pub struct Member<'a> {
    pub(super) name: String,
    pub(super) key: JsonNode<'a>,
    pub(super) value: JsonNode<'a>,
}

/// What is wrong with a value.
pub(super) struct ValueFault<'a> {
    pub(super) at: JsonNode<'a>,
    what: String,
    /// Only computed for the fault that is reported, because a file can have very many.
    hint: Option<Box<dyn FnOnce() -> String>>,
}

/// The whole file as a value. The error is one line with its place, and never quotes the file's text.
pub(super) fn parse(bytes: &[u8]) -> Result<JsonNode<'_>> {
    let file = text(bytes)?;
    if file.trim().is_empty() {
        return Err(Error::config("line 1: the file is empty; {} would do"));
    }
    let raw: &RawValue = serde_json::from_str(file).map_err(|e| syntax_error(file, &e))?;
    Ok(JsonNode { file, raw: raw.get(), key: String::new() })
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

impl<'a> JsonNode<'a> {
    fn below(&self, raw: &'a RawValue, key: String) -> JsonNode<'a> {
        JsonNode { file: self.file, raw: raw.get(), key }
    }

    /// Counts lines from the start of the file: for a message about one value, not for all.
    fn line(&self) -> usize {
        let at = self.raw.as_ptr().addr() - self.file.as_ptr().addr();
        place(&self.file.as_bytes()[..at]).0
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

    /// The members in their order, repeated ones too.
    pub(super) fn members(&self, what: &str) -> Result<Vec<Member<'a>>, ValueFault<'a>> {
        let members: Result<Members<'a, &'a RawValue>, _> = serde_json::from_str(self.raw);
        let member = |(key, value): (&'a RawValue, &'a RawValue)| {
            // Half a surrogate pair, which none of our names contains.
            let name = serde_json::from_str(key.get()).unwrap_or_else(|_| key.get().to_owned());
            let is_plain = !name.is_empty() && name.trim() == name;
            let shown = one_line(&if is_plain { name.clone() } else { format!("{name:?}") }, QUOTED);
            let path = if self.key.is_empty() { shown } else { format!("{}.{shown}", self.key) };
            Member { name, key: self.below(key, path.clone()), value: self.below(value, path) }
        };
        members.map(|all| all.0.into_iter().map(member).collect()).map_err(|_| self.expected(what))
    }

    /// The members, each name once.
    pub(super) fn named(&self, what: &str) -> Result<Vec<(String, JsonNode<'a>)>, ValueFault<'a>> {
        let mut seen = BTreeSet::new();
        let once = |Member { name, value, .. }: Member<'a>| {
            if seen.insert(name.clone()) { Ok((name, value)) } else { Err(value.fault("is there twice")) }
        };
        self.members(what)?.into_iter().map(once).collect()
    }

    pub(super) fn items(&self, what: &str) -> Result<Vec<JsonNode<'a>>, ValueFault<'a>> {
        let items: Vec<&'a RawValue> = serde_json::from_str(self.raw).map_err(|_| self.expected(what))?;
        let item = |(n, raw)| self.below(raw, format!("{}[{n}]", self.key));
        Ok(items.into_iter().enumerate().map(item).collect())
    }

    /// A string that is not blank.
    pub(super) fn text(&self, what: &str) -> Result<String, ValueFault<'a>> {
        if self.kind() != "a string" {
            return Err(self.expected(what));
        }
        let text: String = serde_json::from_str(self.raw)
            .map_err(|_| self.fault("not valid text: it contains half a character"))?;
        if text.trim().is_empty() {
            return Err(self.fault("must not be empty"));
        }
        if text.contains('\0') {
            return Err(self.fault("must not contain a NUL character"));
        }
        Ok(text)
    }

    pub(super) fn fault(&self, what: impl Into<String>) -> ValueFault<'a> {
        ValueFault { at: self.clone(), what: what.into(), hint: None }
    }

    /// A value of another kind was expected. A string is not quoted, because it may contain an API key.
    pub(super) fn expected(&self, what: &str) -> ValueFault<'a> {
        let kind = self.kind();
        let found = if kind == "a number" { &one_line(self.raw, QUOTED) } else { kind };
        self.fault(format!("expected {what}, found {found}"))
    }
}

impl ValueFault<'_> {
    pub(super) fn hint(mut self, next: impl FnOnce() -> String + 'static) -> Self {
        self.hint = Some(Box::new(next));
        self
    }

    /// `"FILE" line 4, storage.rooot: unknown key`
    pub(super) fn error(self, file: &Path) -> Error {
        let key = if self.at.key.is_empty() { String::new() } else { format!(", {}", self.at.key) };
        let line = self.at.line();
        let error = Error::config(format!("\"{}\" line {line}{key}: {}", file.display(), self.what));
        if let Some(hint) = self.hint { error.hint(hint()) } else { error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_know_their_lines() {
        let node =
            parse(b"\xef\xbb\xbf{\r\n \"a\": 1,\r\n \"b\":\r\n  {\"c\": [1,\r\n 2]}, \"a\": 3}").unwrap();
        let members = node.members("").ok().unwrap();
        let seen: Vec<_> =
            members.iter().map(|m| (m.name.as_str(), m.key.line(), m.value.line(), m.value.raw)).collect();
        assert_eq!(seen[0], ("a", 2, 2, "1"));
        assert_eq!((seen[1].1, seen[1].2, seen[2]), (3, 4, ("a", 5, 5, "3")));
        let list = members[1].value.members("").ok().unwrap()[0].value.items("").ok().unwrap();
        assert_eq!(list.iter().map(JsonNode::line).collect::<Vec<_>>(), [4, 5]);
        assert!(list[0].members("").is_err() && node.items("").is_err());
        assert_eq!((list[1].key.as_str(), seen[0].0), ("b.c[1]", "a"));
    }

    #[test]
    fn escaped_keys_are_read_and_broken_ones_kept() {
        let members = parse(br#"{"\u0061": 1, "\ud800": 2}"#).unwrap().members("").ok().unwrap();
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
        assert_eq!(parse(deep.as_bytes()).unwrap().members("").ok().unwrap()[0].value.kind(), "a list");
    }
}
