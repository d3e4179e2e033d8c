//! How often `memory-list --query` finds the right note, asked in the note's own words and in others.

mod corpus;

use crate::measure::Home;
use crate::notes;
use corpus::{Note, Question, Score};
use std::fs;
use std::process::Stdio;

pub fn bench() {
    println!("{:<52} {:>12} {:>10}", "search: the right note comes", "first", "in five");
    let notes = corpus::notes(include_str!("search/notes.txt"));
    let questions = corpus::questions(include_str!("search/queries.txt"), true);
    let places = ask(&notes, &questions);
    let with = |which: fn(&Question) -> bool| score(&questions, &places, which);
    print("  asked in the note's words", &with(|question| question.same_words));
    print("    of these, not tuned on", &with(|question| question.same_words && !question.tuned));
    print("  asked in other words", &with(|question| !question.same_words));
    print("    of these, not tuned on", &with(|question| !question.same_words && !question.tuned));

    let developers = corpus::questions(include_str!("search/developer-queries.txt"), true);
    both("  quotes, flags, errors and code", &notes, &developers);
    let everyday = corpus::notes(include_str!("search/everyday-notes.txt"));
    let everyday_questions = corpus::questions(include_str!("search/everyday-queries.txt"), true);
    both("  everyday talk", &everyday, &everyday_questions);
    let foreign = corpus::notes(include_str!("search/foreign-notes.txt"));
    both(
        "  German and Japanese",
        &foreign,
        &corpus::questions(include_str!("search/foreign-queries.txt"), true),
    );
    let (long, questions) =
        corpus::long(notes.into_iter().chain(everyday), [questions, developers, everyday_questions].concat());
    both("  the same as long notes of eight subjects each", &long, &questions);
}

/// All questions, and those that were not tuned on.
fn both(what: &str, notes: &[Note], questions: &[Question]) {
    let places = ask(notes, questions);
    print(what, &score(questions, &places, |_| true));
    print("    of these, not tuned on", &score(questions, &places, |question| !question.tuned));
}

/// The place of the first right note for each question, out of five.
fn ask(notes: &[Note], questions: &[Question]) -> Vec<Option<usize>> {
    let home = Home::new();
    let topics = notes::topics(home.path());
    fs::create_dir_all(&topics).unwrap();
    for (note, n) in notes.iter().zip(0..) {
        let Note { title, tags, summary, body, .. } = note;
        notes::Note { id: notes::id(n), title, summary, tags, repo: None, body }.write(&topics);
    }
    let key =
        |id: &str| (notes.iter().zip(0..)).find(|(_, n)| notes::id(*n) == id).map(|(note, _)| &note.key);
    let place = |question: &Question| {
        let words = [env!("CARGO_BIN_EXE_memory-list"), "--query", &question.text, "--json", "--limit", "5"];
        let output = home.command(&words).stdout(Stdio::piped()).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", output.status);
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().position(|line| {
            let found: serde_json::Value = serde_json::from_str(line).unwrap();
            let key = key(found["id"].as_str().unwrap()).unwrap();
            question.keys.contains(key)
        })
    };
    questions.iter().map(place).collect()
}

fn score(questions: &[Question], places: &[Option<usize>], which: fn(&Question) -> bool) -> Score {
    let mut score = Score::default();
    for (_, place) in questions.iter().zip(places).filter(|(question, _)| which(question)) {
        score.add(*place);
    }
    score
}

fn print(what: &str, score: &Score) {
    let figure = format!("{what} ({})", score.asked);
    println!("{figure:<52} {:>10.0} % {:>8.0} %", score.hit_at_1(), score.hit_at_5());
}
