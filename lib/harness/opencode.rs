//! opencode: what `opencode export <session id>` prints, one JSON document.
//!
//! `{info, messages: [{info: {role, …}, parts: […]}]}`. The messages are read one by one, because the document may
//! be far larger than memory. A prompt that was given as an argument has quotes around it; one
//! that was typed stands in a log. A fork is a session of its
//! own, without the name of its parent.

use crate::base::deadline::Deadline;
use crate::base::error::{Error, Result};
use crate::base::exec::{self, CommandLine, Invocation};
use crate::base::text::one_line;
use crate::harness::content::{Object, PromptMessage, Skip, Taken, unknown};
use crate::harness::context::{Above, ContextFiles};
use crate::harness::out::TurnSink;
use crate::harness::source::{self, failed};
use crate::harness::spec::{
    CaptureSpec, Format, Home, HookMoment, Install, OwnFile, OwnHome, PastSource, Preset, RecallForm,
    RecallSpec, Spec, Stored, ToolKind, ToolTable, has, understood,
};
use crate::harness::turn::Role;
use jiff::Timestamp;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::io::Read;
use std::path::Path;

/// Where it keeps its sessions and credentials.
const DATA: Home = Home { variables: &[("XDG_DATA_HOME", "opencode")], usual: ".local/share/opencode" };

/// Where its terminal keeps the prompts that were typed in it.
const STATE: Home = Home { variables: &[("XDG_STATE_HOME", "opencode")], usual: ".local/state/opencode" };

static LLM_HOME: OwnHome = OwnHome {
    dir: "opencode",
    credentials: (DATA, &["auth.json"]),
    settings: &["config.json", "opencode.json", "opencode.jsonc"],
    kept: &["model", "provider", "enabled_providers", "disabled_providers"],
    dropped: &[],
    // A file of the user's may give the agent `build` other permissions.
    forced: r#"{
        "permission": {"*": "deny"}, "default_agent": "build", "agent": {"build": {"permission": {"*": "deny"}}},
        "share": "disabled", "autoupdate": false, "snapshot": false
    }"#,
    // A provider's key may be in its settings.
    variable: Some("OPENCODE_CONFIG_CONTENT"),
};

pub(super) static SPEC: Spec = Spec {
    name: "opencode",
    title: "opencode",
    home: Home { variables: &[("XDG_CONFIG_HOME", "opencode")], usual: ".config/opencode" },
    reads: ContextFiles {
        own: &[&["AGENTS.md"], &["~/.claude/CLAUDE.md"]],
        project: &[&["AGENTS.md"], &["CLAUDE.md"]],
        above: Above::RepositoryIfAny,
        ..ContextFiles::AGENTS
    },
    marks: &["OPENCODE", "OPENCODE_SESSION_ID"],
    format: Format {
        read,
        is_record: |record| has(record, &["info", "messages"]),
        tools: TOOLS,
        marks_failures: true,
        prompts: |_, env| STATE.dir(env).map(|dir| dir.join("prompt-history.jsonl")).into_iter().collect(),
        ..Format::ANY
    },
    method: "opencode-session",
    capture: CaptureSpec::Id,
    past: PastSource::Asked(DATA, "opencode.db", stored),
    events: &[understood("PreToolUse", HookMoment::Act)],
    // It reads both directories.
    install: Install::Files(&[OwnFile {
        dirs: &["plugin", "plugins"],
        name: "agent-memory.js",
        text: include_str!("../../examples/opencode/memory.js"),
    }]),
    next_step: None,
    recall: RecallSpec { form: RecallForm::Plugin, resumes_whole: false, unheard: &[] },
    memory: None,
    preset: Some(Preset {
        home: Some(&LLM_HOME),
        // Without a title, it asks for one.
        ..Preset::new(
            "opencode",
            "XDG_CONFIG_HOME=$LLM_HOME XDG_DATA_HOME=$LLM_HOME XDG_STATE_HOME=$LLM_HOME OPENCODE_TEST_HOME=$LLM_HOME \
             OPENCODE_CONFIG= OPENCODE_CONFIG_DIR= OPENCODE_DISABLE_PROJECT_CONFIG=1 OPENCODE_DB=:memory: opencode run --pure --title x",
            4,
        )
    }),
};

const TOOLS: ToolTable = &[
    (ToolKind::Shell, "bash"),
    (ToolKind::Read, "read"),
    (ToolKind::Edit, "edit multiedit"),
    (ToolKind::Search, "grep"),
    (ToolKind::Write, "apply_patch patch write"),
    (ToolKind::Own, "glob invalid list plan_enter plan_exit todoread todowrite"),
    (ToolKind::SubAgent, "task"),
    (ToolKind::Question, "question"),
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
        let (path, most) = (path.display(), CAP >> 20);
        let why = format!("\"{path}\" has {length} bytes; an export of more than {most} MiB is not read");
        return Err(Error::io(why));
    }
    let mut document = Export { out, known: false, created: None, stopped: None };
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
struct Export<'a, 'b> {
    out: &'a mut TurnSink<'b>,
    /// There was a key of an export.
    known: bool,
    /// When the session began, in milliseconds.
    created: Option<f64>,
    /// The receiver's error, which ended the reading.
    stopped: Option<Error>,
}

