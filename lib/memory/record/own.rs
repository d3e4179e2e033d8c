//! In the person's words: what may hold everywhere, and what may change a note that a person has taken for their own.

use crate::memory::lists::{List, TURNS};
use crate::memory::record::plain::words_of;
use crate::memory::record::sentences::of_note;
use crate::memory::record::typed::{TypedSentence, is_same, ways};
use crate::memory::record::{Given, NoteText, Record};
use crate::memory::search::language::{is_stop_word, stem};
use std::collections::BTreeSet;

impl Record {
    /// Is it this sentence? A word that nobody else uses may be a typing error, and nothing from outside its correction.
    fn is_typed_as(&self, typed: &TypedSentence, sentence: &[String]) -> bool {
        is_same(&typed.words, sentence, &|typed, written| {
            let typed = Given { person: false, ..self.given(typed) };
            typed == Given::default() && self.given(written).outside.is_none()
        })
    }

    /// Did the person type this sentence?
    pub(super) fn has_typed(&self, sentence: &[String]) -> bool {
        self.typed.iter().any(|typed| self.is_typed_as(typed, sentence))
    }

    /// Are title, summary and body whole sentences that the person typed as a rule? The summary may be empty.
    pub fn is_own_rule(&self, note: &NoteText) -> bool {
        let is_one = |sentence: &[String]| {
            self.typed.iter().any(|typed| typed.is_rule && self.is_typed_as(typed, sentence))
        };
        let field = |text: &str| {
            let mut sentences = of_note(text);
            sentences.retain(|sentence| !words_of(sentence).is_empty());
            let is_any = |sentence: &String| ways(sentence).iter().any(|way| is_one(&words_of(way)));
            !sentences.is_empty() && sentences.iter().all(is_any)
        };
        field(note.title) && field(note.body) && (note.summary.trim().is_empty() || field(note.summary))
    }

    /// Why a change of a note is not in the person's words; `None`: it is. `cited` are the turns that are quoted for it.
    pub fn why_not_own(&self, cited: &[usize], old: &NoteText, new: &NoteText) -> Option<String> {
        let before: Vec<Vec<String>> = old.sentences().collect();
        let after: Vec<Vec<String>> = new.sentences().collect();
        let come: Vec<&Vec<String>> = after.iter().filter(|sentence| !before.contains(sentence)).collect();
        let mut gone: Vec<&Vec<String>> =
            before.iter().filter(|sentence| !after.contains(sentence)).collect();
        if come.is_empty() {
            return Some("it brings no sentence of yours".to_owned());
        }
        if !before
            .iter()
            .filter(|sentence| after.contains(sentence))
            .eq(after.iter().filter(|sentence| before.contains(sentence)))
        {
            return Some("its sentences change places".to_owned());
        }
        if is_foreign_to(&before, &self.typed) {
            return Some("you said it in another language".to_owned());
        }
        let quoted = cited_of(&self.typed, cited);
        let change = NoteChange {
            known: before.iter().flat_map(|sentence| content(sentence)).collect(),
            said: self.typed.iter().flat_map(|sentence| content(&sentence.words)).collect(),
            told: quoted.iter().flat_map(|sentence| content(&sentence.words)).collect(),
            before: before.iter().collect(),
            gone: &gone,
            quoted: &quoted,
        };
        let mut changed = come.iter().filter(|sentence| !self.has_typed(sentence));
        if let Some(why) = changed.find_map(|sentence| change.why_not(sentence)) {
            return Some(why);
        }
        // What goes needs a sentence of its own that comes, or is let go of.
        for sentence in come {
            if let Some(at) = nearest(sentence, &gone) {
                gone.remove(at);
            }
        }
        let lost = gone.into_iter().find(|sentence| !lets_go(&quoted, &content(sentence).collect()));
        lost.map(|sentence| format!("nothing replaces \"{}\"", sentence.join(" ")))
    }

    /// Does the person let go of a note with this title, in a turn that is quoted for it?
    pub fn lets_go(&self, cited: &[usize], title: &str) -> bool {
        lets_go(&cited_of(&self.typed, cited), &content(&words_of(title)).collect())
    }
}

