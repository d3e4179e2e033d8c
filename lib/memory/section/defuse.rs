//! A note's text as part of a larger document: it cannot end the section, hide what follows, or pass for a part of
//! the section's own structure. Text that does none of that stays as it is, byte for byte.
//!
//! What reaches beyond a text in Markdown is a code fence, a comment or an HTML block that stays open. A fence is
//! closed. Where it cannot be told for sure how a reader will see it (a fence half in a list, raw HTML), the whole
//! text is quoted: whatever is open ends with its quote.

use crate::memory::section::fences::{Fence, fence};
use std::borrow::Cow;
use std::fmt::Write;

/// What a marker holds. Nowhere in a note does it follow a `<!--`.
const OURS: &str = "agent-memory:";
const OPEN: &str = "<!--";
const CLOSE: &str = "-->";
/// `<` as text, in Markdown.
const LESS: &str = "&lt;";

/// HTML that goes on until it is closed, and what closes it (CommonMark 0.31, 4.6, conditions 1, 3, 4, 5).
const UNBOUNDED: [(&str, &str); 7] = [
    ("<script", "</script>"),
    ("<pre", "</pre>"),
    ("<style", "</style>"),
    ("<textarea", "</textarea>"),
    ("<?", "?>"),
    ("<![cdata[", "]]>"),
    ("<!", ">"),
];

/// A note's body: whole lines, ended by `\n`, without empty ones around; headings not above `depth`.
pub(crate) fn body(bytes: &[u8], depth: usize) -> String {
    let text = without_markers(&plain(bytes)).into_owned();
    let text = text.trim_end().trim_start_matches('\n');
    if text.is_empty() {
        return String::new();
    }
    let lines: Vec<&str> = text.split('\n').collect();
    match places(&lines) {
        Some((places, open)) => inline(text, &lines, &places, open, depth),
        None => quoted(text),
    }
}

/// A title in a heading of ours.
pub(crate) fn in_heading(title: &str) -> String {
    less(title)
}

/// A title as a link's text: nothing in it ends the link or begins something that would, and no comment.
pub(crate) fn in_link(title: &str) -> String {
    let title = less(title);
    let mut text = String::with_capacity(title.len());
    for c in title.chars() {
        if matches!(c, '\\' | '[' | ']' | '`' | '<') {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// A summary at the end of a line.
pub(crate) fn in_text(summary: &str) -> String {
    less(summary)
}

/// One line, with comments as text.
fn less(line: &str) -> String {
    line.replace(OPEN, &format!("{LESS}!--"))
}

/// As text with `\n` for line ends and without control characters.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\r' => {
                characters.next_if_eq(&'\n');
                plain.push('\n');
            }
            '\n' | '\t' => plain.push(c),
            c if c.is_control() => plain.push('\u{fffd}'),
            c => plain.push(c),
        }
    }
    plain
}

/// No comment in it begins with the words of our markers, in whatever letters.
fn without_markers(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut kept = 0;
    for (at, _) in text.match_indices(OPEN) {
        let inner = text[at + OPEN.len()..].trim_start();
        if inner.get(..OURS.len()).is_some_and(|start| start.eq_ignore_ascii_case(OURS)) {
            out.push_str(&text[kept..at]);
            out.push_str(LESS);
            kept = at + 1;
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[kept..]);
    Cow::Owned(out)
}

/// What a line is a part of.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Text,
    Code,
}

/// An open fence, and how far its lines are indented in a list.
struct Open {
    fence: Fence,
    column: usize,
}

/// Where each line stands, and the fence that is open at the end; `None` if that cannot be told for sure.
fn places(lines: &[&str]) -> Option<(Vec<Place>, Option<Fence>)> {
    let mut places = Vec::with_capacity(lines.len());
    let mut open: Option<Open> = None;
    // Behind a list's or a quote's mark an indentation may mean more than it does elsewhere.
    let mut is_nested = false;
    let mut is_html = false;
    for line in lines {
        let (column, prefix, rest) = contained(line);
        let found = fence(rest.as_bytes());
        if let Some(Open { fence, column: least }) = &open {
            places.push(Place::Code);
            let is_closer = found.is_some_and(|found| found.closes(fence))
                && column < least + 4
                && prefix == Prefix::Blank;
            // In a list, a line that stands further to the left ends the list, and the fence with it.
            if *least > 0 && indentation(line) < *least && !unindented(line).is_empty() {
                return None;
            }
            if is_closer {
                open = None;
            }
            continue;
        }
        is_nested |= prefix != Prefix::Blank;
        is_html = !rest.is_empty() && (is_html || is_tag(rest));
        if is_unbounded(rest) {
            return None;
        }
        let Some(fence) = found.filter(|_| is_nested || column < 4) else {
            places.push(Place::Text);
            continue;
        };
        if is_html || prefix == Prefix::Quote || line[..line.len() - rest.len()].contains('\t') {
            return None;
        }
        places.push(Place::Code);
        open = Some(Open { fence, column: if is_nested { column } else { 0 } });
    }
    match open {
        Some(Open { column: 1.., .. }) => None,
        open => Some((places, open.map(|open| open.fence))),
    }
}

