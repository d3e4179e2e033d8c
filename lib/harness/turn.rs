//! The common form of all sessions.

use crate::base::members::Members;
use crate::base::text::{border, excerpt};
use crate::harness::recalled;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// What a program sent as its user's message.
    User,
    /// What the model said.
    Assistant,
    /// A call of a tool, with its result.
    Tool,
    /// What the model thought, where the program keeps it.
    Reasoning,
    /// A part of a file that is not a session.
    #[default]
    Document,
}

impl Role {
    pub(super) fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
            Role::Reasoning => "reasoning",
            Role::Document => "document",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One message, thought or tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    pub role: Role,
    pub text: String,
    /// Of the user: the program itself recorded that a person typed it. Else it was pasted, or nobody knows who wrote it.
    pub is_typed: bool,
    /// The same whenever the session is read again, even after it has grown, and in a fork's copy: the id of the
    /// record, or a hash of its text.
    pub id: String,
    /// When it was said, if the program recorded that.
    pub at: Option<Timestamp>,
    /// How many bytes were cut from what is shown of it. Each cut is marked.
    pub cut: usize,
    /// Of a call with long arguments: what is shown of it. `text` has all of it, up to a cap.
    pub brief: Option<String>,
    /// Where a tool's output begins in `text`, in bytes. What stands before it, the agent wrote.
    pub output: Option<usize>,
    /// Of a tool: what was called. `text` shows it shortened.
    pub call: Option<ToolCall>,
    /// The program recorded that the call ended without an error; of a command, with the exit code 0.
    pub has_worked: bool,
}

/// A call of a tool, as data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// Empty for a result whose call is not known.
    pub name: String,
    /// Names and plain values; text that is no JSON object has the name "". A list of words is quoted as for a shell.
    /// Values end after [`ARGUMENT_CAP`] bytes.
    pub arguments: Vec<(String, String)>,
}

/// The longest value of an argument, in bytes. One that was cut has exactly so many, or up to three bytes less.
pub const ARGUMENT_CAP: usize = 64 << 10;

/// How many unknown kinds are counted separately; all others share one count.
const KINDS: usize = 50;
/// Longer names of kinds are shortened.
const KIND_CHARS: usize = 60;

/// What a session file contains besides its turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionReport {
    /// How many turns there were.
    pub turns: usize,
    /// The number of records of each unknown kind.
    pub(super) unknown: BTreeMap<String, usize>,
    /// Lines that are not JSON: damaged, or the last line of a session that is still being written.
    pub torn: usize,
    /// Lines that were skipped because they are longer than [`LINE_CAP`](crate::harness::source::LINE_CAP).
    pub too_long: usize,
    /// Messages whose content is not where this program has it: the file may be another program's.
    pub(super) unreadable: usize,
    /// Tool calls without a result: the session ended first, or is still running.
    pub(super) open_calls: usize,
    pub session_id: Option<String>,
    /// The session that this one was forked from, or that started this sub-agent. A fork in Claude Code begins with
    /// the parent's turns, under the same ids; a fork in Codex does not repeat them.
    pub parent: Option<String>,
    /// The file belongs to a sub-agent: its turns are not the session's.
    pub is_sub_agent: bool,
    /// What an agent added to a file of memories is left out.
    pub has_added: bool,
    /// The working directory of the session.
    pub cwd: Option<String>,
    /// The branch that it was on in the end.
    pub branch: Option<String>,
    /// The address of the repository that it was in.
    pub remote: Option<String>,
}

impl SessionReport {
    /// What a record says of its session. The first counts.
    pub(super) fn begins(&mut self, session_id: Option<String>, cwd: Option<String>) {
        self.session_id = self.session_id.take().or(session_id);
        self.cwd = self.cwd.take().or(cwd);
    }

