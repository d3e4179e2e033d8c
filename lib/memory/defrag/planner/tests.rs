//! Each operation, what it makes of the notes, and what it is refused for.

use super::*;
use crate::memory::defrag::Scanned;
use crate::memory::redact::Redactor;
use crate::store::entry::{By, Meta, Scope, Source, Status};
use jiff::Timestamp;

const AT: i64 = 1_772_000_000_000;

fn id(digits: &str) -> EntryId {
    EntryId::parse(digits).unwrap()
}

fn in_use(name: &str, entry: Entry) -> Note {
    Note { place: Place::Topics, path: name.into(), entry }
}

/// A note from a session.
fn note(digits: &str, title: &str, body: &str, change: impl FnOnce(&mut Meta)) -> Note {
    let mut meta = Meta::new(id(digits));
    meta.scope = Scope::Repo;
    meta.sources = vec![Source { repo: Some("h/o/r".to_owned()), ..Source::default() }];
    meta.title = title.to_owned();
    meta.created_at = 1000;
    change(&mut meta);
    in_use(&meta.file_name(), Entry::new(meta, body.as_bytes()))
}

fn plain(digits: &str, title: &str, body: &str) -> Note {
    note(digits, title, body, |_| {})
}

fn marks(notes: &[Note]) -> BTreeMap<EntryId, String> {
    notes.iter().map(|note| (note.entry.meta().id.clone(), note.entry.fingerprint())).collect()
}

/// A call about these notes. There are ten, so that one may be archived.
fn work(part: Part, shown: BTreeMap<EntryId, String>) -> DefragWork {
    let scanned = Scanned { total: 10, ..Scanned::default() };
    DefragWork { parts: vec![part], shown, ..DefragWork::new("b".to_owned(), scanned) }
}

/// A call about all of it.
fn whole(notes: &[Note]) -> Part {
    Part::Whole("global".to_owned(), marks(notes).into_keys().collect())
}

fn planned_for(
    work: &DefragWork,
    notes: Vec<Note>,
    operations: Vec<Operation>,
    allows_loss: bool,
) -> DefragPlan {
    let taken = notes.iter().map(Note::name).filter(|name| name.to_string_lossy().starts_with("taken"));
    let inventory = Inventory {
        at: Timestamp::from_millisecond(AT).unwrap(),
        ids: marks(&notes).into_keys().collect(),
        proposed: BTreeSet::new(),
        paths: taken.map(|name| Place::Archive.path(&name)).collect(),
        notes,
    };
    let redactor = Redactor::new(true, &["hunter2".to_owned()]).unwrap();
    let settings = Defrag { redactor: &redactor, max_prompt_bytes: 0, max_hot_tokens: 0, allows_loss };
    let reply = DefragReply { operations, dropped: Vec::new(), remark: "hunter2".to_owned() };
    plan(&settings, work, &reply, inventory)
}

fn planned_with_loss(notes: Vec<Note>, operations: Vec<Operation>, allows_loss: bool) -> DefragPlan {
    let work = work(whole(&notes), marks(&notes));
    planned_for(&work, notes, operations, allows_loss)
}

fn planned(notes: Vec<Note>, operations: Vec<Operation>) -> DefragPlan {
    planned_with_loss(notes, operations, false)
}

fn text(title: &str, body: &str) -> Text {
    Text {
        title: title.to_owned(),
        summary: "In short.".to_owned(),
        tags: vec!["topic__new".to_owned()],
        body: body.to_owned(),
    }
}

fn operation(op: Verb, id: &str, texts: Vec<Text>) -> Operation {
    Operation { texts, ..Operation::new(op, vec![id.to_owned()]) }
}

fn merge_into(ids: &[&str], text: Text) -> Operation {
    let ids = ids.iter().map(|id| (*id).to_owned()).collect();
    Operation { texts: vec![text], ..Operation::new(Verb::Merge, ids) }
}

fn merge(ids: &[&str], body: &str) -> Operation {
    merge_into(ids, text("Merged", body))
}

fn split(id: &str, bodies: &[&str]) -> Operation {
    let into = bodies.iter().enumerate().map(|(at, body)| text(&format!("Part {at}"), body));
    operation(Verb::Split, id, into.collect())
}

fn rewrite(id: &str, body: &str) -> Operation {
    operation(Verb::Rewrite, id, vec![Text { body: body.to_owned(), ..Text::default() }])
}

fn rename(id: &str, title: &str) -> Operation {
    operation(Verb::Rename, id, vec![Text { title: title.to_owned(), ..Text::default() }])
}

