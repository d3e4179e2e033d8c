//! A question to the model, and its one repair. What every prompt has in common: fences that a text inside cannot close.

use crate::base::text::border;
use serde::{Deserialize, Serialize};

/// A prompt for one part of a batch. Saved with the state, so that a reply that comes after a crash is held against
/// what was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    pub batch: String,
    /// Which part of the batch, from 0.
    pub part: usize,
    /// How many parts there are.
    pub of: usize,
    pub prompt: String,
    /// What was wrong with the first reply; empty: this is the first question about the part.
    pub faults: Vec<String>,
    /// It shows notes that the first reply wanted to see.
    pub is_second_look: bool,
    /// An earlier reply, which can be used if there is no answer to this question.
    pub fallback: Option<String>,
}

impl Question {
    /// Asks once more, with what was wrong with `reply`; `None` if this was the second time. `rules` say what a reply looks
    /// like, and the prompt has at most `room` bytes. The first prompt is said again where there is room for it, if need be
    /// with the reply cut short: a filter remembers nothing.
    pub fn repaired(&self, rules: &str, reply: &str, faults: &[String], room: usize) -> Option<Question> {
        if self.is_repair() {
            return None;
        }
        let (batch, first) = (&self.batch, &self.prompt);
        let listed: String = faults.iter().fold(String::new(), |all, fault| all + "- " + fault + "\n");
        let mark = mark_for(batch, &[reply, first]);
        let tail = |reply: &str| {
            format!(
                "You were asked for a JSON object and replied with what stands between the marks {mark}:\n\n<<< reply \
                 {mark}\n{reply}\n>>> {mark}\n\nIt cannot be used:\n{listed}\nReply again, with the whole JSON object \
                 for batch {batch} and nothing else.\n"
            )
        };
        let own_words = tail("").len();
        let space = room.saturating_sub(first.len() + 1 + own_words);
        let (head, space) = if space >= reply.len().min(LEAST_REPLY) {
            (format!("{first}\n"), space)
        } else {
            let rules = format!("batch: {batch}\n\n{}\n\n", rules.replace("BATCH", batch));
            let space = room.saturating_sub(rules.len() + own_words);
            (rules, space)
        };
        let prompt = head + &tail(&reply[..border(reply, space)]);
        Some(Question { prompt, faults: faults.to_vec(), fallback: None, ..self.clone() })
    }

    pub fn is_repair(&self) -> bool {
        !self.faults.is_empty()
    }

    /// Does it follow from the reply to an earlier one about the same part?
    pub fn is_follow_up(&self) -> bool {
        self.is_repair() || self.is_second_look
    }

    /// The names that the last reply about the first part may have, the last first.
    pub(super) fn first_replies() -> [&'static str; 4] {
        ["reply-0-want-repair.txt", "reply-0-repair.txt", "reply-0-want.txt", "reply-0.txt"]
    }

    /// The name of the file in the batch that the reply goes into.
    pub(super) fn reply_name(&self) -> String {
        let look = if self.is_second_look { "-want" } else { "" };
        let repair = if self.is_repair() { "-repair" } else { "" };
        format!("reply-{}{look}{repair}.txt", self.part)
    }
}

/// What the line begins with that tells the day.
pub const TODAY: &str = "Today is ";

/// `lines`, ended by a line break.
pub fn push_lines(text: &mut String, lines: &str) {
    text.push_str(lines);
    if !lines.ends_with('\n') {
        text.push('\n');
    }
}

/// So much of a faulty reply is shown in any case, in bytes.
const LEAST_REPLY: usize = 2000;

/// A mark that none of the texts holds, so that none can end its fence.
pub fn mark_for(batch: &str, texts: &[&str]) -> String {
    let mut mark = format!("={}=", digits(batch));
    while texts.iter().any(|text| text.contains(&mark)) {
        mark = format!("={mark}=");
    }
    mark
}

/// What `write` makes of a mark that nothing else in it holds.
pub fn marked(batch: &str, write: impl Fn(&str) -> String) -> String {
    write(&mark_for(batch, &[&write("")]))
}

/// What tells one batch from another: in its id, and in the marks of its prompts.
pub(super) fn digits(batch: &str) -> &str {
    batch.rsplit('_').next().unwrap_or(batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repair_says_the_first_prompt_again_if_there_is_room() {
        let faults = ["entries: is missing".to_owned()];
        let repair = |first: &str, reply: &str, room: usize| {
            let question = Question { batch: "b".into(), prompt: first.into(), ..Question::default() };
            question.repaired("RULES of BATCH", reply, &faults, room).unwrap().prompt
        };
        let whole = repair("FIRST", "not json", 10_000);
        assert!(whole.starts_with("FIRST\n") && whole.contains("- entries: is missing\n"));
        let cut = repair("FIRST", &"x".repeat(9000), 6_000);
        assert!(cut.starts_with("FIRST\n") && cut.len() == 6_000 && cut.contains("- entries: is missing\n"));
        let long = "ä".repeat(5000);
        let tight = repair(&"x".repeat(9000), &long, 6_000);
        assert!(tight.len() <= 6_000 && tight.contains("ää") && !tight.contains("xxx"), "{}", tight.len());
    }
}