    /// Counts a record of an unknown kind.
    pub(super) fn unknown(&mut self, kind: &str) {
        let kind = crate::base::text::one_line(kind, KIND_CHARS);
        let kind = if kind.is_empty() { "(no type)".to_owned() } else { kind };
        let known = self.unknown.contains_key(&kind);
        let kind = if known || self.unknown.len() < KINDS { kind } else { "(more)".to_owned() };
        *self.unknown.entry(kind).or_default() += 1;
    }
}

/// Ids for turns without one: a hash of role and text, and the number of equal turns before it. An id does not
/// depend on a line number, so it stays the same when the file grows.
#[derive(Default)]
pub struct Ids {
    said: HashMap<[u8; 8], u32>,
}

impl Ids {
    pub(super) fn next(&mut self, role: Role, text: &str) -> String {
        let hash = Sha256::new().chain_update(role.name()).chain_update([0]).chain_update(text).finalize();
        let mut key = [0; 8];
        key.copy_from_slice(&hash[..8]);
        let before = self.said.entry(key).or_default();
        let id = format!("{:016x}-{before}", u64::from_be_bytes(key));
        *before += 1;
        id
    }
}

/// How many bytes at the start and at the end are shown of one argument, and of all arguments.
const ARGUMENT: (usize, usize) = (1000, 200);
const ARGUMENTS: (usize, usize) = (2000, 500);
/// So much is kept of an argument, and of a result.
const WHOLE: (usize, usize) = (192 << 10, 64 << 10);

/// Replaces an image.
pub(super) const IMAGE: &str = "[image left out]";
/// Replaces the result of a call without one.
pub(super) const NO_RESULT: &str = "[no result recorded]";

/// A call as data and as text.
pub(super) struct ShownCall {
    pub(super) call: ToolCall,
    /// `[Bash] command: ls -la`, with a line for each further argument: all of it, up to a cap.
    pub(super) text: String,
    /// What is shown of one with long arguments.
    pub(super) brief: Option<String>,
    /// How many bytes were cut from what is shown.
    pub(super) cut: usize,
    /// It prints notes, so its result is not new.
    pub(super) recalls: bool,
}

impl ShownCall {
    pub(super) fn of(name: &str, json: &str) -> ShownCall {
        let mut call = ToolCall { name: name.to_owned(), arguments: Vec::new() };
        let (mut whole, mut brief, mut cut, mut recalls) = (String::new(), String::new(), 0, false);
        match serde_json::from_str::<Members<String>>(json) {
            Ok(Members(members)) => {
                for (key, raw) in members {
                    let value = plain(raw);
                    call.arguments.push((key.clone(), capped(quoted(raw).as_deref().unwrap_or(&value))));
                    if ["command", "cmd", "script"].contains(&&*key) {
                        recalls |= recalled::reads_memory(&value);
                    }
                    let (value, _) = without_memory(&value);
                    let (short, less) = excerpt(&value, ARGUMENT.0, ARGUMENT.1);
                    cut += less;
                    for (text, value) in [(&mut whole, &*value), (&mut brief, &*short)] {
                        let line = if text.is_empty() { "" } else { "\n" };
                        text.push_str(&format!("{line}{key}: {value}"));
                    }
                }
            }
            Err(_) => {
                call.arguments.push((String::new(), capped(json)));
                recalls = recalled::reads_memory(json);
                whole = without_memory(json).0;
                brief.clone_from(&whole);
            }
        }
        let (short, less) = excerpt(&brief, ARGUMENTS.0, ARGUMENTS.1);
        let line = |arguments: &str| format!("[{name}] {arguments}").trim_end().to_owned();
        let brief = (short != whole).then(|| line(&short));
        ShownCall { call, text: line(&whole), brief, cut: cut + less, recalls }
    }
}

fn capped(value: &str) -> String {
    value[..border(value, ARGUMENT_CAP)].to_owned()
}

/// A result without notes from memory, and how many bytes were cut.
pub(super) fn shown_result(text: &str, recalls: bool) -> (String, usize) {
    if recalls { (recalled::NOTES_LEFT_OUT.to_owned(), 0) } else { without_memory(text) }
}

