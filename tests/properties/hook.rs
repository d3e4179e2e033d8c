//! What a program's hook says on memory-capture's stdin.

use crate::fuzz::scratch::Scratch;
use crate::fuzz::{choice, is_told};
use crate::harness::HARNESSES;
use crate::harness::name::Harness;
use crate::harness::payload::{Ended, id_fault};
use crate::harness::spec::CaptureSpec;
use crate::memory::capture::{context, hook_event};
use crate::store::journal::entry::{CaptureContext, QueueEntry, Retrieval};

/// Stands for the home directory, which is another one each time.
const HOME: &[u8] = b"/HOME";

pub fn holds(bytes: &[u8]) {
    let (which, bytes) = choice(bytes, HARNESSES.len());
    let spec = HARNESSES[which];
    let harness = Harness::of(spec);
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
    match hook_event(spec, &payload, &scratch.env()) {
        Ok(Ended::Nothing(why)) => assert!(!why.is_empty()),
        Ok(Ended::Session { path, id, cwd }) => {
            assert!(matches!(spec.capture, CaptureSpec::Hook { .. }));
            assert_eq!(id_fault(&id), None);
            assert!(path.is_absolute() && path.is_file());
            assert!(!path.components().any(|part| part.as_os_str() == "subagents"), "{path:?}");
            // What comes of it can be queued, or is refused with a reason.
            let retrieval = Retrieval::in_file(harness, path, id);
            let context: CaptureContext = context(cwd);
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
