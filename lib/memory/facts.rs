//! What a rewritten text must still hold: links, addresses, paths, numbers, flags and names from code. A model that
//! smooths a text loses these first, and they are what a note is for. Facts that are named as gone may go.

mod pieces;

pub use crate::memory::facts::pieces::{PieceKind, pieces};

use crate::base::text::{border, is_word};
use crate::memory::links::{LINK_CAP, is_inside, is_name};
use crate::memory::lists::List;
use crate::store::entry::EntryId;
use std::collections::{BTreeSet, HashSet};
use unicode_segmentation::UnicodeSegmentation;

/// The share of facts that a rewrite by `memory-defrag` must keep, in percent.
const KEPT_PERCENT: usize = 99;
/// So many facts are looked for in the middle of other words, each by a search through the whole text. A text that
/// lacks more of them is refused anyway.
const SEARCHED: usize = 1000;
/// An item of `gone` stands for the facts in it, if it is a phrase like "listens on 4310" of at most so many bytes. A
/// paragraph names nothing.
const PHRASE_BYTES: usize = 100;
/// So many items of `gone` are heard; the others count as not matched.
const ITEMS: usize = 200;

/// The facts of a text that another lacks.
pub struct Loss<'a> {
    /// In their order, without those that `gone` covers.
    pub missing: Vec<&'a str>,
    /// The items of `gone` that the old text does not hold.
    pub unmatched: Vec<&'a str>,
    /// How many facts there were, without those that `gone` covers.
    of: usize,
}

impl Loss<'_> {
    /// Is more than one fact in a hundred missing?
    pub fn is_too_much(&self) -> bool {
        self.missing.len() * 100 > self.of * (100 - KEPT_PERCENT)
    }
}

/// The facts of `old` that `new` lacks.
///
/// An item of `gone` covers a fact that contains it as a whole word: `4310` covers `--port=4310` and
/// `http://localhost:4310/health`, but not `14310`. `exists` says which ids are those of notes: a link that leads
/// nowhere is no fact.
pub fn lost<'a>(old: &'a str, new: &str, gone: &'a [String], exists: impl Fn(&EntryId) -> bool) -> Loss<'a> {
    let is_mark = |c: char| c.is_whitespace() || "`\"'*.,;".contains(c);
    let items = gone.iter().map(|item| (item.as_str(), folded(item.trim_matches(is_mark))));
    let items: Vec<(&str, String)> = items.filter(|(_, item)| !item.is_empty()).take(ITEMS).collect();
    let mut is_matched = vec![false; items.len()];
    let kept: HashSet<String> = found(new, &|_| true).iter().map(Fact::key).collect();
    let text = folded(new);
    let (mut missing, mut of) = (Vec::new(), 0);
    for fact in found(old, &exists) {
        let key = fact.key();
        let mut is_gone = false;
        for ((_, item), is_matched) in items.iter().zip(&mut is_matched) {
            let is_it = holds(&key, item, Edges::Loose)
                || item.len() <= PHRASE_BYTES && holds(item, &key, Edges::Loose);
            is_gone |= is_it;
            *is_matched |= is_it;
        }
        if is_gone {
            continue;
        }
        of += 1;
        // A name may stand in the new text as part of a longer one.
        if !kept.contains(&key) && (missing.len() >= SEARCHED || !holds(&text, &key, Edges::Strict)) {
            missing.push(fact.text);
        }
    }
    let before = folded(old);
    let items = items.iter().zip(is_matched);
    let unmatched =
        items.filter(|((_, item), is_matched)| !is_matched && !holds(&before, item, Edges::Loose));
    let unmatched = unmatched.map(|((raw, _), _)| *raw);
    let unmatched = unmatched.chain(gone.iter().skip(ITEMS).map(String::as_str)).collect();
    Loss { missing, unmatched, of }
}

/// Every fact of a text once, in order. A link that leads nowhere is none.
pub fn facts(text: &str, exists: impl Fn(&EntryId) -> bool) -> Vec<&str> {
    found(text, &exists).iter().map(|fact| fact.text).collect()
}

