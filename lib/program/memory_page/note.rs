//! A note as an item of the page.

use crate::base::text::{counted, one_line};
use crate::program::memory_page::history::Commit;
use crate::program::page::{Item, Shown};
use crate::store::entry::{EntryId, Meta, Scope, Source, links, repos};
use crate::store::persistence::{Note, Place};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A note that nobody has changed, said again or read for so long may be out of date.
const HALF_A_YEAR: SignedDuration = SignedDuration::from_hours(182 * 24);

/// How a note stands, as the page can be filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    InUse,
    Archived,
    Expired,
    Unused,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            State::InUse => "in use",
            State::Archived => "archived",
            State::Expired => "expired",
            State::Unused => "unused for half a year",
        }
    }
}

/// A note without what the page does not show.
#[derive(Debug)]
pub struct KnownNote {
    pub meta: Meta,
    pub place: Place,
    path: PathBuf,
    body: String,
}

/// All notes, and how they lead to each other.
pub struct KnownNotes {
    /// The newest first.
    notes: Vec<KnownNote>,
    related: BTreeMap<EntryId, Related>,
}

#[derive(Debug, Default)]
pub struct Related {
    links: BTreeSet<EntryId>,
    backlinks: BTreeSet<EntryId>,
    /// The archived notes whose place it has taken.
    replaced: BTreeSet<EntryId>,
}

impl KnownNotes {
    pub fn of(mut notes: Vec<KnownNote>) -> KnownNotes {
        notes.sort_by(|a, b| (b.meta.updated_at, &a.meta.id).cmp(&(a.meta.updated_at, &b.meta.id)));
        let merged = |note: &'_ KnownNote| {
            let id = note.meta.id.clone();
            note.meta.aliases.iter().map(move |alias| (alias.clone(), id.clone())).collect::<Vec<_>>()
        };
        let aliases: BTreeMap<EntryId, EntryId> = notes.iter().flat_map(merged).collect();
        let mut related: BTreeMap<EntryId, Related> = BTreeMap::new();
        for KnownNote { meta, body, .. } in &notes {
            for link in links(body) {
                let link = aliases.get(&link).cloned().unwrap_or(link);
                related.entry(link.clone()).or_default().backlinks.insert(meta.id.clone());
                related.entry(meta.id.clone()).or_default().links.insert(link);
            }
            if let Some(successor) = &meta.superseded_by {
                related.entry(successor.clone()).or_default().replaced.insert(meta.id.clone());
            }
        }
        KnownNotes { notes, related }
    }

    pub fn all(&self) -> impl Iterator<Item = &KnownNote> {
        self.notes.iter()
    }

    pub fn each<T>(&self, item: impl Fn(&KnownNote, &Related) -> T) -> Vec<T> {
        let none = Related::default();
        self.notes.iter().map(|note| item(note, self.related.get(&note.meta.id).unwrap_or(&none))).collect()
    }
}

impl KnownNote {
    pub fn of(note: Note) -> KnownNote {
        let body = String::from_utf8_lossy(note.entry.body()).into_owned();
        KnownNote { place: note.place, path: note.path, body, meta: note.entry.into_meta() }
    }

    /// When somebody last said, changed or read it.
    fn confirmed(&self) -> Option<Timestamp> {
        let Meta { created_at, updated_at, last_used, sources, .. } = &self.meta;
        let written = Timestamp::from_millisecond(*created_at.max(updated_at)).ok();
        let said = sources.iter().filter_map(|source| source.at.as_ref()?.parse().ok());
        said.chain(written).chain(*last_used).max()
    }

    pub fn states(&self, now: Timestamp, today: Date) -> Vec<State> {
        if self.place == Place::Archive {
            return vec![State::Archived];
        }
        let is_old = self.confirmed().is_none_or(|time| now.duration_since(time) > HALF_A_YEAR);
        let further = [(self.meta.is_expired(today), State::Expired), (is_old, State::Unused)];
        let further = further.into_iter().filter(|(is_so, _)| *is_so).map(|(_, state)| state);
        [State::InUse].into_iter().chain(further).collect()
    }