/// The messages.
impl<'de> DeserializeSeed<'de> for &mut Export<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for &mut Export<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an export")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match &*key {
                "info" => {
                    let info: Box<RawValue> = map.next_value()?;
                    let taken = Object::parse(info.get()).and_then(|info| self.begin(&info));
                    // Whatever it is, the messages follow.
                    let _ = self.out.count("info", taken);
                }
                "messages" => {
                    self.known = true;
                    map.next_value_seed(&mut *self)?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<(), S::Error> {
        while let Some(raw) = seq.next_element::<Box<RawValue>>()? {
            let taken = Object::parse(raw.get()).and_then(|said| message(&said, self.created, self.out));
            if let Err(error) = self.out.count("message", taken) {
                self.stopped = Some(error);
                return Err(S::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}

impl Export<'_, '_> {
    fn begin(&mut self, info: &Object) -> Taken {
        let (id, parent) = (info.text("id")?, info.text("parentID")?);
        self.created = created(info)?;
        self.known |= id.is_some();
        self.out.report.is_sub_agent = parent.is_some();
        self.out.report.parent = parent;
        self.out.report.begins(id, info.text("directory")?);
        Ok(())
    }
}

/// When a session or a message was made, in milliseconds.
fn created(info: &Object) -> Result<Option<f64>, Skip> {
    info.object("time")?.map_or(Ok(None), |time| time.get("created"))
}

fn message(message: &Object, begun: Option<f64>, out: &mut TurnSink) -> Taken {
    let info = message.object("info")?.ok_or(Skip::Shape)?;
    let is_users = match &*info.text("role")?.unwrap_or_default() {
        "user" => true,
        "assistant" => false,
        role => return unknown(format!("of role {role}")),
    };
    let created = created(&info)?;
    // A fork begins with copies of its parent's messages, which keep their times.
    let is_copy = created.zip(begun).is_some_and(|(created, begun)| created < begun);
    // `true` in the reply to a compaction's request; elsewhere an object.
    if is_copy || info.is("summary") {
        return Ok(());
    }
    out.at = created.and_then(|ms| Timestamp::from_millisecond(ms as i64).ok());
    let id = info.text("id")?.unwrap_or_default();
    let parts: Vec<&RawValue> = message.get("parts")?.unwrap_or_default();
    for (n, part) in parts.into_iter().enumerate() {
        let taken = Object::parse(part.get()).and_then(|part| {
            let id = part.text("id")?.unwrap_or_else(|| format!("{id}/{n}"));
            self::part(&part, id, is_users, out)
        });
        out.count("part", taken)?;
    }
    Ok(())
}

fn part(part: &Object, id: String, is_users: bool, out: &mut TurnSink) -> Taken {
    let is_nobodys = part.flag("synthetic")? || part.flag("ignored")?;
    match (&*part.kind()?, part.text("text")?) {
        ("text", _) if is_nobodys => {}
        ("text", Some(text)) if is_users => out.prompt(PromptMessage::of(unquoted(&text)), None, id)?,
        ("text", Some(text)) => out.turn(Role::Assistant, &text, id)?,
        ("reasoning", Some(text)) => out.turn(Role::Reasoning, &text, id)?,
        ("tool", _) => {
            let key = part.text("callID")?.unwrap_or_else(|| id.clone());
            let state = part.object("state")?;
            let input = state.as_ref().and_then(|state| state.raw("input"));
            let name = part.text("tool")?;
            out.call(&key, name.as_deref().unwrap_or("tool"), input.map_or("{}", RawValue::get), id)?;
            let text = |key: &str| state.as_ref().map_or(Ok(None), |state| state.text(key));
            let (output, error) = (text("output")?, text("error")?);
            let metadata = state.as_ref().and_then(|state| state.object("metadata").ok()?);
            let exit = metadata.as_ref().and_then(|metadata| metadata.raw("exit"));
            let failed = error.is_some() || exit.is_some_and(|code| code.get() != "0");
            if let Some(said) = error.or(output) {
                out.result(&key, &said, failed)?;
            }
        }
        (kind, _) if OTHER.contains(&kind) => {}
        (kind, _) => return unknown(kind),
    }
    Ok(())
}

/// A prompt without the quotes around it.
fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text)
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
    serde_json::from_slice(&finished.stdout)
        .map_err(|e| failed(format!("does not print sessions: {}", one_line(&e.to_string(), 200))))
}
