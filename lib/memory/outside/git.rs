//! What git prints: of the session's own repository, or of another one.

use crate::base::repository::name_of_url;
use crate::memory::outside::addresses::{host_of, hosts};
use crate::memory::outside::commands::{Call, Shell, Source, both};
use crate::memory::outside::shell::{SimpleCommand, Word};
use std::path::Path;

impl Shell<'_> {
    pub(super) fn git(&mut self, call: &Call) -> Source {
        let mut words = call.words.iter().skip(1).map(|word| word.text.as_str());
        let mut dir = self.dir.clone();
        let command = loop {
            match words.next() {
                Some("-C") => dir = self.places.resolve(&dir, words.next().unwrap_or_default()),
                Some("-c" | "--namespace" | "--exec-path" | "--config-env" | "--super-prefix") => {
                    words.next();
                }
                Some("--git-dir" | "--work-tree") => {
                    dir = self.places.resolve(&dir, words.next().unwrap_or_default())
                }
                Some(word) if word.starts_with("--git-dir=") || word.starts_with("--work-tree=") => {
                    dir = self.places.resolve(&dir, word.split_once('=').map_or("", |(_, value)| value));
                }
                Some(word) if word.starts_with('-') => {}
                Some(word) => break word,
                None => return None,
            }
        };
        let arguments: Vec<&str> = words.collect();
        let valued = [
            "-b", "--branch", "--depth", "-o", "--origin", "-c", "--config", "-j", "--jobs", "--reference",
            "-B", "--reason", "--upload-pack", "-u", "--shallow-since", "--filter", "--refmap", "-s", "-X",
            "--strategy", "--separate-git-dir", "--template",
        ];
        let rest = SimpleCommand {
            words: std::iter::once(command)
                .chain(arguments.iter().copied())
                .map(|text| Word { text: text.to_owned(), inner: Vec::new() })
                .collect(),
            ..Default::default()
        };
        let rest =
            Call { name: command.to_owned(), words: &rest.words, command: call.command, is_applied: false };
        let operands = rest.operands(&valued);
        match (command, operands.first().copied()) {
            ("clone", Some(from)) => self.clone_repository(&dir, from, operands.get(1).copied()),
            ("fetch" | "pull" | "ls-remote", from) => self.fetch(&dir, from),
            ("remote", Some("update")) => self.fetch(&dir, operands.get(1).copied()),
            ("remote", Some("show")) => self.fetch(&dir, operands.get(1).copied()),
            ("remote", Some("add" | "set-url")) => {
                if let [_, name, url, ..] = operands[..]
                    && name_of_url(url).as_deref() == self.own
                {
                    self.fetched.insert(format!("{name}="), Vec::new());
                }
                None
            }
            ("submodule", Some("add" | "update")) => {
                let found: Vec<String> = operands.iter().filter_map(|word| host_of(word)).collect();
                Some(if found.is_empty() { vec!["git".to_owned()] } else { found })
            }
            ("archive", _) if arguments.iter().any(|word| word.starts_with("--remote")) => {
                Some(hosts(&arguments.join(" ")))
            }
            ("worktree", Some("add")) => {
                if let Some(path) = operands.get(1) {
                    let path = self.places.resolve(&dir, path);
                    self.places.add_worktree(path);
                }
                None
            }
            ("diff" | "grep", _) if arguments.contains(&"--no-index") => {
                operands.iter().fold(None, |source, word| both(source, self.file(word)))
            }
            ("push" | "commit" | "init" | "config" | "remote" | "tag" | "branch", _) => None,
            _ => {
                let away = self.places.outside(&dir);
                arguments.iter().fold(away, |source, word| both(source, self.fetched_from(word)))
            }
        }
    }

    /// `FETCH_HEAD`, `upstream/main`, after a fetch from there.
    fn fetched_from(&self, word: &str) -> Source {
        let mut refs = word.split("..").flat_map(|part| part.split([':', '^', '~']));
        refs.find_map(|part| {
            let part = part.trim_start_matches('.');
            let remote = part.split_once('/').map_or(part, |(remote, _)| remote);
            self.fetched.get(remote).cloned()
        })
    }

    /// Is this the session's own repository? `None`: the default, which is.
    fn is_own_repository(&self, dir: &Path, from: &str) -> bool {
        if from == "origin" || self.fetched.contains_key(&format!("{from}=")) {
            return true;
        }
        match name_of_url(from) {
            Some(name) => Some(name.as_str()) == self.own,
            None => {
                let path = self.places.resolve(dir, from);
                from.contains(['/', '.']) && self.places.is_own(&path) && !self.places.is_brought(&path)
            }
        }
    }

    fn fetch(&mut self, dir: &Path, from: Option<&str>) -> Source {
        // Elsewhere, its own remote is another repository's.
        if dir != self.dir && !self.places.is_own(dir) || self.places.is_brought(dir) {
            return self.places.outside(dir);
        }
        let Some(from) = from.filter(|from| !self.is_own_repository(dir, from)) else {
            self.fetched.remove("FETCH_HEAD");
            return None;
        };
        let hosts = vec![repository_host(from)];
        self.fetched.insert("FETCH_HEAD".to_owned(), hosts.clone());
        self.fetched.insert(from.to_owned(), hosts.clone());
        Some(hosts)
    }

    fn clone_repository(&mut self, dir: &Path, from: &str, to: Option<&str>) -> Source {
        let base = from.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
        let to = self.places.resolve(dir, to.unwrap_or(base.strip_suffix(".git").unwrap_or(base)));
        if self.is_own_repository(dir, from) {
            self.places.add_worktree(to);
            return None;
        }
        let hosts = vec![repository_host(from)];
        self.places.bring(to, &hosts);
        Some(hosts)
    }
}

/// The host of a repository's address, or the name of the remote.
fn repository_host(from: &str) -> String {
    let name = name_of_url(from).and_then(|name| name.split('/').next().map(str::to_owned));
    name.unwrap_or_else(|| from.rsplit('@').next().unwrap_or_default().chars().take(100).collect())
}
