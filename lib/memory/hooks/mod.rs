//! Capture and recall in the settings of the harnesses on this machine.
//!
//! Settings are other people's files. `settings` changes their text, `change` writes them, `record` remembers what they
//! were and which directories we made, so that all of it can be taken away again.

mod change;
mod harness;
mod ours;
mod record;
mod settings;
pub mod status;
#[cfg(test)]
mod tests;

pub use crate::memory::hooks::change::FileResult;
pub use crate::memory::hooks::harness::{Programs, runs_in};
pub use crate::memory::hooks::ours::HookProgram;
pub use crate::memory::hooks::record::installed_at;

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::reach;
use crate::harness::spec::{HookSettings, Install, Spec, Switch};
use crate::harness::{HARNESSES, known};
use crate::memory::hooks::change::SettingsFile;
use crate::memory::hooks::harness::{MARK, filled, hooks, own_path, settings_file};
use crate::memory::hooks::record::HooksRecord;
use crate::memory::hooks::settings::{Before, SetValue, not_for, with_hooks, with_value, without_hooks};
use std::path::{Path, PathBuf};

const fn has_hooks(spec: &Spec) -> bool {
    !matches!(spec.install, Install::Nothing)
}

/// The names of the harnesses with hooks, and how many they are.
const COUNTED: ([&str; HARNESSES.len()], usize) = {
    let (mut at, mut count, mut names) = (0, 0, [""; HARNESSES.len()]);
    while at < HARNESSES.len() {
        if has_hooks(HARNESSES[at]) {
            names[count] = HARNESSES[at].name;
            count += 1;
        }
        at += 1;
    }
    (names, count)
};

/// The harnesses with hooks.
pub const NAMES: &[&str] = COUNTED.0.split_at(COUNTED.1).0;

pub fn named(harness: &str) -> Option<&'static Spec> {
    known(harness).filter(|spec| has_hooks(spec))
}

/// Those that are used here.
pub fn found(env: &Env) -> Vec<&'static Spec> {
    HARNESSES.iter().copied().filter(|spec| has_hooks(spec) && spec.is_here(env)).collect()
}

/// A file of a harness, and what became of it.
#[derive(Debug)]
pub struct HookOutcome {
    pub harness: &'static Spec,
    /// As the person knows it.
    pub file: PathBuf,
    pub result: Result<FileResult>,
    /// What belongs into the file.
    pub lines: String,
    /// Why the program does not read the file, if that is so.
    pub unreadable: Option<String>,
}

