//! What a shell's command line prints: does it come from the repository and its programs, or from outside?

use crate::memory::addresses::{host_of, hosts, is_loopback};
use crate::memory::lists::List;
use crate::memory::outside::call::{Call, LISTERS, Origin, QUIET, hosts_or, is_cluster, is_silent};
use crate::memory::outside::places::Places;
use crate::memory::outside::shell::{self, Redirect, ShellWord, SimpleCommand, UNKNOWN, texts};
use crate::memory::programs::{self, PREFIXES, SHELLS};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// How deep `bash -c` in `bash -c` is followed.
const DEPTH: usize = 5;
/// Longer pipelines are not read.
const PIPELINE: usize = 200;

/// A session's shell.
#[derive(Debug, Default)]
pub(super) struct Shell {
    pub(super) places: Places,
    /// `host/owner/name` of the repository.
    pub(super) own: Option<String>,
    /// The working directory.
    pub(super) dir: PathBuf,
    /// What was fetched of other repositories: `FETCH_HEAD`, names of remotes.
    pub(super) fetched: HashMap<String, Vec<String>>,
    /// What the present command printed.
    pub(super) output: String,
    /// Where that comes from, as far as it has been found.
    pub(super) found: Origin,
    /// The words of the commands that ran in the repository.
    pub(super) ran: Vec<Vec<String>>,
}

impl Shell {
    pub(super) fn add(&mut self, source: Origin) {
        if let Some(hosts) = source {
            self.found.get_or_insert_default().extend(hosts);
        }
    }

    fn note_down(&mut self, call: &Call) {
        if self.places.is_own(&self.dir) {
            self.ran.push(call.texts());
        }
    }

    /// Runs a line, which stands so deep in others.
    pub(super) fn line(&mut self, line: &str, depth: usize) {
        if depth > DEPTH {
            return self.add(Some(Vec::new()));
        }
        let home = self.places.home.as_ref().map(|home| home.to_string_lossy().into_owned());
        let line = shell::parse(line, home.as_deref());
        self.add(line.is_lost.then(Vec::new));
        let mut dirs = HashMap::from([(0, self.dir.clone())]);
        for pipeline in line.commands.chunk_by(|one, other| one.pipeline == other.pipeline) {
            let before = self.found.take();
            self.add((pipeline.len() > PIPELINE).then(Vec::new));
            for (index, command) in pipeline.iter().enumerate().take(PIPELINE) {
                let mut scope = command.scope;
                while !dirs.contains_key(&scope) {
                    scope = line.around[scope];
                }
                self.dir = dirs[&scope].clone();
                let is_applied = pipeline[index + 1..].iter().any(applies);
                self.simple(command, &pipeline[..index], is_applied, depth);
                dirs.insert(command.scope, self.dir.clone());
            }
            let found = std::mem::replace(&mut self.found, before);
            self.mark_files(pipeline, found.as_deref());
            self.add(found);
        }
        self.dir = dirs.remove(&0).unwrap_or_default();
    }

    /// Takes note of the files that a pipeline writes: they are from where it read.
    fn mark_files(&mut self, pipeline: &[SimpleCommand], source: Option<&[String]>) {
        let mut files: Vec<&str> = Vec::new();
        for command in pipeline {
            let is_marked =
                |how: Redirect| how == Redirect::Write || how == Redirect::Append && source.is_some();
            let written = command.redirects.iter().filter(|(how, _)| is_marked(*how));
            files.extend(written.map(|(_, file)| file.as_str()));
            if let Some(call) = Call::of(command)
                && call.name == "tee"
                && (source.is_some() || call.option(&["-a", "--append"]).is_none())
            {
                files.extend(call.operands(""));
            }
        }
        for file in files.into_iter().filter(|file| !file.starts_with("/dev/")) {
            let path = self.path(file);
            match source {
                Some(hosts) => self.places.bring(path, hosts),
                None => self.places.write(path),
            }
        }
    }

    fn simple(&mut self, command: &SimpleCommand, before: &[SimpleCommand], is_applied: bool, depth: usize) {
        for (redirect, file) in &command.redirects {
            if let Some(host) = device(file) {
                self.add(Some(vec![host]));
            } else if *redirect == Redirect::Read {
                self.file(file);
            }
        }
        if let Some(call) = Call::of(command) {
            self.call(&Call { before, is_applied, depth, ..call });
        }
    }

