//! Reads the settings of a file, checks each, and prepares it for use: paths become absolute. A fault has the line and the key
//! path.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::reach;
use crate::base::text::nearest;
use crate::config::json_file::{self, JsonNode, Member, ValueFault};
use crate::config::memory::remote;
use crate::config::memory::settings::{SETTINGS, ValueKind, is_section, kind_of, replaced};
use crate::config::toml_file::CAP;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A setting in the file, or what is wrong with it.
pub(super) type ParsedSetting<'a> = Checked<'a, (String, Value)>;

/// Of a value in the file, or what is wrong with it.
type Checked<'a, T> = Result<T, ValueFault<'a>>;

/// The settings of a file. The first fault is an error.
pub(super) fn strictly(path: &Path, env: &Env) -> Result<Vec<(String, Value)>> {
    let bytes = bytes(path)?;
    let found = settings(&bytes, path, env)?;
    found.into_iter().map(|found| found.map_err(|fault| fault.error(path))).collect()
}

pub(super) fn bytes(path: &Path) -> Result<Vec<u8>> {
    file::read(path, CAP).map_err(|e| Error::config(format!("failed to read config file: {e}")))
}

/// All settings in the content of the file `path`, valid or not. It is an error if the content is not JSON.
pub(super) fn settings<'a>(bytes: &'a [u8], path: &Path, env: &Env) -> Result<Vec<ParsedSetting<'a>>> {
    let node = json_file::parse(bytes).map_err(|error| {
        Error::config(format!("\"{}\" {}", path.display(), error.message()))
            .hint("correct the file; its keys: memory help configuration")
    })?;
    let base = PathBase { dir: path.parent().unwrap_or(path), env };
    let mut found = Vec::new();
    walk(&node, base, &mut found);
    Ok(found)
}

/// Goes only as deep as the known keys do.
fn walk<'a>(section: &JsonNode<'a>, base: PathBase, found: &mut Vec<ParsedSetting<'a>>) {
    let members = match section.members("an object") {
        Ok(members) => members,
        Err(fault) => return found.push(Err(fault)),
    };
    let mut seen = BTreeSet::new();
    for Member { name, key, value } in members {
        let whole = if section.key.is_empty() { name.clone() } else { format!("{}.{name}", section.key) };
        // A name with a dot does not lead into a section.
        let kind = kind_of(&whole).filter(|_| !name.contains('.'));
        if kind.is_none() && (name.contains('.') || !is_section(&whole)) {
            let section = section.key.clone();
            found.push(Err(key.fault("unknown key").hint(move || suggestion(&section, &name))));
        } else if !seen.insert(name) {
            found.push(Err(key.fault("is there twice")));
        } else if let Some(kind) = kind {
            found.push(checked(kind, &value, base).map(|value| (whole, value)));
        } else {
            walk(&value, base, found);
        }
    }
}

/// The nearest key of the section, or a key of that name in another section, or all keys of the section.
fn suggestion(section: &str, name: &str) -> String {
    let prefix = if section.is_empty() { String::new() } else { format!("{section}.") };
    if section == "harnesses" {
        return "the name of a program of your own is expected: a-z, 0-9 and - only, a letter first; programs whose \
                files are read have no key here"
            .to_owned();
    }
    let current = || SETTINGS.iter().map(|known| known.key).filter(|key| replaced(key).is_none());
    let names: BTreeSet<&str> =
        current().filter_map(|key| key.strip_prefix(&prefix)?.split('.').next()).collect();
    let names = if prefix.starts_with("harnesses.") { BTreeSet::from(["readCommand"]) } else { names };
    let last = name.rsplit('.').next().unwrap_or(name);
    let elsewhere = current().find(|key| key.rsplit('.').next() == Some(last));
    let near = nearest(name, names.iter().copied());
    match (near, elsewhere) {
        (Some(near), _) => format!("did you mean \"{prefix}{near}\"?"),
        (None, Some(key)) if name.contains('.') => {
            format!("keys do not contain dots: write {key} as an object in another")
        }
        (None, Some(key)) => format!("did you mean \"{key}\"?"),
        (None, None) => {
            let names: Vec<String> = names.iter().map(|name| format!("{prefix}{name}")).collect();
            format!("known keys are {}", names.join(", "))
        }
    }
}

