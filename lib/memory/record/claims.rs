//! What a text says that another may repeat, in the form in which the two are compared: names (addresses, paths, flags,
//! identifiers, long numbers) and runs of four words. Letters are folded, and punctuation does not count: `evil[.]example`,
//! `EVIL.example` and "evil.\nexample" are the same.

use crate::memory::addresses::{addresses, is_far, is_plain};
use crate::memory::facts::{PieceKind, is_alternative, is_unspaced, pieces};
use crate::memory::record::plain::plain;
use crate::memory::search::language::is_stop_word;
use crate::store::entry::EntryId;
use std::hash::BuildHasher;

/// Longer words are cut: nobody names anything with so many bytes.
const WORD_BYTES: usize = 500;
/// So many words make a run. Of scripts without blanks, two characters count as a word.
const RUN_WORDS: usize = 4;
/// So many words of a run must say something, and one more of runs that follow each other: "in the same way" is nobody's.
const RUN_CONTENT: usize = 3;
/// Shorter numbers are no names.
const LONG_NUMBER: usize = 6;
/// Shorter words are no names of packages.
const PACKAGE_BYTES: usize = 3;
/// So many letters make a spelled word a name.
const SPELLED: usize = 6;
/// So many hexadecimal digits are no word.
const FINGERPRINT: usize = 16;
/// A word with so many digits is looked up when it is asked who said it.
const SOME_DIGITS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimKind {
    /// Of another machine.
    Address,
    /// What is to be installed.
    Package,
    Name,
}

/// Something of a note that may come from outside.
#[derive(Debug, PartialEq)]
pub(super) struct Claim {
    pub(super) kind: ClaimKind,
    /// As the note has it.
    pub(super) text: String,
    /// Its own key, and then those of its parts.
    pub(super) keys: Vec<String>,
    /// It is a name of code, which is compared as it stands.
    pub(super) is_identifier: bool,
}

/// The letters and digits of a text, in lower case.
pub(super) fn key_of(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The words between blanks, quotes, brackets and the like.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let is_border = |c: char| {
        !is_plain(c)
            && (c.is_whitespace()
                || c.is_control()
                || "\"'`<>|;,()[]{}\\“”„‘’‚«»‹›…".contains(c)
                || is_unspaced(c))
    };
    let trim = |token: &'_ str| -> (usize, usize) {
        let end = token.trim_end_matches(|c: char| "*_.:!?%-/".contains(c)).len();
        let start =
            token[..end].len() - token[..end].trim_start_matches(|c: char| "*_:!?#+^%".contains(c)).len();
        (start, end)
    };
    text.split(is_border).filter(|token| !token.is_empty()).filter_map(move |token| {
        let (start, end) = trim(token);
        token.get(start..end).filter(|token| !token.is_empty())
    })
}

fn digits(token: &str) -> usize {
    token.bytes().filter(u8::is_ascii_digit).count()
}

/// `-f`, `--force`: its key has one dash, so that it is no word.
fn flag_key(token: &str) -> Option<String> {
    let name = token.strip_prefix('-')?;
    let name = name.split('=').next().unwrap_or(name);
    let is_flag = name.trim_start_matches('-').starts_with(char::is_alphabetic);
    is_flag.then(|| format!("-{}", key_of(name)))
}

/// An address, a path, an identifier, a long number?
fn is_name(token: &str) -> bool {
    if !token.contains(char::is_alphabetic) {
        return digits(token) >= LONG_NUMBER || token.parse::<std::net::Ipv4Addr>().is_ok();
    }
    let is_path = token.starts_with(['/', '~']) || token.starts_with("./") || token.starts_with("../");
    let mut before = None;
    let mut has_inner = false;
    let mut has_capital = false;
    let mut chars = token.chars().peekable();
    while let Some(c) = chars.next() {
        let is_between =
            before.is_some_and(char::is_alphanumeric) && chars.peek().is_some_and(|c| c.is_alphanumeric());
        has_inner |= "./:@_-=".contains(c) && is_between;
        has_capital |= c.is_uppercase() && before.is_some_and(char::is_lowercase);
        before = Some(c);
    }
    is_path && key_of(token).len() > 1
        || has_capital
        || is_fingerprint(token)
        || (has_inner || token.contains("://")) && !is_abbreviation(token)
}

