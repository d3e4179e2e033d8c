//! Codex CLI: `~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<thread id>.jsonl`.
//!
//! The `response_item` records are what was sent to the model and what it answered; `event_msg` repeats them for the
//! screen. Messages of role `user` are often the program's own: parts that a person typed have the kind `user.text`.
//! A resumed session continues in the same file, also after a compaction; a fork has a file of its own with only what
//! is new; a sub-agent has its own file, with its parent's `session_id`.

use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::file;
use crate::harness::content::{self, known_parts};
use crate::harness::files::{matching, sessions_in};
use crate::harness::out::TurnSink;
use crate::harness::payload::{Ended, Payload, sub_agents, transcript};
use crate::harness::source::{Line, Taken, each_line, parse, unknown};
use crate::harness::spec::ToolKind::{self, Own, Question, Read, Running, Search, Shell, SubAgent, Write};
use crate::harness::spec::{
    Answer, Capture, Format, Home, Install, Past, Preset, Recall, Settings, Spec, When, has, hook, understood,
};
use crate::harness::tool::IMAGE;
use crate::harness::turn::{Ids, Role};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use jiff::{ToSpan, civil::Date};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;
use std::path::PathBuf;

const HOME: Home = Home { variables: &[("CODEX_HOME", "")], usual: ".codex" };

pub(super) static SPEC: Spec = Spec {
    name: "codex",
    title: "Codex",
    home: HOME,
    own_files: &["AGENTS.md", "AGENTS.override.md"],
    project_files: &["AGENTS.md"],
    // Which of these are set depends on the sandbox and on how it was installed.
    marks: &[
        "CODEX_THREAD_ID",
        "CODEX_SANDBOX",
        "CODEX_SANDBOX_NETWORK_DISABLED",
        "CODEX_CI",
        "CODEX_MANAGED_BY_NPM",
    ],
    format: Format {
        read,
        is_record: |record| {
            has(record, &["payload"])
                && ["session_meta", "response_item", "event_msg"].iter().any(|kind| record["type"] == **kind)
        },
        tools: TOOLS,
        sub_agents: |session| session.parent().map(sessions_in).unwrap_or_default(),
        among_others: true,
        ..Format::ANY
    },
    method: "transcript",
    capture: Capture::Hook { session, takes_argument: true, may_print: false },
    past: Past::Files(HOME, &["sessions/*/*/*/rollout-*.jsonl"]),
    // It reduces a longer timeout of the last two, with a warning at each start.
    events: &[
        hook("SessionStart", When::Start, 5),
        hook("UserPromptSubmit", When::Prompt, 5),
        hook("Stop", When::End, 10),
        hook("SessionEnd", When::End, 3),
        understood("PreCompact", When::End),
        hook("Interrupt", When::End, 3),
    ],
    install: Install::Settings(Settings {
        file: "hooks.json",
        also: Some("config.toml"),
        ..Settings::GROUPS
    }),
    next_step: Some(
        "Codex runs only hooks that you trust, and \"codex exec\" skips the others silently: start codex once and choose \
         \"Trust all\"",
    ),
    recall: Recall { answer: Answer::HookOutput, resumes_whole: true, unheard: &[] },
    preset: Some(Preset {
        name: "codex",
        line: "codex exec --ephemeral --disable hooks -c 'notify=[]' --skip-git-repo-check -s read-only -",
        rank: 2,
    }),
};

const TOOLS: &[(ToolKind, &[&str])] = &[
    (Shell, &["container.exec", "exec_command", "local_shell", "local_shell_call", "shell", "shell_command"]),
    (Running, &["write_stdin"]),
    (Read, &["read_file", "view_image"]),
    (Search, &["grep_files"]),
    (Write, &["apply_patch"]),
    (Own, &["list_dir", "update_plan"]),
    (SubAgent, &["close_agent", "resume_agent", "send_input", "spawn_agent", "wait", "wait_agent"]),
    (Question, &["request_user_input"]),
];

/// Records that are not conversation, or repeat it.
const OTHER: &[&str] = &["compacted", "event_msg", "token_usage_record", "turn_context", "world_state"];

