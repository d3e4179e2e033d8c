//! Programs that a model may call: `[tools.NAME]` in an agent's file.
//!
//! The declaration fixes the program and its words. The model fills in arguments, each of which stays one argument, whatever
//! it contains; there is no shell.

use crate::base::error::{Error, Result};
use crate::base::json_schema::Schema;
use crate::base::text::{is_name, nearest};
use crate::config::toml_file::{count, if_set};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The tool with which an agent calls another.
pub const CALL_AGENT: &str = "call_agent";
/// Seconds, unless the declaration sets `timeout`.
const TIMEOUT: u64 = 30;
/// How much of a tool's output the model is told, in bytes, unless the declaration sets `max_output`; and at most.
const OUTPUT: usize = 256 * 1024;
const MOST_OUTPUT: usize = 16 * 1024 * 1024;
/// The longest name that all APIs take.
const LONGEST_NAME: usize = 64;

/// `[tools.NAME]`, as it is written.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ToolEntry {
    pub description: String,
    pub command: Vec<String>,
    /// Name to `TYPE[, required][: text]`.
    pub parameters: BTreeMap<String, String>,
    /// A file with a JSON Schema, instead of `parameters`.
    pub schema: String,
    pub stdin: String,
    /// Seconds; 0: the default.
    #[serde(deserialize_with = "count")]
    pub timeout: u64,
    /// The exit codes that are no failure; empty: 0 alone.
    pub ok_exit: Vec<i32>,
    /// Bytes; 0: the default.
    #[serde(deserialize_with = "count")]
    pub max_output: usize,
    pub confirm: bool,
}

