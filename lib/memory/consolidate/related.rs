//! The existing notes that have to do with what a prompt shows.
//!
//! A note that a session corrects is mentioned in a sentence or two of the person's, between much else. So each stretch
//! of a few dozen words is a query of its own, and a note is as near as its nearest stretch: the person's stretches
//! count most, then the agent's, last what tools printed. Words weigh the more the fewer notes have them. Who corrects
//! much in one session must not be heard in part: the notes that are nearest to each of the person's stretches come first.
//!
//! A correction in other words, or in another language, finds nothing. So all other notes that hold here follow, the
//! newest first: whole while there is room, then by title and summary.

use crate::base::error::Result;
use crate::base::repository::Repository;
use crate::base::text::border;
use crate::harness::turn::Role;
use crate::memory::code::states;
use crate::memory::consolidate::ask::{RelatedNote, ShownSession};
use crate::memory::consolidate::grounds::drift;
use crate::memory::consolidate::plan::source_of;
use crate::memory::consolidate::ran::Runs;
use crate::memory::hash::hash;
use crate::memory::pipeline::call::with_ids;
use crate::memory::redact::Redactor;
use crate::memory::search::{language, words};
use crate::memory::service::belongs_to;
use crate::store::entry::{EntryId, Meta, Scope, Source};
use crate::store::ledger::AskedNotes;
use crate::store::persistence::{Persistence, Place};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What stands around a note in the prompt takes so many bytes, at most; around one of which only a line is shown; and
/// around all of those.
const FRAME: usize = 250;
const LINE: usize = 24;
const LIST: usize = 250;
/// So many notes are shown by title and summary.
const BRIEF: usize = 400;
/// So many tags are shown, those in most use, and so many bytes of them.
const TAGS: usize = 60;
const TAG_BYTES: usize = 2000;

/// So many notes whose code has changed come first, and so many of which a command failed.
const CHANGED: usize = 5;

/// A stretch has so many different words.
const STRETCH: usize = 30;
/// So much of what each voice said is searched with, in bytes: half from its beginning, half from its end.
const SAMPLE: usize = 96 << 10;
/// The index of the person's voice.
const PERSON: usize = 0;
/// What a match with a stretch of the person's, the agent's and a tool's words is worth.
const WEIGHTS: [f64; 3] = [1.0, 0.5, 0.15];
/// So many notes are the nearest of each of the person's stretches, and come before all others.
const NEAREST: usize = 3;
/// More than any note scores.
const FIRST: f64 = 1000.0;
/// Words of a title, a tag or a summary count so often.
const HEAD: u32 = 3;

/// What existing notes are looked for with, and how much of them is shown.
pub struct RelatedQuery<'a> {
    pub sessions: &'a [ShownSession],
    /// The notes that the model wants to see whole.
    pub wanted: &'a [EntryId],
    /// The checkouts of the sessions.
    pub here: &'a [Repository],
    /// What was shown of changed code earlier.
    pub asked: &'a AskedNotes,
    pub redactor: &'a Redactor,
    /// The bytes for all of it.
    pub room: usize,
    /// The bytes of the notes that are shown whole, together.
    pub whole: usize,
}

/// What the sessions say, as queries.
struct Stretches {
    /// Each stem, and the stretches that have it.
    terms: HashMap<String, Vec<usize>>,
    /// Which voice each stretch is of, and how many different stems it has.
    voices: Vec<(usize, usize)>,
}

impl Stretches {
    fn of(sessions: &[ShownSession]) -> Stretches {
        let mut all = Stretches { terms: HashMap::new(), voices: Vec::new() };
        let mut texts: [Vec<&str>; 3] = Default::default();
        for passage in sessions.iter().flat_map(|session| &session.passages) {
            let (input, output) = passage.input_and_output();
            match passage.role {
                Role::User => texts[0].push(input),
                Role::Assistant | Role::Reasoning => texts[1].push(input),
                Role::Tool => texts[2].extend([input, output]),
                Role::Document => texts[2].push(&passage.text),
            }
        }
        for (voice, texts) in texts.iter().enumerate() {
            let total: usize = texts.iter().map(|text| text.len()).sum();
            let mut before = 0;
            for text in texts {
                // What lies in the middle of very much is left out.
                let is_near_an_end = before < SAMPLE / 2 || before + text.len() + SAMPLE / 2 > total;
                before += text.len();
                if is_near_an_end {
                    all.add(voice, &text[..border(text, SAMPLE / 2)]);
                }
            }
        }
        all
    }

