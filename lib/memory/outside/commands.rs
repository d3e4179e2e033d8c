//! What a shell's command line prints: does it come from the repository and its programs, or from outside?

use crate::memory::outside::addresses::{host_of, hosts, is_loopback};
use crate::memory::outside::places::{DEEP, Places};
use crate::memory::outside::programs::{self, LISTERS, SHELLS};
use crate::memory::outside::shell::{self, Redirect, SimpleCommand, UNKNOWN, Word, assignment};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// How deep `bash -c` in `bash -c` is followed.
const DEPTH: usize = 5;
/// Longer pipelines are not read.
const PIPELINE: usize = 200;

/// A session's shell.
pub(super) struct Shell<'a> {
    pub(super) places: &'a mut Places,
    /// `host/owner/name` of the repository.
    pub(super) own: Option<&'a str>,
    /// The working directory.
    pub(super) dir: PathBuf,
    /// What was fetched of other repositories: `FETCH_HEAD`, names of remotes.
    pub(super) fetched: &'a mut HashMap<String, Vec<String>>,
    /// What the command printed.
    pub(super) output: &'a str,
}

/// `Some`: from outside; with the hosts that are known.
pub(super) type Source = Option<Vec<String>>;

/// Two sources as one.
pub(super) fn both(one: Source, other: Source) -> Source {
    match (one, other) {
        (Some(mut one), Some(other)) => {
            one.extend(other);
            Some(one)
        }
        (one, other) => one.or(other),
    }
}

/// A simple command without what stands before it: the name of its program, and the words after it.
pub(super) struct Call<'c> {
    pub(super) name: String,
    pub(super) words: &'c [Word],
    pub(super) command: &'c SimpleCommand,
    /// It gets its arguments from a pipe.
    pub(super) is_applied: bool,
}

impl<'c> Call<'c> {
    /// The words after the program's name.
    fn arguments(&self) -> impl Iterator<Item = &'c str> + use<'c> {
        self.words.iter().skip(1).map(|word| word.text.as_str())
    }

    /// The arguments that are no options, without the values of these options.
    pub(super) fn operands(&self, valued: &[&str]) -> Vec<&'c str> {
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
    fn option(&self, names: &[&str]) -> Option<&'c str> {
        let mut words = self.arguments();
        while let Some(word) = words.next() {
            for name in names {
                match word.strip_prefix(name) {
                    Some("") => return words.next(),
                    Some(value) if name.starts_with("--") => {
                        if let Some(value) = value.strip_prefix('=') {
                            return Some(value);
                        }
                    }
                    Some(value) => return Some(value),
                    None => {}
                }
            }
        }
        None
    }
}