/// A tool that is ready to be offered.
#[derive(Debug, Clone)]
pub struct DeclaredTool {
    pub name: String,
    pub description: String,
    /// Of the arguments, which are an object.
    pub schema: Schema,
    pub words: Vec<CommandWord>,
    /// The parameters that are paths inside the working directory.
    pub paths: BTreeSet<String>,
    /// Whether the arguments are given on stdin, as one JSON object.
    pub stdin_json: bool,
    pub timeout_seconds: u64,
    /// The exit codes that are no failure.
    pub ok_exit: Vec<i32>,
    /// How much of its output the model is told, in bytes.
    pub max_output: usize,
    /// Whether a person is asked before each call.
    pub confirm: bool,
    /// The command as it was declared, for people.
    pub shown: String,
    /// The server that it is called at, and its name there; `None`: it is a program.
    pub server: Option<(String, String)>,
}

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandWord(pub Vec<WordPart>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordPart {
    Text(String),
    /// The argument of this name.
    Argument(String),
}

impl DeclaredTool {
    /// The first word of its command.
    pub fn program(&self) -> String {
        self.words.first().map(ToString::to_string).unwrap_or_default()
    }
}

impl ToolEntry {
    /// Checks the declaration. `schema` is that of the file which it names.
    pub fn declared(&self, name: &str, schema: Option<Schema>) -> Result<DeclaredTool> {
        let wrong = |why: String| Err(Error::config(format!("tools.{name}: {why}")));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
            return wrong(format!(
                "a tool's name has 1 to {LONGEST_NAME} letters without accents, digits, _ and -"
            ));
        }
        if name == CALL_AGENT {
            return wrong("this name is reserved for calls of sub-agents".to_owned());
        }
        let (schema, paths) = match schema {
            Some(_) if !self.parameters.is_empty() => {
                return wrong("it has both parameters and a schema".to_owned());
            }
            Some(schema) => (schema, BTreeSet::new()),
            None => self.parameters_as_schema().map_err(|error| error.context(format!("tools.{name}")))?,
        };
        let properties = schema.value().get("properties").and_then(Value::as_object);
        let known: BTreeSet<&str> = properties.into_iter().flat_map(Map::keys).map(String::as_str).collect();
        let words = self.command_words(&known).map_err(|error| error.context(format!("tools.{name}")))?;
        if let Some(code) = self.ok_exit.iter().find(|code| !(0..=255).contains(*code)) {
            return wrong(format!("ok_exit has {code}; exit codes are 0 to 255"));
        }
        if self.max_output > MOST_OUTPUT {
            return wrong(format!("max_output is more than {MOST_OUTPUT} bytes"));
        }
        let uses_arguments =
            words.iter().flat_map(|word| &word.0).any(|part| matches!(part, WordPart::Argument(_)));
        let stdin_json = match self.stdin.as_str() {
            "" => !uses_arguments,
            "json" => true,
            "none" => false,
            other => return wrong(format!("stdin is \"{other}\"; use \"json\" or \"none\"")),
        };
        let Ok(shown) = shlex::try_join(self.command.iter().map(String::as_str)) else {
            return wrong("a word of command contains a NUL".to_owned());
        };
        Ok(DeclaredTool {
            name: name.to_owned(),
            description: self.description.clone(),
            schema,
            words,
            paths,
            stdin_json,
            timeout_seconds: if_set(self.timeout).unwrap_or(TIMEOUT),
            ok_exit: if self.ok_exit.is_empty() { vec![0] } else { self.ok_exit.clone() },
            max_output: if self.max_output == 0 { OUTPUT } else { self.max_output },
            confirm: self.confirm,
            shown,
            server: None,
        })
    }

    /// The words of the command, if the model can fill in nothing but arguments.
    fn command_words(&self, known: &BTreeSet<&str>) -> Result<Vec<CommandWord>> {
        let wrong = |why: String| Err(Error::config(why));
        let words: Vec<CommandWord> =
            self.command.iter().map(|word| CommandWord::parse(word, known)).collect();
        match words.first().map(|word| &word.0[..]) {
            None => return wrong("command is missing; write it as a list of words".to_owned()),
            Some([WordPart::Text(text)]) if text.trim().is_empty() => {
                return wrong("the first word of command is empty; it must be a program".to_owned());
            }
            Some([WordPart::Text(_)]) => {}
            Some(_) => {
                return wrong("the first word of command must be a program, not an argument".to_owned());
            }
        }
        if let Some(word) = words.iter().find(|word| word.lets_choose_a_flag()) {
            return wrong(format!("with the word \"{word}\" a model could choose any flag"));
        }
        if let Some(placeholder) = self.command.iter().find_map(|word| unknown_placeholder(word, known)) {
            let inside = &placeholder[1..placeholder.len() - 1];
            return wrong(match nearest(inside, known.iter().copied()) {
                Some(near) => format!("\"{placeholder}\" is no parameter, did you mean \"{{{near}}}\"?"),
                None => format!(
                    "\"{placeholder}\" is no parameter; declare it under parameters, or write \"{{ {inside} }}\" if it is text"
                ),
            });
        }
        Ok(words)
    }

    /// The schema that `parameters` describe, and which of them are paths.
    fn parameters_as_schema(&self) -> Result<(Schema, BTreeSet<String>)> {
        let (mut properties, mut required, mut paths) = (Map::new(), Vec::new(), BTreeSet::new());
        for (name, text) in &self.parameters {
            let wrong = |why: &str| {
                Err(Error::config(format!("parameter \"{name}\" {why}"))
                    .hint("write it like \"string, required: what it is\""))
            };
            if name.is_empty() || name.contains(['{', '}']) {
                return wrong("has a name that cannot be used");
            }
            let (kind, description) = text.split_once(':').unwrap_or((text, ""));
            let mut words = kind.split(',').map(str::trim);
            let of = match words.next().unwrap_or_default() {
                "path" => {
                    paths.insert(name.clone());
                    "string"
                }
                known @ ("string" | "integer" | "number" | "boolean") => known,
                other => {
                    let types = "string, integer, number, boolean or path";
                    return wrong(&format!("has the type \"{other}\"; use {types}"));
                }
            };
            match (words.next(), words.next()) {
                (None, _) => {}
                (Some("required"), None) => required.push(name.clone()),
                _ => return wrong("has more than a type and \"required\" before its colon"),
            }
            properties.insert(name.clone(), json!({ "type": of, "description": description.trim() }));
        }
        let schema = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        });
        Ok((Schema::new(schema)?, paths))
    }
}

/// The first `{name}` in a word that looks like an argument and is none: a typing error. `${name}`, `%{name}`, `@{name}`,
/// `#{name}`, `\p{name}` and `{{name}}` are other programs' placeholders.
fn unknown_placeholder<'a>(word: &'a str, known: &BTreeSet<&str>) -> Option<&'a str> {
    let is_other = |before: &str| {
        before.ends_with(['$', '{', '%', '@', '#']) || before.bytes().rev().nth(1) == Some(b'\\')
    };
    word.match_indices('{').filter(|(at, _)| !is_other(&word[..*at])).find_map(|(at, _)| {
        let (name, _) = word[at + 1..].split_once('}')?;
        (is_name(name) && !known.contains(name)).then(|| &word[at..at + name.len() + 2])
    })
}

impl CommandWord {
    /// Whether it is an option on its own, like `-m` or `--max`.
    pub fn is_flag(&self) -> bool {
        matches!(&self.0[..], [WordPart::Text(text)]
            if text.starts_with('-') && text.contains(|c| c != '-') && !text.contains('='))
    }

