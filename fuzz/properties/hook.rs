//! What a program's hook says on memory-capture's stdin.

use crate::fuzz::scratch::Scratch;
use crate::fuzz::{choice, is_told};
use crate::memory::capture::{HookEvent, context, hook_event};
use crate::store::journal::entry::{Context, Harness, QueueEntry, Retrieval, id_fault};

/// Stands for the home directory, which is another one each time.
const HOME: &[u8] = b"/HOME";

pub(crate) fn holds(bytes: &[u8]) {
    let (which, bytes) = choice(bytes, Harness::NAMES.len());
    let harness = Harness::named(Harness::NAMES[which]).unwrap();
    let scratch = Scratch::empty();
    let id = "019c0000-0000-7000-8000-000000000001";
    for file in [
        "t.jsonl".to_owned(),
        "subagents/t.jsonl".to_owned(),
        "chats/p/t.jsonl".to_owned(),
        format!(".codex/sessions/2026/01/28/rollout-2026-01-28T00-00-00-{id}.jsonl"),
        ".cursor/projects/p/agent-transcripts/c1/c1.jsonl".to_owned(),
        ".cursor/projects/p/agent-transcripts/c2.jsonl".to_owned(),
    ] {
        scratch.put(&file, b"{}\n");
    }
    let home = scratch.root().as_os_str().as_encoded_bytes();
    let mut payload = Vec::new();
    let mut rest = bytes;
    while let Some(at) = memchr::memmem::find(rest, HOME) {
        payload.extend([&rest[..at], home].concat());
        rest = &rest[at + HOME.len()..];
    }
    payload.extend(rest);
    match hook_event(harness, &payload, &scratch.env()) {
        Ok(HookEvent::Nothing(why)) => assert!(!why.is_empty()),
        Ok(HookEvent::Session { retrieval, cwd }) => {
            assert!(matches!(
                harness,
                Harness::ClaudeCode
                    | Harness::Codex
                    | Harness::Copilot
                    | Harness::Cursor
                    | Harness::Gemini
                    | Harness::QwenCode
            ));
            let path = match &retrieval {
                Retrieval::Transcript { path, format, session_id } => {
                    assert_eq!((id_fault(session_id), *format), (None, harness));
                    path
                }
                Retrieval::CursorSession { session_path } => session_path,
                other => panic!("{other:?} is no session of a hook"),
            };
            assert!(path.is_absolute() && path.is_file());
            assert!(!path.components().any(|part| part.as_os_str() == "subagents"), "{path:?}");
            // What comes of it can be queued, or is refused with a reason.
            let context: Context = context(cwd);
            let timestamp = "2026-02-28T15:04:05Z".parse().unwrap();
            let entry = QueueEntry { version: 1, timestamp, harness, retrieval, context };
            if let Err(error) = entry.check() {
                error.faults().iter().for_each(|fault| is_told(&fault.to_string()));
            }
        }
        Err(error) => {
            is_told(&error.line());
            assert_ne!(error.exit_code(), 2, "an agent would be sent back to work");
        }
    }
}