fn retag(id: &str, tag: &str) -> Operation {
    operation(Verb::Retag, id, vec![Text { tags: vec![tag.to_owned()], ..Text::default() }])
}

fn archive(id: &str) -> Operation {
    Operation { reason: "wrong now".to_owned(), ..operation(Verb::Archive, id, Vec::new()) }
}

fn tier(id: &str, tier: Tier) -> Operation {
    Operation { tier: Some(tier), ..operation(Verb::Tier, id, Vec::new()) }
}

/// What a plan leaves of a note.
fn after(plan: &DefragPlan, digits: &str) -> (Place, Entry) {
    let mut revisions = plan.operations.iter().flat_map(|planned| &planned.revisions);
    let last = revisions.rfind(|revision| revision.id() == Some(id(digits))).unwrap();
    let version = last.after.clone().unwrap();
    (version.place().unwrap(), version.entry().unwrap())
}

/// The one reason for which something was dropped.
fn why(plan: &DefragPlan) -> &str {
    let [dropped] = &plan.dropped[..] else { panic!("{plan:#?}") };
    &dropped.why
}

#[test]
fn a_merge_keeps_the_first_id_and_takes_the_others_in() {
    let source = |thread: &str| Source { thread_id: Some(thread.to_owned()), ..Source::default() };
    let notes = vec![
        note("a1B2c3", "One", "Port 8081.", |meta| {
            meta.tags = vec!["topic__one".to_owned()];
            meta.used = 2;
            meta.created_at = 500;
            meta.sources = vec![source("T-1")];
            meta.outside = vec!["a.example".to_owned()];
        }),
        note("a1B2c4", "Two", "See src/a.rs.", |meta| {
            meta.used = 3;
            meta.last_used = Some("2026-02-13T14:30:00Z".parse().unwrap());
            meta.created_at = 400;
            meta.aliases = vec![id("Zz9yX1")];
            meta.sources = vec![source("T-1"), source("T-2")];
            meta.outside = vec!["b.example".to_owned()];
            meta.tier = Tier::Hot;
            meta.status = Status::Promoted;
        }),
    ];
    let plan = planned(notes, vec![merge(&["a1B2c3", "[[id__a1B2c4]]", "id__a1B2c3"], "8081, src/a.rs")]);
    let (place, successor) = after(&plan, "a1B2c3");
    let meta = successor.meta();
    assert_eq!((place, successor.body()), (Place::Topics, &b"8081, src/a.rs\n"[..]));
    assert_eq!((meta.title.as_str(), meta.summary.as_str()), ("Merged", "In short."));
    assert_eq!(meta.tags, ["topic__one", "topic__new"]);
    assert_eq!(meta.aliases, [id("a1B2c4"), id("Zz9yX1")]);
    assert_eq!((meta.used, meta.created_at, meta.updated_at), (5, 400, AT));
    assert_eq!(meta.last_used, Some("2026-02-13T14:30:00Z".parse().unwrap()));
    assert_eq!(
        (meta.sources.len(), &meta.outside[..]),
        (2, &["a.example".to_owned(), "b.example".to_owned()][..])
    );
    assert_eq!((meta.tier, meta.status), (Tier::Hot, Status::Promoted));
    let (place, old) = after(&plan, "a1B2c4");
    assert_eq!((place, old.body()), (Place::Archive, &b"See src/a.rs."[..]));
    assert_eq!(old.meta().superseded_by, Some(id("a1B2c3")));
    // What is archived is shown to nobody.
    assert_eq!((old.meta().tier, old.meta().status), (Tier::Cold, Status::Consolidated));
    assert_eq!(plan.operations[0].revisions[0].id(), Some(id("a1B2c3")), "the successor comes first");
    assert_eq!(plan.remark, "[redacted:custom]");
}

#[test]
fn a_merge_of_notes_that_reach_differently_far_is_dropped() {
    let of = |digits, repo: Option<&str>| {
        note(digits, "A", "words", |meta| {
            meta.scope = Scope::Global;
            if let Some(repo) = repo {
                meta.scope = Scope::Repo;
                meta.sources = vec![Source { repo: Some(repo.to_owned()), ..Source::default() }];
            }
        })
    };
    for (one, other, is_fine) in [
        (None, Some("h/o/a"), false),
        (Some("h/o/a"), Some("h/o/b"), false),
        (Some("h/o/a"), Some("h/o/a"), true),
    ] {
        let plan = planned(
            vec![of("a1B2c3", one), of("a1B2c4", other)],
            vec![merge(&["a1B2c3", "a1B2c4"], "words")],
        );
        assert_eq!(plan.operations.len() == 1, is_fine, "{one:?} {other:?}");
        assert!(is_fine || why(&plan).contains("scope or repository differ"), "{}", why(&plan));
    }
}

