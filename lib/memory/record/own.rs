//! In the person's words: what may hold everywhere, and what may change a note that a person has taken for their own.

use crate::memory::record::NoteText;
use crate::memory::record::sentences::of_note;
use crate::memory::record::speech::Speech;
use crate::memory::record::typed::{TypedSentence, is_same};
use crate::memory::record::words::words_of;
use crate::memory::search::language::{is_stop_word, stem};
use std::collections::HashSet;

/// Are title, summary and body whole sentences that the person typed as a rule? The summary may be empty.
pub(super) fn is_rule(typed: &[TypedSentence], note: &NoteText) -> bool {
    let field = |text: &str| {
        let sentences = sentences(text);
        !sentences.is_empty()
            && sentences
                .iter()
                .all(|sentence| typed.iter().any(|typed| typed.is_rule && is_same(&typed.words, sentence)))
    };
    field(note.title) && field(note.body) && (note.summary.trim().is_empty() || field(note.summary))
}

/// The same for sentences that need not be rules.
pub(super) fn is_typed(typed: &[TypedSentence], sentence: &[String]) -> bool {
    typed.iter().any(|typed| is_same(&typed.words, sentence))
}

/// Why a change of a note is not in the person's words; `None`: it is. `cited` are the turns that are quoted for it.
pub(super) fn why_not_own(
    typed: &[TypedSentence],
    cited: &[usize],
    old: &NoteText,
    new: &NoteText,
) -> Option<String> {
    let all =
        |note: &NoteText| -> Vec<Vec<String>> { note.texts().into_iter().flat_map(sentences).collect() };
    let (before, after) = (all(old), all(new));
    let come: Vec<&Vec<String>> = after.iter().filter(|sentence| !before.contains(sentence)).collect();
    let gone: Vec<&Vec<String>> = before.iter().filter(|sentence| !after.contains(sentence)).collect();
    if come.is_empty() {
        return (!gone.is_empty()).then(|| "it only takes something away".to_owned());
    }
    let quoted = cited_of(typed, cited);
    if is_foreign_to(&before, typed) {
        return Some("you said it in another language".to_owned());
    }
    let said: HashSet<String> = typed.iter().flat_map(|sentence| content(&sentence.words)).collect();
    let known: HashSet<String> = before.iter().flat_map(|sentence| content(sentence)).collect();
    for sentence in &come {
        if is_typed(typed, sentence) {
            continue;
        }
        let is_given = |word: &String| has(&known, word) || has(&said, word);
        if let Some(word) = content(sentence).find(|word| !is_given(word)) {
            return Some(format!("you did not say \"{word}\""));
        }
        let from = nearest(sentence, &before);
        if let Some(word) = turned(sentence, from, &quoted) {
            return Some(format!("\"{word}\" is not what you said"));
        }
    }
    let comes: HashSet<String> = come.iter().flat_map(|sentence| content(sentence)).collect();
    let lost = gone.iter().find(|sentence| !content(sentence).any(|word| has(&comes, &word)));
    lost.map(|sentence| format!("nothing replaces \"{}\"", sentence.join(" ")))
}

/// Was nothing typed in the note's language, as far as a few words tell it?
fn is_foreign_to(note: &[Vec<String>], typed: &[TypedSentence]) -> bool {
    let ours = is_english(note.iter().flatten());
    let mut theirs = typed.iter().filter_map(|sentence| is_english(sentence.words.iter())).peekable();
    ours.is_some() && theirs.peek().is_some() && theirs.all(|language| Some(language) != ours)
}

