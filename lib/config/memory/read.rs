//! Reads the settings of a file and checks each. A fault has the line and the key path.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::text::nearest;
use crate::config::json_file::{self, JsonNode, Member, ValueFault};
use crate::config::memory::settings::{SETTINGS, is_section, kind_of, replaced};
use crate::config::memory::value::{PathBase, checked};
use crate::config::toml_file::CAP;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// A setting in the file, or what is wrong with it.
pub(super) type ParsedSetting<'a> = Result<(String, Value), ValueFault<'a>>;

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
