//! Makes a note's text safe as part of a larger document: nothing in it is live, and its structure ends where it ends.
//!
//! There is no Markdown parser here. What is certainly code stays as it is; everything else is treated as text. In
//! text, whatever could begin HTML, an image or an `@path` import is escaped, and headings move below those of the
//! section. Without HTML, only a code fence can reach beyond the text. A fence at the margin is closed; if it is
//! uncertain where a fence ends, the whole text becomes a quote, which ends everything inside it.

use crate::base::text;
use crate::base::text::fences::{Fence, fence};
use crate::memory::links::without_waiting;
use crate::store::entry::EntryId;

/// A comment begins with this, and so do our markers: it is escaped in code too.
const COMMENT: &str = "<!--";
const BLANKS: [char; 2] = [' ', '\t'];
const OPENING: [char; 7] = ['(', '[', '{', '<', '\u{ff08}', '\u{ff3b}', '\u{3010}'];
const CLOSING: [char; 7] = [')', ']', '}', '>', '\u{ff09}', '\u{ff3d}', '\u{3011}'];

/// A note's body: whole lines, without empty ones at its ends, and no heading above level `depth`.
pub(super) fn body(bytes: &[u8], depth: usize) -> String {
    let text = plain(&without_waiting(&String::from_utf8_lossy(bytes)));
    let text = text.trim_end().trim_start_matches('\n');
    if text.is_empty() {
        return String::new();
    }
    let lines: Vec<&str> = text.split('\n').map(without_trailing_tabs).collect();
    match fences(&lines) {
        Some((margins, open)) => inline(&lines, &margins, open, depth),
        None => lines
            .iter()
            .map(|line| format!("> {}", escaped(line, true, &mut false)).trim_end().to_owned() + "\n")
            .collect(),
    }
}

/// One line of text: a title in a heading of ours, or a summary at the end of a line. It holds no link, either: a list of
/// ours would give it more weight than a note's text has.
pub(super) fn line(text: &str) -> String {
    escaped(&without_marks(&plain(text)), false, &mut true)
}

/// Without ids in brackets, and what follows them there: only we write `(id__XXXXXX, DAY, AUTHOR)` after a title.
fn without_marks(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("id__") {
        let before = rest[..at].trim_end_matches(|c: char| !c.is_alphanumeric() && !OPENING.contains(&c));
        let is_mark = before.ends_with(OPENING)
            && !before.ends_with("[[")
            && rest.get(at..at + 10).and_then(EntryId::parse).is_some();
        let end = if is_mark { rest[at..].find(CLOSING).map_or(rest.len(), |end| at + end) } else { at + 1 };
        out += if is_mark { before.trim_end_matches(OPENING).trim_end() } else { &rest[..end] };
        rest = if is_mark { rest[end..].trim_start_matches(CLOSING) } else { &rest[end..] };
    }
    out + rest
}

/// `text` with `\n` for line ends, without invisible characters, and with U+FFFD for control characters.
fn plain(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let seen = text::visible(&text);
    seen.chars().map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c }).collect()
}

/// For each line, how far the fence that it belongs to is indented; and the fence that is open at the end. `None` if
/// readers may differ on where a fence ends.
///
/// A fence at the margin is certain. An indented one may be in a list, so it is certain only if it ends the same way
/// there and at the margin: all its lines are indented at least as far as the first, and the last one exactly so.
fn fences(lines: &[&str]) -> Option<(Vec<Option<usize>>, Option<Fence>)> {
    let mut margins = Vec::with_capacity(lines.len());
    let mut open: Option<(Fence, usize)> = None;
    for line in lines {
        // What follows markers of lists and quotes, or what may be such.
        let rest = line.trim_start_matches(|c: char| " \t>-*+.)".contains(c) || c.is_ascii_digit());
        let before = &line[..line.len() - rest.len()];
        let indent = line.len() - line.trim_start_matches(' ').len();
        match (open, fence(rest.as_bytes())) {
            (None, Some(_)) if before.len() != indent => return None,
            (None, found) => {
                open = found.map(|fence| (fence, indent));
                margins.push(open.map(|_| indent));
            }
            (Some((fence, margin)), found) => {
                margins.push(Some(margin));
                let is_closer = found.is_some_and(|found| found.closes(&fence)) && is_blank(before);
                if is_closer && before.len() == indent && (indent == margin || margin == 0 && indent < 4) {
                    open = None;
                } else if margin > 0 && (is_closer || (indent < margin && !is_blank(line))) {
                    return None;
                }
            }
        }
    }
    match open {
        Some((_, 1..)) => None,
        open => Some((margins, open.map(|(fence, _)| fence))),
    }
}

