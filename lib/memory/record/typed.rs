//! What a person typed: sentences that count as that person's words.
//!
//! Questions, suppositions, reports of what somebody says, quotations and long pastes do not count. What decides stands in
//! `speech.txt`.

use crate::memory::lists::{List, TURNS};
use crate::memory::record::plain::words_of;
use crate::memory::record::sentences::{FOREIGN, list_item, of_turn};
use crate::memory::search::language::is_stop_word;
use strsim::osa_distance;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// A turn of a person with more characters counts as pasted, but for what stands beside marked blocks.
const TYPED_CHARS: usize = 500;
/// In words of so many letters one wrong letter is a typing error.
const TYPO_LETTERS: usize = 5;

/// A sentence that a person typed.
#[derive(Debug, Clone)]
pub(super) struct TypedSentence {
    /// Its turn's number, if the prompt shows it.
    pub(super) turn: Option<usize>,
    pub(super) text: String,
    pub(super) words: Vec<String>,
    /// It may be a rule: it speaks of more than this moment.
    pub(super) is_rule: bool,
}

/// What of a person's turn counts as typed. Empty if it is too long to have been typed.
pub(super) fn typed_part(text: &str) -> String {
    if text.chars().nth(TYPED_CHARS).is_none() {
        return text.to_owned();
    }
    let typed = unmarked(text);
    let is_typed = typed.len() < text.len() && typed.chars().nth(TYPED_CHARS).is_none();
    if is_typed { typed } else { String::new() }
}

/// What stands beside quotes and code blocks.
fn unmarked(text: &str) -> String {
    let mut is_code = false;
    let mut typed = String::new();
    for line in text.lines() {
        let start = line.trim_start();
        if start.starts_with("```") || start.starts_with("~~~") {
            is_code = !is_code;
        } else if !is_code && !start.starts_with('>') {
            typed.extend([line, "\n"]);
        }
    }
    typed
}

/// Does a turn pass on the words of others without a mark around them? It says so, asks about what stands in its other
/// lines, or has two lines of a conversation.
pub fn passes_on(text: &str) -> bool {
    let text = unmarked(text);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_about = |line: &&str| {
        line.contains(['?', '？']) && lines.len() > 1 && List("asks about a text").is_in(&words_of(line))
    };
    lines.iter().any(|line| is_about(line) || List("passes on").is_in(&words_of(line)))
        || lines.iter().filter(|line| names_speaker(line)).count() > 1
}

/// "Marek: Thursday." and "<marek> Thursday", also behind a time.
fn names_speaker(line: &str) -> bool {
    let said = line.trim_start_matches(|c: char| c.is_ascii_digit() || "[]():., ".contains(c));
    let name = match said.strip_prefix('<') {
        Some(said) => said.split_once("> "),
        None => said.split_once(": ").or_else(|| said.split_once('：')),
    };
    name.is_some_and(|(name, _)| {
        (1..=3).contains(&name.split_whitespace().count())
            && name.chars().all(|c| c.is_alphanumeric() || " -_.@'’()[]:".contains(c))
            && list_item(line).is_none()
            && [List("announcement"), List("lead-in")].iter().all(|list| list.begins(&words_of(name)) == 0)
    })
}

/// The sentences of a turn that are the person's own words. An exception belongs to the sentence before it.
pub(super) fn sentences_typed(text: &str, turn: Option<usize>) -> Vec<TypedSentence> {
    let mut whole: Vec<String> = Vec::new();
    for sentence in of_turn(text) {
        match whole.last_mut().filter(|_| List("exception").begins(&words_of(&sentence)) > 0) {
            Some(before) => before.extend([" ", &sentence]),
            None => whole.push(sentence),
        }
    }
    whole.retain(|sentence| is_own(sentence));
    let mut typed = Vec::new();
    for text in whole.iter().flat_map(|sentence| ways(sentence)) {
        let words = words_of(text);
        typed.push(TypedSentence { turn, text: text.to_owned(), is_rule: is_rule(&words), words });
    }
    typed.retain(|sentence| !sentence.words.is_empty());
    typed
}

/// A sentence as it stands, and what follows a comma or colon in it, if before that stands only that a rule follows: "a rule for
/// everywhere: …", "same in every project, …".
pub(super) fn ways(sentence: &str) -> Vec<&str> {
    let borders = sentence.match_indices([',', ':']).map(|(at, mark)| (at, at + mark.len()));
    let borders = borders.filter(|(_, end)| sentence[*end..].starts_with(' '));
    let announced = borders.take_while(|(at, _)| is_announcement(&sentence[..*at]));
    std::iter::once(sentence).chain(announced.map(|(_, end)| sentence[end..].trim_start())).collect()
}

/// Does it say that a rule follows, and not when or where it holds?
fn is_announcement(head: &str) -> bool {
    let words = without_since_when(&words_of(head));
    let says_nothing = |words: &[String]| {
        let speeches = [List("announcement"), List("lead-in"), List("filler"), List("quantifier")];
        let length = speeches.iter().map(|speech| speech.begins(words)).max().unwrap_or(0);
        length.max(usize::from(is_stop_word(&words[0])))
    };
    let mut rest = words.as_slice();
    while !rest.is_empty() && says_nothing(rest) > 0 {
        rest = &rest[says_nothing(rest)..];
    }
    let limits = [List("negation"), List("condition"), List("this time")];
    rest.is_empty() && !limits.iter().any(|speech| speech.is_in(&words))
}

