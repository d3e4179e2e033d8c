//! The real adapters: the notes, the command, AGENTS.md, the history. What the machine asks for is done here.

use crate::config::memory::MemoryConfig;
use crate::ground::cli::Notes;
use crate::ground::env::Env;
use crate::ground::error::{Error, Result};
use crate::memory::call::{self, Asked, Caller, Kind, Question};
use crate::memory::defrag::ask::{self, Corpus, OWN_WORDS};
use crate::memory::defrag::corpus::{self, CorpusNote};
use crate::memory::defrag::group::{self, Item};
use crate::memory::defrag::plan::{self, Allows, Dropped, Known, Plan, Planned};
use crate::memory::defrag::reply::{self, Op};
use crate::memory::defrag::similar;
use crate::memory::defrag::work::{Part, Work};
use crate::memory::defrag::{Adapters, Judged, State};
use crate::memory::redact::Redactor;
use crate::memory::section::{self, Outcome};
use crate::store::batch::{Batch, Batches};
use crate::store::entry::{EntryId, Tier, links};
use crate::store::history;
use crate::store::ledger::Seen;
use crate::store::persistence::{Note, Persistence, warn_of};
use crate::store::place::Root;
use crate::store::revision::{Reads, Revision, Standing};
use crate::store::topics::{Topics, is_taken};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The least room for notes in a prompt, in bytes.
const LEAST_ROOM: usize = 2000;
/// The number of the notes that link to one has so many digits, at most.
const LINKED_DIGITS: usize = 20;
/// The file of a batch with what was found out about all notes.
const STRUCTURE: &str = "structure.json";

pub(crate) struct Desk<'a> {
    pub(crate) config: &'a MemoryConfig,
    pub(crate) root: &'a Root,
    pub(crate) env: &'a Env,
    pub(crate) notes: &'a Notes,
    pub(crate) redactor: &'a Redactor,
    pub(crate) caller: Caller<'a>,
    pub(crate) kind: Kind,
    /// Asks about what has not changed, too.
    pub(crate) is_forced: bool,
    /// More may be lost than the shares say.
    pub(crate) allows_loss: bool,
    pub(crate) batch: Option<Batch>,
    /// How many notes are as before a batch whose undoing was carried on, and which batch.
    pub(crate) undone: Option<(usize, String)>,
    pub(crate) tally: Tally,
}

/// What a run has come to.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) made: Vec<Planned>,
    pub(crate) dropped: Vec<Dropped>,
    /// Operations that are none, and links that lead nowhere.
    pub(crate) warnings: Vec<String>,
    pub(crate) remarks: Vec<String>,
    pub(crate) targets: Vec<Outcome>,
}

/// What was done for one part.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Applied {
    pub(crate) made: Vec<Planned>,
}

/// What was found out about all notes, for the prompts.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Structure {
    /// Likely duplicates.
    pairs: Vec<(EntryId, EntryId, u8)>,
    /// How many notes lead to each.
    linked: BTreeMap<EntryId, usize>,
    hot: usize,
}

