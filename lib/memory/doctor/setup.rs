//! The configuration, held against this machine: what parses may still not work here.

use crate::base::command_line::first_word;
use crate::base::lookup::on_path;
use crate::memory::doctor::finding::{Check, Finding};
use crate::memory::doctor::patient::Patient;
use crate::memory::redact::Redactor;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Words that a shell itself knows, first in a line.
const BUILTINS: &[&str] = &[
    ".", ":", "!", "[", "case", "cd", "command", "eval", "exec", "export", "false", "for", "if", "printf",
    "read", "set", "test", "time", "trap", "true", "umask", "unset", "until", "while", "echo",
];

pub(crate) fn look(patient: &Patient) -> Vec<Finding> {
    let mut findings = Vec::new();
    if patient.config.storage.foreign {
        findings.push(Finding::warning(
            Check::Config,
            patient.root.path(),
            "the store is named by a file that is not trusted: it is not committed, and nothing of it is mended",
            "list its directory under trustedDirectories in your own configuration if it is yours",
        ));
    }
    if let Err(error) = Redactor::of(&patient.config.redact) {
        let mend = "mend the pattern; see: memory-config show";
        findings.push(Finding::error(Check::Config, &patient.config_file, error.message(), mend));
    }
    findings.extend(llm_command(patient));
    findings.extend(same_targets(patient));
    findings
}

fn llm_command(patient: &Patient) -> Option<Finding> {
    let line = patient.config.llm.command_line()?;
    let error =
        |what: String, mend: &str| Some(Finding::error(Check::LlmCommand, &patient.config_file, what, mend));
    let word = first_word(line);
    if word.is_empty() {
        return error("llm.command is empty".to_owned(), "set it, or make it null");
    }
    // What a shell would have to work out first is left to it.
    let is_plain = word.chars().all(|c| c.is_alphanumeric() || "/._+-".contains(c));
    let home = word.strip_prefix("~/").and_then(|rest| Some(patient.env.home()?.join(rest)));
    let program = match home {
        Some(path) => path,
        None if is_plain && !BUILTINS.contains(&word.as_str()) => PathBuf::from(&word),
        None => return None,
    };
    if word.contains('/') && program.is_relative() {
        let what = format!("llm.command starts \"{word}\", but every call runs in an empty directory");
        return error(what, "write its whole path");
    }
    match on_path(program.as_os_str(), patient.env) {
        Some(_) => None,
        None if word.contains('/') => {
            error(format!("llm.command: there is no program \"{word}\""), "install it, or set llm.command")
        }
        None => error(
            format!("llm.command: \"{word}\" is not on PATH"),
            "install it, or set llm.command to another; memory-config init finds one",
        ),
    }
}

/// Two names of one file, for the same notes. For different ones it is an error of the target's.
fn same_targets(patient: &Patient) -> Vec<Finding> {
    let mut by_file: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for target in &patient.config.agents_md.targets {
        // One that is not there yet may still lie in a directory that goes by two names.
        let dir = target.path.parent().and_then(|dir| dir.canonicalize().ok());
        let real = target.path.canonicalize().ok().or_else(|| Some(dir?.join(target.path.file_name()?)));
        let real = real.unwrap_or_else(|| target.path.clone());
        by_file.entry((real, &target.repo)).or_default().push(target);
    }
    let mut findings = Vec::new();
    for same in by_file.values() {
        let [first, rest @ ..] = &same[..] else { continue };
        for other in rest {
            let what = format!("this target is the same file as \"{}\"", first.path.display());
            let mend = "keep one of them under agentsMd.targets";
            findings.push(Finding::warning(Check::Config, &other.path, what, mend));
        }
    }
    findings
}