/// What stands before a line's own text.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Prefix {
    Blank,
    List,
    Quote,
}

/// The column in which a line's own text begins, behind marks of lists and quotes, and that text.
fn contained(line: &str) -> (usize, Prefix, &str) {
    let mut prefix = Prefix::Blank;
    let mut rest = unindented(line);
    loop {
        let after = if let Some(after) = rest.strip_prefix('>') {
            prefix = Prefix::Quote;
            Some(after)
        } else {
            let after = item(rest);
            if after.is_some() && prefix == Prefix::Blank {
                prefix = Prefix::List;
            }
            after
        };
        match after {
            Some(after) => rest = unindented(after),
            None => return (line.len() - rest.len(), prefix, rest),
        }
    }
}

/// What follows the mark of a list's item: `- `, `* `, `+ `, `1. `, `1) `.
fn item(text: &str) -> Option<&str> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let after = match digits {
        0 => text.strip_prefix(['-', '*', '+'])?,
        1..=9 => text[digits..].strip_prefix(['.', ')'])?,
        _ => return None,
    };
    (after.is_empty() || after.starts_with([' ', '\t'])).then_some(after)
}

/// Blanks as Markdown has them; other white space is text there.
const BLANKS: [char; 2] = [' ', '\t'];

fn unindented(line: &str) -> &str {
    line.trim_start_matches(BLANKS)
}

fn indentation(line: &str) -> usize {
    line.len() - unindented(line).len()
}

/// Does HTML begin here that an empty line ends?
fn is_tag(text: &str) -> bool {
    text.strip_prefix('<').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/'))
}

/// Does HTML begin here that goes on beyond this line, whatever follows? Comments are seen to apart.
fn is_unbounded(text: &str) -> bool {
    if !text.starts_with('<') || text.starts_with(OPEN) {
        return false;
    }
    let text = text.to_ascii_lowercase();
    UNBOUNDED.iter().any(|(begin, end)| {
        text.strip_prefix(begin).is_some_and(|rest| {
            let is_it = match begin.as_bytes().last() {
                Some(b'?' | b'[') => true,
                Some(b'!') => rest.starts_with(|c: char| c.is_ascii_alphabetic()),
                _ => !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-'),
            };
            is_it && !rest.contains(end)
        })
    })
}

/// The text among that of others, with what is open closed.
fn inline(text: &str, lines: &[&str], places: &[Place], open: Option<Fence>, depth: usize) -> String {
    let texts = texts(lines, places);
    let headings = headings(lines, places, &texts);
    let highest = headings.iter().flatten().map(|heading| heading.level).min().unwrap_or(depth);
    let push = depth.saturating_sub(highest);
    let last_close = text.rfind(CLOSE);
    let mut out = String::with_capacity(text.len() + 16);
    let mut offset = 0;
    for (n, line) in lines.iter().enumerate() {
        let shown = match places[n] {
            Place::Code => closed_comments(line, |at| last_close > Some(offset + at)),
            Place::Text => {
                let last_close = line.rfind(CLOSE);
                closed_comments(line, |at| last_close > Some(at))
            }
        };
        match &headings[n] {
            Some(heading) if push > 0 => {
                let level = (heading.level + push).min(6);
                let title = if heading.is_underlined {
                    shown.trim()
                } else {
                    shown.trim_start().trim_start_matches('#')
                };
                let blank = if heading.is_underlined { " " } else { "" };
                let _ = writeln!(out, "{}{blank}{title}", "#".repeat(level));
            }
            _ if push > 0 && n > 0 && headings[n - 1].as_ref().is_some_and(|above| above.is_underlined) => {}
            _ if is_stray_underline(lines, places, &texts, n, depth) => {
                // Under several lines: a heading that cannot be written in one. Its line stays, as text.
                let _ = writeln!(out, "\\{}", shown.trim());
            }
            _ => {
                out.push_str(&shown);
                out.push('\n');
            }
        }
        offset += line.len() + 1;
    }
    if let Some(fence) = open {
        let _ = writeln!(out, "{}", fence.closing());
    }
    out
}

