//! Removes from a session what the agent read from memory.
//!
//! Agents read notes in the managed section of their instruction files, in what `memory-recall` gives them, with
//! `memory read`, and by opening the files. All of that is in their transcripts. Learned again, a note would become a
//! copy of itself, a little worse each time. So it is replaced by a mark, and what was given is taken out: some programs
//! keep it in the person's turn.

use std::borrow::Cow;

/// The first and the last line of the managed section.
pub const START: &str = "<!-- agent-memory:start -->";
pub const END: &str = "<!-- agent-memory:end -->";

/// The first and the last line of what `memory-recall` gives a session, each up to the mark of that one time. Without
/// `<` and `>`, which some programs escape.
const GIVEN: &str = "[agent-memory:recall ";
const GIVEN_END: &str = "[agent-memory:end ";
/// What both begin with: no text between them does.
pub const GIVEN_MARK: &str = "[agent-memory:";
/// So many letters and digits a mark has. It is random, so no note can hold the last line.
pub const MARK_LENGTH: usize = 8;
/// The tags that programs put around what a hook gives.
const WRAPPERS: &[&str] = &["hook_context", "qwen:", "system-reminder", "system_reminder"];

/// The byte order mark.
const MARK: char = '\u{feff}';

/// Replaces a managed section.
pub(super) const SECTION_LEFT_OUT: &str = "[agent-memory section left out]";
/// Replaces notes.
pub(super) const NOTES_LEFT_OUT: &str = "[notes from memory left out]";

/// `text` as `memory-recall` gives it, between two lines that name `mark`.
pub fn given(text: &str, mark: &str) -> String {
    format!("{GIVEN}{mark}]\n{}\n{GIVEN_END}{mark}]", text.trim_end())
}

/// `text` without what `memory-recall` has given, and without the tags that the program put around it. What has no end
/// goes on to the end of the text.
pub fn without_given(text: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let mut rest = text;
    let mut from = 0;
    while let Some(at) = rest[from..].find(GIVEN).map(|at| from + at) {
        let after = &rest[at + GIVEN.len()..];
        let Some(mark) = mark_of(after) else {
            from = at + GIVEN.len();
            continue;
        };
        let last = format!("{GIVEN_END}{mark}]");
        let end = after.find(&last).map_or(rest.len(), |end| at + GIVEN.len() + end + last.len());
        let (start, end) = unwrapped(rest, at, end);
        kept.push_str(&rest[..start]);
        rest = &rest[end..];
        from = 0;
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    kept.push_str(rest);
    Cow::Owned(kept.trim().to_owned())
}

fn mark_of(text: &str) -> Option<&str> {
    let mark = text.get(..MARK_LENGTH).filter(|_| text.as_bytes().get(MARK_LENGTH) == Some(&b']'))?;
    mark.bytes().all(|byte| byte.is_ascii_alphanumeric()).then_some(mark)
}

/// The range widened by a tag of a program on both sides, if there is one.
fn unwrapped(text: &str, start: usize, end: usize) -> (usize, usize) {
    let before = text[..start].trim_end();
    let open = before.strip_suffix('>').and_then(|inner| Some((inner.rfind('<')?, inner)));
    let Some((open, inner)) = open else { return (start, end) };
    let tag = &inner[open + 1..];
    let name = tag.split_whitespace().next().unwrap_or_default();
    let after = text[end..].trim_start();
    let closing = format!("</{name}>");
    if !WRAPPERS.iter().any(|wrapper| name.starts_with(wrapper)) {
        return (start, end);
    }
    let closed = text.len() - after.len() + closing.len();
    (open, if after.starts_with(&closing) { closed } else { end })
}

/// `text` without managed sections and without what `memory-recall` has given. A section without an end, because only a
/// part of the file was read, goes on to the end of the text.
pub fn without_sections(text: &str) -> Cow<'_, str> {
    match without_given(text) {
        Cow::Borrowed(text) => without_managed(text),
        Cow::Owned(text) => Cow::Owned(without_managed(&text).into_owned()),
    }
}

