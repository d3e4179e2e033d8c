//! The turns of a run on disk, so that a run that failed can be continued (`--continue`) without paying for them again.
//!
//! The file is made when the main agent's model first calls a tool, and removed when the run succeeds. It is JSON Lines:
//! how the run began, then what happened, in its order. Each line is one append, before the next call is made. Nothing is
//! synced: a kill loses nothing, and a power cut may lose the newest lines.

use crate::base::cli::Reporter;
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file::{self, RunLock};
use crate::base::signal;
use crate::base::sync::lock;
use crate::config::global::Api;
use crate::config::model::Model;
use crate::config::tool::CALL_AGENT;
use crate::provider::message::{ChatTurn, Reply, Request, ToolRequest, ToolResult};
use crate::provider::openai;
use crate::store::conversation::hold;
use crate::store::runs::{RunId, runs_dir};
use jiff::{SignedDuration, Timestamp};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A file is removed so long after its run began.
const KEPT_FOR: SignedDuration = SignedDuration::from_hours(30 * 24);
/// The largest file that is read, in bytes. Attached files have 27 MiB at most, a tool's output 16 MiB.
const CAP: u64 = 1 << 30;

/// What a continued run takes over from its beginning, besides the first request.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct RunStart {
    pub agent: String,
    pub agents_dir: Option<PathBuf>,
    pub model: String,
    /// In whose format the turns are.
    pub api: Option<Api>,
    pub workdir: PathBuf,
    pub conversation: Option<String>,
    /// The text of `--prompt`.
    pub prompt: Option<String>,
    pub message: String,
    /// The names of the attached files.
    pub attached: Vec<String>,
    /// `--max-tokens-total`.
    pub max_tokens: Option<u64>,
    pub schema: Option<Value>,
}

/// A run as its file has it.
#[derive(Debug)]
pub struct Continued {
    pub start: Arc<RunStart>,
    /// The whole conversation, except for the newest turn.
    pub request: Request,
    /// The model that has held it at last.
    pub model: String,
    /// Whether several services have turns in it.
    pub is_mixed: bool,
    /// How many tokens the run used.
    pub used: u64,
}

/// A turn that goes on with tool calls, and their results as far as they are known.
#[derive(Debug, Deserialize)]
pub(super) struct KeptTurn {
    #[serde(deserialize_with = "raw_text")]
    pub(super) raw: Box<RawValue>,
    text: String,
    /// Whose turn it is.
    #[serde(default)]
    model: String,
    pub(super) calls: Vec<ToolRequest>,
    #[serde(skip)]
    pub(super) results: Vec<Option<ToolResult>>,
    used: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeptEvent {
    Run {
        start: Box<RunStart>,
        request: Box<Request>,
    },
    Turn(KeptTurn),
    /// A call, by its place in the turn.
    Begun(usize),
    Done {
        call: usize,
        result: ToolResult,
        used: u64,
    },
    /// What was said to the turn's answer.
    User(String),
}

/// Writes the file.
pub struct TurnFile {
    id: RunId,
    /// `None`: nothing can be kept.
    path: Option<PathBuf>,
    start: Arc<RunStart>,
    reporter: Reporter,
    state: Mutex<TurnState>,
}

#[derive(Default)]
struct TurnState {
    /// Held while the file is ours.
    lock: Option<RunLock>,
    has_failed: bool,
    /// The newest turn of a continued run.
    newest: Option<KeptTurn>,
    /// What was said in each of its turns.
    said: Vec<String>,
}

impl TurnFile {
    /// Creates nothing yet. What is not UTF-8 cannot be written down.
    pub fn new(id: RunId, start: Arc<RunStart>, env: &Env, reporter: Reporter) -> TurnFile {
        let is_text = start.agents_dir.iter().chain([&start.workdir]).all(|path| path.to_str().is_some());
        let path = path(&id, env).ok().filter(|_| is_text);
        TurnFile { id, path, start, reporter, state: Mutex::default() }
    }

