//! A corpus of notes, and a model that performs each operation of defrag once.

use crate::support::defrag::REPO;
use crate::support::world::{World, words};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// The user's own text around the section.
pub(crate) const AGENTS_MD: &str = "# Mine\r\n\r\nno newline at the end";

pub(crate) fn id(six: &str) -> String {
    format!("id__{six}")
}

/// The notes: id without `id__`, title, body.
fn corpus() -> Vec<(String, String, String)> {
    let mut notes: Vec<(String, String, String)> = [
        (
            "mergeA",
            "Port of the server",
            "The server listens on port 8081, see src/port.rs for where it is read.",
        ),
        (
            "mergeB",
            "The port of the server",
            "The server listens on port 8081, see src/port.rs for who reads it.",
        ),
        (
            "mergeC",
            "On the port of the server",
            "The server listens on port 8081, see src/port.rs and [[id__mergeA]].",
        ),
        ("spLitA", "Two ideas in one", "Guards are pure, see src/guard.rs.\n\nThe cache holds 512 entries."),
        ("renamA", "Wrong name", "About the weather in doc/weather.md."),
        ("retagA", "Wrong tags", "About tags, 17 of them."),
        ("rewriA", "Hard to read", "The thing with build.sh, recently, takes 40 s."),
        ("archiA", "Of no use", "Nothing."),
        ("coLdAA", "Rarely needed", "How to reset dev/null."),
        ("hotAAA", "Always needed", "Run make check before each commit."),
    ]
    .map(|(id, title, body)| (id.to_owned(), title.to_owned(), body.to_owned()))
    .into();
    // Enough notes that one may be archived, however many are merged before.
    for (n, letter) in ('A'..='H').enumerate() {
        let more = format!("Filler number {n} is about {letter}{letter}, in src/{letter}.rs.");
        notes.push((format!("fiLLe{letter}"), format!("Filler {letter}"), more));
    }
    notes
}

/// The operations of the model, each with the text that must be in the prompt for it.
fn operations() -> Vec<(&'static str, Value)> {
    let text =
        |title: &str, body: &str| json!({"title": title, "summary": "In short.", "tags": [], "body": body});
    let merged = "The server listens on port 8081, see src/port.rs for where it is read and who reads it.";
    let tier = |six: &str, tier: &str| json!({"op": "tier", "id": id(six), "tier": tier});
    let mut merge = text("Port 8081", merged);
    merge["op"] = json!("merge");
    merge["ids"] = json!([id("mergeA"), id("mergeB"), id("mergeC")]);
    vec![
        ("title: The port of the server", merge),
        (
            "title: Two ideas in one",
            json!({"op": "split", "id": id("spLitA"), "into": [
                text("Guards are pure", "Guards are pure, see src/guard.rs."),
                text("The cache holds 512", "The cache holds 512 entries."),
                text("Why two", "Two ideas were in one note."),
            ]}),
        ),
        (
            "title: Wrong name",
            json!({"op": "rename", "id": id("renamA"), "title": "Weather is in doc/weather.md"}),
        ),
        ("About tags, 17", json!({"op": "retag", "id": id("retagA"), "tags": ["topic__new"]})),
        (
            "recently, takes",
            json!({"op": "rewrite", "id": id("rewriA"), "summary": "build.sh takes 40 s.",
                "body": "The build by build.sh takes 40 s."}),
        ),
        ("title: Of no use", json!({"op": "archive", "id": id("archiA"), "reason": "it says nothing"})),
        // Second operations on the same notes, which must not undo the first.
        ("\"op\": \"tier\"*id__mergeA", tier("mergeA", "hot")),
        ("\"op\": \"tier\"*id__spLitA", tier("spLitA", "cold")),
        ("\"op\": \"tier\"*id__rewriA", tier("rewriA", "hot")),
        ("\"op\": \"tier\"*id__coLdAA", tier("coLdAA", "cold")),
        ("\"op\": \"tier\"*id__hotAAA", tier("hotAAA", "hot")),
    ]
}

/// Shell code that replies with the operations on the notes in the prompt.
pub(crate) fn answer() -> String {
    let mut lines = String::from("ops=\nadd() { ops=\"${ops:+$ops,}$1\"; }\n");
    for (need, operation) in operations() {
        // Everything in the pattern is quoted except the star.
        let pattern = need.split('*').map(|part| format!("'{part}'")).collect::<Vec<_>>().join("*");
        lines.push_str(&format!("case \"$prompt\" in *{pattern}*) add '{operation}' ;; esac\n"));
    }
    lines.push_str(r#"printf '{"batch":"%s","operations":[%s],"notes":"In order."}\n' "$batch" "$ops""#);
    lines
}

impl World {
    /// With the notes, a target with the user's text, and a model that runs `answer`.
    pub(crate) fn defrag(arguments: &[&str], answer: &str) -> World {
        let world = World::with_llm("memory-defrag", arguments, answer);
        world.defrag_config(json!({}), false);
        for (six, title, body) in corpus() {
            let name = format!("{} -- topic__old {}.md", title.to_lowercase().replace(' ', "-"), id(&six));
            // The user's own key and a comment must survive.
            let text = format!(
                "---\nid: {}\ntitle: {title}\nsummary: {title}, in short.\ntags: [topic__old]\nused: 2\nmine: yes # mine\n\
                 scope: repo\nsources:\n  - {{harness: amp, repo: {REPO}}}\ncreatedAt: 1771000000000\nupdatedAt: 1771000000000\n---\n\n{body}\n",
                id(&six)
            );
            world.sandbox.write(&world.root().join("topics").join(name), text);
        }
        world.sandbox.write(&world.target(), AGENTS_MD);
        world
    }

    pub(crate) fn defrag_config(&self, llm: Value, auto_commit: bool) {
        let storage = json!({"root": self.root(), "autoCommit": auto_commit});
        self.config(
            llm,
            json!({"agentsMd": {"targets": [{"path": self.target(), "repo": REPO}]}, "storage": storage}),
        );
    }

    pub(crate) fn target(&self) -> PathBuf {
        self.sandbox.home().join("agents/AGENTS.md")
    }

    /// The number of batches that are left.
    pub(crate) fn batches(&self) -> usize {
        fs::read_dir(self.root().join(".agent-memory/defrag")).map_or(0, Iterator::count)
    }

    /// The path of the note in `place` with this id.
    pub(crate) fn note(&self, place: &str, six: &str) -> Option<PathBuf> {
        let end = format!("{}.md", id(six));
        let notes = fs::read_dir(self.root().join(place)).ok()?;
        notes.map(|entry| entry.unwrap().path()).find(|path| path.to_string_lossy().ends_with(&end))
    }

    /// Runs the program with these arguments; it must succeed.
    pub(crate) fn after(self, arguments: &[&str]) -> World {
        let output = self.run(&words(arguments));
        assert!(output.status.success(), "{output:?}");
        self
    }
}
