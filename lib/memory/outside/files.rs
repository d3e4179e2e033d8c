//! Programs that print, search, list or copy files.

use crate::base::reach;
use crate::memory::lists::List;
use crate::memory::outside::call::{Call, Origin, is_cluster, is_remote, is_silent, remote_host};
use crate::memory::outside::commands::Shell;
use crate::memory::outside::places::DEEP;
use crate::memory::outside::shell::{ShellWord, UNKNOWN};
use std::path::{Path, PathBuf};

impl Shell {
    /// Reads a file that a word names.
    pub(super) fn file(&mut self, word: &str) {
        let source = self.source_of(word);
        self.add(source);
    }

    fn source_of(&mut self, word: &str) -> Origin {
        // `cat $file`: which one it is, the loop around it says.
        let is_address = word.contains("://") && !word.starts_with("file://");
        if word.is_empty() || word == "-" || word.starts_with(UNKNOWN) || word.contains('\n') || is_address {
            return None;
        }
        let mut found: Origin = None;
        for word in alternatives(word) {
            let path = self.path(&word);
            if let Some(hosts) = self.places.outside(&path) {
                found.get_or_insert_default().extend(hosts);
            }
        }
        found
    }

    /// A program that prints files, which may have a pattern or a program before them.
    pub(super) fn reader(&mut self, call: &Call, has_pattern: bool, valued: &[&str]) {
        let name = call.name.as_str();
        // Where the pattern or the program is an option, all operands are files.
        let given = List("pattern options");
        let given = given.after(name).or(given.after("all")).unwrap_or_default();
        let is_given = call.option(given).is_some() || call.any(|word| given.contains(&word));
        let operands =
            call.operands_but(&[valued, &["-e", "--regexp", "--expression", "--file"][..]].concat());
        let files = operands.get(usize::from(has_pattern && !is_given)..).unwrap_or_default();
        let named = call.arguments().filter_map(|word| word.strip_prefix("--file="));
        files.iter().copied().chain(named).for_each(|file| self.file(file));
        let is_recursive = |word: &str| is_cluster(word, "rR") || word == "--recursive";
        if List("searchers").has(name) || name.ends_with("grep") && call.any(is_recursive) {
            let is_nameless = call.any(|word| is_cluster(word, "h") || word == "--no-filename");
            let dirs: Vec<PathBuf> = files.iter().map(|word| self.path(word)).collect();
            let dirs = if dirs.is_empty() { vec![self.dir.clone()] } else { dirs };
            self.searched(&dirs, is_nameless);
        }
    }

    /// A search through directories: its output says in which files it found something.
    pub(super) fn searched(&mut self, dirs: &[PathBuf], is_nameless: bool) {
        for dir in dirs.iter().filter(|_| is_nameless) {
            self.add(self.places.brought_below(dir));
        }
        let output = std::mem::take(&mut self.output);
        let mut last = "";
        for line in output.lines() {
            let name = line.split(':').next().unwrap_or_default().trim();
            // Several lines of one file stand together.
            if name.len() > 400 || name.is_empty() || name == last || name.contains(char::is_whitespace) {
                continue;
            }
            last = name;
            let path = self.path(name);
            if dirs.iter().any(|dir| path.starts_with(dir)) && path != self.dir {
                self.add_path(&path);
            }
        }
        self.output = output;
    }

    /// `find`, `ls`: names are no text. With `-exec`, or before `xargs`, the files are read.
    pub(super) fn list(&mut self, call: &Call) {
        let is_exec = |word: &ShellWord| {
            ["-exec", "-execdir", "-ok", "-x", "-X", "--exec"].contains(&word.text.as_str())
        };
        let run = call.words.iter().position(is_exec).map(|at| {
            let mut commands = call.words[at + 1..].split(|word| word.text == ";" || word.text == "+");
            commands.next().unwrap_or_default()
        });
        if let Some(words) = run {
            self.rest(call, words);
        }
        if call.is_applied || run.is_some_and(|words| !is_silent(words)) {
            let places = call.arguments().take_while(|word| !(word.starts_with('-') && word.len() > 2));
            places.filter(|word| !word.starts_with('-')).for_each(|word| self.file(word));
        }
    }

    pub(super) fn change_directory(&mut self, call: &Call) {
        let to = call.words.iter().skip(1).find(|word| !word.text.starts_with('-') && word.text != "+1");
        let home = || (call.words.len() == 1 && call.name == "cd").then_some("~");
        match to {
            Some(word) if word.text.starts_with(UNKNOWN) => {
                let inner = word.inner.join(" ");
                if inner.contains("mktemp") {
                    self.dir = PathBuf::from("/tmp/\u{0}");
                } else if inner.contains("--show-toplevel") {
                    self.dir = self.places.start.clone();
                }
            }
            to => {
                let to = to.map(|word| word.text.as_str()).or_else(home);
                // `cd src` again and again fails, and must not make paths longer and longer.
                let dir = to.map(|to| self.path(to)).filter(|dir| dir.components().count() <= DEEP);
                self.dir = dir.unwrap_or_else(|| self.dir.clone());
            }
        }
    }

    /// What is copied or unpacked is still from where it was.
    pub(super) fn copy(&mut self, call: &Call) {
        let name = call.name.as_str();
        let mut operands = call.operands("copier");
        if name == "rsync" && operands.iter().any(|word| is_remote(word)) {
            let remote = operands.iter().filter(|word| is_remote(word));
            let hosts: Vec<String> = remote.map(|word| remote_host(word)).collect();
            self.downloaded(call, &hosts);
            return self.add(Some(hosts));
        }
        let is_unpacked = ["tar", "unzip", "7z", "gunzip"].contains(&name);
        let folder = call.option(&["-t", "--target-directory", "-C", "--directory", "-d"]);
        let folder = folder.filter(|_| name != "ln" && name != "gunzip");
        let target = match folder {
            _ if name == "dd" => operands.iter().find_map(|word| word.strip_prefix("of=")),
            Some(folder) => Some(folder),
            None if is_unpacked => None,
            None => operands.pop(),
        };
        let prints = |word: &str| is_cluster(word, "Op") || word == "--to-stdout";
        let is_printed =
            is_unpacked && (call.any(prints) || call.arguments().next().is_some_and(is_tar_to_stdout));
        for word in operands {
            let word = word.strip_prefix("if=").unwrap_or(word);
            let Some(hosts) = self.source_of(word) else { continue };
            if let Some(target) = target {
                let path = self.path(target);
                let into = path.join(Path::new(word).file_name().unwrap_or_default());
                let is_folder = folder.is_none()
                    && (reach::within(&path, Path::is_dir).unwrap_or(false) || target.ends_with(['/', '.']));
                self.places.bring(if is_folder { into } else { path }, &hosts);
            }
            self.add(Some(hosts).filter(|_| is_printed));
        }
    }
}

/// `tar xOf x.tgz`
fn is_tar_to_stdout(word: &str) -> bool {
    word.len() < 8 && word.contains('O') && word.bytes().all(|b| b.is_ascii_alphabetic())
}

/// `a{b,c}`: `ab` and `ac`.
fn alternatives(word: &str) -> Vec<String> {
    let found = word.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    match found {
        Some((before, (inside, after))) if inside.contains(',') && !inside.contains('{') => {
            inside.split(',').map(|one| format!("{before}{one}{after}")).collect()
        }
        _ => vec![word.to_owned()],
    }
}
