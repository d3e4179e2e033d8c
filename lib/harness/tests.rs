use super::*;
use crate::base::env::Env;
use crate::base::error::Error;
use crate::harness::spec::ToolKind;
use crate::harness::turn::{NO_RESULT, Role, Turn};
use serde_json::{Value, json};
use std::path::PathBuf;

mod others;

/// By the harness, or `turns` or `plain`.
fn of(name: &str) -> &'static Format {
    match name {
        "turns" => &turns::TURNS,
        "plain" => &document::PLAIN,
        name => &known(name).unwrap().format,
    }
}

fn all() -> impl Iterator<Item = &'static str> {
    HARNESSES.iter().map(|spec| spec.name).chain(["turns", "plain"])
}

use others::TURNS;

fn read_all(format: &str, path: &Path) -> Result<(Vec<Turn>, SessionReport)> {
    let mut turns = Vec::new();
    let report = read(of(format), path, &mut |turn| {
        turns.push(turn);
        Ok(())
    })?;
    assert_eq!(report.turns, turns.len());
    Ok((turns, report))
}

/// Reads `bytes` as a session.
fn read_bytes(format: &str, bytes: &[u8]) -> Result<(Vec<Turn>, SessionReport)> {
    use std::io::Write;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    read_all(format, file.path())
}

fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

fn told(format: &str, text: &str) -> (Vec<(Role, String)>, SessionReport) {
    let (turns, report) = read_bytes(format, text.as_bytes()).unwrap();
    let ids: std::collections::HashSet<_> = turns.iter().map(|turn| &turn.id).collect();
    assert_eq!(ids.len(), turns.len(), "every turn has an id of its own: {turns:?}");
    (turns.into_iter().map(|turn| (turn.role, turn.text)).collect(), report)
}

fn said(role: Role, text: &str) -> (Role, String) {
    (role, text.to_owned())
}

// Claude Code

fn claude(uuid: &str, kind: &str, content: Value) -> Value {
    json!({"type": kind, "uuid": uuid, "sessionId": "s1", "cwd": "/p", "isSidechain": false,
        "timestamp": "2026-01-02T03:04:05.678Z", "message": {"role": kind, "model": "m", "content": content}})
}

fn with(mut record: Value, key: &str, value: Value) -> Value {
    record[key] = value;
    record
}

#[test]
fn a_record_whose_flag_is_none_is_nobodys() {
    let text = lines(&[
        claude("u1", "user", json!("typed")),
        with(claude("u2", "user", json!("meta")), "isMeta", json!(1)),
        with(claude("u3", "user", json!("summary")), "isCompactSummary", json!("true")),
    ]);
    let (turns, report) = told("claude-code", &text);
    assert_eq!(turns, [said(Role::User, "typed")]);
    assert_eq!(report.unknown.values().sum::<usize>(), 2);
}

#[test]
fn claude_code_gives_what_was_typed_and_said_and_nothing_else() {
    let synthetic = json!({"type": "assistant", "uuid": "e1", "sessionId": "s1",
        "message": {"model": "<synthetic>", "content": [{"type": "text", "text": "API Error"}]}});
    let text = lines(&[
        json!({"type": "queue-operation", "sessionId": "s1", "content": "a copy"}),
        json!({"type": "api-request-blob", "sessionId": "s1", "message": {"role": "user", "content": "a copy"}}),
        claude("u1", "user", json!("typed")),
        claude("u2", "user", json!([{"type": "text", "text": "typed too"}, {"type": "image", "source": {}}])),
        with(claude("u3", "user", json!("meta")), "isMeta", json!(true)),
        with(claude("u4", "user", json!("summary")), "isCompactSummary", json!(true)),
        with(claude("u5", "user", json!("done")), "origin", json!({"kind": "task-notification"})),
        with(claude("u6", "user", json!("by hand")), "origin", json!({"kind": "human"})),
        claude("u7", "user", json!("<command-name>/x</command-name>")),
        claude("u8", "user", json!("<local-command-stdout>x</local-command-stdout>")),
        claude("u9", "user", json!("<bash-input>ls</bash-input>")),
        claude(
            "u10",
            "user",
            json!([{"type": "text", "text": "[Request interrupted by user for tool use]"}]),
        ),
        synthetic,
        with(
            claude("a0", "assistant", json!([{"type": "text", "text": "no"}])),
            "isApiErrorMessage",
            json!(true),
        ),
        claude("a1", "assistant", json!([{"type": "thinking", "thinking": "hm"}])),
        claude("a1", "assistant", json!([{"type": "thinking", "thinking": "written twice"}])),
        claude(
            "a2",
            "assistant",
            json!([{"type": "thinking", "thinking": ""}, {"type": "text", "text": "said"}]),
        ),
        with(
            claude("h1", "assistant", json!([{"type": "text", "text": "helper"}])),
            "isSidechain",
            json!(true),
        ),
        json!({"type": "system", "sessionId": "s1", "content": "x"}),
        json!({"type": "brand-new", "sessionId": "s1"}),
        json!({"type": "user", "uuid": 7}),
        claude("a3", "assistant", json!([{"type": "hologram"}, 3])),
    ]);
    let (turns, report) = told("claude-code", &text);
    assert_eq!(
        turns,
        [
            said(Role::User, "typed"),
            said(Role::User, "typed too\n[image left out]"),
            said(Role::User, "by hand"),
            said(Role::Reasoning, "hm"),
            said(Role::Assistant, "said"),
        ]
    );
    assert_eq!((report.session_id.as_deref(), report.cwd.as_deref()), (Some("s1"), Some("/p")));
    assert_eq!((report.torn, report.is_sub_agent, report.parent), (0, false, None));
    let unknown: Vec<_> = report.unknown.iter().map(|(kind, n)| (kind.as_str(), *n)).collect();
    assert_eq!(
        unknown,
        [
            ("(another shape)", 1),
            ("assistant part hologram", 1),
            ("assistant part in another shape", 1),
            ("brand-new", 1)
        ]
    );
}

