//! Finding programs, as a shell does.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::stderr;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// PATH where nothing is left of it: what a shell looks in that has none.
const USUAL: &str = "/usr/bin:/bin";

/// The program `name` in the first directory of PATH that has it. A name with a slash is a path already.
pub fn on_path(name: &OsStr, env: &Env) -> Option<PathBuf> {
    if Path::new(name).components().count() != 1 {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    let (path, left_out) = absolute(env.os("PATH")?);
    if !left_out.is_empty() {
        path_of_commands();
    }
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| is_program(path))
}

/// PATH without its entries that are empty or relative, and those entries. They name a directory below the one that a
/// command runs in: whoever wrote that, such as the author of a checkout, would choose the program.
pub fn absolute(path: &OsStr) -> (OsString, Vec<PathBuf>) {
    let (kept, left_out): (Vec<_>, Vec<_>) = std::env::split_paths(path).partition(|dir| dir.is_absolute());
    match std::env::join_paths(kept) {
        Ok(path) if !path.is_empty() => (path, left_out),
        _ => (USUAL.into(), left_out),
    }
}

/// The PATH for commands, if ours has entries to be left out. The first call warns of them.
fn path_of_commands() -> Option<&'static OsStr> {
    static PATH: OnceLock<Option<OsString>> = OnceLock::new();
    let found = PATH.get_or_init(|| {
        let env = Env::read().ok().filter(|env| env.is_set("PATH"))?;
        let (path, left_out) = absolute(env.os("PATH").unwrap_or_default());
        let named: Vec<String> = left_out.iter().map(|dir| format!("\"{}\"", dir.display())).collect();
        if named.is_empty() {
            return None;
        }
        stderr::line(&format!(
            "Warning: left out of PATH, because it is not an absolute path: {}; remove it there",
            named.join(", ")
        ));
        Some(path)
    });
    found.as_deref()
}

/// A command that looks for programs in absolute directories alone. A name without a slash is looked up there, too.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    if let Some(path) = path_of_commands() {
        command.env("PATH", path);
    }
    command
}

/// The program of that name beside this one, for `user`, who starts it later.
///
/// If PATH leads to the same file, the path from there is used: a package manager's profile keeps its path when the
/// package behind it is replaced.
pub fn beside(name: &str, user: &str, env: &Env) -> Result<PathBuf> {
    let own = std::env::current_exe().and_then(|own| own.canonicalize());
    let own = own.map_err(|e| Error::io(format!("the path of this program cannot be determined: {e}")))?;
    let beside = own.with_file_name(name);
    if !is_program(&beside) {
        return Err(Error::io(format!(
            "{user} need the program \"{}\", which does not exist",
            beside.display()
        ))
        .hint("install all programs of the toolkit into one directory"));
    }
    let is_same =
        |path: &PathBuf| path.is_absolute() && path.canonicalize().ok() == beside.canonicalize().ok();
    Ok(on_path(name.as_ref(), env).filter(is_same).unwrap_or(beside))
}

pub fn nix_store(env: &Env) -> &Path {
    env.os("NIX_STORE_DIR").map_or(Path::new("/nix/store"), Path::new)
}

/// Nobody may change a file there, and its path does not last.
pub fn is_in_nix_store(path: &Path, env: &Env) -> bool {
    path.starts_with(nix_store(env))
}

#[cfg(unix)]
pub fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
pub fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_entries_of_path_are_kept() {
        for (path, kept, left_out) in [
            ("/a:/b", "/a:/b", &[][..]),
            (".:/a::bin:/b:", "/a:/b", &[".", "", "bin", ""]),
            ("./x:../y", USUAL, &["./x", "../y"]),
            ("", USUAL, &[""]),
        ] {
            let left_out: Vec<PathBuf> = left_out.iter().map(PathBuf::from).collect();
            assert_eq!(absolute(path.as_ref()), (kept.into(), left_out), "{path:?}");
        }
    }
}
