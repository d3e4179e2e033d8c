//! What a model answers memory-defrag: whatever it says, no note is lost, no link leads nowhere, nothing pinned cools.

use crate::fuzz::{choice, is_told, text};
use crate::memory::defrag::corpus::CorpusNote;
use crate::memory::defrag::plan::{Allows, Found, Plan, plan};
use crate::memory::defrag::reply::{Op, Reply, parse};
use crate::memory::defrag::show::lines;
use crate::memory::defrag::work::{Scanned, Work};
use crate::memory::facts::lost;
use crate::memory::redact::Redactor;
use crate::store::entry::{Entry, EntryId, Meta, Scope, Source, Status, Tier};
use crate::store::revision::{Place, Version};
use std::collections::{BTreeMap, BTreeSet};

const BATCH: &str = "batch__AAAAAAAAAAAA";
const TOTAL: usize = 20;

/// Where a file is, its name, and its bytes.
type Files = BTreeMap<(Place, String), Vec<u8>>;

pub fn holds(bytes: &[u8]) {
    let (allows, bytes) = choice(bytes, 3);
    let reply = match parse(&text(bytes), BATCH) {
        Ok(parsed) => parsed,
        Err(faults) => {
            assert!(!faults.is_empty());
            return faults.iter().for_each(|fault| is_told(fault));
        }
    };
    reply.dropped.iter().for_each(|one| is_told(&one.to_string()));
    let allows = Allows { tiers: allows != 1, texts: allows != 2, loss: false };
    let made = planned(&reply, allows);
    assert_eq!(planned(&reply, allows), made);
    let json = serde_json::to_string(&made).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), made);
    lines(
        &made.operations,
        &made.dropped,
        &made.proposals,
        &made.warnings,
        std::slice::from_ref(&made.remark),
        TOTAL,
    )
    .iter()
    .for_each(|line| assert!(!line.contains(char::is_control), "{line:?}"));
    assert!(made.operations.len() + made.dropped.len() <= reply.operations.len() + reply.dropped.len());
    is_safe(&made, allows);
}

fn name_of(version: &Version) -> String {
    version.name().to_str().unwrap().to_owned()
}

/// Carried out step by step: what is replaced is what is there, and what is there afterwards is all that was.
fn is_safe(plan: &Plan, allows: Allows) {
    let notes = corpus();
    let mut files: Files =
        notes.iter().map(|note| ((Place::Topics, note.name.clone()), note.entry.bytes().to_vec())).collect();
    let shown: BTreeSet<EntryId> = notes.iter().map(|note| note.id().clone()).collect();
    let mut archived = 0;
    for planned in &plan.operations {
        assert!(if planned.op == Op::Tier { allows.tiers } else { allows.texts });
        archived += usize::from(planned.op == Op::Archive);
        let (mut old, mut new) = (Vec::new(), String::new());
        for revision in &planned.revisions {
            let is_new = revision.before.is_none();
            let id = revision.id().unwrap();
            assert_eq!(shown.contains(&id), !is_new, "{id} was not shown");
            let before = revision.before.as_ref().map(|before| {
                let bytes = files.remove(&(before.place().unwrap(), name_of(before)));
                assert_eq!(
                    bytes.as_deref(),
                    Some(before.bytes()),
                    "{} is not what is there",
                    name_of(before)
                );
                before.entry().unwrap()
            });
            let after = revision.after.as_ref().expect("nothing is deleted");
            let (place, name) = (after.place().unwrap(), name_of(after));
            assert!(!name.contains(['/', '\0']) && name.ends_with(".md") && name.len() <= 255);
            // An old text, or a part of a split.
            assert!(!is_new || place == Place::Archive || planned.op == Op::Split);
            let entry = after.entry().unwrap();
            assert_eq!(entry.meta().id, id);
            let old_bytes = files.insert((place, name), after.bytes().to_vec());
            assert_eq!(old_bytes, None, "{} is overwritten", name_of(after));
            assert_eq!(entry.meta().tier == Tier::Hot, entry.meta().status == Status::Promoted);
            if let Some(before) = &before {
                let (was, is) = (before.meta(), entry.meta());
                assert!(!was.pinned || is.pinned);
                assert!(!(was.pinned && place == Place::Archive && planned.op == Op::Archive));
                assert!(!(was.pinned && was.tier == Tier::Hot && planned.op == Op::Tier));
                assert!(is.used >= was.used && is.created_at <= was.created_at);
                assert!(was.aliases.iter().all(|id| is.aliases.contains(id)));
                assert_eq!((was.scope, was.until), (is.scope, is.until));
                // What a person made their own stays that, and what it says stays.
                if before.kept().is_some() && place == Place::Topics {
                    assert!(entry.kept().is_some(), "{planned:?}");
                    let all = format!("{} {} {}", is.title, is.summary, text(entry.body()));
                    assert!(
                        text(before.body()).split_whitespace().all(|word| all.contains(word)),
                        "{planned:?}"
                    );
                }
                old.push(format!("{}\n{}\n{}", was.title, was.summary, text(before.body())));
            }
            if place == Place::Topics {
                let meta = entry.meta();
                new += &format!("{}\n{}\n{}\n", meta.title, meta.summary, text(entry.body()));
            }
        }
        // What a merge, a split or a rewrite makes still says what it was made of.
        if matches!(planned.op, Op::Merge | Op::Split | Op::Rewrite) {
            for old in &old {
                assert!(!lost(old, &new, &planned.gone, |_| false).is_too_much(), "{old:?} became {new:?}");
            }
        }
    }
    assert!(archived <= TOTAL / 10);
    every_id_leads_somewhere(&files, &shown);
}

