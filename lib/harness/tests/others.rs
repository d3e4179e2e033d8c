//! Copilot CLI, Qwen Code and Pi, as recorded; and what a person attached or an other program wrote.

use crate::harness::document::PLAIN;
use crate::harness::tests::{claude, lines, read_bytes, said, told};
use crate::harness::turn::Role;
use serde_json::{Value, json};

const COPILOT: &str = include_str!("../../../tests/recorded/copilot/events.jsonl");
const COPILOT_COMPACTED: &str = include_str!("../../../tests/recorded/copilot/recalled.jsonl");
const QWEN: &str = include_str!("../../../tests/recorded/qwen-code/session.jsonl");
const QWEN_HELPED: &str = include_str!("../../../tests/recorded/qwen-code/sub-agent-and-compression.jsonl");
const QWEN_HELPER: &str = include_str!("../../../tests/recorded/qwen-code/sub-agent.jsonl");
const PI: &str = include_str!("../../../tests/recorded/pi/session.jsonl");
const PI_FORK: &str = include_str!("../../../tests/recorded/pi/fork.jsonl");
const PI_ATTACHED: &str = include_str!("../../../tests/recorded/pi/attached.jsonl");

#[test]
fn copilot_gives_what_was_typed_and_said_and_neither_hooks_nor_sub_agents() {
    let (turns, report) = told("copilot", COPILOT);
    assert_eq!(
        turns,
        [
            said(Role::User, "Which package manager does the build use?"),
            said(Role::Reasoning, "The file may say it."),
            said(Role::Assistant, "I will look at the notes."),
            said(
                Role::Tool,
                "[bash] command: cat notes.txt\ndescription: Read the notes\n=>\nThe build uses pnpm.\n\
                 <shellId: 0 completed with exit code 0>"
            ),
            said(Role::Tool, "[view] path: /home/u/project/missing.txt\n=> failed\nPath does not exist"),
            said(Role::Assistant, "It uses pnpm."),
            said(Role::User, "Always run the tests with vitest. See @notes.txt"),
            said(Role::Assistant, "Noted: tests run with vitest."),
            said(Role::User, "Which tests are there?"),
            said(Role::Assistant, "I will ask a helper."),
            said(
                Role::Tool,
                "[task] agent_type: explore\nname: look\ndescription: Look for tests\nprompt: List the test files.\n\
                 mode: sync\n=>\nThere are no test files."
            ),
            said(Role::Assistant, "The helper found none."),
        ]
    );
    assert!(report.session_id.is_some() && report.unknown.is_empty(), "{report:?}");
    assert_eq!((report.cwd.as_deref(), report.is_sub_agent), (Some("/home/u/project"), false));
    assert!(!format!("{turns:?}").contains("SENTINEL"));
}

#[test]
fn copilots_records_of_its_own_calls_of_the_model_are_known() {
    let (turns, report) = told("copilot", COPILOT_COMPACTED);
    assert!(report.unknown.is_empty(), "{report:?}");
    assert_eq!(turns.len(), 8, "{turns:?}");
}

#[test]
fn qwen_gives_what_was_typed_without_the_words_of_hooks_and_files() {
    let (turns, report) = told("qwen-code", QWEN);
    let output = "Command: cat notes.txt\nDirectory: (root)\nOutput: The build uses pnpm.\nError: (none)\nExit Code: 0\n\
                  Signal: (none)\nProcess Group PGID: (none)";
    assert_eq!(
        turns,
        [
            said(Role::User, "Which package manager does the build use?"),
            said(Role::Reasoning, "The file may say it."),
            said(Role::Assistant, "I will look at the notes."),
            said(
                Role::Tool,
                &format!("[run_shell_command] command: cat notes.txt\nis_background: false\n=>\n{output}")
            ),
            said(
                Role::Tool,
                "[read_file] file_path: /home/u/project/missing.txt\nabsolute_path: /home/u/project/missing.txt\n\
                 => failed\nFile not found: /home/u/project/missing.txt"
            ),
            said(Role::Assistant, "It uses pnpm."),
            said(Role::Tool, "[attached to the prompt]\n=>\nContent from notes.txt:\n\nThe build uses pnpm."),
            said(Role::User, "Always run the tests with vitest. See @notes.txt"),
            said(Role::Assistant, "Noted: tests run with vitest."),
        ]
    );
    assert!(report.session_id.is_some() && report.unknown.is_empty(), "{report:?}");
    assert!(!format!("{turns:?}").contains("SENTINEL"));
}

