//! What tools printed: does it come from the repository and its own programs, or from outside?
//!
//! Outside is the web, every tool that nobody knows, programs that ask the network, what these brought, dependencies, and
//! files beyond the repository. A tracker is kept over a session, because a file that one command downloads is read by
//! another one.

mod addresses;
mod commands;
mod git;
mod places;
mod programs;
mod reports;
mod shell;
#[cfg(test)]
mod tests;

pub(crate) use places::Places;

use crate::base::text::one_line;
use crate::harness::spec::{Format, ToolKind};
use crate::harness::turn::{ARGUMENT_CAP, Role, ToolCall, Turn};
use crate::memory::outside::commands::Shell;
use crate::memory::outside::reports::Reports;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The most hosts that are named.
const HOSTS: usize = 10;
/// The longest name of a host or tool, in characters.
const HOST_CHARS: usize = 100;
/// How deep sub-agents of sub-agents are followed.
const DEPTH: usize = 4;

/// The arguments that name files, and directories.
const PATHS: &[&str] = &[
    "absolute_path", "dir", "dir_path", "directory", "file", "filePath", "file_path", "filename", "files",
    "include", "notebook_path", "path", "paths", "relative_workspace_path", "target_directories",
    "target_file",
];
/// The argument that is a command, and the one that says where it runs.
const COMMANDS: &[&str] = &["", "cmd", "command", "script"];
const DIRECTORIES: &[&str] = &["cwd", "dir_path", "directory", "workdir", "working_directory"];

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
    pub(crate) fn is_inside(&self) -> bool {
        *self == Provenance::Inside
    }

    pub(crate) fn is_outside(&self) -> bool {
        matches!(self, Provenance::Outside(_))
    }
}

/// What is known of a session as it goes on.
pub(crate) struct Tracker {
    format: &'static Format,
    /// `host/owner/name` of the session's repository.
    own: Option<String>,
    places: Places,
    dir: PathBuf,
    fetched: HashMap<String, Vec<String>>,
    /// The hosts that commands have asked so far: one that runs on may show it later.
    seen: Option<Vec<String>>,
    reports: Reports,
    depth: usize,
}

impl Tracker {
    /// `transcript`: the session's file where its harness keeps it, beside those of its sub-agents.
    pub(crate) fn new(
        format: &'static Format,
        places: Places,
        own: Option<&str>,
        transcript: Option<&Path>,
    ) -> Tracker {
        Tracker {
            format,
            own: own.map(str::to_owned),
            dir: places.start.clone(),
            places,
            fetched: HashMap::new(),
            seen: None,
            reports: Reports::new(format, transcript),
            depth: 0,
        }
    }

    /// Where the next turn of the session comes from.
    pub(crate) fn of(&mut self, turn: &Turn) -> Provenance {
        let (Role::Tool, Some(call)) = (turn.role, &turn.call) else { return Provenance::Inside };
        let kind = self.format.tool(&call.name);
        let output = turn.output.map_or("", |at| turn.text.get(at..).unwrap_or_default());
        let outside = match kind {
            ToolKind::Question => return Provenance::Answer,
            ToolKind::Attached => return Provenance::Attached,
            ToolKind::Own => None,
            ToolKind::Write => {
                let mut is_here = true;
                for path in self.paths(call) {
                    is_here &= self.places.outside(&path).is_none();
                    self.places.write(path);
                }
                return if is_here { Provenance::Written } else { Provenance::Inside };
            }
            ToolKind::Shell | ToolKind::Running | ToolKind::Read | ToolKind::Edit | ToolKind::Search
                if self.places.is_strange =>
            {
                Some(Vec::new())
            }
            ToolKind::Shell => self.shell(call, output),
            ToolKind::Running => self.seen.clone(),
            ToolKind::Read | ToolKind::Edit => self.read(call),
            ToolKind::Search => self.search(call, output),
            ToolKind::SubAgent => self.report(turn, call, output),
            ToolKind::Unknown => {
                let found = call.arguments.iter().flat_map(|(_, value)| addresses::hosts(value));
                let found: Vec<String> = found.collect();
                Some(if found.is_empty() { vec![call.name.clone()] } else { found })
            }
        };
        let outside = outside.map(named);
        // What a fetched page says shows in no command that runs on.
        if let Some(hosts) = outside.as_ref().filter(|_| kind == ToolKind::Shell) {
            let seen = self.seen.get_or_insert_default();
            seen.extend(hosts.iter().cloned());
            *seen = named(std::mem::take(seen));
        }
        match outside {
            Some(hosts) => Provenance::Outside(hosts),
            None if kind == ToolKind::Edit => Provenance::Written,
            None => Provenance::Inside,
        }
    }