#[test]
fn claude_code_calls_keep_their_order_and_get_their_results() {
    let call = |uuid, key, input| {
        claude(uuid, "assistant", json!([{"type": "tool_use", "id": key, "name": "Bash", "input": input}]))
    };
    let result = |uuid, key, content| {
        claude(uuid, "user", json!([{"type": "tool_result", "tool_use_id": key, "content": content}]))
    };
    let persisted = "<persisted-output>\nOutput too large (99KB).\n\nPreview:\nfirst\n</persisted-output>";
    let text = lines(&[
        call("a1", "t1", json!({"command": "ls"})),
        call("a2", "t2", json!({"command": "memory read id__a1B2c3"})),
        call("a3", "t3", json!({"command": "cat big"})),
        result("u3", "t3", json!(persisted)),
        result("u2", "t2", json!("# a note")),
        result("u1", "t1", json!([{"type": "text", "text": "x".repeat(9000)}])),
        call("a4", "t4", json!({"command": "sleep 9"})),
    ]);
    let (turns, report) = read_bytes("claude-code", text.as_bytes()).unwrap();
    assert_eq!(turns.len(), 4);
    assert!(turns[0].text.starts_with("[Bash] command: ls\n=>\nxxx") && turns[0].cut == 0);
    assert_eq!(turns[0].id, "t1");
    assert_eq!(turns[0].at.unwrap().to_string(), "2026-01-02T03:04:05.678Z");
    assert_eq!(turns[1].text, "[Bash] command: memory read id__a1B2c3\n=>\n[notes from memory left out]");
    assert_eq!(turns[2].text, "[Bash] command: cat big\n=>\nOutput too large (99KB).\n\nPreview:\nfirst");
    assert_eq!(turns[3].text, format!("[Bash] command: sleep 9\n=> {NO_RESULT}"));
    assert_eq!(report.open_calls, 1);
}

#[test]
fn claude_code_forks_name_their_parent_and_helpers_say_that_they_are() {
    let text = lines(&[
        claude("u1", "user", json!("x")),
        with(claude("a1", "assistant", json!("y")), "requestSessionId", json!("s0")),
        claude("a2", "assistant", json!("z")),
    ]);
    let (_, report) = told("claude-code", &text);
    assert_eq!(report.parent.as_deref(), Some("s0"));
    let helper =
        with(with(claude("u1", "user", json!("x")), "isSidechain", json!(true)), "agentId", json!("a"));
    assert!(told("claude-code", &lines(&[helper])).1.is_sub_agent);
}

/// A record and the one before it.
fn after(uuid: &str, parent: Option<&str>, kind: &str, text: &str) -> Value {
    let content = if kind == "user" { json!(text) } else { json!([{"type": "text", "text": text}]) };
    with(claude(uuid, kind, content), "parentUuid", json!(parent))
}

fn texts(format: &str, records: &[Value]) -> Vec<String> {
    told(format, &lines(records)).0.into_iter().map(|(_, text)| text).collect()
}

#[test]
fn a_prompt_that_was_taken_back_is_left_out_with_what_followed_it() {
    let session = |first: Option<&str>| {
        vec![
            after("u1", None, "user", "7001 is the port"),
            after("a1", Some("u1"), "assistant", "noted"),
            after("u2", Some("a1"), "user", "7002 WRONG"),
            after("a2", Some("u2"), "assistant", "noted wrongly"),
            after("u3", first, "user", "7003 is the port"),
            after("a3", Some("u3"), "assistant", "noted again"),
        ]
    };
    let whole =
        ["7001 is the port", "noted", "7002 WRONG", "noted wrongly", "7003 is the port", "noted again"];
    assert_eq!(
        texts("claude-code", &session(Some("a1"))),
        ["7001 is the port", "noted", "7003 is the port", "noted again"]
    );
    assert_eq!(texts("claude-code", &session(Some("a2"))), whole);
    assert_eq!(
        texts("claude-code", &session(None)),
        ["7003 is the port", "noted again"],
        "the first one, too"
    );
    assert_eq!(texts("claude-code", &session(Some("gone"))), whole, "nobody knows what came before");
    // No record that comes late, no summary and none that is there twice takes anything back.
    let late = with(after("l", Some("a1"), "system", ""), "subtype", json!("turn_duration"));
    let summary = with(after("s", Some("a1"), "user", "summary"), "isCompactSummary", json!(true));
    let twice = session(Some("a2"))[2].clone();
    for record in [late, summary, twice] {
        let mut one = session(Some("a2"));
        one.push(record);
        let all = texts("claude-code", &one);
        assert!(whole.iter().all(|text| all.iter().any(|its| its == text)), "{all:?}");
    }
    // Two windows go on with one session.
    let mut two = session(Some("a1"));
    two.push(after("a4", Some("a2"), "assistant", "from the other window"));
    two.push(after("u5", Some("a3"), "user", "go on"));
    assert_eq!(texts("claude-code", &two).len(), 8);
    // Calls at once are branches, too, and a summary hides the beginning.
    let call = |uuid: &str, parent: &str, key: &str| {
        let part = json!([{"type": "tool_use", "id": key, "name": "Bash", "input": {"command": key}}]);
        with(claude(uuid, "assistant", part), "parentUuid", json!(parent))
    };
    let result = |uuid: &str, parent: &str, key: &str| {
        let part = json!([{"type": "tool_result", "tool_use_id": key, "content": key}]);
        with(claude(uuid, "user", part), "parentUuid", json!(parent))
    };
    let at_once = [
        after("u1", None, "user", "both"),
        call("c1", "u1", "t1"),
        call("c2", "c1", "t2"),
        result("r2", "c2", "t2"),
        result("r1", "c1", "t1"),
        with(after("s", None, "user", "summary"), "isCompactSummary", json!(true)),
        after("a1", Some("s"), "assistant", "done"),
    ];
    assert_eq!(
        texts("claude-code", &at_once),
        ["both", "[Bash] command: t1\n=>\nt1", "[Bash] command: t2\n=>\nt2", "done"]
    );
    assert_eq!(texts("claude-code", &at_once[..5]).len(), 3);
}

