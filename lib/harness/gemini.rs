//! Gemini CLI: `~/.gemini/tmp/<project>/chats/session-<minute>-<id>.jsonl`.
//!
//! A log of changes to a list of messages, not the list: a message with a known id replaces the earlier one,
//! `$set.messages` replaces the list. Played back, it gives what the model knows now; wanted is what was said.
//! The two differ where history was compressed: then a summary and copies under new ids stand in the list, and
//! what they stand for is gone from it. So:
//!
//! - what a list drops while it brings something new was compressed: the old stays, the new is left out;
//! - what a list only drops, at its end, was taken back, as after an error of the service: it is gone;
//! - the first list after a header is where a resumed session starts from nothing, before it loads the rest.
//!
//! Two passes: the first plays the log with places in the file for messages, the second reads what is left.

use crate::ground::error::Result;
use crate::harness::content;
use crate::harness::out::Out;
use crate::harness::source::{self, Line, Reader, Seen, each_line, failed, parse};
use crate::harness::tool::{Arguments, IMAGE};
use crate::harness::turn::Role;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::io::{self, Read, Seek};
use std::path::Path;

/// Messages of the program to its user.
const NOTICES: &[&str] = &["error", "info", "warning"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    id: Option<String>,
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    session_id: Option<String>,
    project_hash: Option<String>,
    #[serde(rename = "kind")]
    session_kind: Option<String>,
    #[serde(borrow, rename = "$set")]
    set: Option<Patch<'a>>,
}