/// The exit code in the words that a program puts around what a command printed: before it, where Codex has them, or in the
/// last lines. What the command itself printed stands before those.
pub(super) fn exit_code(text: &str) -> Option<i32> {
    const LAST: usize = 5;
    let number = |line: &str| {
        let line = line.to_ascii_lowercase();
        let at = ["exited with code ", "exited with exit code ", "completed with exit code ", "exit code: "];
        let rest = at.iter().find_map(|words| line.split_once(words)).map(|(_, rest)| rest)?;
        rest.split(|c: char| !(c.is_ascii_digit() || c == '-')).next()?.parse().ok()
    };
    if let Some((head, _)) = text.split_once("\nOutput:\n").filter(|(head, _)| head.lines().count() <= LAST) {
        return head.lines().find_map(number);
    }
    if text.starts_with('{') {
        let ended: JsonExit = serde_json::from_str(text).ok()?;
        return ended.exit_code.or_else(|| ended.metadata?.exit_code);
    }
    text.trim_end().lines().rev().take(LAST).find_map(number)
}

/// The rest of what is printed as JSON may be large.
#[derive(serde::Deserialize)]
struct JsonExit {
    #[serde(alias = "exitCode")]
    exit_code: Option<i32>,
    metadata: Option<Box<JsonExit>>,
}

fn without_memory(text: &str) -> (String, usize) {
    let text = recalled::without_sections(text);
    let text = recalled::without_notes(&text);
    let (text, cut) = excerpt(text.trim_end(), WHOLE.0, WHOLE.1);
    (text.into_owned(), cut)
}

/// The text of a string, a list of strings as one line, anything else as JSON.
fn plain(value: &RawValue) -> Cow<'_, str> {
    let json = value.get();
    let text = match json.as_bytes().first() {
        Some(b'"') => serde_json::from_str(json).ok(),
        Some(b'[') => serde_json::from_str::<Vec<String>>(json).ok().map(|words| words.join(" ")),
        _ => None,
    };
    text.map_or(Cow::Borrowed(json), Cow::Owned)
}