#[test]
fn a_split_keeps_the_id_on_the_first_part_and_leads_to_the_others() {
    let old = note("a1B2c3", "Old", "Port 8081.\nSee src/a.rs.", |meta| {
        meta.used = 4;
        (meta.rank, meta.until, meta.by) = (Some(7), Some(jiff::civil::date(2026, 3, 20)), Some(By::Tool));
        meta.outside = vec!["a.example".to_owned()];
        meta.tags = vec!["topic__old".to_owned()];
    });
    let plan =
        planned(vec![old], vec![split("a1B2c3", &["Port 8081. [[Part 2]]", "See src/a.rs.", "[[Part 0]]"])]);
    let revisions = &plan.operations[0].revisions;
    let [second, third, first] = &revisions[..] else { panic!("{revisions:#?}") };
    assert!(second.before.is_none() && third.before.is_none() && first.id() == Some(id("a1B2c3")));
    let (_, entry) = after(&plan, "a1B2c3");
    let body = String::from_utf8_lossy(entry.body()).into_owned();
    assert_eq!(
        body,
        format!("Port 8081. [[{}]]\n\nSee also [[{}]].\n", third.id().unwrap(), second.id().unwrap())
    );
    assert_eq!((entry.meta().used, entry.meta().title.as_str()), (4, "Part 0"));
    let part = second.after.as_ref().unwrap().entry().unwrap();
    assert_eq!((part.meta().used, part.meta().created_at), (0, AT));
    assert_eq!((part.meta().rank, part.meta().by), (Some(7), Some(By::Tool)));
    assert_eq!(part.meta().until, entry.meta().until);
    assert!([&part, &entry].iter().all(|part| part.meta().outside == ["a.example"]));
    assert!(part.meta().written.is_some() && !part.is_edited() && !entry.is_edited());
    assert_eq!(part.meta().tags, ["topic__new"]);
    let last = third.after.as_ref().unwrap().entry().unwrap();
    assert_eq!(last.body(), b"[[id__a1B2c3]]\n");
    assert_eq!(second.id(), Some(EntryId::make("Part 1", AT, |_| false)));
}

#[test]
fn a_split_into_one_is_none() {
    let plan = planned(vec![plain("a1B2c3", "A", "words")], vec![split("a1B2c3", &["words"])]);
    assert!(why(&plan).contains("fewer than two"));
}

#[test]
fn what_would_lose_facts_is_dropped_and_says_which() {
    let notes = || {
        vec![plain("a1B2c3", "A", "Port 8081, src/a.rs, [[id__a1B2c4]]"), plain("a1B2c4", "B", "HTTPServer")]
    };
    for operation in [
        rewrite("a1B2c3", "Port 8081."),
        merge(&["a1B2c4", "a1B2c3"], "Port 8081. HTTPServer"),
        split("a1B2c3", &["Port 8081.", "more"]),
    ] {
        let plan = planned(notes(), vec![operation.clone()]);
        assert!(why(&plan).contains("src/a.rs") && why(&plan).contains("id__a1B2c3"), "{}", why(&plan));
        let plan = planned_with_loss(notes(), vec![operation], true);
        assert!(plan.operations[0].lost.contains(&"src/a.rs".to_owned()), "{plan:#?}");
    }
}

#[test]
fn a_link_to_what_a_note_is_merged_with_may_go_and_so_may_one_to_nowhere() {
    let notes =
        vec![plain("a1B2c3", "A", "See [[id__a1B2c4]] and [[id__zzzzzz]]."), plain("a1B2c4", "B", "[[a]]")];
    let plan = planned(notes, vec![merge(&["a1B2c3", "a1B2c4"], "Both. [[a]]")]);
    assert_eq!(plan.dropped, [], "{plan:#?}");
}

#[test]
fn plain_words_may_be_shortened_but_not_emptied() {
    let words = "Guards must be pure because the machine may call them twice, and nobody wants a second letter sent; \
                 put whatever talks to the world into actors, whose failures the machine can see and report.";
    let plan = planned(vec![plain("a1B2c3", "A", words)], vec![rewrite("a1B2c3", "About guards.")]);
    assert!(why(&plan).contains("different words"), "{}", why(&plan));
}

