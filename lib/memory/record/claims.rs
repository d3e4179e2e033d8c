//! What a text says that another may repeat, in the form in which the two are compared: names (addresses, paths, flags,
//! identifiers, long numbers) and runs of four words. Letters are folded, and punctuation does not count: `evil[.]example`,
//! `EVIL.example` and "evil.\nexample" are the same.

use crate::base::text::{border, escape};
use crate::memory::addresses::{addresses, is_far, is_plain};
use crate::memory::facts::{PieceKind, is_alternative, is_unspaced, pieces};
use crate::memory::lists::List;
use crate::memory::programs::{INSTALLS, MANAGERS, PACKAGE_RUNNERS};
use crate::memory::record::plain::plain;
use crate::memory::search::language::is_stop_word;
use crate::store::entry::EntryId;
use base64::Engine;
use std::hash::BuildHasher;
use std::ops::Range;

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
}

impl Claim {
    /// Of one with a single key.
    fn name(text: &str, key: String) -> Claim {
        Claim { kind: ClaimKind::Name, text: text.to_owned(), keys: vec![key] }
    }

    /// `retry_budget`, `advanceTimers`, `pgx.Conn`: a name of code, which is compared as it stands.
    pub(super) fn is_identifier(&self) -> bool {
        let token = self.text.as_str();
        let is_code = token.contains('_') || token.contains("::") || token.contains(char::is_uppercase);
        self.kind == ClaimKind::Name
            && token.chars().all(|c| c.is_alphanumeric() || "_.:".contains(c))
            && is_code
            && !is_fingerprint(token)
            && !is_far(token)
    }
}