/// A change of a note that is the person's.
struct NoteChange<'a> {
    /// The sentences of the old note, and those of them that go.
    before: Vec<&'a Vec<String>>,
    gone: &'a [&'a Vec<String>],
    /// What the person typed in the turns that are quoted.
    quoted: &'a [&'a TypedSentence],
    /// The words of content: of the old note, of all that the person typed, and of what is quoted.
    known: BTreeSet<String>,
    said: BTreeSet<String>,
    told: BTreeSet<String>,
}

impl NoteChange<'_> {
    /// Why a sentence that was not typed as it stands is not in the person's words.
    fn why_not(&self, sentence: &[String]) -> Option<String> {
        if let Some(word) =
            content(sentence).find(|word| !has_word(&self.known, word) && !is_said(&self.said, word))
        {
            return Some(format!("you did not say \"{word}\""));
        }
        if !self.quoted.iter().any(allows) && !content(sentence).any(|word| !has_word(&self.known, &word)) {
            return Some("it says otherwise what it said before".to_owned());
        }
        let from = nearest(sentence, &self.before).map_or(&[][..], |at| self.before[at]);
        if let Some(lost) = self.left_out(sentence, from).filter(|lost| !lets_go(self.quoted, lost)) {
            let lost: Vec<String> = content(from).filter(|word| lost.contains(word)).collect();
            return Some(format!("it leaves out \"{}\"", lost.join(" ")));
        }
        let kept = |words: &[String], other: &[String]| -> Vec<String> {
            let other: BTreeSet<String> = content(other).collect();
            content(words).filter(|word| other.contains(word) && !has_word(&self.told, word)).collect()
        };
        if kept(sentence, from) != kept(from, sentence) {
            return Some("its words change places".to_owned());
        }
        self.turned(sentence, from).map(|word| format!("\"{word}\" is not what you said"))
    }

    /// What a changed sentence lacks of the old one, if it is more than what comes. A number may go if the person said one.
    fn left_out(&self, sentence: &[String], from: &[String]) -> Option<BTreeSet<String>> {
        let (stays, stood): (BTreeSet<String>, BTreeSet<String>) =
            (content(sentence).collect(), content(from).collect());
        let has_number = self.said.iter().any(|word| is_number(word));
        let is_lost = |word: &String| {
            !has_word(&stays, word) && !is_said(&self.said, word) && (!has_number || !is_number(word))
        };
        let lost: BTreeSet<String> = stood.iter().filter(|word| is_lost(word)).cloned().collect();
        let come = stays.iter().filter(|word| !has_word(&stood, word)).count();
        (lost.len() > come).then_some(lost)
    }

    /// A negation, condition or quantifier that a changed sentence has or lacks, and the person did not say so. Of one subject,
    /// one negation is as good as another: "stop squashing" is "no squashing". "All" of a sentence that goes may be kept in this
    /// one, and one that says little beside what the person said may drop what they left out.
    fn turned(&self, sentence: &[String], from: &[String]) -> Option<String> {
        let turns = |words: &[String]| -> BTreeSet<String> {
            TURNS.iter().flat_map(|speech| speech.of(words)).collect()
        };
        let (has, had) = (turns(sentence), turns(from));
        let mut said: BTreeSet<String> =
            self.quoted.iter().flat_map(|sentence| turns(&sentence.words)).collect();
        let subject: BTreeSet<String> = content(sentence).collect();
        let negates = |typed: &&TypedSentence| {
            let is_negated =
                [List("negation"), List("let go")].iter().any(|speech| speech.is_in(&typed.words))
                    || typed.words.iter().any(|word| word == "stop");
            is_negated && content(&typed.words).any(|word| has_word(&subject, &word))
        };
        if self.quoted.iter().any(negates) {
            said.extend(List("negation").of(sentence));
        }
        let kept: BTreeSet<String> =
            self.gone.iter().flat_map(|sentence| List("quantifier").of(sentence)).collect();
        if let Some(word) = has.difference(&had).find(|word| !said.contains(*word) && !kept.contains(*word)) {
            return Some(word.clone());
        }
        let may_drop = |typed: &&TypedSentence| {
            let told: BTreeSet<String> = content(&typed.words).collect();
            allows(typed) || 2 * subject.iter().filter(|word| has_word(&told, word)).count() > subject.len()
        };
        let lost = had.difference(&has).find(|word| !said.contains(*word));
        lost.filter(|_| !self.quoted.iter().any(may_drop)).cloned()
    }
}

