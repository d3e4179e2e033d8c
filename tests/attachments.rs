//! Images and PDFs: what each API is sent, what cannot be sent, and what is kept of them.

use crate::support::api::{Anthropic, KINDS, Ollama, OpenAi, to};
use crate::support::server::Server;
use crate::support::{Said, Sandbox, said};
use serde_json::{Value, json};
use std::fs;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";
const PDF: &[u8] = b"%PDF-1.7\nrest";
/// The same in base64.
const PNG_TEXT: &str = "iVBORw0KGgpyZXN0";
const PDF_TEXT: &str = "JVBERi0xLjcKcmVzdA==";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    // The name says nothing about the kind.
    sandbox.file("pictures/shot.jpg", PNG);
    sandbox.file("bill.bin", PDF);
    sandbox.file("note.png", "just text");
    sandbox
}

#[test]
fn each_api_gets_files_in_its_own_form() {
    for kind in KINDS {
        let sandbox = sandbox();
        sandbox.model("a", kind, "[memory]\nenabled = true");
        let server = Server::playing([kind.says("one")]);
        let mut run = sandbox.asking("a", &server.url());
        run.args(["-v", "-p", "What is this?", "--attach", "pictures/shot.jpg"]);
        if kind != Ollama {
            run.args(["--attach", "bill.bin"]);
        }
        let output = run.output().unwrap();
        assert_eq!((output.code(), output.out().as_str()), (Some(0), "one"), "{}", output.err());
        let count = if kind == Ollama { 1 } else { 2 };
        assert!(output.err().contains(&format!("\nAttached: {count} file(s)\n")), "{}", output.err());
        let message = &server.request().body["messages"][0];
        let source = |kind: &str, data: &str| json!({ "type": "base64", "media_type": kind, "data": data });
        let text = json!({ "type": "text", "text": "What is this?" });
        let expected = match kind {
            Anthropic => json!({ "role": "user", "content": [
                { "type": "image", "source": source("image/png", PNG_TEXT) },
                { "type": "document", "title": "bill.bin", "source": source("application/pdf", PDF_TEXT) },
                text,
            ]}),
            OpenAi => json!({ "role": "user", "content": [
                { "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{PNG_TEXT}") } },
                { "type": "file", "file": {
                    "filename": "bill.bin", "file_data": format!("data:application/pdf;base64,{PDF_TEXT}") } },
                text,
            ]}),
            Ollama => json!({ "role": "user", "content": "What is this?", "images": [PNG_TEXT] }),
        };
        assert_eq!(message, &expected);
        let names = if kind == Ollama { "shot.jpg" } else { "shot.jpg, bill.bin" };
        let task = format!("**Task:** What is this? [attached: {names}]\n");
        assert!(sandbox.log("a").contains(&task), "{}", sandbox.log("a"));
        assert!(!sandbox.log("a").contains(PNG_TEXT));
    }
}

#[test]
fn what_cannot_be_sent_is_refused_before_anything_is_asked() {
    let sandbox = sandbox();
    sandbox.model("api", Anthropic, "");
    sandbox.model("local", Ollama, "");
    sandbox.agent("command", "touch asked", "");
    sandbox.file("empty", "");
    let big = [PNG, &vec![0; 11 << 20]].concat();
    sandbox.file("big1", &big);
    sandbox.file("big2", &big);
    sandbox.file("huge", [PNG, &vec![0; 20 << 20]].concat());
    let kinds = "it is not a PNG, JPEG, GIF, WebP or PDF file; pipe text in";
    for (agent, files, why) in [
        ("api", &["note.png"][..], format!("cannot attach \"note.png\": {kinds}")),
        ("api", &["empty"], "cannot attach \"empty\": it is empty".to_owned()),
        ("api", &["nowhere.png"], "cannot attach \"nowhere.png\": ".to_owned()),
        ("api", &["pictures"], "cannot attach \"pictures\": ".to_owned()),
        ("api", &["huge"], "is larger than 20 MiB".to_owned()),
        ("api", &["big1", "big2"], "cannot attach \"big2\": the attached files have more than 20 MiB".to_owned()),
        (
            "local",
            &["pictures/shot.jpg", "bill.bin"],
            "cannot attach \"bill.bin\": the model \"ollama/m-1\" is served by Ollama, which takes images only".to_owned(),
        ),
        ("command", &["bill.bin"], "the model \"command/model\" is a command, which takes no files".to_owned()),
    ] {
        let server = Server::playing([]);
        let mut run = sandbox.asking(agent, &server.url());
        for file in files {
            run.args(["--attach", file]);
        }
        let (code, out, err) = said(&mut run);
        assert_eq!((code, out.as_str(), server.requests().len()), (Some(1), "", 0), "{err}");
        assert!(err.contains(&why) && err.lines().count() == 1, "{why}: {err}");
    }
    assert!(!sandbox.work().join("asked").exists());
}