/// The start of user texts that the program wrote, for versions that do not record who wrote them.
const NOT_TYPED: &[&str] = &[
    "# AGENTS.md instructions", "<environment_context>", "<permissions instructions>", "<skill>",
    "<subagent_notification>", "<turn_aborted>", "<user_instructions>",
];

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    timestamp: Option<String>,
    metadata: Option<Metadata>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Metadata {
    compaction_output: Option<bool>,
}

#[derive(Deserialize)]
struct SessionMeta<'a> {
    id: Option<String>,
    cwd: Option<String>,
    forked_from_id: Option<String>,
    parent_thread_id: Option<String>,
    thread_source: Option<String>,
    #[serde(borrow)]
    source: Option<&'a RawValue>,
    #[serde(borrow)]
    git: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Git {
    repository_url: Option<String>,
}

#[derive(Deserialize)]
struct ResponseItem<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    id: Option<String>,
    role: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(rename = "internal_chat_message_metadata_passthrough")]
    passed: Option<Passed>,
    #[serde(borrow)]
    summary: Option<&'a RawValue>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    input: Option<String>,
    #[serde(borrow)]
    action: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Passed {
    content_item_kinds: Option<Vec<String>>,
}

fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    let mut ids = Ids::default();
    each_line(path, "Codex", out, |line, out| record(line, &mut ids, out)).map(drop)
}

fn record(line: Line, ids: &mut Ids, out: &mut TurnSink) -> Taken {
    let record: Record = parse(line.text)?;
    let Some(payload) = record.payload else { return unknown(record.kind) };
    match &*record.kind {
        "session_meta" => meta(payload, out),
        "response_item" => {
            let at = record.timestamp.as_deref().and_then(|at| at.parse().ok());
            let summary = record.metadata.is_some_and(|metadata| metadata.compaction_output == Some(true));
            let Ok(item) = serde_json::from_str(payload.get()) else {
                return unknown("response_item in another shape");
            };
            if !summary {
                self::item(item, at, ids, out)?;
            }
        }
        kind if OTHER.contains(&kind) => {}
        kind => return unknown(kind),
    }
    Ok(())
}

/// The file's own description. A later one is a copy from another session.
fn meta(payload: &RawValue, out: &mut TurnSink) {
    if out.report.session_id.is_some() {
        return;
    }
    let Ok(meta) = serde_json::from_str::<SessionMeta>(payload.get()) else {
        out.report.unknown("session_meta in another shape");
        return;
    };
    let spawned = meta.source.is_some_and(|source| source.get().contains("\"subagent\""));
    out.report.is_sub_agent = spawned || meta.thread_source.as_deref() == Some("subagent");
    out.report.session_id = meta.id;
    out.report.parent = meta.forked_from_id.or(meta.parent_thread_id);
    out.report.cwd = meta.cwd;
    out.report.remote = meta.git.and_then(|git| serde_json::from_str::<Git>(git.get()).ok()?.repository_url);
}

fn item(item: ResponseItem, at: Option<Timestamp>, ids: &mut Ids, out: &mut TurnSink) -> Result<()> {
    let key = || item.call_id.clone().or_else(|| item.id.clone()).unwrap_or_default();
    match &*item.kind {
        "message" => message(&item, at, ids, out),
        "reasoning" => {
            let summary = item.summary.map(|summary| joined(summary, out)).unwrap_or_default();
            let text = match item.content {
                Some(content) if summary.is_empty() => joined(content, out),
                _ => summary,
            };
            let id = item.id.unwrap_or_else(|| ids.next(Role::Reasoning, &text));
            out.turn(Role::Reasoning, &text, id, at)
        }
        "function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call" => {
            let name = item.name.as_deref().unwrap_or(&item.kind);
            let arguments = match (&item.arguments, &item.input, item.action) {
                (Some(text), ..) | (None, Some(text), _) => text,
                (None, None, Some(action)) => action.get(),
                (None, None, None) => "{}",
            };
            out.call(&key(), name, arguments, key(), at)?;
            // The server does the search: its result is in the answer, no record follows.
            if item.kind == "web_search_call" { out.result(&key(), "", false, at) } else { Ok(()) }
        }
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            let text = item.output.map(content::text).unwrap_or_default();
            out.result(&key(), &text, false, at)
        }
        "compaction" | "compaction_summary" => Ok(()),
        kind => {
            out.report.unknown(&format!("response_item {kind}"));
            Ok(())
        }
    }
}