    fn shell(&mut self, call: &ToolCall, output: &str) -> Option<Vec<String>> {
        let find = |names: &[&str]| call.arguments.iter().find(|(name, _)| names.contains(&name.as_str()));
        // One that was cut, or that is elsewhere, may do anything.
        let Some((_, command)) = find(COMMANDS).filter(|(_, command)| command.len() + 4 <= ARGUMENT_CAP)
        else {
            return Some(Vec::new());
        };
        let dir = match find(DIRECTORIES) {
            Some((_, dir)) => self.places.resolve(&self.places.start, dir),
            None => self.dir.clone(),
        };
        let own = self.own.as_deref();
        let mut shell = Shell { places: &mut self.places, own, dir, fetched: &mut self.fetched, output };
        let source = shell.run(command);
        let dir = shell.dir;
        let stays = self.format.keeps_directory && self.places.is_own(&dir);
        self.dir = if stays { dir } else { self.places.start.clone() };
        source
    }

    fn read(&mut self, call: &ToolCall) -> Option<Vec<String>> {
        let paths = self.paths(call);
        if paths.is_empty() {
            return Some(Vec::new());
        }
        let mut found: Option<Vec<String>> = None;
        for path in paths {
            let source =
                if self.reports.is_output(&path) { self.seen.clone() } else { self.places.outside(&path) };
            if let Some(hosts) = source {
                found.get_or_insert_default().extend(hosts);
            }
        }
        found
    }

    fn search(&mut self, call: &ToolCall, output: &str) -> Option<Vec<String>> {
        let paths = self.paths(call);
        let found = if paths.is_empty() { None } else { self.read(call) };
        let dirs = if paths.is_empty() { vec![self.places.start.clone()] } else { paths };
        let (own, dir) = (self.own.as_deref(), self.places.start.clone());
        let mut shell = Shell { places: &mut self.places, own, dir, fetched: &mut self.fetched, output };
        found.or_else(|| shell.searched(&dirs, false))
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
        words
            .filter(|word| !word.is_empty())
            .map(|word| self.places.resolve(&self.places.start, &word))
            .collect()
    }

    /// The report of a sub-agent: from outside, if anything that it read was, or if nobody knows what it read.
    fn report(&mut self, turn: &Turn, call: &ToolCall, output: &str) -> Option<Vec<String>> {
        let files = self.reports.files_of(&turn.id, call, output);
        if files.is_empty() || self.depth >= DEPTH {
            return Some(Vec::new());
        }
        let mut found: Option<Vec<String>> = None;
        for file in files {
            if let Some(hosts) = self.report_in(&file) {
                found.get_or_insert_default().extend(hosts);
            }
        }
        found
    }

    fn report_in(&mut self, file: &Path) -> Option<Vec<String>> {
        if let Some(known) = self.reports.known(file) {
            return known;
        }
        // One that is being read: a sub-agent cannot report to itself.
        self.reports.note(file, Some(Vec::new()));
        let mut inner = Tracker {
            format: self.format,
            own: self.own.clone(),
            dir: self.places.start.clone(),
            places: std::mem::take(&mut self.places),
            fetched: std::mem::take(&mut self.fetched),
            seen: None,
            reports: std::mem::take(&mut self.reports),
            depth: self.depth + 1,
        };
        let read = reports::read(self.format, file, &mut |turn| drop(inner.of(turn)));
        let source = if read { inner.seen } else { Some(inner.seen.unwrap_or_default()) };
        (self.places, self.fetched, self.reports) = (inner.places, inner.fetched, inner.reports);
        self.reports.note(file, source.clone());
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
