//! Codex CLI: `~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<thread id>.jsonl`.
//!
//! The `response_item` records are what was sent to the model and what it answered; `event_msg` repeats them for the
//! screen. Messages of role `user` are often the program's own: parts that a person typed have the kind `user.text`, in
//! turns whose `task_started` says that a user began them.
//! A resumed session continues in the same file, also after a compaction; a fork has a file of its own with only what
//! is new; a sub-agent has its own file, with its parent's `session_id`.

use crate::base::ago::utc_day;
use crate::base::env::Env;
use crate::base::error::Result;
use crate::harness::content::{self, ContentPart, Object, PromptMessage, Skip, Taken, between, unknown};
use crate::harness::context::{ContextFiles, Limit};
use crate::harness::files::{entries, matching, sessions_in};
use crate::harness::out::TurnSink;
use crate::harness::payload::{Ended, Payload, sub_agents, transcript};
use crate::harness::source::{each_line, each_record, first_record};
use crate::harness::spec::{
    BuiltInMemory, CaptureSpec, Format, Home, HookMoment, HookSettings, Install, MemoryProject, OwnHome,
    PastSource, Preset, RecallForm, RecallSpec, Spec, Switch, ToolKind, ToolTable, has, hook, understood,
};
use crate::harness::turn::{Ids, Role};
use jiff::Timestamp;
use jiff::{ToSpan, civil::Date};
use serde_json::value::RawValue;
use std::ops::Range;
use std::path::{Path, PathBuf};

const HOME: Home = Home { variables: &[("CODEX_HOME", "")], usual: ".codex" };

/// Newer models get `apply_patch` and an interpreter without files and network in any case. The sandbox refuses the patch.
static LLM_HOME: OwnHome = OwnHome {
    dir: "codex",
    credentials: (HOME, &["auth.json"]),
    settings: &["config.toml"],
    kept: &[
        "model", "model_provider", "model_providers", "model_reasoning_effort", "model_verbosity",
        "service_tier", "openai_base_url", "chatgpt_base_url", "forced_login_method",
        "forced_chatgpt_workspace_id",
    ],
    dropped: &["experimental_bearer_token", "http_headers"],
    forced: r#"{
        "features": {
            "hooks": false, "shell_tool": false, "multi_agent": false, "goals": false, "view_image": false,
            "apps": false, "plugins": false, "sleep_tool": false, "image_generation": false, "shell_snapshot": false
        },
        "agents": {"enabled": false}, "web_search": "disabled", "project_doc_max_bytes": 0,
        "skills": {"include_instructions": false, "bundled": {"enabled": false}},
        "tools": {"experimental_request_user_input": {"enabled": false}, "update_plan": {"enabled": false}},
        "analytics": {"enabled": false}, "check_for_update_on_startup": false
    }"#,
    variable: None,
};

pub(super) static SPEC: Spec = Spec {
    name: "codex",
    title: "Codex",
    home: HOME,
    reads: ContextFiles {
        instead: Some("AGENTS.override.md"),
        limit: Some(Limit { file: "config.toml", key: "project_doc_max_bytes", usual: 32 << 10 }),
        ..ContextFiles::AGENTS
    },
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
    capture: CaptureSpec::Hook { session, takes_argument: true, may_print: false, removes: false },
    past: PastSource::Files(HOME, &["sessions/*/*/*/rollout-*.jsonl"]),
    // It reduces a longer timeout of the last two, with a warning at each start.
    events: &[
        hook("SessionStart", HookMoment::Start, 5),
        hook("UserPromptSubmit", HookMoment::Prompt, 5),
        hook("PreToolUse", HookMoment::Act, 5),
        hook("Stop", HookMoment::End, 10),
        hook("SessionEnd", HookMoment::End, 3),
        understood("PreCompact", HookMoment::End),
        hook("Interrupt", HookMoment::End, 3),
    ],
    install: Install::Settings(HookSettings {
        file: "hooks.json",
        also: Some("config.toml"),
        // The second is its earlier name.
        switches: &[
            Switch { file: "config.toml", key: &["features", "hooks"], off: false },
            Switch { file: "config.toml", key: &["features", "codex_hooks"], off: false },
        ],
        ..HookSettings::GROUPS
    }),
    next_step: Some(
        "Codex runs only hooks that you trust, and \"codex exec\" skips the others silently: start codex once and choose \
         \"Trust all\"",
    ),
    recall: RecallSpec { form: RecallForm::HookOutput, resumes_whole: true, unheard: &[] },
    // What it learned of a session, each in a file; the other ones are made of these.
    memory: Some(BuiltInMemory {
        home: HOME,
        files: &["memories/rollout_summaries/*.md"],
        project: MemoryProject::Line("cwd: "),
        off: None,
    }),
    preset: Some(Preset {
        home: Some(&LLM_HOME),
        ..Preset::new(
            "codex",
            "CODEX_HOME=$LLM_HOME/codex codex exec --ephemeral --skip-git-repo-check -s read-only -",
            2,
        )
    }),
};

