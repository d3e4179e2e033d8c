//! Man pages in `man(7)` macros, which both groff and mandoc read: a program's, from the same table as `--help`, and
//! a family's, on files and formats, from a Markdown text.

use crate::base::cli::about::{About, is_verbatim};
use crate::base::text::wrap;
use std::fmt::Write;

/// The width of a page's source, in columns.
const WIDTH: usize = 78;

/// A page of section 7: what several programs have in common.
#[derive(Debug)]
pub struct Manual {
    pub name: &'static str,
    /// What `axe help` and `memory help` call it.
    pub topic: &'static str,
    pub caption: &'static str,
    /// Markdown, as far as these pages use it: `## SECTION`, `### Part`, paragraphs, verbatim lines indented by four
    /// spaces, "- `term`: text", and bold `words`.
    pub text: &'static str,
}

#[cfg(test)]
impl Manual {
    /// The terms of a section's items, up to its first part with a heading.
    pub fn terms(&self, section: &str) -> Vec<&str> {
        let (_, rest) = self.text.split_once(&format!("\n## {section}\n")).unwrap();
        let section = rest.split("\n##").next().unwrap();
        let items = section.lines().filter_map(|line| line.strip_prefix("- `"));
        items.map(|item| item.split_once('`').unwrap().0).collect()
    }
}

/// The page of a program.
pub fn man_page(about: &About, version: &str) -> String {
    let mut out = head(about.name, 1, about.caption, version);
    out.push_str(".SH SYNOPSIS\n");
    for (n, usage) in about.usage.iter().enumerate() {
        let _ = writeln!(out, "{}{}", if n == 0 { "" } else { ".br\n" }, escape(usage));
    }
    out.push_str(".SH DESCRIPTION\n");
    let (text, sections) = about.texts();
    blocks(&mut out, text);
    if !about.commands.is_empty() {
        out.push_str(".SH COMMANDS\n");
        for (name, help) in about.commands {
            let _ = writeln!(
                out,
                ".TP\n.B {}\n{}",
                escape(name),
                filled(&escape(&about.with_aliases(name, help)))
            );
        }
    }
    out.push_str(".SH OPTIONS\n");
    for flag in about.all_flags() {
        let _ = writeln!(out, ".TP\n.B {}\n{}", escape(&flag.spelling()), filled(&escape(flag.help)));
    }
    if !sections.is_empty() {
        blocks(&mut out, sections);
    }
    out.push_str(".SH EXIT STATUS\n");
    for (code, meaning) in [
        ("0", "done, or nothing to do"),
        ("1", "the operation failed, or the arguments are wrong"),
        ("2", "configuration: a file is missing or invalid, a path cannot be resolved"),
        ("3", "the LLM or its API failed: no key, unreachable, rate limit, timeout, command"),
        ("128+N", "ended by signal N: 130 is SIGINT, 143 is SIGTERM"),
    ] {
        let _ = writeln!(out, ".TP\n.B {code}\n{meaning}");
    }
    let family = about.name.split('-').next().unwrap_or(about.name);
    let others = (about.name != family).then_some((family, 1)).into_iter().chain([(family, 7)]);
    see_also(&mut out, others);
    out
}

/// A page of section 7. `also` are the pages that it refers to, each with its section.
pub fn manual_page<'a>(manual: &Manual, also: impl Iterator<Item = (&'a str, u8)>, version: &str) -> String {
    let mut out = head(manual.name, 7, manual.caption, version);
    // The text begins with its own title.
    blocks(&mut out, manual.text.split_once("\n\n").map_or("", |(_, text)| text));
    see_also(&mut out, also);
    out
}

