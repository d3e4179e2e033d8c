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

mod message;

use crate::base::error::Result;
use crate::harness::out::TurnSink;
use crate::harness::source::{self, Line, Reader, RecordStatus, each_line, failed, parse};
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
    set: Option<ListUpdate<'a>>,
}

#[derive(Deserialize)]
struct ListUpdate<'a> {
    #[serde(borrow)]
    messages: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct ListedMessage<'a> {
    id: Option<String>,
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
}

pub(super) fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    let mut reader = source::open(path, "a Gemini CLI session")?;
    let mut log = Log::default();
    each_line(path, &mut reader, "Gemini CLI", out, |line, out| Ok(log.line(line, out)))?;
    let mut here = reader.stream_position().map_err(|e| failed(path, &e))?;
    let mut bytes = Vec::new();
    for message in log.messages.iter().filter(|message| message.standing == MessageStatus::Said) {
        let found = message_at(&mut reader, &mut here, message.place, &mut bytes);
        if !found.map_err(|e| failed(path, &e))? {
            out.report.torn += 1;
            break;
        }
        // Torn only if somebody wrote over the file since.
        match std::str::from_utf8(&bytes) {
            Ok(json) => message::turns(json, out)?,
            Err(_) => out.report.torn += 1,
        }
    }
    Ok(())
}

/// Where a message stands in the file.
#[derive(Clone, Copy)]
struct ByteRange {
    offset: u64,
    length: u32,
}

struct LoggedMessage {
    place: ByteRange,
    standing: MessageStatus,
    /// Is it in the list as the program has it now?
    listed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MessageStatus {
    Said,
    /// A summary, or a copy beside one.
    Copied,
    TakenBack,
}

/// The log played back.
#[derive(Default)]
struct Log {
    /// In the order in which they came.
    messages: Vec<LoggedMessage>,
    /// A message by the hash of its id.
    by_id: HashMap<u64, usize>,
    /// The list as the program has it now.
    list: Vec<usize>,
    /// A header was the last thing that was seen.
    starting: bool,
    hasher: RandomState,
}

impl Log {
    fn line(&mut self, line: Line, out: &mut TurnSink) -> RecordStatus {
        let record: Record = match parse(line.text) {
            Ok(record) => record,
            Err(seen) => return seen,
        };
        if let Some(patch) = record.set {
            if let Some(messages) = patch.messages {
                self.replace(&messages, line, out);
            }
            return RecordStatus::Known;
        }
        if record.session_id.is_some() && record.project_hash.is_some() {
            self.starting = true;
            out.report.is_sub_agent = record.session_kind.as_deref() == Some("subagent");
            out.report.session_id = record.session_id;
            return RecordStatus::Known;
        }
        match (record.id, &*record.kind) {
            (Some(id), "user" | "gemini") => {
                self.starting = false;
                let place = ByteRange { offset: line.offset, length: line.text.len() as u32 };
                if line.exact {
                    self.message(&id, place);
                    RecordStatus::Known
                } else {
                    RecordStatus::Unknown("message that is not UTF-8".to_owned())
                }
            }
            (_, kind) if NOTICES.contains(&kind) => RecordStatus::Known,
            (_, kind) => RecordStatus::Unknown(kind.to_owned()),
        }
    }

    /// A message on a line of its own: new, or the whole of one that was begun.
    fn message(&mut self, id: &str, place: ByteRange) {
        let id = self.hasher.hash_one(id);
        let known = self.by_id.get(&id).and_then(|known| self.messages.get_mut(*known));
        match known {
            // What was taken back and is said again has a new place.
            Some(known) if known.listed || known.standing == MessageStatus::Said => known.place = place,
            _ => {
                let index = self.add(id, place, MessageStatus::Said);
                self.list.push(index);
            }
        }
    }

    fn add(&mut self, id: u64, place: ByteRange, standing: MessageStatus) -> usize {
        self.messages.push(LoggedMessage { place, standing, listed: true });
        self.by_id.insert(id, self.messages.len() - 1);
        self.messages.len() - 1
    }

    /// `$set.messages`.
    fn replace(&mut self, messages: &[&RawValue], line: Line, out: &mut TurnSink) {
        let starting = std::mem::take(&mut self.starting);
        let mut found = Vec::with_capacity(messages.len());
        for raw in messages {
            match serde_json::from_str::<ListedMessage>(raw.get()) {
                Ok(ListedMessage { id: Some(id), kind }) if kind == "user" || kind == "gemini" => {
                    // `raw` is a part of `line`, so its place in the file is that of the line and where in it.
                    let within = (raw.get().as_ptr() as usize).wrapping_sub(line.text.as_ptr() as usize);
                    let place =
                        ByteRange { offset: line.offset + within as u64, length: raw.get().len() as u32 };
                    found.push((self.hasher.hash_one(&id), place));
                }
                Ok(ListedMessage { kind, .. }) if NOTICES.contains(&&*kind) => {}
                Ok(ListedMessage { kind, .. }) => out.report.unknown(&format!("listed {kind}")),
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
                self.messages[taken_back].standing = MessageStatus::TakenBack;
                self.messages[taken_back].listed = false;
            }
        }
        for message in &self.list {
            self.messages[*message].listed = false;
        }
        let new = if drops || !line.exact { MessageStatus::Copied } else { MessageStatus::Said };
        let mut list = Vec::with_capacity(found.len());
        for (id, place) in found {
            list.push(match self.by_id.get(&id).copied() {
                // As it was first seen: what a list says of it is never more.
                Some(known) => {
                    let message = &mut self.messages[known];
                    message.listed = true;
                    if message.standing == MessageStatus::TakenBack {
                        message.standing = MessageStatus::Said;
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
fn message_at(
    reader: &mut Reader,
    here: &mut u64,
    place: ByteRange,
    bytes: &mut Vec<u8>,
) -> io::Result<bool> {
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
