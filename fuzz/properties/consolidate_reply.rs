//! What a model answers memory-consolidate: whatever it says, the plan names nothing that it was not shown.

use crate::fuzz::{is_told, text};
use crate::memory::consolidate::plan::{Known, Origin, Plan, plan};
use crate::memory::consolidate::reply::{Asked, Reply, parse};
use crate::memory::facts::lost;
use crate::memory::pipeline::question::{mark_for, repair};
use crate::memory::pipeline::reply::batch_of;
use crate::memory::redact::Redactor;
use crate::store::entry::{Entry, EntryId, Meta, Scope, Source, is_tag, links, one_line};
use std::collections::{BTreeMap, BTreeSet};

const BATCH: &str = "batch__AAAAAAAAAAAA";
/// A note that was shown whole.
const OLD: &str =
    "Run `cargo test --locked` in src/lib.rs at port 8081. See [[id__z9yX1w]] and https://a.b/c.\n";

pub(crate) fn holds(bytes: &[u8]) {
    let said = text(bytes);
    let id = |text: &str| EntryId::parse(text).unwrap();
    let (shown, brief) = (id("id__a1B2c3"), id("id__z9yX1w"));
    batch_of(&said);
    let asked =
        Asked { batch: BATCH, sources: BTreeSet::from(["q1", "q2"]), updatable: BTreeSet::from([&shown]) };
    let reply = match parse(&said, &asked) {
        Ok(reply) => reply,
        Err(faults) => {
            assert!(!faults.is_empty() && faults.len() <= 21);
            faults.iter().for_each(|fault| is_told(fault));
            return asks_again(&said, &faults);
        }
    };
    for entry in &reply.entries {
        assert!(entry.update.iter().all(|id| *id == shown));
        assert!(entry.sources.iter().all(|id| ["q1", "q2"].contains(&id.as_str())));
        assert!(entry.tags.iter().all(|tag| is_tag(tag)));
    }
    assert!(reply.skipped.iter().all(|skip| ["q1", "q2"].contains(&skip.source.as_str())));
    let ids = BTreeSet::from([shown.clone(), brief]);
    let redactor = Redactor::new(true, &[]).unwrap();
    let made = planned(&reply, &shown, &ids, &redactor);
    // Saved and read, it is the same plan; made again, too.
    let json = serde_json::to_string(&made).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), made);
    assert_eq!(planned(&reply, &shown, &ids, &redactor), made);

    let mut known = ids.clone();
    assert_eq!(made.notes.len(), reply.entries.len());
    for note in &made.notes {
        assert!(known.insert(note.id.clone()), "{} is given twice", note.id);
    }
    let mut updated = 0;
    for note in &made.notes {
        assert_eq!(
            (one_line(&note.title), one_line(&note.summary)),
            (note.title.clone(), note.summary.clone())
        );
        assert_eq!(redactor.cleaned(&note.title), note.title);
        if let Some(id) = &note.update {
            updated += 1;
            assert_eq!(*id, shown);
            let missing = lost(OLD, &note.body, &[], |id| ids.contains(id)).missing;
            assert!(missing.is_empty() || note.body.contains("[["), "{missing:?} of {:?}", note.body);
            assert!(note.replaces.is_some());
        }
        // Outside of code, which a backtick or a tilde may begin, links lead somewhere.
        if !note.body.contains(['`', '~']) && note.update.is_none() {
            let to = links(&note.body);
            assert!(to.iter().all(|id| known.contains(id)), "{to:?} of {:?}", note.body);
        }
        can_be_filed(note.id.clone(), &note.title, &note.summary, &note.tags, &note.body, &note.sources);
        assert!(note.scope == Scope::Global || note.sources.iter().any(|source| source.repo.is_some()));
    }
    assert!(updated <= 1);
}

fn planned(reply: &Reply, shown: &EntryId, ids: &BTreeSet<EntryId>, redactor: &Redactor) -> Plan {
    let origin = |repo: Option<&str>| Origin {
        harness: "codex".to_owned(),
        thread_id: Some("t-1".to_owned()),
        repo: repo.map(str::to_owned),
        cwd: Some("/home/x".to_owned()),
    };
    let known = Known {
        at: "2026-02-28T15:04:05Z".parse().unwrap(),
        ids: ids.clone(),
        bodies: BTreeMap::from([(shown.clone(), OLD.to_owned())]),
        sources: BTreeMap::from([("q1", origin(Some("github.com/o/r"))), ("q2", origin(None))]),
    };
    plan(reply, known, |text| redactor.cleaned(text))
}

/// As a note it is one file, which can be read again and says the same.
fn can_be_filed(id: EntryId, title: &str, summary: &str, tags: &[String], body: &str, from: &[Origin]) {
    let mut meta = Meta::new(id);
    meta.title = title.to_owned();
    meta.summary = summary.to_owned();
    meta.tags = tags.to_vec();
    meta.sources = from.iter().take(20).map(Source::from).collect();
    let entry = Entry::new(meta.clone(), body.as_bytes());
    entry.fits().unwrap();
    let again = Entry::parse(entry.bytes().to_vec()).unwrap();
    assert_eq!((again.meta(), again.body()), (&meta, body.as_bytes()));
    let name = meta.file_name();
    assert!(name.len() <= 247 && !name.contains(['/', '\\', '\0']) && !name.starts_with('.'), "{name:?}");
    assert!(!name.contains(char::is_control), "{name:?}");
}

/// The faulty reply stands in a fence that it cannot close.
fn asks_again(said: &str, faults: &[String]) {
    let prompt = repair(BATCH, "rules for BATCH", "the first prompt", said, faults, 200_000);
    let mark = mark_for(BATCH, [said, "the first prompt"]);
    assert!(!said.contains(&mark));
    let lines = prompt.lines().filter(|line| line.contains(&mark));
    assert_eq!(lines.filter(|line| line.starts_with(">>>")).count(), 1, "{prompt}");
}