#[test]
fn a_turn_that_codex_rolled_back_is_left_out() {
    let rolled_back =
        |turns: usize| codex("event_msg", json!({"type": "thread_rolled_back", "num_turns": turns}));
    let typed = |id: &str, text: &str| codex_message(id, "user", text, Some(json!(["user.text"])));
    let session = |turns: usize| {
        [
            typed("m1", "one"),
            codex_message("m2", "assistant", "1", None),
            typed("m3", "two"),
            codex_message(
                "m4",
                "user",
                "<environment_context>x",
                Some(json!(["environments.environment_context"])),
            ),
            codex_message("m5", "assistant", "2", None),
            rolled_back(turns),
            typed("m6", "three"),
        ]
    };
    assert_eq!(texts("codex", &session(1)), ["one", "1", "three"]);
    assert_eq!(texts("codex", &session(2)), ["three"]);
    assert_eq!(texts("codex", &session(0)), ["one", "1", "two", "2", "three"]);
}

#[test]
fn what_the_person_ran_is_a_call_and_a_report_from_the_background_is_a_sub_agents() {
    let origin = json!({"kind": "task-notification"});
    let notice =
        "<task-notification>\n<task-id>a01</task-id>\n<result>It is 4310.</result>\n</task-notification>";
    let claudes = [
        claude("u1", "user", json!("<bash-input>make test</bash-input>")),
        claude("u2", "user", json!("<bash-stdout>ok</bash-stdout><bash-stderr>slow</bash-stderr>")),
        with(claude("u3", "user", json!(notice)), "origin", origin),
    ];
    assert_eq!(
        texts("claude-code", &claudes),
        ["[user's shell] make test\n=>\nok\nslow", "[TaskOutput] task_id: a01\n=>\nIt is 4310."]
    );
    let ran = "<user_shell_command>\n<command>\nmake test\n</command>\n<result>\nExit code: 2\nOutput:\nno\n</result>\n</user_shell_command>";
    let codexs = [codex_message("m1", "user", ran, Some(json!(["shell.user_command"])))];
    assert_eq!(texts("codex", &codexs), ["[user's shell] make test\n=> failed\nExit code: 2\nOutput:\nno"]);
    let typed = [codex_message("m1", "user", ran, Some(json!(["user.text"])))];
    assert!(!format!("{:?}", texts("codex", &typed)).contains("user's shell"));
    let ran = "I ran the following shell command:\n```sh\nls\n```\n\nThis produced the following result:\n```\na.txt\n```";
    assert_eq!(texts("gemini", &[header(), gemini("1", "user", ran)]), ["[user's shell] ls\n=>\na.txt"]);
    assert_eq!(of("gemini").tool("user's shell"), ToolKind::Shell);
}

// Codex

fn codex(kind: &str, payload: Value) -> Value {
    json!({"timestamp": "2026-01-02T03:04:05Z", "type": kind, "payload": payload})
}

fn codex_message(id: &str, role: &str, text: &str, kinds: Option<Value>) -> Value {
    let part = if role == "assistant" { "output_text" } else { "input_text" };
    let mut payload =
        json!({"type": "message", "id": id, "role": role, "content": [{"type": part, "text": text}]});
    if let Some(kinds) = kinds {
        payload["internal_chat_message_metadata_passthrough"] = json!({"content_item_kinds": kinds});
    }
    codex("response_item", payload)
}