impl Desk<'_> {
    /// The batch that is under way.
    pub(crate) fn batch(&self) -> Result<&Batch> {
        self.batch.as_ref().ok_or_else(no_batch)
    }

    pub(crate) fn topics(&self) -> Topics {
        Topics::at(self.root)
    }

    /// How many notes there are, if the last defrag has not seen one of them as it is now, or has left a decision.
    pub(crate) fn news(&self) -> Result<Option<usize>> {
        let seen = Seen::load(self.root)?;
        let marks = corpus::marks(&self.topics())?;
        let is_new = marks.iter().any(|(id, mark)| !seen.has(id, mark));
        let has_news = !marks.is_empty() && (self.is_forced || seen.tiers_due || is_new);
        Ok(has_news.then_some(marks.len()))
    }

    /// Room for notes in one prompt, in bytes.
    fn room(&self) -> Result<usize> {
        let max = self.config.llm.max_prompt();
        let room = max.saturating_sub(OWN_WORDS);
        if room < LEAST_ROOM {
            return Err(Error::config(format!("llm.maxPromptBytes of {max} leaves no room for notes"))
                .hint(format!("set it to {} or more", OWN_WORDS + LEAST_ROOM)));
        }
        Ok(room)
    }

    fn clean(&self, text: &str) -> String {
        self.redactor.cleaned(text)
    }

    /// So many bytes a note takes in a prompt. Never fewer than it takes there in the end: one that its group has no
    /// room for would be asked about every night, and never shown.
    fn weight(&self, note: &CorpusNote) -> usize {
        ask::shown(note, &BTreeMap::new(), |text| self.clean(text)).room() + LINKED_DIGITS
    }

    /// The prompt for the part under way. Remembers in `work` what it shows.
    pub(crate) fn prompt(&self, work: &mut Work) -> Result<String> {
        let batch = self.batch()?;
        let structure: Structure = batch.read_json(STRUCTURE)?;
        let corpus = Corpus {
            notes: work.total,
            hot: structure.hot,
            max_hot_tokens: self.config.agents_md.max_hot_tokens,
        };
        let now = self.env.now();
        let mut room = self.room()?;
        let (ids, has_tiers) = match work.part() {
            Some(Part::Whole(ids)) => (ids, true),
            Some(Part::Group(ids)) => (ids, false),
            Some(Part::Tiers) => return self.tiers_prompt(work, &corpus, room),
            None => return Err(Error::io("there is no part to ask about")),
        };
        let wanted: BTreeMap<&EntryId, usize> = ids.iter().enumerate().map(|(at, id)| (id, at)).collect();
        let (mut notes, _) = corpus::read(&self.topics(), |id| wanted.contains_key(id))?;
        notes.sort_by_key(|note| wanted.get(note.id()).copied());
        let mut shown = Vec::new();
        for note in &notes {
            let one = ask::shown(note, &structure.linked, |text| self.clean(text));
            // One that has grown since waits for the next run, which has not seen it.
            if one.room() <= room {
                room -= one.room();
                shown.push(one);
            }
        }
        let there: BTreeSet<&EntryId> = shown.iter().map(|note| &note.id).collect();
        let is_shown = |pair: &&(EntryId, EntryId, u8)| there.contains(&pair.0) && there.contains(&pair.1);
        let pairs: Vec<_> = structure.pairs.iter().filter(is_shown).cloned().collect();
        let text = ask::whole(&work.batch, now, &corpus, &shown, &pairs, has_tiers);
        work.shown = shown.into_iter().map(|note| (note.id, note.mark)).collect();
        Ok(text)
    }

    fn tiers_prompt(&self, work: &mut Work, corpus: &Corpus, mut room: usize) -> Result<String> {
        let (mut notes, _) = corpus::read(&self.topics(), |_| true)?;
        ask::by_weight(&mut notes);
        let mut lines = Vec::new();
        work.shown.clear();
        for note in &notes {
            let line = ask::line(note, |text| self.clean(text));
            if line.len() + 1 > room {
                break;
            }
            room -= line.len() + 1;
            lines.push(line);
            work.shown.insert(note.id().clone(), note.mark.clone());
        }
        let left_out = notes.len() - lines.len();
        Ok(ask::tiers(&work.batch, self.env.now(), corpus, &lines, left_out))
    }

    fn allows(&self, work: &Work) -> Allows {
        let (texts, tiers) = match work.part() {
            Some(Part::Whole(_)) => (true, true),
            Some(Part::Group(_)) => (true, false),
            Some(Part::Tiers) | None => (false, true),
        };
        Allows { texts, tiers, loss: self.allows_loss }
    }

    /// Makes all that belongs to an operation, or nothing of it; the inner error is why not.
    ///
    /// After a crash some of it may be made already, or all, and `later` operations on the same notes too: a note
    /// that stands as one of those leaves it has been through this one.
    pub(crate) fn make(
        &self,
        revisions: &[Revision],
        later: &[&Revision],
    ) -> Result<std::result::Result<(), String>> {
        let topics = self.topics();
        let lock = topics.lock()?;
        let mut standings = Vec::new();
        for revision in revisions {
            standings.push(match revision.standing(&topics)? {
                Standing::Other(why) => match self.passed(revision, later, &topics)? {
                    Some(note) => Standing::After(note),
                    None => Standing::Other(why),
                },
                standing => standing,
            });
        }
        let mut all = revisions.iter().zip(&standings);
        if let Some((revision, Standing::Other(why))) =
            all.find(|(_, standing)| matches!(standing, Standing::Other(_)))
        {
            match (revisions.last(), standings.last()) {
                // Made before a crash, to its end, and changed since.
                (_, Some(Standing::After(_))) => return Ok(Ok(())),
                // The parts of a split are there, and of the note that was split only its owner knows how much it
                // still says: better twice than not at all.
                (Some(last), Some(Standing::Other(_)))
                    if last.before.is_some()
                        && revisions.iter().any(|revision| revision.before.is_none()) =>
                {
                    let has_begun = standings.iter().any(|standing| matches!(standing, Standing::After(_)));
                    return Ok(if has_begun { Ok(()) } else { Err(format!("{}: {why}", revision.id)) });
                }
                _ => {}
            }
            for (made, standing) in revisions.iter().zip(&standings).rev() {
                if let Standing::After(note) = standing {
                    let back = made.reversed();
                    back.make(&topics, &lock, note.as_ref(), back.reads(note.as_ref())?)?;
                }
            }
            return Ok(Err(format!("{}: {why}", revision.id)));
        }
        // Whoever takes the others' place takes their reads, those of this moment too.
        let mut reads = Vec::new();
        for (revision, standing) in revisions.iter().zip(&standings) {
            reads.push(match standing {
                Standing::Before(note) => revision.reads(note.as_ref())?,
                Standing::After(_) | Standing::Other(_) => Reads::default(),
            });
        }
        let all_reads = reads.iter().fold(Reads::default(), |sum, one| Reads {
            more: sum.more + one.more,
            last: sum.last.max(one.last),
        });
        for (at, (revision, standing)) in revisions.iter().zip(&standings).enumerate() {
            if let Standing::Before(note) = standing {
                let is_heir = at == 0 && revisions.len() > 1 && revision.before.is_some();
                let reads = if is_heir { all_reads } else { reads[at] };
                revision.make(&topics, &lock, note.as_ref(), reads)?;
            }
        }
        Ok(Ok(()))
    }

    /// The note as a later operation has left it, if one has.
    fn passed(
        &self,
        revision: &Revision,
        later: &[&Revision],
        topics: &Topics,
    ) -> Result<Option<Option<Note>>> {
        for further in later.iter().filter(|further| further.id == revision.id) {
            if let Standing::After(note) = further.standing(topics)? {
                return Ok(Some(note));
            }
        }
        Ok(None)
    }

    /// What was done for each part so far, in order.
    pub(crate) fn applied(batch: &Batch) -> Result<Vec<Applied>> {
        let mut all = Vec::new();
        for part in 0.. {
            if !batch.file(&applied_name(part)).exists() {
                break;
            }
            all.push(batch.read_json(&applied_name(part))?);
        }
        Ok(all)
    }

    /// Takes note of what has been seen: what was shown as it was shown, what was changed as it is now.
    fn see(&self, work: &Work, made: &[Planned]) -> Result<()> {
        let mut seen = Seen::load(self.root)?;
        let is_tiers = matches!(work.part(), Some(Part::Tiers));
        // A list of titles is no look at a note.
        if !is_tiers {
            for (id, mark) in &work.shown {
                seen.see(id.clone(), mark.clone());
            }
        }
        for revision in made.iter().flat_map(|planned| &planned.revisions) {
            let before = match &revision.before {
                Some(before) => Some(before.entry()?.mark()),
                None => None,
            };
            // One that somebody else has changed is still to be looked at.
            let is_known = before.is_none_or(|before| seen.has(&revision.id, &before));
            if let (true, Some(after)) = (is_known, &revision.after) {
                seen.see(revision.id.clone(), after.entry()?.mark());
            }
        }
        seen.tiers_due = matches!(work.part(), Some(Part::Group(_)));
        self.forget_gone(&mut seen)?;
        seen.save(self.root)
    }

    pub(crate) fn forget_gone(&self, seen: &mut Seen) -> Result<()> {
        let there: BTreeSet<EntryId> = corpus::marks(&self.topics())?.into_iter().map(|(id, _)| id).collect();
        seen.keep(|id| there.contains(id));
        Ok(())
    }

    /// Takes what became of these notes into the history.
    pub(crate) fn record<'b>(&self, message: String, ids: impl Iterator<Item = &'b EntryId>) {
        let ids: BTreeSet<&EntryId> = ids.collect();
        let topics = self.topics();
        let changed: Vec<Note> = ids.into_iter().filter_map(|id| topics.find_own(id).ok()).collect();
        if let Err(why) = history::record(self.root, &self.config.storage, message, &changed, self.env) {
            self.notes.warn(&why);
        }
    }

    pub(crate) fn refresh_targets(&mut self) -> Result<()> {
        self.tally.targets = section::refresh(self.config, self.root, self.notes)?;
        Ok(())
    }
}

