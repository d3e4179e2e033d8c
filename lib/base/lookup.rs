//! Finding programs, as a shell does.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The program `name` in the first directory of PATH that has it. A name with a slash is a path already.
pub fn on_path(name: &OsStr, env: &Env) -> Option<PathBuf> {
    if Path::new(name).components().count() != 1 {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    std::env::split_paths(env.os("PATH")?).map(|dir| dir.join(name)).find(|path| is_program(path))
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