/// The fingerprint of a key, whose digits may stand in groups elsewhere.
fn is_fingerprint(token: &str) -> bool {
    token.len() >= FINGERPRINT && token.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `e.g`, `z.B`, `and/or`.
fn is_abbreviation(token: &str) -> bool {
    !token.contains(|c: char| c.is_ascii_digit())
        && token.split('.').count() > 1
        && token.split('.').all(|part| part.chars().count() <= 2)
        || is_alternative(token)
}

/// The parts of a name by which it may be known: `https://h.example/x.sh` has `h.example/x.sh`, `h.example` and `x.sh`,
/// `migrations.AddIndex` has `AddIndex`.
fn parts(token: &str) -> impl Iterator<Item = &str> {
    let rest = token.split_once("://").map(|(_, rest)| rest);
    let pieces = token.split(['/', ':', '@', '=', '?', '&', '#', '$']);
    let pieces = pieces.flat_map(|piece| {
        std::iter::once(piece).chain(piece.split('.').filter(move |part| part.len() < piece.len()))
    });
    rest.into_iter().chain(pieces.filter(move |part| part.len() < token.len())).filter(|part| is_name(part))
}

/// `retry_budget`, `advanceTimers`, `pgx.Conn`: a name of code, which is compared as it stands.
fn is_identifier(token: &str) -> bool {
    let has_hump =
        token.chars().zip(token.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    token.chars().all(|c| c.is_alphanumeric() || "_.:".contains(c))
        && !is_fingerprint(token)
        && (has_hump || token.contains(['_']) || token.contains("::") || token.contains(char::is_uppercase))
        && !is_far(token)
}

/// Calls `each` with the key of everything in a text that has a name.
pub(super) fn each_key(text: &str, mut each: impl FnMut(&str)) {
    for token in tokens(text) {
        let token = &token[..crate::base::text::border(token, WORD_BYTES)];
        if let Some(flag) = flag_key(token) {
            each(&flag);
        }
        if token.bytes().all(|byte| byte.is_ascii_lowercase()) {
            if token.len() >= PACKAGE_BYTES {
                each(token);
            }
        } else if is_name(token) || digits(token) >= SOME_DIGITS {
            each(&key_of(token));
            parts(token).for_each(|part| each(&key_of(part)));
            let pairs = token.split(['=', ':']).filter(|part| digits(part) >= SOME_DIGITS);
            pairs.for_each(|part| each(&key_of(part)));
            let numbers = token.split(|c: char| !c.is_ascii_digit()).filter(|part| part.len() >= SOME_DIGITS);
            numbers.for_each(&mut each);
        }
    }
}

/// Calls `each` with the hash of every run of four words.
pub(super) fn each_run(text: &str, hasher: &impl BuildHasher, mut each: impl FnMut(u64)) {
    // The last words: their hashes, and whether each is half a word.
    let mut last: Vec<(u64, bool)> = Vec::with_capacity(2 * RUN_WORDS + 1);
    each_word(text, |word, is_half| {
        if last.len() == 2 * RUN_WORDS {
            last.remove(0);
        }
        last.push((hasher.hash_one(word), is_half));
        if let Some(start) = run_start(last.iter().map(|(_, is_half)| *is_half)) {
            each(run_key(hasher, &last[start..]));
        }
    });
}

/// Where the run begins that ends with the last of these words, which are whole or half; `None`: there are too few.
fn run_start(halves: impl DoubleEndedIterator<Item = bool> + ExactSizeIterator) -> Option<usize> {
    let mut length = 0;
    for (at, is_half) in halves.enumerate().rev() {
        length += if is_half { 1 } else { 2 };
        if length >= 2 * RUN_WORDS {
            return Some(at);
        }
    }
    None
}

fn run_key(hasher: &impl BuildHasher, run: &[(u64, bool)]) -> u64 {
    hasher.hash_one(("run", run))
}

/// Calls `each` with every word in normal form; of scripts without blanks with every character, which is half a word.
/// Letters that stand alone, three and more in a row, are a word that is spelled.
fn each_word(text: &str, mut each: impl FnMut(&str, bool)) {
    let mut word = String::new();
    let mut spelled = String::new();
    let end = |word: &mut String, spelled: &mut String, each: &mut dyn FnMut(&str, bool)| {
        if word.chars().nth(1).is_none() && !word.is_empty() {
            spelled.push_str(word);
        } else if !word.is_empty() {
            say_spelled(spelled, each);
            each(word, false);
        }
        word.clear();
    };
    for c in text.chars() {
        if is_unspaced(c) {
            end(&mut word, &mut spelled, &mut each);
            say_spelled(&mut spelled, &mut each);
            if c.is_alphanumeric() {
                let mut buffer = [0; 4];
                each(c.encode_utf8(&mut buffer), true);
            }
        } else if c.is_whitespace() {
            end(&mut word, &mut spelled, &mut each);
        } else if c.is_alphanumeric() && word.len() < WORD_BYTES {
            word.extend(c.to_lowercase());
        }
    }
    end(&mut word, &mut spelled, &mut each);
    say_spelled(&mut spelled, &mut each);
}

fn say_spelled(spelled: &mut String, each: &mut dyn FnMut(&str, bool)) {
    if spelled.chars().nth(2).is_some() {
        each(spelled, false);
    } else {
        let mut buffer = [0; 4];
        spelled.chars().for_each(|c| each(c.encode_utf8(&mut buffer), false));
    }
    spelled.clear();
}

/// Calls `each` with every word that is spelled: letters that stand alone, three and more in a row.
fn each_spelled(text: &str, mut each: impl FnMut(&str)) {
    let mut spelled = String::new();
    for token in text.split_whitespace().chain(["  "]) {
        let mut letters = token.chars().filter(|c| c.is_alphanumeric());
        match (letters.next(), letters.next()) {
            (Some(letter), None) => spelled.extend(letter.to_lowercase()),
            (None, _) if token != "  " => {}
            _ => {
                if spelled.len() >= SPELLED {
                    each(&spelled);
                }
                spelled.clear();
            }
        }
    }
}

/// The names in one field of a note, in their order; also those that are spelled with blanks, with marks of code between
/// their letters, or with escapes. What is only a word with a hyphen in prose is none.
pub(super) fn names(field: &str) -> Vec<Claim> {
    let seen = plain(field);
    let mut found = names_in(&seen);
    let unmarked: String = seen.chars().filter(|c| !"`*\"'".contains(*c)).collect();
    for text in unveiled(&seen).into_iter().chain((unmarked.len() < seen.len()).then_some(unmarked)) {
        let more = names_in(&text);
        found.extend(more.into_iter().filter(|claim| !claim.is_identifier));
    }
    each_spelled(&seen, |word| {
        found.push(Claim {
            kind: ClaimKind::Name,
            text: word.to_owned(),
            keys: vec![word.to_owned()],
            is_identifier: false,
        });
    });
    found
}

fn names_in(text: &str) -> Vec<Claim> {
    let mut found = Vec::new();
    for piece in pieces(text) {
        let is_code = piece.kind != PieceKind::Prose;
        for line in piece.text.lines() {
            let packages = if is_code || is_prompt(line) { packages(line) } else { Vec::new() };
            for token in tokens(line).filter(|token| EntryId::whole(token).is_none()) {
                let is_package = packages.contains(&token);
                let flag = flag_key(token);
                let value =
                    token.strip_prefix('-').and_then(|flag| flag.split_once('=')).map(|(_, value)| value);
                let is_named =
                    |token: &&str| is_package || is_name(token) && (is_code || !is_compound(token));
                let words = [Some(token).filter(|_| flag.is_none()), value].into_iter().flatten();
                found.extend(words.filter(is_named).map(|token| claim(token, is_package)));
                found.extend(flag.map(|key| Claim {
                    kind: ClaimKind::Name,
                    text: token.to_owned(),
                    keys: vec![key],
                    is_identifier: false,
                }));
            }
        }
    }
    found
}

/// Is it a command behind the mark of a shell?
fn is_prompt(line: &str) -> bool {
    ["$ ", "% ", "> "].iter().any(|mark| line.trim_start().starts_with(mark))
}

/// What a command installs: the words after a manager and its verb that are no flags.
fn packages(line: &str) -> Vec<&str> {
    let words: Vec<&str> = tokens(line).collect();
    let Some(manager) = words.iter().position(|word| MANAGERS.contains(word) || DIRECT.contains(word)) else {
        return Vec::new();
    };
    let rest = &words[manager + 1..];
    let from = match DIRECT.contains(&words[manager]) {
        true => 0,
        false => match rest.iter().position(|word| MANAGED.contains(word)) {
            Some(verb) => verb + 1,
            None => return Vec::new(),
        },
    };
    rest[from..].iter().copied().filter(|word| !word.starts_with('-') && is_package(word)).collect()
}

fn claim(token: &str, is_package: bool) -> Claim {
    let kind = match is_far(token) {
        true => ClaimKind::Address,
        false if is_package => ClaimKind::Package,
        false => ClaimKind::Name,
    };
    let parts: Vec<&str> = match kind {
        ClaimKind::Address => host_parts(token).collect(),
        ClaimKind::Package => token.split(['@', '=']).filter(|part| !part.is_empty()).collect(),
        ClaimKind::Name => parts(token).collect(),
    };
    // Of a setting the name and the value, each for itself.
    let is_setting = kind == ClaimKind::Name && token.contains('=') && !parts.is_empty();
    let parts: Vec<&str> = parts.into_iter().filter(|part| !is_setting || !is_compound(part)).collect();
    let whole = Some(token).filter(|_| !is_setting || parts.is_empty());
    let keys = whole.into_iter().chain(parts).map(key_of).collect();
    Claim {
        kind,
        text: token.to_owned(),
        keys,
        is_identifier: kind == ClaimKind::Name && is_identifier(token),
    }
}

/// May it name a package?
fn is_package(token: &str) -> bool {
    token.len() >= PACKAGE_BYTES
        && token.starts_with(|c: char| c.is_ascii_lowercase() || c == '@')
        && token.chars().all(|c| c.is_ascii_alphanumeric() || "-_.@/=".contains(c))
}

/// Greek, Cyrillic, Armenian, Cherokee, letters of formulas, in circles and of full width.
fn is_of_another_script(c: char) -> bool {
    matches!(c, '\u{370}'..='\u{58f}' | '\u{13a0}'..='\u{13ff}' | '\u{1d00}'..='\u{1d7f}' | '\u{2460}'..='\u{24ff}'
        | '\u{ff21}'..='\u{ff5a}' | '\u{1d400}'..='\u{1d7ff}')
}

/// The names of a field that are written with letters that only look like theirs, or with something invisible in them.
pub(super) fn disguised(field: &str) -> Vec<String> {
    if field.is_ascii() {
        return Vec::new();
    }
    let is_disguise = |token: &&str| {
        let seen = plain(token);
        let is_odd = |c: char| {
            is_of_another_script(c) || !c.is_ascii() && plain(c.encode_utf8(&mut [0; 4])).is_empty()
        };
        *seen != **token && seen.is_ascii() && token.contains(is_odd) && is_name(&seen)
    };
    let words = field.split(|c: char| c.is_whitespace() || "\"'`<>|;,()[]{}“”„‘’‚«»‹›…".contains(c));
    words.filter(is_disguise).map(str::to_owned).collect()
}

/// Programs that install and run what is named after them.
const DIRECT: [&str; 5] = ["npx", "uvx", "pipx", "bunx", "pnpx"];
/// Programs that do so with these words.
const MANAGERS: [&str; 23] = [
    "npm", "pnpm", "yarn", "bun", "cargo", "uv", "pip", "pip3", "poetry", "go", "gem", "brew", "apt",
    "apt-get", "dnf", "yum", "apk", "pacman", "conda", "composer", "dotnet", "pdm", "helm",
];
const MANAGED: [&str; 8] = ["install", "add", "i", "get", "require", "dlx", "binstall", "-S"];

/// An address without its scheme; of one without a path also its host. A host that is known says nothing of its pages.
fn host_parts(token: &str) -> impl Iterator<Item = &str> {
    let address = addresses(token).first().map_or(token, |address| address.text);
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let is_alone = rest[host.len()..].trim_end_matches('/').is_empty();
    let host = host.rsplit_once('@').filter(|(user, _)| !user.contains(':')).map_or(host, |(_, host)| host);
    let host = Some(host.split(':').next().unwrap_or(host)).filter(|_| is_alone);
    std::iter::once(rest).chain(host).filter(|part| !part.is_empty())
}

/// A run of four words of a note.
pub(super) struct Run {
    pub(super) hash: u64,
    /// Each with whether it says something.
    words: Vec<(String, bool)>,
}

/// The words of runs that follow each other, each once.
fn words_in(runs: &[Run]) -> impl Iterator<Item = &(String, bool)> {
    let first = runs.first().into_iter().flat_map(|run| &run.words);
    first.chain(runs.iter().skip(1).filter_map(|run| run.words.last()))
}

/// What runs that follow each other say.
pub(super) fn said(runs: &[Run]) -> String {
    words_in(runs).map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(" ")
}

/// Do runs that follow each other say something? Four words do with three of content, more of them with four.
pub(super) fn say_something(runs: &[Run]) -> bool {
    let says = |(_, is_content): &&(String, bool)| *is_content;
    let of_one = |run: &Run| run.words.iter().filter(says).count();
    runs.iter().any(|run| of_one(run) >= RUN_CONTENT) || words_in(runs).filter(says).count() > RUN_CONTENT
}

/// The runs of one field of a note.
pub(super) fn runs(field: &str, hasher: &impl BuildHasher) -> Vec<Run> {
    let seen = plain(field);
    let mut words: Vec<(u64, String, bool)> = Vec::new();
    let mut found = Vec::new();
    each_word(&seen, |word, is_half| words.push((hasher.hash_one(word), word.to_owned(), is_half)));
    for end in 1..=words.len() {
        // No run is longer than twice as many halves.
        let near = &words[end.saturating_sub(2 * RUN_WORDS)..end];
        let Some(start) = run_start(near.iter().map(|(_, _, is_half)| *is_half)) else { continue };
        let run = &near[start..];
        let hashes: Vec<(u64, bool)> = run.iter().map(|(hash, _, is_half)| (*hash, *is_half)).collect();
        found.push(Run {
            hash: run_key(hasher, &hashes),
            words: run
                .iter()
                .map(|(_, word, is_half)| (word.clone(), *is_half || !is_stop_word(word)))
                .collect(),
        });
    }
    found
}

/// Parts of words that people join with a hyphen.
const COMPOUND_PARTS: &[&str] = &[
    "non", "re", "pre", "post", "self", "up", "well", "high", "low", "long", "short", "full", "half",
    "multi", "single", "double", "cross", "co", "sub", "semi", "anti", "inter", "intra", "based", "only",
    "level", "time", "free", "like", "specific", "wide", "side", "line", "in", "out", "off", "to", "by",
    "on", "down", "over", "aware", "safe", "friendly", "end", "run", "read", "write", "one", "two", "three",
    "first", "second", "third", "last", "end", "real", "open", "built", "hard", "soft", "old", "new", "in",
    "of", "the", "and", "per", "case", "size", "sized", "point", "party", "purpose", "way", "day", "hour",
    "minute", "second", "year", "week", "month", "step", "letter", "word", "quality", "grade", "ready",
    "proof", "through", "back", "fast", "slow", "deep", "top", "bottom", "left", "right", "big", "small",
    "human", "machine", "user", "key", "left", "most", "least", "best", "worst", "ever", "never", "e", "ad",
    "hoc",
];

/// Is it a word of prose such as `read-only` or `up-to-date`, and no name?
fn is_compound(token: &str) -> bool {
    let is_word = token.chars().all(|c| c.is_lowercase() || c == '-') || {
        let mut chars = token.chars();
        chars.next().is_some_and(char::is_uppercase) && chars.all(|c| c.is_lowercase() || c == '-')
    };
    is_word && token.to_lowercase().split('-').any(|part| COMPOUND_PARTS.contains(&part))
}

/// What a text of somebody else's spells otherwise: escapes of URLs, HTML and programs, and what is packed in base64.
pub(super) fn unveiled(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let decoded = unescaped(text);
    if decoded != text {
        found.push(decoded);
    }
    for token in text.split(|c: char| !(c.is_ascii_alphanumeric() || "+/=-_".contains(c))) {
        if token.len() < 12 || token.len() > 4096 {
            continue;
        }
        let bare = token.trim_end_matches('=').replace('-', "+").replace('_', "/");
        use base64::Engine;
        if let Ok(bytes) = base64::engine::general_purpose::STANDARD_NO_PAD.decode(&bare)
            && let Ok(plain) = String::from_utf8(bytes)
            && plain.chars().all(|c| !c.is_control() || c.is_whitespace())
        {
            found.push(plain);
        }
    }
    found
}

/// `%2E`, `&#46;`, `&#x2e;`, `\x2e`, `\u002e` as what they stand for.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['%', '&', '\\']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        match escape(rest) {
            Some((c, length)) => {
                plain.push(c);
                rest = &rest[length..];
            }
            None => {
                plain.push_str(&rest[..1]);
                rest = &rest[1..];
            }
        }
    }
    plain + rest
}