#[test]
fn an_archived_note_keeps_its_bytes_and_its_name() {
    let plan = planned(vec![plain("a1B2c3", "A", "words")], vec![archive("a1B2c3")]);
    let revision = &plan.operations[0].revisions[0];
    let (before, after) = (revision.before.as_ref().unwrap(), revision.after.as_ref().unwrap());
    assert_eq!((before.bytes(), before.name()), (after.bytes(), after.name()));
    assert_eq!((before.place(), after.place()), (Some(Place::Topics), Some(Place::Archive)));
    assert_eq!(plan.operations[0].reason, "wrong now");
}

#[test]
fn one_note_in_ten_is_archived_and_no_more() {
    let notes = || vec![plain("a1B2c3", "A", "a"), plain("a1B2c4", "B", "b")];
    let both = || vec![archive("a1B2c3"), archive("a1B2c4")];
    let plan = planned(notes(), both());
    assert_eq!(plan.operations.len(), 1);
    assert!(why(&plan).contains("at most 1 of 10"), "{}", why(&plan));
    assert_eq!(planned_with_loss(notes(), both(), true).operations.len(), 2);
}

#[test]
fn a_pinned_note_is_neither_archived_nor_cooled() {
    for operation in [archive("a1B2c3"), tier("a1B2c3", Tier::Warm), tier("a1B2c3", Tier::Cold)] {
        let pinned = note("a1B2c3", "A", "a", |meta| meta.pinned = true);
        assert!(why(&planned(vec![pinned], vec![operation])).contains("is pinned"));
    }
}

#[test]
fn hot_is_promoted_and_nothing_else_is() {
    let plan = planned(vec![plain("a1B2c3", "A", "a")], vec![tier("a1B2c3", Tier::Hot)]);
    let (_, hot) = after(&plan, "a1B2c3");
    assert_eq!((hot.meta().tier, hot.meta().status), (Tier::Hot, Status::Promoted));
    assert_eq!(hot.meta().updated_at, 0, "how much is shown of a note does not make it newer");
    let hot = in_use("a.md", hot);
    let plan = planned(vec![hot], vec![tier("a1B2c3", Tier::Cold)]);
    assert_eq!(after(&plan, "a1B2c3").1.meta().status, Status::Consolidated);
}

#[test]
fn a_tier_comes_with_a_rank_that_stays_until_another_is_given() {
    let ranked = |rank| Operation { rank, ..tier("a1B2c3", Tier::Warm) };
    let old = || note("a1B2c3", "A", "a", |meta| meta.rank = Some(40));
    let plan = planned(vec![old()], vec![ranked(Some(80))]);
    let (_, entry) = after(&plan, "a1B2c3");
    assert_eq!((entry.meta().rank, entry.meta().updated_at), (Some(80), 0));
    assert_eq!((plan.operations[0].from[0].rank, plan.operations[0].into[0].rank), (Some(40), Some(80)));
    assert!(planned(vec![old()], vec![ranked(None)]).operations.is_empty());
    let plan = planned(vec![old(), plain("a1B2c4", "B", "b")], vec![merge(&["a1B2c4", "a1B2c3"], "a b")]);
    assert_eq!(after(&plan, "a1B2c4").1.meta().rank, Some(40), "the greatest of a merge");
}

#[test]
fn of_a_note_of_which_a_line_was_shown_the_tier_alone_can_be_decided() {
    let notes = vec![plain("a1B2c3", "A", "a")];
    let work = DefragWork { listed: marks(&notes), ..work(whole(&notes), BTreeMap::new()) };
    let operations = vec![rewrite("a1B2c3", "b"), archive("a1B2c3"), tier("a1B2c3", Tier::Hot)];
    let plan = planned_for(&work, notes, operations, false);
    assert_eq!((plan.operations.len(), plan.dropped.len()), (1, 2));
    assert!(plan.dropped.iter().all(|one| one.why == "only a line of id__a1B2c3 was shown"), "{plan:?}");
}

#[test]
fn a_note_is_in_one_structural_operation() {
    let notes = || vec![plain("a1B2c3", "A", "a"), plain("a1B2c4", "B", "b"), plain("a1B2c5", "C", "c")];
    for (first, second) in [
        (merge(&["a1B2c3", "a1B2c4"], "ab"), merge(&["a1B2c5", "a1B2c4"], "bc")),
        (merge(&["a1B2c3", "a1B2c4"], "ab"), merge(&["a1B2c3", "a1B2c5"], "abc")),
        (merge(&["a1B2c3", "a1B2c4"], "ab"), tier("a1B2c4", Tier::Hot)),
        (merge(&["a1B2c3", "a1B2c4"], "ab"), rename("a1B2c3", "T")),
        (split("a1B2c3", &["a", "b"]), rewrite("a1B2c3", "b")),
        (rewrite("a1B2c3", "b"), rewrite("a1B2c3", "c")),
        (rewrite("a1B2c3", "b"), archive("a1B2c3")),
        (archive("a1B2c3"), tier("a1B2c3", Tier::Hot)),
        (archive("a1B2c3"), archive("a1B2c3")),
        (rename("a1B2c3", "T"), rename("a1B2c3", "U")),
    ] {
        let plan = planned(notes(), vec![first.clone(), second.clone()]);
        assert_eq!((plan.operations.len(), plan.dropped.len()), (1, 1), "{first:?} {second:?}");
    }
}

