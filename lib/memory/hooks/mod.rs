//! Capture and recall in the settings of the harnesses on this machine.
//!
//! Settings are other people's files. `settings` and `jsonc` change their text, `change` writes them, `record` remembers
//! what else we made, so that it can be taken away again.

mod change;
mod harness;
mod jsonc;
mod ours;
mod record;
mod settings;
pub(crate) mod status;
#[cfg(test)]
mod tests;

pub(crate) use crate::memory::hooks::change::Done;
pub(crate) use crate::memory::hooks::harness::Programs;
pub(crate) use crate::memory::hooks::ours::HookProgram;

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::config::memory::homes::{HOMES, Home};
use crate::memory::hooks::change::Target;
use crate::memory::hooks::harness::{MARK, OwnFile, Way};
use crate::memory::hooks::record::Record;
use crate::memory::hooks::settings::{Form, Hook, Made, not_for, with_hooks, without_hooks};
use std::path::{Path, PathBuf};

/// The harnesses with hooks, for messages.
pub(crate) const NAMES: &[&str] =
    &["amp", "claude-code", "codex", "copilot", "cursor", "gemini", "opencode", "qwen-code"];

pub(crate) fn named(harness: &str) -> Option<&'static Home> {
    Home::named(harness).filter(|home| home.harness != "pi")
}

/// Those that are used here.
pub(crate) fn found(env: &Env) -> Vec<&'static Home> {
    HOMES.iter().filter(|home| named(home.harness).is_some() && home.is_here(env)).collect()
}

/// A file of a harness, and what became of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) harness: &'static Home,
    /// As the person knows it.
    pub(crate) file: PathBuf,
    pub(crate) result: Result<Done>,
    /// What belongs into the file.
    pub(crate) lines: String,
    /// Why the program does not read the file, if that is so.
    pub(crate) unreadable: Option<String>,
}