    /// A turn, as one stretch or several.
    fn add(&mut self, voice: usize, text: &str) {
        let mut stems = BTreeSet::new();
        let mut found = Vec::new();
        words::each(text, |word| {
            if let Some(stem) = stem_of(&word) {
                stems.insert(stem);
                if stems.len() >= STRETCH {
                    found.push(std::mem::take(&mut stems));
                }
            }
        });
        found.push(stems);
        for stems in found.into_iter().filter(|stems| !stems.is_empty()) {
            let index = self.voices.len();
            self.voices.push((voice, stems.len()));
            for stem in stems {
                self.terms.entry(stem).or_default().push(index);
            }
        }
    }

    /// The stems of a note that stand in a stretch, with how often, and how many words the note has.
    fn count(&self, meta: &Meta, body: &str) -> (Vec<(&str, u32)>, u32) {
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        let mut length = 0;
        let mut text = |text: &str, times: u32| {
            words::each(text, |word| {
                length += times;
                if let Some(stem) = stem_of(&word)
                    && let Some((stem, _)) = self.terms.get_key_value(&*stem)
                {
                    *counts.entry(stem).or_default() += times;
                }
            });
        };
        text(&meta.title, HEAD);
        text(&meta.summary, HEAD);
        for tag in &meta.tags {
            text(tag.split_once("__").map_or(tag, |(_, name)| name), HEAD);
        }
        // Ids say nothing, and those of a dry run are not those of the run.
        text(&with_ids(body, |_| String::new()), 1);
        (counts.into_iter().collect(), length)
    }

    /// How near each note is, of all that were counted. Of the person's nearest, each place is worth [`FIRST`].
    fn scores(&self, notes: &[(Vec<(&str, u32)>, u32)]) -> Vec<f64> {
        let mut having: HashMap<&str, f64> = HashMap::new();
        for (stem, _) in notes.iter().flat_map(|(counts, _)| counts) {
            *having.entry(stem).or_default() += 1.0;
        }
        let total = notes.len() as f64;
        let mean =
            (notes.iter().map(|(_, length)| f64::from(*length)).sum::<f64>() / total.max(1.0)).max(1.0);
        let mut nearest: HashMap<usize, Vec<(f64, usize)>> = HashMap::new();
        let mut scores: Vec<f64> = notes
            .iter()
            .enumerate()
            .map(|(note, (counts, length))| {
                let mut matched: HashMap<usize, f64> = HashMap::new();
                for (stem, times) in counts {
                    let having = having.get(stem).copied().unwrap_or(1.0);
                    let rarity = ((total - having + 0.5) / (having + 0.5)).ln_1p();
                    let times = f64::from(*times);
                    // BM25's saturation: the tenth mention says little more than the third.
                    let weight =
                        rarity * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * f64::from(*length) / mean));
                    for stretch in self.terms.get(*stem).into_iter().flatten() {
                        *matched.entry(*stretch).or_default() += weight;
                    }
                }
                let mut best = [0.0_f64; WEIGHTS.len()];
                for (stretch, score) in matched {
                    let Some((voice, stems)) = self.voices.get(stretch) else { continue };
                    // Of many words some match by chance.
                    let score = score / (4.0 + *stems as f64).sqrt();
                    if *voice == PERSON {
                        let near = nearest.entry(stretch).or_default();
                        near.push((score, note));
                        near.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.cmp(y)));
                        near.truncate(NEAREST);
                    }
                    if let Some(best) = best.get_mut(*voice) {
                        *best = best.max(score);
                    }
                }
                best.iter().zip(WEIGHTS).map(|(score, weight)| score * weight).sum()
            })
            .collect();
        let mut places = vec![NEAREST; scores.len()];
        for near in nearest.into_values() {
            for (place, (_, note)) in near.into_iter().enumerate() {
                places[note] = places[note].min(place);
            }
        }
        for (score, place) in scores.iter_mut().zip(places) {
            *score += FIRST * (NEAREST - place) as f64;
        }
        scores
    }
}

/// The stem of a word that says something.
fn stem_of(word: &words::Word) -> Option<String> {
    let is_one = word.kind != words::WordKind::Character;
    (is_one && !language::is_stop_word(word.text)).then(|| language::stem(word.text).into_owned())
}

/// The names that stand in what the person and the agent said, to find the repositories that they speak of.
fn names(sessions: &[ShownSession]) -> HashSet<String> {
    let passages = sessions.iter().flat_map(|session| &session.passages);
    let said = passages.filter(|passage| matches!(passage.role, Role::User | Role::Assistant));
    let is_between = |c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'));
    let names = said.flat_map(move |passage| passage.text.split(is_between));
    names.map(|name| name.trim_end_matches(['.', '/']).to_lowercase()).filter(|name| name.len() > 2).collect()
}

/// Do `names` have this repository: `owner/name`, or its name alone?
fn is_named(repo: &str, names: &HashSet<String>) -> bool {
    let repo = repo.trim_end_matches('/').to_lowercase();
    let mut parts = repo.rsplitn(3, '/');
    let (name, owner) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    names.contains(name) || names.contains(&format!("{owner}/{name}"))
}