#[test]
fn codex_gives_what_a_person_typed_and_the_model_said() {
    let call = |id: &str, cmd: &str| {
        let arguments = json!({"cmd": cmd}).to_string();
        codex(
            "response_item",
            json!({"type": "function_call", "name": "exec", "call_id": id, "arguments": arguments}),
        )
    };
    let output = |id: &str, output: Value| {
        codex("response_item", json!({"type": "function_call_output", "call_id": id, "output": output}))
    };
    let mut summary = codex_message("m9", "assistant", "SUMMARY", None);
    summary["metadata"] = json!({"compaction_output": true});
    let text = lines(&[
        codex(
            "session_meta",
            json!({"id": "t1", "session_id": "t1", "cwd": "/p", "source": "exec", "forked_from_id": "t0"}),
        ),
        codex("session_meta", json!({"id": "t0", "source": {"subagent": {}}})),
        codex_message("m0", "developer", "rules", None),
        codex_message(
            "m1",
            "user",
            "<environment_context>x",
            Some(json!(["environments.environment_context"])),
        ),
        codex_message("m2", "user", "typed", Some(json!(["user.text"]))),
        codex(
            "event_msg",
            json!({"type": "item_completed", "item": {"type": "UserMessage", "content": "typed"}}),
        ),
        codex_message("m3", "user", "<turn_aborted>\nx", None),
        codex_message("m4", "user", "typed before versions said so", None),
        codex(
            "response_item",
            json!({"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "hm"}], "content": null}),
        ),
        codex_message("m5", "assistant", "said", Some(json!(["unknown"]))),
        call("c1", "ls"),
        call("c2", "cat x"),
        output("c2", json!("Process exited with code 3")),
        output("c1", json!([{"type": "input_text", "text": "a.txt"}])),
        codex(
            "response_item",
            json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "c3", "input": "*** Begin Patch"}),
        ),
        codex("response_item", json!({"type": "custom_tool_call_output", "call_id": "c3", "output": "ok"})),
        codex("response_item", json!({"type": "telepathy"})),
        summary,
        codex("compacted", json!({"message": "x"})),
    ]);
    let (turns, report) = told("codex", &text);
    assert_eq!(
        turns,
        [
            said(Role::User, "typed"),
            said(Role::User, "typed before versions said so"),
            said(Role::Reasoning, "hm"),
            said(Role::Assistant, "said"),
            said(Role::Tool, "[exec] cmd: ls\n=>\na.txt"),
            said(Role::Tool, "[exec] cmd: cat x\n=>\nProcess exited with code 3"),
            said(Role::Tool, "[apply_patch] *** Begin Patch\n=>\nok"),
        ]
    );
    assert_eq!((report.session_id.as_deref(), report.parent.as_deref()), (Some("t1"), Some("t0")));
    assert!(!report.is_sub_agent);
    assert_eq!(report.unknown["response_item telepathy"], 1);
    let helper = codex("session_meta", json!({"id": "t2", "source": {"subagent": {"thread_spawn": {}}}}));
    assert!(told("codex", &lines(&[helper])).1.is_sub_agent);
}

// Gemini CLI

fn header() -> Value {
    json!({"sessionId": "g1", "projectHash": "h", "startTime": "x", "kind": "main"})
}

fn gemini(id: &str, kind: &str, content: &str) -> Value {
    json!({"id": id, "timestamp": "2026-01-02T03:04:05Z", "type": kind, "content": content})
}

fn list(messages: &[Value]) -> Value {
    json!({"$set": {"messages": messages, "lastUpdated": "x"}})
}

#[test]
fn gemini_is_played_back() {
    let context = gemini("c", "user", "<session_context>\nx");
    let call = json!({"id": "t1", "name": "shell", "args": {"command": "ls"}, "status": "success",
        "result": [{"functionResponse": {"id": "t1", "response": {"output": "<untrusted_context>\na.txt\n</untrusted_context>"}}}]});
    let begun = with(
        gemini("a1", "gemini", "said"),
        "thoughts",
        json!([{"subject": "Look", "description": "around"}]),
    );
    let answered = json!({"id": "r", "type": "user", "content": [{"functionResponse": {"id": "t1", "response": {"output": "x"}}}]});
    let start = [
        header(),
        list(std::slice::from_ref(&context)),
        gemini("u1", "user", "typed"),
        json!({"$set": {"lastUpdated": "x"}}),
        begun.clone(),
        with(begun.clone(), "toolCalls", json!([call])),
        answered,
        json!({"id": "i", "type": "info", "content": "notice"}),
    ];
    let resumed = [
        header(),
        list(std::slice::from_ref(&context)),
        json!({"$set": {"sessionId": "g1"}}),
        list(&[context.clone(), gemini("u1", "user", "typed"), gemini("a1", "gemini", "said")]),
        gemini("u2", "user", "more"),
    ];
    let expected = [
        said(Role::User, "typed"),
        said(Role::Reasoning, "Look\naround"),
        said(Role::Assistant, "said"),
        said(Role::Tool, "[shell] command: ls\n=>\na.txt"),
        said(Role::User, "more"),
    ];
    let both = [&start[..], &resumed[..]].concat();
    let (turns, report) = told("gemini", &lines(&both));
    assert_eq!(turns, expected);
    assert_eq!((report.session_id.as_deref(), report.torn), (Some("g1"), 0));
    assert_eq!(report.unknown, Default::default());
    // The service failed: the prompt is taken back.
    let known = [
        context.clone(),
        gemini("u1", "user", "typed"),
        gemini("a1", "gemini", "said"),
        gemini("r", "user", ""),
    ];
    let failed = [&both[..], &[list(&known)]].concat();
    assert_eq!(told("gemini", &lines(&failed)).0, expected[..4]);
    // History was compressed: what it was stays, the summary and the copies are nobody's words.
    let copies = [context, gemini("s", "user", "A summary"), gemini("n", "user", "more")];
    let compressed = [&both[..], &[list(&copies), gemini("a2", "gemini", "after")]].concat();
    let (turns, _) = told("gemini", &lines(&compressed));
    assert_eq!(turns, [&expected[..], &[said(Role::Assistant, "after")]].concat());
}

#[test]
fn gemini_history_that_was_loaded_into_a_new_file_is_there() {
    let loaded = json!([
        {"id": "a", "type": "gemini", "content": [{"text": "said"}, {"functionCall": {"id": "t1", "name": "shell", "args": {"command": "ls"}}}]},
        {"id": "b", "type": "user", "content": [{"functionResponse": {"id": "t1", "response": {"error": "none"}}}]},
    ]);
    let text = lines(&[header(), list(loaded.as_array().unwrap())]);
    let (turns, _) = told("gemini", &text);
    let call = said(Role::Tool, "[shell] command: ls\n=> failed\nnone");
    assert_eq!(turns, [said(Role::Assistant, "said"), call]);
    let helper = with(header(), "kind", json!("subagent"));
    assert!(told("gemini", &lines(&[helper])).1.is_sub_agent);
}

