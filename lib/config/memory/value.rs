//! What a setting's value must be. What comes out is ready for use: paths are absolute.

use crate::base::env::Env;
use crate::config::memory::settings::Kind;
use crate::config::memory::spot::{Fault, Spot};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Each is looked at by every program.
const MOST_TARGETS: usize = 100;

/// What paths in the file are relative to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Base<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) env: &'a Env,
}

pub(crate) fn checked<'a>(kind: Kind, spot: &Spot<'a>, base: Base) -> Result<Value, Fault<'a>> {
    Ok(match kind {
        Kind::Flag => json!(spot.node.flag().ok_or_else(|| spot.expected("true or false"))?),
        Kind::Number { least, most } => number(spot, least, most)?,
        Kind::Directory => directory(spot, base)?.into(),
        Kind::Directories => spot
            .items("a list of directories")?
            .iter()
            .map(|item| directory(item, base))
            .collect::<Result<_, _>>()?,
        Kind::Targets => targets(spot, base)?,
        Kind::Command if spot.node.is_null() => Value::Null,
        Kind::Command => spot.text("a preset's name, a shell command or null")?.into(),
        Kind::Commands => commands(spot)?,
        Kind::Words { needs } => words(spot, needs)?,
        Kind::Texts => spot
            .items("a list of strings")?
            .iter()
            .map(|item| item.text("a string"))
            .collect::<Result<_, _>>()?,
    })
}

fn number<'a>(spot: &Spot<'a>, least: u64, most: u64) -> Result<Value, Fault<'a>> {
    match spot.node.raw().parse() {
        Ok(n) if (least..=most).contains(&n) => Ok(n.into()),
        _ => Err(spot.expected(&format!("a whole number from {least} to {most}"))),
    }
}

fn path<'a>(spot: &Spot<'a>, what: &str, base: Base) -> Result<PathBuf, Fault<'a>> {
    let text = spot.text(what)?;
    if text.starts_with('~') {
        if !text.starts_with("~/") {
            return Err(spot
                .fault("only \"~/\" stands for the home directory")
                .hint(|| "write ./~ for the name itself".to_owned()));
        }
        if base.env.home().is_none() {
            return Err(spot.fault("begins with \"~/\", and $HOME is not set"));
        }
    }
    let whole: PathBuf = base.dir.join(base.env.expand(&text)).components().collect();
    match whole.to_str() {
        Some(_) => Ok(whole),
        None => Err(spot.fault("leads to a directory whose name is not valid UTF-8")),
    }
}

fn directory<'a>(spot: &Spot<'a>, base: Base) -> Result<String, Fault<'a>> {
    let path = path(spot, "a directory", base)?;
    if path.exists() && !path.is_dir() {
        return Err(spot.fault("not a directory, but a file"));
    }
    Ok(path.to_string_lossy().into_owned())
}

fn targets<'a>(spot: &Spot<'a>, base: Base) -> Result<Value, Fault<'a>> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    let items = spot.items("a list of files")?;
    if items.len() > MOST_TARGETS {
        return Err(spot.fault(format!("holds {} files, and {MOST_TARGETS} are the most", items.len())));
    }
    for item in items {
        let target = target(&item, base)?;
        if !seen.insert(target["path"].to_string()) {
            return Err(item.fault("the same file stands earlier in the list"));
        }
        all.push(target);
    }
    Ok(Value::Array(all))
}

/// `"FILE"` or `{"path": "FILE", "repo": "HOST/OWNER/NAME"}`
fn target<'a>(spot: &Spot<'a>, base: Base) -> Result<Value, Fault<'a>> {
    let mut target = Map::new();
    if spot.node.kind() == "a string" {
        target.insert("path".to_owned(), file(spot, base)?);
        return Ok(Value::Object(target));
    }
    let members =
        spot.node.members().ok_or_else(|| spot.expected("a file or an object with path and repo"))?;
    for member in members {
        let inner = spot.member(&member.name, member.value);
        let value = match member.name.as_str() {
            "path" => file(&inner, base)?,
            "repo" => inner.text("a repository, like \"github.com/owner/name\"")?.into(),
            _ => return Err(inner.fault("unknown key").hint(|| "known keys are path and repo".to_owned())),
        };
        if target.insert(member.name, value).is_some() {
            return Err(inner.fault("stands twice"));
        }
    }
    if !target.contains_key("path") {
        return Err(spot.fault("path is missing"));
    }
    Ok(Value::Object(target))
}

fn file<'a>(spot: &Spot<'a>, base: Base) -> Result<Value, Fault<'a>> {
    let path = path(spot, "a file", base)?;
    let ends_as_directory = spot.node.string().is_some_and(|text| text.ends_with('/'));
    if ends_as_directory || path.is_dir() {
        return Err(spot
            .fault("a directory, not a file")
            .hint(|| "name the file in it, like AGENTS.md".to_owned()));
    }
    Ok(path.to_string_lossy().into())
}

fn commands<'a>(spot: &Spot<'a>) -> Result<Value, Fault<'a>> {
    let members = spot.node.members().ok_or_else(|| spot.expected("an object of shell commands by name"))?;
    let mut all = Map::new();
    for member in members {
        let inner = spot.member(&member.name, member.value);
        if member.name.trim().is_empty() {
            return Err(inner.fault("a preset needs a name"));
        }
        let line = inner.text("a shell command")?;
        if all.insert(member.name, line.into()).is_some() {
            return Err(inner.fault("stands twice"));
        }
    }
    Ok(Value::Object(all))
}

fn words<'a>(spot: &Spot<'a>, needs: Option<&str>) -> Result<Value, Fault<'a>> {
    let line = spot.text("a command")?;
    // A comment is no word either.
    match shlex::split(&line) {
        None => return Err(spot.fault("cannot be split into words: a quote or a backslash stands open")),
        Some(words) if words.is_empty() => return Err(spot.fault("must hold a command")),
        Some(words) => {
            if let Some(needed) = needs.filter(|needed| !words.iter().any(|word| word.contains(needed))) {
                return Err(spot.fault(format!("must hold {needed}, in whose place the session's id comes")));
            }
        }
    }
    Ok(line.into())
}
