//! Turns in JSON Lines: what the `readCommand` of any program may print. Somebody writes that command for us, so a line
//! that is wrong is an error with its number.

use crate::base::error::{Error, Result};
use crate::base::lines::next_line;
use crate::base::text::one_line;
use crate::harness::content::PromptMessage;
use crate::harness::out::TurnSink;
use crate::harness::source::{self, LINE_CAP, failed};
use crate::harness::spec::Format;
use crate::harness::spec::ToolKind::{Edit, Own, Question, Read, Search, Shell, SubAgent, Write};
use crate::harness::turn::{Ids, Role};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::path::Path;

/// Somebody's own program has tools by the usual names.
pub static TURNS: Format = Format {
    read,
    tools: &[
        (Shell, "bash exec_command run_shell_command shell"),
        (Read, "read read_file view"),
        (Edit, "edit"),
        (Search, "grep"),
        (Write, "apply_patch create write write_file"),
        (Own, "glob list list_directory ls todowrite"),
        (SubAgent, "agent task"),
        (Question, "ask_user question"),
    ],
    ..Format::ANY
};

#[derive(Deserialize)]
struct TurnLine<'a> {
    role: Role,
    /// Of a tool: what it printed.
    text: Option<String>,
    time: Option<String>,
    id: Option<String>,
    tool: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    failed: Option<bool>,
    /// Of the user: a person typed it, and whoever prints it knows that.
    typed: Option<bool>,
}

fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    let mut reader = source::open(path, "a file of turns in JSON Lines")?;
    let mut ids = Ids::default();
    let mut buffer = Vec::new();
    let (mut number, mut turns) = (0_usize, 0_usize);
    loop {
        let found = next_line(&mut reader, &mut buffer, LINE_CAP).map_err(|e| failed(path, &e))?;
        if found.length == 0 {
            break;
        }
        number += 1;
        if buffer.trim_ascii().is_empty() && !found.too_long {
            continue;
        }
        let turn = match found.too_long {
            true => Err(format!("it has more than {} MiB", LINE_CAP >> 20)),
            false => serde_json::from_slice(&buffer).map_err(|e| reason(&e)).and_then(complete),
        };
        let turn = turn.map_err(|why| {
            Error::io(format!("\"{}\", line {number}, is not a turn: {why}", path.display()))
                .hint("print one JSON object per line, as memory-configuration(7) describes it")
        })?;
        add(turn, &mut ids, out)?;
        turns += 1;
    }
    if turns == 0 {
        return Err(Error::io(format!(
            "\"{}\" contains only white space, and is not a turn",
            path.display()
        )));
    }
    Ok(())
}

/// Without the position in the line, which says little.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(reason, _)| reason.to_owned())
}

/// A turn that has what its role needs.
fn complete(turn: TurnLine) -> Result<TurnLine, String> {
    if let Some(time) = turn.time.as_deref().filter(|time| time.parse::<Timestamp>().is_err()) {
        return Err(format!("\"{}\" is not an RFC 3339 time", one_line(time, 80)));
    }
    match turn.role {
        Role::Document => Err("unknown role `document`".to_owned()),
        _ if turn.typed.is_some() && turn.role != Role::User => {
            Err("`typed` is only for the role user".to_owned())
        }
        Role::Tool if turn.tool.is_none() => Err("missing field `tool`".to_owned()),
        Role::Tool => Ok(turn),
        _ if turn.text.is_none() => Err("missing field `text`".to_owned()),
        _ if turn.tool.is_some() || turn.input.is_some() || turn.failed.is_some() => {
            Err("`tool`, `input` and `failed` are only for the role tool".to_owned())
        }
        _ => Ok(turn),
    }
}

fn add(turn: TurnLine, ids: &mut Ids, out: &mut TurnSink) -> Result<()> {
    let text = turn.text.unwrap_or_default();
    out.at = turn.time.and_then(|time| time.parse().ok());
    if turn.role == Role::Tool {
        let (tool, input) = (turn.tool.unwrap_or_default(), turn.input.map_or("{}", RawValue::get));
        let key = turn.id.unwrap_or_else(|| ids.next(Role::Tool, &format!("{tool} {input}\n{text}")));
        out.call(&key, &tool, input, key.clone())?;
        return out.result(&key, &text, turn.failed == Some(true));
    }
    let id = turn.id.unwrap_or_else(|| ids.next(turn.role, &text));
    match turn.role {
        Role::User => out.prompt(PromptMessage::of(&text), Some(turn.typed == Some(true)), id),
        role => out.turn(role, &text, id),
    }
}
