//! Settings of many forms: hooks in, hooks out, and every byte is as it was.

use super::harness::{Programs, hooks as hooks_of};
use super::settings::{Before, SettingsHook, with_hooks, without_hooks};
use crate::base::error::Result;
use crate::harness::spec::{HookSettings, Install};
use crate::harness::{HARNESSES, known};

fn hooks(harness: &str) -> (&'static HookSettings, Vec<SettingsHook>) {
    let spec = known(harness).unwrap();
    let Install::Settings(form) = &spec.install else { panic!("{harness} has no settings file") };
    (form, hooks_of(spec, form, &Programs::at("/opt/axe b/bin")))
}

/// The harnesses with a settings file.
fn with_settings() -> impl Iterator<Item = &'static str> {
    HARNESSES.iter().filter(|spec| matches!(spec.install, Install::Settings(_))).map(|spec| spec.name)
}

/// The text with our hooks, and what is remembered of it.
fn put_in(text: Option<&str>, form: &HookSettings, hooks: &[SettingsHook]) -> Result<(String, Before)> {
    let with = with_hooks(text, form, hooks)?;
    let before = Before::of(text, &with, form, None, None)?;
    Ok((with, before))
}

/// Forms that people's settings take.
const TEXTS: &[&str] = &[
    "",
    "\n",
    "  \r\n\t\r\n",
    "// only a comment\n",
    "/* a */ // b",
    "{}",
    "{}\n",
    "{ }",
    "{\n}",
    "{\r\n}\r\n",
    "{ // none yet\n}\n",
    "{ /* none yet */ }",
    "{\n  // none yet  \n\n}",
    r#"{"model":"x"}"#,
    r#"{"model": "x"}"#,
    r#"{"model": "x", }"#,
    r#"{"hooks":{}}"#,
    "{\n  \"model\": \"x\"\n}",
    "{\n  \"model\": \"x\"\n}\n",
    "{\n  \"model\": \"x\",\n}\n",
    "{\n  \"model\": \"x\" // big one \n}\n",
    "{\n  \"model\": \"x\", // big one\n  // the end\n}\n",
    "{\n  \"model\": \"x\" /* one */ /* two\n more */\n  /* three */\n}\n",
    "{\n\t\"model\": \"x\",\n\t\"hooks\": {}\n}\n",
    "{\r\n    \"hooks\": {\r\n    },\r\n    \"model\": \"x\"\r\n}",
    "{\r    \"model\": \"x\" // old\r}",
    "{\n  \"hooks\": {\n    \"Stop\": [],\n    \"stop\": [ ],\n    \"AfterAgent\": [\n    ],\n    \"agentStop\": [/* none */]\n  }\n}\n",
    "{\n  \"hooks\": {\n    // mine\n    \"Stop\": [\n      {\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": \"say done\"\n          }\n        ]\n      } // last\n    ]\n  },\n  \"model\": \"x\"\n}\n",
    "{\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]},\n    ],\n  },\n}\n",
    r#"{"hooks":{"Stop":[{"matcher":"","hooks":[{"type":"command","command":"a \"b\" // c"}]}],"x":[1,2]},"n":1.50e3}"#,
    "{\n  \"version\": 1,\n  \"hooks\": {\n    \"stop\": [{\"command\": \"say done\"}],\n    \"sessionEnd\": [{ \"bash\": \"say done\" }]\n  }\n}",
    "{\"hooks\": {\"SessionEnd\": [\n  {\"hooks\": []}\n]}}",
    "{\n  \"hooks\": {\"Stop\": null_is_not},\n}",
    "{\"ü\": \"…\", \"hooks\": {\"Notification\": [{\"hooks\": []}]}}\n\n\n",
];

#[test]
fn out_is_the_inverse_of_in() {
    let mut rounds = 0;
    for harness in with_settings() {
        let (form, hooks) = hooks(harness);
        for text in TEXTS {
            let Ok((with, before)) = put_in(Some(text), form, &hooks) else {
                assert!(text.contains("null_is_not"), "{harness}: {text:?}");
                continue;
            };
            assert_eq!(with_hooks(Some(&with), form, &hooks).unwrap(), with, "{harness}");
            let commands = super::settings::commands(&with, form).unwrap();
            assert_eq!(commands.len(), hooks.len(), "{harness}: {with}");
            let without = without_hooks(&with, form, Some(&before)).unwrap();
            assert_eq!(without.as_deref(), Some(*text), "{harness}: with hooks:\n{with}");
            rounds += 1;
        }
        // No file at all.
        let (with, before) = put_in(None, form, &hooks).unwrap();
        assert_eq!(without_hooks(&with, form, Some(&before)).unwrap(), None, "{harness}");
    }
    assert_eq!(rounds, with_settings().count() * (TEXTS.len() - 1));
}

