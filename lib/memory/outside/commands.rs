//! What a shell's command line prints: does it come from the repository and its programs, or from outside?

use crate::base::reach;
use crate::memory::addresses::{host_of, hosts, is_loopback};
use crate::memory::lists::List;
use crate::memory::outside::places::{DEEP, Places};
use crate::memory::outside::shell::{self, Redirect, SimpleCommand, UNKNOWN, Word, assignment};
use crate::memory::programs::{self, PREFIXES, SHELLS};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// How deep `bash -c` in `bash -c` is followed.
const DEPTH: usize = 5;
/// Longer pipelines are not read.
const PIPELINE: usize = 200;

/// Options with a value, of programs of one kind.
const VALUED: List = List("valued");
const QUIET: List = List("quiet");
const LISTERS: List = List("listers");

/// `Some`: from outside; with the hosts that are known.
pub(super) type Source = Option<Vec<String>>;

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
    pub(super) found: Source,
}

/// A simple command without what stands before it: the name of its program, and the words after it.
#[derive(Clone)]
pub(super) struct Call<'c> {
    name: String,
    words: &'c [Word],
    /// Its here-document.
    input: &'c str,
    /// The commands that stand before it in its pipeline.
    before: &'c [SimpleCommand],
    /// What it prints becomes arguments.
    is_applied: bool,
    depth: usize,
}

impl<'c> Call<'c> {
    fn new(
        command: &'c SimpleCommand,
        before: &'c [SimpleCommand],
        is_applied: bool,
        depth: usize,
    ) -> Option<Self> {
        let name = String::new();
        Call { name, words: &[], input: &command.input, before, is_applied, depth }.with(&command.words)
    }

    /// The same with other words: the command behind assignments and words like `then`.
    fn with(self, words: &'c [Word]) -> Option<Self> {
        const KEYWORDS: [&str; 14] = [
            "!", "do", "elif", "else", "if", "then", "until", "while", "{", "}", "done", "fi", "esac",
            "function",
        ];
        let is_keyword = |word: &Word| KEYWORDS.contains(&word.text.as_str()) && word.inner.is_empty();
        let at = words.iter().position(|word| !is_keyword(word) && assignment(&word.text).is_none())?;
        let words = &words[at..];
        let name = words[0].text.rsplit('/').next().unwrap_or_default().to_lowercase();
        let name = name.strip_suffix(".exe").map_or(name.clone(), str::to_owned);
        Some(Call { name, words, ..self })
    }

    /// The call of a command of a program, which is that many words behind its name.
    pub(super) fn behind(&self, words: usize) -> Call<'c> {
        Call { words: self.words.get(words..).unwrap_or_default(), ..self.clone() }
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

    fn operands_but(&self, valued: &[&str]) -> Vec<&'c str> {
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
                    Some(value) if !name.starts_with("--") => return Some(value),
                    Some(value) if value.starts_with('=') => return Some(&value[1..]),
                    _ => {}
                }
            }
        }
        None
    }

    /// It asks for the version or for help only.
    fn is_about(&self) -> bool {
        let about = ["--version", "-V", "--help", "-h", "version", "help"];
        self.words.len() > 1 && self.arguments().all(|word| about.contains(&word))
    }
}

/// These hosts, or the name of the program that asked them.
pub(super) fn hosts_or(hosts: Vec<String>, name: &str) -> Vec<String> {
    if hosts.is_empty() { vec![name.to_owned()] } else { hosts }
}

impl Shell {
    pub(super) fn add(&mut self, source: Source) {
        if let Some(hosts) = source {
            self.found.get_or_insert_default().extend(hosts);
        }
    }

    pub(super) fn run(&mut self, line: &str) {
        self.line(line, 0);
    }

