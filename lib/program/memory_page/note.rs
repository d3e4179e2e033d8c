//! A note as an item of the page, with the commits of the store that changed it.

use crate::base::cli::Context;
use crate::base::error::Result;
use crate::base::text::one_line;
use crate::program::page::{Item, PageText, Related, facts};
use crate::store::entry::{EntryId, Meta, Scope, Source, links, repos};
use crate::store::git::Git;
use crate::store::persistence::{Note, Place};
use crate::store::place::Root;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A note that was not changed, confirmed or read for so long may be out of date.
const SIX_MONTHS: SignedDuration = SignedDuration::from_hours(182 * 24);

/// How a note stands.
pub const IN_USE: &str = "in use";
pub const ARCHIVED: &str = "archived";
pub const EXPIRED: &str = "expired";
pub const UNUSED: &str = "unused for six months";

/// The keys that are not shown under their names: the filters and the history say the same.
const APART: &[&str] =
    &["id", "title", "tags", "tier", "by", "createdAt", "updatedAt", "written", "sources", "supersededBy"];

/// A note without what the page does not show.
#[derive(Debug)]
pub struct PageNote {
    pub meta: Meta,
    pub place: Place,
    path: PathBuf,
    body: String,
}

/// What the notes have to do with each other: links, and what an archived one was replaced by.
pub fn related(notes: &[PageNote]) -> BTreeMap<EntryId, Related> {
    let aliases = notes.iter().flat_map(|note| note.meta.aliases.iter().map(|alias| (alias, &note.meta.id)));
    let aliases: BTreeMap<&EntryId, &EntryId> = aliases.collect();
    let mut related: BTreeMap<EntryId, Related> = BTreeMap::new();
    let mut add = |of: &EntryId, what: &'static str, other: &EntryId| {
        related.entry(of.clone()).or_default().entry(what).or_default().insert(other.to_string().into());
    };
    for PageNote { meta, body, .. } in notes {
        for link in links(body) {
            let link = aliases.get(&link).copied().unwrap_or(&link);
            add(&meta.id, "Links to", link);
            add(link, "Linked from", &meta.id);
        }
        if let Some(successor) = &meta.superseded_by {
            add(&meta.id, "Replaced by", successor);
            add(successor, "Replaces", &meta.id);
        }
    }
    related
}

impl PageNote {
    pub fn of(note: Note) -> PageNote {
        let body = String::from_utf8_lossy(note.entry.body()).into_owned();
        PageNote { place: note.place, path: note.path, body, meta: note.entry.into_meta() }
    }

    /// When somebody last said, changed or read it.
    fn confirmed(&self) -> Option<Timestamp> {
        let Meta { created_at, updated_at, last_used, sources, .. } = &self.meta;
        let written = Timestamp::from_millisecond(*created_at.max(updated_at)).ok();
        let said = sources.iter().filter_map(|source| source.at.as_ref()?.parse().ok());
        said.chain(written).chain(*last_used).max()
    }

    fn states(&self, now: Timestamp, today: Date) -> Vec<&'static str> {
        if self.place == Place::Archive {
            return vec![ARCHIVED];
        }
        let is_old = self.confirmed().is_none_or(|time| now.duration_since(time) > SIX_MONTHS);
        let states = [(true, IN_USE), (self.meta.is_expired(today), EXPIRED), (is_old, UNUSED)];
        states.into_iter().filter(|(is_so, _)| *is_so).map(|(_, state)| state).collect()
    }

    /// Its values are in the order of the filters: repository, tag, tier, author, state.
    pub fn item(
        &self,
        related: Related,
        commits: &[(Timestamp, PageText)],
        now: Timestamp,
        today: Date,
    ) -> Result<Item> {
        let Meta { id, title, tags, tier, scope, by, sources, .. } = &self.meta;
        let repositories = match scope {
            Scope::Global => vec!["all repositories".into()],
            Scope::Repo => repos(sources).into_iter().map(PageText::line).collect(),
        };
        let mut facts = facts(&self.meta, APART)?;
        facts.push(("file".to_owned(), PageText::line(&self.path.to_string_lossy())));
        let command = format!("memory-read {id}");
        Ok(Item {
            id: id.to_string().into(),
            aliases: self.meta.aliases.iter().map(|alias| alias.to_string().into()).collect(),
            title: PageText::line(title),
            values: vec![
                repositories,
                tags.iter().map(|tag| PageText::line(tag)).collect(),
                vec![tier.as_str().into()],
                vec![by.map_or("unknown", |by| by.as_str()).into()],
                self.states(now, today).into_iter().map(PageText::from).collect(),
            ],
            facts,
            text: PageText::start(&self.body, &command),
            related,
            events: self.events(commits),
            command: command.into(),
        })
    }

    /// Who said it and when it was changed, the oldest first.
    fn events(&self, commits: &[(Timestamp, PageText)]) -> Vec<(PageText, PageText)> {
        let said = self.meta.sources.iter().map(|source| {
            let time = source.at.as_ref().and_then(|at| at.parse::<Timestamp>().ok());
            (time, PageText::line(&told(source)))
        });
        let changed =
            commits.iter().map(|(time, what)| (Some(*time), format!("commit: {}", what.as_str()).into()));
        let created = Timestamp::from_millisecond(self.meta.created_at).ok();
        let created = created.filter(|time| time.as_second() > 0);
        let created = created.map(|time| (Some(time), "created".into())).into_iter();
        // A commit has no fractions of seconds. In the same second, this is the order.
        let mut events: Vec<_> = created.chain(said).chain(changed).collect();
        events.sort_by_key(|(time, _)| time.map(Timestamp::as_second));
        let time = |time: Option<Timestamp>| time.map_or_else(|| "at an unknown time".into(), PageText::time);
        events.into_iter().map(|(at, what)| (time(at), what)).collect()
    }
}

