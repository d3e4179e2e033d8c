//! The sessions that lie on this machine already (`memory-capture --past`): which of them are a person's, and neither
//! consumed nor queued.

use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::exec::{self, CommandLine, Invocation};
use crate::base::repository::name_of_url;
use crate::base::text::one_line;
use crate::config::memory::MemoryConfig;
use crate::harness::turn::{Role, Turn};
use crate::harness::{self, Format};
use crate::memory::capture::context;
use crate::memory::capture::places::{self, SessionFile};
use crate::memory::capture::rollout;
use crate::store::batch::{Batches, bears_an_id};
use crate::store::journal::entry::{Context, Harness, QueueEntry, Retrieval, id_fault, session_mark};
use crate::store::journal::{Journal, Read, read_at};
use crate::store::ledger::Sessions;
use crate::store::place::Root;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};

/// How far back sessions are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Period {
    All,
    Last(SignedDuration),
}

/// The longest period, in days: more is a mistake.
const LONGEST_DAYS: i64 = 36_500;

impl std::str::FromStr for Period {
    type Err = Error;

    fn from_str(text: &str) -> Result<Period> {
        let wrong = || {
            Error::usage(format!("option \"--past\": \"{}\" is not a period", one_line(text, 40)))
                .hint("write a number and d, h or w, like 30d, 12h or 2w; or all")
        };
        if text == "all" {
            return Ok(Period::All);
        }
        let unit = text.chars().last().ok_or_else(wrong)?;
        let hours = match unit {
            'h' => 1,
            'd' => 24,
            'w' => 7 * 24,
            _ => return Err(wrong()),
        };
        let digits = &text[..text.len() - unit.len_utf8()];
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse::<i64>().ok().filter(|number| is_number && *number > 0);
        let hours = number.and_then(|number| number.checked_mul(hours)).ok_or_else(wrong)?;
        match hours <= LONGEST_DAYS * 24 {
            true => Ok(Period::Last(SignedDuration::from_hours(hours))),
            false => Err(wrong()),
        }
    }
}

/// A session of a person that can be queued.
#[derive(Debug)]
pub(crate) struct PastSession {
    pub(crate) harness: Harness,
    pub(crate) retrieval: Retrieval,
    pub(crate) context: Context,
    /// When it last changed.
    pub(crate) at: Timestamp,
    /// What it takes on disk, in bytes.
    pub(crate) bytes: u64,
    /// What of it a model is shown, in bytes, about.
    pub(crate) shown: usize,
}

impl PastSession {
    pub(crate) fn entry(&self, timestamp: Timestamp) -> QueueEntry {
        let context = Context { past: true, ..self.context.clone() };
        let (harness, retrieval) = (self.harness, self.retrieval.clone());
        QueueEntry { version: 1, timestamp, harness, retrieval, context }
    }

    /// Where it is kept: a path, or its id.
    pub(crate) fn place(&self) -> String {
        match &self.retrieval {
            Retrieval::Transcript { path, .. }
            | Retrieval::CursorSession { session_path: path }
            | Retrieval::File { path } => path.display().to_string(),
            _ => self.entry(self.at).thread_id().unwrap_or_default().to_owned(),
        }
    }
}

/// Why a session is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LeftOut {
    Consumed,
    Waiting,
    Failed,
    SubAgent,
    Ours,
    Silent,
    Unreadable,
}

impl LeftOut {
    /// The key in JSON.
    pub(crate) fn key(self) -> &'static str {
        match self {
            LeftOut::Consumed => "consumed",
            LeftOut::Waiting => "waiting",
            LeftOut::Failed => "failed",
            LeftOut::SubAgent => "subAgent",
            LeftOut::Ours => "ours",
            LeftOut::Silent => "silent",
            LeftOut::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LeftOut::Consumed => "consumed already",
            LeftOut::Waiting => "in the queue already",
            LeftOut::Failed => "in inbox/.failed",
            LeftOut::SubAgent => "of sub-agents",
            LeftOut::Ours => "of the memory programs themselves",
            LeftOut::Silent => "without a word of a person",
            LeftOut::Unreadable => "unreadable",
        })
    }
}

#[derive(Debug, Default)]
pub(crate) struct Past {
    /// The oldest first.
    pub(crate) sessions: Vec<PastSession>,
    pub(crate) left_out: BTreeMap<LeftOut, usize>,
    /// What could not be read, and why.
    pub(crate) unreadable: Vec<String>,
}

/// What is looked for.
pub(crate) struct Search<'a> {
    pub(crate) period: Period,
    pub(crate) only: Option<Harness>,
    pub(crate) root: &'a Root,
    pub(crate) config: &'a MemoryConfig,
    pub(crate) env: &'a Env,
}

