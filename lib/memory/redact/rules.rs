//! What `rules.txt` says: the file explains itself.

use memchr::memmem;

use crate::memory::redact::chars::Class;

const TEXT: &str = include_str!("rules.txt");

/// A line of the first two sections.
pub(super) struct Rule {
    pub(super) kind: &'static str,
    pub(super) check: &'static str,
    pub(super) pattern: Pattern,
    /// Of a program: where in its command line the secret is.
    pub(super) usage: &'static str,
}

/// What a secret looks like, and what is around it.
#[derive(Default)]
pub(super) struct Pattern {
    /// A match has one of these.
    pub(super) keywords: Vec<String>,
    pub(super) ignores_case: bool,
    /// It begins where a word begins.
    pub(super) edge: bool,
    pub(super) before: Option<Repeat>,
    /// What follows the keyword.
    pub(super) runs: Vec<Repeat>,
    /// The runs that are the secret; without them it is all.
    pub(super) group: Option<(usize, usize)>,
}

/// Characters of one class: the number of the class, the fewest and the most.
#[derive(Clone, Copy)]
pub(super) struct Repeat {
    pub(super) class: usize,
    pub(super) least: usize,
    pub(super) most: usize,
}

/// The classes of all patterns, each with how it is written.
pub(super) type Classes = Vec<(&'static str, Class)>;

/// The lines of a section without comments, each with those that continue it.
pub(super) fn section(name: &str) -> impl Iterator<Item = &'static str> {
    let header = format!("\n[{name}]\n");
    let start = memmem::find(TEXT.as_bytes(), header.as_bytes()).map_or(TEXT.len(), |at| at + header.len());
    let mut rest = &TEXT[start..];
    let lines = std::iter::from_fn(move || {
        let end = memchr::memchr_iter(b'\n', rest.as_bytes()).find(|at| !rest[*at..].starts_with("\n "))?;
        let line = &rest[..end];
        rest = &rest[end + 1..];
        Some(line)
    });
    lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The words of a section.
pub(super) fn words(section_name: &str) -> Vec<&'static str> {
    section(section_name).flat_map(str::split_whitespace).collect()
}

/// All rules, in their order, and the classes of their patterns. What cannot be read is left out; a test looks for it.
pub(super) fn all() -> (Vec<Rule>, Classes) {
    let mut classes = Classes::new();
    let mut rules: Vec<Rule> = section("rules").filter_map(|line| rule(line, &mut classes)).collect();
    rules.extend(section("commands").filter_map(command));
    (rules, classes)
}

fn rule(line: &'static str, classes: &mut Classes) -> Option<Rule> {
    let (kind, rest) = line.split_once(' ')?;
    let (check, pattern) = rest.trim_start().split_once(' ')?;
    Some(Rule { kind, check, pattern: Pattern::read(pattern.trim_start(), classes)?, usage: "" })
}

fn command(line: &'static str) -> Option<Rule> {
    let (programs, usage) = line.split_once("  ")?;
    let keywords = programs.split('|').map(|program| format!("{program} ")).collect();
    let pattern = Pattern { keywords, ignores_case: true, edge: true, ..Pattern::default() };
    let kind = if usage.ends_with("=*") { "cookie" } else { "password" };
    Some(Rule { kind, check: "command", pattern, usage: usage.trim_start() })
}

impl Pattern {
    fn read(text: &'static str, classes: &mut Classes) -> Option<Pattern> {
        let (text, ignores_case) = text.strip_prefix("(?i)").map_or((text, false), |text| (text, true));
        let (mut rest, edge) = text.strip_prefix(r"\b").map_or((text, false), |text| (text, true));
        let mut pattern = Pattern { keywords: vec![String::new()], ignores_case, edge, ..Pattern::default() };
        while let Some(first) = rest.chars().next() {
            let many = pattern.runs.len();
            let plain = if many == 0 && pattern.group.is_none() { plain(rest) } else { "" };
            if first == '\n' {
                rest = rest.trim_start();
            } else if let Some(inside) = rest.strip_prefix("(?:") {
                let (words, behind) = inside.split_once(')').filter(|_| many == 0)?;
                let starts = std::mem::take(&mut pattern.keywords);
                let longer = |start| words.split('|').map(move |word| format!("{start}{}", literal(word)));
                pattern.keywords = starts.iter().flat_map(longer).collect();
                rest = behind;
            } else if first == '(' || first == ')' {
                pattern.group = Some((if first == '(' { many } else { pattern.group?.0 }, many));
                rest = &rest[1..];
            } else if !plain.is_empty() {
                pattern.keywords.iter_mut().for_each(|keyword| keyword.push_str(&literal(plain)));
                rest = &rest[plain.len()..];
            } else {
                let end = match first {
                    '[' => rest.find(']')? + 1,
                    '\\' => 2,
                    _ => first.len_utf8(),
                };
                let (set, behind) = rest.split_at(end);
                let (least, most, behind) = times(behind)?;
                let run = Repeat { class: class(set, classes), least, most };
                if pattern.keywords[0].is_empty() {
                    pattern.before = Some(run);
                } else {
                    pattern.runs.push(run);
                }
                rest = behind;
            }
        }
        pattern.keywords.iter().all(|keyword| keyword.len() > 1).then_some(pattern)
    }
}

/// The text up to the first group, class or line break.
fn plain(text: &str) -> &str {
    let ends =
        |at: usize| matches!(text.as_bytes()[at..], [b'[' | b'(' | b')' | b'\n', ..] | [b'\\', b'w', ..]);
    &text[..(0..text.len()).find(|at| ends(*at)).unwrap_or(text.len())]
}

/// A text as it is to be found: it may begin in a line that continues another.
fn literal(text: &str) -> String {
    text.strip_prefix('\n').map_or(text, str::trim_start).replace('\\', "")
}

/// How often the class before it comes, and the rest: `{4}`, `{4,}`, `{4,8}`, `?`, or nothing.
fn times(rest: &'static str) -> Option<(usize, usize, &'static str)> {
    if let Some(behind) = rest.strip_prefix('?') {
        return Some((0, 1, behind));
    }
    let Some(inside) = rest.strip_prefix('{') else { return Some((1, 1, rest)) };
    let (said, behind) = inside.split_once('}')?;
    let (least, most) = match said.split_once(',') {
        Some((least, "")) => (least.parse().ok()?, usize::MAX),
        Some((least, most)) => (least.parse().ok()?, most.parse().ok()?),
        None => (said.parse().ok()?, said.parse().ok()?),
    };
    Some((least, most, behind))
}

/// The number of a class.
fn class(set: &'static str, classes: &mut Classes) -> usize {
    classes.iter().position(|(known, _)| *known == set).unwrap_or_else(|| {
        let inside = set.strip_prefix('[').and_then(|set| set.strip_suffix(']')).unwrap_or(set);
        classes.push((set, Class::of(inside)));
        classes.len() - 1
    })
}
