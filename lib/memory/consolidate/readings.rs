//! What was said in the sessions of the batches under way, and who said it. It is kept from one part of a session to
//! the next, so that a run reads each passage once and not once more for every part behind it.

use crate::base::error::{Error, Result};
use crate::memory::consolidate::ask::ShownSession;
use crate::memory::consolidate::history::{History, facts_name, history_name};
use crate::memory::consolidate::passage::Passage;
use crate::memory::consolidate::ran::{Ran, Runs};
use crate::memory::consolidate::work::Slice;
use crate::memory::record::Record;
use crate::store::batch::Batch;
use crate::store::entry::EntryId;
use crate::store::journal::entry::QueueEntry;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

/// So many batches are kept at once. The size of each grows with the number of different words in its sessions.
const KEPT: usize = 8;

/// What this run has read of its batches, by batch.
#[derive(Debug, Default)]
pub struct Readings {
    readings: BTreeMap<String, Reading>,
    /// Something waits, which counts as from outside, so it matters what every session shows.
    follows_all: bool,
}

/// The sessions that one call shows, each read up to some passage.
#[derive(Debug, Default)]
struct Reading {
    sessions: Vec<Transcript>,
    record: Rc<Record>,
}

#[derive(Debug, Default)]
pub(super) struct Transcript {
    queue_id: String,
    pub(super) history: History,
    /// The file with its passages.
    path: PathBuf,
    /// What was read last.
    here: Option<Slice>,
    /// The index of the first passage that was not read.
    next: usize,
    /// The notes that the agent had cited before `here`, or that were counted when it read them.
    earlier: BTreeSet<EntryId>,
    /// Those that it cites in `here`.
    cited: BTreeSet<EntryId>,
    /// The commands that it runs in `here`, and when.
    ran: Vec<(Option<Timestamp>, Ran)>,
}

impl Readings {
    /// What these slices show of `entries`, in their order; turns are numbered through.
    pub(super) fn shown(
        &mut self,
        batch: &Batch,
        slices: &[Slice],
        entries: &BTreeMap<String, QueueEntry>,
    ) -> Result<Vec<ShownSession>> {
        let reading = self.reading(batch, slices)?;
        let digests = reading.digests(slices);
        let mut numbers = Numbers::default();
        let mut all = Vec::new();
        for ((Transcript { history, path, .. }, slice), (indices, left_out)) in
            reading.sessions.iter().zip(slices).zip(digests)
        {
            let Some(entry) = entries.get(&slice.queue_id).cloned() else { continue };
            let (mut earlier, mut passages) = (Vec::new(), Vec::new());
            numbers.next_session();
            history.read(path, indices, |passage, _| {
                let text = passage.brief().unwrap_or_default();
                earlier.push(Passage { text, full: None, ..numbers.number(passage) });
            })?;
            history.read(path, history.span(slice.from, slice.to), |passage, is_shown| {
                if is_shown {
                    passages.push(Passage { full: None, ..numbers.number(passage) });
                }
            })?;
            let (slice, cut) = (slice.clone(), history.cut);
            all.push(ShownSession { slice, entry, cut, earlier, left_out, passages });
        }
        Ok(all)
    }

    /// Who said what in these slices and before them.
    pub(super) fn record(&mut self, batch: &Batch, slices: &[Slice]) -> Result<Rc<Record>> {
        let reading = self.reading(batch, slices)?;
        reading.hear(batch, slices)?;
        Ok(Rc::clone(&reading.record))
    }

    /// What was run in these slices, of sessions in a repository.
    pub(super) fn runs(
        &mut self,
        batch: &Batch,
        slices: &[Slice],
        entries: &BTreeMap<String, QueueEntry>,
    ) -> Result<Runs> {
        let mut runs = Runs::default();
        for slice in slices {
            if let Some(entry) = entries.get(&slice.queue_id) {
                self.transcript(batch, slice)?.ran.iter().for_each(|(at, ran)| runs.add(entry, *at, ran));
            }
        }
        Ok(runs)
    }

    /// The branches that these sessions were on, by queue id.
    pub(super) fn branches(&mut self, batch: &Batch, slices: &[Slice]) -> Result<BTreeMap<String, String>> {
        let sessions = &self.reading(batch, slices)?.sessions;
        let of = |session: &Transcript| Some((session.queue_id.clone(), session.history.branch.clone()?));
        Ok(sessions.iter().filter_map(of).collect())
    }

    /// A session, read to the end of a slice.
    pub(super) fn transcript(&mut self, batch: &Batch, slice: &Slice) -> Result<&Transcript> {
        if self.read_to(batch, slice).is_none() {
            // An earlier run judged the reply.
            let alone = std::slice::from_ref(slice);
            self.reading(batch, alone)?.hear(batch, alone)?;
        }
        self.read_to(batch, slice).ok_or_else(|| Error::io("a slice of a session was not read"))
    }

