//! What the programs know of a coding agent, as data: one `Spec` for each, in a file of its own beside its reader.

use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::reach;
use crate::harness::context::ContextFiles;
use crate::harness::out::{ATTACHED, PERSONS_SHELL, TurnSink};
use crate::harness::payload::{Ended, Payload};
use serde::Deserialize;
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};

pub struct Spec {
    /// As in the queue and in flags.
    pub name: &'static str,
    /// As its vendor writes it.
    pub title: &'static str,
    /// Where it has its settings. That this exists is the sign that it is used.
    pub home: Home,
    pub reads: ContextFiles,
    /// Variables that it sets for what its agent runs, never for the shell that it was started from.
    pub marks: &'static [&'static str],
    pub format: Format,
    /// How its queue entries say where a session is.
    pub method: &'static str,
    pub capture: CaptureSpec,
    pub past: PastSource,
    /// What its hooks report.
    pub events: &'static [HookEvent],
    pub install: Install,
    /// What a person has to do in the program once the hooks are installed.
    pub next_step: Option<&'static str>,
    pub recall: RecallSpec,
    /// The memory that it keeps by itself.
    pub memory: Option<BuiltInMemory>,
    pub preset: Option<Preset>,
}

/// A directory: the one that the first of these variables names, with what is below that, or the usual one below the
/// home directory.
pub struct Home {
    pub variables: &'static [(&'static str, &'static str)],
    pub usual: &'static str,
}

impl Home {
    /// Whether it exists or not; `None` if there is no home directory.
    pub fn dir(&self, env: &Env) -> Option<PathBuf> {
        let named = self.variables.iter().find_map(|(name, below)| {
            let dir = env.os(name).map(|path| path.to_str().map_or(path.into(), |path| env.expand(path)))?;
            Some(if below.is_empty() { dir } else { dir.join(below) })
        });
        named.or_else(|| Some(env.home()?.join(self.usual)))
    }
}

/// How the file of a session is read.
#[derive(Debug)]
pub struct Format {
    pub(super) read: fn(&Path, &mut TurnSink) -> Result<()>,
    /// Whether a record shows that a file is one of this program's.
    pub(super) is_record: fn(&Value) -> bool,
    pub(super) tools: ToolTable,
    /// A command that ended with an exit code other than 0 is recorded as failed. Elsewhere only the code says it.
    pub(super) marks_failures: bool,
    /// The shell stays in the directory that a command went to.
    pub keeps_directory: bool,
    /// The files in which the program logs what is typed in its terminal, where the session in this file does not say it.
    pub(super) prompts: fn(&Path, &Env) -> Vec<PathBuf>,
    /// Where the program keeps the output of earlier calls, below the file's name without its ending.
    pub outputs: Option<&'static str>,
    /// The files in which the sub-agents of the session in this file may be.
    pub sub_agents: fn(&Path) -> Vec<PathBuf>,
    /// They lie among other sessions: only one that a call names can be its report.
    pub among_others: bool,
}

impl Format {
    /// Most of a file that may hold anything.
    pub(super) const ANY: Format = Format {
        read: |_, _| Ok(()),
        is_record: |_| false,
        tools: &[],
        marks_failures: false,
        keeps_directory: false,
        prompts: |_, _| Vec::new(),
        outputs: None,
        sub_agents: |_| Vec::new(),
        among_others: false,
    };

    /// What the tool of this name does. A name in no table is of a tool that nobody knows, or that somebody added: it
    /// may show anything.
    pub fn tool(&self, name: &str) -> ToolKind {
        let is_known = |(_, names): &&(_, &str)| names.split(' ').any(|known| known == name);
        match name {
            ATTACHED => ToolKind::Attached,
            PERSONS_SHELL => ToolKind::Shell,
            _ => self.tools.iter().find(is_known).map_or(ToolKind::Unknown, |(kind, _)| *kind),
        }
    }
}

/// What tools do, and their names, with blanks between them.
pub(super) type ToolTable = &'static [(ToolKind, &'static str)];

/// For `is_record`: the record has all of these keys.
pub(super) fn has(record: &Value, keys: &[&str]) -> bool {
    keys.iter().all(|key| record.get(key).is_some())
}

/// What a tool does. Names are from recorded sessions and from the programs themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// Runs a command.
    Shell,
    /// Shows what earlier calls left running, or their output.
    Running,
    /// Shows a file.
    Read,
    /// Searches files, and shows what it found in them.
    Search,
    /// Writes whole files, or applies a patch.
    Write,
    /// Changes a part of a file, and may show the place.
    Edit,
    /// Shows nothing but names of files and the agent's own words: listings, plans, patches.
    Own,
    /// Lets another agent work, or brings its report.
    SubAgent,
    /// Asks the person, who chooses an answer or types one.
    Question,
    /// What the person attached to a prompt.
    Attached,
    /// Everything else.
    Unknown,
}