// Cursor, opencode, Amp, files

const CURSOR: &str = r#"{"role":"user","message":{"content":[{"type":"text","text":"<attached>x</attached><user_query>\ntyped\n</user_query>"}]}}
{"role":"assistant","message":{"content":[{"type":"text","text":"said"},{"type":"tool_use","name":"Shell","input":{"command":"ls"}}]}}
{"role":"user","message":{"content":[{"type":"tool_result","content":"a.txt"}]}}
{"role":"user","message":{"content":"yes"}}
{"role":"user","message":{"content":"yes"}}
{"role":"narrator","message":{"content":"x"}}
"#;

#[test]
fn cursor_gives_the_query_without_what_the_editor_adds() {
    let (turns, report) = told("cursor", CURSOR);
    assert_eq!(
        turns,
        [
            said(Role::User, "typed"),
            said(Role::Assistant, "said"),
            said(Role::Tool, "[Shell] command: ls\n=>\na.txt"),
            said(Role::User, "yes"),
            said(Role::User, "yes"),
        ]
    );
    assert_eq!(report.unknown["record of role narrator"], 1);
}

fn opencode() -> String {
    let message = |id: &str, role: &str, parts: Value| json!({"info": {"id": id, "role": role, "time": {"created": 1_767_323_045_000_u64}}, "parts": parts});
    let mut summary = message("m4", "assistant", json!([{"type": "text", "text": "summary"}]));
    summary["info"]["summary"] = json!(true);
    let tool = json!({"type": "tool", "id": "p3", "callID": "c1", "tool": "bash",
        "state": {"status": "error", "input": {"command": "ls"}, "error": "denied"}});
    let messages = json!([
        message("m1", "user", json!([{"type": "text", "id": "p1", "text": "\"say \"hi\"\""}, {"type": "text", "text": "added", "synthetic": true}])),
        message("m2", "assistant", json!([{"type": "step-start"}, {"type": "reasoning", "id": "p0", "text": "hm"}, {"type": "text", "id": "p2", "text": "\"hi\""}, tool])),
        message("m3", "assistant", json!([{"type": "text", "id": "p4", "text": ""}, {"type": "odour"}, 7])),
        summary,
        {"info": 3},
    ]);
    json!({"info": {"id": "ses_1", "directory": "/p"}, "messages": messages}).to_string()
}

#[test]
fn opencode_exports_give_their_messages() {
    let (turns, report) = told("opencode", &opencode());
    assert_eq!(
        turns,
        [
            said(Role::User, "say \"hi\""),
            said(Role::Reasoning, "hm"),
            said(Role::Assistant, "\"hi\""),
            said(Role::Tool, "[bash] command: ls\n=> failed\ndenied"),
        ]
    );
    assert_eq!((report.session_id.as_deref(), report.cwd.as_deref()), (Some("ses_1"), Some("/p")));
    assert_eq!(report.unknown.values().sum::<usize>(), 3, "{:?}", report.unknown);
}

const AMP: &str = "---
title: Tabs
threadId: T-1
created: 2026-01-02T03:04:05Z
---

# Tabs

## User

Tabs?

```markdown
## User
not a section
```

## Assistant

I look.

## What I do

**Tool Use:** `Bash`

```json
{
  \"cmd\": \"ls\"
}
```

**Tool Use:** `Read`

```json
{\"path\": \"a\"}
```

## User

**Tool Result:** `toolu_1`

```
a.txt
```

**Tool Cancelled:** `toolu_2`

## Assistant

Tabs.
";

#[test]
fn amp_sections_become_turns() {
    let (turns, report) = told("amp", AMP);
    assert_eq!(
        turns,
        [
            said(Role::User, "Tabs?\n\n```markdown\n## User\nnot a section\n```"),
            said(Role::Assistant, "I look.\n\n## What I do"),
            said(Role::Tool, "[Bash] cmd: ls\n=>\na.txt"),
            said(Role::Tool, "[Read] path: a\n=> failed"),
            said(Role::Assistant, "Tabs."),
        ]
    );
    assert_eq!(report.session_id.as_deref(), Some("T-1"));
    assert_eq!(told("amp", "## User\nhi\n").0, [said(Role::User, "hi")]);
}

#[test]
fn a_file_comes_in_pieces_that_are_all_of_it() {
    let text: String = (0..5000).map(|n| format!("line {n} of a text\n")).collect();
    let (pieces, _) = told("plain", &text);
    assert!(pieces.len() > 1 && pieces.iter().all(|(role, _)| *role == Role::Document));
    assert_eq!(pieces.into_iter().map(|(_, text)| text).collect::<String>(), text);
    let section = format!("a\n{}\n{}{}\nb\n", recalled::START, "- x\n".repeat(20_000), recalled::END);
    let left = format!("a\n{}\nb\n", recalled::SECTION_LEFT_OUT);
    assert_eq!(told("plain", &section).0, [said(Role::Document, &left)]);
    let note = format!("---\nid: id__a1B2c3\n---\n{}", "words\n".repeat(20_000));
    assert_eq!(told("plain", &note).0, [said(Role::Document, "[notes from memory left out]\n")]);
}

// What all have in common