#[test]
fn what_goes_together_is_done_one_after_the_other() {
    let notes = vec![plain("a1B2c3", "A", "a"), plain("a1B2c4", "B", "b")];
    let retag = retag("a1B2c3", "area__x");
    let plan = planned(
        notes,
        vec![tier("a1B2c3", Tier::Hot), rewrite("a1B2c3", "aa"), rename("a1B2c3", "New name"), retag],
    );
    assert_eq!((plan.operations.len(), &plan.dropped[..]), (4, &[][..]));
    let (_, entry) = after(&plan, "a1B2c3");
    assert_eq!((entry.body(), entry.meta().title.as_str()), (&b"aa\n"[..], "New name"));
    assert_eq!((entry.meta().tier, &entry.meta().tags[..]), (Tier::Hot, &["area__x".to_owned()][..]));
    let last = plan.operations.last().unwrap().revisions[0].after.as_ref().unwrap();
    assert_eq!(last.name(), "new-name -- area__x id__a1B2c3.md");
    for pair in plan.operations.windows(2) {
        assert_eq!(
            pair[0].revisions[0].after, pair[1].revisions[0].before,
            "each begins where the last ended"
        );
    }
}

#[test]
fn ids_of_nobody_and_notes_that_have_changed_are_named() {
    for (said, part) in
        [("id__zzzzzz", "was shown"), ("../../etc/passwd", "is not a note's id"), ("", "is not")]
    {
        let plan = planned(vec![plain("a1B2c3", "A", "a")], vec![tier(said, Tier::Hot)]);
        assert!(why(&plan).contains(part), "{}", why(&plan));
    }
    let mut changed = vec![plain("a1B2c3", "A", "a")];
    let work = work(whole(&changed), marks(&changed));
    changed[0].entry.set_body(b"b");
    let plan = planned_for(&work, changed, vec![rewrite("a1B2c3", "c")], false);
    assert!(why(&plan).contains("changed since it was shown"));
}

#[test]
fn what_changes_nothing_is_no_operation() {
    let plan = planned(
        vec![plain("a1B2c3", "A", "a\n")],
        vec![tier("a1B2c3", Tier::Warm), rename("a1B2c3", "A"), rewrite("a1B2c3", "a")],
    );
    assert_eq!((plan.operations.len(), plan.dropped.len()), (0, 0), "{plan:#?}");
}

#[test]
fn a_call_about_tiers_changes_no_text_and_one_about_a_group_no_tier() {
    let notes = || vec![plain("a1B2c3", "A", "a")];
    for (part, operation) in [
        (Part::Tiers("global".to_owned()), rewrite("a1B2c3", "b")),
        (Part::Group("global".to_owned(), vec![id("a1B2c3")]), tier("a1B2c3", Tier::Hot)),
    ] {
        let plan = planned_for(&work(part, marks(&notes())), notes(), vec![operation], false);
        assert_eq!((plan.operations.len(), plan.dropped.len()), (0, 1));
    }
}

#[test]
fn a_name_that_is_taken_in_the_archive_is_no_way_out() {
    let notes = || vec![plain("a1B2c3", "Taken", "a"), plain("a1B2c4", "B", "b")];
    assert!(why(&planned(notes(), vec![archive("a1B2c3")])).contains("exists already"));
    assert!(why(&planned(notes(), vec![merge(&["a1B2c4", "a1B2c3"], "ab")])).contains("exists already"));
}

#[test]
fn secrets_and_links_to_nowhere_are_taken_out_of_what_a_model_writes() {
    let plan = planned(vec![plain("a1B2c3", "A", "a")], vec![rewrite("a1B2c3", "a hunter2 [[nowhere]]")]);
    assert_eq!(after(&plan, "a1B2c3").1.body(), b"a [redacted:custom] nowhere\n");
    assert!(plan.warnings[0].contains("[[nowhere]]"));
}

