//! A reply, held against what was asked: what is to be written, and what becomes of each entry.

use crate::base::error::Result;
use crate::base::text::one_line;
use crate::memory::consolidate::Judged;
use crate::memory::consolidate::desk::Desk;
use crate::memory::consolidate::plan::{self, Known};
use crate::memory::consolidate::reply::{self, Asked as Expected};
use crate::memory::consolidate::work::{Verdict, Work};
use crate::memory::hash::hash;
use crate::store::entry::{EntryId, Status};
use crate::store::persistence::Persistence;
use crate::store::topics::Topics;
use std::collections::{BTreeMap, BTreeSet};

impl Desk<'_> {
    /// What the reply to the part under way comes to.
    pub(crate) fn judged(&self, work: &Work) -> Result<Judged> {
        let reply = self.reply(work)?.unwrap_or_default();
        let sources: BTreeSet<&str> = work.shown_ids().into_iter().collect();
        let updatable: BTreeSet<&EntryId> = work.updatable.keys().collect();
        let expected = Expected { batch: &work.batch, sources, updatable };
        let reply = match reply::parse(&reply, &expected) {
            Ok(reply) => reply,
            Err(faults) => return Ok(Judged::Faulty(faults)),
        };
        let topics = Topics::at(self.root);
        let mut ids = topics.ids()?;
        let entries = self.entries(work)?;
        let mut bodies = BTreeMap::new();
        for (id, shown) in &work.updatable {
            // What a person has written since must not be overwritten.
            if let Ok(note) = topics.find_own(id)
                && hash(note.entry.body()) == *shown
            {
                bodies.insert(id.clone(), String::from_utf8_lossy(note.entry.body()).into_owned());
            }
        }
        // Notes that a person wrote and the model passed over are filed as they are.
        let mut filed = Vec::new();
        let mut verdicts = Vec::new();
        for id in work.shown_ids() {
            let is_used = reply.entries.iter().any(|entry| entry.sources.iter().any(|source| source == id));
            let skipped = reply.skipped.iter().find(|skipped| skipped.source == id);
            let verdict = match (is_used, skipped) {
                (true, _) => Verdict::Processed(None),
                (false, Some(skipped)) => {
                    // One that is shown in parts is filed once, with its last.
                    let entry = entries.get(id).filter(|_| work.ends_with_this_part(id));
                    filed.extend(entry.and_then(|entry| self.as_it_is(entry, Status::Captured, &mut ids)));
                    Verdict::Processed(Some(one_line(&skipped.reason, 200)))
                }
                (false, None) => {
                    Verdict::Failed("the reply names it neither as a source nor as skipped".to_owned())
                }
            };
            let is_last = work.ends_with_this_part(id) || matches!(verdict, Verdict::Failed(_));
            if is_last {
                verdicts.push((id.to_owned(), verdict));
            }
        }
        let origins = entries.iter().map(|(id, entry)| (id.as_str(), Desk::origin(entry))).collect();
        let known = Known { at: self.env.now(), ids, bodies, sources: origins };
        let mut plan = plan::plan(&reply, known, |text| self.redactor.cleaned(text));
        plan.notes.extend(filed);
        Ok(Judged::Plan(plan, verdicts))
    }
}
