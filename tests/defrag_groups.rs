//! `memory-defrag` with more notes than a call has room for, and with fewer calls than it would make.

use crate::support::defrag::{NOTHING, SESSION, id};
use crate::support::store::Store;
use serde_json::{Value, json};

/// Twelve notes, of which a call has room for a few.
fn twelve() -> Store {
    let store = Store::new();
    for n in 0..12 {
        store.noted(&id(n), &format!("Idea {n}"), "", &format!("MARK{n:02} {}", "word ".repeat(60)));
    }
    store
}

fn room(more: Value) -> Value {
    let mut llm = json!({"maxPromptBytes": 14_000});
    llm.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    llm
}

const HOT_LAST: &str =
    "if listed: do(tier(listed[0], 'hot'), archive(listed[1]))\nelse: do(tier(list(notes)[0], 'hot'))";

#[test]
fn every_note_is_shown_once_and_a_last_call_decides_what_is_hot() {
    let store = twelve();
    store.model_with(HOT_LAST, room(json!({})));
    let (result, err) = store.tidied_json(&[]);
    let prompts = store.sandbox.prompts();
    assert!(prompts.len() > 3, "{}", prompts.len());
    assert!(prompts.iter().all(|prompt| prompt.len() <= 14_000));
    let (last, groups) = prompts.split_last().unwrap();
    let all = groups.concat();
    for n in 0..12 {
        assert_eq!(all.matches(&format!("MARK{n:02}")).count(), 1, "{n}");
        assert!(last.contains(&format!("id__{} (scope: repo", id(n))), "{last}");
    }
    assert!(!last.contains("<<< note id__") && last.contains("Decide how much of each note"), "{last}");
    assert!(groups.iter().all(|prompt| !prompt.contains("\"op\": \"tier\"")));
    assert_eq!((&result["reTiered"], &result["archived"]), (&json!(1), &json!(0)), "{err}");
    let dropped = result["dropped"].as_array().unwrap();
    assert_eq!(dropped.len(), groups.len() + 1, "{result}");
    assert!(
        err.contains("tiers are decided in the last call") && err.contains("this call is about tiers alone"),
        "{err}"
    );
    assert_eq!((store.tidied(&[]), store.sandbox.prompts().len()), (NOTHING.to_owned(), prompts.len()));
}

#[test]
fn an_error_between_two_calls_costs_no_further_call() {
    // Two that are merged make room in their group: shared out anew, the others would come together otherwise.
    let script = "do(*[merge(*ids) for ids in [list(notes)[:2]] if len(ids) > 1 and not listed])";
    let undisturbed = twelve();
    undisturbed.model_with(script, room(json!({})));
    undisturbed.defrag(&["--allow-loss"]);
    let calls = undisturbed.sandbox.prompts().len();
    assert!(calls > 3, "{calls}");
    for fails_at in 1..calls {
        let store = twelve();
        // Something is in the place of the file that the next reply goes into.
        let batches = store.root().join(".agent-memory/defrag").display().to_string();
        let spoil = format!(
            "if number + 1 == {fails_at}: os.mkdir(os.path.join({batches:?}, batch, 'reply-{fails_at}.txt.unfinished'))\n"
        );
        store.model_with(&format!("{spoil}{script}"), room(json!({})));
        let (code, _, err) = store.defrag(&["--allow-loss"]);
        assert_eq!((code, store.sandbox.prompts().len()), (Some(1), fails_at), "{err}");
        let batch = std::fs::read_dir(&batches).unwrap().next().unwrap().unwrap().path();
        std::fs::remove_dir(batch.join(format!("reply-{fails_at}.txt.unfinished"))).unwrap();
        let (code, _, err) = store.defrag(&["--allow-loss"]);
        assert_eq!((code, store.sandbox.prompts().len()), (Some(0), calls), "{fails_at}: {err}");
        assert!(err.contains("continuing"), "{err}");
        assert_eq!((store.tidied(&[]), store.sandbox.prompts().len()), (NOTHING.to_owned(), calls));
    }
}

#[test]
fn notes_of_one_repository_are_shown_with_no_others() {
    let store = Store::new();
    let of = |repo: &str| format!("scope: repo\nsources:\n  - {{harness: amp, repo: {repo}}}\n");
    for (id, title, more) in [
        ("aaaaaa", "Everywhere", String::new()),
        ("bbbbbb", "Here", of("h/o/here")),
        ("cccccc", "Here too", of("h/o/here")),
        ("dddddd", "There", of("h/o/there")),
    ] {
        store.noted(id, title, &more, &format!("What is said {}.", title.to_lowercase()));
    }
    store.model("do(*[tier(id, 'hot') for id in notes])");
    let (result, err) = store.tidied_json(&[]);
    assert_eq!((&result["reTiered"], err.as_str()), (&json!(4), ""), "{result}");
    let prompts = store.sandbox.prompts();
    let mut shown: Vec<Vec<&str>> = prompts
        .iter()
        .map(|prompt| {
            let ids = ["aaaaaa", "bbbbbb", "cccccc", "dddddd"];
            ids.into_iter().filter(|id| prompt.contains(&format!("<<< note id__{id} "))).collect()
        })
        .collect();
    shown.sort();
    assert_eq!(shown, [vec!["aaaaaa"], vec!["bbbbbb", "cccccc"], vec!["dddddd"]]);
    let here = prompts.iter().find(|prompt| prompt.contains("id__bbbbbb")).unwrap();
    assert!(
        here.contains("There are 2 notes of scope repo h/o/here, 0 of them hot; 2 are shown whole."),
        "{here}"
    );
    assert!(!here.contains("Everywhere") && !here.contains("h/o/there"), "{here}");
    // Only whose notes have changed is asked about.
    store.noted("eeeeee", "There again", &of("h/o/there"), "What is new.");
    store.tidied(&[]);
    let last = store.sandbox.last_prompt();
    assert!(last.contains("id__dddddd") && !last.contains("h/o/here"), "{last}");
    assert_eq!(store.sandbox.prompts().len(), 4);
}