#[test]
fn a_plan_can_be_saved_and_is_the_same_when_it_is_made_again() {
    let make = || {
        let notes = vec![plain("a1B2c3", "A", "a"), plain("a1B2c4", "B", "b")];
        planned(notes, vec![split("a1B2c3", &["a", "b"]), rename("a1B2c4", "C")])
    };
    let plan = make();
    assert_eq!(plan, make());
    let saved = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<DefragPlan>(&saved).unwrap(), plan);
}

fn gone(operation: Operation, items: &[&str]) -> Operation {
    let gone = items.iter().map(|item| (*item).to_owned()).collect();
    Operation { gone, ..operation }
}

#[test]
fn a_merge_loses_what_a_newer_note_contradicts_and_the_old_text_is_kept() {
    let notes = || {
        vec![
            note("a1B2c3", "Port", "The server listens on 4310, see src/a.rs.", |meta| meta.updated_at = 10),
            note("a1B2c4", "New port", "The server listens on 4320.", |meta| meta.updated_at = 20),
        ]
    };
    let body = "The server listens on 4320, see src/a.rs.";
    let plan = planned(notes(), vec![merge(&["a1B2c3", "a1B2c4"], body)]);
    assert!(why(&plan).contains("4310"), "without a word it stays: {}", why(&plan));
    let plan = planned(notes(), vec![gone(merge(&["a1B2c3", "a1B2c4"], body), &["4310", "9999"])]);
    let [made] = &plan.operations[..] else { panic!("{plan:#?}") };
    assert_eq!((&made.gone[..], &made.lost[..]), (&["4310".to_owned()][..], &[][..]));
    assert!(plan.warnings[0].contains("\"9999\" is named as gone"), "{:?}", plan.warnings);
    let [first, copy, second] = &made.revisions[..] else { panic!("{made:#?}") };
    assert_eq!(
        (first.id(), second.id(), copy.before.is_none()),
        (Some(id("a1B2c3")), Some(id("a1B2c4")), true)
    );
    let old = copy.after.as_ref().unwrap();
    assert_eq!(
        (old.place().unwrap(), old.entry().unwrap().body()),
        (Place::Archive, &b"The server listens on 4310, see src/a.rs."[..])
    );
    assert_eq!(old.entry().unwrap().meta().superseded_by, Some(id("a1B2c3")));
    // What the newest alone says is not contradicted by an older one.
    let older = "The server listens on 4310, see src/a.rs.";
    let plan = planned(notes(), vec![gone(merge(&["a1B2c3", "a1B2c4"], older), &["4320"])]);
    assert!(why(&plan).contains("4320"), "{}", why(&plan));
    // Beside it nothing else goes.
    let less = "The server listens on 4320.";
    let plan = planned(notes(), vec![gone(merge(&["a1B2c3", "a1B2c4"], less), &["4310"])]);
    assert!(why(&plan).contains("src/a.rs"), "{}", why(&plan));
}

#[test]
fn a_rewrite_and_a_split_keep_the_old_text_of_what_is_gone() {
    let old = || plain("a1B2c3", "Port", "It listened on 4310. Since May it listens on 4320.");
    let parts = split("a1B2c3", &["Since May it listens on 4320.", "It listens."]);
    for operation in [rewrite("a1B2c3", "Since May it listens on 4320."), parts] {
        assert!(why(&planned(vec![old()], vec![operation.clone()])).contains("4310"));
        let plan = planned(vec![old()], vec![gone(operation, &["4310"])]);
        let archived: Vec<_> = plan.operations[0]
            .revisions
            .iter()
            .filter_map(|revision| {
                revision.after.as_ref().filter(|after| after.place() == Some(Place::Archive))
            })
            .collect();
        assert_eq!(archived.len(), 1, "{plan:#?}");
        assert_eq!(archived[0].entry().unwrap().body(), old().entry.body());
    }
    let plan =
        planned(vec![old()], vec![rewrite("a1B2c3", "It listened on 4310; since May it listens on 4320.")]);
    assert_eq!(plan.operations[0].revisions.len(), 1, "nothing is gone, nothing is copied");
}

#[test]
fn notes_that_hold_until_different_days_are_not_merged() {
    let until = |digits, day| note(digits, "A", "words", |meta| meta.until = day);
    let day = Some(jiff::civil::date(2026, 3, 20));
    for (one, other, is_fine) in [(day, None, false), (None, day, false), (day, day, true)] {
        let plan = planned(
            vec![until("a1B2c3", one), until("a1B2c4", other)],
            vec![merge(&["a1B2c3", "a1B2c4"], "words")],
        );
        assert_eq!(plan.operations.len() == 1, is_fine);
        assert!(is_fine || why(&plan).contains("hold until different days"), "{}", why(&plan));
    }
}

