//! Which stretches of a Markdown text are prose and which are code: facts and commands are looked for differently in
//! each. No full parser: readers differ in the corners, so what may be code to one of them is code here.

use crate::base::text::fences::{Fence, fence};
use std::collections::HashMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceKind {
    Prose,
    /// Between backticks.
    Span,
    /// A line of a fence, or an indented one.
    Code,
}

/// A stretch of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    pub kind: PieceKind,
    pub text: &'a str,
    /// Is it the first of a paragraph, an item or a heading? Its marker is left out.
    pub begins: bool,
}

/// The pieces of a text in order, without markers of lists, quotes and headings, and without the lines of fences.
/// Linear in the length of the text.
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut open: Option<Fence> = None;
    let mut paragraph: Option<(usize, usize)> = None;
    let (mut after_blank, mut in_list) = (true, false);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let inner = &line[marker(line)..];
        let is_blank = line.trim().is_empty();
        let fence = fence(inner.trim().as_bytes());
        if let Some(first) = open {
            match fence {
                Some(fence) if fence.closes(&first) => open = None,
                _ => found.push(Piece { kind: PieceKind::Code, text: line.trim_end(), begins: true }),
            }
            after_blank = false;
            continue;
        }
        let has_marker = inner.len() < line.trim_start().len();
        let is_indented = line.starts_with("    ")
            || line.trim_start_matches(' ').starts_with('\t')
            || line.starts_with('\t');
        // In an item of a list, code is indented further.
        let is_deep = line.starts_with("        ") || line.starts_with("\t\t");
        if is_blank || fence.is_some() || has_marker || (is_indented && after_blank && (!in_list || is_deep))
        {
            close(text, &mut paragraph, &mut found);
        }
        match fence {
            Some(_) => open = fence,
            None if is_blank => {}
            None if is_indented && !has_marker && (!in_list || is_deep) && after_blank => {
                found.push(Piece { kind: PieceKind::Code, text: line.trim(), begins: true });
                // The lines that follow are code too.
                continue;
            }
            None => {
                let from = start + line.len() - inner.len();
                paragraph = Some((paragraph.map_or(from, |(first, _)| first), at));
                in_list = has_marker || (in_list && is_indented) || (in_list && !after_blank);
            }
        }
        after_blank = is_blank;
    }
    close(text, &mut paragraph, &mut found);
    found
}

fn close<'a>(text: &'a str, paragraph: &mut Option<(usize, usize)>, found: &mut Vec<Piece<'a>>) {
    let Some((from, to)) = paragraph.take() else { return };
    let text = &text[from..to];
    let runs = runs(text);
    // The next run of the same length, for each.
    let mut next = vec![None; runs.len()];
    let mut last = HashMap::new();
    for (n, (_, length)) in runs.iter().enumerate().rev() {
        next[n] = last.insert(*length, n);
    }
    let (mut at, mut n, mut begins) = (0, 0, true);
    let mut push = |kind, from: usize, to: usize| {
        if !text[from..to].trim().is_empty() {
            found.push(Piece { kind, text: &text[from..to], begins });
            begins = false;
        }
    };
    while let Some((start, length)) = runs.get(n).copied() {
        let Some(end) = next[n] else {
            n += 1;
            continue;
        };
        push(PieceKind::Prose, at, start);
        push(PieceKind::Span, start + length, runs[end].0);
        at = runs[end].0 + length;
        n = end + 1;
    }
    push(PieceKind::Prose, at, text.len());
}

/// The runs of backticks: where, and how long.
fn runs(text: &str) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for at in memchr::memchr_iter(b'`', text.as_bytes()) {
        match runs.last_mut() {
            Some((start, length)) if *start + *length == at => *length += 1,
            _ => runs.push((at, 1)),
        }
    }
    runs
}

