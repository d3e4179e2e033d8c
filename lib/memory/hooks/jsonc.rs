//! Edits of JSON with comments: an item is appended to a list or object, or taken out again.
//!
//! The library finds where the values are. The edits are made in the text, so that by construction every other byte
//! stays as it is: comments, trailing commas, tabs, line ends. Taking out an item that was appended gives the old text.

use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::ParseError;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use std::ops::Range;

/// What a program accepts besides JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) comments: bool,
    pub(super) trailing_commas: bool,
}

/// What people write, whatever the program accepts.
pub(super) const LENIENT: Dialect = Dialect { comments: true, trailing_commas: true };

/// `None` if the text has no value at all.
pub(super) fn parse(text: &str, dialect: Dialect) -> Result<Option<Value<'_>>, ParseError> {
    let options = ParseOptions {
        allow_comments: dialect.comments,
        allow_trailing_commas: dialect.trailing_commas,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    parse_to_ast(text, &CollectOptions::default(), &options).map(|parsed| parsed.value)
}

/// The last member of that name: of several, programs use that one.
pub(super) fn member<'v, 'a>(value: &'v Value<'a>, name: &str) -> Option<&'v ObjectProp<'a>> {
    value.as_object()?.properties.iter().rev().find(|member| member.name.as_str() == name)
}

/// Line and column, both from 1, the column in characters.
pub(super) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

/// A value that we write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Json {
    Text(String),
    Number(u64),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    /// Does the file say the same, in whatever order and layout?
    pub(super) fn is_same(&self, value: &Value) -> bool {
        match (self, value) {
            (Json::Text(text), Value::StringLit(other)) => *text == other.value,
            (Json::Number(number), Value::NumberLit(other)) => number.to_string() == other.value,
            (Json::List(items), Value::Array(other)) => {
                items.len() == other.elements.len()
                    && items.iter().zip(&other.elements).all(|(item, other)| item.is_same(other))
            }
            (Json::Object(members), Value::Object(other)) => {
                members.len() == other.properties.len()
                    && members.iter().all(|(name, item)| {
                        member(value, name).is_some_and(|other| item.is_same(&other.value))
                    })
            }
            _ => false,
        }
    }

    /// The value as text. `indent` is that of its first line; `None`: all on one line.
    pub(super) fn text(&self, style: &Style, indent: Option<&str>) -> String {
        match self {
            Json::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
            Json::Number(number) => number.to_string(),
            Json::List(items) => {
                let items = items.iter().map(|item| (String::new(), item)).collect();
                lines('[', items, ']', style, indent)
            }
            Json::Object(members) => {
                let keyed = members.iter().map(|(name, item)| (style.key(name), item)).collect();
                lines('{', keyed, '}', style, indent)
            }
        }
    }
}

fn lines(
    open: char,
    items: Vec<(String, &Json)>,
    close: char,
    style: &Style,
    indent: Option<&str>,
) -> String {
    let inner = indent.map(|indent| format!("{indent}{}", style.unit));
    let texts: Vec<_> =
        items.iter().map(|(key, item)| format!("{key}{}", item.text(style, inner.as_deref()))).collect();
    match (&inner, indent) {
        (Some(inner), Some(indent)) => {
            let newline = style.newline;
            let separator = format!(",{newline}{inner}");
            format!("{open}{newline}{inner}{}{newline}{indent}{close}", texts.join(&separator))
        }
        _ => format!("{open}{}{close}", texts.join(&format!(",{}", style.space))),
    }
}

/// How a file is written, as far as it can be told.
#[derive(Debug, Clone)]
pub(super) struct Style {
    newline: &'static str,
    unit: String,
    /// After a colon, and after a comma in a line.
    space: &'static str,
    /// The whole file is on one line.
    is_one_line: bool,
}

impl Style {
    pub(super) fn of(text: &str, root: &Value) -> Style {
        let newline = match text.find('\n') {
            Some(at) if text[..at].ends_with('\r') => "\r\n",
            _ => "\n",
        };
        let range = root.range();
        let inner = &text[range.start..range.end];
        let is_empty = root.as_object().is_some_and(|object| object.properties.is_empty());
        let first = root.as_object().and_then(|object| object.properties.first());
        let unit =
            first.and_then(|first| own_indent(text, first.range.start)).filter(|unit| !unit.is_empty());
        let is_one_line = !is_empty && !inner.contains('\n');
        let is_tight = is_one_line && !inner.contains(": ");
        Style {
            newline,
            unit: unit.unwrap_or("  ").to_owned(),
            space: if is_tight { "" } else { " " },
            is_one_line,
        }
    }

    fn key(&self, name: &str) -> String {
        format!("\"{name}\":{}", self.space)
    }
}

/// The white space before `at`, if there is nothing else before it in its line.
fn own_indent(text: &str, at: usize) -> Option<&str> {
    let start = text[..at].rfind('\n')? + 1;
    let before = &text[start..at];
    before.chars().all(|c| c == ' ' || c == '\t').then_some(before)
}