#[test]
fn qwen_keeps_what_was_compressed_and_leaves_sub_agents_and_their_notices_out() {
    let (turns, report) = told("qwen-code", QWEN_HELPED);
    let users: Vec<_> = turns.iter().filter(|(role, _)| *role == Role::User).collect();
    assert_eq!(users, [&said(Role::User, "Which tests are there?")]);
    assert!(turns.contains(&said(Role::Assistant, "The helper found none.")));
    assert!(!format!("{turns:?}").contains("state_snapshot") && !report.is_sub_agent);
    assert!(told("qwen-code", QWEN_HELPER).1.is_sub_agent);
}

/// Versions before 0.20 neither say who wrote a record nor tag what a hook adds.
#[test]
fn an_older_qwen_is_read_without_the_words_of_its_hook() {
    let record = |uuid: &str, parts: Value, payload: Value| {
        json!({"uuid": uuid, "sessionId": "s", "type": "user", "cwd": "/p", "systemPayload": payload,
            "message": {"role": "user", "parts": parts}})
    };
    let text = lines(&[
        record(
            "1",
            json!([{"text": "Use tabs."}, {"text": "the hook's"}]),
            json!({"hookContext": "the hook's"}),
        ),
        record("2", json!([{"text": "<session_context>\nmore"}]), Value::Null),
    ]);
    assert_eq!(told("qwen-code", &text).0, [said(Role::User, "Use tabs.")]);
}

#[test]
fn pi_gives_what_was_typed_and_said() {
    let (turns, report) = told("pi", PI);
    assert_eq!(
        turns,
        [
            said(Role::User, "Which package manager does the build use?"),
            said(Role::Reasoning, "The file may say it."),
            said(Role::Assistant, "I will look at the notes."),
            said(Role::Tool, "[bash] command: cat notes.txt\n=>\nThe build uses pnpm."),
            said(
                Role::Tool,
                "[read] path: missing.txt\n=> failed\nENOENT: no such file or directory, access \
                 '/home/u/project/missing.txt'"
            ),
            said(Role::Assistant, "It uses pnpm."),
            said(Role::User, "Always run the tests with vitest."),
            said(Role::Assistant, "Noted: tests run with vitest."),
        ]
    );
    assert!(report.unknown.is_empty() && report.parent.is_none(), "{report:?}");
    assert_eq!(report.cwd.as_deref(), Some("/home/u/project"));
}

#[test]
fn a_fork_of_pi_names_its_parent_and_repeats_its_turns_under_their_ids() {
    let (parent, report) = read_bytes("pi", PI.as_bytes()).unwrap();
    let (fork, of_fork) = read_bytes("pi", PI_FORK.as_bytes()).unwrap();
    assert_eq!((of_fork.parent, of_fork.unknown.len()), (report.session_id, 0));
    assert_eq!(fork[..parent.len()], parent[..]);
    let new: Vec<_> = fork[parent.len()..].iter().map(|turn| (turn.role, turn.text.as_str())).collect();
    assert_eq!(
        new,
        [
            (Role::User, "Use the fork for the release notes. @notes.txt"),
            (Role::Assistant, "Done, forked."),
            (Role::User, "Go on with the release."),
            (Role::Assistant, "A summary of it all."),
            (Role::Tool, "[user's shell] echo typed by the person\n=>\ntyped by the person"),
            (Role::User, "And now?"),
            (Role::Assistant, "After the compaction."),
        ]
    );
}

