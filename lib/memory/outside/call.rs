//! A simple command as a call of a program: its name, its options, its operands.

use crate::memory::addresses::hosts;
use crate::memory::lists::List;
use crate::memory::outside::shell::{ShellWord, SimpleCommand, assignment};
use crate::memory::programs::PREFIXES;

/// Options with a value, of programs of one kind.
const VALUED: List = List("valued");
pub(super) const QUIET: List = List("quiet");
pub(super) const LISTERS: List = List("listers");

/// `Some`: from outside; with the hosts that are known.
pub(super) type Origin = Option<Vec<String>>;

/// A simple command without what stands before it: the name of its program, and the words after it.
#[derive(Clone, Default)]
pub(super) struct Call<'c> {
    pub(super) name: String,
    pub(super) words: &'c [ShellWord],
    /// Its here-document.
    pub(super) input: &'c str,
    /// The commands that stand before it in its pipeline.
    pub(super) before: &'c [SimpleCommand],
    /// What it prints becomes arguments.
    pub(super) is_applied: bool,
    pub(super) depth: usize,
}

impl<'c> Call<'c> {
    /// Of a command that stands alone.
    pub(super) fn of(command: &'c SimpleCommand) -> Option<Self> {
        Call { input: &command.input, ..Call::default() }.with(&command.words)
    }

    /// The same with other words: the command behind assignments and words like `then`.
    pub(super) fn with(self, words: &'c [ShellWord]) -> Option<Self> {
        const KEYWORDS: [&str; 14] = [
            "!", "do", "elif", "else", "if", "then", "until", "while", "{", "}", "done", "fi", "esac",
            "function",
        ];
        let is_keyword = |word: &ShellWord| KEYWORDS.contains(&word.text.as_str()) && word.inner.is_empty();
        let at = words.iter().position(|word| !is_keyword(word) && assignment(&word.text).is_none())?;
        let words = &words[at..];
        let name = words[0].text.rsplit('/').next().unwrap_or_default().to_lowercase();
        Some(Call { name: name.strip_suffix(".exe").unwrap_or(&name).to_owned(), words, ..self })
    }

    /// How many words of a program that runs another one stand before that one's.
    pub(super) fn prefix(&self, valued: &[&str]) -> usize {
        let mut at = 1;
        while let Some(word) = self.words.get(at).map(|word| word.text.as_str()) {
            match (word, self.name.as_str()) {
                ("-v" | "-V", "command") | ("-S" | "--split-string", "env") => return at,
                ("--", _) => {}
                _ if word.starts_with('-') => at += usize::from(valued.contains(&word)),
                _ if assignment(word).is_some() => {}
                _ => break,
            }
            at += 1;
        }
        // How long, and which file to lock.
        at + usize::from(["timeout", "flock", "chroot"].contains(&self.name.as_str()))
    }

    /// The command that this one leads to, like `sudo` and `bundle exec`.
    pub(super) fn led_to(self) -> Option<Call<'c>> {
        let at = match PREFIXES.after(&self.name) {
            Some(valued) => self.prefix(valued),
            None if self.is_runner() => 2,
            None => return Some(self),
        };
        let words = self.words.get(at..)?;
        self.with(words)?.led_to()
    }

    pub(super) fn is_runner(&self) -> bool {
        List("runners").begins(&[self.name.as_str(), self.arguments().next().unwrap_or_default()]) > 0
    }

    pub(super) fn texts(&self) -> Vec<String> {
        self.words.iter().map(|word| word.text.clone()).collect()
    }

    /// The words after the program's name.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &'c str> + use<'c> {
        self.words.iter().skip(1).map(|word| word.text.as_str())
    }

    pub(super) fn any(&self, is_one: impl Fn(&str) -> bool) -> bool {
        self.arguments().any(is_one)
    }

    /// The arguments that are no options, without the values of those of a kind of programs.
    pub(super) fn operands(&self, kind: &str) -> Vec<&'c str> {
        self.operands_but(VALUED.after(kind).unwrap_or_default())
    }

    pub(super) fn operands_but(&self, valued: &[&str]) -> Vec<&'c str> {
        let mut found = Vec::new();
        let mut is_value = false;
        let mut is_literal = false;
        for word in self.arguments() {
            match word {
                _ if std::mem::take(&mut is_value) => {}
                "--" if !is_literal => is_literal = true,
                _ if word.starts_with('-') && word.len() > 1 && !is_literal => {
                    is_value = valued.contains(&word)
                }
                _ => found.push(word),
            }
        }
        found
    }

    /// The value of an option: `-o x`, `-ox`, `--output x`, `--output=x`.
    pub(super) fn option(&self, names: &[&str]) -> Option<&'c str> {
        let mut words = self.arguments();
        while let Some(word) = words.next() {
            for name in names {
                match word.strip_prefix(name) {
                    Some("") => return words.next(),
                    Some(value) if !name.starts_with("--") => return Some(value),
                    Some(value) if value.starts_with('=') => return Some(&value[1..]),
                    _ => {}
                }
            }
        }
        None
    }

    /// It asks for the version or for help only.
    pub(super) fn is_about(&self) -> bool {
        let about = ["--version", "-V", "--help", "-h", "version", "help"];
        self.words.len() > 1 && self.arguments().all(|word| about.contains(&word))
    }
}

/// These hosts, or the name of the program that asked them.
pub(super) fn hosts_or(hosts: Vec<String>, name: &str) -> Vec<String> {
    if hosts.is_empty() { vec![name.to_owned()] } else { hosts }
}

/// Commands that print nothing of the files they are given: `xargs rm`.
pub(super) fn is_silent(words: &[ShellWord]) -> bool {
    let word = words.iter().find(|word| !word.text.starts_with('-'));
    word.is_none_or(|word| QUIET.has(&word.text) || LISTERS.has(&word.text))
}

/// Is it an option of one letter each, one of which is among these?
pub(super) fn is_cluster(word: &str, letters: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains(|c| letters.contains(c))
}

/// `host:path`, as scp and rsync have it.
pub(super) fn is_remote(word: &str) -> bool {
    word.split_once(':')
        .is_some_and(|(host, _)| !host.is_empty() && !host.contains('/') && !host.starts_with('-'))
        || word.starts_with("rsync://")
}

pub(super) fn remote_host(word: &str) -> String {
    hosts(word).pop().unwrap_or_else(|| {
        let host = word.split(':').next().unwrap_or_default();
        host.rsplit('@').next().unwrap_or_default().to_lowercase()
    })
}