impl Shell<'_> {
    pub(super) fn run(&mut self, line: &str) -> Source {
        self.line(line, 0)
    }

    fn line(&mut self, line: &str, depth: usize) -> Source {
        let home = self.places.home.as_ref().map(|home| home.to_string_lossy().into_owned());
        let line = shell::parse(line, home.as_deref());
        let mut source = (line.is_lost || depth > DEPTH).then(Vec::new);
        if depth > DEPTH {
            return source;
        }
        let mut dirs = HashMap::from([(0, self.dir.clone())]);
        for pipeline in line.commands.chunk_by(|one, other| one.pipeline == other.pipeline) {
            let mut found = (pipeline.len() > PIPELINE).then(Vec::new);
            for (index, command) in pipeline.iter().enumerate().take(PIPELINE) {
                let mut scope = command.scope;
                while scope != 0 && !dirs.contains_key(&scope) {
                    scope = line.around.get(scope).copied().unwrap_or_default();
                }
                self.dir = dirs.get(&scope).cloned().unwrap_or_default();
                let before = &pipeline[..index];
                let is_applied = pipeline[index + 1..].iter().any(applies);
                found = both(found, self.simple(command, before, is_applied, depth));
                dirs.insert(command.scope, self.dir.clone());
            }
            self.mark_files(pipeline, found.as_deref());
            source = both(source, found);
        }
        self.dir = dirs.remove(&0).unwrap_or_default();
        source
    }

    /// Takes note of the files that a pipeline writes: they are from where it read.
    fn mark_files(&mut self, pipeline: &[SimpleCommand], source: Option<&[String]>) {
        let mut files: Vec<&str> = Vec::new();
        for command in pipeline {
            let written = command.redirects.iter().filter(|(redirect, _)| match source {
                Some(_) => *redirect != Redirect::Read,
                None => *redirect == Redirect::Write,
            });
            files.extend(written.map(|(_, file)| file.as_str()));
            if let Some(call) = call(command, false)
                && call.name == "tee"
                && (source.is_some() || call.option(&["-a", "--append"]).is_none())
            {
                files.extend(call.operands(&[]));
            }
        }
        for file in files.into_iter().filter(|file| !file.starts_with("/dev/")) {
            let path = self.places.resolve(&self.dir, file);
            match source {
                Some(hosts) => self.places.bring(path, hosts),
                None => self.places.write(path),
            }
        }
    }

    /// `before`: the commands that stand before it in its pipeline; `is_applied`: what it prints becomes arguments.
    fn simple(
        &mut self,
        command: &SimpleCommand,
        before: &[SimpleCommand],
        is_applied: bool,
        depth: usize,
    ) -> Source {
        let mut source = None;
        for (redirect, file) in &command.redirects {
            if let Some(host) = device(file) {
                source = both(source, Some(vec![host]));
            } else if *redirect == Redirect::Read {
                source = both(source, self.file(file));
            }
        }
        let Some(call) = call(command, is_applied) else { return source };
        both(source, self.call(&call, before, depth))
    }

    fn call(&mut self, call: &Call, before: &[SimpleCommand], depth: usize) -> Source {
        let name = call.name.as_str();
        if let Some(host) = call.arguments().find_map(device) {
            return Some(vec![host]);
        }
        if is_unclear(&call.words[0]) {
            return self.unclear(call);
        }
        if let Some(valued) = programs::prefix(name) {
            return self.prefixed(call, valued, before, depth);
        }
        if programs::is_runner(name, call.arguments().next().unwrap_or_default()) {
            return self.rest(call, &call.words[2..], before, depth);
        }
        if SHELLS.contains(&name) || name == "eval" || name == "su" {
            return self.shell(call, before, depth);
        }
        let program = self.program(&call.words[0].text);
        if programs::is_network(name) {
            let source = if self.is_own_run(call) { None } else { network(call) };
            return both(program, source.inspect(|hosts| self.downloaded(call, hosts)));
        }
        if programs::is_agent(name) {
            return if is_about(call) { program } else { Some(vec![name.to_owned()]) };
        }
        let source = match name {
            "git" => self.git(call),
            "cd" | "pushd" => self.change_directory(call),
            "for" | "select" => {
                let values =
                    call.words.iter().map(|word| word.text.as_str()).skip_while(|word| *word != "in");
                values.skip(1).fold(None, |source, word| both(source, self.file(word)))
            }
            "cp" | "mv" | "ln" | "install" | "rsync" | "tar" | "unzip" | "7z" | "gunzip" | "dd" => {
                self.copy(call)
            }
            _ if LISTERS.contains(&name) => self.list(call, before, depth),
            _ => self.other(call, before),
        };
        both(program, source)
    }

    /// `gh run view --log`: what the repository's own workflows printed, as its programs print it here.
    fn is_own_run(&self, call: &Call) -> bool {
        let repo = call.option(&["-R", "--repo"]);
        let words = call.operands(&["-R", "--repo"]);
        let is_own = repo.is_none_or(|repo| self.own.is_some_and(|own| own.ends_with(&format!("/{repo}"))));
        is_own && programs::shows_runs(&call.name, words.first().unwrap_or(&""), words.get(1).unwrap_or(&""))
    }

    /// Interpreters, package managers, programs that print files.
    fn other(&mut self, call: &Call, before: &[SimpleCommand]) -> Source {
        let name = call.name.as_str();
        let is_local = call.arguments().any(|word| ["--offline", "--no-install"].contains(&word));
        let valued = [
            "--prefix", "-C", "--cwd", "--dir", "--filter", "-F", "-w", "--workspace", "--registry",
            "--manifest-path", "--directory", "--project", "-p", "-c", "--config",
        ];
        let all: Vec<&str> = call.arguments().collect();
        if programs::fetches(name, &call.operands(&valued), &all) && !is_local {
            // A package is no host, and neither is a file with their names.
            let addresses = call.arguments().filter(|word| word.contains(['/', ':']));
            let hosts: Vec<String> = addresses.filter_map(host_of).collect();
            return Some(if hosts.is_empty() { vec![name.to_owned()] } else { hosts });
        }
        if let Some(options) = programs::interpreter(name) {
            return self.interpreter(call, options, before);
        }
        match programs::reader(name) {
            Some((before, valued)) => self.reader(call, before, valued),
            None if programs::is_quiet(name) => None,
            // The programs of another directory are not the repository's.
            None if self.places.is_own(&self.dir) && !self.places.is_brought(&self.dir) => {
                let brought = call.arguments().map(|word| self.places.resolve(&self.dir, word));
                let brought = brought.filter_map(|path| self.places.brought_from(&path).cloned());
                brought.fold(self.echoed(), |source, hosts| both(source, Some(hosts)))
            }
            None => self.places.outside(&self.dir),
        }
    }

    /// `make` prints the commands that it runs: the hosts that one of them asks.
    fn echoed(&self) -> Source {
        let is_asking = |line: &&str| {
            let line = line.trim_start_matches(['$', '+', '>', ' ']);
            line.split(' ').next().is_some_and(programs::is_network) && line.contains("://")
        };
        let found: Vec<String> = self.output.lines().filter(is_asking).flat_map(hosts).collect();
        found.iter().any(|host| !is_loopback(host)).then_some(found)
    }

    /// A program that is only known when the command runs: from outside, if it is told an address.
    fn unclear(&self, call: &Call) -> Source {
        let inner = call.words[0].inner.join(" ");
        let names = inner.split(|c: char| c.is_whitespace() || "/;|&()".contains(c));
        let is_network = names.into_iter().any(programs::is_network);
        let hosts: Vec<String> =
            call.arguments().filter_map(host_of).filter(|host| !is_loopback(host)).collect();
        (is_network || !hosts.is_empty()).then_some(hosts)
    }

    /// `sudo`, `env`, `xargs` and the like: what stands behind it counts.
    fn prefixed(&mut self, call: &Call, valued: &[&str], before: &[SimpleCommand], depth: usize) -> Source {
        let mut at = 1;
        while let Some(word) = call.words.get(at).map(|word| word.text.as_str()) {
            match word {
                // `command -v curl` only says where it is.
                "-v" | "-V" if call.name == "command" => return None,
                "-S" | "--split-string" if call.name == "env" => {
                    let line: Vec<&str> = call.arguments().skip(at).collect();
                    return self.line(&line.join(" "), depth + 1);
                }
                "--" => {}
                _ if word.starts_with('-') => at += usize::from(valued.contains(&word)),
                _ if assignment(word).is_some() => {}
                _ => break,
            }
            at += 1;
        }
        // How long, and which file to lock.
        at += usize::from(["timeout", "flock", "chroot"].contains(&call.name.as_str()));
        let rest = call.words.get(at..).unwrap_or_default();
        match rest {
            [line] if line.text.contains(' ') && ["watch", "parallel"].contains(&call.name.as_str()) => {
                self.line(&line.text, depth + 1)
            }
            _ => self.rest(call, rest, before, depth),
        }
    }

    fn rest(&mut self, call: &Call, words: &[Word], before: &[SimpleCommand], depth: usize) -> Source {
        if depth > DEPTH {
            return Some(Vec::new());
        }
        let command = SimpleCommand { words: words.to_vec(), redirects: Vec::new(), ..call.command.clone() };
        let inner = self::call(&command, call.is_applied);
        let inner = inner.map(|inner| self.call(&inner, before, depth + 1));
        inner.flatten()
    }

    /// `bash -c '…'`, `bash FILE`, `… | bash`, `eval …`
    fn shell(&mut self, call: &Call, before: &[SimpleCommand], depth: usize) -> Source {
        let arguments: Vec<&str> = call.arguments().collect();
        if call.name == "eval" {
            let is_open = arguments.iter().any(|word| word.contains(UNKNOWN));
            // What is printed and then run was judged as it was printed.
            return if is_open { None } else { self.line(&arguments.join(" "), depth + 1) };
        }
        let is_code = |word: &str| {
            word == "--command" || word.starts_with('-') && !word.starts_with("--") && word.contains('c')
        };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match *word {
                word if is_code(word) => return self.line(words.next().unwrap_or(&""), depth + 1),
                "-o" | "+o" | "-O" | "--rcfile" | "--init-file" => {
                    words.next();
                }
                word if word.starts_with(['-', '+']) => {}
                // A user, before the command.
                _ if call.name == "su" => {}
                file => return self.script(file),
            }
        }
        if call.name == "su" {
            return None;
        }
        let mut source = None;
        for text in std::iter::once(call.command.input.clone()).chain(before.iter().map(printed)) {
            source = both(source, self.line(&text, depth + 1));
        }
        source
    }

    /// A program by its path: one that was brought here, or that lies beyond the repository and the system.
    fn program(&mut self, word: &str) -> Source {
        if !word.contains('/') || word.contains(UNKNOWN) {
            return None;
        }
        let path = self.places.resolve(&self.dir, word);
        let system =
            ["/bin", "/sbin", "/usr", "/opt", "/nix", "/snap", "/System", "/Library", "/Applications"];
        let is_installed = system.iter().any(|place| path.starts_with(place))
            || path.components().any(|part| part.as_os_str() == "bin" || part.as_os_str() == "shims");
        let is_usual = (is_installed || self.places.is_own(&path)) && !self.places.is_brought(&path);
        if is_usual { None } else { self.places.outside(&path) }
    }

    /// Reads a file that a word names.
    pub(super) fn file(&mut self, word: &str) -> Source {
        // `cat $file`: which one it is, the loop around it says.
        if word.is_empty() || word == "-" || word.starts_with(UNKNOWN) || word.contains('\n') {
            return None;
        }
        if word.contains("://") && !word.starts_with("file://") {
            return None;
        }
        alternatives(word).iter().fold(None, |source, word| {
            let path = self.places.resolve(&self.dir, word);
            both(source, self.places.outside(&path))
        })
    }

    fn reader(&mut self, call: &Call, before: usize, valued: &[&str]) -> Source {
        let name = call.name.as_str();
        // Where the pattern or the program is an option, all operands are files.
        let is_given = before > 0 && call.arguments().any(|word| is_pattern_option(name, word));
        let operands = call.operands(&[valued, &["-e", "--regexp", "--expression", "--file"]].concat());
        let files = operands.get(if is_given { 0 } else { before }..).unwrap_or_default();
        let mut source = files.iter().fold(None, |source, file| both(source, self.file(file)));
        for file in call.arguments().filter_map(|word| word.strip_prefix("--file=")) {
            source = both(source, self.file(file));
        }
        let is_deep = programs::is_searcher(name)
            || name.ends_with("grep")
                && call.arguments().any(|word| is_cluster(word, "rR") || word == "--recursive");
        if is_deep {
            let is_nameless = call.arguments().any(|word| is_cluster(word, "h") || word == "--no-filename");
            let dirs = if files.is_empty() { vec![self.dir.clone()] } else { self.paths(files) };
            source = both(source, self.searched(&dirs, is_nameless));
        }
        source
    }

    fn paths(&self, words: &[&str]) -> Vec<PathBuf> {
        words.iter().map(|word| self.places.resolve(&self.dir, word)).collect()
    }

    /// A search through directories: its output says in which files it found something.
    pub(super) fn searched(&mut self, dirs: &[PathBuf], is_nameless: bool) -> Source {
        let mut source = None;
        if is_nameless {
            for dir in dirs {
                source = both(source, self.places.brought_below(dir));
            }
        }
        let mut last = "";
        for line in self.output.lines() {
            let name = line.split(':').next().unwrap_or_default().trim();
            // Several lines of one file stand together.
            if name.len() > 400 || name.is_empty() || name == last || name.contains(char::is_whitespace) {
                continue;
            }
            last = name;
            let path = self.places.resolve(&self.dir, name);
            if dirs.iter().any(|dir| path.starts_with(dir)) && path != self.dir {
                source = both(source, self.places.outside(&path));
            }
        }
        source
    }

    /// `find`, `ls`: names are no text. With `-exec`, or before `xargs`, the files are read.
    fn list(&mut self, call: &Call, before: &[SimpleCommand], depth: usize) -> Source {
        let is_exec =
            |word: &Word| ["-exec", "-execdir", "-ok", "-x", "-X", "--exec"].contains(&word.text.as_str());
        let run = call.words.iter().position(is_exec);
        let command = run.map(|at| {
            let rest = call.words.get(at + 1..).unwrap_or_default();
            let end = rest.iter().position(|word| word.text == ";" || word.text == "+").unwrap_or(rest.len());
            &rest[..end]
        });
        let mut source = command.and_then(|command| self.rest(call, command, before, depth));
        let is_read = call.is_applied || command.is_some_and(|command| !is_silent(command));
        if is_read {
            let end = call.words.iter().position(|word| word.text.starts_with('-') && word.text.len() > 2);
            let words = call.words.get(1..end.unwrap_or(call.words.len())).unwrap_or_default();
            for word in words.iter().filter(|word| !word.text.starts_with('-')) {
                source = both(source, self.file(&word.text));
            }
        }
        source
    }

    fn interpreter(&mut self, call: &Call, options: &[&str], before: &[SimpleCommand]) -> Source {
        let arguments: Vec<&str> = call.arguments().collect();
        if let Some(at) = arguments.iter().position(|word| *word == "-m") {
            let module = SimpleCommand {
                words: call.words.get(at + 2..).unwrap_or_default().to_vec(),
                ..Default::default()
            };
            return self::call(&module, false).and_then(|module| self.other(&module, &[]));
        }
        let is_cluster_of_code = ["perl", "ruby"].contains(&call.name.as_str());
        let is_code = |word: &str| {
            options.contains(&word.to_lowercase().as_str())
                || is_cluster_of_code && is_cluster(word, "eE") && word.ends_with(['e', 'E'])
        };
        let mut code = String::new();
        let mut files = Vec::new();
        let mut words = arguments.iter();
        let mut has_code = false;
        while let Some(word) = words.next() {
            if is_code(word) {
                has_code = true;
                code.push_str(words.next().unwrap_or(&""));
                code.push('\n');
            } else if !word.starts_with('-') {
                files.push(*word);
            }
        }
        let mut source = None;
        match (files.first(), has_code) {
            (_, true) if is_cluster_of_code => {
                source = files.iter().fold(source, |source, file| both(source, self.file(file)));
            }
            (_, false) if files.iter().take(2).any(|file| file.contains("://")) => {
                return Some(hosts(&files.join(" ")));
            }
            (Some(script), false) if *script != "run" && *script != "test" => {
                return self.script(script);
            }
            (None, false) => {
                code.push_str(&call.command.input);
                code.extend(before.iter().map(printed));
            }
            _ => {}
        }
        both(source, self.code(&code))
    }

    /// A script that is run.
    fn script(&mut self, script: &str) -> Source {
        let path = if script.contains('/') { script.to_owned() } else { format!("./{script}") };
        self.program(&path)
    }

    /// Code that stands in the command.
    fn code(&mut self, code: &str) -> Source {
        let found = hosts(code);
        let is_loopback = !found.is_empty() && found.iter().all(|host| is_loopback(host));
        let runs = |word: &str| programs::is_network(word);
        let mut words = code.split(|c: char| !(c.is_alphanumeric() || "-_./".contains(c)));
        let asks = programs::asks_network(code) || !found.is_empty() && words.any(runs);
        if asks && !is_loopback {
            return Some(found);
        }
        if !programs::reads_files(code) {
            return None;
        }
        let quoted = code.split(['"', '\'', '`']).skip(1).step_by(2);
        let paths = quoted.filter(|text| text.contains('/') || text.starts_with('~'));
        let paths: Vec<&str> = paths.filter(|text| !text.contains(char::is_whitespace)).collect();
        paths.iter().fold(None, |source, path| both(source, self.file(path)))
    }

    fn change_directory(&mut self, call: &Call) -> Source {
        let word = call.words.iter().skip(1).find(|word| !word.text.starts_with('-') && word.text != "+1");
        match word {
            Some(word) if word.text.starts_with(UNKNOWN) => {
                let inner = word.inner.join(" ");
                if inner.contains("mktemp") {
                    self.dir = PathBuf::from("/tmp/\u{0}");
                } else if inner.contains("--show-toplevel") {
                    self.dir = self.places.start.clone();
                }
            }
            Some(word) => {
                let dir = self.places.resolve(&self.dir, &word.text);
                // `cd src` again and again fails, and must not make paths longer and longer.
                if dir.components().count() <= DEEP {
                    self.dir = dir;
                }
            }
            None if call.words.len() == 1 && call.name == "cd" => {
                self.dir = self.places.resolve(&self.dir, "~")
            }
            None => {}
        }
        None
    }

    /// What is copied or unpacked is still from where it was.
    fn copy(&mut self, call: &Call) -> Source {
        let name = call.name.as_str();
        let mut operands = call.operands(&["-t", "-C", "-d", "-m", "-o", "-g", "--strip-components", "-e"]);
        if name == "rsync" && operands.iter().any(|word| is_remote(word)) {
            let hosts: Vec<String> =
                operands.iter().filter(|word| is_remote(word)).map(|word| remote_host(word)).collect();
            self.downloaded(call, &hosts);
            return Some(hosts);
        }
        let is_unpacked = ["tar", "unzip", "7z", "gunzip"].contains(&name);
        let folder = call.option(&["-t", "--target-directory", "-C", "--directory", "-d"]);
        let folder = folder.filter(|_| name != "ln" && name != "gunzip");
        let parts: Vec<&str> = operands.iter().filter_map(|word| word.strip_prefix("of=")).collect();
        let target = match (folder, is_unpacked) {
            _ if name == "dd" => parts.first().copied(),
            (Some(folder), _) => Some(folder),
            (None, true) => None,
            (None, false) => operands.pop(),
        };
        let mut source = None;
        for word in operands {
            let word = word.strip_prefix("if=").unwrap_or(word);
            let Some(hosts) = self.file(word) else { continue };
            if let Some(target) = target {
                let path = self.places.resolve(&self.dir, target);
                let into = path.join(Path::new(word).file_name().unwrap_or_default());
                let is_folder = folder.is_none() && (path.is_dir() || target.ends_with(['/', '.']));
                self.places.bring(if is_folder { into } else { path }, &hosts);
            }
            let prints = |word: &str| is_cluster(word, "Op") || word == "--to-stdout";
            let is_printed =
                call.arguments().any(prints) || call.arguments().next().is_some_and(is_tar_to_stdout);
            if is_unpacked && is_printed {
                source = both(source, Some(hosts));
            }
        }
        source
    }

    /// The files that a network program was told to make.
    fn downloaded(&mut self, call: &Call, hosts: &[String]) {
        let mut files: Vec<String> = Vec::new();
        let folder = call.option(&["-P", "--directory-prefix", "--output-dir", "-D", "--dir"]);
        let output = call.option(&["-o", "--output", "--output-document", "-O"]);
        let base = |word: &str| {
            let path = word.split_once("://").map_or(word, |(_, rest)| rest);
            let path = path.split(['?', '#']).next().unwrap_or_default();
            path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned()
        };
        let addresses: Vec<&str> =
            call.arguments().filter(|word| host_of(word).is_some() || is_remote(word)).collect();
        match call.name.as_str() {
            "scp" | "rsync" => {
                if let Some(target) = call.operands(&[]).last() {
                    let names = addresses.iter().map(|word| base(word.rsplit(':').next().unwrap_or(word)));
                    files.extend(names.map(|name| format!("{target}/{name}")));
                    files.push((*target).to_owned());
                }
            }
            "curl" => {
                let is_named =
                    call.arguments().any(|word| is_cluster(word, "O") || word.starts_with("--remote-name"));
                files.extend(addresses.iter().filter(|_| is_named).map(|word| base(word)));
                // `-fsSLo FILE`
                let clustered = call.arguments().skip_while(|word| !programs::is_output_cluster(word)).nth(1);
                files.extend(call.option(&["-o", "--output"]).or(clustered).map(str::to_owned));
            }
            "gh" | "glab" => {
                let words = call.operands(&["-R", "--repo"]);
                if words.get(1) == Some(&"clone") {
                    files.extend(words.get(3).or(words.get(2)).map(|word| base(word)));
                }
                files.extend(folder.map(str::to_owned));
                files.extend(output.map(str::to_owned));
            }
            _ => {
                files.extend(output.map(str::to_owned));
                files.extend(addresses.iter().map(|word| base(word)));
            }
        }
        for file in files.iter().filter(|file| !file.is_empty() && *file != "-") {
            let file = match folder {
                Some(folder) if folder != file => format!("{folder}/{file}"),
                _ => file.clone(),
            };
            let path = self.places.resolve(&self.dir, &file);
            self.places.bring(path, hosts);
        }
    }
}