/// A session that was found, or why it is none that is to be queued.
type Seen = std::result::Result<PastSession, LeftOut>;

impl Search<'_> {
    pub(crate) fn run(&self) -> Result<Past> {
        let known = Known::load(self.root)?;
        let mut past = Past::default();
        // A session that was resumed may have two files; the larger one has all of it.
        let mut found: HashMap<(Harness, String), PastSession> = HashMap::new();
        let mut unreadable = Vec::new();
        let mut take = |seen: Seen| match seen {
            Err(why) => *past.left_out.entry(why).or_default() += 1,
            Ok(session) => {
                let id = session.entry(session.at).thread_id().unwrap_or_default().to_owned();
                let key = (session.harness, id);
                if found.get(&key).is_none_or(|other| other.shown < session.shown) {
                    found.insert(key, session);
                }
            }
        };
        for file in places::files(self.only, self.env) {
            let Ok(at) = Timestamp::try_from(file.changed) else { continue };
            if self.is_within(at) {
                take(self.session(&file, at, &known, &mut unreadable));
            }
        }
        let is_wanted = |name: &str| self.only.is_none_or(|only| only.name() == name);
        if is_wanted("opencode") {
            self.opencode(&known, &mut take, &mut unreadable);
        }
        if is_wanted("amp") {
            self.amp(&known, &mut take);
        }
        past.unreadable = unreadable;
        past.sessions = found.into_values().collect();
        past.sessions.sort_by_cached_key(|session| (session.at, session.place()));
        Ok(past)
    }

    fn is_within(&self, at: Timestamp) -> bool {
        match self.period {
            Period::All => true,
            Period::Last(period) => self.env.now().duration_since(at) <= period,
        }
    }

    /// The session in a file.
    fn session(
        &self,
        file: &SessionFile,
        at: Timestamp,
        known: &Known,
        unreadable: &mut Vec<String>,
    ) -> Seen {
        let (harness, path) = (file.harness, file.path.clone());
        let Some(format) = Format::from_name(harness.name()) else { return Err(LeftOut::Unreadable) };
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        // Most sessions on a machine are known. Where the file's name tells that, it is not read.
        let retrieval = |session_id: String| match harness {
            Harness::Cursor => Retrieval::CursorSession { session_path: path.clone() },
            _ => Retrieval::Transcript { path: path.clone(), format: harness, session_id },
        };
        let of = |id: &str| {
            let (retrieval, context) = (retrieval(id.to_owned()), Context::default());
            QueueEntry { version: 1, timestamp: at, harness, retrieval, context }
        };
        known.of(&of(&stem)).map_or(Ok(()), Err)?;
        let read = read(format, &path).map_err(|error| {
            unreadable.push(error.line());
            LeftOut::Unreadable
        })?;
        let id = read.session_id.filter(|id| id_fault(id).is_none()).unwrap_or(stem);
        if id_fault(&id).is_some() {
            return Err(LeftOut::Unreadable);
        }
        let entry = of(&id);
        known.of(&entry).map_or(Ok(()), Err)?;
        if read.is_sub_agent {
            return Err(LeftOut::SubAgent);
        }
        let cwd = read.cwd.map(PathBuf::from).or_else(|| match harness {
            Harness::Gemini => gemini_project(&path),
            _ => None,
        });
        if read.is_ours || cwd.as_deref().is_some_and(was_for_a_command) {
            return Err(LeftOut::Ours);
        }
        if !read.has_person {
            return Err(LeftOut::Silent);
        }
        let mut context = context(cwd);
        // The directory may be gone; Codex has kept what it was a checkout of.
        if context.repo.is_none() && harness == Harness::Codex {
            context.repo = rollout::remote(&path).and_then(|url| name_of_url(&url));
        }
        let session = PastSession {
            harness,
            retrieval: entry.retrieval,
            context,
            at,
            bytes: file.bytes,
            shown: read.shown,
        };
        // What the queue would refuse is no session that can be had.
        session.entry(at).check().map_err(|_| LeftOut::Unreadable)?;
        Ok(session)
    }

    /// opencode keeps its sessions in a database, which it is asked for.
    fn opencode(&self, known: &Known, take: &mut impl FnMut(Seen), unreadable: &mut Vec<String>) {
        let Ok(data) = self.env.xdg_data() else { return };
        if !data.join("opencode/opencode.db").is_file() {
            return;
        }
        match opencode_sessions(self.config, &data) {
            Ok(rows) => {
                for row in rows {
                    let at = Timestamp::from_millisecond(row.time_updated).unwrap_or(Timestamp::UNIX_EPOCH);
                    if self.is_within(at) {
                        take(row.session(at, known));
                    }
                }
            }
            Err(error) => {
                unreadable.push(format!("opencode's sessions are left out: {}", error.line()));
            }
        }
    }

    /// Amp's threads are kept on its server. Some versions keep copies of them here, which tell the ids.
    fn amp(&self, known: &Known, take: &mut impl FnMut(Seen)) {
        let Ok(data) = self.env.xdg_data() else { return };
        let Ok(threads) = fs_err::read_dir(data.join("amp/threads")) else { return };
        for path in threads.filter_map(std::result::Result::ok).map(|thread| thread.path()) {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let is_thread = stem.starts_with("T-") && path.extension().is_some_and(|end| end == "json");
            let Some(metadata) = path.metadata().ok().filter(|file| is_thread && file.is_file()) else {
                continue;
            };
            let Some(at) = metadata.modified().ok().and_then(|at| Timestamp::try_from(at).ok()) else {
                continue;
            };
            if self.is_within(at) {
                take(amp_thread(&path, stem, at, metadata.len(), known));
            }
        }
    }
}

