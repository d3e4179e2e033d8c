//! The history of one entry, in a file of its batch: a passage a line. It may be larger than memory.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::memory::consolidate::passage::{HEADER, Passage};
use crate::memory::consolidate::work::Length;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

/// The name of an entry's history in its batch.
pub(super) fn history_name(queue_id: &str) -> String {
    format!("{queue_id}.history.jsonl")
}

/// The name of what is known about that history.
pub(super) fn facts_name(queue_id: &str) -> String {
    format!("{queue_id}.history.json")
}

/// What is known about a history.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// The session's name in the ledger; `None`: a note, or a file that is no session.
    pub(super) session: Option<String>,
    pub(super) parent: Option<String>,
    /// Every passage, in order. Those that were read in an earlier run, too: they tell who said something first.
    pub(super) passages: Vec<PassageFacts>,
    /// Each turn's hash.
    pub(super) turns: Vec<String>,
    /// Bytes that were left out of turns, each place marked.
    pub(super) cut: usize,
    /// How many bytes of the turns that were read before are shown with a part.
    #[serde(default)]
    pub(super) earlier_room: usize,
    /// A tool showed something from outside in it.
    #[serde(default)]
    pub(super) reads_outside: bool,
    /// The branch that it was on in the end.
    #[serde(default)]
    pub(super) branch: Option<String>,
    /// It is a captured note: a title, and a body under it.
    #[serde(default)]
    pub(super) is_note: bool,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct PassageFacts {
    /// Where it ends in the file.
    end: u64,
    /// How many bytes it takes in a prompt, at most.
    bytes: usize,
    /// The index of its turn.
    pub(super) turn: usize,
    /// It is new: the model is to see it.
    pub(super) is_shown: bool,
    /// How many bytes it takes among the turns that were read before, at most; 0: it is left out there.
    #[serde(default)]
    brief: usize,
}

/// What stands around the turns that were read before takes so many bytes, at most.
pub(super) const DIGEST_FRAME: usize = 400;

impl History {
    /// How many bytes each passage takes that is to be shown, and what is shown before a part that begins with it.
    pub(super) fn lengths(&self) -> Vec<Length> {
        let (mut lengths, mut before) = (Vec::new(), 0);
        for passage in &self.passages {
            if passage.is_shown {
                let earlier = if before == 0 { 0 } else { self.earlier_room.min(before + DIGEST_FRAME) };
                lengths.push((passage.bytes, earlier));
            }
            before += passage.brief;
        }
        lengths
    }

    /// The indices of what is shown of the passages before the one with the index `before`, which are the last of them that
    /// fit; and how many turns of the person and the agent did not fit. Turns that `is_elsewhere` are shown as another
    /// session's.
    pub(super) fn digest(&self, before: usize, is_elsewhere: impl Fn(&str) -> bool) -> (Vec<usize>, usize) {
        let mut room = self.earlier_room.saturating_sub(DIGEST_FRAME);
        let is_said = |(_, passage): &(usize, &PassageFacts)| {
            passage.brief > 0 && !self.turns.get(passage.turn).is_some_and(|turn| is_elsewhere(turn))
        };
        let mut said = self.passages.iter().enumerate().take(before).rev().filter(is_said).peekable();
        let mut shown = Vec::new();
        while let Some((index, passage)) = said.next_if(|(_, passage)| passage.brief <= room) {
            room -= passage.brief;
            shown.push(index);
        }
        shown.reverse();
        let left_out: BTreeSet<usize> = said.map(|(_, passage)| passage.turn).collect();
        (shown, left_out.len())
    }

    /// The hashes of the turns that are shown in a span of passages.
    pub(super) fn turns_in(&self, span: Range<usize>) -> impl Iterator<Item = &str> {
        let shown = self.passages.get(span).unwrap_or_default().iter().filter(|passage| passage.is_shown);
        shown.filter_map(|passage| self.turns.get(passage.turn)).map(String::as_str)
    }

    /// The indices of all passages from the shown one `from` to the end of the shown one before `to`.
    pub(super) fn span(&self, from: usize, to: usize) -> Range<usize> {
        let places = self.passages.iter().enumerate().filter(|(_, passage)| passage.is_shown);
        let mut places = places.map(|(index, _)| index).take(to).skip(from);
        let Some(first) = places.next() else { return self.passages.len()..self.passages.len() };
        first..places.last().unwrap_or(first) + 1
    }

    /// Calls `each` with these passages, and whether each is to be shown.
    pub(super) fn read(
        &self,
        path: &Path,
        indices: impl IntoIterator<Item = usize>,
        mut each: impl FnMut(Passage, bool),
    ) -> Result<()> {
        let mut file = BufReader::new(fs_err::File::open(path)?);
        let (mut at, mut line) = (0, Vec::new());
        for index in indices {
            let Some(facts) = self.passages.get(index) else { break };
            let before = index.checked_sub(1).and_then(|before| self.passages.get(before));
            let start = before.map_or(0, |before| before.end);
            if start != at {
                file.seek(SeekFrom::Start(start))?;
            }
            at = facts.end;
            line.clear();
            file.read_until(b'\n', &mut line)?;
            let passage = serde_json::from_slice(&line)
                .map_err(|e| Error::corrupt(format!("\"{}\" is damaged", path.display())).because(e))?;
            each(passage, facts.is_shown);
        }
        Ok(())
    }

    fn shown(&self) -> impl Iterator<Item = &PassageFacts> {
        self.passages.iter().filter(|passage| passage.is_shown)
    }

    /// The hashes of the turns that end among the shown passages `from..to`.
    pub(super) fn turns_ending_in(&self, from: usize, to: usize) -> Vec<String> {
        let shown: Vec<usize> = self.shown().map(|passage| passage.turn).collect();
        let ends = |index: usize| shown.get(index + 1) != shown.get(index);
        let within = (from..to.min(shown.len())).filter(|index| ends(*index));
        within.filter_map(|index| self.turns.get(*shown.get(index)?).cloned()).collect()
    }
}

/// Writes a history.
pub(super) struct HistoryWriter {
    file: BufWriter<fs_err::File>,
    pub(super) history: History,
    end: u64,
    /// The longest passage, in bytes.
    longest: usize,
}

impl HistoryWriter {
    pub(super) fn new(path: &Path, longest: usize) -> Result<HistoryWriter> {
        let file = BufWriter::new(file::scratch(path)?);
        Ok(HistoryWriter { file, history: History::default(), end: 0, longest })
    }

    /// Adds a turn with its hash, as one passage or as several.
    pub(super) fn turn(&mut self, turn: Passage, hash: String, cut: usize) -> Result<()> {
        let index = self.history.turns.len();
        self.history.turns.push(hash);
        self.history.cut += cut;
        self.history.reads_outside |= turn.from.is_outside();
        for passage in (Passage { number: index, ..turn }).split(self.longest) {
            let line = serde_json::to_vec(&passage)
                .map_err(|e| Error::io("a turn cannot be written as JSON").because(e))?;
            self.file.write_all(&line)?;
            self.file.write_all(b"\n")?;
            self.end += line.len() as u64 + 1;
            // The parts of a captured note are no conversation.
            let brief = passage.brief().filter(|_| !self.history.is_note);
            let facts = PassageFacts {
                end: self.end,
                bytes: passage.bytes(),
                turn: index,
                is_shown: true,
                brief: brief.map_or(0, |text| HEADER + text.len()),
            };
            self.history.passages.push(facts);
        }
        Ok(())
    }

    /// Makes the file last.
    pub(super) fn finish(mut self) -> Result<History> {
        self.file.flush()?;
        let file = self.file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(self.history)
    }
}