fn samples() -> Vec<(&'static str, String)> {
    let call = json!([{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}]);
    let claude = lines(&[
        claude("u1", "user", json!("typed ünïcode")),
        claude("a1", "assistant", json!([{"type": "text", "text": "said"}])),
        claude("a2", "assistant", call),
        claude("u2", "user", result),
    ]);
    let codex = lines(&[
        codex("session_meta", json!({"id": "t1", "cwd": "/p"})),
        codex_message("m2", "user", "typed", Some(json!(["user.text"]))),
        codex(
            "response_item",
            json!({"type": "function_call", "name": "x", "call_id": "c", "arguments": "{}"}),
        ),
        codex("response_item", json!({"type": "function_call_output", "call_id": "c", "output": "o"})),
        codex_message("m5", "assistant", "said", None),
    ]);
    let gemini = lines(&[
        header(),
        list(&[gemini("c", "user", "<session_context>")]),
        gemini("u1", "user", "typed"),
        gemini("a1", "gemini", "said"),
        list(&[gemini("c", "user", "<session_context>"), gemini("u1", "user", "typed")]),
        gemini("a2", "gemini", "again"),
        list(&[gemini("s", "user", "summary")]),
    ]);
    vec![
        ("claude-code", claude),
        ("codex", codex),
        ("gemini", gemini),
        ("cursor", CURSOR.to_owned()),
        ("copilot", include_str!("../../tests/recorded/copilot/events.jsonl").to_owned()),
        ("pi", include_str!("../../tests/recorded/pi/session.jsonl").to_owned()),
        ("qwen-code", include_str!("../../tests/recorded/qwen-code/session.jsonl").to_owned()),
        ("opencode", opencode()),
        ("amp", AMP.to_owned()),
        ("turns", TURNS.to_owned()),
        ("plain", "some text\n".to_owned()),
    ]
}

#[test]
fn no_bytes_make_it_panic() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let samples = samples();
    for round in 0..1500 {
        let (format, text) = &samples[round % samples.len()];
        let mut bytes = text.clone().into_bytes();
        for _ in 0..=random(6) {
            let at = random(bytes.len());
            let end = (at + random(40)).min(bytes.len());
            match random(5) {
                0 => bytes.truncate(at),
                1 => drop(bytes.drain(at..end)),
                2 => bytes.splice(at..at, b"\"{[]}\n\\u00\xff,:0"[random(12)..].to_vec()).for_each(drop),
                3 => bytes.extend_from_within(at..end),
                _ if !bytes.is_empty() => bytes[at] = random(256) as u8,
                _ => {}
            }
        }
        let reader = if random(4) == 0 { all().nth(random(all().count())).unwrap() } else { *format };
        // Whatever it is, it comes to an end with turns or with words.
        if let Err(error) = read_bytes(reader, &bytes) {
            assert!(error.message().contains('"'), "{}", error.message());
        }
    }
}

#[test]
fn a_session_that_has_grown_keeps_the_ids_of_its_turns() {
    for (format, text) in samples() {
        let (whole, _) = read_bytes(format, text.as_bytes()).unwrap();
        let more = match format {
            "opencode" => continue,
            "amp" => format!("{text}\n## User\nmore\n"),
            _ => format!("{text}{}", text.lines().next_back().unwrap()),
        };
        let (grown, _) = read_bytes(format, more.as_bytes()).unwrap();
        assert!(grown.len() >= whole.len());
        if format != "plain" {
            let ids = |turns: &[Turn]| turns.iter().map(|turn| turn.id.clone()).collect::<Vec<_>>();
            assert_eq!(ids(&grown)[..whole.len()], ids(&whole)[..], "{format:?}");
        }
    }
}

#[test]
fn what_is_no_session_is_told_by_what_it_is() {
    let why = |format, bytes: &[u8]| read_bytes(format, bytes).unwrap_err().message().to_owned();
    let dir = tempfile::tempdir().unwrap();
    for format in all() {
        let message = read_all(format, dir.path()).unwrap_err().message().to_owned();
        assert!(message.contains("is a directory, not a"), "{message}");
        let message = read_all(format, &dir.path().join("none")).unwrap_err().message().to_owned();
        assert!(message.starts_with("no file \""), "{message}");
        assert!(why(format, b"").contains("is empty, not a"));
        assert!(why(format, b"\x7fELF\0\0").contains("is a binary file"));
        if format != "plain" {
            let message = why(format, b"Dear diary,\ntoday\n");
            assert!(
                message.contains("none is a")
                    || message.contains("is not what `")
                    || message.contains("is not a turn"),
                "{message}"
            );
        }
    }
    for (format, text) in samples() {
        for (other, _) in samples() {
            let lenient = other == "plain" || other == format;
            assert!(lenient || read_bytes(other, text.as_bytes()).is_err(), "{format:?} read as {other:?}");
        }
    }
}

#[test]
fn an_error_of_the_receiver_ends_the_reading() {
    use std::io::Write;
    for (format, text) in samples() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let error = read(of(format), file.path(), &mut |_| Err(Error::io("enough"))).unwrap_err();
        assert_eq!(error.message(), "enough", "{format:?}");
    }
}

// Recorded sessions

/// Those whose recordings are not in the repository, or that were learned from published sessions.
const RECORDED_ELSEWHERE: &[&str] = &["amp", "claude-code", "codex", "cursor", "gemini", "opencode"];

