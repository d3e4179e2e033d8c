//! Lines of code: which of a file's lines a note speaks of, and whether they still say the same, wherever they are now. No I/O.
//!
//! A mark on each note whose file has changed at all would soon be read by nobody. So a note rests on what it says: its names,
//! numbers, quotations and words of prose, each where it stands in the code. What it says of a definition is looked for in that
//! definition, the rest in the file. Only a value and a list that the note names must stay as they are, to the letter.

use crate::base::packed::checksum;
use crate::base::text::{collapsed, find_whole, is_word};
use crate::memory::code::said::{Said, WORD, in_parentheses, is_number, kept, stand_in, strings, words};
use crate::store::entry::{Anchor, Lines};
use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A name or a quotation that stands in more lines says nothing about any of them.
pub(super) const FEW: usize = 3;
/// Of so many lines of a definition, or of the rest of a file, the words are kept.
const SAID: usize = 8;
/// The shortest list.
const LIST: usize = 3;
/// A definition of the same name is looked for so often.
const NAMESAKES: usize = 8;

/// What stands before a name that is defined.
const DEFINING: [&str; 22] = [
    "class", "const", "def", "define", "enum", "fn", "func", "function", "fun", "interface", "let",
    "macro_rules", "mod", "module", "package", "proc", "static", "struct", "sub", "trait", "type", "var",
];
/// What begins a statement that only looks like a definition.
const STATEMENTS: [&str; 7] = ["return", "await", "throw", "new", "if", "else", "yield"];
/// What stands before the name of an item of a list.
const QUALIFIERS: [&str; 6] = ["pub", "public", "private", "readonly", "const", "static"];

/// Sums of lines are put together with it.
const FACTOR: u64 = 0x0000_0100_0000_01b3;

/// A file as it is now.
pub struct CodeFile {
    text: String,
    sums: OnceCell<Vec<u64>>,
}

impl CodeFile {
    pub(super) fn new(text: String) -> CodeFile {
        CodeFile { text, sums: OnceCell::new() }
    }

    /// Does it still have what an anchor says, wherever?
    pub(super) fn holds(&self, anchor: &Anchor) -> bool {
        if anchor.name.is_none() && anchor.says.is_none() {
            return has_lines(self.sums.get_or_init(|| sums(&self.text.lines().collect::<Vec<_>>())), anchor);
        }
        // Most files that code may have moved to have nothing of it.
        if anchor.name.as_ref().is_some_and(|name| !self.text.contains(name.as_str())) {
            return false;
        }
        let lines: Vec<&str> = self.text.lines().collect();
        let says = |lines: &[&str]| {
            anchor.says.iter().flat_map(|says| says.split(" | ")).all(|words| stand_in(lines, words))
        };
        match &anchor.name {
            None => says(&lines),
            Some(name) => definitions(&lines, name).take(NAMESAKES).any(|(first, last)| {
                let lines = &lines[first..=last];
                let header = || header(lines, name).map(|header| header_hash(&header));
                says(lines) && (anchor.hash.is_none() || header() == anchor.hash)
            }),
        }
    }
}

/// A sum for each line.
fn sums(lines: &[&str]) -> Vec<u64> {
    lines.iter().map(|line| checksum(collapsed(line).as_bytes())).collect()
}

/// What an anchor says of these lines.
pub(super) fn hash_of(lines: &[&str]) -> String {
    format!("{:016x}", sum_of(&sums(lines)))
}

fn sum_of(sums: &[u64]) -> u64 {
    sums.iter().fold(0, |all: u64, sum| all.wrapping_mul(FACTOR).wrapping_add(*sum))
}