    /// Takes the file of a run that failed, which no other run continues.
    pub fn reopen(id: RunId, env: &Env, reporter: Reporter) -> Result<(TurnFile, Continued)> {
        let path = path(&id, env)?;
        let is_kept = path.exists();
        let held = if is_kept { Some(take(&path, &id)?) } else { None };
        let Some(bytes) = file::if_exists(file::read(&path, CAP))? else {
            let all = kept(&runs_dir(env)?);
            let hint = match &all[..] {
                [] => "a run can be continued if it failed after its model had called a tool".to_owned(),
                all => format!("these can: {}", all[..all.len().min(5)].join(", ")),
            };
            return Err(Error::not_found(format!("no run \"{id}\" can be continued")).hint(hint));
        };
        let why = || format!("\"{}\" is not the file of a run: its beginning is missing", path.display());
        let (continued, state) = read(&bytes).ok_or_else(|| Error::corrupt(why()))?;
        reporter.verbose(&format!("Turns:    {} from {}", state.said.len(), path.display()));
        let (start, state) = (Arc::clone(&continued.start), Mutex::new(TurnState { lock: held, ..state }));
        let turns = TurnFile { id, path: Some(path), start, reporter, state };
        signal::set_next_step(turns.next_step());
        Ok((turns, continued))
    }

    /// The run's id, if it can be continued.
    pub fn kept(&self) -> Option<&RunId> {
        lock(&self.state).lock.as_ref().map(|_| &self.id)
    }

    fn next_step(&self) -> Option<String> {
        self.kept().map(|id| format!("continue with: axe run --continue {id}"))
    }

    /// Adds how to continue the run to its error.
    pub fn explain(&self, error: Error) -> Error {
        let Some(next) = self.next_step() else { return error };
        let hint = error.next_step().map_or(next.clone(), |hint| format!("{hint}, then {next}"));
        error.hint(hint)
    }

    /// The run is over, and there is nothing to continue.
    pub fn remove(&self) {
        let mut state = lock(&self.state);
        if let (Some(path), Some(_)) = (&self.path, state.lock.take()) {
            signal::set_next_step(None);
            if let Err(e) = file::forget(path).and(file::forget(&path.with_extension("lock"))) {
                self.reporter.warn(&format!("the turns of the run are left behind: {e}"));
            }
        }
    }

    /// Makes the turns of a continued run such that another service takes them.
    pub fn make_portable(&self, request: &mut Request) {
        openai::make_portable(request);
        lock(&self.state).newest.iter_mut().for_each(|turn| turn.raw = openai::portable(&turn.raw));
    }

    /// The newest turn of a continued run, and what was said in all of them.
    pub(super) fn take_newest(&self) -> (Option<KeptTurn>, Vec<String>) {
        let mut state = lock(&self.state);
        (state.newest.take(), std::mem::take(&mut state.said))
    }

    /// Keeps a turn whose calls are about to be answered. `request` is what it answers.
    pub(super) fn turn(&self, request: &Request, reply: &Reply, model: &Model, used: u64) {
        let is_new = self.path.is_some() && self.kept().is_none();
        let start = is_new.then(|| json!({ "run": { "start": *self.start, "request": request } }));
        self.append(start.into_iter().chain([turn(reply, model, used)]), true);
    }

    pub(super) fn begun(&self, call: usize) {
        self.append([json!({ "begun": call })], false);
    }

    pub(super) fn done(&self, call: usize, result: &ToolResult, used: u64) {
        self.append([json!({ "done": { "call": call, "result": result, "used": used } })], false);
    }

    /// Keeps an answer that was not accepted, and what the model is told. Without tool calls before it, there is no file.
    pub(super) fn repair(&self, reply: &Reply, told: &str, model: &Model, used: u64) {
        self.append([turn(reply, model, used), json!({ "user": told })], false);
    }