fn without_managed(text: &str) -> Cow<'_, str> {
    if !text.contains(START) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut inside = false;
    for line in text.split_inclusive('\n') {
        if !inside && bare(line) == START {
            inside = true;
            kept.push_str(SECTION_LEFT_OUT);
            kept.push('\n');
        } else if inside && bare(line) == END {
            inside = false;
        } else if !inside {
            kept.push_str(line);
        }
    }
    Cow::Owned(kept)
}

/// The line without a line number, a diff sign or another prefix that tools add, and without a byte order mark.
fn bare(line: &str) -> &str {
    unruled(line).trim_start_matches(MARK).trim_start()
}

fn unruled(line: &str) -> &str {
    let line = line.trim_start_matches(MARK).trim();
    let unnumbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    if unnumbered.len() == line.len() {
        return line.trim_start_matches(['+', '>', '|']).trim_start();
    }
    // `12\ttext`, `12→text`, `12: text`, `12|text`
    unnumbered.trim_start().strip_prefix(['→', ':', '|']).unwrap_or(unnumbered).trim()
}

/// `text` up to the first note in it, which is recognised by its front matter. Where a note ends cannot be
/// recognised, so everything after it is dropped. This is for tool results and files.
pub fn without_notes(text: &str) -> Cow<'_, str> {
    if !text.contains("id__") {
        return Cow::Borrowed(text);
    }
    let mut offset = 0;
    let mut fence: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        match (bare(line), fence) {
            ("---", _) => fence = Some(offset),
            (key, Some(start)) if is_id(key) => {
                return Cow::Owned(format!("{}{NOTES_LEFT_OUT}\n", &text[..start]));
            }
            // Front matter has keys, comments and list items. With anything else, `---` was a horizontal rule.
            (key, Some(_)) if !key.contains(':') && !key.starts_with(['#', '-']) => fence = None,
            _ => {}
        }
        offset += line.len();
    }
    Cow::Borrowed(text)
}

/// `id: id__a1B2c3`, perhaps quoted, perhaps with a comment.
fn is_id(line: &str) -> bool {
    let Some(value) = line.strip_prefix("id:") else { return false };
    let value = value.trim_start().trim_start_matches(['"', '\'']);
    let Some(value) = value.strip_prefix("id__") else { return false };
    value.bytes().take_while(u8::is_ascii_alphanumeric).count() == 6
}

/// Commands that run the command after them.
const RUNNERS: &[&str] = &["bash", "command", "env", "exec", "sh", "sudo", "time", "xargs", "zsh"];

