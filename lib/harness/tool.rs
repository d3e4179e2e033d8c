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

/// A call or a result as text.
pub(super) struct ToolText {
    /// All of it, up to a cap.
    pub(super) text: String,
    /// What is shown of a call with long arguments.
    pub(super) brief: Option<String>,
    /// How many bytes were cut from what is shown.
    pub(super) cut: usize,
    /// The call prints notes, so its result is not new.
    pub(super) recalls: bool,
}

/// A call as data, and as text: `[Bash] command: ls -la`, with a line for each further argument.
pub(super) fn call(name: &str, json: &str) -> (ToolCall, ToolText) {
    let mut call = ToolCall { name: name.to_owned(), arguments: Vec::new() };
    let (mut whole, mut brief, mut cut, mut recalls) = (String::new(), String::new(), 0, false);
    match serde_json::from_str::<Members<String>>(json) {
        Ok(Members(pairs)) => {
            for (key, value) in pairs {
                let raw = value;
                let value = plain(raw);
                let words = is_list(raw).then(|| quoted(raw)).flatten();
                call.arguments.push((key.clone(), capped(words.as_deref().unwrap_or(&value))));
                if ["command", "cmd", "script"].contains(&&*key) {
                    recalls |= recalled::reads_memory(&value);
                }
                let value = recalled::without_sections(&value);
                let value = recalled::without_notes(&value);
                let (value, _) = excerpt(value.trim_end(), WHOLE.0, WHOLE.1);
                let (short, less) = excerpt(&value, ARGUMENT.0, ARGUMENT.1);
                cut += less;
                for (text, value) in [(&mut whole, &value), (&mut brief, &short)] {
                    let line = if text.is_empty() { "" } else { "\n" };
                    text.push_str(&format!("{line}{key}: {value}"));
                }
            }
        }
        Err(_) => {
            call.arguments.push((String::new(), capped(json)));
            recalls = recalled::reads_memory(json);
            let text = recalled::without_sections(json);
            whole = excerpt(&recalled::without_notes(&text), WHOLE.0, WHOLE.1).0.into_owned();
            brief.clone_from(&whole);
        }
    }
    let (short, less) = excerpt(&brief, ARGUMENTS.0, ARGUMENTS.1);
    cut += less;
    let line = |arguments: &str| format!("[{name}] {arguments}").trim_end().to_owned();
    let brief = (short != whole).then(|| line(&short));
    (call, ToolText { text: line(&whole), brief, cut, recalls })
}

fn capped(value: &str) -> String {
    value[..border(value, ARGUMENT_CAP)].to_owned()
}

/// A result without notes from memory.
pub(super) fn result(text: &str, recalls: bool) -> ToolText {
    if recalls {
        return ToolText { text: recalled::NOTES_LEFT_OUT.to_owned(), brief: None, cut: 0, recalls };
    }
    let text = recalled::without_sections(text);
    let text = recalled::without_notes(&text);
    let (text, cut) = excerpt(text.trim_end(), WHOLE.0, WHOLE.1);
    ToolText { text: text.into_owned(), brief: None, cut, recalls }
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

fn is_list(value: &RawValue) -> bool {
    value.get().starts_with('[')
}

/// A list of words as a shell's command line.
fn quoted(list: &RawValue) -> Option<String> {
    let words: Vec<String> = serde_json::from_str(list.get()).ok()?;
    shlex::try_join(words.iter().map(String::as_str)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(name: &str, json: &str) -> ToolText {
        call(name, json).1
    }

    #[test]
    fn a_call_is_data_too_with_whole_values() {
        let json = format!(r#"{{"cmd":["bash","-lc","ls -l | wc"],"n":3,"text":"{}"}}"#, "ä".repeat(40_000));
        let (call, _) = call("exec", &json);
        assert_eq!(call.arguments[0], ("cmd".to_owned(), "bash -lc 'ls -l | wc'".to_owned()));
        assert_eq!(call.arguments[1], ("n".to_owned(), "3".to_owned()));
        assert_eq!(call.arguments[2].1.len(), ARGUMENT_CAP);
        let (patch, _) = super::call("apply_patch", "*** Begin");
        assert_eq!(patch.arguments, [(String::new(), "*** Begin".to_owned())]);
    }

    #[test]
    fn arguments_keep_their_order_and_lose_their_quotes() {
        let call = shown("Bash", r#"{"command":"echo \"hi\" && ls","b":[1,2],"a":["x","y"]}"#);
        assert_eq!(call.text, "[Bash] command: echo \"hi\" && ls\nb: [1,2]\na: x y");
        assert_eq!(shown("Noop", "{}").text, "[Noop]");
        assert_eq!(shown("apply_patch", "*** Begin").text, "[apply_patch] *** Begin");
    }

    #[test]
    fn of_a_large_argument_less_is_shown_and_all_is_kept() {
        let content = "x".repeat(100_000);
        let call = shown("Write", &format!(r#"{{"path":"a","content":"{content}"}}"#));
        let brief = call.brief.unwrap();
        assert!(brief.len() < 3000 && call.cut > 98_000, "{} {}", brief.len(), call.cut);
        assert!(call.text.contains(&content));
        assert_eq!(shown("Read", r#"{"path":"a"}"#).brief, None);
        let many: Vec<String> = (0..9).map(|n| format!("\"k{n}\":\"{}\"", "y ".repeat(500))).collect();
        let call = shown("Ask", &format!("{{{}}}", many.join(",")));
        assert!(call.brief.unwrap().len() < 2600 && call.text.len() > 9000);
    }

    #[test]
    fn of_a_huge_result_start_and_end_are_kept() {
        let kept = result(&"a line\n".repeat(30_000), false);
        assert_eq!((kept.text.len(), kept.cut), (209_999, 0));
        let kept = result(&"a line\n".repeat(300_000), false);
        assert!(kept.text.len() < 270_000 && kept.cut > 1_800_000, "{} {}", kept.text.len(), kept.cut);
        assert!(kept.text.lines().all(|line| line == "a line" || line.starts_with("[… ")));
    }

    #[test]
    fn notes_from_memory_are_left_out() {
        let call = shown("exec_command", r#"{"cmd":["bash","-lc","memory read id__a1B2c3"]}"#);
        assert!(call.recalls);
        assert_eq!(result("# a note", call.recalls).text, recalled::NOTES_LEFT_OUT);
        let opened = result("x\n---\nid: id__a1B2c3\n---\n\nthe note", false);
        assert_eq!(opened.text, format!("x\n{}", recalled::NOTES_LEFT_OUT));
    }
}
