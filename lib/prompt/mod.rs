//! What the model sees: its parts, and how they are joined.

pub mod attachments;
pub mod files;
pub mod vars;

use crate::prompt::files::ContextFile;
use std::fmt::Write;

/// The user message if none was given and nothing was piped in.
const DEFAULT_MESSAGE: &str = "Execute the task described in your instructions.";

/// Separates the parts of a system prompt.
const BETWEEN: &str = "\n\n---\n\n";

/// The system prompt: instructions, skill, files, log. Empty parts leave no trace.
pub fn system(instructions: &str, skill: &str, files: &[ContextFile], log: &str) -> String {
    let mut prompt = instructions.to_owned();
    let mut add = |title: &str, text: &str| {
        if !text.is_empty() {
            if !prompt.is_empty() {
                prompt.push_str(BETWEEN);
            }
            let _ = write!(prompt, "## {title}\n\n{text}");
        }
    };
    add("Skill", skill);
    add("Context Files", &context(files));
    add("Memory", log);
    prompt
}

fn context(files: &[ContextFile]) -> String {
    let parts: Vec<String> = files
        .iter()
        .map(|file| {
            let fence = fence_for(&file.text);
            let ending = file.path.rsplit('/').next().and_then(|name| name.rsplit_once('.'));
            // A backtick there would break the fence.
            let ending = ending.map_or("", |(_, ending)| ending);
            let ending = if ending.contains('`') { "" } else { ending };
            format!("### {}\n{fence}{ending}\n{}\n{fence}", file.path, file.text)
        })
        .collect();
    parts.join("\n\n")
}

/// Longer than any run of backticks in the text, so that no file can close its fence.
fn fence_for(text: &str) -> String {
    let (mut longest, mut run) = (0, 0);
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat(3.max(longest + 1))
}

/// The user message: the given text, followed by piped input as context; or one of them; or the default.
pub fn user_message(given: Option<&str>, piped: Option<&str>) -> String {
    match (given, piped) {
        (Some(text), Some(context)) => format!("{text}\n\n{context}"),
        (Some(text), None) | (None, Some(text)) => text.to_owned(),
        (None, None) => DEFAULT_MESSAGE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> ContextFile {
        ContextFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn parts_are_joined_in_order() {
        let files = [file("README.md", "hello"), file("src/a.rs", "fn a() {}\n")];
        assert_eq!(
            system("You review.", "Be kind.", &files, "## t\n"),
            "You review.\n\n---\n\n## Skill\n\nBe kind.\n\n---\n\n## Context Files\n\n### README.md\n```md\nhello\n```\n\n\
             ### src/a.rs\n```rs\nfn a() {}\n\n```\n\n---\n\n## Memory\n\n## t\n"
        );
    }

    #[test]
    fn empty_parts_leave_no_trace() {
        assert_eq!(system("", "", &[], ""), "");
        assert_eq!(system("a", "", &[], ""), "a");
        assert_eq!(system("", "b", &[], ""), "## Skill\n\nb");
        assert_eq!(system("", "", &[], "c"), "## Memory\n\nc");
    }

    #[test]
    fn a_file_cannot_close_its_fence() {
        let text = system("", "", &[file("x", "a\n````\nb")], "");
        assert!(text.ends_with("### x\n`````\na\n````\nb\n`````"), "{text}");
    }

    #[test]
    fn the_given_text_comes_before_what_was_piped() {
        assert_eq!(user_message(Some("a"), Some("b")), "a\n\nb");
        assert_eq!(user_message(None, Some("b")), "b");
        assert_eq!(user_message(None, None), DEFAULT_MESSAGE);
    }
}