/// What a file says about its session.
struct ReadSession {
    session_id: Option<String>,
    cwd: Option<String>,
    is_sub_agent: bool,
    is_ours: bool,
    has_person: bool,
    shown: usize,
}

/// What stands around a turn in a prompt takes so many bytes, about, and what is shown of a tool's output at most.
const AROUND_TURN: usize = 90;
const SHOWN_OUTPUT: usize = 2500;

fn read(format: Format, path: &Path) -> Result<ReadSession> {
    let (mut has_person, mut is_ours, mut shown) = (false, false, 0);
    let report = harness::read(format, path, &mut |turn: Turn| {
        if turn.role == Role::User && !std::mem::replace(&mut has_person, true) {
            is_ours = bears_an_id(&turn.text);
        }
        let output = turn.output.map_or(0, |at| turn.text.len() - at);
        let input = turn.brief.as_ref().map_or(turn.text.len() - output, String::len);
        shown += input + output.min(SHOWN_OUTPUT) + AROUND_TURN;
        Ok(())
    })?;
    let (session_id, cwd, is_sub_agent) = (report.session_id, report.cwd, report.is_sub_agent);
    Ok(ReadSession { session_id, cwd, is_sub_agent, is_ours, has_person, shown })
}

/// Gemini CLI keeps the directory of a project beside its sessions.
fn gemini_project(session: &Path) -> Option<PathBuf> {
    let file = session.parent()?.parent()?.join(".project_root");
    let text = String::from_utf8(crate::base::file::read(&file, 8 << 10).ok()?).ok()?;
    Some(PathBuf::from(text.trim_end_matches(['\r', '\n'])))
}

