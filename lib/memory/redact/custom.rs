//! The user's own patterns: regular expressions, tried line by line.

use regex_lite::{Regex, RegexBuilder};

use crate::base::error::{Error, Result};
use crate::base::text::{border, one_line};
use crate::memory::redact::near::{Certainty, Span};

/// The most patterns: more would be too slow.
const PATTERNS: usize = 100;
/// The longest pattern, in bytes.
const LENGTH: usize = 4096;
/// The most memory a compiled pattern may take, in bytes.
const COMPILED: usize = 1 << 20;
/// A longer line is searched in overlapping pieces: a search costs the pattern's size times the text's length, and
/// some patterns start one at each character.
const PIECE: usize = 16 * 1024;
const OVERLAP: usize = 1024;

pub(super) struct CustomPattern {
    regex: Regex,
    /// The start of all matches; empty if it is not known.
    prefix: String,
}

impl CustomPattern {
    /// Compiles all patterns. The error quotes the one that cannot be used.
    pub(super) fn all(patterns: &[String]) -> Result<Vec<CustomPattern>> {
        let many = patterns.len();
        if many > PATTERNS {
            return Err(Error::config(format!("{many} patterns: at most {PATTERNS} are allowed")));
        }
        let compile = |(at, pattern): (usize, &String)| {
            let fault =
                |why: &str| Error::config(format!("pattern {} '{}': {why}", at + 1, one_line(pattern, 60)));
            match pattern {
                empty if empty.is_empty() => Err(fault("it is empty")),
                long if long.len() > LENGTH => Err(fault(&format!("it is longer than {LENGTH} bytes"))),
                _ => RegexBuilder::new(pattern)
                    .size_limit(COMPILED)
                    .build()
                    .map(|regex| CustomPattern { regex, prefix: literal_prefix(pattern) })
                    .map_err(|e| fault(&one_line(&e.to_string(), 200))),
            }
        };
        patterns.iter().enumerate().map(compile).collect()
    }

    pub(super) fn find(&self, text: &str, spans: &mut Vec<Span>) {
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let mut from = 0;
            loop {
                let to = border(line, from + PIECE);
                self.find_in(&line[from..to], start + from, spans);
                if to == line.len() {
                    break;
                }
                from = border(line, to - OVERLAP);
            }
            start += line.len();
        }
    }

    fn find_in(&self, piece: &str, offset: usize, spans: &mut Vec<Span>) {
        let piece = piece.strip_suffix('\n').unwrap_or(piece);
        let piece = piece.strip_suffix('\r').unwrap_or(piece);
        if memchr::memmem::find(piece.as_bytes(), self.prefix.as_bytes()).is_none() {
            return;
        }
        for found in self.regex.captures_iter(piece) {
            // The secret is the first group, if it took part, or the whole match.
            if let Some(part) = found.get(1).or_else(|| found.get(0)).filter(|part| !part.is_empty()) {
                let (start, end) = (offset + part.start(), offset + part.end());
                spans.push(Span { start, end, kind: "custom", certainty: Certainty::Custom });
            }
        }
    }
}

/// The plain characters that the pattern begins with, which therefore begin every match: to look for them is far
/// faster than matching. Empty if flags or alternatives make it uncertain.
fn literal_prefix(pattern: &str) -> String {
    if pattern.contains(['|', '#']) || pattern.contains("(?") {
        return String::new();
    }
    let end = pattern.find(|c: char| r"\.+*?()[]{}^$".contains(c)).unwrap_or(pattern.len());
    let mut prefix = pattern[..end].to_owned();
    // `ab?`, `ab*`, `ab{0,2}`: the last character is optional.
    if pattern[end..].starts_with(['?', '*', '{']) {
        prefix.pop();
    }
    prefix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_begins_every_match() {
        for (pattern, expected) in [
            ("ACME-[0-9]{4}", "ACME-"),
            ("[A-Z]+@corp\\.example", ""),
            ("ab?cd", "a"),
            ("ab{0,2}c", "a"),
            ("ab+c", "ab"),
            ("x(abc)?y", "x"),
            ("(?i)acme", ""),
            ("ab|cd", ""),
            ("äö\\d", "äö"),
            ("\\bäö", ""),
            ("a.b", "a"),
            ("abc", "abc"),
        ] {
            assert_eq!(literal_prefix(pattern), expected, "{pattern}");
        }
    }
}
