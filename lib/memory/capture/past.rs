//! The sessions that lie on this machine already (`memory-capture --past`): which of them are a person's, and neither
//! consumed nor queued.

use crate::base::command_line::program;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::repository::name_of_url;
use crate::base::text::one_line;
use crate::config::memory::MemoryConfig;
use crate::harness::files::matching;
use crate::harness::name::Harness;
use crate::harness::payload::id_fault;
use crate::harness::spec::{Home, PastSource, Spec, Stored};
use crate::harness::turn::{Role, Turn};
use crate::harness::{self, built_in};
use crate::memory::capture::known::{KnownSessions, LeftOut};
use crate::memory::capture::memories::{context_of, unread};
use crate::memory::capture::{context, note::redact};
use crate::memory::hash::hash;
use crate::store::batch::bears_an_id;
use crate::store::journal::entry::{CaptureContext, QueueEntry, Retrieval};
use crate::store::journal::{Journal, QueuedEntry};
use crate::store::place::Root;
use jiff::{SignedDuration, Span, Timestamp};
use std::collections::{BTreeMap, HashMap};
use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// How far back sessions are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    All,
    Last(SignedDuration),
    /// After the first, and up to the second.
    Between(Timestamp, Timestamp),
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
        let mut units = [("h", 1), ("d", 24), ("w", 7 * 24)].into_iter();
        let hours = units.find_map(|(unit, hours)| {
            let digits =
                text.strip_suffix(unit).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))?;
            digits
                .parse::<i64>()
                .ok()?
                .checked_mul(hours)
                .filter(|hours| (1..=LONGEST_DAYS * 24).contains(hours))
        });
        Ok(Period::Last(SignedDuration::from_hours(hours.ok_or_else(wrong)?)))
    }
}

/// A session of a person that can be queued.
#[derive(Debug)]
pub struct PastSession {
    pub harness: Harness,
    retrieval: Retrieval,
    pub context: CaptureContext,
    /// When it last changed.
    pub at: Timestamp,
    /// What it takes on disk, in bytes.
    pub bytes: u64,
    /// What of it a model is shown, in bytes, about.
    pub shown: usize,
}

impl PastSession {
    /// One that its program prints, as far as it is known so far.
    fn by_id(spec: &Spec, id: &str, at: Timestamp, bytes: u64) -> PastSession {
        let harness = Harness::of(spec);
        let retrieval = Retrieval::by_id(harness, id.to_owned());
        let shown = usize::try_from(bytes).unwrap_or(usize::MAX);
        PastSession { harness, retrieval, context: CaptureContext::default(), at, bytes, shown }
    }

    pub fn entry(&self, timestamp: Timestamp) -> QueueEntry {
        let context = self.context.clone();
        let (harness, retrieval) = (self.harness, self.retrieval.clone());
        QueueEntry { version: 1, timestamp, harness, retrieval, context }
    }

    /// What the queue would refuse is no session that can be had.
    fn checked(self) -> SeenSession {
        self.entry(self.at).check().map_err(|_| LeftOut::Unreadable)?;
        Ok(self)
    }

    /// It is a file of the program's own memory.
    pub fn is_memory(&self) -> bool {
        matches!(self.retrieval, Retrieval::MemoryFile { .. })
    }

    /// Where it is kept: a path, or its id.
    pub fn place(&self) -> String {
        match &self.retrieval {
            Retrieval::Transcript { path, .. }
            | Retrieval::CursorSession { session_path: path }
            | Retrieval::File { path }
            | Retrieval::MemoryFile { path } => path.display().to_string(),
            _ => self.entry(self.at).thread_id().unwrap_or_default().to_owned(),
        }
    }
}

#[derive(Debug, Default)]
pub struct PastSessions {
    /// The oldest first.
    pub sessions: Vec<PastSession>,
    pub left_out: BTreeMap<LeftOut, usize>,
    /// What could not be read, and why.
    pub unreadable: Vec<String>,
}

/// What is looked for.
pub struct PastSearch<'a> {
    pub period: Period,
    pub harnesses: &'a [&'static Spec],
    pub has_sessions: bool,
    /// The memories that programs keep by themselves.
    pub has_memories: bool,
    pub root: &'a Root,
    pub config: &'a MemoryConfig,
    pub env: &'a Env,
}

/// A session that was found, or why it is none that is to be queued.
type SeenSession = std::result::Result<PastSession, LeftOut>;

