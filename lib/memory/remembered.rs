//! What a program's own memory says, as it is compared with notes: word by word, without marks and punctuation.

use crate::memory::record::worded;
use std::collections::HashSet;

/// Shorter texts stand anywhere by chance. In words.
pub const LEAST_WORDS: usize = 3;

/// Its sentences. A part of one may say the opposite: "do not use make for releases".
#[derive(Debug, Default)]
pub struct Remembered(HashSet<Vec<String>>);

impl Remembered {
    pub fn of(text: &str) -> Remembered {
        let lines = text.lines().map(|line| match without_link(line) {
            rest if rest.len() < line.len() => format!("- {rest}\n"),
            line => format!("{line}\n"),
        });
        Remembered(sentences(&lines.collect::<String>()).into_iter().collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Does it say every sentence of a note's text?
    pub fn says(&self, text: &str) -> bool {
        let sentences = sentences(text);
        sentences.iter().map(Vec::len).sum::<usize>() >= LEAST_WORDS
            && sentences.iter().all(|words| self.0.contains(words))
    }
}

/// What an index says of a file: `- [Title](file.md) — what it says`.
pub fn without_link(line: &str) -> &str {
    let is_link = line.trim_start().starts_with("- [");
    let rest = line.split_once("](").filter(|_| is_link).and_then(|(_, rest)| rest.split_once(')'));
    rest.map_or(line, |(_, rest)| rest.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '`'))
}

/// The words of each sentence, without emphasis, which may go over several words.
fn sentences(text: &str) -> Vec<Vec<String>> {
    worded(&text.replace("**", "").replace("__", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_said_if_each_of_its_sentences_stands_there() {
        let said = Remembered::of(
            "# Memory\n- [Dev server](dev.md) — The dev server listens on port 4310\n- Start it with `make serve`.\n",
        );
        assert!(said.says("The **dev server** listens on port `4310`."));
        assert!(said.says("The dev server listens on port 4310. Start it with make serve."));
        assert!(!said.says("The dev server listens on port 4311."));
        assert!(!said.says("The dev server listens on port 4310. Stop it at night."));
        assert!(!said.says("4310") && !said.says("") && !Remembered::of("").says("on port 4310"));
    }

    #[test]
    fn a_part_of_a_sentence_is_not_said() {
        for said in [
            "- Do not use make deploy for releases: it skips the tests.\n",
            "Do not\nuse make deploy for releases.\n",
            "- [Releases](releases.md) — Do not use make deploy for releases.\n",
        ] {
            assert!(!Remembered::of(said).says("Use make deploy for releases."), "{said}");
        }
        assert!(
            Remembered::of("# A\n\nUse make deploy\nfor releases.\n").says("Use make deploy for releases.")
        );
    }
}
