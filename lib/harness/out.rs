//! Collects the turns that a reader finds and passes them on in order: a call waits for its result.

use crate::base::error::Result;
use crate::harness::content::{self, ContentPart, PromptMessage, Skip, Taken, ToolUse};
use crate::harness::recalled;
use crate::harness::turn::{
    IMAGE, NO_RESULT, Role, SessionReport, ShownCall, ToolCall, Turn, exit_code, shown_result,
};
use jiff::Timestamp;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};

/// Receives the turns.
pub(super) type OnTurn<'a> = dyn FnMut(Turn) -> Result<()> + 'a;

/// The name of the call that stands for what a person attached. No tool has blanks in its name.
pub(super) const ATTACHED: &str = "attached to the prompt";

/// The name of the call that stands for a command that a person ran in the program.
pub(super) const PERSONS_SHELL: &str = "user's shell";

/// The most turns, and bytes of turns, that wait behind a call without a result. Results come soon or never; one
/// that comes later becomes a turn of its own.
const PENDING: usize = 256;
const PENDING_BYTES: usize = 4 << 20;

pub(super) struct TurnSink<'a> {
    each: &'a mut OnTurn<'a>,
    /// The id of the last turn that was read before.
    pub(super) last: Option<&'a str>,
    /// When what is added now was said.
    pub(super) at: Option<Timestamp>,
    pub(super) report: SessionReport,
    /// The file looks like another program's.
    pub(super) is_foreign: bool,
    /// See [`Format`](crate::harness::spec::Format).
    pub(super) marks_failures: bool,
    /// What its program logged as typed.
    prompts: HashSet<String>,
    waiting: VecDeque<PendingTurn>,
    waiting_bytes: usize,
    /// How often each id was used, by its hash.
    ids: HashMap<u64, u32>,
    hasher: RandomState,
}

#[derive(Default)]
struct PendingTurn {
    turn: Turn,
    /// The key of the result that the turn waits for.
    key: Option<String>,
    recalls: bool,
}

impl<'a> TurnSink<'a> {
    pub(super) fn new<'b: 'a>(
        each: &'a mut OnTurn<'b>,
        last: Option<&'a str>,
        prompts: HashSet<String>,
    ) -> TurnSink<'a> {
        TurnSink {
            each,
            last,
            prompts,
            at: None,
            is_foreign: false,
            marks_failures: false,
            report: SessionReport::default(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            ids: HashMap::new(),
            hasher: RandomState::new(),
        }
    }

    /// Adds a turn of text, unless it is blank.
    pub(super) fn turn(&mut self, role: Role, text: &str, id: String) -> Result<()> {
        self.say(Turn { role, id, ..Turn::default() }, text)
    }

    /// Adds a message of the user, behind what was attached to it. `is_typed`: what the record says; `None`: the
    /// program has a log of what was typed, and only what stands in it was.
    pub(super) fn prompt(&mut self, said: PromptMessage, is_typed: Option<bool>, id: String) -> Result<()> {
        let is_typed = is_typed.unwrap_or_else(|| self.prompts.contains(&said.words()));
        let message = said.whole();
        let attached = message.attached.iter().map(String::as_str).filter(|text| !text.is_empty());
        let attached = attached.collect::<Vec<_>>().join("\n");
        if !attached.trim().is_empty() {
            // It is material, like the content of a file, and not the person's words.
            let key = format!("{id}/attached");
            self.call(&key, ATTACHED, "", key.clone())?;
            self.result(&key, &attached, false)?;
        }
        self.say(Turn { role: Role::User, is_typed, id, ..Turn::default() }, &message.texts.join("\n"))
    }

    fn say(&mut self, turn: Turn, text: &str) -> Result<()> {
        let text = recalled::without_sections(text);
        if text.trim().is_empty() {
            return Ok(());
        }
        self.put(PendingTurn { turn: Turn { text: text.into_owned(), ..turn }, ..PendingTurn::default() })
    }

    /// Adds a tool call, with its arguments as JSON or as they are. Its turn waits in its place for the result with this key.
    pub(super) fn call(&mut self, key: &str, name: &str, arguments: &str, id: String) -> Result<()> {
        let ShownCall { call, text, brief, cut, recalls } = ShownCall::of(name, arguments);
        let turn = Turn { role: Role::Tool, text, id, cut, brief, call: Some(call), ..Turn::default() };
        self.put(PendingTurn { turn, key: Some(key.to_owned()), recalls })
    }