fn has_lines(sums: &[u64], anchor: &Anchor) -> bool {
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

/// What a note says of a file, with how much it says of each place. The anchors have no path yet.
pub(super) fn anchors_in(said: &Said, file: &str) -> Vec<(usize, Anchor)> {
    let lines: Vec<&str> = file.lines().collect();
    let of_lines: Vec<BTreeSet<&str>> = lines.iter().map(|line| said.in_line(line)).collect();
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, found) in of_lines.iter().enumerate() {
        found.iter().for_each(|word| places.entry(word).or_default().push(at));
    }
    let file = SaidLines { said, lines: &lines, of_lines: &of_lines, places };
    let mut taken = vec![false; lines.len()];
    let mut all = file.definitions(&mut taken);
    all.extend(lists(said, &lines).into_iter().map(|(first, last)| file.exact(first, last)));
    for at in (0..lines.len()).filter(|_| !said.flags.is_empty()) {
        let anchor = |says| Anchor { says: Some(says), lines: place(at, at), ..Anchor::default() };
        all.extend(flags(said, lines[at]).map(|says| (said.flags.len(), anchor(says))));
    }
    all.extend(file.loose(&taken));
    all
}

/// A file, and what of a note stands in its lines.
struct SaidLines<'f> {
    said: &'f Said,
    lines: &'f [&'f str],
    of_lines: &'f [BTreeSet<&'f str>],
    /// The lines that each word stands in.
    places: BTreeMap<&'f str, Vec<usize>>,
}

impl SaidLines<'_> {
    /// Lines that count to the letter.
    fn exact(&self, first: usize, last: usize) -> (usize, Anchor) {
        let hash = Some(hash_of(&self.lines[first..=last]));
        let weight = 2 + self.of_lines[first].len() + last - first;
        (weight, Anchor { hash, lines: place(first, last), ..Anchor::default() })
    }

    /// The definitions of names, the innermost first: it has what stands in a line. `taken`: the lines that are in one.
    fn definitions(&self, taken: &mut [bool]) -> Vec<(usize, Anchor)> {
        let SaidLines { said, lines, of_lines, places } = self;
        let mut blocks: Vec<(usize, usize, &str)> = Vec::new();
        for (name, found) in places.iter().filter(|(name, _)| name.len() >= WORD && !is_number(name)) {
            let found: Vec<usize> = found.iter().copied().filter(|at| defines(lines, *at, name)).collect();
            let few = found.iter().filter(|_| found.len() <= FEW);
            blocks.extend(few.map(|at| (*at, end_of(lines, *at), *name)));
        }
        blocks.sort_by_key(|(first, last, _)| (last - first, *first));
        let mut all = Vec::new();
        for &(first, last, name) in &blocks {
            if first == last {
                // A value counts to the letter, if the note says more of it than its name.
                let is_part = blocks.iter().any(|other| other.0 < first && last <= other.1);
                let is_told = of_lines[first].len() > 1 || said.text.contains(&format!("{name} = "));
                if is_told && !is_part && !std::mem::replace(&mut taken[first], true) {
                    all.push(self.exact(first, last));
                }
                continue;
            }
            let header = header(&lines[first..=last], name).filter(|header| is_given(said, name, header));
            // A header that counts to the letter says it all, however it is broken into lines.
            let body = header.as_ref().map_or(first, |header| first + 1 + header.matches('\n').count());
            taken[first..body].fill(true);
            let inside = (body..=last).filter(|at| !std::mem::replace(&mut taken[*at], true));
            let mut found: Vec<_> = inside.map(|at| said.all_in_line(lines[at])).collect();
            found.iter_mut().for_each(|words| _ = words.remove(name));
            let is_rare = |word: &&str| {
                word.len() > 1 && found.iter().filter(|words| words.contains(word)).count() < FEW
            };
            let is_telling = |words: &&BTreeSet<&str>| {
                words.len() > 1 || words.iter().any(|word| places.contains_key(word) && is_rare(word))
            };
            let (weight, says) = most_of(found.iter().filter(is_telling).cloned().collect());
            let hash = header.map(|header| header_hash(&header));
            let weight = weight + 1 + if hash.is_some() { of_lines[first].len() } else { 0 };
            let name = Some(name.to_owned());
            all.push((weight, Anchor { name, hash, says, lines: place(first, last), ..Anchor::default() }));
        }
        all
    }

    /// What stands in no definition that the note names: a rare word, or several in one line.
    fn loose(&self, taken: &[bool]) -> Option<(usize, Anchor)> {
        let mut loose: BTreeSet<usize> = BTreeSet::new();
        for (word, found) in self.places.iter().filter(|(_, found)| found.iter().all(|at| !taken[*at])) {
            let is_rare = found.len() <= FEW && word.len() >= if is_number(word) { 3 } else { WORD };
            let best = found.iter().max_by_key(|at| (self.of_lines[**at].len(), Reverse(**at)));
            loose.extend(best.filter(|at| is_rare || self.of_lines[**at].len() > 1));
        }
        let first = *loose.first()?;
        let (weight, says) = most_of(loose.iter().map(|at| self.said.all_in_line(self.lines[*at])).collect());
        Some((weight, Anchor { says, lines: place(first, first), ..Anchor::default() }))
    }
}

