//! What a command prints whose output is a secret, whatever it looks like: `op read …`, `cat token`, `echo $API_TOKEN`.
//! The command stands behind a shell's prompt or in a tool's call, and what it printed in the lines below.

use memchr::memmem;

use crate::memory::redact::chars::{WORD, holds, inner, is_in, leading, past, split_end, until};
use crate::memory::redact::commands::{line, words};
use crate::memory::redact::names::NAMES;
use crate::memory::redact::near::{Near, from, place};
use crate::memory::redact::rules;
use crate::memory::redact::value::{made, placeholder};
use std::sync::LazyLock;

/// How much of the output is read, in bytes and in lines.
const OUTPUT: usize = 4096;
const LINES: usize = 40;
/// The most words of a secret that is a sentence.
const WORDY: usize = 8;

/// What stands before a command that somebody ran.
static PROMPTS: LazyLock<Vec<&str>> = LazyLock::new(|| rules::words("prompts"));
/// Words of messages, which are not what was asked for.
static MESSAGES: LazyLock<Vec<&str>> = LazyLock::new(|| rules::words("messages"));
/// Names of files that hold nothing but a secret.
static FILES: LazyLock<Vec<&str>> = LazyLock::new(|| rules::words("files"));

/// A command of the rules; `>` in its usage: all that it prints, `>1`: the first line.
pub(super) fn printed(near: &mut Near) {
    let before = near.before();
    // The first word behind a prompt, a call or an operator.
    let head = before.trim_ascii_end();
    let is_first = head.is_empty()
        || ["❯", "➜", "sudo"].iter().any(|end| head.ends_with(end.as_bytes()))
        || head.last().is_some_and(|byte| b"$#%>|;&(\"'`:]=".contains(byte));
    let is_inner = [&b"$("[..], b"`", b"<("].iter().any(|open| before.ends_with(open));
    // The prompts cost the most.
    if !is_first || is_inner || !holds(before, &PROMPTS) {
        return;
    }
    let line = line(near);
    let arguments = words(line);
    let mut usage = near.usage.split(' ').rev();
    let most = if usage.next() == Some(">1") { 1 } else { LINES };
    if redirected(line) || !usage.all(|needed| arguments[1..].iter().any(|word| is_needed(word, needed))) {
        return;
    }
    output(near, place(near.bytes, line) + line.len(), most);
}

/// A file's path in the call of a tool that reads it.
pub(super) fn file_read(near: &mut Near) {
    let path = past(near.behind(), b" \"'\\");
    let path = until(path, |byte| b"\"')\\, ".contains(&byte));
    if is_secret_file(path) {
        output(near, place(near.bytes, path) + path.len(), LINES);
    }
}

/// Does it print into a file or into another program that shows nothing?
fn redirected(line: &[u8]) -> bool {
    const ELSEWHERE: [&str; 8] =
        [" >", "pbcopy", "xclip", "wl-copy", "clip.exe", "| docker", "| sudo", "--password-stdin"];
    holds(line, &ELSEWHERE) && !holds(line, &[" 2>"])
}

/// `word`, `start*`, `*part*`, `~` the path of a file that is a secret, `$` a name for one.
fn is_needed(word: &[u8], needed: &str) -> bool {
    let word = word.strip_suffix(b"\\").unwrap_or(word);
    match (needed.strip_prefix('*'), needed.strip_suffix('*')) {
        _ if needed == "~" => is_secret_file(word),
        _ if needed == "$" => {
            let name = past(word, b"$\\{%env:.\"'");
            let name = until(name, |byte| !WORD.has(byte) && !b".-[]\"".contains(&byte));
            !word.starts_with(b"-") && NAMES.name(name.strip_suffix(b"\"").unwrap_or(name), false).is_some()
        }
        (Some(part), _) => holds(word, &[part.trim_end_matches('*')]),
        (None, Some(start)) => word.starts_with(start.as_bytes()),
        (None, None) => word.eq_ignore_ascii_case(needed.as_bytes()),
    }
}

