//! opencode: what `opencode export <session id>` prints, one JSON document.
//!
//! `{info, messages: [{info: {role, …}, parts: […]}]}`. The messages are read one by one, because the document may
//! be far larger than memory. A prompt that was given as an argument has quotes around it. A fork is a session of its
//! own, without the name of its parent.

use crate::base::deadline::Deadline;
use crate::base::error::{Error, Result};
use crate::base::exec::{self, CommandLine, Invocation};
use crate::base::text::one_line;
use crate::harness::out::TurnSink;
use crate::harness::source::{self, failed};
use crate::harness::spec::ToolKind::{
    self, Edit, Own, Question, Read as Reads, Search, Shell, SubAgent, Write,
};
use crate::harness::spec::{
    Answer, Capture, Format, Home, Install, OwnFile, Past, Preset, Recall, Spec, Stored, has,
};
use crate::harness::turn::Role;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::io::Read;
use std::path::Path;

pub(super) static SPEC: Spec = Spec {
    name: "opencode",
    title: "opencode",
    home: Home { variables: &[("XDG_CONFIG_HOME", "opencode")], usual: ".config/opencode" },
    own_files: &["AGENTS.md"],
    project_files: &["AGENTS.md"],
    marks: &["OPENCODE"],
    format: Format {
        read,
        is_record: |record| has(record, &["info", "messages"]),
        tools: TOOLS,
        ..Format::ANY
    },
    method: "opencode-session",
    capture: Capture::Id,
    past: Past::Asked(
        Home { variables: &[("XDG_DATA_HOME", "opencode")], usual: ".local/share/opencode" },
        "opencode.db",
        stored,
    ),
    events: &[],
    // It reads both directories.
    install: Install::Files(&[OwnFile {
        dirs: &["plugin", "plugins"],
        name: "agent-memory.js",
        text: include_str!("../../examples/opencode/memory.js"),
    }]),
    next_step: None,
    recall: Recall { answer: Answer::Plugin, resumes_whole: false, unheard: &[] },
    preset: Some(Preset { name: "opencode", line: "opencode run --pure", rank: 4 }),
};

const TOOLS: &[(ToolKind, &[&str])] = &[
    (Shell, &["bash"]),
    (Reads, &["read"]),
    (Edit, &["edit", "multiedit"]),
    (Search, &["grep"]),
    (Write, &["apply_patch", "patch", "write"]),
    (Own, &["glob", "invalid", "list", "plan_enter", "plan_exit", "todoread", "todowrite"]),
    (SubAgent, &["task"]),
    (Question, &["question"]),
];

/// The largest export that is read, in bytes: a single string in it, which is held in memory, may be as large.
const CAP: u64 = 512 << 20;

/// Parts that are not conversation.
const OTHER: &[&str] =
    &["agent", "compaction", "file", "patch", "retry", "snapshot", "step-finish", "step-start", "subtask"];

fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    let reader = source::open(path, "an opencode export")?;
    let length = reader.get_ref().length();
    if length > CAP {
        return Err(Error::io(format!(
            "\"{}\" has {length} bytes; an export of more than {} MiB is not read",
            path.display(),
            CAP >> 20
        )));
    }
    let mut document = Document { out, known: false, created: None, stopped: None };
    let ended = serde_json::Deserializer::from_reader(reader.take(CAP)).deserialize_map(&mut document);
    if let Some(error) = document.stopped {
        return Err(error);
    }
    let wrong = |why: &str| {
        Error::io(format!("\"{}\" is not what `opencode export` prints: {why}", path.display()))
            .hint("check that harnesses.opencode.readCommand prints the export alone")
    };
    match ended {
        Ok(()) if document.known => Ok(()),
        Ok(()) => Err(wrong("it has no \"messages\"")),
        Err(e) if e.is_io() => Err(failed(path, &e.into())),
        // The beginning of an export, without the rest.
        Err(e) if document.known || e.is_eof() => {
            document.out.report.torn += 1;
            Ok(())
        }
        Err(e) => Err(wrong(&format!("no JSON object at line {}, column {}", e.line(), e.column()))),
    }
}

/// Reads the document and passes on each message as soon as it is complete.
struct Document<'a, 'b> {
    out: &'a mut TurnSink<'b>,
    /// Was there a key of an export?
    known: bool,
    /// When the session began, in milliseconds.
    created: Option<f64>,
    /// The receiver's error, which ended the reading.
    stopped: Option<Error>,
}

impl<'de> Visitor<'de> for &mut Document<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an export")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match &*key {
                "info" => {
                    let info: Box<RawValue> = map.next_value()?;
                    if let Ok(info) = serde_json::from_str::<Session>(info.get()) {
                        self.known |= info.id.is_some();
                        self.out.report.session_id = info.id;
                        self.out.report.is_sub_agent = info.parent_id.is_some();
                        self.out.report.parent = info.parent_id;
                        self.out.report.cwd = info.directory;
                        self.created = info.time.and_then(|time| time.created);
                    }
                }
                "messages" => {
                    self.known = true;
                    map.next_value_seed(Messages(self))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct Messages<'c, 'a, 'b>(&'c mut Document<'a, 'b>);

