//! Finding programs, as a shell does.

use crate::base::env::Env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The program `name` in the first directory of PATH that has it. A name with a slash is a path already.
pub(crate) fn on_path(name: &OsStr, env: &Env) -> Option<PathBuf> {
    if Path::new(name).components().count() != 1 {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    std::env::split_paths(env.os("PATH")?).map(|dir| dir.join(name)).find(|path| is_program(path))
}

#[cfg(unix)]
pub(crate) fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}