    fn line(&mut self, line: &str, depth: usize) {
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
                while scope != 0 && !dirs.contains_key(&scope) {
                    scope = line.around.get(scope).copied().unwrap_or_default();
                }
                self.dir = dirs.get(&scope).cloned().unwrap_or_default();
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
            let is_marked = |redirect: Redirect| match redirect {
                Redirect::Write => true,
                Redirect::Append => source.is_some(),
                _ => false,
            };
            let written = command.redirects.iter().filter(|(redirect, _)| is_marked(*redirect));
            files.extend(written.map(|(_, file)| file.as_str()));
            if let Some(call) = Call::new(command, &[], false, 0)
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
        if let Some(call) = Call::new(command, before, is_applied, depth) {
            self.call(&call);
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
        if List("runners").begins(&[name, call.arguments().next().unwrap_or_default()]) > 0 {
            return self.rest(call, &call.words[2..]);
        }
        if SHELLS.has(name) || name == "eval" || name == "su" {
            return self.shell(call);
        }
        self.program(&call.words[0].text);
        match name {
            _ if programs::is_network(name) => {
                if let Some(hosts) = network(call).filter(|_| !self.is_own_run(call)) {
                    self.downloaded(call, &hosts);
                    self.add(Some(hosts));
                }
            }
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

    /// `gh run view --log`: what the repository's own workflows printed, as its programs print it here.
    fn is_own_run(&self, call: &Call) -> bool {
        let repo = call.option(&["-R", "--repo"]).map(|repo| format!("/{repo}"));
        let is_own = |repo: String| self.own.as_ref().is_some_and(|own| own.ends_with(&repo));
        let words: Vec<&str> = std::iter::once(call.name.as_str()).chain(call.operands("gh")).collect();
        List("shows runs").begins(&words) > 0 && repo.is_none_or(is_own)
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
        let mut at = 1;
        while let Some(word) = call.words.get(at).map(|word| word.text.as_str()) {
            match word {
                // `command -v curl` only says where it is.
                "-v" | "-V" if call.name == "command" => return,
                "-S" | "--split-string" if call.name == "env" => {
                    let line: Vec<&str> = call.arguments().skip(at).collect();
                    return self.line(&line.join(" "), call.depth + 1);
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
        match call.words.get(at..).unwrap_or_default() {
            [line] if line.text.contains(' ') && ["watch", "parallel"].contains(&call.name.as_str()) => {
                self.line(&line.text, call.depth + 1);
            }
            rest => self.rest(call, rest),
        }
    }

    /// A command that stands in the words of another one.
    fn rest(&mut self, call: &Call, words: &[Word]) {
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
        let is_code = |word: &str| word == "--command" || is_cluster(word, "c");
        let mut words = call.arguments();
        while let Some(word) = words.next() {
            match word {
                word if is_code(word) => return self.line(words.next().unwrap_or(""), call.depth + 1),
                "-o" | "+o" | "-O" | "--rcfile" | "--init-file" => {
                    words.next();
                }
                word if word.starts_with(['-', '+']) => {}
                // A user, before the command.
                _ if call.name == "su" => {}
                file => return self.script(file),
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

    fn path(&self, word: &str) -> PathBuf {
        self.places.resolve(&self.dir, word)
    }

    pub(super) fn add_path(&mut self, path: &Path) {
        let source = self.places.outside(path);
        self.add(source);
    }

    /// Reads a file that a word names.
    pub(super) fn file(&mut self, word: &str) {
        let source = self.source_of(word);
        self.add(source);
    }

    fn source_of(&mut self, word: &str) -> Source {
        // `cat $file`: which one it is, the loop around it says.
        if word.is_empty() || word == "-" || word.starts_with(UNKNOWN) || word.contains('\n') {
            return None;
        }
        if word.contains("://") && !word.starts_with("file://") {
            return None;
        }
        let mut found: Source = None;
        for word in alternatives(word) {
            let path = self.path(&word);
            if let Some(hosts) = self.places.outside(&path) {
                found.get_or_insert_default().extend(hosts);
            }
        }
        found
    }

    /// A program that prints files, which may have a pattern or a program before them.
    fn reader(&mut self, call: &Call, has_pattern: bool, valued: &[&str]) {
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
    fn list(&mut self, call: &Call) {
        let is_exec =
            |word: &Word| ["-exec", "-execdir", "-ok", "-x", "-X", "--exec"].contains(&word.text.as_str());
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

    fn change_directory(&mut self, call: &Call) {
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
    fn copy(&mut self, call: &Call) {
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

    /// The files that a network program was told to make.
    fn downloaded(&mut self, call: &Call, hosts: &[String]) {
        let base = |word: &str| {
            let path = word.split_once("://").map_or(word, |(_, rest)| rest);
            let path = path.split(['?', '#']).next().unwrap_or_default();
            path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned()
        };
        let folder = call.option(&["-P", "--directory-prefix", "--output-dir", "-D", "--dir"]);
        let output = call.option(&["-o", "--output", "--output-document", "-O"]).map(str::to_owned);
        let addresses = call.arguments().filter(|word| host_of(word).is_some() || is_remote(word));
        let mut files: Vec<String> = Vec::new();
        match call.name.as_str() {
            "scp" | "rsync" => {
                if let Some(target) = call.operands("").last() {
                    let names = addresses.map(|word| base(word.rsplit(':').next().unwrap_or(word)));
                    files.extend(names.map(|name| format!("{target}/{name}")));
                    files.push((*target).to_owned());
                }
            }
            "curl" => {
                if call.any(|word| is_cluster(word, "O") || word.starts_with("--remote-name")) {
                    files.extend(addresses.map(base));
                }
                // `-fsSLo FILE`
                let clustered = call.arguments().skip_while(|word| !is_output_cluster(word)).nth(1);
                files.extend(call.option(&["-o", "--output"]).or(clustered).map(str::to_owned));
            }
            "gh" | "glab" => {
                let words = call.operands("gh");
                let cloned = words.get(3).or(words.get(2)).filter(|_| words.get(1) == Some(&"clone"));
                files.extend(
                    cloned.map(|word| base(word)).into_iter().chain(folder.map(str::to_owned)).chain(output),
                );
            }
            _ => files.extend(output.into_iter().chain(addresses.map(base))),
        }
        for file in files.into_iter().filter(|file| !file.is_empty() && file != "-") {
            let file = folder
                .filter(|folder| *folder != file)
                .map_or(file.clone(), |folder| format!("{folder}/{file}"));
            self.places.bring(self.path(&file), hosts);
        }
    }
}

/// `make` prints the commands that it runs: the hosts that one of them asks.
fn echoed(output: &str) -> Source {
    let is_asking = |line: &&str| {
        let line = line.trim_start_matches(['$', '+', '>', ' ']);
        line.split(' ').next().is_some_and(programs::is_network) && line.contains("://")
    };
    let found: Vec<String> = output.lines().filter(is_asking).flat_map(hosts).collect();
    found.iter().any(|host| !is_loopback(host)).then_some(found)
}

/// A program that is only known when the command runs: from outside, if it is told an address.
fn unclear(call: &Call) -> Source {
    let inner = call.words[0].inner.join(" ");
    let mut names = inner.split(|c: char| c.is_whitespace() || "/;|&()".contains(c));
    let hosts: Vec<String> = call.arguments().filter_map(host_of).filter(|host| !is_loopback(host)).collect();
    (names.any(programs::is_network) || !hosts.is_empty()).then_some(hosts)
}

/// Does a command run something with each name that it reads?
fn applies(command: &SimpleCommand) -> bool {
    let first = command.words.iter().map(|word| word.text.as_str());
    first.take(3).any(|word| ["xargs", "parallel", "while"].contains(&word))
        && !Call::new(command, &[], false, 0).is_some_and(|call| is_silent(&call.words[1..]))
}

/// Commands that print nothing of the files they are given: `xargs rm`.
fn is_silent(words: &[Word]) -> bool {
    let word = words.iter().map(|word| word.text.as_str()).find(|word| !word.starts_with('-'));
    word.is_none_or(|word| QUIET.has(word) || LISTERS.has(word))
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

/// `-fsSLo`: switches of curl, and the option for the file.
fn is_output_cluster(option: &str) -> bool {
    let switches = option.strip_prefix('-').and_then(|option| option.strip_suffix('o'));
    switches
        .is_some_and(|switches| !switches.is_empty() && switches.bytes().all(|c| b"fgijkLNsSv#".contains(&c)))
}

/// What `echo` would print into a shell.
fn printed(command: &SimpleCommand) -> String {
    let words: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
    match words.first() {
        Some(&("echo" | "printf")) => words[1..].join(" ").replace("\\n", "\n"),
        _ => command.input.clone(),
    }
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
    // Options whose value is sent, or says how.
    let sent = List("sent")
        .after(&call.name)
        .map(|own| [List("sent").after("all").unwrap_or_default(), own].concat());
    let is_sent = |option: &str| {
        sent.as_ref().is_some_and(|sent| sent.contains(&option))
            || call.name.starts_with("curl") && is_output_cluster(option)
    };
    let mut found = Vec::new();
    let mut words = call.arguments();
    while let Some(word) = words.next() {
        match word.split_once('=').filter(|_| word.starts_with("--")) {
            Some((option, _)) if is_sent(option) => {}
            Some((_, value)) => found.extend(host_of(value)),
            None => found.extend(host_of(word)),
        }
        if is_sent(word) {
            words.next();
        }
    }
    found
}

/// The hosts that a network program asks; `None`: it stays on this machine, with every address.
fn network(call: &Call) -> Source {
    if call.is_about() {
        return None;
    }
    let name = call.name.as_str();
    let operands = call.operands("remote");
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
    // Addresses from a file, and one that is only known when the command runs, may be any.
    let is_open = call.any(|word| {
        ["-K", "--config", "--input-file"].contains(&word)
            || word.starts_with(UNKNOWN)
            || word.contains("://\u{fffd}")
    });
    // `http://db:9200`: a service of the project, whose name nobody outside can have.
    let is_near = |host: &String| is_loopback(host) || has_services && !host.contains(['.', ':']);
    let is_local = !named.is_empty() && named.iter().all(is_near) && !is_open;
    (!is_local).then(|| hosts_or(named, name))
}