/// How `memory-capture` is told of a session.
pub enum CaptureSpec {
    /// By the JSON of a hook.
    Hook {
        session: fn(&Payload, &Env) -> Result<Ended>,
        /// The JSON may be the last argument, too.
        takes_argument: bool,
        /// The program does not mind what its hook prints.
        may_print: bool,
        /// The program may remove a session's file before it is read.
        removes: bool,
    },
    /// By its id: the program's `readCommand`, which has a default in the configuration, prints it.
    Id,
    /// By its file.
    File(fn(&Path) -> Result<Ended>),
}

/// Where `memory-capture --past` finds sessions.
pub enum PastSource {
    /// Files below a directory; `*` stands for any name or part of one.
    Files(Home, &'static [&'static str]),
    /// Copies of sessions that are kept elsewhere: what they say of them.
    Copies(Home, &'static str, fn(&Path) -> Option<Stored>),
    /// A file shows that there are some, and the program of its `readCommand` is asked.
    Asked(Home, &'static str, fn(&str, &Path) -> Result<Vec<Stored>>),
}

/// What is said of a session that its program keeps elsewhere: by a copy, or by the program.
#[derive(Deserialize)]
pub struct Stored {
    pub id: String,
    /// Of a sub-agent.
    #[serde(rename = "parent_id")]
    pub parent: Option<String>,
    #[serde(rename = "directory")]
    pub cwd: Option<String>,
    /// When it last changed, in milliseconds since 1970.
    #[serde(rename = "time_updated")]
    pub changed: i64,
    pub bytes: Option<u64>,
    /// Its beginning.
    pub first: Option<String>,
}

/// What a hook reports.
pub struct HookEvent {
    pub name: &'static str,
    pub when: HookMoment,
    /// How long the program waits for our hook, in its own unit. None: we put no hook there, but understand one.
    pub timeout: Option<u64>,
}

pub(super) const fn hook(name: &'static str, when: HookMoment, timeout: u64) -> HookEvent {
    HookEvent { name, when, timeout: Some(timeout) }
}

pub(super) const fn understood(name: &'static str, when: HookMoment) -> HookEvent {
    HookEvent { name, when, timeout: None }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookMoment {
    /// A session begins, or goes on.
    Start,
    Prompt,
    /// The program is about to forget what the session was given, and there is no start after it.
    Forgetting,
    /// A sub-agent begins its work.
    SubAgent,
    /// A tool is called: what is given now reaches the model together with the result, in every program.
    Act,
    /// The end of a turn, of a session, of a context that is about to be compacted.
    End,
}

/// How hooks of ours get into the program.
pub enum Install {
    Nothing,
    /// Entries in a settings file.
    Settings(HookSettings),
    /// Files that are ours alone.
    Files(&'static [OwnFile]),
}

/// The form of a settings file.
#[derive(Debug)]
pub struct HookSettings {
    /// Below the home.
    pub file: &'static str,
    /// The program reads every file of that directory: one that has hooks of ours is taken.
    pub is_one_of_many: bool,
    /// Another file in which a person may have put our programs.
    pub also: Option<&'static str>,
    /// The program accepts comments.
    pub has_comments: bool,
    /// What it wants beside `hooks`.
    pub version: Option<u64>,
    /// An event's list has groups, and each group a list `hooks` of commands.
    pub has_groups: bool,
    /// A command has `"type": "command"`.
    pub is_typed: bool,
    /// A command has a `name`.
    pub is_named: bool,
    /// The key of the command line.
    pub command: &'static str,
    pub timeout: Option<&'static str>,
    /// What switches all its hooks off.
    pub switches: &'static [Switch],
    /// The key that says which plugins are on. Ours has all hooks.
    pub plugins: Option<&'static str>,
    /// If the program is gone, the shell exits with 127. Gemini CLI then blocks each prompt, and at the end of a turn asks
    /// the model again and again; Copilot CLI denies each call of a tool.
    pub never_fails: bool,
}

impl HookSettings {
    /// Claude Code's, which others have taken over.
    pub(super) const GROUPS: HookSettings = HookSettings {
        file: "settings.json",
        is_one_of_many: false,
        also: None,
        has_comments: false,
        version: None,
        has_groups: true,
        is_typed: true,
        is_named: false,
        command: "command",
        timeout: Some("timeout"),
        switches: &[],
        plugins: None,
        never_fails: false,
    };
}

/// A setting that switches hooks off.
#[derive(Debug)]
pub struct Switch {
    /// Below the home: JSON or TOML.
    pub file: &'static str,
    /// The names of its members, the outermost first.
    pub key: &'static [&'static str],
    /// The value that does it.
    pub off: bool,
}

/// Claude Code's, which Qwen Code has too.
pub(super) const DISABLE_ALL: &[Switch] =
    &[Switch { file: "settings.json", key: &["disableAllHooks"], off: true }];

/// A file of ours, in the first of these directories that has it, or that exists.
pub struct OwnFile {
    pub dirs: &'static [&'static str],
    pub name: &'static str,
    pub text: &'static str,
}

/// What `memory-recall` has to know.
pub struct RecallSpec {
    pub form: RecallForm,
    /// A resumed session has all that it was given.
    pub resumes_whole: bool,
    /// Starts of these sources run the hook, and what it says does not reach the model.
    pub unheard: &'static [&'static str],
}