/// The simple command behind assignments and words like `then`.
fn call(command: &SimpleCommand, is_applied: bool) -> Option<Call<'_>> {
    let keyword = |word: &Word| {
        [
            "!", "do", "elif", "else", "if", "then", "until", "while", "{", "}", "done", "fi", "esac",
            "function",
        ]
        .contains(&word.text.as_str())
            && word.inner.is_empty()
    };
    let at = command.words.iter().position(|word| !keyword(word) && assignment(&word.text).is_none())?;
    let words = &command.words[at..];
    let name = words[0].text.rsplit('/').next().unwrap_or_default().to_lowercase();
    let name = name.strip_suffix(".exe").map_or(name.clone(), str::to_owned);
    Some(Call { name, words, command, is_applied })
}

/// Does a command run something with each name that it reads?
fn applies(command: &SimpleCommand) -> bool {
    let first = command.words.iter().map(|word| word.text.as_str());
    first.take(3).any(|word| ["xargs", "parallel", "while"].contains(&word))
        && !call(command, false).is_some_and(|call| call.words.get(1..).is_some_and(is_silent))
}

/// Commands that print nothing of the files they are given: `xargs rm`.
fn is_silent(words: &[Word]) -> bool {
    let word = words.iter().map(|word| word.text.as_str()).find(|word| !word.starts_with('-'));
    word.is_none_or(|word| programs::is_quiet(word) || LISTERS.contains(&word))
}