    /// An error is a warning, and the file is not extended any more: the run does not need it.
    fn append(&self, lines: impl IntoIterator<Item = Value>, begins: bool) {
        let mut state = lock(&self.state);
        let is_new = state.lock.is_none();
        let Some(path) = self.path.as_ref().filter(|_| !state.has_failed && (begins || !is_new)) else {
            return;
        };
        let text: String = lines.into_iter().map(|line| format!("{line}\n")).collect();
        let held = if is_new { begin(path, &self.id).map(Some) } else { Ok(None) };
        match held.and_then(|held| {
            Ok(file::append_within(path, text.as_bytes(), 0o600, Duration::MAX).map(|()| held)?)
        }) {
            Ok(Some(held)) => {
                state.lock = Some(held);
                drop(state);
                signal::set_next_step(self.next_step());
                self.reporter.verbose(&format!("Turns:    kept in {}", path.display()));
            }
            Ok(None) => {}
            Err(error) => {
                state.has_failed = true;
                self.reporter.warn(&format!("the turns of this run are not kept: {}", error.message()));
            }
        }
    }
}

impl KeptTurn {
    /// Adds the turn and the results of its calls to `turns`.
    fn settle(self, turns: &mut Vec<ChatTurn>) {
        turns.push(ChatTurn::Assistant(self.raw));
        if !self.calls.is_empty() {
            turns.push(ChatTurn::ToolResults(self.results.into_iter().flatten().collect()));
        }
    }

    /// Nobody can say what a program did that was running when the run ended. An agent can be asked again.
    fn begun(&mut self, call: usize) {
        if let (Some(call), Some(result @ None)) = (self.calls.get(call), self.results.get_mut(call))
            && call.name != CALL_AGENT
        {
            let name = call.name.clone();
            let content = format!(
                "Error: the run was interrupted while tool \"{name}\" was running. Whether it did its work is not \
                 known."
            );
            *result = Some(ToolResult { id: call.id.clone(), name, content, is_error: true });
        }
    }
}

/// What the lines say; `None` without the first one. A line that was cut off, as a kill may leave it, says nothing.
fn read(bytes: &[u8]) -> Option<(Continued, TurnState)> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let mut lines = lines.filter_map(|line| serde_json::from_slice(line).ok());
    let Some(KeptEvent::Run { start, mut request }) = lines.next() else { return None };
    let (mut used, mut state) = (0, TurnState::default());
    let (mut model, mut is_mixed) = (start.model.clone(), false);
    for line in lines {
        match line {
            KeptEvent::Turn(mut turn) => {
                state.newest.take().into_iter().for_each(|before| before.settle(&mut request.turns));
                used = used.max(turn.used);
                let by = std::mem::take(&mut turn.model);
                if !by.is_empty() && by != model {
                    is_mixed |= by.split('/').next() != start.model.split('/').next();
                    model = by;
                }
                state.said.push(std::mem::take(&mut turn.text));
                turn.results = vec![None; turn.calls.len()];
                state.newest = Some(turn);
            }
            KeptEvent::User(text) => {
                state.newest.take().into_iter().for_each(|before| before.settle(&mut request.turns));
                request.turns.push(ChatTurn::User(text));
            }
            KeptEvent::Begun(call) => state.newest.iter_mut().for_each(|turn| turn.begun(call)),
            KeptEvent::Done { call, result, used: now } => {
                used = used.max(now);
                if let Some(known) = state.newest.as_mut().and_then(|turn| turn.results.get_mut(call)) {
                    *known = Some(result);
                }
            }
            KeptEvent::Run { .. } => {}
        }
    }
    // An answer alone is asked for again.
    state.newest = state.newest.filter(|turn| !turn.calls.is_empty());
    Some((Continued { start: Arc::from(start), request: *request, model, is_mixed, used }, state))
}

fn raw_text<'de, D: Deserializer<'de>>(found: D) -> Result<Box<RawValue>, D::Error> {
    RawValue::from_string(String::deserialize(found)?).map_err(D::Error::custom)
}

/// A turn as it came: as a text, since it is sent back byte for byte.
fn turn(reply: &Reply, model: &Model, used: u64) -> Value {
    let (raw, text, calls, model) = (reply.raw.get(), &reply.text, &reply.calls, model.to_string());
    json!({ "turn": { "raw": raw, "text": text, "model": model, "calls": calls, "used": used } })
}

