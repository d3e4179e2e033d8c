//! Amp: what `amp threads markdown <thread id>` prints. Threads live on Amp's server.
//!
//! Known from published threads: front matter (`title`, `threadId`, `created`), a heading with the title, then
//! sections `## User` and `## Assistant`. A call is a paragraph `**Tool Use:** NAME` with its arguments in a fence;
//! its result is in a user section, as `**Tool Result:** ID`, `**Tool Error:** ID` or `**Tool Cancelled:** ID`, also
//! in a fence. Calls have no id, so results are assigned to them in order. An agent or a tool may write a heading, too:
//! nothing counts as typed.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::lines::next_line;
use crate::base::text::fences::{Fence, fence};
use crate::harness::context::{Above, ContextFiles};
use crate::harness::out::TurnSink;
use crate::harness::source::{LINE_CAP, failed, open};
use crate::harness::spec::{
    CaptureSpec, Format, Home, Install, OwnFile, PastSource, Preset, RecallForm, RecallSpec, Spec, Stored,
    ToolKind, ToolTable,
};
use crate::harness::turn::{Ids, Role};
use serde_json::Value;
use std::path::Path;

const DATA: Home = Home { variables: &[("XDG_DATA_HOME", "amp")], usual: ".local/share/amp" };

pub(super) static SPEC: Spec = Spec {
    name: "amp",
    title: "Amp",
    home: Home { variables: &[("XDG_CONFIG_HOME", "amp")], usual: ".config/amp" },
    reads: ContextFiles {
        own: &[&["AGENTS.md", "../AGENTS.md"]],
        above: Above::Everything,
        ..ContextFiles::AGENTS
    },
    marks: &["AMP_CURRENT_THREAD_ID"],
    format: Format { read, tools: TOOLS, ..Format::ANY },
    method: "amp-thread",
    capture: CaptureSpec::Id,
    past: PastSource::Copies(DATA, "threads/T-*.json", copied),
    events: &[],
    install: Install::Files(&[
        OwnFile {
            dirs: &["skills/agent-memory"],
            name: "SKILL.md",
            text: include_str!("../../examples/amp/SKILL.md"),
        },
        OwnFile {
            dirs: &["plugins"],
            name: "agent-memory.ts",
            text: include_str!("../../examples/amp/memory.ts"),
        },
    ]),
    next_step: Some("Amp loads the plugin after \"plugins: reload\" in its command palette, or a restart"),
    recall: RecallSpec { form: RecallForm::Plugin, resumes_whole: false, unheard: &[] },
    memory: None,
    preset: Some(Preset {
        caution: Some("Amp keeps its tools and its context files, and records a thread on its server"),
        ..Preset::new("amp", "amp -x", 5)
    }),
};

const TOOLS: ToolTable = &[
    (ToolKind::Shell, "Bash"),
    (ToolKind::Read, "Read"),
    (ToolKind::Edit, "edit_file format_file undo_edit"),
    (ToolKind::Search, "Grep"),
    (ToolKind::Write, "create_file"),
    (ToolKind::Own, "Glob get_diagnostics glob list_directory todo_read todo_write"),
    (ToolKind::SubAgent, "Task codebase_search_agent finder oracle"),
];

/// A longer text is split into several turns, in bytes.
const TEXT_CAP: usize = 8 << 20;

fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    let mut reader = open(path, "an Amp thread")?;
    let mut thread =
        Thread { ids: Ids::default(), state: ThreadState::Start, fence: None, text: String::new() };
    let mut buffer = Vec::new();
    loop {
        let found = next_line(&mut reader, &mut buffer, LINE_CAP).map_err(|e| failed(path, &e))?;
        if found.length == 0 {
            break;
        }
        if found.too_long {
            out.report.too_long += 1;
            continue;
        }
        thread.line(String::from_utf8_lossy(&buffer).trim_end_matches('\r'), out)?;
    }
    match thread.state {
        // The output ends before the first section.
        ThreadState::Front => out.report.torn += 1,
        ThreadState::Start => {
            return Err(Error::io(format!(
                "\"{}\" is not what `amp threads markdown` prints: no front matter, no \"## User\", no \"## Assistant\"",
                path.display()
            ))
            .hint("check that harnesses.amp.readCommand prints the thread alone"));
        }
        _ => thread.end_part(out)?,
    }
    Ok(())
}

enum ThreadState {
    Start,
    /// In the front matter.
    Front,
    /// After it, before the first section.
    Title,
    Said(Role),
    /// After `**Tool Use:**` and a name: the fenced block is its arguments.
    Call(String),
    /// After `**Tool Result:**` and the like. Whether it failed.
    Result(bool),
}

struct Thread {
    ids: Ids,
    state: ThreadState,
    /// The fence that is open.
    fence: Option<Fence>,
    /// The text since the last heading, or in the fence of a call or result.
    text: String,
}