const TOOLS: ToolTable = &[
    // Hooks call it Bash.
    (ToolKind::Shell, "Bash container.exec exec_command local_shell local_shell_call shell shell_command"),
    (ToolKind::Running, "write_stdin"),
    (ToolKind::Read, "read_file view_image"),
    (ToolKind::Search, "grep_files"),
    (ToolKind::Write, "apply_patch"),
    (ToolKind::Own, "list_dir update_plan"),
    (ToolKind::SubAgent, "close_agent resume_agent send_input spawn_agent wait wait_agent"),
    (ToolKind::Question, "request_user_input"),
];

/// Records that are not conversation.
const OTHER: &[&str] = &["compacted", "token_usage_record", "turn_context", "world_state"];

/// The start of a text that tells of a command which the person ran.
const SHELL: &str = "<user_shell_command>";

/// The start of a user text that the program wrote, for versions that do not record who wrote it.
const INSTRUCTIONS: &str = "# AGENTS.md instructions";

/// What editors put before a prompt, and the line that ends it.
const EDITOR: &str = "# Context from my IDE setup";
const REQUEST: &str = "## My request for Codex:";

fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    let mut rollout = Rollout { withdrawn: withdrawn(path), ..Rollout::default() };
    each_line(path, "Codex", out, |record, line, out| rollout.take(record, line.offset, out)).map(drop)
}

/// Where in the file what was taken back begins and ends: the last turns before an event that says how many.
fn withdrawn(path: &Path) -> Vec<Range<u64>> {
    let (mut prompts, mut withdrawn) = (Vec::new(), Vec::new());
    let _ = each_record(path, |record, offset| {
        let Some(payload) = record.object("payload")? else { return Ok(()) };
        match (&*record.kind()?, &*payload.kind()?) {
            ("response_item", "message") if is_prompt(&payload)? => prompts.push(offset),
            ("event_msg", "thread_rolled_back") => {
                let turns: usize = payload.get("num_turns")?.unwrap_or_default();
                let first = prompts.len().saturating_sub(turns);
                withdrawn.extend(prompts.drain(first..).next().map(|start| start..offset));
            }
            _ => {}
        }
        Ok(())
    });
    withdrawn
}

/// A part of it is a person's, as far as the program says that.
fn is_prompt(message: &Object) -> Result<bool, Skip> {
    let is_users = message.text("role")?.as_deref() == Some("user");
    let is_own = |text: &str| text.starts_with('<') || text.starts_with(INSTRUCTIONS);
    Ok(is_users
        && match kinds(message)? {
            Some(kinds) => kinds.iter().any(|kind| kind.starts_with("user.")),
            None => !message.raw("content").map(content::text).is_none_or(|text| is_own(text.trim_start())),
        })
}

/// Who wrote each part of a message.
fn kinds(message: &Object) -> Result<Option<Vec<String>>, Skip> {
    let passed = message.object("internal_chat_message_metadata_passthrough")?;
    passed.map_or(Ok(None), |passed| passed.get("content_item_kinds"))
}

#[derive(Default)]
struct Rollout {
    ids: Ids,
    /// The session was begun in its terminal or in an editor.
    is_interactive: bool,
    /// A person began the turn, and not `codex exec` or another agent.
    is_persons: bool,
    withdrawn: Vec<Range<u64>>,
}

impl Rollout {
    fn take(&mut self, record: &Object, offset: u64, out: &mut TurnSink) -> Taken {
        let kind = record.kind()?;
        let Some(payload) = record.raw("payload") else { return unknown(kind) };
        match &*kind {
            "session_meta" => self.meta(record, out),
            "response_item" if self.withdrawn.iter().any(|range| range.contains(&offset)) => Ok(()),
            "response_item" => {
                out.at = record.time("timestamp");
                let metadata = record.object("metadata")?;
                let is_summary = metadata.map_or(Ok(false), |metadata| metadata.flag("compaction_output"))?;
                let item = record.object("payload")?.filter(|_| !is_summary);
                item.map_or(Ok(()), |item| self.item(&item, out))
            }
            "event_msg" => {
                // It is short; others repeat what was said.
                let event = record.object("payload")?.filter(|_| payload.get().contains("task_started"));
                if let Some(event) = event
                    && event.kind()? == "task_started"
                {
                    let from = event.object("turn_attribution")?;
                    let from = from.map_or(Ok(None), |from| from.text("turn_trigger"))?;
                    self.is_persons = self.is_interactive && from.as_deref() == Some("user");
                }
                Ok(())
            }
            kind if OTHER.contains(&kind) => Ok(()),
            kind => unknown(kind),
        }
    }

    /// The file's own description. A later one is a copy from another session.
    fn meta(&mut self, record: &Object, out: &mut TurnSink) -> Taken {
        let Some(meta) = record.object("payload")?.filter(|_| out.report.session_id.is_none()) else {
            return Ok(());
        };
        let source = meta.raw("source").map_or("", RawValue::get);
        self.is_interactive = ["\"cli\"", "\"vscode\""].contains(&source);
        let is_spawned = source.contains("\"subagent\"");
        out.report.is_sub_agent = is_spawned || meta.text("thread_source")?.as_deref() == Some("subagent");
        out.report.parent = meta.text("forked_from_id")?.or(meta.text("parent_thread_id")?);
        out.report.remote =
            meta.object("git").ok().flatten().and_then(|git| git.text("repository_url").ok()?);
        out.report.begins(meta.text("id")?, meta.text("cwd")?);
        Ok(())
    }