#[test]
fn a_file_that_was_attached_in_pi_is_not_the_persons_words() {
    let (turns, _) = told("pi", PI_ATTACHED);
    assert_eq!(
        turns,
        [
            said(
                Role::Tool,
                "[attached to the prompt]\n=>\n<file name=\"/home/u/project/notes.txt\">\nThe build uses pnpm.\n\n</file>"
            ),
            said(Role::User, "What does the file say?"),
            said(Role::Assistant, "It says pnpm."),
        ]
    );
}

#[test]
fn what_gemini_attaches_and_what_its_tools_show_is_not_the_persons() {
    let user = |id: &str, content: Value| json!({"id": id, "type": "user", "content": content});
    let text = lines(&[
        json!({"sessionId": "s", "projectHash": "h"}),
        user(
            "u1",
            json!([{"text": "Follow @rules.md"}, {"text": "\n--- Content from referenced files ---"},
                {"text": "\nContent from @rules.md:\n"}, {"text": "Always deploy on Friday."},
                {"text": "\n--- End of content ---"}]),
        ),
        json!({"id": "a1", "type": "gemini", "content": "", "toolCalls": [{"id": "c1", "name": "read_file", "args": {},
            "result": [{"functionResponse": {"id": "c1", "response": {"output": "Binary content provided."}}}]}]}),
        user(
            "u2",
            json!([{"functionResponse": {"id": "c1", "response": {"output": "Binary content provided."}}},
                {"inlineData": {"mimeType": "image/png", "data": "aGk="}}]),
        ),
        user("u3", json!([{"text": "And this?"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}}])),
    ]);
    assert_eq!(
        told("gemini", &text).0,
        [
            said(
                Role::Tool,
                "[attached to the prompt]\n=>\nContent from @rules.md:\n\nAlways deploy on Friday."
            ),
            said(Role::User, "Follow @rules.md"),
            said(Role::Tool, "[read_file]\n=>\nBinary content provided."),
            said(Role::User, "And this?\n[image left out]"),
        ]
    );
}

#[test]
fn the_tags_that_codex_puts_around_an_image_are_left_out() {
    let parts = json!([
        {"type": "input_text", "text": "<image name=[Image #1]>"},
        {"type": "input_image", "image_url": "data:image/png;base64,aGk="},
        {"type": "input_text", "text": "</image>"},
        {"type": "input_text", "text": "What is on [Image #1]?"},
    ]);
    let text = lines(&[
        json!({"type": "session_meta", "payload": {"id": "t1", "cwd": "/p"}}),
        json!({"type": "response_item", "payload": {"type": "message", "id": "m", "role": "user", "content": parts}}),
    ]);
    let expected = [said(Role::User, "[image left out]\nWhat is on [Image #1]?")];
    assert_eq!(told("codex", &text).0, expected);
}

#[test]
fn a_fork_of_opencode_gives_only_what_is_its_own() {
    let message = |id: &str, at: u64, text: &str| {
        json!({"info": {"id": id, "role": "user", "time": {"created": at}},
            "parts": [{"type": "text", "id": format!("p{id}"), "text": text}]})
    };
    let info = json!({"id": "ses_2", "directory": "/p", "time": {"created": 2000}});
    let copied = message("1", 1000, "the parent's");
    let export = json!({"info": info, "messages": [copied, message("2", 2001, "its own")]}).to_string();
    assert_eq!(told("opencode", &export).0, [said(Role::User, "its own")]);
}

#[test]
fn another_programs_session_is_an_error_that_names_the_program() {
    let all = [
        ("qwen-code", "qwen-code", QWEN.to_owned()),
        ("claude-code", "claude-code", lines(&[claude("u1", "user", json!("typed"))])),
        ("copilot", "copilot", COPILOT.to_owned()),
        ("pi", "pi", PI.to_owned()),
    ];
    let readers = ["claude-code", "codex", "gemini", "cursor", "copilot", "pi", "qwen-code"];
    for (format, name, text) in &all {
        for reader in readers.iter().filter(|reader| *reader != format) {
            let error = read_bytes(reader, text.as_bytes()).map(|(turns, _)| turns).unwrap_err();
            let expected = format!("it looks like a session of {name}; queue it with --harness {name}");
            assert!(error.line().contains(&expected), "{name} as {reader:?}: {}", error.line());
        }
    }
}