impl PastSessions {
    /// Queues them, each a millisecond later than the one before, so that they keep their order, and hands each to `told`.
    /// `is_past`: they wait until nothing new does.
    pub fn queue(
        &self,
        is_past: bool,
        search: &PastSearch,
        mut told: impl FnMut(&QueuedEntry) -> Result<()>,
    ) -> Result<()> {
        let journal = Journal::at(search.root);
        let mut at = search.env.now();
        for session in &self.sessions {
            let mut entry = session.entry(at);
            entry.context.past = is_past;
            redact(&mut entry, &search.config.redact)?;
            // A hook may have queued it meanwhile.
            if let (queued, true) = journal.put(&entry)? {
                told(&queued)?;
            }
            at = at.checked_add(Span::new().milliseconds(1)).unwrap_or(at);
        }
        Ok(())
    }
}

impl PastSearch<'_> {
    pub fn run(&self) -> Result<PastSessions> {
        let known = &KnownSessions::load(self.root)?;
        let mut past = PastSessions::default();
        // A session that was resumed may have two files; the larger one has all of it.
        let mut found: HashMap<(Harness, String), PastSession> = HashMap::new();
        for spec in self.harnesses {
            let sessions = self.has_sessions.then(|| self.of_program(spec, known, &mut past.unreadable));
            let memories = self.has_memories.then(|| self.remembered(spec, known));
            for seen in sessions.into_iter().chain(memories).flatten() {
                match seen {
                    Err(why) => *past.left_out.entry(why).or_default() += 1,
                    Ok(session) => {
                        let id = session.entry(session.at).thread_id().map(str::to_owned);
                        let key = (session.harness, id.unwrap_or_else(|| session.place()));
                        if found.get(&key).is_none_or(|other| other.shown < session.shown) {
                            found.insert(key, session);
                        }
                    }
                }
            }
        }
        past.sessions = found.into_values().collect();
        past.sessions.sort_by_cached_key(|session| (session.at, session.place()));
        Ok(past)
    }

    fn of_program(
        &self,
        spec: &Spec,
        known: &KnownSessions,
        unreadable: &mut Vec<String>,
    ) -> Vec<SeenSession> {
        match &spec.past {
            PastSource::Files(home, patterns) => {
                let files = patterns.iter().flat_map(|pattern| self.files(home, pattern));
                files.map(|file| self.in_file(spec, &file, known, unreadable)).collect()
            }
            PastSource::Copies(home, pattern, copied) => {
                let files = self.files(home, pattern).into_iter();
                let copy = |file: SessionFile| {
                    let session = PastSession::by_id(spec, file.stem(), file.at, file.bytes);
                    kept_elsewhere(session, known, || copied(&file.path).ok_or(LeftOut::Unreadable))
                };
                files.map(copy).collect()
            }
            PastSource::Asked(home, sign, stored) => {
                let dir = home.dir(self.env).filter(|dir| dir.join(sign).is_file());
                let all = dir.map_or(Ok(Vec::new()), |dir| stored(&self.program(spec), &dir));
                let all = all.unwrap_or_else(|error| {
                    unreadable.push(format!("{}'s sessions are left out: {}", spec.title, error.line()));
                    Vec::new()
                });
                let session = |one: Stored| {
                    let at = Timestamp::from_millisecond(one.changed).unwrap_or(Timestamp::UNIX_EPOCH);
                    let session = PastSession::by_id(spec, &one.id, at, one.bytes.unwrap_or_default());
                    self.is_within(at).then(|| kept_elsewhere(session, known, || Ok(one)))
                };
                all.into_iter().filter_map(session).collect()
            }
        }
    }

    /// The files of the program's own memory, each with what is new in it.
    fn remembered(&self, spec: &Spec, known: &KnownSessions) -> Vec<SeenSession> {
        let Some(memory) = &spec.memory else { return Vec::new() };
        let files = self.within(built_in::files(memory, self.env));
        let seen = |file: SessionFile| {
            let retrieval = Retrieval::MemoryFile { path: file.path.clone() };
            let session = PastSession { retrieval, ..PastSession::by_id(spec, "", file.at, file.bytes) };
            let entry = session.entry(file.at);
            // It was read before, and may have more now.
            known.left_out(&entry, true)?;
            let (shown, _) = unread(&entry, &file.path, &known.consumed).map_err(|_| LeftOut::Unreadable)?;
            if shown == 0 {
                return Err(LeftOut::Consumed);
            }
            let context = context_of(memory, &file.path, self.env);
            PastSession { shown, context, ..session }.checked()
        };
        files.into_iter().filter(|file| file.bytes > 0).map(seen).collect()
    }

    /// The files of a pattern that changed within the period.
    fn files(&self, home: &Home, pattern: &str) -> Vec<SessionFile> {
        self.within(home.dir(self.env).map(|dir| matching(dir, pattern)).unwrap_or_default())
    }

    /// Of these files those that changed within it.
    fn within(&self, paths: Vec<PathBuf>) -> Vec<SessionFile> {
        let file = |path: PathBuf| {
            let metadata = path.metadata().ok().filter(Metadata::is_file)?;
            let at = Timestamp::try_from(metadata.modified().ok()?).ok()?;
            self.is_within(at).then_some(SessionFile { path, bytes: metadata.len(), at })
        };
        paths.into_iter().filter_map(file).collect()
    }

    /// The program that reads a session.
    fn program(&self, spec: &Spec) -> String {
        let command = self.config.harnesses.get(spec.name).map_or("", |known| known.read_command.as_str());
        program(command).unwrap_or_else(|| spec.name.to_owned())
    }

    fn is_within(&self, at: Timestamp) -> bool {
        match self.period {
            Period::All => true,
            Period::Last(period) => self.env.now().duration_since(at) <= period,
            Period::Between(since, until) => since < at && at <= until,
        }
    }

    /// The session in a file.
    fn in_file(
        &self,
        spec: &Spec,
        file: &SessionFile,
        known: &KnownSessions,
        unreadable: &mut Vec<String>,
    ) -> SeenSession {
        let of = |id: &str| {
            let retrieval = Retrieval::in_file(Harness::of(spec), file.path.clone(), id.to_owned());
            PastSession { retrieval, ..PastSession::by_id(spec, id, file.at, file.bytes) }
        };
        // Between two times, one that was consumed may have gone on after that.
        let may_go_on = matches!(self.period, Period::Between(..));
        // Most sessions on a machine are known. Where the file's name tells that, it is not read.
        known.left_out(&of(file.stem()).entry(file.at), may_go_on)?;
        let (mut first, mut last, mut shown) = (None, String::new(), 0);
        let report = harness::read(&spec.format, &file.path, &mut |turn: Turn| {
            let output = turn.output.map_or(0, |at| turn.text.len() - at);
            let input = turn.brief.as_ref().map_or(turn.text.len() - output, String::len);
            last = turn.id;
            shown += input + output.min(SHOWN_OUTPUT) + AROUND_TURN;
            if turn.role == Role::User && first.is_none() {
                first = Some(turn.text);
            }
            Ok(())
        });
        let report = report.map_err(|error| {
            unreadable.push(error.line());
            LeftOut::Unreadable
        })?;
        let id = report.session_id.as_deref().filter(|id| id_fault(id).is_none());
        let session = PastSession { shown, ..of(id.unwrap_or(file.stem())) };
        let entry = session.entry(session.at);
        known.left_out(&entry, may_go_on && !known.was_read_to(&entry, &hash(&last)))?;
        persons(session, report.is_sub_agent, first, report.cwd, report.remote)
    }
}

