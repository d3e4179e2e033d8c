//! What a model answers memory-defrag: whatever it says, no note is lost, no link leads nowhere, nothing pinned cools.

use crate::fuzz::{choice, is_told, text};
use crate::memory::defrag::plan::{DefragPlan, Inventory, Summary};
use crate::memory::defrag::planner::plan;
use crate::memory::defrag::reply::{DefragReply, Verb, parse};
use crate::memory::defrag::{Defrag, DefragWork, Part, Scanned};
use crate::memory::facts::lost;
use crate::memory::redact::Redactor;
use crate::store::entry::{Entry, EntryId, Meta, Scope, Source, Status, Tier};
use crate::store::persistence::Note;
use crate::store::revision::{Place, Version};
use std::collections::{BTreeMap, BTreeSet};

const BATCH: &str = "batch__AAAAAAAAAAAA";
const TOTAL: usize = 20;

/// Where a file is, its name, and its bytes.
type Files = BTreeMap<(Place, String), Vec<u8>>;

pub fn holds(bytes: &[u8]) {
    let (which, bytes) = choice(bytes, 3);
    let reply = match parse(&text(bytes), BATCH) {
        Ok(parsed) => parsed,
        Err(faults) => {
            assert!(!faults.is_empty());
            return faults.iter().for_each(|fault| is_told(fault));
        }
    };
    reply.dropped.iter().for_each(|one| is_told(&one.to_string()));
    let ids = corpus().iter().map(|note| note.entry.meta().id.clone()).collect();
    let reach = "repo github.com/o/r".to_owned();
    let part = match which {
        0 => Part::Whole(reach, ids),
        1 => Part::Group(reach, ids),
        _ => Part::Tiers(reach),
    };
    let made = planned(&reply, &part);
    assert_eq!(planned(&reply, &part), made);
    let json = serde_json::to_string(&made).unwrap();
    assert_eq!(serde_json::from_str::<DefragPlan>(&json).unwrap(), made);
    let mut summary = Summary { total: TOTAL, ..Summary::default() };
    summary.add(made.clone());
    summary.lines().iter().for_each(|line| assert!(!line.contains(char::is_control), "{line:?}"));
    assert!(made.operations.len() + made.dropped.len() <= reply.operations.len() + reply.dropped.len());
    is_safe(&made, &part);
}

fn name_of(version: &Version) -> String {
    version.name().to_str().unwrap().to_owned()
}

/// Carried out step by step: what is replaced is what is there, and what is there afterwards is all that was.
fn is_safe(plan: &DefragPlan, part: &Part) {
    let notes = corpus();
    let mut files: Files = notes
        .iter()
        .map(|note| ((Place::Topics, name_of(&note.version())), note.entry.bytes().to_vec()))
        .collect();
    let shown: BTreeSet<EntryId> = notes.iter().map(|note| note.entry.meta().id.clone()).collect();
    let mut archived = 0;
    for planned in &plan.operations {
        match part {
            Part::Whole(..) => {}
            Part::Group(..) => assert_ne!(planned.op, Verb::Tier),
            Part::Tiers(_) => assert_eq!(planned.op, Verb::Tier),
        }
        archived += usize::from(planned.op == Verb::Archive);
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
            assert!(!is_new || place == Place::Archive || planned.op == Verb::Split);
            let entry = after.entry().unwrap();
            assert_eq!(entry.meta().id, id);
            let old_bytes = files.insert((place, name), after.bytes().to_vec());
            assert_eq!(old_bytes, None, "{} is overwritten", name_of(after));
            assert_eq!(entry.meta().tier == Tier::Hot, entry.meta().status == Status::Promoted);
            if let Some(before) = &before {
                let (was, is) = (before.meta(), entry.meta());
                assert!(!was.pinned || is.pinned);
                assert!(!(was.pinned && place == Place::Archive && planned.op == Verb::Archive));
                assert!(!(was.pinned && was.tier == Tier::Hot && planned.op == Verb::Tier));
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
        if matches!(planned.op, Verb::Merge | Verb::Split | Verb::Rewrite) {
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

fn planned(reply: &DefragReply, part: &Part) -> DefragPlan {
    let notes = corpus();
    let shown: BTreeMap<EntryId, String> =
        notes.iter().map(|note| (note.entry.meta().id.clone(), note.entry.fingerprint())).collect();
    let redactor = Redactor::new(true, &[]).unwrap();
    let paths = notes.iter().map(|note| note.version().path()).collect();
    let mut ids: BTreeSet<EntryId> = shown.keys().cloned().collect();
    ids.insert(id("id__Zz9yX1"));
    let at = "2026-02-28T15:04:05Z".parse().unwrap();
    let inventory = Inventory { at, ids, notes, proposed: BTreeSet::new(), paths };
    let own = Scanned { total: TOTAL, ..Scanned::default() };
    let work = DefragWork { shown, parts: vec![part.clone()], ..DefragWork::new(BATCH.to_owned(), own) };
    let (max_prompt_bytes, max_hot_tokens) = (0, 0);
    let settings = Defrag { redactor: &redactor, max_prompt_bytes, max_hot_tokens, allows_loss: false };
    plan(&settings, &work, reply, inventory)
}

fn id(text: &str) -> EntryId {
    EntryId::parse(text).unwrap()
}

fn corpus() -> Vec<Note> {
    let note = |digits: &str, title: &str, body: &[u8], change: fn(&mut Meta)| {
        let mut meta = Meta::new(id(digits));
        meta.title = title.to_owned();
        meta.created_at = 1_771_000_000_000;
        meta.status = Status::Consolidated;
        meta.scope = Scope::Repo;
        let repo = Some("github.com/o/r".to_owned());
        meta.sources = vec![Source { repo, ..Source::default() }];
        change(&mut meta);
        Note { place: Place::Topics, path: meta.file_name().into(), entry: Entry::new(meta, body) }
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