/// Is it English, or another language? `None`: too few words tell.
fn is_english<'a>(words: impl Iterator<Item = &'a String>) -> Option<bool> {
    let (mut english, mut other) = (0_usize, 0_usize);
    for word in words {
        let is = |speech: Speech| speech.begins(std::slice::from_ref(word)) > 0;
        // Some words are words of several languages.
        let (is_english, is_other) = (is_stop_word(word) && !is(Speech::Negation), is(Speech::Filler));
        english += usize::from(is_english && !is_other);
        other += usize::from(is_other && !is_english);
    }
    match (english > other + 1, other > english + 1) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// Does the person let go of a note with this title, in a turn that is quoted for it?
pub(super) fn lets_go(typed: &[TypedSentence], cited: &[usize], title: &str) -> bool {
    let title: HashSet<String> = content(&words_of(title)).collect();
    cited_of(typed, cited).iter().any(|sentence| {
        Speech::LetGo.is_in(&sentence.words) && content(&sentence.words).any(|word| has(&title, &word))
    })
}

/// The typed sentences of the quoted turns; of all, if none of these was typed.
fn cited_of<'a>(typed: &'a [TypedSentence], cited: &[usize]) -> Vec<&'a TypedSentence> {
    let of_cited = |sentence: &&TypedSentence| sentence.turn.is_some_and(|turn| cited.contains(&turn));
    let quoted: Vec<&TypedSentence> = typed.iter().filter(of_cited).collect();
    if quoted.is_empty() { typed.iter().collect() } else { quoted }
}

fn sentences(text: &str) -> Vec<Vec<String>> {
    of_note(text).iter().map(|sentence| words_of(sentence)).filter(|words| !words.is_empty()).collect()
}

/// The stems of the words that say something about the subject.
fn content(words: &[String]) -> impl Iterator<Item = String> {
    let says = |word: &&String| {
        let one = std::slice::from_ref(*word);
        !is_stop_word(word)
            && ![Speech::Filler, Speech::Negation, Speech::Quantifier, Speech::Condition]
                .iter()
                .any(|speech| speech.begins(one) > 0)
    };
    words.iter().filter(says).map(|word| stem(word).into_owned()).collect::<Vec<_>>().into_iter()
}

/// Is the word among them, inflected or not? English has a stemmer; of other languages the beginning decides.
fn has(words: &HashSet<String>, word: &str) -> bool {
    words.contains(word) || {
        let is_word = |word: &str| word.chars().count() >= 5 && word.chars().all(char::is_alphabetic);
        is_word(word) && words.iter().any(|other| is_word(other) && is_inflected(word, other))
    }
}

/// Do they differ in the last two letters at most?
fn is_inflected(one: &str, other: &str) -> bool {
    let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let (short, long) =
        (one.chars().count().min(other.chars().count()), one.chars().count().max(other.chars().count()));
    same + 2 >= long && same >= 4 && same + 1 >= short
}

/// The sentence that shares most with this one.
fn nearest<'a>(sentence: &[String], among: &'a [Vec<String>]) -> Option<&'a Vec<String>> {
    let words: HashSet<String> = content(sentence).collect();
    let shared = |other: &&Vec<String>| content(other).filter(|word| words.contains(word)).count();
    among.iter().max_by_key(shared).filter(|best| shared(best) > 0)
}

/// A negation, condition or quantifier that a changed sentence has or lacks, and the person did not say so.
fn turned(sentence: &[String], from: Option<&Vec<String>>, quoted: &[&TypedSentence]) -> Option<String> {
    let of = |words: &[String]| -> HashSet<String> {
        [Speech::Negation, Speech::Condition, Speech::Quantifier]
            .iter()
            .flat_map(|speech| speech.of(words))
            .collect()
    };
    let (has, had) = (of(sentence), from.map(|from| of(from)).unwrap_or_default());
    let said: HashSet<String> = quoted.iter().flat_map(|sentence| of(&sentence.words)).collect();
    if let Some(word) = has.difference(&had).find(|word| !said.contains(*word)) {
        return Some(word.clone());
    }
    let lets_go = || quoted.iter().any(|sentence| Speech::LetGo.is_in(&sentence.words));
    had.difference(&has).find(|word| !said.contains(*word)).filter(|_| !lets_go()).cloned()
}
