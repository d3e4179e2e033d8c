//! Which prompts get a note, and which note: sixty prompts, half of them about nothing that the notes know. The numbers
//! that decide were first chosen with one half (a) and held against the other (b), and later with both.

use crate::support::store::Store;
use crate::support::{Said, say};
use serde_json::json;
use std::collections::BTreeMap;

/// A file of lines with three parts.
fn lines(text: &'static str) -> Vec<[&'static str; 3]> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.splitn(3, " | ").collect::<Vec<_>>().try_into().unwrap()).collect()
}

/// The keys of the notes by their ids.
fn fill(store: &Store) -> BTreeMap<String, &'static str> {
    const DIGITS: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    let mut keys = BTreeMap::new();
    for (n, [key, title, text]) in lines(include_str!("recall/notes.txt")).into_iter().enumerate() {
        let id = format!("Rcax{}{}", char::from(DIGITS[n / 58]), char::from(DIGITS[n % 58]));
        let note = format!("---\nid: id__{id}\ntitle: {}\n---\n\n{text}\n", json!(title));
        store.put(&format!("topics/{key} -- id__{id}.md"), note);
        keys.insert(id, key);
    }
    keys
}

/// Of what is given, how much fits; and of what should be given, how much is.
#[derive(Default)]
struct Figures {
    given: usize,
    fitting: usize,
    wanted: usize,
    found: usize,
}

impl Figures {
    fn precision(&self) -> f64 {
        self.fitting as f64 / self.given as f64
    }

    fn recall(&self) -> f64 {
        self.found as f64 / self.wanted as f64
    }
}

#[test]
fn what_is_given_fits_and_what_should_be_given_is() {
    let store = Store::new();
    let keys = fill(&store);
    assert!(keys.len() >= 60);
    let prompts = lines(include_str!("recall/prompts.txt"));
    assert_eq!(prompts.len(), 60);
    let mut halves: BTreeMap<&str, Figures> = BTreeMap::new();
    for (n, [half, expected, prompt]) in prompts.into_iter().enumerate() {
        let run = |event: serde_json::Value| {
            let mut command = store.sandbox.command("memory-recall");
            command.args(["--harness", "opencode"]).env("AGENT_MEMORY_RECALL_MS", "60000");
            let output = command.write_stdin(event.to_string()).output().unwrap();
            assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
            output.out()
        };
        // Without a start: the section would give most of them whole.
        let event =
            json!({"hook_event_name": "UserPromptSubmit", "session_id": n.to_string(), "prompt": prompt});
        let out = run(event);
        let headings = out.lines().filter(|line| line.starts_with("### "));
        let given: Vec<&str> = headings.map(|line| keys[&line[line.len() - 7..line.len() - 1]]).collect();
        assert!(given.len() <= 3);
        let expected: Vec<&str> = expected.split(',').filter(|key| *key != "-").collect();
        let figures = halves.entry(half).or_default();
        figures.given += given.len();
        figures.fitting += given
            .iter()
            .filter(|key| expected.iter().any(|fits| fits.trim_start_matches('~') == **key))
            .count();
        let wanted: Vec<&&str> = expected.iter().filter(|key| !key.starts_with('~')).collect();
        figures.wanted += wanted.len();
        figures.found += wanted.iter().filter(|key| given.contains(key)).count();
    }
    for (half, figures) in &halves {
        say(&format!(
            "half {half}: {} of {} given fit; {} of {} that should be given are",
            figures.fitting, figures.given, figures.found, figures.wanted
        ));
        assert!(figures.wanted >= 15 && figures.given >= 10);
        assert!(figures.precision() >= 0.9, "half {half}: {:.2}", figures.precision());
        assert!(figures.recall() >= 0.8, "half {half}: {:.2}", figures.recall());
    }
    assert_eq!(halves.len(), 2);
}
