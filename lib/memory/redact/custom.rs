//! The user's own patterns: regular expressions, tried line by line.

use regex_lite::{Regex, RegexBuilder};

use crate::base::error::{Error, Result};
use crate::base::text::{border, one_line};
use crate::memory::redact::span::{Certainty, Span};

/// More patterns than anybody needs, and as many as the speed allows.
const PATTERNS: usize = 100;
/// The longest pattern, in bytes.
const LENGTH: usize = 4096;
/// The most memory a compiled pattern may take, in bytes.
const COMPILED: usize = 1 << 20;
/// A line longer than this is searched in pieces, which overlap: a search costs the pattern's size times
/// the text's length, and some patterns begin one at each character.
const PIECE: usize = 16 * 1024;
const OVERLAP: usize = 1024;

pub(super) struct CustomPattern {
    regex: Regex,
    /// What stands in all its matches; empty if that is not known.
    literal: String,
}

impl CustomPattern {
    /// Compiles all patterns. The error quotes the one that cannot be used.
    pub(super) fn all(patterns: &[String]) -> Result<Vec<CustomPattern>> {
        if patterns.len() > PATTERNS {
            return Err(Error::config(format!(
                "{} patterns: at most {PATTERNS} are allowed",
                patterns.len()
            )));
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
                    .map(|regex| CustomPattern { regex, literal: literal(pattern) })
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
        if memchr::memmem::find(piece.as_bytes(), self.literal.as_bytes()).is_none() {
            return;
        }
        for found in self.regex.captures_iter(piece) {
            // A first group that took part is the secret, else all of it is.
            let Some(part) = found.get(1).or_else(|| found.get(0)) else { continue };
            if !part.is_empty() {
                let (start, end) = (offset + part.start(), offset + part.end());
                spans.push(Span { start, end, kind: "custom", certainty: Certainty::Custom });
            }
        }
    }
}

/// The longest run of plain characters outside all groups and classes, which therefore stands in every
/// match: looking for it is far faster than matching. Empty where flags or alternatives make it unsure.
fn literal(pattern: &str) -> String {
    if pattern.contains(['|', '#']) || pattern.contains("(?") {
        return String::new();
    }
    let (mut best, mut run, mut depth, mut class) = (String::new(), String::new(), 0, false);
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        let mut plain = None;
        match c {
            '\\' => {
                let escaped = rest.next();
                // `\.` is a dot; `\d`, `\b`, `\x41` and their kind are not what they look like.
                match escaped {
                    Some(sign) if sign.is_ascii_punctuation() => plain = Some(sign),
                    Some('x' | 'u' | 'U' | 'p' | 'P') => return String::new(),
                    _ => {}
                }
            }
            // Classes inside classes are more than is worth reading here.
            '[' if class => return String::new(),
            '[' => {
                class = true;
                // A bracket at the front is one of the characters.
                rest.next_if_eq(&'^');
                rest.next_if_eq(&']');
            }
            ']' if class => class = false,
            _ if class => {}
            '(' => depth += 1,
            ')' => depth -= 1,
            '.' | '^' | '$' | '*' | '+' | '?' => {}
            '{' => while rest.next().is_some_and(|c| c != '}') {},
            other => plain = Some(other),
        }
        // `a?`, `a*`, `a{0,2}`: perhaps not there.
        let repeated = matches!(rest.peek(), Some('?' | '*' | '{' | '+'));
        match plain {
            Some(c) if depth == 0 && !class && !repeated => run.push(c),
            _ => {
                if run.len() > best.len() {
                    best.clone_from(&run);
                }
                run.clear();
            }
        }
    }
    if run.len() > best.len() { run } else { best }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_literal_stands_in_every_match() {
        for (pattern, expected) in [
            ("ACME-[0-9]{4}", "ACME-"),
            ("[A-Z]+@corp\\.example", "@corp.example"),
            ("ab?cd", "cd"),
            ("ab{0,2}c", "a"),
            ("x(abc)?y", "x"),
            ("(?i)acme", ""),
            ("ab|cd", ""),
            ("\\bäö\\d", "äö"),
            ("\\x41b", ""),
            ("[[:alpha:]]x", ""),
            ("[]a]bcd", "bcd"),
            ("[^]a]bcd", "bcd"),
            ("a+b", "b"),
        ] {
            assert_eq!(literal(pattern), expected, "{pattern}");
        }
    }
}