    fn item(&mut self, item: &Object, out: &mut TurnSink) -> Taken {
        let kind = item.kind()?;
        let id = item.text("id")?;
        let key = item.text("call_id")?.or_else(|| id.clone()).unwrap_or_default();
        match &*kind {
            "message" => self.message(item, id, out)?,
            "reasoning" => {
                let summary = joined(item.raw("summary"), out)?;
                let text = if summary.is_empty() { joined(item.raw("content"), out)? } else { summary };
                let id = id.unwrap_or_else(|| self.ids.next(Role::Reasoning, &text));
                out.turn(Role::Reasoning, &text, id)?;
            }
            "function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call" => {
                let name = item.text("name")?.unwrap_or_else(|| kind.clone());
                let text = item.text("arguments")?.or(item.text("input")?);
                let json = || item.raw("action").map_or("{}", RawValue::get).to_owned();
                out.call(&key, &name, &text.unwrap_or_else(json), key.clone())?;
                // The server does the search: its result is in the answer, no record follows.
                if kind == "web_search_call" {
                    out.result(&key, "", false)?;
                }
            }
            "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
                out.result(&key, &item.raw("output").map(content::text).unwrap_or_default(), false)?;
            }
            "compaction" | "compaction_summary" => {}
            kind => return unknown(format!("response_item {kind}")),
        }
        Ok(())
    }

    fn message(&mut self, item: &Object, id: Option<String>, out: &mut TurnSink) -> Taken {
        let role = match item.text("role")?.as_deref() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some("developer" | "system") => return Ok(()),
            role => return unknown(format!("message of role {}", role.unwrap_or("(none)"))),
        };
        let is_users = role == Role::User;
        let kinds = kinds(item)?;
        let kind = |n: usize| kinds.as_ref().and_then(|kinds| kinds.get(n)).filter(|_| is_users);
        let mut message = PromptMessage::default();
        let mut is_typed = self.is_persons;
        if let Some(content) = item.raw("content") {
            out.each_part(content, "message part", |n, part, out| {
                match (part, kind(n)) {
                    (ContentPart::Text(text), kind)
                        if is_users
                            && text.starts_with(SHELL)
                            && kind.is_none_or(|kind| kind != "user.text") =>
                    {
                        let [command, result] =
                            ["command", "result"].map(|tag| between(&text, tag).unwrap_or_default());
                        let failed = !result.trim_start().starts_with("Exit code: 0");
                        let id = self.ids.next(Role::Tool, &text);
                        return Ok(out.person_ran(command, result, failed, id)?);
                    }
                    (_, Some(kind)) if !kind.starts_with("user.") => return Ok(()),
                    (ContentPart::Text(text), _) if is_image_tag(&text) => return Ok(()),
                    (ContentPart::Text(text), _) if !is_users => message.texts.push(text),
                    (ContentPart::Text(text), None) if text.trim_start().starts_with(INSTRUCTIONS) => {}
                    (ContentPart::Text(text), kind) => {
                        is_typed &= kind.is_some_and(|kind| kind == "user.text");
                        let (context, request) = request(&text);
                        message.attached.push(context.to_owned());
                        message.text(request);
                    }
                    (other, _) => message.add(other)?,
                }
                Ok(())
            })?;
        }
        let text = message.texts.join("\n");
        let id = id.unwrap_or_else(|| self.ids.next(role, &text));
        let added =
            if is_users { out.prompt(message, Some(is_typed), id) } else { out.turn(role, &text, id) };
        Ok(added?)
    }
}

/// What an editor put before a prompt, and the prompt. What it shows of files may have the line between them, too.
fn request(text: &str) -> (&str, &str) {
    let is_editors = text.trim_start().starts_with(EDITOR);
    if is_editors { text.rsplit_once(REQUEST).unwrap_or((text, "")) } else { ("", text) }
}

/// The texts of all parts.
fn joined(content: Option<&RawValue>, out: &mut TurnSink) -> Result<String, Skip> {
    let mut texts = Vec::new();
    if let Some(content) = content {
        out.each_part(content, "reasoning part", |_, part, _| match part {
            ContentPart::Text(text) => {
                texts.push(text);
                Ok(())
            }
            other => other.unknown(),
        })?;
    }
    Ok(texts.join("\n"))
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
const FIRST_LINE: usize = 1 << 20;
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
    Timestamp::from_millisecond(milliseconds).ok().map(utc_day)
}

/// The directories in `dir` with a number as their name, the greatest first.
fn newest(dir: &Path) -> Vec<PathBuf> {
    let is_number = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())
    };
    entries(dir).into_iter().rev().filter(is_number).collect()
}

/// Whether the first line says that an agent, not a person, started this thread. `false` if it cannot be read.
fn is_sub_agents(path: &Path) -> bool {
    let record = first_record(path, FIRST_LINE).unwrap_or_default();
    let meta = &record["payload"];
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