/// Somebody has changed the file meanwhile, so that only what is ours goes.
#[test]
fn without_the_old_text_all_but_white_space_is_as_before() {
    let bare = |text: &str| text.split_whitespace().collect::<String>().replace(",}", "}").replace(",]", "]");
    for harness in with_settings() {
        let (form, hooks) = hooks(harness);
        for text in TEXTS.iter().filter(|text| text.contains(':') && !text.contains("null_is_not")) {
            let (with, before) = put_in(Some(text), form, &hooks).unwrap();
            let without = without_hooks(&format!("{with}\n"), form, Some(&before)).unwrap().unwrap();
            assert_eq!(bare(&without), bare(text), "{harness}: with hooks:\n{with}");
        }
        let (with, before) = put_in(None, form, &hooks).unwrap();
        assert_eq!(without_hooks(&format!("{with}\n"), form, Some(&before)).unwrap(), None, "{harness}");
    }
}

/// Every byte that was there stays, in its order.
#[test]
fn what_is_put_in_is_all_that_changes() {
    for harness in with_settings() {
        let (form, hooks) = hooks(harness);
        for text in TEXTS.iter().filter(|text| !text.contains("null_is_not")) {
            let with = with_hooks(Some(text), form, &hooks).unwrap();
            let mut rest = with.chars();
            // White space in an empty pair of brackets may be laid out anew.
            for c in text.chars().filter(|c| !c.is_whitespace()) {
                assert!(rest.any(|other| other == c), "{harness}: {text:?} became {with:?}");
            }
        }
    }
}

#[test]
fn what_came_later_stays() {
    let (form, hooks) = hooks("claude-code");
    let (with, before) = put_in(Some("{\n  \"a\": 1\n}\n"), form, &hooks).unwrap();
    // The person adds a setting, and a hook beside ours.
    let edited = with.replacen("  \"a\": 1,", "  \"a\": 2, // two\n  \"b\": [],", 1).replacen(
        "    \"Stop\": [\n",
        "    \"Stop\": [\n      {\"hooks\": []},\n",
        1,
    );
    assert_ne!(edited, with);
    let expected = "{\n  \"a\": 2, // two\n  \"b\": [],\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": []}\n    ]\n  }\n}\n";
    let left = without_hooks(&edited, form, Some(&before)).unwrap().unwrap();
    assert_eq!(left, expected);
    // Our hooks are put in anew, by another path, and the person has changed nothing since.
    let moved = hooks_of(known("claude-code").unwrap(), form, &Programs::at("/elsewhere"));
    let again = with_hooks(Some(&edited), form, &moved).unwrap();
    let before = Before::of(Some(&edited), &again, form, Some(&before), None).unwrap();
    assert_eq!(without_hooks(&again, form, Some(&before)).unwrap().unwrap(), expected);
}

#[test]
fn what_was_made_in_another_file_of_that_name_does_not_count() {
    let (form, hooks) = hooks("cursor");
    let (_, before) = put_in(None, form, &hooks).unwrap();
    // The person removes the file, and writes one of their own.
    let own = "{ \"version\": 1, \"hooks\": {} }";
    let with = with_hooks(Some(own), form, &hooks).unwrap();
    let before = Before::of(Some(own), &with, form, Some(&before), None).unwrap();
    assert_eq!(without_hooks(&with, form, Some(&before)).unwrap().as_deref(), Some(own));
}

#[test]
fn a_file_that_the_program_wrote_anew_loses_only_our_hooks() {
    let (form, hooks) = hooks("claude-code");
    let (with, before) = put_in(Some(r#"{"hooks":{"Stop":[]},"a":[1]}"#), form, &hooks).unwrap();
    let value: serde_json::Value = serde_json::from_str(&with).unwrap();
    let anew = serde_json::to_string_pretty(&value).unwrap();
    assert_eq!(with_hooks(Some(&anew), form, &hooks).unwrap(), anew);
    let left = without_hooks(&anew, form, Some(&before)).unwrap().unwrap();
    let left: serde_json::Value = serde_json::from_str(&left).unwrap();
    assert_eq!(left, serde_json::json!({"hooks": {"Stop": []}, "a": [1]}));
    // On a machine that knows nothing about it, what our hooks leave empty goes.
    let left = without_hooks(&anew, form, None).unwrap().unwrap();
    let left: serde_json::Value = serde_json::from_str(&left).unwrap();
    assert_eq!(left, serde_json::json!({"a": [1]}));
}

#[test]
fn an_older_hook_of_ours_is_replaced_in_its_place() {
    let (form, hooks) = hooks("codex");
    let old = r#"{"hooks": {"Interrupt": [
  {"hooks": [{"type": "command", "command": "first"}]},
  {"hooks": [{"type": "command", "command": "/nix/store/x-axe-0.1/bin/memory-capture --harness codex", "timeout": 10}]},
  {"hooks": [{"type": "command", "command": "last"}, {"type": "command", "command": "memory capture --harness codex"}]}
]}}"#;
    let new = with_hooks(Some(old), form, &hooks).unwrap();
    let value: serde_json::Value = serde_json::from_str(&new).unwrap();
    let commands: Vec<_> = value["hooks"]["Interrupt"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| {
            (group["hooks"].as_array().unwrap().len(), group["hooks"][0]["command"].as_str().unwrap())
        })
        .collect();
    let ours = "'/opt/axe b/bin/memory-capture' --harness codex";
    assert_eq!(commands, [(1, "first"), (1, ours), (1, "last")]);
    assert_eq!(value["hooks"]["Interrupt"][1]["hooks"][0]["timeout"], 3);
}