/// `tar xOf x.tgz`
fn is_tar_to_stdout(word: &str) -> bool {
    word.len() < 8 && word.contains('O') && word.bytes().all(|b| b.is_ascii_alphabetic())
}

/// Is the program only known when the command runs?
fn is_unclear(word: &Word) -> bool {
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

/// Is it an option of one letter each, one of which is among these?
fn is_cluster(word: &str, letters: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains(|c| letters.contains(c))
}

fn is_pattern_option(name: &str, word: &str) -> bool {
    match name {
        "awk" | "gawk" | "mawk" => word == "-f" || word == "--file",
        "jq" | "yq" => word == "-f" || word.starts_with("--from-file"),
        _ => {
            ["-e", "-f", "--regexp", "--expression", "--file", "--files"].contains(&word)
                || word.starts_with("--regexp=")
                || word.starts_with("--expression=")
        }
    }
}

/// What `echo` would print into a shell.
fn printed(command: &SimpleCommand) -> String {
    let words: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
    match words.first() {
        Some(&("echo" | "printf")) => words[1..].join(" ").replace("\\n", "\n"),
        _ => command.input.clone(),
    }
}

/// Asks for the version or for help only.
fn is_about(call: &Call) -> bool {
    let about = ["--version", "-V", "--help", "-h", "version", "help"];
    call.words.len() > 1 && call.arguments().all(|word| about.contains(&word))
}

/// `host:path`, as scp and rsync have it.
fn is_remote(word: &str) -> bool {
    word.split_once(':')
        .is_some_and(|(host, _)| !host.is_empty() && !host.contains('/') && !host.starts_with('-'))
        || word.starts_with("rsync://")
}

fn remote_host(word: &str) -> String {
    hosts(word).pop().unwrap_or_else(|| {
        let host = word.split(':').next().unwrap_or_default();
        host.rsplit('@').next().unwrap_or_default().to_lowercase()
    })
}

/// The hosts in a call, without those in what is sent.
fn found_hosts(call: &Call) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_sent = false;
    for word in call.arguments() {
        if std::mem::take(&mut is_sent) {
            continue;
        }
        is_sent = programs::is_sent(&call.name, word);
        match word.strip_prefix("--").and_then(|option| option.split_once('=')) {
            Some((option, _)) if programs::is_sent(&call.name, &format!("--{option}")) => {}
            Some((_, value)) => found.extend(host_of(value)),
            None => found.extend(host_of(word)),
        }
    }
    found
}