/// The memory that a program keeps by itself: files of Markdown that its agent writes.
pub struct BuiltInMemory {
    /// Where its files are.
    pub home: Home,
    /// Below that; `*` stands for any name or part of one.
    pub files: &'static [&'static str],
    pub project: MemoryProject,
    /// The setting that switches it off, and the variable that does.
    pub off: Option<(Switch, Option<&'static str>)>,
}

/// How a file says of which project it is.
pub enum MemoryProject {
    /// A directory above it, in `projects`, is named after the project's, with a `-` for every other character. `MEMORY.md` in
    /// its directory is the index, of which a session gets the beginning.
    Named {
        /// All worktrees of a repository have one memory.
        is_shared: bool,
    },
    /// A file beside its directory has the path.
    Beside(&'static str),
    /// One of its first lines begins with this, and has the path.
    Line(&'static str),
}

/// The form in which the program takes what a hook gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecallForm {
    /// `hookSpecificOutput.additionalContext`
    HookOutput,
    /// The text under this key.
    Key(&'static str),
    /// Plain text: a plugin of ours asks, and puts it where it belongs. It asks for the start in any case, maybe after the
    /// first prompt.
    Plugin,
}

/// An LLM command: prompt on stdin, only the answer on stdout, in one request without tools, context files and hooks,
/// and nothing recorded. `.ci/real-programs` proves it.
#[derive(Clone, Copy)]
pub struct Preset {
    pub name: &'static str,
    pub line: &'static str,
    /// `memory-config init` takes the first one whose program is there.
    pub rank: u8,
    pub home: Option<&'static OwnHome>,
    /// What of this cannot be had, as a sentence for whoever chooses it.
    pub caution: Option<&'static str>,
}

impl Preset {
    pub const fn new(name: &'static str, line: &'static str, rank: u8) -> Preset {
        Preset { name, line, rank, home: None, caution: None }
    }
}

/// What an LLM command of this program finds in `$LLM_HOME`, a home for one call.
pub struct OwnHome {
    /// The program's directory below it.
    pub dir: &'static str,
    /// Where its credentials are, and in which files. They are linked: a login that the program renews is kept.
    pub credentials: (Home, &'static [&'static str]),
    /// The user's settings files, a later one before an earlier one.
    pub settings: &'static [&'static str],
    /// Which of the settings the program gets, to reach its model: none that starts a program or names a file.
    pub kept: &'static [&'static str],
    /// Members of these that would leave a credential in a file.
    pub dropped: &'static [&'static str],
    /// Settings of ours, in JSON.
    pub forced: &'static str,
    /// The variable that gets the settings, instead of the first settings file.
    pub variable: Option<&'static str>,
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Spec {
    /// It is used here.
    pub fn is_here(&self, env: &Env) -> bool {
        self.home.dir(env).is_some_and(|dir| reach::within(&dir, Path::is_dir).unwrap_or(false))
    }

    /// The file for a section; `None` if it reads no file of the user's.
    pub fn context(&self, env: &Env) -> Option<PathBuf> {
        Some(self.home.dir(env)?.join(self.reads.own.first()?.first()?))
    }

    /// Does a session's file lie where the program keeps its sessions, symlinks resolved? Anybody may write one elsewhere. If it
    /// is gone, its directory counts.
    pub fn keeps(&self, session: &Path, env: &Env) -> bool {
        let PastSource::Files(home, patterns) = &self.past else { return true };
        let fixed = patterns.iter().filter_map(|pattern| pattern.split('*').next());
        let dirs = fixed.filter_map(|below| reach::real(&home.dir(env)?.join(below)));
        let real = reach::real(session).or_else(|| reach::real(session.parent()?));
        real.is_some_and(|session| dirs.into_iter().any(|dir| session.starts_with(dir)))
    }

    /// A hook of ours hears of the calls of tools.
    pub fn hears_acts(&self) -> bool {
        self.events.iter().any(|event| event.when == HookMoment::Act)
    }

    /// The events of hooks at which something has ended.
    pub fn ends(&self) -> impl Iterator<Item = &'static str> {
        self.events.iter().filter(|event| event.when == HookMoment::End).map(|event| event.name)
    }
}