/// A list of words as a shell's command line.
fn quoted(list: &RawValue) -> Option<String> {
    let words: Vec<String> = serde_json::from_str(list.get()).ok()?;
    shlex::try_join(words.iter().map(String::as_str)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_the_text_and_not_on_its_position() {
        let (mut one, mut two) = (Ids::default(), Ids::default());
        let first = one.next(Role::User, "yes");
        two.next(Role::Assistant, "yes");
        assert_eq!(two.next(Role::User, "yes"), first);
        assert_ne!(two.next(Role::User, "yes"), first, "said again");
        // Ids are stored between runs, so they must never change.
        assert_eq!(first, "67f536f9d7e5d34e-0");
    }

    #[test]
    fn invented_kinds_do_not_fill_memory() {
        let mut report = SessionReport::default();
        for n in 0..1000 {
            report.unknown(&format!("kind {n} {}", "x".repeat(1000)));
        }
        report.unknown("");
        assert!(report.unknown.len() <= KINDS + 1);
        assert_eq!(report.unknown.values().sum::<usize>(), 1001);
        assert!(report.unknown.keys().all(|kind| kind.chars().count() <= KIND_CHARS + 3));
    }

    #[test]
    fn a_call_is_data_too_with_whole_values() {
        let json = format!(r#"{{"cmd":["bash","-lc","ls -l | wc"],"n":3,"text":"{}"}}"#, "ä".repeat(40_000));
        let ShownCall { call, .. } = ShownCall::of("exec", &json);
        assert_eq!(call.arguments[0], ("cmd".to_owned(), "bash -lc 'ls -l | wc'".to_owned()));
        assert_eq!(call.arguments[1], ("n".to_owned(), "3".to_owned()));
        assert_eq!(call.arguments[2].1.len(), ARGUMENT_CAP);
        let patch = ShownCall::of("apply_patch", "*** Begin").call;
        assert_eq!(patch.arguments, [(String::new(), "*** Begin".to_owned())]);
    }

    #[test]
    fn arguments_keep_their_order_and_lose_their_quotes() {
        let shell = ShownCall::of("Bash", r#"{"command":"echo \"hi\" && ls","b":[1,2],"a":["x","y"]}"#);
        assert_eq!(shell.text, "[Bash] command: echo \"hi\" && ls\nb: [1,2]\na: x y");
        assert_eq!(ShownCall::of("Noop", "{}").text, "[Noop]");
        assert_eq!(ShownCall::of("apply_patch", "*** Begin").text, "[apply_patch] *** Begin");
    }

    #[test]
    fn of_a_large_argument_less_is_shown_and_all_is_kept() {
        let content = "x".repeat(100_000);
        let write = ShownCall::of("Write", &format!(r#"{{"path":"a","content":"{content}"}}"#));
        let brief = write.brief.unwrap();
        assert!(brief.len() < 3000 && write.cut > 98_000, "{} {}", brief.len(), write.cut);
        assert!(write.text.contains(&content));
        assert_eq!(ShownCall::of("Read", r#"{"path":"a"}"#).brief, None);
        let many: Vec<String> = (0..9).map(|n| format!("\"k{n}\":\"{}\"", "y ".repeat(500))).collect();
        let ask = ShownCall::of("Ask", &format!("{{{}}}", many.join(",")));
        assert!(ask.brief.unwrap().len() < 2600 && ask.text.len() > 9000);
    }

    #[test]
    fn of_a_huge_result_start_and_end_are_kept() {
        let kept = shown_result(&"a line\n".repeat(30_000), false);
        assert_eq!((kept.0.len(), kept.1), (209_999, 0));
        let kept = shown_result(&"a line\n".repeat(300_000), false);
        assert!(kept.0.len() < 270_000 && kept.1 > 1_800_000, "{} {}", kept.0.len(), kept.1);
        assert!(kept.0.lines().all(|line| line == "a line" || line.starts_with("[… ")));
    }

    #[test]
    fn an_exit_code_is_read_where_a_program_says_it() {
        for (text, code) in [
            (
                "Chunk ID: e32c69\nWall time: 0.1 seconds\nProcess exited with code 3\nOutput:\nexited with code 0\n",
                Some(3),
            ),
            ("Exit code: 0\nWall time: 1 seconds\nOutput:\nx", Some(0)),
            ("Chunk ID: 1\nProcess running with session ID 7\nOutput:\nexit code: 0", None),
            (
                "<untrusted_context>\nOutput: exit code: 0\nExit Code: 3\nProcess Group PGID: 515\n</untrusted_context>",
                Some(3),
            ),
            ("The build uses pnpm.\n<shellId: 0 completed with exit code 0>", Some(0)),
            ("x\n<exited with exit code 127>", Some(127)),
            (r#"{"output":"Exit Code: 0","exitCode":2}"#, Some(2)),
            (r#"{"output":"x","metadata":{"exit_code":0,"duration_seconds":0.1}}"#, Some(0)),
            ("{\"a\": 1}", None),
            ("Exit Code: 0\n1\n2\n3\n4\n5", None),
            ("ok", None),
        ] {
            assert_eq!(exit_code(text), code, "{text}");
        }
    }

    #[test]
    fn notes_from_memory_are_left_out() {
        let read = ShownCall::of("exec_command", r#"{"cmd":["bash","-lc","memory read id__a1B2c3"]}"#);
        assert!(read.recalls);
        assert_eq!(shown_result("# a note", read.recalls).0, recalled::NOTES_LEFT_OUT);
        let opened = shown_result("x\n---\nid: id__a1B2c3\n---\n\nthe note", false);
        assert_eq!(opened.0, format!("x\n{}", recalled::NOTES_LEFT_OUT));
    }
}
