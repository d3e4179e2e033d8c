//! What git prints: of the session's own repository, or of another one.

use crate::base::repository::name_of_url;
use crate::memory::addresses::{host_of, hosts};
use crate::memory::outside::call::{Call, Origin, hosts_or};
use crate::memory::outside::commands::Shell;
use std::path::Path;

impl Shell {
    pub(super) fn git(&mut self, call: &Call) {
        let mut dir = self.dir.clone();
        let mut words = call.arguments();
        let mut at = 0;
        let command = loop {
            at += 1;
            let Some(word) = words.next() else { return };
            match word {
                "-C" | "--git-dir" | "--work-tree" => {
                    at += 1;
                    dir = self.places.resolve(&dir, words.next().unwrap_or_default());
                }
                "-c" | "--namespace" | "--exec-path" | "--config-env" | "--super-prefix" => {
                    at += 1;
                    words.next();
                }
                _ if !word.starts_with('-') => break word,
                _ => {
                    let value =
                        ["--git-dir=", "--work-tree="].iter().find_map(|name| word.strip_prefix(name));
                    dir = value.map_or(dir.clone(), |value| self.places.resolve(&dir, value));
                }
            }
        };
        let call = Call { words: call.words.get(at..).unwrap_or_default(), ..call.clone() };
        let operands = call.operands("git");
        match (command, operands.first().copied()) {
            ("clone", Some(from)) => self.clone_repository(&dir, from, operands.get(1).copied()),
            ("fetch" | "pull" | "ls-remote", from) => self.fetch(&dir, from),
            ("remote", Some("update" | "show")) => self.fetch(&dir, operands.get(1).copied()),
            ("remote", Some("add" | "set-url")) => {
                if let [_, name, url, ..] = operands[..]
                    && name_of_url(url) == self.own
                {
                    self.fetched.insert(format!("{name}="), Vec::new());
                }
            }
            ("submodule", Some("add" | "update")) => {
                let found = operands.iter().filter_map(|word| host_of(word));
                self.add(Some(hosts_or(found.collect(), "git")));
            }
            ("archive", _) if call.any(|word| word.starts_with("--remote")) => {
                self.add(Some(call.arguments().flat_map(hosts).collect()));
            }
            ("worktree", Some("add")) => {
                if let Some(path) = operands.get(1) {
                    let path = self.places.resolve(&dir, path);
                    self.places.add_worktree(path);
                }
            }
            ("diff" | "grep", _) if call.any(|word| word == "--no-index") => {
                operands.iter().for_each(|word| self.file(word));
            }
            ("push" | "commit" | "init" | "config" | "remote" | "tag" | "branch", _) => {}
            _ => {
                self.add_path(&dir);
                call.arguments().for_each(|word| self.add(self.fetched_from(word)));
            }
        }
    }

    /// `FETCH_HEAD`, `upstream/main`, after a fetch from there.
    fn fetched_from(&self, word: &str) -> Origin {
        let mut refs = word.split("..").flat_map(|part| part.split([':', '^', '~']));
        refs.find_map(|part| {
            let part = part.trim_start_matches('.');
            let remote = part.split_once('/').map_or(part, |(remote, _)| remote);
            self.fetched.get(remote).cloned()
        })
    }

    /// Is this the session's own repository?
    fn is_own_repository(&self, dir: &Path, from: &str) -> bool {
        if from == "origin" || self.fetched.contains_key(&format!("{from}=")) {
            return true;
        }
        match name_of_url(from) {
            Some(name) => Some(name) == self.own,
            None => {
                let path = self.places.resolve(dir, from);
                from.contains(['/', '.']) && self.places.is_own(&path) && !self.places.is_brought(&path)
            }
        }
    }

    /// Without a name it is the default, which is the repository's own.
    fn fetch(&mut self, dir: &Path, from: Option<&str>) {
        // Elsewhere, its own remote is another repository's.
        if dir != self.dir && !self.places.is_own(dir) || self.places.is_brought(dir) {
            return self.add_path(dir);
        }
        let Some(from) = from.filter(|from| !self.is_own_repository(dir, from)) else {
            self.fetched.remove("FETCH_HEAD");
            return;
        };
        let hosts = vec![repository_host(from)];
        for name in ["FETCH_HEAD", from] {
            self.fetched.insert(name.to_owned(), hosts.clone());
        }
        self.add(Some(hosts));
    }

    fn clone_repository(&mut self, dir: &Path, from: &str, to: Option<&str>) {
        let base = from.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
        let to = self.places.resolve(dir, to.unwrap_or(base.strip_suffix(".git").unwrap_or(base)));
        if self.is_own_repository(dir, from) {
            return self.places.add_worktree(to);
        }
        let hosts = vec![repository_host(from)];
        self.places.bring(to, &hosts);
        self.add(Some(hosts));
    }
}

/// The host of a repository's address, or the name of the remote.
fn repository_host(from: &str) -> String {
    let name = name_of_url(from).and_then(|name| name.split('/').next().map(str::to_owned));
    name.unwrap_or_else(|| from.rsplit('@').next().unwrap_or_default().chars().take(100).collect())
}
