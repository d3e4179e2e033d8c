//! Reads the corpus that search is judged with: notes, and questions with the notes that answer them.
//! Shared by the benchmark and the unit tests.

pub struct Note {
    pub key: String,
    pub title: String,
    pub tags: Vec<String>,
    pub summary: String,
    pub body: String,
}

#[derive(Clone)]
pub struct Question {
    /// The query has the note's own words.
    pub same_words: bool,
    /// Was looked at when weights were chosen.
    pub tuned: bool,
    pub keys: Vec<String>,
    pub text: String,
}

/// `@ key | title | tags`, a line of summary, a body.
pub fn notes(text: &str) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(head) = line.strip_prefix("@ ") {
            let mut fields = head.split(" | ").map(str::to_owned);
            let mut field = || fields.next().unwrap_or_default();
            let (key, title) = (field(), field());
            let tags = field().split(' ').map(str::to_owned).collect();
            notes.push(Note { key, title, tags, summary: String::new(), body: String::new() });
        } else if let Some(note) = notes.last_mut() {
            if note.summary.is_empty() {
                note.summary = line.to_owned();
            } else {
                note.body.push_str(line);
                note.body.push('\n');
            }
        }
    }
    notes
}

/// `s|d keys query`, `d` where it is worded differently; of each four lines the first two were tuned on, if any.
pub fn questions(text: &str, tuned: bool) -> Vec<Question> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .enumerate()
        .map(|(number, line)| {
            let mut fields = line.splitn(3, ' ');
            let mut field = || fields.next().unwrap_or_default();
            Question {
                same_words: field() == "s",
                tuned: tuned && number / 2 % 2 == 0,
                keys: field().split(',').map(str::to_owned).collect(),
                text: field().to_owned(),
            }
        })
        .collect()
}

/// So many notes make a long one.
const SUBJECTS: usize = 8;

/// Long notes of many subjects, as of conversations: each holds the text of several notes, and answers their questions.
pub fn long(notes: impl Iterator<Item = Note>, mut questions: Vec<Question>) -> (Vec<Note>, Vec<Question>) {
    let notes: Vec<Note> = notes.collect();
    let count = notes.len().div_ceil(SUBJECTS);
    let mut long: Vec<Note> = (0..count)
        .map(|number| Note {
            key: format!("long-{number}"),
            title: format!("Session {number}"),
            tags: vec!["topic__session".to_owned()],
            summary: "What was said.".to_owned(),
            body: String::new(),
        })
        .collect();
    for (number, Note { key, title, summary, body, .. }) in notes.into_iter().enumerate() {
        let one = &mut long[number % count];
        one.body += &format!("{title}\n{summary}\n{body}\n");
        for wanted in
            questions.iter_mut().flat_map(|question| &mut question.keys).filter(|wanted| **wanted == key)
        {
            wanted.clone_from(&one.key);
        }
    }
    (long, questions)
}

/// How often the right note came first, and among the first five.
#[derive(Default)]
pub struct Score {
    pub asked: usize,
    pub first: usize,
    pub fifth: usize,
}

impl Score {
    /// `rank`: the place of the first right note, from 0.
    pub fn add(&mut self, rank: Option<usize>) {
        self.asked += 1;
        self.first += usize::from(rank == Some(0));
        self.fifth += usize::from(rank.is_some_and(|rank| rank < 5));
    }

    /// Percent.
    pub fn hit_at_1(&self) -> f64 {
        100.0 * self.first as f64 / self.asked.max(1) as f64
    }

    pub fn hit_at_5(&self) -> f64 {
        100.0 * self.fifth as f64 / self.asked.max(1) as f64
    }
}