/// `runs/ID.jsonl` in the data directory. Creates nothing.
fn path(id: &RunId, env: &Env) -> Result<PathBuf> {
    Ok(runs_dir(env)?.join(format!("{id}.jsonl")))
}

/// Takes a file that no other run has.
fn take(path: &Path, id: &RunId) -> Result<RunLock> {
    let data_dir = path.parent().and_then(Path::parent).unwrap_or(path);
    hold(path, data_dir, &format!("run \"{id}\""), "wait until it has ended", Deadline::after_seconds(0))
}

/// Takes a new file, and removes the files of old runs.
fn begin(path: &Path, id: &RunId) -> Result<RunLock> {
    let dir = path.parent().unwrap_or(path);
    let oldest = began(id.as_str()).and_then(|now| now.checked_sub(KEPT_FOR).ok());
    for old in kept(dir).iter().filter(|id| began(id) < oldest) {
        let _ = file::forget(&dir.join(format!("{old}.jsonl")));
        let _ = file::forget(&dir.join(format!("{old}.lock")));
    }
    take(path, id).inspect_err(|_| drop(file::forget(&path.with_extension("lock"))))
}

/// When a run began, by its id.
fn began(id: &str) -> Option<Timestamp> {
    let (time, random) = id.split_once('-').filter(|(_, random)| random.len() == 6)?;
    random.chars().all(char::is_alphanumeric).then(|| Timestamp::from_str(time).ok())?
}

/// The runs that have a file, the newest first.
fn kept(dir: &Path) -> Vec<String> {
    let names = fs_err::read_dir(dir).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let mut ids: Vec<String> = names
        .filter_map(|name| Some(name.strip_suffix(".jsonl").filter(|id| began(id).is_some())?.to_owned()))
        .collect();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever lines are there, in whichever order, they are read or refused.
    #[test]
    fn lines_in_any_order_are_read_or_refused() {
        let request = Request::new("m", String::new(), ChatTurn::User("u".into()));
        let start = json!({ "run": { "start": RunStart::default(), "request": request } }).to_string();
        let call = json!({ "id": "c", "name": "t", "arguments": { "Ok": {} } });
        let turn = |calls: &Value| {
            json!({ "turn": { "raw": "{ }", "text": "", "calls": calls, "used": u64::MAX } }).to_string()
        };
        let result = json!({ "id": "c", "name": "t", "content": "r", "is_error": false });
        let done = json!({ "done": { "call": 0, "result": result, "used": 7 } }).to_string();
        let far = json!({ "done": { "call": usize::MAX, "result": result, "used": 7 } }).to_string();
        let (begun, user) = ("{\"begun\":0}".to_owned(), "{\"user\":\"x\"}".to_owned());
        let (with, without) = (turn(&json!([call])), turn(&json!([])));
        let short = ["{\"begun\":9}", "x", "{\"done\":7}"].map(str::to_owned);
        let known = [&start, &with, &without, &begun, &done, &far, &user];
        let lines: Vec<&String> = known.into_iter().chain(&short).collect();
        let count = lines.len();
        for n in 0..count.pow(4) {
            let text: String =
                (0..4).map(|place| format!("{}\n", lines[n / count.pow(place) % count])).collect();
            let (_, state) = read(format!("{start}\n{text}").as_bytes()).unwrap();
            let newest = state.newest.as_ref();
            assert!(newest.is_none_or(|turn| turn.calls.len() == turn.results.len()), "{text}");
            // Lines that are none do not count.
            let first = lines.iter().find(|line| text.starts_with(&format!("{line}\n")));
            assert!(
                first.is_some_and(|line| short.contains(line))
                    || read(text.as_bytes()).is_some() == text.starts_with(&start)
            );
        }
        assert!(read(start.as_bytes()).is_none(), "a line without its end");
        let order = [&start, &with, &done, &without, &user].map(|line| format!("{line}\n")).concat();
        let (continued, state) = read(order.as_bytes()).unwrap();
        let turns = continued.request.turns.len();
        assert_eq!((turns, state.newest.is_none(), state.said.len(), continued.used), (5, true, 2, u64::MAX));
    }
}