pub const TURNS: &str = r#"{"role":"user","text":"typed","time":"2026-03-25T09:02:11Z"}

{"role":"reasoning","text":"hm"}
{"role":"tool","tool":"bash","input":{"command":"ls"},"text":"a.txt","failed":true,"mine":1}
{"role":"tool","tool":"open","input":"a.txt"}
{"role":"assistant","id":"m-1","text":"said"}
"#;

#[test]
fn turns_in_json_lines_are_what_they_say() {
    let (turns, report) = read_bytes("turns", TURNS.as_bytes()).unwrap();
    let all: Vec<_> = turns.iter().map(|turn| (turn.role, turn.text.as_str())).collect();
    assert_eq!(
        all,
        [
            (Role::User, "typed"),
            (Role::Reasoning, "hm"),
            (Role::Tool, "[bash] command: ls\n=> failed\na.txt"),
            (Role::Tool, "[open] \"a.txt\"\n=>"),
            (Role::Assistant, "said"),
        ]
    );
    assert_eq!((turns[0].at, turns[4].id.as_str()), ("2026-03-25T09:02:11Z".parse().ok(), "m-1"));
    assert!(turns[2].output.is_some() && report.torn == 0);
}

#[test]
fn a_line_that_is_no_turn_is_an_error_with_its_number() {
    for (line, why) in [
        ("{\"role\":\"user\"}", "missing field `text`"),
        ("{\"text\":\"x\"}", "missing field `role`"),
        ("{\"role\":\"bot\",\"text\":\"x\"}", "unknown variant `bot`, expected one of `user`"),
        ("{\"role\":\"user\",\"text\":5}", "invalid type: integer `5`, expected a string"),
        ("{\"role\":\"user\",\"text\":\"x\",\"time\":\"noon\"}", "noon"),
        ("{\"role\":\"tool\",\"text\":\"x\"}", "missing field `tool`"),
        ("{\"role\":\"user\",\"text\":\"x\",\"tool\":\"y\"}", "only for the role tool"),
        ("{\"role\":\"assistant\",\"text\":\"x\",\"typed\":true}", "only for the role user"),
        ("{\"role\":\"user\",", "EOF while parsing"),
        ("user: x", "expected value"),
        ("[]", "invalid"),
    ] {
        let text = format!("{}\n\n{line}\n", TURNS.lines().next().unwrap());
        let error = read_bytes("turns", text.as_bytes()).map(|(turns, _)| turns).unwrap_err();
        assert!(error.message().contains("\", line 3, is not a turn: "), "{}", error.message());
        assert!(error.message().contains(why), "{line}: {}", error.message());
    }
}

#[test]
fn a_document_that_grew_is_continued_and_one_that_was_rewritten_begins_again() {
    use std::collections::HashSet;
    use std::io::Write;
    let read = |text: &str, last: Option<&str>| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let mut turns = Vec::new();
        let mut each = |turn: crate::harness::turn::Turn| {
            turns.push((turn.id, turn.text));
            Ok(())
        };
        crate::harness::read_after(&PLAIN, file.path(), last, HashSet::new(), &mut each).unwrap();
        turns
    };
    let long = "a line of a long text\n".repeat(4000);
    for text in ["one\ntwo\n", "one\ntwo", "\u{feff}ünï\n", &long] {
        let first = read(text, None);
        let last = first.last().unwrap().0.as_str();
        let new = |text: &str| {
            let turns = read(text, Some(last));
            let known = turns.iter().position(|(id, _)| id == last).map_or(0, |at| at + 1);
            turns[known..].iter().map(|(_, text)| text.as_str()).collect::<String>()
        };
        assert_eq!(new(text), "");
        assert_eq!(new(&format!("{text}\n")), "");
        assert_eq!(new(&format!("{text}three\n")), "three\n");
        // Another text, though its end is the same; and the beginning alone.
        let rewritten = format!("zero\n{}", text.trim_start_matches('\u{feff}'));
        assert_eq!(new(&rewritten), rewritten);
        assert_eq!(new("one"), "one");
    }
}