    fn read_to(&self, batch: &Batch, slice: &Slice) -> Option<&Transcript> {
        self.readings.get(&batch.id)?.sessions.iter().find(|session| session.here.as_ref() == Some(slice))
    }

    /// From now on, sessions are followed that have read nothing outside, too.
    pub(super) fn follow_all(&mut self) {
        if !std::mem::replace(&mut self.follows_all, true) {
            self.readings.clear();
        }
    }

    pub(super) fn forget(&mut self, batch: &Batch) {
        self.readings.remove(&batch.id);
    }

    fn reading(&mut self, batch: &Batch, slices: &[Slice]) -> Result<&mut Reading> {
        let is_of_them = |reading: &Reading| {
            let ids = reading.sessions.iter().map(|session| &session.queue_id);
            ids.eq(slices.iter().map(|slice| &slice.queue_id))
        };
        if !self.readings.get(&batch.id).is_some_and(is_of_them) {
            if self.readings.len() >= KEPT {
                self.readings.clear();
            }
            let reading = Reading::new(batch, slices, self.follows_all)?;
            self.readings.insert(batch.id.clone(), reading);
        }
        Ok(self.readings.entry(batch.id.clone()).or_default())
    }
}

impl Reading {
    fn new(batch: &Batch, slices: &[Slice], follows_all: bool) -> Result<Reading> {
        let session = |Slice { queue_id, .. }: &Slice| {
            let history = batch.read_json(&facts_name(queue_id))?;
            let (queue_id, path) = (queue_id.clone(), batch.file(&history_name(queue_id)));
            Ok(Transcript { queue_id, history, path, ..Transcript::default() })
        };
        let sessions: Vec<Transcript> = slices.iter().map(session).collect::<Result<_>>()?;
        let is_followed = follows_all || sessions.iter().any(|session| session.history.reads_outside);
        let record = if is_followed { Record::default() } else { Record::inside() };
        Ok(Reading { sessions, record: Rc::new(record) })
    }

    /// What is shown of the turns before each slice. Those that another session of this call shows are not repeated.
    fn digests(&self, slices: &[Slice]) -> Vec<(Vec<usize>, usize)> {
        let pairs = || self.sessions.iter().zip(slices).enumerate();
        let mut shown: HashMap<&str, usize> = HashMap::new();
        for (of, (session, slice)) in pairs() {
            let span = session.history.span(slice.from, slice.to);
            shown.extend(session.history.turns_in(span).map(|turn| (turn, of)));
        }
        pairs()
            .map(|(of, (session, slice))| {
                let first = session.history.span(slice.from, slice.to).start;
                session.history.digest(first, |turn| shown.get(turn).is_some_and(|other| *other != of))
            })
            .collect()
    }

    /// Reads on to the end of these slices.
    fn hear(&mut self, batch: &Batch, slices: &[Slice]) -> Result<()> {
        let pairs = || self.sessions.iter().zip(slices);
        if pairs().all(|(session, slice)| session.here.as_ref() == Some(slice)) {
            return Ok(());
        }
        if pairs().any(|(session, slice)| session.history.span(slice.from, slice.to).start < session.next) {
            *self = Reading::new(batch, slices, !self.record.is_inside)?;
        }
        let digests = self.digests(slices);
        let record = Rc::make_mut(&mut self.record);
        record.forget_shown();
        let mut numbers = Numbers::default();
        for ((session, slice), (indices, _)) in self.sessions.iter_mut().zip(slices).zip(digests) {
            session.hear(slice, indices, record, &mut numbers)?;
        }
        Ok(())
    }
}

impl Transcript {
    fn hear(
        &mut self,
        slice: &Slice,
        digest: Vec<usize>,
        record: &mut Record,
        numbers: &mut Numbers,
    ) -> Result<()> {
        let Transcript { history, path, earlier, cited, ran, .. } = self;
        ran.clear();
        let Range { start: from, end: to } = history.span(slice.from, slice.to);
        let is_note = history.is_note;
        earlier.append(cited);
        numbers.next_session();
        history.read(path, self.next..from, |passage, _| {
            earlier.extend(passage.counted().into_iter().chain(passage.cited()));
            passage.record(record, false, is_note);
        })?;
        // What is shown of it once more may be quoted. It is told again only now: who said something first is known.
        history.read(path, digest, |passage, _| {
            numbers.number(passage).record(record, true, is_note);
        })?;
        history.read(path, from..to, |passage, is_here| {
            earlier.extend(passage.counted());
            if is_here { &mut *cited } else { &mut *earlier }.extend(passage.cited());
            if is_here {
                ran.extend(passage.ran.iter().map(|ran| (passage.at, ran.clone())));
            }
            let passage = if is_here { numbers.number(passage) } else { passage };
            passage.record(record, is_here, is_note);
        })?;
        self.next = to;
        self.here = Some(slice.clone());
        Ok(())
    }

    /// The notes that the agent cites in the slice that was read last, and had not cited earlier in the session.
    pub(super) fn newly_cited(&self) -> BTreeSet<EntryId> {
        self.cited.difference(&self.earlier).cloned().collect()
    }
}