fn inline(lines: &[&str], margins: &[Option<usize>], open: Option<Fence>, depth: usize) -> String {
    let level = |n: usize| heading(lines[n]).filter(|_| margins[n].is_none());
    let highest = (0..lines.len()).filter_map(level).min().unwrap_or(depth);
    let push = depth.saturating_sub(highest);
    let mut out = String::new();
    let mut is_sure = true;
    for (n, line) in lines.iter().enumerate() {
        is_sure |= is_blank(line);
        let shown = match margins[n] {
            None if level(n).is_some() => escaped(&without_marks(line), true, &mut is_sure),
            None => escaped(line, true, &mut is_sure),
            Some(..4) => line.replace(COMMENT, "&lt;!--"),
            // To some readers, so much indentation makes it text.
            Some(_) => escaped(line, true, &mut false),
        };
        let is_below_text = n > 0 && !is_blank(lines[n - 1]) && !matches!(margins[n - 1], Some(..4));
        if is_below_text && margins[n].is_none() && is_underline(line) {
            // It would make a heading of the text.
            out.push('\n');
        }
        let more = level(n).map_or(0, |level| (level + push).min(6) - level);
        let indent = if more > 0 { shown.len() - shown.trim_start().len() } else { 0 };
        out.extend([&shown[..indent], &"#".repeat(more), &shown[indent..], "\n"]);
    }
    if let Some(fence) = open {
        out.extend([&fence.closing(), "\n"]);
    }
    out
}

/// Readers differ on whether tabs may follow a closing fence.
fn without_trailing_tabs(line: &str) -> &str {
    let end = line.trim_end_matches(BLANKS);
    if line[end.len()..].contains('\t') { end } else { line }
}

fn is_blank(text: &str) -> bool {
    text.trim_matches(BLANKS).is_empty()
}

/// The level of a heading that begins with `#`.
fn heading(line: &str) -> Option<usize> {
    let text = line.trim_start_matches(' ');
    let level = text.len() - text.trim_start_matches('#').len();
    let is_heading = (1..=6).contains(&level) && (text.len() == level || text[level..].starts_with(BLANKS));
    (is_heading && line.len() - text.len() < 4).then_some(level)
}

/// A line of `=` or `-` alone.
fn is_underline(line: &str) -> bool {
    let text = line.trim_matches(BLANKS);
    !text.is_empty() && ['=', '-'].iter().any(|mark| text.trim_matches(*mark).is_empty())
}

/// A line of text with nothing live in it. Code spans stay as they are while `is_sure`: a backtick without a partner
/// on its line may pair with one of a later line, so from there on, until an empty line, nothing is surely code.
fn escaped(line: &str, keeps_links: bool, is_sure: &mut bool) -> String {
    let mut out = String::with_capacity(line.len() + 8);
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let mut length = c.len_utf8();
        let next = rest[length..].chars().next().unwrap_or(' ');
        match c {
            '`' => {
                let ticks = rest.len() - rest.trim_start_matches('`').len();
                // A backslash before it, or the border of a table's cell in it, may make it no span.
                let span =
                    span(rest, ticks).filter(|span| !out.ends_with('\\') && !rest[..*span].contains('|'));
                *is_sure &= span.is_some();
                length = span.filter(|_| *is_sure).unwrap_or(ticks);
                out.push_str(&rest[..length].replace(COMMENT, "&lt;!--"));
            }
            '<' if (next.is_ascii_alphabetic() || "/!?".contains(next))
                && !(keeps_links && is_link(rest)) =>
            {
                out.push_str("&lt;")
            }
            // The definition of a link would make one of the same words anywhere in the file.
            ']' if next == ':' => out.push_str("]\\"),
            ']' if !keeps_links && "([".contains(next) => out.push_str("]\\"),
            '!' if next == '[' => out.push_str("!\\"),
            '@' if !next.is_whitespace() && !out.ends_with(|c: char| c.is_alphanumeric() || c == '\\') => {
                out.push_str("\\@");
            }
            c => out.push(c),
        }
        rest = &rest[length..];
    }
    out
}

/// The length of the code span that begins with this many backticks, if it ends on this line.
fn span(text: &str, ticks: usize) -> Option<usize> {
    let mut at = ticks;
    loop {
        at += text[at..].find('`')?;
        let run = text[at..].len() - text[at..].trim_start_matches('`').len();
        at += run;
        if run == ticks {
            return Some(at);
        }
    }
}

/// `<https://…>`
fn is_link(text: &str) -> bool {
    let end = text[1..].find(['<', '>', '`']).map_or("", |end| &text[1 + end..]);
    ["<http://", "<https://"].iter().any(|scheme| text.starts_with(scheme)) && end.starts_with('>')
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