fn no_batch() -> Error {
    Error::io("there is no batch")
}

fn applied_name(part: usize) -> String {
    format!("applied-{part}.json")
}

impl Adapters for Desk<'_> {
    fn scan_entries(&mut self) -> Result<Option<Work>> {
        let Some(total) = self.news()? else { return Ok(None) };
        let batch = Batches::of_defrag(self.root).begin()?;
        let mut work = Work::new(&batch.id, self.kind, self.env.now(), self.is_forced);
        work.total = total;
        self.batch = Some(batch);
        Ok(Some(work))
    }

    fn analyze_structure(&mut self, work: &mut Work) -> Result<()> {
        let room = self.room()?;
        let (notes, broken) = corpus::read(&self.topics(), |_| true)?;
        warn_of(&broken, self.notes);
        let ids: Vec<EntryId> = notes.iter().map(|note| note.id().clone()).collect();
        let places: BTreeMap<&EntryId, usize> = ids.iter().enumerate().map(|(at, id)| (id, at)).collect();
        let texts: Vec<String> = notes
            .iter()
            .map(|note| format!("{}\n{}\n{}", note.meta().title, note.meta().summary, note.body()))
            .collect();
        // Both look at every word: the one for what is alike, the other for secrets.
        let (pairs, weights) = std::thread::scope(|scope| {
            let alike = std::thread::Builder::new().spawn_scoped(scope, || similar::pairs(&texts));
            let weights: Vec<usize> = notes.iter().map(|note| self.weight(note)).collect();
            // Where no thread is to be had, this one does the work.
            let pairs = alike.ok().and_then(|alike| alike.join().ok());
            (pairs.unwrap_or_else(|| similar::pairs(&texts)), weights)
        });
        drop(texts);
        let mut structure = Structure { pairs: ask::pairs_by_id(&pairs, &ids), ..Structure::default() };
        let mut items = Vec::new();
        for (note, bytes) in notes.iter().zip(weights) {
            let links: BTreeSet<EntryId> = links(&note.body()).into_iter().collect();
            for id in &links {
                *structure.linked.entry(id.clone()).or_default() += 1;
            }
            structure.hot += usize::from(note.meta().pinned || note.meta().tier == Tier::Hot);
            let links = links.iter().filter_map(|id| places.get(id).copied()).collect();
            items.push(Item { bytes, tags: &note.meta().tags, links });
        }
        self.batch()?.write_json(STRUCTURE, &structure)?;
        let groups = group::groups(&items, &pairs, room);
        let mut seen = Seen::load(self.root)?;
        for &at in &groups.too_large {
            let Some(note) = notes.get(at) else { continue };
            self.notes.warn(&format!(
                "{} \"{}\" is larger than a call has room for, and is not asked about: split it by hand, or raise \
                 llm.maxPromptBytes",
                note.id(),
                crate::ground::text::one_line(&note.meta().title, 80)
            ));
            seen.see(note.id().clone(), note.mark.clone());
        }
        if self.kind != Kind::Dry && !groups.too_large.is_empty() {
            seen.save(self.root)?;
        }
        let named = |group: &Vec<usize>| -> Vec<EntryId> {
            group.iter().filter_map(|&at| ids.get(at)).cloned().collect()
        };
        if let [group] = &groups.groups[..] {
            work.parts = vec![Part::Whole(named(group))];
            return Ok(());
        }
        let news = |group: &Vec<usize>| {
            let notes = group.iter().filter_map(|&at| notes.get(at));
            notes.filter(|note| !seen.has(note.id(), &note.mark)).count()
        };
        let mut wanted: Vec<(usize, &Vec<usize>)> = groups
            .groups
            .iter()
            .map(|group| (news(group), group))
            .filter(|(news, _)| *news > 0 || work.is_forced)
            .collect();
        // What no call has seen yet goes first.
        wanted.sort_by_key(|(news, _)| std::cmp::Reverse(*news));
        work.parts = wanted.into_iter().map(|(_, group)| Part::Group(named(group))).collect();
        work.parts.push(Part::Tiers);
        Ok(())
    }

    fn run_agent(&mut self, work: &mut Work, faults: &[String]) -> Result<Asked> {
        let is_repair = !faults.is_empty();
        if self.caller.take_up_unfinished(self.batch()?, work.next, is_repair)? {
            return Ok(Asked::Replied);
        }
        let prompt = if is_repair {
            let allows = self.allows(work);
            let rules = ask::rules(allows.texts, allows.tiers);
            self.caller.repair(self.batch()?, work.next, &rules, faults)?
        } else {
            let prompt = self.prompt(work)?;
            self.batch()?.write(&call::prompt_name(work.next), prompt.as_bytes())?;
            prompt
        };
        self.batch()?.save(&State::RunAgent { work: work.clone(), faults: faults.to_vec() })?;
        self.caller.launch(Question {
            batch: self.batch.as_ref().ok_or_else(no_batch)?,
            part: (work.next, work.parts.len()),
            is_repair,
            is_dry: work.kind == Kind::Dry,
            prompt,
        })
    }

    fn judge(&mut self, work: &Work, is_final: bool) -> Result<Judged> {
        let text = call::reply(self.batch()?, work.next)?.unwrap_or_default();
        let (reply, faults) = match reply::parse(&text, &work.batch) {
            Ok((_, faults)) if !faults.is_empty() && !is_final => return Ok(Judged::Faulty(faults)),
            Ok(parsed) => parsed,
            Err(faults) => return Ok(Judged::Faulty(faults)),
        };
        let topics = self.topics();
        let (notes, _) = corpus::read(&topics, |id| work.shown.contains_key(id))?;
        let plan = plan::plan(
            &reply,
            faults,
            Known {
                at: self.env.now(),
                notes,
                shown: &work.shown,
                ids: topics.ids()?,
                total: work.total,
                archived: work.archived,
                allows: self.allows(work),
                is_taken: &|place, name| is_taken(&topics.dir(place).join(name)),
                clean: &|text| self.clean(text),
            },
        );
        Ok(Judged::Plan(plan))
    }

    fn apply_changes(&mut self, work: &mut Work, plan: &Plan) -> Result<()> {
        for warning in &plan.warnings {
            self.notes.warn(warning);
        }
        self.tally.warnings.extend(plan.warnings.iter().cloned());
        let mut dropped = plan.dropped.clone();
        let name = applied_name(work.next);
        // Once it is written down what was done, nobody's later change of a note makes it undone.
        let is_done = self.batch()?.file(&name).exists();
        let mut applied = if is_done { self.batch()?.read_json(&name)? } else { Applied::default() };
        if !is_done {
            for (at, planned) in plan.operations.iter().enumerate() {
                let later: Vec<&Revision> =
                    plan.operations.iter().skip(at + 1).flat_map(|planned| &planned.revisions).collect();
                match self.make(&planned.revisions, &later)? {
                    Ok(()) => applied.made.push(planned.clone()),
                    Err(why) => {
                        let ids = planned.from.iter().map(|look| look.id.to_string()).collect();
                        dropped.push(Dropped { op: planned.op, ids, why });
                    }
                }
            }
            self.batch()?.write_json(&name, &applied)?;
        }
        for one in &dropped {
            self.notes.warn(&one.to_string());
        }
        work.archived += applied.made.iter().filter(|planned| planned.op == Op::Archive).count();
        self.see(work, &applied.made)?;
        self.tally.made.append(&mut applied.made);
        self.tally.dropped.append(&mut dropped);
        if !plan.remark.is_empty() {
            self.tally.remarks.push(plan.remark.clone());
        }
        Ok(())
    }

    fn generate_agents_md(&mut self, _work: &Work) -> Result<()> {
        self.refresh_targets()
    }

    fn commit(&mut self, _work: &Work) -> Result<()> {
        let applied = Desk::applied(self.batch()?)?;
        let made: Vec<&Planned> = applied.iter().flat_map(|applied| &applied.made).collect();
        if !made.is_empty() {
            let counts = crate::memory::defrag::show::counts(made.iter().copied());
            let ids = made.iter().flat_map(|planned| &planned.revisions).map(|revision| &revision.id);
            self.record(format!("defrag: {counts}"), ids);
        }
        Ok(())
    }
}