/// Whether this shell command prints notes. A word that only mentions one of the programs does not count.
pub fn reads_memory(command: &str) -> bool {
    let base = |word: &'_ str| word.rfind('/').map_or(0, |slash| slash + 1);
    command.split(['\n', ';', '|', '&', '(', '`', '\'', '"']).any(|simple| {
        let mut words = simple.split_whitespace().skip_while(|word| {
            word.starts_with('-') || word.contains('=') || RUNNERS.contains(&&word[base(word)..])
        });
        let program = words.next().unwrap_or_default();
        match &program[base(program)..] {
            "memory-read" | "memory-list" | "memory-recall" => true,
            "memory" => matches!(words.find(|word| !word.starts_with('-')), Some("read" | "list" | "recall")),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_managed_section_is_replaced_and_the_rest_stays() {
        let text = format!("# Rules\n\n{START}\n## Memory\n- secret\n{END}\nUse tabs.\n");
        assert_eq!(without_sections(&text), format!("# Rules\n\n{SECTION_LEFT_OUT}\nUse tabs.\n"));
        let numbered = format!("1\t# Rules\n2\t{START}\n 3→- secret\n10→{END}\n11\tUse tabs.");
        assert_eq!(without_sections(&numbered), format!("1\t# Rules\n{SECTION_LEFT_OUT}\n11\tUse tabs."));
        let diff = format!(" a\n+{START}\n+- secret\n+{END}\n b");
        assert_eq!(without_sections(&diff), format!(" a\n{SECTION_LEFT_OUT}\n b"));
        let cut = format!("a\n{START}\n- secret\n- more");
        assert_eq!(without_sections(&cut), format!("a\n{SECTION_LEFT_OUT}\n"));
    }

    #[test]
    fn a_byte_order_mark_does_not_hide_the_marker() {
        for start in ["\u{feff}", "\u{feff}  ", "     1\t\u{feff}", "1→\u{feff}"] {
            let text = format!("{start}{START}\n## Memory\n- secret\n{END}\nrest");
            assert_eq!(without_sections(&text), format!("{SECTION_LEFT_OUT}\nrest"), "{start:?}");
        }
    }

    #[test]
    fn text_about_the_markers_stays() {
        let text = format!("Put {START} before it.\nAnd {END} after.");
        assert_eq!(without_sections(&text), text);
        assert_eq!(without_sections("plain"), "plain");
        assert_eq!(without_sections(&format!("{END}\nx")), format!("{END}\nx"));
    }

    #[test]
    fn what_was_given_is_left_out_with_the_tags_around_it() {
        let fence =
            given("### Ports (id__a1B2c3)\n\nThe port is 4310. [agent-memory:end AAAAAAAA]\n", "K7pQ2xAb");
        for text in [
            format!("{fence}\n\nfix it"),
            format!("fix it\n{fence}"),
            format!("<hook_context>{fence}</hook_context>\n\nfix it"),
            format!(
                "<qwen:user-prompt-submit-context hidden=\"true\">\n{fence}\n</qwen:user-prompt-submit-context>\nfix it"
            ),
            format!("fix it\n<system_reminder>\n{fence}\n</system_reminder>"),
            format!("{fence}\n{fence}\nfix it"),
            // Cut off by the program.
            format!("fix it\n{}", &fence[..fence.len() - 12]),
        ] {
            assert_eq!(without_sections(&text), "fix it", "{text}");
        }
        assert_eq!(without_given(&format!("<hook_context>{fence}</hook_context>")), "");
        assert_eq!(without_given(&format!("a <b>\n{fence}\nc")), "a <b>\n\nc");
    }

    #[test]
    fn text_about_the_lines_around_it_stays() {
        for text in [
            "It begins with [agent-memory:recall and a mark.",
            "[agent-memory:recall MARK]\ntext",
            "[agent-memory:recall K7pQ2x!b] x",
            "[agent-memory:end K7pQ2xAb] x",
        ] {
            assert_eq!(without_given(text), text);
        }
    }

    #[test]
    fn a_note_is_recognised_by_its_front_matter() {
        let note = "---\nid: id__a1B2c3\ntitle: x\n---\n\nbody\n";
        assert_eq!(without_notes(note), format!("{NOTES_LEFT_OUT}\n"));
        let listed = format!("topics:\n{note}");
        assert_eq!(without_notes(&listed), format!("topics:\n{NOTES_LEFT_OUT}\n"));
        let late = "---\n# mine\ntitle: x\ntags:\n  - a\nid: \"id__a1B2c3\"\n---\nbody";
        assert_eq!(without_notes(late), format!("{NOTES_LEFT_OUT}\n"));
        let numbered = "     1→---\n     2→id: id__a1B2c3\n     3→---\n     4→body";
        assert_eq!(without_notes(numbered), format!("{NOTES_LEFT_OUT}\n"));
    }

    #[test]
    fn other_front_matter_and_text_about_ids_stay() {
        for text in [
            "---\nid: 12\ntitle: x\n---\nbody",
            "---\nid: id__a1B2c3d4\n---\n",
            "id: id__a1B2c3",
            "---\n\nprose\nid: id__a1B2c3\n",
            "The front matter has a line id: id__a1B2c3 in it.\n---\n",
        ] {
            assert_eq!(without_notes(text), text);
        }
    }

    #[test]
    fn a_command_that_prints_notes_is_recognised() {
        for command in [
            "memory read id__a1B2c3",
            "memory-read a1B2c3 | head",
            "cd /x && /usr/local/bin/memory-list --json",
            "A=1 memory list --query x",
            "bash -lc 'memory read x'",
            "echo $(memory-read x)",
            "cat ids | xargs -n1 memory-read",
            "/bin/bash -lc memory --json list",
            "/usr/bin/env memory read x",
            "memory-recall dev server port",
            "memory recall --json",
        ] {
            assert!(reads_memory(command), "{command}");
        }
        for command in [
            "grep -rn memory-read src",
            "cargo run --bin memory-capture",
            "memory capture --title x",
            "man memory",
            "",
        ] {
            assert!(!reads_memory(command), "{command}");
        }
    }
}