    /// `{name}` is an argument where `name` is declared, and text otherwise.
    fn parse(word: &str, known: &BTreeSet<&str>) -> CommandWord {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = word;
        while let Some(start) = rest.find('{') {
            let (before, from) = rest.split_at(start);
            text.push_str(before);
            match from[1..].split_once('}') {
                Some((name, after)) if known.contains(name) => {
                    if !text.is_empty() {
                        parts.push(WordPart::Text(std::mem::take(&mut text)));
                    }
                    parts.push(WordPart::Argument(name.to_owned()));
                    rest = after;
                }
                _ => {
                    text.push('{');
                    rest = &from[1..];
                }
            }
        }
        text.push_str(rest);
        if !text.is_empty() || parts.is_empty() {
            parts.push(WordPart::Text(text));
        }
        CommandWord(parts)
    }

    /// Whether it is like `-{x}`, in which an argument names the flag.
    fn lets_choose_a_flag(&self) -> bool {
        matches!(&self.0[..], [WordPart::Text(text), WordPart::Argument(_), ..] if text.chars().all(|c| c == '-'))
    }
}

impl std::fmt::Display for CommandWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            WordPart::Text(text) => f.write_str(text),
            WordPart::Argument(name) => write!(f, "{{{name}}}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(command: &[&str], parameters: &[(&str, &str)]) -> ToolEntry {
        ToolEntry {
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            parameters: parameters.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            ..ToolEntry::default()
        }
    }

    #[test]
    fn words_have_the_declared_arguments_and_nothing_else() {
        let known = BTreeSet::from(["x", "y"]);
        let text = |text: &str| WordPart::Text(text.to_owned());
        let argument = |name: &str| WordPart::Argument(name.to_owned());
        for (word, parts) in [
            ("a", vec![text("a")]),
            ("", vec![text("")]),
            ("{x}", vec![argument("x")]),
            ("--a={x}", vec![text("--a="), argument("x")]),
            ("{x}{y}", vec![argument("x"), argument("y")]),
            ("{print $1}", vec![text("{print $1}")]),
            ("{{x}}", vec![text("{"), argument("x"), text("}")]),
            ("{z}{x", vec![text("{z}{x")]),
        ] {
            assert_eq!(CommandWord::parse(word, &known).0, parts, "{word}");
        }
    }

    #[test]
    fn a_declaration_becomes_a_schema() {
        let tool = entry(
            &["rg", "{pattern}"],
            &[("pattern", "string, required: a: b"), ("n", "integer"), ("dir", "path : where")],
        );
        let tool = tool.declared("search", None).unwrap();
        assert_eq!(
            tool.schema.value(),
            &json!({
                "type": "object", "required": ["pattern"], "additionalProperties": false,
                "properties": {
                    "dir": { "type": "string", "description": "where" },
                    "n": { "type": "integer", "description": "" },
                    "pattern": { "type": "string", "description": "a: b" },
                },
            })
        );
        assert_eq!((tool.paths.len(), tool.stdin_json, tool.timeout_seconds), (1, false, 30));
        assert!(entry(&["sort"], &[]).declared("sort", None).unwrap().stdin_json);
    }

    #[test]
    fn a_wrong_declaration_is_an_error() {
        let x = ("x", "string");
        for (name, entry, why) in [
            ("a b", entry(&["cat"], &[]), "a tool's name has"),
            ("call_agent", entry(&["cat"], &[]), "reserved"),
            ("a", entry(&[], &[]), "command is missing"),
            ("a", entry(&["{x}"], &[x]), "the first word"),
            ("a", entry(&["cat", "-{x}"], &[x]), "choose any flag"),
            ("a", entry(&["cat", "--{x}"], &[x]), "choose any flag"),
            ("a", entry(&["cat"], &[("x", "text")]), "has the type \"text\""),
            ("a", entry(&["cat"], &[("x", "string, optional")]), "more than a type"),
            ("a", entry(&["cat"], &[("{", "string")]), "a name that cannot be used"),
            ("a", ToolEntry { stdin: "xml".into(), ..entry(&["cat"], &[]) }, "use \"json\" or \"none\""),
        ] {
            let error = entry.declared(name, None).unwrap_err();
            assert!(error.message().contains(why), "{why}: {error}");
            assert_eq!(error.exit_code(), 2);
        }
        let schema = Schema::new(json!({})).unwrap();
        let both = entry(&["cat"], &[x]).declared("a", Some(schema)).unwrap_err();
        assert!(both.message().contains("both parameters and a schema"), "{both}");
    }
}
