//! The configuration on this machine: a valid setting may still not work here.

use crate::base::command_line::first_word;
use crate::base::lookup::on_path;
use crate::memory::doctor::finding::{Check, CheckContext, Diagnosis};
use crate::memory::redact::Redactor;
use std::path::PathBuf;

/// Commands that the shell itself provides.
const BUILTINS: &[&str] = &[
    ".", ":", "!", "[", "case", "cd", "command", "eval", "exec", "export", "false", "for", "if", "printf",
    "read", "set", "test", "time", "trap", "true", "umask", "unset", "until", "while", "echo",
];

pub(super) fn check(cx: &CheckContext, to: &mut Diagnosis) {
    if let Some(stranger) = &cx.untrusted {
        let mend = "if it is yours, list its directory under trustedDirectories in your own configuration";
        to.warning(Check::Config, stranger, "is not trusted: nothing in it counts but lower caps", mend);
    }
    if let Err(error) = Redactor::of(&cx.config.redact) {
        let mend = "correct the pattern; see: memory-config show";
        to.error(Check::Config, &cx.config_file, error.message(), mend);
    }
    if let Some((what, mend)) = cx.config.llm.command_line().and_then(|line| fault_of_command(line, cx)) {
        to.error(Check::LlmCommand, &cx.config_file, what, mend);
    }
}

/// What is wrong with the LLM command, and the next step.
fn fault_of_command(line: &str, cx: &CheckContext) -> Option<(String, &'static str)> {
    let word = first_word(line);
    if word.is_empty() {
        return Some(("llm.command is empty".to_owned(), "set it, or set it to null"));
    }
    // A word that the shell would expand first cannot be checked here.
    let is_plain = word.chars().all(|c| c.is_alphanumeric() || "/._+-".contains(c));
    let program = match word.strip_prefix("~/").and_then(|rest| Some(cx.env.home()?.join(rest))) {
        Some(path) => path,
        None if is_plain && !BUILTINS.contains(&word.as_str()) => PathBuf::from(&word),
        None => return None,
    };
    if word.contains('/') && program.is_relative() {
        let what = format!("llm.command starts \"{word}\", but every call runs in an empty directory");
        return Some((what, "write its absolute path"));
    }
    match on_path(program.as_os_str(), cx.env) {
        Some(_) => None,
        None if word.contains('/') => {
            Some((format!("llm.command: there is no program \"{word}\""), "install it, or set llm.command"))
        }
        None => Some((
            format!("llm.command: \"{word}\" is not on PATH"),
            "install it, or set llm.command to another; memory-config init finds one",
        )),
    }
}