    pub fn item<'a>(
        &self,
        related: &Related,
        commits: impl Iterator<Item = &'a Commit>,
        now: Timestamp,
        today: Date,
    ) -> Item {
        let Meta { id, title, tags, tier, scope, by, .. } = &self.meta;
        let mut repositories: Vec<Shown> = repos(&self.meta.sources).into_iter().map(Shown::line).collect();
        if *scope == Scope::Global || repositories.is_empty() {
            repositories = vec![if *scope == Scope::Global { "all repositories" } else { "none" }.into()];
        }
        let by = by.map_or("unknown", |by| by.as_str());
        let states = self.states(now, today);
        let about = format!(
            "{tier} · {by} · {}",
            states.iter().map(|state| state.as_str()).collect::<Vec<_>>().join(", ")
        );
        let about = [Shown::line(&tags.join(" ")), about.into()];
        let ids = |ids: &BTreeSet<EntryId>| ids.iter().map(EntryId::to_string).collect::<Vec<_>>();
        let related = [
            ("Links to", ids(&related.links)),
            ("Linked from", ids(&related.backlinks)),
            ("Replaces", ids(&related.replaced)),
            ("Replaced by", self.meta.superseded_by.iter().map(EntryId::to_string).collect()),
        ];
        Item {
            id: id.to_string(),
            title: Shown::line(title),
            about: about
                .iter()
                .map(Shown::as_str)
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(" · ")
                .into(),
            values: vec![
                repositories,
                tags.iter().map(|tag| Shown::line(tag)).collect(),
                vec![tier.as_str().into()],
                vec![by.into()],
                states.iter().map(|state| state.as_str().into()).collect(),
            ],
            facts: self.facts(),
            text: (&self.body).into(),
            related: related.into_iter().filter(|(_, ids)| !ids.is_empty()).collect(),
            events: self.events(commits),
            commands: vec![format!("memory-read {id}").into()],
        }
    }

    fn facts(&self) -> Vec<(&'static str, Shown)> {
        let Meta { summary, tags, scope, pinned, until, outside, used, last_used, sources, status, .. } =
            &self.meta;
        let where_it_holds = match scope {
            Scope::Global => "in all repositories".to_owned(),
            Scope::Repo => Vec::from_iter(repos(sources)).join(", "),
        };
        let read =
            last_used.map(|time| format!(", last on {}", Shown::time(time).as_str())).unwrap_or_default();
        let facts = [
            ("Summary", summary.clone()),
            ("Holds", where_it_holds),
            ("Until", until.map(|until| until.to_string()).unwrap_or_default()),
            ("Tags", tags.join(" ")),
            ("Status", if *pinned { format!("{status}, pinned") } else { status.to_string() }),
            ("Read", counted(usize::try_from(*used).unwrap_or(usize::MAX), "time", "times") + &read),
            ("Session had read", outside.join(", ")),
            ("File", self.path.to_string_lossy().into_owned()),
        ];
        facts
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name, Shown::line(&value)))
            .collect()
    }

    /// Who said it and when it was changed, the oldest first.
    fn events<'a>(&self, commits: impl Iterator<Item = &'a Commit>) -> Vec<(Shown, Shown)> {
        let said = self.meta.sources.iter().map(|source| {
            let time = source.at.as_ref().and_then(|at| at.parse::<Timestamp>().ok());
            (time, Shown::line(&format!("said: {}", told(source))))
        });
        let changed =
            commits.map(|(time, subject)| (Some(*time), format!("commit: {}", subject.as_str()).into()));
        let made = Timestamp::from_millisecond(self.meta.created_at).ok().filter(|time| time.as_second() > 0);
        let mut events: Vec<(Option<Timestamp>, Shown)> =
            made.map(|time| (Some(time), "made".into())).into_iter().chain(said).chain(changed).collect();
        events.sort_by_key(|(time, _)| *time);
        let time = |time: Option<Timestamp>| time.map_or_else(|| "at an unknown time".into(), Shown::time);
        events.into_iter().map(|(at, what)| (time(at), what)).collect()
    }
}

/// A session, in words.
fn told(source: &Source) -> String {
    let Source { harness, thread_id, repo, cwd, .. } = source;
    let harness = harness.as_deref().unwrap_or("somebody");
    let thread = thread_id.as_ref().map(|id| format!(" session {id}")).unwrap_or_default();
    let place = repo.as_ref().or(cwd.as_ref()).map(|place| format!(" in {place}")).unwrap_or_default();
    one_line(&format!("{harness}{thread}{place}"), 500)
}