impl<'de> DeserializeSeed<'de> for Messages<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Messages<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a list of messages")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<(), S::Error> {
        while let Some(raw) = seq.next_element::<Box<RawValue>>()? {
            if let Err(error) = message(&raw, self.0.created, self.0.out) {
                self.0.stopped = Some(error);
                return Err(serde::de::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Session {
    id: Option<String>,
    #[serde(rename = "parentID")]
    parent_id: Option<String>,
    directory: Option<String>,
    time: Option<Time>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    info: Info<'a>,
    #[serde(borrow, default)]
    parts: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Info<'a> {
    #[serde(default)]
    id: String,
    #[serde(default)]
    role: String,
    time: Option<Time>,
    /// `true` in the reply to a compaction's request; elsewhere an object.
    #[serde(borrow)]
    summary: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Time {
    created: Option<f64>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    id: Option<String>,
    text: Option<String>,
    synthetic: Option<bool>,
    ignored: Option<bool>,
    tool: Option<String>,
    #[serde(rename = "callID")]
    call_id: Option<String>,
    #[serde(borrow)]
    state: Option<ToolState<'a>>,
}

#[derive(Deserialize)]
struct ToolState<'a> {
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    output: Option<String>,
    error: Option<String>,
}

fn message(raw: &RawValue, begun: Option<f64>, out: &mut TurnSink) -> Result<()> {
    let Ok(Message { info, parts }) = serde_json::from_str(raw.get()) else {
        out.report.unknown("message in another shape");
        return Ok(());
    };
    let role = match &*info.role {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        role => {
            out.report.unknown(&format!("message of role {role}"));
            return Ok(());
        }
    };
    if info.summary.is_some_and(|summary| summary.get() == "true") {
        return Ok(());
    }
    let created = info.time.and_then(|time| time.created);
    // A fork begins with copies of its parent's messages, which keep their times.
    if let (Some(created), Some(begun)) = (created, begun)
        && created < begun
    {
        return Ok(());
    }
    let at = created.and_then(|ms| Timestamp::from_millisecond(ms as i64).ok());
    for (n, raw) in parts.into_iter().enumerate() {
        let Ok(part) = serde_json::from_str::<Part>(raw.get()) else {
            out.report.unknown("part in another shape");
            continue;
        };
        let id = part.id.unwrap_or_else(|| format!("{}/{n}", info.id));
        match (&*part.kind, part.text) {
            ("text", _) if part.synthetic == Some(true) || part.ignored == Some(true) => {}
            ("text", Some(text)) if role == Role::User => out.turn(role, unquoted(&text), id, at)?,
            ("text", Some(text)) => out.turn(role, &text, id, at)?,
            ("reasoning", Some(text)) => out.turn(Role::Reasoning, &text, id, at)?,
            ("tool", _) => {
                let key = part.call_id.unwrap_or_else(|| id.clone());
                let state = part.state.unwrap_or(ToolState { input: None, output: None, error: None });
                let input = state.input.map_or("{}", RawValue::get);
                out.call(&key, part.tool.as_deref().unwrap_or("tool"), input, id, at)?;
                match (state.output, state.error) {
                    (_, Some(error)) => out.result(&key, &error, true, at)?,
                    (Some(output), None) => out.result(&key, &output, false, at)?,
                    (None, None) => {}
                }
            }
            (kind, _) if OTHER.contains(&kind) => {}
            (kind, _) => out.report.unknown(&format!("part {kind}")),
        }
    }
    Ok(())
}

/// A prompt without the quotes around it.
fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text)
}

/// What `opencode db` prints of a session.
#[derive(Deserialize)]
struct Row {
    id: String,
    parent_id: Option<String>,
    directory: Option<String>,
    time_updated: i64,
    bytes: Option<u64>,
    first: Option<String>,
}

/// The ids of parts sort by time.
const QUERY: &str = "SELECT id, parent_id, directory, time_updated, \
    (SELECT sum(length(data)) FROM part WHERE part.session_id = session.id) AS bytes, \
    (SELECT substr(data, 1, 4000) FROM part WHERE part.session_id = session.id ORDER BY id LIMIT 1) AS first \
    FROM session";
/// How long that may take, in seconds, and how much it may print, in bytes.
const PATIENCE: u64 = 60;
const OUTPUT: usize = 64 << 20;

/// Its sessions are in a database, which it is asked for.
fn stored(program: &str, dir: &Path) -> Result<Vec<Stored>> {
    let words: Vec<String> = [program, "db", QUERY, "--format", "json"].map(str::to_owned).into();
    let failed = |why: String| Error::io(format!("\"{program} db\" {why}"));
    let deadline = Deadline::after_seconds(PATIENCE);
    let finished = exec::run(Invocation::new(CommandLine::Words(&words), dir, OUTPUT, deadline))
        .map_err(|fault| failed(fault.to_string()))?;
    if let Some(failure) = finished.failure() {
        return Err(failed(failure));
    }
    let rows: Vec<Row> = serde_json::from_slice(&finished.stdout)
        .map_err(|e| failed(format!("does not print sessions: {}", one_line(&e.to_string(), 200))))?;
    let session = |row: Row| Stored {
        id: row.id,
        is_sub_agent: row.parent_id.is_some(),
        cwd: row.directory,
        changed: row.time_updated,
        bytes: row.bytes.unwrap_or_default(),
        first: row.first,
    };
    Ok(rows.into_iter().map(session).collect())
}