/// The letters and digits of a text, in lower case.
pub(super) fn key_of(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The words between blanks, quotes, brackets and the like.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let is_border = |c: char| {
        let is_mark = c.is_whitespace() || c.is_control() || "\"'`<>|;,()[]{}\\“”„‘’‚«»‹›…".contains(c);
        !is_plain(c) && (is_mark || is_unspaced(c))
    };
    let bare = text.split(is_border).map(|token| {
        let token = token.trim_end_matches(|c: char| "*_.:!?%-/".contains(c));
        token.trim_start_matches(|c: char| "*_:!?#+^%".contains(c))
    });
    bare.filter(|token| !token.is_empty())
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
    let pairs = || token.chars().zip(token.chars().skip(1));
    let mut marks = token.match_indices(|c| "./:@_-=".contains(c));
    let is_inner = |(at, mark): (usize, &str)| {
        token[..at].ends_with(char::is_alphanumeric)
            && token[at + mark.len()..].starts_with(char::is_alphanumeric)
    };
    is_path && key_of(token).len() > 1
        || pairs().any(|(a, b)| a.is_lowercase() && b.is_uppercase())
        || is_fingerprint(token)
        || (marks.any(is_inner) || token.contains("://")) && !is_abbreviation(token)
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

/// Calls `each` with the key of everything in a text that has a name.
pub(super) fn each_key(text: &str, mut each: impl FnMut(&str)) {
    for token in tokens(text) {
        let token = &token[..border(token, WORD_BYTES)];
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

/// Calls `each` with the hash of every run of four words, and with where it stands among the words of the text.
pub(super) fn each_run(text: &str, hasher: &impl BuildHasher, mut each: impl FnMut(u64, Range<usize>)) {
    // The last words: their hashes, and whether each is half a word.
    let mut last: Vec<(u64, bool)> = Vec::with_capacity(2 * RUN_WORDS + 1);
    let mut count = 0;
    each_word(text, |word, kind| {
        if last.len() == 2 * RUN_WORDS {
            last.remove(0);
        }
        last.push((hasher.hash_one(word), kind == Spelling::Half));
        count += 1;
        let mut halves = 0;
        let start = last.iter().rposition(|(_, is_half)| {
            halves += if *is_half { 1 } else { 2 };
            halves >= 2 * RUN_WORDS
        });
        if let Some(start) = start {
            each(hasher.hash_one(("run", &last[start..])), count - (last.len() - start)..count);
        }
    });
}

/// What a field of a note repeats in runs of four words and more, if that says something: four words with three of content do,
/// more of them with four. `is_repeated` gets the hash of a run.
pub(super) fn quotations(
    field: &str,
    hasher: &impl BuildHasher,
    is_repeated: impl Fn(u64) -> bool,
) -> Vec<String> {
    let seen = plain(field);
    let mut words: Vec<(String, bool)> = Vec::new();
    each_word(&seen, |word, kind| {
        words.push((word.to_owned(), kind == Spelling::Half || !is_stop_word(word)));
    });
    let mut runs = Vec::new();
    each_run(&seen, hasher, |hash, place| runs.push((is_repeated(hash), place)));
    let content = |place: &Range<usize>| words[place.clone()].iter().filter(|(_, says)| *says).count();
    let mut found = Vec::new();
    // Runs that follow each other are one quotation.
    for quoted in runs.chunk_by(|one, next| one.0 == next.0).filter(|runs| runs[0].0) {
        let whole = quoted[0].1.start..quoted.last().map_or(0, |(_, place)| place.end);
        if content(&whole) > RUN_CONTENT || quoted.iter().any(|(_, place)| content(place) >= RUN_CONTENT) {
            found.push(words[whole].iter().map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(" "));
        }
    }
    found
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    Whole,
    /// A character of a script without blanks.
    Half,
    /// Letters that stand alone, three and more in a row.
    Spelled,
}

/// Calls `each` with every word in normal form.
fn each_word(text: &str, mut each: impl FnMut(&str, Spelling)) {
    let (mut word, mut letters) = (String::new(), String::new());
    for c in text.chars().chain([' ']) {
        let is_end = c.is_whitespace() || is_unspaced(c);
        if is_end && word.chars().nth(1).is_none() {
            letters.push_str(&word);
            word.clear();
        }
        if is_unspaced(c) || is_end && !word.is_empty() {
            end_spelled(&mut letters, &mut each);
        }
        if is_end && !word.is_empty() {
            each(&word, Spelling::Whole);
            word.clear();
        }
        if is_unspaced(c) && c.is_alphanumeric() {
            each(c.encode_utf8(&mut [0; 4]), Spelling::Half);
        } else if !is_end && c.is_alphanumeric() && word.len() < WORD_BYTES {
            word.extend(c.to_lowercase());
        }
    }
    end_spelled(&mut letters, &mut each);
}

fn end_spelled(letters: &mut String, each: &mut impl FnMut(&str, Spelling)) {
    match letters.chars().nth(2) {
        Some(_) => each(letters, Spelling::Spelled),
        None => letters.chars().for_each(|c| each(c.encode_utf8(&mut [0; 4]), Spelling::Whole)),
    }
    letters.clear();
}

/// The names in one field of a note, in their order; also those that are spelled with blanks, with marks of code between
/// their letters, or with escapes. What is only a word with a hyphen in prose is none.
pub(super) fn names(field: &str) -> Vec<Claim> {
    let seen = plain(field);
    let mut found = names_in(&seen);
    let unmarked: String = seen.chars().filter(|c| !"`*\"'".contains(*c)).collect();
    for text in unveiled(&seen).into_iter().chain((unmarked.len() < seen.len()).then_some(unmarked)) {
        found.extend(names_in(&text).into_iter().filter(|claim| !claim.is_identifier()));
    }
    each_word(&seen, |word, kind| {
        if kind == Spelling::Spelled && word.len() >= SPELLED {
            found.push(Claim::name(word, word.to_owned()));
        }
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
                let is_named = |word: &&str| is_package || is_name(word) && (is_code || !is_compound(word));
                let flag = flag_key(token);
                let value = token.split_once('=').filter(|_| token.starts_with('-')).map(|(_, value)| value);
                let words = [Some(token).filter(|_| flag.is_none()), value].into_iter().flatten();
                found.extend(words.filter(is_named).map(|word| claim(word, is_package)));
                found.extend(flag.map(|key| Claim::name(token, key)));
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
    let mut words = tokens(line);
    let is_manager = |word: &&str| {
        PACKAGE_RUNNERS.has(word)
            || MANAGERS.has(word) && !List("managers with plain names").has(word)
            || List("managers of clusters").has(word)
    };
    let manager = words.find(is_manager);
    if !manager.is_some_and(|name| PACKAGE_RUNNERS.has(name) || words.any(|word| INSTALLS.has(word))) {
        return Vec::new();
    }
    words.filter(|word| !word.starts_with('-') && is_package(word)).collect()
}

fn claim(token: &str, is_package: bool) -> Claim {
    let (kind, mut parts): (_, Vec<&str>) = match is_far(token) {
        true => (ClaimKind::Address, host_parts(token).collect()),
        false if is_package => {
            (ClaimKind::Package, token.split(['@', '=']).filter(|part| !part.is_empty()).collect())
        }
        false => (ClaimKind::Name, parts(token).collect()),
    };
    // Of a setting the name and the value, each for itself.
    let is_setting = kind == ClaimKind::Name && token.contains('=') && !parts.is_empty();
    parts.retain(|part| !is_setting || !is_compound(part));
    let whole = Some(token).filter(|_| !is_setting || parts.is_empty());
    Claim { kind, text: token.to_owned(), keys: whole.into_iter().chain(parts).map(key_of).collect() }
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

/// Is it a word of prose such as `read-only` or `up-to-date`, and no name?
fn is_compound(token: &str) -> bool {
    let rest = token.strip_prefix(char::is_uppercase).unwrap_or(token);
    rest.chars().all(|c| c.is_lowercase() || c == '-')
        && token.to_lowercase().split('-').any(|part| List("compound parts").has(part))
}

/// What a text of somebody else's spells otherwise: escapes of URLs, HTML and programs, and what is packed in base64.
pub(super) fn unveiled(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let decoded = unescaped(text);
    if decoded != text {
        found.push(decoded);
    }
    let tokens = text.split(|c: char| !(c.is_ascii_alphanumeric() || "+/=-_".contains(c)));
    for token in tokens.filter(|token| (12..=4096).contains(&token.len())) {
        let bare = token.trim_end_matches('=').replace('-', "+").replace('_', "/");
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
        let (c, length) = escape(&rest.as_bytes()[at..]).unwrap_or((char::from(rest.as_bytes()[at]), 1));
        plain.push(c);
        rest = &rest[at + length..];
    }
    plain + rest
}

/// The letters and digits of a text in lower case, and once more without the words that stand for marks.
pub(super) fn stream(text: &str, into: &mut String) {
    const SPOKEN: List = List("spoken marks");
    into.push(' ');
    text.chars().filter(|c| c.is_alphanumeric()).for_each(|c| into.extend(c.to_lowercase()));
    let lower = text.to_lowercase();
    let words = || lower.split(|c: char| !c.is_alphanumeric());
    if words().any(|word| SPOKEN.has(word)) {
        into.push(' ');
        words().filter(|word| !SPOKEN.has(word)).for_each(|word| into.push_str(word));
    }
}