/// So many different words make a text of which something must be left, and so much of them, in percent: a text in
/// plain words has few facts that could be missed.
const WORDS: usize = 20;
const WORDS_PERCENT: usize = 25;

/// Of how many different words of `old` how few are left in `new`; `None` if enough are.
pub(super) fn emptied(old: &str, new: &str) -> Option<(usize, usize)> {
    let words = |text: &str| -> BTreeSet<String> { text.unicode_words().map(str::to_lowercase).collect() };
    let (old, new) = (words(old), words(new));
    let kept = old.intersection(&new).count();
    (old.len() >= WORDS && kept * 100 < old.len() * WORDS_PERCENT).then_some((kept, old.len()))
}

struct Fact<'a> {
    text: &'a str,
    is_link: bool,
}

impl Fact<'_> {
    /// Two spellings of one fact have the same key: `1,500` and `1500`, `v1.2` and `1.2`, a link with other words.
    fn key(&self) -> String {
        if self.is_link {
            let inner = self.text.trim_start_matches('[').trim_end_matches(']');
            return format!("[[{}", inner.split('|').next().unwrap_or(inner).trim().to_lowercase());
        }
        let key = folded(self.text);
        match key.strip_prefix('v') {
            Some(version) if version.starts_with(|c: char| c.is_ascii_digit()) => version.to_owned(),
            _ => key,
        }
    }
}

fn found<'a>(text: &'a str, exists: &dyn Fn(&EntryId) -> bool) -> Vec<Fact<'a>> {
    let mut seen = HashSet::new();
    let mut facts = Vec::new();
    for piece in pieces(text) {
        let is_span = piece.kind == PieceKind::Span;
        if piece.kind == PieceKind::Prose && piece.begins && is_our_own(piece.text) {
            continue;
        }
        let mut add = |fact: Fact<'a>| {
            if seen.insert((fact.is_link, fact.text)) {
                facts.push(fact);
            }
        };
        let mut rest = piece.text;
        while piece.kind == PieceKind::Prose
            && let Some((before, after)) = rest.split_once("[[")
        {
            words(before).filter_map(|word| word.fact(is_span, exists)).for_each(&mut add);
            let near = &after[..border(after, LINK_CAP + "]]".len())];
            match near.find("]]").map(|end| after.split_at(end)).filter(|(inner, _)| is_inside(inner)) {
                Some((inner, behind)) => {
                    let name = inner.split('|').next().unwrap_or(inner).trim();
                    let leads = EntryId::whole(name).map_or_else(|| !is_name(name), |id| exists(&id));
                    if leads {
                        let start = before.len();
                        add(Fact { text: &rest[start..start + inner.len() + 4], is_link: true });
                    }
                    rest = &behind["]]".len()..];
                }
                None => rest = after,
            }
        }
        words(rest).filter_map(|word| word.fact(is_span, exists)).for_each(&mut add);
    }
    facts
}

/// `See also [[id__a1B2c3]], [[id__Zz9yX1]].`: what `memory-consolidate` appends.
fn is_our_own(paragraph: &str) -> bool {
    let Some(links) = paragraph.trim().strip_prefix("See also ") else { return false };
    links.trim_end_matches('.').split(',').all(|link| {
        let inner = link.trim().strip_prefix("[[").and_then(|link| link.strip_suffix("]]"));
        inner.is_some_and(is_name)
    })
}

/// Is it a pair like `and/or`?
pub fn is_alternative(word: &str) -> bool {
    List("alternatives").has(&word.to_lowercase())
}

/// A word and what stands around it.
struct FactWord<'a> {
    text: &'a str,
    before: &'a str,
    after: &'a str,
}

/// The words of a text, without the punctuation around them.
fn words(text: &str) -> impl Iterator<Item = FactWord<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text[at..].find(|c| !is_border(c))?;
        let end = text[start..]
            .char_indices()
            .find(|(n, c)| is_border(*c) || (*c == ',' && !is_within_number(text, start + n)))
            .map_or(text.len(), |(n, _)| start + n);
        // A comma that begins a word is none.
        at = end.max(start + text[start..].chars().next().map_or(1, char::len_utf8));
        Some(FactWord { text: &text[start..end], before: &text[..start], after: &text[end..] })
    })
}

