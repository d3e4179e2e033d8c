//! Where readers put what they find: turns go out in order, calls wait for their results.

use crate::base::error::Result;
use crate::harness::recalled;
use crate::harness::tool::{self, NO_RESULT, ToolArguments};
use crate::harness::turn::{Role, SessionReport, Turn};
use jiff::Timestamp;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

/// Who gets the turns.
pub(super) type OnTurn<'a> = dyn FnMut(Turn) -> Result<()> + 'a;

/// A call waits while no more than so many turns, or bytes of them, wait behind it. Results come soon or not
/// at all; one that comes later still becomes a turn of its own.
const WAITING: usize = 256;
const WAITING_BYTES: usize = 1 << 20;

pub(super) struct TurnSink<'a> {
    each: &'a mut OnTurn<'a>,
    pub(super) report: SessionReport,
    waiting: VecDeque<PendingTurn>,
    waiting_bytes: usize,
    /// How often each id was given, by its hash.
    ids: HashMap<u64, u32>,
    hasher: RandomState,
}

struct PendingTurn {
    turn: Turn,
    /// The key of the result that is to come; `None` where nothing is.
    key: Option<String>,
    recalls: bool,
}

impl<'a> TurnSink<'a> {
    pub(super) fn new<'b: 'a>(each: &'a mut OnTurn<'b>) -> TurnSink<'a> {
        TurnSink {
            each,
            report: SessionReport::default(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            ids: HashMap::new(),
            hasher: RandomState::new(),
        }
    }

    /// A turn of text. One that says nothing is none.
    pub(super) fn turn(&mut self, role: Role, text: &str, id: String, at: Option<Timestamp>) -> Result<()> {
        let text = recalled::without_sections(text);
        if text.trim().is_empty() {
            return Ok(());
        }
        let turn = Turn { role, text: text.into_owned(), id, at, cut: 0 };
        self.put(PendingTurn { turn, key: None, recalls: false })
    }

    /// A call of a tool. Its turn keeps its place until the result with that key comes.
    pub(super) fn call(
        &mut self,
        key: &str,
        name: &str,
        arguments: ToolArguments,
        id: String,
        at: Option<Timestamp>,
    ) -> Result<()> {
        let shown = tool::call(name, arguments);
        let turn = Turn { role: Role::Tool, text: shown.text, id, at, cut: shown.cut };
        self.put(PendingTurn { turn, key: Some(key.to_owned()), recalls: shown.recalls })
    }

    /// What came of a call. Results may come in any order.
    pub(super) fn result(
        &mut self,
        key: &str,
        text: &str,
        failed: bool,
        at: Option<Timestamp>,
    ) -> Result<()> {
        match self.waiting.iter_mut().find(|waiting| waiting.key.as_deref() == Some(key)) {
            Some(waiting) => {
                let shown = tool::result(text, waiting.recalls);
                waiting.key = None;
                waiting.turn.cut += shown.cut;
                let sign = if failed { "=> failed" } else { "=>" };
                waiting.turn.text.push_str(format!("\n{sign}\n{}", shown.text).trim_end());
                self.waiting_bytes += shown.text.len();
                self.give(false)
            }
            None => {
                let shown = tool::result(text, false);
                let text = format!("[an earlier call]\n=>\n{}", shown.text);
                let turn = Turn { role: Role::Tool, text, id: format!("{key}/result"), at, cut: shown.cut };
                self.put(PendingTurn { turn, key: None, recalls: false })
            }
        }
    }

    /// Is there a call that waits for this result?
    pub(super) fn waits_for(&self, key: &str) -> bool {
        self.waiting.iter().any(|waiting| waiting.key.as_deref() == Some(key))
    }

    /// The key of the call that has waited longest, for results that do not say whose they are.
    pub(super) fn oldest_call(&self) -> Option<String> {
        self.waiting.iter().find_map(|waiting| waiting.key.clone())
    }

    /// Gives what still waits, and the report.
    pub(super) fn finish(mut self) -> Result<SessionReport> {
        self.give(true)?;
        Ok(self.report)
    }

    fn put(&mut self, mut new: PendingTurn) -> Result<()> {
        self.tell_apart(&mut new.turn.id);
        self.waiting_bytes += new.turn.text.len();
        self.waiting.push_back(new);
        self.give(false)
    }

    /// A record without an id, or with one that another had, still gets one of its own: a session that is read
    /// again goes on behind the turn that was the last, and two of one id would be one place.
    fn tell_apart(&mut self, id: &mut String) {
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

    /// Gives the turns that wait for nothing any more, or all.
    fn give(&mut self, all: bool) -> Result<()> {
        while let Some(first) = self.waiting.front() {
            let full = self.waiting.len() > WAITING || self.waiting_bytes > WAITING_BYTES;
            if first.key.is_some() && !all && !full {
                return Ok(());
            }
            let Some(PendingTurn { mut turn, key, .. }) = self.waiting.pop_front() else { return Ok(()) };
            self.waiting_bytes = self.waiting_bytes.saturating_sub(turn.text.len());
            if key.is_some() {
                self.report.open_calls += 1;
                turn.text.push_str("\n=> ");
                turn.text.push_str(NO_RESULT);
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

    fn told(act: impl FnOnce(&mut TurnSink) -> Result<()>) -> (Vec<String>, SessionReport) {
        let mut texts = Vec::new();
        let mut each = |turn: Turn| {
            texts.push(turn.text);
            Ok(())
        };
        let mut out = TurnSink::new(&mut each);
        act(&mut out).unwrap();
        let report = out.finish().unwrap();
        (texts, report)
    }

    fn call(out: &mut TurnSink, key: &str) -> Result<()> {
        out.call(key, key, ToolArguments::Text("{}"), key.into(), None)
    }

    #[test]
    fn turns_stand_in_the_order_of_the_calls_whatever_the_order_of_results() {
        let (texts, report) = told(|out| {
            call(out, "a")?;
            call(out, "b")?;
            out.result("b", "two", true, None)?;
            out.turn(Role::Assistant, "said", "x".into(), None)?;
            out.result("a", "one", false, None)
        });
        assert_eq!(texts, ["[a]\n=>\none", "[b]\n=> failed\ntwo", "said"]);
        assert_eq!((report.turns, report.open_calls), (3, 0));
    }

    #[test]
    fn a_call_without_a_result_says_so_and_holds_nothing_up_for_ever() {
        let (texts, report) = told(|out| {
            call(out, "a")?;
            for n in 0..WAITING {
                out.turn(Role::User, "x", n.to_string(), None)?;
            }
            assert_eq!(out.report.turns, WAITING + 1, "given while the file is still being read");
            out.result("a", "late", false, None)
        });
        assert_eq!(texts[0], "[a]\n=> [no result recorded]");
        assert_eq!(texts[WAITING + 1], "[an earlier call]\n=>\nlate");
        assert_eq!(report.open_calls, 1);
        let (texts, _) = told(|out| {
            call(out, "a")?;
            out.turn(Role::User, &"x".repeat(WAITING_BYTES), "u".into(), None)?;
            assert_eq!(out.report.turns, 2);
            Ok(())
        });
        assert_eq!(texts.len(), 2);
    }

    #[test]
    fn blank_turns_are_none_and_an_error_of_the_receiver_comes_back() {
        let (texts, _) = told(|out| out.turn(Role::User, " \n", "x".into(), None));
        assert!(texts.is_empty());
        let mut each = |_: Turn| Err(Error::io("enough"));
        let mut out = TurnSink::new(&mut each);
        assert_eq!(out.turn(Role::User, "x", "x".into(), None).unwrap_err().message(), "enough");
    }
}