fn is_secret_file(path: &[u8]) -> bool {
    let path = path.to_ascii_lowercase();
    let (folder, name) = split_end(&path, path.len(), |byte| !b"/\\".contains(&byte));
    let stem = memchr::memrchr(b'.', name).filter(|at| *at > 0).map_or(name, |at| &name[..at]);
    // A file of source or prose about tokens is none.
    let is_bare = name == stem
        || [&b".txt"[..], b".key", b".asc", b".b64", b".gpg"].iter().any(|end| name.ends_with(end));
    !path.starts_with(b"-")
        && path != b"/etc/passwd"
        && (is_in(&FILES, name)
            || is_bare && (is_in(&FILES, stem) || NAMES.name(stem, false).is_some())
            || holds(folder, &["secrets/"]) && !name.contains(&b'.'))
}

/// Takes note of what a command printed: the lines behind it, up to the next prompt or turn.
fn output(near: &mut Near, end: usize, most: usize) {
    let rest = from(near.bytes, end, OUTPUT);
    let same_line = until(rest, |byte| byte == b'\n');
    // A call and its result in one object.
    for key in ["output\":\"", "stdout\":\"", "output\": \"", "stdout\": \"", "result\": \""] {
        if let Some(at) = memmem::find(same_line, key.as_bytes()) {
            return near.push(until(&same_line[at + key.len()..], |byte| byte == b'"' || byte == b'\\'));
        }
    }
    let mut secrets = Vec::new();
    for line in rest.split(|byte| *byte == b'\n').skip(1).take(LINES + 2) {
        let text = behind_label(line).trim_ascii();
        let is_frame = text.starts_with(b"```") || text.is_empty() || text.starts_with(b"<");
        if is_frame && !text.is_empty() && secrets.is_empty() {
            continue;
        }
        if is_frame || is_prompt(text) || secrets.len() >= most || holds(text, &MESSAGES) {
            break;
        }
        secrets.push(text);
    }
    let is_alone = secrets.len() == 1;
    secrets.into_iter().filter_map(|text| secret(text, is_alone)).for_each(|secret| near.push(secret));
}

/// The text behind `tool result: ` and the like.
fn behind_label(line: &[u8]) -> &[u8] {
    let line = past(line, b" \t|\xe2\x94\x82\x8e\xbf");
    // The numbers of lines.
    let digits = leading(line, 6, |byte| byte.is_ascii_digit());
    let line = line[digits..].strip_prefix("→".as_bytes()).unwrap_or(line);
    let label = leading(line, 24, |byte| byte.is_ascii_alphabetic() || b" _".contains(&byte));
    let named = [&b"result"[..], b"output", b"stdout", b"tool", b"response"];
    match line[label..].strip_prefix(b":") {
        Some(text) if named.iter().any(|name| line[..label].to_ascii_lowercase().ends_with(name)) => text,
        _ => line,
    }
}

/// Does the next command begin, or what somebody says?
fn is_prompt(text: &[u8]) -> bool {
    let speaker = leading(text, 12, |byte| byte.is_ascii_lowercase());
    matches!(text, b"$" | b"#" | b"%" | b">")
        || [&b"$ "[..], b"# ", b"% ", b"> ", b"PS "].iter().any(|prompt| text.starts_with(prompt))
        || text[speaker..].starts_with(b": ") && speaker > 2
        || memmem::find(text, b"$ ").is_some_and(|at| text[..at].contains(&b'@'))
}

/// The secret of a line: what follows a name, or all of it.
fn secret(text: &[u8], is_alone: bool) -> Option<&[u8]> {
    let name = leading(text, 64, |byte| WORD.has(byte) || byte == b' ');
    if name > 0 && text.len() > name + 2 && b"=:".contains(&text[name]) && text[name + 1] != b'=' {
        return Some(inner(&text[name + 1..], b" \"'")).filter(|value| made(value));
    }
    let words = text.split(|byte| *byte == b' ').count();
    let is_sentence = words > WORDY || holds(text, &["  "]) || text.ends_with(b".");
    let is_secret = (4..=2048).contains(&text.len())
        && !placeholder(text)
        && !text.starts_with(b"{")
        && !text.starts_with(b"-----")
        && (words == 1 || is_alone && !is_sentence);
    is_secret.then_some(text)
}