fn global(digits: &str, title: &str, body: &str) -> Note {
    note(digits, title, body, |meta| (meta.scope, meta.sources) = (Scope::Global, Vec::new()))
}

/// What waits, in words.
fn waiting(plan: &DefragPlan) -> Vec<String> {
    assert_eq!((plan.operations.len(), plan.dropped.len()), (0, 0), "{plan:#?}");
    let id = |note: &Option<EntryId>| note.as_ref().map(ToString::to_string).unwrap_or_default();
    plan.proposals
        .iter()
        .map(|one| format!("{} {}: {}", one.op, id(&one.note), one.reasons.join("; ")))
        .collect()
}

#[test]
fn notes_of_a_person_are_joined_in_whole_sentences() {
    let notes = || {
        vec![
            global("a1B2c3", "Never push to main", "Never push to main. Open a request."),
            global("a1B2c4", "Requests", "Requests have one reviewer. Open a request."),
        ]
    };
    let merge_with = |title: &str, summary: &str, body: &str| {
        merge_into(
            &["a1B2c3", "a1B2c4"],
            Text {
                title: title.to_owned(),
                summary: summary.to_owned(),
                tags: Vec::new(),
                body: body.to_owned(),
            },
        )
    };
    let all = "Never push to main.\n\n- Open a request.\n- Requests have one reviewer.";
    let plan = planned(notes(), vec![merge_with("Never push to main", "Requests have one reviewer", all)]);
    assert_eq!((plan.operations.len(), plan.proposals.len()), (1, 0), "{plan:#?}");
    let (_, entry) = after(&plan, "a1B2c3");
    assert!(entry.kept().is_some());
    for (title, body, reason) in [
        ("Push to main", all, "it adds \"Push to main\""),
        ("Requests", "Never push to main. Requests have one reviewer.", "it takes away \"Open a request\""),
        ("Requests", "Push to main. Open a request. Requests have one reviewer. Never.", "it adds \"Never\""),
        ("Requests", &format!("{all}\n\nReviewers are kind."), "it adds \"Reviewers are kind\""),
    ] {
        let plan = planned(notes(), vec![merge_with(title, "", body)]);
        let all = waiting(&plan);
        assert!(all[0].starts_with("update id__a1B2c3: ") && all[0].contains(reason), "{all:?}");
        assert_eq!(all[1], "retire id__a1B2c4: what it says would be part of id__a1B2c3");
    }
}

#[test]
fn what_would_change_a_note_of_a_person_waits() {
    let old = || global("a1B2c3", "Deploys", "Never deploy on Fridays. The server listens on 4310.");
    let retag = |tag: &str| retag("a1B2c3", tag);
    let reworded = rewrite("a1B2c3", "Deploy on Fridays never. The server listens on 4310.");
    let shorter = gone(rewrite("a1B2c3", "Never deploy on Fridays."), &["4310"]);
    for operation in [
        reworded,
        shorter,
        rename("a1B2c3", "Deploy on Fridays"),
        retag("topic__deploy-on-fridays"),
        retag("topic__evil"),
        split("a1B2c3", &["Never deploy on Fridays.", "The server listens on 4310."]),
    ] {
        let plan = planned(vec![old()], vec![operation.clone(), tier("a1B2c3", Tier::Hot)]);
        assert_eq!((plan.operations.len(), plan.operations[0].op), (1, Verb::Tier));
        assert!(!plan.proposals.is_empty() && plan.dropped.is_empty(), "{operation:?} {plan:#?}");
        assert_eq!(plan.proposals[0].note, Some(id("a1B2c3")));
        assert_eq!(plan.proposals[0].base, Some(old().entry.base()));
    }
    let all = waiting(&planned(vec![old()], vec![archive("a1B2c3")]));
    assert_eq!(all, ["retire id__a1B2c3: it archives the person's own note: wrong now"]);
    // A tag of one of its words, and another layout, change nothing that it says.
    let plan = planned(
        vec![old()],
        vec![
            retag("topic__fridays"),
            rewrite("a1B2c3", "- The server listens on 4310.\n- Never deploy on Fridays."),
        ],
    );
    assert_eq!((plan.operations.len(), plan.proposals.len()), (2, 0), "{plan:#?}");
}