/// Does it end a word? Scripts that write no spaces stand beside names and numbers, so they do.
fn is_border(c: char) -> bool {
    c.is_whitespace() || "`\"'<>|;()[]{}“”„‘’‚«»‹›…".contains(c) || is_unspaced(c)
}

/// Chinese, Japanese and Korean, with their punctuation and full-width forms.
pub fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{a4cf}' | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

fn is_within_number(text: &str, at: usize) -> bool {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    at > 0 && is_digit(text.as_bytes().get(at - 1)) && is_digit(text.as_bytes().get(at + 1))
}

impl<'a> FactWord<'a> {
    fn fact(&self, is_span: bool, exists: &dyn Fn(&EntryId) -> bool) -> Option<Fact<'a>> {
        let mut text = self.text.trim_end_matches(|c: char| "*.:!?,%".contains(c));
        text = text.trim_start_matches(|c: char| "*:!?#,=≈±".contains(c));
        // `.env`, `./run` and `../x` keep their dots.
        if text.starts_with('.') && !text.starts_with("./") && !text.starts_with("../") {
            let name = text.trim_start_matches('.');
            let is_name = text.len() - name.len() == 1 && name.starts_with(|c: char| c.is_alphanumeric());
            text = if is_name { text } else { name };
        }
        let bare = text.trim_start_matches(|c: char| "~$€£+".contains(c));
        if bare.len() < text.len() && bare.starts_with(|c: char| c.is_ascii_digit()) {
            text = bare;
        }
        // A reference that leads nowhere, or not yet.
        if EntryId::whole(text).is_none() && is_name(text) && !is_span {
            return None;
        }
        if text.bytes().any(|byte| byte.is_ascii_digit()) {
            if self.is_enumerator(text) || EntryId::whole(text).is_some_and(|id| !exists(&id)) {
                return None;
            }
            return Some(Fact { text: without_unit(text), is_link: false });
        }
        let is_fact =
            is_named(text, is_span) || (self.after.starts_with("()") && text.contains(char::is_alphabetic));
        is_fact.then_some(Fact { text, is_link: false })
    }

    /// `(1)`, `[1]`, `[^1]`: it counts, and says nothing.
    fn is_enumerator(&self, text: &str) -> bool {
        let digits = text.trim_start_matches('^');
        let is_short = digits.len() == 1 || (digits.len() == 2 && self.before.ends_with('['));
        let is_alone = |open: char, close: char| {
            let before = self.before.strip_suffix(open).map(|before| before.chars().next_back());
            let may_precede = |c: char| c.is_whitespace() || open == '[' && !c.is_alphanumeric();
            before.is_some_and(|last| last.is_none_or(may_precede)) && self.after.starts_with(close)
        };
        is_short
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && (is_alone('(', ')') || is_alone('[', ']'))
    }
}

/// `30s`, `4GB`, `1st`: the number, which may stand with a blank before its unit elsewhere.
fn without_unit(text: &str) -> &str {
    let number = text.trim_end_matches(|c: char| c.is_alphabetic());
    let unit = text[number.len()..].chars().count();
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.ends_with(|c: char| c.is_ascii_digit())
        && number.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b','));
    if (1..=3).contains(&unit) && is_number { number } else { text }
}