fn message(item: &ResponseItem, at: Option<Timestamp>, ids: &mut Ids, out: &mut TurnSink) -> Result<()> {
    let role = match item.role.as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("developer" | "system") => return Ok(()),
        role => {
            out.report.unknown(&format!("message of role {}", role.unwrap_or("(none)")));
            return Ok(());
        }
    };
    let kinds = item.passed.as_ref().and_then(|passed| passed.content_item_kinds.as_deref());
    let mut texts = Vec::new();
    for (n, part) in known_parts(item.content, "message part", &mut out.report) {
        let typed = match (role, kinds.and_then(|kinds| kinds.get(n))) {
            (Role::User, Some(kind)) => kind.starts_with("user."),
            (Role::User, None) => {
                let text = part.text.as_deref().unwrap_or("").trim_start();
                !NOT_TYPED.iter().any(|start| text.starts_with(start))
            }
            _ => true,
        };
        match (&*part.kind, part.text) {
            _ if !typed => {}
            ("input_text" | "output_text" | "text", Some(text)) if is_image_tag(&text) => {}
            ("input_text" | "output_text" | "text", Some(text)) => texts.push(text),
            ("input_image", _) => texts.push(IMAGE.to_owned()),
            (kind, _) => out.report.unknown(&format!("message part {kind}")),
        }
    }
    let text = texts.join("\n");
    let id = item.id.clone().unwrap_or_else(|| ids.next(role, &text));
    out.turn(role, &text, id, at)
}

/// The texts of all parts.
fn joined(content: &RawValue, out: &mut TurnSink) -> String {
    let mut texts = Vec::new();
    for part in content::parts(content) {
        match part.and_then(|part| part.text) {
            Some(text) => texts.push(text),
            None => out.report.unknown("reasoning part in another shape"),
        }
    }
    texts.join("\n")
}

/// Codex puts parts with a tag of its own before and after an image.
fn is_image_tag(text: &str) -> bool {
    let text = text.trim();
    text == "</image>"
        || text.strip_prefix("<image").is_some_and(|rest| {
            (rest == ">" || rest.starts_with(" name=")) && rest.ends_with('>') && !rest.contains('\n')
        })
}

/// Its `notify` only names the thread.
fn session(payload: &Payload, env: &Env) -> Result<Ended> {
    const END: &str = "agent-turn-complete";
    if payload.text("thread-id")?.is_none() {
        return transcript(payload, is_sub_agents);
    }
    let id = payload.id("thread-id")?;
    if let Some(kind) = payload.text("type")?
        && kind != END
    {
        return Ok(Ended::Nothing(format!("nothing ends at \"{kind}\"; only \"{END}\" counts")));
    }
    let Some(path) = of_thread(id, env) else {
        // For example, the threads in which it generates titles.
        let why = format!("the thread \"{id}\" has no transcript among Codex's sessions");
        return Ok(Ended::Nothing(why));
    };
    match is_sub_agents(&path) {
        true => Ok(sub_agents(&path)),
        false => Ok(Ended::Session { path, id: id.to_owned(), cwd: payload.absolute("cwd")? }),
    }
}

/// How much of the first line is read, in bytes. Recorded ones have 22 kB.
const FIRST_LINE: u64 = 1 << 20;
/// How many days are searched, newest first, for an id without a date.
const DAYS: usize = 400;

/// The file of a thread. The id has been checked.
fn of_thread(id: &str, env: &Env) -> Option<PathBuf> {
    let sessions = HOME.dir(env)?.join("sessions");
    let name = format!("rollout-*-{id}.jsonl");
    let on = |day: PathBuf| matching(day, &name).into_iter().next();
    match born(id) {
        // A directory has the local date, which may be a day before or after the date in UTC.
        Some(day) => [day, day.saturating_sub(1.day()), day.saturating_add(1.day())]
            .iter()
            .find_map(|day| on(sessions.join(day.strftime("%Y/%m/%d").to_string()))),
        None => {
            let days = newest(&sessions).into_iter().flat_map(|year| newest(&year)).flat_map(|m| newest(&m));
            days.take(DAYS).find_map(on)
        }
    }
}