/// The empty directory of an LLM command of ours, which is removed after the call.
fn was_for_a_command(cwd: &Path) -> bool {
    let name = cwd.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_temporary = name
        .strip_prefix(".tmp")
        .is_some_and(|rest| rest.len() == 6 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    is_temporary && !cwd.exists()
}

/// What `opencode db` prints of a session.
#[derive(Deserialize)]
struct OpencodeRow {
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

fn opencode_sessions(config: &MemoryConfig, dir: &Path) -> Result<Vec<OpencodeRow>> {
    let command = config.harnesses.get("opencode").map_or("", |known| known.read_command.as_str());
    let program = shlex::split(command).and_then(|words| words.into_iter().next());
    let program = program.unwrap_or_else(|| "opencode".to_owned());
    let words: Vec<String> = [program.as_str(), "db", QUERY, "--format", "json"].map(str::to_owned).into();
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

impl OpencodeRow {
    fn session(self, at: Timestamp, known: &Known) -> Seen {
        if id_fault(&self.id).is_some() {
            return Err(LeftOut::Unreadable);
        }
        let bytes = self.bytes.unwrap_or_default();
        let session = PastSession {
            harness: Harness::Opencode,
            retrieval: Retrieval::OpencodeSession { thread_id: self.id },
            context: Context::default(),
            at,
            bytes,
            shown: usize::try_from(bytes).unwrap_or(usize::MAX),
        };
        known.of(&session.entry(at)).map_or(Ok(()), Err)?;
        if self.parent_id.is_some() {
            return Err(LeftOut::SubAgent);
        }
        let cwd = self.directory.map(PathBuf::from);
        if self.first.is_some_and(|text| bears_an_id(&text)) || cwd.as_deref().is_some_and(was_for_a_command)
        {
            return Err(LeftOut::Ours);
        }
        match bytes {
            0 => Err(LeftOut::Silent),
            _ => Ok(PastSession { context: context(cwd), ..session }),
        }
    }
}

/// What a copy of a thread says about it.
fn amp_thread(path: &Path, id: &str, at: Timestamp, bytes: u64, known: &Known) -> Seen {
    /// The largest copy that is read, in bytes.
    const CAP: u64 = 64 << 20;
    if id_fault(id).is_some() {
        return Err(LeftOut::Unreadable);
    }
    let session = PastSession {
        harness: Harness::Amp,
        retrieval: Retrieval::AmpThread { thread_id: id.to_owned() },
        context: Context::default(),
        at,
        bytes,
        shown: usize::try_from(bytes).unwrap_or(usize::MAX),
    };
    known.of(&session.entry(at)).map_or(Ok(()), Err)?;
    let text = crate::base::file::read(path, CAP).map_err(|_| LeftOut::Unreadable)?;
    let thread: serde_json::Value = serde_json::from_slice(&text).map_err(|_| LeftOut::Unreadable)?;
    let first = thread["messages"].as_array().and_then(|all| {
        all.iter().find(|message| message["role"] == "user").map(|message| message["content"].to_string())
    });
    let Some(first) = first else { return Err(LeftOut::Silent) };
    let tree =
        thread["env"]["initial"]["trees"][0]["uri"].as_str().and_then(|uri| uri.strip_prefix("file://"));
    let cwd = tree.map(PathBuf::from);
    if bears_an_id(&first) || cwd.as_deref().is_some_and(was_for_a_command) {
        return Err(LeftOut::Ours);
    }
    Ok(PastSession { context: context(cwd), ..session })
}

/// What the store knows of sessions already.
struct Known {
    consumed: Sessions,
    /// The entries in the queue and around it, by the mark in their names that all entries for a session share.
    entries: HashMap<String, Vec<(PathBuf, LeftOut)>>,
}

impl Known {
    fn load(root: &Root) -> Result<Known> {
        let inbox = root.inbox();
        let mut dirs = vec![
            (inbox.join(".processed"), LeftOut::Consumed),
            (inbox.join(".failed"), LeftOut::Failed),
            (inbox, LeftOut::Waiting),
        ];
        for batch in Batches::of_queue(root).all()? {
            dirs.push((batch.claims(), LeftOut::Waiting));
        }
        let mut entries: HashMap<String, Vec<(PathBuf, LeftOut)>> = HashMap::new();
        for (dir, why) in dirs {
            for id in Journal::ids_in(&dir)? {
                // `<time>_<harness>_<8 characters>`
                let mark = id.rsplit('_').next().and_then(|random| random.get(..4)).map(str::to_owned);
                if let Some(mark) = mark {
                    entries.entry(mark).or_default().push((dir.join(format!("{id}.json")), why));
                }
            }
        }
        Ok(Known { consumed: Sessions::load(root)?, entries })
    }

    /// Why a session is not queued again, if it is not.
    fn of(&self, entry: &QueueEntry) -> Option<LeftOut> {
        let session = entry.session()?;
        let key = format!("{}:{}", entry.harness, entry.thread_id().unwrap_or_default());
        if self.consumed.get(&key).is_some() {
            return Some(LeftOut::Consumed);
        }
        let same = self.entries.get(&session_mark(&session))?.iter().filter(|(path, _)| {
            matches!(read_at(path), Read::Entry(entry) if entry.session().as_ref() == Some(&session))
        });
        // What waits will be read, whatever became of it before.
        same.map(|(_, why)| *why).max_by_key(|why| *why == LeftOut::Waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_a_number_and_a_unit() {
        let hours = |hours| Period::Last(SignedDuration::from_hours(hours));
        for (text, period) in
            [("30d", hours(720)), ("12h", hours(12)), ("2w", hours(336)), ("all", Period::All)]
        {
            assert_eq!(text.parse::<Period>().unwrap(), period, "{text}");
        }
        for text in [
            "", "d", "30", "30m", "-1d", "+1d", "0d", "1.5d", "30 d", "ALL", "99999999999999999999d",
            "999999w", "3ä",
        ] {
            let error = text.parse::<Period>().unwrap_err();
            assert!(error.line().contains("is not a period"), "{text}: {}", error.line());
        }
    }

    #[test]
    fn only_a_directory_of_a_command_that_is_gone_is_ours() {
        for (path, is_ours) in [
            ("/tmp/.tmpAb12Cd", true),
            ("/tmp/.tmpAb12Cd/work", false),
            ("/tmp/.tmpAb12", false),
            ("/home/u/project", false),
            ("/", false),
        ] {
            assert_eq!(was_for_a_command(Path::new(path)), is_ours, "{path}");
        }
    }
}