/// Lines as an anchor keeps them, counted from 1.
fn place(first: usize, last: usize) -> Option<Lines> {
    Some(Lines { first: first + 1, last: last + 1 })
}

/// The lines with the most words, as an anchor keeps them, and how many words they have.
fn most_of(mut found: Vec<BTreeSet<&str>>) -> (usize, Option<String>) {
    found.sort_by_key(|words| Reverse(words.len()));
    found.truncate(SAID);
    let weight = found.iter().map(BTreeSet::len).sum();
    let found = Vec::from_iter(BTreeSet::from_iter(found.iter().map(kept))).join(" | ");
    (weight, Some(found).filter(|found| !found.is_empty()))
}

/// Where the definition is now that an anchor is in.
pub(super) fn definition_of(lines: &[&str], anchor: &Anchor) -> Option<Lines> {
    definitions(lines, anchor.name.as_deref()?).next().and_then(|(first, last)| place(first, last))
}

/// What stands in the parentheses after the name that a definition begins with.
fn header(definition: &[&str], name: &str) -> Option<String> {
    let first = definition[0];
    let after = find_whole(first, name, is_word)? + name.len();
    let start = after + first[after..].find('(')?;
    in_parentheses(&definition.join("\n")[start..]).map(str::to_owned)
}

/// Line breaks and indentation do not count, nor does a comma at the end.
fn header_hash(header: &str) -> String {
    let header: String = header.split_whitespace().collect();
    hash_of(&[header.trim_end_matches(',')])
}

/// Does a text give the parameters of a definition: in parentheses after its name, or as a list?
fn is_given(said: &Said, name: &str, header: &str) -> bool {
    let (header, mut depth) = (header.replace("->", " ").replace("=>", " "), 0);
    let parameters = header.split(|c| {
        depth += match c {
            '(' | '[' | '{' | '<' => 1,
            ')' | ']' | '}' | '>' => -1,
            _ => 0,
        };
        c == ',' && depth == 0
    });
    let parameters = parameters.map(|one| words(one).collect::<Vec<_>>());
    let parameters: Vec<_> =
        parameters.filter(|words| !words.is_empty() && !words.contains(&"self")).collect();
    let given = said.parameters_of(name);
    names_all(&parameters, |word| given.contains(word)) || is_list(said, &parameters)
}

/// Does a text name all of these items, or all but one of a long list? Each has several words that may name it.
fn names_all<'w>(items: &[Vec<&'w str>], says: impl Fn(&str) -> bool) -> bool {
    let mut named: BTreeSet<&'w str> = BTreeSet::new();
    let is_named = |words: &&Vec<&'w str>| words.iter().any(|word| says(word) && named.insert(word));
    let count = items.iter().filter(is_named).count();
    count > 0 && count + usize::from(items.len() > LIST) >= items.len()
}

fn is_list(said: &Said, items: &[Vec<&str>]) -> bool {
    items.len() >= LIST
        && names_all(items, |word| said.names.contains(word) || said.words.contains(word))
        && items.iter().flatten().any(|word| said.names.contains(*word))
}