    fn call(&mut self, call: &Call) {
        let name = call.name.as_str();
        if let Some(host) = call.arguments().find_map(device) {
            return self.add(Some(vec![host]));
        }
        if is_unclear(&call.words[0]) {
            return self.add(unclear(call));
        }
        if let Some(valued) = PREFIXES.after(name) {
            return self.prefixed(call, valued);
        }
        if call.is_runner() {
            return self.rest(call, &call.words[2..]);
        }
        if SHELLS.has(name) || name == "eval" || name == "su" {
            return self.shell(call);
        }
        self.note_down(call);
        self.program(&call.words[0].text);
        match name {
            _ if programs::is_network(name) => self.network(call),
            _ if List("agents").has(name) => self.add((!call.is_about()).then(|| vec![name.to_owned()])),
            "git" => self.git(call),
            "cd" | "pushd" => self.change_directory(call),
            "for" | "select" => {
                let values = call.words.iter().skip_while(|word| word.text != "in").skip(1);
                values.for_each(|word| self.file(&word.text));
            }
            _ if List("copiers").has(name) => self.copy(call),
            _ if LISTERS.has(name) => self.list(call),
            _ => self.other(call),
        }
    }

    /// Interpreters, package managers, programs that print files.
    fn other(&mut self, call: &Call) {
        let name = call.name.as_str();
        let is_local = call.any(|word| ["--offline", "--no-install"].contains(&word));
        let all: Vec<&str> = call.arguments().collect();
        if !is_local && programs::fetches(name, &call.operands("manager"), &all) {
            // A package is no host, and neither is a file with their names.
            let addresses = call.arguments().filter(|word| word.contains(['/', ':']));
            return self.add(Some(hosts_or(addresses.filter_map(host_of).collect(), name)));
        }
        if let Some(options) = programs::interpreter(name) {
            self.interpreter(call, options);
        } else if let Some(valued) = List("readers").after(name) {
            self.reader(call, false, valued);
        } else if let Some(valued) = List("pattern readers").after(name) {
            self.reader(call, true, valued);
        } else if !QUIET.has(name) {
            // The programs of another directory are not the repository's.
            if !self.places.is_own(&self.dir) || self.places.is_brought(&self.dir) {
                return self.add_path(&self.dir.clone());
            }
            self.add(echoed(&self.output));
            for word in call.arguments() {
                let brought = self.places.brought_from(&self.path(word)).cloned();
                self.add(brought);
            }
        }
    }

    /// `sudo`, `env`, `xargs` and the like: what stands behind it counts.
    fn prefixed(&mut self, call: &Call, valued: &[&str]) {
        let at = call.prefix(valued);
        match call.words.get(at..).unwrap_or_default() {
            // `command -v curl` only says where it is.
            [word, ..] if call.name == "command" && word.text.starts_with('-') => {}
            [word, line @ ..] if call.name == "env" && word.text.starts_with('-') => {
                self.line(&texts(line).join(" "), call.depth + 1);
            }
            [line] if line.text.contains(' ') && ["watch", "parallel"].contains(&call.name.as_str()) => {
                self.line(&line.text, call.depth + 1);
            }
            rest => self.rest(call, rest),
        }
    }

    /// A command that stands in the words of another one.
    pub(super) fn rest(&mut self, call: &Call, words: &[ShellWord]) {
        if call.depth > DEPTH {
            self.add(Some(Vec::new()));
        } else if let Some(inner) = (Call { depth: call.depth + 1, ..call.clone() }).with(words) {
            self.call(&inner);
        }
    }

    /// `bash -c '…'`, `bash FILE`, `… | bash`, `eval …`
    fn shell(&mut self, call: &Call) {
        if call.name == "eval" {
            let line = call.arguments().collect::<Vec<_>>().join(" ");
            // What is printed and then run was judged as it was printed.
            if !line.contains(UNKNOWN) {
                self.line(&line, call.depth + 1);
            }
            return;
        }
        let mut words = call.arguments();
        while let Some(word) = words.next() {
            match word {
                word if word == "--command" || is_cluster(word, "c") => {
                    return self.line(words.next().unwrap_or(""), call.depth + 1);
                }
                "-o" | "+o" | "-O" | "--rcfile" | "--init-file" => {
                    words.next();
                }
                word if word.starts_with(['-', '+']) => {}
                // A user, before the command.
                _ if call.name == "su" => {}
                file => {
                    self.note_down(call);
                    return self.script(file);
                }
            }
        }
        if call.name != "su" {
            self.line(call.input, call.depth + 1);
            call.before.iter().for_each(|command| self.line(&printed(command), call.depth + 1));
        }
    }

    /// A program by its path: one that was brought here, or that lies beyond the repository and the system.
    fn program(&mut self, word: &str) {
        if !word.contains('/') || word.contains(UNKNOWN) {
            return;
        }
        let path = self.path(word);
        let system =
            ["/bin", "/sbin", "/usr", "/opt", "/nix", "/snap", "/System", "/Library", "/Applications"];
        let is_installed = system.iter().any(|place| path.starts_with(place))
            || path.components().any(|part| part.as_os_str() == "bin" || part.as_os_str() == "shims");
        if !(is_installed || self.places.is_own(&path)) || self.places.is_brought(&path) {
            self.add_path(&path);
        }
    }