/// A note that may be shown.
struct RelatedCandidate {
    meta: Meta,
    /// How long its text is, in bytes.
    length: usize,
    /// The model wants to see it whole.
    is_wanted: bool,
    /// One of the sessions made or changed it.
    is_own: bool,
    /// What stands now where the code that it was drawn from was, if that is news to the model.
    drift: Option<String>,
    /// What failed of the commands that it names.
    failures: String,
    score: f64,
}

/// The note was made or changed in this session, in whatever run. One without an id is known by when it was queued.
pub(super) fn is_of_session(meta: &Meta, session: &Source) -> bool {
    meta.sources.iter().any(|source| {
        (&source.harness, &source.thread_id) == (&session.harness, &session.thread_id)
            && (session.thread_id.is_some() || source.at == session.at)
    })
}

impl RelatedQuery<'_> {
    /// The notes that hold where these sessions were, and the tags in use. First those that the model wants to see and
    /// those of the sessions themselves, then those of which a command failed and some whose code in the checkouts has
    /// changed, then the nearest, then the newest. Notes of other repositories take part where the sessions name the
    /// repository.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn find<P: Persistence>(&self, notes: &P) -> Result<(Vec<RelatedNote>, Vec<String>)> {
        let repos: BTreeSet<&str> = self.sessions.iter().filter_map(ShownSession::repo).collect();
        let (mut near, mut tags) = self.candidates(notes, &repos)?;
        self.take_evidence(notes, &mut near);
        near.sort_by(|a, b| {
            let first = |note: &RelatedCandidate| {
                (note.is_wanted, note.is_own, note.drift.is_some() || !note.failures.is_empty())
            };
            first(b).cmp(&first(a)).then_with(|| b.score.total_cmp(&a.score))
        });
        tags.retain(|tag| self.is_clean(tag));
        Ok((self.shown(notes, near, &repos)?, tags))
    }

    /// A mark is no tag.
    fn is_clean(&self, tag: &str) -> bool {
        self.redactor.cleaned(tag) == *tag
    }

    /// What speaks against notes: their code has changed, or their commands have failed. Of a few only.
    fn take_evidence<P: Persistence>(&self, notes: &P, near: &mut [RelatedCandidate]) {
        let states = states(None, self.here, near.iter().map(|note| &note.meta));
        let is_changed =
            |note: &&mut RelatedCandidate| states.get(&note.meta.id).is_some_and(|state| state.is_in_doubt());
        // One about which the model has said nothing is not shown again as long as the code stays as it was then.
        let news = |meta: &Meta| {
            let read = notes.own(&meta.id).ok().flatten()?;
            let body = self.redactor.cleaned(&String::from_utf8_lossy(read.entry.body()));
            let text = format!("{}\n{}\n{body}", meta.title, meta.summary);
            let drift = drift(meta, &text, self.here, self.redactor);
            (self.asked.0.get(&meta.id) != Some(&hash(&drift))).then_some(drift)
        };
        let changed = near.iter_mut().filter(is_changed);
        let told = changed.filter_map(|note| news(&note.meta).map(|drift| (note, drift)));
        told.take(CHANGED).for_each(|(note, drift)| note.drift = Some(drift));
        // A program that is not installed where the session ran may be in hundreds of notes.
        let failed = near.iter_mut().filter(|note| !note.failures.is_empty());
        failed.skip(CHANGED).for_each(|note| note.failures.clear());
    }

    /// As many of the candidates as there is room for, whole or by title and summary.
    fn shown<P: Persistence>(
        &self,
        notes: &P,
        near: Vec<RelatedCandidate>,
        repos: &BTreeSet<&str>,
    ) -> Result<Vec<RelatedNote>> {
        let clean = |text: &str| self.redactor.cleaned(text);
        let (mut room, mut whole, mut listed) = (self.room.saturating_sub(LIST), self.whole, 0);
        let mut shown = Vec::new();
        for RelatedCandidate { meta, length, is_wanted, is_own, drift, failures, .. } in near {
            let is_due = is_wanted || is_own || drift.is_some() || !failures.is_empty();
            if !is_due && listed >= BRIEF {
                break;
            }
            // People write notes past the queue, too, so secrets are taken out here as well.
            let mut note = RelatedNote {
                id: meta.id.clone(),
                title: clean(&meta.title),
                summary: clean(&meta.summary),
                tags: meta.tags.iter().filter(|tag| self.is_clean(tag)).cloned().collect(),
                scope: meta.scope,
                repo: other_repo(&meta, repos),
                until: meta.until,
                body: None,
                drift: None,
                failures: None,
                fingerprint: String::new(),
            };
            let line = LINE + note.title.len() + note.summary.len();
            let head = FRAME + line + note.tags.iter().map(|tag| tag.len() + 1).sum::<usize>();
            if line > room {
                break;
            }
            // One that is gone since, or broken, is not to be updated.
            let is_worth_reading = (length <= whole || is_due) && head + length <= room;
            if let Some(read) = if is_worth_reading { notes.own(&meta.id)? } else { None } {
                let body = clean(&String::from_utf8_lossy(read.entry.body()));
                let more = drift.as_ref().map_or(0, String::len) + failures.len();
                if head + body.len() + more <= room && (body.len() <= whole || is_due) {
                    room -= head + body.len() + more;
                    (note.drift, note.failures) = (drift, Some(failures).filter(|text| !text.is_empty()));
                    whole = whole.saturating_sub(body.len());
                    (note.body, note.fingerprint) = (Some(body), read.entry.fingerprint());
                }
            }
            if note.body.is_none() {
                listed += 1;
                room -= line;
            }
            shown.push(note);
        }
        Ok(shown)
    }

    /// The notes that may be shown, from reading all of them once, and the tags in use.
    fn candidates<P: Persistence>(
        &self,
        notes: &P,
        repos: &BTreeSet<&str>,
    ) -> Result<(Vec<RelatedCandidate>, Vec<String>)> {
        let sessions = self.sessions;
        let stretches = Stretches::of(sessions);
        let names = names(sessions);
        let is_outside = sessions.iter().any(|session| session.repo().is_none());
        let mut runs = Runs::default();
        for session in sessions {
            let ran =
                session.passages.iter().flat_map(|passage| passage.ran.iter().map(|ran| (passage.at, ran)));
            ran.for_each(|(at, ran)| runs.add(&session.entry, at, ran));
        }
        let own: Vec<Source> =
            sessions.iter().map(|session| source_of(&session.entry, self.redactor)).collect();
        let is_own = |meta: &Meta| own.iter().any(|session| is_of_session(meta, session));
        let is_near = |meta: &Meta| {
            let named = || meta.sources.iter().filter_map(|source| source.repo.as_deref());
            meta.scope == Scope::Global
                || repos.iter().any(|repo| belongs_to(meta, repo))
                || named().any(|repo| is_named(repo, &names))
                // What was learned outside of any repository belongs together.
                || is_outside && named().next().is_none()
                || is_own(meta)
        };
        let scan = notes.scan(&[Place::Topics], |note| {
            let meta = note.entry.meta();
            let is_wanted = self.wanted.contains(&meta.id);
            (is_near(meta) || is_wanted).then(|| {
                let body = note.entry.body();
                let counts = stretches.count(meta, &String::from_utf8_lossy(body));
                let (length, is_own, failures) = (body.len(), is_own(meta), runs.against(&note.entry));
                let (meta, drift, score) = (meta.clone(), None, 0.0);
                (counts, RelatedCandidate { meta, length, is_wanted, is_own, drift, failures, score })
            })
        })?;
        let mut found: Vec<_> = scan.found.into_iter().flatten().collect();
        // Where two are equally near, the newer comes first. The ids come last, as those of a dry run are not those of the run.
        found.sort_by(|(_, RelatedCandidate { meta: a, .. }), (_, RelatedCandidate { meta: b, .. })| {
            let later = b.updated_at.cmp(&a.updated_at);
            later.then_with(|| (&a.title, &a.id).cmp(&(&b.title, &b.id)))
        });
        let (counts, mut all): (Vec<_>, Vec<RelatedCandidate>) = found.into_iter().unzip();
        for (note, score) in all.iter_mut().zip(stretches.scores(&counts)) {
            note.score = score;
        }
        let tags = tags_in_use(all.iter().map(|note| &note.meta));
        Ok((all, tags))
    }
}

/// The repository of a note that is none of the sessions'.
fn other_repo(meta: &Meta, repos: &BTreeSet<&str>) -> Option<String> {
    let is_own = meta.scope == Scope::Global || repos.iter().any(|repo| belongs_to(meta, repo));
    let mut named = meta.sources.iter().filter_map(|source| source.repo.clone());
    if is_own { None } else { named.next() }
}

/// The tags in most use.
fn tags_in_use<'a>(notes: impl Iterator<Item = &'a Meta>) -> Vec<String> {
    let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
    for tag in notes.flat_map(|meta| &meta.tags) {
        *uses.entry(tag).or_default() += 1;
    }
    let mut tags: Vec<(&str, usize)> = uses.into_iter().collect();
    tags.sort_by_key(|(tag, uses)| (std::cmp::Reverse(*uses), *tag));
    let mut bytes = 0;
    let few = tags.into_iter().take(TAGS).map(|(tag, _)| tag.to_owned());
    few.take_while(|tag| {
        bytes += tag.len() + 1;
        bytes <= TAG_BYTES
    })
    .collect()
}