/// Lists of which a text names all items but one at most: fields, variants. With the line after each, where one more would be.
fn lists(said: &Said, lines: &[&str]) -> Vec<(usize, usize)> {
    let code: Vec<usize> =
        (0..lines.len()).filter(|at| !is_comment(lines[*at]) && !lines[*at].trim().is_empty()).collect();
    let mut lists = Vec::new();
    for run in code.chunk_by(|a, b| indent(lines[*a]) == indent(lines[*b])) {
        if is_list(said, &run.iter().map(|at| items(lines[*at]).collect()).collect::<Vec<_>>()) {
            let last = run[run.len() - 1];
            lists.push((run[0], code.iter().copied().find(|at| *at > last).unwrap_or(last)));
        }
    }
    lists
}

/// Strings of flags, as getopt takes them, of which a text names as many: `"ab:t:"`. With their quotes, and in one word: such a
/// string stands in other files, too, and is not looked for there.
fn flags(said: &Said, line: &str) -> impl Iterator<Item = String> {
    let is_one = |string: &&str| {
        let flags = string.split("").filter(|flag| !matches!(*flag, "" | ":"));
        let flags: Vec<_> = flags.map(|flag| vec![flag]).collect();
        flags.len() > 1 && names_all(&flags, |flag| said.flags.contains(flag))
    };
    strings(line).filter(is_one).map(|string| format!("\"{string}\""))
}

/// The words of a line that may name an item: its first, and in C its last.
fn items(line: &str) -> impl Iterator<Item = &str> {
    let first = words(line).find(|word| !QUALIFIERS.contains(word));
    let last = line.trim_end().strip_suffix([';', ',']).and_then(|line| words(line).last());
    first.into_iter().chain(last)
}

fn is_comment(line: &str) -> bool {
    ["#", "//", "/*", "*", "--", "\"\"\""].iter().any(|mark| line.trim_start().starts_with(mark))
}

/// Does the line define this name: as a function, a type, a value, a key, a target?
fn defines(lines: &[&str], at: usize, name: &str) -> bool {
    let line = lines[at];
    let Some(start) = find_whole(line, name, is_word) else { return false };
    let (before, after) = (line[..start].trim_start(), line[start + name.len()..].trim_start());
    let before =
        before.strip_prefix("pub(").and_then(|rest| rest.split_once(')')).map_or(before, |(_, rest)| rest);
    let is_method = before.starts_with("func (");
    if words(before).any(|word| DEFINING.contains(&word)) && (is_method || !before.contains(['(', '='])) {
        return true;
    }
    if after.starts_with('(') {
        let is_statement = words(before).next().is_some_and(|word| STATEMENTS.contains(&word));
        let is_plain = before.chars().all(|c| is_word(c) || " \t*&<>[]:,.".contains(c));
        // In C the brace may have a line of its own.
        let next = || {
            lines[at + 1..].iter().find(|line| indent(line) == 0).is_some_and(|line| line.starts_with('{'))
        };
        return is_plain && !is_statement && (line.trim_end().ends_with('{') || indent(line) == 0 && next());
    }
    let after = after.trim_start_matches(['"', '\'']).trim_start();
    let is_value = after.starts_with(['=', ':']) && !after.starts_with("==") && !after.starts_with("::");
    let is_first = before.chars().all(|c| "\"'-*&@$. \t".contains(c));
    let is_path =
        || before.ends_with('.') && before.chars().all(|c| is_word(c) || c == '.') && after.starts_with('=');
    is_value && (is_first || is_path())
}