/// Neither a question, nor a supposition, nor somebody else's words.
fn is_own(sentence: &str) -> bool {
    if sentence.contains(FOREIGN.trim()) || is_quotation(sentence) {
        return false;
    }
    let words = words_of(sentence);
    let is_question = sentence.trim_end().ends_with(['?', '？'])
        || sentence.trim_start().starts_with('¿')
        || List("question").begins(without_lead_in(&words)) > 0;
    (!is_question || is_request(&words))
        && !List("supposition").is_in(&words)
        && !List("report").is_in(&words)
}

/// "Could you always …?" asks for it to be done.
fn is_request(words: &[String]) -> bool {
    let led = &words[..words.len() - without_lead_in(words).len()];
    led.iter().any(|word| List("asks for it").has(word))
}

/// Does it quote three words or more?
fn is_quotation(sentence: &str) -> bool {
    let pairs = [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('»', '«'), ('「', '」')];
    let quote = |(open, close)| Some(sentence.split_once(open)?.1.split_once(close)?.0);
    pairs.into_iter().filter_map(quote).any(|inner| inner.split_whitespace().count() > 2)
}

/// Does it speak of more than this moment and this place?
fn is_rule(words: &[String]) -> bool {
    !List("this time").is_in(&without_since_when(words))
}

/// "From now on" says since when, and not how long.
fn without_since_when(words: &[String]) -> Vec<String> {
    let mut rest = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let length = List("since when").begins(&words[at..]);
        rest.extend(words.get(at).filter(|_| length == 0).cloned());
        at += length.max(1);
    }
    rest
}

/// The words without what only leads in.
fn without_lead_in(words: &[String]) -> &[String] {
    match List("lead-in").begins(words) {
        length if length > 0 && length < words.len() => without_lead_in(&words[length..]),
        _ => words,
    }
}

fn without_lead_out(words: &[String]) -> &[String] {
    let mut starts = (1..words.len()).rev().take(3);
    match starts.find(|at| List("lead-out").begins(&words[*at..]) == words.len() - at) {
        Some(start) => without_lead_out(&words[..start]),
        None => words,
    }
}

/// Are they one sentence, lead-ins and fixed typing errors aside? `may_fix` says whether one word may stand for another.
pub(super) fn is_same(typed: &[String], written: &[String], may_fix: &dyn Fn(&str, &str) -> bool) -> bool {
    let (typed, written) = (&spelled_out(typed)[..], &spelled_out(written)[..]);
    let core = |words| without_lead_out(without_lead_in(words));
    let ways = |words| [words, without_lead_in(words), core(words)];
    let is_same_word = |(typed, written): (&String, &String)| {
        typed == written
            // In a hurry people leave accents out.
            || typed.is_ascii() && written.nfd().filter(|c| !is_combining_mark(*c)).eq(typed.chars())
            || is_slip(typed, written) && may_fix(typed, written)
    };
    let is_same = |typed: &[String], written: &[String]| {
        typed.len() == written.len() && !typed.is_empty() && typed.iter().zip(written).all(is_same_word)
    };
    ways(typed).iter().any(|typed| ways(written).iter().any(|written| is_same(typed, written)))
}

/// The words without those that are only polite, and with short forms written out.
fn spelled_out(words: &[String]) -> Vec<String> {
    let long = |word: &String| List("short forms").after(word).map_or(word.clone(), |long| long.concat());
    words.iter().filter(|word| !List("polite").has(word)).map(long).collect()
}

/// Does one letter tell two words apart, or two that changed places? Words that turn a sentence around are no errors.
fn is_slip(typed: &str, written: &str) -> bool {
    let may_err =
        |word: &str| word.chars().all(char::is_alphabetic) && !TURNS.iter().any(|speech| speech.has(word));
    let is_long = |word: &str| word.chars().nth(TYPO_LETTERS - 1).is_some();
    // "Teh" is no word, and "the" says little.
    (is_long(typed) && is_long(written) || typed.len() > 2 && is_stop_word(written) && !is_stop_word(typed))
        && typed.len().abs_diff(written.len()) <= 2
        && may_err(typed)
        && may_err(written)
        && osa_distance(typed, written) <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_passes_on_what_it_announces_asks_about_or_quotes_as_a_chat() {
        for (text, expected) in [
            ("is this phishing?\n\nDear colleague.", true),
            ("Dear colleague.\n\nwhat do you think?", true),
            ("I copied this from a blog. Never test.", true),
            ("Ich hab das kopiert: nie testen.", true),
            ("Me: when?\nMarek: Thursday.", true),
            ("<marek> when?\n<ana> now", true),
            ("[10:02] ana: hi\n[10:03] Marek K. (he): hi", true),
            ("is this flaky? always run it twice.", false),
            ("fix it.\n\nand can you always use tabs?", false),
            ("why is CI red?\nps: never push.", false),
            ("Remember: use tabs.\nNote: never push.", false),
            ("- tests: always run\n- lint: never skip", false),
            ("Marek: always use tabs.", false),
            ("is this ok?\n```\nAlways push.\n```", false),
            ("is this ok?\n> Always push.", false),
        ] {
            assert_eq!(passes_on(text), expected, "{text}");
        }
    }
}