    /// A script that is run.
    fn script(&mut self, script: &str) {
        let path = if script.contains('/') { script.to_owned() } else { format!("./{script}") };
        self.program(&path);
    }

    pub(super) fn path(&self, word: &str) -> PathBuf {
        self.places.resolve(&self.dir, word)
    }

    pub(super) fn add_path(&mut self, path: &Path) {
        let source = self.places.outside(path);
        self.add(source);
    }

    fn interpreter(&mut self, call: &Call, options: &[&str]) {
        if let Some(at) = call.words.iter().position(|word| word.text == "-m") {
            let alone = Call { input: "", before: &[], is_applied: false, ..call.clone() };
            if let Some(module) = alone.with(call.words.get(at + 1..).unwrap_or_default()) {
                self.other(&module);
            }
            return;
        }
        let is_cluster_of_code = ["perl", "ruby"].contains(&call.name.as_str());
        let is_code = |word: &str| {
            options.contains(&word.to_lowercase().as_str())
                || is_cluster_of_code && is_cluster(word, "eE") && word.ends_with(['e', 'E'])
        };
        let mut code: Vec<String> = Vec::new();
        let mut files = Vec::new();
        let mut words = call.arguments();
        while let Some(word) = words.next() {
            if is_code(word) {
                code.push(words.next().unwrap_or("").to_owned());
            } else if !word.starts_with('-') {
                files.push(word);
            }
        }
        match files.first() {
            _ if !code.is_empty() && is_cluster_of_code => files.iter().for_each(|file| self.file(file)),
            _ if !code.is_empty() => {}
            _ if files.iter().take(2).any(|file| file.contains("://")) => {
                return self.add(Some(hosts(&files.join(" "))));
            }
            Some(script) if *script != "run" && *script != "test" => return self.script(script),
            Some(_) => {}
            None => {
                code.extend(std::iter::once(call.input.to_owned()).chain(call.before.iter().map(printed)))
            }
        }
        self.code(&code.join("\n"));
    }

    /// Code that stands in the command.
    fn code(&mut self, code: &str) {
        let found = hosts(code);
        let mut words = code.split(|c: char| !(c.is_alphanumeric() || "-_./".contains(c)));
        let lower = code.to_lowercase();
        let asks =
            List("network code").is_within(&lower) || !found.is_empty() && words.any(programs::is_network);
        if asks && (found.is_empty() || !found.iter().all(|host| is_loopback(host))) {
            self.add(Some(found));
        } else if List("reading code").is_within(&lower) || lower.contains("open ") {
            let quoted = code.split(['"', '\'', '`']).skip(1).step_by(2);
            let paths = quoted.filter(|text| text.contains('/') || text.starts_with('~'));
            paths.filter(|text| !text.contains(char::is_whitespace)).for_each(|path| self.file(path));
        }
    }
}

/// `make` prints the commands that it runs: the hosts that one of them asks.
fn echoed(output: &str) -> Origin {
    let is_asking = |line: &&str| {
        let line = line.trim_start_matches(['$', '+', '>', ' ']);
        line.split(' ').next().is_some_and(programs::is_network) && line.contains("://")
    };
    let found: Vec<String> = output.lines().filter(is_asking).flat_map(hosts).collect();
    found.iter().any(|host| !is_loopback(host)).then_some(found)
}

/// A program that is only known when the command runs: from outside, if it is told an address.
fn unclear(call: &Call) -> Origin {
    let inner = call.words[0].inner.join(" ");
    let mut names = inner.split(|c: char| c.is_whitespace() || "/;|&()".contains(c));
    let hosts: Vec<String> = call.arguments().filter_map(host_of).filter(|host| !is_loopback(host)).collect();
    (names.any(programs::is_network) || !hosts.is_empty()).then_some(hosts)
}

/// Does a command run something with each name that it reads?
fn applies(command: &SimpleCommand) -> bool {
    command.words.iter().take(3).any(|word| ["xargs", "parallel", "while"].contains(&word.text.as_str()))
        && !Call::of(command).is_some_and(|call| is_silent(&call.words[1..]))
}

/// Is the program only known when the command runs?
fn is_unclear(word: &ShellWord) -> bool {
    word.text.contains([UNKNOWN, '*', '?'])
        || word.text.contains('{') && word.text.contains(',')
        || word.text.contains('[') && word.text.len() > 2
}

/// `/dev/tcp/HOST/PORT`
fn device(word: &str) -> Option<String> {
    let (_, rest) = word.split_once("/dev/tcp/").or_else(|| word.split_once("/dev/udp/"))?;
    let host = rest.split('/').next().unwrap_or_default().to_lowercase();
    (!is_loopback(&host)).then_some(host)
}

/// What `echo` would print into a shell.
fn printed(command: &SimpleCommand) -> String {
    match texts(&command.words)[..] {
        ["echo" | "printf", ref words @ ..] => words.join(" ").replace("\\n", "\n"),
        _ => command.input.clone(),
    }
}