/// How long the markers of quotes, lists, tasks and headings are that a line begins with, numbers of headings too.
fn marker(line: &str) -> usize {
    let mut rest = line.trim_start_matches([' ', '\t']);
    loop {
        let next = rest.trim_start_matches([' ', '\t']);
        let cut = match next.as_bytes().first() {
            Some(b'>') => 1,
            Some(b'-' | b'*' | b'+') if ends_word(&next[1..]) => 1,
            Some(b'#') => {
                let level = next.bytes().take_while(|byte| *byte == b'#').count();
                let text = next[level..].trim_start_matches([' ', '\t']);
                if level > 6 || !ends_word(&next[level..]) {
                    0
                } else {
                    next.len() - text.len() + numbering(text)
                }
            }
            Some(b'[') if ["[ ]", "[x]", "[X]"].iter().any(|task| next.starts_with(task)) => 3,
            Some(b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z') => enumerator(next),
            _ => 0,
        };
        if cut == 0 {
            // `**1. Words**`
            let bold = next.trim_start_matches(['*', '_']);
            let number = if bold.len() < next.len() && bold.starts_with(|c: char| c.is_ascii_digit()) {
                enumerator(bold)
            } else {
                0
            };
            return match number {
                0 => line.len() - next.len(),
                number => line.len() - bold.len() + number,
            };
        }
        rest = &next[cut..];
    }
}

/// `1.`, `12)`, `a)`: at most three digits, or one letter.
fn enumerator(text: &str) -> usize {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (length, marks) = match digits {
        0 => (1, [b')', b')']),
        digits => (digits, [b'.', b')']),
    };
    let is_one = digits <= 3
        && text.as_bytes().get(length).is_some_and(|byte| marks.contains(byte))
        && ends_word(&text[length + 1..]);
    if is_one { length + 1 } else { 0 }
}

/// The number of a heading: `2`, `2.`, `1.3`, `1.3.2)`. Larger numbers than 99 mean something.
fn numbering(text: &str) -> usize {
    let length = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let number = text[..length].trim_end_matches('.');
    let end = length + usize::from(text[length..].starts_with([')', ':']));
    let is_one = !number.is_empty()
        && number.split('.').all(|part| (1..=2).contains(&part.len()))
        && ends_word(&text[end..]);
    if is_one { end } else { 0 }
}

fn ends_word(rest: &str) -> bool {
    rest.chars().next().is_none_or(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let mark = |kind| match kind {
            PieceKind::Prose => "",
            PieceKind::Span => "s:",
            PieceKind::Code => "c:",
        };
        pieces(text).iter().map(|piece| format!("{}{}", mark(piece.kind), piece.text.trim())).collect()
    }

    #[test]
    fn prose_spans_and_fences_are_told_apart() {
        for (text, expected) in [
            ("a `b c` d", &["a", "s:b c", "d"][..]),
            ("a ``b ` c`` d", &["a", "s:b ` c", "d"]),
            ("a `b\nc` d", &["a", "s:b\nc", "d"]),
            ("a `b\n\nc` d", &["a `b", "c` d"]),
            ("```sh\nx y\n~~~\n```\nz", &["c:x y", "c:~~~", "z"]),
            ("- ~~~\n  x\n  ~~~\nz", &["c:x", "z"]),
            ("```\nopen", &["c:open"]),
            ("a\n\n    code x\n    more\n\nb", &["a", "c:code x", "c:more", "b"]),
            ("- a\n\n    still a\n", &["a", "still a"]),
            ("- a\n\n        code x\n", &["a", "c:code x"]),
            ("1. a\n2) b\n- c\n* [ ] d\n> e\n> - f", &["a", "b", "c", "d", "e", "f"]),
            ("# 1.2 A\n## 3) B\n### 404 C\n**1. D**", &["A", "B", "404 C", "D**"]),
            ("1234. is a number", &["1234. is a number"]),
            ("", &[]),
        ] {
            assert_eq!(told(text), expected, "{text:?}");
        }
    }

    #[test]
    fn many_backticks_cost_no_more_than_their_number() {
        let text: String = (1..1500).map(|n| "`".repeat(n) + " ").collect();
        assert!(!pieces(&text).is_empty());
        assert_eq!(pieces(&"` ".repeat(200_000)).len(), 0);
    }
}