/// A network program: inside only where every address is this machine's.
fn network(call: &Call) -> Source {
    if is_about(call) {
        return None;
    }
    let name = call.name.as_str();
    let operands =
        call.operands(&["-p", "-i", "-l", "-o", "-F", "-J", "-P", "-w", "-c", "-s", "-L", "-R", "-D"]);
    let mut has_services = false;
    let named: Vec<String> = match name {
        "gh" => vec![call.option(&["--hostname"]).unwrap_or("github.com").to_lowercase()],
        "glab" => vec!["gitlab.com".to_owned()],
        "ssh" | "nc" | "ncat" | "netcat" | "telnet" | "sftp" | "ftp" | "lftp" => {
            operands.first().map(|word| remote_host(&word.replace("://", "@"))).into_iter().collect()
        }
        "scp" => operands.iter().filter(|word| is_remote(word)).map(|word| remote_host(word)).collect(),
        _ => {
            has_services = true;
            found_hosts(call)
        }
    };
    let is_listed = call.arguments().any(|word| ["-K", "--config", "--input-file"].contains(&word));
    // An address that is only known when the command runs may be any.
    let is_open = call.arguments().any(|word| word.starts_with(UNKNOWN) || word.contains("://\u{fffd}"));
    // `http://db:9200`: a service of the project, whose name nobody outside can have.
    let is_near = |host: &String| is_loopback(host) || has_services && !host.contains(['.', ':']);
    let is_local = !named.is_empty() && named.iter().all(is_near);
    match (is_local && !is_listed && !is_open, named.is_empty()) {
        (true, _) => None,
        (false, true) => Some(vec![name.to_owned()]),
        (false, false) => Some(named),
    }
}
