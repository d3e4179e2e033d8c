//! Stores of notes, written as the contract lays their files out and without a program of ours.

use crate::measure::settle;
use std::fs;
use std::path::{Path, PathBuf};

/// So many bytes a generated note has, as near as its last line allows.
const SIZE: usize = 1500;
/// Words that no text about programming has: they make the vocabulary as wide as that of real notes.
const RARE_WORDS: u64 = 20_000;
/// One word in so many is one of them.
const RARE: u64 = 12;

/// The front matter of a note, and its body.
pub struct Note<'a> {
    pub id: String,
    pub title: &'a str,
    pub summary: &'a str,
    pub tags: &'a [String],
    pub repo: Option<&'a str>,
    pub body: &'a str,
}

/// Where the notes of this home lie if it has no configuration.
pub fn topics(home: &Path) -> PathBuf {
    home.join(".local/share/agent-memory/topics")
}

/// The id of the n-th note: no two alike below 58⁶, none like its neighbour.
pub fn id(n: u64) -> String {
    const DIGITS: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    // The factor has no divisor in common with 58.
    let mut rest = n.wrapping_mul(1_000_000_007) % 58u64.pow(6);
    let mut digits = [b'1'; 6];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[(rest % 58) as usize];
        rest /= 58;
    }
    format!("id__{}", String::from_utf8_lossy(&digits))
}

impl Note<'_> {
    pub fn write(&self, topics: &Path) {
        let slug: String = self.title.to_lowercase().replace(|c: char| !c.is_alphanumeric(), "-");
        let slug: String = slug.chars().take(60).collect();
        let tags = self.tags.join(" ");
        let path = topics.join(format!("{slug} -- {tags} {}.md", self.id));
        let scope = if self.repo.is_some() { "repo" } else { "global" };
        let source = match self.repo {
            Some(repo) => {
                format!("\n  - {{harness: codex, threadId: T-{}, repo: {repo}, cwd: /home/u/r}}", self.id)
            }
            None => " []".to_owned(),
        };
        let text = format!(
            "---\nid: {}\ntitle: {:?}\nsummary: {:?}\ntags: [{}]\nstatus: consolidated\ntier: warm\nscope: {scope}\n\
             pinned: false\nused: 3\nlast_used: 2026-02-13T14:30:00Z\ncreatedAt: 1771000000000\n\
             updatedAt: 1771000000000\nsources:{source}\naliases: []\n---\n\n{}",
            self.id,
            self.title,
            self.summary,
            self.tags.join(", "),
            self.body
        );
        fs::write(path, text).unwrap();
    }
}

/// Writes `count` notes of about 1.5 KB, no two alike, the same ones every time.
pub fn generate(home: &Path, count: u64) {
    let topics = topics(home);
    fs::create_dir_all(&topics).unwrap();
    let common = common_words();
    for n in 0..count {
        let mut writer = Writer { state: n, common: &common };
        let (title, summary) = (writer.line(30), writer.line(60));
        let tags = [format!("topic__{}", writer.common_word()), format!("area__{}", writer.common_word())];
        let tags = tags.map(|tag| tag.to_lowercase());
        let body = writer.body(SIZE - 400 - title.len() - summary.len());
        let repo = format!("github.com/o/r{}", writer.number(50));
        let repo = (writer.number(2) == 0).then_some(repo.as_str());
        Note { id: id(n), title: &title, summary: &summary, tags: &tags, repo, body: &body }.write(&topics);
    }
    settle();
}

fn common_words() -> Vec<&'static str> {
    include_str!("search/notes.txt")
        .split(|c: char| !c.is_ascii_alphabetic())
        .filter(|word| word.len() > 1)
        .collect()
}

/// What sessions in three repositories leave behind, a note at a time: one in ten holds everywhere, one in four says half of
/// an earlier note again, one in three links to an earlier one, and 40 tags are shared.
pub struct Sessions {
    common: Vec<&'static str>,
}

impl Sessions {
    pub fn new(home: &Path) -> Sessions {
        fs::create_dir_all(topics(home)).unwrap();
        Sessions { common: common_words() }
    }

    /// Writes the n-th note; `edits` is how often it was changed since.
    pub fn write(&self, home: &Path, n: u64, edits: u64) {
        let mut writer = Writer { state: n * 1000, common: &self.common };
        let (title, summary) = (writer.line(30), writer.line(60));
        let tags = [format!("topic__t{}", writer.number(30)), format!("area__a{}", writer.number(10))];
        let (whose, again, linked) = (writer.number(10), writer.number(4), writer.number(3));
        let earlier = writer.number(n.max(1));
        let mut body = writer.body(SIZE - 400 - title.len() - summary.len());
        if again == 0 && n > 10 {
            // Of the same reach, so that the two can be merged.
            let mut other = Writer { state: reach_mate(n) * 1000, common: &self.common };
            other.line(30);
            other.line(60);
            (0..6).for_each(|_| _ = other.number(1));
            let old = other.body(SIZE / 3);
            body = old + &body[body.len() / 2..];
        }
        if linked == 0 && n > 10 {
            body += &format!("\nSee [[{}]].\n", id(earlier));
        }
        for edit in 0..edits {
            body += &format!("\nChanged {edit}: {}\n", writer.line(90));
        }
        let repo = format!("github.com/o/r{}", n % 3);
        let repo = (whose > 0).then_some(repo.as_str());
        let topics = topics(home);
        Note { id: id(n), title: &title, summary: &summary, tags: &tags, repo, body: &body }.write(&topics);
    }
}

/// A note of the same repository, some days before the n-th.
fn reach_mate(n: u64) -> u64 {
    n.saturating_sub(3 * (1 + n % 13))
}

/// Makes up text, the same for the same start.
struct Writer<'a> {
    state: u64,
    common: &'a [&'a str],
}

impl Writer<'_> {
    /// SplitMix64.
    fn number(&mut self, below: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    fn common_word(&mut self) -> String {
        self.common[self.number(self.common.len() as u64) as usize].to_owned()
    }

    fn word(&mut self) -> String {
        if self.number(RARE) > 0 {
            return self.common_word();
        }
        const SYLLABLES: [&str; 12] =
            ["ba", "ren", "to", "mi", "las", "ku", "fer", "no", "dri", "ves", "po", "gal"];
        let mut rest = self.number(RARE_WORDS);
        let mut word = String::new();
        while rest > 0 || word.is_empty() {
            word += SYLLABLES[(rest % 12) as usize];
            rest /= 12;
        }
        word
    }

    /// Lines up to at least `length` bytes.
    fn body(&mut self, length: usize) -> String {
        let mut body = String::with_capacity(length + 100);
        while body.len() < length {
            body += &self.line(90);
            body += if self.number(5) == 0 { "\n\n" } else { "\n" };
        }
        body
    }

    /// Words up to at least `length` bytes.
    fn line(&mut self, length: usize) -> String {
        let mut line = self.word();
        while line.len() < length {
            line.push(' ');
            line += &self.word();
        }
        line
    }
}
