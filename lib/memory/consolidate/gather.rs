//! One entry's history: from the harness's own form to text that a model may see, in a file, turn by turn. Memory
//! does not grow with it.

use crate::config::memory::MemoryConfig;
use crate::ground::cli::Notes;
use crate::ground::deadline::Deadline;
use crate::ground::error::{Error, Result};
use crate::ground::exec::{self, Job, What};
use crate::ground::file;
use crate::ground::text::one_line;
use crate::harness::source::LINE_CAP;
use crate::harness::turn::{Role, Turn};
use crate::harness::{self, Format};
use crate::memory::hash::hash;
use crate::memory::redact::Redactor;
use crate::store::batch::{Batch, bears_an_id};
use crate::store::journal::entry::{Harness, QueueEntry, Retrieval};
use crate::store::ledger::Sessions;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The largest transcript that a command may print, in bytes.
const COMMAND_CAP: usize = 256 << 20;
/// How long such a command may take, in seconds.
const COMMAND_PATIENCE: u64 = 120;

/// What the text file of a history holds, and where its turns end.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct History {
    /// The session's name in the ledger; `None`: a note, or a file that is no session.
    pub(crate) session: Option<String>,
    pub(crate) parent: Option<String>,
    /// Where each turn ends in the text, in bytes.
    pub(crate) borders: Vec<usize>,
    /// Each turn's hash.
    pub(crate) marks: Vec<String>,
    /// Bytes that were left out of turns, each place marked.
    pub(crate) cut: usize,
}

impl History {
    pub(crate) fn bytes(&self) -> usize {
        self.borders.last().copied().unwrap_or(0)
    }
}

pub(crate) enum Gathered {
    History(History),
    /// There is nothing to ask about, for this reason.
    Nothing(String),
    /// It cannot be read: this entry's failed try.
    Unreadable(Error),
}

pub(crate) struct Gatherer<'a> {
    pub(crate) config: &'a MemoryConfig,
    pub(crate) redactor: &'a Redactor,
    pub(crate) sessions: &'a Sessions,
    pub(crate) notes: &'a Notes,
    /// What every command of ours gets in its environment.
    pub(crate) vars: Vec<(&'static str, std::ffi::OsString)>,
}

/// The name of the text of source number `index` in its batch.
pub(crate) fn text_name(index: usize) -> String {
    format!("history-{index}.txt")
}

/// The name of what is known about that text.
pub(crate) fn facts_name(index: usize) -> String {
    format!("history-{index}.json")
}

