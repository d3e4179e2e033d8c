//! The lines of the input and of the output.

use crate::agent::stats::RunStats;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::lines::next_line;
use crate::base::stdin::unreadable;
use crate::base::text::{lossy, size};
use crate::store::answers::fields;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::io::BufRead;

/// The longest line, in bytes.
const LINE_CAP: usize = 16 << 20;

/// A line of the input.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) number: u64,
    /// As they are written in the output.
    pub(super) id: Box<RawValue>,
    pub(super) input: Box<RawValue>,
    /// What the model is told.
    pub(super) text: String,
    pub(super) is_too_long: bool,
}

impl Line {
    /// An object has its `input`, or is its own, and may have an `id`. Anything else is text, and its number is its id.
    fn new(number: u64, mut bytes: Vec<u8>, is_too_long: bool) -> Option<Line> {
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        let text = lossy(bytes).0;
        let text = if number == 1 { text.trim_start_matches('\u{feff}') } else { &text };
        if text.trim().is_empty() && !is_too_long {
            return None;
        }
        let mut line = Line {
            number,
            id: raw_of(&number),
            input: if is_too_long { RawValue::NULL.to_owned() } else { raw_of(&text) },
            text: text.to_owned(),
            is_too_long,
        };
        if let Some(fields) = fields(text.trim().as_bytes()) {
            let is_id =
                |id: &&&RawValue| id.get().starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit());
            if let Some(id) = fields.get("id").filter(is_id) {
                line.id = (*id).to_owned();
            }
            if let Some(input) = fields.get("input") {
                let said = serde_json::from_str::<String>(input.get());
                line.text = said.unwrap_or_else(|_| input.get().to_owned());
                line.input = (*input).to_owned();
            } else if let Ok(whole) = RawValue::from_string(text.trim().to_owned()) {
                line.text = whole.get().to_owned();
                line.input = whole;
            }
        }
        Some(line)
    }

    pub(super) fn too_long() -> Error {
        Error::usage(format!("the line is longer than {}", size(LINE_CAP as u64)))
    }

    /// The error for an answer that belongs to another question.
    pub(super) fn conflict(&self) -> Error {
        Error::conflict(format!(
            "line {} has the id {}, which belongs to another input, in the file of --resume or in a line before it",
            self.number, self.id
        ))
        .hint("give the lines ids of their own, or use another file")
    }
}