/// A session, in words.
fn told(source: &Source) -> String {
    let Source { harness, thread_id, repo, cwd, .. } = source;
    let harness = harness.as_deref().unwrap_or("somebody");
    let thread = thread_id.as_ref().map(|id| format!(" session {id}")).unwrap_or_default();
    let place = repo.as_ref().or(cwd.as_ref()).map(|place| format!(" in {place}")).unwrap_or_default();
    one_line(&format!("said: {harness}{thread}{place}"), 500)
}

/// The newest commits that are looked at, and what is told of each: the time and the subject, between separators.
const LOG: [&str; 10] = [
    "log", "-z", "--no-renames", "--name-only", "--max-count=5000", "--format=%x1e%ct%x1f%s", "HEAD", "--",
    "topics", "archive",
];

/// For each note the commits that changed it: when, and their subjects.
pub type ChangeLog = BTreeMap<EntryId, Vec<(Timestamp, PageText)>>;

/// None if the store has no history. If it cannot be read, there is a warning.
pub fn changes(root: &Root, cx: &Context) -> ChangeLog {
    let read = || -> Result<ChangeLog> {
        let git = Git::new(root, &cx.env)?;
        // Before the first commit there is nothing to read.
        match git.maybe_object(&["rev-parse", "--quiet", "--verify", "HEAD"])? {
            Some(_) => Ok(parse(&String::from_utf8_lossy(&git.run(&LOG)?))),
            None => Ok(ChangeLog::new()),
        }
    };
    if !root.path().join(".git").exists() {
        return ChangeLog::new();
    }
    read().unwrap_or_else(|error| {
        cx.reporter.warn(&format!("without the notes' history: {}", error.line()));
        ChangeLog::new()
    })
}

/// Each commit ends with the paths of its files, and a NUL before each.
fn parse(log: &str) -> ChangeLog {
    let mut changes = ChangeLog::new();
    for commit in log.split('\u{1e}') {
        let Some((head, paths)) = commit.split_once('\0') else { continue };
        let Some((time, subject)) = head.split_once('\u{1f}') else { continue };
        let Some(time) = time.parse().ok().and_then(|time| Timestamp::from_second(time).ok()) else {
            continue;
        };
        let names = paths.split('\0').filter_map(|path| path.rsplit('/').next());
        // A note that was archived has two paths.
        let ids: BTreeSet<EntryId> = names.filter_map(EntryId::at_end_of).collect();
        for id in ids {
            changes.entry(id).or_default().push((time, PageText::line(subject)));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_note_has_the_commits_that_changed_it() {
        let log = "\u{1e}200\u{1f}two \u{1b}[31m\0\ntopics/a b -- id__a1B2c3.md\0archive/a b -- id__a1B2c3.md\0topics/x.md\0\0\
                   \u{1e}100\u{1f}one\0\ntopics/a b -- id__a1B2c3.md\0topics/c -- id__Zz9yX1.md\0";
        let changes = parse(log);
        let told = |id: &str| {
            let its = changes.get(&EntryId::parse(id).unwrap());
            its.into_iter()
                .flatten()
                .map(|(time, what)| format!("{} {}", time.as_second(), what.as_str()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (told("a1B2c3"), told("Zz9yX1")),
            (vec!["200 two  [31m".to_owned(), "100 one".to_owned()], vec!["100 one".to_owned()])
        );
        assert!(parse("").is_empty() && parse("\u{1e}x\u{1f}\0\n\0").is_empty());
    }
}