#[test]
fn a_dry_run_names_them_and_a_conversation_keeps_their_names() {
    let sandbox = sandbox();
    sandbox.model("a", OpenAi, "");
    let dry = ["--dry-run", "-p", "x", "--attach", "pictures/shot.jpg", "--attach", "bill.bin"];
    let (code, out, _) = said(sandbox.run("a").args(dry));
    let part =
        "\n--- Attachments (2) ---\nshot.jpg (image/png, 12 bytes)\nbill.bin (application/pdf, 13 bytes)\n";
    assert!(code == Some(0) && out.contains(part), "{out}");
    let server = Server::playing([OpenAi.says("one"), OpenAi.says("two")]);
    for (prompt, files) in [("first", &["--attach", "bill.bin"][..]), ("second", &[])] {
        let mut run = sandbox.asking("a", &server.url());
        let output = run.args(["--conversation", "c", "-p", prompt]).args(files).output().unwrap();
        assert_eq!(output.code(), Some(0), "{}", output.err());
    }
    let first = &server.requests()[1].body["messages"][0]["content"];
    assert_eq!(first, "first [attached: bill.bin]");
    let path = sandbox.home().join(".local/share/axe/conversations/a/c.jsonl");
    let kept = fs::read_to_string(path).unwrap();
    assert!(kept.contains("\"attachments\":[\"bill.bin\"]") && !kept.contains(PDF_TEXT), "{kept}");
}

#[test]
fn tools_work_with_files_and_sub_agents_do_not_see_them() {
    for kind in [Anthropic, OpenAi] {
        let sandbox = sandbox();
        sandbox.model("a", kind, "sub_agents = ['b']");
        sandbox.model("b", kind, "");
        let server = Server::playing([kind.calls(&[to("b", "look")]), kind.says("b"), kind.says("done")]);
        let mut run = sandbox.asking("a", &server.url());
        let output = run.args(["-p", "x", "--attach", "bill.bin"]).output().unwrap();
        assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"), "{}", output.err());
        let seen: Vec<bool> =
            server.requests().iter().map(|request| request.text.contains(PDF_TEXT)).collect();
        assert_eq!(seen, [true, false, true]);
    }
}

#[test]
fn an_image_counts_as_its_tokens_not_as_its_bytes() {
    let sandbox = sandbox();
    sandbox.model("a", OpenAi, "[params]\nmax_tokens = 10");
    sandbox.file("large.png", [PNG, &vec![0; 1 << 20]].concat());
    let server = Server::answering(|_| OpenAi.says("one"));
    for (limit, code) in [("2000", Some(0)), ("1000", Some(4))] {
        let mut run = sandbox.asking("a", &server.url());
        let output =
            run.args(["-p", "x", "--attach", "large.png", "--max-tokens-total", limit]).output().unwrap();
        assert_eq!(output.code(), code, "{}", output.err());
    }
    let sent: Value = server.request().body;
    assert!(sent["messages"][0]["content"][0]["image_url"]["url"].as_str().unwrap().len() > 1 << 20);
}