/// The most targets: every program reads each.
const MOST_TARGETS: usize = 100;

/// The directory that paths in the file are relative to.
#[derive(Debug, Clone, Copy)]
struct PathBase<'a> {
    dir: &'a Path,
    env: &'a Env,
}

fn checked<'a>(kind: ValueKind, at: &JsonNode<'a>, base: PathBase) -> Checked<'a, Value> {
    Ok(match kind {
        ValueKind::Flag => {
            serde_json::from_str::<bool>(at.raw).map_err(|_| at.expected("true or false"))?.into()
        }
        ValueKind::Number(least, most) => match at.raw.parse() {
            Ok(n) if (least..=most).contains(&n) => n.into(),
            _ => return Err(at.expected(&format!("a whole number from {least} to {most}"))),
        },
        ValueKind::Directory => directory(at, base)?.into(),
        ValueKind::Directories => {
            let items = at.items("a list of directories")?;
            items.iter().map(|item| directory(item, base)).collect::<Result<_, _>>()?
        }
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
        ValueKind::Words(needs) => words(at, needs)?,
        ValueKind::Texts => {
            let items = at.items("a list of strings")?;
            items.iter().map(|item| item.text("a string")).collect::<Result<_, _>>()?
        }
    })
}

/// The scheduler knows which calendars it has; this is what can stand in each one's file.
fn calendar<'a>(at: &JsonNode<'a>) -> Checked<'a, String> {
    let text = at.text("a calendar or null")?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " *,.:/~_+-".contains(c);
    if text.trim().is_empty() || !text.chars().all(is_plain) {
        return Err(at.fault("is not a calendar such as \"daily\" or \"Mon..Fri 07:00\""));
    }
    Ok(text)
}

fn path<'a>(at: &JsonNode<'a>, what: &str, base: PathBase) -> Checked<'a, String> {
    let text = at.text(what)?;
    if text.starts_with('~') {
        if !text.starts_with("~/") {
            let wrong = at.fault("only \"~/\" means the home directory");
            return Err(wrong.hint(|| "write ./~ for the name itself".to_owned()));
        }
        if base.env.home().is_none() {
            return Err(at.fault("begins with \"~/\", but $HOME is not set"));
        }
    }
    let whole: PathBuf = base.dir.join(base.env.expand(&text)).components().collect();
    let wrong = || at.fault("leads to a directory whose name is not valid UTF-8");
    whole.to_str().map(str::to_owned).ok_or_else(wrong)
}

fn directory<'a>(at: &JsonNode<'a>, base: PathBase) -> Checked<'a, String> {
    let path = path(at, "a directory", base)?;
    if reach::within(Path::new(&path), |path| path.exists() && !path.is_dir()).unwrap_or(false) {
        return Err(at.fault("is a file, not a directory"));
    }
    Ok(path)
}

fn targets<'a>(at: &JsonNode<'a>, base: PathBase) -> Checked<'a, Value> {
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
fn target<'a>(at: &JsonNode<'a>, base: PathBase) -> Checked<'a, Value> {
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

fn file<'a>(at: &JsonNode<'a>, base: PathBase) -> Checked<'a, Value> {
    let path = path(at, "a file", base)?;
    if at.raw.ends_with("/\"") {
        let wrong = at.fault("is a directory, not a file");
        return Err(wrong.hint(|| "name a file in it, like AGENTS.md".to_owned()));
    }
    Ok(path.into())
}

fn commands<'a>(at: &JsonNode<'a>) -> Checked<'a, Value> {
    let command = |(name, inner): (String, JsonNode<'a>)| match name.trim() {
        "" => Err(inner.fault("a preset needs a name")),
        _ => Ok((name, inner.text("a shell command")?.into())),
    };
    let all = at.named("an object of shell commands by name")?.into_iter().map(command);
    Ok(Value::Object(all.collect::<Result<_, _>>()?))
}

fn words<'a>(at: &JsonNode<'a>, needs: Option<&str>) -> Checked<'a, Value> {
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
