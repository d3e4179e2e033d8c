//! The person's editor, and texts that go to it: each lies in a file of the store until what it says is filed, so that
//! nothing typed is lost.

use crate::base::env::Env;
use crate::base::error::{Error, Result, reason};
use crate::base::exec::{how_it_ended, signal_of};
use crate::base::text::hex;
use crate::base::{file, lookup};
use crate::store::entry::EntryId;
use crate::store::place::Root;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// The largest text that an editor may leave, in bytes.
const CAP: u64 = 1 << 20;

/// A text that goes to an editor.
pub(super) struct EditedText {
    pub(super) path: PathBuf,
    before: Vec<u8>,
}

impl EditedText {
    /// `id`: of what is edited. The file's name has a hash of the text, too: what was left of an earlier edit is opened again
    /// if it was of the same text, and stays where it is if not.
    pub(super) fn of(root: &Root, id: &str, before: Vec<u8>) -> EditedText {
        let hash = hex(&Sha256::digest(&before)[..4]);
        let path = dir(root).join(format!("{id}.{hash}.md"));
        // An edit that was killed when it had filed its text has left it.
        for other in left(root, id).unwrap_or_default().iter().filter(|other| **other != path) {
            if file::read(other, CAP).is_ok_and(|left| left == before) {
                let _ = file::remove(other);
            }
        }
        EditedText { path, before }
    }

    /// Some of it was edited earlier and is not filed.
    pub(super) fn is_left(&self) -> bool {
        self.path.exists()
    }

    /// Opens the text, or what is left of it, in the person's editor. `None`: it is as it was, or empty.
    ///
    /// # Errors
    /// The editor failed, or was ended by a signal, or the file cannot be read.
    pub(super) fn edit(&self, env: &Env) -> Result<Option<Vec<u8>>> {
        if !self.is_left() {
            file::make_private_dir(self.path.parent().unwrap_or(&self.path))?;
            file::install(&self.path, &self.before, 0o600)?;
        }
        let ended = edit(&self.path, env);
        // Some editors remove a file that is left empty.
        let after = file::if_exists(file::read(&self.path, CAP))?.unwrap_or_default();
        let is_same = after.trim_ascii().is_empty() || after == self.before;
        if is_same {
            self.done()?;
        }
        match signal_of(ended?) {
            Some(signal) => Err(Error::refused(format!("the editor was ended by signal {signal}"))),
            None => Ok((!is_same).then_some(after)),
        }
    }

    /// What it says is filed.
    pub(super) fn done(&self) -> Result<()> {
        Ok(file::if_exists(file::remove(&self.path)).map(drop)?)
    }

    /// The error, with where the text is if there is one.
    pub(super) fn keep(&self, error: Error, next: &str) -> Error {
        if !self.is_left() {
            return error;
        }
        let step = error.next_step().map(|step| format!("{step}; ")).unwrap_or_default();
        let step = format!("{step}your text is kept in \"{}\"{next}", self.path.display());
        error.hint(step)
    }
}

fn dir(root: &Root) -> PathBuf {
    root.state().join("edits")
}

/// Removes what is left of edits of these notes, and of changes of them.
pub(super) fn forget(root: &Root, ids: &[EntryId]) -> Result<()> {
    for id in ids {
        left(root, id.as_str())?.iter().try_for_each(|path| file::if_exists(file::remove(path)).map(drop))?;
    }
    Ok(())
}

/// What is left of edits of `id`.
fn left(root: &Root, id: &str) -> Result<Vec<PathBuf>> {
    let entries = file::if_exists(fs_err::read_dir(dir(root)))?.into_iter().flatten();
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    Ok(paths
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(id)))
        .collect())
}

/// Opens the file in $VISUAL, else in $EDITOR, and waits for the editor's end.
///
/// # Errors
/// None is set, or it cannot be started, or it failed otherwise than by a signal.
pub(super) fn edit(path: &Path, env: &Env) -> Result<ExitStatus> {
    let editor = env.text("VISUAL").or_else(|| env.text("EDITOR")).ok_or_else(|| {
        Error::usage("$EDITOR environment variable is not set").hint("set it, for example: EDITOR=vi")
    })?;
    let words = shlex::split(editor)
        .ok_or_else(|| Error::usage(format!("the editor's command line has an unclosed quote: {editor}")))?;
    let [program, arguments @ ..] = &words[..] else {
        return Err(Error::usage(format!("the editor's command line names no program: \"{editor}\"")));
    };
    // While the editor runs, Ctrl-C is for the editor; afterwards we check what it wrote.
    #[cfg(unix)]
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGQUIT] {
        let _ = signal_hook::flag::register(signal, std::sync::Arc::default());
    }
    let failed = |why: String| Error::io(format!("editor \"{program}\" {why}"));
    let status = lookup::command(program)
        .args(arguments)
        .arg(path)
        .status()
        .map_err(|e| failed(format!("could not be started: {}", reason(&e))))?;
    match status.success() || signal_of(status).is_some() {
        true => Ok(status),
        false => Err(failed(format!("failed ({})", how_it_ended(status)))),
    }
}