/// The indentation of the line that `at` is in.
fn line_indent(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = &text[start..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// A list or an object, with the places of its items.
#[derive(Debug, Clone)]
pub(super) struct Container {
    /// Between the brackets.
    inner: Range<usize>,
    items: Vec<Range<usize>>,
}

impl Container {
    pub(super) fn of(value: &Value) -> Option<Container> {
        let (range, items): (_, Vec<_>) = match value {
            Value::Object(object) => (object.range, object.properties.iter().map(Ranged::range).collect()),
            Value::Array(array) => (array.range, array.elements.iter().map(Ranged::range).collect()),
            _ => return None,
        };
        let items = items.into_iter().map(|range| range.start..range.end).collect();
        Some(Container { inner: range.start + 1..range.end - 1, items })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        self.items.len()
    }

    /// Comments and white space, if it is empty.
    pub(super) fn inner<'t>(&self, text: &'t str) -> &'t str {
        &text[self.inner.clone()]
    }

    /// The text with `inner` between the brackets.
    pub(super) fn with_inner(&self, text: &str, inner: &str) -> String {
        format!("{}{inner}{}", &text[..self.inner.start], &text[self.inner.end..])
    }

    /// The text with an item more at the end. `name` is that of a member.
    pub(super) fn append(&self, text: &str, name: Option<&str>, item: &Json, style: &Style) -> String {
        let key = name.map_or(String::new(), |name| style.key(name));
        let written = |indent: Option<&str>| format!("{key}{}", item.text(style, indent));
        let Some(last) = self.items.last() else { return self.fill(text, &written, style) };
        let (comments, next) = skip(text, last.end);
        let has_comma = text[next..].starts_with(',');
        // A comment at the end of the last item's line stays there.
        let (from, comments) =
            if has_comma { (next + 1, skip(text, next + 1).0) } else { (last.end, comments) };
        let end = comments
            .iter()
            .take_while(|comment| !text[from..comment.start].contains('\n'))
            .last()
            .map_or(from, |comment| comment.end);
        let is_in_line_comment = comments.iter().any(|c| c.end == end && text[c.clone()].starts_with("//"));
        let item = match own_indent(text, last.start) {
            Some(indent) => format!("{}{indent}{}", style.newline, written(Some(indent))),
            None if is_in_line_comment => format!("{}{}", style.newline, written(None)),
            None => format!("{}{}", style.space, written(None)),
        };
        match has_comma {
            true => format!("{}{item},{}", &text[..end], &text[end..]),
            false => format!("{},{}{item}{}", &text[..last.end], &text[last.end..end], &text[end..]),
        }
    }

    /// The text with a first item.
    fn fill(&self, text: &str, written: &dyn Fn(Option<&str>) -> String, style: &Style) -> String {
        let Range { start, end } = self.inner;
        let after = skip(text, start).0.last().map_or(start, |comment| comment.end);
        if style.is_one_line {
            return format!("{}{}{}", &text[..after], written(None), &text[after..]);
        }
        let indent = line_indent(text, start);
        let deeper = format!("{indent}{}", style.unit);
        let newline = style.newline;
        let rest = match text[after..end].contains('\n') {
            true => text[after..end].to_owned(),
            false => format!("{newline}{indent}"),
        };
        format!("{}{newline}{deeper}{}{rest}{}", &text[..after], written(Some(&deeper)), &text[end..])
    }

    /// The text with item `index` written anew, in the same place.
    pub(super) fn replace(&self, text: &str, index: usize, item: &Json, style: &Style) -> String {
        let Range { start, end } = self.items[index].clone();
        let item = item.text(style, own_indent(text, start));
        format!("{}{item}{}", &text[..start], &text[end..])
    }

    /// The text without item `index` and its comma.
    pub(super) fn remove(&self, text: &str, index: usize) -> String {
        let Range { start, end } = self.items[index].clone();
        let (comments, next) = skip(text, end);
        let comma_after = text[next..].starts_with(',').then_some(next);
        let comma_before = index.checked_sub(1).map(|before| skip(text, self.items[before].end).1);
        let bound = comma_before.map_or(self.inner.start, |comma| comma + 1);
        let bound = skip(text, bound).0.last().map_or(bound, |comment| comment.end);
        let from = start - (text[bound..start].len() - text[bound..start].trim_end().len());
        match (comma_after, comma_before) {
            (Some(comma), _) => {
                let rest = if comments.is_empty() { "" } else { &text[end..comma] };
                format!("{}{rest}{}", &text[..from], &text[comma + 1..])
            }
            (None, Some(comma)) => {
                format!("{}{}{}", &text[..comma], &text[comma + 1..from], &text[end..])
            }
            (None, None) => format!("{}{}", &text[..from], &text[end..]),
        }
    }
}

/// The comments from `at` on, and where the next token is. The text has been parsed, so that they are whole.
fn skip(text: &str, mut at: usize) -> (Vec<Range<usize>>, usize) {
    let mut comments = Vec::new();
    loop {
        at = text.len() - text[at..].trim_start().len();
        let rest = &text[at..];
        let length = if rest.starts_with("//") {
            rest.find(['\n', '\r']).unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            return (comments, at);
        };
        comments.push(at..at + length);
        at += length;
    }
}