/// A line with the comments that are not closed as text.
fn closed_comments(line: &str, is_closed: impl Fn(usize) -> bool) -> Cow<'_, str> {
    let mut out = String::new();
    let mut kept = 0;
    for (at, _) in line.match_indices(OPEN) {
        if !is_closed(at) {
            out.push_str(&line[kept..at]);
            out.push_str(LESS);
            kept = at + 1;
        }
    }
    if out.is_empty() && kept == 0 {
        return Cow::Borrowed(line);
    }
    out.push_str(&line[kept..]);
    Cow::Owned(out)
}

#[derive(Debug)]
struct Heading {
    level: usize,
    /// The next line is its underline.
    is_underlined: bool,
}

/// The headings among the lines.
fn headings(lines: &[&str], places: &[Place], texts: &[bool]) -> Vec<Option<Heading>> {
    let heading = |n: usize| {
        if let Some(level) = marked(lines[n]).filter(|_| places[n] == Place::Text) {
            return Some(Heading { level, is_underlined: false });
        }
        let level = *underline(lines, places, n + 1).filter(|_| texts[n]).as_ref()?;
        let is_single = n == 0 || !texts[n - 1];
        is_single.then_some(Heading { level, is_underlined: true })
    };
    (0..lines.len()).map(heading).collect()
}

/// The level of a heading that begins with `#`.
fn marked(line: &str) -> Option<usize> {
    let text = unindented(line);
    let level = text.bytes().take_while(|byte| *byte == b'#').count();
    let is_heading = (1..=6).contains(&level)
        && (text.len() == level || text[level..].starts_with(BLANKS))
        && indentation(line) <= 3
        && !line.starts_with('\t');
    is_heading.then_some(level)
}

/// The level of the heading that this line would make of the text above.
fn underline(lines: &[&str], places: &[Place], n: usize) -> Option<usize> {
    let line = lines.get(n).filter(|line| places[n] == Place::Text && indentation(line) <= 3)?;
    let text = line.trim_matches(BLANKS);
    match text.as_bytes().first()? {
        b'=' if text.bytes().all(|byte| byte == b'=') => Some(1),
        b'-' if text.bytes().all(|byte| byte == b'-') => Some(2),
        _ => None,
    }
}

/// Which lines are ordinary text, of which an underline could make a heading.
fn texts(lines: &[&str], places: &[Place]) -> Vec<bool> {
    let mut texts: Vec<bool> = Vec::with_capacity(lines.len());
    for (n, line) in lines.iter().enumerate() {
        let (_, prefix, rest) = contained(line);
        // In text that goes on, an indentation means nothing, and an item begins no list but with `-` or `1.`.
        let goes_on = n > 0 && texts[n - 1];
        let is_deep = indentation(line) > 3 || line[..indentation(line)].contains('\t');
        let begins = match prefix {
            _ if is_deep => goes_on,
            Prefix::Blank => true,
            Prefix::List => goes_on && (rest.is_empty() || begins_late(line)),
            Prefix::Quote => false,
        };
        // Without text above, an underline is text itself, or a rule. Under several lines it becomes text.
        let is_text = match underline(lines, places, n) {
            None => true,
            Some(_) if goes_on => n > 1 && texts[n - 2],
            Some(1) => true,
            Some(_) => line.trim_matches(BLANKS).len() < 3,
        };
        let is_blank = unindented(line).is_empty();
        texts.push(places[n] == Place::Text && begins && is_text && !is_blank && marked(line).is_none());
    }
    texts
}

/// Is it an item whose number is not 1?
fn begins_late(line: &str) -> bool {
    let text = unindented(line);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && text[..digits].trim_start_matches('0') != "1"
}

/// Would this line make a heading of several lines, and one above `depth`?
fn is_stray_underline(lines: &[&str], places: &[Place], texts: &[bool], n: usize, depth: usize) -> bool {
    n > 0 && texts[n - 1] && underline(lines, places, n).is_some_and(|level| level < depth)
}

/// The text as a quote: whatever is open in it ends with it.
fn quoted(text: &str) -> String {
    let last_close = text.rfind(CLOSE);
    let text = closed_comments(text, |at| last_close > Some(at));
    let mut out = String::with_capacity(text.len() + 16);
    for line in text.split('\n') {
        let _ = if line.is_empty() { writeln!(out, ">") } else { writeln!(out, "> {line}") };
    }
    out
}

#[cfg(test)]
mod tests;