#[test]
fn a_persons_own_command_with_our_program_is_kept_and_not_doubled() {
    let (form, hooks) = hooks("claude-code");
    let own = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "memory-capture --harness claude-code; say done"}]}]}}"#;
    let with = with_hooks(Some(own), form, &hooks).unwrap();
    let value: serde_json::Value = serde_json::from_str(&with).unwrap();
    assert_eq!(value["hooks"]["Stop"].as_array().unwrap().len(), 1);
    assert_eq!(value["hooks"].as_object().unwrap().len(), 6);
}

#[test]
fn settings_of_another_shape_are_refused_with_their_place() {
    let (form, hooks) = hooks("gemini");
    for (text, message) in [
        ("[1]", "line 1, column 1: the file is not an object"),
        ("{\n  \"hooks\": []\n}", "line 2, column 12: \"hooks\" is not an object"),
        ("{\"hooks\": {\"AfterAgent\": {}}}", "line 1, column 26: \"hooks.AfterAgent\" is not a list"),
        ("{\n  \"ü\": 1\n  \"b\": 2}", "line 2, column 9: expected comma"),
        ("{\"a\": 1", "line 1, column 1: unterminated object"),
        ("{'a': 1}", "line 1, column 2: single-quoted strings are not allowed"),
        ("{a: 1}", "line 1, column 2: expected string for object property"),
    ] {
        let error = with_hooks(Some(text), form, &hooks).unwrap_err();
        assert_eq!(error.message(), message, "{text}");
    }
}

/// Words from which settings are made at random.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"hooks\"",
    "\"Stop\"",
    "\"stop\"",
    "\"version\"",
    "1",
    "null",
    " ",
    "\n",
    "\r\n",
    "\t",
    "// c\n",
    "/* c */",
    "{\"command\": \"memory-capture\"}",
    "\"a\"",
];

#[test]
fn settings_made_at_random_survive() {
    let mut state: u64 = 17;
    let mut next = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let forms: Vec<_> = with_settings().map(hooks).collect();
    let mut tried = 0;
    for _ in 0..3_000 {
        // A frame that parses more often than not.
        let mut gap =
            || -> String { (0..next(3)).map(|_| WORDS[[12, 13, 14, 15, 16, 17][next(6)]]).collect() };
        let (a, b, c, d, e, f) = (gap(), gap(), gap(), gap(), gap(), gap());
        let comma = ["", ","][next(2)];
        let inner = match next(6) {
            0 => String::new(),
            1 => format!("{a}\"hooks\"{b}:{c}{{{d}}}{e}{comma}"),
            2 => format!("{a}\"hooks\":{{{b}\"Stop\":{c}[{d}]{e}{comma}{f}}}"),
            3 => format!("{a}\"x\"{b}:{c}1{d}{comma}{e}"),
            4 => format!("{a}\"hooks\":{{{b}\"stop\":[{c}{{}}{d}{comma}{e}]}}{f}"),
            _ => (0..next(8)).map(|_| WORDS[next(WORDS.len())]).collect(),
        };
        let text = format!("{f}{{{inner}}}{a}");
        let (form, hooks) = &forms[next(forms.len())];
        let ours = super::settings::commands(&text, form).is_ok_and(|found| !found.is_empty());
        let Ok((with, before)) = put_in(Some(&text), form, hooks) else { continue };
        assert_eq!(with_hooks(Some(&with), form, hooks).unwrap(), with);
        let without = without_hooks(&with, form, Some(&before)).unwrap();
        if !ours {
            assert_eq!(without.as_deref(), Some(&*text), "with hooks:\n{with}");
            tried += 1;
        }
    }
    assert!(tried > 1_500, "{tried}");
}