/// Is a word without digits more than a word?
fn is_named(word: &str, is_span: bool) -> bool {
    let mut letters = word.chars().filter(|c| c.is_alphabetic());
    let Some(_) = letters.next() else { return false };
    if is_span && word.chars().filter(|c| c.is_alphanumeric()).nth(1).is_some() {
        return true;
    }
    let inner = |mark: &str| {
        word.match_indices(mark).any(|(at, _)| {
            let (before, after) = (&word[..at], &word[at + mark.len()..]);
            before.ends_with(char::is_alphanumeric) && after.starts_with(char::is_alphanumeric)
        })
    };
    let is_flag = match word.strip_prefix('-') {
        Some(flag) if flag.starts_with('-') => flag.len() > 1,
        Some(flag) => flag.len() <= 3 && flag.starts_with(|c: char| c.is_ascii_alphabetic()),
        None => false,
    };
    // `e.g`, `z.B`, `p.ej`, `EE.UU`: abbreviations.
    let is_short = word.split('.').all(|part| part.chars().count() <= 2) && !word.starts_with('.');
    // `camelCase`, `HTTPServer`: a capital after the first letter, beside small ones. `APIs` is a plural.
    let is_plural = word.strip_suffix('s').is_some_and(|word| word.chars().all(char::is_uppercase));
    let is_camel = letters.any(char::is_uppercase)
        && word.chars().any(char::is_lowercase)
        && !is_plural
        && !(is_short && word.contains('.'));
    is_flag
        || word.contains("://")
        || word.contains('/') && !is_alternative(word)
        || word.starts_with('$')
        || word.starts_with('.') && word[1..].starts_with(char::is_alphabetic)
        || inner(".") && !is_short
        || ["_", "@", "::", "="].into_iter().any(inner)
        || word.contains("::")
        || is_camel
}

const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

/// Lower case, white space collapsed, numbers in one spelling: `1,500` and `1_500` are 1500, `3,5` is 3.5, `10²` is 10^2.
fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut is_number = false;
    for (at, c) in text.char_indices() {
        let after = &text.as_bytes()[at + c.len_utf8()..];
        let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).take(4).count();
        match c {
            ',' | '_' if is_number && digits == 3 => continue,
            ',' if is_number && digits > 0 => folded.push('.'),
            c if c.is_whitespace() => {
                if !folded.ends_with(' ') {
                    folded.push(' ');
                }
            }
            c => match SUPERSCRIPTS.iter().position(|digit| *digit == c) {
                Some(digit) => {
                    let joins = text[..at].ends_with(SUPERSCRIPTS);
                    folded.push_str(&format!("{}{digit}", if joins { "" } else { "^" }));
                }
                None => folded.extend(c.to_lowercase()),
            },
        }
        // Of `db_100` no mark is in a number.
        is_number = c.is_ascii_digit() && (is_number || !folded[..folded.len() - 1].ends_with(is_word))
            || (c == '.' || c == ',') && is_number && digits > 0;
    }
    folded.trim().to_owned()
}

/// Where a word ends.
#[derive(Clone, Copy, PartialEq)]
enum Edges {
    /// At any mark: `force` is a word of `--force-with-lease`, `yarn` of `yarn.lock`, `20` of `node20`.
    Loose,
    /// `-` and `.` join: `--force-with-lease` is another flag, `config.toml.bak` another file.
    Strict,
}

impl Edges {
    /// Does a word end at this character, behind which there is another word (`joined`)?
    fn end_at(self, c: char, joined: bool) -> bool {
        !(is_word(c) || self == Edges::Strict && matches!(c, '-' | '.') && joined)
    }
}

/// Does a text hold a word or phrase, whole? Both are [`folded`].
fn holds(text: &str, part: &str, edges: Edges) -> bool {
    let is_numeric = part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    memchr::memmem::find_iter(text.as_bytes(), part.as_bytes())
        .any(|at| begins(&text[..at], part, edges) && ends(&text[at + part.len()..], part, is_numeric, edges))
}

fn begins(before: &str, part: &str, edges: Edges) -> bool {
    let (Some(first), Some(c)) = (part.chars().next(), before.chars().next_back()) else { return true };
    let joined = before[..before.len() - c.len_utf8()].chars().next_back().filter(|c| c.is_alphanumeric());
    if !first.is_alphanumeric() {
        return true;
    }
    if first.is_ascii_digit() {
        // `v1.2`, `node20`, but no middle of a hash.
        let name = before.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let is_name = name.len() < before.len()
            && !name.ends_with(is_word)
            && (&before[name.len()..] == "v" || (edges == Edges::Loose && part.len() > 1));
        if is_name {
            return true;
        }
        if c == '.' && joined.is_some_and(|c| c.is_ascii_digit()) {
            return false;
        }
    }
    if is_unspaced(c) {
        return true;
    }
    edges.end_at(c, joined.is_some())
}