impl Thread {
    fn line(&mut self, line: &str, out: &mut TurnSink) -> Result<()> {
        if let ThreadState::Start | ThreadState::Front = self.state {
            self.front(line, out);
            return Ok(());
        }
        // With more than three spaces before it, it is none.
        let text = line.trim_start_matches(' ');
        let is_near = line.len() - text.len() <= 3 && text.starts_with(['`', '~']);
        let fence = fence(line.as_bytes()).filter(|_| is_near);
        match (self.fence, fence) {
            (None, Some(mark)) => self.fence = Some(mark),
            (Some(open), Some(mark)) if mark.closes(&open) => {
                self.fence = None;
                if let ThreadState::Call(_) | ThreadState::Result(_) = self.state {
                    return self.end_part(out);
                }
            }
            (Some(_), _) => {}
            (None, None) => {
                if let Some(next) = heading(line) {
                    self.end_part(out)?;
                    self.state = next;
                    return Ok(());
                }
                if let ThreadState::Call(_) | ThreadState::Result(_) = self.state {
                    if line.trim().is_empty() {
                        return Ok(());
                    }
                    // No fence follows.
                    self.end_part(out)?;
                }
            }
        }
        match self.state {
            ThreadState::Call(_) | ThreadState::Result(_) if fence.is_some() && self.text.is_empty() => {
                // The opening fence. The space marks it as read, so that a fence inside is not taken for it.
                self.text.push(' ');
            }
            ThreadState::Start | ThreadState::Front | ThreadState::Title => {}
            // The middle will be cut anyway.
            ThreadState::Call(_) | ThreadState::Result(_) if self.text.len() > TEXT_CAP => {}
            _ => {
                self.text.push_str(line);
                self.text.push('\n');
                if self.text.len() > TEXT_CAP && matches!(self.state, ThreadState::Said(_)) {
                    self.end_part(out)?;
                }
            }
        }
        Ok(())
    }

    fn front(&mut self, line: &str, out: &mut TurnSink) {
        match (&self.state, line.trim()) {
            (ThreadState::Start, "---") => self.state = ThreadState::Front,
            (ThreadState::Front, "---") => self.state = ThreadState::Title,
            (ThreadState::Front, line) => {
                if let Some(id) = line.strip_prefix("threadId:") {
                    out.report.session_id = Some(id.trim().trim_matches('"').to_owned());
                }
            }
            // There is no front matter.
            (_, line) => {
                if let Some(next @ ThreadState::Said(_)) = heading(line) {
                    self.state = next;
                }
            }
        }
    }

    /// Passes on the collected text. After a call or result, the section around it continues.
    fn end_part(&mut self, out: &mut TurnSink) -> Result<()> {
        let text = std::mem::take(&mut self.text);
        let text = text.trim();
        match std::mem::replace(&mut self.state, ThreadState::Said(Role::Assistant)) {
            ThreadState::Call(name) => {
                let id = self.ids.next(Role::Tool, &format!("{name} {text}"));
                out.call(&id, &name, text, id.clone())
            }
            ThreadState::Result(failed) => {
                self.state = ThreadState::Said(Role::User);
                let key = out.oldest_call().unwrap_or_else(|| self.ids.next(Role::Tool, text));
                out.result(&key, text, failed)
            }
            ThreadState::Said(role) => {
                self.state = ThreadState::Said(role);
                if text.is_empty() { Ok(()) } else { out.turn(role, text, self.ids.next(role, text)) }
            }
            before => {
                self.state = before;
                Ok(())
            }
        }
    }
}

/// The part that begins with this line outside of fences.
fn heading(line: &str) -> Option<ThreadState> {
    let line = line.trim_end();
    let said = [("## User", Role::User), ("## Assistant", Role::Assistant)];
    if let Some((_, role)) = said.into_iter().find(|(heading, _)| *heading == line) {
        return Some(ThreadState::Said(role));
    }
    let (label, rest) = line.strip_prefix("**Tool ")?.split_once(":** `")?;
    let name = rest.strip_suffix('`')?;
    match label {
        "Use" => Some(ThreadState::Call(name.to_owned())),
        "Result" => Some(ThreadState::Result(false)),
        "Error" | "Cancelled" => Some(ThreadState::Result(true)),
        _ => None,
    }
}

/// The largest copy of a thread that is read, in bytes.
const COPY_CAP: u64 = 64 << 20;

/// What a copy of a thread says about it. Some versions keep them here.
fn copied(path: &Path) -> Option<Stored> {
    let thread: Value = serde_json::from_slice(&file::read(path, COPY_CAP).ok()?).ok()?;
    let messages = thread["messages"].as_array();
    let first = messages.and_then(|all| all.iter().find(|message| message["role"] == "user"));
    let tree = thread["env"]["initial"]["trees"][0]["uri"].as_str();
    Some(Stored {
        id: path.file_stem()?.to_str()?.to_owned(),
        parent: None,
        cwd: tree.and_then(|uri| uri.strip_prefix("file://")).map(str::to_owned),
        changed: 0,
        bytes: None,
        first: first.map(|message| message["content"].to_string()),
    })
}
