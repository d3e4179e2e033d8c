//! What a program's own memory says, as it is compared with notes: word by word, without marks and punctuation.

use crate::memory::record::worded;

/// Shorter texts stand anywhere by chance. In words.
const LEAST: usize = 3;

#[derive(Debug, Default)]
pub struct Remembered(String);

impl Remembered {
    pub fn of(text: &str) -> Remembered {
        let words: Vec<String> = text.lines().flat_map(sentences).flatten().collect();
        Remembered(if words.is_empty() { String::new() } else { format!(" {} ", words.join(" ")) })
    }

    /// Does it say every sentence of a note's text?
    pub fn says(&self, text: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let sentences = sentences(text);
        sentences.iter().map(Vec::len).sum::<usize>() >= LEAST
            && sentences.iter().all(|words| self.0.contains(&format!(" {} ", words.join(" "))))
    }
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
}