#[test]
fn every_harness_is_listed_once_and_reads_a_recorded_session_as_its_own() {
    let names: Vec<_> = HARNESSES.iter().map(|spec| spec.name).collect();
    assert!(names.is_sorted() && names.windows(2).all(|two| two[0] != two[1]), "{names:?}");
    for spec in HARNESSES.iter().filter(|spec| !RECORDED_ELSEWHERE.contains(&spec.name)) {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(spec.name);
        let files = fs_err::read_dir(&dir).unwrap_or_else(|_| panic!("no recording: {}", dir.display()));
        let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        files.retain(|path| path.is_file());
        assert!(!files.is_empty(), "no recorded session: {}", dir.display());
        for path in files {
            let (turns, _) = read_all(spec.name, &path).unwrap();
            assert!(turns.iter().any(|turn| turn.role == Role::User), "{}: nothing typed", path.display());
            assert_eq!(whose(&path), Some(spec.name), "{}", path.display());
        }
    }
}

/// Where the recorded sessions are: beside the repository, or where `AXE_FIXTURES` says.
#[allow(clippy::print_stderr, reason = "a test that is not run says so")]
fn recorded() -> Option<PathBuf> {
    let env = Env::read().unwrap();
    let root = env.text("AXE_FIXTURES").map(PathBuf::from);
    let root = root.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/fixtures"));
    let root = root.join("harness");
    if root.is_dir() {
        return Some(root);
    }
    eprintln!("SKIPPED: no recorded sessions at {}; set AXE_FIXTURES", root.display());
    None
}

fn format_of(file: &str) -> &str {
    file.split('/').next().unwrap()
}

fn spoken(turns: &[Turn]) -> Vec<&Turn> {
    turns.iter().filter(|turn| turn.role != Role::Reasoning).collect()
}

/// Turns that were said in one program's recording and are not in the list that all have in common.
fn besides(scenario: &str, format: &str) -> &'static [(usize, &'static str, &'static str)] {
    match (scenario, format) {
        ("tool-call", "gemini" | "opencode") => &[(6, "tool", "nope.txt")],
        // Compacted, and asked on.
        ("tool-call", "codex") => &[(8, "user", "Go on."), (9, "assistant", "Compacted and answered.")],
        // Without a terminal it is no command but a prompt.
        ("resume", "gemini") => {
            &[(6, "user", "/compress"), (7, "assistant", "<state_snapshot>tabs</state_snapshot>")]
        }
        ("subagent", "codex") => &[(3, "assistant", "I wait."), (4, "tool", "wait_agent")],
        _ => &[],
    }
}