    /// Adds the result of a call. Results may come in any order.
    pub(super) fn result(&mut self, key: &str, text: &str, failed: bool) -> Result<()> {
        let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.key.as_deref() == Some(key))
        else {
            let (shown, cut) = shown_result(text, false);
            let call = "[an earlier call]";
            let turn = Turn {
                role: Role::Tool,
                text: format!("{call}\n=>\n{shown}"),
                id: format!("{key}/result"),
                cut,
                output: Some(call.len()),
                call: Some(ToolCall::default()),
                ..Turn::default()
            };
            return self.put(PendingTurn { turn, ..PendingTurn::default() });
        };
        let (shown, cut) = shown_result(text, waiting.recalls);
        waiting.key = None;
        let turn = &mut waiting.turn;
        let is_persons = turn.call.as_ref().is_some_and(|call| call.name == PERSONS_SHELL);
        let is_recorded = self.marks_failures && !is_persons;
        turn.has_worked = !failed && exit_code(text).map_or(is_recorded, |code| code == 0);
        turn.cut += cut;
        let sign = if failed { "=> failed" } else { "=>" };
        turn.output = Some(turn.text.len());
        turn.text.push_str(format!("\n{sign}\n{shown}").trim_end());
        self.waiting_bytes += shown.len();
        self.pass_on(false)
    }

    /// Adds what a part of an assistant's message says, as the turn `id`. A call is known by its key, or else by that.
    pub(super) fn part(&mut self, part: ContentPart, id: String) -> Taken {
        match part {
            ContentPart::Text(text) => self.turn(Role::Assistant, &text, id)?,
            ContentPart::Thought(text) => self.turn(Role::Reasoning, &text, id)?,
            ContentPart::Image => self.turn(Role::Assistant, IMAGE, id)?,
            ContentPart::ToolUse(ToolUse { key, name, input }) => {
                self.call(key.as_deref().unwrap_or(&id), &name, input, id.clone())?;
            }
            ContentPart::Result { key, text, failed } => self.result(&key.unwrap_or(id), &text, failed)?,
            ContentPart::Other(_) => return part.unknown(),
        }
        Ok(())
    }

    /// Passes on the parts of a message's content, each with its position. Those that are not known are counted as of `name`.
    pub(super) fn each_part<'p>(
        &mut self,
        content: &'p RawValue,
        name: &str,
        mut take: impl FnMut(usize, ContentPart<'p>, &mut TurnSink<'a>) -> Taken,
    ) -> Taken {
        for (n, part) in content::parts(content).into_iter().enumerate() {
            let taken = part.and_then(|part| take(n, part, self));
            self.count(name, taken)?;
        }
        Ok(())
    }

    /// The text and the images of a user's message.
    pub(super) fn message(&mut self, content: &RawValue) -> Result<PromptMessage, Skip> {
        let mut message = PromptMessage::default();
        self.each_part(content, "user part", |_, part, _| message.add(part))?;
        Ok(message)
    }

    /// Adds a command that the person ran, as the turn `id`: its output is evidence, but no words of theirs.
    pub(super) fn person_ran(&mut self, line: &str, output: &str, failed: bool, id: String) -> Result<()> {
        self.call(&id, PERSONS_SHELL, line.trim(), id.clone())?;
        self.result(&id, output.trim(), failed)
    }

    /// Counts what was skipped of a record, as of `name`.
    pub(super) fn count(&mut self, name: &str, taken: Taken) -> Result<()> {
        let what = match taken {
            Ok(()) => return Ok(()),
            Err(Skip::Stopped(error)) => return Err(error),
            Err(Skip::Unknown(kind)) => kind,
            Err(Skip::Shape | Skip::Torn) => "in another shape".to_owned(),
        };
        self.report.unknown(&format!("{name} {what}"));
        Ok(())
    }

    /// There was no turn so far.
    pub(super) fn is_silent(&self) -> bool {
        self.ids.is_empty()
    }

    /// A call waits for this result.
    pub(super) fn waits_for(&self, key: &str) -> bool {
        self.waiting.iter().any(|waiting| waiting.key.as_deref() == Some(key))
    }

    /// The key of the call that has waited longest, for results without an id.
    pub(super) fn oldest_call(&self) -> Option<String> {
        self.waiting.iter().find_map(|waiting| waiting.key.clone())
    }

    /// Passes on what still waits.
    pub(super) fn finish(mut self) -> Result<SessionReport> {
        self.pass_on(true)?;
        Ok(self.report)
    }

    fn put(&mut self, mut new: PendingTurn) -> Result<()> {
        new.turn.at = self.at;
        self.make_unique(&mut new.turn.id);
        self.waiting_bytes += new.turn.text.len();
        self.waiting.push_back(new);
        self.pass_on(false)
    }

    /// Makes the id unique. Reading resumes after the last turn that was read, which is found by its id.
    fn make_unique(&mut self, id: &mut String) {
        let given = id.clone();
        loop {
            let times = self.ids.entry(self.hasher.hash_one(&*id)).or_default();
            *times += 1;
            if *times == 1 && !id.is_empty() {
                return;
            }
            *id = format!("{given}~{times}");
        }
    }

    /// Passes on the turns up to the first call that still waits, or all.
    fn pass_on(&mut self, all: bool) -> Result<()> {
        while let Some(first) = self.waiting.front() {
            let full = self.waiting.len() > PENDING || self.waiting_bytes > PENDING_BYTES;
            if first.key.is_some() && !all && !full {
                return Ok(());
            }
            let Some(PendingTurn { mut turn, key, .. }) = self.waiting.pop_front() else { return Ok(()) };
            self.waiting_bytes = self.waiting_bytes.saturating_sub(turn.text.len());
            if key.is_some() {
                self.report.open_calls += 1;
                turn.text.push_str(&format!("\n=> {NO_RESULT}"));
            }
            self.report.turns += 1;
            (self.each)(turn)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::Error;

    fn collected(act: impl FnOnce(&mut TurnSink) -> Result<()>) -> (Vec<String>, SessionReport) {
        let mut texts = Vec::new();
        let mut each = |turn: Turn| {
            texts.push(turn.text);
            Ok(())
        };
        let mut out = TurnSink::new(&mut each, None, HashSet::new());
        act(&mut out).unwrap();
        let report = out.finish().unwrap();
        (texts, report)
    }

    fn call(out: &mut TurnSink, key: &str) -> Result<()> {
        out.call(key, key, "{}", key.into())
    }

    #[test]
    fn turns_are_in_the_order_of_the_calls_not_of_the_results() {
        let (texts, report) = collected(|out| {
            call(out, "a")?;
            call(out, "b")?;
            out.result("b", "two", true)?;
            out.turn(Role::Assistant, "said", "x".into())?;
            out.result("a", "one", false)
        });
        assert_eq!(texts, ["[a]\n=>\none", "[b]\n=> failed\ntwo", "said"]);
        assert_eq!((report.turns, report.open_calls), (3, 0));
    }

    #[test]
    fn a_call_without_a_result_says_so_and_blocks_others_only_for_a_while() {
        let (texts, report) = collected(|out| {
            call(out, "a")?;
            for n in 0..PENDING {
                out.turn(Role::User, "x", n.to_string())?;
            }
            assert_eq!(out.report.turns, PENDING + 1, "passed on while the file is still being read");
            out.result("a", "late", false)
        });
        assert_eq!(texts[0], "[a]\n=> [no result recorded]");
        assert_eq!(texts[PENDING + 1], "[an earlier call]\n=>\nlate");
        assert_eq!(report.open_calls, 1);
        let (texts, _) = collected(|out| {
            call(out, "a")?;
            out.turn(Role::User, &"x".repeat(PENDING_BYTES), "u".into())?;
            assert_eq!(out.report.turns, 2);
            Ok(())
        });
        assert_eq!(texts.len(), 2);
    }

    #[test]
    fn blank_turns_are_dropped_and_an_error_of_the_receiver_is_returned() {
        let (texts, _) = collected(|out| out.turn(Role::User, " \n", "x".into()));
        assert!(texts.is_empty());
        let mut each = |_: Turn| Err(Error::io("enough"));
        let mut out = TurnSink::new(&mut each, None, HashSet::new());
        assert_eq!(out.turn(Role::User, "x", "x".into()).unwrap_err().message(), "enough");
    }
}
