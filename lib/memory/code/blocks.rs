//! Lines of code: which of a file's lines a text names, and whether lines are still in a file, wherever they are now. No I/O.
//!
//! A mark on each note whose file has changed at all would soon be read by nobody. So a note is anchored to what it names: to
//! the definition of a name, or to lines that it quotes.

use crate::base::packed::checksum;
use crate::memory::search::code_of;
use crate::memory::search::language::is_stop_word;
use crate::store::entry::{Anchor, Lines};
use std::collections::BTreeSet;

/// A name or a quotation that stands in more lines says nothing about any of them.
const FEW: usize = 3;
/// So many pieces of code and names of a text count, and so many places in one file.
const MENTIONS: usize = 40;
const PLACES: usize = 3;
/// The longest definition that counts as a whole, in lines: of a longer one, its first line counts.
const DEFINITION: usize = 30;
/// A shorter quotation stands in other lines by chance, in bytes.
const QUOTATION: usize = 8;
/// Shorter names, too.
const NAME: usize = 4;

/// Words of programming languages, which name nothing.
const KEYWORDS: &str = " abstract async await bool boolean break case catch char class const continue default define delete \
    double elif else enum export extends false final finally float from func function global impl import include int interface \
    lambda long match module mutable namespace none null number override package private protected public raise readonly return \
    self static string struct super switch template this throw throws trait true type typedef typeof undefined union unless \
    until uses using virtual void volatile when where while with yield ";
/// What stands before a name that is defined.
const DEFINING: [&str; 22] = [
    "class", "const", "def", "define", "enum", "fn", "func", "function", "fun", "interface", "let",
    "macro_rules", "mod", "module", "package", "proc", "static", "struct", "sub", "trait", "type", "var",
];
/// What begins a statement that only looks like a definition.
const STATEMENTS: [&str; 7] = ["return", "await", "throw", "new", "if", "else", "yield"];

/// Sums of lines are put together with it.
const FACTOR: u64 = 0x0000_0100_0000_01b3;

/// A sum for each line of a text, the same however it is indented.
pub(super) fn sums(text: &str) -> Vec<u64> {
    text.lines().map(|line| checksum(collapsed(line).as_bytes())).collect()
}

fn collapsed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What an anchor says of lines with these sums.
pub(super) fn hash_of(sums: &[u64]) -> String {
    format!("{:016x}", sum_of(sums))
}

fn sum_of(sums: &[u64]) -> u64 {
    sums.iter().fold(0, |all: u64, sum| all.wrapping_mul(FACTOR).wrapping_add(*sum))
}

/// Are the lines of an anchor in a file with these sums, wherever?
pub(super) fn holds(sums: &[u64], anchor: &Anchor) -> bool {
    let Some(hash) = &anchor.hash else { return true };
    let Ok(wanted) = u64::from_str_radix(hash, 16) else { return false };
    let Some(count) = anchor.lines.map(Lines::count) else { return sum_of(sums) == wanted };
    let Some(first) = sums.get(..count) else { return false };
    let leaves = first.iter().fold(1, |factor: u64, _| factor.wrapping_mul(FACTOR));
    let mut here = sum_of(first);
    here == wanted
        || sums.iter().zip(&sums[count..]).any(|(old, new)| {
            here = here.wrapping_mul(FACTOR).wrapping_add(*new).wrapping_sub(old.wrapping_mul(leaves));
            here == wanted
        })
}

/// The places of a file that a text names, those with the most names first.
pub(super) fn named_in(text: &str, file: &str) -> Vec<Lines> {
    let lines: Vec<&str> = file.lines().collect();
    let mentions = mentions(text);
    let few = |is_one: &dyn Fn(&str) -> bool| -> Vec<usize> {
        let found = lines.iter().enumerate().filter(|(_, line)| is_one(line)).map(|(at, _)| at);
        Some(found.take(FEW + 1).collect::<Vec<_>>()).filter(|found| found.len() <= FEW).unwrap_or_default()
    };
    let mut places: Vec<(usize, usize)> = Vec::new();
    // Of `Owner.member`, the owner only tells which of several members it is.
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for [owner, member] in mentions.iter().filter_map(|mention| mention.member) {
        let is_it = |at: &usize| defines(lines[*at], member) && is_within(&lines, *at, owner);
        let found: Vec<usize> = (0..lines.len()).filter(is_it).collect();
        if (1..=FEW).contains(&found.len()) {
            told.extend([owner, member]);
            places.extend(found.into_iter().map(|at| (at, end_of(&lines, at))));
        }
    }
    for Mention { quotation, names: all, .. } in &mentions {
        let names: Vec<&str> = all.iter().copied().filter(|name| !told.contains(name)).collect();
        if names.is_empty() && !all.is_empty() {
            continue;
        }
        let quoted = quotation.iter().flat_map(|quotation| few(&|line| collapsed(line).contains(quotation)));
        let mut found: Vec<usize> = quoted.collect();
        if found.is_empty() {
            found = names.iter().flat_map(|name| few(&|line| defines(line, name))).collect();
        }
        let is_definition = |at: usize| names.iter().any(|name| defines(lines[at], name));
        places.extend(
            found.into_iter().map(|at| (at, if is_definition(at) { end_of(&lines, at) } else { at })),
        );
    }
    // Only where nothing is defined or quoted, what is used.
    if places.is_empty() {
        let names = mentions.iter().flat_map(|mention| &mention.names);
        places =
            names.flat_map(|name| few(&|line| place_of(line, name).is_some())).map(|at| (at, at)).collect();
    }
    places.sort_unstable();
    let mut merged: Vec<(usize, usize, usize)> = Vec::new();
    for (first, last) in places {
        match merged.last_mut() {
            Some((_, end, names)) if first <= *end + 1 => (*end, *names) = (last.max(*end), *names + 1),
            _ => merged.push((first, last, 1)),
        }
    }
    merged.sort_by_key(|(.., names)| std::cmp::Reverse(*names));
    merged
        .into_iter()
        .take(PLACES)
        .map(|(first, last, _)| Lines { first: first + 1, last: last + 1 })
        .collect()
}