#[test]
fn recorded_sessions_give_exactly_their_true_turns() {
    let Some(root) = recorded() else { return };
    let scenarios: Value =
        serde_json::from_str(&std::fs::read_to_string(root.join("expected.json")).unwrap()).unwrap();
    let mut checked = 0;
    for (scenario, expected) in scenarios.as_object().unwrap() {
        let Some(files) = expected.get("files") else { continue };
        for file in files.as_array().unwrap() {
            let file = file.as_str().unwrap();
            let format = format_of(file);
            let (turns, report) = read_all(format, &root.join(file)).unwrap();
            assert!(report.unknown.is_empty() && report.torn == 0, "{file}: {report:?}");
            if report.is_sub_agent {
                assert!(scenario == "subagent" && report.parent.is_some(), "{file}");
                continue;
            }
            let mut found = spoken(&turns);
            if let ("claude-code", Some(parent)) = (format, &report.parent) {
                let parent = root.join(file).with_file_name(format!("{parent}.jsonl"));
                let given: Vec<String> =
                    read_all(format, &parent).unwrap().0.into_iter().map(|turn| turn.id).collect();
                found.retain(|turn| !given.contains(&turn.id));
            }
            assert_eq!(report.parent.is_some(), scenario == "fork", "{file}");
            let pair = |pair: &Value| {
                let at = |n: usize| pair[n].as_str().unwrap().to_owned();
                (at(0), at(1))
            };
            let mut wanted: Vec<_> = expected["turns"].as_array().unwrap().iter().map(pair).collect();
            for (at, role, text) in besides(scenario, format) {
                wanted.insert(*at, ((*role).to_owned(), (*text).to_owned()));
            }
            if scenario == "sigkill" && format == "gemini" {
                // Killed before it wrote the call down.
                assert_eq!(wanted.pop().unwrap().0, "tool");
            }
            let roles: Vec<_> = found.iter().map(|turn| turn.role.name()).collect();
            let wanted_roles: Vec<_> = wanted.iter().map(|(role, _)| role).collect();
            assert_eq!(roles, wanted_roles, "{file}: {found:#?}");
            for (turn, (role, text)) in found.iter().zip(&wanted) {
                match (role.as_str(), text.as_str()) {
                    ("tool", "(call recorded or not, no result)") => assert!(turn.text.ends_with(NO_RESULT)),
                    ("tool", "(spawn; result: There is 1 file under src.)") => {
                        // Codex tells it to whoever waits, in the turn after.
                        let told = format == "codex" || turn.text.contains("There is 1 file under src.");
                        assert!(told, "{file}: {turn:?}");
                    }
                    ("tool", "Write DENIED.md (refused)") => {
                        assert!(turn.text.contains("[Write] ") && turn.text.contains("DENIED.md"));
                        assert!(turn.text.contains("=> failed"));
                    }
                    ("tool", command) => assert!(turn.text.contains(command), "{file}: {turn:?}"),
                    (_, text) => assert_eq!(turn.text, text, "{file}"),
                }
                assert!(turn.at.is_some(), "{file}: {turn:?}");
            }
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
}

#[test]
fn recorded_sessions_that_were_cut_give_a_beginning_of_their_turns() {
    let Some(root) = recorded() else { return };
    let scenarios: Value =
        serde_json::from_str(&std::fs::read_to_string(root.join("expected.json")).unwrap()).unwrap();
    let files = scenarios.as_object().unwrap().values().filter_map(|scenario| scenario.get("files"));
    for file in files.flat_map(|files| files.as_array().unwrap()) {
        let file = file.as_str().unwrap();
        let format = format_of(file);
        let bytes = std::fs::read(root.join(file)).unwrap();
        let (whole, _) = read_bytes(format, &bytes).unwrap();
        let last_line = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
        let mut ends: Vec<usize> = (1..10).map(|tenth| bytes.len() * tenth / 10).collect();
        ends.extend([last_line + (bytes.len() - last_line) / 2, last_line + 2, bytes.len() - 2]);
        for end in ends {
            let (turns, report) = read_bytes(format, &bytes[..end]).unwrap();
            assert!(report.torn <= 1 && report.unknown.is_empty(), "{file} at {end}: {report:?}");
            assert!(turns.len() <= whole.len(), "{file} at {end}: {turns:#?}");
            for (turn, same) in turns.iter().zip(&whole) {
                let call = turn.text.strip_suffix(&format!("\n=> {NO_RESULT}"));
                assert_eq!((turn.role, &turn.id), (same.role, &same.id), "{file} at {end}");
                assert!(
                    turn.text == same.text || call.is_some_and(|call| same.text.starts_with(call)),
                    "{file} at {end}: {turn:?}"
                );
            }
        }
        // One without its last newline is whole all the same.
        let trimmed = bytes.trim_ascii_end();
        assert_eq!(read_bytes(format, trimmed).unwrap().0, whole, "{file}");
    }
}

#[test]
fn the_other_recorded_files_give_what_was_said_in_them() {
    let Some(root) = recorded() else { return };
    let claude = "claude-code/home/.claude/projects/-home-u-project";
    let codex = "codex/home/.codex/sessions/2026/11/21";
    let gemini = "gemini/home/.gemini/tmp/project/chats";
    let expected: &[(String, &[(Role, &str)])] = &[
        (
            format!("{claude}/bbbbbbbb-0000-4000-8000-000000000001.jsonl"),
            &[
                (Role::User, "Tabs or spaces? Please list files."),
                (Role::Assistant, "We use tabs."),
                (Role::Tool, "[Bash] command: ls -la"),
                (Role::Assistant, "Listed; tabs it is."),
                (Role::Tool, "[user's shell] echo from bash mode\n=>\nfrom bash mode"),
                (Role::Assistant, "Second answer."),
                (Role::User, "Second question"),
                (Role::Assistant, "After clear."),
            ],
        ),
        (
            format!("{claude}/c06f1be2-3499-4b26-be27-bf8aac298f9b.jsonl"),
            &[
                (Role::User, "After the clear"),
                (Role::Assistant, "z"),
                (Role::User, "Interrupt me"),
                (Role::Assistant, "This reply is long and will be interrupt"),
            ],
        ),
        (format!("{claude}/f2ff6ca3-aae3-42e6-b382-d0754737d008.jsonl"), &[(Role::User, "x")]),
        (
            format!("{claude}/1795b1be-6314-4920-b235-03f85c3db9db.jsonl"),
            &[(Role::User, "x"), (Role::Assistant, "half"), (Role::Assistant, " rest")],
        ),
        (
            format!("{codex}/rollout-2026-11-21T21-17-44-01a1fff8-e7e1-7313-998e-8708d6ed7883.jsonl"),
            &[
                (Role::User, "Tabs or spaces? Please list files."),
                (Role::Assistant, "We use tabs."),
                (Role::Tool, "[exec_command] cmd: ls -la"),
                (Role::User, "Second question"),
                (Role::Assistant, "After new."),
            ],
        ),
        (
            format!("{codex}/rollout-2026-11-21T21-03-06-01a1ffeb-807f-7703-a77a-172270353fb3.jsonl"),
            &[(Role::User, "x")],
        ),
        (format!("{gemini}/session-2026-11-21T21-06-89a58ac3.jsonl"), &[(Role::User, "x")]),
        (format!("{gemini}/session-2026-11-21T21-22-9cf27db0.jsonl"), &[]),
        (format!("{gemini}/session-2026-11-21T21-11-33333333.jsonl"), &[]),
    ];
    for (file, wanted) in expected {
        let (turns, report) = read_all(format_of(file), &root.join(file)).unwrap();
        assert!(report.unknown.is_empty() && report.torn == 0 && !report.is_sub_agent, "{file}: {report:?}");
        let found = spoken(&turns);
        assert_eq!(found.len(), wanted.len(), "{file}: {found:#?}");
        for (turn, (role, text)) in found.iter().zip(*wanted) {
            let same = if *role == Role::Tool { turn.text.starts_with(text) } else { turn.text == *text };
            assert!(turn.role == *role && same, "{file}: {turn:?}, not {text:?}");
        }
    }
    let helpers = [
        format!("{claude}/77777777-7777-4777-8777-777777777777/subagents/agent-abdf3ffc1171de76c.jsonl"),
        format!("{gemini}/037d4d48-ce11-4d93-8e8e-ab91dcf21f14/178932f5-1e70-4408-a55a-6847fef5e95c.jsonl"),
    ];
    for file in &helpers {
        let (turns, report) = read_all(format_of(file), &root.join(file)).unwrap();
        assert!(report.is_sub_agent && !turns.is_empty(), "{file}: {report:?}");
    }
}