/// Puts our hooks into the settings of these harnesses. With `dry`, nothing is changed.
pub(crate) fn install(
    homes: &[&'static Home],
    programs: &Programs,
    dry: bool,
    env: &Env,
) -> Result<Vec<Outcome>> {
    let mut record = if dry { None } else { Some(Record::open(env)?) };
    let mut outcomes = Vec::new();
    for home in homes.iter().copied() {
        match home.way(Some(programs), env) {
            Some(Way::Settings { path, form, hooks }) => {
                let lines = with_hooks(None, &form, &hooks, &mut Made::default())?;
                let result = settings(&path, &form, &hooks, record.as_mut(), env);
                let read = Target::read(&path).ok();
                let text = read.as_ref().and_then(|read| read.text().ok().flatten()).map(str::to_owned);
                let unreadable =
                    text.filter(|_| result.is_ok()).and_then(|text| not_for(&text, form.dialect));
                outcomes.push(Outcome { harness: home, file: path, result, lines, unreadable });
            }
            Some(Way::Files(files)) => outcomes.extend(files.into_iter().map(|own| {
                let result = own_file(&own, record.as_mut(), env);
                Outcome { harness: home, file: own.path, result, lines: own.text, unreadable: None }
            })),
            None => {}
        }
    }
    Ok(outcomes)
}

/// How often an edit starts again because the program itself has written its settings meanwhile.
const TRIES: u32 = 5;

fn settings(
    path: &Path,
    form: &Form,
    hooks: &[Hook],
    mut record: Option<&mut Record>,
    env: &Env,
) -> Result<Done> {
    for _ in 0..TRIES {
        let target = Target::read(path)?;
        let old = record.as_ref().and_then(|record| record.made(&target.path)).cloned();
        let mut made = old.clone().unwrap_or_default();
        let text = target.text().and_then(|text| with_hooks(text, form, hooks, &mut made));
        let text = text.map_err(|e| in_file(e, path))?;
        if !target.differs(Some(&text)) {
            return Ok(Done::Unchanged);
        }
        if let Some(why) = target.protected(env) {
            return Ok(Done::Left(why));
        }
        let Some(record) = record.as_mut() else { return Ok(Done::Written) };
        record.add_dirs(target.missing_dirs())?;
        record.set_made(&target.path, Some(made))?;
        match target.write(Some(&text)) {
            Ok(true) => return Ok(Done::Written),
            Ok(false) => record.set_made(&target.path, old)?,
            Err(e) => {
                record.set_made(&target.path, old)?;
                return Err(e);
            }
        }
    }
    Err(busy(path))
}

fn own_file(own: &OwnFile, mut record: Option<&mut Record>, env: &Env) -> Result<Done> {
    for _ in 0..TRIES {
        let target = Target::read(&own.path)?;
        if !target.differs(Some(&own.text)) {
            return Ok(Done::Unchanged);
        }
        if let Some(why) = target.protected(env) {
            return Ok(Done::Left(why));
        }
        if target.text()?.is_some_and(|text| !text.contains(MARK)) {
            return Err(Error::refused(format!(
                "\"{}\" was not written by memory-install-hooks and is not changed",
                own.path.display()
            ))
            .hint("move it away"));
        }
        let Some(record) = record.as_mut() else { return Ok(Done::Written) };
        record.add_dirs(target.missing_dirs())?;
        if target.write(Some(&own.text))? {
            return Ok(Done::Written);
        }
    }
    Err(busy(&own.path))
}

/// Takes our hooks out of the settings of these harnesses, and everything else that we made there.
pub(crate) fn uninstall(homes: &[&'static Home], env: &Env) -> Result<Vec<Outcome>> {
    let mut record = Record::open(env)?;
    let mut outcomes = Vec::new();
    for home in homes.iter().copied() {
        let mut outcome = |file: PathBuf, result| {
            let (lines, unreadable) = (String::new(), None);
            outcomes.push(Outcome { harness: home, file, result, lines, unreadable });
        };
        match home.way(None, env) {
            Some(Way::Settings { path, form, .. }) => {
                let result = without(&path, &form, &mut record, env);
                outcome(path, result);
            }
            Some(Way::Files(files)) => {
                for own in files {
                    let result = own_file_away(&own.path, env);
                    outcome(own.path, result);
                }
            }
            None => {}
        }
    }
    let dirs = homes.iter().filter_map(|home| home.dir(env));
    let dirs: Vec<_> = dirs.map(|dir| dir.canonicalize().unwrap_or(dir)).collect();
    record.tidy(&dirs)?;
    Ok(outcomes)
}

fn without(path: &Path, form: &Form, record: &mut Record, env: &Env) -> Result<Done> {
    for _ in 0..TRIES {
        let target = Target::read(path)?;
        let Some(text) = target.text().map_err(|e| in_file(e, path))? else {
            record.set_made(&target.path, None)?;
            return Ok(Done::Unchanged);
        };
        let new = without_hooks(text, form, record.made(&target.path)).map_err(|e| in_file(e, path))?;
        if target.differs(new.as_deref()) {
            if let Some(why) = target.protected(env) {
                return Ok(Done::Left(why));
            }
            if !target.write(new.as_deref())? {
                continue;
            }
            record.set_made(&target.path, None)?;
            return Ok(if new.is_some() { Done::Written } else { Done::Removed });
        }
        record.set_made(&target.path, None)?;
        return Ok(Done::Unchanged);
    }
    Err(busy(path))
}

fn own_file_away(path: &Path, env: &Env) -> Result<Done> {
    let target = Target::read(path)?;
    if !target.text().is_ok_and(|text| text.is_some_and(|text| text.contains(MARK))) {
        return Ok(Done::Unchanged);
    }
    if let Some(why) = target.protected(env) {
        return Ok(Done::Left(why));
    }
    match target.write(None)? {
        true => Ok(Done::Removed),
        false => Err(busy(path)),
    }
}

fn in_file(error: Error, path: &Path) -> Error {
    Error::new(error.kind(), format!("\"{}\" {}", path.display(), error.message()))
        .hint("correct it and run this again; nothing was changed in it")
}

fn busy(path: &Path) -> Error {
    Error::busy(format!("\"{}\" is being changed by another program", path.display())).hint("try again")
}