/// A session that its program prints.
fn kept_elsewhere(
    session: PastSession,
    known: &KnownSessions,
    stored: impl FnOnce() -> std::result::Result<Stored, LeftOut>,
) -> SeenSession {
    known.left_out(&session.entry(session.at), false)?;
    let Stored { parent, cwd, first, .. } = stored()?;
    persons(session, parent.is_some(), first, cwd, None)
}

/// The session with its context, if it is a person's. `first` is what they typed first.
fn persons(
    session: PastSession,
    is_sub_agent: bool,
    first: Option<String>,
    cwd: Option<String>,
    remote: Option<String>,
) -> SeenSession {
    let cwd = cwd.map(PathBuf::from);
    if is_sub_agent {
        return Err(LeftOut::SubAgent);
    }
    if first.as_deref().is_some_and(bears_an_id) || cwd.as_deref().is_some_and(was_for_a_command) {
        return Err(LeftOut::Ours);
    }
    if first.is_none() {
        return Err(LeftOut::Silent);
    }
    let mut context = context(cwd);
    // The directory may be gone, and the session may say what it was a checkout of.
    context.repo = context.repo.or_else(|| name_of_url(&remote?));
    PastSession { context, ..session }.checked()
}

/// A file that may be a session.
struct SessionFile {
    path: PathBuf,
    bytes: u64,
    /// When it was last written to.
    at: Timestamp,
}

impl SessionFile {
    fn stem(&self) -> &str {
        self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
    }
}

/// What stands around a turn in a prompt takes so many bytes, about, and what is shown of a tool's output at most.
const AROUND_TURN: usize = 90;
const SHOWN_OUTPUT: usize = 2500;

/// The empty directory of an LLM command of ours, which is removed after the call.
fn was_for_a_command(cwd: &Path) -> bool {
    let letters = cwd.file_name().and_then(|name| name.to_str()?.strip_prefix(".tmp"));
    let is_random = |rest: &str| rest.len() == 6 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
    letters.is_some_and(is_random) && !cwd.exists()
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