impl Gatherer<'_> {
    /// Reads the history of `entry` into the batch. An error is ours, and no entry's: the store cannot be written.
    pub(crate) fn gather(&self, entry: &QueueEntry, batch: &Batch, index: usize) -> Result<Gathered> {
        let raw = batch.file(&format!("raw-{index}"));
        let (format, path) = match &entry.retrieval {
            Retrieval::Inline { title, body, tags, .. } => {
                let text = format!(
                    "A note that a person wrote. File it, at least as it is.\ntitle: {title}\ntags: {}\n\n{body}\n",
                    tags.join(" ")
                );
                let text = self.redactor.cleaned(&text);
                batch.write(&text_name(index), text.as_bytes())?;
                let history =
                    History { borders: vec![text.len()], marks: vec![hash(&text)], ..History::default() };
                return Ok(Gathered::History(history));
            }
            Retrieval::AmpThread { thread_id } => {
                if let Err(why) = self.run_read_command(Harness::Amp, thread_id, batch, &raw)? {
                    return Ok(Gathered::Unreadable(why));
                }
                (Format::AmpMarkdown, raw.clone())
            }
            Retrieval::OpencodeSession { thread_id } => {
                if let Err(why) = self.run_read_command(Harness::Opencode, thread_id, batch, &raw)? {
                    return Ok(Gathered::Unreadable(why));
                }
                (Format::OpencodeExport, raw.clone())
            }
            Retrieval::Transcript { path, format, .. } => match Format::from_name(format.name()) {
                Some(known) => (known, path.clone()),
                None => {
                    let why = Error::io(format!("transcripts of {format} are unknown"));
                    return Ok(Gathered::Unreadable(why));
                }
            },
            Retrieval::CursorSession { session_path } => (Format::Cursor, session_path.clone()),
            Retrieval::File { path } => (Format::Plain, path.clone()),
        };
        let gathered = self.read(format, &path, entry, batch, index);
        // Nothing of a session lies about unredacted.
        if raw.exists() {
            file::remove(&raw).map_err(|e| Error::io(e.to_string()))?;
        }
        gathered
    }

    /// Has the harness print a session. The inner error is the session's or the command's.
    fn run_read_command(
        &self,
        harness: Harness,
        thread_id: &str,
        batch: &Batch,
        into: &Path,
    ) -> Result<Result<()>> {
        let command =
            self.config.harnesses.get(harness.name()).map_or("", |known| known.read_command.as_str());
        let words: Vec<String> = shlex::split(command)
            .unwrap_or_default()
            .iter()
            .map(|word| word.replace("{threadId}", thread_id))
            .collect();
        let failed = |why: String| {
            Error::io(format!("the session {thread_id} of {harness} cannot be read: {why}"))
                .hint(format!("see harnesses.{harness}.readCommand in: memory-config show"))
        };
        let Some(program) = words.first() else {
            return Ok(Err(failed("no command is configured".to_owned())));
        };
        let file = file::scratch(into).map_err(|e| Error::io(e.to_string()))?;
        let finished = exec::run(Job {
            what: What::Words(&words),
            input: Vec::new(),
            dir: &batch.dir,
            vars: self.vars.clone(),
            without: Vec::new(),
            is_heard: false,
            stdout_file: Some(&file),
            stdout_cap: COMMAND_CAP,
            deadline: Deadline::after_seconds(COMMAND_PATIENCE),
            level: 0,
        });
        Ok(match finished {
            Ok(finished) if finished.status.success() => Ok(()),
            Ok(finished) => {
                let how = exec::how_it_ended(finished.status);
                let last = one_line(&self.redactor.redact(&finished.last_line).text, 300);
                Err(failed(format!("\"{program}\" failed ({how}): {last}")))
            }
            Err(fault) => Err(failed(format!("\"{program}\" {fault}"))),
        })
    }

    fn read(
        &self,
        format: Format,
        path: &Path,
        entry: &QueueEntry,
        batch: &Batch,
        index: usize,
    ) -> Result<Gathered> {
        let whole = batch.file(&format!("whole-{index}"));
        let failed = |e: io::Error| Error::io(e.to_string());
        let mut text = BufWriter::new(file::scratch(&whole).map_err(failed)?);
        let mut turns: Vec<Seen> = Vec::new();
        let mut end = 0;
        let mut is_first_prompt = true;
        let mut is_ours = false;
        let mut is_unwritten = false;
        let read = harness::read(format, path, &mut |turn: Turn| {
            if turn.role == Role::User && std::mem::take(&mut is_first_prompt) {
                is_ours = bears_an_id(&turn.text);
            }
            let shown = self.shown(&turn);
            text.write_all(shown.as_bytes()).map_err(|e| {
                is_unwritten = true;
                failed(e)
            })?;
            end += shown.len();
            turns.push(Seen { end, mark: hash(&turn.id), cut: turn.cut });
            Ok(())
        });
        let report = match read {
            Ok(report) => report,
            Err(error) if is_unwritten => return Err(error),
            Err(error) => return Ok(Gathered::Unreadable(error)),
        };
        text.flush().map_err(failed)?;
        drop(text);
        if report.too_long > 0 {
            let (lines, cap) = (report.too_long, LINE_CAP >> 20);
            let lines = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
            self.notes.warn(&format!("\"{}\": {lines} of more than {cap} MiB left out", path.display()));
        }
        if is_ours {
            return Ok(Gathered::Nothing("a session of the memory programs themselves".to_owned()));
        }
        if report.is_sub_agent {
            return Ok(Gathered::Nothing(
                "the session of a sub-agent; its report is in the main session".to_owned(),
            ));
        }
        let key = session_key(entry);
        let parent = report.parent.as_ref().map(|parent| format!("{}:{parent}", entry.harness));
        let fresh = self.fresh(&turns, key.as_deref(), parent.as_deref());
        if fresh.is_empty() {
            let why = if turns.is_empty() { "nothing was said in it" } else { "nothing new was said in it" };
            return Ok(Gathered::Nothing(why.to_owned()));
        }
        let mut history = History { session: key, parent, ..History::default() };
        copy_turns(&whole, &batch.file(&text_name(index)), &turns, &fresh, &mut history).map_err(failed)?;
        file::remove(&whole).map_err(failed)?;
        Ok(Gathered::History(history))
    }

    /// A turn as the model sees it.
    fn shown(&self, turn: &Turn) -> String {
        let mut shown = String::with_capacity(turn.text.len() + 40);
        match turn.at {
            Some(at) => {
                let _ = writeln!(shown, "[{} {}]", turn.role, at.strftime("%Y-%m-%d %H:%M"));
            }
            None => {
                let _ = writeln!(shown, "[{}]", turn.role);
            }
        }
        shown.push_str(self.redactor.redact(&turn.text).text.trim_end());
        shown.push_str("\n\n");
        shown
    }

    /// Which turns nobody has seen yet: those after the last one that was read, and of these not those that the
    /// session shares with its kin.
    fn fresh(&self, turns: &[Seen], key: Option<&str>, parent: Option<&str>) -> Vec<usize> {
        let Some(key) = key else { return (0..turns.len()).collect() };
        let last = self.sessions.get(key).map(|session| session.last.as_str());
        let read =
            last.and_then(|last| turns.iter().rposition(|turn| turn.mark == last)).map_or(0, |at| at + 1);
        let shared: std::collections::BTreeSet<&str> =
            self.sessions.kin(key, parent).flat_map(|session| &session.marks).map(String::as_str).collect();
        (read..turns.len()).filter(|&index| !shared.contains(turns[index].mark.as_str())).collect()
    }
}