fn is_number(word: &str) -> bool {
    word.contains(|c: char| c.is_ascii_digit()) || List("numbers").has(word)
}

/// Is it a word of the person? Of a flag, they may have said the name.
fn is_said(said: &BTreeSet<String>, word: &str) -> bool {
    has_word(said, word) || has_word(said, word.trim_start_matches('-'))
}

/// Does it allow what was forbidden, or take something back?
fn allows(sentence: &&TypedSentence) -> bool {
    [List("let go"), List("permission")].iter().any(|speech| speech.is_in(&sentence.words))
}

/// Does one of these sentences take back what is about one of these words?
fn lets_go(quoted: &[&TypedSentence], subject: &BTreeSet<String>) -> bool {
    quoted.iter().any(|TypedSentence { words, .. }| {
        let takes_back = (0..words.len()).any(|at| {
            let length = List("let go").begins(&words[at..]);
            // "Do not forget", "vergiss nicht".
            let is_turned = at > 0 && List("negation").has(&words[at - 1])
                || words.get(at + length).is_some_and(|word| List("negation").has(word));
            length > 0 && !is_turned
        });
        takes_back && content(words).any(|word| has_word(subject, &word))
    })
}

/// Was nothing typed in the note's language, as far as a few words tell it?
fn is_foreign_to(note: &[Vec<String>], typed: &[TypedSentence]) -> bool {
    let ours = is_english(note.iter().flatten());
    let mut theirs = typed.iter().filter_map(|sentence| is_english(sentence.words.iter())).peekable();
    ours.is_some() && theirs.peek().is_some() && theirs.all(|language| Some(language) != ours)
}

/// Is it English, or another language? `None`: too few words tell.
fn is_english<'a>(words: impl Iterator<Item = &'a String>) -> Option<bool> {
    // Some words are words of several languages.
    let is_english = |word: &String| is_stop_word(word) && !List("negation").has(word);
    let lead: i32 = words.map(|word| i32::from(is_english(word)) - i32::from(List("filler").has(word))).sum();
    (lead.abs() > 1).then_some(lead > 0)
}

/// The typed sentences of the quoted turns.
fn cited_of<'a>(typed: &'a [TypedSentence], cited: &[usize]) -> Vec<&'a TypedSentence> {
    typed.iter().filter(|sentence| sentence.turn.is_some_and(|turn| cited.contains(&turn))).collect()
}

/// The stems of the words that say something about the subject.
fn content(words: &[String]) -> impl Iterator<Item = String> {
    const EMPTY: [List; 4] = [List("filler"), List("negation"), List("quantifier"), List("condition")];
    let says = |word: &&String| !is_stop_word(word) && !EMPTY.iter().any(|speech| speech.has(word));
    words.iter().filter(says).map(|word| stem(word).into_owned()).collect::<Vec<_>>().into_iter()
}

/// Is the word among them, inflected or not? English has a stemmer; of other languages the beginning decides.
fn has_word(words: &BTreeSet<String>, word: &str) -> bool {
    words.contains(word) || {
        let is_word = |word: &str| word.chars().count() >= 5 && word.chars().all(char::is_alphabetic);
        is_word(word) && words.iter().any(|other| is_word(other) && is_inflected(word, other))
    }
}

/// Do they differ in the last two letters at most?
fn is_inflected(one: &str, other: &str) -> bool {
    let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let [one, other] = [one, other].map(|word| word.chars().count());
    same + 2 >= one.max(other) && same >= 4 && same + 1 >= one.min(other)
}

/// Which of these sentences shares most with this one; of several, the one that has least beside that.
fn nearest(sentence: &[String], among: &[&Vec<String>]) -> Option<usize> {
    let words: BTreeSet<String> = content(sentence).collect();
    let shared = |other: &[String]| content(other).filter(|word| has_word(&words, word)).count();
    let likeness = |at: &usize| (shared(among[*at]), std::cmp::Reverse((among[*at].len(), *at)));
    (0..among.len()).max_by_key(likeness).filter(|best| shared(among[*best]) > 0)
}
