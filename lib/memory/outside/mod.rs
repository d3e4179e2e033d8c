//! What tools printed: does it come from the repository and its own programs, or from outside?
//!
//! Outside is the web, every tool that nobody knows, programs that ask the network, what these brought, dependencies, and
//! files beyond the repository. A tracker is kept over a session, because a file that one command downloads is read by
//! another one.

mod call;
mod commands;
mod files;
mod git;
mod network;
mod places;
mod reports;
mod shell;
#[cfg(test)]
mod tests;

pub use places::{Places, normal, same_depth};

use crate::base::text::one_line;
use crate::harness::spec::{Format, ToolKind};
use crate::harness::turn::{ARGUMENT_CAP, Role, ToolCall, Turn};
use crate::memory::addresses::hosts;
use crate::memory::outside::call::{Call, Origin, hosts_or};
use crate::memory::outside::commands::Shell;
use crate::memory::outside::reports::Reports;
use crate::memory::outside::shell::Redirect;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The most hosts that are named.
const HOSTS: usize = 10;
/// The longest name of a host or tool, in characters.
const HOST_CHARS: usize = 100;
/// How deep sub-agents of sub-agents are followed.
const DEPTH: usize = 4;

/// The arguments that name files, and directories.
pub const PATHS: &[&str] = &[
    "absolute_path", "dir", "dir_path", "directory", "file", "filePath", "file_path", "filename", "files",
    "include", "notebook_path", "path", "paths", "relative_workspace_path", "target_directories",
    "target_file",
];
/// The argument that is a command, and the one that says where it runs.
pub const COMMANDS: &[&str] = &["", "cmd", "command", "script"];
pub const DIRECTORIES: &[&str] = &["cwd", "dir_path", "directory", "workdir", "working_directory"];

/// Where the output of a turn comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// The repository and its own programs.
    #[default]
    Inside,
    /// Elsewhere: the hosts, as far as they are known, or the tool.
    Outside(Vec<String>),
    /// The person chose or typed it as an answer.
    Answer,
    /// The person attached it to a prompt.
    Attached,
    /// The agent wrote what it gave the tool into files of the repository.
    Written,
}

impl Provenance {
    pub fn is_inside(&self) -> bool {
        *self == Provenance::Inside
    }

    pub fn is_outside(&self) -> bool {
        matches!(self, Provenance::Outside(_))
    }
}

/// The words of a command, and the files that it is redirected to: `true` for one that it only reads.
pub type Redirected = (Vec<String>, Vec<(String, bool)>);

/// The simple commands of a line, one after the other, without `VARIABLE=value` before them.
pub fn commands(line: &str) -> Vec<Redirected> {
    let parsed = shell::parse(line, None);
    let each = parsed.commands.iter().filter_map(|command| {
        let files = command.redirects.iter().map(|(how, file)| (file.clone(), *how == Redirect::Read));
        Some((Call::of(command)?.texts(), files.collect()))
    });
    each.collect()
}

/// The same without what only leads to a command: `sudo`, `timeout 5`, `bundle exec`.
pub fn led_to(line: &str) -> Vec<Vec<String>> {
    let parsed = shell::parse(line, None);
    let each = parsed.commands.iter().filter_map(|command| Call::of(command)?.led_to());
    each.map(|call| call.texts()).collect()
}

/// What is known of a session as it goes on.
pub struct Tracker {
    format: &'static Format,
    shell: Shell,
    /// The hosts that commands have asked so far: one that runs on may show it later.
    seen: Origin,
    reports: Reports,
    depth: usize,
}

impl Tracker {
    /// `own` is `host/owner/name` of the session's repository; `transcript`: the session's file where its harness keeps it,
    /// beside those of its sub-agents.
    pub fn new(
        format: &'static Format,
        places: Places,
        own: Option<&str>,
        transcript: Option<&Path>,
    ) -> Tracker {
        let (own, dir) = (own.map(str::to_owned), places.start.clone());
        let shell = Shell { places, own, dir, ..Shell::default() };
        Tracker { format, shell, seen: None, reports: Reports::new(format, transcript), depth: 0 }
    }

    /// Where the next turn of the session comes from.
    pub fn of(&mut self, turn: &Turn) -> Provenance {
        let (Role::Tool, Some(call)) = (turn.role, &turn.call) else { return Provenance::Inside };
        let kind = self.format.tool(&call.name);
        let output = turn.output.map_or("", |at| turn.text.get(at..).unwrap_or_default());
        output.clone_into(&mut self.shell.output);
        match kind {
            ToolKind::Question => return Provenance::Answer,
            ToolKind::Attached => return Provenance::Attached,
            ToolKind::Own => {}
            ToolKind::Write => {
                let mut is_here = true;
                for path in self.paths(call) {
                    is_here &= self.shell.places.outside(&path).is_none();
                    self.shell.places.write(path);
                }
                return if is_here { Provenance::Written } else { Provenance::Inside };
            }
            ToolKind::Shell | ToolKind::Running | ToolKind::Read | ToolKind::Edit | ToolKind::Search
                if self.shell.places.is_strange =>
            {
                self.shell.add(Some(Vec::new()));
            }
            ToolKind::Shell => self.command(call),
            ToolKind::Running => self.shell.add(self.seen.clone()),
            ToolKind::Read | ToolKind::Edit => self.read(self.paths(call)),
            ToolKind::Search => self.search(self.paths(call)),
            ToolKind::SubAgent => self.report(turn, call),
            ToolKind::Unknown => {
                let hosts = call.arguments.iter().flat_map(|(_, value)| hosts(value)).collect();
                self.shell.add(Some(hosts_or(hosts, &call.name)));
            }
        }
        let outside = self.shell.found.take().map(named);
        // What a fetched page says shows in no command that runs on.
        if let Some(hosts) = outside.as_ref().filter(|_| kind == ToolKind::Shell) {
            self.seen = Some(named([self.seen.take().unwrap_or_default(), hosts.clone()].concat()));
        }
        match outside {
            Some(hosts) => Provenance::Outside(hosts),
            None if kind == ToolKind::Edit => Provenance::Written,
            None => Provenance::Inside,
        }
    }

