//! The tools of each program, by what they do. Names are from recorded sessions and from the programs themselves; a name
//! that is in no table is of a tool that nobody knows, or that somebody added: it may show anything.

use crate::harness::Format;
use crate::harness::out::ATTACHED;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolKind {
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

type Table = &'static [(ToolKind, &'static [&'static str])];

use ToolKind::{Edit, Own, Question, Read, Running, Search, Shell, SubAgent, Write};

const CLAUDE_CODE: Table = &[
    (Shell, &["Bash", "PowerShell"]),
    (Running, &["BashOutput", "KillBash", "KillShell", "Monitor"]),
    (Read, &["NotebookRead", "Read"]),
    (Edit, &["Edit", "MultiEdit", "NotebookEdit"]),
    (Search, &["Grep"]),
    (Write, &["Write"]),
    (
        Own,
        &[
            "CronCreate", "CronDelete", "CronList", "EnterPlanMode", "EnterWorktree", "ExitPlanMode",
            "ExitWorktree", "Glob", "LS", "TaskCreate", "TaskGet", "TaskList", "TaskStop", "TaskUpdate",
            "TodoRead", "TodoWrite", "ToolSearch",
        ],
    ),
    (SubAgent, &["Agent", "AgentOutputTool", "SendMessage", "Task", "TaskOutput"]),
    (Question, &["AskUserQuestion"]),
];
const CODEX: Table = &[
    (Shell, &["container.exec", "exec_command", "local_shell", "local_shell_call", "shell", "shell_command"]),
    (Running, &["write_stdin"]),
    (Read, &["read_file", "view_image"]),
    (Search, &["grep_files"]),
    (Write, &["apply_patch"]),
    (Own, &["list_dir", "update_plan"]),
    (SubAgent, &["close_agent", "resume_agent", "send_input", "spawn_agent", "wait", "wait_agent"]),
    (Question, &["request_user_input"]),
];
const GEMINI: Table = &[
    (Shell, &["run_shell_command"]),
    (Read, &["read_file", "read_many_files"]),
    (Edit, &["replace"]),
    (Search, &["grep_search", "search_file_content"]),
    (Write, &["write_file"]),
    (
        Own,
        &[
            "complete_task", "enter_plan_mode", "exit_plan_mode", "glob", "list_directory", "save_memory",
            "update_topic", "write_todos",
        ],
    ),
    (SubAgent, &["codebase_investigator", "delegate_to_agent", "generalist", "invoke_agent"]),
    (Question, &["ask_user"]),
];
const QWEN_CODE: Table = &[
    (Shell, &["run_shell_command"]),
    (Read, &["read_file", "read_many_files"]),
    (Edit, &["edit", "notebook_edit", "replace"]),
    (Search, &["grep_search", "search_file_content"]),
    (Write, &["write_file"]),
    (
        Own,
        &[
            "enter_plan_mode", "exit_plan_mode", "glob", "list_directory", "save_memory", "task_stop",
            "todo_write",
        ],
    ),
    (SubAgent, &["agent", "send_message", "task"]),
    (Question, &["ask_user_question"]),
];
const COPILOT: Table = &[
    (Shell, &["bash", "powershell"]),
    (
        Running,
        &[
            "list_bash", "list_powershell", "read_bash", "read_powershell", "stop_bash", "stop_powershell",
            "write_bash", "write_powershell",
        ],
    ),
    (Read, &["show_file", "view"]),
    (Edit, &["edit", "str_replace"]),
    (Search, &["grep", "rg"]),
    (Write, &["apply_patch", "create"]),
    (Own, &["exit_plan_mode", "glob", "report_intent", "sql", "store_memory", "update_todo"]),
    (SubAgent, &["list_agents", "read_agent", "task", "write_agent"]),
    (Question, &["ask_user"]),
];
const OPENCODE: Table = &[
    (Shell, &["bash"]),
    (Read, &["read"]),
    (Edit, &["edit", "multiedit"]),
    (Search, &["grep"]),
    (Write, &["apply_patch", "patch", "write"]),
    (Own, &["glob", "invalid", "list", "plan_enter", "plan_exit", "todoread", "todowrite"]),
    (SubAgent, &["task"]),
    (Question, &["question"]),
];
const PI: Table = &[
    // The second: a command that the person ran.
    (Shell, &["bash", "user's shell"]),
    (Read, &["read"]),
    (Edit, &["edit"]),
    (Search, &["grep"]),
    (Write, &["write"]),
    (Own, &["find", "ls"]),
];
const CURSOR: Table = &[
    (Shell, &["Bash", "Shell", "run_terminal_cmd", "run_terminal_command"]),
    (Read, &["Read", "read_file"]),
    (Edit, &["Edit", "MultiEdit", "StrReplace", "edit_file", "search_replace"]),
    (Search, &["Grep", "SemanticSearch", "codebase_search", "grep", "grep_search"]),
    (Write, &["apply_patch", "ApplyPatch", "Write", "write"]),
    (
        Own,
        &[
            "CreatePlan", "Delete", "Glob", "LS", "ReadLints", "TodoWrite", "create_plan", "delete_file",
            "file_search", "glob_file_search", "list_dir", "read_lints", "todo_write",
        ],
    ),
    (SubAgent, &["Task", "task"]),
    (Question, &["AskQuestion", "ask_question"]),
];
const AMP: Table = &[
    (Shell, &["Bash"]),
    (Read, &["Read"]),
    (Edit, &["edit_file", "format_file", "undo_edit"]),
    (Search, &["Grep"]),
    (Write, &["create_file"]),
    (Own, &["Glob", "get_diagnostics", "glob", "list_directory", "todo_read", "todo_write"]),
    (SubAgent, &["Task", "codebase_search_agent", "finder", "oracle"]),
];
/// Somebody's own program, or one that we have no reader for: the names that are usual.
const USUAL: Table = &[
    (Shell, &["bash", "exec_command", "run_shell_command", "shell"]),
    (Read, &["read", "read_file", "view"]),
    (Edit, &["edit"]),
    (Search, &["grep"]),
    (Write, &["apply_patch", "create", "write", "write_file"]),
    (Own, &["glob", "list", "list_directory", "ls", "todowrite"]),
    (SubAgent, &["agent", "task"]),
    (Question, &["ask_user", "question"]),
];

/// What the tool of this name does in a session of this format.
pub(crate) fn kind(format: Format, name: &str) -> ToolKind {
    if name == ATTACHED {
        return ToolKind::Attached;
    }
    let table = match format {
        Format::ClaudeCode => CLAUDE_CODE,
        Format::Codex => CODEX,
        Format::Gemini => GEMINI,
        Format::QwenCode => QWEN_CODE,
        Format::Copilot => COPILOT,
        Format::OpencodeExport => OPENCODE,
        Format::Pi => PI,
        Format::Cursor => CURSOR,
        Format::AmpMarkdown => AMP,
        Format::Turns => USUAL,
        Format::Plain => &[],
    };
    let found = table.iter().find(|(_, names)| names.contains(&name));
    found.map_or(ToolKind::Unknown, |(kind, _)| *kind)
}

/// Does the shell of this program stay in the directory that a command went to?
pub(crate) fn keeps_directory(format: Format) -> bool {
    matches!(format, Format::ClaudeCode | Format::Copilot | Format::Cursor)
}