/// A turn in the text of all turns.
struct Seen {
    end: usize,
    mark: String,
    cut: usize,
}

/// The session's name in the ledger: the same wherever its file lies.
fn session_key(entry: &QueueEntry) -> Option<String> {
    match &entry.retrieval {
        Retrieval::Inline { .. } | Retrieval::File { .. } => None,
        _ => entry.thread_id().map(|id| format!("{}:{id}", entry.harness)),
    }
}

/// Copies the turns `wanted` from the text of all turns.
fn copy_turns(
    from: &Path,
    to: &Path,
    turns: &[Seen],
    wanted: &[usize],
    history: &mut History,
) -> io::Result<()> {
    let mut all = fs_err::File::open(from)?;
    let mut text = BufWriter::new(file::scratch(to)?);
    let mut end = 0;
    for &index in wanted {
        let start = index.checked_sub(1).map_or(0, |before| turns[before].end);
        let length = turns[index].end - start;
        all.seek(SeekFrom::Start(start as u64))?;
        io::copy(&mut (&mut all).take(length as u64), &mut text)?;
        end += length;
        history.borders.push(end);
        history.marks.push(turns[index].mark.clone());
        history.cut += turns[index].cut;
    }
    text.flush()?;
    text.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

/// A stretch of a text file, as text. Its ends are ends of turns or of characters.
pub(crate) fn slice(path: &Path, from: usize, to: usize) -> io::Result<String> {
    let mut file = fs_err::File::open(path)?;
    file.seek(SeekFrom::Start(from as u64))?;
    let mut bytes = Vec::new();
    file.take(to.saturating_sub(from) as u64).read_to_end(&mut bytes)?;
    Ok(crate::ground::text::lossy(bytes).0)
}

/// The last place at or before `at` where a line ends, or else a character, within a few kilobytes.
pub(crate) fn cut_at(path: &Path, at: usize) -> usize {
    let from = at.saturating_sub(4096);
    let mut bytes = Vec::new();
    let read = fs_err::File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::Start(from as u64))?;
        file.take((at - from + 1) as u64).read_to_end(&mut bytes)
    });
    if read.is_err() {
        return at;
    }
    let within = &bytes[..bytes.len().min(at - from)];
    if let Some(line) = memchr::memrchr(b'\n', within) {
        return from + line + 1;
    }
    // A byte that continues a character is no place to begin.
    let mut end = at - from;
    while end > 0 && bytes.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
        end -= 1;
    }
    from + end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::batch::Batches;
    use crate::store::place::Root;
    use serde_json::json;

    struct Bench {
        dir: tempfile::TempDir,
        config: MemoryConfig,
        redactor: Redactor,
        sessions: Sessions,
    }

    impl Bench {
        fn new() -> Bench {
            let dir = tempfile::tempdir().unwrap();
            Root::at(dir.path()).make().unwrap();
            let config = json!({
                "storage": {"root": dir.path(), "autoCommit": false, "commitHook": ""},
                "llm": {"command": null, "presets": {}, "timeoutSeconds": 1, "maxPromptBytes": 9, "maxReplyBytes": 9,
                    "maxCallsPerRun": 1, "maxCallsPerDay": 1},
                "schedule": {"consolidateIntervalHours": 2, "defragIntervalHours": 24},
                "agentsMd": {"targets": [], "maxHotTokens": 1, "maxWarm": 1},
                "harnesses": {}, "redact": {"enabled": true, "patterns": []},
            });
            let config = serde_json::from_value(config).unwrap();
            let redactor = Redactor::new(true, &[]).unwrap();
            Bench { dir, config, redactor, sessions: Sessions::default() }
        }

        /// What is new in a session with these turns; `None`: nothing, `Err`: it cannot be read.
        fn gather(&self, session: &str, lines: &[String]) -> Result<Option<(History, String)>, String> {
            let path = self.dir.path().join(format!("{session}.jsonl"));
            if !lines.is_empty() {
                file::install(&path, lines.concat().as_bytes(), 0o600).unwrap();
            }
            let entry = json!({"version": 1, "timestamp": "2026-02-28T12:00:00Z", "harness": "claude-code",
                "retrieval": {"method": "transcript", "path": path, "format": "claude-code", "sessionId": session},
                "context": {"cwd": "/w", "repo": null}});
            let entry = QueueEntry::parse(entry.to_string().as_bytes()).unwrap();
            let batch = Batches::of_queue(&Root::at(self.dir.path())).begin().unwrap();
            let gatherer = Gatherer {
                config: &self.config,
                redactor: &self.redactor,
                sessions: &self.sessions,
                notes: &Notes::new(false),
                vars: Vec::new(),
            };
            match gatherer.gather(&entry, &batch, 0).unwrap() {
                Gathered::History(history) => {
                    let text = slice(&batch.file(&text_name(0)), 0, history.bytes()).unwrap();
                    assert_eq!(text.len(), history.bytes());
                    assert!(!batch.file("whole-0").exists(), "the text of all turns is left");
                    Ok(Some((history, text)))
                }
                Gathered::Nothing(_) => Ok(None),
                Gathered::Unreadable(why) => Err(why.line()),
            }
        }

        /// The words of the turns that are new; takes note that they have been read.
        fn read(&mut self, session: &str, lines: &[String]) -> String {
            let Some((history, text)) = self.gather(session, lines).unwrap() else { return String::new() };
            let key = history.session.clone().unwrap();
            self.sessions.read(&key, history.parent.as_deref(), &history.marks);
            said(&text)
        }
    }

    /// The turns' texts, without their headings.
    fn said(text: &str) -> String {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('['));
        lines.collect::<Vec<_>>().join(" ")
    }

    fn turn(session: &str, first_said_in: &str, word: &str) -> String {
        let record = json!({"type": "user", "uuid": format!("u-{word}"), "sessionId": session,
            "requestSessionId": first_said_in, "cwd": "/w", "timestamp": "2026-02-28T10:00:00.000Z",
            "message": {"role": "user", "content": [{"type": "text", "text": word}]}});
        format!("{record}\n")
    }

    /// The turns of a session: each word is one, `parent:word` was said in another session first.
    fn turns(session: &str, words: &str) -> Vec<String> {
        let turn = |word: &str| match word.split_once(':') {
            Some((parent, word)) => turn(session, parent, word),
            None => turn(session, session, word),
        };
        words.split(' ').map(turn).collect()
    }

    #[test]
    fn a_session_that_goes_on_gives_what_is_new() {
        let mut bench = Bench::new();
        assert_eq!(bench.read("s", &turns("s", "a b")), "a b");
        assert_eq!(bench.read("s", &turns("s", "a b")), "");
        assert_eq!(bench.read("s", &turns("s", "a b c d")), "c d");
        assert_eq!(bench.read("s", &turns("s", "a b c d e")), "e");
    }

    #[test]
    fn a_session_that_was_rewound_is_read_anew() {
        let mut bench = Bench::new();
        assert_eq!(bench.read("s", &turns("s", "a b c")), "a b c");
        assert_eq!(bench.read("s", &turns("s", "a x y")), "a x y");
        assert_eq!(bench.read("s", &turns("s", "a x y z")), "z");
    }

    #[test]
    fn a_fork_does_not_say_again_what_its_parent_said() {
        let mut bench = Bench::new();
        assert_eq!(bench.read("p", &turns("p", "a b")), "a b");
        assert_eq!(bench.read("f", &turns("f", "p:a p:b c")), "c");
        // The parent goes on by itself; a second fork shares what the first one has.
        assert_eq!(bench.read("p", &turns("p", "a b d")), "d");
        assert_eq!(bench.read("g", &turns("g", "p:a p:b e")), "e");
    }

    #[test]
    fn a_fork_that_is_read_first_leaves_its_parent_the_rest() {
        let mut bench = Bench::new();
        assert_eq!(bench.read("f", &turns("f", "p:a p:b c")), "a b c");
        assert_eq!(bench.read("p", &turns("p", "a b d")), "d");
    }

    #[test]
    fn a_fork_of_a_fork_gives_only_its_own() {
        let mut bench = Bench::new();
        assert_eq!(bench.read("p", &turns("p", "a b")), "a b");
        assert_eq!(bench.read("f", &turns("f", "p:a p:b c")), "c");
        assert_eq!(bench.read("h", &turns("h", "p:a p:b f:c d")), "d");
    }

    #[test]
    fn sessions_that_nobody_shares_are_no_kin() {
        let mut bench = Bench::new();
        assert_eq!(bench.read("s", &turns("s", "a")), "a");
        assert_eq!(bench.read("t", &turns("t", "a b")), "a b");
    }

    #[test]
    fn our_own_sessions_and_sub_agents_are_left_out() {
        let bench = Bench::new();
        let ours = [turn("s", "s", "batch: batch__abcdefghijkl and so on"), turn("s", "s", "more")];
        assert!(bench.gather("s", &ours).unwrap().is_none());
        // Only the first prompt tells: a person may quote one later.
        let quoted = [turn("t", "t", "look"), turn("t", "t", "batch__abcdefghijkl")];
        assert!(bench.gather("t", &quoted).unwrap().is_some());
        let helper = turn("u", "u", "a")
            .replace("\"type\":\"user\"", "\"isSidechain\":true,\"agentId\":\"x\",\"type\":\"user\"");
        assert!(helper.contains("isSidechain"));
        assert!(bench.gather("u", &[helper]).unwrap().is_none());
    }

    #[test]
    fn a_session_that_cannot_be_read_says_why() {
        let bench = Bench::new();
        assert!(bench.gather("missing", &[]).unwrap_err().contains("missing.jsonl"));
    }

    #[test]
    fn a_huge_turn_stays_whole_in_the_text_and_is_cut_where_a_line_or_a_character_ends() {
        let bench = Bench::new();
        let huge = "ä".repeat(300_000) + &"line\n".repeat(5000);
        let (history, text) = bench.gather("s", &[turn("s", "s", &huge)]).unwrap().unwrap();
        assert!(history.borders.len() == 1 && text.contains(huge.trim_end()));
        let path = bench.dir.path().join("text");
        file::install(&path, text.as_bytes(), 0o600).unwrap();
        for at in [100_001, 100_002, 610_003, text.len() - 2] {
            let cut = cut_at(&path, at);
            assert!(cut <= at && at - cut < 4097 && text.is_char_boundary(cut), "{at} {cut}");
        }
        assert_eq!(text.as_bytes()[cut_at(&path, text.len() - 7) - 1], b'\n');
    }

    #[test]
    fn secrets_do_not_get_into_the_text() {
        let bench = Bench::new();
        let secret = format!("ghp_{}", "a1B2c3D4e5".repeat(4));
        let (_, text) =
            bench.gather("s", &[turn("s", "s", &format!("the key is {secret}"))]).unwrap().unwrap();
        assert!(!text.contains(&secret) && text.contains("the key is"), "{text}");
    }
}