/// Puts our hooks into the settings of these harnesses. With `dry`, nothing is changed.
pub fn install(
    harnesses: &[&'static Spec],
    programs: &Programs,
    dry: bool,
    env: &Env,
) -> Result<Vec<HookOutcome>> {
    let mut record = if dry { None } else { Some(HooksRecord::open(env)?) };
    let mut outcomes = Vec::new();
    for (harness, dir) in homes(harnesses, env) {
        match &harness.install {
            Install::Nothing => {}
            Install::Settings(form) => {
                let file = settings_file(&dir, form);
                let hooks = hooks(harness, form, programs);
                let lines = with_hooks(None, form, &hooks)?;
                let with = |text: Option<&str>, _: Option<&Before>| with_hooks(text, form, &hooks).map(Some);
                let result = change(&file, record.as_mut(), Some(Put { form, set: None }), env, with);
                let read = SettingsFile::read(&file).ok().filter(|_| result.is_ok());
                let text = read.as_ref().and_then(|read| read.text().ok().flatten());
                let unreadable = text.and_then(|text| not_for(text, form));
                outcomes.push(HookOutcome { harness, file, result, lines, unreadable });
            }
            Install::Files(files) => outcomes.extend(files.iter().map(|own| {
                let (file, lines) = (own_path(&dir, own), filled(own.text, programs));
                let with = |text: Option<&str>, _: Option<&Before>| match text {
                    Some(text) if !text.contains(MARK) => {
                        let why = "was not written by memory-install-hooks and is not changed";
                        Err(Error::refused(why).hint("move it away"))
                    }
                    _ => Ok(Some(lines.clone())),
                };
                let result = change(&file, record.as_mut(), None, env, with);
                HookOutcome { harness, file, result, lines, unreadable: None }
            })),
        }
    }
    Ok(outcomes)
}

/// Takes our hooks out of the settings of these harnesses, and everything else that we made there.
pub fn uninstall(harnesses: &[&'static Spec], env: &Env) -> Result<Vec<HookOutcome>> {
    let mut record = HooksRecord::open(env)?;
    let mut outcomes = Vec::new();
    for (harness, dir) in homes(harnesses, env) {
        let (form, files) = match &harness.install {
            Install::Nothing => continue,
            Install::Settings(form) => (Some(form), vec![settings_file(&dir, form)]),
            Install::Files(files) => (None, files.iter().map(|own| own_path(&dir, own)).collect()),
        };
        for file in files {
            let without = |text: Option<&str>, before: Option<&Before>| match (text, form) {
                (Some(text), Some(form)) => without_hooks(text, form, before),
                // Not ours.
                (Some(text), None) if !text.contains(MARK) => Ok(Some(text.to_owned())),
                _ => Ok(None),
            };
            // What is not even text is not ours, either.
            let is_foreign = || SettingsFile::read(&file).is_ok_and(|there| there.text().is_err());
            let result = match form.is_none() && is_foreign() {
                true => Ok(FileResult::Unchanged),
                false => change(&file, Some(&mut record), None, env, without),
            };
            outcomes.push(HookOutcome { harness, file, result, lines: String::new(), unreadable: None });
        }
    }
    let dirs = homes(harnesses, env).map(|(_, dir)| reach::real(&dir).unwrap_or(dir));
    record.tidy(&dirs.collect::<Vec<_>>())?;
    Ok(outcomes)
}

/// Those of these programs whose own memory a setting of theirs switches off, and that have not switched it off.
pub fn with_memory(harnesses: &[&'static Spec], env: &Env) -> Vec<&'static Spec> {
    let is_on = |spec: &&&'static Spec| {
        let known = memory_switch(spec).zip(spec.home.dir(env));
        known.is_some_and(|(switch, dir)| status::switched_off(&dir, switch).is_none())
    };
    harnesses.iter().filter(is_on).copied().collect()
}

fn memory_switch(spec: &'static Spec) -> Option<&'static Switch> {
    Some(&spec.memory.as_ref()?.off.as_ref()?.0)
}

/// Switches the own memory of these programs off, in their settings. To uninstall the hooks takes it back.
pub fn switch_off_memory(harnesses: &[&'static Spec], env: &Env) -> Result<Vec<HookOutcome>> {
    let mut record = HooksRecord::open(env)?;
    let mut outcomes = Vec::new();
    for (harness, dir) in homes(harnesses, env) {
        let (Some(switch), Install::Settings(form)) = (memory_switch(harness), &harness.install) else {
            continue;
        };
        let key = switch.key.iter().map(|name| (*name).to_owned()).collect();
        let (set, file) = (SetValue { key, value: switch.off }, dir.join(switch.file));
        let with = |text: Option<&str>, _: Option<&Before>| with_value(text, &set).map(Some);
        let put = Put { form, set: Some(&set) };
        let result = change(&file, Some(&mut record), Some(put), env, with);
        let lines = format!("\"{}\": {}", switch.key.join("."), switch.off);
        outcomes.push(HookOutcome { harness, file, result, lines, unreadable: None });
    }
    Ok(outcomes)
}

/// Where each has its settings.
fn homes<'a>(
    harnesses: &'a [&'static Spec],
    env: &'a Env,
) -> impl Iterator<Item = (&'static Spec, PathBuf)> + 'a {
    harnesses.iter().filter_map(|harness| Some((*harness, harness.home.dir(env)?)))
}

/// How often an edit starts again because the program itself has written its settings meanwhile.
const TRIES: u32 = 5;

/// What goes into a file, so that what it was is remembered.
#[derive(Clone, Copy)]
struct Put<'a> {
    form: &'a HookSettings,
    /// A setting, and no hooks.
    set: Option<&'a SetValue>,
}

/// Gives a file the text that `new` makes of its text, and of what is known of it before our hooks. `put`: something goes in,
/// and what it was is remembered; otherwise our hooks go out. Without a record, nothing is changed.
fn change(
    path: &Path,
    mut record: Option<&mut HooksRecord>,
    put: Option<Put>,
    env: &Env,
    new: impl Fn(Option<&str>, Option<&Before>) -> Result<Option<String>>,
) -> Result<FileResult> {
    for _ in 0..TRIES {
        let file = SettingsFile::read(path)?;
        let old = record.as_ref().and_then(|record| record.before(&file.path)).cloned();
        let text = file.text().map_err(|e| in_file(e, path))?;
        let new = new(text, old.as_ref()).map_err(|e| in_file(e, path))?;
        let differs = file.differs(new.as_deref());
        if let Some(why) = file.protected(env).filter(|_| differs) {
            return Ok(FileResult::Left(why));
        }
        let done = match (&new, differs) {
            (_, false) => FileResult::Unchanged,
            (Some(_), true) => FileResult::Written,
            (None, true) => FileResult::Removed,
        };
        let Some(record) = record.as_mut() else { return Ok(done) };
        file.sweep(new.as_deref());
        if let (true, Some(put), Some(new)) = (differs, put, &new) {
            // Saved before the settings are: what is not known to be ours would stay for ever.
            let before = Before::of(text, new, put.form, old.as_ref(), put.set)?;
            record.set_before(&file.path, Some(before))?;
        }
        record.add_dirs(if new.is_some() { file.missing_dirs.clone() } else { Vec::new() })?;
        let written = if differs { file.write(new.clone()) } else { Ok(true) };
        // It may have failed after the file had its new text: the record is of what the file says.
        let is_written = match &written {
            Ok(is_written) => *is_written,
            Err(_) => SettingsFile::read(path).is_ok_and(|now| !now.differs(new.as_deref())),
        };
        match (is_written, put) {
            (true, Some(_)) => {}
            (true, None) => record.set_before(&file.path, None)?,
            (false, _) => record.set_before(&file.path, old)?,
        }
        if written? {
            return Ok(done);
        }
    }
    Err(Error::busy(format!("\"{}\" is being changed by another program", path.display())).hint("try again"))
}

fn in_file(error: Error, path: &Path) -> Error {
    let next = error.next_step().unwrap_or("correct it and run this again; nothing was changed in it");
    Error::new(error.kind(), format!("\"{}\" {}", path.display(), error.message())).hint(next)
}