#[test]
fn a_note_of_a_session_goes_in_favour_of_a_persons() {
    let own = || {
        note("a1B2c4", "Port", "The server listens on 4310. Start it by hand.", |meta| {
            meta.sources[0].harness = Some("manual".to_owned());
            meta.by = Some(By::Person);
        })
    };
    let other = || {
        note("a1B2c3", "Listens", "Listens on 4310.", |meta| {
            meta.by = Some(By::Tool);
            meta.tags = vec!["topic__push-to-main".to_owned()];
            meta.sources[0].thread_id = Some("T-9".to_owned());
        })
    };
    let favour = merge_into(
        &["a1B2c3", "a1B2c4"],
        Text {
            title: "Port".to_owned(),
            summary: String::new(),
            tags: Vec::new(),
            body: "The server listens on 4310. Start it by hand.".to_owned(),
        },
    );
    let plan = planned(vec![own(), other()], vec![favour]);
    assert_eq!((plan.operations.len(), plan.proposals.len()), (1, 0), "{plan:#?}");
    let (place, kept) = after(&plan, "a1B2c4");
    assert_eq!((place, kept.kept().is_some(), kept.meta().by), (Place::Topics, true, Some(By::Person)));
    assert_eq!((&kept.meta().aliases[..], &kept.meta().tags[..]), (&[id("a1B2c3")][..], &[][..]));
    assert_eq!(kept.meta().sources.len(), 1, "the other is in nothing that it says");
    assert_eq!(after(&plan, "a1B2c3").0, Place::Archive);
    // With a word of the session's, it waits.
    let plan = planned(
        vec![own(), other()],
        vec![merge(&["a1B2c4", "a1B2c3"], "The server listens on 4310. Start it by hand. Listens on 4310.")],
    );
    assert_eq!(waiting(&plan).len(), 2);
}

#[test]
fn an_edit_by_hand_stays_known_and_who_said_it_is_the_weakest() {
    let mut edited = note("a1B2c3", "Port", "One.", |_| {}).entry;
    edited.seal().unwrap();
    edited.set_body(b"One. Edited.");
    let plan = planned(vec![in_use("a.md", edited)], vec![rewrite("a1B2c3", "- One.\n- Edited.")]);
    let (_, entry) = after(&plan, "a1B2c3");
    assert!(entry.is_edited() && entry.kept().is_some());

    let by = |digits, by| note(digits, "A", "Words here.", |meta| meta.by = by);
    for (one, other, body, expected) in [
        (Some(By::Person), Some(By::Person), "Words here.", Some(By::Person)),
        (Some(By::Person), Some(By::Person), "Other words here.", Some(By::Agent)),
        (Some(By::Person), Some(By::Agent), "Words here.", Some(By::Agent)),
        (Some(By::Tool), Some(By::Agent), "Words here.", Some(By::Tool)),
        (None, Some(By::Agent), "Words here.", None),
        (None, Some(By::Tool), "Words here.", Some(By::Tool)),
    ] {
        let operation = merge_into(
            &["a1B2c3", "a1B2c4"],
            Text { title: "A".to_owned(), summary: String::new(), tags: Vec::new(), body: body.to_owned() },
        );
        let (_, entry) =
            after(&planned(vec![by("a1B2c3", one), by("a1B2c4", other)], vec![operation]), "a1B2c3");
        assert_eq!(entry.meta().by, expected, "{one:?} {other:?} {body}");
        assert!(!entry.is_edited() && entry.meta().written.is_some());
    }
}

#[test]
fn an_address_or_a_command_that_is_in_none_of_the_notes_waits() {
    let notes = || {
        vec![
            plain(
                "a1B2c3",
                "Deploy",
                "Run `make deploy` against https://ci.example.org/x. Never run `make wipe all`.",
            ),
            plain("a1B2c4", "Cache", "Set CACHE=512; `curl ci.example.org/x` shows it."),
        ]
    };
    let all = "Run `make deploy` against https://ci.example.org/x. Never run `make wipe all`. Set CACHE=512; `curl ci.example.org/x` shows it.";
    let ids = &["a1B2c3", "a1B2c4"];
    assert_eq!(planned(notes(), vec![merge(ids, all)]).operations.len(), 1);
    for more in [
        "See https://evil.example/x.",
        "See evil.example/x.",
        "Use --force.",
        "Set DEBUG=1.",
        "Run `npm install evil`.",
        "Run `make deploy all`.",
        "Run `deploy wipe`.",
        "```sh\nwipe make\n```",
        "See https://сi.example.org/x.",
    ] {
        let plan = planned(notes(), vec![merge(ids, &format!("{all} {more}").replace(" ```", "\n\n```"))]);
        assert!(plan.operations.is_empty() && plan.proposals.len() == 2, "{more}: {plan:#?}");
    }
    for operation in [rename("a1B2c3", "Run `npm install evil`"), rename("a1B2c3", "See evil.example/x")] {
        assert_eq!(planned(notes(), vec![operation]).proposals.len(), 1);
    }
}