fn ends(after: &str, part: &str, is_numeric: bool, edges: Edges) -> bool {
    let (Some(last), Some(c)) = (part.chars().next_back(), after.chars().next()) else { return true };
    let joined = after[c.len_utf8()..].chars().next().filter(|c| c.is_alphanumeric());
    if !last.is_alphanumeric() || is_unspaced(c) {
        return true;
    }
    if last.is_ascii_digit() && c == '.' && joined.is_some_and(|c| c.is_ascii_digit()) {
        return false;
    }
    // `30s`
    if is_numeric && c.is_alphabetic() {
        let unit = after.trim_start_matches(char::is_alphabetic);
        return after[..after.len() - unit.len()].chars().count() <= 3 && !unit.starts_with(is_word);
    }
    edges.end_at(c, joined.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<&str> {
        facts(text, |_| true)
    }

    #[test]
    fn a_power_has_two_spellings() {
        for (old, new, is_lost) in [
            ("1024² blocks", "1024^2 blocks", false),
            ("10^12 rows", "10¹² rows", false),
            ("1024²", "1024³", true),
            ("1024²", "10242", true),
        ] {
            assert_eq!(!missing(old, new, &[]).is_empty(), is_lost, "{old} {new}");
        }
    }

    fn missing(old: &str, new: &str, gone: &[&str]) -> Vec<String> {
        let gone: Vec<String> = gone.iter().map(|item| (*item).to_owned()).collect();
        lost(old, new, &gone, |_| true).missing.iter().map(|fact| (*fact).to_owned()).collect()
    }

    #[test]
    fn facts_are_links_addresses_paths_numbers_and_names() {
        let text = "Use `retry_after` (see [[id__a1B2c3]]), at most 3.5 s; https://h/x?y=1 and src/main.rs, \
                    --no-verify, $HOME, HTTPServer::new(), config.toml. Plain words, even Capital ones, are not.";
        assert_eq!(
            all(text),
            [
                "retry_after", "[[id__a1B2c3]]", "3.5", "https://h/x?y=1", "src/main.rs", "--no-verify",
                "$HOME", "HTTPServer::new", "config.toml"
            ]
        );
    }

    #[test]
    fn every_kind_of_fact_is_found_as_it_is_written() {
        for (text, expected) in [
            ("listens on 4310", &["4310"][..]),
            ("**4310**, (8080).", &["4310", "8080"]),
            ("30s, 4GB, 1st and 5 %", &["30", "4", "1", "5"]),
            ("about ~30 or $5 or +7", &["30", "5", "7"]),
            ("1,500 bytes, 3,5 s, 1, 2", &["1,500", "3,5", "1", "2"]),
            ("v1.2.3 and node20, python3.11", &["v1.2.3", "node20", "python3.11"]),
            ("-k and --port=1 but well-known or -fest", &["-k", "--port=1"]),
            (".env, ./run, ../up, ~/x, /etc/hosts", &[".env", "./run", "../up", "~/x", "/etc/hosts"]),
            ("call main() and foo(bar)", &["main"]),
            ("`make test` and `a`", &["make", "test"]),
            ("[docs](https://h/x) <https://h/y>", &["https://h/x", "https://h/y"]),
            ("ポート4310を使う。src/a.rsを見る", &["4310", "src/a.rs"]),
            ("user@host, a::b, APIs, PRs, GitHub", &["user@host", "a::b", "GitHub"]),
            ("[[A page]] and [[id__a1B2c3|words 9]]", &["[[A page]]", "[[id__a1B2c3|words 9]]"]),
            ("```\nlet x = 5;\nmake deploy\n```", &["5"]),
            // None of these is a fact.
            ("1. one\n2. two\n- three\n3) four", &[]),
            ("# 1. Heading\n## 2.1 Heading\n**3. Bold**", &[]),
            ("first (1), second (2), see [1] and [^2]", &[]),
            ("e.g. this, i.e. that, z.B. und d.h. EE.UU. u.a.", &[]),
            ("and/or, I/O, TCP/IP, und/oder, read/write", &[]),
            ("a --- b\n\n---\n\n| - | -- |", &[]),
            ("Words.\n\nSee also [[id__a1B2c3]], [[id__Zz9yX1]].\n", &[]),
            ("", &[]),
        ] {
            assert_eq!(all(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_link_that_leads_nowhere_is_no_fact() {
        let nowhere = |_: &EntryId| false;
        assert!(facts("see [[id__a1B2c3]] and id__a1B2c3, [[id__a1B2c3|x]]", nowhere).is_empty());
        assert_eq!(facts("see [[A page]] for [[id__a1B2c3]]", nowhere), ["[[A page]]"]);
        assert_eq!(all("See also [[id__a1B2c3]] for more."), ["[[id__a1B2c3]]"]);
    }

    #[test]
    fn another_wording_with_the_same_facts_loses_nothing() {
        for (old, new) in [
            ("Wait 30 s before src/a.rs is read.", "src/a.rs: read it after 30 s"),
            ("30 s", "30s"),
            ("30s", "30 seconds"),
            ("1,500 bytes", "1500 bytes"),
            ("3,5 s", "3.5 s"),
            ("1. a\n2. b", "- a\n- b"),
            ("version 1.2.3", "v1.2.3"),
            ("v1.2.3", "version 1.2.3"),
            ("port 8080", "http://localhost:8080/x"),
            ("`main.rs`", "see src/main.rs:12"),
            ("[[id__a1B2c3]]", "[[id__a1B2c3|its title]]"),
            ("[[id__a1B2c3|one]]", "[[id__a1B2c3]]"),
            ("GitHub and `Make`", "github, make"),
            ("`cargo test`", "Run cargo for every test"),
            ("ポートは4310です", "4310番"),
            ("no facts here", ""),
        ] {
            assert_eq!(missing(old, new, &[]), [""; 0], "{old:?} {new:?}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        for (old, new, expected) in [
            ("port 8081 on host db.local", "the port of the host", &["8081", "db.local"][..]),
            ("port 80", "port 8080", &["80"]),
            ("1.2", "1.2.3", &["1.2"]),
            ("use --force", "use --force-with-lease", &["--force"]),
            ("edit config.toml", "edit config.toml.bak", &["config.toml"]),
            ("h.com/x", "sub.h.com/x", &["h.com/x"]),
            ("[[id__a1B2c3]]", "[[id__Zz9yX1]]", &["[[id__a1B2c3]]"]),
            ("[[id__a1B2c3]]", "id__a1B2c3", &["[[id__a1B2c3]]"]),
            ("Run `yarn`", "Run `pnpm`", &["yarn"]),
            ("### 404 pages", "pages", &["404"]),
        ] {
            assert_eq!(missing(old, new, &[]), expected, "{old:?} {new:?}");
        }
    }

    #[test]
    fn a_correction_loses_nothing_that_is_not_gone() {
        for (old, new, gone) in [
            // A port.
            ("listens on 4310", "listens on 4320", "4310"),
            ("http://localhost:4310/health", "http://localhost:4320/health", "4310"),
            ("start it with `serve --port=4310`", "start it with `serve --port=4320`", "4310"),
            ("at 127.0.0.1:4310, 4310/tcp, :4310", "at 127.0.0.1:4320, 4320/tcp, :4320", "4310"),
            ("listens on 4310", "listens on 4320", "listens on 4310"),
            ("listens on 4310", "listens on 4320", "port 4310"),
            ("listens on 4310", "listens on 4320", "`4310`."),
            ("ポート4310を使う", "ポート4320を使う", "4310"),
            // A version.
            ("needs Rust 1.89", "needs Rust 1.91", "1.89"),
            ("v1.2.3 and `tool@1.2.3`", "v1.3.0 and `tool@1.3.0`", "1.2.3"),
            ("version 1.2.3", "version 1.3", "v1.2.3"),
            ("image node:20-alpine, node20", "image node:22-alpine, node22", "20"),
            ("actions/checkout@v3", "actions/checkout@v4", "v3"),
            ("python3.11", "python3.12", "3.11"),
            // A command.
            ("run `make check` first", "run `just check` first", "make"),
            ("run `make check` first", "run `just verify` first", "make check"),
            ("`npm test -- --watch`", "`pnpm vitest`", "npm test -- --watch"),
            ("Use `yarn`, keep yarn.lock", "Use `pnpm`", "yarn"),
            // A path and an address.
            (
                "config is in /etc/app/config.toml",
                "config is in ~/.config/app/config.toml",
                "/etc/app/config.toml",
            ),
            ("src/old/a.rs, src/old/b.rs", "src/new/a.rs, src/new/b.rs", "src/old"),
            ("postgres://db.old.example:5432/app", "postgres://db.new.example:5432/app", "db.old.example"),
            ("10.0.0.5:5432", "10.0.0.6:5432", "10.0.0.5"),
            // A number.
            ("waits 30 s", "waits 60 s", "30 s"),
            ("waits 30 s", "waits 60 s", "30s"),
            ("at most 1,500 bytes", "at most 2,000 bytes", "1500"),
            ("max 3,5 s", "max 4 s", "3.5"),
            ("until 2026-03-20", "until 2026-04-01", "2026-03-20"),
            // A rule turned round.
            ("Always use --force.", "Never force.", "--force"),
            ("Never use `git rebase` here.", "Rebase is fine.", "git rebase"),
            // A link.
            ("see [[id__a1B2c3]]", "see nothing", "id__a1B2c3"),
            ("see [[id__a1B2c3|words]]", "see nothing", "[[id__a1B2c3]]"),
        ] {
            assert_ne!(missing(old, new, &[]), [""; 0], "{old:?} {new:?}");
            assert_eq!(missing(old, new, &[gone]), [""; 0], "{old:?} {new:?} {gone:?}");
        }
    }

    #[test]
    fn nothing_else_goes_with_what_is_gone() {
        for (old, gone) in [
            ("14310", "4310"),
            ("43100", "4310"),
            ("4310.5", "4310"),
            ("1.2.3", "1.2"),
            ("10.0.0.5", "0.5"),
            ("a1b20", "20"),
            ("src/main.rs", "src/mai"),
            ("retry_after", "retry"),
            ("4310 and 8080", "4310"),
            ("s3", "3"),
        ] {
            assert_eq!(missing(old, "", &[gone]).len(), 1, "{old:?} {gone:?}");
        }
        let paragraph = "8080 ".repeat(30);
        assert_eq!(missing("8080", "", &[&paragraph]), ["8080"]);
    }

    #[test]
    fn what_was_never_there_is_told() {
        let gone = ["4310", "9999", "431", "Words", "`tool`", " "].map(str::to_owned);
        let loss = lost("listens on 4310, words", "", &gone, |_| true);
        assert_eq!((loss.unmatched, loss.missing.len()), (vec!["9999", "431", "`tool`"], 0));
    }

    #[test]
    fn defrag_may_lose_one_in_a_hundred() {
        let old: Vec<String> = (1000..1101).map(|n| n.to_string()).collect();
        let text = old.join(" ");
        let of =
            |from: usize, gone: &[String]| lost(&text, &old[from..].join(" "), gone, |_| true).is_too_much();
        assert!(!of(1, &[]) && of(2, &[]));
        assert!(!of(2, &["1000".to_owned()]));
    }

    #[test]
    fn a_text_in_plain_words_may_be_shortened_but_not_emptied() {
        let old = "Guards must be pure because the machine may call them twice, and nobody wants a second letter \
                   sent; put whatever talks to the world into actors, whose failures the machine can see.";
        assert_eq!(emptied(old, "Guards must be pure; what talks to the world goes into actors."), None);
        assert_eq!(emptied(old, "Notes about guards.").map(|(kept, _)| kept), Some(1));
        assert_eq!(emptied("A short note about guards.", "Nothing."), None);
    }

    #[test]
    fn odd_texts_are_read_to_their_end() {
        for text in [
            ",", ",,,", "é,", "[[", "]]", "[[]]", "[[a", "-", "--", "$", ".", "..", "…", "`", "1,", ",1",
            "\u{feff}", "v", "_1", "１２", "a\u{301}",
        ] {
            let loss = lost(text, text, &[], |_| true);
            assert!(loss.missing.is_empty(), "{text:?}");
            let _ = missing(text, "", &[text]);
        }
    }
}