/// The definitions of a name, from the first line to the last.
fn definitions<'l>(lines: &'l [&str], name: &'l str) -> impl Iterator<Item = (usize, usize)> + 'l {
    (0..lines.len()).filter(|at| defines(lines, *at, name)).map(|at| (at, end_of(lines, at)))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Where what begins in a line ends, by its indentation.
fn end_of(lines: &[&str], first: usize) -> usize {
    let margin = indent(lines[first]);
    let mut last = first;
    for (at, line) in lines.iter().enumerate().skip(first + 1) {
        let text = line.trim();
        if text.is_empty() {
            continue;
        }
        if indent(line) <= margin && text != "{" {
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
    last
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

    /// What a note says of a file: `3-3` is a value or list that counts to the letter.
    fn anchors(text: &str, file: &str) -> Vec<String> {
        let shown = |(_, anchor): (usize, Anchor)| {
            let name = anchor.name.map(|name| format!(" in {name}")).unwrap_or_default();
            let says = anchor.says.map(|says| format!(": {says}")).unwrap_or_default();
            format!("{}{name}{says}", anchor.lines.unwrap())
        };
        anchors_in(&Said::of(text), file).into_iter().map(shown).collect()
    }

    /// What a note about code says still stands there after a change of it.
    #[track_caller]
    fn check(text: &str, old: &str, now: &str, holds: bool) {
        let anchors = anchors_in(&Said::of(text), old);
        let file = |text: &str| CodeFile::new(text.to_owned());
        assert!(
            !anchors.is_empty() && anchors.iter().all(|(_, anchor)| file(old).holds(anchor)),
            "{text}: {anchors:?}"
        );
        assert_eq!(anchors.iter().all(|(_, anchor)| file(now).holds(anchor)), holds, "{text}: {anchors:?}");
    }

    #[test]
    fn a_text_names_definitions_and_quoted_lines() {
        let yaml = "services:\n  web:\n    port: 4310\n    image: x\n  db:\n    port: 5432\n";
        let make = "all:\n\tcc a.c\nstage: all\n\t./deploy --stage\n\nfmt:\n\tx\n";
        let js = "export class Door {\n  async openDoor(key) {\n    return key;\n  }\n}\nopenDoor(1);\n";
        let c =
            "/* Opens. */\nstatic int\nopen_door(struct door *d,\n    u_int key)\n{\n\treturn (key);\n}\n";
        for (text, file, expected) in [
            ("The pool has 20 connections (`POOL_SIZE`).", CODE, &["3-3"][..]),
            ("The size is in `POOL_SIZE`.", CODE, &["3-3: POOL_SIZE"]),
            ("`retry_upload` sends five times", CODE, &["6-13 in retry_upload"]),
            (
                "retry_upload tries each attempt on the client",
                CODE,
                &["6-13 in retry_upload: attempt + client"],
            ),
            ("It tries `for attempt in 0..5`", CODE, &["9-9: 0..5 + attempt + for attempt in 0..5"]),
            ("The client retries five times in src/upload.rs", CODE, &[]),
            ("Read `src/upload.rs`.", CODE, &[]),
            ("Deploy with `make stage`", make, &["3-4 in stage"]),
            ("`openDoor` returns the key", js, &["2-4 in openDoor"]),
            ("The web port is `port: 4310`", yaml, &["3-3"]),
            ("`open_door` needs a key", c, &["3-7 in open_door"]),
        ] {
            assert_eq!(anchors(text, file), expected, "{text}");
        }
        assert_eq!(anchors("`step_one`", &"step_one()\n".repeat(4)), [""; 0]);
    }

    #[test]
    fn what_a_note_says_counts_and_nothing_else() {
        let retries = "`retry_upload` sends each attempt five times (`0..5`)";
        check(retries, CODE, &CODE.replace("client: &Client,", "client: &mut Client, more: bool,"), true);
        check(retries, CODE, &CODE.replace("    Ok(())", "    log(attempt);\n    Ok(())"), true);
        check(retries, CODE, &CODE.replace("0..5", "0..50"), false);
        check(retries, CODE, &CODE.replace("client.send(attempt)", "client.put()"), false);
        check(retries, CODE, &CODE.replace("retry_upload", "upload"), false);
        let parts = "fn read() {\n    let tree = HTMLParser::tree(0x10, v1.2, xport: 43100);\n}\n";
        check("`read` parses a tree of HTML (`port: 4310`, 0x10, v1.2)", parts, parts, true);
        let size = "POOL_SIZE is 20";
        check(size, CODE, &format!("mod a;\n{}", CODE.replace("const", "    const")), true);
        check(size, CODE, &CODE.replace("20", "30"), false);
        let list =
            "struct Door {\n    /// Old.\n    colour: u8,\n    lock: u8,\n    is_open: bool,\n}\nfn x() {}\n";
        let says = "A door has colour, lock and is_open.";
        check(says, list, &list.replace("fn x", "fn y"), true);
        check(says, list, &list.replace("bool,", "bool,\n    bell: u8,"), false);
        let calls = "fn f() {\n    redirect(code, url);\n    let limit = 300s;\n}\n";
        check("Call redirect(code, url) first", calls, &calls.replace("code, url", "url, code"), false);
        check("Call redirect(code, url) first", calls, &calls.replace("300", "600"), true);
        check("It waits 300 seconds", calls, &calls.replace("300", "3000"), false);
        let signature = "`retry_upload(client: &Client)` sends each attempt";
        check(signature, CODE, &CODE.replace("\n    client: &Client,\n", "client: &Client"), true);
        check(signature, CODE, &CODE.replace("&Client,\n", "&Client,\n    more: bool,\n"), false);
        let go = "func (d *Door) Open(key *Key, turns int,\n\twait func(a, b int) bool, log bool) error {\n\treturn nil\n}\n";
        let more = go.replace("log bool", "log bool, bell bool");
        for says in [
            "Call Open(key, turns, wait, log)",
            "`Open` takes `key`, turns and wait",
            "Open(key, turns, wait)",
        ] {
            check(says, go, &go.replace("nil", "d.open(key)").replace(",\n\t", ", "), true);
            check(says, go, &more, false);
        }
        check("`Open` turns the key", go, &more, true);
        let flags = "static struct entry door = {\n\t.args = { \"ab:t:\", 0, 1 },\n\t.flags = 0\n};\n";
        check("It takes -a, -b and -t, nothing else", flags, &flags.replace("\"ab", "\"afb"), false);
        check("It takes -a, -b and -t, nothing else", flags, &flags.replace("flags = 0", "flags = 1"), true);
        let value = "It is TAIL = r\"[.]x\", so";
        check(value, "TAIL = r\"[.]x\"\n", "TAIL = r\"[.](x|y)\"\n", false);
        let error = "fn f() {\n    fail(\"no key for it\");\n}\n";
        check("It says \"no key for it\"", error, &error.replace("for it", "for that"), false);
        let two = "class Door:\n    def open_it(self):\n        key()\n\nclass Gate:\n    def open_it(self):\n        lock(door)\n";
        check("`Gate.open_it` locks the door", two, &two.replace("key()", "bell()"), true);
        check("`Gate.open_it` locks the door", two, &two.replace("lock(door)", "bell()"), false);
    }

    #[test]
    fn lines_are_found_wherever_they_are_and_however_indented() {
        let anchor = |first: usize, last: usize| {
            let lines: Vec<&str> = CODE.lines().collect();
            let hash = Some(hash_of(&lines[first - 1..last]));
            Anchor { hash, lines: Some(Lines { first, last }), ..Anchor::default() }
        };
        let block = anchor(6, 13);
        let holds = |text: &str, anchor: &Anchor| CodeFile::new(text.to_owned()).holds(anchor);
        assert!(holds(CODE, &block));
        let moved = CODE.replace("use std::io;", "mod x {\n\n").replace('\n', "\r\n    ");
        assert!(holds(&moved, &block));
        assert!(!holds(&CODE.replace("0..5", "0..8"), &block));
        assert!(!holds("", &block) && !holds("", &anchor(1, 1)));
        for line in 1..=CODE.lines().count() {
            assert!(holds(CODE, &anchor(line, line)), "{line}");
        }
        let whole = Anchor { hash: Some(hash_of(&CODE.lines().collect::<Vec<_>>())), ..Anchor::default() };
        assert!(holds(CODE, &whole) && !holds(&CODE[1..], &whole));
        // Anchors are kept in notes, so that this must never change.
        assert_eq!(anchor(3, 3).hash.unwrap(), "5c33c7a3fe0fbbf5");
    }
}