    /// The files of the repository that turns have touched since the last call of this, by their paths from its top.
    pub fn touched(&mut self) -> Vec<String> {
        std::mem::take(&mut self.shell.places.touched).into_iter().collect()
    }

    /// The words of the commands of the last turn that ran in the repository, as [`led_to`] has them.
    pub fn ran(&mut self) -> Vec<Vec<String>> {
        std::mem::take(&mut self.shell.ran)
    }

    fn command(&mut self, call: &ToolCall) {
        let find = |names: &[&str]| call.arguments.iter().find(|(name, _)| names.contains(&name.as_str()));
        // One that was cut, or that is elsewhere, may do anything.
        let Some((_, command)) = find(COMMANDS).filter(|(_, command)| command.len() + 4 <= ARGUMENT_CAP)
        else {
            return self.shell.add(Some(Vec::new()));
        };
        let start = self.shell.places.start.clone();
        if let Some((_, dir)) = find(DIRECTORIES) {
            self.shell.dir = self.shell.places.resolve(&start, dir);
        }
        self.shell.line(command, 0);
        if !self.format.keeps_directory || !self.shell.places.is_own(&self.shell.dir) {
            self.shell.dir = start;
        }
    }

    /// Without a path it may be anything.
    fn read(&mut self, paths: Vec<PathBuf>) {
        self.shell.add(paths.is_empty().then(Vec::new));
        for path in paths {
            match self.reports.is_output(&path) {
                true => self.shell.add(self.seen.clone()),
                false => self.shell.add_path(&path),
            }
        }
    }

    fn search(&mut self, paths: Vec<PathBuf>) {
        let start = self.shell.places.start.clone();
        let dirs = if paths.is_empty() { vec![start.clone()] } else { paths.clone() };
        if !paths.is_empty() {
            self.read(paths);
        }
        if self.shell.found.is_none() {
            let dir = std::mem::replace(&mut self.shell.dir, start);
            self.shell.searched(&dirs, false);
            self.shell.dir = dir;
        }
    }

    /// The files that a call names.
    fn paths(&self, call: &ToolCall) -> Vec<PathBuf> {
        let named = call.arguments.iter().filter(|(name, _)| PATHS.contains(&name.as_str()));
        let words = named.flat_map(|(name, value)| match name.as_str() {
            "files" | "include" | "paths" | "target_directories" => {
                shlex::split(value).unwrap_or_else(|| vec![value.clone()])
            }
            _ => vec![value.clone()],
        });
        let places = &self.shell.places;
        words.filter(|word| !word.is_empty()).map(|word| places.resolve(&places.start, &word)).collect()
    }

    /// The report of a sub-agent: from outside, if anything that it read was, or if nobody knows what it read.
    fn report(&mut self, turn: &Turn, call: &ToolCall) {
        let files = self.reports.files_of(&turn.id, call, &self.shell.output);
        if files.is_empty() || self.depth >= DEPTH {
            return self.shell.add(Some(Vec::new()));
        }
        let found: Vec<Origin> = files.iter().map(|file| self.report_in(file)).collect();
        found.into_iter().for_each(|source| self.shell.add(source));
        // Those of the sub-agent.
        self.shell.ran.clear();
    }

    fn report_in(&mut self, file: &Path) -> Origin {
        if let Some(known) = self.reports.known.get(file) {
            return known.clone();
        }
        // One that is being read: a sub-agent cannot report to itself.
        self.reports.known.insert(file.to_path_buf(), Some(Vec::new()));
        let start = self.shell.places.start.clone();
        let (dir, seen) = (std::mem::replace(&mut self.shell.dir, start), self.seen.take());
        self.depth += 1;
        let is_read = reports::read(self.format, file, &mut |turn| drop(self.of(turn)));
        self.depth -= 1;
        self.shell.dir = dir;
        let source = std::mem::replace(&mut self.seen, seen);
        let source = if is_read { source } else { Some(source.unwrap_or_default()) };
        self.reports.known.insert(file.to_path_buf(), source.clone());
        source
    }
}

/// The names once each, so short and so few that they can be shown.
fn named(names: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for name in names {
        let name = one_line(&name, HOST_CHARS);
        if kept.len() < HOSTS && !name.is_empty() && !kept.contains(&name) {
            kept.push(name);
        }
    }
    kept
}
