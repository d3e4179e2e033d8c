//! Declared tools: arguments are checked, and become the words of a program, whose output is the result, or a call of a
//! server.

use crate::agent::mcp::{Arguments, ToolAnswer};
use crate::agent::prepare::RunningAgent;
use crate::agent::tree::Scope;
use crate::base::exec::{self, CommandLine, ExecError, Finished, Invocation};
use crate::base::file;
use crate::base::terminal;
use crate::base::text::{excerpt, lossy, one_line};
use crate::config::tool::{DeclaredTool, WordPart};
use crate::provider::command::{level, too_deep, vars};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The longest word that the system takes, with the NUL at its end, in bytes.
const WORD_CAP: usize = 128 * 1024;
/// How much of its stderr, if it fails.
const STDERR_CAP: usize = 2 * 1024;

impl RunningAgent<'_> {
    /// Runs a tool in the working directory, in its own process group, until the deadline or its own timeout, or
    /// has its server do it. Returns what the model is told. `exit` stays as it is if no program ran, or if a signal ended it.
    pub(super) fn call_tool(
        self,
        tool: &DeclaredTool,
        arguments: &Arguments,
        exit: &mut Option<i32>,
    ) -> ToolAnswer {
        let RunningAgent { agent, scope, .. } = self;
        let (name, workdir) = (&tool.name, agent.workdir.as_path());
        let refused = |why: String| format!("{name} error: {why}");
        let arguments = checked(tool, arguments, workdir).map_err(refused)?;
        let words = words(tool, &arguments).map_err(refused)?;
        let level = level(scope.env);
        if let Some(why) = too_deep(level) {
            return Err(refused(format!("it {why}")));
        }
        let input =
            if tool.stdin_json { Value::Object(arguments.clone()).to_string() } else { String::new() };
        if tool.confirm {
            confirmed(&words, &input, scope).map_err(refused)?;
        }
        if let Some((server, called)) = &tool.server {
            let answer = match agent.servers.get(server) {
                Some(running) => running.call(called, &arguments, scope, tool.timeout_seconds),
                None => Err("does not run".to_owned()),
            };
            let half = tool.max_output / 2;
            let within = |text: String| excerpt(&text, half, half).0.into_owned();
            let failed = |why| within(format!("Error: tool \"{name}\": the MCP server {why}"));
            return answer.map(within).map_err(failed);
        }
        let deadline = scope.within(tool.timeout_seconds).deadline;
        let finished = exec::run(Invocation {
            input: input.into_bytes(),
            vars: vars(scope.env),
            is_heard: scope.reporter.is_verbose(),
            is_cut: true,
            level,
            ..Invocation::new(CommandLine::Words(&words), workdir, tool.max_output, deadline)
        });
        let finished = finished.map_err(|fault| match fault {
            ExecError::Deadline if !scope.deadline.passed() => {
                format!("Error: tool \"{name}\" {fault} ({} s)", tool.timeout_seconds)
            }
            _ => format!("Error: tool \"{name}\" {fault}"),
        })?;
        *exit = finished.status.code();
        outcome(tool, finished)
    }
}

/// What the model is told of a program that has ended.
fn outcome(tool: &DeclaredTool, finished: Finished) -> ToolAnswer {
    let (output, _) = lossy(finished.stdout);
    if let Some(code) = finished.status.code().filter(|code| tool.ok_exit.contains(code)) {
        let is_silent = code != 0 && output.is_empty();
        return Ok(if is_silent { format!("(no output, exit {code})") } else { output });
    }
    let ended = exec::how_it_ended(finished.status);
    let mut content = format!("Error: tool \"{}\" failed ({ended})", tool.name);
    let surplus = finished.stderr.len().saturating_sub(STDERR_CAP);
    let stderr = String::from_utf8_lossy(&finished.stderr[surplus..]);
    for (title, text) in [("stderr", stderr.trim()), ("stdout", output.trim_end())] {
        if !text.is_empty() {
            content.push_str(&format!("\n{title}:\n{text}"));
        }
    }
    Err(content)
}