#[derive(Deserialize)]
struct Patch<'a> {
    #[serde(borrow)]
    messages: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Named<'a> {
    id: Option<String>,
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    #[serde(default)]
    id: String,
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    timestamp: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    thoughts: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Thought {
    #[serde(default)]
    subject: String,
    #[serde(default)]
    description: String,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    status: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    text: Option<String>,
    thought: Option<bool>,
    #[serde(borrow)]
    function_call: Option<ToolCall<'a>>,
    #[serde(borrow)]
    function_response: Option<Response<'a>>,
    #[serde(borrow)]
    inline_data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Response<'a> {
    id: Option<String>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

pub(crate) fn read(path: &Path, out: &mut Out) -> Result<()> {
    let mut reader = source::open(path, "a Gemini CLI session")?;
    let mut log = Log::default();
    each_line(path, &mut reader, "Gemini CLI", out, |line, out| Ok(log.line(line, out)))?;
    let mut here = reader.stream_position().map_err(|e| failed(path, &e))?;
    let mut bytes = Vec::new();
    for message in log.messages.iter().filter(|message| message.standing == Standing::Said) {
        let found = message_at(&mut reader, &mut here, message.place, &mut bytes);
        if !found.map_err(|e| failed(path, &e))? {
            out.report.torn += 1;
            break;
        }
        // Torn only if somebody wrote over the file since.
        match std::str::from_utf8(&bytes) {
            Ok(json) => emit(json, out)?,
            Err(_) => out.report.torn += 1,
        }
    }
    Ok(())
}

/// Where a message stands in the file.
#[derive(Clone, Copy)]
struct Place {
    offset: u64,
    length: u32,
}

struct Logged {
    place: Place,
    standing: Standing,
    /// Is it in the list as the program has it now?
    listed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Said,
    /// A summary, or a copy beside one.
    Copied,
    TakenBack,
}

/// The log played back.
#[derive(Default)]
struct Log {
    /// In the order in which they came.
    messages: Vec<Logged>,
    /// A message by the hash of its id.
    by_id: HashMap<u64, usize>,
    /// The list as the program has it now.
    list: Vec<usize>,
    /// A header was the last thing that was seen.
    starting: bool,
    hasher: RandomState,
}

impl Log {
    fn line(&mut self, line: Line, out: &mut Out) -> Seen {
        let record: Record = match parse(line.text) {
            Ok(record) => record,
            Err(seen) => return seen,
        };
        if let Some(patch) = record.set {
            if let Some(messages) = patch.messages {
                self.replace(&messages, line, out);
            }
            return Seen::Known;
        }
        if record.session_id.is_some() && record.project_hash.is_some() {
            self.starting = true;
            out.report.is_sub_agent = record.session_kind.as_deref() == Some("subagent");
            out.report.session_id = record.session_id;
            return Seen::Known;
        }
        match (record.id, &*record.kind) {
            (Some(id), "user" | "gemini") => {
                self.starting = false;
                let place = Place { offset: line.offset, length: line.text.len() as u32 };
                if line.exact {
                    self.message(&id, place);
                    Seen::Known
                } else {
                    Seen::Unknown("message that is not UTF-8".to_owned())
                }
            }
            (_, kind) if NOTICES.contains(&kind) => Seen::Known,
            (_, kind) => Seen::Unknown(kind.to_owned()),
        }
    }

    /// A message on a line of its own: new, or the whole of one that was begun.
    fn message(&mut self, id: &str, place: Place) {
        let id = self.hasher.hash_one(id);
        let known = self.by_id.get(&id).and_then(|known| self.messages.get_mut(*known));
        match known {
            // What was taken back and is said again has a new place.
            Some(known) if known.listed || known.standing == Standing::Said => known.place = place,
            _ => {
                let index = self.add(id, place, Standing::Said);
                self.list.push(index);
            }
        }
    }

    fn add(&mut self, id: u64, place: Place, standing: Standing) -> usize {
        self.messages.push(Logged { place, standing, listed: true });
        self.by_id.insert(id, self.messages.len() - 1);
        self.messages.len() - 1
    }

    /// `$set.messages`.
    fn replace(&mut self, messages: &[&RawValue], line: Line, out: &mut Out) {
        let starting = std::mem::take(&mut self.starting);
        let mut found = Vec::with_capacity(messages.len());
        for raw in messages {
            match serde_json::from_str::<Named>(raw.get()) {
                Ok(Named { id: Some(id), kind }) if kind == "user" || kind == "gemini" => {
                    // `raw` is a part of `line`, so its place in the file is that of the line and where in it.
                    let within = (raw.get().as_ptr() as usize).wrapping_sub(line.text.as_ptr() as usize);
                    let place = Place { offset: line.offset + within as u64, length: raw.get().len() as u32 };
                    found.push((self.hasher.hash_one(&id), place));
                }
                Ok(Named { kind, .. }) if NOTICES.contains(&&*kind) => {}
                Ok(Named { kind, .. }) => out.report.unknown(&format!("listed {kind}")),
                Err(_) => out.report.unknown("listed message in another shape"),
            }
        }
        let kept: HashSet<usize> = found.iter().filter_map(|(id, _)| self.by_id.get(id).copied()).collect();
        let drops = self.list.iter().any(|message| !kept.contains(message));
        let brings = kept.len() < found.len();
        if drops && !brings {
            if starting {
                return;
            }
            let last_kept = self.list.iter().rposition(|message| kept.contains(message));
            for taken_back in self.list.split_off(last_kept.map_or(0, |last| last + 1)) {
                self.messages[taken_back].standing = Standing::TakenBack;
                self.messages[taken_back].listed = false;
            }
        }
        for message in &self.list {
            self.messages[*message].listed = false;
        }
        let new = if drops || !line.exact { Standing::Copied } else { Standing::Said };
        let mut list = Vec::with_capacity(found.len());
        for (id, place) in found {
            list.push(match self.by_id.get(&id).copied() {
                // As it was first seen: what a list says of it is never more.
                Some(known) => {
                    let message = &mut self.messages[known];
                    message.listed = true;
                    if message.standing == Standing::TakenBack {
                        message.standing = Standing::Said;
                    }
                    known
                }
                None => self.add(id, place, new),
            });
        }
        self.list = list;
    }
}

/// Reads the message's JSON; `false`: the file is shorter than it was.
fn message_at(reader: &mut Reader, here: &mut u64, place: Place, bytes: &mut Vec<u8>) -> io::Result<bool> {
    // Most follow each other, so that what is buffered serves for many.
    reader.seek_relative(place.offset.wrapping_sub(*here) as i64)?;
    bytes.resize(place.length as usize, 0);
    *here = place.offset + u64::from(place.length);
    match reader.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(e),
    }
}