fn every_id_leads_somewhere(files: &Files, shown: &BTreeSet<EntryId>) {
    let mut own = BTreeSet::new();
    let mut aliases = BTreeSet::new();
    for bytes in files.values() {
        let entry = Entry::parse(bytes.clone()).unwrap();
        assert!(own.insert(entry.meta().id.clone()), "two notes with one id");
        aliases.extend(entry.meta().aliases.iter().cloned());
        if let Some(successor) = &entry.meta().superseded_by {
            assert!(shown.contains(successor));
        }
    }
    assert!(shown.iter().all(|id| own.contains(id)), "a note is gone");
    assert!(aliases.contains(&id("id__Zz9yX1")), "an alias is gone");
}

fn planned(reply: &Reply, allows: Allows) -> Plan {
    let notes = corpus();
    let shown: BTreeMap<EntryId, String> =
        notes.iter().map(|note| (note.id().clone(), note.mark.clone())).collect();
    let redactor = Redactor::new(true, &[]).unwrap();
    let names = notes.iter().map(|note| (Place::Topics, note.name.clone())).collect();
    let mut ids: BTreeSet<EntryId> = shown.keys().cloned().collect();
    ids.insert(id("id__Zz9yX1"));
    let at = "2026-02-28T15:04:05Z".parse().unwrap();
    let found = Found { at, ids, notes, waiting: BTreeSet::new(), names };
    let work = Work { shown, ..Work::new(BATCH.to_owned(), Scanned { total: TOTAL, ..Scanned::default() }) };
    plan(reply, found, &work, allows, &|text| redactor.cleaned(text))
}

fn id(text: &str) -> EntryId {
    EntryId::parse(text).unwrap()
}

fn corpus() -> Vec<CorpusNote> {
    let note = |digits: &str, title: &str, body: &[u8], change: fn(&mut Meta)| {
        let mut meta = Meta::new(id(digits));
        meta.title = title.to_owned();
        meta.created_at = 1_771_000_000_000;
        meta.status = Status::Consolidated;
        meta.scope = Scope::Repo;
        let repo = Some("github.com/o/r".to_owned());
        meta.sources = vec![Source { repo, ..Source::default() }];
        change(&mut meta);
        let entry = Entry::new(meta, body);
        CorpusNote { name: entry.meta().file_name(), mark: entry.fingerprint(), entry }
    };
    vec![
        note("a1B2c3", "Ports", b"The server listens at 8081.\n", |meta| {
            meta.aliases = vec![EntryId::parse("id__Zz9yX1").unwrap()];
            meta.used = 3;
        }),
        note("a1B2c4", "Paths", b"See src/a.rs and [[id__a1B2c3]].\n", |meta| {
            meta.tags = vec!["topic__paths".to_owned(), "no tag".to_owned()];
            meta.last_used = Some("2026-02-13T14:30:00Z".parse().unwrap());
        }),
        note("a1B2c5", "Pinned", b"Always `just check`.\n", |meta| {
            (meta.pinned, meta.tier, meta.status) = (true, Tier::Hot, Status::Promoted);
        }),
        note("a1B2ca", "Global", b"Never push to main. Always run `just check`.\n", |meta| {
            (meta.scope, meta.sources) = (Scope::Global, Vec::new());
        }),
        note("a1B2cb", "By hand", b"Always run `just check`.\n", |meta| {
            meta.sources[0].harness = Some("manual".to_owned());
        }),
        note("a1B2c6", "Of another repository", b"make all\n", |meta| {
            meta.sources[0].repo = Some("github.com/o/other".to_owned());
        }),
        note("a1B2c7", "Odd bytes", b"caf\xe9 latte\n", |_| {}),
        note("a1B2c8", "Secret", b"password: hunter2hunter2X9\n", |_| {}),
        note(
            "a1B2c9",
            "Words",
            b"one two three four five six seven eight nine ten eleven twelve thirteen fourteen \
            fifteen sixteen seventeen eighteen nineteen twenty plain words\n",
            |_| {},
        ),
    ]
}
