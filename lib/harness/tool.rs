//! A tool call and its result as short text.

use crate::base::members::Members;
use crate::base::text::border;
use crate::harness::recalled;
use crate::harness::turn::{ARGUMENT_CAP, ToolCall};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// How many bytes at the start and at the end are kept of one argument, of all arguments, and of a result.
const ARGUMENT: (usize, usize) = (1000, 200);
const ARGUMENTS: (usize, usize) = (2000, 500);
const RESULT: (usize, usize) = (2000, 500);

/// Replaces an image.
pub(super) const IMAGE: &str = "[image left out]";
/// Replaces the result of a call without one.
pub(super) const NO_RESULT: &str = "[no result recorded]";

/// The arguments of a call.
#[derive(Clone, Copy)]
pub(super) enum ToolArguments<'a> {
    Json(&'a RawValue),
    Text(&'a str),
}

/// A call or a result as text.
pub(super) struct ToolText {
    pub(super) text: String,
    pub(super) cut: usize,
    /// The call prints notes, so its result is not new.
    pub(super) recalls: bool,
}

/// A call as data, and as text: `[Bash] command: ls -la`, with a line for each further argument.
pub(super) fn call(name: &str, arguments: ToolArguments) -> (ToolCall, ToolText) {
    let json = match arguments {
        ToolArguments::Json(raw) => raw.get(),
        ToolArguments::Text(text) => text,
    };
    let mut call = ToolCall { name: name.to_owned(), arguments: Vec::new() };
    let mut shown = ToolText { text: String::new(), cut: 0, recalls: false };
    match serde_json::from_str::<Members<String>>(json) {
        Ok(Members(pairs)) => {
            for (key, value) in pairs {
                let raw = value;
                let value = plain(raw);
                let words = is_list(raw).then(|| quoted(raw)).flatten();
                call.arguments.push((key.clone(), capped(words.as_deref().unwrap_or(&value))));
                if ["command", "cmd", "script"].contains(&&*key) {
                    shown.recalls |= recalled::reads_memory(&value);
                }
                let value = recalled::without_sections(&value);
                let value = recalled::without_notes(&value);
                let (value, cut) = shorten(value.trim_end(), ARGUMENT);
                shown.cut += cut;
                if !shown.text.is_empty() {
                    shown.text.push('\n');
                }
                shown.text.push_str(&format!("{key}: {value}"));
            }
        }
        Err(_) => {
            call.arguments.push((String::new(), capped(json)));
            shown.recalls = recalled::reads_memory(json);
            let text = recalled::without_sections(json);
            shown.text = recalled::without_notes(&text).into_owned();
        }
    }
    let (text, cut) = shorten(&shown.text, ARGUMENTS);
    shown.text = format!("[{name}] {text}").trim_end().to_owned();
    shown.cut += cut;
    (call, shown)
}

fn capped(value: &str) -> String {
    value[..border(value, ARGUMENT_CAP)].to_owned()
}

/// A result without notes from memory, shortened to its start and end.
pub(super) fn result(text: &str, recalls: bool) -> ToolText {
    if recalls {
        return ToolText { text: recalled::NOTES_LEFT_OUT.to_owned(), cut: 0, recalls };
    }
    let text = recalled::without_sections(text);
    let text = recalled::without_notes(&text);
    let (text, cut) = shorten(text.trim_end(), RESULT);
    ToolText { text: text.into_owned(), cut, recalls }
}

/// The first `head` and the last `tail` bytes of `text` with a mark between them, and the number of bytes that were
/// cut. Characters are never split.
fn shorten(text: &str, (head, tail): (usize, usize)) -> (Cow<'_, str>, usize) {
    // The mark itself takes about 32 bytes.
    if text.len() <= head + tail + 32 {
        return (Cow::Borrowed(text), 0);
    }
    let head = border(text, head);
    let mut tail = text.len() - tail;
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    let cut = tail - head;
    (Cow::Owned(format!("{}\n[… {cut} bytes cut]\n{}", &text[..head], &text[tail..])), cut)
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
        call(name, ToolArguments::Text(json)).1
    }

    #[test]
    fn a_call_is_data_too_with_whole_values() {
        let json = format!(r#"{{"cmd":["bash","-lc","ls -l | wc"],"n":3,"text":"{}"}}"#, "ä".repeat(40_000));
        let (call, _) = call("exec", ToolArguments::Text(&json));
        assert_eq!(call.arguments[0], ("cmd".to_owned(), "bash -lc 'ls -l | wc'".to_owned()));
        assert_eq!(call.arguments[1], ("n".to_owned(), "3".to_owned()));
        assert_eq!(call.arguments[2].1.len(), ARGUMENT_CAP);
        let (patch, _) = super::call("apply_patch", ToolArguments::Text("*** Begin"));
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
    fn long_text_keeps_its_start_and_end_and_counts_the_rest() {
        let text = format!("{}{}{}", "ä".repeat(999), "x".repeat(5000), "ö".repeat(300));
        let (short, cut) = shorten(&text, (1999, 501));
        assert!(short.contains(&format!("[… {cut} bytes cut]")), "{short}");
        assert!(short.starts_with("ää") && short.ends_with("öö"));
        let mark = format!("\n[… {cut} bytes cut]\n").len();
        assert_eq!(short.len() - mark + cut, text.len());
        assert_eq!(shorten("short", (1, 1)), (Cow::Borrowed("short"), 0));
    }

    #[test]
    fn a_large_argument_and_a_large_result_are_cut() {
        let call = shown("Write", &format!(r#"{{"path":"a","content":"{}"}}"#, "x".repeat(100_000)));
        assert!(call.text.len() < 3000 && call.cut > 98_000, "{} {}", call.text.len(), call.cut);
        let result = result(&"y".repeat(100_000), false);
        assert!(result.text.len() < 2600 && result.cut == 97_500, "{} {}", result.text.len(), result.cut);
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