/// The character that an escape at the beginning of a text stands for, and how long the escape is.
fn escape(text: &str) -> Option<(char, usize)> {
    let hex = |from: usize, length: usize| {
        let digits =
            text.get(from..from + length).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        char::from_u32(u32::from_str_radix(digits, 16).ok()?)
    };
    if text.starts_with('%') {
        return Some((hex(1, 2)?, 3));
    }
    if text.starts_with("\\x") {
        return Some((hex(2, 2)?, 4));
    }
    if text.starts_with("\\u") {
        return Some((hex(2, 4)?, 6));
    }
    let end = text[..crate::base::text::border(text, 12)].find(';')?;
    let number = text.get(2..end).filter(|_| text.starts_with("&#"))?;
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => number.parse().ok()?,
    };
    Some((char::from_u32(code)?, end + 1))
}

/// Words that stand for a mark: "evil dot example".
const SPOKEN: [&str; 12] = [
    "dot", "punkt", "punto", "point", "dash", "hyphen", "slash", "colon", "underscore", "at", "minus",
    "period",
];

/// The letters and digits of a text in lower case, and once more without the words that stand for marks.
pub(super) fn stream(text: &str, into: &mut String) {
    into.push(' ');
    text.chars().filter(|c| c.is_alphanumeric()).for_each(|c| into.extend(c.to_lowercase()));
    let lower = text.to_lowercase();
    let words = || lower.split(|c: char| !c.is_alphanumeric());
    if words().any(|word| SPOKEN.contains(&word)) {
        into.push(' ');
        words().filter(|word| !SPOKEN.contains(word)).for_each(|word| into.push_str(word));
    }
}
