//! A tool call and its result as short text.

use crate::base::members::Members;
use crate::base::text::{border, excerpt};
use crate::harness::recalled;
use crate::harness::turn::{ARGUMENT_CAP, ToolCall};
use serde_json::value::RawValue;
use std::borrow::Cow;

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

pub(super) fn call(name: &str, json: &str) -> ShownCall {
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

fn capped(value: &str) -> String {
    value[..border(value, ARGUMENT_CAP)].to_owned()
}

/// A result without notes from memory, and how many bytes were cut.
pub(super) fn result(text: &str, recalls: bool) -> (String, usize) {
    match recalls {
        true => (recalled::NOTES_LEFT_OUT.to_owned(), 0),
        false => without_memory(text),
    }
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
        let ended: Ended = serde_json::from_str(text).ok()?;
        return ended.exit_code.or_else(|| ended.metadata?.exit_code);
    }
    text.trim_end().lines().rev().take(LAST).find_map(number)
}

/// The rest of what is printed as JSON may be large.
#[derive(serde::Deserialize)]
struct Ended {
    #[serde(alias = "exitCode")]
    exit_code: Option<i32>,
    metadata: Option<Box<Ended>>,
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
    fn a_call_is_data_too_with_whole_values() {
        let json = format!(r#"{{"cmd":["bash","-lc","ls -l | wc"],"n":3,"text":"{}"}}"#, "ä".repeat(40_000));
        let ShownCall { call, .. } = call("exec", &json);
        assert_eq!(call.arguments[0], ("cmd".to_owned(), "bash -lc 'ls -l | wc'".to_owned()));
        assert_eq!(call.arguments[1], ("n".to_owned(), "3".to_owned()));
        assert_eq!(call.arguments[2].1.len(), ARGUMENT_CAP);
        let patch = super::call("apply_patch", "*** Begin").call;
        assert_eq!(patch.arguments, [(String::new(), "*** Begin".to_owned())]);
    }

    #[test]
    fn arguments_keep_their_order_and_lose_their_quotes() {
        let shell = call("Bash", r#"{"command":"echo \"hi\" && ls","b":[1,2],"a":["x","y"]}"#);
        assert_eq!(shell.text, "[Bash] command: echo \"hi\" && ls\nb: [1,2]\na: x y");
        assert_eq!(call("Noop", "{}").text, "[Noop]");
        assert_eq!(call("apply_patch", "*** Begin").text, "[apply_patch] *** Begin");
    }

    #[test]
    fn of_a_large_argument_less_is_shown_and_all_is_kept() {
        let content = "x".repeat(100_000);
        let write = call("Write", &format!(r#"{{"path":"a","content":"{content}"}}"#));
        let brief = write.brief.unwrap();
        assert!(brief.len() < 3000 && write.cut > 98_000, "{} {}", brief.len(), write.cut);
        assert!(write.text.contains(&content));
        assert_eq!(call("Read", r#"{"path":"a"}"#).brief, None);
        let many: Vec<String> = (0..9).map(|n| format!("\"k{n}\":\"{}\"", "y ".repeat(500))).collect();
        let ask = call("Ask", &format!("{{{}}}", many.join(",")));
        assert!(ask.brief.unwrap().len() < 2600 && ask.text.len() > 9000);
    }

    #[test]
    fn of_a_huge_result_start_and_end_are_kept() {
        let kept = result(&"a line\n".repeat(30_000), false);
        assert_eq!((kept.0.len(), kept.1), (209_999, 0));
        let kept = result(&"a line\n".repeat(300_000), false);
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
        let read = call("exec_command", r#"{"cmd":["bash","-lc","memory read id__a1B2c3"]}"#);
        assert!(read.recalls);
        assert_eq!(result("# a note", read.recalls).0, recalled::NOTES_LEFT_OUT);
        let opened = result("x\n---\nid: id__a1B2c3\n---\n\nthe note", false);
        assert_eq!(opened.0, format!("x\n{}", recalled::NOTES_LEFT_OUT));
    }
}