/// The day in UTC on which a UUID of version 7 was made: its first 48 bits are milliseconds since 1970.
fn born(id: &str) -> Option<Date> {
    let hex: String = id.split('-').collect();
    if hex.len() != 32 || hex.as_bytes().get(12) != Some(&b'7') {
        return None;
    }
    let milliseconds = i64::from_str_radix(hex.get(..12)?, 16).ok()?;
    Some(Timestamp::from_millisecond(milliseconds).ok()?.to_zoned(TimeZone::UTC).date())
}

/// The directories in `dir` with a number as their name, the greatest first.
fn newest(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs_err::read_dir(dir) else { return Vec::new() };
    let names = entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> =
        names.filter(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())).collect();
    names.sort_by(|a, b| b.cmp(a));
    names.iter().map(|name| dir.join(name)).collect()
}

/// Does the first line say that an agent, not a person, started this thread? `false` if it cannot be read.
fn is_sub_agents(path: &Path) -> bool {
    let Ok((opened, _)) = file::open_regular(path) else { return false };
    let mut line = Vec::new();
    let read = BufReader::new(opened.take(FIRST_LINE)).read_until(b'\n', &mut line);
    let meta = read.ok().and_then(|_| serde_json::from_slice::<Value>(&line).ok()).unwrap_or_default();
    let meta = &meta["payload"];
    meta["source"].get("subagent").is_some() || meta["thread_source"] == "subagent"
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test may write files")]

    use super::*;
    use crate::base::env::pretend;
    use std::fs;

    const ID: &str = "01a1ffeb-40ef-7d92-ae11-227dd73028eb";

    #[test]
    fn an_id_of_version_seven_contains_its_day() {
        assert_eq!(born(ID).unwrap().to_string(), "2026-11-21");
        for id in ["", "01a1ffeb", "11111111-1111-4111-8111-111111111111", "ffffffffffff7zzz", "ä1a1ffeb"] {
            assert_eq!(born(id), None, "{id}");
        }
        // The latest time in 48 bits is beyond the range of dates.
        assert_eq!(born("ffffffff-ffff-7d92-ae11-227dd73028eb"), None);
    }

    #[test]
    fn a_thread_is_found_on_its_day_on_the_next_and_by_a_full_search() {
        let home = tempfile::tempdir().unwrap();
        let env = pretend(&[("CODEX_HOME", home.path().to_str().unwrap())]);
        assert_eq!(of_thread(ID, &env), None);
        for (id, day) in [
            (ID, "2026/11/21"),
            (ID, "2026/11/22"),
            (ID, "2026/11/20"),
            ("old-form", "2025/01/02"),
            ("old-form", "2026/11/21"),
        ] {
            let day = home.path().join("sessions").join(day);
            fs::create_dir_all(&day).unwrap();
            let path = day.join(format!("rollout-2026-11-21T21-02-50-{id}.jsonl"));
            fs::write(day.join("rollout-x-other.jsonl"), "").unwrap();
            fs::write(&path, "").unwrap();
            assert_eq!(of_thread(id, &env).as_deref(), Some(path.as_path()));
            fs::remove_file(path).unwrap();
        }
        assert_eq!(of_thread("none", &env), None);
    }

    #[test]
    fn the_first_line_says_who_started_the_thread() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        for (line, expected) in [
            (r#"{"type":"session_meta","payload":{"source":{"subagent":{"thread_spawn":{}}}}}"#, true),
            (r#"{"type":"session_meta","payload":{"source":{"subagent":"review"}}}"#, true),
            (r#"{"type":"session_meta","payload":{"source":"cli","thread_source":"subagent"}}"#, true),
            (r#"{"type":"session_meta","payload":{"source":"cli","thread_source":"user"}}"#, false),
            (r#"{"type":"session_meta","payload":{}}"#, false),
            (r#"{"type":"session_meta","payload":{"source":{"subag"#, false),
            ("", false),
        ] {
            fs::write(&path, format!("{line}\n{{}}\n")).unwrap();
            assert_eq!(is_sub_agents(&path), expected, "{line}");
        }
        assert!(!is_sub_agents(&dir.path().join("missing")));
        assert!(!is_sub_agents(dir.path()));
    }
}