/// Text in the form of [`Manual::text`], right below a heading or with headings of its own.
fn blocks(out: &mut String, text: &str) {
    let mut is_below_heading = true;
    for block in text.split("\n\n") {
        let block = block.trim_matches('\n');
        let heading = block.strip_prefix("## ").map(|title| (".SH", title));
        let heading = heading.or_else(|| block.strip_prefix("### ").map(|title| (".SS", title)));
        // A paragraph right below a heading needs no macro.
        let macro_before = if is_below_heading { "" } else { ".PP\n" };
        if let Some((request, title)) = heading {
            let _ = writeln!(out, "{request} {}", escape(title));
        } else if block.starts_with("- ") {
            items(out, block);
        } else if is_verbatim(block) {
            let lines: Vec<String> = block
                .lines()
                .filter(|line| !line.is_empty())
                .map(|line| guarded(escape(&line[4..])))
                .collect();
            let _ = writeln!(out, "{macro_before}.RS 4\n.nf\n{}\n.fi\n.RE", lines.join("\n"));
        } else {
            let _ = writeln!(out, "{macro_before}{}", running(block));
        }
        is_below_heading = heading.is_some();
    }
}

fn head(name: &str, section: u8, caption: &str, version: &str) -> String {
    let title = escape(&name.to_uppercase());
    let volume = if section == 1 { "User Commands" } else { "Miscellaneous Information" };
    format!(
        ".TH \"{title}\" \"{section}\" \"\" \"axe {}\" \"{volume}\"\n.SH NAME\n{} \\- {}\n",
        escape(version),
        escape(name),
        escape(caption)
    )
}

fn see_also<'a>(out: &mut String, pages: impl Iterator<Item = (&'a str, u8)>) {
    let pages: Vec<String> =
        pages.map(|(name, section)| format!(".BR {} ({section})", escape(name))).collect();
    let _ = writeln!(out, ".SH SEE ALSO\n{}", pages.join(",\n"));
}

/// "- `term`: text", each up to the next.
fn items(out: &mut String, block: &str) {
    for item in block.strip_prefix("- ").unwrap_or(block).split("\n- ") {
        let (term, text) = item.split_once(": ").unwrap_or((item, ""));
        let term: String = term.chars().filter(|c| *c != '`').collect();
        let _ = writeln!(out, ".TP\n.B {}\n{}", escape(&term), running(text));
    }
}

/// A paragraph. Text between backquotes is bold.
fn running(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(n, part)| match n % 2 {
        0 => escape(part),
        _ => format!("\\fB{}\\fP", escape(part)),
    });
    filled(&parts.collect::<String>())
}

/// Lines that are short enough for both formatters, none of which is a request.
fn filled(escaped: &str) -> String {
    wrap(escaped, WIDTH).into_iter().map(guarded).collect::<Vec<_>>().join("\n")
}

/// A line that begins with `.` or `'` would be taken for a request.
fn guarded(line: String) -> String {
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

/// Backslashes and hyphens mean something in troff; flags must be copyable from the page.
fn escape(text: &str) -> String {
    text.replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('~', "\\(ti")
        .replace('^', "\\(ha")
        .replace('…', "...")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_is_markdown_made_into_macros() {
        const MANUAL: Manual = Manual {
            name: "axe",
            topic: "formats",
            caption: "all of it",
            text: "# axe(7)\n\n## FILES\n\n    ~/x\n\nOne `--flag` more.\n.x\n\n- `a.b`: first\nand on\n- `c`: last\n",
        };
        assert_eq!(
            manual_page(&MANUAL, [("axe-gc", 1)].into_iter(), "1.0"),
            ".TH \"AXE\" \"7\" \"\" \"axe 1.0\" \"Miscellaneous Information\"\n.SH NAME\naxe \\- all of it\n.SH FILES\n\
             .RS 4\n.nf\n\\(ti/x\n.fi\n.RE\n.PP\nOne \\fB\\-\\-flag\\fP more. .x\n\
             .TP\n.B a.b\nfirst and on\n.TP\n.B c\nlast\n.SH SEE ALSO\n.BR axe\\-gc (1)\n"
        );
    }

    #[test]
    fn troff_requests_and_hyphens_are_escaped() {
        assert_eq!(guarded(escape(".git is skipped")), "\\&.git is skipped");
        assert_eq!(escape("--dry-run ~/x \\n"), "\\-\\-dry\\-run \\(ti/x \\en");
    }
}