/// Code in a text, or a word of prose that can only be a name.
struct Mention<'a> {
    quotation: Option<String>,
    names: Vec<&'a str>,
    /// `Owner.member`, `owner::member`
    member: Option<[&'a str; 2]>,
}

fn mentions(text: &str) -> Vec<Mention<'_>> {
    let is_one = |word: &&str| is_name(word) && !KEYWORDS.contains(&format!(" {} ", word.to_lowercase()));
    // The name of a file says nothing about a place in it.
    let is_path = |code: &&str| !code.contains(char::is_whitespace) && code.contains('/');
    let code = code_of(text).into_iter().map(|code| code.trim().trim_start_matches("$ "));
    let of_code = code.filter(|code| !is_path(code)).map(|code| {
        let quotation = Some(collapsed(code))
            .filter(|line| line.len() >= QUOTATION && line.contains([' ', '=', '(', ':']));
        let path: Vec<&str> = code.split('(').next().unwrap_or(code).split(['.', ':', '#']).collect();
        let is_qualified = path.iter().all(|part| part.chars().all(is_word));
        let path: Vec<&str> = path.into_iter().filter(|part| !part.is_empty() && is_qualified).collect();
        let member = path.last_chunk().copied();
        Mention { quotation, names: words(code).filter(is_one).collect(), member }
    });
    let prose = words(text).filter(|word| is_one(word) && is_no_prose(word)).collect::<BTreeSet<_>>();
    let of_prose = prose.into_iter().map(|name| Mention { quotation: None, names: vec![name], member: None });
    of_code.take(MENTIONS).chain(of_prose.take(MENTIONS)).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_word(c))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_name(word: &str) -> bool {
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
    word.len() >= NAME && (is_number || !is_stop_word(&word.to_lowercase()))
}