/// The numbers of turns in a prompt, from 1.
#[derive(Debug, Default)]
struct Numbers {
    last: usize,
    /// The last turn's number in its session.
    turn: Option<usize>,
}

impl Numbers {
    fn next_session(&mut self) {
        self.turn = None;
    }

    fn number(&mut self, passage: Passage) -> Passage {
        if self.turn.replace(passage.number) != Some(passage.number) {
            self.last += 1;
        }
        Passage { number: self.last, ..passage }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test may write files")]

    use super::*;
    use crate::harness::turn::Role;
    use crate::memory::consolidate::ask::session_of;
    use crate::memory::consolidate::history::HistoryWriter;
    use crate::memory::record::{NoteText, Speaker};
    use crate::store::batch::Batches;
    use crate::store::entry::By;
    use crate::store::place::Root;

    /// A batch with a session of the turns "word 0", "word 1" and so on, of which the agent's cite a note.
    fn batch(dir: &tempfile::TempDir, turns: usize) -> Batch {
        let batch = Batches::of_queue(&Root::at(dir.path())).begin().unwrap();
        let mut writer = HistoryWriter::new(&batch.file(&history_name("q")), 1000).unwrap();
        for number in 0..turns {
            let (role, note) = match number % 2 {
                0 => (Role::User, ""),
                _ => (Role::Assistant, " [[id__AAAAAA]]"),
            };
            let text = format!("word {number}{note}");
            let turn = Passage { number, role, text, is_typed: role == Role::User, ..Passage::default() };
            writer.turn(turn, format!("hash{number}"), 0).unwrap();
        }
        batch.write_json(&facts_name("q"), &writer.finish().unwrap()).unwrap();
        batch
    }

    fn said(record: &Record, body: &str) -> By {
        record.by(&NoteText { body, ..NoteText::default() }, None)
    }

    fn slice(from: usize, to: usize) -> Vec<Slice> {
        vec![Slice { queue_id: "q".to_owned(), from, to, number: 1, of: 1 }]
    }

    #[test]
    fn a_history_that_lacks_what_every_history_has_is_damaged() {
        for text in ["{}", r#"{"passages":[],"cut":0}"#] {
            assert!(serde_json::from_str::<History>(text).is_err(), "{text}");
        }
        for text in ["{}", r#"{"number":1,"role":"user"}"#] {
            assert!(serde_json::from_str::<Passage>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_later_part_knows_what_was_said_before_it_and_reads_only_itself() {
        let dir = tempfile::tempdir().unwrap();
        let batch = batch(&dir, 6);
        let mut readings = Readings::default();
        let first = readings.record(&batch, &slice(0, 3)).unwrap();
        assert_eq!(first.quote(3, "word 2"), Some(Speaker::Person));
        drop(first);
        assert_eq!(readings.transcript(&batch, &slice(0, 3)[0]).unwrap().newly_cited().len(), 1);
        // Whoever reads the first passage from now on finds that it is damaged.
        let path = batch.file(&history_name("q"));
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[0] = b'x';
        std::fs::write(&path, &bytes).unwrap();
        let entries = BTreeMap::from([("q".to_owned(), session_of(None))]);
        let texts: Vec<(usize, String)> = readings.shown(&batch, &slice(3, 6), &entries).unwrap()[0]
            .passages
            .iter()
            .map(|passage| (passage.number, passage.text.clone()))
            .collect();
        assert_eq!((texts.len(), &texts[1]), (3, &(2, "word 4".to_owned())));
        let second = readings.record(&batch, &slice(3, 6)).unwrap();
        assert_eq!(second.quote(2, "word 4"), Some(Speaker::Person));
        assert_eq!(second.quote(3, "word 2"), None, "that was another prompt");
        assert_eq!(
            said(&second, "- word 0\n- word 2\n- word 4"),
            By::Person,
            "what was typed earlier counts"
        );
        // Cited again, but not for the first time.
        assert!(readings.transcript(&batch, &slice(3, 6)[0]).unwrap().newly_cited().is_empty());
        assert!(Readings::default().record(&batch, &slice(3, 6)).is_err());
    }

    #[test]
    fn a_part_that_was_read_by_an_earlier_run_is_read_from_its_session_s_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let batch = batch(&dir, 6);
        let mut readings = Readings::default();
        assert!(readings.transcript(&batch, &slice(4, 6)[0]).unwrap().newly_cited().is_empty());
        // An earlier part once more: nothing that was said later is known.
        let record = readings.record(&batch, &slice(0, 2)).unwrap();
        assert_eq!(said(&record, "word 0"), By::Person);
        assert_ne!(said(&record, "word 4"), By::Person);
        assert_eq!(readings.transcript(&batch, &slice(0, 2)[0]).unwrap().newly_cited().len(), 1);
        readings.forget(&batch);
        assert!(readings.readings.is_empty());
    }
}
