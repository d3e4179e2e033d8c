//! A sandbox with a store of notes, which tests write and read directly.

use crate::support::terminal::Terminal;
use crate::support::{Sandbox, said, set_mode};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

pub(crate) struct Store {
    pub(crate) sandbox: Sandbox,
}

impl Store {
    /// A store without a history: each write would run git several times.
    pub(crate) fn new() -> Store {
        let store = Store::private();
        store.config(r#"{"storage": {"autoCommit": false}}"#);
        store
    }

    /// A store with the default configuration, for a user with a git identity.
    pub(crate) fn with_history() -> Store {
        let store = Store::private();
        let identity = "[user]\nname = Ann\nemail = ann@example.org\n";
        store.sandbox.write(&store.sandbox.home().join(".gitconfig"), identity);
        store
    }

    /// In a home directory that is private whatever the umask.
    fn private() -> Store {
        let store = Store { sandbox: Sandbox::new() };
        set_mode(&store.sandbox.home(), 0o700);
        store
    }

    /// The user's own configuration.
    pub(crate) fn config(&self, json: &str) {
        self.sandbox.write(&self.sandbox.home().join(".config/agent-memory/config.json"), json);
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.sandbox.home().join(".local/share/agent-memory")
    }

    pub(crate) fn topics(&self) -> PathBuf {
        self.root().join("topics")
    }

    pub(crate) fn archive(&self) -> PathBuf {
        self.root().join("archive")
    }

    /// Writes a file in the store, and returns its path.
    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root().join(path);
        self.sandbox.write(&path, content);
        path
    }

    /// Writes a note to `topics/` under the name that the programs would give it. `id` is without `id__`.
    pub(crate) fn note(&self, id: &str, title: &str) -> PathBuf {
        self.put(&format!("topics/{}", name(id, title)), note(id, title, ""))
    }

    /// Exit code, stdout and stderr.
    pub(crate) fn run(&self, program: &str, args: &[&str]) -> (Option<i32>, String, String) {
        said(self.sandbox.command(program).args(args))
    }

    /// What the program prints when it succeeds without a warning.
    pub(crate) fn out(&self, program: &str, args: &[&str]) -> String {
        let (code, out, err) = self.run(program, args);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{program} {args:?}: {out}");
        out
    }

    /// What the program shows on a terminal when it succeeds.
    pub(crate) fn on_a_terminal(&self, program: &str, args: &[&str]) -> String {
        let terminal = Terminal::open();
        let mut command = self.sandbox.std_command(program);
        command.args(args).stdin(terminal.stdio()).stdout(terminal.stdio());
        assert!(command.status().unwrap().success());
        drop(command);
        terminal.all()
    }

    /// Every file in `topics/` and `archive/`, including hidden ones.
    pub(crate) fn tree(&self) -> BTreeMap<String, Vec<u8>> {
        let mut tree = BTreeMap::new();
        for place in ["topics", "archive"] {
            for name in names(&self.root().join(place)) {
                let bytes = fs::read(self.root().join(place).join(&name)).unwrap_or_default();
                tree.insert(format!("{place}/{name}"), bytes);
            }
        }
        tree
    }

    /// The names of that tree.
    pub(crate) fn names(&self) -> Vec<String> {
        self.tree().into_keys().collect()
    }

    /// The text of the one file whose name holds `part`.
    pub(crate) fn text(&self, part: &str) -> String {
        let tree = self.tree();
        let mut found = tree.iter().filter(|(name, _)| name.contains(part));
        let (Some((_, bytes)), None) = (found.next(), found.next()) else {
            panic!("not one file with {part:?}: {:?}", tree.keys());
        };
        String::from_utf8_lossy(bytes).into_owned()
    }
}

/// The names in a directory, sorted; empty if there is no directory.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A file name without tags: `<slug> -- id__XXXXXX.md`.
pub(crate) fn name(id: &str, title: &str) -> String {
    format!("{} -- id__{id}.md", title.to_lowercase().replace(' ', "-"))
}

/// A note's text; `more` holds further lines of front matter.
pub(crate) fn note(id: &str, title: &str, more: &str) -> String {
    format!("---\nid: id__{id}\ntitle: {title}\n{more}---\n\nBody of {title}.\n")
}

/// The value of a key in a note's front matter, as it is written.
pub(crate) fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let front = text.strip_prefix("---\n")?.split("\n---").next()?;
    front.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
}

pub(crate) const HOUR: u64 = 60 * 60;

/// Sets the file's time to `seconds` ago by the real clock.
pub(crate) fn age(path: &Path, seconds: u64) {
    let file = File::options().read(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
}