/// `pool_size`, `poolSize`
fn is_no_prose(word: &str) -> bool {
    let has_hump = |pair: &[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
    word.trim_matches('_').contains('_') || word.as_bytes().windows(2).any(has_hump)
}

/// Where a name stands in a line, not as a part of another.
fn place_of(line: &str, name: &str) -> Option<usize> {
    line.match_indices(name)
        .map(|(at, _)| at)
        .find(|at| !line[..*at].ends_with(is_word) && !line[*at + name.len()..].starts_with(is_word))
}

/// Does the line define this name: as a function, a type, a value, a key, a target?
fn defines(line: &str, name: &str) -> bool {
    let Some(at) = place_of(line, name) else { return false };
    let (before, after) = (line[..at].trim_start(), line[at + name.len()..].trim_start());
    let is_method = before.starts_with("func (");
    if words(before).any(|word| DEFINING.contains(&word)) && (is_method || !before.contains(['(', '='])) {
        return true;
    }
    if after.starts_with('(') {
        let mut words = words(before).filter(|word| !word.is_empty());
        let is_statement = words.next().is_some_and(|word| STATEMENTS.contains(&word));
        let is_plain = before.chars().all(|c| is_word(c) || " \t*&<>[]:,.".contains(c));
        return line.trim_end().ends_with('{') && is_plain && !is_statement;
    }
    let is_first = before.chars().all(|c| "\"'-*&@$. \t".contains(c));
    let after = after.trim_start_matches(['"', '\'']).trim_start();
    is_first && after.starts_with(['=', ':']) && !after.starts_with("==") && !after.starts_with("::")
}

/// Does the line name this owner, or lie in what does?
fn is_within(lines: &[&str], at: usize, owner: &str) -> bool {
    let mut margin = usize::MAX;
    lines[..=at].iter().rev().filter(|line| !line.trim().is_empty()).any(|line| {
        let is_around = indent(line) < margin;
        if is_around {
            margin = indent(line);
        }
        is_around && place_of(line, owner).is_some()
    })
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Where what begins in a line ends, by its indentation. One that is too long ends with that line.
fn end_of(lines: &[&str], first: usize) -> usize {
    let margin = indent(lines[first]);
    let mut last = first;
    for (at, line) in lines.iter().enumerate().skip(first + 1).take(DEFINITION) {
        let text = line.trim();
        if text.is_empty() {
            continue;
        }
        if indent(line) <= margin {
            let is_end = text.starts_with(['}', ')', ']']) || text == "end";
            let goes_on = text.ends_with(['{', ':', '(']);
            if is_end && indent(line) == margin && last > first {
                last = at;
            }
            if is_end && goes_on {
                continue;
            }
            return last;
        }
        last = at;
    }
    if lines.len() > first + 1 + DEFINITION { first } else { last }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "\
use std::io;

const POOL_SIZE: usize = 20;

/// Retries.
pub fn retry_upload(
    client: &Client,
) -> io::Result<()> {
    for attempt in 0..5 {
        client.send(attempt)?;
    }
    Ok(())
}

fn other() {
    retry_upload(&client);
}
";

    fn places(text: &str, file: &str) -> String {
        named_in(text, file).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_text_names_definitions_and_quoted_lines() {
        let yaml = "services:\n  web:\n    port: 4310\n    image: x\n  db:\n    port: 5432\n";
        let make = "all:\n\tcc a.c\nstage: all\n\t./deploy --stage\n\nfmt:\n\tx\n";
        let js = "export class Door {\n  async openDoor(key) {\n    return key;\n  }\n}\nopenDoor(1);\n";
        for (text, file, expected) in [
            ("The pool has 20 connections (`POOL_SIZE`).", CODE, "3-3"),
            ("`retry_upload` tries five times", CODE, "6-13"),
            ("retry_upload tries five times", CODE, "6-13"),
            ("It tries `for attempt in 0..5`", CODE, "9-9"),
            ("The client retries five times in src/upload.rs", CODE, ""),
            ("Read `src/upload.rs`.", CODE, ""),
            ("`client.send(attempt)?` fails", CODE, "10-10"),
            ("Deploy with `make stage`", make, "3-4"),
            ("`openDoor` needs the key", js, "2-4"),
            ("The web port is `port: 4310`", yaml, "3-3"),
            ("`image` is x", yaml, "4-4"),
        ] {
            assert_eq!(places(text, file), expected, "{text}");
        }
        let two = "class Door:\n    def open_it(self):\n        pass\n\nclass Gate:\n    def open_it(self):\n        lock()\n";
        for text in ["`Gate.open_it` locks", "`Gate.open_it()` locks, so `open_it` is slow"] {
            assert_eq!(places(text, two), "6-7", "{text}");
        }
        let rust = "impl Door {\n    fn open() {}\n}\nimpl Gate {\n    fn open() {}\n}\nGate::open();\n";
        assert_eq!(places("`Gate::open` locks", rust), "5-5");
        let long = format!("fn long_one() {{\n{}}}\n", "    step();\n".repeat(50));
        assert_eq!(places("`long_one`", &long), "1-1");
        assert_eq!(places("`step_one`", &"step_one()\n".repeat(4)), "");
    }

    #[test]
    fn lines_are_found_wherever_they_are_and_however_indented() {
        let anchor = |first: usize, last: usize| {
            let sums = sums(CODE);
            let hash = Some(hash_of(&sums[first - 1..last]));
            Anchor { hash, lines: Some(Lines { first, last }), ..Anchor::default() }
        };
        let block = anchor(6, 13);
        assert!(holds(&sums(CODE), &block));
        let moved = CODE.replace("use std::io;", "mod x {\n\n").replace('\n', "\r\n    ");
        assert!(holds(&sums(&moved), &block));
        assert!(!holds(&sums(&CODE.replace("0..5", "0..8")), &block));
        assert!(!holds(&sums(""), &block) && !holds(&[], &anchor(1, 1)));
        for line in 1..=CODE.lines().count() {
            assert!(holds(&sums(CODE), &anchor(line, line)), "{line}");
        }
        let whole = Anchor { hash: Some(hash_of(&sums(CODE))), ..Anchor::default() };
        assert!(holds(&sums(CODE), &whole) && !holds(&sums(&CODE[1..]), &whole));
        // Anchors are kept in notes, so that this must never change.
        assert_eq!(anchor(3, 3).hash.unwrap(), "5c33c7a3fe0fbbf5");
    }
}
