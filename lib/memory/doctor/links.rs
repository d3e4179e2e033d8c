//! What leads from note to note: links, aliases, and the notes that took another's place.

use crate::memory::doctor::finding::{Check, Finding};
use crate::memory::doctor::notes::{Fact, Round};
use crate::store::entry::EntryId;
use crate::store::persistence::Place;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// For so many links that lead nowhere a near id is looked for, which compares all of them.
const GUESSED: usize = 20;

pub(crate) fn look(round: &Round) -> Vec<Finding> {
    let family = Family::of(round);
    let mut findings = Vec::new();
    family.links(round, &mut findings);
    family.aliases(&mut findings);
    family.successors(&mut findings);
    findings
}

/// Every id, and who bears it.
struct Family<'a> {
    facts: &'a [Fact],
    own: HashMap<&'a EntryId, &'a Fact>,
    /// By alias; a note once, even if it names it twice.
    aliases: BTreeMap<&'a EntryId, Vec<&'a Fact>>,
    /// Of files that cannot be used.
    lost: HashSet<&'a EntryId>,
}

impl<'a> Family<'a> {
    fn of(round: &'a Round) -> Family<'a> {
        let mut aliases: BTreeMap<&EntryId, Vec<&Fact>> = BTreeMap::new();
        for fact in &round.facts {
            for alias in fact.aliases.iter().collect::<BTreeSet<_>>() {
                aliases.entry(alias).or_default().push(fact);
            }
        }
        Family {
            facts: &round.facts,
            own: round.facts.iter().map(|fact| (&fact.id, fact)).collect(),
            aliases,
            lost: round.ids_of_broken.iter().collect(),
        }
    }

    fn knows(&self, id: &EntryId) -> bool {
        self.own.contains_key(id) || self.aliases.contains_key(id) || self.lost.contains(id)
    }

    fn links(&self, round: &Round, findings: &mut Vec<Finding>) {
        let mut guesses = GUESSED;
        for fact in &round.facts {
            for id in fact.links.iter().filter(|id| !self.knows(id)) {
                let near = if guesses > 0 { self.near(id) } else { None };
                guesses = guesses.saturating_sub(1);
                let mend = match near {
                    Some(near) => format!("did you mean [[{near}]]?"),
                    None => "take the link out, or let it lead to a note that is there".to_owned(),
                };
                let what = format!("its link [[{id}]] leads to no note");
                findings.push(Finding::error(Check::Link, &fact.shown, what, &mend));
            }
        }
    }

    /// An id that differs by one slip, or in case.
    fn near(&self, id: &EntryId) -> Option<&'a EntryId> {
        let is_near = |other: &&&EntryId| {
            let (a, b) = (id.as_str(), other.as_str());
            a.eq_ignore_ascii_case(b) || strsim::damerau_levenshtein(a, b) == 1
        };
        self.own.keys().filter(is_near).min().copied()
    }

    /// The note that took this one's place. Only archived ones have given theirs away.
    fn next(&self, fact: &Fact) -> Option<&'a Fact> {
        let next = fact.superseded_by.as_ref().filter(|_| fact.place == Place::Archive)?;
        let bearer = || self.aliases.get(next)?.first().copied();
        self.own.get(next).copied().or_else(bearer)
    }

    /// The note that an id stands for in the end; in a circle, whichever comes up again first.
    fn heir(&self, fact: &'a Fact) -> &'a Fact {
        let mut at = fact;
        let mut seen = HashSet::new();
        while let Some(next) = self.next(at).filter(|_| seen.insert(&at.id)) {
            at = next;
        }
        at
    }

    /// An alias is the id of a note that was merged into this one, so that the archived note of that id, and
    /// archived notes with that alias, must all lead here. Whatever else bears it makes links ambiguous.
    fn aliases(&self, findings: &mut Vec<Finding>) {
        for (alias, bearers) in &self.aliases {
            let own = self.own.get(alias).copied();
            let heirs: BTreeMap<&EntryId, &Fact> = bearers
                .iter()
                .copied()
                .chain(own)
                .map(|fact| self.heir(fact))
                .map(|heir| (&heir.id, heir))
                .collect();
            if heirs.len() < 2 {
                continue;
            }
            let names: Vec<&str> = heirs.keys().map(|id| id.as_str()).take(4).collect();
            let [bearer, ..] = bearers[..] else { continue };
            findings.push(Finding::error(
                Check::Alias,
                &bearer.shown,
                match own.filter(|own| heirs.contains_key(&own.id)) {
                    Some(own) => format!("its alias {alias} is the id of another note, {}", file_name(own)),
                    None => format!("its alias {alias} leads to several notes: {}", names.join(", ")),
                },
                "take the alias out of all front matters but one",
            ));
        }
    }

    fn successors(&self, findings: &mut Vec<Finding>) {
        for fact in self.facts {
            let Some(next) = &fact.superseded_by else { continue };
            if fact.place == Place::Topics {
                let mend =
                    format!("memory-remove {} moves it to the archive; or take supersededBy out", fact.id);
                findings.push(Finding::warning(
                    Check::SupersededBy,
                    &fact.shown,
                    format!("is in use, though {next} is to have taken its place"),
                    &mend,
                ));
                continue;
            }
            let mend = "name a note that is there, or take supersededBy out of the front matter";
            if !self.knows(next) {
                let what = format!("its supersededBy, {next}, leads to no note");
                findings.push(Finding::error(Check::SupersededBy, &fact.shown, what, mend));
            } else if self.is_in_circle(fact) {
                let what = format!("its supersededBy, {next}, leads back to itself");
                findings.push(Finding::error(Check::SupersededBy, &fact.shown, what, mend));
            }
        }
    }

    fn is_in_circle(&self, fact: &'a Fact) -> bool {
        let mut at = fact;
        let mut seen = HashSet::new();
        while let Some(next) = self.next(at).filter(|next| seen.insert(&next.id)) {
            if next.id == fact.id {
                return true;
            }
            at = next;
        }
        false
    }
}

fn file_name(fact: &Fact) -> String {
    fact.shown.file_name().map(|name| format!("\"{}\"", name.to_string_lossy())).unwrap_or_default()
}