#[test]
fn what_a_cap_leaves_over_goes_first_in_the_next_run() {
    let store = twelve();
    store.model_with("do()", room(json!({"maxCallsPerRun": 1})));
    let mut runs = 0;
    loop {
        let (code, out, err) = store.defrag(&[]);
        assert_eq!((code, out.as_str()), (Some(0), NOTHING), "{err}");
        runs += 1;
        assert_eq!(store.sandbox.prompts().len(), runs, "one call a run");
        if err.is_empty() {
            break;
        }
        assert!(err.contains("the next run goes on"), "{err}");
        assert!(runs < 12, "it never ends");
    }
    assert!((3..6).contains(&runs), "{runs}");
    // The first shows what no later one has to show again, except as a neighbour.
    let prompts = store.sandbox.prompts();
    for n in 0..12 {
        assert!(prompts.iter().any(|prompt| prompt.contains(&format!("MARK{n:02}"))), "{n}");
    }
    let tiers = |prompt: &String| prompt.contains("\"op\": \"tier\"");
    assert_eq!(prompts.iter().position(tiers), Some(runs - 1), "the last decides what is hot");
    assert_eq!((store.tidied(&[]), store.sandbox.prompts().len()), (NOTHING.to_owned(), runs));
}

#[test]
fn a_note_larger_than_a_call_is_named_and_the_others_are_asked_about() {
    let store = twelve();
    store.noted("aaaaaa", "Giant", "", &"giant ".repeat(5000));
    store.model_with("do()", room(json!({})));
    let (code, out, err) = store.defrag(&[]);
    assert_eq!((code, out.as_str()), (Some(0), NOTHING));
    assert!(err.contains("id__aaaaaa \"Giant\" is larger than a call has room for"), "{err}");
    assert!(store.sandbox.prompts().iter().all(|prompt| !prompt.contains("giant giant")));
    let calls = store.sandbox.prompts().len();
    assert_eq!((store.tidied(&[]), store.sandbox.prompts().len()), (NOTHING.to_owned(), calls));
}

#[test]
fn a_prompt_without_room_is_a_fault_of_the_configuration() {
    let store = twelve();
    store.model_with("do()", json!({"maxPromptBytes": 8000}));
    let (code, out, err) = store.defrag(&[]);
    assert_eq!((code, out.as_str(), store.sandbox.prompts().len()), (Some(2), "", 0), "{err}");
    assert!(err.contains("maxPromptBytes"), "{err}");
}

#[test]
fn both_programs_share_the_calls_of_a_day() {
    let store = twelve();
    store.model_with("do()", json!({"maxCallsPerDay": 1}));
    store.tidied(&[]);
    store.sandbox.heard("s1", "Hello?");
    let (code, _, err) = crate::support::said(&mut store.sandbox.consolidate(&[]));
    assert_eq!((code, store.sandbox.prompts().len()), (Some(0), 1), "{err}");
    store.session("aaaaaa", "New");
    let (code, out, err) = store.defrag(&[]);
    assert_eq!((code, out.as_str(), store.sandbox.prompts().len()), (Some(0), NOTHING, 1), "{err}");
    assert!(err.contains("the next run goes on"), "{err}");
    let programs: Vec<Value> = store.sandbox.calls().iter().map(|call| call["program"].clone()).collect();
    assert!(programs.contains(&json!("memory-defrag")), "{programs:?}");
}

#[test]
fn a_note_that_grows_on_its_way_into_a_prompt_makes_no_call_a_night() {
    // Each byte that is not UTF-8 becomes three, each short secret a longer mark.
    let latin =
        [crate::support::store::note("aaaaaa", "Latin", SESSION).as_bytes(), &[0xe4; 3000][..]].concat();
    let secrets = "password=hunter2xyz\n".repeat(200);
    for text in [
        latin,
        crate::support::store::note("aaaaaa", "Keys", SESSION)
            .into_bytes()
            .into_iter()
            .chain(secrets.bytes())
            .collect(),
    ] {
        let store = Store::new();
        store.put("topics/odd -- id__aaaaaa.md", &text);
        store.session("bbbbbb", "Small");
        store.model_with("do()", json!({"maxPromptBytes": 9216 + 5500}));
        let (code, out, err) = store.defrag(&[]);
        assert_eq!((code, out.as_str()), (Some(0), NOTHING), "{err}");
        let is_shown = store.sandbox.last_prompt().contains("<<< note id__aaaaaa");
        assert!(is_shown || err.contains("id__aaaaaa"), "neither shown nor named: {err}");
        assert_eq!((store.tidied(&[]), store.sandbox.prompts().len()), (NOTHING.to_owned(), 1));
    }
}
