//! The man page, from the same table as `--help`.

use crate::ground::cli::about::{About, is_verbatim};
use std::fmt::Write;

/// A page in `man(7)` macros, which both groff and mandoc read.
pub(crate) fn man_page(about: &About, version: &str) -> String {
    let mut out = String::new();
    let title = about.name.to_uppercase();
    let _ =
        writeln!(out, ".TH \"{}\" \"1\" \"\" \"axe {}\" \"User Commands\"", escape(&title), escape(version));
    let _ = writeln!(out, ".SH NAME\n{} \\- {}\n.SH SYNOPSIS", escape(about.name), escape(about.caption));
    for (n, usage) in about.usage.iter().enumerate() {
        let _ = writeln!(out, "{}{}", if n == 0 { "" } else { ".br\n" }, escape(usage));
    }
    out.push_str(".SH DESCRIPTION\n");
    paragraphs(&mut out, about.more);
    if !about.commands.is_empty() {
        out.push_str(".SH COMMANDS\n");
        for (name, help) in about.commands {
            let _ = writeln!(out, ".TP\n.B {}\n{}", escape(name), escape_line(help));
        }
    }
    out.push_str(".SH OPTIONS\n");
    for flag in about.all_flags() {
        let _ = writeln!(out, ".TP\n.B {}\n{}", escape(&flag.spelling()), escape_line(flag.help));
    }
    for (title, text) in about.sections {
        let _ = writeln!(out, ".SH {}", escape(title));
        paragraphs(&mut out, text);
    }
    out.push_str(".SH EXIT STATUS\n");
    for (code, meaning) in [
        ("0", "done, or nothing to do"),
        ("1", "the operation failed, or the arguments are wrong"),
        ("2", "configuration: a file is missing or invalid, a path cannot be resolved"),
        ("3", "the LLM or its API failed: unreachable, no key, rate limit, timeout, command failed"),
        ("128+N", "ended by signal N: 130 is SIGINT, 143 is SIGTERM"),
    ] {
        let _ = writeln!(out, ".TP\n.B {code}\n{meaning}");
    }
    out
}

fn paragraphs(out: &mut String, text: &str) {
    for (n, paragraph) in text.split("\n\n").enumerate() {
        if is_verbatim(paragraph) {
            out.push_str(".PP\n.RS 4\n.nf\n");
            for line in paragraph.lines().filter(|line| !line.is_empty()) {
                let _ = writeln!(out, "{}", escape_line(&line[4..]));
            }
            out.push_str(".fi\n.RE\n");
        } else {
            if n > 0 {
                out.push_str(".PP\n");
            }
            for line in paragraph.lines() {
                let _ = writeln!(out, "{}", escape_line(line.trim()));
            }
        }
    }
}

/// Backslashes and hyphens mean something in troff; flags must be copyable from the page.
fn escape(text: &str) -> String {
    text.replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('~', "\\(ti")
        .replace('^', "\\(ha")
        .replace('…', "...")
}

/// A line that begins with `.` or `'` would be taken for a request.
fn escape_line(line: &str) -> String {
    let text = escape(line);
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn troff_requests_and_hyphens_are_escaped() {
        assert_eq!(escape_line(".git is skipped"), "\\&.git is skipped");
        assert_eq!(escape("--dry-run ~/x \\n"), "\\-\\-dry\\-run \\(ti/x \\en");
    }
}
