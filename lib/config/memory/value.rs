//! Checks the value of a setting and prepares it for use: paths become absolute.

use crate::base::env::Env;
use crate::base::reach;
use crate::config::json_file::{JsonNode, ValueFault};
use crate::config::memory::remote;
use crate::config::memory::settings::ValueKind;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The most targets: every program reads each.
const MOST_TARGETS: usize = 100;

/// The directory that paths in the file are relative to.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathBase<'a> {
    pub(super) dir: &'a Path,
    pub(super) env: &'a Env,
}

pub(super) fn checked<'a>(
    kind: ValueKind,
    at: &JsonNode<'a>,
    base: PathBase,
) -> Result<Value, ValueFault<'a>> {
    Ok(match kind {
        ValueKind::Flag => {
            json!(serde_json::from_str::<bool>(at.raw).map_err(|_| at.expected("true or false"))?)
        }
        ValueKind::Number { least, most } => number(at, least, most)?,
        ValueKind::Directory => directory(at, base)?.into(),
        ValueKind::Directories => at
            .items("a list of directories")?
            .iter()
            .map(|item| directory(item, base))
            .collect::<Result<_, _>>()?,
        ValueKind::Targets => targets(at, base)?,
        ValueKind::Command | ValueKind::Calendar | ValueKind::Remote | ValueKind::Word(_)
            if at.raw == "null" =>
        {
            Value::Null
        }
        ValueKind::Command => at.text("a preset's name, a shell command or null")?.into(),
        ValueKind::Calendar => calendar(at)?.into(),
        ValueKind::Remote => {
            let text = at.text("the address of a git remote, or null")?;
            remote::address(&text, base.dir, base.env).map_err(|why| at.fault(why))?.into()
        }
        ValueKind::Word(words) => {
            let expected = format!("\"{}\" or null", words.join("\", \""));
            match at.text(&expected)? {
                word if words.contains(&&*word) => word.into(),
                _ => return Err(at.expected(&expected)),
            }
        }
        ValueKind::Commands => commands(at)?,
        ValueKind::Words { needs } => words(at, needs)?,
        ValueKind::Texts => at
            .items("a list of strings")?
            .iter()
            .map(|item| item.text("a string"))
            .collect::<Result<_, _>>()?,
    })
}

fn number<'a>(at: &JsonNode<'a>, least: u64, most: u64) -> Result<Value, ValueFault<'a>> {
    match at.raw.parse() {
        Ok(n) if (least..=most).contains(&n) => Ok(n.into()),
        _ => Err(at.expected(&format!("a whole number from {least} to {most}"))),
    }
}

/// The scheduler knows which calendars it has; this is what can stand in each one's file.
fn calendar<'a>(at: &JsonNode<'a>) -> Result<String, ValueFault<'a>> {
    let text = at.text("a calendar or null")?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " *,.:/~_+-".contains(c);
    match text.trim().is_empty() || !text.chars().all(is_plain) {
        true => Err(at.fault("is not a calendar such as \"daily\" or \"Mon..Fri 07:00\"")),
        false => Ok(text),
    }
}

fn path<'a>(at: &JsonNode<'a>, what: &str, base: PathBase) -> Result<PathBuf, ValueFault<'a>> {
    let text = at.text(what)?;
    if text.starts_with('~') {
        if !text.starts_with("~/") {
            return Err(at
                .fault("only \"~/\" means the home directory")
                .hint(|| "write ./~ for the name itself".to_owned()));
        }
        if base.env.home().is_none() {
            return Err(at.fault("begins with \"~/\", but $HOME is not set"));
        }
    }
    let whole: PathBuf = base.dir.join(base.env.expand(&text)).components().collect();
    match whole.to_str() {
        Some(_) => Ok(whole),
        None => Err(at.fault("leads to a directory whose name is not valid UTF-8")),
    }
}

fn directory<'a>(at: &JsonNode<'a>, base: PathBase) -> Result<String, ValueFault<'a>> {
    let path = path(at, "a directory", base)?;
    if reach::within(&path, |path| path.exists() && !path.is_dir()).unwrap_or(false) {
        return Err(at.fault("is a file, not a directory"));
    }
    Ok(path.to_string_lossy().into_owned())
}

fn targets<'a>(at: &JsonNode<'a>, base: PathBase) -> Result<Value, ValueFault<'a>> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    let items = at.items("a list of files")?;
    if items.len() > MOST_TARGETS {
        return Err(at.fault(format!("has {} files; the limit is {MOST_TARGETS}", items.len())));
    }
    for item in items {
        let target = target(&item, base)?;
        if !seen.insert(target["path"].to_string()) {
            return Err(item.fault("the same file is already in the list"));
        }
        all.push(target);
    }
    Ok(Value::Array(all))
}

/// `"FILE"` or `{"path": "FILE", "repo": "HOST/OWNER/NAME"}`
fn target<'a>(at: &JsonNode<'a>, base: PathBase) -> Result<Value, ValueFault<'a>> {
    let mut target = Map::new();
    if at.kind() == "a string" {
        target.insert("path".to_owned(), file(at, base)?);
        return Ok(Value::Object(target));
    }
    for (name, inner) in at.named("a file or an object with path and repo")? {
        let value = match name.as_str() {
            "path" => file(&inner, base)?,
            "repo" => inner.text("a repository, like \"github.com/owner/name\"")?.into(),
            _ => return Err(inner.fault("unknown key").hint(|| "known keys are path and repo".to_owned())),
        };
        target.insert(name, value);
    }
    if !target.contains_key("path") {
        return Err(at.fault("path is missing"));
    }
    Ok(Value::Object(target))
}

fn file<'a>(at: &JsonNode<'a>, base: PathBase) -> Result<Value, ValueFault<'a>> {
    let path = path(at, "a file", base)?;
    let ends_as_directory = at.raw.ends_with("/\"");
    if ends_as_directory {
        return Err(at
            .fault("is a directory, not a file")
            .hint(|| "name a file in it, like AGENTS.md".to_owned()));
    }
    Ok(path.to_string_lossy().into())
}

fn commands<'a>(at: &JsonNode<'a>) -> Result<Value, ValueFault<'a>> {
    let command = |(name, inner): (String, JsonNode<'a>)| match name.trim() {
        "" => Err(inner.fault("a preset needs a name")),
        _ => Ok((name, inner.text("a shell command")?.into())),
    };
    let all = at.named("an object of shell commands by name")?.into_iter().map(command);
    Ok(Value::Object(all.collect::<Result<_, _>>()?))
}

fn words<'a>(at: &JsonNode<'a>, needs: Option<&str>) -> Result<Value, ValueFault<'a>> {
    let line = at.text("a command")?;
    let Some(words) = shlex::split(&line) else {
        let why = "cannot be split into words: a quote is not closed, or a backslash is at the end";
        return Err(at.fault(why));
    };
    // A line with only a comment has none.
    if words.is_empty() {
        return Err(at.fault("must contain a command"));
    }
    if let Some(needed) = needs.filter(|needed| !words.iter().any(|word| word.contains(needed))) {
        return Err(at.fault(format!("must contain {needed}, which is replaced with the session's id")));
    }
    Ok(line.into())
}