fn emit(json: &str, out: &mut Out) -> Result<()> {
    let Ok(message) = serde_json::from_str::<Message>(json) else {
        out.report.unknown("message in another shape");
        return Ok(());
    };
    let at: Option<Timestamp> = message.timestamp.as_deref().and_then(|at| at.parse().ok());
    let id = message.id;
    let user = message.kind == "user";
    if let Some(thoughts) = message.thoughts {
        let thoughts: Vec<Thought> = serde_json::from_str(thoughts.get()).unwrap_or_default();
        for (n, Thought { subject, description }) in thoughts.into_iter().enumerate() {
            let text = [subject, description].join("\n");
            out.turn(Role::Reasoning, text.trim(), format!("{id}/thought{n}"), at)?;
        }
    }
    let mut texts = Vec::new();
    let mut thoughts = Vec::new();
    let mut calls = Vec::new();
    for part in parts(message.content) {
        let Some(part) = part else {
            out.report.unknown("message part in another shape");
            continue;
        };
        match part {
            Part { function_response: Some(Response { id, response }), .. } => {
                // Most repeat what stands in the call; those of loaded histories are all there is.
                if let Some(key) = id.filter(|key| out.waits_for(key)) {
                    let (text, failed) = answer(response);
                    out.result(&key, &text, failed, at)?;
                }
            }
            Part { function_call: Some(call), .. } => calls.push(call),
            Part { text: Some(text), thought: Some(true), .. } => thoughts.push(text),
            Part { text: Some(text), .. } if user && text.trim_start().starts_with("<session_context>") => {}
            Part { text: Some(text), .. } => texts.push(text),
            Part { inline_data: Some(_), .. } => texts.push(IMAGE.to_owned()),
            _ => out.report.unknown("message part of another kind"),
        }
    }
    out.turn(Role::Reasoning, &thoughts.join("\n"), format!("{id}/thoughts"), at)?;
    let role = if user { Role::User } else { Role::Assistant };
    out.turn(role, &texts.join("\n"), id.clone(), at)?;
    let described = message.tool_calls.unwrap_or_default();
    if !described.is_empty() {
        calls.clear();
        for raw in described {
            match serde_json::from_str(raw.get()) {
                Ok(call) => calls.push(call),
                Err(_) => out.report.unknown("call in another shape"),
            }
        }
    }
    for (n, call) in calls.into_iter().enumerate() {
        let key = call.id.unwrap_or_else(|| format!("{id}/call{n}"));
        let arguments = call.args.map_or(Arguments::Text("{}"), Arguments::Json);
        out.call(&key, call.name.as_deref().unwrap_or("tool"), arguments, key.clone(), at)?;
        if let Some(result) = call.result {
            let mut text = String::new();
            let mut failed = call.status.as_deref() == Some("error");
            for part in parts(Some(result)).into_iter().flatten() {
                if let Some(response) = part.function_response {
                    let (said, error) = answer(response.response);
                    text.push_str(&said);
                    failed |= error;
                } else if let Some(said) = part.text {
                    text.push_str(&said);
                }
            }
            out.result(&key, &text, failed, at)?;
        }
    }
    Ok(())
}

/// A string, or a list of parts.
fn parts(content: Option<&RawValue>) -> Vec<Option<Part<'_>>> {
    let Some(content) = content else { return Vec::new() };
    if content.get().starts_with('"')
        && let Ok(text) = serde_json::from_str(content.get())
    {
        let (thought, function_call, function_response, inline_data) = (None, None, None, None);
        return vec![Some(Part { text: Some(text), thought, function_call, function_response, inline_data })];
    }
    match serde_json::from_str::<Vec<&RawValue>>(content.get()) {
        Ok(parts) => parts.into_iter().map(|part| serde_json::from_str(part.get()).ok()).collect(),
        Err(_) if content.get() == "null" => Vec::new(),
        Err(_) => vec![None],
    }
}

/// What a tool answered, and whether that it failed.
fn answer(response: Option<&RawValue>) -> (String, bool) {
    let Some(response) = response else { return (String::new(), false) };
    let (text, failed) = match serde_json::from_str::<Answer>(response.get()) {
        Ok(Answer { output: Some(output), .. }) => (content::text(output), false),
        Ok(Answer { error: Some(error), .. }) => (content::text(error), true),
        _ => (response.get().to_owned(), false),
    };
    let inner = text.trim().strip_prefix("<untrusted_context>");
    let inner = inner.map(|inner| inner.strip_suffix("</untrusted_context>").unwrap_or(inner).trim());
    (inner.map(str::to_owned).unwrap_or(text), failed)
}
