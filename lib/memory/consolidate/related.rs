//! The existing notes that have to do with what a prompt shows.
//!
//! A note that a session corrects is mentioned in a sentence or two of the person's, between much else. So each stretch
//! of a few dozen words is a query of its own, and a note is as near as its nearest stretch: the person's stretches
//! count most, then the agent's, last what tools printed. Words weigh the more the fewer notes have them. Who corrects
//! much in one session must not be heard in part: the notes that are nearest to each of the person's stretches come first.

use crate::base::error::Result;
use crate::base::text::border;
use crate::harness::turn::Role;
use crate::memory::consolidate::ask::{RelatedNote, Session};
use crate::memory::redact::Redactor;
use crate::memory::search::{language, words};
use crate::memory::service::belongs_to;
use crate::store::entry::{EntryId, Meta, Scope};
use crate::store::persistence::{Persistence, Place};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What stands around a note in the prompt takes so many bytes, at most.
const FRAME: usize = 250;
/// So many notes are shown by title and summary.
const BRIEF: usize = 30;
/// So many tags are shown, those in most use, and so many bytes of them.
const TAGS: usize = 60;
const TAG_BYTES: usize = 2000;

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

/// How much of the notes is shown.
#[derive(Debug, Clone, Copy)]
pub struct RelatedLimits {
    /// The bytes for all of it.
    pub room: usize,
    /// The bytes of the notes that are shown whole, together.
    pub whole: usize,
}

/// What to look for besides the sessions' words.
#[derive(Debug, Default)]
pub struct RelatedHints<'a> {
    /// The notes that the model wants to see whole.
    pub wanted: &'a [EntryId],
    /// The notes that were made in the same batch.
    pub made: &'a [EntryId],
}

/// What the sessions say, as queries.
struct Stretches {
    /// Each stem, and the stretches that have it.
    terms: HashMap<String, Vec<usize>>,
    /// Which voice each stretch is of, and how many different stems it has.
    voices: Vec<(usize, usize)>,
}

impl Stretches {
    fn of(sessions: &[Session]) -> Stretches {
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
        text(body, 1);
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
fn names(sessions: &[Session]) -> HashSet<String> {
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

/// The notes that have to do with these sessions, the nearest first, and the tags in use. Notes of other repositories
/// take part where the sessions name the repository.
///
/// # Errors
/// The store cannot be read.
pub fn related<P: Persistence>(
    notes: &P,
    sessions: &[Session],
    hints: &RelatedHints,
    limits: RelatedLimits,
    redactor: &Redactor,
) -> Result<(Vec<RelatedNote>, Vec<String>)> {
    let stretches = Stretches::of(sessions);
    let names = names(sessions);
    let repos: BTreeSet<&str> = sessions.iter().filter_map(|session| session.repo.as_deref()).collect();
    let is_outside = sessions.iter().any(|session| session.repo.is_none());
    let is_near = |meta: &Meta| {
        let named = || meta.sources.iter().filter_map(|source| source.repo.as_deref());
        meta.scope == Scope::Global
            || repos.iter().any(|repo| belongs_to(meta, repo))
            || named().any(|repo| is_named(repo, &names))
            // What was learned outside of any repository belongs together.
            || is_outside && named().next().is_none()
    };
    let scan = notes.scan(&[Place::Topics], |note| {
        let meta = note.entry.meta();
        (is_near(meta) || hints.wanted.contains(&meta.id)).then(|| {
            let counts = stretches.count(meta, &String::from_utf8_lossy(note.entry.body()));
            (counts, meta.clone())
        })
    })?;
    let (counts, metas): (Vec<_>, Vec<Meta>) = scan.found.into_iter().flatten().unzip();
    let tags = tags_in_use(&metas);
    let mut near: Vec<(f64, &Meta)> = stretches.scores(&counts).into_iter().zip(&metas).collect();
    for (score, meta) in &mut near {
        if hints.made.contains(&meta.id) {
            // What an earlier part of the same batch gave has to do with what goes on in it.
            *score += FIRST;
        }
        if hints.wanted.contains(&meta.id) {
            *score = f64::INFINITY;
        }
    }
    near.retain(|(score, _)| *score > 0.0);
    near.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.id.cmp(&y.id)));

    let clean = |text: &str| redactor.cleaned(text);
    let mut room = limits.room;
    let mut whole = limits.whole;
    let mut listed = 0;
    let mut shown = Vec::new();
    for (score, meta) in near {
        let is_wanted = score.is_infinite();
        if !is_wanted && listed >= BRIEF {
            break;
        }
        // People write notes past the queue, too, so secrets are taken out here as well.
        let mut note = RelatedNote {
            id: meta.id.clone(),
            title: clean(&meta.title),
            summary: clean(&meta.summary),
            tags: meta.tags.clone(),
            scope: meta.scope,
            repo: other_repo(meta, &repos),
            until: meta.until,
            body: None,
            fingerprint: String::new(),
        };
        let head = FRAME
            + note.title.len()
            + note.summary.len()
            + note.tags.iter().map(|tag| tag.len() + 1).sum::<usize>();
        if head > room {
            break;
        }
        // One that is gone since, or broken, is not to be updated.
        let read = if whole > 0 || is_wanted { notes.own(&meta.id)? } else { None };
        if let Some(read) = read {
            let body = clean(&String::from_utf8_lossy(read.entry.body()));
            if head + body.len() <= room && (body.len() <= whole || is_wanted) {
                room -= body.len();
                whole = whole.saturating_sub(body.len());
                (note.body, note.fingerprint) = (Some(body), read.entry.fingerprint());
            }
        }
        listed += usize::from(note.body.is_none());
        room -= head;
        shown.push(note);
    }
    Ok((shown, tags))
}

/// The repository of a note that is none of the sessions'.
fn other_repo(meta: &Meta, repos: &BTreeSet<&str>) -> Option<String> {
    let is_own = meta.scope == Scope::Global || repos.iter().any(|repo| belongs_to(meta, repo));
    let mut named = meta.sources.iter().filter_map(|source| source.repo.clone());
    if is_own { None } else { named.next() }
}

/// The tags in most use.
fn tags_in_use(notes: &[Meta]) -> Vec<String> {
    let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
    for tag in notes.iter().flat_map(|meta| &meta.tags) {
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