/// Asks the person at the terminal whether the program may run. The error is for the model.
fn confirmed(words: &[String], input: &str, scope: Scope) -> Result<(), String> {
    let shown = shlex::try_join(words.iter().map(String::as_str)).map_err(|e| e.to_string())?;
    let given = if input.is_empty() { String::new() } else { format!(" with {input}") };
    let question = format!("Run {}? [y/N] ", one_line(&(shown + &given), usize::MAX));
    let must = "it was not run: it must be confirmed, and ";
    match terminal::agrees(&question, scope.deadline) {
        Ok(Some(true)) => Ok(()),
        Ok(Some(false)) => Err("it was not run: the person declined".to_owned()),
        Ok(None) => Err(format!("{must}there is no terminal to ask on")),
        Err(why) => Err(format!("{must}{}", why.message())),
    }
}

/// The arguments, if the declaration accepts them, with paths resolved. The error is for the model.
fn checked(tool: &DeclaredTool, arguments: &Arguments, workdir: &Path) -> Result<Arguments, String> {
    // Models write null for what they leave out.
    let mut arguments = arguments.clone();
    arguments.retain(|_, value| !value.is_null());
    let faults = tool.schema.faults(&Value::Object(arguments.clone()));
    if !faults.is_empty() {
        let all: Vec<_> = faults.iter().map(|fault| one_line(&fault.to_string(), 200)).collect();
        return Err(format!("the arguments are not valid: {}", all.join("; ")));
    }
    for name in &tool.paths {
        if let Some(Value::String(path)) = arguments.get_mut(name) {
            let real = resolve(path, workdir).map_err(|why| format!("\"{name}\" {why}"))?;
            *path = real.into_os_string().into_string().map_err(|_| format!("\"{name}\" is not UTF-8"))?;
        }
    }
    Ok(arguments)
}

/// The real path of `text`, which is inside `workdir`, also through symlinks. Its end need not exist.
fn resolve(text: &str, workdir: &Path) -> Result<PathBuf, String> {
    const OUTSIDE: &str = "is outside the working directory";
    if text.is_empty() || text.contains('\0') {
        return Err("is not a path".to_owned());
    }
    let root = std::fs::canonicalize(workdir).map_err(|e| format!("cannot be resolved: {e}"))?;
    let mut existing = root.join(text);
    let mut missing = Vec::new();
    let mut real = loop {
        match file::if_exists(std::fs::canonicalize(&existing)) {
            Ok(Some(real)) => break real,
            Ok(None) if existing.is_symlink() => return Err("is a symlink that leads nowhere".to_owned()),
            Ok(None) => {
                // A path that ends with `..` has no name: it would leave a folder that does not exist.
                let name = existing.file_name().ok_or(OUTSIDE)?.to_owned();
                missing.push(name);
                existing.pop();
            }
            Err(e) => return Err(format!("cannot be resolved: {e}")),
        }
    };
    real.extend(missing.into_iter().rev());
    if real.starts_with(&root) { Ok(real) } else { Err(OUTSIDE.to_owned()) }
}

/// The program and its words. The error is for the model.
fn words(tool: &DeclaredTool, arguments: &Arguments) -> Result<Vec<String>, String> {
    let mut words: Vec<String> = Vec::with_capacity(tool.words.len());
    let mut flags_end = false;
    'words: for (at, declared) in tool.words.iter().enumerate() {
        let begins_with_argument = matches!(declared.0.first(), Some(WordPart::Argument(_)));
        let mut word = String::new();
        // The argument that the word begins with, and the last one in it.
        let (mut first, mut last) = ("", "");
        for part in &declared.0 {
            match part {
                WordPart::Text(text) => word.push_str(text),
                WordPart::Argument(name) => {
                    let Some(value) = arguments.get(name) else {
                        // A word is left out with its optional argument, and so is the flag whose value it would be.
                        if begins_with_argument && at > 1 && tool.words[at - 1].is_flag() {
                            words.pop();
                        }
                        continue 'words;
                    };
                    first = if word.is_empty() { name } else { first };
                    last = name;
                    match value {
                        Value::String(text) => word.push_str(text),
                        other => word.push_str(&other.to_string()),
                    }
                }
            }
        }
        if word.contains('\0') {
            return Err(format!("\"{last}\" contains a NUL"));
        }
        if word.len() >= WORD_CAP {
            return Err(format!("\"{last}\" is longer than {} KiB", WORD_CAP >> 10));
        }
        if begins_with_argument && word.starts_with('-') && !flags_end {
            return Err(format!("\"{first}\" begins with \"-\", and the program would take it for a flag"));
        }
        flags_end = flags_end || (!begins_with_argument && word == "--");
        words.push(word);
    }
    Ok(words)
}
