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
pub(crate) struct Note<'a> {
    pub(crate) id: String,
    pub(crate) title: &'a str,
    pub(crate) summary: &'a str,
    pub(crate) tags: &'a [String],
    pub(crate) repo: Option<&'a str>,
    pub(crate) body: &'a str,
}

/// Where the notes of this home lie if it has no configuration.
pub(crate) fn topics(home: &Path) -> PathBuf {
    home.join(".local/share/agent-memory/topics")
}

/// The id of the n-th note: no two alike below 58⁶, none like its neighbour.
pub(crate) fn id(n: u64) -> String {
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
    pub(crate) fn write(&self, topics: &Path) {
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
pub(crate) fn generate(home: &Path, count: u64) {
    let topics = topics(home);
    fs::create_dir_all(&topics).unwrap();
    let common: Vec<&str> = include_str!("search/notes.txt")
        .split(|c: char| !c.is_ascii_alphabetic())
        .filter(|word| word.len() > 1)
        .collect();
    for n in 0..count {
        let mut writer = Writer { state: n, common: &common };
        let (title, summary) = (writer.line(30), writer.line(60));
        let tags = [format!("topic__{}", writer.common_word()), format!("area__{}", writer.common_word())];
        let tags = tags.map(|tag| tag.to_lowercase());
        let mut body = String::with_capacity(SIZE);
        while body.len() + title.len() + summary.len() < SIZE - 400 {
            body += &writer.line(90);
            body += if writer.number(5) == 0 { "\n\n" } else { "\n" };
        }
        let repo = format!("github.com/o/r{}", writer.number(50));
        let repo = (writer.number(2) == 0).then_some(repo.as_str());
        Note { id: id(n), title: &title, summary: &summary, tags: &tags, repo, body: &body }.write(&topics);
    }
    settle();
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
