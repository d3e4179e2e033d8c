//! A shell command as a provider: the prompt on its stdin, the answer on its stdout.
//!
//! A command has no tools. A JSON form with tools would need another `input` and another way to read `stdout` here,
//! and nothing else.

use crate::base::command_line::{first_word, program};
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::exec::{self, CommandLine, ExecError, Invocation};
use crate::base::lookup::on_path;
use crate::base::text::lossy;
use crate::config::preset::{LlmHome, presets};
use crate::provider::error::{CallError, CallResult, Category};
use crate::provider::message::{ChatTurn, Reply, Request, StopReason};
use crate::provider::wire::{raw, system};
use std::ffi::OsString;
use std::path::PathBuf;

/// The longest answer, in bytes. A model's is about a thousandth of that.
const CAP: usize = 16 * 1024 * 1024;
/// A command or a tool may run `axe-run`, whose agent may run it again. This is the limit.
const DEEPEST: u32 = 8;
/// Passes the number of levels from process to process.
pub const LEVEL: &str = "AXE_COMMAND_LEVEL";
/// The id of the run that has started a command.
pub const RUN: &str = "AXE_RUN_ID";
/// Tells the memory programs, which agents run as hooks, that this is no session of a person.
const MEMORY_RUN: &str = "AGENT_MEMORY_RUN";

pub struct ShellCommand {
    pub(super) line: String,
    /// Reaches the command as `AXE_MODEL`.
    pub(super) model: Option<String>,
    pub(super) dir: PathBuf,
    /// How many commands of ours run above this one.
    pub(super) level: u32,
    /// What it finds in its environment, whatever it is asked.
    pub(super) vars: Vec<(&'static str, OsString)>,
    /// Whether its stderr is passed on as it comes. Otherwise its end is shown if the command fails.
    pub(super) is_heard: bool,
    pub(super) home: Option<LlmHome>,
    /// It is a preset's, and its program is not on PATH.
    pub(super) is_missing: bool,
}

impl ShellCommand {
    pub(super) fn ask(&self, request: &Request, deadline: Deadline) -> CallResult {
        let word = first_word(&self.line);
        if let Some(why) = too_deep(self.level) {
            return Err(CallError::server(format!("command \"{word}\" {why}")));
        }
        // The shell would say it, too.
        if self.is_missing {
            let why = format!("command \"{word}\" was not found");
            return Err(CallError::outage(why).hint("install it"));
        }
        let dir = self.home.as_ref().map_or(&self.dir, |home| &home.work);
        let mut vars = self.vars.clone();
        // Its hooks must not queue a run of ours as a session of the person.
        vars.push((MEMORY_RUN, OsString::from("1")));
        vars.extend(self.home.iter().flat_map(|home| home.vars.clone()));
        vars.extend(self.model.iter().map(|model| ("AXE_MODEL", OsString::from(model))));
        let finished = exec::run(Invocation {
            input: prompt(request).into_bytes(),
            vars,
            is_heard: self.is_heard,
            explain: Some(&str::to_owned),
            level: self.level,
            ..Invocation::new(CommandLine::Shell(&self.line), dir, CAP, deadline)
        })
        .map_err(|fault| {
            let message = format!("command \"{word}\" {fault}");
            let is_late = matches!(fault, ExecError::Deadline);
            if is_late { CallError::new(Category::Timeout, message) } else { CallError::outage(message) }
        })?;
        if let Some(failed) = finished.failure() {
            // It cannot say why: its service may be the reason.
            let error = CallError::outage(format!("command \"{word}\" {failed}"));
            return Err(match finished.status.code() {
                Some(126 | 127) => error.hint("install it, or correct its line in config.toml"),
                _ => error,
            });
        }
        let (mut text, _) = lossy(finished.stdout);
        text.truncate(text.trim_end_matches(['\n', '\r']).len());
        let raw = raw(&text);
        Ok(Reply { raw, ..Reply::new(text, StopReason::Complete, "stop", &request.model) }.judged())
    }
}

/// Whether it is a preset's line whose program is not on PATH.
pub(super) fn is_missing(line: &str, env: &Env) -> bool {
    presets().iter().any(|(_, known)| *known == line)
        && program(line).is_some_and(|name| on_path(name.as_ref(), env).is_none())
}

/// The number of our commands above this process.
pub fn level(env: &Env) -> u32 {
    env.text(LEVEL).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Why a command is not run below so many others of ours, if it is not.
pub fn too_deep(level: u32) -> Option<String> {
    (level >= DEEPEST)
        .then(|| format!("was not run: {DEEPEST} commands of axe already run inside one another"))
}

/// What a program that a run starts finds in its environment, besides ours: one level more, and the run's id.
pub fn vars(env: &Env) -> Vec<(&'static str, OsString)> {
    let level = (LEVEL, OsString::from((level(env) + 1).to_string()));
    std::iter::once(level).chain(env.os(RUN).map(|run| (RUN, run.to_owned()))).collect()
}

/// The system prompt, a blank line, the user's message; without a system prompt the message alone. Further turns follow,
/// each after a blank line.
fn prompt(request: &Request) -> String {
    let system = system(request, false);
    let turns = request.turns.iter().filter_map(|turn| match turn {
        // A command is never given files.
        ChatTurn::User(text) | ChatTurn::Attached(text, _) => Some(text.clone()),
        ChatTurn::Said(text) => Some(answered(text)),
        ChatTurn::Assistant(raw) => {
            Some(answered(&serde_json::from_str::<String>(raw.get()).unwrap_or_default()))
        }
        ChatTurn::ToolResults(_) => None,
    });
    let system = Some(system.into_owned()).filter(|system| !system.is_empty());
    system.into_iter().chain(turns).collect::<Vec<_>>().join("\n\n")
}

fn answered(text: &str) -> String {
    format!("Your answer to this was:\n\n{text}")
}