fn raw_of(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The lines of an input that are not blank.
pub(super) fn lines(mut from: impl BufRead) -> impl Iterator<Item = Result<Line>> {
    let mut number = 0;
    std::iter::from_fn(move || {
        loop {
            let mut bytes = Vec::new();
            let is_too_long = match next_line(&mut from, &mut bytes, LINE_CAP) {
                Ok(read) if read.length == 0 => return None,
                Ok(read) => read.too_long,
                Err(e) => return Some(Err(unreadable(e))),
            };
            number += 1;
            if let Some(line) = Line::new(number, bytes, is_too_long) {
                return Some(Ok(line));
            }
        }
    })
}

/// A line of the output.
#[derive(Debug, Serialize)]
pub(super) struct OutputLine {
    id: Box<RawValue>,
    input: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<LineError>,
    usage: Usage,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct LineError {
    kind: ErrorKind,
    message: String,
    /// What was said before: it was paid for.
    #[serde(skip_serializing_if = "String::is_empty")]
    said: String,
}

#[derive(Debug, Serialize)]
struct Usage {
    input_tokens: u64,
    output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
}

impl OutputLine {
    /// `is_json`: the answer is a JSON document, which may have several lines.
    pub(super) fn answer(
        line: Line,
        text: &str,
        is_json: bool,
        warnings: Vec<String>,
        stats: &RunStats,
    ) -> OutputLine {
        let document = if is_json { RawValue::from_string(on_one_line(text)).ok() } else { None };
        let result = Some(document.unwrap_or_else(|| raw_of(&text)));
        OutputLine { result, error: None, warnings, ..OutputLine::blank(line, stats) }
    }

    pub(super) fn error(line: Line, error: &Error, said: String, stats: &RunStats) -> OutputLine {
        let error = LineError { kind: error.kind(), message: error.message().to_owned(), said };
        OutputLine { error: Some(error), ..OutputLine::blank(line, stats) }
    }

    fn blank(line: Line, stats: &RunStats) -> OutputLine {
        let usage = Usage {
            input_tokens: stats.tokens.input,
            output_tokens: stats.tokens.output,
            cost: stats.cost.amount().filter(|_| stats.tokens.input + stats.tokens.output > 0),
        };
        OutputLine { id: line.id, input: line.input, result: None, error: None, usage, warnings: Vec::new() }
    }
}

/// A JSON document without the white space between its parts.
fn on_one_line(json: &str) -> String {
    let (mut in_text, mut is_escaped) = (false, false);
    let keep = |c: &char| {
        if in_text {
            in_text = is_escaped || *c != '"';
            is_escaped = !is_escaped && *c == '\\';
            return true;
        }
        in_text = *c == '"';
        !c.is_ascii_whitespace()
    };
    json.chars().filter(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number, id, input and text of each line.
    fn told(input: &str) -> Vec<(u64, String, String, String)> {
        let shown = |line: Result<Line>| {
            let line = line.unwrap();
            (line.number, line.id.to_string(), line.input.to_string(), line.text)
        };
        lines(input.as_bytes()).map(shown).collect()
    }

    #[test]
    fn each_line_decides_for_itself_what_it_is() {
        for (input, id, shown, text) in [
            ("hello", "1", r#""hello""#, "hello"),
            ("  two words \r", "1", r#""  two words ""#, "  two words "),
            (r#"{"id": "a", "input": "x\ny"}"#, r#""a""#, r#""x\ny""#, "x\ny"),
            (r#"{"id": -7.0, "input": {"t": [1, 2]}}"#, "-7.0", r#"{"t": [1, 2]}"#, r#"{"t": [1, 2]}"#),
            (
                r#" {"id": "a", "title": "T"}"#,
                r#""a""#,
                r#"{"id": "a", "title": "T"}"#,
                r#"{"id": "a", "title": "T"}"#,
            ),
            (r#"{"input": null}"#, "1", "null", "null"),
            (r#"{"id": null, "input": ""}"#, "1", r#""""#, ""),
            (r#"{"id": {"a": 1}, "input": 5}"#, "1", "5", "5"),
            (r#"{"id": 1, "input": "#, "1", r#""{\"id\": 1, \"input\": ""#, r#"{"id": 1, "input": "#),
            (r#"[{"id": 5}]"#, "1", r#""[{\"id\": 5}]""#, r#"[{"id": 5}]"#),
            ("\u{feff}{\"id\": 3}", "3", r#"{"id": 3}"#, r#"{"id": 3}"#),
        ] {
            let expected = (1, id.to_owned(), shown.to_owned(), text.to_owned());
            assert_eq!(told(input), [expected], "{input}");
        }
    }

    #[test]
    fn blank_lines_count_but_are_none() {
        let numbers: Vec<u64> = told("\n a\n\r\n \t\nb\n\n\nc").iter().map(|line| line.0).collect();
        assert_eq!(numbers, [2, 5, 8]);
    }

    #[test]
    fn a_line_of_any_length_is_read_and_one_that_is_too_long_is_told() {
        let input = format!("{}\nb\n", "x".repeat(LINE_CAP + 1));
        let all: Vec<_> = lines(input.as_bytes()).map(Result::unwrap).collect();
        assert_eq!((all.len(), all[0].is_too_long, all[0].input.get()), (2, true, "null"));
        assert_eq!((all[1].is_too_long, all[1].text.as_str()), (false, "b"));
    }

    #[test]
    fn a_document_loses_only_the_space_between_its_parts() {
        let json = "{\n\t\"a b\" : \"x \\\" \\\\\", \r\n \"c\": [ 1.0, 2 ] }";
        assert_eq!(on_one_line(json), "{\"a b\":\"x \\\" \\\\\",\"c\":[1.0,2]}");
    }
}
